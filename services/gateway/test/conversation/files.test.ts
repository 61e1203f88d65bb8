import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Fault, type FileReference } from '@tollgate/contracts'
import { type FileStore, localFiles, newFileId } from '@tollgate/files'
import { callsTools, type FakeModel, fakeAnthropic, fakeOpenAi, type ScriptedReply, says } from '@tollgate/testing'
import OpenAI from 'openai'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type ModelRegistry, openModels } from '../../src/models/registry.ts'
import { silent } from '../brokers.ts'
import { openWith, PATH } from './gateway.ts'

let folder: string
let store: FileStore
let models: ModelRegistry
let script: ScriptedReply[]
let fakes: { openai: FakeModel; anthropic: FakeModel }
let gateway: Awaited<ReturnType<typeof openWith>>
let openai: OpenAI

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'conversation-files-'))
  store = await localFiles(folder)
  const next = () => script.shift() ?? { status: 500, body: '{"error":{"message":"the script is over"}}' }
  fakes = { openai: await fakeOpenAi(next), anthropic: await fakeAnthropic(next) }
  const providers = {
    fake: { type: 'openai-compatible' as const, apiBase: `${fakes.openai.url}/v1`, models: [] },
    claude: { type: 'anthropic-compatible' as const, apiBase: fakes.anthropic.url, models: [] },
  }
  models = openModels({ providers, demo: false, log: silent })
  gateway = await openWith(models, {}, store)
  openai = new OpenAI({ apiKey: gateway.firstKey, baseURL: `${gateway.url}/api/v1`, maxRetries: 0 })
})
afterAll(async () => {
  await gateway.close()
  await models.close()
  await Promise.all([fakes.openai.close(), fakes.anthropic.close()])
  await rm(folder, { recursive: true })
})
beforeEach(() => {
  script = []
  for (const seen of Object.values(gateway.brokers.asked)) if (Array.isArray(seen)) seen.length = 0
  for (const fake of Object.values(fakes)) fake.requests.length = 0
})

const PNG = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==',
  'base64',
)
const upload = async (content: string | Buffer, name: string, type = '') =>
  (await openai.files.create({ file: new File([content], name, { type }), purpose: 'user_data' })).id
const refer = (id: string) => ({ type: 'file', file: { file_id: id } })
const words = (text: string) => ({ type: 'text', text })
const user = (...content: object[]) => ({ role: 'user', content })
const code = [{ type: 'otari_code_execution' }]
const runs = (source = 'print(1)') => callsTools([{ name: 'code_execution', input: { code: source } }])
const ask = (messages: object[], more: object = {}) =>
  gateway.send<{ detail: unknown; choices: { message: { content: string } }[] }>('POST', PATH, {
    key: gateway.firstKey,
    body: { model: 'fake:m', messages, ...more },
  })
const sent = (at = 0, fake = fakes.openai) => fake.requests[at]?.body.messages as { role: string; content: object[] }[]
const asked = () => [
  fakes.openai.requests.length,
  fakes.anthropic.requests.length,
  gateway.brokers.asked.reserved.length,
]

