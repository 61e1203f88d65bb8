import type { Bus } from '@tollgate/bus'
import { changedSettings, Fault, type RuntimeSettings, runtimeSettingsRead } from '@tollgate/contracts'
import type { Log } from '@tollgate/telemetry'
import { type Fresh, keepFresh } from './keep-fresh.ts'

export interface FollowNeeds {
  bus: Bus
  log: Log
  /** Puts the settings into force: once they are known to differ from those of the start, and at every change after. */
  apply(settings: RuntimeSettings): void
  everyMs?: number
}

const ANSWER_MS = 2_000

/**
 * Follows what operators set while the services run, for a service that acts on some of it (CFG-52). Until the gateway can
 * be asked, and where there is none, what the service was started with is in force.
 */
export async function followSettings({
  bus,
  log,
  apply,
  everyMs = 10_000,
}: FollowNeeds): Promise<Pick<Fresh, 'close'>> {
  let known = '{}'

  async function read(): Promise<void> {
    const settings = await bus.call(runtimeSettingsRead, {}, { deadline: Date.now() + ANSWER_MS })
    const text = JSON.stringify(settings)
    if (text === known) return
    apply(settings)
    known = text
    log.info({ set: Object.keys(settings) }, 'other tool settings are in force')
    // who asked this service what it can do before it knew of them asks again
    bus.announce(changedSettings, {})
  }
  function onFailure(thrown: unknown): void {
    // no gateway: nobody sends work either
    if (thrown instanceof Fault && thrown.failure === 'unavailable') return
    log.warn({ err: thrown }, 'the tool settings were not read; those in force stay')
  }

  const fresh = keepFresh({ read, everyMs, onFailure })
  bus.listen(changedSettings, fresh.soon)
  await fresh.now().catch(onFailure)
  return fresh
}
