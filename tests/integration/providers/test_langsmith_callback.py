# SPDX-License-Identifier: Apache-2.0
"""LangSmith's callbacks, from its SDK's side: what the player of test_gateway_callbacks sends is what the SDK's own verifier accepts, and
what the verifier refuses, the gateway refuses."""
import http.server
import json
import os
import subprocess
import threading
import time
import unittest

import support
from support import SLOW
from test_gateway_callbacks import URL, LangSmith
from test_providers import PACKAGES, needs_packages

VERIFY = """
import { SandboxTokenVerifier } from "langsmith/sandbox";
const { jwks, body, signature, aud } = JSON.parse(process.argv[2]);
try {
  const told = await new SandboxTokenVerifier({ jwksUrl: jwks }).verifyCallback({ body, signature, aud, issuer: "https://langsmith.lab.test" });
  console.log(JSON.stringify({ host: told.host, method: told.request?.method }));
} catch (error) {
  console.log(JSON.stringify({ refused: error.constructor.name }));
}
"""


@needs_packages
class Callbacks(LangSmith):
    def setUp(self):
        super().setUp()
        case = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                self.send_response(200)
                self.end_headers()
                with open(case.set, "rb") as f:
                    self.wfile.write(f.read())

            def log_message(self, *args):
                pass

        self.server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.addCleanup(self.server.server_close)
        self.addCleanup(self.server.shutdown)
        self.folder = support.LAB.path(f"callback-sdk-{time.monotonic_ns()}")
        os.mkdir(self.folder)
        os.symlink(PACKAGES, os.path.join(self.folder, "node_modules"))
        with open(os.path.join(self.folder, "verify.mjs"), "w") as f:
            f.write(VERIFY)

    def verified(self, body, signature, aud=URL):
        asked = json.dumps({"jwks": f"http://127.0.0.1:{self.server.server_port}/", "body": body.decode(), "signature": signature, "aud": aud})
        r = subprocess.run(["node", "verify.mjs", asked], cwd=self.folder, capture_output=True, text=True, timeout=60 * SLOW)
        self.assertEqual(r.returncode, 0, r)
        return json.loads(r.stdout)

    def test_the_sdk_says_the_same(self):
        body = self.body()
        now = int(time.time())
        good = self.sign(body)
        self.assertEqual(self.verified(body, good), {"host": "api.lab.test", "method": "GET"})
        self.assertEqual(self.code(self.post(body, good)), 200)
        for signature in (self.sign(body + b" "), self.sign(body, sub="user-123"), self.sign(body, exp=now - 120), self.sign(body, aud=[URL + "/"]),
                          self.sign(body, iss="https://x"), self.sign(body, body_sha256=None), self.sign(body, nbf=now + 300)):
            self.assertEqual(self.verified(body, signature), {"refused": "LangSmithSandboxTokenVerificationError"})
            self.assertEqual(self.code(self.post(body, signature)), 401)


for name in [n for n in vars(LangSmith) if n.startswith("test_")]:  # those run where no packages are needed
    setattr(Callbacks, name, None)

del LangSmith

if __name__ == "__main__":
    unittest.main()
