import Anthropic from '@anthropic-ai/sdk'
import {
  callsTools,
  type FakeModel,
  fakeAnthropic,
  fakeGemini,
  fakeOpenAiResponses,
  type ScriptedReply,
  says,
} from '@tollgate/testing'
import OpenAI from 'openai'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { failureKinds } from '../../src/models/failure-kind.ts'
import { openModels } from '../../src/models/registry.ts'
import { silent } from '../brokers.ts'
import { openWith } from './gateway.ts'

const wires = ['openai-responses', 'gemini'] as const
type Wire = (typeof wires)[number]
type Body = Record<string, unknown>

/** What an answer said, whichever client read it. */
interface Heard {
  text: string
  thinking: string
  calls: { id: string; name: string; input: unknown }[]
  /** In the words of Chat. */
  finish: string
  tokens: number[]
  /** What the client sends back of it. */
  echo: Body[]
}

/** A client of one dialect, with a tool of its own and what belongs to it in that dialect's words. */
interface Client {
  /** The gateway's search, the client's `get_weather`. */
  tools: { search: Body; weather: Body }
  ask(model: string, streamed: boolean, more?: { tools?: Body[]; history?: Body[]; extra?: Body }): Promise<Heard>
  result(id: string, text: string): Body
}

const schema = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] }
const user = { role: 'user', content: 'Hello' }
/** Of Gemini one that demands its signatures back. */
const models: Record<Wire, string> = { 'openai-responses': 'openai-responses:m', gemini: 'gemini:gemini-3-pro' }

const openAi = () => new OpenAI({ baseURL: `${gateway.url}/api/v1`, apiKey: gateway.firstKey, maxRetries: 0 })

const chat: Client = {
  tools: {
    search: { type: 'otari_web_search' },
    weather: { type: 'function', function: { name: 'get_weather', parameters: schema } },
  },
  result: (id, text) => ({ role: 'tool', tool_call_id: id, content: text }),
  async ask(model, streamed, { tools, history = [], extra } = {}) {
    const body = { model, messages: [user, ...history], ...(tools && { tools }), ...extra } as never
    let thought = ''
    const stream = streamed ? openAi().chat.completions.stream(body) : undefined
    // the client puts together what it knows alone
    stream?.on('chunk', ({ choices: [choice] }) => {
      thought += (choice?.delta as { reasoning_content?: string } | undefined)?.reasoning_content ?? ''
    })
    const completion = stream
      ? await stream.finalChatCompletion()
      : await openAi().chat.completions.create({ ...(body as Body), stream: false } as never)
    const { choices, usage } = completion as OpenAI.ChatCompletion
    const [{ message, finish_reason }] = choices as [OpenAI.ChatCompletion.Choice]
    const calls = (message.tool_calls ?? []).flatMap((call) => (call.type === 'function' ? [call] : []))
    return {
      text: message.content ?? '',
      thinking: streamed ? thought : ((message as { reasoning_content?: string }).reasoning_content ?? ''),
      calls: calls.map(({ id, function: { name, arguments: args } }) => ({ id, name, input: parsed(args) })),
      finish: finish_reason,
      tokens: usage ? [usage.prompt_tokens, usage.completion_tokens] : [],
      echo: [message as unknown as Body],
    }
  },
}

const messages: Client = {
  tools: {
    search: { type: 'otari_web_search' },
    weather: { name: 'get_weather', input_schema: schema },
  },
  result: (id, text) => ({ role: 'user', content: [{ type: 'tool_result', tool_use_id: id, content: text }] }),
  async ask(model, streamed, { tools, history = [], extra } = {}) {
    const sdk = new Anthropic({ apiKey: gateway.firstKey, baseURL: `${gateway.url}/api`, maxRetries: 0 })
    const asked = {
      model,
      max_tokens: 2_000,
      messages: [user, ...history],
      ...(tools && { tools }),
      ...extra,
    }
    const body = asked as unknown as Anthropic.MessageCreateParamsNonStreaming
    const message = streamed ? await sdk.messages.stream(body).finalMessage() : await sdk.messages.create(body)
    const said = (type: string, member: string) =>
      message.content.flatMap((block) => (block.type === type ? [(block as unknown as Body)[member]] : []))
    const finish = { end_turn: 'stop', tool_use: 'tool_calls', max_tokens: 'length' } as Record<string, string>
    return {
      text: said('text', 'text').join(''),
      thinking: said('thinking', 'thinking').join(''),
      calls: message.content.flatMap((block) =>
        block.type === 'tool_use' ? [{ id: block.id, name: block.name, input: block.input }] : [],
      ),
      finish: finish[String(message.stop_reason)] ?? String(message.stop_reason),
      tokens: [message.usage.input_tokens, message.usage.output_tokens],
      echo: [{ role: 'assistant', content: message.content }],
    }
  },
}

