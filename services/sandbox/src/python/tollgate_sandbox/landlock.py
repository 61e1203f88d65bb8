"""Landlock: which files a process may reach, decided once and inherited by all it starts."""

import ctypes
import os
import struct

from .kernel import syscall

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1, 2, 4, 8
_TRUNCATE, _IOCTL_DEV = 1 << 14, 1 << 15
#: how many file rights each version of the interface knows
_RIGHTS = {1: 13, 2: 14, 3: 15, 4: 15, 5: 16}
_NET_BIND_AND_CONNECT_TCP = 3
_SCOPE_ABSTRACT_SOCKETS_AND_SIGNALS = 3
_RULE_PATH_BENEATH = 1


def version():
    """The kernel's Landlock ABI; 0 without one. From 6 on it keeps signals and abstract sockets inside a domain."""
    try:
        return syscall("landlock_create_ruleset", None, ctypes.c_size_t(0), ctypes.c_long(1))
    except OSError:
        return 0


def restrict(read=(), write=(), devices=(), network=False, scoped=True):
    """Leaves reading below `read`, everything below `write`, plain reading and writing of `devices`, and nothing else.

    Without `network` TCP is refused as well; `scoped` keeps signals and abstract sockets among ourselves, where the
    kernel can. Paths that do not exist are passed over.
    """
    abi = version()
    rights = (1 << _RIGHTS.get(abi, 16)) - 1
    net = _NET_BIND_AND_CONNECT_TCP if abi >= 4 and not network else 0
    scope = _SCOPE_ABSTRACT_SOCKETS_AND_SIGNALS if abi >= 6 and scoped else 0
    size = 24 if abi >= 6 else 16 if abi >= 4 else 8
    attributes = struct.pack("=QQQ", rights, net, scope)
    ruleset = syscall(
        "landlock_create_ruleset", ctypes.c_char_p(attributes), ctypes.c_size_t(size), ctypes.c_long(0)
    )
    try:
        for path in read:
            _allow(ruleset, path, _READ_FILE | _EXECUTE, _READ_DIR)
        for path in write:
            _allow(ruleset, path, rights, 0)
        for path in devices:
            _allow(ruleset, path, (_READ_FILE | _WRITE_FILE | _TRUNCATE | _IOCTL_DEV) & rights, 0)
        syscall("landlock_restrict_self", ctypes.c_long(ruleset), ctypes.c_long(0))
    finally:
        os.close(ruleset)


def _allow(ruleset, path, rights, folder_rights):
    try:
        fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    try:
        if os.path.isdir(path):
            rights |= folder_rights
        rule = struct.pack("=Qi", rights, fd)
        syscall(
            "landlock_add_rule",
            ctypes.c_long(ruleset),
            ctypes.c_long(_RULE_PATH_BENEATH),
            ctypes.c_char_p(rule),
            ctypes.c_long(0),
        )
    finally:
        os.close(fd)
