import { mkdir } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import type { Engine } from './engine.ts'
import { lockFolder } from './folder-lock.ts'
import { pglitePool } from './pglite-pool.ts'
import { parsers } from './values.ts'

export const IN_MEMORY = 'memory:'

/**
 * Postgres inside this process, in a folder or in memory. It works in the process's own event loop: for trying out and
 * for tests, not for load, and without a statement timeout since nothing else runs while a statement does.
 */
export async function pgliteEngine(place: string, acquireTimeoutMs: number): Promise<Engine> {
  if (place === IN_MEMORY) return pglitePool(await start(undefined), acquireTimeoutMs, async () => {})
  const folder = resolve(place)
  await mkdir(dirname(folder), { recursive: true })
  const unlock = await lockFolder(folder)
  try {
    return pglitePool(await start(folder), acquireTimeoutMs, unlock)
  } catch (error) {
    await unlock()
    throw error
  }
}

/** Loaded only when used: it is 20 MB that a deployment with Postgres never needs. */
async function start(dataDir: string | undefined) {
  const { PGlite } = await import('@electric-sql/pglite')
  const db = await PGlite.create(dataDir === undefined ? {} : { dataDir })
  // After the start, since it makes array parsers of its own while starting.
  for (const [type, parse] of Object.entries(parsers)) db.parsers[type] = parse
  // Parameters arrive as text already.
  for (const type of Object.keys(db.serializers)) db.serializers[type] = (text: string) => text
  return db
}