const responses: Client = {
  tools: {
    search: { type: 'otari_web_search' },
    weather: { type: 'function', name: 'get_weather', parameters: schema, strict: false },
  },
  result: (call_id, output) => ({ type: 'function_call_output', call_id, output }),
  async ask(model, streamed, { tools, history = [], extra } = {}) {
    const body = {
      model,
      input: [user, ...history],
      store: false,
      ...(tools && { tools }),
      ...extra,
    } as never
    const answer = (
      streamed
        ? await openAi().responses.stream(body).finalResponse()
        : await openAi().responses.create({ ...(body as Body), stream: false } as never)
    ) as OpenAI.Responses.Response
    const calls = answer.output.flatMap((item) => (item.type === 'function_call' ? [item] : []))
    const cut = answer.status === 'incomplete' ? 'length' : undefined
    return {
      text: answer.output_text,
      thinking: answer.output
        .flatMap((item) => (item.type === 'reasoning' ? item.summary.map((s) => s.text) : []))
        .join(''),
      calls: calls.map(({ call_id: id, name, arguments: args }) => ({ id, name, input: parsed(args) })),
      finish: cut ?? (calls.length > 0 ? 'tool_calls' : 'stop'),
      tokens: answer.usage ? [answer.usage.input_tokens, answer.usage.output_tokens] : [],
      // what the client's own helper adds is nothing that an API takes back
      echo: (answer.output as unknown as Body[]).map(({ parsed_arguments: _, ...item }) => item),
    }
  },
}

const parsed = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return {}
  }
}

/** The same, whose answers are kept here and so are read on their way. */
const stored: Client = {
  ...responses,
  ask: (model, streamed, more = {}) =>
    responses.ask(model, streamed, { ...more, extra: { store: true, ...more.extra } }),
}

const clients = { chat, messages, responses, 'storing responses': stored }
const dialects = Object.keys(clients) as (keyof typeof clients)[]

let gateway: Awaited<ReturnType<typeof openWith>>
let fakes: Record<Wire | 'anthropic', FakeModel>
let script: ScriptedReply[] = []
const closes: (() => Promise<void>)[] = []

beforeAll(async () => {
  const next = (): ScriptedReply => script.shift() ?? { status: 500, body: 'the script is over' }
  fakes = {
    'openai-responses': await fakeOpenAiResponses(next),
    gemini: await fakeGemini(next, { signs: true }),
    anthropic: await fakeAnthropic(next),
  }
  const registry = openModels({
    providers: {
      'openai-responses': { type: 'openai-responses', apiBase: `${fakes['openai-responses'].url}/v1`, models: [] },
      gemini: { apiBase: `${fakes.gemini.url}/v1beta`, models: [] },
      anthropic: { apiBase: fakes.anthropic.url, models: [] },
      // the vendor's own, whose tools it runs itself
      openai: { apiBase: `${fakes['openai-responses'].url}/v1`, models: [] },
    },
    demo: false,
    log: silent,
  })
  const chain = { candidates: [{ model: models.gemini }, { model: 'anthropic:m' }], retryOn: failureKinds }
  gateway = await openWith(registry, {}, undefined, { policies: { chain }, aliases: {} })
  closes.push(gateway.close, registry.close, ...Object.values(fakes).map(({ close }) => close))
})
afterAll(async () => {
  for (const close of closes) await close()
})

/** What the models say next; what was asked and settled before is forgotten. */
function play(...replies: ScriptedReply[]) {
  script = replies
  for (const { requests, refusals } of Object.values(fakes)) for (const list of [requests, refusals]) list.length = 0
  for (const list of [gateway.brokers.settled, gateway.brokers.asked.search]) list.length = 0
}

const asksWeather = callsTools([{ name: 'get_weather', input: { city: 'Oslo' }, id: 'call_w' }])
/** Each vendor's own word for an answer that was too long. */
const cutShort: Record<Wire, string> = { 'openai-responses': 'max_output_tokens', gemini: 'MAX_TOKENS' }

