# SPDX-License-Identifier: Apache-2.0
"""An origin for HTTP/2's tests, inside the test's own process: it notes every request to the letter, answers by path, and
breaks the protocol where a case of h2/upstream.case says so. The last part of a path is the case's id.

    /ok 200, /slow 200 after a while, /hold reads the body late, /bytes/N so many octets, /empty 204, /u/ID that case"""
import re
import time

import h2cases
import h2frames
from h2frames import PREFACE, Peer
from socket_reader import Listener, SocketReader

TOKEN = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+")


class Request:
    def __init__(self, version, method, target, fields, raw=b""):
        self.version, self.method, self.target, self.fields, self.raw = version, method, target, fields, raw
        self.body, self.whole, self.trailers = bytearray(), False, []
        self.id = target.partition("?")[0].rpartition("/")[2]

    def values(self, name):
        return [v for n, v in self.fields if n.lower() == name]


class Origin(Listener):
    """protocols: what ALPN offers, or None for plain TCP."""

    def __init__(self, address, port, folder=None, protocols=("http/1.1",), cases=()):
        self.port, self.requests, self.violations = port, [], []
        self.cases = {c.id: c for c in cases}
        self.settings, self.answer_settings = [("MAX_CONCURRENT_STREAMS", 100)], True
        self.hook = None            # hook(peer, stream, request) -> True: it has answered
        super().__init__(address, port, folder, protocols)

    def peer(self, c, protocol):
        return (Http2 if protocol == "h2" else Http1)(self, c)

    def reset(self):
        """Forgets what it saw, behaves well again."""
        with self.lock:
            self.requests, self.violations, self.connections, self.hook = [], [], 0, None
            self.settings, self.answer_settings = [("MAX_CONCURRENT_STREAMS", 100)], True

    def note(self, request):
        with self.lock:
            self.requests.append(request)

    def of(self, identity):
        with self.lock:
            return [r for r in self.requests if r.id == identity]

    def wrong(self, text):
        with self.lock:
            self.violations.append(text)

    @staticmethod
    def answer(request):
        """(status, body)."""
        part = request.target.split("/") + [""]
        if part[1] == "empty":
            return 204, b""
        return 200, bytes(int(part[2])) if part[1] == "bytes" else b"ok"


class Http1(SocketReader):
    """Strict: whatever RFC 9112 would not have is a violation, and the end."""

    def __init__(self, origin, sock):
        super().__init__(sock)
        self.origin = origin

    def run(self):
        while True:
            head = self.until(b"\r\n\r\n")
            if not self.origin.context and head == b"PRI * HTTP/2.0":  # a client's HTTP/2 without TLS: not spoken here
                self.sock.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
                return
            request = self.head(head)
            if request is None:
                self.origin.wrong(head[:300])
                return
            self.origin.note(request)
            if request.target.startswith("/hold"):
                time.sleep(1.5)
            self.body(request)
            request.whole = True
            if self.origin.hook and self.origin.hook(self, 0, request):
                continue
            if request.target.startswith("/slow"):
                time.sleep(0.3)
            status, body = self.origin.answer(request)
            text = b"HTTP/1.1 %d Fine\r\n" % status
            if status != 204:
                text += b"Content-Length: %d\r\n" % len(body)
            self.sock.sendall(text + b"\r\n" + (b"" if request.method == "HEAD" else body))

    def head(self, head):
        lines = head.split(b"\r\n")
        m = re.fullmatch(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+) (/[!-~\x80-\xff]*|\*) HTTP/1\.1", lines[0])
        fields = []
        for line in lines[1:]:
            name, colon, value = line.partition(b":")
            if not colon or not TOKEN.fullmatch(name) or re.search(rb"[\0\r\n]", value):
                return None
            fields.append((name.decode("latin-1"), value.strip(b" \t").decode("latin-1")))
        if not m or b"\n" in head.replace(b"\r\n", b""):
            return None
        request = Request(11, m.group(1).decode(), m.group(2).decode("latin-1"), fields, head)
        lengths, codings = request.values("content-length"), request.values("transfer-encoding")
        if len(request.values("host")) != 1 or len(lengths) + len(codings) > 1 or codings not in ([], ["chunked"]):
            return None
        return request

    def body(self, request):
        if request.values("transfer-encoding"):
            while size := int(self.until(b"\r\n"), 16):
                request.body += self.take(size)
                if self.take(2) != b"\r\n":
                    self.origin.wrong(b"chunk")
                    raise EOFError
            while line := self.until(b"\r\n"):
                name, _, value = line.decode("latin-1").partition(":")
                request.trailers.append((name.lower(), value.strip()))
        else:
            left = int((request.values("content-length") or ["0"])[0])
            while left:
                while not self.data:
                    self.more()
                piece, self.data = self.data[:left], self.data[left:]
                request.body += piece
                left -= len(piece)


