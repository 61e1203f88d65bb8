import { STATUS_CODES } from 'node:http'
import { Fault } from '@tollgate/contracts'
import type { Log } from '@tollgate/telemetry'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { Invalid } from './validation.ts'

/** How an error is told: its status and the text or list a client may read. */
interface Told {
  status: number
  detail: string | object[]
  code?: string
  retryAfterSeconds?: number
}

/** The one place where a failure becomes an HTTP answer. */
export function answerErrors(app: FastifyInstance, log: Log): void {
  app.setErrorHandler((thrown, request, reply) => {
    const told = tell(thrown)
    if (told.status >= 500) {
      log[levelOf(told.status)](
        { request: request.id, route: request.routeOptions.url, status: told.status, err: thrown },
        'request failed',
      )
    }
    return answer(request, reply, told)
  })
  app.setNotFoundHandler((request, reply) => answer(request, reply, { status: 404, detail: 'Not Found' }))
}

/** What a site or a model provider does is not ours to be woken for. */
export const levelOf = (status: number): 'warn' | 'error' => (status === 502 || status === 504 ? 'warn' : 'error')

function answer(request: FastifyRequest, reply: FastifyReply, told: Told): FastifyReply {
  if (told.status === 401) reply.header('www-authenticate', 'Bearer')
  if (told.retryAfterSeconds !== undefined) reply.header('retry-after', String(Math.ceil(told.retryAfterSeconds)))
  const text = JSON.stringify(errorBody(told, speaksMessages(request)))
  // as text, so that no response schema of the route is asked about it
  return reply.code(told.status).type('application/json; charset=utf-8').serializer(asItIs).send(text)
}

const asItIs = (text: unknown): string => String(text)

export function errorBody({ status, detail, code }: Told, messages: boolean): object {
  const shown =
    messages && typeof detail === 'string'
      ? { type: 'error', error: { type: messagesTypes[status] ?? 'api_error', message: detail } }
      : detail
  return { detail: shown, ...(code === undefined ? {} : { code }) }
}

const messagesTypes: Record<number, string> = {
  400: 'invalid_request_error',
  401: 'authentication_error',
  403: 'permission_error',
  404: 'not_found_error',
  429: 'rate_limit_error',
}

/** Errors have the form of Anthropic's API on its own path, and about files where its header is sent (FI-03). */
const speaksMessages = ({ url, headers }: FastifyRequest): boolean =>
  /^(\/api)?\/v1\/messages(?![^/?])/.test(url) ||
  (headers['anthropic-version'] !== undefined && /^(\/api)?\/v1\/files(?![^/?])/.test(url))

/** A refusal may name what the client wrote, which may be as long as its body. */
const MOST_DETAIL = 2_000
const clipped = (text: string): string =>
  text.length <= MOST_DETAIL ? text : `${text.slice(0, MOST_DETAIL - 1).toWellFormed()}…`

const codes: ReadonlySet<string> = new Set(['pricing_required', 'insufficient_funds'])

export function tell(thrown: unknown): Told {
  if (thrown instanceof Invalid) return { status: thrown.statusCode, detail: thrown.problems }
  const own = ownStatus(thrown)
  if (own !== undefined) return { status: own, detail: httpTexts[own] ?? STATUS_CODES[own] ?? 'bad request' }
  const fault = Fault.from(thrown)
  return {
    status: fault.status,
    detail: clipped(fault.message),
    ...(codes.has(fault.failure) ? { code: fault.failure } : {}),
    ...(fault.retryAfterSeconds === undefined ? {} : { retryAfterSeconds: fault.retryAfterSeconds }),
  }
}

/** What Fastify itself refuses (a body too large, a media type it has no reader for) carries a status of the 400s. */
function ownStatus(thrown: unknown): number | undefined {
  if (!(thrown instanceof Error) || !('statusCode' in thrown) || !('code' in thrown)) return undefined
  const { statusCode } = thrown
  return typeof statusCode === 'number' && statusCode >= 400 && statusCode < 500 ? statusCode : undefined
}

const httpTexts: Record<number, string> = {
  413: 'the request body is too large',
  415: 'the request body must be application/json',
}
