# SPDX-License-Identifier: Apache-2.0
"""Logins inside the sandbox (seal, source: sealed): what a token endpoint gives stays outside, and the sandbox works with texts that
stand for it. None of the tokens ever arrives inside, and none goes where the policy does not say."""
import base64
import gzip
import json
import re
import time

import lab
import support
from login_origin import Origin, part
from support import FINDING, HTTP, policy

PORT = 8449
HOST = f"login.wild.lab.test:{PORT}"
URL = f"https://{HOST}"
LOGIN = "  login: {source: sealed, inject: placeholder, in: [header, basic]}\n"
SEAL = f"{{to: '{URL}', paths: [/token, /revoke, /shape/**], seal: login}}"
DEVICE = f"{{to: '{URL}', paths: [/device/code]}}"
API = f"{{to: '{URL}', paths: [/api/**], credential: login}}"
OPEN = f"{{to: '{URL}', paths: [/open/**]}}"
RULES = (SEAL, DEVICE, API, OPEN, "https://www.lab.test")
MARK = re.compile(r"SECRETOFTHELOGIN")
FORM = "Content-Type: application/x-www-form-urlencoded"
JSON = "Content-Type: application/json"
CODE = "grant_type=authorization_code&code=x"


class Logins(support.WithOrigin, support.Case):
    @classmethod
    def make_origin(cls):
        return Origin(lab.ORIGIN4, PORT, support.LAB.dir)

    def setUp(self):
        super().setUp()
        o = self.origin
        o.shapes.clear()
        o.pending, o.rotates, o.jwt = 0, True, False

    def box(self, rules=RULES, credentials=LOGIN, **kw):
        return self.sandbox(policy(*rules, credentials=credentials), **kw)

    def ask(self, box, path, body="", *fields, method="POST", host="login.wild.lab.test", port=PORT, leaks=False):
        """(status, body, fields) of a request that goes out as it is written here."""
        if body or method == "POST":
            fields = (*fields, f"Content-Length: {len(body)}")
        done = box.py(f"answered(*fetch({host!r}, {path!r}, {method!r}, {port}, {list(fields)!r}, {body.encode()!r}))", timeout=60)
        self.assertEqual(done.status, 0, done)
        if not leaks:
            self.assertIsNone(MARK.search(done.out), done)
        answer = done.json()
        return answer["status"], answer["body"], {n.lower(): v for n, v in dict(answer["fields"]).items()}

    def login(self, box, body=CODE, kind=FORM):
        status, text, _ = self.ask(box, "/token", body, kind)
        self.assertEqual(status, 200, text)
        return json.loads(text)

    def api(self, box, token, path="/api/user", **kw):
        return self.ask(box, path, "", f"Authorization: Bearer {token}", method="GET", **kw)

    def findings(self, box):
        return [t for e in box.events(FINDING) for t in e["finding_info"]["types"]]

    def refused(self, box, answer, words):
        self.assertEqual(answer[0], 502, answer)
        self.assertIn(words, answer[1])
        self.assertEqual(box.events(HTTP)[-1]["action_id"], 2)


