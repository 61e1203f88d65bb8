import { builtinFetchLabel, type FetchFailed, type fetchImage } from '@tollgate/contracts'
import type { Download, LimitedBody, ResponseHead } from '@tollgate/http'
import type { Log } from '@tollgate/telemetry'
import type { z } from 'zod'
import { declaredOf } from '../accepted.ts'
import { mediaType } from '../extract/content-type.ts'
import { downloadFailed, failed } from '../failures.ts'
import type { PageEvent } from '../fetch.ts'
import type { Judges } from '../judges.ts'
import { fetchBytes } from '../metrics.ts'
import { defaults } from '../settings.ts'
import { formatOf } from './identify.ts'
import type { Prepared } from './job.ts'
import type { ImagePool } from './pool.ts'

export interface ImageNeeds {
  download: Download
  judges: Judges
  images: ImagePool
  log: Log
}

export type ImageInput = z.output<(typeof fetchImage)['input']>
export type ImageResult = z.output<(typeof fetchImage)['output']>
type Refusal = Extract<ImageResult, { status: 'failed' }>

/** Downloads an image and makes it fit for a model (WM-50 to WM-57). Rejects only when `signal` fires. */
export async function readImage(
  input: ImageInput,
  { download, judges, images, log }: ImageNeeds,
  signal: AbortSignal,
  emit: (event: PageEvent) => void,
): Promise<ImageResult> {
  const { url, policy, rules, timeoutMs, maxEdgePx, maxEncodedBytes } = input
  const maxBytes = rules.maxBodyBytes ?? defaults.maxImageBytes
  emit({ type: 'downloading' })
  const answer = await download({
    url,
    judge: judges(input),
    policy,
    accept: defaults.acceptImage,
    maxBytes,
    maxRedirects: rules.maxRedirects ?? defaults.maxRedirects,
    allowDowngrade: rules.allowDowngrade,
    direct: rules.direct,
    deadline: Date.now() + timeoutMs,
    ...(rules.operationTimeoutMs === undefined ? {} : { operationTimeoutMs: rules.operationTimeoutMs }),
    signal,
    wants: (head) => judgeHead(head, maxBytes) === undefined,
  })
  if (answer.outcome === 'failed') return downloadFailed(answer, log)
  const { head, body } = answer
  const refused = judgeHead(head, maxBytes) ?? judgeBody(head, body)
  if (refused || !body) return refused ?? failed('internal')
  fetchBytes.add(body.bytes.length, {})
  emit({ type: 'extracting' })
  const type = mediaType(head.header('content-type'))
  const declared = type === undefined ? undefined : formatOf(type)
  const result = await images.run({ bytes: body.bytes, declared, maxEdgePx, maxEncodedBytes }, signal)
  if (result.status === 'failed') return { ...problems[result.failure], httpStatus: head.status, ...said(head) }
  return imageOf(result, head, body)
}

/** Judged before the body is read: status, declared type, declared size. */
function judgeHead(head: ResponseHead, maxBytes: number): Refusal | undefined {
  const httpStatus = head.status
  if (httpStatus < 200 || httpStatus > 299) return failed('http_status', { httpStatus })
  const { contentType, bytes } = declaredOf(head)
  if (contentType !== undefined && formatOf(contentType) === undefined) {
    const problem = contentType === 'image/svg+xml' ? problems.svg : problems.not_an_image
    return { ...problem, httpStatus, ...said(head) }
  }
  return bytes !== undefined && bytes > maxBytes ? failed('too_large', { httpStatus, ...said(head) }) : undefined
}

/** An image is refused when it grows past the limit, never cut (WM-53). */
const judgeBody = (head: ResponseHead, body: LimitedBody | undefined): FetchFailed | undefined =>
  body?.truncated ? failed('too_large', { httpStatus: head.status, ...said(head) }) : undefined

const said = (head: ResponseHead) => ({ declared: declaredOf(head) })

const problems: Record<Extract<Prepared, { status: 'failed' }>['failure'], Refusal> = {
  not_an_image: { ...failed('unsupported_type'), imageProblem: 'not_an_image' },
  mislabelled: { ...failed('unsupported_type'), imageProblem: 'mislabelled' },
  svg: { ...failed('unsupported_type'), imageProblem: 'svg' },
  too_many_pixels: { ...failed('too_large'), imageProblem: 'too_many_pixels' },
  damaged: { ...failed('extraction_failed', { reason: 'damaged' }), imageProblem: 'damaged' },
  unfitting: failed('too_large'),
  time: failed('extraction_failed', { reason: 'time' }),
  memory: failed('extraction_failed', { reason: 'memory' }),
  crash: failed('extraction_failed', { reason: 'crash' }),
}

function imageOf(
  { format, width, height, mimeType, made }: Extract<Prepared, { status: 'ok' }>,
  head: ResponseHead,
  { bytes }: LimitedBody,
): ImageResult {
  return {
    status: 'ok',
    format,
    width,
    height,
    ...(made ? { scaled: { width: made.width, height: made.height } } : {}),
    mimeType,
    data: Buffer.from(made?.data ?? bytes).toString('base64'),
    finalUrl: head.url.href,
    bytes: bytes.length,
    label: builtinFetchLabel,
  }
}
