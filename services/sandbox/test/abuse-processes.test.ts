import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Backend, openBackend, printed } from './harness.ts'
import { hasNamespaces } from './here.ts'
import { descendantsOf } from './host.ts'
import { type Neighbour, openNeighbour } from './neighbour.ts'
import { smallLimits } from './small-limits.ts'

const here = await hasNamespaces()

let backend: Backend
let neighbour: Neighbour
beforeAll(async () => {
  backend = await openBackend({ limits: smallLimits, warmSessions: 0 })
  neighbour = await openNeighbour(backend)
})
afterAll(() => backend.close())

describe.skipIf(!here)('memory and processes', () => {
  test('B1 more memory than a process may have is a MemoryError, and the session goes on', async () => {
    const own = await backend.open()
    await own.python('kept = 7')
    expect((await neighbour.during(own.python('bytearray(8 << 30)'))).stderr).toContain('MemoryError')
    expect(printed(await own.python('kept'))).toBe('7\n')
    await own.end()
  })

  test('B2 BR-126 processes that together take too much are ended, and the reason is told', {
    timeout: 60_000,
  }, async () => {
    const own = await backend.open()
    const code = `
import os, time
for _ in range(6):
    if os.fork() == 0:
        held = bytearray(200 << 20)
        for i in range(0, len(held), 4096): held[i] = 1
        time.sleep(60)
        os._exit(0)
time.sleep(60)`
    const { ended_by, return_code, stderr } = await neighbour.during(own.python(code, 30))
    expect([ended_by, return_code]).toEqual(['memory', 137])
    expect(stderr).toContain('the session used more memory than it may')
    expect(printed(await own.python('print(1)'))).toBe('1\n')
    await own.end()
  })

  test.each([
    [
      'shared memory of forks',
      'import mmap, os, time\nfor _ in range(5):\n  if os.fork() == 0:\n    m = mmap.mmap(-1, 150 << 20)\n    for i in range(0, len(m), 4096): m[i] = 1\n    time.sleep(60)\n    os._exit(0)\ntime.sleep(60)',
    ],
    [
      'memory that outlives the call',
      'import subprocess, sys\nfor _ in range(5): subprocess.Popen([sys.executable, "-c", "x = bytearray(150 << 20)\\nfor i in range(0, len(x), 4096): x[i] = 1\\nimport time; time.sleep(60)"])\nimport time; time.sleep(20)',
    ],
  ])('B14 %s is counted too', { timeout: 60_000 }, async (_what, code) => {
    const own = await backend.open()
    const { ended_by } = await neighbour.during(own.python(code, 30))
    expect(ended_by).toBe('memory')
    await own.end()
  })

  test('B14 memory that no process shows cannot be had', async () => {
    const own = await backend.open()
    const code = `
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
try:
    os.memfd_create("x")
    print("memfd")
except OSError: pass
if libc.shmget(0, 1 << 20, 0o1600) >= 0: print("shm")
if libc.mlock(ctypes.create_string_buffer(1 << 20), 1 << 20) == 0: print("mlock")
print("done")`
    expect(printed(await own.python(code))).toBe('done\n')
    await own.end()
  })

  test.each([
    ['B4 a fork bomb', ':(){ :|:& };:; wait; sleep 60'],
    ['B5 sleepers without end', 'while true; do sleep 1000 & done 2> /dev/null'],
    [
      'daemons that ignore signals',
      'trap "" TERM INT HUP; while true; do (setsid sh -c "trap \\"\\" TERM INT HUP; sleep 1000" &) ; done 2> /dev/null',
    ],
  ])('%s stops at the quota, and nothing is left of it', { timeout: 60_000 }, async (_what, command) => {
    const outside = descendantsOf(process.pid).length
    const own = await backend.open()
    const before = descendantsOf(process.pid).length
    const running = neighbour.during(own.shell(command, 4))
    await expect.poll(() => descendantsOf(process.pid).length - before, { timeout: 5_000 }).toBeGreaterThan(20)
    expect(descendantsOf(process.pid).length - before).toBeLessThan(100)
    expect((await running).return_code).not.toBe(0)
    expect(printed(await own.python('print(1)'))).toBe('1\n')
    await own.end()
    await expect.poll(() => descendantsOf(process.pid).length, { timeout: 2_000 }).toBeLessThanOrEqual(outside)
  })

  test('B5 children of the program stop at the quota', { timeout: 30_000 }, async () => {
    const own = await backend.open()
    const code = `
import subprocess
started = []
try:
    while True: started.append(subprocess.Popen(["sleep", "1000"]))
except OSError as error:
    print(type(error).__name__, 20 < len(started) < 70)`
    expect(printed(await neighbour.during(own.python(code, 20)))).toBe('BlockingIOError True\n')
    await own.end()
  })

  test('B6 one session at its quota takes nothing from another', { timeout: 30_000 }, async () => {
    const own = await backend.open()
    await own.python('import subprocess\ntry:\n  while True: subprocess.Popen(["sleep", "1000"])\nexcept OSError: pass')
    expect(printed(await neighbour.session.shell('echo forked | cat'))).toBe('forked\n')
    await own.end()
  })

  test('B7 threads without end are an error inside', { timeout: 30_000 }, async () => {
    const own = await backend.open()
    const code =
      'import threading, time\nfor _ in range(20000): threading.Thread(target=time.sleep, args=(5,), daemon=True).start()'
    expect((await neighbour.during(own.python(code, 20))).stderr).toContain("can't start new thread")
    await expect.poll(async () => (await own.python('print(1)')).stdout, { timeout: 15_000 }).toBe('1\n')
    await own.end()
  })

  test('B9 endless recursion ends the program at most', { timeout: 60_000 }, async () => {
    const own = await backend.open()
    const code =
      'import sys\nsys.setrecursionlimit(10**9)\nclass A:\n  def __repr__(self): return repr(self)\nrepr(A())'
    expect((await neighbour.during(own.python(code, 20))).return_code).not.toBe(0)
    expect(printed(await own.python('print(1)'))).toBe('1\n')
    await own.end()
  })

  test.each([
    ['import os; os._exit(7)', 7],
    ['import ctypes; ctypes.string_at(0)', -11],
    ['import os, signal; os.kill(os.getpid(), signal.SIGKILL)', -9],
  ])('B10 after %s the workspace is kept, the variables are not, and that is told', async (code, expected) => {
    const own = await backend.open()
    await own.python('x = 1\nopen("kept.txt", "w").write("7")')
    const { return_code, stderr } = await own.python(`print("said")\n${code}`)
    expect(return_code).toBe(expected)
    expect(stderr).toContain(
      `[the Python process ended (status ${expected}); variables and imports are lost, files are kept]`,
    )
    expect(printed(await own.python('print(open("kept.txt").read(), "x" in dir())'))).toBe('7 False\n')
    await own.end()
  })

  test.each([
    ['ends', 'kill -9 $PPID; sleep 60'],
    ['stops', 'kill -STOP $PPID; echo said'],
  ])('B10 after a command that %s what started it the next one runs', { timeout: 30_000 }, async (_what, command) => {
    const own = await backend.open()
    await own.python('kept = 7')
    expect((await own.shell(command, 2)).return_code).not.toBe(0)
    expect(printed(await own.shell('echo next'))).toBe('next\n')
    expect(printed(await own.python('kept'))).toBe('7\n')
    await own.end()
  })

  test('B6 a command runs in a session that has as many processes as it may', { timeout: 30_000 }, async () => {
    const own = await backend.open()
    expect(printed(await own.shell('echo first'))).toBe('first\n')
    await own.python('import subprocess\ntry:\n  while True: subprocess.Popen(["sleep", "1000"])\nexcept OSError: pass')
    expect(printed(await own.shell('echo $((6 * 7))'))).toBe('42\n')
    await own.end()
  })

  test('B11 sessions that spin leave time for one that does not', { timeout: 30_000 }, async () => {
    const spinners = await Promise.all([1, 2, 3].map(() => backend.open()))
    await neighbour.during(Promise.all(spinners.map((own) => own.python('while True: pass', 3))))
    await Promise.all(spinners.map((own) => own.end()))
  })

  test('B12 time is counted for each call, not for the session', async () => {
    const own = await backend.open()
    for (let call = 0; call < 3; call += 1)
      printed(await own.python('import time\nend = time.time() + 0.8\nwhile time.time() < end: pass', 2))
    await own.end()
  })
})
