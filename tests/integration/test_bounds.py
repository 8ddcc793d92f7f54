# SPDX-License-Identifier: Apache-2.0
"""A sandbox that does more in a second than its limits allow: what it sees, what is told of it, that nothing opens, and
that every packet is counted."""
import subprocess
import sys
import time

import daemon_case
import support
from daemon import Daemon
from support import DNS, HTTP, NETWORK, PACE, SLOW, policy, wait_until

BOUNDS = {"connections_per_s": 5, "dns_queries_per_s": 5, "packet_copies_per_s": 5, "udp_datagrams_per_s": 5, "refusals_per_s": 5}
LIMITS = f"limits: {{{', '.join(f'{k}: {v}' for k, v in BOUNDS.items())}}}\n"
BURST = 10  # of each
RELAYED = "udp://10.99.0.80:1234"
GATE = "198.18.0.1"

# Runs in the sandbox.
FLOODS = """
import os, socket, struct, sys, time
what, count = sys.argv[1], int(sys.argv[2])

def udp(port):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.connect((%r, port))
    return s

def send(s, data):
    try:
        s.send(data)
    except OSError:
        pass  # the refusal of an earlier one

if what == "connections":
    for _ in range(count):
        with socket.socket() as s:
            s.setblocking(False)
            s.connect_ex(("93.184.216.34", 443))
elif what == "queries":
    s = udp(53)
    for n in range(count):
        send(s, struct.pack(">HHHHHH", n, 0x100, 1, 0, 0, 0) + b"\\3api\\3lab\\4test\\0\\0\\1\\0\\1")
    s.settimeout(2)
    codes = []
    try:
        while len(codes) < count:
            codes.append(s.recv(512)[3] & 15)
    except OSError:
        pass
    print(codes.count(0), codes.count(5), len(codes))
elif what == "relayed":  # all at once, then the answers
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.connect(("10.99.0.80", 1234))
    for n in range(count):
        send(s, b"%%d" %% n)
    s.settimeout(2)
    heard = set()
    try:
        while True:
            heard.add(s.recv(512))
    except OSError:
        pass
    print(len(heard))
elif what == "packed":  # packets of which the kernel makes 64 datagrams each
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.setsockopt(socket.IPPROTO_UDP, 103, 16)  # UDP_SEGMENT
    s.connect(("10.99.0.80", 1234))
    for n in range(count):
        send(s, bytes(64 * 16))
    s.settimeout(1)
    heard, end = 0, time.monotonic() + 1
    try:
        while time.monotonic() < end:  # what waits in the relay's queue comes for a minute
            heard += len(s.recv(512)) == len(b"echo:") + 16
    except OSError:
        pass
    print(heard)
elif what == "turns":  # a question and its answer, eight at a time
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.connect(("10.99.0.80", 1234))
    s.settimeout(30)
    asked = heard = 0
    while heard < count:
        while asked < count and asked < heard + 8:
            s.send(b"?")
            asked += 1
        heard += s.recv(512) == b"echo:?"
    print(heard)
elif what == "requests":  # all at once over one connection
    with socket.create_connection((%r, 3128)) as s:
        s.sendall(b"".join(b"GET http://refused.lab.test/%%d HTTP/1.1\\r\\nHost: refused.lab.test\\r\\n\\r\\n" %% n for n in range(count)))
        s.settimeout(60)
        text = b""
        while text.count(b"HTTP/1.1 403") < count:
            part = s.recv(65536)
            if not part:
                break
            text += part
        print(text.count(b"HTTP/1.1 403"))
elif what == "datagrams":
    for n in range(count):
        send(udp(4000 + n %% 3), b"x" * 100)
""" % (GATE, GATE)


