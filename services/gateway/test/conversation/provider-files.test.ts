import { randomUUID } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import Anthropic from '@anthropic-ai/sdk'
import { type FileStore, localFiles, newFileId } from '@tollgate/files'
import { openLog } from '@tollgate/telemetry'
import {
  callsTools,
  type FakeFile,
  type FakeFiles,
  type FakeModel,
  fakeAnthropic,
  fakeGemini,
  fakeOpenAi,
  fakeOpenAiResponses,
  type ScriptedReply,
  says,
} from '@tollgate/testing'
import OpenAI from 'openai'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import type { FilesProvider } from '../../src/files/copy-there.ts'
import { openProviderCopies } from '../../src/files/provider-copies.ts'
import { referenceOf } from '../../src/files/rows.ts'
import { failureKinds } from '../../src/models/failure-kind.ts'
import { type ModelRegistry, openModels } from '../../src/models/registry.ts'
import { defaultSettings } from '../../src/settings.ts'
import { silent } from '../brokers.ts'
import { turnOf, userMessage } from '../turns.ts'
import { openWith } from './gateway.ts'

type Fake = FakeModel & { files: FakeFiles }
const KEY = 'sk-secret-of-the-deployment'

let folder: string
let store: FileStore
let models: ModelRegistry
let fakes: { claude: Fake; gpt: Fake; plain: FakeModel; gem: FakeModel }
let gateway: Awaited<ReturnType<typeof openWith>>
let scripts: Record<keyof typeof fakes, ScriptedReply[]>
const lines: string[] = []

const policy = (...candidates: string[]) => ({
  candidates: candidates.map((model) => ({ model })),
  coolDownMs: 60_000,
  retryOn: failureKinds,
})

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'provider-files-'))
  store = await localFiles(folder)
  const next = (name: keyof typeof scripts) => () =>
    scripts[name].shift() ?? { status: 500, body: '{"error":{"message":"the script is over"}}' }
  fakes = {
    claude: await fakeAnthropic(next('claude'), { apiKey: KEY }),
    gpt: await fakeOpenAiResponses(next('gpt'), { apiKey: KEY }),
    plain: await fakeOpenAi(next('plain'), { compatible: true }),
    gem: await fakeGemini(next('gem')),
  }
  const of = { apiKey: KEY, models: [] }
  models = openModels({
    providers: {
      claude: { type: 'anthropic', apiBase: fakes.claude.url, ...of },
      gpt: { type: 'openai', apiBase: `${fakes.gpt.url}/v1`, ...of },
      plain: { type: 'openai-compatible', apiBase: `${fakes.plain.url}/v1`, models: [] },
      gem: { type: 'gemini', apiBase: `${fakes.gem.url}/v1beta`, ...of },
      clone: { type: 'anthropic-compatible', apiBase: fakes.claude.url, ...of },
      likegpt: { type: 'openai-responses', apiBase: `${fakes.gpt.url}/v1`, ...of },
    },
    demo: false,
    log: silent,
  })
  const log = openLog({ service: 'gateway', level: 'debug', write: (line) => lines.push(line) })
  const policies = {
    away: policy('claude:m', 'plain:m'),
    home: policy('plain:m', 'claude:m'),
    gpts: policy('gpt:m', 'plain:m'),
  }
  const settings = { filesOutputMaxFiles: 3, filesOutputMaxBytes: 1_000 }
  gateway = await openWith(models, settings, store, { policies, aliases: {} }, {}, log)
})
afterAll(async () => {
  await gateway.close()
  await models.close()
  await Promise.all(Object.values(fakes).map((fake) => fake.close()))
  await rm(folder, { recursive: true })
})
beforeEach(() => {
  scripts = { claude: [], gpt: [], plain: [], gem: [] }
  lines.length = 0
  gateway.brokers.settled.length = 0
  for (const seen of Object.values(gateway.brokers.asked)) if (Array.isArray(seen)) seen.length = 0
  for (const fake of Object.values(fakes)) for (const list of [fake.requests, fake.refusals]) list.length = 0
  for (const { files } of [fakes.claude, fakes.gpt]) {
    for (const list of [files.put, files.deleted, files.asked, files.instead, files.refusals]) list.length = 0
  }
})
afterEach(() => {
  // whatever a test is about: nothing of the deployment's account is told to anybody
  expect(lines.join('')).not.toContain(KEY)
})

const upload = async (content: string | Buffer, name: string, type = 'text/csv', key = gateway.firstKey) => {
  const form = new FormData()
  form.append('file', new File([content], name, { type }))
  const response = await fetch(`${gateway.url}/api/v1/files`, {
    method: 'POST',
    headers: { authorization: `Bearer ${key}` },
    body: form,
  })
  return ((await response.json()) as { id: string }).id
}
const download = (id: string, key = gateway.firstKey) => gateway.send('GET', `/api/v1/files/${id}/content`, { key })
const describeFile = (id: string, key = gateway.firstKey) =>
  gateway.send<Record<string, unknown>>('GET', `/api/v1/files/${id}`, { key })

const dated = { type: 'code_execution_20250825', name: 'code_execution' }
const interpreter = { type: 'code_interpreter', container: { type: 'auto' } }
const attached = (id: string) => ({ type: 'container_upload', file_id: id })
const words = (text: string) => ({ type: 'text', text })

const message = (content: object[], more: object = {}, headers: Record<string, string> = {}) =>
  gateway.send<{ content: object[]; detail: { error: { message: string } } }>('POST', '/api/v1/messages', {
    key: gateway.firstKey,
    headers,
    body: { model: 'claude:m', max_tokens: 50, messages: [{ role: 'user', content }], tools: [dated], ...more },
  })
const respond = (content: object[], more: object = {}, headers: Record<string, string> = {}) =>
  gateway.send<{ output: object[] }>('POST', '/api/v1/responses', {
    key: gateway.firstKey,
    headers,
    body: { model: 'gpt:m', input: [{ role: 'user', content }], tools: [interpreter], ...more },
  })
