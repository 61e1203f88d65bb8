import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { Fault } from '@tollgate/contracts'
import { describe, expect, onTestFinished, test } from 'vitest'
import { fileRows } from '../../src/files/rows.ts'
import { type Direct, never, startDirect } from './serving.ts'

const PATH = '/api/v1/code-execution'
const id = `otari_cntr_${'0a'.repeat(16)}`
const soon = '2030-01-01T00:00:00.000Z'
const later = '2030-01-01T00:10:00.000Z'
const ended = { status: 'ok' as const, stdout: '', stderr: '', returnCode: 0, files: [] }

const ask = ({ send, firstKey }: Direct, body: object, key = firstKey) =>
  send<Record<string, unknown>>('POST', PATH, { key, body })

interface Events {
  status: number
  headers: Headers
  /** The next frame, a comment included; undefined at the end. */
  next(): Promise<{ event: string; data: Record<string, unknown> } | { comment: string } | undefined>
  leave(): void
}

/** A stream of server-sent events, one frame after the other as they arrive. */
async function stream({ url, firstKey }: Direct, body: object): Promise<Events> {
  const gone = new AbortController()
  const response = await fetch(`${url}${PATH}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${firstKey}`, 'content-type': 'application/json' },
    body: JSON.stringify({ ...body, stream: true }),
    signal: gone.signal,
  })
  const pieces = (response.body as ReadableStream<Uint8Array>).pipeThrough(new TextDecoderStream()).getReader()
  let text = ''
  return {
    status: response.status,
    headers: response.headers,
    async next() {
      while (!text.includes('\n\n')) {
        const { value, done } = await pieces.read()
        if (done) return undefined
        text += value
      }
      const at = text.indexOf('\n\n')
      const frame = text.slice(0, at)
      text = text.slice(at + 2)
      const [, event, data] = /^event: (\w+)\ndata: (.*)$/s.exec(frame) ?? []
      return event === undefined ? { comment: frame } : { event, data: JSON.parse(data ?? '') }
    },
    leave: () => gone.abort(),
  }
}

async function rest(events: Events) {
  const all: object[] = []
  for (let frame = await events.next(); frame !== undefined; frame = await events.next()) {
    if ('event' in frame) all.push(frame)
  }
  return all
}

