import { once } from 'node:events'
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { triedIn } from './attempt.ts'
import { type Backend, openBackend, printed, type SessionClient } from './harness.ts'
import { hasNamespaces } from './here.ts'
import { descendantsOf } from './host.ts'
import { type Neighbour, openNeighbour } from './neighbour.ts'

const here = await hasNamespaces()

let backend: Backend
let neighbour: Neighbour
let own: SessionClient
const token = 'server-token-3f9a'
process.env.SANDBOX_TEST_SECRET = token

beforeAll(async () => {
  backend = await openBackend()
  neighbour = await openNeighbour(backend)
  own = await backend.open()
})
afterAll(() => backend.close())

const tried = (code: string) => triedIn(own, code)

describe.skipIf(!here)('other sessions and the server', () => {
  test('D7 BR-133 the environment is the documented one, and holds nothing of the server', async () => {
    const names = JSON.parse(printed(await own.python('import json, os; print(json.dumps(sorted(os.environ)))')))
    const documented =
      'HOME LANG MALLOC_ARENA_MAX MKL_NUM_THREADS MPLBACKEND MPLCONFIGDIR OMP_NUM_THREADS OPENBLAS_NUM_THREADS PATH PYTHONDONTWRITEBYTECODE PYTHONUNBUFFERED TMPDIR USER'
    expect(names).toEqual(documented.split(' '))
    const shell = printed(await own.shell('env; cat /proc/self/environ /proc/1/environ /proc/2/environ 2>&1; true'))
    expect(shell).not.toContain(token)
  })

  test('D1 D4 D6 BR-130 BR-133 no process outside is visible, and process 1 keeps its memory to itself', async () => {
    const pids = JSON.parse(
      printed(
        await own.python('import json, os; print(json.dumps([int(n) for n in os.listdir("/proc") if n.isdigit()]))'),
      ),
    )
    expect(pids.length).toBeLessThanOrEqual(3)
    for (const pid of [process.pid, ...descendantsOf(process.pid)].filter((pid) => !pids.includes(pid)))
      expect(await tried(`open("/proc/${pid}/environ").read()`)).toMatch(/ENOENT|EACCES|ESRCH/)
    for (const name of ['environ', 'maps', 'mem', 'fd', 'root', 'cwd', 'map_files']) {
      const how = ['fd', 'map_files'].includes(name)
        ? 'os.listdir'
        : ['root', 'cwd'].includes(name)
          ? 'os.readlink'
          : 'open'
      expect(await tried(`${how}("/proc/1/${name}")`)).toMatch(/EACCES|EPERM|ENOENT/)
    }
  })

  test('D16 BR-130 what one session does to its interpreter, the next does not see', async () => {
    const poison = await backend.open()
    await poison.python(
      'import builtins, json, sys\nbuiltins.len = lambda _: 13\njson.loads = None\nsys.modules["csv"] = None\nmine = 1',
    )
    for (let fresh = 0; fresh < 4; fresh += 1) {
      const next = await backend.open()
      const code = 'import json, csv; print(len("abc"), json.loads("[1]"), "mine" in dir())'
      expect(printed(await next.python(code))).toBe('3 [1] False\n')
      await next.end()
    }
    await poison.end()
  })

  test('D17 no two sessions share their random numbers', async () => {
    const code =
      'import random, uuid, secrets, ssl\nprint(random.random(), uuid.uuid4(), secrets.token_hex(8), ssl.RAND_bytes(8).hex(), random.SystemRandom().random())'
    const sessions = await Promise.all([1, 2, 3].map(() => backend.open()))
    const outputs = await Promise.all(sessions.map(async (session) => printed(await session.python(code))))
    const values = outputs.flatMap((line) => line.trim().split(' '))
    expect(new Set(values).size).toBe(values.length)
    await Promise.all(sessions.map((session) => session.end()))
  })

  test('BR-130 sessions in sequence and at once see nothing of each other', async () => {
    const code = (mark: string) => `
import os
print("seen" in dir(), os.listdir("/workspace"), os.path.exists("/tmp/x"), os.path.exists("/dev/shm/x"))
seen = "${mark}"
for path in ("/tmp/x", "/dev/shm/x", "x"): open(path, "w").write(seen)`
    for (let round = 0; round < 5; round += 1) {
      const some = await Promise.all([1, 2, 3, 4].map(() => backend.open()))
      const outputs = await Promise.all(
        some.map(async (session, index) => printed(await session.python(code(`${round}-${index}`)))),
      )
      expect(new Set(outputs)).toEqual(new Set(['False [] False False\n']))
      const kept = await Promise.all(
        some.map(async (session) => printed(await session.python('print(seen, open("/tmp/x").read())'))),
      )
      expect(kept).toEqual(some.map((_, index) => `${round}-${index} ${round}-${index}\n`))
      await Promise.all(some.map((session) => session.end()))
    }
  })

  test('D9 D10 killing and stopping everyone reaches only oneself', { timeout: 30_000 }, async () => {
    const wild = await backend.open()
    await neighbour.during(wild.shell('kill -STOP 1; kill -9 1; kill -STOP -1; kill -9 -1; echo never', 5))
    const after = await wild.exec({ tool: 'code_execution', input: { code: 'print(1)' }, timeout_seconds: 5 })
    expect([200, 404]).toContain(after.status)
    await neighbour.during(
      wild.exec({
        tool: 'code_execution',
        input: { code: 'import os, signal\nos.kill(os.getppid(), signal.SIGSTOP)\nos.kill(-1, signal.SIGKILL)' },
        timeout_seconds: 5,
      }),
    )
    await wild.end()
  })

  test('D12 D14 nothing is shared between sessions: abstract sockets, queues, shared memory, keys', async () => {
    await neighbour.session.python(
      'import socket\nserver = socket.socket(socket.AF_UNIX)\nserver.bind("\\0tollgate-test")\nserver.listen()',
    )
    await neighbour.session.python('open("/dev/shm/tollgate-test", "w").write("x")')
    expect(await tried('socket.socket(socket.AF_UNIX).connect("\\0tollgate-test")')).toBe('ECONNREFUSED')
    expect(await tried('open("/dev/shm/tollgate-test")')).toBe('ENOENT')
    expect(await tried('syscall(29, 4711, 4096, 0o1666)')).toBe('EPERM') // shmget
    expect(await tried('syscall(240, b"q", 0o102, 0o666, None)')).toBe('EPERM') // mq_open
    expect(await tried('syscall(250, 0, -3, 0)')).toBe('EPERM') // keyctl
  })

  test('D15 neither the interpreter, its library nor the server can be changed', async () => {
    for (const path of ['/usr/bin/python3', '/usr/lib/x', '/etc/passwd', '/bin/x', '/x', '/run/x', '/mnt/x', '/dev/x'])
      expect(await tried(`open("${path}", "w")`)).toMatch(/EROFS|EACCES|EPERM|ETXTBSY/)
    expect(await tried('open(os.__file__, "a")')).toMatch(/EROFS|EACCES/)
    expect(await tried('open(sys.executable, "ab")')).toMatch(/EROFS|EACCES|ETXTBSY/)
    expect(await tried(`open("${join(import.meta.dirname, '../src/index.ts')}")`)).toBe('ENOENT')
  })

  test('D22 a number that is used again gives no access to what was there before', async () => {
    const first = await backend.open()
    await first.shell('echo old > /workspace/old; echo old > /tmp/old')
    const user = printed(await first.shell('id -u'))
    await first.end()
    for (let next = 0; next < 6; next += 1) {
      const later = await backend.open()
      expect(printed(await later.shell('ls -A /workspace /tmp | grep old || true'))).toBe('')
      expect(printed(await later.shell('id -u'))).toMatch(/^\d+\n$/)
      await later.end()
    }
    expect(user).not.toBe('0\n')
  })
})

