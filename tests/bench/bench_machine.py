# SPDX-License-Identifier: Apache-2.0
"""What the machine itself does at this moment, beside which a latency has to be read: what computing takes, a wake-up, a namespace, and
what the hypervisor keeps."""
import ctypes
import mmap
import os
import socket
import time

CLONE_NEWNET = 0x40000000
PAGE = mmap.PAGESIZE
PIECE = 16 * PAGE  # of warmed memory: a page is kept, the rest is free
libc = ctypes.CDLL(None, use_errno=True)


def percentile(values, p):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * p / 100))]


def stolen():
    """Clock ticks that the hypervisor gave to others while this machine had something to do, since the boot (proc(5))."""
    with open("/proc/stat") as f:
        return int(f.readline().split()[8])


def bare_namespace():
    """Milliseconds that the machine takes, at this moment, for a process with a network namespace of its own and its end."""
    begin = time.monotonic()
    pid = os.fork()
    if pid == 0:
        os._exit(libc.unshare(CLONE_NEWNET) != 0)
    if os.waitpid(pid, 0)[1]:
        raise RuntimeError("no network namespace")
    return (time.monotonic() - begin) * 1e3


class Spin:
    """Computing, and nothing else: what the host takes away shows in it. The CPU is not always as quick as when it was measured out."""

    def __init__(self, milliseconds):
        self.rounds = 20000
        self.rounds = int(self.rounds * milliseconds / percentile([self.run() for _ in range(50)], 50))

    def run(self):
        """Milliseconds that it took at this moment."""
        begin, n = time.monotonic(), 0
        for i in range(self.rounds):
            n += i
        return (time.monotonic() - begin) * 1e3


class Echo:
    """A process that says back what it is told: what it takes to be woken, and to wake, at this moment."""

    def __init__(self):
        self.ours, theirs = socket.socketpair()
        self.pid = os.fork()
        if self.pid == 0:
            self.ours.close()
            while word := theirs.recv(1):
                theirs.send(word)
            os._exit(0)
        theirs.close()

    def ask(self):
        """Milliseconds."""
        begin = time.monotonic()
        self.ours.send(b"x")
        self.ours.recv(1)
        return (time.monotonic() - begin) * 1e3

    def close(self):
        self.ours.close()
        os.waitpid(self.pid, 0)


class Prompt:
    """While it lasts this program runs before all that is ordinary, as the daemon does: what is measured is the daemon, and not when the
    caller has its turn. What it starts is ordinary."""
    def __enter__(self):
        os.sched_setscheduler(0, os.SCHED_RR | os.SCHED_RESET_ON_FORK, os.sched_param(1))

    def __exit__(self, *_):
        os.sched_setscheduler(0, os.SCHED_OTHER | os.SCHED_RESET_ON_FORK, os.sched_param(0))


class Warm:
    """Free memory that a hypervisor has given already. A page that a virtual machine touches for the first time, or after it reported
    it as free, stops the CPU until the host has found one, for up to 13 ms as seen, and no clock of the guest tells of it. So
    a process touches as much as the sandboxes will need and gives it back in pieces that are too small to be reported."""

    def __init__(self, mebibytes):
        ready, done = os.pipe()
        self.end_r, self.end_w = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            os.close(self.end_w)
            with mmap.mmap(-1, mebibytes << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as memory:
                memory.madvise(mmap.MADV_NOHUGEPAGE)
                for at in range(0, len(memory), PAGE):
                    memory[at] = 1
                for at in range(0, len(memory), PIECE):
                    memory.madvise(mmap.MADV_DONTNEED, at + PAGE, PIECE - PAGE)
                os.write(done, b"x")
                os.read(self.end_r, 1)
            os._exit(0)
        os.close(done)
        if os.read(ready, 1) != b"x":
            raise MemoryError(f"{mebibytes} MiB cannot be touched")
        os.close(ready)
        os.close(self.end_r)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.close(self.end_w)
        os.waitpid(self.pid, 0)
