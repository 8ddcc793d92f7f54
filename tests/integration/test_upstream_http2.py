# SPDX-License-Identifier: Apache-2.0
"""HTTP/2 to upstreams, for clients that speak HTTP/1.1: one connection for many requests, streams that fail alone,
credentials in heads and their echoes, bodies of any size both ways."""
import hashlib
import json
import os
import unittest

import lab
import support
from support import Case, policy

PORT = 9443
SITE = f"https://www.lab.test:{PORT}"
API = f"https://api.lab.test:{PORT}"
RULES = dict(allow=(SITE, f"{{to: '{API}', credential: api}}"))


class Box(support.Boxed):
    @classmethod
    def make_box(cls):
        lab_ = support.LAB
        if not os.path.exists(lab_.path(f"h2origin.{PORT}.ready")):
            lab_.spawn_outside(["node", os.path.join(support.HERE, "h2origin.mjs"), lab_.dir, lab.ORIGIN4, str(PORT)])
            lab_.wait_for_file(f"h2origin.{PORT}.ready")
        return support.Sandbox(policy(*RULES["allow"], credentials=support.file_credential()))

    def curl(self, *args, **kw):
        return self.box.run("curl", "-sS4", "--http1.1", *args, **kw)


class Requests(Box):
    def test_get(self):
        done = self.curl(SITE + "/hello?q=1")
        self.assertEqual((done.json()["method"], done.json()["path"]), ("GET", "/hello?q=1"), done)
        self.assertEqual(done.json()["headers"][":authority"], f"www.lab.test:{PORT}")

    def test_nothing_of_http1_is_left(self):
        done = self.curl("-H", "Connection: keep-alive, X-Hop", "-H", "X-Hop: 1", "-H", "TE: trailers", "-H", "Upgrade: foo",
                         "-H", "Keep-Alive: 5", "-H", "X-Mixed-Case: Stays", SITE + "/fields")
        headers = done.json()["headers"]
        for name in ("connection", "x-hop", "keep-alive", "upgrade", "host", "transfer-encoding"):
            self.assertNotIn(name, headers)
        self.assertEqual((headers["x-mixed-case"], headers["te"]), ("Stays", "trailers"))

    def test_one_connection_for_many(self):
        urls = [f"{SITE}/many/{i}" for i in range(30)]
        outputs = sum((["-o", "/dev/null"] for _ in urls), [])
        done = self.curl("-Z", "--parallel-immediate", "--parallel-max", "30", "-w", "%{http_code}\\n", *outputs, *urls)
        self.assert_ok(done)
        rows = [(r["session"], r["path"]) for r in self.seen("h2") if r["path"].startswith("/many/")]
        whole = (done.out.split(), rows, [(e["http_request"]["url"]["path"], e.get("status_detail")) for e in self.box.events(support.HTTP)])
        self.assertEqual(done.out.split(), ["200"] * 30, whole)
        self.assertEqual(sorted(path for _, path in rows), sorted(f"/many/{i}" for i in range(30)), whole)
        self.assertEqual(len({session for session, _ in rows}), 1, f"more than one connection was made: {whole}")

    def test_upload(self):
        data = os.urandom(3 << 20)
        done = self.curl("-T", "-", SITE + "/put", input=data)
        self.assertEqual((done.json()["body"], done.json()["sha256"]), (len(data), hashlib.sha256(data).hexdigest()), done)

    def test_upload_with_length(self):
        data = os.urandom(300000)
        support.LAB.write("h2up.bin", "")
        with open(support.LAB.path("h2up.bin"), "wb") as f:
            f.write(data)
        done = self.curl("-v", "-H", "Expect: 100-continue", "--expect100-timeout", "20", "-T", support.LAB.path("h2up.bin"), SITE + "/put")
        self.assertEqual(done.json()["sha256"], hashlib.sha256(data).hexdigest(), done)
        self.assertEqual(done.json()["headers"]["content-length"], "300000")
        self.assertIn("100 Continue", done.err)
        self.assertNotIn("expect", done.json()["headers"])  # many servers never answer it over HTTP/2

    def test_empty_post(self):
        done = self.curl("-X", "POST", "-H", "Content-Length: 0", SITE + "/post")
        self.assertEqual((done.json()["method"], done.json()["body"]), ("POST", 0), done)

    def test_request_trailers(self):
        done = self.box.py("""
s = tls("www.lab.test", 9443)
s.sendall(b"POST /t HTTP/1.1\\r\\nHost: www.lab.test:9443\\r\\nTransfer-Encoding: chunked\\r\\nConnection: close\\r\\n\\r\\n"
          b"3\\r\\nabc\\r\\n0\\r\\nX-Sum: 7\\r\\n\\r\\n")
print(read_all(s).decode())
""")
        self.assertIn('"x-sum":"7"', done.out, done)


