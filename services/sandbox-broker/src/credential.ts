import type { Bus } from '@tollgate/bus'
import {
  changedSettings,
  Fault,
  type SandboxCredential,
  sandboxCredentialClear,
  sandboxCredentialGet,
  sandboxCredentialPut,
  sandboxCredentialReencrypt,
} from '@tollgate/contracts'
import type { Database } from '@tollgate/db'
import type { Secrets } from '@tollgate/secrets'
import { keepFresh } from '@tollgate/service'
import type { Log } from '@tollgate/telemetry'

interface CredentialTables {
  'sandbox.credentials': { provider: string; sealed: string; updated_at: Date }
}

export interface CredentialNeeds {
  bus: Bus
  log: Log
  /** Without it no key can be stored. */
  db: Database | undefined
  secrets: Secrets
  /** In force while none is stored (CFG-40). */
  environmentKey: string | undefined
  /** A key stored elsewhere counts here after this long at the latest, should its announcement be lost (CFG-53). */
  everyMs?: number
}

export interface Credential {
  /** In force now; undefined when there is none. */
  apiKey(): string | undefined
  close(): Promise<void>
}

/** The one hosted provider there is a key for. */
const PROVIDER = 'e2b'

type Stored = { state: 'none' } | { state: 'readable'; key: string } | { state: 'unreadable' }

/** Keeps the hosted provider's key and serves its four calls: the stored one first, then the environment's (CFG-53). */
export async function serveCredential(needs: CredentialNeeds): Promise<Credential> {
  const { bus, log, secrets, environmentKey, everyMs = 15_000 } = needs
  const kysely = needs.db?.typed<CredentialTables>().kysely
  let stored: Stored = { state: 'none' }

  const table = () => {
    if (!kysely) throw new Fault('unavailable', 'a key is kept in the database, and the sandbox-broker has none')
    return kysely
  }
  const row = () =>
    table().selectFrom('sandbox.credentials').select('sealed').where('provider', '=', PROVIDER).executeTakeFirst()

  async function refresh(): Promise<void> {
    if (!kysely) return
    const found = await row()
    const before = stored.state
    stored = found ? opened(secrets.decrypt(found.sealed)) : { state: 'none' }
    if (stored.state === 'unreadable' && before !== 'unreadable')
      log.error({}, 'the stored key of the hosted sandbox cannot be read with OTARI_SECRET_KEY: it is passed over')
  }
  const fresh = keepFresh({
    read: refresh,
    everyMs,
    onFailure: (err) => log.warn({ err }, 'the stored sandbox key was not read; the next look tries again'),
  })

  const changed = async (): Promise<SandboxCredential> => {
    await fresh.now()
    bus.announce(changedSettings, {})
    return shown(stored, environmentKey)
  }

  await bus.serve(sandboxCredentialGet, async () => {
    await fresh.now()
    return shown(stored, environmentKey)
  })
  await bus.serve(sandboxCredentialPut, async ({ apiKey }) => {
    const sealed = secrets.encrypt(apiKey)
    await table()
      .insertInto('sandbox.credentials')
      .values({ provider: PROVIDER, sealed, updated_at: new Date() })
      .onConflict((conflict) => conflict.column('provider').doUpdateSet({ sealed, updated_at: new Date() }))
      .execute()
    log.info({}, 'a key of the hosted sandbox was stored')
    return changed()
  })
  await bus.serve(sandboxCredentialClear, async () => {
    await table().deleteFrom('sandbox.credentials').where('provider', '=', PROVIDER).execute()
    log.info({}, 'the stored key of the hosted sandbox was cleared')
    return changed()
  })
  await bus.serve(sandboxCredentialReencrypt, async () => {
    const counts = { reencrypted: 0, unreadable: 0, skipped: 0 }
    const found = await row()
    const result = found && secrets.reencrypt(found.sealed)
    if (!found || !result) return counts
    if (result.state === 'reencrypted')
      await table()
        .updateTable('sandbox.credentials')
        .set({ sealed: result.token })
        .where('provider', '=', PROVIDER)
        .where('sealed', '=', found.sealed) // one that was replaced meanwhile is under the first key already
        .execute()
    counts[result.state] += 1
    return counts
  })

  bus.listen(changedSettings, fresh.soon)
  await fresh.now()
  return {
    apiKey: () => (stored.state === 'readable' ? stored.key : environmentKey),
    close: fresh.close,
  }
}

const opened = (key: string | undefined): Stored =>
  key === undefined ? { state: 'unreadable' } : { state: 'readable', key }

function shown(stored: Stored, environmentKey: string | undefined): SandboxCredential {
  const decryptable = stored.state !== 'unreadable'
  if (stored.state === 'readable') return { last4: stored.key.slice(-4), source: 'stored', decryptable }
  if (environmentKey === undefined) return { last4: null, source: null, decryptable }
  return { last4: environmentKey.length < 8 ? null : environmentKey.slice(-4), source: 'environment', decryptable }
}
