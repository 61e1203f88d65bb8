import Anthropic from '@anthropic-ai/sdk'
import { callsTools, type FakeJson, type FakeMcpServer, fakeMcpServer, says } from '@tollgate/testing'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { patternSearch, type SearchedTool, wordSearch } from '../../src/tools/tool-search-index.ts'
import { inline, type McpRig, offeredIn, openRig } from '../mcp-client/rig.ts'

let rig: McpRig
let tracker: FakeMcpServer
let sdk: Anthropic
beforeAll(async () => {
  rig = await openRig()
  tracker = await fakeMcpServer()
  sdk = new Anthropic({ apiKey: rig.gateway.firstKey, baseURL: `${rig.gateway.url}/api`, maxRetries: 0 })
}, 60_000)
afterAll(async () => {
  await rig.close()
  await tracker.close()
})
beforeEach(() => {
  tracker.reset()
  const named = ['list_issues', 'close_issue', 'label_issue', 'assign_issue', 'count_issues']
  tracker.tools = named.map((name) => ({ name, description: `Can ${name}`, run: () => `ran ${name}` }))
})

const REGEX = { type: 'tool_search_tool_regex_20251119', name: 'tool_search_tool_regex' }
const BM25 = { type: 'tool_search_tool_bm25_20251119', name: 'tool_search_tool_bm25' }
const own = (name: string, description = '', more: object = {}) => ({
  name,
  description,
  input_schema: { type: 'object', properties: { path: { type: 'string', description: 'Where it is' } } },
  ...more,
})
const later = (name: string, description = '') => own(name, description, { defer_loading: true })
/** Thirty of the client's that wait. */
const waiting = [
  later('read_image', 'Reads an image file and describes it'),
  later('resize_image', 'Changes the size of a picture'),
  ...Array.from({ length: 28 }, (_, at) => later(`report_${at}`, `Writes report number ${at}`)),
]
const now = own('list_files', 'Lists files')
const deferredServer = () => inline(tracker, 'tracker', { defer_loading: true })

const searchesFor = (query: unknown, name = REGEX.name) => callsTools([{ name, input: { query } as FakeJson }])
const listIn = (member: 'messages' | 'tools', body: FakeJson | undefined) => (body?.[member] ?? []) as FakeJson[]
const lastResult = () => JSON.stringify(listIn('messages', rig.sent().at(-1)).at(-1))

/** Through the vendor's own client, which holds the stream to its rules. */
async function ask(stream: boolean, members: object, model = 'fake:m', headers: Record<string, string> = {}) {
  const body = {
    model,
    max_tokens: 500,
    messages: [{ role: 'user', content: 'hi' }],
    ...members,
  } as unknown as Anthropic.MessageCreateParamsNonStreaming
  const message = stream
    ? await sdk.messages.stream(body, { headers }).finalMessage()
    : await sdk.messages.create(body, { headers })
  expect(rig.refusals()).toEqual([])
  return message
}
type Blocks = FakeJson[]
const blocksOf = ({ content }: Anthropic.Message) => content as unknown as Blocks

