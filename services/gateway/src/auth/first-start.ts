import { join } from 'node:path'
import { type Database, migrate } from '@tollgate/db'
import { newId } from '../ids.ts'
import { DEFAULT_ORGANIZATION, DEFAULT_USER, DEFAULT_WORKSPACE, type GatewayDb, type Tables } from '../tables.ts'
import { hashKey, mintKey } from './secret-key.ts'

/** Brings the gateway's tables up to date; the first time, with the default organization, workspace and user in them. */
export async function migrateGateway(db: Database): Promise<GatewayDb> {
  await migrate(db, { schema: 'gateway', folder: join(import.meta.dirname, '../migrations') })
  return db.typed<Tables>()
}

/** Makes a master key where there is none and returns it, this once: only its hash is kept. */
export async function ensureMasterKey(db: GatewayDb): Promise<string | undefined> {
  const made = mintKey('gw-master')
  const { numUpdatedRows } = await db.kysely
    .updateTable('gateway.deployment')
    .set({ master_key_hash: made.hash })
    .where('master_key_hash', 'is', null)
    .executeTakeFirstOrThrow()
  return numUpdatedRows > 0n ? made.plaintext : undefined
}

/** The hash a master key is compared with: of the setting when there is one, else of the key that was made here. */
export async function masterKeyHash(db: GatewayDb, setting: string | undefined): Promise<string> {
  if (setting !== undefined) return hashKey(setting)
  const row = await db.kysely.selectFrom('gateway.deployment').select('master_key_hash').executeTakeFirst()
  if (!row?.master_key_hash) throw new Error('there is no master key: set master_key, or let one be made first')
  return row.master_key_hash
}

/** Makes the first API key of a deployment and returns it, this once, so that a first request can be sent. */
export async function ensureFirstKey(db: GatewayDb): Promise<string | undefined> {
  const made = mintKey()
  return db.kysely.transaction().execute(async (tx) => {
    const { numUpdatedRows } = await tx
      .updateTable('gateway.deployment')
      .set({ first_key_made: true })
      .where('first_key_made', '=', false)
      .executeTakeFirstOrThrow()
    if (numUpdatedRows === 0n) return undefined
    await tx
      .insertInto('gateway.keys')
      .values({
        id: newId(),
        organization: DEFAULT_ORGANIZATION,
        workspace: DEFAULT_WORKSPACE,
        user_id: DEFAULT_USER,
        name: 'first key',
        hash: made.hash,
        prefix: made.prefix,
      })
      .execute()
    return made.plaintext
  })
}
