# SPDX-License-Identifier: Apache-2.0
"""A core of each program, taken while it works under load, across reloads and failures: values of credentials are in the keeper, in the workers
of the sandboxes that have them, and in the fetch that brings one; nowhere else. Neither are they in any file that was written, in what
descriptors lead to, or in the log."""
import json
import os
import secrets
import signal
import subprocess
import threading
import unittest

import cores
import support
from connect_case import Connected
from credential_service import PORT, Served
from support import VETHGUARD, policy, wait_until

RULE = "{to: 'https://api.lab.test', credential: api}"
LONGER = (("list",), ("credential", "list"), ("credential", "show", "one", "api"), ("session", "list"), ("stats", "one"), ("env", "one"))
SERVICE_SECRET = "client:secret&0123456789"  # that the service knows


def all_of(pid):
    return {pid: support.process_table()[pid], **support.descendants(pid)}


class Work(threading.Thread):
    """Requests with the credential, one after the other, until stopped."""

    def __init__(self, ask):
        super().__init__(daemon=True)
        self.ask, self.over, self.served = ask, threading.Event(), 0
        self.start()

    def run(self):
        while not self.over.is_set():
            self.served += self.ask()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.over.set()
        self.join()


@unittest.skipIf(support.ASAN, "freed memory stays in the sanitizer's quarantine")
class Cores(Served, Connected):
    """A daemon with a gateway; vethguard-connect in a sandbox elsewhere; three sessions with credentials of a file and of a service."""

    def setUp(self):
        super().setUp()
        self.values = {"one": "one-" + secrets.token_urlsafe(24), "two": "two-" + secrets.token_urlsafe(24), "service": SERVICE_SECRET}
        self.held = [os.path.realpath(support.LAB.path(n)) for n in ("seen.jsonl", "service-secret")]  # what the outside has, and the operator
        support.LAB.write("service-secret", SERVICE_SECRET + "\n", 0o600)
        self.tokens = {}
        for name in ("one", "two"):
            path = self.value_file(name)
            self.tokens[name] = self.session(name, f"'file:{path}'")
        source = {"oauth2": {"token_url": f"https://login.wild.lab.test:{PORT}/gate", "client_id": "agent one", "client_secret": f"file:{support.LAB.path('service-secret')}"}}
        self.tokens["fetched"] = self.session("fetched", json.dumps(source), ", timeout: 60s")
        self.write_token(self.tokens["one"])

    def value_file(self, name):
        path = support.LAB.write(f"value-{name}", self.values[name] + "\n", 0o600)
        self.held.append(os.path.realpath(path))
        return path

    def session(self, name, source, more=""):
        self.daemon.call("DELETE", f"/v1/sandboxes/{name}")
        text = policy(RULE, credentials=f"  api: {{source: {source}, inject: bearer{more}}}\n")
        status, _, answer = self.daemon.call("POST", "/v1/sessions", {"name": name, "policy": support.LAB.write(f"cores-{name}.yaml", text)})
        self.assertEqual(status, 201, answer)
        return answer["token"]

    def ask(self, name, path="/reflect"):
        r = self.curl(f"https://api.lab.test{path}", "-w", "%{http_code}", token=self.tokens[name], seconds=60)
        self.assertFalse(cores.shows(r.stdout.encode(), self.values), r)
        return r.stdout.endswith("200")

    def worker(self, name):
        return (self.daemon.call("GET", f"/v1/sandboxes/{name}")[2].get("worker") or {}).get("pid")

    def may_hold(self, pid, row, workers):
        """The values that a process may have in its memory."""
        if row[0].startswith("vethguard-keepe"):
            return set(self.values)
        if row[0].startswith("vethguard-fetch"):
            return {"service"}
        return {name for name in self.values if pid in workers.get(name, ())}

    def look_at_processes(self, workers):
        """Takes a core of each process; returns {program: names of values in it}. workers: {session: pids of its workers, also former ones}."""
        found = {}
        for name in workers:
            workers[name].add(self.worker(name))
        for pid, row in all_of(self.daemon.process.pid).items():
            try:
                seen = cores.found_in(pid, self.values)
            except OSError:
                continue  # it has just ended
            names = {name for name, _ in seen}
            self.assertLessEqual(names, self.may_hold(pid, row, workers), (row, seen))
            found[row[0]] = found.get(row[0], set()) | names
        return found

    def look_at_files(self):
        folders = [self.daemon.dir, support.LAB.dir]
        count = 0
        for path, data in cores.files(*folders, besides=self.held):
            count += 1
            self.assertEqual(cores.shows(data, self.values), set(), path)
        self.assertGreater(count, 10)
        for pid, row in all_of(self.daemon.process.pid).items():
            for path, data in cores.descriptors(pid):
                if path not in self.held:
                    self.assertEqual(cores.shows(data, self.values), set(), (row, path))

    def test_under_load(self):
        workers = {"one": set(), "two": set()}
        self.begin()  # vethguard-connect, with the session "one"
        with Work(lambda: self.ask("one")) as one, Work(lambda: self.ask("two")) as two, Work(self.through_connect) as connected:
            self.assertTrue(wait_until(lambda: min(one.served, two.served, connected.served) > 2), self.daemon.stderr())
            found = self.look_at_processes(workers)
            self.assertEqual(found["vethguard-keepe"], {"one", "two"})  # so it can be found where it is
            self.assertGreaterEqual(found["vethguard-worke"], {"one", "two"})
            self.assertTrue({"vethguardd", "vethguard-recor", "vethguard-gatew"} <= set(found), found)
            self.look_at_connect()
            self.during_a_fetch(workers)
            for trouble in (self.kill_worker, self.rotate, *((self.reload, self.kill_recorder) if cores.LONG else ())):
                trouble(workers)
                served = one.served, two.served
                self.assertTrue(wait_until(lambda: one.served > served[0] + 1 and two.served > served[1] + 1), self.daemon.stderr())
                self.look_at_processes(workers)
            self.look_at_clients()
        self.look_at_files()
        self.daemon.stop()
        self.look_at_stopped()

    def through_connect(self):
        r = self.fetch("https://api.lab.test/reflect", "-o", "/dev/null", "-w", "%{http_code}")
        return r.stdout == "200"

    def look_at_connect(self):
        pid = next(p for p, row in support.descendants(self.connect_process.pid).items() if row[0].startswith("vethguard-conne")) \
            if support.process_table()[self.connect_process.pid][0] == "ip" else self.connect_process.pid
        self.assertEqual(cores.found_in(pid, self.values), set())

    def during_a_fetch(self, workers):
        """Cores are taken after the service was asked and before it answers."""
        self.service.gate.clear()
        thread = threading.Thread(target=lambda: self.ask("fetched", "/fetched"), daemon=True)
        thread.start()
        try:
            self.assertTrue(wait_until(lambda: "/gate" in [a["path"] for a in self.service.asked]), self.daemon.stderr())
            found = self.look_at_processes(workers)
            self.assertEqual(found.get("vethguard-fetch"), {"service"}, "its own secret, and nothing else")
        finally:
            self.service.gate.set()
            thread.join()
        self.assertIn("Bearer gate-value-", json.dumps(self.seen_fields("/fetched")))
        self.values["fetched"] = next(v for n, v in self.seen_fields("/fetched") if n.lower() == "authorization").partition(" ")[2]
        workers["fetched"] = set()

    def seen_fields(self, path):
        with open(support.LAB.path("seen.jsonl")) as f:
            return next(r["headers"] for r in map(json.loads, f) if r.get("path") == path)

    # --- trouble ---

    def reload(self, _workers):
        self.assertEqual(self.daemon.call("POST", "/v1/reload")[0], 200)

    def kill_worker(self, workers):
        pid = self.worker("one")
        workers["one"].add(pid)
        os.kill(pid, signal.SIGKILL)
        self.assertTrue(wait_until(lambda: self.worker("one") not in (None, pid)), self.daemon.stderr())

    def kill_recorder(self, _workers):
        pid = self.pid_of("vethguard-recorder")
        os.kill(pid, signal.SIGKILL)
        self.assertTrue(wait_until(lambda: self.pid_of("vethguard-recorder") not in (None, pid)), self.daemon.stderr())

    def rotate(self, _workers):
        """The credential has a new value; finding the former one is a fault as before."""
        self.values["two"], former = "two-" + secrets.token_urlsafe(24), self.values["two"]
        self.value_file("two")
        r = self.daemon.cli("credential", "rotate", "two", "api")
        self.assertEqual(r.returncode, 0, r)
        self.assertFalse(cores.shows((r.stdout + r.stderr).encode(), {**self.values, "former": former}))

    # --- programs that run for a moment ---

    def look_at_clients(self):
        """Cores of an operator's commands are taken when they have their answer."""
        for words in (("credential", "check", "one", "api"), ("show", "one"), *(LONGER if cores.LONG else ())):
            with cores.Blocked([VETHGUARD, *words, "--socket", self.daemon.socket], stdin=subprocess.DEVNULL) as client:
                self.assertEqual(cores.found_in(client.process.pid, self.values), set(), words)

    def look_at_stopped(self):
        """After the daemon has ended in order, its log and everything that it left are searched."""
        for path, data in cores.files(self.daemon.dir, besides=self.held):
            self.assertEqual(cores.shows(data, self.values), set(), path)