describe.each([false, true])('on a provider without a search for tools, streamed: %s', (stream) => {
  test('BR-064 the model sees the search and no schema that waits, then what it found, and calls it', async () => {
    const tools = [REGEX, now, ...waiting]
    rig.play(searchesFor('image'), callsTools([{ name: 'read_image', input: { path: 'a.png' } }]))
    const message = await ask(stream, { tools, mcp_servers: [deferredServer()] })
    const [first, second] = rig.sent()
    expect(offeredIn(first)).toEqual(['tool_search_tool_regex', 'list_files'])
    expect(JSON.stringify(first)).not.toMatch(/read_image|report_|issue|defer_loading/)
    expect(offeredIn(second)).toEqual(['tool_search_tool_regex', 'list_files', 'read_image', 'resize_image'])
    expect(JSON.stringify(second?.tools)).toContain('Where it is')
    expect(lastResult()).toMatch(/read_image: Reads an image.*resize_image/)

    expect(message.stop_reason).toBe('tool_use')
    const references = ['read_image', 'resize_image'].map((name) => ({ type: 'tool_reference', tool_name: name }))
    const id = expect.stringMatching(/^otari_srvtoolu_/)
    expect(blocksOf(message)).toMatchObject([
      { type: 'server_tool_use', id, name: 'tool_search_tool_regex', input: { query: 'image' } },
      {
        type: 'tool_search_tool_result',
        tool_use_id: id,
        content: { type: 'tool_search_tool_search_result', tool_references: references },
      },
      { type: 'tool_use', name: 'read_image', input: { path: 'a.png' } },
    ])

    // (c) the history as the client has it: what was found stays declared, and nothing that only we showed goes on
    const call = blocksOf(message).at(-1)
    const messages = [
      { role: 'user', content: 'hi' },
      { role: 'assistant', content: message.content },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: call?.id, content: 'a cat' }] },
    ]
    rig.play(says('A cat.'))
    const answer = await ask(stream, { tools, messages, mcp_servers: [deferredServer()] })
    expect(answer.content).toMatchObject([{ type: 'text', text: 'A cat.' }])
    expect(offeredIn(rig.sent()[0])).toEqual(['tool_search_tool_regex', 'list_files', 'read_image', 'resize_image'])
    expect(JSON.stringify(rig.sent()[0])).not.toContain('otari_')
  })

  test('BR-064 a tool of a server that waits is found, runs here, and is free to be called again', async () => {
    rig.play(
      searchesFor('close an issue', BM25.name),
      callsTools([{ name: 'close_issue', input: { id: 7 } }]),
      callsTools([{ name: 'close_issue', input: { id: 8 } }]),
      says('Closed.'),
    )
    const message = await ask(stream, { tools: [BM25, ...waiting], mcp_servers: [deferredServer()] })
    expect(offeredIn(rig.sent()[0])).toEqual(['tool_search_tool_bm25'])
    expect(offeredIn(rig.sent()[1])).toContain('close_issue')
    expect(tracker.calls).toEqual([
      { name: 'close_issue', arguments: { id: 7 } },
      { name: 'close_issue', arguments: { id: 8 } },
    ])
    expect(blocksOf(message).map(({ type }) => type)).toEqual(['server_tool_use', 'tool_search_tool_result', 'text'])
    // the search costs nothing, and stands in the record
    expect(rig.brokers.settled[0]?.lines.map(({ tool }) => tool)).toEqual([BM25.name, 'close_issue', 'close_issue'])
    expect(rig.brokers.settled[0]?.lines[0]).toMatchObject({ reportedCost: '0' })
  })

  test('BR-064 a tool that was guessed does not run, whosever it is; the model is told to search first', async () => {
    rig.play(
      callsTools([
        { name: 'close_issue', input: { id: 7 } },
        { name: 'read_image', input: { path: 'a' } },
      ]),
      searchesFor('^close_issue$'),
      callsTools([{ name: 'close_issue', input: { id: 7 } }]),
      says('Closed.'),
    )
    const message = await ask(stream, { tools: [REGEX, now, ...waiting], mcp_servers: [deferredServer()] })
    const told = JSON.stringify(rig.sent()[1]?.messages)
    expect(told).toMatch(/\[tool error\] 'close_issue' is not loaded.*\[tool error\] 'read_image' is not loaded/)
    expect(offeredIn(rig.sent()[1])).toEqual(['tool_search_tool_regex', 'list_files'])
    expect(tracker.calls).toEqual([{ name: 'close_issue', arguments: { id: 7 } }])
    expect(message.stop_reason).toBe('end_turn')
    expect(blocksOf(message).map(({ type }) => type)).toEqual(['server_tool_use', 'tool_search_tool_result', 'text'])
  })

  test('BR-064 a guess beside a call of the client’s is answered here, and the client sees its own call alone', async () => {
    rig.play(
      callsTools([
        { name: 'read_image', input: { path: 'a' } },
        { name: 'list_files', input: { path: '/' } },
      ]),
    )
    const message = await ask(stream, { tools: [REGEX, now, ...waiting] })
    expect(message.stop_reason).toBe('tool_use')
    expect(blocksOf(message)).toMatchObject([{ type: 'tool_use', name: 'list_files' }])

    // the model sees both again, each with its own answer
    const messages = [
      { role: 'user', content: 'hi' },
      { role: 'assistant', content: message.content },
      { role: 'user', content: [{ type: 'tool_result', tool_use_id: blocksOf(message)[0]?.id, content: 'a.png' }] },
    ]
    rig.play(says('One file.'))
    await ask(stream, { tools: [REGEX, now, ...waiting], messages })
    expect(JSON.stringify(rig.sent()[0]?.messages)).toMatch(/'read_image' is not loaded.*a\.png/)
    expect(offeredIn(rig.sent()[0])).toEqual(['tool_search_tool_regex', 'list_files'])
  })

  test('BR-064 without a search declared all tools are sent as usual', async () => {
    rig.play(callsTools([{ name: 'read_image', input: { path: 'a' } }]))
    const message = await ask(stream, { tools: [now, ...waiting], mcp_servers: [deferredServer()] })
    expect(offeredIn(rig.sent()[0])).toHaveLength(1 + waiting.length + tracker.tools.length)
    expect(JSON.stringify(rig.sent()[0])).not.toContain('defer_loading')
    expect(blocksOf(message)).toMatchObject([{ type: 'tool_use', name: 'read_image' }])
  })
})

