import type { FastifyReply } from 'fastify'
import type { Caller } from '../drivers/driver.ts'

/** Leaves when the client does before its answer is written: nobody would read what is still done for it. */
export function callerOf(reply: FastifyReply): Caller {
  let hasLeft = false
  let told: (() => void) | undefined
  reply.raw.once('close', () => {
    hasLeft = !reply.raw.writableFinished
    if (hasLeft) told?.()
  })
  return {
    get hasLeft() {
      return hasLeft
    },
    onLeave(listener) {
      told = listener
    },
  }
}
