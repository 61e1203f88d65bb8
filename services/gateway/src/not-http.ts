import { type IncomingMessage, type ServerResponse, STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'

/** What comes before there is a request to speak of gets the same kind of body as everything else. */
const body = (detail: string): string => JSON.stringify({ detail })

const statuses: Record<string, number> = { HPE_HEADER_OVERFLOW: 431, ERR_HTTP_REQUEST_TIMEOUT: 408 }

/** Answers bytes that are no HTTP request, or one whose head is too long or too slow, and hangs up. */
export function refuseBytes(error: NodeJS.ErrnoException, socket: Socket): void {
  if (error.code === 'ECONNRESET' || socket.destroyed) return
  const status = statuses[error.code ?? ''] ?? 400
  const reason = STATUS_CODES[status] ?? ''
  const text = body(reason)
  const head = [
    `HTTP/1.1 ${status} ${reason}`,
    'Content-Type: application/json; charset=utf-8',
    `Content-Length: ${Buffer.byteLength(text)}`,
    'Connection: close',
  ].join('\r\n')
  if (socket.writable) socket.write(`${head}\r\n\r\n${text}`)
  socket.destroySoon()
}

/** An `Expect` other than for a 100, which is all there is to expect of a server. */
export function refuseExpectation(_request: IncomingMessage, response: ServerResponse): void {
  response
    .writeHead(417, { 'content-type': 'application/json; charset=utf-8', connection: 'close' })
    .end(body('Expectation Failed'))
}

/** A path that cannot be decoded, or with a part too long for any route. */
export function notAPath(response: ServerResponse): void {
  response.writeHead(404, { 'content-type': 'application/json; charset=utf-8' }).end(body('Not Found'))
}
