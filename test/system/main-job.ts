import type OpenAI from 'openai'
import { describe, expect, test } from 'vitest'
import { openaiClient, type UsageRow } from './client.ts'
import { hit, type Outside } from './outside.ts'
import { allTools, SITE, sumOf, threeTools } from './scripted-jobs.ts'
import { type System, settledRow } from './system.ts'
import { pageText } from './web.ts'

const labels = ['searxng:engine', 'builtin:builtin_fetch', 'otari:code_execution']
/** What four rounds of the scripted model add up to. */
const input = 101 + 102 + 103 + 104
const output = 11 + 12 + 13 + 14
const usage = { prompt_tokens: input, completion_tokens: output, total_tokens: input + output }

const vendors = [
  { vendor: 'OpenAI', fake: 'openai', model: 'openai:gpt-5', cost: 0.017247, tokenCosts: [0.000513, 0.0005] },
  {
    vendor: 'Anthropic',
    fake: 'anthropic',
    model: 'anthropic:claude-sonnet-4-6',
    cost: 0.018214,
    tokenCosts: [0.00123, 0.00075],
  },
] as const satisfies { fake: keyof Outside; [more: string]: unknown }[]

const request = (model: string, content: string) => ({
  model,
  messages: [{ role: 'user' as const, content }],
  // the client's types know the vendor's own tools alone
  tools: allTools as unknown as OpenAI.ChatCompletionTool[],
})

function expectRightAnswer(text: string, tag: string): void {
  for (const part of [tag, hit.title, hit.url, pageText(tag), String(sumOf(tag))]) expect(text).toContain(part)
}

type Settled = { row: UsageRow; text: string }

/** One row with the sum of all rounds, and a line for each tool; `text` is what the gateway wrote, digit for digit. */
function expectRightRow({ row, text }: Settled, { cost, tokenCosts, model }: (typeof vendors)[number]): void {
  const counted = { billed: 1, errors: 0 }
  expect(row).toMatchObject({
    endpoint: '/api/v1/chat/completions',
    status: 'success',
    error: null,
    settled_by: 'gateway',
    ...usage,
    cost,
    billing_meters: { tools: { web_search: counted, web_fetch: counted, code_execution: counted } },
  })
  expect(row.pricing_breakdown.map(({ unit_rate: _, ...line }) => line)).toEqual([
    { meter: 'input_tokens', label: model, units: input, cost: tokenCosts[0] },
    { meter: 'output_tokens', label: model, units: output, cost: tokenCosts[1] },
    { meter: 'web_search_calls', label: labels[0], units: 1, cost: 0.005 },
    { meter: 'web_fetch_calls', label: labels[1], units: 1, cost: 0.01 },
    { meter: 'code_execution_calls', label: labels[2], units: 1, cost: 0.001234 },
  ])
  for (const written of [`"cost":${cost},`, '"unit_rate":0.001234', '"cost":0.001234']) expect(text).toContain(written)
}

/** What Tollgate is for, through the official client. */
export function theMainJob(use: () => System): void {
  describe.each(vendors)('the main job with a model of $vendor', (vendor) => {
    test('T-01 T-03 P-01 P-02 P-20 P-21 P-24 P-48 A-21 is answered with all three tools, whole', async () => {
      const { deployment, outside, key } = use()
      const tag = `whole-${vendor.fake}`
      const before = outside[vendor.fake].requests.length
      const { data, response } = await openaiClient(deployment, key)
        .chat.completions.create(request(vendor.model, threeTools(tag)))
        .withResponse()
      const [choice] = data.choices
      expect(data).toMatchObject({ object: 'chat.completion', model: vendor.model, usage })
      expect(choice).toMatchObject({ index: 0, finish_reason: 'stop' })
      expect(choice?.message.tool_calls).toBeUndefined()
      expectRightAnswer(choice?.message.content ?? '', tag)
      expect(outside[vendor.fake].requests).toHaveLength(before + 4)
      expectRightRow(await settledRow(deployment, response.headers.get('x-request-id') ?? ''), vendor)
    })

    test('T-01 T-03 P-20 P-21 P-24 P-48 A-21 is answered with all three tools, streamed', async () => {
      const { deployment, key } = use()
      const tag = `streamed-${vendor.fake}`
      const { data, response } = await openaiClient(deployment, key)
        .chat.completions.create({
          ...request(vendor.model, threeTools(tag)),
          stream: true,
          stream_options: { include_usage: true },
        })
        .withResponse()
      const chunks = []
      for await (const chunk of data) chunks.push(chunk)
      const choices = chunks.flatMap((chunk) => chunk.choices)
      expectRightAnswer(choices.map(({ delta }) => delta.content ?? '').join(''), tag)
      expect(choices.flatMap(({ delta }) => delta.tool_calls ?? [])).toEqual([])
      expect(choices.flatMap(({ finish_reason }) => finish_reason ?? [])).toEqual(['stop'])
      expect(new Set(chunks.map(({ id, model }) => `${id} ${model}`)).size).toBe(1)
      expect(chunks.flatMap((chunk) => chunk.usage ?? [])).toMatchObject([usage])
      expectRightRow(await settledRow(deployment, response.headers.get('x-request-id') ?? ''), vendor)
    })
  })

  test('T-01 T-03 P-24 the main job is answered by the demo model, which needs no provider', async () => {
    const { deployment, key } = use()
    const asked = `search for walnuts, then read ${SITE}/page/demo and then calculate 6*7`
    const { data, response } = await openaiClient(deployment, key)
      .chat.completions.create(request('demo:tools', asked))
      .withResponse()
    const text = data.choices[0]?.message.content ?? ''
    for (const part of [hit.title, pageText('demo'), '42']) expect(text).toContain(part)
    const { row } = await settledRow(deployment, response.headers.get('x-request-id') ?? '')
    expect(row).toMatchObject({ model: 'tools', provider: 'demo', status: 'success', cost: 0.016234 })
    expect(row.pricing_breakdown.flatMap(({ meter, label }) => (meter.endsWith('_calls') ? label : []))).toEqual(labels)
  })

  test('P-25 the page behind a hit was read, and is nowhere charged as a fetch', () => {
    // the rows above have one fetch each
    expect(use().outside.web.requests.filter(({ target }) => target === hit.url).length).toBeGreaterThan(0)
  })

  test('nothing outside was asked for in a way that it refuses', () => {
    const { openai, anthropic, search } = use().outside
    expect([...openai.refusals, ...anthropic.refusals, ...search.refusals]).toEqual([])
  })
}
