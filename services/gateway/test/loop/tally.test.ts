import { billingReserve, Fault, usageSettled } from '@tollgate/contracts'
import { describe, expect, test } from 'vitest'
import type { ModelEvent } from '../../src/conversation/events.ts'
import { brokenAnswer } from '../../src/models/upstream-fault.ts'
import { tenancy } from '../brokers.ts'
import { turnOf } from '../turns.ts'
import { answers, calls, scripted, textBlock } from './scripted-provider.ts'
import { gather, openLoop } from './serving.ts'

const search = { type: 'otari_web_search' }
const fetch = { type: 'otari_web_fetch' }
const code = { type: 'otari_code_execution' }
const asks = calls(['c1', 'web_search', { query: 'q' }])
const providerDown = () => brokenAnswer('unreachable', { name: 'fake', wire: 'openai-chat', hidden: [] })

/** A model that says this much and then fails or waits. */
async function* breaksOff(said: ModelEvent[], how: () => Promise<never> | Error): AsyncGenerator<ModelEvent> {
  yield* said
  const end = how()
  throw end instanceof Error ? end : await end
}

describe('before a model is called', () => {
  test('P-15 A-15 money is set aside for the model, every tool and the estimate', async () => {
    const { serve, brokers } = await openLoop()
    const model = scripted([answers('A')])
    await gather(serve(turnOf([code, search, fetch], { bodyCharacters: 401 }), [model]))
    expect(brokers.asked.reserved).toMatchObject([
      {
        tenancy,
        endpoint: '/api/v1/chat/completions',
        model: 'm',
        provider: 'fake',
        modelKeys: [{ kind: 'model', key: 'fake:m' }],
        estimate: { inputTokens: 101, outputTokens: 1024 },
        budgetExempt: false,
      },
    ])
    expect(brokers.asked.reserved[0]?.tools).toEqual([
      { tool: 'code_execution', keys: [{ kind: 'model', key: 'otari:code_execution' }] },
      {
        tool: 'web_search',
        keys: [
          { kind: 'search', key: 'main' },
          { kind: 'model', key: 'exa:main' },
          { kind: 'model', key: 'otari:web_search' },
        ],
      },
      {
        tool: 'web_fetch',
        keys: [
          { kind: 'fetch', key: 'builtin_fetch' },
          { kind: 'model', key: 'builtin:builtin_fetch' },
          { kind: 'model', key: 'otari:web_fetch' },
        ],
      },
    ])
    await gather(serve(turnOf([], { maxOutputTokens: 7 }), [scripted([answers('A')])], { budgetExempt: true }))
    expect(brokers.asked.reserved[1]).toMatchObject({ estimate: { outputTokens: 7 }, budgetExempt: true, tools: [] })
  })

  test.each(['pricing_required', 'over_budget', 'insufficient_funds'] as const)(
    'P-15 T-32 a refusal (%s) ends the request untouched: no model, no sandbox, no search',
    async (failure) => {
      const { serve, brokers } = await openLoop()
      brokers.reserve = async () => {
        throw new Fault(failure, 'The words of billing')
      }
      const model = scripted([answers('A')])
      const serving = gather(serve(turnOf([search, code]), [model]))
      await expect(serving).rejects.toMatchObject({ failure, message: 'The words of billing' })
      expect([model.requests.length, brokers.asked.opened.length, brokers.asked.search.length]).toEqual([0, 0, 0])
      expect([brokers.settled, brokers.asked.released]).toEqual([[], []])
    },
  )

  test('T-32 R-65 a mistaken declaration comes before the reservation', async () => {
    const { serve, brokers } = await openLoop()
    const serving = gather(serve(turnOf([{ ...search, foo: 1 }]), [scripted([])]))
    await expect(serving).rejects.toMatchObject({ status: 400 })
    expect(brokers.asked.reserved).toEqual([])
  })

  test('X-28 P-46 a sandbox that does not open refuses the request, and the hold is given back', async () => {
    const { serve, brokers } = await openLoop()
    brokers.open = async () => {
      throw new Fault('upstream', 'connect ECONNREFUSED')
    }
    const model = scripted([answers('A')])
    await expect(gather(serve(turnOf([code]), [model]))).rejects.toMatchObject({ status: 502 })
    expect(model.requests).toEqual([])
    expect(brokers.asked.released).toEqual(['hold-r1'])
    expect(brokers.settled).toEqual([])
  })
})

