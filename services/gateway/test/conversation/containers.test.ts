import { Fault, type HeldContainer, noSuchContainer } from '@tollgate/contracts'
import { callsTools, type ModelScript, says } from '@tollgate/testing'
import { describe, expect, test } from 'vitest'
import { framesOf, PATH, rawPost, startGateway } from './gateway.ts'

const id = `otari_cntr_${'0a'.repeat(16)}`
const leased: HeldContainer = { id, expiresAt: '2026-12-01T00:10:00.000Z' }
/** As it is when the request ends. */
const released: HeldContainer = { id, expiresAt: '2026-12-01T00:10:42.000Z' }

const runs = (code = 'print(1)') => callsTools([{ name: 'code_execution', input: { code } }])
const messages = [{ role: 'user', content: 'Compute.' }]
const tools = [{ type: 'otari_code_execution' }]
const body = (more: object = {}) => ({ model: 'fake:m', messages, tools, ...more })

/** A gateway whose broker keeps a sandbox for whoever asks. */
async function startKeeping(script: ModelScript) {
  const served = await startGateway(script)
  const { brokers, send, firstKey } = served
  brokers.open = async ({ container }) => ({ session: 's1', ...(container && { container: leased }) })
  brokers.close = async ({ container, discard }) => (container && !discard ? { container: released } : {})
  const ask = (more: object = {}, path = PATH) => send('POST', path, { key: firstKey, body: body(more) })
  return { ...served, ask }
}

const named = ({ headers }: { headers: Headers }) => [
  headers.get('otari-container-id'),
  headers.get('otari-container-expires-at'),
]
const nobody = [null, null]
const ended = (discard = false) => ({ session: 's1', container: id, discard })
const broken = { status: 500, body: '{}' }

describe('a request for a sandbox that outlives it', () => {
  test('C-07 may say so in several ways, at its top and on the tool', async () => {
    const { ask, brokers } = await startKeeping(() => says('Done.'))
    const spellings: [unknown, unknown][] = [
      ['auto', { kind: 'auto' }],
      ['  AUTO ', { kind: 'auto' }],
      [{ type: 'auto' }, { kind: 'auto' }],
      [id, { kind: 'id', id }],
      [` ${id}\n`, { kind: 'id', id }],
      [{ id }, { kind: 'id', id }],
      [null, undefined],
    ]
    for (const [container, wish] of spellings) {
      await ask({ container })
      await ask({ tools: [{ type: 'otari_code_execution', container }] })
      await ask({ container, tools: [{ type: 'otari_code_execution', container }] })
      const asked = brokers.asked.opened.splice(0).map((opened) => opened.container)
      expect({ container, asked }).toEqual({ container, asked: [wish, wish, wish] })
    }
  })

  test('C-07 that says two things, or what names no sandbox, is refused before anything is leased', async () => {
    const { ask, brokers, fake } = await startKeeping(() => says('Done.'))
    for (const more of [
      { container: 'auto', tools: [{ type: 'otari_code_execution', container: id }] },
      { container: 7 },
      { container: ['auto'] },
      { container: {} },
      { container: '' },
    ]) {
      expect({ more, status: (await ask(more)).status }).toEqual({ more, status: 400 })
    }
    expect(brokers.asked.opened).toEqual([])
    expect(fake.requests).toEqual([])
  })

  test('C-06 C-11 is told of it in the headers of a whole answer, as it is at the end', async () => {
    const { ask, brokers } = await startKeeping([runs(), says('It is 1.')])
    const answer = await ask({ container: 'auto' })
    expect(answer.status).toBe(200)
    expect(named(answer)).toEqual([id, released.expiresAt])
    expect(answer.text).not.toContain('otari_cntr_')
    // given back before the client can come again (C-18)
    expect(brokers.asked.closes).toMatchObject([ended()])
  })

  test('C-06 C-18 is told of it in the headers of a stream, and may come back once that ends', async () => {
    const { ask, brokers } = await startKeeping([runs(), says('It is 1.')])
    const answer = await ask({ container: 'auto', stream: true })
    expect(answer.status).toBe(200)
    expect(named(answer)).toEqual([id, leased.expiresAt])
    expect(framesOf(answer.text).at(-1)).toBe('[DONE]')
    expect(brokers.asked.closes).toMatchObject([ended()])
  })

  test('C-06 is told of it in the headers of every dialect, streamed or not', async () => {
    const { ask, brokers } = await startKeeping(() => says('Done.'))
    const keeps = { tools: [{ type: 'otari_code_execution', container: 'auto' }] }
    for (const [path, more] of [
      [PATH, {}],
      ['/api/v1/messages', { max_tokens: 100 }],
      ['/api/v1/responses', { input: 'Compute.', messages: undefined }],
    ] as const) {
      for (const stream of [false, true]) {
        const answer = await ask({ ...keeps, ...more, stream }, path)
        expect({ path, stream, status: answer.status, id: named(answer)[0] }).toEqual({ path, stream, status: 200, id })
      }
    }
    expect(brokers.asked.closes).toMatchObject(Array.from({ length: 6 }, () => ended()))
  })

  test.each([false, true])('C-33 gets one though the model runs nothing (streamed: %s)', async (stream) => {
    const { ask, brokers } = await startKeeping([says('No need.')])
    expect(named(await ask({ container: 'auto', stream }))[0]).toBe(id)
    expect(brokers.asked.exec).toEqual([])
    expect(brokers.asked.closes).toMatchObject([ended()])
  })

  test.each([false, true])(
    'C-02 C-03 that gets none, or asks for none, is told of none (streamed: %s)',
    async (stream) => {
      const { ask, brokers } = await startKeeping(() => says('Done.'))
      expect(named(await ask({ stream }))).toEqual(nobody)
      brokers.open = async () => ({ session: 's1' })
      const answer = await ask({ stream, container: 'auto' })
      expect([answer.status, named(answer)]).toEqual([200, nobody])
      await expect.poll(() => brokers.asked.closes).toHaveLength(2)
      expect(brokers.asked.closes.map(({ container }) => container)).toEqual([undefined, undefined])
    },
  )

  test('T-26 C-23 does not say so to the provider', async () => {
    const { ask, fake } = await startKeeping(() => says('Done.'))
    await ask({ container: 'auto', tools: [{ type: 'otari_code_execution', container: 'auto' }] })
    expect(JSON.stringify(fake.requests[0]?.body)).not.toContain('container')
  })

  test.each([
    ['C-13 that is not there', noSuchContainer(id), 400, `Container '${id}' has expired or does not exist.`],
    [
      'C-16 that another of its requests has',
      new Fault('conflict', 'Container is in use by another request.'),
      409,
      'Container is in use by another request.',
    ],
  ])('%s is refused as such, streamed or not, and the model is not asked', async (_what, fault, status, text) => {
    const { ask, brokers, fake } = await startKeeping(() => says('Done.'))
    brokers.open = async () => {
      throw fault
    }
    for (const stream of [false, true]) {
      const answer = await ask({ container: id, stream })
      expect(answer.status).toBe(status)
      expect(answer.body).toEqual({ detail: text })
      expect(named(answer)).toEqual(nobody)
    }
    expect(fake.requests).toEqual([])
    expect(brokers.asked.released).toHaveLength(2)
  })

  test('C-13 whose id cannot be one of ours is refused in the same words, and nobody is asked', async () => {
    const { ask, brokers } = await startKeeping(() => says('Done.'))
    const answer = await ask({ container: 'otari_cntr_short' })
    expect(answer.status).toBe(400)
    expect(answer.text).toContain("Container 'otari_cntr_short' has expired or does not exist.")
    expect(brokers.asked.opened).toEqual([])
  })

  test('BR-128 whose sandbox was lost is told of none at the end', async () => {
    const { ask, brokers } = await startKeeping([runs(), says('It is gone.')])
    brokers.exec = async () => ({ status: 'failed', reason: 'lost' })
    expect(named(await ask({ container: 'auto' }))).toEqual(nobody)
  })

  test('C-18 whose sandbox could not be given back is answered, and told of it', async () => {
    const { ask, brokers } = await startKeeping([says('Done.')])
    brokers.close = async () => {
      throw new Fault('unavailable', 'no database')
    }
    const answer = await ask({ container: 'auto' })
    expect([answer.status, ...named(answer)]).toEqual([200, id, leased.expiresAt])
  })
})

