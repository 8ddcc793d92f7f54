# SPDX-License-Identifier: Apache-2.0
"""vethguard-docker with a real dockerd: containers of a network that the driver makes are guarded from their first packet on, each
a sandbox of its own. Which dockerd: the first in PATH."""
import json
import os
import re
import shutil
import signal
import subprocess
import time
import unittest

import attached
import guests
import lab
import support
import test_exfiltration
from lab import DNS4, EVIL4, ORIGIN4, ORIGIN6
from support import DNS, HTTP, SLOW, sh, wait_until

PROGRAM = os.path.join(lab.BIN, "vethguard-docker")
PLUGINS = "/run/docker/plugins"
# Any address: the guard answers for it.
NAME_SERVER = "192.0.2.53"
# What a container does first of all: it waits for nobody.
AT_ONCE = f"""
import json, sys, time
sys.path.insert(0, "/")
import inside_battery as b
began = time.monotonic()
found = b.tries(evil4="{EVIL4}", dns4="{DNS4}", origin4="{ORIGIN4}", origin6="{ORIGIN6}", services=json.loads(sys.argv[1]),
                neighbours=json.loads(sys.argv[2]), macs=[], tag=sys.argv[3])
print(json.dumps(found))
"""


class Driver:
    """vethguard-docker with a state of its own. It outlives its own death: start() again goes on."""

    def __init__(self, daemon, policies):
        self.daemon, self.policies = daemon, policies
        self.dir = support.LAB.path(f"docker-driver-{time.monotonic_ns()}")
        os.makedirs(self.dir, mode=0o700)
        self.state, self.stderr_path, self.process = self.dir + "/state", self.dir + "/stderr", None
        os.makedirs("/run/docker", exist_ok=True)
        if not os.path.ismount("/run/docker"):
            sh("mount", "-t", "tmpfs", "-o", "mode=0700", "none", "/run/docker")
        os.makedirs(PLUGINS, exist_ok=True)
        support.OUTPUTS.append(self.stderr_path)
        self.start()

    def start(self):
        with open(self.stderr_path, "ab") as err:
            self.process = subprocess.Popen([PROGRAM, "-v", "--control", self.daemon.socket, "--policies", self.policies, "--state",
                                             self.state], stdin=subprocess.DEVNULL, stdout=err, stderr=err)
        assert wait_until(lambda: os.path.exists(PLUGINS + "/vethguard.sock") and self.call("Plugin.Activate")[0] == 200, 10 * SLOW), \
            self.stderr()
        return self

    def call(self, name, body=None):
        """(status, answer) of one call as dockerd makes it. body: an object, or bytes as they are."""
        from daemon import UnixConnection
        connection = UnixConnection(PLUGINS + "/vethguard.sock", 30 * SLOW)
        data = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        try:
            connection.request("POST", "/" + name, body=data, headers={"Accept": "application/vnd.docker.plugins.v1.2+json"})
            r = connection.getresponse()
            return r.status, json.loads(r.read())
        except OSError:
            return 0, None
        finally:
            connection.close()

    def stderr(self):
        with open(self.stderr_path, errors="replace") as f:
            return f.read()

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            self.process.wait(20 * SLOW)
        return self.process.returncode

    def kill(self):
        self.process.kill()
        self.process.wait()


def links():
    """The driver's interfaces in the host's namespace."""
    return sorted(re.findall(r"(?m)^\d+: (vg[dc][0-9a-f]{12})[@:]", sh("ip", "-o", "link")))


