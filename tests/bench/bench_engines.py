#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What the guard adds to the start of a container or pod: each engine's own start beside the same by each way of vethguard.

    sudo make bench-engines BENCH_ENGINES_OPTIONS="--count 20 --at-once 100 --only docker,podman"

One at a time, in turns, so that all ways meet the same machine; then many at once of each way. The plugins of CNI are
measured by themselves too, as libcni runs them. As on a system, what the daemon and vethguard-runtime write lies in a tmpfs (/run) and
the configuration in /etc/vethguard. The least of the times is what a machine with other things to do shows of one without.
The CPU columns have the CPU time that engine, runtime, adapter, daemon and its roles spend until the start is over.
VETHGUARD_DOCKER names a folder with another dockerd than the system's."""
import argparse
import concurrent.futures
import contextlib
import importlib.util
import os
import shutil
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
INTEGRATION = os.path.join(os.path.dirname(HERE), "integration")
sys.path[:0] = [HERE, INTEGRATION, os.path.join(INTEGRATION, "attach")]
sys.dont_write_bytecode = True
os.environ["PATH"] = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

import cpu_time  # noqa: E402
import support  # noqa: E402
from bench_machine import percentile  # noqa: E402
from daemon import Daemon  # noqa: E402
from support import SLOW, sh, wait_until  # noqa: E402

START_S = 300 * SLOW  # of an engine that hangs, and many at once: then the start has failed
GAP_S = 0.3  # between two starts: the daemon fills its stores again meanwhile
WARM_UP = 2
CPU = cpu_time.CpuTime()
RUNTIME = os.path.join(support.lab.BIN, "vethguard-runtime")
POLICY = "vethguard: 1\nname: agent\nallow:\n  - {to: https://api.lab.test, methods: [GET]}\n"


class Way:
    """begin(name) starts one, end(name) takes it away. The time is begin's."""

    def __init__(self, what, name, begin, end=lambda name: None):
        self.what, self.name, self.begin, self.end = what, name, begin, end

    def time(self, name):
        start = time.monotonic()
        self.begin(name)
        return (time.monotonic() - start) * 1000


def one_at_a_time(ways, count):
    """Returns {way: milliseconds of each start}, {way: CPU milliseconds of each start}."""
    times, cpu = {way: [] for way in ways}, {way: [] for way in ways}
    for i in range(-WARM_UP, count):
        for w, way in enumerate(ways):
            name = f"one{w}-{i + WARM_UP}"
            time.sleep(GAP_S)
            before = CPU.now()
            spent = way.time(name)
            if i >= 0:
                times[way].append(spent)
                cpu[way].append((CPU.now() - before) * 1000)
            way.end(name)
    return times, cpu


def at_once(ways, count):
    """{way: (milliseconds of each, of all)}."""
    found = {}
    for w, way in enumerate(ways):
        names = [f"all{w}-{i}" for i in range(count)]
        with concurrent.futures.ThreadPoolExecutor(count) as pool:
            start = time.monotonic()
            times = list(pool.map(way.time, names))
            whole = (time.monotonic() - start) * 1000
            list(pool.map(way.end, names))
        found[way] = times, whole
        time.sleep(3)  # what runs on in the background of one way is not another's
    return found


def rows(ways, options):
    """The first of the ways is what the others are compared with."""
    (single, cpu), many = one_at_a_time(ways, options.count), at_once(ways, options.at_once) if options.at_once else {}
    base, base_cpu = percentile(single[ways[0]], 50), percentile(cpu[ways[0]], 50)
    for way in ways:
        p50, least = percentile(single[way], 50), min(single[way])
        row = [way.what, way.name, f"{p50:.0f}", f"{percentile(single[way], 99):.0f}", "" if way is ways[0] else f"{p50 - base:+.1f}",
               f"{least:.0f}", "" if way is ways[0] else f"{least - min(single[ways[0]]):+.1f}",
               f"{percentile(cpu[way], 50):.0f}", "" if way is ways[0] else f"{percentile(cpu[way], 50) - base_cpu:+.1f}"]
        if many:
            times, whole = many[way]
            row += [f"{percentile(times, 50):.0f}", f"{percentile(times, 99):.0f}", f"{whole:.0f}"]
        print("| " + " | ".join(row) + " |", flush=True)


@contextlib.contextmanager
def stopped(thing):
    """It is stopped afterwards, whatever happened."""
    try:
        yield thing
    finally:
        thing.stop()


def tmpfs(path):
    os.makedirs(path, exist_ok=True)
    sh("mount", "-t", "tmpfs", "-o", "mode=0755", "none", path)
    return path


def start_daemon():
    daemon = Daemon(start=False)
    tmpfs(daemon.state)
    return daemon.start()


