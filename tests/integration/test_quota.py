# SPDX-License-Identifier: Apache-2.0
"""Budgets that hosts share through a real Redis: two daemons, each in a network namespace of its own, spend one budget, and never more.
The server is killed, begins anew, stands still, refuses the password, and answers nonsense."""
import json
import os
import signal
import subprocess
import time
import unittest

import lab
import quota_server
import support
from daemon import Daemon
from daemon_case import PROXY
from quota_server import HOST, HOSTILE_PORT, PASSWORD, PORT, TLS_PORT
from support import HTTP, PACE, SLOW, descendants, policy, sh, wait_until

PROGRAM = "vethguard-quota"


def budget(text, hosts="closed", path="/**", name="reads"):
    return f"{{name: {name}, to: 'https://api.lab.test', methods: [GET], paths: ['{path}'], budget: {{{text}, shared: team, hosts: {hosts}}}}}"


class Elsewhere(Daemon):
    """A daemon in a network namespace of its own: it listens to nobody in another one."""
    netns = None

    def call(self, *argv, **kw):
        return support.in_namespace(self.netns, lambda: Daemon.call(self, *argv, **kw))


class Host:
    """A daemon with one sandbox. second: in a network namespace of its own, which has a link to the outside."""

    def __init__(self, case, rules, server=f"redis://{HOST}:{PORT}", password=PASSWORD, second=False, mode=0o600):
        self.name = support.netns(case, f"quota{time.monotonic_ns()}")
        secret = support.LAB.write(f"quota-{time.monotonic_ns()}.password", password + "\n", mode)
        self.policy = support.LAB.write(f"quota-{time.monotonic_ns()}.yaml", policy(*rules))
        kind = Elsewhere if second else Daemon
        self.daemon = kind(config=f"quota: {{server: '{server}', password: 'file:{secret}', hosts: 2}}\n", start=False)
        argv = self.daemon.argv()
        if second:
            self.daemon.netns = self.link(case)
            argv = ["nsenter", f"--net=/run/netns/{self.daemon.netns}", *argv]
        self.argv = argv
        self.daemon.start(argv)
        case.addCleanup(self.daemon.stop)
        self.daemon.attach(name="one", netns=f"/run/netns/{self.name}", policy=self.policy, labels={"team": "red"})
        self.ca = os.path.join(self.daemon.data, "ca", "root.pem")

    @staticmethod
    def link(case):
        other = support.netns(case, f"host{time.monotonic_ns()}")
        end = f"q{time.monotonic_ns() % 10**9}"
        sh("ip", "-n", "outside", "link", "add", end, "type", "veth", "peer", "name", "up0", "netns", other)
        for at, name, address in (("outside", end, "10.98.0.1/24"), (other, "up0", "10.98.0.2/24")):
            sh("ip", "-n", at, "addr", "add", address, "dev", name)
            sh("ip", "-n", at, "link", "set", name, "up")
        sh("ip", "-n", other, "link", "set", "lo", "up")
        sh("ip", "-n", other, "route", "add", "10.99.0.0/16", "via", "10.98.0.1")
        return other

    def curl(self, path="/bytes/1", *argv):
        return subprocess.run(["ip", "netns", "exec", self.name, "curl", "-sS", "-m", str(20 * PACE), "--cacert", self.ca, "-x", PROXY,
                               *argv, f"https://api.lab.test{path}"], capture_output=True, text=True)

    def status(self, path="/bytes/1"):
        return self.curl(path, "-o", "/dev/null", "-w", "%{http_code}").stdout

    def limit(self, name="reads"):
        limits = self.daemon.call("GET", "/v1/sandboxes/one/stats")[2]["policy_limits"]
        return next(x for x in limits if x["rule"] == name)

    def server(self):
        return self.daemon.call("GET", "/v1/status")[2]["quota"]

    def answers(self):
        return wait_until(lambda: self.server()["answers"], 10 * SLOW)

    def is_away(self):
        return wait_until(lambda: not self.server()["answers"] and self.limit()["quota"] == "away", 10 * SLOW)

    def pid(self):
        return next((p for p, row in descendants(self.daemon.process.pid).items() if row[0] == PROGRAM[:15]), None)


