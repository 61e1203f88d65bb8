import { addAbortSignal, Readable } from 'node:stream'

/** The content in pieces of one size, the last one shorter; ends with an error as soon as the signal fires, even between two chunks. */
export async function* pieces(
  content: AsyncIterable<Uint8Array>,
  size: number,
  signal: AbortSignal | undefined,
): AsyncGenerator<Buffer> {
  const source = Readable.from(content, { objectMode: false })
  if (signal) addAbortSignal(signal, source)
  let held: Buffer[] = []
  let bytes = 0
  for await (const chunk of source as AsyncIterable<Buffer>) {
    held.push(chunk)
    bytes += chunk.length
    if (bytes < size) continue
    const whole = Buffer.concat(held)
    let at = 0
    for (; whole.length - at >= size; at += size) yield whole.subarray(at, at + size)
    // a copy: what is left must not keep the whole in memory
    held = at < whole.length ? [Buffer.from(whole.subarray(at))] : []
    bytes = whole.length - at
  }
  if (bytes > 0) yield Buffer.concat(held)
}
