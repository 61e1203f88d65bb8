import type { Socket } from 'node:net'
import { z } from 'zod'
import { SandboxLost } from './driver.ts'
import { type Listener, type Message, messageReader, packHead, packMessage } from './framing.ts'

/** Questions to the supervisor of one session, and its answers. */
export interface Channel {
  /** Rejects with `SandboxLost` when the session ends first, or gives no answer in time: then it is ended. */
  ask(header: object, options: Question): Promise<Message>
  /** Like `ask`, with nothing to wait for. */
  tell(header: object): void
  /** The number `ask` gave its latest question. */
  latest(): number
  readonly closed: Promise<void>
  close(): void
}

/** Hears the header of a part and the length of its body; what it gives hears the body as it comes. */
export type Begin = (header: unknown, bytes: number) => Listener

export interface Question {
  body?: Buffer[]
  timeoutMs: number
  /** Hears the parts that come before the answer; without it there are none. */
  onPart?: (message: Message) => void
  /** Like `onPart`, for parts of which nothing is held. */
  onBegin?: Begin
}

interface Waiting {
  resolve(message: Message): void
  reject(error: Error): void
  onPart: ((message: Message) => void) | undefined
  onBegin: Begin | undefined
}

const anyAnswer = z.looseObject({ id: z.int(), part: z.string().optional() })

/** The socket of a session that has said it is ready; it speaks only when asked. */
export function openChannel(socket: Socket): Channel {
  const waiting = new Map<number, Waiting>()
  const reader = messageReader((header, bytes) => {
    const { id, part } = anyAnswer.parse(header)
    return part === undefined ? undefined : waiting.get(id)?.onBegin?.(header, bytes)
  })
  let asked = 0

  const take = (message: Message) => {
    const { id, part } = anyAnswer.parse(message.header)
    if (part !== undefined) return waiting.get(id)?.onPart?.(message)
    waiting.get(id)?.resolve(message)
    waiting.delete(id)
  }
  socket.on('data', (piece: Buffer) => {
    try {
      for (const message of reader.add(piece)) take(message)
    } catch {
      socket.destroy() // not what a supervisor of ours says: nothing in there can be relied on
    }
  })
  const closed = new Promise<void>((resolve) => {
    socket.once('close', () => {
      for (const { reject } of waiting.values()) reject(new SandboxLost('the session has ended'))
      waiting.clear()
      resolve()
    })
  })
  socket.on('error', () => {}) // `close` follows

  return {
    closed,
    close: () => socket.destroy(),
    latest: () => asked,
    tell: (header) => void socket.write(packMessage(header)),
    ask(header, { body = [], timeoutMs, onPart, onBegin }) {
      if (socket.destroyed) return Promise.reject(new SandboxLost('the session has ended'))
      asked += 1
      const id = asked
      return new Promise((resolve, reject) => {
        const late = setTimeout(() => socket.destroy(), timeoutMs)
        const done = () => clearTimeout(late)
        waiting.set(id, {
          onPart,
          onBegin,
          resolve: (message) => {
            done()
            resolve(message)
          },
          reject: (error) => {
            done()
            reject(error)
          },
        })
        const bytes = body.reduce((sum, piece) => sum + piece.length, 0)
        socket.cork()
        socket.write(packHead({ ...header, id }, bytes))
        for (const piece of body) socket.write(piece)
        socket.uncork()
      })
    },
  }
}
