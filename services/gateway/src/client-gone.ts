import type { Server, ServerResponse } from 'node:http'
import { Fault } from '@tollgate/contracts'
import type { FastifyReply } from 'fastify'

/** When to ask a client whose side has closed whether it still reads. A peer that is gone resets the second write at the latest. */
const PROBES_MS = [0, 25, 100, 500, 2_000]

/** Lets a client close its own side of the connection and go on reading; without this Node closes the other side too. */
export function allowHalfClose(server: Server): void {
  // in Node since 0.1, though not among its types
  Object.assign(server, { httpAllowHalfOpen: true })
}

/**
 * Calls `leave` when the client leaves before its answer is written. (`request.signal` fires once a body is read, with the
 * client still there.) A closed sending side alone says nothing: a client that half-closes still reads, one that is gone
 * does not, and only writing tells them apart (BR-160).
 */
export function whenClientLeaves(reply: FastifyReply, leave: (why: Fault) => void): void {
  const { raw } = reply
  // the request's, since an answer that others on its connection go before has none yet and never closes with it
  const { socket } = reply.request.raw
  let probe: NodeJS.Timeout | undefined
  const ask = (at: number) => {
    if (at >= PROBES_MS.length || raw.closed) return
    probe = setTimeout(() => {
      send(raw, reply.request.raw.httpVersion)
      ask(at + 1)
    }, PROBES_MS[at])
  }
  const ended = () => ask(0)
  const closed = () => {
    clearTimeout(probe)
    socket.off('end', ended)
    socket.off('close', closed)
    raw.off('close', closed)
    if (!raw.writableFinished) leave(new Fault('cancelled', 'the client left'))
  }
  socket.setMaxListeners(0) // one of each for every answer that it waits for
  if (socket.readableEnded) ended()
  else socket.once('end', ended)
  socket.once('close', closed)
  raw.once('close', closed)
}

/** What a client that reads skips: an informational answer before the head, a comment within an event stream. */
function send(raw: ServerResponse, httpVersion: string): void {
  if (!raw.headersSent) {
    if (httpVersion !== '1.0') raw.writeProcessing()
  } else if (String(raw.getHeader('content-type')).startsWith('text/event-stream') && !raw.writableEnded) {
    raw.write(':\n\n')
  }
}
