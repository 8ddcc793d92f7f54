# SPDX-License-Identifier: Apache-2.0
"""Nothing waits for the next piece: events, chunks and uploads of which each is sent only when the one before was
acknowledged on a connection, or stream, of its own. What is held back stands still; what is delayed shows in the times."""
import nodes
from nodes import NodeClient

# With a credential every byte of an answer is searched for it; without one it is only passed on.
BOUND, PLAIN = "https://bound.node.lab.test", "https://plain.node.lab.test"
COUNT = 40


class Streams:
    SCRIPT = "stream.mjs"
    RULES = (f"{{to: ['{BOUND}', '{BOUND}:8443'], credential: api}}", PLAIN, PLAIN + ":8443", "{to: 'https://gone.node.lab.test', paths: [/ack/**]}")
    CREDENTIALS = {"api": "inject: bearer"}
    VERSION, PORT = None, ""

    def streams(self, case, check_answer):
        def check(box, word):
            for base in (BOUND, PLAIN):
                answer = self.node(box, case, self.VERSION, base + self.PORT, COUNT)
                self.assertIn("times", answer, answer)
                check_answer(answer)
                self.assert_one_by_one(answer["times"], COUNT)
                self.assert_went(box, "HTTP/1.1" if self.PORT else nodes.outside.TO_UPSTREAM, authenticated=base == BOUND)
                self.seen_at = self._seen_size()
        self.each(check)

    def test_server_sent_events(self):
        self.streams("sse", lambda a: self.assertEqual(a["events"], [f"event {n}" for n in range(COUNT)]))

    def test_chunks(self):
        self.streams("chunks", lambda a: self.assertEqual(a["n"], COUNT))

    def test_upload(self):
        self.streams("upload", lambda a: self.assertEqual(a["pieces"], COUNT))

    def test_refused(self):
        def check(box, word):
            answer = self.node(box, "sse", self.VERSION, "https://gone.node.lab.test", 3)
            self.assertEqual(answer, {"events": []})
            self.assertEqual(self.seen("request"), [])
            self.assertIsNotNone(box.event(action_id=2))
        self.each(check)


@nodes.needs_packages
class Http1ToAny(Streams, NodeClient):
    VERSION = "h1"


@nodes.needs_packages
class Http1ToHttp1(Streams, NodeClient):
    VERSION, PORT = "h1", ":8443"
    test_refused = None


@nodes.needs_packages
@nodes.needs_h2
class Http2ToAny(Streams, NodeClient):
    VERSION = "h2"


@nodes.needs_packages
@nodes.needs_h2
class Http2ToHttp1(Streams, NodeClient):
    VERSION, PORT = "h2", ":8443"
    test_refused = None


del NodeClient
