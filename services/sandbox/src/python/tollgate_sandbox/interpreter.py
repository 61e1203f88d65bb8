"""The process that runs a session's Python: one namespace of variables for as long as it lives."""

import _random
import ast
import ctypes
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
from _signal import SIG_DFL as _DEFAULT
from _signal import signal as _set_handler  # without the names that `signal` looks up for its numbers
from itertools import takewhile

from .wires import HIGH, OTHERS, move_up


def run(wires, stdout, stderr):
    """Never returns. Calls come by `wires`; the descriptors are what programs write to."""
    null = os.open("/dev/null", os.O_RDWR)
    standard = [(move_up(fd, OTHERS + to), to) for to, fd in enumerate((null, stdout, stderr))]
    os.closerange(3, HIGH)
    _set_handler(signal.SIGCHLD, _DEFAULT)  # the zygote's, for its own children
    _renew()
    session = _session
    session.rehearse(standard)
    wires.say_ready()
    while True:
        wire, number, code = wires.next_call()
        wires.tell(wire, number, session.execute(code))


_STANDARD = (("stdin", 0), ("stdout", 1), ("stderr", 2))


class _Session:
    def __init__(self):
        self._standard = ()
        self._running = False
        self._cells = 0
        main = types.ModuleType("__main__")
        main.__dict__["__builtins__"] = __builtins__
        sys.modules["__main__"] = main
        self._variables = main.__dict__
        self.streams = {name: _stream_on(fd) for name, fd in _STANDARD}

    def rehearse(self, standard):
        """Does what every call does, so that the first one finds the memory it needs in place. `standard`: what to read from
        and to write to, and as which descriptor."""
        self._standard = standard
        self.execute("None")
        self._cells = 0

    def execute(self, code):
        """Runs one piece of code and says its exit code; whatever it raises was written to stderr."""
        self._restore()  # where that cannot be done, this process is of no use any more
        try:
            return self._execute(code)
        except KeyboardInterrupt:  # came in the moment between the program's last step and our noticing
            pass
        except BaseException as error:  # what the program left behind raises it: handlers, tracers, objects of its own
            self._running = False
            _report(error)
        self._running = False
        return 1

    def _execute(self, code):
        _look_again()
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
        shown = (getattr(sys, "stdout", None), getattr(sys, "stderr", None), *self.streams.values())
        for stream in {id(stream): stream for stream in shown}.values():
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
        for name, fd in _STANDARD:
            # first: a stream that the program put over ours closes it when it is let go of
            setattr(sys, name, self.streams.get(name))
            if not _is_open(self.streams.get(name)):
                self.streams[name] = stream = _stream_on(fd)
                setattr(sys, name, stream)
                setattr(sys, f"__{name}__", stream)
        sys.displayhook = sys.__displayhook__
        _set_handler(signal.SIGINT, self._interrupt)

    def _interrupt(self, _number, _frame):
        if self._running:
            raise KeyboardInterrupt


def _is_open(stream):
    try:
        return stream is not None and not stream.closed
    except ValueError:  # its buffer was taken away to be used otherwise
        return False


def _stream_on(fd):
    if fd == 0:
        return io.TextIOWrapper(io.FileIO(fd, "r", closefd=False), encoding="utf-8")
    # a line at a time: what was printed before a kill is there to be read
    raw = io.BufferedWriter(io.FileIO(fd, "w", closefd=False), 64 * 1024)
    return io.TextIOWrapper(raw, encoding="utf-8", errors="backslashreplace", line_buffering=True)


def _report(error):
    """As Python itself would show it, without the frames that are ours."""
    try:
        shown = traceback.TracebackException(type(error), error, error.__traceback__)
        shown.stack = traceback.StackSummary.from_list([frame for frame in shown.stack if frame.filename != __file__])
        text = "".join(shown.format())
    except BaseException:  # an exception that cannot be shown is still one
        text = f"{type(error).__name__}\n"
    _say(text)


