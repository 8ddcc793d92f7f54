# SPDX-License-Identifier: Apache-2.0
"""What the tests of vethguard-runtime with Docker and Podman have in common."""
import os
import shutil
import subprocess
import unittest

import attached
import guests
import support
from bundles import PROGRAM
from support import SLOW, wait_until

# gVisor of 2022 takes a namespace in which /proc/sys/net/core/rmem_default can be read for the host's, as kernels of
# today let every one.
OLD_RUNSC = """#!/bin/sh
exec unshare -m --propagation slave sh -c 'mount -t tmpfs none /mnt && mkdir /mnt/kernel /mnt/vm /mnt/fs &&
	for i in kernel vm fs; do mount --bind /proc/sys/$i /mnt/$i || exit; done && mount --rbind /mnt /proc/sys && exec runsc "$@"' sh "$@"
"""


class Runtime(attached.Guarded):
    """A container of each engine and each real runtime, for the battery of all kinds."""
    ENGINE, REAL, OPTIONS = None, None, ()

    @classmethod
    def setUpClass(cls):
        for program in (cls.ENGINE, cls.REAL):
            if not shutil.which(program):
                raise unittest.SkipTest(program + " is not installed")
        cls.engine, cls.ids = None, []
        super().setUpClass()

    @classmethod
    def make(cls):
        cls.policies, cls.directory = support.LAB.path(f"policies-{cls.tag}"), support.LAB.path(f"runtime-{cls.tag}")
        os.makedirs(cls.policies)
        shutil.copy(cls.policy, cls.policies + "/agent.yaml")
        shutil.copy(cls.narrow, cls.policies + "/narrow.yaml")
        cls.policy = cls.policies + "/agent.yaml"

    @classmethod
    def configure(cls, name, **keys):
        """A configuration, and the program under the real runtime's name."""
        lines = {"policies": cls.policies, "socket": cls.daemon.socket, "directory": cls.directory, **keys}
        return support.LAB.write(f"{cls.tag}-{name}.yaml", "".join(f"{k}: {v}\n" for k, v in lines.items()))

    @classmethod
    def begin(cls):
        old = support.LAB.write(f"{cls.tag}-runsc", OLD_RUNSC, 0o755)
        cls.config = cls.configure("runtime")
        runtimes = {f"vethguard-{name}": {"path": PROGRAM, "runtimeArgs": [f"--vethguard-config={cls.configure(name, runtime=path)}"]}
                    for name, path in (("runc", shutil.which("runc")), ("crun", shutil.which("crun") or "crun"), ("runsc", old))}
        cls.engine = guests.Engine(cls.ENGINE, runtimes)
        cls.addClassCleanup(cls.engine.stop)

    @classmethod
    def runtime(cls):
        """The engine's words that choose the program before the real runtime."""
        return ["--runtime", "vethguard-" + cls.REAL]

    @classmethod
    def start(cls, name, *options, command=("/bin/sleep", "100000"), detached=True):
        """docker run; CompletedProcess."""
        r = subprocess.run([*cls.prefix(), "run", *(["-d"] if detached else ["--rm"]), "--name", name, *cls.words(), *options, cls.engine.IMAGE,
                               *command], env=cls.engine.env, capture_output=True, text=True, timeout=120 * SLOW)
        if detached and r.stdout:
            cls.ids.append(r.stdout.split()[-1][:12])
        return r

    @classmethod
    def prefix(cls):
        return [cls.engine.name]

    @classmethod
    def words(cls):
        return [*cls.runtime(), *cls.OPTIONS]

    @classmethod
    def attach(cls, name="box"):
        """The container itself names its policy. Nothing has to be set inside: the runtime has done it."""
        if cls.engine is None:
            cls.begin()
        cls.env_file = support.LAB.write(f"{cls.tag}.env", "")
        cls.remove("agent")
        r = cls.start("agent", "-e", "VETHGUARD_POLICY=agent", "-e", f"VETHGUARD_NAME={name}", "-e", "VETHGUARD_LABEL_team=blue")
        assert r.returncode == 0, (r, cls.daemon.stderr()[-2000:])

    @classmethod
    def remove(cls, *names):
        subprocess.run([cls.engine.name, "rm", "-f", *(["-t", "0"] if cls.ENGINE == "podman" else []), *names], env=cls.engine.env,
                       capture_output=True, check=False)

    @classmethod
    def traces(cls):
        """What is left on the host of containers."""
        found = [n for n in os.listdir(cls.directory) if n != ".lock"]
        found += [n for n in os.listdir("/run/netns") if n.startswith("vethguard-") and n.removeprefix("vethguard-").split("-")[0] in cls.ids]
        with open("/proc/self/mountinfo") as f:
            found += [line for line in f if cls.directory in line or any("/vethguard-" + i in line for i in cls.ids)]
        return found

    @classmethod
    def inside(cls, *argv, env_file=None):
        return subprocess.run([*cls.prefix(), "exec", "agent", *argv], env=cls.engine.env, capture_output=True, text=True, timeout=120 * SLOW)

    def test_0_what_is_set(self):
        """The container sees the CA, the placeholder and the name server, and nothing of how it was asked for."""
        r = self.inside("/bin/env")
        self.assertNotIn("VETHGUARD_", r.stdout)
        self.assertIn("SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt", r.stdout)
        self.assertIn("LAB_KEY=vethguard-", r.stdout)
        info = self.info()
        self.assertEqual(info["labels"], {"team": "blue"})
        self.assertEqual(info["attachment"]["kind"], "netns")
        self.assertEqual(info["attachment"]["container"]["engine"], self.ENGINE)
        self.assertEqual(self.inside("/bin/ls", "/sys/class/net").stdout.split(), ["eth0", "lo"])

    def test_7_removed(self):
        self.daemon.start()
        self.attach()
        self.assert_works()
        self.remove("agent")
        self.assertTrue(wait_until(lambda: self.daemon.call("GET", "/v1/sandboxes/box")[0] == 404, 10 * SLOW))
        self.assertEqual(self.traces(), [])
