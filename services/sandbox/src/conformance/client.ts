import { z } from 'zod'

/** Protocol v1 as a client may rely on it; unknown members are allowed everywhere (CP-21). */
export const shapes = {
  handle: z.looseObject({
    session_id: z.string().min(1),
    idle_timeout_seconds: z.int().optional(),
    max_lifetime_seconds: z.int().optional(),
    created_at: z.number().optional(),
    last_activity_at: z.number().optional(),
  }),
  executed: z.looseObject({
    tool_use_id: z.string(),
    execution_time_ms: z.int().nonnegative().nullish(),
    result_block: z.looseObject({
      type: z.string().min(1),
      tool_use_id: z.string(),
      content: z.looseObject({
        type: z.literal('code_execution_result').default('code_execution_result'),
        stdout: z.string().nullish(),
        stderr: z.string().nullish(),
        return_code: z.int().nullish(),
        content: z
          .array(
            z.looseObject({
              type: z.literal('code_execution_output').default('code_execution_output'),
              file_id: z.string(),
              filename: z.string(),
            }),
          )
          .nullish(),
      }),
    }),
  }),
  listing: z.looseObject({
    files: z.array(
      z.looseObject({
        path: z.string(),
        size_bytes: z.int().nonnegative(),
        mime_type: z.string().nullish(),
        modified_at: z.number().optional(),
      }),
    ),
  }),
  written: z.looseObject({ path: z.string(), size_bytes: z.int().nonnegative() }),
}

export interface Reply {
  status: number
  bytes: Buffer
  json(): unknown
}

export interface ConformanceClient {
  send(method: string, path: string, options?: { json?: unknown; form?: FormData; timeoutMs?: number }): Promise<Reply>
}

const PATIENCE_MS = 30_000

/** Every operation carries the credential, if there is one (CP-22). */
export function openClient(baseUrl: string, token: string | undefined): ConformanceClient {
  const base = baseUrl.replace(/\/+$/, '')
  return {
    async send(method, path, { json, form, timeoutMs = PATIENCE_MS } = {}) {
      const response = await fetch(base + path, {
        method,
        headers: {
          ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
          ...(json === undefined ? {} : { 'content-type': 'application/json' }),
        },
        body: json === undefined ? (form ?? null) : JSON.stringify(json),
        redirect: 'manual',
        signal: AbortSignal.timeout(timeoutMs),
      })
      const bytes = Buffer.from(await response.arrayBuffer())
      return { status: response.status, bytes, json: () => JSON.parse(bytes.toString('utf8')) }
    },
  }
}

/** What a backend does that the contract does not allow. */
export class Breach extends Error {
  override readonly name = 'Breach'
}

/** What a backend may leave out, and does. */
export class Unserved extends Error {
  override readonly name = 'Unserved'
}

export function expectStatus({ status }: Reply, ...expected: number[]): void {
  if (!expected.includes(status)) throw new Breach(`answered ${status}, not ${expected.join(' or ')}`)
}

/** The status, and the shape of the body that belongs to it. */
export function expectShape<S extends z.ZodType>(reply: Reply, status: number, shape: S): z.output<S> {
  expectStatus(reply, status)
  let body: unknown
  try {
    body = reply.json()
  } catch {
    throw new Breach('the body is not JSON')
  }
  const read = shape.safeParse(body)
  if (read.success) return read.data
  const [issue] = read.error.issues
  throw new Breach(`the body breaks the contract at ${issue?.path.join('.') || 'its root'}: ${issue?.message}`)
}
