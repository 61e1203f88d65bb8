import { createServer } from 'node:http'
import type { SearchFault } from '@tollgate/testing'
import { describe, expect, test } from 'vitest'
import { CANARY_KEY, engineIds, openEngine } from './engines.ts'
import { openWorld } from './world.ts'

const secret = 'upstream-secret-0d5a'
const status = (code: number): SearchFault => ({
  kind: 'status',
  status: code,
  body: `{"error":"${secret} ${CANARY_KEY}"}`,
})

const table: [string, SearchFault, { tag: string; httpStatus?: number }][] = [
  ['400', status(400), { tag: 'http_error', httpStatus: 400 }],
  ['401', status(401), { tag: 'authentication', httpStatus: 401 }],
  ['402', status(402), { tag: 'quota', httpStatus: 402 }],
  ['403', status(403), { tag: 'authentication', httpStatus: 403 }],
  ['404', status(404), { tag: 'http_error', httpStatus: 404 }],
  ['429', status(429), { tag: 'rate_limited', httpStatus: 429 }],
  ['500', status(500), { tag: 'http_error', httpStatus: 500 }],
  ['503 without JSON', { kind: 'status', status: 503, body: secret }, { tag: 'http_error', httpStatus: 503 }],
  ['a redirect', { kind: 'redirect', to: '/elsewhere' }, { tag: 'http_error', httpStatus: 302 }],
  [
    'broken JSON',
    { kind: 'body', body: `{"results":[{"title":"${secret}` },
    { tag: 'invalid_response', httpStatus: 200 },
  ],
  [
    'JSON of another shape',
    { kind: 'body', body: `{"data":"${secret}"}` },
    { tag: 'invalid_response', httpStatus: 200 },
  ],
  ['null', { kind: 'body', body: 'null' }, { tag: 'invalid_response', httpStatus: 200 }],
  ['an empty body', { kind: 'body', body: '' }, { tag: 'invalid_response', httpStatus: 200 }],
  ['a 20 MiB body', { kind: 'huge', bytes: 20 * 1024 * 1024 }, { tag: 'invalid_response', httpStatus: 200 }],
  ['a body just over 5 MiB', { kind: 'huge', bytes: 5 * 1024 * 1024 }, { tag: 'invalid_response', httpStatus: 200 }],
  ['a connection reset', { kind: 'reset' }, { tag: 'network' }],
  ['silence', { kind: 'hang' }, { tag: 'timeout' }],
  ['half an answer', { kind: 'stall' }, { tag: 'timeout' }],
]

describe.each(engineIds)('%s', (id) => {
  test.each(table)('SP-03 SP-04 S-38 %s', async (_name, fault, expected) => {
    const engine = await openEngine(id)
    engine.finds(['https://a.test/'])
    engine.fake.suffers(fault)
    const tool = { ...engine.tool, timeoutMs: expected.tag === 'timeout' ? 700 : 15_000 }
    const { query, log } = await openWorld({ settings: { searchTools: { main: tool } } })
    const reply = await query({})
    expect(reply).toEqual({ status: 'failed', label: `${id}:main`, ...expected })
    // nothing was followed or tried again, and nothing of it is told
    expect(engine.fake.requests).toHaveLength(1)
    expect(JSON.stringify([reply, log])).not.toMatch(`${secret}|${CANARY_KEY}|127.0.0.1`)
    expect(log).toHaveLength(1)
  })

  test('SP-04 asks for JSON, and takes an answer of almost 5 MiB', async () => {
    const engine = await openEngine(id)
    engine.finds(['https://a.test/'])
    engine.fake.suffers({ kind: 'huge', bytes: 5 * 1024 * 1024 - 2_000 })
    const { query } = await openWorld({ settings: { searchTools: { main: engine.tool } } })
    expect(await query({ enrich: false })).toMatchObject({ status: 'ok', hits: [{ url: 'https://a.test/' }] })
    expect(engine.fake.requests[0]?.headers.accept).toBe('application/json')
  })

  test('S-38 nobody at the address is a network failure', async () => {
    const engine = await openEngine(id)
    const port = await closedPort()
    const tool = { ...engine.tool, apiBase: `http://127.0.0.1:${port}` }
    const { query, log } = await openWorld({ settings: { searchTools: { main: tool } } })
    expect(await query({})).toEqual({ status: 'failed', label: `${id}:main`, tag: 'network' })
    expect(log.join()).not.toContain(String(port))
  })

  test('an answer within the time is taken, however slow', async () => {
    const engine = await openEngine(id)
    engine.finds(['https://a.test/'])
    engine.fake.suffers({ kind: 'slow', ms: 300 })
    const { query } = await openWorld({ settings: { searchTools: { main: { ...engine.tool, timeoutMs: 5_000 } } } })
    expect(await query({})).toMatchObject({ status: 'ok' })
  })
})

test.each([432, 433])('SP-03 Tavily says %i when a plan is used up, which is a quota', async (code) => {
  const engine = await openEngine('tavily')
  engine.fake.suffers(status(code))
  const { query } = await openWorld({ settings: { searchTools: { main: engine.tool } } })
  expect(await query({})).toMatchObject({ tag: 'quota', httpStatus: code })
})

async function closedPort(): Promise<number> {
  const server = createServer()
  await new Promise<void>((ready) => server.listen(0, '127.0.0.1', ready))
  const address = server.address()
  await new Promise((done) => server.close(done))
  return typeof address === 'object' && address ? address.port : 0
}
