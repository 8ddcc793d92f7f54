# SPDX-License-Identifier: Apache-2.0
"""curl, wget and wget2: downloads, uploads, HTTP/2 where it is offered, refusals."""
import hashlib
import os
import unittest

import outside
import support
from outside import Client

RULES = ("{to: 'https://api.real.lab.test', methods: [GET, HEAD, POST, PUT], credential: api}", "https://www.real.lab.test",
         "https://www.one.lab.test")


class Curl(Client):
    RULES = RULES
    CREDENTIALS = {"api": "inject: bearer, env: API_KEY"}

    def curl(self, box, *argv, **kw):
        return box.run("curl", "-sS", "--fail-with-body", *argv, **kw)

    def test_http1(self):
        def check(box, word):
            done = self.curl(box, "--http1.1", f"https://api.real.lab.test/whoami?{word}")
            self.assert_ok(done)
            self.assert_went(box, authenticated=True)
        self.each(check)

    def test_http2(self):
        """Asked for with ALPN, used where vethguard offers it."""
        def check(box, word):
            done = self.curl(box, "--http2", "-w", "%{http_version}", "-o", "/dev/null", "https://api.real.lab.test/whoami")
            self.assert_ok(done)
            self.assertEqual({"1.1": "HTTP/1.1", "2": "HTTP/2.0"}[done.out], outside.TO_CLIENT)
            self.assert_went(box, authenticated=True)
        self.each(check)

    def test_http2_to_an_origin_of_http1(self):
        def check(box, word):
            self.assert_ok(self.curl(box, "--http2", f"https://www.one.lab.test/{word}"))
            self.assert_went(box, "HTTP/1.1", path="/" + word)
        self.each(check)

    def test_upload(self):
        data = os.urandom(3 << 20)
        with open(support.LAB.path("upload.bin"), "wb") as f:
            f.write(data)

        def check(box, word):
            for version in ("--http1.1", "--http2"):
                for how in (["-T", support.LAB.path("upload.bin")], ["-T", "-", "-H", "Expect: 100-continue"]):
                    done = self.curl(box, version, *how, "https://api.real.lab.test/whoami", input=data)
                    self.assertEqual(done.json()["sha256"], hashlib.sha256(data).hexdigest(), done)
        self.each(check)

    def test_many_at_once(self):
        def check(box, word):
            done = self.curl(box, "--http2", "--parallel", "-w", "%{http_code}\n", "-o", "/dev/null",
                             "https://www.real.lab.test/bytes/100000?[1-20]")
            self.assertEqual(done.out.split().count("200"), 20, done)
        self.each(check)

    def test_refusals(self):
        def check(box, word):
            for version in ("--http1.1", "--http2"):
                done = self.curl(box, version, "https://evil.lab.test/x")
                self.assert_refused(box, done)
                done = self.curl(box, version, "-X", "DELETE", "https://api.real.lab.test/whoami")
                self.assert_refused(box, done)
                self.assert_denied(box, done.json())
        self.each(check)

    def test_redirect_is_judged(self):
        def check(box, word):
            done = self.curl(box, "-L", "https://www.real.lab.test/redirect")
            self.assertNotEqual(done.status, 0)
            self.assertEqual(self.seen("evil"), [])
        self.each(check)

    def test_the_placeholder_is_refused_where_it_does_not_belong(self):
        def check(box, word):
            done = box.sh('curl -sS -o /dev/null -w "%{http_code}" -H "Authorization: Bearer $API_KEY" https://www.one.lab.test/whoami')
            self.assertEqual(done.out, "403", done)
            self.assert_no_secret(box.sh("env; cat /proc/self/environ").out)
        self.each(check)


class Wget(Client):
    RULES = RULES
    CREDENTIALS = {"api": "inject: bearer, env: API_KEY"}

    def test_get(self):
        def check(box, word):
            done = box.run("wget", "-qO-", "https://api.real.lab.test/whoami")
            self.assertTrue(done.json()["authenticated"], done)
            self.assert_went(box, authenticated=True)
        self.each(check)

    def test_post(self):
        def check(box, word):
            done = box.run("wget", "-qO-", "--post-data", "a=1", "https://api.real.lab.test/whoami")
            self.assertEqual(done.json()["body"], 3, done)
        self.each(check)

    def test_refused(self):
        def check(box, word):
            self.assert_refused(box, box.run("wget", "-O-", "https://evil.lab.test/x"))
            done = box.run("wget", "-O-", "--method=DELETE", "https://api.real.lab.test/x")
            self.assert_refused(box, done)
            self.assertIn("403", done.err)
        self.each(check)


@unittest.skipUnless(*outside.need("wget2"))
class Wget2(Client):
    """Debian 12's wget2 knows no CONNECT: through a proxy it reaches http only."""
    RULES = (*RULES, "http://www.lab.test")
    CREDENTIALS = {"api": "inject: bearer, env: API_KEY"}
    SAVE = ["--no-hsts", "--no-ocsp"]

    def wget2(self, box, *argv):
        return box.run("wget2", "-O-", *self.SAVE, *argv)

    def test_get_and_post(self):
        done = self.wget2(self.box, "-q", "https://api.real.lab.test/whoami")
        self.assertTrue(done.json()["authenticated"], done)
        self.assert_went(self.box, authenticated=True)
        # Over h2 this wget2 sends a GET without a body instead, to any server.
        done = self.wget2(self.box, "-q", "--http2=off", "--post-data", "a=1", "https://api.real.lab.test/whoami")
        self.assertEqual(done.json()["body"], 3, done)

    def test_http_through_the_proxy(self):
        done = self.wget2(self.proxied, "-q", "http://www.lab.test/plain")
        self.assertEqual(done.json()["path"], "/plain", done)

    def test_https_through_the_proxy_without_connect(self):
        done = self.wget2(self.proxied, "-q", "https://api.real.lab.test/whoami")
        self.assertEqual((done.status, done.out), (5, ""), done)
        self.assertEqual(self.seen("request"), [])

    def test_refused(self):
        done = self.wget2(self.box, "https://evil.lab.test/x")  # its status is 0, though
        self.assertIn("ERROR response 403", done.out + done.err)
        self.assertEqual(self.seen("evil"), [])


del Client  # a base class, not a test
