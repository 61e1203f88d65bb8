import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import { z } from 'zod'
import { actFor } from '../../src/auth/acting-user.ts'
import type { Dialect } from '../../src/conversation/turn.ts'
import { openModels } from '../../src/models/registry.ts'
import { candidatesOf } from '../../src/routing/candidates.ts'
import { silent } from '../brokers.ts'
import { type Rig, startRig } from '../rig.ts'

const registry = openModels({
  providers: {
    openai: { models: [] },
    anthropic: { models: [] },
    hf: { type: 'vllm', models: [] },
    anything: { type: 'vllm', models: [] },
  },
  seats: {},
  demo: false,
  log: silent,
})
let rig: Rig
beforeAll(async () => {
  rig = await startRig({
    postgresUrl: inject('postgresUrl'),
    models: ['openai:gpt-4o', 'openai:o3', 'anthropic:claude'].map((id) => ({ id, provider: id.split(':')[0]! })),
    // a completion up to where its model would be called: the order of checks is the real one
    routes: ({ identities, settings }) => [
      async (app) => {
        app.post<{ Params: { dialect: Dialect } }>('/act/:dialect', {}, async (request) => {
          const { model, user } = z.object({ model: z.string(), user: z.string().optional() }).parse(request.body)
          const acting = await actFor(request.identity, user, { dialect: request.params.dialect, identities, settings })
          candidatesOf({ policy: undefined, candidates: [model], rules: {} }, model, acting, registry, 'chat')
          return acting
        })
      },
    ],
  })
  await asMaster('POST', '/api/v1/users', { user_id: 'ann' })
  await asMaster('POST', '/api/v1/users', { user_id: 'bob', allowed_models: ['openai:*'] })
})
afterAll(() => rig.close())

const asMaster = <B = unknown>(method: string, path: string, body?: unknown) =>
  rig.send<B>(method, path, { key: rig.masterKey, ...(body === undefined ? {} : { body }) })
const act = (key: string, body: { user?: string; model?: string } = {}, dialect = 'chat') =>
  rig.send<{ detail?: string; user?: string }>('POST', `/api/v1/act/${dialect}`, {
    key,
    body: { model: 'openai:gpt-4o', ...body },
  })

