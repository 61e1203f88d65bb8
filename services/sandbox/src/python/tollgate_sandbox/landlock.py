"""Landlock: which files a process may reach, decided once and inherited by all it starts."""

import ctypes
import os
import struct

from .kernel import prepare_syscall, syscall

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1, 2, 4, 8
_TRUNCATE, _IOCTL_DEV = 1 << 14, 1 << 15
#: how many file rights each version of the interface knows
_RIGHTS = {1: 13, 2: 14, 3: 15, 4: 15, 5: 16}
_NET_BIND_AND_CONNECT_TCP = 3
_SCOPE_ABSTRACT_SOCKETS_AND_SIGNALS = 3
_RULE_PATH_BENEATH = 1
_RULE = struct.Struct("=Qi")


def version():
    """The kernel's Landlock ABI; 0 without one. From 6 on it keeps signals and abstract sockets inside a domain."""
    try:
        return syscall("landlock_create_ruleset", None, ctypes.c_size_t(0), ctypes.c_long(1))
    except OSError:
        return 0


class Rules:
    """Leave reading below `read`, everything below `write`, plain reading and writing of `devices`, and nothing else.

    Without `network` TCP is refused as well; `scoped` keeps signals and abstract sockets among ourselves, where the
    kernel can. Paths that do not exist are passed over.
    """

    def __init__(self, read=(), write=(), devices=(), network=False, scoped=True):
        abi = version()
        rights = (1 << _RIGHTS.get(abi, 16)) - 1
        net = _NET_BIND_AND_CONNECT_TCP if abi >= 4 and not network else 0
        scope = _SCOPE_ABSTRACT_SOCKETS_AND_SIGNALS if abi >= 6 and scoped else 0
        size = 24 if abi >= 6 else 16 if abi >= 4 else 8
        attributes = struct.pack("=QQQ", rights, net, scope)
        self._create = prepare_syscall(
            "landlock_create_ruleset", ctypes.c_char_p(attributes), ctypes.c_size_t(size), ctypes.c_long(0)
        )
        of_device = (_READ_FILE | _WRITE_FILE | _TRUNCATE | _IOCTL_DEV) & rights
        allowed = [(path, _READ_FILE | _EXECUTE | (_READ_DIR if os.path.isdir(path) else 0)) for path in read]
        allowed += [(path, rights) for path in write] + [(path, of_device) for path in devices]
        self._allowed = tuple((os.fsencode(path), rights) for path, rights in allowed)

    def restrict(self):
        """From here on they hold, for this process and all that it starts. The paths are looked up now."""
        ruleset = self._create()
        into = ctypes.c_long(ruleset)
        try:
            for path, rights in self._allowed:
                _allow(into, path, rights)
            syscall("landlock_restrict_self", into, _NO_FLAGS)
        finally:
            os.close(ruleset)


_NO_FLAGS = ctypes.c_long(0)
_BENEATH = ctypes.c_long(_RULE_PATH_BENEATH)


def restrict(**rules):
    Rules(**rules).restrict()


def _allow(ruleset, path, rights):
    try:
        fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    try:
        syscall("landlock_add_rule", ruleset, _BENEATH, _RULE.pack(rights, fd), _NO_FLAGS)
    finally:
        os.close(fd)
