# SPDX-License-Identifier: Apache-2.0
"""vethguard-runtime behind containerd's shim, without Docker."""
import json
import os
import shutil
import subprocess
import unittest

import attached
import guests
import support
import test_exfiltration
from bundles import PROGRAM
from daemon import Daemon
from lab import DNS4, EVIL4, ORIGIN4, ORIGIN6
from support import PYTHON, SLOW, Case, wait_until


class Containerd(Case):
    """containerd's own client: the daemon's shim calls the program by its path (BinaryName)."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        if not shutil.which("ctr"):
            raise unittest.SkipTest("containerd is not installed")

    def test_ctr(self):
        """An allowed call, every way out from the first instruction on, and nothing left."""
        daemon = Daemon()
        self.addCleanup(daemon.stop)
        policies, folder = daemon.dir + "/policies", daemon.dir + "/containerd"
        os.makedirs(policies)
        os.makedirs(folder)
        with open(policies + "/agent.yaml", "w") as f:
            f.write(attached.POLICY % support.LAB.write("ctr-key", support.SECRET, 0o600))
        config = support.LAB.write("ctr.yaml", f"policies: {policies}\nsocket: {daemon.socket}\ndirectory: {daemon.dir}/runtime\n")
        program = support.LAB.write("ctr-runtime", f"#!/bin/sh\nexec {PROGRAM} --vethguard-config={config} \"$@\"\n", 0o755)
        toml = support.LAB.write("containerd.toml", f'version = 2\nroot = "{folder}/root"\nstate = "{folder}/state"\n'
                                 f'disabled_plugins = ["io.containerd.grpc.v1.cri"]\n[grpc]\n  address = "{folder}/sock"\n')
        with open(folder + "/log", "w") as log:
            engine = subprocess.Popen(["containerd", "--config", toml], stdout=log, stderr=log)
        self.addCleanup(engine.wait)
        self.addCleanup(engine.terminate)
        self.assertTrue(wait_until(lambda: subprocess.run(["ctr", "-a", folder + "/sock", "version"], capture_output=True).returncode == 0, 20 * SLOW))

        def ctr(name, *command, env=("VETHGUARD_POLICY=agent",)):
            words = [w for e in env for w in ("--env", e)]
            return subprocess.run(["ctr", "-a", folder + "/sock", "run", "--rm", "--runc-binary", program, *words, "--rootfs", guests.Image.get(),
                                   name, *command], capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=120)
        r = ctr("one", "/usr/bin/curl", "-sS", attached.WHOAMI)
        self.assertIn('"authenticated": true', r.stdout, r)
        with test_exfiltration.Watch() as watch:
            r = ctr("two", PYTHON, "/inside_battery.py", "tries", json.dumps(
                {"evil4": EVIL4, "dns4": DNS4, "origin4": ORIGIN4, "origin6": ORIGIN6, "services": [], "neighbours": [], "macs": [], "tag": "ctr"}))
            self.assertEqual(r.returncode, 0, r)
        self.assertEqual(watch.foreign(), [])
        self.assertEqual([row for row in watch.flows() if EVIL4 in map(str, row)], [])
        self.assertIn("names no policy", ctr("three", "/bin/true", env=()).stderr)
        self.assertEqual([n for n in os.listdir(daemon.dir + "/runtime") if n != ".lock"], [])
        self.assertTrue(wait_until(lambda: daemon.call("GET", "/v1/sandboxes")[2]["sandboxes"] == [], 10 * SLOW))
