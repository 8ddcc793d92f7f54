# SPDX-License-Identifier: Apache-2.0
"""The gateway's cost (bench_gateway.py): a request over a kept connection beside the same request of a sandbox with a link, and a new
authenticated TLS connection beside haproxy's. CPU time of all processes of the daemon (haproxy: of its one), the ways in turn. Client,
daemon, haproxy and origin share a CPU."""
import base64
import os
import random
import socket
import ssl
import statistics

import bench_lab
from bench_attach import row
from bench_attach_lab import GUARDED, PROXY_PORT, Crowd
from bench_machine import CLONE_NEWNET, libc

PLAIN_PORT, TLS_PORT, HAPROXY_PORT = 8080, 8443, 8460
ROUNDS = int(os.environ.get("ROUNDS", "9"))
REQUESTS = int(os.environ.get("REQUESTS", "400"))  # of each way in a round
CONNECTIONS = int(os.environ.get("CONNECTIONS", "150"))
CPU = {0}
HOST = "api.lab.test"
GET = f"GET /bytes/1024 HTTP/1.1\r\nHost: {HOST}\r\n\r\n".encode()


class Stream:
    """A connection, and TLS around what it carries as often as asked."""

    def __init__(self, s):
        self.s = s

    def send(self, data):
        self.s.sendall(data)

    def receive(self):
        data = self.s.recv(65536)
        if not data:
            raise RuntimeError("the connection has ended")
        return data

    def close(self):
        self.s.close()


class Tls:
    def __init__(self, inner, context, name, session=None):
        self.inner, self.read, self.write = inner, ssl.MemoryBIO(), ssl.MemoryBIO()
        self.o = context.wrap_bio(self.read, self.write, server_hostname=name, session=session)
        self.run(self.o.do_handshake)
        self.flush()

    def flush(self):
        if self.write.pending:
            self.inner.send(self.write.read())

    def run(self, what):
        while True:
            try:
                return what()
            except ssl.SSLWantReadError:
                self.flush()
                self.read.write(self.inner.receive())

    def send(self, data):
        self.o.write(data)
        self.flush()

    def receive(self):
        return self.run(lambda: self.o.read(65536))

    def close(self):
        self.inner.close()


def head_of(stream, status):
    data = b""
    while b"\r\n\r\n" not in data:
        data += stream.receive()
    if not data.startswith(b"HTTP/1.1 " + status):
        raise RuntimeError(f"answered {data[:200]!r}")
    head, _, rest = data.partition(b"\r\n\r\n")
    return head, rest


