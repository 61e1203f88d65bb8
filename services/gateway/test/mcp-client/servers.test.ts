import { openSecrets } from '@tollgate/secrets'
import {
  callsTools,
  type FakeJson,
  type FakeMcpServer,
  fakeMcpServer,
  type McpMisdeed,
  says,
  selfSigned,
} from '@tollgate/testing'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { namedServers } from '../../src/mcp-client/named.ts'
import { storedServers } from '../../src/mcp-client/stored.ts'
import { silent } from '../brokers.ts'
import { detailOf, dialects, inline, type McpRig, offeredIn, openRig } from './rig.ts'

const PUBLIC = '93.184.216.34'
const OTHER = '93.184.216.35'
const TOKEN = 'ghp_c4nary'
const certificate = selfSigned('mcp.test', 'elsewhere.test')

let rig: McpRig
let plain: FakeMcpServer
let secure: FakeMcpServer
beforeAll(async () => {
  plain = await fakeMcpServer({ tools: [{ name: 'look' }] })
  secure = await fakeMcpServer({ token: TOKEN, tls: certificate, tools: [{ name: 'look', run: () => 'seen' }] })
  rig = await openRig({
    dns: {
      'mcp.test': [PUBLIC],
      'elsewhere.test': [OTHER],
      'private.test': ['10.0.0.5'],
      'both.test': [PUBLIC, '192.168.1.1'],
      'moves.test': [[PUBLIC], ['10.0.0.1']] as unknown as string[],
      localhost: ['127.0.0.1'],
    },
    ports: { [PUBLIC]: { 80: plain.port, 443: secure.port, 8080: plain.port }, [OTHER]: secure.port },
    ca: [certificate.cert],
    times: { connectMs: 3_000, callMs: 3_000 },
  })
}, 60_000)
afterAll(async () => {
  await rig.close()
  await plain.close()
  await secure.close()
})
beforeEach(() => {
  for (const server of [plain, secure]) server.reset()
  rig.play(says('Hi.'))
})

// nothing is left open once an answer is there
afterEach(async () => {
  const open = () => [plain, secure].flatMap((server) => [server.sessions(), server.connections()])
  await expect.poll(open, { timeout: 5_000 }).toEqual([0, 0, 0, 0])
})

const named = (url: string, more: object = {}) => ({ name: 'github', url, ...more })
const secret = (more: object = {}) => named('https://mcp.test/mcp', { authorization_token: TOKEN, ...more })
/** Nothing was asked of a model, and the money set aside, if any, went back. */
function expectUnasked() {
  expect(rig.sent()).toEqual([])
  expect(rig.brokers.asked.released).toHaveLength(rig.brokers.asked.reserved.length)
}

test('M-02 A-34 sends the token to its server, and shows it to nobody', async () => {
  rig.play(callsTools([{ name: 'look', input: {} }]), says('Hi.'))
  const { status, text } = await rig.post('messages', { stream: true, mcp_servers: [secret()] })
  expect([status, secure.refusals, secure.calls.length]).toEqual([200, [], 1])
  for (const { headers } of secure.requests) expect(headers.authorization).toBe(`Bearer ${TOKEN}`)
  for (const shown of [text, rig.logged(), JSON.stringify(rig.sent())]) expect(shown).not.toContain(TOKEN)
})

