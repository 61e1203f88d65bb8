import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Fault } from '@tollgate/contracts'
import { localFiles, newFileId } from '@tollgate/files'
import {
  callsTools,
  type FakeModel,
  fakeAnthropic,
  fakeOpenAi,
  type ModelScript,
  type ScriptedReply,
  says,
} from '@tollgate/testing'
import OpenAI from 'openai'
import type { Response as Answer, ResponseInputItem, ResponseStreamEvent } from 'openai/resources/responses/responses'
import { afterAll, describe, expect, onTestFinished, test } from 'vitest'
import { openModels } from '../../src/models/registry.ts'
import { hit, silent } from '../brokers.ts'
import { openWith } from './gateway.ts'

const wires = ['openai-chat', 'anthropic'] as const
type Wire = (typeof wires)[number]
type Body = Record<string, unknown>

const PATH = '/api/v1/responses'
const search = { type: 'otari_web_search' }
const weather = {
  type: 'function',
  name: 'get_weather',
  parameters: { type: 'object', properties: { city: { type: 'string' } } },
  strict: false,
}
const asks = (query: string, first: string[] = []): ScriptedReply =>
  callsTools([{ name: 'web_search', input: { query }, id: `call_${query}` }], {
    first: first.map((text) => ({ text })),
  })
const asksWeather = callsTools([{ name: 'get_weather', input: { city: 'Oslo' }, id: 'call_w' }])

interface Gateway extends Awaited<ReturnType<typeof openWith>> {
  fake: FakeModel
  script: ModelScript
}

/** A gateway whose one provider, `up`, is a strict stand-in for a vendor; what it says is decided test by test. */
async function open(wire: Wire): Promise<Gateway> {
  const script: ModelScript = (body, round) => {
    const { script: now } = gateway
    const reply = typeof now === 'function' ? now(body, round) : now[round]
    return reply ?? { status: 500, body: `there is no round ${round + 1}` }
  }
  const fake = wire === 'anthropic' ? await fakeAnthropic(script) : await fakeOpenAi(script, { compatible: true })
  const up =
    wire === 'anthropic'
      ? ({ type: 'anthropic', apiBase: fake.url, models: [] } as const)
      : ({ type: 'openai-compatible', apiBase: `${fake.url}/v1`, models: [] } as const)
  const models = openModels({ providers: { up }, demo: false, log: silent })
  const folder = await mkdtemp(join(tmpdir(), 'responses-'))
  const gateway: Gateway = { ...(await openWith(models, {}, await localFiles(folder))), fake, script: [] }
  closes.push(gateway.close, models.close, fake.close, () => rm(folder, { recursive: true }))
  return gateway
}

const closes: (() => Promise<void>)[] = []
const gateways: Partial<Record<Wire, Promise<Gateway>>> = {}
afterAll(async () => {
  for (const close of closes) await close()
})

/** The vendor's own client before the gateway of this file, which has forgotten what the tests before asked of it. */
async function start(wire: Wire, script: ModelScript) {
  gateways[wire] ??= open(wire)
  const gateway = await gateways[wire]
  const { fake, brokers, firstKey } = gateway
  gateway.script = script
  for (const list of [fake.requests, fake.refusals, brokers.settled, brokers.asked.search]) list.length = 0
  const client = new OpenAI({ baseURL: `${gateway.url}/api/v1`, apiKey: firstKey, maxRetries: 0 })
  const body = (more: Body): Body => ({ model: 'up:m', input: 'Hello', ...more })

  return {
    ...gateway,
    client,
    body,
    async ask(streamed: boolean, more: Body = {}, headers: Record<string, string> = {}): Promise<Answer> {
      if (!streamed)
        return client.responses.create({ ...body(more), stream: false } as never, { headers }) as Promise<Answer>
      const stream = client.responses.stream(body(more) as never, { headers })
      const events: ResponseStreamEvent[] = []
      stream.on('event', (event) => events.push(event as ResponseStreamEvent))
      const final = (await stream.finalResponse()) as Answer
      checkEvents(events, final)
      return final
    },
    /** What the upstream was shown of the conversation. */
    shown: (round: number) => fake.requests[round]?.body.messages as Body[],
  }
}

