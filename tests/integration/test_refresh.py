# SPDX-License-Identifier: Apache-2.0
"""Refresh tokens that change with each use: the next one is stored before the access token is used, whole or not at all, by one
fetch at a time."""
import json
import os
import stat
import subprocess

import control_case
import support
from control_case import GROUP, NOBODY
from credential_service import URL, Served
from support import policy, wait_until

RULE = "{to: 'https://api.lab.test', credential: api}"


class Refresh(Served, control_case.Control):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.secret = support.LAB.write("refresh-client-secret", "client:secret&0123456789\n", 0o600)

    def setUp(self):
        super().setUp()
        s = self.service
        s.asked.clear()
        s.refreshed.clear()
        s.refresh_token, s.rotates, s.expires_in = "refresh-token-0000", True, 3600
        self.folder = support.LAB.path(f"refresh-{self.id().rpartition('.')[2]}")
        os.makedirs(self.folder, exist_ok=True)
        self.path = os.path.join(self.folder, "token")
        self.put("refresh-token-0000\n")

    def put(self, text):
        with open(self.path, "w") as f:
            f.write(text)
        os.chmod(self.path, 0o600)

    def stored(self):
        with open(self.path) as f:
            return f.read()

    def source(self, path="/oauth/token", **more):
        return {"oauth2": {"token_url": URL + path, "client_id": "public", "refresh_token": f"file:{self.path}", **more}}

    def box(self, name, source):
        netns = self.namespace()
        written = support.LAB.write(name + ".yaml", policy(RULE, credentials=f"  api: {{source: {json.dumps(source)}, inject: bearer}}\n"))
        self.daemon.attach(netns=netns, policy=written, name=name)
        return netns

    def asks(self, name, netns, path="/refresh"):
        return self.inside(name, netns, f"https://api.lab.test{path}", "-w", "%{http_code}", "-o", "/dev/null").stdout

    def rotate(self, name):
        return self.daemon.call("POST", f"/v1/sandboxes/{name}/credentials/rotate", {"credential": "api"})

    def test_the_next_one_is_stored(self):
        netns = self.box("stored", self.source(scope="read"))
        self.assertEqual(self.asks("stored", netns), "200", self.daemon.stderr())
        self.assertEqual(self.stored(), self.service.refresh_token)
        self.assertEqual(stat.S_IMODE(os.stat(self.path).st_mode), 0o600)
        for _ in range(3):
            self.assertEqual(self.rotate("stored")[0], 200)
            self.assertEqual(self.stored(), self.service.refresh_token)
        self.assertEqual(len(set(self.service.refreshed)), 4)
        self.assertEqual(os.listdir(self.folder), ["token"])
        self.assertIn("grant_type=refresh_token&refresh_token=refresh-token-0000&scope=read&client_id=public", self.service.asked[0]["body"])
        for token in self.service.refreshed:
            self.assert_no_secret(self.daemon.stderr().encode(), token)

    def test_with_a_client_secret(self):
        """Two files, and the right one changes."""
        source = {"oauth2": {"token_url": URL + "/oauth/token", "client_id": "agent one", "client_secret": f"file:{self.secret}",
                             "refresh_token": f"file:{self.path}"}}
        netns = self.box("both", source)
        self.assertEqual(self.asks("both", netns), "200", self.daemon.stderr())
        self.assertEqual(self.stored(), self.service.refresh_token)
        with open(self.secret) as f:
            self.assertEqual(f.read(), "client:secret&0123456789\n")
        self.assertNotIn("client_secret", self.service.asked[0]["body"])

    def test_a_server_that_keeps_it(self):
        self.service.rotates = False
        netns = self.box("kept", self.source())
        self.assertEqual(self.asks("kept", netns), "200")
        self.assertEqual(self.rotate("kept")[0], 200)
        self.assertEqual(self.stored(), "refresh-token-0000\n")
        self.assertEqual(os.listdir(self.folder), ["token"])

    def test_failures_change_nothing(self):
        for n, path in enumerate(("/error", "/cut", "/html", "/empty", "/number", "/long", "/redirect", "/lines")):
            netns = self.box(f"fails-{n}", self.source(path))
            self.assertEqual(self.asks(f"fails-{n}", netns), "502", path)
            self.assertEqual(self.stored(), "refresh-token-0000\n")
            self.assertEqual(os.listdir(self.folder), ["token"])
        self.put("not-the-present-one\n")
        netns = self.box("wrong", self.source())
        self.assertEqual(self.asks("wrong", netns), "502")
        self.assertIn("it answered 400: the refresh token is not the present one", self.daemon.stderr())
        self.assertEqual(self.stored(), "not-the-present-one\n")

    def test_the_rest_of_the_answer_is_of_no_use(self):
        """The earlier token is used up all the same: the next one is stored."""
        self.service.spoiled = True
        self.addCleanup(setattr, self.service, "spoiled", False)
        netns = self.box("spoiled", self.source())
        self.assertEqual(self.asks("spoiled", netns), "502")
        self.assertEqual(self.stored(), self.service.refresh_token)
        self.assertNotEqual(self.stored(), "refresh-token-0000")
        self.service.spoiled = False
        self.assertTrue(wait_until(lambda: self.asks("spoiled", netns) == "200", 20))

    def test_what_a_killed_one_has_left(self):
        for left in ("half-a-tok", ""):
            with open(self.path + ".vethguard-next", "w") as f:
                f.write(left)
            netns = self.box("left" + str(len(left)), self.source())
            self.assertEqual(self.asks("left" + str(len(left)), netns), "200")
            self.assertEqual(self.stored(), self.service.refresh_token)
            self.assertEqual(os.listdir(self.folder), ["token"])

    def test_a_link_beside_it(self):
        """The next token's path leads elsewhere: nothing is written there."""
        other = support.LAB.write("other-file", "untouched")
        os.symlink(other, self.path + ".vethguard-next")
        netns = self.box("linked", self.source())
        self.assertEqual(self.asks("linked", netns), "200")
        with open(other) as f:
            self.assertEqual(f.read(), "untouched")
        self.assertEqual(self.stored(), self.service.refresh_token)

    def test_one_at_a_time(self):
        """Sandboxes that share a refresh token: none is sent twice."""
        boxes = {f"share-{n}": None for n in range(4)}
        for name in boxes:
            boxes[name] = self.box(name, self.source())
        for name, netns in boxes.items():
            self.assertTrue(wait_until(lambda: self.asks(name, netns) == "200", 20), self.daemon.stderr())
        self.assertEqual(len(self.service.refreshed), len(set(self.service.refreshed)))
        self.assertEqual(self.stored(), self.service.refresh_token)

    def test_a_folder_that_the_caller_may_not_write(self):
        """The service is not asked: the next token would have no place."""
        os.chown(self.path, NOBODY, NOBODY)
        netns = self.namespace()
        written = support.LAB.write("rights.yaml", policy(RULE, credentials=f"  api: {{source: {json.dumps(self.source())}, inject: bearer}}\n"))
        body = json.dumps({"name": "rights", "netns": netns, "policy": written})
        r = subprocess.run(["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", f"--groups={GROUP}", "curl", "-sS", "-w", "%{http_code}",
                            "--unix-socket", self.daemon.socket, "http://localhost/v1/sandboxes", "--json", body], capture_output=True, text=True)
        self.assertTrue(r.stdout.endswith("201"), r)
        self.assertEqual(self.asks("rights", netns), "502")
        self.assertIn("no file can be made beside its refresh token", self.daemon.stderr())
        self.assertEqual(self.service.refreshed, [])