class Responses(Box):
    def test_download(self):
        done = self.curl(SITE + "/bytes/20000000", "-o", "/dev/null", "-w", "%{size_download} %{http_code}")
        self.assertEqual(done.out, "20000000 200", done)

    def test_length_is_kept(self):
        done = self.curl("-D", "-", "-o", "/dev/null", SITE + "/length/70000")
        self.assertIn("content-length: 70000", done.out.lower())

    def test_head(self):
        done = self.curl("-I", SITE + "/anything")
        self.assertIn("content-length:", done.out.lower())
        self.assertIn("200", done.out)

    def test_trailers(self):
        done = self.curl("-i", "--raw", SITE + "/trailers")
        self.assertIn("x-sum: 42", done.out)
        self.assertIn("x-head: 1", done.out)

    def test_interim(self):
        done = self.curl("-i", SITE + "/interim")
        self.assertIn("103", done.out)
        self.assertTrue(done.out.endswith("after"), done)

    def test_no_content(self):
        self.assertIn("204", self.curl("-i", SITE + "/nobody").out)

    def test_empty(self):
        done = self.curl("-i", SITE + "/empty", SITE + "/empty")
        self.assertEqual(done.out.count("content-length: 0"), 2, done)

    def test_early_answer(self):
        done = self.curl("-T", "-", "-o", "/dev/null", "-w", "%{http_code}", SITE + "/early", input=b"z" * 2000000)
        self.assertEqual(done.out, "413", done)

    def test_slow_reader_does_not_stop_others(self):
        done = self.box.py("""
slow = []
for i in range(2):
    s = tls("www.lab.test", 9443)
    s.sendall(b"GET /bytes/9000000 HTTP/1.1\\r\\nHost: www.lab.test:9443\\r\\nConnection: close\\r\\n\\r\\n")
    slow.append(s)
time.sleep(0.5)
quick = tls("www.lab.test", 9443)
quick.sendall(b"GET /length/1000000 HTTP/1.1\\r\\nHost: www.lab.test:9443\\r\\nConnection: close\\r\\n\\r\\n")
print(len(read_all(quick)) > 1000000)
for s in slow:
    print(len(read_all(s)) >= 9000000)
""")
        self.assertEqual(done.out.split(), ["True"] * 3, done)


class Late(Box):
    """Streams that are over for the client, while the upstream's end of them has not come."""
    SCRIPT = """
const session = require("node:http2").connect(process.argv[1]);
const one = () => new Promise(resolve => {
	const stream = session.request({":path": "/late"});
	stream.on("response", head => resolve(head[":status"])).on("error", e => resolve(e.message)).resume();
	stream.on("close", () => resolve(stream.rstCode));
});
const many = async n => {
	const sum = {};
	for (const r of await Promise.all([...Array(n).keys()].map(one)))
		sum[r] = (sum[r] ?? 0) + 1;
	return sum;
};
(async () => {
	const all = [await many(100), await many(100), await many(1)];
	session.destroy();
	console.log(JSON.stringify(all));
})();
"""

    def test_they_do_not_count_as_open_and_are_bounded(self):
        done = self.box.run("node", "-e", self.SCRIPT, SITE)
        self.assert_ok(done)
        first, second, beyond = done.json()
        self.assertEqual((first, second), ({"200": 100}, {"200": 100}))
        self.assertNotIn("200", beyond)
        self.assertIn("REFUSED_STREAM", str(beyond))
        self.assert_ok(self.curl(SITE + "/release"))


