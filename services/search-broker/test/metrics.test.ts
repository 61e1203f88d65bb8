import { startTelemetry } from '@tollgate/telemetry'
import { fakeSearxng } from '@tollgate/testing'
import { expect, onTestFinished, test } from 'vitest'
import { kept } from './engines.ts'
import { openFetcher } from './fetchers.ts'
import { never, openWorld, recordingLog } from './world.ts'

test('counts searches by provider and outcome, and pages by outcome', async () => {
  const telemetry = startTelemetry({ service: 'search-broker', version: '0', log: recordingLog().log })
  onTestFinished(() => telemetry.shutdown())
  const fake = await kept(fakeSearxng())
  fake.finds([
    { url: 'https://a.test/', title: 'A' },
    { url: 'https://b.test/', title: 'B' },
  ])
  const { query } = await openWorld({
    settings: { searchTools: { searxng: { apiBase: fake.url } } },
    page: ({ url }) =>
      url.includes('a.test') ? {} : { status: 'failed', failure: 'http_status', label: 'builtin:builtin_fetch' },
  })
  await query({})
  fake.suffers({ kind: 'status', status: 429 })
  await query({})
  const text = await telemetry.metricsText()
  expect(text).toMatch(/search_seconds_count\{provider="searxng",outcome="ok"\} 1/)
  expect(text).toMatch(/search_seconds_count\{provider="searxng",outcome="rate_limited"\} 1/)
  expect(text).toMatch(/search_pages_total\{outcome="read"\} 1/)
  expect(text).toMatch(/search_pages_total\{outcome="http_status"\} 1/)
})

test('counts fetches of an instance by provider and outcome, and pages of a search by what came of them', async () => {
  const telemetry = startTelemetry({ service: 'search-broker', version: '0', log: recordingLog().log })
  onTestFinished(() => telemetry.shutdown())
  const [{ tool, fake: pages }, fake] = await Promise.all([openFetcher('deepseek'), kept(fakeSearxng())])
  pages.finds([{ url: 'https://a.test/', text: 'A' }])
  fake.finds(['https://a.test/', 'http://10.0.0.1/', 'https://b.test/'].map((url) => ({ url, title: 'T' })))
  const { fetch, query } = await openWorld({
    settings: {
      searchTools: { searxng: { apiBase: fake.url } },
      fetchTools: { main: tool },
      webFetchDefaultTool: 'main',
    },
  })
  await fetch({ url: 'https://a.test/' })
  await query({})
  const text = await telemetry.metricsText()
  expect(text).toMatch(/fetch_instance_seconds_count\{provider="deepseek",outcome="ok"\} 2/)
  expect(text).toMatch(/fetch_instance_seconds_count\{provider="deepseek",outcome="refused"\} 1/)
  expect(text).toMatch(/fetch_instance_seconds_count\{provider="deepseek",outcome="http_error"\} 1/)
  for (const outcome of ['read', 'url_disallowed', 'http_error'])
    expect(text).toMatch(new RegExp(`search_pages_total\\{outcome="${outcome}"\\} 1`))
})

test('counts a search whose caller left while its pages were read as cancelled, not as a success', async () => {
  const telemetry = startTelemetry({ service: 'search-broker', version: '0', log: recordingLog().log })
  onTestFinished(() => telemetry.shutdown())
  const fake = await kept(fakeSearxng())
  fake.finds([{ url: 'https://a.test/', title: 'A' }])
  const { query, fetches } = await openWorld({
    settings: { searchTools: { searxng: { apiBase: fake.url } } },
    page: (_call, signal) => never(signal),
  })
  const gone = new AbortController()
  const asking = query({}, { signal: gone.signal })
  await expect.poll(() => fetches.inFlight).toBe(1)
  gone.abort()
  await expect(asking).rejects.toMatchObject({ failure: 'cancelled' })
  await expect
    .poll(() => telemetry.metricsText())
    .toMatch(/search_seconds_count\{provider="searxng",outcome="cancelled"\} 1/)
})
