import { Fault } from '@tollgate/contracts'
import { describe, expect, test } from 'vitest'
import type { ToolFiles } from '../../src/files/tool-files.ts'
import { countWebCalls } from '../../src/loop/limits.ts'
import { defaultSettings } from '../../src/settings.ts'
import type { Capabilities } from '../../src/tools/capabilities.ts'
import { codeExecution } from '../../src/tools/code-execution.ts'
import { type CallContext, noOptions } from '../../src/tools/tool.ts'
import { type Brokers, openBrokers, silent, tenancy } from '../brokers.ts'

const context = (): CallContext => ({ tenancy, signal: new AbortController().signal, deadline: Date.now() + 10_000 })

const capabilities: Capabilities = { search: null, fetch: false, sandbox: true, intercept: false, executor: 'auto' }

/** A caller who owns whatever was stored. */
const files: ToolFiles = { attached: [], keep: async (produced) => new Set(produced.map(({ id }) => id)) }

function open(brokers: Brokers, at = context(), options = noOptions) {
  const webCalls = countWebCalls(defaultSettings)
  const use = { bus: brokers.bus, log: silent, settings: defaultSettings, capabilities, webCalls, files }
  return codeExecution.open(options, use, at)
}
const run = async (brokers: Brokers, code: unknown = 'print(1)') =>
  (await open(brokers)).run({ code: code as string }, context())

test('T-24 a declaration may say a hint and anything else', () => {
  const entry = { type: 'otari_code_execution', purpose_hint: 'charts', container: 'auto', unknown: { a: 1 } }
  expect(codeExecution.read({ entry, spelled: entry }, capabilities)).toMatchObject({ hint: 'charts' })
})

describe('the session', () => {
  test('C-01 is opened once, serves every run and is closed', async () => {
    const brokers = await openBrokers()
    const tool = await open(brokers)
    await tool.run({ code: 'a = 1' }, context())
    await tool.run({ code: 'print(a)' }, context())
    await tool.close?.()
    await tool.close?.()
    expect(brokers.asked.opened).toHaveLength(1)
    expect(brokers.asked.exec.map(({ session, code }) => [session, code])).toEqual([
      ['s1', 'a = 1'],
      ['s1', 'print(a)'],
    ])
    expect(brokers.asked.closed).toEqual(['s1'])
  })

  test('C-01 is given back when the client leaves while it is made', async () => {
    const brokers = await openBrokers()
    const makes = brokers.open
    const left = new AbortController()
    let finish = () => {}
    const made = new Promise<void>((resolve) => {
      finish = resolve
    })
    brokers.open = async (input) => {
      left.abort(new Fault('cancelled', 'the client left'))
      await made
      return makes(input, () => {})
    }
    const tool = open(brokers, { ...context(), signal: left.signal })
    await expect(tool).rejects.toMatchObject({ failure: 'cancelled' })
    finish()
    await expect.poll(() => brokers.asked.closed).toEqual(['s1'])
  })

  test('C-18 that was made, or claimed, though no answer followed is given back', async () => {
    const brokers = await openBrokers()
    brokers.open = async (_input, emit) => {
      emit({ type: 'leased', session: 's9' })
      throw new Fault('unavailable', 'a service needed for this stopped answering')
    }
    const id = `otari_cntr_${'1'.repeat(32)}`
    for (const container of [undefined, { kind: 'auto' as const }, { kind: 'id' as const, id }])
      await expect(open(brokers, context(), { ...noOptions, container })).rejects.toMatchObject({ status: 503 })
    await expect.poll(() => brokers.asked.closes).toHaveLength(3)
    const told = brokers.asked.closes.map(({ session, container, discard }) => [session, container, discard])
    expect(told).toEqual([
      ['s9', undefined, true],
      ['s9', undefined, true],
      ['s9', id, false],
    ])
  })

  test('C-18 whose broker is away when it ends is given back when there is one again', async () => {
    const brokers = await openBrokers()
    const tool = await open(brokers)
    let away = true
    brokers.close = async () => {
      if (away) throw new Fault('unavailable', 'a service needed for this is not running')
      return {}
    }
    await expect(tool.close?.()).rejects.toMatchObject({ failure: 'unavailable' })
    await expect.poll(() => brokers.asked.closed.length, { timeout: 5_000 }).toBeGreaterThan(1)
    away = false
    const before = brokers.asked.closed.length
    await expect.poll(() => brokers.asked.closed.length, { timeout: 5_000 }).toBe(before + 1)
    expect(new Set(brokers.asked.closed)).toEqual(new Set(['s1']))
  })

  test.each(['upstream', 'timeout'] as const)(
    'X-28 that cannot be opened (%s) is a 502 in a fixed text',
    async (failure) => {
      const brokers = await openBrokers()
      brokers.open = async () => {
        throw new Fault(failure, 'connect ECONNREFUSED 10.0.0.7:8080')
      }
      const fault = await open(brokers).catch((thrown: unknown) => Fault.from(thrown))
      expect(fault).toMatchObject({
        status: 502,
        message:
          "code_execution sandbox unreachable. Check the sandbox URL in the dashboard's Tools settings, or OTARI_SANDBOX_URL, and that the container is running.",
      })
    },
  )

  test.each([30, undefined])(
    'X-29 refused for want of room is a 503 that passes on retry after %s',
    async (seconds) => {
      const brokers = await openBrokers()
      brokers.open = async () => {
        throw new Fault('unavailable', 'pool exhausted', seconds === undefined ? {} : { retryAfterSeconds: seconds })
      }
      const fault = await open(brokers).catch((thrown: unknown) => Fault.from(thrown))
      expect(fault).toMatchObject({
        status: 503,
        message: 'code_execution sandbox temporarily unavailable. Retry later.',
        retryAfterSeconds: seconds,
      })
    },
  )

  test('BR-128 that was lost is reported as lost, and the next run starts in a new one', async () => {
    const brokers = await openBrokers()
    const works = brokers.exec
    const tool = await open(brokers)
    brokers.exec = async () => ({ status: 'failed', reason: 'lost' })
    expect((await tool.run({ code: 'x' }, context())).outcome.text).toMatch(/^\[tool error\] .* was lost/)
    brokers.exec = works
    expect((await tool.run({ code: 'y' }, context())).outcome.isError).toBe(false)
    expect(brokers.asked.exec.map(({ session }) => session)).toEqual(['s1', 's2'])
  })
})

