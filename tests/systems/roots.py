# SPDX-License-Identifier: Apache-2.0
"""Roots of other systems: a minimal one is made once for each (mmdebstrap) and kept in build/systems, as are the packages
that apt fetches into it. Each run begins with a fresh copy, in which nothing is installed but git, make and ca-certificates.

A command in a root runs in namespaces for mounts and processes of its own, with the root as its `/` (pivot_root, for in a
chroot the kernel makes no user namespaces) and with the machine's network, which apt needs."""
import hashlib
import os
import shutil
import subprocess

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
WORK = os.path.join(ROOT, "build", "systems")
SOURCE = "/src"  # where the checkout is, in a root
DEBIAN = os.environ.get("DEBIAN_MIRROR", "http://deb.debian.org/debian")
UBUNTU = os.environ.get("UBUNTU_MIRROR", "http://archive.ubuntu.com/ubuntu")
UBUNTU_KEYS = "usr/share/keyrings/ubuntu-archive-keyring.gpg"
BASE = "apt,git,make,ca-certificates"  # what README takes for granted; apt, which a minimal Ubuntu is without
SUITES = {"debian-12": ("bookworm", DEBIAN), "debian-13": ("trixie", DEBIAN), "ubuntu-24.04": ("noble", UBUNTU)}
STEP_S = 5400

# $1: the root, $2: apt's archives, the rest: the command.
ENTER = r"""set -eu
root=$1 archives=$2
shift 2
mount --bind "$root" "$root"
cd "$root"
mkdir -p var/cache/apt/archives
mount --bind "$archives" var/cache/apt/archives
mount -t proc proc proc
mount -t sysfs sysfs sys
mount -t tmpfs -o mode=755 dev dev
for d in null zero full random urandom tty; do
	touch dev/$d
	mount --bind /dev/$d dev/$d
done
mkdir dev/pts dev/shm dev/net
mount -t devpts -o newinstance,ptmxmode=0666 devpts dev/pts
ln -s pts/ptmx dev/ptmx
mount -t tmpfs -o mode=1777 shm dev/shm
ln -s /proc/self/fd dev/fd
ln -s /proc/self/fd/0 dev/stdin
ln -s /proc/self/fd/1 dev/stdout
ln -s /proc/self/fd/2 dev/stderr
if [ -e /dev/net/tun ]; then
	touch dev/net/tun
	mount --bind /dev/net/tun dev/net/tun
fi
mount -t tmpfs -o mode=755 run run
pivot_root . .
umount -l .
cd /src
exec "$@"
"""


def run(*argv, **kw):
    subprocess.run(argv, check=True, **kw)


def ubuntu_keys():
    """Ubuntu's keys, from the package of Debian that has them: so they are vouched for by Debian's."""
    if os.path.exists("/" + UBUNTU_KEYS):
        return "/" + UBUNTU_KEYS
    keyring = os.path.join(WORK, "ubuntu-keyring")
    if not os.path.exists(os.path.join(keyring, UBUNTU_KEYS)):
        shutil.rmtree(keyring, ignore_errors=True)
        run("mmdebstrap", "--quiet", "--variant=extract", "--include=ubuntu-archive-keyring", "trixie", keyring + ".part", DEBIAN)
        os.rename(keyring + ".part", keyring)
    return os.path.join(keyring, UBUNTU_KEYS)


def make_archive(system):
    """The archive of a minimal root of a system."""
    suite, mirror = SUITES[system]
    key = hashlib.sha256(" ".join([suite, mirror, BASE]).encode()).hexdigest()[:12]
    archive = os.path.join(WORK, f"{system}-{key}.tar")
    if not os.path.exists(archive):
        print(f"{system}: making a minimal root, once ({suite}, {mirror})", flush=True)
        keys = ["--keyring=" + ubuntu_keys(), "--components=main,universe"] if mirror == UBUNTU else []
        run("mmdebstrap", "--quiet", "--variant=minbase", "--include=" + BASE, *keys, suite, archive + ".part.tar", mirror)
        os.rename(archive + ".part.tar", archive)
    return archive


def copy_checkout(target):
    """Files that git tracks or would add, as they are now: uncommitted changes are tested too."""
    files = subprocess.run(["git", "-C", ROOT, "ls-files", "-z", "--cached", "--others", "--exclude-standard"], check=True,
                           capture_output=True).stdout
    names = b"\0".join(f for f in files.split(b"\0") if f and os.path.lexists(os.path.join(os.fsencode(ROOT), f)))
    tar = subprocess.run(["tar", "-C", ROOT, "--null", "--owner=0", "--group=0", "-T", "-", "-cf", "-"], input=names, check=True, capture_output=True)
    os.makedirs(target)
    run("tar", "-xf", "-", "-C", target, input=tar.stdout)


class Root:
    """A fresh root of a system, with the checkout in it."""

    def __init__(self, system, name):
        self.name = name
        self.tree = os.path.join(WORK, f"root-{name}-{os.getpid()}")
        self.archives = os.path.join(WORK, f"archives-{name}")
        os.makedirs(self.archives, exist_ok=True)
        archive = make_archive(system)
        os.makedirs(self.tree)
        run("tar", "-xpf", archive, "-C", self.tree)
        copy_checkout(self.path(SOURCE))
        shutil.copy("/etc/resolv.conf", self.path("/etc/resolv.conf"))
        # A root that is thrown away may be lost when the machine loses power.
        with open(self.path("/etc/dpkg/dpkg.cfg.d/systems"), "w", encoding="ascii") as f:
            f.write("force-unsafe-io\n")

    def path(self, name):
        return os.path.join(self.tree, name.lstrip("/"))

    def run(self, script, log, user=None, **variables):
        """Runs a shell script in the checkout; the exit status. What it says is in the file `log`."""
        env = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "LC_ALL": "C.UTF-8", **variables}
        command = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c", ENTER, "sh", self.tree, self.archives]
        if user is not None:
            command += ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups"]
        with open(log, "wb") as out:
            try:
                return subprocess.run(command + ["sh", "-ec", script], env=env, stdin=subprocess.DEVNULL, stdout=out,
                                      stderr=subprocess.STDOUT, timeout=STEP_S, check=False).returncode
            except subprocess.TimeoutExpired:
                out.write(b"\nstill running: ended\n")
                return 124

    def remove(self):
        shutil.rmtree(self.tree, ignore_errors=True)
