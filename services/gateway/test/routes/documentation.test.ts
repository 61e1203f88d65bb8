import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import { type Rig, startRig } from '../rig.ts'

interface Operation {
  tags: string[]
  summary: string
  parameters?: { name: string; in: string }[]
  requestBody?: { content: Record<string, { schema: Record<string, unknown> }> }
  responses: Record<string, { content?: Record<string, { schema: { properties: Record<string, unknown> } }> }>
}
interface OpenApi {
  openapi: string
  info: { version: string }
  paths: Record<string, Record<string, Operation>>
}

let rig: Rig
let api: OpenApi
let reason: string | undefined
beforeAll(async () => {
  rig = await startRig({ postgresUrl: inject('postgresUrl'), notReady: async () => reason })
  api = (await rig.send<OpenApi>('GET', '/openapi.json')).body
})
afterAll(() => rig.close())

test('the OpenAPI document has every path once, below /api/v1, with what it takes and gives', () => {
  expect(api.openapi).toBe('3.1.0')
  expect(api.info.version).toBe('0.0.0-test')
  const operations = Object.entries(api.paths).flatMap(([path, methods]) =>
    Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
  )
  expect(operations.sort()).toEqual([
    'DELETE /api/v1/keys/{id}',
    'DELETE /api/v1/models/{key}',
    'DELETE /api/v1/pricing/{key}',
    'DELETE /api/v1/workspaces/{workspace_id}/code-execution-policy',
    'DELETE /api/v1/workspaces/{workspace_id}/web-search',
    'GET /api/v1/keys',
    'GET /api/v1/keys/{id}',
    'GET /api/v1/models',
    'GET /api/v1/models/{key}',
    'GET /api/v1/pricing',
    'GET /api/v1/pricing/{key}',
    'GET /api/v1/tools',
    'GET /api/v1/usage',
    'GET /api/v1/users',
    'GET /api/v1/users/{id}',
    'GET /api/v1/workspaces',
    'GET /api/v1/workspaces/{workspace_id}/code-execution-policy',
    'GET /api/v1/workspaces/{workspace_id}/web-search',
    'GET /health',
    'PATCH /api/v1/keys/{id}',
    'PATCH /api/v1/models/{key}',
    'PATCH /api/v1/users/{id}',
    'POST /api/v1/keys',
    'POST /api/v1/keys/{id}/rotate',
    'POST /api/v1/pricing',
    'POST /api/v1/users',
    'POST /api/v1/workspaces',
    'PUT /api/v1/workspaces/{workspace_id}/code-execution-policy',
    'PUT /api/v1/workspaces/{workspace_id}/web-search',
  ])
  for (const [path, methods] of Object.entries(api.paths)) {
    for (const [method, operation] of Object.entries(methods)) {
      expect(operation.tags, `${method} ${path}`).toHaveLength(1)
      expect(operation.summary, `${method} ${path}`).toMatch(/^[A-Z]/)
      const named = (operation.parameters ?? []).filter((parameter) => parameter.in === 'path').map(({ name }) => name)
      expect(named, `${method} ${path}`).toEqual([...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name))
    }
  }
})

test('a decimal is documented as a number, and a body with its members', () => {
  const set = api.paths['/api/v1/pricing']?.post
  expect(set?.requestBody?.content['application/json']?.schema).toMatchObject({
    properties: { input_price_per_million: { type: 'number' }, kind: { enum: ['model', 'search', 'fetch'] } },
    required: ['model_key', 'input_price_per_million', 'output_price_per_million'],
    additionalProperties: false,
  })
  expect(set?.responses['200']?.content?.['application/json']?.schema.properties).toMatchObject({
    input_price_per_million: { type: 'number' },
  })
  const made = api.paths['/api/v1/keys']?.post?.responses['200']?.content?.['application/json']?.schema.properties
  expect(made).toHaveProperty('key')
  const shown = api.paths['/api/v1/keys/{id}']?.get?.responses['200']?.content?.['application/json']?.schema.properties
  expect(shown).not.toHaveProperty('key')
})

describe('the pages for people', () => {
  test('load nothing from anywhere else', async () => {
    const page = await rig.send('GET', '/docs')
    const html = page.status === 200 ? page.text : (await rig.send('GET', page.headers.get('location')!)).text
    expect(html).toContain('swagger-ui')
    expect(
      [...html.matchAll(/(?:src|href)="([^"]+)"/g)]
        .map(([, from]) => from!)
        .filter((from) => /^(https?:)?\/\//.test(from)),
    ).toEqual([])
    for (const [, from] of html.matchAll(/(?:src|href)="([^"]+)"/g)) {
      const loaded = await rig.send('GET', new URL(from!, 'http://x/docs/').pathname)
      expect(loaded.status, from).toBe(200)
    }
  })

  test('are guarded against being framed or sniffed', async () => {
    const { headers } = await rig.send('GET', '/docs/')
    expect(headers.get('content-security-policy')).toContain("default-src 'self'")
    expect(headers.get('x-content-type-options')).toBe('nosniff')
    expect(headers.get('x-frame-options')).toBe('DENY')
  })

  test('are where / leads', async () => {
    expect(await rig.send('GET', '/')).toMatchObject({ status: 302 })
  })
})

test('every path answers below /v1 as it does below /api/v1', async () => {
  for (const path of ['/keys', '/users', '/models', '/tools']) {
    const [one, other] = await Promise.all(
      ['/api/v1', '/v1'].map((prefix) => rig.send('GET', prefix + path, { key: rig.masterKey })),
    )
    expect(one?.status).toBe(200)
    expect(other?.text).toBe(one?.text)
  }
})

test('health is a 503 with its reason while requests cannot be served', async () => {
  reason = 'the bus cannot record'
  expect(await rig.send('GET', '/health')).toMatchObject({ status: 503, body: { status: 'unavailable', reason } })
  reason = undefined
  expect((await rig.send('GET', '/health')).status).toBe(200)
})
