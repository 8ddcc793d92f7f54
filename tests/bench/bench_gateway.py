#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The gateway: what a request and a new connection cost, what idle sessions take, how long the first connection waits for its worker, and
what is left to a session beside strangers who show wrong tokens by the thousand. One table at the end.

    make bench-gateway BENCH_GATEWAY_OPTIONS="--sessions 5000"
"""
import argparse
import json
import os
import socket
import ssl
import subprocess
import sys
import time

import bench_attach
import bench_gateway_requests
import bench_lab
from bench_attach import ms, row
from bench_attach_lab import Daemon
from bench_lab import TOOLS, Load, sh
from bench_machine import Prompt, percentile, stolen

PLAIN_PORT, TLS_PORT = 8080, 8443
WAKES = 200
GAP_S = 0.16  # the daemon fills its store of workers again meanwhile
POLICY = """vethguard: 1
name: session
include: [preset:pypi, preset:npm, preset:github, preset:debian]
allow:
  - {name: api, to: 'https://api.lab.test', methods: [GET, HEAD]}
"""
REFUSED = "GET http://other.lab.test/ HTTP/1.1\r\nHost: other.lab.test\r\nProxy-Authorization: Bearer %s\r\n\r\n"


class Gateway(Daemon):
    def __init__(self, lab, keep_worker="60s", more=""):
        super().__init__(lab)
        self.policy = lab.write("session.yaml", POLICY)
        with open(self.config, "a") as f:
            f.write("limits: {connections: 6000, connections_per_s: 100000}\n"
                    f"gateway:\n  listen: '{bench_lab.GATEWAY4}:{TLS_PORT}'\n  listen_plain: ['{bench_lab.GATEWAY4}:{PLAIN_PORT}']\n"
                    f"  plain_anywhere: true\n  certificate: {lab.path('server.pem')}\n  key: {lab.path('server.key')}\n"
                    f"  keep_worker: {keep_worker}\n{more}")

    def create(self, name):
        return self.call("POST", "/v1/sessions", {"name": name, "policy": self.policy})["token"]

    def gateway_ns(self):
        return bench_lab.cpu_ns([p for p in self.pids() if p[1] == "vethguard-gatew"])["vethguard-gatew"]

    def pss(self):
        """KiB of all processes, and how many of them are workers."""
        pids = self.pids()
        return sum(bench_lab.pss_kib(pids).values()), sum(name == "vethguard-worke" for _, name in pids)

    @staticmethod
    def connect():
        s = socket.create_connection((bench_lab.GATEWAY4, PLAIN_PORT), timeout=30)
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return s


def ask(s, token, status=b"403"):
    """Milliseconds to the answer, which the session's worker gives by itself."""
    begin = time.monotonic()
    s.sendall((REFUSED % token).encode())
    answer = b""
    while b"\r\n\r\n" not in answer:
        part = s.recv(65536)
        if not part:
            raise RuntimeError(f"answered {answer[:200]!r}")
        answer += part
    took = (time.monotonic() - begin) * 1e3
    if not answer.startswith(b"HTTP/1.1 " + status):
        raise RuntimeError(f"answered {answer[:200]!r}")
    return took


