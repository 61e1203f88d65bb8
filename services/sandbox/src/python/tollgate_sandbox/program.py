"""Starting the processes that run a user's code, and collecting what they write."""

import os
import select
import signal
import socket

from . import footprint, interpreter, kernel, launcher, limits, processes, signals, wires

_START_SECONDS = 5
#: behind the server and the supervisors, which answer for everybody
_NICE = 5


class Process:
    """A process with the rights and limits of a user's code, seen from the supervisor."""

    def __init__(self, level, limits_, run, meanwhile=None, written=b""):
        """`run` is called in the new process, which will write to `written`, and does not return; `meanwhile` is called here,
        before anything else happens."""
        channel, theirs = socket.socketpair() if level.guards_signals else (None, None)
        self.pid = kernel.fork()
        if self.pid == 0:
            footprint.copy(written)
            _become(level, limits_, theirs, run)
        if meanwhile:
            meanwhile()
        self.exited = os.pidfd_open(self.pid)
        self.guard = None
        if channel:
            theirs.close()
            with channel:
                channel.settimeout(_START_SECONDS)
                self.guard = signals.Guard(channel)

    def has_ended(self):
        return bool(select.select([self.exited], (), (), 0)[0])

    def wait(self):
        """The exit code, once it has ended."""
        return processes.exit_code(os.waitpid(self.pid, 0)[1])

    def close(self):
        os.close(self.exited)
        if self.guard:
            self.guard.close()


class Program(Process):
    """One that runs a user's code: what it writes comes by two pipes."""

    def __init__(self, level, limits_, run, meanwhile=None, written=b""):
        """`run` is given this, and the ends to write to."""
        self.stdout, stdout = _pipe()
        self.stderr, stderr = _pipe()
        super().__init__(level, limits_, lambda: run(self, stdout, stderr), meanwhile, written)
        for fd in (stdout, stderr):
            os.close(fd)

    def close(self):
        for fd in (self.stdout, self.stderr):
            os.close(fd)
        super().close()


def _pipe():
    ours, theirs = os.pipe()
    os.set_blocking(ours, False)
    return ours, theirs


class Interpreter:
    """The process with the session's variables. `line` is the socket by which the server calls it without us, if any; it is
    given away, and `meanwhile` closes it here. `written`: the memory that it will write to."""

    def __init__(self, level, limits_, written, line=None, meanwhile=None):
        self.control, theirs = socket.socketpair()
        self._number = 0
        self._line = None if line is None else wires.Line(line)

        def run(program, stdout, stderr):
            outputs = (program.stdout, program.stderr)
            ours = wires.Wires(theirs.detach(), self._line, outputs, level.workspace, limits_["output_bytes"])
            interpreter.run(ours, stdout, stderr)

        self.program = Program(level, limits_, run, meanwhile, written)
        theirs.close()
        self.control.setblocking(False)
        if self._line:
            self._line.own_ends()
            wires.of_our_own(self.program.stdout)
            wires.of_our_own(self.program.stderr)

    def call(self, number, code):
        self._number = number
        data = wires.CALL.pack(number, len(code)) + code
        sent = self.control.send(data)
        if sent == len(data):
            return
        self.control.settimeout(2)  # it sits and waits for this, unless its program stopped it
        try:
            self.control.sendall(data[sent:])
        finally:
            self.control.setblocking(False)

    def take_over(self, number):
        """A call that the server made by the line. False when it has not begun, or its end went there or is about to."""
        self._number = number
        return self._line is not None and (self._line.take_over() or self.program.has_ended())

    def result(self):
        """The exit code of the call. ValueError when something else came, or the end: the program has our channel."""
        data = self.control.recv(1 << 12)
        if len(data) != wires.ENDED.size:
            raise ValueError("unexpected words")
        number, code = wires.ENDED.unpack(data)
        if number != self._number:
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
        if self._line:
            self._line.close()


class NotStarted(Exception):
    """The launcher could not start a command: the session has too many processes, or the command is too long."""


class Launcher:
    """The process that starts shells, and the command it runs, which is one at a time."""

    def __init__(self, level, limits_, shell, environment):
        self.control, theirs = socket.socketpair()
        self.process = Process(level, limits_, lambda: launcher.run(theirs.fileno(), shell, environment))
        theirs.close()
        self.control.setblocking(False)

    def command(self, text):
        """Raises OSError when it does not listen."""
        command = LaunchedCommand(self)
        try:
            socket.send_fds(self.control, [launcher.COMMAND.pack(len(text))], command.pipes)
            self.control.settimeout(2)
            try:
                self.control.sendall(text)
            finally:
                self.control.setblocking(False)
        except OSError:
            command.close()
            raise
        finally:
            for fd in command.pipes:
                os.close(fd)
        return command

    def end(self):
        processes.kill(self.process.pid)
        self.process.wait()
        self.process.close()
        self.control.close()


class LaunchedCommand:
    """Like a `Program`, whose end the launcher tells."""

    guard = None

    def __init__(self, by):
        self._control = by.control
        self.exited = by.control.fileno()
        self.stdout, stdout = _pipe()
        self.stderr, stderr = _pipe()
        #: for the shell to write to
        self.pipes = (stdout, stderr)

    def wait(self):
        """Its exit code. Raises NotStarted."""
        try:
            data = self._control.recv(1 << 12)
        except OSError:
            data = b""
        if len(data) != launcher.ENDED.size:
            return -signal.SIGKILL  # the session has ended its launcher, or speaks for it
        was_started, status = launcher.ENDED.unpack(data)
        if not was_started:
            raise NotStarted
        return processes.exit_code(status & 0xFFFF)

    def close(self):
        for fd in (self.stdout, self.stderr):
            os.close(fd)


def shell_command(level, limits_, shell, environment, text):
    """A program that is a shell, given a command."""

    def run(_program, stdout, stderr):
        null = os.open("/dev/null", os.O_RDWR)
        for source, target in ((null, 0), (stdout, 1), (stderr, 2)):
            os.dup2(source, target)
        os.closerange(3, 4096)
        for number in (signal.SIGINT, signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL)
        os.execve(shell, [os.path.basename(shell), b"-c", text], environment)

    return Program(level, limits_, run)


def _become(level, limits_, channel, run):
    """In a fresh child: everything a user's code needs and nothing of ours. Does not return."""
    try:
        # a group to be interrupted as one; no session of its own, which the kernel would schedule apart from the supervisor
        os.setpgid(0, 0)
        os.chdir(level.workspace)
        os.nice(_NICE)
        kernel.show_memory()
        limits.limit_program(limits_["of_program"])
        level.enter_program(channel)
        if channel:
            channel.close()
        run()
    except BaseException:  # nobody above could tell the user; the exit code says that it never began
        os._exit(126)
    finally:
        os._exit(125)