describe('a server that cannot be used', () => {
  const misdeeds: [string, string, McpMisdeed][] = [
    ['refuses', 'initialize', { kind: 'status', status: 401, body: `Bearer ${TOKEN} is wrong` }],
    ['fails', 'initialize', { kind: 'status', status: 500, body: TOKEN }],
    ['hangs', 'initialize', { kind: 'hang' }],
    ['speaks no JSON', 'initialize', { kind: 'garbage' }],
    ['hangs at its listing', 'tools/list', { kind: 'hang' }],
    ['lists in a circle', 'tools/list', { kind: 'circle' }],
    ['lists more than 1 MiB', 'tools/list', { kind: 'huge', bytes: 1024 * 1024 + 1 }],
    ['never ends', 'tools/list', { kind: 'endless' }],
    ['ends before', 'tools/list', { kind: 'cut' }],
    ['answers somebody else', 'tools/list', { kind: 'wrong_id' }],
    ['quotes the token', 'tools/list', { kind: 'error', message: `Bearer ${TOKEN}` }],
  ]
  test.each(misdeeds)('M-04 BR-122 because it %s is a 502 before any model call', async (_why, method, misdeed) => {
    secure.suffers(method, misdeed)
    const { status, json, text } = await rig.post('chat', { stream: true, mcp_servers: [secret()] })
    expect([status, detailOf(json())]).toEqual([502, "MCP server 'github' could not be reached"])
    expectUnasked()
    for (const told of [text, rig.logged()]) expect(told).not.toContain(TOKEN)
    expect(rig.logged()).toContain('an MCP server cannot be used')
  })

  test.each(dialects)('M-04 because nobody listens is a 502 on %s', async (dialect) => {
    const gone = await fakeMcpServer()
    await gone.close()
    const { status, json } = await rig.post(dialect, { mcp_servers: [inline(plain, 'fine'), inline(gone)] })
    expect([status, detailOf(json())]).toEqual([502, "MCP server 'github' could not be reached"])
    expectUnasked()
  })

  test('M-04 L-34 is not noticed by a request that is refused before, unless a built-in may run', async () => {
    const { reserve } = rig.brokers
    rig.brokers.reserve = async () => {
      throw new (await import('@tollgate/contracts')).Fault('over_budget', "User 'x' has exceeded budget limit")
    }
    try {
      const mcp_servers = [inline(plain)]
      expect((await rig.post('chat', { mcp_servers })).status).toBe(403)
      expect(plain.requests).toEqual([])
      expect((await rig.post('chat', { mcp_servers, tools: [{ type: 'otari_web_search' }] })).status).toBe(403)
      expect(plain.methods()).toContain('tools/list')
    } finally {
      rig.brokers.reserve = reserve
    }
  })
})

describe('addresses of inline servers', () => {
  const unsafe = 'its url does not lead to an address that this gateway may connect to'
  const malformed = 'its url must be an http:// or https:// URL without a user or password in it'
  test.each([
    ['http://169.254.169.254/latest', unsafe],
    ['http://10.0.0.5:6379/', unsafe],
    ['http://192.168.0.1/mcp', unsafe],
    ['http://[fc00::1]/mcp', unsafe],
    ['http://0x0a000005/mcp', unsafe],
    ['https://private.test/mcp', unsafe],
    ['https://both.test/mcp', unsafe],
    ['https://nowhere.test/mcp', unsafe],
    ['ftp://mcp.test/', malformed],
    ['file:///etc/passwd', malformed],
    ['https://user:pass@mcp.test/', malformed],
    ['mcp.test', malformed],
  ])('M-10 BR-121 %s is a 400 that says what is wrong, and nothing is connected to', async (url, why) => {
    const { status, json } = await rig.post('chat', { mcp_servers: [named(url)] })
    expect([status, detailOf(json())]).toEqual([400, `MCP server 'github' cannot be used: ${why}`])
    expect(rig.dialer.dialed).toEqual([])
    expectUnasked()
  })

  test('M-10 a token is sent over https alone', async () => {
    const { status, json } = await rig.post('messages', {
      mcp_servers: [named('http://mcp.test/mcp', { authorization_token: TOKEN })],
    })
    expect([status, detailOf(json())]).toEqual([
      400,
      "MCP server 'github' cannot be used: its url must be https:// when it has an authorization_token",
    ])
    expect(rig.dialer.dialed).toEqual([])
  })

  test.each([
    ['http://127.0.0.1', true, true],
    ['http://localhost', true, true],
    ['http://127.0.0.1', false, false],
    ['http://localhost', false, false],
  ])('M-10 CFG-35 %s with mcp_allow_loopback %s', async (origin, allowLoopback, served) => {
    rig.gateway.settings.mcpClient = { allowLoopback, allowPrivateHosts: false }
    const { status } = await rig.post('chat', { mcp_servers: [named(`${origin}:${plain.port}/mcp`)] })
    rig.gateway.settings.mcpClient = { allowLoopback: true, allowPrivateHosts: false }
    expect(status).toBe(served ? 200 : 400)
  })

  test('M-10 CFG-35 private hosts by mcp_allow_private_hosts, and never cloud metadata', async () => {
    rig.gateway.settings.mcpClient = { allowLoopback: true, allowPrivateHosts: true }
    const [inside, metadata] = [
      await rig.post('chat', { mcp_servers: [named('http://private.test/mcp')] }),
      await rig.post('chat', { mcp_servers: [named('http://169.254.169.254/mcp')] }),
    ]
    rig.gateway.settings.mcpClient = { allowLoopback: true, allowPrivateHosts: false }
    // judged to be allowed, and nobody is there
    expect([inside.status, metadata.status]).toEqual([502, 400])
    expect(rig.dialer.dialed).toEqual([{ address: '10.0.0.5', port: 80 }])
  })

  test('M-10 a name is looked up once, and every connection goes to the address that was judged', async () => {
    const { status } = await rig.post('chat', { mcp_servers: [named('http://moves.test/mcp')] })
    expect(status).toBe(200)
    expect(rig.names.lookups.filter((name) => name === 'moves.test')).toHaveLength(1)
    expect(new Set(rig.dialer.dialed.map(({ address }) => address))).toEqual(new Set([PUBLIC]))
  })
})

