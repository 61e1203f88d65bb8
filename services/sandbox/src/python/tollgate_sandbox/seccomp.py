"""A filter over system calls, which the kernel asks before each of them and no program can take off."""

import ctypes
import errno
import struct

from . import calls
from .kernel import MACHINE, syscall

_NAMESPACE_FLAGS = 0x7E020000
_AF_UNIX, _AF_INET, _AF_INET6, _AF_NETLINK = 1, 2, 10, 16
_TCP, _UDP = 6, 17
_SOCK_STREAM, _SOCK_SEQPACKET = 1, 5
_TIOCSTI, _TIOCLINUX = 0x5412, 0x541C
#: TCGETS, TIOCGWINSZ, TIOCGPGRP, FIONREAD, FIONBIO, FIONCLEX, FIOCLEX: harmless on any file. And the two by which the
#: supervisor reads and answers questions of a filter, for which a program has no descriptor
_PLAIN_IOCTLS = (0x5401, 0x5413, 0x540F, 0x541B, 0x5421, 0x5450, 0x5451, 0xC0502100, 0xC0182101)
#: F_SETOWN, F_SETSIG, F_SETOWN_EX, F_SETLEASE, F_NOTIFY: signals to others, holds on files of the same user
_FAR_FCNTLS = (8, 10, 15, 1024, 1026)

_LOAD, _EQUAL, _ANY_BIT, _GREATER, _AND, _RETURN = 0x20, 0x15, 0x45, 0x25, 0x54, 0x06
_ALLOW, _KILL_PROCESS, _ERRNO, _NOTIFY = 0x7FFF0000, 0x80000000, 0x50000, 0x7FC00000
_NUMBER, _ARCHITECTURE = 0, 4
_ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}


def is_possible():
    """Whether the numbers of this machine's calls are known."""
    return MACHINE in _ARCHITECTURES


def _argument(index, high=False):
    return 16 + 8 * index + (4 if high else 0)


def _op(code, value, when_true=0, when_false=0):
    return struct.pack("=HBBI", code, when_true, when_false, value)


def _refuse(error):
    return _op(_RETURN, _ERRNO | error)


def build(inet, unix, own_root, own_user):
    """A filter program, ready to be installed. `inet`: there is a network of the session's own; `unix`: sockets with names may be made;
    `own_root`, `own_user`: the session shares neither files nor its user with the server."""
    column = 0 if MACHINE == "x86_64" else 1
    program = [
        _op(_LOAD, _ARCHITECTURE),
        _op(_EQUAL, _ARCHITECTURES[MACHINE], 1, 0),
        _op(_RETURN, _KILL_PROCESS),
        _op(_LOAD, _NUMBER),
        _op(_GREATER, calls.REVIEWED, 0, 1),
        _refuse(errno.ENOSYS),
    ]

    def refuse(numbers, error):
        if numbers[column] is not None:
            program.extend((_op(_EQUAL, numbers[column], 0, 1), _refuse(error)))

    def on(numbers, *body):
        """Runs `body`, which may end without a verdict, for one call; the number is loaded again after it."""
        program.append(_op(_EQUAL, numbers[column], 0, len(body) + 1))
        program.extend(body)
        program.append(_op(_LOAD, _NUMBER))

    refused = dict(calls.REFUSED)
    if not own_root:
        refused.update(calls.REFUSED_WITHOUT_ROOT)
    if not own_user:
        refused.update(calls.REFUSED_WITHOUT_USER)
        for numbers in calls.WITHOUT_EFFECT.values():
            refuse(numbers, 0)
        on(calls.IOCTL, *_one_of(_PLAIN_IOCTLS), _refuse(errno.ENOTTY))
        on(calls.FCNTL, *_none_of(_FAR_FCNTLS), _refuse(errno.EPERM))
    for numbers in refused.values():
        refuse(numbers, errno.EPERM)
    refuse(calls.CLONE3, errno.ENOSYS)  # its flags lie in memory, where a filter cannot look; libc then uses clone
    on(calls.CLONE, _op(_LOAD, _argument(0)), _op(_ANY_BIT, _NAMESPACE_FLAGS, 0, 1), _refuse(errno.EPERM))
    on(calls.IOCTL, *_none_of((_TIOCSTI, _TIOCLINUX)), _refuse(errno.EPERM))
    for numbers in calls.OF_A_PROCESS:
        on(numbers, _op(_LOAD, _argument(0)), _op(_EQUAL, 0, 1, 0), _refuse(errno.EPERM))
    for numbers, process in ((calls.SETPRIORITY, 0), (calls.IOPRIO_SET, 1)):
        on(
            numbers,
            _op(_LOAD, _argument(0)),
            _op(_EQUAL, process, 0, 2),
            _op(_LOAD, _argument(1)),
            _op(_EQUAL, 0, 1, 0),
            _refuse(errno.EPERM),
        )
    on(
        calls.SOCKETPAIR,
        _op(_LOAD, _argument(0)),
        _op(_EQUAL, _AF_UNIX, 0, 4),
        _op(_LOAD, _argument(1)),
        _op(_AND, 0xF),
        _op(_EQUAL, _SOCK_STREAM, 2, 0),  # a datagram pair could be sent from to any address
        _op(_EQUAL, _SOCK_SEQPACKET, 1, 0),
        _refuse(errno.EAFNOSUPPORT),
    )
    on(calls.SOCKET, *_socket_rules(inet, unix))
    program.append(_op(_RETURN, _ALLOW))
    return Filter(program)


