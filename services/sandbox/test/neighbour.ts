import { expect } from 'vitest'
import { type Backend, printed, type SessionClient } from './harness.ts'

/** What a session of somebody else's may be kept waiting while another one misbehaves. */
const PATIENCE_MS = 1_000
const EVERY_MS = 100

export interface Neighbour {
  session: SessionClient
  /** Asks over and over while `work` runs, and once after it; fails when an answer is late or wrong. */
  during<T>(work: Promise<T>): Promise<T>
}

/** A well-behaved session beside the one under test. On a machine that is slow anyway, late is later. */
export async function openNeighbour(backend: Backend): Promise<Neighbour> {
  const session = await backend.open()
  const ask = async () => {
    const began = performance.now()
    expect(printed(await session.python('print(6 * 7)'))).toBe('42\n')
    return performance.now() - began
  }
  const quiet = Math.max(await ask(), await ask(), await ask())
  const patience = Math.max(PATIENCE_MS, 10 * quiet)
  return {
    session,
    async during(work) {
      let over = false
      const watched = work.finally(() => {
        over = true
      })
      watched.catch(() => {}) // the caller hears of it below
      while (!over) {
        expect(await ask()).toBeLessThan(patience)
        await new Promise((done) => setTimeout(done, EVERY_MS))
      }
      expect(await ask()).toBeLessThan(patience)
      return watched
    },
  }
}
