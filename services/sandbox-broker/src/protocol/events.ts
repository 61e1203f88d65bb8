import type { Readable } from 'node:stream'

export interface ServerEvent {
  event: string
  data: string
}

/** More than this without the end of an event is none. */
export class EventTooLarge extends Error {
  override readonly name = 'EventTooLarge'
}

/**
 * Server-sent events as they come (WHATWG HTML, 9.2.6), of lines that end with LF or CRLF; comments, ids and retry times are
 * passed over.
 */
export async function* serverEvents(body: Readable, maxBytes: number): AsyncGenerator<ServerEvent> {
  let event = 'message'
  let data: string[] = []
  let held = 0
  for await (const line of linesOf(body, maxBytes)) {
    if (line === '') {
      if (data.length > 0) yield { event, data: data.join('\n') }
      event = 'message'
      data = []
      held = 0
      continue
    }
    const [, field, value = ''] = /^([^:]*)(?:: ?(.*))?$/s.exec(line) ?? []
    if (field === 'event') event = value
    if (field === 'data') data.push(value)
    held += line.length
    if (held > maxBytes) throw new EventTooLarge('an event without an end')
  }
}

async function* linesOf(body: Readable, maxBytes: number): AsyncGenerator<string> {
  const decoder = new TextDecoder()
  // what is there of a line is joined once, when its end is there
  let begun: string[] = []
  let held = 0
  for await (const piece of body as AsyncIterable<Uint8Array>) {
    const [first = '', ...more] = decoder.decode(piece, { stream: true }).split('\n')
    begun.push(first)
    held += first.length
    for (const next of more) {
      const line = begun.join('')
      begun = [next]
      held = next.length
      yield line.endsWith('\r') ? line.slice(0, -1) : line
    }
    if (held > maxBytes) throw new EventTooLarge('a line without an end')
  }
}
