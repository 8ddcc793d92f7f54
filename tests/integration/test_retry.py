# SPDX-License-Identifier: Apache-2.0
"""Requests that no origin has done anything with are sent again, and no request is done twice: every kind of body, both
versions of HTTP on both sides, and every moment at which an origin can fail; and nginx, which ends its connections after
some requests without a warning."""
import hashlib
import os
import subprocess
import unittest

import flaky_origin
import lab
import support
from support import HTTP, SLOW, policy

PORT1, PORT2, NGINX1, NGINX2, CLEAR1, CLEAR2 = 9461, 9462, 9463, 9464, 9465, 9466
HOST = "www.lab.test"
KEPT = 64 << 10

# Inside: asks as a client of either version, as the test says, a body in pieces with pauses between them.
CLIENT = """
import h2frames
def ask1(port, method, path, pieces, fields=(), s=None, expect=False, chunked=False):
    s = s or (connect(HOST, port, 20) if port in CLEAR else tls(HOST, port, timeout=20))
    n = sum(map(len, pieces))
    lines = ["Transfer-Encoding: chunked"] if chunked else ["Content-Length: %d" % n] if method != "GET" else []
    reader = Reader(s)
    try:
        s.sendall(request(method, path, HOST + ":" + str(port), *lines, *fields, *["Expect: 100-continue"] * expect))
        if expect:
            while (head := reader.head())[0] != 100:
                return head[0], reader.take(int(head[1]["content-length"])).decode()
        for i, piece in enumerate(pieces):
            time.sleep(0.1 * (i > 0))
            s.sendall(b"%x\\r\\n%s\\r\\n" % (len(piece), piece) if chunked else piece)
        if chunked:
            s.sendall(b"0\\r\\nX-Sum: 7\\r\\n\\r\\n")
    except OSError:
        pass
    try:
        status, fields, body = reader.response()
        while status == 100:
            status, fields, body = reader.response()
        return status, body.decode()
    except (EOFError, OSError) as e:
        return type(e).__name__, ""

def ask2(port, method, path, pieces, p=None, length=True, expect=False, chunked=False):
    if not p:
        p = h2frames.Peer(connect(HOST, port, 20) if port in CLEAR else tls(HOST, port, timeout=20, alpn=("h2",)))
        p.send(h2frames.PREFACE)
        p.send_settings()
    number = p.opened + 2 if p.opened > 0 else 1
    p.opened = number
    n = sum(map(len, pieces))
    fields = [(":method", method), (":scheme", "http" if port in CLEAR else "https"), (":authority", HOST + ":" + str(port)), (":path", path)]
    if method != "GET" and not chunked:
        fields.append(("content-length", str(n)))
    if expect:
        fields.append(("expect", "100-continue"))
    s = p.stream(number)
    p.send(h2frames.headers(number, h2frames.block(fields), end_stream=method == "GET" or (not n and not chunked)))
    if expect:
        p.wait(lambda: s.heads or s.over(), 20)
    for i, piece in enumerate(pieces):
        time.sleep(0.1 * (i > 0))
        if piece and not p.send_body(number, piece, end=not chunked and i == len(pieces) - 1):
            break
    if chunked and not s.over():
        p.send(h2frames.headers(number, h2frames.block([("x-sum", "7")])))
    p.wait(s.over, 20)
    return (s.reset if s.reset not in (None, "NO_ERROR") else s.status()), bytes(s.body).decode()
"""

# name: (method, pieces, options)
BODIES = {
    "get": ("GET", [], {}),
    "nothing": ("POST", [], {}),
    "small": ("POST", [29], {}),
    "put": ("PUT", [29], {}),
    "pieces": ("POST", [1000, 2000, 26], {}),
    "chunks": ("POST", [1000, 29], {"chunked": True}),
    "most": ("POST", [KEPT], {}),
    "large": ("POST", [300000], {}),
    "expect": ("POST", [29], {"expect": True}),
}
REPEATABLE = ("get", "put")