const sentBlocks = (at = 0) => {
  const messages = fakes.claude.requests[at]?.body.messages as { role: string; content: Record<string, unknown>[] }[]
  return messages.at(-1)?.content ?? []
}
const sentTool = (at = 0) => (fakes.gpt.requests[at]?.body.tools as { container: unknown }[] | undefined)?.[0]
/** For what goes on after an answer, on a machine with much else to do. */
const AT_LAST = { timeout: 10_000 }
const gone = async ({ files }: Fake) => {
  await expect.poll(() => files.deleted.length, AT_LAST).toBe(files.put.length)
  expect(new Set(files.deleted)).toEqual(new Set(files.put.map(({ id }) => id)))
}

/** What the vendors say of a run that made files. */
const ranAtClaude = (...ids: string[]): ScriptedReply => ({
  native: [
    { item: { type: 'server_tool_use', id: 'srvtoolu_1', name: 'bash_code_execution', input: { command: 'make' } } },
    {
      item: {
        type: 'bash_code_execution_tool_result',
        tool_use_id: 'srvtoolu_1',
        content: {
          type: 'bash_code_execution_result',
          stdout: '',
          stderr: '',
          return_code: 0,
          content: ids.map((file_id) => ({ type: 'bash_code_execution_output', file_id })),
        },
      },
    },
  ],
  says: [{ text: 'Made.' }],
})
const ranAtGpt = (container: string, ...cited: { id: string; name: string }[]): ScriptedReply => ({
  native: [
    {
      item: {
        type: 'code_interpreter_call',
        id: 'ci_1',
        status: 'completed',
        code: 'make()',
        container_id: container,
        outputs: null,
      },
    },
  ],
  says: [
    {
      text: 'Made.',
      annotations: cited.map(({ id, name }) => ({
        type: 'container_file_citation',
        container_id: container,
        file_id: id,
        filename: name,
        start_index: 0,
        end_index: 5,
      })),
    },
  ],
})

/** A streamed message whose client leaves once `begun` is done. */
async function leaving(content: object[], begun: () => void | Promise<void>): Promise<void> {
  const client = new AbortController()
  const answer = fetch(`${gateway.url}/api/v1/messages`, {
    method: 'POST',
    signal: client.signal,
    headers: { authorization: `Bearer ${gateway.firstKey}`, 'content-type': 'application/json' },
    body: JSON.stringify({
      model: 'claude:m',
      max_tokens: 50,
      stream: true,
      messages: [{ role: 'user', content: content }],
      tools: [dated],
    }),
  }).catch(() => undefined)
  await begun()
  client.abort()
  await answer
}

