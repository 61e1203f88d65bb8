import { randomBytes } from 'node:crypto'
import { CLAIM_SECONDS, type HeldContainer, type Tenancy } from '@tollgate/contracts'
import type { Database } from '@tollgate/db'
import { sql } from 'kysely'
import type { SandboxTables } from './tables.ts'

export interface KeptSession {
  session: string
  /** In force at the backend (C-20). */
  idleSeconds: number
  /** Never extended (C-10). */
  lifetimeSeconds: number
}

/** `busy` is said to its owner alone; whatever else stands in the way is `gone` (C-13, C-16). */
export type Claim =
  | { status: 'ok'; session: string; container: HeldContainer }
  | { status: 'busy' }
  | { status: 'gone' }

/** `ended`: its hard clock ran out in use. `lost`: the claim was not this request's any more. */
export type Release =
  | { status: 'ok'; session: string; container: HeldContainer }
  | { status: 'ended'; session: string }
  | { status: 'lost' }

/** Who has which sandbox, and until when. Every change is one statement that only the claim's own request can make. */
export interface Containers {
  /** Keeps a session, claimed by the request that leased it. */
  keep(tenancy: Tenancy, kept: KeptSession): Promise<HeldContainer>
  /** Takes a container for one request; of any number at once, one gets it. */
  claim(tenancy: Tenancy, id: string): Promise<Claim>
  renew(tenancy: Tenancy, id: string): Promise<boolean>
  release(tenancy: Tenancy, id: string): Promise<Release>
  /** Forgets a container that the request has; gives its session. */
  drop(tenancy: Tenancy, id: string): Promise<string | undefined>
  /** Forgets the container whose session was lost in the hands of the request. */
  dropSession(tenancy: Tenancy, session: string): Promise<void>
  /** Forgets containers that nobody can resume. Their sandboxes are their backend's to reclaim (C-28). */
  sweep(): Promise<number>
}

export function openContainers(db: Database, provider: string): Containers {
  const { kysely } = db.typed<SandboxTables>()

  const mine = ({ organization, workspace, user }: Tenancy) => ({ organization, workspace, user_id: user, provider })
  const claimed = (tenancy: Tenancy, id: string) => ({ ...mine(tenancy), id, claim: tenancy.request })

  async function drop(tenancy: Tenancy, id: string): Promise<string | undefined> {
    const row = await kysely
      .deleteFrom('sandbox.containers')
      .where(whole(claimed(tenancy, id)))
      .returning('session')
      .executeTakeFirst()
    return row?.session
  }

  return {
    async keep(tenancy, { session, idleSeconds, lifetimeSeconds }) {
      const row = await kysely
        .insertInto('sandbox.containers')
        .values({
          id: `otari_cntr_${randomBytes(16).toString('hex')}`,
          ...mine(tenancy),
          session,
          idle_seconds: idleSeconds,
          ends_at: inSeconds(Math.min(idleSeconds, lifetimeSeconds)),
          hard_ends_at: inSeconds(lifetimeSeconds),
          claim: tenancy.request,
          claim_ends_at: inSeconds(CLAIM_SECONDS),
        })
        .returning(['id', 'ends_at'])
        .executeTakeFirstOrThrow()
      return held(row)
    },

    async claim(tenancy, id) {
      const row = await kysely
        .updateTable('sandbox.containers')
        .set({ claim: tenancy.request, claim_ends_at: inSeconds(CLAIM_SECONDS), ends_at: afterUse })
        .where(whole({ ...mine(tenancy), id }))
        .where('ends_at', '>', now)
        .where(sql<boolean>`(claim_ends_at is null or claim_ends_at <= now())`)
        .returning(['id', 'session', 'ends_at'])
        .executeTakeFirst()
      if (row) return { status: 'ok', session: row.session, container: held(row) }
      // still within its time, or in use: another request of theirs has it, or had it a moment ago
      const own = await kysely
        .selectFrom('sandbox.containers')
        .select('id')
        .where(whole({ ...mine(tenancy), id }))
        .where(sql<boolean>`(ends_at > now() or claim_ends_at > now())`)
        .executeTakeFirst()
      return { status: own ? 'busy' : 'gone' }
    },

    async renew(tenancy, id) {
      const row = await kysely
        .updateTable('sandbox.containers')
        .set({ claim_ends_at: inSeconds(CLAIM_SECONDS), ends_at: afterUse })
        .where(whole(claimed(tenancy, id)))
        .returning('id')
        .executeTakeFirst()
      return row !== undefined
    },

    async release(tenancy, id) {
      const row = await kysely
        .updateTable('sandbox.containers')
        .set({ claim: null, claim_ends_at: null, ends_at: afterUse })
        .where(whole(claimed(tenancy, id)))
        .where('hard_ends_at', '>', now)
        .returning(['id', 'session', 'ends_at'])
        .executeTakeFirst()
      if (row) return { status: 'ok', session: row.session, container: held(row) }
      const session = await drop(tenancy, id)
      return session === undefined ? { status: 'lost' } : { status: 'ended', session }
    },

    drop,

    async dropSession(tenancy, session) {
      const own = { ...mine(tenancy), session, claim: tenancy.request }
      await kysely.deleteFrom('sandbox.containers').where(whole(own)).execute()
    },

    async sweep() {
      const rows = await kysely
        .deleteFrom('sandbox.containers')
        .where('ends_at', '<', now)
        .where(sql<boolean>`(claim_ends_at is null or claim_ends_at < now())`)
        .returning('id')
        .execute()
      return rows.length
    },
  }
}

const now = sql<Date>`now()`
const inSeconds = (seconds: number) => sql<Date>`now() + make_interval(secs => ${seconds})`
/** C-10, C-11: the idle clock starts again, and never passes the hard one. */
const afterUse = sql<Date>`least(now() + make_interval(secs => idle_seconds), hard_ends_at)`

/** Every one of these columns has its value. */
const whole = (columns: Record<string, string>) =>
  sql<boolean>`${sql.join(
    Object.entries(columns).map(([name, value]) => sql`${sql.id(name)} = ${value}`),
    sql` and `,
  )}`

const held = ({ id, ends_at }: { id: string; ends_at: Date }): HeldContainer => ({
  id,
  expiresAt: ends_at.toISOString(),
})