class Failures(Box):
    def status(self, *args):
        return self.curl("-o", "/dev/null", "-w", "%{http_code}", *args).out

    def test_reset(self):
        done = self.curl("-w", "%{http_code}", SITE + "/reset/2")
        self.assertIn("INTERNAL_ERROR", done.out)
        self.assertTrue(done.out.endswith("502"), done)

    def test_reset_halfway_is_visible(self):
        done = self.curl(SITE + "/halfway/2")
        self.assertNotEqual(done.status, 0, "a response that was cut off looks whole")

    def test_a_reset_ends_its_own_stream_only(self):
        done = self.curl("-Z", SITE + "/halfway/2", SITE + "/length/100000", SITE + "/reset/8", SITE + "/bytes/3000000",
                         "-w", "%{http_code} %{size_download}\\n", *sum((["-o", "/dev/null"] for _ in range(4)), []))
        self.assertIn("200 100000", done.out)
        self.assertIn("200 3000000", done.out)

    def test_refused_stream_goes_out_again(self):
        done = self.curl("-d", "", SITE + "/refuse/a")
        self.assertTrue(done.json().get("again"), done)
        self.assertEqual(len(self.seen("h2", path="/refuse/a")), 2)

    def test_refused_with_a_body_does_too(self):
        done = self.curl("-d", "x" * 100, SITE + "/refuse/b")
        self.assertEqual((done.json().get("again"), done.json()["headers"]["content-length"]), (True, "100"), done)
        self.assertEqual(len(self.seen("h2", path="/refuse/b")), 2)

    def test_a_connection_that_had_enough_is_left(self):
        """Like node when a client has stopped reading: ENHANCE_YOUR_CALM for all that follows on the connection."""
        for method, expected in (("GET", "200"), ("POST", "502")):
            with self.subTest(method):
                self.seen_at = self._seen_size()
                self.assertEqual(self.status(SITE + "/tire"), "200")
                self.assertEqual(self.status("-X", method, SITE + "/weary/" + method), expected)
                self.assertEqual(self.status(SITE + "/rested/" + method), "200")
                rows = {r["path"].split("/")[1]: r["session"] for r in self.seen("h2")}
                self.assertNotEqual(rows["tire"], rows["rested"])
                self.assertEqual(len(self.seen("h2", path="/weary/" + method)), 2 if expected == "200" else 1)

    def test_one_that_never_calms_down(self):
        self.assertEqual(self.status(SITE + "/reset/11"), "502")
        self.assertIn(len(self.seen("h2", path="/reset/11")), (1, 2))

    def test_goaway(self):
        for _ in range(3):
            self.assert_ok(self.curl(SITE + "/goaway", SITE + "/after"))

    def test_http1_is_not_spoken_there(self):
        self.assertEqual(self.status(SITE + "/require11"), "502")


