import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { Fault } from '@tollgate/contracts'
import type { Log } from '@tollgate/telemetry'
import { sql } from 'kysely'
import type { GatewayDb } from '../tables.ts'

/** Over the time that the work was given: for the last statement of a claimant that is late. */
const SLACK_MS = 30_000
/** How soon whoever waits looks again, at first and at most. */
const LOOK_MS = [25, 500] as const

export interface FileClaims {
  /**
   * Does work that concerns a file id after all such work under way at any gateway, whatever became of that. The work must
   * end by `until`; waiting for it ends then, with `timeout`, and when the signal fires.
   */
  hold<T>(id: string, until: number, signal: AbortSignal, work: () => Promise<T>): Promise<T>
  /** Forgets claims of gateways that died. */
  sweep(): Promise<void>
}

export function fileClaims({ kysely }: GatewayDb, log: Log): FileClaims {
  /** By the database's clock, which is the same for all. */
  async function take(id: string, claimant: string, forMs: number): Promise<boolean> {
    const ends_at = sql<Date>`now() + ${forMs} * interval '1 millisecond'`
    const taken = await kysely
      .insertInto('gateway.file_claims')
      .values({ id, claimant, ends_at })
      .onConflict((conflict) =>
        conflict
          .column('id')
          .doUpdateSet({ claimant, ends_at })
          .where('gateway.file_claims.ends_at', '<=', sql<Date>`now()`),
      )
      .returning('id')
      .executeTakeFirst()
    return taken !== undefined
  }

  return {
    async hold(id, until, signal, work) {
      const claimant = randomUUID()
      for (let waitMs: number = LOOK_MS[0]; ; waitMs = Math.min(waitMs * 2, LOOK_MS[1])) {
        const leftMs = until - Date.now()
        if (leftMs <= 0) throw new Fault('timeout', 'another answer copies this file still')
        if (await take(id, claimant, leftMs + SLACK_MS)) break
        await sleep(Math.min(waitMs, leftMs), undefined, { signal })
      }
      try {
        return await work()
      } finally {
        const mine = kysely.deleteFrom('gateway.file_claims').where('id', '=', id).where('claimant', '=', claimant)
        await mine.execute().catch((err: unknown) => log.warn({ file: id, err }, 'a claim of a file ends by itself'))
      }
    },
    async sweep() {
      await kysely.deleteFrom('gateway.file_claims').where('ends_at', '<=', sql<Date>`now()`).execute()
    },
  }
}
