# SPDX-License-Identifier: Apache-2.0
"""systemd:NAME: what systemd gives a unit in its credentials directory, here made as systemd makes it: files of root's, mode 0400, in a
directory that CREDENTIALS_DIRECTORY names."""
import json
import os
import subprocess

import control_case
import support
from control_case import GROUP, NOBODY
from support import policy, wait_until

RULE = "{to: 'https://api.lab.test', credential: api}"


class Directory(control_case.Control):
    @classmethod
    def setUpClass(cls):
        cls.folder = support.LAB.path("unit-credentials")
        os.makedirs(cls.folder, 0o700, exist_ok=True)
        os.environ["CREDENTIALS_DIRECTORY"] = cls.folder
        try:
            super().setUpClass()
        finally:
            del os.environ["CREDENTIALS_DIRECTORY"]

    def put(self, name, text, mode=0o400):
        path = os.path.join(self.folder, name)
        if os.path.lexists(path):
            os.unlink(path)
        with open(path, "w") as f:
            f.write(text)
        os.chmod(path, mode)
        return path

    def written(self, name, source):
        return support.LAB.write(name + ".yaml", policy(RULE, credentials=f"  api: {{source: {json.dumps(source)}, inject: bearer}}\n"))

    def box(self, name, source):
        netns = self.namespace()
        self.daemon.attach(netns=netns, policy=self.written(name, source), name=name)
        return netns

    def asks(self, name, netns):
        return self.inside(name, netns, f"https://api.lab.test/{name}", "-w", "%{http_code}", "-o", "/dev/null").stdout

    def sent(self, name):
        return [v for r in self.seen("http", path=f"/{name}") for n, v in r["headers"] if n.lower() == "authorization"]

    def test_a_credential_of_the_unit(self):
        self.put("api-key", "value-of-the-unit-1\n")
        for name, source in (("text", "systemd:api-key"), ("mapping", {"systemd": "api-key"})):
            netns = self.box(name, source)
            self.assertEqual(self.asks(name, netns), "200", self.daemon.stderr())
            self.assertEqual(self.sent(name), ["Bearer value-of-the-unit-1"])
        shown = self.call("GET", "/v1/sandboxes/text/credentials")[2]["credentials"][0]
        self.assertEqual(shown["source"], "systemd:api-key")
        self.put("api-key", "value-of-the-unit-2\n")
        self.assertEqual(self.call("POST", "/v1/sandboxes/text/credentials/rotate", {"credential": "api"})[0], 200)
        self.assertEqual(self.asks("text", netns := f"/run/netns/box1"), "200", netns)
        self.assertEqual(self.sent("text")[-1], "Bearer value-of-the-unit-2")

    def test_what_is_not_there(self):
        self.put("short", "x")
        self.put("open", "value-that-others-write", 0o666)
        os.makedirs(os.path.join(self.folder, "folder"), exist_ok=True)
        for name, words in (("nothing", "No such file"), ("short", "fewer than 6 bytes"), ("open", "can be written by its group or by others"),
                            ("folder", "not a regular file")):
            netns = self.box(name, "systemd:" + name)
            self.assertEqual(self.asks(name, netns), "502", name)
            self.assertEqual(self.sent(name), [])
            self.assertTrue(wait_until(lambda: words in self.daemon.stderr(), 5), self.daemon.stderr())

    def test_names(self):
        """Each is refused with its place; none leads out of the directory."""
        for name in ("", "../etc/shadow", "a/b", ".", "..", ".hidden", "a b", "a%b", "x" * 256, "\u00e9"):
            status, _, answer = self.daemon.call("POST", "/v1/sandboxes", {"name": "named", "netns": self.namespace(),
                                                                          "policy": self.written("named", "systemd:" + name)})
            self.assertEqual(status, 422, name)
            self.assertIn("named.yaml:", answer["diagnostics"][0])
            self.assertIn("needs the name of a credential", answer["diagnostics"][0])

    def test_it_is_for_root(self):
        """A member of the group may attach, and gets nothing of the daemon's."""
        self.put("roots", "value-of-the-unit-9\n")
        netns = self.namespace()
        body = json.dumps({"name": "lent", "netns": netns, "policy": self.written("lent", "systemd:roots")})
        r = subprocess.run(["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", f"--groups={GROUP}", "curl", "-sS", "-w", "%{http_code}",
                            "--unix-socket", self.daemon.socket, "http://localhost/v1/sandboxes", "--json", body], capture_output=True, text=True)
        self.assertTrue(r.stdout.endswith("201"), r)
        self.assertEqual(self.asks("lent", netns), "502")
        self.assertIn("Permission denied", self.daemon.stderr())
        self.assertEqual(self.sent("lent"), [])


class Without(control_case.Control):
    def test_no_directory(self):
        netns = self.namespace()
        written = support.LAB.write("without.yaml", policy(RULE, credentials="  api: {source: 'systemd:x', inject: bearer}\n"))
        self.daemon.attach(netns=netns, policy=written, name="without")
        self.assertEqual(self.inside("without", netns, "https://api.lab.test/without", "-w", "%{http_code}", "-o", "/dev/null").stdout, "502")
        self.assertIn("has no credentials directory: its unit needs LoadCredential", self.daemon.stderr())

    def test_not_in_a_run(self):
        box = support.Sandbox(policy(RULE, credentials="  api: {source: 'systemd:x', inject: bearer}\n"))
        self.addCleanup(box.close)
        self.assertEqual(box.sh("curl -sS -o /dev/null -w '%{http_code}' https://api.lab.test/run").out, "502")
        self.assertIn("is for sandboxes of vethguardd", box.stderr())
