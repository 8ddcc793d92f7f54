# SPDX-License-Identifier: Apache-2.0
"""The explicit proxy on the gate's address, as real clients use it and as hostile ones do."""
import json

import support
from support import HTTP, SECRET, policy

RULES = policy("{to: 'https://api.lab.test', credential: api}", "https://www.lab.test", "http://plain.lab.test",
               "tcp://tcp.lab.test:2222", "{to: 'https://pass.lab.test', tls: passthrough}",
               deny=("{to: 'https://www.lab.test', paths: [/private/**]}",), credentials="PLACE")


class Box(support.Boxed):
    @classmethod
    def make_box(cls):
        return support.Sandbox(RULES.replace("PLACE", support.file_credential()))

    def raw(self, data):
        """What the proxy port answers to these bytes."""
        return self.py("s = socket.create_connection((gate(), PROXY_PORT), 5)\ns.sendall(bytes.fromhex('" + data.hex() +
                       f"'))\ns.settimeout({10 * support.SLOW})\nfirst = s.recv(65536)\ns.settimeout(0.7)\nprint((first + read_all(s)).decode('latin-1'))")


class Connect(Box):
    def test_tls_within(self):
        out = self.py("s, status, head = proxy_connect('api.lab.test:443')\nprint(status)\nt = tls('api.lab.test', sock=s)\n"
                      "t.sendall(request('GET', '/whoami', 'api.lab.test'))\nprint(Reader(t).response()[2].decode())")
        self.assertTrue(out.startswith("200\n"))
        self.assertIn('"authenticated": true', out)

    def test_http10_without_host(self):
        out = self.py("s, status, head = proxy_connect('www.lab.test:443', version='1.0', host=False)\nprint(status)\nt = tls('www.lab.test', sock=s)\n"
                      "t.sendall(request('GET', '/x', 'www.lab.test'))\nprint(Reader(t).response()[0])")
        self.assertEqual(out, "200\n200\n")

    def test_host_differs_from_the_authority(self):
        """Real clients send a Host of their own making; the authority counts."""
        out = self.py("s, status, head = proxy_connect('www.lab.test:443', host='proxy.local')\nprint(status)\nt = tls('www.lab.test', sock=s)\n"
                      "t.sendall(request('GET', '/x', 'www.lab.test'))\nprint(Reader(t).response()[0])")
        self.assertEqual(out, "200\n200\n")

    def test_plain_text_within(self):
        out = self.py("s, status, head = proxy_connect('plain.lab.test:80')\nprint(status)\n"
                      "s.sendall(request('GET', '/plain', 'plain.lab.test'))\nprint(Reader(s).response()[0])")
        self.assertEqual(out, "200\n200\n")

    def test_banner_first(self):
        out = self.py("s, status, head = proxy_connect('tcp.lab.test:2222')\nprint(status, s.recv(100))\ns.sendall(b'ping'); print(s.recv(100))")
        self.assertEqual(out, "200 b'banner 1.0\\r\\n'\nb'ping'\n")

    def test_passthrough(self):
        out = self.py("s, status, head = proxy_connect('pass.lab.test:443')\nt = tls('pass.lab.test', sock=s, verify=False)\n"
                      "t.sendall(request('GET', '/p', 'pass.lab.test'))\nprint(status, Reader(t).response()[0])")
        self.assertEqual(out, "200 200\n")

    def test_data_sent_with_the_request(self):
        """The ClientHello in the same segment as CONNECT."""
        out = self.py("s = socket.create_connection((gate(), PROXY_PORT), 5)\n"
                      "i, o = ssl.MemoryBIO(), ssl.MemoryBIO()\nc = ssl.create_default_context().wrap_bio(i, o, server_hostname='www.lab.test')\n"
                      "try: c.do_handshake()\nexcept ssl.SSLWantReadError: pass\n"
                      "s.sendall(b'CONNECT www.lab.test:443 HTTP/1.1\\r\\nHost: www.lab.test:443\\r\\n\\r\\n' + o.read())\n"
                      "d = b''\nwhile b'\\r\\n\\r\\n' not in d: d += s.recv(1)\n"
                      "while True:\n i.write(s.recv(65536))\n try:\n  c.do_handshake(); break\n except ssl.SSLWantReadError: pass\n"
                      "print(d.split()[1], c.getpeercert()['subjectAltName'])")
        self.assertIn("b'200' (('DNS', 'www.lab.test'),)", out)

    def test_denied(self):
        out = self.raw(b"CONNECT evil.lab.test:443 HTTP/1.1\r\nHost: evil.lab.test:443\r\n\r\n")
        head, _, body = out.partition("\r\n\r\n")
        if " 200 " in head.split("\r\n")[0]:
            self.skipTest("the refusal comes within the tunnel")
        # Many clients show nothing else.
        self.assertEqual(head.split("\r\n")[0], "HTTP/1.1 403 Forbidden: Not allowed by the sandbox's network policy")
        self.assert_denied(self.box, json.loads(body))
        self.assertEqual(self.seen("evil"), [])

    def test_denied_in_the_tunnel_or_before(self):
        """However the refusal comes, the client learns why and nothing leaves."""
        out = self.py("s, status, head = proxy_connect('evil.lab.test:443')\nif status == 200:\n t = tls('evil.lab.test', sock=s)\n"
                      " t.sendall(request('GET', '/', 'evil.lab.test')); print(Reader(t).response()[2].decode())\n"
                      "else: print(status)")
        self.assertIn("403", out)
        self.assertEqual(self.seen("evil"), [])

    def test_reason_phrases(self):
        """They are words of ours, whatever was asked for."""
        for target, phrase in ((b"www.lab.test:444", "403 Forbidden: Not allowed by the sandbox's network policy"),
                               (b"evil.lab.test:443%0d%0aX:", "400 Bad Request"), (b"", "400 Bad Request")):
            with self.subTest(target=target):
                out = self.raw(b"CONNECT %s HTTP/1.1\r\nHost: x\r\n\r\n" % target)
                self.assertEqual(out.split("\r\n")[0], "HTTP/1.1 " + phrase)

    def test_denied_port(self):
        for port in (22, 25, 444, 8443):
            out = self.raw(b"CONNECT www.lab.test:%d HTTP/1.1\r\nHost: www.lab.test:%d\r\n\r\n" % (port, port))
            self.assertIn(" 403 ", out.split("\r\n")[0])

    def test_denied_addresses(self):
        for target in ("127.0.0.1:80", "[::1]:80", "169.254.169.254:80", "10.99.0.66:443", "10.99.0.1:22", "0.0.0.0:80",
                       "[::ffff:10.99.0.66]:443", "2130706433:80", "0x7f.1:80", "localhost:80"):
            with self.subTest(target=target):
                out = self.raw(b"CONNECT %s HTTP/1.1\r\nHost: x\r\n\r\n" % target.encode())
                self.assertRegex(out.split("\r\n")[0], " (400|403) ")
        self.assertEqual(self.seen("evil"), [])

    def test_sni_of_another_host(self):
        """The tunnel is for www, the handshake says api: the credential must not go, nor the request."""
        out = self.py("s, status, head = proxy_connect('www.lab.test:443')\ntry:\n t = tls('api.lab.test', sock=s)\n"
                      " t.sendall(request('GET', '/mixed', 'api.lab.test')); print(Reader(t).response()[0])\nexcept (OSError, EOFError) as e: print('closed')")
        self.assertIn(out, ("403\n", "421\n", "closed\n"))
        self.assertEqual(self.seen("http"), [])

    def test_host_of_another_host_within(self):
        out = self.py("s, status, head = proxy_connect('www.lab.test:443')\nt = tls('www.lab.test', sock=s)\n"
                      "t.sendall(request('GET', '/mixed', 'api.lab.test')); print(Reader(t).response()[0])")
        self.assertIn(out, ("403\n", "421\n"))
        self.assertEqual(self.seen("http"), [])

    def test_denied_path_within(self):
        out = self.py("s, status, head = proxy_connect('www.lab.test:443')\nt = tls('www.lab.test', sock=s)\n"
                      "t.sendall(request('GET', '/private/x', 'www.lab.test')); print(Reader(t).response()[2].decode())")
        self.assert_denied(self.box, json.loads(out))
        self.assertEqual(self.seen("http"), [])

    def test_connect_within_connect(self):
        out = self.py("s, status, head = proxy_connect('plain.lab.test:80')\ns.sendall(b'CONNECT evil.lab.test:443 HTTP/1.1\\r\\nHost: evil.lab.test:443\\r\\n\\r\\n')\n"
                      "s.settimeout(1); print(read_all(s)[:20])")
        self.assertNotIn(" 200 ", out)
        self.assertEqual(self.seen("evil"), [])

    def test_no_credential_within_plain_text(self):
        out = self.py("s, status, head = proxy_connect('api.lab.test:443')\nprint(status)\ns.sendall(request('GET', '/whoami', 'api.lab.test'))\n"
                      "s.settimeout(2); print(read_all(s)[:200])")
        self.assertNotIn("true", out)
        self.assert_no_secret_outside()

    def test_malformed(self):
        for line in (b"CONNECT www.lab.test HTTP/1.1", b"CONNECT www.lab.test:0 HTTP/1.1", b"CONNECT www.lab.test:99999 HTTP/1.1",
                     b"CONNECT :443 HTTP/1.1", b"CONNECT / HTTP/1.1", b"CONNECT https://www.lab.test/ HTTP/1.1",
                     b"CONNECT a@www.lab.test:443 HTTP/1.1", b"CONNECT www.lab.test:443x HTTP/1.1", b"CONNECT [www.lab.test]:443 HTTP/1.1",
                     b"CONNECT www.lab.test:443:443 HTTP/1.1", b"CONNECT www.lab.test:+443 HTTP/1.1", b"CONNECT  HTTP/1.1"):
            with self.subTest(line=line):
                out = self.raw(line + b"\r\nHost: www.lab.test:443\r\n\r\n")
                self.assertRegex((out.split("\r\n")[0] or "closed") + " ", "closed| (400|403|502) ")
        self.assertEqual(self.seen("http"), [])

    def test_connect_with_a_body(self):
        out = self.raw(b"CONNECT www.lab.test:443 HTTP/1.1\r\nHost: www.lab.test:443\r\nContent-Length: 40\r\n\r\nGET / HTTP/1.1\r\nHost: www.lab.test\r\n\r\n1234")
        self.assertNotIn('"path"', out)
        self.assertEqual(self.seen("http"), [])


