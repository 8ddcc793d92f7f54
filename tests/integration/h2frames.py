# SPDX-License-Identifier: Apache-2.0
"""HTTP/2 by hand (RFC 9113, RFC 7541): frames and field blocks as bytes, right or wrong, and one end of a connection
that sends whatever it is told and notes all that comes. Nothing here corrects its user; what the other side sends is
held against the RFC. Responses are decoded with python3-hpack, nothing is encoded with it."""
import collections
import select
import ssl
import struct
import time

import hpack

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
TYPES = ["DATA", "HEADERS", "PRIORITY", "RST_STREAM", "SETTINGS", "PUSH_PROMISE", "PING", "GOAWAY", "WINDOW_UPDATE",
         "CONTINUATION"]
TYPE = {name: i for i, name in enumerate(TYPES)}
FLAGS = {"END_STREAM": 1, "ACK": 1, "END_HEADERS": 4, "PADDED": 8, "PRIORITY": 32}
ERRORS = ["NO_ERROR", "PROTOCOL_ERROR", "INTERNAL_ERROR", "FLOW_CONTROL_ERROR", "SETTINGS_TIMEOUT", "STREAM_CLOSED",
          "FRAME_SIZE_ERROR", "REFUSED_STREAM", "CANCEL", "COMPRESSION_ERROR", "CONNECT_ERROR", "ENHANCE_YOUR_CALM",
          "INADEQUATE_SECURITY", "HTTP_1_1_REQUIRED"]
ERROR = {name: i for i, name in enumerate(ERRORS)}
SETTINGS = {"HEADER_TABLE_SIZE": 1, "ENABLE_PUSH": 2, "MAX_CONCURRENT_STREAMS": 3, "INITIAL_WINDOW_SIZE": 4,
            "MAX_FRAME_SIZE": 5, "MAX_HEADER_LIST_SIZE": 6, "ENABLE_CONNECT_PROTOCOL": 8}
WINDOW = 65535
HOP_BY_HOP = {"connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade"}


def error_name(code):
    return ERRORS[code] if code < len(ERRORS) else f"{code:#x}"


# --- frames ---

def frame(kind, stream=0, flags=0, payload=b"", length=None, reserved=0):
    """One frame; length overrides the length field, kind is a name or a number."""
    n = len(payload) if length is None else length
    return struct.pack(">I", n)[1:] + struct.pack(">BBI", TYPE.get(kind, kind), flags, stream | reserved << 31) + payload


def padded(payload, pad):
    """Payload of a frame with flag PADDED; pad may be larger than what follows when given as (said, real)."""
    said, real = pad if isinstance(pad, tuple) else (pad, pad)
    return bytes([said]) + payload + bytes(real)


def data(stream, payload=b"", end=False, pad=None):
    return frame("DATA", stream, end | (8 if pad is not None else 0), payload if pad is None else padded(payload, pad))


def headers(stream, block, end_stream=True, end_headers=True):
    return frame("HEADERS", stream, end_stream | end_headers << 2, block)


def settings(values=(), ack=False):
    """values: pairs of name or number, and value."""
    return frame("SETTINGS", 0, int(ack), b"".join(struct.pack(">HI", SETTINGS.get(k, k), v) for k, v in values))


def window_update(stream, increment):
    return frame("WINDOW_UPDATE", stream, 0, struct.pack(">I", increment))


def rst_stream(stream, code="CANCEL"):
    return frame("RST_STREAM", stream, 0, struct.pack(">I", ERROR.get(code, code)))


def ping(payload=b"8 octets", ack=False):
    return frame("PING", 0, int(ack), payload)


def goaway(last, code="NO_ERROR", debug=b""):
    return frame("GOAWAY", 0, 0, struct.pack(">II", last, ERROR.get(code, code)) + debug)


def continuation(stream, block, end=True):
    return frame("CONTINUATION", stream, 4 if end else 0, block)


# --- HPACK (RFC 7541), always the longest and plainest form ---

