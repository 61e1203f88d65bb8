import { readFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Backend, openBackend, printed, type SessionClient } from './harness.ts'
import { hasNamespaces } from './here.ts'
import { openNeighbour } from './neighbour.ts'
import { smallLimits } from './small-limits.ts'

// Most calls never pass by the supervisor: the interpreter has a line to the server of its own. Here is what a program can
// do to it, and what goes on at the moment when the supervisor takes a call over.

const here = await hasNamespaces()

let backend: Backend
beforeAll(async () => {
  backend = await openBackend()
})
afterAll(() => backend.close())

/** The interpreter's own connections and pipes, found as any program could find them. */
const OURS = `
import os, stat
ours = [fd for fd in range(3, 256) if os.path.exists(f"/proc/self/fd/{fd}")]
sockets = [fd for fd in ours if stat.S_ISSOCK(os.fstat(fd).st_mode)]
pipes = [fd for fd in ours if stat.S_ISFIFO(os.fstat(fd).st_mode)]
`

describe('a short call', () => {
  let session: SessionClient
  beforeAll(async () => {
    session = await backend.open()
  })

  test.each([
    ['nothing', 'None', ''],
    ['half a pipe', 'print("x" * 40_000)', `${'x'.repeat(40_000)}\n`],
    ['all that a pipe holds', 'import os; None if os.write(1, b"y" * 65_536) else 1', 'y'.repeat(65_536)],
    ['more than a pipe holds', 'print("z" * 300_000)', `${'z'.repeat(300_000)}\n`],
    ['both streams', 'import sys; print("out"); print("err", file=sys.stderr)', 'out\n'],
    ['a character of four bytes at the end of a pipe', 'print("a" * 65_533 + "😀")', `${'a'.repeat(65_533)}😀\n`],
  ])('gives back all that it writes: %s', async (_what, code, stdout) => {
    expect((await session.python(code)).stdout).toBe(stdout)
  })

  test('BR-124 is cut where a pipe that it made larger holds more than is kept', async () => {
    const { stdout } = await session.python(
      'import fcntl\nfor fd in (1,): fcntl.fcntl(fd, 1031, 1 << 20)\nimport sys\nfor _ in range(40): _ = sys.stdout.write("w" * 50_000)',
    )
    expect(stdout.length).toBeGreaterThan(1_000_000)
    expect(stdout).toMatch(/\[output cut: \d+ more bytes\]$/)
  })

  test('what threads say between calls is not in the next one', async () => {
    const own = await backend.open()
    await own.python(
      'import threading, time\nt = threading.Thread(target=lambda: (time.sleep(0.05), print("between calls")))\nt.start()',
    )
    await new Promise((done) => setTimeout(done, 300))
    expect(printed(await own.python('print("mine")'))).toBe('mine\n')
  })

  test('names the files that it made, changed or left in peace', async () => {
    const own = await backend.open()
    const made = async (code: string) => (await own.python(code)).content.map(({ filename }) => filename)
    expect(await made('print(1)')).toEqual([])
    expect(await made('open("a.txt", "w").write("1")')).toEqual(['a.txt'])
    expect(await made('print(2)')).toEqual([])
    expect(await made('open("a.txt", "a").write("2"); open("b.txt", "w").write("3")')).toEqual(['a.txt', 'b.txt'])
    expect(await made('import os; os.remove("a.txt"); os.remove("b.txt")')).toEqual([])
    expect(await made('print(3)')).toEqual([])
    await own.put('uploaded.txt', 'by the client')
    expect(await made('open("c.txt", "w").write("4")')).toEqual(['c.txt'])
  })

  test('finds a module that the call before it wrote', async () => {
    const own = await backend.open()
    for (const value of [1, 2, 3]) {
      await own.python(`open("module_${value}.py", "w").write("value = ${value}")`)
      expect(printed(await own.python(`import module_${value}\nprint(module_${value}.value)`))).toBe(`${value}\n`)
    }
  })

  test('finds a module in a folder that was looked into before it was there', async () => {
    const own = await backend.open()
    const look =
      'import sys\nsys.path.append("/workspace/later")\ntry: import found_later\nexcept ImportError: print("none")'
    expect(
      printed(
        await own.python(look.replace('/workspace', printed(await own.python('import os; print(os.getcwd())')).trim())),
      ),
    ).toBe('none\n')
    await own.shell('mkdir later && echo "value = 7" > later/found_later.py')
    expect(printed(await own.python('import found_later\nprint(found_later.value)'))).toBe('7\n')
  })

  test('ends where its copy would go on: a child that it forks is asked for no call', async () => {
    const own = await backend.open()
    expect((await own.python('import os\npid = os.fork()\nprint("parent" if pid else "child")')).return_code).toBe(0)
    // its word may come while its parent's next call runs already
    expect(printed(await own.python('print(os.waitpid(pid, 0)[1])'))).toMatch(/^(child\n)?0\n$/)
    expect(printed(await own.python('print("alone")'))).toBe('alone\n')
    const code = 'import sys\npid = os.fork()\nif pid == 0: sys.exit(3)\nprint(os.WEXITSTATUS(os.waitpid(pid, 0)[1]))'
    expect(printed(await own.python(code))).toBe('3\n')
  })
})

