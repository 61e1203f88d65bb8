import type { ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import type { ReadableStream } from 'node:stream/web'
import type { Server } from '@modelcontextprotocol/sdk/server/index.js'
import { WebStandardStreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/webStandardStreamableHttp.js'
import type { FastifyReply, FastifyRequest } from 'fastify'

interface ExchangeOptions {
  /** Answer as an event stream, which says that it lives while a tool works. */
  streams: boolean
  keepaliveMs: number
}

/**
 * Hands one POST to a server made for it and its answer back, by the SDK's own transport without a session: nothing is
 * kept between two requests. A client that leaves ends the server, and with it what it runs.
 */
export async function exchange(
  server: Server,
  request: FastifyRequest,
  reply: FastifyReply,
  { streams, keepaliveMs }: ExchangeOptions,
): Promise<FastifyReply> {
  const transport = new WebStandardStreamableHTTPServerTransport({
    enableJsonResponse: !streams,
    keepAliveMs: keepaliveMs,
  })
  await server.connect(transport)
  const over = new Promise<void>((closed) => onceClosed(reply.raw, closed)).then(() => server.close())
  const answer = await Promise.race([
    transport.handleRequest(asWebRequest(request), { parsedBody: request.body ?? null }),
    over,
  ])
  if (answer === undefined) return reply.hijack()

  reply.code(answer.status)
  for (const [name, value] of answer.headers) {
    // what becomes of the connection is the HTTP server's to say
    if (name !== 'connection') reply.header(name, value)
  }
  if (answer.body === null) return reply.send()
  if (!streams || !answer.ok) return reply.send(await answer.text())
  // proxies in between are told to hold nothing back (BR-166)
  reply.header('x-accel-buffering', 'no')
  return reply.send(Readable.from(beginning(answer.body as ReadableStream<Uint8Array>)))
}

/** Also when it has closed already: a client may leave while it is found out who it is. */
export function onceClosed(response: ServerResponse, then: () => void): void {
  if (response.closed) then()
  else response.once('close', then)
}

/** A comment first, so that the head goes out now and not with the first result. */
async function* beginning(body: ReadableStream<Uint8Array>): AsyncGenerator<Uint8Array | string> {
  yield ':\n\n'
  yield* body
}

/** The headers that the protocol knows, and none that carries a key. The body was read already. */
function asWebRequest({ headers }: FastifyRequest): Request {
  const version = headers['mcp-protocol-version']
  return new Request('http://gateway.invalid/mcp', {
    method: 'POST',
    headers: {
      // whether to stream was decided: the transport's own rule turns simple clients away
      accept: 'application/json, text/event-stream',
      'content-type': 'application/json',
      ...(typeof version === 'string' && { 'mcp-protocol-version': version }),
    },
  })
}
