import { openLog, startTelemetry, type Telemetry } from '@tollgate/telemetry'
import { callsTools, type OtlpReceiver, says, startOtlp } from '@tollgate/testing'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { PATH, startGateway } from './gateway.ts'

let otlp: OtlpReceiver
let telemetry: Telemetry
beforeAll(async () => {
  otlp = await startOtlp()
  const log = openLog({ service: 'gateway', level: 'silent' })
  telemetry = startTelemetry({ service: 'gateway', version: '0', log, otlpEndpoint: otlp.url })
})
afterAll(async () => {
  await telemetry.shutdown()
  await otlp.stop()
})

test('a request is a trace of rounds, each with its model call and its tool calls, and says nothing of their content', async () => {
  const script = [
    callsTools([{ name: 'web_search', input: { query: 'canary-query' }, id: 'c1' }]),
    says('canary-answer'),
  ]
  const { send, firstKey } = await startGateway(script)
  await send('POST', PATH, {
    key: firstKey,
    body: {
      model: 'fake:m',
      stream: true,
      messages: [{ role: 'user', content: 'canary-question' }],
      tools: [{ type: 'otari_web_search' }],
    },
  })
  const named = (name: string) => otlp.spans.filter((span) => span.name === name)
  await expect.poll(() => named(`POST ${PATH}`), { timeout: 15_000 }).toHaveLength(1)
  const [server] = named(`POST ${PATH}`)
  const rounds = named('round').toSorted(
    (a, b) => Number(a.attributes['tollgate.round']) - Number(b.attributes['tollgate.round']),
  )
  expect(rounds.map(({ parentSpanId }) => parentSpanId)).toEqual([server?.spanId, server?.spanId])
  expect(rounds[0]?.attributes).toMatchObject({ 'gen_ai.provider.name': 'fake', 'gen_ai.request.model': 'm' })
  expect(named('chat fake').map(({ parentSpanId }) => parentSpanId)).toEqual(rounds.map(({ spanId }) => spanId))
  const [tool] = named('tool web_search')
  expect(tool).toMatchObject({
    parentSpanId: rounds[0]?.spanId,
    attributes: {
      'gen_ai.operation.name': 'execute_tool',
      'gen_ai.tool.name': 'web_search',
      'gen_ai.tool.call.id': 'c1',
    },
  })
  const call = otlp.spans.find(({ name }) => name.startsWith('call tg.v1.search.query'))
  expect(call?.parentSpanId).toBe(tool?.spanId)
  expect(otlp.spans.map(({ text }) => text).join()).not.toContain('canary')
})

test('tools are counted under labels of a closed set, with their time and the rounds of the turn', async () => {
  const { send, firstKey, brokers } = await startGateway([
    callsTools([
      { name: 'web_search', input: { query: 'q' } },
      { name: 'web_search', input: {} },
      { name: 'web_fetch', input: { url: 'https://a.test/' } },
    ]),
    says('A'),
  ])
  brokers.search = async () => ({ status: 'ok', label: 'org:exa', hits: [] })
  const tools = [{ type: 'otari_web_search' }, { type: 'otari_web_fetch' }]
  await send('POST', PATH, {
    key: firstKey,
    body: { model: 'fake:m', messages: [{ role: 'user', content: 'x' }], tools },
  })
  const text = await telemetry.metricsText()
  expect(text).toContain('tool_calls_total{tool="web_search",label="org",outcome="ok"} 1')
  expect(text).toContain('tool_calls_total{tool="web_search",label="instance",outcome="error"} 1')
  expect(text).toContain('tool_calls_total{tool="web_fetch",label="builtin",outcome="ok"} 1')
  expect(text).toMatch(/tool_seconds_count\{tool="web_fetch"\} 1/)
  expect(text).toMatch(/turn_rounds_sum(\{\})? 4/)
})
