import sharp from 'sharp'
import { describe, expect, test } from 'vitest'
import { animated, decoded, flat, getImage, halves, noise } from './image-world.ts'
import { serving, sharedWorld } from './world.ts'

const shared = sharedWorld()
const png = await flat(40, 30).png().toBuffer()
const jpeg = await flat(40, 30).jpeg().toBuffer()
const gif = await flat(40, 30).gif().toBuffer()
const webp = await flat(40, 30).webp().toBuffer()
const noisy = {
  png: await noise(200, 200).png().toBuffer(),
  jpeg: await noise(200, 200).jpeg().toBuffer(),
  webp: await noise(200, 200).webp().toBuffer(),
}

/** What comes of one body under one name. */
const take = (contentType: string | undefined, body: string | Uint8Array, input: Parameters<typeof getImage>[2] = {}) =>
  getImage(shared().answering(serving({ '/i': [contentType, body] })), 'http://site.test/i', input)

describe('WM-56 an image that fits is handed on byte for byte', () => {
  test.each([
    ['image/png', png, 'PNG', 'image/png'],
    ['image/jpeg', jpeg, 'JPEG', 'image/jpeg'],
    ['IMAGE/JPG; q=1', jpeg, 'JPEG', 'image/jpeg'],
    ['image/gif', gif, 'GIF', 'image/gif'],
    ['image/webp', webp, 'WEBP', 'image/webp'],
    [undefined, webp, 'WEBP', 'image/webp'],
    ['no type at all', png, 'PNG', 'image/png'],
  ] as const)('WM-50 WM-56 %s', async (contentType, body, format, mimeType) => {
    const image = await take(contentType, body)
    expect(image).toMatchObject({ status: 'ok', format, mimeType, width: 40, height: 30, bytes: body.length })
    expect(image).not.toHaveProperty('scaled')
    expect(decoded(image).bytes.equals(body)).toBe(true)
  })

  test('WM-55 at exactly the edge and the bytes that are allowed, and not one over', async () => {
    const input = { maxEdgePx: 40, maxEncodedBytes: png.length }
    expect(decoded(await take('image/png', png, input)).bytes.equals(png)).toBe(true)
    expect(await take('image/png', png, { ...input, maxEdgePx: 39 })).toMatchObject({
      scaled: { width: 39, height: 29 },
    })
    const lighter = await take('image/png', png, { ...input, maxEncodedBytes: png.length - 1 })
    expect(decoded(lighter).bytes.length).toBeLessThan(png.length)
  })

  test('with all its frames and its own turn', async () => {
    const moving = await animated('gif', 20, 10)
    expect(decoded(await take('image/gif', moving)).bytes.equals(moving)).toBe(true)
    const turned = await halves(40, 20).jpeg().withMetadata({ orientation: 6 }).toBuffer()
    expect(decoded(await take('image/jpeg', turned)).bytes.equals(turned)).toBe(true)
  })
})

describe('WM-55 an image that is too large is made smaller', () => {
  test.each([
    [4_000, 1_000, { width: 1_568, height: 392 }],
    [1_000, 3_001, { width: 522, height: 1_568 }],
    [3_000, 1, { width: 1_568, height: 1 }],
    [1_569, 1_569, { width: 1_568, height: 1_568 }],
  ])('WM-55 %d x %d keeps its shape', async (width, height, scaled) => {
    const image = await take('image/png', await flat(width, height).png().toBuffer())
    expect(image).toMatchObject({ width, height, scaled, mimeType: 'image/png' })
    expect(await decoded(image).sharp.metadata()).toMatchObject({ ...scaled, format: 'png' })
  })

  test('WM-55 by quality first, and by size when that is not enough', async () => {
    const body = await noise(900, 700).jpeg({ quality: 100 }).toBuffer()
    const quality = await take('image/jpeg', body, { maxEncodedBytes: Math.round(body.length * 0.6) })
    expect(quality).toMatchObject({ scaled: { width: 900, height: 700 }, mimeType: 'image/jpeg' })
    expect(decoded(quality).bytes.length).toBeLessThanOrEqual(body.length * 0.6)
    const size = await take('image/jpeg', body, { maxEncodedBytes: 20_000 })
    const { width = 0, height = 0 } = await decoded(size).sharp.metadata()
    expect(size).toMatchObject({ scaled: { width, height } })
    expect(decoded(size).bytes.length).toBeLessThanOrEqual(20_000)
    expect(width).toBeLessThan(900)
    expect(width / height).toBeCloseTo(9 / 7, 1)
  })

  test('WM-56 by its first frame', async () => {
    for (const format of ['gif', 'webp'] as const) {
      const image = await take(`image/${format}`, await animated(format, 100, 50), { maxEdgePx: 10 })
      expect(image, format).toMatchObject({ width: 100, height: 50, scaled: { width: 10, height: 5 } })
      const { dominant } = await decoded(image).sharp.stats()
      expect(dominant.r, format).toBeGreaterThan(200)
      expect(dominant.g + dominant.b, format).toBeLessThan(60)
    }
  })

  test('WM-56 upright', async () => {
    const turned = await halves(400, 200).jpeg().withMetadata({ orientation: 6 }).toBuffer()
    const image = await take('image/jpeg', turned, { maxEdgePx: 100 })
    expect(image).toMatchObject({ width: 400, height: 200, scaled: { width: 50, height: 100 } })
    const top = await decoded(image).sharp.extract({ left: 0, top: 0, width: 50, height: 40 }).png().toBuffer()
    const { dominant } = await sharp(top).stats()
    expect(dominant.r).toBeGreaterThan(200) // what was left is up after a quarter turn
    expect(await decoded(image).sharp.metadata()).not.toHaveProperty('orientation')
  })

  test('WM-56 transparent where it was', async () => {
    const clear = await flat(400, 200, '#ff000080').png().toBuffer()
    const image = await take('image/png', clear, { maxEdgePx: 100 })
    expect(await decoded(image).sharp.stats()).toMatchObject({ isOpaque: false })
    const heavy = await take('image/png', await noise(300, 300, 4).png().toBuffer(), { maxEncodedBytes: 30_000 })
    expect(heavy).toMatchObject({ mimeType: 'image/webp' })
    expect(await decoded(heavy).sharp.stats()).toMatchObject({ isOpaque: false })
    expect(decoded(heavy).bytes.length).toBeLessThanOrEqual(30_000)
  })

  test('and refused when nothing of it would fit', async () => {
    expect(await take('image/png', png, { maxEncodedBytes: 10 })).toMatchObject({ failure: 'too_large' })
  })
})

