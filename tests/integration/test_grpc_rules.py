# SPDX-License-Identifier: Apache-2.0
"""Rules with grpc: services and methods by their paths, over HTTP/2 and as gRPC-Web over HTTP/1.1. The denial is a status of gRPC."""
import json
import urllib.parse

import test_bodies
from support import HTTP, policy

GRPC, WEB = "application/grpc", "application/grpc-web+proto"
MESSAGE = b"\0\0\0\0\2hi"


class Rules(test_bodies.Box):
    RULES = policy("{name: lab, to: api.lab.test, grpc: {services: [lab.Lab, 'open.*'], methods: [Say, 'List*']}}",
                   "{name: www, to: www.lab.test}", deny=("{name: no-deletes, to: www.lab.test, grpc: {methods: 'Delete*'}, reason: Nothing is deleted.}",))

    def call(self, path, kind=GRPC, version="--http2", host="api.lab.test", body=True):
        """Returns (status of HTTP, fields of the answer, what reached the outside)."""
        self.seen_at = self._seen_size()
        # curl 7.88 waits for ever after a response that ends with its head, while it has a body to send (HTTP/2)
        data = f"--data-binary @{self.write(MESSAGE)}" if body else "-X POST"
        out = self.box.sh(f"curl -sS {version} -o /dev/null -D - -H 'Content-Type: {kind}' -H 'TE: trailers' {data} 'https://{host}{path}'").out
        head, *lines = out.replace("\r", "").strip().split("\n")
        return head.split()[1], {k.lower(): v for k, _, v in (line.partition(": ") for line in lines)}, [r["path"] for r in self.seen("http")]

    def test_allowed(self):
        for path in "/lab.Lab/Say", "/lab.Lab/ListAll", "/open.A/List":
            for kind, version in (GRPC, "--http2"), ("application/grpc+proto", "--http2"), (WEB, "--http2"), (WEB, "--http1.1"), ("application/grpc-web-text", "--http1.1"):
                with self.subTest(path=path, kind=kind, version=version):
                    status, fields, seen = self.call(path, kind, version)
                    self.assertEqual((status, seen), ("200", [path]))
                    self.assertNotIn("x-vethguard", fields)

    def test_refused(self):
        rows = [("/lab.Lab/Delete", 'the method "Delete" may not be called; rule "lab" allows grpc service "lab.Lab" or "open.*"; method "Say" or "List*"'),
                ("/lab.Other/Say", 'the service "lab.Other" may not be called'), ("/lab.Lab/say", 'the method "say"'), ("/lab.Lab/Say/", "is not a call of gRPC"),
                ("/x/lab.Lab/Say", "is not a call of gRPC"), ("/lab.Lab%2FSay", "is not a call of gRPC"), ("/lab.Lab/Say?x", "is not a call of gRPC")]
        for path, says in rows:
            for kind, version in (GRPC, "--http2"), (WEB, "--http1.1"), ("application/grpc-web-text+proto", "--http1.1"):
                with self.subTest(path=path, kind=kind, version=version):
                    status, fields, seen = self.call(path, kind, version, body=False)
                    self.assertEqual((status, fields["grpc-status"], fields["content-type"], seen), ("200", "7", kind.split("+")[0], []))
                    self.assertIn(says, urllib.parse.unquote(fields["grpc-message"]))
        self.assertIsNotNone(self.box.event(HTTP, status_code="condition", action_id=2))

    def test_content_type_lies(self):
        for kind in "application/json", "application/connect+proto", "application/proto", "application/grpcx", "application/grpc; charset=utf-8":
            for version in "--http1.1", "--http2":
                with self.subTest(kind=kind, version=version):
                    status, fields, seen = self.call("/lab.Lab/Say", kind, version, body=False)
                    self.assertEqual((status == "403" or fields.get("grpc-status") == "7", seen), (True, []), (status, fields))
        two = self.box.sh("curl -sS --http1.1 -o /dev/null -w '%{http_code}' -X POST -H 'Content-Type: application/grpc' -H 'Content_Type: application/json' https://api.lab.test/lab.Lab/Say")
        self.assertEqual(two.out, "403")

    def test_denied(self):
        for path in "/lab.Lab/Delete", "/lab.Lab/DELETEALL", "/x/lab.Lab/Delete", "/lab.Lab//Delete", "/lab.Lab/Delete/":
            status, fields, seen = self.call(path, host="www.lab.test", body=False)
            self.assertEqual((fields["grpc-status"], seen), ("7", []), path)
            self.assertIn("Nothing is deleted.", urllib.parse.unquote(fields["grpc-message"]))
            out = self.box.sh(f"curl -sS -X POST -H 'Content-Type: application/json' 'https://www.lab.test{path}'").out
            self.assertEqual(json.loads(out)["rule"], "no-deletes")
        self.assertEqual(self.call("/lab.Lab/Say", host="www.lab.test")[2], ["/lab.Lab/Say"])
