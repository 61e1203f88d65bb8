import { pipeline, type Readable, Transform } from 'node:stream'
import * as zlib from 'node:zlib'

export interface LimitedBody {
  bytes: Uint8Array
  /** More was there than `maxBytes`. */
  truncated: boolean
}

/** The coding is known but cannot be undone here, or there are more layers than any server has reason to send. */
export class UnsupportedEncoding extends Error {
  override readonly name = 'UnsupportedEncoding'
}

const MAX_CODINGS = 2
/** Incompressible data grows a little when it is compressed. */
const RAW_SLACK_BYTES = 64 * 1024
const CHUNK_BYTES = 64 * 1024

/**
 * Reads a body, undoing its content codings, until `maxBytes` of decoded data are there; the rest is neither read nor
 * unpacked (F-23). Every layer is bounded, so a bomb inside a bomb costs no more than a plain one. `onChunk` is told of
 * each piece that arrives.
 */
export async function readLimited(
  body: Readable,
  codings: string[],
  maxBytes: number,
  onChunk: () => void = () => {},
): Promise<LimitedBody> {
  const layers = [...codings].reverse()
  if (layers.length > MAX_CODINGS || layers.some((coding) => !canDecode(coding))) {
    body.destroy()
    throw new UnsupportedEncoding('content coding')
  }
  let stream = body
  for (const [at, coding] of layers.entries()) {
    const counted = pipe(stream, stopAt(maxBytes + RAW_SLACK_BYTES, at === 0 ? onChunk : undefined))
    const first = await peek(counted)
    if (first === undefined) return { bytes: new Uint8Array(0), truncated: false }
    stream = pipe(counted, decoder(coding, first))
  }
  return collect(stream, maxBytes, layers.length === 0 ? onChunk : undefined)
}

async function collect(stream: Readable, maxBytes: number, onChunk?: () => void): Promise<LimitedBody> {
  const chunks: Uint8Array[] = []
  let size = 0
  try {
    for await (const chunk of stream as AsyncIterable<Uint8Array>) {
      onChunk?.()
      const room = maxBytes - size
      if (chunk.length > room) {
        chunks.push(chunk.subarray(0, room))
        return { bytes: join(chunks, maxBytes), truncated: true }
      }
      chunks.push(chunk)
      size += chunk.length
    }
  } catch (thrown) {
    if (thrown instanceof Overflow) return { bytes: join(chunks, size), truncated: true }
    throw thrown
  }
  return { bytes: join(chunks, size), truncated: false }
}

/** A copy of its own memory, so that it can be handed to another thread. */
function join(chunks: Uint8Array[], size: number): Uint8Array {
  const whole = new Uint8Array(size)
  let offset = 0
  for (const chunk of chunks) {
    whole.set(chunk, offset)
    offset += chunk.length
  }
  return whole
}

class Overflow extends Error {}

function stopAt(maxBytes: number, onChunk?: () => void): Transform {
  let seen = 0
  return new Transform({
    transform(chunk: Uint8Array, _encoding, done) {
      onChunk?.()
      seen += chunk.length
      done(seen > maxBytes ? new Overflow('the encoded body is larger than the limit') : null, chunk)
    },
  })
}

/** Ends of both streams follow each other; an error of the first is thrown by whoever reads the second. */
function pipe<T extends Transform>(from: Readable, to: T): T {
  pipeline(from, to, () => {}) // the reader of `to` sees the error
  return to
}

const options = { chunkSize: CHUNK_BYTES }

/** `deflate` means zlib's format (RFC 9110 8.4.1.2), yet some servers send it without the header. */
function decoder(coding: string, firstByte: number): Transform {
  switch (coding) {
    case 'gzip':
    case 'x-gzip':
      return zlib.createGunzip(options)
    case 'deflate':
      return (firstByte & 0x0f) === 8 ? zlib.createInflate(options) : zlib.createInflateRaw(options)
    case 'br':
      return zlib.createBrotliDecompress(options)
    default:
      return zstd()
  }
}

/** Node has zstd from 22.15 on; the types are those of 20. */
const createZstd: unknown = Reflect.get(zlib, 'createZstdDecompress')

/** A frame may ask for a window of 128 MiB; RFC 9659 allows 8 MiB, and so does this (`ZSTD_d_windowLogMax` is 100). */
const zstdOptions = { ...options, params: { 100: 23 } }

function zstd(): Transform {
  if (typeof createZstd !== 'function') throw new UnsupportedEncoding('zstd is not available')
  return createZstd(zstdOptions) as Transform
}

const canDecode = (coding: string): boolean =>
  ['gzip', 'x-gzip', 'deflate', 'br'].includes(coding) || (coding === 'zstd' && typeof createZstd === 'function')

/** The first byte of a stream, left in it; undefined when it ends without one. */
function peek(source: Readable): Promise<number | undefined> {
  return new Promise((settle, reject) => {
    const look = () => {
      const chunk: Uint8Array | null = source.read()
      if (chunk === null) return
      source.unshift(chunk)
      stop(() => settle(chunk[0]))
    }
    const ended = () => stop(() => settle(undefined))
    const failed = (error: Error) => stop(() => reject(error))
    const stop = (act: () => void) => {
      source.off('readable', look).off('end', ended).off('error', failed)
      act()
    }
    source.on('readable', look).once('end', ended).once('error', failed)
  })
}

/** `Content-Encoding`, outermost last; tokens that name no coding at all (`utf-8`, `none`) are the mistakes they look like. */
export function parseCodings(header: string | undefined): string[] {
  return (header ?? '')
    .toLowerCase()
    .split(',')
    .map((token) => token.trim())
    .filter((token) => knownCodings.has(token))
}

const knownCodings = new Set(['gzip', 'x-gzip', 'deflate', 'br', 'zstd', 'compress', 'x-compress', 'exi', 'dcb', 'dcz'])
