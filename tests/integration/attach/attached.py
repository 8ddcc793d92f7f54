# SPDX-License-Identifier: Apache-2.0
"""The battery that every kind of attached sandbox goes through: an allowed call with a credential that is not inside,
every way out tried by root in there and seen by nobody outside, an audit log that has it all, the kill switch, another
policy, a daemon that is killed, and the end. A kind says how it is made, attached, and how commands run inside."""
import collections
import json
import os
import socket
import subprocess
import threading
import time

import guests
import support
import test_exfiltration
from daemon import Daemon
from lab import DNS4, EVIL4, HOST4, HOST6, ORIGIN4, ORIGIN6
from support import DNS, HTTP, NETWORK, PYTHON, SECRET, SLOW, Case, wait_until

POLICY = """vethguard: 1
name: attached
credentials:
  key: {source: 'file:%s', inject: bearer, env: LAB_KEY}
allow:
  - {name: api, to: https://api.lab.test, methods: [GET], credential: key}
"""
NARROW = "vethguard: 1\nname: narrow\nallow:\n  - {to: https://www.lab.test, methods: [GET]}\n"
WHOAMI = "https://api.lab.test/whoami"
SERVICE_TCP, SERVICE_UDP = 8099, 8098
# The kernel's errors for a packet without a route, or without the right to send it.
UNSENT = ("ENETUNREACH", "EADDRNOTAVAIL", "EPERM", "EACCES", "EAFNOSUPPORT", "EPROTONOSUPPORT", "ESOCKTNOSUPPORT", "EINVAL")
PACKETS = {"udp": {"connection_info.protocol_num": 17, "dst_endpoint.ip": ORIGIN4, "dst_endpoint.port": 1234},
           "quic": {"connection_info.protocol_num": 17, "dst_endpoint.ip": ORIGIN4, "dst_endpoint.port": 443},
           "udp6": {"connection_info.protocol_num": 17, "dst_endpoint.ip": ORIGIN6, "dst_endpoint.port": 1234},
           "echo": {"connection_info.protocol_num": 1}, "echo6": {"connection_info.protocol_num": 58},
           "sctp": {"connection_info.protocol_num": 132}, "gre": {"connection_info.protocol_num": 47}}


def says_something(frame):
    """Not the end of a TCP connection from before: a segment without data that opens nothing."""
    v6 = frame[12:14] == b"\x86\xdd"
    if frame[20 if v6 else 23] != 6:
        return True
    ip = frame[14:]
    header, total = (40, 40 + int.from_bytes(ip[4:6], "big")) if v6 else ((ip[0] & 15) * 4, int.from_bytes(ip[2:4], "big"))
    tcp = ip[header:total]
    return bool(tcp[13] & 2) or len(tcp) > (tcp[12] >> 4) * 4


class Services(threading.Thread):
    """Servers of the host on all of its addresses, over TCP and UDP. They note their clients."""

    def __init__(self):
        super().__init__(daemon=True)
        self.tcp = socket.create_server(("::", SERVICE_TCP), family=socket.AF_INET6, dualstack_ipv6=True)
        self.udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.udp.bind(("", SERVICE_UDP))
        self.seen = []
        threading.Thread(target=self.datagrams, daemon=True).start()
        self.start()

    def run(self):
        while True:
            c, peer = self.tcp.accept()
            self.seen.append(("tcp", peer[0]))
            c.sendall(b"service\r\n")
            c.close()

    def datagrams(self):
        while True:
            self.seen.append(("udp", self.udp.recvfrom(100)[1][0]))


SERVICES = None


