# SPDX-License-Identifier: Apache-2.0
"""inject: placeholder in the path, in forms, JSON and multipart bodies: the value takes the placeholder's place, escaped for where it
stands, and lengths are right; nowhere else, and not in what cannot be read whole."""
import gzip
import json
import urllib.parse

import lab
import support
from login_origin import Origin
from support import FINDING, policy

PORT = 8453
HOST = f"api.lab.test:{PORT}"
VALUE = 'va"l\\ue&=+/%100? SECRETOFTHELOGIN'
PLACES = "path, query, form, json, multipart"
FORM = "Content-Type: application/x-www-form-urlencoded"
JSON = "Content-Type: application/json"
PARTS = "Content-Type: multipart/form-data; boundary="


class Bodies(support.WithOrigin, support.Case):
    @classmethod
    def make_origin(cls):
        return Origin(lab.ORIGIN4, PORT, support.LAB.dir)

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.path = support.LAB.write("bodies-value", VALUE + "\n", 0o600)

    def setUp(self):
        super().setUp()
        self.origin.shapes.clear()

    def box(self, places=PLACES):
        return self.sandbox(policy(f"{{to: 'https://{HOST}', paths: [/in/**], credential: key}}", f"{{to: 'https://{HOST}', paths: [/out/**]}}",
                                   credentials=f"  key: {{source: 'file:{self.path}', inject: placeholder, in: [{places}], env: KEY}}\n"))

    def send(self, box, body, *fields, path="/in/x", length=True, chunks=None):
        """The status, of a body in which KEY stands for the placeholder; and what arrived, if anything did."""
        before = len(self.origin.asked)
        more = "" if length else "fields = fields[:-1]\n"
        code = (f"import os\nkey = os.environ['KEY'].encode()\nbody = {body!r}.replace(b'KEY', key)\n"
                f"fields = [*{list(fields)!r}, 'Content-Length: %d' % len(body)]\n{more}"
                f"path = {path!r}.replace('KEY', key.decode())\n")
        if chunks:
            code += (f"n = {chunks}\nout = b''.join(b'%x\\r\\n%s\\r\\n' % (len(body[i:i + n]), body[i:i + n]) for i in range(0, len(body), n)) + b'0\\r\\n\\r\\n'\n"
                     "fields = [*fields[:-1], 'Transfer-Encoding: chunked']\n")
        else:
            code += "out = body\n"
        code += f"answered(*fetch('api.lab.test', path, 'POST', {PORT}, fields, out))"
        done = box.py(code, timeout=60)
        self.assertEqual(done.status, 0, done)
        self.assertNotIn("SECRETOFTHELOGIN", done.out)
        asked = self.origin.asked[before:]
        if asked:
            self.assertEqual(int(asked[0]["length"]), len(asked[0]["body"]))
        return done.json()["status"], done.json()["body"], asked[0] if asked else None

    def leaks(self, box):
        return [t for e in box.events(FINDING) for t in e["finding_info"]["types"]].count("placeholder-leak")

    def multipart(self, *contents, boundary=b"xYz", end=b"--\r\n", head=b'Content-Disposition: form-data; name="a"'):
        return b"".join(b"--%s\r\n%s\r\n\r\n%s\r\n" % (boundary, head, c) for c in contents) + b"--%s%s" % (boundary, end)


