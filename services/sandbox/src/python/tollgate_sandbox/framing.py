"""Messages on a stream: the length of a JSON header, the length of a body, the header, the body."""

import json
import os
import select
import socket
import struct

_LENGTHS = struct.Struct(">II")
MAX_HEADER = 64 * 1024
MAX_BODY = 8 * 1024 * 1024
#: taken at once; a body that is larger is read right into its place
_CHUNK = 1 << 16
#: reads before others get their turn
_READS = 64
#: seconds in which a reader makes room
_PATIENCE = 30
#: bytes of it that the kernel keeps; it doubles what it is told, and has a bound of its own
_ROOM = 1 << 19


def encode(value):
    """JSON for a body: a header would be too small."""
    return json.dumps(value).encode("utf-8")


class Closed(Exception):
    """The other side is gone, or says what cannot be understood."""


def head(header, length):
    """What goes before a body of that length."""
    text = encode(header)
    return _LENGTHS.pack(len(text), length) + text


class Reader:
    """Puts messages together from what a socket gives, which must not block."""

    def __init__(self, sock):
        self._socket = sock
        self._buffer = bytearray()
        # a large body that is under way: its header, its bytes, how many are there
        self._header = self._body = None
        self._filled = 0

    def read(self):
        """All messages that are complete by now. Raises Closed when there will be no more."""
        messages = []
        for _ in range(_READS):
            try:
                more = self._receive(messages)
            except (BlockingIOError, InterruptedError):
                break
            except OSError as error:
                raise Closed from error
            if not more:
                break
        return messages

    def _receive(self, messages):
        """One read. False when it took all there was."""
        if self._body is not None:
            count = self._socket.recv_into(memoryview(self._body)[self._filled :])
            if count == 0:
                raise Closed
            self._filled += count
            if self._filled == len(self._body):
                messages.append((self._header, self._body))
                self._header = self._body = None
            return True
        data = self._socket.recv(_CHUNK)
        if not data:
            raise Closed
        self._buffer += data
        self._take(messages)
        return self._body is not None or len(data) == _CHUNK

    def _take(self, messages):
        while len(self._buffer) >= _LENGTHS.size:
            header, body = _LENGTHS.unpack_from(self._buffer)
            if header > MAX_HEADER or body > MAX_BODY:
                raise Closed
            start = _LENGTHS.size + header
            if len(self._buffer) < start:
                return
            if body > _CHUNK:
                self._header, self._body = json.loads(self._buffer[_LENGTHS.size : start]), bytearray(body)
                first = self._buffer[start : start + body]
                self._filled = len(first)
                self._body[: self._filled] = first
                del self._buffer[: start + self._filled]
                if self._filled < body:
                    return
                messages.append((self._header, self._body))
                self._header = self._body = None
                continue
            if len(self._buffer) < start + body:
                return
            messages.append((json.loads(self._buffer[_LENGTHS.size : start]), bytes(self._buffer[start : start + body])))
            del self._buffer[: start + body]


def send(sock, header, body=b"", timeout=_PATIENCE):
    """Waits for room; a reader that leaves no room for that long is gone. `sock` does not block, before and after."""
    send_parts(sock, [head(header, len(body)), body], timeout)


def send_parts(sock, parts, timeout=_PATIENCE):
    """Messages that are packed already, in one go."""
    try:
        sent = _send_now(sock, parts)
        if sent == sum(map(len, parts)):
            return
        sock.settimeout(timeout)
        try:
            for part in parts:
                if sent < len(part):
                    sock.sendall(memoryview(part)[sent:])
                sent = max(0, sent - len(part))
        finally:
            sock.setblocking(False)
    except OSError as error:
        raise Closed from error


def _send_now(sock, parts):
    """How much there is room for at once: mostly all of it."""
    try:
        return sock.sendmsg(parts, (), socket.MSG_DONTWAIT)
    except BlockingIOError:
        return 0


def send_file(sock, fd, offset, length, timeout=_PATIENCE):
    """Part of a body, from a file and without a copy of it here. False where the file has less: zeros stand for the rest."""
    end = offset + length
    while offset < end:
        try:
            count = os.sendfile(sock.fileno(), fd, offset, end - offset)
        except BlockingIOError:
            if not select.select((), (sock,), (), timeout)[1]:
                raise Closed from None
            continue
        except OSError:
            break  # not a file of which the kernel can do this, or nobody who listens
        if count == 0:
            break
        offset += count
    is_all = True
    while offset < end:
        data = _read(fd, min(_CHUNK, end - offset), offset)
        is_all = is_all and data != b""
        data = data or bytes(min(_CHUNK, end - offset))
        send_parts(sock, [data], timeout)
        offset += len(data)
    return is_all


def _read(fd, length, offset):
    try:
        return os.pread(fd, length, offset)
    except OSError:
        return b""


def make_room(sock):
    """For a large piece of a file, so that sender and reader need not wake each other for every bit; as much as allowed."""
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _ROOM)
