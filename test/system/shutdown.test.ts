import { createServer, connect as dial } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ask, makeKey } from './client.ts'
import { post } from './connection.ts'
import { type Deployment, kinds, startDeployment } from './deployment.ts'
import { hit, type Outside, openOutside } from './outside.ts'
import { job, type Step } from './scripted-jobs.ts'

const DRAIN_MS = 5_000
const broken = 'data: {"error":{"message":"An error occurred during streaming","type":"server_error"}}'

describe.each(kinds)('a gateway that is told to end, %s', (kind) => {
  let outside: Outside
  let deployment: Deployment
  let key: string

  beforeAll(async () => {
    outside = await openOutside()
    outside.search.finds([{ ...hit, extracted_content: 'all there is to know' }])
    deployment = await startDeployment(kind, {
      config: outside.config,
      env: { ...outside.env, OTARI_DRAIN_SEC: String(DRAIN_MS / 1_000), OTARI_REQUIRE_PRICING: 'false' },
      only: ['gateway', 'billing', 'search-broker'],
    })
    key = await makeKey(deployment)
  }, 240_000)
  afterAll(async () => {
    await deployment?.stop()
    await outside?.close()
  }, 60_000)

  const stream = (tag: string, step: Step) =>
    post(deployment, key, {
      model: 'openai:gpt-5',
      messages: [{ role: 'user', content: job(tag, step) }],
      tools: [{ type: 'otari_web_search' }],
      stream: true,
    })
  const probe = async (path: string): Promise<number | undefined> =>
    (await fetch(deployment.healthUrl('gateway') + path).catch(() => undefined))?.status
  /** Brings the gateway up, should the test before have ended it. */
  const running = async () => {
    if (deployment.process('gateway').end) deployment.start('gateway')
    await deployment.ready('gateway')
  }

  test('BR-159 BR-163 lets streams end until its limit, then tells the rest; takes nothing new; leaves in order', async () => {
    outside.search.suffers({ kind: 'slow', ms: 2_000 }, { kind: 'slow', ms: 2_000 })
    const finishing = [stream('finishing-1', 'search'), stream('finishing-2', 'search')]
    await expect.poll(() => outside.search.inFlight, { timeout: 10_000 }).toBe(2)
    const endless = Array.from({ length: 8 }, (_, n) => stream(`endless-${n}`, 'stall'))
    const begun = () => [...finishing, ...endless].filter(({ received }) => received().includes('data: ')).length
    await expect.poll(begun, { timeout: 10_000 }).toBe(10)

    const process = deployment.process('gateway')
    const toldAt = performance.now()
    process.signal('SIGTERM')
    await expect.poll(() => probe('/readyz'), { timeout: 1_000, interval: 10 }).toBe(503)
    expect(await probe('/livez')).toBe(200)
    const refused = await ask(deployment, 'GET', '/health', {}).then(
      ({ status }) => status,
      () => 'no connection',
    )
    expect([503, 'no connection']).toContain(refused)

    const { code, signal } = await process.ended
    const tookMs = performance.now() - toldAt
    expect([code, signal]).toEqual([0, null])
    expect(tookMs).toBeLessThan(DRAIN_MS + 3_000)
    for (const { received } of finishing) {
      expect(received()).toContain('What the engine found')
      expect(received()).not.toContain(broken)
      expect(received()).toMatch(/data: \[DONE\]\n\n\r\n0\r\n\r\n$/)
    }
    for (const { received } of endless) {
      expect(received()).toContain(broken)
      expect(received()).toMatch(/data: \[DONE\]\n\n\r\n0\r\n\r\n$/)
    }

    await running()
    const requests = [...finishing, ...endless].map(({ requestId }) => requestId())
    const { json } = await ask(deployment, 'GET', '/api/v1/usage?limit=100', { key: deployment.masterKey })
    const rows = json.data.filter(({ id }: { id: string }) => requests.includes(id))
    const count = (status: string) =>
      rows.filter(
        (row: { status: string; settled_by: string }) => row.status === status && row.settled_by === 'gateway',
      ).length
    expect([count('success'), count('error')]).toEqual([2, 8])
    expect(deployment.logs('gateway')).not.toMatch(/uncaught|unhandled/i)
  }, 240_000)

  test('BR-163 is gone within two seconds when only an idle connection is left', async () => {
    await running()
    const { hostname, port } = new URL(deployment.url)
    const idle = dial({ host: hostname, port: Number(port) })
    let received = ''
    const closed = new Promise<void>((resolve) => idle.once('close', () => resolve()))
    idle.setEncoding('utf8').on('data', (text: string) => {
      received += text
    })
    idle.write(`GET /health HTTP/1.1\r\nhost: ${hostname}\r\n\r\n`)
    await expect.poll(() => received, { timeout: 5_000 }).toContain('200 OK')
    expect(received).toMatch(/connection: keep-alive/i)

    const toldAt = performance.now()
    const { code } = await deployment.kill('gateway', 'SIGTERM')
    await closed
    expect(code).toBe(0)
    expect(performance.now() - toldAt).toBeLessThan(2_000)
  }, 240_000)

  test('BR-163 ends in order when told so while it starts', async () => {
    // a bus that takes connections and says nothing keeps a service starting; one process takes long by itself
    const mute = createServer(() => undefined).listen(0, '127.0.0.1')
    await new Promise((listening) => mute.once('listening', listening))
    const { port } = mute.address() as { port: number }
    try {
      if (!deployment.process('gateway').end) await deployment.kill('gateway', 'SIGTERM')
      deployment.start('gateway', { OTARI_NATS_URL: `nats://127.0.0.1:${port}` })
      const process = deployment.process('gateway')
      await expect.poll(() => probe('/livez'), { timeout: 60_000, interval: 10 }).toBe(200)
      expect(await probe('/readyz')).toBe(503)
      const toldAt = performance.now()
      process.signal('SIGTERM')
      const { code, signal } = await process.ended
      expect([code, signal]).toEqual([0, null])
      expect(performance.now() - toldAt).toBeLessThan(DRAIN_MS)
    } finally {
      mute.close()
    }
    await running()
    expect((await ask(deployment, 'GET', '/health', {})).status).toBe(200)
  }, 240_000)

  test('BR-163 leaves at once at a second signal', async () => {
    await running()
    const { received } = stream('interrupted', 'stall')
    await expect.poll(received, { timeout: 10_000 }).toContain('data: ')
    const process = deployment.process('gateway')
    process.signal('SIGTERM')
    await expect.poll(() => probe('/readyz'), { timeout: 1_000, interval: 10 }).toBe(503)
    await sleep(100)
    expect(process.end).toBeUndefined()
    const toldAt = performance.now()
    process.signal('SIGINT')
    expect((await process.ended).code).toBe(1)
    expect(performance.now() - toldAt).toBeLessThan(DRAIN_MS / 2)
  }, 240_000)
})
