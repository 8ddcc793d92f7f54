# SPDX-License-Identifier: Apache-2.0
"""What answers for the real names of the agents' services inside the lab: DNS on port 53 of the address argv[2], for every
name whatsoever, and HTTPS on its port 443, with the certificate in the folder argv[1], which is valid for the names of
services.py. Runs in the namespace "outside".

Every request becomes a line of argv[3] (seen.jsonl): {"what": "request", host, method, path, status, key (the real
credential came), placeholder (one came, anywhere), upgrade}; every message of a WebSocket a line {"what": "message", ...}."""
import http.server
import json
import os
import re
import socket
import socketserver
import ssl
import struct
import sys
import threading
import zlib

sys.path[:0] = [os.path.dirname(os.path.dirname(os.path.abspath(__file__)))]
import plays  # noqa: E402
import websocket_frames  # noqa: E402
from services import answer_for  # noqa: E402

FOLDER, ADDRESS, SEEN = sys.argv[1:4]
SECRET = "sk-lab-0123456789abcdefghij-TOPSECRET"
CARRIERS = ("authorization", "x-api-key", "x-goog-api-key", "api-key")
PLACEHOLDER = re.compile(rb"vethguard-?[\w-]*?[0-9a-f]{16}")
SEEN_LOCK = threading.Lock()


def seen(**what):
    with SEEN_LOCK, open(SEEN, "a") as f:
        f.write(json.dumps(what) + "\n")


def dns_answer(query):
    """Every name is here; there is no IPv6."""
    i, labels = 12, []
    while query[i]:
        labels.append(query[i + 1:i + 1 + query[i]])
        i += 1 + query[i]
    kind = struct.unpack(">H", query[i + 1:i + 3])[0]
    seen(what="dns", name=b".".join(labels).decode("latin-1").lower(), type=kind)
    count = int(kind == 1)
    body = b"\xc0\x0c" + struct.pack(">HHIH", 1, 1, 60, 4) + socket.inet_aton(ADDRESS)
    return query[:2] + struct.pack(">HHHHH", 0x8180, 1, count, 0, 0) + query[12:i + 5] + body * count


def serve_dns():
    sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    sock.bind((ADDRESS, 53))
    while True:
        query, peer = sock.recvfrom(4096)
        try:
            sock.sendto(dns_answer(query), peer)
        except (IndexError, struct.error):
            continue


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server_version, sys_version = "agents", ""

    def log_message(self, *_):
        pass

    def read_body(self):
        if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
            body = bytearray()
            while size := int(self.rfile.readline().split(b";")[0], 16):
                body += self.rfile.read(size)
                self.rfile.readline()
            while self.rfile.readline().strip():
                pass
            body = bytes(body)
        else:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.headers.get("Content-Encoding") == "gzip":
            body = zlib.decompress(body, 31)
        return body

    def has_key(self):
        return any(SECRET in self.headers.get(name, "") for name in CARRIERS)

    def note(self, body, status):
        head = str(self.headers).encode() + self.path.encode()
        seen(what="request", host=self.headers.get("Host", ""), method=self.command, path=self.path, status=status, key=self.has_key(),
             placeholder=bool(PLACEHOLDER.search(head + body)), upgrade=self.headers.get("Upgrade", ""))

    def handle_any(self):
        body = self.read_body()
        if self.headers.get("Upgrade", "").lower() == "websocket":
            return self.serve_socket(body)
        try:
            wish = json.loads(body) if body[:1] in (b"{", b"[") else {}
        except ValueError:
            wish = {}
        answer = answer_for(self.headers.get("Host", "").lower(), self.command, self.path, wish, self.has_key())
        self.note(body, answer.status)
        self.send_response(answer.status)
        self.send_header("Content-Type", answer.kind)
        self.send_header("Content-Length", str(len(answer.body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(answer.body)

    do_GET = do_POST = do_PUT = do_DELETE = do_HEAD = do_OPTIONS = do_PATCH = handle_any

    # --- the WebSocket of /v1/responses: each text message is a response.create, its events are messages ---

    def take(self, n):
        data = self.rfile.read(n)
        if len(data) < n:
            raise EOFError
        return data

    def serve_socket(self, body):
        path = self.path.partition("?")[0]
        good = self.headers.get("Host") == "api.openai.com" and path == "/v1/responses" and self.has_key()
        self.note(body, 101 if good else 404)
        self.close_connection = True
        if not good:
            return self.send_error(404)
        self.send_response_only(101)
        for name, value in (("Upgrade", "websocket"), ("Connection", "Upgrade"),
                            ("Sec-WebSocket-Accept", websocket_frames.accept_of(self.headers["Sec-WebSocket-Key"]))):
            self.send_header(name, value)
        self.end_headers()
        frames = websocket_frames.Frames(self.take, True)
        try:
            self.converse(frames)
        except (EOFError, OSError):
            return None

    def converse(self, frames):
        text = b""
        while True:
            opcode, fin, _, content = frames.next()
            if opcode == websocket_frames.CLOSE:
                return self.wfile.write(websocket_frames.frame(opcode, content, masked=False))
            if opcode == websocket_frames.PING:
                self.wfile.write(websocket_frames.frame(websocket_frames.PONG, content, masked=False))
            if opcode & 8:
                continue
            text += content
            if fin:
                self.respond(json.loads(text))
                seen(what="message", host=self.headers["Host"], path=self.path, placeholder=bool(PLACEHOLDER.search(text)))
                text = b""

    def respond(self, wish):
        events = plays.responses_events(wish)
        if wish.get("generate") is False:  # it only warms up
            events = [events[0], events[-1]]
        for event in events:
            self.wfile.write(websocket_frames.frame(websocket_frames.TEXT, json.dumps(event).encode(), masked=False))


class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def finish_request(self, request, client_address):
        # The handshake is the connection's own thread's, so that no client holds up the others.
        try:
            super().finish_request(self.tls.wrap_socket(request, server_side=True), client_address)
        except OSError:
            pass


def main():
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(os.path.join(FOLDER, "server.pem"), os.path.join(FOLDER, "server.key"))
    context.set_alpn_protocols(["http/1.1"])
    server = Server((ADDRESS, 443), Handler)
    server.tls = context
    threading.Thread(target=serve_dns, daemon=True).start()
    with open(os.path.join(FOLDER, "origin.ready"), "w"):
        pass
    server.serve_forever()


if __name__ == "__main__":
    main()
