# SPDX-License-Identifier: Apache-2.0
"""Dying and frozen programs, full disks, broken upstreams, floods: the sandbox stays closed, the log stays whole, and
nothing is left behind."""
import ctypes
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import time
import unittest

import support
from lab import DNS4, HOST4, HOST6, ORIGIN4, ORIGIN6
from support import FINDING, HTTP, LIFECYCLE, PACE, PYTHON, SLOW, VETHGUARD, Capture, Case, Traces, policy, sh, wait_until

NOTHING = "vethguard: 1\nname: nothing\n"
API = policy("https://api.lab.test")
LOAD = os.path.join(support.HERE, "load.py")
ROOTLESS = ["setpriv", "--reuid", "1000", "--regid", "1000", "--clear-groups"]
ROLES = ["supervisor", "keeper", "recorder", "worker"]
MAY_LEAVE = {(17, HOST4, DNS4, 53), (6, HOST4, ORIGIN4, 443), (6, HOST6, ORIGIN6, 443)}
SUBREAPER = 36


class Robust(Case):
    @classmethod
    def setUpClass(cls):
        # Orphans become this process's children, so that none is lost.
        ctypes.CDLL(None).prctl(SUBREAPER, 1, 0, 0, 0)

    @classmethod
    def tearDownClass(cls):
        ctypes.CDLL(None).prctl(SUBREAPER, 0, 0, 0, 0)

    def rootless(self):
        """The lab's folder the other user's while the test runs, and a credential that user may read."""
        os.chown(support.LAB.dir, 1000, 1000)
        self.addCleanup(os.chown, support.LAB.dir, 0, 0)
        support.LAB.write("secret-1000", support.SECRET + "\n", 0o600)
        os.chown(support.LAB.path("secret-1000"), 1000, 1000)

    def key_policy(self, rootless):
        return policy("{to: 'https://api.lab.test', credential: api}", credentials=support.file_credential(
            path=support.LAB.path("secret-1000" if rootless else "secret")))

    def begin(self, rootless=False, text=None, **kw):
        if rootless:
            self.rootless()
            kw["prefix"] = ROOTLESS
        self.before, self.spaces = Traces(), own_namespaces()
        box = self.sandbox(text or self.key_policy(rootless), **kw)
        self.of_the_run = {**support.descendants(box.process.pid), box.process.pid: support.process_table()[box.process.pid]}
        return box

    def assert_nothing_left(self, box):
        ours = self.of_the_run
        left = wait_until(lambda: not support.still_alive(ours), 6 * SLOW) or support.still_alive(ours)
        self.assertIs(left, True, f"still there: {left}")
        self.assertEqual(self.before.since(), "")
        self.assertEqual(wait_until(lambda: not own_namespaces() - self.spaces, 3 * SLOW) or own_namespaces() - self.spaces, True)

    def steady(self, box, prefix="steady", seconds=30):
        """Starts the traffic, and waits until it flows. The file of the requests that were answered."""
        path = support.LAB.path(f"answered-{time.monotonic_ns()}")
        with open(path, "w"):
            os.chmod(path, 0o666)
        box.send(argv=[PYTHON, LOAD, "steady", path, prefix, str(seconds)], timeout=seconds + 5)
        self.assertTrue(wait_until(lambda: os.path.getsize(path) > 100, 10 * SLOW), "the traffic does not flow: " + box.stderr())
        self.of_the_run.update(support.descendants(box.process.pid))
        return path

    def kill_recorder(self, box):
        """Kills it, and waits until another one is there."""
        pid = box.pids()["recorder"]
        os.kill(pid, signal.SIGKILL)
        self.assertTrue(wait_until(lambda: box.pids().get("recorder", pid) != pid or box.process.poll() is not None, 10 * SLOW))
        if box.process.poll() is None:
            self.of_the_run.update(support.descendants(box.process.pid))

    def verify(self, path):
        r = subprocess.run([VETHGUARD, "audit", "verify", path], capture_output=True, text=True, timeout=60 * SLOW)
        self.assertEqual(r.returncode, 0, r)

    def assert_sequence(self, events):
        """Each sandbox's numbers: none missing, none twice."""
        runs = {}
        for e in events:
            runs.setdefault(e["device"]["name"], []).append(e["metadata"]["sequence"])
        for name, numbers in runs.items():
            self.assertEqual(sorted(numbers), list(range(1, len(numbers) + 1)), name)

    def whole_lines(self, path):
        """Events of a log whose writer may have been killed within a line."""
        with open(path, errors="replace") as f:
            found = []
            for line in f:
                try:
                    found.append(json.loads(line))
                except ValueError:
                    pass
            return found

    def recorded(self, events):
        return [e["http_request"]["url"]["path"] for e in events if e["class_uid"] == HTTP and e["action_id"] == 1]


