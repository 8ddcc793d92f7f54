# SPDX-License-Identifier: Apache-2.0
"""What is not CPU per unit of traffic: memory, start-up, and the modules' own programs."""
import os
import re
import statistics
import subprocess
import time

import bench_lab as lab

CGROUP = "/sys/fs/cgroup/cpuacct"
IDLE = {"mitmproxy": 100, "squid": 500}
STARTS = 15
IDLE_HTTP2 = 5000


def memory(p):
    """PSS at rest, and what each idle intercepted connection adds (one request was served on each)."""
    if "intercept" not in p.ways:
        return None
    count = IDLE.get(p.name, 1000)
    p.load(f"open {p.ways['intercept']} conns=1 bytes=1024")  # whatever is made at first use is there
    p.load("close")
    lab.settle(0.3)
    before = lab.pss_kib(p.pids())
    p.load(f"open {p.ways['intercept']} conns={count} bytes=1024")
    lab.settle(0.3)
    after = lab.pss_kib(p.pids())
    p.load("close")
    lab.settle(0.3)
    return {"idle_kib": before, "connections": count,
            "per_connection_kib": (sum(after.values()) - sum(before.values())) / count}


def memory_http2(p):
    """The same for idle HTTP/2 connections."""
    if "http2" not in p.ways:
        return None
    p.load(f"open2 {p.ways['http2']} conns=1 bytes=1024")
    p.load("close2")
    lab.settle(0.3)
    before = lab.pss_kib(p.pids())
    p.load(f"open2 {p.ways['http2']} conns={IDLE_HTTP2} bytes=1024")
    lab.settle(0.3)
    after = lab.pss_kib(p.pids())
    p.load("close2")
    lab.settle(0.3)
    return {"connections": IDLE_HTTP2, "per_connection_kib": (sum(after.values()) - sum(before.values())) / IDLE_HTTP2}


class Account:
    """CPU time of everything that a command starts, also of what outlives its parent: a cgroup of its own."""

    def __init__(self, name):
        self.folder = os.path.join(CGROUP, f"vethguard-bench-{os.getpid()}-{name}")
        self.works = os.path.exists(os.path.join(CGROUP, "cpuacct.usage"))
        if self.works:
            os.mkdir(self.folder)

    def argv(self, argv):
        if not self.works:
            return argv
        return ["sh", "-c", f'echo $$ >{self.folder}/cgroup.procs; exec "$@"', "sh", *argv]

    def used_s(self):
        if not self.works:
            return None
        with open(os.path.join(self.folder, "cpuacct.usage")) as f:
            return int(f.read()) / 1e9

    def close(self):
        for _ in range(50):
            try:
                if self.works:
                    os.rmdir(self.folder)
                return
            except OSError:
                time.sleep(0.1)


def startup(place, rootless):
    """`vethguard run -- true` from beginning to end: wall and CPU milliseconds."""
    as_user = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"] if rootless else []
    policy = place.write("start.yaml", "vethguard: 1\nname: start\ninclude: [preset:pypi, preset:npm]\n"
                         "allow:\n  - to: https://api.lab.test\n")
    argv = [*as_user, os.path.join(lab.BUILD, "bin", "vethguard"), "run", "--policy", policy, "--", "true"]
    account, wall, cpu = Account("start"), [], []
    try:
        for i in range(STARTS + 1):
            before, t0 = account.used_s(), time.monotonic()
            r = subprocess.run(account.argv(argv), capture_output=True, text=True, cwd="/", timeout=30)
            t1 = time.monotonic()
            if r.returncode:
                return {"failed": r.stderr.strip()[-300:]}
            time.sleep(0.05)
            if i:  # the first one fills caches
                wall.append((t1 - t0) * 1e3)
                if before is not None:
                    cpu.append((account.used_s() - before) * 1e3)
    finally:
        account.close()
    return {"wall_ms": wall, "cpu_ms": cpu}


def program(*argv):
    """Output lines of one of the modules' own benchmarks."""
    path = os.path.join(lab.TOOLS, argv[0])
    if not os.path.exists(path):
        return []
    r = subprocess.run(["taskset", "-c", lab.PROXY_CPU, path, *argv[1:]], capture_output=True, text=True, timeout=120)
    return [re.sub(r"\s+", " ", line).strip() for line in r.stdout.splitlines() if line.strip()]


def describe(values, digits=1):
    if not values:
        return "not measured"
    return f"{statistics.median(values):.{digits}f} ({min(values):.{digits}f} - {max(values):.{digits}f})"


def show(extra):
    print("\nMemory (PSS)")
    for name, m in extra.get("memory", {}).items():
        if m:
            parts = ", ".join(f"{k} {v}" for k, v in m["idle_kib"].items() if v)
            print(f"  {name:24} {m['per_connection_kib']:8.1f} KiB per idle intercepted connection; "
                  f"at rest {sum(m['idle_kib'].values())} KiB ({parts})")
    for name, m in extra.get("memory_http2", {}).items():
        if m:
            print(f"  {name:24} {m['per_connection_kib']:8.1f} KiB per idle intercepted HTTP/2 connection "
                  f"({m['connections']} of them)")
    for name, s in extra.get("startup", {}).items():
        if "failed" in s:
            print(f"\nvethguard run -- true, {name}: failed: {s['failed']}")
        else:
            print(f"\nvethguard run -- true, {name}: wall ms {describe(s['wall_ms'])}, CPU ms {describe(s['cpu_ms'])}")
    for name, lines in extra.get("programs", {}).items():
        print(f"\n{name}")
        for line in lines:
            print("  " + line)
