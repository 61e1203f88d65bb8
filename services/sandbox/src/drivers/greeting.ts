import { timingSafeEqual } from 'node:crypto'
import type { Socket } from 'node:net'
import { z } from 'zod'
import { openChannel } from './channel.ts'
import type { Sandbox } from './driver.ts'
import { messageReader } from './framing.ts'
import { openSandbox } from './sandbox.ts'

/** A session that was asked for and has not come yet. */
export interface Awaited {
  ticket: string
  /** Has the zygote end it. */
  end(): void
  resolve(sandbox: Sandbox): void
  reject(error: Error): void
}

const greeting = z.object({ number: z.int(), ticket: z.string() })
const ready = z.object({ ready: z.literal(true) })
const GREETING_MS = 10_000

/** A new connection: who it is, by a ticket the zygote showed before any program could run, then that it is ready. */
export function greet(socket: Socket, awaited: ReadonlyMap<number, Awaited>): void {
  const reader = messageReader()
  const late = setTimeout(() => socket.destroy(), GREETING_MS)
  let who: Awaited | undefined

  const read = (piece: Buffer) => {
    for (const { header } of reader.add(piece)) {
      if (who) {
        ready.parse(header)
        socket.off('data', listen).off('close', left)
        clearTimeout(late)
        who.resolve(sandboxOf(socket, who))
      } else who = recognise(header, awaited)
    }
  }
  const listen = (piece: Buffer) => {
    try {
      read(piece)
    } catch {
      socket.destroy() // nobody we asked for
    }
  }
  const left = () => {
    clearTimeout(late)
    who?.reject(new Error('the session ended before it was ready'))
  }
  socket.on('error', () => {}) // `close` follows
  socket.on('data', listen).once('close', left)
}

function recognise(header: unknown, awaited: ReadonlyMap<number, Awaited>): Awaited {
  const { number, ticket } = greeting.parse(header)
  const expected = awaited.get(number)
  const shown = Buffer.from(ticket)
  if (!expected || shown.length !== expected.ticket.length || !timingSafeEqual(shown, Buffer.from(expected.ticket)))
    throw new Error('an unknown session')
  return expected
}

function sandboxOf(socket: Socket, { end }: Awaited): Sandbox {
  const channel = openChannel(socket)
  void channel.closed.then(end) // whatever is left of it goes with its connection
  return openSandbox(channel, () => channel.close())
}
