# SPDX-License-Identifier: Apache-2.0
"""Ports of a sandbox that its policy exposes: who reaches them and who does not, what the log says, and what becomes of listeners and
connections when the policy changes, when the sandbox is paused or detached, and when workers and daemons die."""
import hashlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
import unittest

import support
from daemon import Daemon
from lab import EVIL4, HOST4, ORIGIN4
from support import LIFECYCLE, NETWORK, PACE, SLOW, descendants, policy, wait_until

AT = 18080
GATE = "198.18.0.1"
INSIDE = "198.18.0.2"

# Inside: HTTP on 8080, an echo on 9000, HTTP on 127.0.0.1:7000, and an echo on 9001 that sends what came when the other side ends.
SERVER = """import http.server, socketserver, sys, threading

class Page(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    def answer(self, body):
        self.send_response(200)
        self.send_header('Content-Length', str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def do_GET(self):
        if self.path.startswith('/bytes/'):
            self.answer(b'x' * int(self.path[7:]))
        else:
            self.answer(f'{self.path} for {self.client_address[0]}'.encode())
    def do_POST(self):
        import hashlib
        self.answer(hashlib.sha256(self.rfile.read(int(self.headers['Content-Length']))).hexdigest().encode())
    def log_message(self, *_):
        pass

class Echo(socketserver.BaseRequestHandler):
    def handle(self):
        while data := self.request.recv(65536):
            self.request.sendall(data)

class Whole(socketserver.BaseRequestHandler):
    def handle(self):
        parts = []
        while data := self.request.recv(65536):
            parts.append(data)
        self.request.sendall(b''.join(parts)[::-1])

socketserver.ThreadingTCPServer.allow_reuse_address = True
socketserver.ThreadingTCPServer.daemon_threads = True
servers = [http.server.ThreadingHTTPServer(('0.0.0.0', 8080), Page), socketserver.ThreadingTCPServer(('0.0.0.0', 9000), Echo),
           socketserver.ThreadingTCPServer(('0.0.0.0', 9001), Whole), http.server.ThreadingHTTPServer(('127.0.0.1', 7000), Page)]
for server in servers[1:]:
    threading.Thread(target=server.serve_forever, daemon=True).start()
print('ready', flush=True)
servers[0].serve_forever()
"""


def exposes(*entries):
    return "expose:\n" + "".join(f"  - {{{e}}}\n" for e in entries)


def page(source="host", at=f"127.0.0.1:{AT}", port=8080, more=""):
    return f"name: p{port}, port: {port}, from: [{source}], at: '{at}'{more}"


def connect(at=AT, host="127.0.0.1", timeout=10):
    return socket.create_connection((host, at), timeout=timeout * SLOW)


def was_refused(at=AT, host="127.0.0.1"):
    """Nobody listens there."""
    try:
        connect(at, host, 1).close()
        return False
    except ConnectionRefusedError:
        return True


