import { describe, expect, test } from 'vitest'
import { type Direct, startDirect } from './serving.ts'

const codePath = (workspace = 'default') => `/api/v1/workspaces/${workspace}/code-execution-policy`
const webPath = (workspace = 'default') => `/api/v1/workspaces/${workspace}/web-search`
const exa = { name: 'exa-search', kind: 'search', provider: 'exa' } as const
const never = { configured: false, created_at: null, updated_at: null }
const stored = { configured: true, created_at: expect.any(String), updated_at: expect.any(String) }

/** As the operator. */
const admin =
  ({ send, masterKey: key }: Direct) =>
  <B = Record<string, unknown>>(method: string, path: string, body?: unknown) =>
    send<B>(method, path, { key, ...(body !== undefined && { body }) })

async function startSearch(settings: Parameters<typeof startDirect>[0] = {}) {
  const served = await startDirect(settings)
  served.brokers.instances = [exa]
  const { send, firstKey } = served
  const door = async (path: string, body: object, key = firstKey) => {
    const { status, body: said } = await send<{ detail: string }>('POST', `/api/v1${path}`, { key, body })
    return status === 200 ? [200] : [status, said.detail]
  }
  return {
    ...served,
    operator: admin(served),
    search: (body: object = {}, key?: string) => door('/search', { query: 'tides', ...body }, key),
    fetch: (key?: string) => door('/fetch', { url: 'https://site.test/' }, key),
    run: (key?: string) => door('/code-execution', { code: 'x' }, key),
  }
}