describe('the moment in which the supervisor takes over', () => {
  test('no call is lost or told twice, and none is mistaken for another', async () => {
    const sessions = await Promise.all(Array.from({ length: 4 }, () => backend.open()))
    await Promise.all(
      sessions.map(async (session, at) => {
        for (let call = 0; call < 60; call++) {
          const milliseconds = (call * 7 + at) % 14
          const code = `import time\nprint("${at}.${call} begins")\ntime.sleep(${milliseconds / 1_000})\nprint("ends")`
          expect(printed(await session.python(code))).toBe(`${at}.${call} begins\nends\n`)
        }
      }),
    )
  })

  test('BR-125 a call is ended in its time though its session was busy with short ones before', async () => {
    const own = await backend.open()
    for (let call = 0; call < 10; call++) await own.python('kept = 7')
    const { ended_by, stdout } = await own.python('print("before")\nwhile True: pass', 1)
    expect([ended_by, stdout]).toEqual(['time', 'before\n'])
    expect(printed(await own.python('kept'))).toBe('7\n')
  })

  test('a client that leaves at once ends its call', async () => {
    const own = await backend.open()
    const leaving = new AbortController()
    const call = own.exec(
      { tool: 'code_execution', input: { code: 'import time; time.sleep(60)' }, timeout_seconds: 60 },
      { signal: leaving.signal },
    )
    setTimeout(() => leaving.abort(), 1)
    await expect(call).rejects.toThrow()
    expect(printed(await own.python('print("next")', 20))).toBe('next\n')
  })
})

describe.runIf(here)('an interpreter that does not listen', () => {
  test.each([
    [
      'stopped by a child',
      'import os, signal, time\nif os.fork() == 0:\n  time.sleep(0.1)\n  os.kill(os.getppid(), signal.SIGSTOP)\n  open("now.txt", "w").close()\n  time.sleep(60)',
    ],
    [
      'kept from it by a thread that is in one long step',
      'import threading, time\ndef later():\n  time.sleep(0.1)\n  open("now.txt", "w").close()\n  (10**7)**(10**7)\nthreading.Thread(target=later, daemon=True).start()',
    ],
  ])('BR-125 A3 %s: its next call ends in time, and the session goes on', async (_what, code) => {
    const neighbour = await openNeighbour(backend)
    const own = await backend.open()
    await own.python(code)
    await expect.poll(async () => printed(await own.shell('ls'))).toContain('now.txt')
    const { ended_by, stderr } = await neighbour.during(own.python('print("never")', 1))
    expect([ended_by, stderr]).toEqual(['time', expect.stringContaining('variables and imports are lost')])
    expect(printed(await own.python('print(6 * 7)'))).toBe('42\n')
    await own.end()
  })

  test('BR-128 a client that leaves it does not keep the next one waiting for the whole time of its call', async () => {
    const own = await backend.open()
    await own.python(
      'import os, signal, time\nme = os.getpid()\nif os.fork() == 0:\n  time.sleep(0.1)\n  os.kill(me, signal.SIGSTOP)\n  open("now.txt", "w").close()\n  time.sleep(60)',
    )
    await expect.poll(async () => printed(await own.shell('ls'))).toContain('now.txt')
    const leaving = new AbortController()
    const call = own.exec(
      { tool: 'code_execution', input: { code: 'print("never")' }, timeout_seconds: 120 },
      { signal: leaving.signal },
    )
    setTimeout(() => leaving.abort(), 20)
    await expect(call).rejects.toThrow()
    expect(printed(await own.python('print("next")'))).toBe('next\n')
  })
})

