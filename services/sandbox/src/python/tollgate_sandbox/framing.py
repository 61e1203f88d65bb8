"""Messages on a stream: the length of a JSON header, the length of a body, the header, the body."""

import json
import struct

_LENGTHS = struct.Struct(">II")
MAX_HEADER = 64 * 1024
MAX_BODY = 8 * 1024 * 1024


def encode(value):
    """JSON for a body: a header would be too small."""
    return json.dumps(value).encode("utf-8")


class Closed(Exception):
    """The other side is gone, or says what cannot be understood."""


def pack(header, body=b""):
    text = encode(header)
    return _LENGTHS.pack(len(text), len(body)) + text + body


class Reader:
    """Puts messages together from what a socket gives, which must not block."""

    def __init__(self, sock):
        self._socket = sock
        self._buffer = bytearray()

    def read(self):
        """All messages that are complete by now. Raises Closed when there will be no more."""
        while True:
            try:
                data = self._socket.recv(1 << 18)
            except (BlockingIOError, InterruptedError):
                break
            except OSError as error:
                raise Closed from error
            if not data:
                raise Closed
            self._buffer += data
            if len(data) < 1 << 18:
                break
        messages = []
        while len(self._buffer) >= _LENGTHS.size:
            header, body = _LENGTHS.unpack_from(self._buffer)
            if header > MAX_HEADER or body > MAX_BODY:
                raise Closed
            start = _LENGTHS.size + header
            if len(self._buffer) < start + body:
                break
            messages.append((json.loads(self._buffer[_LENGTHS.size : start]), bytes(self._buffer[start : start + body])))
            del self._buffer[: start + body]
        return messages


def send(sock, header, body=b"", timeout=30):
    """Waits for room; a reader that leaves no room for that long is gone."""
    sock.settimeout(timeout)
    try:
        sock.sendall(pack(header, body))
    except OSError as error:
        raise Closed from error
    finally:
        sock.setblocking(False)
