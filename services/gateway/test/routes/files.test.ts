import { randomUUID } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { mkdtemp, readdir, rm, stat, writeFile } from 'node:fs/promises'
import { request as httpRequest, type IncomingMessage } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Anthropic, { toFile } from '@anthropic-ai/sdk'
import { type FileStore, localFiles, newFileId } from '@tollgate/files'
import OpenAI from 'openai'
import { afterAll, beforeAll, beforeEach, describe, expect, inject, test } from 'vitest'
import { type FileClaims, fileClaims } from '../../src/files/claims.ts'
import { type FileRows, fileRows } from '../../src/files/rows.ts'
import { sweepFiles } from '../../src/files/sweep.ts'
import { fileRoutes } from '../../src/routes/files.ts'
import { silent } from '../brokers.ts'
import { type Rig, startRig } from '../rig.ts'

const MAX = 100_000
let folder: string
let store: FileStore
let rows: FileRows
let claims: FileClaims
let rig: Rig
let openai: OpenAI
let anthropic: Anthropic
/** Holds the content of every download back behind its first bytes. */
let gate: Promise<void> | undefined

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'gateway-files-'))
  store = await localFiles(folder)
  const held: FileStore = {
    ...store,
    async get(id, options) {
      const found = await store.get(id, options)
      return found && { ...found, content: gate ? halting(found.content, gate) : found.content }
    },
  }
  rig = await startRig({
    postgresUrl: inject('postgresUrl'),
    settings: { filesMaxBytes: MAX },
    routes: ({ identities, settings, db }) => {
      rows = fileRows(db, settings)
      claims = fileClaims(db, silent)
      const files = { store: held, rows, claims }
      return [async (app) => void (await app.register(fileRoutes({ files, identities, settings, log: silent })))]
    },
  })
  const { firstKey: apiKey, url } = rig
  openai = new OpenAI({ apiKey, baseURL: `${url}/api/v1`, maxRetries: 0 })
  anthropic = new Anthropic({ apiKey, baseURL: `${url}/api`, maxRetries: 0 })
})
afterAll(async () => {
  await rig.close()
  await rm(folder, { recursive: true })
})
beforeEach(() => {
  gate = undefined
  rig.settings.filesRetentionHours = undefined
})

async function* halting(content: AsyncIterable<Uint8Array>, open: Promise<void>) {
  let first = true
  for await (const chunk of content) {
    yield chunk
    if (first) await open
    first = false
  }
}

function deferred<T>() {
  let [resolve, reject] = [(_value: T) => {}, (_why: unknown) => {}]
  const promise = new Promise<T>((...ends) => {
    ;[resolve, reject] = ends
  })
  return { promise, resolve, reject }
}

const csv = (text = 'a,b\n1,2\n', name = 'data.csv') => new File([text], name, { type: 'text/csv' })
const uploaded = (text?: string, name?: string) => openai.files.create({ file: csv(text, name), purpose: 'user_data' })
const as = (key: string) => new OpenAI({ apiKey: key, baseURL: `${rig.url}/api/v1`, maxRetries: 0 })
async function post(parts: (string | Blob)[][], headers: Record<string, string> = {}, key = rig.firstKey) {
  const form = new FormData()
  for (const [name, value, file] of parts) {
    if (value instanceof Blob) form.append(String(name), value, String(file))
    else form.append(String(name), String(value))
  }
  const answer = await fetch(`${rig.url}/api/v1/files`, {
    method: 'POST',
    body: form,
    headers: { authorization: `Bearer ${key}`, ...headers },
  })
  return { status: answer.status, body: (await answer.json()) as Record<string, unknown> }
}

/** An upload by hand: its head goes out at once, the rest when the test says so. */
function uploadByHand(disposition: string, key = rig.firstKey) {
  const answered = deferred<IncomingMessage>()
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'multipart/form-data; boundary=xx' }
  const sending = httpRequest(`${rig.url}/api/v1/files`, { method: 'POST', headers }, answered.resolve)
  sending.once('error', answered.reject)
  sending.write(`--xx\r\ncontent-disposition: form-data; name="file"; ${disposition}\r\n\r\n`)
  const end = async () => {
    sending.end('\r\n--xx--\r\n')
    const answer = await answered.promise
    let text = ''
    for await (const chunk of answer) text += chunk
    return { status: answer.statusCode, body: JSON.parse(text) as Record<string, unknown> }
  }
  answered.promise.catch(() => {})
  return { sending, end }
}
const routes = [
  ['GET', ''],
  ['POST', ''],
  ['GET', '/file-1'],
  ['GET', '/file-1/content'],
  ['DELETE', '/file-1'],
]
async function keyOf(user: string) {
  await rig.send('POST', '/api/v1/users', { key: rig.masterKey, body: { user_id: user } })
  return rig.makeKey({ user_id: user })
}
const halves = () => readdir(join(folder, 'incoming'))

