"""The system calls that sandboxed code may not make.

Every call up to `_REVIEWED` was looked at: those named here are refused, the rest are ordinary. Calls that are newer do
not exist for sandboxed code, so that what a later kernel adds is closed until somebody has looked at it.
"""

import ctypes
import errno
import struct

from .kernel import MACHINE, syscall

_REVIEWED = 450

#: name: (x86_64, aarch64); None where the machine has no such call
_REFUSED = {
    # other processes' memory and descriptors
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "process_madvise": (440, 440),
    "process_mrelease": (448, 448),
    "kcmp": (312, 272),
    "pidfd_getfd": (438, 438),
    # namespaces and mounts
    "unshare": (272, 97),
    "setns": (308, 268),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    # large or young kernel interfaces that programs of a sandbox do without
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "io_setup": (206, 0),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "fanotify_init": (300, 262),
    "fanotify_mark": (301, 263),
    "open_by_handle_at": (304, 265),
    "name_to_handle_at": (303, 264),
    "remap_file_pages": (216, 234),
    "mbind": (237, 235),
    "set_mempolicy": (238, 237),
    "set_mempolicy_home_node": (450, 450),
    "migrate_pages": (256, 238),
    "move_pages": (279, 239),
    # memory that no process's size shows: it could not be bounded
    "memfd_create": (319, 279),
    "memfd_secret": (447, 447),
    "shmget": (29, 194),
    "shmat": (30, 196),
    "shmctl": (31, 195),
    "semget": (64, 190),
    "semctl": (66, 191),
    "msgget": (68, 186),
    "msgctl": (71, 187),
    "mq_open": (240, 180),
    "mq_unlink": (241, 181),
    # the machine itself
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "reboot": (169, 142),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "acct": (163, 89),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "syslog": (103, 116),
    "settimeofday": (164, 170),
    "clock_settime": (227, 112),
    "clock_adjtime": (305, 266),
    "adjtimex": (159, 171),
    "sethostname": (170, 161),
    "setdomainname": (171, 162),
    "vhangup": (153, 58),
    "personality": (135, 92),
    "lookup_dcookie": (212, 18),
    "nfsservctl": (180, 42),
    "iopl": (172, None),
    "ioperm": (173, None),
    "modify_ldt": (154, None),
    "uselib": (134, None),
    "ustat": (136, None),
    "sysfs": (139, None),
    "_sysctl": (156, None),
    "create_module": (174, None),
    "get_kernel_syms": (177, None),
    "query_module": (178, None),
    "afs_syscall": (183, None),
    "vserver": (236, None),
}

#: refused as well where sessions share a file system with the host: names of files elsewhere could be watched
_REFUSED_WITHOUT_ROOT = {
    "inotify_init": (253, None),
    "inotify_init1": (294, 26),
    "inotify_add_watch": (254, 27),
}

#: refused as well where sessions share a user with the server: a file or a process of that user could be reached
_REFUSED_WITHOUT_USER = {
    "truncate": (76, 45),
    "pidfd_send_signal": (424, 424),
}

#: Landlock does not rule over modes, owners and times, so where sessions share a user with the server these do nothing.
#: They answer 0: copying a file would fail otherwise, for the sake of its date.
_WITHOUT_EFFECT = {
    "chmod": (90, None),
    "fchmod": (91, 52),
    "fchmodat": (268, 53),
    "chown": (92, None),
    "fchown": (93, 55),
    "lchown": (94, None),
    "fchownat": (260, 54),
    "utime": (132, None),
    "utimes": (235, None),
    "futimesat": (261, None),
    "utimensat": (280, 88),
    "setxattr": (188, 5),
    "lsetxattr": (189, 6),
    "fsetxattr": (190, 7),
    "removexattr": (197, 14),
    "lremovexattr": (198, 15),
    "fremovexattr": (199, 16),
}

#: asked of the supervisor where sessions share a user with the server: is the process that is signalled one of theirs?
SIGNALS = {
    "kill": (62, 129),
    "tkill": (200, 130),
    "tgkill": (234, 131),
    "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240),
}

_CLONE, _CLONE3, _SOCKET, _SOCKETPAIR = (56, 220), (435, 435), (41, 198), (53, 199)
_IOCTL, _FCNTL = (16, 29), (72, 25)
_SETPRIORITY, _IOPRIO_SET = (141, 140), (251, 30)
#: their first argument is a process; only 0, oneself, is let through
_OF_A_PROCESS = ((302, 261), (203, 122), (144, 119), (142, 118), (314, 274))

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


