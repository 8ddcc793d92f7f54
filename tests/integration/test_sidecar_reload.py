# SPDX-License-Identifier: Apache-2.0
"""`vethguard sidecar`: another policy while it serves, and datagrams to what udp:// rules name."""
import os
import signal

import lab
import support
from sidecar import POD4
from support import NETWORK, SLOW, policy, wait_until
from test_sidecar import LEAKS, RULES, Sidecar, credential

UDP, TCP = "udp://udp.lab.test:1234", "tcp://tcp.lab.test:2222"

# Sends a datagram to each (name or address, port) and prints what comes back; or the error's name.
ASK = """
import errno, socket, sys
for to, port in TO:
    try:
        family, _, _, _, address = socket.getaddrinfo(to, port, FAMILY, socket.SOCK_DGRAM)[0]
        s = socket.socket(family, socket.SOCK_DGRAM); s.settimeout(WAIT)
        s.connect(address)
        s.send(b'LEAKLESS' * 3)
        print(s.recv(100).decode()[5:13])  # behind 'echo:'
    except OSError as e:
        print(errno.errorcode.get(e.errno, type(e).__name__))
"""
STATUS = "curl -sS -m 20 -o /dev/null -w '%{http_code}' "


class Datagrams(Sidecar):
    def start(self, *rules, options=(), **kw):
        self.fence("--udp", "1234", *options)
        return self.pod.start(policy(*(rules or (*RULES, UDP)), credentials=credential()), "--udp", "1234", *options, **kw)

    def ask(self, *to, family="0", wait=5, **kw):
        done = self.pod.py(ASK.replace("TO", repr(to)).replace("FAMILY", family).replace("WAIT", str(wait)), **kw)
        self.assertEqual(done.returncode, 0, done)
        return done.stdout.split()

    def test_both_families(self):
        guard = self.start()
        for family in ("socket.AF_INET", "socket.AF_INET6"):
            with self.subTest(family):
                self.assertEqual(self.ask(("udp.lab.test", 1234), family=family), ["LEAKLESS"])
        self.assertEqual(len(self.seen("udp")), 2)
        self.pod.kill(guard, signal.SIGTERM)
        flows = [r for r in self.pod.events(guard, NETWORK) if r["dst_endpoint"].get("hostname") == "udp.lab.test"]
        self.assertEqual({(r["action_id"], r["src_endpoint"]["ip"]) for r in flows if r["connection_info"]["protocol_num"] == 17} >=
                         {(1, "127.0.0.1")}, True, flows)

    def test_a_socket_that_is_not_connected_gets_the_answer_from_where_it_asked(self):
        self.start()
        done = self.pod.py("import socket\nto = socket.getaddrinfo('udp.lab.test', 1234, socket.AF_INET)[0][4]\n"
                           "s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(5); s.bind(('', 40000))\n"
                           "for _ in range(3): s.sendto(b'again', to); print(s.recvfrom(9)[1] == to)")
        self.assertEqual(done.stdout.split(), ["True"] * 3, done)

    def test_what_no_rule_names(self):
        """Another name, another port, an address; and nothing of the agent's leaves."""
        self.start()
        with self.pod.capture() as capture:
            answers = self.ask(("www.lab.test", 1234), ("udp.lab.test", 1235), (lab.ORIGIN4, 1234), (lab.ORIGIN6, 1234), (lab.EVIL4, 1234),
                               (POD4, 1235), ("198.18.77.77", 1234), ("198.18.77.77", 9), wait=1)
        self.assertNotIn("LEAKLESS", answers)
        self.assertEqual([answers[i] for i in (1, 2, 3, 4, 7)], ["EPERM"] * 5, answers)
        self.assertEqual([f for f in capture.sent() if b"LEAK" in f], [])
        self.assertEqual(self.seen("udp"), [])

    def test_the_battery_of_leaks(self):
        self.start()
        with self.pod.capture() as capture:
            done = self.pod.py(LEAKS, timeout=120)
        self.assertEqual(done.returncode, 0, done)
        self.assertEqual(capture.sent(), [])

    def test_without_the_guard(self):
        guard = self.start()
        self.pod.kill(guard)
        with self.pod.capture() as capture:
            self.ask(("198.18.0.9", 1234), ("fd76:6574:6867::9", 1234), wait=1)
        self.assertEqual(capture.sent(), [])

    def test_members_reach_no_other_member_by_it(self):
        """Whoever binds the port first is not the guard, which then does not start; other ports are refused."""
        self.fence("--udp", "1234", "--loopback", "none")
        code = ("import socket, threading\nl = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); l.bind(('', {port})); l.settimeout(1)\n"
                "s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
                "try: s.sendto(b'x', ('198.18.3.3', {port})); print(l.recv(1))\nexcept OSError as e: print(type(e).__name__)")
        self.assertEqual(self.pod.py(code.replace("{port}", "1235")).stdout, "PermissionError\n")

    def refused(self, text, *rules, options=()):
        guard = self.pod.start(policy(*rules), *options, wait=False)
        self.assertEqual(guard.wait(6 * SLOW), 125)
        self.assertIn(text, self.pod.said(guard))

    def test_refused_at_the_start(self):
        self.fence()
        self.refused("give --udp 1234 to 'sidecar init'", UDP)
        self.refused("give --udp 1235 to 'sidecar init'", UDP, "udp://udp.lab.test:1235", options=("--udp", "1234"))
        self.refused("UDP port 123 may not be bound by this user", "udp://udp.lab.test:123", options=("--udp", "123"))
        self.pod.inside("sysctl", "-w", "net.ipv4.ip_unprivileged_port_start=100")
        self.fence("--udp", "123")
        guard = self.pod.start(policy("udp://udp.lab.test:123"), "--udp", "123")
        self.assertEqual(self.pod.kill(guard, signal.SIGTERM), 0)