describe('the policies of a workspace', () => {
  test('W-01 W-03 W-08 X-02 of code: set as a whole, shown, dropped', async () => {
    const { operator, settings } = await startSearch({ sandboxSessionImage: 'py', sandboxAllowedSessionImages: ['r'] })
    const nothing = {
      max_iterations: null,
      exec_timeout_s: null,
      default_purpose_hint: null,
      tools: null,
      image: null,
      executor: null,
    }
    const deployment = {
      workspace_id: 'default',
      default_enabled: true,
      sandbox_configured: true,
      available_tools: ['code_execution'],
      allowed_images: ['py', 'r'],
    }
    const unconfigured = { ...deployment, ...nothing, ...never, enabled: true }
    expect((await operator('GET', codePath())).body).toEqual(unconfigured)
    const policy = {
      enabled: true,
      max_iterations: 25,
      exec_timeout_s: 60,
      default_purpose_hint: 'Show your working.',
      tools: ['code_execution', 'bash_code_execution'],
      image: 'r',
      executor: 'otari',
    }
    expect(await operator('PUT', codePath(), policy)).toMatchObject({ status: 200, body: { ...policy, ...stored } })
    expect((await operator('GET', codePath())).body).toEqual({ ...deployment, ...policy, ...stored })
    const loud = { ...policy, executor: ' OTARI ' }
    expect(await operator('PUT', codePath(), loud)).toMatchObject({ status: 200, body: { executor: 'otari' } })
    // what a PUT leaves out is no longer said
    const replaced = { ...deployment, ...nothing, ...stored, enabled: false }
    expect((await operator('PUT', codePath(), { enabled: false })).body).toEqual(replaced)
    for (let twice = 0; twice < 2; twice++) {
      expect(await operator('DELETE', codePath())).toMatchObject({ status: 200, body: unconfigured })
    }
    settings.codeExecutionWorkspaceDefault = false
    expect((await operator('GET', codePath())).body).toMatchObject({ enabled: false, default_enabled: false })
  })

  test('W-30 of the web: set as a whole, shown as hosts are compared, dropped', async () => {
    const { operator, settings } = await startSearch()
    const nothing = {
      max_results: null,
      allowed_domains: null,
      blocked_domains: null,
      purpose_hint: null,
      provider_options: null,
    }
    const deployment = { workspace_id: 'default', default_enabled: true, web_search_configured: true }
    const unconfigured = { ...deployment, ...nothing, ...never, enabled: true }
    expect((await operator('GET', webPath())).body).toEqual(unconfigured)
    const policy = {
      enabled: true,
      max_results: 3,
      allowed_domains: ['example.com', 'xn--bcher-kva.test', '192.0.2.1'],
      blocked_domains: ['ads.example.com'],
      purpose_hint: 'For news.',
      provider_options: { category: 'news', nested: { a: [1, null] } },
    }
    const spelled = { ...policy, allowed_domains: ['Example.COM.', 'bücher.test', '192.0.2.1'] }
    expect((await operator('PUT', webPath(), spelled)).body).toEqual({ ...deployment, ...policy, ...stored })
    expect((await operator('GET', webPath())).body).toEqual({ ...deployment, ...policy, ...stored })
    expect((await operator('PUT', webPath(), { enabled: false })).body).toEqual({
      ...deployment,
      ...nothing,
      ...stored,
      enabled: false,
    })
    expect((await operator('DELETE', webPath())).body).toEqual(unconfigured)
    settings.webSearchWorkspaceDefault = false
    expect((await operator('DELETE', webPath())).body).toMatchObject({ enabled: false, default_enabled: false })
  })

  test('W-02 W-04 W-05 W-42 hold to their bounds, and name the member that does not', async () => {
    const { operator } = await startSearch({ sandboxAllowedSessionImages: ['r'] })
    const long = 'x'.repeat(2_049)
    const many = (count: number) => Array.from({ length: count }, (_, at) => `d${at}.test`)
    const options = (count: number) => Object.fromEntries(many(count).map((name) => [name, 1]))
    const text = (bytes: number) => ({ a: 'x'.repeat(bytes - '{"a":""}'.length) })
    const cases: [path: string, member: string, over: unknown, most: unknown][] = [
      [codePath(), 'max_iterations', 26, 25],
      [codePath(), 'max_iterations', 0, 1],
      [codePath(), 'exec_timeout_s', 61, 60],
      [codePath(), 'exec_timeout_s', 0, 1],
      [codePath(), 'default_purpose_hint', long, long.slice(1)],
      [codePath(), 'default_purpose_hint', 'a\u0000b', 'a\nb'],
      [codePath(), 'tools', ['python'], ['code_execution', 'text_editor_code_execution']],
      [codePath(), 'executor', 'me', 'provider'],
      [codePath(), 'unknown', 1, undefined],
      [webPath(), 'max_results', 0, 1],
      [webPath(), 'allowed_domains', many(101), many(100)],
      [webPath(), 'blocked_domains', many(101), many(100)],
      [webPath(), 'allowed_domains', [`${'a.'.repeat(126)}aa`], [`${'a.'.repeat(126)}a`]],
      [webPath(), 'allowed_domains', ['https://a.test/x'], []],
      [webPath(), 'purpose_hint', long, long.slice(1)],
      [webPath(), 'provider_options', options(31), options(30)],
      [webPath(), 'provider_options', text(4_097), text(4_096)],
      [webPath(), 'provider_options', { a: '\u0000' }, { a: 'ü' }],
    ]
    for (const [path, member, over, most] of cases) {
      const refused = await operator<{ detail: { loc: string[]; msg: string }[] }>('PUT', path, {
        enabled: true,
        [member]: over,
      })
      expect([member, refused.status]).toEqual([member, 422])
      const [{ loc, msg } = { loc: [], msg: '' }] = refused.body.detail
      expect(`${loc.join('.')} ${msg}`).toContain(member)
      expect([member, (await operator('PUT', path, { enabled: true, [member]: most })).status]).toEqual([member, 200])
    }
    for (const path of [codePath(), webPath()]) {
      expect(await operator('PUT', path, {})).toMatchObject({
        status: 422,
        body: { detail: [{ loc: ['body', 'enabled'] }] },
      })
    }
    expect(await operator('PUT', codePath(), { enabled: true, tools: ['bash_code_execution'] })).toMatchObject({
      status: 400,
      body: {
        detail:
          'A code-execution tool list must name at least one tool this deployment serves (code_execution). Use enabled=false to refuse the workspace instead.',
      },
    })
    expect(await operator('PUT', codePath(), { enabled: true, image: 'other' })).toMatchObject({ status: 400 })
  })

  test('W-06 W-09 A-10 A-11 A-13 are read by keys of the workspace and written by the operator; others see none', async () => {
    const { operator, send, firstKey, makeKey, run, search } = await startSearch()
    const made = await operator<{ id: string }>('POST', '/api/v1/workspaces', { name: 'Other' })
    expect(made).toMatchObject({ status: 200, body: { name: 'Other', organization_id: 'default' } })
    const { id: other } = made.body
    expect((await operator('GET', '/api/v1/workspaces')).body).toMatchObject({
      data: [{ id: 'default', name: 'Default' }, { id: other }],
      count: 2,
    })
    const { key } = await makeKey({ workspace_id: other })
    for (const path of [codePath, webPath]) {
      const as = async (method: string, who: string, workspace?: string) =>
        (await send(method, path(workspace), { key: who, ...(method === 'PUT' && { body: { enabled: false } }) }))
          .status
      expect([await as('GET', firstKey), await as('GET', key, other)]).toEqual([200, 200])
      for (const method of ['GET', 'PUT', 'DELETE']) {
        expect([await as(method, key), await as(method, firstKey, other), await as(method, firstKey, 'none')]).toEqual([
          404, 404, 404,
        ])
        if (method !== 'GET') expect(await as(method, firstKey)).toBe(403)
      }
      expect((await operator('PUT', path('none'), { enabled: true })).status).toBe(404)
    }
    for (const [method, body] of [
      ['GET', undefined],
      ['POST', { name: 'Mine' }],
    ] as const) {
      expect((await send(method, '/api/v1/workspaces', { key, ...(body && { body }) })).status).toBe(403)
    }

    await operator('PUT', codePath(other), { enabled: false })
    await operator('PUT', webPath(other), { enabled: false })
    expect([await run(), await search()]).toEqual([[200], [200]])
    expect([(await run(key))[0], (await search({}, key))[0]]).toEqual([403, 403])
    // no header moves a key into another workspace
    const headers = { 'x-workspace-id': 'default', 'otari-workspace': 'default' }
    expect((await send('POST', '/api/v1/code-execution', { key, headers, body: { code: 'x' } })).status).toBe(403)
  })

  test('a change holds on every replica at once, and what is known costs no database', async () => {
    const served = await startSearch()
    const { operator, run, brokers, policies, db } = served
    const replica = await served.replica()
    expect(await run()).toEqual([200])
    const elsewhere = () =>
      replica.send<{ detail: string }>('POST', '/api/v1/code-execution', { key: served.firstKey, body: { code: 'x' } })
    expect((await elsewhere()).status).toBe(200)
    await operator('PUT', codePath(), { enabled: false })
    expect(await run()).toEqual([403, 'code execution is not enabled for this workspace'])
    await expect.poll(async () => (await elsewhere()).status).toBe(403)
    await operator('DELETE', codePath())
    expect(await run()).toEqual([200])
    await expect.poll(async () => (await elsewhere()).status).toBe(200)

    await db.kysely.schema.alterTable('gateway.web_access_policies').renameTo('away').execute()
    expect(await run()).toEqual([200])
    policies.changed('default')
    const before = brokers.asked.exec.length
    const unknown = await run()
    expect(unknown[0]).toBeGreaterThanOrEqual(500)
    expect(JSON.stringify(unknown)).not.toMatch(/away|gateway\.|relation|select/)
    expect(brokers.asked.exec).toHaveLength(before)
  })
})