describe('redirects', () => {
  const redirect = (to: string, status = 307): McpMisdeed => ({ kind: 'status', status, headers: { location: to } })

  test.each([
    'https://elsewhere.test/mcp',
    'https://mcp.test:8443/mcp',
    'http://mcp.test/mcp',
    'http://127.0.0.1/mcp',
    'https://user:pass@mcp.test/mcp',
  ])('M-11 BR-119 to %s is not followed, and the token goes nowhere else', async (to) => {
    secure.suffers('initialize', redirect(to))
    const { status, text } = await rig.post('chat', { mcp_servers: [secret()] })
    expect(status).toBe(502)
    expect(new Set(rig.dialer.dialed.map(({ address, port }) => `${address}:${port}`))).toEqual(
      new Set([`${PUBLIC}:443`]),
    )
    expect(secure.methods()).toEqual(['initialize'])
    expect(text).not.toContain('elsewhere')
  })

  test('M-11 within its origin is followed, and from http to https on default ports', async () => {
    secure.suffers('initialize', redirect('https://mcp.test/moved'), 1)
    expect((await rig.post('chat', { mcp_servers: [secret()] })).status).toBe(200)
    expect(secure.requests.map(({ path }) => path).slice(0, 2)).toEqual(['/mcp', '/moved'])

    const open = await fakeMcpServer({ tls: certificate })
    const world = await openRig({
      dns: { 'mcp.test': [PUBLIC] },
      ports: { [PUBLIC]: { 80: plain.port, 443: open.port, 8080: plain.port } },
      ca: [certificate.cert],
    })
    plain.suffers('initialize', redirect('https://mcp.test/mcp'))
    for (const method of ['notifications/initialized', 'tools/list', ''])
      plain.suffers(method, redirect('https://mcp.test/mcp'))
    world.play(says('Hi.'))
    expect((await world.post('chat', { mcp_servers: [named('http://mcp.test/mcp')] })).status).toBe(200)
    expect(open.methods()).toContain('tools/list')
    world.play(says('Hi.'))
    expect((await world.post('chat', { mcp_servers: [named('http://mcp.test:8080/mcp')] })).status).toBe(502)
    await world.close()
    await open.close()
  })
})

