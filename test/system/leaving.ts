import { readdirSync, readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { setPrice } from './client.ts'
import { post as postTo } from './connection.ts'
import { allRows, modelOf } from './ledger.ts'
import { seeded, seedOf } from './random.ts'
import { allTools, job, type Step } from './scripted-jobs.ts'
import { type System, settledRow } from './system.ts'

/** BR-160's bound for everything beneath a client that left. */
const AT_ONCE = { timeout: 1_000, interval: 10 }

const post = ({ deployment, key }: System, sent: object) => postTo(deployment, key, sent)

const body = (tag: string, steps: Step[], { stream = true, tools = true, model = 'gpt-5' } = {}) => ({
  model: `openai:${model}`,
  messages: [{ role: 'user', content: job(tag, ...steps) }],
  stream,
  ...(tools ? { tools: allTools } : {}),
})

const ways = [true, false].flatMap((stream) => [true, false].map((tools) => ({ stream, tools })))
const named = ({ stream, tools }: (typeof ways)[number]) =>
  `${stream ? 'streamed' : 'whole'}, ${tools ? 'with tools' : 'in the fast lane'}`

export function leavingClients(use: () => System): void {
  const rounds = (tag: string) => use().outside.jobs.seen(tag).rounds

  /** The newest row that is not there before `leave`: who leaves before an answer begins never learns a request's id. */
  async function rowAfter(leave: () => Promise<void>) {
    const before = new Set((await newest()).map(({ id }) => id))
    await leave()
    const fresh = async () => (await newest()).filter(({ id }) => !before.has(id))
    await expect.poll(async () => (await fresh()).length, { timeout: 10_000 }).toBe(1)
    const [row] = await fresh()
    return row
  }
  async function newest(): Promise<{ id: string; status: string; billing_meters: object }[]> {
    const { deployment } = use()
    const response = await fetch(`${deployment.url}/api/v1/usage?limit=20`, {
      headers: { authorization: `Bearer ${deployment.masterKey}` },
    })
    return ((await response.json()) as { data: [] }).data
  }

  describe('BR-160 a client that leaves', () => {
    test.each(ways.filter(({ stream }) => stream).map((way) => ({ way, name: named(way) })))(
      'while the model speaks, $name, ends the model’s connection, and pays for what was said',
      async ({ way }) => {
        const { outside, deployment } = use()
        const tag = `speaks-${way.tools}`
        const aborted = outside.openai.aborted()
        const { socket, received, requestId } = post(use(), body(tag, ['stall'], way))
        await expect.poll(received).toContain('begin')
        socket.destroy()
        await expect.poll(outside.openai.aborted, AT_ONCE).toBe(aborted + 1)
        const { row } = await settledRow(deployment, requestId())
        expect(row).toMatchObject({ status: 'cancelled', settled_by: 'gateway', billing_meters: { estimated: true } })
        expect(row.cost).toBeGreaterThan(0)
      },
    )

    test.each(ways.map((way) => ({ way, name: named(way) })))(
      'before the model answered, $name, ends the model’s connection',
      async ({ way }) => {
        const { outside } = use()
        const tag = `silent-${way.stream}-${way.tools}`
        const aborted = outside.openai.aborted()
        const row = await rowAfter(async () => {
          const { socket } = post(use(), body(tag, ['late'], way))
          await expect.poll(() => rounds(tag)).toBe(1)
          socket.destroy()
          await expect.poll(outside.openai.aborted, AT_ONCE).toBe(aborted + 1)
        })
        expect(row).toMatchObject({ status: 'cancelled' })
      },
    )

    test.each([true, false])('while a search runs (stream: %s) ends it, and asks no model again', async (stream) => {
      const { outside } = use()
      const tag = `searching-${stream}`
      const { abandoned } = outside.search
      outside.search.suffers({ kind: 'hang' })
      const row = await rowAfter(async () => {
        const { socket } = post(use(), body(tag, ['search'], { stream }))
        await expect.poll(() => outside.search.inFlight).toBe(1)
        socket.destroy()
        await expect.poll(() => outside.search.abandoned, AT_ONCE).toBe(abandoned + 1)
      })
      expect(row).toMatchObject({ status: 'cancelled', prompt_tokens: 101 })
      expect(rounds(tag)).toBe(1)
    })

    test.each([true, false])('while a page loads (stream: %s) ends it, and asks no model again', async (stream) => {
      const { outside } = use()
      const tag = `loading-${stream}`
      const left = outside.web.left()
      outside.web.delayMs = (target) => (target.includes(tag) ? undefined : 0)
      const row = await rowAfter(async () => {
        const { socket } = post(use(), body(tag, ['fetch'], { stream }))
        await expect.poll(() => outside.web.requests.filter(({ target }) => target.includes(tag)).length).toBe(1)
        socket.destroy()
        await expect.poll(outside.web.left, AT_ONCE).toBe(left + 1)
      })
      expect(row).toMatchObject({ status: 'cancelled', prompt_tokens: 101 })
      expect(rounds(tag)).toBe(1)
    })

    test.each([true, false])(
      'while a program runs (stream: %s) kills it with all it started, and asks no model again',
      async (stream) => {
        // `running.<n>` has the program start a process that is told from every other by how long it would sleep
        const tag = `running.${stream ? 1 : 2}${process.pid}`
        const sleeper = `60.${tag.replace('running.', '')}`
        const row = await rowAfter(async () => {
          const { socket } = post(use(), body(tag, ['code'], { stream }))
          await expect
            .poll(() => commands().filter((line) => line.includes(sleeper)).length, { timeout: 5_000 })
            .toBe(1)
          socket.destroy()
          await expect.poll(() => commands().filter((line) => line.includes(sleeper)), AT_ONCE).toEqual([])
        })
        expect(row).toMatchObject({ status: 'cancelled', prompt_tokens: 101 })
        expect(rounds(tag)).toBe(1)
      },
    )

    test('P-47 after its search ran pays for the search', async () => {
      const { outside, deployment } = use()
      const aborted = outside.openai.aborted()
      const { socket, received, requestId } = post(use(), body('searched', ['search', 'stall']))
      await expect.poll(received, { timeout: 5_000 }).toContain('begin')
      socket.resetAndDestroy()
      await expect.poll(outside.openai.aborted, AT_ONCE).toBe(aborted + 1)
      const { row } = await settledRow(deployment, requestId())
      expect(row).toMatchObject({
        status: 'cancelled',
        billing_meters: { tools: { web_search: { billed: 1, errors: 0 } } },
      })
      expect(row.pricing_breakdown).toContainEqual(
        expect.objectContaining({ meter: 'web_search_calls', label: 'searxng:engine', cost: 0.005 }),
      )
    })
  })

  test('BR-159 BR-160 sixty clients that leave at any moment leave nothing behind, and each is settled once', async () => {
    const { deployment } = use()
    await setPrice(deployment, 'openai:*', 1.25, 10)
    const random = seeded(seedOf('leaving'))
    const before = new Set((await allRows(deployment)).map(({ id }) => id))
    const tags = Array.from({ length: 60 }, (_, n) => `leaver-${n}`)
    await Promise.all(
      tags.map(async (tag, n) => {
        await sleep(random() * 1_000)
        const { socket } = post(
          use(),
          body(tag, ['search', 'fetch', 'code'], { stream: n % 2 === 0, model: modelOf(tag) }),
        )
        // some for sure while the model or a tool is at work, however slow the machine is
        if (n % 6 === 0) await expect.poll(() => rounds(tag), { timeout: 30_000, interval: 10 }).toBeGreaterThan(0)
        await sleep(random() * (n % 6 === 0 ? 50 : 600))
        if (n % 3 === 0) socket.resetAndDestroy()
        else socket.destroy()
      }),
    )
    const inFlight = async () => {
      const metrics = await (await fetch(`${deployment.healthUrl('gateway')}/metrics`)).text()
      return Number(/^http_requests_in_flight(?:\{[^}]*\})? (\d+)/m.exec(metrics)?.[1])
    }
    await expect.poll(inFlight, { timeout: 10_000 }).toBe(0)
    const fresh = async () => (await allRows(deployment)).filter(({ id }) => !before.has(id))
    // whoever got as far as a model has a row, and nobody has two
    const asked = () => tags.filter((tag) => rounds(tag) > 0).map(modelOf)
    const unsettled = async () => {
      const settled = new Set((await fresh()).map(({ model }) => model))
      return asked().filter((model) => !settled.has(model))
    }
    await expect.poll(unsettled, { timeout: 10_000 }).toEqual([])
    const models = (await fresh()).map(({ model }) => model)
    expect(new Set(models).size).toBe(models.length)
    // a call whose connection was still being made was given up unheard, and costs nothing
    const unheard = (await fresh()).filter(({ model }) => !asked().includes(model))
    expect(unheard.filter(({ status, cost }) => status !== 'cancelled' || (cost ?? 0) > 0)).toEqual([])
    const statuses = new Set((await fresh()).map(({ status, settled_by }) => `${status} by ${settled_by}`))
    expect([...statuses].filter((status) => !/^(cancelled|success) by gateway$/.test(status))).toEqual([])
    expect(statuses).toContain('cancelled by gateway')
  }, 60_000)

  test.each(ways.map((way) => ({ way, name: named(way) })))(
    'BR-160 a client that closes only its own side gets its whole answer, $name',
    async ({ way }) => {
      const { deployment } = use()
      const tag = `half-${way.stream}-${way.tools}`
      const { socket, received, requestId } = post(use(), body(tag, way.tools ? ['search', 'code'] : [], way))
      socket.end()
      await expect.poll(received, { timeout: 10_000 }).toMatch(way.stream ? /data: \[DONE\]/ : /"finish_reason":"stop"/)
      socket.destroy()
      expect(received()).toContain(tag)
      expect((await settledRow(deployment, requestId())).row).toMatchObject({ status: 'success' })
    },
  )
}

/** The command line of every process of this machine that can be seen. */
function commands(): string[] {
  return readdirSync('/proc').flatMap((name) => {
    if (!/^\d+$/.test(name)) return []
    try {
      return readFileSync(`/proc/${name}/cmdline`, 'utf8').replaceAll('\0', ' ')
    } catch {
      return [] // it ended meanwhile
    }
  })
}
