# SPDX-License-Identifier: Apache-2.0
"""CPU time of a part of the tests, with everything it has started (`run --cpu`): a control group of its own counts it, also
processes that nobody has waited for; without one, the times of children that have ended count."""
import collections
import os

CGROUPS = "/sys/fs/cgroup"
SHOWN = 25


class CpuTime:
    def __init__(self):
        self.spent = collections.Counter()
        self.group = self.usage = None
        name = f"vethguard-tests-{os.getpid()}"
        for folder, usage in ((f"{CGROUPS}/cpuacct", "cpuacct.usage"), (CGROUPS, "cpu.stat")):
            group = os.path.join(folder, name)
            try:
                os.mkdir(group)
                with open(os.path.join(group, "cgroup.procs"), "w") as f:
                    f.write(str(os.getpid()))
                self.group, self.usage = group, os.open(os.path.join(group, usage), os.O_RDONLY)
                break
            except OSError:
                continue
        self.last = self.now()

    def now(self):
        if self.usage is None:
            return sum(os.times()[:4])
        text = os.pread(self.usage, 4096, 0).split()
        return int(text[1]) / 1e6 if text[0] == b"usage_usec" else int(text[0]) / 1e9

    def lap(self, name):
        """Seconds since the last call, which are name's."""
        now = self.now()
        spent, self.last = now - self.last, now
        self.spent[name] += spent
        return spent

    def close(self):
        if self.usage is not None:
            with open(os.path.join(os.path.dirname(self.group), "cgroup.procs"), "w") as f:
                f.write(str(os.getpid()))
            try:
                os.rmdir(self.group)
            except OSError:  # somebody is left in it
                pass

    def lines(self):
        """The classes that compute most."""
        yield f"{sum(self.spent.values()):8.1f} s of processors in all"
        for name, seconds in self.spent.most_common(SHOWN):
            yield f"{seconds:8.1f} s  {name}"
