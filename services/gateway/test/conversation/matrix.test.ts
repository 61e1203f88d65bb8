import type { TokenCounts } from '@tollgate/contracts'
import { callsTools, type Said, type ScriptedAnswer, says } from '@tollgate/testing'
import { afterAll, beforeAll, describe, type ExpectStatic, test } from 'vitest'
import { dialectOfWire } from '../../src/models/provider.ts'
import { type clients, type DialectName, dialects } from './matrix-clients.ts'
import { openMatrix, type Round } from './matrix-rig.ts'
import { upTo, type WireName, wireNames, wires } from './matrix-wires.ts'

let matrix: Awaited<ReturnType<typeof openMatrix>>
beforeAll(async () => {
  matrix = await openMatrix()
}, 60_000)
afterAll(() => matrix.close())

const OFTEN = { interval: 5 }

type ToolName = keyof (typeof clients)['chat']['tools']

/** A conversation's only answer, said to every dialect over every wire. */
interface Case {
  rounds: Round[]
  tools?: ToolName[]
  text: string
  thinking?: string
  calls?: { id: string; name: string; input: unknown }[]
  finish: 'stop' | 'tool_calls' | 'length'
  /** Tools that ran here, as the usage row has them. */
  ran?: string[]
  /** What upstreams reported, all rounds together; the stand-ins' own count of each round when absent. */
  tokens?: TokenCounts
}

const counts = (input: number, output: number, cacheRead = 0, cacheWrite = 0, reasoning = 0): TokenCounts => ({
  input,
  output,
  cacheRead,
  cacheWrite,
  reasoning,
})
const counted =
  (tokens: TokenCounts, answer: Round): Round =>
  (wire, body) => ({
    ...(typeof answer === 'function' ? answer(wire, body) : answer),
    usage: wires[wire].usage(tokens),
  })
const cutShort =
  (answer: Round): Round =>
  (wire, body) => ({ ...(typeof answer === 'function' ? answer(wire, body) : answer), finish: wires[wire].cutShort })

const search = (query: string, id = `call_${query}`) => ({ name: 'web_search', input: { query }, id })
const fetches = (id = 'call_fetch') => ({ name: 'web_fetch', input: { url: 'https://site.test/a' }, id })
const weather = (city: string, id = `call_${city}`) => ({ name: 'get_weather', input: { city }, id })
const thought = (thinking: string): Said => ({ thinking, signature: `signed:${thinking}` })

