# SPDX-License-Identifier: Apache-2.0
"""A daemon of an earlier version, of which `make check-upgrade` has built the programs: its sandboxes, its
connections and its log are there after an upgrade to this version, after a kill, and after an upgrade that fails."""
import json
import os
import shutil
import signal
import subprocess
import time

import lab
import support
from daemon import Daemon
from support import SLOW, wait_until
from test_upgrade import Upgraded, alive

LINK, ROUTER = "vgfrom0", "10.56.0.1"
FROM = os.environ["VETHGUARD_FROM"]  # the folder of its programs
KEPT = ("id", "name", "attachment", "addresses", "labels", "owner", "paused", "created")


class From(Upgraded):
    """A namespace, an interface of the host that a second namespace is behind, and a paused sandbox."""

    def make_daemon(self):
        self.bin = support.LAB.path(f"bin-{time.monotonic_ns()}")
        shutil.copytree(FROM, self.bin)
        return Daemon(program=os.path.join(self.bin, "vethguardd"))

    def setUp(self):
        super().setUp()
        other = support.netns(self, self.name + "p")
        self.attach("paused", other)
        self.assertEqual(self.daemon.call("POST", "/v1/sandboxes/paused/pause")[0], 200)
        self.behind = support.netns(self, self.name + "i")
        self.addCleanup(subprocess.run, ["ip", "link", "del", LINK], check=False, capture_output=True)
        for words in (f"link add {LINK} type veth peer name eth0 netns {self.behind}", f"addr add {ROUTER}/24 dev {LINK}",
                      f"link set {LINK} up", f"-n {self.behind} addr add 10.56.0.2/24 dev eth0", f"-n {self.behind} link set eth0 up"):
            support.sh("ip", *words.split())
        self.daemon.attach(name="link", interface=LINK, policy=self.policy, labels={"of": "before"})
        self.before = {s["name"]: s for s in self.sandboxes()}
        self.assertEqual(set(self.before), {"one", "paused", "link"})

    def sandboxes(self):
        return self.daemon.call("GET", "/v1/sandboxes")[2]["sandboxes"]

    def install(self):
        """Like a package: replaces each program by the new one."""
        for name in os.listdir(lab.BIN):
            path = os.path.join(self.bin, name)
            if os.path.isfile(os.path.join(lab.BIN, name)):
                shutil.copy(os.path.join(lab.BIN, name), path + ".new")
                os.rename(path + ".new", path)

    def link_serves(self):
        r = subprocess.run(["ip", "netns", "exec", self.behind, "curl", "-sS", "-m", "10", "--cacert", self.ca, "-x",
                            f"http://{ROUTER}:3128", "https://api.lab.test/whoami"], capture_output=True, text=True)
        return r.returncode == 0 and json.loads(r.stdout).get("authenticated") is True

    def assert_kept(self):
        self.assert_served("the same CA", 10 * SLOW)
        self.assertTrue(wait_until(self.link_serves, 10 * SLOW), self.daemon.stderr())
        now = {s["name"]: s for s in self.sandboxes()}
        self.assertEqual(set(now), set(self.before))
        for name, before in self.before.items():
            for key in KEPT:  # a member that this version has added was not lost
                at = now[name][key]
                self.assertEqual({k: at.get(k) for k in before[key]} if isinstance(before[key], dict) else at, before[key], (name, key))
        self.assertEqual({s["name"]: s["state"] for s in self.sandboxes()}["paused"], "paused", self.sandboxes())
        self.assertFalse(self.asks(netns=self.name + "p", seconds=2), "it was paused, and is")

    def assert_log(self):
        r = subprocess.run([support.VETHGUARD, "audit", "verify", self.daemon.audit], capture_output=True, text=True)
        self.assertEqual(r.returncode, 0, r)

    def test_an_upgrade(self):
        self.assert_served()
        self.assertTrue(self.link_serves())
        worker, slow, websocket = self.pid("worker"), self.slowly(), self.echo()
        self.assertEqual(self.says(websocket, "before"), "before")
        self.install()
        new = self.upgrade()
        self.assert_kept()
        self.assertNotEqual(self.pid("worker"), worker)
        self.assertTrue(os.path.samefile(f"/proc/{new}/exe", os.path.join(self.bin, "vethguardd")))
        self.assertEqual(self.says(websocket, "after"), "after")
        self.assert_finished(*slow)
        websocket.stdin.close()
        websocket.wait(20 * SLOW)
        self.assertTrue(wait_until(lambda: self.daemon.process.poll() is not None, 20 * SLOW), self.daemon.stderr())
        self.assert_log()
        self.assertEqual(self.daemon.call("POST", "/v1/sandboxes/paused/resume")[0], 200)
        self.assertTrue(wait_until(lambda: self.asks(netns=self.name + "p"), 10 * SLOW), self.daemon.stderr())
        self.assertEqual(self.daemon.call("POST", "/v1/sandboxes/one/reload")[0], 200)
        self.assert_served("after a reload")
        for name in ("one", "link", "paused"):
            self.assertIn(self.daemon.call("DELETE", f"/v1/sandboxes/{name}")[0], (200, 204), name)
        self.assertEqual(self.sandboxes(), [])

    def test_a_kill(self):
        self.assert_served()
        self.daemon.kill()
        self.assertFalse(self.asks(seconds=2), "nothing is open meanwhile")
        self.install()
        self.daemon.start()
        self.assert_kept()
        self.assert_log()

    def test_a_stop(self):
        self.assert_served()
        self.daemon.stop()
        self.assertFalse(self.asks(seconds=2), "nothing is open meanwhile")
        self.install()
        self.daemon.start()
        self.assert_kept()
        self.assert_log()

    def test_an_upgrade_that_fails(self):
        """This version finds a fault in a policy: the earlier daemon keeps all of its sandboxes as they were."""
        pid, worker = self.daemon.process.pid, self.pid("worker")
        self.install()
        with open(self.policy) as f:
            good = f.read()
        with open(self.policy, "a") as f:
            f.write("nonsense: 1\n")
        os.kill(pid, signal.SIGUSR2)
        self.assertTrue(wait_until(lambda: "this one goes on" in self.daemon.stderr(), 30 * SLOW), self.daemon.stderr())
        with open(self.policy, "w") as f:
            f.write(good)
        self.assertTrue(alive(pid) and self.status()["processes"]["supervisor"] == pid)
        self.assertEqual(self.pid("worker"), worker)
        self.assert_kept()
