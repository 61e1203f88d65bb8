import type { fetchPage, Tenancy } from '@tollgate/contracts'
import type { z } from 'zod'
import { type FetchNeeds, type PageEvent, type PageRequest, type PageResult, readPage } from './fetch.ts'
import { handOver } from './hand-over.ts'
import { fetchPages } from './metrics.ts'
import { openPageCache, type PageCacheLimits } from './page-cache.ts'
import { openShared } from './shared.ts'

type PageInput = z.output<(typeof fetchPage)['input']>

export type Pages = (input: PageInput, signal: AbortSignal, emit: (event: PageEvent) => void) => Promise<PageResult>

/** Who pages through a text gets all of it, in windows; the extractor's own limit is for those who get a beginning. */
export const PAGED_TEXT_BYTES = 8 * 1024 * 1024

/** Reads pages: what several want at once is downloaded once, and what was read a moment ago is not downloaded again. */
export function openPages(needs: FetchNeeds, limits: PageCacheLimits): Pages {
  const cache = openPageCache(limits)
  const underWay = openShared<PageResult>()

  const read = async (
    key: string,
    request: PageRequest,
    signal: AbortSignal,
    emit: (event: PageEvent) => void,
  ): Promise<PageResult> => {
    const answer = await readPage(request, needs, signal, emit, cache.known(key))
    if ('unchanged' in answer) {
      const page = cache.renew(key, answer.unchanged)
      if (!page) return read(key, request, signal, emit)
      fetchPages.add(1, { from: 'revalidated' })
      return page
    }
    const { page, head } = answer
    if (page.status === 'ok') fetchPages.add(1, { from: 'web' })
    if (page.status === 'ok' && head && isKept(page.httpStatus)) cache.keep(key, page, head)
    return page
  }

  return async (input, signal, emit) => {
    const request = requestOf(input)
    const key = keyOf(input.tenancy, request)
    const isBeginning = (input.window?.offset ?? 0) === 0
    const held = cache.find(key, isBeginning ? 'beginning' : 'continuation')
    if (held) fetchPages.add(1, { from: 'cache' })
    const page =
      held ?? (await underWay.run(`${request.timeoutMs} ${key}`, signal, (shared) => read(key, request, shared, emit)))
    return handOver(page, input)
  }
}

/** An error is asked for anew, whatever page came with it (BR-101). */
const isKept = (status: number): boolean => status >= 200 && status < 300

/** All of a call but whose it is and how much of the text it wants: what is added to the contract counts here at once. */
function requestOf({ tenancy: _whose, maxTextBytes: _most, window, pdfPage = 1, ...wanted }: PageInput): PageRequest {
  return { ...wanted, pdfPage, textBytes: window ? PAGED_TEXT_BYTES : undefined }
}

/** Everything that decides what is downloaded and what is made of it, and whose it is: a workspace sees its own pages only. */
const keyOf = ({ organization, workspace }: Tenancy, { timeoutMs: _, ...request }: PageRequest): string =>
  JSON.stringify([organization, workspace, request])