describe('FI-24 X-26 code that the provider runs is given a short-lived copy', () => {
  test.each([false, true])(
    'FI-24 at Anthropic: uploaded, told to the container, and deleted after the request; streamed %s',
    async (stream) => {
      const [data, twin] = [await upload('a,b\n1,2\n', '../data.csv'), await upload('c', 'DATA.csv')]
      const image = await upload(Buffer.from([1, 2, 3]), 'raw.parquet', '')
      scripts.claude = [says('Done.')]
      const answer = await message([words('Add it up'), attached(data), attached(twin), attached(image)], { stream })
      expect(answer.status).toBe(200)
      expect(answer.text).toContain('Done')
      const { put } = fakes.claude.files
      expect(put.map(({ name, mediaType, content }) => [name, mediaType, content.toString('latin1')]).sort()).toEqual([
        ['DATA-2.csv', 'text/csv', 'c'],
        ['data.csv', 'text/csv', 'a,b\n1,2\n'],
        ['raw.parquet', 'application/vnd.apache.parquet', '\x01\x02\x03'],
      ])
      // should nobody delete it, it ends by itself
      expect(put.map(({ fields }) => fields)).toEqual(Array(3).fill({ expires_in_seconds: '3600' }))
      const copyOf = (name: string) => attached(put.find((one) => one.name === name)?.id ?? '')
      const told = (name: string, about: string) =>
        words(
          `[The file ${about} is among the input files of your code execution tool as "${name}"; its content is not shown.]`,
        )
      expect(sentBlocks()).toEqual([
        words('Add it up'),
        told('data.csv', '"data.csv" (text/csv, 8 bytes)'),
        told('DATA-2.csv', '"DATA.csv" (text/csv, 1 bytes)'),
        told('raw.parquet', '"raw.parquet" (application/vnd.apache.parquet, 3 bytes)'),
        copyOf('data.csv'),
        copyOf('DATA-2.csv'),
        copyOf('raw.parquet'),
      ])
      expect(fakes.claude.requests[0]?.headers['anthropic-beta']).toBe('files-api-2025-04-14')
      expect(fakes.claude.requests[0]?.text).not.toMatch(/file-[0-9a-f]{32}/)
      await gone(fakes.claude)
      expect(gateway.brokers.asked.opened).toEqual([])
      expect([fakes.claude.refusals, fakes.claude.files.refusals]).toEqual([[], []])
    },
  )

  test('FI-15 what is also shown stays shown; copies stand behind all that the client said, and betas beside its own', async () => {
    const [paper, data] = [await upload('%PDF-1.7 x', 'paper.pdf', 'application/pdf'), await upload('x', 'a.csv')]
    const first = { role: 'user', content: [{ type: 'document', source: { type: 'file', file_id: paper } }] }
    const said = { role: 'assistant', content: 'Read.' }
    const last = { role: 'user', content: 'And now?' }
    const betas = { 'anthropic-beta': 'context-1m-2025-08-07' }
    scripts.claude = [says('One.'), says('Two.')]
    expect((await message([], { messages: [first] }, betas)).status).toBe(200)
    const later = [first, said, { role: 'user', content: [attached(data)] }, said, last]
    expect((await message([], { messages: later }, betas)).status).toBe(200)
    const [before, after] = fakes.claude.requests.map(({ body }) => body.messages as { content: object[] }[])
    const shown = before?.[0]?.content.slice(0, 2)
    expect(shown).toEqual([
      expect.objectContaining({ type: 'document', title: 'paper.pdf' }),
      words(
        '[The file "paper.pdf" (application/pdf, 10 bytes) is also among the input files of your code execution tool as "paper.pdf".]',
      ),
    ])
    // what went before reads as it did, so that the provider has it cached
    expect(after?.[0]?.content).toEqual(shown)
    expect(after?.[4]?.content).toEqual([
      words('And now?'),
      expect.objectContaining({ type: 'container_upload' }),
      expect.anything(),
    ])
    expect(fakes.claude.requests[1]?.headers['anthropic-beta']).toBe('context-1m-2025-08-07,files-api-2025-04-14')
    await gone(fakes.claude)
    expect(fakes.claude.refusals).toEqual([])
  })

  test.each([
    [false, true],
    [true, true],
    [false, false],
    [true, false],
  ])('FI-24 at OpenAI: a new container is made with the copies; streamed %s, stored %s', async (stream, kept) => {
    const long = 'z'.repeat(300_000)
    const [data, ours] = [await upload('a,b', 'data.csv'), await upload(long, 'Übersicht 表.bin', '')]
    const declared = { ...interpreter, container: { type: 'auto', memory_limit: '4g', file_ids: [ours] } }
    scripts.gpt = [says('Done.')]
    const answer = await respond([{ type: 'input_file', file_id: data }], { stream, store: kept, tools: [declared] })
    expect(answer.status).toBe(200)
    const { put } = fakes.gpt.files
    expect(put.map(({ name, fields }) => [name, fields]).sort()).toEqual(
      ['data.csv', 'Übersicht 表.bin'].map((name) => [
        name,
        { purpose: 'user_data', 'expires_after[anchor]': 'created_at', 'expires_after[seconds]': '3600' },
      ]),
    )
    const idOf = (name: string) => put.find((one) => one.name === name)?.id
    expect(put.map(({ content }) => content.toString()).sort()).toEqual(['a,b', long])
    expect(sentTool()).toEqual({
      type: 'code_interpreter',
      container: { type: 'auto', memory_limit: '4g', file_ids: [idOf('data.csv'), idOf('Übersicht 表.bin')] },
    })
    expect(fakes.gpt.requests[0]?.text).toContain('File \\"data.csv\\":\\n\\na,b')
    expect(fakes.gpt.requests[0]?.text).not.toMatch(/file-[0-9a-f]{32}/)
    await gone(fakes.gpt)
    expect([fakes.gpt.refusals, fakes.gpt.files.refusals]).toEqual([[], []])
  })

  test('FI-24 into a container that the client made copies are put, and taken out of it again', async () => {
    fakes.gpt.files.containers.add('cntr_mine')
    const data = await upload('a,b', 'data.csv')
    scripts.gpt = [says('Done.')]
    const tools = [{ type: 'code_interpreter', container: 'cntr_mine' }]
    expect((await respond([{ type: 'input_file', file_id: data }], { tools })).status).toBe(200)
    expect(sentTool()).toEqual(tools[0])
    expect(fakes.gpt.files.put).toMatchObject([{ name: 'data.csv', container: 'cntr_mine' }])
    await gone(fakes.gpt)
    expect([fakes.gpt.refusals, fakes.gpt.files.refusals]).toEqual([[], []])
  })

  test('FI-17 a declared file of ours that is not there is a 404; ids of the provider’s own pass as they came', async () => {
    const withFile = (id: string) => [{ ...interpreter, container: { type: 'auto', file_ids: [id] } }]
    expect((await respond([], { input: 'Go', tools: withFile(newFileId()) })).status).toBe(404)
    expect(fakes.gpt.requests).toEqual([])
    fakes.gpt.files.make({ id: 'file-TheirOwn', name: 'x', content: 'x' })
    scripts.gpt = [says('Done.')]
    expect((await respond([], { input: 'Go', tools: withFile('file-TheirOwn') })).status).toBe(200)
    expect(sentTool()?.container).toEqual({ type: 'auto', file_ids: ['file-TheirOwn'] })
    expect(fakes.gpt.files.put).toEqual([])
    // and are never dropped: code that runs here cannot have them
    const here = { model: 'plain:m', input: 'Go', tools: withFile('file-TheirOwn') }
    const refused = await respond([], here)
    expect([refused.status, refused.text]).toEqual([400, expect.stringContaining('file-TheirOwn')])
    expect(fakes.plain.requests).toEqual([])
  })

  test('FI-14 where nobody knows of a files API the file is shown alone; one that only code could have is refused by name', async () => {
    const data = await upload('a,b', 'data.csv')
    const provider = { 'otari-code-execution': 'provider' }
    fakes.claude.requests.length = 0
    scripts.claude = [says('Seen.')]
    expect((await message([attached(data)], { model: 'clone:m' }, provider)).status).toBe(200)
    expect(sentBlocks()).toEqual([words('File "data.csv":\n\na,b')])
    const declared = [{ ...interpreter, container: { type: 'auto', file_ids: [data] } }]
    const refused = await respond([], { input: 'Go', model: 'likegpt:m', tools: declared }, provider)
    expect([refused.status, refused.text]).toEqual([400, expect.stringContaining(data)])
    expect([fakes.claude.files.put, fakes.gpt.files.put, fakes.gpt.requests]).toEqual([[], [], []])
  })

  test('FI-24 a copy serves every round of a request, and stands where it stood', async () => {
    const data = await upload('a,b', 'data.csv')
    scripts.claude = [callsTools([{ name: 'web_search', input: { query: 'rates' } }]), says('Done.')]
    const tools = [dated, { type: 'otari_web_search' }]
    expect((await message([words('Go'), attached(data)], { tools })).status).toBe(200)
    const [first, second] = fakes.claude.requests.map(({ body }) => body.messages as object[])
    expect([first?.length, second?.length]).toEqual([1, 3])
    expect(second?.[0]).toEqual(first?.[0])
    expect(JSON.stringify(second).match(/container_upload/g)).toHaveLength(1)
    expect(fakes.claude.files.put).toHaveLength(1)
    await gone(fakes.claude)
    expect(fakes.claude.refusals).toEqual([])
  })

  test('X-26 Gemini’s code reads what the conversation shows; what cannot be shown is refused by name', async () => {
    const [data, table] = [await upload('a,b', 'data.csv'), await upload('PAR1', 'table.parquet', '')]
    const chat = (id: string) =>
      gateway.send('POST', '/api/v1/chat/completions', {
        key: gateway.firstKey,
        body: {
          model: 'gem:gemini-2.5-pro',
          messages: [{ role: 'user', content: [{ type: 'file', file: { file_id: id } }] }],
          tools: [{ type: 'code_execution' }],
        },
      })
    scripts.gem = [says('Seen.')]
    expect((await chat(data)).status).toBe(200)
    expect(fakes.gem.requests[0]?.text).toContain('File \\"data.csv\\":\\n\\na,b')
    const refused = await chat(table)
    expect([refused.status, refused.text]).toEqual([400, expect.stringContaining('table.parquet')])
    expect(fakes.gem.requests).toHaveLength(1)
    expect(gateway.brokers.asked.opened).toEqual([])
  })

  test('FI-11 tokens are counted of what files are shown as', async () => {
    const data = await upload('a,b', 'data.csv')
    const count = (id: string) =>
      gateway.send<{ input_tokens: number }>('POST', '/api/v1/messages/count_tokens', {
        key: gateway.firstKey,
        body: { model: 'claude:m', messages: [{ role: 'user', content: [attached(id)] }], tools: [dated] },
      })
    expect((await count(data)).body.input_tokens).toBeGreaterThan(0)
    expect(sentBlocks()).toEqual([words(expect.stringContaining('"data.csv"'))])
    expect((await count(newFileId())).status).toBe(404)
    expect(fakes.claude.files.asked).toEqual([])
  })

  test('a request without files, and one whose code runs nowhere, copies nothing', async () => {
    const data = await upload('a,b', 'data.csv')
    scripts.claude = [says('Done.'), says('Seen.')]
    await message([words('Go')])
    await message([words('Go'), attached(data)], { tools: undefined })
    expect(fakes.claude.requests).toHaveLength(2)
    expect(fakes.claude.files.asked).toEqual([])
    expect(fakes.claude.requests[0]?.headers['anthropic-beta']).toBeUndefined()
  })
})

