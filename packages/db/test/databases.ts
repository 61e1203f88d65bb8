import { openLog } from '@tollgate/telemetry'
import { freshDatabase, freshFolder } from '@tollgate/testing'
import { inject } from 'vitest'
import { type Database, type OpenOptions, openDb } from '../src/index.ts'

export const log = openLog({ service: 'test', level: 'silent' })
export const kinds = ['pglite', 'postgres'] as const

export interface Opened {
  db: Database
  /** Another handle on the same data: another process's pool on Postgres, the same handle on PGlite, which has only one. */
  another(): Promise<Database>
  close(): Promise<void>
}

/** An empty database of the given kind. */
export async function open(kind: (typeof kinds)[number], options: Partial<OpenOptions> = {}): Promise<Opened> {
  if (kind === 'pglite') {
    const folder = await freshFolder()
    const db = await openDb({ url: folder.url, log, ...options })
    const close = async () => {
      await db.close()
      await folder.drop()
    }
    return { db, another: async () => db, close }
  }
  const fresh = await freshDatabase(inject('postgresUrl'))
  const opened: Database[] = []
  const another = async () => {
    const db = await openDb({ url: fresh.url, log, poolSize: 4, ...options })
    opened.push(db)
    return db
  }
  return {
    db: await another(),
    another,
    async close() {
      await Promise.all(opened.map((db) => db.close()))
      await fresh.drop()
    },
  }
}

/** Takes a connection and keeps it until told to let go. */
export async function holdConnection(db: Database): Promise<{ letGo(): Promise<void> }> {
  let letGo = () => {}
  let holding: Promise<void> | undefined
  await new Promise<void>((taken) => {
    holding = db.kysely.connection().execute(() => {
      taken()
      return new Promise<void>((resolve) => {
        letGo = resolve
      })
    })
  })
  return {
    async letGo() {
      letGo()
      await holding
    },
  }
}
