"""Level `ns`: a session has processes, files, network, IPC and a host name of its own, and no rights in any of them."""

import os
import signal

from . import kernel, landlock, limits, processes, root, seccomp

_INSIDE_USER = 1000
#: mounted on for a moment, to be moved from there
_STAGE = "/mnt"
_OOM_SCORE = "800"
#: what /proc tells about the machine and everybody on it
_HIDDEN = tuple(
    f"/proc/{name}"
    for name in ("keys", "key-users", "timer_list", "sched_debug", "latency_stats", "kallsyms", "kcore", "kmsg")
)


class NsLevel:
    name = "ns"
    workspace = "/workspace"
    temporary = "/tmp"
    #: the kernel bounds the disk a session fills, by the size of its tmpfs
    bounds_disk = True
    #: whoever could be signalled is of the session
    guards_signals = False

    def __init__(self, config):
        self._limits = config["limits"]
        self._folder = config["folder"]
        self._first_user = config["first_user"]
        # root gives each session a user of its own; anyone else a user namespace, where the one user counts alone
        self._own_users = os.geteuid() == 0
        self._landlock = landlock.version()
        self._zygote_pids = -1
        self._filter = None
        self.sockets = root.SOCKETS
        #: what every session does alike, laid out beforehand
        self._unshare = self._enter_zygote_pids = self._unshare_pids = None
        self._to_mount = ()
        self._folders = {}
        self._rules = None

    def describe(self):
        users = "a user each" if self._own_users else "a user namespace each"
        files = f", Landlock ABI {self._landlock}" if self._landlock else ""
        return f"namespaces, {users}, seccomp{files}"

    def start(self):
        """Makes a process the first of a PID namespace, so that the kernel ends all sessions when it ends.

        Returns 0 in that process; the caller stays outside and gets its number, to wait for it.
        """
        if not seccomp.is_possible():
            raise OSError(0, f"no filter for {kernel.MACHINE}", "seccomp")
        self._filter = seccomp.build(inet=True, unix=True, own_root=True, own_user=True)
        user, group = os.geteuid(), os.getegid()
        proc = os.open("/proc/self", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        kernel.unshare(kernel.NEWPID if self._own_users else kernel.NEWPID | kernel.NEWUSER)
        if not self._own_users:
            _map_user(proc, 0, user, group)
        os.close(proc)
        child = os.fork()
        if child:
            return child
        kernel.die_with_parent()
        kernel.unshare(kernel.NEWNS)
        root.build(os.path.join(self._folder, "root"), os.path.join(self._folder, "sockets"), _INSIDE_USER)
        self._zygote_pids = os.open("/proc/self/ns/pid", os.O_RDONLY | os.O_CLOEXEC)
        self._prepare()
        return 0

    def _prepare(self):
        """What sessions inherit is done once, and what they do alike is laid out."""
        kernel.unshare(kernel.NEWUTS)
        kernel.set_host_name(b"sandbox")
        limits.limit_supervisor()
        if self._own_users:
            kernel.forget_capability_bounds()
            os.setgroups([])
        self._unshare_pids = kernel.prepare_unshare(kernel.NEWPID)
        self._enter_zygote_pids = kernel.prepare_setns(self._zygote_pids, kernel.NEWPID)
        others = kernel.NEWNS | kernel.NEWNET | kernel.NEWIPC | kernel.NEWUTS | kernel.NEWCGROUP
        self._unshare = kernel.prepare_unshare(others)
        quiet = kernel.MS_NOSUID | kernel.MS_NODEV | kernel.MS_NOEXEC
        self._to_mount = (
            # ours in place of the zygote's, which sees its other sessions
            kernel.prepare_mount("proc", _STAGE, "proc", quiet),
            kernel.prepare_unmount("/proc"),
            kernel.prepare_mount(_STAGE, "/proc", None, kernel.MS_MOVE),
            *(kernel.prepare_mount("/dev/null", path, None, kernel.MS_BIND) for path in _HIDDEN if os.path.exists(path)),
            kernel.prepare_restriction("/proc", kernel.ATTR_RDONLY),
            kernel.prepare_unmount(self.sockets),
        )
        if self._landlock:
            writable = [self.workspace, self.temporary, "/dev/shm"]
            self._rules = landlock.Rules(read=["/"], write=writable, devices=root.DEVICE_PATHS, network=True)

    def prepare(self, slot):
        """Run by the zygote before it forks a session into that slot."""
        if slot in self._folders:
            return
        owner = self._first_user + slot if self._own_users else 0
        plain = kernel.MS_NOSUID | kernel.MS_NODEV
        options = f"nr_inodes={self._limits['inodes']},uid={owner},gid={owner}"
        self._folders[slot] = tuple(
            kernel.prepare_mount("tmpfs", path, "tmpfs", flags, f"{options},size={size},mode={mode}")
            for path, size, flags, mode in (
                (self.workspace, self._limits["workspace_bytes"], plain, "700"),
                (self.temporary, self._limits["temporary_bytes"], plain, "1777"),
                ("/dev/shm", self._limits["shared_bytes"], plain | kernel.MS_NOEXEC, "1777"),
            )
        )

    def fork(self):
        """Like os.fork(), but the child is process 1 of a namespace."""
        self._unshare_pids()
        try:
            child = kernel.fork()
        except OSError:
            self._enter_zygote_pids()
            raise
        if child:
            self._enter_zygote_pids()
        return child

    def end(self, pid, _slot):
        """Ends a session from outside: the kernel takes all its processes and mounts with its process 1."""
        os.kill(pid, signal.SIGKILL)

    def is_still(self, pid):
        """Run by the zygote: whether short calls left nothing that the supervisor must look after."""
        return processes.is_still(pid)

    def forget(self, _sessions, _ended):
        """Nothing can be left of a session whose process 1 has ended."""

    def enter(self, slot):
        """Run once by process 1 of a session; from here on it can do no more than the code it will run."""
        kernel.die_with_parent()
        os.close(self._zygote_pids)
        proc = os.open("/proc/self", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        self._unshare()
        for mount in (*self._folders[slot], *self._to_mount):
            mount()
        kernel.loopback_up()
        _write(proc, "oom_score_adj", _OOM_SCORE)
        if self._own_users:
            user = self._first_user + slot
            os.setresgid(user, user, user)
            os.setresuid(user, user, user)
        else:
            user, group = os.geteuid(), os.getegid()
            kernel.unshare(kernel.NEWUSER)
            _map_user(proc, _INSIDE_USER, user, group)
            kernel.forget_capability_bounds()
        os.close(proc)
        kernel.drop_capabilities()
        kernel.refuse_new_privileges()
        kernel.hide_memory()
        kernel.die_with_parent()  # a change of user takes it back
        if self._rules:
            self._rules.restrict()
        self._filter.install()

    def enter_program(self, _channel):
        """Run by each process that is about to run a user's code; it is confined already."""

    def leave(self):
        """The kernel removes files and mounts with the namespace."""

    def processes(self):
        own = os.getpid()
        return [pid for pid in processes.parents() if pid != own]

    def end_processes(self, keep=()):
        """Run by process 1: ends everything else in the session."""
        if keep:
            return processes.end_descendants(os.getpid(), keep)
        if os.getpid() != 1:
            raise RuntimeError("only process 1 of a namespace may signal everyone")
        try:
            os.kill(-1, signal.SIGKILL)
        except ProcessLookupError:
            pass  # nobody is left
        return True


def _map_user(proc, inside, user, group):
    _write(proc, "setgroups", "deny")
    _write(proc, "gid_map", f"{inside} {group} 1")
    _write(proc, "uid_map", f"{inside} {user} 1")


def _write(proc, name, text):
    fd = os.open(name, os.O_WRONLY | os.O_CLOEXEC, dir_fd=proc)
    try:
        os.write(fd, text.encode("ascii"))
    finally:
        os.close(fd)
