import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { collectAnswer } from '../../src/conversation/collect.ts'
import type { AnswerEvent, FinishReason, ToolOutcome } from '../../src/conversation/events.ts'
import type { JsonObject } from '../../src/conversation/turn.ts'
import { gatewayItems } from '../../src/dialects/responses/gateway-items.ts'
import { keepable } from '../../src/dialects/responses/keep.ts'
import { openOutput } from '../../src/dialects/responses/output.ts'
import { parseResponses } from '../../src/dialects/responses/parse.ts'
import { renderResponse } from '../../src/dialects/responses/render.ts'
import { responsesStream } from '../../src/dialects/responses/stream.ts'
import { telling } from '../told.ts'

const model = 'mistral:mistral-large-latest'
const start: AnswerEvent = { type: 'start', id: 'chatcmpl-1', created: 1, model: 'up', provider: 'claude' }
const block = (index: number, kind: 'text' | 'refusal' | 'thinking', ...pieces: string[]): AnswerEvent[] => [
  { type: 'open', index, block: { kind } },
  ...pieces.map((piece): AnswerEvent => ({ type: 'delta', index, text: piece })),
  { type: 'close', index },
]
const text = (index: number, ...pieces: string[]) => block(index, 'text', ...pieces)
const usage = (input: number, output: number): AnswerEvent => ({
  type: 'usage',
  tokens: { input, output, cacheRead: 0, cacheWrite: 0, reasoning: 0 },
  raw: undefined,
})
const finish = (reason: FinishReason = 'stop', raw: string | undefined = reason): AnswerEvent => ({
  type: 'finish',
  reason,
  raw,
})
const ran = (tool: string, shown: ToolOutcome['shown'], isError = false): AnswerEvent[] => {
  const of = { id: 'call_1', tool, input: {} }
  return [
    { type: 'tool', phase: 'started', call: of },
    { type: 'tool', phase: 'finished', call: of, outcome: { text: 'secret result', isError, shown } },
  ]
}
const searched = (more: object = {}) =>
  ran('web_search', {
    kind: 'web_search',
    query: '2025 sales figures',
    sources: [{ url: 'https://example.com/sales', title: 'Sales' }],
    ...more,
  })
const coded = (more: object = {}, isError = false) =>
  ran(
    'code_execution',
    { kind: 'code_execution', code: 'print(1+1)', stdout: '2\n', stderr: '', returnCode: 0, ...more },
    isError,
  )
const held: AnswerEvent = {
  type: 'container',
  container: { id: 'otari_cntr_0a1b2c3d4e5f60718293a4b5c6d7e8f9', expiresAt: '2026-12-01T00:00:00Z' },
}

/** One answer as a client gets it, streamed and whole. */
async function shown(events: AnswerEvent[], members: JsonObject = {}) {
  const { turn, include } = parseResponses({ model, input: 'hi', ...members }, 10)
  const identity = { id: 'resp_01', createdAt: 1_792_000_000, kept: false, previous: undefined }
  const shows = gatewayItems(turn, include, 'https://gw.example.com/')
  const ids: string[] = []
  const writer = responsesStream(identity, turn, openOutput(shows, ids))
  const stream = events.map((event) => writer.push(event)).join('') + writer.end()
  const whole = renderResponse(await collectAnswer(telling(events)), identity, turn, openOutput(shows, ids))
  return { stream, whole, frames: framesOf(stream) }
}

type Frame = JsonObject & { type: string; sequence_number: number; response: JsonObject; item: JsonObject }

function framesOf(stream: string): Frame[] {
  const frames = stream.split('\n\n')
  expect(frames.slice(-2)).toEqual(['data: [DONE]', ''])
  return frames.slice(0, -2).map((frame) => {
    const [, type, data] = /^event: (.*)\ndata: (.*)$/.exec(frame) ?? []
    const read = JSON.parse(data ?? '') as Frame
    expect(read.type).toBe(type)
    return read
  })
}

