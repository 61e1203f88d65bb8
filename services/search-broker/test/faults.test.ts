import { describe, expect, test } from 'vitest'
import { CANARY_KEY, engineIds, openEngine } from './engines.ts'
import { closedPort, faults, secret, status } from './faults.ts'
import { openWorld } from './world.ts'

describe.each(engineIds)('%s', (id) => {
  test.each(faults)('SP-03 SP-04 S-38 %s', async (_name, fault, expected) => {
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
