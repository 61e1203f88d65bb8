import { describe, expect, test } from 'vitest'
import { notices } from '../src/extract/notices.ts'
import { read, textFrom } from './reading.ts'

const HTML = 'text/html; charset=utf-8'
const prose = (about: string, count: number) =>
  Array.from(
    { length: count },
    (_, at) =>
      `<p>Paragraph ${at} about ${about} tells in some words what there is to be known of it, who found it out, and why it matters to those who live there.</p>`,
  ).join('')

/** A page with a menu, an article with a table, a sidebar and a footer. */
const page = `<!doctype html><html lang="en"><head><title>Rivers | Site</title><style>p{}</style></head><body>
<header><nav><ul>${Array.from({ length: 12 }, (_, at) => `<li><a href="/n${at}">Section ${at}</a></li>`).join('')}</ul></nav></header>
<main><article><h1>Rivers</h1>${prose('rivers', 6)}
<table><tr><th>River</th><th>Length</th></tr><tr><td>Rhine</td><td>1233 km</td></tr><tr><td>Elbe</td><td>1094 km</td></tr></table>
<ul><li>One <a href="/item">item</a></li><li>Another</li></ul>${prose('springs', 4)}</article></main>
<aside class="sidebar"><h2>Most read</h2><ul>${Array.from({ length: 8 }, (_, at) => `<li><a href="/m${at}">Other story ${at}</a></li>`).join('')}</ul></aside>
<footer><p>© 2024 Site. All rights reserved.</p><a href="/privacy">Privacy policy</a></footer>
<script>let hidden = 1</script><template><p>templated</p></template></body></html>`

