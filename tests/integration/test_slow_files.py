# SPDX-License-Identifier: Apache-2.0
"""Files on a file system that stops answering: the user who named one is told, and nobody else notices."""
import concurrent.futures
import os
import signal
import socket
import subprocess
import time
import unittest

import daemon_case
import support
from daemon import Daemon
from slow_files import SlowFiles
from support import HTTP, SLOW, VETHGUARD, file_credential, policy, wait_until

PER_USER = 8  # HELPER_CHILDREN_OF_ONE_MAX
MOST = 16 << 20  # SETTINGS_FILES_MAX
RULES = "{to: 'https://api.lab.test', methods: [GET], credential: api}"


class Slow(daemon_case.Attached):
    """Beside the sandbox of every test another one, "slow", whose policy is partly there."""

    def setUp(self):
        mount = support.LAB.path(f"slow-{time.monotonic_ns()}")
        os.makedirs(mount)
        if not SlowFiles.works(mount):
            self.skipTest("no FUSE here")
        super().setUp()
        self.files = SlowFiles(mount, {"part.yaml": policy(RULES, credentials=file_credential()).replace("name: lab\n", ""),
                                       "whole.yaml": policy(RULES, credentials=file_credential()), "secret": support.SECRET,
                                       "large.yaml": self.large()})
        self.addCleanup(self.files.close)
        self.addCleanup(self.files.go_on)
        self.mount = mount
        self.slow = support.netns(self, self.name + "s")

    def large(self):
        """For a test that needs it."""
        return ""

    def attach_slow(self, path, name="slow"):
        return self.daemon.call("POST", "/v1/sandboxes", {"name": name, "netns": f"/run/netns/{self.slow}", "policy": path})

    def write_main(self):
        return support.LAB.write(f"slow-{time.monotonic_ns()}.yaml", f"vethguard: 1\nname: main\ninclude: {self.mount}/part.yaml\n")


