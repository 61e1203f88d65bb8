import { startBilling } from '@tollgate/billing'
import { billingReserve, usageSettled, usageTool } from '@tollgate/contracts'
import { openDb } from '@tollgate/db'
import type { Running } from '@tollgate/service'
import { openLog } from '@tollgate/telemetry'
import { afterAll, beforeAll, describe, expect, inject, test, vi } from 'vitest'
import { type Rig, startRig } from '../rig.ts'

interface Row {
  id: string
  kind: string
  model_key: string
  [member: string]: unknown
}

let rig: Rig
let billing: Running
let closeDb: () => Promise<void>
beforeAll(async () => {
  rig = await startRig({ postgresUrl: inject('postgresUrl') })
  const log = openLog({ service: 'billing', level: 'silent' })
  const db = await openDb({ url: rig.databaseUrl, log, poolSize: 3 })
  closeDb = () => db.close()
  billing = await startBilling({ bus: rig.bus, log, db, requirePricing: true, sweepEveryMs: 60_000 })
})
afterAll(async () => {
  await billing.close(Date.now() + 5_000)
  await rig.close()
  await closeDb()
})

const setPrice = (body: unknown) => rig.send<Row>('POST', '/api/v1/pricing', { key: rig.masterKey, body })
const price = (key: string, kind = 'model') =>
  rig.send<Row>('GET', `/api/v1/pricing/${key}?kind=${kind}`, { key: rig.firstKey })

describe('P-03 a price', () => {
  test('P-03 is set as the source’s example sets it, and shown', async () => {
    const made = await setPrice(
      '{"kind": "search", "model_key": "exa-search", "input_price_per_million": 5000, "output_price_per_million": 0}',
    )
    expect(made.status).toBe(200)
    expect(made.body).toMatchObject({
      kind: 'search',
      model_key: 'exa-search',
      input_price_per_million: 5000,
      output_price_per_million: 0,
      cache_read_price_per_million: null,
      cache_write_price_per_million: null,
      effective_at: expect.stringMatching(/Z$/),
    })
    expect((await price('exa-search', 'search')).body).toEqual(made.body)
    expect((await price('exa-search')).status).toBe(404)
  })

  test('P-03 is of kind model unless it says otherwise, and may have cache rates and a beginning', async () => {
    const { body } = await setPrice({
      model_key: 'anthropic:claude',
      input_price_per_million: 3,
      output_price_per_million: '15',
      cache_read_price_per_million: 0.3,
      cache_write_price_per_million: 3.75,
      effective_at: '2026-01-01T02:00:00+02:00',
    })
    expect(body).toMatchObject({
      kind: 'model',
      output_price_per_million: 15,
      cache_read_price_per_million: 0.3,
      cache_write_price_per_million: 3.75,
      effective_at: '2026-01-01T00:00:00.000Z',
    })
  })

  test('P-03 has versions: one that begins later is listed and not yet in force', async () => {
    const at = (effective_at: string, input: number) =>
      setPrice({
        model_key: 'openai:versions',
        input_price_per_million: input,
        output_price_per_million: 0,
        effective_at,
      })
    await at('2026-01-01T00:00:00Z', 1)
    await at('2026-02-01T00:00:00Z', 2)
    await at('2126-01-01T00:00:00Z', 3)
    expect((await price('openai:versions')).body.input_price_per_million).toBe(2)
    const list = (query: string) =>
      rig.send<{ data: Row[]; count: number }>('GET', `/api/v1/pricing?model_key=openai:versions${query}`, {
        key: rig.firstKey,
      })
    const all = await list('')
    expect(all.body.data.map((row) => row.input_price_per_million)).toEqual([3, 2, 1])
    expect(all.body.count).toBe(3)
    expect((await list('&current=true')).body.data.map((row) => row.input_price_per_million)).toEqual([2])
    expect((await list('&skip=1&limit=1')).body.data.map((row) => row.input_price_per_million)).toEqual([2])
  })

  test('P-03 is for the operator to set and remove, and for every key to read', async () => {
    const body = { model_key: 'openai:mine', input_price_per_million: 0, output_price_per_million: 0 }
    for (const [method, path] of [
      ['POST', '/api/v1/pricing'],
      ['DELETE', '/api/v1/pricing/openai:mine'],
    ] as const) {
      expect(await rig.send(method, path, { key: rig.firstKey, body })).toMatchObject({
        status: 403,
        body: { detail: 'This endpoint requires the master key' },
      })
      expect((await rig.send(method, path, { body })).status).toBe(401)
    }
    expect((await price('openai:mine')).status).toBe(404)
  })

  test('P-04 a tool’s row and a model’s row of the same name are two', async () => {
    const named = (kind: string, input: number) =>
      setPrice({ kind, model_key: 'deepseek', input_price_per_million: input, output_price_per_million: 0 })
    await named('search', 1)
    await named('fetch', 2)
    await named('model', 3)
    const rates = await Promise.all(['search', 'fetch', 'model'].map((kind) => price('deepseek', kind)))
    expect(rates.map(({ body }) => body.input_price_per_million)).toEqual([1, 2, 3])
    const removed = await rig.send('DELETE', '/api/v1/pricing/deepseek?kind=search', { key: rig.masterKey })
    expect(removed.status).toBe(204)
    expect((await price('deepseek', 'search')).status).toBe(404)
    expect((await price('deepseek', 'fetch')).status).toBe(200)
    expect((await rig.send('DELETE', '/api/v1/pricing/deepseek?kind=search', { key: rig.masterKey })).status).toBe(404)
  })

  test('a name with slashes is a name, spelled out or escaped', async () => {
    await setPrice({ model_key: 'hf:meta-llama/Llama-3', input_price_per_million: 1, output_price_per_million: 1 })
    expect((await price('hf:meta-llama/Llama-3')).status).toBe(200)
    expect((await price('hf:meta-llama%2FLlama-3')).status).toBe(200)
  })
})

