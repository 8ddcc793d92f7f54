# SPDX-License-Identifier: Apache-2.0
"""Rules that read a request's body: nothing of it leaves before the whole of it was judged, and what was judged is what leaves."""
import hashlib
import json

import support
from support import FINDING, HTTP, file_credential, policy

MODEL = "json: {model: ['gpt-4*', o3], max_tokens: {max: 4096}, user: ~}"
GOOD = b'{"model":"gpt-4o","max_tokens":100,"messages":[{"role":"user","content":"x"}]}'
VERSIONS = ("--http1.1", "--http2")
INSPECT = 64 << 10


class Box(support.Boxed):
    @classmethod
    def make_box(cls):
        return support.Sandbox(cls.RULES if isinstance(cls.RULES, str) else cls.RULES())

    def write(self, body):
        path = support.LAB.path("body-sent")
        with open(path, "wb") as f:
            f.write(body)
        return path

    def post(self, body, *fields, host="api.lab.test", path="/chat", version="--http1.1", more="", form=False):
        """(status, answer) of a body that curl sends byte for byte."""
        fields = fields or (("Content-Type: application/x-www-form-urlencoded",) if form else ("Content-Type: application/json",))
        argv = " ".join(f"-H '{f}'" for f in fields)
        if not any(f.lower().startswith("content-type:") for f in fields):
            argv += " -H 'Content-Type:'"
        out = self.box.sh(f"curl -sS {version} -w '\\n%{{http_code}}' {argv} {more} --data-binary @{self.write(body)} 'https://{host}{path}'").out
        text, _, status = out.rpartition("\n")
        return int(status), text

    def passes(self, body, *fields, **kw):
        status, text = self.post(body, *fields, **kw)
        self.assertEqual(status, 200, (body[:200], fields, kw, text))
        seen = self.seen("http")[-1]
        self.assertEqual((seen["body"], seen["sha256"]), (len(body), hashlib.sha256(body).hexdigest()))
        return seen

    def refused(self, body, *fields, status=403, **kw):
        at = self._seen_size()
        got, text = self.post(body, *fields, **kw)
        self.assertEqual(got, status, (body[:200], fields, kw, text))
        self.seen_at = at
        self.assertEqual(self.seen("http"), [])
        return text


