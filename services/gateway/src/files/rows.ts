import { Fault, type FileReference } from '@tollgate/contracts'
import { fileIdTime } from '@tollgate/files'
import { type Expression, type ExpressionBuilder, type Selectable, type SqlBool, sql } from 'kysely'
import type { Identity } from '../auth/identity.ts'
import type { GatewaySettings } from '../settings.ts'
import type { GatewayDb, Tables } from '../tables.ts'

export type FileRow = Selectable<Tables['gateway.files']>

/** Which files somebody may see: their own in the key's workspace, or with the master key everybody's (FI-07). */
export interface FileView {
  organization: string
  workspace: string | undefined
  user: string | undefined
}

export function viewOf(identity: Identity, workspace?: string): FileView {
  const { organization } = identity
  if (identity.kind === 'master') return { organization, workspace, user: undefined }
  if (workspace !== undefined && workspace !== identity.workspace)
    throw new Fault('not_found', `Workspace '${workspace}' not found`)
  return { organization, workspace: identity.workspace, user: identity.user }
}

export interface PageWanted {
  /** Begin behind the file of this id. */
  after: string | undefined
  order: 'asc' | 'desc'
  limit: number
  purpose: string | undefined
}

/** The rows of files. One whose time is over is not there, whether or not it was swept yet (FI-08). */
export interface FileRows {
  insert(row: FileRow): Promise<void>
  find(view: FileView, id: string): Promise<FileRow | undefined>
  findAll(view: FileView, ids: readonly string[]): Promise<FileRow[]>
  /** By time of making. Files that are made or deleted between two pages neither hide others nor show them twice. */
  page(view: FileView, wanted: PageWanted): Promise<{ rows: FileRow[]; more: boolean }>
  remove(view: FileView, id: string): Promise<boolean>
  /** Forgets at most so many files whose time is over, and tells which. */
  removeExpired(most: number): Promise<string[]>
  /** Those of these ids that no file has. */
  unknown(ids: readonly string[]): Promise<string[]>
  /** When a file's time is over: by its own wish or by the deployment's, whichever comes first. */
  endOf(row: Pick<FileRow, 'created_at' | 'expires_at'>): Date | undefined
}

type Builder = ExpressionBuilder<Tables, 'gateway.files'>

export function fileRows({ kysely }: GatewayDb, settings: GatewaySettings): FileRows {
  const keptMs = () =>
    settings.filesRetentionHours === undefined ? undefined : Math.round(settings.filesRetentionHours * 3_600_000)
  const oldest = () => new Date(Date.now() - (keptMs() ?? 0))

  const over = (e: Builder): Expression<SqlBool> => {
    const ended = e('expires_at', '<=', new Date())
    return keptMs() === undefined ? ended : e.or([ended, e('created_at', '<=', oldest())])
  }
  const alive = (e: Builder): Expression<SqlBool> => {
    const lasts = e.or([e('expires_at', 'is', null), e('expires_at', '>', new Date())])
    return keptMs() === undefined ? lasts : e.and([lasts, e('created_at', '>', oldest())])
  }
  const seenBy =
    ({ organization, workspace, user }: FileView) =>
    (e: Builder): Expression<SqlBool> =>
      e.and([
        e('organization', '=', organization),
        ...(workspace === undefined ? [] : [e('workspace', '=', workspace)]),
        ...(user === undefined ? [] : [e('user_id', '=', user)]),
        alive(e),
      ])

  async function findAll(view: FileView, ids: readonly string[]): Promise<FileRow[]> {
    if (ids.length === 0) return []
    return kysely.selectFrom('gateway.files').selectAll().where(seenBy(view)).where('id', 'in', ids).execute()
  }
  const find = async (view: FileView, id: string) => (await findAll(view, [id]))[0]

  /** Also of a file that was deleted since: a client may delete what it lists. */
  async function placeOf(view: FileView, id: string): Promise<Date> {
    const at = (await find(view, id))?.created_at ?? fileIdTime(id)
    if (at === undefined) throw new Fault('invalid_request', 'the page cannot begin after a file that is not there')
    return at
  }

  return {
    find,
    findAll,
    async insert(row) {
      await kysely.insertInto('gateway.files').values(row).execute()
    },
    async page(view, { after, order, limit, purpose }) {
      let query = kysely.selectFrom('gateway.files').selectAll().where(seenBy(view))
      if (purpose !== undefined) query = query.where('purpose', '=', purpose)
      if (after !== undefined) {
        const at = await placeOf(view, after)
        const side = sql.raw(order === 'asc' ? '>' : '<')
        query = query.where(sql<boolean>`(created_at, id) ${side} (${at}, ${after})`)
      }
      const rows = await query
        .orderBy('created_at', order)
        .orderBy('id', order)
        .limit(limit + 1)
        .execute()
      return { rows: rows.slice(0, limit), more: rows.length > limit }
    },
    async remove(view, id) {
      const removed = await kysely
        .deleteFrom('gateway.files')
        .where(seenBy(view))
        .where('id', '=', id)
        .executeTakeFirst()
      return removed.numDeletedRows > 0n
    },
    async removeExpired(most) {
      const removed = await kysely
        .deleteFrom('gateway.files')
        .where('id', 'in', (from) => from.selectFrom('gateway.files').select('id').where(over).limit(most))
        .returning('id')
        .execute()
      return removed.map(({ id }) => id)
    },
    async unknown(ids) {
      if (ids.length === 0) return []
      const known = await kysely.selectFrom('gateway.files').select('id').where('id', 'in', ids).execute()
      const found = new Set(known.map(({ id }) => id))
      return ids.filter((id) => !found.has(id))
    },
    endOf({ created_at, expires_at }) {
      const kept = keptMs()
      const ends = [
        ...(expires_at ? [expires_at.getTime()] : []),
        ...(kept === undefined ? [] : [created_at.getTime() + kept]),
      ]
      return ends.length === 0 ? undefined : new Date(Math.min(...ends))
    },
  }
}

export const referenceOf = ({ id, filename, media_type, bytes }: FileRow): FileReference => ({
  id,
  name: filename,
  mediaType: media_type,
  bytes: Number(bytes),
})
