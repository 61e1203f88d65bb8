"""Opening files of a workspace so that no path leads out of it, and saying as HTTP would why one cannot be opened."""

import errno
import os

from . import kernel


class Refused(Exception):
    """What to answer, as HTTP would say it."""

    def __init__(self, status, reason):
        super().__init__(reason)
        self.status = status
        self.reason = reason


class Opened:
    """An open file as a context; why it could not be opened is said as HTTP would."""

    def __init__(self, root, relative, flags, mode):
        try:
            self.fd = kernel.openat2(root, relative, flags, mode)
        except OSError as error:
            raise _unopened(error) from error

    def __enter__(self):
        return self.fd

    def __exit__(self, *_):
        os.close(self.fd)


def _unopened(error):
    if error.errno in (errno.EXDEV, errno.ELOOP):
        return Refused(403, "leads outside the workspace")
    if error.errno in (errno.ENOENT, errno.ENOTDIR):
        return Refused(404, "no such file")
    if error.errno == errno.EACCES:
        return Refused(403, "not permitted")
    return full(error)


def full(error):
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.ENOMEM):
        return Refused(413, "the workspace is full")
    # a name too long, a device without a driver, a file where a folder should be
    return Refused(400, os.strerror(error.errno))
