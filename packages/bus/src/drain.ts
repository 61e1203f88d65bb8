import { setTimeout as sleep } from 'node:timers/promises'

const LOOK_MS = 10
/** After being cancelled, work is given this long to notice, so that its caller is still told. */
const NOTICE_MS = 500

/**
 * Waits until nothing is under way any more, also what was begun meanwhile by what was. At the deadline the rest is
 * cancelled; resolves false then.
 */
export async function endBy(deadline: number, underWay: () => boolean, cancelRest: () => void): Promise<boolean> {
  if (await idle(deadline, underWay)) return true
  cancelRest()
  await idle(Date.now() + NOTICE_MS, underWay)
  return false
}

async function idle(deadline: number, underWay: () => boolean): Promise<boolean> {
  while (underWay()) {
    if (Date.now() >= deadline) return false
    await sleep(LOOK_MS)
  }
  return true
}
