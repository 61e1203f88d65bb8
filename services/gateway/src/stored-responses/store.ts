import { sql } from 'kysely'
import type { GatewayDb } from '../tables.ts'

/** Whose responses: nobody else's are found, and a response that is not found is not told from one that never was. */
export interface Owner {
  organization: string
  workspace: string
  /** Null: any user of the workspace, which only the operator may ask for. */
  user: string | null
}

/** A response with everything that asking for it again or going on from it takes; the texts are JSON. */
export interface KeptResponse {
  id: string
  previous: string | undefined
  body: string
  input: string
  replay: string
  itemIds: string[]
}

export interface KeptTurn {
  input: string
  replay: string
}

export interface ResponseStore {
  save(owner: Owner & { user: string }, response: KeptResponse): Promise<void>
  find(owner: Owner, id: string): Promise<{ body: string; input: string } | undefined>
  /** The conversation up to and with the response `id`, oldest turn first; undefined when a part of it is missing. */
  conversation(owner: Owner, id: string): Promise<KeptTurn[] | 'too_long' | undefined>
  /** Responses that any of these items belong to, as far as a conversation could be as large as they are together. */
  holding(owner: Owner, itemIds: readonly string[]): Promise<{ body: string; input: string }[] | 'too_large'>
  /** False when there is none. */
  remove(owner: Owner, id: string): Promise<boolean>
  /** Removes what nobody went through for so long, and the oldest of whoever has too many; tells how many. */
  sweep(retentionMs: number): Promise<number>
}

/** Larger than this a response is not kept: see `fits`. */
const MOST_BYTES = 8 * 1024 * 1024

export interface StoreLimits {
  /** Of a conversation that is gone on from: as much as a request may bring by itself. */
  conversationBytes: number
  conversationTurns: number
  perUser: number
}
const defaultLimits: StoreLimits = {
  conversationBytes: 32 * 1024 * 1024,
  conversationTurns: 1_000,
  perUser: 10_000,
}

export const bytesOf = ({ body, input, replay }: Omit<KeptResponse, 'id' | 'previous' | 'itemIds'>): number =>
  Buffer.byteLength(body) + Buffer.byteLength(input) + Buffer.byteLength(replay)

export const fits = (bytes: number): boolean => bytes <= MOST_BYTES

/** Responses as rows of the gateway's own schema. */
export function responseStore({ kysely, prepare }: GatewayDb, limits: StoreLimits = defaultLimits): ResponseStore {
  const { conversationBytes, conversationTurns, perUser } = limits
  const conversation = prepare<{
    input: string
    replay: string
    previous_id: string | null
    total: string
    turns: number
  }>(
    'gateway_conversation',
    `with recursive turns as (
       select id, previous_id, 1 as depth, bytes::bigint as total from gateway.responses
       where id = $1 and organization = $2 and workspace = $3 and ($4::text is null or user_id = $4)
       union all
       select r.id, r.previous_id, t.depth + 1, t.total + r.bytes from gateway.responses r
       join turns t on r.id = t.previous_id
       where r.organization = $2 and r.workspace = $3 and ($4::text is null or r.user_id = $4)
         and t.depth < $5 and t.total <= $6
     ), used as (
       update gateway.responses set used_at = now()
       where id in (select id from turns) and used_at < now() - interval '1 hour'
     )
     select r.input, r.replay, t.previous_id, t.total::text as total, t.depth as turns
     from turns t join gateway.responses r on r.id = t.id order by t.depth desc`,
  )

  const owned = ({ organization, workspace, user }: Owner) =>
    kysely
      .selectFrom('gateway.responses')
      .select(['body', 'input'])
      .where('organization', '=', organization)
      .where('workspace', '=', workspace)
      .$if(user !== null, (query) => query.where('user_id', '=', user ?? ''))

  return {
    async save({ organization, workspace, user }, { id, previous, body, input, replay, itemIds }) {
      const bytes = bytesOf({ body, input, replay })
      await kysely
        .insertInto('gateway.responses')
        .values({
          id,
          organization,
          workspace,
          user_id: user,
          previous_id: previous ?? null,
          body,
          input,
          replay,
          item_ids: itemIds,
          bytes,
        })
        .execute()
    },
    find: (owner, id) => owned(owner).where('id', '=', id).executeTakeFirst(),
    async conversation({ organization, workspace, user }, id) {
      const rows = await conversation([id, organization, workspace, user, conversationTurns, conversationBytes])
      const [oldest] = rows
      if (oldest === undefined) return undefined
      if (Number(oldest.total) > conversationBytes) return 'too_long'
      if (oldest.previous_id !== null) return oldest.turns >= conversationTurns ? 'too_long' : undefined
      return rows.map(({ input, replay }) => ({ input, replay }))
    },
    async holding(owner, itemIds) {
      const held = sql<boolean>`item_ids && ${[...itemIds]}::text[]`
      const found = await owned(owner).clearSelect().select(['id', 'bytes']).where(held).execute()
      if (found.length === 0) return []
      if (found.reduce((sum, { bytes }) => sum + bytes, 0) > conversationBytes) return 'too_large'
      const ids = found.map(({ id }) => id)
      return owned(owner).where('id', 'in', ids).execute()
    },
    async remove({ organization, workspace, user }, id) {
      const { numDeletedRows } = await kysely
        .deleteFrom('gateway.responses')
        .where('id', '=', id)
        .where('organization', '=', organization)
        .where('workspace', '=', workspace)
        .$if(user !== null, (query) => query.where('user_id', '=', user ?? ''))
        .executeTakeFirst()
      return numDeletedRows > 0n
    },
    async sweep(retentionMs) {
      const { numDeletedRows: unused } = await kysely
        .deleteFrom('gateway.responses')
        .where('used_at', '<', new Date(Date.now() - retentionMs))
        .executeTakeFirst()
      const ranked = kysely.selectFrom('gateway.responses').select(({ fn }) => [
        'id',
        fn
          .agg<string>('row_number')
          .over((over) => over.partitionBy(['organization', 'workspace', 'user_id']).orderBy('created_at', 'desc'))
          .as('place'),
      ])
      const { numDeletedRows: surplus } = await kysely
        .deleteFrom('gateway.responses')
        .where('id', 'in', (within) =>
          within.selectFrom(ranked.as('ranked')).select('ranked.id').where('ranked.place', '>', String(perUser)),
        )
        .executeTakeFirst()
      return Number(unused + surplus)
    },
  }
}