class Quotas(unittest.TestCase):
    def setUp(self):
        self.redis = quota_server.Server()
        self.addCleanup(self.redis.close)

    def host(self, *rules, **kw):
        h = Host(self, rules, **kw)
        self.addCleanup(self.shows_no_password, h)
        return h

    def shows_no_password(self, h):
        for text in (h.daemon.stderr(), json.dumps(h.daemon.events())):
            self.assertNotIn(PASSWORD, text)

    def spend(self, *hosts, most=100):
        """Asks in turn, until all are refused twice, one after the other, because nothing is left: the last lease may have come just after
        a refusal. Returns how many requests passed."""
        passed = refused = tries = 0
        while refused < 2 * len(hosts) and tries < most:
            for h in hosts:
                tries += 1
                got = h.status()
                self.assertIn(got, ("200", "429"), h.daemon.stderr())
                if got == "200":
                    passed, refused = passed + 1, 0
                elif h.limit()["quota"] in ("used-up", "away"):
                    refused += 1
                else:                                # the lease came too late on a slow machine
                    time.sleep(0.1)
        return passed


class Two(Quotas):
    """Both hosts at once."""

    def test_one_budget(self):
        rules = [budget("requests: 25/1h", path="/bytes/1"), budget("download: 300KB/1h", path="/bytes/200000", name="bytes")]
        one, two = self.host(*rules), self.host(*rules, server=f"rediss://{HOST}:{TLS_PORT}/3", second=True)
        self.assertTrue(one.answers() and two.answers(), one.daemon.stderr() + two.daemon.stderr())
        # Another database is another count.
        self.assertEqual(self.spend(one), 25)
        self.assertEqual(self.spend(two), 25)
        self.assertEqual((two.limit()["used"], two.limit()["used_by_hosts"], two.limit()["quota"]), (25, 25, "used-up"))

    def test_never_more(self):
        rules = [budget("requests: 25/1h", path="/bytes/1"), budget("download: 300KB/1h", path="/bytes/200000", name="bytes")]
        one = self.host(*rules, server=f"rediss://{HOST}:{TLS_PORT}")
        two = self.host(*rules, second=True)
        self.assertTrue(one.answers() and two.answers(), one.daemon.stderr() + two.daemon.stderr())
        self.assertEqual(self.spend(one, two), 25)
        self.assertEqual(one.limit()["used"] + two.limit()["used"], 25)
        self.assertEqual((two.limit()["hosts"], two.limit()["used_by_hosts"], two.limit()["quota"]), ("closed", 25, "used-up"))
        head, _, body = two.curl("/bytes/1", "-i").stdout.rpartition("\n\n")
        retry = int(next((line.split()[1] for line in head.lower().splitlines() if line.startswith("retry-after:")), head))
        self.assertTrue(3500 < retry <= 3800, retry)
        self.assertEqual(json.loads(body)["limit"]["rule"], "reads")
        self.assertIsNotNone(two.daemon.event(HTTP, status_code="policy-limit"))
        self.assertIn("all hosts 25, used-up", one.daemon.cli("stats", "one").stdout)
        # Bytes: a response is cut where the budget ends, whoever has taken the rest.
        sizes = []
        while two.limit("bytes")["quota"] != "used-up" and len(sizes) < 40:
            for h in (one, two):
                status, size = h.curl("/bytes/200000", "-o", "/dev/null", "-w", "%{http_code} %{size_download}").stdout.split()
                sizes.append(int(size) if status == "200" else 0)
        self.assertTrue(200000 < sum(sizes) <= 300000, sizes)

    def test_a_killed_process_and_a_restarted_daemon(self):
        one = self.host(budget("requests: 12/1h"))
        two = self.host(budget("requests: 12/1h"), second=True)
        self.assertTrue(one.answers() and two.answers())
        for h in (one, two, one):
            self.assertEqual(h.status(), "200")
        pid = one.pid()
        os.kill(pid, signal.SIGKILL)
        self.assertTrue(wait_until(lambda: one.server()["answers"] and one.pid() not in (None, pid), 10 * SLOW), one.daemon.stderr())
        self.assertIn(f"{PROGRAM} died", one.daemon.stderr())
        self.assertTrue(wait_until(lambda: one.status() == "200", 10 * SLOW))
        one.daemon.kill()
        one.daemon.start(one.argv)
        self.assertTrue(one.answers(), one.daemon.stderr())
        self.assertTrue(wait_until(lambda: one.status() == "200", 10 * SLOW), one.daemon.stderr())
        passed = self.spend(one, two) + 5
        self.assertEqual(two.limit()["used_by_hosts"], 12)
        self.assertIn(passed, (11, 12))  # a request that the kill has met has taken its place