describe('the clients of both vendors', () => {
  test('FI-01 FI-02 FI-04 the OpenAI client uploads, looks at, lists, downloads and deletes a file', async () => {
    const file = await openai.files.create({ file: csv(), purpose: 'user_data' })
    expect(file).toEqual({
      id: expect.stringMatching(/^file-[0-9a-f]{32}$/),
      object: 'file',
      bytes: 8,
      created_at: expect.any(Number),
      filename: 'data.csv',
      purpose: 'user_data',
      status: 'processed',
    })
    expect(Math.abs(file.created_at - Date.now() / 1_000)).toBeLessThan(60)
    expect(await openai.files.retrieve(file.id)).toEqual(file)
    const list = await openai.files.list({ limit: 1 })
    expect(list.data).toEqual([file])
    const content = await openai.files.content(file.id)
    expect(await content.text()).toBe('a,b\n1,2\n')
    expect(content.headers.get('content-type')).toBe('text/csv')
    expect(await openai.files.delete(file.id)).toEqual({ id: file.id, object: 'file', deleted: true })
    await expect(openai.files.retrieve(file.id)).rejects.toMatchObject({ status: 404 })
    await expect(openai.files.content(file.id)).rejects.toMatchObject({ status: 404 })
    await expect(openai.files.delete(file.id)).rejects.toMatchObject({ status: 404 })
    expect(await store.stat(file.id)).toBeUndefined()
  })

  test('FI-03 the Anthropic client uploads, looks at, lists, downloads and deletes a file', async () => {
    const file = await anthropic.beta.files.upload({ file: await toFile(Buffer.from('%PDF-1.7'), 'paper.pdf') })
    expect(file).toEqual({
      id: expect.stringMatching(/^file-/),
      type: 'file',
      filename: 'paper.pdf',
      mime_type: 'application/pdf',
      size_bytes: 8,
      created_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/),
      downloadable: true,
    })
    expect(await anthropic.beta.files.retrieveMetadata(file.id)).toEqual(file)
    expect((await anthropic.beta.files.list({ limit: 1 })).data).toEqual([file])
    expect(await (await anthropic.beta.files.download(file.id)).text()).toBe('%PDF-1.7')
    expect(await anthropic.beta.files.delete(file.id)).toEqual({ id: file.id, type: 'file_deleted' })
    const gone = await rig.send('GET', `/api/v1/files/${file.id}`, {
      key: rig.firstKey,
      headers: { 'anthropic-version': '2023-06-01' },
    })
    expect(gone).toMatchObject({
      status: 404,
      body: { detail: { type: 'error', error: { type: 'not_found_error', message: `File '${file.id}' not found` } } },
    })
  })

  test('a file is read from a disk as it is sent', async () => {
    const path = join(folder, 'from-disk.txt')
    await writeFile(path, 'x'.repeat(MAX))
    expect(await openai.files.create({ file: createReadStream(path), purpose: 'assistants' })).toMatchObject({
      bytes: MAX,
      filename: 'from-disk.txt',
      purpose: 'assistants',
    })
  })

  test('a client says when its file shall end', async () => {
    const file = await openai.files.create({
      file: csv(),
      purpose: 'user_data',
      expires_after: { anchor: 'created_at', seconds: 3_600 },
    })
    expect((file.expires_at ?? 0) - file.created_at).toBe(3_600)
    const { body } = await post(
      [
        ['file', csv(), 'a.csv'],
        ['expires_in_seconds', '60'],
      ],
      { 'anthropic-version': 'x' },
    )
    expect(Date.parse(String(body.expires_at)) - Date.parse(String(body.created_at))).toBe(60_000)
  })
})