describe.each(wires)('over the %s wire', (wire) => {
  describe.each(dialects)('a %s client', (dialect) => {
    const client = clients[dialect]
    const sent = (round: number) => fakes[wire].requests[round]?.text ?? ''
    const accepted = () => expect(fakes[wire].refusals).toEqual([])

    test.each([false, true])('reads a text, which is settled once; streamed: %s', async (streamed) => {
      play(says('Hellö wörld 😀'))
      const extra = dialect === 'chat' && streamed ? { stream_options: { include_usage: true } } : {}
      const heard = await client.ask(models[wire], streamed, { extra })
      expect(heard).toMatchObject({ text: 'Hellö wörld 😀', calls: [], finish: 'stop', tokens: [11, 7] })
      expect(gateway.brokers.settled).toMatchObject([
        { status: 'success', tokens: { input: 11, output: 7 }, estimated: false },
      ])
      accepted()
    })

    test.each([false, true])('has the gateway search, and sees the answer alone; streamed: %s', async (streamed) => {
      const look = callsTools([{ name: 'web_search', input: { query: 'python' }, id: 'call_s' }], {
        first: [{ thinking: 'I must search.', signature: `sig_${dialects.indexOf(dialect)}` }, { text: 'Let me see.' }],
      })
      play(look, says('Python.'))
      const heard = await client.ask(models[wire], streamed, { tools: [client.tools.search] })
      expect(heard).toMatchObject({ calls: [], finish: 'stop', thinking: 'I must search.' })
      expect(heard.text).toBe('Let me see.Python.')
      expect(gateway.brokers.asked.search).toHaveLength(1)
      expect(gateway.brokers.settled).toMatchObject([{ tokens: { input: 22, output: 14 }, lines: [{}] }])
      // L-18 what the model thought goes back with its call
      expect(sent(1)).toContain(`sig_${dialects.indexOf(dialect)}`)
      accepted()
    })

    test.each([false, true])(
      'runs its own tool after thinking, and sends everything back; streamed: %s',
      async (streamed) => {
        const first = {
          says: [
            { thinking: 'Weather?', signature: `w_${dialects.indexOf(dialect)}` },
            ...('says' in asksWeather ? asksWeather.says : []),
          ],
        }
        play(first, says('7 degrees.'))
        const tools = [client.tools.weather]
        const heard = await client.ask(models[wire], streamed, { tools })
        expect(heard).toMatchObject({ finish: 'tool_calls', thinking: 'Weather?' })
        expect(heard.calls).toMatchObject([{ name: 'get_weather', input: { city: 'Oslo' } }])
        const history = [...heard.echo, client.result(heard.calls[0]?.id ?? '', '7')]
        const second = await client.ask(models[wire], streamed, { tools, history })
        expect(second).toMatchObject({ text: '7 degrees.', finish: 'stop' })
        // BR-003 where the dialect has a place for it
        if (dialect !== 'chat') expect(sent(1)).toContain(`w_${dialects.indexOf(dialect)}`)
        expect(sent(1)).not.toContain('otari_')
        accepted()
      },
    )

    test.each([false, true])('BR-023 L-11 is told of an answer cut off in a call; streamed: %s', async (streamed) => {
      play({ ...asksWeather, finish: cutShort[wire] } as ScriptedReply)
      const heard = await client.ask(models[wire], streamed, { tools: [client.tools.weather] })
      expect(heard.finish).toBe('length')
      accepted()
    })

    test('gets a status for what fails before the first byte, and an error for what fails after it', async () => {
      play({
        status: 429,
        headers: { 'retry-after': '7', 'content-type': 'application/json' },
        body: '{"error":{"message":"slow down"}}',
      })
      await expect(client.ask(models[wire], true)).rejects.toMatchObject({ status: 429 })
      expect(gateway.brokers.settled).toMatchObject([{ status: 'error' }])
      play(says('Hello there, you all', { cutAfterBytes: 900, piece: 3 }))
      await expect(client.ask(models[wire], true)).rejects.toThrow()
      await expect.poll(() => gateway.brokers.settled).toMatchObject([{ status: 'error' }])
    })
  })
})

