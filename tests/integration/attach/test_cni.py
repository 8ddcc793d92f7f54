# SPDX-License-Identifier: Apache-2.0
"""vethguard-cni under those who start CNI plugins: Podman's CNI backend, containerd's CRI, ctr. As the first plugin, and
behind bridge and ptp. Each with the whole battery, from the first instruction on, and no trace afterwards."""
import json
import os
import shutil
import subprocess
import threading
import time
import unittest

import attached
import cni_engines
import support
import test_exfiltration
from cni_engines import Chain
from lab import DNS4, EVIL4, ORIGIN4, ORIGIN6
from support import PYTHON, SLOW, sh, wait_until

TRIES = ["/inside_battery.py", "tries"]


class Cni(attached.Guarded):
    """A network "agents" whose containers are guarded from their start. Attaching is starting a container."""
    NEEDS = ()
    VERSION = "1.0.0"
    BEFORE = ()  # plugins before vethguard-cni

    @classmethod
    def setUpClass(cls):
        for program in cls.NEEDS:
            if not shutil.which(program):
                raise unittest.SkipTest(program + " is not installed")
        if not os.path.exists(cni_engines.PLUGINS + "/bridge"):
            raise unittest.SkipTest("containernetworking-plugins is not installed")
        cls.count, cls.before, cls.requests = 0, None, 0
        super().setUpClass()

    # What a kind says:

    @classmethod
    def network(cls, chain):
        """Lets the engine know the network."""
        raise NotImplementedError

    @classmethod
    def begin(cls, name):
        """A container or pod that sleeps."""
        raise NotImplementedError

    @classmethod
    def end(cls, name):
        """Removes it; a missing one is no error."""
        raise NotImplementedError

    @classmethod
    def first(cls, name, argv):
        """A container whose first program is this; what it prints. Nothing is left of the container."""
        raise NotImplementedError

    @classmethod
    def put(cls, path, text):
        """A file inside."""
        raise NotImplementedError

    # What all have:

    @classmethod
    def attach(cls, name=None):
        if cls.count == 0:
            folder = os.path.dirname(support.LAB.write("policies-" + cls.tag, ""))
            cls.policies = os.path.join(folder, "policies-" + cls.tag + ".d")
            os.makedirs(cls.policies)
            shutil.copy(cls.policy, cls.policies + "/agent.yaml")
            shutil.copy(cls.narrow, cls.policies + "/narrow.yaml")
            cls.chain = Chain("agents", [*cls.BEFORE, cni_engines.guard(cls.daemon.socket, cls.policies)], cls.VERSION)
            cls.network(cls.chain)
            cls.warm()
            cls.before = cls.traces()
        else:
            cls.end(f"agent{cls.count}")
        cls.count += 1
        cls.begin(f"agent{cls.count}")
        cls.BOX, = cls.boxes()
        cls.env_file = support.LAB.write(f"{cls.tag}.env", cls.vethguard("env", cls.BOX, "--format", "docker"))
        pem = cls.vethguard("env", cls.BOX, "--format", "pem")
        for path in ("vethguard.pem", "ca-certificates.crt"):
            cls.put("/etc/ssl/certs/" + path, pem)

    @classmethod
    def warm(cls):
        """What a first container makes for good (a bridge) does not count as a trace."""
        cls.begin("warm")
        cls.end("warm")

    @classmethod
    def boxes(cls):
        return [s["name"] for s in cls.daemon.call("GET", "/v1/sandboxes")[2]["sandboxes"]]

    @classmethod
    def host_addresses(cls):
        return [*super().host_addresses(), *(["10.88.0.1"] if cls.BEFORE and cls.BEFORE[0]["type"] == "bridge" else [])]

    @classmethod
    def traces(cls):
        """The machine's links, namespaces, mounts, addresses and rules."""
        ipam = support.LAB.path("ipam")
        with open("/proc/self/mountinfo") as f:
            mounts = sorted(w for w in (line.split()[4] for line in f) if w.startswith(("/run/netns", cls.daemon.state)))
        return {"links": sorted(link["ifname"] for link in json.loads(sh("ip", "-j", "link"))), "mounts": mounts,
                "namespaces": sorted(n for n in os.listdir("/run/netns") if n != "outside"),
                "addresses": sorted(n for _, _, names in os.walk(ipam) for n in names if n[0].isdigit() or ":" in n),
                "rules": [line for line in sh("nft", "list", "ruleset").splitlines() if "vethguard" in line],
                "sandboxes": sorted(cls.boxes())}

    def assert_no_trace(self):
        self.assertTrue(wait_until(lambda: self.traces() == self.before, 10 * SLOW), (self.before, self.traces()))

    def test_1_names(self):
        """Any name server will do, and `list` says which container it is."""
        self.assertIn(self.answer_of("192.0.2.53"), (0,), "the guard does not answer in another server's place")
        labels = self.info()["labels"]
        self.assertEqual(labels["cni.network"], "agents")
        self.assertEqual(labels["cni.interface"], "eth0")

    def answer_of(self, server):
        return self.call("ask", server=server, name="api.lab.test")[0]

    def test_2_first_instruction(self):
        """The container's first program does nothing but try to get out."""
        members = {"evil4": EVIL4, "dns4": DNS4, "origin4": ORIGIN4, "origin6": ORIGIN6, "neighbours": [], "macs": [],
                   "tag": self.tag + "f", "services": [[a, attached.SERVICE_TCP, attached.SERVICE_UDP] for a in self.host_addresses()]}
        before = len(attached.SERVICES.seen)
        with test_exfiltration.Watch() as watch:
            found = json.loads(self.first("first", [PYTHON, *TRIES, json.dumps(members)]))
        self.assert_nothing_leaks(watch, allowed_flows=False)
        self.assertEqual(attached.SERVICES.seen[before:], [])
        self.assertNotIn("banner", json.dumps(found))
        self.assertGreater(found["frames"][0], 1)
        self.assertEqual(self.boxes(), [self.BOX])

    def test_2_daemon_away(self):
        """No daemon, no container; and the engine's error says why and what to do."""
        self.daemon.kill()
        with self.assertRaises(Exception) as caught:
            self.begin("orphan")
        self.assertRegex(str(caught.exception), "vethguardd does not run.*systemctl")
        self.daemon.start()
        self.end("orphan")
        self.assertTrue(wait_until(lambda: self.info()["state"] == "serving", 10 * SLOW), self.info())
        self.assert_works()
        self.assertEqual(self.boxes(), [self.BOX])

    def test_2_policy_refused(self):
        """A policy that does not load: the container does not start, and the error has the daemon's own words."""
        with open(self.policies + "/agent.yaml") as f:
            good = f.read()
        self.rewrite("vethguard: 1\nname: x\nalow: []\n")
        with self.assertRaises(Exception) as caught:
            self.begin("wrong")
        self.assertRegex(str(caught.exception), "alow")
        self.end("wrong")
        self.rewrite(good)
        self.assertEqual(self.boxes(), [self.BOX])

    def rewrite(self, text):
        with open(self.policies + "/agent.yaml", "w") as f:
            f.write(text)

    def test_5_many(self):
        """Twenty at once, and not one of them is left."""
        names = [f"many{i}" for i in range(20)]
        with subprocess_pool() as pool:
            list(pool.map(self.begin, names))
            self.assertEqual(len(self.boxes()), 21)
            list(pool.map(self.end, names))
        self.assertEqual(self.boxes(), [self.BOX])
        self.assert_works()

    def after_detach(self):
        """Also the container goes; the daemon has forgotten it."""
        self.end(f"agent{self.count}")
        self.assert_no_trace()