describe('FI-11 FI-15 a file that a message names', () => {
  test('is shown as what it is to a provider of the same dialect, with everything else as it came', async () => {
    const image = await upload(PNG, 'dot.png', 'image/png')
    const paper = await upload('%PDF-1.7 x', 'paper.pdf', 'application/pdf')
    const data = await upload('a,b\n1,2\n', 'data.csv', 'text/csv')
    script = [says('Seen.')]
    const before = { type: 'text', text: 'Look:', cache_control: { type: 'ephemeral' } }
    const message = { ...user(before, refer(image), refer(paper), refer(data)), name: 'ada' }
    expect((await ask([message])).status).toBe(200)
    expect(sent()).toEqual([
      {
        role: 'user',
        name: 'ada',
        content: [
          before,
          { type: 'image_url', image_url: { url: `data:image/png;base64,${PNG.toString('base64')}` } },
          {
            type: 'file',
            file: {
              filename: 'paper.pdf',
              file_data: `data:application/pdf;base64,${Buffer.from('%PDF-1.7 x').toString('base64')}`,
            },
          },
          words('File "data.csv":\n\na,b\n1,2\n'),
        ],
      },
    ])
    expect(fakes.openai.requests[0]?.text).not.toMatch(/file-[0-9a-f]{32}/)
    expect(fakes.openai.refusals).toEqual([])
  })

  test('is shown in the form of another vendor', async () => {
    const image = await upload(PNG, 'dot.png', 'image/png')
    const paper = await upload('%PDF-1.7 x', 'paper.pdf', 'application/pdf')
    const data = await upload('{"a":1}', 'data.json')
    script = [says('Seen.')]
    expect((await ask([user(refer(image), refer(paper), refer(data))], { model: 'claude:m' })).status).toBe(200)
    const base64 = (media_type: string, content: Buffer) => ({
      type: 'base64',
      media_type,
      data: content.toString('base64'),
    })
    expect(sent(0, fakes.anthropic)[0]?.content).toEqual([
      { type: 'image', source: base64('image/png', PNG) },
      { type: 'document', source: base64('application/pdf', Buffer.from('%PDF-1.7 x')), title: 'paper.pdf' },
      words('File "data.json":\n\n{"a":1}'),
    ])
    expect(fakes.anthropic.refusals).toEqual([])
  })

  test('reads the same in every later turn, and so does all that came before it', async () => {
    const [one, two] = [await upload('1', 'data.csv'), await upload('2', 'data.csv')]
    const first = [{ role: 'system', content: 'Be brief.' }, user(words('Look'), refer(one))]
    const later = [...first, { role: 'assistant', content: 'Seen.' }, user(refer(two), refer(one))]
    for (const tools of [undefined, code]) {
      fakes.openai.requests.length = 0
      script = [says('Seen.'), says('Seen.')]
      await ask(first, { tools })
      await ask(later, { tools })
      const [before, after] = [JSON.stringify(sent(0)), JSON.stringify(sent(1))]
      expect(after.startsWith(before.slice(0, -1))).toBe(true)
      expect(after.length).toBeGreaterThan(before.length)
    }
  })

  test('counts in what is reserved for the request', async () => {
    const id = await upload('x'.repeat(40_000), 'long.txt')
    script = [says('Seen.'), says('Seen.')]
    await ask([user(words('Look'))])
    await ask([user(refer(id))])
    const [small, large] = gateway.brokers.asked.reserved.map(({ estimate }) => estimate.inputTokens)
    expect((large ?? 0) - (small ?? 0)).toBeGreaterThan(9_000)
  })

  test.each([
    ['of a type no model is shown', Buffer.from([1, 2, 3]), 'table.parquet', ''],
    ['that is not the text it says it is', Buffer.from([0xff, 0xfe, 0]), 'notes.txt', 'text/plain'],
    ['that is more text than a model is shown', Buffer.alloc(1024 * 1024 + 1, 'x'), 'long.log', 'text/plain'],
  ])(
    '%s is refused by name where only the model would read it, and left to code where there is any',
    async (_what, content, name, type) => {
      const id = await upload(content, name, type)
      const refused = await ask([user(words('Look'), refer(id))])
      expect(refused).toMatchObject({ status: 400, body: { detail: expect.stringContaining(name) } })
      expect(asked()).toEqual([0, 0, 0])
      script = [says('Seen.')]
      expect((await ask([user(words('Look'), refer(id))], { tools: code })).status).toBe(200)
      expect(JSON.stringify(sent())).toContain(
        `in the working directory of code_execution as \\"${name}\\"; its content is not shown`,
      )
      expect(gateway.brokers.asked.seeded).toMatchObject([{ files: [{ id, name, bytes: content.length }] }])
    },
  )

  test.each([
    [{ type: 'file' }],
    [{ type: 'file', file: {} }],
    [{ type: 'file', file: { file_id: '' } }],
    [{ type: 'file', file: { file_id: 7 } }],
  ])('%j names none and is not valid', async (part) => {
    expect((await ask([user(part)])).status).toBe(422)
    expect(asked()).toEqual([0, 0, 0])
  })

  test('with its own bytes is passed on as it came', async () => {
    const inline = { type: 'file', file: { file_data: 'data:application/pdf;base64,JVBERg==', filename: 'a.pdf' } }
    script = [says('Seen.')]
    await ask([user(inline)])
    expect(sent()[0]?.content).toEqual([inline])
  })
})

