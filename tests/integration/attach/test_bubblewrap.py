# SPDX-License-Identifier: Apache-2.0
"""`vethguard attach --listen`: bubblewrap's sandbox, which has no network card, with a Unix socket as its only way out. Root in there
has every capability over its own namespaces."""
import json
import os
import subprocess

import attached
import support
from lab import EVIL4
from support import DNS, HTTP, NETWORK, SECRET, SLOW, wait_until

# The socket becomes the proxy port of the sandbox's own loopback, as docs/sockets.md has it.
BRIDGE = """
ip link set lo up 2>/dev/null
socat TCP-LISTEN:3128,bind=127.0.0.1,fork,reuseaddr UNIX-CONNECT:%s 2>/dev/null & bridge=$!
until socat -u OPEN:/dev/null TCP:127.0.0.1:3128 2>/dev/null; do sleep 0.05; done
export https_proxy=http://127.0.0.1:3128 HTTPS_PROXY=http://127.0.0.1:3128 http_proxy=http://127.0.0.1:3128
"$@"
status=$?
kill $bridge
exit $status
"""
# Requests to the proxy, and traffic past it, for which the sandbox has no route.
BY_PROXY = ("https", "http", "method", "raw http", "metadata")


class Bubblewrap(attached.Guarded):
    @classmethod
    def make(cls):
        cls.dir = support.LAB.path("bubblewrap")
        os.makedirs(cls.dir, exist_ok=True)
        cls.path = os.path.join(cls.dir, "out.sock")
        cls.bundle = cls.ca = os.path.join(cls.dir, "ca.pem")

    @classmethod
    def target(cls):
        return ["--listen", cls.path]

    @classmethod
    def furnish(cls):
        with open(cls.ca, "w") as f:
            f.write(cls.vethguard("env", "box", "--format", "pem"))

    @classmethod
    def program(cls):
        return attached.guests.PROGRAM

    @classmethod
    def inside(cls, *argv, env_file=None):
        env = {k: v for k, v in os.environ.items() if not k.lower().endswith("_proxy")}
        with open(env_file) as f:
            env.update(line.rstrip("\n").split("=", 1) for line in f)
        return subprocess.run(["bwrap", "--unshare-all", "--uid", "0", "--gid", "0", "--cap-add", "ALL", "--die-with-parent", "--ro-bind", "/", "/",
                               "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/run", "--ro-bind", cls.dir, cls.dir, "sh", "-c", BRIDGE % cls.path,
                               "sh", *argv], env=env, capture_output=True, text=True, timeout=120 * SLOW)

    def test_0_what_it_has(self):
        r = self.inside("ip", "-o", "link", env_file=self.env_file)
        self.assertEqual([line.split()[1] for line in r.stdout.splitlines()], ["lo:"], r)
        r = self.inside("grep", "CapEff", "/proc/self/status", env_file=self.env_file)
        self.assertGreater(int(r.stdout.split()[1], 16), 1 << 36, r)
        self.assertEqual(self.info()["attachment"]["listen"], self.path)

    def test_1_allowed(self):
        self.assertNotIn(SECRET, open(self.env_file).read())
        self.assert_works()
        r = self.inside("/usr/bin/curl", "-sS", "-m", "30", attached.WHOAMI, env_file=self.env_file)
        self.assertIn('"authenticated": true', r.stdout, (r, self.daemon.stderr()[-2000:]))
        rows = self.seen("http")
        self.assertEqual([{k.lower(): v for k, v in r["headers"]}["authorization"] for r in rows], ["Bearer " + SECRET] * 2)
        self.told("the request", HTTP, action_id=1, **{"http_request.url.path": "/whoami", "src_endpoint.name": self.path})

    def refused(self, found):
        self.assertIn("403", found["https"])  # CONNECT was
        for name in ("http", "method", "raw http", "metadata"):
            self.assertEqual(found[name][0], 403, (name, found[name]))
            self.assertIn("urn:vethguard:problem:denied", found[name][1])
        for name, result in found.items():
            with self.subTest(attempt=name):
                text = json.dumps(result)
                for word in ("banner", "service", "listener", b"VGLEAK".hex()):
                    self.assertNotIn(word, text)
                if name not in BY_PROXY:  # no packet was sent at all
                    self.assertTrue(isinstance(result, str) or result[0] == 0, result)

    def logged(self, found):
        """Every request is, and there is nothing else that could be."""
        def denied(host):
            return [e for e in self.daemon.events(HTTP) if e["action_id"] == 2 and e["http_request"]["url"].get("hostname") == host]
        for host, count in (("evil.lab.test", 2), (EVIL4, 1), ("169.254.169.254", 1)):
            self.assertTrue(wait_until(lambda: len(denied(host)) >= count, 10 * SLOW), (host, denied(host), found))
        self.told("the method", HTTP, action_id=2, **{"http_request.http_method": "POST", "http_request.url.hostname": "api.lab.test"})
        self.assertEqual(self.daemon.events(DNS), [])
        self.assertEqual([e for e in self.daemon.events(NETWORK) if e["disposition_id"] == 6], [])

    def test_4_another_policy(self):
        self.vethguard("reload", "box", "--policy", self.narrow)
        self.assertIn("403", self.get())  # CONNECT was refused
        self.assertEqual(self.get("https://www.lab.test/")[0], 200)
        self.vethguard("reload", "box", "--policy", self.policy)
        self.assert_works()
        self.assertEqual(self.info()["policy"]["generation"], 3)

    def after_detach(self):
        super().after_detach()
        self.assertEqual(os.listdir(self.dir), ["ca.pem"])
        for part in ("sandboxes", "netns", "names"):
            self.assertEqual(os.listdir(os.path.join(self.daemon.state, part)), [], part)
