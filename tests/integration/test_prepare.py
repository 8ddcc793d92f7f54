# SPDX-License-Identifier: Apache-2.0
"""Namespaces that are prepared, claimed and released: `vethguard prepare`, `claim`, `release`, and the calls behind them."""
import concurrent.futures
import glob
import json
import os
import shutil
import signal
import socket
import struct
import subprocess
import time
import unittest

import lab
import support
from daemon import Daemon
from support import FINDING, LIFECYCLE, PACE, SLOW, descendants, file_credential, policy, wait_until

PROXY = "http://198.18.0.1:3128"
STARTED = 3  # activity_id of a lifecycle event
READS = "{to: 'https://api.lab.test', methods: [GET], credential: api}"
SAME = {"gate": "02:76:67:00:00:01", "sandbox": "02:76:67:00:00:02"}


class Ready(unittest.TestCase):
    def setUp(self):
        self.prefix = f"r{time.monotonic_ns() // 1000 % 10 ** 9}"
        self.policy = support.LAB.write(f"{self.prefix}.yaml", policy(READS, credentials=file_credential()))
        self.daemon = self.make_daemon()
        self.addCleanup(self.take_away)
        self.addCleanup(self.daemon.stop)
        self.ca = os.path.join(self.daemon.dir, "ca.pem")

    def make_daemon(self):
        return Daemon()

    def take_away(self):
        for path in glob.glob(f"/run/netns/{self.prefix}*"):
            support.sh("ip", "netns", "del", os.path.basename(path))

    def cli(self, command, *argv):
        """Its output; it has to succeed."""
        more = ["--prefix", self.prefix] if command in ("prepare", "release") else []
        r = self.daemon.cli(command, *argv, *more)
        self.assertEqual(r.returncode, 0, r.stderr + self.daemon.stderr())
        return r.stdout

    def prepare(self, count, *argv):
        return self.cli("prepare", "--count", str(count), *argv)

    def claim(self, name, **members):
        status, _, answer = self.daemon.call("POST", "/v1/claim", {"name": name, "policy": self.policy, **members})
        self.assertEqual(status, 201, f"{answer} {self.daemon.stderr()}")
        return answer

    def refused(self, method, path, body=None):
        status, _, answer = self.daemon.call(method, path, body)
        return status, answer.get("detail", answer)

    def ready(self):
        return {p["name"]: p for p in self.daemon.call("GET", "/v1/prepared")[2]["prepared"]}

    def names(self):
        return [s["name"] for s in self.daemon.call("GET", "/v1/sandboxes")[2]["sandboxes"]]

    def env(self, name):
        env = self.daemon.call("GET", f"/v1/sandboxes/{name}/env")[2]
        with open(self.ca, "w") as f:
            f.write(env["ca_pem"])
        return {v["name"]: v["value"] for v in env["variables"]}

    def state_files(self):
        return {d: sorted(os.listdir(os.path.join(self.daemon.state, d))) for d in ("sandboxes", "netns", "names", "rings", "told")}

    def curl(self, netns, *argv, seconds=10):
        return subprocess.run(["ip", "netns", "exec", os.path.basename(netns), "curl", "-sS", "-m", str(seconds * PACE), "--cacert", self.ca,
                               *argv], capture_output=True, text=True)

    def asks(self, netns):
        r = self.curl(netns, "-x", PROXY, "https://api.lab.test/whoami")
        return r.returncode == 0 and json.loads(r.stdout).get("authenticated") is True

    def assert_served(self, netns):
        self.assertTrue(wait_until(lambda: self.asks(netns), 5 * SLOW), self.daemon.stderr())

    def in_netns(self, netns, code, *argv):
        return subprocess.run(["ip", "netns", "exec", os.path.basename(netns), "python3", "-c", code, *argv], capture_output=True, text=True,
                              timeout=60 * SLOW)


REFUSED = """
import socket, time
begin = time.monotonic()
for family, kind, address in ((2, 1, ("198.18.0.1", 3128)), (2, 1, ("198.18.0.9", 443)), (2, 2, ("198.18.0.1", 53)),
                              (10, 1, ("fd76:6574:6867::1", 3128)), (2, 1, ("192.0.2.1", 80))):
    s = socket.socket(family, kind)
    s.settimeout(20)
    try:
        s.connect(address)
        s.send(b"x" * 30)
        s.recv(10)
        print("open", address)
    except TimeoutError:
        print("silent", address)
    except OSError:
        pass
print("all refused")
"""