/** as the client itself sees them. */
function checkEvents(events: ResponseStreamEvent[], final: Answer): void {
  expect(events.map(({ sequence_number }) => sequence_number)).toEqual(events.map((_, at) => at))
  const last = events.at(-1)
  expect(events.filter(({ type }) => /^response\.(completed|incomplete|failed)$/.test(type))).toEqual([last])
  const done = events.flatMap((event) => (event.type === 'response.output_item.done' ? [event] : []))
  const inOrder = done.sort((one, other) => one.output_index - other.output_index)
  expect(inOrder.map(({ output_index }) => output_index)).toEqual(inOrder.map((_, at) => at))
  const ids = (items: { id?: string | null }[]) => items.map(({ id }) => id)
  expect(ids(final.output as never)).toEqual(ids(inOrder.map(({ item }) => item) as never))
  const created = events[0]
  expect(created?.type === 'response.created' && created.response.id).toBe(final.id)
}

const kinds = ({ output }: Answer): string[] => output.map(({ type }) => type)
const callsIn = ({ output }: Answer) =>
  output.flatMap((item) =>
    item.type === 'function_call' ? [{ id: item.call_id, name: item.name, args: item.arguments }] : [],
  )
/** The way a client goes on by itself: everything it got, sent back. */
const echo = ({ output }: Answer): ResponseInputItem[] => output as ResponseInputItem[]
const toolOutput = (call_id: string, output: string) => ({ type: 'function_call_output', call_id, output })
const said = (answer: Answer): string => answer.output_text

