import { describe, expect, test } from 'vitest'
import { read } from './reading.ts'

const factsOf = async (html: string, url?: string) => {
  const result = await read(html, 'text/html; charset=utf-8', url === undefined ? {} : { url })
  if (result.status === 'failed') throw new Error(`not read: ${result.failure}`)
  return result.facts
}
const jsonLd = (value: unknown) => `<script type="application/ld+json">${JSON.stringify(value)}</script>`

describe('what a page says of itself', () => {
  test('in JSON-LD, of an article among other things', async () => {
    const graph = {
      '@graph': [
        { '@type': 'WebSite', name: 'The Daily' },
        { '@type': 'WebPage', name: 'not a heading' },
        {
          '@type': ['NewsArticle'],
          headline: 'A river &amp; its banks',
          author: [{ '@type': 'Person', name: 'Ann Lee' }, { name: 'Bo Ray' }],
          datePublished: '2024-03-05T10:20:30+0200',
          description: 'What it says.',
        },
      ],
    }
    expect(await factsOf(`<html lang="en-GB"><title>x</title>${jsonLd(graph)}<p>Text.`)).toEqual({
      headline: 'A river & its banks',
      byline: 'Ann Lee, Bo Ray',
      published: '2024-03-05T10:20:30+02:00',
      language: 'en-GB',
      siteName: 'The Daily',
      description: 'What it says.',
    })
  })

  test('in its head', async () => {
    expect(
      await factsOf(
        `<html><head><meta property="og:title" content="A river | The Daily"><meta property="og:site_name" content="The Daily">
        <meta name="author" content="By Ann Lee"><meta property="article:published_time" content="March 5, 2024">
        <meta property="og:locale" content="de_AT"><link rel="canonical" href="/river?x=1"><meta name="description" content=" What
        it says. "></head><p>Text.`,
      ),
    ).toEqual({
      headline: 'A river',
      byline: 'Ann Lee',
      published: '2024-03-05',
      language: 'de-AT',
      canonicalUrl: 'https://ex.test/river?x=1',
      siteName: 'The Daily',
      description: 'What it says.',
    })
  })

  test('in its body', async () => {
    expect(
      await factsOf(
        '<title>Site</title><h1>A <em>river</em></h1><a rel="author" href="/ann">Ann Lee</a> <time datetime="2024-03-05">5 March</time><p>Text.',
      ),
    ).toEqual({ headline: 'A river', byline: 'Ann Lee', published: '2024-03-05' })
  })

  test('the name of a site is only taken off a title where the page names its site', async () => {
    expect((await factsOf('<title>Ports - A - B</title><p>t'))?.headline).toBe('Ports - A - B')
    const named = '<meta property="og:site_name" content="B (x)">'
    expect((await factsOf(`${named}<title>Ports - A - B (x)</title><p>t`))?.headline).toBe('Ports - A')
    expect((await factsOf(`${named}<title>B (x)</title><p>t`))?.headline).toBe('B (x)')
  })

  test('what is no date, name, language or address is left out', async () => {
    expect(
      await factsOf(
        `<html lang="english please"><title>T</title><meta name="author" content="https://ex.test/ann"><meta name="date" content="soon">
        <link rel="canonical" href="javascript:x()">${jsonLd({ '@type': 'Article', datePublished: '2024-13-40', author: { name: '' } })}<script type="application/ld+json">{"broken</script><p>t`,
      ),
    ).toEqual({ headline: 'T' })
  })

  test('a language that is not declared is told from the text, when it tells', async () => {
    const german =
      'Der Fluss ist nicht mit dem Meer zu verwechseln, denn das Wasser, das er führt, ist auch im Sommer von den Bergen und für die Stadt. Die Brücke ist alt und wird von einer Firma, die sich auf das Bauen von Brücken versteht, mit großer Sorgfalt für die Menschen erhalten.'
    expect((await factsOf(`<p>${german}`))?.language).toBe('de')
    expect((await factsOf(`<p>${'日本語のページです。'.repeat(10)}`))?.language).toBe('ja')
    expect((await factsOf('<p>Lorem 1 2 3'))?.language).toBeUndefined()
  })
})

test('WM-30 the title is that of the HTML, blanks collapsed, whatever the heading is', async () => {
  const page = '<title> A\n  page \t| Site </title><meta property="og:title" content="Other"><h1>Heading</h1><p>Text.'
  expect(await read(page, 'text/html')).toMatchObject({ title: 'A page | Site', facts: { headline: 'Other' } })
  const untitled = await read('<p>Text.', 'text/html')
  expect('title' in untitled).toBe(false)
  const json = await read('{"title": "x"}', 'application/json')
  expect('title' in json).toBe(false)
})
