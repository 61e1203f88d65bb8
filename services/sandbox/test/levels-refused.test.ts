import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { describe, expect, onTestFinished, test } from 'vitest'
import { canContain, contain, NOBODY, spawnContained } from './contained/contain.ts'

const root = join(import.meta.dirname, '../../..')

describe.skipIf(!canContain)('H5 a level that cannot be had is refused with its reason', () => {
  test.each([
    ['ns where namespaces are refused', 0, { level: 'ns' }, /unshare: Operation not permitted/],
    ['ns for a user where namespaces are refused', NOBODY, { level: 'ns' }, /unshare: Operation not permitted/],
    ['landlock as root', 0, { level: 'landlock' }, /would run as root/],
    ['landlock-uid as somebody else', NOBODY, { level: 'landlock-uid' }, /only root/],
    ['landlock without Landlock', NOBODY, { level: 'landlock', landlockAtMost: 0 }, /Landlock: not there/],
    ['landlock with one too old', NOBODY, { level: 'landlock', landlockAtMost: 2 }, /ABI 2 is too old/],
    ['process as root', 0, { level: 'process' }, /would run as root/],
  ])('%s', async (_what, user, request, reason) => {
    const contained = await contain(user, request)
    onTestFinished(() => contained.close())
    expect(contained.first.refused).toMatch(reason)
  })

  test('process is what it says: programs run, files are not protected', async () => {
    const contained = await contain(NOBODY, { level: 'process' })
    onTestFinished(() => contained.close())
    expect(contained.first).toMatchObject({ ready: expect.stringContaining('no protection of files'), selfTest: null })
    expect((await contained.ask('python', 'open("/etc/passwd").read()[:4]')).stdout).toBe("'root'\n")
  })
})

describe.skipIf(!canContain)('H5 the server in a container that refuses namespaces', () => {
  async function start(user: number, settings: object): Promise<{ events: { msg: string; url?: string }[] }> {
    const folder = await mkdtemp(join(tmpdir(), 'contained-'))
    await chmod(folder, 0o777)
    const child = spawnContained(user, folder, join(root, 'services/sandbox/main.ts'))
    onTestFinished(async () => {
      child.stdin?.end()
      if (child.exitCode === null) await new Promise((done) => child.once('exit', done))
      await rm(folder, { recursive: true, force: true })
    })
    child.stdin?.write(`${JSON.stringify(settings)}\n`)
    const events: { msg: string; url?: string }[] = []
    for await (const line of createInterface({ input: child.stdout as NodeJS.ReadableStream })) {
      const event = JSON.parse(line)
      events.push(event)
      if (event.url) break
    }
    return { events }
  }

  test.each([
    ['root', 0, 'landlock-uid'],
    ['somebody else', NOBODY, 'landlock'],
  ])('as %s it takes the next best level, and health says why', { timeout: 60_000 }, async (_who, user, level) => {
    const { events } = await start(user, { python: '/usr/bin/python3' })
    const url = events.at(-1)?.url
    const health = JSON.parse(await (await fetch(`${url}/health`)).text())
    expect(health).toMatchObject({ status: 'ok', isolation: { level } })
    expect(health.isolation.refused[0]).toEqual({ level: 'ns', reason: 'unshare: Operation not permitted' })
  })

  test('below what is wanted it does not start, and names every reason', { timeout: 60_000 }, async () => {
    const { events } = await start(NOBODY, { python: '/usr/bin/python3', minIsolation: 'landlock-uid' })
    expect(events.at(-1)?.msg).toBe(
      "did not start: no isolation of level 'landlock-uid' or better can be had here (ns: unshare: Operation not permitted; landlock-uid: setuid: only root can give sessions users of their own)",
    )
  })
})