def own_namespaces():
    """The network namespaces of the processes below this one."""
    found = set()
    for pid in support.descendants(os.getpid()):
        try:
            found.add(os.readlink(f"/proc/{pid}/ns/net"))
        except OSError:
            pass
    return found


def flows(frames):
    import test_exfiltration
    return {test_exfiltration.rows(f) for f in frames}


class Killed(Robust):
    """SIGKILL for each program in turn, in the middle of traffic with a credential."""

    def kill_one(self, role, rootless=False, number=signal.SIGKILL):
        box = self.begin(rootless)
        answered = self.steady(box)
        pids = box.pids()
        with Capture() as capture:
            os.kill(pids[role], number)
            status = box.process.wait(10 * SLOW)
            # The others follow a moment after the one that was killed, and the capture lags behind.
            self.assertTrue(wait_until(lambda: not support.still_alive(self.of_the_run), 6 * SLOW))
            time.sleep(0.1 * PACE)
            gone_at = len(capture.frames)
            time.sleep(0.3)
        box._end()
        self.assertLessEqual(flows(capture.sent()), MAY_LEAVE)
        # The kernel may still close what the worker had open; data there is none.
        late = [f for kind, f in capture.frames[gone_at:] if kind == 4 and len(f) > 100]
        self.assertEqual(late, [])
        self.assert_nothing_left(box)
        self.assert_no_secret(open(box.audit, "rb").read())
        with open(answered) as f:
            self.assertGreater(len(f.readlines()), 1)
        return box, status

    def expect(self, role, word, **kw):
        box, status = self.kill_one(role, **kw)
        self.assertEqual(status, 125, box.stderr())
        self.assertIn(word, box.stderr())
        self.assertEqual(len(box.stderr().strip().splitlines()), 1, box.stderr())
        return box

    def test_worker(self):
        box = self.expect("worker", "the worker")
        self.verify(box.audit)
        events = box.events()
        self.assert_sequence(events)
        self.assertEqual([e for e in events if e["class_uid"] == FINDING][-1]["action_id"], 2)
        self.assertEqual([e["activity_id"] for e in events if e["class_uid"] == LIFECYCLE], [3, 4])

    def test_worker_rootless(self):
        self.verify(self.expect("worker", "the worker", rootless=True).audit)

    def test_keeper(self):
        box = self.expect("keeper", "the keeper")
        self.verify(box.audit)
        self.assert_sequence(box.events())
        self.assertTrue([e for e in box.events(FINDING) if "the keeper" in json.dumps(e)])

    def test_keeper_rootless(self):
        self.verify(self.expect("keeper", "the keeper", rootless=True).audit)

    def assert_each_once(self, box, answered):
        """Every request that was answered has one event; no event is there twice; no line is missing or torn."""
        with open(answered) as f:
            done = f.read().split()
        self.verify(box.audit)
        events = box.events()
        self.assert_sequence(events)
        uids = [e["metadata"]["uid"] for e in events]
        self.assertEqual(len(uids), len(set(uids)))
        recorded = self.recorded(events)
        self.assertEqual(len(recorded), len(set(recorded)))
        self.assertEqual(set(done) - set(recorded), set())
        self.assertGreater(len(done), 1)
        return events

    def recorder_replaced(self, rootless=False, kills=3):
        """Killed at random moments under load: another one takes over, the traffic goes on, nothing is missing."""
        box = self.begin(rootless)
        answered = self.steady(box, f"over{kills}")
        for n in range(kills):
            time.sleep(random.random() * 0.3)
            self.kill_recorder(box)
            size = os.path.getsize(answered)
            self.assertTrue(wait_until(lambda: os.path.getsize(answered) > size + 100, 10 * SLOW), "it does not go on: " + box.stderr())
        with open(answered + ".end", "w"):
            pass
        box.answer(60)
        self.assertEqual(box.close(), 0, box.stderr())
        self.assertEqual(box.stderr().count("another one takes over"), kills, box.stderr())
        events = self.assert_each_once(box, answered)
        self.assertEqual([e["activity_id"] for e in events if e["class_uid"] == LIFECYCLE], [3, 4])
        self.assertEqual(sum("process-died" in e["finding_info"]["types"] for e in events if e["class_uid"] == FINDING), kills)
        self.assert_nothing_left(box)

    def test_recorder(self):
        self.recorder_replaced()

    def test_recorder_rootless(self):
        self.recorder_replaced(rootless=True, kills=1)

    def test_recorder_once_too_often(self):
        """The fourth within a minute is one too many: closed, and still every event is written, by a last recorder."""
        box = self.begin()
        answered = self.steady(box, "often")
        for n in range(4):
            time.sleep(random.random() * 0.1)
            self.kill_recorder(box)
        self.assertEqual(box.wait(), 125, box.stderr())
        self.assertIn("the recorder died (signal 9); the sandbox is cut off", box.stderr())
        events = self.assert_each_once(box, answered)
        self.assertEqual([e["activity_id"] for e in events if e["class_uid"] == LIFECYCLE], [3, 4])
        self.assert_nothing_left(box)

    def test_recorder_at_the_end(self):
        """Killed while the session ends: the last lines are written all the same."""
        for n in range(6):
            box = self.begin()
            answered = self.steady(box, f"end{n}")
            pid = box.pids()["recorder"]
            box.process.kill()
            time.sleep(0.004 * n)
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass  # it was quicker
            box.process.wait()
            self.assert_nothing_left(box)
            self.assert_each_once(box, answered)
            self.assertEqual(box.events(LIFECYCLE)[-1]["activity_id"], 4)

    def loses_nothing(self, role):
        """An answered request is in the log, even if this program dies at that moment."""
        for n in range(8):
            box = self.begin()
            answered = self.steady(box, f"last{n}")
            time.sleep(0.05 * n)
            os.kill(box.pids()[role], signal.SIGKILL)
            box.wait()
            self.assert_nothing_left(box)
            with open(answered) as f:
                done = set(f.read().split())
            self.verify(box.audit)
            self.assertEqual(done - set(self.recorded(box.events())), set())

    def test_supervisor_loses_nothing(self):
        self.loses_nothing("supervisor")

    def test_worker_loses_nothing(self):
        self.loses_nothing("worker")

    def test_recorder_loses_nothing(self):
        """Frozen first, so that there are events for certain that it has not read: requests, packets, all of it."""
        box = self.begin()
        box.sh("curl -sS https://api.lab.test/first")
        self.assertIsNotNone(box.event(HTTP))
        os.kill(box.pids()["recorder"], signal.SIGSTOP)
        self.assertIn("/last", box.sh("curl -sS https://api.lab.test/last").out)
        box.py("for n in range(20):\n s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n s.bind(('', 5000))\n"
               " try: s.sendto(b'x', ('192.0.2.9', 999))\n except OSError: pass\n s.close()")
        self.kill_recorder(box)
        self.assertIn("/after", box.sh("curl -sS https://api.lab.test/after").out)
        self.assertEqual(box.close(), 0, box.stderr())
        self.verify(box.audit)
        events = box.events()
        self.assert_sequence(events)
        self.assertEqual(self.recorded(events), ["/first", "/last", "/after"])
        dropped = [e for e in events if e["disposition_id"] == 6 and e["dst_endpoint"].get("ip") == "192.0.2.9"]
        self.assertEqual(sum(e.get("count", 1) for e in dropped), 20)
        self.assertEqual([e for e in events if "packet-copies-lost" in str(e)], [])

    def test_supervisor_while_the_recorder_is_frozen(self):
        """Nobody is left to wake the recorder, and it ends all the same."""
        box = self.begin()
        self.steady(box)
        pids = box.pids()
        os.kill(pids["recorder"], signal.SIGSTOP)
        os.kill(pids["supervisor"], signal.SIGKILL)
        self.assertEqual(box.wait(), 125)
        self.assert_nothing_left(box)

    def test_supervisor(self):
        box = self.expect("supervisor", "vethguardd")
        self.verify(box.audit)

    def test_supervisor_rootless(self):
        self.expect("supervisor", "vethguardd", rootless=True)

    def test_vethguard(self):
        box, status = self.kill_one("run")
        self.assertEqual(status, -9)
        self.verify(box.audit)
        self.assert_sequence(box.events())
        self.assertEqual(box.events(LIFECYCLE)[-1]["activity_id"], 4)

    def test_vethguard_rootless(self):
        box, status = self.kill_one("run", rootless=True)
        self.assertEqual(status, -9)
        self.verify(box.audit)

    def test_init(self):
        """Process 1 of the sandbox, killed from outside."""
        box, status = self.kill_one("init")
        self.assertEqual(status, 137)
        self.assertIn("killed", box.stderr())
        self.verify(box.audit)
        self.assert_sequence(box.events())

    def test_no_core_holds_the_credential(self):
        """Programs that hold credentials leave no core, whatever the limit says."""
        folder = support.LAB.path("cores")
        os.makedirs(folder, exist_ok=True)
        for role in ("worker", "keeper", "recorder", "supervisor"):
            with self.subTest(role=role):
                box = self.begin(preexec=lambda: (resource.setrlimit(resource.RLIMIT_CORE, (-1, -1)), os.chdir(folder)))
                self.steady(box)
                os.kill(box.pids()[role], signal.SIGABRT)
                box.kill() if role == "recorder" else box.wait()  # another one takes over
                for place in (folder, support.LAB.dir, "/", "/tmp"):
                    for name in os.listdir(place):
                        if name.startswith("core") and os.path.isfile(os.path.join(place, name)) and \
                                os.path.getmtime(os.path.join(place, name)) > time.time() - 20:
                            with open(os.path.join(place, name), "rb") as f:
                                self.assert_no_secret(f.read())

    def test_what_proc_shows(self):
        box = self.begin()
        self.steady(box)
        for role, pid in box.pids().items():
            for name in ("environ", "cmdline", "comm", "status", "maps", "stack", "wchan"):
                try:
                    with open(f"/proc/{pid}/{name}", "rb") as f:
                        self.assert_no_secret(f.read())
                except OSError:
                    pass
        box.kill()

    def test_roles_cannot_read_each_other(self):
        """Not even under the same uid: no program that holds credentials can be traced or dumped."""
        box = self.begin()
        box.sh("curl -sS https://api.lab.test/whoami")
        pids = box.pids()
        for role in ("keeper", "worker", "recorder"):
            with open(f"/proc/{pids[role]}/status") as f:
                uid = next(line.split()[1] for line in f if line.startswith("Uid:"))
            self.assertNotEqual(uid, "0")
            for name in ("environ", "mem", "maps", "fd/0", "root/", "syscall"):
                with self.subTest(role=role, file=name):
                    r = subprocess.run(["setpriv", "--reuid", uid, "--regid", uid, "--clear-groups", "head", "-c", "1",
                                        f"/proc/{pids[role]}/{name}"], capture_output=True, text=True)
                    self.assertNotEqual(r.returncode, 0)
                    self.assertIn("Permission denied", r.stderr)

    def test_a_variable_is_nowhere_to_be_read(self):
        """A credential of an environment variable: in nobody's environment but the caller's own."""
        box = self.begin(text=policy("{to: 'https://api.lab.test', credential: api}", credentials=(
            "  api: {source: 'env:REAL_KEY', inject: bearer}\n")), env={"REAL_KEY": support.SECRET})
        self.assertIn("true", box.sh("curl -sS https://api.lab.test/whoami").out)
        for role, pid in box.pids().items():
            with self.subTest(role=role):
                with open(f"/proc/{pid}/environ", "rb") as f:
                    self.assert_no_secret(f.read())