/** What every stream holds to (R-53, R-54, BR-014): the one body of truth about it. */
async function sound(events: AnswerEvent[], members: JsonObject = {}) {
  const { stream, whole, frames } = await shown(events, members)
  expect(frames.map(({ sequence_number }) => sequence_number)).toEqual(frames.map((_, at) => at))
  expect(frames.slice(0, 2).map(({ type }) => type)).toEqual(['response.created', 'response.in_progress'])
  const terminal = frames.filter(({ type }) => /^response\.(completed|incomplete|failed)$/.test(type))
  expect(terminal).toEqual([frames.at(-1)])
  const last = frames.at(-1)?.response ?? {}
  const done = frames.filter(({ type }) => type === 'response.output_item.done')
  const byIndex = [...done].sort((one, other) => Number(one.output_index) - Number(other.output_index))
  expect(byIndex.map(({ output_index }) => output_index)).toEqual(byIndex.map((_, at) => at))
  expect(last.output).toEqual(byIndex.map(({ item }) => item))
  expect(frames.filter(({ type }) => type === 'response.output_item.added')).toHaveLength(done.length)
  expect(new Set(frames.flatMap(({ response }) => (response ? [response.id] : [])))).toEqual(new Set(['resp_01']))
  expect(stream).not.toContain(':null')
  expect(whole).toEqual(last)
  return { frames, output: last.output as JsonObject[], response: last }
}

/** Ids are made up: their form is looked at, then they are told apart by their order. */
const named = (value: unknown): unknown =>
  JSON.parse(JSON.stringify(value).replace(/"((?:[a-z]+_otari|otari_(?:ws|ci))_)[0-9a-f]{32}"/g, '"$1…"'))

