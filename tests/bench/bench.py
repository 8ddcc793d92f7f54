#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""make bench: what one unit of work costs in CPU time (user and system, all processes of a proxy), proxies in turn
(A B C A B C ...), median of several rounds with the least and the most. See docs/performance.md."""
import argparse
import json
import os
import shutil
import statistics
import sys
import time
import traceback

import bench_extra
import bench_lab as lab
import bench_proxies as proxies

GB = 1_000_000_000
KEEPALIVE = 20000
SLOW = {"mitmproxy": 50, "squid": 2}  # these do so much less


class Workload:
    def __init__(self, key, title, unit, way, run):
        self.key, self.title, self.unit, self.way, self.run = key, title, unit, way, run


def small(conns, requests):
    """Requests of a kilobyte over connections that are open already."""
    def run(p, way, scale):
        n = max(conns, int(requests / scale))
        p.load(f"open {p.ways[way]} conns={conns} bytes=1024")
        p.load(f"go requests={max(conns, n // 10)} bytes=1024")
        r = measured(p, f"go requests={n} bytes=1024")
        p.load("close")
        return r, r["done"], 1e6
    return run


def bulk(streams, each):
    def run(p, way, scale):
        n = int(each / scale)
        p.load(f"open {p.ways[way]} conns={streams} bytes=1024")
        r = measured(p, f"go requests={streams} bytes={n}")
        p.load("close")
        return r, r["bytes"] / GB, 1.0
    return run


def new(requests, resume):
    def run(p, way, scale):
        n = int(requests / scale)
        p.load(f"new {p.ways[way]} conns=8 requests=32 bytes=1024")
        r = measured(p, f"new {p.ways[way]} conns=8 requests={n} bytes=1024 resume={resume}")
        if resume and r["resumed"] < r["done"] * 0.9:
            r["note"] = f"{r['resumed']} of {r['done']} resumed"
        return r, r["done"], 1e6
    return run


def streams(conns, each, requests):
    """Small requests over HTTP/2, several at once on each connection."""
    def run(p, way, scale):
        n = int(requests / scale)
        p.load(f"open2 {p.ways[way]} conns={conns} bytes=1024")
        p.load(f"go2 requests={n // 10} streams={each} bytes=1024")
        r = measured(p, f"go2 requests={n} streams={each} bytes=1024")
        p.load("close2")
        return r, r["done"], 1e6
    return run


WORKLOADS = [
    Workload("keepalive64", "request, keep-alive, 64 connections", "us", "intercept", small(64, KEEPALIVE)),
    Workload("keepalive1", "request, keep-alive, one after another", "us", "intercept", small(1, 5000)),
    Workload("new", "connection with one request, full handshake", "us", "intercept", new(1500, 0)),
    Workload("resumed", "the same, session resumed", "us", "intercept", new(1500, 1)),
    Workload("bulk", "GB intercepted", "s", "intercept", bulk(4, 256_000_000)),
    Workload("passthrough", "GB passed through", "s", "passthrough", bulk(4, 512_000_000)),
    Workload("http2", "HTTP/2 request, 10 connections with 32 streams each", "us", "http2", streams(10, 32, 40000)),
    Workload("http2one", "HTTP/2 request, one after another", "us", "http2", streams(1, 1, 5000)),
    Workload("passnew", "passed-through connection with one request", "us", "passthrough", new(1500, 0)),
]
# Once more, on proxies that have had and lost thousands of connections.
AGED = Workload("aged64", "request, keep-alive, 64 connections, after 5,000 idle ones came and went", "us", "intercept",
                small(64, KEEPALIVE))
CORES = {"one": "load, proxy and origin on one core", "own": "the proxy on a core of its own"}
# If each wake-up crosses cores, these figures say more about the machine; the rest is measured on one core only.
OWN_CORE = ["keepalive64", "keepalive1", "bulk", "passthrough"]
# The same work in a heavier way, beside its plain figure.
EXTRA = {
    "credential": ["keepalive64", "keepalive1", "new", "bulk"],
    "token": ["keepalive64", "keepalive1"],
    "sigv4": ["keepalive64", "keepalive1"],
    "logged": ["keepalive64", "keepalive1", "new"],
    "http2-credential": ["http2", "http2one"],
    "http2-logged": ["http2", "http2one"],
    "judging": ["passnew"],
}


def measured(p, command):
    lab.settle()
    pids = p.pids()
    with lab.Profile(pids):
        before = lab.cpu_ns(pids)
        r = p.load(command)
        lab.settle()
    after = lab.cpu_ns(pids)
    r["cpu"] = {name: (after[name] - before[name]) / 1e9 for name in after}
    r["cpu_s"] = sum(r["cpu"].values())
    return r


def variants(running, workload):
    for p in running:
        if workload.way in p.ways:
            yield p, workload.way, p.name
        for way, keys in EXTRA.items():
            if way in p.ways and workload.key in keys:
                yield p, way, f"{p.name} ({way})"


def run_rounds(running, chosen, rounds, longer, results):
    for number in range(rounds):
        for w in chosen:
            for p, way, label in variants(running, w):
                slow = SLOW.get(p.name, 1) / longer
                if slow > 10 and number >= 2:
                    continue
                lab.Profile.name = f"{p.name}.{w.key}.{way}"
                r, units, factor = w.run(p, way, slow)
                cell = results.setdefault(w.key, {}).setdefault(label, {"rounds": [], "by_process": [], "load": []})
                cell["rounds"].append(r["cpu_s"] / units * factor)
                cell["load"].append(r["load_cpu_s"] / units * factor)
                cell["by_process"].append({k: v / units * factor for k, v in r["cpu"].items()})
                if "note" in r:
                    cell["note"] = r["note"]
        print(f"round {number + 1} of {rounds} done", file=sys.stderr)


def show(results, chosen):
    for w in chosen + [AGED]:
        cells = results.get(w.key, {})
        if not cells:
            continue
        base = statistics.median(cells["haproxy"]["rounds"]) if "haproxy" in cells else None
        print(f"\nCPU {w.unit} per {w.title}")
        for label, cell in cells.items():
            mid = statistics.median(cell["rounds"])
            digits = 3 if w.unit == "s" else 1
            ratio = f"{mid / base:6.2f} x haproxy" if base else ""
            parts = {k: statistics.median([b.get(k, 0) for b in cell["by_process"]]) for k in cell["by_process"][0]}
            split = ", ".join(f"{k.replace('vethguard', 'vg')} {v:.{digits}f}" for k, v in parts.items()
                              if len(parts) > 1 and v > mid / 200)
            least, most = min(cell["rounds"]), max(cell["rounds"])
            print(f"  {label:24} {mid:10.{digits}f}  ({least:.{digits}f} - {most:.{digits}f}) {ratio}  {split} "
                  f"{cell.get('note', '')}")


CREDENTIALS = {"credential": "a bearer token of a file", "token": "a bearer token of a program, held for an hour", "sigv4": "a signature by sigv4"}


def show_credentials(results):
    """What a credential adds to a request: the differences of the rounds, as the ways are measured one right after the other."""
    for key in ("keepalive64", "keepalive1"):
        cells = results.get(key, {})
        for plain in [label for label in cells if f"{label} (sigv4)" in cells]:
            for way, title in CREDENTIALS.items():
                cell = cells[f"{plain} ({way})"]
                added = [with_it - without for with_it, without in zip(cell["rounds"], cells[plain]["rounds"])]
                keeper = statistics.median(r.get("vethguard-keeper", r.get("vethguard-keepe", 0)) for r in cell["by_process"])
                print(f"  {plain} {key:12} {title:45} {statistics.median(added):+7.1f} us ({min(added):+.1f} - {max(added):+.1f}), "
                      f"of the keeper {keeper:.2f}")


def measure(args, chosen, out_file):
    """One arrangement of cores: all proxies in turn. Runs in a child, whose namespaces end with it."""
    place, results, running = lab.Lab(), {}, []
    extra = {"memory": {}}
    lab.Profile.folder = args.profile
    place.start()
    try:
        for name in args.proxies.split(","):
            p = proxies.proxy_class(name)(place)
            if p.program and not shutil.which(p.program):
                print(f"{name} is not installed: left out", file=sys.stderr)
                continue
            p.start()
            running.append(p)
        run_rounds(running, chosen, args.rounds, args.longer, results)
        if args.extra:  # memory as it is from the start; requests after that: thousands of connections may cost later ones
            for p in running:
                p.stop()
                p.start()
            extra["memory"] = {p.name: bench_extra.memory(p) for p in running}
            extra["memory_http2"] = {p.name: bench_extra.memory_http2(p) for p in running}
            lab.settle(2)  # a proxy that gives memory back may do so
            run_rounds(running, [AGED], args.rounds, args.longer, results)
            extra["startup"] = {"root": bench_extra.startup(place, False),
                                "rootless": bench_extra.startup(place, True)}
            extra["programs"] = {"policy decisions": bench_extra.program("bench_policy"),
                                 "masking": bench_extra.program("bench_mask"),
                                 "content codings": bench_extra.program("bench_codings"),
                                 "injecting and signing": bench_extra.program("bench_sign")}
    finally:
        for p in running:
            p.stop()
        place.stop(args.keep)
    with open(out_file, "w") as f:
        json.dump({"results": results, "extra": extra}, f)


def in_child(function, *args):
    """For a result that stays behind in a file: namespaces and mounts go with the child."""
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            function(*args)
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    _, status = os.waitpid(pid, 0)
    if status:
        sys.exit("the benchmark failed")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", help="workloads, comma-separated")
    parser.add_argument("--proxies", default="vethguard,haproxy,nginx,relay,sslsplit,squid,mitmproxy",
                        help="comma-separated; vethguard=FOLDER is another build of it")
    parser.add_argument("--cores", choices=["one", "own", "both"], default="both",
                        help="load and origin on the proxy's core, on another, or first the one, then the other")
    parser.add_argument("--extra", action="store_true", help="also memory, start-up, decisions")
    parser.add_argument("--longer", type=float, default=1.0, help="so many times the work in each measurement")
    parser.add_argument("--profile", metavar="FOLDER", help="also run perf over each measurement, into this folder")
    parser.add_argument("--keep", action="store_true", help="keep the folder with configurations and logs")
    return parser.parse_args()


def main():
    args = arguments()
    wanted = [w for w in WORKLOADS if not args.only or w.key in args.only.split(",")]
    folder = os.path.join(lab.ROOT, "build", "bench")
    os.makedirs(folder, exist_ok=True)
    everything = {"when": time.strftime("%Y-%m-%d"), "rounds": args.rounds}
    for cores in ["one", "own"] if args.cores == "both" else [args.cores]:
        chosen = wanted
        if cores == "own" and args.cores == "both":
            chosen = [w for w in wanted if w.key in OWN_CORE]
            args.extra = False
        lab.OTHER_CPU = lab.PROXY_CPU if cores == "one" else "1"
        part = os.path.join(folder, f"{cores}.json")
        in_child(measure, args, chosen, part)
        with open(part) as f:
            everything[cores] = json.load(f)
        os.unlink(part)
        print(f"\n=== {CORES[cores]} ===")
        show(everything[cores]["results"], chosen)
        print("\nCPU added to a request by")
        show_credentials(everything[cores]["results"])
        bench_extra.show(everything[cores]["extra"])
    with open(os.path.join(folder, "results.json"), "w") as f:
        json.dump(everything, f, indent=1)


if __name__ == "__main__":
    main()
