# SPDX-License-Identifier: Apache-2.0
"""WebSocket frames by hand (RFC 6455), for the origin outside and for clients inside: every byte is the test's own."""
import base64
import hashlib
import os
import struct
import zlib

KEY = "dGhlIHNhbXBsZSBub25jZQ=="
UPGRADE = ("Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: " + KEY)
TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10


class Broken(Exception):
    """A frame that is not as it has to be."""


def accept_of(key):
    return base64.b64encode(hashlib.sha1((key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").encode()).digest()).decode()


def mask(data, key):
    n = len(data)
    whole = int.from_bytes((key * (n // 4 + 1))[:n], "big")
    return (int.from_bytes(data, "big") ^ whole).to_bytes(n, "big")


def frame(opcode, data=b"", fin=True, masked=True, rsv=0, key=None):
    n = len(data)
    head = bytes([(0x80 if fin else 0) | rsv | opcode])
    bit = 0x80 if masked else 0
    head += bytes([bit | n]) if n < 126 else bytes([bit | 126]) + struct.pack(">H", n) if n < 65536 else \
        bytes([bit | 127]) + struct.pack(">Q", n)
    if not masked:
        return head + data
    key = key or os.urandom(4)
    return head + key + mask(data, key)


class Deflate:
    """permessage-deflate of one direction (RFC 7692)."""

    def __init__(self, bits=15):
        self.packer = zlib.compressobj(9, zlib.DEFLATED, -bits)

    def message(self, data):
        return (self.packer.compress(data) + self.packer.flush(zlib.Z_SYNC_FLUSH))[:-4]


class Frames:
    """Reads frames strictly; take(n) gives exactly n bytes or raises EOFError."""

    def __init__(self, take, masked, rsv1=False):
        self.take, self.masked, self.rsv1, self.in_message = take, masked, rsv1, False

    def next(self):
        """(opcode, fin, first reserved bit, content)"""
        first, second = self.take(2)
        opcode, fin, n = first & 15, bool(first & 0x80), second & 127
        if first & (0x30 if self.rsv1 else 0x70) or opcode not in (0, 1, 2, 8, 9, 10):
            raise Broken("reserved")
        if bool(second & 0x80) != self.masked:
            raise Broken("masking")
        if opcode & 8 and (not fin or n > 125):
            raise Broken("control frame")
        if not opcode & 8:
            if (opcode == 0) != self.in_message:
                raise Broken("continuation")
            self.in_message = not fin
        if n >= 126:
            size, least = (2, 126) if n == 126 else (8, 65536)
            n = int.from_bytes(self.take(size), "big")
            if n < least or n >> 63:
                raise Broken("length")
        key = self.take(4) if self.masked else b""
        data = self.take(n)
        return opcode, fin, bool(first & 0x40), mask(data, key) if key else data


class Client:
    """Inside: a WebSocket over a socket of inside.tls(), handshake included. early: sent right behind the request."""

    def __init__(self, sock, host, path, *fields, early=b""):
        import inside
        self.sock = sock
        self.reader = inside.Reader(sock)
        sock.sendall(inside.request("GET", path, host, *UPGRADE, *fields) + early)
        self.status, self.fields = self.reader.head()[:2]
        self.frames = Frames(self.reader.take, False)

    def send(self, *args, **kw):
        self.sock.sendall(frame(*args, **kw))

    def next(self):
        return self.frames.next()

    def message(self):
        """(content, [control frames on the way])"""
        data, controls = b"", []
        while True:
            opcode, fin, _, content = self.next()
            if opcode & 8:
                controls.append((opcode, content))
                if opcode == CLOSE:
                    return None, controls
                continue
            data += content
            if fin:
                return data, controls

    def closed(self):
        """The code of the close frame, after whatever comes before it; None: an end without one."""
        try:
            while True:
                opcode, _, _, content = self.next()
                if opcode == CLOSE:
                    return int.from_bytes(content[:2], "big")
        except (EOFError, OSError):
            return None
