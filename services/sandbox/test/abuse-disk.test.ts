import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Backend, openBackend, printed } from './harness.ts'
import { hasNamespaces } from './here.ts'
import { residentBytes } from './host.ts'
import { type Neighbour, openNeighbour } from './neighbour.ts'
import { smallLimits } from './small-limits.ts'

const MIB = 1024 * 1024
const here = await hasNamespaces()

let backend: Backend
let neighbour: Neighbour
beforeAll(async () => {
  backend = await openBackend({ limits: smallLimits, warmSessions: 0 })
  neighbour = await openNeighbour(backend)
})
afterAll(() => backend.close())

describe.skipIf(!here)('disk and output', () => {
  test.each(['.', '/tmp', '/dev/shm'])(
    'C1 BR-126 filling %s stops at its quota, and a neighbour can write',
    { timeout: 60_000 },
    async (folder) => {
      const own = await backend.open()
      const { stderr } = await neighbour.during(
        own.shell(`for i in $(seq 20); do head -c 40M /dev/zero > ${folder}/f$i || break; done`, 20),
      )
      expect(stderr).toMatch(/No space left|File too large/)
      expect(printed(await neighbour.session.shell('head -c 1M /dev/zero > f && wc -c < f && rm f'))).toBe('1048576\n')
      const used = Number(printed(await own.shell(`du -sm ${folder} | cut -f1`)))
      expect(used).toBeLessThanOrEqual(65)
      await own.end()
    },
  )

  test('C2 BR-126 files without number stop at the quota, and the release is quick', { timeout: 60_000 }, async () => {
    const own = await backend.open()
    const code = `
count = 0
try:
    while True:
        open(f"f{count}", "w").close()
        count += 1
except OSError as error: print(error.strerror, count < ${smallLimits.inodes})`
    expect(printed(await neighbour.during(own.python(code, 30)))).toBe('No space left on device True\n')
    const began = performance.now()
    expect((await own.end()).status).toBe(204)
    expect(performance.now() - began).toBeLessThan(1_000)
  })

  test.each([
    ['C5 a program', 'while True: print("x" * 100)', 'python'],
    ['C6 a command', 'yes', 'shell'],
    ['a program on stderr', 'import sys\nwhile True: sys.stderr.write("x" * 1000 + "\\n")', 'python'],
  ] as const)(
    '%s that never stops writing is cut, and the server grows by nothing',
    { timeout: 60_000 },
    async (_what, text, kind) => {
      const own = await backend.open()
      if (kind === 'python') await own.python('kept = 7')
      const before = residentBytes()
      const { stdout, stderr, ended_by } = await neighbour.during(
        kind === 'python' ? own.python(text, 4) : own.shell(text, 4),
      )
      expect(ended_by).toBe('time')
      expect(residentBytes() - before).toBeLessThan(100 * MIB)
      expect(Math.max(stdout.length, stderr.length)).toBeLessThan(MIB + 1_000)
      expect(stdout + stderr).toMatch(/\[output cut: \d{7,} more bytes\]/)
      if (kind === 'python') expect(printed(await own.python('kept'))).toBe('7\n')
      await own.end()
    },
  )

  test('C7 one line of 40 MB is cut, and the session goes on', { timeout: 30_000 }, async () => {
    const own = await backend.open()
    expect((await neighbour.during(own.python('print("x" * (40 << 20))'))).stdout).toContain('[output cut: ')
    expect(printed(await own.python('print(1)'))).toBe('1\n')
    await own.end()
  })

  test('output between calls is nobody’s', async () => {
    const own = await backend.open()
    await own.python(
      'import threading, time\ndef talk():\n  while True:\n    print("noise " * 100)\n    time.sleep(0.001)\nthreading.Thread(target=talk, daemon=True).start()',
    )
    await new Promise((done) => setTimeout(done, 500))
    expect((await own.python('print("mine")')).stdout).toContain('mine\n')
    await own.end()
  })

  test.each([
    ['garbage', 'b"garbage" * 100'],
    ['a header of 4 GiB', 'b"\\xff" * 8'],
    ['the end of a call that never was', '__import__("struct").pack(">Ii", 99, 0)'],
  ])(
    'C14 %s on every descriptor a program has harms its own session only',
    { timeout: 30_000 },
    async (_what, data) => {
      const own = await backend.open()
      const before = residentBytes()
      const code = `
import os
for fd in range(3, 256):
    try: os.write(fd, ${data})
    except OSError: pass`
      await neighbour.during(own.exec({ tool: 'code_execution', input: { code }, timeout_seconds: 5 }))
      expect(residentBytes() - before).toBeLessThan(50 * MIB)
      // the session goes on with a new interpreter, or is lost and says so
      const next = await own.exec({ tool: 'code_execution', input: { code: 'print(1)' } })
      expect([200, 404]).toContain(next.status)
      await own.end()
    },
  )
})
