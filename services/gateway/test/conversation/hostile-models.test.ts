import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { openModels } from '../../src/models/registry.ts'
import { silent } from '../brokers.ts'
import { openWith } from './gateway.ts'

type Body = Record<string, unknown>
type Answer = (response: ServerResponse) => void | Promise<void>

/** A Chat server whose answers are bytes of the test's own, one after the other. */
let answers: Answer[] = []
let asked: Body[] = []
async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const parts: Buffer[] = []
  for await (const part of request) parts.push(part as Buffer)
  if (request.method === 'POST') asked.push(JSON.parse(Buffer.concat(parts).toString('utf8')))
  const answer = answers.shift()
  if (answer === undefined) return void response.writeHead(500).end('{"error":{"message":"no more answers"}}')
  response.writeHead(200, { 'content-type': 'text/event-stream' })
  await answer(response)
}
const upstream = createServer((request, response) => void handle(request, response).catch(() => response.destroy()))

const chunk = (delta: Body, finish: string | null = null) =>
  `data: ${JSON.stringify({ id: 'c', created: 1, model: 'm', choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`
const done = `${chunk({}, 'stop')}data: [DONE]\n\n`
const says =
  (text: string): Answer =>
  (response) =>
    void response.end(chunk({ role: 'assistant', content: text }) + done)
const calls =
  (name: string, text: string): Answer =>
  (response) => {
    const call = { index: 0, id: 'call_1', type: 'function', function: { name, arguments: text } }
    response.end(`${chunk({ tool_calls: [call] })}${chunk({}, 'tool_calls')}data: [DONE]\n\n`)
  }
/** The same again and again, as fast as it is read, until nobody reads it any more. */
const forever =
  (frame: string): Answer =>
  async (response) => {
    const gone = once(response, 'close')
    while (!response.destroyed) if (!response.write(frame)) await Promise.race([once(response, 'drain'), gone])
  }

let gateway: Awaited<ReturnType<typeof openWith>>
let models: ReturnType<typeof openModels>
beforeAll(async () => {
  upstream.listen(0, '127.0.0.1')
  await once(upstream, 'listening')
  const apiBase = `http://127.0.0.1:${(upstream.address() as AddressInfo).port}/v1`
  models = openModels({
    providers: { up: { type: 'openai-compatible', apiBase, models: [] } },
    demo: false,
    log: silent,
  })
  gateway = await openWith(models)
}, 60_000)
afterAll(async () => {
  await gateway.close()
  await models.close()
  upstream.closeAllConnections()
  upstream.close()
})
beforeEach(() => {
  answers = []
  asked = []
  gateway.brokers.settled.length = 0
})

const paths = {
  chat: ['/v1/chat/completions', { messages: [{ role: 'user', content: 'hi' }] }],
  messages: ['/v1/messages', { max_tokens: 100, messages: [{ role: 'user', content: 'hi' }] }],
  responses: ['/v1/responses', { input: 'hi', store: false }],
} as const
const dialects = ['chat', 'messages', 'responses'] as const
type Dialect = (typeof dialects)[number]

async function post(dialect: Dialect, members: object) {
  const [path, body] = paths[dialect]
  const response = await fetch(gateway.url + path, {
    method: 'POST',
    headers: { 'otari-key': gateway.firstKey, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'up:m', tools: [{ type: 'otari_web_search' }], ...body, ...members }),
  })
  let characters = 0
  let end = ''
  for await (const bytes of response.body as AsyncIterable<Uint8Array>) {
    characters += bytes.length
    end = (end + Buffer.from(bytes).toString('latin1')).slice(-2_000)
  }
  return { status: response.status, characters, end }
}
const MIB = 1024 * 1024
const failed: Record<Dialect, RegExp> = {
  chat: /"error":/,
  messages: /event: error/,
  responses: /event: error|response\.failed/,
}
const ended: Record<Dialect, RegExp> = {
  chat: /"finish_reason":"stop"/,
  messages: /message_stop/,
  responses: /response\.completed/,
}

describe.each(['chat', 'messages'] as const)('an answer without an end, for a %s client', (dialect) => {
  test('BR-018 of words ends at a bound, as an error, and is settled once', async () => {
    answers = [forever(chunk({ content: 'x'.repeat(MIB) }))]
    const { status, characters, end } = await post(dialect, { stream: true })
    expect(status).toBe(200)
    expect(characters).toBeLessThan(80 * MIB)
    expect(end).toMatch(failed[dialect])
    expect(end).not.toMatch(ended[dialect])
    await expect.poll(() => gateway.brokers.settled.map(({ status: how }) => how)).toEqual(['error'])
  })
})

test('BR-018 an answer without an end that is not streamed is a status', async () => {
  answers = [forever(chunk({ content: 'x'.repeat(MIB) }))]
  const { status, characters } = await post('chat', { stream: false })
  expect([status, characters < 2_000]).toEqual([502, true])
})

test.each([
  [
    'calls',
    chunk({
      tool_calls: Array.from({ length: 1_000 }, (_, index) => ({ index, function: { arguments: 'x'.repeat(1_000) } })),
    }),
  ],
  ['members that nobody knows', chunk({ brand_new: 'x'.repeat(MIB) })],
  ['a frame without an end', 'x'.repeat(MIB)],
])('BR-018 an answer of %s without an end is a failure of the provider', async (_what, frame) => {
  answers = [forever(frame)]
  const { status, end } = await post('chat', { stream: true })
  if (status === 200) expect(end).toMatch(failed.chat)
  else expect(status).toBe(502)
})

const deep = (n: number) => `{"query":"red","a":${'['.repeat(n)}${']'.repeat(n)}}`
test.each(dialects)('BR-019 arguments nested without measure are a matter of their call: %s', async (dialect) => {
  answers = [calls('web_search', deep(100_000)), says('Fine.')]
  const { status, end } = await post(dialect, { stream: true })
  expect([status, end.includes('Fine.')]).toEqual([200, true])
  expect(asked).toHaveLength(2)
})

test.each(dialects)('a body nested without measure is the mistake of its client: %s', async (dialect) => {
  const [path, body] = paths[dialect]
  const nested = `${'{"a":'.repeat(50_000)}1${'}'.repeat(50_000)}`
  for (const tools of ['[]', '[{"type":"otari_web_search"}]']) {
    answers = [says('Fine.')]
    const response = await fetch(gateway.url + path, {
      method: 'POST',
      headers: { 'otari-key': gateway.firstKey, 'content-type': 'application/json' },
      body: `${JSON.stringify({ model: 'up:m', ...body }).slice(0, -1)},"tools":${tools},"metadata":{"a":${nested}}}`,
    })
    expect([response.status, (await response.text()).slice(0, 300)]).toEqual([
      expect.toSatisfy((status: number) => status === 400 || status === 422),
      expect.stringMatching(/nest|deep|metadata/),
    ])
  }
})