class Frozen(Robust):
    """SIGSTOP: a program that hangs is worse than one that dies."""

    def frozen(self, role):
        box = self.begin()
        box.sh("curl -sS https://api.lab.test/first")
        pid = box.pids()[role]
        os.kill(pid, signal.SIGSTOP)
        self.addCleanup(lambda: pid in support.process_table() and os.kill(pid, signal.SIGCONT))
        return box, pid

    def test_recorder(self):
        """Events are not lost and not unbounded: when the ring is full, nothing passes until somebody reads it."""
        box, pid = self.frozen("recorder")
        box.send(argv=[PYTHON, LOAD, "until_refused", "frozen", "20000"], timeout=60)
        count = lambda: len(self.seen("http"))  # noqa: E731
        last, since, end = -1, time.monotonic(), time.monotonic() + 40 * SLOW
        while time.monotonic() < end:
            now = count()
            if now != last:
                last, since = now, time.monotonic()
            if now > 5 and time.monotonic() - since > 1.5:
                break
            time.sleep(0.2)
        passed = count()
        self.assertGreater(passed, 100)
        self.assertLess(passed, 8000, "requests pass though nobody records them")
        self.assertLess(support.memory_peak_kib(box.pids()["worker"]), (60 if not support.ASAN else 600) * 1024)
        time.sleep(1)
        self.assertLessEqual(count() - passed, 1, "it goes on")
        os.kill(pid, signal.SIGCONT)
        self.assertTrue(wait_until(lambda: count() > passed + 10, 10 * SLOW), "it does not go on when it may")
        box.kill()
        self.assertTrue(wait_until(lambda: any(e["activity_id"] == 4 for e in box.events(LIFECYCLE)), 15 * SLOW))
        self.verify(box.audit)
        self.assert_sequence(box.events())
        recorded = set(self.recorded(box.events()))
        for row in self.seen("http"):
            self.assertIn(row["path"], recorded)

    def test_recorder_frozen_for_good(self):
        """The command's end does not wait for ever."""
        box, pid = self.frozen("recorder")
        began = time.monotonic()
        box.process.stdin.close()
        status = box.process.wait(40 * SLOW)
        self.assertLess(time.monotonic() - began, 30 * SLOW)
        self.assertEqual(status, 125, box.stderr())
        self.assertIn("audit", box.stderr())
        self.assert_nothing_left(box)
        box._end()

    def test_keeper(self):
        """What the keeper has given stays in use; the run ends in bounded time."""
        box, pid = self.frozen("keeper")
        began = time.monotonic()
        self.assertIn("/second", box.sh("curl -sS -m 20 https://api.lab.test/second").out)
        self.assertLess(time.monotonic() - began, 10 * SLOW)
        began = time.monotonic()
        self.assertIn(box.close(), (0, 125), box.stderr())
        self.assertLess(time.monotonic() - began, 15 * SLOW)
        self.assert_nothing_left(box)

    def test_keeper_that_must_answer(self):
        """A credential whose time is over cannot be had again: refused in bounded time, never sent without."""
        support.LAB.write("give", f"#!/bin/sh\necho {support.SECRET}\n", 0o755)
        text = policy("{to: 'https://api.lab.test', credential: api}", credentials=(
            f"  api: {{source: {{exec: [{support.LAB.path('give')}], ttl: 1s}}, inject: bearer}}\n"))
        try:
            box = self.begin(text=text)
        except AssertionError:
            text = policy("{to: 'https://api.lab.test', credential: api}", credentials=(
                f"  api: {{source: 'exec:[{support.LAB.path('give')}]', ttl: 1s, inject: bearer}}\n"))
            box = self.begin(text=text)
        self.assertIn("true", box.sh("curl -sS https://api.lab.test/whoami").out)
        pid = box.pids()["keeper"]
        os.kill(pid, signal.SIGSTOP)
        time.sleep(1.2)
        began = time.monotonic()
        done = box.sh("curl -sS -m 55 -o /dev/null -w '%{http_code}' https://api.lab.test/whoami")
        self.assertLess(time.monotonic() - began, 50)
        self.assertNotIn("200", done.out)
        for row in self.seen("http"):
            self.assertIn(["authorization", "Bearer " + support.SECRET], [[k.lower(), v] for k, v in row["headers"]])
        os.kill(pid, signal.SIGCONT)

    def test_supervisor(self):
        """Nobody is left to act: what was permitted stays permitted, everything else stays refused."""
        box, pid = self.frozen("supervisor")
        self.assertIn("/second", box.sh("curl -sS -m 20 https://api.lab.test/second").out)
        self.assertIn("403", box.sh("curl -sS -m 20 -o /dev/null -w '%{http_code}' https://evil.lab.test/").out)
        self.assertEqual(self.seen("evil"), [])
        os.kill(pid, signal.SIGCONT)
        self.assertEqual(box.close(), 0)