describe('X-26 after a fallback that moves the code, so do its files', () => {
  const runs = callsTools([{ name: 'code_execution', input: { code: 'print(1)' } }])
  const overloaded: ScriptedReply = { status: 529, body: '{"error":{"message":"x"}}' }

  test.each([false, true])('X-26 from the provider to the sandbox, streamed %s', async (stream) => {
    const data = await upload('a,b', 'data.csv')
    scripts.claude = [overloaded]
    scripts.plain = [runs, says('Done.')]
    const answer = await message([words('Go'), attached(data)], { model: 'away', stream })
    expect([answer.status, answer.text]).toEqual([200, expect.stringContaining('Done')])
    expect(sentBlocks()).toContainEqual(attached(fakes.claude.files.put[0]?.id ?? ''))
    expect(gateway.brokers.asked.seeded).toMatchObject([{ files: [{ id: data, name: 'data.csv' }] }])
    expect(fakes.plain.requests[0]?.text).toContain('in the working directory of code_execution')
    expect(fakes.plain.requests[0]?.text).not.toContain('container_upload')
    await gone(fakes.claude)
  })

  test('X-26 from the sandbox to the provider', async () => {
    const data = await upload('a,b', 'data.csv')
    scripts.plain = [overloaded]
    scripts.claude = [says('Done.')]
    expect((await message([words('Go'), attached(data)], { model: 'home' })).status).toBe(200)
    expect(gateway.brokers.asked.seeded).toMatchObject([{ files: [{ id: data }] }])
    expect(fakes.claude.files.put).toMatchObject([{ name: 'data.csv' }])
    expect(sentBlocks()).toContainEqual(attached(fakes.claude.files.put[0]?.id ?? ''))
    await gone(fakes.claude)
    await expect.poll(() => gateway.brokers.asked.closed, AT_LAST).toHaveLength(1)
  })

  test('X-26 on Responses, with a file that the declaration of the tool names', async () => {
    const data = await upload('a,b', 'data.csv')
    scripts.gpt = [{ status: 503, body: '{"error":{"message":"x"}}' }]
    scripts.plain = [runs, says('Done.')]
    const tools = [{ ...interpreter, container: { type: 'auto', file_ids: [data] } }]
    expect((await respond([], { input: 'Go', model: 'gpts', tools })).status).toBe(200)
    expect(fakes.gpt.files.put).toMatchObject([{ name: 'data.csv' }])
    expect(gateway.brokers.asked.seeded).toMatchObject([{ files: [{ id: data }] }])
    await gone(fakes.gpt)
  })

  test('FI-16 a file that the provider refuses moves the code on, and lets nobody rest; alone it is a 502 that names the file', async () => {
    const data = await upload('a,b', 'data.csv')
    const refusal = () => ({
      on: /POST/,
      answer: {
        status: 400,
        body: '{"type":"error","error":{"type":"invalid_request_error","message":"secret words"}}',
      },
    })
    for (const _ of [1, 2, 3, 4]) {
      fakes.claude.files.instead = [refusal()]
      scripts.plain = [runs, says('Done.')]
      expect((await message([words('Go'), attached(data)], { model: 'away' })).status).toBe(200)
    }
    expect(fakes.claude.requests).toEqual([])
    expect(gateway.brokers.settled.at(-1)).toMatchObject({
      provider: 'plain',
      absorbed: [{ provider: 'claude', error: expect.stringMatching(/^Skipped: .*did not take the file "data.csv"/) }],
    })
    for (const stream of [false, true]) {
      fakes.claude.files.instead = [refusal()]
      const refused = await message([words('Go'), attached(data)], { stream })
      expect([refused.status, refused.text]).toEqual([502, expect.stringContaining(`\\"data.csv\\" (${data})`)])
      expect(refused.text).not.toContain('secret')
    }
    scripts.claude = [says('Here again.')]
    expect((await message([words('Go'), attached(data)], { model: 'away' })).text).toContain('Here again.')
    await gone(fakes.claude)
  })
})

