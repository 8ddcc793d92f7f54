# SPDX-License-Identifier: Apache-2.0
"""A machine of another processor: Debian 13's arm64 kernel in qemu-system-aarch64, which emulates it, with a root made of unpacked
packages (nothing of them is run to set them up) and the checkout as a root that cross-compiles has it. What a script says goes to
the console, and its exit status is the last line."""
import glob
import hashlib
import os
import re
import shutil
import subprocess

import roots

PACKAGES = ("base-files,base-passwd,libc-bin,bash,dash,coreutils,grep,sed,gawk,perl-base,findutils,diffutils,tar,gzip,hostname,login,passwd,util-linux,mount,"
            "procps,kmod,iproute2,nftables,netbase,ca-certificates,openssl,curl,python3,busybox-static,linux-image-cloud-arm64,libcmocka0,"
            "libevent-2.1-7t64,libssl3t64,libnftnl11,libmnl0,libyaml-0-2,libseccomp2,libjansson4,libcurl4t64,zlib1g,libnghttp2-14,libhiredis1.1.0")
MODULES = "nf_tables nft_tproxy nft_socket nft_limit nft_log nfnetlink_log veth tun dummy bridge cls_bpf sch_ingress act_gact"
INIT = r"""#!/bin/sh
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t cgroup2 cgroup2 /sys/fs/cgroup
mkdir -p /dev/pts /dev/shm
mount -t devpts -o newinstance,ptmxmode=0666 devpts /dev/pts
mount -t tmpfs -o mode=1777 shm /dev/shm
mount -t tmpfs -o mode=755 run /run
mount -t tmpfs -o mode=1777 tmp /tmp
ln -sf /proc/self/fd /dev/fd
ip link set lo up
for m in MODULES; do modprobe $m; done
cd /src
echo "what is here: $(uname -srm)"
sh -e /script
echo "exit status $?"
sync
echo o >/proc/sysrq-trigger
sleep 60
"""
FIRST = r"""#!/bin/busybox sh
/bin/busybox insmod /virtio_blk.ko
/bin/busybox mount -t devtmpfs dev /dev
until [ -b /dev/vda ]; do /bin/busybox sleep 0.1; done
/bin/busybox mount -t ext4 /dev/vda /new
/bin/busybox mount --move /dev /new/dev
exec /bin/busybox switch_root /new /usr/sbin/first
"""
QEMU = ("qemu-system-aarch64 -M virt -cpu cortex-a72 -smp 2 -m 3G -nographic -no-reboot -net none -append".split() +
        ["console=ttyAMA0 quiet panic=-1 loglevel=1"])


def userland():
    """The archive of the packages, unpacked."""
    key = hashlib.sha256(f"{PACKAGES} {roots.DEBIAN}".encode()).hexdigest()[:12]
    archive = os.path.join(roots.WORK, f"arm64-{key}.tar")
    if not os.path.exists(archive):
        roots.run("mmdebstrap", "--quiet", "--variant=extract", "--architectures=arm64", "--include=" + PACKAGES, "trixie", archive + ".part.tar", roots.DEBIAN)
        os.rename(archive + ".part.tar", archive)
    return archive


def write(path, text, mode=0o644):
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    os.chmod(path, mode)


class Machine:
    def __init__(self, root):
        self.folder = os.path.join(roots.WORK, f"machine-{os.getpid()}")
        self.tree = os.path.join(self.folder, "tree")
        os.makedirs(self.tree)
        roots.run("tar", "-xpf", userland(), "-C", self.tree)
        checkout = self.path("/src")
        shutil.copytree(root.path(roots.SOURCE), checkout, symlinks=True, ignore=shutil.ignore_patterns("obj", "*.a", "*.o"))
        for name in ("passwd", "group"):
            shutil.copy(self.path(f"/usr/share/base-passwd/{name}.master"), self.path(f"/etc/{name}"))
        write(self.path("/etc/hosts"), "127.0.0.1 localhost\n::1 localhost\n")
        os.symlink("gawk", self.path("/usr/bin/awk"))
        os.makedirs(self.path("/etc/ssl/certs"), exist_ok=True)
        certificates = sorted(glob.glob(self.path("/usr/share/ca-certificates/mozilla/*.crt")))
        write(self.path("/etc/ssl/certs/ca-certificates.crt"), "".join(open(c, encoding="utf-8").read() for c in certificates))
        write(self.path("/usr/sbin/first"), INIT.replace("MODULES", MODULES), 0o755)
        roots.run("ldconfig", "-r", self.tree)
        roots.run("depmod", "-b", self.tree, os.path.basename(glob.glob(self.path("/usr/lib/modules/*"))[0]))
        self.kernel = glob.glob(self.path("/boot/vmlinuz-*"))[0]
        self.first = self.make_first()

    def path(self, name):
        return os.path.join(self.tree, name.lstrip("/"))

    def make_first(self):
        """The kernel's disk driver is a module: what loads it."""
        first = os.path.join(self.folder, "first")
        for name in ("bin", "dev", "new"):
            os.makedirs(os.path.join(first, name))
        shutil.copy(self.path("/usr/bin/busybox"), os.path.join(first, "bin"))
        module = glob.glob(self.path("/usr/lib/modules/*/kernel/drivers/block/virtio_blk.ko.xz"))[0]
        with open(os.path.join(first, "virtio_blk.ko"), "wb") as f:
            roots.run("xz", "-dc", module, stdout=f)
        write(os.path.join(first, "init"), FIRST, 0o755)
        with open(first + ".cpio", "wb") as f:
            roots.run("sh", "-c", "find . | cpio -o -H newc --quiet", cwd=first, stdout=f)
        return first + ".cpio"

    def run(self, script, log):
        """As Root.run()."""
        image = os.path.join(self.folder, "disk")
        write(self.path("/script"), script + "\n")
        if os.path.exists(image):
            os.unlink(image)
        roots.run("mke2fs", "-q", "-t", "ext4", "-d", self.tree, image, "2G", stdout=subprocess.DEVNULL)
        with open(log, "wb") as out:
            try:
                subprocess.run(QEMU + ["-kernel", self.kernel, "-initrd", self.first, "-drive", f"file={image},format=raw,if=none,id=disk,cache=unsafe",
                                       "-device", "virtio-blk-pci,drive=disk"], stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT,
                               timeout=roots.STEP_S, check=False)
            except subprocess.TimeoutExpired:
                return 124
        with open(log, encoding="utf-8", errors="replace") as f:
            said = f.read().replace("\r\n", "\n")
        write(log, said)
        status = re.findall(r"^exit status (\d+)$", said, re.MULTILINE)
        return int(status[-1]) if status else 125

    def remove(self):
        shutil.rmtree(self.folder, ignore_errors=True)
