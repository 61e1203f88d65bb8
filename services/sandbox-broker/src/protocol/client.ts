import { Fault } from '@tollgate/contracts'
import { openTrustedClient, readLimited, type TrustedAnswer, type TrustedRequest } from '@tollgate/http'
import type { z } from 'zod'
import type { CallLimits, ExecCall, Execution, Provider, Refusal } from '../provider.ts'
import { multipartUpload } from './multipart.ts'
import { execResponse, fileList, fileWritten, sessionHandle } from './shapes.ts'
import { readStreamed } from './streamed-exec.ts'

/** Read at each call: an operator may point the broker elsewhere while it runs. Private addresses are fine (CP-27). */
export interface ProtocolSettings {
  url?: string | undefined
  token?: string | undefined
}

/** How much longer than granted an answer is waited for: transport and the backend's own teardown (CP-16). */
const PATIENCE_MS = 10_000
/** Leasing, releasing and moving files are no work of the program's. */
const OPERATION_MS = 15_000
const TRANSFER_MS = 60_000
const MAX_RESULT_BYTES = 16 * 1024 * 1024

/** Client of any backend that serves code-execution protocol v1 (CP-01). */
export function openProtocol(settings: ProtocolSettings): Provider {
  const http = openTrustedClient()

  const request = (
    method: TrustedRequest['method'],
    path: string,
    limits: CallLimits,
    patienceMs: number,
    rest: Partial<TrustedRequest> = {},
  ): TrustedRequest => ({
    method,
    url: baseUrl(settings) + path,
    signal: limits.signal,
    deadline: Math.min(limits.deadline, Date.now() + patienceMs),
    ...rest,
    headers: { ...(settings.token ? { authorization: `Bearer ${settings.token}` } : {}), ...rest.headers },
  })
  const send = (...args: Parameters<typeof request>) => http.send(request(...args))

  /** Asks for events, and takes a plain answer from a backend that knows none. */
  const execStreamed = async (asked: TrustedRequest, onOutput: NonNullable<ExecCall['onOutput']>) => {
    const answer = await http.stream(asked)
    if (answer.status === 'failed') return refusal(answer)
    const { header, httpStatus } = answer
    try {
      if (!/^text\/event-stream\b/i.test(header('content-type') ?? '')) {
        const { bytes, truncated } = await readLimited(answer.body, [], MAX_RESULT_BYTES)
        if (truncated) return broken
        const result = read({ status: 'answered', bytes, httpStatus, header }, execResponse)
        return result.status === 'failed' ? result : executionOf(result.body)
      }
      const streamed = await readStreamed(answer.body, MAX_RESULT_BYTES, onOutput)
      if (streamed.status === 'ok') return executionOf(streamed.body)
      return streamed.status === 'error'
        ? refusal({ httpStatus: streamed.httpStatus, header: () => undefined })
        : broken
    } catch {
      asked.signal.throwIfAborted()
      return refusal({ status: 'failed', tag: Date.now() >= asked.deadline ? 'timeout' : 'network' })
    }
  }

  return {
    name: 'protocol',
    capabilities: { images: true, files: true },

    async create({ image, idleTimeoutSeconds, maxLifetimeSeconds }, limits) {
      const json = { image, idle_timeout_seconds: idleTimeoutSeconds, max_lifetime_seconds: maxLifetimeSeconds }
      const handle = read(await send('POST', '/sessions', limits, OPERATION_MS, { json }), sessionHandle)
      if (handle.status === 'failed') return handle
      const { session_id: session, isolation, idle_timeout_seconds: idle, max_lifetime_seconds: life } = handle.body
      return {
        status: 'ok',
        session,
        ...(isolation === undefined ? {} : { isolation }),
        ...(idle === undefined ? {} : { idleTimeoutSeconds: idle }),
        ...(life === undefined ? {} : { maxLifetimeSeconds: life }),
      }
    },

    async exec(session, { kind, code, timeoutSeconds, onOutput }, limits) {
      const json = { ...toolCall(kind, code), timeout_seconds: timeoutSeconds }
      const where = `${at(session)}/exec`
      const patienceMs = timeoutSeconds * 1_000 + PATIENCE_MS
      if (onOutput) {
        const headers = { accept: 'text/event-stream, application/json', 'accept-encoding': 'identity' }
        return execStreamed(request('POST', where, limits, patienceMs, { json, headers }), onOutput)
      }
      const answer = await send('POST', where, limits, patienceMs, { json, maxBytes: MAX_RESULT_BYTES })
      const result = read(answer, execResponse)
      return result.status === 'failed' ? result : executionOf(result.body)
    },

    async destroy(session, limits) {
      const answer = await send('DELETE', at(session), limits, OPERATION_MS)
      if (answer.status === 'failed') return refusal(answer)
      return succeeded(answer) || answer.httpStatus === 404 ? { status: 'ok' } : refusal(answer)
    },

    async list(session, path, limits) {
      const answer = await send(
        'GET',
        `${at(session)}/files/list?path=${encodeURIComponent(path)}`,
        limits,
        OPERATION_MS,
      )
      const listing = read(answer, fileList)
      if (listing.status === 'failed') return listing
      const files = listing.body.files.map(({ path, size_bytes: bytes, mime_type, modified_at }) => ({
        path,
        bytes,
        ...(mime_type === undefined ? {} : { mediaType: mime_type }),
        ...(modified_at === undefined ? {} : { modifiedAt: modified_at }),
      }))
      return { status: 'ok', files }
    },

    async get(session, path, limits) {
      const where = `${at(session)}/files?path=${encodeURIComponent(path)}`
      // bytes as they are: a compressed answer could not be streamed on
      const rest = { headers: { accept: '*/*', 'accept-encoding': 'identity' } }
      const answer = await http.stream(request('GET', where, limits, TRANSFER_MS, rest))
      if (answer.status === 'failed') return refusal(answer)
      return {
        status: 'ok',
        mediaType: answer.header('content-type') ?? 'application/octet-stream',
        content: answer.body,
      }
    },

    async put(session, file, limits) {
      const answer = await send('POST', `${at(session)}/files`, limits, TRANSFER_MS, multipartUpload(file))
      const written = read(answer, fileWritten)
      return written.status === 'failed' ? written : { status: 'ok', path: written.body.path }
    },

    close: () => http.close(),
  }
}

