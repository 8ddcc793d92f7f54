# SPDX-License-Identifier: Apache-2.0
"""Hosts of WebAssembly as any other program under `vethguard run`: workerd, and jco with a component that speaks wasi:http."""
import json
import os
import shutil
import unittest
import urllib.parse

import lab
import support
from support import HTTP, file_credential, policy

INSTALLED = os.path.join(support.ROOT, "build", "providers", "wasm")
RULES = ("{to: 'https://api.lab.test', methods: [GET], credential: api}", "http://plain.lab.test")
WORKERD = 8787
ALLOWED = ("GET", "https://api.lab.test/whoami")
# Hosts, methods, addresses, ports, metadata: what no rule allows.
REFUSED = (("GET", "https://evil.lab.test/?q=stolen"), ("DELETE", "https://api.lab.test/x"), ("POST", "https://api.lab.test/x"),
           ("GET", f"https://{lab.EVIL4}/"), ("GET", f"http://{lab.EVIL4}/stolen"), ("GET", "http://169.254.169.254/latest/meta-data/"),
           ("GET", "https://api.lab.test:8443/"), ("GET", "http://evil.lab.test/?q=stolen"))


class Hosted:
    """The tests of each host."""

    @classmethod
    def make_box(cls):
        cls.dir = support.LAB.path(cls.__name__.lower())  # what the host writes
        os.makedirs(cls.dir, exist_ok=True)
        return support.Sandbox(policy(*RULES, credentials=file_credential()))

    def ask(self, *requests, env=None):
        """The answers to (method, URL) each: {url, status, body} or {url, error}."""
        raise NotImplementedError

    def one(self, method, url):
        (answer,) = self.ask((method, url))
        self.assert_no_secret(json.dumps(answer))
        self.assertEqual(answer["url"], url)
        return answer

    def test_allowed(self):
        answer = self.one(*ALLOWED)
        self.assertEqual(answer.get("status"), 200, answer)
        self.assertIs(json.loads(answer["body"])["authenticated"], True)
        self.assertTrue(self.box.event(HTTP, action_id=1, **{"http_request.url.path": "/whoami"}))

    def test_plain(self):
        self.assertEqual(self.one("GET", "http://plain.lab.test/plain").get("status"), 200)
        self.assertTrue(self.seen("http", path="/plain"))

    def test_refused(self):
        answers = self.ask(*REFUSED)
        self.assertEqual([a["url"] for a in answers], [url for _, url in REFUSED])
        for (method, url), answer in zip(REFUSED, answers, strict=True):
            self.assert_no_secret(json.dumps(answer))
            with self.subTest(method=method, url=url):
                self.assertTrue("error" in answer or answer["status"] in (403, 421), answer)
        self.assertEqual(self.seen("evil"), [])
        self.assert_never_seen("stolen")
        self.assertEqual(self.seen("http"), [])
        for fields in ({"http_request.http_method": "DELETE"}, {"dst_endpoint.hostname": "evil.lab.test"}):
            self.assertTrue(self.box.event(action_id=2, **fields), fields)

    def test_why(self):
        """What a program can print when it is refused: the same words as curl gets."""
        answer = self.one("DELETE", "https://api.lab.test/x")
        self.assertEqual(answer.get("status"), 403, answer)
        self.assertIn("DELETE", answer["body"])

    def test_without_its_authority(self):
        """The authority is trusted because of the sandbox's variables: without them, nothing is asked."""
        other = support.LAB.path("server.pem")
        (answer,) = self.ask(ALLOWED, env={"NODE_EXTRA_CA_CERTS": other, "SSL_CERT_FILE": other, "SSL_CERT_DIR": "/none"})
        self.assertIn("error", answer)
        self.assertEqual(self.seen("http"), [])


@unittest.skipUnless(shutil.which("node") and os.path.exists(os.path.join(INSTALLED, "component.wasm")),
                     "needs node and the packages that make check-providers installs")
class WasiHttp(Hosted, support.Boxed):
    """jco runs a component whose only network is wasi:http."""

    def ask(self, *requests, env=None):
        done = self.box.run("node", os.path.join(INSTALLED, "node_modules/@bytecodealliance/jco/dist/jco.js"), "run",
                            os.path.join(INSTALLED, "component.wasm"), *(" ".join(r) for r in requests),
                            env={"HOME": self.dir, "TMPDIR": self.dir, **(env or {})}, timeout=120)
        self.assert_ok(done)
        answers = [json.loads(line) for line in done.out.splitlines()]
        self.assertEqual(len(answers), len(requests), done)
        return answers


@unittest.skipUnless(shutil.which("node") and os.path.exists(os.path.join(INSTALLED, "node_modules/.bin/workerd")),
                     "needs node and the packages that make check-providers installs")
class Workerd(Hosted, support.Boxed):
    """A worker of workerd, whose network is all of the sandbox's."""

    @classmethod
    def make_box(cls):
        box = super().make_box()
        for name in ("worker.mjs", "workerd.capnp"):
            shutil.copy(os.path.join(os.path.dirname(os.path.abspath(__file__)), "wasm", name), cls.dir)
        return box

    def ask(self, *requests, env=None):
        targets = " ".join(f"'http://127.0.0.1:{WORKERD}/?" + urllib.parse.urlencode({"method": m, "url": u}) + "'" for m, u in requests)
        # It has begun when it answers; it ends by its pid, as the shell's child.
        script = (f"{os.path.join(INSTALLED, 'node_modules/@cloudflare/workerd-linux-64/bin/workerd')} serve {self.dir}/workerd.capnp "
                  f">{self.dir}/log 2>&1 & pid=$!\n"
                  f"for i in $(seq 600); do curl -so /dev/null 'http://127.0.0.1:{WORKERD}/?url=none:' && break; sleep 0.05; done\n"
                  f"for url in {targets}; do curl -sS -m 60 \"$url\" || break; echo; done\nkill $pid; wait $pid\ntrue\n")
        done = self.box.sh(script, env=env, timeout=120)
        self.assert_ok(done)
        answers = [json.loads(line) for line in done.out.splitlines()]
        self.assertEqual(len(answers), len(requests), done)
        return answers
