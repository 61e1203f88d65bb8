import { SpanStatusCode, trace } from '@opentelemetry/api'
import { fakeAnthropic, fakeOpenAi, says } from '@tollgate/testing'
import { describe, expect, test } from 'vitest'
import type { ModelEvent } from '../../src/conversation/events.ts'
import { openModels } from '../../src/models/registry.ts'
import { toldBy } from '../told.ts'
import { answerOf, chatRequest, faultOf, modelsAt, saidIn, silent, soon } from './asking.ts'

const providers = {
  openai: { apiKey: 'sk-a', models: ['gpt-x', 'gpt-y'] },
  anthropic: { apiKey: 'sk-b', models: [] },
  local: { type: 'openai-compatible', apiBase: 'http://127.0.0.1:1/v1', models: ['q:8b'] },
} as const

describe('which model a selector names', () => {
  const models = openModels({ providers, demo: true, log: silent })

  test.each([
    ['openai:gpt-x', 'openai', 'gpt-x', 'openai-chat'],
    ['openai:any-other', 'openai', 'any-other', 'openai-chat'],
    ['anthropic:claude', 'anthropic', 'claude', 'anthropic'],
    ['local:q:8b', 'local', 'q:8b', 'openai-chat'],
    ['demo:echo', 'demo', 'echo', 'demo'],
  ])('%s', (selector, name, model, wire) => {
    expect(models.resolve(selector)).toMatchObject({ provider: { name, wire }, model })
  })

  test.each([
    ['gpt-x', 'invalid_request', 'provider:model'],
    ['', 'invalid_request', 'provider:model'],
    [':x', 'invalid_request', 'provider:model'],
    ['openai:', 'invalid_request', 'provider:model'],
    ['mistral:x', 'not_found', 'openai, anthropic, local, demo'],
    ['constructor:x', 'not_found', 'no model provider'],
    ['OpenAI:x', 'not_found', 'no model provider'],
  ])('%j is refused with what to do', (selector, failure, words) => {
    expect(() => models.resolve(selector)).toThrowError(
      expect.objectContaining({ failure, message: expect.stringContaining(words) }),
    )
    expect(() => models.resolve(selector)).not.toThrowError(/sk-a/)
  })

  test('the configured models are listed, and demo is there unless it is switched off', () => {
    expect(models.list().map(({ id }) => id)).toEqual([
      'openai:gpt-x',
      'openai:gpt-y',
      'local:q:8b',
      'demo:echo',
      'demo:tools',
    ])
    const without = openModels({ providers, demo: false, log: silent })
    expect(without.list().map(({ id }) => id)).not.toContain('demo:echo')
    expect(() => without.resolve('demo:echo')).toThrowError(/no model provider/)
  })

  test('an instance that says too little stops the start', () => {
    const open = (settings: object) => () =>
      openModels({ providers: { x: { models: [], ...settings } }, demo: false, log: silent })
    expect(open({})).toThrowError(/providers\.x: 'type' must be one of/)
    expect(open({ type: 'openai-compatible' })).toThrowError(/needs 'api_base'/)
    expect(open({ type: 'anthropic' })).not.toThrowError()
  })
})

test('credentials and paths are the vendor’s own, with a base with or without its version', async () => {
  const openAi = await fakeOpenAi([says('a')], { apiKey: 'sk-a' })
  const anthropic = await fakeAnthropic([says('b'), says('c')], { apiKey: 'sk-b' })
  const models = openModels({
    providers: {
      a: { type: 'openai', apiKey: 'sk-a', apiBase: `${openAi.url}/v1/`, models: [] },
      b: { type: 'anthropic', apiKey: 'sk-b', apiBase: anthropic.url, models: [] },
      c: { type: 'anthropic-compatible', apiKey: 'sk-b', apiBase: `${anthropic.url}/v1`, models: [] },
    },
    demo: false,
    log: silent,
  })
  for (const name of ['a', 'b', 'c']) {
    const { provider } = models.resolve(`${name}:m`)
    const told = await toldBy<ModelEvent>((tell) => provider.ask(chatRequest({}), soon(), tell))
    expect(told.map((event) => (event.type === 'delta' ? event.text : '')).join('')).toBe(name)
  }
  await models.close()
  await Promise.all([openAi.close(), anthropic.close()])
})

test('a wrong key of ours is a 502 that does not tell it', async () => {
  const fake = await fakeOpenAi([], { apiKey: 'sk-right-000000' })
  const models = modelsAt(fake, { type: 'openai', apiKey: 'sk-wrong-111111' })
  const fault = await faultOf(answerOf(models, chatRequest({})))
  expect(fault).toMatchObject({
    failure: 'upstream',
    status: 502,
    message: "the model provider refused this gateway's account",
  })
  await models.close()
  await fake.close()
})

test('each call is a span with the conventions’ attributes and nothing that was said', async () => {
  const ended: { name: string; attributes: Record<string, unknown>; status: number | undefined }[] = []
  trace.setGlobalTracerProvider({
    getTracer: () => ({
      startSpan(name: string, { attributes }: { attributes: Record<string, unknown> }) {
        const span = { name, attributes: { ...attributes }, status: undefined as number | undefined }
        return {
          setAttribute: (key: string, value: unknown) => void Object.assign(span.attributes, { [key]: value }),
          setAttributes: (more: object) => void Object.assign(span.attributes, more),
          setStatus: ({ code }: { code: number }) => void Object.assign(span, { status: code }),
          end: () => void ended.push(span),
        }
      },
    }),
  } as never)
  const secret = says('secret words')
  const fake = await fakeOpenAi([secret, { status: 500, body: '{}' }, secret, secret])
  const models = modelsAt(fake, { type: 'openai' })
  expect(saidIn(await answerOf(models, chatRequest({})))).toEqual([{ kind: 'text', text: 'secret words' }])
  await faultOf(answerOf(models, chatRequest({})))
  const leave = () => {
    throw new Error('heard enough')
  }
  for (const tell of [leave, async () => leave()])
    await expect(models.resolve('up:m').provider.ask(chatRequest({}), soon(), tell)).rejects.toThrow('heard enough')
  trace.disable()
  expect(ended.map(({ name }) => name)).toEqual(Array(4).fill('chat up'))
  expect(ended[0]).toMatchObject({
    attributes: {
      'gen_ai.operation.name': 'chat',
      'gen_ai.provider.name': 'up',
      'gen_ai.request.model': 'm',
      'gen_ai.response.model': 'm',
      'gen_ai.usage.input_tokens': 11,
      'gen_ai.usage.output_tokens': 7,
      'gen_ai.response.finish_reasons': ['stop'],
    },
    status: undefined,
  })
  expect(ended[1]).toMatchObject({ attributes: { 'error.type': 'upstream' }, status: SpanStatusCode.ERROR })
  // who left is no failure of the provider
  for (const left of ended.slice(2)) {
    expect(left.status).toBeUndefined()
    expect(left.attributes).not.toHaveProperty('error.type')
  }
  expect(JSON.stringify(ended)).not.toContain('secret words')
  await models.close()
  await fake.close()
})
