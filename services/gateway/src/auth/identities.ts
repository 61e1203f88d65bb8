import type { Bus } from '@tollgate/bus'
import { changedKeys, Fault } from '@tollgate/contracts'
import { type BoundedCache, boundedCache } from '../bounded-cache.ts'
import { DEFAULT_ORGANIZATION, DEFAULT_WORKSPACE, type GatewayDb } from '../tables.ts'
import { intersect } from './allowed-models.ts'
import type { Identity } from './identity.ts'
import { hashKey, sameHash } from './secret-key.ts'

/** A change reaches every replica by `changed.keys`, and at the latest after this long. */
const FRESH_MS = 15_000
/** A key nobody knows is asked about again soon: it may just have been made on another replica. */
const UNKNOWN_MS = 2_000
const MOST = 10_000

/** A key as it stands, with what can change between two requests without a write: its end. */
interface KnownKey {
  identity: Identity
  active: boolean
  expiresAt: Date | null
}

export interface KnownUser {
  id: string
  blocked: boolean
  allowedModels: string[] | null
}

export interface Identities {
  /** Throws `unauthorized` with A-01's text. Without a database round trip for a key seen in the last 15 s. */
  identify(credential: string): Identity | Promise<Identity>
  user(organization: string, id: string): Promise<KnownUser | undefined>
  /** Something about keys or users was written: tells this process and every other. */
  changed(key?: string): void
  close(): void
}

interface Needs {
  db: GatewayDb
  bus: Bus
  masterKeyHash: string
  /** Called for each request a key makes. */
  used(key: string): void
}

const masterIdentity: Identity = {
  kind: 'master',
  organization: DEFAULT_ORGANIZATION,
  workspace: DEFAULT_WORKSPACE,
  user: '',
  key: 'master',
  budgetExempt: false,
  allowedModels: null,
  rejectUserMismatch: null,
}

export function openIdentities({ db, bus, masterKeyHash, used }: Needs): Identities {
  const keys = boundedCache<KnownKey>(MOST, FRESH_MS)
  const unknownKeys = boundedCache<true>(MOST, UNKNOWN_MS)
  const users = boundedCache<KnownUser>(MOST, FRESH_MS)
  const unknownUsers = boundedCache<true>(MOST, UNKNOWN_MS)
  const loadKey = shared(keyLoader(db))
  const loadUser = shared(userLoader(db))
  let generation = 0

  const forget = (key: string | undefined) => {
    generation += 1
    for (const cache of [unknownKeys, users, unknownUsers]) cache.clear()
    if (key === undefined) keys.clear()
    else keys.deleteWhere(({ identity }) => identity.key === key)
  }
  let open = true
  bus.listen(changedKeys, ({ key }) => {
    if (open) forget(key)
  })

  /** What was read while something was written may be of before, and is used once only. */
  async function read<V>(
    load: () => Promise<V | undefined>,
    key: string,
    known: BoundedCache<V>,
    unknown: BoundedCache<true>,
  ) {
    const before = generation
    const value = await load()
    if (generation === before) {
      if (value === undefined) unknown.set(key, true)
      else known.set(key, value)
    }
    return value
  }

  const accept = (known: KnownKey | undefined): Identity => {
    if (!known) throw new Fault('unauthorized', 'Invalid API key')
    if (!known.active) throw new Fault('unauthorized', 'API key is inactive')
    if (known.expiresAt && known.expiresAt.getTime() <= Date.now())
      throw new Fault('unauthorized', 'API key has expired')
    used(known.identity.key)
    return known.identity
  }

  return {
    identify(credential) {
      const hash = hashKey(credential)
      const known = keys.get(hash)
      if (known) return accept(known)
      if (sameHash(hash, masterKeyHash)) return masterIdentity
      if (!credential.startsWith('gw-') || unknownKeys.get(hash)) return accept(undefined)
      return read(() => loadKey(hash), hash, keys, unknownKeys).then(accept)
    },
    async user(organization, id) {
      const key = `${organization} ${id}`
      if (unknownUsers.get(key)) return undefined
      return users.get(key) ?? read(() => loadUser(key, organization, id), key, users, unknownUsers)
    },
    changed(key) {
      forget(key)
      bus.announce(changedKeys, key === undefined ? {} : { key })
    },
    close() {
      open = false
    },
  }
}

function keyLoader(db: GatewayDb): (hash: string) => Promise<KnownKey | undefined> {
  const find = db.prepare<KeyRow>(
    'gateway_key_by_hash',
    `select k.id, k.organization, k.workspace, k.user_id, k.active, k.expires_at, k.budget_exempt, k.reject_user_mismatch,
       k.allowed_models, u.allowed_models as user_models
     from gateway.keys k join gateway.users u on u.organization = k.organization and u.id = k.user_id
     where k.hash = $1`,
  )
  return async (hash) => {
    const [row] = await find([hash])
    if (!row) return undefined
    return {
      active: row.active,
      expiresAt: row.expires_at,
      identity: {
        kind: 'key',
        organization: row.organization,
        workspace: row.workspace,
        user: row.user_id,
        key: row.id,
        budgetExempt: row.budget_exempt,
        allowedModels: intersect(row.allowed_models, row.user_models),
        rejectUserMismatch: row.reject_user_mismatch,
      },
    }
  }
}

interface KeyRow {
  id: string
  organization: string
  workspace: string
  user_id: string
  active: boolean
  expires_at: Date | null
  budget_exempt: boolean
  reject_user_mismatch: boolean | null
  allowed_models: string[] | null
  user_models: string[] | null
}

function userLoader(db: GatewayDb): (key: string, organization: string, id: string) => Promise<KnownUser | undefined> {
  const find = db.prepare<{ blocked: boolean; allowed_models: string[] | null }>(
    'gateway_user_by_id',
    'select blocked, allowed_models from gateway.users where organization = $1 and id = $2',
  )
  return async (_key, organization, id) => {
    // Postgres has no text with a NUL in it: such a user cannot be there
    const [row] = id.includes('\0') ? [] : await find([organization, id])
    return row && { id, blocked: row.blocked, allowedModels: row.allowed_models }
  }
}

/** Those who ask for the same thing at once share one question. */
function shared<A extends [string, ...unknown[]], V>(load: (...given: A) => Promise<V>): (...given: A) => Promise<V> {
  const running = new Map<string, Promise<V>>()
  return (...given) => {
    const [key] = given
    const mine = running.get(key) ?? load(...given).finally(() => running.delete(key))
    running.set(key, mine)
    return mine
  }
}