const cases: Record<string, Case> = {
  'a text': {
    rounds: [says('Hellö wörld 😀 "漢字"\n\\n', { piece: 1 })],
    text: 'Hellö wörld 😀 "漢字"\n\\n',
    finish: 'stop',
  },
  'a text with tools that are not called': {
    rounds: [says('No need.')],
    tools: ['search', 'weather'],
    text: 'No need.',
    finish: 'stop',
  },
  'one gateway tool': {
    rounds: [callsTools([search('red')]), says('Found.')],
    tools: ['search'],
    text: 'Found.',
    finish: 'stop',
    ran: ['web_search'],
  },
  'one gateway tool after words': {
    rounds: [callsTools([search('red')], { first: [{ text: 'Let me look. ' }] }), says('Found.')],
    tools: ['search', 'weather'],
    text: 'Let me look. Found.',
    finish: 'stop',
    ran: ['web_search'],
  },
  'BR-062 two gateway tools in one turn': {
    rounds: [callsTools([search('red'), fetches()]), says('Both.')],
    tools: ['search', 'fetch'],
    text: 'Both.',
    finish: 'stop',
    ran: ['web_search', 'web_fetch'],
  },
  'BR-066 BR-027 one gateway tool twice, then again, with words between': {
    rounds: [
      callsTools([search('red'), search('blue')], { first: [{ text: 'One. ' }] }),
      callsTools([search('red', 'call_again')], { first: [{ text: 'Two. ' }] }),
      says('Three.'),
    ],
    tools: ['search'],
    text: 'One. Two. Three.',
    finish: 'stop',
    ran: ['web_search', 'web_search', 'web_search'],
  },
  'a client tool': {
    rounds: [callsTools([weather('São "Paulo" 😀', 'call_w')], { piece: 2 })],
    tools: ['weather'],
    text: '',
    calls: [weather('São "Paulo" 😀', 'call_w')],
    finish: 'tool_calls',
  },
  'two client tools after words, beside a gateway tool': {
    rounds: [callsTools([weather('Oslo'), weather('Rome')], { first: [{ text: 'Hm. ' }] })],
    tools: ['search', 'weather'],
    text: 'Hm. ',
    calls: [weather('Oslo'), weather('Rome')],
    finish: 'tool_calls',
  },
  'BR-024 a client tool without arguments': {
    rounds: [callsTools([{ name: 'get_weather', input: {}, id: 'call_none' }])],
    tools: ['weather'],
    text: '',
    calls: [{ name: 'get_weather', input: {}, id: 'call_none' }],
    finish: 'tool_calls',
  },
  'BR-055 BR-060 a mixed turn, the gateway’s call first': {
    rounds: [callsTools([search('red'), weather('Oslo')], { first: [{ text: 'Both. ' }] })],
    tools: ['search', 'weather'],
    text: 'Both. ',
    calls: [weather('Oslo')],
    finish: 'tool_calls',
    ran: ['web_search'],
  },
  'BR-055 BR-060 a mixed turn, the gateway’s calls around the client’s': {
    rounds: [callsTools([search('red'), weather('Oslo'), fetches(), weather('Rome'), search('blue')])],
    tools: ['weather', 'search', 'fetch'],
    text: '',
    calls: [weather('Oslo'), weather('Rome')],
    finish: 'tool_calls',
    ran: ['web_search', 'web_fetch', 'web_search'],
  },
  'a mixed turn after a round of the gateway’s own': {
    rounds: [
      callsTools([search('red')], { first: [{ text: 'One. ' }] }),
      callsTools([weather('Oslo'), search('blue')]),
    ],
    tools: ['weather', 'search'],
    text: 'One. ',
    calls: [weather('Oslo')],
    finish: 'tool_calls',
    ran: ['web_search', 'web_search'],
  },
  'BR-015 thinking, then a gateway tool, then thinking and words': {
    rounds: [
      callsTools([search('red')], { first: [thought('I must search 😀. '), { text: 'Wait. ' }] }),
      { says: [thought('Now I know.'), { text: 'Red.' }] },
    ],
    tools: ['search'],
    text: 'Wait. Red.',
    thinking: 'I must search 😀. Now I know.',
    finish: 'stop',
    ran: ['web_search'],
  },
  'thinking, then a client tool': {
    rounds: [callsTools([weather('Oslo')], { first: [thought('Weather?')] })],
    tools: ['weather', 'search'],
    text: '',
    thinking: 'Weather?',
    calls: [weather('Oslo')],
    finish: 'tool_calls',
  },
  'BR-023 L-11 an answer cut short in its words': {
    rounds: [cutShort(says('And so on and'))],
    text: 'And so on and',
    finish: 'length',
  },
  'BR-023 L-11 an answer cut short in a call of the client’s': {
    rounds: [cutShort(callsTools([weather('Oslo')]))],
    tools: ['weather', 'search'],
    text: '',
    calls: [weather('Oslo')],
    finish: 'length',
  },
  'BR-023 L-11 an answer cut short in a call of the gateway’s, which does not run': {
    rounds: [cutShort(callsTools([search('red')], { first: [{ text: 'I will' }] }))],
    tools: ['search'],
    text: 'I will',
    finish: 'length',
  },
  'BR-144 BR-147 BR-002 tokens of a cache': {
    rounds: [counted(counts(200, 20, 1_000, 30, 5), says('Cached.'))],
    text: 'Cached.',
    finish: 'stop',
    tokens: counts(200, 20, 1_000, 30, 5),
  },
  'BR-147 BR-058 tokens of a cache over rounds': {
    rounds: [
      counted(counts(200, 20, 0, 1_000, 5), callsTools([search('red')])),
      counted(counts(7, 3, 1_200, 0, 2), says('Cached.')),
    ],
    tools: ['search'],
    text: 'Cached.',
    finish: 'stop',
    ran: ['web_search'],
    tokens: counts(207, 23, 1_200, 1_000, 7),
  },
}

/** Where bytes go through as they are, as long as no tool runs here. */
const hasFastLane = (dialect: DialectName, wire: WireName): boolean => dialectOfWire[wire] === dialect
const everyPair = dialects.flatMap((dialect) => wireNames.map((wire) => [dialect, wire] as const))

describe.concurrent.each(everyPair)('a %s client over the %s wire reads', (dialect, wire) => {
  describe.each(Object.entries(cases))('%s', (_name, given) => {
    test.for([true, false])('streamed: %s', (streamed, { expect }) => holds(expect, dialect, wire, streamed, given))
  })
})