class Exposed(unittest.TestCase):
    """A daemon, a namespace with servers, and a policy that exposes some of their ports."""

    def setUp(self):
        self.netns = support.netns(self, f"box{time.monotonic_ns()}")
        support.sh("ip", "-n", self.netns, "link", "set", "lo", "up")
        self.serve(self.netns)
        self.path = support.LAB.path(f"expose-{time.monotonic_ns()}.yaml")
        self.daemon = Daemon(self.config())
        self.addCleanup(self.daemon.end)

    def config(self):
        return ""

    def serve(self, netns):
        server = subprocess.Popen(["ip", "netns", "exec", netns, sys.executable, "-c", SERVER], stdout=subprocess.PIPE)
        self.addCleanup(server.wait)
        self.addCleanup(server.kill)
        self.addCleanup(server.stdout.close)
        self.assertEqual(server.stdout.readline(), b"ready\n")

    def write(self, *entries, path=None, rules=("http://plain.lab.test",)):
        with open(path or self.path, "w") as f:
            f.write(policy(*rules, more=exposes(*entries) if entries else ""))
        return path or self.path

    def attach(self, *entries, name="one", **members):
        self.write(*entries)
        return self.daemon.attach(name=name, policy=self.path, **{"netns": f"/run/netns/{self.netns}", **members})

    def refuse(self, *entries, status, words, name="two", netns=None, **members):
        path = self.write(*entries, path=self.path + ".two")
        body = {"name": name, "policy": path, **(members or {"netns": f"/run/netns/{netns or self.netns}"})}
        got, _, answer = self.daemon.call("POST", "/v1/sandboxes", body)
        self.assertEqual(got, status, answer)
        self.assertIn(words, json.dumps(answer))
        self.assertTrue(wait_until(lambda: self.daemon.call("GET", f"/v1/sandboxes/{name}")[0] == 404, 10 * SLOW))

    def reload(self, *entries, status=200):
        self.write(*entries)
        got, _, answer = self.daemon.call("POST", "/v1/sandboxes/one/reload", {})
        self.assertEqual(got, status, answer)
        return answer

    def curl(self, path="/x", at=AT, host="127.0.0.1", netns=None, more=()):
        argv = ["curl", "-sS", "-m", str(10 * PACE), *more, f"http://{host}:{at}{path}"]
        return subprocess.run(["ip", "netns", "exec", netns] * bool(netns) + argv, capture_output=True, text=True)

    def assert_served(self, why="", **kw):
        self.assertTrue(wait_until(lambda: self.curl(**kw).stdout == f"/x for {GATE}", 10 * SLOW), f"{why}: {self.daemon.stderr()}")

    def assert_reset(self, **kw):
        r = self.curl(**kw)
        self.assertIn(r.returncode, (7, 52, 55, 56), r)  # a reset, as early as it may come
        self.assertEqual(r.stdout, "")

    def echoes(self, s, data=b"hello"):
        s.sendall(data)
        return s.recv(len(data)) == data

    def assert_ended(self, s):
        s.settimeout(10 * SLOW)
        try:
            self.assertEqual(s.recv(1), b"")
        except ConnectionResetError:
            pass

    def visits(self, **fields):
        return [e for e in self.daemon.events(NETWORK) if e["connection_info"]["direction_id"] == 1 and support.matches(e, fields)]

    def visit(self, **fields):
        return self.daemon.event(NETWORK, **{"connection_info.direction_id": 1, **fields})

    def stats(self, name="one"):
        return self.daemon.call("GET", f"/v1/sandboxes/{name}/stats")[2]["worker"]


