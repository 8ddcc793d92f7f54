# SPDX-License-Identifier: Apache-2.0
"""Runs inside the sandbox: carries out commands for support.Sandbox (argument "serve"), and is what the small Python
programs of the tests import: plain sockets, so that each byte on the wire is the test's own."""
import base64
import json
import os
import select  # noqa: F401  (select and time are for the tests' programs)
import signal
import socket
import ssl
import struct
import subprocess
import sys
import time  # noqa: F401

PROXY_PORT = 3128


def gate():
    """The gate's address, as resolv.conf has it."""
    with open("/etc/resolv.conf") as f:
        for line in f:
            if line.startswith("nameserver") and ":" not in line:
                return line.split()[1]
    raise RuntimeError("no nameserver")


def connect(host, port=443, timeout=10, family=socket.AF_INET):
    info = socket.getaddrinfo(host, port, family, socket.SOCK_STREAM)[0]
    s = socket.socket(info[0], socket.SOCK_STREAM)
    s.settimeout(timeout)
    s.connect(info[4])
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return s


def tls(host, port=443, sni=None, verify=True, version=None, timeout=10, sock=None, alpn=("http/1.1",), session=None):
    context = ssl.create_default_context()
    if not verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if version:
        context.minimum_version = context.maximum_version = version
    if alpn:
        context.set_alpn_protocols(list(alpn))
    sock = sock or connect(host, port, timeout)
    if sni is None:
        sni = host
    if not sni:
        context.check_hostname = False
    return context.wrap_socket(sock, server_hostname=sni or None, session=session)


def request(method, path, host, *fields, body=b"", version="1.1"):
    lines = [f"{method} {path} HTTP/{version}"] + ([f"Host: {host}"] if host is not None else []) + list(fields)
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def read_all(s, limit=1 << 26):
    data = b""
    while len(data) < limit:
        try:
            piece = s.recv(65536)
        except (ConnectionResetError, ssl.SSLError, TimeoutError) as e:
            return data + b"<" + type(e).__name__.encode() + b">"
        if not piece:
            break
        data += piece
    return data


class Reader:
    """Reads responses off a connection one by one."""

    def __init__(self, s):
        self.s, self.data = s, b""

    def more(self):
        piece = self.s.recv(65536)
        if not piece:
            raise EOFError(f"closed after {self.data[:200]!r}")
        self.data += piece

    def until(self, mark):
        while mark not in self.data:
            self.more()
        head, self.data = self.data.split(mark, 1)
        return head

    def take(self, n):
        while len(self.data) < n:
            self.more()
        part, self.data = self.data[:n], self.data[n:]
        return part

    def head(self):
        lines = self.until(b"\r\n\r\n").decode("latin-1").split("\r\n")
        fields = {}
        for line in lines[1:]:
            k, _, v = line.partition(":")
            fields[k.lower()] = v.strip()
        return int(lines[0].split()[1]), fields

    def chunked(self):
        body = b""
        while size := int(self.until(b"\r\n").split(b";")[0], 16):
            body += self.take(size)
            self.take(2)
        self.trailers = []
        while line := self.until(b"\r\n"):
            self.trailers.append(line.decode())
        return body

    def response(self, method="GET"):
        """(status, fields, body); interim responses are answers of their own."""
        status, fields = self.head()
        if method == "HEAD" or status in (204, 304) or status < 200:
            return status, fields, b""
        if fields.get("transfer-encoding", "").lower() == "chunked":
            return status, fields, self.chunked()
        if "content-length" in fields:
            return status, fields, self.take(int(fields["content-length"]))
        return status, fields, self.data + read_all(self.s)


def fetch(host, path="/", method="GET", port=443, fields=(), body=b"", plain=False, **kw):
    s = connect(host, port) if plain else tls(host, port, **kw)
    s.sendall(request(method, path, host if port in (80, 443) else f"{host}:{port}", *fields, body=body))
    return Reader(s).response(method)


def answered(status, fields, body):
    """Prints a response so that the test outside can read it."""
    print(json.dumps({"status": status, "fields": fields, "body": body.decode("latin-1")}))


def proxy_connect(authority, *fields, version="1.1", host=True):
    """A tunnel through the explicit proxy: (socket, status, response fields)."""
    s = socket.create_connection((gate(), PROXY_PORT), 10)
    lines = [f"CONNECT {authority} HTTP/{version}"] + ([f"Host: {authority}"] if host is True else
                                                      [f"Host: {host}"] if host else []) + list(fields)
    s.sendall("\r\n".join(lines).encode() + b"\r\n\r\n")
    data = b""
    while b"\r\n\r\n" not in data:
        piece = s.recv(1)
        if not piece:
            return s, 0, data.decode("latin-1")
        data += piece
    return s, int(data.split()[1]), data.decode("latin-1")


def dns_query(name, qtype=1, server=None, timeout=2, flags=0x0100, tcp=False, qclass=1):
    """A query written by hand: (rcode, [rdata], raw answer) or None when nothing came."""
    labels = b"".join(bytes([len(x)]) + x for x in (name if isinstance(name, bytes) else name.encode()).split(b".") if x)
    query = struct.pack(">HHHHHH", os.getpid() & 0xffff, flags, 1, 0, 0, 0) + labels + b"\0" + struct.pack(">HH", qtype, qclass)
    server = server or gate()
    family = socket.AF_INET6 if ":" in server else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM if tcp else socket.SOCK_DGRAM) as s:
        s.settimeout(timeout)
        try:
            s.connect((server, 53))
            s.send((struct.pack(">H", len(query)) if tcp else b"") + query)
            data = s.recv(65536)[2 if tcp else 0:]
        except OSError:
            return None
    at, answers = 12 + len(labels) + 5, []
    for _ in range(struct.unpack(">H", data[6:8])[0]):
        while data[at] and data[at] < 192:
            at += 1 + data[at]
        at += 2 if data[at] >= 192 else 1
        n = struct.unpack(">H", data[at + 8:at + 10])[0]
        answers.append(data[at + 10:at + 10 + n])
        at += 10 + n
    return data[3] & 15, answers, data


def serve():
    def say(what):
        sys.stdout.write(json.dumps(what) + "\n")
        sys.stdout.flush()

    say({"ready": True})
    for line in sys.stdin:
        order = json.loads(line)
        data = base64.b64decode(order["input"]) if order.get("input") is not None else None
        env = dict(os.environ, **order.get("env", {}))
        p = subprocess.Popen(order["argv"], stdin=subprocess.PIPE if data is not None else subprocess.DEVNULL,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env, start_new_session=True)
        try:
            out, err = p.communicate(data, order.get("timeout", 60))
            status = p.returncode
        except subprocess.TimeoutExpired:
            os.killpg(p.pid, signal.SIGKILL)
            out, err = p.communicate()
            status = "timeout"
        say({"status": status, "out": base64.b64encode(out).decode(), "err": base64.b64encode(err).decode()})


if __name__ == "__main__" and sys.argv[1:] == ["serve"]:
    serve()
