import type { RequestListener } from 'node:http'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { plainText, webpage, webpageWithAssets } from './strict.ts'
import { html, PUBLIC, paragraphs, SITE, serving, sharedWorld } from './world.ts'

const world = sharedWorld({ web: { maxPageBytes: 200_000, operationTimeoutMs: 1_000 } })
let pages = 0
let url = SITE

/** The site from now on, at an address that nobody has read before. */
function answering(answer: RequestListener): void {
  pages += 1
  url = `${SITE}/page-${pages}?q=1`
  world().answering(answer)
}

const fetchPage = (given: Record<string, unknown> = {}) => world().read(webpage, 'fetch_webpage', { url, ...given })
const article = html(
  `<nav><a href="/home">Home page</a> <a href="/news">All news</a></nav>
   <article><h1>Harbours of the coast</h1>${paragraphs(6)}</article>
   <footer>Imprint and cookies</footer>`,
  '<title> Harbours\n of the  coast </title>',
)

describe('WM-30 the result', () => {
  test('WM-30 of an article has exactly its members', async () => {
    answering(serving('text/html; charset=utf-8', article))
    expect(await fetchPage()).toMatchObject({
      url,
      final_url: url,
      status: 200,
      content_type: 'text/html',
      title: 'Harbours of the coast',
      format: 'text',
      extractor: 'trafilatura',
      truncated: false,
      offset: 0,
      next_offset: null,
      has_more: false,
      byte_cap_reached: false,
      likely_js_rendered: false,
    })
  })

  test.each([
    ['application/json', '{ "a":  [1,\n2] }'],
    ['text/csv', 'a;b\n1;2\n'],
    ['text/plain', 'A note.\n\n  Indented.'],
    ['text/markdown', '# Title\n\n* one'],
    ['application/xml', '<?xml version="1.0"?><a>1</a>'],
    ['application/problem+json', '{"title": "x"}'],
    ['image/svg+xml', '<svg xmlns="http://www.w3.org/2000/svg"/>'],
    ['TEXT/X-Log; charset=utf-8', 'line'],
  ])('WM-30 WM-36 WM-39 of %s is the text as it came', async (type, body) => {
    answering(serving(type, body))
    for (const format of ['text', 'markdown', 'html']) {
      expect(await fetchPage({ format })).toMatchObject({
        content_type: type.split(';')[0]?.toLowerCase(),
        title: null,
        format: 'text',
        extractor: 'none',
        text: body,
        likely_js_rendered: false,
      })
    }
  })

  test('WM-30 says where a request ended, and the URL as the caller gave it', async () => {
    answering((request, response) =>
      request.url === '/from'
        ? response.writeHead(302, { location: 'http://two.test/to' }).end()
        : response.writeHead(200, { 'content-type': 'text/plain' }).end('there'),
    )
    const given = ' HTTP://SITE.test/from '
    expect(await fetchPage({ url: given })).toMatchObject({
      url: given,
      final_url: 'http://two.test/to',
      text: 'there',
    })
  })

  test('WM-38 without a declared type the type is null, and what looks binary is refused', async () => {
    answering(serving(undefined, 'a plain note'))
    expect(await fetchPage()).toMatchObject({ content_type: null, text: 'a plain note' })
    answering(serving(undefined, Buffer.from('89504e470d0a1a0a0000000d49484452', 'hex')))
    expect(await world().fails('fetch_webpage', { url })).toContain('unsupported content type')
  })

  test('WM-40 a page with another status is a result with it', async () => {
    answering(serving('text/html', html('<p>Nothing here.</p>', '<title>Lost</title>'), 404))
    expect(await fetchPage()).toMatchObject({ status: 404, title: 'Lost' })
  })
})

describe('windows', () => {
  test('WM-31 count code points and split none', async () => {
    answering(serving('text/plain; charset=utf-8', '😀'.repeat(10)))
    expect(await fetchPage({ max_length: 3 })).toMatchObject({ text: '😀😀😀', next_offset: 3, total_chars: 10 })
    expect(await fetchPage({ max_length: 3, offset: 9 })).toMatchObject({ text: '😀', has_more: false })
  })

  test('WM-32 joined are the whole text, whatever their length', async () => {
    const whole = `${paragraphs(4)} é 👩‍👩‍👧 \u{10ffff} ende`
    answering(serving('text/plain; charset=utf-8', whole))
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 20, max: 900 }), async (max_length) => {
        let text = ''
        for (let offset: number | null = 0; offset !== null; ) {
          const part = await fetchPage({ max_length, offset })
          text += part.text
          offset = part.next_offset
        }
        expect(text).toBe(whole)
      }),
      { numRuns: 12 },
    )
  })

  test('WM-33 past the end is an error that says so, at the end an empty window', async () => {
    answering(serving('text/plain', 'x'.repeat(100)))
    expect(await fetchPage({ offset: 100 })).toMatchObject({ text: '', has_more: false, total_chars: 100 })
    const text = await world().fails('fetch_webpage', { url, offset: 101 })
    expect(text).toContain('offset is past the end of the text, which has 100 characters')
  })

  test('WM-42 a page over the byte limit is cut, and says so', async () => {
    answering(serving('text/plain', 'y'.repeat(300_000)))
    expect(await fetchPage({ max_length: 500_000 })).toMatchObject({
      byte_cap_reached: true,
      truncated: true,
      has_more: false,
      total_chars: 200_000,
    })
  })

  test('WM-30 a long page is handed over whole to whoever asks for all of it', async () => {
    const text = 'z'.repeat(150_000)
    answering(serving('text/plain', text))
    expect(await fetchPage({ max_length: 10_000_000 })).toMatchObject({ text, has_more: false })
  })
})