class Json(Box):
    RULES = policy(f"{{name: chat, to: api.lab.test, methods: [POST], paths: [/chat], {MODEL}}}", "{name: www, to: www.lab.test}",
                   "{name: plain, to: 'http://plain.lab.test', json: {a: b}}",
                   deny=("{name: tools, to: www.lab.test, json: {method: 'tools/*'}, reason: No tools.}",), more="inspect: 64KiB\n")

    def test_allowed(self):
        for version in VERSIONS:
            self.passes(GOOD, version=version)
            self.passes(b' {"other": [1, {"model": "x"}], "max_tokens": 4096, "mod\\u0065l": "o3"}\r\n', version=version)
            self.passes(GOOD, "Content-Type: application/json; charset=utf-8", version=version)
            self.passes(GOOD, "Content-Type: application/json", "Transfer-Encoding: chunked", version="--http1.1")

    def test_refused(self):
        """Bodies that another reader than vethguard could take for something allowed."""
        rows = [b'{"model":"o4","max_tokens":1}', b'{"model":"gpt-4o","max_tokens":4097}', b'{"model":"gpt-4o"}', b'{}', b'[]', b'x',
                b'{"model":"gpt-4o","max_tokens":1,"user":null}', b'{"model":"o3","max_tokens":1,"model":"o4"}',
                b'{"model":"o3","max_tokens":1,"Model":"o4"}', b'{"model":"o3","max_tokens":1,"maxTokens":9999}',
                b'{"model":"o3","max_tokens":1,"\\u006dodel":"o4"}', b'\xef\xbb\xbf' + GOOD, GOOD.decode().encode("utf-16"), GOOD + b"{}",
                GOOD[:-1], b'{"model":"o3","max_tokens":1,"x":"\xff"}', b'{"model":"o3","max_tokens":1,"x":{"y":1,"y":2}}',
                b'[{"model":"o3","max_tokens":1}]', b'{"model":["o3"],"max_tokens":1}', b'{"model":"o3","max_tokens":"1"}',
                b'{"model":"o3","max_tokens":1} // {"model":"o4"}', b'{"model":"o3","max_tokens":1,"x":' + b'[' * 99 + b']' * 99 + b'}']
        for version in VERSIONS:
            for body in rows:
                with self.subTest(body=body, version=version):
                    self.refused(body, version=version)

    def test_types_and_codings(self):
        rows = [("Content-Type: text/plain",), ("X-A: b",), ("Content-Type: application/json; charset=utf-16",),
                ("Content-Type: application/json", "Content_Type: text/plain"), ("Content-Type: application/json", "Content-Encoding: gzip"),
                ("Content-Type: application/json", "Content_Encoding: br"), ("Content-Type: multipart/form-data; boundary=x",)]
        for version in VERSIONS:
            for fields in rows:
                with self.subTest(fields=fields, version=version):
                    self.refused(GOOD, *fields, version=version)
        out = json.loads(self.refused(GOOD, "Content-Type: application/json", "Content-Encoding: gzip"))
        self.assertIn("content coding", json.dumps(out))
        self.assertEqual(self.assert_denied(self.box, out)["status_code"], "condition")

    def test_denied(self):
        for version in VERSIONS:
            for body in (b'{"method":"tools/call"}', b'{"METHOD":["TOOLS/list"]}', b'[{"method":"x"},{"method":"tools/list"}]', b'{"method":"x"', b'\xff'):
                with self.subTest(body=body, version=version):
                    self.refused(body, host="www.lab.test", version=version)
            self.refused(b"a=b", form=True, host="www.lab.test", version=version)
            self.passes(b'{"method":"initialize"}', host="www.lab.test", version=version)
        text = self.refused(b'{"method":"tools/call"}', host="www.lab.test")
        self.assertEqual((json.loads(text)["reason"], json.loads(text)["rule"]), ("No tools.", "tools"))
        self.assertNotIn("000", self.box.sh("curl -sS -o /dev/null -w '%{http_code}' https://www.lab.test/").out)

    def test_bound(self):
        """Up to inspect a body is read, whatever its framing; beyond it is refused, and nothing of it has left."""
        fits = GOOD[:-1] + b',"x":"' + b"y" * (INSPECT - len(GOOD) - 7) + b'"}'
        self.assertEqual(len(fits), INSPECT)
        for version in VERSIONS:
            self.passes(fits, version=version)
            self.refused(fits + b" ", status=413, version=version)
            self.refused(b" " * (4 << 20), status=413, version=version, more="-H 'Expect:'")
        self.passes(fits, "Content-Type: application/json", "Transfer-Encoding: chunked")
        self.refused(fits + b" ", "Content-Type: application/json", "Transfer-Encoding: chunked", status=413)
        self.refused(b" " * (1 << 20), host="www.lab.test", status=413)
        self.assertIn("inspect", self.refused(fits + b" ", status=413))
        self.assertIsNotNone(self.box.event(HTTP, status_code="condition"))

    def test_nothing_leaves_before_the_end(self):
        at = self._seen_size()
        code = (f"body = {GOOD!r}\ns = tls('api.lab.test')\n"
                "s.sendall(request('POST', '/chat', 'api.lab.test', 'Content-Type: application/json', f'Content-Length: {len(body)}', body=body[:-1]))\n"
                "s.settimeout(2)\ntry: print('early', s.recv(100))\nexcept TimeoutError: print('waits')\n")
        self.assertIn("waits", self.py(code + "s.close()"))
        self.seen_at = at
        self.assertEqual(self.seen("http"), [])
        self.assertIn("200", self.py(code + "s.settimeout(60); s.sendall(body[-1:]); print(Reader(s).response()[0])"))

    def test_chunks_and_trailers(self):
        """A held body goes on with its length and without trailers; chunk extensions are gone."""
        code = ("s = tls('api.lab.test'); s.sendall(request('POST', '/chat', 'api.lab.test', 'Content-Type: application/json', 'Transfer-Encoding: chunked', 'Trailer: X-T'))\n"
                f"for c in {GOOD!r}: s.sendall(b'1;ext=model\\r\\n' + bytes([c]) + b'\\r\\n')\n"
                "s.sendall(b'0\\r\\nX-T: evil\\r\\n\\r\\n'); r = Reader(s); print(r.response()[0])\n"
                "s.sendall(request('POST', '/chat', 'api.lab.test', 'Content-Type: application/json', 'Content-Length: 2', body=b'{}')); print(r.response()[0])\n"
                f"s.sendall(request('POST', '/chat', 'api.lab.test', 'Content-Type: application/json', 'Content-Length: {len(GOOD)}', body={GOOD!r})); print(r.response()[0])")
        self.assertEqual(self.py(code).split(), ["200", "403", "200"])
        first, last = self.seen("http")
        self.assertEqual(first["sha256"], hashlib.sha256(GOOD).hexdigest())
        names = {k.lower(): v for k, v in first["headers"]}
        self.assertEqual(names.get("content-length"), str(len(GOOD)))
        self.assertNotIn("transfer-encoding", names)
        self.assertNotIn("evil", json.dumps(self.seen("http")))

    def test_expect(self):
        """The client is told to go on with a body that may be held, and not with one that is too large."""
        ask = ("s = tls('api.lab.test'); s.sendall(request('POST', '/chat', 'api.lab.test', 'Content-Type: application/json', 'Expect: 100-continue',"
               " 'Content-Length: {n}')); r = Reader(s); print(r.response()[0]); s.sendall({body!r}); print(r.response()[0])")
        self.assertEqual(self.py(ask.format(n=len(GOOD), body=GOOD)).split(), ["100", "200"])
        out = self.py("s = tls('api.lab.test'); s.sendall(request('POST', '/chat', 'api.lab.test', 'Content-Type: application/json', 'Expect: 100-continue',"
                      f" 'Content-Length: {INSPECT + 1}')); print(Reader(s).response()[0])")
        self.assertEqual(out.split(), ["413"])

    def test_plain_http(self):
        for body, want in ((b'{"a":"b"}', "200"), (b'{"a":"c"}', "403"), (b'{"a":"b","a":"b"}', "403")):
            out = self.py(f"print(fetch('plain.lab.test', '/', 'POST', 80, ('Content-Type: application/json', 'Content-Length: {len(body)}'), {body!r}, plain=True)[0])")
            self.assertIn(want, out)

    def test_many_streams(self):
        """Streams of one HTTP/2 connection hold their bodies beside each other."""
        good, bad = self.write(GOOD), support.LAB.path("body-bad")
        with open(bad, "wb") as f:
            f.write(b'{"model":"o4"}')
        parts = " --next ".join(f"-sS --http2 -o /dev/null -w '%{{http_code}} ' -H 'Content-Type: application/json' --data-binary @{good if i % 3 else bad}"
                                " https://api.lab.test/chat" for i in range(12))
        self.assertEqual(self.box.sh(f"curl --parallel {parts}").out.split().count("200"), 8)
        self.assertEqual(len(self.seen("http")), 8)

    def test_a_client_that_leaves(self):
        self.py("s = tls('api.lab.test'); s.sendall(request('POST', '/chat', 'api.lab.test', 'Content-Type: application/json', 'Content-Length: 50', body=b'{')); s.close()")
        self.passes(GOOD)

    def test_a_method_in_a_field(self):
        self.refused(GOOD, "Content-Type: application/json", "X-Original-URL: /other")
        self.passes(GOOD, "Content-Type: application/json", "X-Original-URL: /chat")
        self.refused(b"{}", "Content-Type: application/json", "X-Original-URL: /chat")

    def test_answers(self):
        out = json.loads(self.refused(b'{"model":"o4","max_tokens":1}'))
        self.assertIn('the body\'s value "/model" is not what the rule asks for; rule "chat" allows json /max_tokens', out["detail"])
        self.assertNotIn("o4", json.dumps(out))
        self.assertIn("bodies", out["advice"])


