import { mkdtemp, readdir, rm, utimes, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Bus, memoryBus, natsBus } from '@tollgate/bus'
import { type FileStore, fileIdTime, localFiles, mediaTypeOf, newFileId, objectFiles } from '@tollgate/files'
import { openLog } from '@tollgate/telemetry'
import { freshPrefix } from '@tollgate/testing'
import { afterAll, beforeAll, beforeEach, describe, expect, inject, test } from 'vitest'

const MIB = 1024 * 1024
const log = openLog({ service: 'test', level: 'silent' })
const plenty = { maxBytes: 16 * MIB }
const prefix = freshPrefix()

async function* chunks(...texts: string[]) {
  for (const text of texts) yield Buffer.from(text)
}
async function whole(content: AsyncIterable<Uint8Array> | undefined): Promise<string | undefined> {
  if (!content) return undefined
  const parts: Uint8Array[] = []
  for await (const part of content) parts.push(part)
  return Buffer.concat(parts).toString()
}

let folder: string
let bus: Bus
let another: Bus
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'files-'))
  const open = (name: string) => natsBus({ servers: inject('natsUrl'), log, prefix, name })
  ;[bus, another] = await Promise.all([open('one'), open('another')])
})
afterAll(async () => {
  await Promise.all([bus.drain(Date.now()), another.drain(Date.now())])
  await rm(folder, { recursive: true, force: true })
})

/** Twice the same place, as two services see it. */
const kinds = {
  local: async () => [await localFiles(folder), await localFiles(folder)] as const,
  objects: async () => [await objectFiles(bus, 128 * MIB), await objectFiles(another, 128 * MIB)] as const,
}

describe.each(['local', 'objects'] as const)('a store of kind %s', (kind) => {
  let files: FileStore
  let elsewhere: FileStore
  let id: string
  beforeEach(async () => {
    ;[files, elsewhere] = await kinds[kind]()
    id = newFileId()
  })
  const text = async (name: string, store = files) => whole((await store.get(name))?.content)

  test('what was put is got, described, listed and deleted, wherever', async () => {
    expect(await files.put(id, chunks('one ', 'two'), plenty)).toMatchObject({ bytes: 7 })
    expect(await text(id, elsewhere)).toBe('one two')
    expect(await elsewhere.stat(id)).toMatchObject({ bytes: 7, storedAt: expect.any(Date) })
    expect(await elsewhere.ids()).toContain(id)
    expect(await elsewhere.delete(id)).toBe(true)
    expect(await files.delete(id)).toBe(false)
    expect(await files.stat(id)).toBeUndefined()
    expect(await text(id)).toBeUndefined()
    expect(await files.ids()).not.toContain(id)
  })

  test('an empty file is a file', async () => {
    expect(await files.put(id, chunks(), plenty)).toMatchObject({ bytes: 0 })
    expect(await text(id)).toBe('')
  })

  test.each([1, 128 * 1024 - 1, 128 * 1024, 128 * 1024 + 1, 5 * MIB + 3])(
    '%i bytes come out as they went in',
    async (bytes) => {
      const content = Buffer.alloc(bytes, 'the quick brown fox ')
      async function* odd() {
        for (let at = 0; at < bytes; at += 70_001) yield content.subarray(at, at + 70_001)
      }
      expect(await files.put(id, odd(), plenty)).toMatchObject({ bytes })
      expect((await text(id, elsewhere)) === content.toString()).toBe(true)
    },
  )

  test('FI-05 a file over the limit is refused while it streams and leaves nothing', async () => {
    let sent = 0
    async function* endless() {
      for (;;) {
        sent += 100_000
        yield Buffer.alloc(100_000)
      }
    }
    await expect(files.put(id, endless(), { maxBytes: 2 * MIB })).rejects.toMatchObject({ failure: 'too_large' })
    expect(sent).toBeLessThan(8 * MIB)
    expect(await files.stat(id)).toBeUndefined()
    const fits = { maxBytes: 25 }
    await expect(files.put(id, chunks('x'.repeat(26)), fits)).rejects.toMatchObject({ failure: 'too_large' })
    expect(await files.put(id, chunks('x'.repeat(25)), fits)).toMatchObject({ bytes: 25 })
  })

  test('an upload that breaks leaves the file of before untouched', async () => {
    await files.put(id, chunks('before'), plenty)
    async function* breaks() {
      yield Buffer.alloc(MIB)
      throw new Error('the client left')
    }
    await expect(files.put(id, breaks(), plenty)).rejects.toThrow('the client left')
    expect(await text(id)).toBe('before')
  })

  test('an upload that is aborted ends as cancelled and leaves nothing', async () => {
    const gone = new AbortController()
    async function* stalls() {
      yield Buffer.from('half')
      gone.abort()
      await sleep(60_000, undefined, { signal: gone.signal })
    }
    await expect(files.put(id, stalls(), { ...plenty, signal: gone.signal })).rejects.toMatchObject({
      failure: 'cancelled',
    })
    expect(await files.stat(id)).toBeUndefined()
  })

  test('FI-10 a reader has the first bytes without asking for the last', async () => {
    await files.put(id, chunks('a'.repeat(MIB), 'b'.repeat(MIB)), plenty)
    const opened = await elsewhere.get(id)
    for await (const part of opened?.content ?? []) {
      expect(part.byteLength).toBeLessThan(MIB)
      break
    }
    expect(await text(id)).toHaveLength(2 * MIB)
  })

  test('a reader of a file that is replaced or deleted gets all of it or an error, never a mix', async () => {
    await files.put(id, chunks('1'.repeat(MIB)), plenty)
    const opened = await files.get(id)
    const parts: string[] = []
    const reading = (async () => {
      for await (const part of opened?.content ?? []) {
        if (parts.push(Buffer.from(part).toString()) === 1) await elsewhere.put(id, chunks('2'.repeat(MIB)), plenty)
      }
      return parts.join('')
    })()
    const got = await reading.catch((thrown: unknown) => thrown)
    if (got instanceof Error) expect(got).toMatchObject({ failure: 'unavailable' })
    else expect(got === '1'.repeat(MIB)).toBe(true)
    expect((await text(id)) === '2'.repeat(MIB)).toBe(true)
  })

  test('twenty uploads of one id at once leave one of them whole', async () => {
    const bodies = Array.from({ length: 20 }, (_, n) => `${n}`.padStart(2, '0').repeat(40_000))
    await Promise.all(
      bodies.map((body, n) =>
        (n % 2 ? files : elsewhere).put(id, chunks(body.slice(0, 40_000), body.slice(40_000)), plenty),
      ),
    )
    expect(bodies).toContain(await text(id))
  })

  test.each([
    '',
    '.',
    '..',
    '../etc/passwd',
    'a/b',
    'a\\b',
    'a\0b',
    'a.b',
    '*',
    '>',
    'ä',
    ' a',
    'a\n',
    'x'.repeat(129),
  ])('the id %j is refused by every verb', async (name) => {
    const refused = { failure: 'invalid_request' }
    await expect(files.put(name, chunks('x'), plenty)).rejects.toMatchObject(refused)
    await expect(files.get(name)).rejects.toMatchObject(refused)
    await expect(files.stat(name)).rejects.toMatchObject(refused)
    await expect(files.delete(name)).rejects.toMatchObject(refused)
  })

  test.each(['file-011CNha8iCJcU1wXNR6q4V8w', 'x'.repeat(128), 'incoming', '__proto__', '-'])(
    '%s is an id',
    async (name) => {
      await files.put(name, chunks(name), plenty)
      expect(await text(name)).toBe(name)
      expect(await files.ids()).toContain(name)
      await files.delete(name)
    },
  )
})

