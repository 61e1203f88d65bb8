import type { FailureTag } from '@tollgate/contracts'
import { httpFailure, type TrustedClient } from '@tollgate/http'
import type { ProviderRequest, ReplyReader } from './providers/provider.ts'

export type Asked<A> = { status: 'ok'; answer: A } | ProviderFailure

/** All that anybody outside may know of a provider's failure (SP-03). */
export interface ProviderFailure {
  status: 'failed'
  tag: FailureTag
  httpStatus?: number
}

export interface AskOptions {
  /** Epoch milliseconds. */
  deadline: number
  signal: AbortSignal
}

/**
 * One request to a provider. Whatever goes wrong with it becomes a tag: its body, URL and key end here (SP-03). Only a
 * fired signal throws.
 */
export async function askProvider<A>(
  client: TrustedClient,
  request: ProviderRequest,
  reader: ReplyReader<A>,
  { deadline, signal }: AskOptions,
): Promise<Asked<A>> {
  const reply = await sendRequest(client, request, { deadline, signal })
  if (reply.status === 'failed') return reply
  const { httpStatus } = reply
  const content = readJson(reply.bytes)
  const general = httpFailure(httpStatus)
  if (general) return { status: 'failed', tag: reader.failure?.(httpStatus, content) ?? general, httpStatus }
  const read = reader.answer.safeParse(content)
  if (read.success) return { status: 'ok', answer: read.data }
  const told = reader.failure?.(httpStatus, content)
  // a status that says all is well would only mislead beside it
  return told ? { status: 'failed', tag: told } : { status: 'failed', tag: 'invalid_response', httpStatus }
}

export const sendRequest = (
  client: TrustedClient,
  { method, url, headers, body }: ProviderRequest,
  limits: AskOptions,
) => client.send({ method, url: url.href, headers, ...(body !== undefined && { json: body }), ...limits })

/** Undefined when it is no JSON, which no provider's schema takes. */
function readJson(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes))
  } catch {
    return undefined
  }
}
