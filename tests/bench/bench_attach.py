#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Many sandboxes on one vethguardd: what attaching, serving, asking, restarting and abuse cost. One table at the end.

    make bench-attach BENCH_ATTACH_OPTIONS="--count 1000"

Sandboxes are network namespaces; the client of the control API is this program, a connection for each call as `vethguard
attach` and curl make one."""
import argparse
import concurrent.futures
import contextlib
import json
import os
import signal
import sys
import time

import bench_lab
from bench_attach_lab import GUARDED, SINK, SINK_PORT, Crowd, Daemon, Neighbour, Abuser, per_call, usage
from bench_lab import sh
from bench_machine import Echo, Prompt, Spin, Warm, bare_namespace, percentile, stolen

SAMPLES = 60  # calls behind each latency
ATTACHMENTS = 200  # and attachments
GAP_S = 0.16  # between two attachments outside a burst: the daemon fills its stores again meanwhile
TURN = 25  # attachments, and then as many of what they are compared with
ORDINARY = 4  # each so many-eth is asked for by a caller at ordinary priority
SETTLE_S = 0.5  # between the two
MIB_EACH = 5  # memory that a sandbox takes, the kernel's included
SPIN_MS = 2.5
ABUSE_S, ALONE_S = 1.5, 1.0
ROUNDS = 7  # of each abuse, between times alone
SLOW_CONNECTIONS = 2000
BUSY_EACH = 4  # processes that compute, for each CPU
ASKING_CONNECTIONS = 64
DETACHERS = 8  # clients at a time
SEGMENTS = 64  # datagrams in one packet, at most
rows = []


def row(what, value, goal=""):
    rows.append({"what": what, "value": value, "goal": goal})
    print(f"  {what}: {value}", file=sys.stderr, flush=True)


def ms(values):
    return f"{percentile(values, 50):.2f} / {percentile(values, 99):.2f} ms"


def others(echo, spin, count, bare, echoes, spins):
    """What the machine takes at this moment for work that has nothing to do with vethguard. The kernel removes namespaces after
    their processes have ended, and new work waits for it."""
    for _ in range(count):
        time.sleep(GAP_S / 4)
        bare.append(bare_namespace())
        time.sleep(GAP_S / 4)
        echoes.append(echo.ask())
        time.sleep(GAP_S / 4)
        spins.append(spin.run())
    time.sleep(SETTLE_S)


def attach_all(daemon, crowd, count):
    """In bursts up to each mark, and there one after another with a pause between."""
    done, each, paced, paced_ordinary = 0, min(ATTACHMENTS, count // 4), [], []
    for mark in (0, count // 2, count - each):
        begin, burst = time.monotonic(), mark - done
        slow = [daemon.attach(crowd, i) for i in range(done, mark)]
        if burst > 0:
            row(f"attach, {burst} in a burst ({done} there): p50 / p99, rate",
                f"{ms(slow)}, {burst / (time.monotonic() - begin):.0f}/s")
        done = mark
        times, whole, ordinary, bare, echoes, spins, before = [], [], [], [], [], [], usage(daemon.pids())
        echo, spin = Echo(), Spin(SPIN_MS)
        for i in range(done, done + each):
            if (i - done) % TURN == 0:
                others(echo, spin, min(TURN, done + each - i), bare, echoes, spins)
            time.sleep(GAP_S)
            if i % ORDINARY == 0:
                ordinary.append(daemon.attach(crowd, i))
                continue
            stolen_before = stolen()
            with Prompt():
                times.append(daemon.attach(crowd, i))
            if stolen() == stolen_before:
                whole.append(times[-1])
        after = usage(daemon.pids())
        echo.close()
        row(f"in turn with these, {SPIN_MS} ms of computing ({mark} there): p50 / p99", ms(spins))
        row(f"in turn with these, a byte to a process that sleeps, and back ({mark} there): p50 / p99", ms(echoes))
        row(f"in turn with these, a process that makes a network namespace and ends ({mark} there): p50 / p99", ms(bare))
        row(f"attach, one at a time ({mark} there): p50 / p99", ms(times), "p99 < 5 ms")
        row(f"attach, one at a time ({mark} there), while the hypervisor took nothing: p50 / p99",
            f"{ms(whole)} ({len(whole)} of {len(times)})" if whole else "never")
        row(f"attach, one at a time ({mark} there), by a caller at ordinary priority: p50 / most of {len(ordinary)}",
            f"{percentile(ordinary, 50):.2f} / {max(ordinary):.2f} ms")
        row(f"attach, one at a time ({mark} there): CPU of all roles, what fills the stores again included",
            f"{sum(after[r]['cpu'] - before[r]['cpu'] for r in after) / each * 1e3:.1f} ms")
        paced += times
        paced_ordinary += ordinary
        done += each
    row(f"attach, one at a time, all {len(paced)} of these: p50 / p99", ms(paced), "p99 < 5 ms")
    row(f"attach, one at a time, all {len(paced_ordinary)} by a caller at ordinary priority: p50 / p99", ms(paced_ordinary))


def attach_beside_computing(daemon, crowd, count):
    """The last ones once more, while others keep every CPU busy: so no CPU has to be woken either, which takes a virtual machine's host
    up to some milliseconds."""
    computing, times = BUSY_EACH * os.cpu_count(), []
    with contextlib.ExitStack() as busy:
        for i in range(computing):
            busy.enter_context(Abuser(crowd, i, "spin", cpu=str(i % os.cpu_count())))
        for i in range(count - min(ATTACHMENTS, count // 4), count):
            daemon.call("DELETE", f"/v1/sandboxes/s{i}")
            time.sleep(GAP_S)
            with Prompt():
                times.append(daemon.attach(crowd, i))
    row(f"attach, one at a time ({count - 1} there), {computing} processes computing on {os.cpu_count()} CPUs: p50 / p99", ms(times), "p99 < 5 ms")


def calls(daemon, count):
    name = f"s{count // 2}"
    for what, method, path in (("list", "GET", "/v1/sandboxes"), ("show", "GET", f"/v1/sandboxes/{name}"),
                               ("stats", "GET", f"/v1/sandboxes/{name}/stats"), ("status", "GET", "/v1/status")):
        row(f"{what} with {count}: p50 / p99", ms(per_call(daemon, method, path, SAMPLES)))


def idle(daemon, seconds=5):
    """What the daemon's processes take when nobody asks for anything."""
    before = usage(daemon.pids())
    time.sleep(seconds)
    after = usage(daemon.pids())
    for role in ("worker", "supervisor", "keeper", "recorder"):
        row(f"idle: CPU of {role}{'s, all' if role == 'worker' else ''}",
            f"{(after[role]['cpu'] - before[role]['cpu']) / seconds * 1e3:.3f} ms/s")


