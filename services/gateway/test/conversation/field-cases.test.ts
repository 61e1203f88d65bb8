import { permitsHost } from '@tollgate/http'
import { callsTools, type FakeJson, says } from '@tollgate/testing'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { dialects } from './matrix-clients.ts'
import { openMatrix, type Round } from './matrix-rig.ts'
import { upTo, wireNames, wires } from './matrix-wires.ts'

let matrix: Awaited<ReturnType<typeof openMatrix>>
beforeAll(async () => {
  matrix = await openMatrix()
}, 60_000)
afterAll(() => matrix.close())

const OFTEN = { interval: 5 }
const search = (query: string, id = `call_${query}`) => ({ name: 'web_search', input: { query }, id })
const everyPair = dialects.flatMap((dialect) => wireNames.map((wire) => [dialect, wire] as const))
const stream = { status: 200, headers: { 'content-type': 'text/event-stream' } }

/** Forty pieces of text, after which nothing is counted any more. */
const story = Array.from({ length: 40 }, (_, at) => `word ${String(at).padStart(2, '0')} `).join('')
const brokenOff =
  (how: 'cutAfterBytes' | 'stallAfterBytes'): Round =>
  (wire, body) => {
    const tokens = { input: 700, output: 1, cacheRead: 200, cacheWrite: 100, reasoning: 0 }
    const answer = { says: [{ text: `${story}END` }], piece: 8, usage: wires[wire].usage(tokens) }
    const text = upTo(wires[wire].stream(answer, body), story.slice(-8))
    return { ...stream, body: text, [how]: Buffer.byteLength(text) }
  }
/** Wires that count what went in before the answer begins. */
const countsFirst: ReadonlySet<string> = new Set(['anthropic', 'gemini'])

describe.each(everyPair)('a %s client over the %s wire', (dialect, wire) => {
  const lanes = [true, false]

  test('BR-139 owes what went in and what came out of an answer that broke off before it was counted', async () => {
    for (const tools of lanes) {
      const talk = matrix.talk(dialect, wire, [brokenOff('cutAfterBytes')])
      await expect(talk.ask(true, tools ? { tools: [talk.client.tools.search] } : {})).rejects.toThrow()
      await expect.poll(talk.settled, OFTEN).toMatchObject([{ status: 'error', estimated: true }])
      const [row] = talk.settled()
      expect(row?.tokens.output).toBeGreaterThan(60)
      expect(row?.tokens.output).toBeLessThan(160)
      if (countsFirst.has(wire)) {
        const { input = 0, cacheRead = 0, cacheWrite = 0 } = row?.tokens ?? {}
        expect([input + cacheWrite, cacheRead]).toEqual([800, 200])
      } else expect(row?.tokens.input).toBeGreaterThan(0)
    }
  })

  test('BR-136 owes what it heard until it left, and the search before that', async () => {
    const talk = matrix.talk(dialect, wire, [callsTools([search('red')]), brokenOff('stallAfterBytes')])
    const leaving = new AbortController()
    const asked = talk.ask(true, {
      tools: [talk.client.tools.search],
      signal: leaving.signal,
      begun: () => leaving.abort(),
    })
    await expect(asked).rejects.toThrow()
    await expect
      .poll(talk.settled, OFTEN)
      .toMatchObject([{ status: 'cancelled', estimated: true, lines: [{ tool: 'web_search', outcome: 'ok' }] }])
    const [row] = talk.settled()
    // the first round was counted
    expect(row?.tokens.output).toBeGreaterThan(7)
    const { input = 0, cacheWrite = 0 } = row?.tokens ?? {}
    expect(input + cacheWrite).toBeGreaterThan(countsFirst.has(wire) ? 800 : 11)
  })

  test('BR-134 has a tool of its own whose name is nearly one of the gateway’s', async () => {
    for (const [streamed, name] of [
      [true, 'WebSearch'],
      [false, 'web-search'],
      [false, 'Web_Fetch'],
      [true, 'web_search_2'],
    ] as const) {
      const talk = matrix.talk(dialect, wire, [callsTools([{ name, input: { query: 'q' }, id: 'call_own' }])])
      const own = JSON.parse(JSON.stringify(talk.client.tools.weather).replace('get_weather', name))
      const heard = await talk.ask(streamed, { tools: [own, talk.client.tools.search] })
      expect(heard.calls).toEqual([{ id: 'call_own', name, input: { query: 'q' } }])
      await expect.poll(talk.settled, OFTEN).toMatchObject([{ tokens: { input: 11, output: 7 }, lines: [] }])
    }
  })

  const keyword = {
    chat: { type: 'otari_web_search' },
    messages: { type: 'web_search_20250305', name: 'web_search', max_uses: 1 },
    responses: { type: 'web_search' },
  }[dialect]
  const headers = { 'otari-web-search': 'otari' }
  const OURS = /^(server_tool_use|web_search_tool_result|web_search_call)$/
  type Items = { type?: string; content?: unknown }[]
  const inside = (echo: Items, keep: (item: Items[number]) => boolean): Items =>
    echo
      .filter(keep)
      .map((item) => (Array.isArray(item.content) ? { ...item, content: item.content.filter(keep) } : item))

  test('BR-061 BR-068 goes on from what it was shown of a search, whole, in part or not at all', async () => {
    const turns: Record<string, (echo: Items) => Items> = {
      whole: (echo) => echo,
      'without what it does not know': (echo) => inside(echo, ({ type = '' }) => !OURS.test(type)),
      'with half of a pair': (echo) => inside(echo, ({ type }) => type !== 'web_search_tool_result'),
      'with the other half': (echo) => inside(echo, ({ type }) => type !== 'server_tool_use'),
      'in other words': (echo) => JSON.parse(JSON.stringify(echo).replaceAll('Found.', 'Lost.')),
    }
    for (const [how, edited] of Object.entries(turns)) {
      const talk = matrix.talk(dialect, wire, [
        callsTools([search('red'), search('blue')], { first: [{ text: 'Let me see.' }] }),
        says('Found.'),
        says('That one.'),
      ])
      const first = await talk.ask(true, { tools: [keyword], headers })
      const history = [talk.first, ...edited(first.echo), talk.client.user('Which source said that?')]
      const second = await talk.ask(true, { tools: [keyword], headers, history: history as never })
      expect(second.text, how).toBe('That one.')
      const shown = JSON.stringify(talk.sent()[2])
      expect(shown).not.toMatch(/otari_srvtoolu|web_search_tool_result|web_search_call|"server_tool_use"/)
      await expect.poll(talk.settled, OFTEN).toMatchObject([{}, { lines: [] }])
    }
    expect(matrix.refusals()).toEqual([])
  })
})