describe('FI-17 a file that is not there for the caller', () => {
  test('unknown, foreign, deleted or expired: 404 before any model is called or money set aside', async () => {
    await gateway.send('POST', '/api/v1/users', { key: gateway.masterKey, body: { user_id: 'bob' } })
    const { key } = await gateway.makeKey({ user_id: 'bob' })
    const bob = new OpenAI({ apiKey: key, baseURL: `${gateway.url}/api/v1`, maxRetries: 0 })
    const foreign = await bob.files.create({ file: new File(['x'], 'x.txt'), purpose: 'user_data' })
    const deleted = await upload('x', 'x.txt')
    await openai.files.delete(deleted)
    const old = await upload('x', 'x.txt')
    const past = { expires_at: new Date(Date.now() - 1) }
    await gateway.db.kysely.updateTable('gateway.files').set(past).where('id', '=', old).execute()
    const own = await upload('x', 'x.txt')
    for (const id of [newFileId(), foreign.id, deleted, old, 'file-\r\nx', 'a\0b', '../../etc/passwd', "' or 1=1 --"]) {
      for (const more of [{}, { tools: code }, { stream: true }, { model: 'claude:m' }]) {
        expect(await ask([user(refer(own)), user(words('Look'), refer(id))], more)).toMatchObject({
          status: 404,
          body: { detail: expect.stringContaining('not found') },
        })
      }
    }
    expect(asked()).toEqual([0, 0, 0])
    expect(gateway.brokers.asked.opened).toEqual([])
    script = [says('Seen.')]
    const operator = { key: gateway.masterKey, body: { model: 'fake:m', user: 'bob', messages: [user(refer(own))] } }
    expect((await gateway.send('POST', PATH, operator)).status).toBe(200)
  })

  test('more files than one request may name are refused', async () => {
    const ids = Array.from({ length: 101 }, () => refer(newFileId()))
    expect((await ask([user(...ids)])).status).toBe(400)
  })

  test('FI-25 where files are switched off: 404, and code runs without them', async () => {
    const off = await openWith(models)
    const send = (messages: object[], more: object) =>
      off.send<{ detail?: string }>('POST', PATH, { key: off.firstKey, body: { model: 'fake:m', messages, ...more } })
    expect((await send([user(refer(newFileId()))], {})).status).toBe(404)
    expect(fakes.openai.requests).toEqual([])
    const made = [{ name: 'a.txt' }]
    off.brokers.exec = async () => ({ status: 'ok', stdout: '', stderr: '', returnCode: 0, files: made })
    script = [runs(), says('Done.')]
    expect((await send([user(words('Go'))], { tools: code })).status).toBe(200)
    expect(off.brokers.asked.seeded).toEqual([])
    expect(JSON.stringify(sent(1))).toContain('a.txt (not stored)')
    await off.close()
  })
})

describe('files and code', () => {
  test.each(['otari_code_execution', 'code_execution', 'code_interpreter'])(
    'FI-12 FI-13 %s is given every file before its first run, under the names that the model is told',
    async (type) => {
      const [one, two] = [await upload('1', '../../etc/data.csv'), await upload('2', 'DATA.csv')]
      const { brokers } = gateway
      const order: string[] = []
      brokers.exec = async () => {
        order.push(`run after ${brokers.asked.seeded.length} seedings`)
        return { status: 'ok', stdout: '1\n', stderr: '', returnCode: 0, files: [] }
      }
      script = [runs(), runs(), says('Done.')]
      expect((await ask([user(refer(one)), user(refer(two), refer(one))], { tools: [{ type }] })).status).toBe(200)
      expect(brokers.asked.seeded).toEqual([
        expect.objectContaining({
          session: 's1',
          files: [
            { id: one, name: 'data.csv', mediaType: 'text/csv', bytes: 1 },
            { id: two, name: 'DATA.csv', mediaType: 'text/csv', bytes: 1 },
          ],
        }),
      ])
      expect(order).toEqual(['run after 1 seedings', 'run after 1 seedings'])
      const told = JSON.stringify(sent())
      expect(told).toContain('in the working directory of code_execution as \\"data.csv\\"')
      expect(told).toContain('in the working directory of code_execution as \\"DATA-2.csv\\"')
      expect(told).toContain('File \\"DATA.csv\\":\\n\\n2')
      expect(told).not.toMatch(/file-[0-9a-f]{32}/)
    },
  )

  test('FI-16 a file that the sandbox does not take fails the request, and no code runs', async () => {
    const id = await upload('1', 'data.csv')
    const { brokers } = gateway
    const seed = brokers.seed
    brokers.seed = async () => {
      throw new Fault('upstream', 'secret of the backend')
    }
    for (const stream of [false, true]) {
      const answer = await ask([user(refer(id))], { tools: code, stream })
      expect(answer.status).toBe(502)
      expect(answer.text).not.toContain('secret')
    }
    brokers.seed = seed
    expect(fakes.openai.requests).toEqual([])
    expect(brokers.asked.exec).toEqual([])
    await expect.poll(() => brokers.asked.closed).toHaveLength(2)
  })

  test('a sandbox that takes the place of a lost one is given the files again', async () => {
    const id = await upload('1', 'data.csv')
    const { brokers } = gateway
    brokers.exec = async () =>
      brokers.asked.exec.length === 1
        ? { status: 'failed', reason: 'lost' }
        : { status: 'ok', stdout: '1\n', stderr: '', returnCode: 0, files: [] }
    script = [runs(), runs(), says('Done.')]
    await ask([user(refer(id))], { tools: code })
    expect(brokers.asked.seeded.map(({ session, files }) => [session, files[0]?.id])).toEqual([
      ['s1', id],
      ['s2', id],
    ])
  })

  test('FI-21 FI-22 what code made is its caller’s to download; what could not be kept is named without an id', async () => {
    const { brokers } = gateway
    const made = async (
      name: string,
      text: string,
      id = newFileId(),
    ): Promise<{ name: string; file: FileReference }> => {
      async function* content() {
        yield Buffer.from(text)
      }
      await store.put(id, content(), { maxBytes: 100 })
      return { name, file: { id, name, mediaType: 'text/csv', bytes: text.length } }
    }
    const files: { name: string; file?: FileReference }[] = [
      await made('out/result.csv', 'x,y'),
      { name: 'huge.bin' },
      await made('twice.csv', 'z', await upload('z', 'z.csv')),
    ]
    brokers.exec = async () => ({ status: 'ok', stdout: '', stderr: '', returnCode: 0, files })
    script = [runs(), says('Done.')]
    await ask([user(words('Go'))], { tools: code })
    const id = files[0]?.file?.id ?? ''
    const results = sent(1).filter(({ role }) => role === 'tool')
    expect(results).toMatchObject([
      { content: `files: out/result.csv (file_id: ${id}), huge.bin (not stored), twice.csv (not stored)` },
    ])
    expect(await openai.files.retrieve(id)).toMatchObject({
      filename: 'result.csv',
      purpose: 'code_execution_output',
      bytes: 3,
    })
    expect(await (await openai.files.content(id)).text()).toBe('x,y')
    await gateway.send('POST', '/api/v1/users', { key: gateway.masterKey, body: { user_id: 'eve' } })
    const { key } = await gateway.makeKey({ user_id: 'eve' })
    expect((await gateway.send('GET', `/api/v1/files/${id}`, { key })).status).toBe(404)
  })
})