describe('P-11 every digit counts', () => {
  test.each([
    ['0.0000015', '0.0000015'],
    ['1.5e-6', '0.0000015'],
    ['1.5E-06', '0.0000015'],
    ['15E-7', '0.0000015'],
    ['1e3', '1000'],
    ['1.25e1', '12.5'],
    ['"0.0000015"', '0.0000015'],
    ['0.1', '0.1'],
    ['123456789012.12345678', '123456789012.12345678'],
    ['999999999999.99999999', '999999999999.99999999'],
    ['0', '0'],
    ['0.0', '0'],
    ['10000', '10000'],
    ['"007.50"', '7.5'],
    ['"000"', '0'],
  ])('P-11 %s is kept and shown as %s, a JSON number', async (written, shown) => {
    const body = `{"model_key":"openai:exact","input_price_per_million":${written},"output_price_per_million":0}`
    const made = await setPrice(body)
    expect(made.status).toBe(200)
    const text = /"input_price_per_million":([^,]+),/
    expect(text.exec(made.text)?.[1]).toBe(shown)
    expect(text.exec((await price('openai:exact')).text)?.[1]).toBe(shown)
  })

  test.each([
    '-1',
    '-0.0000001',
    'true',
    'null',
    '[]',
    '{}',
    '""',
    '"1,5"',
    '"0x10"',
    '"abc"',
    '" 1"',
    '"Infinity"',
    '1e300',
    '1e-300',
    '1234567890123456',
    '"1e5000"',
  ])('P-03 %s is no price', async (written) => {
    const body = `{"model_key":"openai:bad","input_price_per_million":${written},"output_price_per_million":0}`
    const { status, body: told } = await setPrice(body)
    expect(status).toBe(422)
    expect(told.detail).toEqual([
      { loc: ['body', 'input_price_per_million'], msg: expect.any(String), type: expect.any(String) },
    ])
  })

  test.each([
    [{ input_price_per_million: 1, output_price_per_million: 1 }, 'no key'],
    [{ model_key: 'a:b', output_price_per_million: 1 }, 'no input price'],
    [{ model_key: 'a:b', input_price_per_million: 1 }, 'no output price'],
    [{ model_key: 'a:b', input_price_per_million: 1, output_price_per_million: 1, kind: 'sandbox' }, 'an unknown kind'],
    [
      { model_key: 'a:b', input_price_per_million: 1, output_price_per_million: 1, currency: 'EUR' },
      'an unknown member',
    ],
    [
      { model_key: 'a:b', input_price_per_million: 1, output_price_per_million: 1, effective_at: 0 },
      'a time that is none',
    ],
    [{ model_key: 'a\0b', input_price_per_million: 1, output_price_per_million: 1 }, 'a NUL'],
  ])('P-03 %j is refused: %s', async (body, _why) => {
    expect((await setPrice(body)).status).toBe(422)
  })
})

interface UsageRow {
  id: string
  key_id: string
  workspace_id: string
  cost: number
  billing_meters: { tools: Record<string, unknown> }
  pricing_breakdown: unknown[]
  [member: string]: unknown
}
const usage = (query = '', key = rig.masterKey) =>
  rig.send<{ data: UsageRow[]; count: number }>('GET', `/api/v1/usage${query}`, { key })

/** A request that ran one search on an instance and was settled, as the gateway records one. */
async function runSearch(request: string, workspace = 'default', key = 'k1') {
  const tenancy = { organization: 'default', workspace, user: 'ann', key, request, attempt: 0 }
  const deadline = Date.now() + 5_000
  const priceKeys = [{ kind: 'search' as const, key: 'main' }]
  const { hold } = await rig.bus.call(
    billingReserve,
    {
      tenancy,
      endpoint: '/api/v1/chat/completions',
      model: 'gpt',
      provider: 'openai',
      modelKeys: [{ kind: 'model', key: 'openai:gpt' }],
      tools: [{ tool: 'web_search', keys: priceKeys }],
      estimate: { inputTokens: 10, outputTokens: 10 },
      budgetExempt: false,
      endsAt: Date.now() + 60_000,
    },
    { deadline },
  )
  const at = new Date().toISOString()
  const line = { id: `${request}-1`, tool: 'web_search', label: 'exa:main', priceKeys, outcome: 'ok' as const, at }
  await rig.bus.record(usageTool, line.id, { hold, tenancy, line }, { deadline })
  await rig.bus.record(
    usageSettled,
    request,
    {
      hold,
      tenancy,
      at,
      endpoint: '/api/v1/chat/completions',
      model: 'gpt',
      provider: 'openai',
      priceKeys: [{ kind: 'model', key: 'openai:gpt' }],
      tokens: { input: 1_000, output: 100 },
      lines: [line],
      status: 'success',
      error: null,
      durationMs: 12.5,
    },
    { deadline },
  )
}