describe('the vendor’s own tools of a Responses client', () => {
  const item = {
    type: 'code_interpreter_call',
    id: 'ci_1',
    status: 'completed',
    code: 'print(1)',
    container_id: 'cntr_1',
    outputs: [{ type: 'logs', logs: '1' }],
  }
  const events = [
    { type: 'response.code_interpreter_call.in_progress' },
    { type: 'response.code_interpreter_call_code.delta', delta: 'print(1)', obfuscation: 'x' },
    { type: 'response.code_interpreter_call_code.done', code: 'print(1)' },
    { type: 'response.code_interpreter_call.completed' },
  ]
  const found = {
    item: {
      type: 'web_search_call',
      id: 'ws_1',
      status: 'completed',
      action: { type: 'search', query: 'q', unheard: 1 },
    },
    events: [{ type: 'response.web_search_call.searching' }],
  }

  test.each(['web_search', 'web_search_preview', 'code_interpreter'])(
    'S-05 X-15 %s goes to the provider, and nothing runs here',
    async (type) => {
      play({ native: [found], says: [{ text: 'Done.' }] })
      const declared = { type, ...(type === 'code_interpreter' && { container: { type: 'auto' } }) }
      const body = { model: 'openai:gpt-5', input: 'Hello', tools: [declared] } as never
      const answer = (await openAi().responses.create(body)) as OpenAI.Responses.Response
      expect(answer.output[0]).toEqual(found.item)
      expect(fakes['openai-responses'].requests[0]?.body.tools).toEqual([declared])
      expect(fakes['openai-responses'].refusals).toEqual([])
      expect(gateway.brokers.asked.search).toEqual([])
    },
  )

  test('R-53 their items and events come unchanged and in place beside a tool that runs here, and go back as they came', async () => {
    const searches = callsTools([{ name: 'web_search', input: { query: 'x' }, id: 'call_x' }], {
      first: [{ text: 'First.' }],
    })
    play(
      { ...searches, native: [{ item, events }] } as ScriptedReply,
      { native: [found], says: [{ thinking: 'Hm.' }, { text: 'Done.' }] },
      says('Sure.'),
    )
    const tools = [{ type: 'code_interpreter', container: { type: 'auto' } }, { type: 'otari_web_search' }]
    const stream = openAi().responses.stream({ model: 'openai:gpt-5', input: 'Hello', tools, store: false } as never)
    const heard: { type: string; output_index?: number; sequence_number: number }[] = []
    stream.on('event', (event) => heard.push(event as never))
    const answer = await stream.finalResponse()
    expect(answer.output.map(({ type }) => type)).toEqual([
      'code_interpreter_call',
      'message',
      'web_search_call',
      'web_search_call',
      'reasoning',
      'message',
    ])
    expect(answer.output[0]).toEqual(item)
    expect(answer.output[3]).toEqual(found.item)
    expect(answer.output[4]).toMatchObject({ id: 'rs_up_2_0', encrypted_content: 'enc_2_0' })
    expect(answer.output[5]).toMatchObject({ id: 'msg_up_2_1', phase: 'final_answer' })
    expect(heard.map(({ sequence_number }) => sequence_number)).toEqual(heard.map((_, at) => at))
    const ofCode = heard.filter(({ type }) => type.startsWith('response.code_interpreter'))
    expect(ofCode).toMatchObject(events.map((event) => ({ ...event, output_index: 0, item_id: 'ci_1' })))
    expect(heard.find(({ type }) => type === 'response.web_search_call.searching')).toMatchObject({ output_index: 3 })
    expect(JSON.stringify(answer)).not.toContain('call_x')

    const input = [user, ...answer.output, { role: 'user', content: 'Sure?' }]
    await openAi().responses.create({ model: 'openai:gpt-5', input, tools, store: false } as never)
    const { requests, refusals } = fakes['openai-responses']
    expect(refusals).toEqual([])
    const shown = requests[2]?.body.input as Body[]
    expect(shown.filter(({ type }) => type !== 'message')).toEqual([
      user,
      item,
      found.item,
      answer.output[4],
      input.at(-1),
    ])
    expect(requests[1]?.body.input).toMatchObject([
      user,
      item,
      { type: 'message', phase: 'final_answer' },
      { type: 'function_call', call_id: 'call_x' },
      { type: 'function_call_output', call_id: 'call_x' },
    ])
  })

  test('a conversation that is stored here goes on by its id, and is shown to the provider whole', async () => {
    const searches = callsTools([{ name: 'web_search', input: { query: 'x' }, id: 'call_x' }], {
      first: [{ thinking: 'Hm.' }],
    })
    play(searches, says('Done.'), says('Sure.'))
    const tools = [{ type: 'otari_web_search' }]
    const first = await openAi().responses.create({ model: 'openai:gpt-5', input: 'Hello', tools } as never)
    const next = { model: 'openai:gpt-5', input: 'Sure?', tools, previous_response_id: (first as { id: string }).id }
    await openAi().responses.create(next as never)
    const { requests, refusals } = fakes['openai-responses']
    expect(refusals).toEqual([])
    expect(requests.map(({ body }) => [body.store, body.previous_response_id])).toEqual(
      Array(3).fill([false, undefined]),
    )
    const [second, third] = [requests[1], requests[2]].map((request) => request?.body.input as Body[])
    expect(third?.slice(0, second?.length)).toEqual(second)
    expect(third?.map(({ type, role }) => type ?? role)).toEqual([
      'message',
      'reasoning',
      'function_call',
      'function_call_output',
      'message',
      'message',
    ])
  })
})

