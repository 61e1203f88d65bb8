import { Fault } from '@tollgate/contracts'
import { openLog, startTelemetry } from '@tollgate/telemetry'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { runCode } from '../../src/direct/run-code.ts'
import type { ClaimTimes } from '../../src/tools/container-claim.ts'
import { openSandboxSession, type SessionWish } from '../../src/tools/sandbox-session.ts'
import { type Brokers, openBrokers, silent, tenancy } from '../brokers.ts'

let telemetry: ReturnType<typeof startTelemetry>
beforeAll(() => {
  telemetry = startTelemetry({ service: 'gateway', version: 'test', log: silent })
})
afterAll(() => telemetry.shutdown())

/** How many renewals came to that, since the file began. */
async function counted(outcome: string): Promise<number> {
  const line = new RegExp(`^sandbox_claim_renewals_total\\{[^}]*outcome="${outcome}"[^}]*\\} (\\d+)`, 'm')
  return Number(line.exec(await telemetry.metricsText())?.[1] ?? 0)
}

const context = () => ({ tenancy, signal: new AbortController().signal, deadline: Date.now() + 30_000 })
const renewedOften: ClaimTimes = { claimMs: 60_000, renewMs: 20, retryMs: 20, marginMs: 0 }
const soonLost: ClaimTimes = { ...renewedOften, claimMs: 400 }
const idOf = (n: number) => `otari_cntr_${String(n).repeat(32)}`

/** A session of a kept sandbox, and the lines that were logged about it. */
async function hold(times: ClaimTimes, prepare: (brokers: Brokers) => void = () => {}, wish: SessionWish = {}) {
  const brokers = await openBrokers()
  let kept = 0
  brokers.open = async () => {
    kept += 1
    return { session: `s${kept}`, container: { id: idOf(kept), expiresAt: '2030-01-01T00:10:00.000Z' } }
  }
  prepare(brokers)
  const lines: { level: string; msg: string; failure?: string }[] = []
  const log = openLog({ service: 'test', level: 'debug', write: (line) => lines.push(JSON.parse(line)) })
  const needs = { bus: brokers.bus, log, claimTimes: times }
  const open = () => openSandboxSession(needs, { container: { kind: 'auto' }, ...wish }, context())
  return { brokers, needs, lines, open, session: await open() }
}

const unavailable = async () => {
  throw new Fault('unavailable', 'a service needed for this is not running')
}
const hanging = (brokers: Brokers) => {
  const state = { stopped: false }
  brokers.exec = (_input, signal) =>
    new Promise((_, reject) => {
      signal.addEventListener('abort', () => {
        state.stopped = true
        reject(signal.reason)
      })
    })
  return state
}