class Replaced(Bodies):
    def test_form(self):
        box = self.box()
        for kw in ({}, {"chunks": 1}, {"chunks": 7}):
            _, _, asked = self.send(box, b"a=1&key=KEY&again=KEY&z", FORM, **kw)
            self.assertEqual(urllib.parse.parse_qs(asked["body"], keep_blank_values=True), {"a": ["1"], "key": [VALUE], "again": [VALUE], "z": [""]})
        self.assertEqual(self.leaks(box), 0)

    def test_json(self):
        box = self.box()
        for kw in ({}, {"chunks": 3}):
            _, _, asked = self.send(box, b'{"model": "x", "auth": {"key": "Bearer KEY!", "all": ["KEY", 1, null, "KEY"]}}', JSON, **kw)
            self.assertEqual(json.loads(asked["body"])["auth"], {"key": f"Bearer {VALUE}!", "all": [VALUE, 1, None, VALUE]})
        _, _, asked = self.send(box, b'"KEY"', "Content-Type: application/vnd.api+json; charset=utf-8")
        self.assertEqual(json.loads(asked["body"]), VALUE)
        self.assertEqual(self.leaks(box), 0)

    def test_multipart(self):
        box = self.box()
        body = self.multipart(b"plain", b"KEY", b"file\r\n\0\xff KEY\r\n--xY\r\n", b"")
        _, _, asked = self.send(box, body, PARTS + "xYz")
        self.assertEqual(asked["body"].encode("latin-1"), self.multipart(b"plain", VALUE.encode(), b"file\r\n\0\xff " + VALUE.encode() + b"\r\n--xY\r\n", b""))
        _, _, asked = self.send(box, self.multipart(b"KEY"), PARTS + '"xYz"', chunks=5)
        self.assertIn(VALUE, asked["body"])
        self.assertEqual(self.leaks(box), 0)

    def test_path(self):
        box = self.box()
        _, _, asked = self.send(box, b"", path="/in/botKEY/send?q=1&k=KEY")
        path, _, query = asked["path"].partition("?")
        self.assertEqual(urllib.parse.unquote(path), f"/in/bot{VALUE}/send")
        self.assertEqual(path.count("/"), 3)
        self.assertEqual(urllib.parse.parse_qs(query), {"q": ["1"], "k": [VALUE]})
        self.assertEqual(self.leaks(box), 0)

    def test_over_http2(self):
        box = self.box()
        done = box.sh(f"""curl -sS --http2 -H 'Content-Type: application/json' -d "{{\\"k\\": \\"$KEY\\"}}" https://{HOST}/in/$KEY""")
        self.assertEqual(done.status, 0, done)
        self.assertEqual(json.loads(self.origin.asked[-1]["body"]), {"k": VALUE})
        self.assertEqual(urllib.parse.unquote(self.origin.asked[-1]["path"]), f"/in/{VALUE}")

    def test_large_and_many(self):
        box = self.box()
        pad = b"x" * ((1 << 20) - 2000)
        _, _, asked = self.send(box, b'["' + pad + b'", "KEY"]', JSON)
        self.assertEqual(json.loads(asked["body"])[1], VALUE)
        _, _, asked = self.send(box, b"&".join([b"KEY"] * 32), FORM)
        self.assertEqual(asked["body"].count("SECRETOFTHELOGIN"), 32)

    def test_nothing_to_replace(self):
        box = self.box()
        for body, field in ((b'{"a": 1}', JSON), (b"a=b", FORM), (self.multipart(b"a"), PARTS + "xYz"), (b"--xYz--\r\n", PARTS + "xYz")):
            _, _, asked = self.send(box, body, field)
            self.assertEqual(asked["body"].encode(), body)

    def test_an_echo_is_masked(self):
        box = self.box()
        self.origin.shapes["/in/echo"] = (200, (("Content-Type", "application/json"),), json.dumps({"saw": VALUE}).encode())
        self.assertEqual(json.loads(self.send(box, b'{"k": "KEY"}', JSON, path="/in/echo")[1])["saw"].strip("*"), "")