class Absolute(Box):
    def test_http(self):
        out = self.raw(b"GET http://plain.lab.test/abs?q=1 HTTP/1.1\r\nHost: plain.lab.test\r\nConnection: close\r\n\r\n")
        self.assertIn('"path": "/abs?q=1"', out)

    def test_upstream_gets_origin_form(self):
        self.raw(b"GET http://plain.lab.test/abs HTTP/1.1\r\nHost: plain.lab.test\r\nProxy-Connection: keep-alive\r\nProxy-Authorization: Basic eDp5\r\nConnection: close\r\n\r\n")
        row = self.seen("http")[0]
        self.assertEqual(row["path"], "/abs")
        self.assertFalse({"proxy-connection", "proxy-authorization"} & {h[0].lower() for h in row["headers"]})

    def test_target_beats_host(self):
        out = self.raw(b"GET http://plain.lab.test/abs HTTP/1.1\r\nHost: evil.lab.test\r\nConnection: close\r\n\r\n")
        self.assertEqual(self.seen("evil"), [])
        for row in self.seen("http"):
            self.assertIn(["Host", "plain.lab.test"], row["headers"], out)

    def test_other_hosts_on_one_connection(self):
        out = self.raw(b"GET http://plain.lab.test/1 HTTP/1.1\r\nHost: plain.lab.test\r\n\r\nGET http://evil.lab.test/2 HTTP/1.1\r\nHost: evil.lab.test\r\n\r\n")
        self.assertIn(" 200 ", out.split("\r\n")[0])
        self.assertIn(" 403 ", out)
        self.assertEqual(self.seen("evil"), [])

    def test_denied(self):
        out = self.raw(b"GET http://www.lab.test/ HTTP/1.1\r\nHost: www.lab.test\r\n\r\n")
        event = self.assert_denied(self.box, json.loads(out.partition("\r\n\r\n")[2].splitlines()[0]))
        self.assertEqual(event["class_uid"], HTTP)
        self.assertEqual(self.seen("http"), [])

    def test_https_target(self):
        out = self.raw(b"GET https://api.lab.test/whoami HTTP/1.1\r\nHost: api.lab.test\r\n\r\n")
        self.assertRegex(out.split("\r\n")[0], " (400|403) ")
        self.assert_no_secret(out)
        self.assertEqual(self.seen("http"), [])

    def test_other_schemes(self):
        for target in (b"ftp://plain.lab.test/", b"file:///etc/passwd", b"gopher://plain.lab.test/", b"http:///x", b"http://",
                       b"HTTP//plain.lab.test/", b"http://a:b@plain.lab.test/", b"http:plain.lab.test", b"*", b"plain.lab.test/x"):
            with self.subTest(target=target):
                out = self.raw(b"GET " + target + b" HTTP/1.1\r\nHost: plain.lab.test\r\n\r\n")
                self.assertRegex((out.split("\r\n")[0] or "closed") + " ", "closed| (400|403) ")
        self.assertEqual(self.seen("http"), [])

    def test_origin_form(self):
        out = self.raw(b"GET / HTTP/1.1\r\nHost: plain.lab.test\r\n\r\n")
        self.assertRegex(out.split("\r\n")[0], " (400|403) ")

    def test_addresses(self):
        for host in ("127.0.0.1", "[::1]", "169.254.169.254", "10.99.0.66", "127.1", "0", "localhost", "017700000001"):
            with self.subTest(host=host):
                out = self.raw(f"GET http://{host}/ HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
                self.assertRegex(out.split("\r\n")[0], " (400|403) ")
        self.assertEqual(self.seen("evil"), [])

    def test_tls_on_the_proxy_port(self):
        out = self.py("s = socket.create_connection((gate(), PROXY_PORT), 5)\ntry:\n t = tls('api.lab.test', sock=s); t.sendall(request('GET', '/whoami', 'api.lab.test')); print(t.recv(100))\n"
                      "except OSError as e: print('refused')")
        self.assertNotIn("200", out)
        self.assertNotIn(SECRET, out)


class Gate(Box):
    def test_other_ports_of_the_gate(self):
        """Nothing else listens there: other connections to the gate's own address are refused."""
        out = self.py("import errno\nfor p in (22, 80, 443, 3127, 3129, 8080):\n try:\n  s = socket.create_connection((gate(), p), 3); s.sendall(b'GET / HTTP/1.1\\r\\nHost: %s\\r\\n\\r\\n' % gate().encode()); print(p, s.recv(20))\n"
                      " except OSError as e: print(p, errno.errorcode.get(e.errno, e))")
        self.assertNotIn(" 200", out)
