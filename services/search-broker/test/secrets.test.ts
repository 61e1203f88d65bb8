import { startTelemetry, type Telemetry } from '@tollgate/telemetry'
import { type OtlpReceiver, startOtlp } from '@tollgate/testing'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { providers } from '../src/providers/catalogue.ts'
import { CANARY_KEY, engineIds, openEngine } from './engines.ts'
import { fetcherIds, openFetcher } from './fetchers.ts'
import { openWorld, recordingLog } from './world.ts'

const canaryQuery = 'canary-query-77f2'
const canaryBody = 'canary-upstream-body-19ab'

let otlp: OtlpReceiver
let telemetry: Telemetry

beforeAll(async () => {
  otlp = await startOtlp()
  telemetry = startTelemetry({
    service: 'search-broker',
    version: '0',
    log: recordingLog().log,
    otlpEndpoint: otlp.url,
  })
})
afterAll(async () => {
  await telemetry.shutdown()
  await otlp.stop()
})

test('S-37 SP-15 BR-122 no key, query, address or word of a provider in any reply, log line, span or metric', async () => {
  const told: unknown[] = []
  const addresses: string[] = []
  for (const id of engineIds) {
    const engine = await openEngine(id)
    addresses.push(new URL(engine.tool.apiBase ?? '').host)
    engine.finds(['https://a.test/'])
    const tool = { ...engine.tool, timeoutMs: 500 }
    const settings = {
      searchTools: { main: tool },
      legacy: id === 'brave' || id === 'tavily' ? { provider: id, ...engine.tool } : {},
    }
    const world = await openWorld({ settings })
    const search = { query: canaryQuery, options: { bogus: canaryQuery } }
    told.push(await world.describe(), await world.query(search), await world.query({ ...search, instance: 'main' }))
    for (const fault of [
      { kind: 'status', status: 500, body: `{"error":"${canaryBody} ${CANARY_KEY}"}` },
      { kind: 'status', status: 401, body: `wrong key ${CANARY_KEY.slice(0, 12)}: ${canaryBody}` },
      { kind: 'body', body: `<html>${canaryBody}` },
      { kind: 'redirect', to: `https://elsewhere.test/?key=${CANARY_KEY}` },
      { kind: 'reset' },
      { kind: 'hang' },
    ] as const) {
      engine.fake.suffers(fault)
      told.push(await world.query({ ...search, instance: 'main' }))
    }
    told.push(
      await world.query({ ...search, query: ` ${canaryQuery} `, instance: canaryQuery.slice(0, 3) }).catch(String),
    )
    told.push(world.log, world.busLog)
    expect(engine.fake.requests.length).toBeGreaterThan(7)
  }
  for (const id of fetcherIds) {
    const { tool, fake } = await openFetcher(id)
    addresses.push(new URL(tool.apiBase ?? '').host)
    const url = `https://a.test/${canaryQuery}`
    fake.finds([{ url, text: 'a page' }])
    const world = await openWorld({ settings: { fetchTools: { main: { ...tool, timeoutMs: 500 } } } })
    told.push(await world.describe(), await world.fetch({ url }), await world.fetch({ url: `${url}-missing` }))
    told.push(await world.fetch({ url: `http://localhost/${canaryQuery}` }))
    for (const fault of [
      { kind: 'status', status: 500, body: `{"error":"${canaryBody} ${CANARY_KEY}"}` },
      { kind: 'body', body: `<html>${canaryBody}` },
      { kind: 'redirect', to: `https://elsewhere.test/?key=${CANARY_KEY}` },
      { kind: 'hang' },
    ] as const) {
      fake.suffers(fault)
      told.push(await world.fetch({ url }))
    }
    told.push(world.log, world.busLog)
    expect(fake.requests).toHaveLength(6)
  }
  await telemetry.shutdown()
  const spans = otlp.spans.filter(({ scope }) => scope === '@tollgate/search-broker')
  expect(spans.map(({ name }) => name)).toEqual(
    expect.arrayContaining([...engineIds.map((id) => `search ${id}`), ...fetcherIds.map((id) => `fetch ${id}`)]),
  )
  expect(spans.map(({ attributes }) => attributes['error.type'])).toEqual(
    expect.arrayContaining(['timeout', 'http_error']),
  )

  const everything = JSON.stringify([told, otlp.spans.map(({ text }) => text)])
  const forbidden = [CANARY_KEY, CANARY_KEY.slice(0, 12), canaryQuery, canaryBody, 'elsewhere.test', ...addresses]
  expect(forbidden.filter((secret) => everything.includes(secret))).toEqual([])
})

test('BR-122 key and query are where they belong: in the request to the provider, and in no other header', async () => {
  for (const id of engineIds) {
    const engine = await openEngine(id)
    const { query } = await openWorld({ settings: { searchTools: { main: engine.tool } } })
    await query({ query: canaryQuery })
    const [request] = engine.fake.requests
    expect(JSON.stringify([request?.query, request?.body])).toContain(canaryQuery)
    const keyInUrl = providers.find((provider) => provider.id === id)?.keyInUrl
    expect(JSON.stringify([request?.path, request?.body])).not.toContain(CANARY_KEY)
    expect(JSON.stringify(request?.query).includes(CANARY_KEY)).toBe(keyInUrl)
    expect(request?.headers).not.toHaveProperty('traceparent')
  }
})
