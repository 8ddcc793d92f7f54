# SPDX-License-Identifier: Apache-2.0
"""The ws client over wss: every kind of message, control frames, large and fragmented messages, refusals."""
import json

import nodes
import support
from nodes import NodeClient

URL, OPEN = "wss://ws.node.lab.test/ws", "wss://open.node.lab.test/ws"


@nodes.needs_packages
class Ws(NodeClient):
    SCRIPT = "socket.mjs"
    RULES = ("{to: 'https://ws.node.lab.test', methods: [GET], paths: [/ws/**], credential: ws}", "https://open.node.lab.test")
    CREDENTIALS = {"ws": "inject: bearer, env: WS_KEY"}

    def works(self, wanted, *arguments):
        def check(box, word):
            self.assertEqual(self.node(box, *arguments), wanted)
        self.each(check)

    def test_echo(self):
        def check(box, word):
            answer = self.node(box, "echo", URL + "/echo", env={"WS_KEY": "no placeholder"})
            self.assertEqual(answer, {"text": "hällo", "isText": True, "bytes": True, "empty": "", "placeholder": True, "closed": 1000})
            self.assert_went(box, "HTTP/1.1", path="/ws/echo", authenticated=True)
        self.each(check)

    def test_sizes(self):
        self.works({"wrong": []}, "sizes", URL + "/echo", 1, 125, 126, 127, 65535, 65536, 200000, 20 << 20)
        self.works({"wrong": []}, "sizes", OPEN + "/echo", 1, 125, 126, 127, 65535, 65536, 200000, 20 << 20)

    def test_ping_and_pong(self):
        self.works({"theirs": "pong are you there?", "pong": "mine"}, "ping", URL + "/ping")

    def test_early_frames(self):
        self.works({"words": ["one", "two", "three"]}, "early", URL + "/early")
        self.works({"words": ["one", "two", "three"]}, "early", OPEN + "/early")

    def test_close_codes(self):
        for code in (1000, 1001, 1011, 3000, 4999):
            self.works({"code": code, "reason": "because"}, "close", f"{URL}/close/{code}")
        self.works({"code": 4001, "reason": "my own"}, "closing", URL + "/echo", 4001)

    def test_fragments(self):
        self.works({"got": True, "back": True}, "fragments", URL + "/fragments/500", URL + "/echo", 500)

    def test_deflate_is_not_offered_where_a_credential_is_bound(self):
        def check(box, word):
            answer = self.node(box, "deflate", URL + "/deflate", 10000)
            self.assertEqual(answer, {"back": True, "extensions": ""})
            row = self.assert_went(box, "HTTP/1.1", path="/ws/deflate", authenticated=True)
            self.assertNotIn("sec-websocket-extensions", [h[0] for h in row["headers"]])
        self.each(check)

    def test_deflate_elsewhere(self):
        """Without a credential it is offered; what the sandbox sends is inflated and searched."""
        def check(box, word):
            self.assertTrue(self.node(box, "deflate", OPEN + "/deflate", 10000)["back"])
        self.each(check)

    def test_rounds(self):
        def check(box, word):
            for url in (URL, OPEN):
                answer = self.node(box, "rounds", url + "/echo", 50)
                self.assert_one_by_one(answer["times"], 50)
        self.each(check)

    def test_many_at_once(self):
        self.works({"all": True}, "many", URL + "/echo", 50)

    def test_refused_path(self):
        def check(box, word):
            answer = self.node(box, "refused", "wss://ws.node.lab.test/other")
            self.assertEqual((answer["status"], answer["type"]), (403, "application/problem+json"), answer)
            self.assert_denied(box, json.loads(answer["text"]))
            self.assertEqual(self.seen("request"), [])
        self.each(check)

    def test_refused_host(self):
        def check(box, word):
            answer = self.node(box, "refused", "wss://evil.lab.test/ws/echo")
            self.assertTrue(answer.get("status") == 403 or "error" in answer, answer)
            self.assertIsNotNone(box.event(action_id=2, **{"dst_endpoint.hostname": "evil.lab.test"}))
            self.assertEqual(self.seen("evil"), [])
        self.each(check)

    def test_a_placeholder_in_a_frame_ends_the_connection(self):
        def check(box, word):
            box.run("true")
            before = len(box.events(support.FINDING))
            answer = self.node(box, "echo", OPEN + "/echo")
            self.assertEqual((answer["empty"], answer["placeholder"]), ("", False), answer)
            self.assertTrue(support.wait_until(lambda: len(box.events(support.FINDING)) > before, 5))
        self.each(check)


del NodeClient
