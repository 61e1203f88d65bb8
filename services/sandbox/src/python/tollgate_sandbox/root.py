"""The file tree that sessions see at level `ns`: the interpreter, the system's programs, and nothing of the host's own."""

import os
import sys
import sysconfig

from . import kernel

#: where the sockets of sessions are reached while the zygote runs; covered in every session
SOCKETS = "/run/sandbox"

#: programs, libraries and what they need to know; passed over where they do not exist
_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store")
_CONFIGURATION = (
    "/etc/ld.so.cache",
    "/etc/alternatives",
    "/etc/localtime",
    "/etc/mime.types",
    "/etc/fonts",
    "/etc/matplotlibrc",
)
_DEVICES = ("null", "zero", "full", "random", "urandom")
_FOLDERS = ("/proc", "/mnt", "/dev/shm", "/tmp", "/workspace", "/etc", SOCKETS)

_FILES = {
    "/etc/passwd": "root:x:0:0::/:/bin/false\nsandbox:x:{user}:{user}::/workspace:/bin/sh\n",
    "/etc/group": "root:x:0:\nsandbox:x:{user}:\n",
    "/etc/hosts": "127.0.0.1 localhost\n::1 localhost\n",
    "/etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
    "/etc/hostname": "sandbox\n",
}

DEVICE_PATHS = tuple(f"/dev/{name}" for name in _DEVICES)


def interpreter_folders():
    """Everything this interpreter may load from; what lies below another of them is left out."""
    names = ("stdlib", "platstdlib", "purelib", "platlib")
    folders = {os.path.realpath(sysconfig.get_path(name)) for name in names}
    folders |= {os.path.realpath(path) for path in (sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix)}
    folders.add(os.path.dirname(os.path.realpath(sys.executable)))
    kept = []
    for folder in sorted(folders):
        if folder == "/":
            raise OSError(0, "the interpreter's prefix is /, which cannot be shown to a sandbox", "sys.prefix")
        if os.path.isdir(folder) and not any(_below(folder, other) for other in kept):
            kept.append(folder)
    return kept


def readable_folders():
    """The system's and the interpreter's folders, by their own names: what level `landlock` leaves readable too."""
    return [path for path in _SYSTEM if os.path.exists(path)] + interpreter_folders()


def readable_files():
    return [path for path in _CONFIGURATION if os.path.exists(path)]


def build(base, sockets, user):
    """Makes a tree on a small tmpfs over the folder `base`, and turns it into the root of this mount namespace."""
    kernel.mount("none", "/", None, kernel.MS_REC | kernel.MS_PRIVATE)
    kernel.mount("tmpfs", base, "tmpfs", kernel.MS_NOSUID | kernel.MS_NODEV, "size=1m,mode=755")
    for folder in _FOLDERS:
        os.makedirs(base + folder, exist_ok=True)

    shown = []
    for path in readable_folders():
        if any(_below(path, other) for other in shown):
            continue
        if os.path.islink(path):
            os.symlink(os.readlink(path), base + path)
        else:
            os.makedirs(base + path, exist_ok=True)
            _show(path, base + path, kernel.ATTR_RDONLY | kernel.ATTR_NOSUID | kernel.ATTR_NODEV)
            shown.append(path)
    for path in readable_files():
        if os.path.isdir(path):
            os.makedirs(base + path, exist_ok=True)
        else:
            _touch(base + path)
        _show(path, base + path, kernel.ATTR_RDONLY | kernel.ATTR_NOSUID | kernel.ATTR_NODEV | kernel.ATTR_NOEXEC)
    for name in _DEVICES:
        _touch(f"{base}/dev/{name}")
        _show(f"/dev/{name}", f"{base}/dev/{name}", kernel.ATTR_RDONLY | kernel.ATTR_NOSUID | kernel.ATTR_NOEXEC)
    for name, target in (("fd", "/proc/self/fd"), ("stdin", "/proc/self/fd/0")):
        os.symlink(target, f"{base}/dev/{name}")
    for name, number in (("stdout", 1), ("stderr", 2)):
        os.symlink(f"/proc/self/fd/{number}", f"{base}/dev/{name}")
    for path, text in _FILES.items():
        with open(base + path, "w", encoding="ascii") as file:
            file.write(text.format(user=user))

    kernel.mount(sockets, base + SOCKETS, None, kernel.MS_BIND)
    # that of the sessions' processes; and one of its own a session may mount only while its namespace still sees one
    kernel.mount("proc", base + "/proc", "proc", kernel.MS_NOSUID | kernel.MS_NODEV | kernel.MS_NOEXEC)
    os.chdir(base)
    kernel.pivot_root_here()
    kernel.restrict_mount("/", kernel.ATTR_RDONLY | kernel.ATTR_NOSUID | kernel.ATTR_NODEV, below=False)


def _show(source, target, attributes):
    kernel.mount(source, target, None, kernel.MS_BIND | kernel.MS_REC)
    kernel.restrict_mount(target, attributes)


def _touch(path):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="ascii"):
        pass


def _below(path, folder):
    return path == folder or path.startswith(folder.rstrip("/") + "/")
