# SPDX-License-Identifier: Apache-2.0
"""The gateway hands tunnels over to the session's worker, with their TLS. Whoever holds a connection shows when the gateway dies: what was
handed over goes on, what it relays is cut."""
import hashlib
import os
import ssl

from gateway_case import GATEWAY4, RULES, TLS_PORT, Gatewayed
from support import HTTP, NETWORK, SLOW, wait_until

GET = b"GET /%s HTTP/1.1\r\nHost: plain.lab.test\r\n\r\n"


class HandedOver(Gatewayed):
    rules = (*RULES, "{to: 'https://pass.lab.test', tls: passthrough}", "tcp://tcp.lab.test:2222")

    def connect_head(self, to="plain.lab.test:80"):
        return f"CONNECT {to} HTTP/1.1\r\nHost: x\r\nProxy-Authorization: Bearer {self.token}\r\n\r\n".encode()

    def login(self):
        token = self.token.encode()
        return b"\x05\x01\x02" + b"\x01\x07session" + bytes([len(token)]) + token

    def by_connect(self, tls=True):
        s = self.connect(tls)
        s.sendall(self.connect_head())
        self.assertTrue(self.head(s).startswith(b"HTTP/1.1 200"))
        return s

    def by_socks(self, tls=True):
        s = self.connect(tls)
        s.sendall(self.login() + b"\x05\x01\x00\x03\x0eplain.lab.test\x00\x50")
        answer = b""
        while len(answer) < 14:
            answer += s.recv(14 - len(answer))
        self.assertEqual(answer[:6], b"\x05\x02\x01\x00\x05\x00", answer)
        return s

    def by_old_tls(self):
        context = ssl.create_default_context(cafile=self.certificate + ".pem")
        context.maximum_version = ssl.TLSVersion.TLSv1_2
        s = context.wrap_socket(self.connect(False, port=TLS_PORT), server_hostname="gateway.lab.test")
        self.addCleanup(s.close)
        s.sendall(self.connect_head())
        self.assertTrue(self.head(s).startswith(b"HTTP/1.1 200"))
        return s

    def asks_on(self, s, path=b"x"):
        """The answer's body; None: the connection has ended."""
        try:
            s.sendall(GET % path)
            head = self.head(s)
            length = int(next(line.split(b":")[1] for line in head.split(b"\r\n") if line.lower().startswith(b"content-length")))
            body = b""
            while len(body) < length:
                body += s.recv(length - len(body))
            return body
        except (OSError, StopIteration):
            return None

    def kill_gateway(self):
        pid = self.pid_of("vethguard-gateway")
        os.kill(pid, 9)
        self.assertTrue(wait_until(lambda: self.pid_of("vethguard-gateway") not in (None, pid), 20 * SLOW))

    def test_who_holds_it(self):
        handed = {"CONNECT over TLS": self.by_connect(), "CONNECT": self.by_connect(False), "SOCKS5 over TLS": self.by_socks(),
                  "SOCKS5": self.by_socks(False)}
        url = self.connect()
        proxied = self.connect()
        relayed = {"TLS 1.2": self.by_old_tls(), "base URL": url, "absolute URL": proxied}
        requests = {"base URL": f"GET /s/{self.token}/http/plain.lab.test/x HTTP/1.1\r\nHost: g\r\n\r\n".encode(),
                    "absolute URL": b"GET http://plain.lab.test/x HTTP/1.1\r\nHost: plain.lab.test\r\nProxy-Authorization: Bearer "
                                    + self.token.encode() + b"\r\n\r\n"}
        for name, s in relayed.items():
            s.sendall(requests.get(name, GET % b"x"))
            self.assertTrue(self.head(s).startswith(b"HTTP/1.1 200"), name)
        for name, s in handed.items():
            self.assertIn(b'"/x"', self.asks_on(s) or b"", name)
        self.kill_gateway()
        for name, s in relayed.items():
            self.rest(s)
            self.assertIsNone(self.asks_on(s), name)
        for name, s in handed.items():
            self.assertIn(b'"/x"', self.asks_on(s) or b"", name)
        self.assertEqual(self.daemon.call("DELETE", "/v1/sessions/one")[0], 200)
        for name, s in handed.items():
            self.assertEqual(self.rest(s), b"", name)
            self.assertIsNone(self.asks_on(s), name)

    def test_tls_in_tls(self):
        self.assert_served()
        event = self.daemon.event(HTTP, action_id=1, **{"http_request.url.path": "/whoami"})
        self.assertGreater(event["src_endpoint"]["port"], 0, event)
        size = 3 << 20
        body = os.path.join(self.dir, "body")
        with open(body, "wb") as f:
            f.write(b"x" * size)
        r = self.curl("-p", "--data-binary", f"@{body}", "-o", "/dev/null", "-w", "%{http_code} %{size_upload}", "http://plain.lab.test/upload", seconds=60)
        self.assertEqual(r.stdout, f"200 {size}", r)

    def test_bytes_ahead(self):
        """What comes with the proof, and in the same records, goes first; so does what comes in halves of records."""
        s = self.connect()
        s.sendall(self.connect_head() + GET % b"ahead")
        self.assertTrue(self.head(s).startswith(b"HTTP/1.1 200 Conn"))
        self.assertTrue(self.head(s).startswith(b"HTTP/1.1 200"))
        s = self.connect(False)
        s.sendall(self.connect_head() + GET % b"ahead")
        self.assertTrue(self.head(s).startswith(b"HTTP/1.1 200 Conn"))
        self.assertTrue(self.head(s).startswith(b"HTTP/1.1 200"))
        raw, inner, outer = self.connect(False, port=TLS_PORT), ssl.MemoryBIO(), ssl.MemoryBIO()
        o = ssl.create_default_context(cafile=self.certificate + ".pem").wrap_bio(inner, outer, server_hostname="gateway.lab.test")
        while True:
            try:
                o.do_handshake()
                break
            except ssl.SSLWantReadError:
                raw.sendall(outer.read())
                inner.write(raw.recv(65536))
        for part in (self.connect_head(), GET % b"one", GET % b"two"):
            o.write(part)
        records = outer.read()
        cut = len(records) - 40  # within the last one
        raw.sendall(records[:cut])
        answer = b""
        while b'"/one"' not in answer:
            answer += self.read_some(o, inner, raw)
        raw.sendall(records[cut:])
        while b'"/two"' not in answer:
            answer += self.read_some(o, inner, raw)

    @staticmethod
    def read_some(o, inner, raw):
        while True:
            try:
                return o.read(65536)
            except ssl.SSLWantReadError:
                inner.write(raw.recv(65536))

    def test_relayed_unread(self):
        """Tunnels whose bytes the worker does not read, with TLS around them."""
        r = self.curl("-k", "-w", "%{http_code}", "-o", "/dev/null", "https://pass.lab.test/passed")
        self.assertEqual(r.stdout, "200", r)
        self.assertTrue(self.daemon.event(NETWORK, **{"dst_endpoint.hostname": "pass.lab.test"}))
        s = self.connect()
        s.sendall(self.connect_head("tcp.lab.test:2222"))
        self.assertTrue(self.head(s).startswith(b"HTTP/1.1 200"))
        banner, data, got = b"banner 1.0\r\n", os.urandom(300_000), b""
        for begin in range(0, len(data), 30_000):  # the origin says back what it hears
            s.sendall(data[begin:begin + 30_000])
            while len(got) < len(banner) + begin + 30_000:
                got += s.recv(65536)
        self.assertEqual(hashlib.sha256(got).digest(), hashlib.sha256(banner + data).digest())
        s.unwrap()  # waits for the other side's end of TLS
        event = self.daemon.event(NETWORK, action_id=1, **{"dst_endpoint.port": 2222})
        self.assertEqual((event["traffic"]["bytes_out"], event["traffic"]["bytes_in"]), (len(data), len(got)), event)

    def test_ends(self):
        """The end of TLS is told, both ways."""
        context = ssl.create_default_context(cafile=self.certificate + ".pem")
        s = context.wrap_socket(self.connect(False, port=TLS_PORT), server_hostname="gateway.lab.test", suppress_ragged_eofs=False)
        self.addCleanup(s.close)
        s.sendall(self.connect_head())
        self.assertTrue(self.head(s).startswith(b"HTTP/1.1 200"))
        s.sendall(b"GET /x HTTP/1.1\r\nHost: plain.lab.test\r\nConnection: close\r\n\r\n")
        while s.recv(65536):  # raises where the end is missing
            pass
        s = context.wrap_socket(self.connect(False, port=TLS_PORT), server_hostname="gateway.lab.test", suppress_ragged_eofs=False)
        self.addCleanup(s.close)
        s.sendall(self.connect_head("evil.lab.test:443"))
        answer = b""
        while data := s.recv(65536):
            answer += data
        self.assertTrue(answer.startswith(b"HTTP/1.1 403"), answer)

    def test_garbage(self):
        """Bytes that are no TLS of the connection end it, whatever they ask for."""
        for junk in (GET % b"x", b"\x17\x03\x03\x00\x20" + b"j" * 32, b"\x16\x03\x03\x00\x05hello", b"\x15\x03\x03\x00\x02\x02\x28"):
            s = self.by_connect()
            os.write(s.fileno(), junk)
            self.assertEqual(self.rest(s), b"", junk)
        self.assertIn(b'"/x"', self.asks_on(self.by_connect()))