class Http2:
    def __init__(self, origin, sock):
        self.origin, self.peer, self.requests = origin, Peer(sock, client=False), {}
        self.peer.on_headers, self.peer.on_data = self.on_headers, self.on_data
        self.bodies = {}     # what is still to be sent of responses
        self.active = set()  # streams that wait for their response
        self.todo = []      # (when, what): outside of the reading of frames

    def run(self):
        p = self.peer
        p.sock.settimeout(5)
        text = b""
        while len(text) < len(PREFACE):
            piece = p.sock.recv(len(PREFACE) - len(text))
            if not piece:
                return
            text += piece
        if text != PREFACE:
            self.origin.wrong(text)
            return
        p.answer_settings = self.origin.answer_settings
        self.limit = dict(self.origin.settings).get("MAX_CONCURRENT_STREAMS", 1 << 32)
        p.send_settings(self.origin.settings)
        while not p.closed:
            p.pump(max(0, self.todo[0][0] - time.monotonic()) if self.todo else 20)
            while self.todo and self.todo[0][0] <= time.monotonic():
                self.todo.pop(0)[1]()
            self.send_bodies()
            if p.violations:
                self.origin.violations += p.violations
                p.violations = []

    def soon(self, what, seconds=0.0):
        self.todo.append((time.monotonic() + seconds, what))
        self.todo.sort(key=lambda t: t[0])

    def on_headers(self, peer, number, fields, ended):
        request = self.requests.get(number)
        if request is None:
            d = dict(fields)
            regular = [(n, v) for n, v in fields if not n.startswith(":")]
            if ":authority" in d:
                regular = [("host", d[":authority"])] + [f for f in regular if f[0] != "host"]
            cookies = [v for n, v in regular if n == "cookie"]
            if cookies:
                regular = [f for f in regular if f[0] != "cookie"] + [("cookie", "; ".join(cookies))]
            request = self.requests[number] = Request(20, d.get(":method", ""), d.get(":path", ""), regular, repr(fields).encode())
            self.origin.note(request)
            self.active = {n for n in self.active if not peer.stream(n).reset} | {number}
            if peer.settings_acks and len(self.active) > self.limit:
                self.origin.wrong(f"{len(self.active)} streams at once (5.1.2)")
            case = self.origin.cases.get(request.id)
            if case or self.origin.hook:
                self.soon(lambda: self.special(case, number, request))
                return
        else:
            request.trailers = fields
        if ended:
            self.whole(number, request)

    def on_data(self, peer, number, payload, ended):
        request = self.requests.get(number)
        if request is None:
            return
        request.body += payload
        if payload and not ended and not request.target.startswith("/hold"):
            peer.grant(number, len(payload))
        if payload:
            peer.grant(0, len(payload))
        if ended:
            self.whole(number, request)

    def whole(self, number, request):
        request.whole = True
        if request.id not in self.origin.cases:
            self.soon(lambda: self.respond(number, request), 0.3 if request.target.startswith("/slow") else 0)

    def special(self, case, number, request):
        if self.origin.hook and self.origin.hook(self.peer, number, request):
            self.active.discard(number)
            return
        if case:
            self.active.discard(number)
            h2cases.play(case, self.peer, number)
        elif self.peer.stream(number).ended and not request.whole:
            self.whole(number, request)

    def respond(self, number, request):
        self.active.discard(number)
        status, body = self.origin.answer(request)
        if request.method == "HEAD" or not body:
            length = [("content-length", str(len(body)))] if status != 204 else []
            self.peer.send(h2frames.headers(number, h2frames.block([(":status", str(status))] + length)))
            return
        self.peer.send(h2frames.headers(number, h2frames.block(
            [(":status", str(status)), ("content-length", str(len(body)))]), end_stream=False))
        self.bodies[number] = memoryview(body)

    def send_bodies(self):
        """Sends of each stream what the windows allow, so that none waits for another."""
        p = self.peer
        for number, body in list(self.bodies.items()):
            s = p.stream(number)
            while body and not s.reset and min(s.sendable, p.sendable) > 0:
                n = min(len(body), s.sendable, p.sendable, 16384)
                s.sendable -= n
                p.sendable -= n
                p.send(h2frames.data(number, bytes(body[:n]), n == len(body)))
                body = body[n:]
            self.bodies[number] = body
            if not body or s.reset:
                del self.bodies[number]