class Limited(daemon_case.Attached):
    def make_daemon(self):
        return Daemon(LIMITS)

    def write(self, *rules):
        return super().write(*rules, RELAYED)

    def flood(self, what, count, netns=None):
        done = subprocess.run(["ip", "netns", "exec", netns or self.name, sys.executable, "-c", FLOODS, what, str(count)],
                              capture_output=True, text=True, timeout=60 * SLOW, check=True)
        return [int(n) for n in done.stdout.split()]

    def stats(self):
        return self.daemon.call("GET", "/v1/sandboxes/one/stats")[2]

    def dropped(self):
        """Packets in all lines about dropped ones, by the fence's rule."""
        sums = {}
        for e in self.daemon.events(NETWORK):
            rule = e.get("firewall_rule", {})
            if rule.get("type") == "fence":
                sums[rule["name"]] = sums.get(rule["name"], 0) + e.get("count", 1)
        return sums

    def test_connections(self):
        self.assert_served()
        self.flood("connections", 200)
        stats = self.stats()
        self.assertGreater(stats["beyond_limits"]["connections"], 0, stats)
        self.assertEqual(stats["limits"], BOUNDS)
        self.assertLessEqual(stats["worker"]["connections"], 200 - stats["beyond_limits"]["connections"] + 10)
        told = self.daemon.event(NETWORK, **{"firewall_rule.name": "rate", "dst_endpoint.port": 443})
        self.assertTrue(told, self.daemon.events(NETWORK)[-3:])
        self.assertEqual(told["status_code"], "limit")
        self.assertRegex(self.daemon.cli("stats", "one").stdout, r"(?m)^  connections +[1-9]\d* beyond 5 a second$")
        self.assert_served("afterwards", 20 * SLOW)

    def test_queries(self):
        answered, refused, all_answers = self.flood("queries", 500)
        self.assertGreater(answered, 0)
        self.assertGreater(refused, 0)
        self.assertLess(all_answers, 500)
        stats = self.stats()
        seen = answered + stats["worker"]["queries_refused"]
        self.assertLessEqual(refused, stats["worker"]["queries_refused"], stats)
        self.assertEqual(stats["beyond_limits"]["queries"], 500 - seen, stats)
        self.assertRegex(self.daemon.cli("stats", "one").stdout, r"(?m)^  queries +[1-9]\d* beyond 5 a second$")

        def told():
            lines = [e.get("status_detail", "") + e.get("message", "") for e in self.daemon.events(DNS) if e.get("rcode_id") == 5]
            return lines
        self.assertTrue(wait_until(told, 10 * SLOW), self.daemon.events(DNS)[-3:])
        self.assertLess(len(told()), refused)

    def test_datagrams(self):
        sent = 200
        heard, = self.flood("relayed", sent)
        stats = self.stats()
        beyond = stats["beyond_limits"]["datagrams"]
        self.assertGreater(heard, 0, stats)
        self.assertGreater(beyond, 0, stats)
        self.assertLessEqual(heard, sent - beyond, stats)
        self.assertGreaterEqual(stats["packets_dropped"], beyond, stats)
        told = self.daemon.event(NETWORK, **{"firewall_rule.name": "rate", "dst_endpoint.port": 1234})
        self.assertTrue(told, self.daemon.events(NETWORK)[-3:])
        self.assertEqual(told["status_code"], "limit")
        self.assertRegex(self.daemon.cli("stats", "one").stdout, rf"(?m)^  datagrams +{beyond} beyond 5 a second$")
        self.assert_served("afterwards", 20 * SLOW)
        counted = self.stats()["packets_dropped"]
        self.assertEqual(self.daemon.call("DELETE", "/v1/sandboxes/one")[0], 200)
        self.assertEqual(sum(self.dropped().values()), counted, self.dropped())

    def test_many_datagrams_in_a_packet(self):
        count = 20
        heard, = self.flood("packed", count)
        passed = count - self.stats()["beyond_limits"]["datagrams"]
        self.assertGreater(heard, 0)
        self.assertGreater(passed, 0)
        self.assertLess(heard, passed * 64 / 8)

    def test_refused_requests(self):
        """All of them are answered and told one by one, however many; only the answers take their time."""
        count = BURST + 8
        began = time.monotonic()
        answered, = self.flood("requests", count)
        self.assertEqual(answered, count)
        delayed = self.stats()["worker"]["refusals_delayed"]
        self.assertGreater(delayed, 0)
        self.assertLessEqual(delayed, count)
        if time.monotonic() - began < 2 * PACE:
            self.assertGreaterEqual(delayed, 4)
        paths = [e["http_request"]["url"]["path"] for e in self.daemon.events(HTTP)]
        self.assertEqual(paths, [f"/{n}" for n in range(count)])
        self.assertRegex(self.daemon.cli("stats", "one").stdout, rf"(?m)^delayed +{delayed}$")
        many = self.curl("-o", "/dev/null", "-w", "%{http_code}\n", "https://api.lab.test/whoami?[1-100]")
        self.assertEqual(many.stdout.split(), ["200"] * 100, many)
        self.assertEqual(self.stats()["worker"]["refusals_delayed"], delayed)

    def test_every_packet_is_counted(self):
        """Few of them are copied, all of them are in the log, over a restart of the daemon as well."""
        self.flood("datagrams", 700)
        self.daemon.kill()
        self.flood("datagrams", 300)
        self.daemon.start()
        self.assert_served("restarted", 20 * SLOW)
        self.assertEqual(self.show()["fence"]["mended"], 0)
        self.flood("datagrams", 1000)
        counted = self.stats()["packets_dropped"]
        self.assertGreaterEqual(counted, 2000)
        status, _, answer = self.daemon.call("DELETE", "/v1/sandboxes/one")
        self.assertEqual(status, 200, answer)
        sums = self.dropped()
        self.assertEqual(sum(sums.values()), counted, sums)
        self.assertGreater(sums["various"], sums["other"], sums)

    def test_the_count_is_told_while_it_goes_on(self):
        self.flood("datagrams", 400)
        self.assertTrue(wait_until(lambda: sum(self.dropped().values()) == self.stats()["packets_dropped"], 30 * SLOW, 0.5),
                        f"{self.dropped()} {self.stats()}")

    def test_other_limits_come_into_force(self):
        with open(self.daemon.config, "w") as f:
            f.write(support.LAB.config(LIMITS.replace("connections_per_s: 5", "connections_per_s: 100000")))
        self.assertEqual(self.daemon.call("POST", "/v1/reload")[0], 200)
        self.assertEqual(self.stats()["limits"]["connections_per_s"], 100000)
        before = self.stats()["beyond_limits"]["connections"]
        self.flood("connections", 200)
        self.assertEqual(self.stats()["beyond_limits"]["connections"], before)
        self.assert_served()
        self.assertEqual(self.show()["fence"]["mended"], 0)


class AsItComes(daemon_case.Attached):
    """The limits of a configuration that names none are in nobody's way."""

    def write(self, *rules):
        return super().write(*rules, RELAYED)

    def test_busy_programs(self):
        flood = Limited.flood
        self.assertEqual(flood(self, "turns", 5000), [5000])
        self.assertEqual(flood(self, "requests", 500), [500])
        stats = self.daemon.call("GET", "/v1/sandboxes/one/stats")[2]
        self.assertEqual(stats["beyond_limits"], {"connections": 0, "queries": 0, "datagrams": 0})
        self.assertEqual(stats["worker"]["refusals_delayed"], 0)


class InARun(support.Case):
    def test_connections_wait_and_are_served(self):
        """The kernel of the sandbox asks again after a second: slower, and nothing fails."""
        config = support.LAB.write("rate.yaml", support.LAB.config("limits: {connections_per_s: 1}\n"))
        box = self.sandbox(policy("https://api.lab.test"), config=config)
        done = box.sh("for i in 1 2 3 4; do curl -sS -m 60 https://api.lab.test/turn$i >/dev/null || exit 1; done; echo all",
                      timeout=100)
        self.assertIn("all", done.out, done)
        self.assertEqual(box.close(), 0, box.stderr())