def ask(stream, request):
    stream.send(request)
    head, rest = head_of(stream, b"200")
    length = next((int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")), 0)
    while len(rest) < length:
        rest += stream.receive()


def context():
    c = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    c.check_hostname = False
    c.verify_mode = ssl.CERT_NONE
    return c


class Place:
    """Sockets in the client's namespace, and in that of a sandbox with a link."""

    def __init__(self, crowd):
        self.crowd = crowd
        self.there = os.open("/run/netns/client", os.O_RDONLY | os.O_CLOEXEC)

    def connect(self, port):
        if libc.setns(self.there, CLONE_NEWNET):
            raise OSError("setns")
        try:
            s = socket.create_connection((bench_lab.GATEWAY4, port), timeout=30)
        finally:
            self.crowd.go_home()
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return Stream(s)

    def connect_inside(self):
        s = self.crowd.socket(0)
        s.connect((GUARDED, PROXY_PORT))
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return Stream(s)


def connect_head(token=None):
    proof = f"Proxy-Authorization: Bearer {token}\r\n" if token else ""
    return f"CONNECT {HOST}:443 HTTP/1.1\r\nHost: {HOST}:443\r\n{proof}\r\n".encode()


def tunnel(stream, token=None):
    ask(stream, connect_head(token))
    return Tls(stream, context(), HOST)


def spent(pids, work):
    before = sum(bench_lab.cpu_ns(pids()).values())
    n = work()
    bench_lab.settle()
    return (sum(bench_lab.cpu_ns(pids()).values()) - before) / n / 1e3


def switches(pids):
    total = 0
    for pid, _ in pids:
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/status") as f:
                total += sum(int(line.split()[1]) for line in f if "ctxt_switches" in line)
    return total


def compare(ways, base, unit):
    """ways: name -> (pids, work); work returns how much it has done. Rows with medians, and the median of the ratios to the base of the
    same round."""
    results, order = {name: [] for name in ways}, list(ways)
    turns = {name: [] for name in ways}
    for name in order:
        ways[name][1]()
    for _ in range(ROUNDS):
        random.shuffle(order)
        for name in order:
            pids, work = ways[name]
            before = switches(pids())
            results[name].append(spent(pids, work))
            turns[name].append((switches(pids()) - before) / work.count)
    for name, goal in ((n, ways[n][1].goal) for n in ways):
        ratios = [a / b for a, b in zip(results[name], results[base])]
        row(f"{unit}, {name}", f"{statistics.median(results[name]):.1f} us ({min(results[name]):.1f}-{max(results[name]):.1f}), "
            f"{statistics.median(turns[name]):.1f} context switches, {statistics.median(ratios):.2f} of \"{base}\" "
            f"({min(ratios):.2f}-{max(ratios):.2f})", goal)


class Work:
    def __init__(self, count, one, goal=""):
        self.count, self.one, self.goal = count, one, goal

    def __call__(self):
        for _ in range(self.count):
            self.one()
        return self.count


def kept(place, daemon, token):
    base_url = f"GET /s/{token}/https/{HOST}/bytes/1024 HTTP/1.1\r\nHost: gateway.lab.test\r\n\r\n".encode()
    plain = tunnel(place.connect(PLAIN_PORT), token)
    outer = tunnel(Tls(place.connect(TLS_PORT), context(), "gateway.lab.test"), token)
    url = Tls(place.connect(TLS_PORT), context(), "gateway.lab.test")
    link = tunnel(place.connect_inside())
    ask(url, base_url)
    compare({"a sandbox with a link": (daemon.pids, Work(REQUESTS, lambda: ask(link, GET))),
             "the gateway, HTTPS proxy (TLS in TLS)": (daemon.pids, Work(REQUESTS, lambda: ask(outer, GET), "1.15")),
             "the gateway, proxy without TLS": (daemon.pids, Work(REQUESTS, lambda: ask(plain, GET), "1.15")),
             "the gateway, base URL": (daemon.pids, Work(REQUESTS, lambda: ask(url, base_url), "1.15"))},
            "a sandbox with a link", "CPU of a request over a kept connection")


class Haproxy:
    def __init__(self, lab, password):
        pem = lab.write("haproxy.pem", "")
        with open(pem, "w") as out:
            for name in ("server.pem", "server.key"):
                with open(lab.path(name)) as f:
                    out.write(f.read())
        config = lab.write("haproxy-gateway.cfg", f"""global
    nbthread 1
defaults
    mode http
    timeout connect 10s
    timeout client 300s
    timeout server 300s
    option http-keep-alive
    http-reuse always
userlist users
    user session insecure-password {password}
frontend gate
    bind {bench_lab.GATEWAY4}:{HAPROXY_PORT} ssl crt {pem} alpn http/1.1
    http-request auth unless {{ http_auth(users) }}
    http-request return status 200 if {{ path /here }}
    default_backend origin
backend origin
    server o {bench_lab.ORIGIN4}:443 ssl verify required ca-file {lab.path("ca.pem")} sni str({HOST}) verifyhost {HOST} alpn http/1.1
""")
        self.process = lab.spawn(["haproxy", "-db", "-f", config])
        bench_lab.settle(1)

    def pids(self):
        return bench_lab.descendants(self.process.pid)


class Newcomer:
    """A new TLS connection with one request. resume: it brings the ticket of one before."""

    def __init__(self, place, port, name, request, resume):
        self.place, self.port, self.name, self.request, self.resume = place, port, name, request, resume
        self.context, self.session = context(), None

    def __call__(self):
        tls = Tls(self.place.connect(self.port), self.context, self.name, self.session)
        ask(tls, self.request)
        if self.session and not tls.o.session_reused:
            raise RuntimeError("not resumed")
        if self.resume:
            self.session = tls.o.session
        tls.close()


def new(lab, place, daemon, token):
    haproxy = Haproxy(lab, "s" * 43)
    for pid, _ in haproxy.pids():
        os.sched_setaffinity(pid, CPU)
    basic = base64.b64encode(b"session:" + b"s" * 43).decode()
    here = f"GET /here HTTP/1.1\r\nHost: {HOST}\r\nAuthorization: Basic {basic}\r\n\r\n".encode()
    there = f"GET /bytes/1024 HTTP/1.1\r\nHost: {HOST}\r\nAuthorization: Basic {basic}\r\n\r\n".encode()
    base_url = f"GET /s/{token}/https/{HOST}/bytes/1024 HTTP/1.1\r\nHost: gateway.lab.test\r\n\r\n".encode()
    for resume in (False, True):
        what = "resumed" if resume else "full handshake"
        compare({"haproxy, http-auth": (haproxy.pids, Work(CONNECTIONS, Newcomer(place, HAPROXY_PORT, HOST, here, resume))),
                 "the gateway, CONNECT": (daemon.pids, Work(CONNECTIONS, Newcomer(
                     place, TLS_PORT, "gateway.lab.test", connect_head(token), resume), "1.3"))},
                "haproxy, http-auth", f"CPU of a new authenticated TLS connection ({what}) until its answer")
        compare({"haproxy, http-auth": (haproxy.pids, Work(CONNECTIONS, Newcomer(place, HAPROXY_PORT, HOST, there, resume))),
                 "the gateway, base URL": (daemon.pids, Work(CONNECTIONS, Newcomer(
                     place, TLS_PORT, "gateway.lab.test", base_url, resume), "1.3"))},
                "haproxy, http-auth", f"CPU of the same with a request to an upstream ({what})")
    lab.end(haproxy.process)


def measure(lab, gateway, only):
    """gateway: the class Gateway of bench_gateway.py."""
    with Crowd(lab, 1) as crowd, gateway(lab) as daemon:
        token = daemon.create("requests")
        daemon.attach(crowd, 0)
        daemon.wait_serving(2)
        for pid, _ in [*daemon.pids(), (lab.origin.pid, ""), (os.getpid(), "")]:
            os.sched_setaffinity(pid, CPU)
        place = Place(crowd)
        if only != "new":
            kept(place, daemon, token)
        if only != "kept":
            new(lab, place, daemon, token)
