# SPDX-License-Identifier: Apache-2.0
"""Programs that start CNI plugins: the chain itself, run as libcni runs it; Podman with its CNI backend; containerd, asked by ctr
and over its CRI socket as a kubelet asks it. Configurations, images and sockets lie in the lab's folder."""
import io
import json
import os
import subprocess
import tarfile
import time

import guests
import lab
import support
from support import SLOW, sh, wait_until

PLUGIN = os.path.join(lab.BIN, "vethguard-cni")
PLUGINS = "/usr/lib/cni"  # of containernetworking-plugins


def bridge(name="cnibr0", subnet="10.88.0.0/24"):
    return {"type": "bridge", "bridge": name, "isGateway": True, "ipMasq": False, "ipam": {
        "type": "host-local", "dataDir": support.LAB.path("ipam"), "routes": [{"dst": "0.0.0.0/0"}, {"dst": "::/0"}],
        "ranges": [[{"subnet": subnet}], [{"subnet": "fd88::/64"}]]}}


def ptp(subnet="10.89.0.0/24"):
    return {"type": "ptp", "ipam": {"type": "host-local", "dataDir": support.LAB.path("ipam"), "ranges": [[{"subnet": subnet}]],
                                    "routes": [{"dst": "0.0.0.0/0"}]}}


def guard(socket, policies, policy="agent", **members):
    return {"type": "vethguard-cni", "policy": policy, "policyDirectory": policies, "socket": socket, **members}


class Failed(Exception):
    """A plugin's answer in place of success: its object, and the exit status."""

    def __init__(self, answer, status):
        super().__init__(json.dumps(answer))
        self.answer, self.status, self.code = answer, status, answer.get("code")
        self.text = f"{answer.get('msg')}; {answer.get('details')}"


def environment(command, container=None, netns=None, interface=None, arguments=None):
    env = {"PATH": os.environ["PATH"], "CNI_COMMAND": command, "CNI_PATH": f"{lab.BIN}:{PLUGINS}"}
    for key, value in (("CONTAINERID", container), ("NETNS", netns), ("IFNAME", interface), ("ARGS", arguments)):
        if value is not None:
            env["CNI_" + key] = value
    return env


def ask(plugin, env, config):
    """The answer of one plugin, or Failed. config: an object, or bytes as they are."""
    data = config if isinstance(config, bytes) else json.dumps(config).encode()
    r = subprocess.run([plugin], env=env, input=data, capture_output=True, timeout=120 * SLOW)
    answer = json.loads(r.stdout) if r.stdout.strip() else None
    if r.returncode:
        raise Failed(answer or {"msg": r.stderr.decode()}, r.returncode)
    return answer


class Chain:
    """A network configuration list: ADD in its order, DEL backwards, with the cached result, as libcni does."""

    def __init__(self, name, plugins, version="1.0.0"):
        self.name, self.plugins, self.version, self.results = name, plugins, version, {}
        self.steps = []  # of each ADD, the milliseconds of each plugin

    def config(self, plugin, previous=None, **more):
        return {**plugin, "cniVersion": self.version, "name": self.name, **({"prevResult": previous} if previous else {}), **more}

    @staticmethod
    def program(plugin):
        return PLUGIN if plugin["type"] == "vethguard-cni" else os.path.join(PLUGINS, plugin["type"])

    def add(self, container, netns, arguments=None, interface="eth0", **more):
        result, steps = None, []
        for plugin in self.plugins:
            begin = time.monotonic()
            result = ask(self.program(plugin), environment("ADD", container, netns, interface, arguments),
                         self.config(plugin, result, **more))
            steps.append((time.monotonic() - begin) * 1000)
        self.results[container] = result
        self.steps.append(steps)
        return result

    def delete(self, container, netns=None, arguments=None, interface="eth0"):
        for plugin in reversed(self.plugins):
            ask(self.program(plugin), environment("DEL", container, netns, interface, arguments),
                self.config(plugin, self.results.get(container)))
        self.results.pop(container, None)

    def check(self, container, netns, interface="eth0"):
        for plugin in self.plugins:
            ask(self.program(plugin), environment("CHECK", container, netns, interface), self.config(plugin, self.results[container]))

    def conflist(self, **more):
        return {"cniVersion": self.version, "name": self.name, "plugins": self.plugins, **more}


class PodmanCni(guests.Engine):
    """Podman whose networks are CNI configurations of a folder of its own."""

    def __init__(self, plugins=None):
        """plugins: a folder with all of them."""
        self.plugins = [plugins] if plugins else [lab.BIN, PLUGINS]
        super().__init__("podman")

    def start_podman(self):
        super().start_podman()
        os.makedirs(self.dir + "/net.d")
        with open(self.dir + "/containers.conf", "a") as f:
            f.write(f'[network]\nnetwork_backend = "cni"\ncni_plugin_dirs = {json.dumps(self.plugins)}\n'
                    f'network_config_dir = "{self.dir}/net.d"\n')

    def network(self, conflist):
        with open(f"{self.dir}/net.d/{conflist['name']}.conflist", "w") as f:
            json.dump(conflist, f)


