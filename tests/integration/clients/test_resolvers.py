# SPDX-License-Identifier: Apache-2.0
"""Resolvers inside other than glibc's, with a search list: musl's and Go's. Name servers outside, with answers longer than a datagram: dnsmasq
and unbound."""
import os
import shutil
import socket
import subprocess
import time
import unittest

import support
import test_names
from lab import DNS4, sh
from support import policy

COUNT = 120  # addresses of the name
NET = "10.99.3"


class SearchList(test_names.Searched):
    def built(self, source, name, *command):
        """A program of that source, by a compiler outside."""
        path = support.LAB.path(name)
        with open(path + source, "w") as f:
            f.write(test_names.GO_CLIENT if source == ".go" else test_names.C_CLIENT)
        subprocess.run([*command, path, path + source], check=True, env={"HOME": support.LAB.dir, "PATH": "/usr/bin:/bin", "CGO_ENABLED": "0"})
        return path

    @unittest.skipUnless(shutil.which("musl-gcc"), "musl-gcc is not installed")
    def test_musl(self):
        self.reaches(self.built(".c", "by-musl", "musl-gcc", "-static", "-o"))

    def test_glibc(self):
        self.reaches(self.built(".c", "by-glibc", "gcc", "-o"))

    @unittest.skipUnless(shutil.which("go"), "go is not installed")
    def test_go(self):
        self.reaches(self.built(".go", "by-go", "go", "build", "-o"))


class NameServers(support.Case):
    @classmethod
    def setUpClass(cls):
        """Every address of a network is this one server's."""
        sh("ip", "-n", "outside", "route", "add", "local", NET + ".0/24", "dev", "lo")
        cls.folder = support.LAB.path("served")
        os.makedirs(cls.folder, exist_ok=True)
        with open(cls.folder + "/many", "w") as f:
            f.write("by many")
        cls.web = support.LAB.spawn_outside(["python3", "-m", "http.server", "--directory", cls.folder, "8099"],
                                            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    @classmethod
    def tearDownClass(cls):
        cls.web.terminate()
        cls.web.wait()
        sh("ip", "-n", "outside", "route", "del", "local", NET + ".0/24", "dev", "lo")

    def reaches(self, *command):
        server = support.LAB.spawn_outside(list(command), stderr=subprocess.DEVNULL)
        try:
            self.assertTrue(support.wait_until(lambda: self.answers()))
            config = support.LAB.write("name-server.yaml", support.LAB.config().replace(f"[{DNS4}]", f"['{DNS4}:5353']"))
            box = self.sandbox(policy("http://many.lab.test:8099"), config=config)
            self.assertEqual(box.sh("curl -sS -m 30 http://many.lab.test:8099/many").out, "by many")
        finally:
            server.terminate()
            server.wait()

    def answers(self):
        """It serves, and has more to say than a datagram holds."""
        name = b"\4many\3lab\4test\0\0\1\0\1"
        opt = b"\0\0\x29\x04\xd0" + bytes(6)
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
            s.settimeout(0.5)
            s.connect((DNS4, 5353))
            try:
                s.send(b"ab\1\0\0\1\0\0\0\0\0\1" + name + opt)
                answer = s.recv(4096)
            except OSError:
                time.sleep(0.1)
                return False
        self.assertTrue(answer[2] & 2, "not truncated: the test would show nothing")
        return True

    @unittest.skipUnless(shutil.which("dnsmasq"), "dnsmasq is not installed")
    def test_dnsmasq(self):
        hosts = support.LAB.write("many-hosts", "".join(f"{NET}.{i} many.lab.test\n" for i in range(1, COUNT + 1)))
        self.reaches("dnsmasq", "--keep-in-foreground", "--conf-file=/dev/null", "--no-resolv", "--no-hosts", "--port=5353", "--user=root",
                     "--bind-interfaces", f"--listen-address={DNS4}", f"--addn-hosts={hosts}", "--pid-file=")

    @unittest.skipUnless(shutil.which("unbound"), "unbound is not installed")
    def test_unbound(self):
        data = "".join(f'  local-data: "many.lab.test. 60 A {NET}.{i}"\n' for i in range(1, COUNT + 1))
        config = support.LAB.write("unbound.conf", f"""server:
  interface: {DNS4}
  port: 5353
  access-control: 0.0.0.0/0 allow
  do-daemonize: no
  use-syslog: no
  chroot: ""
  username: ""
  pidfile: ""
  directory: "{self.folder}"
  num-threads: 1
  local-zone: "lab.test." static
{data}remote-control:
  control-enable: no
""")
        self.reaches("unbound", "-d", "-c", config)
