# SPDX-License-Identifier: Apache-2.0
"""Every role killed at random moments under load, alone and together: nothing leaves that was not judged, the credential goes
nowhere else, no event of an answered request is missing, and it serves again at once. About 25 kills; with VETHGUARD_LONG=1
(or VETHGUARD_KILLS) 1,000. VETHGUARD_SEED repeats a run."""
import collections
import json
import os
import random
import signal
import socket
import statistics
import struct
import subprocess
import time

import lab
import support
from daemon import Daemon
from support import HTTP, LONG, NETWORK, PACE, PYTHON, SECRET, SLOW, VETHGUARD, Case, sh, wait_until

KILLS = int(os.environ.get("VETHGUARD_KILLS", 1000 if LONG else 25))
SEED = int(os.environ.get("VETHGUARD_SEED", time.time_ns() % 1000000))
SANDBOXES = 2  # whose link vethguard makes; a further one is behind an interface of the host
GATEWAY4, GUEST4 = "172.30.7.1", "172.30.7.2"
NAMES = {"vethguard-keepe": "keeper", "vethguard-recor": "recorder", "vethguard-worke": "worker"}
SOON = 1 * SLOW      # within this it serves again, as a rule
PATIENCE = 20 * SLOW  # within this always, however loaded the machine
SOL_PACKET, PACKET_STATISTICS, SO_RCVBUFFORCE = 263, 6, 33
TCP, UDP = 6, 17
LAST = 1000
# What the policy's one destination and its resolver need, and nothing else.
MAY_LEAVE = {(lab.DNS4, UDP, 53), (lab.DNS4, TCP, 53), (lab.ORIGIN4, TCP, 443), (lab.ORIGIN6, TCP, 443)}
OWN = {lab.HOST4, lab.HOST6}


def flow(frame):
    """(source, destination, protocol, destination port) of a frame, or its EtherType."""
    kind = frame[12:14]
    if kind == b"\x08\x00":
        n = 14 + (frame[14] & 15) * 4
        source, destination, protocol = socket.inet_ntoa(frame[26:30]), socket.inet_ntoa(frame[30:34]), frame[23]
    elif kind == b"\x86\xdd":
        n, protocol = 54, frame[20]
        source, destination = socket.inet_ntop(socket.AF_INET6, frame[22:38]), socket.inet_ntop(socket.AF_INET6, frame[38:54])
    else:
        return kind
    port = struct.unpack(">H", frame[n + 2:n + 4])[0] if protocol in (TCP, UDP) and len(frame) >= n + 4 else None
    return source, destination, protocol, port


class Judge(lab.Capture):
    """Judges every frame that leaves by an interface, and keeps the flows that must not be."""

    def __init__(self, interface):
        super().__init__(interface)
        self.socket.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 64 << 20)
        self.all = []  # of the last frames, as they came
        self.count, self.wrong, self.forms = 0, collections.Counter(), support.secret_forms(SECRET)
        self.examples = {}  # of each wrong flow the first frame's beginning
        self.frames = self

    def append(self, item):
        kind, frame = item
        self.all = [*self.all[-LAST:], item]
        if kind != self.OUTGOING or frame[12:14] == b"\x08\x06" or self.is_own(frame):
            return
        self.count += 1
        what = flow(frame)
        if not isinstance(what, tuple) or what[0] not in OWN or what[1:] not in MAY_LEAVE:
            self.wrong[what] += 1
            self.examples.setdefault(what, frame[:128].hex())
        if any(form in frame for form in self.forms):
            self.wrong["the credential", what] += 1

    @staticmethod
    def is_own(f):
        """Neighbor discovery and group membership of the host itself; and what its kernel says to a name server whose answer
        finds the worker that asked killed: port unreachable, quoting that answer."""
        if f[12:14] == b"\x86\xdd":
            return f[20] == 0 or f[20] == 58 and f[54] in (133, 135, 136, 143)
        unreachable = f[12:15] == b"\x08\x00\x45" and f[23] == 1 and f[34:36] == b"\x03\x03"
        return unreachable and f[51] == 17 and f[54:58] == f[30:34] and f[58:62] == f[26:30] and f[62:64] == b"\0\x35"

    def missed(self):
        return struct.unpack("II", self.socket.getsockopt(SOL_PACKET, PACKET_STATISTICS, 8))[1]

    def __exit__(self, *_):
        time.sleep(0.2)
        self.lost = self.missed()
        super().__exit__(*_)