describe('a Responses stream', () => {
  test('R-50 R-53 R-63 has the frames of a searched answer, one by one', async () => {
    const { frames } = await sound([start, ...searched(), ...text(0, 'Python 3.14.0 [1].'), usage(905, 31), finish()])
    const item = {
      id: 'otari_ws_…',
      type: 'web_search_call',
      status: 'completed',
      action: { type: 'search', query: '2025 sales figures' },
    }
    const message = {
      id: 'msg_otari_…',
      type: 'message',
      role: 'assistant',
      status: 'in_progress',
      content: [] as JsonObject[],
    }
    const part = { type: 'output_text', text: '', annotations: [] }
    const spoken = { ...part, text: 'Python 3.14.0 [1].' }
    const whole = { ...message, status: 'completed', content: [spoken] }
    const at = { item_id: 'msg_otari_…', output_index: 1, content_index: 0 }
    const head = {
      id: 'resp_01',
      object: 'response',
      created_at: 1_792_000_000,
      status: 'in_progress',
      model,
      output: [],
      parallel_tool_calls: true,
      tool_choice: 'auto',
      tools: [],
      store: false,
    }
    expect(named(frames)).toEqual(
      [
        { type: 'response.created', response: head },
        { type: 'response.in_progress', response: head },
        { type: 'response.output_item.added', output_index: 0, item },
        { type: 'response.output_item.done', output_index: 0, item },
        { type: 'response.output_item.added', output_index: 1, item: message },
        { type: 'response.content_part.added', ...at, part },
        { type: 'response.output_text.delta', ...at, delta: 'Python 3.14.0 [1].' },
        { type: 'response.output_text.done', ...at, text: 'Python 3.14.0 [1].' },
        { type: 'response.content_part.done', ...at, part: spoken },
        { type: 'response.output_item.done', output_index: 1, item: whole },
        {
          type: 'response.completed',
          response: {
            ...head,
            status: 'completed',
            output: [item, whole],
            usage: {
              input_tokens: 905,
              input_tokens_details: { cached_tokens: 0, cache_write_tokens: 0 },
              output_tokens: 31,
              output_tokens_details: { reasoning_tokens: 0 },
              total_tokens: 936,
            },
          },
        },
      ].map((frame, sequence_number) => ({ ...frame, sequence_number })),
    )
  })

  test('R-62 R-64 breaks off with an error and no [DONE], and is kept alive by comments', () => {
    const { turn } = parseResponses({ model, input: 'hi' }, 10)
    const identity = { id: 'resp_01', createdAt: 1, kept: false, previous: undefined }
    const writer = responsesStream(identity, turn, openOutput(gatewayItems(turn, new Set(), ''), []))
    expect(writer.fail()).toBe(
      'event: error\ndata: {"error":{"message":"An error occurred during streaming","type":"server_error"}}\n\n',
    )
    expect(writer.keepalive).toBe(': keepalive\n\n')
  })

  test('calls that are told together stand by themselves, and the last one waits for how it ended', async () => {
    const open = (index: number, id: string): AnswerEvent => ({
      type: 'open',
      index,
      block: { kind: 'call', id, name: 'f' },
    })
    const events: AnswerEvent[] = [
      start,
      ...text(0, 'ok'),
      open(1, 'a'),
      { type: 'delta', index: 1, text: '{"x":' },
      open(2, 'b'),
      { type: 'delta', index: 2, text: '{"y"' },
      { type: 'delta', index: 1, text: '1}' },
      { type: 'close', index: 1 },
      { type: 'close', index: 2 },
    ]
    const calls = ({ output }: { output: JsonObject[] }) =>
      output.slice(1).map(({ call_id, arguments: json, status }) => [call_id, json, status])
    expect(calls(await sound([...events, finish('tool_calls')]))).toEqual([
      ['a', '{"x":1}', 'completed'],
      ['b', '{"y"', 'completed'],
    ])
    const cut = await sound([...events, finish('length')])
    expect(calls(cut)).toEqual([
      ['a', '{"x":1}', 'completed'],
      ['b', '{"y"', 'incomplete'],
    ])
    expect(cut.response).toMatchObject({ status: 'incomplete', incomplete_details: { reason: 'max_output_tokens' } })
    expect(cut.frames.filter(({ type }) => type === 'response.function_call_arguments.done')).toMatchObject([
      { output_index: 1, name: 'f', arguments: '{"x":1}' },
      { output_index: 2, arguments: '{"y"' },
    ])
  })

  test('thinking is a reasoning item with its summary events and what its provider wants back', async () => {
    const events: AnswerEvent[] = [
      start,
      { type: 'open', index: 0, block: { kind: 'thinking' } },
      { type: 'delta', index: 0, text: 'pl' },
      { type: 'delta', index: 0, text: 'an' },
      { type: 'signature', index: 0, signature: 's1' },
      { type: 'close', index: 0 },
      { type: 'open', index: 1, block: { kind: 'redacted_thinking', data: 'opaque' } },
      { type: 'close', index: 1 },
      ...text(2, 'Hi'),
      finish(),
    ]
    const { frames, output } = await sound(events)
    expect(frames.slice(2, 9).map(({ type }) => type)).toEqual([
      'response.output_item.added',
      'response.reasoning_summary_part.added',
      'response.reasoning_summary_text.delta',
      'response.reasoning_summary_text.delta',
      'response.reasoning_summary_text.done',
      'response.reasoning_summary_part.done',
      'response.output_item.done',
    ])
    const encrypted_content = expect.stringMatching(/^otari_seal_/)
    expect(output).toMatchObject([
      { type: 'reasoning', summary: [{ type: 'summary_text', text: 'plan' }], encrypted_content },
      { type: 'reasoning', summary: [], encrypted_content },
      { type: 'message' },
    ])
    expect(JSON.stringify(output)).not.toContain('claude')
    // sent back, it is the very thinking again
    const { turn } = parseResponses({ model, input: output }, 10)
    expect(turn.messages[0]?.parts).toMatchObject([
      { type: 'thinking', text: 'plan', signature: 's1' },
      { type: 'redacted_thinking', data: 'opaque' },
      { type: 'text', text: 'Hi' },
    ])
  })

  test('a refusal is a part of its own beside words', async () => {
    const { output, frames } = await sound([start, ...text(0, 'Well, '), ...block(1, 'refusal', 'no.'), finish()])
    expect(output).toMatchObject([
      {
        content: [
          { type: 'output_text', text: 'Well, ' },
          { type: 'refusal', refusal: 'no.' },
        ],
      },
    ])
    expect(frames.map(({ type }) => type)).toContain('response.refusal.done')
  })

  test('BR-048 citations cover exactly the words of their block in the joined text', async () => {
    const cites = (url: string): AnswerEvent => ({
      type: 'extra',
      dialect: 'messages',
      value: { type: 'citation', citation: { type: 'web_search_result_location', url, title: 't1' } },
    })
    const [open, said, close] = text(1, 'B.')
    const { output, frames } = await sound([
      start,
      ...text(0, 'A. '),
      open!,
      said!,
      cites('https://u1'),
      close!,
      finish(),
    ])
    const annotation = { type: 'url_citation', url: 'https://u1', title: 't1', start_index: 3, end_index: 5 }
    expect(output).toMatchObject([{ content: [{ text: 'A. B.', annotations: [annotation] }] }])
    expect(frames.find(({ type }) => type === 'response.output_text.annotation.added')).toMatchObject({
      annotation_index: 0,
      annotation,
    })
  })

  test('what the model says after a hidden tool is another message', async () => {
    const fetched = ran('web_fetch', { kind: 'web_fetch', url: 'https://x.test/' })
    const { output } = await sound([start, ...text(0, 'Let me read.'), ...fetched, ...text(1, 'It is.'), finish()])
    expect(output.map(({ type, content }) => [type, (content as JsonObject[])[0]?.text])).toEqual([
      ['message', 'Let me read.'],
      ['message', 'It is.'],
    ])
  })

  test.each([
    ['stop', 'completed', undefined],
    ['tool_calls', 'completed', undefined],
    ['length', 'incomplete', 'max_output_tokens'],
    ['pause', 'incomplete', 'max_output_tokens'],
    ['content_filter', 'incomplete', 'content_filter'],
    ['unknown', 'incomplete', 'brand_new_reason'],
  ] as const)('BR-026 ended by %s it is %s', async (reason, status, why) => {
    const { frames, response } = await sound([start, ...text(0, 'x'), finish(reason, why)])
    expect(frames.at(-1)?.type).toBe(`response.${status}`)
    expect(response.status).toBe(status)
    expect(response.incomplete_details).toEqual(why === undefined ? undefined : { reason: why })
  })

  test('BR-147 cached tokens count inside the input', async () => {
    const tokens = { input: 3_000, output: 800, cacheRead: 9_000, cacheWrite: 0, reasoning: 5 }
    const { response } = await sound([start, ...text(0, 'x'), { type: 'usage', tokens, raw: undefined }, finish()])
    expect(response.usage).toMatchObject({
      input_tokens: 12_000,
      input_tokens_details: { cached_tokens: 9_000 },
      output_tokens: 800,
      output_tokens_details: { reasoning_tokens: 5 },
      total_tokens: 12_800,
    })
  })

  test('A-34 repeats a declaration without what lets its provider into another server', async () => {
    const secret = { authorization: 'sk-secret', headers: { 'x-key': 'sk-secret' } }
    const tools = [{ type: 'mcp', server_label: 's', ...secret }, { type: 'web_search' }]
    const { stream, whole } = await shown([start, ...text(0, 'x'), finish()], { tools })
    expect(whole.tools).toEqual([{ type: 'mcp', server_label: 's' }, { type: 'web_search' }])
    expect(stream).not.toContain('sk-secret')
  })

  test('repeats what was asked, and leaves out what would be null', async () => {
    const members = { instructions: 'Be brief.', metadata: { a: 'b' }, temperature: 0, user: null, tool_choice: 'none' }
    const { response } = await sound([start, ...text(0, 'x'), finish()], members)
    expect(response).toMatchObject({
      instructions: 'Be brief.',
      metadata: { a: 'b' },
      temperature: 0,
      tool_choice: 'none',
    })
    expect(response).not.toHaveProperty('user')
  })
})