class Disk(Robust):
    """An audit log that cannot be written."""

    def small_disk(self):
        folder = support.LAB.path("small")
        os.makedirs(folder, exist_ok=True)
        sh("mount", "-t", "tmpfs", "-o", "size=2m,mode=0777", "none", folder)
        self.addCleanup(sh, "umount", "-l", folder)
        return folder

    def fill(self, folder, leave=0):
        free = os.statvfs(folder)
        with open(folder + "/filler", "wb") as f:
            try:
                f.write(bytes(max(0, free.f_bavail * free.f_frsize - leave)))
            except OSError:
                pass

    def full(self, rootless=False):
        folder = self.small_disk()
        box = self.begin(rootless, audit=folder + "/audit.jsonl")
        self.fill(folder, 64 * 1024)
        done, status, body = box.run(PYTHON, LOAD, "until_refused", "full", timeout=60).json()
        self.assertGreater(done, 3)
        self.assertEqual(status, 503, body)
        self.assertIn("No space left on device", body)
        self.assertIn("audit", body)
        passed = len(self.seen("http"))
        again = box.run(PYTHON, LOAD, "until_refused", "again", timeout=60).json()
        self.assertEqual(again[:2], [0, 503])
        self.assertEqual(len(self.seen("http")), passed, "something passed that cannot be recorded")
        self.assertIn(box.sh("curl -s -m 5 -o /dev/null -w '%{http_code}' https://evil.lab.test/").out, ("403", "503"))
        os.unlink(folder + "/filler")
        free = wait_until(lambda: box.sh("curl -s -m 5 -o /dev/null -w '%{http_code}' https://api.lab.test/resumed").out
                          == "200", 8 * SLOW, 0.2)
        self.assertTrue(free, "it does not go on when there is space again: " + box.stderr())
        self.assertEqual(box.close(), 0, box.stderr())
        self.assertIn("cannot be written", box.stderr())
        self.assertIn("can be written again", box.stderr())
        self.verify(box.audit)
        events = box.events()
        self.assert_sequence(events)
        self.assertEqual([e["device"]["name"] for e in events if "log-outage" in e.get("finding_info", {}).get("types", ())],
                         [events[0]["device"]["name"]])
        paths = self.recorded(events)
        for row in self.seen("http"):
            self.assertEqual(paths.count(row["path"]), 1, row["path"])

    def test_full(self):
        self.full()

    def test_full_rootless(self):
        self.full(rootless=True)

    def test_full_until_the_end(self):
        """Never any space again: the command's end does not hang, and says what is missing."""
        folder = self.small_disk()
        box = self.begin(audit=folder + "/audit.jsonl")
        self.fill(folder, 16 * 1024)
        box.run(PYTHON, LOAD, "until_refused", "full", timeout=60)
        began = time.monotonic()
        status = box.close()
        self.assertLess(time.monotonic() - began, 30 * SLOW)
        self.assertEqual(status, 125, box.stderr())
        self.assert_nothing_left(box)

    def test_full_from_the_start(self):
        folder = self.small_disk()
        self.fill(folder)
        r = subprocess.run([VETHGUARD, "run", "--policy", support.LAB.write("disk.yaml", API), "--config",
                            support.LAB.path("config.yaml"), "--audit", folder + "/audit.jsonl", "--", "curl", "-s", "-m", "5",
                            "https://api.lab.test/"], capture_output=True, text=True, timeout=60 * SLOW)
        self.assertEqual(self.seen("http"), [])
        self.assertIn("No space left", r.stderr)
        self.assertNotEqual(r.returncode, 0, r)

    def test_file_is_removed(self):
        """The log goes on in the file that was opened, whatever becomes of its name."""
        box = self.begin()
        box.sh("curl -sS https://api.lab.test/first")
        self.assertIsNotNone(box.event(HTTP))
        keep = os.open(box.audit, os.O_RDONLY)
        os.unlink(box.audit)
        self.assertIn("/second", box.sh("curl -sS https://api.lab.test/second").out)
        self.assertEqual(box.close(), 0, box.stderr())
        with open(keep) as f:
            lines = [json.loads(line) for line in f]
        self.assert_sequence(lines)
        self.assertEqual(self.recorded(lines), ["/first", "/second"])

    def test_file_is_replaced(self):
        """Rotation by renaming: no line goes to neither file."""
        box = self.begin()
        box.sh("curl -sS https://api.lab.test/first")
        self.assertIsNotNone(box.event(HTTP))
        os.rename(box.audit, box.audit + ".1")
        with open(box.audit, "w"):
            pass
        box.sh("curl -sS https://api.lab.test/second")
        self.assertEqual(box.close(), 0, box.stderr())
        events = [json.loads(line) for name in (".1", "") for line in open(box.audit + name)]
        self.assert_sequence(events)
        self.assertEqual(self.recorded(events), ["/first", "/second"])
        self.verify(box.audit + ".1")

    def test_file_is_truncated(self):
        """A log that was cut is noticed: verify says so, or the new chain stands by itself; what follows is whole."""
        box = self.begin()
        box.sh("curl -sS https://api.lab.test/first")
        self.assertIsNotNone(box.event(HTTP))
        os.truncate(box.audit, os.path.getsize(box.audit) // 2)
        support.UNSOUND.add(box.audit)
        self.assertIn("/second", box.sh("curl -sS https://api.lab.test/second").out)
        self.assertEqual(box.close(), 0, box.stderr())
        self.assertIn("/second", self.recorded(self.whole_lines(box.audit)))
        r = subprocess.run([VETHGUARD, "audit", "verify", box.audit], capture_output=True, text=True)
        self.assertEqual(r.returncode, 1, r)

    def test_twenty_share_a_file(self):
        audit = support.LAB.path("shared-by-twenty.jsonl")
        support.AUDITS.append(audit)
        before = Traces()
        command = [VETHGUARD, "run", "--policy", support.LAB.write("twenty.yaml", API), "--config",
                   support.LAB.path("config.yaml"), "--audit", audit]
        runs = [subprocess.Popen([*command, "--name", f"run-{i}", "--", "sh", "-c",
                                  f"for n in 1 2 3 4 5; do curl -sS -o /dev/null -w '%{{http_code}} ' "
                                  f"https://api.lab.test/{i}/$n; done; curl -sS -o /dev/null https://evil.lab.test/"],
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for i in range(20)]
        for p in runs:
            out, err = p.communicate(timeout=120 * SLOW)
            self.assertEqual((p.returncode, out.split()), (0, ["200"] * 5), err)
        self.verify(audit)
        with open(audit) as f:
            events = [json.loads(line) for line in f]
        self.assert_sequence(events)
        self.assertEqual({e["device"]["name"] for e in events}, {f"run-{i}" for i in range(20)})
        self.assertEqual(sorted(self.recorded(events)), sorted(f"/{i}/{n}" for i in range(20) for n in range(1, 6)))
        self.assertEqual(before.since(), "")


class Scarce(Robust):
    """Little of everything."""

    def test_few_descriptors(self):
        box = self.begin(text=API, preexec=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64)))
        box.sh(f"for i in 1 2 3 4; do {PYTHON} {LOAD} many 40 api.lab.test /few & done; wait", timeout=100)
        self.assertTrue(wait_until(lambda: "/after" in box.sh("curl -sS -m 5 https://api.lab.test/after").out, 15 * SLOW, 0.3),
                        box.stderr())
        self.assertEqual(box.close(), 0, box.stderr())
        self.verify(box.audit)

    def test_too_few_descriptors(self):
        """Too few descriptors to start: vethguard says so and leaves nothing."""
        before = Traces()
        r = subprocess.run([VETHGUARD, "run", "--policy", support.LAB.write("few.yaml", API), "--", "true"],
                           capture_output=True, text=True, timeout=30 * SLOW,
                           preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (8, 8)))
        self.assertEqual(r.returncode, 125, r)
        self.assertNotEqual(r.stderr, "")
        self.assertEqual(before.since(), "")

    @unittest.skipIf(support.ASAN, "the instrumented program reserves terabytes")
    def test_little_memory(self):
        """The worker gets no more memory: requests fail or the sandbox is cut off, but nothing passes unjudged."""
        box = self.begin(text=API)
        box.sh("curl -sS https://api.lab.test/first")
        with open(f"/proc/{box.pids()['worker']}/status") as f:
            size = next(int(line.split()[1]) for line in f if line.startswith("VmPeak"))
        box.close()
        folder = support.LAB.path("little")
        os.makedirs(folder, exist_ok=True)
        for name in os.listdir(os.path.dirname(VETHGUARD)):
            if name.startswith("vethguard"):
                shutil.copy(os.path.join(os.path.dirname(VETHGUARD), name), folder)
        os.rename(folder + "/vethguard-worker", folder + "/worker.real")
        ends = set()
        for more in (100, 400, 1000, 2000, 4000) if support.LONG else (100, 4000):
            with self.subTest(kib=more), open(folder + "/vethguard-worker", "w") as f:
                f.write(f"#!/bin/sh\nulimit -v {size + more}\nexec {folder}/worker.real\n")
                os.chmod(f.fileno(), 0o755)
                f.close()
                ends.add(self.with_little(folder, more >= 4000))
        self.assertIn("served", ends)

    def with_little(self, folder, enough):
        with Capture() as capture:
            try:
                box = self.begin(text=API, binary=folder + "/vethguard")
            except AssertionError as e:
                self.assertIn("worker", str(e))
                return "did not start"
            try:
                box.run(PYTHON, LOAD, "many", "150", "api.lab.test", "/many", timeout=60)
            except AssertionError:
                pass
        self.assertLessEqual(flows(capture.sent()), MAY_LEAVE)
        if box.process.poll() is None:
            # The load's memory is free again when the worker has seen all its connections end.
            said = []
            served = wait_until(lambda: said.append(box.sh("curl -sS -m 10 https://api.lab.test/after")) or "/after" in said[-1].out,
                                10 * SLOW if enough else 0)
            self.assertTrue(served or not enough, said[-1:])
            self.assertEqual(box.close(), 0, box.stderr())
        else:
            self.assertEqual(box.wait(), 125)
            self.assertIn("the worker", box.stderr())
        self.verify(box.audit)
        for text in ("signal 11", "signal 6"):
            self.assertNotIn(text, box.stderr())
        return "served"


