"""What the server may ask about a session's files, by name."""

import os
import stat

from . import framing
from .opening import Refused, full

#: read at once and sent with its header; of a larger file the kernel sends the rest by itself
_SMALL = 1 << 14


class FileService:
    def __init__(self, channel, workspace):
        self._channel = channel
        self._workspace = workspace
        framing.make_room(channel)

    def serve(self, header, body):
        """Answers; a refusal is an answer like any other. Says the path of a file that is there by this, if one is."""
        operation = getattr(self, f"_{header['op']}", None) if header["op"] in _OPERATIONS else None
        if operation is None:
            raise framing.Closed
        try:
            return operation(header, body)
        except Refused as refused:
            self._answer(header, {"status": refused.status, "reason": refused.reason})
            return None

    def _list(self, header, _body):
        self._answer(header, {}, framing.encode(self._workspace.list(header["path"])))

    def _read(self, header, _body):
        with self._workspace.opened(header["path"]) as fd:
            self._send_file(header, fd, os.fstat(fd), header["offset"])

    def _view(self, header, _body):
        """The beginning of a file, or the names in a folder."""
        with self._workspace.opened(header["path"]) as fd:
            status = os.fstat(fd)
            if stat.S_ISDIR(status.st_mode):
                self._answer(header, {}, framing.encode(self._workspace.tree(fd, header["path"])))
            else:
                self._send_file(header, fd, status, 0)

    def _write(self, header, body):
        self._workspace.write(header["upload"], header["offset"], body)
        self._answer(header, {})

    def _commit(self, header, _body):
        path = self._workspace.commit(header["upload"], header["path"], header["exclusive"])
        self._answer(header, {"path": path})
        return path

    def _save(self, header, body):
        path = self._workspace.save(header["upload"], header["path"], header["exclusive"], body)
        self._answer(header, {"path": path})
        return path

    def _discard(self, header, _body):
        self._workspace.discard(header["upload"])
        self._answer(header, {})

    def _answer(self, header, more, body=b""):
        framing.send(self._channel, {"id": header["id"], "status": 200, **more}, body)

    def _send_file(self, header, fd, status, offset):
        """What is asked for as a part, then whether it is one: a program may write into the file, or cut it, meanwhile."""
        if not stat.S_ISREG(status.st_mode):
            raise Refused(400, "not a file")
        length = max(0, min(header["length"], status.st_size - offset))
        part = {"id": header["id"], "part": "file", "size": status.st_size, "identity": _identity(status)}
        answer = {"id": header["id"], "status": 200, "whole": True}
        if length <= _SMALL:
            try:
                data = os.pread(fd, length, offset)
            except OSError as error:
                raise full(error) from error
            answer["whole"] = len(data) == length
            parts = [framing.head(part, length), data + bytes(length - len(data)), framing.head(answer, 0)]
            framing.send_parts(self._channel, parts)
            return
        framing.send_parts(self._channel, [framing.head(part, length)])
        is_all = framing.send_file(self._channel, fd, offset, length)
        answer["whole"] = is_all and _identity(os.fstat(fd)) == part["identity"]
        framing.send(self._channel, answer)


_OPERATIONS = frozenset(("list", "read", "view", "write", "commit", "save", "discard"))


def _identity(status):
    """The same for as long as it is the same file with the same content."""
    return f"{status.st_ino}:{status.st_mtime_ns}:{status.st_size}"
