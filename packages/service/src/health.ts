import { once } from 'node:events'
import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { Running } from './service.ts'

export interface HealthOptions {
  /** 0 takes any free port; whoever wants no health server starts none. */
  port: number
  host: string
  notReady(): Promise<string | undefined>
  metricsText(): Promise<string>
}

/**
 * `/livez`: the event loop answers. `/readyz`: new work can be taken (503 with the reason when not). `/metrics`:
 * Prometheus text. On a port of its own, which no ingress shows; kept open to the end of a drain.
 */
export async function startHealth({
  port,
  host,
  notReady,
  metricsText,
}: HealthOptions): Promise<Running & { url: string }> {
  const server = createServer({ requestTimeout: 5_000, headersTimeout: 5_000 }, (request, response) => {
    const path = request.url?.split('?', 1)[0]
    const answer =
      request.method !== 'GET' && request.method !== 'HEAD'
        ? undefined
        : path === '/livez' || path === '/healthz'
          ? live
          : path === '/readyz'
            ? ready
            : path === '/metrics'
              ? metrics
              : undefined
    if (!answer) return json(response, 404, { status: 'unknown path' })
    answer(response).catch(() => json(response, 500, { status: 'the check failed' }))
  })
  const live = async (response: ServerResponse) => json(response, 200, { status: 'ok' })
  const ready = async (response: ServerResponse) => {
    const reason = await notReady()
    json(response, reason === undefined ? 200 : 503, { status: reason ?? 'ok' })
  }
  const metrics = async (response: ServerResponse) => {
    const text = await metricsText()
    response.writeHead(200, { 'content-type': 'text/plain; version=0.0.4; charset=utf-8' }).end(text)
  }
  server.maxConnections = 64
  server.listen(port, host)
  await once(server, 'listening')
  const address = server.address() as AddressInfo
  return {
    url: `http://${host.includes(':') ? `[${host}]` : host}:${address.port}`,
    async close() {
      server.close()
      server.closeAllConnections()
      return true
    },
  }
}

function json(response: ServerResponse, status: number, body: object): void {
  if (response.headersSent) return
  response
    .writeHead(status, { 'content-type': 'application/json', 'cache-control': 'no-store' })
    .end(JSON.stringify(body))
}