def integer(value, prefix, first=0):
    """5.1; first holds the bits above the prefix."""
    limit = (1 << prefix) - 1
    if value < limit:
        return bytes([first | value])
    out, value = bytearray([first | limit]), value - limit
    while value >= 128:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def string(text, huffman=False):
    """5.2; of Huffman's table the tests need no more than what python3-hpack knows."""
    text = text if isinstance(text, bytes) else text.encode("latin-1")
    if not huffman:
        return integer(len(text), 7) + text
    from hpack.huffman import HuffmanEncoder
    from hpack.huffman_constants import REQUEST_CODES, REQUEST_CODES_LENGTH
    coded = HuffmanEncoder(REQUEST_CODES, REQUEST_CODES_LENGTH).encode(text)
    return integer(len(coded), 7, 128) + coded


def literal(name, value, how="plain", huffman=False, index=0):
    """6.2: how is plain (without indexing), incremental or never; index names an entry in place of the name."""
    first, prefix = {"plain": (0, 4), "incremental": (64, 6), "never": (16, 4)}[how]
    head = integer(index, prefix, first)
    return head + (b"" if index else string(name, huffman)) + string(value, huffman)


def indexed(index):
    return integer(index, 7, 128)


def table_size(size):
    return integer(size, 5, 32)


def block(fields):
    return b"".join(literal(n, v) for n, v in fields)


# --- one end of a connection ---

class Stream:
    def __init__(self, window, sendable):
        self.heads = []          # lists of (name, value): interim ones, the final one, trailers
        self.body = bytearray()
        self.ended = False
        self.reset = None        # error code's name
        self.window = window     # what the other side may still send
        self.sendable = sendable  # ... and this side

    def status(self):
        """The final status, or None."""
        for head in self.heads:
            code = dict(head).get(":status", "")
            if code.isdigit() and not code.startswith("1"):
                return int(code)
        return None

    def final(self):
        return next((dict(h) for h in self.heads if not dict(h).get(":status", "1").startswith("1")), {})

    def over(self):
        return self.ended or self.reset is not None


