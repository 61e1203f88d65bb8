import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { FakeJson } from './model-script.ts'

/** What OpenAI's API has beside completions: embeddings, moderations and the list of models. Its base is `<url>/v1`. */
export interface FakeDoors {
  url: string
  requests: { path: string; body: FakeJson; authorization: string | undefined }[]
  /** Answers instead of the next request, once each. */
  fail: { status: number; body: string; headers?: Record<string, string> }[]
  models: FakeJson[] | FakeJson
  close(): Promise<void>
}

const DIMENSIONS = 4

/** Judges as the vendor does: members it does not know are refused, and nothing is embedded that is empty. */
export async function fakeOpenAiDoors({ apiKey }: { apiKey?: string } = {}): Promise<FakeDoors> {
  const doors: Omit<FakeDoors, 'url' | 'close'> = { requests: [], fail: [], models: { object: 'list', data: [] } }
  const server = createServer((request, response) => {
    answer(request, response).catch((error: unknown) => response.destroy(error as Error))
  })

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const text = await readText(request)
    const body = text === '' ? {} : (JSON.parse(text) as FakeJson)
    const path = new URL(request.url ?? '/', 'http://fake').pathname
    const { authorization } = request.headers
    doors.requests.push({ path, body, authorization })
    const failure = doors.fail.shift()
    if (failure) return send(response, failure.status, failure.body, failure.headers)
    if (apiKey !== undefined && authorization !== `Bearer ${apiKey}`) return refuse(response, 401, 'Incorrect API key')
    if (request.method === 'GET' && path === '/v1/models') return send(response, 200, JSON.stringify(doors.models))
    const mistake = mistakeIn(path, body)
    if (mistake !== undefined) return refuse(response, path in members ? 400 : 404, mistake)
    send(response, 200, JSON.stringify(path === '/v1/embeddings' ? embeddings(body) : moderations(body)))
  }

  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening))
  return Object.assign(doors, {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    async close() {
      const closed = new Promise((done) => server.close(done))
      server.closeAllConnections()
      await closed
    },
  })
}

const members: Record<string, readonly string[]> = {
  '/v1/embeddings': ['model', 'input', 'encoding_format', 'dimensions', 'user'],
  '/v1/moderations': ['model', 'input'],
}

function mistakeIn(path: string, body: FakeJson): string | undefined {
  const known = members[path]
  if (known === undefined) return `Unknown request URL: POST ${path}.`
  const unknown = Object.keys(body).find((name) => !known.includes(name))
  if (unknown !== undefined) return `Unrecognized request argument supplied: ${unknown}`
  if (typeof body.model !== 'string' || body.model.includes(':')) return `invalid model ID`
  return inputsOf(body).some((input) => input === '') ? "'$.input' is invalid." : undefined
}

const inputsOf = ({ input }: FakeJson): unknown[] => (Array.isArray(input) ? input : [input])

function embeddings(body: FakeJson): FakeJson {
  const inputs = inputsOf(body)
  const vector = (at: number) => Array.from({ length: DIMENSIONS }, (_one, i) => (at + 1) / (i + 2))
  const shown = (at: number) =>
    body.encoding_format === 'base64' ? Buffer.from(new Float32Array(vector(at)).buffer).toString('base64') : vector(at)
  const tokens = inputs.length * 5
  return {
    object: 'list',
    data: inputs.map((_input, index) => ({ object: 'embedding', index, embedding: shown(index) })),
    model: body.model,
    usage: { prompt_tokens: tokens, total_tokens: tokens },
  }
}

const moderations = (body: FakeJson): FakeJson => ({
  id: 'modr-1',
  model: body.model,
  results: inputsOf(body).map((input) => ({
    flagged: String(input).includes('bad'),
    categories: { violence: false },
    category_scores: { violence: 0.01 },
  })),
})

const refuse = (response: ServerResponse, status: number, message: string): void =>
  send(response, status, JSON.stringify({ error: { message, type: 'invalid_request_error', param: null, code: null } }))

function send(response: ServerResponse, status: number, body: string, headers: Record<string, string> = {}): void {
  response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(body)
}

async function readText(request: IncomingMessage): Promise<string> {
  const parts: Buffer[] = []
  for await (const part of request) parts.push(part as Buffer)
  return Buffer.concat(parts).toString('utf8')
}
