import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { afterAll, describe, expect, onTestFinished, test } from 'vitest'
import { probePython, startSandbox } from '../src/index.ts'
import { defaultSandboxSettings } from '../src/settings.ts'
import { clientOf, log, openBackend, printed, sessionClient } from './harness.ts'
import { alive, descendantsOf, residentBytes } from './host.ts'

// a folder of this file's own, in which nobody else's sandboxes come and go
const temporary = mkdtempSync(join(tmpdir(), 'lifecycle-'))
chmodSync(temporary, 0o755)
process.env.TMPDIR = temporary
afterAll(() => rmSync(temporary, { recursive: true }))

const folders = () => readdirSync(temporary).filter((name) => name.startsWith('tollgate-'))
const kill = (pid: number) => process.kill(pid, 'SIGKILL')

describe('when a part dies', () => {
  test('H2 BR-128 sessions of a dead zygote are lost, and new ones work', { timeout: 30_000 }, async () => {
    const backend = await openBackend()
    onTestFinished(() => backend.close())
    const session = await backend.open()
    await session.python('open("a.txt", "w").write("kept?")')
    const [zygote] = descendantsOf(process.pid)
    kill(zygote as number)
    await expect
      .poll(async () => (await session.exec({ tool: 'code_execution', input: { code: '1' } })).status)
      .toBe(404)
    const began = performance.now()
    await expect.poll(async () => (await backend.send('POST', '/sessions')).status, { timeout: 10_000 }).toBe(201)
    expect(performance.now() - began).toBeLessThan(8_000)
    expect(printed(await (await backend.open()).python('import os; print(os.listdir("."))'))).toBe('[]\n')
    await expect.poll(async () => (await backend.send('GET', '/health')).status).toBe(200)
  })

  test('BR-128 a session whose process 1 dies is lost, and is said to be', async () => {
    const backend = await openBackend({ warmSessions: 0 })
    onTestFinished(() => backend.close())
    const before = new Set(descendantsOf(process.pid))
    const session = await backend.open()
    const own = descendantsOf(process.pid).filter((pid) => !before.has(pid))
    const running = session.exec({ tool: 'code_execution', input: { code: 'while True: pass' } })
    kill(Math.min(...own))
    expect((await running).status).toBe(404)
    expect((await session.list()).status).toBe(404)
    await expect.poll(() => descendantsOf(process.pid).filter((pid) => own.includes(pid))).toEqual([])
  })

  test('H4 sessions come and go without anything growing', { timeout: 120_000 }, async () => {
    const backend = await openBackend()
    onTestFinished(() => backend.close())
    const cycle = async () => {
      const session = await backend.open()
      printed(await session.python('print(1)'))
      await session.end()
    }
    const handles = () => readdirSync('/proc/self/fd').length
    const mounts = readFileSync('/proc/self/mounts', 'utf8')
    for (let warm = 0; warm < 10; warm += 1) await cycle()
    const before = { handles: handles(), processes: descendantsOf(process.pid).length, bytes: residentBytes() }
    // as many as a slow machine does in some seconds, and 300 on any other
    const until = Date.now() + 8_000
    for (let round = 0; round < 300 && (round < 30 || Date.now() < until); round += 1)
      await Promise.all([cycle(), cycle()])
    await expect.poll(handles).toBeLessThanOrEqual(before.handles + 8)
    await expect.poll(() => descendantsOf(process.pid).length).toBeLessThanOrEqual(before.processes + 4)
    expect(residentBytes() - before.bytes).toBeLessThan(64 * 1024 * 1024)
    expect(readFileSync('/proc/self/mounts', 'utf8')).toBe(mounts)
  })

  test('a sandbox that is closed leaves no process, no folder and no mount', async () => {
    const before = { folders: folders(), mounts: readFileSync('/proc/self/mounts', 'utf8') }
    const backend = await openBackend()
    const session = await backend.open()
    await session.shell('setsid sleep 1000 & echo > kept')
    await backend.close()
    expect(descendantsOf(process.pid)).toEqual([])
    expect(folders()).toEqual(before.folders)
    expect(readFileSync('/proc/self/mounts', 'utf8')).toBe(before.mounts)
  })

  test('closing waits for what runs, up to its deadline', async () => {
    const sandbox = await startSandbox({ log, settings: defaultSandboxSettings })
    const client = clientOf(sandbox.url)
    const { body } = await client.send<{ session_id: string }>('POST', '/sessions')
    const session = sessionClient(client, sandbox.url, body.session_id)
    const running = session.python('import time; time.sleep(1); print("done")')
    await expect.poll(async () => (await session.list()).status).toBe(200)
    expect(await sandbox.close(Date.now() + 10_000)).toBe(true)
    expect(printed(await running)).toBe('done\n')
  })

  test('closing cuts off at the deadline, and says so', async () => {
    const sandbox = await startSandbox({ log, settings: defaultSandboxSettings })
    const client = clientOf(sandbox.url)
    const { body } = await client.send<{ session_id: string }>('POST', '/sessions')
    const session = sessionClient(client, sandbox.url, body.session_id)
    const running = session.exec({ tool: 'code_execution', input: { code: 'open("on", "w")\nwhile True: pass' } })
    await expect.poll(async () => (await session.list()).body.files).toHaveLength(1)
    expect(await sandbox.close(Date.now() + 200)).toBe(false)
    expect((await running).status).toBe(404)
  })
})