class Away(Quotas):
    def test_closed_and_back(self):
        """The server dies and begins anew without its data: closed meanwhile, and what was taken still counts."""
        one = self.host(budget("requests: 12/1h"))
        two = self.host(budget("requests: 12/1h"), second=True)
        self.assertTrue(one.answers() and two.answers())
        self.assertEqual([h.status() for h in (one, two, two)], ["200"] * 3)
        self.redis.kill()
        self.assertTrue(one.is_away() and two.is_away())
        leased = self.spend(one, two)                # what their leases still had
        self.assertLessEqual(leased, 9)
        answer = one.curl().stdout
        self.assertIn("is closed while its quota server cannot be asked", answer)
        self.assertIn("cannot be asked", one.daemon.stderr())
        self.redis.start(settled=False)
        self.assertTrue(one.answers() and two.answers(), one.daemon.stderr())
        self.assertTrue(wait_until(lambda: max(h.limit()["used_by_hosts"] for h in (one, two)) >= 3 + leased, 10 * SLOW), one.limit())
        self.assertTrue(wait_until(lambda: one.status() == "200", 10 * SLOW), one.daemon.stderr())
        self.assertEqual(self.spend(one, two) + 4 + leased, 12)

    def test_local_shares(self):
        one = self.host(budget("requests: 12/1h", hosts="local"))
        two = self.host(budget("requests: 12/1h", hosts="local"), second=True)
        self.assertTrue(one.answers() and two.answers())
        self.assertEqual([h.status() for h in (one, two, two)], ["200"] * 3)
        self.redis.kill()
        self.assertTrue(one.is_away() and two.is_away())
        passed = [self.spend(one) + 1, self.spend(two) + 2]
        self.assertEqual([h.limit()["used"] for h in (one, two)], passed)
        self.assertTrue(all(n in (6, 7, 8) for n in passed), passed)  # a half, and what a lease had beyond it
        self.redis.start(settled=False)
        self.assertTrue(one.answers() and two.answers(), one.daemon.stderr())
        self.assertTrue(wait_until(lambda: max(h.limit()["used_by_hosts"] for h in (one, two)) >= 12, 10 * SLOW), (one.limit(), two.limit()))
        self.assertEqual(self.spend(one, two), 0)

    def test_a_server_that_stands_still(self):
        one = self.host(budget("requests: 12/1h"))
        self.assertTrue(one.answers())
        self.assertEqual(one.status(), "200")
        self.redis.process.send_signal(signal.SIGSTOP)
        self.assertTrue(one.is_away(), one.daemon.stderr())
        self.assertIn("has not answered", one.server()["problem"])
        self.redis.process.send_signal(signal.SIGCONT)
        self.assertTrue(one.answers(), one.daemon.stderr())
        self.assertEqual(self.spend(one) + 1, 12)

    def test_data_that_is_lost_while_connected(self):
        one = self.host(budget("requests: 12/1h"))
        self.assertTrue(one.answers())
        self.assertEqual([one.status() for _ in range(5)], ["200"] * 5)
        self.redis.ask("FLUSHALL")
        self.redis.ask("SET", quota_server.SINCE, "2")
        self.assertTrue(wait_until(lambda: "begun anew" in one.daemon.stderr(), 10 * SLOW))
        self.assertEqual(self.spend(one) + 5, 12)


