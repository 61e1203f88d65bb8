import type { Bus } from '@tollgate/bus'
import { changedKeys, Fault } from '@tollgate/contracts'
import { type BoundedCache, boundedCache } from '../bounded-cache.ts'
import { DEFAULT_ORGANIZATION, DEFAULT_WORKSPACE, type GatewayDb } from '../tables.ts'
import type { Identity } from './identity.ts'
import { type KnownKey, type KnownUser, keyLookup, userLookup } from './lookups.ts'
import { hashKey, sameHash } from './secret-key.ts'

/** A change reaches every replica by `changed.keys`, and at the latest after this long. */
const FRESH_MS = 15_000
/** A key nobody knows is asked about again soon: it may just have been made on another replica. */
const UNKNOWN_MS = 2_000
const MOST = 10_000

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
  allowedTools: null,
  rejectUserMismatch: null,
}

export function openIdentities({ db, bus, masterKeyHash, used }: Needs): Identities {
  const keys = boundedCache<KnownKey>(MOST, FRESH_MS)
  const unknownKeys = boundedCache<true>(MOST, UNKNOWN_MS)
  const users = boundedCache<KnownUser>(MOST, FRESH_MS)
  const unknownUsers = boundedCache<true>(MOST, UNKNOWN_MS)
  const lookUpKey = keyLookup(db)
  const lookUpUser = userLookup(db)
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

  /**
   * What was read while something was written may be of before: it is used once and not kept, and whoever asks after the
   * write does not share its question.
   */
  async function read<V>(
    load: (question: string) => Promise<V | undefined>,
    key: string,
    known: BoundedCache<V>,
    unknown: BoundedCache<true>,
  ) {
    const before = generation
    const value = await load(`${before} ${key}`)
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
      return read((question) => lookUpKey(question, hash), hash, keys, unknownKeys).then(accept)
    },
    async user(organization, id) {
      const key = `${organization} ${id}`
      if (unknownUsers.get(key)) return undefined
      return users.get(key) ?? read((question) => lookUpUser(question, organization, id), key, users, unknownUsers)
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
