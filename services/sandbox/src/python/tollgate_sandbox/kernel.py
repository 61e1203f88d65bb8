"""The Linux calls that Python has no name for."""

import ctypes
import os
import platform
import struct

libc = ctypes.CDLL(None, use_errno=True)
_syscall = libc.syscall

MACHINE = platform.machine()
if MACHINE == "x86_64":
    _NUMBERS = {"unshare": 272, "setns": 308, "pivot_root": 155, "capset": 126, "seccomp": 317}
elif MACHINE == "aarch64":
    _NUMBERS = {"unshare": 97, "setns": 268, "pivot_root": 41, "capset": 91, "seccomp": 277}
else:
    _NUMBERS = {}
# the same on every machine, as all calls since 5.1 are
_NUMBERS.update(
    openat2=437,
    mount_setattr=442,
    landlock_create_ruleset=444,
    landlock_add_rule=445,
    landlock_restrict_self=446,
)

NEWNS, NEWCGROUP, NEWUTS, NEWIPC = 0x20000, 0x2000000, 0x4000000, 0x8000000
NEWUSER, NEWPID, NEWNET = 0x10000000, 0x20000000, 0x40000000

MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_BIND, MS_MOVE, MS_REC, MS_PRIVATE = 2, 4, 8, 4096, 8192, 16384, 1 << 18
MNT_DETACH = 2
_AT_FDCWD, _AT_RECURSIVE = -100, 0x8000
ATTR_RDONLY, ATTR_NOSUID, ATTR_NODEV, ATTR_NOEXEC = 1, 2, 4, 8

_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_CAPBSET_DROP, _PR_SET_CHILD_SUBREAPER = 1, 4, 24, 36
_PR_SET_NO_NEW_PRIVS, _PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL = 38, 47, 4
_LAST_CAPABILITY = 40

_AF_INET, _SOCK_DGRAM, _SIOCSIFFLAGS = 2, 2, 0x8914
_LOOPBACK_UP = ctypes.c_char_p(struct.pack("16sH14x", b"lo", 0x1 | 0x40))

RESOLVE_NO_MAGICLINKS, RESOLVE_BENEATH = 0x02, 0x08


def _check(result, what):
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), what)
    return result


class Prepared:
    """A call with its arguments as the kernel takes them, laid out once for all sessions: whatever a session makes for
    itself, and every name that it looks up first, copies memory that it shares."""

    __slots__ = ("_function", "_arguments", "_what")

    def __init__(self, what, function, *arguments):
        self._what = what
        self._function = function
        self._arguments = arguments

    def __call__(self):
        return _check(self._function(*self._arguments), self._what)


def _number(name):
    number = _NUMBERS.get(name)
    if number is None:
        raise OSError(38, f"unknown on {MACHINE}", name)
    return ctypes.c_long(number)


def prepare_syscall(name, *arguments):
    return Prepared(name, _syscall, _number(name), *arguments)


def syscall(name, *arguments):
    """Raises OSError with the call's name as its file name, so that a refusal says what was refused."""
    return _check(_syscall(_number(name), *arguments), name)


def _prepare_prctl(option, *arguments):
    padded = (arguments + (0, 0, 0, 0))[:4]
    return Prepared(f"prctl {option}", libc.prctl, ctypes.c_int(option), *(ctypes.c_ulong(value) for value in padded))


_fork = ctypes.PyDLL(None, use_errno=True).fork


def fork():
    """Like os.fork() without what that does for processes with threads, and has every loaded library do: of this kind are
    neither the zygote nor a supervisor, and it takes longer than all else at the beginning of a session."""
    return _check(_fork(), "fork")


def prepare_unshare(flags):
    return prepare_syscall("unshare", ctypes.c_long(flags))


def unshare(flags):
    prepare_unshare(flags)()


def prepare_setns(fd, kind):
    return prepare_syscall("setns", ctypes.c_long(fd), ctypes.c_long(kind))


def pivot_root_here():
    """Makes the working directory the root, and lets go of the old one."""
    syscall("pivot_root", b".", b".")
    _check(libc.umount2(b".", MNT_DETACH), "umount2 old root")
    os.chdir("/")