describe('a run', () => {
  interface Ended {
    stdout?: string
    stderr?: string
    returnCode?: number
    files?: { name: string; file?: typeof file }[]
  }
  const file = { id: 'file-7c2e', name: 'chart.png', mediaType: 'image/png', bytes: 3 }
  const ended = (part: Ended) => ({ status: 'ok' as const, stdout: '', stderr: '', returnCode: 0, files: [], ...part })

  test.each<[Ended, string, boolean]>([
    [{ stdout: '1\n' }, 'stdout:\n1\n', false],
    [
      { stdout: '25852016738884976640000\n', files: [{ name: 'chart.png', file }] },
      'stdout:\n25852016738884976640000\n\nfiles: chart.png (file_id: file-7c2e)',
      false,
    ],
    [{ stdout: 'a', stderr: 'warning' }, 'stdout:\na\nstderr:\nwarning', false],
    [{ stdout: 'a', stderr: 'boom', returnCode: 1 }, '[tool error] stdout:\na\nstderr:\nboom', true],
    [{ stderr: 'only this' }, '[tool error] stderr:\nonly this', true],
    [{ returnCode: 3 }, '[tool error] exit code 3', true],
    [{}, '(no output)', false],
    [{ files: [{ name: 'big.bin' }] }, 'files: big.bin (not stored)', false],
  ])('X-30 that ended with %j reads %j', async (part, text, isError) => {
    const brokers = await openBrokers()
    brokers.exec = async () => ended(part)
    const { outcome } = await run(brokers)
    expect(outcome).toMatchObject({ text, isError })
    expect(outcome.shown).toMatchObject({ code: 'print(1)', returnCode: part.returnCode ?? 0 })
  })

  test('X-30 with much output keeps its traceback and stays within the limit', async () => {
    const brokers = await openBrokers()
    brokers.exec = async () => ended({ stdout: 'é'.repeat(100_000), stderr: 'Traceback', returnCode: 1 })
    const { text } = (await run(brokers)).outcome
    expect(Buffer.byteLength(text)).toBeLessThanOrEqual(50 * 1024)
    expect(text).toMatch(/\[output truncated\]\n\nstderr:\nTraceback$/)
  })

  test('X-31 is granted 60 seconds', async () => {
    const brokers = await openBrokers()
    await run(brokers)
    expect(brokers.asked.exec).toMatchObject([{ timeoutSeconds: 60, session: 's1', tenancy }])
  })

  test.each([
    ['unreachable', 'code_execution sandbox unreachable'],
    ['timeout', 'code execution timed out'],
    ['busy', 'code_execution sandbox temporarily unavailable'],
    ['refused', 'code execution failed'],
  ] as const)('X-28 that failed as %s is a tool error, and the request goes on', async (reason, text) => {
    const brokers = await openBrokers()
    brokers.exec = async () => ({ status: 'failed', reason })
    const { outcome } = await run(brokers)
    expect(outcome).toMatchObject({ text: `[tool error] ${text}`, isError: true, shown: { returnCode: undefined } })
  })

  test('of more code than can be sent is refused to the model', async () => {
    const brokers = await openBrokers()
    const { outcome } = await run(brokers, 'x'.repeat(300_000))
    expect(outcome.text).toBe('[tool error] the code is too long')
  })

  test.each(['', '  \n', undefined, 5, {}])('of the code %j is refused to the model', async (code) => {
    const brokers = await openBrokers()
    expect((await run(brokers, code === undefined ? null : code)).outcome.text).toBe(
      '[tool error] code_execution needs "code", a string',
    )
    expect(brokers.asked.exec).toHaveLength(0)
  })
})