describe('what a request may say of servers', () => {
  test.each([
    [{ mcp_servers: [{ url: 'https://mcp.test/' }] }, 'name'],
    [{ mcp_servers: [{ name: '', url: 'https://mcp.test/' }] }, 'name'],
    [{ mcp_servers: [{ name: 'x'.repeat(129), url: 'https://mcp.test/' }] }, 'name'],
    [{ mcp_servers: [named(`https://mcp.test/${'x'.repeat(2_048)}`)] }, 'url'],
    [{ mcp_servers: [secret({ authorization_token: 'a b' })] }, 'authorization_token'],
    [{ mcp_servers: [secret({ authorization_token: 'a\r\nx: y' })] }, 'authorization_token'],
    [{ mcp_servers: [secret({ allowed_tools: 'look' })] }, 'allowed_tools'],
    [{ mcp_servers: [secret({ purpose_hint: 'x'.repeat(2_049) })] }, 'purpose_hint'],
    [{ mcp_servers: [secret({ headers: { a: 'b' } })] }, 'mcp_servers'],
    [
      { mcp_servers: Array.from({ length: 51 }, (_, at) => named('https://mcp.test/', { name: `s${at}` })) },
      'mcp_servers',
    ],
    [{ mcp_server_ids: Array.from({ length: 51 }, (_, at) => `id-${at}`) }, 'mcp_server_ids'],
    [{ mcp_server_ids: 'x' }, 'mcp_server_ids'],
  ])('M-01 M-02 is a 422 that names the place of a mistake, on every dialect (%#)', async (members, place) => {
    for (const dialect of dialects) {
      const { status, text } = await rig.post(dialect, members)
      expect([status, text.includes(`"${place}"`)]).toEqual([422, true])
      expect(text).not.toContain(TOKEN)
    }
  })

  test('M-07 names each server once', async () => {
    const { status, json } = await rig.post('chat', { mcp_servers: [inline(plain), inline(secure)] })
    expect([status, detailOf(json())]).toEqual([
      400,
      "Duplicate MCP server name 'github'. mcp_servers entries must have unique names.",
    ])
    const row = {
      workspace: 'w',
      url: 'https://mcp.test/',
      sealed_token: null,
      purpose_hint: null,
      allowed_tools: null,
    }
    const times = { enabled: true, created_at: new Date(), updated_at: new Date() }
    const twice = ['a', 'b'].map((id) => ({ id, name: 'same', ...row, ...times }))
    const needs = { stored: { known: async () => twice }, secrets: {} as never, log: silent }
    await expect(namedServers({ inline: [], ids: ['a', 'b'] }, 'w', needs)).rejects.toMatchObject({
      failure: 'internal',
      message: 'Configured MCP servers do not have unique names',
    })
  })

  test('leaves servers that a toolset names to the provider, and connects to none of them', async () => {
    const theirs = { type: 'url', name: 'theirs', url: 'http://10.0.0.1/', tool_configuration: { enabled: true } }
    const toolset = { type: 'mcp_toolset', mcp_server_name: 'theirs' }
    const members = { tools: [toolset], mcp_servers: [theirs, { type: 'url', ...inline(plain) }] }
    // the stand-in knows no such member, and would refuse what is expected here
    const { status } = await rig.post('messages', members)
    expect(status).toBeGreaterThanOrEqual(200)
    expect(rig.sent()[0]).toMatchObject({ mcp_servers: [theirs] })
    expect(offeredIn(rig.sent()[0])).toEqual(['', 'look'])

    rig.play(says('never'))
    const refused = await rig.post('messages', { ...members, model: 'fake:m' })
    expect([refused.status, detailOf(refused.json())]).toEqual([400, expect.stringContaining("'mcp_toolset'")])
    expect(rig.sent()).toEqual([])
  })
})