describe.skipIf(!here)('the network', () => {
  test('E1 E6 D21 BR-133 nothing of the host is reached: its ports, its own API, its socket files', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'canary-'))
    let reached = 0
    const count = () => {
      reached += 1
    }
    const tcp = createServer(count).listen(0, '0.0.0.0')
    const unix = createServer(count).listen(join(folder, 's'))
    await Promise.all([once(tcp, 'listening'), once(unix, 'listening')])
    await chmod(folder, 0o755)
    await chmod(join(folder, 's'), 0o777)
    await writeFile(join(folder, 'f'), token)
    const { port } = tcp.address() as AddressInfo
    for (const host of ['127.0.0.1', '0.0.0.0', 'localhost'])
      expect(await tried(`socket.create_connection(("${host}", ${port}), 2)`)).toMatch(/ECONNREFUSED|EAFNOSUPPORT/)
    const api = new URL(backend.url)
    expect(await tried(`socket.create_connection(("${api.hostname}", ${api.port}), 2)`)).toMatch(
      /ECONNREFUSED|EAFNOSUPPORT/,
    )
    expect(await tried(`socket.socket(socket.AF_UNIX).connect("${folder}/s")`)).toMatch(/ENOENT|EACCES/)
    expect(await tried(`open("${folder}/f").read()`)).toMatch(/ENOENT|EACCES/)
    expect(reached).toBe(0)
    tcp.close()
    unix.close()
    await rm(folder, { recursive: true })
  })

  test.each([
    ['a metadata address', '("169.254.169.254", 80)', 'AF_INET'],
    ['a private address', '("10.0.0.1", 80)', 'AF_INET'],
    ['a public address', '("192.0.2.1", 443)', 'AF_INET'],
    ['a metadata address over IPv6', '("fd00:ec2::254", 80)', 'AF_INET6'],
  ])('E5 BR-133 %s cannot even be routed to', async (_what, address, family) => {
    expect(await tried(`socket.socket(socket.${family}).connect(${address})`)).toMatch(
      /ENETUNREACH|EADDRNOTAVAIL|EAFNOSUPPORT/,
    )
    expect(await tried(`socket.socket(socket.${family}, socket.SOCK_DGRAM).sendto(b"x", ${address})`)).toMatch(
      /ENETUNREACH|EADDRNOTAVAIL|EAFNOSUPPORT/,
    )
  })

  test('E4 BR-133 names do not resolve, and raw sockets cannot be had', async () => {
    const { stderr } = await own.python('import socket; socket.getaddrinfo("example.com", 80)')
    expect(stderr).toContain('gaierror')
    expect(await tried('socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)')).toBe('EPERM')
    expect(await tried('socket.socket(socket.AF_INET, socket.SOCK_DGRAM, 1)')).toBe('EPERM')
    expect(await tried('socket.socket(socket.AF_INET6, socket.SOCK_RAW, 58)')).toBe('EPERM')
  })

  test('E2 there are no interfaces but the loopback one', async () => {
    expect(printed(await own.python('import socket; print([name for _, name in socket.if_nameindex()])'))).toBe(
      "['lo']\n",
    )
    expect(printed(await own.shell('tail -n +2 /proc/net/route | wc -l'))).toBe('0\n')
  })

  test('E7 a server and its client inside one session meet', async () => {
    const code = `
import http.server, threading, urllib.request
server = http.server.HTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler)
threading.Thread(target=server.serve_forever, daemon=True).start()
print(urllib.request.urlopen(f"http://127.0.0.1:{server.server_port}/").status)
server.shutdown()`
    expect((await own.python(code)).stdout).toBe('200\n')
  })
})
