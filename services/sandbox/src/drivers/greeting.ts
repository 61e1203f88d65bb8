import { timingSafeEqual } from 'node:crypto'
import type { Socket } from 'node:net'
import type { Around } from './calls.ts'
import { openChannel } from './channel.ts'
import type { Sandbox } from './driver.ts'
import { type Line, openLine, readReady } from './line.ts'
import { kinds, type Order, readOrder } from './orders.ts'
import { openSandbox } from './sandbox.ts'

/** A session that was asked for and has not come yet. */
export interface Awaited {
  ticket: Buffer
  /** Its supervisor's connection, which comes before its interpreter's, and how to stop listening to it here. */
  channel?: { socket: Socket; hand(): void }
  /** Has the zygote end it. */
  end(): void
  around: Around
  resolve(sandbox: Sandbox): void
  reject(error: Error): void
}

const GREETING_MS = 10_000
const LEAVE_MS = 1_000

/**
 * A new connection: whose it is, by a ticket the zygote showed before any program could run; and if it is an interpreter's,
 * that it is ready.
 */
export function greet(socket: Socket, awaited: ReadonlyMap<number, Awaited>, outputBytes: number): void {
  const late = setTimeout(() => socket.destroy(), GREETING_MS)
  let read = Buffer.alloc(0)
  let who: Awaited | undefined

  const settle = () => {
    socket.off('data', listen).off('close', left)
    clearTimeout(late)
  }
  const hear = () => {
    if (!who) {
      const word = readOrder(read)
      if (!word) return
      who = recognise(word.order, awaited)
      read = Buffer.from(word.rest)
      if (word.order.kind === kinds.channel) {
        who.channel = { socket, hand: settle }
        clearTimeout(late)
        return
      }
    }
    if (who.channel?.socket === socket) throw new Error('a supervisor speaks only when asked')
    const emptySince = readReady(read)
    if (emptySince === undefined) return
    settle()
    arrive(who, openLine(socket, emptySince, outputBytes))
  }
  const listen = (piece: Buffer) => {
    try {
      read = Buffer.concat([read, piece])
      hear()
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

function recognise({ kind, number, ticket }: Order, awaited: ReadonlyMap<number, Awaited>): Awaited {
  const expected = awaited.get(number)
  if (!expected || !timingSafeEqual(ticket, expected.ticket)) throw new Error('an unknown session')
  if ((kind === kinds.channel) !== (expected.channel === undefined)) throw new Error('an unexpected connection')
  return expected
}

function arrive(who: Awaited, line: Line): void {
  const { channel: first, end, around, resolve } = who
  if (!first) {
    line.close()
    return
  }
  first.hand()
  const channel = openChannel(first.socket)
  let late: NodeJS.Timeout | undefined
  /** By the zygote, which is quicker than the supervisor's good order; its connections then close by themselves. */
  const endByForce = () => {
    if (late) return
    late = setTimeout(() => channel.close(), LEAVE_MS)
    end()
  }
  void channel.closed.then(() => {
    line.close()
    endByForce() // whatever is left of it goes with its connection
    clearTimeout(late)
  })
  resolve(openSandbox(channel, line, endByForce, around))
}
