# SPDX-License-Identifier: Apache-2.0
"""An OAuth 2.0 server that others have written: oauth2-mock-server of npm, in the folder of modules that VETHGUARD_OAUTH2_MODULES
names (npm install --prefix FOLDER oauth2-mock-server makes one)."""
import json
import os
import shutil
import unittest

import control_case
import node_server
import support
from support import policy

PORT = 8448
URL = f"https://login.wild.lab.test:{PORT}/token"
MODULES = os.environ.get("VETHGUARD_OAUTH2_MODULES", "")
RULE = "{to: 'https://api.lab.test', credential: api}"


@unittest.skipUnless(shutil.which("node") and os.path.isdir(os.path.join(MODULES, "oauth2-mock-server")),
                     "VETHGUARD_OAUTH2_MODULES names no folder with oauth2-mock-server")
class Server(node_server.WithServer, control_case.Control):
    SCRIPT, MODULES, ARGUMENTS = "oauth2_server.mjs", MODULES, (str(PORT),)

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.secret = support.LAB.write("real-client-secret", "client:secret&0123456789\n", 0o600)
        support.sh("openssl", "genrsa", "-out", support.LAB.path("real-key.pem"), "2048")

    def answers(self):
        return [json.loads(line) for line in self.lines() if line.startswith("{")]

    def gets(self, name, **source):
        """A request with the token that the server gave: what it logged, and what went out."""
        netns = self.namespace()
        source = {"oauth2": {"token_url": URL, "client_id": "agent one", **source}}
        written = support.LAB.write(name + ".yaml", policy(RULE, credentials=f"  api: {{source: {json.dumps(source)}, inject: bearer}}\n"))
        self.daemon.attach(netns=netns, policy=written, name=name)
        r = self.inside(name, netns, f"https://api.lab.test/{name}", "-w", "%{http_code}", "-o", "/dev/null")
        self.assertEqual(r.stdout, "200", self.daemon.stderr())
        sent = [v for r in self.seen("http", path=f"/{name}") for n, v in r["headers"] if n.lower() == "authorization"]
        self.assertEqual(sent, ["Bearer " + self.answers()[-1]["token"]])
        listed = self.call("GET", f"/v1/sandboxes/{name}/credentials")[2]["credentials"][0]
        self.assertEqual(listed["state"], "held")
        self.assertIsNotNone(listed["ends"])
        return self.answers()[-1]

    def test_client_credentials(self):
        got = self.gets("basic", client_secret="file:" + self.secret)
        self.assertEqual((got["grant"], got["basic"], got["assertion"]), ("client_credentials", True, False))
        got = self.gets("post", client_secret="file:" + self.secret, auth="post")
        self.assertEqual((got["grant"], got["basic"]), ("client_credentials", False))

    def test_a_signed_proof(self):
        got = self.gets("proof", private_key="file:" + support.LAB.path("real-key.pem"), key_id="key-7")
        self.assertEqual((got["grant"], got["basic"], got["assertion"]), ("client_credentials", False, True))

    def test_a_refresh_token(self):
        path = support.LAB.write("real-refresh", "a-first-refresh-token\n", 0o600)
        got = self.gets("refresh", refresh_token="file:" + path)
        self.assertEqual(got["grant"], "refresh_token")
        self.assertTrue(got["refresh"])
        with open(path) as f:
            self.assertEqual(f.read(), got["refresh"])

    def test_what_it_refuses(self):
        netns = self.namespace()
        source = {"oauth2": {"token_url": URL.replace("/token", "/nowhere"), "client_id": "a", "client_secret": "file:" + self.secret}}
        written = support.LAB.write("refuses.yaml", policy(RULE, credentials=f"  api: {{source: {json.dumps(source)}, inject: bearer}}\n"))
        self.daemon.attach(netns=netns, policy=written, name="refuses")
        self.assertEqual(self.inside("refuses", netns, "https://api.lab.test/never", "-w", "%{http_code}", "-o", "/dev/null").stdout, "502")
        self.assertEqual(self.seen("http", path="/never"), [])
        self.assertIn("it answered 404", self.daemon.stderr())