class Large(Slow):
    def large(self):
        return policy(RULES, credentials=file_credential()) + "# and so on\n" * (MOST // 12 + 1)

    def test_a_policy(self):
        status, _, answer = self.attach_slow(f"{self.mount}/large.yaml")
        self.assertEqual(status, 422, answer)
        self.assertIn(f"{self.mount}/large.yaml: with this file the policy is larger than 16 MiB", str(answer))
        self.assertEqual(self.attach_slow(f"{self.mount}/whole.yaml")[0], 201)


class Hanging(Slow):
    def make_daemon(self):
        daemon = Daemon(start=False)
        os.mkdir(os.path.join(daemon.dir, "log"))
        support.AUDITS.remove(daemon.audit)
        daemon.audit = os.path.join(daemon.dir, "log", "audit.jsonl")
        support.AUDITS.append(daemon.audit)
        return daemon.start()

    def test_the_audit_file(self):
        """It is to be opened anew, and its directory does not answer: the one that is open is written to."""
        log = os.path.dirname(self.daemon.audit)
        support.sh("mount", "--bind", self.mount, log)
        self.addCleanup(subprocess.run, ["umount", "-l", log], check=False, stderr=subprocess.DEVNULL)
        self.files.stop()
        os.kill(self.daemon.process.pid, signal.SIGHUP)
        self.assertTrue(wait_until(lambda: self.readers() == 1, 5 * SLOW), self.readers())
        self.assertTrue(self.daemon.call("GET", "/v1/sandboxes")[0] == 200 and self.asks())
        os.kill(self.daemon.process.pid, signal.SIGHUP)  # that is remembered
        self.assertEqual(self.daemon.stderr(), "")
        self.assertTrue(wait_until(lambda: "its file system does not answer" in self.daemon.stderr(), 20 * SLOW), self.daemon.stderr())
        self.files.go_on()
        support.sh("umount", "-l", log)
        self.assertTrue(wait_until(lambda: self.readers() == 0, 20 * SLOW), "nobody waits any more")
        old = self.daemon.audit + ".1"
        support.AUDITS.append(old)
        os.rename(self.daemon.audit, old)
        os.kill(self.daemon.process.pid, signal.SIGHUP)
        self.assertTrue(wait_until(lambda: os.path.exists(self.daemon.audit) and os.path.getsize(self.daemon.audit), 10 * SLOW))
        self.assertTrue(self.asks())
        self.assertTrue(wait_until(lambda: len(self.daemon.events(HTTP)) == 1, 10 * SLOW), "the request is in the new file")
        r = subprocess.run([VETHGUARD, "audit", "verify", old, self.daemon.audit], capture_output=True, text=True)
        self.assertEqual(r.returncode, 0, r)

    def test_a_policy(self):
        main = self.write_main()
        self.assertEqual(self.attach_slow(main)[0], 201)
        self.assert_served(netns=self.slow)
        self.assertEqual(self.daemon.call("POST", "/v1/sandboxes/slow/reload", {})[0], 200)
        self.assertEqual(self.show("slow")["policy"]["generation"], 2)
        self.files.stop()
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            asked = [pool.submit(self.daemon.call, "POST", "/v1/sandboxes/slow/reload", {}),
                     pool.submit(self.daemon.call, "POST", "/v1/sandboxes/one/reload", {"policy": f"{self.mount}/whole.yaml"})]
            self.assertTrue(wait_until(lambda: self.readers() >= 2, 5 * SLOW), self.readers())
            self.assertTrue(self.daemon.call("GET", "/v1/sandboxes")[0] == 200 and self.asks() and self.asks(netns=self.slow))
            self.assertEqual(self.daemon.call("POST", "/v1/sandboxes/slow/reload", {})[0], 503)  # one is under way
            self.assertFalse(any(a.done() for a in asked), "they have not waited")
            answers = [a.result(60 * SLOW) for a in asked]
        for status, _, answer in answers:
            self.assertEqual(status, 422, answer)
            self.assertIn("has not answered for 5 seconds", str(answer))
            self.assertIn(self.mount, str(answer))
        self.assertEqual(self.show("slow")["policy"]["generation"], 2)
        self.assert_served(netns=self.slow)
        self.files.go_on()
        self.assertEqual(self.daemon.call("POST", "/v1/sandboxes/slow/reload", {})[0], 200)
        self.assertTrue(wait_until(lambda: self.readers() == 0, 5 * SLOW), "killed readers stay")

    def readers(self):
        """Children of the daemon that are the daemon's own program."""
        rows = support.descendants(self.daemon.process.pid)
        return sum(row[0] == "vethguardd" for row in rows.values())

    def test_too_many_of_one_user(self):
        """No more processes, no more waiting; the name of a waiting request stays free."""
        self.files.stop()
        with concurrent.futures.ThreadPoolExecutor(PER_USER) as pool:
            waiting = [pool.submit(self.attach_slow, f"{self.mount}/whole.yaml", f"w{i}") for i in range(PER_USER)]
            self.assertTrue(wait_until(lambda: self.readers() == PER_USER, 10 * SLOW), self.readers())
            status, _, answer = self.attach_slow(f"{self.mount}/whole.yaml", "beyond")
            self.assertEqual(status, 503, answer)
            self.assertIn("do not answer", str(answer))
            self.assertEqual(self.attach_slow(self.policy, "w0")[0], 201)
            self.files.go_on()
            answers = [w.result(60 * SLOW) for w in waiting]
        self.assertEqual({a[0] for a in answers}, {409}, answers)  # the namespace, or the name, was taken meanwhile
        self.assertEqual(self.daemon.call("DELETE", "/v1/sandboxes/w0")[0], 200)

    def test_a_credential(self):
        path = support.LAB.write(f"slow-{time.monotonic_ns()}.yaml",
                                 policy(RULES, credentials=file_credential(path=f"{self.mount}/secret")))
        self.assertEqual(self.attach_slow(path)[0], 201)
        self.assert_served(netns=self.slow)
        self.assertEqual(self.daemon.call("DELETE", "/v1/sandboxes/slow")[0], 200)
        self.files.stop()
        self.assertEqual(self.attach_slow(path)[0], 201)
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            asked = pool.submit(self.curl, "https://api.lab.test/whoami", netns=self.slow, seconds=20)
            self.assertTrue(wait_until(lambda: self.readers() > 0, 10 * SLOW), self.daemon.stderr())
            self.assertTrue(self.asks(), "the keeper waits")
            self.assertFalse(asked.done())
            self.assertIn("credential is not available", asked.result(60 * SLOW).stdout)
        self.assertTrue(wait_until(lambda: any("secret: its file system has not answered for 5 seconds" in str(e)
                                               for e in self.daemon.events()), 5 * SLOW), self.daemon.stderr())

    def test_a_restart(self):
        self.assertEqual(self.attach_slow(self.write_main())[0], 201)
        self.daemon.kill()
        self.files.stop()
        path = support.LAB.path(f"notify-{time.monotonic_ns()}")
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
            manager.bind(path)
            self.daemon.start(ready=False, env=dict(os.environ, NOTIFY_SOCKET=path))
            self.assert_answers_while_one_is_left()
            self.assertFalse(self.heard(manager), "it is not ready yet")
            self.assertTrue(wait_until(lambda: self.show("slow")["state"] == "failed", 20 * SLOW), self.show("slow"))
            self.assertTrue(wait_until(self.daemon.answers, 5 * SLOW), self.daemon.stderr())
            manager.settimeout(10 * SLOW)
            self.assertIn("READY=1", manager.recv(4096).decode())
        self.assertIn("has not answered for 5 seconds", self.show("slow")["reason"])
        self.files.go_on()
        self.daemon.kill()
        self.daemon.start()
        self.assert_served(netns=self.slow)

    def heard(self, manager):
        try:
            return "READY=1" in manager.recv(4096, socket.MSG_DONTWAIT).decode()
        except BlockingIOError:
            return False

    def assert_answers_while_one_is_left(self):
        call = self.daemon.call
        self.assert_served()
        self.assertEqual(self.show("slow")["state"], "restarting")
        self.assertEqual({s["name"]: s["state"] for s in call("GET", "/v1/sandboxes")[2]["sandboxes"]},
                         {"one": "serving", "slow": "restarting"})
        status = call("GET", "/v1/status")[2]
        self.assertFalse(status["ready"])
        self.assertEqual(status["sandboxes"]["restarting"], 1)
        for method, path, body in (("POST", "/v1/sandboxes/slow/reload", {}), ("DELETE", "/v1/sandboxes/slow", None),
                                   ("POST", "/v1/sandboxes/slow/pause", {}), ("GET", "/v1/sandboxes/slow/env", None),
                                   ("GET", "/v1/sandboxes/slow/stats", None), ("POST", "/v1/reload", {}),
                                   ("POST", "/v1/sandboxes", {"name": "new", "netns": "/run/netns/x", "policy": self.policy})):
            answer = call(method, path, body)
            self.assertEqual(answer[0], 503, answer)
            self.assertEqual({k.lower(): v for k, v in answer[1].items()}["retry-after"], "1")
            self.assertIn("taking its sandboxes over", answer[2]["detail"])
        self.assertEqual(call("POST", "/v1/upgrade", {})[0], 409)
        for what in ("pause", "resume", "reload"):
            self.assertEqual(call("POST", f"/v1/sandboxes/one/{what}", {})[0], 200)
        self.assertFalse(call("GET", "/v1/status")[2]["ready"], "too late to tell")


if __name__ == "__main__":
    unittest.main()
