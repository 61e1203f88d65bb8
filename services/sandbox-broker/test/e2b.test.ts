import { Readable } from 'node:stream'
import { afterEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { apiUrl, e2bDefaults, sandboxUrl } from '../src/e2b/endpoints.ts'
import { KEY, limits, openHosted, python, run, shell } from './e2b-rig.ts'

const failed = (reason: string) => ({ status: 'failed', reason })
const line = (message: object) => `${JSON.stringify(message)}\n`
const ended = line({ type: 'number_of_executions', execution_count: 1 }) + line({ type: 'end_of_execution' })

describe('H7 what a hosted sandbox does wrong', () => {
  test('no split of the stream breaks a character, wherever it falls', async () => {
    const text = 'a¢€𝄞é漢🎉z'
    const said = Buffer.from(line({ type: 'stdout', text }))
    const bytes = Buffer.concat([said, Buffer.from(ended)])
    let at = 0
    const { provider, lease } = await openHosted({
      fault: ({ operation }) =>
        operation === 'POST /execute'
          ? { status: 200, chunks: [bytes.subarray(0, at), bytes.subarray(at)].filter(({ length }) => length > 0) }
          : undefined,
    })
    const session = await lease()
    expect(said.length).toBeGreaterThan(25)
    for (at = 0; at <= said.length; at += 1)
      expect(await run(provider, session, python('any')), `split at ${at}`).toMatchObject({
        stdout: text,
        returnCode: 0,
      })
    // and one byte at a time
    at = 0
    const single = await openHosted({
      fault: ({ operation }) =>
        operation === 'POST /execute'
          ? { status: 200, chunks: [...bytes].map((byte) => Uint8Array.of(byte)) }
          : undefined,
    })
    const pieces: string[] = []
    const call = { ...python('any'), onOutput: ({ text }: { text: string }) => void pieces.push(text) }
    expect(await run(single.provider, await single.lease(), call)).toMatchObject({ stdout: text })
    expect(pieces).toEqual([text])
  })

  test('a command whose output comes byte by byte stays whole, and what is not UTF-8 is replaced', async () => {
    const { provider, lease } = await openHosted({ outputBytes: 1 })
    const session = await lease()
    expect(await run(provider, session, shell('echo a¢€𝄞é漢🎉z'))).toMatchObject({ stdout: 'a¢€𝄞é漢🎉z\n' })
    expect(await run(provider, session, shell("printf 'a\\xff\\xfeb'"))).toMatchObject({ stdout: 'a\u{fffd}\u{fffd}b' })
  })

  test.each([
    ['code', python('print(1)'), 'POST /execute'],
    ['a command', shell('echo 1'), 'POST /process.Process/Start'],
  ])('502 of %s is a sandbox that is gone, never a success', async (_what, call, operation) => {
    let isGone = false
    const { provider, lease } = await openHosted({
      fault: ({ operation: asked }) =>
        isGone && (asked === operation || asked === 'GET /health') ? { status: 502 } : undefined,
    })
    const session = await lease()
    isGone = true
    expect(await run(provider, session, call)).toEqual(failed('lost'))
  })

  test('BR-128 a busy agent loses no sandbox, though the vendor’s client thinks so', async () => {
    let status = 0
    const { provider, lease } = await openHosted({
      fault: ({ operation }) => (status > 0 && operation === 'POST /process.Process/Start' ? { status } : undefined),
    })
    const session = await lease()
    await run(provider, session, python('x = 5'))
    for (status of [429, 503, 504]) expect(await run(provider, session, shell('true'))).toEqual(failed('unreachable'))
    status = 0
    expect(await run(provider, session, python('print(x)'))).toMatchObject({ stdout: '5\n' })
  })

  test('CP-15 a sandbox that is gone is released, whatever the words of the 404', async () => {
    let chunks: Uint8Array[] | undefined
    const { provider, lease } = await openHosted({
      fault: ({ operation }) => (operation.startsWith('DELETE') && chunks ? { status: 404, chunks } : undefined),
    })
    for (const words of ['', '<html>', '{"code":404,"message":"no such sandbox"}']) {
      chunks = undefined
      const session = await lease()
      chunks = [Buffer.from(words)]
      expect(await provider.destroy(session, limits())).toEqual({ status: 'ok' })
    }
  })

  test('a sandbox that the vendor ended is lost to every operation', async () => {
    const { provider, lease, vendor } = await openHosted()
    const session = await lease()
    for (const sandbox of vendor.sandboxes.values()) sandbox.endsAt = 0
    expect(await run(provider, session, python('1'))).toEqual(failed('lost'))
    expect(await run(provider, session, shell('true'))).toEqual(failed('lost'))
    expect(await provider.list(session, '.', limits())).toEqual(failed('lost'))
    expect(await provider.get(session, 'a', limits())).toEqual(failed('lost'))
    const file = { path: 'a', mediaType: 'text/plain', bytes: 1, content: Readable.from([Buffer.from('a')]) }
    expect(await provider.put(session, file, limits())).toEqual(failed('lost'))
  })

  test.each([
    [404, failed('lost')],
    [429, failed('busy')],
    [503, failed('busy')],
    [401, failed('refused')],
    [500, failed('refused')],
  ])('status %i of the interpreter is never a success', async (status, expected) => {
    let isBad = false
    const { provider, lease } = await openHosted({
      fault: ({ operation }) => (isBad && operation === 'POST /execute' ? { status } : undefined),
    })
    const session = await lease()
    isBad = true
    expect(await run(provider, session, python('1'))).toEqual(expected)
  })

  test.each([
    ['nothing', ''],
    ['blank lines', '\n\n'],
    ['no JSON', '<html>busy</html>\n'],
    ['JSON of another kind', '[1, 2]\n'],
    ['half a line', '{"type":"stdout","te'],
    ['a kind that is known with members that are not', line({ type: 'error', name: { deep: 1 } }).slice(0, -3)],
  ])('an answer of %s is no success', async (_what, body) => {
    const { provider, lease } = await openHosted({
      fault: ({ operation }) =>
        operation === 'POST /execute' ? { status: 200, chunks: [Buffer.from(body)] } : undefined,
    })
    expect(await run(provider, await lease(), python('1'))).toEqual(failed('refused'))
  })

  test('kinds of messages that are not known are passed over, and streams that are no text are made it', async () => {
    const body = line({ type: 'keepalive', at: 1 }) + line({ type: 'stdout', text: 7 }) + ended
    const { provider, lease } = await openHosted({
      fault: ({ operation }) =>
        operation === 'POST /execute' ? { status: 200, chunks: [Buffer.from(body)] } : undefined,
    })
    expect(await run(provider, await lease(), python('1'))).toMatchObject({ status: 'ok', stdout: '7', returnCode: 0 })
  })

  test('a connection that breaks off is unreachable while the sandbox is there, and lost when it is not', async () => {
    let isGone = false
    const { provider, lease, vendor } = await openHosted({
      fault: ({ operation }) => {
        if (operation === 'POST /execute')
          return { status: 200, chunks: [Buffer.from(line({ type: 'stdout', text: 'half' }))], breaksOff: true }
        return isGone && operation === 'GET /health' ? { status: 502 } : undefined
      },
    })
    const session = await lease()
    expect(await run(provider, session, python('1'))).toEqual(failed('unreachable'))
    // the code may still run
    await expect.poll(() => vendor.requests.some(({ operation }) => operation.endsWith('/restart'))).toBe(true)
    isGone = true
    expect(await run(provider, session, python('1'))).toEqual(failed('lost'))
  })

  test('slow headers are waited for no longer than granted; the interpreter is restarted and what is lost is said', async () => {
    let isSlow = false
    const { provider, lease, vendor } = await openHosted({
      fault: ({ operation }) => (isSlow && operation === 'POST /execute' ? { delayMs: 20_000 } : undefined),
    })
    const session = await lease()
    await run(provider, session, python('x = 1; open("kept.txt", "w").write("kept")'))
    isSlow = true
    const late = await run(provider, session, python('print(x)', 1))
    expect(late).toMatchObject({ status: 'ok', returnCode: 124, limit: 'time' })
    expect(late).toHaveProperty('stderr', 'timed out after 1 s: variables and imports are lost, files are kept\n')
    expect(vendor.requests.at(-1)?.operation).toBe('POST /contexts/:id/restart')
    isSlow = false
    expect(await run(provider, session, python('print(x)'))).toMatchObject({
      returnCode: 1,
      stderr: expect.stringContaining('NameError'),
    })
    expect(await run(provider, session, python('print(open("kept.txt").read())'))).toMatchObject({ stdout: 'kept\n' })
  })

  test('where the interpreter cannot be restarted the sandbox is killed, and so lost', async () => {
    let isStuck = false
    const { provider, lease, vendor } = await openHosted({
      fault: ({ operation }) => (isStuck && operation.endsWith('/restart') ? { status: 500 } : undefined),
    })
    const session = await lease()
    isStuck = true
    expect(await run(provider, session, python('print("said"); import time; time.sleep(30)', 1))).toEqual(
      failed('lost'),
    )
    expect(vendor.sandboxes.size).toBe(0)
  })

  test('contexts are made and restarted without the access token, with that of traffic where there is one', async () => {
    for (const trafficTokens of [true, false]) {
      const { provider, lease, vendor } = await openHosted({ trafficTokens })
      const session = await lease()
      if (trafficTokens) await run(provider, session, python('import time; time.sleep(30)', 1))
      const asked = vendor.requests.filter(({ operation }) => operation.includes('/contexts'))
      expect(asked).toHaveLength(trafficTokens ? 2 : 1)
      for (const { headers } of asked) {
        expect(headers).not.toHaveProperty('x-access-token')
        expect('e2b-traffic-access-token' in headers).toBe(trafficTokens)
      }
    }
  })
})

describe('leases of hosted sandboxes', () => {
  test('CFG-01 addresses follow from the domain; a deployment of one’s own may say others', () => {
    expect(apiUrl(e2bDefaults)).toBe('https://api.e2b.app')
    expect(sandboxUrl(e2bDefaults, 'i1', 49_999)).toBe('https://49999-i1.e2b.app')
    expect(sandboxUrl(e2bDefaults, 'i1', 49_983, 'eu.e2b.app')).toBe('https://49983-i1.eu.e2b.app')
    const own = { ...e2bDefaults, domain: 'sandbox.internal', apiUrl: 'http://api.internal:3000/' }
    expect(apiUrl(own)).toBe('http://api.internal:3000')
    expect(sandboxUrl(own, 'i1', 49_999)).toBe('https://49999-i1.sandbox.internal')
    expect(sandboxUrl({ ...own, sandboxUrl: 'http://one.internal/' }, 'i1', 49_999)).toBe('http://one.internal')
  })

  test('CP-24 an abandoned one ends by the end that was asked for', async () => {
    const { lease, vendor } = await openHosted()
    await lease({ maxLifetimeSeconds: 300 })
    await lease({ maxLifetimeSeconds: 86_400 })
    const asked = vendor.requests.filter(({ operation }) => operation === 'POST /v2/sandboxes')
    expect(asked.map(({ body }) => JSON.parse(body))).toMatchObject([
      { timeout: 300, allow_internet_access: false, templateID: 'code-interpreter-v1' },
      { timeout: 3_600 },
    ])
  })

  test('CP-05 an image is no part of what is asked for', async () => {
    const { provider, lease, vendor } = await openHosted()
    expect(provider.capabilities.images).toBe(false)
    await lease({ image: 'python-3.12' })
    expect(JSON.stringify(vendor.requests)).not.toContain('python-3.12')
  })

  test('CP-12 CP-25 the idle clock begins again with each use, runs longer while code does, and never past the end', async () => {
    const { provider, lease, vendor } = await openHosted()
    const session = await lease({ idleTimeoutSeconds: 2_000, maxLifetimeSeconds: 3_600 })
    const [sandbox] = vendor.sandboxes.values()
    if (!sandbox) throw new Error('there is no sandbox')
    expect(sandbox.timeouts).toEqual([2_000])
    await run(provider, session, python('1', 60))
    expect(sandbox.timeouts).toEqual([2_000, 2_160, 2_100])
    // right as it is: a listing within the slack sets nothing
    await provider.list(session, '.', limits())
    expect(sandbox.timeouts).toHaveLength(3)
    const last = await lease({ idleTimeoutSeconds: 2_000, maxLifetimeSeconds: 2_100 })
    const other = [...vendor.sandboxes.values()].at(-1)
    await run(provider, last, python('1', 60))
    expect(Math.max(...(other?.timeouts ?? []))).toBeLessThanOrEqual(2_100)
  })

  test('another replica goes on with the session, its variables and its files', async () => {
    const first = await openHosted()
    const session = await first.lease({ idleTimeoutSeconds: 100 })
    await run(first.provider, session, python('x = 5'))
    const second = await first.another()
    expect(await run(second, session, python('print(x)'))).toMatchObject({ stdout: '5\n' })
    expect(first.vendor.requests.some(({ operation }) => operation === 'POST /v2/sandboxes/:id/connect')).toBe(true)
    expect(await second.destroy(session, limits())).toEqual({ status: 'ok' })
    expect(first.vendor.sandboxes.size).toBe(0)
  })

  test('a sandbox that cannot be prepared is given up, not leaked', async () => {
    const { provider, vendor } = await openHosted({
      fault: ({ operation }) => (operation === 'POST /contexts' ? { status: 500 } : undefined),
    })
    expect(await provider.create({}, limits())).toEqual(failed('refused'))
    await expect.poll(() => vendor.sandboxes.size).toBe(0)
  })

  test('A-30 a new key holds for new sandboxes; those of the old one are used and released with it', async () => {
    const { provider, lease, vendor, key } = await openHosted({ apiKeys: [KEY, 'e2b_next_key'] })
    const old = await lease()
    key.current = 'e2b_next_key'
    const next = await lease()
    await provider.destroy(old, limits())
    await provider.destroy(next, limits())
    const shown = vendor.requests.flatMap(({ operation, headers }) =>
      /sandboxes/.test(operation) ? [`${operation} ${headers['x-api-key']}`] : [],
    )
    expect(shown).toEqual([
      `POST /v2/sandboxes ${KEY}`,
      'POST /v2/sandboxes e2b_next_key',
      `DELETE /sandboxes/:id ${KEY}`,
      'DELETE /sandboxes/:id e2b_next_key',
    ])
  })

  test('CFG-53 without a key nothing is sent, and a refused key is never shown', async () => {
    const { provider, vendor, key, logged } = await openHosted()
    key.current = undefined
    await expect(provider.create({}, limits())).rejects.toThrow('E2B_API_KEY')
    expect(vendor.requests).toEqual([])
    key.current = 'e2b_wrong_canary'
    const answered = await provider.create({}, limits())
    expect(answered).toEqual(failed('refused'))
    expect(logged.join()).not.toContain('canary')
  })
})

describe('what code leaves behind', () => {
  test('CP-10 the last expression is shown as a prompt would, and a figure becomes a file', async () => {
    const { provider, lease } = await openHosted()
    const session = await lease()
    const png = Buffer.from('a picture').toString('base64')
    expect(await run(provider, session, python('print("x"); 6 * 7'))).toMatchObject({ stdout: 'x\n42\n', files: [] })
    const shown = await run(provider, session, python(`show_png('${png}'); show_png('${png}')`))
    expect(shown).toMatchObject({ stdout: '', files: ['figure-1.png', 'figure-2.png'] })
    const got = await provider.get(session, 'figure-2.png', limits())
    expect(got.status === 'ok' && Buffer.concat(await got.content.toArray()).toString()).toBe('a picture')
    expect(await run(provider, session, python(`show_png('${png}')`))).toMatchObject({ files: ['figure-3.png'] })
  })

  test('a program that prints without end is kept to its first part', async () => {
    const { provider, lease } = await openHosted()
    const result = await run(provider, await lease(), python('for _ in range(40): print("x" * 100_000)'))
    expect(result).toMatchObject({ status: 'ok', returnCode: 0 })
    expect(result.status === 'ok' && result.stdout.length).toBe(1024 * 1024)
  })

  test('a command that prints without end is ended, and says so', async () => {
    const { provider, lease } = await openHosted()
    const flood = await run(provider, await lease(), shell('yes', 60))
    expect(flood).toMatchObject({
      status: 'ok',
      returnCode: 137,
      stderr: 'more than 4 MiB printed: the command was ended\n',
    })
  })

  test('X-31 a command that runs too long is ended with its children; variables are kept', async () => {
    const { provider, lease } = await openHosted()
    const session = await lease()
    await run(provider, session, python('x = 3'))
    const late = await run(provider, session, shell("sleep 30 & echo $! > child; echo it\\'s; wait", 1))
    expect(late).toMatchObject({
      stdout: "it's\n",
      returnCode: 124,
      limit: 'time',
      stderr: 'timed out after 1 s: variables and files are kept\n',
    })
    // gone, or dead and not yet fetched by whoever became its parent
    const isAlive = shell('grep -qs "^State:.[RSD]" /proc/$(cat child)/status')
    await expect.poll(() => run(provider, session, isAlive)).not.toMatchObject({ returnCode: 0 })
    expect(await run(provider, session, python('print(x)'))).toMatchObject({ stdout: '3\n' })
  })
})

describe('what stays inside', () => {
  afterEach(() => vi.unstubAllEnvs())

  test('CP-28 without the optional package the start ends, and names it', async () => {
    vi.doMock('e2b', () => {
      throw new Error('Cannot find package')
    })
    onTestFinished(() => void vi.doUnmock('e2b'))
    await expect(openHosted()).rejects.toThrow('needs the package `e2b`')
  })

  test("A-34 neither the key nor a token is in a log, and the vendor's own variables change nothing", async () => {
    // with this one the vendor's client creates and kills nothing, and says that it did
    vi.stubEnv('E2B_DEBUG', 'true')
    vi.stubEnv('E2B_API_URL', 'http://127.0.0.1:1')
    vi.stubEnv('E2B_SANDBOX_URL', 'http://127.0.0.1:1')
    const { provider, lease, vendor, logged } = await openHosted()
    const session = await lease()
    const [sandbox] = vendor.sandboxes.values()
    expect(await run(provider, session, shell('echo 1'))).toMatchObject({ stdout: '1\n' })
    expect(await run(provider, session, python('print(2)'))).toMatchObject({ stdout: '2\n' })
    expect(await provider.destroy(session, limits())).toEqual({ status: 'ok' })
    expect(vendor.sandboxes.size).toBe(0)
    expect(session).not.toContain(sandbox?.accessToken)
    for (const secret of [KEY, sandbox?.accessToken, sandbox?.trafficToken]) expect(logged.join()).not.toContain(secret)
  })
})