const broken: Refusal = { status: 'failed', reason: 'refused' }

function executionOf({ result_block: { content } }: z.output<typeof execResponse>): Execution {
  const { stdout, stderr, return_code: returnCode, content: files, ended_by: limit } = content
  return { status: 'ok', stdout, stderr, returnCode, files, ...(limit === undefined ? {} : { limit }) }
}

/** CP-08 */
const toolCall = (kind: ExecCall['kind'], code: string) =>
  kind === 'python'
    ? { tool: 'code_execution', input: { code } }
    : { tool: 'bash_code_execution', input: { command: code } }

function baseUrl({ url }: ProtocolSettings): string {
  if (!url) throw new Fault('unavailable', 'no sandbox is configured')
  return url.replace(/\/+$/, '')
}

/** The id is the backend's word, used as it is: one path segment whatever it holds (CP-02). */
const at = (session: string): string => `/sessions/${encodeURIComponent(session)}`

/** CP-30: bytes that are not UTF-8 are replaced, not refused. */
const decoder = new TextDecoder()

function read<S extends z.ZodType>(answer: TrustedAnswer, shape: S): { status: 'ok'; body: z.output<S> } | Refusal {
  if (answer.status === 'failed' || !succeeded(answer)) return refusal(answer)
  const body = shape.safeParse(parseJson(decoder.decode(answer.bytes)))
  return body.success ? { status: 'ok', body: body.data } : { status: 'failed', reason: 'refused' }
}

const succeeded = ({ httpStatus }: { httpStatus: number }): boolean => httpStatus >= 200 && httpStatus < 300

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined // no shape takes it
  }
}

/** Only the status and `Retry-After` are looked at (CP-14, CP-23). */
function refusal(
  answer:
    | { status: 'failed'; tag: string; httpStatus?: number }
    | { httpStatus: number; header(name: string): string | undefined },
): Refusal {
  if ('tag' in answer && answer.tag === 'timeout') return { status: 'failed', reason: 'timeout' }
  if (answer.httpStatus === undefined) return { status: 'failed', reason: 'unreachable' }
  if (answer.httpStatus === 404) return { status: 'failed', reason: 'lost' }
  if (answer.httpStatus !== 503) return { status: 'failed', reason: 'refused' }
  const retryAfter = 'header' in answer ? answer.header('retry-after') : undefined
  return {
    status: 'failed',
    reason: 'busy',
    // anything but 1 to 6 ASCII digits is dropped
    ...(retryAfter !== undefined && /^[0-9]{1,6}$/.test(retryAfter) ? { retryAfterSeconds: Number(retryAfter) } : {}),
  }
}