class Peer:
    """One end, over a socket (TLS or not). `client`: which end this is."""

    def __init__(self, sock, client=True, answer_settings=True, answer_pings=True):
        self.sock, self.client = sock, client
        self.answer_settings, self.answer_pings = answer_settings, answer_pings
        self.received = b""
        self.streams = {}
        self.settings = None           # the other side's, once they came
        self.settings_acks = 0
        self.unacknowledged = collections.deque()
        self.initial_window, self.window = WINDOW, WINDOW
        self.sendable = WINDOW
        self.opened = -1               # streams up to here were opened, known or not
        self.max_frame = 16384
        self.pongs, self.pings, self.goaways = [], [], []
        self.closed = False            # the other side has ended the connection ("reset" where abruptly)
        self.violations = []           # what the other side did against the RFC
        self.decoder = hpack.Decoder()
        self.decoder.max_header_list_size = 1 << 24
        self.fragments = None          # (stream, flags, block so far) until END_HEADERS
        self.kinds = collections.Counter()
        self.on_headers = None         # on_headers(peer, stream id, fields, ended)
        self.on_data = None

    # sending

    def send(self, data):
        """False: the other side has hung up."""
        try:
            self.sock.sendall(data)
            return True
        except (OSError, ssl.SSLError):
            return False

    def send_flood(self, pieces):
        """Sends while reading what comes meanwhile; how many pieces went out before the other side hung up."""
        for n, piece in enumerate(pieces):
            while self.pump(0):
                pass
            if self.closed or self.failed() or not self.send(piece):
                return n
        return n + 1

    def send_body(self, number, body, end=True, seconds=10):
        """DATA as the other side's windows allow."""
        s, limit = self.stream(number), (self.settings or {}).get(5, 16384)
        while body:
            if not self.wait(lambda: s.over() and s.reset or min(s.sendable, self.sendable) > 0, seconds) or s.reset:
                return False
            piece = body[:min(s.sendable, self.sendable, limit)]
            body = body[len(piece):]
            s.sendable -= len(piece)
            self.sendable -= len(piece)
            if not self.send(data(number, piece, end and not body)):
                return False
        return True

    def send_settings(self, values=()):
        self.unacknowledged.append(list(values))
        return self.send(settings(values))

    def grant(self, stream, n):
        if stream:
            self.stream(stream).window += n
        else:
            self.window += n
        return self.send(window_update(stream, n))

    def stream(self, number):
        if number not in self.streams:
            self.streams[number] = Stream(self.initial_window, (self.settings or {}).get(4, WINDOW))
        return self.streams[number]

    # receiving

    def readable(self, seconds):
        if getattr(self.sock, "pending", lambda: 0)():
            return True
        return bool(select.select([self.sock], [], [], max(0, seconds))[0])

    def pump(self, seconds):
        """Reads and takes in what comes within this time; False: nothing did."""
        if self.closed or not self.readable(seconds):
            return False
        try:
            data = self.sock.recv(1 << 16)
        except (ssl.SSLWantReadError, TimeoutError):
            return True
        except (OSError, ssl.SSLError):
            self.closed = "reset"
            return False
        if not data:
            self.closed = True
            return False
        data, at = self.received + data, 0
        while len(data) - at >= 9:
            n = int.from_bytes(data[at:at + 3], "big")
            if n > self.max_frame:
                self.violations.append(f"a frame of {n} octets (4.2)")
            if len(data) - at < 9 + n:
                break
            kind, flags, stream = struct.unpack_from(">BBI", data, at + 3)
            self.take(kind, flags, stream & 0x7fffffff, data[at + 9:at + 9 + n])
            at += 9 + n
        self.received = data[at:]
        return True

    def wait(self, condition, seconds):
        """Reads until the condition holds; whether it does."""
        end = time.monotonic() + seconds
        while not condition():
            left = end - time.monotonic()
            if left <= 0 or self.closed:
                return bool(condition())
            self.pump(left)
        return True

    def take(self, kind, flags, stream, payload):
        name = TYPES[kind] if kind < len(TYPES) else None
        self.kinds[name or kind] += 1
        if self.settings is None and name != "SETTINGS":
            self.violations.append(f"{name or kind} before SETTINGS (3.4)")
        if self.fragments and name != "CONTINUATION":
            self.violations.append(f"{name or kind} within a field block (6.10)")
        handler = getattr(self, "take_" + (name or "other").lower(), None)
        if handler:
            try:
                handler(flags, stream, payload)
            except (struct.error, IndexError, ValueError) as e:
                self.violations.append(f"{name}: {type(e).__name__} {e}")

    def take_settings(self, flags, stream, payload):
        if stream or len(payload) % 6 or (flags & 1 and payload):
            self.violations.append("malformed SETTINGS (6.5)")
        if flags & 1:
            self.settings_acks += 1
            if not self.unacknowledged:
                self.violations.append("SETTINGS ACK too many (6.5.3)")
                return
            for key, value in self.unacknowledged.popleft():
                if key in ("INITIAL_WINDOW_SIZE", 4):
                    for s in self.streams.values():
                        s.window += value - self.initial_window
                    self.initial_window = value
                elif key in ("MAX_FRAME_SIZE", 5):
                    self.max_frame = value
                elif key in ("HEADER_TABLE_SIZE", 1):
                    self.decoder.max_allowed_table_size = value
            return
        values = dict(struct.unpack(">HI", payload[i:i + 6]) for i in range(0, len(payload), 6))
        for s in self.streams.values():
            s.sendable += values.get(4, (self.settings or {}).get(4, WINDOW)) - (self.settings or {}).get(4, WINDOW)
        self.settings = {**(self.settings or {}), **values}
        if values.get(2, 0) and not self.client:
            self.violations.append("the client offers to take pushes")
        if self.answer_settings:
            self.send(settings(ack=True))

    def take_ping(self, flags, stream, payload):
        if stream or len(payload) != 8:
            self.violations.append("malformed PING (6.7)")
        (self.pongs if flags & 1 else self.pings).append(payload)
        if not flags & 1 and self.answer_pings:
            self.send(ping(payload, True))

    def take_goaway(self, _, stream, payload):
        last, code = struct.unpack(">II", payload[:8])
        if stream:
            self.violations.append("GOAWAY on a stream (6.8)")
        if self.goaways and last > self.goaways[-1][0]:
            self.violations.append("the last stream of a second GOAWAY is higher (6.8)")
        self.goaways.append((last, error_name(code), payload[8:]))

    def take_window_update(self, _, stream, payload):
        if len(payload) != 4 or not struct.unpack(">I", payload)[0] & 0x7fffffff:
            self.violations.append("malformed WINDOW_UPDATE (6.9)")
        elif stream == 0:
            self.sendable += struct.unpack(">I", payload)[0] & 0x7fffffff
        elif stream in self.streams:
            self.streams[stream].sendable += struct.unpack(">I", payload)[0] & 0x7fffffff

    def take_rst_stream(self, _, stream, payload):
        if stream not in self.streams and stream > self.opened:
            self.violations.append(f"RST_STREAM on the idle stream {stream} (6.4)")
        self.stream(stream).reset = error_name(struct.unpack(">I", payload)[0])

    def take_push_promise(self, *_):
        self.violations.append("PUSH_PROMISE")

    def take_data(self, flags, number, payload):
        s = self.streams.get(number)
        if s is None or s.ended or (self.client and s.status() is None):
            self.violations.append(f"DATA on stream {number}, where none may be (5.1, 8.1)")
            s = self.stream(number)
        s.window -= len(payload)
        self.window -= len(payload)
        if s.window < 0 and payload or self.window < 0 and payload:
            self.violations.append(f"DATA beyond the window of stream {number} or connection (6.9.1)")
        if flags & 8:
            payload = payload[1:len(payload) - payload[0]]
        s.body += payload
        s.ended = s.ended or bool(flags & 1)
        if self.on_data:
            self.on_data(self, number, payload, bool(flags & 1))

    def take_headers(self, flags, number, payload):
        if flags & 8:
            payload = payload[1:len(payload) - payload[0]]
        if flags & 32:
            payload = payload[5:]
        self.fragments = (number, flags, b"")
        self.fragment(flags, number, payload)

    def take_continuation(self, flags, number, payload):
        if not self.fragments or self.fragments[0] != number:
            self.violations.append("CONTINUATION of nothing (6.10)")
            return
        self.fragment(flags, number, payload)

    def fragment(self, flags, number, payload):
        _, first, text = self.fragments
        self.fragments = (number, first, text + payload)
        if not flags & 4:
            return
        text, self.fragments = text + payload, None
        try:
            fields = [(n.decode("latin-1"), v.decode("latin-1")) for n, v in
                      ((bytes(f[0]), bytes(f[1])) for f in self.decoder.decode(text, raw=True))]
        except Exception as e:  # whatever python3-hpack thinks of it
            self.violations.append(f"field block: {type(e).__name__} {e} (4.3)")
            return
        known = number in self.streams or number <= self.opened
        s = self.stream(number)
        if self.client and (not known or s.ended or s.reset not in (None, "NO_ERROR")):
            self.violations.append(f"HEADERS on stream {number}, where none may be (5.1)")
        self.check_fields(fields, trailers=s.status() is not None if self.client else bool(s.heads))
        s.heads.append(fields)
        s.ended = s.ended or bool(first & 1)
        if self.on_headers:
            self.on_headers(self, number, fields, bool(first & 1))

    def check_fields(self, fields, trailers):
        names = [n for n, _ in fields]
        pseudo = [n for n in names if n.startswith(":")]
        wanted = set() if trailers else {":status"} if self.client else {":method", ":scheme", ":path", ":authority"}
        if names[:len(pseudo)] != pseudo or len(set(pseudo)) != len(pseudo):
            self.violations.append(f"pseudo-header fields out of order or twice: {names} (8.3)")
        if set(pseudo) - wanted or self.client and wanted - set(pseudo):
            self.violations.append(f"pseudo-header fields {pseudo} (8.3)")
        for n, v in fields:
            if n.lower() != n or not n or any(ord(c) <= 0x20 or ord(c) >= 0x7f for c in n):
                self.violations.append(f"field name {n!r} (8.2.1)")
            if v != v.strip(" \t") or set(v) & set("\r\n\0"):
                self.violations.append(f"field value {v!r} (8.2.1)")
            if n in HOP_BY_HOP or n == "te" and v != "trailers":
                self.violations.append(f"connection-specific field {n} (8.2.2)")

    def failed(self):
        """The code of a GOAWAY that says error, or None."""
        return next((code for _, code, _ in self.goaways if code != "NO_ERROR"), None)
