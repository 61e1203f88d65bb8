import { Fault } from '@tollgate/contracts'
import type { Selectable } from 'kysely'
import { newId } from '../ids.ts'
import type { GatewayDb, Tables } from '../tables.ts'
import { isBroader } from './allowed-models.ts'
import { mintKey } from './secret-key.ts'

export type KeyRow = Selectable<Tables['gateway.keys']>

/** What may be said about a key; what is left out keeps its value, or its default. */
export type KeyMembers = Partial<
  Pick<
    KeyRow,
    | 'name'
    | 'active'
    | 'expires_at'
    | 'allowed_models'
    | 'allowed_tools'
    | 'budget_exempt'
    | 'reject_user_mismatch'
    | 'metadata'
  >
>

/** A key with its secret, which is nowhere afterwards. */
export interface NewKey {
  row: KeyRow
  plaintext: string
}

export interface KeyFilter {
  user?: string | undefined
  workspace?: string | undefined
  skip: number
  limit: number
}

export type KeyStore = ReturnType<typeof keyStore>

/** Keys as rows. Whatever is not there is `not_found`. */
export function keyStore({ kysely }: GatewayDb) {
  return {
    async create(user: string, workspaceId: string, members: KeyMembers): Promise<NewKey> {
      const workspace = await findWorkspace(workspaceId)
      await checkModels(workspace.organization, user, members.allowed_models)
      const { plaintext, hash, prefix } = mintKey()
      const row = await kysely
        .insertInto('gateway.keys')
        .values({
          ...members,
          id: newId(),
          organization: workspace.organization,
          workspace: workspace.id,
          user_id: user,
          hash,
          prefix,
        })
        .returningAll()
        .executeTakeFirstOrThrow()
      return { row, plaintext }
    },

    async list({ user, workspace, skip, limit }: KeyFilter): Promise<{ rows: KeyRow[]; count: number }> {
      let found = kysely.selectFrom('gateway.keys')
      if (user !== undefined) found = found.where('user_id', '=', user)
      if (workspace !== undefined) found = found.where('workspace', '=', workspace)
      const { count } = await found.select((e) => e.fn.countAll<bigint>().as('count')).executeTakeFirstOrThrow()
      const newest = found.selectAll().orderBy('created_at', 'desc').orderBy('id', 'desc')
      return { rows: await newest.offset(skip).limit(limit).execute(), count: Number(count) }
    },

    find,

    async change(id: string, members: KeyMembers): Promise<KeyRow> {
      const before = await find(id)
      await checkModels(before.organization, before.user_id, members.allowed_models)
      return Object.keys(members).length === 0 ? before : write(id, members)
    },

    /** The old secret ends with this. */
    async rotate(id: string): Promise<NewKey> {
      const { plaintext, hash, prefix } = mintKey()
      return { row: await write(id, { hash, prefix }), plaintext }
    },

    async remove(id: string): Promise<void> {
      const { numDeletedRows } = await kysely.deleteFrom('gateway.keys').where('id', '=', id).executeTakeFirst()
      if (numDeletedRows === 0n) throw unknownKey()
    },
  }

  async function find(id: string): Promise<KeyRow> {
    const row = await kysely.selectFrom('gateway.keys').selectAll().where('id', '=', id).executeTakeFirst()
    if (!row) throw unknownKey()
    return row
  }

  async function write(id: string, set: Partial<KeyRow>): Promise<KeyRow> {
    const changed = kysely.updateTable('gateway.keys').set(set).where('id', '=', id)
    const row = await changed.returningAll().executeTakeFirst()
    if (!row) throw unknownKey()
    return row
  }

  async function findWorkspace(id: string): Promise<{ id: string; organization: string }> {
    const named = kysely.selectFrom('gateway.workspaces').where('id', '=', id)
    const row = await named.select(['id', 'organization']).executeTakeFirst()
    if (!row) throw new Fault('not_found', `Workspace '${id}' not found`)
    return row
  }

  /** A key may narrow what its user may use, and never widen it. */
  async function checkModels(organization: string, id: string, list: string[] | null | undefined): Promise<void> {
    const named = kysely.selectFrom('gateway.users').where('organization', '=', organization).where('id', '=', id)
    const user = await named.select('allowed_models').executeTakeFirst()
    if (!user) throw new Fault('not_found', `User '${id}' not found`)
    if (list && isBroader(list, user.allowed_models)) {
      throw new Fault('invalid_request', `allowed_models of a key may not be broader than those of its user '${id}'`)
    }
  }
}

const unknownKey = () => new Fault('not_found', 'Key not found')