describe('uploads', () => {
  test('FI-04 a form without a purpose is for user_data, and a field may stand before the file', async () => {
    expect(await post([['file', csv(), 'a.csv']])).toMatchObject({ status: 200, body: { purpose: 'user_data' } })
    const said = await post([
      ['purpose', 'vision'],
      ['file', csv(), 'a.csv'],
      ['more', 'x'],
    ])
    expect(said).toMatchObject({ status: 200, body: { purpose: 'vision' } })
  })

  test('FI-05 an empty file is refused and leaves nothing', async () => {
    const before = await store.ids()
    expect(await post([['file', csv(''), 'a.csv']])).toEqual({
      status: 400,
      body: { detail: 'Uploaded file is empty' },
    })
    expect(await store.ids()).toEqual(before)
  })

  test('FI-05 a file of the most bytes is taken, one byte more is refused and leaves nothing', async () => {
    expect((await post([['file', csv('x'.repeat(MAX)), 'a.csv']])).status).toBe(200)
    const before = await store.ids()
    for (const bytes of [MAX + 1, MAX * 3, 3_000_000]) {
      expect(await post([['file', csv('x'.repeat(bytes)), 'a.csv']])).toEqual({
        status: 413,
        body: { detail: 'File exceeds maximum upload size of 0.1 MB' },
      })
    }
    expect(await store.ids()).toEqual(before)
    expect(await halves()).toEqual([])
  })

  test.each([
    ['no part of that name', () => post([['other', csv(), 'a.csv']]), 422],
    ['a file sent as text', () => post([['file', 'text']]), 422],
    [
      'a purpose that is none',
      () =>
        post([
          ['file', csv(), 'a.csv'],
          ['purpose', 'a b'],
        ]),
      422,
    ],
    [
      'an end too far away',
      () =>
        post([
          ['file', csv(), 'a'],
          ['expires_in_seconds', '99999999'],
        ]),
      422,
    ],
  ])('%s is refused with what is wrong, and leaves nothing', async (_what, send, status) => {
    const before = await store.ids()
    const answer = await send()
    expect(answer.status).toBe(status)
    expect(answer.body.detail).toEqual([expect.objectContaining({ loc: expect.arrayContaining(['body']) })])
    expect(await store.ids()).toEqual(before)
  })

  test('a body that is no form is refused', async () => {
    const json = await rig.send('POST', '/api/v1/files', { key: rig.firstKey, body: { file: 'x' } })
    expect(json.status).toBe(400)
    const headers = { 'content-type': 'multipart/form-data' }
    expect((await rig.send('POST', '/api/v1/files', { key: rig.firstKey, body: 'x', headers })).status).toBe(422)
    const cut = { 'content-type': 'multipart/form-data; boundary=xx' }
    const open = '--xx\r\ncontent-disposition: form-data; name="file"; filename="a"\r\n\r\nhalf'
    expect((await rig.send('POST', '/api/v1/files', { key: rig.firstKey, body: open, headers: cut })).status).toBe(422)
    expect(await halves()).toEqual([])
  })

  test('FI-10 bytes lie on the disk before the last of them are sent', async () => {
    const { sending, end } = uploadByHand('filename="slow.bin"')
    sending.write('x'.repeat(50_000))
    const size = async () => {
      const [name] = await halves()
      return name === undefined ? 0 : (await stat(join(folder, 'incoming', name))).size
    }
    await expect.poll(size).toBeGreaterThan(30_000)
    sending.write('y'.repeat(10))
    expect(await end()).toMatchObject({ status: 200, body: { bytes: 50_010 } })
  })

  test('a client that leaves in the middle leaves nothing', async () => {
    const before = await store.ids()
    const { sending } = uploadByHand('filename="slow.bin"')
    sending.write('x'.repeat(50_000))
    await expect.poll(async () => (await halves()).length).toBe(1)
    sending.destroy()
    await expect.poll(halves).toEqual([])
    expect(await store.ids()).toEqual(before)
  })

  test.each([
    ['filename="../../etc/passwd"', 'passwd'],
    ['filename="C:\\\\secret\\\\x.txt"', 'x.txt'],
    ['filename="über straße.csv"', 'über straße.csv'],
    ["filename*=UTF-8''na%C3%AFve.csv", 'naïve.csv'],
    ['filename="a\u0001\u007fb; x=y.csv"', 'ab; x=y.csv'],
    ['filename=".."', 'file'],
    ['filename="\u202efdp.\u2066txt\u2069.exe"', 'fdp.txt.exe'],
  ])('FI-09 a file sent with %s is called %j, and its download is that one file', async (disposition, filename) => {
    const { sending, end } = uploadByHand(disposition)
    sending.write('content')
    const { body, status } = await end()
    expect({ status, filename: body.filename }).toEqual({ status: 200, filename })
    const download = await rig.send('GET', `/api/v1/files/${body.id}/content`, { key: rig.firstKey })
    expect(download.text).toBe('content')
    expect(download.headers.get('set-cookie')).toBeNull()
    expect(download.headers.get('content-disposition')).toMatch(
      /^attachment; filename="[^"\r\n]*"; filename\*=UTF-8''[\w%.~!$&+^`|-]+$/,
    )
  })
})