# --- containerd ---

def archive(path, name, root):
    """What `ctr image import` takes: an image of one layer that sleeps."""
    def add(tar, file, data):
        info = tarfile.TarInfo(file)
        info.size = len(data)
        tar.addfile(info, io.BytesIO(data))
    layer = path + ".layer"
    sh("tar", "-C", root, "-cf", layer, ".")
    digest = sh("sha256sum", layer).split()[0]
    config = {"architecture": "amd64" if os.uname().machine == "x86_64" else "arm64", "os": "linux",
              "config": {"Cmd": ["/bin/sleep", "100000"]}, "rootfs": {"type": "layers", "diff_ids": ["sha256:" + digest]}}
    with tarfile.open(path, "w") as tar:
        tar.add(layer, "layer.tar")
        add(tar, "config.json", json.dumps(config).encode())
        add(tar, "manifest.json", json.dumps([{"Config": "config.json", "RepoTags": [name], "Layers": ["layer.tar"]}]).encode())
    os.unlink(layer)


CONFIG = """version = 2
root = "%(dir)s/root"
state = "%(dir)s/state"
disabled_plugins = ["io.containerd.internal.v1.restart"]
[grpc]
  address = "%(dir)s/c.sock"
[plugins."io.containerd.internal.v1.opt"]
  path = "%(dir)s/opt"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "%(image)s"
  stream_server_address = "127.0.0.1"
  stream_server_port = "0"
  restrict_oom_score_adj = true
  disable_apparmor = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "%(dir)s/bin"
    conf_dir = "%(dir)s/net.d"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "native"
    default_runtime_name = "runc"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
"""
HANDLER = """    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.%(name)s]
      runtime_type = "io.containerd.runc.v2"
      cni_conf_dir = "%(dir)s/%(name)s"
"""


class Containerd:
    """With a folder of networks for all pods, and one of its own for each handler (RuntimeClass)."""
    IMAGE = "docker.io/lab/client:latest"

    def __init__(self, handlers=("vethguard",)):
        self.dir = support.LAB.path(f"ctd-{time.monotonic_ns() % 10 ** 6}")
        self.process = None
        os.makedirs(self.dir)
        sh("mount", "-t", "tmpfs", "none", self.dir)
        os.makedirs("/run/containerd", exist_ok=True)
        sh("mount", "-t", "tmpfs", "none", "/run/containerd")  # runc's list of containers, the shims' sockets
        for folder in ("bin", "net.d", *handlers):
            os.makedirs(f"{self.dir}/{folder}")
        os.symlink(PLUGIN, self.dir + "/bin/vethguard-cni")
        for name in os.listdir(PLUGINS):
            os.symlink(os.path.join(PLUGINS, name), f"{self.dir}/bin/{name}")
        with open(self.dir + "/config.toml", "w") as f:
            f.write(CONFIG % {"dir": self.dir, "image": self.IMAGE})
            f.writelines(HANDLER % {"dir": self.dir, "name": name} for name in handlers)
        self.network("net.d", Chain("open", [bridge("opnbr0", "10.87.0.0/24")]).conflist())
        try:
            self.start()
            archive(self.dir + "/image.tar", self.IMAGE, guests.Image.get())
            self.ctr("-n", "k8s.io", "images", "import", "--snapshotter", "native", self.dir + "/image.tar")
            self.ctr("images", "import", "--snapshotter", "native", self.dir + "/image.tar")
        except BaseException:
            self.stop()
            raise

    def start(self):
        with open(self.dir + "/log", "a") as log:
            self.process = subprocess.Popen(["containerd", "--config", self.dir + "/config.toml"], stdout=log, stderr=log)
        if not wait_until(lambda: self.process.poll() is not None or
                          subprocess.run(self.argv("version"), capture_output=True).returncode == 0, 30 * SLOW, 0.1) or \
                self.process.poll() is not None:
            raise AssertionError("containerd does not serve: " + self.log())
        try:
            self.cri = Cri(self.dir + "/c.sock")
        except ImportError:  # python3-grpcio; ctr does without
            self.cri = None
        assert not self.cri or wait_until(self.cri.is_initialized, 30 * SLOW, 0.1), self.log()

    def log(self):
        with open(self.dir + "/log") as f:
            return f.read()[-3000:]

    def network(self, folder, conflist):
        """containerd takes up changes of the folder by itself."""
        with open(f"{self.dir}/{folder}/10-{conflist['name']}.conflist", "w") as f:
            json.dump(conflist, f)

    def argv(self, *argv):
        return ["ctr", "--address", self.dir + "/c.sock", *argv]

    def ctr(self, *argv):
        return sh(*self.argv(*argv))

    def stop(self):
        if self.process and self.process.poll() is None:
            for namespace in ("k8s.io", "default"):
                for task in subprocess.run(self.argv("-n", namespace, "tasks", "ls", "-q"), capture_output=True, text=True).stdout.split():
                    subprocess.run(self.argv("-n", namespace, "tasks", "rm", "-f", task), capture_output=True)
            self.process.terminate()
            self.process.wait()
        guests.Engine.end_keepers(self)  # of pods whose start a containerd was killed over
        for place in ("/run/containerd", self.dir):
            subprocess.run(["umount", "-R", "-l", place], check=False)


