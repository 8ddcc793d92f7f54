# SPDX-License-Identifier: Apache-2.0
"""`vethguard attach --container` with a real dockerd and a real Podman: containers that were started without a network."""
import shutil
import socket
import subprocess
import unittest

import attached
import guests
import support
from support import SLOW, wait_until


class Container(attached.Guarded):
    """What both engines have in common."""
    ENGINE = None

    @classmethod
    def setUpClass(cls):
        if not shutil.which(cls.ENGINE):
            raise unittest.SkipTest(cls.ENGINE + " is not installed")
        super().setUpClass()

    @classmethod
    def make(cls):
        """Two containers: one for the battery and one that it must not reach, which has a guard too."""
        cls.engine = guests.Engine(cls.ENGINE)
        cls.addClassCleanup(cls.engine.stop)
        cls.engine.run("agent", "--network", "none")
        cls.engine.run("other", "--network", "none")

    @classmethod
    def engine_env(cls):
        return cls.engine.env

    @classmethod
    def target(cls):
        return ["--container", "agent"]

    @classmethod
    def furnish(cls):
        names = [s["name"] for s in cls.daemon.call("GET", "/v1/sandboxes")[2]["sandboxes"]]
        if "other" not in names:
            cls.vethguard("attach", "--container", "other", "--policy", cls.policy, "--name", "other")
            out = cls.engine.exec("other", None, guests.PYTHON, "/inside_battery.py", "link").stdout
            cls.neighbour_mac = guests.json.loads(out)[1]
            cls.listener = cls.engine.popen("exec", "other", guests.PYTHON, "/inside_battery.py", "listen",
                                            '{"out": "/tmp/came", "tcp_port": 4445, "udp_port": 4446}', stderr=subprocess.DEVNULL)
            cls.addClassCleanup(cls.listener.wait)
            cls.addClassCleanup(cls.listener.kill)
            assert wait_until(lambda: cls.came() == "ready\n", 10 * SLOW), cls.came()

    @classmethod
    def came(cls):
        return cls.engine.exec("other", None, "/bin/cat", "/tmp/came").stdout

    @classmethod
    def inside(cls, *argv, env_file=None):
        return cls.engine.exec("agent", env_file, *argv)

    def test_2_every_way_out(self):
        """Two of them have the same address, each in a network of its own; so the other one is addressed by its MAC too."""
        self.neighbour_macs = [self.neighbour_mac]
        super().test_2_every_way_out()
        self.assertEqual(self.came(), "ready\n", "the other container was reached")


class Exposed(Container):
    """A program of a container, which this machine talks to by an exposed port, and no other container."""

    ENTRY = "{port: 8000, from: [host], at: '127.0.0.1:18099'}"
    SERVER = ("import socket; s = socket.create_server(('0.0.0.0', 8000)); print('ready', flush=True)\n"
              "while True: c, a = s.accept(); c.sendall(a[0].encode()); c.close()")

    def test_8_exposed(self):
        policy = support.LAB.write(f"exposed-{self.ENGINE}.yaml", f"vethguard: 1\nexpose: [{self.ENTRY}]\n")
        self.engine.run("exposed", "--network", "none")
        server = self.engine.popen("exec", "exposed", guests.PYTHON, "-c", self.SERVER, stdout=subprocess.PIPE)
        self.addCleanup(server.wait)
        self.addCleanup(server.kill)
        self.addCleanup(server.stdout.close)
        self.assertEqual(server.stdout.readline().strip(), b"ready")
        if self.daemon.process.poll() is not None:
            self.daemon.start()
        self.assertEqual(self.ask(), b"")
        r = self.daemon.cli("attach", "--container", "exposed", "--policy", policy, env=self.engine_env())
        self.assertEqual(r.returncode, 0, r)
        self.assertTrue(wait_until(lambda: self.ask() == b"198.18.0.1", 10 * SLOW), self.daemon.stderr())
        self.assertTrue(self.daemon.event(support.NETWORK, action_id=1, **{"connection_info.direction_id": 1, "device.name": "exposed"}))
        self.engine("rm", "-f", "exposed")
        self.assertTrue(wait_until(lambda: self.daemon.call("GET", "/v1/sandboxes/exposed")[0] == 404, 20 * SLOW))
        self.assertEqual(self.ask(), b"")

    def ask(self):
        try:
            with socket.create_connection(("127.0.0.1", 18099), timeout=5 * SLOW) as s:
                return s.recv(100)
        except OSError:
            return b""


class Docker(Exposed):
    ENGINE = "docker"

    def test_0_refused(self):
        """Containers that cannot be guarded are not attached: a container with a network, one that is not there, one that does not run."""
        self.engine.run("open", "--network", "bridge")
        self.engine("create", "--name", "created", "--network", "none", self.engine.IMAGE, "/bin/true")
        for name, words in (("open", "--network none"), ("nobody", "no container nobody"), ("created", "start it first")):
            r = self.daemon.cli("attach", "--container", name, "--policy", self.policy, env=self.engine_env())
            self.assertEqual(r.returncode, 2, r)
            self.assertIn(words, r.stderr)
        self.engine("rm", "-f", "open", "created")

    def test_7_restarted(self):
        """When a container ends, its sandbox ends; when it starts again it has no network until somebody attaches again."""
        self.daemon.start()
        self.attach()
        self.assert_works()
        self.engine("restart", "-t", "0", "agent")
        self.assertTrue(wait_until(lambda: self.daemon.call("GET", "/v1/sandboxes/box")[0] == 404, 20 * SLOW))
        self.assertIsInstance(self.get(timeout=3), str)
        self.attach()
        self.assert_works()
        self.vethguard("detach", "box")


class Podman(Exposed):
    ENGINE = "podman"


del Container, Exposed  # base classes, not tests