class Life(Ready):
    def test_prepared_claimed_released(self):
        self.assertIn("3 ready in /run/netns, 3 of them made now", self.prepare(3))
        self.assertIn("3 ready in /run/netns, 0 of them made now", self.prepare(3))
        self.assertEqual(sorted(self.ready()), [f"{self.prefix}-{i}" for i in (1, 2, 3)])
        self.assertEqual(self.names(), [])
        counts = self.daemon.call("GET", "/v1/status")[2]["sandboxes"]
        self.assertEqual((counts["prepared"], counts["count"]), (3, 0))
        self.assertEqual(self.in_netns(f"{self.prefix}-1", REFUSED).stdout, "all refused\n")
        out = self.cli("claim", "one", "--policy", self.policy, "--label", "job=4711")
        self.assertIn("one: serving, policy", out)
        one = self.daemon.call("GET", "/v1/sandboxes/one")[2]
        self.assertEqual((one["attachment"]["netns"], one["labels"], one["claimed"]), (f"/run/netns/{self.prefix}-1", {"job": "4711"}, True))
        placeholder = self.env("one")["API_KEY"]
        self.assert_served(f"{self.prefix}-1")
        self.assertTrue(self.daemon.event(LIFECYCLE, **{"device.name": "one"}))
        denied = self.curl(f"{self.prefix}-1", "-x", PROXY, "-o", "/dev/null", "-w", "%{http_code}", "https://evil.lab.test/")
        self.assertEqual(denied.stdout, "000" if denied.returncode else "403", denied)
        self.assertEqual(sorted(self.ready()), [f"{self.prefix}-{i}" for i in (2, 3)])
        with subprocess.Popen(["ip", "netns", "exec", f"{self.prefix}-1", "sleep", "600"]) as former:
            self.addCleanup(former.kill)
            inode = os.stat(f"/run/netns/{self.prefix}-1").st_ino
            r = self.daemon.cli("release", "one", "--prefix", self.prefix)
            self.assertEqual(r.returncode, 0, r.stderr)
            self.assertIn("1 process runs in its namespace, without network", r.stderr)
            self.assertRegex(r.stdout, "one: released, nothing is left of it; [1-9] allowed, 1 denied; a new namespace is prepared")
            links = json.loads(support.sh("nsenter", f"--net=/proc/{former.pid}/ns/net", "ip", "-j", "link"))
            self.assertEqual([link["ifname"] for link in links], ["lo"])
            former.kill()
        self.assertNotEqual(os.stat(f"/run/netns/{self.prefix}-1").st_ino, inode)
        self.assertEqual(sorted(self.ready()), [f"{self.prefix}-{i}" for i in (1, 2, 3)])
        self.assertFalse(os.path.exists(f"/proc/{one['worker']['pid']}"), "its worker lives")
        state = self.state_files()
        self.assertEqual((state["sandboxes"], state["names"], len(state["netns"])), ([f"{self.prefix}-{i}.json" for i in (1, 2, 3)], [], 3))
        self.assertEqual(self.in_netns(f"{self.prefix}-1", REFUSED).stdout, "all refused\n")
        again = self.claim("one", netns=f"/run/netns/{self.prefix}-1", wait=True)
        self.assertNotEqual(again["id"], one["id"])
        self.assertNotEqual(self.env("one")["API_KEY"], placeholder)
        self.assert_served(f"{self.prefix}-1")
        old = self.curl(f"{self.prefix}-1", "-x", PROXY, "-H", f"Authorization: Bearer {placeholder}", "https://api.lab.test/whoami")
        self.assertNotIn(placeholder, old.stdout)
        self.assertTrue(all(r["name"] != "one" or r["labels"] == {} for r in self.daemon.call("GET", "/v1/sandboxes")[2]["sandboxes"]))
        self.assertIn("2 removed", self.cli("prepare", "--remove"))
        self.assertEqual(self.ready(), {})
        self.assertEqual(os.listdir("/run/netns").count(f"{self.prefix}-2"), 0)

    def test_the_first_packet_waits(self):
        """A claim is answered before its worker serves; whoever connects then is served and not refused."""
        self.prepare(6)
        self.claim("first", wait=True)
        self.env("first")
        for i in range(5):
            netns = self.claim(f"at-once-{i}")["attachment"]["netns"]
            self.assertTrue(self.asks(netns), self.daemon.stderr())

    def test_what_is_refused(self):
        claim = {"name": "one", "policy": self.policy}
        status, detail = self.refused("POST", "/v1/claim", claim)
        self.assertEqual(status, 503)
        self.assertIn("no namespace is prepared: 'vethguard prepare --count N' prepares N", detail)
        self.prepare(2)
        bad = support.LAB.write(f"{self.prefix}-bad.yaml", "vethguard: 1\nname: bad\nnonsense: 1\n")
        status, _, answer = self.daemon.call("POST", "/v1/claim", claim | {"policy": bad})
        self.assertEqual(status, 422)
        self.assertIn("nonsense", json.dumps(answer["diagnostics"]))
        other = support.netns(self, self.prefix + "other")
        for more, expected, text in (
                ({"netns": f"/run/netns/{other}"}, 422, "is not prepared"),
                ({"netns": "/etc/passwd"}, 422, "is not a network namespace"),
                ({"netns": "/run/netns/nowhere"}, 422, "No such file"),
                ({"like": "nobody"}, 422, "there is no sandbox nobody"),
                ({"policy": "/nowhere.yaml"}, 422, "cannot be used"),
                ({"name": "bad/name"}, 422, "bad/name"), ({"name": ""}, 422, "is empty"), ({"ttl_s": 0}, 422, "out of range"),
                ({"addresses": "same"}, 422, "addresses: there is no such member"), ({"labels": {"": "x"}}, 422, "label"),
                ({"vars": {"1": "x"}}, 422, "variable"), ({"name": f"{self.prefix}-1"}, 409, "already exists")):
            status, detail = self.refused("POST", "/v1/claim", claim | more)
            self.assertEqual((status, text in detail), (expected, True), detail)
        self.assertEqual(len(self.ready()), 2)
        self.assertEqual(self.state_files()["names"], [])
        self.claim("one")
        for more, text in (({}, "sandbox one already exists"), ({"name": "two", "netns": f"/run/netns/{self.prefix}-1"}, "already belongs to sandbox one")):
            status, detail = self.refused("POST", "/v1/claim", claim | more)
            self.assertEqual((status, text in detail), (409, True), detail)
        ready = f"/v1/sandboxes/{self.prefix}-2"
        for what, path, expected, text in (
                ("POST", f"{ready}/release", 409, "nobody has claimed it"), ("POST", f"{ready}/reload", 409, "'vethguard claim'"),
                ("POST", f"{ready}/pause", 409, "'vethguard claim'"), ("GET", f"{ready}/env", 409, "'vethguard claim'"),
                ("GET", f"{ready}/stats", 409, "'vethguard claim'"), ("POST", "/v1/sandboxes/nobody/release", 404, "there is no sandbox")):
            status, detail = self.refused(what, path)
            self.assertEqual((status, text in detail), (expected, True), detail)
        self.daemon.attach(name="attached", netns=f"/run/netns/{other}", policy=self.policy)
        status, detail = self.refused("POST", "/v1/sandboxes/attached/release")
        self.assertEqual((status, "was attached, not claimed" in detail), (409, True), detail)
        for body, text in (({"netns": f"/run/netns/{other}"}, "already belongs to sandbox attached"), ({"netns": f"/run/netns/{self.prefix}-2"}, "already"),
                           ({"netns": "/proc/self/ns/net"}, ""), ({"netns": "relative"}, "absolute"), ({}, "netns"),
                           ({"netns": "/run/netns/x", "addresses": "some"}, "addresses")):
            status, detail = self.refused("POST", "/v1/prepared", body)
            self.assertIn(status, (409, 422), detail)
            self.assertIn(text, detail)
        self.assertEqual(self.daemon.call("GET", ready)[2]["state"], "prepared")
        self.assertEqual(self.daemon.call("DELETE", ready)[0], 200)
        self.assertEqual(self.ready(), {})

    def test_many_claim_at_once(self):
        """Each namespace is given once; claims that are refused, for whatever reason, take none; a name and a namespace have one winner."""
        self.prepare(6)
        bad = support.LAB.write(f"{self.prefix}-bad.yaml", "vethguard: 1\nname: bad\nnonsense: 1\n")
        self.assertEqual(self.daemon.call("POST", "/v1/claim", {"name": "bad", "policy": bad})[0], 422)
        claims = [{"name": f"n{i}", "policy": bad if i % 3 == 0 else self.policy} for i in range(9)]
        claims += [{"name": "same", "policy": self.policy} for _ in range(8)]
        claims += [{"name": f"m{i}", "policy": self.policy, "netns": f"/run/netns/{self.prefix}-6"} for i in range(4)]
        with concurrent.futures.ThreadPoolExecutor(len(claims)) as pool:
            answers = list(pool.map(lambda c: self.daemon.call("POST", "/v1/claim", c), claims))
        won = [a["attachment"]["netns"] for status, _, a in answers if status == 201]
        self.assertEqual((len(won), len(set(won))), (6, 6), answers)
        self.assertEqual({status for status, _, _ in answers} - {201, 409, 422, 503}, set(), answers)
        self.assertEqual({status for status, _, _ in answers[:9:3]} - {422, 503}, set(), answers)  # 503: all were given out before
        for group in (answers[9:17], answers[17:]):
            self.assertLessEqual(sum(status == 201 for status, _, _ in group), 1)
        self.assertEqual(self.ready(), {})
        names = self.names()
        self.assertEqual(len(names), 6)
        self.assertEqual(len(self.state_files()["netns"]), 6)
        seeds = [self.env(n)["API_KEY"] for n in names]
        self.assertEqual(len(set(seeds)), 6, "two tenants with one placeholder")
        for name in names:
            self.assertEqual(self.daemon.call("POST", f"/v1/sandboxes/{name}/release")[0], 200)
        left = lambda: {d: f for d, f in self.state_files().items() if f}  # noqa: E731
        self.assertTrue(wait_until(lambda: not left(), 10 * SLOW), left())  # what the recorder was told goes when it confirms

    def test_a_claim_ends_by_itself(self):
        self.prepare(1)
        inode = os.stat(f"/run/netns/{self.prefix}-1").st_ino
        self.claim("short", ttl_s=1)
        self.assertTrue(wait_until(lambda: self.daemon.call("GET", "/v1/sandboxes/short")[0] == 404, 10 * SLOW))
        self.assertIn("2 ready in /run/netns, 2 of them made now", self.prepare(2))
        self.assertNotEqual(os.stat(f"/run/netns/{self.prefix}-1").st_ino, inode)
        self.assertEqual(len(self.ready()), 2)

    def test_what_happens_while_it_waits(self):
        """Its rules are mended; where its namespace ends, it is prepared no longer."""
        self.prepare(2)
        gate = os.path.join(self.daemon.state, "netns", os.listdir(os.path.join(self.daemon.state, "netns"))[0])
        support.sh("nsenter", f"--net={gate}", "nft", "flush", "ruleset")
        self.assertTrue(wait_until(lambda: "dnat" not in support.sh("nsenter", f"--net={gate}", "nft", "list", "ruleset") and
                                   "vg0" in support.sh("nsenter", f"--net={gate}", "nft", "list", "ruleset"), 10 * SLOW))
        self.assertTrue(wait_until(lambda: "which is prepared, was changed" in json.dumps(self.daemon.events(FINDING)), 10 * SLOW))
        for i in (1, 2):
            self.assertEqual(self.in_netns(f"{self.prefix}-{i}", REFUSED).stdout, "all refused\n")
        support.sh("ip", "netns", "del", f"{self.prefix}-1")
        self.assertTrue(wait_until(lambda: len(self.ready()) == 1, 20 * SLOW), self.daemon.stderr())
        self.claim("one", wait=True)
        self.env("one")
        self.assert_served(f"{self.prefix}-2")

    def test_a_gate_that_cannot_listen(self):
        """Another program has a port: the claim fails and leaves nothing, whether it waits or not. The ports of connections are taken before."""
        self.prepare(3)
        self.claim("first", netns=f"/run/netns/{self.prefix}-3", wait=True)
        known = {self.daemon.call("GET", "/v1/sandboxes/first")[2]["id"]}
        folder = os.path.join(self.daemon.state, "netns")
        code = ("import socket\ns = socket.socket()\ntry:\n    s.bind(('0.0.0.0', 3128))\n    print('too late', flush=True)\nexcept OSError: pass\n"
                "u = socket.socket(type=socket.SOCK_DGRAM)\nu.bind(('0.0.0.0', 53))\nprint('taken', flush=True)\nimport signal\nsignal.pause()")
        for gate in set(os.listdir(folder)) - known:
            other = subprocess.Popen(["nsenter", f"--net={folder}/{gate}", "python3", "-c", code], stdout=subprocess.PIPE, text=True)
            self.addCleanup(other.wait)
            self.addCleanup(other.kill)
            self.assertEqual(other.stdout.readline(), "taken\n")
        for wait in (True, False):
            status, detail = self.refused("POST", "/v1/claim", {"name": "one", "policy": self.policy, "wait": wait})
            self.assertEqual((status, detail), (500, "listening for names: Address already in use; nothing passes there"))
            self.assertTrue(wait_until(lambda: self.names() == ["first"], 10 * SLOW))
        self.assertEqual(self.ready(), {})
        self.assertTrue(wait_until(lambda: self.state_files()["sandboxes"] == ["first.json"] and len(self.state_files()["netns"]) == 1, 10 * SLOW))
        self.assertEqual(self.prepare(2), "2 ready in /run/netns, 2 of them made now\n")

    def test_datagrams_of_the_policy(self):
        """The gate was made for no policy: a port for datagrams comes with the claim, and outlives the daemon."""
        self.prepare(1)
        path = support.LAB.write(f"{self.prefix}-udp.yaml", policy(READS, f"udp://{lab.ORIGIN4}:9999", credentials=file_credential()))
        self.claim("one", policy=path, wait=True)
        for again in range(2):
            gate = os.path.join(self.daemon.state, "netns", os.listdir(os.path.join(self.daemon.state, "netns"))[0])
            self.assertIn("9999", support.sh("nsenter", f"--net={gate}", "nft", "list", "ruleset"))
            if not again:
                self.daemon.kill()
                self.daemon.start()