class Traffic(Exposed):
    def test_page(self):
        """From the host, by its listener; inside the visitor is the gate. Both directions whole, ends of one direction too."""
        self.attach(page(), page(port=9001, at=f"127.0.0.1:{AT + 1}"))
        self.assert_served()
        event = self.visit(action_id=1)
        self.assertEqual(event["src_endpoint"]["ip"], "127.0.0.1")
        self.assertEqual(event["dst_endpoint"], {"name": "one", "ip": INSIDE, "port": 8080})
        self.assertEqual(event["proxy_endpoint"], {"name": "vethguard", "ip": "127.0.0.1", "port": AT})
        self.assertEqual(event["firewall_rule"]["name"], "p8080")
        self.assertGreater(event["traffic"]["bytes_out"], len(f"/x for {GATE}"))
        self.assertGreaterEqual(event["traffic"]["end_time"], event["traffic"]["start_time"])
        self.assertEqual(event["message"], "from 127.0.0.1 to port 8080 allowed")
        r = self.curl("/bytes/30000000")
        self.assertEqual(len(r.stdout), 30000000)
        data = os.urandom(20_000_000)
        path = support.LAB.path("exposed-upload")
        with open(path, "wb") as f:
            f.write(data)
        r = self.curl("/", more=("--data-binary", "@" + path))
        self.assertEqual(r.stdout, hashlib.sha256(data).hexdigest())
        with connect(AT + 1) as s:
            s.sendall(b"abc")
            s.shutdown(socket.SHUT_WR)
            self.assertEqual(s.recv(10), b"cba")
            self.assertEqual(s.recv(10), b"")
        self.assertTrue(wait_until(lambda: self.stats()["visits"]["allowed"] == 4, 10 * SLOW), self.stats())
        self.assertEqual((self.stats()["visits"]["denied"], self.stats()["visits_open"]), (0, 0))
        shown = self.daemon.cli("show", "one")
        self.assertIn(f"8080 at 127.0.0.1:{AT} from host", shown.stdout)
        listed = subprocess.run([support.VETHGUARD, "audit", "show", self.daemon.audit], capture_output=True, text=True)
        self.assertIn("from 127.0.0.1 to port 8080", listed.stdout)

    def test_ipv6(self):
        self.attach(page(at=f"[::1]:{AT}"), page(port=9000, source="fd00::/8", at=f"[::]:{AT + 1}"))
        self.assert_served(host="[::1]")
        self.assert_reset(host="[::1]", at=AT + 1)
        self.assertEqual(self.visit(action_id=2)["src_endpoint"]["ip"], "::1")
        self.assertTrue(was_refused() and was_refused(AT + 1))  # IPv6 alone

    def test_many_at_once(self):
        self.attach(page(port=9000))
        begun = time.monotonic()
        sockets = [connect() for _ in range(120)]
        self.assertTrue(all(self.echoes(s, b"%d" % i) for i, s in enumerate(sockets)))
        self.assertEqual(self.stats()["visits_open"], 120)
        for s in sockets:
            s.close()
        for i in range(300):  # one after the other: more than a worker may send messages at once
            with connect() as s:
                self.assertTrue(self.echoes(s))
        self.assertEqual(self.daemon.call("GET", "/v1/sandboxes/one")[2]["worker"]["restarts"], 0)
        self.assertLess(time.monotonic() - begun, 60 * SLOW)

    def test_who_does_not_come_in(self):
        """Every other source is reset before a byte, and is in the log; nothing of it reaches the sandbox."""
        self.attach(page(source=EVIL4, at=f"{HOST4}:{AT}"), page(port=9000, at=f"{HOST4}:{AT + 1}"))
        self.assert_reset(host=HOST4)
        self.assert_reset(host=HOST4, netns="outside")  # from ORIGIN4 or another of its addresses
        self.assert_reset(host=HOST4, netns="outside", more=("--interface", ORIGIN4))
        self.assert_reset(host=HOST4, netns="outside", more=("--interface", EVIL4), at=AT + 1)
        r = self.curl(host=HOST4, netns="outside", more=("--interface", EVIL4))
        self.assertEqual(r.stdout, f"/x for {GATE}")
        self.assertTrue(wait_until(lambda: len(self.visits(action_id=2)) == 4, 10 * SLOW), self.visits())
        refused = self.visit(action_id=2, **{"src_endpoint.ip": ORIGIN4, "dst_endpoint.port": 8080})
        self.assertEqual((refused["status_code"], refused["traffic"]["bytes"]), ("default", 0))
        self.assertIn("no entry of from: names this source", refused["message"])
        self.assertTrue(was_refused(AT + 2, HOST4))
        self.assertTrue(was_refused(AT))  # it listens at HOST4 alone
        self.assertTrue(was_refused(8080, HOST4))
        self.assertTrue(wait_until(lambda: len(self.visits(action_id=1)) == 1, 10 * SLOW))

    def test_a_flood_of_refused(self):
        """Fills neither the log nor the worker."""
        self.attach(page(source=EVIL4, at=f"{HOST4}:{AT}"), page(port=9000, at=f"127.0.0.1:{AT}"))
        for _ in range(400):
            try:
                connect(host=HOST4).close()
            except ConnectionError:
                pass
        with connect() as s:
            self.assertTrue(self.echoes(s))
        self.assertTrue(wait_until(lambda: any("more connections refused" in e["message"] for e in self.visits()), 10 * SLOW))
        time.sleep(1.2)
        told = self.visits(action_id=2)
        more = sum(int(e["message"].split("the last of ")[1].split()[0]) for e in told if "the last of" in e["message"])
        one_each = [e for e in told if "the last of" not in e["message"]]
        self.assertEqual(len(one_each) + more, 400)
        self.assertLess(len(one_each), 400)

    def test_nothing_listens(self):
        """Or only on 127.0.0.1, as most programs do at first; the log says what to do."""
        self.attach(page(port=7000), page(port=7001, at=f"127.0.0.1:{AT + 1}"))
        for at, port in ((AT, 7000), (AT + 1, 7001)):
            self.assert_reset(at=at)
            event = self.visit(**{"dst_endpoint.port": port})
            self.assertEqual((event["status_code"], event["status_id"], event["activity_id"]), ("connect", 2, 4), event)
            self.assertIn("let it listen on 0.0.0.0", event["message"])
        self.assertEqual(self.stats()["visits"]["failed"], 2)

    def test_limit(self):
        """The third waits until one of two has gone, and loses nothing."""
        self.attach(page(port=9000, more=", connections: 2"))
        first, second, third = connect(), connect(), connect()
        self.assertTrue(self.echoes(first) and self.echoes(second))
        third.sendall(b"later")
        third.settimeout(0.5)
        self.assertRaises(TimeoutError, third.recv, 10)
        self.assertEqual(self.stats()["visits_open"], 2)
        first.close()
        third.settimeout(10 * SLOW)
        self.assertEqual(third.recv(10), b"later")
        second.close()
        third.close()

    def test_the_sandbox_has_no_way_more(self):
        """An exposed port opens nothing outward: not the host's listener, not the gate."""
        self.attach(page(at=f"{HOST4}:{AT}", source="0.0.0.0/0"))
        for host, at in ((HOST4, AT), ("127.0.0.1", AT), (GATE, AT), (GATE, 8080)):
            r = self.curl(host=host, at=at, netns=self.netns)
            self.assertNotIn(f"/x for {GATE}", r.stdout, (host, at))
        self.assertEqual(self.visits(), [])
        self.assertEqual(self.curl(host=HOST4, netns="outside").stdout, f"/x for {GATE}")