class Retry(support.Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        make = flaky_origin.Origin
        cls.origins = {port: support.in_namespace("outside", lambda p=port, f=f, v=v: make(lab.ORIGIN4, p, f, v))
                       for port, f, v in ((PORT1, support.LAB.dir, "http/1.1"), (PORT2, support.LAB.dir, "h2"),
                                          (CLEAR1, None, "http/1.1"), (CLEAR2, None, "h2"))}
        cls.box = support.Sandbox(policy(*(f"https://{HOST}:{port}" for port in (PORT1, PORT2)),
                                         *(f"http://{HOST}:{port}" for port in (CLEAR1, CLEAR2))))

    @classmethod
    def tearDownClass(cls):
        cls.box.close()
        for o in cls.origins.values():
            o.close()
        super().tearDownClass()

    @staticmethod
    def path(port, what, moment, kind, version, same=False):
        return f"/{what}/{moment}/{kind}-{version}-{port}{'-same' * same}"

    def ask_all(self, version, port, what, moments, kinds=BODIES, same=False):
        """{(moment, kind): (status, body)}. Each has a client's connection of its own, after another one has been answered over
        a connection that is kept; same: over that client's."""
        code = CLIENT + f"HOST = {HOST!r}\nCLEAR = {(CLEAR1, CLEAR2)!r}\nresults = []\nask = ask{version}\n"
        for moment in moments:
            for kind in kinds:
                method, sizes, options = BODIES[kind]
                path = self.path(port, what, moment, kind, version, same)
                if same:
                    code += f"s = tls(HOST, {port}, timeout=20)\nask1({port}, 'GET', '/warm', [], s=s)\n"
                    more = ", s=s"
                else:
                    code += f"ask({port}, 'GET', '/warm', [])\n"
                    more = ""
                code += (f"results.append(({moment!r}, {kind!r}, ask({port}, {method!r}, {path!r}, "
                         f"[os.urandom(1) * n for n in {sizes!r}], **{options!r}{more})))\n")
        done = self.box.py(code + "print(json.dumps(results))\n", timeout=300 * SLOW)
        self.assert_ok(done)
        return {(m, k): tuple(r) for m, k, r in done.json()}

    def arrivals(self, port, *which):
        return self.origins[port].of(self.path(port, *which))

    def check_whole(self, result, arrivals, kind):
        """Answered, and what was answered is the whole request."""
        status, text = result
        n = sum(BODIES[kind][1])
        self.assertEqual(status, 200, (kind, result))
        self.assertEqual(text, f"{n} {hashlib.sha256(arrivals[-1].body).hexdigest()}")
        self.assertTrue(arrivals[-1].whole)
        self.assertEqual(sum(a.whole for a in arrivals[:-1] if a.body != arrivals[-1].body), 0)

    def check_event(self, *which):
        """One for each request, with the status that its client has."""
        path = self.path(*which)
        events = [e for e in self.box.events(HTTP) if e["http_request"]["url"]["path"] == path]
        self.assertEqual(len(events), 1, path)
        return events[0].get("http_response", {}).get("code", 0)

    def test_http2_refuses(self):
        """GOAWAY below the stream, and REFUSED_STREAM: whatever the method is."""
        for version in (1, 2):
            for what in ("goaway", "refused"):
                moments = ("head", "body", "end")
                results = self.ask_all(version, PORT2, what, moments)
                for (moment, kind), result in results.items():
                    with self.subTest(version=version, what=what, moment=moment, kind=kind):
                        arrivals = self.arrivals(PORT2, what, moment, kind, version)
                        event = self.check_event(PORT2, what, moment, kind, version)
                        if kind == "large" and result[0] != 200:  # some of it had left, and nobody keeps it
                            self.assertEqual(result[0], 502 if version == 1 else "REFUSED_STREAM")
                            self.assertEqual(event, 502 if version == 1 else 0)
                            self.assertEqual(len(arrivals), 1)
                            continue
                        self.check_whole(result, arrivals, kind)
                        self.assertEqual(event, 200)
                        self.assertEqual(len(arrivals), 2)
                        if BODIES[kind][2].get("chunked"):
                            self.assertIn(("x-sum", "7"), arrivals[-1].trailers)

    def test_http2_without_tls(self):
        """It goes on as it came, and so does what is sent again."""
        for what in ("goaway", "refused"):
            results = self.ask_all(2, CLEAR2, what, ("head", "body", "end"), kinds=("get", "small", "chunks"))
            for (moment, kind), result in results.items():
                with self.subTest(what=what, moment=moment, kind=kind):
                    arrivals = self.arrivals(CLEAR2, what, moment, kind, 2)
                    self.check_whole(result, arrivals, kind)
                    self.assertEqual(len(arrivals), 2)
                    self.assertEqual(self.check_event(CLEAR2, what, moment, kind, 2), 200)

    def test_http2_without_tls_to_an_origin_that_speaks_http1(self):
        before = len(self.origins[CLEAR1].of("*"))
        results = self.ask_all(2, CLEAR1, "lost", ("no",))
        for (moment, kind), result in results.items():
            with self.subTest(kind=kind):
                arrivals = self.arrivals(CLEAR1, "lost", moment, kind, 2)
                self.check_whole(result, arrivals, kind)
                self.assertEqual(len(arrivals), 1)
                self.assertEqual(self.check_event(CLEAR1, "lost", moment, kind, 2), 200)
        greetings = self.origins[CLEAR1].of("*")[before:]
        self.assertEqual([(a.method, bytes(a.body)) for a in greetings], [("PRI", b"")], "it is asked once")

    def test_http2_is_lost(self):
        """Nobody knows what the origin did: only idempotent requests are repeated, and only if the connection had served others."""
        for version in (1, 2):
            results = self.ask_all(version, PORT2, "lost", ("head", "body", "end"))
            for (moment, kind), result in results.items():
                with self.subTest(version=version, moment=moment, kind=kind):
                    arrivals = self.arrivals(PORT2, "lost", moment, kind, version)
                    if kind in REPEATABLE:
                        self.check_whole(result, arrivals, kind)
                        self.assertEqual(len(arrivals), 2)
                    else:
                        self.assertEqual((result[0], len(arrivals)), (502, 1))
                    self.assertEqual(self.check_event(PORT2, "lost", moment, kind, version), result[0])

    def test_http1_is_lost(self):
        """A client's first request meets no connection that its server is about to close, where it cannot be sent again."""
        for version in (1, 2):
            results = self.ask_all(version, PORT1, "lost", ("head", "body", "end"))
            for (moment, kind), result in results.items():
                with self.subTest(version=version, moment=moment, kind=kind):
                    arrivals = self.arrivals(PORT1, "lost", moment, kind, version)
                    self.check_whole(result, arrivals, kind)
                    self.assertEqual([a.reused for a in arrivals], [True, False] if kind in REPEATABLE else [False])
                    self.assertEqual(self.check_event(PORT1, "lost", moment, kind, version), 200)

    def test_http1_is_lost_at_a_later_request(self):
        """Over a connection that has just been used: what is not idempotent is told, and never sent again."""
        results = self.ask_all(1, PORT1, "lost", ("head", "body", "end"), same=True)
        for (moment, kind), result in results.items():
            with self.subTest(moment=moment, kind=kind):
                arrivals = self.arrivals(PORT1, "lost", moment, kind, 1, True)
                self.assertTrue(arrivals[0].reused)
                if kind in REPEATABLE:
                    self.check_whole(result, arrivals, kind)
                    self.assertEqual(len(arrivals), 2)
                else:
                    self.assertEqual((result[0], len(arrivals)), (502, 1))
                self.assertEqual(self.check_event(PORT1, "lost", moment, kind, 1, True), result[0])

    def test_never_after_the_response_has_begun(self):
        for port, whats in ((PORT2, ("refused", "lost", "goaway")), (PORT1, ("lost",))):
            for version in (1, 2):
                for what in whats:
                    same = port == PORT1 and version == 1
                    results = self.ask_all(version, port, what, ("answer",), kinds=("get", "put", "small") if same or port == PORT2 else REPEATABLE,
                                           same=same)
                    for (moment, kind), result in results.items():
                        with self.subTest(port=port, version=version, what=what, kind=kind):
                            self.assertNotEqual((result[0], len(result[1]) > 2), (200, True))
                            self.assertEqual(len(self.arrivals(port, what, moment, kind, version, same)), 1)


NGINX = """daemon off; user root; worker_processes 1; pid {d}/nginx-retry.pid; error_log {d}/nginx-retry.err;
events {{ worker_connections 512; }}
http {{
	access_log off; client_max_body_size 0; keepalive_requests 50;
	client_body_temp_path {d}/retry-body; proxy_temp_path {d}/retry-proxy; fastcgi_temp_path {d}/retry-f;
	uwsgi_temp_path {d}/retry-u; scgi_temp_path {d}/retry-s;
	ssl_certificate {d}/server.pem; ssl_certificate_key {d}/server.key;
	server {{ listen {a}:{one} ssl; location / {{ proxy_pass http://unix:{d}/nginx-retry.sock; }} }}
	server {{ listen {a}:{two} ssl http2; location / {{ proxy_pass http://unix:{d}/nginx-retry.sock; }} }}
	server {{ listen unix:{d}/nginx-retry.sock; location / {{ return 200 "fine"; }} }}
}}
"""
EIGHT = """import collections, http.client, sys, threading
def client(counts):
    c = http.client.HTTPSConnection(sys.argv[1], timeout=20)
    for i in range(int(sys.argv[2])):
        try:
            c.request("POST", "/x", b"twenty-nine bytes of content!")
            r = c.getresponse()
            counts[r.status, r.read() == b"fine"] += 1
        except (OSError, http.client.HTTPException) as e:
            counts[type(e).__name__] += 1
            c.close()
counts = [collections.Counter() for _ in range(8)]
threads = [threading.Thread(target=client, args=(n,)) for n in counts]
for t in threads:
    t.start()
for t in threads:
    t.join()
print(dict(sum(counts, collections.Counter())))
"""
EACH = 400 if not support.ASAN else 100


@unittest.skipUnless(os.path.exists("/usr/sbin/nginx"), "needs nginx")
class Nginx(support.Case):
    """It ends a connection after 50 requests, and does nothing with those that are on their way then."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        d = support.LAB.dir
        support.LAB.write("nginx-retry.conf", NGINX.format(d=d, a=lab.ORIGIN4, one=NGINX1, two=NGINX2))
        support.LAB.spawn_outside(["/usr/sbin/nginx", "-c", os.path.join(d, "nginx-retry.conf"), "-e", os.path.join(d, "nginx-retry.err")],
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        support.LAB.wait_for_file("nginx-retry.pid")
        cls.box = support.Sandbox(policy(f"https://{HOST}:{NGINX1}", f"https://{HOST}:{NGINX2}"))

    @classmethod
    def tearDownClass(cls):
        cls.box.close()
        super().tearDownClass()

    def failures(self):
        return [e.get("status_detail") for e in self.box.events(HTTP) if e["http_response"]["code"] != 200][:5]

    def test_eight_clients(self):
        for port in (NGINX2, NGINX1):
            with self.subTest(port=port):
                done = self.box.run(support.PYTHON, "-c", EIGHT, f"{HOST}:{port}", str(EACH), timeout=200 * SLOW)
                self.assert_ok(done)
                self.assertEqual(done.out.strip(), str({(200, True): 8 * EACH}), self.failures())
                self.assertEqual({e["http_response"]["code"] for e in self.box.events(HTTP)}, {200})

    def test_a_client_of_http2(self):
        for port in (NGINX2, NGINX1):
            with self.subTest(port=port):
                done = self.box.run("curl", "-sSZ", "--parallel-max", "8", "-d", "twenty-nine bytes of content!", "-o", "/dev/null",
                                    "-w", "%{http_code} %{http_version}\\n", f"https://{HOST}:{port}/[1-{4 * EACH}]", timeout=200 * SLOW)
                self.assert_ok(done)
                self.assertEqual(set(done.out.splitlines()), {"200 2"}, self.failures())
                self.assertEqual(len(done.out.splitlines()), 4 * EACH)


if __name__ == "__main__":
    unittest.main()
