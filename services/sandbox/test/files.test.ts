import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { connect } from 'node:net'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Backend, openBackend, printed, type SessionClient } from './harness.ts'
import { hasNamespaces } from './here.ts'

const here = await hasNamespaces()

const MIB = 1024 * 1024
let backend: Backend
let session: SessionClient
beforeAll(async () => {
  backend = await openBackend({
    limits: {
      ...(await import('../src/index.ts')).defaultSandboxSettings.limits,
      transferBytes: 4 * MIB,
      workspaceBytes: 8 * MIB,
    },
  })
  session = await backend.open()
})
afterAll(() => backend.close())

describe('what is put is there', () => {
  test.each([0, 1, 65_536, 3 * MIB + 7])('CP-20 CP-19 %i bytes go in and come out', async (size) => {
    const bytes = new Uint8Array(randomBytes(size))
    const put = await session.put('in/data.bin', bytes)
    expect([put.status, put.body]).toEqual([201, { path: 'in/data.bin', size_bytes: size }])
    const got = await session.get('in/data.bin')
    expect(got.status).toBe(200)
    expect(got.bytes.equals(bytes)).toBe(true)
    expect(printed(await session.python('import os; os.path.getsize("in/data.bin")'))).toBe(`${size}\n`)
  })

  test('CP-20 the name of the upload is the path when none is given', async () => {
    expect((await session.put(undefined, 'x', 'note.txt')).body).toEqual({ path: 'note.txt', size_bytes: 1 })
    expect((await session.get('note.txt')).headers.get('content-type')).toBe('text/plain')
  })

  test('CP-20 the path may follow the file, and other parts are passed over', async () => {
    const body = [
      '--b\r\ncontent-disposition: form-data; name="other"\r\n\r\nx\r\n',
      '--b\r\ncontent-disposition: form-data; name="file"; filename="n"\r\ncontent-type: text/plain\r\n\r\nbody\r\n',
      '--b\r\ncontent-disposition: form-data; name="path"\r\n\r\nlate.txt\r\n--b--\r\n',
    ].join('')
    const headers = { 'content-type': 'multipart/form-data; boundary=b' }
    const { status, body: written } = await backend.send('POST', `/sessions/${session.id}/files`, { body, headers })
    expect([status, written]).toEqual([201, { path: 'late.txt', size_bytes: 4 }])
  })

  test('CP-20 what was there is replaced in one step, its mode kept', async () => {
    await session.shell('echo old > run.sh; chmod 750 run.sh')
    await session.put('run.sh', 'new')
    expect(printed(await session.shell('cat run.sh; stat -c %a run.sh'))).toBe('new750\n')
  })

  test('CP-18 a listing tells path, size and time of the plain files of one folder', async () => {
    const own = await backend.open()
    await own.shell('mkdir -p d/e; echo 12345 > d/a.csv; echo > d/e/b; ln -s /etc/passwd d/link; mkfifo d/pipe')
    const before = Date.now() / 1_000
    expect((await own.list('d')).body).toEqual({
      files: [{ path: 'd/a.csv', size_bytes: 6, modified_at: expect.any(Number), mime_type: 'text/csv' }],
    })
    expect(Math.abs(((await own.list('d')).body.files[0]?.modified_at ?? 0) - before)).toBeLessThan(30)
    expect((await own.list('d/a.csv')).body.files).toHaveLength(1)
    expect((await backend.send('GET', `/sessions/${own.id}/files/list`)).body).toEqual({ files: [] })
    await own.end()
  })

  test('G7 a listing tells nothing of what a link points at', async () => {
    const own = await backend.open()
    printed(
      await own.python(
        'import os\nos.symlink("/etc/passwd", "link")\nos.symlink("/etc", "folder")\nopen("a", "w").close()',
      ),
    )
    expect((await own.list()).body.files.map(({ path }) => path)).toEqual(['a'])
    expect((await own.list('link')).status).toBe(403)
    expect((await own.list('folder')).status).toBe(403)
    const viewed = await own.edit({ command: 'view', path: '.' })
    expect(viewed.stdout).not.toMatch(/passwd|root:/)
    await own.end()
  })

  test('a file is read while a program runs', async () => {
    await session.put('still.txt', 'here')
    const running = session.python('import time; time.sleep(2)')
    const began = performance.now()
    expect((await session.get('still.txt')).bytes.toString()).toBe('here')
    expect(performance.now() - began).toBeLessThan(1_500)
    await running
  })
})

