# SPDX-License-Identifier: Apache-2.0
"""This machine with Debian's kernel, for what its own kernel cannot do: QEMU with this file system by virtiofs. What is written stays
in QEMU's memory."""
import contextlib
import os
import shutil
import subprocess

import guests
import support
from support import SLOW, sh, wait_until

VIRTIOFSD = ("/usr/lib/qemu/virtiofsd", "/usr/libexec/virtiofsd")
BUSYBOX = shutil.which("busybox") or "/bin/busybox"
INIT = """#!/busybox sh
for m in %(modules)s; do /busybox insmod /modules/$m; done
/busybox mkdir -p /here /memory /root
/busybox mount -t virtiofs here /here
/busybox mount -t tmpfs none /memory
/busybox mkdir /memory/upper /memory/work
/busybox mount -t overlay -o lowerdir=/here,upperdir=/memory/upper,workdir=/memory/work none /root
for m in proc:proc sysfs:sys devtmpfs:dev tmpfs:tmp tmpfs:run; do /busybox mount -t ${m%%%%:*} none /root/${m#*:}; done
/busybox mkdir -p /root/dev/pts /root/dev/shm /root/lib/modules
/busybox mount -t devpts none /root/dev/pts
/busybox mount -t tmpfs none /root/dev/shm
/busybox mount -t cgroup2 none /root/sys/fs/cgroup
/busybox mount --bind /root%(modules_here)s /root/lib/modules
exec /busybox chroot /root /bin/sh -c 'export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8
ip link set lo up
cd %(folder)s
echo begins >/dev/ttyS1
(%(script)s) >/dev/ttyS1 2>&1 </dev/null
echo "status: $?" >/dev/ttyS1
/busybox poweroff -f || poweroff -f || echo o >/proc/sysrq-trigger'
"""


BEGUN = "begins"


def output(work):
    path = work + "/output"
    if not os.path.exists(path):
        return ""
    with open(path, errors="replace") as f:
        return f.read()


def missing():
    """What is missing for it, or None."""
    for program in ("qemu-system-x86_64", "cpio", "modinfo"):
        if not shutil.which(program):
            return program + " is not installed"
    if not virtiofsd():
        return "there is no virtiofsd"
    return None if guests.kernel() else "there is no kernel for it; see mk/install-kernel"


def virtiofsd():
    return next((p for p in VIRTIOFSD if os.path.exists(p)), None)


ACCELERATORS = {"KVM": ("kvm", "host"), "TCG": ("tcg", "max")}


def run(script, seconds, folder=support.ROOT, options=()):
    """Returns what the script wrote in the machine, and its status. Uses KVM if a machine boots with it, else emulation."""
    if os.access("/dev/kvm", os.R_OK | os.W_OK):
        with contextlib.suppress(NotBooted):
            return run_by("KVM", script, seconds, folder, options)
    return run_by("TCG", script, seconds, folder, options)


class NotBooted(Exception):
    """The script did not begin."""


def run_by(accelerator, script, seconds, folder, options):
    work = support.LAB.path("whole-machine")
    shutil.rmtree(work, ignore_errors=True)  # of one that did not boot
    os.makedirs(work + "/root/modules")
    image, modules_of = guests.kernel()
    paths = guests.modules(modules_of, "virtio_pci", "virtiofs", "overlay")
    for path in paths:
        shutil.copy(path, work + "/root/modules")
    shutil.copy(BUSYBOX, work + "/root/busybox")
    with open(work + "/root/init", "w") as f:
        f.write(INIT % {"modules": " ".join(map(os.path.basename, paths)), "modules_here": os.path.dirname(modules_of), "folder": folder,
                        "script": script})
    os.chmod(work + "/root/init", 0o755)
    sh("sh", "-c", "find . | cpio -o -H newc --quiet > ../initramfs", cwd=work + "/root")
    files = subprocess.Popen([virtiofsd(), f"--socket-path={work}/files", "-o", "source=/", "-o", "cache=auto", "-o", "sandbox=chroot"],
                             stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        if not wait_until(lambda: os.path.exists(work + "/files"), 10 * SLOW):
            raise AssertionError("virtiofsd does not start")
        machine = subprocess.Popen(
            ["qemu-system-x86_64", "-accel", ACCELERATORS[accelerator][0], "-cpu", ACCELERATORS[accelerator][1], "-m", "1536", "-object",
             "memory-backend-memfd,id=m,size=1536M,share=on", "-numa", "node,memdev=m", "-nodefaults", "-display", "none", "-no-reboot",
             "-kernel", image, "-initrd", work + "/initramfs", "-append", "console=ttyS0 panic=-1 no_timer_check", "-chardev",
             f"socket,id=c,path={work}/files", "-device", "vhost-user-fs-pci,chardev=c,tag=here", "-serial", f"file:{work}/console",
             "-serial", f"file:{work}/output", *options], stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            began = wait_until(lambda: machine.poll() is not None or BEGUN in output(work), (15 if accelerator == "KVM" else 60) * SLOW, 0.2)
            if accelerator == "KVM" and (not began or BEGUN not in output(work)):
                raise NotBooted
            machine.wait(seconds * SLOW)
        except subprocess.TimeoutExpired:
            pass
        finally:
            machine.kill()
            machine.wait()
    finally:
        files.kill()
        files.wait()
    text = output(work)
    body, _, status = text.rpartition("status: ")
    if not status.strip().isdigit():
        with open(work + "/console", errors="replace") as f:
            raise AssertionError(f"the machine did not come to its end: {text[-3000:]} {f.read()[-2000:]}")
    shutil.rmtree(work)
    return body, int(status)
