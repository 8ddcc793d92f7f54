# SPDX-License-Identifier: Apache-2.0
"""Sessions without a worker: what wakes them, what lets them fall asleep, and that they are the same sessions before and after."""
import contextlib
import os
import resource
import signal
import threading
import time

import support
from gateway_case import Gatewayed
from support import FINDING, HTTP, SLOW, policy, wait_until

KEEP_S = 1 if support.ASAN else 0.3
LIMITED = ("{name: counted, to: 'http://plain.lab.test', limits: {requests: 3/1h}}", "{to: 'https://api.lab.test', methods: [GET], credential: api}")


class Sleeping(Gatewayed):
    options = f"  keep_worker: {int(1000 * KEEP_S)}ms\n"

    def session(self, name="one"):
        return self.daemon.call("GET", f"/v1/sessions/{name}")[2]

    def worker(self, name="one"):
        return self.session(name)["worker"]["pid"]

    def sleeps(self, name="one"):
        return self.worker(name) is None

    def assert_sleeps(self, name="one"):
        self.assertTrue(wait_until(lambda: self.sleeps(name), 20 * SLOW), self.daemon.stderr())

    def workers(self):
        return [p for p, row in support.descendants(self.daemon.process.pid).items() if row[0] == "vethguard-worke"]

    def get(self, token=None, path="x", **kw):
        return self.ask(f"Bearer {token or self.token}", f"http://plain.lab.test/{path}", **kw)

    def answers(self):
        return self.get().startswith(b"HTTP/1.1 200 ")

    def assert_answers(self, token=None):
        answer = self.get(token)
        self.assertTrue(answer.startswith(b"HTTP/1.1 200 "), (answer, self.daemon.stderr()))