class Credentials(Box):
    def test_it_is_injected(self):
        done = self.curl(API + "/whoami", API + "/whoami", "-H", "Authorization: Bearer mine")
        self.assertEqual(done.out.count('"authenticated":true'), 2, done)

    def test_never_shared_with_others(self):
        self.curl(f"https://api.lab.test:{PORT}/own")
        self.curl(SITE + "/own")
        rows = self.seen("h2", path="/own")
        self.assertEqual(len({r["session"] for r in rows}), 2)

    def test_echo_is_covered(self):
        done = self.curl("-i", "--raw", API + "/echo")
        self.assert_no_secret(done.out)
        self.assertIn("x-echo: Bearer ***", done.out)
        self.assertIn("x-late: Bearer ***", done.out)
        self.assertIsNotNone(self.box.event(support.FINDING))

    def test_messages_are_asked_for_uncompressed(self):
        """gRPC and Connect compress message by message, where no content coding tells."""
        asked = ("-H", "grpc-accept-encoding: identity, deflate, gzip", "-H", "connect-accept-encoding: gzip", "-H", "a-im: gzip")
        headers = self.curl(*asked, API + "/fields").json()["headers"]
        self.assertEqual((headers["grpc-accept-encoding"], headers["connect-accept-encoding"]), ("identity", "identity"))
        self.assertNotIn("a-im", headers)
        headers = self.curl(*asked, SITE + "/fields").json()["headers"]
        self.assertEqual((headers["grpc-accept-encoding"], headers["connect-accept-encoding"], headers["a-im"]),
                         ("identity, deflate, gzip", "gzip", "gzip"))

    def test_compressed_messages_are_refused(self):
        for field in ("grpc-encoding", "connect-content-encoding"):
            done = self.curl("-o", "-", "-w", "%{http_code}", f"{API}/coded/{field}")
            self.assertTrue(done.out.endswith("502"), done)
            self.assertIn("coding that cannot be searched", done.out)
            done = self.curl("-o", "/dev/null", "-w", "%{http_code}", f"{SITE}/coded/{field}")
            self.assertEqual(done.out, "200")

    def test_uncompressed_messages_pass(self):
        self.assertEqual(self.curl(API + "/plainly").out, "fine")
        self.assertIn("grpc-status: 5", self.curl("-i", API + "/alone").out)

    def test_trailers_cannot_ask_for_pieces(self):
        """A server that merges trailers into the head would take them for the request's (RFC 9110 section 6.5.1)."""
        done = self.box.py("""
s = tls("api.lab.test", 9443)
names = [b"Range: bytes=0-5", b"If-Range: x", b"Accept-Encoding: br", b"Grpc-Accept-Encoding: gzip", b"Connect-Accept-Encoding: gzip", b"A-IM: gzip",
         b"Request-Range: bytes=0-5", b"Accept-Charset: utf-16"]
s.sendall(b"POST /t HTTP/1.1\\r\\nHost: api.lab.test:9443\\r\\nTransfer-Encoding: chunked\\r\\nConnection: close\\r\\n\\r\\n"
          b"3\\r\\nabc\\r\\n0\\r\\nX-Sum: 7\\r\\n" + b"\\r\\n".join(names) + b"\\r\\n\\r\\n")
print(read_all(s).decode())
""")
        self.assertIn('"trailers":{"x-sum":"7"}', done.out, done)

    def test_one_that_reads_like_a_reason_phrase(self):
        """HTTP/2 has none: the phrase an HTTP/1 client gets is the proxy's own text, which nobody may write to."""
        path = support.LAB.write("phrase", "Forbidden\n", 0o600)
        with support.Sandbox(policy(RULES["allow"][1], credentials=support.file_credential(path=path))) as box:
            for _ in range(2):
                done = box.run("curl", "-sS4i", "--http1.1", API + "/status/403")
                self.assertIn("HTTP/1.1 403 Forbidden", done.out, done)

    def test_it_cannot_be_guessed_byte_by_byte(self):
        """An upstream that sends back what it gets: guesses wait, right and wrong ones alike, until half a second is over. The
        first right one that is longer than what may be seen is the last: nobody gets the credential any more."""
        value = support.SECRET[::-1].encode().hex()
        with support.Sandbox(policy(RULES["allow"][1], credentials=support.file_credential())) as box:
            done = box.py(f"""
value = bytes.fromhex("{value}")[::-1]
def waits(guess):
    s = tls("api.lab.test", 9443, timeout=60)
    s.sendall(b"POST /parrot HTTP/1.1\\r\\nHost: api.lab.test:9443\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\n%x\\r\\n%s\\r\\n" % (len(guess), guess))
    data = b""
    while b"\\r\\n\\r\\n" not in data:
        piece = s.recv(65536)
        if not piece:
            return None
        data += piece
    if b" 200 " not in data:
        return None
    begin = time.monotonic()
    while guess not in data.split(b"\\r\\n\\r\\n", 1)[1].replace(b"\\r\\n", b""):
        piece = s.recv(65536)
        if not piece:
            return None
        data += piece
    return int((time.monotonic() - begin) * 1000)
for guess in (b"a line\\n", b"harmless", value[:2], b"#" + value[:8] + b"#", value[:8], b"harmless"):
    try:
        print(waits(guess))
    except OSError:
        print(None)
""", timeout=60)
            self.assert_ok(done)
            line, harmless, short, wrong, right, after = map(eval, done.out.split())
            for waited in line, short:
                self.assertLess(waited, 300 * support.SLOW, done.out)
            for waited in harmless, wrong:
                self.assertGreaterEqual(waited, 400, done.out)
                self.assertLess(waited, 1000 * support.SLOW, done.out)
            self.assertEqual((right, after), (None, None), "the credential is still given away")
            self.assertTrue([e for e in box.events(support.FINDING) if "guessing" in json.dumps(e)])

    def test_event_names_the_version(self):
        self.curl(API + "/version")
        event = self.box.event(support.HTTP, **{"http_request.url.path": "/version"})
        self.assertEqual(event["http_response"]["code"], 200)