describe('items of tools that ran here', () => {
  const code = { tools: [{ type: 'code_interpreter', container: { type: 'auto' } }, { type: 'web_search' }] }
  const outputOf = async (events: AnswerEvent[], members: JsonObject = {}) =>
    (await sound([start, ...events, ...text(9, 'Done.'), finish()], members)).output.slice(0, -1)

  test('X-24 X-27 R-51 R-55 stand in call order, with sources, logs and images', async () => {
    const files = [
      { name: 'plot.png', id: 'file-7c2e', mediaType: 'image/png' },
      { name: 'a.csv', id: 'file-1', mediaType: 'text/csv' },
      { name: 'lost.png', mediaType: 'image/png' },
    ]
    const include = ['web_search_call.action.sources']
    const output = await outputOf([held, ...searched(), ...coded({ files }), ...searched()], { ...code, include })
    const search = {
      id: 'otari_ws_…',
      type: 'web_search_call',
      status: 'completed',
      action: {
        type: 'search',
        query: '2025 sales figures',
        sources: [{ type: 'url', url: 'https://example.com/sales' }],
      },
    }
    expect(named(output)).toEqual([
      search,
      {
        id: 'otari_ci_…',
        type: 'code_interpreter_call',
        status: 'completed',
        container_id: 'otari_cntr_0a1b2c3d4e5f60718293a4b5c6d7e8f9',
        code: 'print(1+1)',
        outputs: [
          { type: 'logs', logs: '2\n' },
          { type: 'image', url: 'https://gw.example.com/api/v1/files/file-7c2e/content' },
        ],
      },
      search,
    ])
  })

  test('R-55 sources are there only when they are asked for', async () => {
    expect(named(await outputOf(searched()))).toMatchObject([
      { action: { type: 'search', query: '2025 sales figures' } },
    ])
    expect(JSON.stringify(await outputOf(searched()))).not.toContain('sources')
  })

  test('R-50 a failed search is failed; one refused by a cap is no item', async () => {
    const failed = await outputOf(searched({ sources: [], failure: { tag: 'timeout' } }))
    expect(failed).toMatchObject([{ type: 'web_search_call', status: 'failed' }])
    expect(await outputOf(searched({ sources: [], failure: { tag: 'call_limit', overMaxUses: true } }))).toEqual([])
  })

  test('R-52 X-34 a fetch is no item, and code only for whoever declared the vendor’s own tool', async () => {
    const fetched = ran('web_fetch', { kind: 'web_fetch', url: 'https://x.test/' })
    expect(await outputOf([...fetched, ...coded()], { tools: [{ type: 'otari_code_execution' }] })).toEqual([])
  })

  test('R-51 C-31 a failed run is failed with its logs, and has a container id that nothing is held under', async () => {
    const [failed, silent] = await outputOf(
      [...coded({ stderr: 'oops', returnCode: 1 }, true), ...coded({ stdout: 'x' })],
      code,
    )
    expect(failed).toMatchObject({ status: 'failed', outputs: [{ type: 'logs', logs: '2\noops' }] })
    expect(failed?.container_id).toMatch(/^otari_cntr_[0-9a-f]{32}$/)
    expect(silent?.container_id).toBe(failed?.container_id)
    expect(silent?.status).toBe('completed')
  })

  test('R-51 a run that printed nothing has null for its outputs', async () => {
    const { whole } = await shown([start, ...coded({ stdout: '' }), finish()], code)
    expect(whole.output).toMatchObject([{ type: 'code_interpreter_call', outputs: null }])
  })

  test('an item of the upstream’s own dialect is shown as it came', async () => {
    const value = { type: 'image_generation_call', id: 'ig_1', status: 'completed', result: 'AA==' }
    const events: AnswerEvent[] = [
      { type: 'open', index: 0, block: { kind: 'other', dialect: 'responses', value } },
      { type: 'close', index: 0 },
    ]
    expect(await outputOf(events)).toEqual([value])
  })
})

