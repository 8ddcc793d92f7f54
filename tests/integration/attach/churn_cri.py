# SPDX-License-Identifier: Apache-2.0
"""Pods for test_churn.py: as a kubelet asks containerd for them, over CRI. The calls look like an engine's commands, which may be killed:
a kubelet that dies takes its call away."""
import os
import subprocess
import threading

import cni_engines
import guests
import support
from cni_engines import Chain, Containerd, Cri, fields
from support import SLOW


class Call(threading.Thread):
    """What subprocess.Popen is for a command."""

    def __init__(self, path, act):
        super().__init__(daemon=True)
        self.cri, self.act, self.returncode, self.said, self.cut = Cri(path), act, None, "", False
        self.start()

    def run(self):
        try:
            self.act(self.cri)
            status = 0
        except Exception as e:  # grpc's, or ValueError of a channel that is closed
            self.said, status = str(getattr(e, "details", lambda: e)()), 1
        self.returncode = -9 if self.cut else status
        self.cri.channel.close()

    def wait(self, timeout=None):
        self.join(timeout)
        if self.is_alive():
            raise subprocess.TimeoutExpired("a call of CRI", timeout)
        return self.returncode

    def kill(self):
        self.cut = True
        self.cri.channel.close()

    def communicate(self, timeout=None):
        self.wait(timeout)
        return self.said, None


class Way:
    """A RuntimeClass whose handler has a network of its own."""

    def __init__(self, name, engine, handler):
        self.name, self.engine, self.handler = name, engine, handler

    def run(self, pod, *argv):
        return "run", pod, *argv

    @staticmethod
    def remove(pod):
        return "remove", pod

    def popen(self, argv):
        def start(cri):
            cri.container(cri.run(argv[1], self.handler), argv[1], argv=argv[2:])

        def remove(cri):
            for pod, name in pods(cri):
                if name == argv[1]:
                    cri.remove(pod)
        return Call(self.engine.path, start if argv[0] == "run" else remove)

    def there(self):
        cri = Cri(self.engine.path)
        names = [name for _, name in pods(cri)]
        cri.channel.close()
        return names


def pods(cri):
    """(id, name) of each, also of one whose start failed."""
    raw = cri.channel.unary_unary("/runtime.v1.RuntimeService/ListPodSandbox", request_serializer=lambda b: b,
                                  response_deserializer=lambda b: b)(b"", timeout=60 * SLOW)
    return [(item[1].decode(), fields(item[2])[1].decode()) for item in map(fields, fields(raw, repeated=1))]


class Engine(Containerd):
    """Its plugins stand behind the FIFO of those that kill."""
    name = "cri"

    def __init__(self, strikes, chains):
        super().__init__(handlers=[chain.name for chain in chains])
        self.path, self.env = self.dir + "/c.sock", dict(os.environ)
        for name in os.listdir(self.dir + "/bin"):
            place = f"{self.dir}/bin/{name}"
            program = os.readlink(place)
            os.unlink(place)
            strikes.script(place, program)
        for chain in chains:
            self.network(chain.name, chain.conflist())

    def kill(self):
        self.process.kill()
        self.process.wait()

    def collect(self, chains):
        """What a present kubelet does at times by GC (CNI 1.1): removes what no pod has any more."""
        known = [{"containerID": pod, "ifname": "eth0"} for pod in self.cri.list()]
        for chain in chains:
            cni_engines.ask(cni_engines.PLUGIN, cni_engines.environment("GC"), {
                **chain.config(chain.plugins[-1]), "cniVersion": "1.1.0", "cni.dev/valid-attachments": known})

    def end_forgotten(self):
        """Shims of pods that no containerd knows."""
        guests.Engine.end_keepers(self)


def ways(strikes, daemon, policies):
    """(engine, ways, chains)."""
    plugin = cni_engines.guard(daemon.socket, policies)
    chains = [Chain("pods", [plugin]), Chain("podsbehind", [cni_engines.bridge("chnbr1", "10.83.0.0/16"), plugin])]
    engine = Engine(strikes, chains)
    made = [Way("CRI, " + chain.name, engine, chain.name) for chain in chains]
    if not support.wait_until(lambda: all(starts(way) for way in made), 30 * SLOW, 0.5):
        raise AssertionError("containerd has not read its networks: " + engine.log())
    return engine, made, chains


def starts(way):
    """containerd has no word for having read a network: until then a pod of it is refused."""
    call = way.popen(way.run("first-" + way.handler, "/bin/sleep", "1000"))
    call.wait(60 * SLOW)
    way.popen(way.remove("first-" + way.handler)).wait(60 * SLOW)
    return call.returncode == 0
