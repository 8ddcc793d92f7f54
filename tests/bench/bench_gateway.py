#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The gateway: what idle sessions take, and how long the first connection waits for its worker. One table at the end.

    make bench-gateway BENCH_GATEWAY_OPTIONS="--sessions 5000"
"""
import argparse
import os
import socket
import sys
import time

import bench_attach
import bench_lab
from bench_attach import ms, row
from bench_attach_lab import Daemon
from bench_lab import sh
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


def main():
    parser = argparse.ArgumentParser(description="idle sessions of the gateway")
    parser.add_argument("--sessions", type=int, default=5000)
    args = parser.parse_args()
    if os.geteuid() != 0:
        sys.exit("the benchmark makes namespaces: run it as root")
    lab = bench_lab.Lab()
    try:
        lab.start()
        idle(lab, args.sessions)
    finally:
        lab.stop()
    sh("true")
    print("\n| what | measured | goal |\n|---|---|---|")
    for r in bench_attach.rows:
        print(f"| {r['what']} | {r['value']} | {r['goal']} |")


if __name__ == "__main__":
    main()