describe('A-05 the master key acts for whom the request names', () => {
  test.each([
    ['chat', 'user'],
    ['responses', 'user'],
    ['messages', 'metadata.user_id'],
  ])('A-05 and on %s must name one', async (dialect, member) => {
    const detail = `When using master key, '${member}' field is required in request body`
    expect(await act(rig.masterKey, {}, dialect)).toMatchObject({ status: 400, body: { detail } })
    expect(await act(rig.masterKey, { user: '' }, dialect)).toMatchObject({ status: 400, body: { detail } })
  })

  test('A-04 A-05 runs in the default workspace as that user', async () => {
    expect(await act(rig.masterKey, { user: 'ann' })).toMatchObject({
      status: 200,
      body: { kind: 'master', organization: 'default', workspace: 'default', user: 'ann', key: 'master' },
    })
  })

  test('A-05 a user of ten thousand characters is not found, and not repeated at length', async () => {
    const { status, body } = await act(rig.masterKey, { user: 'x'.repeat(10_000) })
    expect(status).toBe(404)
    expect(body).toEqual({ detail: expect.stringMatching(/^User 'x{1,2000}…$/) })
  })

  test.each(['carl', 'Ann', 'ann ', 'ann\0', '\0', "' or 1=1 --"])('A-05 user %j is not found', async (user) => {
    expect(await act(rig.masterKey, { user })).toMatchObject({
      status: 404,
      body: { detail: `User '${user}' not found` },
    })
  })

  test('A-05 a blocked user is refused, by master key and by key, and served again after', async () => {
    await asMaster('POST', '/api/v1/users', { user_id: 'dan' })
    const { key } = await rig.makeKey({ user_id: 'dan' })
    expect((await act(key)).status).toBe(200)
    await asMaster('PATCH', '/api/v1/users/dan', { blocked: true })
    const refused = { status: 403, body: { detail: "User 'dan' is blocked" } }
    expect(await act(key)).toMatchObject(refused)
    expect(await act(rig.masterKey, { user: 'dan' })).toMatchObject(refused)
    await asMaster('PATCH', '/api/v1/users/dan', { blocked: false })
    expect((await act(key)).status).toBe(200)
  })

  test('A-05 a user that was asked for before it was made is found once it is', async () => {
    expect((await act(rig.masterKey, { user: 'eve' })).status).toBe(404)
    await asMaster('POST', '/api/v1/users', { user_id: 'eve' })
    expect((await act(rig.masterKey, { user: 'eve' })).status).toBe(200)
  })
})

describe('A-06 a key that names a user', () => {
  test('A-06 may name its own', async () => {
    const { key } = await rig.makeKey({ user_id: 'ann' })
    expect(await act(key, { user: 'ann' })).toMatchObject({ status: 200, body: { user: 'ann' } })
  })

  test('A-06 is refused for another, there or not', async () => {
    const { key } = await rig.makeKey({ user_id: 'ann' })
    expect(await act(key, { user: 'bob' })).toMatchObject({ status: 403 })
    expect(await act(key, { user: 'nobody' })).toMatchObject({ status: 403 })
  })

  test('A-06 CFG-37 with the deployment or the key set so, spends as its own user; the key beats the deployment', async () => {
    const { key: lenient } = await rig.makeKey({ user_id: 'ann', reject_user_mismatch: false })
    expect(await act(lenient, { user: 'bob' })).toMatchObject({ status: 200, body: { user: 'ann' } })
    const { key: undecided } = await rig.makeKey({ user_id: 'ann' })
    const { key: strict } = await rig.makeKey({ user_id: 'ann', reject_user_mismatch: true })
    rig.settings.rejectUserMismatch = false
    expect(await act(undecided, { user: 'bob' })).toMatchObject({ status: 200, body: { user: 'ann' } })
    expect((await act(strict, { user: 'bob' })).status).toBe(403)
    rig.settings.rejectUserMismatch = true
    expect((await act(undecided, { user: 'bob' })).status).toBe(403)
  })
})

describe('A-07 which models a key may use', () => {
  test.each([
    [null, 'openai:gpt-4o', true],
    [null, 'anything:at-all', true],
    [[], 'openai:gpt-4o', false],
    [['openai:gpt-4o'], 'openai:gpt-4o', true],
    [['openai:gpt-4o'], 'openai:gpt-4o-mini', false],
    [['openai:gpt-4o'], 'azure:gpt-4o', false],
    [['openai:*'], 'openai:gpt-4o', true],
    [['openai:*'], 'openai2:gpt-4o', false],
    [['openai:*'], 'azure:gpt-4o', false],
    [['openai:gpt-4*'], 'openai:gpt-4o-mini', true],
    [['openai:gpt-4*'], 'openai:gpt-4', true],
    [['openai:gpt-4*'], 'openai:gpt-3.5', false],
    [['openai:gpt-4*'], 'openai:GPT-4', false],
    [['hf:*'], 'hf:meta-llama/Llama-3', true],
    [['anthropic:claude', 'openai:o3'], 'openai:o3', true],
  ])('A-07 %j lets %s through: %s', async (allowed_models, model, allowed) => {
    const { key } = await rig.makeKey({ allowed_models })
    const answer = await act(key, { model })
    expect(answer.status).toBe(allowed ? 200 : 403)
    if (!allowed) expect(answer.body.detail).toBe(`Model '${model}' is not permitted for this API key.`)
  })

  test.each([
    [['openai:gpt-4o'], 200],
    [['openai:*'], 200],
    [['openai:gpt*', 'openai:o3'], 200],
    [[], 200],
    [['anthropic:*'], 400],
    [['openai:gpt-4o', 'anthropic:claude'], 400],
  ])('A-07 a key of a user with openai:* may get %j: %s', async (allowed_models, status) => {
    const made = await asMaster<{ detail?: string }>('POST', '/api/v1/keys', { user_id: 'bob', allowed_models })
    expect(made.status).toBe(status)
    const { id } = await rig.makeKey({ user_id: 'bob' })
    const changed = await asMaster<{ detail?: string }>('PATCH', `/api/v1/keys/${id}`, { allowed_models })
    expect(changed.status).toBe(status)
    if (status === 400) expect(made.body.detail).toContain("broader than those of its user 'bob'")
  })

  test('A-07 a key without a list has its user’s; the master key acting for them too', async () => {
    const { key } = await rig.makeKey({ user_id: 'bob' })
    expect((await act(key, { model: 'openai:o3' })).status).toBe(200)
    expect((await act(key, { model: 'anthropic:claude' })).status).toBe(403)
    expect((await act(rig.masterKey, { user: 'bob', model: 'anthropic:claude' })).status).toBe(403)
    expect((await act(rig.masterKey, { user: 'ann', model: 'anthropic:claude' })).status).toBe(200)
  })

  test('A-07 narrowing a user narrows the keys made before', async () => {
    await asMaster('POST', '/api/v1/users', { user_id: 'fay' })
    const { key } = await rig.makeKey({ user_id: 'fay', allowed_models: ['openai:*', 'anthropic:claude'] })
    expect((await act(key, { model: 'openai:o3' })).status).toBe(200)
    await asMaster('PATCH', '/api/v1/users/fay', { allowed_models: ['openai:gpt*'] })
    expect((await act(key, { model: 'openai:o3' })).status).toBe(403)
    expect((await act(key, { model: 'anthropic:claude' })).status).toBe(403)
    expect((await act(key, { model: 'openai:gpt-4o' })).status).toBe(200)
  })

  test('A-07 the list of models shows what the key may use', async () => {
    const { key } = await rig.makeKey({ allowed_models: ['openai:o*'] })
    const list = await rig.send('GET', '/api/v1/models', { key })
    expect(list.body).toEqual({
      object: 'list',
      data: [{ id: 'openai:o3', object: 'model', created: 0, owned_by: 'openai' }],
    })
    expect((await rig.send('GET', '/api/v1/models/openai:o3', { key })).status).toBe(200)
    expect((await rig.send('GET', '/api/v1/models/anthropic:claude', { key })).status).toBe(404)
  })
})

describe('R-65 what is refused first', () => {
  test('R-65 an unknown key before a body that is no JSON, that before a blocked user, that before a model', async () => {
    await asMaster('POST', '/api/v1/users', { user_id: 'gus', blocked: true })
    const { key } = await rig.makeKey({ user_id: 'gus', allowed_models: [] })
    const status = async (key: string, body: unknown) =>
      (await rig.send('POST', '/api/v1/act/chat', { key, body })).status
    expect(await status('gw-wrong', '{')).toBe(401)
    expect(await status(key, '{')).toBe(422)
    const blocked = await act(key, { user: 'ann' })
    expect(blocked).toMatchObject({ status: 403, body: { detail: "User 'gus' is blocked" } })
    await asMaster('PATCH', '/api/v1/users/gus', { blocked: false })
    expect((await act(key)).body.detail).toBe("Model 'openai:gpt-4o' is not permitted for this API key.")
  })
})
