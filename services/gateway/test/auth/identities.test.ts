import { memoryBus } from '@tollgate/bus'
import { changedKeys } from '@tollgate/contracts'
import { openLog } from '@tollgate/telemetry'
import { sql } from 'kysely'
import { describe, expect, inject, test } from 'vitest'
import { openIdentities } from '../../src/auth/identities.ts'
import { hashKey, mintKey } from '../../src/auth/secret-key.ts'
import type { GatewayDb } from '../../src/tables.ts'
import { startRig } from '../rig.ts'

const log = openLog({ service: 'test', level: 'silent' })

test('a key that is known costs no database, and one that is not is a 503 while there is none', async () => {
  const rig = await startRig({ postgresUrl: inject('postgresUrl') })
  const models = (key: string) => rig.send('GET', '/api/v1/models', { key })
  expect((await models(rig.firstKey)).status).toBe(200)
  await sql`alter table gateway.keys rename to keys_away`.execute(rig.db.kysely)
  for (let i = 0; i < 20; i++) expect((await models(rig.firstKey)).status).toBe(200)
  expect((await models(rig.masterKey)).status).toBe(200)
  expect((await models('no-key-of-ours')).status).toBe(401)
  const unknown = await models('gw-never-seen')
  expect(unknown.status).toBeGreaterThanOrEqual(500)
  expect(unknown.text).not.toMatch(/keys_away|gateway\.keys|relation|select/)
  await sql`alter table gateway.keys_away rename to keys`.execute(rig.db.kysely)
  expect((await models('gw-never-seen')).status).toBe(401)
  await rig.close()
})

/** A table of keys whose answers come when the test lets them. */
function slowTable(rows: Map<string, object>) {
  const asked: string[] = []
  const waiting: (() => void)[] = []
  const db = {
    prepare:
      () =>
      async ([hash]: readonly unknown[]) => {
        asked.push(String(hash))
        const row = rows.get(String(hash))
        await new Promise<void>((resolve) => waiting.push(resolve))
        return row ? [row] : []
      },
  } as unknown as GatewayDb
  const answer = () => {
    for (const resolve of waiting.splice(0)) resolve()
  }
  return { db, asked, answer }
}

const rowOf = (id: string, active: boolean) => ({
  id,
  organization: 'o',
  workspace: 'w',
  user_id: 'u',
  active,
  expires_at: null,
  budget_exempt: false,
  reject_user_mismatch: null,
  allowed_models: null,
  user_models: null,
  allowed_tools: null,
  user_tools: null,
})

function open(rows: Map<string, object>) {
  const table = slowTable(rows)
  const bus = memoryBus({ log })
  const used: string[] = []
  const masterKeyHash = hashKey('the master key')
  const identities = openIdentities({ db: table.db, bus, masterKeyHash, used: (key) => used.push(key) })
  /** Resolves when every listener has heard it. */
  const tell = (event: { key?: string }) =>
    new Promise<void>((resolve) => {
      bus.listen(changedKeys, () => resolve())
      bus.announce(changedKeys, event)
    })
  return { ...table, tell, used, identities }
}

describe('identities in memory', () => {
  test('those who ask for one key at once share one question', async () => {
    const { plaintext, hash } = mintKey()
    const { identities, asked, answer, used } = open(new Map([[hash, rowOf('k', true)]]))
    const all = Array.from({ length: 50 }, () => identities.identify(plaintext))
    answer()
    expect((await Promise.all(all)).map(({ key }) => key)).toEqual(Array.from({ length: 50 }, () => 'k'))
    expect(asked).toEqual([hash])
    expect(used).toHaveLength(50)
    expect(identities.identify(plaintext)).not.toBeInstanceOf(Promise)
  })

  test('what was read while a key changed is not kept', async () => {
    const { plaintext, hash } = mintKey()
    const rows = new Map<string, object>([[hash, rowOf('k', true)]])
    const { identities, tell, answer, asked } = open(rows)
    const early = identities.identify(plaintext)
    // switched off on another replica after this one had read it, and before it heard of that
    rows.set(hash, rowOf('k', false))
    await tell({ key: 'k' })
    const late = Promise.resolve(identities.identify(plaintext))
    answer()
    expect((await early).key).toBe('k')
    await expect(late).rejects.toThrow('API key is inactive')
    expect(asked).toHaveLength(2)
    expect(() => identities.identify(plaintext)).toThrow('API key is inactive')
  })

  test('a change of one key leaves the others known, a change of who knows what none', async () => {
    const [one, two] = [mintKey(), mintKey()]
    const { identities, tell, answer } = open(new Map([one, two].map(({ hash }, n) => [hash, rowOf(`k${n}`, true)])))
    for (const { plaintext } of [one, two]) {
      const found = identities.identify(plaintext)
      answer()
      await found
    }
    await tell({ key: 'k0' })
    expect(identities.identify(two.plaintext)).not.toBeInstanceOf(Promise)
    expect(identities.identify(one.plaintext)).toBeInstanceOf(Promise)
    await tell({})
    expect(identities.identify(two.plaintext)).toBeInstanceOf(Promise)
    answer()
  })

  test('a key nobody knows is asked about once, until something changes', async () => {
    const rows = new Map<string, object>()
    const { identities, answer, asked } = open(rows)
    const { plaintext, hash } = mintKey()
    const ask = async () => {
      const asking = (async () => identities.identify(plaintext))()
      answer()
      return asking
    }
    await expect(ask()).rejects.toThrow('Invalid API key')
    await expect(ask()).rejects.toThrow('Invalid API key')
    expect(asked).toHaveLength(1)
    rows.set(hash, rowOf('k', true))
    identities.changed('k')
    expect((await ask()).key).toBe('k')
  })

  test('A-04 the master key is known without a question, and nothing like it is', async () => {
    const { identities, asked } = open(new Map())
    expect(identities.identify('the master key')).toMatchObject({ kind: 'master', workspace: 'default' })
    for (const other of ['the master ke', 'the master key ', 'The master key', hashKey('the master key')]) {
      expect(() => identities.identify(other)).toThrow('Invalid API key')
    }
    expect(asked).toEqual([])
  })
})