async function holds(
  expect: ExpectStatic,
  dialect: DialectName,
  wire: WireName,
  streamed: boolean,
  given: Case,
): Promise<void> {
  const { rounds, tools, text, thinking = '', calls = [], finish, ran = [] } = given
  const talk = matrix.talk(dialect, wire, [...rounds])
  const heard = await talk.ask(streamed, { tools: tools?.map((name) => talk.client.tools[name]) })
  expect(heard).toMatchObject({ text, thinking, finish })
  expect(heard.calls).toEqual(finish === 'length' ? heard.calls : calls)
  expect(heard.calls.map(({ id, name }) => [id, name])).toEqual(calls.map(({ id, name }) => [id, name]))
  expect(talk.left()).toBe(0)
  const reported = given.tokens ?? counts(11 * rounds.length, 7 * rounds.length)
  const tokens = wires[wire].counts?.(reported) ?? reported
  expect(heard.tokens).toEqual(dialect === 'messages' ? { ...tokens, reasoning: undefined } : tokens)
  await expect.poll(talk.settled, OFTEN).toHaveLength(1)
  const [row] = talk.settled()
  expect(row).toMatchObject({ status: 'success', error: null, tokens, estimated: false })
  expect(row?.lines.map(({ tool }) => tool)).toEqual(ran)
}

/** The stream of an answer up to the frame that says `text`. */
const begun = (wire: WireName, answer: ScriptedAnswer, body: object, text: string): string =>
  upTo(wires[wire].stream(answer, body as Record<string, unknown>), text)
const stream = { status: 200, headers: { 'content-type': 'text/event-stream' } }
const half: ScriptedAnswer = { says: [{ text: 'Half an answer' }], piece: 50 }
const halfCall: ScriptedAnswer = {
  says: [{ text: 'Half an answer' }, { call: weather('Oslo and Rome') }],
  piece: 50,
}

/** How an upstream fails once its answer is on its way. */
const breaks: Record<string, Round> = {
  'says so': (wire, body) => ({ ...stream, body: begun(wire, half, body, 'Half an answer') + wires[wire].failing }),
  'says so in a call': (wire, body) => ({
    ...stream,
    body: begun(wire, halfCall, body, 'Oslo and Rome') + wires[wire].failing,
  }),
  'just ends': (wire, body) => ({ ...stream, body: begun(wire, half, body, 'Half an answer') }),
  'ends in half a frame': (wire, body) => ({
    ...stream,
    body: begun(wire, half, body, 'Half an answer') + wires[wire].failing.slice(0, -3),
  }),
  'just ends in a call': (wire, body) => ({ ...stream, body: begun(wire, halfCall, body, 'Oslo and Rome') }),
  'is torn down': (wire, body) => {
    const text = begun(wire, half, body, 'Half an answer')
    return { ...stream, body: text, cutAfterBytes: Buffer.byteLength(text) }
  },
  'says what cannot be read': (wire, body) => ({
    ...stream,
    body: `${begun(wire, half, body, 'Half an answer')}event: x\ndata: {"type":\n\n`,
  }),
}

/** How it fails before that, and the status that the client gets; in a whole answer where `whole`. */
const refusals: Record<string, { round: Round; status: number; streams?: boolean }> = {
  'an error of its own': { round: { status: 500, body: '{"error":{"message":"at secret-host"}}' }, status: 502 },
  'too many requests': {
    round: { status: 429, headers: { 'content-type': 'application/json' }, body: '{"error":{"message":"slow down"}}' },
    status: 429,
  },
  'a page': {
    round: { status: 200, headers: { 'content-type': 'text/html' }, body: '<html>login</html>' },
    status: 502,
  },
  'nothing at all': { round: { ...stream, body: '' }, status: 502 },
  'BR-018 pings alone': {
    round: (wire) => ({ ...stream, body: wires[wire].silence.repeat(3) }),
    status: 502,
    streams: true,
  },
  'BR-031 BR-035 an error as its first event': {
    round: (wire) => ({ ...stream, body: wires[wire].silence + wires[wire].failing }),
    status: 503,
    streams: true,
  },
}

