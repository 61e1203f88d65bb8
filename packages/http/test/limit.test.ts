import { Readable } from 'node:stream'
import * as zlib from 'node:zlib'
import { describe, expect, test } from 'vitest'
import { parseCodings, readLimited, UnsupportedEncoding } from '../src/index.ts'

const text = Buffer.from('a page of text, again and again. '.repeat(2_000))
const limit = 1024 * 1024
const inChunks = (bytes: Uint8Array, size = 1_000): Readable => {
  const chunks = []
  for (let at = 0; at < bytes.length; at += size) chunks.push(bytes.subarray(at, at + size))
  return Readable.from(chunks)
}

describe('content codings', () => {
  test.each([
    ['gzip', zlib.gzipSync(text)],
    ['x-gzip', zlib.gzipSync(text)],
    ['deflate', zlib.deflateSync(text)],
    ['deflate', zlib.deflateRawSync(text)],
    ['br', zlib.brotliCompressSync(text)],
    ['deflate, gzip', zlib.gzipSync(zlib.deflateSync(text))],
    ['gzip, deflate', zlib.deflateRawSync(zlib.gzipSync(text))],
    ['', text],
    ['utf-8', text],
    ['identity', text],
  ])('%s is undone, in whatever pieces it comes', async (header, encoded) => {
    for (const size of [1, 7, 1_000, encoded.length]) {
      const { bytes, truncated } = await readLimited(inChunks(encoded, size), parseCodings(header), limit)
      expect(Buffer.from(bytes).equals(text)).toBe(true)
      expect(truncated).toBe(false)
    }
  })

  test('an empty body under a coding is an empty body', async () => {
    for (const header of ['gzip', 'deflate', 'br']) {
      expect((await readLimited(Readable.from([]), parseCodings(header), limit)).bytes.length, header).toBe(0)
    }
  })

  test.each([
    ['gzip', zlib.gzipSync(text).subarray(0, 60)],
    ['gzip', text],
    ['br', text],
    ['deflate', Buffer.from('xnot deflate at all')],
  ])('a broken %s body is an error', async (header, encoded) => {
    await expect(readLimited(inChunks(encoded), parseCodings(header), limit)).rejects.toThrow()
  })

  test('more layers than two, and codings nobody here knows, are refused', async () => {
    await expect(readLimited(inChunks(text), ['gzip', 'gzip', 'gzip'], limit)).rejects.toThrow(UnsupportedEncoding)
    await expect(readLimited(inChunks(text), parseCodings('compress'), limit)).rejects.toThrow(UnsupportedEncoding)
  })

  test('an error of the network reaches the reader through a decoder', async () => {
    const broken = new Readable({ read() {} })
    broken.push(zlib.gzipSync(text).subarray(0, 40))
    const reading = readLimited(broken, ['gzip'], limit)
    broken.destroy(new Error('connection reset'))
    await expect(reading).rejects.toThrow('connection reset')
  })
})

describe('F-23 the decoded size', () => {
  test('is exact at the limit and cut one byte above it', async () => {
    for (const [size, truncated] of [
      [limit - 1, false],
      [limit, false],
      [limit + 1, true],
    ] as const) {
      for (const coding of ['', 'gzip']) {
        const plain = Buffer.alloc(size, 'x')
        const body = await readLimited(
          inChunks(coding ? zlib.gzipSync(plain) : plain, 60_000),
          parseCodings(coding),
          limit,
        )
        expect(body.truncated).toBe(truncated)
        expect(body.bytes.length).toBe(Math.min(size, limit))
      }
    }
  })

  test('a bomb of 200 MiB costs the limit and not more', async () => {
    const bomb = zlib.gzipSync(Buffer.alloc(200 * 1024 * 1024))
    const before = process.memoryUsage.rss()
    const body = await readLimited(inChunks(bomb, 16_384), ['gzip'], limit)
    expect(body).toMatchObject({ truncated: true, bytes: { length: limit } })
    expect(process.memoryUsage.rss() - before).toBeLessThan(64 * 1024 * 1024)
  })

  test('a bomb that unpacks to nothing is stopped by the size of what it unpacks to on the way', async () => {
    const emptyBlocks = Buffer.concat([zlib.gzipSync(Buffer.alloc(0)).subarray(0, 10), Buffer.alloc(40 * 1024 * 1024)])
    for (let at = 10; at < emptyBlocks.length; at += 5)
      emptyBlocks.set([0, 0, 0, 255, 255].slice(0, emptyBlocks.length - at), at)
    const body = await readLimited(inChunks(zlib.gzipSync(emptyBlocks), 16_384), ['gzip', 'gzip'], limit)
    expect(body).toEqual({ truncated: true, bytes: new Uint8Array(0) })
  })

  test('what lies beyond the limit is not asked for', async () => {
    let given = 0
    const endless = new Readable({
      read() {
        given += 16_384
        this.push(Buffer.alloc(16_384))
      },
    })
    await readLimited(endless, [], 100_000)
    expect(endless.destroyed).toBe(true)
    expect(given).toBeLessThan(400_000)
  })
})
