import type { Bus } from '@tollgate/bus'
import { CLAIM_SECONDS, Fault, sandboxRenew, type Tenancy } from '@tollgate/contracts'
import { counter, type Log } from '@tollgate/telemetry'

/** A request's hold on a container, renewed for as long as it lasts (C-17). */
export interface ContainerClaim {
  /**
   * Does work in the container. Once another request may have it the work's signal fires and `ClaimLost` is thrown, here
   * and at every later call.
   */
  during<T>(signal: AbortSignal, work: (signal: AbortSignal) => Promise<T>): Promise<T>
  stop(): void
}

export class ClaimLost extends Fault {
  constructor() {
    super('unavailable', 'code_execution container is no longer held for this request. Retry later.')
  }
}

export interface ClaimTimes {
  /** How long a claim holds that is not renewed. */
  claimMs: number
  renewMs: number
  /** Until the next try, after a renewal that failed. */
  retryMs: number
  /** Work ends so long before the claim does: word of it has to travel. */
  marginMs: number
}

const claimTimes: ClaimTimes = {
  claimMs: CLAIM_SECONDS * 1_000,
  renewMs: (CLAIM_SECONDS / 3) * 1_000,
  retryMs: 5_000,
  marginMs: 2_000,
}

const renewals = counter('sandbox_claim_renewals', 'Renewals of claims on kept sandboxes, by what came of them', {
  outcome: ['renewed', 'failed', 'lost'],
})

export interface Claimed {
  tenancy: Tenancy
  container: string
  /** When the claim was asked for (`performance.now()`): it holds from then on at the earliest. */
  since: number
}

/** Renews a claim until it is stopped or lost. The broker's clock began no sooner than ours, so ours runs out first. */
export function holdClaim(
  { bus, log }: { bus: Bus; log: Log },
  { tenancy, container, since }: Claimed,
  { claimMs, renewMs, retryMs, marginMs }: ClaimTimes = claimTimes,
): ContainerClaim {
  const about = { request: tenancy.request, container }
  const lost = new AbortController()
  let stopped = false
  let failing = false
  let next = at(since + renewMs, renew)
  let end = at(since + claimMs - marginMs, lose)

  async function renew(): Promise<void> {
    const asked = performance.now()
    try {
      const { renewed } = await bus.call(sandboxRenew, { tenancy, container }, { deadline: Date.now() + renewMs })
      if (stopped) return
      if (!renewed) return lose()
      renewals.add(1, { outcome: 'renewed' })
      if (failing) log.info(about, 'the claim on a kept sandbox is renewed again')
      failing = false
      clearTimeout(end)
      end = at(asked + claimMs - marginMs, lose)
      next = at(asked + renewMs, renew)
    } catch (thrown) {
      if (stopped) return
      renewals.add(1, { outcome: 'failed' })
      // once for all that follow each other
      if (!failing)
        log.warn({ ...about, failure: Fault.from(thrown).failure }, 'a claim was not renewed; the next try follows')
      failing = true
      next = at(performance.now() + retryMs, renew)
    }
  }

  function lose(): void {
    stop()
    renewals.add(1, { outcome: 'lost' })
    log.warn(about, 'a kept sandbox is no longer held for its request, whose calls end')
    lost.abort(new ClaimLost())
  }

  function stop(): void {
    stopped = true
    clearTimeout(next)
    clearTimeout(end)
  }

  return {
    stop,
    async during(signal, work) {
      lost.signal.throwIfAborted()
      const ends = new AbortController()
      const left = () => ends.abort(signal.reason)
      const gone = () => ends.abort(lost.signal.reason)
      signal.addEventListener('abort', left)
      lost.signal.addEventListener('abort', gone)
      if (signal.aborted) left()
      try {
        return await work(ends.signal)
      } catch (thrown) {
        if (!signal.aborted) lost.signal.throwIfAborted()
        throw thrown
      } finally {
        signal.removeEventListener('abort', left)
        lost.signal.removeEventListener('abort', gone)
      }
    },
  }
}

const at = (time: number, act: () => void): NodeJS.Timeout =>
  setTimeout(act, Math.max(0, time - performance.now())).unref()
