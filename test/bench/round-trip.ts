import { decode } from '../../services/fetch-worker/src/extract/charset.ts'
import { parseHtml } from '../../services/fetch-worker/src/extract/html/parse.ts'
import { displayOf, known } from '../../services/fetch-worker/src/extract/html/tags.ts'
import { attribute, type Tree, textOf } from '../../services/fetch-worker/src/extract/html/tree.ts'
import { codeText } from '../../services/fetch-worker/src/extract/markdown/code.ts'
import { toMarkdown } from '../../services/fetch-worker/src/extract/markdown/serialise.ts'
import { baseUrl, linkUrl } from '../../services/fetch-worker/src/extract/markdown/urls.ts'
import { parsed } from '../../services/fetch-worker/test/reading.ts'
import type { ReviewedPage } from './reviewed-pages.ts'

const A = known('a')
const PRE = known('pre')
const headings = new Set(['h1', 'h2', 'h3', 'h4', 'h5', 'h6'].map(known))

export interface Survival {
  links: Share
  code: Share
  headings: Share
}

interface Share {
  all: number
  kept: number
}

/** How many links, code blocks and headings of whole pages are still there when their Markdown is read again. */
export function survivalOf(pages: ReviewedPage[]): Survival {
  const out: Survival = { links: { all: 0, kept: 0 }, code: { all: 0, kept: 0 }, headings: { all: 0, kept: 0 } }
  for (const { bytes, url } of pages) {
    const tree = parseHtml(decode(bytes, undefined, false), Number.POSITIVE_INFINITY)
    const base = baseUrl(tree, url)
    const { text } = toMarkdown(tree, { base, isLeftOut: () => false, maxCharacters: 5_000_000 })
    const seen = parsed(text)
    const wanted = partsOf(tree, base)
    tally(
      out.links,
      wanted.links,
      seen.all('link').map(({ url: target }) => target ?? ''),
    )
    tally(
      out.code,
      wanted.code,
      seen.code().map((code) => squeezed(code ?? '')),
    )
    tally(
      out.headings,
      wanted.headings,
      seen.all('heading').map((node) => letters(seen.string(node))),
    )
  }
  return out
}

function tally(share: Share, wanted: string[], found: string[]): void {
  const left = new Map<string, number>()
  for (const each of found) left.set(each, (left.get(each) ?? 0) + 1)
  for (const each of wanted) {
    share.all++
    const count = left.get(each) ?? 0
    if (count === 0) continue
    share.kept++
    left.set(each, count - 1)
  }
}

const squeezed = (code: string): string => code.replace(/\s+/g, ' ').trim()
export const letters = (text: string): string => text.replace(/[^\p{L}\p{N}]+/gu, '')

export function partsOf(tree: Tree, base: string): { links: string[]; code: string[]; headings: string[] } {
  const links: string[] = []
  const code: string[] = []
  const titles: string[] = []
  let preEnd = 0
  for (let node = 1; node < tree.size; node++) {
    const tag = tree.tag[node] as number
    if (displayOf(tag) === 'hidden') node = (tree.end[node] as number) - 1
    const text = tag === A || tag === PRE || headings.has(tag) ? textOf(tree, node, 1_000_000) : ''
    if (text === '') continue
    const target = tag === A ? linkUrl(attribute(tree, node, 'href'), base) : undefined
    if (tag === PRE) preEnd = tree.end[node] as number
    // A link in code is code; one without a letter is a mark beside a heading.
    if (target !== undefined && node >= preEnd && letters(text) !== '') links.push(target)
    else if (tag === PRE) code.push(squeezed(codeText(tree, node, 1_000_000)))
    else if (headings.has(tag)) titles.push(letters(text))
  }
  return { links, code: code.filter((each) => each !== ''), headings: titles.filter((each) => each !== '') }
}
