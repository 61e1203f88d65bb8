import { connect, isIP, type Socket } from 'node:net'
import { connect as connectTls, type TLSSocket } from 'node:tls'
import { sameAddress } from './addresses.ts'

/**
 * Opens the TCP connection to a checked address, and says who is at its other end. The only seam a test needs: its dialer
 * takes `93.184.216.34` to a server on loopback, and every check before and after stays as it is.
 */
export interface Dialer {
  open(address: string, port: number): Socket
  peer(socket: Socket): string | undefined
}

export const systemDialer: Dialer = {
  open: (address, port) => connect({ host: address, port, autoSelectFamily: false, noDelay: true }),
  peer: (socket) => socket.remoteAddress,
}

export type ConnectStage = 'connect' | 'tls' | 'proxy'

/** Which step of getting connected failed. Its message tells nothing of the host; the cause does, and stays in the log. */
export class ConnectFailure extends Error {
  override readonly name = 'ConnectFailure'
  readonly stage: ConnectStage
  constructor(stage: ConnectStage, options?: ErrorOptions) {
    super(`could not connect (${stage})`, options)
    this.stage = stage
  }
}

/** A TCP connection whose peer is the pinned address, or none (WM-84). The caller closes it. */
export async function openPinned(
  { address, port }: { address: string; port: number },
  dialer: Dialer,
  signal: AbortSignal,
): Promise<Socket> {
  const socket = dialer.open(address, port)
  await ready(socket, 'connect', 'connect', signal)
  const peer = dialer.peer(socket)
  if (peer !== undefined && sameAddress(peer, address)) return socket
  socket.destroy()
  throw new ConnectFailure('connect', { cause: new Error('the peer is not the address that was checked') })
}

/**
 * TLS over an open connection. The certificate must be for `host`; a name is sent as SNI, an address never is (RFC 6066).
 * `ca` is what is trusted beside the built-in authorities.
 */
export async function secure(
  socket: Socket,
  host: string,
  ca: string[] | undefined,
  signal: AbortSignal,
): Promise<TLSSocket> {
  const name = isIP(host) === 0 ? { servername: host } : { servername: '', host }
  const tls = connectTls({ socket, ...name, ALPNProtocols: ['http/1.1'], ...(ca ? { ca } : {}) })
  await ready(tls, 'secureConnect', 'tls', signal)
  return tls
}

/** Waits for `event`; on error or abort the socket is gone before the promise rejects. */
export function ready(
  socket: Socket,
  event: 'connect' | 'secureConnect',
  stage: ConnectStage,
  signal: AbortSignal,
): Promise<void> {
  return new Promise((settle, reject) => {
    const end = (act: () => void) => {
      signal.removeEventListener('abort', aborted)
      socket.off(event, opened).off('error', failed).off('close', closed)
      act()
    }
    const drop = (reason: unknown) =>
      end(() => {
        socket.on('error', () => {}) // already reported by the rejection
        socket.destroy()
        reject(reason)
      })
    const opened = () => end(settle)
    const failed = (cause: Error) => drop(new ConnectFailure(stage, { cause }))
    const closed = () => drop(new ConnectFailure(stage))
    const aborted = () => drop(signal.reason)
    socket.once(event, opened).once('error', failed).once('close', closed)
    signal.addEventListener('abort', aborted, { once: true })
    if (signal.aborted) aborted()
  })
}
