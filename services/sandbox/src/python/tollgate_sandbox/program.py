"""Starting the processes that run a user's code, and collecting what they write."""

import os
import signal
import socket

from . import interpreter, kernel, limits

_CHUNK = 1 << 16


class Output:
    """What came out of one pipe: the first bytes of it, and how many more there were."""

    def __init__(self, most):
        self.most = most
        self.kept = bytearray()
        self.dropped = 0

    def add(self, data):
        room = max(0, self.most - len(self.kept))
        self.kept += data[:room]
        self.dropped += max(0, len(data) - room)


def drain(fd, output, most=4 * _CHUNK):
    """Takes what is there, but no endless stream at once. False when nothing will come any more."""
    taken = 0
    while taken < most:
        try:
            data = os.read(fd, _CHUNK)
        except BlockingIOError:
            return True
        except OSError:
            return False
        if not data:
            return False
        taken += len(data)
        output.add(data)
    return True


def drain_all(fd, output):
    """Everything that was written up to now; a pipe holds little, and a writer that goes on is not waited for."""
    drain(fd, output, most=1 << 20)


class Interpreter:
    """The process with the session's variables, seen from the supervisor."""

    def __init__(self, level, limits_, workspace):
        self.control, theirs = socket.socketpair()
        self.stdout, stdout = os.pipe()
        self.stderr, stderr = os.pipe()
        self.calls = 0
        self.pid = os.fork()
        if self.pid == 0:
            _become(level, limits_, lambda: interpreter.run(theirs.detach(), stdout, stderr), workspace)
        theirs.close()
        os.close(stdout)
        os.close(stderr)
        for fd in (self.stdout, self.stderr):
            os.set_blocking(fd, False)
        self.control.setblocking(False)
        self.exited = os.pidfd_open(self.pid)

    def call(self, code):
        self.calls += 1
        self.control.settimeout(2)  # it sits and waits for this, unless its program stopped it
        try:
            self.control.sendall(interpreter.CALL.pack(self.calls, len(code)) + code)
        finally:
            self.control.setblocking(False)

    def result(self):
        """The exit code of the call. ValueError when something else came, or the end: the program has our channel."""
        data = self.control.recv(1 << 12)
        if len(data) != interpreter.DONE.size:
            raise ValueError("unexpected words")
        number, code = interpreter.DONE.unpack(data)
        if number != self.calls:
            raise ValueError("unexpected number")
        return code

    def interrupt(self):
        """As Ctrl-C would: to the program and to what it started in the foreground."""
        try:
            os.killpg(self.pid, signal.SIGINT)
        except OSError:
            pass  # ended meanwhile

    def close(self):
        self.control.close()
        for fd in (self.stdout, self.stderr, self.exited):
            os.close(fd)


class Command:
    """A shell command, from its start to its end."""

    def __init__(self, level, limits_, workspace, shell, environment, text):
        self.stdout, stdout = os.pipe()
        self.stderr, stderr = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:

            def run():
                null = os.open("/dev/null", os.O_RDWR)
                for source, target in ((null, 0), (stdout, 1), (stderr, 2)):
                    os.dup2(source, target)
                os.closerange(3, 4096)
                for number in (signal.SIGINT, signal.SIGPIPE, signal.SIGXFSZ):
                    signal.signal(number, signal.SIG_DFL)
                os.execve(shell, [os.path.basename(shell), "-c", text], environment)

            _become(level, limits_, run, workspace)
        os.close(stdout)
        os.close(stderr)
        for fd in (self.stdout, self.stderr):
            os.set_blocking(fd, False)
        self.exited = os.pidfd_open(self.pid)

    def close(self):
        for fd in (self.stdout, self.stderr, self.exited):
            os.close(fd)


def _become(level, limits_, run, workspace):
    """In a fresh child: everything a user's code needs and nothing of ours. Does not return."""
    try:
        os.setsid()
        os.chdir(workspace)
        os.umask(0o022)
        kernel.show_memory()
        limits.limit_program(limits_)
        level.enter_program()
        run()
    except BaseException:  # nobody above could tell the user; the exit code says that it never began
        os._exit(126)
    finally:
        os._exit(125)