describe('FI-24 whatever becomes of the request, its copies go', () => {
  test('when one of several files fails, the others are deleted and the model is not asked', async () => {
    const ids = await Promise.all(['a', 'b', 'c', 'd', 'e', 'f'].map((name) => upload(name, `${name}.csv`)))
    const { files } = fakes.claude
    files.instead = [{ on: /POST/, answer: { status: 413, body: '{}', delayMs: 100 } }]
    expect((await message(ids.map(attached))).status).toBe(502)
    expect(files.put.length).toBeGreaterThan(0)
    await gone(fakes.claude)
    expect(fakes.claude.requests).toEqual([])
    await expect.poll(() => gateway.brokers.asked.released, AT_LAST).toHaveLength(1)
  })

  test.each([
    ['the model fails', [{ status: 500, body: '{}' }], 502],
    ['the model refuses the request', [{ status: 400, body: '{"error":{"message":"no"}}' }], 400],
  ] as [string, ScriptedReply[], number][])('when %s', async (_what, script, status) => {
    const data = await upload('a,b', 'data.csv')
    scripts.claude = script
    expect((await message([attached(data)])).status).toBe(status)
    expect(fakes.claude.files.put).toHaveLength(1)
    await gone(fakes.claude)
  })

  test('when its client leaves while the model answers', async () => {
    const ids = [await upload('a', 'one.csv'), await upload('b', 'two.csv')]
    scripts.claude = [{ says: [{ text: 'A long story.' }], stallAfterBytes: 400 }]
    await leaving(ids.map(attached), () => expect.poll(() => fakes.claude.requests.length, AT_LAST).toBe(1))
    await gone(fakes.claude)
    await expect.poll(() => gateway.brokers.settled, AT_LAST).toMatchObject([{ status: 'cancelled' }])
  })

  test('when its client leaves while files are on their way, also of one whose name there nobody has heard yet', async () => {
    const ids = [await upload('a', 'one.csv'), await upload('b', 'two.csv')]
    const { files } = fakes.claude
    files.instead = [{ on: /POST/, delayMs: 700 }]
    await leaving(ids.map(attached), () => expect.poll(() => files.put.length, AT_LAST).toBe(2))
    expect(fakes.claude.requests).toEqual([])
    await gone(fakes.claude)
    // no model was asked, so nothing is owed
    await expect.poll(() => gateway.brokers.asked.released, AT_LAST).toHaveLength(1)
  })

  test('what cannot be deleted at once is tried again, and a copy that is gone is no failure', async () => {
    const data = await upload('a,b', 'data.csv')
    const { files } = fakes.claude
    scripts.claude = [says('Done.'), says('Done.')]
    files.instead = [{ on: /DELETE/, answer: { status: 500, body: '{}' } }]
    await message([attached(data)])
    await expect.poll(() => files.deleted.length, AT_LAST).toBe(1)
    files.instead = [{ on: /DELETE/, answer: { status: 404, body: '{}' } }]
    await message([attached(data)])
    await expect.poll(() => files.asked.filter((call) => call.startsWith('DELETE')), AT_LAST).toHaveLength(3)
    expect(lines.join('')).not.toContain('is left at a provider')
  })

  test('at the end of the process removals are tried once more at most, and what is left is told', async () => {
    const data = await upload('a,b', 'data.csv')
    const { files } = fakes.claude
    const { provider } = models.resolve('claude:m', 'messages')
    if (!provider.files) throw new Error('a provider of Anthropic’s has no files')
    const row = await gateway.db.kysely
      .selectFrom('gateway.files')
      .selectAll()
      .where('id', '=', data)
      .executeTakeFirstOrThrow()
    const told: string[] = []
    const log = openLog({ service: 'gateway', level: 'warn', write: (line) => told.push(line) })
    const copies = openProviderCopies({ store, log })
    const request = copies.of('r1')
    const sent = { turn: turnOf([dated], { dialect: 'messages' }), messages: [userMessage('Go')], tools: [] }
    const at = { signal: new AbortController().signal, deadline: Date.now() + 10_000 }
    await request.attach(sent, [referenceOf(row)], provider as FilesProvider, at)
    files.instead = [{ on: /DELETE/, answer: { status: 500, body: '{"error":{"message":"secret"}}' } }]
    request.remove()
    await expect.poll(() => files.asked.filter((call) => call.startsWith('DELETE')), AT_LAST).toHaveLength(1)
    await copies.close(Date.now() + 1_000)
    expect(told.map((line) => JSON.parse(line))).toMatchObject([
      {
        request: 'r1',
        provider: 'claude',
        copy: files.put[0]?.id,
        msg: expect.stringContaining('until it ends by itself'),
      },
    ])
    expect(told.join('')).not.toMatch(/secret/)
  })

  test('a file whose bytes are lost is nobody’s fault at the provider', async () => {
    const data = await upload('a,b', 'data.csv')
    await store.delete(data)
    const answer = await message([attached(data)], { model: 'away' })
    expect([answer.status, answer.text]).toEqual([404, expect.stringContaining(data)])
    expect([fakes.claude.requests, fakes.plain.requests]).toEqual([[], []])
  })

  test('copies that take too long fail the attempt, which another candidate may stand in for', async () => {
    const data = await upload('a,b', 'data.csv')
    gateway.settings.providerFilesTimeoutMs = 200
    try {
      const slow = () => ({ on: /POST/, answer: { status: 200, body: '{}', delayMs: 20_000 } })
      fakes.claude.files.instead = [slow()]
      const late = await message([attached(data)])
      expect([late.status, late.text]).toEqual([504, expect.stringContaining('could not be copied')])
      fakes.claude.files.instead = [slow()]
      scripts.plain = [says('Done.')]
      expect((await message([attached(data)], { model: 'away' })).status).toBe(200)
    } finally {
      gateway.settings.providerFilesTimeoutMs = defaultSettings.providerFilesTimeoutMs
    }
  })

  test('more or larger files than the provider takes are refused by name before any is copied', async () => {
    const { kysely } = gateway.db
    const id = await upload('x', 'x.csv')
    const row = await kysely.selectFrom('gateway.files').selectAll().where('id', '=', id).executeTakeFirstOrThrow()
    const ids = Array.from({ length: 51 }, () => newFileId())
    const rows = ids.map((one) => ({ ...row, id: one }))
    await kysely.insertInto('gateway.files').values(rows).execute()
    const tools = [{ ...interpreter, container: { type: 'auto', file_ids: ids } }]
    const answer = await respond([], { input: 'Go', tools })
    expect([answer.status, answer.text]).toEqual([400, expect.stringContaining('at most 50 files')])
    const large = ids[0] as string
    const claims = { bytes: BigInt(501 * 1024 * 1024) }
    await kysely.updateTable('gateway.files').set(claims).where('id', '=', large).execute()
    const refused = await message([attached(large)])
    expect([refused.status, refused.text]).toEqual([400, expect.stringContaining(large)])
    expect([fakes.claude.files.asked, fakes.gpt.files.asked]).toEqual([[], []])
  })
})

