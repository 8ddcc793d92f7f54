# SPDX-License-Identifier: Apache-2.0
"""The lab: a small internet of our own, inside namespaces without any way out.

`Lab.enter()` moves the process into a new network and mount namespace (the "host"). From there a veth leads to the
namespace "outside", where DNS, origin servers and their CA live. A bug in the fence meets a wall: neither namespace has
another interface.

    sandbox --- gate --- host (this process, vethguard) --- up0 | out0 --- outside (dns, origins)
"""
import ctypes
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BIN = os.environ.get("VETHGUARD_BIN", os.path.join(ROOT, "build", "bin"))
VETHGUARD = os.path.join(BIN, "vethguard")
CLONE_NEWNS, CLONE_NEWNET = 0x00020000, 0x40000000
HOST4, DNS4, ORIGIN4, EVIL4 = "10.99.0.1", "10.99.0.53", "10.99.0.80", "10.99.0.66"
OWN_PUBLIC4, OWN_SECOND4 = "11.22.33.44", "11.22.33.45"
# Free for the origins of tests/integration/clients: *.real.lab.test, *.one.lab.test, *.node.lab.test.
REAL4, PLAIN4, NODE4 = "10.99.0.81", "10.99.0.82", "10.99.0.83"
HOST6, DNS6, ORIGIN6 = "fd99::1", "fd99::53", "fd99::80"
BUNDLE = "/etc/ssl/certs/ca-certificates.crt"
BUNDLE_CERTIFICATES = 8
NAMES = ["api.lab.test", "www.lab.test", "git.lab.test", "deb.lab.test", "pass.lab.test", "a.wild.lab.test",
         "plain.lab.test", "tcp.lab.test", "udp.lab.test", "*.real.lab.test", "*.one.lab.test",
         "*.node.lab.test", "github.com"]


def sh(*argv, **kw):
    """Runs a command that must work; its output."""
    kw.setdefault("text", True)
    r = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, **kw)
    if r.returncode:
        raise RuntimeError(f"{' '.join(argv)}: {r.stdout}")
    return r.stdout