describe('WM-43 a page in three formats', () => {
  test('main content as Markdown, with its heading, list, link and table, and nothing around it', async () => {
    const result = await read(page, HTML)
    expect(result).toMatchObject({ format: 'markdown', extractor: 'main' })
    const text = await textFrom(page)
    expect(text).toContain('| River | Length |\n| --- | --- |\n| Rhine | 1233 km |\n| Elbe | 1094 km |')
    expect(text).toContain('- One [item](https://ex.test/item)\n- Another')
    for (let at = 0; at < 6; at++) expect(text).toContain(`Paragraph ${at} about rivers`)
    for (let at = 0; at < 4; at++) expect(text).toContain(`Paragraph ${at} about springs`)
    for (const other of ['Section 1', 'Most read', 'Other story', 'rights reserved', 'Privacy'])
      expect(text, other).not.toContain(other)
  })

  test('as text: the same words without marks', async () => {
    const result = await read(page, HTML, { format: 'text' })
    expect(result).toMatchObject({ format: 'text', extractor: 'main' })
    const text = await textFrom(page, HTML, { format: 'text' })
    expect(text).toContain('River\tLength\nRhine\t1233 km\nElbe\t1094 km')
    expect(text).toContain('One item\nAnother')
    expect(text).not.toMatch(/[|[\]#*]/)
    expect(text).not.toContain('Section 1')
  })

  test('as HTML: its own, unchanged', async () => {
    expect(await read(page, HTML, { format: 'html' })).toMatchObject({
      format: 'html',
      extractor: 'none',
      text: page,
      title: 'Rivers | Site',
    })
    const long = await read(page, HTML, {
      format: 'html',
      limits: { textBytes: 300, htmlMs: 2_000, pdfMs: 5_000, pdfPages: 1 },
    })
    expect(long).toMatchObject({ text: page.slice(0, 300), notices: [notices.parser] })
  })

  test('whole, when it is asked for or nothing on the page is its main content', async () => {
    const whole = await read(page, HTML, { part: 'whole' })
    expect(whole).toMatchObject({ extractor: 'whole' })
    const text = await textFrom(page, HTML, { part: 'whole' })
    for (const each of ['Section 1', 'Paragraph 0 about rivers', 'Most read', 'rights reserved', 'Privacy policy'])
      expect(text).toContain(each)
    const menu =
      '<nav><ul><li><a href="/a">One</a></li><li><a href="/b">Two</a></li></ul></nav><footer>Imprint</footer>'
    expect(await read(menu, HTML)).toMatchObject({ extractor: 'whole' })
    for (const word of ['One', 'Two', 'Imprint']) expect(await textFrom(menu)).toContain(word)
  })
})

describe('WM-44 what text holds', () => {
  test.each(['text', 'markdown'] as const)(
    'as %s: no script, style or template, from the whole page either',
    async (format) => {
      for (const part of ['main', 'whole'] as const) {
        const text = await textFrom(page, HTML, { format, part })
        for (const hidden of ['let hidden', 'p{}', 'templated']) expect(text).not.toContain(hidden)
      }
    },
  )

  test('blocks on lines of their own, blanks collapsed, entities decoded', async () => {
    const text = (html: string) => textFrom(html, HTML, { format: 'text', part: 'whole' })
    expect(await text('<div>a</div><div>b   c\n d</div><p>e &amp; f&nbsp;&eacute; &lt;g&gt;</p>h<br>i <b>j</b>k')).toBe(
      'a\nb c d\n\ne & f é <g>\n\nh\ni jk',
    )
    expect(await text('<h1>T</h1><ul><li>a<ul><li>b</li></ul></li><li><p>c</p></li></ul>')).toBe('T\n\na\n\nb\n\nc')
    expect(await text('<p>before<pre>\n  one\n    two  \n\nthree\n</pre>after')).toBe(
      'before\n\n  one\n    two\n\nthree\n\nafter',
    )
    expect(await text('*a* _b_ [c](d) # e')).toBe('*a* _b_ [c](d) # e')
    expect(await text('<p hidden>x</p><p style="display: none">y</p><p aria-hidden="true">z</p><p>shown')).toBe('shown')
  })
})

describe('WM-48 a page that scripts would fill in', () => {
  const scripts = (count: number) => '<script src="/a.js"></script>'.repeat(count)
  const likely = async (html: string, contentType = HTML) => {
    const found = new Set<unknown>()
    for (const format of ['text', 'markdown', 'html'] as const) {
      const result = await read(html, contentType, { format })
      found.add(result.status === 'ok' && (result.likelyJsRendered ?? false))
    }
    expect(found.size, 'the same for every format').toBe(1)
    return [...found][0]
  }

  test.each<[name: string, html: string, expected: boolean]>([
    ['an empty root', `<noscript>You need to enable JavaScript.</noscript><div id="root"></div>${scripts(1)}`, true],
    ['an empty root beside much text', `<div id="app"><div> </div></div>${prose('x', 10)}${scripts(1)}`, true],
    ...['__next', '__nuxt', 'q-app', 'svelte'].map((id): [string, string, boolean] => [
      `an empty ${id}`,
      `<div id="${id}"></div>${scripts(1)}`,
      true,
    ]),
    ['an empty root without a script', '<div id="root"></div>', false],
    ['a root with text', `<div id="root">text</div>${scripts(1)}`, false],
    ['an empty element of another name', `<div id="content"></div>${scripts(2)}`, false],
    ['an article with three scripts', `${prose('x', 5)}${scripts(3)}`, false],
    ['199 characters and three scripts', `<p>${'x'.repeat(199)}</p>${scripts(3)}`, true],
    ['200 characters and three scripts', `<p>${'x'.repeat(200)}</p>${scripts(3)}`, false],
    ['199 characters and two scripts', `<p>${'x'.repeat(199)}</p>${scripts(2)}`, false],
    ['much hidden text and three scripts', `<div style="display:none">${prose('x', 9)}</div>${scripts(3)}`, true],
    ['a short page without scripts', '<p>Hello.</p>', false],
  ])('%s', async (_name, html, expected) => expect(await likely(html)).toBe(expected))

  test('never of what is no HTML', async () => {
    expect(await likely('{"root": "<div id=root></div>"}', 'application/json')).toBe(false)
  })

  test('a page whose text is there is not said to be built by scripts', async () => {
    expect(await read(`<div id="app"></div>${prose('x', 30)}${scripts(1)}`, HTML)).toMatchObject({
      likelyJsRendered: true,
      notices: [],
    })
    expect(await read(`<p>Few words.</p>${scripts(3)}`, HTML)).toMatchObject({ notices: [notices.scriptShell] })
  })
})

test('WM-39 a feed comes back unchanged where it is not to be listed, and so does all other text', async () => {
  const feed = '<?xml version="1.0"?>\n<rss><channel><title>T</title>  <item><title>A</title></item></channel></rss>'
  expect(await read(feed, 'application/rss+xml', { feeds: 'as-is' })).toMatchObject({ kind: 'text', text: feed })
  expect(await read(feed, 'application/rss+xml')).toMatchObject({ kind: 'feed' })
  for (const [type, body] of [
    ['application/json', '{ "a":   [1,\n\t2] }\n'],
    ['text/csv', 'a;b\n1;"<b>"\n'],
    ['text/markdown', '# T\n\n*a*  \n<div>\n'],
  ] as const) {
    for (const format of ['text', 'markdown', 'html'] as const)
      expect(await read(body, type, { format })).toEqual({ status: 'ok', kind: 'text', text: body, notices: [] })
  }
  const served = await read(`<!-- note -->\n<!DOCTYPE html><p>${'Words of a page. '.repeat(3)}`, 'text/plain')
  expect(served).toMatchObject({ kind: 'html', format: 'markdown' })
})
