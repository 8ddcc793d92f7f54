# SPDX-License-Identifier: Apache-2.0
"""A pod for the tests of `vethguard sidecar`: one network namespace with an uplink to the lab's outside, shared by a guard and
by agents, each with process ids of its own, as containers have them."""
import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile

import lab
import support
from support import PYTHON, SLOW, VETHGUARD, sh, wait_until

GUARD, AGENT = 1337, 2000
POD4, ROUTER4, POD6, ROUTER6 = "10.98.0.2", "10.98.0.1", "fd98::2", "fd98::1"
# The capabilities that Docker gives a container, without those that a sidecar's group must not have.
CONTAINER_CAPS = "chown,dac_override,fowner,fsetid,kill,setpcap,net_bind_service,sys_chroot,mknod,audit_write,setfcap"


class Pod:
    made = 0

    def __init__(self, case, uplink=True, pid=None):
        """pid: of a process in a namespace that is there already."""
        Pod.made += 1
        self.case, self.name, self.out = case, "pod", f"podout{Pod.made}"
        self.share = tempfile.mkdtemp(prefix="share-", dir=support.LAB.dir)
        os.chown(self.share, GUARD, GUARD)
        os.chmod(self.share, 0o755)
        self.guards = []
        if pid:
            sh("ip", "netns", "attach", self.name, str(pid))
            case.addCleanup(sh, "ip", "netns", "del", self.name)
        else:
            support.netns(case, self.name)
        case.addCleanup(self.close)
        sh("ip", "-n", self.name, "link", "set", "lo", "up")
        if uplink:
            self.link()

    def link(self):
        sh("ip", "link", "add", "eth0", "netns", self.name, "type", "veth", "peer", "name", self.out, "netns", "outside")
        self.case.addCleanup(subprocess.run, ["ip", "-n", "outside", "link", "del", self.out], check=False,
                             stderr=subprocess.DEVNULL)
        for netns, device, address4, address6 in ((self.name, "eth0", POD4, POD6), ("outside", self.out, ROUTER4, ROUTER6)):
            sh("ip", "-n", netns, "addr", "add", address4 + "/24", "dev", device)
            sh("ip", "-n", netns, "addr", "add", address6 + "/64", "dev", device, "nodad")
            sh("ip", "-n", netns, "link", "set", device, "up")
        sh("ip", "-n", self.name, "route", "add", "default", "via", ROUTER4)
        sh("ip", "-n", self.name, "-6", "route", "add", "default", "via", ROUTER6)

    def close(self):
        for guard in self.guards:
            self.kill(guard)

    # --- the steps ---

    def inside(self, *argv, **kw):
        """A command as root in the pod's network, with all rights."""
        return subprocess.run(["nsenter", f"--net=/run/netns/{self.name}", *argv], capture_output=True, text=True,
                              timeout=60 * SLOW, **kw)

    def init(self, *options, uid=GUARD):
        return self.inside(VETHGUARD, "sidecar", "init", "--uid", str(uid), "--config", support.LAB.path("config.yaml"), *options)

    def start(self, policy, *options, become=(), wait=True):
        """The guard, in process ids of its own. become: how its container makes it the guard's user."""
        path = support.LAB.write(f"sidecar-{len(self.guards)}.yaml", policy)
        if self.is_ready():  # left by a guard that was killed
            os.unlink(os.path.join(self.share, "ready"))
        audit = os.path.join(self.share, f"audit-{len(self.guards)}.jsonl")
        stderr = tempfile.NamedTemporaryFile(dir=support.LAB.dir, suffix=".stderr", delete=False)
        become = become or ("setpriv", "--reuid", str(GUARD), "--regid", str(GUARD), "--clear-groups", "--bounding-set=-all",
                            "--inh-caps=-all")
        guard = subprocess.Popen(["nsenter", f"--net=/run/netns/{self.name}", "unshare", "--pid", "--fork", "--mount-proc",
                                  "--kill-child", *become, VETHGUARD, "sidecar", "run", "--policy", path, "--config",
                                  support.LAB.path("config.yaml"), "--audit", audit, "--share", self.share, *options],
                                 stderr=stderr, stdin=subprocess.DEVNULL)
        guard.stderr_path, guard.audit = stderr.name, audit
        stderr.close()
        self.guards.append(guard)
        if wait:
            wait_until(lambda: guard.poll() is not None or self.is_ready())
            self.case.assertIsNone(guard.poll(), self.said(guard))
        return guard

    def is_ready(self):
        path = os.path.join(self.share, "ready")
        return os.path.isfile(path) and not os.path.islink(path)

    @staticmethod
    def said(guard):
        with open(guard.stderr_path, encoding="utf-8") as f:
            return f.read()

    @staticmethod
    def main(guard):
        """The process id of `vethguard sidecar run`, which is process 1 in there; in a list, which may be empty."""
        with open(f"/proc/{guard.pid}/task/{guard.pid}/children", encoding="ascii") as f:
            return [int(pid) for pid in f.read().split()]

    def kill(self, guard, sig=signal.SIGKILL):
        if guard.poll() is None:
            pids = self.main(guard)
            for pid in pids:
                os.kill(pid, sig)
            if not pids:  # it is not there yet, and goes with its parent
                guard.kill()
            guard.wait(6 * SLOW)
        return guard.returncode

    def agent(self, *argv, uid=AGENT, caps="", extra=(), timeout=60, env=None, **kw):
        """A program in another container of the pod: not the guard's user, without the rights to undo the fence."""
        sets = "-all" + "".join(f",+{c}" for c in caps.split(",") if c)
        user = ["setpriv", "--bounding-set=" + sets, "--inh-caps=" + sets, "--reuid", str(uid), "--regid", str(uid),
                "--clear-groups", *extra]
        return subprocess.run(["nsenter", f"--net=/run/netns/{self.name}", "unshare", "--pid", "--fork", "--mount-proc", *user,
                               *argv], capture_output=True, text=True, timeout=timeout * SLOW, cwd="/",
                              env={"PATH": os.environ["PATH"], **(env or {})}, **kw)

    def sh(self, command, **kw):
        return self.agent("sh", "-c", f". {self.share}/env.sh; {command}", **kw)

    def py(self, code, **kw):
        return self.agent(PYTHON, "-c", code, **kw)

    @contextlib.contextmanager
    def background(self, code, *words):
        """An agent's program in Python that runs on meanwhile; its output."""
        with subprocess.Popen(["nsenter", f"--net=/run/netns/{self.name}", "setpriv", "--reuid", str(AGENT), "--clear-groups", PYTHON, "-c",
                               code, *words], stdout=subprocess.PIPE, text=True) as child:
            try:
                yield child.stdout
            finally:
                child.kill()

    def capture(self):
        return Uplink(self.out)

    def events(self, guard, class_uid=None):
        with open(guard.audit, encoding="utf-8") as f:
            rows = [json.loads(line) for line in f]
        return [r for r in rows if class_uid in (None, r["class_uid"])]


class Uplink(lab.Capture):
    """Every frame that came out of the pod, as the far end of its link gets it."""
    def __init__(self, device, netns="outside"):
        """netns None: a bridge of the lab's host."""
        if netns:
            support.in_namespace(netns, lambda: super(Uplink, self).__init__(device))
        else:
            super().__init__(device)

    def sent(self):
        """Without ARP and neighbor discovery; reports of multicast groups count, because their senders choose what is in them."""
        def is_nd(f):
            return f[12:14] == b"\x86\xdd" and f[20] == 58 and f[54] in (133, 135, 136)
        return [f for kind, f in self.frames if kind != 4 and (b"LEAK" in f or f[12:14] != b"\x08\x06" and not is_nd(f))]


if __name__ == "__main__":
    sys.exit("this is a module of the tests")
