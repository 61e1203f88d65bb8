import type { Readable } from 'node:stream'

/** A line of the answer that is longer than any the interpreter has reason to write. */
export class LineTooLong extends Error {
  override readonly name = 'LineTooLong'
}

/**
 * The lines of a stream, each decoded once all of its bytes are there: a character whose bytes come in two chunks stays
 * whole. What is not UTF-8 is replaced (CP-30).
 */
export async function* readLines(stream: Readable, maxLineBytes: number): AsyncGenerator<string> {
  const decoder = new TextDecoder()
  let parts: Uint8Array[] = []
  let held = 0
  const take = (end: Uint8Array): string => {
    const line = decoder.decode(Buffer.concat([...parts, end]))
    parts = []
    held = 0
    return line
  }
  for await (const chunk of stream as AsyncIterable<Uint8Array>) {
    let from = 0
    for (let at = chunk.indexOf(0x0a); at !== -1; at = chunk.indexOf(0x0a, from)) {
      yield take(chunk.subarray(from, at))
      from = at + 1
    }
    const rest = chunk.subarray(from)
    held += rest.length
    if (held > maxLineBytes) throw new LineTooLong(`a line has more than ${maxLineBytes} bytes`)
    if (rest.length > 0) parts.push(rest)
  }
  if (held > 0) yield take(new Uint8Array())
}