describe('P-02 A-21 what a request cost', () => {
  beforeAll(async () => {
    // 10000 dollars per million calls is one cent a call
    await setPrice({ kind: 'search', model_key: 'main', input_price_per_million: 10000, output_price_per_million: 0 })
    await setPrice('{"model_key":"openai:gpt","input_price_per_million":0.15,"output_price_per_million":0.6}')
    await runSearch('request-1')
    await runSearch('request-2', 'elsewhere', 'k2')
    await vi.waitFor(async () => expect((await usage()).body.count).toBe(2), { timeout: 10_000 })
  })

  test('PE-33 is grouped by tool for whoever may see it', async () => {
    const all = await usage('?group_by=tool')
    expect([all.status, all.body]).toEqual([
      200,
      {
        data: [{ tool: 'web_search', requests: 2, billed: 2, errors: 0, result_tokens: null, cost: 0.02 }],
        count: 1,
      },
    ])
    const own = await usage('?group_by=tool', rig.firstKey)
    expect(own.body.data).toMatchObject([{ tool: 'web_search', billed: 1, cost: 0.01 }])
    expect((await usage('?group_by=tool&workspace_id=elsewhere', rig.firstKey)).status).toBe(404)
    expect((await usage('?group_by=model')).status).toBe(422)
  })

  test('P-02 A-21 a price of 10000 makes a call cost 0.01, beside the model’s tokens, each an exact number', async () => {
    const { body, text } = await usage('?request_id=request-1')
    expect(body.count).toBe(1)
    expect(body.data[0]).toMatchObject({
      organization_id: 'default',
      workspace_id: 'default',
      key_id: 'k1',
      user_id: 'ann',
      model: 'gpt',
      provider: 'openai',
      endpoint: '/api/v1/chat/completions',
      prompt_tokens: 1_000,
      completion_tokens: 100,
      total_tokens: 1_100,
      // 1000 × 0.15 + 100 × 0.60 per million, and one cent
      cost: 0.01021,
      status: 'success',
      error: null,
      settled_by: 'gateway',
      duration_ms: 12.5,
      counts_toward_budget: true,
    })
    expect(body.data[0]?.pricing_breakdown).toContainEqual({
      meter: 'web_search_calls',
      label: 'exa:main',
      units: 1,
      unit_rate: 0.01,
      cost: 0.01,
    })
    expect(body.data[0]?.billing_meters.tools.web_search).toEqual({ billed: 1, errors: 0, unit_rate: 0.01 })
    expect(text).not.toMatch(/"(cost|unit_rate)":"/)
  })

  test('A-21 the operator sees every workspace, a key its own only', async () => {
    expect((await usage()).body.data.map((row) => row.workspace_id).toSorted()).toEqual(['default', 'elsewhere'])
    expect((await usage('?workspace_id=elsewhere')).body.data.map((row) => row.key_id)).toEqual(['k2'])
    const own = await usage('', rig.firstKey)
    expect(own.body.data.map((row) => row.workspace_id)).toEqual(['default'])
    expect((await usage('?key_id=k2', rig.firstKey)).body).toEqual({ data: [], count: 0 })
    expect((await usage('?workspace_id=default', rig.firstKey)).body.count).toBe(1)
    expect((await usage('?workspace_id=elsewhere', rig.firstKey)).status).toBe(404)
  })

  test.each([
    ['?user_id=ann', 2],
    ['?user_id=bob', 0],
    ['?key_id=k1', 1],
    ['?limit=1', 2],
    ['?start_date=2126-01-01T00:00:00Z', 0],
    ['?end_date=2020-01-01T00:00:00%2B02:00', 0],
    ['?start_date=2020-01-01T00:00:00Z&end_date=2126-01-01T00:00:00Z', 2],
  ])('A-21 %s finds %i', async (query, count) => {
    expect((await usage(query)).body.count).toBe(count)
  })

  test('a filter no database can hold is a mistake of the caller', async () => {
    for (const query of ['?user_id=%00', '?request_id=a%00b', '?workspace_id=%00']) {
      const { status } = await usage(query)
      expect([400, 422]).toContain(status)
    }
    expect((await price('a%00b')).status).toBe(422)
  })

  test.each([
    '?limit=0',
    '?limit=1001',
    '?limit=x',
    '?skip=-1',
    '?start_date=yesterday',
    '?start_date=0000-01-01T00:00:00Z',
    '?end_date=9999-12-31T23:59:59-01:00',
    '?colour=red',
    '?limit=1&limit=2',
  ])('A-21 %s is a 422', async (query) => {
    expect((await usage(query)).status).toBe(422)
  })
})
