import { join } from 'node:path'
import { sandboxClose, sandboxDescribe, sandboxExec, sandboxOpen, sandboxRenew, sandboxSeed } from '@tollgate/contracts'
import { type Database, migrate } from '@tollgate/db'
import type { FileStore } from '@tollgate/files'
import { openSecrets, type Secrets } from '@tollgate/secrets'
import type { CommonNeeds, Running } from '@tollgate/service'
import { openContainers } from './containers.ts'
import { serveCredential } from './credential.ts'
import { NO_KEY } from './e2b/leases.ts'
import { closeSession, openSession, renewClaim } from './leases.ts'
import { openProvider } from './providers.ts'
import { serveRuntimeSettings } from './runtime-settings.ts'
import { seedSession } from './seed.ts'
import { execInSession } from './sessions.ts'
import type { SandboxBrokerSettings } from './settings.ts'
import { sweepEvery } from './sweep.ts'

export interface SandboxBrokerNeeds extends CommonNeeds {
  settings: SandboxBrokerSettings
  /** Without it no files go into a sandbox. */
  files?: FileStore
  /** Without it no sandbox outlives its request, and no key of a hosted provider can be stored. */
  db?: Database
  /** Opens the stored key of a hosted provider; without it none can be stored. */
  secrets?: Secrets
  /** CFG-40: the hosted provider's key while none is stored. */
  environmentKey?: string
  credentialEveryMs?: number
  sweepEveryMs?: number
}

/** Calls wait for a sandbox, not for a processor: the backend's own capacity is what bounds them. */
const SLOTS = 256

/**
 * Leases sandboxes and runs code in them. A session lives in its backend, so any replica may serve it; what is kept here
 * is who may come back to one, and until when (C-01).
 */
export async function startSandboxBroker(needs: SandboxBrokerNeeds): Promise<Running> {
  const { bus, log, settings, files, db, sweepEveryMs = 60_000 } = needs
  if (db) await migrate(db, { schema: 'sandbox', folder: join(import.meta.dirname, 'migrations') })
  const credential = await serveCredential({
    bus,
    log,
    db,
    secrets: needs.secrets ?? openSecrets(undefined),
    environmentKey: needs.environmentKey,
    ...(needs.credentialEveryMs === undefined ? {} : { everyMs: needs.credentialEveryMs }),
  })
  const runtimeSettings = await serveRuntimeSettings({ bus, log, settings })
  const provider = await openProvider({ settings, apiKey: credential.apiKey, log })
  const unavailable = () => whyUnavailable(settings, credential.apiKey())
  if (settings.provider === 'e2b' && unavailable()) log.error({}, NO_KEY)
  const containers = db && openContainers(db, provider.name)
  const parts = { provider, settings, log, files, containers }
  const sweeping = containers && sweepEvery(sweepEveryMs, containers, log)

  await bus.serve(sandboxDescribe, async () => {
    const reason = unavailable()
    return { available: reason === undefined, provider: provider.name, ...(reason === undefined ? {} : { reason }) }
  })
  await bus.serve(sandboxOpen, openSession(parts), { slots: SLOTS })
  await bus.serve(sandboxRenew, renewClaim(parts), { slots: SLOTS })
  await bus.serve(sandboxExec, execInSession(parts), { slots: SLOTS })
  await bus.serve(sandboxSeed, seedSession(parts), { slots: SLOTS })
  await bus.serve(sandboxClose, closeSession(parts), { slots: SLOTS })

  return {
    // Running calls end with the bus, which is drained first; what is left here are connections.
    async close() {
      await sweeping?.stop()
      await provider.close()
      await credential.close()
      await runtimeSettings.close()
      return true
    },
  }
}

function whyUnavailable(settings: SandboxBrokerSettings, apiKey: string | undefined): string | undefined {
  if (settings.provider === 'e2b') return apiKey === undefined ? NO_KEY : undefined
  if (settings.url) return undefined
  return settings.unavailableReason ?? 'no sandbox is configured: set sandbox_url'
}
