# SPDX-License-Identifier: Apache-2.0
"""The origin of test_websocket: parses every frame strictly and reports what it saw, one JSON line per connection in
FOLDER/websocket.jsonl. argv: folder, address, port.

/echo sends messages back, /heard keeps the hash of each frame's content, /early sends three with the 101, /cut/N its credential in two fragments cut there with a ping
between, /cut2/N in two messages, /pings/N and /mixed/N over control frames too, /raw/HEX those bytes, /burst/N small frames, /deflate accepts compression, /deaf reads
nothing for two seconds, /wrong and /none answer with a wrong Sec-WebSocket-Accept and without one, /extension with one
that nobody offered."""
import hashlib
import json
import os
import socket
import ssl
import sys
import threading
import time

from websocket_frames import BINARY, CLOSE, PING, PONG, TEXT, Broken, Frames, accept_of, frame

FOLDER, ADDRESS, PORT = sys.argv[1], sys.argv[2], int(sys.argv[3])
LOCK = threading.Lock()


class Connection:
    def __init__(self, sock):
        self.sock, self.data = sock, b""
        self.seen = []      # [opcode, fin, length] of the first frames
        self.count = 0
        self.row = {"end": "?"}

    def take(self, n):
        parts = [self.data]
        have = len(self.data)
        while have < n:
            piece = self.sock.recv(1 << 18)
            if not piece:
                raise EOFError
            parts.append(piece)
            have += len(piece)
        data = b"".join(parts)
        self.data = data[n:]
        return data[:n]

    def head(self):
        while b"\r\n\r\n" not in self.data:
            piece = self.sock.recv(65536)
            if not piece:
                raise EOFError
            self.data += piece
        head, self.data = self.data.split(b"\r\n\r\n", 1)
        lines = head.decode("latin-1").split("\r\n")
        return lines[0].split(" ")[1], {k.lower(): v for k, v in (x.split(": ", 1) for x in lines[1:])}

    def send(self, *args, **kw):
        self.sock.sendall(frame(*args, masked=False, **kw))

    def switch(self, fields, path):
        answer = ["HTTP/1.1 101 Switching Protocols", "Connection: upgrade", "Upgrade: websocket"]
        if path[0] != "none":
            answer.append("Sec-WebSocket-Accept: " + accept_of(fields["sec-websocket-key"] + ("x" if path[0] == "wrong" else "")))
        if path[0] == "extension" or path[0] == "deflate" and "sec-websocket-extensions" in fields:
            answer.append("Sec-WebSocket-Extensions: permessage-deflate")
        early = b"".join(frame(TEXT, w, masked=False) for w in (b"one", b"two", b"three")) if path[0] == "early" else b""
        self.sock.sendall("\r\n".join(answer).encode() + b"\r\n\r\n" + early)

    def begin(self, path, fields):
        secret = fields.get("authorization", " no-secret").split(" ", 1)[1].encode()
        if path[0] in ("cut", "cut2"):
            text, at = b"before " + secret + b" after", 7 + int(path[1])
            self.send(TEXT, text[:at], fin=path[0] == "cut2")
            self.send(PING, b"between")
            time.sleep(0.02)
            self.send(TEXT if path[0] == "cut2" else 0, text[at:])
        elif path[0] in ("pings", "mixed"):
            at = int(path[1])
            self.send(PING if path[0] == "pings" else TEXT, secret[:at])
            time.sleep(0.02)
            self.send(PING, secret[at:-3])
            self.send(PONG, secret[-3:])
            self.send(TEXT, secret[:at])
            self.send(CLOSE, b"\x03\xe8" + secret[at:])
        elif path[0] == "raw":
            self.sock.sendall(bytes.fromhex(path[1]))
        elif path[0] == "burst":
            one = frame(BINARY, b"x", masked=False)
            self.sock.sendall(one * int(path[1]))
        elif path[0] == "deaf":
            time.sleep(2)

    def talk(self, path, fields):
        frames = Frames(self.take, True, path[0] == "deflate")
        while True:
            opcode, fin, rsv1, content = frames.next()
            self.count += 1
            if len(self.seen) < 20:
                self.seen.append([opcode, fin, len(content), rsv1])
            if opcode == CLOSE:
                self.row["code"] = int.from_bytes(content[:2], "big")
                self.send(CLOSE, content)
                self.row["end"] = "closed"
                return
            if opcode == PING:
                self.send(PONG, content)
            if path[0] == "heard":
                self.row.setdefault("heard", []).append([opcode, hashlib.sha256(content).hexdigest()])
            elif opcode not in (PING, PONG) and path[0] in ("echo", "early"):
                self.send(opcode, content, fin=fin)

    def serve(self):
        try:
            target, fields = self.head()
            path = target.strip("/").split("/")
            self.row.update(path=target, extensions=fields.get("sec-websocket-extensions", ""),
                            authenticated="authorization" in fields)
            self.switch(fields, path)
            self.begin(path, fields)
            self.talk(path, fields)
        except Broken as e:
            self.row["end"] = f"broken: {e}"
        except EOFError:
            self.row["end"] = "eof"
        except OSError as e:
            self.row["end"] = type(e).__name__
        self.row.update(frames=self.count, seen=self.seen)
        with LOCK, open(os.path.join(FOLDER, "websocket.jsonl"), "a") as f:
            f.write(json.dumps(self.row) + "\n")
        try:
            self.sock.unwrap()
        except (OSError, ValueError):
            pass
        self.sock.close()


def serve_one(context, raw):
    try:
        raw.settimeout(30)
        raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        Connection(context.wrap_socket(raw, server_side=True)).serve()
    except OSError:
        raw.close()


def main():
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(os.path.join(FOLDER, "server.pem"), os.path.join(FOLDER, "server.key"))
    listener = socket.create_server((ADDRESS, PORT), backlog=64)
    with open(os.path.join(FOLDER, f"websocket.{PORT}.ready"), "w"):
        pass
    while True:
        threading.Thread(target=serve_one, args=(context, listener.accept()[0]), daemon=True).start()


main()
