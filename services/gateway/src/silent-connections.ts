import type { Server } from 'node:http'
import type { Socket } from 'node:net'

/**
 * Ends, when called, the connections on which nothing was ever sent: those a load balancer or a client's pool opened in
 * advance. `closeIdleConnections` counts them as busy, since a request could be about to come.
 */
export function closeSilentConnections(server: Server): () => void {
  const silent = new Set<Socket>()
  server.on('connection', (socket: Socket) => {
    silent.add(socket)
    socket.once('close', () => silent.delete(socket))
  })
  server.on('request', ({ socket }) => silent.delete(socket))
  return () => {
    for (const socket of silent) if (socket.bytesRead === 0) socket.destroy()
  }
}
