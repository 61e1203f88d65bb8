import type { Log } from '@tollgate/telemetry'
import { type IsolationLevel, isolationLevels, type SandboxSettings } from '../settings.ts'
import type { Driver } from './driver.ts'
import { openZygoteDriver } from './zygote-driver.ts'

/** A level that this machine does not give, and why. */
export interface RefusedLevel {
  level: IsolationLevel
  reason: string
}

export interface Chosen {
  driver: Driver
  /** The stronger ones, best first. */
  refused: RefusedLevel[]
}

/** The strongest isolation that holds here. Rejects, naming each reason, when all that hold are weaker than is wanted. */
export async function chooseDriver(python: string, settings: SandboxSettings, log: Log): Promise<Chosen> {
  const refused: RefusedLevel[] = []
  const weakest = isolationLevels.indexOf(settings.minIsolation)
  for (const level of isolationLevels.slice(weakest).reverse()) {
    try {
      const driver = await openZygoteDriver(level, python, settings, log)
      log.info({ level, description: driver.description, refused }, 'sessions are kept apart')
      return { driver, refused }
    } catch (thrown) {
      refused.push({ level, reason: thrown instanceof Error ? thrown.message : 'unknown reason' })
    }
  }
  const reasons = refused.map(({ level, reason }) => `${level}: ${reason}`).join('; ')
  throw new Error(`no isolation of level '${settings.minIsolation}' or better can be had here (${reasons})`)
}
