import { isInitializeRequest, type RequestId } from '@modelcontextprotocol/sdk/types.js'
import { z } from 'zod'

const id = z.union([z.string().max(256), z.number()])
const toolCall = z.object({ method: z.literal('tools/call'), id })
const cancellation = z.object({
  method: z.literal('notifications/cancelled'),
  params: z.object({ requestId: id }),
})

/** What the gateway itself must know of a body of JSON-RPC before the protocol's own code reads it. */
export interface Messages {
  opensSession: boolean
  /** Ids of tool calls, in order. */
  calls: RequestId[]
  cancelled: RequestId[]
}

export function readMessages(body: unknown): Messages {
  const messages: unknown[] = Array.isArray(body) ? body : [body]
  return {
    opensSession: messages.some(isInitializeRequest),
    calls: messages.flatMap((message) => toolCall.safeParse(message).data?.id ?? []),
    cancelled: messages.flatMap((message) => cancellation.safeParse(message).data?.params.requestId ?? []),
  }
}