describe('what cannot be', () => {
  const outside = [
    '../../etc/passwd',
    '/etc/passwd',
    '..',
    'a/../../x',
    '/workspacex/y',
    'd/../../../proc/self/environ',
    '/proc/self/environ',
    '/dev/zero',
  ]
  test.each(outside)('CP-18 CP-19 CP-20 G1 BR-120 %j is outside and refused', async (path) => {
    expect((await session.get(path)).status).toBe(403)
    expect((await session.list(path)).status).toBe(403)
    expect((await session.put(path, 'x')).status).toBe(403)
  })

  test.each(['%2e%2e/x', '..\\..\\etc\\passwd', 'C:\\x', '~/.ssh/id_rsa', 'missing', 'missing/deeper'])(
    'G1 %j is only a name, of nothing',
    async (path) => {
      expect((await session.get(path)).status).toBe(404)
      expect((await session.list(path)).status).toBe(404)
    },
  )

  test.each(['a\0b', 'x'.repeat(5_000), '', '.', '%', '\ud800', 'x'.repeat(300), `${'d/'.repeat(1_500)}x`])(
    'G2 the path %j is refused, never a failure of ours',
    async (path) => {
      const encoded = path === '\ud800' ? '%ED%A0%80' : path === '%' ? '%' : encodeURIComponent(path)
      for (const route of ['files?path=', 'files/list?path=']) {
        const { status } = await fetch(`${backend.url}/sessions/${session.id}/${route}${encoded}`)
        expect([200, 400, 403, 404, 422]).toContain(status)
        if (route === 'files?path=') expect(status).not.toBe(200)
      }
      if (path !== '') expect([201, 400, 403, 404, 422]).toContain((await session.put(path, 'x')).status)
    },
  )

  test('CP-19 G6 a folder, a pipe, a device and a link that leaves are refused at once', async () => {
    const own = await backend.open()
    await own.shell(
      'mkdir d; mkfifo pipe; ln -s /etc/passwd out; ln -s /dev/zero zero; ln -s missing dangling; ln -s ok.txt in; echo ok > ok.txt; ln -s / root',
    )
    const began = performance.now()
    expect((await own.get('d')).status).toBe(400)
    expect((await own.get('pipe')).status).toBe(400)
    for (const path of ['out', 'zero', 'root/etc/passwd']) expect((await own.get(path)).status).toBe(403)
    expect((await own.get('dangling')).status).toBe(404)
    expect((await own.get('in')).bytes.toString()).toBe('ok\n')
    expect((await own.put('d', 'x')).status).toBe(422)
    expect((await own.put('root/tmp/evil', 'x')).status).toBe(403)
    expect((await own.put('ok.txt/x', 'x')).status).toBeGreaterThanOrEqual(400)
    // a link is replaced, not written through
    expect((await own.put('dangling', 'x')).status).toBe(201)
    expect(printed(await own.shell('test -e missing || echo untouched; test -L dangling || echo plain'))).toBe(
      'untouched\nplain\n',
    )
    expect(performance.now() - began).toBeLessThan(10_000)
    await own.end()
  })

  test('CP-20 G9 a file over the cap is a 413 and leaves nothing', async () => {
    const own = await backend.open()
    expect((await own.put('big.bin', new Uint8Array(4 * MIB + 1))).status).toBe(413)
    expect((await own.put('fits.bin', new Uint8Array(4 * MIB))).status).toBe(201)
    expect(printed(await own.shell('ls -A'))).toBe('fits.bin\n')
    await own.end()
  })

  test.skipIf(!here)('G14 into a full workspace nothing is put by halves', async () => {
    const own = await backend.open()
    await own.shell('head -c 6000000 /dev/zero > filler')
    expect((await own.put('big.bin', new Uint8Array(4 * MIB))).status).toBe(413)
    expect(printed(await own.shell('ls -A'))).toBe('filler\n')
    await own.end()
  })

  test('C4 a sparse file over the cap is not sent', async () => {
    await session.shell('truncate -s 100M sparse')
    expect((await session.get('sparse')).status).toBe(413)
    await session.shell('rm sparse')
  })

  test.each([
    ['no part named file', '--b\r\ncontent-disposition: form-data; name="path"\r\n\r\nx\r\n--b--\r\n', 'boundary=b'],
    [
      'a file part that is only a field',
      '--b\r\ncontent-disposition: form-data; name="file"\r\n\r\nx\r\n--b--\r\n',
      'boundary=b',
    ],
    [
      'another boundary',
      '--c\r\ncontent-disposition: form-data; name="file"; filename="a"\r\n\r\nx\r\n--c--\r\n',
      'boundary=b',
    ],
    ['no boundary', 'x', ''],
    ['no end', '--b\r\ncontent-disposition: form-data; name="file"; filename="a"\r\n\r\nx', 'boundary=b'],
    ['nothing', '', 'boundary=b'],
  ])('G9 an upload with %s is a 422 and leaves nothing', async (_what, body, parameter) => {
    const own = await backend.open()
    const headers = { 'content-type': `multipart/form-data; ${parameter}` }
    const { status } = await backend.send('POST', `/sessions/${own.id}/files`, { body, headers })
    expect(status).toBe(422)
    expect(printed(await own.shell('ls -A'))).toBe('')
    await own.end()
  })

  test('G9 an upload of another kind is a 422, ten thousand parts end early', async () => {
    const path = `/sessions/${session.id}/files`
    expect((await backend.send('POST', path, { json: { file: 'x' } })).status).toBe(422)
    const part = '--b\r\ncontent-disposition: form-data; name="x"\r\n\r\ny\r\n'
    const headers = { 'content-type': 'multipart/form-data; boundary=b' }
    expect((await backend.send('POST', path, { body: `${part.repeat(10_000)}--b--\r\n`, headers })).status).toBe(422)
  })

  test('G2 a name as long as a form allows is a 422, and the session goes on', async () => {
    for (const name of ['a'.repeat(4_097), 'é'.repeat(39_000), 'a'.repeat(79_000)]) {
      const form = new FormData()
      form.append('file', new Blob(['x']), name)
      const { status } = await backend.send('POST', `/sessions/${session.id}/files`, { body: form })
      expect(status).toBe(422)
      expect(printed(await session.shell('printf here'))).toBe('here')
    }
  })

  test('A11 BR-128 an upload whose session is released meanwhile is a 404, and its connection goes on', async () => {
    const own = await backend.open()
    const { hostname, port } = new URL(backend.url)
    const socket = connect(Number(port), hostname)
    await once(socket, 'connect')
    let heard = ''
    socket.on('data', (piece) => {
      heard += piece
    })
    const head = '--b\r\ncontent-disposition: form-data; name="file"; filename="a"\r\n\r\n'
    const tail = '\r\n--b--\r\n'
    const bytes = head.length + 9 * MIB + tail.length
    socket.write(
      `POST /sessions/${own.id}/files HTTP/1.1\r\nhost: x\r\ncontent-type: multipart/form-data; boundary=b\r\ncontent-length: ${bytes}\r\n\r\n${head}`,
    )
    socket.write(Buffer.alloc(MIB))
    await expect.poll(async () => printed(await own.shell('ls -A'))).toMatch(/^\.upload-/)
    await own.end()
    socket.write(Buffer.alloc(8 * MIB))
    socket.write(`${tail}GET /health HTTP/1.1\r\nhost: x\r\n\r\n`)
    await expect
      .poll(() => [...heard.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => status), { timeout: 20_000 })
      .toEqual(['404', '200'])
    socket.destroy()
  })

  test('an upload that breaks off leaves nothing', async () => {
    const own = await backend.open()
    const { hostname, port } = new URL(backend.url)
    const socket = connect(Number(port), hostname)
    await once(socket, 'connect')
    const part = '--b\r\ncontent-disposition: form-data; name="file"; filename="a"\r\n\r\n'
    socket.write(
      `POST /sessions/${own.id}/files HTTP/1.1\r\nhost: x\r\ncontent-type: multipart/form-data; boundary=b\r\ncontent-length: 9999999\r\n\r\n${part}${'x'.repeat(MIB)}`,
    )
    await expect.poll(async () => printed(await own.shell('ls -A'))).toMatch(/^\.upload-/)
    socket.destroy()
    await expect.poll(async () => printed(await own.shell('ls -A'))).toBe('')
    await own.end()
  })

  test('a file that changes while it is sent ends the answer instead of mixing two', async () => {
    const own = await backend.open()
    await own.shell('head -c 4000000 /dev/zero > moving')
    const response = await fetch(`${backend.url}/sessions/${own.id}/files?path=moving`)
    const reader = response.body?.getReader()
    await reader?.read()
    await own.shell('head -c 4000000 /dev/urandom > moving')
    const rest = async () => {
      for (;;) if ((await reader?.read())?.done) return 'whole'
    }
    // either it was all on its way before the change, or the answer breaks off
    expect(['whole', 'broken']).toContain(await rest().catch(() => 'broken'))
    await own.end()
  })
})
