# SPDX-License-Identifier: Apache-2.0
"""A server sends a credential back: in sixteen spellings, in twelve places of a response, each response in two pieces (a range: in two
responses). No run of more than four of the credential's bytes arrives. With VETHGUARD_LONG=1 (`make check-reflections`) the responses are cut
at every byte of the spelling, otherwise at every eleventh."""
import base64
import json
import os
import re
import socket
import socketserver
import ssl
import threading
import unittest
import urllib.parse

import codings
import lab
import support
from support import policy

PORT, HOST = 8453, "reflect.wild.lab.test"
VALUE = "tok3n/Of+The=Battery-7gQz"
RUN = 5  # so many consecutive bytes of it must not arrive
STEP = 1 if os.environ.get("VETHGUARD_LONG") else 11

SPELLINGS = {
    "plain": lambda v: v, "bearer": lambda v: b"Bearer " + v, "twice": lambda v: v + v, "prefix": lambda v: v[:4] + v, "prefixes": lambda v: v[:3] + v[:4] + v,
    "percent": lambda v: urllib.parse.quote(v, safe="").encode(),
    "percent lower": lambda v: re.sub(rb"%..", lambda m: m[0].lower(), urllib.parse.quote(v, safe="").encode()), "percent all": lambda v: b"".join(b"%%%02X" % b for b in v),
    "json": lambda v: b"".join(b"\\u%04x" % b for b in v), "json slash": lambda v: v.replace(b"/", b"\\/"), "mixed": lambda v: b"%74" + v[1:8] + b"".join(b"\\u%04X" % b for b in v[8:]),
    "base64": lambda v: base64.b64encode(v), "base64 behind one": lambda v: base64.b64encode(b"x" + v), "base64 behind two": lambda v: base64.b64encode(b"xy" + v),
    "base64url": lambda v: base64.urlsafe_b64encode(b"\xff" + v), "basic": lambda v: base64.b64encode(b"user:" + v),
}
PLACES = ("length", "chunked", "close", *codings.CODINGS, "field", "trailer", "range to", "range from")


def packed(spelling, place, value):
    return codings.CODINGS[place][1](b"before " + SPELLINGS[spelling](value) + b" after")