describe('downloads', () => {
  test('FI-09 have the stored type, and no browser may guess or show them', async () => {
    const { body } = await post([
      ['file', new File(['<script>'], 'x', { type: 'text/html; charset=utf-8' }), 'a "b"\r\n.html'],
    ])
    const { headers, text } = await rig.send('GET', `/api/v1/files/${body.id}/content`, { key: rig.firstKey })
    expect(text).toBe('<script>')
    expect(headers.get('content-type')).toBe('text/html')
    expect(headers.get('x-content-type-options')).toBe('nosniff')
    expect(headers.get('content-security-policy')).toContain('sandbox')
    expect(headers.get('content-length')).toBe('8')
    expect(headers.get('content-disposition')).toMatch(/^attachment; filename="a [^"\r\n]+\.html"; filename\*=/)
  })

  test('FI-10 the first bytes go out before the last are read', async () => {
    const { id } = await uploaded('x'.repeat(MAX))
    const opened = deferred<void>()
    gate = opened.promise
    const answer = await fetch(`${rig.url}/api/v1/files/${id}/content`, {
      headers: { authorization: `Bearer ${rig.firstKey}` },
    })
    const reader = answer.body?.getReader()
    let got = (await reader?.read())?.value?.byteLength ?? 0
    expect(got).toBeGreaterThan(0)
    expect(got).toBeLessThan(MAX)
    opened.resolve()
    for (let step = await reader?.read(); step && !step.done; step = await reader?.read()) got += step.value.byteLength
    expect(got).toBe(MAX)
  })

  test('a file whose bytes are gone is not there', async () => {
    const { id } = await uploaded()
    await store.delete(id)
    await expect(openai.files.content(id)).rejects.toMatchObject({ status: 404 })
  })
})

describe('lists', () => {
  test('FI-06 both clients page to the end, each file once, while new ones come and listed ones go', async () => {
    const { key } = await keyOf('pager')
    const mine = as(key)
    const make = async (n: number) => (await mine.files.create({ file: csv(`${n}`), purpose: 'user_data' })).id
    const made: string[] = []
    for (let n = 0; n < 7; n += 1) made.push(await make(n))

    const seen: string[] = []
    for await (const { id } of mine.files.list({ limit: 3 })) {
      seen.push(id)
      if (seen.length === 2) await make(100)
    }
    expect(seen).toEqual([...made].reverse())

    const theirs = new Anthropic({ apiKey: key, baseURL: `${rig.url}/api`, maxRetries: 0 })
    const all: string[] = []
    for await (const { id } of theirs.beta.files.list({ limit: 2 })) all.push(id)
    expect(all).toHaveLength(8)
    expect(all.slice(1)).toEqual([...made].reverse())

    const rising: string[] = []
    for await (const { id } of mine.files.list({ limit: 2, order: 'asc' })) {
      rising.push(id)
      await mine.files.delete(id)
    }
    expect(rising.slice(0, 7)).toEqual(made)
    expect((await mine.files.list()).data).toEqual([])
  })

  test('FI-06 a page says what it is, and purposes are told apart', async () => {
    const { key } = await keyOf('lister')
    const get = (query: string, headers = {}) => rig.send('GET', `/api/v1/files${query}`, { key, headers })
    expect((await get('')).body).toEqual({ object: 'list', data: [], has_more: false, first_id: null, last_id: null })
    const [one, two] = [
      await as(key).files.create({ file: csv(), purpose: 'vision' }),
      await as(key).files.create({ file: csv(), purpose: 'batch' }),
    ]
    expect((await get('?limit=1')).body).toMatchObject({ has_more: true, first_id: two.id, last_id: two.id })
    expect((await get(`?limit=1&after_id=${two.id}`)).body).toMatchObject({ has_more: false, first_id: one.id })
    expect((await get('?purpose=vision')).body).toMatchObject({ data: [{ id: one.id }], has_more: false })
    const theirs = await get('?limit=1', { 'anthropic-version': '2023-06-01' })
    expect(theirs.body).toEqual({
      data: [expect.objectContaining({ type: 'file', id: two.id })],
      has_more: true,
      first_id: two.id,
      last_id: two.id,
      next_page: two.id,
    })
    for (const wrong of ['limit=0', 'limit=1001', 'limit=x', 'order=up', 'ids=1']) {
      expect((await get(`?${wrong}`)).status).toBe(422)
    }
    expect((await get('?limit=1000')).status).toBe(200)
    for (const nowhere of ['file-nowhere', newFileId(2 ** 48 - 1), '%00', "' or 1=1 --"]) {
      expect([nowhere, (await get(`?after=${nowhere}`)).status]).toEqual([nowhere, nowhere === '%00' ? 422 : 400])
    }
  })
})

