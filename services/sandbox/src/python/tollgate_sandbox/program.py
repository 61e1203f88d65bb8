"""Starting the processes that run a user's code, and collecting what they write."""

import os
import signal
import socket

from . import interpreter, kernel, limits, signals

_CHUNK = 1 << 16
_START_SECONDS = 5
#: behind the server and the supervisors, which answer for everybody
_NICE = 5


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


class Program:
    """A process that runs a user's code, seen from the supervisor: what it writes, and whether it is still there."""

    def __init__(self, level, limits_, run):
        """`run` is called in the new process, with the pipes to write to, and does not return."""
        self.stdout, stdout = os.pipe()
        self.stderr, stderr = os.pipe()
        channel, theirs = socket.socketpair()
        self.pid = os.fork()
        if self.pid == 0:
            channel.close()
            _become(level, limits_, theirs, lambda: run(stdout, stderr))
        for fd in (stdout, stderr):
            os.close(fd)
        theirs.close()
        for fd in (self.stdout, self.stderr):
            os.set_blocking(fd, False)
        self.exited = os.pidfd_open(self.pid)
        with channel:
            channel.settimeout(_START_SECONDS)
            self.guard = signals.Guard(channel) if level.guards_signals else None

    def close(self):
        for fd in (self.stdout, self.stderr, self.exited):
            os.close(fd)
        if self.guard:
            self.guard.close()


class Interpreter:
    """The process with the session's variables."""

    def __init__(self, level, limits_):
        self.control, theirs = socket.socketpair()
        self.calls = 0
        self.program = Program(
            level, limits_, lambda stdout, stderr: interpreter.run(theirs.detach(), stdout, stderr)
        )
        theirs.close()
        self.control.setblocking(False)

    def call(self, code):
        self.calls += 1
        data = interpreter.CALL.pack(self.calls, len(code)) + code
        sent = self.control.send(data)
        if sent == len(data):
            return
        self.control.settimeout(2)  # it sits and waits for this, unless its program stopped it
        try:
            self.control.sendall(data[sent:])
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
            os.killpg(self.program.pid, signal.SIGINT)
        except OSError:
            pass  # ended meanwhile

    def close(self):
        self.control.close()
        self.program.close()


def shell_command(level, limits_, shell, environment, text):
    """A program that is a shell, given a command."""

    def run(stdout, stderr):
        null = os.open("/dev/null", os.O_RDWR)
        for source, target in ((null, 0), (stdout, 1), (stderr, 2)):
            os.dup2(source, target)
        os.closerange(3, 4096)
        for number in (signal.SIGINT, signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL)
        os.execve(shell, [os.path.basename(shell), "-c", text], environment)

    return Program(level, limits_, run)


def _become(level, limits_, channel, run):
    """In a fresh child: everything a user's code needs and nothing of ours. Does not return."""
    try:
        # a group to be interrupted as one; no session of its own, which the kernel would schedule apart from the supervisor
        os.setpgid(0, 0)
        os.chdir(level.workspace)
        os.umask(0o022)
        os.nice(_NICE)
        kernel.show_memory()
        limits.limit_program(limits_)
        level.enter_program(channel)
        channel.close()
        run()
    except BaseException:  # nobody above could tell the user; the exit code says that it never began
        os._exit(126)
    finally:
        os._exit(125)
