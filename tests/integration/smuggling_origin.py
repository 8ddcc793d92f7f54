# SPDX-License-Identifier: Apache-2.0
"""The origin of test_smuggling: each run of a case has an address of its own, so that a connection belongs to its case
before a byte of it was read. Every byte that comes is kept. What comes is parsed strictly, apart from vethguard's own
parser; the first thing that is not as RFC 9112 wants it ends the connection and is reported. A hostile case is answered as
its file says, once; everything else properly: the number of the connection, the method, the target and the body's length.

argv: folder of the certificate, address of its DNS server, network of the addresses ("10.98"). It serves names
"cNNNp.wild.lab.test" and "cNNNt...": p is plain (port 80), t is TLS (443). Orders come on FOLDER/smuggling.socket, one JSON
object per connection: {"replies": {host: [writes, then]}} to be told what to answer, {} to be asked what was seen."""
import base64
import json
import os
import re
import socket
import ssl
import struct
import sys
import threading
import time

PAUSE = 0.06
FIELD = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+): ([\x21-\x7e\x80-\xff](?:[\t\x20-\x7e\x80-\xff]*[\x21-\x7e\x80-\xff])?|)")
LINE = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+) (/[!-~]*|\*) HTTP/1\.1")
SIZE = re.compile(rb"[0-9a-f]{1,8}")


class Broken(Exception):
    """The request is not what a strict server takes."""


class Gone(Exception):
    """The connection has ended."""


def head_of(data):
    """(method, target, fields) of a head without its empty line."""
    lines = data.split(b"\r\n")
    first = LINE.fullmatch(lines[0])
    if not first:
        raise Broken("request line")
    fields = []
    for line in lines[1:]:
        m = FIELD.fullmatch(line)
        if not m:
            raise Broken(f"field {line[:60]!r}")
        fields.append((m[1].lower(), m[2]))
    names = [n for n, _ in fields]
    if names.count(b"host") != 1 or names.count(b"content-length") + names.count(b"transfer-encoding") > 1:
        raise Broken("host or framing")
    if dict(fields).get(b"transfer-encoding", b"chunked") != b"chunked":
        raise Broken("transfer-encoding")
    if not dict(fields).get(b"content-length", b"0").isdigit():
        raise Broken("content-length")
    return first[1], first[2], dict(fields)


class Requests:
    """The requests in a stream of bytes; more() gives further ones or raises Gone."""

    def __init__(self, more):
        self.data, self.more = b"", more

    def until(self, mark):
        while mark not in self.data:
            self.data += self.more()
        part, self.data = self.data.split(mark, 1)
        return part

    def take(self, n):
        while len(self.data) < n:
            self.data += self.more()
        part, self.data = self.data[:n], self.data[n:]
        return part

    def chunked(self):
        body = b""
        while True:
            size = self.until(b"\r\n")
            if not SIZE.fullmatch(size):
                raise Broken(f"chunk size {size[:40]!r}")
            if int(size, 16) == 0:
                break
            body += self.take(int(size, 16))
            if self.take(2) != b"\r\n":
                raise Broken("end of a chunk")
        while line := self.until(b"\r\n"):
            if not FIELD.fullmatch(line):
                raise Broken("trailer")
        return body

    def head(self):
        return head_of(self.until(b"\r\n\r\n"))

    def body(self, fields):
        if b"transfer-encoding" in fields:
            return self.chunked()
        return self.take(int(fields.get(b"content-length", b"0")))


def requests_in(data):
    """[(method, target, body)] of bytes that hold whole requests only."""
    def more():
        raise Gone
    found, stream = [], Requests(more)
    stream.data = data
    while stream.data:
        method, target, fields = stream.head()
        found.append((method.decode(), target.decode(), stream.body(fields)))
    return found


