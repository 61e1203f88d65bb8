import type { Server } from 'node:http'

/**
 * Ends a connection whose client takes no byte of a finished answer for `ms`: what is left of the answer would be held for
 * as long as the client likes. One that takes it slowly is waited for, however long that lasts (BR-161).
 */
export function endUnread(server: Server, ms: number): void {
  // whoever answers may be done before another listener has its turn
  server.prependListener('request', (_request, response) => {
    response.once('prefinish', () => {
      // what the system took at once is out of our hands
      if (!response.socket || response.socket.writableLength === 0) return
      // without a listener Node ends the connection itself; a large write that shrinks counts as activity
      response.setTimeout(ms)
      // before Node's own listener, which gives an idle connection its time: an answer that comes next has none
      response.prependOnceListener('finish', () => response.setTimeout(server.timeout))
    })
  })
}
