import type { Failure } from '@tollgate/contracts'
import { z } from 'zod'
import type { FailureKind } from './failure-kind.ts'
import { safeText } from './safe-text.ts'
import { toolRefusalIn } from './tool-refusal.ts'
import { brokenAnswer, type Origin, UpstreamFault } from './upstream-fault.ts'

interface Row {
  failure: Failure
  text: string
  retryable: boolean
  /** The provider's own words may reach the client: they are about the client's request, not about our account. */
  quote: boolean
  kind?: FailureKind
}

/**
 * What an upstream status means here. Only 400, 404, 413, 422 and 429 speak about the client's own request and are
 * quoted, sanitised; a refusal of the gateway's credential or account is a 502 with a fixed text.
 */
function rowOf(status: number): Row {
  switch (status) {
    case 400:
      return {
        failure: 'invalid_request',
        text: 'the model provider refused the request',
        retryable: false,
        quote: true,
      }
    case 404:
      return { failure: 'not_found', text: 'the model provider does not know this model', retryable: true, quote: true }
    case 413:
      return {
        failure: 'too_large',
        text: 'the request is too large for the model provider',
        retryable: false,
        quote: true,
      }
    case 422:
      return { failure: 'invalid_value', text: 'the model provider refused the request', retryable: false, quote: true }
    case 429:
      return {
        failure: 'rate_limited',
        text: 'the model provider limits the rate of requests',
        retryable: true,
        quote: true,
      }
    case 401:
    case 402:
    case 403:
      return {
        failure: 'upstream',
        text: "the model provider refused this gateway's account",
        retryable: true,
        quote: false,
        kind: 'account',
      }
    case 408:
    case 504:
      return { failure: 'timeout', text: 'the model provider did not answer in time', retryable: true, quote: false }
    case 503:
    case 529:
      return { failure: 'unavailable', text: 'the model provider is overloaded', retryable: true, quote: false }
    default:
      return { failure: 'upstream', text: 'the model provider failed', retryable: true, quote: false }
  }
}

/** Every error form seen from vendors and compatible servers; only the members that are read. */
const errorBody = z.union([
  z.object({
    error: z.object({
      message: z.string().optional().catch(undefined),
      type: z.string().optional().catch(undefined),
      code: z.union([z.string(), z.number()]).optional().catch(undefined),
      details: z
        .array(z.object({ retryDelay: z.string().optional().catch(undefined) }))
        .optional()
        .catch(undefined),
    }),
  }),
  z.object({ error: z.string() }).transform(({ error }) => ({ error: { message: error } })),
  z
    .object({
      message: z.string(),
      type: z.string().optional().catch(undefined),
      code: z.union([z.string(), z.number()]).optional().catch(undefined),
    })
    .transform((error) => ({ error })),
  z.object({ detail: z.string() }).transform(({ detail }) => ({ error: { message: detail } })),
])

interface Complaint {
  message?: string | undefined
  type?: string | undefined
  code?: string | number | undefined
  details?: { retryDelay?: string | undefined }[] | undefined
}

function readComplaint(body: unknown): Complaint {
  const read = errorBody.safeParse(body)
  return read.success ? read.data.error : {}
}

/** A provider tells that the operator's account is out of money with the statuses it uses for its clients' mistakes. */
const ABOUT_THE_ACCOUNT =
  /insufficient_quota|credit balance|billing|spend(?:ing)? limit|api usage limits|exceeded your current quota|api key not valid/i

/** Google tells in the body when to come back, of a quota for minutes with the very words of one that is used up. */
const DELAY = /^(\d+(?:\.\d+)?)s$/

