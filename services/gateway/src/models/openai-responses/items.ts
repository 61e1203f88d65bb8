import type { ModelEvent, Raw } from '../../conversation/events.ts'
import type { JsonObject } from '../../conversation/turn.ts'
import { reasoningSignature } from './reasoning.ts'
import { contentOf, type OutputItem, type StreamEvent } from './wire.ts'

/** One item of the output, as it comes. Whatever its events left out is taken from the finished item (BR-011). */
export interface ItemReader {
  hear(event: StreamEvent): ModelEvent[]
  end(item: OutputItem): ModelEvent[]
  /** A call whose arguments are the client's or the gateway's to act on. */
  calls: boolean
}

/** What reading the items of one answer has in common. */
export interface Reading {
  provider: string
  nextBlock(): number
  nameless(): Error
}

export function itemReader(item: OutputItem, reading: Reading): ItemReader {
  switch (item.type) {
    case 'message':
      return messageReader(item, reading)
    case 'function_call':
      return callReader(item, reading)
    case 'reasoning':
      return reasoningReader(item, reading)
    default:
      return ownReader(item, reading)
  }
}

const raw = (value: object): Raw => ({ dialect: 'responses', value: value as JsonObject })
const text = (value: unknown): string => (typeof value === 'string' ? value : '')

/** What is missing of `whole` after what was said; nothing where the two differ, since words cannot be taken back. */
const restOf = (whole: string, said: string): string => (whole.startsWith(said) ? whole.slice(said.length) : '')

function messageReader(item: OutputItem, { nextBlock }: Reading): ItemReader {
  const parts = new Map<number, { index: number; said: string; cited: number }>()
  let open: number | undefined

  function part(at: number, kind: 'text' | 'refusal', out: ModelEvent[]) {
    const known = parts.get(at)
    if (known) return known
    if (open !== undefined) out.push({ type: 'close', index: open })
    const begun = { index: nextBlock(), said: '', cited: 0 }
    parts.set(at, begun)
    open = begun.index
    out.push({ type: 'open', index: begun.index, block: { kind }, raw: raw({ ...item, content: [] }) })
    return begun
  }

  function say(at: number, kind: 'text' | 'refusal', words: string, out: ModelEvent[], whole = false): void {
    if (words === '') return
    const saying = part(at, kind, out)
    const more = whole ? restOf(words, saying.said) : words
    if (more === '' || saying.index !== open) return
    saying.said += more
    out.push({ type: 'delta', index: saying.index, text: more })
  }

  function cite(at: number, annotation: unknown, out: ModelEvent[]): void {
    const citing = part(at, 'text', out)
    if (citing.index !== open) return
    const value = { type: 'response.output_text.annotation.added', annotation_index: citing.cited++, annotation }
    out.push({ type: 'extra', dialect: 'responses', value: value as JsonObject })
  }

  return {
    calls: false,
    hear(event) {
      const out: ModelEvent[] = []
      const at = event.content_index ?? 0
      if (event.type === 'response.output_text.delta') say(at, 'text', event.delta ?? '', out)
      else if (event.type === 'response.refusal.delta') say(at, 'refusal', event.delta ?? '', out)
      else if (event.type === 'response.output_text.done') say(at, 'text', event.text ?? '', out, true)
      else if (event.type === 'response.refusal.done') say(at, 'refusal', event.refusal ?? '', out, true)
      else if (event.type === 'response.output_text.annotation.added') cite(at, event.annotation, out)
      return out
    },
    end(whole) {
      const out: ModelEvent[] = []
      for (const [at, { type, text: words, refusal, annotations }] of contentOf(whole.content).entries()) {
        if (type === 'output_text') say(at, 'text', words ?? '', out, true)
        if (type === 'refusal') say(at, 'refusal', refusal ?? '', out, true)
        for (const annotation of (annotations ?? []).slice(parts.get(at)?.cited ?? 0)) cite(at, annotation, out)
      }
      if (open !== undefined) out.push({ type: 'close', index: open, raw: raw(whole) })
      return out
    },
  }
}