def response(spelling, place, cut, value):
    """Returns the pieces of the response, and whether the connection ends with it."""
    text = SPELLINGS[spelling](value)
    if place in codings.CODINGS:
        data = packed(spelling, place, value)
        return [b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Encoding: %s\r\nContent-Length: %d\r\n\r\n" %
                (codings.CODINGS[place][0].encode(), len(data)) + data[:cut], data[cut:]], False
    at = cut % (len(text) + 1)
    first, second = b"before " + text[:at], text[at:] + b" after"
    if place == "length":
        head = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n" % len(first + second)
        return [head + first, second], False
    if place == "chunked":
        return [b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n" % (len(first), first),
                b"%x\r\n%s\r\n0\r\n\r\n" % (len(second), second)], False
    if place == "close":
        return [b"HTTP/1.1 401 Unauthorized\r\nConnection: close\r\nContent-Type: text/html\r\n\r\n" + first, second], True
    if place == "field":
        return [b"HTTP/1.1 200 OK\r\nX-Echo: " + first, second + b"\r\nLocation: /x?t=%s\r\nContent-Length: 0\r\n\r\n" % text.replace(b" ", b"+")], False
    return [b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\nX-Echo: " + first, second + b"\r\n\r\n"], False


def part(spelling, wanted, value):
    """The response to a request for a range, as a file server gives it."""
    text = b"before " + SPELLINGS[spelling](value) + b" after"
    first, last = int(wanted[1]), min(int(wanted[2] or len(text)), len(text) - 1)
    return [b"HTTP/1.1 206 Partial Content\r\nContent-Range: bytes %d-%d/%d\r\nContent-Length: %d\r\n\r\n" % (first, last, len(text), last - first + 1),
            text[first:last + 1]], False


class Handler(socketserver.StreamRequestHandler):
    def handle(self):
        while True:
            head = b""
            while not head.endswith(b"\r\n\r\n"):
                line = self.rfile.readline(65536)
                if not line:
                    return
                head += line
            wanted = re.search(rb"(?i)\r\nrange: bytes=(\d+)-(\d*)\r", head)
            value = re.search(rb"(?i)\r\nauthorization: bearer ([^\r]+)", head)[1]
            spelling, place, cut = urllib.parse.unquote(head.split(b" ")[1].decode()).split("/")[1:]
            pieces, ends = part(spelling, wanted, value) if place.startswith("range") else response(spelling, place, int(cut), value)
            for piece in pieces:
                self.request.sendall(piece)
            if ends:
                return


class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = daemon_threads = True

    def __init__(self):
        super().__init__((lab.ORIGIN4, PORT), Handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(support.LAB.path("server.pem"), support.LAB.path("server.key"))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket = context.wrap_socket(self.socket, server_side=True, do_handshake_on_connect=False)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def handle_error(self, *_):
        """Ignores errors: the tests end connections."""


INSIDE = """
import base64, json, urllib.parse
got, s, r = [], None, None
for way in json.loads(WAYS):
    if s is None:
        s = tls(HOST, PORT)
        s.settimeout(20)
    at = int(way[2]) + len('before ')
    asks = {'range to': f'Range: bytes=0-{at - 1}', 'range from': f'Range: bytes={at}-'}.get(way[1], 'Accept-Encoding: gzip, deflate, br, zstd')
    s.sendall(request('GET', '/' + '/'.join(urllib.parse.quote(w, safe='') for w in way), f'{HOST}:{PORT}', asks, 'TE: trailers'))
    data = b''
    while True:
        piece = s.recv(65536)
        data += piece
        head, found, body = data.partition(b'\\r\\n\\r\\n')
        low = head.lower()
        if not piece:
            break
        if not found or low.startswith(b'http/1.1 1'):
            continue
        if b'transfer-encoding: chunked' in low:
            last = data.rfind(b'\\r\\n0\\r\\n')
            if last >= 0 and data.endswith(b'\\r\\n\\r\\n') and len(data) >= last + 7:
                break
        elif b'content-length: ' in low:
            if len(body) >= int(low.split(b'content-length: ')[1].split(b'\\r')[0]):
                break
    if not piece or b'connection: close' in low:
        s.close()
        s = None
    got.append(base64.b64encode(data).decode())
print(json.dumps(got))
"""


def unchunked(data):
    head, _, body = data.partition(b"\r\n\r\n")
    if b"transfer-encoding: chunked" not in head.lower():
        return data, body
    text, rest = b"", body
    while rest:
        size, _, rest = rest.partition(b"\r\n")
        n = int(size or b"0", 16)
        if not n:
            break
        text, rest = text + rest[:n], rest[n + 2:]
    return head + text + rest, text


def exposed(data, value):
    """Returns the first run of the value that can be read in the received data, in any spelling, or None."""
    data, body = unchunked(data)
    views = [data]
    coding = re.search(rb"(?i)\r\ncontent-encoding: ([a-z]+)", data)
    if coding:
        views += codings.views(body, coding[1].decode())
    for v in list(views):
        views.append(urllib.parse.unquote_to_bytes(v))
        views.append(re.sub(rb"\\u00([0-9a-fA-F]{2})", lambda m: bytes.fromhex(m[1].decode()), v).replace(b"\\/", b"/"))
        for word in re.findall(rb"[A-Za-z0-9+/_-]{7,}", v):
            word = word.replace(b"-", b"+").replace(b"_", b"/")
            for skip in range(4):
                part = word[skip:]
                views.append(base64.b64decode(part[:len(part) // 4 * 4]))
    runs = [value[i:i + RUN] for i in range(len(value) - RUN + 1)]
    return next((r for r in runs if any(r in v for v in views)), None)


class Reflections(support.Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.server = support.in_namespace("outside", Server)
        cls.path = support.LAB.write("reflected", VALUE + "\n", 0o600)

    @classmethod
    def tearDownClass(cls):
        cls.server.shutdown()
        cls.server.server_close()
        super().tearDownClass()

    def test_what_the_battery_finds(self):
        """exposed() finds the value in every response as the server sends it; otherwise the battery could not fail."""
        for spelling in SPELLINGS:
            for place in PLACES:
                whole = re.match(rb"(0)-()", b"0-")
                pieces, _ = part(spelling, whole, VALUE.encode()) if place.startswith("range") else response(spelling, place, 7, VALUE.encode())
                self.assertIsNotNone(exposed(b"".join(pieces), VALUE.encode()), (spelling, place))

    def test_every_way_cut_at_every_byte(self):
        self.assertGreaterEqual(len(SPELLINGS) * len(PLACES), 60)
        box = support.Sandbox(policy(f"{{to: 'https://{HOST}:{PORT}', credential: api}}", credentials=f"  api: {{source: 'file:{self.path}', inject: bearer}}\n"))
        self.addCleanup(box.close)
        bodies = {}
        for place in PLACES:
            def length(spelling):
                return len(packed(spelling, place, VALUE.encode()) if place in codings.CODINGS else SPELLINGS[spelling](VALUE.encode()))
            ways = [(s, place, str(cut)) for s in SPELLINGS for cut in range(0, length(s) + 1, STEP)]
            out = box.py(f"WAYS, HOST, PORT = {json.dumps(ways)!r}, {HOST!r}, {PORT}\n" + INSIDE, timeout=300)
            self.assertEqual(out.status, 0, (place, out, box.stderr()))
            got = [base64.b64decode(g) for g in json.loads(out.out)]
            self.assertEqual(len(got), len(ways))
            for way, data in zip(ways, got):
                self.assertRegex(data[:12], rb"HTTP/1.1 (200|206|401)", (way, data[:400]))
                self.assertIsNone(exposed(data, VALUE.encode()), (way, data))
                if not place.startswith("range"):
                    self.assertIn(b"*", data, way)
            bodies[place] = {way[::2]: data.partition(b"\r\n\r\n")[2] for way, data in zip(ways, got)}
        for way, begin in bodies["range to"].items():  # what a client has that puts both parts together
            both = begin + bodies["range from"][way]
            self.assertIsNone(exposed(b"\r\n\r\n" + both, VALUE.encode()), (way, both))
            self.assertRegex(both, rb"^before .*\*.* after$", way)


if __name__ == "__main__":
    unittest.main()
