# SPDX-License-Identifier: Apache-2.0
"""The benchmark's network and its clocks.

    client (load) --- cl0 | gw0 --- host (the proxy that is measured) --- up0 | out0 --- outside (origin)

All of it lives in namespaces of its own without any way out. vethguard's load does not run in "client" but in the
sandbox that vethguard makes, which is as many hops away. The proxies run on CPU 0, load and origin on CPU 1."""
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "integration"))
import lab  # noqa: E402

BUILD = os.environ.get("BENCH_BUILD", os.path.join(ROOT, "build"))
TOOLS = os.path.join(ROOT, "build", "tests", "bench")
PROXY_CPU, OTHER_CPU = "0", "1"
ORIGIN4, HOST4, GATEWAY4, CLIENT4 = "10.99.0.80", "10.99.0.1", "10.98.0.1", "10.98.0.2"
NAMES = ["api.lab.test", "cred.lab.test", "token.lab.test", "sign.lab.test", "pass.lab.test"]
HTTP2_PORT = 444
sh = lab.sh


class Lab:
    def __init__(self):
        self.processes = []
        self.dir = tempfile.mkdtemp(prefix="vethguard-bench-")
        os.chmod(self.dir, 0o755)

    def path(self, name):
        return os.path.join(self.dir, name)

    def write(self, name, text, mode=0o644):
        with open(self.path(name), "w") as f:
            f.write(text)
        os.chmod(self.path(name), mode)
        return self.path(name)

    def start(self):
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # by way of stop()
        lab.Lab.enter()
        sh("ip", "link", "set", "lo", "up")
        self.add_namespace("outside", "up0", HOST4, "out0", ORIGIN4)
        self.add_namespace("client", "gw0", GATEWAY4, "cl0", CLIENT4)
        sh("ip", "netns", "exec", "client", "sysctl", "-qw", "net.ipv4.ip_local_port_range=1024 65535")
        sh("sh", os.path.join(ROOT, "certs/make-test-ca"), self.dir, *NAMES)
        self.write("hosts", "127.0.0.1 localhost\n" + "".join(f"{ORIGIN4} {n}\n" for n in NAMES))
        sh("mount", "--bind", self.path("hosts"), "/etc/hosts")
        for name in (None, "outside", "client"):
            plain_congestion_control(f"/run/netns/{name}" if name else "/proc/self/ns/net")
        self.origin = self.spawn(["ip", "netns", "exec", "outside", os.path.join(TOOLS, "origin"), f"{ORIGIN4}:443",
                                  self.path("server.pem"), self.path("server.key"), OTHER_CPU], stdout=subprocess.PIPE)
        self.origin.stdout.readline()
        os.makedirs(self.path("www/bytes"))
        self.write("www/bytes/1024", "x" * 1024)
        if shutil.which("nghttpd"):
            self.spawn(["taskset", "-c", OTHER_CPU, "ip", "netns", "exec", "outside", "nghttpd", "-n1", "-d", self.path("www"), "-a",
                        ORIGIN4, str(HTTP2_PORT), self.path("server.key"), self.path("server.pem")],
                       stdout=subprocess.DEVNULL)

    @staticmethod
    def add_namespace(name, here, here4, there, there4):
        sh("ip", "netns", "add", name)
        sh("ip", "link", "add", here, "type", "veth", "peer", "name", there, "netns", name)
        sh("ip", "addr", "add", here4 + "/24", "dev", here)
        sh("ip", "link", "set", here, "up")
        sh("ip", "-n", name, "addr", "add", there4 + "/24", "dev", there)
        for device in ("lo", there):
            sh("ip", "-n", name, "link", "set", device, "up")

    def spawn(self, argv, **kw):
        # A session each, as services have: the scheduler shares the core out among sessions first (autogroup), and
        # a process that is alone in its session is woken sooner and more often than one that shares its session with the load.
        p = subprocess.Popen(argv, start_new_session=True, **kw)
        self.processes.append(p)
        return p

    def end(self, process, seconds=10):
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(seconds)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self.processes.remove(process)

    def stop(self, keep=False):
        for p in list(reversed(self.processes)):
            self.end(p, 5)
        for name in ("outside", "client"):
            subprocess.run(["ip", "netns", "del", name], check=False)
        if keep:
            print(self.dir, file=sys.stderr)
        else:
            shutil.rmtree(self.dir, ignore_errors=True)


