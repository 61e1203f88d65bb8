import type { Bus } from '@tollgate/bus'
import { type RuntimeSettings, sandboxJudgeSettings, sandboxTry } from '@tollgate/contracts'
import { followSettings } from '@tollgate/service'
import type { Log } from '@tollgate/telemetry'
import { openProtocol } from './protocol/client.ts'
import type { Refusal } from './provider.ts'
import type { SandboxBrokerSettings } from './settings.ts'

export interface RuntimeNeeds {
  bus: Bus
  log: Log
  /** Changed in place, where every call reads them. */
  settings: SandboxBrokerSettings
  everyMs?: number
}

/** An attempt that could not be ended is its backend's to end after so long. */
const TRIED_IDLE_SECONDS = 60

const REASONS: Record<Refusal['reason'], string> = {
  unreachable: 'nothing answers there',
  timeout: 'there was no answer in time',
  refused: 'what answers there is no code-execution backend, or does not take sandbox_token',
  lost: 'what answers there knows no sessions',
  busy: 'it has no room for another session now',
}

/** Keeps `sandbox_url` as operators set it while the broker runs, and answers what is asked about one (CFG-52, CFG-54). */
export async function serveRuntimeSettings({ bus, log, settings, everyMs }: RuntimeNeeds) {
  const { url, token, configuredToken, provider } = settings

  await bus.serve(sandboxJudgeSettings, async ({ sandbox_url: wanted }) => ({
    problems:
      wanted !== undefined && provider !== 'protocol'
        ? [{ key: 'sandbox_url', why: `is for sandbox_provider protocol, and this deployment's is ${provider}` }]
        : [],
  }))

  await bus.serve(sandboxTry, async ({ url: tried }, limits) => {
    const backend = openProtocol({ url: tried, token: configuredToken })
    const image = settings.sessionImage
    try {
      const wanted = { idleTimeoutSeconds: TRIED_IDLE_SECONDS, ...(image === undefined ? {} : { image }) }
      const opened = await backend.create(wanted, limits)
      if (opened.status === 'failed') return { ok: false, reason: REASONS[opened.reason] }
      const ended = await backend.destroy(opened.session, limits)
      return ended.status === 'ok'
        ? { ok: true, reason: null }
        : { ok: false, reason: 'it opened a session, and did not end it' }
    } finally {
      await backend.close()
    }
  })

  return followSettings({
    bus,
    log,
    apply({ sandbox_url: set }: RuntimeSettings) {
      settings.url = set ?? url
      settings.token = set === undefined ? token : configuredToken
    },
    ...(everyMs === undefined ? {} : { everyMs }),
  })
}
