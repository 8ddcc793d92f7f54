# SPDX-License-Identifier: Apache-2.0
"""HTTP/1.1 on the wire, written by hand: framing, reuse, pipelining, streaming, upgrades; and what is refused."""
import json
import time

import support
from support import ASAN, HTTP, LONG, Case, memory_now_kib, memory_peak_kib, policy

RULES = policy("{to: 'https://api.lab.test'}", "{to: 'https://www.lab.test', methods: [GET, HEAD, POST, PUT]}",
               "http://plain.lab.test", deny=("{to: 'https://api.lab.test', paths: [/private/**], reason: Keep out.}",))
TLS = "s = tls('api.lab.test')\n"


class Box(support.Boxed):
    @classmethod
    def make_box(cls):
        return support.Sandbox(RULES)


class Exchanges(Box):
    def test_keep_alive(self):
        out = self.py(TLS + "r = Reader(s)\nfor i in range(50):\n s.sendall(request('GET', f'/k{i}', 'api.lab.test'))\n"
                      " assert r.response()[0] == 200\nprint('fifty')")
        self.assertEqual(out, "fifty\n")
        self.assertEqual(len(self.seen("http")), 50)

    def test_upstream_connection_is_reused(self):
        """Fifty requests do not need fifty handshakes: the origin's ports tell."""
        began = time.monotonic()
        self.py("for i in range(20):\n assert fetch('api.lab.test', '/r')[0] == 200")
        self.assertLess(time.monotonic() - began, 10 * support.SLOW)

    def test_http10(self):
        out = self.py(TLS + "s.sendall(request('GET', '/old', 'api.lab.test', version='1.0'))\nprint(read_all(s).decode())")
        self.assertIn('"path": "/old"', out)
        self.assertIn(" 200 ", out.split("\r\n")[0])

    def test_http10_without_host(self):
        out = self.py(TLS + "s.sendall(b'GET /older HTTP/1.0\\r\\n\\r\\n')\nprint(read_all(s).decode())")
        self.assertIn('"path": "/older"', out)
        self.assertIn('"Host": "api.lab.test"', out)

    def test_connection_close(self):
        out = self.py(TLS + "s.sendall(request('GET', '/c', 'api.lab.test', 'Connection: close'))\nd = read_all(s)\n"
                      "print(d.lower().count(b'connection: close'), b'Error' in d)")
        self.assertEqual(out, "1 False\n")

    def test_head(self):
        out = self.py(TLS + "r = Reader(s)\ns.sendall(request('HEAD', '/bytes/1000', 'api.lab.test'))\nprint(r.response('HEAD')[1]['content-length'])\n"
                      "s.sendall(request('GET', '/bytes/5', 'api.lab.test'))\nprint(r.response()[2])")
        self.assertEqual(out, "1000\nb'01234'\n")

    def test_204(self):
        out = self.py(TLS + "r = Reader(s)\nfor _ in range(2):\n s.sendall(request('GET', '/status/204', 'api.lab.test'))\n x = r.response()\n print(x[0], x[1].get('transfer-encoding'))")
        self.assertEqual(out, "204 None\n204 None\n")

    def test_chunked_with_trailers(self):
        out = self.py(TLS + "s.sendall(request('GET', '/trailers', 'api.lab.test', 'TE: trailers'))\nr = Reader(s)\nx = r.response()\nprint(x[2], r.trailers)")
        self.assertEqual(out.lower(), "b'body' ['x-sum: 42']\n")

    def test_chunked_request_with_trailers(self):
        out = self.py(TLS + "s.sendall(request('POST', '/t', 'api.lab.test', 'Transfer-Encoding: chunked', body=b'3;ext=1\\r\\nabc\\r\\n2\\r\\nde\\r\\n0\\r\\nX-T: 1\\r\\n\\r\\n'))\n"
                      "print(Reader(s).response()[2].decode())")
        self.assertEqual(json.loads(out)["body"], 5)

    def test_until_close(self):
        out = self.py(TLS + "s.sendall(request('GET', '/until-close', 'api.lab.test'))\nprint(Reader(s).response()[2])")
        self.assertEqual(out, "b'until the end'\n")

    def test_interim(self):
        out = self.py(TLS + "s.sendall(request('GET', '/early', 'api.lab.test'))\nr = Reader(s)\nprint(r.response()[0], r.response()[2])")
        self.assertEqual(out, "103 b'after hints'\n")

    def test_interim_not_to_http10(self):
        out = self.py(TLS + "s.sendall(request('GET', '/early', 'api.lab.test', version='1.0'))\nprint(read_all(s).split()[1])")
        self.assertEqual(out, "b'200'\n")

    def test_expect_continue_after_the_verdict(self):
        out = self.py(TLS + "s.sendall(request('POST', '/e', 'api.lab.test', 'Expect: 100-continue', 'Content-Length: 4'))\nr = Reader(s)\n"
                      "print(r.response()[0])\ns.sendall(b'body')\nprint(r.response()[0])")
        self.assertEqual(out, "100\n200\n")

    def test_expect_continue_denied(self):
        out = self.py(TLS + "s.sendall(request('POST', '/private/e', 'api.lab.test', 'Expect: 100-continue', 'Content-Length: 4'))\nprint(Reader(s).response()[0])")
        self.assertEqual(out, "403\n")
        self.assertEqual(self.seen("http"), [])

    def test_pipelining(self):
        out = self.py(TLS + "s.sendall(b''.join(request('GET', f'/p{i}', 'api.lab.test') for i in range(10)))\nr = Reader(s)\n"
                      "print([json.loads(r.response()[2])['path'] for i in range(10)])")
        self.assertEqual(out, str([f"/p{i}" for i in range(10)]) + "\n")

    def test_pipelining_second_denied(self):
        out = self.py(TLS + "s.sendall(request('GET', '/ok', 'api.lab.test') + request('GET', '/private/x', 'api.lab.test'))\nr = Reader(s)\n"
                      "print(r.response()[0])\nprint(r.response()[2].decode())")
        first, second = out.split("\n", 1)
        self.assertEqual(first, "200")
        body = json.loads(second)
        self.assert_denied(self.box, body)
        self.assertEqual(body["reason"], "Keep out.")
        self.assertEqual([r["path"] for r in self.seen("http")], ["/ok"])

    def test_pipelined_body_is_no_request(self):
        """A body that looks like a request is a body."""
        inner = "GET /private/smuggled HTTP/1.1\\r\\nHost: api.lab.test\\r\\n\\r\\n"
        out = self.py(TLS + f"b = b'{inner}'\ns.sendall(request('POST', '/outer', 'api.lab.test', f'Content-Length: {{len(b)}}', body=b))\nprint(Reader(s).response()[2].decode())")
        self.assertEqual(json.loads(out)["path"], "/outer")
        self.assertEqual([r["path"] for r in self.seen("http")], ["/outer"])

    def test_half_close(self):
        out = self.py("s = connect('plain.lab.test', 80)\ns.sendall(request('GET', '/slow?0.5', 'plain.lab.test'))\ns.shutdown(socket.SHUT_WR)\nprint(read_all(s))")
        self.assertIn("at last", out)

    def test_half_close_within_a_body(self):
        out = self.py("s = connect('plain.lab.test', 80)\ns.sendall(request('POST', '/x', 'plain.lab.test', 'Content-Length: 100') + b'short')\ns.shutdown(socket.SHUT_WR)\nprint(read_all(s))")
        self.assertNotIn("200 OK", out)

    def test_plain(self):
        out = self.py("print(fetch('plain.lab.test', '/plain', port=80, plain=True)[2].decode())")
        self.assertEqual(json.loads(out)["path"], "/plain")

    def test_one_byte_at_a_time(self):
        out = self.py("s = connect('plain.lab.test', 80)\nfor b in request('GET', '/slowly', 'plain.lab.test'):\n s.sendall(bytes([b])); time.sleep(0.002)\nprint(Reader(s).response()[0])")
        self.assertEqual(out, "200\n")

    def test_connection_fields_stay_here(self):
        self.py("fetch('api.lab.test', '/hop', fields=('Connection: close, X-Hop', 'X-Hop: 1', 'Keep-Alive: 5', 'Proxy-Authorization: Basic eA==', 'TE: gzip', 'X-Stays: 1'))")
        names = {h[0].lower() for h in self.seen("http", path="/hop")[0]["headers"]}
        self.assertIn("x-stays", names)
        self.assertFalse(names & {"x-hop", "keep-alive", "proxy-authorization", "proxy-connection"}, names)

    def test_denial_is_a_problem_document(self):
        out = self.py("answered(*fetch('api.lab.test', '/private/a?q=1', 'DELETE'))")
        answer = json.loads(out)
        self.assertEqual(answer["status"], 403)
        self.assertEqual(answer["fields"]["content-type"], "application/problem+json")
        body = json.loads(answer["body"])
        event = self.assert_denied(self.box, body)
        self.assertEqual((event["class_uid"], event["http_request"]["http_method"]), (HTTP, "DELETE"))
        self.assertIn("/private/a", body["detail"])
        self.assertIn("advice", body)
        self.assertIn(body["event"], body["instance"])

    def test_connection_goes_on_after_a_denial(self):
        out = self.py(TLS + "r = Reader(s)\nfor p in ('/private/1', '/fine', '/private/2', '/fine2'):\n s.sendall(request('GET', p, 'api.lab.test'))\n print(r.response()[0])")
        self.assertEqual(out.split(), ["403", "200", "403", "200"])

    def test_event_stream_without_delay(self):
        """The origin sends each event when the one before has been taken: one that waited for company would wait for ever."""
        name = f"taken-{time.monotonic_ns()}"
        out = self.py(TLS + "s.settimeout(50)\n"
                      f"s.sendall(request('GET', '/events?{name}', 'api.lab.test', 'Accept: text/event-stream'))\nr = Reader(s); r.head()\n"
                      "for i in range(5):\n n = int(r.until(b'\\r\\n'), 16); print(r.take(n + 2).split()[1].decode())\n"
                      f" open('{support.LAB.path(name)}.%d' % i, 'w').close()")
        self.assertEqual(out.split(), ["0", "1", "2", "3", "4"])

    def test_request_body_without_delay(self):
        """Bytes that the client writes are passed on before the rest has come."""
        out = self.py("k = 'dGhlIHNhbXBsZSBub25jZQ=='\n" + TLS +
                      "s.sendall(request('GET', '/ws', 'api.lab.test', 'Connection: Upgrade', 'Upgrade: websocket', 'Sec-WebSocket-Version: 13', 'Sec-WebSocket-Key: ' + k))\n"
                      "r = Reader(s); print(r.head()[0])\n"
                      "for i in range(20):\n t = time.monotonic(); s.sendall(b'\\x81\\x85' + bytes(4) + b'hello'); d = r.take(7); print(d, int((time.monotonic() - t) * 1000))")
        lines = out.splitlines()
        self.assertEqual(lines[0], "101")
        self.assertEqual(len(lines), 21)
        for line in lines[1:]:
            self.assertIn("hello", line)
            self.assertLess(int(line.split()[-1]), 100 * support.SLOW)

    def test_websocket_denied(self):
        out = self.py("s = tls('www.lab.test'); s.sendall(request('DELETE', '/ws', 'www.lab.test', 'Connection: Upgrade', 'Upgrade: websocket'))\nprint(Reader(s).response()[0])")
        self.assertEqual(out, "403\n")

