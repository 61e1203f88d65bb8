import { memoryBus } from '@tollgate/bus'
import { type SeatSettings, seatMistake, seatSettings } from '@tollgate/contracts'
import { callsTools, type FakeJson, type FakeModel, fakeMoonshot, type ScriptedReply, says } from '@tollgate/testing'
import { afterAll, afterEach, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { openModels } from '../../src/models/registry.ts'
import { openRuntimeSeats } from '../../src/seat-changes/runtime.ts'
import type { Send } from '../sender.ts'
import { startReplicas } from './two-replicas.ts'

const SEARCH = { type: 'builtin_function', function: { name: '$web_search' } }
/** Over NATS it takes milliseconds; a loaded machine may take its time. */
const WITHIN = { timeout: 25_000, interval: 20 }

const seat = (more: object = {}) => seatSettings.parse({ provider: 'moonshot', model: 'm', ...more })
const configured: Record<string, SeatSettings> = {
  kimi: seat(),
  'eu/kimi': seat({
    delegated_search: '$web_search',
    provider_tool_fees: { $web_search: 0.005 },
    context_window: 8_000,
  }),
}

let moonshot: FakeModel
let replies: ScriptedReply[] = []
let onRead: () => Promise<void> = async () => {}
let replicas: Awaited<ReturnType<typeof startReplicas>>
beforeAll(async () => {
  moonshot = await fakeMoonshot(() => replies.shift() ?? says('done'))
  replicas = await startReplicas({
    providers: { moonshot: { type: 'openai-compatible', apiBase: `${moonshot.url}/v1`, models: [] } },
    seats: configured,
    onRead: () => onRead(),
  })
}, 60_000)
afterAll(async () => {
  await replicas.close()
  await moonshot.close()
})
afterEach(async () => {
  onRead = async () => {}
  for (const name of Object.keys(configured)) await reset(name)
})

interface Shown extends FakeJson {
  detail?: { loc: (string | number)[]; msg: string }[]
}
const change = (name: string, body: object, { send = replicas.left, key = replicas.masterKey } = {}) =>
  send<Shown>('PATCH', `/api/v1/models/${name}`, { key, body })
const reset = (name: string, key = replicas.masterKey) => replicas.left('DELETE', `/api/v1/models/${name}`, { key })
const shown = async (send: Send, name: string) =>
  (await send<Shown>('GET', `/api/v1/models/${name}`, { key: replicas.masterKey })).body

/** The tools that the backend is told of when a request for `model` comes, round by round. */
async function declared(send: Send, model: string, tools: object[] = []): Promise<unknown[][]> {
  moonshot.requests.length = 0
  const messages = [{ role: 'user', content: 'Hello' }]
  const body = { model, messages, ...(tools.length > 0 && { tools }) }
  const { status } = await send('POST', '/api/v1/chat/completions', { key: replicas.key, body })
  expect([status, moonshot.refusals]).toEqual([200, []])
  return moonshot.requests.map(({ body: sent }) => (sent.tools ?? []) as unknown[])
}

describe('PE-71 what a backend runs is changed while the gateways run', () => {
  test('for new requests on every replica, and back again', async () => {
    const { left, right } = replicas
    expect(await declared(right, 'kimi')).toEqual([[]])
    const answer = await change('kimi', {
      provider_executed_tools: ['$web_search'],
      provider_tool_fees: { $web_search: '0.007' },
    })
    expect([answer.status, answer.body]).toEqual([200, await shown(left, 'kimi')])
    expect(answer.body).toMatchObject({
      provider_executed_tools: ['$web_search'],
      provider_tool_fees: { $web_search: '0.007' },
      provider_tool_max_calls: 10,
    })
    expect(await declared(left, 'kimi')).toEqual([[SEARCH]])
    await expect.poll(() => declared(right, 'kimi'), WITHIN).toEqual([[SEARCH]])
    await change('kimi', { provider_tool_max_calls: 3 }, { send: right })
    await expect
      .poll(() => shown(left, 'kimi'), WITHIN)
      .toMatchObject({
        provider_executed_tools: ['$web_search'],
        provider_tool_max_calls: 3,
      })
    expect((await reset('kimi')).status).toBe(204)
    expect(await declared(left, 'kimi')).toEqual([[]])
    await expect.poll(() => declared(right, 'kimi'), WITHIN).toEqual([[]])
  })

  test('for no loop that runs: it keeps what it began with', async () => {
    const fetchTool = { type: 'otari_web_fetch' }
    await change('kimi', { provider_executed_tools: ['$web_search'] })
    replies = [callsTools([{ name: 'web_fetch', input: { url: 'https://site.test/0' }, id: 'f1' }]), says('done')]
    onRead = async () => {
      expect((await change('kimi', { provider_executed_tools: [] })).status).toBe(200)
    }
    const rounds = await declared(replicas.left, 'kimi', [fetchTool])
    expect(rounds).toHaveLength(2)
    for (const tools of rounds) expect(tools).toContainEqual(SEARCH)
    const [after] = await declared(replicas.left, 'kimi', [fetchTool])
    expect(after).not.toContainEqual(SEARCH)
  })

  test('from the delegated form to the listed one, with null for none', async () => {
    const { left } = replicas
    expect(await shown(left, 'eu/kimi')).toMatchObject({ delegated_search: '$web_search', context_window: 8_000 })
    const changes = { delegated_search: null, provider_executed_tools: ['$web_search'], context_window: null }
    const { body } = await change('eu/kimi', changes)
    expect(body).toMatchObject({ delegated_search: null, provider_executed_tools: ['$web_search'] })
    expect(body).not.toHaveProperty('context_window')
    expect(body).toMatchObject({ provider_tool_fees: { $web_search: '0.005' } })
    expect(await declared(left, 'eu/kimi')).toEqual([[SEARCH]])
  })

  test('also where the news of it was lost, and what cannot be read counts as not made', async () => {
    const { db, log } = replicas
    const models = openModels({
      providers: { moonshot: { type: 'openai-compatible', apiBase: `${moonshot.url}/v1`, models: [] } },
      demo: false,
      log,
    })
    const seats = await openRuntimeSeats({ db, bus: memoryBus({ log }), log, configured, models, everyMs: 20 })
    onTestFinished(async () => {
      await seats.close()
      await models.close()
    })
    const executed = () => models.seats().map(({ name, settings }) => [name, settings.provider_executed_tools])
    await change('kimi', { provider_executed_tools: ['$web_search'] })
    await expect.poll(executed).toEqual([
      ['kimi', ['$web_search']],
      ['eu/kimi', []],
    ])
    const unreadable = JSON.stringify({ provider_executed_tools: 'all of them' })
    await db.kysely
      .updateTable('gateway.seat_changes')
      .set({ changes: unreadable })
      .where('seat', '=', 'kimi')
      .execute()
    await expect.poll(executed).toEqual([
      ['kimi', []],
      ['eu/kimi', []],
    ])
  })
})

describe('a change of a seat is refused', () => {
  test('PE-42 PE-70 that leaves it with both fields, in the words of the configuration, and nothing is changed', async () => {
    const both = { delegated_search: '$web_search', provider_executed_tools: ['$web_search'] }
    const text = seatMistake('kimi', both)
    const at = async (name: string, body: object) => {
      const answer = await change(name, body)
      return [answer.status, answer.body.detail]
    }
    expect(await at('kimi', both)).toEqual([422, [expect.objectContaining({ loc: ['body'], msg: text })]])
    expect(await shown(replicas.left, 'kimi')).toMatchObject({ delegated_search: null, provider_executed_tools: [] })
    expect(await at('eu/kimi', { provider_executed_tools: ['$web_search'] })).toEqual([
      422,
      [expect.objectContaining({ msg: text?.replace('kimi', 'eu/kimi') })],
    ])
    await change('kimi', { provider_executed_tools: ['$web_search'] })
    expect((await at('kimi', { delegated_search: '$web_search' }))[0]).toBe(422)
  })

  test('PE-42 on two replicas at once: of two changes that do not go together one is made', async () => {
    const { left, right } = replicas
    for (let n = 0; n < 5; n++) {
      const answers = await Promise.all([
        change('kimi', { delegated_search: '$web_search' }, { send: left }),
        change('kimi', { provider_executed_tools: ['$web_search'] }, { send: right }),
      ])
      expect(answers.map(({ status }) => status).sort()).toEqual([200, 422])
      await reset('kimi')
    }
  })

  const bad: [body: object, loc: (string | number)[]][] = [
    [{ provider_executed_tools: [' '] }, ['provider_executed_tools', 0]],
    [{ provider_executed_tools: ['a', 'a'] }, ['provider_executed_tools']],
    [{ provider_executed_tools: null }, ['provider_executed_tools']],
    [{ delegated_search: '' }, ['delegated_search']],
    [{ provider_tool_fees: { a: -1 } }, ['provider_tool_fees', 'a']],
    [{ provider_tool_max_calls: 0 }, ['provider_tool_max_calls']],
    [{ context_window: 1.5 }, ['context_window']],
  ]
  test.each(bad)('that names no good value: %j', async (body, loc) => {
    const answer = await change('kimi', body)
    expect([answer.status, answer.body.detail?.map((problem) => problem.loc)]).toEqual([422, [['body', ...loc]]])
  })

  test.each(['model', 'provider', 'nonsense'])('that is of %s, which no change may touch', async (field) => {
    expect((await change('kimi', { [field]: 'x' })).status).toBe(422)
  })

  test('of whom is not the operator, and of what is no seat', async () => {
    const { key, left } = replicas
    expect((await change('kimi', {}, { key })).status).toBe(403)
    expect((await reset('kimi', key)).status).toBe(403)
    expect((await left('PATCH', '/api/v1/models/kimi', { body: {} })).status).toBe(401)
    for (const name of ['nobody', 'fake:m', 'constructor', '__proto__']) {
      expect((await change(name, {})).status).toBe(404)
      expect((await reset(name)).status).toBe(404)
    }
  })
})
