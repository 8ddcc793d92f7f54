#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What the guard adds to the start of a pod or container by CNI: the same start with the plugin bridge alone, with
vethguard-cni alone, and with vethguard-cni behind bridge; interleaved, so that all meet the same machine.

    sudo make bench-cni BENCH_CNI_OPTIONS="--count 20"

RunPodSandbox of containerd over its CRI socket; `podman run` of a container that sleeps; and the plugins by themselves, as
libcni runs them."""
import argparse
import os
import shutil
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
INTEGRATION = os.path.join(os.path.dirname(HERE), "integration")
sys.path[:0] = [INTEGRATION, os.path.join(INTEGRATION, "attach")]
sys.dont_write_bytecode = True

import cni_engines  # noqa: E402
import support  # noqa: E402
from cni_engines import Chain, bridge, guard  # noqa: E402
from daemon import Daemon  # noqa: E402
from support import sh  # noqa: E402

GAP_S = 0.3  # between two starts: the daemon fills its stores again meanwhile
POLICY = "vethguard: 1\nname: agent\nallow:\n  - {to: https://api.lab.test, methods: [GET]}\n"


def percentile(values, percent):
    return sorted(values)[min(len(values) - 1, int(len(values) * percent / 100))] * 1000


def pod_name(name, i):
    return f"{name.replace(', ', '-')}-{i}"


def measure(what, count, ways):
    """ways: {name: (begin, end)}. One row for each."""
    times = {name: [] for name in ways}
    for i in range(-2, count):  # two rounds to warm up
        for name, (begin, end) in ways.items():
            time.sleep(GAP_S)
            start = time.monotonic()
            made = begin(pod_name(name, i + 2))
            if i >= 0:
                times[name].append(time.monotonic() - start)
            end(made)
    base = percentile(next(iter(times.values())), 50)
    for name, values in times.items():
        p50 = percentile(values, 50)
        print(f"| {what} | {name} | {p50:.1f} | {percentile(values, 99):.1f} | {p50 - base:+.1f} |", flush=True)


def plugins(count, chains):
    def way(chain):
        def begin(name):
            chain.add(name, "/run/netns/" + name)
            return name

        def end(name):
            chain.delete(name, "/run/netns/" + name)
            sh("ip", "netns", "del", name)
        return begin, end
    for name in chains:  # namespaces are made before the time is taken
        for i in range(count + 2):
            sh("ip", "netns", "add", pod_name(name, i))
    measure("plugins' ADD", count, {name: way(chain) for name, chain in chains.items()})


def podman(count, chains):
    engine = cni_engines.PodmanCni()
    try:
        for chain in chains.values():
            engine.network(chain.conflist())
        measure("podman run", count, {name: (
            lambda c, n=chain.name: engine.run(c, "--network", n), lambda c: engine("rm", "-f", "-t", "0", c)) for name, chain in chains.items()})
    finally:
        engine.stop()


def cri(count, chains):
    """A RuntimeClass for each network."""
    engine = cni_engines.Containerd(handlers=[chain.name for chain in chains.values()])
    try:
        for chain in chains.values():
            engine.network(chain.name, chain.conflist())
        time.sleep(2)  # containerd reads them
        measure("RunPodSandbox", count, {name: (
            lambda pod, n=chain.name: engine.cri.run(pod, n), engine.cri.remove) for name, chain in chains.items()})
    finally:
        engine.stop()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--count", type=int, default=20, help="starts of each kind (20)")
    count = parser.parse_args().count
    support.lab.Lab.enter()
    lab = support.start()
    daemon = Daemon()
    try:
        policies = lab.path("policies")
        os.makedirs(policies)
        with open(policies + "/agent.yaml", "w") as f:
            f.write(POLICY)
        plugin = guard(daemon.socket, policies)
        chains = {"bridge": Chain("plain", [bridge("plnbr0", "10.80.0.0/16")]), "vethguard-cni": Chain("alone", [plugin]),
                  "bridge, vethguard-cni": Chain("behind", [bridge("bhdbr0", "10.81.0.0/16"), plugin])}
        print("| what | network | p50 (ms) | p99 (ms) | added at p50 (ms) |\n|---|---|---|---|---|", flush=True)
        plugins(count, chains)
        for program, run in (("containerd", cri), ("podman", podman)):
            if shutil.which(program):
                run(count, chains)
    finally:
        daemon.stop()
        lab.stop()


if __name__ == "__main__":
    main()