test.each([false, true])(
  'BR-048 a page that a Responses provider cites is cited to a Chat client, streamed: %s',
  async (streamed) => {
    const cites = (url: string, start_index: number) => ({
      type: 'url_citation',
      url,
      title: 't',
      start_index,
      end_index: start_index + 2,
    })
    const part = (text: string, annotations: Body[]) => ({ type: 'output_text', text, annotations })
    const content = [part('One. ', []), part('A. B.', [cites('https://u1', 0), cites('https://u2', 3)])]
    const output = [{ type: 'message', id: 'msg_1', role: 'assistant', content }]
    play({
      body: JSON.stringify({ id: 'r', status: 'completed', output }),
      headers: { 'content-type': 'application/json' },
    })
    const body = { model: models['openai-responses'], messages: [user], stream: streamed } as never
    const found: Body[] = []
    if (streamed) {
      const chunks = (await openAi().chat.completions.create(
        body,
      )) as unknown as AsyncIterable<OpenAI.ChatCompletionChunk>
      for await (const { choices } of chunks)
        found.push(...(((choices[0]?.delta as Body | undefined)?.annotations as Body[] | undefined) ?? []))
    } else {
      const answer = (await openAi().chat.completions.create(body)) as OpenAI.ChatCompletion
      found.push(...((answer.choices[0]?.message.annotations ?? []) as unknown as Body[]))
    }
    expect(found).toEqual([
      { type: 'url_citation', url_citation: { url: 'https://u1', title: 't', start_index: 5, end_index: 7 } },
      { type: 'url_citation', url_citation: { url: 'https://u2', title: 't', start_index: 8, end_index: 10 } },
    ])
  },
)