describe.concurrent.each(everyPair)('a %s client over the %s wire is told', (dialect, wire) => {
  test.for(Object.entries(breaks))(
    'BR-001 R-62 that an answer broke off whose upstream %s',
    async ([, round], { expect }) => {
      const before = [[callsTools([search('red')])], ...(hasFastLane(dialect, wire) ? [[]] : [])]
      for (const rounds of before) {
        const talk = matrix.talk(dialect, wire, [...rounds, round])
        const { search: ours, weather: theirs } = talk.client.tools
        const broken = talk.ask(true, { tools: rounds.length > 0 ? [ours, theirs] : [theirs] })
        await expect(broken).rejects.toThrow()
        await expect(broken).rejects.not.toThrow(/secret-host/)
        await expect.poll(talk.settled, OFTEN).toMatchObject([{ status: 'error', lines: rounds.map(() => ({})) }])
      }
    },
  )

  test.for(Object.entries(refusals))(
    'by a status of %s before the first byte',
    async ([, { round, status, streams }], { expect }) => {
      for (const streamed of streams || !hasFastLane(dialect, wire) ? [true] : [true, false]) {
        for (const tools of hasFastLane(dialect, wire) ? [false, true] : [true]) {
          const talk = matrix.talk(dialect, wire, [round])
          const refused = talk.ask(streamed, tools ? { tools: [talk.client.tools.search] } : {})
          const want = status === 503 && dialect === 'messages' ? wires[wire].overloaded : status
          await expect(refused).rejects.toMatchObject({ status: want })
          await expect(refused).rejects.not.toThrow(/secret-host/)
          await expect.poll(talk.settled, OFTEN).toMatchObject([{ status: 'error' }])
        }
      }
    },
  )

  test('by a status that a whole answer was cut off', async ({ expect }) => {
    const talk = matrix.talk(dialect, wire, [says('Half an answer', { cutAfterBytes: 60 })])
    await expect(talk.ask(false)).rejects.toMatchObject({ status: 502 })
    await expect.poll(talk.settled, OFTEN).toMatchObject([{ status: 'error' }])
  })
})

/** What a prompt cache of a vendor goes by, in its order: what is offered, what is ordered, and what was said. */
function promptOf(body: Record<string, unknown>): { offered: string; said: string[] } {
  const { tools, functionDeclarations, system, systemInstruction, instructions } = body
  return {
    offered: JSON.stringify([tools, functionDeclarations, system, systemInstruction, instructions]),
    said: ((body.messages ?? body.input ?? body.contents) as object[]).map((message) => JSON.stringify(message)),
  }
}

describe.concurrent.each(everyPair)(
  'the prompts of a %s client over the %s wire begin with the same bytes',
  (dialect, wire) => {
    /** Each prompt goes on from the one before it, of which its last `but` messages are written anew. */
    function goesOn(expect: ExpectStatic, prompts: ReturnType<typeof promptOf>[], but = 0): void {
      for (const [at, prompt] of prompts.entries()) {
        const before = prompts[at - 1]
        if (before === undefined) continue
        expect(prompt.offered).toBe(before.offered)
        const kept = before.said.slice(0, before.said.length - but)
        expect(kept.length).toBeGreaterThan(0)
        expect(prompt.said.slice(0, kept.length)).toEqual(kept)
        expect(prompt.said.length).toBeGreaterThan(kept.length)
      }
    }
    const orders = { chat: 'system', messages: 'system', responses: 'instructions' }[dialect]
    const ordered = (history: object[]) =>
      dialect === 'chat'
        ? { history: [{ role: 'system', content: 'Be brief.' }, ...history] as never }
        : { history: history as never, extra: { [orders]: 'Be brief.' } }

    test('from turn to turn, without tools and with its own', async ({ expect }) => {
      for (const streamed of [true, false]) {
        const talk = matrix.talk(dialect, wire, [
          callsTools([weather('Oslo', 'call_w')], { first: [thought('Hm. '), { text: 'Let me see.' }] }),
          says('7 degrees.'),
          says('Sure.'),
        ])
        const tools = [talk.client.tools.weather]
        const one = await talk.ask(streamed, { tools, ...ordered([talk.first]) })
        const called = [talk.first, ...one.echo, talk.client.result('call_w', '7')]
        const two = await talk.ask(streamed, { tools, ...ordered(called) })
        await talk.ask(streamed, { tools, ...ordered([...called, ...two.echo, talk.client.user('Sure?')]) })
        expect(talk.sent()).toHaveLength(3)
        goesOn(expect, talk.sent().map(promptOf))
      }
    })

    test('T-29 BR-055 from round to round and from turn to turn, with the gateway’s tools and what is said of them', async ({
      expect,
    }) => {
      const talk = matrix.talk(dialect, wire, [
        callsTools([search('red')], { first: [thought('Hm. '), { text: 'Let me see. ' }] }),
        callsTools([search('blue'), weather('Oslo', 'call_w')], { first: [{ text: 'And more. ' }] }),
        says('7 degrees.'),
        callsTools([search('green')]),
        says('Green.'),
      ])
      const { search: ours, fetch: also, weather: theirs } = talk.client.tools
      const tools = [ours, theirs, also]
      const one = await talk.ask(true, { tools, ...ordered([talk.first]) })
      expect(one.calls).toMatchObject([{ id: 'call_w' }])
      const called = [talk.first, ...one.echo, talk.client.result(one.calls[0]?.id ?? '', '7')]
      const two = await talk.ask(true, { tools, ...ordered(called) })
      const three = [...called, ...two.echo, talk.client.user('And green?')]
      const last = await talk.ask(true, { tools, ...ordered(three) })
      expect(last.text).toBe('Green.')
      const prompts = talk.sent().map(promptOf)
      expect(prompts).toHaveLength(5)
      // the whole of a mixed turn is shown again, with what the gateway found in it
      goesOn(expect, prompts)
    })
  },
)

