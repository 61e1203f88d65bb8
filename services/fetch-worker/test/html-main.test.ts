import { describe, expect, test } from 'vitest'
import { parsed, read, textFrom } from './reading.ts'

const sentence = (about: string, at: number) =>
  `Sentence ${at} on ${about} says what it is, where it comes from and why those who work with it should know, in as many words as it takes.`
const paragraphs = (about: string, count: number) =>
  Array.from({ length: count }, (_, at) => `<p>${sentence(about, at)}</p>`).join('\n')
const menu = `<header class="site-header"><a href="/">Site</a><nav class="menu"><ul>${[
  'Home',
  'Products',
  'Blog',
  'Contact',
]
  .map((name) => `<li><a href="/${name}">${name} menu</a></li>`)
  .join('')}</ul></nav></header>`
const footer =
  '<footer class="site-footer"><ul><li><a href="/imprint">Imprint link</a></li><li><a href="/terms">Terms link</a></li></ul><p>© 2024 All rights reserved.</p></footer>'
const inPage = (main: string) =>
  `<!doctype html><html><head><title>T</title></head><body>${menu}${main}${footer}</body></html>`

const isKept = async (html: string, kept: string[], left: string[] = []) => {
  const text = await textFrom(html)
  for (const each of kept) expect(text, each).toContain(each)
  for (const each of [...left, 'Products menu', 'Imprint link', 'rights reserved'])
    expect(text, each).not.toContain(each)
  return text
}

describe('BR-097 no section goes for its heading or the name of its class', () => {
  const page = inPage(`<main class="docs-content"><h1>Running the server</h1>${paragraphs('the server', 3)}
    <div class="admonition warning"><p class="admonition-title">Warning</p><p>Do not run as root.</p></div>
    ${['Release', 'Related work', 'Share', 'Next steps'].map((title) => `<h2>${title}</h2>${paragraphs(title.toLowerCase(), 1)}`).join('')}
    <section class="related-posts">${Array.from({ length: 6 }, (_, at) => `<div class="card"><a href="/post/${at}"><h3>Card title ${at}</h3></a><a href="/post/${at}">Read more</a></div>`).join('')}</section></main>`)

  test('warnings and sections stay with their headings, and only the cards go', async () => {
    const text = await isKept(
      page,
      ['Do not run as root.', ...['release', 'related work', 'share', 'next steps'].map((about) => sentence(about, 0))],
      ['Card title', 'Read more'],
    )
    const headings = parsed(text)
      .all('heading')
      .map((node) => parsed(text).string(node))
    for (const title of ['Release', 'Related work', 'Share', 'Next steps']) expect(headings).toContain(title)
    expect(text).toContain('Warning')
  })
})

describe('BR-087 nothing of a page that is in several parts is lost', () => {
  test('a page that is a table: all rows, both columns', async () => {
    const rows = Array.from(
      { length: 20 },
      (_, at) =>
        `<tr><td><a href="/doc/${at}">文書${at}番</a></td><td>第${at}号の説明文である。${'この表には長い説明がある。'.repeat(4)}</td></tr>`,
    )
    const seen = parsed(
      await textFrom(`<html><body><table><tr><th>名称</th><th>説明</th></tr>${rows.join('')}</table></body></html>`),
    )
    expect(seen.tables()).toHaveLength(1)
    expect(seen.tables()[0]).toHaveLength(21)
    for (let at = 0; at < 20; at++) {
      expect(seen.text).toContain(`文書${at}番`)
      expect(seen.text).toContain(`第${at}号の説明文である。`)
    }
  })

  test('an article in four containers with advertisements between them', async () => {
    const parts = ['hills', 'lakes', 'roads', 'towns']
    await isKept(
      inPage(
        parts
          .map((part) => `<div class="body-container">${paragraphs(part, 3)}</div>`)
          .join('<div class="ad-slot"><a href="https://ads.test/">Advertisement</a></div>'),
      ),
      parts.flatMap((part) => [0, 1, 2].map((at) => sentence(part, at))),
      ['Advertisement'],
    )
  })

  test('paragraphs and code blocks, one of them very long, in order', async () => {
    const long = Array.from({ length: 400 }, (_, at) => `step_${at}(value, "${at}")`).join('\n')
    const text = await isKept(
      inPage(
        `<article>${paragraphs('setup', 2)}<pre><code>install()</code></pre>${paragraphs('use', 2)}<pre>use()</pre>${paragraphs('limits', 1)}<pre>${long}</pre></article>`,
      ),
      [sentence('setup', 1), sentence('use', 1), sentence('limits', 0)],
    )
    expect(parsed(text).code()).toEqual(['install()', 'use()', long])
  })
})