function callReader(item: OutputItem, { nextBlock, nameless }: Reading): ItemReader {
  let index: number | undefined
  let said = ''
  let early = ''

  function say(words: string, out: ModelEvent[]): void {
    if (words === '') return
    if (index === undefined) {
      early += words
      return
    }
    said += words
    out.push({ type: 'delta', index, text: words })
  }

  function begin({ call_id, id, name }: OutputItem, out: ModelEvent[]): void {
    const called = text(call_id) || text(id)
    if (index !== undefined || called === '' || text(name) === '') return
    index = nextBlock()
    const block = { kind: 'call', id: called, name: text(name) } as const
    out.push({ type: 'open', index, block, raw: raw({ ...item, arguments: '' }) })
    say(early, out)
  }

  return {
    calls: true,
    hear(event) {
      const out: ModelEvent[] = []
      begin(item, out)
      if (event.type === 'response.function_call_arguments.delta') say(event.delta ?? '', out)
      if (event.type === 'response.function_call_arguments.done') say(restOf(event.arguments ?? '', said || early), out)
      return out
    },
    end(whole) {
      const out: ModelEvent[] = []
      begin({ ...item, ...whole }, out)
      if (index === undefined) throw nameless()
      say(restOf(text(whole.arguments), said), out)
      if (said === '') say('{}', out)
      out.push({ type: 'close', index, raw: raw({ ...whole, arguments: said }) })
      return out
    },
  }
}

/**
 * What the model thought, with the provider's own record of it as its signature. A record of nothing, as models without
 * one give it, is for clients of this dialect alone.
 */
function reasoningReader(item: OutputItem, { provider, nextBlock }: Reading): ItemReader {
  let index: number | undefined
  let said = ''
  let place = ''

  function begin(out: ModelEvent[]): number {
    if (index !== undefined) return index
    index = nextBlock()
    const { encrypted_content: _unfinished, ...head } = item
    out.push({ type: 'open', index, block: { kind: 'thinking' }, raw: raw({ ...head, summary: [] }) })
    return index
  }

  function say(words: string, at: string, out: ModelEvent[]): void {
    if (words === '') return
    const more = said !== '' && at !== place ? `\n\n${words}` : words
    place = at
    out.push({ type: 'delta', index: begin(out), text: more })
    said += more
  }

  return {
    calls: false,
    hear({ type, delta, summary_index, content_index }) {
      const out: ModelEvent[] = []
      if (type === 'response.reasoning_summary_text.delta') say(delta ?? '', `summary ${summary_index ?? 0}`, out)
      if (type === 'response.reasoning_text.delta') say(delta ?? '', `content ${content_index ?? 0}`, out)
      return out
    },
    end(whole) {
      const out: ModelEvent[] = []
      const summary = contentOf(whole.summary)
      const thoughts = summary.length > 0 ? summary : contentOf(whole.content)
      if (said === '') for (const [at, { text: words }] of thoughts.entries()) say(words ?? '', `${at}`, out)
      const encrypted = text(whole.encrypted_content)
      if (encrypted !== '') {
        const signature = reasoningSignature(provider, text(whole.id), encrypted)
        out.push({ type: 'signature', index: begin(out), signature })
      }
      if (index !== undefined) return [...out, { type: 'close', index, raw: raw(whole) }]
      return ownEnd(whole, nextBlock())
    },
  }
}

/** An item that only this dialect knows: its events go on as they come, and it is a block once it is whole. */
function ownReader(item: OutputItem, { nextBlock }: Reading): ItemReader {
  return {
    calls: item.type === 'custom_tool_call',
    hear({ sequence_number: _ours, ...event }) {
      return [{ type: 'extra', dialect: 'responses', value: { ...event, item_id: item.id ?? null } as JsonObject }]
    },
    end: (whole) => ownEnd(whole, nextBlock()),
  }
}

const ownEnd = (whole: OutputItem, index: number): ModelEvent[] => [
  { type: 'open', index, block: { kind: 'other', dialect: 'responses', value: whole as JsonObject } },
  { type: 'close', index },
]
