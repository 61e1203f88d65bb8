import { describe, expect, test } from 'vitest'
import { parseHtml } from '../src/extract/html/parse.ts'
import { toMarkdown } from '../src/extract/markdown/serialise.ts'
import { parsed } from './reading.ts'

/** All of a page as Markdown, with nothing left out. */
const markdown = (html: string): string =>
  toMarkdown(parseHtml(html, 10_000), { base: 'https://e.com/', isLeftOut: () => false, maxCharacters: 1_000_000 }).text

type Seen = ReturnType<typeof parsed>
type Case = [name: string, html: string, check: (seen: Seen, text: string) => void]

const count = (type: string, expected: number) => (seen: Seen) => expect(seen.all(type)).toHaveLength(expected)
const code = (value: string) => (seen: Seen) => expect(seen.code()).toEqual([value])
const link = (text: string, url: string) => (seen: Seen) => expect(seen.links()).toContainEqual([text, url])
const holds =
  (...parts: string[]) =>
  (seen: Seen) => {
    for (const part of parts) expect(seen.text).toContain(part)
  }

const inline: Case[] = [
  ['paragraphs apart', '<p>one</p><p>two</p>', count('paragraph', 2)],
  ['strong', '<p>a <strong>b</strong> c</p>', count('strong', 1)],
  ['emphasis', '<p>a <em>b</em> c</p>', count('emphasis', 1)],
  ['a link', '<p>lead</p><p><a href="https://e.com/a">go</a></p>', link('go', 'https://e.com/a')],
  ['a link with parentheses', '<p><a href="https://e.com/a_(b)">x</a> end</p>', link('x', 'https://e.com/a_(b)')],
  ['brackets in a link', '<p><a href="https://e.com/1">[1]</a> cite</p>', link('[1]', 'https://e.com/1')],
  [
    'an image',
    '<p><img src="https://e.com/i.png" alt="pic"></p>',
    (seen) => expect(seen.all('image')).toMatchObject([{ url: 'https://e.com/i.png', alt: 'pic' }]),
  ],
  [
    'an image in a link',
    '<p><a href="https://e.com"><img src="https://e.com/i.png" alt="p"></a></p>',
    (seen) => {
      expect(seen.all('image')).toHaveLength(1)
      expect(seen.all('link')).not.toEqual([])
    },
  ],
  [
    'code',
    '<p>use <code>npm i</code> now</p>',
    (seen) => expect(seen.all('inlineCode')).toMatchObject([{ value: 'npm i' }]),
  ],
  [
    'code with a backtick',
    '<p>use <code>a`b</code></p>',
    (seen) => expect(seen.all('inlineCode')).toMatchObject([{ value: 'a`b' }]),
  ],
  ['struck out', '<p><del>x</del></p>', count('delete', 1)],
  ['neighbouring spans', '<p><span>foo</span><span>bar</span></p>', holds('foobar')],
  ['entities', '<p>a&nbsp;b &copy; &#x2014; &eacute;</p>', holds('©', '—', 'é')],
  [
    'text like the start of a block',
    '<p># no heading</p><p>1. no list</p><p>- no list</p><p>&gt; no quote</p>',
    (seen) => {
      for (const type of ['heading', 'list', 'blockquote']) expect(seen.all(type)).toEqual([])
    },
  ],
  [
    'text like HTML',
    '<p>&lt;div&gt; &amp;amp; x</p>',
    (seen) => {
      expect(seen.all('html')).toEqual([])
      expect(seen.text).toBe('<div> &amp; x')
    },
  ],
  [
    'snake_case',
    '<p>use my_var_name here</p>',
    (seen, text) => expect([seen.text, text]).toEqual(Array(2).fill('use my_var_name here')),
  ],
]

