# SPDX-License-Identifier: Apache-2.0
"""The base of the tests that run vethguard-cni as libcni runs it."""
import json
import os
import subprocess
import time
import unittest

import attached
import cni_engines
import support
import test_exfiltration
from cni_engines import Chain, Failed
from daemon import Daemon
from support import SLOW, Case, policy, sh

POLICY = policy("{to: https://api.lab.test, methods: [GET]}")


class Plugin(Case):
    """One daemon, one folder of policies."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        if not os.path.exists(cni_engines.PLUGINS + "/bridge"):
            raise unittest.SkipTest("containernetworking-plugins is not installed")
        cls.policies = support.LAB.path(f"policies-{time.monotonic_ns()}")
        os.makedirs(cls.policies)
        for name in ("agent", "narrow"):
            with open(f"{cls.policies}/{name}.yaml", "w") as f:
                f.write(POLICY.replace("name: lab", "name: " + name))
        cls.daemon = Daemon()
        cls.count = 0

    @classmethod
    def tearDownClass(cls):
        cls.daemon.end()
        super().tearDownClass()

    def setUp(self):
        super().setUp()
        if self.daemon.process.poll() is not None:
            self.daemon.start()
        for s in self.daemon.call("GET", "/v1/sandboxes")[2]["sandboxes"]:
            self.daemon.call("DELETE", "/v1/sandboxes/" + s["name"])

    def netns(self):
        """A new namespace as a runtime makes it: its path, and an id for the container."""
        type(self).count += 1
        name = support.netns(self, f"pod{self.count}")
        return "/run/netns/" + name, f"c{self.count}-fedcba9876543210"  # shares no ten characters with a credential: cores are searched for those

    def guard(self, **members):
        return cni_engines.guard(members.pop("socket", self.daemon.socket), self.policies, **members)

    def chain(self, before=(), version="1.0.0", name="agents", **members):
        return Chain(name, [*before, self.guard(**members)], version)

    def names(self):
        return [s["name"] for s in self.daemon.call("GET", "/v1/sandboxes")[2]["sandboxes"]]

    def fails(self, code, words, what, *argv, **kw):
        with self.assertRaises(Failed) as caught:
            what(*argv, **kw)
        self.assertEqual(caught.exception.code, code, caught.exception)
        self.assertEqual(caught.exception.status, 1)
        self.assertRegex(caught.exception.text, words)
        return caught.exception.answer

    def silent(self, watch):
        """On the uplink is nothing but ends of the guard's own connections."""
        self.assertEqual([test_exfiltration.rows(f) for f in watch.sent() if attached.says_something(f)], [])

    def links(self, netns=None):
        return [link["ifname"] for link in json.loads(sh("ip", *(["-n", os.path.basename(netns)] if netns else []), "-j", "link"))]

    def curl(self, netns, url="https://api.lab.test/", seconds=20):
        """The answer that a program in the namespace gets, with any name server."""
        resolv = support.LAB.write("cni-resolv", "nameserver 192.0.2.53\n")
        return subprocess.run(["ip", "netns", "exec", os.path.basename(netns), "sh", "-c",
                               f'mount --bind {resolv} /etc/resolv.conf && exec curl -sSk -m {int(seconds * SLOW)} -o /dev/null -w "%{{http_code}}" "$0"',
                               url], capture_output=True, text=True)
