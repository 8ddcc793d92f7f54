# SPDX-License-Identifier: Apache-2.0
"""Credentials that a service hands out, in the daemon's sandboxes: with whose rights the service's secret is read, and what becomes
of a question that is under way when its policy, its sandbox or its daemon changes."""
import json
import os
import signal
import subprocess
import threading
import time

import control_case
import support
from control_case import GROUP, NOBODY
from credential_service import PORT, Served
from support import policy, wait_until

RULE = "{to: 'https://api.lab.test', credential: api}"


class Daemons(Served, control_case.Control):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.secret = support.LAB.write("daemons-client-secret", "client:secret&0123456789\n", 0o600)

    successor = None  # the process that an upgrade made of the daemon

    @classmethod
    def tearDownClass(cls):
        if cls.successor:
            os.kill(cls.successor, signal.SIGTERM)
            wait_until(lambda: not os.path.exists(f"/proc/{cls.successor}"))
        super().tearDownClass()

    def setUp(self):
        super().setUp()
        self.service.asked.clear()
        for event in (self.service.gate, self.service.hold):
            event.clear()
            self.addCleanup(event.set)

    def written(self, name, path, secret=None):
        source = {"oauth2": {"token_url": f"https://login.wild.lab.test:{PORT}{path}", "client_id": "agent one", "client_secret": f"file:{secret or self.secret}"}}
        return support.LAB.write(name + ".yaml", policy(RULE, credentials=f"  api: {{source: {json.dumps(source)}, inject: bearer, timeout: 60s}}\n"))

    def paths(self):
        return [a["path"] for a in self.service.asked]

    def fetches(self):
        """The pid of the daemon that serves now: an upgrade starts another process."""
        daemon = self.daemon.call("GET", "/v1/status")[2]["processes"]["supervisor"]
        return [p for p, row in support.descendants(daemon).items() if row[0] == "vethguard-fetch"]

    def sent(self, path):
        return [v for r in self.seen("http", path=path) for n, v in r["headers"] if n.lower() == "authorization"]

    def waiting(self, name, path="/gate"):
        """A sandbox with a request that waits for its credential: (namespace, list that curl's result will be in, thread, fetch's pid)."""
        netns = self.namespace()
        self.daemon.attach(netns=netns, policy=self.written(name, path), name=name)
        results, before = [], self.paths().count(path)
        thread = threading.Thread(target=lambda: results.append(self.inside(name, netns, f"https://api.lab.test/{name}", "-w", "%{http_code}", "-o", "/dev/null")))
        thread.start()
        self.addCleanup(thread.join)
        self.assertTrue(wait_until(lambda: self.paths().count(path) > before), self.daemon.stderr())
        return netns, results, thread, self.fetches()[-1]

    def test_the_machines_identity_is_not_the_callers(self):
        """A member of the group names a source that logs in as this machine: nobody is asked."""
        netns = self.namespace()
        source = {"azure-keyvault": {"url": f"https://login.wild.lab.test:{PORT}", "secret": "x"}}
        path = support.LAB.write("machines.yaml", policy(RULE, credentials=f"  api: {{source: {json.dumps(source)}, inject: bearer}}\n"))
        r = subprocess.run(["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", f"--groups={GROUP}", "curl", "-sS", "-w", "%{http_code}", "--unix-socket",
                            self.daemon.socket, "http://localhost/v1/sandboxes", "--json", json.dumps({"name": "machines", "netns": netns, "policy": path})],
                           capture_output=True, text=True)
        self.assertTrue(r.stdout.endswith("201"), r)
        self.assertEqual(self.inside("machines", netns, "https://api.lab.test/machines", "-w", "%{http_code}", "-o", "/dev/null").stdout, "502")
        self.assertIn("the identity of this machine logs in for policies that root names", self.daemon.stderr())
        self.assertEqual(self.paths(), [])

    def test_the_secret_is_read_with_the_callers_rights(self):
        """A member of the group names a file of root's: it is not read, and nobody is asked. Their own file is."""
        own = support.LAB.write("nobodys-client-secret", "client:secret&0123456789\n", 0o600)
        os.chown(own, NOBODY, NOBODY)
        for name, secret, status in (("roots", self.secret, "502"), ("own", own, "200")):
            netns = self.namespace()
            body = json.dumps({"name": name, "netns": netns, "policy": self.written(name, "/oauth/token", secret)})
            r = subprocess.run(["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", f"--groups={GROUP}", "curl", "-sS", "-w", "%{http_code}",
                                "--unix-socket", self.daemon.socket, "http://localhost/v1/sandboxes", "--json", body], capture_output=True, text=True)
            self.assertTrue(r.stdout.endswith("201"), r)
            self.assertEqual(self.inside(name, netns, "https://api.lab.test/rights", "-w", "%{http_code}", "-o", "/dev/null").stdout, status)
            self.assertEqual(len(self.paths()), int(status == "200"))
        self.assertIn("Permission denied", self.daemon.stderr())

    def test_a_reload_while_it_runs(self):
        """The answer of the former service reaches nobody."""
        netns, results, thread, fetch = self.waiting("reloaded")
        self.written("reloaded", "/oauth/token")
        self.assertEqual(self.daemon.call("POST", "/v1/sandboxes/reloaded/reload")[0], 200)
        self.assertTrue(wait_until(lambda: not os.path.exists(f"/proc/{fetch}")), self.daemon.stderr())
        self.service.gate.set()
        thread.join()
        self.assertIn(results[0].stdout, ("200", "403", "502"))
        self.assertEqual(self.inside("reloaded", netns, "https://api.lab.test/reloaded", "-w", "%{http_code}", "-o", "/dev/null").stdout, "200")
        self.assertTrue(all(v.startswith("Bearer oauth-value-") for v in self.sent("/reloaded")), self.sent("/reloaded"))
        self.assertEqual(self.fetches(), [])

    def test_a_detach_while_it_runs(self):
        _, _, thread, fetch = self.waiting("detached")
        self.assertEqual(self.daemon.call("DELETE", "/v1/sandboxes/detached")[0], 200)
        self.assertTrue(wait_until(lambda: not os.path.exists(f"/proc/{fetch}")), self.daemon.stderr())
        thread.join()
        self.assertEqual(self.sent("/detached"), [])

    def test_the_keeper_dies_while_it_runs(self):
        """The next keeper asks anew; what the former one asked for reaches nobody under another question's number."""
        netns, _, thread, _ = self.waiting("kept")
        self.kill_keeper()
        self.service.gate.set()
        thread.join()
        self.assertTrue(wait_until(lambda: self.inside("kept", netns, "https://api.lab.test/kept", "-w", "%{http_code}", "-o", "/dev/null").stdout == "200"),
                        self.daemon.stderr())
        self.assertTrue(all(v.startswith("Bearer gate-value-") for v in self.sent("/kept")), self.sent("/kept"))
        self.assertTrue(wait_until(lambda: not self.fetches()))

    def kill_keeper(self):
        count = self.daemon.stderr().count("another one is started")
        os.kill(self.daemon.call("GET", "/v1/status")[2]["processes"]["keeper"], signal.SIGKILL)
        self.assertTrue(wait_until(lambda: self.daemon.stderr().count("another one is started") > count))

    def test_no_answer_for_the_next_keeper(self):
        """Both keepers number their questions from one. A value for the first keeper's sandbox must not reach the second keeper's other sandbox."""
        self.kill_keeper()
        netns = self.namespace()
        self.daemon.attach(netns=netns, policy=self.written("spent", "/error"), name="spent")
        for _ in range(2):  # questions 1 and 2
            self.inside("spent", netns, "https://api.lab.test/spent")
            time.sleep(1.1)
        self.waiting("first")  # 3
        self.kill_keeper()
        others = [self.waiting(f"other-{n}", "/hold") for n in range(4)]  # up to 4 or 5: 3 is one of them
        self.service.gate.set()
        time.sleep(1)
        self.service.hold.set()
        for n, (_, results, thread, _) in enumerate(others):
            thread.join()
            self.assertEqual(results[0].stdout, "200", self.daemon.stderr())
            self.assertRegex(self.sent(f"/other-{n}")[0], "^Bearer hold-value-")

    def test_an_upgrade_while_it_runs(self):
        netns, _, thread, fetch = self.waiting("upgraded")
        before = self.daemon.call("GET", "/v1/status")[2]["processes"]["supervisor"]

        def supervisor():
            try:
                return self.daemon.call("GET", "/v1/status")[2]["processes"]["supervisor"]
            except OSError:
                return before
        os.kill(before, signal.SIGUSR2)
        self.assertTrue(wait_until(lambda: supervisor() != before), self.daemon.stderr())
        self.service.gate.set()
        thread.join()
        self.assertTrue(wait_until(lambda: not os.path.exists(f"/proc/{fetch}")), self.daemon.stderr())
        self.assertTrue(wait_until(lambda: self.inside("upgraded", netns, "https://api.lab.test/upgraded", "-w", "%{http_code}", "-o", "/dev/null").stdout == "200"),
                        self.daemon.stderr())
        self.assertTrue(wait_until(lambda: not self.fetches()))
        type(self).successor = supervisor()