const blocks: Case[] = [
  [
    'headings of every level',
    '<h1>A</h1><h2>B</h2><h3>C</h3><h4>D</h4><h5>E</h5><h6>F</h6>',
    (seen) => expect(seen.all('heading').map(({ depth }) => depth)).toEqual([1, 2, 3, 4, 5, 6]),
  ],
  [
    'a heading with a link',
    '<h2><a href="https://e.com/#x">Title</a></h2>',
    (seen) => {
      expect(seen.all('heading')).toHaveLength(1)
      expect(seen.links()).toEqual([['Title', 'https://e.com/#x']])
    },
  ],
  [
    'a heading of two lines',
    '<h2>Two<br>lines</h2>',
    (seen) => expect(seen.all('heading').map((node) => seen.string(node).replace(/\s+/g, ' '))).toEqual(['Two lines']),
  ],
  [
    'a link around blocks',
    '<a href="https://e.com/c"><h3>Card</h3><p>Desc</p></a>',
    (seen) => {
      expect(seen.links().map(([, url]) => url)).toContain('https://e.com/c')
      holds('Card', 'Desc')(seen)
    },
  ],
  ['a rule', '<p>a</p><hr><p>b</p>', count('thematicBreak', 1)],
  ['quotes in quotes', '<blockquote><p>a</p><blockquote><p>b</p></blockquote></blockquote>', count('blockquote', 2)],
  [
    'a list in a quote',
    '<blockquote><ul><li>a</li><li>b</li></ul></blockquote>',
    (seen) => {
      expect(seen.all('blockquote')).toHaveLength(1)
      expect(seen.all('listItem')).toHaveLength(2)
    },
  ],
  [
    'a definition list',
    '<dl><dt>T</dt><dd>D1</dd><dd>D2</dd></dl>',
    (seen, text) => {
      holds('T', 'D1', 'D2')(seen)
      expect(text).not.toMatch(/TD1|D1D2/)
    },
  ],
  [
    'definitions that hold nothing, blocks, or what is no text',
    '<dl><dt>T<dd><dd> <b></b><dd><p>one<p>two<dd><ul><li>item</ul>rest<dd><pre>code</pre><dd><h3>Head</h3></dl><p>after',
    (seen, text) => {
      expect(text).toBe('T\n\n: one\n\ntwo\n\n- item\n\nrest\n\n```\ncode\n```\n\n### Head\n\nafter')
      expect(seen.all('listItem')).toHaveLength(1)
    },
  ],
  [
    'boxes of items, and of filters without words',
    '<ul><li><input type=checkbox checked>done<li> <input type=checkbox> <b>to do</b><li><input type=checkbox> <li>a <input type=checkbox></ul>',
    (_seen, text) => expect(text).toBe('- [x] done\n- [ ] **to do**\n- a'),
  ],
  [
    'a figure with its caption',
    '<figure><img src="https://e.com/i.png" alt="a"><figcaption>Cap</figcaption></figure>',
    (seen) => {
      expect(seen.all('image')).toHaveLength(1)
      holds('Cap')(seen)
    },
  ],
  [
    'details',
    '<details><summary>S</summary><p>B</p></details>',
    (_seen, text) => expect(text).toMatch(/S[^B]*\n[^S]*B/),
  ],
  ['div after div', '<div>one</div><div>two</div>', (_seen, text) => expect(text).toMatch(/one\s+two/)],
  ['div 2,000 deep', `${'<div>'.repeat(2_000)}<p>deep</p>${'</div>'.repeat(2_000)}`, holds('deep')],
  ['preformatted text', '<pre>line 1\n  line 2</pre>', code('line 1\n  line 2')],
  [
    'highlighted code',
    '<pre><code class="hljs language-py"><span class="k">def</span> <span class="f">f</span>():\n    <span class="k">return</span> 1</code></pre>',
    (seen) => {
      code('def f():\n    return 1')(seen)
      expect(seen.all('code')).toMatchObject([{ lang: 'py' }])
    },
  ],
  ['code with br', '<pre>a<br>b<br>c</pre>', code('a\nb\nc')],
  ['code with a fence in it', '<pre><code>```js\nx\n```</code></pre>', code('```js\nx\n```')],
]

