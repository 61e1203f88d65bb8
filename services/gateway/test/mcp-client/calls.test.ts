import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Server } from '@modelcontextprotocol/sdk/server/index.js'
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js'
import type { Transport } from '@modelcontextprotocol/sdk/shared/transport.js'
import { CallToolRequestSchema, ListToolsRequestSchema } from '@modelcontextprotocol/sdk/types.js'
import { callsTools, type FakeJson, type FakeMcpServer, fakeMcpServer, type McpMisdeed, says } from '@tollgate/testing'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { rawPost } from '../conversation/gateway.ts'
import { eventsIn, mistakesIn } from '../conversation/messages-events.ts'
import { detailOf, dialects, inline, type McpRig, offeredIn, openRig } from './rig.ts'

let rig: McpRig
let github: FakeMcpServer
let notes: FakeMcpServer
beforeAll(async () => {
  rig = await openRig({ times: { connectMs: 3_000, callMs: 3_000 } })
  github = await fakeMcpServer()
  notes = await fakeMcpServer({ json: true })
}, 60_000)
afterAll(async () => {
  await rig.close()
  await github.close()
  await notes.close()
})

const issues = { type: 'object', properties: { state: { type: 'string' } }, required: ['state'] }
beforeEach(() => {
  for (const server of [github, notes]) server.reset()
  github.tools = [{ name: 'list_issues', description: 'Lists issues', inputSchema: issues, run: () => '#12 is open' }]
  notes.tools = [{ name: 'read_note', run: ({ id }) => `note ${id}` }]
})

// nothing is left open once an answer is there
afterEach(async () => {
  const open = () => [github, notes].flatMap((server) => [server.sessions(), server.connections()])
  await expect.poll(open, { timeout: 5_000 }).toEqual([0, 0, 0, 0])
})

const asksFor = (name: string, input: FakeJson = {}) => callsTools([{ name, input }])
const lastSent = () => JSON.stringify(rig.sent().at(-1))
const BETA = { 'anthropic-beta': 'mcp-client-2025-11-20' }

