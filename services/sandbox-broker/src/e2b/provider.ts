import { openTrustedClient } from '@tollgate/http'
import type { Log } from '@tollgate/telemetry'
import type { CallLimits, Provider, Refusal } from '../provider.ts'
import type { E2bSettings } from './endpoints.ts'
import { getFile, listFiles, putFile, saveFigures, WORKSPACE } from './files.ts'
import { openInterpreter } from './interpreter.ts'
import { type Handle, openLeases } from './leases.ts'
import { lost } from './refusals.ts'
import { type E2bSession, readSession, writeSession } from './session.ts'
import { runCommand } from './shell.ts'

export interface E2bNeeds {
  settings: E2bSettings
  /** The key in force now; undefined when there is none (CFG-53). */
  apiKey(): string | undefined
  log: Log
}

/** The longest life asked for: what the vendor grants on every plan. */
const MAX_LIFE_SECONDS = 3_600
const CALL_MS = 15_000

/** Sandboxes of E2B, or of a deployment of its open infrastructure (CP-28). The image is the template's (CP-05). */
export async function openE2b({ settings, apiKey, log }: E2bNeeds): Promise<Provider> {
  const http = openTrustedClient()
  const leases = openLeases({ settings, http, apiKey, sdk: await loadSdk() })
  const interpreter = openInterpreter({ settings, http, leases, log })

  /** Finds the session's sandbox, uses it, and sets its idle clock: it is idle from the end of its last use. */
  async function using<T extends { status: string }>(
    id: string,
    limits: CallLimits,
    busySeconds: number,
    use: (handle: Handle, session: E2bSession) => Promise<T | Refusal>,
  ): Promise<T | Refusal> {
    const session = readSession(id)
    if (!session) return lost
    const handle = await leases.find(session, limits, busySeconds)
    if (handle.status === 'failed') return handle
    const result = await use(handle, session)
    if (result.status === 'ok' && busySeconds > 0) {
      const armed = await leases.arm(handle, session, { ...limits, deadline: Date.now() + CALL_MS })
      if (armed.status === 'failed') log.warn({ reason: armed.reason }, 'the idle clock of a sandbox was not set')
    }
    return result
  }

  return {
    name: 'e2b',
    capabilities: { images: false, files: true, lifetimes: true },

    async create({ idleTimeoutSeconds, maxLifetimeSeconds = MAX_LIFE_SECONDS }, limits) {
      const lifeSeconds = Math.min(maxLifetimeSeconds, MAX_LIFE_SECONDS)
      const idleSeconds = Math.min(idleTimeoutSeconds ?? 0, lifeSeconds)
      const endsAt = Math.floor(Date.now() / 1_000) + lifeSeconds
      const handle = await leases.create(idleSeconds || lifeSeconds, limits)
      if (handle.status === 'failed') return handle
      try {
        const ready = await prepare(handle, limits)
        if (ready.status === 'ok') {
          const session = writeSession({ sandbox: handle.id, context: ready.id, idleSeconds, endsAt })
          const idle = idleSeconds === 0 ? {} : { idleTimeoutSeconds: idleSeconds }
          return { status: 'ok', session, isolation: 'microvm', maxLifetimeSeconds: lifeSeconds, ...idle }
        }
        giveUp(handle)
        // a sandbox that was lost before it was leased is no session's loss
        return ready.reason === 'lost' ? { status: 'failed', reason: 'unreachable' } : ready
      } catch (thrown) {
        giveUp(handle)
        throw thrown
      }
    },

    exec: (id, call, limits) =>
      using(id, limits, call.timeoutSeconds, async (handle, { context }) => {
        if (call.kind === 'shell') return runCommand(leases, handle, WORKSPACE, call, limits)
        const ran = await interpreter.run(handle, context, call, limits)
        if ('status' in ran) return ran
        return { ...ran.result, files: await saveFigures(leases, handle, ran.figures, limits) }
      }),

    async destroy(id, limits) {
      const session = readSession(id)
      return session ? leases.kill(session.sandbox, limits) : { status: 'ok' }
    },

    list: (id, path, limits) => using(id, limits, 0, (handle) => listFiles(leases, handle, path, limits)),
    get: (id, path, limits) => using(id, limits, 0, (handle) => getFile(leases, handle, path, limits)),
    put: (id, file, limits) => using(id, limits, 0, (handle) => putFile(leases, handle, file, limits)),

    async close() {
      await interpreter.close()
      await http.close()
    },
  }

  async function prepare(handle: Handle, limits: CallLimits): Promise<{ status: 'ok'; id: string } | Refusal> {
    const folder = await leases.use(handle, limits, CALL_MS, (signal) =>
      handle.sandbox.files.makeDir(WORKSPACE, { signal }),
    )
    return folder.status === 'failed' ? folder : interpreter.createContext(handle, WORKSPACE, limits)
  }

  /** Nobody will ever name it; should this fail, its own clock ends it. */
  function giveUp(handle: Handle): void {
    const limits = { signal: new AbortController().signal, deadline: Date.now() + CALL_MS }
    void leases.kill(handle.id, limits).catch((err) => log.warn({ err }, 'a sandbox was not given up'))
  }
}

/** An optional dependency: whoever runs code elsewhere need not have it. */
async function loadSdk(): Promise<Pick<typeof import('e2b'), 'Sandbox'>> {
  try {
    return await import('e2b')
  } catch (cause) {
    throw new Error("sandbox_provider is 'e2b', which needs the package `e2b`: install the optional dependencies", {
      cause,
    })
  }
}
