import { describe, expect, test } from 'vitest'
import { notices } from '../src/extract/notices.ts'
import { parsed, read, textFrom } from './reading.ts'

const HTML = 'text/html; charset=utf-8'
const count = (text: string, word: string): number => text.split(word).length - 1

describe('BR-092 links and images are absolute', () => {
  const links =
    '<p>See <a href="../faq">faq</a>, <a href="/about">about</a>, <a href="?p=2">next</a>, <a href="#sec">section</a>, ' +
    '<a href="mailto:a@b.c">mail</a>, <a href="javascript:x()">script</a>, <a href="">nothing</a> and <img src="//cdn.test/a.png" alt="picture">.</p>'
  const urls = async (head: string, url?: string) => {
    const seen = parsed(await textFrom(`<head>${head}</head><body>${links}`, HTML, url === undefined ? {} : { url }))
    const found = Object.fromEntries(seen.links())
    return { found, image: seen.all('image')[0]?.url, text: seen.text }
  }

  test('against the final URL', async () => {
    const { found, image, text } = await urls('')
    expect(found).toMatchObject({
      faq: 'https://ex.test/faq',
      about: 'https://ex.test/about',
      next: 'https://ex.test/guide/intro?p=2',
      mail: 'mailto:a@b.c',
    })
    expect(['#sec', 'https://ex.test/guide/intro#sec']).toContain(found.section)
    expect(image).toBe('https://cdn.test/a.png')
    expect(Object.keys(found)).not.toContain('script')
    expect(text).toContain('script')
  })

  test.each([
    ['https://other.test/x/', 'https://other.test/faq', 'https://other.test/about'],
    ['/root/', 'https://ex.test/faq', 'https://ex.test/about'],
    ['deep/er/', 'https://ex.test/guide/deep/faq', 'https://ex.test/about'],
    ['http://[', 'https://ex.test/faq', 'https://ex.test/about'],
  ])('against <base href=%j>', async (base, faq, about) => {
    expect((await urls(`<base href="${base}">`)).found).toMatchObject({ faq, about })
  })

  test('an image that only has a srcset is shown', async () => {
    const seen = parsed(await textFrom('<p>A picture: <img srcset="/s.png 1x, /l.png 2x" alt="p"> here.</p>', HTML))
    expect(seen.all('image').map(({ url }) => url)).toEqual(['https://ex.test/s.png'])
  })
})

describe('BR-094 lists keep their levels', () => {
  test('each word once, indented under its item', async () => {
    const text = await textFrom(
      '<ul><li>Plum</li><li>Apple<ul><li>Red apple</li><li>Yellow apple</li></ul></li><li>Pear</li></ul>',
      HTML,
    )
    expect(parsed(text).listDepth()).toBe(2)
    expect(parsed(text).all('listItem')).toHaveLength(5)
    for (const word of ['Plum', 'Apple', 'Red', 'Yellow', 'Pear']) expect(count(text, word), word).toBe(1)
  })

  test('numbers start where the page says', async () => {
    const seen = parsed(await textFrom('<ol start=5><li>five</li><li>six</li></ol>', HTML))
    expect(seen.all('list')).toMatchObject([{ ordered: true, start: 5 }])
  })

  test('paragraphs of an item stay apart, and so do terms and what they mean', async () => {
    const text = await textFrom('<ul><li><p>alpha</p><p>beta</p></li></ul><dl><dt>term</dt><dd>meaning</dd></dl>', HTML)
    expect(text).not.toMatch(/alphabeta|termmeaning/)
    expect(parsed(text).all('listItem')).toHaveLength(1)
  })
})

describe('BR-095 no script, style, template or state is text', () => {
  test('only what is shown', async () => {
    const text = await textFrom(
      `<body><script>console.log(1)</script><style>${'@font-face{src:url(x)}'.repeat(2_000)}</style><noscript>Enable JS</noscript>` +
        '<template>hidden template</template><script type="application/ld+json">{"@type":"Thing"}</script>' +
        '<div id="root"></div><ul><li>Real item</li></ul>',
      HTML,
    )
    expect(text).toContain('Real item')
    for (const hidden of ['console', 'font-face', 'hidden template', '@type']) expect(text).not.toContain(hidden)
  })

  test('a page without text that scripts would fill says so', async () => {
    const result = await read('<title>App</title><body><div id="root"></div><script src="/app.js"></script>', HTML)
    expect(result).toMatchObject({ status: 'ok', text: '', notices: [notices.script] })
  })

  test('an unclosed script hides what follows it, as in a browser', async () =>
    expect(await textFrom('<p>before</p><script>let a = "<p>after</p>"', HTML)).toBe('before'))
})

