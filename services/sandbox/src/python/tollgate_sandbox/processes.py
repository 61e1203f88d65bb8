"""Finding and ending the processes of a session, whatever they do to be forgotten."""

import os
import signal
import time

_PATIENCE_SECONDS = 5
_PAUSE_SECONDS = 0.002


def parents():
    """Every process that /proc shows: its number and its parent's."""
    found = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                # the name in brackets may itself hold brackets and blanks
                fields = read_whole(f"/proc/{name}/stat").rsplit(b")", 1)[1].split(None, 2)
            except OSError:
                continue
            found[int(name)] = (int(fields[1]), fields[0])
    return found


def read_whole(path):
    """A small file of /proc, in as few calls as it takes: this is done many times a second."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(fd, 1 << 14)
    finally:
        os.close(fd)


def descendants(ancestor, keep=()):
    """Numbers and states of all that come from a process, orphans too if it adopts them; not through those kept."""
    known = parents()
    children = {}
    for pid, (parent, _state) in known.items():
        if pid not in keep:
            children.setdefault(parent, []).append(pid)
    found, queue = {}, [ancestor]
    while queue:
        for pid in children.get(queue.pop(), ()):
            if pid not in found:
                found[pid] = known[pid][1]
                queue.append(pid)
    return found


def tree(ancestor):
    """The descendants by the kernel's own lists, without a look at everybody else. One that is just being made may be
    missed; so it is for watching, and `descendants` for ending."""
    found, queue = [], [ancestor]
    while queue:
        pid = queue.pop()
        try:
            tasks = os.listdir(f"/proc/{pid}/task")
        except OSError:
            continue  # ended meanwhile
        for task in tasks:
            try:
                with open(f"/proc/{pid}/task/{task}/children", "rb") as file:
                    children = [int(child) for child in file.read().split()]
            except ProcessLookupError:
                continue
            except OSError:
                if os.path.exists(f"/proc/{pid}/task/{task}"):
                    return list(descendants(ancestor))  # a kernel without such lists
                continue
            found += children
            queue += children
    return found


def is_still(ancestor):
    """Whether a process has a child of one thread and nobody else below it, as far as the kernel's own lists tell."""
    try:
        child = read_whole(f"/proc/{ancestor}/task/{ancestor}/children").decode("ascii").strip()
        # every thread is a folder in there, and a link more to it
        return (
            child.isdigit()
            and os.stat(f"/proc/{child}/task").st_nlink == 3
            and not read_whole(f"/proc/{child}/task/{child}/children")
        )
    except OSError:
        return False  # a kernel without such lists, or it ends just now


def comes_from(pid, ancestor):
    """Whether a process descends from another, or is it."""
    for _ in range(1 << 12):
        if pid == ancestor:
            return True
        try:
            with open(f"/proc/{pid}/stat", "rb") as file:
                pid = int(file.read().rsplit(b")", 1)[1].split()[1])
        except (OSError, ValueError, IndexError):
            return False
        if pid <= 1 and pid != ancestor:
            return False
    return False


def end_descendants(ancestor, keep=()):
    """Stops them all first, so that none can start another, then ends them. True when none is left but zombies.

    A process that is about to be stopped cannot fork any more: once a look finds nobody new, there will be nobody new.
    """
    stopped = set()
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while True:
        alive = [pid for pid, state in descendants(ancestor, keep).items() if state not in b"ZX"]
        if not alive:
            return True
        late = time.monotonic() > deadline
        fresh = [pid for pid in alive if pid not in stopped]
        for pid in fresh:
            kill(pid, signal.SIGSTOP)
        stopped.update(fresh)
        if late or not fresh:
            for pid in alive:
                kill(pid)
            time.sleep(_PAUSE_SECONDS)
        if late:
            return False


def kill(pid, number=signal.SIGKILL):
    try:
        os.kill(pid, number)
    except OSError:
        pass  # gone already


def reap():
    """Takes leave of every child that has ended, and tells their numbers."""
    ended = []
    while True:
        try:
            pid, _status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return ended
        if pid == 0:
            return ended
        ended.append(pid)


def reap_strangers(own):
    """Takes leave of orphans that have ended, up to the first child in `own`, which its keeper waits for."""
    while True:
        try:
            ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return
        if ended is None or ended.si_pid in own:
            return
        os.waitpid(ended.si_pid, 0)


def exit_code(status):
    """As Python's subprocess says it: a negative signal number, or the code."""
    return -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)


def group(number):
    """The members of a process group."""
    members = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:
                    if int(file.read().rsplit(b")", 1)[1].split()[2]) == number:
                        members.append(int(name))
            except (OSError, ValueError, IndexError):
                continue
    return members