class Forms(Box):
    RULES = policy("{name: token, to: api.lab.test, methods: [POST], form: {grant_type: client_credentials, scope: 'read*', '*': ~}}")

    def test_forms(self):
        good = (b"grant_type=client_credentials&scope=read", b"scope=reader&grant%5Ftype=client%5fcredentials")
        bad = (b"", b"grant_type=password&scope=read", b"grant_type=client_credentials", b"grant_type=client_credentials&scope=read&scope=write",
               b"grant_type=client_credentials&scope=read&Scope=write", b"grant_type=client_credentials&scope=read&x=1",
               b"grant_type=client_credentials&scope=read;x", b"grant_type=client_credentials&scope=read\n", b"grant_type=client_credentials&scope=%zz",
               b"grant_type=client_credentials&scope[]=read", b'{"grant_type":"client_credentials"}')
        for version in VERSIONS:
            for body in good:
                self.passes(body, form=True, version=version)
            for body in bad:
                with self.subTest(body=body, version=version):
                    self.refused(body, form=True, version=version)
            self.refused(good[0], "Content-Type: application/json", version=version)


class Messages(Box):
    """JSON-RPC, as MCP speaks it: each message of a body has to do."""
    RULES = policy("{name: talk, to: api.lab.test, methods: [POST], jsonrpc: {methods: [initialize, tools/list, 'notifications/*']}}",
                   "{name: call, to: api.lab.test, methods: [POST], jsonrpc: {methods: tools/call, params: {name: [search, 'fs_*'], /arguments/path: '/data/*'}}}",
                   "{to: www.lab.test}", deny=("{name: no, to: www.lab.test, jsonrpc: {methods: tools/call, params: {name: 'rm*'}}}",))

    @staticmethod
    def message(method, name=None, path="/data/x", **more):
        params = {"params": {"name": name, "arguments": {"path": path}}} if name else {}
        return {"jsonrpc": "2.0", "id": 1, "method": method, **params, **more}

    def test_messages(self):
        call = self.message("tools/call", "search")
        good = (self.message("initialize"), self.message("notifications/initialized"), call, [call, self.message("tools/call", "fs_read")],
                [self.message("initialize"), self.message("tools/list")])
        bad = (self.message("tools/call", "delete"), self.message("tools/call", "search", "/etc/passwd"), self.message("resources/read"), [], {}, [call, {}],
               [call, self.message("tools/call", "delete")], [call, self.message("initialize")], [[call]], {**call, "jsonrpc": "1.0"}, {**call, "Method": "x"},
               {**call, "params": ["search"]}, {"jsonrpc": "2.0", "id": 1, "result": {}})
        for version in VERSIONS:
            for body in good:
                self.passes(json.dumps(body).encode(), version=version)
            for body in bad:
                with self.subTest(body=body, version=version):
                    self.refused(json.dumps(body).encode(), version=version)
            self.refused(json.dumps([self.message("x"), self.message("tools/call", "rm_all")]).encode(), host="www.lab.test", version=version)
            self.refused(json.dumps({"METHOD": "tools/call", "params": [{"name": "RM"}]}).encode(), host="www.lab.test", version=version)
            self.passes(json.dumps(self.message("tools/call", "ls")).encode(), host="www.lab.test", version=version)