describe('a web-access policy', () => {
  test('W-31 W-40 W-41 off, by its own or by default, closes every door', async () => {
    const { operator, settings, brokers, search, fetch, connect, run } = await startSearch()
    const client = await connect()
    const tool = async (name: string, given: object) => {
      const answer = await client.callTool({ name, arguments: { ...given } })
      return JSON.stringify(answer.content)
    }
    const closed = async () => {
      expect(await search()).toEqual([403, 'web search is not enabled for this workspace'])
      expect(await fetch()).toEqual([403, 'web access is not enabled for this workspace'])
      expect(await tool('web_search', { query: 'x' })).toContain('web search is not enabled for this workspace')
      expect(await tool('fetch_webpage', { url: 'https://a.test/' })).toContain('web access is not enabled')
    }
    await operator('PUT', webPath(), { enabled: false })
    await closed()
    expect(await run()).toEqual([200])
    await operator('DELETE', webPath())
    settings.webSearchWorkspaceDefault = false
    await closed()
    const { search: searched, fetch: fetched, searchMcp } = brokers.asked
    expect([searched, fetched, searchMcp]).toEqual([[], [], []])
    await operator('PUT', webPath(), { enabled: true })
    expect([await search(), await fetch()]).toEqual([[200], [200]])
  })

  test('W-32 W-33 W-39 on a direct search only its number holds; where pages may be fetched from it says for every door', async () => {
    const { operator, brokers, search, fetch, connect } = await startSearch()
    await operator('PUT', webPath(), {
      enabled: true,
      max_results: 3,
      allowed_domains: ['example.com'],
      blocked_domains: ['x.example.com'],
      purpose_hint: 'hint',
      provider_options: { category: 'news' },
    })
    await search({ max_results: 10 })
    await search({ max_results: 2 })
    await search()
    expect(brokers.asked.search.map(({ maxResults }) => maxResults)).toEqual([3, 2, 3])
    for (const asked of brokers.asked.search) {
      expect(asked).toMatchObject({ policy: { allowedDomains: null, blockedDomains: [] }, options: {} })
    }
    await fetch()
    const client = await connect()
    const url = 'https://site.test/'
    await client.callTool({ name: 'fetch_webpage', arguments: { url } })
    await client.callTool({ name: 'fetch_image', arguments: { url } })
    const policy = { allowedDomains: ['example.com'], blockedDomains: ['x.example.com'] }
    expect(brokers.asked.fetch).toMatchObject([{ policy }, { policy }])
    expect(brokers.asked.image).toMatchObject([{ policy }])
  })
})
