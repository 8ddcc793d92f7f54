# SPDX-License-Identifier: Apache-2.0
"""A Debian of its own, booted with systemd in namespaces (systemd-nspawn), without a network but the lab's.

Its tree is made once (mmdebstrap) and kept in build/deb, with the packages that vethguard depends on in apt's cache: the
machine itself is never connected. Each run begins with a fresh copy."""
import hashlib
import os
import re
import shutil
import signal
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
WORK = os.path.join(ROOT, "build", "deb")
SUITE = "bookworm"
PACKAGES = ["systemd", "systemd-sysv", "dbus", "iproute2", "curl", "nftables", "procps", "ca-certificates", "logrotate"]
BOOT_S = 120


def make_tree(deb):
    """The archive of a minimal Debian; deb: the package whose dependencies are to be at hand."""
    depends = subprocess.run(["dpkg-deb", "-f", deb, "Depends"], capture_output=True, text=True, check=True).stdout
    names = [re.split(r"[ (|]", d.strip(), maxsplit=1)[0] for d in depends.split(",")]
    key = hashlib.sha256(" ".join([SUITE] + PACKAGES + names).encode()).hexdigest()[:12]
    archive = os.path.join(WORK, f"debian-{key}.tar")
    if os.path.exists(archive):
        return archive
    print(f"machine: making a minimal Debian ({SUITE}), once", flush=True)
    os.makedirs(WORK, exist_ok=True)
    subprocess.run(["mmdebstrap", "--quiet", "--format=tar", "--variant=minbase", "--include=" + ",".join(PACKAGES),
                    "--aptopt=APT::Keep-Downloaded-Packages \"true\"",
                    "--skip=cleanup/apt,download/eatmydata,cleanup/reproducible",
                    '--customize-hook=chroot "$1" apt-get clean',
                    '--customize-hook=chroot "$1" apt-get -qq -y --download-only install ' + " ".join(names),
                    SUITE, archive + ".part"], check=True, stdout=subprocess.DEVNULL)
    os.rename(archive + ".part", archive)
    return archive


def cgroup_folders(name):
    """A folder for the machine in each control group hierarchy that systemd uses: its own systemd makes others in it."""
    tops = {line.split()[1] for line in open("/proc/self/mounts")
            if line.split()[2] == "cgroup2" or (line.split()[2] == "cgroup" and "name=systemd" in line)}
    return [os.path.join(top, name) for top in sorted(tops)]


class Machine:
    def __init__(self, deb):
        self.tree = os.path.join(WORK, f"machine-{os.getpid()}")
        self.name = f"vethguard-{os.getpid()}"
        self.cgroups = cgroup_folders(self.name)
        os.makedirs(self.tree)
        subprocess.run(["tar", "-xpf", make_tree(deb), "-C", self.tree], check=True)
        self.write("etc/hostname", "machine\n")
        self.leader = self.nspawn = None

    def path(self, name):
        return os.path.join(self.tree, name.lstrip("/"))

    def write(self, name, text, mode=0o644):
        os.makedirs(os.path.dirname(self.path(name)), exist_ok=True)
        with open(self.path(name), "w") as f:
            f.write(text)
        os.chmod(self.path(name), mode)

    def boot(self):
        for folder in self.cgroups:
            os.makedirs(folder)
        enter = "".join(f"echo $$ >{folder}/cgroup.procs; " for folder in self.cgroups)
        with open(os.path.join(WORK, "console.log"), "w") as console:
            self.nspawn = subprocess.Popen(
                ["sh", "-c", enter + 'exec systemd-nspawn "$@"', "sh", "--quiet", "--register=no", "--keep-unit",
                 "--private-network", "--console=pipe", "--machine=" + self.name, "--directory=" + self.tree,
                 "--capability=all", "--system-call-filter=@known", "--boot"],
                env={**os.environ, "SYSTEMD_NSPAWN_UNIFIED_HIERARCHY": "1", "SYSTEMD_NSPAWN_API_VFS_WRITABLE": "network"},
                stdin=subprocess.DEVNULL, stdout=console, stderr=console)
        end = time.monotonic() + BOOT_S
        while time.monotonic() < end and self.nspawn.poll() is None:
            children = open(f"/proc/{self.nspawn.pid}/task/{self.nspawn.pid}/children").read().split()
            if children:
                self.leader = int(children[0])
                if self.run("systemctl is-system-running").stdout.strip() in ("running", "degraded"):
                    return
            time.sleep(0.2)
        sys.exit("machine: it does not boot; see build/deb/console.log")

    def run(self, script, timeout=120):
        """A shell's (status, output), inside."""
        return subprocess.run(["nsenter", "-t", str(self.leader), "-a", "--", "env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin",
                               "HOME=/root", "DEBIAN_FRONTEND=noninteractive", "sh", "-c", script],
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=timeout)

    def network(self):
        return os.open(f"/proc/{self.leader}/ns/net", os.O_RDONLY)

    def close(self):
        if self.nspawn and self.nspawn.poll() is None:
            if self.leader:
                os.kill(self.leader, signal.SIGKILL)  # with it everything in its pid namespace
            try:
                self.nspawn.wait(20)
            except subprocess.TimeoutExpired:
                self.nspawn.kill()
                self.nspawn.wait()
        for folder in self.cgroups:
            for below, _, _ in os.walk(folder, topdown=False):
                try:
                    os.rmdir(below)
                except OSError:
                    pass  # a process is on its way out; an empty cgroup harms nobody
        shutil.rmtree(self.tree, ignore_errors=True)
