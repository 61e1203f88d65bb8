import { randomBytes } from 'node:crypto'
import { z } from 'zod'
import type { ModelEvent } from '../../conversation/events.ts'
import { type Tell, tellAll } from '../../conversation/tell.ts'
import type { JsonObject } from '../../conversation/turn.ts'
import { SERVER_TOOL_ID } from '../../dialects/messages/echo.ts'
import { type Cited, citedPieces } from '../cited-pieces.ts'

const searchCall = z.object({
  type: z.literal('web_search_call'),
  action: z
    .object({
      query: z.string().optional().catch(undefined),
      queries: z.array(z.string()).optional().catch(undefined),
      sources: z
        .array(z.object({ url: z.string() }))
        .optional()
        .catch(undefined),
    })
    .optional()
    .catch(undefined),
})
type SearchCall = z.output<typeof searchCall>

const pageCitation = z.object({
  annotation: z.object({
    type: z.literal('url_citation'),
    url: z.string(),
    title: z.string().nullish(),
    start_index: z.int(),
    end_index: z.int(),
  }),
})

interface HeldText {
  open: ModelEvent & { type: 'open' }
  text: string
  cited: Cited[]
}

/**
 * Searches that the provider made by itself, in the blocks in which a Messages client knows them (BR-048). What a search
 * found is known from what the text behind it cites, so that such a text waits until it is whole; it then comes in pieces,
 * each with the pages it rests on. Everything else passes at once.
 */
export function searchBlocks(tell: Tell<ModelEvent>): Tell<ModelEvent> {
  const numbers = new Map<number, number>()
  let blocks = 0
  let searched = false
  let waiting: { call: SearchCall; item: JsonObject }[] = []
  const skipped = new Set<number>()
  let held: HeldText | undefined

  function number(index: number): number {
    const known = numbers.get(index) ?? blocks++
    numbers.set(index, known)
    return known
  }

  function* whole(value: JsonObject, item?: JsonObject): Generator<ModelEvent> {
    const index = blocks++
    yield { type: 'open', index, block: { kind: 'other', dialect: 'messages', value } }
    yield { type: 'close', index, ...(item && { raw: { dialect: 'responses' as const, value: item } }) }
  }

  /** Pages that nobody says the search of are the last one's. */
  function* pairs(cited: readonly Cited[]): Generator<ModelEvent> {
    const searches = waiting
    waiting = []
    for (const [at, { call, item }] of searches.entries()) {
      const id = SERVER_TOOL_ID + randomBytes(16).toString('hex')
      const { query, queries, sources = [] } = call.action ?? {}
      yield* whole({ type: 'server_tool_use', id, name: 'web_search', input: { query: query ?? queries?.[0] ?? '' } })
      const titles = new Map(at === searches.length - 1 ? cited.map(({ url, title }) => [url, title]) : [])
      for (const { url } of sources) titles.set(url, titles.get(url) ?? '')
      const found = Array.from(titles, ([url, title]) => ({
        type: 'web_search_result',
        url,
        title: title || url,
        encrypted_content: '',
      }))
      yield* whole({ type: 'web_search_tool_result', tool_use_id: id, content: found }, item)
    }
  }

  function* pieces({ open, text, cited }: HeldText, close: ModelEvent & { type: 'close' }): Generator<ModelEvent> {
    const all = citedPieces(text, cited)
    for (const [at, piece] of all.entries()) {
      const index = blocks++
      yield { ...open, index }
      yield { type: 'delta', index, text: piece.text }
      for (const { url, title } of piece.cited) yield citationOf(url, title)
      yield at === all.length - 1 ? { ...close, index } : { type: 'close', index }
    }
  }

  function* blocksOf(event: ModelEvent): Generator<ModelEvent> {
    switch (event.type) {
      case 'open': {
        const { block } = event
        const call = block.kind === 'other' ? searchCall.safeParse(block.value).data : undefined
        if (call !== undefined && block.kind === 'other') {
          searched = true
          waiting.push({ call, item: block.value })
          skipped.add(event.index)
        } else if (block.kind === 'text' && searched) held = { open: event, text: '', cited: [] }
        else {
          // thoughts between two searches are no reason to tell of the first without what it found
          if (block.kind === 'call') yield* pairs([])
          yield { ...event, index: number(event.index) }
        }
        break
      }
      case 'delta':
        if (held?.open.index === event.index) held.text += event.text
        else yield { ...event, index: number(event.index) }
        break
      case 'signature':
        yield { ...event, index: number(event.index) }
        break
      case 'close':
        if (skipped.has(event.index)) break
        if (held?.open.index !== event.index) yield { ...event, index: number(event.index) }
        else {
          yield* pairs(held.cited)
          yield* pieces(held, event)
          held = undefined
        }
        break
      case 'extra': {
        const cited = pageCitation.safeParse(event.value).data?.annotation
        if (cited === undefined) yield event
        else if (held === undefined) yield citationOf(cited.url, cited.title ?? '')
        else {
          const { url, title, start_index: start, end_index: end } = cited
          held.cited.push({ url, title: title ?? '', start, end })
        }
        break
      }
      case 'usage':
      case 'finish':
        yield* pairs([])
        yield event
        break
      default:
        yield event
    }
  }

  return (event) => tellAll(blocksOf(event), tell)
}

/** Of what stands on the page the provider tells nothing. */
const citationOf = (url: string, title: string): ModelEvent => ({
  type: 'extra',
  dialect: 'messages',
  value: {
    type: 'citation',
    citation: { type: 'web_search_result_location', url, title: title || url, cited_text: '', encrypted_index: '' },
  },
})