describe('conversion', () => {
  test('WM-34 the plain text is the built-in conversion of the whole page, windows included', async () => {
    answering(serving('text/html', article))
    const plain = await world().read(plainText, 'fetch_webpage', { url, structured: false })
    const { text, extractor } = await fetchPage()
    expect(extractor).toBe('trafilatura')
    expect(text).not.toContain('All news')
    expect(plain).toContain('All news')
    expect(plain).toContain('Imprint and cookies')
    const window = await world().read(plainText, 'fetch_webpage', { url, structured: false, offset: 5, max_length: 20 })
    expect(window).toBe(Array.from(plain).slice(5, 25).join(''))
  })

  test('WM-35 extract_text false is HTML, whatever the format', async () => {
    answering(serving('text/html', article))
    for (const format of [undefined, 'markdown', 'text', 'html']) {
      const page = await fetchPage({ extract_text: false, ...(format && { format }) })
      expect(page).toMatchObject({ format: 'html', extractor: 'none' })
      expect(page.text).toContain('<article>')
    }
  })

  test('WM-43 markdown keeps headings, and html is the page’s own', async () => {
    answering(serving('text/html', article))
    const markdown = await fetchPage({ format: 'markdown' })
    expect(markdown).toMatchObject({ format: 'markdown', extractor: 'trafilatura' })
    expect(markdown.text).toMatch(/^# Harbours of the coast$/m)
    expect((await fetchPage({ format: 'html' })).text).toBe(article)
  })

  test('WM-39 HTML served as plain text is converted', async () => {
    answering(serving('text/plain', article))
    expect(await fetchPage()).toMatchObject({ content_type: 'text/plain', title: 'Harbours of the coast' })
  })

  test('WM-48 a shell that scripts fill in is told, the same for every format', async () => {
    const shell = html('<div id="root"></div><script src="/app.js"></script>')
    answering(serving('text/html', shell))
    for (const format of ['text', 'markdown', 'html']) {
      expect(await fetchPage({ format })).toMatchObject({ likely_js_rendered: true })
    }
    answering(serving('text/html', html('<p>Short and static.</p>')))
    expect(await fetchPage()).toMatchObject({ likely_js_rendered: false })
  })
})

describe('encodings', () => {
  const cyrillic = Buffer.from('cff0e8e2e5f2', 'hex')

  test.each<[string, string, Buffer, string]>([
    ['a byte-order mark before the header', 'text/plain; charset=iso-8859-1', Buffer.from('\ufeffnaïve'), 'naïve'],
    ['the header before UTF-8', 'text/plain; charset=windows-1251', cyrillic, 'Привет'],
    ['an unknown label is passed over', 'text/plain; charset=klingon', Buffer.from('naïve'), 'naïve'],
    ['what cannot be decoded is replaced', 'text/plain', Buffer.from([0x61, 0xff, 0x62]), 'a\ufffdb'],
  ])('WM-41 %s', async (_rule, type, body, text) => {
    answering(serving(type, body))
    expect(await fetchPage()).toMatchObject({ text })
  })

  test('WM-41 a meta element says it where no header does', async () => {
    const [before, after] = html('<p>@</p>', '<meta charset="windows-1251">').split('@') as [string, string]
    answering(serving('text/html', Buffer.concat([Buffer.from(before), cyrillic, Buffer.from(after)])))
    expect((await fetchPage()).text.trim()).toBe('Привет')
  })

  test('WM-41 a character that the byte limit cuts is left out', async () => {
    answering(serving('text/plain', Buffer.from(`a${'é'.repeat(100_000)}`)))
    const page = await fetchPage({ max_length: 200_000 })
    expect(page).toMatchObject({ byte_cap_reached: true, total_chars: 100_000 })
    expect(page.text).not.toContain('\ufffd')
  })
})

test('WM-44 scripts, styles and templates are no text; blocks are apart and entities decoded', async () => {
  const hidden = '<script>var secret = 1</script><style>.secret{}</style><template><p>secret</p></template>'
  answering(
    serving('text/html', html(`${hidden}<h1>One</h1><p>Two   and\n three &amp; &eacute;</p><div>Four</div>${hidden}`)),
  )
  for (const format of ['text', 'markdown']) {
    const { text } = await fetchPage({ format })
    expect(text).not.toContain('secret')
    expect(text.split(/\n+/).map((line) => line.replace(/^# /, ''))).toEqual(['One', 'Two and three & é', 'Four'])
  }
})

describe('assets', () => {
  const many = html(
    [
      ...Array.from({ length: 31 }, (_, n) => `<img src="/i${n}.png" alt="I${n}" width="4">`),
      ...Array.from({ length: 101 }, (_, n) => `<a href="l${n}">L${n}</a>`),
      '<img src="data:image/png;base64,AAAA"><a href="javascript:void(0)">x</a>',
    ].join('\n'),
    '<base href="/deep/">',
  )

  test('WM-45 WM-46 are listed up to their limits, absolute, and nothing of them is downloaded', async () => {
    answering(serving('text/html', many))
    const page = await world().read(webpageWithAssets, 'fetch_webpage', { url, include_assets: true })
    expect(page.images).toHaveLength(30)
    expect(page.links).toHaveLength(100)
    expect(page.assets_truncated).toBe(true)
    expect(page.images[0]).toEqual({ url: `${SITE}/i0.png`, alt: 'I0', width: 4, height: null, source: 'img' })
    expect(page.links[0]).toEqual({ url: `${SITE}/deep/l0`, text: 'L0' })
    expect(world().site.requests).toHaveLength(1)
  })

  test('WM-46 of what is no HTML are empty', async () => {
    answering(serving('text/plain', 'see https://a.test/x.png'))
    const page = await world().read(webpageWithAssets, 'fetch_webpage', { url, include_assets: true })
    expect(page).toMatchObject({ images: [], links: [], assets_truncated: false })
  })

  test('WM-47 are absent when nobody asks', async () => {
    answering(serving('text/html', many))
    expect(Object.keys(await fetchPage({ include_assets: false }))).not.toContain('images')
  })
})

describe('what cannot be read', () => {
  test('WM-37 another type is refused from its head, with its name and size', async () => {
    answering(
      (_request, response) =>
        void response.writeHead(200, { 'content-type': 'application/pdf', 'content-length': '5000000' }).flushHeaders(),
    )
    expect(await world().fails('fetch_webpage', { url })).toMatch(/application\/pdf \(5000000 bytes\)/)
  })

  test.each<[string, string, RegExp]>([
    ['a name nobody knows', 'http://nowhere.test/secret-path', /could not resolve/],
    ['a private address', 'http://10.0.0.5/secret-path', /address not allowed/],
    ['metadata, spelled as a number', 'http://2852039166/secret-path', /address not allowed/],
    ['another scheme', 'ftp://site.test/secret-path', /address not allowed/],
    ['credentials', 'http://u:p@site.test/secret-path', /address not allowed/],
    ['a redirect to a private address', `${SITE}/to-private`, /address not allowed/],
    ['six redirects', `${SITE}/chain-6`, /too many redirects/],
    ['no TLS', 'https://site.test/secret-path', /TLS failure/],
    ['no answer', `${SITE}/silent`, /timed out waiting for the response/],
    ['an answer that stops', `${SITE}/stalls`, /timed out while reading the response/],
  ])('WM-26 %s is told without host, path or address', async (_what, from, told) => {
    answering((request, response) => {
      const { pathname } = new URL(request.url ?? '', SITE)
      const [, left] = /chain-(\d)/.exec(pathname) ?? []
      if (pathname === '/to-private') response.writeHead(302, { location: 'http://10.0.0.5/x' }).end()
      else if (left)
        response.writeHead(302, { location: Number(left) > 1 ? `/chain-${Number(left) - 1}` : '/end' }).end()
      else if (pathname === '/stalls') response.writeHead(200, { 'content-type': 'text/plain' }).write('begun')
      else if (pathname !== '/silent') response.end('ok')
    })
    const text = await world().fails('fetch_webpage', { url: from })
    expect(text).toMatch(told)
    for (const part of ['.test', 'secret-path', 'chain', '10.0.0', '169.254', PUBLIC, '2852039166', 'stalls']) {
      expect(text).not.toContain(part)
    }
    expect(text).not.toMatch(/\d+\.\d+\.\d+/)
  })

  test('WM-22 five redirects are followed', async () => {
    answering((request, response) => {
      const left = Number(request.url?.slice(1))
      if (left > 0) response.writeHead(302, { location: `/${left - 1}` }).end()
      else response.writeHead(200, { 'content-type': 'text/plain' }).end('arrived')
    })
    expect(await fetchPage({ url: `${SITE}/5` })).toMatchObject({ text: 'arrived', final_url: `${SITE}/0` })
  })
})
