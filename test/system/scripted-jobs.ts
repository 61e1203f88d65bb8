import { callsTools, type FakeJson, type ScriptedReply, says } from '@tollgate/testing'

/** A public address that needs no look-up; the forward proxy of the tests answers for it. */
export const SITE = 'http://93.184.216.34'

/** What a job can be made of, in its order: a call of each tool, or a way of answering that takes its time. */
export type Step = 'search' | 'fetch' | 'code' | 'stall' | 'late' | 'slow'

/** The user's message that has the scripted model work a job: a word of its own, and its steps. */
export const job = (tag: string, ...steps: Step[]): string => `job ${tag} ${steps.join(',')}`

export const threeTools = (tag: string): string => job(tag, 'search', 'fetch', 'code')

export const allTools = [
  { type: 'otari_web_search' },
  { type: 'otari_web_fetch' },
  { type: 'otari_code_execution' },
] as const

export interface JobOptions {
  /** The program that a job runs. */
  code?: (tag: string) => string
  /** Before each reply. */
  delayMs?: () => number
}

/** What reached the model about one job. */
export interface JobSeen {
  rounds: number
  /** Results of tools it was shown, by the function's name. */
  results: Map<string, string>
}

export type VendorWire = 'chat' | 'messages'

export interface JobModel {
  reply(body: FakeJson, wire: VendorWire): ScriptedReply
  seen(tag: string): JobSeen
}

/** Adds up to a number that only running it gives. */
/** So long that no port, time or size happens to hold its digits. */
export const sumOf = (tag: string): number =>
  Array.from(tag).reduce((sum, character) => sum + character.charCodeAt(0) * 1_000_003, 0)
const summing = (tag: string): string => `print(sum(ord(c) * 1_000_003 for c in "${tag}"))`

/**
 * A job `running.<n>` starts a process that would sleep for 60.<n> seconds, and waits for it; `keeps.<word>` leaves its
 * word in a variable and a file, `finds.<word>` says what it finds there.
 */
const program = (tag: string): string => {
  const [, word] = /^keeps\.(\w+)$/.exec(tag) ?? []
  if (word !== undefined) return `kept = "${word}"\nopen("kept.txt", "w").write("file of ${word}")`
  if (tag.startsWith('finds.')) return 'print("found", kept, "and the", open("kept.txt").read())'
  const [, n] = /^running\.(\d+)$/.exec(tag) ?? []
  return n === undefined ? summing(tag) : `import subprocess\nsubprocess.run(["sleep", "60.${n}"])`
}

/** Usage of round n, counted from 0: no two rounds alike, so that a sum shows every one of them. */
const usageOf = (round: number, wire: VendorWire): FakeJson => {
  const [input, output] = [101 + round, 11 + round]
  return wire === 'messages'
    ? { input_tokens: input, output_tokens: output }
    : { prompt_tokens: input, completion_tokens: output, total_tokens: input + output }
}

/** A model that works the job of the last user message, call by call, and then says everything the tools gave it. */
export function jobModel({ code = program, delayMs = () => 0 }: JobOptions = {}): JobModel {
  const jobs = new Map<string, JobSeen>()
  const seen = (tag: string): JobSeen => {
    const known = jobs.get(tag) ?? { rounds: 0, results: new Map() }
    jobs.set(tag, known)
    return known
  }

  return {
    seen,
    reply(body, wire) {
      const { asked, results } = read(body)
      const [, tag = '', list = ''] = /^job (\S+) (\S*)/.exec(asked) ?? []
      const about = seen(tag)
      about.rounds += 1
      for (const { name, text } of results) about.results.set(name, text)
      const more = { usage: usageOf(results.length, wire), delayMs: delayMs(), piece: 64 }
      const step = list.split(',')[results.length] as Step | undefined
      switch (step) {
        case 'search':
          return callsTools([{ name: 'web_search', input: { query: `news of ${tag}` } }], more)
        case 'fetch':
          return callsTools([{ name: 'web_fetch', input: { url: `${SITE}/page/${tag}?token=${tag}-in-query` } }], more)
        case 'code':
          return callsTools([{ name: 'code_execution', input: { code: code(tag) } }], more)
        case 'stall':
          return says(`${tag} begins a long story that never ends`, { ...more, stallAfterBytes: 600 })
        case 'late':
          return says(`${tag} comes late`, { ...more, delayMs: 60_000 })
        case 'slow':
          return says(`${tag} `.repeat(200), { ...more, piece: 1, byteByByte: true })
        default:
          return says([tag, ...results.map(({ text }) => text)].join('\n'), more)
      }
    },
  }
}

interface Read {
  asked: string
  /** In the order of the calls. */
  results: { name: string; text: string }[]
}

interface WireMessage {
  role: string
  content: string | FakeJson[] | null
  tool_calls?: { id: string; function: { name: string } }[]
  tool_call_id?: string
}

/** The question and what tools have answered since, in the wire form of either vendor. */
function read(body: FakeJson): Read {
  const messages = body.messages as WireMessage[]
  const blocks = messages.flatMap(({ content }) => (Array.isArray(content) ? content : []))
  const names = new Map<unknown, string>([
    ...messages.flatMap(({ tool_calls }) => (tool_calls ?? []).map((call) => [call.id, call.function.name] as const)),
    ...blocks.flatMap(({ type, id, name }) => (type === 'tool_use' ? [[id, String(name)] as const] : [])),
  ])
  const result = (id: unknown, content: unknown) => ({ name: names.get(id) ?? '', text: textOf(content) })
  const questions = messages.filter(({ role, content }) => role === 'user' && textOf(content) !== '')
  return {
    asked: textOf(questions.at(-1)?.content),
    results: [
      ...messages.flatMap(({ role, tool_call_id, content }) =>
        role === 'tool' ? [result(tool_call_id, content)] : [],
      ),
      ...blocks.flatMap(({ type, tool_use_id, content }) =>
        type === 'tool_result' ? [result(tool_use_id, content)] : [],
      ),
    ],
  }
}

const textOf = (content: unknown): string =>
  typeof content === 'string'
    ? content
    : Array.isArray(content)
      ? content.map(({ type, text }: FakeJson) => (type === 'text' ? String(text) : '')).join('')
      : ''
