# SPDX-License-Identifier: Apache-2.0
"""The daemon when something it relies on fails or hangs, with two sandboxes and requests in both: processes, memory, the audit
log's disk, the resolver, its service manager's patience. What depends on it is closed and says so, nothing leaves that was
not judged, the others are served, and all comes back by itself. test_exhaustion has descriptors and the state's disk."""
import collections
import http.client
import json
import os
import resource
import shutil
import signal
import socket
import subprocess
import threading
import time
import unittest

import daemon_case
import lab
import support
import test_torture
import test_upgrade
from daemon import Daemon
from support import FINDING, HTTP, LIFECYCLE, LONG, PACE, SLOW, VETHGUARD, descendants, sh, wait_until
from test_exhaustion import Neighbours

KEEPER_RESTARTS_MAX, RECORDER_RESTARTS_MAX = 4, 3  # src/supervisor/supervisor.h and recording.h
RECORDING_RINGS_MAX, RECORDER_RINGS_MAX = 64, 40  # recording.h and message.h
API = 6003
ATTACH_RELOADS_MAX, ATTACHMENTS_MAX = 8, 2000  # src/supervisor/attach/attachment.h and attachments.h
WATCHDOG_S = 0.5


class Failing(Neighbours):
    """Judges what leaves the host while a test runs."""

    def setUp(self):
        super().setUp()
        self.wire = test_torture.Judge("up0")
        self.wire.__enter__()
        self.addCleanup(self.assert_judged)

    def assert_judged(self):
        self.wire.__exit__()
        self.assertEqual(dict(self.wire.wrong), {}, "left and was never judged")

    def both(self):
        return self.name, self.other

    def role(self, role):
        """Its pid, or None."""
        return next((p for p, row in descendants(self.daemon.process.pid).items() if row[0] == daemon_case.ROLES[role]), None)

    def code(self, path, *more, **kw):
        """The proxy's answer to CONNECT, and the answer inside the tunnel."""
        return self.curl("-o", "/dev/null", "-w", "%{http_connect} %{http_code}", *more, "https://api.lab.test" + path, **kw).stdout

    def refuses(self, netns):
        """Requests that no rule allows, and packets past the proxy, are refused as ever."""
        self.assertNotIn("200", self.code("/x", "-X", "DELETE", netns=netns, seconds=1).split()[1:])
        r = subprocess.run(["ip", "netns", "exec", netns, "curl", "-sf", "-m", "1", f"http://{lab.EVIL4}/"], capture_output=True)
        self.assertNotEqual(r.returncode, 0)

    def paths(self, status=1):
        """How often each path is in the log."""
        return collections.Counter(e["http_request"]["url"]["path"] for e in self.daemon.events(HTTP) if e["action_id"] == status)

    def verify(self, *logs):
        r = subprocess.run([VETHGUARD, "audit", "verify", *(logs or [self.daemon.audit])], capture_output=True, text=True,
                           timeout=60 * SLOW)
        self.assertEqual(r.returncode, 0, r)

    def left(self):
        """What a refused attachment could leave: (state files, gates, names)."""
        files = self.state_files()
        return sorted(files["sandboxes"]), len(files["netns"]), len(files["names"])

    def refused_whole(self, word, tries=8):
        """Attaches until it is refused (some workers are in store); nothing is left of that one."""
        for n in range(tries):
            before, name = self.left(), f"r{n}"
            status, answer = self.another(name)
            if status == 201:
                continue
            self.assertEqual(status // 100, 5, answer)
            self.assertRegex(json.dumps(answer), word)
            self.assertTrue(wait_until(lambda: self.left() == before, 10 * SLOW), (before, self.left()))
            self.assertNotIn("eth0", sh("ip", "-n", self.name + name, "link"))
            return
        self.fail("it is not refused")


class Manager(threading.Thread):
    """The service manager's end of NOTIFY_SOCKET: (sender, line) of all that was said."""

    def __init__(self, path):
        super().__init__(daemon=True)
        self.path, self.said, self.ending = path, [], False
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(path)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        self.socket.settimeout(0.1)
        self.start()

    def run(self):
        while not self.ending:
            try:
                data, control, _, _ = self.socket.recvmsg(4096, socket.CMSG_SPACE(12))
            except TimeoutError:
                continue
            sender = int.from_bytes(control[0][2][:4], "little") if control else 0
            self.said.extend((sender, line) for line in data.decode().splitlines())

    def stop(self):
        self.ending = True
        self.join()
        self.socket.close()

    def count(self, word, sender=None):
        return sum(line.startswith(word) and sender in (None, who) for who, line in list(self.said))

    def env(self):
        return {**os.environ, "NOTIFY_SOCKET": self.path, "WATCHDOG_USEC": str(int(WATCHDOG_S * 1e6))}


class Watchdog(Failing):
    def make_daemon(self):
        self.manager = Manager(support.LAB.path(f"notify-{time.monotonic_ns()}"))
        self.addCleanup(self.manager.stop)
        return Daemon(start=False).start(env=self.manager.env())

    def hears(self, word, count=1):
        pid = self.daemon.process.pid
        return wait_until(lambda: self.manager.count(word, pid) >= count, 20 * SLOW)

    def test_a_daemon_that_hangs(self):
        """Its sandboxes are served by their workers, or closed; the manager notices, kills it and starts it again."""
        pid = self.daemon.process.pid
        self.assertTrue(self.hears("READY=1") and self.hears("WATCHDOG=1", 3), self.manager.said)
        self.stopped(pid)
        self.assertTrue(wait_until(lambda: support.process_activity(pid)[0] == "T", 10 * SLOW))
        self.assertTrue(self.asks(netns=self.other))
        said = self.manager.count("WATCHDOG=1")
        os.kill(self.pid_of_worker[self.name], signal.SIGKILL)  # nobody is there to start another one
        self.assertFalse(self.asks(seconds=1))
        for netns in self.both():
            self.refuses(netns)
        self.assertTrue(self.asks(netns=self.other))
        self.assertFalse(wait_until(lambda: self.manager.count("WATCHDOG=1") > said, 3 * WATCHDOG_S), "it is not hung")
        os.kill(pid, signal.SIGABRT)  # as WatchdogSignal= has it, and SIGKILL for one that does not end
        self.daemon.kill()
        for netns in self.both():
            self.assertFalse(self.asks(netns=netns, seconds=1))
            self.refuses(netns)
        self.daemon.start(env=self.manager.env())
        self.assert_both()
        self.assertTrue(self.hears("READY=1") and self.hears("WATCHDOG=1", 2), self.manager.said)
        self.verify()

    def setUp(self):
        super().setUp()
        self.pid_of_worker = {self.name: self.show("one")["worker"]["pid"], self.other: self.show("two")["worker"]["pid"]}


class Processes(Failing):
    """No process can be started: pids.max of its control group."""

    def group(self):
        """A new control group that bounds processes, or None."""
        for top in ("/sys/fs/cgroup/pids", "/sys/fs/cgroup"):
            folder = os.path.join(top, f"vethguard-{os.getpid()}-{time.monotonic_ns()}")
            try:
                os.mkdir(folder)
            except OSError:
                continue
            if os.path.exists(folder + "/pids.max"):
                self.addCleanup(self.leave, top, folder)
                return folder
            os.rmdir(folder)
        return None

    @staticmethod
    def put(folder, name, value):
        with open(os.path.join(folder, name), "w") as f:
            f.write(str(value))

    def leave(self, top, folder):
        def empty():
            with open(folder + "/cgroup.procs") as f:
                for pid in f.read().split():
                    try:
                        self.put(top, "cgroup.procs", pid)
                    except OSError:
                        pass
            try:
                os.rmdir(folder)
            except OSError:
                return False
            return True
        self.assertTrue(wait_until(empty, 10 * SLOW), folder)

    def test_none_left(self):
        folder = self.group()
        if not folder:
            self.skipTest("no control group for processes can be made here")
        self.assertTrue(wait_until(lambda: self.daemon.call("GET", "/v1/status")[2]["sandboxes"]["spare_workers"] >= 4, 20 * SLOW))
        for pid in (self.daemon.process.pid, *descendants(self.daemon.process.pid)):
            self.put(folder, "cgroup.procs", pid)
        self.put(folder, "pids.max", 1)
        self.refused_whole("Resource temporarily unavailable")
        self.assert_both()
        os.kill(self.pid("worker"), signal.SIGKILL)
        self.assertTrue(wait_until(lambda: "no worker can be started" in self.daemon.stderr(), 20 * SLOW), self.daemon.stderr())
        self.assertEqual(self.show()["state"], "restarting")
        self.assertFalse(self.asks(seconds=1))
        self.assertTrue(self.asks(netns=self.other))
        for role in ("keeper", "recorder"):  # there is no other one; what is new waits for the recorder
            os.kill(self.role(role), signal.SIGKILL)
            self.assertTrue(wait_until(lambda r=role: f"no {'other ' if r == 'recorder' else ''}{r} can be started" in
                                       self.daemon.stderr(), 20 * SLOW), self.daemon.stderr())
        for netns in self.both():
            self.assertFalse(self.asks(netns=netns, seconds=1))
            self.refuses(netns)
        self.assertEqual(self.daemon.call("GET", "/v1/status")[0], 200)
        self.put(folder, "pids.max", "max")
        self.assert_both(40 * SLOW)
        self.assertEqual(self.show()["state"], "serving")
        self.assertTrue(wait_until(lambda: self.another(f"l{time.monotonic_ns() % 100000}")[0] == 201, 20 * SLOW))
        self.verify()


@unittest.skipIf(support.ASAN, "the instrumented program reserves terabytes")
class Memory(Failing):
    def tries(self, name):
        """Asks for another sandbox; the daemon may have no memory for an answer either."""
        try:
            return self.another(name)
        except (OSError, http.client.HTTPException, ValueError) as e:
            return 500, str(e)

    def all_serve(self):
        """A sandbox whose fence could not be examined was closed, and is reloaded."""
        for name in ("one", "two"):
            if self.show(name)["state"] == "failed":
                self.daemon.call("POST", f"/v1/sandboxes/{name}/reload", {})
        return all(self.asks(netns=netns, seconds=3) for netns in self.both())

    def test_none_left(self):
        """Each is served or closed; the daemon lives."""
        pid = self.daemon.process.pid
        before = resource.prlimit(pid, resource.RLIMIT_AS)
        resource.prlimit(pid, resource.RLIMIT_AS, (1 << 20, before[1]))  # less than it has: no more from now on
        made, refused = [], 0
        while refused < 3 and len(made) < 50:  # what it has freed before may do for some
            name = f"m{refused + len(made)}"
            status, answer = self.tries(name)
            if status == 201:
                made.append(name + ".json")
            else:
                self.assertEqual(status // 100, 5, answer)
                refused += 1
        self.assertEqual(refused, 3, made)
        self.assertIsNone(self.daemon.process.poll(), self.daemon.stderr())
        self.assertTrue(wait_until(lambda: self.left()[0] == sorted(["one.json", "two.json", *made]) and self.left()[1] == 2 + len(made),
                                   10 * SLOW), (self.left(), made))
        for netns in self.both():
            self.assertTrue(self.asks(netns=netns) or "cannot be examined" in self.daemon.stderr(), self.daemon.stderr())
            self.refuses(netns)
        for victim in (self.pid_of_worker, self.role("keeper")):
            if victim in descendants(pid):
                os.kill(victim, signal.SIGKILL)
        self.assertFalse(wait_until(lambda: self.daemon.process.poll(), 1), self.daemon.stderr())
        for netns in self.both():
            self.refuses(netns)
        resource.prlimit(pid, resource.RLIMIT_AS, before)
        self.assertTrue(wait_until(self.all_serve, 40 * SLOW), self.daemon.stderr())
        self.assertTrue(wait_until(lambda: self.tries(f"m{time.monotonic_ns() % 100000}")[0] == 201, 20 * SLOW), self.daemon.stderr())
        self.verify()

    def setUp(self):
        super().setUp()
        self.pid_of_worker = self.pid("worker")


class AuditDisk(Failing):
    """The log's file system is full."""

    def make_daemon(self):
        self.folder = support.LAB.path(f"audit-{time.monotonic_ns()}")
        os.makedirs(self.folder)
        sh("mount", "-t", "tmpfs", "-o", "size=2m", "none", self.folder)
        self.addCleanup(subprocess.run, ["umount", "-l", self.folder], check=False)
        self.addCleanup(self.keep)
        daemon = Daemon(start=False)
        support.AUDITS.remove(daemon.audit)
        daemon.audit = os.path.join(self.folder, "audit.jsonl")
        return daemon.start()

    def keep(self):
        """The log, for the tests that read all of them, before its file system goes."""
        copy = os.path.join(self.daemon.dir, "audit.jsonl")
        sh("cp", self.daemon.audit, copy)
        support.AUDITS.append(copy)
        if self.daemon.audit in support.KILLED:
            support.KILLED.add(copy)

    def fill(self):
        self.filler = os.path.join(self.folder, "filler")
        free = os.statvfs(self.folder)
        with open(self.filler, "wb") as f:
            f.write(bytes(max(0, free.f_bavail * free.f_frsize - (32 << 10))))

    def many(self, name, netns, count=150):
        """One request after the other: (how many were served, what the last one said)."""
        r = self.curl("-w", " %{http_code}\n", f"https://api.lab.test/{name}-[1-{count}]", netns=netns, seconds=60)
        lines = [line for line in r.stdout.splitlines() if line]
        return sum(line.endswith(" 200") for line in lines), r.stdout[-600:] + r.stderr

    def records(self):
        return self.daemon.call("GET", "/v1/status")[2]["audit"]["recording"]

    def outage(self):
        """The finding that tells of it, when it is over."""
        return self.daemon.event(FINDING, seconds=10, **{"finding_info.types": ["log-outage"]})

    def assert_closed(self):
        for netns in self.both():
            self.assertIn("503", self.code("/closed", netns=netns))
            self.refuses(netns)

    def assert_once(self, served):
        """Every served request is in the log, once."""
        paths = self.paths()
        self.assertEqual([p for p, n in paths.items() if n > 1 and p != "/whoami"], [])
        for name, count in served.items():
            self.assertGreaterEqual(sum(p.startswith(f"/{name}-") for p in paths), count, name)
        self.assertNotIn("/closed", paths)
        self.verify()

    def stall(self):
        self.fill()
        one, _ = self.both()
        for n in range(20):  # what is answered before the recorder meets the end is in its memory
            if "No space left" in self.many(f"s{n}", one)[1]:
                return
        self.fail("the log has room")

    def test_changed_again_and_again_meanwhile(self):
        """Each worker leaves its ring behind and each call an event, which nobody takes: the recorder lives, what waits is
        bounded, a pause is answered, and in the end all of it is in the log, once."""
        self.stall()
        recorder, changes, calls = self.pid("recorder"), 0, 300
        for n in range(2 * RECORDING_RINGS_MAX):
            with open(self.policy, "w") as f:
                f.write(support.policy(daemon_case.READS, f"https://w{n}.lab.test", credentials=support.file_credential()))
            status, _, answer = self.daemon.call("POST", "/v1/sandboxes/one/reload", {})
            if status != 200:
                break
            changes += 1
        self.assertEqual(status, 500)
        self.assertIn("the audit log has no room for", answer["detail"])
        self.assertGreater(changes, RECORDER_RINGS_MAX)
        self.assertEqual(sum(name.startswith(self.box["id"]) for name in self.state_files()["rings"]), RECORDING_RINGS_MAX)
        for _ in range(calls):
            self.assertEqual(self.daemon.call("POST", "/v1/sandboxes/one/reload", {"policy": "here"}, {"User-Agent": "x" * 200})[0], 422)
        self.assertEqual(self.daemon.call("POST", "/v1/sandboxes/one/pause", {})[0], 200)
        self.assertEqual(self.show()["state"], "paused")
        self.assertEqual(self.daemon.call("POST", "/v1/sandboxes/one/resume", {})[0], 200)
        self.assertEqual(self.pid("recorder"), recorder, self.daemon.stderr())
        os.unlink(self.filler)
        self.assert_both()
        said = lambda: sum(e["api"]["response"]["code"] == 422 for e in self.daemon.events(API))  # noqa: E731
        self.assertTrue(wait_until(lambda: said() == calls, 20 * SLOW), said())
        self.assertTrue(wait_until(lambda: len(self.state_files()["rings"]) == 2 and not self.state_files()["told"], 20 * SLOW),
                        self.state_files())
        self.assertEqual(len([e for e in self.daemon.events(LIFECYCLE) if "w0.lab.test" in json.dumps(e)]), 2)
        self.assertEqual(self.pid("recorder"), recorder, self.daemon.stderr())
        self.verify()

    def test_full_and_free_again(self):
        self.fill()
        served = {}
        one, two = self.both()
        for name in (f"a{n}" for n in range(20)):  # what is answered before the recorder meets the end is in its memory
            served[name], text = self.many(name, one)
            if "No space left" in text:
                break
        self.assertIn("No space left", text)
        self.assertGreater(sum(served.values()), 0)
        self.assertIn("503", self.many("b", two)[1])
        self.assert_closed()
        self.assertIs(self.records(), False)
        worker = self.pid("worker")
        os.kill(worker, signal.SIGKILL)  # the next one has written nothing yet, and refuses too
        self.assertTrue(wait_until(lambda: (lambda s: s["state"] == "serving" and s["worker"]["pid"] not in (None, worker))(self.show()),
                                   20 * SLOW), self.show())
        self.assert_closed()
        os.unlink(self.filler)
        self.assert_both()
        self.assertTrue(self.daemon.event(FINDING, seconds=10))
        self.assertIs(self.records(), True)
        outage = self.outage()
        self.assertEqual(outage["device"]["name"], "vethguardd")
        self.assertRegex(outage["finding_info"]["desc"], r"^From 2.*Z to 2.*Z nothing could be written, for [0-9.]+ s in all, "
                         r"and new work was refused\. No event is missing\. The recorder: .*No space left on device")
        self.assert_once(served)

    def test_killed_and_started_with_a_full_disk(self):
        self.fill()
        served = {"a": self.many("a", self.name)[0]}
        self.assert_closed()
        self.daemon.kill()
        self.daemon.start()
        for netns in self.both():
            self.assertFalse(self.asks(netns=netns, seconds=1))
            self.refuses(netns)
        os.unlink(self.filler)
        self.assert_both()
        self.assertTrue(self.daemon.event(LIFECYCLE, seconds=20))
        self.assertTrue(self.outage())
        self.assert_once(served)


class Resolver(Failing):
    def make_daemon(self):
        return Daemon("timeouts: {resolve: 1s}\n")

    def test_gone_and_back(self):
        """Silent (then, if there is time, refusing): that opens nothing, and it is asked again when it is there."""
        table = ["ip", "netns", "exec", "outside", "nft"]
        self.addCleanup(subprocess.run, [*table, "delete", "table", "inet", "gone"], check=False, capture_output=True)
        for verdict in ("drop", "reject") if LONG else ("drop",):
            sh(*table, "add table inet gone; add chain inet gone in { type filter hook input priority 0; }; "
               f"add rule inet gone in udp dport 53 {verdict}; add rule inet gone in tcp dport 53 {verdict}")
            for pid in [self.show(name)["worker"]["pid"] for name in ("one", "two")]:
                os.kill(pid, signal.SIGKILL)  # the next one knows no address yet
            for netns in self.both():
                said = wait_until(lambda n=netns: {"502", "504"} & set(self.code("/gone", netns=n).split()), 20 * SLOW)
                self.assertTrue(said, self.code("/gone", netns=netns))
                self.refuses(netns)
            self.assertEqual(self.daemon.call("GET", "/v1/status")[0], 200)
            sh(*table, "delete table inet gone")
            self.assert_both()
        codes = {e["http_response"]["code"] for e in self.daemon.events(HTTP) if e["http_request"]["url"]["path"] == "/gone"}
        self.assertTrue(codes and codes <= {502, 504}, codes)


class Names(Failing):
    """A recorder that is stopped, and a sandbox that asks for names on and on."""
    FLOOD = r"""
import socket, struct, sys, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.connect((sys.argv[1], 53))
tail = b"".join(bytes([62]) + b"x" * 62 for _ in range(3)) + b"\3lab\4test\0\0\1\0\1"
end = time.monotonic() + float(sys.argv[2])
n = 0
while time.monotonic() < end:
    for _ in range(200):
        n += 1
        try:
            s.send(struct.pack(">HHHHHH", n & 65535, 0x100, 1, 0, 0, 0) + b"\10%08d" % n + tail)
        except OSError:
            pass
    time.sleep(0.01)
"""

    def make_daemon(self):
        return Daemon("limits: {dns_queries_per_s: 100000}\n")

    def test_until_a_ring_is_full(self):
        """They wait as everything else does; no worker ends, and no event with it."""
        workers = [self.show(name)["worker"]["pid"] for name in ("one", "two")]
        recorder = self.pid("recorder")
        self.stopped(recorder)
        gate = self.daemon.call("GET", "/v1/sandboxes/one/env")[2]["nameservers"][0]
        sh("ip", "netns", "exec", self.name, support.PYTHON, "-c", self.FLOOD, gate, str(6 * PACE))
        self.assertEqual([self.show(name)["worker"]["pid"] for name in ("one", "two")], workers, self.daemon.stderr())
        self.assertTrue(self.asks(netns=self.other))
        os.kill(recorder, signal.SIGCONT)
        self.assert_both()
        self.assertEqual([self.show(name)["worker"]["pid"] for name in ("one", "two")], workers, self.daemon.stderr())


class Hanging(Failing):
    """A role that is stopped for longer than its bounds."""

    def test_a_recorder_until_a_ring_is_full(self):
        """The sandbox that has filled its ring waits, the other one does not; then everything is written, once."""
        recorder, count = self.pid("recorder"), 1600
        self.stopped(recorder)
        out = support.LAB.path(f"filled-{time.monotonic_ns()}")
        with open(out, "w") as f:
            filling = subprocess.Popen(["ip", "netns", "exec", self.name, "curl", "-sS", "-m", str(120 * SLOW), "--cacert", self.ca,
                                        "-x", daemon_case.PROXY, "-o", "/dev/null", "-w", "%{http_code}\n",
                                        f"https://api.lab.test/fill-[1-{count}]"], stdout=f)
        self.addCleanup(filling.wait)
        self.addCleanup(filling.kill)
        worker = self.pid("worker")
        sleeps = lambda: support.process_activity(worker)  # noqa: E731

        def still():
            before = sleeps()
            time.sleep(0.5)
            return before[0] == "S" and sleeps() == before
        self.assertTrue(wait_until(lambda: filling.poll() is not None or still(), 60 * SLOW))
        self.assertIsNone(filling.poll(), "more passes than the ring holds")
        self.assertTrue(self.asks(netns=self.other))
        for netns in self.both():
            self.refuses(netns)
        self.assertEqual(self.daemon.call("GET", "/v1/status")[0], 200)
        os.kill(recorder, signal.SIGCONT)
        self.assertEqual(filling.wait(120 * SLOW), 0)
        with open(out) as f:
            self.assertEqual(f.read().split(), ["200"] * count)
        self.assertTrue(wait_until(lambda: sum(p.startswith("/fill-") for p in self.paths()) == count, 20 * SLOW))
        self.assertEqual(max(n for p, n in self.paths().items() if p.startswith("/fill-")), 1)
        self.verify()


class TooOften(Failing):
    def kills(self, role, count):
        """Each as soon as the one before is replaced; the last one's successor waits."""
        for n in range(count):
            pid = wait_until(lambda: self.role(role), 20 * SLOW)
            self.assertTrue(pid, self.daemon.stderr())
            os.kill(pid, signal.SIGKILL)
            self.assertTrue(wait_until(lambda p=pid: self.role(role) != p, 10 * SLOW))
        self.assertTrue(wait_until(lambda: "after a pause" in self.daemon.stderr(), 10 * SLOW), self.daemon.stderr())

    def test_the_keeper(self):
        self.kills("keeper", KEEPER_RESTARTS_MAX + 1)
        for netns in self.both():
            self.refuses(netns)
        self.assert_both(40 * SLOW)
        self.assertTrue(wait_until(lambda: self.role("keeper"), 20 * SLOW), self.daemon.stderr())
        self.assertTrue(wait_until(lambda: self.another(f"k{time.monotonic_ns() % 100000}")[0] == 201, 20 * SLOW))

    def test_the_recorder(self):
        self.kills("recorder", RECORDER_RESTARTS_MAX + 1)
        for netns in self.both():
            self.refuses(netns)
        self.assert_both(40 * SLOW)
        self.assertTrue(wait_until(lambda: sum("The recorder" in json.dumps(e) for e in self.daemon.events(FINDING)) >=
                                   2 * RECORDER_RESTARTS_MAX, 10 * SLOW), "each death is a finding in both")
        uids = [e["metadata"]["uid"] for e in self.daemon.events()]
        self.assertEqual(len(uids), len(set(uids)))
        self.verify()


class Journal(unittest.TestCase):
    """The log names what keeps recorders from starting, once, with the command that mends it."""

    def asserts_named(self, daemon):
        path = os.path.join(daemon.state, "journal")
        self.assertTrue(wait_until(lambda: f"mv -T {path} {path}.aside" in daemon.stderr(), 20 * SLOW), daemon.stderr())

    def test_a_recorder_that_never_becomes_ready(self):
        programs = support.LAB.path(f"programs-{time.monotonic_ns()}")
        shutil.copytree(lab.BIN, programs)
        shutil.copy("/bin/false", os.path.join(programs, "vethguard-recorder"))
        daemon = Daemon(start=False, program=os.path.join(programs, "vethguardd"))
        self.addCleanup(daemon.end)
        daemon.spawn()
        self.asserts_named(daemon)
        self.assertTrue(wait_until(lambda: "after a pause" in daemon.stderr(), 20 * SLOW), daemon.stderr())
        self.assertEqual(daemon.stderr().count("journal.aside"), 1, daemon.stderr())
        self.assertIsNone(daemon.process.poll())

    def test_one_that_cannot_be_opened(self):
        daemon = Daemon(start=False)
        self.addCleanup(daemon.end)
        os.makedirs(os.path.join(daemon.state, "journal"))
        daemon.spawn()
        self.assertEqual(daemon.process.wait(20 * SLOW), 125)
        self.asserts_named(daemon)
        path = os.path.join(daemon.state, "journal")
        sh("mv", "-T", path, path + ".aside")
        daemon.start()
        self.assertEqual(daemon.stop(), 0)


class Crowd(Failing):
    def crowd(self, count):
        names = [f"{self.name}-{i}" for i in range(count)]
        for name in names:
            support.netns(self, name)
            self.attach(name, name)
        return names

    def test_more_reloads_than_go_at_once(self):
        names = self.crowd(ATTACH_RELOADS_MAX)
        status, _, answer = self.daemon.call("POST", "/v1/reload", {})
        self.assertEqual((status, answer["reloaded"]), (200, ATTACH_RELOADS_MAX + 2), answer)
        shown = self.daemon.call("GET", "/v1/sandboxes")[2]["sandboxes"]
        self.assertEqual({s["policy"]["generation"] for s in shown}, {2})
        for name in names:
            self.assert_served(netns=name)

    @unittest.skipUnless(LONG, "minutes (VETHGUARD_LONG=1)")
    def test_as_many_as_there_may_be(self):
        """The one beyond the bound is refused; keeper and recorder are told of all of them when they are replaced."""
        names = self.crowd(ATTACHMENTS_MAX - 2)
        status, answer = self.another("beyond")
        self.assertEqual((status, f"{ATTACHMENTS_MAX} sandboxes" in answer["detail"]), (503, True), answer)
        for role in ("recorder", "keeper"):
            pid = self.role(role)
            os.kill(pid, signal.SIGKILL)
            self.assertTrue(wait_until(lambda r=role, p=pid: self.role(r) not in (None, p), 60 * SLOW))
            for name in (*self.both(), *names[::100]):
                self.assert_served(role, 60 * SLOW, netns=name)
            self.assertEqual(sum(f"the {role} died" in line for line in self.daemon.stderr().splitlines()), 1, self.daemon.stderr()[-3000:])
        status, _, answer = self.daemon.call("POST", "/v1/reload", {}, timeout=600)
        self.assertEqual((status, answer["reloaded"]), (200, ATTACHMENTS_MAX), answer)
        self.assertEqual(self.daemon.call("DELETE", f"/v1/sandboxes/{names[0]}")[0], 200)
        self.assertEqual(self.another("instead")[0], 201)


class Draining(test_upgrade.Upgraded):
    """The old daemon, while it finishes what was under way before an upgrade."""

    @staticmethod
    def hang_up(process):
        process.kill()
        process.wait()

    def install(self):
        """The programs of another build in place of those that run."""
        for name in os.listdir(self.bin):
            path = os.path.join(self.bin, name)
            if os.path.isfile(path):
                os.rename(path, path + ".old")
                sh("cp", "-p", path + ".old", path)
                os.unlink(path + ".old")

    def is_old(self, pid):
        return os.readlink(f"/proc/{pid}/exe").endswith(" (deleted)")

    def roles_of(self, pid, role=None):
        names = [daemon_case.ROLES[role]] if role else daemon_case.ROLES.values()
        return [p for p, row in descendants(pid).items() if row[0] in names and row[1] == pid]

    def spares(self):
        return self.status()["sandboxes"]["spare_workers"]

    def test_each_starts_programs_of_its_own_version(self):
        old = self.daemon.process.pid
        self.install()
        for role in ("worker", "recorder", "keeper"):  # before the upgrade
            pid = self.pid(role)
            os.kill(pid, signal.SIGKILL)
            self.assertTrue(wait_until(lambda r=role, p=pid: self.found(r) not in (None, p), 20 * SLOW))
        self.assert_served()
        self.assertTrue(wait_until(lambda: self.spares() >= 4, 20 * SLOW))
        for pid in self.roles_of(old):
            self.assertTrue(self.is_old(pid), test_upgrade.cmdline(pid))
        process, _ = self.slowly()
        new = self.upgrade()
        for role in ("recorder", "keeper"):  # while it finishes
            pid = self.roles_of(old, role)[0]
            os.kill(pid, signal.SIGKILL)
            again = wait_until(lambda r=role, p=pid: [q for q in self.roles_of(old, r) if q != p], 20 * SLOW)
            self.assertTrue(again and self.is_old(again[0]), self.daemon.stderr())
        for pid in self.roles_of(new):
            self.assertFalse(self.is_old(pid), test_upgrade.cmdline(pid))
        self.hang_up(process)
        self.assertTrue(wait_until(lambda: self.daemon.process.poll() is not None, 20 * SLOW), self.daemon.stderr())
        self.assert_served()
        self.assertTrue(self.daemon.event(HTTP, **{"http_request.url.path": "/trickle"}))

    def found(self, role):
        try:
            return self.pid(role)
        except (StopIteration, TypeError):
            return None


class WatchdogOfTheNext(test_upgrade.Upgraded):
    def make_daemon(self):
        self.manager = Manager(support.LAB.path(f"notify-{time.monotonic_ns()}"))
        self.addCleanup(self.manager.stop)
        made = super().make_daemon
        os.environ.update({k: self.manager.env()[k] for k in ("NOTIFY_SOCKET", "WATCHDOG_USEC")})
        try:
            return made()
        finally:
            del os.environ["NOTIFY_SOCKET"], os.environ["WATCHDOG_USEC"]

    def test_it_is_watched_too(self):
        self.slowly()
        old, new = self.daemon.process.pid, self.upgrade()
        self.assertTrue(wait_until(lambda: self.manager.count(f"MAINPID={new}", old), 10 * SLOW), self.manager.said)
        self.assertTrue(wait_until(lambda: self.manager.count("READY=1", new) and self.manager.count("WATCHDOG=1", new) >= 3,
                                   20 * SLOW), self.manager.said)
        said = self.manager.count("WATCHDOG=1", old)
        self.assertFalse(wait_until(lambda: self.manager.count("WATCHDOG=1", old) > said, 3 * WATCHDOG_S), "it speaks for the new one")
