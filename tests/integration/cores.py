# SPDX-License-Identifier: Apache-2.0
"""What a core of a process would hold, and where values of credentials are found in it, in files, and behind descriptors.

A core is taken as `gcore -a` takes it: the process is stopped, and everything that it can have written into its memory is read, also what is
left out of core dumps. With VETHGUARD_LONG=1 (`make check-cores`) gcore itself takes each core as well."""
import base64
import contextlib
import fcntl
import os
import re
import shutil
import signal
import stat
import subprocess

import support
from support import wait_until

RUN = 10  # consecutive bytes of a value that count as a finding
LONG = bool(os.environ.get("VETHGUARD_LONG"))
F_SETPIPE_SZ = 1031  # fcntl.h
BLOCK_MAX = 1 << 30  # a larger mapping is a sanitizer's shadow


def needles(value):
    """Texts of which any run of 2 * RUN - 1 bytes of the value holds one; and a part of its base64 at each alignment."""
    found = [value.encode()[i:i + RUN] for i in range(0, len(value) - RUN + 1, RUN)]
    return found + [base64.b64encode(b"\0" * skip + value.encode())[8:8 + RUN] for skip in range(3)]


def memory(pid):
    """The process's mappings but for those of programs and libraries that it cannot write: (what is mapped, bytes)."""
    with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb", 0) as mem:
        for line in maps:
            m = re.match(r"([0-9a-f]+)-([0-9a-f]+) (\S+) \S+ \S+ \S+ *(.*)", line)
            begin, end = int(m[1], 16), int(m[2], 16)
            if not re.match("rw|r..s", m[3]) or m[4].startswith("[v") or end - begin > BLOCK_MAX:
                continue
            with contextlib.suppress(OSError, OverflowError):
                mem.seek(begin)
                yield f"{m[3]} {m[4]}", mem.read(end - begin)


@contextlib.contextmanager
def stopped(pid):
    os.kill(pid, signal.SIGSTOP)
    try:
        if wait_until(lambda: state(pid) if state(pid) in "TtZ" else "", 5) not in ("T", "t"):
            raise ProcessLookupError(f"{pid} has ended")
        yield
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)


def state(pid):
    with open(f"/proc/{pid}/stat") as f:
        return f.read().rpartition(")")[2].split()[0]


def core(pid, stop=True):
    """What the process's memory holds now: a list of (mapping, bytes). stop=False: for what `vethguard run` waits for; it would stop as well, and
    with it everybody of its process group, as a shell's job does."""
    with stopped(pid) if stop else contextlib.nullcontext():
        found = list(memory(pid))
    if LONG and shutil.which("gcore"):
        path = support.LAB.path("core")
        subprocess.run(["gcore", "-a", "-o", path, str(pid)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
        with open(f"{path}.{pid}", "rb") as f:
            found.append(("gcore", f.read()))
        os.unlink(f"{path}.{pid}")
    return found


def shows(data, values):
    """The names of the values that the bytes show. values: {name: text}."""
    return {name for name, value in values.items() if any(n in data for n in needles(value))} if data else set()


def found_in(pid, values, stop=True):
    """The names of the values in the process's memory, and where."""
    return {(name, where) for where, data in core(pid, stop) for name in shows(data, values)}


def files(*folders, besides=()):
    """The regular files below the folders and what they hold."""
    for folder in folders:
        for place, _, names in os.walk(folder):
            for name in names:
                path = os.path.join(place, name)
                if os.path.realpath(path) in besides:
                    continue
                with contextlib.suppress(OSError):
                    if stat.S_ISREG(os.stat(path).st_mode):
                        with open(path, "rb") as f:
                            yield path, f.read()


def descriptors(pid):
    """What can be read behind the process's descriptors: files, memory files (rings, journals, images)."""
    with contextlib.suppress(OSError):
        for fd in os.listdir(f"/proc/{pid}/fd"):
            path = f"/proc/{pid}/fd/{fd}"
            with contextlib.suppress(OSError):
                if stat.S_ISREG(os.stat(path).st_mode):
                    with open(path, "rb") as f:
                        yield os.readlink(path), f.read()


class Blocked:
    """A program that has its answer and cannot write it: its standard output is a full pipe. So its memory can be looked at when all of its
    work is done."""

    def __init__(self, argv, **kw):
        self.reader, writer = os.pipe()
        fcntl.fcntl(writer, F_SETPIPE_SZ, 4096)
        os.set_blocking(writer, False)
        with contextlib.suppress(BlockingIOError):
            while True:
                os.write(writer, b"x")
        os.set_blocking(writer, True)
        self.process = subprocess.Popen(argv, stdout=writer, stderr=subprocess.PIPE, **kw)
        os.close(writer)

    def waits(self):
        """True once it waits for room in the pipe."""
        with open(f"/proc/{self.process.pid}/wchan") as f:
            return f.read().endswith("pipe_write")

    def __enter__(self):
        if not wait_until(lambda: self.process.poll() is not None or self.waits()) or self.process.poll() is not None:
            raise AssertionError(f"it does not wait: {self.process.poll()} {self.process.stderr.read()}")
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.process.stderr.close()
        os.close(self.reader)
