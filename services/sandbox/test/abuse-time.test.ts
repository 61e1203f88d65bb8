import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { type Backend, openBackend, printed } from './harness.ts'
import { processesWith } from './host.ts'
import { type Neighbour, openNeighbour } from './neighbour.ts'

let backend: Backend
let neighbour: Neighbour
beforeAll(async () => {
  backend = await openBackend()
  neighbour = await openNeighbour(backend)
})
afterAll(() => backend.close())

/** Over the limit by the grace, the teardown, and what a busy machine adds. */
const LATE_MS = 4_000

test.each([
  ['A1 an endless loop', 'while True: pass'],
  ['A5 a regex that never ends', 'import re; re.match("(a+)+$", "a" * 40 + "b")'],
  ['A sleep', 'import time; time.sleep(60)'],
  ['a loop that counts', 'n = 0\nwhile True: n += 1'],
  ['a wait for a child', 'import subprocess; subprocess.run(["sleep", "60"])'],
  ['a shell started by the program', 'import os; os.system("sleep 60"); os.system("sleep 61"); None'],
])('BR-125 %s is interrupted in time, and the variables are kept', { timeout: 30_000 }, async (_what, code) => {
  const own = await backend.open()
  await own.python('kept = 7')
  const began = performance.now()
  const { return_code, stderr, stdout, ended_by } = await neighbour.during(own.python(`print("before")\n${code}`, 2))
  expect(performance.now() - began).toBeLessThan(2_000 + LATE_MS)
  expect([return_code, ended_by, stdout]).toEqual([124, 'time', 'before\n'])
  expect(stderr).toContain('[timed out after 2 s, interrupted; variables and files are kept]')
  expect(printed(await own.python('kept'))).toBe('7\n')
  await own.end()
})

test.each([
  ['A4 arithmetic in C', 'x = (10**7)**(10**7)'],
  ['A6 a loop that catches everything', 'while True:\n  try:\n    while True: pass\n  except BaseException: pass'],
  [
    'a program that ignores the signal',
    'import signal, time; signal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True: time.sleep(1)',
  ],
  ['a program that stops itself', 'import os, signal; os.kill(os.getpid(), signal.SIGSTOP)'],
  [
    'a thread that never ends, joined',
    'import threading\nt = threading.Thread(target=lambda: [None for _ in iter(int, 1)])\nt.start()\nwhile True:\n  try: t.join()\n  except BaseException: pass',
  ],
])(
  'BR-125 %s is ended by force or by interruption, files kept, and the next call works',
  { timeout: 30_000 },
  async (_what, code) => {
    const own = await backend.open()
    const began = performance.now()
    const program = `open("kept.txt", "w").write("7")\nprint("before")\n${code}`
    const { return_code, stderr, stdout, ended_by } = await neighbour.during(own.python(program, 2))
    expect(performance.now() - began).toBeLessThan(2_000 + LATE_MS)
    expect([ended_by, stdout]).toEqual(['time', 'before\n'])
    expect(return_code).not.toBe(0)
    expect(stderr).toMatch(
      /\[timed out after 2 s.*(variables and files are kept|variables and imports are lost, files are kept)\]/,
    )
    expect(printed(await own.python('open("kept.txt").read()'))).toBe("'7'\n")
    await own.end()
  },
)

test('A2 BR-125 what was printed before the timeout is returned, flushed or not', async () => {
  const own = await backend.open()
  const code = 'import time, sys\nprint("before")\nsys.stdout.flush()\nprint("buffered")\ntime.sleep(60)'
  expect((await own.python(code, 2)).stdout).toBe('before\nbuffered\n')
  await own.end()
})

test('A7 BR-126 a command that times out takes all it started with it', { timeout: 30_000 }, async () => {
  const own = await backend.open()
  const mark = `3${Math.floor(Math.random() * 1e6)}.25`
  const began = performance.now()
  const command = `echo before; sleep ${mark} & setsid sleep ${mark} & (sleep ${mark} &) ; trap "" TERM INT; wait; sleep ${mark}`
  const { stdout, stderr, return_code, ended_by } = await neighbour.during(own.shell(command, 2))
  expect(performance.now() - began).toBeLessThan(2_000 + LATE_MS)
  expect([stdout, return_code, ended_by]).toEqual(['before\n', 124, 'time'])
  expect(stderr).toContain('timed out after 2 s')
  expect(processesWith(`sleep ${mark}`)).toEqual([])
  await own.end()
})