describe.each(wires)('over the %s wire', (wire) => {
  describe.each([false, true])('streamed: %s', (streamed) => {
    test('R-03 the vendor’s client reads a text answer, which is settled once', async () => {
      const { ask, fake, brokers } = await start(wire, [says('Hellö wörld 😀')])
      const answer = await ask(streamed, { instructions: 'Be brief.', temperature: 0.5, max_output_tokens: 50 })
      expect(answer).toMatchObject({
        object: 'response',
        status: 'completed',
        model: 'up:m',
        output: [{ type: 'message', role: 'assistant', content: [{ type: 'output_text', text: 'Hellö wörld 😀' }] }],
        usage: { input_tokens: 11, output_tokens: 7, total_tokens: 18 },
        instructions: 'Be brief.',
        store: true,
      })
      expect(answer.id).toMatch(/^resp_[0-9a-f]{32}$/)
      expect(fake.refusals).toEqual([])
      expect(brokers.settled).toMatchObject([
        { status: 'success', endpoint: PATH, tokens: { input: 11, output: 7 }, estimated: false },
      ])
    })

    test('R-01 R-50 P-48 two searches in one turn and one in the next are items before the answer', async () => {
      const both = callsTools([
        { name: 'web_search', input: { query: 'one' }, id: 'call_1' },
        { name: 'web_search', input: { query: 'two' }, id: 'call_2' },
      ])
      const { ask, fake, brokers, shown } = await start(wire, [
        both,
        asks('three', ['Once more.']),
        says('Python [1].'),
      ])
      const answer = await ask(streamed, { tools: [search], include: ['web_search_call.action.sources'] })
      expect(kinds(answer)).toEqual(['web_search_call', 'web_search_call', 'message', 'web_search_call', 'message'])
      const { url } = hit(1)
      expect(answer.output[0]).toMatchObject({
        id: expect.stringMatching(/^otari_ws_[0-9a-f]{32}$/),
        status: 'completed',
        action: { type: 'search', query: 'one', sources: [{ type: 'url', url }, {}] },
      })
      expect(answer.usage).toMatchObject({ input_tokens: 33, output_tokens: 21, total_tokens: 54 })
      expect(brokers.settled).toMatchObject([{ tokens: { input: 33, output: 21 }, lines: [{}, {}, {}] }])
      expect(fake.refusals).toEqual([])
      expect(JSON.stringify(shown(2))).toContain('call_three')
      expect(JSON.stringify(answer)).not.toContain('call_')
    })

    test('R-02 a client runs its own tool, and sends everything back', async () => {
      const { ask, fake, client, body } = await start(wire, [asksWeather, says('7 degrees.')])
      const first = await ask(streamed, { tools: [weather], store: false, tool_choice: 'required' })
      expect(first.status).toBe('completed')
      expect(callsIn(first)).toEqual([{ id: 'call_w', name: 'get_weather', args: '{"city":"Oslo"}' }])
      const input = [{ role: 'user', content: 'Hello' }, ...echo(first), toolOutput('call_w', '7')]
      const second = (await client.responses.create(body({ tools: [weather], store: false, input }) as never)) as Answer
      expect(said(second)).toBe('7 degrees.')
      expect(fake.refusals).toEqual([])
      expect(fake.requests[1]?.text).not.toContain('_otari_')
    })

    test('L-12 BR-055 a mixed turn hands over the client’s call alone, and the next shows both with both results', async () => {
      const mixed = callsTools([
        { name: 'web_search', input: { query: 'x' }, id: 'call_a' },
        { name: 'get_weather', input: { city: 'Oslo' }, id: 'call_b' },
      ])
      const tools = [search, weather]
      const goOn = async (next: (first: Answer) => Body) => {
        const { ask, fake, brokers, shown } = await start(wire, [mixed, says('7 degrees.')])
        const first = await ask(streamed, { tools })
        expect(kinds(first).toSorted()).toEqual(['function_call', 'web_search_call'])
        expect(callsIn(first).map(({ id }) => id)).toEqual(['call_b'])
        await ask(streamed, { tools, ...next(first) })
        expect(fake.refusals).toEqual([])
        expect(brokers.asked.search).toHaveLength(1)
        return shown(1)
      }
      const output = toolOutput('call_b', '7')
      const named = await goOn(({ id }) => ({ previous_response_id: id, input: [output] }))
      const echoed = await goOn((first) => ({ input: [{ role: 'user', content: 'Hello' }, ...echo(first), output] }))
      expect(echoed).toEqual(named)
      for (const id of ['call_a', 'call_b']) expect(JSON.stringify(named).split(`"${id}"`)).toHaveLength(3)
    })

    test('BR-023 L-11 an answer cut off in a call is incomplete, and so is the call', async () => {
      const cut = wire === 'anthropic' ? 'max_tokens' : 'length'
      const half = { ...asksWeather, finish: cut } as ScriptedReply
      const { ask, fake } = await start(wire, [half, says('Again.')])
      const answer = await ask(streamed, { tools: [weather] })
      expect(answer).toMatchObject({ status: 'incomplete', incomplete_details: { reason: 'max_output_tokens' } })
      expect(answer.output).toMatchObject([{ type: 'function_call', status: 'incomplete' }])
      // what was cut off is nothing that the next turn would have to answer
      await ask(streamed, { tools: [weather], previous_response_id: answer.id, input: 'Go on' })
      expect(fake.refusals).toEqual([])
    })

    test('BR-147 cached tokens are told inside the input', async () => {
      const reported =
        wire === 'anthropic'
          ? { input_tokens: 3_000, cache_read_input_tokens: 9_000, output_tokens: 800 }
          : {
              prompt_tokens: 12_000,
              completion_tokens: 800,
              total_tokens: 12_800,
              prompt_tokens_details: { cached_tokens: 9_000 },
            }
      const { ask, brokers } = await start(wire, [says('x', { usage: reported })])
      expect((await ask(streamed)).usage).toMatchObject({
        input_tokens: 12_000,
        input_tokens_details: { cached_tokens: 9_000 },
        output_tokens: 800,
        total_tokens: 12_800,
      })
      expect(brokers.settled).toMatchObject([{ tokens: { input: 3_000, cacheRead: 9_000, output: 800 } }])
    })

    test('three turns go on from each other, and each begins with the very bytes of the one before', async () => {
      const { ask, fake, shown } = await start(wire, [
        asks('one', ['Let me see.']),
        says('One.'),
        says('Two.'),
        says('Three.'),
      ])
      const same = { tools: [search], instructions: 'Be brief.' }
      const one = await ask(streamed, same)
      const two = await ask(streamed, { ...same, previous_response_id: one.id, input: 'Go on' })
      const three = await ask(streamed, {
        ...same,
        previous_response_id: two.id,
        input: [{ role: 'user', content: 'And?' }],
      })
      expect([said(two), said(three), three.previous_response_id]).toEqual(['Two.', 'Three.', two.id])
      expect(fake.refusals).toEqual([])
      for (const [at, earlier] of [shown(1), shown(2)].entries()) {
        const later = shown(at + 2)
        expect(JSON.stringify(later.slice(0, earlier.length))).toBe(JSON.stringify(earlier))
        expect(later.length).toBeGreaterThan(earlier.length)
      }
      expect(JSON.stringify(shown(3))).toContain('"call_one"')
      for (const { body } of fake.requests) expect(body.system).toEqual(fake.requests[0]?.body.system)
    })
  })

  test('R-60 a refusal before the first byte is a status with its detail', async () => {
    const limited = { status: 429, headers: { 'retry-after': '7' }, body: '{}' }
    const { send, firstKey, body } = await start(wire, () => limited)
    for (const stream of [true, false]) {
      const answer = await send<{ detail: string }>('POST', PATH, { key: firstKey, body: body({ stream }) })
      expect({ stream, status: answer.status }).toEqual({ stream, status: 429 })
      expect(answer.headers.get('retry-after')).toBe('7')
      expect(Object.keys(answer.body)).toEqual(['detail'])
      expect(typeof answer.body.detail).toBe('string')
    }
  })

  test('R-62 a failure after the first byte is an error event, and neither an end nor a [DONE]', async () => {
    const { send, firstKey, body, client, brokers } = await start(wire, () =>
      says('Hello there, you', { cutAfterBytes: 700 }),
    )
    const { status, text } = await send('POST', PATH, { key: firstKey, body: body({ stream: true }) })
    expect(status).toBe(200)
    expect(text).toContain('response.output_text.delta')
    expect(text.split('\n\n').slice(-2)).toEqual([
      'event: error\ndata: {"error":{"message":"An error occurred during streaming","type":"server_error"}}',
      '',
    ])
    expect(text).not.toMatch(/response\.(completed|incomplete)|\[DONE\]/)
    await expect(client.responses.stream(body({}) as never).finalResponse()).rejects.toThrow(/during streaming/)
    expect(brokers.settled.map(({ status: ended }) => ended)).toEqual(['error', 'error'])
  })
})

