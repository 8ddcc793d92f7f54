# SPDX-License-Identifier: Apache-2.0
"""What bench_attach.py works with: a crowd of namespaces, a daemon, a neighbor that works and an abuser."""
import ctypes
import json
import os
import resource
import select
import signal
import socket
import ssl
import struct
import subprocess
import sys
import threading
import time

import bench_lab
from bench_lab import BUILD, TOOLS, Load
from bench_machine import CLONE_NEWNET, libc, percentile

GUARDED = "198.18.0.1"  # the gate's address in every sandbox
PROXY_PORT = 3128
SINK, SINK_PORT = bench_lab.ORIGIN4, 9999  # takes datagrams and never reads them
LOAD_CPU, ABUSE_CPU = "0", "1"
POLICY = """vethguard: 1
name: crowd
include: [preset:pypi, preset:npm, preset:github, preset:debian]
allow:
  - name: api
    to: https://api.lab.test
    methods: [GET, HEAD]
  - name: sink
    to: udp://%s:%d
""" % (SINK, SINK_PORT)
SINK_PROGRAM = "import signal, socket; s = socket.socket(type=2); s.bind(('%s', %d)); signal.pause()" % (SINK, SINK_PORT)


def check(result, what):
    if result:
        raise OSError(ctypes.get_errno(), what)


