import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { afterEach, describe, expect, test } from 'vitest'

interface Line {
  msg: string
  url?: string
  part?: string
  waiting?: string[]
  level: string
}

const children: ChildProcess[] = []
afterEach(() => {
  for (const child of children.splice(0)) child.kill('SIGKILL')
})

const quickPart = (name: string, more: object = {}) => ({
  name,
  closeMs: 0,
  cutOff: false,
  throws: false,
  neverEnds: false,
  notReady: null,
  ...more,
})
const defaults = { drainMs: 10_000, readinessDelayMs: 0, startMs: 0, heedsStop: true, failStart: false }

/** The process as its operator sees it: what it says on stdout, its health port, its exit code. */
function run(play: Partial<typeof defaults> & { parts?: object[] }) {
  const child = spawn(
    process.execPath,
    [
      '--import',
      './scripts/ts.mjs',
      'packages/service/test/programs/parts.ts',
      JSON.stringify({ ...defaults, parts: [], ...play }),
    ],
    { cwd: new URL('../../..', import.meta.url), stdio: ['ignore', 'pipe', 'inherit'] },
  )
  children.push(child)
  const lines: Line[] = []
  createInterface({ input: child.stdout }).on('line', (line) => lines.push(JSON.parse(line)))
  const said = (msg: string) => lines.find((line) => line.msg.startsWith(msg))
  return {
    child,
    lines,
    said,
    heard: async (msg: string) => {
      await expect.poll(() => said(msg), { timeout: 10_000 }).toBeDefined()
      return said(msg) as Line
    },
    // `close`, not `exit`: its last lines have been read by then
    exited: once(child, 'close').then(([code, signal]) => ({ code, signal })),
    probe: async (path: string) => {
      const response = await fetch(`${said('health')?.url}${path}`)
      return { status: response.status, text: await response.text() }
    },
  }
}

describe('BR-163 a process that is told to stop', () => {
  test('BR-163 closes its parts in the opposite order and exits 0', async () => {
    const { child, heard, exited, lines } = run({ parts: [quickPart('db'), quickPart('bus'), quickPart('gateway')] })
    await heard('ready')
    child.kill('SIGTERM')
    expect(await exited).toEqual({ code: 0, signal: null })
    expect(lines.filter((line) => line.msg === 'closed').map((line) => line.part)).toEqual([
      'gateway',
      'bus',
      'db',
      'health',
    ])
  })

  test('BR-163 stops the same way on SIGINT', async () => {
    const { child, heard, exited } = run({ parts: [quickPart('gateway')] })
    await heard('ready')
    child.kill('SIGINT')
    expect(await exited).toEqual({ code: 0, signal: null })
  })

  test.each([true, false])(
    'BR-163 exits 0 when the signal comes while it starts (start heeds the signal: %s)',
    async (heedsStop) => {
      const { child, heard, exited, said } = run({ startMs: 60_000, heedsStop, parts: [quickPart('db')] })
      await heard('health')
      child.kill('SIGTERM')
      expect(await exited).toEqual({ code: 0, signal: null })
      expect(said('ready')).toBeUndefined()
      expect(said('closed')?.part).toBe('db')
    },
  )

  test('BR-163 leaves at once on a second signal', async () => {
    const { child, heard, exited } = run({ drainMs: 60_000, parts: [quickPart('gateway', { closeMs: 50_000 })] })
    await heard('ready')
    child.kill('SIGTERM')
    await heard('stopping')
    const began = performance.now()
    child.kill('SIGTERM')
    expect(await exited).toEqual({ code: 1, signal: null })
    expect(performance.now() - began).toBeLessThan(1_000)
  })

  test('BR-163 is not ready but alive from the signal on, and waits out the readiness delay once', async () => {
    const { child, heard, exited, probe } = run({
      readinessDelayMs: 700,
      parts: [quickPart('gateway', { closeMs: 300 })],
    })
    await heard('ready')
    expect(await probe('/readyz')).toEqual({ status: 200, text: '{"status":"ok"}' })
    const began = performance.now()
    child.kill('SIGTERM')
    await heard('stopping')
    expect(await probe('/readyz')).toEqual({ status: 503, text: '{"status":"draining"}' })
    expect((await probe('/livez')).status).toBe(200)
    expect((await exited).code).toBe(0)
    expect(performance.now() - began).toBeGreaterThan(990)
    expect(performance.now() - began).toBeLessThan(4_000)
  })

  test('exits 1 when a part had to be cut off, and closes the rest', async () => {
    const { child, heard, exited, lines } = run({ parts: [quickPart('db'), quickPart('gateway', { cutOff: true })] })
    await heard('ready')
    child.kill('SIGTERM')
    expect((await exited).code).toBe(1)
    expect(lines.filter((line) => line.msg === 'closed').map((line) => line.part)).toEqual(['gateway', 'db', 'health'])
  })

  test('exits 1 when a part breaks while it closes, and closes the rest', async () => {
    const { child, heard, exited, lines } = run({ parts: [quickPart('db'), quickPart('gateway', { throws: true })] })
    await heard('ready')
    child.kill('SIGTERM')
    expect((await exited).code).toBe(1)
    expect(lines.filter((line) => line.msg === 'closed').map((line) => line.part)).toEqual(['db', 'health'])
  })

  test('BR-163 leaves without a part that does not end, soon after the drain limit', async () => {
    const { child, heard, exited, said } = run({ drainMs: 300, parts: [quickPart('gateway', { neverEnds: true })] })
    await heard('ready')
    const began = performance.now()
    child.kill('SIGTERM')
    expect((await exited).code).toBe(1)
    expect(performance.now() - began).toBeLessThan(6_000)
    expect(said('the drain limit is over')).toMatchObject({ part: 'gateway', waiting: ['health'] })
  })
})

test('a start that fails says why in one line and exits 1', async () => {
  const { exited, lines, said } = run({ failStart: true, parts: [quickPart('db')] })
  expect((await exited).code).toBe(1)
  expect(said('did not start')?.msg).toBe('did not start: the port is taken: set another one')
  expect(lines.filter((line) => line.level === 'error')).toHaveLength(1)
  expect(said('closed')?.part).toBe('db')
})

test('a process is not ready while it starts', async () => {
  const { heard, probe } = run({ startMs: 60_000 })
  await heard('health')
  expect(await probe('/readyz')).toEqual({ status: 503, text: '{"status":"starting"}' })
})

test('readiness names the part that cannot work', async () => {
  const { heard, probe } = run({ parts: [quickPart('db'), quickPart('bus', { notReady: 'not connected' })] })
  await heard('ready')
  expect(await probe('/readyz')).toEqual({ status: 503, text: '{"status":"bus: not connected"}' })
})

test('the health port serves metrics and nothing else', async () => {
  const { heard, probe, said } = run({})
  await heard('ready')
  expect(await probe('/metrics')).toEqual({ status: 200, text: 'up 1\n' })
  expect((await probe('/')).status).toBe(404)
  expect((await fetch(`${said('health')?.url}/livez`, { method: 'POST' })).status).toBe(404)
})
