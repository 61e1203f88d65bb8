"""Run as a program inside a session before any client's: tries what must not work, and says what did.

`target` holds what the server and another session put in reach: a file, two sockets, a process.
"""

import json
import os
import socket


def attempt(what):
    try:
        what()
        return True
    except (OSError, ValueError):
        return False


def read_file():
    with open(target["file"]) as file:  # noqa: F821
        file.read()


def connect_tcp():
    socket.create_connection(("127.0.0.1", target["port"]), timeout=1).close()  # noqa: F821


def connect_unix():
    with socket.socket(socket.AF_UNIX) as probe:
        probe.connect(target["socket"])  # noqa: F821


def signal_sibling():
    # the same number is another process in another namespace
    if os.readlink("/proc/self/ns/pid") != target["pids"]:  # noqa: F821
        raise OSError
    os.kill(target["pid"], 0)  # noqa: F821


def read_sibling():
    if not target["workspace"] or target["workspace"] == os.getcwd():  # noqa: F821
        raise OSError
    os.listdir(target["workspace"])  # noqa: F821


def crypto_socket():
    socket.socket(38, socket.SOCK_SEQPACKET).close()


def new_namespace():
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(0x10000000) != 0:
        raise OSError(ctypes.get_errno(), "unshare")


def load_library():
    import decimal
    import sqlite3

    assert sqlite3 and decimal


def run_shell():
    if os.system("true") != 0:
        raise OSError


def write_file():
    with open("self-test", "w") as file:
        file.write("x")
    os.unlink("self-test")


escapes = (
    ("read a file of the host", read_file),
    ("reached a TCP port of the host", connect_tcp),
    ("reached a socket file of the host", connect_unix),
    ("signalled another session", signal_sibling),
    ("read another session's files", read_sibling),
    ("opened a kernel crypto socket", crypto_socket),
    ("made a namespace", new_namespace),
)
needs = (
    ("load the standard library", load_library),
    ("run a shell", run_shell),
    ("write a file", write_file),
)

print(
    json.dumps(
        {
            "user": os.getuid() if target["never_root"] else -1,  # noqa: F821
            "escaped": [name for name, what in escapes if attempt(what)],
            "missing": [name for name, what in needs if not attempt(what)],
            "variables": sorted(os.environ),
        }
    )
)