def subprocess_pool():
    import concurrent.futures
    return concurrent.futures.ThreadPoolExecutor(20)


class Podman(Cni):
    """Podman with network_backend = "cni", vethguard-cni alone."""
    NEEDS = ("podman",)

    @classmethod
    def make(cls):
        cls.engine = cni_engines.PodmanCni()
        cls.addClassCleanup(cls.engine.stop)

    @classmethod
    def network(cls, chain):
        cls.engine.network(chain.conflist())

    @classmethod
    def begin(cls, name):
        cls.engine.run(name, "--network", "agents")

    @classmethod
    def end(cls, name):
        subprocess.run(["podman", "rm", "-f", "-t", "0", name], env=cls.engine.env, capture_output=True)

    @classmethod
    def first(cls, name, argv):
        """In the background: Podman 4.3 takes twenty seconds to see that a container in its foreground has ended."""
        cls.engine("run", "-d", "--name", name, "--network", "agents", cls.engine.IMAGE, *argv)
        wait_until(lambda: cls.engine("logs", name).endswith("}"), 60 * SLOW)
        out = cls.engine("logs", name)
        cls.end(name)
        return out

    @classmethod
    def put(cls, path, text):
        cls.engine("cp", support.LAB.write("cni-file", text), f"agent{cls.count}:{path}")

    @classmethod
    def inside(cls, *argv, env_file=None):
        return cls.engine.exec(f"agent{cls.count}", env_file, *argv)

    @classmethod
    def engine_env(cls):
        return cls.engine.env


