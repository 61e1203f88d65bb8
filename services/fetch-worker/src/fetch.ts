import { builtinFetchLabel, type FetchedPage, type FetchFailed, type fetchPage } from '@tollgate/contracts'
import type { Download, Downloaded, DownloadRequest, LimitedBody, ResponseHead } from '@tollgate/http'
import type { Log } from '@tollgate/telemetry'
import type { z } from 'zod'
import { declaredOf, isDisguised, isReadable } from './accepted.ts'
import { mediaType } from './extract/content-type.ts'
import type { ExtractedResult } from './extract/job.ts'
import { notices } from './extract/notices.ts'
import type { ExtractPool, PoolJob } from './extract/pool.ts'
import { extractInSpan } from './extract-in-span.ts'
import { downloadFailed, failed } from './failures.ts'
import type { Judges } from './judges.ts'
import { fetchBytes } from './metrics.ts'
import { defaults } from './settings.ts'

export interface FetchNeeds {
  download: Download
  judges: Judges
  pool: ExtractPool
  /** For calls that set no limit of their own. */
  maxBodyBytes: number
  log: Log
}

type PageInput = z.output<(typeof fetchPage)['input']>

/** What a page is asked for, apart from who asks and how much of it they want. */
export interface PageRequest
  extends Pick<
    PageInput,
    | 'url'
    | 'policy'
    | 'rules'
    | 'reads'
    | 'anyStatus'
    | 'format'
    | 'part'
    | 'assets'
    | 'allowPrivateHosts'
    | 'timeoutMs'
  > {
  pdfPage: number
  /** Most bytes of the extracted text, where the extractor's own limit is not the one (F-35). */
  textBytes: number | undefined
}

export type PageEvent = z.input<NonNullable<(typeof fetchPage)['event']>>
/** The whole text; how much of it is handed over is the caller's affair. */
export type PageResult = FetchedPage | FetchFailed

/** With the head of an answer that was read; or only the head when it says that what is known still stands. */
export type PageRead = { page: PageResult; head?: ResponseHead } | { unchanged: ResponseHead }

/** Downloads a page and reads it. Rejects only when `signal` fires. */
export async function readPage(
  request: PageRequest,
  needs: FetchNeeds,
  signal: AbortSignal,
  emit: (event: PageEvent) => void,
  known?: NonNullable<DownloadRequest['known']>,
): Promise<PageRead> {
  emit({ type: 'downloading' })
  const maxBytes = request.rules.maxBodyBytes ?? needs.maxBodyBytes
  const answer = await downloadPage(request, needs, { maxBytes, signal, ...(known ? { known } : {}) })
  if (answer.outcome === 'failed') return { page: downloadFailed(answer, needs.log) }
  const { head, body } = answer
  if (known && head.status === 304) return { unchanged: head }
  const refused = judgeAnswer(request, head, body)
  if (refused || !body) return { page: refused ?? failed('internal') }
  fetchBytes.add(body.bytes.length, {})
  emit({ type: 'extracting' })
  return { page: await extractPage(request, needs.pool, { head, body, maxBytes }, signal), head }
}

/** What came as a page's body, read in the pool. */
export async function extractPage(
  request: PageRequest,
  pool: ExtractPool,
  { head, body, maxBytes }: { head: ResponseHead; body: LimitedBody; maxBytes: number },
  signal: AbortSignal,
): Promise<PageResult> {
  const extracted = await extractInSpan(pool, jobOf(request, head, body), signal)
  if (extracted.status === 'failed') return extractionFailed(extracted.failure, head)
  return pageOf(request, head, body, extracted, maxBytes)
}

const downloadPage = (
  request: PageRequest,
  { download, judges }: FetchNeeds,
  more: Pick<DownloadRequest, 'maxBytes' | 'signal' | 'known'>,
): Promise<Downloaded> => {
  const { url, policy, rules, timeoutMs } = request
  return download({
    url,
    judge: judges(request),
    policy,
    accept: defaults.accept,
    maxRedirects: rules.maxRedirects ?? defaults.maxRedirects,
    allowDowngrade: rules.allowDowngrade,
    direct: rules.direct,
    deadline: Date.now() + timeoutMs,
    ...(rules.operationTimeoutMs === undefined ? {} : { operationTimeoutMs: rules.operationTimeoutMs }),
    wants: (head) => isWanted(head.status, request) && isReadable(head, request.reads),
    ...more,
  })
}

const isWanted = (status: number, { anyStatus }: PageRequest): boolean => anyStatus || (status >= 200 && status < 300)

/** Judged before anything of it is read: an error page is an error, whatever it says (BR-101). */
function judgeAnswer(request: PageRequest, head: ResponseHead, body: LimitedBody | undefined): FetchFailed | undefined {
  const httpStatus = head.status
  if (!isWanted(httpStatus, request)) return failed('http_status', { httpStatus })
  if (body && !isDisguised(body.bytes, request.reads)) return undefined
  return failed('unsupported_type', { httpStatus, declared: declaredOf(head) })
}

/** Who takes textual types alone wants what is no HTML as it came (WM-39). */
const jobOf = (request: PageRequest, head: ResponseHead, body: LimitedBody): PoolJob => ({
  bytes: body.bytes,
  contentType: head.header('content-type'),
  url: head.url.href,
  isCut: body.truncated,
  format: request.format,
  part: request.part,
  assets: request.assets,
  feeds: request.reads === 'text' ? 'as-is' : 'listed',
  challenges: request.anyStatus ? 'as-is' : 'refused',
  pdfPage: request.pdfPage,
  ...(request.textBytes === undefined ? {} : { textBytes: request.textBytes }),
})

function extractionFailed(
  failure: Extract<ExtractedResult, { status: 'failed' }>['failure'],
  head: ResponseHead,
): FetchFailed {
  const httpStatus = head.status
  if (failure === 'unsupported') return failed('unsupported_type', { httpStatus, declared: declaredOf(head) })
  if (failure === 'cut') return failed('too_large', { httpStatus, declared: declaredOf(head) })
  return failed('extraction_failed', { httpStatus, reason: failure })
}

function pageOf(
  request: PageRequest,
  head: ResponseHead,
  body: LimitedBody,
  extracted: Extract<ExtractedResult, { status: 'ok' }>,
  maxBytes: number,
): FetchedPage {
  const contentType = mediaType(head.header('content-type'))
  return {
    status: 'ok',
    requestedUrl: request.url,
    finalUrl: head.url.href,
    httpStatus: head.status,
    ...(contentType === undefined ? {} : { contentType }),
    ...(extracted.title === undefined ? {} : { title: extracted.title }),
    facts: extracted.facts,
    format: extracted.format,
    extractor: extracted.extractor,
    text: extracted.text,
    offset: 0,
    ...(extracted.nextPdfPage === undefined ? {} : { nextPdfPage: extracted.nextPdfPage }),
    bodyCut: body.truncated,
    likelyJsRendered: extracted.likelyJsRendered,
    ...(extracted.assets ? { assets: extracted.assets } : {}),
    notices: extracted.notices.map((said) => (said === notices.source ? cutAt(maxBytes) : said)),
    bytes: body.bytes.length,
    label: builtinFetchLabel,
  }
}

/** The sentence of F-23, with the limit that was this call's. */
const cutAt = (maxBytes: number): string =>
  maxBytes === defaults.maxBodyBytes
    ? notices.source
    : `[Source content truncated at the ${maxBytes.toLocaleString('en-US')} byte response limit.]`
