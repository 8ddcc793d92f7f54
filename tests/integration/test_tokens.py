# SPDX-License-Identifier: Apache-2.0
"""Budgets of tokens and cost: counted from what a model's answer tells, whole or as a stream; estimated where it does not tell."""
import base64
import gzip
import json

import support
from support import SLOW, policy

CHAT = {"usage": {"prompt_tokens": 100, "completion_tokens": 20, "prompt_tokens_details": {"cached_tokens": 60}}}
MESSAGES = {"usage": {"input_tokens": 40, "cache_read_input_tokens": 60, "output_tokens": 20}}
GEMINI = {"usageMetadata": {"promptTokenCount": 100, "cachedContentTokenCount": 60, "candidatesTokenCount": 15, "thoughtsTokenCount": 5}}
CONVERSE = {"usage": {"inputTokens": 40, "cacheReadInputTokens": 60, "outputTokens": 20}}
STREAM = (b'event: message_start\ndata: {"message":{"usage":{"input_tokens":40,"cache_read_input_tokens":60,"output_tokens":1}}}\n\n',
          b'data: {"delta":{"text":"\\"output_tokens\\": 99999"}}\n\n', b'data: {"usage":{"output_tokens":20}}\n\n')
SHAPES = {"chat": CHAT, "messages": MESSAGES, "gemini": GEMINI, "converse": CONVERSE}


def rule(name, more):
    return f"{{name: {name}, to: api.lab.test, paths: ['/say/{name}'], {more}}}"


class Talking(support.Boxed):
    def say(self, name, *pieces, kind="application/json", status=200, more=()):
        """What the origin answers at /say/NAME from now on."""
        pieces = [p if isinstance(p, bytes) else json.dumps(p).encode() for p in pieces]
        support.LAB.write("say-" + name, json.dumps({"status": status, "headers": [["Content-Type", kind], *more],
                                                     "pieces": [base64.b64encode(p).decode() for p in pieces]}))

    def ask(self, name, *more, body="{}", host="api.lab.test"):
        """The status of a request, and its answer."""
        out = self.box.run("curl", "-sS", "-m", str(10 * SLOW), "-w", "\n%{http_code}", "-d", body, *more, f"https://{host}/say/{name}").out
        answer, _, status = out.rpartition("\n")
        return int(status), answer

    def assert_fits(self, name, times, kind="tokens", **kw):
        """So many requests pass, and the next is refused."""
        for i in range(times):
            self.assertEqual(self.ask(name, **kw)[0], 200, (name, i))
        status, answer = self.ask(name, **kw)
        self.assertEqual(status, 429, (name, answer))
        self.assertEqual(json.loads(answer)["limit"]["kind"], kind, answer)