const lists: Case[] = [
  ['a list', '<ul><li>a</li><li>b</li></ul>', count('listItem', 2)],
  [
    'three levels',
    '<ul><li>a<ul><li>b<ul><li>c</li></ul></li></ul></li><li>d</li></ul>',
    (seen) => expect([seen.listDepth(), seen.all('listItem').length]).toEqual([3, 4]),
  ],
  [
    'an ordered list in another',
    '<ul><li>a<ol><li>x</li><li>y</li></ol></li></ul>',
    (seen) =>
      expect(seen.all('list').map(({ ordered, children }) => [ordered, children?.length])).toEqual([
        [false, 1],
        [true, 2],
      ]),
  ],
  [
    'items of paragraphs',
    '<ul><li><p>a</p><p>b</p></li><li><p>c</p></li></ul>',
    (seen) =>
      expect(seen.all('listItem').map(({ children }) => children?.map(({ type }) => type))).toEqual([
        ['paragraph', 'paragraph'],
        ['paragraph'],
      ]),
  ],
  [
    'an item with a code block',
    '<ol><li>run<pre><code>x = 1\ny = 2</code></pre></li><li>next</li></ol>',
    (seen) => {
      code('x = 1\ny = 2')(seen)
      expect([seen.all('list').length, seen.all('listItem').length]).toEqual([1, 2])
    },
  ],
  [
    'a list put where none may be',
    '<ul><li>a</li><ul><li>b</li></ul></ul>',
    (seen) => {
      expect(seen.all('listItem').length).toBeGreaterThanOrEqual(2)
      holds('a', 'b')(seen)
    },
  ],
]

const onlyTable = (seen: Seen): string[][] => {
  expect(seen.tables()).toHaveLength(1)
  return seen.tables()[0] ?? []
}
const tables: Case[] = [
  [
    'a head and rows',
    '<table><thead><tr><th>A</th><th>B</th></tr></thead><tbody><tr><td>1</td><td>2</td></tr><tr><td>3</td><td>4</td></tr></tbody></table>',
    (seen) =>
      expect(onlyTable(seen)).toEqual([
        ['A', 'B'],
        ['1', '2'],
        ['3', '4'],
      ]),
  ],
  [
    'no head',
    '<table><tbody><tr><td>A</td><td>B</td></tr><tr><td>1</td><td>2</td></tr></tbody></table>',
    (seen) =>
      expect(onlyTable(seen).slice(-2)).toEqual([
        ['A', 'B'],
        ['1', '2'],
      ]),
  ],
  [
    'a pipe in a cell',
    '<table><tr><th>A</th></tr><tr><td>a|b</td></tr></table>',
    (seen) => expect(onlyTable(seen)).toEqual([['A'], ['a|b']]),
  ],
  [
    'a list in a cell',
    '<table><tr><th>A</th><th>B</th></tr><tr><td><ul><li>x</li><li>y</li></ul></td><td>z</td></tr></table>',
    (seen) => {
      const [head, row] = onlyTable(seen)
      expect([head?.length, row?.length, row?.[1]]).toEqual([2, 2, 'z'])
    },
  ],
  [
    'a cell over two columns',
    '<table><tr><th>A</th><th>B</th><th>C</th></tr><tr><td colspan="2">wide</td><td>c</td></tr></table>',
    (seen) => {
      const [, row] = onlyTable(seen)
      expect([row?.length, row?.[2]]).toEqual([3, 'c'])
    },
  ],
  [
    'alignment',
    '<table><tr><th align="right">A</th><th style="text-align:center">B</th></tr><tr><td>1</td><td>2</td></tr></table>',
    (seen, text) => {
      onlyTable(seen)
      expect(text).toMatch(/-:|:-+:/)
    },
  ],
  [
    'links and code in cells',
    '<table><tr><th>A</th><th>B</th></tr><tr><td><a href="https://e.com/x">l</a></td><td><code>a|b</code></td></tr></table>',
    (seen) => {
      expect(onlyTable(seen)[1]).toEqual(['l', 'a|b'])
      expect(seen.links()).toEqual([['l', 'https://e.com/x']])
    },
  ],
  [
    'its caption',
    '<table><caption>Cap</caption><tr><th>A</th></tr><tr><td>1</td></tr></table>',
    (seen) => {
      onlyTable(seen)
      holds('Cap')(seen)
    },
  ],
  [
    'a table in a table',
    '<table><tr><td>out<table><tr><td>in1</td><td>in2</td></tr></table></td><td>B</td></tr></table>',
    holds('out', 'in1', 'in2', 'B'),
  ],
]

describe.each([
  ['in a line', inline],
  ['blocks', blocks],
  ['lists', lists],
  ['tables', tables],
])('a CommonMark parser sees in our Markdown what was in the page: %s', (_title, cases) => {
  test.each(cases)('%s', (_name, html, check) => {
    const text = markdown(html)
    check(parsed(text), text)
  })
})
