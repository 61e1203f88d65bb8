import { setTimeout as sleep } from 'node:timers/promises'
import {
  type FakeSandbox,
  type OtlpReceiver,
  openFakeSandbox,
  type RestartableNats,
  restartableNats,
  startOtlp,
} from '@tollgate/testing'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { ask, makeKey, setPrice } from './client.ts'
import { type Deployment, type ServiceName, startDeployment } from './deployment.ts'
import { allRows, expectExactLedger, expectHoldsEnd, type Sent, sendJob } from './ledger.ts'
import { hit, type Outside, openOutside, proxyUrl } from './outside.ts'
import { seeded, seedOf } from './random.ts'
import { openWeb } from './web.ts'

/** A request's own deadline, and when its client must have heard of its end. */
const REQUEST_MS = 40_000
const PATIENCE_MS = REQUEST_MS + 5_000

const services = ['gateway', 'search-broker', 'fetch-worker', 'sandbox-broker', 'billing'] as const

const random = seeded(seedOf('survival'))
const between = (least: number, most: number): number => least + random() * (most - least)

/** Processes, the bus and the gateway itself die; requests end, and the ledger is exact. */
describe('services that are killed', () => {
  let outside: Outside
  let sandbox: FakeSandbox
  let nats: RestartableNats
  let otlp: OtlpReceiver
  let execMs: () => number
  const atUsualPace = () => {
    outside.web.delayMs = () => between(0, 250)
    execMs = () => between(0, 250)
  }
  let deployment: Deployment
  let key: string
  /** Everything that was sent, over all tests. */
  const sent: Sent[] = []

  beforeAll(async () => {
    nats = await restartableNats()
    otlp = await startOtlp()
    outside = await openOutside({ code: (tag) => `print("ran ${tag}")`, delayMs: () => between(20, 200) })
    // no page behind it is read, so that a fetch is a job's own
    outside.search.finds([{ ...hit, extracted_content: 'all there is to know' }])
    atUsualPace()
    sandbox = await openFakeSandbox({
      // a gateway that is killed closes none of its sessions: they would end by their own timers
      capacity: 10_000,
      async respond({ operation }) {
        if (operation === 'exec') await sleep(execMs())
        return undefined
      },
    })
    deployment = await startDeployment('services', {
      config: outside.config,
      env: {
        ...outside.env,
        OTARI_SANDBOX_URL: sandbox.url,
        OTARI_OTLP_ENDPOINT: new URL(otlp.url).origin,
        OTARI_REQUEST_TIMEOUT_MS: String(REQUEST_MS),
        OTARI_SWEEP_GRACE_SEC: '0',
      },
      only: services,
      natsUrl: nats.url,
    })
    key = await makeKey(deployment)
    await setPrice(deployment, 'openai:*', 1.25, 10)
    await setPrice(deployment, 'otari:web_fetch', 10_000)
    await setPrice(deployment, 'otari:code_execution', 1_234)
  }, 240_000)
  afterAll(async () => {
    await deployment?.stop()
    await Promise.all([outside?.close(), sandbox?.close(), otlp?.stop()])
    await nats?.close()
  }, 60_000)

  const send = async (tag: string, stream = sent.length % 2 === 0): Promise<Sent> => {
    const job = await sendJob(deployment, key, { tag, stream, patienceMs: PATIENCE_MS })
    sent.push(job)
    return job
  }
  const restart = async (name: ServiceName) => {
    deployment.start(name)
    await deployment.ready(name)
  }
  const rowOf = async (tag: string) => (await allRows(deployment)).find(({ model }) => model === `m-${tag}`)

  test('a fetch-worker that dies over a page: another takes the page over, and it is charged once', async () => {
    // each worker has a web of its own, which tells whose page it is
    const otherWeb = await openWeb()
    const other = await deployment.replica('fetch-worker', { HTTP_PROXY: proxyUrl(otherWeb) })
    const pages = () => [outside.web, otherWeb].map(({ requests }) => requests.filter(isTaken).length)
    const isTaken = ({ target }: { target: string }) => target.includes('/page/taken-over?')
    for (const web of [outside.web, otherWeb]) {
      web.delayMs = () => (pages().includes(0) ? undefined : 0)
    }
    const job = send('taken-over')
    await expect.poll(() => pages().toSorted(), { timeout: 10_000 }).toEqual([0, 1])
    const first = pages().indexOf(1)
    if (first === 0) await deployment.kill('fetch-worker', 'SIGKILL')
    else other.signal('SIGKILL')
    expect((await job).ending).toEqual({ kind: 'whole' })
    expect(pages()).toEqual([1, 1])
    await expect
      .poll(() => rowOf('taken-over'), { timeout: 10_000 })
      .toMatchObject({ status: 'success', billing_meters: { tools: { web_fetch: { billed: 1, errors: 0 } } } })

    atUsualPace()
    if (first === 0) await restart('fetch-worker')
    other.signal('SIGTERM')
    await other.ended
    await otherWeb.close()
  }, 120_000)

  test('a billing that dies under a request: the request ends well, new ones are refused, its row comes later', async () => {
    outside.search.suffers({ kind: 'slow', ms: 1_000 })
    const job = send('unbilled')
    await expect.poll(() => outside.search.inFlight, { timeout: 10_000 }).toBe(1)
    await deployment.kill('billing', 'SIGKILL')
    const refused = await send('refused')
    expect(refused.ending).toMatchObject({ kind: 'told', status: 503, text: expect.stringContaining('"detail"') })
    expect(outside.jobs.seen('refused').rounds).toBe(0)
    expect((await job).ending).toEqual({ kind: 'whole' })
    await restart('billing')
    await expect.poll(() => rowOf('unbilled'), { timeout: 10_000 }).toMatchObject({ status: 'success', cost: 0.017247 })
  }, 120_000)

  test('brokers that die over a call: the model reads of an error and goes on, and nothing is charged', async () => {
    outside.search.alwaysSuffers({ kind: 'hang' })
    const job = send('orphaned')
    await expect.poll(() => outside.search.inFlight, { timeout: 10_000 }).toBe(1)
    await deployment.kill('search-broker', 'SIGKILL')
    outside.search.alwaysSuffers()
    expect((await job).ending).toEqual({ kind: 'whole' })
    expect(outside.jobs.seen('orphaned').results.get('web_search')).toMatch(/^\[tool error\] search failed \(/)
    await expect
      .poll(() => rowOf('orphaned'), { timeout: 10_000 })
      .toMatchObject({
        billing_meters: { tools: { web_search: { billed: 0, errors: 1 }, web_fetch: { billed: 1, errors: 0 } } },
      })
    await restart('search-broker')
  }, 120_000)

  const drained: { name: ServiceName; tool: string; slowDown(): void; calls(): number }[] = [
    {
      name: 'search-broker',
      tool: 'web_search',
      slowDown: () => outside.search.suffers({ kind: 'slow', ms: 2_000 }),
      calls: () => outside.search.requests.length,
    },
    {
      name: 'fetch-worker',
      tool: 'web_fetch',
      slowDown: () => {
        outside.web.delayMs = () => 2_000
      },
      calls: () => outside.web.requests.length,
    },
    {
      name: 'sandbox-broker',
      tool: 'code_execution',
      slowDown: () => {
        execMs = () => 2_000
      },
      calls: () => sandbox.requests.filter(({ operation }) => operation === 'exec').length,
    },
  ]
  test.each(drained)(
    'BR-163 BR-165 a $name that is told to end finishes its call first',
    async (its) => {
      const tag = `drained-${its.name}`
      const before = its.calls()
      its.slowDown()
      const job = send(tag)
      await expect.poll(its.calls, { timeout: 10_000 }).toBe(before + 1)
      const { code } = await deployment.kill(its.name, 'SIGTERM')
      expect(code).toBe(0)
      atUsualPace()
      await restart(its.name)
      expect((await job).ending).toEqual({ kind: 'whole' })
      expect(outside.jobs.seen(tag).results.get(its.tool)).not.toContain('[tool error]')
    },
    120_000,
  )

  test('a gateway that dies over a stream: the client knows at once, and what ran is charged by the sweep', async () => {
    outside.web.delayMs = () => undefined
    const pages = outside.web.requests.length
    const job = send('abandoned')
    await expect.poll(() => outside.web.requests.length, { timeout: 10_000 }).toBe(pages + 1)
    const killedAt = performance.now()
    await deployment.kill('gateway', 'SIGKILL')
    expect((await job).ending).toEqual({ kind: 'cut' })
    expect(performance.now() - killedAt).toBeLessThan(2_000)
    atUsualPace()
    await restart('gateway')
    await expectHoldsEnd(deployment)
    expect(await rowOf('abandoned')).toMatchObject({
      status: 'error',
      settled_by: 'sweep',
      cost: 0.005,
      billing_meters: { tools: { web_search: { billed: 1, errors: 0 } } },
    })
  }, 120_000)

  test('BR-149 killed 20 times over requests, gateway, fetch-worker and billing lose no line and double none', async () => {
    const KILLS = 20
    const victims = ['gateway', 'fetch-worker', 'billing'] as const
    let over = false
    const underWay = new Set<string>()
    /** Some request is past its admission, and not at its end. */
    const busy = () => [...underWay].some((tag) => outside.jobs.seen(tag).rounds > 0)
    const whole = () => sent.filter(({ ending }) => ending.kind === 'whole').length
    const load = async (client: number) => {
      for (let n = 0; !over; n += 1) {
        const tag = `c${client}n${n}x`
        underWay.add(tag)
        const { ending } = await send(tag)
        underWay.delete(tag)
        // no gateway, or one that takes nothing new: a client comes back a little later
        await sleep(ending.kind === 'whole' ? 100 : 500)
      }
    }
    const killOver = async () => {
      // each kill is over a request, and each time the deployment comes back by itself
      for (let kills = 0; kills < KILLS; ) {
        await expect.poll(busy, { timeout: 120_000, interval: 20 }).toBe(true)
        await sleep(between(0, 500))
        if (!busy()) continue
        const name = victims[kills % victims.length] as ServiceName
        kills += 1
        await deployment.kill(name, 'SIGKILL')
        await restart(name)
        const before = whole()
        await expect.poll(whole, { timeout: 120_000, interval: 20 }).toBeGreaterThan(before)
      }
    }
    const clients = Promise.all(Array.from({ length: 4 }, (_, client) => load(client)))
    await killOver().finally(() => {
      over = true
    })
    await clients
    await expectEndings()
  }, 600_000)

  test('BR-157 a bus that dies under 50 requests: each ends in its time, and the ledger is exact', async () => {
    const before = sent.length
    const pids = () => services.map((name) => deployment.process(name).pid)
    const pidsBefore = pids()
    const readyz = async () => (await fetch(`${deployment.healthUrl('gateway')}/readyz`)).status
    const jobs = Array.from({ length: 50 }, async (_, n) => {
      await sleep(between(0, 1_000))
      return send(`under${n}x`)
    })
    await sleep(between(500, 1_500))
    await nats.kill()
    const downMs = between(2_000, 5_000)
    const back = sleep(downMs).then(() => nats.start())
    const meanwhile = Array.from({ length: 20 }, (_, n) => send(`meanwhile${n}x`))
    await expect.poll(readyz, { timeout: 2_000, interval: 20 }).toBe(503)
    await back
    await Promise.all([...jobs, ...meanwhile])
    await expect.poll(readyz, { timeout: 15_000 }).toBe(200)

    expect(sent.length).toBe(before + 70)
    await expectEndings()
    expect((await send('after-the-outage')).ending).toEqual({ kind: 'whole' })
    expect(pids()).toEqual(pidsBefore)
  }, 300_000)

  test('no log holds a key or what a job was about, and nothing outside learnt of a trace', async () => {
    const lines = deployment.allLogs().split('\n')
    for (const secret of [key, deployment.masterKey, 'news of', '/page/', 'print('])
      expect(lines.filter((line) => line.includes(secret))).toEqual([])
    expect(otlp.spans.some(({ name }) => name === 'sandbox exec')).toBe(true)
    const outsiders = [...sandbox.requests, ...outside.search.requests, ...outside.web.requests]
    expect(outsiders.filter(({ headers }) => headers.traceparent ?? headers.tracestate ?? headers.baggage)).toEqual([])
  })

  /** Each request ended in its time, in one of the ways it may; each hold ends, and the ledger is exact. */
  async function expectEndings(): Promise<void> {
    expect(sent.filter(({ ending }) => ending.kind === 'hung')).toEqual([])
    const unclear = sent.filter(
      ({ ending }) => ending.kind === 'told' && ending.status !== 200 && !ending.text.startsWith('{"detail":'),
    )
    expect(unclear).toEqual([])
    const whole = sent.filter(({ ending }) => ending.kind === 'whole').map(({ tag }) => `m-${tag}`)
    const unsettled = async () => {
      // one that was with a billing that died is delivered again, and replaces what a sweep may have written meanwhile
      const settled = new Set(
        (await allRows(deployment)).flatMap((row) => (row.settled_by === 'gateway' ? row.model : [])),
      )
      return whole.filter((model) => !settled.has(model))
    }
    await expect.poll(unsettled, { timeout: 60_000, interval: 250 }).toEqual([])
    await expectHoldsEnd(deployment)
    expectExactLedger(await allRows(deployment), sent, { outside, sandbox })
    expect((await ask(deployment, 'GET', '/health', {})).status).toBe(200)
  }
})
