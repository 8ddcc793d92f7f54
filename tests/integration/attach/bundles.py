# SPDX-License-Identifier: Apache-2.0
"""OCI bundles of this machine's programs, and vethguard-runtime called as an engine calls it: no engine is needed, and
every moment between two calls belongs to the test."""
import json
import os
import subprocess
import time

import guests
import support
from support import SLOW

PROGRAM = os.path.join(os.path.dirname(support.VETHGUARD), "vethguard-runtime")
CAPABILITIES = ["CAP_NET_RAW", "CAP_DAC_OVERRIDE", "CAP_CHOWN"]


class Bundle:
    """One bundle, whose root file system is the image of guests.py."""

    def __init__(self, name, argv, env=(), **members):
        self.path = support.LAB.path(name)
        os.makedirs(self.path)
        self.config = {
            "ociVersion": "1.0.2", "hostname": name,
            "process": {"terminal": False, "user": {"uid": 0, "gid": 0}, "args": list(argv), "cwd": "/",
                        "env": ["PATH=/bin:/usr/bin", *env],
                        "capabilities": {k: list(CAPABILITIES) for k in ("bounding", "effective", "permitted")},
                        "rlimits": [{"type": "RLIMIT_CORE", "hard": 18446744073709551615, "soft": 18446744073709551615}]},
            "root": {"path": guests.Image.get(), "readonly": False},
            "mounts": [{"destination": "/proc", "type": "proc", "source": "proc"},
                       {"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "mode=755", "size=65536k"]}],
            "linux": {"namespaces": [{"type": t} for t in ("pid", "network", "ipc", "uts", "mount")]}, **members}
        self.write()

    def write(self, text=None):
        with open(self.path + "/config.json", "w") as f:
            f.write(text if text is not None else json.dumps(self.config))

    def read(self):
        with open(self.path + "/config.json") as f:
            return json.load(f)


class Runtime:
    """vethguard-runtime with a configuration and an engine's own state directory."""

    def __init__(self, daemon, policies, real="runc", **keys):
        self.tag = f"direct{time.monotonic_ns()}"
        self.root, self.log = support.LAB.path(self.tag + "-root"), support.LAB.path(self.tag + ".log")
        self.directory = keys.pop("directory", None) or support.LAB.path(self.tag)
        lines = {"policies": policies, "socket": daemon.socket, "directory": self.directory, "runtime": real, **keys}
        self.config = support.LAB.write(self.tag + ".yaml", "".join(f"{k}: {v}\n" for k, v in lines.items()))

    def words(self, *argv):
        return [PROGRAM, "--root", self.root, "--log", self.log, "--log-format", "json", f"--vethguard-config={self.config}", *argv]

    def __call__(self, *argv, timeout=60, **kw):
        kw.setdefault("stdout", subprocess.DEVNULL)
        with open(self.log + ".stderr", "w+") as err:
            r = subprocess.run(self.words(*argv), stdin=subprocess.DEVNULL, stderr=err, text=True, timeout=timeout * SLOW, **kw)
            err.seek(0)
            r.stderr = err.read()
        return r

    def create(self, bundle, name):
        return self("create", "--bundle", bundle.path, "--pid-file", bundle.path + "/pid", name)

    def said(self):
        """What an engine reads from the log: the last error."""
        with open(self.log) as f:
            return [json.loads(line)["msg"] for line in f if '"error"' in line][-1]

    def entries(self):
        return [n for n in os.listdir(self.directory) if n != ".lock"] if os.path.isdir(self.directory) else []

    def netns(self):
        """Paths of the namespaces of its containers."""
        return [f"/run/netns/vethguard-{n}" for n in self.entries()]