describe('a Messages client of a Responses provider that searches by itself', () => {
  const search = (query: string, more: Body = {}) => ({
    type: 'web_search_call',
    id: `ws_${query}`,
    status: 'completed',
    action: { type: 'search', query, ...more },
  })
  const cites = (n: number, start_index: number, end_index: number) => ({
    type: 'url_citation',
    url: `https://u${n}`,
    title: `t${n}`,
    start_index,
    end_index,
  })
  const says = (text: string, annotations: Body[] = []) => ({
    type: 'message',
    id: 'msg_1',
    role: 'assistant',
    status: 'completed',
    content: [{ type: 'output_text', text, annotations }],
  })
  const response = (output: Body[]) => ({ id: 'r', object: 'response', status: 'completed', output })
  const wholeOf = (output: Body[]): ScriptedReply => ({
    body: JSON.stringify(response(output)),
    headers: { 'content-type': 'application/json' },
  })
  /** Words first, and what they rest on behind them, as the vendor tells it. */
  function streamOf(output: Body[]): ScriptedReply {
    const events: Body[] = [{ type: 'response.created', response: { ...response([]), status: 'in_progress' } }]
    for (const [output_index, item] of output.entries()) {
      const place = { output_index, item_id: item.id, content_index: 0 }
      const [part] = (item.content ?? []) as { text: string; annotations: Body[] }[]
      events.push({ type: 'response.output_item.added', output_index, item: { ...item, ...(part && { content: [] }) } })
      for (const delta of part?.text ?? '') events.push({ type: 'response.output_text.delta', ...place, delta })
      for (const [annotation_index, annotation] of (part?.annotations ?? []).entries())
        events.push({ type: 'response.output_text.annotation.added', ...place, annotation_index, annotation })
      events.push({ type: 'response.output_item.done', output_index, item })
    }
    events.push({ type: 'response.completed', response: response(output) })
    const body = events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join('')
    return { body, headers: { 'content-type': 'text/event-stream' } }
  }
  const pairOf = (query: string, pages: [string, string][]) => [
    { type: 'server_tool_use', name: 'web_search', input: { query } },
    {
      type: 'web_search_tool_result',
      content: pages.map(([url, title]) => ({ type: 'web_search_result', url, title })),
    },
  ]
  const page = (n: number) => ({ type: 'web_search_result_location', url: `https://u${n}`, title: `t${n}` })
  const u = (n: number): [string, string] => [`https://u${n}`, `t${n}`]

  test.each<[string, Body[], object[]]>([
    [
      'one page',
      [search('q'), says('A. B.', [cites(1, 0, 2)])],
      [...pairOf('q', [u(1)]), { text: 'A.', citations: [page(1)] }, { text: ' B.' }],
    ],
    [
      'two searches, and words that share their pages',
      [
        search('p', { sources: [{ type: 'url', url: 'https://u9' }] }),
        search('q'),
        says('A. B. C', [cites(2, 3, 5), cites(1, 0, 4), cites(3, 6, 7)]),
      ],
      [
        ...pairOf('p', [['https://u9', 'https://u9']]),
        ...pairOf('q', [u(2), u(1), u(3)]),
        { text: 'A. B.', citations: [page(1), page(2)] },
        { text: ' ' },
        { text: 'C', citations: [page(3)] },
      ],
    ],
    ['nothing found', [search('q'), says('No.')], [...pairOf('q', []), { text: 'No.' }]],
    [
      'a place that is none',
      [search('q'), says('A 😀', [cites(1, 9, 4), cites(2, 3, 99)])],
      [...pairOf('q', [u(1), u(2)]), { text: 'A 😀', citations: [page(1), page(2)] }],
    ],
    ['no words', [search('q')], pairOf('q', [])],
    ['pages without a search', [says('A. B.', [cites(1, 0, 2)])], [{ text: 'A. B.', citations: [page(1)] }]],
  ])(
    'BR-048 is shown the search, and each piece of the text with what it rests on: %s',
    async (_what, output, blocks) => {
      const whole = wholeOf(output)
      const streamed = streamOf(output)
      for (const [client, upstream] of [
        [false, whole],
        [true, whole],
        [false, streamed],
        [true, streamed],
      ] as const) {
        play(upstream)
        const heard = await messages.ask(models['openai-responses'], client)
        expect((heard.echo[0] as Body).content).toMatchObject(blocks)
        expect(((heard.echo[0] as Body).content as Body[]).length).toBe(blocks.length)
        expect(heard.finish).toBe('stop')
      }
    },
  )

  test('BR-048 BR-061 nothing of it goes to a provider when it comes back, its own or another', async () => {
    play(wholeOf([search('q'), says('A. B.', [cites(1, 0, 2)])]))
    const { echo } = await messages.ask(models['openai-responses'], false)
    const history = [...echo, { role: 'user', content: 'Which source?' }]
    for (const [model, wire] of [
      [models['openai-responses'], 'openai-responses'],
      ['anthropic:m', 'anthropic'],
    ] as const) {
      play({ says: [{ text: 'u1.' }] })
      expect((await messages.ask(model, false, { history })).text).toBe('u1.')
      expect(fakes[wire].refusals).toEqual([])
      const sent = JSON.stringify(fakes[wire].requests[0]?.body)
      expect(sent).not.toMatch(/otari_|web_search|citations/)
      expect(sent).toMatch(/"A\.".*" B\."|A\. B\./)
    }
  })

  test('BR-048 BR-003 its provider sees its own search again when our tools go on', async () => {
    const asks = { type: 'function_call', id: 'fc_1', call_id: 'c1', name: 'web_search', arguments: '{"query":"red"}' }
    play(streamOf([search('q'), says('A.', [cites(1, 0, 2)]), asks]), { says: [{ text: 'Done.' }] })
    const tools = [{ type: 'otari_web_search' }]
    const heard = await messages.ask(models['openai-responses'], true, { tools })
    const kinds = ((heard.echo[0] as Body).content as Body[]).map(({ type }) => type)
    expect(kinds).toEqual(['server_tool_use', 'web_search_tool_result', 'text', 'text'])
    const input = fakes['openai-responses'].requests[1]?.body.input as Body[]
    expect(input.map(({ type }) => type)).toEqual([
      'message',
      'web_search_call',
      'message',
      'function_call',
      'function_call_output',
    ])
  })
})

