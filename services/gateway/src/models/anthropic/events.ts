import type { Log } from '@tollgate/telemetry'
import type { BlockStart, FinishReason, ModelEvent, Raw } from '../../conversation/events.ts'
import type { Json, JsonObject } from '../../conversation/turn.ts'
import { endingExtra, laterEnding, noEnding } from '../../dialects/messages/extras.ts'
import { brokenAnswer, type Origin } from '../upstream-fault.ts'
import { messagesUsageReader } from './usage.ts'
import type { Block, StreamEvent } from './wire.ts'

export interface MessagesReader {
  event(event: StreamEvent): ModelEvent[]
  /** The rest, when the stream is over. Throws when it was no complete answer. */
  end(): ModelEvent[]
}

interface OpenBlock {
  index: number
  start: BlockStart | undefined
  signature: string
  spoke: boolean
  citations: Json[]
  /** A block passed on whole: what it has become, and the JSON text of its input. */
  whole: { value: JsonObject; input: string }
}

/** Turns what a Messages API says into events; one reader an answer. */
export function messagesReader(origin: Origin, log: Log): MessagesReader {
  const open = new Map<number, OpenBlock>()
  const usage = messagesUsageReader()
  let blocks = 0
  let started = false
  let called = false
  let reason: string | undefined
  let ending = noEnding

  function begin({ message }: StreamEvent & { type: 'message_start' }): ModelEvent[] {
    started = true
    usage.read(message.usage)
    const { id, model } = message
    const counted = usage.total()
    return [
      {
        type: 'start',
        id: id || undefined,
        created: undefined,
        model: model || undefined,
        ...(counted && { tokens: counted.tokens }),
        raw: { dialect: 'messages', value: message as JsonObject },
      },
    ]
  }

  function start(at: number, block: Block): ModelEvent[] {
    const kind = startOf(block)
    called ||= kind?.kind === 'call'
    if (kind?.kind === 'call' && (!kind.id || !kind.name)) throw brokenAnswer('nameless', origin)
    const opened: OpenBlock = {
      index: blocks++,
      start: kind,
      signature: block.signature ?? '',
      spoke: false,
      citations: kind?.kind === 'text' && Array.isArray(block.citations) ? (block.citations as Json[]) : [],
      whole: { value: block as JsonObject, input: '' },
    }
    open.set(at, opened)
    if (!kind) return []
    const raw = ownMembers(block)
    const events: ModelEvent[] = [{ type: 'open', index: opened.index, block: kind, ...(raw && { raw }) }]
    return [...events, ...say(opened, textIn(block))]
  }

  function say(block: OpenBlock, text: string | null | undefined): ModelEvent[] {
    if (!text) return []
    block.spoke = true
    return [{ type: 'delta', index: block.index, text }]
  }

  function hear(at: number, { delta }: StreamEvent & { type: 'content_block_delta' }): ModelEvent[] {
    const block = open.get(at)
    if (!block) throw brokenAnswer('unreadable', origin, new Error('a delta of a block that is not open'))
    if (delta.type === 'signature_delta') block.signature += delta.signature ?? ''
    if (delta.type === 'citations_delta' && delta.citation != null) block.citations.push(delta.citation as Json)
    if (block.start) return say(block, delta.text ?? delta.thinking ?? delta.partial_json)
    grow(block, delta)
    return []
  }

  function close(at: number): ModelEvent[] {
    const block = open.get(at)
    if (!block) return []
    open.delete(at)
    const { index, start, signature } = block
    const events: ModelEvent[] = []
    if (!start)
      events.push({ type: 'open', index, block: { kind: 'other', dialect: 'messages', value: wholeOf(block) } })
    // a call without arguments has none in the stream at all (BR-024)
    if (start?.kind === 'call' && !block.spoke) events.push({ type: 'delta', index, text: '{}' })
    if (start?.kind === 'thinking' && signature) events.push({ type: 'signature', index, signature })
    for (const citation of block.citations)
      events.push({ type: 'extra', dialect: 'messages', value: { type: 'citation', citation } })
    return [...events, { type: 'close', index }]
  }

  function hearEnding({ delta, type: _t, usage: counted, ...beside }: StreamEvent & { type: 'message_delta' }): void {
    const { stop_reason, ...more } = delta
    reason = stop_reason ?? reason
    usage.read(counted)
    ending = laterEnding(ending, { delta: more as JsonObject, beside: beside as JsonObject })
  }

  return {
    event(event) {
      switch (event.type) {
        case 'message_start':
          return begin(event)
        case 'content_block_start':
          return start(event.index, event.content_block)
        case 'content_block_delta':
          return hear(event.index, event)
        case 'content_block_stop':
          return close(event.index)
        case 'message_delta':
          hearEnding(event)
          return []
        case 'message_stop':
          return []
        default:
          return event satisfies never
      }
    },

    end() {
      if (!started) throw brokenAnswer('empty', origin)
      if (reason === undefined) throw brokenAnswer('cut', origin)
      const events = Array.from(open.keys()).flatMap(close)
      if (Object.keys({ ...ending.delta, ...ending.beside }).length > 0)
        events.push({ type: 'extra', dialect: 'messages', value: endingExtra(ending) })
      const counted = usage.total()
      if (counted)
        events.push({ type: 'usage', tokens: counted.tokens, raw: { dialect: 'messages', value: counted.value } })
      const finish = finishReason(reason, called)
      if (finish === 'unknown')
        log.warn({ provider: origin.name, reason: reason.slice(0, 64) }, 'a model ended for a reason unknown here')
      return [...events, { type: 'finish', reason: finish, raw: reason }]
    },
  }
}