class Works(Logins):
    def test_a_login(self):
        box = self.box()
        got = self.login(box)
        self.assertEqual((got["token_type"], got["expires_in"], got["scope"]), ("Bearer", 3600, "a b"))
        for name in ("access_token", "refresh_token"):
            self.assertRegex(got[name], "^vethguard-login-[0-9a-f]{32}-[0-9a-f]{16,18}$")
        self.assertEqual(self.api(box, got["access_token"])[0], 200)
        self.assertIn(self.origin.asked[-1]["headers"]["authorization"][7:], self.origin.live)
        self.assertEqual(self.findings(box), [])
        event = box.event(HTTP, **{"http_request.url.path": "/token"})
        self.assertEqual(event["unmapped"]["credential"], "login")
        self.assertIn("replaced by placeholders", json.dumps(event))

    def test_a_jwt_keeps_its_claims(self):
        self.origin.jwt = True
        box = self.box()
        got = self.login(box)
        for name, claims in (("access_token", {"sub": "agent"}), ("id_token", {"sub": "agent", "iss": "https://login"})):
            head, body, signature = got[name].split(".")
            self.assertIn("alg", json.loads(base64.urlsafe_b64decode(head + "==")))
            self.assertLessEqual(claims.items(), json.loads(base64.urlsafe_b64decode(body + "==")).items())
            self.assertIn(b"vethguard-login-", base64.urlsafe_b64decode(signature + "=="))
        self.assertEqual(self.api(box, got["access_token"])[0], 200)
        self.assertEqual(self.findings(box), [])

    def test_refresh(self):
        for kind in (FORM, JSON):
            for rotates in (True, False):
                self.origin.rotates = rotates
                box = self.box()
                first = self.login(box)
                ask = {"grant_type": "refresh_token", "refresh_token": first["refresh_token"]}
                body = json.dumps(ask) if kind == JSON else "&".join(f"{k}={v}" for k, v in ask.items())
                second = self.login(box, body, kind)
                asked = self.origin.asked[-1]
                self.assertIn("refreshSECRETOFTHELOGIN", asked["body"])
                self.assertEqual(asked["length"], str(len(asked["body"])))
                self.assertNotEqual(second["access_token"], first["access_token"])
                self.assertEqual(second["refresh_token"] == first["refresh_token"], not rotates)
                self.assertEqual(self.api(box, second["access_token"])[0], 200)
                self.assertEqual(self.findings(box), [])

    def test_revocation_by_the_client(self):
        box = self.box()
        token = self.login(box)["access_token"]
        self.assertEqual(self.ask(box, "/revoke", "token=" + token, FORM)[0], 200)
        self.assertEqual(self.api(box, token)[0], 401)

    def test_device_flow(self):
        """As `gh auth login` does it: asks for a code, then polls until the person has agreed."""
        self.origin.pending = 2
        box = self.box()
        code = json.loads(self.ask(box, "/device/code", "client_id=a&scope=repo", FORM)[1])["device_code"]
        poll = f"client_id=a&device_code={code}&grant_type=urn:ietf:params:oauth:grant-type:device_code"
        statuses = []
        for _ in range(3):
            status, text, _ = self.ask(box, "/token", poll, FORM, "Accept: application/json")
            statuses.append(status)
        self.assertEqual(statuses, [400, 400, 200])
        self.assertEqual(self.api(box, json.loads(text)["access_token"])[0], 200)

    def test_basic(self):
        """git sends such a token as a password."""
        box = self.box()
        token = self.login(box)["access_token"]
        pair = base64.b64encode(f"x-access-token:{token}".encode()).decode()
        self.ask(box, "/api/git", "", "Authorization: Basic " + pair, method="GET", leaks=True)
        sent = base64.b64decode(self.origin.asked[-1]["headers"]["authorization"][6:]).decode()
        self.assertRegex(sent, "^x-access-token:accessSECRETOFTHELOGIN")

    def test_many_logins(self):
        """The latest ones work; earlier ones are forgotten in their turn."""
        box = self.box()
        tokens = [self.login(box)["access_token"] for _ in range(12)]
        self.assertEqual(self.api(box, tokens[-1])[0], 200)
        self.assertEqual(self.api(box, tokens[-2])[0], 200)
        self.assertEqual(self.api(box, tokens[0])[0], 401)

    def test_other_names_and_places(self):
        secrets = [f"aSECRETOFTHELOGIN{i}" for i in range(5)]
        self.origin.shapes["/shape/names"] = (200, (JSON.split(": "),), json.dumps(
            {"accessToken": secrets[0], "REFRESH-TOKEN": secrets[1], "deep": [{"id_token": secrets[2]}], "access_token": None,
             "note": "again " + secrets[0], "refresh_token": ""}).encode())
        text = json.loads(self.ask(self.box(), "/shape/names", CODE, FORM)[1])
        self.assertIn("vethguard-login-", text["accessToken"])
        self.assertIn("vethguard-login-", text["REFRESH-TOKEN"])
        self.assertIn("vethguard-login-", text["deep"][0]["id_token"])
        self.assertEqual((text["access_token"], text["refresh_token"]), (None, ""))
        self.assertEqual(text["note"], "again " + "*" * len(secrets[0]))

    def test_http2_to_the_client(self):
        box = self.box()
        done = box.sh(f"curl -sS --http2 -d '{CODE}' {URL}/token")
        self.assertEqual(done.status, 0, done)
        self.assertIsNone(MARK.search(done.out))
        token = json.loads(done.out)["access_token"]
        done = box.sh(f"curl -sS --http2 -H 'Authorization: Bearer {token}' {URL}/api/user")
        self.assertEqual(json.loads(done.out), {"user": "agent"})

    def test_two_sandboxes_know_nothing_of_each_other(self):
        one, other = self.box(), self.box()
        token = self.login(one)["access_token"]
        self.login(other)
        self.assertEqual(self.api(other, token)[0], 401)
        self.assertEqual(self.api(one, token)[0], 200)