describe('code that Gemini runs', () => {
  const ran = [
    { item: { executableCode: { language: 'PYTHON', code: 'print(1)' } } },
    { item: { codeExecutionResult: { outcome: 'OUTCOME_OK', output: '1' } } },
    { item: { inlineData: { mimeType: 'image/png', data: 'AA==' } } },
  ]
  const tools = (round: number) => fakes.gemini.requests[round]?.body.tools

  test.each([false, true])('X-19 X-20 X-21 X-22 is a list in a Chat message; streamed: %s', async (streamed) => {
    play({ native: ran, says: [{ text: 'It is 1.' }] }, says('Fine.'))
    for (const declared of [{ type: 'code_execution' }, { code_execution: {} }]) {
      play({ native: ran, says: [{ text: 'It is 1.' }] })
      const heard = await chat.ask(models.gemini, streamed, { tools: [declared] })
      expect(heard.text).toBe('It is 1.')
      expect(tools(0)).toEqual([{ codeExecution: {} }])
      if (streamed) continue
      expect(heard.echo[0]?.extra_content).toEqual({
        google: {
          code_execution: [
            { executable_code: { language: 'PYTHON', code: 'print(1)' } },
            { code_execution_result: { outcome: 'OUTCOME_OK', output: '1' } },
            { code_execution_output: { mime_type: 'image/png', data: 'AA==' } },
          ],
        },
      })
    }
    expect(fakes.gemini.refusals).toEqual([])
  })

  test.each([false, true])(
    'X-19 X-22 is a pair of blocks on Messages, and goes back as parts; streamed: %s',
    async (streamed) => {
      play({ native: ran.slice(0, 2), says: [{ text: 'It is 1.' }] }, says('Sure.'))
      const declared = [{ type: 'code_execution_20250825', name: 'code_execution' }]
      const heard = await messages.ask(models.gemini, streamed, { tools: declared })
      const [{ content }] = heard.echo as [{ content: Body[] }]
      expect(content).toMatchObject([
        { type: 'server_tool_use', name: 'code_execution', input: { code: 'print(1)' } },
        { type: 'code_execution_tool_result', content: { stdout: '1', stderr: '', return_code: 0 } },
        { type: 'text', text: 'It is 1.' },
      ])
      expect(content[1]?.tool_use_id).toBe(content[0]?.id)
      const next = { role: 'user', content: 'Sure?' }
      await messages.ask(models.gemini, streamed, { tools: declared, history: [...heard.echo, next] })
      expect(tools(0)).toEqual([{ codeExecution: {} }])
      expect(fakes.gemini.requests[1]?.body.contents).toMatchObject([
        {},
        { role: 'model', parts: [ran[0]?.item, ran[1]?.item, { text: 'It is 1.' }] },
        {},
      ])
      expect(fakes.gemini.refusals).toEqual([])
    },
  )

  test('X-21 a fallback to another vendor gets the declaration as the client wrote it', async () => {
    play({ status: 503, body: '{}' }, says('From Claude.'))
    const declared = [{ type: 'code_execution_20250825', name: 'code_execution' }]
    const heard = await messages.ask('chain', false, { tools: declared })
    expect(heard.text).toBe('From Claude.')
    expect([tools(0), fakes.anthropic.requests[0]?.body.tools]).toEqual([[{ codeExecution: {} }], declared])
    expect(fakes.anthropic.refusals).toEqual([])
  })

  test('a tool of another vendor’s own is refused by its name', async () => {
    play()
    await expect(
      messages.ask(models.gemini, false, { tools: [{ type: 'bash_20250124', name: 'bash' }] }),
    ).rejects.toMatchObject({ status: 400, message: expect.stringContaining('bash_20250124') })
  })
})

