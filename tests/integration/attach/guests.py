# SPDX-License-Identifier: Apache-2.0
"""What the tests of this folder guard: an image with Python and curl of this machine, Docker and Podman with storage
and sockets of their own, and a virtual machine with Debian's cloud kernel. Everything lies in the lab's folder."""
import atexit
import glob
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import time

import support
from support import PYTHON, SLOW, sh, wait_until

HERE = os.path.dirname(os.path.abspath(__file__))
PROGRAM = os.path.join(HERE, "inside_battery.py")
KERNEL = os.path.join(support.ROOT, "build", "kernel")
APPLETS = ("sh", "cat", "env", "ip", "ls", "mkdir", "mount", "insmod", "poweroff", "sleep", "tee", "touch", "true", "wget")
CURL = "/usr/bin/curl"


class Image:
    """A root folder with the programs that the battery needs: some 30 MB."""
    path = None

    @classmethod
    def get(cls):
        if cls.path is None or not os.path.exists(cls.path):
            cls.path = support.LAB.path("image")
            cls.make(cls.path)
        return cls.path

    @classmethod
    def make(cls, root):
        for folder in ("bin", "etc/ssl/certs", "proc", "sys", "dev", "tmp", "run", "lib64"):
            os.makedirs(os.path.join(root, folder))
        shutil.copy(shutil.which("busybox") or "/bin/busybox", root + "/bin/busybox")
        for name in APPLETS:
            os.symlink("busybox", f"{root}/bin/{name}")
        modules = subprocess.run([PYTHON, "-c", "import sys; sys.path.insert(0, sys.argv[1]); import inside_battery, tty, runpy,"
                                  "encodings.idna, encodings.latin_1, encodings.ascii, http.client, site, _sitebuiltins\n"
                                  "for m in sys.modules.values():\n"
                                  "  for f in (getattr(m, '__file__', None), getattr(m, '__cached__', None)):\n"
                                  "    f and print(f)", HERE], capture_output=True, text=True, check=True).stdout.split()
        binaries = [os.path.realpath(PYTHON), CURL] + [f for f in modules if f.endswith(".so")]
        libraries = set()
        for line in sh("ldd", *binaries).splitlines():
            words = [w for w in line.split() if w.startswith("/") and not w.endswith(":")]
            libraries.update(words[:1])
        for path in set(binaries) | libraries | {f for f in modules if not f.startswith(HERE)}:
            if os.path.exists(path):
                os.makedirs(root + os.path.dirname(path), exist_ok=True)
                shutil.copy(path, root + path)
        os.symlink(os.path.basename(os.path.realpath(PYTHON)), root + PYTHON)
        shutil.copy(PROGRAM, root + "/inside_battery.py")
        for name, text in (("passwd", "root:x:0:0::/:/bin/sh\n"), ("group", "root:x:0:\n"), ("hosts", "127.0.0.1 localhost\n"),
                           ("nsswitch.conf", "hosts: files dns\n")):
            with open(f"{root}/etc/{name}", "w") as f:
                f.write(text)


