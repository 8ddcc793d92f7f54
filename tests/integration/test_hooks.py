# SPDX-License-Identifier: Apache-2.0
"""A webhook is told what waits for a person, and a decider decides. Calls are signed and made by a process of their own; a request is refused
if its decider fails."""
import hashlib
import hmac
import json
import threading
import time

import credential_service
import lab
import support
import test_ask
from credential_service import PORT, URL
from daemon import Daemon
from support import SLOW, wait_until

KEY = "webhook-key-0123456789abcdef"


class Handler(credential_service.Handler):
    """/chat takes everything; /flaky fails twice; /decide/WHAT answers as its name says."""

    def answer(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        service = self.server.service
        with service.lock:
            service.asked.append({"path": self.path, "body": body, "headers": dict(self.headers.items())})
            tries = sum(a["path"] == self.path for a in service.asked)
        if self.path == "/flaky" and tries <= 1:
            return self.send(500, b"{}")
        what = service.decides if self.path == "/decide" else None
        if what == "slow":
            service.released.wait(60)
        if what == "cut":
            self.close_connection = True
            return self.connection.close()
        if what == "redirect":
            return self.send(302, b"", ("Location", URL + "/chat"))
        self.send(500 if what == "error" else 200, ANSWERS.get(what, b'{"ok": true}'))


ANSWERS = {"approve": b'{"decision": "approve", "reason": "by the book"}', "while": b'{"decision": "approve", "for_s": 3600}',
           "refuse": b'{"decision": "refuse", "reason": "not by the book"}', "person": b'{"decision": "ask"}', "garbage": b"approve",
           "twice": b'{"decision": "refuse", "decision": "approve"}', "large": b'{"decision": "approve", "reason": "' + b"x" * 5000 + b'"}',
           "slow": b'{"decision": "approve"}', "error": b'{"decision": "approve"}'}


class Told(test_ask.Asking):
    CONFIG = "ask: {webhook: {url: '%s/flaky', key: 'file:%s', text: '{\"text\": \"${sandbox}: ${method} ${url} by ${rule}, ${id}\"}'}}\n"

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.service = support.in_namespace("outside", lambda: credential_service.Service(lab.ORIGIN4, PORT, support.LAB.dir))
        cls.service.server.RequestHandlerClass = Handler
        cls.service.decides, cls.service.released = None, threading.Event()
        cls.key = support.LAB.write("hook.key", KEY + "\n", 0o600)

    @classmethod
    def tearDownClass(cls):
        cls.service.released.set()
        cls.service.close()
        super().tearDownClass()

    def make_daemon(self):
        self.service.asked.clear()
        return Daemon(self.CONFIG % (URL, self.key))

    def told(self, path, count=1):
        def of_path():
            return [a for a in self.service.asked if a["path"] == path]
        self.assertTrue(wait_until(lambda: len(of_path()) >= count, 20 * SLOW), (self.service.asked, self.daemon.stderr()))
        return of_path()

    def verify(self, asked):
        """Verifies as a receiver does: the signature covers the time and the body."""
        seconds, signature = asked["headers"]["X-Vethguard-Timestamp"], asked["headers"]["X-Vethguard-Signature"]
        self.assertLess(abs(time.time() - int(seconds)), 300)
        expected = hmac.new(KEY.encode(), seconds.encode() + b"." + asked["body"], hashlib.sha256).hexdigest()
        self.assertEqual(signature, "v1=" + expected)
        self.assertNotIn(KEY, json.dumps(asked["headers"]))

    def test_told_signed_and_again(self):
        end = self.begin("/pulls/1?say=%22hi%22")
        first, second = self.told("/flaky", 2)[:2]                        # after a failure, the same again
        self.assertEqual(first["body"], second["body"])
        self.verify(first), self.verify(second)
        ask = self.asks(1)[0]
        self.assertEqual(json.loads(second["body"]), {"text": f"one: POST https://api.lab.test/pulls/1?say=%22hi%22 by pulls, {ask['id']}"})
        self.decide(ask)
        self.assertNotEqual(end()[0], 403)
        self.assertEqual(len(self.told("/flaky")), 2)
        with open(self.daemon.config) as f:
            good = f.read()
        with open(self.daemon.config, "w") as f:
            f.write(good.replace("${method} ${url} by ${rule}", "${url}" * 100))
        self.assertEqual(self.daemon.call("POST", "/v1/reload", {})[0], 200)
        end = self.begin("/pulls/1?" + "x" * 200)
        ask = self.asks(1)[0]
        self.assertTrue(wait_until(lambda: "what the webhook would be told has more than 8000 bytes" in self.daemon.stderr(), 10 * SLOW), self.daemon.stderr())
        self.decide(ask)
        self.assertNotEqual(end()[0], 403)
        self.assertEqual(len(self.told("/flaky")), 2)


class Decided(Told):
    CONFIG = "ask: {decider: {url: '%s/decide', key: 'file:%s', timeout: 1s}}\n"

    def decided(self, what):
        self.service.decides = what
        return self.begin(f"/pulls/{what}")

    def test_told_signed_and_again(self):
        """The decider approves, refuses, or leaves the request to a person."""
        self.assertNotEqual(self.decided("approve")()[0], 403)
        self.verify(self.told("/decide")[0])
        event = self.daemon.event(support.HTTP, status_detail="approved by the decider: by the book")
        self.assertIsNotNone(event)
        self.refused(self.decided("refuse"), "refused by the decider: not by the book")
        end = self.decided("person")
        self.decide(self.asks(1)[0], "refuse", reason="by hand")
        self.refused(end, "by hand")
        self.assertNotEqual(self.decided("while")()[0], 403)
        self.assertEqual(self.asks(1, "granted")[0]["by"], "the decider")

    def test_fails_closed(self):
        for what, word in (("garbage", "no JSON"), ("twice", "no JSON"), ("large", "4096"), ("error", "500"), ("cut", ""), ("redirect", "302"),
                           ("slow", "had not answered")):
            self.refused(self.decided(what), "refused by the decider", word)
        self.assertEqual(self.asks(), [])
        with open(self.key, "w"):
            pass
        self.refused(self.decided("approve"), "refused by the decider", "empty")
        support.LAB.write("hook.key", KEY + "\n", 0o600)


class Program(Told):
    """The decider is a program, which answers as the path of the request says."""
    CONFIG = "ask: {decider: {program: [/bin/sh, '%s'], user: nobody, timeout: 1s}}\n"
    SCRIPT = """read -r ask
case $ask in
*/pulls/approve*) id=$(id -u); printf '{"decision": "approve", "reason": "by uid %s"}' "$id" ;;
*/pulls/refuse*) printf '{"decision": "refuse"}' ;;
*/pulls/status*) printf '{"decision": "approve"}'; exit 3 ;;
*/pulls/killed*) printf '{"decision": "approve"}'; kill -9 $$ ;;
*/pulls/slow*) sleep 60 ;;
*/pulls/large*) head -c 200000 /dev/zero ;;
*/pulls/garbage*) echo approve ;;
esac
"""

    def make_daemon(self):
        return Daemon(self.CONFIG % support.LAB.write("decide.sh", self.SCRIPT, 0o644))

    def test_told_signed_and_again(self):
        status, body = self.begin("/pulls/approve")()
        self.assertNotEqual(status, 403, body)
        self.assertIsNotNone(self.daemon.event(support.HTTP, status_detail="approved by the decider: by uid 65534"))
        for what, word in (("refuse", ""), ("status", "status 3"), ("killed", "signal 9"), ("slow", "had not ended"), ("large", "wrote more"),
                           ("garbage", "no JSON"), ("nothing", "no JSON")):
            self.refused(self.begin(f"/pulls/{what}"), "refused by the decider", word)
        self.assertEqual(self.asks(), [])


# Asking has run these tests already; the classes above inherit them.
for cls in (Told, Decided, Program):
    for name in [n for n in vars(test_ask.Asking) if n.startswith("test_")]:
        setattr(cls, name, None)
del cls, name