describe('BR-085 code stays whatever its wrapper is called', () => {
  test.each(['code-toolbar', 'toolbar', 'share-code', 'sidebar-example', 'highlight', 'widget'])('%s', async (name) => {
    const text = await isKept(
      inPage(
        `<article><h1>Settings</h1>${paragraphs('settings', 3)}<div class="${name}"><pre class="language-yaml"><code>a: 1\n  b: 2</code></pre></div></article>`,
      ),
      [sentence('settings', 0), sentence('settings', 2)],
    )
    expect(parsed(text).all('code')).toMatchObject([{ value: 'a: 1\n  b: 2', lang: 'yaml' }])
  })
})

describe('what a page is', () => {
  test('an article, with its text and nothing around it', async () => {
    const article =
      inPage(`<article class="post"><h1>On rivers</h1><div class="byline">By <a rel="author" href="/ann">Ann Lee</a></div>${paragraphs('rivers', 12)}</article>
      <div class="related-articles"><h3>Related articles</h3><ul>${Array.from({ length: 5 }, (_, at) => `<li><a href="/a/${at}">Another story number ${at}</a></li>`).join('')}</ul></div>
      <div class="newsletter-signup"><h3>Sign up for our newsletter</h3><form><input type="email"><button>Subscribe</button></form></div>`)
    await isKept(
      article,
      Array.from({ length: 12 }, (_, at) => sentence('rivers', at)),
      ['Another story', 'newsletter', 'Subscribe'],
    )
    expect(await read(article.replace('</head>', '<meta property="og:type" content="article"></head>'))).toMatchObject({
      extractor: 'main',
      facts: { byline: 'Ann Lee' },
    })
  })

  test('the posts of a thread, not the frame around them', async () => {
    const post = (at: number) =>
      `<div class="post" id="post-${at}"><div class="post-author"><a href="/u/${at}">user${at}</a></div><div class="post-body"><p>${sentence('the question', at)}</p><p>Answer ${at}: ${sentence('the answer', at)}</p></div><div class="post-actions"><a href="#">Reply</a> <a href="#">Like</a></div></div>`
    const thread = inPage(
      `<div class="thread"><h1 class="topic-title">How does it work?</h1>${Array.from({ length: 8 }, (_, at) => post(at)).join('')}</div>`,
    )
    await isKept(
      thread,
      Array.from({ length: 8 }, (_, at) => sentence('the answer', at)),
    )
  })

  test('a heading, where the page is short', async () => {
    const text = await isKept(inPage(`<main><article><h1>On rivers</h1>${paragraphs('rivers', 5)}</article></main>`), [
      sentence('rivers', 4),
    ])
    expect(parsed(text).all('heading').map(parsed(text).string)).toEqual(['On rivers'])
  })

  test('an article that only its JSON-LD holds, where the page shows next to nothing', async () => {
    const told = (articleBody: string) =>
      `<script type="application/ld+json">${JSON.stringify({ '@type': 'NewsArticle', articleBody }).replaceAll('<', '\\u003c')}</script>`
    const body = `First. ${sentence('what is told', 0)}\n\n# ${sentence('what is told', 1)}\n1. ${sentence('what is told', 2)}`
    const shell = `<html><body><div id="root"></div><script src="/a.js"></script>${told(body)}`
    const seen = parsed(await textFrom(shell))
    expect(seen.all('paragraph').map(seen.string)).toEqual(body.split(/\n+/))
    expect(await read(shell, 'text/html')).toMatchObject({ extractor: 'main', likelyJsRendered: true })
    const marked = `<p>${sentence('a', 0)}</p><p>${sentence('b', 1)} &amp; ${sentence('c', 2)}</p>`
    expect(await textFrom(`<p>Wait.</p>${told(marked)}`, 'text/html', { format: 'text' })).toBe(
      `${sentence('a', 0)}\n\n${sentence('b', 1)} & ${sentence('c', 2)}`,
    )
    const shown = inPage(`<article>${paragraphs('what is shown', 8)}</article>${told(body)}`)
    expect(await textFrom(shown)).not.toContain('what is told')
  })
})