describe('the fast lane of a Responses client', () => {
  const lines = [
    { type: 'response.created', response: { id: 'resp_1', model: 'm-2026', output: [], unheard: 1 } },
    { type: 'response.output_item.added', output_index: 0, item: { id: 'msg_1', type: 'message', content: [] } },
    { type: 'response.output_text.delta', output_index: 0, content_index: 0, delta: 'Hé 😀', obfuscation: 'zz' },
    { type: 'response.unheard_of', deep: { a: [1, 'é'] } },
  ]
  const usage = { input_tokens: 9, output_tokens: 4, input_tokens_details: { cached_tokens: 5 } }
  const end = {
    type: 'response.completed',
    response: { id: 'resp_1', model: 'm-2026', status: 'completed', output: [], usage },
  }
  const frame = (event: Body) => `event: ${String(event.type)}\ndata: ${JSON.stringify(event)}\n\n`
  const streamOf = (...events: Body[]): ScriptedReply => ({
    headers: { 'content-type': 'text/event-stream' },
    body: events.map(frame).join(''),
  })
  const renamed = (event: Body): Body =>
    event.response ? { ...event, response: { ...(event.response as Body), model: 'openai-responses:m' } } : event
  const post = async (more: Body) => {
    const body = JSON.stringify({ model: 'openai-responses:m', input: 'Hello', store: false, ...more })
    const headers = { authorization: `Bearer ${gateway.firstKey}`, 'content-type': 'application/json' }
    const answer = await fetch(`${gateway.url}/api/v1/responses`, { method: 'POST', headers, body })
    return { status: answer.status, text: await answer.text() }
  }

  test('T-33 R-03 R-63 events go on as they came, but for the model’s name; usage is read in passing', async () => {
    play({ ...streamOf(...lines, end), byteByByte: true } as ScriptedReply)
    const { status, text } = await post({ stream: true })
    expect(status).toBe(200)
    expect(text).toBe(`${[...lines, end].map(renamed).map(frame).join('')}data: [DONE]\n\n`)
    expect(gateway.brokers.settled).toMatchObject([
      { status: 'success', tokens: { input: 4, cacheRead: 5, output: 4 }, estimated: false },
    ])
  })

  test('a whole answer keeps every member but the model’s name', async () => {
    const whole = { ...end.response, output: [{ type: 'unheard_of', a: 1 }], reasoning: { effort: 'low' } }
    play({ body: JSON.stringify(whole) } as ScriptedReply)
    const { status, text } = await post({})
    expect(status).toBe(200)
    expect(JSON.parse(text)).toEqual({ ...whole, model: 'openai-responses:m' })
    expect(gateway.brokers.settled).toMatchObject([{ tokens: { input: 4, cacheRead: 5, output: 4 } }])
  })

  test('BR-031 R-62 a response that fails is a status before the first byte, and an error event after it', async () => {
    const failed = {
      type: 'response.failed',
      response: { status: 'failed', error: { code: 'rate_limit_exceeded', message: 'slow' } },
    }
    play(streamOf(lines[0] as Body, failed))
    expect(await post({ stream: true })).toMatchObject({ status: 429, text: expect.stringContaining('slow') })
    play(streamOf(...lines, failed))
    const broken = await post({ stream: true })
    expect(broken.status).toBe(200)
    expect(broken.text.split('\n\n').slice(-2)).toEqual([
      'event: error\ndata: {"error":{"message":"An error occurred during streaming","type":"server_error"}}',
      '',
    ])
    expect(broken.text).not.toMatch(/response\.failed|\[DONE\]/)
    play(streamOf(...lines))
    expect((await post({ stream: true })).text).toContain('An error occurred during streaming')
    expect(gateway.brokers.settled).toMatchObject([{ status: 'error' }])
  })

  test('a server that does not stream although it was asked is streamed all the same', async () => {
    const output = [
      {
        type: 'message',
        id: 'msg_1',
        role: 'assistant',
        content: [{ type: 'output_text', text: 'Hi', annotations: [] }],
      },
    ]
    play({
      body: JSON.stringify({ ...end.response, output }),
      headers: { 'content-type': 'application/json' },
    } as ScriptedReply)
    const { text } = await post({ stream: true })
    expect(text).toContain('"delta":"Hi"')
    expect(text).toContain('event: response.completed')
    expect(text.endsWith('data: [DONE]\n\n')).toBe(true)
  })

  test('an answer that is kept, or goes on from one, does not take it', async () => {
    play(says('One.'), says('Two.'))
    const first = JSON.parse((await post({ store: true })).text) as { id: string }
    expect(first.id).toMatch(/^resp_[0-9a-f]{32}$/)
    const second = JSON.parse((await post({ previous_response_id: first.id })).text) as Body
    expect(second).toMatchObject({ previous_response_id: first.id, store: false })
    expect(fakes['openai-responses'].requests[1]?.body).not.toHaveProperty('previous_response_id')
  })
})

describe('BR-017 thoughts of one provider, where the conversation goes on with another', () => {
  const all = [models['openai-responses'], models.gemini, 'anthropic:m']
  const pairs = all.flatMap((first) =>
    all.filter((second) => second !== first).map((second) => [first, second] as const),
  )
  const thinks: ScriptedReply = {
    says: [{ thinking: 'Weather?', signature: 'theirs' }, ...('says' in asksWeather ? asksWeather.says : [])],
  }

  test.each(pairs)('from %s to %s', async (first, second) => {
    for (const client of [messages, responses, stored]) {
      play(thinks, says('7 degrees.'))
      const tools = [client.tools.weather]
      const heard = await client.ask(first, false, { tools })
      const id = heard.calls[0]?.id ?? ''
      // what a Responses client echoes of its own provider's reasoning is its own matter
      const echo = heard.echo.filter(({ encrypted_content: own }) => !String(own ?? 'otari').startsWith('theirs'))
      const answer = await client.ask(second, false, { tools, history: [...echo, client.result(id, '7')] })
      expect(answer.text).toBe('7 degrees.')
      for (const { refusals } of Object.values(fakes)) expect(refusals).toEqual([])
    }
  })

  test('what is stored here of it is left out', async () => {
    play(thinks, says('7 degrees.'))
    const tools = [responses.tools.weather]
    const asked = { model: models['openai-responses'], input: 'Hello', tools } as never
    const first = (await openAi().responses.create(asked)) as OpenAI.Responses.Response
    expect(first.output[0]).toMatchObject({ type: 'reasoning', encrypted_content: 'theirs' })
    const input = [responses.result('call_w', '7')]
    const next = { model: 'openai:m', input, tools, previous_response_id: first.id } as never
    await openAi().responses.create(next)
    const { requests, refusals } = fakes['openai-responses']
    expect(refusals).toEqual([])
    expect(requests[1]?.body.input).toMatchObject([
      { type: 'message' },
      { type: 'function_call' },
      { type: 'function_call_output' },
    ])
  })
})