describe('BR-131 everything that a command started ends with it, and nothing of a neighbour', () => {
  const serve = 'python3 -m http.server 9000 --bind 127.0.0.1 > /dev/null 2>&1'
  const listens = 'import socket; print(socket.socket().connect_ex(("127.0.0.1", 9000)) == 0)'
  const binds = 'import socket; socket.socket().bind(("127.0.0.1", 9000)); print("free")'

  /** A tree with orphans, sessions of their own and a server, which does not go when it is asked to. */
  async function tree() {
    const mark = `5${Math.floor(Math.random() * 1e6)}.25`
    const other = await backend.open()
    await other.shell(`nohup setsid sleep ${mark} > /dev/null 2>&1 & echo`)
    const own = await backend.open()
    const parts = ['trap "" TERM INT', `(sleep ${mark} &)`, `nohup setsid sleep ${mark} > /dev/null 2>&1 &`]
    const command = [...parts, `${serve} &`, 'echo up > up', 'wait', `sleep ${mark}`].join('\n')
    const gone = new AbortController()
    onTestFinished(async () => {
      gone.abort()
      await own.end()
      await other.end()
    })
    const run = (timeout_seconds: number) =>
      own
        .exec({ tool: 'bash_code_execution', input: { command }, timeout_seconds }, { signal: gone.signal })
        .catch(() => undefined)
    const ofTree = () => processesWith(`sleep ${mark}`).length
    // the other's, two of this one, and its shell, whose command names them
    const whole = () => expect.poll(ofTree, { timeout: 15_000 }).toBe(4)
    const onlyTheOther = () => expect.poll(ofTree, { timeout: 5_000 }).toBe(1)
    return { own, run, whole, onlyTheOther, leave: () => gone.abort() }
  }

  test('BR-131 when its time is up, which is told, and the port is free', { timeout: 30_000 }, async () => {
    const { own, run, onlyTheOther } = await tree()
    const ended = await run(3)
    expect(ended?.body.result_block.content).toMatchObject({ return_code: 124, ended_by: 'time' })
    await onlyTheOther()
    expect(printed(await own.python(listens))).toBe('False\n')
    expect(printed(await own.python(binds))).toBe('free\n')
  })

  test('BR-131 when its client leaves', { timeout: 30_000 }, async () => {
    const { own, run, whole, onlyTheOther, leave } = await tree()
    const running = run(60)
    await whole()
    leave()
    await running
    await onlyTheOther()
    await expect.poll(async () => printed(await own.python(binds))).toBe('free\n')
  })

  test('BR-131 when its session ends, twice over', { timeout: 30_000 }, async () => {
    const { own, run, whole, onlyTheOther } = await tree()
    const running = run(60)
    await whole()
    expect((await own.end()).status).toBe(204)
    expect((await running)?.status).toBe(404)
    await onlyTheOther()
    expect((await own.end()).status).toBe(204)
  })
})

test('A7 the interpreter and its variables survive a command that times out', async () => {
  const own = await backend.open()
  await own.python('kept = 7')
  await own.shell('sleep 60', 1)
  expect(printed(await own.python('kept'))).toBe('7\n')
  await own.end()
})

test('A9 D20 BR-126 what outlives its command is gone with the session', async () => {
  const own = await backend.open()
  const mark = `4${Math.floor(Math.random() * 1e6)}.25`
  await own.shell(`setsid nohup sleep ${mark} > /dev/null 2>&1 & echo started`)
  await own.python(`import subprocess; subprocess.Popen(["sleep", "${mark}"], start_new_session=True)\nNone`)
  await expect.poll(() => processesWith(`sleep ${mark}`).length).toBe(2)
  await own.end()
  await expect.poll(() => processesWith(`sleep ${mark}`), { timeout: 1_000 }).toEqual([])
})

test('A10 a client that leaves ends its call, and the next one is answered', { timeout: 30_000 }, async () => {
  const own = await backend.open()
  const gone = new AbortController()
  const mark = randomUUID()
  const call = own.exec(
    { tool: 'code_execution', input: { code: `open("${mark}", "w")\nwhile True: pass` }, timeout_seconds: 60 },
    { signal: gone.signal },
  )
  call.catch(() => {}) // it is given up below
  await expect.poll(async () => (await own.list()).body.files.map(({ path }) => path)).toContain(mark)
  gone.abort()
  const began = performance.now()
  expect(printed(await neighbour.during(own.python('print(1)')))).toBe('1\n')
  expect(performance.now() - began).toBeLessThan(3_000)
  await own.end()
})

test('A11 a session that is released ends its call at once', async () => {
  const own = await backend.open()
  const call = own.exec({
    tool: 'code_execution',
    input: { code: 'open("on", "w")\nwhile True: pass' },
    timeout_seconds: 60,
  })
  await expect.poll(async () => (await own.list()).body.files).toHaveLength(1)
  const began = performance.now()
  expect((await own.end()).status).toBe(204)
  expect((await call).status).toBe(404)
  expect(performance.now() - began).toBeLessThan(1_000)
})

test('a program that is interrupted may still say its last words', async () => {
  const own = await backend.open()
  const code = 'import time\ntry:\n  time.sleep(60)\nexcept KeyboardInterrupt:\n  print("cleaned up")'
  expect(await own.python(code, 1)).toMatchObject({ stdout: 'cleaned up\n', return_code: 124, ended_by: 'time' })
  await own.end()
})
