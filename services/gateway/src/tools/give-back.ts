import { setTimeout as sleep } from 'node:timers/promises'
import type { Bus } from '@tollgate/bus'
import { Fault, failures, type HeldContainer, sandboxClose, type Tenancy } from '@tollgate/contracts'

export interface LeasedSession {
  id: string
  tenancy: Tenancy
  /** The container it is kept as. */
  container: string | undefined
}

const CLOSE_MS = 5_000
const AGAIN_MS = 1_000
/** A broker that was restarted is back by then; after that the backend's own clocks do it. */
const TRIED_FOR_MS = 60_000
const MOST_AT_ONCE = 1_000

/** Sessions of this process whose broker was not there to take them. */
let trying = 0

/**
 * Ends a request's use of a session, and tells until when it is kept. Where no broker answers, whoever asked is told so at
 * once, and the session is given back when there is one again: it would keep its place until it had idled away.
 */
export async function giveBack(bus: Bus, session: LeasedSession, discard: boolean): Promise<HeldContainer | undefined> {
  try {
    return await close(bus, session, discard)
  } catch (thrown) {
    if (mayComeBack(thrown) && trying < MOST_AT_ONCE) void giveBackLater(bus, session, discard)
    throw thrown
  }
}

/** What another request has claimed since is left alone by the broker, however late this comes. */
async function giveBackLater(bus: Bus, session: LeasedSession, discard: boolean): Promise<void> {
  trying += 1
  for (const until = Date.now() + TRIED_FOR_MS; Date.now() < until; ) {
    await sleep(AGAIN_MS, undefined, { ref: false })
    try {
      await close(bus, session, discard)
      break
    } catch (thrown) {
      if (!mayComeBack(thrown)) break
    }
  }
  trying -= 1
}

async function close(bus: Bus, { id, tenancy, container }: LeasedSession, discard: boolean) {
  const asked = { tenancy, session: id, container, discard }
  return (await bus.call(sandboxClose, asked, { deadline: Date.now() + CLOSE_MS })).container
}

function mayComeBack(thrown: unknown): boolean {
  const { failure } = Fault.from(thrown)
  return failures[failure].retry || failure === 'timeout'
}
