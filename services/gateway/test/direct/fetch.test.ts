import { Fault, type FetchFailed } from '@tollgate/contracts'
import { describe, expect, test } from 'vitest'
import { type Direct, never, startDirect } from './serving.ts'

const PAGE = 'https://site.test/page'
const label = 'builtin:builtin_fetch'
const ask = ({ send, firstKey: key }: Direct, body: object = {}) =>
  send<Record<string, unknown>>('POST', '/api/v1/fetch', { key, body: { url: PAGE, ...body } })

describe('POST /api/v1/fetch', () => {
  test('answers a page as JSON, with what else is known of it', async () => {
    const served = await startDirect()
    served.brokers.fetch = async ({ url }) => ({
      status: 'ok',
      requestedUrl: url,
      finalUrl: `${url}/end`,
      contentType: 'text/html',
      title: 'Title',
      facts: { byline: 'Ada', published: '2026-01-02', canonicalUrl: PAGE, pageType: 'article' },
      format: 'markdown',
      extractor: 'main',
      text: '# Text',
      totalChars: 20,
      nextOffset: 6,
      assets: { images: [], links: [{ url: PAGE, text: 'L' }], truncated: false },
      notices: ['Something was cut.'],
      bytes: 9,
      label,
    })
    const { status, body } = await ask(served, { format: 'markdown', max_length: 6, include_assets: true })
    expect(status).toBe(200)
    expect(body).toEqual({
      object: 'web_page',
      url: PAGE,
      final_url: `${PAGE}/end`,
      status: 200,
      content_type: 'text/html',
      title: 'Title',
      format: 'markdown',
      extractor: 'trafilatura',
      text: '# Text',
      truncated: true,
      total_chars: 20,
      offset: 0,
      next_offset: 6,
      has_more: true,
      byte_cap_reached: false,
      likely_js_rendered: false,
      images: [],
      links: [{ url: PAGE, text: 'L' }],
      assets_truncated: false,
      byline: 'Ada',
      published: '2026-01-02',
      language: null,
      canonical_url: PAGE,
      site_name: null,
      description: null,
      page_type: 'article',
      next_pdf_page: null,
      notices: ['Something was cut.'],
    })
  })

  test('takes the options of fetch_webpage with their defaults, under the rules of this gateway’s own fetches', async () => {
    const served = await startDirect()
    await ask(served)
    await ask(served, { offset: 4, max_length: 2, structured: false, extract_text: false, format: 'text', pdf_page: 3 })
    const [plain, chosen] = served.brokers.asked.fetch
    expect(plain).toMatchObject({ format: 'text', part: 'main', assets: false, anyStatus: true, reads: 'documents' })
    expect(plain?.window).toEqual({ offset: 0, maxChars: 10_000 })
    expect(plain?.rules).toEqual({ allowDowngrade: false, allowedHosts: [], direct: false })
    expect(chosen).toMatchObject({ format: 'html', part: 'whole', window: { offset: 4, maxChars: 2 }, pdfPage: 3 })
  })

  test('P-16 is settled as a call of otari:web_fetch, and reserved before anything is fetched', async () => {
    const served = await startDirect()
    const { headers } = await ask(served)
    const { asked, settled } = served.brokers
    expect(asked.reserved[0]).toMatchObject({
      endpoint: '/api/v1/fetch',
      modelKeys: [],
      tools: [{ tool: 'web_fetch' }],
    })
    await expect.poll(() => settled).toHaveLength(1)
    expect(settled[0]).toMatchObject({
      endpoint: '/api/v1/fetch',
      status: 'success',
      model: 'builtin_fetch',
      provider: 'builtin',
      priceKeys: [],
      tenancy: { request: headers.get('x-request-id') },
      lines: [{ tool: 'web_fetch', label, outcome: 'ok' }],
    })
    expect(settled[0]?.lines[0]?.priceKeys).toContainEqual({ kind: 'model', key: 'otari:web_fetch' })
  })

  test.each<[Omit<FetchFailed, 'status' | 'label'>, number, string]>([
    [{ failure: 'url_disallowed' }, 400, 'address not allowed'],
    [{ failure: 'redirect_disallowed', redirect: 'too_many' }, 502, 'too many redirects'],
    [{ failure: 'network', stage: 'resolve' }, 502, 'could not resolve the host name'],
    [{ failure: 'timeout', stage: 'headers' }, 504, 'timed out waiting for the response'],
    [{ failure: 'unsupported_type', declared: { contentType: 'image/png', bytes: 7 } }, 422, 'image/png (7 bytes)'],
    [{ failure: 'offset_past_end', totalChars: 3 }, 422, 'which has 3 characters'],
    [{ failure: 'extraction_failed', reason: 'password' }, 502, 'protected by a password'],
    [{ failure: 'robots_disallowed' }, 403, 'robots'],
  ])('tells %o in the gateway’s form of error, and it costs nothing', async (failed, status, text) => {
    const served = await startDirect()
    served.brokers.fetch = async () => ({ status: 'failed', label, ...failed })
    const answer = await ask(served)
    expect(answer).toMatchObject({ status, body: { detail: expect.stringContaining(text) } })
    await expect.poll(() => served.brokers.settled).toHaveLength(1)
    expect(served.brokers.settled[0]).toMatchObject({ status: 'error', lines: [{ outcome: 'error' }] })
  })

  test('R-65 refuses in its order, before anything is reserved', async () => {
    const served = await startDirect({ webFetchEnabled: false })
    const { send, masterKey, brokers } = served
    expect((await send('POST', '/api/v1/fetch', { body: { url: PAGE } })).status).toBe(401)
    for (const body of [{ url: 7 }, { format: 'md' }, { max_length: 0 }, { offset: -1 }]) {
      expect(await ask(served, body)).toMatchObject({
        status: 422,
        body: { detail: [{ loc: ['body', Object.keys(body)[0]] }] },
      })
    }
    const asMaster = (body: object) => send('POST', '/api/v1/fetch', { key: masterKey, body: { url: PAGE, ...body } })
    expect(await asMaster({})).toMatchObject({
      status: 400,
      body: { detail: expect.stringContaining("'user' field is required") },
    })
    expect((await asMaster({ user: 'nobody' })).status).toBe(404)
    expect(await ask(served)).toMatchObject({
      status: 403,
      body: { detail: expect.stringContaining('OTARI_WEB_FETCH_ENABLED') },
    })
    expect([brokers.asked.reserved, brokers.asked.fetch]).toEqual([[], []])
  })

  test('P-15 A-18 what billing and the rate limit refuse is a status, and nothing is fetched', async () => {
    const served = await startDirect({ rateLimitRpm: 1 })
    expect((await ask(served)).status).toBe(200)
    expect((await ask(served)).status).toBe(429)
    expect(served.brokers.asked.released).toHaveLength(1)
    served.brokers.reserve = async () => {
      throw new Fault('pricing_required', 'no pricing')
    }
    expect(await ask(served)).toMatchObject({ status: 402, body: { code: 'pricing_required' } })
    expect(served.brokers.asked.fetch).toHaveLength(1)
  })

  test('P-47 a client that leaves ends the fetch, and is not charged', async () => {
    const { url, firstKey, brokers } = await startDirect()
    brokers.fetch = (_input, signal) => never(signal)
    const leave = new AbortController()
    const asked = fetch(`${url}/api/v1/fetch`, {
      method: 'POST',
      headers: { authorization: `Bearer ${firstKey}`, 'content-type': 'application/json' },
      body: JSON.stringify({ url: PAGE }),
      signal: leave.signal,
    })
    asked.catch(() => {})
    await expect.poll(() => brokers.asked.fetch).toHaveLength(1)
    leave.abort()
    await expect(asked).rejects.toThrow()
    await expect.poll(() => brokers.asked.released).toHaveLength(1)
    expect(brokers.settled).toEqual([])
  })
})
