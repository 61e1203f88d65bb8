import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js'
import type { jsonSchemaValidator } from '@modelcontextprotocol/sdk/validation/types.js'
import { openDeadline, type PinnedClient } from '@tollgate/http'
import type { z } from 'zod'
import type { JsonObject } from '../conversation/turn.ts'
import { ServerFailure } from './failure.ts'
import { openWire } from './wire.ts'

/** Something to be done in time, for a request that may end sooner. */
export interface Limits {
  signal: AbortSignal
  /** Epoch milliseconds. */
  deadline: number
}

/**
 * One MCP session over streamable HTTP. Nothing the server asks of a client is served (sampling, elicitation, roots), and
 * what it announces is not listened to. Failures are `ServerFailure`s; only the caller's own signal throws its reason.
 */
export interface Session {
  /** One request of the protocol. A session that the server has lost is begun again once, and so is the request (BR-154). */
  request<T extends z.ZodType>(method: string, params: JsonObject, result: T, limits: Limits): Promise<z.output<T>>
  /** Says goodbye; takes two seconds at most. */
  close(): Promise<void>
}

export interface SessionOptions {
  url: string
  token: string | undefined
  client: PinnedClient
  version: string
}

export async function openSession(options: SessionOptions, limits: Limits): Promise<Session> {
  let live = await begin(options, limits)

  return {
    async request(method, params, result, at) {
      try {
        return await live.request(method, params, result, at)
      } catch (thrown) {
        if (!(thrown instanceof ServerFailure) || !live.isLost(thrown)) throw thrown
        void live.close()
        live = await begin(options, at)
        return live.request(method, params, result, at)
      }
    },
    close: () => live.close(),
  }
}

interface Live extends Session {
  /** Whether the server knows this session no more: a 404 for its id says so, and did nothing of what was asked. */
  isLost(failure: ServerFailure): boolean
}

/** Nothing is checked against schemas of the server's: to compile them would be work of its choosing. */
const checksNothing: jsonSchemaValidator = {
  getValidator: () => (value) => ({ valid: true, data: value as never, errorMessage: undefined }),
}

async function begin({ url, token, client, version }: SessionOptions, limits: Limits): Promise<Live> {
  const wire = openWire(client)
  const transport = new StreamableHTTPClientTransport(new URL(url), {
    fetch: wire.fetch,
    requestInit: { headers: token === undefined ? {} : { authorization: `Bearer ${token}` } },
  })
  const sdk = new Client({ name: 'tollgate', version }, { capabilities: {}, jsonSchemaValidator: checksNothing })
  // what goes wrong without a request is of no use to one; everything else is thrown by the request it belongs to
  sdk.onerror = () => {}

  async function within<T>({ signal, deadline }: Limits, run: (how: How) => Promise<T>): Promise<T> {
    const limit = openDeadline(deadline, signal)
    // the library's own clock runs behind ours, and never rings
    const timeout = Math.max(1, deadline - Date.now()) + 60_000
    try {
      return await wire.exchange(limit.signal, (own) => run({ signal: own, timeout }))
    } catch (thrown) {
      signal.throwIfAborted()
      throw limit.expired ? new ServerFailure('timeout') : ServerFailure.from(thrown)
    } finally {
      limit.end()
    }
  }

  const session: Live = {
    request: (method, params, result, at) =>
      within(at, (how) => sdk.request({ method, params }, result, how) as Promise<z.output<typeof result>>),
    isLost: ({ trouble, code }) =>
      transport.sessionId !== undefined && (trouble === 'session_lost' || (trouble === 'http_error' && code === 404)),
    async close() {
      // a server that does not hear of the end finds out by itself
      await transport.terminateSession().catch(() => {})
      await sdk.close()
    },
  }
  try {
    await within(limits, (how) => sdk.connect(transport as Transport, how))
  } catch (thrown) {
    void session.close()
    throw thrown
  }
  return session
}

interface How {
  signal: AbortSignal
  timeout: number
}
