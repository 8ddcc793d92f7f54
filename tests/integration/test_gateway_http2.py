# SPDX-License-Identifier: Apache-2.0
"""The gateway in HTTP/2: tunnels, requests and base URLs as streams, each with a proof of its own, and what is refused."""
import contextlib
import json
import os
import signal
import socket
import ssl
import time
import unittest

import h2frames
import support
from gateway_case import CLIENT4, GATEWAY4, TLS_PORT, Gatewayed, basic
from h2frames import PREFACE, Peer, continuation, data, frame, headers, literal, ping, rst_stream, settings, table_size
from support import HTTP, SLOW, wait_until
from test_gateway import places_of

NODE = """
const http2 = require('http2'), tls = require('tls'), fs = require('fs');
const [host, outer, inner, ...tokens] = process.argv.slice(1);
const c = http2.connect(`https://${host}:%d`, {ca: fs.readFileSync(outer)});
let left = tokens.length;
const done = (i, what) => { console.log(i, what); if (!--left) c.close(); };
tokens.forEach((token, i) => {
  const s = c.request({':method': 'CONNECT', ':authority': 'api.lab.test:443',
                       ...(token ? {'proxy-authorization': 'Bearer ' + token} : {})});
  s.on('response', (head) => {
    if (head[':status'] != 200) { s.close(); return done(i, head[':status']); }
    const t = tls.connect({socket: s, servername: 'api.lab.test', ca: fs.readFileSync(inner)}, () =>
      t.write('GET /whoami HTTP/1.1\\r\\nHost: api.lab.test\\r\\nConnection: close\\r\\n\\r\\n'));
    let text = '';
    t.on('data', (d) => text += d);
    t.on('end', () => done(i, text.includes('"authenticated": true') ? 'served' : text));
  });
});
""" % TLS_PORT


def block(fields):
    """Begins a block with table size 0, because the gateway allows no dynamic table (RFC 7541 section 4.2)."""
    return table_size(0) + h2frames.block(fields)


