import type { Handler } from '@tollgate/bus'
import { Fault, type sandboxClose, type sandboxOpen, type sandboxRenew } from '@tollgate/contracts'
import type { Log } from '@tollgate/telemetry'
import type { Containers } from './containers.ts'
import { giveBack, keep, keeping, resume } from './kept.ts'
import type { Provider, Refusal } from './provider.ts'
import type { SandboxBrokerSettings } from './settings.ts'
import { traced } from './traced.ts'

/** Fixed texts that reach the client. */
const UNREACHABLE =
  "code_execution sandbox unreachable. Check the sandbox URL in the dashboard's Tools settings, or OTARI_SANDBOX_URL, and that the container is running."
const AT_CAPACITY = 'code_execution sandbox temporarily unavailable. Retry later.'

export interface LeaseNeeds {
  provider: Provider
  settings: SandboxBrokerSettings
  /** Without it no sandbox outlives its request. */
  containers: Containers | undefined
  log: Log
}

/**
 * Leases a session, or takes the one kept under an id. At capacity is not tried again here (CP-23); whatever else went
 * wrong is the backend's failure.
 */
export const openSession =
  (needs: LeaseNeeds): Handler<typeof sandboxOpen> =>
  async ({ tenancy, image = needs.settings.sessionImage, container: wish, leaseSeconds }, limits) => {
    const { provider, log } = needs
    if (wish?.kind === 'id') {
      const resumed = await resume(needs, tenancy, wish.id, limits, (session) =>
        limits.emit({ type: 'leased', session }),
      )
      if (resumed.status === 'failed') throw unopened(resumed)
      return { session: resumed.session, container: resumed.container }
    }
    const pinned = image !== undefined && provider.capabilities.images
    if (image !== undefined && !pinned) log.info({ provider: provider.name }, 'the provider takes no session image')
    const kept = wish && keeping(needs)
    const options = {
      ...(pinned ? { image } : {}),
      ...(kept ? { idleTimeoutSeconds: kept.idleSeconds } : {}),
      ...(provider.capabilities.lifetimes ? { maxLifetimeSeconds: kept?.lifetimeSeconds ?? leaseSeconds } : {}),
    }
    const opened = await traced('create', provider.name, () => provider.create(options, limits))
    if (opened.status === 'failed') {
      log.warn({ request: tenancy.request, reason: opened.reason }, 'no sandbox session was leased')
      throw unopened(opened)
    }
    const { session, isolation } = opened
    limits.emit({ type: 'leased', session })
    log.info({ request: tenancy.request, session, isolation }, 'sandbox session leased')
    const container = kept && (await keep(needs, tenancy, opened, kept, limits))
    return { session, ...(isolation === undefined ? {} : { isolation }), ...(container ? { container } : {}) }
  }

function unopened(refusal: Refusal): Fault {
  if (refusal.reason !== 'busy') return new Fault('upstream', UNREACHABLE)
  const { retryAfterSeconds } = refusal
  return new Fault('unavailable', AT_CAPACITY, retryAfterSeconds === undefined ? {} : { retryAfterSeconds })
}

export const renewClaim =
  ({ containers }: LeaseNeeds): Handler<typeof sandboxRenew> =>
  async ({ tenancy, container }) => ({ renewed: (await containers?.renew(tenancy, container)) ?? false })

/**
 * Ends a request's use of its session. One that is kept stays with its backend, whose own clock runs from here (CP-25);
 * any other is released, and that failing fails nobody: its backend will reclaim it (CP-15).
 */
export const closeSession =
  (needs: LeaseNeeds): Handler<typeof sandboxClose> =>
  async ({ tenancy, session, container, discard }, limits) => {
    const { containers } = needs
    if (container !== undefined && containers) {
      const ended = await giveBack({ ...needs, containers }, tenancy, container, discard)
      if (ended.status === 'kept') return { container: ended.container }
      if (ended.status === 'lost') return {}
    }
    const { provider, log } = needs
    const released = await traced('destroy', provider.name, () => provider.destroy(session, limits))
    const about = { request: tenancy.request, session }
    if (released.status === 'failed') log.warn({ ...about, reason: released.reason }, 'the session was not released')
    else log.info(about, 'sandbox session released')
    return {}
  }