describe('WM-52 what is no image of the four', () => {
  const svg =
    '<?xml version="1.0"?>\n<!-- a --><!-- b -->\n<!DOCTYPE svg [<!ENTITY a "b">]><svg xmlns="http://www.w3.org/2000/svg"/>'
  test.each([
    ['mislabelled', 'image/png', jpeg],
    ['mislabelled', 'image/jpeg', png],
    ['mislabelled', 'image/gif', webp],
    ['mislabelled', 'image/webp', '<html>sorry'],
    ['mislabelled', 'image/png', ''],
    ['mislabelled', 'image/png', `${'<!---->'.repeat(600)}x`],
    ['not_an_image', undefined, '%PDF-1.7'],
    ['not_an_image', undefined, ''],
    ['not_an_image', 'text/html', '<html>'],
    ['not_an_image', 'application/octet-stream', png],
    ['not_an_image', 'image/avif', png],
    ['svg', 'image/svg+xml; charset=utf-8', svg],
    ['svg', undefined, svg],
    ['svg', 'image/png', svg],
    ['svg', undefined, '<svg:svg xmlns:svg="http://www.w3.org/2000/svg"/>'],
  ] as const)('WM-52 is %s: %s', async (imageProblem, contentType, body) =>
    expect(await take(contentType, body)).toMatchObject({ failure: 'unsupported_type', imageProblem, httpStatus: 200 }),
  )

  test('is told with what it was declared to be, before any of it is read', async () => {
    const world = shared().answering((_request, response) => {
      response.writeHead(200, { 'content-type': 'Video/MP4; codecs=x', 'content-length': 1_234_567 }).write('no end')
    })
    expect(await getImage(world, 'http://site.test/i')).toMatchObject({
      imageProblem: 'not_an_image',
      declared: { contentType: 'video/mp4', bytes: 1_234_567 },
    })
  })

  test.each([
    ['half a PNG', 'image/png', noisy.png.subarray(0, 5_000)],
    ['half a JPEG', 'image/jpeg', noisy.jpeg.subarray(0, 5_000)],
    ['half a WebP', 'image/webp', noisy.webp.subarray(0, 2_000)],
    ['a mark alone', 'image/gif', 'GIF89a'],
    ['a PNG of rubbish', 'image/png', Buffer.concat([png.subarray(0, 40), Buffer.alloc(500, 7)])],
  ])('WM-52 damaged: %s', async (_name, contentType, body) =>
    expect(await take(contentType, body)).toMatchObject({
      failure: 'extraction_failed',
      reason: 'damaged',
      imageProblem: 'damaged',
    }),
  )
})