class Guarded(Case):
    """One daemon and one guarded sandbox, "box", for the tests of a class, which run in the order of their names."""
    neighbours, neighbour_macs = (), []  # addresses of other sandboxes that must not be reached
    BOX = "box"  # its name at the daemon
    ca = bundle = None  # where the CA is inside, where that is not what `env` says by itself

    # What a kind says:

    @classmethod
    def make(cls):
        """Sets up everything that exists before vethguard is asked."""
        raise NotImplementedError

    @classmethod
    def target(cls):
        """The words of `vethguard attach` that say what is to be guarded."""
        raise NotImplementedError

    @classmethod
    def furnish(cls):
        """After attaching: the name server and the CA are put inside, where vethguard does not do it."""

    @classmethod
    def inside(cls, *argv, env_file=None):
        """A command inside, with the variables of the file: CompletedProcess."""
        raise NotImplementedError

    @classmethod
    def engine_env(cls):
        """Variables that the CLI needs to ask the engine."""
        return dict(os.environ)

    @classmethod
    def host_addresses(cls):
        """Addresses of the host that the sandbox might reach it by."""
        return [HOST4]

    # What all have:

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        global SERVICES
        SERVICES = SERVICES or Services()
        cls.key = support.LAB.write("attached-key", SECRET, 0o600)
        cls.policy = support.LAB.write("attached.yaml", POLICY % cls.key)
        cls.narrow = support.LAB.write("attached-narrow.yaml", NARROW)
        # With these and without a guard, everything would leave the host: see Control in test_bridge.py.
        for name in ("ipv4/ip_forward", "ipv6/conf/all/forwarding"):
            with open("/proc/sys/net/" + name, "w") as f:
                f.write("1")
        cls.tag = f"t{time.monotonic_ns() % 10 ** 9}"
        cls.daemon = None
        try:
            cls.make()
            cls.daemon = Daemon()
            cls.attach()
        except BaseException:
            cls.tearDownClass()
            raise

    @classmethod
    def leave(cls):
        """Before the daemon stops: what is attached then stays guarded, with its links, as on a system."""
        cls.daemon.cli("detach", "--all", "--yes")

    @classmethod
    def tearDownClass(cls):
        try:
            if cls.daemon:
                cls.leave()
                assert cls.daemon.stop() == 0, cls.daemon.stderr()
        finally:
            cls.doClassCleanups()
        super().tearDownClass()

    @classmethod
    def vethguard(cls, command, *argv):
        r = cls.daemon.cli(command, *argv, env=cls.engine_env())
        assert r.returncode == 0, (command, r, cls.daemon.stderr())
        assert SECRET not in r.stdout + r.stderr
        return r.stdout

    @classmethod
    def attach(cls, name="box"):
        cls.vethguard("attach", *cls.target(), "--policy", cls.policy, "--name", name)
        places = [*(["--ca", cls.ca] if cls.ca else []), *(["--ca-bundle", cls.bundle] if cls.bundle else [])]
        cls.env_file = support.LAB.write(f"{cls.tag}.env", cls.vethguard("env", name, "--format", "docker", *places))
        cls.furnish()

    @classmethod
    def info(cls):
        return cls.daemon.call("GET", "/v1/sandboxes/" + cls.BOX)[2]

    @classmethod
    def settings(cls):
        return cls.daemon.call("GET", f"/v1/sandboxes/{cls.BOX}/env")[2]

    @classmethod
    def call(cls, function, **members):
        """Calls a function of inside_battery.py, with the output of `vethguard env` in the environment."""
        r = cls.inside(PYTHON, cls.program(), function, json.dumps(members), env_file=cls.env_file)
        assert r.returncode == 0, (r, cls.daemon.stderr()[-3000:])
        return json.loads(r.stdout)

    @classmethod
    def program(cls):
        return "/inside_battery.py"

    def get(self, url=WHOAMI, timeout=30):
        return self.call("get", url=url, key="LAB_KEY", timeout=timeout)

    def assert_works(self):
        answer = self.get()
        self.assertEqual(answer[0], 200, (answer, self.daemon.stderr()[-3000:]))
        self.assertTrue(json.loads(answer[1])["authenticated"])

    def assert_nothing_leaks(self, watch, allowed_flows=True):
        """On the uplink there is nothing but the host's own questions for the allowed name and connections to it."""
        flows = watch.flows() if allowed_flows else collections.Counter(test_exfiltration.rows(f) for f in watch.sent() if says_something(f))
        for protocol, source, destination, port in flows:
            self.assertIn(source, (HOST4, HOST6), flows)
            self.assertIn((protocol, destination, port) if allowed_flows else None,
                          ((17, DNS4, 53), (6, DNS4, 53), (6, ORIGIN4, 443), (6, ORIGIN6, 443)), flows)
        self.assertEqual(watch.foreign(), [])
        for row in self.seen():
            self.assertNotIn(b"VGLEAK".hex(), json.dumps(row))
            self.assertNotIn("evil", json.dumps(row))
            self.assertNotIn("/leak", json.dumps(row))
        self.assertEqual(self.seen("udp") + self.seen("tcp"), [])

    def dropped(self, **fields):
        return [e for e in self.daemon.events(NETWORK) if e["disposition_id"] == 6 and support.matches(e, fields)]

    def told(self, what, class_uid, **fields):
        self.assertIsNotNone(self.daemon.event(class_uid, seconds=10, **fields), f"{what}: {fields} is not in the log")

    # --- the battery ---

    def test_1_allowed(self):
        """A plain request; the program knows a placeholder, the origin sees the key."""
        self.assertNotIn(SECRET, open(self.env_file).read())
        self.assert_works()
        r = self.inside("/usr/bin/curl", "-sS", "-m", "30", WHOAMI, env_file=self.env_file)
        self.assertIn('"authenticated": true', r.stdout, (r, self.daemon.stderr()[-2000:]))
        rows = self.seen("http")
        self.assertEqual([{k.lower(): v for k, v in r["headers"]}["authorization"] for r in rows], ["Bearer " + SECRET] * 2)
        self.told("the request", HTTP, action_id=1, **{"http_request.url.path": "/whoami"})
        self.told("the name", DNS, **{"query.hostname": "api.lab.test", "action_id": 1})

    def test_2_every_way_out(self):
        services = [[a, SERVICE_TCP, SERVICE_UDP] for a in self.host_addresses()]
        neighbours = [[a, 4445, 4446] for a in self.neighbours]
        before = len(SERVICES.seen)
        with test_exfiltration.Watch() as watch:
            self.assert_works()  # the capture sees what it should
            found = self.call("tries", evil4=EVIL4, dns4=DNS4, origin4=ORIGIN4, origin6=ORIGIN6, services=services, neighbours=neighbours,
                              macs=self.neighbour_macs, tag=self.tag)
        self.assertGreater(len(watch.sent()), 0)
        self.assert_nothing_leaks(watch)
        self.assertEqual(SERVICES.seen[before:], [], "services of the host were reached")
        self.refused(found)
        self.logged(found)

    def refused(self, found):
        for name in ("https", "http", "method"):
            self.assertEqual(found[name][0], 403, (name, found[name]))
            self.assertIn("urn:vethguard:problem:denied", found[name][1])
        for name, result in found.items():
            with self.subTest(attempt=name):
                text = json.dumps(result)
                self.assertNotIn("banner", text)
                self.assertNotIn("service", text)
                self.assertNotIn("listener", text)
                self.assertNotIn(b"VGLEAK".hex(), text)  # an echo
                if name.startswith("dns "):  # an address of vethguard's own, where the refusal is explained; or an error
                    self.assertTrue(isinstance(result, str) or result[0] in (0, 3, 5), result)
                elif name.startswith(("raw", "metadata")):
                    self.assertTrue(isinstance(result, str) or result[0] == 403, result)
        self.assertEqual(found["udp many"][0], 20)
        self.assertGreater(found["frames"][0], 4)

    def logged(self, found):
        """Every request, question and packet is in the log."""
        for host, count in (("evil.lab.test", 2), (EVIL4, 1)):
            def denied(host=host):
                return [e for e in self.daemon.events(HTTP) if e["action_id"] == 2 and e["http_request"]["url"].get("hostname") == host]
            self.assertTrue(wait_until(lambda: len(denied()) >= count, 10 * SLOW), (host, denied(), found))
        self.told("the method", HTTP, action_id=2, **{"http_request.http_method": "POST", "http_request.url.hostname": "api.lab.test"})
        for name, result in found.items():
            if not name.startswith("dns ") or name.startswith("dns docker") and isinstance(result, str):
                continue
            with self.subTest(attempt=name):
                part = {"dns tunnel tcp": f".tcp.{self.tag}", "dns below allowed": f"{self.tag}.api.lab.test"}.get(
                    name, f"{name[-1]}.{self.tag}" if name.startswith("dns tunnel")
                    else f".{name.split()[1]}{int(name.endswith('tcp'))}.{self.tag}")
                self.told(name, DNS, action_id=2, **{"query.hostname": lambda v, part=part: v and part in v})
        for name, fields in PACKETS.items():
            sent = isinstance(found[name], list) and found[name][0]
            with self.subTest(attempt=name):
                if sent:
                    self.told(name, NETWORK, disposition_id=6, **fields)
                else:
                    self.assertIn(found[name] if isinstance(found[name], str) else found[name][1], UNSENT)
        many = {"dst_endpoint.ip": "93.184.216.34", "dst_endpoint.port": 4444}
        self.assertTrue(wait_until(lambda: sum(e["traffic"]["packets"] for e in self.dropped(**many)) == 20, 20 * SLOW), self.dropped(**many))

    def test_3_paused(self):
        self.vethguard("pause", self.BOX, "--reason", "a look")
        with test_exfiltration.Watch() as watch:
            answer = self.get()
        self.assertTrue(isinstance(answer, str) or answer[0] == 503 and "a look" in answer[1], answer)
        self.assert_nothing_leaks(watch, allowed_flows=False)
        self.vethguard("resume", self.BOX)
        self.assert_works()

    def test_4_another_policy(self):
        self.vethguard("reload", self.BOX, "--policy", self.narrow)
        self.assertEqual(self.get()[0], 403)
        self.assertEqual(self.get("https://www.lab.test/")[0], 200)
        self.vethguard("reload", self.BOX, "--policy", self.policy)
        self.assert_works()
        self.assertEqual(self.info()["policy"]["generation"], 3)

    def test_5_killed(self):
        """Shut while the daemon is away; afterwards everything is as before, and nobody inside has to be told."""
        before = self.settings()
        roles = support.descendants(self.daemon.process.pid)
        self.daemon.kill()
        self.assertTrue(wait_until(lambda: not support.still_alive(roles), 10 * SLOW))
        with test_exfiltration.Watch() as watch:
            answer = self.get(timeout=3)
            self.call("tries", evil4=EVIL4, dns4=DNS4, origin4=ORIGIN4, origin6=ORIGIN6, neighbours=[], macs=[], tag=self.tag + "k",
                      services=[[a, SERVICE_TCP, SERVICE_UDP] for a in self.host_addresses()])
        self.assertIsInstance(answer, str, answer)
        self.assert_nothing_leaks(watch, allowed_flows=False)
        self.daemon.start()
        self.assertTrue(wait_until(lambda: self.info()["state"] == "serving", 10 * SLOW), self.info())
        after = self.settings()
        self.assertEqual(after["ca_pem"], before["ca_pem"])
        self.assertEqual(after["variables"], before["variables"])
        self.assert_works()

    def test_6_detached(self):
        self.vethguard("detach", self.BOX)
        self.attach()  # at once
        self.assert_works()
        self.vethguard("detach", self.BOX)
        self.after_detach()
        self.leave()
        self.daemon.stop()
        r = subprocess.run([support.VETHGUARD, "audit", "verify", self.daemon.audit], capture_output=True, text=True)
        self.assertEqual(r.returncode, 0, r)
        self.assertEqual(len({e["metadata"]["uid"] for e in self.daemon.events()}), len(self.daemon.events()))
        # Every request that had an answer, in the origin's eyes, is in the log's.
        answered = [e for e in self.daemon.events(HTTP) if e["action_id"] == 1]
        self.assertEqual(len(answered), self.requests + len(self.seen("http")), [e["http_request"]["url"] for e in answered])
        self.assert_clean(self.daemon.audit, self.daemon.stderr_path)

    def after_detach(self):
        """No way out any more, and none that was not there before."""
        with test_exfiltration.Watch() as watch:
            self.assertIsInstance(self.get(timeout=3), str)
        self.assert_nothing_leaks(watch, allowed_flows=False)

    requests = 0

    def tearDown(self):
        type(self).requests += len(self.seen("http"))
        super().tearDown()



class InEngine(Guarded):
    """A container of an engine (cls.engine), called "agent"; others may be beside it."""

    @classmethod
    def inside(cls, *argv, env_file=None):
        return cls.engine.exec("agent", env_file, *argv)

    @classmethod
    def trust(cls, name):
        pem = support.LAB.write(f"{cls.__name__}-ca.pem", cls.vethguard("env", "box", "--format", "pem"))
        for path in ("vethguard.pem", "ca-certificates.crt"):
            cls.engine("cp", pem, f"{name}:/etc/ssl/certs/{path}")

    @classmethod
    def listener(cls, name):
        """The container takes TCP and UDP, and notes who came."""
        p = cls.engine.popen("exec", name, guests.PYTHON, "/inside_battery.py", "listen",
                             '{"out": "/tmp/came", "tcp_port": 4445, "udp_port": 4446}', stderr=subprocess.DEVNULL)
        cls.addClassCleanup(p.wait)
        cls.addClassCleanup(p.kill)
        assert wait_until(lambda: cls.came(name) == "ready\n", 10 * SLOW), cls.came(name)

    @classmethod
    def came(cls, name):
        return cls.engine.exec(name, None, "/bin/cat", "/tmp/came").stdout