class Crowd:
    """Network namespaces, each bound to a file as `ip netns add` does it."""

    def __init__(self, lab, count):
        self.lab, self.count, self.fds = lab, count, []
        self.own = os.open("/proc/self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        self.connections = []
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self.context.check_hostname = False
        self.context.verify_mode = ssl.CERT_NONE

    def __enter__(self):
        for i in range(self.count):
            check(libc.unshare(CLONE_NEWNET), "unshare")
            with open(self.path(i), "w"):
                pass
            check(libc.mount(b"/proc/self/ns/net", self.path(i).encode(), b"none", 4096, None), "mount")
            self.fds.append(os.open(self.path(i), os.O_RDONLY | os.O_CLOEXEC))
        self.go_home()
        return self

    def __exit__(self, *_):
        self.hang_up()
        for i, fd in enumerate(self.fds):
            os.close(fd)
            libc.umount2(self.path(i).encode(), 2)
        os.close(self.own)

    @staticmethod
    def path(i):
        return f"/run/netns/s{i}"

    def go_home(self):
        check(libc.setns(self.own, CLONE_NEWNET), "setns")

    def socket(self, i, kind=socket.SOCK_STREAM):
        """A socket that lives in sandbox i."""
        check(libc.setns(self.fds[i], CLONE_NEWNET), "setns")
        try:
            s = socket.socket(socket.AF_INET, kind)
        finally:
            self.go_home()
        s.settimeout(30)
        return s

    def spawn(self, i, argv, **kw):
        return self.lab.spawn(["nsenter", "--net=" + self.path(i)] + argv, text=True, stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, **kw)

    # --- requests from here: latencies in ms ---

    @staticmethod
    def ask(s, request, status):
        begin = time.monotonic()
        s.sendall(request)
        answer = s.recv(65536)
        if not answer.startswith(b"HTTP/1.1 " + status):
            raise RuntimeError(f"answered {answer[:200]!r}")
        return (time.monotonic() - begin) * 1e3

    def open_tls(self, i):
        s = self.socket(i)
        s.connect((GUARDED, PROXY_PORT))
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.ask(s, b"CONNECT api.lab.test:443 HTTP/1.1\r\nHost: api.lab.test:443\r\n\r\n", b"200")
        return self.context.wrap_socket(s, server_hostname="api.lab.test")

    def requests_everywhere(self, rounds):
        """In every sandbox a connection and a request; then some more over all of these connections."""
        request = b"GET /bytes/1 HTTP/1.1\r\nHost: api.lab.test\r\n\r\n"
        first, again = [], []
        for i in range(self.count):
            begin = time.monotonic()
            c = self.open_tls(i)
            self.ask(c, request, b"200")
            first.append((time.monotonic() - begin) * 1e3)
            self.connections.append(c)
        for _ in range(rounds):
            again += [self.ask(c, request, b"200") for c in self.connections]
        self.hang_up()
        return first, again

    def hang_up(self):
        for c in self.connections:
            c.close()
        self.connections = []

    def refusals(self, count):
        """A request that the worker of each sandbox answers by itself."""
        times = []
        for i in range(count):
            s = self.socket(i)
            s.connect((GUARDED, PROXY_PORT))
            try:
                times.append(self.ask(s, b"GET http://other.lab.test/ HTTP/1.1\r\nHost: other.lab.test\r\n\r\n", b"403"))
            except TimeoutError as e:
                raise TimeoutError(f"sandbox {i} of {count} did not answer within {s.gettimeout():.0f} s") from e
            s.close()
        return times

    def first_served(self, seconds=300):
        """The time at which any sandbox is served again: where nobody listens a connection is refused at once."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            for i in range(self.count):
                s = self.socket(i)
                s.settimeout(0.2)
                try:
                    s.connect((GUARDED, PROXY_PORT))
                    self.ask(s, b"GET http://other.lab.test/ HTTP/1.1\r\nHost: other.lab.test\r\n\r\n", b"403")
                    return time.monotonic()
                except (OSError, RuntimeError):
                    pass
                finally:
                    s.close()
        raise RuntimeError("no sandbox is served")

    def queries(self, i, count):
        s = self.socket(i, socket.SOCK_DGRAM)
        s.connect((GUARDED, 53))
        times = []
        for n in range(count):
            name = f"q{n % 10}".encode()
            query = struct.pack(">HHHHHH", n, 0x100, 1, 0, 0, 0) + bytes([len(name)]) + name + b"\x04test\0\0\x01\0\x01"
            begin = time.monotonic()
            s.send(query)
            s.recv(512)
            times.append((time.monotonic() - begin) * 1e3)
        s.close()
        return times


class Daemon:
    def __init__(self, lab):
        self.lab = lab
        self.dir = lab.path("daemon")
        os.makedirs(self.dir)
        bench_lab.sh("mount", "-t", "tmpfs", "none", self.dir)  # as /run is
        self.state = os.path.join(self.dir, "state")
        self.socket = os.path.join(self.state, "control.sock")
        self.policy = lab.write("crowd.yaml", POLICY)
        lab.spawn(["ip", "netns", "exec", "outside", sys.executable, "-c", SINK_PROGRAM])
        self.config = lab.write("daemon.yaml", f"ca_files: [{lab.path('ca.pem')}]\npermit: [10.99.0.0/16]\n")
        self.process = None
        self.successor = None  # its pidfd, after an upgrade
        self.answered = threading.local()  # .at: when this thread's last answer had come

    def __enter__(self):
        self.start()
        while True:
            try:
                if self.call("GET", "/v1/status"):
                    break
            except OSError:
                self.check_alive()
                time.sleep(0.01)
        time.sleep(0.5)
        return self

    def __exit__(self, *_):
        if self.successor is not None:
            signal.pidfd_send_signal(self.successor, signal.SIGTERM)
            ended = select.poll()  # select(2) knows no descriptor above 1023
            ended.register(self.successor, select.POLLIN)
            ended.poll(60_000)
            os.close(self.successor)
        self.lab.end(self.process, 60)
        bench_lab.sh("umount", "--lazy", self.dir)

    def start(self):
        with open(os.path.join(self.dir, "stderr"), "ab") as err:
            self.process = self.lab.spawn(
                [os.path.join(BUILD, "bin", "vethguardd"), "--config", self.config, "--state", self.state, "--data",
                 os.path.join(self.dir, "data"), "--audit", os.path.join(self.dir, "audit.jsonl")],
                stdin=subprocess.DEVNULL, stdout=err, stderr=err)

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self.lab.processes.remove(self.process)

    def upgrade(self):
        """The same programs once more; the old daemon stays until its workers are through."""
        self.call("POST", "/v1/upgrade", timeout=300)
        self.successor = os.pidfd_open(self.call("GET", "/v1/status")["processes"]["supervisor"])

    def stderr(self):
        with open(os.path.join(self.dir, "stderr"), errors="replace") as f:
            return f.read()[-3000:]

    def check_alive(self):
        if self.process.poll() is not None:
            raise RuntimeError(f"the daemon ended with {self.process.returncode}: {self.stderr()}")

    def call(self, method, path, body=None, timeout=60):
        """The answer's JSON. A status other than 2xx is an error here."""
        text = json.dumps(body).encode() if body is not None else b""
        with socket.socket(socket.AF_UNIX) as s:
            s.settimeout(timeout)
            s.connect(self.socket)
            s.sendall(f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
                      f"Content-Type: application/json\r\nContent-Length: {len(text)}\r\n\r\n".encode() + text)
            parts = []
            while part := s.recv(1 << 20):
                parts.append(part)
        self.answered.at = time.monotonic()
        head, _, answer = b"".join(parts).partition(b"\r\n\r\n")
        if not head.startswith(b"HTTP/1.1 2"):
            raise RuntimeError(f"{method} {path}: {head[:60]!r} {answer[:2000]!r} {self.stderr()}")
        return json.loads(answer) if answer else {}

    def timed(self, method, path, body=None):
        """Milliseconds to the end of the answer; reading its JSON, which takes as long again for a list of a thousand, is the caller's."""
        begin = time.monotonic()
        self.call(method, path, body)
        return (self.answered.at - begin) * 1e3

    def attach(self, crowd, i):
        """Milliseconds from the request to the answer, which says that the sandbox is served."""
        return self.timed("POST", "/v1/sandboxes", {"name": f"s{i}", "netns": crowd.path(i), "policy": self.policy})

    def wait_serving(self, count, seconds=300):
        """The time at which so many are served."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            try:
                status = self.call("GET", "/v1/status")
                if status["sandboxes"]["serving"] >= count:
                    return time.monotonic()
            except OSError:
                self.check_alive()
            time.sleep(0.005)
        raise RuntimeError(f"{count} sandboxes are not served: {self.stderr()}")

    def pids(self):
        return bench_lab.descendants(self.process.pid)


def per_call(daemon, method, path, samples):
    return [daemon.timed(method, path) for _ in range(samples)]


ROLES = {"vethguardd": "supervisor", "vethguard-keepe": "keeper", "vethguard-recor": "recorder", "vethguard-worke": "worker"}


def usage(pids, memory=False):
    """CPU seconds, processes, and where wanted PSS in KiB and descriptors, by role."""
    out = {role: {"cpu": 0.0, "count": 0, "pss": 0, "fds": 0} for role in ROLES.values()}
    for pid, name in pids:
        r = out[ROLES[name]]
        try:
            with open(f"/proc/{pid}/schedstat") as f:
                r["cpu"] += int(f.read().split()[0]) / 1e9
            r["count"] += 1
            if memory:
                r["pss"] += sum(bench_lab.pss_kib([(pid, name)]).values())
                r["fds"] += len(os.listdir(f"/proc/{pid}/fd"))
        except OSError:
            continue
    return out


class Neighbour:
    """Requests over one kept connection in sandbox i, one after another. All that works for nobody else keeps to one CPU: its load,
    its worker, and the origin, which in life is on another machine."""

    def __init__(self, crowd, i, worker):
        for pid in (worker, crowd.lab.origin.pid):
            os.sched_setaffinity(pid, {int(LOAD_CPU)})
        self.process = crowd.spawn(i, [os.path.join(TOOLS, "load"), LOAD_CPU])
        self.load = Load("load", self.process)
        self.lab = crowd.lab

    def __enter__(self):
        self.load(f"open target=api.lab.test:443 name=api.lab.test through={GUARDED}:{PROXY_PORT} conns=1 bytes=1024")
        return self

    def __exit__(self, *_):
        self.load("close")
        self.load.close()
        self.process.wait()
        self.lab.processes.remove(self.process)

    def rate(self, seconds):
        """(requests per second, latencies in ms): means of small groups, whose best and worst tell how even it was."""
        group, done, latencies = 20, 0, []
        begin = time.monotonic()
        while time.monotonic() - begin < seconds:
            r = self.load(f"go requests={group} bytes=1024")
            done += group
            latencies.append(r["wall_s"] / group * 1e3)
        return 1e3 * len(latencies) / sum(latencies), latencies


class Abuser:
    def __init__(self, crowd, i, *argv, cpu=ABUSE_CPU):
        self.crowd, self.i, self.argv, self.cpu = crowd, i, argv, cpu

    def __enter__(self):
        self.process = self.crowd.spawn(self.i, [os.path.join(TOOLS, "abuse"), self.cpu, *self.argv])
        return self

    def __exit__(self, *_):
        out, _ = self.process.communicate()
        self.crowd.lab.processes.remove(self.process)
        result = json.loads(out)
        self.done, self.wall_s, self.cpu_s = max(result["done"] + result["failed"], 1), result["wall_s"], result["cpu_s"]