class Never(Bodies):
    def test_places_that_are_not_named(self):
        for places, body, field, path in (("header", b'{"k": "KEY"}', JSON, "/in/x"), ("json", b"k=KEY", FORM, "/in/x"), ("form", b'{"k": "KEY"}', JSON, "/in/x"),
                                          ("json", self.multipart(b"KEY"), PARTS + "xYz", "/in/x"), ("form", b"", FORM, "/in/KEY"),
                                          ("path", b"", FORM, "/in/x?k=KEY"), ("query", b"", FORM, "/in/KEY")):
            box = self.box(places)
            _, _, asked = self.send(box, body, field, path=path)
            self.assertNotIn("SECRETOFTHELOGIN", json.dumps(asked))
            self.assertEqual(self.leaks(box), 1, (places, path))
            box.close()

    def test_other_kinds_and_places(self):
        box = self.box()
        for n, (body, field, path) in enumerate((
                (b"KEY", "Content-Type: text/plain", "/in/x"), (b"KEY", "X-A: b", "/in/x"), (b'{"k": "KEY"}', "Content-Type: text/json", "/in/x"),
                (b'{"KEY": 1}', JSON, "/in/x"), (b'{"k": "KEY"}', JSON, "/out/x"), (b"k=KEY", FORM, "/out/x"), (b"", FORM, "/out/KEY"),
                (self.multipart(b"a", head=b"X-A: KEY"), PARTS + "xYz", "/in/x"), (b"KEY", "Content-Type: multipart/mixed; boundary=xYz", "/in/x")), 1):
            _, _, asked = self.send(box, body, field, path=path)
            self.assertNotIn("SECRETOFTHELOGIN", json.dumps(asked), (body, path))
            self.assertEqual(self.leaks(box), n, (body, path))

    def test_what_cannot_be_read(self):
        box = self.box()
        for body, fields, status, words in (
                (b'{"k": "KEY"', (JSON,), 400, "not the JSON"), (b"{'k': 'KEY'}", (JSON,), 400, "not the JSON"), (b'{"k": "KEY"} x', (JSON,), 400, "not the JSON"),
                (b'["\\ud83dKEY\\x"]', (JSON,), 400, "not the JSON"), (b'{"k": "KEY", "k": "x"}', (JSON,), 400, "not the JSON"),
                (b'["KEY", "\\udc00"]', (JSON,), 400, "not the JSON"), (b'\xef\xbb\xbf["KEY"]', (JSON,), 400, "not the JSON"), (self.multipart(b"KEY", end=b""), (PARTS + "xYz",), 400, "not the multipart"),
                (self.multipart(b"KEY"), (PARTS + "other",), 400, "not the multipart"), (self.multipart(b"KEY"), (PARTS,), 400, "not the multipart"),
                (b"KEY", (PARTS + "xYz",), 400, "not the multipart"), (b"--xYz\r\nKEY\r\n--xYz--", (PARTS + "xYz",), 400, "not the multipart"),
                (b"junk\r\n" + self.multipart(b"KEY"), (PARTS + "xYz",), 400, "not the multipart"),
                (self.multipart(b"KEY", boundary=b"x" * 71), (PARTS + "x" * 71,), 400, "not the multipart"),
                (gzip.compress(b'{"k": 1}'), (JSON, "Content-Encoding: gzip"), 415, "compressed"), (b"x", (FORM, "Content-Encoding: br"), 415, "compressed"),
                (b"a=" + b"x" * (1 << 20), (FORM,), 413, "more than 1 MiB")):
            got = self.send(box, body, *fields)
            self.assertEqual((got[0], words in got[1], got[2]), (status, True, None), (body[:60], got))
        got = self.send(box, b"a=" + b"x" * (1 << 20), FORM, chunks=50000)
        self.assertEqual((got[0], got[2]), (413, None))

    def test_too_many(self):
        status, _, asked = self.send(self.box(), b"&".join([b"KEY"] * 33), FORM)
        self.assertEqual((status, asked), (503, None))

    def test_a_value_that_would_end_a_part(self):
        status, _, asked = self.send(self.box(), self.multipart(b"KEY", boundary=b"SECRETOFTHELOGIN"), PARTS + "SECRETOFTHELOGIN")
        self.assertNotEqual(status, 200)
        self.assertIsNone(asked)