@unittest.skipIf(support.ASAN, "freed memory stays in the sanitizer's quarantine")
class Sandboxed(support.Case):
    """A command under `vethguard run`, with a value from a variable: what every process of it holds, and what the sandbox can open."""

    def test_run(self):
        value = secrets.token_urlsafe(24)
        values = {"value": value}
        box = support.Sandbox(policy(RULE, credentials="  api: {source: 'env:CORES_VALUE', inject: bearer, env: API_KEY}\n"), env={"CORES_VALUE": value})
        self.addCleanup(box.close)
        self.assertEqual(box.run("curl", "-sS", "-o", "/dev/null", "-w", "%{http_code}", "https://api.lab.test/reflect").out, "200")
        pids = box.pids()
        self.assertTrue(cores.found_in(pids["keeper"], values))
        self.assertTrue(cores.found_in(pids["worker"], values))
        for role in ("supervisor", "recorder"):
            self.assertEqual(cores.found_in(pids[role], values), set(), role)
        for pid in all_of(pids["init"]):
            self.assertEqual(cores.found_in(pid, values, stop=False), set(), pid)
            for path, data in cores.descriptors(pid):
                self.assertEqual(cores.shows(data, values), set(), path)
        read = box.py("import os, glob, stat\nfor path in glob.glob('/proc/[0-9]*/fd/*') + glob.glob('/proc/[0-9]*/environ'):\n"
                      " try:\n  if stat.S_ISREG(os.stat(path).st_mode): print(open(path, 'rb').read(1 << 20).hex())\n except OSError: pass")
        self.assertFalse(cores.shows(b"".join(bytes.fromhex(line) for line in read.out.split()), values))


if __name__ == "__main__":
    unittest.main()