def _exit_code(exit_):
    code = exit_.code
    if code is None:
        return 0
    if isinstance(code, int):
        return int.__index__(code)
    try:
        text = f"{code}\n"
    except BaseException:  # it cannot be shown, which is no reason to stay
        text = f"{type(code).__name__}\n"
    _say(text)
    return 1


def _say(text):
    """On the program's stderr, or where that is nothing to write to, on what it would be."""
    try:
        sys.stderr.write(text)
    except BaseException:
        os.write(2, text.encode("utf-8", "backslashreplace"))


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
        _say(f"a figure could not be saved: {error}\n")


def _free_name():
    number = 1
    while os.path.exists(f"figure-{number}.png"):
        number += 1
    return f"figure-{number}.png"


#: the last folder in which modules were looked for before any program ran, and our own modules, which nobody may import
_last_known = None
_ours = ()
#: what all sessions begin with
_session = None
#: where numpy keeps the state of its random numbers, and how much of it is random
_numpy_state = None


def prepare():
    """Run once by the zygote, for all sessions: leaves the interpreter as a fresh one would be, with no module of ours to
    be seen, and does what would copy memory in each session."""
    global _last_known, _ours, _session, _numpy_state
    here = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    names = [name for name in sys.modules if name == "zygote" or name.split(".")[0] == __package__]
    _ours = tuple(sys.modules.pop(name) for name in names)
    sys.path[:] = ["", *(path for path in sys.path if path not in ("", here))]
    sys.argv[:] = [""]
    # `show()` has nothing to show on; the figure is saved, so this is no news
    warnings.filterwarnings("ignore", message="FigureCanvasAgg is non-interactive")
    finders = sys.path_importer_cache
    for path in [path for path in finders if path.startswith(here)]:
        del finders[path]
    _session = _with_pipes(_Session)
    for name, stream in _session.streams.items():
        setattr(sys, f"__{name}__", stream)
    _numpy_state = _find_numpy_state()
    _last_known = next(finder for finder in reversed(list(finders.values())) if finder is not None)


def _look_again():
    """Modules may have been written since the last look, into folders that a program can write to."""
    finders = sys.path_importer_cache
    later = takewhile(lambda item: item[1] is not _last_known, reversed(finders.items()))
    for path, finder in tuple(later):
        if finder is None:
            del finders[path]  # there was no such folder
        elif hasattr(finder, "invalidate_caches"):
            finder.invalidate_caches()


def _renew():
    """Forks share the zygote's memory: the state of its random numbers, and what it is called, are not for them."""
    _random.Random.seed(random._inst)
    numbers = sys.modules.get("numpy.random")
    if _numpy_state is not None:
        address, length = _numpy_state
        ctypes.memmove(address, os.urandom(length), length)
    elif numbers is not None:
        # a number: it would copy a session's worth of numpy to gather entropy by itself, for what is no secret
        numbers.seed(int.from_bytes(os.urandom(4), "big"))
    threading.main_thread()._set_native_id()


def _find_numpy_state():
    """Its address and length, if it is where it should be: to seed anew would copy far more memory than the state takes."""
    numbers = sys.modules.get("numpy.random")
    try:
        generator = numbers.get_state.__self__._bit_generator
        key = generator.state["state"]["key"].tobytes()
        address = generator.ctypes.state_address
    except (AttributeError, KeyError, TypeError, ImportError):
        return None
    return (address, len(key)) if ctypes.string_at(address, len(key)) == key else None


def _with_pipes(make):
    """Runs `make` while descriptors 0 to 2 are what sessions have there: a stream remembers what kind of thing it is on."""
    saved = [os.dup(fd) for fd in range(3)]
    null, (reading, writing) = os.open("/dev/null", os.O_RDWR), os.pipe()
    for source, target in ((null, 0), (writing, 1), (writing, 2)):
        os.dup2(source, target)
    try:
        return make()
    finally:
        for target, source in enumerate(saved):
            os.dup2(source, target)
        for fd in (*saved, null, reading, writing):
            os.close(fd)
