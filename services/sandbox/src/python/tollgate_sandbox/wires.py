"""By what an interpreter hears of calls and tells their end: a wire to the supervisor, and a line to the server itself.

Most calls are over before anybody need look at them. Such a call comes by the line, and its end goes back by it with all
that was written. When it takes longer, the supervisor takes it over: it keeps the time, takes the output while it is
written, and is told the end. One byte in a pipe decides between the two: whoever takes it first has the call's end.
"""

import os
import select
import struct

from .output import CHUNK, Output, drain_all

#: a call: its number and the length of its code
CALL = struct.Struct(">II")
#: its end, as the supervisor is told: the number again and the exit code
ENDED = struct.Struct(">Ii")
#: its end on the line: the same, the lengths of both outputs and what was dropped of them, when the workspace last changed
ANSWER = struct.Struct(">IiIIIIQ")
#: the first word on the line, before any program ran: when the workspace last changed
READY = struct.Struct(">Q")

#: above the descriptors a user's program may hold, so that closing everything it opened does not close these
HIGH = 200
_CONTROL, _LINE, _STDOUT, _STDERR, _CLAIM, _CLAIMED = range(6)
#: places that are left
OTHERS = 6

# a program may put its own things into the modules that it shares with us
_read, _write, _stat, _getpid = os.read, os.write, os.stat, os.getpid


class Line:
    """What the supervisor shares with an interpreter that has a line. `claim` is the pipe with the byte."""

    def __init__(self, fd):
        self.fd = fd
        self.claim = os.pipe()
        os.set_blocking(self.claim[0], False)

    def own_ends(self):
        """Run by the supervisor once the interpreter is there."""
        of_our_own(self.claim[0])

    def take_over(self):
        """Run by the supervisor: whether the end of the call that is under way is for it to hear."""
        return _has_claim(self.claim[0])

    def close(self):
        for fd in self.claim:
            os.close(fd)


class Wires:
    """The interpreter's ends. `outputs` are those to read from what its program writes."""

    def __init__(self, control, line, outputs, workspace, output_bytes):
        self._control = move_up(control, _CONTROL)
        self._line = None
        self._most = output_bytes
        self._workspace = workspace
        self._owner = _getpid()
        self._poller = select.poll()
        self._poller.register(self._control, select.POLLIN)
        if line:
            self._line = move_up(line.fd, _LINE)
            self._outputs = (move_up(outputs[0], _STDOUT), move_up(outputs[1], _STDERR))
            self._claim = (move_up(line.claim[0], _CLAIM), move_up(line.claim[1], _CLAIMED))
            self._poller.register(self._line, select.POLLIN)

    def say_ready(self):
        """To the server: from now on it may call."""
        if self._line is not None:
            _send(self._line, READY.pack(_stat(self._workspace).st_ctime_ns))

    def next_call(self):
        """Waits for one: the wire it came by, its number, its code."""
        while True:
            for fd, _ in self._poll():
                call = self._take(fd)
                if call:
                    return call

    def tell(self, wire, number, code):
        """The end of a call. A copy of this process, made by its program, is not asked for one and ends here."""
        if _getpid() != self._owner:
            os._exit(code & 0xFF)
        if wire == self._line and _has_claim(self._claim[0]):
            (out, out_dropped), (err, err_dropped) = (self._written(fd) for fd in self._outputs)
            changed = _stat(self._workspace).st_ctime_ns
            head = ANSWER.pack(number, code, len(out), len(err), out_dropped, err_dropped, changed)
            _send(self._line, head + out + err)
        else:
            _send(self._control, ENDED.pack(number, code))

    def _poll(self):
        try:
            return self._poller.poll()
        except MemoryError:
            raise
        except BaseException as error:
            if getattr(error, "errno", None) is not None:
                raise
            return ()  # a handler of the program's raised it, for a signal that came between calls

    def _take(self, fd):
        data = _read(fd, CHUNK)
        if not data and fd == self._control:
            os._exit(0)
        if not data:
            self._poller.unregister(fd)
            return None
        while len(data) < CALL.size:
            data += _more(fd)
        number, length = CALL.unpack_from(data)
        code = data[CALL.size :]
        while len(code) < length:
            code += _more(fd)
        if fd == self._line:
            for output in self._outputs:
                self._written(output)  # by threads of earlier calls since then: it is nobody's
            _write(self._claim[1], b"!")
        return fd, number, code.decode("utf-8", "replace")

    def _written(self, fd):
        """All that a call wrote into one pipe, and how much of it was dropped."""
        try:
            data = _read(fd, CHUNK)
        except BlockingIOError:
            return b"", 0
        if len(data) < CHUNK and len(data) <= self._most:
            return data, 0
        output = Output(self._most)
        output.add(data)
        drain_all(fd, output)
        return bytes(output.kept), output.dropped


def of_our_own(fd):
    """Gives a pipe's end to read from flags of its own: another process reads from there too, and could have us wait."""
    own = os.open(f"/proc/self/fd/{fd}", os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    os.dup2(own, fd, inheritable=False)
    os.close(own)


def move_up(fd, place):
    """What it was called before is closed with all that lies below `HIGH`."""
    return os.dup2(fd, HIGH + place, inheritable=False)


def _has_claim(fd):
    try:
        return len(_read(fd, 1)) == 1
    except OSError:
        return False


def _more(fd):
    data = _read(fd, CHUNK)
    if not data:
        os._exit(0)
    return data


def _send(fd, data):
    while data:
        data = data[_write(fd, data) :]
