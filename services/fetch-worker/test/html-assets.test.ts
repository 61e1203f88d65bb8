import { expect, test } from 'vitest'
import { read } from './reading.ts'

const assetsOf = async (html: string, contentType = 'text/html') => {
  const result = await read(html, contentType, { assets: true })
  if (result.status === 'failed') throw new Error(`not read: ${result.failure}`)
  return result.assets
}
const times = (count: number, make: (at: number) => string) =>
  Array.from({ length: count }, (_, at) => make(at)).join('')

test('WM-45 of 31 images and 101 links 30 and 100 are listed, and it is said', async () => {
  const images = (count: number) => times(count, (at) => `<img src="/i${at}.png">`)
  const links = (count: number) => times(count, (at) => `<a href="/l${at}">link ${at}</a>`)
  const both = await assetsOf(images(31) + links(101))
  expect(both?.images).toHaveLength(30)
  expect(both?.links).toHaveLength(100)
  expect(both?.truncated).toBe(true)
  expect(both?.links[99]).toEqual({ url: 'https://ex.test/l99', text: 'link 99' })
  expect((await assetsOf(images(30) + links(100)))?.truncated).toBe(false)
  expect((await assetsOf(images(31)))?.truncated).toBe(true)
  expect((await assetsOf(links(101)))?.truncated).toBe(true)
})

test('WM-45 pictures are those shown, then those named for others, all absolute against the base', async () => {
  const page = `<head><base href="/deep/"><meta property="og:image" content="og.png"><meta name="twitter:image" content="//cdn.test/tw.png">
    <link rel="shortcut icon" href="/favicon.ico"><link rel="apple-touch-icon" href="touch.png"><link rel="stylesheet" href="x.css"></head>
    <nav><a href="up"> Up <b>there</b> </a></nav><p><img src="a.png" alt=" A  picture " width="640" height="480px"><img data-src="lazy.png" src="data:image/gif;base64,R0" width="100%">`
  expect(await assetsOf(page)).toEqual({
    images: [
      { url: 'https://ex.test/deep/a.png', alt: 'A picture', width: 640, height: 480, source: 'img' },
      { url: 'https://ex.test/deep/lazy.png', alt: '', width: null, height: null, source: 'img' },
      { url: 'https://ex.test/deep/og.png', alt: '', width: null, height: null, source: 'og:image' },
      { url: 'https://cdn.test/tw.png', alt: '', width: null, height: null, source: 'twitter:image' },
      { url: 'https://ex.test/favicon.ico', alt: '', width: null, height: null, source: 'icon' },
      { url: 'https://ex.test/deep/touch.png', alt: '', width: null, height: null, source: 'icon' },
    ],
    links: [{ url: 'https://ex.test/deep/up', text: 'Up there' }],
    truncated: false,
  })
})

test('WM-46 only http and https are listed, of the same URL the first, and nothing of what is no HTML', async () => {
  const page =
    '<meta property="og:image" content="/a.png"><img src="data:image/png;base64,AA" alt="d"><img src="/a.png" alt="first"><img src="/a.png" alt="second">' +
    '<a href="javascript:x()">j</a><a href="mailto:a@b.c">m</a><a>none</a><a href="/l">one</a><a href="/l">two</a><a href="/empty"></a>'
  expect(await assetsOf(page)).toEqual({
    images: [{ url: 'https://ex.test/a.png', alt: 'first', width: null, height: null, source: 'img' }],
    links: [
      { url: 'https://ex.test/l', text: 'one' },
      { url: 'https://ex.test/empty', text: '' },
    ],
    truncated: false,
  })
  const none = { images: [], links: [], truncated: false }
  expect(await assetsOf('{"image": "https://ex.test/a.png"}', 'application/json')).toEqual(none)
  expect(await assetsOf('<rss><channel><title>t</title></channel></rss>', 'application/rss+xml')).toEqual(none)
  expect(await assetsOf('', 'text/html')).toEqual(none)
})

test('WM-47 nothing is listed unless it is asked for, in any format', async () => {
  for (const format of ['text', 'markdown', 'html'] as const) {
    expect(await read('<p>Text <img src="/a.png">', 'text/html', { format })).not.toHaveProperty('assets')
    expect(await read('<p>Text <img src="/a.png">', 'text/html', { format, assets: true })).toHaveProperty('assets')
  }
})
