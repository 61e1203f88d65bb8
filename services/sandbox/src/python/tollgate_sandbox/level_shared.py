"""Levels `landlock-uid`, `landlock` and `process`, for where namespaces are not to be had: in most containers.

Sessions share the host's files, of which Landlock leaves them the interpreter, the system's programs and a folder of
their own; they have no network, since a filter refuses every socket. At `landlock-uid` each has a user of its own. At
`landlock` all share the server's: who may be signalled is then asked of the supervisor, modes and times of files cannot
be set, and processes are counted together. `process` is the same without Landlock: every file of the user is in reach.
"""

import fcntl
import os
import shutil
import signal

from . import kernel, landlock, limits, processes, root, seccomp, signals

#: before it a file could be emptied that Landlock does not let be written
_LEAST_SHARED = 3
_SCOPES_SIGNALS = 6
_OOM_SCORE = "800"
#: what programs like to know about the machine
_READABLE_PROC = ("/proc/cpuinfo", "/proc/meminfo", "/proc/stat", "/proc/filesystems", "/proc/uptime", "/proc/loadavg")
#: sessions' worth of processes that all sessions of one user may have together, beyond what it had before
_SHARED_SESSIONS = 16
_UNFINISHED = "new-"


class SharedLevel:
    bounds_disk = False

    def __init__(self, config):
        self.name = config["level"]
        self.own_users = self.name == "landlock-uid"
        self.workspace = self.temporary = None
        self.sockets = os.path.join(config["folder"], "sockets")
        self._sessions = os.path.join(config["folder"], "sessions")
        self._first_user = config["first_user"]
        # the limit is for tests of what older kernels have
        self._abi = 0 if self.name == "process" else min(landlock.version(), config.get("landlock_at_most", 99))
        self._removers = set()
        self._limits = config["limits"]
        self._held = -1
        self._filter = None
        # where users are shared, the kernel would let a signal go to any of the user's processes; and where Landlock
        # does not scope signals, to the supervisor
        self.guards_signals = not self.own_users or self._abi < _SCOPES_SIGNALS

    def describe(self):
        users = "a user each" if self.own_users else "one user for all, signals guarded"
        files = f"Landlock ABI {self._abi}" if self._abi else "no protection of files"
        return f"{files}, {users}, seccomp, no network"

    def start(self):
        self._check()
        if not self.own_users:
            # the kernel counts by user, the server's own threads among them
            own = _tasks_of(os.geteuid())
            self._limits["process_quota"] = own + _SHARED_SESSIONS * self._limits["processes"]
        self._filter = seccomp.build(inet=False, unix=False, own_root=False, own_user=self.own_users)
        os.mkdir(self._sessions)
        for folder in (os.path.dirname(self._sessions), self._sessions):
            os.chmod(folder, 0o711)
        kernel.adopt_orphans()
        return 0

    def _check(self):
        if not seccomp.is_possible():
            raise OSError(0, f"no filter for {kernel.MACHINE}", "seccomp")
        if self._abi == 0 and self.name != "process":
            raise OSError(0, "not there", "Landlock")
        if self.own_users:
            if os.geteuid() != 0:
                raise OSError(0, "only root can give sessions users of their own", "setuid")
            self._try_user()
            return
        if os.geteuid() == 0:
            raise OSError(0, "code would run as root", "user")
        if self._abi and self._abi < _LEAST_SHARED:
            raise OSError(0, f"ABI {self._abi} is too old for sessions that share a user", "Landlock")

    def prepare(self, _slot):
        """A session's folder gets a name that nobody knows before."""

    def fork(self):
        return kernel.fork()

    def end(self, pid, _slot):
        processes.end_descendants(pid)
        processes.kill(pid)

    def is_still(self, _pid):
        """Never: what a session may keep on disk is the supervisor's to see, as nothing else bounds it here."""
        return False

    def forget(self, sessions, ended):
        """Run by the zygote when children have ended: what the process 1 of a session left behind goes too."""
        self._removers.difference_update(ended)
        processes.end_descendants(os.getpid(), keep={*sessions, *self._removers})
        child = os.fork()
        if child == 0:
            self._remove_abandoned()
        self._removers.add(child)

    def enter(self, slot):
        kernel.adopt_orphans()
        with open("/proc/self/oom_score_adj", "w", encoding="ascii") as file:
            file.write(_OOM_SCORE)
        user = self._first_user + slot if self.own_users else None
        self._make_workspace(user)
        limits.limit_supervisor()
        if user is not None:
            kernel.forget_capability_bounds()
            _become(user)
        kernel.drop_capabilities()
        kernel.refuse_new_privileges()
        kernel.hide_memory()
        self._restrict(["/proc"])
        self._filter.install()

    def enter_program(self, channel):
        kernel.die_with_parent()
        self._restrict(_READABLE_PROC)
        if self.guards_signals:
            signals.guard_program(channel)

    def processes(self):
        return processes.tree(os.getpid())

    def end_processes(self, keep=()):
        return processes.end_descendants(os.getpid(), keep)

    def leave(self):
        shutil.rmtree(self.workspace, ignore_errors=True)

    def _restrict(self, proc):
        if self._abi == 0:
            return
        readable = [*root.readable_folders(), *root.readable_files(), *proc]
        landlock.restrict(read=readable, write=[self.workspace], devices=root.DEVICE_PATHS, scoped=self._abi >= _SCOPES_SIGNALS)

    def _make_workspace(self, user):
        """Its name cannot be guessed; a lock on it tells the zygote that its session lives."""
        name = os.urandom(16).hex()
        unfinished = os.path.join(self._sessions, _UNFINISHED + name)
        os.mkdir(unfinished, 0o700)
        os.mkdir(os.path.join(unfinished, ".tmp"), 0o700)
        if user is not None:
            os.chown(os.path.join(unfinished, ".tmp"), user, user)
            os.chown(unfinished, user, user)
        self._held = os.open(unfinished, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        fcntl.flock(self._held, fcntl.LOCK_EX)
        self.workspace = os.path.join(self._sessions, name)
        self.temporary = os.path.join(self.workspace, ".tmp")
        os.rename(unfinished, self.workspace)

    def _remove_abandoned(self):
        """In a child of the zygote, which can reach nothing but the sessions' folders."""
        try:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            kernel.refuse_new_privileges()
            if self._abi:
                landlock.restrict(read=root.readable_folders(), write=[self._sessions])
            for name in os.listdir(self._sessions):
                if name.startswith(_UNFINISHED):
                    continue
                path = os.path.join(self._sessions, name)
                held = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
                try:
                    fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    continue
                finally:
                    os.close(held)
                shutil.rmtree(path, ignore_errors=True)
        finally:
            os._exit(0)

    def _try_user(self):
        child = os.fork()
        if child == 0:
            try:
                _become(self._first_user)
                os._exit(0)
            finally:
                os._exit(1)
        _pid, status = os.waitpid(child, 0)
        if status != 0:
            raise OSError(0, f"users from {self._first_user} on cannot be taken here", "setuid")


def _become(user):
    os.setgroups([])
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)


def _tasks_of(user):
    """Threads of all processes of a user."""
    count = 0
    for pid in processes.parents():
        try:
            if os.stat(f"/proc/{pid}").st_uid == user:
                count += len(os.listdir(f"/proc/{pid}/task"))
        except OSError:
            continue
    return count