def idle(lab, count):
    with Gateway(lab, "1s") as daemon:
        before, _ = daemon.pss()
        begin = time.monotonic()
        tokens = [daemon.create(f"i{i}") for i in range(count)]
        row(f"{count} sessions made", f"{count / (time.monotonic() - begin):.0f}/s")
        after, workers = daemon.pss()
        row(f"idle session, PSS of all processes ({count} there, {workers} workers in store)", f"{(after - before) / count:.1f} KiB", "1.2 MiB")
        first, second, whole = [], [], []
        for i in range(0, count, max(1, count // WAKES)):
            time.sleep(GAP_S)
            taken = stolen()
            with Prompt(), daemon.connect() as s:
                first.append(ask(s, tokens[i]))
                second.append(ask(s, tokens[i]))
            if stolen() == taken:
                whole.append(first[-1])
        row(f"first request of an idle session ({count} there): p50 / p99", ms(first), "10 ms")
        row("the same while the hypervisor took nothing: p50 / p99", f"{ms(whole)} ({len(whole)} of {len(first)})" if whole else "never")
        row("second request of the same connection: p50 / p99", ms(second))
        row("so a worker is there within: p50", f"{percentile(first, 50) - percentile(second, 50):.2f} ms", "5 ms")
        time.sleep(4)
        again, workers = daemon.pss()
        row(f"idle session after {len(first)} of them had a worker, and have none ({workers} in store)", f"{(again - before) / count:.1f} KiB", "1.2 MiB")


SOURCES = 200  # addresses of strangers
RATE = 10000  # their connections per second
ENOUGH = 0.95  # of RATE: with fewer the result counts for nothing
ROUNDS = int(os.environ.get("ROUNDS", "7"))  # of strangers, between times alone
ROUND_S = 2
PROXY_CPU, STRANGERS_CPU = "0", "1"


def hello():
    """A ClientHello, which costs its sender nothing, and the gateway a handshake."""
    out = ssl.MemoryBIO()
    client = ssl.create_default_context().wrap_bio(ssl.MemoryBIO(), out, server_hostname="gateway.lab.test")
    try:
        client.do_handshake()
    except ssl.SSLWantReadError:
        pass
    return out.read()


class Session:
    """Requests over kept connections of one session. It shares a CPU with all that works for it, the origin too."""

    def __init__(self, lab, token):
        self.process = lab.spawn(["ip", "netns", "exec", "client", os.path.join(TOOLS, "load"), PROXY_CPU], text=True,
                                 stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.load = Load("load", self.process)
        self.load(f"open target=api.lab.test:443 name=api.lab.test through={bench_lab.GATEWAY4}:{PLAIN_PORT} proof={token} conns=4 bytes=1024")

    def rate(self, seconds):
        done, end, begin = 0, time.monotonic() + seconds, time.monotonic()
        while time.monotonic() < end:
            done += self.load("go requests=200 bytes=1024")["done"]
        return done / (time.monotonic() - begin)


class Abuse:
    """A program on the other CPU, from its start until end()."""

    def __init__(self, lab, *what):
        self.process = lab.spawn(["ip", "netns", "exec", "client", os.path.join(TOOLS, "abuse"), STRANGERS_CPU, *what], text=True,
                                 stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.lab = lab

    def end(self):
        """Ends the program; returns what it did."""
        self.process.stdin.close()
        result = json.loads(self.process.stdout.readline())
        self.process.wait()
        self.lab.processes.remove(self.process)
        return result


class Strangers(Abuse):
    """Connections that say what is in the file at path, without waiting for an answer, and hang up."""

    def __init__(self, lab, port, path):
        super().__init__(lab, "strangers", bench_lab.GATEWAY4, str(port), str(RATE), path, "10.98.0.10", str(SOURCES))

    def rates(self):
        """Ends it. Connections per second that were tried, and those that the gateway's host took: the gateway accepts few at a time, and
        the kernel drops what does not fit into the backlog."""
        result = self.end()
        return (result["done"] + result["failed"]) / result["wall_s"], result["done"] / result["wall_s"]


def beside(session):
    """Requests per second of the session while others are at work."""
    time.sleep(0.3)  # the gateway serves a burst of strangers as they come, and few at a time from then on
    return session.rate(ROUND_S)


def kept(ratios):
    return f"{percentile(ratios, 50):.2f} ({min(ratios):.2f}-{max(ratios):.2f})"


def strangers(lab):
    """A session's requests, in turn alone, beside a program that only computes, and beside each kind of strangers. Strangers have a CPU of
    their own. Where two CPUs share a core, the session is slower as soon as the other one has anything to do: the program that computes
    tells by how much."""
    for i in range(SOURCES):
        sh("ip", "-n", "client", "addr", "add", f"10.98.0.{10 + i}/24", "dev", "cl0")
    sh("sysctl", "-qw", "net.core.somaxconn=4096")
    wrong = lab.write("wrong", REFUSED % ("vgs_" + "A" * 43))
    with open(lab.path("hello"), "wb") as f:
        f.write(hello())
    with Gateway(lab) as daemon:
        session = Session(lab, daemon.create("good"))
        for pid, _ in [*daemon.pids(), (lab.origin.pid, "")]:
            os.sched_setaffinity(pid, {int(PROXY_CPU)})
        session.rate(ROUND_S)
        for what, port, path in (("wrong tokens", PLAIN_PORT, wrong), ("TLS handshakes without a token", TLS_PORT, lab.path("hello"))):
            alone, computing, crowded, tried, taken = [], [], [], [], []
            for _ in range(ROUNDS):
                alone.append(session.rate(ROUND_S))
                crowd = Abuse(lab, "spin")
                computing.append(beside(session))
                crowd.end()
                crowd = Strangers(lab, port, path)
                crowded.append(beside(session))
                for rates, rate in zip((tried, taken), crowd.rates()):
                    rates.append(rate)
                time.sleep(0.5)
            crowd = Strangers(lab, port, path)
            time.sleep(0.5)
            before, begin = daemon.gateway_ns(), time.monotonic()
            time.sleep(ROUND_S)
            spent = (daemon.gateway_ns() - before) / (time.monotonic() - begin) / 1e6
            count = crowd.rates()[0]
            row(f"CPU of the gateway for {count:.0f} {what} a second, alone", f"{spent:.0f} ms/s", "100 ms/s and what the kernel takes")
            row("a session beside a program that computes on the other CPU: of its requests/s alone",
                kept([b / a for a, b in zip(alone, computing)]))
            row(f"a session beside {percentile(tried, 50):.0f} {what} a second ({percentile(taken, 50):.0f} taken in) from {SOURCES} addresses: "
                "requests/s, of those alone", f"{percentile(crowded, 50):.0f}, {kept([b / a for a, b in zip(alone, crowded)])}", "0.90")
            if min(tried) < ENOUGH * RATE:
                row(f"the strangers tried no more than {min(tried):.0f} times a second: the row above proves nothing", "", f"{RATE}")
        session.load("close")
        session.load.close()


def main():
    parser = argparse.ArgumentParser(description="idle sessions of the gateway, and strangers")
    parser.add_argument("--sessions", type=int, default=5000)
    parser.add_argument("--only", choices=("kept", "new", "idle", "strangers"))
    args = parser.parse_args()
    if os.geteuid() != 0:
        sys.exit("the benchmark makes namespaces: run it as root")
    lab = bench_lab.Lab()
    try:
        lab.start()
        if args.only in (None, "kept", "new"):
            bench_gateway_requests.measure(lab, Gateway, args.only)
        if args.only in (None, "idle"):
            idle(lab, args.sessions)
        if args.only in (None, "strangers"):
            strangers(lab)
    finally:
        lab.stop()
    print("\n| what | measured | goal |\n|---|---|---|")
    for r in bench_attach.rows:
        print(f"| {r['what']} | {r['value']} | {r['goal']} |")


if __name__ == "__main__":
    main()
