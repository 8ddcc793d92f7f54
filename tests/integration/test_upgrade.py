# SPDX-License-Identifier: Apache-2.0
"""The daemon hands everything over to another version of itself: connections under way live on in workers of the old one, new
ones go to the new one, no request fails meanwhile; and where the new one cannot take over, nothing has changed."""
import concurrent.futures
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time

import control_case
import daemon_case
import lab
import support
from daemon import Daemon, UnixConnection
from support import HTTP, LIFECYCLE, SLOW, VETHGUARD, descendants, wait_until

WS_PORT = 9446
LOG_ENDED = 600299  # type_uid of a file's last line
# Says "begun", and for each line that it reads echoes a message through the WebSocket.
ECHO = f"""
import sys
from inside import *
from websocket_frames import *
s = socket.create_connection(("198.18.0.1", 3128), timeout={30 * SLOW})
s.sendall(b"CONNECT www.lab.test:{WS_PORT} HTTP/1.1\\r\\nHost: www.lab.test:{WS_PORT}\\r\\n\\r\\n")
head = b""
while not head.endswith(b"\\r\\n\\r\\n"):
    head += s.recv(1)
client = Client(tls("www.lab.test", {WS_PORT}, sock=s, timeout={30 * SLOW}), "www.lab.test:{WS_PORT}", "/echo")
print("begun", client.status, flush=True)
for line in sys.stdin:
    client.send(TEXT, line.strip().encode())
    print(client.message()[0].decode(), flush=True)
"""


def cmdline(pid):
    try:
        with open(f"/proc/{pid}/cmdline") as f:
            return f.read().split("\0")
    except OSError:
        return []


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as f:
            return f.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


class Upgrader:
    """Before a test case with a daemon, which runs from a copy of the programs, so that those that are installed later can be others."""

    def make_daemon(self):
        self.bin = support.LAB.path(f"bin-{time.monotonic_ns()}")
        shutil.copytree(lab.BIN, self.bin)
        return Daemon(program=os.path.join(self.bin, "vethguardd"))

    def setUp(self):
        super().setUp()
        self.addCleanup(self.stop_all)

    def status(self):
        return self.daemon.call("GET", "/v1/status")[2]

    def stop_all(self):
        """The last daemon, and with it those before."""
        pid = self.status()["processes"]["supervisor"]
        os.kill(pid, signal.SIGTERM)
        self.assertTrue(wait_until(lambda: not alive(pid), 30 * SLOW))
        self.assertTrue(wait_until(lambda: self.daemon.process.poll() is not None, 30 * SLOW))

    def upgrade(self):
        """The process that answers afterwards."""
        before = self.status()["processes"]["supervisor"]
        os.kill(before, signal.SIGUSR2)
        self.assertTrue(wait_until(lambda: self.status().get("processes", {}).get("supervisor", before) != before,
                                   60 * SLOW), self.daemon.stderr())
        return self.status()["processes"]["supervisor"]