class Idle(Exposed):
    def config(self):
        return "timeouts: {idle: 1s}\n"

    def test_idle(self):
        self.attach(page(port=9000))
        with connect() as s:
            self.assertTrue(self.echoes(s))
            self.assert_ended(s)
        self.assertEqual(self.visit(status_code="timeout")["traffic"]["bytes"], 10)


class Errors(Exposed):
    def test_places(self):
        self.attach(page())
        other = support.netns(self, f"two{time.monotonic_ns()}")
        with socket.create_server(("127.0.0.1", AT + 5)):
            self.refuse(page(at=f"127.0.0.1:{AT + 5}"), netns=other, status=409,
                        words=f"port 8080 cannot be exposed at 127.0.0.1:{AT + 5}: another program uses that port")
        self.refuse(page(), netns=other, status=409, words=f"cannot be exposed at 127.0.0.1:{AT}: sandbox one listens there already")
        self.refuse(page(at=f"0.0.0.0:{AT}"), netns=other, status=409, words="sandbox one listens there already")
        self.refuse(page(at=f"192.0.2.7:{AT}"), netns=other, status=422, words="this machine does not have that address")
        self.refuse(page(), page(port=1), netns=other, status=422, words="is taken by")
        self.assert_served()
        self.refuse(page(at=f"127.0.0.1:{AT + 1}"), status=422, listen={"path": support.LAB.path("exposed.sock")},
                    words="a sandbox whose only way is a Unix socket has no address")
        self.assertTrue(was_refused(AT + 1))
        self.assertEqual(os.listdir(os.path.join(self.daemon.state, "sandboxes")), ["one.json"])

    def test_reload_that_cannot_be(self):
        self.attach(page())
        with socket.create_server(("127.0.0.1", AT + 5)), connect() as s:
            answer = self.reload(page(), page(port=9000, at=f"127.0.0.1:{AT + 5}"), status=409)
            self.assertIn("another program uses that port", json.dumps(answer))
            answer = self.reload(page(at=f"0.0.0.0:{AT}"), status=409)
            self.assertIn("the earlier policy listens there in another way", json.dumps(answer))
            s.sendall(b"GET /x HTTP/1.0\r\n\r\n")
            answer = b""
            while GATE.encode() not in answer:  # its head and its body may come one after the other
                more = s.recv(1000)
                self.assertTrue(more, answer)
                answer += more
        self.assert_served("as before")
        self.assertEqual(self.daemon.call("GET", "/v1/sandboxes/one")[2]["policy"]["generation"], 1)

    def test_policies(self):
        for entry, words in (("port: 8080", "does not say who may connect"), ("from: host, at: '127.0.0.1:1'", "has no port"),
                             ("port: 1, from: host", "the host has to listen for it"), ("port: 0, from: host", "from 1 to 65535"),
                             (page(source="10.0.0.1/8", at="10.0.0.1:1"), "write 10.0.0.0/8"),
                             (page(source="10.0.0.0/8"), "only this machine connects to 127.0.0.1"),
                             (page(source="any"), "no word means everybody"), (page(at="localhost:80"), "a host's name is not an address"),
                             (page(source="'sandbox:a'"), "at: has no use"), (page(source="'label:a'"), "write label:KEY=VALUE"),
                             (page(more=", connections: 0"), "from 1 to 10000"), (page(more=", to: x"), "does not exist here")):
            self.refuse(entry, status=422, words=words)