describe('WM-53 the size of what is downloaded', () => {
  const rules = { maxBodyBytes: 1_000 }

  test('WM-53 is judged by its declaration, without a byte of it', async () => {
    const world = shared().answering((_request, response) => {
      response.writeHead(200, { 'content-type': 'image/png', 'content-length': 1_001 }).flushHeaders()
    })
    expect(await getImage(world, 'http://site.test/i', { rules })).toMatchObject({
      failure: 'too_large',
      declared: { contentType: 'image/png', bytes: 1_001 },
    })
  })

  test('WM-53 is judged as it comes: refused past the limit, never cut', async () => {
    const body = await noise(30, 30).png().toBuffer()
    const world = shared().answering((_request, response) => {
      response.writeHead(200, { 'content-type': 'image/png' })
      response.write(body)
      response.end(Buffer.alloc(10))
    })
    const exact = { rules: { maxBodyBytes: body.length + 10 } }
    expect(await getImage(world, 'http://site.test/i', exact)).toMatchObject({ status: 'ok' })
    const under = { rules: { maxBodyBytes: body.length + 9 } }
    expect(await getImage(world, 'http://site.test/i', under)).toMatchObject({ failure: 'too_large' })
  })
})

/** A PNG whose header says what it likes, and that holds nothing more. */
const pngOf = async (width: number, height: number): Promise<Buffer> => {
  const whole = await flat(1, 1).png().toBuffer()
  const header = Buffer.from(whole.subarray(12, 29))
  header.writeUInt32BE(width, 4)
  header.writeUInt32BE(height, 8)
  const { crc32 } = await import('node:zlib')
  const check = Buffer.alloc(4)
  check.writeUInt32BE(crc32(header))
  return Buffer.concat([whole.subarray(0, 12), header, check, whole.subarray(33)])
}

test('WM-54 more than 64 million pixels are refused from the header alone', async () => {
  for (const [width, height] of [
    [64_000_001, 1],
    [8_001, 8_000],
    [2_000_000_000, 2_000_000_000],
  ] as const) {
    const image = await take('image/png', await pngOf(width, height))
    expect(image, `${width} x ${height}`).toMatchObject({ failure: 'too_large', imageProblem: 'too_many_pixels' })
  }
  const allowed = await take('image/png', await flat(8_000, 8_000).png().toBuffer())
  expect(allowed).toMatchObject({ width: 8_000, height: 8_000, scaled: { width: 1_568, height: 1_568 } })
})

test.each([404, 403, 500, 204 + 96])('WM-57 a status of %d is told', async (httpStatus) => {
  const world = shared().answering(serving({ '/i': ['image/png', png, httpStatus] }))
  expect(await getImage(world, 'http://site.test/i')).toMatchObject({ failure: 'http_status', httpStatus })
})

test('WM-87 an image is judged like a page: a recorder on loopback is not connected to', async () => {
  const world = shared().answering((request, response) => {
    response.writeHead(302, { location: `http://127.0.0.1:${world.site.port}${request.url}` }).end()
  })
  expect(await getImage(world, 'http://site.test/i')).toMatchObject({ failure: 'redirect_disallowed' })
  expect(await getImage(world, `http://127.0.0.1:${world.site.port}/i`)).toMatchObject({ failure: 'url_disallowed' })
  expect(world.site.connections).toBe(1)
})

test('WM-27 images are asked for as images', async () => {
  await take('image/png', png)
  const [seen] = shared().site.requests
  expect(seen?.headers.accept).toMatch(/^image\/png, image\/jpeg/)
  expect(Object.keys(seen?.headers ?? {}).sort()).toEqual([
    'accept',
    'accept-encoding',
    'connection',
    'host',
    'user-agent',
  ])
})

test('BR-105 whatever comes, what a model is shown fits', async () => {
  const tall = await flat(1_100, 11_000).png().toBuffer()
  const wide = await flat(9_000, 7_000).jpeg().toBuffer()
  const dot = await flat(1, 1).png().toBuffer()
  const rich = await noise(1_200, 1_200, 4).png().toBuffer()
  for (const [type, body] of [
    ['image/png', tall],
    ['image/jpeg', wide],
    ['image/png', dot],
    ['image/png', rich],
  ] as const) {
    const image = await take(type, body)
    const { bytes, sharp: shown } = decoded(image)
    const { width, height, format } = await shown.metadata()
    expect(Math.max(width, height)).toBeLessThanOrEqual(1_568)
    expect(bytes.length).toBeLessThanOrEqual(3_000_000)
    expect(image).toMatchObject({ mimeType: `image/${format}` })
  }
  expect(await take('image/png', Buffer.concat([dot, Buffer.alloc(15_000_000)]))).toMatchObject({
    failure: 'too_large',
  })
  expect(await take('image/png', await pngOf(30_000, 30_000))).toMatchObject({ imageProblem: 'too_many_pixels' })
  expect(await take('image/avif', dot)).toMatchObject({ imageProblem: 'not_an_image' })
  expect(await take('image/png', '<html>Not found</html>')).toMatchObject({ imageProblem: 'mislabelled' })
})