class Network(attached.Guarded):
    """The battery in a container of a network "agents", with another container on the same network."""
    NETWORK, OPTIONS = "agents", ("--dns", DNS4)

    @classmethod
    def setUpClass(cls):
        if not shutil.which("dockerd"):
            raise unittest.SkipTest("docker is not installed")
        super().setUpClass()

    @classmethod
    def make(cls):
        cls.engine = guests.Engine("docker", cls.OPTIONS)
        cls.addClassCleanup(cls.engine.stop)

    @classmethod
    def attach(cls, name="box"):
        """Nobody attaches: the network is made, containers start."""
        if not getattr(cls, "driver", None):
            cls.policies = support.LAB.path(f"policies-{cls.tag}")
            os.makedirs(cls.policies)
            shutil.copy(cls.policy, cls.policies + "/agent.yaml")
            shutil.copy(cls.narrow, cls.policies + "/narrow.yaml")
            cls.driver = Driver(cls.daemon, cls.policies)
            cls.addClassCleanup(cls.forget_driver)
            cls.engine("network", "create", "-d", "vethguard", "--ipv6", "--subnet", "172.31.0.0/16", "--subnet", "fd00:31::/64",
                       "-o", "policy=agent", "-o", "name=" + cls.NETWORK, "-o", "label.team=blue", cls.NETWORK)
            cls.engine("network", "create", "-d", "vethguard", "-o", "policy=narrow", "others")
            cls.container("other", "agents-other")
            cls.listener("other")
            cls.other6, cls.neighbours, cls.neighbour_macs = cls.place("other")
        cls.container("agent", name)
        cls.env_file = support.LAB.write(f"{cls.tag}.env", cls.vethguard("env", name, "--format", "docker"))
        cls.furnish()

    @classmethod
    def forget_driver(cls):
        driver, cls.driver = cls.driver, None
        assert driver.stop() == 0, driver.stderr()

    @classmethod
    def container(cls, name, sandbox=None, *options, command=("/bin/sleep", "100000"), network=None):
        extra = f",driver-opt=vethguard.name={sandbox}" if sandbox else ""
        cls.engine("run", "-d", "--name", name, "--network", f"name={network or cls.NETWORK}{extra}", *options, cls.engine.IMAGE, *command)

    @classmethod
    def place(cls, name):
        """(IPv6 address, [IPv4 address], [MAC]) of a container."""
        found = json.loads(cls.engine.inspect(name, "{{json .NetworkSettings.Networks}}"))[cls.NETWORK]
        return found["GlobalIPv6Address"], [found["IPAddress"]], [found["MacAddress"]]

    @classmethod
    def listener(cls, name):
        p = cls.engine.popen("exec", name, guests.PYTHON, "/inside_battery.py", "listen",
                             '{"out": "/tmp/came", "tcp_port": 4445, "udp_port": 4446}', stderr=subprocess.DEVNULL)
        cls.addClassCleanup(p.wait)
        cls.addClassCleanup(p.kill)
        assert wait_until(lambda: cls.came(name) == "ready\n", 10 * SLOW), cls.came(name)

    @classmethod
    def came(cls, name):
        return cls.engine.exec(name, None, "/bin/cat", "/tmp/came").stdout

    @classmethod
    def furnish(cls):
        pem = support.LAB.write("network-ca.pem", cls.vethguard("env", "box", "--format", "pem"))
        for path in ("vethguard.pem", "ca-certificates.crt"):
            cls.engine("cp", pem, f"agent:/etc/ssl/certs/{path}")

    @classmethod
    def inside(cls, *argv, env_file=None):
        return cls.engine.exec("agent", env_file, *argv)

    @classmethod
    def host_addresses(cls):
        """With the network's own router, and docker0's address."""
        return [*super().host_addresses(), "172.31.0.1", "fd00:31::1", "172.17.0.1"]

    def guarded(self):
        """{name: sandbox} of the daemon."""
        return {s["name"]: s for s in self.daemon.call("GET", "/v1/sandboxes")[2]["sandboxes"]}