const late = says('late', { delayMs: 20_000 })
const stalled: Round = (wire, body) => {
  const text = begun(wire, half, body, 'Half an answer')
  return { ...stream, body: text, stallAfterBytes: Buffer.byteLength(text) }
}

/** Where a client may leave, told by what has happened until then. */
const leavings: Record<string, { rounds: Round[]; when: 'asked' | 'begun' | 'running' | 'asked again'; open: 0 | 1 }> =
  {
    'before the first byte': { rounds: [late], when: 'asked', open: 1 },
    'amid the words': { rounds: [stalled], when: 'begun', open: 1 },
    'while a tool runs': { rounds: [callsTools([search('hang')]), says('Never.')], when: 'running', open: 0 },
    'between the rounds': { rounds: [callsTools([search('red')]), late], when: 'asked again', open: 1 },
  }

describe.each(everyPair)('BR-160 a %s client over the %s wire that leaves', (dialect, wire) => {
  const cases = Object.entries(leavings).flatMap(([where, given]) => [
    { where, given, ours: true },
    ...(hasFastLane(dialect, wire) && given.rounds.length === 1 ? [{ where, given, ours: false }] : []),
  ])

  test('ends upstream and tools at once wherever it does, and is settled', async ({ expect }) => {
    const { brokers } = matrix.gateway
    const searching = brokers.search
    let running = 0
    let stopped = 0
    brokers.search = (input, signal) =>
      input.query !== 'hang'
        ? searching(input, signal)
        : new Promise((_resolve, reject) => {
            running += 1
            signal.addEventListener('abort', () => {
              stopped += 1
              reject(signal.reason)
            })
          })
    const closedBefore = matrix.fakes[wire].aborted()
    await Promise.all(
      cases.map(async ({ where, given: { rounds, when }, ours }) => {
        const talk = matrix.talk(dialect, wire, [...rounds])
        const leaving = new AbortController()
        const seen: string[] = []
        const tools = ours ? [talk.client.tools.search] : undefined
        const asked = talk.ask(true, { tools, signal: leaving.signal, begun: () => seen.push(where) })
        const told = asked.then(
          () => 'answered',
          () => 'left',
        )
        const reached = {
          asked: () => talk.sent().length === 1,
          begun: () => seen.length > 0,
          running: () => running === 1,
          'asked again': () => talk.sent().length === 2,
        }[when]
        await expect.poll(reached, { ...OFTEN, timeout: 10_000 }).toBe(true)
        leaving.abort()
        expect(await told, where).toBe('left')
        await expect.poll(talk.settled, OFTEN).toMatchObject([{ status: 'cancelled', error: 'cancelled' }])
        expect(talk.sent()).toHaveLength(when === 'asked again' ? 2 : 1)
      }),
    )
    await expect.poll(() => [running, stopped], OFTEN).toEqual([1, 1])
    const open = cases.filter(({ given }) => given.open === 1).length
    await expect.poll(() => matrix.fakes[wire].aborted() - closedBefore, OFTEN).toBe(open)
    brokers.search = searching
  })
})
