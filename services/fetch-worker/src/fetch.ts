import { SpanStatusCode, trace } from '@opentelemetry/api'
import {
  builtinFetchLabel,
  type DomainPolicy,
  type FetchedPage,
  type FetchFailed,
  type FetchFailure,
  type fetchPage,
} from '@tollgate/contracts'
import type { Download, Downloaded, JudgeHop, ResponseHead } from '@tollgate/http'
import type { Log } from '@tollgate/telemetry'
import type { z } from 'zod'
import { mediaType, readingOf } from './extract/content-type.ts'
import { defaultReading, type ExtractedResult } from './extract/job.ts'
import type { ExtractPool } from './extract/pool.ts'
import { extractSeconds, fetchBytes } from './metrics.ts'
import { defaults } from './settings.ts'

export interface FetchNeeds {
  download: Download
  /** The guard, and the one that also lets private hosts through (S-77). */
  judge: JudgeHop
  judgePrivate: JudgeHop
  pool: ExtractPool
  maxBodyBytes: number
  log: Log
}

/** What a page is asked for, apart from who asks and how much of it they want. */
export interface PageRequest {
  url: string
  policy: DomainPolicy
  allowPrivateHosts: boolean
  timeoutMs: number
}

export type PageEvent = z.input<NonNullable<(typeof fetchPage)['event']>>
/** The whole text; how much of it is handed over is the caller's affair. */
export type PageResult = FetchedPage | FetchFailed

/** Downloads a page and reads it. Rejects only when `signal` fires. */
export async function readPage(
  request: PageRequest,
  needs: FetchNeeds,
  signal: AbortSignal,
  emit: (event: PageEvent) => void,
): Promise<PageResult> {
  emit({ type: 'downloading' })
  const answer = await needs.download({
    url: request.url,
    judge: request.allowPrivateHosts ? needs.judgePrivate : needs.judge,
    policy: request.policy,
    accept: defaults.accept,
    maxBytes: needs.maxBodyBytes,
    maxRedirects: defaults.maxRedirects,
    allowDowngrade: false,
    deadline: Date.now() + request.timeoutMs,
    signal,
    wants: isReadable,
  })
  if (answer.outcome === 'failed') {
    if (answer.failure === 'network')
      needs.log.debug({ stage: answer.stage, err: answer.cause }, 'a page could not be reached')
    return failed(answer.failure)
  }
  const { head, body } = answer
  // Judged before anything of it is read: an error page is an error, whatever it says (BR-101).
  if (!isSuccess(head.status)) return { ...failed('http_status'), httpStatus: head.status }
  if (!body) return failed('unsupported_type')
  fetchBytes.add(body.bytes.length, {})
  emit({ type: 'extracting' })
  const extracted = await extract(needs.pool, answer.head, body, signal)
  if (extracted.status === 'failed') return extractionFailed(extracted.failure)
  const contentType = mediaType(head.header('content-type'))
  return {
    status: 'ok',
    requestedUrl: request.url,
    finalUrl: head.url.href,
    ...(contentType === undefined ? {} : { contentType }),
    ...(extracted.title === undefined ? {} : { title: extracted.title }),
    httpStatus: head.status,
    facts: extracted.facts,
    format: extracted.format,
    extractor: extracted.extractor,
    text: extracted.text,
    offset: 0,
    bodyCut: body.truncated,
    likelyJsRendered: extracted.likelyJsRendered,
    notices: extracted.notices,
    bytes: body.bytes.length,
    label: builtinFetchLabel,
  }
}

const isSuccess = (status: number): boolean => status >= 200 && status < 300
const isReadable = ({ status, header }: ResponseHead): boolean =>
  isSuccess(status) && readingOf(header('content-type')) !== undefined

const failed = (failure: FetchFailure): FetchFailed => ({ status: 'failed', failure, label: builtinFetchLabel })

function extractionFailed(failure: Extract<ExtractedResult, { status: 'failed' }>['failure']): FetchFailed {
  if (failure === 'unsupported') return failed('unsupported_type')
  if (failure === 'cut') return failed('too_large')
  return { ...failed('extraction_failed'), reason: failure }
}

const tracer = trace.getTracer('@tollgate/fetch-worker')

function extract(
  pool: ExtractPool,
  head: ResponseHead,
  body: NonNullable<Extract<Downloaded, { outcome: 'answered' }>['body']>,
  signal: AbortSignal,
): Promise<ExtractedResult> {
  return tracer.startActiveSpan('extract', { attributes: { 'extract.bytes': body.bytes.length } }, async (span) => {
    const started = performance.now()
    try {
      const job = {
        bytes: body.bytes,
        contentType: head.header('content-type'),
        url: head.url.href,
        isCut: body.truncated,
        ...defaultReading,
      }
      const result = await pool.run(job, signal)
      const kind = result.status === 'ok' ? result.kind : 'failed'
      span.setAttribute('extract.kind', kind)
      if (result.status === 'failed') span.setStatus({ code: SpanStatusCode.ERROR, message: result.failure })
      extractSeconds.record((performance.now() - started) / 1_000, { kind })
      return result
    } finally {
      span.end()
    }
  })
}