describe('whose a file is', () => {
  test('FI-07 another user of the workspace, and the same user in another one, find nothing of it', async () => {
    await rig.send('POST', '/api/v1/workspaces', { key: rig.masterKey, body: { id: 'elsewhere', name: 'Elsewhere' } })
    await rig.db.kysely
      .insertInto('gateway.workspaces')
      .values({ id: 'elsewhere', organization: 'default', name: 'Elsewhere' })
      .onConflict((conflict) => conflict.doNothing())
      .execute()
    const ada = await keyOf('ada')
    const again = await keyOf('ada')
    const bob = await keyOf('bob')
    const away = await keyOf('ada')
    await rig.db.kysely.updateTable('gateway.keys').set({ workspace: 'elsewhere' }).where('id', '=', away.id).execute()
    rig.identities.changed()
    const { id } = await as(ada.key).files.create({ file: csv(), purpose: 'user_data' })

    for (const key of [bob.key, away.key]) {
      const theirs = as(key)
      await expect(theirs.files.retrieve(id)).rejects.toMatchObject({ status: 404 })
      await expect(theirs.files.content(id)).rejects.toMatchObject({ status: 404 })
      await expect(theirs.files.delete(id)).rejects.toMatchObject({ status: 404 })
      expect((await theirs.files.list()).data).toEqual([])
    }
    expect((await as(again.key).files.retrieve(id)).id).toBe(id)
    const narrowed = (path: string, key: string) =>
      rig.send<{ data: { id: string }[] }>('GET', `/api/v1/files${path}`, { key })
    expect((await narrowed(`/${id}`, rig.masterKey)).status).toBe(200)
    expect((await narrowed(`/${id}?workspace_id=elsewhere`, rig.masterKey)).status).toBe(404)
    expect((await narrowed('?workspace_id=elsewhere', rig.masterKey)).body.data).toEqual([])
    expect((await narrowed('?workspace_id=default', rig.masterKey)).body.data.map((file) => file.id)).toContain(id)
    expect((await narrowed('?workspace_id=elsewhere', ada.key)).status).toBe(404)
    expect((await narrowed(`/${id}?workspace_id=default`, ada.key)).status).toBe(200)

    const operator = as(rig.masterKey)
    const own = await operator.files.create({ file: csv(), purpose: 'user_data' })
    expect((await narrowed('?workspace_id=default', rig.masterKey)).body.data.map((file) => file.id)).toContain(own.id)
    await expect(as(ada.key).files.retrieve(own.id)).rejects.toMatchObject({ status: 404 })
    await operator.files.delete(id)
    await expect(as(ada.key).files.retrieve(id)).rejects.toMatchObject({ status: 404 })
  })

  test('nobody without a key, and no blocked user, gets anywhere', async () => {
    for (const [method, path] of routes) {
      expect((await rig.send(String(method), `/api/v1/files${path}`)).status).toBe(401)
    }
    const { key } = await keyOf('mallory')
    await rig.send('PATCH', '/api/v1/users/mallory', { key: rig.masterKey, body: { blocked: true } })
    expect((await rig.send('GET', '/api/v1/files', { key })).status).toBe(403)
  })

  test.each(["file-' or 1=1 --", '..%2f..%2fetc%2fpasswd', 'incoming', `file-${'a'.repeat(200)}`])(
    'the id %s names no file',
    async (id) => {
      for (const path of [`/files/${id}`, `/files/${id}/content`]) {
        expect((await rig.send('GET', `/api/v1${path}`, { key: rig.firstKey })).status).toBe(404)
      }
    },
  )
})