class Reload(Sidecar):
    def setUp(self):
        super().setUp()
        self.number = 0

    def status(self, url):
        return self.pod.sh(STATUS + url).stdout

    def begin(self, *options, udp=(), text=None):
        self.fence(*udp)
        guard = self.pod.start(text or policy(*RULES, credentials=credential()), *udp, *options)
        self.path = support.LAB.path(f"sidecar-{len(self.pod.guards) - 1}.yaml")
        return guard

    def change(self, text, guard=None):
        """As an editor does it: another file takes the name."""
        self.number += 1
        os.rename(support.LAB.write(f"sidecar-next-{self.number}.yaml", text), self.path)
        if guard:
            self.hup(guard)

    def hup(self, guard):
        for pid in self.pod.main(guard):
            os.kill(pid, signal.SIGHUP)

    def assert_kept(self, guard, text):
        self.assertTrue(wait_until(lambda: "the one before stays in force" in self.pod.said(guard), 6 * SLOW), self.pod.said(guard))
        self.assertTrue(wait_until(lambda: text in self.pod.said(guard), SLOW), self.pod.said(guard))
        self.assertIsNone(guard.poll())
        self.assertEqual(self.status("https://api.lab.test/"), "200")
        self.assertEqual(self.status("https://www.lab.test/"), "403")

    def test_another_policy(self):
        guard = self.begin()
        self.assertEqual((self.status("https://api.lab.test/"), self.status("https://www.lab.test/")), ("200", "403"))
        self.change(policy("https://www.lab.test"), guard)
        self.assertTrue(wait_until(lambda: self.status("https://www.lab.test/") == "200", 6 * SLOW), self.pod.said(guard))
        self.assertEqual(self.status("https://api.lab.test/"), "403")
        with open(os.path.join(self.pod.share, "env"), encoding="utf-8") as f:
            self.assertNotIn("API_KEY", f.read())
        self.change(policy(*RULES, credentials=credential()), guard)
        self.assertTrue(wait_until(lambda: self.status("https://api.lab.test/") == "200", 6 * SLOW), self.pod.said(guard))
        done = self.pod.sh("curl -sS https://api.lab.test/whoami -H \"Authorization: Bearer $API_KEY\"")
        self.assertIn('"authenticated": true', done.stdout, done)
        self.assertEqual(self.pod.kill(guard, signal.SIGTERM), 0, self.pod.said(guard))
        with open(guard.audit, encoding="utf-8") as f:
            log = f.read()
        self.assertIn("https://www.lab.test", log)

    def test_connections_that_are_open(self):
        """One that the new policy refuses ends, one that it allows goes on."""
        guard = self.begin()
        code = ("import os, socket, sys, time\ns = socket.create_connection(('tcp.lab.test', 2222), 20)\n"
                "print(s.recv(99).decode().strip(), flush=True)\nwhile not os.path.exists(sys.argv[1]): time.sleep(0.1)\n"
                "try: s.sendall(b'more'); print(s.recv(99).decode() or 'end')\nexcept OSError as e: print(type(e).__name__)\n")
        for rules, said in (((TCP,), ("more",)), ((), ("end", "ConnectionResetError", "BrokenPipeError"))):
            with self.subTest(rules):
                flag = os.path.join(self.pod.share, f"go-{len(rules)}")
                self.change(policy(TCP, "http://plain.lab.test"), guard)
                self.assertTrue(wait_until(lambda: self.status("https://www.lab.test/") == "403", 6 * SLOW), self.pod.said(guard))
                self.assertTrue(wait_until(lambda: self.status("https://api.lab.test/") == "403", 6 * SLOW), self.pod.said(guard))
                with self.pod.background(code, flag) as out:
                    self.assertEqual(out.readline(), "banner 1.0\n")
                    self.change(policy("https://www.lab.test", *rules), guard)
                    self.assertTrue(wait_until(lambda: self.status("https://www.lab.test/") == "200", 6 * SLOW), self.pod.said(guard))
                    with open(flag, "w"):
                        pass
                    self.assertIn(out.readline().strip(), said)

    def test_faults_keep_the_policy(self):
        for name, text, said in (("wrong", "vethguard: 1\nname: x\nalow: []\n", "alow"),
                                 ("port", policy("https://www.lab.test", UDP), "give --udp 1234"),
                                 ("variable", policy("{to: 'https://www.lab.test', credential: e}",
                                                     credentials="  e: {source: 'env:SOME', inject: bearer}\n"), "reads variables")):
            with self.subTest(name):
                guard = self.begin()
                self.change(text, guard)
                self.assert_kept(guard, said)
                self.pod.kill(guard, signal.SIGTERM)

    def test_a_file_that_is_gone(self):
        guard = self.begin()
        os.unlink(self.path)
        self.hup(guard)
        self.assert_kept(guard, "No such file")
        self.change(policy("https://www.lab.test"), guard)
        self.assertTrue(wait_until(lambda: self.status("https://www.lab.test/") == "200", 6 * SLOW), self.pod.said(guard))

    def test_watch(self):
        guard = self.begin("--watch")
        self.change(policy("https://www.lab.test"))
        self.assertTrue(wait_until(lambda: self.status("https://www.lab.test/") == "200", 10 * SLOW, 0.5), self.pod.said(guard))

    def test_watch_what_is_included(self):
        """A change of an included file alone; one that is wrong keeps the policy."""
        def include(*rules):
            fresh = support.LAB.write("sidecar-team-fresh.yaml", "vethguard: 1\nallow:\n" + "".join(f"  - {r}\n" for r in rules))
            os.rename(fresh, team)
        team = support.LAB.path("sidecar-team.yaml")
        include("{to: 'https://www.lab.test'}")
        guard = self.begin("--watch", text=policy("https://api.lab.test").replace("vethguard: 1\n", f"vethguard: 1\ninclude: [{team}]\n"))
        self.assertEqual(self.status("https://www.lab.test/"), "200", self.pod.said(guard))
        include("{to: 'http://plain.lab.test'}")
        self.assertTrue(wait_until(lambda: self.status("https://www.lab.test/") == "403", 12 * SLOW, 0.5), self.pod.said(guard))
        self.assertEqual((self.status("http://plain.lab.test/"), self.status("https://api.lab.test/")), ("200", "200"))
        include("{to: 'nonsense://www.lab.test'}")
        self.assertTrue(wait_until(lambda: "the one before stays in force" in self.pod.said(guard), 12 * SLOW, 0.5), self.pod.said(guard))
        self.assertEqual((self.status("http://plain.lab.test/"), self.status("https://www.lab.test/")), ("200", "403"))

    def test_datagrams_come_and_go(self):
        guard = self.begin(udp=("--udp", "1234"))
        ask = ASK.replace("TO", "[('udp.lab.test', 1234)]").replace("FAMILY", "socket.AF_INET").replace("WAIT", "2")
        self.assertNotIn("LEAKLESS", self.pod.py(ask).stdout)
        self.change(policy(UDP), guard)
        self.assertTrue(wait_until(lambda: self.pod.py(ask).stdout == "LEAKLESS\n", 6 * SLOW), self.pod.said(guard))
        self.change(policy("https://www.lab.test"), guard)
        self.assertTrue(wait_until(lambda: self.status("https://www.lab.test/") == "200", 6 * SLOW), self.pod.said(guard))
        self.assertNotIn("LEAKLESS", self.pod.py(ask).stdout)

    def test_many_signals(self):
        guard = self.begin()
        for i in range(20):
            self.change(policy("https://www.lab.test" if i % 2 else "https://api.lab.test"), guard)
        self.assertTrue(wait_until(lambda: self.status("https://www.lab.test/") == "200", 6 * SLOW), self.pod.said(guard))
        self.assertIsNone(guard.poll())