class Engine:
    """Docker or Podman."""
    IMAGE = "lab/client"

    def __init__(self, name, runtimes=None, *, options=("--dns", support.lab.DNS4)):
        """runtimes: of Docker's daemon.json. options: more of dockerd's. By default a DNS server of the lab: what Docker's own resolver
        asks for containers is seen there."""
        self.runtimes = runtimes or {}
        self.name, self.dir, self.process = name, support.LAB.path(f"{name}-{time.monotonic_ns()}"), None
        self.options = list(options)
        self.env = dict(os.environ)
        if os.environ.get("VETHGUARD_DOCKER"):  # a folder with another dockerd than the system's
            self.env["PATH"] = os.environ["VETHGUARD_DOCKER"] + ":" + self.env["PATH"]
        os.makedirs(self.dir)
        sh("mount", "-t", "tmpfs", "none", self.dir)
        atexit.register(self.stop)  # an interrupted run cleans up in no other way
        try:
            getattr(self, "start_" + name)()
            sh("sh", "-c", f"tar -C {Image.get()} -c . | {name} import - {self.IMAGE}", env=self.env)
        except BaseException:
            self.stop()
            raise

    def start_docker(self):
        """Starts dockerd, also again after it was killed."""
        self.env["DOCKER_HOST"] = f"unix://{self.dir}/docker.sock"
        self.env["DOCKER_CONFIG"] = self.dir
        with open(self.dir + "/daemon.json", "w") as f:
            json.dump({"runtimes": self.runtimes}, f)
        log = open(self.dir + "/log", "a")
        self.process = subprocess.Popen(
            [shutil.which("dockerd", path=self.env["PATH"]), "--config-file", self.dir + "/daemon.json", "--data-root", self.dir + "/data",
             "--exec-root", self.dir + "/exec", "--pidfile", self.dir + "/pid", "-H", self.env["DOCKER_HOST"], "--ipv6",
             "--fixed-cidr-v6", "fd00:d0c::/64", *self.options], stdout=log, stderr=log, env=self.env)
        log.close()
        ready = wait_until(lambda: self.process.poll() is not None or
                           subprocess.run(["docker", "version"], env=self.env, capture_output=True).returncode == 0, 60 * SLOW, 0.2)
        if not ready or self.process.poll() is not None:
            with open(self.dir + "/log") as f:
                raise AssertionError("dockerd does not serve: " + f.read()[-3000:])

    def kill_dockerd(self):
        """Kills dockerd and its containerd together: dockerd 20.10 would take the dying one for its own."""
        own = support.descendants(self.process.pid)
        self.process.kill()
        self.process.wait()
        assert wait_until(lambda: not support.still_alive(own), 30 * SLOW), "containerd outlives dockerd"

    def start_dockerd(self):
        """dockerd 20.10 gives its containerd a quarter of a minute to find the containers of before again, which may be too little."""
        for _ in range(4):
            try:
                return self.start_docker()
            except AssertionError as e:
                if "timeout waiting for containerd" not in str(e):
                    raise
        return self.start_docker()

    def start_podman(self):
        """Runs without a daemon; with runc, which minds no mixture of control groups' versions."""
        for name, text in (("storage", f'[storage]\ndriver = "vfs"\ngraphroot = "{self.dir}/graph"\nrunroot = "{self.dir}/run"\n'),
                           ("containers", f'[engine]\nruntime = "runc"\ncgroup_manager = "cgroupfs"\nevents_logger = "file"\n'
                                          f'tmp_dir = "{self.dir}/tmp"\n'
                                          '[containers]\ndefault_ulimits = ["nofile=1024:1024", "nproc=1024:1024"]\n')):
            with open(f"{self.dir}/{name}.conf", "w") as f:
                f.write(text)
        self.env.update(CONTAINERS_STORAGE_CONF=self.dir + "/storage.conf", CONTAINERS_CONF=self.dir + "/containers.conf")

    def __call__(self, *argv):
        return sh(self.name, *argv, env=self.env).strip()

    def popen(self, *argv, **kw):
        return subprocess.Popen([self.name, *argv], env=self.env, **kw)

    def run(self, name, *options):
        """A container that sleeps."""
        self("run", "-d", "--name", name, *options, self.IMAGE, "/bin/sleep", "100000")
        return name

    def exec(self, container, env_file, *argv, **kw):
        return subprocess.run([self.name, "exec", *(["--env-file", env_file] if env_file else []), container, *argv], env=self.env,
                              capture_output=True, text=True, timeout=120 * SLOW, **kw)

    def inspect(self, name, template):
        return self("inspect", "-f", template, name)

    def stop(self):
        """Ends everything that it started; also what is not its own to remove: the infra containers of Podman's pods."""
        atexit.unregister(self.stop)
        storage = self.dir + "/storage.conf"  # without it Podman would remove this machine's own containers
        if self.name == "podman" and self.env.get("CONTAINERS_STORAGE_CONF") == storage and os.path.exists(storage):
            self.quietly("pod", "rm", "-f", "-a", "-t", "0")
            self.quietly("rm", "-f", "-a", "-t", "0")
        elif self.process and self.process.poll() is None:
            names = self.quietly("ps", "-aq").split()
            if names:
                self.quietly("rm", "-f", *names)
        if self.process:
            self.process.terminate()
            self.process.wait()
        self.end_keepers()
        if os.path.ismount(self.dir):
            sh("umount", "-R", "-l", self.dir)

    def quietly(self, *argv):
        return subprocess.run([self.name, *argv], env=self.env, capture_output=True, text=True).stdout

    def end_keepers(self):
        """Ends containers and the processes that keep them (containerd-shim, conmon) of a dockerd that was killed, or of a Podman
        whose storage is gone. Nobody else ends them."""
        for pid, row in support.process_table().items():
            try:
                with open(f"/proc/{pid}/cmdline", "rb") as f:
                    if ("shim" in row[0] or row[0] == "conmon") and (self.dir + "/").encode() in f.read():
                        for p in [*support.descendants(pid), pid]:
                            os.kill(p, signal.SIGKILL)
            except (FileNotFoundError, ProcessLookupError):
                pass


