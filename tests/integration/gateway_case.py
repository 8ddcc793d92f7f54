# SPDX-License-Identifier: Apache-2.0
"""What the tests of the gateway share: a daemon with a gateway, and a namespace elsewhere whose only way anywhere is the gateway's
address, as a provider's filter has it."""
import base64
import json
import os
import socket
import ssl
import subprocess
import time
import unittest

import support
from daemon import Daemon
from support import PACE, SLOW, file_credential, policy, sh, wait_until

GATEWAY4, CLIENT4, NETWORK4 = "10.77.0.1", "10.77.0.2", "10.77.0.0/24"
OTHER4 = "10.77.1.1"  # a second link of the same client: another address
TLS_PORT, PLAIN_PORT = 8443, 8080
RULES = ("{to: 'https://api.lab.test', methods: [GET], credential: api}", "http://plain.lab.test", "tcp://udp.lab.test:1234")
HANDSHAKE_S = 2


def make_certificate(path, name="gateway.lab.test", days=30):
    """A certificate of its own for the gateway; its files are written whole, under names that are there already."""
    fresh = path + ".fresh"
    sh("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", str(days),
       "-keyout", fresh + ".key", "-out", fresh + ".pem", "-subj", f"/CN={name}",
       "-addext", f"subjectAltName=DNS:{name},DNS:gateway.lab.test,IP:{GATEWAY4},IP:127.0.0.1")
    os.chmod(fresh + ".key", 0o600)
    os.rename(fresh + ".key", path + ".key")
    os.rename(fresh + ".pem", path + ".pem")


def basic(token, user="session"):
    return "Basic " + base64.b64encode(f"{user}:{token}".encode()).decode()