describe('as a process of its own', () => {
  async function spawnSandbox(settings: object): Promise<{ child: ChildProcess; url: string }> {
    const child = spawn(process.execPath, ['--import', './scripts/ts.mjs', 'services/sandbox/main.ts'], {
      cwd: join(import.meta.dirname, '../../..'),
      stdio: ['pipe', 'pipe', 'inherit'],
    })
    onTestFinished(() => void child.kill('SIGKILL'))
    child.stdin?.write(`${JSON.stringify(settings)}\n`)
    for await (const line of createInterface({ input: child.stdout as NodeJS.ReadableStream })) {
      const event = JSON.parse(line)
      if (event.url) return { child, url: event.url }
      if (event.level === 'error') throw new Error(event.msg)
    }
    throw new Error('it ended')
  }
  const open = async (url: string, token?: string) => {
    const client = clientOf(url, token)
    const { body } = await client.send<{ session_id: string }>('POST', '/sessions')
    return sessionClient(client, url, body.session_id)
  }

  test('it serves, and ends in order when it is told to', { timeout: 60_000 }, async () => {
    const { child, url } = await spawnSandbox({ token: 't' })
    expect(printed(await (await open(url, 't')).python('print(1)'))).toBe('1\n')
    const family = descendantsOf(child.pid as number)
    child.kill('SIGTERM')
    expect(await once(child, 'exit')).toEqual([0, null])
    expect(alive(family)).toEqual([])
  })

  test('it ends when its parent is gone', { timeout: 60_000 }, async () => {
    const { child } = await spawnSandbox({})
    child.stdin?.end()
    expect(await once(child, 'exit')).toEqual([0, null])
  })

  test('BR-126 killed outright, it leaves no process and no folder', { timeout: 60_000 }, async () => {
    const before = folders()
    const { child, url } = await spawnSandbox({})
    const session = await open(url)
    await session.shell('setsid sleep 1000.5 & echo')
    const family = descendantsOf(child.pid as number)
    expect(family.length).toBeGreaterThan(4)
    child.kill('SIGKILL')
    await once(child, 'exit')
    await expect.poll(() => alive(family), { timeout: 5_000 }).toEqual([])
    await expect.poll(folders, { timeout: 5_000 }).toEqual(before)
  })

  test('what it is not told to do it does not do', { timeout: 60_000 }, async () => {
    await expect(spawnSandbox({ host: '0.0.0.0' })).rejects.toThrow('set sandbox_token')
  })
})

describe('a Python that is not there', () => {
  test('the reason is one that an operator can act on', async () => {
    expect(await probePython({ path: '/usr/bin' })).toMatchObject({
      ok: true,
      version: expect.stringMatching(/^3\.\d+$/),
    })
    expect(await probePython({ python: '/nowhere/python3' })).toEqual({
      ok: false,
      reason: '/nowhere/python3 cannot be run',
    })
    expect(await probePython({ python: '/bin/true' })).toEqual({
      ok: false,
      reason: '/bin/true does not answer as a Python 3 would',
    })
    await expect(
      startSandbox({ log, settings: { ...defaultSandboxSettings, python: '/nowhere/python3' } }),
    ).rejects.toThrow('/nowhere/python3 cannot be run')
  })
})