describe('a request that fails', () => {
  test.each([
    ['C-29 ends a new sandbox', 'auto', false, true],
    ['C-29 ends a new sandbox', 'auto', true, true],
    ['C-30 keeps one that was resumed', id, false, false],
    ['C-30 keeps one that was resumed', id, true, false],
  ])('%s (%s, streamed: %s), and names none', async (_what, container, stream, discard) => {
    const { ask, brokers } = await startKeeping(() => broken)
    const answer = await ask({ container, stream })
    expect(answer.status).toBe(502)
    expect(named(answer)).toEqual(nobody)
    await expect.poll(() => brokers.asked.closes).toMatchObject([ended(discard)])
  })

  test('C-29 in a later round ends a new sandbox of which a whole answer has not told yet', async () => {
    const { ask, brokers } = await startKeeping([runs(), broken])
    expect(named(await ask({ container: 'auto' }))).toEqual(nobody)
    await expect.poll(() => brokers.asked.closes).toMatchObject([ended(true)])
  })

  test('C-18 in the middle of a stream keeps the sandbox that its headers named', async () => {
    const { ask, brokers } = await startKeeping([runs(), broken])
    const answer = await ask({ container: 'auto', stream: true })
    expect(named(answer)[0]).toBe(id)
    expect(answer.text).toContain('"error"')
    await expect.poll(() => brokers.asked.closes).toMatchObject([ended(false)])
  })
})

describe('a client that leaves', () => {
  test('C-18 in the middle of a stream gives its sandbox back, to come again', async () => {
    const stalls = { says: [{ text: 'A long story begins here and goes on.' }], stallAfterBytes: 900 }
    const { url, firstKey, brokers } = await startKeeping([stalls])
    const { socket, received } = rawPost(url, firstKey, body({ container: 'auto', stream: true }))
    await expect.poll(received).toContain('content')
    expect(received()).toMatch(/^otari-container-id: /im)
    socket.destroy()
    await expect.poll(() => brokers.asked.closes).toMatchObject([ended(false)])
  })

  test('C-29 before anything was said leaves no sandbox behind', async () => {
    const { url, firstKey, brokers, fake } = await startKeeping([says('late', { delayMs: 20_000 })])
    const { socket } = rawPost(url, firstKey, body({ container: 'auto', stream: true }))
    await expect.poll(() => fake.requests.length).toBe(1)
    socket.destroy()
    await expect.poll(() => brokers.asked.closes).toMatchObject([ended(true)])
  })
})
