import { openDb } from '@tollgate/db'
import { freshDatabase, freshFolder } from '@tollgate/testing'
import { afterAll, describe, expect, inject, test } from 'vitest'
import { migrateGateway } from '../src/auth/first-start.ts'
import { type KeptResponse, responseStore, type StoreLimits } from '../src/stored-responses/store.ts'
import type { GatewayDb } from '../src/tables.ts'
import { silent } from './brokers.ts'

const DAY_MS = 86_400_000
const ada = { organization: 'default', workspace: 'default', user: 'ada' }
const bob = { ...ada, user: 'bob' }
const limits: StoreLimits = { conversationBytes: 1_000_000, conversationTurns: 3, perUser: 100 }
const response = (id: string, previous?: string): KeptResponse => ({
  id,
  previous,
  body: JSON.stringify({ id, output: [{ id: `msg_${id}` }], nul: '\0', half: '\ud800' }),
  input: JSON.stringify([{ id: `in_${id}` }]),
  replay: '[]',
  itemIds: [`msg_${id}`, `in_${id}`],
})

/** Either database, empty, with a store for each set of limits. */
async function open(kind: 'postgres' | 'pglite') {
  databases[kind] ??= await openNew(kind)
  const db = databases[kind]
  await db.kysely.deleteFrom('gateway.responses').execute()
  const within = (less: Partial<StoreLimits>) => responseStore(db, { ...limits, ...less })
  return { db, store: within({}), within }
}

const databases: Partial<Record<'postgres' | 'pglite', GatewayDb>> = {}
const closes: (() => Promise<void>)[] = []
afterAll(async () => {
  for (const close of closes) await close()
})

async function openNew(kind: 'postgres' | 'pglite'): Promise<GatewayDb> {
  const home = kind === 'postgres' ? await freshDatabase(inject('postgresUrl')) : await freshFolder()
  const opened = await openDb({ url: home.url, log: silent, poolSize: 2 })
  closes.push(opened.close, home.drop)
  return migrateGateway(opened)
}

describe.each(['postgres', 'pglite'] as const)('stored responses in %s', (kind) => {
  test('are found, gone on from, named by their items and removed, by their owner alone', async () => {
    const { store, within } = await open(kind)
    await store.save(ada, response('r1'))
    await store.save(ada, response('r2', 'r1'))
    await store.save(bob, response('r3', 'r2'))

    const { body } = response('r1')
    expect(await store.find(ada, 'r1')).toMatchObject({ body })
    expect(await store.find({ ...ada, user: null }, 'r1')).toMatchObject({ body })
    for (const other of [bob, { ...ada, workspace: 'other' }, { ...ada, organization: 'other' }]) {
      expect(await store.find(other, 'r1')).toBeUndefined()
      expect(await store.conversation(other, 'r1')).toBeUndefined()
      expect(await store.holding(other, ['msg_r1'])).toEqual([])
      expect(await store.remove(other, 'r1')).toBe(false)
    }

    expect(await store.conversation(ada, 'r2')).toEqual([
      { input: response('r1').input, replay: '[]' },
      { input: response('r2').input, replay: '[]' },
    ])
    // what another's response goes on from is not there
    expect(await store.conversation(bob, 'r3')).toBeUndefined()
    expect(await store.holding(ada, ['in_r2', 'msg_r1', 'msg_r3', 'msg_r9'])).toHaveLength(2)
    expect(await store.holding(ada, [])).toEqual([])

    expect(await within({ conversationTurns: 1 }).conversation(ada, 'r2')).toBe('too_long')
    expect(await within({ conversationBytes: 100 }).conversation(ada, 'r2')).toBe('too_long')
    expect(await within({ conversationBytes: 100 }).holding(ada, ['msg_r1', 'msg_r2'])).toBe('too_large')

    expect(await store.remove(ada, 'r1')).toBe(true)
    expect(await store.remove(ada, 'r1')).toBe(false)
    expect(await store.conversation(ada, 'r2')).toBeUndefined()
  })

  test('are a conversation of a thousand turns at most', async () => {
    const { db, within } = await open(kind)
    const store = within({ conversationTurns: 1_000 })
    const rows = Array.from({ length: 1_001 }, (_, at) => {
      const { previous, itemIds, ...texts } = response(`c${at}`, at === 0 ? undefined : `c${at - 1}`)
      const { organization, workspace, user } = ada
      const owner = { organization, workspace, user_id: user }
      return { ...texts, ...owner, previous_id: previous ?? null, item_ids: itemIds, bytes: 100 }
    })
    await db.kysely.insertInto('gateway.responses').values(rows).execute()
    const turns = await store.conversation(ada, 'c999')
    expect(turns).toHaveLength(1_000)
    expect(JSON.stringify(turns?.slice(0, 2))).toContain('in_c0')
    expect(JSON.stringify(turns?.at(-1))).toContain('in_c999')
    expect(await store.conversation(ada, 'c1000')).toBe('too_long')
  })

  test('that refer to each other in a circle, as only a hand in the table can make them, are no conversation', async () => {
    const { db, within } = await open(kind)
    const store = within({ conversationTurns: 1_000, conversationBytes: 32 * 1024 * 1024 })
    for (const [id, previous] of [
      ['o1', 'o2'],
      ['o2', 'o3'],
      ['o3', 'o1'],
      ['self', 'self'],
      ['end', 'o1'],
    ] as const)
      await store.save(ada, response(id, previous))
    for (const id of ['o1', 'o2', 'self', 'end']) expect(await store.conversation(ada, id)).toBe('too_long')
    // as soon as it is a line again, it is one
    await db.kysely.updateTable('gateway.responses').set({ previous_id: null }).where('id', '=', 'o3').execute()
    expect(await store.conversation(ada, 'end')).toHaveLength(4)
  })

  test('go when nobody went through them for so long, and the oldest when a user has too many', async () => {
    const { db, store, within } = await open(kind)
    for (const [id, previous] of [['r1'], ['r2', 'r1'], ['alone']] as [string, string?][]) {
      await store.save(ada, response(id, previous))
    }
    await db.kysely
      .updateTable('gateway.responses')
      .set({ used_at: new Date(Date.now() - 2 * DAY_MS) })
      .execute()
    await store.conversation(ada, 'r2')
    expect(await store.sweep(DAY_MS)).toBe(1)
    expect(await store.find(ada, 'alone')).toBeUndefined()
    expect(await store.conversation(ada, 'r2')).toHaveLength(2)

    for (const id of ['b1', 'b2', 'b3']) await store.save(bob, response(id))
    expect(await within({ perUser: 2 }).sweep(DAY_MS)).toBe(1)
    expect(await store.find(bob, 'b1')).toBeUndefined()
    expect(await store.find(bob, 'b3')).toBeDefined()
    expect(await store.sweep(0)).toBe(4)
  })
})