class Refused(Box):
    """Heads that another parser might read differently never reach the origin."""

    def check(self, data, *, allowed=(400, 403, 404, 405, 411, 413, 414, 431, 501, 505), plain=True):
        done = self.box.py("s = connect('plain.lab.test', 80, timeout=5)\ns.sendall(bytes.fromhex('" + data.hex() +
                           "'))\ns.settimeout(0.7)\nd = read_all(s)\nprint(d.decode('latin-1'))")
        self.assertEqual(done.status, 0, done)
        status = done.out.split(" ")[1] if done.out.startswith("HTTP/") else "closed"
        self.assertTrue(status == "closed" or int(status) in allowed, f"{data!r}: {done.out[:300]}")
        self.assertEqual([r for r in self.seen("http")], [], data)

    HEADS = {
        "both framings": b"POST /x HTTP/1.1\r\nHost: plain.lab.test\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "two lengths": b"POST /x HTTP/1.1\r\nHost: plain.lab.test\r\nContent-Length: 4\r\nContent-Length: 5\r\n\r\nabcde",
        "length with plus": b"POST /x HTTP/1.1\r\nHost: plain.lab.test\r\nContent-Length: +4\r\n\r\nabcd",
        "length hex": b"POST /x HTTP/1.1\r\nHost: plain.lab.test\r\nContent-Length: 0x4\r\n\r\nabcd",
        "length list": b"POST /x HTTP/1.1\r\nHost: plain.lab.test\r\nContent-Length: 4, 5\r\n\r\nabcde",
        "length huge": b"POST /x HTTP/1.1\r\nHost: plain.lab.test\r\nContent-Length: 99999999999999999999\r\n\r\nabcd",
        "unknown coding": b"POST /x HTTP/1.1\r\nHost: plain.lab.test\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
        "coding after chunked": b"POST /x HTTP/1.1\r\nHost: plain.lab.test\r\nTransfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
        "coding twice": b"POST /x HTTP/1.1\r\nHost: plain.lab.test\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "coding in HTTP/1.0": b"POST /x HTTP/1.0\r\nHost: plain.lab.test\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "space before colon": b"GET /x HTTP/1.1\r\nHost : plain.lab.test\r\n\r\n",
        "folded field": b"GET /x HTTP/1.1\r\nHost: plain.lab.test\r\nX: a\r\n b\r\n\r\n",
        "first field indented": b"GET /x HTTP/1.1\r\n Host: plain.lab.test\r\n\r\n",
        "bare LF": b"GET /x HTTP/1.1\nHost: plain.lab.test\n\n",
        "bare CR": b"GET /x HTTP/1.1\r\nHost: plain.lab.test\r\nX: a\rb\r\n\r\n",
        "NUL in value": b"GET /x HTTP/1.1\r\nHost: plain.lab.test\r\nX: a\x00b\r\n\r\n",
        "NUL in name": b"GET /x HTTP/1.1\r\nHost: plain.lab.test\r\nX\x00: ab\r\n\r\n",
        "no Host": b"GET /x HTTP/1.1\r\n\r\n",
        "two Hosts": b"GET /x HTTP/1.1\r\nHost: plain.lab.test\r\nHost: evil.lab.test\r\n\r\n",
        "two equal Hosts": b"GET /x HTTP/1.1\r\nHost: plain.lab.test\r\nHost: plain.lab.test\r\n\r\n",
        "Host with user": b"GET /x HTTP/1.1\r\nHost: a@plain.lab.test\r\n\r\n",
        "Host with path": b"GET /x HTTP/1.1\r\nHost: plain.lab.test/x\r\n\r\n",
        "Host list": b"GET /x HTTP/1.1\r\nHost: plain.lab.test, evil.lab.test\r\n\r\n",
        "empty Host": b"GET /x HTTP/1.1\r\nHost:\r\n\r\n",
        "other Host": b"GET /x HTTP/1.1\r\nHost: evil.lab.test\r\n\r\n",
        "other port in Host": b"GET /x HTTP/1.1\r\nHost: plain.lab.test:81\r\n\r\n",
        "absolute target of another host": b"GET http://evil.lab.test/x HTTP/1.1\r\nHost: plain.lab.test\r\n\r\n",
        "absolute target of another scheme": b"GET https://plain.lab.test/x HTTP/1.1\r\nHost: plain.lab.test\r\n\r\n",
        "space in target": b"GET /x y HTTP/1.1\r\nHost: plain.lab.test\r\n\r\n",
        "control in target": b"GET /x\x01 HTTP/1.1\r\nHost: plain.lab.test\r\n\r\n",
        "fragment in target": b"GET /x#y HTTP/1.1\r\nHost: plain.lab.test\r\n\r\n",
        "version 2.0": b"GET /x HTTP/2.0\r\nHost: plain.lab.test\r\n\r\n",
        "version 0.9": b"GET /x\r\n\r\n",
        "CONNECT": b"CONNECT evil.lab.test:443 HTTP/1.1\r\nHost: evil.lab.test\r\n\r\n",
        "huge head": b"GET /x HTTP/1.1\r\nHost: plain.lab.test\r\n" + b"X: " + b"a" * 80000 + b"\r\n\r\n",
        "many fields": b"GET /x HTTP/1.1\r\nHost: plain.lab.test\r\n" + b"A: b\r\n" * 20000 + b"\r\n",
        "huge target": b"GET /" + b"x" * 70000 + b" HTTP/1.1\r\nHost: plain.lab.test\r\n\r\n",
        "lower-case method": b"get /x HTTP/1.1\r\nHost: plain.lab.test\r\n\r\n",
        "unknown method with controls": b"G\x7fT /x HTTP/1.1\r\nHost: plain.lab.test\r\n\r\n",
        "HTTP/2 preface": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        "h2c upgrade stays 1.1": b"GET /x HTTP/1.1\r\nHost: evil.lab.test\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA\r\n\r\n",
        "binary": bytes(range(256)),
    }

    def test_chunks(self):
        """Chunked bodies that are malformed end the exchange; the origin never gets a second request out of them."""
        for name, body in {"size with sign": b"+4\r\nabcd\r\n0\r\n\r\n", "size 0x": b"0x4\r\nabcd\r\n0\r\n\r\n",
                           "huge size": b"fffffffffffffffff\r\nabcd\r\n", "no CRLF after data": b"4\r\nabcdX\r\n0\r\n\r\n",
                           "bare LF": b"4\nabcd\n0\n\n", "negative": b"-4\r\nabcd\r\n0\r\n\r\n",
                           "space": b"4 \r\nabcd\r\n0\r\n\r\n",
                           "longer than said": b"4\r\nabcdGET /inner HTTP/1.1\r\nHost: plain.lab.test\r\n\r\n"}.items():
            with self.subTest(body=name):
                self.seen_at = self._seen_size()
                data = b"POST /x HTTP/1.1\r\nHost: plain.lab.test\r\nTransfer-Encoding: chunked\r\n\r\n" + body
                done = self.box.py("s = connect('plain.lab.test', 80, timeout=5)\ns.sendall(bytes.fromhex('" + data.hex() +
                                   "'))\ns.settimeout(2)\nprint(read_all(s)[:60])")
                self.assertNotIn("200 OK", done.out, name)
                self.assertEqual(self.seen("http"), [], name)

