# SPDX-License-Identifier: Apache-2.0
"""Credentials that a service hands out over HTTPS: OAuth 2.0, Vault, GitHub Apps; and every way in which such a service fails."""
import base64
import json
import os
import subprocess
import time
import unittest
import urllib.parse

import lab
import support
from credential_service import HOST, PORT, URL, Served
from support import policy, wait_until

CLIENT_SECRET, VAULT_TOKEN, SECRET_ID = "client:secret&0123456789", "vault-token-0123456789", "secret-id-0123456789"
SUBJECT, CONNECT = "subject-token-0123456789", "connect-token-0123456789"
RULE = "{to: 'https://api.lab.test', credential: api}"


class Fetch(Served, support.Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        for name, text in (("client", CLIENT_SECRET), ("vault", VAULT_TOKEN), ("secret-id", SECRET_ID), ("subject", SUBJECT), ("connect", CONNECT)):
            support.LAB.write(name + "-secret", text + "\n", 0o600)
        subprocess.run(["openssl", "genrsa", "-out", support.LAB.path("app.pem"), "2048"], check=True, capture_output=True)

    def setUp(self):
        super().setUp()
        self.service.asked.clear()
        self.service.expires_in, self.service.login_lives = 3600, 0
        self.service.gate.clear()

    def oauth(self, url=URL + "/oauth/token", **more):
        return {"oauth2": {"token_url": url, "client_id": "agent one", "client_secret": f"file:{support.LAB.path('client-secret')}", **more}}

    def vault(self, path, **more):
        return {"vault": {"url": URL, "path": path, **(more or {"token": f"file:{support.LAB.path('vault-secret')}"})}}

    def box(self, source, rest="inject: bearer"):
        box = support.Sandbox(policy(RULE, credentials=f"  api: {{source: {json.dumps(source)}, {rest}}}\n"))
        self.addCleanup(box.close)
        return box

    def whoami(self, box, path="/fetched"):
        return box.sh(f"curl -sS -o /dev/null -w '%{{http_code}}' https://api.lab.test{path}").out

    def sent(self, path="/fetched"):
        return [v for r in self.seen("http", path=path) for n, v in r["headers"] if n.lower() == "authorization"]

    def fetches(self, box):
        return [p for p, row in support.family(box.process.pid).items() if row[0] == "vethguard-fetch"]

    def paths(self):
        return [a["path"] for a in self.service.asked]


class Works(Fetch):
    def test_oauth2(self):
        """One token for many requests, by Basic login."""
        box = self.box(self.oauth(scope="read write", audience="https://api"))
        for _ in range(3):
            self.assertEqual(self.whoami(box), "200")
        self.assertEqual(len(set(self.sent())), 1)
        self.assertRegex(self.sent()[0], "^Bearer oauth-value-[0-9]{4}$")
        self.assertEqual(self.paths(), ["/oauth/token"])
        self.assertEqual(self.service.asked[0]["body"], "grant_type=client_credentials&scope=read+write&audience=https%3A%2F%2Fapi")

    def test_oauth2_in_the_body(self):
        box = self.box(self.oauth(auth="post"))
        self.assertEqual(self.whoami(box), "200")
        self.assertNotIn("Authorization", self.service.asked[0]["headers"])

    def test_a_token_that_ends_is_fetched_again(self):
        self.service.expires_in = 2
        box = self.box(self.oauth())
        self.assertEqual(self.whoami(box, "/first"), "200")
        time.sleep(2.1)
        self.assertEqual(self.whoami(box, "/second"), "200")
        self.assertEqual(len(self.paths()), 2)
        self.assertNotEqual(self.sent("/first"), self.sent("/second"))

    def test_vault(self):
        for path, more, value in (("secret/data/agent", {}, "kv2-value"), ("kv/agent", {}, "kv1-value"),
                                  ("secret/data/agent", {"token": f"file:{support.LAB.path('vault-secret')}", "field": "other"}, "kv2-other-value"),
                                  ("database/creds/agent", {"role_id": "role-1", "secret_id": f"file:{support.LAB.path('secret-id-secret')}",
                                                            "field": "password", "namespace": "team"}, "dynamic-value")):
            with self.subTest(path=path, more=more):
                box = self.box(self.vault(path, **more))
                self.assertEqual(self.whoami(box, f"/{path}"), "200", box.stderr())
                self.assertTrue(self.sent(f"/{path}")[-1].startswith("Bearer " + value), self.sent(f"/{path}"))
        self.assertEqual(self.service.asked[-1]["headers"]["X-Vault-Namespace"], "team")

    def test_leases_of_vault(self):
        """KV has none: its duration is not how long a value is good. What has one ends with the token it was given to."""
        self.service.login_lives = 2
        approle = {"role_id": "role-1", "secret_id": f"file:{support.LAB.path('secret-id-secret')}", "field": "password"}
        for path, more, rest in (("kv/agent", {}, "inject: bearer, ttl: 2s"), ("database/creds/agent", approle, "inject: bearer")):
            box = self.box(self.vault(path, **more), rest)
            for _ in range(2):
                self.assertEqual(self.whoami(box, f"/lease/{path}"), "200", box.stderr())
                time.sleep(2.1)
            self.assertEqual(len(set(self.sent(f"/lease/{path}"))), 2, path)

    def test_words_that_look_like_files(self):
        box = self.box(self.oauth(scope="file:/read file:write", audience="key=file:/x"))
        self.assertEqual(self.whoami(box), "200", box.stderr())
        self.assertIn("scope=file%3A%2Fread+file%3Awrite&audience=key%3Dfile%3A%2Fx", self.service.asked[0]["body"])

    def test_addresses(self):
        """Services by address. By IPv6 none listens here."""
        box = self.box(self.oauth(f"https://{lab.ORIGIN4}:{PORT}/oauth/token"))
        self.assertEqual(self.whoami(box), "200")
        box = self.box(self.oauth(f"https://[{lab.ORIGIN6}]:{PORT}/oauth/token"))
        self.assertEqual(self.whoami(box), "502")
        self.assertTrue(wait_until(lambda: "it cannot be asked: Couldn't connect" in box.stderr()), box.stderr())

    def test_once_for_all_who_wait(self):
        box = self.box(self.oauth(URL + "/gate"))
        self.wait_for("/gate", lambda: box.send(argv=["curl", "-sSZ", "--parallel-immediate", "--parallel-max", "100", "-o", "/dev/null", "-w", "%{http_code} ",
                                                      "https://api.lab.test/many-[1-100]"], timeout=60))
        time.sleep(1)
        self.service.gate.set()
        self.assertEqual(box.answer().out.split(), ["200"] * 100)
        self.assertEqual(self.paths(), ["/gate"])

    def wait_for(self, path, begin):
        begin()
        self.assertTrue(support.wait_until(lambda: path in self.paths()), self.paths())

    def test_no_sandbox_takes_all_the_room(self):
        """Of twelve services that hang, eight are asked; the others are refused at once, with a reason."""
        names = [f"c{i}" for i in range(12)]
        rules = [f"{{to: 'https://api.lab.test', paths: [/{n}], credential: {n}}}" for n in names]
        sources = "".join(f"  {n}: {{source: {json.dumps(self.oauth(URL + '/gate'))}, inject: bearer}}\n" for n in names)
        box = support.Sandbox(policy(*rules, credentials=sources))
        self.addCleanup(box.close)
        box.send(argv=["curl", "-sSZ", "--parallel-immediate", "-o", "/dev/null", "-w", "%{http_code} ", "https://api.lab.test/c[0-11]"], timeout=60)
        self.assertTrue(support.wait_until(lambda: box.stderr().count("8 services are being asked already for this sandbox") == 4), box.stderr())
        self.assertTrue(support.wait_until(lambda: len(self.paths()) == 8), self.paths())
        self.assertEqual(len(self.fetches(box)), 8)
        self.service.gate.set()
        self.assertEqual(sorted(box.answer().out.split()), ["200"] * 8 + ["502"] * 4)

    def test_it_ends_with_its_sandbox(self):
        box = self.box(self.oauth(URL + "/gate"))
        self.wait_for("/gate", lambda: box.send(argv=["curl", "-sS", "-m", "30", "https://api.lab.test/end"], timeout=60))
        fetch, = self.fetches(box)
        box.kill()
        self.assertTrue(support.wait_until(lambda: not os.path.exists(f"/proc/{fetch}")))
        self.assertEqual(self.seen("http", path="/end"), [])

    def open_in(self, box):
        return {role: len(support.open_files(pid)) for role, pid in box.pids().items() if role in ("supervisor", "keeper", "worker")}

    def test_failures_leave_nothing_open(self):
        names = [f"c{i}" for i in range(8)]
        rules = [f"{{to: 'https://api.lab.test', paths: [/{n}], credential: {n}}}" for n in names]
        faults = (URL + "/error", URL + "/cut", f"https://{HOST}:9/x", URL + "/long", URL + "/lines", "https://nowhere.lab.test/x", URL + "/none", URL + "/html")
        sources = "".join(f"  {n}: {{source: {json.dumps(self.oauth(u))}, inject: bearer}}\n" for n, u in zip(names, faults))
        box = support.Sandbox(policy(*rules, credentials=sources))
        self.addCleanup(box.close)

        def ask():
            out = box.sh("curl -sSZ -o /dev/null -w '%{http_code} ' 'https://api.lab.test/c[0-7]'").out
            self.assertEqual(out.split(), ["502"] * 8)
        ask()
        before = self.open_in(box)  # perhaps with what the first faults have not closed yet
        for _ in range(20 if os.environ.get("VETHGUARD_LONG") else 3):
            time.sleep(1.1)
            ask()
        self.assertTrue(support.wait_until(lambda: all(n <= before[role] for role, n in self.open_in(box).items())), before)

    def test_github_app(self):
        box = self.box({"github-app": {"url": URL, "app_id": 1234, "installation_id": 56, "key": f"file:{support.LAB.path('app.pem')}",
                                       "repositories": ["site"], "permissions": {"contents": "read"}}})
        self.assertEqual(self.whoami(box), "200", box.stderr())
        self.assertRegex(self.sent()[0], "^Bearer ghs-value-")
        asked = self.service.asked[0]
        self.assertEqual(asked["path"], "/app/installations/56/access_tokens")
        self.assertEqual(json.loads(asked["body"]), {"repositories": ["site"], "permissions": {"contents": "read"}})
        claims = self.assert_signed(asked["headers"]["Authorization"].removeprefix("Bearer "))
        self.assertEqual(claims["iss"], "1234")
        self.assertLess(claims["exp"] - claims["iat"], 660)

    def test_a_key_instead_of_a_secret(self):
        """RFC 7523: the client signs who it is."""
        source = {"oauth2": {"token_url": URL + "/oauth/token", "client_id": "agent one", "private_key": f"file:{support.LAB.path('app.pem')}",
                             "key_id": "key-7", "scope": "read"}}
        box = self.box(source)
        self.assertEqual(self.whoami(box), "200", box.stderr())
        self.assertRegex(self.sent()[0], "^Bearer asserted-value-")
        form = {k: v[0] for k, v in urllib.parse.parse_qs(self.service.asked[0]["body"]).items()}
        self.assertEqual((form["grant_type"], form["client_id"], form["client_assertion_type"], form["scope"]),
                         ("client_credentials", "agent one", "urn:ietf:params:oauth:client-assertion-type:jwt-bearer", "read"))
        self.assertNotIn("Authorization", self.service.asked[0]["headers"])
        claims = self.assert_signed(form["client_assertion"], kid="key-7")
        self.assertEqual((claims["iss"], claims["sub"], claims["aud"]), ("agent one", "agent one", URL + "/oauth/token"))
        self.assertEqual(claims["exp"] - claims["iat"], 300)
        self.assertEqual(len(claims["jti"]), 32)

    def test_no_refresh_token_in_a_run(self):
        """The next one would be a new file, which the command could read."""
        token = support.LAB.write("run-refresh", "refresh-token-0000\n", 0o600)
        box = self.box({"oauth2": {"token_url": URL + "/oauth/token", "client_id": "public", "refresh_token": "file:" + token}})
        self.assertEqual(self.whoami(box), "502")
        self.assertIn("cannot be kept from the command", box.stderr())
        self.assertEqual(self.paths(), [])

    def test_token_exchange(self):
        source = {"token-exchange": {"token_url": URL + "/sts/token", "subject_token": f"file:{support.LAB.path('subject-secret')}",
                                     "audience": "//iam/x", "scope": "read"}}
        box = self.box(source)
        self.assertEqual(self.whoami(box, "/fetched"), "200", box.stderr())
        self.assertRegex(self.sent()[0], "^Bearer exchanged-value-")
        self.assertIn("subject_token_type=urn%3Aietf%3Aparams%3Aoauth%3Atoken-type%3Ajwt&scope=read&audience=%2F%2Fiam%2Fx", self.service.asked[0]["body"])

    def test_gcp_service_account(self):
        with open(support.LAB.path("app.pem")) as f:
            key = support.LAB.write("account.json", json.dumps({"type": "service_account", "client_email": "agent@project.iam.test",
                                                               "private_key": f.read(), "token_uri": "https://elsewhere.test"}), 0o600)
        box = self.box({"gcp-service-account": {"token_url": URL + "/gcp/token", "key": "file:" + key, "scope": "https://scope.test/read"}})
        self.assertEqual(self.whoami(box), "200", box.stderr())
        self.assertRegex(self.sent()[0], "^Bearer gcp-value-")
        claims = self.assert_signed(urllib.parse.parse_qs(self.service.asked[0]["body"])["assertion"][0])
        self.assertEqual((claims["iss"], claims["aud"], claims["scope"], claims["exp"] - claims["iat"]),
                         ("agent@project.iam.test", URL + "/gcp/token", "https://scope.test/read", 3600))

    def test_1password_connect(self):
        for field, value in (({}, "connect-value-"), ({"field": "token"}, "connect-token-field"), ({"field": "x7"}, "connect-token-field")):
            box = self.box({"1password-connect": {"url": URL, "token": f"file:{support.LAB.path('connect-secret')}", "vault": "team", "item": "api", **field}})
            self.assertEqual(self.whoami(box, "/" + value), "200", box.stderr())
            self.assertTrue(self.sent("/" + value)[-1].startswith("Bearer " + value), self.sent("/" + value))

    def assert_signed(self, token, **more):
        """The claims of a token that the key has signed."""
        head, claims, signature = token.split(".")

        def pad(s):
            return base64.urlsafe_b64decode(s + "=" * (-len(s) % 4))
        self.assertEqual(json.loads(pad(head)), {"alg": "RS256", "typ": "JWT", **more})
        public = support.LAB.path("app.pub")
        subprocess.run(["openssl", "pkey", "-in", support.LAB.path("app.pem"), "-pubout", "-out", public], check=True, capture_output=True)
        with open(support.LAB.path("app.sig"), "wb") as f:
            f.write(pad(signature))
        support.LAB.write("app.text", token.rpartition(".")[0])
        subprocess.run(["openssl", "dgst", "-sha256", "-verify", public, "-signature", support.LAB.path("app.sig"), support.LAB.path("app.text")],
                       check=True, capture_output=True)
        return json.loads(pad(claims))

    def test_no_secret_shows(self):
        box = self.box(self.oauth())
        self.assertEqual(self.whoami(box), "200")
        value = self.sent()[0].removeprefix("Bearer ")
        done = box.sh(f"cat {support.LAB.path('client-secret')}; env; curl -sS https://api.lab.test/reflect")
        box.close()
        for secret in (CLIENT_SECRET, value):
            self.assert_no_secret(done.out_bytes, secret)
            self.assert_no_secret(box.stderr().encode(), secret)
            self.assert_no_secret(json.dumps(box.events()).encode(), secret)


class Fails(Fetch):
    def fails(self, source, words, rest="inject: bearer"):
        box = self.box(source, rest)
        r = box.sh("curl -sS -w '%{http_code}' https://api.lab.test/never", timeout=30)
        self.assertEqual(r.out[-3:], "502", r)
        self.assertEqual(self.seen("http", path="/never"), [])
        box.close()
        text = box.stderr()
        self.assertRegex(text, words)
        self.assertNotIn(CLIENT_SECRET, text)
        self.assertNotIn("\x1b", text)
        self.assertNotRegex(r.out, words)  # the sandbox is not told
        return box

    def test_answers(self):
        for path, words in (("/error", "it answered 400: no such..2J client"), ("/busy", "it answered 429: slow_down .and asks to wait"),
                            ("/redirect", "a redirect, and none is followed"), ("/huge", "longer than 1048576 bytes"),
                            ("/long", "longer than a credential may be"), ("/html", "is not JSON"), ("/empty", "has no string access_token"),
                            ("/number", "has no string access_token"), ("/twice", "is not JSON"), ("/cut", "it cannot be asked"),
                            ("/lines", "more than one line"), ("/none", "it answered 404: not_found")):
            with self.subTest(path=path):
                self.fails(self.oauth(URL + path), words)
        self.assertNotIn("/oauth/token", self.paths())

    def test_answers_without_end(self):
        """Slow ones, fast ones, and what is meant to fill memory: none outlasts the time limit, none makes the process grow."""
        for path, words in (("/trickle", "had not answered after 1500 ms|longer than"), ("/flood", "longer than 1048576 bytes"),
                            ("/headers", "it cannot be asked|had not answered"), ("/continue", "had not answered after 1500 ms|it cannot be asked"),
                            ("/gzip", "is not JSON"), ("/deep", "is not JSON")):
            with self.subTest(path=path):
                box = self.fails(self.oauth(URL + path), words, "inject: bearer, timeout: 1500ms")
                self.assertEqual(self.fetches(box), [])

    def test_what_a_service_repeats(self):
        box = self.fails(self.oauth(URL + "/repeats"), r"it answered 400: no ?\*\*\*")
        text = box.stderr() + json.dumps(box.events())
        for secret in (CLIENT_SECRET, urllib.parse.quote_plus(CLIENT_SECRET), base64.b64encode(urllib.parse.quote_plus(CLIENT_SECRET)[:12].encode()).decode()):
            self.assertNotIn(secret, text)
        self.assertNotIn("0123456789", text)

    def test_slow(self):
        self.fails(self.oauth(URL + "/slow"), "had not answered after 700 ms", "inject: bearer, timeout: 700ms")

    def test_not_trusted_or_not_there(self):
        for url, words in ((f"https://x.y.wild.lab.test:{PORT}/oauth/token", "it cannot be asked: SSL"), (f"https://{HOST}:9/x", "it cannot be asked"),
                           ("https://nowhere.lab.test/x", "nowhere.lab.test")):
            with self.subTest(url=url):
                self.fails(self.oauth(url), words)
        self.assertEqual(self.paths(), [])

    def test_wrong_secrets(self):
        other = support.LAB.write("other-secret", "wrong-secret-0123\n", 0o600)
        self.fails({"oauth2": {"token_url": URL + "/oauth/token", "client_id": "agent one", "client_secret": f"file:{other}"}}, "it answered 401: invalid_client")
        self.fails(self.vault("secret/data/agent", token=f"file:{other}"), "it answered 403: permission denied")
        self.fails(self.vault("secret/data/agent", role_id="role-1", secret_id=f"file:{other}"), "it answered 400: invalid role or secret ID")
        self.fails(self.vault("secret/data/none"), "it answered 404")
        self.fails({"github-app": {"url": URL, "app_id": 1, "installation_id": 2, "key": f"file:{other}"}}, "is not an RSA key in PEM")
        self.fails({"1password-connect": {"url": URL, "token": f"file:{other}", "vault": "team", "item": "api"}}, "it answered 401: Invalid bearer token")
        self.fails({"1password-connect": {"url": URL, "token": f"file:{support.LAB.path('connect-secret')}", "vault": "team", "item": "api",
                                          "field": "none"}}, "has no string none")
        self.fails({"token-exchange": {"token_url": URL + "/sts/token", "subject_token": f"file:{other}"}}, "it answered 400: invalid_grant")
        self.fails({"gcp-service-account": {"token_url": URL + "/gcp/token", "key": f"file:{other}", "scope": "a"}}, "is not the key of a service account")
        self.fails(self.vault("secret/data/agent", role_id="role-lines", secret_id=f"file:{support.LAB.path('secret-id-secret')}"), "a line end or another control")
        self.assertEqual(self.paths()[-1], "/v1/auth/approle/login")  # nothing was asked with that token
        two = support.LAB.write("two-secrets", VAULT_TOKEN + "\nX-Injected: two\n", 0o600)
        self.fails(self.vault("secret/data/agent", token=f"file:{two}"), "a line end or another control")
        nul = support.LAB.write("nul-secret", VAULT_TOKEN + "\0more\n", 0o600)
        self.fails(self.vault("secret/data/agent", token=f"file:{nul}"), "has a NUL byte")
        empty = support.LAB.write("empty-secret", "\n", 0o600)
        self.fails(self.vault("secret/data/agent", token=f"file:{empty}"), "is empty or too long")
        self.fails(self.vault("secret/data/agent", token=f"file:{support.LAB.path('not-there')}"), "No such file")


if __name__ == "__main__":
    unittest.main()
