import { dirname } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { triedIn } from './attempt.ts'
import { type Backend, openBackend, printed, type SessionClient } from './harness.ts'
import { hasNamespaces } from './here.ts'

const here = await hasNamespaces()
let backend: Backend
let own: SessionClient
beforeAll(async () => {
  backend = await openBackend()
  own = await backend.open()
})
afterAll(() => backend.close())

const tried = (code: string) => triedIn(own, code)

describe.skipIf(!here || process.arch !== 'x64')('the kernel', () => {
  test.each([
    ['F1 AF_ALG', 'socket.socket(38, socket.SOCK_SEQPACKET)', 'EAFNOSUPPORT'],
    ['F1 AF_VSOCK', 'socket.socket(40, socket.SOCK_STREAM)', 'EAFNOSUPPORT'],
    ['F1 AF_PACKET', 'socket.socket(17, socket.SOCK_RAW)', 'EAFNOSUPPORT'],
    ['F1 AF_BLUETOOTH', 'socket.socket(31, socket.SOCK_RAW)', 'EAFNOSUPPORT'],
    ['F1 netfilter by netlink', 'socket.socket(16, socket.SOCK_RAW, 12)', 'EAFNOSUPPORT'],
    ['F1 a pair of another family', 'socket.socketpair(30, socket.SOCK_STREAM)', 'EAFNOSUPPORT'],
    ['F1 SCTP', 'socket.socket(socket.AF_INET, socket.SOCK_STREAM, 132)', 'EPERM'],
    ['F2 unshare of a user namespace', 'syscall(272, 0x10000000)', 'EPERM'],
    ['F2 unshare of a mount namespace', 'syscall(272, 0x20000)', 'EPERM'],
    ['F2 clone into a user namespace', 'syscall(56, 0x10000011, 0, 0, 0, 0)', 'EPERM'],
    ['F2 clone3', 'syscall(435, None, 88)', 'ENOSYS'],
    ['F2 setns', 'syscall(308, os.open("/proc/self/ns/net", 0), 0)', 'EPERM'],
    ['F4 mount', 'syscall(165, b"x", b"/tmp", b"tmpfs", 0, None)', 'EPERM'],
    ['F4 umount2', 'syscall(166, b"/proc", 2)', 'EPERM'],
    ['F4 pivot_root', 'syscall(155, b"/tmp", b"/tmp")', 'EPERM'],
    ['F4 chroot', 'os.chroot("/tmp")', 'EPERM'],
    ['F4 fsopen', 'syscall(430, b"tmpfs", 0)', 'EPERM'],
    ['F4 move_mount', 'syscall(429, -1, b"", -1, b"", 0)', 'EPERM'],
    ['F4 open_tree', 'syscall(428, -100, b"/", 1)', 'EPERM'],
    ['F4 mount_setattr', 'syscall(442, -100, b"/", 0, None, 0)', 'EPERM'],
    ['F5 bpf', 'syscall(321, 0, None, 0)', 'EPERM'],
    ['F5 perf_event_open', 'syscall(298, None, 0, -1, -1, 0)', 'EPERM'],
    ['F5 userfaultfd', 'syscall(323, 0)', 'EPERM'],
    ['F5 io_uring_setup', 'syscall(425, 1, None)', 'EPERM'],
    ['F5 add_key', 'syscall(248, b"user", b"x", b"x", 1, -3)', 'EPERM'],
    ['F6 open_by_handle_at', 'syscall(304, -100, None, 0)', 'EPERM'],
    ['F6 name_to_handle_at', 'syscall(303, -100, b"/", None, None, 0)', 'EPERM'],
    ['F6 pidfd_getfd', 'syscall(438, os.pidfd_open(1), 0, 0)', 'EPERM'],
    ['F6 kexec_load', 'syscall(246, 0, 0, None, 0)', 'EPERM'],
    ['F6 init_module', 'syscall(175, None, 0, b"")', 'EPERM'],
    ['D5 ptrace of process 1', 'syscall(101, 16, 1, 0, 0)', 'EPERM'],
    ['D5 process_vm_readv of process 1', 'syscall(310, 1, None, 0, None, 0, 0)', 'EPERM'],
    ['F7 TIOCSTI', '__import__("fcntl").ioctl(0, 0x5412, b"x")', 'EPERM'],
    ['F14 a call nobody has looked at', 'syscall(460, 0, 0, 0)', 'ENOSYS'],
    ['F14 a call of another convention', 'syscall(0x40000000 + 39)', 'ENOSYS'],
    ['the limits of process 1', 'syscall(302, 1, 7, None, None)', 'EPERM'],
    ['the processors of process 1', 'os.sched_setaffinity(1, {0})', 'EPERM'],
    ['the priority of everybody', 'os.setpriority(os.PRIO_USER, 0, 19)', 'EPERM'],
    ['the clock', '__import__("time").clock_settime(0, 0)', 'EPERM'],
    ['the host name', 'socket.sethostname("x")', 'EPERM'],
    ['reboot', 'syscall(169, 0xfee1dead, 672274793, 0, None)', 'EPERM'],

    ['a device', 'os.mknod("/workspace/disk", 0o60666, os.makedev(254, 0))', 'EPERM'],
  ])('%s is refused', async (_what, code, expected) => {
    expect(await tried(code)).toBe(expected)
  })

  test.each(['os.setuid(0)', 'os.setgid(0)', 'os.setgroups([0])'])(
    '%s is refused, or names nobody there is',
    async (code) => {
      expect(await tried(code)).toMatch(/^(EPERM|EINVAL)$/)
    },
  )

  test('F9 programs with a setuid bit give nothing, and there are no capabilities to have', async () => {
    const status = printed(await own.shell('grep -E "^(Cap|NoNewPrivs|Seccomp:)" /proc/self/status'))
    expect(status).toMatch(
      /CapInh:\t0+\nCapPrm:\t0+\nCapEff:\t0+\nCapBnd:\t0+\nCapAmb:\t0+\nNoNewPrivs:\t1\nSeccomp:\t2\n/,
    )
    const { stderr, return_code } = await own.shell('su -c id root < /dev/null')
    expect([return_code === 0, stderr.includes('uid=0')]).toEqual([false, false])
  })

  test('F10 the kernel cannot be told anything through /proc', async () => {
    for (const path of [
      '/proc/sys/kernel/core_pattern',
      '/proc/sys/vm/drop_caches',
      '/proc/sysrq-trigger',
      '/proc/self/oom_score_adj',
      '/proc/self/uid_map',
    ])
      expect(await tried(`open("${path}", "w").write("0")`)).toMatch(/EROFS|EACCES|EPERM|ENOENT/)
    expect(await tried('os.listdir("/sys/fs/cgroup")')).toBe('ENOENT')
    expect(printed(await own.shell('wc -c < /proc/keys; wc -c < /proc/timer_list; wc -c < /proc/kallsyms'))).toBe(
      '0\n0\n0\n',
    )
  })

  test('F11 there are no devices but the harmless ones', async () => {
    const names = printed(await own.python('import os; print(sorted(os.listdir("/dev")))')).trim()
    expect(names).toBe("['fd', 'full', 'null', 'random', 'shm', 'stderr', 'stdin', 'stdout', 'urandom', 'zero']")
  })

  test('F12 a program holds no descriptor of ours but the pipes and the two connections of its own interpreter', async () => {
    const code =
      'import os\nfor fd in sorted(map(int, os.listdir("/proc/self/fd"))):\n  try: print(fd, os.readlink(f"/proc/self/fd/{fd}").split(":")[0])\n  except OSError: pass'
    const fresh = await backend.open()
    const lines = printed(await fresh.python(code))
      .trim()
      .split('\n')
    const beyond = lines.filter((line) => Number(line.split(' ')[0]) > 2)
    expect(beyond.map((line) => line.split(' ')[1]).sort()).toEqual([
      '/dev/null',
      ...['pipe', 'pipe', 'pipe', 'pipe', 'pipe', 'pipe'],
      ...['socket', 'socket'],
    ])
    expect(
      printed(await fresh.shell('ls /proc/self/fd'))
        .trim()
        .split('\n').length,
    ).toBeLessThanOrEqual(4)
  })

  test('G10 nothing outside can be linked to, and a path of the server is not there', async () => {
    expect(await tried('os.link("/etc/passwd", "/workspace/hard")')).toMatch(/EXDEV|EPERM|EACCES/)
    expect(await tried(`os.listdir("${dirname(import.meta.dirname)}")`)).toBe('ENOENT')
  })
})
