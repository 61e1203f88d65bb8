"""A process that starts a session's shells, and runs none of their code itself.

It has the rights and the limits of a program already, so a shell is started from it without a copy of its memory, which
costs the supervisor far more than the shell does. What runs in the session could end it or speak for it: nothing that it
says is believed beyond the exit code of a command.
"""

import errno
import os
import signal
import socket
import struct

#: a command, which comes with the two pipes to write to: its length
COMMAND = struct.Struct(">I")
#: its end: whether it was started, and its status or the reason
ENDED = struct.Struct(">Bi")
_CONTROL = 3
_FD = struct.Struct("@i")


def run(control, shell, environment):
    """Never returns. `control` is the supervisor's end's counterpart."""
    os.dup2(control, _CONTROL, inheritable=False)
    os.closerange(_CONTROL + 1, 4096)
    null = os.open("/dev/null", os.O_RDWR)
    for standard in (0, 1, 2):
        os.dup2(null, standard)
    for number in (signal.SIGINT, signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)
    supervisor = socket.socket(fileno=_CONTROL)
    while True:
        head, pipes = _take(supervisor)
        if len(head) != COMMAND.size or len(pipes) != 2:
            os._exit(0)
        supervisor.sendall(_run(shell, environment, _receive(supervisor, *COMMAND.unpack(head)), pipes))


def _take(supervisor):
    """The head of a command and its pipes, which no shell inherits (`recv_fds` of older Pythons lets the flag fall)."""
    room = socket.CMSG_SPACE(2 * _FD.size)
    head, ancillary, _flags, _address = supervisor.recvmsg(COMMAND.size, room, socket.MSG_CMSG_CLOEXEC)
    return head, [fd for _level, _kind, data in ancillary for (fd,) in _FD.iter_unpack(data)]


def _run(shell, environment, text, pipes):
    actions = [(os.POSIX_SPAWN_DUP2, pipe, standard) for standard, pipe in enumerate(pipes, 1)]
    try:
        pid = os.posix_spawn(shell, [os.path.basename(shell), b"-c", text], environment, file_actions=actions, setpgroup=0)
    except (OSError, ValueError) as error:
        return ENDED.pack(False, getattr(error, "errno", errno.EINVAL))
    finally:
        for pipe in pipes:
            os.close(pipe)
    return ENDED.pack(True, os.waitpid(pid, 0)[1])


def _receive(supervisor, length):
    data = bytearray()
    while len(data) < length:
        piece = supervisor.recv(length - len(data))
        if not piece:
            os._exit(0)
        data += piece
    return bytes(data)