describe('POST /api/v1/code-execution', () => {
  test('D-14 P-20 runs code, answers what came of it and settles one row', async () => {
    const served = await startDirect()
    const { brokers } = served
    const file = { id: 'file-1', name: 'a.png', mediaType: 'image/png', bytes: 3 }
    brokers.exec = async () => ({ ...ended, stdout: '2\n', files: [{ name: 'a.png', file }, { name: 'b.bin' }] })
    const { status, body, headers } = await ask(served, { code: 'print(1+1)' })
    expect([status, headers.get('otari-container-id')]).toEqual([200, null])
    expect(body).toEqual({
      object: 'code_execution',
      stdout: '2\n',
      stderr: '',
      return_code: 0,
      files: [{ name: 'a.png', file_id: 'file-1' }, { name: 'b.bin' }],
      execution_time_ms: expect.any(Number),
    })
    expect(brokers.asked.exec).toMatchObject([
      { code: 'print(1+1)', kind: 'python', stream: false, timeoutSeconds: 60 },
    ])
    expect(brokers.asked.closed).toEqual(['s1'])
    expect(brokers.asked.reserved).toMatchObject([
      { tools: [{ tool: 'code_execution', keys: [{ kind: 'model', key: 'otari:code_execution' }] }], modelKeys: [] },
    ])
    await expect.poll(() => brokers.settled).toHaveLength(1)
    expect(brokers.settled[0]).toMatchObject({
      endpoint: PATH,
      model: 'code_execution',
      provider: 'otari',
      priceKeys: [],
      tokens: { input: 0, output: 0 },
      status: 'success',
      lines: [{ tool: 'code_execution', label: 'otari:code_execution', outcome: 'ok' }],
    })
    await ask(served, { command: 'ls -l', timeout_seconds: 5 })
    expect(brokers.asked.exec[1]).toMatchObject({ code: 'ls -l', kind: 'shell', timeoutSeconds: 5 })
  })

  test('X-30 P-10 a program that fails is an answer, recorded as an error and not charged', async () => {
    const served = await startDirect()
    served.brokers.exec = async () => ({ ...ended, stderr: 'boom', returnCode: 1, limit: 'memory' })
    expect(await ask(served, { code: 'x' })).toMatchObject({
      status: 200,
      body: { stderr: 'boom', return_code: 1, limit: 'memory' },
    })
    await expect.poll(() => served.brokers.settled).toHaveLength(1)
    expect(served.brokers.settled[0]).toMatchObject({ status: 'success', lines: [{ outcome: 'error' }] })
  })

  test('a sandbox that fails is one status and text, recorded and not charged, streamed or not', async () => {
    const served = await startDirect()
    const told = [
      ['unreachable', 502, 'code_execution sandbox unreachable'],
      ['lost', 502, 'code_execution sandbox was lost, and with it every variable and file'],
      ['timeout', 504, 'code execution timed out'],
      ['busy', 503, 'code_execution sandbox temporarily unavailable. Retry later.'],
      ['refused', 502, 'code execution failed'],
    ] as const
    for (const [reason, status, detail] of told) {
      served.brokers.exec = async () => ({ status: 'failed', reason })
      expect(await ask(served, { code: 'x' })).toMatchObject({ status, body: { detail } })
      const events = await stream(served, { code: 'x' })
      expect([events.status, await rest(events)]).toEqual([200, [{ event: 'error', data: { status, detail } }]])
    }
    await expect.poll(() => served.brokers.settled).toHaveLength(2 * told.length)
    for (const row of served.brokers.settled) {
      expect(row).toMatchObject({ status: 'error', lines: [{ outcome: 'error' }] })
    }
  })

  test('X-28 X-29 C-16 what keeps a sandbox from being opened is a status, streamed or not, and leaves no row', async () => {
    const served = await startDirect()
    const { brokers } = served
    const busy = 'Container is in use by another request. A sandbox runs one request at a time; retry when it finishes.'
    for (const [thrown, status, detail] of [
      [new Fault('upstream', 'ECONNREFUSED 10.0.0.7'), 502, /^code_execution sandbox unreachable\. Check/],
      [new Fault('unavailable', 'full'), 503, /^code_execution sandbox temporarily unavailable\. Retry later\.$/],
      [new Fault('conflict', busy), 409, new RegExp(busy)],
    ] as const) {
      brokers.open = async () => {
        throw thrown
      }
      for (const body of [{}, { stream: true }]) {
        const told = await ask(served, { code: 'x', container: id, ...body })
        expect([told.status, told.body.detail]).toEqual([status, expect.stringMatching(detail)])
      }
    }
    expect(brokers.settled).toEqual([])
    await expect.poll(() => brokers.asked.released).toHaveLength(6)
  })

  test('refuses a body by the names of its members', async () => {
    const served = await startDirect()
    for (const [body, member] of [
      [{}, 'code'],
      [{ code: 'x', command: 'ls' }, 'command'],
      [{ code: '' }, 'code'],
      [{ code: 'x', timeout_seconds: 0 }, 'timeout_seconds'],
      [{ code: 'x', timeout_seconds: 61 }, 'timeout_seconds'],
      [{ code: 'x', container: '' }, 'container'],
      [{ code: 'x', file_ids: Array.from({ length: 101 }, () => 'file-1') }, 'file_ids'],
    ] as const) {
      expect(await ask(served, body)).toMatchObject({ status: 422, body: { detail: [{ loc: ['body', member] }] } })
    }
    expect(served.brokers.asked.reserved).toEqual([])
  })

  test('code that no call can carry is refused as a status before a sandbox is leased, streamed or not', async () => {
    const served = await startDirect()
    const { asked } = served.brokers
    const fits = 240 * 1024 - 2
    for (const stream of [false, true]) {
      for (const [member, text] of [
        ['code', 'x'.repeat(fits + 1)],
        ['code', '\u0001'.repeat(50 * 1024)],
        ['code', '😀'.repeat(70 * 1024)],
        ['command', 'é'.repeat(130 * 1024)],
      ] as const) {
        expect(await ask(served, { [member]: text, stream })).toMatchObject({
          status: 413,
          body: { detail: `${member} takes more than 240 KiB` },
        })
      }
    }
    expect([asked.reserved, asked.opened]).toEqual([[], []])
    expect((await ask(served, { code: 'x'.repeat(fits) })).status).toBe(200)
    expect(asked.exec).toMatchObject([{ code: 'x'.repeat(fits) }])
  })

  test('W-20 W-05 W-04 W-22 C-13 P-15 is refused by what the gateway, the workspace and its prices say', async () => {
    const served = await startDirect({ sandboxAllowedSessionImages: ['py'] })
    const { brokers, send, masterKey, settings } = served
    const policy = (body: object) =>
      send('PUT', '/api/v1/workspaces/default/code-execution-policy', { key: masterKey, body })
    const told = async (body: object = { code: 'x' }) => {
      const { status, body: said } = await ask(served, body)
      return [status, said.detail]
    }
    await policy({ enabled: false })
    expect(await told()).toEqual([403, 'code execution is not enabled for this workspace'])
    await policy({ enabled: true, tools: ['code_execution'], image: 'py', exec_timeout_s: 7 })
    expect(await told({ command: 'ls' })).toEqual([
      403,
      "code execution by bash_code_execution is not among the tool kinds of this workspace's policy",
    ])
    expect((await told())[0]).toBe(200)
    expect(brokers.asked.opened.at(-1)).toMatchObject({ image: 'py' })
    expect(brokers.asked.exec.at(-1)).toMatchObject({ timeoutSeconds: 7 })
    settings.sandboxAllowedSessionImages = []
    expect(await told()).toEqual([
      403,
      "this workspace's code-execution policy pins a sandbox image that is not allowed",
    ])
    await send('DELETE', '/api/v1/workspaces/default/code-execution-policy', { key: masterKey })
    settings.codeExecutionWorkspaceDefault = false
    expect(await told()).toEqual([403, 'code execution is not enabled for this workspace'])
    settings.codeExecutionWorkspaceDefault = true

    expect(await told({ code: 'x', container: 'mine' })).toEqual([
      400,
      "Container 'mine' has expired or does not exist.",
    ])
    const before = brokers.asked.opened.length
    brokers.reserve = async () => {
      throw new Fault('pricing_required', 'no price')
    }
    const unpriced = await ask(served, { code: 'x' })
    expect([unpriced.status, unpriced.body]).toEqual([402, { detail: 'no price', code: 'pricing_required' }])
    expect(brokers.asked.opened).toHaveLength(before)
  })

  test('without a sandbox it is 400', async () => {
    const served = await startDirect()
    served.brokers.sandbox = false
    expect(await ask(served, { code: 'x' })).toMatchObject({
      status: 400,
      body: { detail: 'no sandbox is configured on this gateway. Set OTARI_SANDBOX_URL on the gateway.' },
    })
  })

  test('X-29 with a sandbox configured whose broker was never heard it is 503, until it is', async () => {
    const served = await startDirect({ sandboxUrl: 'http://box.test' })
    served.brokers.sandboxDescribeFails = new Fault('unavailable', 'starting')
    expect(await ask(served, { code: 'x' })).toMatchObject({
      status: 503,
      body: { detail: 'code_execution sandbox temporarily unavailable. Retry later.' },
    })
    expect(served.brokers.asked.reserved).toEqual([])
    served.brokers.sandboxDescribeFails = undefined
    await expect.poll(async () => (await ask(served, { code: 'x' })).status, { timeout: 10_000 }).toBe(200)
  })

  test('A-05 A-18 the master key names a user, and the rate limit counts', async () => {
    const served = await startDirect({ rateLimitRpm: 1 })
    expect((await ask(served, { code: 'x' }, served.masterKey)).status).toBe(400)
    expect((await ask(served, { code: 'x', user: 'default' }, served.masterKey)).status).toBe(200)
    const refused = await ask(served, { code: 'x' })
    expect([refused.status, refused.headers.has('retry-after')]).toEqual([429, true])
    await expect.poll(() => served.brokers.asked.released).toHaveLength(1)
  })

  test('FI-07 FI-12 FI-17 FI-21 FI-25 files of the caller go in, and what comes out is the caller’s', async () => {
    const served = await startDirect()
    const { brokers, db, settings } = served
    const rows = fileRows(db, settings)
    const row = {
      organization: 'default',
      workspace: 'default',
      media_type: 'text/csv',
      bytes: 3n,
      purpose: 'user_data',
    }
    const mine = { ...row, id: 'file-mine', user_id: 'default', filename: 'data.csv' }
    for (const file of [mine, { ...mine, id: 'file-theirs', user_id: 'ada' }]) {
      await rows.insert({ ...file, created_at: new Date(), expires_at: null })
    }
    for (const id of ['file-theirs', 'file-none', 'file-\0', '\ud800', '../file-mine']) {
      const printed = id.replace(/[^ -~]/g, '')
      expect(await ask(served, { code: 'x', file_ids: ['file-mine', id] })).toMatchObject({
        status: 404,
        body: { detail: `File '${printed}' not found` },
      })
    }
    expect([brokers.asked.opened, brokers.asked.reserved]).toEqual([[], []])

    const made = { id: 'file-made', name: 'out/plot.png', mediaType: 'image/png', bytes: 7 }
    brokers.exec = async () => ({ ...ended, files: [{ name: made.name, file: made }] })
    expect(await ask(served, { code: 'x', file_ids: ['file-mine', 'file-mine'] })).toMatchObject({
      status: 200,
      body: { files: [{ name: 'out/plot.png', file_id: 'file-made' }] },
    })
    expect(brokers.asked.seeded).toMatchObject([
      { session: 's1', files: [{ id: 'file-mine', name: 'data.csv', mediaType: 'text/csv', bytes: 3 }] },
    ])
    const own = { organization: 'default', workspace: 'default', user: 'default' }
    expect(await rows.find(own, 'file-made')).toMatchObject({ purpose: 'code_execution_output', bytes: 7n })

    const without = await startDirect({}, { keepsFiles: false })
    without.brokers.exec = brokers.exec
    expect((await ask(without, { code: 'x', file_ids: ['file-mine'] })).status).toBe(404)
    expect((await ask(without, { code: 'x' })).body.files).toEqual([{ name: 'out/plot.png' }])
  })
})

