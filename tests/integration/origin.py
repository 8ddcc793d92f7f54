# SPDX-License-Identifier: Apache-2.0
"""Origins of the lab: DNS, HTTPS (443, 8443), HTTP (80), a TCP banner and echo service (2222), UDP echo (1234), and an
"evil" listener that notes every byte it is ever sent. Runs in the namespace "outside"; argv[1] is the lab's folder.

What it saw is appended to FOLDER/seen.jsonl: one line per request with every header, so that a test can tell what
really left."""
import base64
import contextlib
import gzip
import hashlib
import http.server
import json
import os
import re
import socket
import socketserver
import ssl
import struct
import subprocess
import sys
import threading
import time
import urllib.parse

FOLDER = sys.argv[1]
SECRET = "sk-lab-0123456789abcdefghij-TOPSECRET"
ADDRESSES = ("10.99.0.80", "fd99::80")
ZONE4, ZONE6 = "10.99.0.80", "fd99::80"
SEEN_LOCK = threading.Lock()


def seen(**what):
    with SEEN_LOCK, open(os.path.join(FOLDER, "seen.jsonl"), "a") as f:
        f.write(json.dumps(what) + "\n")


# --- DNS: names under lab.test exist; private.lab.test and loop.lab.test point where they must not lead ---

SPECIAL = {"loop.lab.test": ["127.0.0.1"], "private.lab.test": ["192.168.7.7"], "meta.lab.test": ["169.254.169.254"],
           "own.lab.test": ["10.99.0.1"], "own-public.lab.test": ["11.22.33.44"], "own-second.lab.test": ["11.22.33.45"],
           "evil.lab.test": ["10.99.0.66"], "closed.lab.test": ["10.99.0.80"],
           "silent.lab.test": None}
# The origins of tests/integration/clients, which those tests start themselves.
# Names with more addresses than a datagram holds: (UDP says so, TCP has them), for some only the former.
LONG, HALF = ("long.lab.test", "long-deaf.lab.test"), "long-deaf.lab.test"
LONG_COUNT = 200
SUFFIXES = {".real.lab.test": ["10.99.0.81"], ".one.lab.test": ["10.99.0.82"], ".node.lab.test": ["10.99.0.83"]}


def addresses_of(name):
    """(IPv4, IPv6) addresses; None where the server is to say nothing at all."""
    if name in SPECIAL and SPECIAL[name] is None:
        return None
    if suffix := next((s for s in SUFFIXES if name.endswith(s)), None):
        return SUFFIXES[suffix], []
    if name in SPECIAL:
        return SPECIAL[name], []
    return ([ZONE4], [ZONE6]) if name.endswith(".lab.test") else ([], [])


def dns_answer(query, tcp=False):
    labels, i = [], 12
    while query[i]:
        labels.append(query[i + 1:i + 1 + query[i]])
        i += 1 + query[i]
    name = b".".join(labels).decode("latin-1").lower()
    qtype = struct.unpack(">H", query[i + 1:i + 3])[0]
    seen(what="dns", name=name, type=qtype, **({"tcp": True} if tcp else {}))
    addresses = addresses_of(name)
    if addresses is None:
        return None
    answers = []
    if qtype == 1:
        answers = [socket.inet_aton(a) for a in addresses[0]]
    elif qtype == 28:
        answers = [socket.inet_pton(socket.AF_INET6, a) for a in addresses[1]]
    rcode = 0 if addresses[0] else 3
    cut = name in LONG and not tcp
    answers = answers * (0 if cut else LONG_COUNT if name in LONG else 1)
    if name == HALF and tcp:
        return None
    head = query[:2] + struct.pack(">HHHHH", 0x8180 | cut << 9 | rcode, 1, len(answers), 0, 0)
    body = b"".join(b"\xc0\x0c" + struct.pack(">HHIH", qtype, 1, 5, len(a)) + a for a in answers)
    return head + query[12:i + 5] + body