class PodmanBridge(Podman):
    """Behind the plugin bridge, as Podman's own networks are made, and with the older version."""
    VERSION = "0.4.0"

    @classmethod
    def setUpClass(cls):
        cls.BEFORE = (cni_engines.bridge(),)
        super().setUpClass()


class Cri(Cni):
    """containerd's CRI as a kubelet uses it, with a RuntimeClass whose network is vethguard-cni alone."""
    NEEDS = ("containerd", "runc")
    HANDLER = "vethguard"

    @classmethod
    def make(cls):
        try:
            import grpc  # noqa: F401
        except ImportError:
            raise unittest.SkipTest("python3-grpcio is not installed") from None
        cls.engine = cni_engines.Containerd()
        cls.addClassCleanup(cls.engine.stop)
        cls.pods = {}

    @classmethod
    def network(cls, chain):
        cls.engine.network("vethguard", chain.conflist())
        time.sleep(1)  # containerd has no word for having read it

    @classmethod
    def begin(cls, name):
        pod = cls.engine.cri.run(name, cls.HANDLER)
        cls.pods[name] = (pod, cls.engine.cri.container(pod, name))

    @classmethod
    def end(cls, name):
        if name in cls.pods:
            cls.engine.cri.remove(cls.pods.pop(name)[0])

    @classmethod
    def first(cls, name, argv):
        pod = cls.engine.cri.run(name, cls.HANDLER)
        cls.engine.cri.container(pod, name, argv=argv)
        assert wait_until(lambda: cls.engine.cri.printed(name).endswith("\n"), 60 * SLOW), cls.engine.cri.printed(name)
        cls.engine.cri.remove(pod)
        return cls.engine.cri.printed(name)

    @classmethod
    def put(cls, path, text):
        r = cls.engine.cri.exec(cls.pods[f"agent{cls.count}"][1], ["/bin/sh", "-c", 'echo "$1" >"$0"', path, text])
        assert r.returncode == 0, r

    @classmethod
    def inside(cls, *argv, env_file=None):
        env = {}
        if env_file:
            with open(env_file) as f:
                env = dict(line.rstrip("\n").split("=", 1) for line in f)
        return cls.engine.cri.exec(cls.pods[f"agent{cls.count}"][1], argv, env)

    def test_1_pod(self):
        """The pod's address in Kubernetes, its names in the daemon's list."""
        info, (pod, _) = self.info(), self.pods[f"agent{self.count}"]
        self.assertEqual(self.engine.cri.address(pod), info["addresses"]["sandbox4"])
        self.assertRegex(info["name"], rf"^team\.agent{self.count}-[0-9a-f]{{16}}$")
        self.assertEqual((info["labels"]["pod.namespace"], info["labels"]["pod.name"]), ("team", f"agent{self.count}"))
        self.assertEqual(info["labels"]["cni.container"], pod)


    def test_5_engine_killed(self):
        """containerd is killed while it starts pods. What runs stays guarded and goes on; what it has forgotten when it starts again
        is shut, and the command GC, with the pods that it knows, takes that away."""
        before = set(os.listdir("/run/netns"))
        for i in range(6):
            with test_exfiltration.Watch() as watch:
                thread = threading.Thread(target=self.try_begin, args=(f"cut{i}",))
                thread.start()
                time.sleep(0.03 * (i + 1))
                self.engine.process.kill()
                self.engine.process.wait()
                thread.join()
            self.assert_nothing_leaks(watch, allowed_flows=False)
            self.engine.start()
            self.assert_works()
        for pod in self.engine.cri.list():
            if pod != self.pods[f"agent{self.count}"][0]:
                self.engine.cri.remove(pod)
        chain, plugin = self.chain, self.chain.plugins[-1]
        cni_engines.ask(cni_engines.PLUGIN, cni_engines.environment("GC"), {**chain.config(plugin), "cniVersion": "1.1.0",
                        "cni.dev/valid-attachments": [{"containerID": p, "ifname": "eth0"} for p in self.engine.cri.list()]})
        self.assertEqual(self.boxes(), [self.BOX])
        self.assert_works()
        for name in set(os.listdir("/run/netns")) - before:  # of pods that containerd has forgotten: its own
            sh("ip", "netns", "del", name)
        for address in set(self.traces()["addresses"]) - {self.info()["addresses"]["sandbox4"]}:
            os.unlink(os.path.join(support.LAB.path("ipam"), "agents", address))

    def try_begin(self, name):
        try:
            self.engine.cri.run(name, self.HANDLER)
        except Exception:
            pass  # it was killed