describe('a run whose sandbox is kept', () => {
  async function startKept() {
    const served = await startDirect()
    served.brokers.open = async () => ({ session: 's1', container: { id, expiresAt: soon } })
    served.brokers.close = async ({ container, discard }) =>
      container === undefined || discard ? {} : { container: { id, expiresAt: later } }
    return served
  }

  test('C-06 C-11 C-18 is told in headers and body, once it was given back', async () => {
    const served = await startKept()
    const { headers, body } = await ask(served, { code: 'x', container: ' AUTO ' })
    expect(served.brokers.asked.opened).toMatchObject([{ container: { kind: 'auto' } }])
    expect(served.brokers.asked.closes).toMatchObject([{ container: id, discard: false }])
    expect(body.container).toEqual({ id, expires_at: later })
    expect([headers.get('otari-container-id'), headers.get('otari-container-expires-at')]).toEqual([id, later])
    const events = await stream(served, { code: 'x', container: id })
    expect(events.headers.get('otari-container-id')).toBe(id)
    expect(await rest(events)).toMatchObject([{ event: 'result', data: { container: { id, expires_at: later } } }])
    expect(served.brokers.asked.opened[1]).toMatchObject({ container: { kind: 'id', id } })
  })

  test('C-29 a new one that nobody was told of goes with a run that came to nothing, C-30 a resumed one stays', async () => {
    const served = await startKept()
    served.brokers.exec = async () => ({ status: 'failed', reason: 'refused' })
    await ask(served, { code: 'x', container: 'auto' })
    await ask(served, { code: 'x', container: id })
    await rest(await stream(served, { code: 'x', container: 'auto' }))
    await expect.poll(() => served.brokers.asked.closes.map(({ discard }) => discard)).toEqual([true, false, false])
  })
})

