"""Bounds that the kernel does not keep for a session as a whole: memory and, without namespaces, processes and disk."""

import os
import time

from . import processes

#: a look at the disk is this much of the time at most
_DISK_SHARE = 20
_DISK_SECONDS = 0.25


class Watch:
    def __init__(self, level, limits, workspace):
        self._level = level
        self._limits = limits
        self._workspace = workspace
        self._next_disk = 0.0

    def exceeded(self):
        """The name of the bound that the session has passed, if any."""
        pids = self._level.processes()
        if len(pids) > self._limits["processes"]:
            return "processes"
        most = self._limits["memory_bytes"]
        # forks share what they have not written to; only when that could matter is it counted out, which takes longer
        if sum(map(_resident, pids)) > most and sum(map(_proportional, pids)) > most:
            return "memory"
        return "disk" if self._fills_disk() else None

    def _fills_disk(self):
        began = time.monotonic()
        if self._level.bounds_disk or began < self._next_disk:
            return False
        size, entries = self._workspace.usage()
        now = time.monotonic()
        self._next_disk = now + max(_DISK_SECONDS, _DISK_SHARE * (now - began))
        return size > self._limits["workspace_bytes"] or entries > self._limits["inodes"]

    def quiet(self, interpreter_pid, own):
        """True when nothing but the idle interpreter and others of `own` is there, so that nothing can grow."""
        return all(pid in own for pid in self._level.processes()) and _threads(interpreter_pid) <= 1


def _resident(pid):
    return _sum_of(f"/proc/{pid}/status", (b"RssAnon:", b"RssShmem:")) or 0


def _proportional(pid):
    size = _sum_of(f"/proc/{pid}/smaps_rollup", (b"Pss_Anon:", b"Pss_Shmem:"))
    return _resident(pid) if size is None else size


def _sum_of(path, names):
    """In bytes; None when nobody may look, or nobody is there."""
    try:
        lines = processes.read_whole(path).splitlines()
        return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith(names))
    except (OSError, ValueError):
        return None


def _threads(pid):
    try:
        return len(os.listdir(f"/proc/{pid}/task"))
    except OSError:
        return 0
