import type { Bus } from '@tollgate/bus'
import {
  changedSettings,
  type RuntimeSettings,
  runtimeSettingsRead,
  type ToolSettingKey,
  toolSettings,
} from '@tollgate/contracts'
import { keepFresh } from '@tollgate/service'
import type { Log } from '@tollgate/telemetry'
import { sql } from 'kysely'
import type { GatewaySettings } from '../settings.ts'
import type { GatewayDb } from '../tables.ts'
import { catalogue, settingKeys } from './catalogue.ts'

/** Null takes back what was set: the config file or the environment is in force again. */
export type SettingChanges = { [K in ToolSettingKey]?: RuntimeSettings[K] | null | undefined }

export interface RuntimeToolSettings {
  /** Stores all of the changes or none, puts them into force here, and tells every other process. */
  change(changes: SettingChanges): Promise<void>
  close(): Promise<void>
}

export interface RuntimeSettingsNeeds {
  db: GatewayDb
  bus: Bus
  log: Log
  /** Changed in place, where every request reads them. */
  settings: GatewaySettings
  /** What another replica stored counts here after this long at the latest, should the news be lost (CFG-52). */
  everyMs?: number
}

/** Keeps what operators set while the services run: here, and for every service that asks. */
export async function openRuntimeSettings(needs: RuntimeSettingsNeeds): Promise<RuntimeToolSettings> {
  const { db, bus, log, settings, everyMs = 10_000 } = needs
  const started = { ...settings }

  async function stored(): Promise<RuntimeSettings> {
    const rows = await db.kysely.selectFrom('gateway.tool_settings').select(['key', 'value']).execute()
    return Object.fromEntries(rows.flatMap(({ key, value }) => (fits(key, value) ? [[key, value]] : [])))
  }
  async function read(): Promise<void> {
    const set = await stored()
    const members = settingKeys.map((key) => [catalogue[key].member, set[key] ?? started[catalogue[key].member]])
    Object.assign(settings, Object.fromEntries(members))
  }
  const fresh = keepFresh({
    read,
    everyMs,
    onFailure: (err) => log.warn({ err }, 'the tool settings were not read; those in force stay'),
  })

  await bus.serve(runtimeSettingsRead, stored)
  bus.listen(changedSettings, fresh.soon)
  await fresh.now()
  // services that started before this one could be asked do so now
  bus.announce(changedSettings, {})

  return {
    async change(changes) {
      await write(db, changes)
      log.info({ changed: Object.keys(changes) }, 'tool settings were changed')
      await fresh.now()
      bus.announce(changedSettings, {})
    },
    close: fresh.close,
  }
}

/** A value of another release that this one does not take counts as not set. */
const fits = (key: string, value: unknown): boolean =>
  Object.hasOwn(toolSettings, key) && toolSettings[key as ToolSettingKey].safeParse(value).success

async function write({ kysely }: GatewayDb, changes: SettingChanges): Promise<void> {
  const given = Object.entries(changes).filter(([, value]) => value !== undefined)
  const cleared = given.flatMap(([key, value]) => (value === null ? [key] : []))
  const set = given.flatMap(([key, value]) => (value === null ? [] : [{ key, value: JSON.stringify(value) }]))
  await kysely.transaction().execute(async (tx) => {
    // operators take turns: rows locked one by one could be waited for in a circle
    await sql`lock table gateway.tool_settings in share row exclusive mode`.execute(tx)
    if (cleared.length > 0) await tx.deleteFrom('gateway.tool_settings').where('key', 'in', cleared).execute()
    if (set.length > 0)
      await tx
        .insertInto('gateway.tool_settings')
        .values(set)
        .onConflict((conflict) =>
          conflict.column('key').doUpdateSet(({ ref }) => ({ value: ref('excluded.value'), updated_at: new Date() })),
        )
        .execute()
  })
}