describe.runIf(here)('a program that meddles with the line', () => {
  test('BR-125 its time is kept, though it makes everything it holds wait for what never comes', async () => {
    const own = await backend.open()
    const block =
      'import time; time.sleep(0.1)\nfor fd in pipes:\n  if not os.get_blocking(fd): os.set_blocking(fd, True)\nprint("said", flush=True)\ntime.sleep(60)'
    const { ended_by, stdout } = await own.python(`${OURS}\n${block}`, 1)
    expect([ended_by, stdout]).toEqual(['time', 'said\n'])
    await own.python('print("whatever becomes of this one")', 1)
    expect(printed(await own.python('print(6 * 7)'))).toBe('42\n')
  })

  test.each([
    ['closes every descriptor of ours', `${OURS}\nfor fd in ours: os.close(fd)`],
    ['closes both connections', `${OURS}\nfor fd in sockets: os.close(fd)`],
    ['writes words of its own on both connections', `${OURS}\nfor fd in sockets: os.write(fd, b"hello, server " * 9)`],
    ['answers for calls that nobody made', `${OURS}\nfor fd in sockets: os.write(fd, bytes(32))`],
    [
      'promises more output than there can be',
      `${OURS}\nimport struct\nfor n in range(4):\n  for fd in sockets: os.write(fd, struct.pack(">IiIIIIQ", n, 0, 2**31, 2**31, 0, 0, 0))`,
    ],
    [
      'answers for its own call, and goes on',
      `${OURS}\nimport struct, time\nfor fd in sockets: os.write(fd, struct.pack(">IiIIIIQ", 2, 0, 3, 0, 0, 0, 0) + b"lie")\ntime.sleep(0.2)`,
    ],
    [
      'reads the byte that decides',
      `${OURS}\nfor fd in pipes:\n  os.set_blocking(fd, False)\n  try: os.read(fd, 9)\n  except OSError: pass`,
    ],
    ['writes more such bytes', `${OURS}\nfor fd in pipes:\n  try: os.write(fd, b"!!!")\n  except OSError: pass`],
    [
      'replaces what we use',
      'import os, select, io\nos.read = os.write = os.stat = None\nselect.poll = None\nio.TextIOWrapper = None',
    ],
  ])('%s: harms itself alone', { timeout: 60_000 }, async (_what, code) => {
    const neighbour = await openNeighbour(backend)
    const own = await backend.open()
    await own.python('open("kept.txt", "w").write("7")')
    const answer = await neighbour.during(own.exec({ tool: 'code_execution', input: { code }, timeout_seconds: 2 }))
    expect([200, 404]).toContain(answer.status)
    if (answer.status === 404) return
    // its variables may be gone, not its files, and it can be used or is lost and says so
    const next = await neighbour.during(
      own.exec({ tool: 'bash_code_execution', input: { command: 'cat kept.txt' }, timeout_seconds: 5 }),
    )
    expect(next.status === 404 || next.body.result_block.content.stdout === '7').toBe(true)
    const python = await own.exec({ tool: 'code_execution', input: { code: 'print(6 * 7)' }, timeout_seconds: 5 })
    expect([200, 404]).toContain(python.status)
    await own.end()
  })

  test('BR-126 what short calls leave behind is looked at, though nobody asks: children that fill the memory', async () => {
    const small = await openBackend({ limits: smallLimits })
    try {
      await leaveThread(small)
      await expect.poll(() => large().length, { timeout: 20_000 }).toBeGreaterThan(0)
      await expect.poll(() => large().length, { timeout: 20_000 }).toBe(0)
    } finally {
      await small.close()
    }
  })
})

/** Has a thread fill the memory later on, by a call so short that the supervisor is not woken: a busy machine needs some. */
async function leaveThread(backend: Backend): Promise<void> {
  for (let tries = 0; tries < 20; tries++) {
    const own = await backend.open()
    // once before, so that the call itself finds everything in place
    await own.python(
      'import os, threading, time\nthread = threading.Thread(target=int, daemon=True)\nthread.start()\nthread.join()\ndef later():\n  time.sleep(0.2)\n  for _ in range(4):\n    if os.fork() == 0:\n      x = bytearray(150 << 20)\n      time.sleep(600)\nthread = threading.Thread(target=later, daemon=True)',
    )
    // a supervisor that this woke has its look within half a second, and is still again
    await new Promise((done) => setTimeout(done, 1_500))
    const { body } = await own.exec({ tool: 'code_execution', input: { code: 'thread.start()' } })
    if (body.execution_time_ms < 5) return
    await own.end()
  }
  throw new Error('no call was short enough')
}

/** Processes below this one that hold more than 100 MiB of memory of their own and run no Node. */
function large(): number[] {
  const read = (path: string) => {
    try {
      return readFileSync(path, 'utf8')
    } catch {
      return '' // it has ended meanwhile
    }
  }
  const below = (pid: number): number[] =>
    read(`/proc/${pid}/task/${pid}/children`)
      .trim()
      .split(' ')
      .filter((child) => child !== '')
      .flatMap((child) => [Number(child), ...below(Number(child))])
  return below(process.pid).filter((pid) => {
    const status = read(`/proc/${pid}/status`)
    return /^Name:\s+python/m.test(status) && Number(/^RssAnon:\s+(\d+)/m.exec(status)?.[1] ?? 0) > 100 * 1_024
  })
}