class Origin:
    def __init__(self, folder, dns, network):
        self.folder, self.dns, self.network = folder, dns, network
        self.lock = threading.Lock()
        self.connections = []  # in the order of their coming
        self.replies = {}
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(os.path.join(folder, "server.pem"), os.path.join(folder, "server.key"))
        self.context.set_alpn_protocols(["http/1.1"])

    # --- names ---

    def address(self, host):
        m = re.fullmatch(r"c(\d{3})([pt])\.wild\.lab\.test", host)
        if not m:
            return None
        n = int(m[1]) + 1
        return f"{self.network}.{(128 if m[2] == 't' else 0) + (n >> 8)}.{n & 255}"

    def host(self, address):
        _, _, high, low = map(int, address.split("."))
        return f"c{((high & 127) << 8 | low) - 1:03}{'t' if high & 128 else 'p'}.wild.lab.test"

    def serve_dns(self):
        s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        s.bind((self.dns, 53))
        while True:
            query, peer = s.recvfrom(4096)
            labels, i = [], 12
            while query[i]:
                labels.append(query[i + 1:i + 1 + query[i]])
                i += 1 + query[i]
            address = self.address(b".".join(labels).decode("latin-1").lower())
            wanted = address and query[i + 1:i + 3] == b"\0\1"
            answer = query[:2] + struct.pack(">HHHHH", 0x8180 | (0 if address else 3), 1, 1 if wanted else 0, 0, 0)
            answer += query[12:i + 5]
            if wanted:
                answer += b"\xc0\x0c" + struct.pack(">HHIH", 1, 1, 60, 4) + socket.inet_aton(address)
            s.sendto(answer, peer)

    # --- connections ---

    def serve(self, port):
        s = socket.socket()
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        s.bind(("0.0.0.0", port))
        s.listen(512)
        while True:
            c, _ = s.accept()
            c.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=self.connection, args=(c, port == 443), daemon=True).start()

    def connection(self, c, secure):
        row = {"host": self.host(c.getsockname()[0]), "data": b"", "error": "", "requests": []}
        with self.lock:
            row["number"] = 1 + sum(r["host"] == row["host"] for r in self.connections)
            self.connections.append(row)
        try:
            if secure:
                c = self.context.wrap_socket(c, server_side=True)
            self.talk(c, row)
        except Gone:
            pass
        except Broken as e:
            row["error"] = str(e)
        except (OSError, ssl.SSLError) as e:
            row["error"] = row["error"] or ("" if row["data"] else f"{type(e).__name__} {e}")
        finally:
            try:
                c.close()
            except OSError:
                pass

    def talk(self, c, row):
        def more():
            piece = c.recv(65536)
            if not piece:
                raise Gone
            row["data"] += piece
            return piece
        stream = Requests(more)
        while True:
            method, target, fields = stream.head()
            with self.lock:
                reply = self.replies.pop(row["host"], None) if target not in (b"/clean", b"/after") else None
            early = target.startswith(b"/early")
            if early:
                self.answer(c, row, method, target, b"")
            elif fields.get(b"expect", b"").lower() == b"100-continue" and not target.startswith(b"/never"):
                c.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
            if target.startswith(b"/early-close"):
                return
            body = stream.body(fields)
            row["requests"].append(f"{method.decode()} {target.decode()} {len(body)}")
            if reply:
                self.hostile(c, *reply)
            elif not early:
                self.answer(c, row, method, target, body)

    @staticmethod
    def answer(c, row, method, target, body):
        text = b"%d %s %s %d\n" % (row["number"], method, target, len(body))
        c.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(text), b"" if method == b"HEAD" else text))

    @staticmethod
    def hostile(c, writes, then):
        for i, piece in enumerate(writes):
            if i:
                time.sleep(PAUSE)
            c.sendall(piece.encode("latin-1"))
        if then == "close" and isinstance(c, ssl.SSLSocket):
            c.settimeout(2)
            c.unwrap()
        if then in ("close", "cut"):
            c.shutdown(socket.SHUT_RDWR)
            raise Gone
        if then == "reset":
            c.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            raise Gone

    # --- orders ---

    def serve_orders(self):
        s = socket.socket(socket.AF_UNIX)
        s.bind(os.path.join(self.folder, "smuggling.socket"))
        s.listen(8)
        while True:
            c, _ = s.accept()
            with c, c.makefile("rwb") as f:
                order = json.loads(f.readline())
                with self.lock:
                    self.replies.update(order.get("replies", {}))
                    seen = [dict(r, data=base64.b64encode(r["data"]).decode()) for r in self.connections]
                f.write(json.dumps(seen).encode() + b"\n")


def main():
    threading.stack_size(512 << 10)
    origin = Origin(*sys.argv[1:])
    for target, *arguments in ((origin.serve_dns,), (origin.serve, 80), (origin.serve, 443)):
        threading.Thread(target=target, args=arguments, daemon=True).start()
    origin.serve_orders()


if __name__ == "__main__":
    main()