class Life(Exposed):
    def test_reload(self):
        """Listeners open and close with the policy; what it does not allow any more ends, and the rest goes on."""
        self.attach(page(port=9000), page(port=9001, at=f"127.0.0.1:{AT + 1}"), page(at=f"127.0.0.1:{AT + 2}"))
        goes, stays = connect(AT + 1), connect()
        self.assertTrue(self.echoes(stays))
        goes.sendall(b"abc")
        self.assertTrue(wait_until(lambda: self.stats()["visits_open"] == 2, 10 * SLOW))
        answer = self.reload(page(port=9000), page(at=f"127.0.0.1:{AT + 3}"))
        self.assertTrue(answer)
        self.assert_ended(goes)
        self.assertTrue(self.echoes(stays))
        self.assertTrue(was_refused(AT + 1) and was_refused(AT + 2))
        self.assert_served(at=AT + 3)
        event = self.visit(status_code="policy-changed")
        self.assertEqual((event["dst_endpoint"]["port"], event["traffic"]["bytes_in"]), (9001, 3), event)
        changed = self.daemon.event(LIFECYCLE, activity_id=8)
        self.assertIn("no longer exposes port 9001", json.dumps(changed))
        self.reload(page(port=9000, source=EVIL4, at=f"{HOST4}:{AT}"))
        self.assert_ended(stays)
        self.assertTrue(was_refused())
        self.reload()
        self.assertTrue(was_refused(AT, HOST4))
        goes.close()
        stays.close()

    def test_pause(self):
        self.attach(page(port=9000), page(at=f"127.0.0.1:{AT + 1}"))
        s = connect()
        self.assertTrue(self.echoes(s))
        self.assertEqual(self.daemon.call("POST", "/v1/sandboxes/one/pause", {"reason": "strange"})[0], 200)
        self.assert_ended(s)
        self.assertEqual(self.visit(status_code="paused")["traffic"]["bytes"], 10)
        self.assert_reset(at=AT + 1)
        refused = self.visit(status_code="paused", **{"dst_endpoint.port": 8080})
        self.assertEqual((refused["action_id"], "strange" in refused["message"]), (2, True), refused)
        self.assertEqual(self.daemon.call("POST", "/v1/sandboxes/one/resume", {})[0], 200)
        self.assert_served(at=AT + 1)
        s.close()

    def test_detach(self):
        self.attach(page(port=9000))
        s = connect()
        self.assertTrue(self.echoes(s))
        self.assertEqual(self.daemon.call("DELETE", "/v1/sandboxes/one")[0], 200)
        self.assert_ended(s)
        self.assertTrue(was_refused())
        self.assertEqual(self.visit()["status_code"], "closing")
        s.close()
        self.attach(page(port=9000))  # the place is free again
        with connect() as s:
            self.assertTrue(self.echoes(s))

    def test_worker_killed(self):
        """Clients that connect meanwhile wait for the next worker."""
        self.attach(page(port=9000))
        s = connect()
        self.assertTrue(self.echoes(s))
        worker = self.daemon.call("GET", "/v1/sandboxes/one")[2]["worker"]["pid"]
        os.kill(worker, signal.SIGKILL)
        self.assert_ended(s)
        with connect() as s:
            self.assertTrue(self.echoes(s))

    def test_daemon_killed(self):
        self.attach(page())
        self.assert_served()
        self.daemon.kill()
        self.assertTrue(wait_until(was_refused, 10 * SLOW))
        self.daemon.start()
        self.assert_served("after a restart")
        self.daemon.kill()
        self.assertTrue(wait_until(was_refused, 10 * SLOW))
        with socket.create_server(("127.0.0.1", AT)):
            self.daemon.start()
            self.assertIn("another program uses that port; it is served without, and tried again", self.daemon.stderr())
            r = self.curl(host="plain.lab.test", at=80, netns=self.netns, more=("-x", f"http://{GATE}:3128"))
            self.assertEqual(json.loads(r.stdout)["path"], "/x", r)  # outward all is well
        self.assert_served("the place is free again")

    def test_roles_die_while_it_is_busy(self):
        self.attach(page(port=9000))
        for role in ("vethguard-keepe", "vethguard-recor", "vethguard-worke"):
            with connect() as s:
                self.assertTrue(self.echoes(s))
            for pid in [p for p, row in descendants(self.daemon.process.pid).items() if row[0] == role]:
                os.kill(pid, signal.SIGKILL)
            with connect() as s:
                self.assertTrue(self.echoes(s), role)

    def test_upgrade(self):
        """Another daemon takes over: what is under way goes on, and the place is taken again."""
        self.attach(page(port=9000), page(at=f"127.0.0.1:{AT + 1}"))
        s = connect()
        self.assertTrue(self.echoes(s))
        pids = self.daemon.call("GET", "/v1/status")[2]["processes"]
        os.kill(pids["supervisor"], signal.SIGUSR2)
        self.assertTrue(wait_until(lambda: self.supervisor() != pids["supervisor"], 60 * SLOW), self.daemon.stderr())
        self.assert_served(at=AT + 1)
        self.assertTrue(self.echoes(s))
        self.assertEqual(self.daemon.call("POST", "/v1/sandboxes/one/reload", {})[0], 200)
        s.close()
        os.kill(self.supervisor(), signal.SIGTERM)
        self.assertTrue(wait_until(lambda: self.daemon.process.poll() is not None, 30 * SLOW))

    def supervisor(self):
        return self.daemon.call("GET", "/v1/status")[2]["processes"]["supervisor"]


