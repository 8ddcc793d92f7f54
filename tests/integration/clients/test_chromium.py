# SPDX-License-Identifier: Apache-2.0
"""Chromium without a window: a page whose parts come from several origins. It trusts what ~/.pki/nssdb says."""
import html
import json
import os
import re
import shutil
import unittest

import nodes
import outside
import support
from nodes import NodeClient

FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
         "--disable-component-update", "--disable-sync", "--disable-default-apps", "--no-default-browser-check",
         "--disable-dev-shm-usage"]
QUIET = {"DBUS_SESSION_BUS_ADDRESS": "disabled:"}
PAGE = "https://a.node.lab.test/page/index.html"


@nodes.needs_packages
@unittest.skipUnless(*outside.need("chromium", "certutil"))
class Chromium(NodeClient):
    RULES = ("{to: 'https://a.node.lab.test', paths: [/page/**, /bytes/**, /sse/**, /ack/**, /whoami], credential: api}",
             "https://b.node.lab.test", "https://c.node.lab.test")
    CREDENTIALS = {"api": "inject: bearer"}

    @classmethod
    def prepare(cls):
        """The user's home is one of the lab, with a database as Chromium's own first run makes it."""
        nodes.start()
        database = support.LAB.path("home/.pki/nssdb")
        os.makedirs(database, exist_ok=True)
        support.sh("certutil", "-N", "-d", "sql:" + database, "--empty-password")
        with open("/etc/passwd") as f:
            users = re.sub(r"^(root:.*):[^:]*:([^:]*)$", rf"\1:{support.LAB.path('home')}:\2", f.read(), flags=re.M)
        support.sh("mount", "--bind", support.LAB.write("chromium-passwd", users), "/etc/passwd")
        cls.addClassCleanup(support.sh, "umount", "/etc/passwd")

    def load(self, box, url, *flags):
        """The page as it stands when all of it is loaded."""
        profile = support.LAB.path("chromium-profile")
        shutil.rmtree(profile, ignore_errors=True)
        done = box.run("chromium", *FLAGS, *flags, "--user-data-dir=" + profile, "--dump-dom", url, timeout=120, env=QUIET)
        self.assert_no_secret(done.out)
        return done

    def test_page(self):
        def check(box, word):
            done = self.load(box, f"{PAGE}?{word}")
            found = re.search(r'<pre id="out">(.*?)</pre>', done.out, re.S)
            self.assertTrue(found, done)
            out = json.loads(html.unescape(found.group(1)) or "{}")
            wanted = {"classic": "ran", "style": "rgb(1, 2, 3)", "image": 1, "evil": "refused", "same": "200 100000", "cross": "200 3",
                      "preflight": "200 3", "many": True, "ws": "through", "events": "event 0,event 1,event 2", "done": True}
            self.assertRegex(out.pop("denied", ""), r"^403 \d+$")
            self.assertEqual(out, wanted)
            self.assert_went(box, path=f"/page/index.html?{word}", authenticated=True)
            self.assertEqual(self.seen("request", authenticated=True, host="b.node.lab.test"), [])
            self.assertEqual(self.seen("evil"), [])
            self.assert_never_seen("/denied/x")
            self.assertIsNotNone(box.event(action_id=2, **{"http_request.url.path": "/denied/x"}))
        self.each(check)

    def test_refused_page(self):
        """The explanation is what the browser shows; through the proxy it is a page of the browser's own."""
        def check(box, word):
            done = self.load(box, "https://evil.lab.test/steal")
            if word == "transparent":
                self.assertIn("https://evil.lab.test", html.unescape(done.out), done)
                self.assertIn("403", done.out)
            self.assertEqual(self.seen("evil"), [])
            self.assertIsNotNone(box.event(action_id=2, **{"dst_endpoint.hostname": "evil.lab.test"}))
        self.each(check)

    def test_without_the_authority(self):
        """The page is not loaded where the database lacks the CA: the test would see a check that does not happen."""
        home = support.LAB.path("home-bare")
        os.makedirs(home, exist_ok=True)
        done = self.box.run("chromium", *FLAGS, "--user-data-dir=" + support.LAB.path("chromium-bare"), "--dump-dom", PAGE,
                            env={"HOME": home}, timeout=120)
        self.assertNotIn('id="out"', done.out)
        self.assertEqual(self.seen("request", path="/page/index.html"), [])

    def test_what_it_asks_for_by_itself(self):
        """Its own services (updates, safe browsing) are refused like any other host."""
        self.load(self.box, PAGE + "?alone")
        hosts = {r["host"] for r in self.seen("request")}
        self.assertLessEqual(hosts, {f"{h}.node.lab.test" for h in "abc"})


del NodeClient