class Http2(Gatewayed):
    """Frames by hand, over TLS from the host itself."""
    options = "  client_certificates: true\n  base_urls: {plain.gateway.test: 'http://plain.lab.test'}\n"

    def setUp(self):
        super().setUp()
        self.assert_served()
        self.number = -1

    def peer(self, preface=True, certificate=None, **kw):
        context = ssl.create_default_context(cafile=self.certificate + ".pem")
        context.set_alpn_protocols(["h2", "http/1.1"])
        if certificate:
            context.load_cert_chain(certificate + ".pem", certificate + ".key")
        s = context.wrap_socket(socket.create_connection((GATEWAY4, TLS_PORT), timeout=20 * SLOW), server_hostname="gateway.lab.test")
        self.addCleanup(s.close)
        self.assertEqual(s.selected_alpn_protocol(), "h2")
        p = Peer(s, **kw)
        self.number = -1
        if preface:
            p.send(PREFACE)
            p.send_settings()
        return p

    def proof(self, token=None):
        return ("proxy-authorization", f"Bearer {self.token if token is None else token}")

    def open(self, p, fields, body=None, end=True):
        """Opens the next stream. Returns its number."""
        self.number += 2
        p.stream(self.number)
        p.opened = self.number
        p.send(headers(self.number, block(fields), end_stream=body is None and end))
        if body is not None:
            self.assertTrue(p.send_body(self.number, body, end))
        return self.number

    def get(self, path="/x", *more, scheme="http", authority="plain.lab.test", method="GET"):
        return [(":method", method), (":scheme", scheme), (":authority", authority), (":path", path), *more]

    def answer(self, p, number, seconds=20):
        s = p.stream(number)
        self.assertTrue(p.wait(s.over, seconds * SLOW), (s.heads, p.goaways, self.daemon.stderr()))
        self.assertEqual(p.violations, [])
        return s

    def fetch(self, p, *fields, body=None):
        return self.answer(p, self.open(p, *fields, body=body))

    def assert_good(self, p, why=""):
        self.assertEqual(self.fetch(p, self.get("/good", self.proof())).status(), 200, why)

    def test_requests(self):
        p = self.peer()
        s = self.fetch(p, self.get("/x?y", self.proof(), ("x-is", "here"), ("cookie", "a=1"), ("cookie", "b=2"), ("te", "trailers")))
        self.assertEqual((s.status(), s.reset in (None, "NO_ERROR")), (200, True), s.heads)
        told = json.loads(bytes(s.body))
        fields = {n.lower(): v for n, v in told["headers"].items()}
        self.assertEqual((told["path"], fields["x-is"], fields["cookie"]), ("/x?y", "here", "a=1; b=2"), told)
        self.assertFalse({"proxy-authorization", "te"} & set(fields), told)
        for body in (b"", b"x", b"y" * 200000):
            for more in ((), (("content-length", str(len(body))),)):
                s = self.fetch(p, self.get("/post", self.proof(), *more, method="POST"), body=body or None)
                self.assertEqual(s.status(), 200, (len(body), more, s.heads, s.reset))
        s = self.fetch(p, self.get("/x", self.proof(), method="HEAD"))
        self.assertEqual((s.status(), bytes(s.body)), (200, b""))
        self.assertEqual(self.fetch(p, self.get("/status/204", self.proof())).status(), 204)
        self.assertEqual(self.fetch(p, self.get("/x", self.proof(), authority="evil.lab.test")).status(), 403)
        event = self.daemon.event(HTTP, action_id=1, **{"http_request.url.path": "/x"})
        self.assertEqual(event["dst_endpoint"]["hostname"], "plain.lab.test", event)

    def test_large_and_slow(self):
        """A stream whose client takes nothing keeps no other one waiting, and is whole in the end."""
        p = self.peer()
        stuck = self.open(p, self.get("/bytes/2000000", self.proof()))
        p.grant(0, 1 << 24)
        self.assertTrue(p.wait(lambda: len(p.stream(stuck).body) >= 65535, 20 * SLOW))
        for i in range(5):
            self.assert_good(p, i)
        self.assertFalse(p.stream(stuck).over())
        p.grant(stuck, 1 << 24)
        self.assertEqual(len(self.answer(p, stuck).body), 2000000)

    def test_tunnels(self):
        p = self.peer()
        connect = [(":method", "CONNECT"), (":authority", "plain.lab.test:80")]
        numbers = [self.open(p, connect + [self.proof()], end=False) for _ in range(10)]
        for n in numbers:
            self.assertTrue(p.wait(lambda n=n: p.stream(n).status() == 200, 20 * SLOW), p.stream(n).heads)
            self.assertNotIn("content-length", p.stream(n).final())
            p.send_body(n, f"GET /t{n} HTTP/1.1\r\nHost: plain.lab.test\r\nConnection: close\r\n\r\n".encode(), end=False)
        for n in numbers:
            self.assertIn(f'"/t{n}"'.encode(), self.answer(p, n).body)
        n = self.open(p, connect + [self.proof()], end=False)
        self.assertTrue(p.wait(lambda: p.stream(n).status() == 200, 20 * SLOW))
        p.send(rst_stream(n))
        self.assert_good(p, "after a reset")
        for fields, status in ((connect, 407), (connect + [self.proof("wrong")], 407), (connect + [("proxy-authorization", "Digest x")], 407),
                               ([connect[0], (":authority", "evil.lab.test:443"), self.proof()], 403),
                               ([connect[0], (":authority", "plain.lab.test"), self.proof()], 400)):
            s = self.fetch(p, fields)
            self.assertEqual(s.status(), status, fields)
            if status == 407:
                self.assertIn(("proxy-authenticate", 'Bearer realm="vethguard"'), s.heads[-1])

    def test_proofs(self):
        """Each stream proves its own session; one that was revoked ends at once, and no other."""
        other = self.create("other")["token"]
        p = self.peer()
        connect = [(":method", "CONNECT"), (":authority", "plain.lab.test:80")]
        one, two = (self.open(p, connect + [self.proof(t)], end=False) for t in (self.token, other))
        for n in (one, two):
            self.assertTrue(p.wait(lambda n=n: p.stream(n).status() == 200, 20 * SLOW))
        self.assertEqual(self.fetch(p, self.get("/x")).status(), 407)
        begun = time.monotonic()
        self.assertEqual(self.fetch(p, self.get("/x", self.proof("wrong"))).status(), 407)
        self.assertGreaterEqual(time.monotonic() - begun, 0.24)
        self.assertEqual(self.fetch(p, self.get("/x", ("proxy-authorization", basic(other)))).status(), 200)
        self.assertEqual(self.daemon.call("DELETE", "/v1/sessions/other")[0], 200)
        self.assertTrue(p.wait(lambda: p.stream(two).reset == "CANCEL", 5 * SLOW), p.stream(two).reset)
        self.assertEqual(self.fetch(p, self.get("/x", self.proof(other))).status(), 407)
        self.assertFalse(p.stream(one).over())
        p.send_body(one, b"GET /still HTTP/1.1\r\nHost: plain.lab.test\r\nConnection: close\r\n\r\n", end=False)
        self.assertIn(b'"/still"', self.answer(p, one).body)

    def test_base_urls(self):
        p = self.peer()
        here = {"scheme": "https", "authority": f"{GATEWAY4}:{TLS_PORT}"}
        s = self.fetch(p, self.get(f"/s/{self.token}/http/plain.lab.test/by-url", **here))
        self.assertEqual((s.status(), json.loads(bytes(s.body))["path"]), (200, "/by-url"), s.heads)
        s = self.fetch(p, self.get("/by-name", ("authorization", f"Bearer {self.token}"), scheme="https", authority="plain.gateway.test"))
        self.assertEqual((s.status(), json.loads(bytes(s.body))["path"]), (200, "/by-name"), s.heads)
        for path, status in (("/s/wrong/http/plain.lab.test/", 401), ("/", 400), (f"/s/{self.token}/http/plain.lab.test/../x", 400),
                             (f"/s/{self.token}/https/evil.lab.test/", 403)):
            self.assertEqual(self.fetch(p, self.get(path, **here)).status(), status, path)
        self.assertEqual(self.fetch(p, self.get("/", self.proof(), scheme="https", authority="plain.lab.test")).status(), 400)

    def test_malformed(self):
        """Only the malformed stream is refused; the connection serves on."""
        p = self.peer()
        good = self.get("/x", self.proof())
        cases = [good + [("x-a", "b\r\nx-c: d")], good + [("x a", "b")], good + [("X-A", "b")], good + [("connection", "close")],
                 good + [("transfer-encoding", "chunked")], good + [("te", "gzip")], good + [("host", "other.lab.test")],
                 good + [(":path", "/y")], good[:3] + good[4:] + [good[3]], good[1:], good[:3] + [self.proof()],
                 self.get("x", self.proof()), self.get("/a b", self.proof()), self.get("*", self.proof(), method="OPTIONS"),
                 self.get("/x", self.proof(), scheme="ftp"), self.get("/x", self.proof(), authority="a b"),
                 self.get("/x", self.proof(), ("content-length", "5")), self.get("/x", self.proof(), ("content-length", "x")),
                 [(":method", "CONNECT"), (":authority", "plain.lab.test:80"), (":path", "/"), self.proof()],
                 [(":method", "CONNECT"), (":protocol", "websocket"), *good[1:]], [(":method", "CONNECT"), self.proof()]]
        for fields in cases:
            s = self.fetch(p, fields)
            self.assertEqual((s.reset, s.status()), ("PROTOCOL_ERROR", None), (fields, s.heads))
        for fields, status in ((good + [self.proof()], 400), (good + [("x-" + "n" * 17000, "")], 431), (good + [("x", "y" * 15000), ("z", "y" * 5000)], 431),
                               (good + [(f"x-{i}", "") for i in range(130)], 431)):
            self.number += 2
            p.opened = self.number
            p.stream(self.number)
            text = block(fields)
            p.send(headers(self.number, text[:16000], end_headers=len(text) <= 16000) +
                   (continuation(self.number, text[16000:]) if len(text) > 16000 else b""))
            self.assertEqual(self.answer(p, self.number).status(), status, fields[-1][0][:10])
        self.assert_good(p)
        n = self.open(p, self.get("/post", self.proof(), ("content-length", "3"), method="POST"), end=False)
        p.send(data(n, b"four", True))
        self.assertEqual(self.answer(p, n).reset, "PROTOCOL_ERROR")
        self.assert_good(p)

    def test_connection_ends(self):
        """What ends the connection, before and after a proof: with GOAWAY, or at once; the gateway serves others."""
        large = literal("x", "y" * 16000)

        def flood(p, make, count=20000, size=50):
            sent = p.send_flood(b"".join(make(i) for i in range(at, at + size)) for at in range(0, count, size)) * size
            p.wait(lambda: p.closed, 10 * SLOW)
            return sent

        one = block(self.get("/x", self.proof()))
        floods = {"ping": lambda i: ping(), "settings": lambda i: settings(), "empty": lambda i: data(1, b""),
                  "reset": lambda i: headers(2 * i + 3, one) + rst_stream(2 * i + 3), "priority": lambda i: frame("PRIORITY", 2 * i + 3, 0, bytes(5)),
                  "unproved": lambda i: headers(2 * i + 3, block(self.get("/x"))) + rst_stream(2 * i + 3)}
        for name, make in floods.items():
            p = self.peer()
            p.opened = 1 << 20
            p.stream(1)
            p.send(headers(1, block([(":method", "CONNECT"), (":authority", "plain.lab.test:80"), self.proof()]), end_stream=False))
            self.assertTrue(p.wait(lambda: p.stream(1).status() == 200, 20 * SLOW), name)
            self.assertLess(flood(p, make), 20000, name)
            self.assertTrue(p.closed, name)
        for name, text in {"unpacks": table_size(0) + large * 8, "garbage": b"\xff" * 30, "index": b"\xff\xff\xff\x0f"}.items():
            p = self.peer()
            p.send(headers(1, text[:16000], end_headers=False) + b"".join(
                continuation(1, text[at:at + 16000], at + 16000 >= len(text)) for at in range(16000, max(len(text), 16001), 16000)))
            self.assertTrue(p.wait(lambda p=p: p.closed, 10 * SLOW), name)
        for name, text in {"no preface": b"GET / HTTP/1.1\r\nHost: x\r\n\r\n" + bytes(100), "half": PREFACE[:10] + b"X" * 40,
                           "large frame": PREFACE + settings() + frame("DATA", 1, 0, bytes(17000)), "push": PREFACE + settings() + frame("PUSH_PROMISE", 1, 4, bytes(8)),
                           "even stream": PREFACE + settings() + headers(2, one), "data first": PREFACE + settings() + data(1, b"x")}.items():
            p = self.peer(preface=False)
            p.opened = 10
            p.send(text)
            self.assertTrue(p.wait(lambda p=p: p.closed, 10 * SLOW), name)
        self.assert_good(self.peer())

    def test_before_the_proof(self):
        """Without a proof a connection lasts no longer than any other, and has room for no more."""
        begun = time.monotonic()
        silent, idle, asking = self.peer(preface=False), self.peer(), self.peer()
        asking.stream(1)
        asking.opened = 1
        asking.send(headers(1, block(self.get("/x", method="POST")), end_stream=False, end_headers=False))
        for p in (silent, idle, asking):
            self.assertTrue(p.wait(lambda p=p: p.closed, 20 * SLOW))
        self.assertGreater(time.monotonic() - begun, 1.5)
        p = self.peer()
        p.opened = 1 << 20
        p.send_flood(frame(0x42, 0, 0, bytes(16000)) for _ in range(100))
        self.assertTrue(p.wait(lambda: p.closed, 10 * SLOW))
        kept = self.peer()
        self.assert_good(kept)
        time.sleep(3)  # longer than `handshake`
        self.assert_good(kept)

    def test_many(self):
        """As many streams as are announced are served; a client that opens more of them breaks the protocol."""
        p = self.peer()
        p.grant(0, 1 << 24)
        self.assertTrue(p.wait(lambda: p.settings is not None and p.settings_acks, 10 * SLOW))
        self.assertEqual((p.settings[3], p.settings[1]), (100, 0))
        numbers = [self.open(p, self.get(f"/m{i}", self.proof())) for i in range(100)]
        self.assertEqual([self.answer(p, n).status() for n in numbers], [200] * 100)
        connect = [(":method", "CONNECT"), (":authority", "plain.lab.test:80"), self.proof()]
        numbers = [self.open(p, connect, end=False) for _ in range(100)]
        self.assertTrue(p.wait(lambda: all(p.stream(n).status() == 200 for n in numbers), 20 * SLOW))
        self.open(p, connect, end=False)
        self.assertTrue(p.wait(lambda: p.closed, 10 * SLOW))
        self.assertEqual(p.failed(), "PROTOCOL_ERROR")

    def test_upgrade(self):
        """Another daemon takes over: streams that have begun go on, and further ones need a new connection."""
        p = self.peer()
        tunnel = self.open(p, [(":method", "CONNECT"), (":authority", "plain.lab.test:80"), self.proof()], end=False)
        self.assertTrue(p.wait(lambda: p.stream(tunnel).status() == 200, 20 * SLOW))
        self.assert_good(p)
        before = self.daemon.process.pid
        os.kill(before, signal.SIGUSR2)
        self.assertTrue(p.wait(lambda: p.goaways, 30 * SLOW), self.daemon.stderr())
        self.assertTrue(wait_until(lambda: self.answering() not in (None, before), 30 * SLOW), self.daemon.stderr())
        self.addCleanup(self.finish, self.answering())
        p.send_body(tunnel, b"GET /t HTTP/1.1\r\nHost: plain.lab.test\r\nConnection: close\r\n\r\n", end=False)
        self.assertIn(b'"/t"', self.answer(p, tunnel).body)
        self.assert_good(self.peer(), "a new connection")

    def answering(self):
        try:
            return self.daemon.call("GET", "/v1/status")[2]["processes"]["supervisor"]
        except (OSError, KeyError):
            return None

    @staticmethod
    def finish(pid):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)
            wait_until(lambda: not os.path.exists(f"/proc/{pid}"), 30 * SLOW)

    def test_certificate(self):
        path = os.path.join(self.dir, "agent")
        support.sh("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "30", "-keyout", path + ".key",
                   "-out", path + ".pem", "-subj", "/CN=agent")
        out = support.sh("openssl", "x509", "-in", path + ".pem", "-noout", "-fingerprint", "-sha256")
        self.create("by-certificate", certificate_sha256=(out if isinstance(out, str) else out.stdout).strip().split("=")[1].replace(":", "").lower())
        p = self.peer(certificate=path)
        self.assertEqual(self.fetch(p, self.get("/x")).status(), 200)
        self.assertEqual(self.fetch(p, self.get("/x", self.proof("wrong"))).status(), 407)
        self.assertEqual(self.fetch(self.peer(), self.get("/x")).status(), 407)

    def test_node(self):
        r = self.there("node", "-e", NODE, GATEWAY4, self.certificate + ".pem", self.ca, self.token, "wrong", "", self.token)
        self.assertEqual(sorted(r.stdout.split("\n")), ["", "0 served", "1 407", "2 407", "3 served"], r)
        self.assertEqual(self.daemon.event(HTTP, action_id=1, **{"http_request.url.path": "/whoami"})["src_endpoint"]["ip"], CLIENT4)

    def test_curl_by_base_url(self):
        r = self.there("curl", "-sS", "--http2", "-m", "20", "--cacert", self.certificate + ".pem", "-w", "%{http_version}",
                       f"https://{GATEWAY4}:{TLS_PORT}/s/{self.token}/http/plain.lab.test/curl", "-d", "x" * 100000)
        self.assertTrue(r.stdout.endswith("2") and '"/curl"' in r.stdout, r)

    @unittest.skipIf(support.ASAN, "an instrumented program's memory is too large to be read")
    def test_memory(self):
        """A token is in no memory of the gateway once its stream has begun."""
        p = self.peer()
        self.assertTrue(p.wait(lambda: p.settings_acks, 10 * SLOW))
        kept = [self.open(p, [(":method", "CONNECT"), (":authority", "plain.lab.test:80"), self.proof()], end=False) for _ in range(2)]
        for n in kept:
            self.assertTrue(p.wait(lambda n=n: p.stream(n).status() == 200, 20 * SLOW))
        self.assert_good(p)
        self.assertEqual(self.fetch(p, self.get("/x", self.proof(self.token + "x"))).status(), 407)
        self.assertEqual(places_of(self.pid_of("vethguard-gateway"), self.token[4:].encode()), [])