/** The fault an answer with an error status stands for. `body` is its JSON, undefined when it was none. */
export function faultOfStatus(
  origin: Origin,
  status: number,
  body: unknown,
  headers: Record<string, string | string[] | undefined> = {},
): UpstreamFault {
  if (status >= 300 && status < 400) return brokenAnswer('redirect', origin)
  const { message = '', type = '', code = '', details = [] } = readComplaint(body)
  const delay = details.flatMap(({ retryDelay }) => DELAY.exec(retryDelay ?? '')?.[1] ?? [])[0]
  const aboutUs = delay === undefined && ABOUT_THE_ACCOUNT.test(`${type} ${code} ${message}`)
  // a 404 that is no JSON is a wrong address, which only the operator can put right
  const row = rowOf(aboutUs ? 402 : status === 404 && body === undefined ? 502 : status)
  const text = row.quote ? safeText(message, origin.hidden) : ''
  const passed = passedHeaders(
    delay === undefined ? headers : { 'retry-after': String(Math.ceil(Number(delay))), ...headers },
  )
  return new UpstreamFault(row.failure, text || row.text, origin, {
    upstreamStatus: status,
    retryable: row.retryable,
    ...(row.kind && { kind: row.kind }),
    ...(status === 400 && { toolRefusal: toolRefusalIn(body) }),
    cause: new Error(`provider ${origin.name} answered ${status}`),
    ...(aboutUs ? {} : { headers: passed, ...retryAfter(passed) }),
  })
}

/** Words that vendors put into `type` or `code` of an error inside a stream, and the status each stands for. */
const STATUS_OF_WORD: [RegExp, number][] = [
  [/overloaded/, 529],
  [/rate.?limit|too_many/, 429],
  [/billing|insufficient_quota|payment/, 402],
  [/authentication|unauthorized|permission|forbidden|invalid_api_key/, 401],
  [/not_found/, 404],
  [/too_large|request_too_large/, 413],
  [/timeout/, 504],
  [/unavailable/, 503],
  [/invalid|bad_request|context_length/, 400],
]

/** The fault of an error that came inside a 200 (BR-031, BR-035): `frame` is the frame's JSON. */
export function faultOfFrame(origin: Origin, frame: unknown): UpstreamFault {
  const { type = '', code = '' } = readComplaint(frame)
  const numeric = Number(code)
  if (Number.isInteger(numeric) && numeric >= 400 && numeric <= 599) return faultOfStatus(origin, numeric, frame)
  const words = `${type} ${code}`.toLowerCase()
  return faultOfStatus(origin, STATUS_OF_WORD.find(([word]) => word.test(words))?.[1] ?? 500, frame)
}

const PASSED = /^(?:retry-after(?:-ms)?|x-ratelimit-[\w-]+|anthropic-ratelimit-[\w-]+)$/
const MOST_PASSED = 32

/** Only what tells a client when to come back; cookies, hop-by-hop and request ids stay here. */
function passedHeaders(headers: Record<string, string | string[] | undefined>): Record<string, string> {
  const passed: Record<string, string> = {}
  for (const [name, value] of Object.entries(headers)) {
    if (Object.keys(passed).length >= MOST_PASSED) break
    const key = name.toLowerCase()
    if (typeof value === 'string' && PASSED.test(key) && /^[\x20-\x7e]{1,256}$/.test(value)) passed[key] = value
  }
  return passed
}

function retryAfter(headers: Record<string, string>): { retryAfterSeconds?: number } {
  const ms = Number(headers['retry-after-ms'])
  if (headers['retry-after-ms'] !== undefined && Number.isFinite(ms) && ms >= 0)
    return { retryAfterSeconds: Math.ceil(ms / 1000) }
  const stated = headers['retry-after']
  if (stated === undefined) return {}
  const seconds = Number(stated)
  if (Number.isFinite(seconds) && seconds >= 0) return { retryAfterSeconds: Math.ceil(seconds) }
  // an HTTP date begins with the day's name; what else a date parser makes something of is none
  const at = /^[A-Z][a-z]{2}/.test(stated) ? Date.parse(stated) : Number.NaN
  return Number.isNaN(at) ? {} : { retryAfterSeconds: Math.max(0, Math.ceil((at - Date.now()) / 1000)) }
}
