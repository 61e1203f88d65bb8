import { Readable } from 'node:stream'
import { openFakeSandbox } from '@tollgate/testing'
import { describe, expect, onTestFinished, test } from 'vitest'
import { openProtocol } from '../src/protocol/client.ts'
import type { Provider } from '../src/provider.ts'
import { limits, openHosted, python, run, shell } from './e2b-rig.ts'

interface Backend {
  provider: Provider
  /** Takes no more sessions, and says when it will. */
  fill(): void
  stop(): Promise<void>
}

async function openBackend(kind: string): Promise<Backend> {
  let isFull = false
  const fill = () => {
    isFull = true
  }
  if (kind === 'e2b') {
    const { provider, vendor } = await openHosted({
      fault: ({ operation }) =>
        isFull && operation === 'POST /v2/sandboxes' ? { status: 429, headers: { 'retry-after': '7' } } : undefined,
    })
    return { provider, fill, stop: () => vendor.close() }
  }
  const backend = await openFakeSandbox({
    respond: ({ operation }) =>
      isFull && operation === 'create' ? { status: 503, headers: { 'retry-after': '7' } } : undefined,
  })
  const provider = openProtocol({ url: backend.url })
  onTestFinished(async () => {
    await provider.close()
    await backend.close()
  })
  return { provider, fill, stop: () => backend.close() }
}

const file = (path: string, text: string) => ({
  path,
  mediaType: 'text/csv',
  bytes: Buffer.byteLength(text),
  content: Readable.from([Buffer.from(text)]),
})
const textOf = async (content: Readable) => Buffer.concat(await content.toArray()).toString()

describe.each(['protocol', 'e2b'])('CP-28 a caller sees the same of %s', (kind) => {
  const open = async () => {
    const backend = await openBackend(kind)
    const opened = await backend.provider.create({}, limits())
    if (opened.status !== 'ok') throw new Error(opened.reason)
    const { session } = opened
    return {
      ...backend,
      session,
      exec: (call: Parameters<Provider['exec']>[1]) => run(backend.provider, session, call),
    }
  }

  test('CP-17 code is run, and its variables last from call to call', async () => {
    const { exec } = await open()
    expect(await exec(python('x = 41'))).toMatchObject({ status: 'ok', stdout: '', stderr: '', returnCode: 0 })
    expect(await exec(python('print(x + 1)'))).toMatchObject({ status: 'ok', stdout: '42\n', returnCode: 0 })
  })

  test('CP-13 a program that fails is an answer like any other', async () => {
    const { exec } = await open()
    const failed = await exec(python('raise ValueError("nothing to see")'))
    expect(failed).toMatchObject({ status: 'ok', returnCode: 1 })
    expect(failed).toHaveProperty('stderr', expect.stringContaining('ValueError: nothing to see'))
  })

  test('a command line is run, and ends with its own exit code', async () => {
    const { exec } = await open()
    expect(await exec(shell('echo hello'))).toMatchObject({ status: 'ok', stdout: 'hello\n', returnCode: 0 })
    expect(await exec(shell('exit 3'))).toMatchObject({ status: 'ok', stdout: '', returnCode: 3 })
  })

  test('CP-18 CP-19 CP-20 files go in, are listed and come out', async () => {
    const { provider, session, exec } = await open()
    expect(await provider.put(session, file('in.csv', 'a,ü\n'), limits())).toEqual({ status: 'ok', path: 'in.csv' })
    expect(await exec(python('print(open("in.csv").read())'))).toMatchObject({ stdout: 'a,ü\n\n' })
    await exec(python('open("out.txt", "w").write("made")'))
    const listed = await provider.list(session, '.', limits())
    expect(listed).toMatchObject({ status: 'ok' })
    const paths = listed.status === 'ok' ? listed.files.map(({ path, bytes }) => `${path} ${bytes}`).sort() : []
    expect(paths).toEqual(['in.csv 5', 'out.txt 4'])
    const got = await provider.get(session, 'out.txt', limits())
    expect(got.status === 'ok' && (await textOf(got.content))).toBe('made')
  })

  test.each([
    ['no such file', 'absent.txt', 'lost'],
    ['a path that leads out', '../secret', 'refused'],
    ['an absolute path', '/etc/passwd', 'refused'],
    ['a folder', '.', 'refused'],
  ])('CP-19 %s is not given out', async (_what, path, reason) => {
    const { provider, session } = await open()
    expect(await provider.get(session, path, limits())).toEqual({ status: 'failed', reason })
  })

  test('X-31 code that runs too long is ended and says so, and the session goes on', async () => {
    const { exec } = await open()
    const late = await exec(python('import time; time.sleep(30)', 1))
    expect(late).toMatchObject({
      status: 'ok',
      returnCode: 124,
      stderr: expect.stringContaining('timed out after 1 s'),
    })
    expect(await exec(python('print(7)'))).toMatchObject({ status: 'ok', stdout: '7\n' })
  })

  test('CP-15 a session is released once or twice; what it held is lost', async () => {
    const { provider, session, exec } = await open()
    expect(await provider.destroy(session, limits())).toEqual({ status: 'ok' })
    expect(await provider.destroy(session, limits())).toEqual({ status: 'ok' })
    expect(await exec(python('print(1)'))).toEqual({ status: 'failed', reason: 'lost' })
    expect(await provider.list(session, '.', limits())).toEqual({ status: 'failed', reason: 'lost' })
  })

  test('BR-128 a session that was never given out is lost', async () => {
    const { provider } = await open()
    expect(await run(provider, 'nobody', python('print(1)'))).toEqual({ status: 'failed', reason: 'lost' })
    expect(await provider.list('nobody', '.', limits())).toEqual({ status: 'failed', reason: 'lost' })
    expect(await provider.destroy('nobody', limits())).toEqual({ status: 'ok' })
  })

  test('X-29 CP-23 at capacity is busy, with the seconds that were named, and is not tried again', async () => {
    const { provider, fill } = await open()
    fill()
    expect(await provider.create({}, limits())).toEqual({ status: 'failed', reason: 'busy', retryAfterSeconds: 7 })
  })

  test('CP-12 an idle time that was asked for is reported as it is in force', async () => {
    const { provider } = await open()
    expect(await provider.create({ idleTimeoutSeconds: 120 }, limits())).toMatchObject({ idleTimeoutSeconds: 120 })
  })

  test('nobody there is unreachable', async () => {
    const { provider, session, stop } = await open()
    await stop()
    const unreachable = { status: 'failed', reason: 'unreachable' }
    expect(await provider.create({}, limits())).toEqual(unreachable)
    expect(await run(provider, session, python('print(1)'))).toEqual(unreachable)
    expect(await provider.list(session, '.', limits())).toEqual(unreachable)
  })

  test('a caller who leaves hears nothing more, and the next one is served', async () => {
    const { provider, session, exec } = await open()
    const gone = new AbortController()
    const asked = { signal: gone.signal, deadline: Date.now() + 60_000 }
    const running = provider.exec(session, python('import time; time.sleep(1)'), asked)
    setImmediate(() => gone.abort(new Error('left')))
    await expect(running).rejects.toThrow('left')
    expect(await exec(python('print(2)'))).toMatchObject({ status: 'ok', stdout: '2\n' })
  })
})