class Stays(Logins):
    """Places where a token is not sent."""

    def test_other_places(self):
        box = self.box()
        got = self.login(box)
        token = got["access_token"]
        for path, fields, body in (("/open/x", (f"Authorization: Bearer {token}",), ""), ("/open/x?t=" + token, (), ""),
                                   ("/open/x", (FORM,), "t=" + token), ("/api/x?t=" + token, (), ""), ("/api/" + token, (), ""),
                                   ("/api/x", (FORM,), "t=" + token), ("/device/code", (FORM,), "refresh_token=" + got["refresh_token"]),
                                   ("/token", ("Content-Type: text/plain",), "refresh_token=" + got["refresh_token"])):
            before = len(self.findings(box))
            self.ask(box, path, body, *fields)
            asked = self.origin.asked[-1]
            self.assertIsNone(MARK.search(json.dumps(asked)), asked)
            self.assertGreater(len(self.findings(box)), before, path)

    def test_another_host(self):
        box = self.box()
        token = self.login(box)["access_token"]
        self.api(box, token, "/elsewhere", host="www.lab.test", port=443)
        self.assertEqual(self.seen("http", path="/elsewhere"), [])
        self.assertIsNone(MARK.search(json.dumps(self.seen())))
        self.assertIn("placeholder-leak", self.findings(box))

    def test_a_changed_text_is_no_token(self):
        self.origin.jwt = True
        box = self.box()
        got = self.login(box)
        head, body, signature = got["access_token"].split(".")
        other = part({"sub": "root"})
        for token in (got["refresh_token"][:-1] + "x", got["refresh_token"][:-16], f"{head}.{other}.{signature}", f"{head}.{body}.",
                      f"{head}.{body}.{signature[:-2]}", got["access_token"].upper()):
            self.assertEqual(self.api(box, token)[0], 401, token)
            self.assertIsNone(MARK.search(self.origin.asked[-1]["headers"]["authorization"]), token)

    def test_an_echo_is_masked(self):
        box = self.box()
        got = self.login(box)
        # The answer to an unknown refresh token repeats it; the API repeats what it saw.
        self.origin.refreshes.clear()
        status, text, _ = self.ask(box, "/token", "grant_type=refresh_token&refresh_token=" + got["refresh_token"], FORM)
        self.assertEqual(status, 400)
        self.assertIn("no such refresh token: ****", text)
        self.origin.live.clear()
        status, text, _ = self.api(box, got["access_token"])
        self.assertEqual(status, 401)
        self.assertIn("Bearer ****", text)

    def test_an_echo_in_the_head(self):
        secret = "headSECRETOFTHELOGIN1"
        self.origin.shapes["/shape/head"] = (200, (JSON.split(": "), ("X-Token", secret), ("Set-Cookie", "t=" + secret), ("Digest", "sha=1"),
                                                   ("ETag", '"1"')), json.dumps({"access_token": secret}).encode())
        _, text, fields = self.ask(self.box(), "/shape/head", CODE, FORM)
        self.assertEqual(fields["x-token"], "*" * len(secret))
        self.assertEqual(fields["set-cookie"], "t=" + "*" * len(secret))
        self.assertNotIn("digest", fields)
        self.assertNotIn("etag", fields)
        self.assertEqual(fields["content-length"], str(len(text)))

    def test_after_the_end(self):
        """The keeper of a run ends with it; nothing of a login is left in files."""
        box = self.box()
        token = self.login(box)["access_token"]
        box.close()
        self.assertEqual(self.api(self.box(), token)[0], 401)
        with open(box.audit) as f:
            self.assertIsNone(MARK.search(f.read()))


