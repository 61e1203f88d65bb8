"""The process that runs a session's Python: one namespace of variables for as long as it lives."""

import ast
import fcntl
import importlib
import importlib.metadata  # which `invalidate_caches` would load in every session
import io
import linecache
import os
import signal
import struct
import sys
import traceback
import types
import warnings

#: a call, as the supervisor sends it: its number and the length of its code
CALL = struct.Struct(">II")
#: its end, as the supervisor is told: the number again and the exit code
DONE = struct.Struct(">Ii")

#: above the descriptors a user's program may hold, so that closing everything it opened does not close these
_HIGH = 200


def run(control, stdout, stderr):
    """Never returns. The descriptors given are the supervisor's ends' counterparts."""
    control, stdout, stderr = (_move_up(fd) for fd in (control, stdout, stderr))
    null = _move_up(os.open("/dev/null", os.O_RDWR))
    os.closerange(3, _HIGH)
    _forget_ourselves()
    _reseed()
    session = _Session(stdout, stderr, null)
    while True:
        number, length = CALL.unpack(_receive(control, CALL.size))
        code = session.execute(_receive(control, length).decode("utf-8", "replace"))
        _send(control, DONE.pack(number, code))


class _Session:
    def __init__(self, stdout, stderr, null):
        self._standard = ((null, 0), (stdout, 1), (stderr, 2))
        self._running = False
        self._cells = 0
        main = types.ModuleType("__main__")
        main.__dict__["__builtins__"] = __builtins__
        sys.modules["__main__"] = main
        self._variables = main.__dict__
        self._streams = {}
        # `show()` has nothing to show on; the figure is saved, so this is no news
        warnings.filterwarnings("ignore", message="FigureCanvasAgg is non-interactive")

    def execute(self, code):
        """Runs one piece of code and says its exit code; whatever it raises was written to stderr."""
        try:
            return self._execute(code)
        except KeyboardInterrupt:  # came in the moment between the program's last step and our noticing
            self._running = False
            return 1

    def _execute(self, code):
        self._restore()
        self._cells += 1
        name = f"<cell {self._cells}>"
        linecache.cache[name] = (len(code), None, code.splitlines(keepends=True), name)
        try:
            self._running = True
            self._run(code, name)
            result = 0
        except SystemExit as exit_:
            result = _exit_code(exit_)
        except BaseException as error:  # whatever it is, it is the program's and belongs on its stderr
            self._running = False
            result = 1
            _report(error)
        finally:
            self._running = False
        _save_figures()
        for stream in {id(stream): stream for stream in (sys.stdout, sys.stderr, *self._streams.values())}.values():
            try:
                stream.flush()
            except BaseException:  # a stream of the program's own making, or one that it closed
                pass
        return max(-(2**31), min(2**31 - 1, result))

    def _run(self, code, name):
        tree = ast.parse(code, name)
        shown = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, name, "exec"), self._variables)
        if shown is not None:
            # what a prompt would show of it
            exec(compile(ast.Interactive([shown]), name, "single"), self._variables)

    def _restore(self):
        """Puts back what earlier code may have taken away: descriptors, streams, the way it is interrupted."""
        for saved, standard in self._standard:
            os.dup2(saved, standard)
        for name, fd in (("stdout", 1), ("stderr", 2)):
            stream = self._streams.get(name)
            if stream is None or stream.closed:
                # a line at a time: what was printed before a kill is there to be read
                raw = io.BufferedWriter(io.FileIO(fd, "w", closefd=False), 64 * 1024)
                stream = io.TextIOWrapper(raw, encoding="utf-8", errors="backslashreplace", line_buffering=True)
                self._streams[name] = stream
            setattr(sys, name, stream)
        sys.stdin = io.TextIOWrapper(io.FileIO(0, "r", closefd=False), encoding="utf-8")
        sys.displayhook = sys.__displayhook__
        signal.signal(signal.SIGINT, self._interrupt)
        importlib.invalidate_caches()  # modules may have been written since the last look

    def _interrupt(self, _number, _frame):
        if self._running:
            raise KeyboardInterrupt


def _report(error):
    """As Python itself would show it, without the frames that are ours."""
    try:
        shown = traceback.TracebackException(type(error), error, error.__traceback__)
        shown.stack = traceback.StackSummary.from_list([frame for frame in shown.stack if frame.filename != __file__])
        sys.stderr.write("".join(shown.format()))
    except BaseException:  # an exception that cannot be shown is still one
        os.write(2, f"{type(error).__name__}\n".encode("utf-8", "backslashreplace"))


def _exit_code(exit_):
    if exit_.code is None or isinstance(exit_.code, int):
        return exit_.code or 0
    sys.stderr.write(f"{exit_.code}\n")
    return 1


def _save_figures():
    """Figures nobody saved become files, as a notebook would have shown them."""
    pyplot = sys.modules.get("matplotlib.pyplot")
    if pyplot is None:
        return
    try:
        for number in pyplot.get_fignums():
            pyplot.figure(number).savefig(_free_name())
            pyplot.close(number)
    except BaseException as error:
        sys.stderr.write(f"a figure could not be saved: {error}\n")


def _free_name():
    number = 1
    while os.path.exists(f"figure-{number}.png"):
        number += 1
    return f"figure-{number}.png"


_ours = ()


def remember_ourselves():
    """Run by the zygote: a session that looked over all modules for ours would copy the pages with their names."""
    global _ours
    _ours = tuple(name for name in sys.modules if name == "zygote" or name.split(".")[0] == __package__)


def _forget_ourselves():
    """Leaves the interpreter as a fresh one would be: no module of ours, an empty command line."""
    here = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    for name in _ours:
        del sys.modules[name]
    sys.path[:] = ["", *(path for path in sys.path if path not in ("", here))]
    sys.argv[:] = [""]


def _reseed():
    """Forks share the zygote's memory, the state of its random numbers too."""
    for name in ("random", "numpy.random"):
        module = sys.modules.get(name)
        if module is not None:
            module.seed()


def _move_up(fd):
    high = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, _HIGH)
    os.close(fd)
    return high


def _receive(control, length):
    data = b""
    while len(data) < length:
        piece = os.read(control, length - len(data))
        if not piece:
            os._exit(0)
        data += piece
    return data


def _send(control, data):
    while data:
        data = data[os.write(control, data) :]