def serve_dns(sock):
    while True:
        query, peer = sock.recvfrom(4096)
        try:
            answer = dns_answer(query)
        except IndexError:
            continue
        if answer:
            sock.sendto(answer, peer)


def serve_dns_stream(sock):
    """RFC 7766: messages with their length before them; an answer comes in two pieces, behind one that is nobody's."""
    def serve(conn):
        with conn, conn.makefile("rb") as f:
            while head := f.read(2):
                query = f.read(struct.unpack(">H", head)[0])
                answer = dns_answer(query, True)
                if not answer:
                    return
                other = bytes([query[0] ^ 1]) + answer[1:60]
                conn.sendall(struct.pack(">H", len(other)) + other + struct.pack(">H", len(answer)) + answer[:100])
                time.sleep(0.01)
                conn.sendall(answer[100:])
    while True:
        conn, _ = sock.accept()
        conn.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        threading.Thread(target=serve, args=(conn,), daemon=True).start()


def serve_udp_echo(sock):
    while True:
        data, peer = sock.recvfrom(65536)
        seen(what="udp", data=data.hex(), peer=peer[0])
        try:
            sock.sendto(b"echo:" + data, peer)
        except OSError:  # from an address that no way leads to
            pass


# --- HTTP ---

class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server_version, sys_version = "origin", ""

    def log_message(self, *_):
        pass

    def note(self, body_n=0, digest=""):
        seen(what="http", method=self.command, path=self.path, headers=[list(h) for h in self.headers.items()],
             body=body_n, sha256=digest, tls=isinstance(self.request, ssl.SSLSocket), port=self.server.server_address[1],
             peer=self.client_address[0])

    def read_body(self):
        """Reads the request's body as it comes. Returns its length and SHA-256; self.body has its first 64 KiB."""
        n, digest, self.body = 0, hashlib.sha256(), b""

        def note(data):
            digest.update(data)
            self.body += data[:65536 - len(self.body)]
        if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
            while True:
                size = int(self.rfile.readline().split(b";")[0], 16)
                left = size
                while left:
                    data = self.rfile.read(min(left, 65536))
                    note(data)
                    left -= len(data)
                    n += len(data)
                if size == 0:
                    while self.rfile.readline().strip():
                        pass
                    return n, digest.hexdigest()
                self.rfile.readline()
        left = int(self.headers.get("Content-Length", 0))
        while left:
            data = self.rfile.read(min(left, 65536))
            if not data:
                break
            note(data)
            left -= len(data)
            n += len(data)
        return n, digest.hexdigest()

    def answer(self, body, status=200, **headers):
        self.send_response(status)
        for k, v in headers.items():
            self.send_header(k.replace("_", "-"), v)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def chunk(self, data):
        self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
        self.wfile.flush()

    def begin_chunked(self, **headers):
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        for k, v in headers.items():
            self.send_header(k.replace("_", "-"), v)
        self.end_headers()

    def git(self, path, query):
        """git http-backend as a CGI program; the push and fetch of a repository that wants the token."""
        user_info = base64.b64encode(b"x-access-token:" + SECRET.encode()).decode()
        if self.headers.get("Authorization") not in ("Bearer " + SECRET, "Basic " + user_info):
            self.answer(b"who are you?", 401, WWW_Authenticate="Basic realm=git")
            return
        body = bytearray()
        if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
            while size := int(self.rfile.readline(), 16):
                body += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
        else:
            body += self.rfile.read(int(self.headers.get("Content-Length", 0)))
        env = {"PATH": "/usr/bin:/bin", "GIT_PROJECT_ROOT": os.path.join(FOLDER, "git"), "GIT_HTTP_EXPORT_ALL": "1",
               "PATH_INFO": path[4:], "QUERY_STRING": query, "REQUEST_METHOD": self.command, "REMOTE_USER": "lab",
               "CONTENT_TYPE": self.headers.get("Content-Type", ""), "REMOTE_ADDR": self.client_address[0],
               "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
               "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""), "CONTENT_LENGTH": str(len(body)),
               "GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "safe.directory", "GIT_CONFIG_VALUE_0": "*"}
        out = subprocess.run(["git", "http-backend"], input=bytes(body), env=env, capture_output=True).stdout
        head, _, rest = out.partition(b"\r\n\r\n")
        fields = dict(line.split(": ", 1) for line in head.decode().split("\r\n"))
        self.answer(rest, int(fields.pop("Status", "200").split()[0]), **fields)

    def file(self, path):
        """A file below FOLDER/files, for package managers."""
        name = os.path.normpath(os.path.join(FOLDER, "files") + path[6:])
        if name.startswith(os.path.join(FOLDER, "files")) and os.path.isfile(name):
            with open(name, "rb") as f:
                self.answer(f.read(), Content_Type="application/octet-stream")
        else:
            self.answer(b"no such file", 404)

    def forms(self, secret):
        """The credential in forms a careless or hostile API might send it back in, one line each."""
        raw = secret.encode()
        lines = [raw, urllib.parse.quote(secret, safe="").encode(), b"".join(b"%%%02X" % c for c in raw),
                 "".join(f"\\u{c:04x}" for c in raw).encode(), json.dumps(secret).encode()]
        lines += [base64.b64encode(b"." * i + raw + b"tail") for i in range(3)]
        lines += [base64.urlsafe_b64encode(b"?" * i + raw) for i in range(3)]
        return b"\n".join(lines) + b"\n"

    def mcp(self, body):
        """Answers as a small MCP server with three tools. A call's result says which tool was called."""
        if self.command != "POST":
            self.answer(b"", 200 if self.command == "DELETE" else 405)
            return
        try:
            asked = json.loads(body)
        except ValueError:
            self.answer(b"no JSON", 400)
            return
        asked = asked[0] if isinstance(asked, list) and asked else asked
        result = {}
        if asked.get("method") == "tools/list":
            result = {"tools": [{"name": n, "inputSchema": {"type": "object"}} for n in ("search", "read_file", "delete_file")]}
        elif asked.get("method") == "tools/call":
            result = {"content": [{"type": "text", "text": asked["params"]["name"] + " was called"}]}
        self.answer(json.dumps({"jsonrpc": "2.0", "id": asked.get("id"), "result": result}).encode(), Content_Type="application/json")

    def handle_any(self):
        if self.path.startswith("/git/"):
            self.note()
            self.git(*(self.path + "?").split("?")[:2])
            return
        if self.headers.get("Host") == "github.com":
            self.note()
            self.git(*("/git" + self.path + "?").split("?")[:2])
            return
        n, digest = self.read_body()
        self.note(n, digest)
        path = self.path.split("?")[0]
        auth = self.headers.get("Authorization", "")
        secret = auth.split(" ", 1)[-1]
        if path == "/mcp":
            self.mcp(self.body)
        elif path == "/whoami":
            self.answer(json.dumps({"authenticated": auth == "Bearer " + SECRET, "method": self.command}).encode(),
                        200 if auth == "Bearer " + SECRET else 401, Content_Type="application/json")
        elif path == "/reflect":
            self.answer(json.dumps({"auth": auth, "b64": base64.b64encode(b"x" + secret.encode()).decode()}).encode(),
                        X_Auth=auth)
        elif path.startswith("/files/"):
            self.file(path)
        elif path == "/forms":
            self.answer(self.forms(secret))
        elif path == "/forms-gzip":
            self.answer(gzip.compress(self.forms(secret)), Content_Encoding="gzip")
        elif path == "/forms-bytes":
            self.begin_chunked()
            for i in self.forms(secret):
                self.chunk(bytes([i]))
            self.wfile.write(b"0\r\nX-Sum: " + secret.encode() + b"\r\n\r\n")
        elif path == "/reflect-error":
            self.answer(b"bad key " + secret.encode(), 401, WWW_Authenticate=f'Bearer error="{secret}"')
        elif path == "/reflect-cookie":
            self.answer(b"", 302, Set_Cookie="k=" + secret, Location="/x?key=" + secret)
        elif path == "/reflect-early":
            self.wfile.write(b"HTTP/1.1 103 Early Hints\r\nLink: </" + secret.encode() + b">\r\n\r\n")
            self.answer(b"after hints")
        elif path == "/reflect-all":
            self.answer(json.dumps([list(h) for h in self.headers.items()] + [self.path]).encode())
        elif path == "/slow":
            time.sleep(float(self.path.split("?")[1]))
            self.answer(b"at last")
        elif path == "/trickle":
            self.begin_chunked()
            end = os.path.join(FOLDER, os.path.basename(self.path.partition("?")[2]) + ".end")
            for i in range(6000):
                self.chunk(b"%d\n" % i)
                if os.path.exists(end):
                    self.chunk(b"end\n")
                    break
                time.sleep(0.1)
            self.wfile.write(b"0\r\n\r\n")
        elif path == "/redirect-plain":
            self.answer(b"", 302, Location="http://api.lab.test/plain")
        elif path == "/redirect-port":
            self.answer(b"", 302, Location="https://api.lab.test:8443/port")
        elif path == "/redirect-www":
            self.answer(b"", 302, Location="https://www.lab.test/away")
        elif path == "/reflect-gzip":
            self.answer(gzip.compress(b"before " + secret.encode() + b" after"), Content_Encoding="gzip")
        elif path == "/exec":       # as `docker exec`: what is to be done in the body, then any bytes, turned round
            self.wfile.write(b"HTTP/1.1 101 UPGRADED\r\nContent-Type: application/vnd.docker.raw-stream\r\nConnection: Upgrade\r\n"
                             b"Upgrade: " + self.headers["Upgrade"].encode() + b"\r\n\r\n")
            while line := self.rfile.readline():
                self.wfile.write(line[::-1])
            self.close_connection = True
        elif path == "/archive.tar.gz":     # as some servers label one, whatever was asked for
            with open(os.path.join(FOLDER, "archive.tar.gz"), "rb") as f:
                self.answer(f.read(), Content_Encoding="gzip", Content_Type="application/x-tar", ETag='"v1"')
        elif path == "/reflect-no-transform":
            self.answer(gzip.compress(b"before " + secret.encode()), Content_Encoding="gzip", Cache_Control="no-transform")
        elif path == "/reflect-mark":
            self.answer(("key " + secret).encode("utf-16"), Content_Type="text/plain; charset=utf-8")
        elif path == "/reflect-coding":
            import codings  # a lab without the tests' packages has no such path
            coding, pack, _ = codings.CODINGS[self.path.partition("?")[2].replace("-", " ")]
            self.answer(pack(b"before " + secret.encode() + b" after"), Content_Encoding=coding, ETag='"v1"')
        elif path == "/reflect-unknown":
            self.answer(b"\xff\xff\xff\xff in no coding", Content_Encoding=self.path.partition("?")[2])
        elif path == "/reflect-events":  # as events of server-sent events, each flushed, and a pause between
            import brotli
            packer = brotli.Compressor()
            self.begin_chunked(Content_Encoding="br", Content_Type="text/event-stream")
            for piece in (b"data: one\n\n", b"data: " + secret.encode() + b"\n\n", b"data: two\n\n"):
                self.chunk(packer.process(piece) + packer.flush())
                time.sleep(0.1)
            self.chunk(packer.finish())
            self.wfile.write(b"0\r\n\r\n")
        elif path == "/reflect-part":  # as a file server: one range, and its condition
            text = b"." * 3000 + secret.encode() + b"." * 3000
            if path != self.path:  # "?large": the credential lies across each border of mebibytes
                text = (b"." * ((1 << 20) - len(secret)) + secret.encode()) * 3
                text = text[10:]
            found = re.fullmatch(r"bytes=(\d*)-(\d*)", self.headers.get("Range", ""))
            if not found or self.headers.get("If-Range", '"v1"') != '"v1"':
                self.answer(text, ETag='"v1"', Accept_Ranges="bytes")
                return
            first = int(found[1]) if found[1] else max(0, len(text) - int(found[2]))
            last = min(int(found[2]), len(text) - 1) if found[1] and found[2] else len(text) - 1
            if first > last:
                self.answer(b"", 416, Content_Range=f"bytes */{len(text)}")
            else:
                self.answer(text[first:last + 1], 206, Content_Range=f"bytes {first}-{last}/{len(text)}", ETag='"v1"', Accept_Ranges="bytes")
        elif path == "/reflect-charset":
            charset = self.path.partition("?")[2]
            self.answer(("key " + secret).encode(charset), Content_Type="text/plain; charset=" + charset)
        elif path == "/reflect-split":
            self.begin_chunked()
            for i in range(0, len(secret), 3):
                self.chunk(secret[i:i + 3].encode())
            self.chunk(b" end")
            self.wfile.write(b"0\r\n\r\n")
        elif path.startswith("/bytes/"):
            self.send_response(200)
            total = int(path.split("/")[2])
            self.send_header("Content-Length", str(total))
            self.end_headers()
            block = b"0123456789abcdef" * 4096
            while total > 0 and self.command != "HEAD":
                self.wfile.write(block[:total])
                total -= len(block)
        elif path.startswith("/say/"):  # the status, headers and pieces of a body that a test wrote to a file
            with open(os.path.join(FOLDER, "say-" + os.path.basename(path))) as f:
                said = json.load(f)
            self.send_response(said.get("status", 200))
            for k, v in said["headers"]:
                self.send_header(k, v)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            for piece in said["pieces"]:
                self.chunk(base64.b64decode(piece))
            self.wfile.write(b"0\r\n\r\n")
        elif path == "/events":
            self.begin_chunked(Content_Type="text/event-stream")
            name = os.path.basename(self.path.partition("?")[2])
            for i in range(5):
                self.chunk(b"data: %d\n\n" % i)
                end = time.monotonic() + 60  # with a name each event waits until the one before has been taken
                while name and not os.path.exists(os.path.join(FOLDER, f"{name}.{i}")) and time.monotonic() < end:
                    time.sleep(0.01)
            self.wfile.write(b"0\r\n\r\n")
        elif path == "/trailers":
            self.begin_chunked(Trailer="X-Sum")
            self.chunk(b"body")
            self.wfile.write(b"0\r\nX-Sum: 42\r\n\r\n")
        elif path == "/until-close":
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"until the end")
            self.close_connection = True
        elif path == "/evil-cut":  # as above, but TLS ends without close_notify: an attacker may have cut it
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"not the end")
            self.connection.cut = True
            self.close_connection = True
        elif path == "/status/204":
            self.send_response(204)
            self.end_headers()
        elif path == "/redirect":
            self.answer(b"", 302, Location="https://evil.lab.test/steal")
        elif path == "/early":
            self.wfile.write(b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n")
            self.answer(b"after hints")
        elif path == "/evil-101":
            self.wfile.write(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: evil\r\nConnection: upgrade\r\n\r\nraw")
            self.close_connection = True
        elif path == "/evil-extra":
            self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil")
        elif path == "/evil-short":
            self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort")
            self.close_connection = True
        elif path == "/evil-head":
            self.wfile.write(b"HTTP/1.1 200 OK\r\nX: a\r\n b\r\nContent-Length: 0\r\n\r\n")
        elif path == "/evil-length":
            self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 4\r\n\r\nevil")
        elif path == "/evil-both":
            self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n")
        elif path == "/evil-chunk":
            self.wfile.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\nx")
        elif path == "/evil-noise":
            self.wfile.write(bytes(range(256)) * 16)
            self.close_connection = True
        elif path == "/evil-big":
            self.wfile.write(b"HTTP/1.1 200 OK\r\n" + b"X: " + b"a" * 1000000 + b"\r\n\r\n")
            self.close_connection = True
        elif path == "/evil-hints":
            for _ in range(100000):
                self.wfile.write(b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n")
        elif path == "/evil-silent":
            threading.Event().wait(60)
        elif path == "/ws":
            self.websocket()
        else:
            self.answer(json.dumps({"method": self.command, "path": self.path, "body": n, "sha256": digest,
                                    "headers": dict(self.headers)}).encode(), Content_Type="application/json")

    def websocket(self):
        key = self.headers["Sec-WebSocket-Key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
        accept = base64.b64encode(hashlib.sha1(key.encode()).digest()).decode()
        self.wfile.write(("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                          f"Sec-WebSocket-Accept: {accept}\r\n\r\n").encode())
        kind = 0x81
        while True:  # echoes frames of less than 126 bytes, unmasked, each as a message: of binary data or of text
            head = self.rfile.read(2)
            if len(head) < 2 or head[0] & 15 == 8:
                break
            n = head[1] & 127
            mask, data = self.rfile.read(4), bytearray(self.rfile.read(n))
            for i in range(n):
                data[i] ^= mask[i % 4]
            if head[0] & 15:
                kind = 0x82 if head[0] & 15 == 2 else 0x81
            self.wfile.write(bytes([kind, n]) + bytes(data))
            self.wfile.flush()
        self.close_connection = True

    do_GET = do_POST = do_PUT = do_DELETE = do_HEAD = do_PATCH = do_OPTIONS = handle_any


class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, address, context=None):
        self.address_family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        self.context = context
        super().__init__(address, Handler)

    def server_bind(self):
        if self.address_family == socket.AF_INET6:
            self.socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = self.server_address[:2]

    def finish_request(self, request, client_address):
        if self.context:
            try:
                request = self.context.wrap_socket(request, server_side=True)
            except (ssl.SSLError, OSError):
                return
        try:
            super().finish_request(request, client_address)
            if self.context and not getattr(request, "cut", False):
                request.settimeout(1)
                request.unwrap()
        except (ssl.SSLError, OSError):
            pass

    def handle_error(self, *_):
        pass


def serve_banner(listener):
    def one(c):
        with c, contextlib.suppress(OSError):  # who talks to it may be gone
            c.sendall(b"banner 1.0\r\n")
            while data := c.recv(65536):
                seen(what="tcp", data=data[:200].hex())
                c.sendall(data)
    while True:
        c, _ = listener.accept()
        threading.Thread(target=one, args=(c,), daemon=True).start()


def serve_evil(listener):
    while True:
        c, _ = listener.accept()
        c.settimeout(1)
        try:
            data = c.recv(4096)
        except OSError:
            data = b""
        seen(what="evil", data=data.hex())
        c.close()


def thread(f, *args):
    threading.Thread(target=f, args=args, daemon=True).start()


def bound(kind, address, port):
    s = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, kind)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.bind((address, port))
    if kind == socket.SOCK_STREAM:
        s.listen(64)
    return s


def main():
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(os.path.join(FOLDER, "server.pem"), os.path.join(FOLDER, "server.key"))
    context.set_alpn_protocols(["http/1.1"])
    thread(serve_dns, bound(socket.SOCK_DGRAM, "10.99.0.53", 53))
    thread(serve_dns, bound(socket.SOCK_DGRAM, "10.99.0.53", 5300))
    thread(serve_dns_stream, bound(socket.SOCK_STREAM, "10.99.0.53", 53))
    for address in ADDRESSES:
        thread(Server((address, 443), context).serve_forever)
        thread(Server((address, 8443), context).serve_forever)
        thread(Server((address, 80)).serve_forever)
        thread(serve_banner, bound(socket.SOCK_STREAM, address, 2222))
        thread(serve_udp_echo, bound(socket.SOCK_DGRAM, address, 1234))
    for port in (80, 443, 53, 22, 8080):
        thread(serve_evil, bound(socket.SOCK_STREAM, "10.99.0.66", port))
    with open(os.path.join(FOLDER, "origin.ready"), "w"):
        pass
    threading.Event().wait()


if __name__ == "__main__":
    main()
