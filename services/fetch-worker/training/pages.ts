import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { parseUrl } from '@tollgate/contracts'
import { z } from 'zod'
import type { Described } from '../src/extract/html/main/block-features.ts'
import { blocksOf, blockText } from '../src/extract/html/main/blocks.ts'
import { describeFor, type PageType } from '../src/extract/html/main/look.ts'
import { readStructured } from '../src/extract/html/main/structured.ts'
import { parseHtml } from '../src/extract/html/parse.ts'
import { label, wordsIn } from './label.ts'

const reviewed = z.array(
  z.object({
    id: z.string(),
    url: z.string(),
    page_type: z.custom<PageType>((value) => typeof value === 'string'),
    main_content: z.string().nullable(),
  }),
)

export interface ReviewedPage {
  id: string
  type: PageType
  /** The site, as far as a name tells: pages of one site are never learnt from and tested on at once. */
  site: string
  page: Described
  /** By block. */
  words: string[][]
  labels: Float32Array
  wanted: string[]
}

/** Pages whose main content people have marked: `truth.json.gz` and `html/<id>.html.gz`. Those without any are left out. */
export function readPages(folder: string): ReviewedPage[] {
  const truth = reviewed.parse(JSON.parse(gunzipSync(readFileSync(join(folder, 'truth.json.gz'))).toString()))
  return truth.flatMap(({ id, url, page_type: type, main_content: text }) => {
    if (!text) return []
    const html = gunzipSync(readFileSync(join(folder, 'html', `${id}.html.gz`))).toString()
    const tree = parseHtml(html, Number.POSITIVE_INFINITY)
    const page = describeFor(tree, blocksOf(tree), url, readStructured(tree.jsonLd))
    const words = page.blocks.start.map((_, at) => wordsIn(blockText(tree, page.blocks, at)))
    const wanted = wordsIn(text)
    return [{ id, type, site: siteOf(url) ?? id, page, words, labels: label(words, wanted), wanted }]
  })
}

export const siteOf = (url: string): string | undefined => parseUrl(url)?.hostname.split('.').slice(-2).join('.')