def add_refused():
    for name, data in Refused.HEADS.items():
        def test(self, data=data):
            self.check(data)
        setattr(Refused, "test_" + name.replace(" ", "_").replace("/", "").replace(".", "").replace("-", "_"), test)

add_refused()

class Upstream(Box):
    """Origins that break the protocol: the client is told, nothing of the next response is believed."""

    def status(self, path, timeout=20):
        done = self.box.py(f"s = tls('api.lab.test')\ns.settimeout({timeout})\ns.sendall(request('GET', '{path}', 'api.lab.test'))\n"

                           "try:\n x = Reader(s).response(); print(x[0], x[2][:100])\nexcept Exception as e: print('broken', type(e).__name__)")
        self.assertEqual(done.status, 0, done)
        return done.out

    def test_switching_without_being_asked(self):
        self.assertIn("502", self.status("/evil-101"))

    def test_extra_response(self):
        self.assertIn("200 b'ok'", self.status("/evil-extra"))
        self.assertIn('"path": "/after"', self.status("/after").replace("\\", ""))

    def test_short_body(self):
        self.assertIn("broken", self.status("/evil-short"))

    def test_cut_within_tls(self):
        self.assertIn("broken", self.status("/evil-cut"))

    def test_folded_field(self):
        """Folded lines of a response become one (RFC 9112 section 5.2)."""
        done = self.box.py("s = tls('api.lab.test')\ns.sendall(request('GET', '/evil-head', 'api.lab.test'))\n"
                           "print(Reader(s).response()[:2])")
        self.assertIn("200", done.out)
        self.assertIn("'a   b'", done.out)

    def test_two_lengths(self):
        self.assertIn("502", self.status("/evil-length"))

    def test_both_framings(self):
        self.assertIn("502", self.status("/evil-both"))

    def test_bad_chunk(self):
        self.assertRegex(self.status("/evil-chunk"), "502|broken")

    def test_noise(self):
        self.assertIn("502", self.status("/evil-noise"))

    def test_huge_head(self):
        self.assertIn("502", self.status("/evil-big"))

    def test_endless_hints(self):
        """Interim responses without end do not fill memory."""
        pid = self.box.pids()["worker"]
        before = memory_peak_kib(pid)
        self.status("/evil-hints")
        self.assertLess(memory_peak_kib(pid) - before, 32768 * support.PACE)

    def test_silent(self):
        config = support.LAB.write("short.yaml", support.LAB.config("timeouts: {response: 1s, connect: 1s, resolve: 1s}\n"))
        box = self.sandbox(RULES, config=config)
        began = time.monotonic()
        done = box.py("answered(*fetch('api.lab.test', '/evil-silent'))")
        self.assertEqual(done.json()["status"], 504, done)
        self.assertLess(time.monotonic() - began, 5 * support.SLOW)