class Gatewayed(unittest.TestCase):
    """A daemon with a gateway, one session, and a sandbox elsewhere."""
    options = ""
    rules = RULES

    def setUp(self):
        self.elsewhere = support.netns(self, f"elsewhere{time.monotonic_ns()}")
        self.link()
        self.dir = support.LAB.path(f"gateway-{time.monotonic_ns()}")
        os.mkdir(self.dir, 0o755)
        self.certificate = os.path.join(self.dir, "gateway")
        make_certificate(self.certificate)
        self.policy = support.LAB.write(f"gateway-{time.monotonic_ns()}.yaml", policy(*self.rules, credentials=file_credential()))
        self.daemon = self.make_daemon()
        self.addCleanup(self.daemon.end)
        self.assertTrue(wait_until(self.listens, 10 * SLOW), self.daemon.stderr())
        self.token = self.create("one")["token"]
        self.ca = os.path.join(self.dir, "ca.pem")
        with open(os.path.join(self.daemon.data, "ca", "root.pem")) as f, open(self.ca, "w") as out:
            out.write(f.read())

    def link(self):
        """From the sandbox elsewhere to the gateway's host, which forwards nothing."""
        name = f"gw{time.monotonic_ns() % 10**9}"
        sh("ip", "link", "add", name, "type", "veth", "peer", "name", "eth0", "netns", self.elsewhere)
        self.addCleanup(subprocess.run, ["ip", "link", "del", name], check=False, stderr=subprocess.DEVNULL)
        sh("ip", "addr", "add", GATEWAY4 + "/24", "dev", name)
        sh("ip", "link", "set", name, "up")
        sh("ip", "-n", self.elsewhere, "addr", "add", CLIENT4 + "/24", "dev", "eth0")
        sh("ip", "-n", self.elsewhere, "link", "set", "eth0", "up")
        sh("ip", "-n", self.elsewhere, "link", "set", "lo", "up")

    def gateway(self):
        return (f"gateway:\n  listen: '{GATEWAY4}:{TLS_PORT}'\n  listen_plain: ['{GATEWAY4}:{PLAIN_PORT}', '127.0.0.1:{PLAIN_PORT}']\n"
                f"  plain_anywhere: true\n  certificate: {self.certificate}.pem\n  key: {self.certificate}.key\n"
                f"  name: gateway.lab.test\n  handshake: {HANDSHAKE_S}s\n{self.options}")

    def make_daemon(self):
        return Daemon(config=self.gateway())

    def listens(self):
        """This one, not that of a daemon that was killed just before."""
        try:
            self.connect().close()
            return True
        except OSError:
            return False

    def create(self, name, **members):
        status, _, answer = self.daemon.call("POST", "/v1/sessions", {"name": name, "policy": self.policy, **members})
        self.assertEqual(status, 201, (answer, self.daemon.stderr()))
        return answer

    def pid_of(self, program):
        return next((p for p, row in support.descendants(self.daemon.process.pid).items() if row[0] == program[:15]), None)

    # --- from elsewhere ---

    def there(self, *argv, **kw):
        return subprocess.run(["ip", "netns", "exec", self.elsewhere, *argv], capture_output=True, text=True, timeout=60 * SLOW, **kw)

    def curl(self, *argv, token=None, proxy=None, seconds=10):
        login = ("--proxy-user", f"session:{self.token if token is None else token}") if token != "" else ()
        return self.there("curl", "-sS", "-m", str(seconds * PACE), "--cacert", self.ca, "--proxy-cacert", self.certificate + ".pem",
                          "--proxy", proxy or f"https://{GATEWAY4}:{TLS_PORT}", *login, *argv)

    def asks(self, **kw):
        r = self.curl("https://api.lab.test/whoami", **kw)
        return r.returncode == 0 and json.loads(r.stdout).get("authenticated") is True

    def assert_served(self, why="", **kw):
        self.assertTrue(wait_until(lambda: self.asks(**kw), 10 * SLOW), f"{why} {self.daemon.stderr()}")

    def assert_unknown(self, why="", **kw):
        r = self.curl("-o", "/dev/null", "-w", "%{http_connect}", "https://api.lab.test/whoami", **kw)
        self.assertEqual((r.returncode != 0, r.stdout), (True, "407"), (why, r))

    # --- bytes, from the host itself ---

    def connect(self, tls=True, address=GATEWAY4, timeout=20 * SLOW, port=None):
        s = socket.create_connection((address, port or (TLS_PORT if tls else PLAIN_PORT)), timeout=timeout)
        self.addCleanup(s.close)
        if not tls:
            return s
        context = ssl.create_default_context(cafile=self.certificate + ".pem")
        s = context.wrap_socket(s, server_hostname="gateway.lab.test")
        self.addCleanup(s.close)
        return s

    def say(self, data, tls=False, **kw):
        """All that comes back until the end."""
        s = self.connect(tls, **kw)
        s.sendall(data)
        return self.rest(s)

    def tunnel(self, token=None):
        """A kept connection through the gateway, to plain.lab.test."""
        s = self.connect()
        proof = f"Proxy-Authorization: Bearer {token or self.token}\r\n"
        s.sendall(f"CONNECT plain.lab.test:80 HTTP/1.1\r\nHost: x\r\n{proof}\r\n".encode())
        self.assertTrue(self.head(s).startswith(b"HTTP/1.1 200"))
        return s

    @staticmethod
    def rest(s):
        out = b""
        try:
            while chunk := s.recv(65536):
                out += chunk
        except OSError:
            pass
        return out

    @staticmethod
    def head(s):
        out = b""
        while not out.endswith(b"\r\n\r\n"):
            byte = s.recv(1)
            if not byte:
                break
            out += byte
        return out

    def ask(self, proof, target="http://plain.lab.test/x", **kw):
        """The answer to one request in absolute form with this Proxy-Authorization (None: without)."""
        field = "" if proof is None else f"Proxy-Authorization: {proof}\r\n"
        return self.say(f"GET {target} HTTP/1.1\r\nHost: plain.lab.test\r\nConnection: close\r\n{field}\r\n".encode("latin-1"), **kw)
