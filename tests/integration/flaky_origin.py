# SPDX-License-Identifier: Apache-2.0
"""An origin that does nothing with a request the first time, at a moment that the path names: /WHAT/MOMENT/ID. The second
time, and for any other path, it answers with the length and the digest of what it got. It speaks HTTP/1.1 or HTTP/2, and
notes each request that arrives.

WHAT: goaway (below the stream), refused (RST_STREAM), lost (the connection is closed; of HTTP/1 only one that has served
others). MOMENT: head, body (some of it has come), end, answer (the response has begun)."""
import hashlib
import time

import h2frames
from h2frames import PREFACE, Peer
from socket_reader import Listener, SocketReader


class Arrival:
    def __init__(self, method, path, reused):
        self.method, self.path, self.reused = method, path, reused
        self.body, self.trailers, self.whole = bytearray(), [], False

    def answer(self):
        return b"%d %s" % (len(self.body), hashlib.sha256(self.body).hexdigest().encode())


class Origin(Listener):
    def __init__(self, address, port, folder, protocol):
        self.arrivals, self.failed = [], set()
        super().__init__(address, port, folder, [protocol])

    def peer(self, c, protocol):
        return (Http2 if protocol == "h2" else Http1)(self, c)

    def note(self, arrival):
        with self.lock:
            self.arrivals.append(arrival)
        return arrival

    def of(self, path):
        with self.lock:
            return [a for a in self.arrivals if a.path == path]

    def fails(self, arrival, moment):
        """True, once for each path, where it says so."""
        part = arrival.path.split("/")
        with self.lock:
            if len(part) < 4 or part[2] != moment or arrival.path in self.failed or (self.protocol != "h2" and not arrival.reused):
                return None
            self.failed.add(arrival.path)
        return part[1]


class Http1(SocketReader):
    def __init__(self, origin, sock):
        super().__init__(sock)
        self.origin = origin

    def part_came(self, arrival, part):
        arrival.body += part
        if self.origin.fails(arrival, "body"):
            raise EOFError

    def run(self):
        for count in range(1 << 30):
            lines = self.until(b"\r\n\r\n").decode("latin-1").split("\r\n")
            method, path, _ = lines[0].split(" ")
            if method == "PRI":  # HTTP/2 is not spoken here
                self.origin.note(Arrival(method, path, False))
                self.sock.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
                return
            fields = {k.lower(): v.strip() for k, _, v in (line.partition(":") for line in lines[1:])}
            a = self.origin.note(Arrival(method, path, count > 0))
            if self.origin.fails(a, "head"):
                return
            if fields.get("expect") == "100-continue":
                self.sock.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
            if fields.get("transfer-encoding") == "chunked":
                while left := int(self.until(b"\r\n"), 16):
                    while left:
                        part = self.piece(left)
                        left -= len(part)
                        self.part_came(a, part)
                    self.until(b"\r\n")
                while line := self.until(b"\r\n"):
                    a.trailers.append(line.decode())
            left = int(fields.get("content-length", 0))
            while left:
                part = self.piece(left)
                left -= len(part)
                self.part_came(a, part)
            a.whole = True
            if self.origin.fails(a, "end") or (not a.body and self.origin.fails(a, "body")):
                return
            text = a.answer()
            head = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(text)
            if self.origin.fails(a, "answer"):
                self.sock.sendall(head + text[:2])
                return
            self.sock.sendall(head + text)


class Http2:
    def __init__(self, origin, sock):
        self.origin, self.peer, self.arrivals, self.ending = origin, Peer(sock, client=False), {}, False
        self.peer.on_headers, self.peer.on_data = self.on_headers, self.on_data
        self.refused = set()

    def run(self):
        p, text = self.peer, b""
        while len(text) < len(PREFACE):
            text += p.sock.recv(len(PREFACE) - len(text)) or b"?" * 99
        if text != PREFACE:
            return
        p.send_settings([("MAX_CONCURRENT_STREAMS", 100)])
        while not p.closed and not self.ending:
            p.pump(20)
        end = time.monotonic() + 0.3  # what is still under way is taken, or a reset would overtake the last words
        while not p.closed and self.ending == "gently" and time.monotonic() < end:
            p.pump(0.05)

    def fail(self, number, moment):
        what = self.origin.fails(self.arrivals[number], moment)
        if not what:
            return False
        self.refused.add(number)
        if moment == "answer":
            self.peer.send(h2frames.headers(number, h2frames.block([(":status", "200")]), end_stream=False) + h2frames.data(number, b"12"))
        if what == "goaway":
            self.peer.send(h2frames.goaway(max(0, number - 2)))
            self.ending = "gently"
        elif what == "refused":
            self.peer.send(h2frames.rst_stream(number, "REFUSED_STREAM" if moment != "answer" else "INTERNAL_ERROR"))
        else:
            self.ending = "at once"
        return True

    def on_headers(self, peer, number, fields, ended):
        if number in self.arrivals:
            self.arrivals[number].trailers = fields
        elif self.ending:
            return
        else:
            d = dict(fields)
            self.arrivals[number] = self.origin.note(Arrival(d[":method"], d[":path"], number > 1))
            if self.fail(number, "head"):
                return
        if ended:
            self.whole(number)

    def on_data(self, peer, number, payload, ended):
        if payload:
            peer.grant(0, len(payload))
        if number not in self.arrivals or number in self.refused:
            return
        self.arrivals[number].body += payload
        if payload and not ended:
            peer.grant(number, len(payload))
        if payload and self.fail(number, "body"):
            return
        if ended:
            self.whole(number)

    def whole(self, number):
        a = self.arrivals[number]
        if number in self.refused:
            return
        a.whole = True
        if self.fail(number, "end") or (not a.body and self.fail(number, "body")) or self.fail(number, "answer"):
            return
        text = a.answer()
        self.peer.send(h2frames.headers(number, h2frames.block([(":status", "200"), ("content-length", str(len(text)))]), end_stream=False) +
                       h2frames.data(number, text, True))
