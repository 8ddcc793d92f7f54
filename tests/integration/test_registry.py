# SPDX-License-Identifier: Apache-2.0
"""inject: docker-registry: the login goes to the registry's token service only, its tokens stay outside, and both are good only for the
repositories and actions that the policy names. Against Debian's docker-registry with skopeo and podman inside, and against a registry of
the tests' own that lies."""
import json
import os
import shutil
import socket
import subprocess
import unittest
import urllib.parse

import lab
import registry_server
import support
from support import FINDING, HTTP, SECRET, policy

TOKENS, LIES, BLOBS, REAL = 8460, 8461, 8462, 8463
AUTH, MINI, CDN, REGISTRY = (f"{name}.wild.lab.test" for name in ("auth", "mini", "blobs", "registry"))
REALM = f"https://{AUTH}:{TOKENS}/token"
ASK = "/token?service=registry.lab&scope=repository:acme/app:pull"


def credential(repositories="acme/*", actions="pull", path=None, more=""):
    return (f"  hub: {{source: 'file:{path or support.LAB.path('secret')}', inject: docker-registry, username: agent, realm: '{REALM}', "
            f"service: registry.lab, repositories: [{repositories}], actions: [{actions}]{more}}}\n")


RULES = (f"{{to: 'https://{AUTH}:{TOKENS}', paths: [/token], credential: hub}}", f"{{to: 'https://{MINI}:{LIES}', credential: hub}}",
         f"{{to: 'https://{REGISTRY}:{REAL}', credential: hub}}", f"https://{CDN}:{BLOBS}")


class Registry(support.WithOrigin, support.Case):
    @classmethod
    def make_origin(cls):
        return registry_server.Origin(lab.ORIGIN4, (TOKENS, LIES, BLOBS), support.LAB.dir, "agent:" + SECRET)

    def setUp(self):
        super().setUp()
        self.origin.given.clear()
        self.origin.shapes.clear()

    def box(self, rules=RULES, credentials=None, **kw):
        return self.sandbox(policy(*rules, credentials=credentials or credential(), **kw))

    def ask(self, box, path, *fields, method="GET", host=MINI, port=LIES):
        """(status, body, fields). Nothing of a token's signature, or of the login, arrives inside."""
        done = box.py(f"answered(*fetch({host!r}, {path!r}, {method!r}, {port}, {list(fields)!r}))", timeout=60)
        self.assertEqual(done.status, 0, done)
        for token in self.origin.given:
            self.assertNotIn(token.split(".")[2], done.out)
        self.assertIsNone(support.holds_secret(done.out))
        answer = done.json()
        return answer["status"], answer["body"], {n.lower(): v for n, v in dict(answer["fields"]).items()}

    def token(self, box, path=ASK, *fields, **kw):
        return self.ask(box, path, *fields, host=AUTH, port=TOKENS, **kw)

    def text(self, box):
        status, body, _ = self.token(box)
        self.assertEqual(status, 200, body)
        answer = json.loads(body)
        self.assertEqual(answer["token"], answer["access_token"])
        return answer["token"]

    def findings(self, box):
        return [t for e in box.events(FINDING) for t in e["finding_info"]["types"]]