class Asleep(Sleeping):
    def test_there_is_no_worker(self):
        """A new session has none; it is shown as serving, has its CA and placeholders, and its worker comes with the first request."""
        s = self.session()
        self.assertEqual((s["state"], s["worker"]["pid"]), ("serving", None), s)
        with open(self.ca) as f:
            root = f.read()
        before = self.daemon.call("GET", "/v1/sandboxes/one/env")[2]
        self.assertIn(root.strip(), before["ca"]["pem"] if isinstance(before.get("ca"), dict) else str(before).replace("\\n", "\n"))
        self.assert_answers()
        pid = self.worker()
        self.assertIn(pid, self.workers())
        self.assertEqual(self.daemon.call("GET", "/v1/sandboxes/one/env")[2], before)
        self.assert_sleeps()
        self.assertTrue(wait_until(lambda: not os.path.exists(f"/proc/{pid}"), 10 * SLOW))
        self.assertEqual(self.daemon.call("GET", "/v1/sandboxes/one/env")[2], before)
        self.assert_served("a credential, after it was asleep")
        self.assertNotEqual(self.worker(), pid)
        self.assertEqual(self.daemon.events(FINDING), [])

    def test_what_does_not_wake_it(self):
        """Wrong proofs and most calls of the control API do not wake a session."""
        for proof in (None, "Bearer wrong", f"Bearer {self.token}x", f"Bearer {self.token[:-1]}"):
            self.assertTrue(self.ask(proof).startswith(b"HTTP/1.1 407 "), proof)
        self.say(b"\x05\x01\x00", tls=False)
        for call in (("GET", "/v1/sessions"), ("GET", "/v1/sandboxes/one/stats"), ("GET", "/v1/sandboxes/one/env"), ("GET", "/v1/status"),
                     ("POST", "/v1/sandboxes/one/reload", {}), ("POST", "/v1/reload", {}), ("POST", "/v1/sessions/one/extend", {"ttl_s": 60})):
            status, _, answer = self.daemon.call(*call)
            self.assertEqual(status, 200, (call, answer))
        self.assertTrue(self.sleeps(), self.daemon.stderr())
        self.assertEqual(self.daemon.call("POST", "/v1/sandboxes/one/credentials/revoke", {"credential": "api"})[0], 200)
        self.assertTrue(self.sleeps(), "a revocation needs none")
        self.assertFalse(self.asks(), "it is revoked for the worker that comes later")
        self.assertEqual(self.daemon.call("POST", "/v1/sandboxes/one/reload", {})[0], 200)

    def test_what_keeps_it_awake(self):
        """An open connection keeps the session awake, even if it is idle; its end lets the session fall asleep."""
        kept = self.tunnel()
        pid = self.worker()
        time.sleep(4 * KEEP_S)
        self.assertEqual(self.worker(), pid, "a tunnel without traffic")
        kept.sendall(b"GET /x HTTP/1.1\r\nHost: plain.lab.test\r\n\r\n")
        self.assertTrue(self.head(kept).startswith(b"HTTP/1.1 200"))
        kept.close()
        self.assert_sleeps()

    def test_many_at_once(self):
        """Connections that come while the worker starts all get it; there is one worker."""
        answers = []
        threads = [threading.Thread(target=lambda: answers.append(self.get())) for _ in range(40)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual({a[:13] for a in answers}, {b"HTTP/1.1 200 "}, self.daemon.stderr())
        self.assertEqual(len(answers), 40)
        self.assertEqual(len({e["device"]["uid"] for e in self.daemon.events(HTTP)}), 1)
        self.assertEqual(self.session()["restarts"] if "restarts" in self.session() else 0, 0)

    def test_audit_and_stats(self):
        """Each request has its event, and the figures are those of all workers."""
        for i in range(3):
            self.assert_answers()
            self.get(path="y", tls=True)
            self.assertTrue(self.ask(f"Bearer {self.token}", "http://evil.lab.test/").startswith(b"HTTP/1.1 403 "))
            self.assert_sleeps()
            stats = self.daemon.call("GET", "/v1/sandboxes/one/stats")[2]
            self.assertEqual((stats["worker"]["requests"]["allowed"], stats["worker"]["requests"]["denied"]), (2 * (i + 1), i + 1), stats)
        self.assertTrue(wait_until(lambda: len(self.daemon.events(HTTP)) == 9, 10 * SLOW), self.daemon.events(HTTP))
        lines = [e["metadata"]["sequence"] for e in self.daemon.events() if e.get("device", {}).get("name") == "one"]
        self.assertEqual(lines, list(range(lines[0], lines[0] + len(lines))))

    def test_pause(self):
        """A paused session wakes to say so, and nothing else."""
        self.assertEqual(self.daemon.cli("pause", "one", "--reason", "odd").returncode, 0)
        self.assertTrue(self.sleeps())
        self.assertEqual(self.session()["state"], "paused")
        answer = self.get()
        self.assertTrue(answer.startswith(b"HTTP/1.1 503 ") and b"odd" in answer, answer)
        self.assert_sleeps()
        self.assertEqual(self.session()["state"], "paused")
        self.daemon.kill()
        self.daemon.start()
        answer = self.get()
        self.assertTrue(answer.startswith(b"HTTP/1.1 503 ") and b"odd" in answer, answer)
        self.assertEqual(self.daemon.cli("resume", "one").returncode, 0)
        self.assert_answers()
        kept = self.tunnel()
        pid = self.worker()
        self.assertEqual(self.daemon.cli("pause", "one").returncode, 0)
        self.assertFalse(os.path.exists(f"/proc/{pid}"), "the pause is complete")
        self.assertEqual(self.rest(kept), b"")
        self.assertTrue(self.sleeps())

    def test_reload(self):
        """The next worker has the policy of the reload; one that does not load changes nothing."""
        for rule, code in (("deny:\n  - {to: 'http://plain.lab.test'}\n", b"403"), ("", b"200")):
            with open(self.policy) as f:
                before = f.read()
            with open(self.policy, "w") as f:
                f.write(before + rule if rule else before.split("deny:")[0])
            generation = self.session()["policy"]["generation"]
            self.assertEqual(self.daemon.cli("reload", "one").returncode, 0)
            self.assertEqual(self.session()["policy"]["generation"], generation + 1)
            self.assertTrue(self.sleeps())
            answer = self.get()
            self.assertEqual(answer[9:12], code, answer)
            self.assert_sleeps()
        with open(self.policy, "a") as f:
            f.write("nonsense: 1\n")
        self.assertNotEqual(self.daemon.cli("reload", "one").returncode, 0)
        self.assert_answers()

    def test_revoked_and_over(self):
        """A session that is asleep ends like another."""
        other = self.create("two")["token"]
        short = self.create("short", ttl_s=1)["token"]
        self.assertEqual(self.daemon.call("DELETE", "/v1/sessions/two")[0], 200)
        self.assertTrue(wait_until(lambda: self.daemon.call("GET", "/v1/sessions/short")[0] == 404, 10 * SLOW))
        for token in (other, short):
            self.assertTrue(self.get(token).startswith(b"HTTP/1.1 407 "))
        self.assertEqual(os.listdir(os.path.join(self.daemon.state, "sandboxes")), ["one.json"])

    def test_credentials(self):
        """What an operator asks about credentials needs a worker, and wakes it."""
        status, _, answer = self.daemon.call("GET", "/v1/sandboxes/one/credentials")
        self.assertEqual(status, 200, answer)
        self.assertFalse(self.sleeps())
        self.assert_sleeps()
        status, _, answer = self.daemon.call("POST", "/v1/sandboxes/one/credentials/check", {"credential": "api"})
        self.assertEqual(status, 200, answer)
        status, _, answer = self.daemon.call("POST", "/v1/sandboxes/one/credentials/check", {"credential": "none"})
        self.assertEqual(status, 422, answer)

    def test_a_source_that_cannot_be_read(self):
        """The warnings of an attachment need no worker."""
        path = support.LAB.path("missing")
        bad = support.LAB.write("asleep-missing.yaml", policy(*self.rules, credentials=support.file_credential(path=path)))
        status, _, answer = self.daemon.call("POST", "/v1/sessions", {"name": "bad", "policy": bad})
        self.assertEqual(status, 201, answer)
        self.assertTrue(any(path in w for w in answer["warnings"]), answer)


class Budget(Sleeping):
    rules = LIMITED

    def test_budgets(self):
        """What was counted before a worker ended counts for the next one."""
        self.assert_answers()
        self.assert_sleeps()
        self.assert_answers()
        self.assert_sleeps()
        self.assert_answers()
        self.assertTrue(self.get().startswith(b"HTTP/1.1 429 "))
        self.assert_sleeps()
        self.assertTrue(self.get().startswith(b"HTTP/1.1 429 "))


class Faults(Sleeping):
    def test_no_worker_can_be_started(self):
        """Nothing goes through while no worker can be started, and the session serves once one can."""
        pid = self.daemon.process.pid
        before = resource.prlimit(pid, resource.RLIMIT_NOFILE)
        try:
            self.assertTrue(wait_until(lambda: self.starves(pid, before[1]), 20 * SLOW), os.listdir(f"/proc/{pid}/fd"))
            answers = []
            t = threading.Thread(target=lambda: answers.append(self.get(timeout=60 * SLOW)))
            t.start()
            self.assertTrue(wait_until(lambda: "no worker can be started" in self.daemon.stderr() or answers, 20 * SLOW), self.daemon.stderr())
            self.assertEqual((answers, self.daemon.events(HTTP)), ([], []))
        finally:
            resource.prlimit(pid, resource.RLIMIT_NOFILE, before)
        t.join()
        self.assertIn(answers[0][:13], (b"HTTP/1.1 200 ", b"HTTP/1.1 503 "), answers)
        self.assert_answers()

    @staticmethod
    def starves(pid, most):
        """Sets the limit so that no descriptor is free. False: some were in use only for a moment, and are free now."""
        def free():
            used = {int(fd) for fd in os.listdir(f"/proc/{pid}/fd")}
            return next(fd for fd in range(len(used) + 1) if fd not in used)
        limit = free()
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (limit, most))
        time.sleep(0.2)
        return free() >= limit

    def test_killed_workers(self):
        """A worker that dies while it wakes is replaced; connections wait for the next."""
        for _ in range(3):
            for worker in self.workers():
                with contextlib.suppress(ProcessLookupError):  # it was about to end
                    os.kill(worker, signal.SIGKILL)
            self.assertTrue(wait_until(self.answers, 10 * SLOW), self.daemon.stderr())
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.worker(), signal.SIGKILL)
            self.assertTrue(wait_until(self.answers, 10 * SLOW), self.daemon.stderr())
            self.assert_sleeps()

    def test_keeper_and_recorder(self):
        """Keeper, recorder and gateway are replaced while the session sleeps, and it wakes as before."""
        for program in ("vethguard-keeper", "vethguard-recorder", "vethguard-gateway"):
            pid = self.pid_of(program)
            os.kill(pid, signal.SIGKILL)
            self.assertTrue(wait_until(lambda: self.pid_of(program) not in (None, pid), 20 * SLOW))
            self.assertTrue(wait_until(self.listens, 20 * SLOW))
            self.assert_served(program)
            self.assert_sleeps()
        self.assertEqual({e["finding_info"]["types"][0] for e in self.daemon.events(FINDING)}, {"process-died"})

    def test_restarts(self):
        """The next daemon knows the session, and starts no worker for it."""
        for end in (self.daemon.kill, self.daemon.stop):
            end()
            self.daemon.start()
            self.assertEqual(self.session()["state"], "serving")
            self.assertTrue(self.sleeps())
            self.assertTrue(wait_until(self.listens, 10 * SLOW))
            self.assert_served()
            self.assert_sleeps()

    def test_upgrade(self):
        """A version that takes over knows the sessions and starts no worker for them. Relayed connections go on."""
        kept, other = self.tunnel(), self.create("two")["token"]
        before = self.daemon.process.pid
        os.kill(before, signal.SIGUSR2)
        self.assertTrue(wait_until(lambda: self.answering() not in (None, before), 30 * SLOW), self.daemon.stderr())
        after = self.answering()
        self.addCleanup(self.finish, after)
        self.assertTrue(self.sleeps("two"))
        self.assert_answers(other)
        self.assert_answers()
        kept.sendall(b"GET /x HTTP/1.1\r\nHost: plain.lab.test\r\n\r\n")
        self.assertTrue(self.head(kept).startswith(b"HTTP/1.1 200"), "what was relayed goes on")
        kept.close()
        self.assertTrue(wait_until(lambda: self.daemon.process.poll() is not None, 30 * SLOW), self.daemon.stderr())
        self.assert_sleeps("two")
        self.assert_sleeps()

    def test_an_upgrade_that_fails(self):
        """The next version cannot start. The old one goes on: its sessions sleep, and wake; a relayed connection goes on."""
        other, pid = self.create("two")["token"], self.daemon.process.pid
        for path in (self.daemon.config, self.policy):
            kept = self.tunnel()
            with open(path) as f:
                good = f.read()
            with open(path, "a") as f:
                f.write("nonsense: 1\n")
            before = self.daemon.stderr().count("this one goes on")
            os.kill(pid, signal.SIGUSR2)
            self.assertTrue(wait_until(lambda n=before: self.daemon.stderr().count("this one goes on") > n, 30 * SLOW), self.daemon.stderr())
            self.assertEqual(self.answering(), pid, path)
            self.assertTrue(wait_until(lambda: self.session("two")["state"] == "serving", 20 * SLOW), self.session("two"))
            self.assertTrue(self.sleeps("two"), path)
            self.assert_answers(other)
            self.assert_answers()
            kept.sendall(b"GET /x HTTP/1.1\r\nHost: plain.lab.test\r\n\r\n")
            self.assertTrue(self.head(kept).startswith(b"HTTP/1.1 200"), path)
            kept.close()
            self.assert_sleeps("two")
            with open(path, "w") as f:
                f.write(good)
        self.assert_sleeps()
        self.assert_answers(other)

    def answering(self):
        try:
            return self.daemon.call("GET", "/v1/status")[2]["processes"]["supervisor"]
        except (OSError, KeyError):
            return None

    @staticmethod
    def finish(pid):
        try:
            os.kill(pid, signal.SIGTERM)
            wait_until(lambda: not os.path.exists(f"/proc/{pid}"), 30 * SLOW)
        except ProcessLookupError:
            pass