def memory(daemon, when):
    all_roles = usage(daemon.pids(), memory=True)
    worker = all_roles["worker"]
    row(f"memory {when}: worker, PSS each", f"{worker['pss'] / worker['count']:.0f} KiB", "< 1536 KiB")
    for role in ("supervisor", "keeper", "recorder"):
        r = all_roles[role]
        row(f"memory {when}: {role}, PSS; descriptors", f"{r['pss'] / 1024:.1f} MiB; {r['fds']}")
    row(f"memory {when}: descriptors of a worker", f"{worker['fds'] / worker['count']:.0f}")


def requests(crowd, count):
    first, again = crowd.requests_everywhere(3)
    row(f"first intercepted request in each of {count}: p50 / p99", ms(first))
    row("further requests over the same connections: p50 / p99", ms(again))


def packets(crowd, count):
    """The fence's cost for what it drops and what it hands on, in the first sandbox."""
    with Abuser(crowd, 0, "packets", GUARDED, "4433", "0") as a:
        time.sleep(1.5)
    row(f"a dropped datagram with {count} sandboxes, CPU of the sender", f"{a.cpu_s / a.done * 1e6:.2f} us")
    times = crowd.queries(0, 300)
    row(f"a DNS query with {count} sandboxes: p50 / p99", f"{percentile(times, 50):.3f} / {percentile(times, 99):.3f} ms")


