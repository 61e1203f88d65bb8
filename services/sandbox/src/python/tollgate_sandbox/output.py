"""What comes out of the pipes of programs: as much of it as is kept, and how much more there was."""

import os

#: what a pipe holds, unless its program made it larger
CHUNK = 1 << 16


class Output:
    """What came out of one pipe: the first bytes of it, and how many more there were."""

    def __init__(self, most):
        self.most = most
        self.kept = bytearray()
        self.dropped = 0

    def add(self, data):
        room = max(0, self.most - len(self.kept))
        self.kept += data[:room]
        self.dropped += max(0, len(data) - room)


def drain(fd, output, most=4 * CHUNK):
    """Takes what is there, but no endless stream at once. False when nothing will come any more."""
    taken = 0
    while taken < most:
        try:
            data = os.read(fd, CHUNK)
        except BlockingIOError:
            return True
        except OSError:
            return False
        if not data:
            return False
        taken += len(data)
        output.add(data)
    return True


def drain_all(fd, output):
    """Everything that was written up to now; a pipe holds little, and a writer that goes on is not waited for."""
    drain(fd, output, most=1 << 20)