def runtime_config(lab, daemon, policies):
    """Where vethguard-runtime looks for it; /etc is an overlay of the lab's own."""
    directory = tmpfs(lab.path(f"runtime-{time.monotonic_ns()}"))
    os.makedirs("/etc/vethguard", exist_ok=True)
    with open("/etc/vethguard/runtime.yaml", "w") as f:
        f.write(f"policies: {policies}\nsocket: {daemon.socket}\ndirectory: {directory}\nruntime: {shutil.which('runc')}\n")


def overlay_etc(lab):
    room = tmpfs(lab.path("etc"))
    for name in ("upper", "work"):
        os.makedirs(os.path.join(room, name))
    sh("mount", "-t", "overlay", "-o", f"lowerdir=/etc,upperdir={room}/upper,workdir={room}/work", "none", "/etc")


def docker(lab, daemon, policies, options):
    import guests
    from test_docker_network import Driver
    runtime_config(lab, daemon, policies)
    engine = guests.Engine("docker", {"vethguard": {"path": RUNTIME}})
    with contextlib.ExitStack() as driver, stopped(engine):  # the driver serves until the containers are gone
        driver.callback(Driver(daemon, policies).stop)
        engine("network", "create", "-d", "vethguard", "-o", "policy=agent", "agents")

        def way(name, *words):
            return Way("docker run", name, lambda container: sh(
                "docker", "run", "--rm", "--name", container, *words, engine.IMAGE, "/bin/true", env=engine.env, timeout=START_S))
        rows([way("default network"), way("--network none", "--network", "none"),
              way("--runtime vethguard", "--runtime", "vethguard", "-e", "VETHGUARD_POLICY=agent"),
              way("a network of vethguard-docker", "--network", "agents")], options)


def chains(daemon, policies):
    from cni_engines import Chain, bridge, guard
    plugin = guard(daemon.socket, policies)
    return {"bridge": Chain("plain", [bridge("plnbr0", "10.80.0.0/16")]), "vethguard-cni": Chain("alone", [plugin]),
            "bridge, vethguard-cni": Chain("behind", [bridge("bhdbr0", "10.81.0.0/16"), plugin])}


def podman(lab, daemon, policies, options):
    import cni_engines
    with stopped(cni_engines.PodmanCni()) as engine:
        runtime_config(lab, daemon, policies)
        hooks = lab.path("hooks")
        os.makedirs(hooks)
        with open(os.path.join(support.lab.ROOT, "contrib/runtime/oci-hooks.json")) as f:
            text = f.read().replace("/usr/libexec/vethguard/vethguard-runtime", RUNTIME)
        with open(hooks + "/vethguard.json", "w") as f:
            f.write(text)

        def way(name, words, *run):
            return Way("podman run", name, lambda container: sh(
                "podman", *words, "run", "-d", "--name", container, *run, engine.IMAGE, "/bin/sleep", "1000", env=engine.env,
                timeout=START_S), lambda container: engine("rm", "-f", "-t", "0", container))
        none = ["--network", "none"]
        rows([way("--network none", [], *none),
              way("vethguard-runtime", ["--runtime", RUNTIME], *none, "-e", "VETHGUARD_POLICY=agent"),
              way("the hook", ["--hooks-dir", hooks], *none, "--annotation", "org.vethguard.policy=agent")], options)
        networks = chains(daemon, policies)
        for chain in networks.values():
            engine.network(chain.conflist())
        rows([way("CNI: " + name, [], "--network", chain.name) for name, chain in networks.items()], options)


def cri(lab, daemon, policies, options):
    """A RuntimeClass for each network."""
    import cni_engines
    import grpc
    networks = chains(daemon, policies)
    pods = {}

    def starts(chain):
        """containerd has no word for having read a network: until then a pod of it is refused."""
        try:
            engine.cri.remove(engine.cri.run(f"first-{chain.name}-{time.monotonic_ns()}", chain.name))
            return True
        except grpc.RpcError:
            return False

    def way(name, handler):
        def begin(pod):
            pods[pod] = engine.cri.run(pod, handler)
        return Way("RunPodSandbox", "CNI: " + name, begin, lambda pod: engine.cri.remove(pods.pop(pod)))
    with stopped(cni_engines.Containerd(handlers=[chain.name for chain in networks.values()])) as engine:
        for chain in networks.values():
            engine.network(chain.name, chain.conflist())
            if not wait_until(lambda chain=chain: starts(chain), 30 * SLOW, 0.5):
                raise AssertionError(f"no pod of the network {chain.name} starts: {engine.log()}")
        rows([way(name, chain.name) for name, chain in networks.items()], options)