class Upgraded(Upgrader, daemon_case.Attached):
    def setUp(self):
        super().setUp()
        with open(self.policy, "a") as f:
            f.write(f"  - {{to: 'https://www.lab.test:{WS_PORT}'}}\n")
        self.assertEqual(self.daemon.call("POST", "/v1/sandboxes/one/reload")[0], 200)

    def slowly(self, *options):
        """A response that is under way: (curl's process, its support.Trickle)."""
        trickle = support.Trickle()
        process = subprocess.Popen(["ip", "netns", "exec", self.name, "curl", "-sS", "-N", "-f", "-m", str(240 * SLOW), "--cacert",
                                    self.ca, "-x", daemon_case.PROXY, "-o", trickle.out, *options, trickle.url])
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.assertTrue(trickle.begun())
        return process, trickle

    def assert_finished(self, process, trickle):
        """Nobody has cut the response off."""
        self.assertIsNone(process.poll())
        trickle.finish()
        self.assertEqual(process.wait(30 * SLOW), 0)
        self.assertTrue(trickle.whole())

    def echo(self):
        mark = support.LAB.path(f"websocket.{WS_PORT}.ready")
        if not os.path.exists(mark):
            support.LAB.spawn_outside([sys.executable, os.path.join(support.HERE, "websocket_origin.py"), support.LAB.dir,
                                       lab.ORIGIN4, str(WS_PORT)])
            support.LAB.wait_for_file(f"websocket.{WS_PORT}.ready")
        process = subprocess.Popen(["ip", "netns", "exec", self.name, sys.executable, "-c", ECHO], stdin=subprocess.PIPE,
                                   stdout=subprocess.PIPE, text=True,
                                   env={**os.environ, "PYTHONPATH": support.HERE, "SSL_CERT_FILE": self.ca})
        self.assertEqual(process.stdout.readline(), "begun 101\n")
        return process

    def says(self, process, text):
        process.stdin.write(text + "\n")
        process.stdin.flush()
        return process.stdout.readline().strip()

    def in_a_loop(self, until):
        """Requests one after the other in two threads, until that is set: how many were not served."""
        failed, count = [], [0]

        def ask():
            while not until.is_set():
                r = self.curl("https://api.lab.test/whoami")
                count[0] += 1
                if r.returncode != 0:
                    failed.append(r)
        threads = [threading.Thread(target=ask) for _ in range(2)]
        for t in threads:
            t.start()
        return threads, failed, count