describe.each([false, true])('BR-003 BR-015 L-18 thinking, streamed: %s', (streamed) => {
  const thinks = callsTools([{ name: 'web_search', input: { query: 'x' }, id: 'call_x' }], {
    first: [{ thinking: 'plan', signature: 's1' }, { redacted: 'opaque' }, { text: 'Let me see.' }],
  })
  const concludes: ScriptedReply = { says: [{ thinking: 'done', signature: 's2' }, { text: 'It is.' }] }

  test('is replayed with its signature within a turn, from an echo and from what is stored', async () => {
    const { ask, fake, shown } = await start('anthropic', [thinks, concludes, says('Echo.'), says('Named.')])
    const first = await ask(streamed, { tools: [search] })
    expect(kinds(first)).toEqual(['reasoning', 'reasoning', 'message', 'web_search_call', 'reasoning', 'message'])
    const blocks = (round: number) =>
      shown(round).flatMap(({ content }) => (content as Body[]).filter(({ type }) => String(type).endsWith('thinking')))
    const plan = [
      { type: 'thinking', thinking: 'plan', signature: 's1' },
      { type: 'redacted_thinking', data: 'opaque' },
    ]
    expect(blocks(1)).toEqual(plan)
    const next = { role: 'user', content: 'Sure?' }
    await ask(streamed, { tools: [search], input: [{ role: 'user', content: 'Hello' }, ...echo(first), next] })
    await ask(streamed, { tools: [search], previous_response_id: first.id, input: [next] })
    const all = [...plan, { type: 'thinking', thinking: 'done', signature: 's2' }]
    expect([blocks(2), blocks(3)]).toEqual([all, all])
    expect(fake.refusals).toEqual([])
  })

  test('BR-017 of one provider is not sent to another, and the conversation goes on', async () => {
    const { ask, fake } = await start('anthropic', [thinks, concludes, says('Fine.')])
    const first = await ask(streamed, { tools: [search] })
    const foreign = JSON.parse(
      JSON.stringify(echo(first)).replace(/otari_seal_([\w-]+)/g, (_, sealed: string) => {
        const seal = JSON.parse(Buffer.from(sealed, 'base64url').toString()) as Body
        return `otari_seal_${Buffer.from(JSON.stringify({ ...seal, issuer: 'someone' })).toString('base64url')}`
      }),
    ) as ResponseInputItem[]
    await ask(streamed, { input: [...foreign, { role: 'user', content: 'Sure?' }] })
    expect(fake.requests[2]?.text).not.toMatch(/plan|opaque|s1/)
    expect(fake.refusals).toEqual([])
  })

  test('unsigned thinking goes back within a turn of tools, and rests once the user speaks', async () => {
    const muses = callsTools([{ name: 'get_weather', input: { city: 'Oslo' }, id: 'call_w' }], {
      first: [{ thinking: 'musing' }],
    })
    const { ask, fake, shown } = await start('openai-chat', [muses, says('7.'), says('Bye.')])
    const first = await ask(streamed, { tools: [weather] })
    expect(first.output[0]).toMatchObject({ type: 'reasoning', summary: [{ type: 'summary_text', text: 'musing' }] })
    const second = await ask(streamed, {
      tools: [weather],
      previous_response_id: first.id,
      input: [toolOutput('call_w', '7')],
    })
    await ask(streamed, { tools: [weather], previous_response_id: second.id, input: 'Thanks' })
    expect([1, 2].map((round) => JSON.stringify(shown(round)).includes('musing'))).toEqual([true, false])
    expect(fake.refusals).toEqual([])
  })
})