def prepare_mount(source, target, kind=None, flags=0, data=None):
    encoded = [os.fsencode(value) if value is not None else None for value in (source, target, kind)]
    options = data.encode() if data else None
    return Prepared(f"mount {target}", libc.mount, *encoded, ctypes.c_ulong(flags), options)


def mount(source, target, kind=None, flags=0, data=None):
    prepare_mount(source, target, kind, flags, data)()


def prepare_unmount(target):
    return Prepared(f"umount2 {target}", libc.umount2, os.fsencode(target), MNT_DETACH)


def prepare_restriction(target, attributes, below=True):
    """Adds read-only, nosuid and the like to a mount and to those below it; flags they have already are kept."""
    attr = struct.pack("=QQQQ", attributes, 0, 0, 0)
    return prepare_syscall(
        "mount_setattr",
        ctypes.c_long(_AT_FDCWD),
        ctypes.c_char_p(os.fsencode(target)),
        ctypes.c_long(_AT_RECURSIVE if below else 0),
        ctypes.c_char_p(attr),
        ctypes.c_size_t(len(attr)),
    )


def restrict_mount(target, attributes, below=True):
    prepare_restriction(target, attributes, below)()


def openat2(folder_fd, path, flags, mode=0):
    """Opens below a folder: a path that leaves it, by `..` or by a link, fails in the kernel and not in a check before."""
    how = struct.pack("=QQQ", flags | os.O_CLOEXEC, mode if flags & os.O_CREAT else 0, RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS)
    return syscall(
        "openat2",
        ctypes.c_long(folder_fd),
        ctypes.c_char_p(os.fsencode(path)),
        ctypes.c_char_p(how),
        ctypes.c_size_t(len(how)),
    )


die_with_parent = _prepare_prctl(_PR_SET_PDEATHSIG, 9)
adopt_orphans = _prepare_prctl(_PR_SET_CHILD_SUBREAPER, 1)
_default_signal = libc.signal


def default_signal(number):
    """What signal.signal() does for SIG_DFL, as far as the kernel is concerned."""
    _default_signal(number, None)


def prepare_limit(kind, value):
    """Soft and hard limit alike."""
    return Prepared(f"setrlimit {kind}", libc.setrlimit, kind, ctypes.c_char_p(struct.pack("=QQ", value, value)))


#: no ptrace, no /proc/<pid>/mem, environ or fd for a process of the same user
hide_memory = _prepare_prctl(_PR_SET_DUMPABLE, 0)
#: the opposite, for a user's program: how much memory it takes can then be read exactly
show_memory = _prepare_prctl(_PR_SET_DUMPABLE, 1)
#: from here on no program gives more rights than its caller has, whatever its file says
refuse_new_privileges = _prepare_prctl(_PR_SET_NO_NEW_PRIVS, 1)


def forget_capability_bounds():
    for capability in range(_LAST_CAPABILITY + 1):
        try:
            _prepare_prctl(_PR_CAPBSET_DROP, capability)()
        except OSError:
            pass  # unknown to an older kernel, or never held by an ordinary user


_clear_ambient = _prepare_prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL)
_clear_capabilities = (
    prepare_syscall("capset", ctypes.c_char_p(struct.pack("=Ii", 0x20080522, 0)), ctypes.c_char_p(bytes(24)))
    if "capset" in _NUMBERS
    else None
)


def drop_capabilities():
    _clear_ambient()
    _clear_capabilities()


_socket, _ioctl = libc.socket, libc.ioctl
_FLAGS_OF_AN_INTERFACE = ctypes.c_ulong(_SIOCSIFFLAGS)


def loopback_up():
    probe = _check(_socket(_AF_INET, _SOCK_DGRAM, 0), "socket")
    try:
        _check(_ioctl(probe, _FLAGS_OF_AN_INTERFACE, _LOOPBACK_UP), "loopback")
    finally:
        os.close(probe)


def set_host_name(name):
    _check(libc.sethostname(name, ctypes.c_size_t(len(name))), "sethostname")