class Inside:
    """One sandbox and the programs that run in it."""

    def __init__(self, test, name, interface=None):
        """interface: of the host, made here, leads into it; else the guard makes the link."""
        self.name, self.netns, self.interface = name, f"torture-{name}", interface
        self.file = support.LAB.path(f"torture-{name}")
        self.at, self.answers = 0, []  # [kind, what, time]
        support.netns(test, self.netns)
        sh("ip", "-n", self.netns, "link", "set", "lo", "up")
        if interface:
            sh("ip", "link", "add", interface, "type", "veth", "peer", "name", "eth0", "netns", self.netns)
            sh("ip", "addr", "add", GATEWAY4 + "/24", "dev", interface)
            sh("ip", "link", "set", interface, "up")
            sh("ip", "-n", self.netns, "addr", "add", GUEST4 + "/24", "dev", "eth0")
            sh("ip", "-n", self.netns, "link", "set", "eth0", "up")
            sh("ip", "-n", self.netns, "route", "add", "default", "via", GATEWAY4)
        open(self.file, "w").close()
        self.process = None

    def attach(self, daemon, policy):
        where = {"interface": self.interface} if self.interface else {"netns": f"/run/netns/{self.netns}"}
        daemon.attach(name=self.name, policy=policy, **where)
        env = daemon.call("GET", f"/v1/sandboxes/{self.name}/env")[2]
        ca = support.LAB.write(f"torture-{self.name}.pem", env["ca_pem"])
        resolv = support.LAB.write(f"torture-{self.name}.resolv", "".join(f"nameserver {n}\n" for n in env["nameservers"]))
        self.command = ["nsenter", f"--net=/run/netns/{self.netns}", "unshare", "-m", "sh", "-c",
                        f'mount --bind {resolv} /etc/resolv.conf && exec "$@"', "sh", PYTHON,
                        os.path.join(support.HERE, "torture_inside.py"), self.name, self.file, SECRET, str(PACE)]
        self.env = {**os.environ, "SSL_CERT_FILE": ca, "PYTHONDONTWRITEBYTECODE": "1"}

    def start(self):
        self.process = subprocess.Popen(self.command, env=self.env, stderr=subprocess.DEVNULL, start_new_session=True)

    def stop(self):
        if self.process:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        self.process = None

    def read(self):
        with open(self.file, "rb") as f:
            f.seek(self.at)
            data = f.read()
        data = data[:data.rfind(b"\n") + 1]
        self.at += len(data)
        for line in data.decode().splitlines():
            kind, what, when = line.split(" ")
            self.answers.append((kind, what, float(when)))
        return self.answers

    def first_after(self, moment):
        """When the first request since that moment was answered, or None."""
        times = []
        for kind, _, when in reversed(self.read()):
            if when < moment:
                break
            if kind in ("http", "http2"):
                times.append(when)
        return min(times, default=None)


