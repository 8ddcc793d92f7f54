# SPDX-License-Identifier: Apache-2.0
"""Code in a browser, by base URLs: a page of Chromium, isolated as WebContainers need it, whose worker reaches APIs through the gateway.
WebContainers themselves start from their maker's servers, and were not run."""
import json
import os
import re
import shutil
import subprocess
import unittest

import lab
import support
from gateway_case import GATEWAY4, TLS_PORT
from support import HTTP, SECRET, SLOW, sh, wait_until
from test_providers import OUTSIDE, Provided

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "browser")
PAGE_PORT = 9300
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync", "--disable-default-apps", "--no-default-browser-check", "--disable-dev-shm-usage",
         f"--host-resolver-rules=MAP gateway.lab.test {GATEWAY4}"]
HOST = f"gateway.lab.test:{TLS_PORT}"


@unittest.skipUnless(shutil.which("chromium") and shutil.which("certutil"), "needs chromium and certutil")
class Page(Provided):
    rules = ("{to: 'https://api.lab.test', methods: [GET, POST], credential: api}", "https://www.lab.test")

    def setUp(self):
        super().setUp()
        self.folder = os.path.join(self.dir, "page")
        shutil.copytree(HERE, self.folder)
        self.home = os.path.join(self.dir, "home")
        database = os.path.join(self.home, ".pki", "nssdb")
        os.makedirs(database)
        sh("certutil", "-N", "-d", "sql:" + database, "--empty-password")
        sh("certutil", "-A", "-d", "sql:" + database, "-n", "gateway", "-t", "C,,", "-i", self.certificate + ".pem")
        # Chromium asks the system where its user lives.
        with open("/etc/passwd") as f:
            users = re.sub(r"^(root:.*):[^:]*:([^:]*)$", rf"\1:{self.home}:\2", f.read(), flags=re.M)
        sh("mount", "--bind", support.LAB.write("browser-passwd", users), "/etc/passwd")
        self.addCleanup(sh, "umount", "/etc/passwd")
        self.serve()

    def serve(self):
        server = subprocess.Popen(["ip", "netns", "exec", self.elsewhere, support.PYTHON, os.path.join(HERE, "serve.py"), self.folder, str(PAGE_PORT)],
                                  stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.addCleanup(server.stdout.close)
        self.addCleanup(server.wait)
        self.addCleanup(server.kill)
        self.assertEqual(server.stdout.readline(), b"ready\n")

    def base(self, url, scheme="https", token=None):
        upstream, _, rest = url.partition("://")
        return f"{scheme}://{HOST}/s/{token or self.token}/{upstream}/{rest}"

    def load(self, **tries):
        """What became of each: {status, text} or {error}."""
        with open(os.path.join(self.folder, "tries.json"), "w") as f:
            json.dump(tries, f)
        answer, profile = os.path.join(self.folder, "out.json"), os.path.join(self.dir, "profile")
        for path in (answer, profile):
            shutil.rmtree(path) if os.path.isdir(path) else os.path.exists(path) and os.remove(path)
        with open(os.path.join(self.dir, "chromium.log"), "wb") as log:
            chromium = subprocess.Popen(["ip", "netns", "exec", self.elsewhere, "chromium", *FLAGS, "--user-data-dir=" + profile,
                                         f"http://localhost:{PAGE_PORT}/page.html"], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                        env={"PATH": os.environ["PATH"], "HOME": self.home, "DBUS_SESSION_BUS_ADDRESS": "disabled:"})
        try:
            self.assertTrue(wait_until(lambda: os.path.exists(answer), 60 * SLOW), log.name)
        finally:
            chromium.terminate()
            chromium.wait()
        with open(answer) as f:
            text = f.read()
        self.assertNotIn(SECRET, text)
        page = json.loads(text)
        self.assertEqual((page.get("isolated"), page.get("shared")), (True, 8), page)
        return page["out"]

    def test_page(self):
        self.open_before()
        self.fence((GATEWAY4, TLS_PORT))
        api, www, evil = "https://api.lab.test", "https://www.lab.test", "https://evil.lab.test"
        asks = {"Content-Type": "application/json", "X-Stainless-Lang": "js", "Authorization": "Bearer placeholder"}  # asked for by a preflight
        out = self.load(
            allowed={"url": self.base(api + "/whoami")},
            upload={"url": self.base(api + "/v1/messages"), "method": "POST", "headers": asks, "body": "x" * 100000},
            events={"url": self.base(api + "/events"), "kind": "events"},
            websocket={"url": self.base(www + "/ws", "wss"), "kind": "websocket", "body": "hello"},
            method={"url": self.base(api + "/x"), "method": "DELETE"},
            host={"url": self.base(evil + "/stolen")},
            port={"url": self.base(api + ":8443/stolen")},
            address={"url": self.base(f"http://{lab.EVIL4}/stolen")},
            token={"url": self.base(api + "/whoami", token="A" * 43)},
            refused_websocket={"url": self.base(evil + "/ws", "wss"), "kind": "websocket", "body": "stolen"},
            direct={"url": OUTSIDE + "stolen", "seconds": 5},
            direct_tls={"url": f"https://{lab.ORIGIN4}/stolen", "seconds": 5},
        )
        self.assertIs(json.loads(out["allowed"]["text"])["authenticated"], True, out)
        self.assertEqual((out["upload"]["status"], json.loads(out["upload"]["text"])["body"]), (200, 100000), out)
        self.assertEqual(out["events"], {"status": 200, "text": "0,1,2,3,4"}, out)
        self.assertEqual(out["websocket"], {"status": 101, "text": "hello"}, out)
        for name, code in (("method", 403), ("host", 403), ("port", 403), ("address", 403), ("token", 401)):
            self.assertEqual(out[name].get("status"), code, (name, out[name]))  # the page can read why
        self.assertIn("DELETE", out["method"]["text"])
        for name in ("refused_websocket", "direct", "direct_tls"):
            self.assertIn("error", out[name], name)
        with open(support.LAB.path("seen.jsonl")) as f:
            self.assertNotIn("stolen", f.read())
        self.assertTrue(self.daemon.event(HTTP, action_id=1, **{"http_request.url.path": "/v1/messages"}))
        self.assertTrue(self.daemon.event(HTTP, action_id=2, **{"dst_endpoint.hostname": "evil.lab.test"}))
        text = json.dumps(self.daemon.events())
        self.assertNotIn(SECRET, text)
        self.assertNotIn(self.token, text)

    def test_revoked(self):
        self.fence((GATEWAY4, TLS_PORT))
        ask = {"url": self.base("https://api.lab.test/whoami")}
        self.assertEqual(self.load(allowed=ask)["allowed"]["status"], 200)
        self.assertEqual(self.daemon.call("DELETE", "/v1/sessions/one")[0], 200)
        out = self.load(allowed=ask)
        self.assertEqual(out["allowed"].get("status"), 401, out)
        self.assertNotIn("authenticated", out["allowed"]["text"])