describe('an end', () => {
  const age = (id: string, hours: number) =>
    rig.db.kysely
      .updateTable('gateway.files')
      .set({ created_at: new Date(Date.now() - hours * 3_600_000) })
      .where('id', '=', id)
      .execute()

  test('FI-08 a file older than the retention is gone at once, and its bytes with the next sweep', async () => {
    const [old, young] = [await uploaded(), await uploaded()]
    await age(old.id, 25)
    expect((await openai.files.retrieve(old.id)).id).toBe(old.id)
    rig.settings.filesRetentionHours = 24
    await expect(openai.files.retrieve(old.id)).rejects.toMatchObject({ status: 404 })
    await expect(openai.files.content(old.id)).rejects.toMatchObject({ status: 404 })
    expect((await openai.files.list({ limit: 1_000 })).data.map(({ id }) => id)).not.toContain(old.id)
    const { expires_at: end = 0, created_at: began } = await openai.files.retrieve(young.id)
    expect(end - began).toBe(24 * 3_600)
    expect(await store.stat(old.id)).toBeDefined()
    await sweepFiles({ store, rows, claims, log: silent })
    expect(await store.stat(old.id)).toBeUndefined()
    expect(await store.stat(young.id)).toBeDefined()
    rig.settings.filesRetentionHours = undefined
    await expect(openai.files.retrieve(old.id)).rejects.toMatchObject({ status: 404 })
  })

  test('FI-08 a file past the end its owner gave it is gone as well', async () => {
    const file = await openai.files.create({
      file: csv(),
      purpose: 'user_data',
      expires_after: { anchor: 'created_at', seconds: 3_600 },
    })
    const past = { expires_at: new Date(Date.now() - 1) }
    await rig.db.kysely.updateTable('gateway.files').set(past).where('id', '=', file.id).execute()
    await expect(openai.files.retrieve(file.id)).rejects.toMatchObject({ status: 404 })
    await sweepFiles({ store, rows, claims, log: silent })
    expect(await store.stat(file.id)).toBeUndefined()
  })

  test('claims of gateways that died are swept, those that hold are not', async () => {
    const ends = { died: new Date(Date.now() - 1_000), alive: new Date(Date.now() + 60_000) }
    const table = rig.db.kysely
    for (const [id, ends_at] of Object.entries(ends))
      await table.insertInto('gateway.file_claims').values({ id, claimant: randomUUID(), ends_at }).execute()
    await sweepFiles({ store, rows, claims, log: silent })
    expect(await table.selectFrom('gateway.file_claims').select('id').execute()).toEqual([{ id: 'alive' }])
  })

  test('bytes without a row are swept a day after they were written, not before', async () => {
    const { id: owned } = await uploaded()
    const [lost, fresh] = [newFileId(), newFileId()]
    async function* content() {
      yield Buffer.from('x')
    }
    for (const id of [lost, fresh]) await store.put(id, content(), { maxBytes: 10 })
    const yesterday = new Date(Date.now() - 25 * 3_600_000)
    const aged: FileStore = {
      ...store,
      stat: async (id) => {
        const found = await store.stat(id)
        return found && (id === fresh ? found : { ...found, storedAt: yesterday })
      },
    }
    await sweepFiles({ store: aged, rows, claims, log: silent })
    expect(await Promise.all([owned, fresh, lost].map(async (id) => (await store.stat(id)) !== undefined))).toEqual([
      true,
      true,
      false,
    ])
  })
})

test('FI-05 where files are switched off every route says so', async () => {
  const off = await startRig({
    postgresUrl: inject('postgresUrl'),
    routes: ({ identities, settings }) => [
      async (app) => void (await app.register(fileRoutes({ files: undefined, identities, settings, log: silent }))),
    ],
  })
  const disabled = { status: 404, body: { detail: 'File uploads are disabled' } }
  for (const [method, path] of routes) {
    expect(await off.send(String(method), `/api/v1/files${path}`, { key: off.firstKey })).toMatchObject(disabled)
  }
  const form = new FormData()
  form.append('file', csv())
  const headers = { authorization: `Bearer ${off.firstKey}` }
  const upload = await fetch(`${off.url}/api/v1/files`, { method: 'POST', body: form, headers })
  expect([upload.status, await upload.json()]).toEqual([404, disabled.body])
  await off.close()
})
