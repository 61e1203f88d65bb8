import type { TokenCounts } from '@tollgate/contracts'
import type { Log } from '@tollgate/telemetry'
import type { FinishReason, ModelEvent } from '../../conversation/events.ts'
import type { Json, JsonObject } from '../../conversation/turn.ts'
import { faultOfFrame } from '../upstream-errors.ts'
import { brokenAnswer, type Origin } from '../upstream-fault.ts'
import { callReader } from './calls.ts'
import { type ChatChoice, type ChatChunk, type ChatDelta, chatChunk, type ToolCallDelta } from './chunk.ts'
import { countedIn } from './usage.ts'

export interface ChatReader {
  /** Events of one chunk of a stream, or of a whole answer. Throws the fault that an error frame stands for. */
  chunk(json: unknown): ModelEvent[]
  /** The rest, when the stream is over; `done` when it said so itself. Throws when it was no complete answer (BR-018). */
  end(done: boolean): ModelEvent[]
}

type Prose = 'text' | 'thinking' | 'refusal'

/** Turns what an OpenAI-like server says into events; one reader an answer. */
export function chatReader(origin: Origin, log: Log): ChatReader {
  let blocks = 0
  let started = false
  let prose: { kind: Prose; index: number } | undefined
  let finish: string | undefined
  let usage: { tokens: TokenCounts; value: JsonObject } | undefined
  /** Top-level members nobody here knows, as last seen: they are repeated in every chunk. */
  const seen: JsonObject = {}
  const calls = callReader(() => blocks++)
  const customs = new Map<number, { id: string; name: string; input: string }>()

  function say(kind: Prose, text: string | null | undefined, out: ModelEvent[]): void {
    if (!text) return
    if (prose?.kind !== kind) {
      endProse(out)
      prose = { kind, index: blocks++ }
      out.push({ type: 'open', index: prose.index, block: { kind } })
    }
    out.push({ type: 'delta', index: prose.index, text })
  }

  function endProse(out: ModelEvent[]): void {
    if (prose) out.push({ type: 'close', index: prose.index })
    prose = undefined
  }

  function readDelta(delta: ChatDelta, whole: boolean, out: ModelEvent[]): JsonObject | undefined {
    const { content, refusal, reasoning_content, reasoning, tool_calls } = delta
    say('thinking', reasoning_content || reasoning, out)
    if (typeof content === 'string') say('text', content, out)
    else for (const part of content ?? []) say(part.type, proseOf(part), out)
    say('refusal', refusal, out)
    for (const call of tool_calls ?? []) {
      endProse(out)
      if (call.type === 'custom' || call.custom) readCustom(call)
      else calls.fragment(call, whole, out)
    }
    return othersIn(delta, DELTA)
  }

  /** Custom tools exist on this wire only; such a call is passed on whole, when it is complete. */
  function readCustom({ index, id, custom }: ToolCallDelta): void {
    const at = index ?? customs.size
    const call = customs.get(at) ?? { id: '', name: '', input: '' }
    customs.set(at, {
      id: call.id || (id ?? ''),
      name: call.name || (custom?.name ?? ''),
      input: call.input + (custom?.input ?? ''),
    })
  }

  function readChoice(choice: ChatChoice, out: ModelEvent[]): void {
    const { index, delta, message, finish_reason } = choice
    if (index != null && index !== 0) throw brokenAnswer('unreadable', origin, new Error('more than one choice'))
    const inDelta = readDelta(message ?? delta ?? {}, message != null, out)
    if (finish_reason) finish = finish_reason
    const inChoice = othersIn(choice, CHOICE)
    if (inDelta === undefined && inChoice === undefined) return
    const shown = { index: 0, ...inChoice, ...(inDelta && { delta: inDelta }) }
    out.push({ type: 'extra', dialect: 'chat', value: { choices: [shown] } })
  }

  function readTop(chunk: ChatChunk, out: ModelEvent[]): void {
    const { id, created, model, choices } = chunk
    const news = newsIn(chunk)
    if (started) {
      if (news) out.push({ type: 'extra', dialect: 'chat', value: news })
    } else if (choices && choices.length > 0) {
      started = true
      out.push({
        type: 'start',
        id: id || undefined,
        created: created ?? undefined,
        model: model || undefined,
        extra: { ...seen },
      })
    }
  }

  /** Most vendors repeat these members in every chunk, so that the same again is no news. */
  function newsIn(chunk: ChatChunk): JsonObject | undefined {
    let news: JsonObject | undefined
    for (const [name, value] of Object.entries(othersIn(chunk, TOP) ?? {})) {
      if (seen[name] === value && Object.hasOwn(seen, name)) continue
      if (Object.hasOwn(seen, name) && JSON.stringify(seen[name]) === JSON.stringify(value)) continue
      seen[name] = value
      news ??= {}
      news[name] = value
    }
    return news
  }

  return {
    chunk(json) {
      const read = chatChunk.safeParse(json)
      if (read.data?.error) throw faultOfFrame(origin, json)
      if (!read.success) throw brokenAnswer('unreadable', origin, new Error('a chunk has an unexpected shape'))
      const out: ModelEvent[] = []
      readTop(read.data, out)
      for (const choice of read.data.choices ?? []) readChoice(choice, out)
      const counted = countedIn(read.data)
      if (counted) usage = counted
      return out
    },

    end(done) {
      if (!started) throw brokenAnswer('empty', origin)
      if (finish === undefined && blocks + customs.size === 0) throw brokenAnswer('empty', origin)
      if (finish === 'error' || (finish === undefined && !done)) throw brokenAnswer('cut', origin)
      const out: ModelEvent[] = []
      endProse(out)
      if (!calls.end(out)) throw brokenAnswer('nameless', origin)
      for (const { id, ...custom } of customs.values()) {
        const value: JsonObject = { id, type: 'custom', custom }
        const index = blocks++
        out.push({ type: 'open', index, block: { kind: 'other', dialect: 'chat', value } }, { type: 'close', index })
      }
      if (usage) out.push({ type: 'usage', tokens: usage.tokens, raw: { dialect: 'chat', value: usage.value } })
      const reason = finishReason(finish, calls.count() + customs.size > 0)
      if (reason === 'unknown')
        log.warn({ provider: origin.name, reason: finish?.slice(0, 64) }, 'a model ended for a reason unknown here')
      out.push({ type: 'finish', reason, raw: finish })
      return out
    },
  }
}

