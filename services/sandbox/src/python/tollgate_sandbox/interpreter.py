"""The process that runs a session's Python: one namespace of variables for as long as it lives."""

import ast
import io
import linecache
import os
import random
import signal
import sys
import threading
import traceback
import types
import warnings
from _signal import signal as _set_handler  # without the names that `signal` looks up for its numbers
from itertools import islice

from .wires import HIGH, move_up


def run(wires, stdout, stderr):
    """Never returns. Calls come by `wires`; the descriptors are what programs write to."""
    stdout, stderr = move_up(stdout), move_up(stderr)
    null = move_up(os.open("/dev/null", os.O_RDWR))
    os.closerange(3, HIGH)
    _renew()
    session = _Session(stdout, stderr, null)
    session.rehearse()
    wires.say_ready()
    while True:
        wire, number, code = wires.next_call()
        wires.tell(wire, number, session.execute(code))


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

    def rehearse(self):
        """Does what every call does, so that the first one finds the memory it needs in place."""
        self.execute("None")
        self._cells = 0

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
        stdin = self._streams.get("stdin")
        if stdin is None or stdin.closed:
            self._streams["stdin"] = stdin = io.TextIOWrapper(io.FileIO(0, "r", closefd=False), encoding="utf-8")
        sys.stdin = stdin
        sys.displayhook = sys.__displayhook__
        _set_handler(signal.SIGINT, self._interrupt)
        _look_again()

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


#: folders in which modules were looked for before any program ran, and our own modules, which nobody may import
_known_folders = 0
_ours = ()


def prepare():
    """Run once by the zygote, for all sessions: leaves the interpreter as a fresh one would be, with no module of ours to
    be seen, and does what would copy memory in each session."""
    global _known_folders, _ours
    here = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    names = [name for name in sys.modules if name == "zygote" or name.split(".")[0] == __package__]
    _ours = tuple(sys.modules.pop(name) for name in names)
    sys.path[:] = ["", *(path for path in sys.path if path not in ("", here))]
    sys.argv[:] = [""]
    # `show()` has nothing to show on; the figure is saved, so this is no news
    warnings.filterwarnings("ignore", message="FigureCanvasAgg is non-interactive")
    _known_folders = len(sys.path_importer_cache)


def _look_again():
    """Modules may have been written since the last look, into folders that a program can write to."""
    finders = sys.path_importer_cache
    for path, finder in tuple(islice(reversed(finders.items()), max(0, len(finders) - _known_folders))):
        if finder is None:
            del finders[path]  # there was no such folder
        elif hasattr(finder, "invalidate_caches"):
            finder.invalidate_caches()


def _renew():
    """Forks share the zygote's memory: the state of its random numbers, and what it is called, are not for them."""
    random.seed()
    numbers = sys.modules.get("numpy.random")
    if numbers is not None:
        # a number: it would copy a session's worth of numpy to gather entropy by itself, for what is no secret
        numbers.seed(int.from_bytes(os.urandom(4), "big"))
    threading.main_thread()._set_native_id()