describe('stored servers', () => {
  const PATH = '/api/v1/workspaces/default/mcp-servers'
  const asOperator = (method: string, path: string, body?: unknown) =>
    rig.gateway.send<FakeJson>(method, path, { key: rig.gateway.masterKey, ...(body !== undefined && { body }) })
  const asMember = (method: string, path: string, body?: unknown) =>
    rig.gateway.send<FakeJson>(method, path, { key: rig.gateway.firstKey, ...(body !== undefined && { body }) })
  const add = async (more: object = {}) => {
    const { status, body } = await asOperator('POST', PATH, { ...secret(), ...more })
    if (status !== 200) throw new Error(JSON.stringify(body))
    return body as { id: string } & FakeJson
  }
  const ask = async (url: string, id: string) => {
    const { status } = await fetch(`${url}/api/v1/chat/completions`, {
      method: 'POST',
      headers: { 'otari-key': rig.gateway.firstKey, 'content-type': 'application/json' },
      body: JSON.stringify(rig.bodyOf('chat', { mcp_server_ids: [id] })),
    })
    return status
  }
  beforeEach(async () => {
    await rig.gateway.db.kysely.deleteFrom('gateway.mcp_servers').execute()
    rig.gateway.bus.announce((await import('@tollgate/contracts')).changedPolicies, {})
  })

  test('M-12 are made, listed, changed and removed; the token is encrypted and never shown', async () => {
    const made = await add({ purpose_hint: 'Issues', allowed_tools: ['look'] })
    expect(made).toEqual({
      id: expect.any(String),
      workspace_id: 'default',
      name: 'github',
      url: 'https://mcp.test/mcp',
      has_token: true,
      purpose_hint: 'Issues',
      allowed_tools: ['look'],
      enabled: true,
      created_at: expect.any(String),
      updated_at: expect.any(String),
    })
    const row = await rig.gateway.db.kysely.selectFrom('gateway.mcp_servers').selectAll().executeTakeFirstOrThrow()
    expect(row.sealed_token).toMatch(/^gAAAA/)
    expect(JSON.stringify(row)).not.toContain(TOKEN)
    expect((await asMember('GET', PATH)).body).toEqual({ data: [made], count: 1 })

    expect((await asOperator('POST', PATH, secret())).status).toBe(409)
    const other = await add({ name: 'other', authorization_token: undefined, url: 'http://mcp.test/mcp' })
    expect(other).toMatchObject({ has_token: false, purpose_hint: null, allowed_tools: null })
    expect((await asOperator('PATCH', `${PATH}/${other.id}`, { name: 'github' })).status).toBe(409)

    const patch = (body: object) => asOperator('PATCH', `${PATH}/${made.id}`, body)
    expect((await patch({ enabled: false, allowed_tools: [] })).body).toMatchObject({
      enabled: false,
      allowed_tools: [],
      has_token: true,
    })
    expect((await patch({ url: 'http://mcp.test/mcp' })).status).toBe(400)
    expect(
      (await patch({ authorization_token: '', url: 'http://mcp.test/mcp', purpose_hint: null })).body,
    ).toMatchObject({
      has_token: false,
      url: 'http://mcp.test/mcp',
      purpose_hint: null,
    })
    expect((await patch({ authorization_token: 'new' })).status).toBe(400)
    expect((await patch({ authorization_token: 'new', url: 'https://mcp.test/mcp' })).body).toMatchObject({
      has_token: true,
    })

    expect((await asOperator('DELETE', `${PATH}/${made.id}`)).status).toBe(204)
    for (const method of ['PATCH', 'DELETE']) {
      const { status, body } = await asOperator(method, `${PATH}/${made.id}`, method === 'PATCH' ? {} : undefined)
      expect([status, body.detail]).toEqual([404, `MCP server ${made.id} not found`])
    }
  })

  test('M-12 A-11 A-12 are written by the operator, read by keys of the workspace, and not there for others', async () => {
    const { id } = await add()
    expect((await asMember('POST', PATH, secret({ name: 'x' }))).status).toBe(403)
    expect((await asMember('PATCH', `${PATH}/${id}`, {})).status).toBe(403)
    expect((await asMember('DELETE', `${PATH}/${id}`)).status).toBe(403)
    const { body: made } = await asOperator('POST', '/api/v1/workspaces', { name: 'Other' })
    const elsewhere = `/api/v1/workspaces/${made.id}/mcp-servers`
    expect((await asMember('GET', elsewhere)).status).toBe(404)
    expect((await asOperator('GET', elsewhere)).body).toEqual({ data: [], count: 0 })
    expect((await asOperator('DELETE', `${elsewhere}/${id}`)).status).toBe(404)
    expect((await asOperator('GET', '/api/v1/workspaces/none/mcp-servers')).status).toBe(404)
  })

  test('M-12 are at most 50 to a workspace, of bounded size and at safe addresses', async () => {
    const results = await Promise.all(
      Array.from({ length: 52 }, (_, at) => asOperator('POST', PATH, named('https://mcp.test/', { name: `s${at}` }))),
    )
    expect(results.filter(({ status }) => status === 200)).toHaveLength(50)
    for (const [body, status] of [
      [{ url: 'http://10.0.0.1/' }, 400],
      [{ url: 'http://mcp.test/mcp' }, 400],
      [{ name: 'x'.repeat(129) }, 422],
      [{ url: `https://mcp.test/${'x'.repeat(2_048)}` }, 422],
      [{ authorization_token: 'x'.repeat(8_193) }, 422],
      [{ allowed_tools: Array.from({ length: 201 }, () => 'x') }, 422],
      [{ allowed_tools: ['x'.repeat(257)] }, 422],
      [{ headers: {} }, 422],
    ] as const) {
      expect((await asOperator('POST', PATH, { ...secret({ name: 'more' }), ...body })).status).toBe(status)
    }
  })

  test.each(dialects)('M-01 M-08 serve a %s request after its inline ones, each id once', async (dialect) => {
    const { id } = await add({ purpose_hint: 'Look at things' })
    const own = await fakeMcpServer({ tools: [{ name: 'own' }] })
    rig.play(callsTools([{ name: 'look', input: {} }]), says('Seen.'))
    const { status } = await rig.post(dialect, { mcp_servers: [inline(own, 'own')], mcp_server_ids: [id, id] })
    expect([status, secure.calls.length, secure.refusals]).toEqual([200, 1, []])
    expect(offeredIn(rig.sent()[0])).toEqual(['own', 'look'])
    expect(JSON.stringify(rig.sent()[0])).toContain('- look: Look at things')
    expect(rig.sent()[0]).not.toHaveProperty('mcp_server_ids')
    await own.close()
  })

  test('M-08 T-33 are passed over when they are switched off, and unknown ones are a 404', async () => {
    const { id } = await add({ enabled: false })
    const { status } = await rig.post('chat', { mcp_server_ids: [id] })
    expect([status, rig.sent()]).toEqual([200, [expect.not.objectContaining({ tools: expect.anything() })]])
    expect(secure.requests).toEqual([])

    const { body } = await asOperator('POST', '/api/v1/workspaces', { name: 'Foreign' })
    const foreign = await asOperator('POST', `/api/v1/workspaces/${body.id}/mcp-servers`, secret())
    for (const unknown of ['11111111-1111-1111-1111-111111111111', String(foreign.body.id)]) {
      rig.play(says('never'))
      const refused = await rig.post('messages', { mcp_server_ids: [unknown] })
      expect([refused.status, detailOf(refused.json())]).toEqual([404, `MCP server ${unknown} not found`])
      expectUnasked()
    }
  })

  test('M-12 count at once when they are changed, on this replica and on others', async () => {
    const { id } = await add()
    const other = await rig.gateway.replica()
    for (const { url } of [rig.gateway, other]) {
      rig.play(says('Hi.'))
      expect(await ask(url, id)).toBe(200)
    }
    await asOperator('PATCH', `${PATH}/${id}`, { allowed_tools: [] })
    rig.play(says('Hi.'))
    expect(await ask(other.url, id)).toBe(200)
    expect(rig.sent()[0]).not.toHaveProperty('tools')
    await asOperator('DELETE', `${PATH}/${id}`)
    rig.play(says('never'))
    for (const { url } of [rig.gateway, other]) expect(await ask(url, id)).toBe(404)
  })

  test('A-32 A-12 have their tokens brought under the first key by the operator', async () => {
    await add()
    const { id } = await add({ name: 'spoilt' })
    const spoilt = { sealed_token: 'gAAAAunreadable' }
    await rig.gateway.db.kysely.updateTable('gateway.mcp_servers').set(spoilt).where('id', '=', id).execute()
    const reencrypt = '/api/v1/mcp-servers/reencrypt'
    expect((await asOperator('POST', reencrypt)).body).toEqual({ reencrypted: 0, unreadable: 1, skipped: 1 })
    expect((await asMember('POST', reencrypt)).status).toBe(403)

    const { kysely } = rig.gateway.db
    const [older, newer] = [7, 8].map((byte) => `${Buffer.alloc(32, byte).toString('base64url')}=`)
    const rotated = openSecrets(`${newer} ${older}`)
    expect(await storedServers(rig.gateway).reencrypt(rotated)).toEqual({ reencrypted: 1, unreadable: 1, skipped: 0 })
    const row = await kysely
      .selectFrom('gateway.mcp_servers')
      .selectAll()
      .where('name', '=', 'github')
      .executeTakeFirst()
    expect(openSecrets(newer).decrypt(row?.sealed_token ?? '')).toBe(TOKEN)
  })

  test('M-07 do not share a name with one of the request’s own', async () => {
    const { id } = await add()
    const { status, json } = await rig.post('chat', { mcp_servers: [inline(plain)], mcp_server_ids: [id] })
    expect([status, detailOf(json())]).toEqual([
      400,
      "A request-supplied MCP server name collides with one of this workspace's stored servers",
    ])
  })

  test('M-09 that fail their safety check or whose token cannot be read are a 500, with the reason in the log alone', async () => {
    const { id } = await add()
    const { kysely } = rig.gateway.db
    const spoil = async (changes: { url?: string; sealed_token?: string }) => {
      await kysely.updateTable('gateway.mcp_servers').set(changes).where('id', '=', id).execute()
      rig.gateway.bus.announce((await import('@tollgate/contracts')).changedPolicies, {})
      rig.play(says('never'))
      const { status, json } = await rig.post('chat', { mcp_server_ids: [id] })
      expectUnasked()
      expect(rig.dialer.dialed).toEqual([])
      return [status, detailOf(json())]
    }
    expect(await spoil({ url: 'https://private.test/mcp' })).toEqual([
      500,
      "A configured MCP server's URL failed its safety check",
    ])
    expect(rig.logged()).toContain('does not lead to an address')
    expect(await spoil({ url: 'https://mcp.test/mcp', sealed_token: 'gAAAAunreadable' })).toEqual([
      500,
      "A configured MCP server's authorization token could not be read",
    ])
    expect(rig.logged()).toContain('cannot be read with OTARI_SECRET_KEY')
  })
})