def _one_of(values):
    """Tests the second argument; falls through to what stands next when it is none of these, and passes it else."""
    count = len(values)
    return [
        _op(_LOAD, _argument(1)),
        *(_op(_EQUAL, value, count - index, 0) for index, value in enumerate(values)),
    ]


def _none_of(values):
    """Falls through when the second argument is one of these, and passes what stands next else."""
    count = len(values)
    return [
        _op(_LOAD, _argument(1)),
        *(
            _op(_EQUAL, value, count - index - 1, 0 if index < count - 1 else 1)
            for index, value in enumerate(values)
        ),
    ]


def _socket_rules(inet, unix):
    """Stream and datagram sockets of the families that are there; routing questions, which resolvers ask, if any."""
    families = ([_AF_INET, _AF_INET6] if inet else []) + ([_AF_UNIX] if unix else [])
    rules = [_op(_LOAD, _argument(0))]
    if inet:
        rules += [
            _op(_EQUAL, _AF_NETLINK, 0, 4),
            _op(_LOAD, _argument(2)),
            _op(_EQUAL, 0, 0, 1),
            _op(_RETURN, _ALLOW),
            _refuse(errno.EAFNOSUPPORT),
        ]
    for family in families:
        rules += [
            _op(_EQUAL, family, 0, 9),
            _op(_LOAD, _argument(1)),
            _op(_AND, 0xF),
            _op(_GREATER, 2, 5, 0),  # above SOCK_STREAM and SOCK_DGRAM lie raw and stranger ones
            _op(_LOAD, _argument(2)),
            _op(_EQUAL, 0, 2, 0),
            _op(_EQUAL, _TCP, 1, 0),
            _op(_EQUAL, _UDP, 0, 1),
            _op(_RETURN, _ALLOW),
            _refuse(errno.EPERM),
        ]
    return rules + [_refuse(errno.EAFNOSUPPORT)]


def build_signal_questions():
    """A second filter: whom a signal may go to is not for a filter to know. Those to one's own group need no question."""
    column = 0 if MACHINE == "x86_64" else 1
    kill = calls.SIGNALS["kill"][column]
    program = [
        _op(_LOAD, _NUMBER),
        _op(_EQUAL, kill, 0, 4),
        _op(_LOAD, _argument(0)),
        _op(_EQUAL, 0, 0, 1),
        _op(_RETURN, _ALLOW),
        _op(_RETURN, _NOTIFY),
    ]
    for name, numbers in calls.SIGNALS.items():
        if name != "kill":
            program += [_op(_EQUAL, numbers[column], 0, 1), _op(_RETURN, _NOTIFY)]
    return Filter([*program, _op(_RETURN, _ALLOW)])


_SET_MODE_FILTER, _NEW_LISTENER = 1, 8


class Filter:
    """A program as the kernel takes it, laid out once for all sessions."""

    def __init__(self, program):
        code = b"".join(program)
        self._code = ctypes.create_string_buffer(code, len(code))
        self._header = ctypes.c_char_p(struct.pack("=HxxxxxxQ", len(program), ctypes.addressof(self._code)))

    def install(self):
        """Needs no_new_privs; holds for the process and all that it starts."""
        self._set(0)

    def install_with_listener(self):
        """Like `install`; returns a descriptor by which another process answers what the filter does not decide."""
        return self._set(_NEW_LISTENER)

    def _set(self, flags):
        return syscall("seccomp", ctypes.c_long(_SET_MODE_FILTER), ctypes.c_long(flags), self._header)
