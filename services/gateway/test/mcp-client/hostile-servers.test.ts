import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { callsTools, says } from '@tollgate/testing'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { dialects, type McpRig, offeredIn, openRig } from './rig.ts'

type Answer = (id: number, response: ServerResponse) => void
const json = (response: ServerResponse, body: string): void => {
  response.writeHead(200, { 'content-type': 'application/json' }).end(body)
}
const resultOf = (id: number, result: string): string => `{"jsonrpc":"2.0","id":${id},"result":${result}}`
const sends =
  (result: string): Answer =>
  (id, response) =>
    json(response, resultOf(id, result))

/** A server that says what it likes, byte for byte. */
let lists: Answer
let answers: Answer
let session: string | undefined
let calls: { name: string; arguments: unknown }[] = []
let posts = 0
let methods: string[] = []
let server: Server
let rig: McpRig
const url = () => `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`

async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const parts: Buffer[] = []
  for await (const part of request) parts.push(part as Buffer)
  const text = Buffer.concat(parts).toString('utf8')
  if (request.method !== 'POST') return void response.writeHead(request.method === 'GET' ? 405 : 200).end()
  posts += 1
  const { id, method, params } = JSON.parse(text)
  methods.push(String(method))
  if (id === undefined || method === undefined) return void response.writeHead(202).end()
  if (method === 'initialize') {
    if (session !== undefined) response.setHeader('mcp-session-id', session)
    const { protocolVersion } = params
    const serverInfo = { name: 'hostile', version: '1' }
    return json(response, resultOf(id, JSON.stringify({ protocolVersion, capabilities: { tools: {} }, serverInfo })))
  }
  if (method === 'tools/list') return lists(id, response)
  calls.push(params)
  answers(id, response)
}

beforeAll(async () => {
  server = createServer((request, response) => void handle(request, response).catch(() => response.destroy()))
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening))
  rig = await openRig({ times: { connectMs: 10_000, callMs: 3_000 } })
}, 60_000)
afterAll(async () => {
  await rig.close()
  server.closeAllConnections()
  server.close()
})

const tool = (name: string, more = '') => `{"name":${JSON.stringify(name)},"inputSchema":{"type":"object"}${more}}`
const listing = (...tools: string[]) => sends(`{"tools":[${tools.join(',')}]}`)
beforeEach(() => {
  lists = listing(tool('good'))
  answers = sends('{"content":[{"type":"text","text":"all good"}]}')
  session = undefined
  calls = []
  posts = 0
  methods = []
})
const ask = (dialect: (typeof dialects)[number] = 'chat') =>
  rig.post(dialect, { stream: dialect !== 'chat', mcp_servers: [{ name: 'hostile', url: url() }] })
const asksFor = (name: string) => callsTools([{ name, input: { a: 1 } }])

