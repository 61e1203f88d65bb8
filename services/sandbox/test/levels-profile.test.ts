import { chmod, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Contained, canContain, canProfile, contain, NOBODY, shippedProfile } from './contained/contain.ts'

// An ordinary user in a container with the profile that the deployment files name: sessions have namespaces there, and
// nothing that makes a call of the kernel is of root's.
describe.skipIf(!canContain || !canProfile)('level ns as an ordinary user, under the shipped profile', () => {
  let contained: Contained
  const python = (code: string, seconds?: number) => contained.ask('python', code, seconds)
  const tried = async (code: string) => {
    const { stdout, stderr } = await python(`
import ctypes, errno, os, signal, socket, sys
libc = ctypes.CDLL(None, use_errno=True)
def syscall(number, *arguments):
    result = libc.syscall(ctypes.c_long(number), *arguments)
    if result < 0: raise OSError(ctypes.get_errno(), "")
    return result
try: print("GOT", ${code})
except OSError as error: print(errno.errorcode.get(error.errno, error.errno))`)
    return stdout.trim() || stderr
  }
  const neighbourAnswers = async () => {
    const { stdout, ms } = await contained.ask('neighbour', 'print(6 * 7)')
    expect(stdout).toBe('42\n')
    expect(ms).toBeLessThan(10_000)
  }
  beforeAll(async () => {
    contained = await contain(NOBODY, { level: 'ns', memoryMiB: 400, workspaceMiB: 64 }, shippedProfile)
  })
  afterAll(() => contained.close())

  test('H5 starts, and its self-test finds nothing wrong', () => {
    expect(contained.first).toMatchObject({ ready: expect.stringContaining('a user namespace each'), selfTest: null })
  })

  test('CP-17 A1 A7 programs and commands run, are stopped in time, and keep their variables', async () => {
    expect((await python('x = 41\nprint("on")\nwhile True: pass', 1)).ending).toBe('time')
    expect((await python('x + 1')).stdout).toBe('42\n')
    expect(await contained.ask('shell', 'sleep 987.5 & setsid sleep 987.5 & wait', 1)).toMatchObject({ ending: 'time' })
    expect((await contained.ask('shell', 'ls /proc | grep -c "^[0-9]"; id -u')).stdout).toMatch(/^[3-6]\n1000\n$/)
    await neighbourAnswers()
  })

  test('B2 B4 C1 memory, processes and disk of a session are bounded', { timeout: 60_000 }, async () => {
    const hungry =
      'import os, time\nfor _ in range(5):\n  if os.fork() == 0:\n    x = bytearray(200 << 20)\n    for i in range(0, len(x), 4096): x[i] = 1\n    time.sleep(30)\n    os._exit(0)\ntime.sleep(30)'
    expect(await python(hungry, 20)).toMatchObject({ ending: 'memory', exitCode: 137 })
    await contained.ask('shell', ':(){ :|:& };:; wait', 2)
    await neighbourAnswers()
    await contained.ask('fresh', '') // it bombs on where its command has ended
    expect((await contained.ask('shell', 'head -c 100M /dev/zero > full; rm full')).stderr).toMatch(
      /No space|too large/,
    )
    await neighbourAnswers()
  })

  test('D1 D2 D9 D11 BR-130 nothing of a neighbour or the host is read, written or signalled', async () => {
    const canary = join(contained.folder, 'canary')
    await writeFile(canary, 'secret')
    await chmod(canary, 0o666)
    await contained.ask('neighbour', 'open("mine.txt", "w").write("secret")')
    await contained.ask('fresh', '') // one in which no command has run
    // what a path names in one session names nothing of another's
    expect(await tried('open("/workspace/mine.txt").read()')).toBe('ENOENT')
    expect(await tried(`open("${canary}").read()`)).toMatch(/ENOENT|EACCES/)
    expect(await tried(`open("${canary}", "w")`)).toMatch(/ENOENT|EACCES|EROFS/)
    // the numbers that a session can name are of its own processes
    expect(
      (await python('import os; print(len([name for name in os.listdir("/proc") if name.isdigit()]))')).stdout,
    ).toBe('2\n')
    expect(await tried('os.kill(2_000_000, 9)')).toBe('ESRCH')
    await contained.ask('shell', 'kill -9 -1; kill -STOP -1', 5)
    await neighbourAnswers()
    expect((await contained.ask('neighbour', 'print(open("mine.txt").read())')).stdout).toBe('secret\n')
    await contained.ask('fresh', '')
  })

  test.each([
    ['F1 AF_ALG', 'socket.socket(38, socket.SOCK_SEQPACKET)'],
    ['F1 AF_VSOCK', 'socket.socket(40, socket.SOCK_STREAM)'],
    ['F2 a user namespace', 'syscall(272, 0x10000000)'],
    ['F2 clone into one', 'syscall(56, 0x10000011, None, None, None, None)'],
    ['F4 a mount', 'syscall(165, b"x", b"/tmp", b"tmpfs", 0, None)'],
    ['F4 fsopen', 'syscall(430, b"tmpfs", 0)'],
    ['F5 bpf', 'syscall(321, 0, None, 0)'],
    ['F5 userfaultfd', 'syscall(323, 0)'],
    ['F5 io_uring', 'syscall(425, 1, None)'],
    ['F6 handles of files', 'syscall(304, -100, None, 0)'],
    ['D14 SysV shared memory', 'syscall(29, 1, 4096, 0o1666)'],
    ['B14 memory without a file', 'syscall(319, b"x", 0)'],
    ['E1 a port of the host', 'socket.create_connection(("127.0.0.1", 22), timeout=1)'],
    ['F9 another user', 'os.setuid(0)'],
  ])('%s is refused', async (_what, code) => {
    expect(await tried(code)).toMatch(/^(EPERM|EAFNOSUPPORT|ECONNREFUSED|EINVAL)$/)
  })

  test('D20 nothing of a session is left when it has ended, and nothing of any when the zygote dies', async () => {
    await contained.ask('shell', 'setsid nohup sleep 6543.5 > /dev/null 2>&1 & echo')
    await contained.ask('fresh', '')
    expect((await python('import os; print(os.listdir("."))')).stdout).toBe('[]\n')
    await contained.ask('shell', 'setsid nohup sleep 6543.5 > /dev/null 2>&1 & echo')
    expect((await contained.ask('crash', 'sleep 6543.5')).stdout).toBe('[]')
  })
})
