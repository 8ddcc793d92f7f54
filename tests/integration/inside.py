# SPDX-License-Identifier: Apache-2.0
"""Runs inside the sandbox: carries out commands for support.Sandbox (serve()), and is what the small Python
programs of the tests import: plain sockets, so that each byte on the wire is the test's own."""
import base64
import functools
import json
import os
import select
import signal
import socket
import ssl
import struct
import subprocess
import sys
import threading
import time
import traceback

PROXY_PORT = 3128


def gate():
    """The gate's address, as resolv.conf has it."""
    with open("/etc/resolv.conf") as f:
        for line in f:
            if line.startswith("nameserver") and ":" not in line:
                return line.split()[1]
    raise RuntimeError("no nameserver")


def connect(host, port=443, timeout=60, family=socket.AF_INET):
    info = socket.getaddrinfo(host, port, family, socket.SOCK_STREAM)[0]
    s = socket.socket(info[0], socket.SOCK_STREAM)
    s.settimeout(timeout)
    s.connect(info[4])
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return s


MAKING = threading.Lock()


@functools.lru_cache
def tls_context(named=True, verify=True, version=None, alpn=("http/1.1",)):
    """Reading the CAs takes longer than most of what is done with it."""
    context = ssl.create_default_context()
    context.check_hostname = named
    if not verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if version:
        context.minimum_version = context.maximum_version = version
    if alpn:
        context.set_alpn_protocols(list(alpn))
    return context


def tls(host, port=443, sni=None, verify=True, version=None, timeout=60, sock=None, alpn=("http/1.1",), session=None):
    if sni is None:
        sni = host
    with MAKING:  # of many threads one reads the CAs, and before it connects: a handshake may not take long to begin
        context = tls_context(bool(sni), verify, version, tuple(alpn or ()))
    sock = sock or connect(host, port, timeout)
    return context.wrap_socket(sock, server_hostname=sni or None, session=session)


def request(method, path, host, *fields, body=b"", version="1.1"):
    lines = [f"{method} {path} HTTP/{version}"] + ([f"Host: {host}"] if host is not None else []) + list(fields)
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def read_all(s, limit=1 << 26):
    data = bytearray()
    while len(data) < limit:
        try:
            piece = s.recv(65536)
        except (ConnectionResetError, ssl.SSLError, TimeoutError) as e:
            data += b"<" + type(e).__name__.encode() + b">"
            break
        if not piece:
            break
        data += piece
    return bytes(data)


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
        data = bytearray(self.data)
        while len(data) < n:
            self.data = b""
            self.more()
            data += self.data
        self.data = bytes(data[n:])
        return bytes(data[:n])

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


class Copy:
    """A copy of this process that carries out Python text with everything of this module at hand: an interpreter of its own
    takes longer to start than most of what is asked of it. As far as serve() needs it, a subprocess.Popen."""

    def __init__(self, text, env):
        ends = os.pipe(), os.pipe()
        if not env:
            tls_context()  # the next copies have it, too
        self.pid = os.fork()
        if self.pid == 0:
            os.setsid()
            for fd, source in enumerate((os.open(os.devnull, os.O_RDONLY), ends[0][1], ends[1][1])):
                os.dup2(source, fd)
            os.closerange(3, 256)
            os._exit(self.work(text, env))
        for _, end in ends:
            os.close(end)
        self.out = {read: b"" for read, _ in ends}

    @staticmethod
    def work(text, env):
        sys.stdin, sys.stdout, sys.stderr = (os.fdopen(fd, mode) for fd, mode in enumerate("rww"))
        if env:
            os.environ.update(env)
            tls_context.cache_clear()
        status = 0
        try:
            exec(compile(text, "<stdin>", "exec"), {**globals(), "__name__": "__main__"})
        except SystemExit as e:
            status = e.code if isinstance(e.code, int) else int(e.code is not None)
            if status and not isinstance(e.code, int):
                print(e.code, file=sys.stderr)
        except BaseException:
            status = 1
            traceback.print_exc()
        for t in threading.enumerate():
            if t is not threading.current_thread() and not t.daemon:
                t.join()
        sys.stdout.flush()
        sys.stderr.flush()
        return status

    def communicate(self, _=None, timeout=None):
        end, open_ends = time.monotonic() + (timeout or 0), [fd for fd in self.out]
        while open_ends:
            ready = select.select(open_ends, [], [], max(0, end - time.monotonic()) if timeout else None)[0]
            if not ready:
                raise subprocess.TimeoutExpired("python", timeout)
            for fd in ready:
                piece = os.read(fd, 1 << 20)
                self.out[fd] += piece
                if not piece:
                    open_ends.remove(fd)
        status = os.waitpid(self.pid, 0)[1]
        self.returncode = os.waitstatus_to_exitcode(status)
        for fd in self.out:
            os.close(fd)
        return tuple(self.out.values())


def start(order, data):
    if "python" in order:
        return Copy(order["python"], order.get("env"))
    return subprocess.Popen(order["argv"], stdin=subprocess.PIPE if data is not None else subprocess.DEVNULL,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=dict(os.environ, **order.get("env", {})),
                            start_new_session=True)


def serve():
    def say(what):
        sys.stdout.write(json.dumps(what) + "\n")
        sys.stdout.flush()

    say({"ready": True})
    for line in sys.stdin:
        order = json.loads(line)
        data = base64.b64decode(order["input"]) if order.get("input") is not None else None
        p = start(order, data)
        try:
            out, err = p.communicate(data, order.get("timeout", 60))
            status = p.returncode
        except subprocess.TimeoutExpired:
            os.killpg(p.pid, signal.SIGKILL)
            out, err = p.communicate()
            status = "timeout"
        say({"status": status, "out": base64.b64encode(out).decode(), "err": base64.b64encode(err).decode()})
