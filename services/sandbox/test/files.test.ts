import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { get, type IncomingMessage } from 'node:http'
import { type AddressInfo, connect, createServer, Socket } from 'node:net'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { openChannel } from '../src/drivers/channel.ts'
import { openLine } from '../src/drivers/line.ts'
import { intoReusedMemory, type Kept, keep } from '../src/drivers/reused-memory.ts'
import { openSandbox } from '../src/drivers/sandbox.ts'
import { defaultSandboxSettings } from '../src/index.ts'
import { type Backend, openBackend, printed, type SessionClient } from './harness.ts'
import { hasNamespaces } from './here.ts'
import { residentBytes } from './host.ts'

const here = await hasNamespaces()

const MIB = 1024 * 1024
let backend: Backend
let session: SessionClient
beforeAll(async () => {
  backend = await openBackend({
    limits: {
      ...defaultSandboxSettings.limits,
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

  test('G5 an upload in whose place a program puts a pipe ends, and keeps nobody waiting', async () => {
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
    const bytes = head.length + 5 * MIB + tail.length
    socket.write(
      `POST /sessions/${own.id}/files HTTP/1.1\r\nhost: x\r\ncontent-type: multipart/form-data; boundary=b\r\ncontent-length: ${bytes}\r\n\r\n${head}`,
    )
    socket.write(Buffer.alloc(MIB))
    await expect.poll(async () => printed(await own.shell('ls -A'))).toMatch(/^\.upload-/)
    expect(printed(await own.shell('for f in .upload-*; do rm $f; mkfifo $f; done; ls -A'))).toMatch(/^\.upload-/)
    socket.write(Buffer.alloc(4 * MIB))
    socket.write(tail)
    await expect.poll(() => heard, { timeout: 20_000 }).toMatch(/^HTTP\/1\.1 4\d\d /)
    expect((await own.python('while True: pass', 1)).ended_by).toBe('time')
    socket.destroy()
    await own.end()
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
})

describe('a file that takes its client long', () => {
  const limits = { ...defaultSandboxSettings.limits, transferBytes: 64 * MIB }
  /** More than any socket buffer takes. */
  const SIZE = 48 * MIB

  /** An answer of which nothing is read yet. */
  async function begun(of: Backend, own: SessionClient, path: string): Promise<IncomingMessage> {
    const request = get(`${of.url}/sessions/${own.id}/files?path=${path}`, { agent: false })
    const [response] = (await once(request, 'response')) as [IncomingMessage]
    onTestFinished(() => void response.destroy())
    return response
  }
  async function rest(response: IncomingMessage): Promise<number> {
    let bytes = 0
    for await (const piece of response as AsyncIterable<Buffer>) bytes += piece.length
    return bytes
  }

  describe('of a patient server', () => {
    let patient: Backend
    beforeAll(async () => {
      patient = await openBackend({ limits, warmSessions: 1 })
    })
    afterAll(() => patient.close())

    test('comes whole, and is not held in memory meanwhile', async () => {
      const own = await patient.open()
      await own.shell(`truncate -s ${SIZE} large; printf end >> large`)
      const before = residentBytes()
      const response = await begun(patient, own, 'large')
      // both work in the session while its file waits for room
      expect(printed(await own.python('1 + 1'))).toBe('2\n')
      expect(printed(await own.shell('echo here'))).toBe('here\n')
      expect(residentBytes() - before).toBeLessThan(24 * MIB)
      expect(await rest(response)).toBe(SIZE + 3)
    })

    test.each([
      ['shrinks', 'truncate -s 1M large'],
      ['grows', 'echo more >> large'],
      ['is another', 'rm large; truncate -s 48M large'],
      ['is gone', 'rm large'],
      ['is a pipe now', 'rm large; mkfifo large'],
      ['is written into', 'printf x | dd of=large conv=notrunc status=none'],
    ])('is broken off when it %s meanwhile, and the session goes on', async (_what, change) => {
      const own = await patient.open()
      await own.shell(`truncate -s ${SIZE} large`)
      const response = await begun(patient, own, 'large')
      printed(await own.shell(change))
      await expect(rest(response)).rejects.toThrow('aborted')
      expect(printed(await own.shell('echo here'))).toBe('here\n')
    })

    test('never comes with bytes that are not its own, however often it is cut', async () => {
      const own = await patient.open()
      const cutting = own.python(
        'import os\nf = os.open("f", os.O_CREAT | os.O_RDWR)\nwhile not os.path.exists("stop"):\n  os.pwrite(f, b"x" * 900_000, 0)\n  os.ftruncate(f, 0)',
        20,
      )
      for (let fetched = 0; fetched < 40; fetched += 1) {
        const response = await fetch(`${patient.url}/sessions/${own.id}/files?path=f`)
        const bytes = await response.arrayBuffer().catch(() => new ArrayBuffer(0))
        if (response.status === 200) expect(Buffer.from(bytes).every((byte) => byte === 120)).toBe(true)
        else expect([404, 409]).toContain(response.status) // not there yet, or cut before the head was sent
      }
      await own.put('stop', 'x')
      printed(await cutting)
    })
  })

  test('is given up when the client takes nothing, and its session is then idle', async () => {
    const strict = await openBackend({ limits, warmSessions: 0, unreadAnswerSeconds: 0.5 })
    onTestFinished(() => strict.close())
    const own = await strict.open({ idle_timeout_seconds: 1 })
    await own.shell(`truncate -s ${SIZE} large`)
    const response = await begun(strict, own, 'large')
    await expect.poll(async () => (await own.list()).status, { interval: 1_500, timeout: 15_000 }).toBe(404)
    await expect(rest(response)).rejects.toThrow('aborted')
  })
})

/** As a session sends it. */
const message = (header: object, body = '') => {
  const text = JSON.stringify(header)
  const lengths = Buffer.alloc(8)
  lengths.writeUInt32BE(text.length, 0)
  lengths.writeUInt32BE(body.length, 4)
  return Buffer.concat([lengths, Buffer.from(text + body)])
}

describe('memory that is used again', () => {
  test('BR-120 what sessions send at the same time never mixes, however slowly it is taken', async () => {
    const sessions = await Promise.all(
      ['a', 'b', 'c', 'd'].map(async (letter) => {
        const own = await backend.open()
        const names = `import os\nos.mkdir("d")\nfor i in range(600): open(f"d/{'${letter}' * 150}-{i:03}", "w").close()`
        printed(await own.python(`${names}\nopen("f", "w").write("${letter}" * ${3 * MIB})`))
        return { letter, own }
      }),
    )
    const all = sessions.map(async ({ letter, own }) => {
      const whole = Buffer.alloc(3 * MIB, letter)
      for (let round = 0; round < 3; round += 1) {
        const request = get(`${backend.url}/sessions/${own.id}/files?path=f`, { agent: false })
        const [slow] = (await once(request, 'response')) as [IncomingMessage]
        const [fetched, listed, said] = await Promise.all([
          own.get('f'),
          own.list('d'),
          own.python(`print("${letter}" * 300_000)`),
        ])
        expect(fetched.bytes.equals(whole)).toBe(true)
        expect(printed(said)).toBe(`${letter.repeat(300_000)}\n`)
        expect(listed.body.files.map(({ path }) => path.slice(0, 152))).toEqual(
          Array(600).fill(`d/${letter.repeat(150)}`),
        )
        const pieces: Buffer[] = []
        for await (const piece of slow as AsyncIterable<Buffer>) pieces.push(piece)
        expect(Buffer.concat(pieces).equals(whole)).toBe(true)
      }
      await own.end()
    })
    await Promise.all(all)
  })

  /** Connections of a server as sessions' are, and what each hears. */
  async function listening(hear: (bytes: Buffer) => void) {
    const server = createServer({ pauseOnConnect: true }, (accepted) => {
      intoReusedMemory(accepted)
        .on('data', hear)
        .on('error', () => {})
    })
    await once(server.listen(0, '127.0.0.1'), 'listening')
    const { port } = server.address() as AddressInfo
    const send = async (bytes: Buffer) => {
      const socket = connect(port, '127.0.0.1').resume()
      socket.end(bytes)
      await once(socket, 'close')
    }
    return { send, close: () => new Promise((done) => server.close(done)) }
  }
  const memoryOf = (bytes: Buffer[]) => new Set(bytes.map(({ buffer }) => buffer))

  test('what is kept stays until it is released; then others get its memory', async () => {
    const kept: Kept[] = []
    const passed: Buffer[] = []
    let keeps = true
    const peer = await listening((bytes) => void (keeps ? kept.push(keep(bytes)) : passed.push(bytes)))
    await peer.send(Buffer.alloc(3 * MIB, 'kept '))
    keeps = false
    await peer.send(Buffer.alloc(6 * MIB, 'passed'))
    expect(Buffer.concat(kept.map(({ bytes }) => bytes)).equals(Buffer.alloc(3 * MIB, 'kept '))).toBe(true)
    const held = memoryOf(kept.map(({ bytes }) => bytes))
    expect([...memoryOf(passed)].filter((memory) => held.has(memory))).toEqual([])

    for (const { release } of kept) {
      release()
      release() // once more is no more
    }
    passed.length = 0
    await peer.send(Buffer.alloc(3 * MIB))
    expect([...memoryOf(passed)].some((memory) => held.has(memory))).toBe(true)
    // all connections were told of their end, so the server has none left to wait for
    await peer.close()
  })

  /** A session's connection, to which its peer writes bit by bit; between any two, another connection is read from. */
  async function interrupted() {
    const server = createServer({ pauseOnConnect: true }, (accepted) => void come.push(intoReusedMemory(accepted)))
    const come: Socket[] = []
    await once(server.listen(0, '127.0.0.1'), 'listening')
    const peers: Socket[] = []
    for (let at = 0; at < 2; at += 1) {
      peers.push(connect((server.address() as AddressInfo).port, '127.0.0.1'))
      await expect.poll(() => come.length).toBe(at + 1)
    }
    onTestFinished(() => {
      for (const socket of [...come, ...peers]) socket.destroy()
      server.close()
    })
    const arrive = async (at: 0 | 1, bytes: Buffer) => {
      const arrived = once(come[at] as Socket, 'data')
      peers[at]?.write(bytes)
      await arrived
    }
    const write = async (bytes: Buffer) => {
      for (let from = 0; from < bytes.length; from += 7) {
        await arrive(0, bytes.subarray(from, from + 7))
        await arrive(1, Buffer.alloc(64, '#'))
      }
    }
    return { socket: come[0] as Socket, write }
  }

  test('an answer that comes in bits is what was sent, on a line as on a channel', async () => {
    const one = await interrupted()
    const head = Buffer.alloc(32)
    for (const [at, value] of [7, 3, 6, 5].entries()) head.writeUInt32BE(value, 4 * at)
    const called = new Promise((resolve, reject) => {
      openLine(one.socket, 0n, 100).call(7, Buffer.from('code'), resolve, () => reject(new Error('broken')))
    })
    await one.write(Buffer.concat([head, Buffer.from('outputerror')]))
    expect(await called).toMatchObject({
      code: 3,
      stdout: { bytes: Buffer.from('output') },
      stderr: { bytes: Buffer.from('error') },
    })

    const two = await interrupted()
    const around = { shared: { short: 0, making: 0 }, look: () => {} }
    const sandbox = openSandbox(openChannel(two.socket), openLine(new Socket(), 0n, 0), () => {}, around)
    const listed = sandbox.list('d')
    const file = { path: 'd/name', size_bytes: 1, modified_at: 2 }
    await two.write(message({ id: 1, status: 200 }, JSON.stringify([file])))
    expect(await listed).toEqual([file])
    const viewed = sandbox.view('f', 40)
    await two.write(
      message({ id: 2, part: 'file', size: 40, identity: 'a' }, 'forty bytes that come in bits of seven. '),
    )
    await two.write(message({ id: 2, status: 200, whole: true }))
    expect(await viewed).toEqual({ size: 40, data: Buffer.from('forty bytes that come in bits of seven. ') })
  })

  test('a bit that is kept is a copy', async () => {
    const kept: Buffer[] = []
    const passed: Buffer[] = []
    const peer = await listening((bytes) => {
      passed.push(bytes)
      kept.push(keep(bytes).bytes)
    })
    await peer.send(Buffer.from('first'))
    await peer.send(Buffer.from('other'))
    expect(kept.map(String)).toEqual(['first', 'other'])
    expect(passed.map(String)).toEqual(['other', 'other'])
    await peer.close()
  })
})

describe('what a session says that is not what it was asked', () => {
  /** A sandbox whose other end says `said`, whatever it is asked. */
  async function saying(said: (id: number) => Buffer) {
    const listening = createServer((peer) =>
      peer
        .on('error', () => {})
        .once('data', (asked: Buffer) => {
          peer.write(said(JSON.parse(asked.toString('utf8', 8, 8 + asked.readUInt32BE(0))).id))
        }),
    )
    await once(listening.listen(0, '127.0.0.1'), 'listening')
    const socket: Socket = connect((listening.address() as AddressInfo).port, '127.0.0.1')
    onTestFinished(() => {
      socket.destroy()
      listening.close()
    })
    const channel = openChannel(socket)
    return openSandbox(channel, openLine(new Socket(), 0n, 0), () => channel.close(), {
      shared: { short: 0, making: 0 },
      look: () => {},
    })
  }
  const part = (id: number, more: object = {}) => ({ id, part: 'file', size: 4, identity: 'a', ...more })
  const answer = (id: number, more: object = {}) => ({ id, status: 200, whole: true, ...more })

  test('a piece as it should be is heard', async () => {
    const sandbox = await saying((id) => Buffer.concat([message(part(id), 'data'), message(answer(id))]))
    const heard: unknown[] = []
    await sandbox.read('f', 0, 10, { begin: (file) => heard.push(file), data: (bytes) => heard.push(bytes.toString()) })
    expect(heard).toEqual([{ size: 4, identity: 'a' }, 'data'])
  })

  test.each<[string, (id: number) => Buffer]>([
    ['noise', () => Buffer.from('noise'.repeat(100))],
    ['a length of 4 GiB', () => Buffer.alloc(8, 255)],
    ['no object', () => message([])],
    ['more than was asked for', (id) => message(part(id, { size: 50 }), 'x'.repeat(50))],
    ['less than there is', (id) => message(part(id), 'dat')],
    ['more than there is', (id) => message(part(id), 'data!')],
    ['a size that is none', (id) => message(part(id, { size: -1 }), 'data')],
    ['a size beyond numbers', (id) => message(part(id, { size: 1e300 }), 'x'.repeat(10))],
    ['a long identity', (id) => message(part(id, { identity: 'x'.repeat(1_000) }), 'data')],
    ['another kind of part', (id) => message(part(id, { part: 'stdout' }), 'data')],
    ['the same piece twice', (id) => Buffer.concat([message(part(id), 'data'), message(part(id), 'data')])],
    ['an answer and no piece', (id) => message(answer(id))],
  ])('%s ends it, and nothing beyond the piece is heard', async (_what, said) => {
    const sandbox = await saying(said)
    let bytes = 0
    const reading = {
      begin: () => {},
      data: (piece: Buffer) => {
        bytes += piece.length
      },
    }
    await expect(sandbox.read('f', 0, 10, reading)).rejects.toMatchObject({ name: 'SandboxLost' })
    expect(bytes).toBeLessThanOrEqual(4)
    await sandbox.ended
  })

  test('a piece that was not whole is refused, and the session goes on', async () => {
    const sandbox = await saying((id) =>
      Buffer.concat([message(part(id), 'data'), message(answer(id, { whole: false }))]),
    )
    const reading = { begin: () => {}, data: () => {} }
    await expect(sandbox.read('f', 0, 10, reading)).rejects.toMatchObject({ name: 'FileRefused', status: 409 })
  })
})