function startOf(block: Block): BlockStart | undefined {
  switch (block.type) {
    case 'text':
      return { kind: 'text' }
    case 'thinking':
      return { kind: 'thinking' }
    case 'redacted_thinking':
      return { kind: 'redacted_thinking', data: block.data ?? '' }
    case 'tool_use':
      return { kind: 'call', id: block.id ?? '', name: block.name ?? '' }
    default:
      return undefined // a block of this dialect's own: passed on whole, when it is
  }
}

/** Members of a block that the neutral form has no place for; undefined when it has only those every client knows. */
function ownMembers({ type: _t, id: _i, name: _n, text: _x, thinking: _h, ...rest }: Block): Raw | undefined {
  const { signature: _s, data: _d, input: _a, citations: _c, ...own } = rest
  const value = Object.fromEntries(Object.entries(own).filter(([, member]) => member != null)) as JsonObject
  return Object.keys(value).length > 0 ? { dialect: 'messages', value } : undefined
}

/** What a block starts with: nothing in a stream, everything in an answer that is not one. */
function textIn(block: Block): string {
  if (block.type !== 'tool_use') return block.text ?? block.thinking ?? ''
  const empty = block.input == null || (typeof block.input === 'object' && Object.keys(block.input).length === 0)
  return empty ? '' : JSON.stringify(block.input)
}

type Delta = (StreamEvent & { type: 'content_block_delta' })['delta']

/** The input of a block comes in pieces; of what else a delta says the latest stands. */
function grow({ whole }: OpenBlock, { type, partial_json, ...members }: Delta): void {
  if (type === 'input_json_delta') whole.input += partial_json ?? ''
  else whole.value = { ...whole.value, ...(members as JsonObject) }
}

function wholeOf({ whole: { value, input } }: OpenBlock): JsonObject {
  if (input === '') return value
  try {
    return { ...value, input: JSON.parse(input) as Json }
  } catch {
    return value // cut off in the middle of its input, which the finish reason tells
  }
}

const REASONS: Record<string, FinishReason> = {
  end_turn: 'stop',
  stop_sequence: 'stop',
  tool_use: 'tool_calls',
  max_tokens: 'length',
  model_context_window_exceeded: 'length',
  refusal: 'content_filter',
  pause_turn: 'pause',
}

/** BR-023, BR-026: an unknown reason stays unknown and is never a plain stop. */
export function finishReason(raw: string, called: boolean): FinishReason {
  const reason = Object.hasOwn(REASONS, raw) ? REASONS[raw]! : 'unknown'
  return called && reason === 'stop' ? 'tool_calls' : reason
}