describe('FI-11 files in the other dialects', () => {
  const messages = (content: object[], more: object = {}, model = 'claude:m') =>
    gateway.send('POST', '/api/v1/messages', {
      key: gateway.firstKey,
      body: { model, max_tokens: 100, messages: [{ role: 'user', content }], ...more },
    })

  test('FI-14 FI-15 a document is shown; what is uploaded to a container is told of, or shown where no code runs', async () => {
    const [paper, data] = [await upload('%PDF-1.7 x', 'paper.pdf'), await upload('a,b', 'data.csv')]
    const content = [
      { type: 'document', source: { type: 'file', file_id: paper } },
      { type: 'container_upload', file_id: data },
    ]
    script = [says('Seen.'), says('Seen.')]
    expect((await messages(content)).status).toBe(200)
    expect(sent(0, fakes.anthropic)[0]?.content).toEqual([
      expect.objectContaining({ type: 'document' }),
      words('File "data.csv":\n\na,b'),
    ])
    expect((await messages(content, { tools: code })).status).toBe(200)
    const told = JSON.stringify(sent(1, fakes.anthropic))
    expect(told).toContain('in the working directory of code_execution as \\"data.csv\\"; its content is not shown')
    expect(told).not.toContain('a,b')
    expect(told).not.toMatch(/file-[0-9a-f]{32}/)
    expect(gateway.brokers.asked.seeded[0]?.files.map(({ id }) => id)).toEqual([paper, data])
    expect(fakes.anthropic.refusals).toEqual([])
  })

  test('FI-17 a Messages request that names a foreign file is a 404 in its own form', async () => {
    const content = [{ type: 'document', source: { type: 'file', file_id: newFileId() } }]
    expect(await messages(content)).toMatchObject({ status: 404, text: expect.stringContaining('not_found_error') })
    expect(asked()).toEqual([0, 0, 0])
  })

  test('a Responses input_file is shown and given to code', async () => {
    const data = await upload('a,b', 'data.csv')
    script = [says('Seen.')]
    const input = [{ role: 'user', content: [{ type: 'input_file', file_id: data }] }]
    const answer = await gateway.send('POST', '/api/v1/responses', {
      key: gateway.firstKey,
      body: { model: 'fake:m', input, tools: code },
    })
    expect(answer.status).toBe(200)
    expect(JSON.stringify(sent())).toContain('File \\"data.csv\\":\\n\\na,b')
    expect(gateway.brokers.asked.seeded[0]?.files.map(({ id }) => id)).toEqual([data])
  })
})
