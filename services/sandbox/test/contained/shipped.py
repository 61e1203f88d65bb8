"""Filters as a container runtime sets them up."""

import errno
import glob
import json
import re

from tollgate_sandbox import kernel, seccomp

_LOAD, _EQUAL, _RETURN = 0x20, 0x15, 0x06
_ALLOW, _ERRNO = 0x7FFF0000, 0x50000
_HEADERS = ("/usr/include/x86_64-linux-gnu/asm/unistd_64.h", "/usr/include/asm-generic/unistd.h")


def refusing_namespaces():
    """What a runtime's default refuses of what the level `ns` needs: unshare, setns, mount, mount_setattr."""
    column = 0 if kernel.MACHINE == "x86_64" else 1
    program = [seccomp._op(_LOAD, 0)]
    for numbers in ((272, 97), (308, 268), (165, 40), (442, 442)):
        program += [seccomp._op(_EQUAL, numbers[column], 0, 1), seccomp._op(_RETURN, _ERRNO | errno.EPERM)]
    return program + [seccomp._op(_RETURN, _ALLOW)]


def build(path):
    """A profile in the form of Docker and Kubernetes, of which it takes what ours uses: names, one equal argument."""
    with open(path, encoding="utf-8") as file:
        profile = json.load(file)
    numbers = _numbers()
    program = [seccomp._op(_LOAD, 0)]
    for rule in profile["syscalls"]:
        verdict = _ALLOW if rule["action"] == "SCMP_ACT_ALLOW" else _ERRNO | rule["errnoRet"]
        for name in rule["names"]:
            if name not in numbers:
                continue  # of another machine
            body = [seccomp._op(_RETURN, verdict)]
            for argument in rule.get("args", ()):
                assert argument["op"] == "SCMP_CMP_EQ"
                body = [
                    seccomp._op(_LOAD, 16 + 8 * argument["index"]),
                    seccomp._op(_EQUAL, argument["value"], 0, 1),
                    *body,
                    seccomp._op(_LOAD, 0),
                ]
            program += [seccomp._op(_EQUAL, numbers[name], 0, len(body)), *body]
    return program + [seccomp._op(_RETURN, _ERRNO | profile["defaultErrnoRet"])]


def _numbers():
    for path in _HEADERS:
        for found in glob.glob(path):
            with open(found, encoding="ascii") as file:
                return {name: int(number) for name, number in re.findall(r"#define __NR_(\w+)\s+(\d+)", file.read())}
    raise OSError("no list of system calls: the kernel's headers are not installed")