class Upgrade(Upgraded):
    def test_everything_lives_on(self):
        self.assert_served()
        old, worker = self.daemon.process.pid, self.pid("worker")
        priority = os.sched_getscheduler(old)
        h2, h1, websocket = self.slowly(), self.slowly("--http1.1"), self.echo()
        self.assertEqual(self.says(websocket, "before"), "before")
        over = threading.Event()
        threads, failed, count = self.in_a_loop(over)
        try:
            new = self.upgrade()
            served = self.show()
            wait_until(lambda n=count[0]: count[0] > n + 2, 20 * SLOW)
        finally:
            over.set()
            for t in threads:
                t.join()
        self.assertEqual(failed, [], self.daemon.stderr())
        self.assertNotEqual(served["worker"]["pid"], worker)
        self.assertIn(served["worker"]["pid"], descendants(new))
        self.assertEqual(os.sched_getscheduler(new), priority)
        self.assertTrue(alive(worker) and alive(old), "the old worker finishes what it has")
        self.assertEqual(self.says(websocket, "after"), "after")
        for each in (h2, h1):
            self.assert_finished(*each)
        self.assertTrue(alive(worker), "the WebSocket is still open")
        websocket.stdin.close()
        websocket.wait(20 * SLOW)
        self.assertTrue(wait_until(lambda: self.daemon.process.poll() is not None, 20 * SLOW), self.daemon.stderr())
        self.assertEqual(self.daemon.process.returncode, 0, self.daemon.stderr())
        self.assertFalse(alive(worker))
        self.assert_served("the same CA")
        self.assert_complete(count[0] + 2)
        self.assertEqual([f for f in os.listdir(self.daemon.state) if f.startswith("upgrade-")], ["upgrade-1"])
        self.assertTrue(any("taken up again" in e["message"] for e in self.daemon.events(LIFECYCLE)),
                        [e["message"] for e in self.daemon.events(LIFECYCLE)])

    def assert_complete(self, count):
        """Each request of the loop is in the log once, and the chain is whole."""
        def asked():
            return [e for e in self.daemon.events(HTTP) if e["http_request"]["url"]["path"] == "/whoami"]
        self.assertTrue(wait_until(lambda: len(asked()) == count, 10 * SLOW), (len(asked()), count))
        uids = [e["metadata"]["uid"] for e in self.daemon.events()]
        self.assertEqual(len(uids), len(set(uids)))
        r = subprocess.run([VETHGUARD, "audit", "verify", self.daemon.audit], capture_output=True, text=True)
        self.assertEqual(r.returncode, 0, r)

    def test_asked_by_the_api(self):
        """The answer comes from the old one when the new one is in charge."""
        old = UnixConnection(self.daemon.socket, 60 * SLOW)
        old.request("POST", "/v1/upgrade")
        r = old.getresponse()
        answer = json.load(r)
        self.assertEqual((r.status, list(answer)), (200, ["pid"]), answer)
        control_case.Described().answer("POST", "/v1/upgrade", r.status, dict(r.getheaders()), answer)
        self.assertEqual(answer["pid"], self.status()["processes"]["supervisor"])
        self.assertTrue(wait_until(lambda: self.daemon.process.poll() is not None, 20 * SLOW), "nothing was under way")
        self.assert_served()
        self.assertTrue(wait_until(lambda: any("/v1/upgrade" in json.dumps(e) for e in self.daemon.events(6003)), 5 * SLOW))

    def test_roles_of_the_daemon(self):
        # The worker from before the reload of the beginning is gone.
        self.assertTrue(wait_until(lambda: self.daemon.call("GET", "/v1/sandboxes/one/stats")[2]["retired"] == 0, 10 * SLOW))
        r = subprocess.run([VETHGUARD, "doctor", "--roles", "--json", "--socket", self.daemon.socket], capture_output=True, text=True)
        found = json.loads(r.stdout)
        self.assertEqual([(f["role"], x) for f in found["roles"] for x in f["facts"] if x["verdict"] in ("differs", "weak")], [])
        self.assertEqual((r.returncode, found["sound"]), (0, True), r)
        self.assertEqual([f["role"] for f in found["roles"]], ["the supervisor", "the keeper", "the recorder", "the worker of one"])
        with open(f"/proc/{self.pid('worker')}/oom_score_adj") as f:
            self.assertEqual(int(f.read()), 500)

    def rotate(self, pids):
        """The log is moved away, and the daemon that answers told so: no recorder of any of them writes into the old file."""
        def files(pid):
            recorder = next((p for p, row in descendants(pid).items() if row[0] == daemon_case.ROLES["recorder"] and row[1] == pid), 0)
            if not recorder:  # it has ended: too soon
                return set()
            try:
                return {os.readlink(f"/proc/{recorder}/fd/{fd}") for fd in os.listdir(f"/proc/{recorder}/fd")}
            except OSError:  # one of them was closed meanwhile
                return set()
        old = self.daemon.audit + ".1"
        support.AUDITS.append(old)
        os.rename(self.daemon.audit, old)
        os.kill(pids[-1], signal.SIGHUP)
        self.assertTrue(wait_until(lambda: all(self.daemon.audit in files(p) and old not in files(p) for p in pids), 20 * SLOW),
                        [files(p) for p in pids])
        return old

    def verify(self, *paths):
        return subprocess.run([VETHGUARD, "audit", "verify", *paths], capture_output=True, text=True)

    def assert_one_chain(self, old):
        """Through the file that was moved away, which ends with one line that says so, and the one after it."""
        wait_until(lambda: self.verify(old, self.daemon.audit).returncode == 0, 5 * SLOW)  # the last line may be half written
        r = self.verify(old, self.daemon.audit)
        self.assertEqual(r.returncode, 0, r)
        with open(old) as f:
            types = [json.loads(line)["type_uid"] for line in f]
        self.assertEqual((types.count(LOG_ENDED), types[-1]), (1, LOG_ENDED))
        self.assertEqual([e for e in self.daemon.events() if e["type_uid"] == LOG_ENDED], [])

    def test_one_after_the_other(self):
        """Three upgrades of two sandboxes while a response is under way; the last daemon is killed and started again."""
        other = support.netns(self, self.name + "o")
        self.attach("two", other)
        slow = self.slowly()
        pids = [self.daemon.process.pid] + [self.upgrade() for _ in range(3)]
        self.assert_served()
        self.assert_served(netns=other)
        self.assertTrue(all(alive(p) for p in pids))
        old = self.rotate(pids)
        self.assert_finished(*slow)
        self.assertTrue(wait_until(lambda: not any(alive(p) for p in pids[:-1]), 20 * SLOW), self.daemon.stderr())
        self.assertTrue(wait_until(lambda: [f for f in os.listdir(self.daemon.state) if f.startswith("upgrade-")] == ["upgrade-3"],
                                   5 * SLOW), os.listdir(self.daemon.state))
        self.assert_one_chain(old)
        os.kill(pids[-1], 9)
        support.KILLED.add(self.daemon.audit)
        self.assertTrue(wait_until(lambda: not alive(pids[-1]), 5 * SLOW))
        self.daemon.start()
        self.assert_served()

    def test_runs_that_share_the_log(self):
        """The old recorders are not told that the file was moved away: they find its end line, and go on in the daemon's file."""
        boxes = [support.Sandbox(support.policy("https://api.lab.test"), audit=self.daemon.audit) for _ in range(2)]
        for box in boxes:
            self.assertIn("/before", box.sh("curl -sS https://api.lab.test/before").out)
        old = self.rotate([self.daemon.process.pid])
        self.assertIn("/after", boxes[0].sh("curl -sS https://api.lab.test/after").out)
        for box in boxes:
            self.assertEqual(box.close(), 0, box.stderr())
            self.assertNotIn("cannot be written", box.stderr())
        self.assert_one_chain(old)
        paths = [e["http_request"]["url"]["path"] for e in self.daemon.events(HTTP)]
        self.assertEqual(paths.count("/after"), 1, paths)
        self.assertEqual(sum(e["type_uid"] == 600204 for e in self.daemon.events(LIFECYCLE)), 2, "each run's stop")

    def test_who_is_told_to_stop(self):
        """The new one, while the old one finishes: both end."""
        process, _ = self.slowly()
        new = self.upgrade()
        os.kill(new, signal.SIGTERM)
        self.assertTrue(wait_until(lambda: not alive(new) and self.daemon.process.poll() is not None, 30 * SLOW))
        self.assertNotEqual(process.wait(20 * SLOW), 0)
        self.assertFalse(self.asks(seconds=2))
        self.daemon.start()
        self.assert_served()