describe('a streamed run', () => {
  test('is heard while it goes on, and ends with the answer that a whole one is', async () => {
    const served = await startDirect()
    let goOn = () => {}
    const heard = new Promise<void>((resolve) => {
      goOn = resolve
    })
    served.brokers.exec = async (_input, _signal, emit) => {
      emit({ type: 'running' })
      emit({ type: 'output', stream: 'stdout', text: 'one\n' })
      await heard
      emit({ type: 'output', stream: 'stderr', text: 'two\n' })
      return { ...ended, stdout: 'one\n', stderr: 'two\n' }
    }
    const events = await stream(served, { code: 'x' })
    expect([events.status, events.headers.get('content-type')]).toEqual([200, 'text/event-stream; charset=utf-8'])
    expect(await events.next()).toEqual({ comment: ': running' })
    // the run waits for this to be read
    expect(await events.next()).toEqual({ event: 'output', data: { stream: 'stdout', text: 'one\n' } })
    goOn()
    const [second, result] = await rest(events)
    expect(second).toEqual({ event: 'output', data: { stream: 'stderr', text: 'two\n' } })
    const { body } = await ask(served, { code: 'x' })
    expect(result).toEqual({ event: 'result', data: { ...body, execution_time_ms: expect.any(Number) } })
    expect(served.brokers.asked.exec.map(({ stream: streams }) => streams)).toEqual([true, false])
    // settled before its last byte
    expect(served.brokers.settled.length).toBeGreaterThan(0)
  })

  test('R-64 says that it lives while nothing is written', async () => {
    const served = await startDirect({ streamingKeepaliveIntervalMs: 20 })
    let goOn = () => {}
    const heard = new Promise<void>((resolve) => {
      goOn = resolve
    })
    served.brokers.exec = async () => {
      await heard
      return ended
    }
    const events = await stream(served, { code: 'x' })
    expect(await events.next()).toEqual({ comment: ': running' })
    expect(await events.next()).toEqual({ comment: ': keepalive' })
    goOn()
    expect(await rest(events)).toMatchObject([{ event: 'result' }])
  })

  test('to a client that does not read holds so much and no more, and the result has it all', async () => {
    const served = await startDirect()
    const text = 'x'.repeat(64 * 1024)
    let most = 0
    served.server.once('request', (_request, response) => {
      const look = setInterval(() => {
        most = Math.max(most, response.writableLength)
        if (response.closed) clearInterval(look)
      }, 1)
    })
    served.brokers.exec = async (_input, _signal, emit) => {
      for (let piece = 0; piece < 400; piece++) {
        emit({ type: 'output', stream: 'stdout', text })
        await new Promise(setImmediate)
      }
      return { ...ended, stdout: 'all of it' }
    }
    const events = await stream(served, { code: 'x' })
    await expect.poll(() => served.brokers.settled, { timeout: 20_000 }).toHaveLength(1)
    const all = await rest(events)
    expect(all.at(-1)).toMatchObject({ event: 'result', data: { stdout: 'all of it' } })
    expect(all.length).toBeLessThan(401)
    expect(all.length).toBeGreaterThan(2)
    expect(most).toBeLessThan(2 * 1024 * 1024)
  })

  test.each([true, false])('a client that reads nothing of its answer loses it (streamed: %s)', async (streams) => {
    const served = await startDirect({ unreadAnswerMs: 300 })
    // more than the system takes for a client that does not read
    served.brokers.exec = async () => ({ ...ended, stdout: 'x'.repeat(7_800_000) })
    const connected = new Promise<Socket>((resolve) => {
      served.server.once('request', ({ socket }) => resolve(socket))
    })
    const { hostname, port } = new URL(served.url)
    const client = connect(Number(port), hostname).pause()
    onTestFinished(() => void client.destroy())
    const body = JSON.stringify({ code: 'x', stream: streams })
    client.write(
      `POST ${PATH} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${served.firstKey}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
    )
    const socket = await connected
    await expect.poll(() => socket.destroyed, { timeout: 20_000 }).toBe(true)
    let taken = 0
    client
      .on('error', () => {})
      .on('data', (piece) => {
        taken += piece.length
      })
    await once(client.resume(), 'close')
    expect(taken).toBeLessThan(7_800_000)
    // it ran all the same
    await expect.poll(() => served.brokers.settled).toMatchObject([{ status: 'success' }])
  })

  test.each(['streamed', 'whole'])('a client that leaves a %s run ends it, and nothing is charged', async (how) => {
    const served = await startDirect()
    const { brokers } = served
    let stopped = false
    brokers.exec = (_input, signal) =>
      never(signal).finally(() => {
        stopped = true
      })
    if (how === 'streamed') {
      const events = await stream(served, { code: 'x' })
      await events.next()
      events.leave()
    } else {
      const gone = new AbortController()
      const headers = { authorization: `Bearer ${served.firstKey}`, 'content-type': 'application/json' }
      const body = JSON.stringify({ code: 'x' })
      const asking = fetch(`${served.url}${PATH}`, { method: 'POST', headers, body, signal: gone.signal })
      await expect.poll(() => brokers.asked.exec).toHaveLength(1)
      gone.abort()
      await expect(asking).rejects.toThrow()
    }
    await expect.poll(() => [stopped, brokers.asked.closed, brokers.asked.released.length]).toEqual([true, ['s1'], 1])
    expect([brokers.settled, brokers.toolLines]).toEqual([[], []])
  })
})
