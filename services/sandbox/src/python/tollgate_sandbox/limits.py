"""What one session may use, told to the kernel where it keeps count itself."""

import resource

from . import kernel

MIB = 1024 * 1024


def of_program(limits):
    """What `limit_program` does, laid out once for all sessions. No limit is ever raised."""
    wanted = {
        "RLIMIT_AS": limits["memory_bytes"],
        "RLIMIT_NPROC": limits.get("process_quota", limits["processes"]),
        "RLIMIT_FSIZE": limits["file_bytes"],
        "RLIMIT_NOFILE": limits["open_files"],
        "RLIMIT_MEMLOCK": 64 * 1024,
        "RLIMIT_SIGPENDING": 256,
        "RLIMIT_MSGQUEUE": 0,
        "RLIMIT_CORE": 0,
        "RLIMIT_RTPRIO": 0,
    }
    kinds = ((getattr(resource, name, None), value) for name, value in wanted.items())
    return tuple(
        kernel.prepare_limit(kind, _lowered(kind, value)) for kind, value in kinds if kind is not None and value is not None
    )


def limit_program(prepared):
    """For a process that runs a user's code, and all it starts."""
    for limit in prepared:
        limit()


def limit_supervisor():
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _lowered(kind, value):
    _soft, hard = resource.getrlimit(kind)
    return value if hard == resource.RLIM_INFINITY else min(value, hard)
