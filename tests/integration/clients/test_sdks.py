# SPDX-License-Identifier: Apache-2.0
"""The OpenAI and Anthropic SDKs of npm, and octokit: keys are placeholders, answers stream piece by piece."""
import json

import nodes
import support
from nodes import NodeClient

AI, CLAUDE, TOKEN, HUB, GOOGLE = ("https://%s.node.lab.test" % n for n in ("ai", "claude", "token", "hub", "google"))
TEXT = "The veth is guarded."


@nodes.needs_packages
class Sdks(NodeClient):
    SCRIPT = "sdk.mjs"
    RULES = tuple(f"{{to: '{to}', methods: [GET, POST], paths: [{paths}], credential: {name}}}" for to, paths, name in (
        (AI, "/v1/chat/**, /v1/models, /v1/files, /ack/**", "openai"), (CLAUDE, "/v1/messages, /ack/**", "claude"),
        (TOKEN, "/v1/messages, /ack/**", "token"), (HUB, "/api/**", "hub"),
        (GOOGLE, "/v1/models", "google")))
    CREDENTIALS = {"openai": "inject: bearer, env: OPENAI_API_KEY", "claude": "inject: header, header: x-api-key, env: ANTHROPIC_API_KEY",
                   "token": "inject: bearer, env: ANTHROPIC_AUTH_TOKEN", "hub": "inject: bearer, env: GITHUB_TOKEN",
                   "google": "inject: header, header: x-goog-api-key, env: GEMINI_API_KEY"}

    def test_openai(self):
        def check(box, word):
            answer = self.node(box, "openai", AI)
            self.assertEqual(answer, {"plain": TEXT, "pieces": 6, "models": ["lab-1"], "file": True, "streamed": TEXT})
            self.assert_went(box, path="/v1/chat/completions", authenticated=True)
        self.each(check)

    def check_anthropic(self, base, how, field):
        def check(box, word):
            answer = self.node(box, "anthropic", base, how)
            self.assertEqual((answer["plain"], answer["final"], answer["reason"]), (TEXT, TEXT, "end_turn"), answer)
            self.assertEqual(answer["texts"], ["The ", "veth ", "is ", "guarded", "."])
            self.assertEqual((answer["types"][0], answer["types"][-1]), ("message_start", "message_stop"))
            row = self.assert_went(box, path="/v1/messages", authenticated=True)
            self.assertTrue(support.SECRET in dict(row["headers"])[field], row)
            self.assertNotIn("vethguard", str(row["headers"]), "no placeholder is left")
        self.each(check)

    def test_anthropic_key(self):
        self.check_anthropic(CLAUDE, "key0", "x-api-key")
        self.check_anthropic(CLAUDE, "key1", "x-api-key")

    def test_anthropic_token(self):
        self.check_anthropic(TOKEN, "token0", "authorization")
        self.check_anthropic(TOKEN, "token1", "authorization")

    def test_octokit(self):
        def check(box, word):
            answer = self.node(box, "octokit", HUB)
            self.assertEqual(answer, {"login": "lab", "title": "a bug", "issues": [1, 2, 3, 4, 5, 6], "graph": "lab", "file": True})
            self.assert_went(box, path="/api/v3/user", authenticated=True)
        self.each(check)

    def test_keys_are_placeholders(self):
        def check(box, word):
            out = box.sh("env").out
            self.assertRegex(out, r"OPENAI_API_KEY=sk-vethguard-\w{16}")
            self.assertRegex(out, r"GITHUB_TOKEN=ghp_vethguard\w{16}")
            self.assertRegex(out, r"ANTHROPIC_API_KEY=\S*vethguard\S{16}")
            self.assert_no_secret(out)
        self.each(check)

    def test_openai_refused(self):
        def check(box, word):
            answer = self.node(box, "openaiRefused", AI)
            self.assertEqual((answer["away"]["name"], answer["away"]["status"]), ("PermissionDeniedError", 403), answer)
            # Through the proxy the refusal answers CONNECT, and the SDK sees no connection.
            aside = ("PermissionDeniedError", 403) if word == "transparent" else ("APIConnectionError", None)
            self.assertEqual((answer["aside"]["name"], answer["aside"].get("status")), aside, answer)
            self.assertEqual(self.seen("evil") + self.seen("request"), [])
        self.each(check)

    def test_anthropic_refused(self):
        def check(box, word):
            for how in ("key0", "key1"):
                answer = self.node(box, "anthropicRefused", CLAUDE, how)
                self.assertEqual(answer, {"name": "PermissionDeniedError", "status": 403})
            self.assertEqual(self.seen("request"), [])
        self.each(check)

    def test_octokit_refused(self):
        def check(box, word):
            answer = self.node(box, "octokitRefused", HUB)
            self.assertEqual((answer["status"], answer["type"]), (403, "application/json"))
            self.assert_denied(box, answer["data"])
            self.assertEqual(self.seen("request"), [])
        self.each(check)

    def test_a_user_reads_why(self):
        """The error that each SDK prints holds the sentence of the denial, with the event's id; its own key's placeholder in the
        refused request is not a finding."""
        def check(box, word):
            before = len(box.events(support.FINDING))  # other tests share the box
            for which, base, asked in (("openai", AI, "POST /v1/moderations"), ("key0", CLAUDE, "GET /v1/models"),
                                       ("key1", CLAUDE, "GET /v1/models"), ("octokit", HUB, "DELETE /api/v3/repos/acme/widgets"),
                                       ("google", GOOGLE, "POST /v1beta/models/lab-1:generateContent"),
                                       ("axios", GOOGLE, "DELETE /denied"), ("got", GOOGLE, "DELETE /denied")):
                answer = self.node(box, "denied", which, base)
                self.assertEqual(answer["status"], 403, answer)
                method, path = asked.split()
                event = [e for e in box.events() if support.field(e, "http_request.url.path") == path][-1]
                sentence = f"vethguard: {method} {base}{path}: {event['status_detail']} (event {event['metadata']['uid']})"
                # axios and got tell the status in the message; what the server said is in what node prints, and in the body.
                shown = answer["printed"] if which == "axios" else answer["body"]["message"] if which == "got" else answer["message"]
                self.assertIn(sentence, shown.replace('\\"', '"'), (which, answer))
            self.assertEqual(box.events(support.FINDING)[before:], [])
            self.assertEqual(self.seen("request"), [])
        self.each(check)

    def test_a_key_of_ones_own(self):
        """Whatever the sandbox sends in the credential's field is replaced."""
        def check(box, word):
            for base, how in ((CLAUDE, "key0"), (TOKEN, "key1")):
                answer = self.node(box, "anthropic", base, how, env={"ANTHROPIC_API_KEY": "sk-ant-mine-0123456789"})
                self.assertEqual(answer.get("plain"), TEXT, answer)
                self.assert_never_seen("sk-ant-mine-0123456789")
        self.each(check)

    def test_a_key_of_another_service(self):
        """The SDK of one service at the host of another: the rule's paths refuse it."""
        def check(box, word):
            answer = self.node(box, "openai", HUB)
            self.assertEqual(answer.get("status"), 403, answer)
            self.assertEqual(self.seen("request"), [])
        self.each(check)


del NodeClient
