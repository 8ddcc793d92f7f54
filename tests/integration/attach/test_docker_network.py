# SPDX-License-Identifier: Apache-2.0
"""vethguard-docker with a real dockerd: containers of a network that the driver makes are guarded from their first packet on, each
a sandbox of its own. Which dockerd: the first in PATH."""
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import threading
import time
import unittest

import attached
import cores
import guests
import lab
import page_case
import support
import test_exfiltration
from daemon import Daemon, UnixConnection
from lab import DNS4, EVIL4, ORIGIN4, ORIGIN6
from support import DNS, HTTP, SLOW, sh, wait_until

PROGRAM = os.path.join(lab.BIN, "vethguard-docker")
PLUGINS = "/run/docker/plugins"
# Any address: the guard answers for it.
NAME_SERVER = "192.0.2.53"
# A container's first program, which waits for nobody.
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
            try:
                self.process.wait(20 * SLOW)
            except subprocess.TimeoutExpired:
                self.kill()
                raise AssertionError("vethguard-docker does not stop: " + self.stderr()) from None
        return self.process.returncode

    def kill(self):
        self.process.kill()
        self.process.wait()


def links():
    """The driver's interfaces in the host's namespace."""
    return sorted(re.findall(r"(?m)^\d+: (vg[dc][0-9a-f]{12})[@:]", sh("ip", "-o", "link")))


class Network(attached.InEngine):
    """The battery in a container of a network "agents", with another container on the same network."""
    NETWORK, OPTIONS = "agents", ("--dns", DNS4)

    @classmethod
    def setUpClass(cls):
        if not shutil.which("dockerd"):
            raise unittest.SkipTest("docker is not installed")
        super().setUpClass()

    @classmethod
    def make(cls):
        cls.engine = guests.Engine("docker", options=cls.OPTIONS)
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
    def leave(cls):
        """Containers go while those run who take their links away."""
        names = cls.engine.quietly("ps", "-aq").split()
        if names:
            cls.engine.quietly("rm", "-f", *names)
        super().leave()

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
    def furnish(cls):
        cls.trust("agent")

    @classmethod
    def host_addresses(cls):
        """With the network's own router, and docker0's address."""
        return [*super().host_addresses(), "172.31.0.1", "fd00:31::1", "172.17.0.1"]

    def guarded(self):
        """{name: sandbox} of the daemon."""
        return {s["name"]: s for s in self.daemon.call("GET", "/v1/sandboxes")[2]["sandboxes"]}



class Battery(Network):
    def test_1_told_apart(self):
        """Each container is a sandbox with its own name and placeholders, by its endpoint's id where it has no name."""
        self.container("third")
        endpoint = self.engine.inspect("third", "{{.NetworkSettings.Networks.agents.EndpointID}}")
        self.assertEqual(sorted(self.guarded()), sorted(["agents-other", "box", "agents-" + endpoint[:12]]))
        third = self.guarded()["agents-" + endpoint[:12]]
        self.assertEqual(third["labels"], {"team": "blue", "docker.endpoint": endpoint, "docker.network": third["labels"]["docker.network"]})
        self.assertEqual(third["addresses"]["gate4"], "172.31.0.1")
        env = [self.daemon.call("GET", f"/v1/sandboxes/{name}/env")[2] for name in self.guarded()]
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

    def test_2_a_core_of_the_driver_shows_no_credential(self):
        """The containers that the driver has guarded use a credential."""
        self.assertEqual(cores.found_in(self.driver.process.pid, {"secret": support.SECRET}), set())
        self.assertEqual([path for path, data in cores.files(self.driver.dir) if cores.shows(data, {"secret": support.SECRET})], [])

    def test_2_dockers_resolver(self):
        """Docker's resolver asks upstream from the container's own namespace, so the guard answers."""
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
        """Detaching by hand cuts the container off: the interface is shut, not open. The container's next start is guarded again."""
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
        outer = [self.outer("agent"), self.outer("other")]
        self.engine("rm", "-f", "agent", "other")
        self.assertEqual(self.guarded(), {})
        self.assertEqual(links(), [])
        self.engine("network", "rm", "agents", "others")
        self.assertEqual(os.listdir(self.driver.state), [])
        rules = sh("nft", "list", "ruleset")
        for name in outer:
            self.assertNotIn(name, rules)
        self.daemon.stop()
        r = subprocess.run([support.VETHGUARD, "audit", "verify", self.daemon.audit], capture_output=True, text=True)
        self.assertEqual(r.returncode, 0, r)
        self.assert_clean(self.daemon.audit, self.daemon.stderr_path, self.driver.stderr_path)


