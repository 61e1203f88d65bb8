import { Fault, type HeldContainer, noSuchContainer, type Tenancy } from '@tollgate/contracts'
import { counter } from '@tollgate/telemetry'
import type { Containers } from './containers.ts'
import type { LeaseNeeds } from './leases.ts'
import type { CallLimits, Opened, Refusal } from './provider.ts'
import { traced } from './traced.ts'

/** CFG-06, CFG-07 */
const IDLE_SECONDS = 600
const LIFETIME_SECONDS = 3_600

/** C-16 */
const IN_USE = 'Container is in use by another request. A sandbox runs one request at a time; retry when it finishes.'

const containersAsked = counter('sandbox_containers', 'Sandboxes asked for beyond one request, by what came of it', {
  outcome: ['kept', 'not_kept', 'resumed', 'busy', 'gone', 'failed'],
})

export interface Keeping {
  idleSeconds: number
  lifetimeSeconds: number
}

/** How long a sandbox is kept here; undefined where that is forbidden (C-08). */
export function keeping({ settings, containers }: LeaseNeeds): Keeping | undefined {
  const { containerIdleSeconds: idle = IDLE_SECONDS, containerLifetimeSeconds: lifetime = LIFETIME_SECONDS } = settings
  if (idle === 0 || !containers) return undefined
  return { idleSeconds: Math.min(idle, lifetime), lifetimeSeconds: lifetime }
}

/**
 * Keeps a session that was just opened, if it will really be there: its backend reclaims idle ones itself (CP-12, C-19)
 * and can be asked later whether it still has it (CP-18). Keeping is best effort (C-03): without it the request goes on.
 */
export async function keep(
  { provider, containers, log }: LeaseNeeds,
  tenancy: Tenancy,
  opened: Opened & { status: 'ok' },
  wanted: Keeping,
  limits: CallLimits,
): Promise<HeldContainer | undefined> {
  const { session, idleTimeoutSeconds, maxLifetimeSeconds } = opened
  const container = await keepIt()
  containersAsked.add(1, { outcome: container ? 'kept' : 'not_kept' })
  return container

  async function keepIt(): Promise<HeldContainer | undefined> {
    if (idleTimeoutSeconds === undefined || !containers) return undefined
    const listed = await traced('list', provider.name, () => provider.list(session, '.', limits))
    if (listed.status === 'failed') return undefined
    // never assumed longer than the backend says (CP-06, C-20)
    const idleSeconds = Math.floor(Math.min(wanted.idleSeconds, idleTimeoutSeconds))
    const lifetimeSeconds = Math.floor(Math.min(wanted.lifetimeSeconds, maxLifetimeSeconds ?? wanted.lifetimeSeconds))
    try {
      return await containers.keep(tenancy, { session, idleSeconds, lifetimeSeconds })
    } catch (err) {
      log.warn({ request: tenancy.request, err }, 'a sandbox could not be kept; it serves its request alone')
      return undefined
    }
  }
}

/** Takes a kept sandbox for a request, once its backend has said that it is still there (C-21, CP-26). */
export async function resume(
  needs: LeaseNeeds,
  tenancy: Tenancy,
  id: string,
  limits: CallLimits,
  claimed: (session: string) => void,
): Promise<{ status: 'ok'; session: string; container: HeldContainer } | Refusal> {
  const { provider, containers, log } = needs
  const about = { request: tenancy.request, container: id }
  const claim = keeping(needs) && (await containers?.claim(tenancy, id))
  if (claim === undefined || claim.status === 'gone') throw gone()
  if (claim.status === 'busy') {
    containersAsked.add(1, { outcome: 'busy' })
    throw new Fault('conflict', IN_USE)
  }
  claimed(claim.session)

  const found = await traced('list', provider.name, () => provider.list(claim.session, '.', limits)).catch(
    async (thrown: unknown) => {
      await release()
      throw thrown
    },
  )
  if (found.status === 'ok') {
    containersAsked.add(1, { outcome: 'resumed' })
    log.info({ ...about, session: claim.session }, 'sandbox resumed')
    return claim
  }
  if (found.reason === 'lost') {
    await containers?.drop(tenancy, id)
    throw gone()
  }
  containersAsked.add(1, { outcome: 'failed' })
  log.warn({ ...about, reason: found.reason }, 'a kept sandbox was not reached')
  await release()
  return found

  /** The files are the caller's, and are there for another try (C-30). */
  async function release(): Promise<void> {
    await containers?.release(tenancy, id).catch((err: unknown) => {
      log.warn({ ...about, err }, 'a claim was not given back; it ends by itself')
    })
  }

  function gone(): Fault {
    containersAsked.add(1, { outcome: 'gone' })
    return noSuchContainer(id)
  }
}

/** Ends a claim. `ended`: nothing is kept, and the session is the caller's to end; `lost`: it is not this request's any more. */
export async function giveBack(
  { containers, log }: Pick<LeaseNeeds, 'log'> & { containers: Containers },
  tenancy: Tenancy,
  id: string,
  discard: boolean,
): Promise<{ status: 'kept'; container: HeldContainer } | { status: 'ended' | 'lost' }> {
  if (discard) return { status: (await containers.drop(tenancy, id)) ? 'ended' : 'lost' }
  const released = await containers.release(tenancy, id)
  if (released.status !== 'ok') return { status: released.status }
  const { session, container } = released
  log.info({ request: tenancy.request, session, container: id, until: container.expiresAt }, 'sandbox kept')
  return { status: 'kept', container }
}