describe('while it runs', () => {
  test('every call is recorded before the model learns its result', async () => {
    const { serve, brokers } = await openLoop()
    brokers.search = async () => ({ status: 'ok', label: 'exa:main', hits: [], reportedCost: '0.005' })
    let recordedThen = -1
    const model = scripted([
      asks,
      async function* () {
        recordedThen = brokers.toolLines.length
        yield* answers('A')
      },
    ])
    await gather(serve(turnOf([search]), [model]))
    expect(recordedThen).toBe(1)
    expect(brokers.toolLines).toMatchObject([
      {
        hold: 'hold-r1',
        tenancy,
        line: { id: 'hold-r1.0', tool: 'web_search', label: 'exa:main', outcome: 'ok', reportedCost: '0.005' },
      },
    ])
    expect(brokers.settled[0]?.lines).toEqual([brokers.toolLines[0]?.line])
  })

  test('S-23 P-10 what was refused or failed is recorded as an error', async () => {
    const { serve, brokers } = await openLoop()
    brokers.exec = async () => ({ status: 'ok', stdout: '', stderr: 'boom', returnCode: 1, files: [] })
    const model = scripted([
      calls(
        ['a', 'web_search', { query: 'q' }],
        ['b', 'web_search', { query: 'r' }],
        ['c', 'code_execution', { code: 'x' }],
      ),
      answers('A'),
    ])
    await gather(serve(turnOf([{ ...search, max_uses: 1 }, code]), [model]))
    expect(brokers.settled[0]?.lines.map(({ tool, outcome }) => [tool, outcome])).toEqual([
      ['web_search', 'ok'],
      ['web_search', 'error'],
      ['code_execution', 'error'],
    ])
  })
})

describe('every way out settles once (BR-149)', () => {
  const ended = ({ brokers }: Awaited<ReturnType<typeof openLoop>>) => ({
    settled: brokers.settled.map(({ status, error, tokens, estimated, lines }) => ({
      status,
      error,
      input: tokens.input > 0,
      output: tokens.output,
      estimated,
      lines: lines.length,
    })),
    released: brokers.asked.released.length,
  })

  test('a success, before its last event goes out', async () => {
    const loop = await openLoop()
    const settledBy = new Map<string, number>()
    await loop.serve(turnOf([search]), [asks, answers('A')])(({ type }) => {
      settledBy.set(type, loop.brokers.settled.length)
      return undefined
    })
    expect(Object.fromEntries(settledBy)).toEqual({
      start: 0,
      tool: 0,
      open: 0,
      delta: 0,
      close: 0,
      usage: 0,
      finish: 1,
    })
    expect(ended(loop)).toEqual({
      settled: [{ status: 'success', error: null, input: true, output: 10, estimated: false, lines: 1 }],
      released: 0,
    })
    expect(loop.brokers.settled[0]).toMatchObject({
      hold: 'hold-r1',
      tenancy,
      endpoint: '/api/v1/chat/completions',
      model: 'm',
      provider: 'fake',
      priceKeys: [{ kind: 'model', key: 'fake:m' }],
    })
  })

  test('P-46 a provider that fails before it said anything costs nothing', async () => {
    const loop = await openLoop()
    const script = [() => breaksOff([], providerDown)]
    await expect(gather(loop.serve(turnOf([search]), script))).rejects.toMatchObject({ status: 502 })
    expect(ended(loop)).toEqual({
      settled: [{ status: 'error', error: 'upstream', input: false, output: 0, estimated: false, lines: 0 }],
      released: 0,
    })
  })

  test('P-46 one that fails after tools ran leaves what they cost, and its own tokens', async () => {
    const loop = await openLoop()
    const script = [asks, () => breaksOff(textBlock(0, 'x'.repeat(40)), providerDown)]
    await expect(gather(loop.serve(turnOf([search]), script))).rejects.toMatchObject({ status: 502 })
    expect(ended(loop)).toEqual({
      settled: [{ status: 'error', error: 'upstream', input: true, output: 5 + 10, estimated: true, lines: 1 }],
      released: 0,
    })
  })

  test('P-47 a client that stops reading settles what ran, as cancelled', async () => {
    const loop = await openLoop()
    const reading = loop.serve(turnOf([search]), [asks, answers('A')])((event) => {
      if (event.type === 'tool' && event.phase === 'finished') throw new Fault('cancelled', 'the client left')
      return undefined
    })
    await expect(reading).rejects.toMatchObject({ failure: 'cancelled' })
    expect(ended(loop)).toEqual({
      settled: [{ status: 'cancelled', error: 'cancelled', input: true, output: 5, estimated: false, lines: 1 }],
      released: 0,
    })
  })

  test('BR-160 a client that leaves while a tool runs stops it, closes the sandbox and is settled', async () => {
    const loop = await openLoop()
    const { brokers } = loop
    let stopped = false
    brokers.exec = (_input, signal) =>
      new Promise((_resolve, reject) => {
        signal.addEventListener('abort', () => {
          stopped = true
          reject(signal.reason)
        })
      })
    const gone = new AbortController()
    const model = scripted([calls(['c1', 'code_execution', { code: 'while True: pass' }])])
    const serving = gather(loop.serve(turnOf([code]), [model], { signal: gone.signal }))
    await expect.poll(() => brokers.asked.exec.length).toBe(1)
    gone.abort(new Fault('cancelled', 'the client left'))
    await expect(serving).rejects.toMatchObject({ failure: 'cancelled' })
    await expect.poll(() => stopped).toBe(true)
    await expect.poll(() => brokers.asked.closed).toEqual(['s1'])
    expect(model.requests).toHaveLength(1)
    expect(ended(loop).settled).toMatchObject([{ status: 'cancelled', input: true, output: 5 }])
  })

  test('a client that leaves during the reservation gets its money back', async () => {
    const loop = await openLoop()
    const { brokers } = loop
    const gone = new AbortController()
    brokers.reserve = async () => {
      gone.abort(new Fault('cancelled', 'the client left'))
      return { hold: 'h' }
    }
    const model = scripted([answers('A')])
    await expect(gather(loop.serve(turnOf([]), [model], { signal: gone.signal }))).rejects.toMatchObject({
      failure: 'cancelled',
    })
    expect([model.requests.length, brokers.asked.released, brokers.settled.length]).toEqual([0, ['h'], 0])
  })

  test('time that ran out is an error of its own', async () => {
    const loop = await openLoop()
    const over = new AbortController()
    const closed = () =>
      new Promise<never>((_resolve, reject) => over.signal.addEventListener('abort', () => reject(new Error('closed'))))
    const model = scripted([() => breaksOff([], closed)])
    const serving = gather(loop.serve(turnOf([]), [model], { signal: over.signal }))
    await expect.poll(() => model.requests.length).toBe(1)
    over.abort(new Fault('timeout', 'the request took too long'))
    await expect(serving).rejects.toMatchObject({ status: 504, message: 'the request took too long' })
    expect(ended(loop).settled).toMatchObject([{ status: 'error', error: 'timeout' }])
  })

  test('what cannot be recorded is not given away', async () => {
    const loop = await openLoop()
    const { bus } = loop.brokers
    const record = bus.record.bind(bus)
    bus.record = async (topic, id, event, options) => {
      if (topic.subject === usageSettled.subject) throw new Fault('unavailable', 'no stream')
      return record(topic, id, event, options)
    }
    await expect(gather(loop.serve(turnOf([]), [answers('A')]))).rejects.toMatchObject({ failure: 'unavailable' })
  })
})

