import type { Server } from 'node:http'
import type { Socket } from 'node:net'

/** Looks at an answer until it counts as unread. */
const LOOKS = 4

/**
 * Ends a connection whose client takes no byte of a finished answer for `ms`: what is left of the answer would be held for
 * as long as the client likes, whatever it sends meanwhile. One that takes it slowly is waited for, however long (BR-161).
 */
export function endUnread(server: Server, ms: number): void {
  // whoever answers may be done before another listener has its turn
  server.prependListener('request', (_request, response) => {
    response.once('prefinish', () => {
      const { socket } = response
      // what the system took at once is out of our hands
      if (!socket || socket.writableLength === 0) return
      let left = unsent(socket)
      let unchanged = 0
      const looking = setInterval(() => {
        const now = unsent(socket)
        unchanged = now === left ? unchanged + 1 : 0
        left = now
        if (unchanged === LOOKS) socket.destroy()
      }, ms / LOOKS).unref()
      response.once('close', () => clearInterval(looking))
    })
  })
}

/** Of one large write only the handle knows how much has gone: to the stream it is all there until it is all gone. */
function unsent(socket: Socket & { _handle?: { writeQueueSize?: number } | null }): number {
  return socket.writableLength + (socket._handle?.writeQueueSize ?? 0)
}