class Credentials(Box):
    """The body decides which account a request gets; a held body is searched like any other."""

    @staticmethod
    def RULES():
        return policy("{name: one, to: api.lab.test, json: {account: one}, credential: api}", "{name: two, to: api.lab.test, json: {account: two}}",
                      credentials=file_credential())

    def test_accounts(self):
        for version in VERSIONS:
            for account, secret in (("one", True), ("two", False)):
                seen = self.passes(json.dumps({"account": account}).encode(), version=version)
                self.assertEqual(support.holds_secret(json.dumps(seen["headers"])) is not None, secret, account)
            self.refused(b'{"account":"three"}', version=version)

    def test_placeholder_in_a_body(self):
        placeholder = self.box.sh("printf %s $API_KEY").out
        self.refused(json.dumps({"account": "two", "key": placeholder}).encode())
        self.assertIsNotNone(self.box.event(FINDING))


class Observe(Box):
    RULES = policy("{name: a, to: api.lab.test, json: {a: b}}", more="mode: observe\ninspect: 1KiB\n")

    def test_observed(self):
        self.passes(b'{"a":"b"}')
        self.passes(b'{"a":"c"}')
        self.assertIsNotNone(self.box.event(HTTP, action_id=3, status_code="condition"))
        self.passes(b"x", "Content-Type: text/plain")
        self.refused(b" " * 1025, status=413)


class Models(Box):
    RULES = policy("{name: small, to: api.lab.test, llm: {models: [small, 'mini-*'], max_output_tokens: 100}}", "{name: www, to: www.lab.test}",
                   deny=("{name: none, to: www.lab.test, llm: {models: 'large*'}}",))

    def test_models(self):
        good = [("/v1/chat/completions", {"model": "small", "max_tokens": 50, "n": 2}), ("/v1/messages", {"model": "mini-1", "max_tokens": 100}),
                ("/v1/responses", {"model": "small", "max_output_tokens": 1}), ("/v1beta/models/small:generateContent", {"generationConfig": {"maxOutputTokens": 9}}),
                ("/model/mini-v1%3A0/converse", {"inferenceConfig": {"maxTokens": 100}})]
        bad = [("/v1/chat/completions", {"model": "large", "max_tokens": 1}), ("/v1/chat/completions", {"model": "small"}),
               ("/v1/chat/completions", {"model": "small", "max_tokens": 51, "n": 2}), ("/v1/chat/completions/", {"model": "small", "max_tokens": 1}),
               ("/v1/messages", {"model": "small", "max_tokens": 101}), ("/v1/messages", {"model": "small", "max_tokens": 1, "fallbacks": ["large"]}),
               ("/v1beta/models/large:generateContent", {"generationConfig": {"maxOutputTokens": 9}}), ("/v1beta/models/small:generateContent", {}),
               ("/model/large/converse", {"inferenceConfig": {"maxTokens": 1}}), ("/v1/images", {"model": "small"})]
        for version in VERSIONS:
            for path, body in good:
                with self.subTest(path=path, body=body, version=version):
                    self.passes(json.dumps(body).encode(), path=path, version=version)
            for path, body in bad:
                with self.subTest(path=path, body=body, version=version):
                    self.refused(json.dumps(body).encode(), path=path, version=version)
            self.refused(b'{"model":"large-2"}', path="/any", host="www.lab.test", version=version)
            self.refused(b"{}", path="/v1beta/models/large-2:generateContent", host="www.lab.test", version=version)
            self.passes(b'{"model":"small"}', path="/any", host="www.lab.test", version=version)