class Calls(Exposed):
    """One sandbox, two, calls the other, one, by its name: both policies have to allow it."""

    CALLER = "http://one.sandbox.internal:8080"

    def setUp(self):
        super().setUp()
        self.other = support.netns(self, f"two{time.monotonic_ns()}")
        support.sh("ip", "-n", self.other, "link", "set", "lo", "up")

    def attach_both(self, source, *rules, name="two", more="", **members):
        self.attach(f"name: p8080, port: 8080, from: [{source}]{more}", f"port: 9001, from: [{source}]")
        self.path2 = self.write(path=self.path + ".caller", rules=rules or (self.CALLER, "tcp://one.sandbox.internal:9001"))
        self.daemon.attach(name=name, netns=f"/run/netns/{self.other}", policy=self.path2, **members)

    def call(self, path="/x", host="one.sandbox.internal", port=8080, more=()):
        return self.curl(path, port, host, self.other, ("-x", f"http://{GATE}:3128", *more))

    def assert_refused(self, status="502", **kw):
        r = self.call(more=("-o", "/dev/null", "-w", "%{http_code}"), **kw)
        self.assertEqual(r.stdout, status, r)

    def test_both_allow_it(self):
        self.attach_both("sandbox:two")
        self.assertEqual(self.call().stdout, f"/x for {GATE}")
        self.assertEqual(self.call(host="ONE.sandbox.internal").stdout, f"/x for {GATE}")
        self.assertEqual(len(self.call("/bytes/5000000").stdout), 5000000)
        data = os.urandom(3_000_000)
        path = support.LAB.path("called-upload")
        with open(path, "wb") as f:
            f.write(data)
        self.assertEqual(self.call("/", more=("--data-binary", "@" + path)).stdout, hashlib.sha256(data).hexdigest())
        code = ("import socket; s = socket.create_connection(('198.18.0.1', 3128)); "
                "s.sendall(b'CONNECT one.sandbox.internal:9001 HTTP/1.1\\r\\nHost: one.sandbox.internal:9001\\r\\n\\r\\n'); "
                "assert b' 200 ' in s.recv(1000); s.sendall(b'abc'); s.shutdown(1); print(s.recv(10))")
        r = subprocess.run(["ip", "netns", "exec", self.other, sys.executable, "-c", code], capture_output=True, text=True, timeout=30 * SLOW)
        self.assertEqual(r.stdout, "b'cba'\n", r)
        asked = self.daemon.event(support.HTTP, **{"device.name": "two", "http_request.url.path": "/x"})
        self.assertEqual((asked["action_id"], asked["dst_endpoint"]["hostname"]), (1, "one.sandbox.internal"), asked)
        came = self.visit(**{"device.name": "one", "dst_endpoint.port": 9001})
        self.assertEqual((came["src_endpoint"], came["dst_endpoint"]), ({"name": "two"}, {"name": "one", "ip": INSIDE, "port": 9001}), came)
        self.assertEqual((came["firewall_rule"]["name"], came["proxy_endpoint"]), ("expose[1]", {"name": "vethguard"}))
        self.assertIn("from two to port 9001 allowed", came["message"])

    def test_by_a_label(self):
        self.attach_both("'label:team=search'", labels={"team": "search", "x": "y"})
        self.assertEqual(self.call().stdout, f"/x for {GATE}")
        self.daemon.kill()
        self.daemon.start()
        self.assertTrue(wait_until(lambda: self.call().stdout == f"/x for {GATE}", 10 * SLOW), self.daemon.stderr())

    def test_the_other_does_not_mean_it(self):
        """Another name, another label, the host, every address: none of them is this sandbox."""
        for source in ("sandbox:three", "sandbox:tw", "'label:team=searchx'", "'label:search=team'"):
            self.attach_both(source, labels={"team": "search"})
            self.assert_refused()
            refused = self.visit(action_id=2, **{"device.name": "one"})
            self.assertEqual((refused["src_endpoint"], refused["traffic"]["bytes"]), ({"name": "two"}, 0), refused)
            for name in ("one", "two"):
                self.assertEqual(self.daemon.call("DELETE", f"/v1/sandboxes/{name}")[0], 200)
            os.unlink(self.daemon.audit)
            self.daemon.stop()
            self.daemon = Daemon()
            self.addCleanup(self.daemon.end)
        self.attach(page(source="host, 127.0.0.0/8"))
        self.daemon.attach(name="two", netns=f"/run/netns/{self.other}", policy=self.path2)
        self.assert_refused()

    def test_its_own_policy_does_not_allow_it(self):
        self.attach_both("sandbox:two", "http://one.sandbox.internal:8081", "http://two.sandbox.internal:8080")
        self.assert_refused("403")
        self.assert_refused("502", host="two.sandbox.internal")  # it exposes nothing
        self.assert_refused("502", port=8081)  # not exposed
        self.assertEqual(self.visits(action_id=1), [])

    def test_neither_a_name_that_is_none(self):
        self.attach_both("sandbox:two", "http://*.sandbox.internal:8080")
        self.assertEqual(self.call().stdout, f"/x for {GATE}")
        for host in ("on.sandbox.internal", "onee.sandbox.internal", "a.one.sandbox.internal", "vethguardd.sandbox.internal"):
            self.assert_refused(host=host)

    def test_observing_opens_nothing(self):
        self.attach_both("sandbox:two", "http://plain.lab.test", observe=True)
        self.assert_refused()
        self.assertEqual(self.visits(), [])

    def test_another_users_sandbox(self):
        """A name is not a proof: everybody who may attach could take it."""
        self.attach_both("sandbox:two")
        self.assertEqual(self.call().stdout, f"/x for {GATE}")
        record = os.path.join(self.daemon.state, "sandboxes", "two.json")
        self.daemon.kill()
        with open(record) as f:
            state = json.load(f)
        text = json.dumps(state)
        self.assertIn('"uid": 0', text)
        with open(record, "w") as f:
            f.write(text.replace('"uid": 0', '"uid": 65534'))
        self.daemon.start()
        self.assertTrue(wait_until(lambda: self.call(more=("-o", "/dev/null", "-w", "%{http_code}")).stdout == "502", 10 * SLOW),
                        self.daemon.stderr())

    def test_pause_reload_and_end(self):
        self.attach_both("sandbox:two")
        self.assertEqual(self.call().stdout, f"/x for {GATE}")
        self.daemon.call("POST", "/v1/sandboxes/one/pause", {})
        self.assert_refused()
        self.daemon.call("POST", "/v1/sandboxes/one/resume", {})
        self.assertTrue(wait_until(lambda: self.call().stdout == f"/x for {GATE}", 10 * SLOW))
        self.reload("port: 8080, from: ['sandbox:three']")
        self.assert_refused()
        self.reload("port: 8080, from: ['sandbox:two']")
        self.assertEqual(self.call().stdout, f"/x for {GATE}")
        self.assertEqual(self.daemon.call("DELETE", "/v1/sandboxes/one")[0], 200)
        self.assert_refused()

    def test_bound(self):
        self.attach_both("sandbox:two", more=", connections: 1")
        code = ("import socket, sys\n"
                "def way():\n"
                "    s = socket.create_connection(('198.18.0.1', 3128))\n"
                "    s.sendall(b'GET http://one.sandbox.internal:8080/x HTTP/1.1\\r\\nHost: one.sandbox.internal:8080\\r\\n\\r\\n')\n"
                "    return s, s.recv(1000).split()[1]\n"
                "all = [way() for _ in range(40)]\n"
                "print(sorted({code for _, code in all}))")
        r = subprocess.run(["ip", "netns", "exec", self.other, sys.executable, "-c", code], capture_output=True, text=True, timeout=60 * SLOW)
        self.assertIn("b'200'", r.stdout, r)
        self.assertLessEqual(self.stats()["visits_open"], 1)
        self.assertEqual(self.daemon.call("GET", "/v1/sandboxes/two")[2]["worker"]["restarts"], 0)