describe('what is kept of an answer', () => {
  async function keeping(input: string, reason: FinishReason = 'stop') {
    const { turn, input: items } = parseResponses({ model, input }, 10)
    const answer = await collectAnswer(telling([start, ...text(0, 'Hi'), finish(reason)]))
    const identity = { id: 'resp_01', createdAt: 1, kept: true, previous: 'resp_00' }
    const output = openOutput(gatewayItems(turn, new Set(), ''), [])
    const response = renderResponse(answer, identity, turn, output)
    const said = [
      { type: 'thinking' as const, text: 'hm', signature: 's' },
      { type: 'call' as const, id: 'c', name: 'f', arguments: '{"x' },
    ]
    return keepable({
      response,
      answer,
      input: items,
      previous: 'resp_00',
      added: [{ role: 'assistant', parts: said }],
    })
  }

  test('is the answer, its input with ids, and what the model is shown again', async () => {
    const kept = await keeping('hi', 'tool_calls')
    expect(kept).toMatchObject({ id: 'resp_01', previous: 'resp_00' })
    expect(JSON.parse(kept?.body ?? '')).toMatchObject({ store: true, output: [{ type: 'message' }] })
    expect(kept?.itemIds).toHaveLength(2)
    expect(JSON.parse(kept?.replay ?? '')).toMatchObject([
      {
        parts: [
          { type: 'thinking', signature: 's', issuer: expect.stringMatching(/^[0-9a-f]{16}$/) },
          { type: 'call' },
        ],
      },
    ])
  })

  test('has no call that an answer was cut off in', async () => {
    expect((await keeping('hi', 'length'))?.replay).not.toContain('"call"')
  })

  test('is nothing where it would be too large', async () => {
    expect(await keeping('x'.repeat(8 * 1024 * 1024))).toBeUndefined()
  })
})

