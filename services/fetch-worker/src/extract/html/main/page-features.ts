import { known } from '../tags.ts'
import { attribute, type Tree } from '../tree.ts'
import type { Page } from './page.ts'
import { bitOf } from './places.ts'
import type { Structured } from './structured.ts'

const META = known('meta')
const MAIN = known('main')
const ARTICLE = known('article')
const P = known('p')
const headings = new Set(['h1', 'h2', 'h3', 'h4', 'h5', 'h6'].map(known))

const addresses: [name: string, words: RegExp][] = [
  ['forum', /forum|thread|topic|\/t\/|question|discuss|comment|community|\/r\/|viewtopic|showthread/i],
  ['product', /product|\/p\/|\/dp\/|\/item|\/itm|\.p$|\/shop\/|\/buy/i],
  ['collection', /collection|categor|\/c\/|\/cat\/|\/shop|store|\/b\/|genre|search|browse/i],
  ['docs', /docs?[./]|documentation|reference|manual|guide|tutorial|api|wiki|learn|readme|help|support/i],
  ['article', /\/(?:19|20)\d\d\/|blog|news|article|story|post|opinion|magazine|\d{5,}/i],
  ['listing', /tag|archive|events?|jobs?|podcast|list|directory|coupons?|awards|courses?|schedule/i],
  ['service', /service|solution|pricing|platform|features?|about|company|product$/i],
]
const kindsOfThing: [name: string, types: RegExp][] = [
  ['article', /Article|BlogPosting|Report/],
  ['product', /^Product/],
  ['faq', /^FAQPage/],
  ['list', /^(?:ItemList|CollectionPage)/],
  ['forum', /^(?:DiscussionForumPosting|QAPage|Question)/],
  ['business', /Organization|Business|^Service/],
  ['crumbs', /^BreadcrumbList/],
  ['site', /^Web(?:Page|Site)/],
  ['howTo', /^(?:HowTo|Recipe|SoftwareApplication)/],
]
const openGraph: [name: string, type: RegExp][] = [
  ['article', /article/],
  ['product', /product/],
  ['website', /website/],
  ['other', /profile|video|music|book/],
]

/** What is the same for all blocks of a page: what kind of page it may be. */
export function pageFeatures(page: Page, structured: Structured): Record<string, number> {
  const { tree, blocks } = page
  const words = Math.max(1, page.words[0] as number)
  const count = Math.max(1, blocks.size)
  const running = page.running[0] as number
  const path = page.url === undefined ? '' : page.url.pathname + page.url.search
  const address = page.url === undefined ? '' : page.url.hostname + path
  const type = openGraphType(tree)
  const out: Record<string, number> = {
    'page words': Math.log1p(words),
    'page blocks': Math.log1p(blocks.size),
    'page nodes': Math.log1p(tree.size),
    'page running': Math.log1p(running),
    'page running share': running / words,
    'page link share': (page.linkCharacters[0] as number) / Math.max(1, page.characters[0] as number),
    'page has main': tree.tag.includes(MAIN) ? 1 : 0,
    'page articles': Math.log1p(tree.tag.reduce((sum, tag) => sum + (tag === ARTICLE ? 1 : 0), 0)),
    'page path depth': path.split('/').filter((part) => part !== '').length,
    'page is home': path === '/' || path === '' ? 1 : 0,
    'page query': /[?&]/.test(path) ? 1 : 0,
    'page scripts': Math.log1p(tree.scripts),
    'page script characters': Math.log1p(tree.scriptCharacters),
    'page body given': Math.log1p(structured.articleBody?.length ?? 0),
    'page text given': Math.log1p(structured.said.length),
  }
  const counted = countBlocks(page)
  for (const [name, sum] of Object.entries(counted.words)) out[`page ${name} words`] = sum / words
  for (const [name, sum] of Object.entries(counted.blocks)) {
    out[`page ${name} blocks`] = Math.log1p(sum)
    out[`page ${name} share`] = sum / count
  }
  for (const [at, root] of page.roots.entries()) {
    out[`page root ${at} words`] = (page.words[root] as number) / words
    out[`page root ${at} running`] = (page.running[root] as number) / Math.max(1, running)
  }
  for (const [name, pattern] of addresses) out[`page at ${name}`] = pattern.test(address) ? 1 : 0
  for (const [name, pattern] of kindsOfThing)
    out[`page is ${name}`] = [...structured.types].some((each) => pattern.test(each)) ? 1 : 0
  for (const [name, pattern] of openGraph) out[`page says ${name}`] = pattern.test(type) ? 1 : 0
  return out
}

function countBlocks({ tree, blocks, place }: Page) {
  const words = { paragraph: 0, item: 0, table: 0, link: 0, code: 0 }
  const counts = { long: 0, heading: 0, price: 0, date: 0 }
  for (let at = 0; at < blocks.size; at++) {
    const owner = blocks.owner[at] as number
    const tag = tree.tag[owner] as number
    const of = place[owner] as number
    const all = blocks.words[at] as number
    if (tag === P) words.paragraph += all
    if (of & bitOf('li')) words.item += all
    if (of & bitOf('table')) words.table += all
    if (of & bitOf('pre')) words.code += all
    if ((blocks.linkCharacters[at] as number) * 2 > (blocks.characters[at] as number)) words.link += all
    if (all >= 20) counts.long++
    if (headings.has(tag)) counts.heading++
    if (all < 12) {
      const start = blocks.start[at] as string
      if (/[$€£]\s?\d|\d\s?[€£]/.test(start)) counts.price++
      if (/\b(?:19|20)\d\d\b|\bago\b/.test(start)) counts.date++
    }
  }
  return { words, blocks: counts }
}

function openGraphType(tree: Tree): string {
  const end = Math.min(tree.size, 5_000)
  for (let node = 1; node < end; node++) {
    if (tree.tag[node] === META && attribute(tree, node, 'property') === 'og:type')
      return attribute(tree, node, 'content') ?? ''
  }
  return ''
}