class Interfaces(Exposed):
    """A container or machine behind an interface of the host: its address has to be known."""

    def setUp(self):
        super().setUp()
        self.link = f"v{time.monotonic_ns() // 1000 % 10 ** 9}"
        support.sh("ip", "link", "add", self.link, "type", "veth", "peer", "name", "eth0", "netns", self.netns)
        self.addCleanup(subprocess.run, ["ip", "link", "del", self.link], check=False, capture_output=True)
        support.sh("ip", "addr", "add", "10.7.0.1/24", "dev", self.link)
        support.sh("ip", "link", "set", self.link, "up")
        support.sh("ip", "-n", self.netns, "addr", "add", "10.7.0.2/24", "dev", "eth0")
        support.sh("ip", "-n", self.netns, "link", "set", "eth0", "up")
        support.sh("ip", "-n", self.netns, "route", "add", "default", "via", "10.7.0.1")

    def test_one_address(self):
        self.write(page())
        self.daemon.attach(name="one", policy=self.path, interface=self.link, addresses=["10.7.0.2"])
        self.assertTrue(wait_until(lambda: self.curl().stdout == "/x for 10.7.0.1", 10 * SLOW), (self.curl(), self.daemon.stderr()))
        self.assertEqual(self.visit(action_id=1)["dst_endpoint"], {"name": "one", "ip": "10.7.0.2", "port": 8080})
        self.daemon.kill()
        self.daemon.start()
        self.assertTrue(wait_until(lambda: self.curl().stdout == "/x for 10.7.0.1", 10 * SLOW), self.daemon.stderr())

    def test_a_network(self):
        self.refuse(page(), status=422, interface=self.link, words="it is not known which of a network's addresses")
        self.assertTrue(was_refused())


