"""A session's files, on behalf of the server: done inside the session, with the session's own rights."""

import os
import stat
import time

from .opening import Opened, Refused, full

#: most entries that one look over the workspace takes in
_MAX_ENTRIES = 5_000
_MAX_DEPTH = 16
_MAX_LISTED = 10_000
#: changes that are nearer to each other may bear the same time
_CLOCK_NS = 100_000_000
#: of a file that is being written; hidden, and gone when the writing ends
UPLOAD_PREFIX = ".upload-"


class Workspace:
    def __init__(self, path):
        self.path = path
        self._root = os.open(path, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        #: when the workspace became what it is, if it was seen to be empty and no later change can bear the same time
        self._empty_since = None

    def close(self):
        os.close(self._root)

    def list(self, path):
        """The plain files of a folder, or the one file that is named. Links are not looked through."""
        relative = self._relative(path)
        with self._opened(relative, os.O_RDONLY | os.O_NONBLOCK) as fd:
            status = os.fstat(fd)
            if stat.S_ISREG(status.st_mode):
                return [_described(relative, status)]
            if not stat.S_ISDIR(status.st_mode):
                raise Refused(404, "no such folder")
            found = []
            for name in sorted(os.listdir(fd))[:_MAX_LISTED]:
                if name.startswith(UPLOAD_PREFIX) or not _is_text(name):
                    continue
                try:
                    status = os.stat(name, dir_fd=fd, follow_symlinks=False)
                except OSError:
                    continue  # removed since the folder was read
                if stat.S_ISREG(status.st_mode):
                    found.append(_described(name if relative == "." else f"{relative}/{name}", status))
            return found

    def tree(self, fd, path):
        """Names below an open folder, two levels deep, folders with a slash at their end."""
        relative = self._relative(path)
        names = []
        for name, is_folder in _entries(fd):
            names.append(name + "/" if is_folder else name)
            if is_folder:
                with self._opened(f"{relative}/{name}", os.O_RDONLY | os.O_DIRECTORY) as inner:
                    names += [f"{name}/{leaf}/" if deeper else f"{name}/{leaf}" for leaf, deeper in _entries(inner)]
        return names[:_MAX_LISTED]

    def opened(self, path):
        """To be read. Never waits for a writer of a pipe, nor wakes a device."""
        return self._opened(self._relative(path), os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)

    def write(self, upload, offset, data):
        """Adds to a file that nobody sees yet."""
        name = UPLOAD_PREFIX + upload
        # a program may have put a pipe in its place, which would be waited for
        flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | (os.O_EXCL if offset == 0 else 0)
        data = memoryview(data)
        with self._opened(name, flags, 0o644) as fd:
            while len(data) > 0:
                try:
                    written = os.pwrite(fd, data, offset)
                except OSError as error:
                    raise full(error) from error
                data = data[written:]
                offset += written

    def save(self, upload, path, exclusive, data):
        """All of a small file at once, in one step as `commit` does it."""
        try:
            self.write(upload, 0, data)
            return self.commit(upload, path, exclusive)
        except Refused:
            self.discard(upload)
            raise

    def commit(self, upload, path, exclusive):
        """Gives the written file its name, in one step: no reader ever sees half of it."""
        relative = self._relative(path)
        folder, name = os.path.split(relative)
        if name in ("", ".", ".."):
            raise Refused(422, "not the name of a file")
        with self._folder(folder) as fd:
            source = UPLOAD_PREFIX + upload
            try:
                target = os.stat(name, dir_fd=fd, follow_symlinks=False)
            except FileNotFoundError:
                target = None
            except OSError as error:
                raise Refused(422, os.strerror(error.errno)) from error
            if target is not None and exclusive:
                raise Refused(409, "it exists")
            if target is not None and stat.S_ISDIR(target.st_mode):
                raise Refused(422, "a folder")
            try:
                if target is not None and stat.S_ISREG(target.st_mode):
                    with self._opened(source, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK) as written:
                        os.fchmod(written, stat.S_IMODE(target.st_mode))
                os.rename(source, name, src_dir_fd=self._root, dst_dir_fd=fd)
            except OSError as error:
                raise full(error) from error
        return relative

    def discard(self, upload):
        try:
            os.unlink(UPLOAD_PREFIX + upload, dir_fd=self._root)
        except OSError:
            pass  # never begun, or committed

    def snapshot(self):
        """What plain files there are and when each was last written; names that begin with a dot are nobody's result."""
        changed = os.stat(self._root).st_ctime_ns
        if changed == self._empty_since:
            return {}
        found = {}
        is_empty = changed < time.time_ns() - _CLOCK_NS
        queue = [("", 0)]
        while queue and len(found) < _MAX_ENTRIES:
            folder, depth = queue.pop()
            try:
                with self._opened(folder or ".", os.O_RDONLY | os.O_DIRECTORY) as fd, os.scandir(fd) as entries:
                    for entry in entries:
                        if entry.name.startswith(".") or entry.name == "__pycache__" or not _is_text(entry.name):
                            continue
                        is_empty = False
                        path = f"{folder}/{entry.name}" if folder else entry.name
                        status = entry.stat(follow_symlinks=False)
                        if stat.S_ISREG(status.st_mode):
                            found[path] = _version(status)
                        elif stat.S_ISDIR(status.st_mode) and depth < _MAX_DEPTH:
                            queue.append((path, depth + 1))
                        if len(found) >= _MAX_ENTRIES:
                            break
            except (OSError, Refused):
                is_empty = False
                continue  # removed or closed to us while we looked
        self._empty_since = changed if is_empty else None
        return found

    def empty_since(self):
        """As the last snapshot found it: when the workspace became what it is, if it is certain to be empty since then."""
        return self._empty_since

    def written(self, path):
        """What a snapshot would say of one file."""
        try:
            with self._opened(path, os.O_PATH | os.O_NOFOLLOW) as fd:
                return _version(os.fstat(fd))
        except Refused:
            return None  # removed already

    def usage(self):
        """Bytes on the disk and number of entries, up to where a bound is certainly passed."""
        total, entries = 0, 0
        for folder, folders, names, fd in os.fwalk(self.path):
            for name in folders + names:
                try:
                    total += os.stat(name, dir_fd=fd, follow_symlinks=False).st_blocks * 512
                except OSError:
                    continue
                entries += 1
            if entries > 1 << 20:
                break
        return total, entries

    def _relative(self, path):
        if "\0" in path or len(path) > 4_000 or not _is_text(path):
            raise Refused(403, "not a path of the workspace")
        full = os.path.normpath(os.path.join(self.path, path))
        if full == self.path:
            return "."
        if not full.startswith(self.path + "/"):
            raise Refused(403, "outside the workspace")
        return full[len(self.path) + 1 :]

    def _opened(self, relative, flags, mode=0):
        return Opened(self._root, relative, flags, mode)

    def _folder(self, relative):
        """The folder, made with all that lead to it where it is missing."""
        made = ""
        for part in relative.split("/") if relative else ():
            parent, made = made, f"{made}/{part}" if made else part
            with self._opened(parent or ".", os.O_PATH | os.O_DIRECTORY) as fd:
                try:
                    os.mkdir(part, 0o755, dir_fd=fd)
                except FileExistsError:
                    pass
                except OSError as error:
                    raise full(error) from error
        return self._opened(relative or ".", os.O_PATH | os.O_DIRECTORY)


def _described(path, status):
    return {"path": path, "size_bytes": status.st_size, "modified_at": status.st_mtime}


def _version(status):
    return status.st_ino, status.st_size, status.st_mtime_ns


def _entries(fd):
    with os.scandir(fd) as entries:
        found = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
    return sorted((name, is_folder) for name, is_folder in found if not name.startswith(".") and _is_text(name))


def _is_text(name):
    """Names that are no UTF-8 come from Python as lone surrogates, which no answer can carry."""
    try:
        name.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True