describe('on the vendor’s own model', () => {
  const pair = [
    { type: 'server_tool_use', id: 'srvtoolu_1', name: REGEX.name, input: { query: 'issue' } },
    {
      type: 'tool_search_tool_result',
      tool_use_id: 'srvtoolu_1',
      content: {
        type: 'tool_search_tool_search_result',
        tool_references: [{ type: 'tool_reference', tool_name: 'close_issue' }],
      },
    },
  ]

  test('BR-064 everything passes as it came, both ways', async () => {
    const tools = [REGEX, now, ...waiting]
    const messages = [
      { role: 'user', content: 'hi' },
      { role: 'assistant', content: [...pair, { type: 'text', text: 'Found.' }] },
      { role: 'user', content: 'go on' },
    ]
    rig.play(says('Yes.', { native: pair.map((item) => ({ item })) }))
    const message = await ask(true, { tools, messages }, 'anthropic:m')
    expect(rig.sent()[0]).toMatchObject({ tools, messages })
    expect(blocksOf(message)).toMatchObject([...pair, { type: 'text', text: 'Yes.' }])
  })

  test('BR-064 tools of servers wait there too, and run here once they are called', async () => {
    rig.play(callsTools([{ name: 'close_issue', input: { id: 7 } }]), says('Closed.'))
    const servers = [deferredServer()]
    await ask(false, { tools: [REGEX, now, ...waiting], mcp_servers: servers }, 'anthropic:m')
    const sent = listIn('tools', rig.sent()[0])
    expect(sent.slice(0, 2)).toEqual([REGEX, now])
    const ours = sent.slice(2 + waiting.length)
    expect(ours.map(({ name, defer_loading }) => [name, defer_loading])).toEqual(
      tracker.tools.map(({ name }) => [name, true]),
    )
    expect(tracker.calls).toEqual([{ name: 'close_issue', arguments: { id: 7 } }])
  })

  test('BR-064 what a search of ours had found for another model waits no more', async () => {
    const tools = [REGEX, now, ...waiting]
    rig.play(searchesFor('read_image'), says('Found.'))
    const found = await ask(false, { tools })
    rig.play(says('Yes.'))
    const messages = [
      { role: 'user', content: 'hi' },
      { role: 'assistant', content: found.content },
      { role: 'user', content: 'go on' },
    ]
    await ask(false, { tools, messages }, 'anthropic:m')
    const waits = listIn('tools', rig.sent()[0]).filter(({ defer_loading }) => defer_loading === true)
    expect(waits).toHaveLength(waiting.length - 1)
    expect(waits.map(({ name }) => name)).not.toContain('read_image')
  })

  test('BR-064 a pair of the vendor’s in the history counts for another model, and does not go to it', async () => {
    const history = [
      { role: 'user', content: 'hi' },
      { role: 'assistant', content: [...pair, { type: 'text', text: 'Found.' }] },
      { role: 'user', content: 'go on' },
    ]
    rig.play(callsTools([{ name: 'close_issue', input: { id: 7 } }]), says('Closed.'))
    await ask(false, { tools: [REGEX, now], messages: history, mcp_servers: [deferredServer()] })
    expect(offeredIn(rig.sent()[0])).toEqual([REGEX.name, 'list_files', 'close_issue'])
    expect(JSON.stringify(rig.sent()[0])).not.toContain('srvtoolu_1')
    expect(tracker.calls).toHaveLength(1)
  })
})

test('BR-064 a search of the client’s own finds tools too', async () => {
  const messages = [
    { role: 'user', content: 'hi' },
    { role: 'assistant', content: [{ type: 'tool_use', id: 'toolu_1', name: 'my_search', input: {} }] },
    {
      role: 'user',
      content: [
        {
          type: 'tool_result',
          tool_use_id: 'toolu_1',
          content: [{ type: 'tool_reference', tool_name: 'read_image' }],
        },
      ],
    },
  ]
  rig.play(says('Yes.'))
  await ask(false, { tools: [REGEX, own('my_search'), ...waiting], messages })
  expect(offeredIn(rig.sent()[0])).toEqual([REGEX.name, 'my_search', 'read_image'])
  expect(lastResult()).toContain("The tool 'read_image' was found.")
})

test('BR-064 a built-in may wait as well, and a tool that the client forces does not', async () => {
  const search = { type: 'web_search_20250305', name: 'web_search', defer_loading: true }
  rig.play(searchesFor('web'), callsTools([{ name: 'web_search', input: { query: 'cats' } }]), says('Cats.'))
  await ask(false, { tools: [REGEX, now, search] }, 'fake:m', { 'otari-web-search': 'auto' })
  expect(offeredIn(rig.sent()[0])).toEqual([REGEX.name, 'list_files'])
  expect(offeredIn(rig.sent()[1])).toEqual([REGEX.name, 'list_files', 'web_search'])
  expect(rig.brokers.settled[0]?.lines.map(({ tool }) => tool)).toEqual([REGEX.name, 'web_search'])

  rig.play(callsTools([{ name: 'report_3', input: {} }]))
  const forced = { type: 'tool', name: 'report_3' }
  const message = await ask(false, { tools: [REGEX, ...waiting], tool_choice: forced })
  expect(offeredIn(rig.sent()[0])).toEqual([REGEX.name, 'report_3'])
  expect(blocksOf(message)).toMatchObject([{ type: 'tool_use', name: 'report_3' }])
})

