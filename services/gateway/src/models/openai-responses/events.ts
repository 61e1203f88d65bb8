import type { TokenCounts } from '@tollgate/contracts'
import type { Log } from '@tollgate/telemetry'
import type { FinishReason, ModelEvent } from '../../conversation/events.ts'
import type { JsonObject } from '../../conversation/turn.ts'
import { faultOfFrame } from '../upstream-errors.ts'
import { brokenAnswer, type Origin } from '../upstream-fault.ts'
import { type ItemReader, itemReader, type Reading } from './items.ts'
import { countedIn } from './usage.ts'
import type { OutputItem, ResponseObject, StreamEvent } from './wire.ts'

export interface ResponsesReader {
  /** Events of one event of a stream. Throws the fault that a failed response stands for. */
  event(event: StreamEvent): ModelEvent[]
  /** Events of a whole answer but for its end. */
  whole(response: ResponseObject): ModelEvent[]
  /** The rest, when the stream is over. Throws when it was no complete answer (BR-018). */
  end(): ModelEvent[]
}

/** Turns what a Responses API says into events; one reader an answer. */
export function responsesReader(origin: Origin, log: Log): ResponsesReader {
  const open = new Map<number, { head: OutputItem; reader: ItemReader }>()
  let blocks = 0
  let items = 0
  let started = false
  let called = false
  let ended: ResponseObject | undefined
  let usage: { tokens: TokenCounts; value: JsonObject } | undefined
  const reading: Reading = {
    provider: origin.name,
    nextBlock: () => blocks++,
    nameless: () => brokenAnswer('nameless', origin),
  }

  function begin({ id, created_at, model }: ResponseObject): ModelEvent[] {
    if (started) return []
    started = true
    const created = created_at ?? undefined
    return [{ type: 'start', id: id || undefined, created, model: model || undefined }]
  }

  function add(at: number, item: OutputItem): ItemReader {
    items = Math.max(items, at) + 1
    const reader = itemReader(item, reading)
    called ||= reader.calls
    open.set(at, { head: item, reader })
    return reader
  }

  function finish(at: number, item: OutputItem): ModelEvent[] {
    const reader = open.get(at)?.reader ?? add(at, item)
    open.delete(at)
    return reader.end(item)
  }

  /** The item that an event is about: by its place, else by its id. */
  function readerOf({ output_index: at, item_id: id }: StreamEvent): ItemReader | undefined {
    if (at != null) return open.get(at)?.reader
    return Array.from(open.values()).find(({ head }) => id != null && head.id === id)?.reader
  }

  function end(response: ResponseObject): ModelEvent[] {
    ended = response
    usage = countedIn(response.usage) ?? usage
    const { status, error } = response
    if (status === 'failed' || status === 'cancelled' || error != null)
      throw error ? faultOfFrame(origin, { error }) : brokenAnswer('cut', origin)
    // what was never said to be done is in the response all the same
    return Array.from(open).flatMap(([at, { head }]) => finish(at, response.output?.[at] ?? head))
  }

  return {
    event(event) {
      switch (event.type) {
        case 'response.created':
        case 'response.queued':
        case 'response.in_progress':
          return event.response ? begin(event.response) : []
        case 'response.output_item.added':
          if (!event.item) throw unreadable(origin, event)
          return add(event.output_index ?? items, event.item).hear(event)
        case 'response.output_item.done':
          if (!event.item) throw unreadable(origin, event)
          return finish(event.output_index ?? items, event.item)
        case 'response.completed':
        case 'response.incomplete':
        case 'response.failed':
          if (!event.response) throw unreadable(origin, event)
          return [...begin(event.response), ...end({ ...event.response, status: event.type.slice('response.'.length) })]
        case 'error':
          throw faultOfFrame(origin, event)
        default:
          return readerOf(event)?.hear(event) ?? []
      }
    },

    whole(response) {
      const said = begin(response)
      for (const [at, item] of (response.output ?? []).entries()) said.push(...finish(at, item))
      return [...said, ...end(response)]
    },

    end() {
      if (!started) throw brokenAnswer('empty', origin)
      if (ended === undefined) throw brokenAnswer('cut', origin)
      const { status, incomplete_details } = ended
      const why = status === 'incomplete' ? (incomplete_details?.reason ?? 'incomplete') : undefined
      const reason = finishReason(why, called)
      if (reason === 'unknown')
        log.warn({ provider: origin.name, reason: why?.slice(0, 64) }, 'a model ended for a reason unknown here')
      const events: ModelEvent[] = []
      if (usage) events.push({ type: 'usage', tokens: usage.tokens, raw: { dialect: 'responses', value: usage.value } })
      return [...events, { type: 'finish', reason, raw: why }]
    },
  }
}

const unreadable = (origin: Origin, { type }: StreamEvent) =>
  brokenAnswer('unreadable', origin, new Error(`a ${type.slice(0, 64)} of unexpected shape`))

/** `why`: what cut the answer short. A finished item is not the end of the turn, and a call is what it ended for (BR-012). */
export function finishReason(why: string | undefined, called: boolean): FinishReason {
  switch (why) {
    case undefined:
      return called ? 'tool_calls' : 'stop'
    case 'max_output_tokens':
    case 'max_tokens':
      return 'length'
    case 'content_filter':
      return 'content_filter'
    default:
      return 'unknown'
  }
}