describe('what is stored', () => {
  const notFound = (id: string) => ({ status: 404, body: { detail: `Response with id '${id}' not found.` } })

  test('is read, listed and deleted by the vendor’s client', async () => {
    const { ask, client } = await start('openai-chat', [says('One.')])
    const answer = await ask(true, {
      input: [
        { role: 'user', content: 'a' },
        { role: 'assistant', content: 'b' },
        { role: 'user', content: [{ type: 'input_text', text: 'c' }] },
      ],
    })
    const again = await client.responses.retrieve(answer.id)
    expect(again.output_text).toBe('One.')
    expect(again.output.map(({ id }) => id)).toEqual(answer.output.map(({ id }) => id))
    const texts = async (query: object) => {
      const { data } = await client.responses.inputItems.list(answer.id, query)
      return data.map((item) => (item.type === 'message' ? (item.content[0] as { text: string }).text : ''))
    }
    expect(await texts({})).toEqual(['c', 'b', 'a'])
    expect(await texts({ order: 'asc', limit: 2 })).toEqual(['a', 'b'])
    const {
      data: [first],
    } = await client.responses.inputItems.list(answer.id, { order: 'asc', limit: 1 })
    expect(await texts({ order: 'asc', after: String(first?.id) })).toEqual(['b', 'c'])
    expect(await client.responses.delete(answer.id)).toMatchObject({ id: answer.id, object: 'response', deleted: true })
    await expect(client.responses.retrieve(answer.id)).rejects.toMatchObject({ status: 404 })
  })

  test('is nobody else’s: foreign, deleted, unstored and unknown ids are told alike', async () => {
    const gateway = await start('openai-chat', () => says('One.'))
    const { ask, send, body, makeKey, firstKey, masterKey } = gateway
    await send('POST', '/api/v1/users', { key: masterKey, body: { user_id: 'bob' } })
    const { key: bobs } = await makeKey({ user_id: 'bob' })
    const { id: kept } = await ask(false)
    const { id: deleted } = await ask(false)
    const { id: unstored, store } = (await ask(true, { store: false })) as Answer & { store: boolean }
    expect(store).toBe(false)
    expect((await send('DELETE', `${PATH}/${deleted}`, { key: firstKey })).status).toBe(200)
    const ways: [string, string][] = [
      [kept, bobs],
      [deleted, firstKey],
      [unstored, firstKey],
      ['resp_never', firstKey],
    ]
    for (const [id, key] of ways) {
      expect(await send('GET', `${PATH}/${id}`, { key })).toMatchObject(notFound(id))
      expect(await send('GET', `${PATH}/${id}/input_items`, { key })).toMatchObject(notFound(id))
      expect(await send('DELETE', `${PATH}/${id}`, { key })).toMatchObject(notFound(id))
      expect(await send('POST', PATH, { key, body: body({ previous_response_id: id }) })).toMatchObject({
        status: 400,
        body: { detail: `Previous response with id '${id}' not found.` },
      })
    }
    // still there for whoever it belongs to
    expect((await send('GET', `${PATH}/${kept}`, { key: firstKey })).status).toBe(200)
    expect((await send('GET', `${PATH}/${kept}`, { key: masterKey })).status).toBe(200)
  })

  test.each(wires)('goes on with other tools, or none, and in two ways at once: %s', async (wire) => {
    const { ask, fake, brokers, shown } = await start(wire, [asks('red'), says('Red.')])
    const one = await ask(false, { tools: [search] })
    const next = await start(wire, () => says('More.'))
    const ways = [{ tools: [weather] }, {}, { tools: [search] }, {}]
    const answers = await Promise.all(
      ways.map((more, at) => next.ask(at % 2 === 0, { previous_response_id: one.id, input: `way ${at}`, ...more })),
    )
    expect(answers.map(({ output_text: text }) => text)).toEqual(Array(4).fill('More.'))
    expect(new Set(answers.map(({ id }) => id)).size).toBe(4)
    expect([fake.refusals, brokers.asked.search]).toEqual([[], []])
    // each has what was before it, and nothing of the others
    for (const round of [0, 1, 2, 3]) {
      const text = JSON.stringify(shown(round))
      expect(text.match(/way \d/g)).toHaveLength(1)
      expect(text).toContain('Red.')
    }
    const [first] = answers
    await next.ask(true, { previous_response_id: first?.id, input: 'and then' })
    expect(JSON.stringify(shown(4))).toMatch(/Red\..*way 0.*More\..*and then/)
  })

  test('a conversation with a part deleted cannot be gone on from', async () => {
    const { ask, client } = await start('openai-chat', () => says('x'))
    const one = await ask(false)
    const two = await ask(false, { previous_response_id: one.id })
    await client.responses.delete(one.id)
    await expect(ask(false, { previous_response_id: two.id })).rejects.toMatchObject({ status: 400 })
  })

  test('BR-040 items may stand for stored ones; one that is unknown is named before any model is called', async () => {
    const { ask, send, body, fake, shown, firstKey } = await start('openai-chat', [asksWeather, says('7 degrees.')])
    const first = await ask(false, { tools: [weather] })
    const [call] = first.output
    const input = [
      { role: 'user', content: 'Hello' },
      { type: 'item_reference', id: call?.id },
      toolOutput('call_w', '7'),
    ]
    await ask(false, { tools: [weather], input })
    expect(shown(1)).toMatchObject([{ role: 'user' }, { tool_calls: [{ id: 'call_w' }] }, { role: 'tool' }])
    const unknown = body({ input: [{ role: 'user', content: 'x' }, { id: 'msg_1' }] })
    expect(await send('POST', PATH, { key: firstKey, body: unknown })).toMatchObject({
      status: 400,
      body: { detail: expect.stringContaining("'msg_1'") },
    })
    expect(fake.requests).toHaveLength(2)
    expect(fake.refusals).toEqual([])
  })

  test('an answer that the database does not take is an answer all the same, and says that it is not stored', async () => {
    const { ask, db } = await start('openai-chat', () => says('One.'))
    const { schema } = db.kysely
    await schema.alterTable('gateway.responses').renameTo('elsewhere').execute()
    onTestFinished(() => schema.alterTable('gateway.elsewhere').renameTo('responses').execute())
    for (const streamed of [true, false]) {
      expect(await ask(streamed)).toMatchObject({ status: 'completed', store: false, output_text: 'One.' })
    }
  })

  test('is nothing where the operator keeps nothing', async () => {
    const { ask, settings, client } = await start('openai-chat', () => says('One.'))
    onTestFinished(() => void Object.assign(settings, { responsesRetentionDays: 30 }))
    settings.responsesRetentionDays = 0
    const answer = await ask(true)
    expect(answer).toMatchObject({ store: false })
    await expect(client.responses.retrieve(answer.id)).rejects.toMatchObject({ status: 404 })
  })

  test('holds no key', async () => {
    const { ask, db, firstKey } = await start('openai-chat', () => says('One.'))
    await ask(false)
    const rows = await db.kysely.selectFrom('gateway.responses').selectAll().execute()
    expect(rows.length).toBeGreaterThan(0)
    expect(JSON.stringify(rows)).not.toContain(firstKey)
  })
})