class Works(Registry):
    def test_a_pull_by_hand(self):
        box = self.box()
        text = self.text(box)
        self.assertEqual(self.origin.asked[-1]["headers"]["authorization"], self.origin.login)
        self.assertNotEqual(text, self.origin.given[-1])
        self.assertEqual(text.split(".")[1], self.origin.given[-1].split(".")[1])  # its claims
        self.assertEqual(self.ask(box, "/v2/acme/app/manifests/latest", "Authorization: Bearer " + text)[0], 200)
        self.assertEqual(self.origin.asked[-1]["headers"]["authorization"], "Bearer " + self.origin.given[-1])
        self.assertEqual(self.findings(box), ["credential-echo"])  # the answer tells what it was sent
        event = box.event(HTTP, **{"http_request.url.path": "/token"})
        self.assertEqual(event["unmapped"]["credential"], "hub")

    def test_the_clients_own_login_is_replaced(self):
        box = self.box()
        self.assertEqual(self.token(box, ASK, "Authorization: Basic bWU6bXktb3du")[0], 200)
        box = self.box(credentials=credential(more=", require: true"))
        self.assertEqual(self.token(box, ASK, "Authorization: Basic bWU6bXktb3du")[0], 200)

    def test_without_a_token(self):
        """The registry sees no Authorization: neither a text of another sandbox, nor an unknown one, nor a login of the client's own."""
        box, text = self.box(), self.text(self.box())
        for shown in ("Bearer " + text, "Bearer nothing", "Basic bWU6bXktb3du"):
            self.assertEqual(self.ask(box, "/v2/acme/app/manifests/latest", "Authorization: " + shown)[0], 200)
            self.assertNotIn("authorization", self.origin.asked[-1]["headers"])

    def test_blobs_elsewhere(self):
        box = self.box()
        shown = "Authorization: Bearer " + self.text(box)
        status, _, fields = self.ask(box, "/v2/acme/app/blobs/sha256:0", shown)
        self.assertEqual((status, fields["location"]), (307, f"https://{CDN}:{BLOBS}/cdn/blob"))
        self.assertEqual(self.ask(box, "/cdn/blob", host=CDN, port=BLOBS)[:2], (200, "the blob"))
        self.assertNotIn("authorization", self.origin.asked[-1]["headers"])
        asked = len(self.origin.asked)
        status, _, _ = self.ask(box, "/cdn/blob", shown, host=CDN, port=BLOBS)
        self.assertEqual((status, len(self.origin.asked)), (403, asked))
        self.assertIn("placeholder-leak", self.findings(box))