test('uploads a dead process left in a folder are removed at the next start, fresh ones are not', async () => {
  const halves = join(folder, 'incoming')
  const files = await localFiles(folder)
  const [old, fresh] = [join(halves, 'old'), join(halves, 'fresh')]
  await writeFile(old, 'x')
  await writeFile(fresh, 'x')
  const yesterday = new Date(Date.now() - 25 * 60 * 60 * 1000)
  await utimes(old, yesterday, yesterday)
  await localFiles(folder)
  expect(await readdir(halves)).toEqual(['fresh'])
  await utimes(fresh, yesterday, yesterday)
  expect(await files.tidy(60_000)).toBe(1)
  expect(await readdir(halves)).toEqual([])
})

test('a single process is told to keep its files in a folder', async () => {
  await expect(objectFiles(memoryBus({ log }), MIB)).rejects.toThrow('a folder of its own')
})

test('an id says when it was made, and later ones sort later', () => {
  const ids = [1, 2, Date.now(), Date.now() + 1].map(newFileId)
  expect([...ids].sort()).toEqual(ids)
  expect(fileIdTime(newFileId(1_792_000_000_123))).toEqual(new Date(1_792_000_000_123))
  expect(fileIdTime('file-011CNha8iCJcU1wXNR6q4V8w')).toBeUndefined()
  const lastOf9999 = Date.UTC(10_000, 0) - 1
  expect(fileIdTime(newFileId(lastOf9999))).toEqual(new Date(lastOf9999))
  for (const time of [lastOf9999 + 1, 2 ** 48 - 1]) expect(fileIdTime(newFileId(time))).toBeUndefined()
  expect(new Set(Array.from({ length: 1_000 }, () => newFileId(1)))).toHaveProperty('size', 1_000)
})

test.each([
  ['chart.png', '', 'image/png'],
  ['DATA.CSV', '', 'text/csv'],
  ['chart.png', '%PDF-1.7', 'image/png'],
  ['plot', '\x89PNG\r\n\x1a\n', 'image/png'],
  ['plot.unknown', 'GIF89a', 'image/gif'],
  ['paper', '%PDF-1.7', 'application/pdf'],
  ['photo', 'RIFF\x01\x02\x03\x04WEBP', 'image/webp'],
  ['noise', 'hello', 'application/octet-stream'],
  ['', '', 'application/octet-stream'],
  ['archive.tar.gz', '', 'application/gzip'],
  ['.png', '', 'image/png'],
])('FI-26 %j that begins with %j is %s', (name, beginning, type) => {
  expect(mediaTypeOf(name, Buffer.from(beginning, 'latin1'))).toBe(type)
})