def ctr(lab, daemon, policies, options):
    import cni_engines
    import guests
    runtime_config(lab, daemon, policies)
    guarded = ("--runc-binary", RUNTIME, "--env", "VETHGUARD_POLICY=agent")
    with stopped(cni_engines.Containerd(handlers=[])) as engine:
        def run(container, *words):
            sh(*engine.argv("run", *words[:-1], "--rootfs", guests.Image.get(), container, *words[-1]), stdin=subprocess.DEVNULL, timeout=START_S)

        def end(container):
            sh(*engine.argv("tasks", "rm", "-f", container), timeout=START_S)
            sh(*engine.argv("containers", "rm", container), timeout=START_S)

        def start(name, *words):
            return Way("ctr run -d", name, lambda container: run(container, "-d", *words, ("/bin/sleep", "1000")), end)

        def whole(name, *words):
            """Includes the end and the removal, in which the kernel takes the guard's link away."""
            return Way("ctr run --rm", name, lambda container: run(container, "--rm", *words, ("/bin/true",)))
        rows([start("without a network"), start("vethguard-runtime", *guarded)], options)
        rows([whole("without a network"), whole("vethguard-runtime", *guarded)], options)


BRIDGE_SLEEPS_MS = 50  # before it looks a second time whether its port is up


def parts(name, steps):
    """Prints the time of each plugin of a chain, and how often bridge slept: it does if its port is not up yet when it looks."""
    for i, kind in enumerate(("bridge", "vethguard-cni")):
        times = [step[i] for step in steps]
        slept = sum(t >= min(times) + BRIDGE_SLEEPS_MS for t in times) if kind == "bridge" else 0
        print(f"| ADD of {name}, of it | {kind}{f', which slept in {slept} of {len(times)}' if slept else ''} | {percentile(times, 50):.0f} | "
              f"{percentile(times, 99):.0f} | | {min(times):.0f} |", flush=True)


def plugins(lab, daemon, policies, options):
    """The second bridge runs where the guarded one does, after the end of a guard: it shows how much of the time that place costs."""
    def way(name, chain):
        def end(pod):
            chain.delete(pod, "/run/netns/" + pod)
            sh("ip", "netns", "del", pod)
        return Way("ADD of the plugins", name, lambda pod: chain.add(pod, "/run/netns/" + pod), end)
    made = chains(daemon, policies)
    behind = "bridge, vethguard-cni"
    names = ("bridge", "vethguard-cni", "bridge again", "vethguard-cni again", behind)
    made["bridge again"], made["vethguard-cni again"] = made["bridge"], made["vethguard-cni"]
    ways = [way(name, made[name]) for name in names]
    for w in range(len(ways)):  # namespaces are made before the time is taken
        for name in [f"one{w}-{i}" for i in range(options.count + WARM_UP)] + [f"all{w}-{i}" for i in range(options.at_once)]:
            sh("ip", "netns", "add", name)
    rows(ways, options)
    parts(behind, made[behind].steps[WARM_UP:WARM_UP + options.count])


# With what each needs: programs, and modules of Python.
BRIDGE = "/usr/lib/cni/bridge"
PARTS = {"docker": (docker, ("dockerd", "docker", "runc"), ()), "podman": (podman, ("podman", "runc", BRIDGE), ()),
         "ctr": (ctr, ("containerd", "ctr", "runc"), ()), "cri": (cri, ("containerd", "runc", BRIDGE), ("grpc",)), "plugins": (plugins, (BRIDGE,), ())}


def missing(programs, modules):
    path = os.environ.get("VETHGUARD_DOCKER", "") + ":" + os.environ["PATH"]
    return [p for p in programs if not shutil.which(p, path=path)] + [m for m in modules if not importlib.util.find_spec(m)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--count", type=int, default=20, help="starts of each way, one at a time (20)")
    parser.add_argument("--at-once", type=int, default=100, help="starts of each way at the same moment; 0: none (100)")
    parser.add_argument("--only", default=",".join(PARTS), help="of " + ", ".join(PARTS))
    options = parser.parse_args()
    only = options.only.split(",")
    if not set(only) <= set(PARTS) or options.count < 1 or options.at_once < 0:
        parser.error("--only takes names of " + ", ".join(PARTS) + "; --count is 1 or more, --at-once 0 or more")
    for name in only:
        if lacks := missing(*PARTS[name][1:]):
            parser.error(f"{name} cannot be measured: {', '.join(lacks)} is not installed; choose others with --only")
    support.lab.Lab.enter()
    lab = support.start()
    with stopped(lab):
        overlay_etc(lab)
        policies = lab.path("policies")
        os.makedirs(policies)
        lab.write("policies/agent.yaml", POLICY)
        print("| what | way | p50 (ms) | p99 (ms) | added at p50 (ms) | least (ms) | added at the least (ms) | CPU p50 (ms) | CPU added (ms) |" + (
            f" {options.at_once} at once: p50 (ms) | p99 (ms) | all (ms) |" if options.at_once else ""), flush=True)
        print("|---|---|---|---|---|---|---|---|---|" + ("---|---|---|" if options.at_once else ""), flush=True)
        for name in only:
            with stopped(start_daemon()) as daemon:
                PARTS[name][0](lab, daemon, policies, options)


if __name__ == "__main__":
    main()