def plain_congestion_control(namespace):
    """Reno in every namespace, which each kernel has and permits: one that paces its segments (BBR) sets a timer for
    each, and in a virtual machine the timers then cost more than the transfer."""
    sh("nsenter", "--net=" + namespace, "sysctl", "-qw", "net.ipv4.tcp_congestion_control=reno")


def namespaces_held_by(pids):
    """Network namespaces that processes live in or hold open."""
    found = {}
    for pid, _ in pids:
        paths = [f"/proc/{pid}/ns/net"] + [f"/proc/{pid}/fd/{fd}" for fd in os.listdir(f"/proc/{pid}/fd")]
        for path in paths:
            try:
                target = os.readlink(path)
            except OSError:
                continue
            if target.startswith("net:["):
                found.setdefault(target, path)
    return list(found.values())


class Load:
    """The load generator, obeying one command at a time."""

    def __init__(self, name, process):
        self.name, self.process = name, process

    def __call__(self, command):
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self.name}: the load ended at: {command}")
        return json.loads(line)

    def close(self):
        try:
            self.process.stdin.close()
        except BrokenPipeError:  # it has ended, and said why
            pass


# --- clocks ---

def descendants(pid):
    """pid and all below it, by name. Processes that began and ended between two looks are not seen; no proxy here has
    any while it serves."""
    children = {}
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            with open(f"/proc/{entry}/stat") as f:
                text = f.read()
        except OSError:
            continue
        name = text[text.index("(") + 1:text.rindex(")")]
        parent = int(text[text.rindex(")") + 2:].split()[1])
        children.setdefault(parent, []).append((int(entry), name))
    found, todo = [], [pid]
    with open(f"/proc/{pid}/comm") as f:
        found.append((pid, f.read().strip()))
    while todo:
        for child in children.get(todo.pop(), []):
            found.append(child)
            todo.append(child[0])
    return [(p, name) for p, name in found if name != "load"]


def cpu_ns(pids):
    """Time on a CPU, user and system, of all threads: nanoseconds, from the scheduler (proc(5), schedstat)."""
    total = {}
    for pid, name in pids:
        ns = 0
        for task in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{task}/schedstat") as f:
                ns += int(f.read().split()[0])
        total[name] = total.get(name, 0) + ns
    return total


def pss_kib(pids):
    """Memory with shared pages divided among those who share them, by name."""
    total = {}
    for pid, name in pids:
        with open(f"/proc/{pid}/smaps_rollup") as f:
            for line in f:
                if line.startswith("Pss:"):
                    total[name] = total.get(name, 0) + int(line.split()[1])
    return total


class Profile:
    """Where the time goes while the block runs: perf(1) samples, where a folder for them was named."""
    folder = None
    name = ""

    def __init__(self, pids):
        self.pids, self.perf = pids, None

    def __enter__(self):
        if self.folder:
            os.makedirs(self.folder, exist_ok=True)
            self.perf = subprocess.Popen(
                ["perf", "record", "-q", "-e", "cpu-clock", "-F", "4000", "-g", "-o",
                 os.path.join(self.folder, self.name + ".data"), "-p", ",".join(str(p) for p, _ in self.pids)])
            time.sleep(0.3)

    def __exit__(self, *_):
        if self.perf:
            self.perf.send_signal(signal.SIGINT)
            self.perf.wait()


def settle(seconds=0.05):
    time.sleep(seconds)
