# SPDX-License-Identifier: Apache-2.0
"""gh against a GitHub Enterprise of the lab, and skopeo against a registry: tools that insist on a token of their own."""
import hashlib
import io
import json
import os
import shutil
import tarfile
import unittest

import outside
import support
from outside import Client


@unittest.skipUnless(*outside.need("gh"))
class Gh(Client):
    RULES = ("{to: 'https://gh.real.lab.test', methods: [GET, POST], paths: ['/api/v3', '/api/v3/', '/api/v3/user', '/api/v3/repos/acme/**', '/api/graphql'], credential: gh}",)
    CREDENTIALS = {"gh": "inject: bearer, env: GH_ENTERPRISE_TOKEN"}
    ENV = {"GH_HOST": "gh.real.lab.test", "GH_NO_UPDATE_NOTIFIER": "1", "NO_COLOR": "1", "GH_PROMPT_DISABLED": "1"}

    def test_api(self):
        def check(box, word):
            done = box.run("gh", "api", "user")
            self.assertEqual(done.json()["login"], "lab", done)
            self.assert_went(box, authenticated=True, path="/api/v3/user")
            done = box.run("gh", "api", "graphql", "-f", "query={viewer{login}}")
            self.assertEqual(done.json()["data"]["viewer"]["login"], "lab", done)
            done = box.run("gh", "api", "repos/acme/widgets/issues", "-f", "title=t")
            self.assertGreater(done.json()["body"], 0, done)
        self.each(check)

    def test_issues(self):
        def check(box, word):
            done = box.run("gh", "issue", "list", "-R", "gh.real.lab.test/acme/widgets")
            self.assert_ok(done)
            self.assertIn("a bug", done.out)
            self.assert_went(box, authenticated=True, path="/api/graphql")
        self.each(check)

    def test_status_shows_the_placeholder_only(self):
        def check(box, word):
            done = box.run("gh", "auth", "status", "--show-token")
            self.assertIn("Logged in to gh.real.lab.test as lab", done.out + done.err)
            self.assertIn("vethguard", done.out + done.err)
            self.assert_no_secret(done.out + done.err)
        self.each(check)

    def test_refused(self):
        def check(box, word):
            done = box.run("gh", "api", "repos/other/widgets")
            self.assert_refused(box, done)
            self.assertIn("403", done.err)
            self.assert_refused(box, box.run("gh", "api", "-X", "DELETE", "repos/acme/widgets"))
            self.assert_refused(box, box.run("gh", "api", "user", env={"GH_HOST": "evil.lab.test"}))
        self.each(check)


@unittest.skipUnless(*outside.need("skopeo"))
class Skopeo(Client):
    """Pulls an OCI image; the guard signs in."""
    RULES = ("{to: 'https://registry.real.lab.test', methods: [GET, HEAD], paths: ['/v2', '/v2/', '/v2/acme/tiny/**'], credential: registry}",)
    CREDENTIALS = {"registry": "inject: basic, username: puller"}

    @classmethod
    def prepare(cls):
        """A manifest, its configuration and one layer, each under its digest."""
        top = support.LAB.path("files/oci")
        os.makedirs(top, exist_ok=True)
        raw = io.BytesIO()
        with tarfile.open(fileobj=raw, mode="w") as t:
            t.addfile(tarfile.TarInfo("blob"), None)
            entry = tarfile.TarInfo("data")
            entry.size = 700000
            t.addfile(entry, io.BytesIO(os.urandom(700000)))

        def put(data, name=None):
            digest = hashlib.sha256(data).hexdigest()
            for n in (name, "sha256-" + digest):
                if n:
                    with open(f"{top}/{n}", "wb") as f:
                        f.write(data)
            return {"digest": "sha256:" + digest, "size": len(data)}
        layer = put(raw.getvalue())
        config = put(json.dumps({"architecture": "amd64", "os": "linux", "config": {}, "rootfs": {"type": "layers",
                     "diff_ids": [layer["digest"]]}}).encode())
        kind = "application/vnd.oci.image."
        cls.layer = layer["digest"].split(":")[1]
        put(json.dumps({"schemaVersion": 2, "mediaType": kind + "manifest.v1+json",
                        "config": {"mediaType": kind + "config.v1+json", **config},
                        "layers": [{"mediaType": kind + "layer.v1.tar", **layer}]}).encode(), "latest")

    def pull(self, box, image):
        target = support.LAB.path("pulled")
        shutil.rmtree(target, ignore_errors=True)
        return box.run("skopeo", "--insecure-policy", "--tmpdir", "/tmp", "copy", "-q", "--retry-times", "0",
                       f"docker://{image}", f"dir:{target}")

    def test_pull(self):
        def check(box, word):
            self.assert_ok(self.pull(box, "registry.real.lab.test/acme/tiny:latest"))
            self.assertTrue(os.path.exists(support.LAB.path("pulled/" + self.layer)))
            self.assert_went(box, authenticated=True, path=f"/v2/acme/tiny/blobs/sha256:{self.layer}")
        self.each(check)

    def test_refused(self):
        def check(box, word):
            self.assert_refused(box, self.pull(box, "evil.lab.test/acme/tiny:latest"))
            done = self.pull(box, "registry.real.lab.test/acme/other:latest")
            self.assertNotEqual(done.status, 0)
            self.assertEqual([r for r in self.seen("request") if "other" in r["path"]], [])
        self.each(check)


del Client  # a base class, not a test
