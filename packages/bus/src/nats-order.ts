import { type Context, context } from '@opentelemetry/api'
import type { Msg } from 'nats'
import { textOf } from './frames.ts'
import { callIdOf } from './nats-inbox.ts'
import { readTrace } from './tracing.ts'

/** A call as it came in. */
export interface Order {
  id: string
  replyTo: string
  attempt: number
  deadline: number
  json: string
  /** The caller's place in its trace. */
  parent: Context
}

/** What it came in: straight from its caller, or out of a stream, which keeps no subject to reply to. */
interface Received {
  headers?: Msg['headers'] | undefined
  data: Uint8Array
  reply?: string | undefined
}

/** Reads a call; undefined when it is none that a bus sent. A queued one was numbered by the server that handed it out. */
export function readOrder(message: Received, delivery?: number): Order | undefined {
  const { headers } = message
  const deadline = Number(headers?.get('Tg-Deadline'))
  const replyTo = headers?.get('Tg-Reply') || message.reply
  if (!headers || !replyTo || !Number.isFinite(deadline)) return undefined
  return {
    id: callIdOf(replyTo),
    replyTo,
    attempt: delivery ?? (Number(headers.get('Tg-Attempt')) || 1),
    deadline,
    json: textOf(message.data),
    parent: contextOf(headers),
  }
}

/** The sender's place in its trace, if it is in any. */
export const contextOf = (headers: Msg['headers']): Context =>
  headers?.has('traceparent') ? readTrace(Object.fromEntries(headers)) : context.active()
