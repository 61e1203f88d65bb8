import { expect, test } from 'vitest'
import { serving, sharedWorld, textOf } from './world.ts'

const MiB = 1024 * 1024
const shared = sharedWorld({ settings: { threads: 2 } })

const many = (count: number, make: (at: number) => string): string =>
  Array.from({ length: count }, (_, at) => make(at)).join('')

/** Made when they are needed: most are of several MiB. */
const pages: [name: string, make: () => string][] = [
  ['50,000 nested div', () => `${'<div>'.repeat(50_000)}deep`],
  ['100,000 nested div, closed', () => `${'<div>'.repeat(100_000)}deep${'</div>'.repeat(100_000)}`],
  ['50,000 nested blockquote and ul', () => `${'<blockquote><ul>'.repeat(50_000)}deep`],
  ['20,000 unclosed p and b', () => '<p><b>text'.repeat(20_000)],
  ['3,000 nested a and table', () => `${'<a href="/x"><table><tr><td>'.repeat(3_000)}deep`],
  ['table nested 500 deep', () => `${`<table><tr><td>${'x'.repeat(2_000)}`.repeat(500)}`],
  ['200,000 sibling p', () => '<p>some words of text</p>'.repeat(200_000)],
  ['300,000 br', () => '<br>'.repeat(300_000)],
  ['5 MiB of &amp;', () => '&amp;'.repeat(MiB)],
  ['100,000 cells in one table', () => `<table>${`<tr>${'<td>cell'.repeat(100)}`.repeat(1_000)}</table>`],
  ['100,000 cells in one row', () => `<table><tr>${'<td>cell'.repeat(100_000)}</table>`],
  ['huge spans', () => '<table><tr><td colspan=1000 rowspan=65534>a<tr><td colspan=99999999>b</table>'.repeat(1_000)],
  ['10 MB in an unclosed comment', () => `<p>text</p><!--${'x'.repeat(10 * MiB)}`],
  ['10 MB of text in one line', () => `<p>${'words '.repeat((10 * MiB) / 6)}`],
  ['10 MB without a blank', () => `<p>${'x'.repeat(10 * MiB)}`],
  ['200,000 attributes', () => `<p ${Array.from({ length: 200_000 }, (_, at) => `a${at}=x`).join(' ')}>text`],
  ['an attribute of 5 MB', () => `<a href="${'x'.repeat(5 * MiB)}">text</a>`],
  ['5 MB of <', () => `<p>text</p>${'<'.repeat(5 * MiB)}`],
  ['5 MB of </', () => `<p>text</p>${'</'.repeat(2.5 * MiB)}`],
  ['5 MB of marks that Markdown knows', () => `<p>${'*_`[]('.repeat(MiB)}`],
  ['100,000 nested em and strong', () => `${'<em><strong>'.repeat(50_000)}deep`],
  ['100,000 links', () => '<a href="/x?y=z">link</a> '.repeat(100_000)],
  ['an unclosed script', () => `<p>text</p><script>${'let a = 1;'.repeat(MiB / 2)}`],
  ['half a million list items', () => '<li>item'.repeat(500_000)],
  [
    '5 MB of line breaks in code',
    () => `<pre>${'\n'.repeat(5 * MiB)}x</pre>${'<p>some words of text</p>'.repeat(100)}`,
  ],
  [
    '20,000 paragraphs at the greatest depth, each with classes of its own',
    () =>
      '<div>'.repeat(400) + many(19_900, (at) => `<p class="c${at} nav${at}">${'words of a page '.repeat(4)}${at}</p>`),
  ],
  ['50,000 tables', () => '<table><tr><td>a word<td>b</table>'.repeat(50_000)],
  [
    '5,000 tables, half of each telling',
    () => `<p>${'running words '.repeat(10)}</p><table><tr><td>a<td>b</table>`.repeat(5_000),
  ],
  ['20,000 scripts of JSON-LD', () => '<script type="application/ld+json">{"@type":"Article"}</script>'.repeat(20_000)],
  [
    'JSON-LD nested 100,000 deep',
    () => `<script type="application/ld+json">${'['.repeat(100_000)}${']'.repeat(100_000)}</script><p>text`,
  ],
  [
    'an article told in JSON-LD beside 19,000 paragraphs',
    () =>
      `<script type="application/ld+json">{"@type":"Article","articleBody":"${'word '.repeat(90_000)}"}</script>${'<p>some words of text</p>'.repeat(19_000)}`,
  ],
]

test.each(pages)(
  'BR-103 %s is answered or refused in time, while a neighbour is answered',
  async (_name, make) => {
    const world = shared().answering(
      serving({
        '/hostile': ['text/html', `<!doctype html><body>${make()}`],
        '/page': ['text/html', '<p>Text of a page.'],
      }),
    )
    let late = 0
    let last = performance.now()
    const beat = setInterval(() => {
      late = Math.max(late, performance.now() - last - 20)
      last = performance.now()
    }, 20)
    const started = performance.now()
    const hostile = world.fetch('http://site.test/hostile', { timeoutMs: 20_000 })
    const neighbour = await world.fetch('http://site.test/page')
    const result = await hostile
    clearInterval(beat)
    expect(textOf(neighbour)).toBe('Text of a page.')
    expect(performance.now() - started).toBeLessThan(25_000)
    if (result.status === 'failed') {
      expect(result).toMatchObject({ failure: 'extraction_failed', reason: expect.stringMatching(/time|memory/) })
    } else expect(Buffer.byteLength(result.text)).toBeLessThanOrEqual(50 * 1024)
    // nothing of a page is worked on in this process: what holds it up is the machine
    expect(late).toBeLessThan(2_000)
    expect(textOf(await world.fetch('http://site.test/page'))).toBe('Text of a page.')
  },
  40_000,
)
