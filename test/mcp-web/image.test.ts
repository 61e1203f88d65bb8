import { createHash } from 'node:crypto'
import { crc32, deflateSync } from 'node:zlib'
import { describe, expect, test } from 'vitest'
import { image } from './strict.ts'
import { SITE, serving, sharedWorld } from './world.ts'

const world = sharedWorld({ web: { maxImageBytes: 1_000_000 } })
const url = `${SITE}/chart.png?v=2`
const look = () => world().read(image, 'fetch_image', { url })

test('WM-50 WM-51 WM-56 an image that fits is a caption and the image, byte for byte', async () => {
  const bytes = png(16, 10)
  world().answering(serving('image/png', bytes))
  const { caption, data, mimeType } = await look()
  expect(caption).toBe(`Image from ${url}: PNG, 16x10 px`)
  expect(mimeType).toBe('image/png')
  expect(hash(Buffer.from(data, 'base64'))).toBe(hash(bytes))
})

test('WM-51 WM-55 a larger one is scaled, and its caption says so', async () => {
  world().answering(serving('image/png', png(3200, 1800)))
  expect((await look()).caption).toBe(`Image from ${url}: PNG, 3200x1800 px, scaled to 1568x882 for the model`)
})

describe('what is no image that is shown', () => {
  test.each([
    ['WM-52', 'text/html', '<!doctype html><p>x', /not an image: text\/html/],
    ['WM-52', 'image/png', '<!doctype html><p>x', /mislabelled|not an image/],
    ['WM-52', 'image/jpeg', png(4, 4), /mislabelled/],
    ['WM-52', 'image/svg+xml', '<svg xmlns="http://www.w3.org/2000/svg"/>', /SVG is not shown/],
    ['WM-53', 'image/png', Buffer.concat([png(4, 4), Buffer.alloc(1_000_001)]), /too large/],
  ])('%s %s is refused', async (_id, type, body, told) => {
    world().answering(serving(type, body))
    expect(await world().fails('fetch_image', { url })).toMatch(told)
  })

  test('WM-53 a declared size over the limit is refused before the body', async () => {
    world().answering(
      (_request, response) =>
        void response.writeHead(200, { 'content-type': 'image/png', 'content-length': '20000000' }).flushHeaders(),
    )
    expect(await world().fails('fetch_image', { url })).toMatch(/too large.*20000000 bytes/)
  })

  test('WM-54 too many pixels are told from the header', async () => {
    world().answering(serving('image/png', png(9_000, 9_000)))
    expect(await world().fails('fetch_image', { url })).toContain('more than 64 million pixels')
  })

  test('WM-57 another status is an error that names it', async () => {
    world().answering(serving('image/png', png(4, 4), 404))
    expect(await world().fails('fetch_image', { url })).toContain('status 404')
  })

  test('WM-26 nothing is told of where it was', async () => {
    const text = await world().fails('fetch_image', { url: 'http://10.0.0.5/chart.png' })
    expect(text).toBe('fetch_image failed: address not allowed: only public http and https URLs are fetched')
  })
})

const hash = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex')

/** A black PNG of one bit a pixel (PNG specification, 11.2). */
function png(width: number, height: number): Buffer {
  const header = Buffer.alloc(13)
  header.writeUInt32BE(width, 0)
  header.writeUInt32BE(height, 4)
  header[8] = 1
  const rows = Buffer.alloc(height * (1 + Math.ceil(width / 8)))
  const signature = Buffer.from('89504e470d0a1a0a', 'hex')
  return Buffer.concat([
    signature,
    chunk('IHDR', header),
    chunk('IDAT', deflateSync(rows)),
    chunk('IEND', Buffer.alloc(0)),
  ])
}

function chunk(type: string, data: Buffer): Buffer {
  const body = Buffer.concat([Buffer.from(type), data])
  const [length, check] = [Buffer.alloc(4), Buffer.alloc(4)]
  length.writeUInt32BE(data.length)
  check.writeUInt32BE(crc32(body))
  return Buffer.concat([length, body, check])
}
