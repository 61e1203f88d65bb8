import type { JsonObject, Message, ModelRequest, Part } from '../../conversation/turn.ts'
import { type Wish, wishesIn } from './wishes.ts'

/** What the demo says in one turn. */
export interface Saying {
  text: string
  call: (Wish & { id: string }) | undefined
}

const INTRODUCTION =
  'This is a scripted demo model. Ask it to "search <words>", give it a URL to read, have it "calculate <expression>" or run a fenced block of code, or tell it to "call <function> with {…}".'
const SHOWN_CHARACTERS = 600

/**
 * Carries out the wishes of the last user message one by one, each as a call to a tool that is offered, then answers
 * from what the tools gave back. It keeps nothing between turns: what is done already stands in the messages.
 */
export function useTools({ messages, tools, toolChoice }: ModelRequest): Saying {
  const asked = messages.findLastIndex(
    ({ role, parts }) => role === 'user' && parts.some(({ type }) => type !== 'result'),
  )
  const text = textOf(messages[asked])
  const done = messages.slice(asked + 1).flatMap(callsOf)
  const offered = new Set(
    toolChoice?.type === 'none' ? [] : tools.flatMap((tool) => (tool.kind === 'function' ? [tool.name] : [])),
  )
  const wishes = wishesIn(text)
  if (toolChoice?.type === 'function' && done.length === 0 && !wishes.some(({ name }) => name === toolChoice.name))
    wishes.unshift({ name: toolChoice.name, input: inputFor(toolChoice.name, text) })

  const next = remaining(wishes, done).find(({ name }) => offered.has(name))
  if (next) return { text: '', call: { ...next, id: `call_demo_${messages.flatMap(callsOf).length + 1}` } }
  if (wishes.length === 0) return { text: INTRODUCTION, call: undefined }
  return { text: report(wishes, done, messages.slice(asked + 1)), call: undefined }
}

/** Equal wishes are carried out as often as they were made. */
function remaining(wishes: Wish[], done: Call[]): Wish[] {
  const left = done.map(keyOf)
  return wishes.filter((wish) => {
    const at = left.indexOf(keyOf(wish))
    if (at >= 0) left.splice(at, 1)
    return at < 0
  })
}

function report(wishes: Wish[], done: Call[], since: Message[]): string {
  const results = new Map(
    since.flatMap(({ parts }) => parts.flatMap((part) => (part.type === 'result' ? [[part.callId, part.text]] : []))),
  )
  const lines = done.map(
    (call) => `${call.name}: ${(results.get(call.id) ?? 'no result').slice(0, SHOWN_CHARACTERS).toWellFormed()}`,
  )
  const missed = remaining(wishes, done).map(
    ({ name }) => `${name}: this tool is not offered to me, so it was not called.`,
  )
  return [...lines, ...missed].join('\n\n')
}

interface Call extends Wish {
  id: string
}

const callsOf = ({ parts }: Message): Call[] =>
  parts.flatMap((part) =>
    part.type === 'call' ? [{ id: part.id, name: part.name, input: parsed(part.arguments) }] : [],
  )

function parsed(text: string): JsonObject {
  try {
    return JSON.parse(text) as JsonObject
  } catch {
    return {} // not written here: this model's own arguments always parse
  }
}

const keyOf = ({ name, input }: Wish): string => JSON.stringify([name, input])

function inputFor(name: string, text: string): JsonObject {
  if (name === 'web_search') return { query: text }
  return name === 'code_execution' ? { code: `print(${JSON.stringify(text)})` } : {}
}

const textOf = (message: Message | undefined): string =>
  (message?.parts ?? []).map((part: Part) => (part.type === 'text' ? part.text : '')).join('')
