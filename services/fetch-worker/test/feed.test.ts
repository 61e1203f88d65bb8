import { expect, test } from 'vitest'
import { parsed, read, textFrom } from './reading.ts'

test('BR-100 RSS is a list of its entries, with links that lead on and text without markup', async () => {
  const rss = `<?xml version="1.0"?><!-- made by hand --><rss version="2.0"><channel><title>News &amp; more</title><link>https://ex.test/</link>
    <item><title><![CDATA[A <b>river</b>]]></title><link>/river?a=1&amp;b=2</link><pubDate>Tue, 05 Mar 2024 10:00:00 GMT</pubDate>
      <description>&lt;p&gt;It *rises* in the &lt;i&gt;hills&lt;/i&gt;.&lt;/p&gt;&lt;script&gt;x()&lt;/script&gt;</description></item>
    <item><guid>https://ex.test/2</guid><content:encoded>${'word '.repeat(3_000)}</content:encoded><description>short</description></item></channel></rss>`
  const result = await read(rss, 'application/rss+xml')
  expect(result).toMatchObject({ kind: 'feed', title: 'News & more' })
  const seen = parsed(await textFrom(rss, 'application/rss+xml'))
  expect(seen.all('heading').map(seen.string)).toEqual(['News & more', 'A river', 'https://ex.test/2'])
  expect(seen.links()).toEqual([
    ['A river', 'https://ex.test/river?a=1&b=2'],
    ['https://ex.test/2', 'https://ex.test/2'],
  ])
  expect(seen.text).toContain('It *rises* in the hills.')
  expect(seen.text).not.toContain('x()')
  expect(seen.text.length).toBeLessThan(3_000)
})

test('BR-100 so is Atom, by its alternate links', async () => {
  const atom = `<feed xmlns="http://www.w3.org/2005/Atom"><title>Log</title><entry><title type="html">One &amp;amp; two</title>
    <link rel="edit" href="/edit"/><link href="https://ex.test/1"/><updated>2024-03-05T10:00:00Z</updated><summary>Said.</summary></entry></feed>`
  const seen = parsed(await textFrom(atom, 'application/atom+xml'))
  expect(seen.links()).toEqual([['One & two', 'https://ex.test/1']])
  expect(seen.text).toContain('2024-03-05T10:00:00Z')
  expect(seen.text).toContain('Said.')
})

test('BR-100 dates and summaries are text, whatever marks are in them', async () => {
  const date = '# [now](https://ex.test/)'
  const rss = `<rss><channel><item><title>T</title><pubDate>\n${date}\n</pubDate><description>1. ${'word '.repeat(3)}</description></item>
    <item><title>U</title><pubDate>${'9'.repeat(10_000)}</pubDate><description>- dash</description></item></channel></rss>`
  const text = await textFrom(rss, 'text/xml')
  const seen = parsed(text)
  expect(seen.all('heading').map(seen.string)).toEqual(['T', 'U'])
  expect(seen.links().map(([said]) => said)).not.toContain('now')
  expect(seen.all('list')).toEqual([])
  expect(seen.text).toContain('# [now]')
  expect(text.length).toBeLessThan(500)
})

test('BR-103 a feed without an end, or without a bottom, is read as far as it is one', async () => {
  const long = `<rss><channel><title>T</title>${'<item><title>entry</title></item>'.repeat(50_000)}`
  expect(parsed(await textFrom(long, 'text/xml')).all('heading').length).toBeLessThan(300)
  const deep = await read(`<rss>${'<a>'.repeat(200_000)}`, 'text/xml')
  expect(deep).toMatchObject({ status: 'ok', kind: 'feed' })
})

test('BR-103 however much stands before the first element, it is found at once', async () => {
  const before = '<?xml version="1.0"?><!DOCTYPE rss><!-- made by hand --><?xml-stylesheet href="x"?>'
  const comments = '<!-- -->'.repeat(100)
  const feed = '<rss><channel><title>T</title></channel></rss>'
  expect(await read(`${before}\n${comments}\n${feed}`, 'text/xml')).toMatchObject({ kind: 'feed', title: 'T' })
  // ways to read the comments as fewer and longer ones grow with the power of their number
  for (const other of [`${comments}<other/>`, `${comments}<!-- no end`, '<!---->'.repeat(500), `<?a?>${comments}rss`]) {
    expect(await read(`${before}${other}`, 'text/xml')).toMatchObject({ kind: 'text' })
  }
})
