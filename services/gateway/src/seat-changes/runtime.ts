import type { Bus } from '@tollgate/bus'
import { changedSeats, Fault, type SeatSettings } from '@tollgate/contracts'
import { keepFresh } from '@tollgate/service'
import type { Log } from '@tollgate/telemetry'
import { sql } from 'kysely'
import type { ModelRegistry } from '../models/registry.ts'
import type { GatewayDb } from '../tables.ts'
import { changed, type SeatChanges, seatChanges } from './changes.ts'

export interface RuntimeSeats {
  /**
   * Adds to what was changed of a seat, here and on every other replica. Throws `not_found` for a name that the configuration
   * does not have. Changes nothing where the seat could not be used, and says why.
   */
  change(name: string, changes: SeatChanges): Promise<string | undefined>
  /** Takes back all that was changed of a seat: the configuration is in force again. */
  reset(name: string): Promise<void>
  close(): Promise<void>
}

export interface RuntimeSeatNeeds {
  db: GatewayDb
  bus: Bus
  log: Log
  configured: Readonly<Record<string, SeatSettings>>
  models: Pick<ModelRegistry, 'seatFault' | 'setSeats'>
  /** What another replica stored counts here after this long at the latest, should the news be lost (PE-71). */
  everyMs?: number
}

/** Keeps what operators change of seats while the gateways run (PE-70, PE-71). */
export async function openRuntimeSeats(needs: RuntimeSeatNeeds): Promise<RuntimeSeats> {
  const { db, bus, log, configured, models, everyMs = 10_000 } = needs

  async function read(): Promise<void> {
    const rows = await db.kysely.selectFrom('gateway.seat_changes').select(['seat', 'changes']).execute()
    const stored = new Map(rows.map(({ seat, changes }) => [seat, readable(changes)]))
    const inForce = Object.entries(configured).map(([name, settings]) => [
      name,
      changed(settings, stored.get(name) ?? {}),
    ])
    models.setSeats(Object.fromEntries(inForce))
  }
  const fresh = keepFresh({
    read,
    everyMs,
    onFailure: (err) => log.warn({ err }, 'the changes of seats were not read; those in force stay'),
  })
  bus.listen(changedSeats, fresh.soon)
  await fresh.now()

  function configuredSeat(name: string): SeatSettings {
    const seat = Object.hasOwn(configured, name) ? configured[name] : undefined
    if (!seat) throw new Fault('not_found', `No seat '${name}' is configured`)
    return seat
  }
  async function tell(seat: string, fields: string[]): Promise<void> {
    log.info({ seat, changed: fields }, 'a seat was changed')
    await fresh.now()
    bus.announce(changedSeats, {})
  }

  return {
    async change(name, changes) {
      const settings = configuredSeat(name)
      const fault = await db.kysely.transaction().execute(async (tx) => {
        // operators take turns: two changes that are right alone may be wrong together (PE-42)
        await sql`lock table gateway.seat_changes in share row exclusive mode`.execute(tx)
        const row = await tx
          .selectFrom('gateway.seat_changes')
          .select('changes')
          .where('seat', '=', name)
          .executeTakeFirst()
        const all = { ...readable(row?.changes), ...changes }
        const fault = models.seatFault(name, changed(settings, all))
        if (fault !== undefined) return fault
        const value = { seat: name, changes: JSON.stringify(all) }
        await tx
          .insertInto('gateway.seat_changes')
          .values(value)
          .onConflict((conflict) =>
            conflict
              .column('seat')
              .doUpdateSet(({ ref }) => ({ changes: ref('excluded.changes'), updated_at: new Date() })),
          )
          .execute()
        return undefined
      })
      if (fault === undefined) await tell(name, Object.keys(changes))
      return fault
    },
    async reset(name) {
      configuredSeat(name)
      await db.kysely.deleteFrom('gateway.seat_changes').where('seat', '=', name).execute()
      await tell(name, [])
    },
    close: fresh.close,
  }
}

/** Changes of another release that this one does not take count as not made. */
const readable = (changes: unknown): SeatChanges => seatChanges.safeParse(changes).data ?? {}
