import { builtinFetchLabel, type FetchedPage, type fetchPage } from '@tollgate/contracts'
import type { z } from 'zod'
import { fitBytes } from './extract/text.ts'
import type { PageResult } from './fetch.ts'
import { countCodePoints, openWindow } from './text-window.ts'

type Wanted = Pick<z.output<(typeof fetchPage)['input']>, 'maxTextBytes' | 'window'>

/** Written as JSON a text can be twice as long, and a reply holds 8 MiB. */
const MOST_TEXT_BYTES = 3.5 * 1024 * 1024

/** As much of a page's text as its caller wants: a window of it, or its beginning; what was kept back is said. */
export function handOver(page: PageResult, { maxTextBytes, window }: Wanted): PageResult {
  if (page.status === 'failed') return page
  const maxBytes = Math.min(maxTextBytes, MOST_TEXT_BYTES)
  if (window) return inWindow(page, window, maxBytes)
  const { text, isCut } = fitBytes(page.text, maxBytes)
  if (!isCut) return page
  return { ...page, text, notices: [...page.notices, cutNotice(text, page)] }
}

function inWindow(page: FetchedPage, wanted: NonNullable<Wanted['window']>, maxBytes: number): PageResult {
  const window = openWindow(page.text, { ...wanted, maxBytes })
  if (window) return { ...page, ...window }
  return {
    status: 'failed',
    failure: 'offset_past_end',
    httpStatus: page.httpStatus,
    totalChars: countCodePoints(page.text),
    label: builtinFetchLabel,
  }
}

const cutNotice = (shown: string, { text }: FetchedPage): string =>
  `[Page text cut: the first ${shown.length} of ${text.length} characters are shown.]`