def _argument(index, high=False):
    return 16 + 8 * index + (4 if high else 0)


def _op(code, value, when_true=0, when_false=0):
    return struct.pack("=HBBI", code, when_true, when_false, value)


def _refuse(error):
    return _op(_RETURN, _ERRNO | error)


def build(inet, unix, own_root, own_user):
    """A filter program. `inet`: there is a network of the session's own; `unix`: sockets with names may be made;
    `own_root`, `own_user`: the session shares neither files nor its user with the server."""
    column = 0 if MACHINE == "x86_64" else 1
    program = [
        _op(_LOAD, _ARCHITECTURE),
        _op(_EQUAL, _ARCHITECTURES[MACHINE], 1, 0),
        _op(_RETURN, _KILL_PROCESS),
        _op(_LOAD, _NUMBER),
        _op(_GREATER, _REVIEWED, 0, 1),
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

    refused = dict(_REFUSED)
    if not own_root:
        refused.update(_REFUSED_WITHOUT_ROOT)
    if not own_user:
        refused.update(_REFUSED_WITHOUT_USER)
        for numbers in _WITHOUT_EFFECT.values():
            refuse(numbers, 0)
        on(_IOCTL, *_one_of(_PLAIN_IOCTLS), _refuse(errno.ENOTTY))
        on(_FCNTL, *_none_of(_FAR_FCNTLS), _refuse(errno.EPERM))
    for numbers in refused.values():
        refuse(numbers, errno.EPERM)
    refuse(_CLONE3, errno.ENOSYS)  # its flags lie in memory, where a filter cannot look; libc then uses clone
    on(_CLONE, _op(_LOAD, _argument(0)), _op(_ANY_BIT, _NAMESPACE_FLAGS, 0, 1), _refuse(errno.EPERM))
    on(_IOCTL, *_none_of((_TIOCSTI, _TIOCLINUX)), _refuse(errno.EPERM))
    for numbers in _OF_A_PROCESS:
        on(numbers, _op(_LOAD, _argument(0)), _op(_EQUAL, 0, 1, 0), _refuse(errno.EPERM))
    for numbers, process in ((_SETPRIORITY, 0), (_IOPRIO_SET, 1)):
        on(
            numbers,
            _op(_LOAD, _argument(0)),
            _op(_EQUAL, process, 0, 2),
            _op(_LOAD, _argument(1)),
            _op(_EQUAL, 0, 1, 0),
            _refuse(errno.EPERM),
        )
    on(
        _SOCKETPAIR,
        _op(_LOAD, _argument(0)),
        _op(_EQUAL, _AF_UNIX, 0, 4),
        _op(_LOAD, _argument(1)),
        _op(_AND, 0xF),
        _op(_EQUAL, _SOCK_STREAM, 2, 0),  # a datagram pair could be sent from to any address
        _op(_EQUAL, _SOCK_SEQPACKET, 1, 0),
        _refuse(errno.EAFNOSUPPORT),
    )
    on(_SOCKET, *_socket_rules(inet, unix))
    program.append(_op(_RETURN, _ALLOW))
    return program


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
    kill = SIGNALS["kill"][column]
    program = [
        _op(_LOAD, _NUMBER),
        _op(_EQUAL, kill, 0, 4),
        _op(_LOAD, _argument(0)),
        _op(_EQUAL, 0, 0, 1),
        _op(_RETURN, _ALLOW),
        _op(_RETURN, _NOTIFY),
    ]
    for name, numbers in SIGNALS.items():
        if name != "kill":
            program += [_op(_EQUAL, numbers[column], 0, 1), _op(_RETURN, _NOTIFY)]
    return program + [_op(_RETURN, _ALLOW)]


_SET_MODE_FILTER, _NEW_LISTENER = 1, 8


def install(program):
    """Needs no_new_privs; holds for the process and all that it starts."""
    _set_filter(program, 0)


def install_with_listener(program):
    """Like `install`; returns a descriptor by which another process answers what the filter does not decide."""
    return _set_filter(program, _NEW_LISTENER)


def _set_filter(program, flags):
    code = b"".join(program)
    buffer = ctypes.create_string_buffer(code, len(code))
    header = struct.pack("=HxxxxxxQ", len(program), ctypes.addressof(buffer))
    return syscall("seccomp", ctypes.c_long(_SET_MODE_FILTER), ctypes.c_long(flags), ctypes.c_char_p(header))
