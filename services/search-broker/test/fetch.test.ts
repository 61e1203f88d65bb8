import { openTrustedClient } from '@tollgate/http'
import { describe, expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { fetchBy } from '../src/fetch/fetch.ts'
import type { FetchInstance } from '../src/fetch/instances.ts'
import type { FetchProvider } from '../src/fetch/provider.ts'
import { openSlots } from '../src/slots.ts'
import { CANARY_KEY, last } from './engines.ts'
import { closedPort, faults, secret } from './faults.ts'
import { fetcherIds, openExaContents, openFetcher } from './fetchers.ts'
import { openWorld, times } from './world.ts'

const url = 'https://a.test/page?x=1'
const page = { url, text: '# Page\n\nIts text.', title: 'The page' }

describe.each(fetcherIds)('%s', (id) => {
  test('F-41 F-43 F-45 hands over the text, a title, no type and no other address than the asked one', async () => {
    const { tool, fake } = await openFetcher(id)
    fake.finds([page])
    const { fetch, log } = await openWorld({ settings: { fetchTools: { main: tool } } })
    expect(await fetch({ url })).toEqual({
      status: 'ok',
      label: `${id}:main`,
      title: 'The page',
      text: '# Page\n\nIts text.',
      ...(id === 'exa' && { reportedCost: '0.001' }),
    })
    expect(fake.refusals).toEqual([])
    expect(log).toEqual([])
  })

  test('F-45 an empty page that is reported as such is a page', async () => {
    const { tool, fake } = await openFetcher(id)
    fake.finds([{ url, text: '' }])
    const { fetch } = await openWorld({ settings: { fetchTools: { main: tool } } })
    expect(await fetch({ url })).toMatchObject({ status: 'ok', text: '' })
  })

  // the size cap is one for all, so the largest body is sent by one of them
  test.each(faults.filter(([name]) => id === 'exa' || name !== 'a 20 MiB body'))(
    'FP-09 SP-03 SP-04 F-42 %s',
    async (_name, fault, expected) => {
      const { tool, fake } = await openFetcher(id)
      fake.finds([page])
      fake.suffers(fault)
      const timeoutMs = expected.tag === 'timeout' ? 700 : 15_000
      const { fetch, log } = await openWorld({ settings: { fetchTools: { main: { ...tool, timeoutMs } } } })
      const reply = await fetch({ url })
      expect(reply).toEqual({ status: 'failed', label: `${id}:main`, ...expected })
      expect(fake.requests).toHaveLength(1)
      expect(JSON.stringify([reply, log])).not.toMatch(`${secret}|${CANARY_KEY}|127.0.0.1|a.test`)
      expect(log).toHaveLength(1)
    },
  )

  test('F-42 nobody at the address is a network failure', async () => {
    const { tool } = await openFetcher(id)
    const apiBase = `http://127.0.0.1:${await closedPort()}`
    const { fetch } = await openWorld({ settings: { fetchTools: { main: { ...tool, apiBase } } } })
    expect(await fetch({ url })).toEqual({ status: 'failed', label: `${id}:main`, tag: 'network' })
  })

  test('a page it does not know is a failure with the status, and its words stay here', async () => {
    const { tool, fake } = await openFetcher(id)
    const { fetch } = await openWorld({ settings: { fetchTools: { main: tool } } })
    const httpStatus = { deepseek: 404, exa: 404, tabstack: 422 }[id]
    expect(await fetch({ url })).toEqual({ status: 'failed', label: `${id}:main`, tag: 'http_error', httpStatus })
    expect(fake.requests).toHaveLength(1)
  })

  test('SP-03 a wrong key is told as such', async () => {
    const { tool } = await openFetcher(id)
    const { fetch } = await openWorld({ settings: { fetchTools: { main: { ...tool, apiKey: 'other' } } } })
    expect(await fetch({ url })).toMatchObject({ status: 'failed', tag: 'authentication', httpStatus: 401 })
  })

  test('F-40 an address that may not be fetched does not reach it', async () => {
    const { tool, fake } = await openFetcher(id)
    const { fetch } = await openWorld({ settings: { fetchTools: { main: tool } } })
    expect(await fetch({ url: 'http://localhost/' })).toEqual({
      status: 'refused',
      label: `${id}:main`,
      why: 'url_disallowed',
    })
    expect(fake.requests).toEqual([])
  })

  test('a text of any length and kind is cut to whole characters and cleaned', async () => {
    const { tool, fake } = await openFetcher(id)
    fake.finds([{ url, text: `a\u0000b\r\nc\ud83d${'😀'.repeat(100)}` }])
    const { fetch } = await openWorld({ settings: { fetchTools: { main: tool } } })
    const reply = await fetch({ url, maxCharacters: 20 })
    if (reply.status !== 'ok') throw new Error(reply.status)
    expect(Array.from(reply.text).length).toBeLessThanOrEqual(20)
    expect(reply.text.isWellFormed()).toBe(true)
    expect(reply.text).toMatch(/^a b\nc\ufffd😀+/u)
  })
})

describe('what a provider is asked', () => {
  test('FP-05 FP-08 Exa: one URL and no more text than is wanted, its options in Exa’s words', async () => {
    const { tool, fake } = await openExaContents()
    fake.finds([{ url, text: 'x'.repeat(5_000) }])
    const main = { ...tool, options: { max_age_hours: 0, bogus: 1 } }
    const { fetch, log } = await openWorld({ settings: { fetchTools: { main } } })
    expect(await fetch({ url, maxCharacters: 1_500 })).toMatchObject({ text: 'x'.repeat(1_500) })
    expect(last(fake)).toMatchObject({
      path: '/contents',
      headers: { 'x-api-key': CANARY_KEY },
      body: { urls: [url], text: { maxCharacters: 1_500 }, maxAgeHours: 0 },
    })
    expect(log).toEqual([expect.stringContaining('"option":"bogus"')])
  })

  test('FP-03 DeepSeek: the URL, which is all it takes', async () => {
    const { tool, fake } = await openFetcher('deepseek')
    fake.finds([page])
    const { fetch } = await openWorld({ settings: { fetchTools: { main: tool } } })
    expect(await fetch({ url })).not.toHaveProperty('reportedCost')
    expect(last(fake)).toMatchObject({
      path: '/v1/tools/fetch',
      headers: { authorization: `Bearer ${CANARY_KEY}` },
      body: { url },
    })
  })

  test('FP-06 Tabstack: the page’s facts apart from its text, and the configured effort', async () => {
    const { tool, fake } = await openFetcher('tabstack')
    fake.finds([page])
    const main = { ...tool, options: { effort: 'MAX', nocache: true } }
    const { fetch } = await openWorld({ settings: { fetchTools: { main } } })
    expect(await fetch({ url })).not.toHaveProperty('reportedCost')
    expect(last(fake)).toMatchObject({
      path: '/v1/extract/markdown',
      headers: { authorization: `Bearer ${CANARY_KEY}` },
      body: { url, metadata: true, effort: 'max', nocache: true },
    })
  })

  test('with the address as it was judged, so that no second parser can see another host in it', async () => {
    const { tool, fake } = await openFetcher('deepseek')
    fake.finds([{ url: 'https://a.test/%20b', text: 'found' }])
    const { fetch } = await openWorld({ settings: { fetchTools: { main: tool } } })
    expect(await fetch({ url: '  HTTPS://A.test:443/ b\n' })).toMatchObject({ status: 'ok', text: 'found' })
  })
})

describe('what Exa says of a page', () => {
  test.each<[string, { tag: string; httpStatusCode?: number | null }, object]>([
    ['not found', { tag: 'CRAWL_NOT_FOUND', httpStatusCode: 404 }, { tag: 'http_error', httpStatus: 404 }],
    ['any status', { tag: 'CRAWL_HTTP_410', httpStatusCode: 410 }, { tag: 'http_error', httpStatus: 410 }],
    ['closed', { tag: 'SOURCE_NOT_AVAILABLE', httpStatusCode: 403 }, { tag: 'http_error', httpStatus: 403 }],
    ['too late', { tag: 'CRAWL_TIMEOUT', httpStatusCode: 504 }, { tag: 'timeout' }],
    ['too late to be live', { tag: 'CRAWL_LIVECRAWL_TIMEOUT', httpStatusCode: 408 }, { tag: 'timeout' }],
    ['no status', { tag: 'UNSUPPORTED_URL' }, { tag: 'http_error' }],
    ['null for a status', { tag: 'CRAWL_UNKNOWN_ERROR', httpStatusCode: null }, { tag: 'http_error' }],
    ['what is no status', { tag: 'CRAWL_UNKNOWN_ERROR', httpStatusCode: 7 }, { tag: 'http_error' }],
    ['a tag of tomorrow', { tag: secret, httpStatusCode: 500 }, { tag: 'http_error', httpStatus: 500 }],
  ])('F-42 %s', async (_name, error, expected) => {
    const { tool, fake } = await openExaContents()
    fake.finds([page])
    fake.says(url, error)
    const { fetch } = await openWorld({ settings: { fetchTools: { main: tool } } })
    expect(await fetch({ url })).toEqual({ status: 'failed', label: 'exa:main', ...expected })
  })

  test.each([
    ['0.0012', 0.0012, '0.0012'],
    ['nothing to pay', 0, '0'],
    ['a very small cost', 1e-7, '0.0000001'],
    ['no cost', undefined, undefined],
  ])('FP-05 its cost: %s', async (_name, dollars, expected) => {
    const { tool, fake } = await openExaContents()
    fake.finds([page])
    fake.costs(dollars)
    const { fetch } = await openWorld({ settings: { fetchTools: { main: tool } } })
    const reply = await fetch({ url })
    expect(reply.status === 'ok' && reply.reportedCost).toBe(expected)
  })

  test.each([
    ['neither a page nor a word about it', '{"results":[],"statuses":[]}'],
    ['a word that is neither success nor error', '{"results":[],"statuses":[{"id":"x","status":"maybe"}]}'],
  ])('%s is no answer', async (_name, body) => {
    const { tool, fake } = await openExaContents()
    fake.suffers({ kind: 'body', body })
    const { fetch } = await openWorld({ settings: { fetchTools: { main: tool } } })
    expect(await fetch({ url })).toMatchObject({ tag: 'invalid_response', httpStatus: 200 })
  })
})

describe('F-40 the asked address', () => {
  test.each([
    ['http://localhost/', 'url_disallowed'],
    ['http://LOCALHOST.:8080/', 'url_disallowed'],
    ['http://app.localhost/', 'url_disallowed'],
    ['http://0x7f.1/', 'url_disallowed'],
    ['http://2130706433/', 'url_disallowed'],
    ['http://0177.0.0.1/', 'url_disallowed'],
    ['http://１２７.0.0.1/', 'url_disallowed'],
    ['http://[::ffff:10.0.0.1]/', 'url_disallowed'],
    ['http://[::1]/', 'url_disallowed'],
    ['http://[64:ff9b::a00:1]/', 'url_disallowed'],
    ['http://169.254.169.254/latest/', 'url_disallowed'],
    ['http://192.168.0.1/', 'url_disallowed'],
    ['ftp://a.test/', 'url_disallowed'],
    ['https://u:p@a.test/', 'url_disallowed'],
    ['not a URL', 'url_disallowed'],
    [`https://a.test/${'x'.repeat(8_192)}`, 'url_disallowed'],
    ['https://bad.test/', 'domain_disallowed'],
    ['https://www.bad.test./', 'domain_disallowed'],
    ['https://elsewhere.test/', 'domain_disallowed'],
  ])('%s is refused and nobody is asked', async (asked, why) => {
    const { tool, fake } = await openFetcher('deepseek')
    const { fetch } = await openWorld({ settings: { fetchTools: { main: tool } } })
    const policy = {
      allowedDomains: ['a.test', 'bad.test', '8.8.8.8', 'localhost', '127.0.0.1'],
      blockedDomains: ['bad.test'],
    }
    expect(await fetch({ url: asked, policy })).toEqual({ status: 'refused', label: 'deepseek:main', why })
    expect(fake.requests).toEqual([])
  })

  test.each(['https://a.test/', 'http://8.8.8.8/', 'http://a.test:8080/x', 'https://127.0.0.1.a.test/'])(
    '%s is the provider’s to resolve',
    async (asked) => {
      const { tool, fake } = await openFetcher('deepseek')
      fake.finds([{ url: asked, text: 'found' }])
      const { fetch } = await openWorld({ settings: { fetchTools: { main: tool } } })
      expect(await fetch({ url: asked })).toMatchObject({ status: 'ok', text: 'found' })
    },
  )
})

describe('F-40 where a provider says that it found the page', () => {
  /** None of the adapters reports it today (F-41), so one that does stands here, in front of a real server. */
  const reporting = (reportsFinalUrl: boolean): FetchProvider => ({
    id: 'reporting',
    docUrl: 'https://reporting.test/docs',
    requiresApiKey: false,
    defaultApiBase: 'https://reporting.test',
    reportsFinalUrl,
    options: [],
    request: ({ url: wanted }, { apiBase, apiKey }) => ({
      method: 'POST',
      url: new URL(`${apiBase}/v1/tools/fetch`),
      headers: { authorization: `Bearer ${apiKey}` },
      body: { url: wanted },
    }),
    answer: z.object({ title: z.string(), content: z.string() }).transform(({ title, content }) => ({
      status: 'ok',
      text: content,
      finalUrl: title,
      contentType: 'text/html\nX: y',
      cost: '0.002',
    })),
  })

  async function found(finalUrl: string, reportsFinalUrl = true) {
    const { tool, fake } = await openFetcher('deepseek')
    fake.finds([{ url, text: 'moved', title: finalUrl }])
    const client = openTrustedClient()
    onTestFinished(() => client.close())
    const instance: FetchInstance = {
      name: 'main',
      label: 'reporting:main',
      provider: reporting(reportsFinalUrl),
      apiKey: tool.apiKey,
      apiBase: tool.apiBase ?? '',
      timeoutMs: 5_000,
      options: {},
      slots: openSlots({ places: 1, waiting: 0 }),
    }
    const policy = { allowedDomains: null, blockedDomains: ['bad.test'] }
    const limits = { deadline: Date.now() + 5_000, signal: new AbortController().signal }
    return fetchBy(instance, { url, policy, maxCharacters: 100 }, limits, client)
  }

  test.each([
    ['https://www.bad.test/', 'domain_disallowed'],
    ['http://localhost/', 'redirect_disallowed'],
    ['http://0x7f.1/', 'redirect_disallowed'],
    ['about:blank', 'redirect_disallowed'],
  ])('%s is refused, and what it cost is told', async (finalUrl, why) => {
    expect(await found(finalUrl)).toEqual({ status: 'refused', label: 'reporting:main', why, reportedCost: '0.002' })
  })

  test('another permitted address is handed on, with the type in one line', async () => {
    expect(await found('https://b.test/p')).toMatchObject({
      status: 'ok',
      finalUrl: 'https://b.test/p',
      contentType: 'text/html X: y',
    })
  })

  test('F-41 nothing is made of it where the provider is not known to report it', async () => {
    const reply = await found('https://www.bad.test/', false)
    expect(reply).toMatchObject({ status: 'ok', text: 'moved' })
    expect(reply).not.toHaveProperty('finalUrl')
  })
})

describe('bounds', () => {
  test('F-44 FP-06 the instance’s own timeout bounds a call, a longer one than any default too', async () => {
    const { tool, fake } = await openFetcher('tabstack')
    fake.finds([page])
    fake.suffers({ kind: 'hang' })
    const quick = await openWorld({ settings: { fetchTools: { main: { ...tool, timeoutMs: 300 } } } })
    expect(await quick.fetch({ url })).toMatchObject({ tag: 'timeout' })
    await expect.poll(() => fake.abandoned).toBe(1)
    fake.suffers({ kind: 'slow', ms: 400 })
    const patient = await openWorld({ settings: { fetchTools: { main: { ...tool, timeoutMs: 70_000 } } } })
    expect(await patient.fetch({ url }, { timeoutMs: 80_000 })).toMatchObject({ status: 'ok' })
  })

  test('F-44 a late provider is answered for before the caller’s own deadline', async () => {
    const { tool, fake } = await openFetcher('tabstack')
    fake.suffers({ kind: 'hang' })
    fake.finds([page])
    const { fetch } = await openWorld({ settings: { fetchTools: { main: tool } } })
    expect(await fetch({ url }, { timeoutMs: 1_000 })).toMatchObject({ status: 'failed', tag: 'timeout' })
    await expect.poll(() => fake.abandoned).toBe(1)
  })

  test('an instance is asked at most so many at once; some more wait, the rest are rate_limited', async () => {
    const { tool, fake } = await openFetcher('deepseek')
    fake.finds([page])
    fake.alwaysSuffers({ kind: 'slow', ms: 200 })
    const bounds = { fetches: 2, waitingFetches: 3 }
    const { fetch } = await openWorld({ settings: { fetchTools: { main: tool }, bounds } })
    const replies = await Promise.all(times(8, () => fetch({ url })))
    expect(replies.filter(({ status }) => status === 'ok')).toHaveLength(5)
    expect(replies.filter((reply) => reply.status === 'failed' && reply.tag === 'rate_limited')).toHaveLength(3)
    expect(fake.mostInFlight).toBe(2)
  })

  test('a caller who leaves stops the request to the provider', async () => {
    const { tool, fake } = await openFetcher('exa')
    fake.finds([page])
    fake.suffers({ kind: 'hang' })
    const { fetch } = await openWorld({ settings: { fetchTools: { main: tool } } })
    const gone = new AbortController()
    const asking = fetch({ url }, { signal: gone.signal })
    await expect.poll(() => fake.inFlight).toBe(1)
    gone.abort()
    await expect(asking).rejects.toMatchObject({ failure: 'cancelled' })
    await expect.poll(() => fake.abandoned).toBe(1)
  })

  test('an unknown instance, or one for searches, is told by name', async () => {
    const { tool } = await openFetcher('exa')
    const { fetch } = await openWorld({ settings: { fetchTools: { main: tool }, searchTools: { find: tool } } })
    for (const instance of ['ghost', 'toString', 'builtin_fetch', 'find']) {
      await expect(fetch({ instance })).rejects.toMatchObject({
        failure: 'not_found',
        message: `Unknown fetch tool '${instance}'.`,
      })
    }
  })
})
