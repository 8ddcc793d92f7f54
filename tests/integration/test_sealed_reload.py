# SPDX-License-Identifier: Apache-2.0
"""A sealed login under the daemon: it outlives reloads and workers, operators see it and end it, and the next sandbox of that name
knows nothing of it."""
import json

import control_case
import lab
import support
from login_origin import Origin
from support import policy

PORT = 8451
HOST = f"login.wild.lab.test:{PORT}"
URL = f"https://{HOST}"
LOGIN = "  login: {source: sealed, inject: placeholder, in: header}\n"
RULES = (f"{{to: '{URL}', paths: [/token], seal: login}}", f"{{to: '{URL}', paths: [/api/**], credential: login}}")


class Daemon(support.WithOrigin, control_case.Control):
    @classmethod
    def make_origin(cls):
        return Origin(lab.ORIGIN4, PORT, support.LAB.dir)

    def box(self, name, rules=RULES):
        self.policy = support.LAB.write(name + ".yaml", policy(*rules, credentials=LOGIN))
        netns = self.namespace()
        self.daemon.attach(netns=netns, policy=self.policy, name=name)
        return netns

    def login(self, name, netns):
        text = self.inside(name, netns, URL + "/token", "-d", "grant_type=password").stdout
        self.assertNotIn("SECRETOFTHELOGIN", text)
        return json.loads(text)["access_token"]

    def api(self, name, netns, token):
        return self.inside(name, netns, URL + "/api/x", "-H", "Authorization: Bearer " + token, "-w", "%{http_code}", "-o", "/dev/null").stdout

    def listed(self, name):
        return self.call("GET", f"/v1/sandboxes/{name}/credentials")[2]["credentials"][0]

    def test_it_outlives_reloads(self):
        netns = self.box("reloaded")
        before = self.listed("reloaded")
        self.assertEqual((before["state"], before["source"], before["fetched"], before["fingerprint"]), ("empty", "sealed", None, None))
        token = self.login("reloaded", netns)
        held = self.listed("reloaded")
        self.assertEqual((held["state"], held["fingerprint"], held["ends"]), ("held", None, None))
        self.assertIsNotNone(held["fetched"])
        for extra in ("https://www.lab.test", "https://plain.lab.test"):
            support.LAB.write("reloaded.yaml", policy(*RULES, extra, credentials=LOGIN))
            self.assertEqual(self.call("POST", "/v1/sandboxes/reloaded/reload")[0], 200)
            self.assertEqual(self.api("reloaded", netns, token), "200")
        self.assertEqual(self.listed("reloaded")["state"], "held")

    def test_a_policy_without_it_ends_it(self):
        netns = self.box("ended")
        token = self.login("ended", netns)
        support.LAB.write("ended.yaml", policy(f"{{to: '{URL}', paths: [/api/**]}}"))
        self.assertEqual(self.call("POST", "/v1/sandboxes/ended/reload")[0], 200)
        self.assertEqual(self.api("ended", netns, token), "401")
        support.LAB.write("ended.yaml", policy(*RULES, credentials=LOGIN))
        self.assertEqual(self.call("POST", "/v1/sandboxes/ended/reload")[0], 200)
        self.assertIn(self.api("ended", netns, token), ("401", "200"))

    def test_an_operator_ends_it(self):
        netns = self.box("revoked")
        token = self.login("revoked", netns)
        self.assertEqual(self.api("revoked", netns, token), "200")
        status, _, answer = self.call("POST", "/v1/sandboxes/revoked/credentials/check", {"credential": "login"})
        self.assertGreaterEqual(status, 400)
        self.assertIn("logins inside the sandbox", json.dumps(answer))
        self.call("POST", "/v1/sandboxes/revoked/credentials/revoke", {"credential": "login"})
        asked = len(self.origin.asked)
        self.assertEqual(self.api("revoked", netns, token), "502")
        self.assertEqual(self.inside("revoked", netns, URL + "/token", "-d", "grant_type=password", "-w", "%{http_code}", "-o", "/dev/null").stdout, "502")
        self.assertEqual(len(self.origin.asked), asked)
        self.call("POST", "/v1/sandboxes/revoked/credentials/rotate", {"credential": "login"})
        self.assertEqual(self.api("revoked", netns, token), "401")
        self.assertEqual(self.api("revoked", netns, self.login("revoked", netns)), "200")

    def test_the_next_of_that_name(self):
        netns = self.box("twice")
        token = self.login("twice", netns)
        self.call("DELETE", "/v1/sandboxes/twice")
        self.assertEqual(self.api("twice", self.box("twice"), token), "401")
