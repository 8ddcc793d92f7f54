# SPDX-License-Identifier: Apache-2.0
"""`vethguard attach --interface` with Docker's own bridges: two containers of one network, told apart by their ports, and
a whole bridge. The containers are those that Docker makes without being told of any guard."""
import json
import re
import shutil
import unittest

import attached
import guests
import support
import test_exfiltration
from lab import DNS4, EVIL4, ORIGIN4, ORIGIN6
from support import DNS, HTTP, SLOW, sh, wait_until

# A container's first program waits until the test says that its guard is there.
GATED = ["/bin/sh", "-c", 'until [ -e /run/guarded ]; do sleep 0.2; done; exec "$@"', "sh", "/bin/sleep", "100000"]


def port(engine, name):
    """The outer end of a container's eth0, found as docs/attach.md finds it."""
    index = engine("exec", name, "cat", "/sys/class/net/eth0/iflink")
    return re.search(rf"(?m)^{index}: ([^@:]+)", sh("ip", "-o", "link")).group(1)


class Bridge(attached.InEngine):
    NETWORK = None  # of Docker

    @classmethod
    def setUpClass(cls):
        if not shutil.which("docker"):
            raise unittest.SkipTest("docker is not installed")
        super().setUpClass()

    @classmethod
    def make(cls):
        cls.engine = guests.Engine("docker")
        cls.addClassCleanup(cls.engine.stop)
        cls.network()

    @classmethod
    def container(cls, name, *options):
        cls.engine("run", "-d", "--name", name, "--network", cls.NETWORK, *options, cls.engine.IMAGE, *GATED)

    @classmethod
    def network(cls):
        raise NotImplementedError

    @classmethod
    def place(cls, name):
        """(IPv4 address, MAC) of a container."""
        found = json.loads(cls.engine.inspect(name, "{{json .NetworkSettings.Networks}}"))[cls.NETWORK]
        return found["IPAddress"], found["MacAddress"]

    @classmethod
    def furnish(cls, name="agent"):
        """Sets CA and name server; then the container's own program may begin."""
        cls.trust(name)
        cls.engine("exec", name, "/bin/sh", "-c", "echo > /run/guarded")

    @classmethod
    def host_addresses(cls, name="agent"):
        """With the bridge's own."""
        networks = json.loads(cls.engine.inspect(name, "{{json .NetworkSettings.Networks}}"))
        return [*super().host_addresses(), networks[cls.NETWORK]["Gateway"]]

    def after_detach(self):
        """Detaching from an interface opens it: it is Docker's again, with the way out that Docker gives."""
        with test_exfiltration.Watch() as watch:
            self.assertRegex(self.get(timeout=10), "tls|CERTIFICATE|SSL")  # the origin's own certificate, not the guard's
        self.assertTrue(any(f[2] in (ORIGIN4, ORIGIN6) for f in watch.flows()))

    def test_5_ttl(self):
        """When the sandbox's time is over, its interface stays shut until somebody detaches it: nobody has asked to open it."""
        self.vethguard("detach", "box")
        self.vethguard("attach", *self.target(), "--policy", self.policy, "--name", "brief", "--ttl", "1s")
        self.assertTrue(wait_until(lambda: self.daemon.call("GET", "/v1/sandboxes/brief")[2]["state"] == "failed", 20 * SLOW))
        with test_exfiltration.Watch() as watch:
            self.assertIsInstance(self.get(timeout=3), str)
        self.assert_nothing_leaks(watch, allowed_flows=False)
        self.vethguard("detach", "brief")
        self.attach()
        self.assert_works()


class Control(Bridge):
    """Control: an unguarded container reaches everything that the guarded ones must not."""
    NETWORK = "bridge"

    @classmethod
    def network(cls):
        pass

    @classmethod
    def attach(cls, name="box"):
        pass

    def test_without_a_guard(self):
        self.container("naked")
        before = len(attached.SERVICES.seen)
        with test_exfiltration.Watch() as watch:
            r = self.engine.exec("naked", None, guests.PYTHON, "/inside_battery.py", "tries", json.dumps(
                {"evil4": EVIL4, "dns4": DNS4, "origin4": ORIGIN4, "origin6": ORIGIN6, "neighbours": [], "macs": [], "tag": "naked",
                 "services": [[a, attached.SERVICE_TCP, attached.SERVICE_UDP] for a in self.host_addresses("naked")]}))
        self.assertEqual(r.returncode, 0, r)
        found = json.loads(r.stdout)
        self.assertIn("banner", found["tcp"], found)
        self.assertIn(b"echo:".hex(), found["udp"][1], found)
        self.assertNotEqual(watch.flows(), {})
        self.assertNotEqual(self.seen("udp"), [])
        self.assertTrue(any("evil.lab.test" in row["name"] for row in self.seen("dns")))
        self.assertGreater(len(attached.SERVICES.seen), before)