class Faults(Network):
    """Refused calls and killed programs: nothing is open, and nothing is left."""

    @classmethod
    def attach(cls, name="box"):
        super().attach(name)
        cls.neighbours = cls.neighbour_macs = ()
        cls.engine("rm", "-f", "other")

    def run_it(self, *argv, timeout=120):
        return subprocess.run(["docker", *argv], env=self.engine.env, capture_output=True, text=True, timeout=timeout * SLOW)

    def assert_refused(self, words, *argv):
        r = self.run_it(*argv)
        self.assertNotEqual(r.returncode, 0, r)
        self.assertIn(words, r.stderr, r)

    def assert_clean_but(self, *names):
        """The driver has nothing left but what belongs to these sandboxes."""
        wait_until(lambda: len(links()) == len(names) and sorted(self.guarded()) == sorted(names), 60 * SLOW, 0.5)
        self.assertEqual((sorted(self.guarded()), len(links())), (sorted(names), len(names)), (links(), self.driver.stderr()))

    def test_1_refused(self):
        for words, options in (("there is no policy nowhere in", ["-o", "policy=nowhere"]),
                               ("is not a path", ["-o", "policy=../agent"]),
                               ("which policy?", []),
                               ('did you mean "policy"?', ["-o", "polcy=agent"]),
                               ("--internal cannot be used with vethguard", ["--internal", "-o", "policy=agent"]),
                               ("has to be the first address", ["--subnet", "10.9.0.0/24", "--gateway", "10.9.0.254", "-o", "policy=agent"]),
                               ("-o ttl=soon", ["-o", "policy=agent", "-o", "ttl=soon"])):
            with self.subTest(words):
                self.assert_refused(words, "network", "create", "-d", "vethguard", *options, "wrong")
        for words, options in (("ports cannot be published", ["-p", "8080:80"]),
                               ("a name has up to 40 letters", ["--network", "name=agents,driver-opt=vethguard.name=a b"]),
                               ("sandbox box already exists", ["--network", "name=agents,driver-opt=vethguard.name=box"])):
            with self.subTest(words):
                self.assert_refused(words, "run", "--rm", *(options if "--network" in options else [*options, "--network", "agents"]),
                                    self.engine.IMAGE, "/bin/true")
        self.assert_clean_but("box")
        self.assertEqual(len(os.listdir(self.driver.state)), 2)

    def test_1_no_calls(self):
        """Calls that no dockerd sends, over the real socket; a caller that is not root is not read at all."""
        deep = b"[" * 40000
        for words, body in (("is not JSON", b"{"), ("is not JSON", b"\xff\xfe"), ("is not JSON", deep), ("has to be a JSON object", b"[]"),
                            ("has no body", None), ("is not JSON", b'{"NetworkID":"a","NetworkID":"b"}'), ("NetworkID", b"{}")):
            status, answer = self.driver.call("NetworkDriver.Join", body)
            self.assertGreaterEqual(status, 400)
            self.assertIn(words, answer["Err"])
        self.assertEqual(self.driver.call("NetworkDriver.Join", b"{" + b" " * 70000 + b"}")[0], 413)
        self.assertEqual(self.driver.call("NetworkDriver.Nothing", {})[0], 404)
        socket_of_root = PLUGINS + "/vethguard.sock"
        os.chmod(socket_of_root, 0o666)
        for path in ("/run/docker", PLUGINS):
            os.chmod(path, 0o755)
        r = subprocess.run(["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", guests.CURL, "-sS", "--unix-socket", socket_of_root,
                            "-d", "{}", "http://x/NetworkDriver.Join"], capture_output=True, text=True)
        self.assertIn("only root may use this socket", r.stdout, r)
        os.chmod(socket_of_root, 0o660)
        self.assert_works()

    def test_2_vethguardd_away(self):
        """Guarded containers stay guarded; no other starts; what is removed meanwhile is cleaned up later."""
        self.daemon.kill()
        self.assert_refused("vethguardd does not run", "run", "--rm", "--network", "agents", self.engine.IMAGE, "/bin/true")
        with test_exfiltration.Watch() as watch:
            self.assertIsInstance(self.get(timeout=3), str)
        self.assert_nothing_leaks(watch, allowed_flows=False)
        self.engine("rm", "-f", "agent")
        self.assertEqual(links(), [])
        self.daemon.start()
        self.assert_clean_but()
        self.attach_again()

    def attach_again(self):
        self.container("agent", "box")
        self.env_file = type(self).env_file = support.LAB.write(f"{self.tag}.env", self.vethguard("env", "box", "--format", "docker"))
        self.furnish()
        self.assert_works()

    def test_3_driver_away(self):
        """dockerd waits half a minute for the driver; a container that runs does not notice."""
        self.driver.kill()
        self.assert_works()
        late = self.engine.popen("run", "--rm", "--network", "name=agents,driver-opt=vethguard.name=late", self.engine.IMAGE, "/bin/true")
        time.sleep(1.5)
        self.driver.start()
        self.assertEqual(late.wait(60 * SLOW), 0)
        self.assert_clean_but("box")

    def test_3_driver_killed_at_each_step(self):
        """Between any two calls, each made twice: the next one goes on."""
        network = self.engine("network", "inspect", "-f", "{{.Id}}", "agents")
        who = {"NetworkID": network, "EndpointID": "ab" * 32}
        create = {**who, "Interface": {"Address": "172.31.200.1/16", "AddressIPv6": "", "MacAddress": ""},
                  "Options": {"com.docker.network.endpoint.dnsservers": [NAME_SERVER], "vethguard.name": "step"}}
        outer, inner = "vgd" + "ab" * 6, "vgc" + "ab" * 6
        macs = []
        for name, body in (("CreateEndpoint", create), ("Join", {**who, "SandboxKey": "/nowhere", "Options": None}), ("Leave", who),
                           ("DeleteEndpoint", who)):
            for _ in range(2):
                status, answer = self.driver.call("NetworkDriver." + name, body)
                self.assertEqual(status, 200, (name, answer))
                self.driver.kill()
                self.driver.start()
                if name == "CreateEndpoint":
                    macs.append(answer["Interface"]["MacAddress"])
                    self.assertNotIn("step", self.guarded())
                    self.assertIn("state DOWN", sh("ip", "link", "show", outer))
                if name == "Join":
                    self.assertEqual(answer["InterfaceName"], {"SrcName": inner, "DstPrefix": "eth"})
                    self.assertNotIn("Gateway", answer)
                    self.assertIs(answer["DisableGatewayService"], True)
                    self.assertEqual(self.guarded()["step"]["state"], "serving")
                if name == "Leave":
                    self.assertNotIn("step", self.guarded())
                    self.assertIn("state DOWN", sh("ip", "link", "show", outer))
        self.assertEqual(macs[0], macs[1])
        self.assertEqual(self.driver.call("NetworkDriver.Join", who)[0], 422)
        for name in ("Leave", "DeleteEndpoint"):
            self.assertEqual(self.driver.call("NetworkDriver." + name, who)[0], 200)
        self.assert_clean_but("box")

    def test_4_killed_at_random(self):
        """Driver and daemon are killed while containers start: each starts guarded or not at all."""
        started = 0
        with test_exfiltration.Watch() as watch:
            for i in range(16):
                p = self.engine.popen("run", "-d", "--name", f"random{i}", "--network", "agents", self.engine.IMAGE, guests.PYTHON, "-c",
                                      AT_ONCE, "[]", "[]", f"{self.tag}r{i}", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                time.sleep(0.03 * i)
                who = self.daemon if i % 4 == 3 else self.driver
                who.kill()
                time.sleep(0.1)
                who.start()
                started += p.wait(120 * SLOW) == 0
            self.assertGreater(started, 1, "nothing was tried")
            self.engine("rm", "-f", *[n for n in self.engine("ps", "-a", "--format", "{{.Names}}").split() if n.startswith("random")])
            self.assert_clean_but("box")
        self.assert_nothing_leaks(watch, allowed_flows=False)
        self.assert_works()

    def test_5_twenty_at_once(self):
        names = [f"many{i}" for i in range(20)]
        started = [self.engine.popen("run", "-d", "--name", n, "--network", f"name=agents,driver-opt=vethguard.name={n}",
                                     self.engine.IMAGE, "/bin/sleep", "1000", stdout=subprocess.DEVNULL) for n in names]
        self.assertEqual([p.wait(120 * SLOW) for p in started], [0] * 20)
        self.assertEqual(sorted(self.guarded()), sorted([*names, "box"]))
        self.assertEqual(len({s["addresses"]["sandbox4"] for s in self.guarded().values()}), 21)
        r = self.engine.exec("many7", None, guests.PYTHON, "/inside_battery.py", "get", json.dumps({"url": "http://evil.lab.test/", "timeout": 20}))
        self.assertEqual(json.loads(r.stdout)[0], 403, r)
        gone = [self.engine.popen("rm", "-f", n, stdout=subprocess.DEVNULL) for n in names]
        self.assertEqual([p.wait(120 * SLOW) for p in gone], [0] * 20)
        self.assert_clean_but("box")

    def test_6_another_network(self):
        """dockerd gives a container of such a network no second network, because of its routes. The other way round it does, and no
        driver can refuse that: the driver warns of it."""
        self.engine("network", "create", "open")
        self.container("alone", "alone")
        for network in ("open", "others"):
            self.assert_refused("conflicts with existing route", "network", "connect", network, "alone")
        self.engine("rm", "-f", "alone")
        self.assert_clean_but("box")
        self.engine("run", "-d", "--name", "both", "--network", "open", self.engine.IMAGE, "/bin/sleep", "100000")
        self.engine("network", "connect", "--driver-opt", "vethguard.name=both", "agents", "both")
        self.assertTrue(wait_until(lambda: "both has another network: eth0 is not guarded" in self.driver.stderr(), 30 * SLOW),
                        self.driver.stderr())
        routes = self.engine.exec("both", None, "/bin/ip", "route").stdout
        self.assertIn("0.0.0.0/1 via 172.31.0.1", routes)
        self.engine("rm", "-f", "both")
        self.engine("network", "rm", "open")
        self.assert_clean_but("box")
        self.assertEqual(self.driver.stderr().count("has another network"), 1)

    def test_6_disconnected(self):
        """A container that runs leaves the network: it has no way out, before and after; and comes back guarded."""
        with test_exfiltration.Watch() as watch:
            self.engine("network", "disconnect", "agents", "agent")
            self.assertNotIn("box", self.guarded())
            self.assertIsInstance(self.get(timeout=3), str)
        self.assert_nothing_leaks(watch, allowed_flows=False)
        self.assert_clean_but()
        self.engine("network", "connect", "--driver-opt", "vethguard.name=box", "agents", "agent")
        self.env_file = support.LAB.write(f"{self.tag}.env", self.vethguard("env", "box", "--format", "docker"))
        self.assert_works()

    def test_7_dockerd_killed(self):
        """The container outlives it and stays guarded. The next dockerd ends it, and its guard with it."""
        pid = self.engine.inspect("agent", "{{.State.Pid}}")
        self.engine.kill_dockerd()
        with test_exfiltration.Watch() as watch:
            r = subprocess.run(["nsenter", "-t", pid, "-n", "-m", guests.PYTHON, "/inside_battery.py", "tries", json.dumps(
                {"evil4": EVIL4, "dns4": DNS4, "origin4": ORIGIN4, "origin6": ORIGIN6, "services": [], "neighbours": [], "macs": [],
                 "tag": self.tag + "d"})], capture_output=True, text=True)
        self.assertEqual(r.returncode, 0, r)
        self.assert_nothing_leaks(watch, allowed_flows=False)
        self.engine.start_dockerd()
        self.assert_clean_but()
        self.engine("start", "agent")
        self.env_file = type(self).env_file = support.LAB.write(f"{self.tag}.env", self.vethguard("env", "box", "--format", "docker"))
        self.assert_works()

    def test_8_dockerd_restarted(self):
        """An orderly restart: what is to run again is guarded again."""
        self.engine("update", "--restart", "always", "agent")
        self.engine.process.terminate()
        self.engine.process.wait()
        self.assert_clean_but()
        with test_exfiltration.Watch() as watch:
            self.engine.start_dockerd()
            self.assertTrue(wait_until(lambda: "box" in self.guarded(), 30 * SLOW))
        self.assert_nothing_leaks(watch, allowed_flows=False)
        self.env_file = support.LAB.write(f"{self.tag}.env", self.vethguard("env", "box", "--format", "docker"))
        self.assertTrue(wait_until(lambda: self.get()[0] == 200, 10 * SLOW))

    def test_9_left(self):
        """A pair whose network is gone, and a guard whose interface is gone."""
        state = self.driver.state + "/" + "cd" * 32 + ".json"
        with open(state, "w") as f:
            json.dump({"policy": "agent", "name": "left", "gateway4": "10.7.7.1/24", "gateway6": "", "ttl_s": 0, "observe": False,
                       "labels": {}, "vars": {}}, f)
        who = {"NetworkID": "cd" * 32, "EndpointID": "ef" * 32}
        create = {**who, "Interface": {"Address": "10.7.7.2/24"}, "Options": {"com.docker.network.endpoint.dnsservers": [NAME_SERVER]}}
        for gone in ("network", "interface"):
            with self.subTest(gone):
                self.assertEqual(self.driver.call("NetworkDriver.CreateEndpoint", create)[0], 200)
                self.assertEqual(self.driver.call("NetworkDriver.Join", who)[0], 200)
                self.assertIn("left-" + "ef" * 6, self.guarded())
                if gone == "interface":
                    sh("ip", "link", "del", "vgd" + "ef" * 6)
                else:
                    os.rename(state, state + ".away")
                self.assert_clean_but("box")
                if gone == "network":
                    os.rename(state + ".away", state)
        os.unlink(state)


class Forgotten(support.Case):
    """A dockerd that was killed does not remember the endpoint that it was about to make: nobody ever deletes that one."""

    def test_pairs_without_a_container(self):
        """One that was made, and one that was guarded as well. They are removed after two minutes, in which nothing leads anywhere."""
        policies = support.LAB.path(f"forgotten-{time.monotonic_ns()}")
        os.makedirs(policies)
        shutil.copy(support.LAB.write("forgotten.yaml", attached.NARROW), policies + "/narrow.yaml")
        daemon = Daemon()
        self.addCleanup(daemon.end)
        driver = Driver(daemon, policies)
        self.addCleanup(driver.stop)
        network = "ab" * 32
        with open(f"{driver.state}/{network}.json", "w") as f:
            json.dump({"policy": "narrow", "name": "lost", "gateway4": "10.7.8.1/24", "gateway6": "", "ttl_s": 0, "observe": False,
                       "labels": {}, "vars": {}}, f)
        for i, calls in enumerate((["CreateEndpoint", "Join"], ["CreateEndpoint"])):
            who = {"NetworkID": network, "EndpointID": f"{i}e" * 32}
            for call in calls:
                self.assertEqual(driver.call("NetworkDriver." + call, {**who, "Interface": {"Address": f"10.7.8.{i + 2}/24"}, "Options": {
                    "com.docker.network.endpoint.dnsservers": [NAME_SERVER]}})[0], 200, call)

        def own():
            return [n for n in links() if n[3:] in ("0e" * 6, "1e" * 6)]
        self.assertEqual(len(own()), 4)
        self.assertEqual([s["name"] for s in daemon.call("GET", "/v1/sandboxes")[2]["sandboxes"]], ["lost-" + "0e" * 6])
        self.assertTrue(wait_until(lambda: not own() and not daemon.call("GET", "/v1/sandboxes")[2]["sandboxes"], 60 * SLOW, 1),
                        (own(), driver.stderr()))
        self.assertNotIn("vgd" + "0e" * 6, sh("nft", "list", "ruleset"))


class LiveRestore(Faults):
    """dockerd is killed and its containers live on."""
    OPTIONS = ("--dns", DNS4, "--live-restore")

    def test_7_dockerd_killed(self):
        self.engine.kill_dockerd()
        self.engine.start_dockerd()
        self.assert_works()
        self.assert_clean_but("box")
        found = self.call("ask", server="127.0.0.11", name=f"restored.{self.tag}.evil.lab.test")
        self.assertIn(found[0], (0, 2, 3, 5), found)
        self.assertEqual([row for row in self.seen("dns") if "evil" in row["name"]], [])
        self.engine("rm", "-f", "agent")
        self.assert_clean_but()
        self.attach_again()


class Resolver(Network):
    """dockerd has no name server of its own, and the host's is one of the loopback: Docker's resolver asks it from the host's own
    network, where no guard is."""
    OPTIONS = ()
    ASKED = []

    @classmethod
    def make(cls):
        sh("mount", "--bind", support.LAB.write(f"{cls.tag}-resolv.conf", "nameserver 127.0.0.1\n"), os.path.realpath("/etc/resolv.conf"))
        cls.addClassCleanup(lambda: sh("umount", os.path.realpath("/etc/resolv.conf")))
        listener = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        listener.bind(("127.0.0.1", 53))
        cls.ASKED = []
        thread = threading.Thread(target=cls.serve, args=(listener,), daemon=True)
        thread.start()
        cls.addClassCleanup(thread.join, 5)
        cls.addClassCleanup(listener.sendto, b"", listener.getsockname())
        super().make()

    @classmethod
    def serve(cls, listener):
        """Notes the question and knows no name."""
        while True:
            data, peer = listener.recvfrom(1000)
            if not data:
                return
            cls.ASKED.append(data)
            listener.sendto(data[:2] + b"\x81\x83" + data[4:], peer)

    @classmethod
    def container(cls, name, sandbox=None, *options, **kw):
        super().container(name, sandbox, "--dns", NAME_SERVER, *options, **kw)

    def asked(self, word):
        return [a for a in self.ASKED if word.encode() in a]

    def test_it_leaks_elsewhere(self):
        """Control: on a network of Docker's own the question arrives at the host's resolver."""
        self.engine("network", "create", "plain")
        self.engine("run", "-d", "--name", "plain", "--network", "plain", self.engine.IMAGE, "/bin/sleep", "1000")
        self.engine.exec("plain", None, guests.PYTHON, "/inside_battery.py", "ask", json.dumps(
            {"server": "127.0.0.11", "name": "plainleak.evil.lab.test"}))
        self.assertTrue(self.asked("plainleak"))
        self.engine("rm", "-f", "plain")
        self.engine("network", "rm", "plain")

    def test_refused_without(self):
        r = subprocess.run(["docker", "run", "--rm", "--network", "agents", self.engine.IMAGE, "/bin/true"], env=self.engine.env,
                           capture_output=True, text=True)
        self.assertNotEqual(r.returncode, 0)
        self.assertIn("start the container with --dns", r.stderr)

    def test_with_a_server(self):
        """Nothing reaches the host's resolver, whatever is asked, and the guard answers."""
        for i, kind in enumerate((1, 28, 16, 33, 15, 65)):
            for tcp in (False, True):
                name = f"inner{i}{int(tcp)}.{self.tag}.evil.lab.test"
                self.call("ask", server="127.0.0.11", name=name, kind=kind, tcp=tcp)
                self.told(f"the question {kind}", DNS, action_id=2, **{"query.hostname": name})
        # dockerd 20.10 does not answer this question at all for a name that is not an address.
        self.inside(guests.PYTHON, "/inside_battery.py", "ask", json.dumps(
            {"server": "127.0.0.11", "name": f"inner-ptr.{self.tag}.evil.lab.test", "kind": 12}))
        self.assertEqual(self.asked("inner"), [])
        self.assert_works()


class Compose(Network):
    """contrib/docker/compose.yaml as it is."""
    COMMAND = ("docker", "compose")
    NAME = "^(agent-1|agents-[0-9a-f]{12})$"  # of the sandbox; Compose 2.26.1 does not pass on the option that names it

    @classmethod
    def setUpClass(cls):
        if not cls.plugin():
            raise unittest.SkipTest("there is no docker compose")
        super().setUpClass()

    @staticmethod
    def plugin():
        """Of the system, or the one that is named."""
        for path in (os.environ.get("VETHGUARD_COMPOSE"), "/usr/libexec/docker/cli-plugins/docker-compose",
                     "/usr/lib/docker/cli-plugins/docker-compose"):
            if path and os.path.exists(path):
                return path
        return None

    @classmethod
    def attach(cls, name="box"):
        super().attach(name)
        os.makedirs(cls.engine.dir + "/cli-plugins", exist_ok=True)
        if not os.path.exists(cls.engine.dir + "/cli-plugins/docker-compose"):
            os.symlink(cls.plugin(), cls.engine.dir + "/cli-plugins/docker-compose")

    def file(self):
        return os.path.join(lab.ROOT, "contrib/docker/compose.yaml")

    def compose(self, *argv):
        ca = support.LAB.path(f"{self.tag}-compose-ca.pem")
        if not os.path.exists(ca):
            with open(ca, "w") as f:
                f.write(self.vethguard("env", "box", "--format", "pem"))
        r = subprocess.run([*self.COMMAND, "-p", "project", "-f", self.file(), *argv], capture_output=True, text=True, timeout=120 * SLOW,
                           env={**self.engine.env, "AGENT_IMAGE": self.engine.IMAGE, "CA_FILE": ca})
        self.assertEqual(r.returncode, 0, r)
        return r.stdout

    def test_project(self):
        self.compose("up", "-d")
        name, = set(self.guarded()) - {"agents-other", "box"}
        self.assertRegex(name, self.NAME)
        self.assertEqual(self.guarded()[name]["labels"]["team"], "blue")
        variables = support.LAB.write(f"{self.tag}-1.env", self.vethguard("env", name, "--format", "docker"))
        container = self.engine("ps", "-q", "--filter", "label=com.docker.compose.service=agent")

        def curl(*argv):
            return self.engine.exec(container, variables, guests.CURL, "-sS", "-m", "30", "--cacert", "/etc/ssl/certs/vethguard.pem", *argv)
        r = curl(attached.WHOAMI)
        self.assertIn('"authenticated": true', r.stdout, r)
        self.assertEqual(curl("-o", "/dev/null", "-w", "%{http_code}", "https://evil.lab.test/").stdout, "403")
        self.assertEqual(curl("-o", "/dev/null", "-w", "%{http_code}", f"http://{lab.EVIL4}/").stdout, "403")
        self.compose("down")
        self.assertEqual(sorted(self.guarded()), ["agents-other", "box"])


class ComposeOne(Compose):
    """docker-compose 1.29, which knows no options of a service's network."""
    COMMAND = ("docker-compose",)
    NAME = "^agents-[0-9a-f]{12}$"

    @staticmethod
    def plugin():
        return shutil.which("docker-compose")

    def file(self):
        with open(super().file()) as f:
            text = re.sub(r"(?m)^        driver_opts:\n.*\n", "        {}\n", f.read(), count=1)
        return support.LAB.write(f"{self.tag}-compose.yaml", text)


class Page(page_case.PageCase):
    """docs/docker-network.md: every command of it, in its order, and the answers that it shows."""
    PAGE, PROGRAMS, LEAST = "docker-network.md", ("dockerd",), 10

    def test_every_command(self):
        engine = guests.Engine("docker", options=())
        self.addCleanup(engine.stop)
        engine("tag", engine.IMAGE, "my-image")
        self.cover_etc(engine.dir, "/etc/vethguard/policies")
        with open("/etc/vethguard/policies/agent.yaml", "w") as policy:
            policy.write(self.block("yaml"))
        self.write_key("/etc/vethguard/policies/key")
        daemon = Daemon()
        self.addCleanup(daemon.stop)
        driver = Driver(daemon, "/etc/vethguard/policies")
        self.addCleanup(driver.stop)
        self.run_page(self.folder(daemon), engine.env, daemon.stderr, driver.stderr)
        # `docker run --rm` ends before dockerd has removed its container.
        self.assertTrue(wait_until(lambda: not links(), 30 * SLOW), links())
        self.assert_clean(daemon.audit, driver.stderr_path)


for _kind in (Faults, LiveRestore, Resolver, Compose):
    for _name in [n for n in dir(attached.Guarded) if n.startswith("test_")]:
        setattr(_kind, _name, None)  # Battery has them
for _name in [n for n in dir(Faults) if n.startswith("test_") and n != "test_7_dockerd_killed"]:
    setattr(LiveRestore, _name, None)
del Network  # a base class, not a test
