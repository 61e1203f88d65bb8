import { chmod, mkdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Contained, canContain, contain, NOBODY } from './contained/contain.ts'

const levels = [
  { name: 'landlock-uid', user: 0, request: { level: 'landlock-uid' } },
  { name: 'landlock-uid on an older kernel', user: 0, request: { level: 'landlock-uid', landlockAtMost: 1 } },
  { name: 'landlock', user: NOBODY, request: { level: 'landlock' } },
  { name: 'landlock on an older kernel', user: NOBODY, request: { level: 'landlock', landlockAtMost: 3 } },
]

describe.skipIf(!canContain).each(levels)('level $name', { timeout: 60_000 }, ({ user, request }) => {
  // an older kernel differs in what can be reached, not in how programs run
  const older = 'landlockAtMost' in request
  let contained: Contained
  const python = (code: string, seconds?: number) => contained.ask('python', code, seconds)
  const shell = (command: string, seconds?: number) => contained.ask('shell', command, seconds)
  const neighbourAnswers = async () => {
    expect((await contained.ask('neighbour', 'print(6 * 7)')).stdout).toBe('42\n')
  }
  /** The name of the error, or what came of it. */
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
  beforeAll(async () => {
    contained = await contain(user, { ...request, memoryMiB: 400, workspaceMiB: 64 })
  })
  afterAll(() => contained.close())

  test('H5 its self-test finds nothing wrong', () => {
    expect(contained.first).toMatchObject({ ready: expect.stringContaining('Landlock'), selfTest: null })
  })

  test.skipIf(older)('CP-17 A1 A4 programs run, keep their variables, and are stopped in time', async () => {
    expect((await python('x = 41\nx + 1')).stdout).toBe('42\n')
    expect(await python('print("before")\nwhile True: pass', 1)).toMatchObject({
      stdout: 'before\n',
      ending: 'time',
      exitCode: 124,
    })
    expect((await python('x')).stdout).toBe('41\n')
    const forced = await python('import signal, time; signal.signal(2, signal.SIG_IGN)\nwhile True: time.sleep(1)', 1)
    expect(forced).toMatchObject({ ending: 'time', lost: expect.any(String) })
    expect((await python('print(1)')).stdout).toBe('1\n')
    await neighbourAnswers()
  })

  test('CP-18 CP-19 CP-20 files are written, read and viewed with the rights of the session', async () => {
    const { stdout } = await contained.ask('files', 'abcdefgh')
    expect(JSON.parse(stdout)).toEqual({
      read: 'abcdefgh'.repeat(25_000),
      viewed: 'abcdefgh'.repeat(125),
      names: { names: ['put.txt'] },
      refused: 'outside the workspace',
    })
    expect((await shell('stat -c %s in/put.txt; rm -r in')).stdout).toBe('300000\n')
  })

  test.skipIf(older)('A7 a command that times out takes all it started with it', async () => {
    const command = 'sleep 987.5 & setsid sleep 987.5 & (sleep 987.5 &) ; trap "" TERM INT; wait; sleep 987.5'
    expect(await shell(command, 1)).toMatchObject({ ending: 'time', exitCode: 124 })
    expect((await contained.ask('neighbour', 'print(1)')).stdout).toBe('1\n')
  })

  test('programs signal their own processes, as they must to be of use', async () => {
    const code = `
import os, signal, subprocess
child = subprocess.Popen(["sleep", "60"])
child.terminate()
print(child.wait())
group = subprocess.Popen(["sleep", "60"], start_new_session=True)
os.killpg(group.pid, signal.SIGKILL)
print(group.wait())
try: subprocess.run(["sleep", "60"], timeout=0.2)
except subprocess.TimeoutExpired: print("timed out")
signal.signal(signal.SIGUSR1, lambda *_: print("caught"))
os.kill(os.getpid(), signal.SIGUSR1)`
    expect(await python(code)).toMatchObject({ stdout: '-15\n-9\ntimed out\ncaught\n', stderr: '' })
    expect((await shell('sleep 60 & kill %1; wait %1; echo $?; (kill -9 $BASHPID); echo $?')).stdout).toBe('143\n137\n')
  })

  test('D9 D10 D11 BR-130 nobody else can be signalled: not the server, not a neighbour, not everyone', async () => {
    const { stdout } = await contained.ask('neighbour', 'import os; print(os.getpid(), os.getppid(), os.getcwd())')
    const [sibling, supervisor, workspace] = stdout.trim().split(' ')
    for (const pid of [sibling, supervisor, contained.first.pid, 1]) {
      for (const call of [
        `os.kill(${pid}, 0)`,
        `os.kill(${pid}, signal.SIGSTOP)`,
        `os.kill(-${pid === 1 ? sibling : pid}, 9)`,
        `syscall(234, ${pid}, ${pid}, 9)`,
        `syscall(200, ${pid}, 9)`,
        `syscall(129, ${pid}, 9, None)`,
        `signal.pidfd_send_signal(os.pidfd_open(${pid}), 9)`,
      ])
        expect(await tried(call)).toMatch(/EPERM|ESRCH|EFAULT/)
      expect(await tried(`open("/proc/${pid}/environ").read()`)).toMatch(/EACCES|EPERM/)
      expect(await tried(`os.readlink("/proc/${pid}/cwd")`)).toMatch(/EACCES|EPERM/)
      expect(await tried(`syscall(310, ${pid}, None, 0, None, 0, 0)`)).toBe('EPERM')
      expect(await tried(`syscall(302, ${pid}, 7, None, None)`)).toBe('EPERM')
    }
    await python('import os; os.kill(os.getppid(), 19)', 1)
    await shell('kill -9 -1; kill -STOP -1; kill -9 1', 5)
    await neighbourAnswers()
    expect(await tried(`os.listdir("${workspace}")`)).toBe('EACCES')
    await contained.ask('fresh', '')
  })

  test('D1 D2 BR-120 BR-130 files of a neighbour and of the host are neither read nor written', async () => {
    const { stdout } = await contained.ask(
      'neighbour',
      'import os; open("mine.txt", "w").write("secret"); print(os.path.abspath("mine.txt"))',
    )
    const sibling = stdout.trim()
    const canary = join(contained.folder, 'canary')
    await writeFile(canary, 'secret')
    await chmod(canary, 0o666)
    await mkdir(join(contained.folder, 'open'))
    await chmod(join(contained.folder, 'open'), 0o777)
    for (const path of [sibling, canary]) {
      expect(await tried(`open("${path}").read()`)).toBe('EACCES')
      expect(await tried(`open("${path}", "a").write("x")`)).toBe('EACCES')
      expect(await tried(`os.open("${path}", os.O_RDONLY | os.O_TRUNC)`)).toBe('EACCES')
      expect(await tried(`os.truncate("${path}", 0)`)).toMatch(/EACCES|EPERM/)
      expect(await tried(`os.unlink("${path}")`)).toMatch(/EACCES|EPERM/)
      expect(await tried(`os.link("${path}", "stolen")`)).toMatch(/EACCES|EPERM|EXDEV/)
      expect(await tried(`os.rename("${path}", "stolen")`)).toMatch(/EACCES|EPERM|EXDEV/)
      await tried(`os.chmod("${path}", 0)`)
      await tried(`os.utime("${path}", (0, 0))`)
    }
    expect(await tried(`open("${contained.folder}/open/new", "w")`)).toBe('EACCES')
    expect(await tried(`os.mkdir("${contained.folder}/open/new")`)).toBe('EACCES')
    expect(await tried(`os.listdir("${contained.folder}")`)).toBe('EACCES')
    expect(await tried('open("/etc/passwd").read()')).toBe('EACCES')
    expect(await tried('open(os.__file__, "a")')).toMatch(/EACCES|EROFS/)
    const after = await contained.ask(
      'neighbour',
      'import os; s = os.stat("mine.txt"); print(open("mine.txt").read(), oct(s.st_mode)[-3:], s.st_mtime > 1000)',
    )
    expect(after.stdout).toBe('secret 644 True\n')
  })

  test('E1 D12 D21 BR-133 there is no network and no socket of the host', async () => {
    for (const family of ['AF_INET', 'AF_INET6', 'AF_UNIX', 'AF_NETLINK'])
      expect(await tried(`socket.socket(socket.${family}, socket.SOCK_DGRAM)`)).toBe('EAFNOSUPPORT')
    expect(await tried('socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)')).toBe('EAFNOSUPPORT')
    expect((await python('import socket\na, b = socket.socketpair()\na.send(b"x")\nb.recv(1)')).stdout).toBe("b'x'\n")
  })

  test.each([
    ['F1 AF_ALG', 'socket.socket(38, socket.SOCK_SEQPACKET)', 'EAFNOSUPPORT'],
    ['F2 a user namespace', 'syscall(272, 0x10000000)', 'EPERM'],
    ['F4 a mount', 'syscall(165, b"x", b"/tmp", b"tmpfs", 0, None)', 'EPERM'],
    ['F5 bpf', 'syscall(321, 0, None, 0)', 'EPERM'],
    ['F5 io_uring', 'syscall(425, 1, None)', 'EPERM'],
    ['a watch over others’ files', 'syscall(294, 0)', 'EPERM'],
    ['SysV shared memory', 'syscall(29, 1, 4096, 0o1666)', 'EPERM'],
    ['setuid', 'os.setuid(0)', 'EPERM'],
    ['a place in /tmp', 'open("/tmp/x", "w")', 'EACCES'],
    ['a place in /dev/shm', 'open("/dev/shm/x", "w")', 'EACCES'],
  ])('%s is refused', async (_what, code, expected) => {
    expect(await tried(code)).toBe(expected)
  })

  test.skipIf(older)('B4 BR-126 a fork bomb ends by a limit, and a neighbour can still fork', async () => {
    const bomb = shell(':(){ :|:& };:; wait; sleep 30', 4)
    expect((await contained.ask('neighbour', 'print(1)')).stdout ?? '').toBeDefined()
    expect(['time', 'processes']).toContain((await bomb).ending)
    expect(
      (
        await contained.ask(
          'neighbour',
          'import subprocess; print(subprocess.run(["echo", "forked"], capture_output=True).stdout)',
        )
      ).stdout,
    ).toBe("b'forked\\n'\n")
    expect((await python('print(1)')).stdout).toBe('1\n')
  })

  test.skipIf(older)('B2 C1 memory and disk of a session are bounded', async () => {
    const hungry =
      'import os, time\nfor _ in range(5):\n  if os.fork() == 0:\n    x = bytearray(200 << 20)\n    for i in range(0, len(x), 4096): x[i] = 1\n    time.sleep(30)\n    os._exit(0)\ntime.sleep(30)'
    expect(await python(hungry, 20)).toMatchObject({ ending: 'memory', exitCode: 137 })
    const full = await shell(
      'for i in $(seq 30); do head -c 20M /dev/zero > f$i || break; sleep 0.1; done; sleep 20',
      20,
    )
    expect(full).toMatchObject({ ending: 'disk', exitCode: 137 })
    await shell('rm -f f*')
    await neighbourAnswers()
  })

  test.skipIf(older)(
    'C1 BR-128 disk is bounded when no call of those that fill it is long, and the next one tells what was lost',
    async () => {
      await contained.ask('fresh', '')
      await python('data, file = bytes(4 << 20), open(".hidden", "wb", 0)')
      // each is over before anybody looks after it, and changes no folder
      const fill = 'file.write(data); None'
      let told: string | undefined
      for (let written = 0; written < 80; written += 4) told ??= (await python(fill)).lost
      await expect.poll(async () => (told ??= (await python('1')).lost), { timeout: 20_000 }).toBeDefined()
      await contained.ask('fresh', '')
    },
  )

  test.skipIf(older)('D20 nothing of a session is left when it has ended', async () => {
    await shell('setsid nohup sleep 4321.5 > /dev/null 2>&1 & echo > kept')
    const { stdout } = await python('import os; print(os.getcwd())')
    await contained.ask('fresh', '')
    // the zygote removes what is left once it has seen the end
    await expect.poll(async () => await tried(`os.stat("${stdout.trim()}")`)).toBe('ENOENT')
    expect((await shell('echo after')).stdout).toBe('after\n')
  })

  test.skipIf(older)('H2 BR-126 when the zygote dies, nothing of any session lives on', async () => {
    await shell('setsid nohup sleep 5432.5 > /dev/null 2>&1 & echo')
    expect((await contained.ask('crash', 'sleep 5432.5')).stdout).toBe('[]')
  })
})
