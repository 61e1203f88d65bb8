import { sandboxClose, sandboxDescribe, sandboxExec, sandboxOpen, sandboxSeed } from '@tollgate/contracts'
import type { FileStore } from '@tollgate/files'
import type { CommonNeeds, Running } from '@tollgate/service'
import { openProvider } from './providers.ts'
import { seedSession } from './seed.ts'
import { closeSession, execInSession, openSession } from './sessions.ts'
import type { SandboxBrokerSettings } from './settings.ts'

export interface SandboxBrokerNeeds extends CommonNeeds {
  settings: SandboxBrokerSettings
  /** Without it no files go into a sandbox. */
  files?: FileStore
}

/** Calls wait for a sandbox, not for a processor: the backend's own capacity is what bounds them. */
const SLOTS = 256

/**
 * Leases sandboxes and runs code in them. It keeps nothing: a session lives in its backend, and its id is all there is
 * to know of it. Sandboxes held from one request to the next (C-01) would be rows of a `sandbox.containers` table,
 * beside these five calls and not inside them.
 */
export async function startSandboxBroker({ bus, log, settings, files }: SandboxBrokerNeeds): Promise<Running> {
  const provider = openProvider(settings)
  const parts = { provider, settings, log, files }

  await bus.serve(sandboxDescribe, async () => {
    const reason = unavailable(settings)
    return { available: reason === undefined, provider: provider.name, ...(reason === undefined ? {} : { reason }) }
  })
  await bus.serve(sandboxOpen, openSession(parts), { slots: SLOTS })
  await bus.serve(sandboxExec, execInSession(parts), { slots: SLOTS })
  await bus.serve(sandboxSeed, seedSession(parts), { slots: SLOTS })
  await bus.serve(sandboxClose, closeSession(parts), { slots: SLOTS })

  return {
    // Running calls end with the bus, which is drained first; what is left here are connections.
    async close() {
      await provider.close()
      return true
    },
  }
}

const unavailable = ({ provider, url, unavailableReason }: SandboxBrokerSettings): string | undefined =>
  provider === 'protocol' && !url ? (unavailableReason ?? 'no sandbox is configured: set sandbox_url') : undefined