describe('the stand-ins', () => {
  test('understand the vendors’ own clients, who send what this gateway sends', async () => {
    const file = () => new File(['a,b'], 'data.csv', { type: 'text/csv' })
    const openai = new OpenAI({ apiKey: KEY, baseURL: `${fakes.gpt.url}/v1`, maxRetries: 0 })
    const expires_after = { anchor: 'created_at', seconds: 3_600 } as const
    const uploaded = await openai.files.create({ file: file(), purpose: 'user_data', expires_after })
    fakes.gpt.files.make({ id: 'cfile_sdk', name: 'out.csv', content: 'x,y', container: 'cntr_sdk' })
    const inside = await openai.containers.files.create('cntr_sdk', { file: file() })
    const listed = (await openai.containers.files.list('cntr_sdk')).data.map(({ id, source }) => [id, source])
    expect(listed).toEqual([
      ['cfile_sdk', 'assistant'],
      [inside.id, 'user'],
    ])
    const content = await openai.containers.files.content.retrieve('cfile_sdk', { container_id: 'cntr_sdk' })
    expect(await content.text()).toBe('x,y')
    await openai.containers.files.delete(inside.id, { container_id: 'cntr_sdk' })
    await openai.files.delete(uploaded.id)

    const anthropic = new Anthropic({ apiKey: KEY, baseURL: fakes.claude.url, maxRetries: 0 })
    const copy = await anthropic.beta.files.upload({ file: file(), expires_in_seconds: 3_600 })
    fakes.claude.files.make({ id: 'file_sdk', name: 'out.csv', content: 'x,y' })
    expect(await (await anthropic.beta.files.download('file_sdk')).text()).toBe('x,y')
    await expect(anthropic.beta.files.download(copy.id)).rejects.toThrow('not downloadable')
    await anthropic.beta.files.delete(copy.id)

    const bySdk = [fakes.gpt, fakes.claude].map(({ files }) => files.put.splice(0))
    for (const { files } of [fakes.gpt, fakes.claude]) files.deleted.length = 0
    const data = await upload('a,b', 'data.csv')
    fakes.gpt.files.containers.add('cntr_sdk')
    scripts = { ...scripts, gpt: [says('Done.'), says('Done.')], claude: [says('Done.')] }
    await respond([{ type: 'input_file', file_id: data }])
    const tools = [{ type: 'code_interpreter', container: 'cntr_sdk' }]
    await respond([{ type: 'input_file', file_id: data }], { tools })
    await message([attached(data)])
    const plain = ({ name, mediaType, content, container, fields }: FakeFile) => ({
      ...{ name, mediaType, container, fields },
      content: String(content),
    })
    const byGateway = [fakes.gpt, fakes.claude].map(({ files }) => files.put)
    expect(byGateway.map((files) => files.map(plain))).toEqual(bySdk.map((files) => files.map(plain)))
    await gone(fakes.gpt)
    await gone(fakes.claude)
    expect([fakes.gpt.files.refusals, fakes.claude.files.refusals]).toEqual([
      [],
      [expect.stringContaining('not downloadable')],
    ])
  })
})

