"""What one session may use, told to the kernel where it keeps count itself."""

import resource

MIB = 1024 * 1024


def limit_program(limits):
    """For a process that runs a user's code, and all it starts. No limit is ever raised."""
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
    for name, value in wanted.items():
        _lower(getattr(resource, name, None), value)


def limit_supervisor():
    _lower(resource.RLIMIT_CORE, 0)


def _lower(kind, value):
    if kind is None or value is None:
        return
    _soft, hard = resource.getrlimit(kind)
    if hard != resource.RLIM_INFINITY:
        value = min(value, hard)
    resource.setrlimit(kind, (value, value))