describe('a listing', () => {
  test('BR-151 of a hundred thousand things that are no tools hides no tool, and fills no log', async () => {
    lists = listing(...Array(100_000).fill('{}'), tool('good'), tool('good'), ...Array(100).fill('7'))
    rig.play(says('Fine.'))
    expect((await ask()).status).toBe(200)
    expect(offeredIn(rig.sent()[0])).toEqual(['good'])
    const told = rig
      .logged()
      .split('\n')
      .filter((line) => line.includes('not offered'))
    expect(told).toHaveLength(21)
    expect(told.at(-1)).toContain('"leftOut":100101')
  })

  test.each(dialects)(
    'BR-151 whose names and texts are of any kind is offered as every vendor takes it: %s',
    async (dialect) => {
      const names = [
        'a\u0000b',
        'line\nbreak',
        '\u001b[31mred',
        '\u202eevil',
        'zero\u200bwidth',
        '😀',
        '搜索',
        '$web_search',
        'dots.and/strokes',
        '__proto__',
        'constructor',
        'n'.repeat(256),
        '"}],"tools":[',
      ]
      const description = ',"description":"ctl \\u0000\\u001b[2J\\ud800 \\u202e end","title":7,"annotations":{"x":[]}'
      lists = listing(...names.map((name) => tool(name, description)), tool('', description), tool('n'.repeat(257)))
      rig.play(asksFor('a_b'), says('Fine.'))
      const { status, text } = await ask(dialect)
      expect([status, text.includes('Fine.'), rig.refusals()]).toEqual([200, true, []])
      const offered = offeredIn(rig.sent()[0])
      // two that only differ in what no vendor takes are one name, which the first of them has
      expect(offered.length).toBeGreaterThan(names.length - 3)
      expect(new Set(offered).size).toBe(offered.length)
      for (const name of offered) expect(name).toMatch(/^[a-zA-Z0-9_-]{1,64}$/)
      expect(calls).toEqual([{ name: 'a\u0000b', arguments: { a: 1 } }])
    },
  )

  test.each([
    ['nested ten thousand deep', `${'{"properties":{"a":'.repeat(10_000)}{}${'}}'.repeat(10_000)}`, false],
    ['of lists in lists', `{"anyOf":${'['.repeat(10_000)}${']'.repeat(10_000)}}`, false],
    [
      'that refers to itself',
      '{"type":"object","properties":{"a":{"$ref":"#"}},"$defs":{"b":{"$ref":"#/$defs/b"}}}',
      true,
    ],
    [
      'with odd names',
      '{"type":"object","properties":{"__proto__":{"type":"string"},"constructor":{"type":"string"}}}',
      true,
    ],
    ['that is no schema', '{"type":["object",7],"properties":[],"required":"all","allOf":{"a":1}}', true],
    [
      'of many properties',
      `{"type":"object","properties":{${Array.from({ length: 20_000 }, (_, at) => `"p${at}":{}`).join(',')}}}`,
      false,
    ],
    ['of a list', '[]', false],
    ['of nothing', 'null', false],
  ])('BR-151 with a schema %s takes no other tool with it', async (_what, schema, offered) => {
    lists = listing(`{"name":"odd","inputSchema":${schema}}`, tool('good'))
    for (const dialect of ['messages', 'responses'] as const) {
      rig.play(asksFor('good'), says('Fine.'))
      const { status } = await ask(dialect)
      expect([status, rig.refusals()]).toEqual([200, []])
      expect(offeredIn(rig.sent()[0])).toEqual(offered ? ['odd', 'good'] : ['good'])
    }
  })

  test.each([
    ['no object', '7'],
    ['without tools', '{}'],
    ['whose tools are none', '{"tools":{"a":1}}'],
    ['whose cursor is none', '{"tools":[],"nextCursor":{"a":1}}'],
    ['that ends in the middle', '{"tools":['],
  ])('M-04 that is %s is a 502, with nothing of it', async (_what, result) => {
    lists = sends(result)
    rig.play(says('never'))
    const { status, text } = await ask()
    expect(status).toBe(502)
    expect(text).toContain("'hostile' could not be reached")
    expect(rig.sent()).toEqual([])
  })

  test('M-05 that is another one each time is read once in a request', async () => {
    let times = 0
    lists = (id, response) => {
      times += 1
      listing(tool(`tool_${times}`))(id, response)
    }
    rig.play(asksFor('tool_1'), asksFor('tool_1'), says('Fine.'))
    expect((await ask()).status).toBe(200)
    expect(times).toBe(1)
    expect(rig.sent().map(offeredIn)).toEqual([['tool_1'], ['tool_1'], ['tool_1']])
  })
})