class Refused(Upgraded):
    def assert_unchanged(self, pid, worker):
        self.assertEqual((self.status()["processes"]["supervisor"], self.pid("worker")), (pid, worker), self.daemon.stderr())
        self.assert_served()

    def test_a_program_that_fails(self):
        pid, worker = self.daemon.process.pid, self.pid("worker")
        for text in ("#!/bin/sh\nexit 3\n", "#!/bin/sh\nkill -9 $$\n", "nothing\n"):
            program = os.path.join(self.bin, "vethguardd")
            os.unlink(program)
            with open(program, "w") as f:
                f.write(text)
            os.chmod(program, 0o755)
            before = self.daemon.stderr().count("taken over:") + self.daemon.stderr().count("cannot be started")
            os.kill(pid, signal.SIGUSR2)
            self.assertTrue(wait_until(lambda n=before: self.daemon.stderr().count("taken over:") +
                                       self.daemon.stderr().count("cannot be started") > n, 20 * SLOW), text)
            self.assert_unchanged(pid, worker)

    def test_a_configuration_and_a_policy_with_a_fault(self):
        pid, worker = self.daemon.process.pid, self.pid("worker")
        slow = self.slowly()
        for path in (self.daemon.config, self.policy):
            with open(path) as f:
                good = f.read()
            with open(path, "a") as f:
                f.write("nonsense: 1\n")
            before = self.daemon.stderr().count("this one goes on")
            os.kill(pid, signal.SIGUSR2)
            self.assertTrue(wait_until(lambda n=before: self.daemon.stderr().count("this one goes on") > n, 20 * SLOW), path)
            self.assert_unchanged(pid, worker)
            with open(path, "w") as f:
                f.write(good)
        self.assert_finished(*slow)

    def asked_meanwhile(self, path, looked_for, before):
        """The first answer of that kind, of questions one after the other: one waits while the new daemon tries, and is answered when
        this one takes back what it had given. None: it was over (it went on more often than before) without one being asked in time."""
        while True:
            over = self.daemon.stderr().count("this one goes on") > before
            answer = self.daemon.call("GET", path)
            if looked_for(*answer):
                return answer
            if over:
                return None

    def test_many_are_taken_back(self):
        """One sandbox that the new daemon cannot serve is enough. The control socket answers while the others are taken back; then all serve."""
        boxes = [f"b{n:02}" for n in range(12)]
        for name in boxes:
            netns = support.netns(self, f"{self.name}{name}")
            self.attach(name, netns)
        other = support.LAB.write(f"upgrade-{time.monotonic_ns()}.yaml", support.policy("https://api.lab.test"))
        support.netns(self, self.name + "x")
        self.daemon.attach(name="faulty", netns=f"/run/netns/{self.name}x", policy=other)
        with open(other, "a") as f:
            f.write("nonsense: 1\n")
        for before in range(5):  # on a busy machine it may be over before anything is asked
            with concurrent.futures.ThreadPoolExecutor(2) as threads:
                shown = threads.submit(self.asked_meanwhile, "/v1/sandboxes", lambda status, _, answer: "restarting" in [
                    s["state"] for s in answer.get("sandboxes", ())], before)
                refused = threads.submit(self.asked_meanwhile, "/v1/sandboxes/b11/env",
                                         lambda status, _, answer: "taking its" in answer.get("detail", ""), before)
                os.kill(self.daemon.process.pid, signal.SIGUSR2)
            if shown.result() and refused.result():
                break
            self.assertTrue(wait_until(lambda: self.status()["sandboxes"]["serving"] == 14, 20 * SLOW), self.status())
        self.assertTrue(shown.result() and refused.result(), self.daemon.stderr())
        self.assertEqual(len(shown.result()[2]["sandboxes"]), 14, shown.result())
        status, header, answer = refused.result()
        self.assertEqual((status, header["Retry-After"]), (503, "1"), answer)
        self.assertIn("taking its sandboxes over", answer["detail"])
        self.assertTrue(wait_until(lambda: self.status()["sandboxes"]["serving"] == 14, 20 * SLOW), self.status())
        self.assertTrue(self.status()["ready"])
        self.assertEqual(self.status()["processes"]["supervisor"], self.daemon.process.pid)
        for name in boxes:
            self.assert_served(name, netns=f"{self.name}{name}")
        self.assert_served()

    def test_the_new_one_is_killed(self):
        """At any moment: sooner or later it has taken over."""
        support.KILLED.add(self.daemon.audit)
        slow = self.slowly()
        for n in range(4):
            pid = self.daemon.process.pid
            os.kill(pid, signal.SIGUSR2)
            new = wait_until(lambda p=pid: next((c for c in descendants(p) if "--take-over" in cmdline(c)), None), 10 * SLOW)
            time.sleep(random.uniform(0, 0.15) if n else 0)
            os.kill(new, 9)
            wait_until(lambda p=new: not alive(p), 5 * SLOW)
            if not wait_until(lambda: "has taken over" in self.daemon.stderr() or
                              self.daemon.stderr().count("this one goes on") > n, 20 * SLOW):
                self.fail(self.daemon.stderr())
            if "has taken over" in self.daemon.stderr():  # the last word was spoken: the old one ends too
                slow[1].finish()
                self.assertTrue(wait_until(lambda: self.daemon.process.poll() is not None, 20 * SLOW))
                self.daemon.start()
                self.assert_served()
                return
            self.assert_served(f"killed {n}", 5 * SLOW)
        self.assert_finished(*slow)

    def test_the_old_one_is_killed(self):
        support.KILLED.add(self.daemon.audit)
        os.kill(self.daemon.process.pid, signal.SIGUSR2)
        new = wait_until(lambda: next((c for c in descendants(self.daemon.process.pid) if "--take-over" in cmdline(c)), None) or
                         self.daemon.process.poll() is not None, 10 * SLOW)
        taken_over = "has taken over" in self.daemon.stderr()
        self.daemon.kill()
        if taken_over or new and not wait_until(lambda: not alive(new), 5 * SLOW):  # it had taken over already
            return self.assert_served()
        self.assertFalse(self.asks(seconds=2))
        self.daemon.start()
        self.assert_served()