class Refused(Registry):
    def denied(self, box, answer, words):
        self.assertEqual(answer[0], 403, answer)
        self.assertIn(words, answer[1])
        self.assertEqual(box.events(HTTP)[-1]["status_code"], "scope")
        self.assertEqual(self.origin.asked, [])

    def test_scopes(self):
        box = self.box()
        for query, words in (("scope=repository:evil/app:pull", "does not name"), ("scope=repository:acme/app:pull,push", "an action"),
                             ("scope=repository:acme/app:*", "an action"), ("scope=registry:catalog:*", "not repository:NAME"), ("", "without a scope"),
                             ("scope=repository:acme/app:pull&scope=repository:evil/app:pull", "does not name"),
                             ("scope=repository:acme/app:pull+repository:evil/app:pull", "does not name"),
                             ("scope=repository:acme/app:pull&%73cope=repository:evil/app:pull", "other parameters"),
                             ("scope=repository:acme/app:pull;scope=repository:evil/app:pull", "other parameters"),
                             ("scope=repository:acme/app:pull&grant_type=password", "other parameters"),
                             ("scope=repository:acme/app:pull&service=registry.lab", "twice"),
                             ("&".join(["scope=repository:acme/app:pull"] * 17), "more than 16 scopes"),
                             ("account=" + "a" * 8000 + "&scope=repository:evil/app:pull", "does not name")):
            self.denied(box, self.token(box, "/token?service=registry.lab&" + query), words)
        self.denied(box, self.token(box, "/token?service=other&scope=repository:acme/app:pull"), "a service that")
        self.denied(box, self.token(box, ASK, method="POST"), "by GET")

    def test_requests(self):
        box = self.box()
        for method, path, words in (("GET", "/v2/evil/app/manifests/latest", "does not name"), ("PUT", "/v2/acme/app/manifests/latest", "an action"),
                                    ("DELETE", "/v2/acme/app/manifests/latest", "an action"), ("GET", "/v2/_catalog", "no repository"),
                                    ("GET", "/v2/acme%2fapp/manifests/latest", "no repository"), ("GET", "/", "no repository")):
            self.denied(box, self.ask(box, path, method=method), words)

    def test_mounts(self):
        box = self.box(credentials=credential(actions="pull, push"))
        for query in ("mount=sha256:0&from=evil/app", "mount=sha256:0", "mount=sha256:0&from=acme/a&from=evil/app", "mount=sha256:0&%66rom=evil/app"):
            self.denied(box, self.ask(box, "/v2/acme/app/blobs/uploads/?" + query, method="POST"), "mounts")
        self.assertEqual(self.ask(box, "/v2/acme/app/blobs/uploads/?mount=sha256:0&from=acme/b", method="POST")[0], 307)

    def test_challenges(self):
        """A challenge that sends clients elsewhere does not arrive."""
        good = f'Bearer realm="{REALM}",service="registry.lab",scope="repository:evil/app:pull"'
        box = self.box()
        for values, passes in (((good,), True), (("Basic realm=x", good), True), (("Basic realm=x, " + good,), True), ((), True),
                               ((good.replace(AUTH, CDN),), False), ((good.replace("https", "http"),), False), ((good.replace("/token", "/v2/x"),), False),
                               ((good + ', realm="https://elsewhere/"',), False), ((good, 'Bearer realm="https://elsewhere/"'), False),
                               ((good + ', Bearer realm="https://elsewhere/"',), False), (('Bearer realm="' + REALM,), False),
                               (("Bearer " + ",".join(f"p{i}=x" for i in range(40)),), False), (("Bearer realm=" + "a" * 4000,), False)):
            self.origin.shapes["/v2/"] = (401, tuple(("WWW-Authenticate", v) for v in values), b"no")
            status, body, fields = self.ask(box, "/v2/")
            self.assertEqual(status, 401 if passes else 502, (values, body))
            if not passes:
                self.assertNotIn("www-authenticate", fields)
                self.assertIn("challenge", body)

    def test_answers_of_the_token_service(self):
        box = self.box()
        kind = ("Content-Type", "application/json")
        for shape in ((302, (("Location", f"https://{CDN}:{BLOBS}/"),), b""), (200, (("Content-Type", "text/plain"),), b"{}"), (200, (kind,), b"{"),
                      (200, (kind, ("Content-Encoding", "gzip")), b"{}"), (200, (kind,), b'{"token": "abc"}'), (200, (kind,), b'{"token": {"a": 1}}'),
                      (200, (kind,), json.dumps({"token": "x" * 9000}).encode()), (200, (kind,), b" " * 60000)):
            self.origin.shapes["/token"] = shape
            self.assertEqual(self.token(box)[0], 502, shape)

    def test_a_wrong_login(self):
        """The service's answer repeats what it was sent; the sandbox does not see it."""
        wrong = support.LAB.write("hub-wrong", "wrong-password-0123456789\n", 0o600)
        box = self.box(credentials=credential(path=wrong))
        status, body, _ = self.token(box)
        self.assertEqual(status, 401, body)
        self.assertNotIn("d3JvbmctcGFzc3dvcmQ", body)
        self.assertNotIn(self.origin.asked[-1]["headers"]["authorization"][6:], body)

    def test_no_value(self):
        box = self.box(credentials=credential(path=support.LAB.path("hub-is-not-there")))
        self.assertEqual(self.token(box)[0], 502)
        self.assertEqual(self.origin.asked, [])

    def test_observe(self):
        box = self.box(more="mode: observe\n")
        self.assertEqual(self.ask(box, "/v2/evil/app/manifests/latest")[0], 200)
        self.assertNotIn("authorization", self.origin.asked[-1]["headers"])
        self.assertEqual(box.events(HTTP)[-1]["status_code"], "scope")