describe('FI-23 files that the provider’s code made', () => {
  const PNG = Buffer.from('89504e470d0a1a0a0000', 'hex')

  test.each([false, true])(
    'FI-23 of Anthropic are here under their own ids once the answer ends; streamed %s',
    async (stream) => {
      const [chart, table] = [`file_chart_${stream}`, `file_table_${stream}`]
      const { files } = fakes.claude
      files.make({ id: chart, name: 'chart', content: PNG })
      files.make({ id: table, name: 'out/table.csv', content: 'x,y', mediaType: 'text/plain' })
      scripts.claude = [ranAtClaude(chart, table)]
      const answer = await message([words('Draw')], { stream })
      expect([answer.status, answer.text]).toEqual([200, expect.stringContaining(chart)])
      expect((await download(chart)).text).toContain('PNG')
      expect((await download(table)).text).toBe('x,y')
      expect((await describeFile(chart)).body).toMatchObject({
        filename: 'chart',
        purpose: 'code_execution_output',
        bytes: 10,
      })
      const types = await gateway.db.kysely
        .selectFrom('gateway.files')
        .select(['id', 'media_type', 'filename'])
        .where('id', 'in', [chart, table])
        .orderBy('id')
        .execute()
      expect(types).toEqual([
        { id: chart, media_type: 'image/png', filename: 'chart' },
        { id: table, media_type: 'text/csv', filename: 'table.csv' },
      ])
      await gateway.send('POST', '/api/v1/users', { key: gateway.masterKey, body: { user_id: 'eve' } })
      const { key } = await gateway.makeKey({ user_id: 'eve' })
      expect((await describeFile(chart, key)).status).toBe(404)
      // what the provider's code made can be given to code again, wherever that runs
      scripts.claude = [says('Seen.')]
      expect((await message([attached(table)])).status).toBe(200)
      expect(files.put.map(({ content }) => content.toString())).toEqual(['x,y'])
      await gone(fakes.claude)
      expect([fakes.claude.refusals, files.refusals]).toEqual([[], []])
    },
  )

  test.each([
    [false, false],
    [true, true],
  ])(
    'FI-23 of OpenAI are those that the answer cites, and whatever else lies in its container; streamed %s',
    async (stream, kept) => {
      const container = `cntr_${stream}`
      const [cited, quiet] = [`cfile_cited_${stream}`, `cfile_quiet_${stream}`]
      const { files } = fakes.gpt
      files.make({ id: cited, name: 'cited.csv', content: 'x,y', container })
      files.make({ id: quiet, name: 'quiet.txt', content: 'psst', container })
      files.make({ id: `cfile_given_${stream}`, name: 'in.csv', content: 'in', container, byClient: true })
      scripts.gpt = [ranAtGpt(container, { id: cited, name: 'result.csv' })]
      const data = await upload('in', 'in.csv')
      const input = [{ type: 'input_file', file_id: data }]
      const answer = await respond(input, { stream, store: kept })
      expect([answer.status, answer.text]).toEqual([200, expect.stringContaining(cited)])
      expect(answer.text).toContain('container_file_citation')
      expect((await describeFile(cited)).body).toMatchObject({
        filename: 'result.csv',
        purpose: 'code_execution_output',
      })
      expect((await download(quiet)).text).toBe('psst')
      expect((await describeFile(`cfile_given_${stream}`)).status).toBe(404)
      await gone(fakes.gpt)
      expect([fakes.gpt.refusals, files.refusals]).toEqual([[], []])
    },
  )

  test('FI-23 of a container that the client named, only what the answer cites is its to have', async () => {
    const container = 'cntr_named'
    const { files } = fakes.gpt
    files.make({ id: 'cfile_of_another', name: 'secret.txt', content: 'psst', container })
    files.make({ id: 'cfile_of_this_one', name: 'a.txt', content: 'mine', container })
    scripts.gpt = [ranAtGpt(container, { id: 'cfile_of_this_one', name: 'a.txt' })]
    await respond([{ type: 'input_text', text: 'Go' }], { tools: [{ type: 'code_interpreter', container }] })
    expect((await download('cfile_of_this_one')).text).toBe('mine')
    expect((await describeFile('cfile_of_another')).status).toBe(404)
  })

  test('FI-22 what is empty, too much, or cannot be fetched is missing, and the answer stands', async () => {
    const { files } = fakes.claude
    const ids = ['file_e1', 'file_e2', 'file_e3', 'file_e4', 'file_e5', 'file_e6', 'file_e7']
    const [empty, large, lost, a, b, c, fourth] = ids as [string, string, string, string, string, string, string]
    files.make({ id: empty, name: 'empty.txt', content: '' })
    files.make({ id: large, name: 'large.bin', content: Buffer.alloc(1_001) })
    for (const id of [a, b, c, fourth]) files.make({ id, name: `${id}.txt`, content: 'x'.repeat(300) })
    scripts.claude = [ranAtClaude(empty, large, lost, a, a, b, c, fourth)]
    const answer = await message([words('Go')])
    expect([answer.status, answer.text]).toEqual([200, expect.stringContaining('Made.')])
    const found = await Promise.all(ids.map(async (id) => (await describeFile(id)).status))
    expect(found).toEqual([404, 404, 404, 200, 200, 200, 404])
    expect(await Promise.all([large, lost].map((id) => store.stat(id)))).toEqual([undefined, undefined])
    expect(files.asked.filter((call) => call.endsWith('/content'))).toHaveLength(3)
    expect(gateway.brokers.settled).toMatchObject([{ status: 'success' }])
  })

  test('FI-22 a file that is larger than it was said to be leaves nothing', async () => {
    const { files } = fakes.claude
    files.make({ id: 'file_liar', name: 'a.txt', content: 'x' })
    files.instead = [{ on: /file_liar\/content/, answer: { status: 200, body: Buffer.alloc(2_000, 'x') } }]
    scripts.claude = [ranAtClaude('file_liar')]
    expect((await message([words('Go')])).status).toBe(200)
    expect((await describeFile('file_liar')).status).toBe(404)
    expect(await store.stat('file_liar')).toBeUndefined()
  })

  test.each([false, true])(
    'FI-23 a download that takes too long is given up, and the answer ends; streamed %s',
    async (stream) => {
      gateway.settings.providerFilesTimeoutMs = 300
      try {
        const { files } = fakes.claude
        const [slow, next] = [`file_slow_${stream}`, `file_next_${stream}`]
        for (const id of [slow, next]) files.make({ id, name: 'a.txt', content: 'x'.repeat(100) })
        files.instead = [{ on: /slow.*content/, answer: { status: 200, body: 'x'.repeat(100), stallAfterBytes: 10 } }]
        scripts.claude = [ranAtClaude(slow, next)]
        const answer = await message([words('Go')], { stream })
        expect([answer.status, answer.text]).toEqual([200, expect.stringContaining('end_turn')])
        expect(await Promise.all([slow, next].map(async (id) => (await describeFile(id)).status))).toEqual([404, 404])
        expect(await store.stat(slow)).toBeUndefined()
      } finally {
        gateway.settings.providerFilesTimeoutMs = defaultSettings.providerFilesTimeoutMs
      }
    },
  )

  test('FI-23 when the client leaves while files are copied, that ends, and what was answered is owed', async () => {
    const { files } = fakes.claude
    files.make({ id: 'file_left', name: 'a.txt', content: 'x'.repeat(100) })
    files.instead = [{ on: /content/, answer: { status: 200, body: 'x'.repeat(100), stallAfterBytes: 10 } }]
    scripts.claude = [ranAtClaude('file_left')]
    await leaving([words('Go')], () =>
      expect.poll(() => files.asked, AT_LAST).toContain('GET /v1/files/file_left/content'),
    )
    await expect.poll(() => lines.join(''), AT_LAST).toContain('could not be copied')
    await expect.poll(() => gateway.brokers.settled, AT_LAST).toMatchObject([{ status: 'success' }])
    expect((await describeFile('file_left')).status).toBe(404)
    expect(await store.stat('file_left')).toBeUndefined()
  })

  test('FI-23 an id that is somebody’s here already, or could be one of ours, changes nothing', async () => {
    const ours = await upload('the user’s own', 'own.txt', 'text/plain')
    const { files } = fakes.claude
    const shaped = newFileId()
    for (const id of [ours, shaped]) files.make({ id, name: 'evil.txt', content: 'evil' })
    files.make({ id: 'file_shared', name: 'a.txt', content: 'first' })
    scripts.claude = [ranAtClaude('file_shared'), ranAtClaude(ours, shaped, 'file_shared', '../../etc/passwd')]
    await message([words('Go')])
    files.make({ id: 'file_shared', name: 'a.txt', content: 'second' })
    await gateway.send('POST', '/api/v1/users', { key: gateway.masterKey, body: { user_id: 'mallory' } })
    const { key } = await gateway.makeKey({ user_id: 'mallory' })
    const body = { model: 'claude:m', max_tokens: 50, messages: [{ role: 'user', content: 'Go' }], tools: [dated] }
    expect((await gateway.send('POST', '/api/v1/messages', { key, body })).status).toBe(200)
    expect((await download(ours)).text).toBe('the user’s own')
    expect((await download('file_shared')).text).toBe('first')
    for (const id of ['file_shared', shaped]) expect((await describeFile(id, key)).status).toBe(404)
    expect(await store.stat(shaped)).toBeUndefined()
    expect(files.asked.some((call) => call.includes('passwd'))).toBe(false)
  })

  test('FI-23 a file that several answers name at once is copied once, for the first of them', async () => {
    const { files } = fakes.claude
    files.make({ id: 'file_twice', name: 'a.txt', content: 'first' })
    // the first breaks off: the second is made all the same, and those behind it find it
    files.instead = [
      { on: /file_twice\/content/, answer: { status: 200, body: 'broken', cutAfterBytes: 3 } },
      { on: /file_twice\/content/, delayMs: 100 },
    ]
    scripts.claude = [1, 2, 3, 4].map(() => ranAtClaude('file_twice'))
    const answers = await Promise.all([1, 2, 3, 4].map(() => message([words('Go')])))
    expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200])
    expect((await download('file_twice')).text).toBe('first')
    expect(files.asked.filter((call) => call === 'GET /v1/files/file_twice/content')).toHaveLength(2)
    expect(lines.filter((line) => line.includes('"level":"error"'))).toEqual([])
  })

  test('FI-23 a file that answers of two gateways name at once is copied by one of them, and both name it', async () => {
    const { files } = fakes.claude
    const other = await gateway.replica()
    const body = { model: 'claude:m', max_tokens: 50, messages: [{ role: 'user', content: 'Go' }], tools: [dated] }
    const asked = (id: string, at: typeof other) => {
      scripts.claude.push(ranAtClaude(id))
      return at.send<{ content: object[] }>('POST', '/api/v1/messages', { key: gateway.firstKey, body })
    }
    const downloads = (id: string) => files.asked.filter((call) => call === `GET /v1/files/${id}/content`)
    for (const id of ['file_race1', 'file_race2', 'file_race3']) {
      files.make({ id, name: 'a.txt', content: id })
      files.instead.push({ on: new RegExp(`${id}/content`), delayMs: 150 })
      const answers = await Promise.all([asked(id, gateway), asked(id, other), asked(id, gateway), asked(id, other)])
      expect(answers.map(({ status, text }) => [status, text.includes(id)])).toEqual(answers.map(() => [200, true]))
      expect((await download(id)).text).toBe(id)
      expect(downloads(id)).toHaveLength(1)
    }
    const held = await gateway.db.kysely.selectFrom('gateway.file_claims').selectAll().execute()
    expect(held).toEqual([])
    expect(lines.filter((line) => /"level":"(error|warn)"/.test(line))).toEqual([])
  })

  test('FI-23 a gateway that died with its claim keeps a file from nobody once that ended, nor an answer from its end', async () => {
    const { files } = fakes.claude
    files.make({ id: 'file_orphan', name: 'a.txt', content: 'orphan' })
    const claim = { id: 'file_orphan', claimant: randomUUID(), ends_at: new Date(Date.now() + 3_600_000) }
    await gateway.db.kysely.insertInto('gateway.file_claims').values(claim).execute()
    gateway.settings.providerFilesTimeoutMs = 200
    onTestFinished(() => {
      gateway.settings.providerFilesTimeoutMs = 60_000
    })
    scripts.claude = [ranAtClaude('file_orphan'), ranAtClaude('file_orphan')]
    expect((await message([words('Go')])).status).toBe(200)
    expect((await download('file_orphan')).status).toBe(404)
    expect(lines.join('')).toContain('could not be copied')
    gateway.settings.providerFilesTimeoutMs = 60_000
    const over = { ends_at: new Date(Date.now() - 1_000) }
    await gateway.db.kysely.updateTable('gateway.file_claims').set(over).execute()
    expect((await message([words('Go')])).status).toBe(200)
    expect((await download('file_orphan')).text).toBe('orphan')
  })

  test('FI-25 with files switched off nothing is copied, and the provider’s code runs all the same', async () => {
    const off = await openWith(models)
    fakes.claude.files.make({ id: 'file_off', name: 'a.txt', content: 'x' })
    scripts.claude = [ranAtClaude('file_off')]
    scripts.gpt = [says('Done.')]
    const body = { model: 'claude:m', max_tokens: 50, messages: [{ role: 'user', content: 'Go' }], tools: [dated] }
    expect((await off.send('POST', '/api/v1/messages', { key: off.firstKey, body })).status).toBe(200)
    const plain = { model: 'gpt:m', input: 'Go', tools: [interpreter], store: false }
    expect((await off.send('POST', '/api/v1/responses', { key: off.firstKey, body: plain })).status).toBe(200)
    expect([fakes.claude.files.asked, fakes.gpt.files.asked]).toEqual([[], []])
    await off.close()
  })
})