describe.each(wireNames)('over the %s wire', (wire) => {
  const fetches = (url: string, id: string) => ({ name: 'web_fetch', input: { url }, id })

  test.each([true, false])(
    'BR-072 F-09 F-10 the vendor’s fetch by a dated keyword runs here, within its own limits; streamed: %s',
    async (streamed) => {
      const { brokers } = matrix.gateway
      const { asked, fetch: fetchPage } = brokers
      // the worker judges hosts before it asks for any
      brokers.fetch = async (input, signal) =>
        permitsHost(input.policy, new URL(input.url).hostname)
          ? fetchPage(input, signal)
          : { status: 'failed', failure: 'domain_disallowed', label: 'builtin:builtin_fetch' }
      onTestFinished(() => {
        brokers.fetch = fetchPage
      })
      for (const [first, second, uses] of [
        ['https://docs.example/a', 'https://evil.example/', 5],
        ['https://docs.example/a', 'https://docs.example/b', 1],
        ['https://sub.docs.example/a', 'https://docs.example.evil.test/', undefined],
        ['https://docs.example/a', 'http://169.254.169.254@evil.example/', undefined],
      ] as const) {
        const talk = matrix.talk('messages', wire, [
          callsTools([fetches(first, 'call_1')]),
          callsTools([fetches(second, 'call_2')]),
          says('Read.'),
        ])
        const before = asked.fetch.length
        const keyword = {
          type: 'web_fetch_20250910',
          name: 'web_fetch',
          allowed_domains: ['docs.example'],
          max_content_tokens: 50,
          ...(uses !== undefined && { max_uses: uses }),
        }
        const { text } = await talk.ask(streamed, { tools: [keyword], headers: { 'otari-web-fetch': 'otari' } })
        expect(text).toBe('Read.')
        const permitted = asked.fetch
          .slice(before)
          .filter(({ url, policy }) => permitsHost(policy, new URL(url).hostname))
        expect(permitted.map(({ url }) => url)).toEqual([first])
        const [one, two, three] = talk.sent().map((body) => JSON.stringify(body))
        expect(one).not.toContain('web_fetch_20250910')
        expect(two).toContain('Page text')
        expect(three).toContain('[tool error]')
        const outcomes = talk.settled().flatMap(({ lines }) => lines.map(({ outcome }) => outcome))
        expect(outcomes).toEqual(['ok', 'error'])
      }
      expect(matrix.refusals()).toEqual([])
    },
  )

  test.each(dialects)('BR-074 a %s client is shown no citation of what a model only says', async (dialect) => {
    for (const streamed of [true, false]) {
      const talk = matrix.talk(dialect, wire, [
        callsTools([search('red')]),
        says('As https://site.test/1 and [2](https://invented.example/) tell.'),
      ])
      const { text, raw } = await talk.ask(streamed, { tools: [talk.client.tools.search] })
      expect(text).toContain('invented.example')
      const inCitations = JSON.stringify(raw).match(/"(url_citation|web_search_result_location)"/g)
      expect(inCitations).toBeNull()
    }
  })
})

