import { mkdtemp, readdir, rm, utimes, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { type FileStore, localFiles } from '@tollgate/files'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'

let folder: string
let files: FileStore
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'files-'))
  files = await localFiles(folder)
})
afterEach(() => rm(folder, { recursive: true, force: true }))

const plenty = { maxBytes: 1_000_000 }
async function* chunks(...texts: string[]) {
  for (const text of texts) yield Buffer.from(text)
}
async function text(id: string): Promise<string | undefined> {
  const found = await files.get(id)
  if (!found) return undefined
  const parts: Uint8Array[] = []
  for await (const part of found.content) parts.push(part)
  return Buffer.concat(parts).toString()
}
const halves = () => readdir(join(folder, 'incoming'))

test('what was put is got, described and deleted', async () => {
  expect(await files.put('file-a', chunks('one ', 'two'), plenty)).toMatchObject({ bytes: 7 })
  expect(await text('file-a')).toBe('one two')
  expect(await files.stat('file-a')).toMatchObject({ bytes: 7, storedAt: expect.any(Date) })
  expect(await files.delete('file-a')).toBe(true)
  expect(await files.delete('file-a')).toBe(false)
  expect(await files.stat('file-a')).toBeUndefined()
  expect(await text('file-a')).toBeUndefined()
})

test('an empty file is a file', async () => {
  expect(await files.put('file-empty', chunks(), plenty)).toMatchObject({ bytes: 0 })
  expect(await text('file-empty')).toBe('')
})

test('a file over the limit is refused while it streams and leaves nothing', async () => {
  let sent = 0
  async function* endless() {
    for (;;) {
      sent += 10
      yield Buffer.alloc(10)
    }
  }
  await expect(files.put('file-big', endless(), { maxBytes: 25 })).rejects.toMatchObject({ failure: 'too_large' })
  expect(sent).toBeLessThan(1_000)
  expect(await files.stat('file-big')).toBeUndefined()
  expect(await halves()).toEqual([])
  expect(await files.put('file-fits', chunks('x'.repeat(25)), { maxBytes: 25 })).toMatchObject({ bytes: 25 })
})

test('an upload that breaks leaves the file of before untouched', async () => {
  await files.put('file-a', chunks('before'), plenty)
  async function* breaks() {
    yield Buffer.from('half')
    throw new Error('the client left')
  }
  await expect(files.put('file-a', breaks(), plenty)).rejects.toThrow('the client left')
  expect(await text('file-a')).toBe('before')
  expect(await halves()).toEqual([])
})

test('an upload that is aborted ends as cancelled and leaves nothing', async () => {
  const gone = new AbortController()
  async function* stalls() {
    yield Buffer.from('half')
    gone.abort()
    await sleep(60_000, undefined, { signal: gone.signal })
  }
  await expect(files.put('file-a', stalls(), { ...plenty, signal: gone.signal })).rejects.toMatchObject({
    failure: 'cancelled',
  })
  expect(await files.stat('file-a')).toBeUndefined()
  expect(await halves()).toEqual([])
})

test('a reader keeps the file it opened while another one takes its place', async () => {
  await files.put('file-a', chunks('first'), plenty)
  const opened = await files.get('file-a')
  await files.put('file-a', chunks('second!'), plenty)
  const parts: Uint8Array[] = []
  for await (const part of opened?.content ?? []) parts.push(part)
  expect(Buffer.concat(parts).toString()).toBe('first')
  expect(opened?.bytes).toBe(5)
  expect(await text('file-a')).toBe('second!')
})

test('twenty uploads of one id at once leave one of them whole', async () => {
  const bodies = Array.from({ length: 20 }, (_, n) => `${n}`.padStart(2, '0').repeat(40_000))
  await Promise.all(
    bodies.map((body) => files.put('file-a', chunks(body.slice(0, 40_000), body.slice(40_000)), plenty)),
  )
  expect(bodies).toContain(await text('file-a'))
})

describe('an id that is no id is refused by every verb', () => {
  test.each(['', '.', '..', '../etc/passwd', 'a/b', 'a\\b', 'a\0b', 'a.b', 'ä', ' a', 'a\n', 'x'.repeat(129)])(
    '%j',
    async (id) => {
      const refused = { failure: 'invalid_request' }
      await expect(files.put(id, chunks('x'), plenty)).rejects.toMatchObject(refused)
      await expect(files.get(id)).rejects.toMatchObject(refused)
      await expect(files.stat(id)).rejects.toMatchObject(refused)
      await expect(files.delete(id)).rejects.toMatchObject(refused)
    },
  )
})

test.each(['file-011CNha8iCJcU1wXNR6q4V8w', 'x'.repeat(128), 'incoming', '__proto__'])('%s is an id', async (id) => {
  await files.put(id, chunks(id), plenty)
  expect(await text(id)).toBe(id)
})

test('uploads a dead process left are removed at the next start, fresh ones are not', async () => {
  const [old, fresh] = [join(folder, 'incoming', 'old'), join(folder, 'incoming', 'fresh')]
  await writeFile(old, 'x')
  await writeFile(fresh, 'x')
  const yesterday = new Date(Date.now() - 25 * 60 * 60 * 1000)
  await utimes(old, yesterday, yesterday)
  await localFiles(folder)
  expect(await halves()).toEqual(['fresh'])
})