describe('usage nobody reported (P-50)', () => {
  const silentRound = answers('x'.repeat(40)).filter(({ type }) => type !== 'usage')

  test('is estimated, and said to be', async () => {
    const { serve, brokers } = await openLoop()
    const seen = await gather(serve(turnOf([]), [silentRound]))
    expect(brokers.settled).toMatchObject([{ estimated: true, tokens: { output: 10 }, status: 'success' }])
    expect(brokers.settled[0]?.tokens.input).toBeGreaterThan(0)
    expect(seen.count('usage')).toBe(0)
  })

  test('costs nothing under allow_free, tools excepted', async () => {
    const { serve, brokers } = await openLoop({ streamMissingUsagePolicy: 'allow_free' })
    const silentCalls = asks.filter(({ type }) => type !== 'usage')
    await gather(serve(turnOf([search]), [silentCalls, silentRound]))
    expect(brokers.settled).toMatchObject([{ estimated: false, tokens: { input: 0, output: 0 }, lines: { length: 1 } }])
  })

  test('fails the request under fail, tools billed', async () => {
    const { serve, brokers } = await openLoop({ streamMissingUsagePolicy: 'fail' })
    await expect(gather(serve(turnOf([search]), [asks, silentRound]))).rejects.toMatchObject({ status: 502 })
    expect(brokers.settled).toMatchObject([{ status: 'error', lines: { length: 1 } }])
  })
})

test('P-45 an attempt that another stood in for leaves a row, and one settlement holds all', async () => {
  const { serve, brokers } = await openLoop()
  const first = scripted([() => breaksOff([{ type: 'start', id: 'x', created: 1, model: 'm' }], providerDown)], {
    name: 'first',
  })
  const second = scripted([asks, answers('A')], { name: 'second' })
  const seen = await gather(serve(turnOf([search]), [first, second]))
  expect(seen.text).toBe('A')
  expect(seen.count('start')).toBe(1)
  expect(brokers.settled).toMatchObject([
    {
      provider: 'second',
      tenancy: { attempt: 1 },
      status: 'success',
      absorbed: [{ attempt: 0, provider: 'first', model: 'm', error: 'upstream' }],
      lines: { length: 1 },
    },
  ])
})

test('L-37 BR-030 nothing is tried again once anything went out, nor for a failure of ours', async () => {
  const { serve, brokers } = await openLoop()
  const begun = scripted([() => breaksOff(answers('The answer is').slice(0, 3), providerDown)], { name: 'first' })
  const spare = scripted([answers('A')], { name: 'second' })
  await expect(gather(serve(turnOf([], { stream: true }), [begun, spare]))).rejects.toMatchObject({ status: 502 })
  const ours = scripted([() => breaksOff([], () => new Fault('invalid_request', 'cannot be carried'))], {
    name: 'first',
  })
  await expect(
    gather(serve(turnOf([]), [ours, spare], { tenancy: { ...tenancy, request: 'r2' } })),
  ).rejects.toMatchObject({ status: 400 })
  expect(spare.requests).toEqual([])
  expect(brokers.settled).toHaveLength(2)
  expect(brokers.asked.reserved.map((input) => billingReserve.input.safeParse(input).success)).toEqual([true, true])
})