class CriPtp(Cri):
    """Behind the plugin ptp."""

    @classmethod
    def setUpClass(cls):
        cls.BEFORE = (cni_engines.ptp(),)
        super().setUpClass()


class Ctr(Cni):
    """`ctr run --cni`."""
    NEEDS = ("containerd", "ctr", "runc")

    @classmethod
    def make(cls):
        cls.engine = cni_engines.Containerd()
        cls.addClassCleanup(cls.engine.stop)
        # ctr has these places built in; here they are nobody else's.
        os.makedirs("/etc/cni/net.d", exist_ok=True)
        os.makedirs("/opt", exist_ok=True)
        for place in ("/etc/cni/net.d", "/opt"):
            sh("mount", "-t", "tmpfs", "none", place)
            cls.addClassCleanup(sh, "umount", "-l", place)
        os.makedirs("/opt/cni")
        os.symlink(cls.engine.dir + "/bin", "/opt/cni/bin")
        cls.running = {}

    @classmethod
    def network(cls, chain):
        with open("/etc/cni/net.d/10-agents.conflist", "w") as f:
            json.dump(chain.conflist(), f)

    @classmethod
    def launch(cls, name, argv):
        """ctr gives no name server, but the programs inside want one to be named."""
        resolv = support.LAB.write("ctr-resolv", "nameserver 192.0.2.53\n")
        return subprocess.Popen(cls.engine.argv("run", "--rm", "--cni", "--snapshotter", "native", "--mount",
                                                f"type=bind,src={resolv},dst=/etc/resolv.conf,options=rbind:ro",
                                                cls.engine.IMAGE, name, *argv),
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    @classmethod
    def begin(cls, name):
        p = cls.launch(name, ["/bin/sleep", "100000"])
        if not wait_until(lambda: p.poll() is not None or cls.runs(name), 30 * SLOW) or p.poll() is not None:
            raise AssertionError(p.communicate()[1])
        cls.running[name] = p

    @classmethod
    def runs(cls, name):
        tasks = subprocess.run(cls.engine.argv("tasks", "ls"), capture_output=True, text=True).stdout
        return any(line.split()[0] == name and "RUNNING" in line for line in tasks.splitlines())

    @classmethod
    def end(cls, name):
        p = cls.running.pop(name, None)
        if p:
            subprocess.run(cls.engine.argv("tasks", "kill", "-s", "SIGKILL", name), capture_output=True)
            p.communicate(timeout=60 * SLOW)

    @classmethod
    def first(cls, name, argv):
        out, err = cls.launch(name, argv).communicate(timeout=120 * SLOW)
        return out or err

    @classmethod
    def put(cls, path, text):
        r = cls.inside("/bin/sh", "-c", 'echo "$1" >"$0"', path, text)
        assert r.returncode == 0, r

    @classmethod
    def inside(cls, *argv, env_file=None):
        env = []
        if env_file:
            with open(env_file) as f:
                env = [line.rstrip("\n") for line in f]
        name = f"x{time.monotonic_ns()}"
        return subprocess.run(cls.engine.argv("tasks", "exec", "--exec-id", name, f"agent{cls.count}", "/bin/env", *env, *argv),
                              capture_output=True, text=True, timeout=120 * SLOW)


del Cni  # a base class, not a test