class WebSocket(Case):
    """Extended CONNECT (RFC 8441) to an upstream that offers it and is spoken to already; else HTTP/1.1's upgrade."""
    PORT = 9448
    CODE = """
from websocket_frames import *
PORT = %d
def opened(host, path):
    first = tls(host, PORT, alpn=("http/1.1",))
    first.sendall(request("GET", "/first", host + ":" + str(PORT), "Connection: close"))
    read_all(first)
    return Client(tls(host, PORT), host + ":" + str(PORT), path)
""" % PORT

    @classmethod
    def setUpClass(cls):
        lab_ = support.LAB
        if not os.path.exists(lab_.path(f"h2origin.{cls.PORT}.ready")):
            lab_.spawn_outside(["node", os.path.join(support.HERE, "h2origin.mjs"), lab_.dir, lab.ORIGIN4, str(cls.PORT), "websocket"])
            lab_.wait_for_file(f"h2origin.{cls.PORT}.ready")
        cls.box = support.Sandbox(policy(f"https://www.lab.test:{cls.PORT}", f"{{to: 'https://api.lab.test:{cls.PORT}', credential: api}}",
                                         credentials=support.file_credential()))

    @classmethod
    def tearDownClass(cls):
        cls.box.close()

    def run_inside(self, code):
        done = self.box.py(self.CODE + code)
        self.assertEqual(done.status, 0, done)
        self.assert_no_secret(done.out)
        return done.out.strip()

    def connects(self, path):
        return [dict(r["headers"]) for r in self.seen("h2", method="CONNECT", path=path)]

    def test_frames_both_ways(self):
        for host in "www.lab.test", "api.lab.test":
            with self.subTest(host):
                self.seen_at = self._seen_size()
                out = self.run_inside(f"""
c = opened("{host}", "/chat?x=1")
print(c.status, c.next()[3])
for n in (0, 5, 60000):
    c.send(TEXT, b"a" * n)
    print(len(c.next()[3]))
c.send(CLOSE, b"\\x03\\xe8")
print(c.next()[0], c.closed())
""")
                self.assertEqual(out.split(), ["101", "b'hi'", "0", "5", "60000", "8", "None"])
                seen = self.connects("/chat?x=1")
                self.assertEqual(len(seen), 1)
                self.assertEqual((seen[0][":protocol"], seen[0].get("sec-websocket-version")), ("websocket", "13"))
                for name in ("sec-websocket-key", "upgrade", "connection"):
                    self.assertNotIn(name, seen[0])
                self.assertEqual(seen[0].get("authorization"), f"Bearer {support.SECRET}" if host.startswith("api") else None)
                self.assertEqual(self.seen("h2", method="CONNECT")[0]["session"], self.seen("h2", path="/first")[-1]["session"])

    def test_refused_by_the_upstream(self):
        self.assertEqual(self.run_inside("print(opened('www.lab.test', '/refused').status)"), "403")

    def test_a_frame_against_the_rules(self):
        out = self.run_inside("c = opened('www.lab.test', '/wrong')\nc.next()\nc.sock.sendall(frame(3, b'?'))\nprint(c.closed())")
        self.assertEqual(out, "1002")

    def test_it_is_in_the_log(self):
        self.run_inside("c = opened('www.lab.test', '/logged')\nc.next()\nc.send(CLOSE, b'\\x03\\xe8')\nc.closed()")
        event = self.box.event(support.HTTP, **{"http_request.url.path": "/logged"})
        self.assertEqual(event["http_response"]["code"], 101)


if __name__ == "__main__":
    unittest.main()