describe('what runs here', () => {
  const runHere = { 'Otari-Web-Search': 'auto' }
  const runs = callsTools([{ name: 'code_execution', input: { code: 'print(1)' }, id: 'call_c' }])

  test.each([false, true])(
    'C-05 C-31 R-51 code is an item with the id of its sandbox, streamed: %s',
    async (streamed) => {
      const { ask, brokers, fake } = await start('openai-chat', [runs, says('1'), runs, says('1')])
      const container = { id: `otari_cntr_${'0a'.repeat(16)}`, expiresAt: '2026-12-01T00:00:00Z' }
      const tools = [{ type: 'code_interpreter', container: { type: 'auto' } }]
      const unheld = await ask(streamed, { tools })
      const { open: opened, close } = brokers
      onTestFinished(() => void Object.assign(brokers, { open: opened, close }))
      brokers.open = async () => ({ session: 's', container })
      brokers.close = async () => ({ container })
      const heldOne = await ask(streamed, { tools })
      const idsOf = (answer: Answer) =>
        answer.output.flatMap((item) => (item.type === 'code_interpreter_call' ? [item.container_id] : []))
      expect(idsOf(unheld)).toEqual([expect.stringMatching(/^otari_cntr_[0-9a-f]{32}$/)])
      expect(idsOf(heldOne)).toEqual([container.id])
      expect(heldOne.output[0]).toMatchObject({
        id: expect.stringMatching(/^otari_ci_[0-9a-f]{32}$/),
        status: 'completed',
        code: 'print(1)',
        outputs: [{ type: 'logs', logs: '1\n' }],
      })
      expect(fake.refusals).toEqual([])
    },
  )

  test('R-51 an image is where the request arrived, or where the operator says', async () => {
    const { ask, brokers, settings, url } = await start('openai-chat', (_body, round) => (round % 2 ? says('1') : runs))
    const { exec } = brokers
    onTestFinished(() => {
      brokers.exec = exec
      settings.publicBaseUrl = undefined
    })
    brokers.exec = async () => ({
      status: 'ok',
      stdout: '',
      stderr: '',
      returnCode: 0,
      files: [
        { name: 'plot.png', file: { id: newFileId(), name: 'plot.png', mediaType: 'image/png', bytes: 4 } },
        { name: 'a.csv', file: { id: newFileId(), name: 'a.csv', mediaType: 'text/csv', bytes: 4 } },
      ],
    })
    const images = async () => {
      const { output } = await ask(true, { tools: [{ type: 'code_interpreter' }] })
      return output.flatMap((item) => (item.type === 'code_interpreter_call' ? item.outputs : []))
    }
    const at = (base: string) => [
      { type: 'image', url: expect.stringMatching(`^${base}/api/v1/files/file-[\\w-]+/content$`) },
    ]
    expect(await images()).toEqual(at(url))
    settings.publicBaseUrl = 'https://gw.example.com'
    expect(await images()).toEqual(at('https://gw.example.com'))
  })

  test('R-57 what ran here is words in the next turn, and no search is sent on', async () => {
    const { ask, shown, fake } = await start('openai-chat', [asks('x'), runs, says('1'), says('Bye.')])
    const tools = [{ type: 'code_interpreter' }, { type: 'web_search' }]
    const first = await ask(false, { tools }, runHere)
    expect(kinds(first)).toEqual(['web_search_call', 'code_interpreter_call', 'message'])
    await ask(false, {
      input: [{ role: 'user', content: 'Hello' }, ...echo(first), { role: 'user', content: 'Thanks' }],
    })
    expect(shown(3)).toEqual([
      { role: 'user', content: 'Hello' },
      { role: 'assistant', content: 'I ran this code:\nprint(1)\nOutput:\n1\n1' },
      { role: 'user', content: 'Thanks' },
    ])
    expect(fake.refusals).toEqual([])
  })

  test('T-26 T-27 T-28 BR-078 the vendor’s own search runs here as a function, with its filters, forced once', async () => {
    const { ask, brokers, fake } = await start('openai-chat', [asks('x'), says('Done.')])
    const filters = { allowed_domains: ['example.com'] }
    const tool = { type: 'web_search', filters, search_context_size: 'low', user_location: { type: 'approximate' } }
    await ask(false, { tools: [weather, tool], tool_choice: { type: 'web_search' } }, runHere)
    const { tools, tool_choice } = fake.requests[0]?.body ?? {}
    expect((tools as { function: { name: string } }[]).map((entry) => entry.function.name)).toEqual([
      'get_weather',
      'web_search',
    ])
    expect(tool_choice).toEqual({ type: 'function', function: { name: 'web_search' } })
    expect(fake.requests[1]?.body.tool_choice).toBe('auto')
    expect(brokers.asked.search).toMatchObject([{ policy: { allowedDomains: ['example.com'] } }])
    expect(fake.refusals).toEqual([])
  })

  test('max_tool_calls ends what runs here, and the model is told so', async () => {
    const { ask, brokers, shown } = await start('openai-chat', [asks('one'), asks('two'), says('Done.')])
    const answer = await ask(false, { tools: [search], max_tool_calls: 1 })
    expect(kinds(answer)).toEqual(['web_search_call', 'message'])
    expect(brokers.asked.search).toHaveLength(1)
    expect(JSON.stringify(shown(2))).toContain('[tool error] tool call limit reached for this request')
  })

  test('L-09 a call past the last round is a 422, and an error event in a stream', async () => {
    const { send, firstKey, body } = await start('openai-chat', () => asks('x'))
    const once = { tools: [search], max_tool_iterations: 1 }
    expect(await send('POST', PATH, { key: firstKey, body: body(once) })).toMatchObject({
      status: 422,
      body: { detail: 'Exceeded max_tool_iterations=1' },
    })
    const { text } = await send('POST', PATH, { key: firstKey, body: body({ ...once, stream: true }) })
    expect(text).toContain('event: error\n')
    expect(text).not.toMatch(/response\.completed|\[DONE\]|web_search_call/)
  })
})

