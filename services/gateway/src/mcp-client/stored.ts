import type { Bus } from '@tollgate/bus'
import { changedPolicies, Fault } from '@tollgate/contracts'
import type { Reencrypted, Secrets } from '@tollgate/secrets'
import { type Selectable, sql, type Updateable } from 'kysely'
import { boundedCache } from '../bounded-cache.ts'
import { newId } from '../ids.ts'
import type { GatewayDb, Tables } from '../tables.ts'

/** A change reaches every replica by `changed.policies`, and at the latest after this long. */
const FRESH_MS = 15_000
/** Workspaces whose servers are remembered; of each at most as many as it may have. */
const MOST_WORKSPACES = 200
const MOST_SERVERS = 50

export type StoredServer = Selectable<Tables['gateway.mcp_servers']>
type Changes = Omit<Updateable<Tables['gateway.mcp_servers']>, 'id' | 'workspace' | 'created_at' | 'updated_at'>

/** The MCP servers of workspaces (M-12), with their tokens as they are stored. */
export interface StoredServers {
  /** All of them, by name; remembered for at most 15 s. */
  known(workspace: string): Promise<readonly StoredServer[]>
  list(workspace: string): Promise<StoredServer[]>
  find(workspace: string, id: string): Promise<StoredServer>
  add(workspace: string, row: Changes & { name: string; url: string; enabled: boolean }): Promise<StoredServer>
  change(workspace: string, id: string, changes: Changes): Promise<StoredServer>
  remove(workspace: string, id: string): Promise<void>
  /** Brings the tokens of every workspace under the first key. */
  reencrypt(secrets: Secrets): Promise<Record<Reencrypted['state'], number>>
  close(): void
}

export function storedServers({ db, bus }: { db: GatewayDb; bus: Bus }): StoredServers {
  const { kysely } = db
  const remembered = boundedCache<readonly StoredServer[]>(MOST_WORKSPACES, FRESH_MS)
  let generation = 0
  let open = true

  const forget = () => {
    generation += 1
    remembered.clear()
  }
  bus.listen(changedPolicies, () => {
    if (open) forget()
  })
  const changed = (workspace: string) => {
    forget()
    bus.announce(changedPolicies, { workspace })
  }
  const of = (workspace: string) =>
    kysely.selectFrom('gateway.mcp_servers').selectAll().where('workspace', '=', workspace).orderBy('name')

  return {
    async known(workspace) {
      const found = remembered.get(workspace)
      if (found) return found
      const before = generation
      const rows = await of(workspace).execute()
      // what was read while something was written may be of before: it is used once and not kept
      if (generation === before) remembered.set(workspace, rows)
      return rows
    },
    list: (workspace) => of(workspace).execute(),
    async find(workspace, id) {
      const row = await of(workspace).where('id', '=', id).executeTakeFirst()
      if (!row) throw noSuchServer(id)
      return row
    },
    async add(workspace, wanted) {
      const row = await kysely.transaction().execute(async (tx) => {
        // one at a time, so that two cannot both be the last that fits
        await tx.selectFrom('gateway.workspaces').select('id').where('id', '=', workspace).forUpdate().execute()
        const mine = tx.selectFrom('gateway.mcp_servers').where('workspace', '=', workspace)
        const { count } = await mine.select((e) => e.fn.countAll<bigint>().as('count')).executeTakeFirstOrThrow()
        if (Number(count) >= MOST_SERVERS)
          throw new Fault('invalid_request', `A workspace may have at most ${MOST_SERVERS} MCP servers`)
        return tx
          .insertInto('gateway.mcp_servers')
          .values({ id: newId(), workspace, ...wanted })
          .onConflict((conflict) => conflict.columns(['workspace', 'name']).doNothing())
          .returningAll()
          .executeTakeFirst()
      })
      if (!row) throw nameTaken()
      changed(workspace)
      return row
    },
    async change(workspace, id, changes) {
      const row = await kysely.transaction().execute(async (tx) => {
        await tx.selectFrom('gateway.workspaces').select('id').where('id', '=', workspace).forUpdate().execute()
        const { name } = changes
        const others = tx.selectFrom('gateway.mcp_servers').where('workspace', '=', workspace).where('id', '!=', id)
        if (name !== undefined && (await others.select('id').where('name', '=', name).executeTakeFirst()))
          throw nameTaken()
        return tx
          .updateTable('gateway.mcp_servers')
          .set({ ...changes, updated_at: sql`now()` })
          .where('workspace', '=', workspace)
          .where('id', '=', id)
          .returningAll()
          .executeTakeFirst()
      })
      if (!row) throw noSuchServer(id)
      changed(workspace)
      return row
    },
    async remove(workspace, id) {
      const gone = await kysely
        .deleteFrom('gateway.mcp_servers')
        .where('workspace', '=', workspace)
        .where('id', '=', id)
        .returning('id')
        .executeTakeFirst()
      if (!gone) throw noSuchServer(id)
      changed(workspace)
    },
    async reencrypt(secrets) {
      const counts = { reencrypted: 0, unreadable: 0, skipped: 0 }
      const rows = await kysely
        .selectFrom('gateway.mcp_servers')
        .select(['id', 'sealed_token'])
        .where('sealed_token', 'is not', null)
        .execute()
      for (const { id, sealed_token: sealed } of rows) {
        const result = secrets.reencrypt(sealed ?? '')
        counts[result.state] += 1
        if (result.state !== 'reencrypted') continue
        await kysely
          .updateTable('gateway.mcp_servers')
          .set({ sealed_token: result.token })
          .where('id', '=', id)
          .where('sealed_token', '=', sealed) // one that was replaced meanwhile is under the first key already
          .execute()
      }
      return counts
    },
    close() {
      open = false
    },
  }
}

const nameTaken = (): Fault => new Fault('conflict', 'The workspace has an MCP server of this name')

/** C-14's way with ids that come from outside. */
export const noSuchServer = (id: string): Fault =>
  new Fault('not_found', `MCP server ${id.replace(/[^\x20-\x7e]/g, '').slice(0, 64)} not found`)