# --- a virtual machine ---

def kernel():
    """Debian's cloud kernel, as mk/install-kernel has unpacked it: (image, folder of its modules); None: it is not there."""
    images = sorted(glob.glob(KERNEL + "/boot/vmlinuz-*"))
    return (images[-1], KERNEL + "/lib/modules/" + os.path.basename(images[-1]).removeprefix("vmlinuz-")) if images else None


def modules(folder, *names):
    """Paths of these modules, each after those that it needs."""
    found = {}

    def add(name):
        if name in found:
            return
        path, = glob.glob(f"{folder}/kernel/**/{name}.ko", recursive=True)
        for other in sh("modinfo", "-F", "depends", path).strip().split(","):
            if other:
                add(other)
        found[name] = path
    for name in names:
        add(name)
    return list(found.values())


INIT = """#!/bin/sh
mount -t proc proc /proc; mount -t sysfs sysfs /sys; mount -t devtmpfs dev /dev
for m in %s; do insmod /modules/$m; done
ip link set lo up; ip link set eth0 up
ip addr add %s dev eth0; ip -6 addr add %s dev eth0
ip route add default via %s; ip -6 route add default via %s
exec %s /inside_battery.py agent '{"device": "/dev/ttyS1"}'
"""


class Machine:
    """A QEMU microVM with one network card, whose tap device is `tap`. address4 and address6 come with prefix lengths. netns: where
    the tap is; else here. mac: of the card; else QEMU's."""

    def __init__(self, tap, address4, address6, gate4, gate6, netns=None, mac=None):
        self.prefix = ["ip", "netns", "exec", netns] if netns else []
        self.dir = support.LAB.path(f"machine-{netns or tap}")
        shutil.rmtree(self.dir, ignore_errors=True)  # of one that did not boot
        os.makedirs(self.dir)
        image, folder = kernel()
        paths = modules(folder, "virtio_pci", "virtio_net")
        root = self.dir + "/root"
        shutil.copytree(Image.get(), root, symlinks=True)
        os.makedirs(root + "/modules")
        for path in paths:
            shutil.copy(path, root + "/modules")
        with open(root + "/init", "w") as f:
            f.write(INIT % (" ".join(map(os.path.basename, paths)), address4, address6, gate4, gate6, PYTHON))
        os.chmod(root + "/init", 0o755)
        sh("sh", "-c", "find . | cpio -o -H newc --quiet > ../initramfs", cwd=root)
        shutil.rmtree(root)
        # Linux counts timer interrupts at its start and panics where an emulated machine gets too few of them, because this one is busy.
        self.argv = ["qemu-system-x86_64", "-m", "512", "-nodefaults", "-display", "none", "-no-reboot", "-kernel", image, "-initrd",
                     self.dir + "/initramfs", "-append", "console=ttyS0 quiet panic=-1 no_timer_check", "-netdev",
                     f"tap,id=n,ifname={tap},script=no,downscript=no", "-device", "virtio-net-pci,netdev=n,romfile=" + (f",mac={mac}" if mac else ""),
                     *self.lines()]
        self.process = None
        for self.accelerator, options, seconds in (("KVM", ["-accel", "kvm", "-cpu", "host"], 10),
                                                   ("TCG", ["-accel", "tcg", "-cpu", "max"], 120)):
            if self.accelerator == "KVM" and not os.access("/dev/kvm", os.R_OK | os.W_OK):
                continue
            if self.start(options, seconds):
                return
            self.stop()
        with open(self.dir + "/console", errors="replace") as f:
            raise AssertionError("the machine does not boot: " + f.read()[-3000:])

    def lines(self):
        return ["-serial", f"file:{self.dir}/console", "-serial", f"unix:{self.dir}/agent,server=on", "-monitor",
                f"unix:{self.dir}/monitor,server=on,wait=off"]

    def begin(self, options):
        self.options = options
        self.process = subprocess.Popen(self.prefix + self.argv + options, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.line = socket.socket(socket.AF_UNIX)

        def connected():
            try:
                self.line.connect(self.dir + "/agent")
                return True
            except OSError:
                return self.process.poll() is not None
        return wait_until(connected, 10 * SLOW) and self.process.poll() is None

    def start(self, options, seconds):
        return self.begin(options) and self.read(seconds * SLOW) == {"ready": True}

    def tell(self, *commands):
        """The monitor's answer to these."""
        with socket.socket(socket.AF_UNIX) as s:
            s.settimeout(30 * SLOW)
            s.connect(self.dir + "/monitor")
            answer = b""
            for command in ("", *commands):
                if command:
                    s.sendall(command.encode() + b"\n")
                seen = len(answer)
                while b"(qemu) " not in answer[seen:]:
                    piece = s.recv(65536)
                    if not piece:
                        break
                    answer += piece
            return answer.decode(errors="replace")

    def snapshot(self):
        """Stops it, and writes its memory and devices to a file. Returns the file's path."""
        path = self.dir + "/snapshot"
        self.tell("stop", f'migrate "exec:cat > {path}"')
        if not wait_until(lambda: "completed" in self.tell("info migrate"), 60 * SLOW):
            raise AssertionError("no snapshot: " + self.tell("info migrate"))
        return path

    def clone(self, netns):
        """Returns another machine as it was at the snapshot, in that namespace, which has a tap of the same name. It is stopped."""
        other = object.__new__(Machine)
        other.dir, other.prefix, other.accelerator = support.LAB.path(f"machine-{netns}"), ["ip", "netns", "exec", netns], self.accelerator
        os.makedirs(other.dir)
        other.argv = [*self.argv[:self.argv.index("-serial")], *other.lines(), "-incoming", f"exec:cat {self.dir}/snapshot"]
        if not other.begin(self.options) or not wait_until(lambda: "paused" in other.tell("info status") and "inmigrate" not in
                                                           other.tell("info status"), 60 * SLOW):
            raise AssertionError("the clone does not start")
        return other

    def resume(self):
        self.tell("cont")

    def read(self, seconds):
        data, end = b"", time.monotonic() + seconds
        while not data.endswith(b"\n"):
            if not select.select([self.line], [], [], max(0, end - time.monotonic()))[0]:
                return None
            piece = self.line.recv(65536)
            if not piece:
                return None
            data += piece
        return json.loads(data)

    def run(self, argv, env=None, input=None, background=False):
        order = {"argv": list(argv), "env": env or {}, "input": input, "background": background}
        self.line.sendall(json.dumps(order).encode() + b"\n")
        answer = self.read(300 * SLOW)
        if answer is None:
            raise AssertionError(f"the machine does not answer: {self.process.poll()}")
        return subprocess.CompletedProcess(argv, answer["status"], answer["out"], answer["err"])

    def stop(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.line.close()
        if os.path.exists(self.dir + "/agent"):
            os.unlink(self.dir + "/agent")


def say(text):
    """Prints where the results were seen, for their reader."""
    sys.stdout.write(f"      {text}\n")
    sys.stdout.flush()