class Memory(Case):
    CONNECTIONS = 500

    def hold_many(self, box, version):
        """Runs a program that holds many connections, with a request on each. Returns the worker's memory before, and the growth of its peak, in KiB."""
        pid = box.pids()["worker"]
        code = f"""import ssl
context = ssl.create_default_context()
context.maximum_version = ssl.TLSVersion.{version}
held = [context.wrap_socket(connect('api.lab.test', 443), server_hostname='api.lab.test') for _ in range({self.CONNECTIONS})]
for s in held:
    s.sendall(request('GET', '/bytes/10', 'api.lab.test'))
    assert s.recv(12) == b'HTTP/1.1 200'
print(len(held))
"""
        self.assertEqual(box.py("print(fetch('api.lab.test', '/bytes/10')[0])").out, "200\n")
        before, peak = memory_now_kib(pid), memory_peak_kib(pid)
        done = box.py(code, timeout=60)
        self.assertEqual(done.out, f"{self.CONNECTIONS}\n", done)
        return before, memory_peak_kib(pid) - peak

    def test_memory_of_connections(self):
        """A TLS 1.3 connection takes little memory as long as it lasts."""
        _, grown = self.hold_many(self.sandbox(RULES), "TLSv1_3")
        if not ASAN:
            self.assertLess(grown, 7 * self.CONNECTIONS)

    def test_memory_of_http2_connections(self):
        """An idle HTTP/2 connection takes less than half of what nghttp2 asks for."""
        box = self.sandbox(RULES)
        pid = box.pids()["worker"]
        path, host = b"/bytes/10", b"api.lab.test"
        head = b"\x82\x87\x04" + bytes([len(path)]) + path + b"\x01" + bytes([len(host)]) + host
        hello = (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(3) + b"\4\0" + bytes(4) + bytes(3) + b"\4\1" + bytes(4) +
                 len(head).to_bytes(3, "big") + b"\1\5" + (1).to_bytes(4, "big") + head)
        code = f"""import ssl
context = ssl.create_default_context()
context.set_alpn_protocols(['h2'])
held = []
def read(s, n):
    got = b''
    while len(got) < n:
        got += s.recv(n - len(got)) or 1 / 0
    return got
for _ in range({self.CONNECTIONS}):
    s = context.wrap_socket(connect('api.lab.test', 443), server_hostname='api.lab.test')
    assert s.selected_alpn_protocol() == 'h2'
    s.sendall({hello!r})
    held.append(s)
    ended = False
    while not ended:
        frame = read(s, 9)
        read(s, int.from_bytes(frame[:3], 'big'))
        ended = frame[3] == 0 and frame[4] & 1
print(len(held))
"""
        self.assertEqual(box.py("print(fetch('api.lab.test', '/bytes/10')[0])").out, "200\n")
        peak = memory_peak_kib(pid)
        done = box.py(code, timeout=60)
        self.assertEqual(done.out, f"{self.CONNECTIONS}\n", done)
        if not ASAN:
            self.assertLess(memory_peak_kib(pid) - peak, 22 * self.CONNECTIONS)

    def test_memory_of_connections_goes_back(self):
        """TLS 1.2 connections need OpenSSL's buffers. Soon after hundreds of them have ended, the system has their memory again."""
        box = self.sandbox(RULES)
        pid = box.pids()["worker"]
        before, grown = self.hold_many(box, "TLSv1_2")
        if not ASAN:
            self.assertGreater(grown, 10 * self.CONNECTIONS)
            support.wait_until(lambda: memory_now_kib(pid) - before < 2 * self.CONNECTIONS, 20 * support.SLOW)
            self.assertLess(memory_now_kib(pid) - before, 2 * self.CONNECTIONS, "KiB above what it was before")