ABUSES = [("a computing process", ["spin"]),
          ("connection flood", ["connect", GUARDED, "3128"]),
          ("slow clients", ["slow", GUARDED, "3128", str(SLOW_CONNECTIONS)]),
          ("DNS flood", ["dns", GUARDED, "53"]),
          ("1 Gbit/s of dropped packets", ["packets", GUARDED, "4433", "1000"]),
          ("relayed datagrams", ["datagrams", SINK, str(SINK_PORT), "1"]),
          (f"relayed datagrams, {SEGMENTS} in a packet", ["datagrams", SINK, str(SINK_PORT), str(SEGMENTS)]),
          ("TCP segments of no connection", ["noise", GUARDED, "3128"]),
          ("refused requests", ["refusals", GUARDED, "3128", str(ASKING_CONNECTIONS)])]


def beside(daemon, crowd, neighbour, argv):
    """[(share, requests/s alone, beside, latencies beside)], and what the abuser did. What the hypervisor takes of both CPUs
    changes from one second to the next, so each time is compared with the ones alone just before and after it."""
    shares, did = [], ""
    before, _ = neighbour.rate(ALONE_S)
    for _ in range(ROUNDS):
        used = usage(daemon.pids())
        with Abuser(crowd, 0, *argv) as a:
            time.sleep(SETTLE_S)
            rate, latencies = neighbour.rate(ABUSE_S)
        busy = {r: (u["cpu"] - used[r]["cpu"]) / a.wall_s * 100 for r, u in usage(daemon.pids()).items()}
        did = (f"{a.done / a.wall_s:.0f}/s; CPU abuser {a.cpu_s / a.wall_s * 100:.0f} %, workers {busy['worker']:.0f} %, "
               f"recorder {busy['recorder']:.0f} %, supervisor {busy['supervisor']:.1f} %")
        time.sleep(SETTLE_S)
        after, _ = neighbour.rate(ALONE_S)
        alone = (before + after) / 2
        shares.append((rate / alone, alone, rate, latencies))
        before = after
    return sorted(shares), did