class Restarts(Ready):
    def test_prepared_and_claimed_outlive_the_daemon(self):
        self.prepare(3)
        self.claim("one", wait=True)
        self.env("one")
        self.assert_served(f"{self.prefix}-1")
        for how in (self.daemon.kill, self.daemon.stop):
            how()
            self.daemon.start()
            self.assertEqual(sorted(self.ready()), [f"{self.prefix}-{i}" for i in (2, 3)])
            self.assertEqual(self.in_netns(f"{self.prefix}-2", REFUSED).stdout, "all refused\n")
            self.assert_served(f"{self.prefix}-1")
        self.claim("two", netns=f"/run/netns/{self.prefix}-2", wait=True)
        self.assert_served(f"{self.prefix}-2")
        self.daemon.kill()
        self.daemon.start()
        self.assertEqual((self.names(), sorted(self.ready())), (["one", "two"], [f"{self.prefix}-3"]))
        self.assert_served(f"{self.prefix}-2")
        self.cli("release", "one", "two")
        self.assertEqual((self.names(), len(self.ready())), ([], 3))

    def test_sandboxes_come_first(self):
        """After a restart nobody waits for a sandbox because of namespaces that nobody uses."""
        self.prepare(60)
        self.claim("one", netns=f"/run/netns/{self.prefix}-60", wait=True)
        self.env("one")
        self.daemon.kill()
        self.daemon.start(ready=False)
        self.assert_served(f"{self.prefix}-60")
        self.assertTrue(wait_until(self.daemon.answers, 20 * SLOW))
        self.assertEqual(len(self.ready()), 59)

    def test_killed_between_the_two_files_of_a_claim(self):
        self.prepare(2)
        path = os.path.join(self.daemon.state, "sandboxes", f"{self.prefix}-1.json")
        with open(path) as f:
            before = f.read()
        self.claim("one", wait=True)
        self.daemon.kill()
        with open(path, "w", opener=lambda p, flags: os.open(p, flags, 0o600)) as f:
            f.write(before)
        self.daemon.start()
        self.assertEqual((self.names(), list(self.ready())), (["one"], [f"{self.prefix}-2"]))
        self.assertEqual(self.state_files()["sandboxes"], ["one.json", f"{self.prefix}-2.json"])
        self.env("one")
        self.assert_served(f"{self.prefix}-1")

    def test_killed_before_a_claim_was_written(self):
        """Its copy of another one's names is there then: the next claim has none of it."""
        self.prepare(2)
        self.claim("one", wait=True)
        left = os.path.join(self.daemon.state, "names", self.id_of(f"{self.prefix}-2"))
        self.assertEqual(len(self.state_files()["names"]), 1)
        self.daemon.kill()
        shutil.copy(os.path.join(os.path.dirname(left), self.state_files()["names"][0]), left)
        os.link(left, self.daemon.state + "/aside")  # keeps its number
        self.daemon.start()
        self.claim("two", wait=True)
        self.assertFalse(os.path.samefile(left, self.daemon.state + "/aside"))
        self.cli("release", "two")
        self.assertEqual(len(self.state_files()["names"]), 1)
        shutil.copy(self.daemon.state + "/aside", os.path.join(os.path.dirname(left), self.id_of(f"{self.prefix}-2")))
        self.claim("three", like="one", wait=True)

    def id_of(self, name):
        with open(os.path.join(self.daemon.state, "sandboxes", f"{name}.json")) as f:
            return json.load(f)["id"]

    def test_killed_at_any_moment(self):
        """The daemon or the command dies: another prepare makes what is missing, and nothing else is left."""
        for delay in range(12):
            command = subprocess.Popen([support.VETHGUARD, "prepare", "--count", "6", "--prefix", self.prefix, "--socket", self.daemon.socket],
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(0.003 * delay)
            if delay % 2:
                command.kill()
            else:
                self.daemon.kill()
            command.wait()
            if not delay % 2:
                self.daemon.start()
            self.prepare(6)
            files = sorted(os.path.basename(p) for p in glob.glob(f"/run/netns/{self.prefix}-*"))
            self.assertEqual((sorted(self.ready()), len(self.state_files()["netns"])), (files, 6))
            self.assertEqual(len(files), 6)
            self.cli("prepare", "--remove")
            self.assertEqual(glob.glob(f"/run/netns/{self.prefix}-*"), [])

    def test_claims_and_kills(self):
        """Whenever the daemon dies in a claim or release, afterwards each namespace is either prepared or one claim's."""
        self.prepare(4)
        for i in range(8):
            what = ("POST", "/v1/claim", json.dumps({"name": f"c{i}", "policy": self.policy})) if i % 2 == 0 else ("POST", f"/v1/sandboxes/c{i - 1}/release", "{}")
            call = subprocess.Popen(["curl", "-s", "--unix-socket", self.daemon.socket, "-X", what[0], "--json", what[2], "http://x" + what[1]],
                                    stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(0.004 * (i % 5))
            self.daemon.kill()
            call.wait()
            self.daemon.start()
            claimed = {self.daemon.call("GET", f"/v1/sandboxes/{n}")[2]["attachment"]["netns"] for n in self.names()}
            ready = {p["netns"] for p in self.ready().values()}
            self.assertFalse(claimed & ready)
            self.assertEqual(len(self.state_files()["netns"]), len(claimed | ready), self.daemon.stderr())
        for name in self.names():
            self.cli("release", name)
        self.prepare(4)
        self.assertEqual(len(self.ready()), 4)

    def test_killed_as_soon_as_a_claim_is_answered(self):
        """The recorder and the worker are told after the answer. What was answered is recorded once, and serves."""
        self.prepare(4)
        for i in range(4):
            if i:
                self.claim(f"c{i}")
            self.daemon.kill()
            self.daemon.start()
        started = lambda: sorted(e["device"]["name"] for e in self.daemon.events(LIFECYCLE)  # noqa: E731
                                 if e["activity_id"] == STARTED and e["device"]["name"].startswith("c"))
        claimed = lambda: sum(e["api"]["operation"] == "sandboxes.claim" for e in self.daemon.events(6003))  # noqa: E731
        self.assertTrue(wait_until(lambda: (started(), claimed()) == (["c1", "c2", "c3"], 3), 10 * SLOW), (started(), claimed()))
        self.env("c3")
        for i in (1, 2, 3):
            self.assert_served(f"{self.prefix}-{i}")

    def test_an_upgrade_that_fails(self):
        """The new daemon cannot serve one sandbox: the old one has everything as before, and looks after it again."""
        self.prepare(3)
        self.claim("one", wait=True)
        self.env("one")
        with open(self.policy) as f:
            good = f.read()
        with open(self.policy, "a") as f:
            f.write("nonsense: 1\n")
        os.kill(self.daemon.process.pid, signal.SIGUSR2)
        self.assertTrue(wait_until(lambda: "this one goes on" in self.daemon.stderr(), 60 * SLOW), self.daemon.stderr())
        self.assertTrue(wait_until(self.daemon.answers, 20 * SLOW))
        with open(self.policy, "w") as f:
            f.write(good)
        self.assertEqual(sorted(self.ready()), [f"{self.prefix}-{i}" for i in (2, 3)])
        self.assert_served(f"{self.prefix}-1")
        for i in (2, 3):
            self.assertEqual(self.in_netns(f"{self.prefix}-{i}", REFUSED).stdout, "all refused\n")
        folder = os.path.join(self.daemon.state, "netns")
        for gate in os.listdir(folder):
            support.sh("nsenter", f"--net={folder}/{gate}", "nft", "flush", "ruleset")
        told = lambda: sum("which is prepared, was changed" in json.dumps(e) for e in self.daemon.events(FINDING))  # noqa: E731
        self.assertTrue(wait_until(lambda: told() == 2, 3 * SLOW), (told(), self.daemon.stderr()))
        self.claim("two", wait=True)
        self.assert_served(f"{self.prefix}-2")

    def test_an_upgrade(self):
        self.daemon.stop()
        copy = support.LAB.path(f"bin-{time.monotonic_ns()}")
        shutil.copytree(lab.BIN, copy)
        self.daemon.program = os.path.join(copy, "vethguardd")
        self.daemon.start()
        self.prepare(3)
        self.claim("one", wait=True)
        self.env("one")
        before = self.daemon.process.pid
        os.kill(before, signal.SIGUSR2)
        pid = lambda: self.daemon.call("GET", "/v1/status")[2].get("processes", {}).get("supervisor", before)  # noqa: E731
        self.assertTrue(wait_until(lambda: pid() != before, 60 * SLOW), self.daemon.stderr())
        new = pid()
        self.addCleanup(lambda: wait_until(lambda: new not in descendants(1), 30 * SLOW))
        self.addCleanup(os.kill, new, signal.SIGTERM)
        self.assertEqual(len(self.ready()), 2)
        self.assert_served(f"{self.prefix}-1")
        self.claim("two", wait=True)
        self.assert_served(f"{self.prefix}-2")
        self.assertEqual(self.in_netns(f"{self.prefix}-3", REFUSED).stdout, "all refused\n")


# A connection as a restored snapshot has it: established for the clone, unknown to everybody else (tcp(7), TCP_REPAIR).
RESTORED = """
import socket, sys, time
s = socket.socket()
s.setsockopt(6, 19, 1)
s.bind(("198.18.0.2", 40000))
for queue, sequence in ((2, 1000), (1, 5000)):
    s.setsockopt(6, 20, queue)
    s.setsockopt(6, 21, sequence)
s.connect((sys.argv[1], 443))
s.setsockopt(6, 20, 0)
s.setsockopt(6, 19, 0)
s.settimeout(20)
begin = time.monotonic()
try:
    s.send(b"GET / HTTP/1.1")
    print("answered", s.recv(100))
except ConnectionResetError:
    print("reset", time.monotonic() - begin < 5)
except OSError as e:
    print(e)
"""


class Clones(Ready):
    def link(self, netns):
        return json.loads(support.sh("ip", "-n", netns, "-j", "addr", "show", "eth0"))[0]

    def test_all_alike(self):
        self.prepare(2, "--addresses", "same")
        self.assertEqual({p["addresses"] for p in self.ready().values()}, {"same"})
        links = [self.link(f"{self.prefix}-{i}") for i in (1, 2)]
        shape = [(l["address"], [(a["local"], a["prefixlen"]) for a in l["addr_info"]]) for l in links]
        self.assertEqual(shape[0], shape[1])
        self.assertEqual(shape[0][0], SAME["sandbox"])
        neighbours = [{n["lladdr"] for n in json.loads(support.sh("ip", "-n", f"{self.prefix}-{i}", "-j", "neigh")) if "lladdr" in n} for i in (1, 2)]
        self.assertEqual(neighbours, [{SAME["gate"]}] * 2)
        self.claim("a", wait=True)
        self.claim("b", wait=True)
        self.env("a")
        for i in (1, 2):
            self.assert_served(f"{self.prefix}-{i}")
        self.cli("release", "a")
        self.assertEqual([p["addresses"] for p in self.ready().values()], ["same"])
        self.daemon.kill()
        self.daemon.start()
        self.assertEqual([p["addresses"] for p in self.ready().values()], ["same"])
        self.assertEqual(self.daemon.call("POST", "/v1/sandboxes/b/release", {})[2]["addresses"], "same")

    def test_not_alike_unless_asked(self):
        self.prepare(2)
        self.assertEqual(len({self.link(f"{self.prefix}-{i}")["address"] for i in (1, 2)} | {SAME["sandbox"]}), 3)

    def resolve(self, netns, name):
        with open(f"/tmp/{self.prefix}-resolv", "w") as f:
            f.write("nameserver 198.18.0.1\n")
        self.addCleanup(lambda: os.path.exists(f.name) and os.unlink(f.name))
        code = (f"import ctypes, socket\nctypes.CDLL(None).unshare(0x20000)\nl = ctypes.CDLL(None)\nl.mount(None, b'/', None, 0x44000, None)\n"
                f"l.mount({f.name.encode()!r}, b'/etc/resolv.conf', None, 4096, None)\nprint(socket.gethostbyname({name!r}))")
        r = self.in_netns(netns, code)
        self.assertEqual(r.returncode, 0, r.stderr)
        return r.stdout.strip()

    def test_a_restored_clone(self):
        """The template has resolved a name and holds a connection when the snapshot is taken. In the clone the connection is reset at
        once, and the address of the name still means the name, over a restart too."""
        self.prepare(3, "--addresses", "same")
        self.claim("golden", wait=True)
        placeholder = self.env("golden")["API_KEY"]
        self.resolve(f"{self.prefix}-1", "www.lab.test")
        address = self.resolve(f"{self.prefix}-1", "api.lab.test")
        direct = ["--resolve", f"api.lab.test:443:{address}", "https://api.lab.test/whoami"]
        self.assertTrue(json.loads(self.curl(f"{self.prefix}-1", *direct).stdout)["authenticated"])
        self.assertEqual(self.daemon.call("POST", "/v1/sandboxes/golden/pause", {})[0], 200)
        self.claim("clone", like="golden", netns=f"/run/netns/{self.prefix}-2")
        self.assertEqual(self.env("clone")["API_KEY"], placeholder)
        r = self.in_netns(f"{self.prefix}-2", RESTORED, address)
        self.assertEqual(r.stdout, "reset True\n", r.stderr)
        self.assertTrue(json.loads(self.curl(f"{self.prefix}-2", *direct).stdout)["authenticated"])
        self.daemon.kill()
        self.daemon.start()
        self.assertTrue(wait_until(lambda: self.curl(f"{self.prefix}-2", *direct).returncode == 0, 5 * SLOW))
        self.assertEqual(self.resolve(f"{self.prefix}-2", "api.lab.test"), address)
        # Without --like the address means nothing, and the two sandboxes share nothing.
        self.claim("stranger", wait=True)
        self.assertNotEqual(self.env("stranger")["API_KEY"], placeholder)
        self.assertNotEqual(self.resolve(f"{self.prefix}-3", "api.lab.test"), address)

    def test_restored_before_it_is_claimed(self):
        """Until the claim only the fence answers; what the clone repeats after it is reset."""
        self.prepare(1, "--addresses", "same")
        with subprocess.Popen(["ip", "netns", "exec", f"{self.prefix}-1", "python3", "-c", RESTORED, "198.18.0.77"], stdout=subprocess.PIPE,
                              text=True) as restored:
            time.sleep(0.5)
            self.assertIsNone(restored.poll())
            self.claim("clone")
            self.assertTrue(restored.communicate()[0].startswith("reset"))


# A machine's network card: frames between the tap and an interface of the same MAC in another namespace, which stands for the machine.
MACHINE = """
import ctypes, fcntl, os, select, struct, subprocess, sys
host, machine, tap = sys.argv[1:]
def enter(path):
    with open(path) as f:
        assert ctypes.CDLL(None, use_errno=True).setns(f.fileno(), 0x40000000) == 0
def open_tap(name):
    fd = os.open("/dev/net/tun", os.O_RDWR)
    fcntl.ioctl(fd, 0x400454ca, struct.pack("16sH22x", name.encode(), 2 | 0x1000))
    return fd
enter(host)
outer = open_tap(tap)
enter(machine)
inner = open_tap("card0")
for words in ("link set card0 address 02:76:67:00:00:02", "addr add 198.18.0.2/30 dev card0", "addr add fd76:6574:6867::2/126 dev card0 nodad",
              "link set card0 up", "link set lo up", "route add default via 198.18.0.1", "-6 route add default via fd76:6574:6867::1"):
    subprocess.run(["ip", *words.split()], check=True)
print("running", flush=True)
while True:
    for fd in select.select([outer, inner], [], [])[0]:
        os.write(inner if fd == outer else outer, os.read(fd, 65536))
"""


class Taps(Ready):
    """A tap in each namespace, as Firecracker's jailer finds it: the machine behind it has the link's address and MAC."""

    def machine(self, netns):
        name = support.netns(self, netns + "m")
        process = subprocess.Popen(["python3", "-c", MACHINE, f"/run/netns/{netns}", f"/run/netns/{name}", "tap0"], stdout=subprocess.PIPE, text=True)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.assertEqual(process.stdout.readline(), "running\n")
        return name

    def test_machines_behind_taps(self):
        self.prepare(2, "--addresses", "same", "--tap", "tap0")
        machines = [self.machine(f"{self.prefix}-{i}") for i in (1, 2)]
        for machine in machines:
            self.assertEqual(self.in_netns(machine, REFUSED).stdout, "all refused\n")
        self.claim("a", wait=True)
        self.env("a")
        self.assert_served(machines[0])
        six = ["-x", "http://[fd76:6574:6867::1]:3128", "https://api.lab.test/whoami"]
        self.assertTrue(wait_until(lambda: self.curl(machines[0], *six).returncode == 0, 5 * SLOW))
        self.assertEqual(self.in_netns(machines[1], REFUSED).stdout, "all refused\n")
        # The namespace itself has nothing to speak with.
        addresses = json.loads(support.sh("ip", "-n", f"{self.prefix}-1", "-j", "addr"))
        self.assertEqual([a["local"] for link in addresses if link["ifname"] != "lo" for a in link["addr_info"]], [])
        self.claim("b", wait=True)
        self.assert_served(machines[1])
        dropped = self.daemon.call("GET", "/v1/sandboxes/a/stats")[2]["packets_dropped"]
        self.assertEqual(self.daemon.call("GET", "/v1/sandboxes/a")[2]["fence"]["mended"], 0)
        self.daemon.kill()
        self.daemon.start()
        self.assert_served(machines[0])
        self.cli("release", "a", "--tap", "tap0")
        links = {link["ifname"] for link in json.loads(support.sh("ip", "-n", f"{self.prefix}-1", "-j", "link"))}
        self.assertEqual(links, {"lo", "eth0", "tap0", "vgbr0"})
        self.assertFalse(self.asks(machines[0]), dropped)

    def test_words_that_are_refused(self):
        for argv, text in ((("--count", "2001"), "at most 2000"), (("--count", "-1"), "at most 2000"),
                           (("--count", "1", "--netns-dir", "relative"), "an absolute path is needed"),
                           (("--count", "1", "--netns-dir", "/" + "x" * 2047), "it is too long"),
                           (("--count", "1", "--netns-dir", b"/tmp/\xff"), "--netns-dir /tmp/\\xff: it is not UTF-8"),
                           (("--count", "1", "--prefix", "x" * 33), "up to 32 letters"), (("--count", "1", "--prefix", "a/b"), "up to 32 letters"),
                           (("--count", "1", "--remove"), "say --count N, or --remove"), ((), "say --count N, or --remove")):
            with self.subTest(argv=argv):
                r = self.daemon.cli("prepare", *argv)
                self.assertEqual((r.returncode, text in r.stderr, r.stdout), (2, True, ""), r)
        self.assertEqual((self.ready(), os.path.exists(b"/tmp/\xff")), ({}, False))

    def test_what_cannot_be_a_tap(self):
        for name in ("", "eth0", "lo", "vgbr0", "a/b", "x" * 16, "a b", "..", "tap%d"):
            r = self.daemon.cli("prepare", "--count", "1", "--addresses", "same", "--tap", name, "--prefix", self.prefix)
            self.assertEqual((r.returncode, "not a name that a device can have" in r.stderr), (2, True), r.stderr)
        r = self.daemon.cli("prepare", "--count", "1", "--tap", "tap0", "--prefix", self.prefix)
        self.assertEqual((r.returncode, "needs --addresses same" in r.stderr), (2, True), r.stderr)
        self.assertEqual(self.ready(), {})


if __name__ == "__main__":
    unittest.main()
