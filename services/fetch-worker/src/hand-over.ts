import type { FetchedPage } from '@tollgate/contracts'
import { fitBytes } from './extract/text.ts'
import type { PageResult } from './fetch.ts'

/** As much of a page's text as its caller wants; what was kept back is said. */
export function handOver(page: PageResult, { maxTextBytes }: { maxTextBytes: number }): PageResult {
  if (page.status === 'failed') return page
  const { text, isCut } = fitBytes(page.text, maxTextBytes)
  if (!isCut) return page
  return { ...page, text, notices: [...page.notices, cutNotice(text, page)] }
}

const cutNotice = (shown: string, { text }: FetchedPage): string =>
  `[Page text cut: the first ${shown.length} of ${text.length} characters are shown.]`
