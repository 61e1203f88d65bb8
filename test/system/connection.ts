import { connect, type Socket } from 'node:net'
import type { Deployment } from './deployment.ts'

export interface Connection {
  socket: Socket
  /** Everything that came, head and framing included. */
  received(): string
  /** Empty until the answer's head is there. */
  requestId(): string
}

/** A chat request by hand, so that a test decides what becomes of its connection and sees every byte. */
export function post({ url }: Pick<Deployment, 'url'>, key: string, body: object): Connection {
  const { hostname, port } = new URL(url)
  const text = JSON.stringify(body)
  const head = [
    'POST /v1/chat/completions HTTP/1.1',
    `host: ${hostname}`,
    `authorization: Bearer ${key}`,
    'content-type: application/json',
    `content-length: ${Buffer.byteLength(text)}`,
  ]
  const socket = connect({ host: hostname, port: Number(port), allowHalfOpen: true })
  let received = ''
  socket.setEncoding('utf8').on('data', (more: string) => {
    received += more
  })
  // the other side's end is the end of ours too, unless the test has closed it before
  socket.on('end', () => socket.end())
  socket.on('error', () => undefined) // the test may reset it
  socket.write(`${head.join('\r\n')}\r\n\r\n${text}`)
  return { socket, received: () => received, requestId: () => /^x-request-id: (\S+)/im.exec(received)?.[1] ?? '' }
}
