# SPDX-License-Identifier: Apache-2.0
"""What the audit log says of requests with conditions, and the rules that `audit suggest` makes of it."""
import json
import subprocess

import support
import test_bodies
from support import HTTP, SLOW, VETHGUARD, field, policy
from test_mcp import call, message

SECRET = "arguments-never-logged"
CHAT = "/v1/chat/completions"
ASKED = [("/mcp", message("initialize", protocolVersion="2025-06-18"), {"mcp_methods": ["initialize"]}),
         ("/mcp", call("search", q=SECRET), {"mcp_methods": ["tools/call"], "mcp_tools": ["search"]}),
         ("/rpc", json.dumps({"jsonrpc": "2.0", "id": 1, "method": "getStatus", "params": [SECRET]}).encode(), {"jsonrpc_methods": ["getStatus"]}),
         ("/graphql", json.dumps({"query": "query($x: ID) { me: viewer { login } repository(id: $x) { id } }", "variables": {"x": SECRET}}).encode(),
          {"graphql_operations": ["query"], "graphql_fields": ["viewer", "repository"]}),
         (CHAT, json.dumps({"model": "small-1", "messages": [{"role": "user", "content": SECRET}]}).encode(), {"llm_models": ["small-1"]})]
OTHERS = [("/mcp", call("delete_all")), ("/rpc", b'{"jsonrpc":"2.0","id":1,"method":"drop"}'), ("/graphql", b'{"query":"mutation { viewer }"}'),
          ("/graphql", b'{"query":"{ viewer users }"}'), (CHAT, b'{"model":"large-1","messages":[]}'), ("/mcp", b"x"), ("/other", call("search"))]


def suggest(log, *options, status=0):
    r = subprocess.run([VETHGUARD, "audit", "suggest", log, *options], capture_output=True, text=True, timeout=60 * SLOW)
    assert r.returncode == status, r
    return r.stdout


class Learned(test_bodies.Box):
    """Mode observe: nothing is known yet, and the rules for what a program asked for are written from its log."""
    RULES = policy("www.lab.test", "{name: words, to: plain.lab.test, json: {a: b}}", more="mode: observe\ninspect: 4KiB\n")

    def test_a_policy_is_learned(self):
        for path, body, expected in ASKED:
            self.passes(body, path=path)
        self.box.settle()
        for path, body, expected in ASKED:
            self.assertIn(expected, [field(e, "unmapped.request") for e in self.box.events(HTTP) if field(e, "http_request.url.path") == path])
        with open(self.box.audit, encoding="utf-8") as f:
            self.assertNotIn(SECRET, f.read())
        text = suggest(self.box.audit)
        support.LAB.write("learned.yaml", text)
        support.sh(VETHGUARD, "policy", "check", support.LAB.path("learned.yaml"))
        learned = self.box
        with support.Sandbox(text) as self.box:
            for path, body, _ in ASKED:
                self.passes(body, path=path)
            for path, body in OTHERS:
                with self.subTest(body=body):
                    self.refused(body, path=path)
        self.box = learned
        self.assertIn("Left out: ", suggest(self.box.audit, "--policy", support.LAB.path("learned.yaml"), status=1))

    def test_what_is_not_learned(self):
        """Bodies of unknown length, beyond inspect, of other kinds and of allowed requests pass as before, unread."""
        self.passes(call("search"), "Content-Type: application/json", "Transfer-Encoding: chunked", path="/chunked")
        self.passes(call("search", q="x" * 5000), path="/large")
        self.passes(call("search"), "Content-Type: text/plain", path="/plain")
        self.passes(call("search"), host="www.lab.test", path="/allowed")
        self.passes(b"not JSON", path="/broken")
        self.box.settle()
        for path in ("/chunked", "/large", "/plain", "/allowed", "/broken"):
            self.assertIsNone(field(self.box.event(HTTP, **{"http_request.url.path": path}), "unmapped.request"), path)


class Refused(test_bodies.Box):
    """Mode enforce: the names in bodies that rules read."""
    RULES = policy("{name: tools, to: api.lab.test, paths: [/mcp], mcp: {tools: [search]}}",
                   "{name: files, to: api.lab.test, paths: [/mcp], mcp: {tools: [fs_read], arguments: {path: '/data/**'}}}",
                   "{name: all, to: '*.lab.test', paths: ['/free/**']}", deny=("{name: inner, to: www.lab.test}",))

    def test_refused(self):
        self.passes(call("search", q=SECRET), path="/mcp")
        self.passes(call("search"), path="/free/x")
        self.refused(call("fetch"), path="/mcp")
        self.refused(call("fs_read", path="/etc/passwd"), path="/mcp")
        self.refused(b"[" + call("fetch") + b"," + call("write")[:-1] + b',"Method":"x"}]', path="/mcp")
        self.refused(b"{}", host="www.lab.test", path="/free/x")
        self.box.settle()
        asked = [field(e, "unmapped.request") for e in self.box.events(HTTP)]
        for fact in ({"mcp_methods": ["tools/call"], "mcp_tools": ["search"]}, {"mcp_methods": ["tools/call"], "mcp_tools": ["fetch"]},
                     {"value_refused": True, "mcp_methods": ["tools/call"], "mcp_tools": ["fs_read"]}):
            self.assertIn(fact, asked)
        self.assertIn(None, asked, "no rule reads the body of /free/x")
        found = json.loads(suggest(self.box.audit, "--json"))
        self.assertEqual([s["rule"] for s in found["suggested"]],
                         [{"to": "https://api.lab.test", "methods": ["POST"], "paths": ["/mcp"], "mcp": {"tools": ["fetch"]}}])
        self.assertEqual([(e["rule"], e["except"]) for e in found["excepts"]], [("inner", "https://www.lab.test")])
        shown = subprocess.run([VETHGUARD, "audit", "show", self.box.audit], capture_output=True, text=True, timeout=60 * SLOW).stdout
        self.assertIn("POST https://api.lab.test/mcp (fetch)", shown)