class Battery(Network):
    def test_1_told_apart(self):
        """Each container is a sandbox with its own name, placeholders and CA, by its endpoint's id where it has no name."""
        self.container("third")
        endpoint = self.engine.inspect("third", "{{.NetworkSettings.Networks.agents.EndpointID}}")
        self.assertEqual(sorted(self.guarded()), sorted(["agents-other", "box", "agents-" + endpoint[:12]]))
        third = self.guarded()["agents-" + endpoint[:12]]
        self.assertEqual(third["labels"], {"team": "blue", "docker.endpoint": endpoint, "docker.network": third["labels"]["docker.network"]})
        self.assertEqual(third["addresses"]["gate4"], "172.31.0.1")
        env = [self.daemon.call("GET", f"/v1/sandboxes/{name}/env")[2] for name in self.guarded()]
        self.assertEqual(len({e["ca_pem"] for e in env}), 3)
        self.assertEqual(len({json.dumps(e["variables"]) for e in env}), 3)
        self.engine("rm", "-f", "third")
        self.assertEqual(sorted(self.guarded()), ["agents-other", "box"])
        self.assertEqual(len(links()), 2)

    def test_1_another_network(self):
        """Another network, another policy."""
        self.container("elsewhere", "elsewhere", network="others")
        self.assertEqual(self.guarded()["elsewhere"]["policy"]["name"], "narrow")
        self.engine("rm", "-f", "elsewhere")

    def test_2_every_way_out(self):
        super().test_2_every_way_out()
        self.assertNotIn("listener", json.dumps(self.call("datagrams", address=self.other6, port=4446)))
        self.assertEqual(self.came("other"), "ready\n", "the other container was reached")

    def test_2_dockers_resolver(self):
        """It asks upstream out of the container's own namespace, so the guard answers."""
        found = self.call("ask", server="127.0.0.11", name=f"embedded.{self.tag}.evil.lab.test")
        self.assertIn(found[0], (0, 2, 3, 5), found)
        self.told("the question", DNS, action_id=2, **{"query.hostname": f"embedded.{self.tag}.evil.lab.test"})
        self.assertEqual(self.seen("dns"), [])

    def test_2_first_instruction(self):
        """All of it, tried by the first instruction of a container, in a policy of another name, and again by name of dockerd."""
        services = [[a, attached.SERVICE_TCP, attached.SERVICE_UDP] for a in self.host_addresses()]
        neighbours = [[a, 4445, 4446] for a in self.neighbours]
        before = len(attached.SERVICES.seen)
        with test_exfiltration.Watch() as watch:
            r = subprocess.run(["docker", "run", "--rm", "--name", "first", "--network", "name=agents,driver-opt=vethguard.name=first",
                                self.engine.IMAGE, guests.PYTHON, "-c", AT_ONCE, json.dumps(services), json.dumps(neighbours),
                                self.tag + "f"], env=self.engine.env, capture_output=True, text=True, timeout=120 * SLOW)
        self.assertEqual(r.returncode, 0, r)
        self.assertGreater(len(json.loads(r.stdout)), 20)
        self.assert_nothing_leaks(watch, allowed_flows=False)
        self.assertEqual(attached.SERVICES.seen[before:], [], "services of the host were reached")
        self.assertEqual(self.came("other"), "ready\n", "the other container was reached")
        self.told("a request", HTTP, action_id=2, **{"http_request.url.hostname": "evil.lab.test", "metadata.labels": lambda v: True})
        self.told("the resolver's question", DNS, action_id=2, **{"query.hostname": lambda v: v and f".docker0.{self.tag}f.evil" in v})

    def test_6_detached(self):
        """Who detaches by hand cuts off: the interface is shut, not open. The container's next start is guarded again."""
        self.vethguard("detach", "box")
        outer = self.outer("agent")
        self.assertTrue(wait_until(lambda: "state DOWN" in sh("ip", "link", "show", outer), 30 * SLOW), self.driver.stderr())
        with test_exfiltration.Watch() as watch:
            self.assertIsInstance(self.get(timeout=3), str)
        self.assert_nothing_leaks(watch, allowed_flows=False)
        self.engine("restart", "-t", "0", "agent")
        self.env_file = support.LAB.write(f"{self.tag}.env", self.vethguard("env", "box", "--format", "docker"))
        self.furnish()
        self.assert_works()

    def outer(self, name):
        return "vgd" + self.engine.inspect(name, "{{.NetworkSettings.Networks.agents.EndpointID}}")[:12]

    def test_7_removed(self):
        """Without a trace."""
        self.engine("rm", "-f", "agent", "other")
        self.assertEqual(self.guarded(), {})
        self.assertEqual(links(), [])
        self.engine("network", "rm", "agents", "others")
        self.assertEqual(os.listdir(self.driver.state), [])
        self.assertNotIn("vethguard", sh("nft", "list", "ruleset"))
        self.daemon.stop()
        r = subprocess.run([support.VETHGUARD, "audit", "verify", self.daemon.audit], capture_output=True, text=True)
        self.assertEqual(r.returncode, 0, r)
        self.assert_clean(self.daemon.audit, self.daemon.stderr_path, self.driver.stderr_path)


del Network  # no test by itself