describe('R-65 refusals', () => {
  test('come in their order, each in the one form of R-60', async () => {
    const { send, firstKey, masterKey, body, brokers, fake, logged } = await start('openai-chat', [])
    const refused = async (key: string | undefined, more: Body, headers = {}) => {
      const { status, body: told } = await send<Body>('POST', PATH, { ...(key && { key }), body: body(more), headers })
      return { status, ...told }
    }
    expect(await refused(undefined, { input: 7 })).toMatchObject({ status: 401 })
    expect(await refused(firstKey, { input: 7, previous_response_id: 'resp_x' })).toMatchObject({
      status: 422,
      detail: [{ loc: ['body', 'input'] }],
    })
    expect(await refused(masterKey, { previous_response_id: 'resp_x' })).toMatchObject({
      status: 400,
      detail: expect.stringContaining("'user'"),
    })
    expect(await refused(masterKey, { user: 'nobody', previous_response_id: 'resp_x' })).toMatchObject({ status: 404 })
    expect(await refused(firstKey, { previous_response_id: 'resp_x', tools: [search, search] })).toMatchObject({
      detail: "Previous response with id 'resp_x' not found.",
    })
    expect(await refused(firstKey, { tools: [search, search] })).toMatchObject({ status: 400 })
    expect(await refused(firstKey, { tools: [{ type: 'computer_use_preview' }] })).toMatchObject({
      status: 400,
      detail: expect.stringContaining("'computer_use_preview'"),
    })
    const { reserve } = brokers
    onTestFinished(() => void Object.assign(brokers, { reserve }))
    brokers.reserve = async () => {
      throw new Fault('pricing_required', 'no price')
    }
    expect(await refused(firstKey, { tools: [search] })).toEqual({
      status: 402,
      detail: 'no price',
      code: 'pricing_required',
    })
    expect(fake.requests).toHaveLength(0)
    expect(logged()).not.toContain(firstKey)
  })
})
