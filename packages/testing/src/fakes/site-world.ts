import { connect, Socket } from 'node:net'

/** A name server in memory. A list of lists is answered one list after the other, the last one again and again. */
export function dnsStub(answers: Record<string, string[] | string[][]> = {}) {
  const lookups: string[] = []
  return {
    lookups,
    resolve: async (host: string): Promise<string[]> => {
      const count = lookups.filter((name) => name === host).length
      lookups.push(host)
      const answer = answers[host] ?? []
      const rounds = answer.every((item) => Array.isArray(item)) ? answer : [answer as string[]]
      return rounds[Math.min(count, rounds.length - 1)] ?? []
    },
  }
}

export interface DialedAddress {
  address: string
  port: number
}

/**
 * Takes public addresses to servers on loopback: `{ '93.184.216.34': port }`, or `'*'` for any. An address that is not
 * listed is really dialled when it is on this machine, so that a recorder there would see it, and unreachable otherwise.
 */
export function loopbackDialer(ports: Record<string, number | Record<number, number>>) {
  const dialed: DialedAddress[] = []
  const standsFor = new WeakMap<Socket, string>()
  return {
    dialed,
    open(address: string, port: number): Socket {
      dialed.push({ address, port })
      const mapped = ports[address] ?? ports['*']
      const target = typeof mapped === 'object' ? mapped[port] : mapped
      if (target === undefined && !/^127\.|^::1$|^::ffff:/.test(address)) return unreachable()
      const socket = connect({ host: '127.0.0.1', port: target ?? port })
      if (target !== undefined) standsFor.set(socket, address)
      return socket
    },
    peer: (socket: Socket): string | undefined => standsFor.get(socket) ?? socket.remoteAddress,
  }
}

function unreachable(): Socket {
  const socket = new Socket()
  setImmediate(() => socket.destroy(Object.assign(new Error('connect ENETUNREACH'), { code: 'ENETUNREACH' })))
  return socket
}
