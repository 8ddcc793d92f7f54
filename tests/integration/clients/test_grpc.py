# SPDX-License-Identifier: Apache-2.0
"""grpc-js on both ends: the four kinds of call, metadata, trailers, deadlines, cancellation, large messages, refusals."""
import nodes
import support
from nodes import NodeClient

# The status codes of gRPC.
CANCELLED, DEADLINE_EXCEEDED, PERMISSION_DENIED, FAILED_PRECONDITION = 1, 4, 7, 9
BOUND, PLAIN = "rpc.node.lab.test:50051", "open.node.lab.test:50051"
COUNT = 40


@nodes.needs_packages
@nodes.needs_h2_upstream
class Grpc(NodeClient):
    """With a credential, so every message is searched for it. grpc-js finds the proxy in https_proxy by itself."""
    SCRIPT = "rpc.mjs"
    METHODS = ", ".join(f"/lab.Lab/{m}" for m in ("Say", "Count", "Sum", "Chat"))
    RULES = (f"{{to: 'https://{BOUND}', methods: [POST], paths: [{METHODS}], credential: rpc}}", f"https://{PLAIN}")
    CREDENTIALS = {"rpc": "inject: bearer, env: RPC_KEY"}

    def check_went(self, box, method):
        self.assert_went(box, "HTTP/2.0", path="/lab.Lab/" + method, authenticated=True)

    def test_unary(self):
        def check(box, word):
            answer = self.node(box, "unary", BOUND)
            first, failed = answer["first"], answer["failed"]
            self.assertEqual((first["value"]["text"], first["value"]["n"]), ("hällo", 7), answer)
            for call in (first, failed):
                self.assertEqual((call["initial"], call["trailer"], call["binary"]), ("from inside", "after", "0001ff"), call)
            self.assertEqual((failed["code"], failed["details"]), (FAILED_PRECONDITION, "no such luck: 100 % ä\n"))
            self.assertTrue(answer["many"])
            self.check_went(box, "Say")
        self.each(check)

    def test_server_streaming(self):
        def check(box, word):
            answer = self.node(box, "server", BOUND, 500)
            self.assertEqual(answer, {"numbers": 501, "inOrder": True, "end": {"code": 0, "details": "OK", "trailer": "after"}})
            self.check_went(box, "Count")
        self.each(check)

    def test_messages_come_one_by_one(self):
        def check(box, word):
            answer = self.node(box, "serverAcknowledged", BOUND, COUNT)
            self.assertEqual(answer["end"]["code"], 0, answer)
            self.assert_one_by_one(answer["times"], COUNT)
        self.each(check)

    def test_client_streaming(self):
        def check(box, word):
            self.assertEqual(self.node(box, "client", BOUND, 500), {"n": 500, "bytes": "1500000"})
            self.check_went(box, "Sum")
        self.each(check)

    def test_both_ways(self):
        def check(box, word):
            answer = self.node(box, "chat", BOUND, COUNT)
            self.assertEqual(answer["end"], {"code": 0, "details": "OK", "trailer": "after"}, answer)
            self.assert_one_by_one(answer["times"], COUNT)
            self.check_went(box, "Chat")
        self.each(check)

    def test_large_messages(self):
        def check(box, word):
            for size in (16383, 16384, 65536, 20000000):
                self.assertEqual(self.node(box, "large", BOUND, size), {"same": True}, size)
        self.each(check)

    def test_deadline(self):
        def check(box, word):
            answer = self.node(box, "deadline", BOUND)
            self.assertEqual((answer["code"], answer["after"]), (DEADLINE_EXCEEDED, "still here"), answer)
            self.assertLess(answer["waited"], 3000 * support.SLOW)
        self.each(check)

    def test_cancellation_reaches_the_origin(self):
        def check(box, word):
            answer = self.node(box, "cancel", BOUND)
            self.assertEqual((answer["code"], answer["after"]), (CANCELLED, "still here"), answer)
            self.assertTrue(support.wait_until(lambda: self.seen("cancelled", path="/lab.Lab/Count"), 3))
        self.each(check)

    def test_refused(self):
        def check(box, word):
            answer = self.node(box, "refused", BOUND, "evil.lab.test:443")
            self.assertEqual(answer["forbidden"]["code"], PERMISSION_DENIED, answer)
            self.assertIn("vethguard", answer["forbidden"]["details"])
            self.assertEqual(answer["beside"], 0, "a call on the same connection lives on")
            self.assertNotEqual(answer["evil"]["code"], 0, answer)
            if word == "transparent":  # through the proxy the CONNECT is refused, and the call never begins
                self.assertEqual(answer["evil"]["code"], PERMISSION_DENIED, answer)
            self.assertEqual([r["path"] for r in self.seen("request")], ["/lab.Lab/Count"])
            self.assertEqual(self.seen("evil"), [])
            self.assertIsNotNone(box.event(action_id=2, **{"http_request.url.path": "/lab.Lab/Forbidden"}))
        self.each(check)

    def test_another_host_does_not_get_the_credential(self):
        def check(box, word):
            answer = self.node(box, "unary", PLAIN)
            self.assertEqual(answer["first"]["code"], PERMISSION_DENIED, answer)
            self.assertIn("placeholder", answer["first"]["details"])
            self.assert_no_secret_outside()
        self.each(check)


@nodes.needs_packages
@nodes.needs_h2_upstream
class Cleartext(NodeClient):
    """HTTP/2 without TLS from end to end, to an `http://` rule."""
    SCRIPT = "rpc.mjs"
    TARGET = "open.node.lab.test:50052"
    RULES = (f"{{to: 'http://{TARGET}', methods: [POST], paths: ['/lab.Lab/Say', '/lab.Lab/Count', '/lab.Lab/Sum', '/lab.Lab/Chat']}}",)
    PROXY = False
    ENV = {"RPC_PLAIN": "1", "RPC_KEY": "none"}

    def test_unary(self):
        answer = self.node(self.box, "unary", self.TARGET)
        self.assertEqual((answer["first"]["value"]["text"], answer["first"]["trailer"], answer["first"]["binary"]), ("hällo", "after", "0001ff"))
        self.assertEqual((answer["failed"]["code"], answer["failed"]["details"]), (FAILED_PRECONDITION, "no such luck: 100 % ä\n"))
        self.assertTrue(answer["many"])

    def test_streams(self):
        self.assertEqual(self.node(self.box, "server", self.TARGET, 500)["end"], {"code": 0, "details": "OK", "trailer": "after"})
        self.assertEqual(self.node(self.box, "client", self.TARGET, 500), {"n": 500, "bytes": "1500000"})
        answer = self.node(self.box, "chat", self.TARGET, COUNT)
        self.assertEqual(answer["end"]["code"], 0, answer)
        self.assert_one_by_one(answer["times"], COUNT)

    def test_large_messages(self):
        for size in (16384, 20000000):
            self.assertEqual(self.node(self.box, "large", self.TARGET, size), {"same": True}, size)

    def test_deadline_and_cancellation(self):
        self.assertEqual(self.node(self.box, "deadline", self.TARGET)["code"], DEADLINE_EXCEEDED)
        self.assertEqual(self.node(self.box, "cancel", self.TARGET)["code"], CANCELLED)

    def test_refused(self):
        answer = self.node(self.box, "refused", self.TARGET, "evil.lab.test:80")
        self.assertEqual(answer["forbidden"]["code"], PERMISSION_DENIED, answer)
        self.assertEqual(answer["beside"], 0, "a call on the same connection lives on")


del NodeClient
