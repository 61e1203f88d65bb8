"""Forks a session whenever the server asks for one, with everything a session needs already loaded."""

import gc
import importlib
import os
import select
import shutil
import signal
import socket
import struct
import sys
import time
import traceback
from _socket import socket as _Socket  # without what Python adds to it, which each session would copy

from . import footprint, framing, interpreter, kernel, limits, processes, wires
from .level_ns import NsLevel
from .level_shared import SharedLevel
from .supervisor import Supervisor

#: what the server orders, and how a session's connections say whose they are: which of these, its number, its ticket
ORDER = struct.Struct(">BI16s")
_OPEN, _END, _LOOK = 1, 2, 3
_CHANNEL, _LINE = 1, 2

_REHEARSALS = 2
_LEARN_SECONDS = 10
_CODE = b"x = 1\nprint(x)"

LEVELS = {"ns": NsLevel, "landlock-uid": SharedLevel, "landlock": SharedLevel, "process": SharedLevel}


def run(control):
    """Never returns. `control` is the socket to the server, whose end is our end."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.umask(0o022)  # that of programs as well
    config = _first_message(control)
    try:
        level = LEVELS[config["level"]](config)
        inside = level.start()
    except Exception as error:  # whatever this machine does not allow: the server tries the next level
        framing.send(control, {"refused": _reason(error)})
        os._exit(1)
    if inside:
        _wait_outside(control, config, inside)
    _preload(config, os.path.join(level.sockets, "preload"))
    config["limits"]["of_program"] = limits.of_program(config["limits"])
    interpreter.prepare()
    if level.workspace:
        _set_environment(config, level)
    zygote = Zygote(control, level, config)
    # collecting garbage would copy pages that sessions share
    gc.collect()
    gc.freeze()
    zygote.learn()
    gc.freeze()
    framing.send(control, {"ready": level.describe(), "python": sys.version.split()[0]})
    zygote.serve()


def _preload(config, scratch):
    """Loads what programs are likely to need. The environment is that of programs, for libraries that look at it once."""
    os.mkdir(scratch, 0o700)
    os.environ.update(config["environment"], MPLCONFIGDIR=scratch, HOME=scratch)
    for name in config["preload"]:
        try:
            importlib.import_module(name)
        except Exception as error:  # not installed, or broken: then it is for programs to find out
            if not isinstance(error, ModuleNotFoundError):
                print(f"{name} is not loaded for all: {_reason(error)}", file=sys.stderr)
    shutil.rmtree(scratch, ignore_errors=True)


def _set_environment(config, level):
    """That of programs: once for all, unless each session has a folder of its own name."""
    os.environ.clear()
    os.environ.update(
        config["environment"], HOME=level.workspace, TMPDIR=level.temporary, MPLCONFIGDIR=level.temporary
    )


class Zygote:
    def __init__(self, control, level, config):
        self._control = control
        self._level = level
        self._config = config
        self._sessions = {}
        self._control_fd = control.fileno()
        self._home = level.workspace
        self._supervisor = Supervisor(level, config)
        #: of a supervisor and of an interpreter
        self._footprints = (b"", b"")
        self._address = f"{level.sockets}/s"
        # the end of a child is an event like the server's messages
        self._woken, wake = os.pipe()
        os.set_blocking(self._woken, False)
        os.set_blocking(wake, False)
        self._wake = wake
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)

    def learn(self):
        """What memory sessions write to, all of them and not just one. Without that they are slower, and no different."""
        try:
            learned = [self._rehearse() for _ in range(_REHEARSALS)]
        except (OSError, ValueError, struct.error) as error:
            print(f"it is not known what sessions write to: {_reason(error)}", file=sys.stderr)
        else:
            self._footprints = tuple(footprint.pack(set.intersection(*pages)) for pages in zip(*learned))
        self._level.forget((), ())

    def _rehearse(self):
        """A session that no client gets: what its supervisor and its interpreter have written to."""
        channel, line = socket.socketpair(), socket.socketpair()
        self._level.prepare(0)
        with footprint.Witness():
            pid = self._level.fork()
            if pid == 0:
                self._become_session(channel[1], line[1], 0)
            try:
                return _learn(pid, line[0])
            finally:
                self._level.end(pid, 0)
                os.waitpid(pid, 0)
                for each in (*channel, *line):
                    each.close()

    def serve(self):
        self._control.setblocking(True)
        poller = select.poll()
        poller.register(self._control, select.POLLIN)
        poller.register(self._woken, select.POLLIN)
        try:
            while True:
                for fd, _ in poller.poll():
                    if fd == self._woken:
                        self._reap()
                    else:
                        self._obey()
        except framing.Closed:
            self._end_all()
            shutil.rmtree(self._config["folder"], ignore_errors=True)
            os._exit(0)

    def _obey(self):
        """Orders come one by one, each as long as the other."""
        order = self._control.recv(ORDER.size, socket.MSG_WAITALL)
        if len(order) != ORDER.size:
            raise framing.Closed
        kind, number, ticket = ORDER.unpack(order)
        if kind == _OPEN:
            self._open(number, ticket)
            return
        for pid, session in self._sessions.items():
            if session[0] != number:
                continue
            if kind == _END:
                self._level.end(pid, session[1])
            elif not self._level.is_still(pid):
                self._tell({"busy": number})

    def _open(self, number, ticket):
        slot = self._free_slot()
        sockets = []
        try:
            for kind in (_CHANNEL, _LINE):
                connection = _Socket(socket.AF_UNIX, socket.SOCK_STREAM)
                sockets.append(connection)
                connection.connect(self._address)
                connection.sendall(ORDER.pack(kind, number, ticket))
            self._level.prepare(slot)
            pid = self._level.fork()
        except OSError as error:
            for each in sockets:
                each.close()
            self._tell({"failed": number, "reason": _reason(error)})
            return
        if pid == 0:
            self._become_session(*sockets, slot)
        for each in sockets:
            each.close()
        self._sessions[pid] = (number, slot)

    def _tell(self, message):
        framing.send(self._control, message)
        self._control.setblocking(True)

    def _become_session(self, channel, line, slot):
        """In the child: lets go of the zygote's things first, and never returns."""
        try:
            footprint.copy(self._footprints[0])
            signal.set_wakeup_fd(-1)
            kernel.default_signal(signal.SIGCHLD)
            os.close(self._control_fd)
            os.close(self._woken)
            os.close(self._wake)
            self._level.enter(slot)
            if self._home != self._level.workspace:
                _set_environment(self._config, self._level)
            self._supervisor.serve(channel, line.detach(), self._footprints[1])
        except BaseException:
            traceback.print_exc()  # to the server's log
            os._exit(1)
        finally:
            os._exit(0)

    def _free_slot(self):
        taken = {slot for _number, slot in self._sessions.values()}
        slot = 0
        while slot in taken:
            slot += 1
        return slot

    def _reap(self):
        try:
            while os.read(self._woken, 512):
                pass
        except BlockingIOError:
            pass
        ended = processes.reap()
        sessions = [pid for pid in ended if pid in self._sessions]
        alive = self._sessions.keys() - ended
        if sessions:
            # a slot is free again once nothing of its session is left
            self._level.forget(alive, ended)
        for pid in sessions:
            del self._sessions[pid]

    def _end_all(self):
        for pid, (_number, slot) in self._sessions.items():
            try:
                self._level.end(pid, slot)
            except OSError:
                pass  # ended meanwhile