class Counting(Talking):
    @classmethod
    def make_box(cls):
        names = [f"{shape}{version}" for shape in SHAPES for version in (1, 2)]
        return support.Sandbox(policy(
            *(rule(name, "budget: {tokens: 300/1h}") for name in names),
            rule("stream", "budget: {tokens: 300/1h}"),
            rule("weighed", "budget: {tokens: 171/1h}, weights: {input: 2, cached: 0.1, output: 0.25}"),
            rule("priced", "budget: {cost: 0.001/1h}, prices: {input: 3, cached: 0.3, output: 15}"),
            rule("silent", "budget: {tokens: 900/1h}"), rule("packed", "budget: {tokens: 300/1h}"), rule("early", "budget: {tokens: 500/1h}"),
            rule("failing", "budget: {tokens: 100/1h}"), rule("lists", "budget: {tokens: 100/1h}"), rule("head", "budget: {tokens: 300/1h}"),
            rule("free", "methods: [POST]"), rule("upgraded", "budget: {tokens: 100/1h}"),
            rule("shared1", "weights: {input: 1}"), rule("shared2", "llm: {models: ['*']}"),
            more="limits: {tokens: 1000000/1h}\n"))

    def test_shapes(self):
        for shape, answer in SHAPES.items():
            for version in (1, 2):
                self.say(f"{shape}{version}", answer)
                way = "--http1.1" if version == 1 else "--http2"
                for i in range(3):  # 120 each: the third begins with 60 left, and takes more
                    self.assertEqual(self.ask(f"{shape}{version}", way)[0], 200, (shape, version, i))
                self.assertEqual(self.ask(f"{shape}{version}", way)[0], 429, (shape, version))

    def test_a_stream(self):
        """Sums that grow count once, a piece of a word is no end, and text of the model is none."""
        text = b"".join(STREAM)
        self.say("stream", *(text[i:i + 7] for i in range(0, len(text), 7)), kind="text/event-stream")
        self.assert_fits("stream", 3)

    def test_weights(self):
        self.say("weighed", CHAT)  # 40*2 + 60*0.1 + 20*0.25 = 91
        self.assert_fits("weighed", 2)

    def test_prices(self):
        self.say("priced", CHAT)  # (40*3 + 60*0.3 + 20*15)/1M = 0.000438
        self.assert_fits("priced", 3, kind="cost")

    def test_no_numbers(self):
        """Without numbers four bytes of content, of request and response, count as one token."""
        self.say("silent", b"{" + b" " * 1998 + b"}")  # 500, and the request's
        self.assert_fits("silent", 2)

    def test_compressed(self):
        """The upstream is asked for plain content. If it compresses all the same, the estimate is higher."""
        self.say("packed", gzip.compress(json.dumps(CHAT).encode() * 20), more=[["Content-Encoding", "gzip"]])
        seen = self.ask("packed", "-H", "Accept-Encoding: gzip", "-o", "/dev/null")
        self.assertEqual(seen[0], 200)
        for _ in range(3):
            status, _ = self.ask("packed", "-o", "/dev/null")
        self.assertEqual(status, 429)

    def test_a_client_that_ends_early(self):
        """What the server has sent by then is estimated, even if the content began with smaller numbers."""
        self.say("early", b'{"usage":{"input_tokens":1,"output_tokens":1}}', *(b"x" * 1000 for _ in range(400)))
        for _ in range(3):
            self.box.sh("curl -sS -N -d '{}' https://api.lab.test/say/early | head -c 3000 >/dev/null")
        self.assertEqual(self.ask("early")[0], 429)

    def test_what_costs_nothing(self):
        """Errors of the server, unless they tell numbers, and requests without content cost nothing."""
        self.say("failing", b"x" * 4000, status=500)
        for _ in range(3):
            self.assertEqual(self.ask("failing")[0], 500)
        self.say("failing", CHAT, status=400)  # it says that it took some all the same
        self.assertEqual(self.ask("failing")[0], 400)
        self.assertEqual(self.ask("failing")[0], 429)
        self.say("lists", b"y" * 4000)
        for _ in range(3):
            self.assertEqual(self.box.run("curl", "-sS", "-o", "/dev/null", "-w", "%{http_code}", "https://api.lab.test/say/lists").out, "200")

    def test_fields_of_the_head(self):
        self.say("head", b"[]", more=[["X-Amzn-Bedrock-Input-Token-Count", "100"], ["X-Amzn-Bedrock-Output-Token-Count", "20"]])
        self.assert_fits("head", 3)

    def test_rules_without(self):
        """They are not counted; those with llm or weights count for the policy's limit."""
        self.say("free", CHAT)
        self.assertEqual(self.ask("free", "-H", "Accept-Encoding: gzip")[0], 200)

    def test_another_protocol(self):
        r = self.box.run("curl", "-sS", "--http1.1", "-H", "Connection: Upgrade", "-H", "Upgrade: websocket", "-H", "Sec-WebSocket-Version: 13",
                         "-H", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", "https://api.lab.test/say/upgraded")
        self.assertIn("counts tokens", r.out, r)


class Policies(Talking):
    """The policy's own limit, over several rules."""
    @classmethod
    def make_box(cls):
        return support.Sandbox(policy(rule("one", "weights: {input: 1}"), rule("two", "prices: {output: 1000}"), rule("other", "methods: [POST]"),
                                      more="limits: {tokens: 300/1h}\nbudget: {cost: 1/1h}\n"))

    def test_together(self):
        for name in ("one", "two", "other"):
            self.say(name, CHAT)
        self.assertEqual([self.ask(name)[0] for name in ("one", "two", "other", "one", "two", "one", "other")], [200, 200, 200, 200, 429, 429, 200])


del Talking
