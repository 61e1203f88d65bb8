import { beginningWords, type StoredLexicon } from '../src/extract/html/main/leanings.ts'
import type { ReviewedPage } from './pages.ts'

/** Sites a word must be seen on: what only one of them says is no knowledge about others. */
const FEW_SITES = 10
/** Sites' worth of doubt that each word starts with. */
const DOUBT = 3
/** Leanings nearer to none than this are not worth a place. */
const LEAST_TENTHS = 3

/** For each word at the beginning of blocks, how much more often than others it stands in main content, sites counting alike. */
export function learnLexicon(pages: readonly ReviewedPage[]): StoredLexicon {
  const seen = new Map<string, Map<string, { content: number; all: number }>>()
  let content = 0
  let all = 0
  for (const { site, page, labels } of pages) {
    for (const [at, start] of page.blocks.start.entries()) {
      const label = labels[at] as number
      content += label
      all++
      for (const word of new Set(beginningWords(start))) {
        const sites = seen.get(word) ?? new Map<string, { content: number; all: number }>()
        const of = sites.get(site) ?? { content: 0, all: 0 }
        of.content += label
        of.all++
        sites.set(site, of)
        seen.set(word, sites)
      }
    }
  }
  const usual = content / all
  const byTenths = new Map<number, string[]>()
  for (const [word, sites] of seen) {
    if (sites.size < FEW_SITES || word.length > 24) continue
    let shares = DOUBT * usual
    for (const of of sites.values()) shares += of.content / of.all
    const tenths = Math.round(10 * (logOdds(shares / (sites.size + DOUBT)) - logOdds(usual)))
    if (Math.abs(tenths) >= LEAST_TENTHS) byTenths.set(tenths, [...(byTenths.get(tenths) ?? []), word])
  }
  return Object.fromEntries(
    [...byTenths].sort(([a], [b]) => a - b).map(([tenths, words]) => [String(tenths), words.sort().join(' ')]),
  )
}

function logOdds(share: number): number {
  const bounded = Math.min(0.99, Math.max(0.01, share))
  return Math.log(bounded / (1 - bounded))
}
