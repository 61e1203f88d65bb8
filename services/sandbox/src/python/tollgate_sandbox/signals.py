"""Whom a program may signal, where it has the same user as the server: its own session, and nobody else.

The filter stops the call and asks; the answer lets it go on or refuses it. Process numbers are in the call itself, not in
memory, so they cannot be changed between the question and the answer.
"""

import array
import ctypes
import errno
import fcntl
import os
import socket
import struct

from . import calls, processes, seccomp
from .kernel import MACHINE

_REQUEST = struct.Struct("=QII iIQ 6Q")
_ANSWER = struct.Struct("=QqiI")
_RECEIVE, _SEND = 0xC0502100, 0xC0182101
_CONTINUE = 1
#: made once for all sessions
_QUESTIONS = seccomp.build_signal_questions() if seccomp.is_possible() else None


def guard_program(channel):
    """In the program: from here on the other end of `channel` is asked about every signal."""
    listener = _QUESTIONS.install_with_listener()
    try:
        channel.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [listener]))])
    finally:
        os.close(listener)


class Guard:
    """In the supervisor: the questions of one program and of all it starts."""

    def __init__(self, channel):
        _data, ancillary, _flags, _address = channel.recvmsg(1, socket.CMSG_SPACE(array.array("i").itemsize))
        if not ancillary:
            raise OSError(errno.EPROTO, "no guard over signals", "seccomp listener")
        self.listener = array.array("i", ancillary[0][2])[0]
        os.set_inheritable(self.listener, False)
        self._column = 0 if MACHINE == "x86_64" else 1

    def answer(self):
        """One question that is waiting."""
        buffer = bytearray(_REQUEST.size)
        try:
            fcntl.ioctl(self.listener, _RECEIVE, buffer)
        except OSError:
            return  # whoever asked is gone
        request, _pid, _flags, number, _arch, _pointer, *arguments = _REQUEST.unpack(buffer)
        allowed = self._may(number, arguments)
        answer = _ANSWER.pack(request, 0, 0 if allowed else -errno.EPERM, _CONTINUE if allowed else 0)
        try:
            fcntl.ioctl(self.listener, _SEND, bytearray(answer))
        except OSError:
            pass  # gone while we looked

    def close(self):
        os.close(self.listener)

    def _may(self, number, arguments):
        target = ctypes.c_int(arguments[0] & 0xFFFFFFFF).value
        ours = os.getpid()
        if target > 0:
            return target != ours and processes.comes_from(target, ours)
        if target == -1 or number != calls.SIGNALS["kill"][self._column]:
            return False
        members = processes.group(-target)
        return bool(members) and all(pid != ours and processes.comes_from(pid, ours) for pid in members)
