"""Runs a program as a container would that refuses namespaces: in a PID namespace of its own, so that nothing it does can
reach the machine, as the given user, and with a filter over the calls that make namespaces and mounts; or as one that has
the seccomp profile that TEST_SECCOMP_PROFILE names.

python3 -I run.py <user> <program> <argument>...
"""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../src/python"))
sys.dont_write_bytecode = True

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import shipped  # noqa: E402
from tollgate_sandbox import kernel, seccomp  # noqa: E402

user, program = int(sys.argv[1]), sys.argv[2:]
kernel.unshare(kernel.NEWPID | kernel.NEWNS)
child = os.fork()
if child:
    _pid, status = os.waitpid(child, 0)
    sys.exit(os.waitstatus_to_exitcode(status))
kernel.die_with_parent()
kernel.mount("none", "/", None, kernel.MS_REC | kernel.MS_PRIVATE)
kernel.mount("proc", "/proc", "proc", kernel.MS_NOSUID | kernel.MS_NODEV | kernel.MS_NOEXEC)
if user:
    os.setgroups([])
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)
    kernel.die_with_parent()
kernel.refuse_new_privileges()
profile = os.environ.pop("TEST_SECCOMP_PROFILE", None)
seccomp.Filter(shipped.build(profile) if profile else shipped.refusing_namespaces()).install()
os.execv(program[0], program)