/** Members that are read here, or are nobody's to know. */
const TOP = new Set(['id', 'created', 'model', 'choices', 'object', 'usage', 'error', 'obfuscation', 'x_groq'])
const CHOICE = new Set(['index', 'delta', 'message', 'finish_reason', 'usage'])
const DELTA = new Set(['role', 'content', 'refusal', 'reasoning_content', 'reasoning', 'tool_calls'])

/** Other members with something in them: servers fill in null for everything they do not use. */
function othersIn(members: Record<string, unknown>, known: ReadonlySet<string>): JsonObject | undefined {
  let others: JsonObject | undefined
  for (const name of Object.keys(members)) {
    const value = members[name]
    if (value == null || known.has(name)) continue
    others ??= {}
    others[name] = value as Json
  }
  return others
}

type ContentPart = Exclude<NonNullable<ChatDelta['content']>, string>[number]

function proseOf(part: ContentPart): string {
  if (part.type === 'text') return part.text
  return typeof part.thinking === 'string' ? part.thinking : part.thinking.map(({ text }) => text ?? '').join('')
}

const REASONS: Record<string, FinishReason> = {
  stop: 'stop',
  length: 'length',
  tool_calls: 'tool_calls',
  function_call: 'tool_calls',
  content_filter: 'content_filter',
  // what compatible servers say instead
  eos: 'stop',
  end_turn: 'stop',
  stop_sequence: 'stop',
  max_tokens: 'length',
  model_length: 'length',
  tool_use: 'tool_calls',
}

/** A turn that holds a call ended for the call, whatever the server says, unless it was cut short (BR-023). */
export function finishReason(raw: string | undefined, called: boolean): FinishReason {
  const reason = raw === undefined ? 'stop' : Object.hasOwn(REASONS, raw) ? REASONS[raw]! : 'unknown'
  return called && (reason === 'stop' || reason === 'unknown') ? 'tool_calls' : reason
}