class Torture(Case):
    def setUp(self):
        super().setUp()
        self.rng = random.Random(SEED)
        self.killed = collections.Counter()
        self.ready = []  # seconds from a daemon's start to its first answer
        self.took = []  # seconds from a daemon's start to each sandbox being served
        self.failed = 0
        self.policy = support.LAB.write("torture.yaml", support.policy(
            "{to: 'https://api.lab.test', methods: [GET], credential: api}", "https://www.lab.test",
            credentials=support.file_credential()))
        self.traces = support.Traces()
        self.daemon = Daemon()
        self.addCleanup(self.daemon.stop)
        self.boxes = [Inside(self, f"t{i}") for i in range(SANDBOXES)] + [Inside(self, "diverted", "vtorture")]
        for box in self.boxes:
            box.attach(self.daemon, self.policy)
            self.addCleanup(box.stop)

    # --- what is killed ---

    def roles(self):
        """{role: [pid]}; workers in store are workers too."""
        found = {"supervisor": [self.daemon.process.pid]}
        for pid, row in support.descendants(self.daemon.process.pid).items():
            found.setdefault(NAMES.get(row[0], "helper"), []).append(pid)
        return found

    def choose(self):
        roles = self.roles()
        everyone = [(role, pid) for role, pids in roles.items() for pid in pids]
        how = self.rng.random()
        if how < 0.55:
            role = self.rng.choice(sorted(roles))
            return [(role, self.rng.choice(sorted(roles[role])))]
        if how < 0.85:
            return self.rng.sample(sorted(everyone), min(len(everyone), self.rng.randint(2, 4)))
        return self.rng.sample(sorted(everyone), len(everyone))

    def kill(self, victims):
        for role, pid in victims:
            try:
                os.kill(pid, signal.SIGKILL)
                self.killed[role] += 1
            except ProcessLookupError:
                pass  # another one's death has ended it
        return any(role == "supervisor" for role, _ in victims)

    def restart(self):
        """Restarts the daemon like systemd; now and then the new one is killed too while it starts."""
        self.daemon.process.wait()
        while self.rng.random() < 0.25:
            with open(self.daemon.stderr_path, "ab") as err:
                process = subprocess.Popen(self.daemon.argv(), stdin=subprocess.DEVNULL, stdout=err, stderr=err)
            time.sleep(self.rng.random() * 0.15 * PACE)
            self.daemon.process = process
            self.kill(self.rng.sample([("supervisor", process.pid)], 1))
            process.wait()
        moment = time.monotonic()
        self.daemon.start()
        self.ready.append(time.monotonic() - moment)
        return moment

    def assert_serves(self, since, restarted):
        for box in self.boxes:
            first = wait_until(lambda b=box: b.first_after(since) or self.look_after(b), PATIENCE)
            self.assertTrue(first, f"{box.name} is not served: {self.daemon.call('GET', '/v1/sandboxes')} {self.daemon.stderr()[-3000:]}")
            if restarted and first is not True:
                self.took.append(first - since)
                if first - since > SOON:
                    print(f"      torture: after {sum(self.killed.values())} kills {box.name} was served after {first - since:.2f} s",
                          flush=True)

    def look_after(self, box):
        """A sandbox whose workers died too often stays closed until somebody reloads it."""
        shown = self.daemon.call("GET", f"/v1/sandboxes/{box.name}")[2]
        if shown["state"] == "failed":
            self.failed += 1
            self.assertEqual(self.daemon.call("POST", f"/v1/sandboxes/{box.name}/reload", {})[0], 200)

    def round(self):
        time.sleep(self.rng.random() * 0.3)
        restarted = self.kill(self.choose())
        moment = self.restart() if restarted else time.monotonic()
        if self.rng.random() < 0.7:  # else the next ones die before it has recovered
            self.assert_serves(moment, restarted)

    # --- what must be true afterwards ---

    def answered(self, *kinds):
        return [(box.name, what) for box in self.boxes for kind, what, _ in box.read() if kind in kinds]

    def assert_recorded(self):
        """Each answer that somebody had is one event, and no event is there twice."""
        events = self.daemon.events()
        ids = collections.Counter(e["metadata"]["uid"] for e in events)
        self.assertEqual([i for i, n in ids.items() if n > 1], [], "events are there twice")
        recorded = collections.Counter()
        for e in events:
            if e["class_uid"] == HTTP:
                url = e["http_request"]["url"]
                path = url["path"] + ("?" + url["query_string"] if url.get("query_string") else "")
                recorded[e["device"]["name"], path, e["action_id"]] += 1
        for kinds, action in ((("http",), 1), (("http2",), 1), (("denied",), 2)):
            for name, path in self.answered(*kinds):
                n = recorded[name, path, action]
                # curl says the same again where a connection was cut before any answer
                self.assertTrue(n == 1 or n > 1 and kinds == ("http2",), f"{name} {path}: {n} events")
        for box in self.boxes:  # what was sent past the proxy was noticed
            self.assertTrue(any(e["class_uid"] == NETWORK and e["disposition_id"] == 6 for e in events
                                if e["device"]["name"] == box.name), box.name)
        sequences = collections.defaultdict(list)
        for e in events:
            sequences[e["device"]["uid"]].append(e["metadata"]["sequence"])
        for uid, numbers in sequences.items():
            self.assertEqual(sorted(numbers), list(range(1, len(numbers) + 1)), f"sequence of {uid}")
        r = subprocess.run([VETHGUARD, "audit", "verify", self.daemon.audit], capture_output=True, text=True, timeout=120 * SLOW)
        self.assertEqual(r.returncode, 0, r)
        return len(events)

    def assert_no_leak(self):
        self.assertEqual(self.answered("leak", "allowed"), [])
        forms = support.secret_forms(SECRET)
        for folder, _, files in os.walk(self.daemon.dir):
            for name in files:
                path = os.path.join(folder, name)
                if os.path.isfile(path) and not os.path.islink(path):
                    with open(path, "rb") as f:
                        self.assertFalse(any(form in f.read() for form in forms), f"the credential is in {path}")
        for row in self.seen():
            self.assertNotIn(row["what"], ("evil", "udp", "tcp"), row)
            if row["what"] == "http":
                headers = {k.lower(): v for k, v in row["headers"]}
                self.assertEqual(headers.pop("authorization"), f"Bearer {SECRET}", row)
                self.assertEqual(headers["host"], "api.lab.test", row)
                self.assertIsNone(support.holds_secret(json.dumps(headers)), row)
                self.assertEqual(row["method"], "GET", row)
                self.assertIsNone(support.holds_secret(row["path"]), row)

    def assert_nothing_left(self):
        for box in self.boxes:
            box.stop()
            status, _, answer = self.daemon.call("DELETE", f"/v1/sandboxes/{box.name}")
            self.assertEqual(status, 200, answer)
        state = {}

        def empty():
            state.update({d: os.listdir(os.path.join(self.daemon.state, d)) for d in ("sandboxes", "netns", "rings", "told")})
            return not any(state.values())
        self.assertTrue(wait_until(empty, 10 * SLOW), state)
        self.assertTrue(wait_until(lambda: self.roles().keys() <= {"supervisor", "keeper", "recorder", "worker"}, 5 * SLOW))

    def assert_no_trace(self):
        for box in self.boxes:
            sh("ip", "netns", "del", box.netns)
        rules = sh("nft", "list", "ruleset")
        self.assertNotIn("vtorture", rules)
        self.assertNotIn('"vg', rules)
        for family in ("netdev", "inet", "bridge"):  # empty ones stay for the next sandbox
            subprocess.run(["nft", "delete", "table", family, "vethguard-divert"], check=False, stderr=subprocess.DEVNULL)
        self.assertEqual(wait_until(lambda: not self.traces.since(), 5 * SLOW) or self.traces.since(), True)

    def test_kills(self):
        print(f"      torture: seed {SEED}, {KILLS} kills", flush=True)
        began, ca = time.monotonic(), os.path.join(self.daemon.data, "ca", "root.pem")
        with open(ca, "rb") as f:
            root = f.read()
        with Judge("up0") as capture:
            for box in self.boxes:
                box.start()
            self.assert_serves(time.monotonic(), False)
            while sum(self.killed.values()) < KILLS:
                self.round()
            self.assert_serves(time.monotonic(), False)
            for box in self.boxes:
                box.stop()
        answers = collections.Counter(kind for box in self.boxes for kind, _, _ in box.read())
        self.assert_nothing_left()
        self.assertEqual(self.daemon.stop(), 0, self.daemon.stderr()[-3000:])
        events = self.assert_recorded()
        print(f"      torture: killed {dict(self.killed)} in {time.monotonic() - began:.0f} s; answers {dict(answers)}; {events} events; "
              f"{capture.count} frames out ({capture.lost} missed); closed for good and reloaded {self.failed}; served after a restart "
              f"within {statistics.median(self.took or [0]):.2f} s (median), {max(self.took, default=0):.2f} s (most), ready within "
              f"{max(self.ready, default=0):.2f} s (most)", flush=True)
        self.assertEqual(dict(capture.wrong), {}, f"left and was never judged: {capture.examples}")
        self.assertEqual(capture.lost, 0)
        self.assert_no_leak()
        with open(ca, "rb") as f:
            self.assertEqual(f.read(), root)
        self.assertLess(statistics.median(self.took or [0]), SOON)
        self.assert_no_trace()
        for kind in ("http", "http2", "websocket", "name", "noname", "denied"):
            self.assertGreater(answers[kind], 0, kind)
