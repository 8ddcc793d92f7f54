# SPDX-License-Identifier: Apache-2.0
"""Rules with graphql: requests by POST, in batches, by GET and by hash. A WebSocket, whose messages no rule reads, is refused."""
import json

import test_bodies
from support import HTTP, policy

VERSIONS = test_bodies.VERSIONS


def body(query, **more):
    return json.dumps({"query": query, **more}).encode()


class Graphql(test_bodies.Box):
    RULES = policy("{name: reads, to: [api.lab.test, 'http://plain.lab.test'], graphql: {operations: [query], fields: [viewer, 'repo*'], persisted: ab12}}",
                   "{name: www, to: www.lab.test}",
                   deny=("{name: no-deletes, to: www.lab.test, paths: [/graphql], graphql: {operations: mutation, fields: 'delete*'}, reason: Nothing is deleted.}",))

    def test_posts(self):
        good = [body("{viewer{login}}"), body("query Q($a: Int) { x: repository(id: $a) { y } ...F } fragment F on Query { viewer }", variables={"a": 1}),
                b"[" + body("{viewer}") + b"," + body("{repos}") + b"]", json.dumps({"extensions": {"persistedQuery": {"sha256Hash": "ab12"}}}).encode()]
        bad = [body("mutation { viewer }"), body("{ users }"), body("{ viewer: users }"), body("{ ...F } fragment F on Query { users }"),
               body("query A { viewer } mutation B { x }", operationName="A"), body("{ __schema { types { name } } }"), body("{"), body("subscription { viewer }"),
               b"[" + body("{viewer}") + b"," + body("mutation{x}") + b"]", body("{viewer}")[:-1] + b',"query":"mutation{x}"}', body("{viewer} # \r mutation {x}"),
               body("{viewer}")[:-1] + b',"Query":"mutation{x}"}', body("{viewer}", documentId="x"), b"{}", b"[]", body("\ufeff{viewer}")]
        for version in VERSIONS:
            for one in good:
                with self.subTest(body=one, version=version):
                    self.passes(one, path="/graphql", version=version)
            for one in bad:
                with self.subTest(body=one, version=version):
                    self.refused(one, path="/graphql", version=version)
            self.refused(body("{viewer}"), path="/graphql?query=mutation%7Bx%7D", version=version)
            self.refused(body("{viewer}"), "Content-Type: application/graphql", path="/graphql", version=version)
            self.refused(b"{viewer}", "Content-Type: application/graphql", path="/graphql", version=version)
        event = self.box.event(HTTP, status_code="condition", status_detail="the operation \"mutation\" may not be used; rule \"reads\" allows graphql "
                               "operation \"query\"; field \"viewer\" or \"repo*\"; persisted \"ab12\"")
        self.assertIsNotNone(event)
        self.assertIn("the field \\\"users\\\" may not be used", self.refused(body("{ users }"), path="/graphql"))

    def test_gets(self):
        rows = [("query=%7Bviewer%7Blogin%7D%7D", "200"), ("query=query+A%7Brepos%7D&operationName=A", "200"),
                ("extensions=%7B%22persistedQuery%22%3A%7B%22version%22%3A1%2C%22sha256Hash%22%3A%22ab12%22%7D%7D", "200"),
                ("", "403"), ("query=mutation%7Bviewer%7D", "403"), ("query=%7Busers%7D", "403"), ("query=%7Bviewer%7D&query=%7Busers%7D", "403"),
                ("query=%7Bviewer%7D&Query=%7Busers%7D", "403"), ("query=%7Bviewer%7D;x", "403"), ("documentId=other", "403")]
        for version in VERSIONS:
            for query, status in rows:
                with self.subTest(query=query, version=version):
                    out = self.box.sh(f"curl -sS {version} -o /dev/null -w '%{{http_code}}' 'https://api.lab.test/graphql?{query}'").out
                    self.assertEqual(out, status)

    def test_denied(self):
        for version in VERSIONS:
            self.assertEqual(json.loads(self.refused(body("mutation { x: deleteRef }"), host="www.lab.test", path="/graphql", version=version))["reason"],
                             "Nothing is deleted.")
            for one in (body("mutation { ...F } fragment F on M { DELETEREF }"), body("{"), b"x", b"{}", body("{a}", id="x")):
                self.refused(one, host="www.lab.test", path="/graphql", version=version)
            self.passes(body("mutation { addStar }"), host="www.lab.test", path="/graphql", version=version)
            self.passes(body("mutation { deleteRef }"), host="www.lab.test", path="/other", version=version)

    def test_no_websocket(self):
        """Subscriptions go over a WebSocket, whose messages no rule reads: where a rule with graphql matches, no WebSocket is opened."""
        ask = ("curl -sS --http1.1 -m 20 -o /dev/null -w '%{{http_code}}' -H 'Connection: Upgrade' -H 'Upgrade: websocket' -H 'Sec-WebSocket-Version: 13' "
               "-H 'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==' -H 'Sec-WebSocket-Protocol: graphql-transport-ws' 'https://{}'")
        for place in ("www.lab.test/graphql", "api.lab.test/graphql", "api.lab.test/graphql?query=%7Bviewer%7D"):
            self.assertEqual(self.box.sh(ask.format(place)).out, "403", place)
        self.assertIsNotNone(self.box.event(HTTP, status_code="upgrade"))
        self.assertNotEqual(self.box.sh(ask.format("www.lab.test/other")).out, "403")
        self.assertEqual(self.box.sh(ask.format("www.lab.test/other").replace("-m 20", "-m 20 -H 'X-Original-URL: /graphql'")).out, "403")
        done = self.box.sh("curl -sS --http2 https://www.lab.test/graphql -o /dev/null -w '%{http_code}' -H 'Connection: Upgrade, HTTP2-Settings' -H 'Upgrade: h2c' "
                           "-H 'HTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA' --http1.1")
        self.assertNotEqual(done.out, "403")  # h2c: the upgrade is dropped, and the request passes without it