describe('BR-075 BR-048 the citations of an answer', () => {
  const cite = (n: number) => ({
    type: 'web_search_result_location',
    url: `https://u${n}`,
    title: `t${n}`,
    cited_text: `c${n}`,
    encrypted_index: 'e',
  })
  /** Two that come with words, two behind them, one with the last words, and one of them again. */
  const blocks: { text: string; cited: number[] }[] = [
    { text: 'A. ', cited: [1, 2] },
    { text: 'B. ', cited: [] },
    { text: 'C.', cited: [3, 4, 1, 5] },
  ]
  const head = { id: 'msg_c', type: 'message', role: 'assistant', model: 'c', stop_sequence: null }
  const usage = { input_tokens: 3, output_tokens: 3 }
  const whole: Round = {
    status: 200,
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({
      ...head,
      content: blocks.map(({ text, cited }) => ({ type: 'text', text, citations: cited.map(cite) })),
      stop_reason: 'end_turn',
      usage,
    }),
  }
  const events = [
    { type: 'message_start', message: { ...head, content: [], stop_reason: null, usage } },
    ...blocks.flatMap(({ text, cited }, index) => [
      { type: 'content_block_start', index, content_block: { type: 'text', text: '', citations: [] } },
      { type: 'content_block_delta', index, delta: { type: 'text_delta', text } },
      ...cited.map((n) => ({
        type: 'content_block_delta',
        index,
        delta: { type: 'citations_delta', citation: cite(n) },
      })),
      { type: 'content_block_stop', index },
    ]),
    { type: 'message_delta', delta: { stop_reason: 'end_turn', stop_sequence: null }, usage: { output_tokens: 3 } },
    { type: 'message_stop' },
  ]
  const streamedBody = events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join('')
  const answer: Round = (_wire, body: FakeJson) =>
    body.stream === true ? { ...stream, body: streamedBody } : (whole as Exclude<Round, (...all: never) => unknown>)

  test.each(dialects)('reach a %s client all, once as often as they were given, streamed or not', async (dialect) => {
    const heard = []
    for (const streamed of [true, false]) {
      const talk = matrix.talk(dialect, 'anthropic', [callsTools([search('red')]), answer])
      const { text, raw } = await talk.ask(streamed, { tools: [talk.client.tools.search] })
      expect(text).toBe('A. B. C.')
      const cited = Array.from(JSON.stringify(raw).matchAll(/"url":"https:\/\/u(\d)"/g), ([, n]) => Number(n))
      const spans = Array.from(
        JSON.stringify(raw).matchAll(/"start_index":(\d+),"end_index":(\d+)/g),
        ([, from, to]) => [Number(from), Number(to)],
      )
      expect(cited).toEqual([1, 2, 3, 4, 1, 5])
      heard.push(spans)
    }
    expect(heard[1]).toEqual(heard[0])
    if (dialect !== 'messages') expect(heard[0]).toHaveLength(6)
  })
})