describe('BR-098 text that looks like markup stays text', () => {
  test('in a paragraph and in a code block', async () => {
    const seen = parsed(
      await textFrom(
        '<p>Use Box&lt;item&gt; and a &lt; b &amp;&amp; c; also *not bold* and `_x_`</p><pre><code>if (a &lt; b) { "&amp;" }</code></pre>',
        HTML,
      ),
    )
    expect(seen.text).toContain('Use Box<item> and a < b && c; also *not bold* and `_x_`')
    expect(seen.code()).toEqual(['if (a < b) { "&" }'])
    for (const type of ['html', 'emphasis', 'inlineCode']) expect(seen.all(type)).toEqual([])
  })

  test.each([
    '# a',
    '1. a',
    '- a',
    '+ a',
    '> a',
    '    a',
    '~~a~~',
    '[a](b)',
    '![a](b)',
    '<b>',
    '&amp;',
    'a\\b',
    '***',
    '---',
    '| a | b |',
    '[^1]',
    '===',
  ])('a paragraph of %j', async (text) => {
    const seen = parsed(
      await textFrom(`<p>first</p><p>${text.replaceAll('&', '&amp;').replaceAll('<', '&lt;')}</p>`, HTML),
    )
    expect(seen.all('paragraph').map(seen.string)).toEqual(['first', text.trim()])
  })
})

describe('BR-107 links survive odd URLs', () => {
  test('each URL comes back equal', async () => {
    const text = await textFrom(
      '<p><a href="https://x.test/a_(b)">P</a> <a href="/q?x=1&amp;y=<z> w">Q</a> <a href="https://x.test/é ü">R</a> <a href="https://x.test/*a*_b_`c`">S</a> <a href="https://x.test/a)b(c">T</a></p><h2>H</h2><p>a</p><ul><li>i</li></ul><p>b</p>',
      HTML,
    )
    const seen = parsed(text)
    const normal = (url: string) => new URL(url, 'https://ex.test/').href
    expect(seen.links().map(([name, url]) => [name, normal(url ?? '')])).toEqual([
      ['P', 'https://x.test/a_(b)'],
      ['Q', normal('/q?x=1&y=<z> w')],
      ['R', normal('https://x.test/é ü')],
      ['S', normal('https://x.test/*a*_b_`c`')],
      ['T', 'https://x.test/a)b(c'],
    ])
    expect(text).toMatch(/\n\n## H\n\na\n\n[-*] i\n\nb$/)
  })

  test('texts with brackets, images inside, breaks and no text at all', async () => {
    const text = await textFrom(
      '<p>Lead. <a href="/a">a [b] c]</a> <a href="/i"><img src="/i.png" alt="an [image]"></a> one<br><br>two <a href="/none"></a><a href="/label" aria-label="label"></a></p>',
      HTML,
    )
    const seen = parsed(text)
    expect(seen.links()).toContainEqual(['a [b] c]', 'https://ex.test/a'])
    expect(seen.all('image')).toMatchObject([{ alt: 'an [image]', url: 'https://ex.test/i.png' }])
    expect(seen.links().map(([, url]) => url)).not.toContain('https://ex.test/none')
    expect(text).toMatch(/one(?:\\| {2})?\n+two/)
  })
})

describe('what a layout is made of is not taken for something else', () => {
  test('a container that is called a gutter is no column of line numbers, and one that is, is left out', async () => {
    expect(await textFrom('<div class="row gutter"><p>Text of the page.</p></div>', HTML)).toBe('Text of the page.')
    const code =
      '<table><tr><td class="gutter"><pre>1\n2</pre></td><td class="code"><pre><code>a\nb</code></pre></td></tr></table>'
    expect(parsed(await textFrom(`<p>Text.</p>${code}`, HTML)).code()).toEqual(['a\nb'])
  })

  test('a heading is one line, and the mark beside it that links to it is no part of it', async () => {
    const seen = parsed(
      await textFrom(
        '<h2><div>A title</div><div>in two</div> <a href="#a" aria-label="Permalink"></a><a href="https://ex.test/guide/intro#a" title="Permalink"><svg></svg></a></h2><p>Text.</p>',
        HTML,
      ),
    )
    expect(seen.all('heading').map(seen.string)).toEqual(['A title in two'])
  })

  test('a link that has only a label keeps it, unless it is left out with what is around it', async () => {
    const label = '<a href="/cart" aria-label="Shopping cart"><svg></svg></a>'
    expect(parsed(await textFrom(`<p>See ${label}.</p>`, HTML)).links()).toEqual([
      ['Shopping cart', 'https://ex.test/cart'],
    ])
    expect(await textFrom(`<nav>${label}<hr></nav><p>Text.</p>`, HTML)).toBe('Text.')
  })

  test('an address in a text is as it stands there', async () => {
    const text = 'Read https://ex.test/a_b/_c_/*d*~e~?x_=1 and www.ex.test/_x_, not _this_ *or* that.'
    const written = await textFrom(`<p>${text}</p>`, HTML)
    expect(written).toContain('https://ex.test/a_b/_c_/*d*~e~?x_=1 and www.ex.test/_x_,')
    expect(parsed(written).text).toBe(text)
    expect(parsed(await textFrom('<p>lead <a href="/l">https://ex.test/_a_</a></p>', HTML)).links()).toEqual([
      ['https://ex.test/_a_', 'https://ex.test/l'],
    ])
  })

  test('a picture that is described in a whole paragraph has the beginning of it', async () => {
    const alt = 'A diagram of many words '.repeat(20)
    const [image] = parsed(await textFrom(`<p>Text <img src="/d.png" alt="${alt}"></p>`, HTML)).all('image')
    expect(image?.alt).toMatch(/^A diagram of many words .*…$/)
    expect(image?.alt?.length).toBeLessThanOrEqual(121)
  })
})