def abuse(daemon, crowd):
    """A neighbor's requests, one after another, beside each abuse. The neighbor keeps to one CPU, the abuser to the other; where
    the abuser's worker and the recorder run is the scheduler's choice."""
    worker = daemon.call("GET", "/v1/sandboxes/s1")["worker"]["pid"]
    with Neighbour(crowd, 1, worker) as neighbour:
        neighbour.rate(1.0)
        for name, argv in ABUSES:
            shares, did = beside(daemon, crowd, neighbour, argv)
            share, alone, rate, latencies = shares[len(shares) // 2]
            row(f"neighbor beside {name}, of its requests/s alone: median (least to most)",
                f"{share * 100:.0f} % ({shares[0][0] * 100:.0f} to {shares[-1][0] * 100:.0f}); {rate:.0f} of {alone:.0f}, "
                f"{ms(latencies)} [{did}]", "> 90 %")


def reload_all(daemon, count):
    begin = time.monotonic()
    daemon.call("POST", "/v1/reload", timeout=120)
    row(f"reload of all {count}", f"{time.monotonic() - begin:.2f} s")


def restart(daemon, crowd, count):
    daemon.kill()
    begin = time.monotonic()
    daemon.start()
    first = crowd.first_served()
    row(f"restart with {count} after kill -9: the first one serves", f"{first - begin:.2f} s", "within 1 s")
    done = daemon.wait_serving(count)
    row("restart: all serve", f"{done - begin:.2f} s")
    refused = crowd.refusals(count)
    row(f"after it, a request in each of {count}: p50 / p99", ms(refused))


def kill_role(daemon, crowd, role, count):
    """The recorder and the keeper are told of every sandbox when another one takes over: with many that is a burst."""
    before = daemon.call("GET", "/v1/status")["processes"][role]
    os.kill(before, signal.SIGKILL)
    begin = time.monotonic()
    while daemon.call("GET", "/v1/status")["processes"][role] in (None, before):
        time.sleep(0.005)
    row(f"kill -9 of the {role} with {count}: another one after", f"{(time.monotonic() - begin) * 1e3:.0f} ms")
    first, _ = crowd.requests_everywhere(0)
    row(f"after it, a connection and a request in each of {count}: p50 / p99", ms(first))


def upgrade(daemon, crowd, count):
    begin = time.monotonic()
    daemon.upgrade()
    row(f"upgrade with {count}: the new daemon serves all after", f"{time.monotonic() - begin:.2f} s")
    row(f"after it, a request in each of {count}: p50 / p99", ms(crowd.refusals(count)))


def detach_all(daemon, count):
    """One after another; the same while somebody asks for something else all the time; the rest by several clients at once."""
    def detach(i):
        return daemon.timed("DELETE", f"/v1/sandboxes/s{i}")

    row(f"detach, one after another ({count} there): p50 / p99", ms([detach(i) for i in range(SAMPLES)]))
    asked, beside = [], concurrent.futures.ThreadPoolExecutor(1).submit(lambda: [detach(i) for i in range(SAMPLES, 2 * SAMPLES)])
    while not beside.done():
        asked.append(daemon.timed("GET", "/v1/status"))
        time.sleep(0.002)
    beside.result()
    row("status beside detaches, one after another: p50 / p99", ms(asked))
    begin, rest = time.monotonic(), range(2 * SAMPLES, count)
    with concurrent.futures.ThreadPoolExecutor(DETACHERS) as clients:
        list(clients.map(detach, rest))
    row(f"detach of the rest, {DETACHERS} clients: rate", f"{len(rest) / (time.monotonic() - begin):.0f}/s")


def measure(lab, args):
    print(f"  {args.count} namespaces", file=sys.stderr, flush=True)
    with Warm(args.count * MIB_EACH), Crowd(lab, args.count) as crowd, Daemon(lab) as daemon:
        if wanted(args, "packets"):
            daemon.attach(crowd, 0)
            packets(crowd, 1)
            daemon.call("DELETE", "/v1/sandboxes/s0")
            time.sleep(0.5)
        attach_all(daemon, crowd, args.count)
        time.sleep(1.0)
        for name, what in (("busy", lambda: attach_beside_computing(daemon, crowd, args.count)),
                           ("memory", lambda: memory(daemon, "before the first request")),
                           ("calls", lambda: calls(daemon, args.count)),
                           ("requests", lambda: requests(crowd, args.count)),
                           ("memory", lambda: memory(daemon, "after requests")),
                           ("idle", lambda: idle(daemon)),
                           ("packets", lambda: packets(crowd, args.count)),
                           ("abuse", lambda: abuse(daemon, crowd)),
                           ("reload", lambda: reload_all(daemon, args.count)),
                           ("restart", lambda: restart(daemon, crowd, args.count)),
                           ("roles", lambda: kill_role(daemon, crowd, "recorder", args.count)),
                           ("roles", lambda: kill_role(daemon, crowd, "keeper", args.count)),
                           ("upgrade", lambda: upgrade(daemon, crowd, args.count)),
                           ("detach", lambda: detach_all(daemon, args.count))):
            if wanted(args, name):
                what()


def wanted(args, name):
    return not args.only or name in args.only.split(",")


def table():
    width = max(len(r["what"]) for r in rows)
    print(f"| {'':{width}} | measured | goal |\n|---|---|---|")
    for r in rows:
        print(f"| {r['what']:{width}} | {r['value']} | {r['goal']} |")


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--count", type=int, default=1000, help="sandboxes (at least %d)" % (4 * SAMPLES))
    p.add_argument("--only", default="", help="busy,memory,calls,requests,idle,packets,abuse,reload,restart,roles,upgrade,detach")
    p.add_argument("--out", default=os.path.join(bench_lab.ROOT, "build/bench/attach.json"))
    p.add_argument("--keep", action="store_true", help="leave the files of the run")
    args = p.parse_args()
    if args.count < 4 * SAMPLES:
        p.error(f"--count: at least {4 * SAMPLES}")
    begin = time.monotonic()
    lab = bench_lab.Lab()
    try:
        lab.start()
        measure(lab, args)
    finally:
        lab.stop(args.keep)
    machine = f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, Linux {os.uname().release}"
    os.makedirs(os.path.dirname(args.out), exist_ok=True)
    with open(args.out, "w") as f:
        json.dump({"machine": machine, "count": args.count, "rows": rows}, f, indent=1)
    table()
    print(f"\n{args.count} sandboxes, {time.monotonic() - begin:.0f} s, {machine}, "
          f"{sh('git', '-C', bench_lab.ROOT, 'describe', '--always', '--dirty').strip()}")


if __name__ == "__main__":
    main()