describe.each(dialects)('%s', (dialect) => {
  describe.each([false, true])('streamed: %s', (stream) => {
    test('M-01 M-02 M-05 M-23 P-08 runs a tool of an inline server and bills it under its name', async () => {
      rig.play(asksFor('list_issues', { state: 'open' }), says('One.'))
      const { status, text } = await rig.post(dialect, { stream, mcp_servers: [inline(github)] })
      expect([status, text.includes('One.')]).toEqual([200, true])
      expect(text).not.toContain('list_issues')
      expect([rig.refusals(), github.refusals]).toEqual([[], []])
      expect(github.calls).toEqual([{ name: 'list_issues', arguments: { state: 'open' } }])
      const whole = ['initialize', 'notifications/initialized', 'tools/list', 'tools/call', 'DELETE']
      await expect.poll(() => github.methods(), { timeout: 5_000 }).toEqual(whole)
      // P-19: what it offers is not known when prices are asked for
      expect(rig.brokers.asked.reserved.map(({ tools }) => tools)).toEqual([[]])

      const [first, second] = rig.sent()
      expect(first).not.toHaveProperty('mcp_servers')
      expect(offeredIn(first)).toEqual(['list_issues'])
      expect(JSON.stringify(first?.tools)).toContain(JSON.stringify(issues))
      expect(JSON.stringify(second)).toContain('#12 is open')
      expect(rig.brokers.settled).toMatchObject([
        {
          status: 'success',
          lines: [
            {
              tool: 'list_issues',
              label: 'otari:list_issues',
              priceKeys: [{ kind: 'model', key: 'otari:list_issues' }],
              outcome: 'ok',
            },
          ],
        },
      ])
    })

    test('T-03 L-01 L-04 runs built-ins and the tools of two servers in one loop, each under its own name', async () => {
      rig.play(
        asksFor('web_search', { query: 'cve' }),
        asksFor('list_issues', { state: 'open' }),
        asksFor('code_execution', { code: 'print(1)' }),
        asksFor('web_fetch', { url: 'https://site.test/' }),
        asksFor('read_note', { id: 7 }),
        says('Done.'),
      )
      const { status, text } = await rig.post(dialect, {
        stream,
        tools: [{ type: 'otari_web_search' }, { type: 'otari_code_execution' }, { type: 'otari_web_fetch' }],
        mcp_servers: [inline(github), inline(notes, 'notes')],
      })
      expect([status, text.includes('Done.')]).toEqual([200, true])
      expect(offeredIn(rig.sent()[0])).toEqual([
        'web_search',
        'code_execution',
        'web_fetch',
        'list_issues',
        'read_note',
      ])
      for (const said of ['Text 1', '#12 is open', 'Page text', 'note 7']) expect(lastSent()).toContain(said)
      const lines = rig.brokers.settled.flatMap(({ lines: all }) => all.map(({ tool }) => tool))
      expect(lines).toEqual(['web_search', 'list_issues', 'code_execution', 'web_fetch', 'read_note'])
      expect([rig.refusals(), github.refusals, notes.refusals]).toEqual([[], [], []])
    })
  })

  test('M-06 P-10 tells the model of a failed call, counts it as an error and goes on', async () => {
    github.tools = [{ name: 'fail', run: () => ({ isError: true, content: [{ type: 'text', text: 'no such repo' }] }) }]
    rig.play(asksFor('fail'), says('Sorry.'))
    const { text } = await rig.post(dialect, { mcp_servers: [inline(github)] })
    expect(text).toContain('Sorry.')
    expect(lastSent()).toContain('[tool error] no such repo')
    expect(rig.brokers.settled[0]?.lines).toMatchObject([{ tool: 'fail', outcome: 'error' }])
  })

  test('M-20 R-04 says nothing of a call to a client that did not ask for it', async () => {
    rig.play(asksFor('list_issues', { state: 'open' }), says('One.'))
    const headers = dialect === 'messages' ? {} : BETA
    const { text } = await rig.post(dialect, { stream: true, mcp_servers: [inline(github)] }, headers)
    expect(text).not.toMatch(/mcp|list_issues|#12/)
  })
})

test('M-03 applies allowed_tools to what is offered and to what is run', async () => {
  github.tools.push({ name: 'close_issue', run: () => 'closed' })
  const offered = async (allowed_tools: string[] | null | undefined) => {
    rig.play(says('Hi.'))
    const { status } = await rig.post('chat', { mcp_servers: [inline(github, 'github', { allowed_tools })] })
    expect(status).toBe(200)
    return offeredIn(rig.sent()[0])
  }
  expect(await offered(undefined)).toEqual(['list_issues', 'close_issue'])
  expect(await offered(null)).toEqual(['list_issues', 'close_issue'])
  expect(await offered([])).toEqual([])
  expect(await offered(['close_issue', 'no_such_tool'])).toEqual(['close_issue'])

  rig.play(asksFor('list_issues', { state: 'open' }))
  const { json } = await rig.post('chat', {
    mcp_servers: [inline(github, 'github', { allowed_tools: ['close_issue'] })],
  })
  expect(json()).toMatchObject({ choices: [{ message: { tool_calls: [{ function: { name: 'list_issues' } }] } }] })
  expect(github.calls).toEqual([])
})

test('T-29 tells the model what the tools of each server are for, in one block with the built-ins', async () => {
  rig.play(says('Hi.'))
  await rig.post('messages', {
    system: 'Be brief.',
    tools: [{ type: 'otari_web_search', purpose_hint: 'Look things up.' }],
    mcp_servers: [inline(github, 'github', { purpose_hint: ' Use for issues. ' }), inline(notes, 'notes')],
  })
  expect(rig.sent()[0]?.system).toBe(
    'You have access to the following tools:\n- web_search: Look things up.\n- list_issues: Use for issues.\n\nBe brief.',
  )
})

test('M-06 renders each kind of content as the model reads it', async () => {
  const kinds: [object, string][] = [
    [{ type: 'text', text: 'plain' }, 'plain'],
    [{ type: 'image', mimeType: 'image/png', data: 'aGVsbG8=' }, '[image type=image/png bytes_b64=8]'],
    [{ type: 'resource', resource: { uri: 'file:///a.txt', text: 'inside' } }, '[resource uri=file:///a.txt]'],
    [{ type: 'audio', mimeType: 'audio/wav', data: 'aGk=' }, '[content type=audio]'],
    [{ type: 'resource_link', uri: 'file:///b', name: 'b' }, '[content type=resource_link]'],
    [{ type: 'image' }, '[content type=image]'],
  ]
  github.tools = [
    { name: 'all', run: () => ({ content: kinds.map(([content]) => content) }) },
    { name: 'structured', run: () => ({ content: [], structuredContent: { n: 1 } }) },
  ]
  rig.play(
    callsTools([
      { name: 'all', input: {} },
      { name: 'structured', input: {} },
    ]),
    says('Seen.'),
  )
  await rig.post('chat', { mcp_servers: [inline(github)] })
  const results = ((rig.sent()[1]?.messages ?? []) as FakeJson[])
    .filter(({ role }) => role === 'tool')
    .map(({ content }) => content)
  expect(results).toEqual([kinds.map(([, text]) => text).join('\n'), '{"n":1}'])
})

describe('a call that is not answered', () => {
  const misdeeds: [string, McpMisdeed, string][] = [
    ['that takes too long', { kind: 'hang' }, 'MCP tool did not answer in time'],
    ['whose stream never ends', { kind: 'endless' }, 'MCP tool result is larger than 1 MiB'],
    ['that is larger than 1 MiB', { kind: 'huge', bytes: 1024 * 1024 }, 'MCP tool result is larger than 1 MiB'],
    ['under another id', { kind: 'wrong_id' }, 'MCP tool execution failed'],
    ['whose stream ends before', { kind: 'cut' }, 'MCP tool execution failed'],
    ['that is no JSON', { kind: 'garbage' }, 'MCP tool execution failed'],
    [
      'in a coding that nobody asked for',
      {
        kind: 'status',
        status: 200,
        headers: { 'content-encoding': 'gzip', 'content-type': 'application/json' },
        body: '{}',
      },
      'MCP tool execution failed',
    ],
    ['with a protocol error', { kind: 'error', message: 'Bearer s3cret' }, 'MCP tool execution failed'],
    ['with a 500', { kind: 'status', status: 500, body: 'Bearer s3cret' }, 'MCP tool execution failed'],
  ]
  test.each(misdeeds)(
    'M-14 M-21 L-14 %s is a tool error, and the next one is answered',
    async (_how, misdeed, said) => {
      github.suffers('tools/call', misdeed, 1)
      rig.play(asksFor('list_issues', { state: 'a' }), asksFor('list_issues', { state: 'b' }), says('Well.'))
      const { status, text } = await rig.post('messages', { stream: true, mcp_servers: [inline(github)] }, BETA)
      expect([status, text.includes('Well.')]).toEqual([200, true])
      const [, second, third] = rig.sent()
      expect(JSON.stringify(second)).toContain(`[tool error] ${said}`)
      expect(JSON.stringify(third)).toContain('#12 is open')
      expect(text).not.toContain('s3cret')
      expect(rig.logged()).not.toContain('s3cret')
      expect(github.calls.map(({ arguments: { state } }) => state)).toEqual(['a', 'b'])
      expect(rig.brokers.settled[0]?.lines.map(({ outcome }) => outcome)).toEqual(['error', 'ok'])
      await expect.poll(() => github.connections()).toBe(0)
    },
  )

  test('M-14 a result of just under 1 MiB is whole', async () => {
    const text = 'x'.repeat(1024 * 1024 - 512)
    notes.tools = [{ name: 'big', run: () => text }]
    rig.play(asksFor('big'), says('Big.'))
    await rig.post('chat', { mcp_servers: [inline(notes)] })
    expect(lastSent()).toContain(text)
  })

  test('BR-154 a session that the server lost is begun again once, and the call that it did not take with it', async () => {
    rig.play(asksFor('list_issues', { state: 'a' }), says('Fine.'))
    github.tools[0] = { name: 'list_issues', run: () => 'again' }
    github.suffers('tools/call', { kind: 'status', status: 404 }, 1)
    await rig.post('chat', { mcp_servers: [inline(github)] })
    expect(lastSent()).toContain('again')
    expect(github.methods().filter((method) => method === 'initialize')).toHaveLength(2)
    expect(github.calls).toHaveLength(2)

    for (const message of ['Session not found', 'Session terminated']) {
      github.reset()
      github.suffers('tools/call', { kind: 'error', message }, 1)
      rig.play(asksFor('list_issues', { state: 'a' }), says('Fine.'))
      await rig.post('chat', { mcp_servers: [inline(github)] })
      expect(lastSent()).toContain('again')
    }

    github.reset()
    github.suffers('tools/call', { kind: 'status', status: 404 })
    rig.play(asksFor('list_issues', { state: 'a' }), says('Gone.'))
    await rig.post('chat', { mcp_servers: [inline(github)] })
    expect(lastSent()).toContain('[tool error] MCP tool execution failed')
    expect(github.methods().filter((method) => method === 'tools/call')).toHaveLength(2)
  })
})

test('serves nothing that a server asks of its client, and does not list its tools again when they change', async () => {
  github.suffers('tools/call', {
    kind: 'asks_first',
    methods: ['sampling/createMessage', 'elicitation/create', 'roots/list'],
  })
  rig.play(asksFor('list_issues', { state: 'open' }), says('One.'))
  await rig.post('chat', { mcp_servers: [inline(github)] })
  expect(github.replies.map(({ error }) => (error as FakeJson | undefined)?.code)).toEqual([-32601, -32601, -32601])
  expect(lastSent()).toContain('#12 is open')
  expect(github.methods().filter((method) => method === 'tools/list')).toHaveLength(1)
  expect(github.methods()).not.toContain('GET')
})

test('L-35 M-15 gives a name that two servers have to the first of them', async () => {
  notes.tools = [{ name: 'list_issues', run: () => 'the second’s' }]
  rig.play(asksFor('list_issues', { state: 'open' }), says('One.'))
  await rig.post('chat', { mcp_servers: [inline(github), inline(notes, 'notes')] })
  expect(offeredIn(rig.sent()[0])).toEqual(['list_issues'])
  expect([github.calls.length, notes.calls.length]).toEqual([1, 0])
})

describe('a tool with the name of a built-in', () => {
  beforeEach(() => {
    github.tools = [{ name: 'web_search', run: () => 'by the server' }, { name: 'other' }]
  })

  test('L-30 L-33 L-34 T-32 refuses a request that runs the built-in, before anything else is done', async () => {
    rig.play(says('never'))
    const { status, json } = await rig.post('messages', {
      tools: [{ type: 'otari_web_search' }, { type: 'otari_code_execution' }],
      mcp_servers: [inline(github)],
    })
    expect([status, detailOf(json())]).toEqual([
      400,
      "MCP server tool 'web_search' has the same name as a built-in tool this request runs. Exclude it through allowed_tools or drop one of the declarations.",
    ])
    expect(rig.sent()).toEqual([])
    expect([rig.brokers.asked.opened, rig.brokers.asked.reserved]).toEqual([[], []])
    expect(github.methods().filter((method) => method === 'tools/list')).toHaveLength(1)
  })

  test('L-31 is no clash where allowed_tools leaves it out', async () => {
    rig.play(says('Fine.'))
    const server = inline(github, 'github', { allowed_tools: ['other'] })
    const { status } = await rig.post('chat', { tools: [{ type: 'otari_web_search' }], mcp_servers: [server] })
    expect([status, offeredIn(rig.sent()[0])]).toEqual([200, ['web_search', 'other']])
  })

  test.each([
    ['none is declared', {}],
    ['the provider runs its own', { tools: [{ type: 'web_search_20250305', name: 'web_search' }] }],
  ])('L-32 is an ordinary tool where %s', async (_where, members) => {
    github.tools = [{ name: 'web_search', run: () => 'by the server' }]
    if ('tools' in members) github.tools[0] = { name: 'web_fetch', run: () => 'by the server' }
    const { name } = github.tools[0] as { name: string }
    rig.play(asksFor(name), says('Fine.'))
    const { status } = await rig.post('messages', { ...members, mcp_servers: [inline(github)] })
    expect([status, lastSent().includes('by the server'), rig.brokers.asked.search]).toEqual([200, true, []])
  })

  test('BR-057 refuses a function of the client with the name of a server’s tool', async () => {
    rig.play(says('never'))
    const { status, json } = await rig.post('chat', {
      tools: [{ type: 'function', function: { name: 'other', parameters: { type: 'object' } } }],
      mcp_servers: [inline(github)],
    })
    expect([status, detailOf(json())]).toEqual([
      400,
      expect.stringContaining("MCP server tool 'other' has the same name as a function"),
    ])
    expect(rig.sent()).toEqual([])
    expect(rig.brokers.asked.released).toHaveLength(1)
  })
})

test('M-13 L-06 L-08 offers no tool of a server in the last round, and asks for an answer', async () => {
  rig.play(asksFor('list_issues', { state: 'a' }), asksFor('list_issues', { state: 'b' }), says('So far.'))
  const ask = { mcp_servers: [inline(github)], max_tool_iterations: 3, tool_choice: 'required' }
  const { status, text } = await rig.post('chat', ask)
  expect([status, text.includes('So far.'), rig.refusals()]).toEqual([200, true, []])
  const [, second, last] = rig.sent()
  expect(offeredIn(second)).toEqual(['list_issues'])
  expect(last).not.toHaveProperty('tools')
  expect(last).not.toHaveProperty('tool_choice')
  expect(JSON.stringify(last)).toContain('Answer now from the results you already have.')

  rig.play(asksFor('list_issues', { state: 'a' }))
  const over = await rig.post('chat', { ...ask, max_tool_iterations: 1, tool_choice: 'auto' })
  expect([over.status, detailOf(over.json())]).toEqual([422, 'Exceeded max_tool_iterations=1'])
  expect((await rig.post('chat', { ...ask, max_tool_iterations: 26 })).status).toBe(422)
})

describe('what a Messages client that knows the blocks is shown', () => {
  const ask = (members = {}, headers: Record<string, string> = BETA) =>
    rig.post('messages', { stream: true, mcp_servers: [inline(github)], ...members }, headers)

  test.each([
    ['by the header', {}, BETA],
    ['by a newer one among others', {}, { 'anthropic-beta': 'files-api-2025-04-14, mcp-client-2026-09-15' }],
    ['by betas in the body', { betas: ['mcp-client-2025-11-20'] }, {}],
  ])('M-20 each call as it starts and as it ends, asked for %s', async (_how, members, headers) => {
    rig.play(asksFor('list_issues', { state: 'open' }), says('One.'))
    const events = eventsIn((await ask(members, headers as Record<string, string>)).text)
    expect(mistakesIn(events)).toEqual([])
    const blocks = events.flatMap(({ content_block: block }) => (block ? [block] : []))
    expect(blocks).toEqual([
      {
        type: 'mcp_tool_use',
        id: expect.stringMatching(/^otari_mcptoolu_[0-9a-f]{32}$/),
        name: 'list_issues',
        server_name: 'github',
        input: { state: 'open' },
      },
      {
        type: 'mcp_tool_result',
        tool_use_id: blocks[0]?.id,
        content: [{ type: 'text', text: '#12 is open' }],
        is_error: false,
      },
      { type: 'text', text: '' },
    ])
    expect(rig.anthropic.requests[0]?.headers['anthropic-beta']).toContain('mcp-client')
    expect(rig.sent()[0]).not.toHaveProperty('betas')

    rig.play(asksFor('list_issues', { state: 'open' }), says('One.'))
    const whole = (await ask({ ...members, stream: false }, headers as Record<string, string>)).json()
    expect(whole.content).toMatchObject([{ type: 'mcp_tool_use' }, { type: 'mcp_tool_result' }, { type: 'text' }])
  })

  test('M-20 nothing for an older form of the connector', async () => {
    rig.play(asksFor('list_issues', { state: 'open' }), says('One.'))
    expect((await ask({}, { 'anthropic-beta': 'mcp-client-2025-04-04' })).text).not.toContain('mcp_tool')
  })

  test('M-20 the start of a slow call before its end', async () => {
    let finish = (_text: string) => {}
    github.tools = [{ name: 'slow', run: () => new Promise((resolve) => (finish = resolve)) }]
    rig.play(asksFor('slow'), says('Last.'))
    const response = await fetch(`${rig.gateway.url}/api/v1/messages`, {
      method: 'POST',
      headers: { 'otari-key': rig.gateway.firstKey, 'content-type': 'application/json', ...BETA },
      body: JSON.stringify(rig.bodyOf('messages', { stream: true, mcp_servers: [inline(github)] })),
    })
    let text = ''
    const decoder = new TextDecoder()
    for await (const chunk of response.body as unknown as AsyncIterable<Uint8Array>) {
      text += decoder.decode(chunk, { stream: true })
      if (!text.includes('mcp_tool_use') || text.includes('mcp_tool_result')) continue
      await expect.poll(() => github.calls.length, { timeout: 5_000 }).toBe(1)
      finish('done')
    }
    expect(text.indexOf('mcp_tool_use')).toBeLessThan(text.indexOf('mcp_tool_result'))
    expect(text).toContain('Last.')
  })

  test('M-21 no word of the server’s when a call fails, and no address of a resource', async () => {
    const at = 'https://inner.test/?key=s3cret'
    github.tools = [
      { name: 'fail', run: () => ({ isError: true, content: [{ type: 'text', text: `Error at ${at}` }] }) },
      { name: 'link', run: () => ({ content: [{ type: 'resource', resource: { uri: at, text: '' } }] }) },
    ]
    rig.play(
      callsTools([
        { name: 'fail', input: {} },
        { name: 'link', input: {} },
      ]),
      says('Hm.'),
    )
    const { text } = await ask()
    expect(text).not.toContain('inner.test')
    const results = eventsIn(text).flatMap(({ content_block: block }) =>
      block?.type === 'mcp_tool_result' ? [block] : [],
    )
    expect(results).toMatchObject([
      { is_error: true, content: [{ text: 'MCP tool execution failed' }] },
      { is_error: false, content: [{ text: '[resource]' }] },
    ])
    expect(lastSent()).toContain('inner.test')
  })

  test('M-22 strips its own pairs from the history, and leaves those of the provider', async () => {
    const pair = (id: string) => [
      { type: 'mcp_tool_use', id, name: 'list_issues', server_name: 'github', input: {} },
      { type: 'mcp_tool_result', tool_use_id: id, content: [{ type: 'text', text: 'x' }], is_error: false },
    ]
    rig.play(says('Yes.'))
    await ask({
      mcp_servers: undefined,
      messages: [
        { role: 'user', content: 'hi' },
        {
          role: 'assistant',
          content: [...pair(`otari_mcptoolu_${'a'.repeat(32)}`), ...pair('mcptoolu_1'), { type: 'text', text: 'One.' }],
        },
        { role: 'user', content: 'Sure?' },
      ],
    })
    expect(lastSent()).not.toContain('otari_mcptoolu_')
    expect(lastSent()).toContain('mcptoolu_1')
  })

  test('M-24 L-12 its own call of a mixed turn, and the pair of the server’s before it ends', async () => {
    const lookup = { name: 'lookup', input_schema: { type: 'object', properties: {} } }
    rig.play(
      callsTools([
        { name: 'list_issues', input: { state: 'open' } },
        { name: 'lookup', input: {} },
      ]),
    )
    const events = eventsIn((await ask({ tools: [lookup] })).text)
    expect(mistakesIn(events)).toEqual([])
    const kinds = events.flatMap(({ content_block: block }) => (block ? [block.type] : []))
    expect(kinds.toSorted()).toEqual(['mcp_tool_result', 'mcp_tool_use', 'tool_use'])
    expect(events.find(({ type }) => type === 'message_delta')?.delta?.stop_reason).toBe('tool_use')
    expect(github.calls).toHaveLength(1)
    expect(rig.brokers.settled[0]?.lines).toMatchObject([{ tool: 'list_issues', outcome: 'ok' }])
  })
})

test('BR-151 offers tools with odd schemas in a form that model APIs take, and leaves out what none could take', async () => {
  const deep = JSON.parse(`${'{"properties":{"a":'.repeat(100)}{}${'}}'.repeat(100)}`) as object
  github.tools = [
    { name: 'plain', inputSchema: issues },
    {
      name: 'either',
      inputSchema: {
        oneOf: [{ properties: { url: { type: 'string' } }, required: ['url'] }, { properties: { id: {} } }],
      },
    },
    {
      name: 'conditional',
      inputSchema: {
        type: 'object',
        allOf: [
          Object.fromEntries([
            ['if', {}],
            ['then', {}],
          ]),
        ],
      },
    },
    { name: 'typeless', inputSchema: { properties: { a: { pattern: '^(?!x)', items: [{}, {}] } } } },
    { name: 'repo.files/read', description: 'd'.repeat(3_000) },
    { name: 'plain', description: 'the second' },
    { name: 'deep', inputSchema: deep },
    { name: 'no_schema', inputSchema: 'none' },
    { name: 'large', inputSchema: { type: 'object', description: 'x'.repeat(70_000) } },
  ]
  for (const dialect of ['chat', 'messages'] as const) {
    rig.play(asksFor('repo_files_read', { path: 'a' }), says('Read.'))
    expect((await rig.post(dialect, { mcp_servers: [inline(github)] })).status).toBe(200)
    expect(rig.refusals()).toEqual([])
    expect(offeredIn(rig.sent()[0])).toEqual(['plain', 'either', 'conditional', 'typeless', 'repo_files_read'])
    expect(github.calls.at(-1)).toEqual({ name: 'repo.files/read', arguments: { path: 'a' } })
  }
  const [, either, , typeless] = (rig.sent()[0]?.tools ?? []) as FakeJson[]
  expect(either?.input_schema).toEqual({ type: 'object', properties: { url: { type: 'string' }, id: {} } })
  expect(typeless?.input_schema).toEqual({ type: 'object', properties: { a: { items: { anyOf: [{}, {}] } } } })
  for (const name of ['deep', 'no_schema', 'large']) expect(rig.logged()).toContain(name)
})

test('reads a listing of many pages, and refuses to offer more than a model API takes', async () => {
  const paged = await fakeMcpServer({ pageSize: 30 })
  paged.tools = Array.from({ length: 129 }, (_, at) => ({ name: `tool_${at}` }))
  rig.play(says('never'))
  const refused = await rig.post('chat', { mcp_servers: [inline(paged)] })
  expect([refused.status, detailOf(refused.json())]).toEqual([400, expect.stringContaining('offer 129 tools')])
  paged.tools.pop()
  rig.play(says('Many.'))
  expect((await rig.post('chat', { mcp_servers: [inline(paged)] })).status).toBe(200)
  expect(offeredIn(rig.sent()[0])).toHaveLength(128)
  await paged.close()
})

test('offers nothing of a server whose listing has no end', async () => {
  const endless = await fakeMcpServer({
    pageSize: 1,
    tools: Array.from({ length: 25 }, (_, at) => ({ name: `tool_${at}` })),
  })
  const heavy = await fakeMcpServer({ pageSize: 5 })
  const inputSchema = { type: 'object', description: 'x'.repeat(60_000) }
  heavy.tools = Array.from({ length: 20 }, (_, at) => ({ name: `tool_${at}`, inputSchema }))
  for (const server of [endless, heavy]) {
    rig.play(says('never'))
    expect((await rig.post('chat', { mcp_servers: [inline(server)] })).status).toBe(502)
    expect(rig.logged()).toContain('listing_endless')
    expect(rig.sent()).toEqual([])
    await server.close()
  }
})

test('L-38 L-04 keeps its servers when another model is asked, and bills on the row of the one that answers', async () => {
  const candidates = [{ model: 'anthropic:m' }, { model: 'fake:m' }]
  const policies = { either: { candidates, retryOn: ['server_error' as const] } }
  const chain = await openRig({ routing: { policies, aliases: {} } })
  chain.play({ status: 500, body: '{}' }, asksFor('list_issues', { state: 'open' }), says('One.'))
  const { status, text } = await chain.post('chat', { model: 'either', stream: true, mcp_servers: [inline(github)] })
  expect([status, text.includes('One.')]).toEqual([200, true])
  expect([chain.anthropic, chain.openai].map(({ requests }) => requests.length)).toEqual([1, 2])
  for (const body of chain.sent()) expect(offeredIn(body)).toEqual(['list_issues'])
  expect(github.methods().filter((method) => method === 'initialize')).toHaveLength(1)
  expect(chain.brokers.settled).toMatchObject([{ provider: 'fake', lines: [{ tool: 'list_issues' }] }])
  await chain.close()
})

test('BR-029 counts the tokens of a request with the tools of its servers', async () => {
  rig.play()
  const count = async (mcp_servers: object[]) => {
    const response = await fetch(`${rig.gateway.url}/api/v1/messages/count_tokens`, {
      method: 'POST',
      headers: { 'otari-key': rig.gateway.firstKey, 'content-type': 'application/json' },
      body: JSON.stringify(rig.bodyOf('messages', { max_tokens: undefined, mcp_servers })),
    })
    expect(response.status).toBe(200)
    return rig.sent().at(-1)
  }
  expect(offeredIn(await count([inline(github)]))).toEqual(['list_issues'])
  expect(await count([])).not.toHaveProperty('tools')
})

test('ends a call whose client leaves', async () => {
  github.suffers('tools/call', { kind: 'hang' })
  rig.play(asksFor('list_issues', { state: 'open' }))
  const { socket } = rawPost(
    rig.gateway.url,
    rig.gateway.firstKey,
    rig.bodyOf('chat', { mcp_servers: [inline(github)] }),
  )
  await expect.poll(() => github.calls.length, { timeout: 5_000 }).toBe(1)
  socket.destroy()
  await expect.poll(() => github.connections(), { timeout: 5_000 }).toBe(0)
  await expect.poll(() => rig.brokers.settled, { timeout: 5_000 }).toMatchObject([{ status: 'cancelled' }])
})

test('speaks with the protocol’s own server', async () => {
  const served = createServer(async (request, response) => {
    const server = new Server({ name: 'real', version: '1' }, { capabilities: { tools: {} } })
    server.setRequestHandler(ListToolsRequestSchema, () => ({
      tools: [
        { name: 'add', inputSchema: { type: 'object', properties: { a: { type: 'number' }, b: { type: 'number' } } } },
      ],
    }))
    server.setRequestHandler(CallToolRequestSchema, ({ params }) => ({
      content: [{ type: 'text', text: `sum ${Number(params.arguments?.a) + Number(params.arguments?.b)}` }],
    }))
    const transport = new StreamableHTTPServerTransport({})
    response.once('close', () => void server.close())
    await server.connect(transport as Transport)
    await transport.handleRequest(request, response)
  })
  await new Promise<void>((listening) => served.listen(0, '127.0.0.1', listening))
  const url = `http://127.0.0.1:${(served.address() as AddressInfo).port}/`
  rig.play(asksFor('add', { a: 2, b: 3 }), says('Five.'))
  const { text } = await rig.post('messages', { mcp_servers: [inline({ url }, 'real')] })
  expect([text.includes('Five.'), lastSent().includes('sum 5')]).toEqual([true, true])
  await new Promise((closed) => {
    served.close(closed)
    served.closeAllConnections()
  })
})