def _learn(pid, line):
    pages = footprint.open_pages(pid)  # at once: later on it is not ours to read
    line.settimeout(_LEARN_SECONDS)
    line.recv(wires.READY.size, socket.MSG_WAITALL)
    line.sendall(wires.CALL.pack(1, len(_CODE)) + _CODE)
    wires.ANSWER.unpack(line.recv(wires.ANSWER.size, socket.MSG_WAITALL))
    program = int(processes.read_whole(f"/proc/{pid}/task/{pid}/children"))
    of_program = footprint.open_pages(program)
    try:
        of_interpreter = footprint.read(of_program)
        # what it has in common with its supervisor nobody has alone
        processes.kill(program)
        while os.pread(of_program, 8, 0):
            time.sleep(0.001)
        return footprint.read(pages), of_interpreter
    finally:
        os.close(of_program)
        os.close(pages)


def _wait_outside(control, config, child):
    """The process that stays outside of the namespaces: ends as the one inside does, and tidies up after both."""
    control.close()
    _pid, status = os.waitpid(child, 0)
    shutil.rmtree(config["folder"], ignore_errors=True)
    os._exit(os.WEXITSTATUS(status) if os.WIFEXITED(status) else 1)


def _first_message(control):
    reader = framing.Reader(control)
    control.setblocking(False)
    while True:
        select.select([control], [], [])
        for header, _body in reader.read():
            return header


def _reason(error):
    if isinstance(error, OSError) and error.filename:
        return f"{error.filename}: {error.strerror}"
    return f"{type(error).__name__}: {error}"