class Flood(Robust):
    def descriptors(self, pid):
        return len(os.listdir(f"/proc/{pid}/fd"))

    def test_limit_of_connections(self):
        config = support.LAB.write("limit.yaml", support.LAB.config("limits: {connections: 100}\ntimeouts: {hello: 2s}\n"))
        box = self.begin(text=API, config=config)
        box.sh("curl -sS https://api.lab.test/first")
        worker = box.pids()["worker"]
        resting = self.descriptors(worker)
        box.send(argv=[PYTHON, LOAD, "idle", "300", str(8 * PACE)], timeout=60)
        self.assertTrue(wait_until(lambda: self.descriptors(worker) >= resting + 90, 10 * SLOW))
        self.assertLess(self.descriptors(worker), resting + 130)
        box.answer(60)
        self.assertTrue(wait_until(lambda: self.descriptors(worker) <= resting + 3, 20 * SLOW), self.descriptors(worker))
        self.assertIn("/after", box.sh("curl -sS -m 30 https://api.lab.test/after").out)
        self.assertEqual(box.close(), 0, box.stderr())

    def test_others_wait_and_are_served(self):
        """More at once than the limit: each gets its turn."""
        config = support.LAB.write("limit-20.yaml", support.LAB.config("limits: {connections: 20}\n"))
        box = self.begin(text=API, config=config)
        found = box.run(PYTHON, LOAD, "many", "60", "api.lab.test", "/turn", timeout=60).json()
        self.assertEqual(found, {"200": 60})

    def test_slow_heads(self):
        config = support.LAB.write("loris.yaml", support.LAB.config("timeouts: {hello: 2s, header: 2s}\n"))
        box = self.begin(text=policy("http://plain.lab.test"), config=config)
        left = box.run(PYTHON, LOAD, "loris", "50", "plain.lab.test", "80", str(5 * PACE), timeout=80).json()
        self.assertEqual(left, 0)
        self.assertEqual(self.seen("http"), [])

    def test_silent_connections(self):
        """They end with the time for a first byte."""
        config = support.LAB.write("hello.yaml", support.LAB.config("timeouts: {hello: 1s}\n"))
        box = self.begin(text=API, config=config)
        done = box.run(PYTHON, LOAD, "idle", "50", str(3 * PACE))
        self.assertEqual(done.out.split(), ["50", "0"])

    def test_ten_thousand_resets(self):
        config = support.LAB.write("resets.yaml", support.LAB.config(
            "timeouts: {hello: 3s, header: 3s}\nlimits: {connections_per_s: 100000}\n"))
        box = self.begin(text=API, config=config)
        box.sh("curl -sS https://api.lab.test/first")
        worker = box.pids()["worker"]
        box.run(PYTHON, LOAD, "resets", "500", "api.lab.test", "443")
        time.sleep(3.5)  # some are noticed only when their time is over
        resting, peak = self.descriptors(worker), support.memory_peak_kib(worker)
        done = box.run(PYTHON, LOAD, "resets", "10000", "api.lab.test", "443", timeout=150)
        self.assertGreater(int(done.out), 9900, done)
        self.assertIn("/after", box.sh("curl -sS https://api.lab.test/after").out)
        self.assertTrue(wait_until(lambda: self.descriptors(worker) <= resting + 3, 15 * SLOW), self.descriptors(worker))
        self.assertLess(support.memory_peak_kib(worker) - peak, (8 if not support.ASAN else 300) * 1024)
        self.assertEqual(box.close(), 0, box.stderr())
        self.assert_sequence(box.events())
        self.verify(box.audit)


