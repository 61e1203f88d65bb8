import type { TokenCounts } from '@tollgate/contracts'
import { callsTools, type Said, type ScriptedAnswer, says } from '@tollgate/testing'
import { afterAll, beforeAll, describe, type ExpectStatic, test } from 'vitest'
import { type clients, type DialectName, dialects } from './matrix-clients.ts'
import { openMatrix, type Round } from './matrix-rig.ts'
import { type WireName, wireNames, wires } from './matrix-wires.ts'

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
  'a text': { rounds: [says('Hellö wörld 😀 "漢字"\n\\n')], text: 'Hellö wörld 😀 "漢字"\n\\n', finish: 'stop' },
  'a text in single characters': { rounds: [says('a 😀 b', { piece: 1 })], text: 'a 😀 b', finish: 'stop' },
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
  'BR-147 BR-002 tokens of a cache': {
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
  const tokens = given.tokens ?? counts(11 * rounds.length, 7 * rounds.length)
  expect(heard.tokens).toEqual(dialect === 'messages' ? { ...tokens, reasoning: undefined } : tokens)
  await expect.poll(talk.settled, OFTEN).toHaveLength(1)
  const [row] = talk.settled()
  expect(row).toMatchObject({ status: 'success', error: null, tokens, estimated: false })
  expect(row?.lines.map(({ tool }) => tool)).toEqual(ran)
}

/** The stream of an answer up to the frame that says `text`. */
const begun = (wire: WireName, answer: ScriptedAnswer, body: object, text: string): string => {
  const whole = wires[wire].stream(answer, body as Record<string, unknown>)
  return whole.slice(0, whole.indexOf('\n\n', whole.indexOf(text)) + 2)
}
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
      const alone = matrix.talk(dialect, wire, [round])
      const after = matrix.talk(dialect, wire, [callsTools([search('red')]), round])
      const { search: ours, weather: theirs } = alone.client.tools
      for (const [talk, tools, ran] of [
        [alone, [theirs], 0],
        [after, [ours, theirs], 1],
      ] as const) {
        const broken = talk.ask(true, { tools: [...tools] })
        await expect(broken).rejects.toThrow()
        await expect(broken).rejects.not.toThrow(/secret-host/)
        await expect.poll(talk.settled, OFTEN).toMatchObject([{ status: 'error', lines: Array(ran).fill({}) }])
      }
    },
  )

  test.for(Object.entries(refusals))(
    'by a status of %s before the first byte',
    async ([, { round, status, streams }], { expect }) => {
      for (const streamed of streams ? [true] : [true, false]) {
        for (const tools of [undefined, ['search'] as const]) {
          const talk = matrix.talk(dialect, wire, [round])
          const refused = talk.ask(streamed, { tools: tools?.map((name) => talk.client.tools[name]) })
          const want = status === 503 && dialect === 'messages' ? 529 : status
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