describe('any answer', () => {
  const words = fc.array(fc.string({ minLength: 1, maxLength: 4 }), { maxLength: 3 })
  type Segment = (next: () => number) => AnswerEvent[]
  const prose = (kind: 'text' | 'refusal' | 'thinking') =>
    words.map(
      (pieces): Segment =>
        (next) =>
          block(next(), kind, ...pieces),
    )
  const signed = words.map(
    (pieces): Segment =>
      (next) => {
        const [open, ...rest] = block(next(), 'thinking', ...pieces)
        const { index } = open as AnswerEvent & { type: 'open' }
        const close = rest.pop() as AnswerEvent
        return [open as AnswerEvent, ...rest, { type: 'signature', index, signature: 's' }, close]
      },
  )
  /** Calls told together, piece by piece in turn, as a Chat upstream may. */
  const calls = fc.array(words, { minLength: 1, maxLength: 3 }).map(
    (all): Segment =>
      (next) => {
        const told = all.map((pieces) => ({ index: next(), pieces }))
        return [
          ...told.map(
            ({ index }): AnswerEvent => ({ type: 'open', index, block: { kind: 'call', id: `c${index}`, name: 'f' } }),
          ),
          ...[0, 1, 2].flatMap((at) =>
            told.flatMap(({ index, pieces }): AnswerEvent[] =>
              pieces[at] === undefined ? [] : [{ type: 'delta', index, text: pieces[at] }],
            ),
          ),
          ...told.map(({ index }): AnswerEvent => ({ type: 'close', index })),
        ]
      },
  )
  const activity = fc.constantFrom<Segment>(
    () => searched(),
    () => coded(),
    () => ran('web_fetch', { kind: 'web_fetch', url: 'https://x.test/' }),
  )
  const segments = fc.array(fc.oneof(prose('text'), prose('refusal'), prose('thinking'), signed, calls, activity), {
    maxLength: 8,
  })

  test('R-53 R-54 BR-014 is a sound stream, whose pieces are its items and whose items are the whole answer', async () => {
    const ends = fc.constantFrom<FinishReason>('stop', 'tool_calls', 'length')
    await fc.assert(
      fc.asyncProperty(segments, ends, async (made, end) => {
        let blocks = 0
        const events = [start, ...made.flatMap((segment) => segment(() => blocks++)), usage(1, 2), finish(end)]
        const { frames, output } = await sound(events, { tools: [{ type: 'code_interpreter' }] })
        const said = new Map<string, string>()
        for (const { type, item_id, content_index, delta } of frames) {
          if (!type.endsWith('.delta')) continue
          const place = `${String(item_id)} ${String(content_index ?? 0)}`
          said.set(place, (said.get(place) ?? '') + String(delta))
        }
        for (const item of output) {
          const parts = (item.content ?? item.summary ?? [{ text: item.arguments ?? '' }]) as JsonObject[]
          for (const [at, part] of parts.entries())
            expect(part.text ?? part.refusal).toBe(said.get(`${String(item.id)} ${at}`) ?? '')
        }
        const open = frames.filter(({ type }) => type === 'response.content_part.added')
        expect(frames.filter(({ type }) => type === 'response.content_part.done')).toHaveLength(open.length)
      }),
      { numRuns: 200 },
    )
  })
})