describe('a call', () => {
  const deep = (open: string, close: string, n = 100_000) => open.repeat(n) + close.repeat(n)
  test.each<[string, Answer, RegExp]>([
    ['nothing', sends('null'), /\[tool error\]/],
    ['a list', sends('[]'), /\[tool error\]/],
    ['content that is no list', sends('{"content":"text"}'), /\[tool error\]/],
    ['content of content', sends(`{"content":${deep('[', ']')}}`), /\[tool error\]/],
    ['a deep structure', sends(`{"structuredContent":{"a":${deep('[', ']')}}}`), /\[tool error\]/],
    ['a failure that is a word', sends('{"content":[],"isError":"yes"}'), /\[tool error\]/],
    ['a failure without words', sends('{"content":[],"isError":true}'), /\[tool error\] MCP tool execution failed/],
    [
      'fifty thousand parts of no kind',
      sends(`{"content":[${Array(50_000).fill('{"type":"x"}').join(',')}]}`),
      /content type=x.*49000 more parts left out/,
    ],
    ['halves of characters', sends('{"content":[{"type":"text","text":"\\ud800\\u0000\\u001b[2J ok"}]}'), /ok/],
    ['no id', (_id, response) => json(response, '{"jsonrpc":"2.0","result":{"content":[]}}'), /\[tool error\]/],
    [
      'an id that is a word',
      (id, response) => json(response, `{"jsonrpc":"2.0","id":"x${id}","result":{"content":[]}}`),
      /\[tool error\]/,
    ],
    [
      'a batch',
      (id, response) => json(response, `[${resultOf(id, '{"content":[{"type":"text","text":"one of many"}]}')}]`),
      /one of many|\[tool error\]/,
    ],
    [
      'no such version',
      (id, response) => json(response, `{"jsonrpc":"1.0","id":${id},"result":{"content":[]}}`),
      /\[tool error\]/,
    ],
    [
      'two answers',
      (id, response) => {
        response.writeHead(200, { 'content-type': 'text/event-stream' })
        for (const text of ['first', 'second'])
          response.write(`data: ${resultOf(id, JSON.stringify({ content: [{ type: 'text', text }] }))}\n\n`)
        response.end()
      },
      /first/,
    ],
    ['an accepted', (_id, response) => void response.writeHead(202).end(), /\[tool error\]/],
    ['no head', (_id, response) => void response.socket?.destroy(), /\[tool error\]/],
    ['half a head', (_id, response) => void response.socket?.end('HTTP/1.1 200 OK\r\ncontent-ty'), /\[tool error\]/],
    [
      'a huge head',
      (_id, response) => void response.socket?.end(`HTTP/1.1 200 OK\r\nx-a: ${'a'.repeat(200_000)}\r\n\r\n`),
      /\[tool error\]/,
    ],
    [
      'drops that never end',
      (_id, response) => {
        response.writeHead(200, { 'content-type': 'text/event-stream' })
        const drip = setInterval(() => response.write(':\n\n'), 20)
        response.once('close', () => clearInterval(drip))
      },
      /\[tool error\] MCP tool did not answer in time/,
    ],
  ])('M-06 L-14 answered with %s is told to the model, and the next one is answered', async (_what, answer, told) => {
    answers = (id, response) => {
      answers = sends('{"content":[{"type":"text","text":"all good"}]}')
      answer(id, response)
    }
    rig.play(asksFor('good'), asksFor('good'), says('Fine.'))
    const { status, text } = await ask('messages')
    expect([status, text.includes('Fine.'), rig.refusals()]).toEqual([200, true, []])
    expect(JSON.stringify(rig.sent()[1]?.messages)).toMatch(told)
    expect(JSON.stringify(rig.sent()[2]?.messages)).toContain('all good')
    expect(calls).toHaveLength(2)
  })

  test('M-15 whose stream goes on after the answer is not called off: it was answered', async () => {
    answers = (id, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      response.write(`data: ${resultOf(id, '{"content":[{"type":"text","text":"all good"}]}')}\n\n`)
      // the next one takes longer than it would be waited for the end of this one
      answers = (again, late) => void setTimeout(() => sends('{"content":[]}')(again, late), 700)
    }
    rig.play(asksFor('good'), asksFor('good'), says('Fine.'))
    expect((await ask()).status).toBe(200)
    expect(JSON.stringify(rig.sent()[1]?.messages)).toContain('all good')
    expect(methods).toEqual(['initialize', 'notifications/initialized', 'tools/list', 'tools/call', 'tools/call'])
  })

  test('M-15 that is answered with requests without end is given up, and few of them are answered', async () => {
    answers = (_id, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      for (let id = 0; id < 5_000; id += 1)
        response.write(
          `data: {"jsonrpc":"2.0","id":"r${id}","method":"${id % 2 ? 'ping' : 'sampling/createMessage'}"}\n\n`,
        )
      response.end()
    }
    rig.play(asksFor('good'), says('Fine.'))
    expect((await ask()).status).toBe(200)
    expect(JSON.stringify(rig.sent()[1]?.messages)).toContain('[tool error]')
    expect(posts).toBeLessThan(100)
  })
})

test.each(dialects)('BR-019 arguments nested without measure are a matter of their call: %s', async (dialect) => {
  const text = `{"a":${'['.repeat(100_000)}${']'.repeat(100_000)}}`
  rig.play(callsTools([{ name: 'good', input: {}, text }]), asksFor('good'), says('Fine.'))
  const members = { stream: true, mcp_servers: [{ name: 'hostile', url: url() }] }
  const answer = await rig.post(dialect, members, { 'anthropic-beta': 'mcp-client-2025-11-20' })
  expect([answer.status, answer.text.includes('Fine.'), rig.refusals()]).toEqual([200, true, []])
  expect(calls.at(-1)).toEqual({ name: 'good', arguments: { a: 1 } })
})

test.each([
  ['is long', 'x'.repeat(8_000)],
  ['is no text of a header', 'caf\u00e9'],
  ['is like another header', 'a: b, authorization: Bearer x'],
])('M-15 a session whose id %s is a session, or none at all', async (_what, id) => {
  session = id
  rig.play(asksFor('good'), says('Fine.'))
  const { status, text } = await ask()
  expect([200, 502]).toContain(status)
  if (status === 200) expect([text.includes('Fine.'), calls.length]).toEqual([true, 1])
})