class Bulk(Case):
    SIZE = 2 << 30 if LONG else 256 << 20

    def test_download(self):
        box = self.sandbox(RULES)
        done = box.sh(f"curl -sS https://api.lab.test/bytes/{self.SIZE} | wc -c", timeout=200)
        self.assertEqual(done.out.strip(), str(self.SIZE), done)
        self.check_memory(box)

    def test_upload(self):
        box = self.sandbox(RULES)
        done = box.sh(f"head -c {self.SIZE} /dev/zero | curl -sS -H 'Expect:' -T - https://api.lab.test/big", timeout=200)
        self.assertEqual(done.json()["body"], self.SIZE, done)
        self.check_memory(box)

    def test_slow_reader(self):
        """A client that does not read holds the origin back instead of filling memory."""
        box = self.sandbox(RULES)
        done = box.py("ss = []\nfor i in range(20):\n s = tls('api.lab.test'); s.sendall(request('GET', '/bytes/50000000', 'api.lab.test')); ss.append(s)\n"
                      "time.sleep(1.5)\nprint('fine')")
        self.assertEqual(done.out, "fine\n", done)
        self.check_memory(box)

    def check_memory(self, box):
        peak = memory_peak_kib(box.pids()["worker"])
        if not ASAN:
            self.assertLess(peak, 20 * 1024, "the worker's peak in KiB")
