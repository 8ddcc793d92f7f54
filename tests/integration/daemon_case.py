# SPDX-License-Identifier: Apache-2.0
"""What the tests of a daemon share: a daemon, a namespace that it guards, and questions to both."""
import json
import os
import subprocess
import time
import unittest

import support
from daemon import Daemon
from support import PACE, SLOW, descendants, file_credential, policy, wait_until

PROXY = "http://198.18.0.1:3128"
ROLES = {"keeper": "vethguard-keepe", "recorder": "vethguard-recor", "worker": "vethguard-worke"}
READS = "{to: 'https://api.lab.test', methods: [GET], credential: api}"
SOON = 1 * SLOW  # how soon it has to serve again


class Attached(unittest.TestCase):
    """A daemon and a namespace that it guards."""

    def setUp(self):
        self.name = support.netns(self, f"box{time.monotonic_ns()}")
        self.policy = self.write(READS)
        self.daemon = self.make_daemon()
        self.addCleanup(self.daemon.stop)
        self.box = self.attach()
        self.ca = os.path.join(self.daemon.dir, "ca.pem")
        with open(os.path.join(self.daemon.data, "ca", "root.pem")) as f:
            self.pem = f.read()
        with open(self.ca, "w") as f:
            f.write(self.pem)

    def make_daemon(self):
        return Daemon()

    def write(self, *rules):
        return support.LAB.write(f"daemon-{time.monotonic_ns()}.yaml", policy(*rules, credentials=file_credential()))

    def attach(self, name="one", netns=None, **more):
        return self.daemon.attach(name=name, netns=f"/run/netns/{netns or self.name}", policy=self.policy, **more)

    def show(self, name="one"):
        return self.daemon.call("GET", f"/v1/sandboxes/{name}")[2]

    def curl(self, *argv, netns=None, seconds=10):
        return subprocess.run(["ip", "netns", "exec", netns or self.name, "curl", "-sS", "-m", str(seconds * PACE),
                               "--cacert", self.ca, "-x", PROXY, *argv], capture_output=True, text=True)

    def asks(self, **kw):
        """True: a request with the credential was served, under the CA of the beginning."""
        r = self.curl("https://api.lab.test/whoami", **kw)
        return r.returncode == 0 and json.loads(r.stdout).get("authenticated") is True

    def assert_served(self, why="", seconds=SOON, **kw):
        self.assertTrue(wait_until(lambda: self.asks(**kw), seconds), f"{why}: {self.daemon.stderr()} {self.show()}")

    def pid(self, role):
        if role == "worker":
            return self.show()["worker"]["pid"]
        return next(p for p, row in descendants(self.daemon.process.pid).items() if row[0] == ROLES[role])

    def state_files(self):
        return {d: os.listdir(os.path.join(self.daemon.state, d)) for d in ("sandboxes", "netns", "names", "rings", "told")}
