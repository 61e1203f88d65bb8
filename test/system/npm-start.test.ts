import { execFile } from 'node:child_process'
import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { freshCheckout } from './checkout.ts'
import { ask } from './client.ts'
import { steadyPort } from './ports.ts'
import { bareEnvironment, type ServiceProcess, startProcess } from './service-process.ts'

const run = promisify(execFile)

/** What the README promises to someone who has just cloned the project: one command, nothing else. */
describe('npm start, in a fresh checkout with an empty home', () => {
  let checkout: ReturnType<typeof freshCheckout>
  let home: string
  let port: number
  let first: ServiceProcess
  const url = () => `http://localhost:${port}`

  const npmStart = (onPort: number): ServiceProcess =>
    startProcess('npm', ['start'], {
      cwd: checkout.folder,
      env: { ...bareEnvironment(), HOME: home, OTARI_PORT: String(onPort) },
      terminal: true,
    })
  const healthy = async () =>
    (await ask({ url: url() }, 'GET', '/health', {}).catch(() => undefined))?.status === 200 &&
    first.output().includes('ready')
  const printed = (pattern: RegExp): string => pattern.exec(first.output())?.[1] ?? ''

  beforeAll(async () => {
    checkout = freshCheckout()
    home = mkdtempSync(join(tmpdir(), 'tollgate-home-'))
    port = await steadyPort()
    first = npmStart(port)
    while (!(await healthy())) {
      if (first.end) throw new Error(`npm start ended with ${first.end.code}:\n${first.output()}`)
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
  }, 240_000)
  afterAll(async () => {
    first?.signal('SIGINT')
    await first?.ended
    checkout?.remove()
    rmSync(home, { recursive: true, force: true })
  }, 60_000)

  test('installs nothing when everything is installed, and writes to its data folder alone', () => {
    expect(first.output()).not.toContain('installing packages')
    expect(existsSync(join(checkout.folder, 'data'))).toBe(true)
    const unexpected = readdirSync(home).filter((name) => name !== '.npm')
    expect(unexpected).toEqual([])
  })

  test('A-04 prints both keys once, and both are good', async () => {
    const [masterKey, apiKey] = [printed(/master key +(gw-master-\S+)/), printed(/API key +(gw-\S+)/)]
    expect(first.output().split(masterKey)).toHaveLength(2)
    expect((await ask({ url: url() }, 'GET', '/api/v1/keys', { key: masterKey })).status).toBe(200)
    expect((await ask({ url: url() }, 'GET', '/api/v1/tools', { key: apiKey })).status).toBe(200)
    expect((await ask({ url: url() }, 'GET', '/api/v1/keys', { key: apiKey })).status).toBe(403)
  })

  test('T-01 its curl lines work as they are printed, and the second has a tool used', async () => {
    const lines = first
      .output()
      .split('\n')
      .filter((line) => line.trim().startsWith('curl '))
    expect(lines).toHaveLength(2)
    const [hello, tool] = await Promise.all(lines.map((line) => run('bash', ['-c', line], { timeout: 60_000 })))
    expect(JSON.parse(hello?.stdout ?? '')).toMatchObject({
      object: 'chat.completion',
      choices: [{ message: { content: 'hello' }, finish_reason: 'stop' }],
    })
    expect(JSON.parse(tool?.stdout ?? '').choices[0]).toMatchObject({
      message: { content: expect.stringContaining('42') },
      finish_reason: 'stop',
    })
    expect([hello?.stderr, tool?.stderr]).toEqual(['', ''])

    const usage = await ask({ url: url() }, 'GET', '/api/v1/usage', { key: printed(/API key +(gw-\S+)/) })
    const counted = usage.json.data.flatMap(
      (row: { billing_meters: { tools?: object } }) => row.billing_meters.tools ?? [],
    )
    expect(counted).toMatchObject([{ code_execution: { billed: 1, errors: 0 } }])
  })

  test('a second one on the same folder is refused with one clear line, and harms nothing', async () => {
    const second = npmStart(await steadyPort())
    expect((await second.ended).code).toBe(1)
    const told = second
      .output()
      .split('\n')
      .filter((line) => line.includes('is in use by process'))
    expect(told.length).toBeGreaterThan(0)
    expect(second.output()).not.toContain('gw-')
    expect((await ask({ url: url() }, 'GET', '/health', {})).status).toBe(200)
  }, 120_000)

  test('A-04 ends with its terminal, and starts again with the same keys and rows, printing no key', async () => {
    const apiKey = printed(/API key +(gw-\S+)/)
    first.signal('SIGINT')
    await first.ended
    await expect.poll(() => existsSync(join(checkout.folder, 'data/db.lock')), { timeout: 15_000 }).toBe(false)
    first = npmStart(port)
    await expect.poll(healthy, { timeout: 200_000, interval: 50 }).toBe(true)
    expect(first.output()).not.toMatch(/gw-/)
    const usage = await ask({ url: url() }, 'GET', '/api/v1/usage', { key: apiKey })
    expect([usage.status, usage.json.count]).toEqual([200, 2])
  }, 240_000)
})