@unittest.skipUnless(shutil.which("docker-registry") and shutil.which("skopeo"), "there is no docker-registry or no skopeo")
class Clients(Registry):
    """Programs that others have written, which know nothing of vethguard and have no login."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        config = registry_server.configuration(lab.ORIGIN4, REAL, REALM, cls.origin, support.LAB.dir)
        cls.registry = support.LAB.spawn_outside(["docker-registry", "serve", config], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        if not support.wait_until(cls.is_up):
            raise AssertionError("docker-registry does not start")
        cls.layer = registry_server.image(support.LAB.path("oci"))

    @staticmethod
    def is_up():
        try:
            socket.create_connection((lab.ORIGIN4, REAL), 1).close()
        except OSError:
            return False
        return True

    @classmethod
    def tearDownClass(cls):
        cls.registry.terminate()
        cls.registry.wait()
        super().tearDownClass()

    def skopeo(self, box, *words):
        done = box.run("skopeo", "--insecure-policy", "--tmpdir", "/tmp", *words, timeout=120)
        for token in self.origin.given:
            self.assertNotIn(token.split(".")[2], done.out + done.err)
        self.assertIsNone(support.holds_secret(done.out + done.err))
        return done

    def push(self, box, name):
        return self.skopeo(box, "copy", "-q", "--retry-times", "0", f"oci:{support.LAB.path('oci')}:latest", f"docker://{REGISTRY}:{REAL}/{name}")

    def pull(self, box, name):
        target = support.LAB.path("pulled-by-skopeo")
        shutil.rmtree(target, ignore_errors=True)
        done = self.skopeo(box, "copy", "-q", "--retry-times", "0", f"docker://{REGISTRY}:{REAL}/{name}", f"dir:{target}")
        return done, os.path.exists(f"{target}/{self.layer}")

    def test_skopeo(self):
        self.assertEqual(self.push(self.box(credentials=credential("evil/*", "pull, push")), "evil/app:latest").status, 0)
        box = self.box(credentials=credential(actions="pull, push"))
        done = self.push(box, "acme/app:latest")
        self.assertEqual(done.status, 0, done)
        box = self.box()
        self.assertEqual(self.pull(box, "acme/app:latest")[1], True)
        self.assertEqual(self.skopeo(box, "inspect", f"docker://{REGISTRY}:{REAL}/acme/app:latest").json()["Layers"], ["sha256:" + self.layer])
        self.assertEqual(self.findings(box), [])
        asked = {urllib.parse.parse_qs(urllib.parse.urlsplit(a["path"]).query)["scope"][0] for a in self.origin.asked}
        self.assertEqual(asked, {"repository:evil/app:pull,push", "repository:acme/app:pull,push", "repository:acme/app:pull"})
        # beyond the policy
        given = len(self.origin.given)
        self.assertEqual(self.pull(box, "evil/app:latest")[1], False)
        self.assertNotEqual(self.push(box, "acme/app:other").status, 0)
        self.assertNotEqual(self.skopeo(box, "delete", f"docker://{REGISTRY}:{REAL}/acme/app:latest").status, 0)
        self.assertEqual(len(self.origin.given), given)
        self.assertEqual({e["status_code"] for e in box.events(HTTP) if e["action_id"] == 2}, {"scope"})

    @unittest.skipUnless(shutil.which("podman"), "there is no podman")
    def test_podman(self):
        self.assertEqual(self.push(self.box(credentials=credential(actions="pull, push")), "acme/app:podman").status, 0)
        box = self.box()
        top = support.LAB.path("podman")
        self.addCleanup(shutil.rmtree, top, ignore_errors=True)
        os.makedirs(top)
        base = ["podman", "--root", top + "/root", "--runroot", top + "/run", "--storage-driver", "vfs",
                "--cgroup-manager", "cgroupfs", "--events-backend", "none"]
        done = box.run(*base, "pull", "-q", f"{REGISTRY}:{REAL}/acme/app:podman", timeout=120, env={"TMPDIR": "/tmp", "HOME": top})
        self.assertEqual(done.status, 0, done)
        done = box.run(*base, "pull", "-q", f"{REGISTRY}:{REAL}/evil/app:latest", timeout=120, env={"TMPDIR": "/tmp", "HOME": top})
        self.assertNotEqual(done.status, 0)


del Registry  # a base class, not a test