class Lab:
    origins = "tests/integration/origin.py"
    names = [*NAMES, "*.wild.lab.test", ORIGIN4]  # of the origins' certificate

    def __init__(self):
        self.processes = []
        self.dir = None

    # --- the network ---

    @staticmethod
    def enter():
        """Leaves the machine's network behind, for good; and who called sudo, with whose rights `vethguard run` would write its
        log, into folders that are root's."""
        for name in [n for n in os.environ if n.startswith("SUDO_")]:
            del os.environ[name]
        if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNET | CLONE_NEWNS):
            raise OSError(ctypes.get_errno(), "unshare (the integration tests need root)")
        sh("mount", "--make-rprivate", "/")
        os.makedirs("/run/netns", exist_ok=True)
        sh("mount", "-t", "tmpfs", "none", "/run/netns")

    def start(self):
        self.dir = tempfile.mkdtemp(prefix="vethguard-lab-")
        os.chmod(self.dir, 0o755)
        self.shorten_bundle()
        sh("ip", "link", "set", "lo", "up")
        sh("ip", "netns", "add", "outside")
        # Without duplicate address detection: the first seconds of a lab would else be spent on it.
        no_dad = "echo 0 > /proc/sys/net/ipv6/conf/default/accept_dad"
        sh("sh", "-c", no_dad)
        sh("ip", "netns", "exec", "outside", "sh", "-c", no_dad)
        sh("ip", "link", "add", "up0", "type", "veth", "peer", "name", "out0", "netns", "outside")
        sh("ip", "addr", "add", HOST4 + "/16", "dev", "up0")
        sh("ip", "addr", "add", HOST6 + "/64", "dev", "up0", "nodad")
        for a in (OWN_PUBLIC4, OWN_SECOND4):  # addresses of the host itself that are not private
            sh("ip", "addr", "add", a + "/24", "dev", "lo")
        sh("ip", "link", "set", "up0", "up")
        for address in (DNS4 + "/16", ORIGIN4 + "/16", EVIL4 + "/16", REAL4 + "/16", PLAIN4 + "/16", NODE4 + "/16"):
            sh("ip", "-n", "outside", "addr", "add", address, "dev", "out0")
        for address in (DNS6 + "/64", ORIGIN6 + "/64"):
            sh("ip", "-n", "outside", "addr", "add", address, "dev", "out0", "nodad")
        sh("ip", "-n", "outside", "link", "set", "out0", "up")
        sh("ip", "-n", "outside", "link", "set", "lo", "up")
        # With these settings the host would forward anything: only the fence prevents it.
        sh("ip", "route", "add", "default", "via", DNS4)
        sh("ip", "-6", "route", "add", "default", "via", DNS6)
        self.make_certificates()
        self.spawn_outside([sys.executable, os.path.join(ROOT, self.origins), self.dir])
        self.wait_for_file("origin.ready", 300)  # an emulated machine takes long
        for address in (ORIGIN4, ORIGIN6, DNS6):  # neighbors are known before anything is timed
            try:
                socket.create_connection((address, 80), timeout=5).close()
            except ConnectionRefusedError:
                pass
        self.write("config.yaml", self.config())

    def config(self, extra=""):
        return (f"resolver:\n  servers: [{DNS4}]\nca_files: [{self.path('ca.pem')}]\n"
                f"permit: [10.99.0.0/16, fd99::/64]\n{extra}")

    def stop(self):
        for p in reversed(self.processes):
            if p.poll() is None:
                p.terminate()
                try:
                    p.wait(5)
                except subprocess.TimeoutExpired:
                    p.kill()
                    p.wait()
        self.processes = []
        subprocess.run(["ip", "netns", "del", "outside"], check=False)
        if self.dir:
            self.unmount()
            shutil.rmtree(self.dir, ignore_errors=True)

    def unmount(self):
        """Pins of gates, which outlive their daemons: what is mounted cannot be removed."""
        with open("/proc/self/mountinfo") as f:
            places = [line.split()[4] for line in f]
        for place in reversed(places):
            if place.startswith(self.dir + "/"):
                subprocess.run(["umount", "-l", place], check=False)

    def spawn(self, argv, **kw):
        p = subprocess.Popen(argv, **kw)
        self.processes.append(p)
        return p

    def spawn_outside(self, argv, **kw):
        return self.spawn(["ip", "netns", "exec", "outside"] + argv, **kw)

    # --- files ---

    def shorten_bundle(self):
        """The host trusts only a few of the public authorities: each client and each worker reads all of them at its start, and a
        hundred and fifty of them would take most of the tests' CPU time. test_basics has them all once (UNSHORTENED)."""
        if not os.path.isfile(BUNDLE):
            return
        end = "-----END CERTIFICATE-----\n"
        with open(BUNDLE, encoding="ascii", errors="replace") as f:
            first = f.read().split(end)[:BUNDLE_CERTIFICATES]
        sh("mount", "--bind", self.write("bundle.pem", end.join([*first, ""])), BUNDLE)

    def path(self, name):
        return os.path.join(self.dir, name)

    def write(self, name, text, mode=0o644):
        with open(self.path(name), "w") as f:
            f.write(text)
        os.chmod(self.path(name), mode)
        return self.path(name)

    def wait_for_file(self, name, seconds=120):
        end = time.monotonic() + seconds
        while not os.path.exists(self.path(name)):
            if time.monotonic() > end:
                raise RuntimeError(f"{name} did not appear")
            time.sleep(0.02)

    def make_certificates(self):
        sh("sh", os.path.join(ROOT, "certs/make-test-ca"), self.dir, *self.names)

    # --- vethguard ---

    def run(self, policy, argv, options=(), env=None, input=None, timeout=60, user=None, config=None, cwd=None):
        """`vethguard run` with a policy given as text: (exit status, stdout, stderr, audit events)."""
        name = f"p{time.monotonic_ns()}"
        policy_file = self.write(name + ".yaml", policy)
        audit = self.path(name + ".jsonl")
        command = [VETHGUARD, "run", "--policy", policy_file, "--config", config or self.path("config.yaml"),
                   "--audit", audit, *options]
        if user:
            command += ["--user", user]
        full_env = {k: v for k, v in os.environ.items() if not k.lower().endswith("_proxy")}
        full_env.update(env or {})
        r = subprocess.run(command + ["--"] + list(argv), env=full_env, input=input, capture_output=True,
                           timeout=timeout, cwd=cwd or self.dir)
        return Result(r, audit)


class Result:
    def __init__(self, r, audit):
        self.status = r.returncode
        self.stdout_bytes = r.stdout
        self.stdout = r.stdout.decode("utf-8", "replace")
        self.stderr = r.stderr.decode("utf-8", "replace")
        self.audit = audit

    def events(self, class_uid=None):
        with open(self.audit) as f:
            all_events = [json.loads(line) for line in f]
        return [e for e in all_events if class_uid in (None, e["class_uid"])]

    def audit_text(self):
        with open(self.audit) as f:
            return f.read()

    def __repr__(self):
        return f"status {self.status}\nstdout: {self.stdout[-2000:]}\nstderr: {self.stderr[-2000:]}"


class Capture(threading.Thread):
    """Every frame that the host sends towards the outside, seen at the veth (AF_PACKET), while the block runs."""
    OUTGOING = 4

    def __init__(self, interface="up0"):
        super().__init__(daemon=True)
        self.socket = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
        self.socket.bind((interface, 0))
        self.socket.settimeout(0.1)
        self.frames = []
        self.ending = False

    def run(self):
        while True:
            try:
                frame, address = self.socket.recvfrom(65536)
                self.frames.append((address[2], frame))
            except TimeoutError:
                if self.ending:
                    return
            except OSError:  # the interface is not up, or not any more
                time.sleep(0.02)
                if self.ending:
                    return

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        time.sleep(0.2)
        self.ending = True
        self.join()
        self.socket.close()

    def sent(self):
        """Outgoing frames other than ARP and neighbor discovery of the host itself."""
        def is_nd(f):
            return f[12:14] == b"\x86\xdd" and f[20] == 58 and f[54] in (133, 135, 136)
        def is_mld(f):
            return f[12:14] == b"\x86\xdd" and (f[20] == 0 or (f[20] == 58 and f[54] == 143))
        return [f for kind, f in self.frames
                if kind == self.OUTGOING and f[12:14] != b"\x08\x06" and not is_nd(f) and not is_mld(f)]