class Wrong(Quotas):
    def refused(self, h, problem):
        self.assertTrue(wait_until(lambda: problem in (h.server()["problem"] or ""), 10 * SLOW), (problem, h.server(), h.daemon.stderr()))
        self.assertEqual(h.status(), "429")

    def test_password(self):
        self.refused(self.host(budget("requests: 12/1h"), password="wrong"), "WRONGPASS")
        self.refused(self.host(budget("requests: 12/1h"), mode=0o644), "quota.password")

    def test_certificate(self):
        self.refused(self.host(budget("requests: 12/1h"), server=f"rediss://{lab.PLAIN4}:{TLS_PORT}"), "no connection")
        self.refused(self.host(budget("requests: 12/1h"), server=f"rediss://{lab.REAL4}:{TLS_PORT}"), "TLS: ")

    def test_answers(self):
        server = quota_server.Hostile()
        self.addCleanup(server.close)
        h = self.host(budget("requests: 12/1h"), server=f"redis://{HOST}:{HOSTILE_PORT}")
        self.refused(h, "makes no sense")
        for answer, problem in ((b"-LOADING Redis is loading the dataset in memory\r\n", "LOADING"), (b"-MOVED 3999 127.0.0.1:6381\r\n", "MOVED"),
                                (b"-" + PASSWORD.encode() + b"\r\n", "not known here"), (b"HTTP/1.1 400 Bad Request\r\n\r\n", "none of a Valkey"),
                                (b"*1000000000\r\n", "none of a Valkey"), (b"$400000000\r\n" + b"x" * 100000, "none of a Valkey"),
                                (b"*6\r\n:1\r\n:1\r\n:9999999999\r\n:5\r\n:0\r\n:1\r\n", "login"), (b"+OK\r\n+OK\r\n", "none of a Valkey"),
                                (b"*1\r\n*1\r\n*1\r\n:1\r\n", "none of a Valkey"), (None, "has not answered")):
            with self.subTest(problem):
                server.answer = answer
                self.refused(h, problem)
        os.kill(h.pid(), 0)

    def test_a_key_of_another_type(self):
        h = self.host(budget("requests: 12/1h"))
        self.assertTrue(h.answers())
        self.assertEqual(h.status(), "200")
        for key in self.redis.ask("KEYS", "vethguard:quota:{*").split():
            self.redis.ask("SET", key, "x")
        self.assertTrue(wait_until(lambda: self.spend(h) == 0 and "WRONGTYPE" in (h.server()["problem"] or ""), 10 * SLOW), h.server())

    def test_configuration(self):
        """A policy that needs what the configuration does not have is refused, with the key that is missing."""
        daemon = Daemon(config="quota: {server: 'redis://quota.real.lab.test'}\n")
        self.addCleanup(daemon.stop)
        without = Daemon()
        self.addCleanup(without.stop)
        netns = support.netns(self, f"quota{time.monotonic_ns()}")
        for d, hosts, why in ((daemon, "local", "add hosts: to quota"), (without, "closed", "add quota: {server: redis://HOST}")):
            file = support.LAB.write(f"quota-{time.monotonic_ns()}.yaml", policy(budget("requests: 5/1h", hosts=hosts)))
            status, _, answer = d.call("POST", "/v1/sandboxes", {"name": "one", "netns": f"/run/netns/{netns}", "policy": file, "labels": {"team": "red"}})
            self.assertGreaterEqual(status, 400)
            self.assertIn(why, json.dumps(answer))

    def test_confined(self):
        h = self.host(budget("requests: 12/1h"), server=f"rediss://{HOST}:{TLS_PORT}")
        self.assertTrue(h.answers())
        shown = h.daemon.cli("doctor", "--roles")
        self.assertEqual(shown.returncode, 0, shown.stdout + shown.stderr)
        self.assertIn(PROGRAM, shown.stdout)
