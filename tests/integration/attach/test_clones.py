# SPDX-License-Identifier: Apache-2.0
"""Clones of one snapshot of a virtual machine, each behind a prepared tap of the same name, MAC and addresses: QEMU, whose snapshot is
a migration to a file. What the template had open is reset, what it had resolved still holds, and its placeholder works."""
import json
import os
import shutil
import unittest

import guests
import support
from daemon import Daemon
from support import HTTP, PYTHON, SLOW, sh, wait_until

MAC, GATE4, GATE6, BOX4, BOX6 = "02:76:67:00:00:02", "198.18.0.1", "fd76:6574:6867::1", "198.18.0.2", "fd76:6574:6867::2"
POLICY = """vethguard: 1
name: clones
credentials:
  key: {source: 'file:%s', inject: bearer, env: LAB_KEY}
allow:
  - {name: api, to: https://api.lab.test, methods: [GET], credential: key}
"""
# One connection to the address that the name had at first; after an error another one to the same address.
CLIENT = """
import http.client, os, socket, ssl, time
address = socket.getaddrinfo("api.lab.test", 443, socket.AF_INET)[0][4]
context = ssl.create_default_context(cafile="/etc/ssl/certs/vethguard.pem")
log = open("/run/log", "a", buffering=1)
connection = None
while True:
    try:
        if connection is None:
            connection = http.client.HTTPSConnection("api.lab.test", context=context)
            connection.sock = context.wrap_socket(socket.create_connection(address, timeout=60), server_hostname="api.lab.test")
            log.write("connected\\n")
        connection.request("GET", "/whoami", headers={"Authorization": "Bearer " + os.environ["LAB_KEY"]})
        response = connection.getresponse()
        log.write(f"{response.status} {response.read().decode().strip()}\\n")
    except (OSError, http.client.HTTPException) as e:
        log.write("reset\\n" if isinstance(e, ConnectionResetError) else f"{type(e).__name__}\\n")
        connection = None
    time.sleep(0.5)
"""


class Clones(unittest.TestCase):
    PREFIX = "clone"

    def setUp(self):
        for program in ("qemu-system-x86_64", "cpio", "modinfo"):
            if not shutil.which(program):
                self.skipTest(program + " is not installed")
        if guests.kernel() is None:
            self.skipTest("there is no kernel for it; see mk/install-kernel")
        self.policy = support.LAB.write("clones.yaml", POLICY % support.LAB.path("secret"))
        self.daemon = Daemon()
        self.addCleanup(self.take_away)
        self.addCleanup(self.daemon.stop)
        self.cli("prepare", "--count", "3", "--addresses", "same", "--tap", "tap0", "--prefix", self.PREFIX)

    def take_away(self):
        for name in os.listdir("/run/netns"):
            if name.startswith(self.PREFIX + "-"):
                sh("ip", "netns", "del", name)

    def cli(self, *argv):
        r = self.daemon.cli(*argv)
        self.assertEqual(r.returncode, 0, r.stderr + self.daemon.stderr())
        return r.stdout

    def claim(self, name, number, *more):
        self.cli("claim", name, "--policy", self.policy, "--netns", f"/run/netns/{self.PREFIX}-{number}", *more)

    def template(self):
        machine = guests.Machine("tap0", BOX4 + "/30", BOX6 + "/126", GATE4, GATE6, netns=self.PREFIX + "-1", mac=MAC)
        self.addCleanup(machine.stop)
        guests.say("the machines run by " + machine.accelerator)
        pem = self.cli("env", "golden", "--format", "pem")
        for path, text in (("/etc/resolv.conf", f"nameserver {GATE4}\n"), ("/etc/ssl/certs/vethguard.pem", pem)):
            machine.run(["/bin/sh", "-c", 'cat > "$0"', path], input=text)
        return machine

    @staticmethod
    def log(machine):
        return machine.run(["/bin/sh", "-c", "cat /run/log"]).stdout.splitlines()

    def test_two_of_one_snapshot(self):
        self.claim("golden", 1)
        template = self.template()
        env = dict(v.values() for v in self.daemon.call("GET", "/v1/sandboxes/golden/env")[2]["variables"])
        template.run([PYTHON, "-c", CLIENT], env=env, background=True)
        served = "200 " + json.dumps({"authenticated": True, "method": "GET"})
        self.assertTrue(wait_until(lambda: self.log(template).count(served) >= 2, 60 * SLOW, 1), self.log(template))
        self.assertEqual([line for line in self.log(template) if line != served], ["connected"])
        before = len(self.log(template))
        template.snapshot()
        self.assertEqual(self.daemon.call("POST", "/v1/sandboxes/golden/pause", {"reason": "the template"})[0], 200)
        clones = {}
        for number, name in ((2, "one"), (3, "two")):
            clones[name] = template.clone(f"{self.PREFIX}-{number}")
            self.addCleanup(clones[name].stop)
            self.claim(name, number, "--like", "golden")
            clones[name].resume()
        for name, machine in clones.items():
            since = lambda: self.log(machine)[before:]  # noqa: B023, E731
            self.assertTrue(wait_until(lambda: since()[-1:] == [served] and "connected" in since(), 60 * SLOW, 1), self.log(machine))  # noqa: B023
            self.assertEqual([line for line in since() if line != served], ["reset", "connected"])
            self.assertTrue(self.daemon.event(HTTP, **{"device.name": name}), name)
            refused = machine.run(["/usr/bin/curl", "-sS", "-o", "/dev/null", "-w", "%{http_code}", "--cacert", "/etc/ssl/certs/vethguard.pem",
                                   "https://evil.lab.test/"], env={})
            self.assertIn(refused.stdout, ("403", "000"), refused)
        self.cli("release", "one", "two", "--tap", "tap0", "--prefix", self.PREFIX)
        self.assertEqual(len(self.daemon.call("GET", "/v1/prepared")[2]["prepared"]), 2)


if __name__ == "__main__":
    unittest.main()
