"""Which memory of the zygote a session writes to in its first moments, learned once, and copied before it does.

A page that a fork has read already costs the kernel far more to copy when it is written to than one that is asked for
before either, above all where the machine itself is virtual. Nothing is copied that would not be copied anyhow.
"""

import ctypes
import mmap
import os
import signal
import struct

from . import kernel, processes

_ENTRY = struct.Struct("=Q")
_RANGE = struct.Struct("=QQ")
_PRESENT, _OF_A_FILE, _EXCLUSIVE = 1 << 63, 1 << 61, 1 << 56
_PAGE = mmap.PAGESIZE
#: since Linux 5.14; where it is refused, pages are copied one by one as ever
_POPULATE_WRITE = 23
#: more than this is no first moment, but a list that went wrong
_MOST_RANGES = 2_000

_madvise = ctypes.PyDLL(None).madvise
_madvise.argtypes = (ctypes.c_size_t, ctypes.c_size_t, ctypes.c_int)


def copy(footprint):
    """Run at the beginning of a process like the one that it was learned from."""
    for start, length in _RANGE.iter_unpack(footprint):
        _madvise(start, length, _POPULATE_WRITE)


class Witness:
    """A fork that does nothing: a page that somebody has alone was copied by a write, and not left over by others'."""

    def __enter__(self):
        self._pid = kernel.fork()
        if self._pid == 0:
            kernel.die_with_parent()
            signal.pause()
            os._exit(0)
        return self

    def __exit__(self, *_):
        processes.kill(self._pid)
        os.waitpid(self._pid, 0)


def open_pages(pid):
    """Of a process, to be read while there is a witness. Raises OSError where the system does not tell."""
    return os.open(f"/proc/{pid}/pagemap", os.O_RDONLY | os.O_CLOEXEC)


def read(pages):
    """The numbers of the pages that the process has written to, of the memory that this one has too."""
    found = set()
    for first, last in _writable():
        entries = os.pread(pages, (last - first) * _ENTRY.size, first * _ENTRY.size)
        for page, (entry,) in enumerate(_ENTRY.iter_unpack(entries), first):
            if entry & _PRESENT and entry & _EXCLUSIVE and not entry & _OF_A_FILE:
                found.add(page)
    return found


def pack(pages):
    """As `copy` takes it."""
    ranges = []
    for page in sorted(pages):
        if ranges and ranges[-1][1] == page:
            ranges[-1][1] = page + 1
        else:
            ranges.append([page, page + 1])
    if len(ranges) > _MOST_RANGES:
        return b""
    return b"".join(_RANGE.pack(first * _PAGE, (last - first) * _PAGE) for first, last in ranges)


def _writable():
    """Pages of our own private mappings; the stack, which grows and shrinks, is not worth a look."""
    with open("/proc/self/maps", encoding="utf-8") as lines:
        for line in lines:
            addresses, permissions, rest = line.split(" ", 2)
            if permissions == "rw-p" and "[stack" not in rest:
                first, last = (int(address, 16) // _PAGE for address in addresses.split("-"))
                yield first, last
