"""Process 1 of a session: starts what runs a user's code, keeps its bounds, and answers the server.

It has no more rights than that code. One call runs at a time; files are served while it does.
"""

import functools
import os
import select
import time

from . import file_service, files, framing, processes, program, watch
from .output import Output, drain, drain_all
from .run import Run

_WATCH_SECONDS = 0.05
_WATCH_IDLE_SECONDS = 0.5
_INTERRUPT_SECONDS = 0.1
#: what a short call writes is taken at its end, at once: its pipes hold it until then
_SHORT_SECONDS = 0.002
#: as `timeout(1)` has it
_TIMED_OUT = 124
_KILLED = 137
_MAX_FILES = 1_000


class Supervisor:
    def __init__(self, level, config):
        """Made once by the zygote: what each session makes for itself copies memory."""
        self._level = level
        self._limits = config["limits"]
        self._grace = config["grace_seconds"]
        self._shell = config["shell"]
        self._environment = os.environ
        self._footprint = b""
        self._line = self._channel = self._channel_fd = self._reader = None
        #: what is listened to between calls and in a short one, for as long as the interpreter is the same
        self._pollers = {}
        self._asleep = select.poll()
        #: not before they are needed: most sessions end before their supervisor has had anything to do
        self._opened_files = self._opened_service = self._opened_watch = None
        self._interpreter = None
        #: there from the first command on
        self._launcher = None
        self._run = None
        self._quiet = True
        self._seen = {}
        self._next_watch = 0.0
        #: why the variables are gone, which no call has told yet
        self._untold = None

    @property
    def _files(self):
        if self._opened_files is None:
            self._opened_files = files.Workspace(self._level.workspace)
        return self._opened_files

    @property
    def _file_service(self):
        if self._opened_service is None:
            self._opened_service = file_service.FileService(self._channel, self._files)
        return self._opened_service

    @property
    def _watch(self):
        if self._opened_watch is None:
            self._opened_watch = watch.Watch(self._level, self._limits, self._files)
        return self._opened_watch

    def serve(self, channel, line, footprint=b""):
        """Until the server is gone; then nothing of the session is left. `line` is the descriptor of the interpreter's own
        connection to the server, by which calls come that are over before they matter here; `footprint` what it will write to."""
        channel.setblocking(False)
        self._channel, self._channel_fd, self._line = channel, channel.fileno(), line
        self._footprint = footprint
        self._asleep.register(channel, select.POLLIN)
        self._start_interpreter(self._line, self._leave_line if self._level.guards_signals else self._sleep)
        self._reader = framing.Reader(channel)
        try:
            while True:
                self._turn()
        except framing.Closed:
            pass
        finally:
            self._level.end_processes()
            self._level.leave()

    def _turn(self):
        """Waits for something to happen, and does what there is to do about it."""
        run = self._run
        poller, waiting = self._listening(run)
        events = poller.poll(self._patience())
        if len(events) > 1:
            # output is taken before the news that there will be no more of it
            events.sort(key=lambda event: list(waiting).index(event[0]))
        for fd, _ in events:
            if self._run is run or fd == self._channel_fd:
                waiting[fd]()
        self._tend()

    def _listening(self, run):
        """What can happen now, and what there is to do about each. What most calls need is put together once."""
        listens = run is not None and time.monotonic() >= run.listens_from
        kind = None if listens else "idle" if run is None else "short" if run.command is None else None
        if kind in self._pollers:
            return self._pollers[kind]
        waiting = {self._channel_fd: self._take_messages}
        if self._launcher:
            waiting[self._launcher.process.exited] = self._launcher_ended
        for guarded in (self._interpreter.program, self._launcher and self._launcher.process, run and run.command):
            if guarded and guarded.guard:
                waiting[guarded.guard.listener] = guarded.guard.answer
        if run is not None:
            source = self._source(run)
            if listens:
                for fd, output in ((source.stdout, run.stdout), (source.stderr, run.stderr)):
                    if fd not in run.silent:
                        waiting[fd] = functools.partial(self._collect, fd, output)
            waiting[source.exited] = self._ended
            if run.command is None:
                waiting[self._interpreter.control.fileno()] = self._take_result
        poller = select.poll()
        for fd in waiting:
            poller.register(fd, select.POLLIN)
        if kind is not None:
            self._pollers[kind] = (poller, waiting)
        return poller, waiting

    def _source(self, run):
        """The process whose end is the end of the call."""
        return run.command or self._interpreter.program

    def _patience(self):
        """Milliseconds until time itself is an event."""
        now = time.monotonic()
        if self._run is None:
            return None if self._quiet else _WATCH_IDLE_SECONDS * 1000
        if now < self._run.listens_from:
            return _SHORT_SECONDS * 1000
        return max(0, min(self._next_watch, self._run.deadline) - now) * 1000 + 1

    def _tend(self):
        """Deadlines and bounds."""
        now = time.monotonic()
        if self._run is not None and now >= self._run.deadline:
            self._press()
        if now >= self._next_watch and not (self._run is None and self._quiet):
            self._next_watch = now + _WATCH_SECONDS
            exceeded = self._watch.exceeded()
            if exceeded:
                self._end_everything(exceeded)
            elif self._run is None:
                self._quiet = self._watch.quiet(self._interpreter.program.pid, self._own())
        processes.reap_strangers(self._own())

    def _own(self):
        """The children whose end somebody waits for."""
        command = self._run.command if self._run else None
        launcher = self._launcher and self._launcher.process
        return {child.pid for child in (self._interpreter.program, launcher, command) if isinstance(child, program.Process)}

    def _take_messages(self):
        for header, body in self._reader.read():
            operation = header["op"]
            if operation in ("python", "shell"):
                self._begin(header, body)
            elif operation == "look":
                self._quiet, self._next_watch = False, 0.0
            elif operation == "made":
                names, since = _joined(self._made()), self._files.empty_since()
                self._send({"id": header["id"], "empty_since": since and str(since)}, names)
            elif operation == "cancel":
                if self._run is not None and self._run.request == header["of"]:
                    self._run.ending = "cancelled"
                    self._run.deadline = time.monotonic()
            else:
                self._serve_file(header, body)

    def _begin(self, header, body):
        if self._run is not None:
            raise framing.Closed  # the server never asks twice at once
        run = Run(header["id"], header["op"], header["timeout"], self._limits["output_bytes"])
        run.streams = header["stream"]
        run.listens_from = time.monotonic() + _SHORT_SECONDS
        self._next_watch = time.monotonic() + _WATCH_SECONDS
        if header["op"] == "shell":
            run.text = body.decode("utf-8", "replace").encode("utf-8")
            run.command = self._launched(run.text) or self._forked(run.text)
            self._run = run
            return
        if header["begun"]:
            if self._interpreter.take_over(header["number"]):
                self._run = run
            elif header["overdue"]:
                # stopped, or kept from its work by a thread: no interrupt would be heard
                run.deadline = run.interrupts_until = time.monotonic()
                self._run = run
            else:
                self._send({"id": run.request, "not_taken": True})
            return
        for fd in (self._interpreter.program.stdout, self._interpreter.program.stderr):
            drain_all(fd, Output(0))  # what threads of earlier calls said since then
        self._run = run
        try:
            self._interpreter.call(header["number"], body)
        except OSError:
            pass  # it ended between the calls, or does not listen: its end or the deadline will tell

    def _launched(self, text):
        """None when the launcher does not listen: something in the session stopped or ended it."""
        if self._launcher is None:
            self._launcher = program.Launcher(self._level, self._limits, self._shell, self._environment)
            self._pollers.clear()
        try:
            return self._launcher.command(text)
        except OSError:
            self._drop_launcher()
            return None

    def _forked(self, text):
        return program.shell_command(self._level, self._limits, self._shell, self._environment, text)

    def _launcher_ended(self):
        if self._run is not None and isinstance(self._run.command, program.LaunchedCommand):
            self._ended()
        self._drop_launcher()

    def _drop_launcher(self):
        if self._launcher:
            self._launcher.end()
            self._launcher = None
            self._pollers.clear()

    def _collect(self, fd, output):
        run = self._run
        before = len(output.kept)
        if not drain(fd, output):
            run.silent.add(fd)
        if run.streams and len(output.kept) > before:
            name = "stdout" if output is run.stdout else "stderr"
            self._send({"id": run.request, "part": name}, bytes(output.kept[before:]))

    def _take_result(self):
        try:
            code = self._interpreter.result()
        except (OSError, ValueError):
            processes.kill(self._interpreter.program.pid)  # the program closed our channel or wrote to it
        else:
            self._finish(code)

    def _ended(self):
        """The command, or the interpreter itself, is no more."""
        run = self._run
        if run.command is not None:
            try:
                code = run.command.wait()
            except program.NotStarted:
                run.command.close()
                run.command = self._forked(run.text)
                run.silent.clear()
            else:
                self._finish(code)
            return
        code = self._interpreter.program.wait()
        self._restart_interpreter(run)
        self._finish(code, f"the Python process ended (status {code})")

    def _press(self):
        """The time is over, or nobody waits any more: asks to stop, then makes it."""
        run, now = self._run, time.monotonic()
        run.ending = run.ending or "time"
        if run.command is not None:
            self._end_everything(run.ending, keep=(self._interpreter.program.pid,))
        elif run.interrupts_until == 0.0 or now < run.interrupts_until:
            run.interrupts_until = run.interrupts_until or now + self._grace
            self._interpreter.interrupt()
            # again, in case a library swallowed it or a second statement has begun
            run.deadline = min(now + _INTERRUPT_SECONDS, run.interrupts_until)
        else:
            self._end_everything(run.ending)

    def _end_everything(self, why, keep=()):
        """Ends all programs of the session; with them go variables, unless the interpreter is kept."""
        run = self._run
        if not self._level.end_processes(keep) and keep:
            keep = ()
            self._level.end_processes()
        self._drop_launcher()
        if run is not None and isinstance(run.command, program.Process):
            run.command.wait()
        if not keep:
            os.waitpid(self._interpreter.program.pid, 0)
            self._restart_interpreter(run)
        if run is None:
            self._quiet = True
            self._untold = f"between the calls the {why} limit was passed and all processes were ended"
            return
        run.ending = why
        self._finish(_KILLED, None if keep else "all processes were ended")

    def _restart_interpreter(self, run):
        """What the old one wrote is still in its pipes."""
        if run is not None and run.command is None:
            drain_all(self._interpreter.program.stdout, run.stdout)
            drain_all(self._interpreter.program.stderr, run.stderr)
        self._level.end_processes()
        self._drop_launcher()
        self._interpreter.close()
        self._interpreter = None
        self._start_interpreter()

    def _sleep(self):
        """In the moment when the interpreter is there, until somebody needs us: most sessions end before. Whatever is done
        first, the rest of the start above all, copies memory that this process has in common with the interpreter."""
        self._leave_line()
        self._asleep.poll()

    def _leave_line(self):
        os.close(self._line)  # its end is the interpreter's to make

    def _start_interpreter(self, line=None, meanwhile=None):
        self._interpreter = program.Interpreter(self._level, self._limits, self._footprint, line, meanwhile)
        self._pollers.clear()

    def _finish(self, code, lost=None):
        """`lost`: why the variables are gone, if they are."""
        run, self._run = self._run, None
        source = self._source(run)
        if run.command is not None or lost is None:
            drain_all(source.stdout, run.stdout)
            drain_all(source.stderr, run.stderr)
        if run.command is not None:
            run.command.close()
        names = _joined(self._made())
        if run.ending in ("time", "cancelled"):
            code = _TIMED_OUT  # whatever the program made of being interrupted
        header = {
            "id": run.request,
            "code": code,
            "stdout_bytes": len(run.stdout.kept),
            "stdout_dropped": run.stdout.dropped,
            "stderr_dropped": run.stderr.dropped,
            "ending": run.ending,
            "lost": lost or self._untold,
        }
        self._untold = None
        header["files_bytes"] = len(names)
        self._send(header, bytes(run.stdout.kept) + bytes(run.stderr.kept) + names)
        self._quiet = False  # until the next look, which a call that follows at once need not pay for

    def _made(self):
        """What plain files are new, or changed, since the last look."""
        now = self._files.snapshot()
        made = sorted(path for path, written in now.items() if self._seen.get(path) != written)
        self._seen = now
        return made

    def _serve_file(self, header, body):
        path = self._file_service.serve(header, body)
        if path is not None:
            self._seen[path] = self._files.written(path)  # put there by the server, so no call has made it

    def _send(self, header, body=b""):
        framing.send(self._channel, header, body)


def _joined(paths):
    return "\0".join(paths[:_MAX_FILES]).encode("utf-8")