class Random(Robust):
    """A random program is killed at a random moment, again and again."""

    def rounds(self, count, rootless=False):
        rng = random.Random(20 + rootless)
        for n in range(count):
            role = rng.choice([*ROLES, "run", "init"])
            pause = rng.random() * 0.6
            with self.subTest(round=n, role=role, pause=round(pause, 3)):
                self.one(role, pause, f"r{n}", rootless)

    def one(self, role, pause, prefix, rootless):
        box = self.begin(rootless)
        answered = self.steady(box, prefix)
        time.sleep(pause)
        with Capture() as capture:
            if role == "recorder":  # it goes on, until somebody ends it
                self.kill_recorder(box)
                os.kill(box.process.pid, signal.SIGKILL)
            else:
                os.kill(box.pids()[role], signal.SIGKILL)
            status = box.process.wait(20 * SLOW)
        box._end()
        self.assertEqual(status, {"run": -9, "recorder": -9, "init": 137}.get(role, 125), box.stderr())
        self.assertLessEqual(flows(capture.sent()), MAY_LEAVE)
        self.assert_nothing_left(box)
        with open(answered) as f:
            done = set(f.read().split())
        recorded = self.recorded(self.whole_lines(box.audit))
        self.assertEqual(len(recorded), len(set(recorded)), "an event was written twice")
        self.assertEqual(done - set(recorded), set(), f"answered but not in the log ({len(done)} were)")

    def test_thirty(self):
        self.rounds(30 if support.LONG else 8)

    def test_ten_rootless(self):
        self.rounds(10 if support.LONG else 4, rootless=True)
