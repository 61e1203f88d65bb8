import { setImmediate } from 'node:timers/promises'
import { freshPrefix } from '@tollgate/testing'
import { connect, type NatsConnection } from 'nats'
import { afterAll, beforeAll, beforeEach, expect, inject, test } from 'vitest'
import { type Bus, natsBus, type Objects } from '../src/index.ts'
import { listLog } from './contracts.ts'

const MIB = 1024 * 1024
const PIECE = 128 * 1024
const plenty = { maxBytes: 64 * MIB }

let raw: NatsConnection
let bus: Bus
let objects: Objects
let prefix: string
let count = 0
beforeAll(async () => {
  raw = await connect({ servers: inject('natsUrl') })
  prefix = freshPrefix()
  bus = await natsBus({ servers: inject('natsUrl'), log: listLog().log, prefix, name: 'objects' })
})
afterAll(async () => {
  await bus.drain(Date.now())
  await raw.close()
})
beforeEach(async () => {
  count += 1
  objects = await bus.objects({ bucket: `b${count}`, maxBytes: 32 * MIB })
})
const bucket = () => `${prefix}_b${count}`
async function stored(): Promise<string[]> {
  const manager = await raw.jetstreamManager()
  const { state } = await manager.streams.info(`OBJ_${bucket()}`, { subjects_filter: '>' })
  return Object.keys(state.subjects ?? {})
}
async function* bytes(size: number, seen: { bytes: number } = { bytes: 0 }) {
  for (let at = 0; at < size; at += PIECE) {
    await setImmediate()
    seen.bytes = at
    yield Buffer.alloc(Math.min(PIECE, size - at), 'x')
  }
}

test('the client library, and with it the nats command, reads what is stored, and is told the truth about it', async () => {
  await objects.put('a', bytes(MIB + 5), plenty)
  const theirs = await raw.jetstream().views.os(bucket())
  expect(await theirs.info('a')).toMatchObject({ name: 'a', size: MIB + 5, chunks: 9, deleted: false })
  expect(await theirs.getBlob('a')).toHaveLength(MIB + 5)
})

test('a full store refuses what is new, keeps nothing of it, and takes files again when there is room', async () => {
  await objects.put('first', bytes(24 * MIB), plenty)
  const before = await stored()
  await expect(objects.put('second', bytes(16 * MIB), plenty)).rejects.toMatchObject({
    failure: 'unavailable',
    message: 'the store for files is full',
  })
  expect(await stored()).toEqual(before)
  expect(await objects.delete('first')).toBe(true)
  expect(await stored()).toEqual([])
  await objects.put('second', bytes(16 * MIB), plenty)
})

test('FI-10 a writer is not read ahead of what the server has stored', async () => {
  const seen = { bytes: 0 }
  const cut = new Error('enough')
  async function* watched() {
    for await (const piece of bytes(24 * MIB, seen)) {
      const { state } = await (await raw.jetstreamManager()).streams.info(`OBJ_${bucket()}`)
      if (seen.bytes - state.bytes > 4 * MIB) throw cut
      yield piece
    }
  }
  await objects.put('a', watched(), plenty)
})

test('what another writer of the same name left is freed, and nothing else', async () => {
  await objects.put('a', bytes(MIB), plenty)
  await objects.put('b', bytes(MIB), plenty)
  await objects.put('a', bytes(2 * MIB), plenty)
  expect(await stored()).toHaveLength(4)
  expect(await objects.names().then((names) => names.sort())).toEqual(['a', 'b'])
})

test('tidying removes old pieces of writers that died, and neither fresh ones nor objects', async () => {
  await objects.put('kept', bytes(MIB), plenty)
  const js = raw.jetstream()
  const dayAgo = (Date.now() - 25 * 60 * 60_000).toString(36)
  const orphan = `$O.${bucket()}.C.lost.${dayAgo}.00`
  const fresh = `$O.${bucket()}.C.new.${Date.now().toString(36)}.00`
  const foreign = `$O.${bucket()}.C.somebodyelse`
  for (const subject of [orphan, fresh, foreign]) await js.publish(subject, 'piece')
  expect(await objects.tidy(24 * 60 * 60_000)).toBe(1)
  const left = await stored()
  expect(left).not.toContain(orphan)
  expect(left).toEqual(expect.arrayContaining([fresh, foreign]))
  // however old an object is
  expect(await objects.tidy(-1_000)).toBe(1)
  expect(await objects.stat('kept')).toMatchObject({ bytes: MIB })
  expect(await stored()).toHaveLength(3)
})

test('a damaged object is not read to its end', async () => {
  await objects.put('a', bytes(MIB), plenty)
  const manager = await raw.jetstreamManager()
  const [pieces = ''] = (await stored()).filter((subject) => subject.includes('.C.'))
  await manager.streams.purge(`OBJ_${bucket()}`, { filter: pieces, keep: 3 })
  const opened = await objects.get('a')
  const reading = (async () => {
    for await (const _ of opened?.content ?? []) await setImmediate()
  })()
  await expect(reading).rejects.toMatchObject({ failure: 'unavailable' })
})

test('a reader that was told to stop stops at the next piece', async () => {
  await objects.put('a', bytes(MIB), plenty)
  const stop = new AbortController()
  const opened = await objects.get('a', { signal: stop.signal })
  const reading = (async () => {
    for await (const _ of opened?.content ?? []) stop.abort()
  })()
  await expect(reading).rejects.toMatchObject({ failure: 'cancelled' })
})