# --- CRI: protobuf by hand, since the messages are few (k8s.io/cri-api, runtime.v1) ---

def field(number, value):
    """One field: text, bytes (a message), integer, or a list of them; a dict is a map of texts."""
    if isinstance(value, list):
        return b"".join(field(number, v) for v in value)
    if isinstance(value, dict):
        return b"".join(field(number, field(1, k) + field(2, v)) for k, v in value.items())
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    data = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(data)) + data


def varint(n):
    out = b""
    while n > 127:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])


def fields(data, repeated=None):
    """{number: the last value}: integers and bytes. repeated: all values of this number instead."""
    found, every, at = {}, [], 0

    def number():
        nonlocal at
        n = shift = 0
        while True:
            n |= (data[at] & 127) << shift
            shift += 7
            at += 1
            if not data[at - 1] & 128:
                return n
    while at < len(data):
        key = number()
        if key & 7 == 0:
            found[key >> 3] = number()
        else:
            size = number()
            found[key >> 3] = data[at:at + size]
            at += size
        if key >> 3 == repeated:
            every.append(found[key >> 3])
    return every if repeated else found


class Cri:
    """What a kubelet asks of a runtime."""

    def __init__(self, path):
        import grpc
        self.channel = grpc.insecure_channel("unix://" + path)

    def call(self, method, request, timeout=120):
        return fields(self.channel.unary_unary("/runtime.v1.RuntimeService/" + method, request_serializer=lambda b: b,
                                               response_deserializer=lambda b: b)(request, timeout=timeout * SLOW))

    @staticmethod
    def sandbox_config(name, annotations=None, dns="10.96.0.10"):
        linux = field(1, f"/lab-{name}")  # its own cgroup
        return (field(1, field(1, name) + field(2, "uid-" + name) + field(3, "team")) + field(2, name) +
                field(3, support.LAB.dir) + field(4, field(1, [dns])) + field(7, annotations or {}) + field(8, linux))

    def run(self, name, handler="vethguard", annotations=None):
        """RunPodSandbox: its id."""
        return self.call("RunPodSandbox", field(1, self.sandbox_config(name, annotations)) + field(2, handler))[1].decode()

    def container(self, sandbox, name, mounts=(), argv=("/bin/sleep", "100000")):
        """mounts: (path of the host, path inside), read-only. What it prints goes to a file of the sandbox's log directory."""
        config = (field(1, field(1, name)) + field(2, field(1, Containerd.IMAGE)) + field(3, list(argv)) +
                  field(7, [field(1, inside) + field(2, outside) + field(3, 1) for outside, inside in mounts]) + field(11, name + ".log"))
        made = self.call("CreateContainer", field(1, sandbox) + field(2, config) + field(3, self.sandbox_config(name)))[1].decode()
        self.call("StartContainer", field(1, made))
        return made

    @staticmethod
    def printed(name):
        """What a container has printed so far: lines of "TIME STREAM F|P TEXT", P for a part of a line."""
        try:
            with open(support.LAB.path(name + ".log")) as f:
                rows = [line.rstrip("\n").split(" ", 3) for line in f]
        except FileNotFoundError:
            return ""
        return "".join(text + ("\n" if tag == "F" else "") for _, stream, tag, text in rows if stream == "stdout")

    def exec(self, container, argv, env=None):
        argv = ["/bin/env", *(f"{k}={v}" for k, v in (env or {}).items()), *argv]
        out = self.call("ExecSync", field(1, container) + field(2, argv) + field(3, 120 * SLOW))
        return subprocess.CompletedProcess(argv, out.get(3, 0), out.get(1, b"").decode(), out.get(2, b"").decode())

    def is_initialized(self):
        import grpc
        try:
            self.list()
            return True
        except grpc.RpcError:
            return False

    def list(self):
        """The ids of all pods."""
        raw = self.channel.unary_unary("/runtime.v1.RuntimeService/ListPodSandbox", request_serializer=lambda b: b,
                                       response_deserializer=lambda b: b)(b"", timeout=60 * SLOW)
        return [fields(item)[1].decode() for item in fields(raw, repeated=1)]

    def address(self, sandbox):
        """The pod's IP, as it appears in Kubernetes."""
        return fields(fields(self.call("PodSandboxStatus", field(1, sandbox))[1]).get(5, b"")).get(1, b"").decode()

    def remove(self, sandbox):
        self.call("StopPodSandbox", field(1, sandbox))
        self.call("RemovePodSandbox", field(1, sandbox))
