#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Namespaces that are prepared: what claiming and releasing one costs at the control API, beside attaching. One table at the end.

    make bench-claim BENCH_CLAIM_OPTIONS="--count 1000"

Claims, attachments and calls that do nothing (GET /v1/status) come in turn, each after the same pause, so that the machine is the same
for all of them. A call after a pause wakes a CPU, which in a virtual machine takes longer than the claim; "after another call" is the
same without that. The floor is that call that does nothing: where its own 99th percentile is above the goal, no claim can be below."""
import argparse
import os
import sys
import time

import bench_attach
import bench_lab
from bench_attach import ms, row
from bench_attach_lab import Crowd, Daemon
from bench_lab import sh
from bench_machine import Prompt, stolen

EACH = 200  # claims of each kind
ATTACHMENTS = 100
GAP_S = 0.08
PLAIN = """vethguard: 1
name: claimed
include: [preset:pypi, preset:npm, preset:github, preset:debian]
allow:
  - {name: api, to: 'https://api.lab.test', methods: [GET, HEAD]}
"""


class Claims:
    def __init__(self, daemon, crowd, policy):
        self.daemon, self.crowd, self.policy, self.next = daemon, crowd, policy, 0

    def prepare(self, count):
        return [self.daemon.timed("POST", "/v1/prepared", {"name": f"r{i}", "netns": self.crowd.path(i), "addresses": "same"})
                for i in range(count)]

    def claim(self, **more):
        """Milliseconds from the request to the answer."""
        i, self.next = self.next, self.next + 1
        return self.daemon.timed("POST", "/v1/claim", {"name": f"c{i}", "policy": self.policy, "labels": {"job": str(i)}, **more})

    def first_answer(self):
        """Milliseconds from the request to claim to the answer that a client inside gets to its first request."""
        i = self.next
        s = self.crowd.socket(i)
        begin = time.monotonic()
        self.claim(netns=self.crowd.path(i))
        s.connect(("198.18.0.1", 3128))
        self.crowd.ask(s, b"GET http://other.lab.test/ HTTP/1.1\r\nHost: other.lab.test\r\n\r\n", b"403")
        s.close()
        return (time.monotonic() - begin) * 1e3


def paused(call, **kw):
    time.sleep(GAP_S)
    with Prompt():
        return call(**kw)


def nothing(daemon):
    return daemon.timed("GET", "/v1/status")


def after_another(daemon, call):
    time.sleep(GAP_S)
    with Prompt():
        nothing(daemon)
        return call()


def spent(daemon, call, times):
    """A call after a pause; the CPU time of the daemon's own process for it goes to times, in ms."""
    def cpu_ms():
        return bench_lab.cpu_ns([(daemon.process.pid, "daemon")])["daemon"] / 1e6
    time.sleep(GAP_S)
    before = cpu_ms()
    with Prompt():
        took = call()
    times.append(cpu_ms() - before)
    return took


def in_turn(claims, daemon, crowd, prepared):
    times, status, awake, awake_status, whole, attached, cpu, status_cpu = [], [], [], [], [], [], [], []
    for i in range(EACH):
        before = stolen()
        times.append(spent(daemon, claims.claim, cpu))
        if stolen() == before:
            whole.append(times[-1])
        status.append(spent(daemon, lambda: nothing(daemon), status_cpu))
        awake.append(after_another(daemon, claims.claim))
        awake_status.append(after_another(daemon, lambda: nothing(daemon)))
        if i < ATTACHMENTS:
            attached.append(paused(daemon.attach, crowd=crowd, i=prepared + i))
    row(f"claim, one at a time ({prepared} prepared): p50 / p99", ms(times), "p99 < 1 ms")
    row("claim, one at a time, while the hypervisor took nothing: p50 / p99", f"{ms(whole)} ({len(whole)} of {len(times)})" if whole else "never")
    row("claim, after another call: p50 / p99", ms(awake), "p99 < 1 ms")
    row("in turn with these, GET /v1/status, one at a time: p50 / p99", ms(status))
    row("in turn with these, GET /v1/status, after another call: p50 / p99", ms(awake_status))
    row("a claim less the status of its turn: p50 / p99", ms([a - b for a, b in zip(times, status)]))
    row("the same after another call: p50 / p99", ms([a - b for a, b in zip(awake, awake_status)]))
    row("CPU of the daemon's process, claim: p50 / p99", ms(cpu))
    row("the same, status: p50 / p99", ms(status_cpu))
    row(f"in turn with these, attach, one at a time, {len(attached)}: p50 / p99", ms(attached))


def measure(lab, args):
    policy = lab.write("claimed.yaml", PLAIN)
    with Crowd(lab, args.count + ATTACHMENTS) as crowd, Daemon(lab) as daemon:
        claims = Claims(daemon, crowd, policy)
        begin = time.monotonic()
        prepared = claims.prepare(args.count)
        row(f"prepare, {args.count} one after another: p50 / p99, rate", f"{ms(prepared)}, {args.count / (time.monotonic() - begin):.0f}/s")
        time.sleep(2)
        before = bench_lab.pss_kib(daemon.pids())
        row("memory (PSS) with all of them prepared", f"{sum(before.values()) / 1024:.1f} MiB")
        claims.claim(wait=True)
        in_turn(claims, daemon, crowd, args.count)
        waited = [paused(claims.claim, wait=True) for _ in range(args.some)]
        row("claim that waits until it is served, one at a time: p50 / p99", ms(waited))
        answered = [paused(claims.first_answer) for _ in range(args.some)]
        row("claim and the first answer to a client inside: p50 / p99", ms(answered))
        begin = time.monotonic()
        burst = [claims.claim() for _ in range(args.some)]
        row(f"claim, {args.some} in a burst: p50 / p99, rate", f"{ms(burst)}, {args.some / (time.monotonic() - begin):.0f}/s")
        time.sleep(2)
        released = [paused(daemon.timed, method="POST", path=f"/v1/sandboxes/c{i}/release") for i in range(args.some)]
        row("release, one at a time: p50 / p99", ms(released))


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--count", type=int, default=1000, help="prepared namespaces (at least %d)" % (2 * EACH + 200))
    p.add_argument("--keep", action="store_true", help="leave the files of the run")
    args = p.parse_args()
    args.some = 60
    if args.count < 2 * EACH + 200:
        p.error(f"--count: at least {2 * EACH + 200}")
    begin = time.monotonic()
    lab = bench_lab.Lab()
    try:
        lab.start()
        measure(lab, args)
    finally:
        lab.stop(args.keep)
    bench_attach.table()
    print(f"\n{args.count} prepared, {time.monotonic() - begin:.0f} s, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, "
          f"Linux {os.uname().release}, {sh('git', '-C', bench_lab.ROOT, 'describe', '--always', '--dirty').strip()}", file=sys.stdout)


if __name__ == "__main__":
    main()