class Ready(Exposed):
    def test_prepared_and_claimed(self):
        prefix = f"r{time.monotonic_ns() // 1000 % 10 ** 9}"
        r = self.daemon.cli("prepare", "--count", "1", "--prefix", prefix)
        self.assertEqual(r.returncode, 0, r)
        self.addCleanup(subprocess.run, ["ip", "netns", "del", f"{prefix}-1"], check=False, capture_output=True)
        support.sh("ip", "-n", f"{prefix}-1", "link", "set", "lo", "up")
        self.serve(f"{prefix}-1")
        self.write(page())
        with socket.create_server(("127.0.0.1", AT)):
            status, _, answer = self.daemon.call("POST", "/v1/claim", {"name": "one", "policy": self.path})
            self.assertEqual((status, "another program uses that port" in json.dumps(answer)), (409, True), answer)
        self.assertEqual(len(self.daemon.call("GET", "/v1/prepared")[2]["prepared"]), 1)
        status, _, answer = self.daemon.call("POST", "/v1/claim", {"name": "one", "policy": self.path})
        self.assertEqual(status, 201, answer)
        self.assert_served()
        self.assertEqual(self.daemon.call("DELETE", "/v1/sandboxes/one")[0], 200)
        self.assertTrue(was_refused())


class Run(unittest.TestCase):
    COMMAND = "python3 -m http.server 8080 >/dev/null 2>&1 & until [ -e stop ]; do sleep 0.05; done"

    def start(self, text, user=None, command=COMMAND):
        """`vethguard run` of a command in a folder with a page, with this policy; (process, folder)."""
        work = support.LAB.path(f"run-{time.monotonic_ns()}")
        os.mkdir(work)
        os.chmod(work, 0o777)
        support.LAB.write(os.path.join(work, "page.txt"), "a page")
        path = support.LAB.write(os.path.join(work, "policy.yaml"), text)
        argv = [support.VETHGUARD, "run", "--policy", path, "--config", support.LAB.path("config.yaml"), "--audit",
                os.path.join(work, "audit"), "--", "sh", "-c", command]
        if user:
            argv = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", *argv]
        process = subprocess.Popen(argv, cwd=work, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process, work

    def get(self):
        return subprocess.run(["curl", "-sS", "-m", "10", f"http://127.0.0.1:{AT}/page.txt"], capture_output=True, text=True).stdout

    def serves(self, user):
        process, work = self.start(policy(more=exposes(page())), user)
        self.assertTrue(wait_until(lambda: self.get() == "a page", 20 * SLOW))
        with open(os.path.join(work, "stop"), "w"):
            pass
        self.assertEqual(process.wait(20 * SLOW), 0, process.stderr.read())
        self.assertTrue(was_refused())
        with open(os.path.join(work, "audit")) as f:
            events = [json.loads(line) for line in f]
        inbound = [e for e in events if e.get("connection_info", {}).get("direction_id") == 1]
        self.assertEqual([e["traffic"]["bytes"] > 6 for e in inbound if e["status_id"] == 1], [True])

    def test_root(self):
        self.serves(None)

    def test_user(self):
        """Without a right on this machine."""
        self.serves(65534)

    def test_refused(self):
        """Before the command is started, with the reason."""
        with socket.create_server(("127.0.0.1", AT)):
            for entry, user, words in ((page(), None, "another program uses that port"), (page(), 65534, "another program uses that port"),
                                       (page(at="192.0.2.7:80"), None, "this machine does not have that address"),
                                       (page(at="127.0.0.1:80"), 65534, "the user who named the policy may not use that port")):
                process, work = self.start(policy(more=exposes(entry)), user, command="touch started")
                self.assertEqual(process.wait(20 * SLOW), 125, entry)
                self.assertIn(words, process.stderr.read())
                self.assertFalse(os.path.exists(os.path.join(work, "started")))