test('BR-064 L-08 the last round offers neither the search nor what waits', async () => {
  rig.play(searchesFor('image'), says('No.'))
  await ask(false, { tools: [REGEX, now, ...waiting], max_tool_iterations: 2 })
  expect(offeredIn(rig.sent()[1])).toEqual(['list_files', 'read_image', 'resize_image'])
})

test('BR-064 BR-057 a function with the name of the search is refused', async () => {
  const { status, text } = await rig.post('messages', { model: 'fake:m', tools: [REGEX, own(REGEX.name)] })
  expect([status, text]).toEqual([400, expect.stringContaining('tool_search_tool_regex')])
})

test.each([
  ['too long', 'a'.repeat(201), /at most 200/],
  ['no pattern', '[a-', /Not a pattern/],
  ['a lookahead', 'a(?=b)', /Not a pattern/],
  ['too large', '((.*){50}){20}z', /too large/],
  ['blank', '  ', /must say what/],
  ['no text', 7, /must say what/],
])('BR-064 BR-019 a query that is %s is an error for the model, which goes on', async (_what, query, told) => {
  rig.play(searchesFor(query), says('No.'))
  const message = await ask(true, { tools: [REGEX, ...waiting] })
  expect(lastResult()).toMatch(/\[tool error\]/)
  expect(lastResult()).toMatch(told)
  expect(blocksOf(message)[1]).toMatchObject({
    type: 'tool_search_tool_result',
    content: { type: 'tool_search_tool_result_error', error_code: 'invalid_tool_input' },
  })
})

describe('searching', () => {
  const tool = (name: string, description = '', parameters: SearchedTool['parameters'] = {}): SearchedTool => ({
    name,
    description,
    parameters,
  })
  const tools = [
    tool('getWeatherData', 'Forecasts for a city', {
      properties: { town: { description: 'Name of the municipality' } },
    }),
    tool('send_mail', 'Sends a message to somebody'),
    tool('list_mails', 'Lists what came in'),
    tool('größe', 'Misst Längen'),
    ...Array.from({ length: 20 }, (_, at) => tool(`filler_${at}`, 'mail mail mail')),
  ]

  test('BR-064 finds by name, description, and names and descriptions of arguments, names first, five at most', async () => {
    const search = patternSearch(tools)
    expect(await search('WEATHER')).toEqual(['getWeatherData'])
    expect(await search('municipality')).toEqual(['getWeatherData'])
    expect(await search('town|größe')).toEqual(['größe', 'getWeatherData'])
    expect(await search('mail')).toEqual(['send_mail', 'list_mails', 'filler_0', 'filler_1', 'filler_2'])
    expect(await search('nothing of the kind')).toEqual([])
    expect(await search('$')).toHaveLength(5)
  })

  test('BR-064 ranks by words, in the parts of a name, in any number', async () => {
    const search = wordSearch(tools)
    expect(await search('weather data')).toEqual(['getWeatherData'])
    expect(await search('which municipalities? municipality')).toEqual(['getWeatherData'])
    expect((await search('send a mail')).slice(0, 1)).toEqual(['send_mail'])
    expect((await search('list mails'))[0]).toBe('list_mails')
    expect(await search('GRÖSSE größe')).toEqual(['größe'])
    expect(await search('!!! ???')).toEqual([])
    expect(await wordSearch([])('anything')).toEqual([])
    expect(await patternSearch([])('anything')).toEqual([])
  })

  test.each(['(.*a){20}x', '(x+x+)+y'])(
    'BR-064 %s over ten thousand tools keeps nobody else waiting, and ends',
    async (pattern) => {
      const many = Array.from({ length: 10_000 }, (_, at) => tool(`tool_${at}`, 'a'.repeat(2_000)))
      let turns = 0
      const timer = setInterval(() => {
        turns += 1
      }, 1)
      const found = await patternSearch(many)(pattern).catch((thrown: unknown) => thrown)
      clearInterval(timer)
      // either it is done, or it was given up
      expect(Array.isArray(found) || (found as { code?: string }).code === 'execution_time_exceeded').toBe(true)
      if (!Array.isArray(found)) expect(turns).toBeGreaterThan(10)
    },
  )
})