describe('the claim on a kept sandbox', () => {
  test('C-17 is renewed while its request lasts, and no longer', async () => {
    const { brokers, session, open } = await hold(renewedOften)
    const times = (n: number) => brokers.asked.renewed.filter((id) => id === idOf(n)).length
    await expect.poll(() => times(1)).toBeGreaterThan(2)
    await session.close()
    const before = times(1)
    const other = await open()
    await expect.poll(() => times(2)).toBeGreaterThan(2)
    await other.close()
    await session.close()
    expect(times(1)).toBe(before)
    expect(brokers.asked.closes.map(({ container }) => container)).toEqual([idOf(1), idOf(2)])
  })

  test('C-02 is not there where nothing is kept', async () => {
    const { brokers, open, session } = await hold(renewedOften)
    brokers.open = async () => ({ session: 'plain' })
    const plain = await open()
    const kept = brokers.asked.renewed.length
    await expect.poll(() => brokers.asked.renewed.length).toBeGreaterThan(kept + 2)
    expect(new Set(brokers.asked.renewed)).toEqual(new Set([idOf(1)]))
    await Promise.all([plain.close(), session.close()])
  })

  test('C-17 is renewed while files are put into the sandbox, however long that takes', async () => {
    const file = { id: 'file-1', name: 'a.csv', mediaType: 'text/csv', bytes: 3 }
    const prepare = (brokers: Brokers) => {
      brokers.seed = async () => {
        await expect.poll(() => brokers.asked.renewed.length).toBeGreaterThan(2)
        return { names: ['a.csv'] }
      }
    }
    const { session } = await hold(renewedOften, prepare, { files: [file] })
    expect(session.container()?.id).toBe(idOf(1))
    await session.close()
  })

  test('C-17 that cannot be renewed is told of once, then when it can be again, and counted each time', async () => {
    const before = { failed: await counted('failed'), renewed: await counted('renewed') }
    const { brokers, session, lines } = await hold(renewedOften, (started) => {
      started.renew = unavailable
    })
    const told = () => lines.map(({ level, msg, failure }) => [level, msg, failure])
    const failed = ['warn', 'a claim was not renewed; the next try follows', 'unavailable']
    const again = ['info', 'the claim on a kept sandbox is renewed again', undefined]
    await expect.poll(() => counted('failed')).toBeGreaterThan(before.failed + 2)
    expect(told()).toEqual([failed])
    brokers.renew = async () => ({ renewed: true })
    await expect.poll(() => counted('renewed')).toBeGreaterThan(before.renewed + 2)
    expect(told()).toEqual([failed, again])
    brokers.renew = unavailable
    await expect.poll(() => told().length).toBe(3)
    expect(told()[2]).toEqual(failed)
    await session.close()
  })

  test.each([
    ['runs out, as no broker renews it,', unavailable],
    ['is another’s by now', async () => ({ renewed: false })],
  ])('C-17 that %s ends its run before another begins, and every later one', async (_why, renew) => {
    const before = await counted('lost')
    const { brokers, session, lines } = await hold(soonLost, (started) => {
      started.renew = renew
    })
    const began = performance.now()
    const run = hanging(brokers)
    expect(await session.execute('while True: pass', 'python', context())).toEqual({
      status: 'failed',
      reason: 'unheld',
    })
    expect(performance.now() - began).toBeLessThan(10_000)
    await expect.poll(() => run.stopped).toBe(true)
    expect(await session.execute('print(1)', 'python', context())).toEqual({ status: 'failed', reason: 'unheld' })
    expect(brokers.asked.exec).toHaveLength(1)
    expect(await counted('lost')).toBe(before + 1)
    expect(lines.at(-1)).toMatchObject({ level: 'warn', msg: expect.stringContaining('no longer held') })
    // a broker that still has the claim as it was frees it; any other changes nothing
    await session.close({ discard: true })
    expect(brokers.asked.closes).toMatchObject([{ session: 's1', container: idOf(1), discard: true }])
  })

  test('C-17 that runs out is a clear refusal where code runs without a model', async () => {
    const { brokers, needs } = await hold(soonLost, (started) => {
      started.renew = unavailable
    })
    hanging(brokers)
    const toolFiles = { attached: [], keep: async () => new Set<string>() }
    const wish = { code: 'x', kind: 'python' as const, container: { kind: 'auto' as const }, toolFiles }
    expect(await runCode(needs, wish, undefined, context())).toMatchObject({
      ok: false,
      failure: 'unavailable',
      message: expect.stringMatching(/^code_execution container is no longer held .* Retry later\.$/),
    })
  })

  test('the end of the request is told as that, and not as a claim that was lost', async () => {
    const { brokers, session } = await hold(renewedOften)
    hanging(brokers)
    const left = new AbortController()
    const running = session.execute('x', 'python', { ...context(), signal: left.signal })
    await expect.poll(() => brokers.asked.exec).toHaveLength(1)
    left.abort(new Fault('cancelled', 'the client left'))
    await expect(running).rejects.toMatchObject({ failure: 'cancelled' })
    await session.close()
  })
})
