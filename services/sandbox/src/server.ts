import { type AddressInfo, isIP } from 'node:net'
import type { Running } from '@tollgate/service'
import type { Log } from '@tollgate/telemetry'
import { chooseDriver } from './drivers/choose.ts'
import { removeLeftovers } from './drivers/folders.ts'
import { buildApp } from './http/app.ts'
import type { Health } from './http/health.ts'
import { openPool } from './pool.ts'
import { probePython } from './python.ts'
import { openSessions } from './sessions.ts'
import type { IsolationLevel, SandboxSettings } from './settings.ts'

export interface SandboxNeeds {
  log: Log
  settings: SandboxSettings
  /** Folders in which a Python is looked for when the settings name none: the PATH. */
  path?: string
}

export interface RunningSandbox extends Running {
  /** Where protocol v1 is served. */
  url: string
  isolation: IsolationLevel
  health(): Health
}

/**
 * Serves code-execution protocol v1 from this machine. Fails, with a reason an operator can act on, where there is no
 * Python, no isolation of the wanted level, or an address that others reach and no credential asked of them.
 */
export async function startSandbox({ log, settings, path }: SandboxNeeds): Promise<RunningSandbox> {
  checkExposure(settings)
  const { python: wanted } = settings
  const python = await probePython({ ...(wanted ? { python: wanted } : {}), ...(path ? { path } : {}) })
  if (!python.ok) throw new Error(python.reason)
  await removeLeftovers()
  const { driver, refused } = await chooseDriver(python.path, settings, log)
  const pool = openPool(driver, settings.warmSessions, log)
  const sessions = openSessions(pool, settings, log)
  const health = (): Health => ({
    down: driver.down(),
    isolation: { level: driver.level, description: driver.description, refused },
    python: driver.python,
    sessions: { leased: sessions.size, ready: pool.waiting, most: settings.maxSessions },
  })
  const app = buildApp({ sessions, settings, log, health })
  const end = async () => {
    sessions.close()
    await pool.close()
    await driver.close()
  }
  try {
    await app.listen({ host: settings.host, port: settings.port })
  } catch (thrown) {
    await end()
    throw thrown
  }
  const url = urlOf(app.server.address() as AddressInfo)
  log.info({ url, isolation: driver.level }, 'sandbox serves')

  return {
    url,
    isolation: driver.level,
    health,
    notReady: async () => driver.down(),
    async close(deadline) {
      const inOrder = await untilIdle(sessions.busy, deadline)
      // what is cut off gets its 404 before its connection goes
      sessions.close()
      const late = setTimeout(() => app.server.closeAllConnections(), LAST_WORDS_MS)
      await app.close()
      clearTimeout(late)
      await end()
      return inOrder
    },
  }
}

const loopback = new Set(['127.0.0.1', '::1', 'localhost'])

function checkExposure({ host, token, minIsolation }: SandboxSettings): void {
  if (loopback.has(host)) return
  if (!token) throw new Error(`a sandbox on ${host} can be used by whoever reaches it: set sandbox_token`)
  if (minIsolation === 'process')
    throw new Error(`a sandbox without isolation must not listen on ${host}: choose a loopback address`)
}

/** An address that stands for all of them is reached by the loopback one. */
function urlOf({ address, port }: AddressInfo): string {
  if (address === '0.0.0.0' || address === '::') return `http://127.0.0.1:${port}`
  return `http://${isIP(address) === 6 ? `[${address}]` : address}:${port}`
}

const LOOK_MS = 50
const LAST_WORDS_MS = 1_000

async function untilIdle(busy: () => number, deadline: number): Promise<boolean> {
  while (busy() > 0 && Date.now() < deadline) await new Promise((done) => setTimeout(done, LOOK_MS))
  return busy() === 0
}