for _name in [n for n in dir(attached.Guarded) if n.startswith("test_")] + ["test_5_ttl"]:
    setattr(Control, _name, None)  # of the battery it has this one test


class Port(Bridge):
    """One port of a user-defined network, where Docker's resolver at 127.0.0.11 answers; its neighbor has a guard of
    its own with another policy, and a third container none."""
    NETWORK = "agents"

    @classmethod
    def network(cls):
        cls.engine("network", "create", cls.NETWORK)
        for name in ("agent", "other", "third"):
            cls.container(name)
        for name in ("other", "third"):
            cls.listener(name)
        cls.neighbours = [cls.place(name)[0] for name in ("other", "third")]
        cls.neighbour_macs = [cls.place(name)[1] for name in ("other", "third")]

    @classmethod
    def target(cls):
        return ["--interface", port(cls.engine, "agent"), "--address", cls.place("agent")[0]]

    @classmethod
    def attach(cls, name="box"):
        super().attach(name)
        if cls.daemon.call("GET", "/v1/sandboxes/other")[0] == 404:
            cls.vethguard("attach", "--interface", port(cls.engine, "other"), "--address", cls.place("other")[0],
                          "--policy", cls.narrow, "--name", "other")

    def test_1_taken(self):
        r = self.daemon.cli("attach", *self.target(), "--policy", self.narrow, "--name", "again")
        self.assertEqual(r.returncode, 1, r)
        self.assertRegex(r.stderr, r"interface veth\w+ already belongs to sandbox box")
        self.assert_works()

    def test_1_told_apart(self):
        """Each by its own policy."""
        self.assertEqual(self.get()[0], 200)
        self.assertEqual(self.get("https://www.lab.test/")[0], 403)
        ca = support.LAB.write("other-ca.pem", self.vethguard("env", "other", "--format", "pem"))
        self.engine("cp", ca, "other:/ca.pem")
        for url, status in ((attached.WHOAMI, "403"), ("https://www.lab.test/", "200")):
            r = self.engine.exec("other", None, guests.CURL, "-sS", "-m", "30", "-o", "/dev/null", "-w", "%{http_code}",
                                 "--cacert", "/ca.pem", url)
            self.assertEqual(r.stdout, status, r)
        self.told("the neighbour's", HTTP, action_id=2, **{"http_request.url.hostname": "api.lab.test"})

    def test_2_every_way_out(self):
        super().test_2_every_way_out()
        for name in ("other", "third"):
            self.assertEqual(self.came(name), "ready\n", f"the container {name} was reached")

    def test_2_dockers_resolver(self):
        """Docker's resolver asks upstream from the container's own namespace, so the guard answers; it resolves names of containers itself."""
        found = self.call("ask", server="127.0.0.11", name=f"embedded.{self.tag}.evil.lab.test")
        self.assertIn(found[0], (0, 2, 3, 5), found)
        self.told("the question", DNS, action_id=2, **{"query.hostname": f"embedded.{self.tag}.evil.lab.test"})
        self.assertEqual(self.seen("dns"), [])


class Whole(Bridge):
    """docker0 with all of its ports: one sandbox."""
    NETWORK = "bridge"

    @classmethod
    def network(cls):
        pass

    @classmethod
    def target(cls):
        return ["--interface", "docker0"]

    @classmethod
    def furnish(cls, name="agent"):
        """The first container starts when its guard is there already."""
        if name not in cls.engine("ps", "-a", "--format", "{{.Names}}").split():
            cls.container(name)
        super().furnish(name)
        # Docker gives it the daemon's name server, whose questions the guard answers.

    def test_1_two_containers(self):
        """Both under the same policy; among themselves the bridge carries what it always did."""
        self.container("second")
        address = self.place("second")[0]
        self.listener("second")
        super().furnish("second")
        r = self.engine.exec("second", self.env_file, guests.CURL, "-sS", "-m", "30", attached.WHOAMI)
        self.assertIn('"authenticated": true', r.stdout, r)
        self.call("datagrams", address=address, port=4446)
        self.assertTrue(wait_until(lambda: "udp from" in self.came("second"), 10 * SLOW), self.came("second"))
        self.engine("rm", "-f", "second")

del Bridge  # a base class, not a test