class Refused(Logins):
    """Answers that cannot be read never pass."""
    SECRET = "rawSECRETOFTHELOGIN1"
    TOKEN = json.dumps({"access_token": SECRET}).encode()

    def shape(self, body=TOKEN, *fields, status=200, box=None, kind="application/json"):
        fields = ((("Content-Type", kind),) if kind else ()) + fields
        self.origin.shapes["/shape/x"] = (status, fields, body)
        return self.ask(box or self.shared, "/shape/x", CODE, FORM)

    def setUp(self):
        super().setUp()
        self.shared = self.box()

    def test_types(self):
        for kind in ("text/html", "application/x-www-form-urlencoded", "text/plain", "application/octet-stream", None, "application/jsonx",
                     "application/xml", "application/json; charset=utf-16", "application/json; charset=iso-2022-jp", "multipart/mixed; boundary=x"):
            self.refused(self.shared, self.shape(kind=kind), "not uncompressed JSON in UTF-8")
        self.assertEqual(self.shape(kind="application/json; charset=utf-8")[0], 200)

    def test_two_types(self):
        self.refused(self.shared, self.shape(self.TOKEN, ("Content-Type", "text/html")), "not uncompressed JSON in UTF-8")

    def test_compressed(self):
        for coding, body in (("gzip", gzip.compress(self.TOKEN)), ("br", self.TOKEN), ("zstd", self.TOKEN), ("deflate", self.TOKEN),
                             ("x", self.TOKEN)):
            self.refused(self.shared, self.shape(body, ("Content-Encoding", coding)), "not uncompressed JSON in UTF-8")
        self.assertEqual(self.origin.asked[-1]["headers"]["accept-encoding"], "identity")

    def test_not_json(self):
        secret = self.SECRET.encode()
        for body in (b"{'access_token': '%s'}" % secret, b'{"access_token": "%s"' % secret, b'{"access_token": "%s"}}' % secret,
                     b'{"access_token": "%s",}' % secret, b'\xef\xbb\xbf{"access_token": "%s"}' % secret, b'{access_token: "%s"}' % secret,
                     b'{"access_token"\x00: "%s"}' % secret, b'[{"access_token": "%s"}' % secret, b'{"a": 01, "access_token": "%s"}' % secret,
                     b'{"a": NaN, "access_token": "%s"}' % secret, b'// c\n{"access_token": "%s"}' % secret, b'{"a": "\n", "access_token": "%s"}' % secret,
                     b'{"a": "\\x41", "access_token": "%s"}' % secret, b"access_token=%s" % secret, b'{"access_token": "%s"} {}' % secret,
                     b'{"access_token": "%s", "access\\u005ftoken": "x"}' % secret, b'{"a": "\\ud83d", "access_token": "%s"}' % secret,
                     b'{"a": "\xff", "access_token": "%s"}' % secret, b'{"a": "\\u0000", "access_token": "%s"}' % secret,
                     b"[" * 65 + b"]" * 65):
            self.refused(self.shared, self.shape(body), "is not the JSON that it promises")

    def test_tokens_that_are_none(self):
        for value in (12345678, ["SECRETOFTHELOGIN"], {"value": "SECRETOFTHELOGIN"}, True, "short", "x" * 8193, "a b SECRETOFTHELOGIN",
                      "t\u00f6SECRETOFTHELOGIN", "a\nSECRETOFTHELOGIN"):
            self.refused(self.shared, self.shape(json.dumps({"access_token": value}).encode()), "cannot be sealed")

    def test_escaped_names_and_values(self):
        text = self.shape(b'{"\\u0061ccess_token": "\\u0072awSECRETOFTHE\\u004cOGIN1", "again": "rawSECRETOFTHE\\u004cOGIN1"}')[1]
        got = json.loads(text)
        self.assertIn("vethguard-login-", got["access_token"])
        self.assertRegex(got["again"], r"^\*+$")

    def test_too_large(self):
        large = json.dumps({"access_token": self.SECRET, "pad": "x" * (49 << 10)}).encode()
        self.refused(self.shared, self.shape(large), "more than 48 KiB")
        chunked = b"%x\r\n%s\r\n0\r\n\r\n" % (len(large), large)
        self.refused(self.shared, self.shape(chunked, ("Transfer-Encoding", "chunked")), "more than 48 KiB")

    def test_chunked(self):
        chunked = b"".join(b"1\r\n%c\r\n" % c for c in self.TOKEN) + b"0\r\nX-Token: %s\r\n\r\n" % self.SECRET.encode()
        self.assertIn("vethguard-login-", self.shape(chunked, ("Transfer-Encoding", "chunked"))[1])

    def test_cut_off(self):
        answer = self.shape(self.TOKEN, ("Content-Length", str(len(self.TOKEN) + 5)), ("Connection", "close"))
        self.assertEqual(answer[0], 502)

    def test_redirects(self):
        for status in (301, 302, 303, 307, 308):
            self.refused(self.shared, self.shape(b"", ("Location", "https://www.lab.test/#access_token=" + self.SECRET), status=status),
                         "is a redirect")

    def test_errors_pass_the_same_way(self):
        self.assertEqual(self.shape(b'{"error": "slow_down"}', status=400)[:2], (400, '{"error": "slow_down"}'))
        self.assertEqual(self.shape(b'"no access"', status=401)[:2], (401, '"no access"'))
        self.refused(self.shared, self.shape(b"<html>" + self.TOKEN, status=500, kind="text/html"), "not uncompressed JSON in UTF-8")
        self.assertEqual(self.shape(b"", status=200)[:2], (200, ""))

    def test_requests_that_cannot_be_filled(self):
        got = self.login(self.shared)
        body = '{"refresh_token": "%s"' % got["refresh_token"]
        status, text, _ = self.ask(self.shared, "/token", body, JSON)
        self.assertEqual((status, "is not the JSON" in text), (400, True), text)
        status, text, _ = self.ask(self.shared, "/token", body + "}", JSON, "Content-Encoding: gzip")
        self.assertEqual((status, "compressed" in text), (415, True), text)
        status, text, _ = self.ask(self.shared, "/token", "a=" + "x" * (1 << 20), FORM)
        self.assertEqual((status, "more than 1 MiB" in text), (413, True), text)

    def test_a_method_override_to_the_token_endpoint(self):
        before = len(self.origin.asked)
        status, _, _ = self.ask(self.shared, "/open/x", CODE, FORM, "X-Original-URL: /token")
        self.assertEqual(status, 403)
        self.assertEqual(len(self.origin.asked), before)

    def test_a_websocket(self):
        self.origin.shapes["/shape/ws"] = (101, (("Upgrade", "websocket"), ("Connection", "Upgrade"),
                                                 ("Sec-WebSocket-Accept", "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=")), b"")
        status, _, _ = self.ask(self.shared, "/shape/ws", "", "Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Version: 13",
                                "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", method="GET")
        self.assertEqual(status, 502)
