# SPDX-License-Identifier: Apache-2.0
"""What -vv prints, as docs/development.md tells it: one request is followed by its event's id through every program."""
import re
import unittest

import support
from support import HTTP, SECRET, file_credential, policy

RULES = ("{to: 'https://api.lab.test', credential: api}",)


class Trace(support.Boxed):
    OPTIONS = ("-vv",)

    @classmethod
    def make_box(cls):
        return support.Sandbox(policy(*RULES, credentials=file_credential()), options=cls.OPTIONS)

    def asked(self, path):
        """The event of a request, and all that was printed when it was in the log."""
        self.box.sh(f"curl -sS 'https://api.lab.test{path}'")
        event = self.box.event(HTTP, **{"http_request.url.path": path.partition("?")[0]})
        self.assertIsNotNone(event)
        return event["metadata"]["uid"], event["src_endpoint"]["port"]

    def assert_printed(self, pattern):
        self.assertTrue(support.wait_until(lambda: re.search(pattern, self.box.stderr(), re.M)), f"{pattern} is not in\n{self.box.stderr()[-6000:]}")


class Debug(Trace):
    def test_a_request(self):
        uid, port = self.asked("/traced")
        for pattern in (f"client :{port}: accepted from .*, which is api.lab.test$",
                        f"client :{port}: PEEK -> TLS$",
                        f"event {uid}: client :{port}: GET https://api.lab.test:443: allowed$",
                        f"event {uid}: exchange: NEW -> CREDENTIAL$",
                        f"event {uid}: exchange: .* -> ACTIVE$",
                        f"event {uid}: request: NOTHING -> AGAIN$",
                        f"event {uid}: response 200$",
                        f"event {uid}: response: WAITS -> BEGUN$",
                        f"event {uid}: content: COMES -> WHOLE$",
                        f"event {uid}: event: OPEN -> RECORDED$",
                        f"event {uid}: recorded, HTTP, [0-9]+ bytes$",
                        f"event {uid}: read from ring [0-9]+, [0-9]+ bytes$",
                        f"event {uid}: exchange: ACTIVE -> DONE$",
                        "dial api.lab.test:443: connected$",
                        "upstream api.lab.test:443: DIALING -> TLS$"):
            self.assert_printed(pattern)

    def test_programs(self):
        """Each speaks for itself, and of each message the supervisor tells its type, number and size."""
        self.asked("/programs")
        for pattern in ("^vethguardd: debug: .*-> the worker of \\S+ WORKER_START [0-9]+: [0-9]+ bytes, [0-9]+ descriptors$",
                        "^vethguardd: debug: .*<- the keeper KEEPER_READY", "^vethguardd: debug: .*<- the recorder RECORDER_READY",
                        "^vethguard-keeper: debug: .*credential api: ASKED -> READING$",
                        "^vethguard-worker: debug: .*CREDENTIAL_GET",
                        "^vethguardd: debug: .*sandbox [0-9]+: STARTING -> SERVING$"):
            self.assert_printed(pattern)

    def test_a_credential_is_asked_for_once(self):
        """A value that the worker has costs no message to the keeper: of many requests, over many connections, one asks."""
        done = self.box.sh("for v in --http1.1 --http2 --http1.1; do curl -sS $v -o /dev/null -w '%{http_code} ' https://api.lab.test/once/[1-4]; done")
        self.assertEqual(done.out.split(), ["200"] * 12, done)
        self.assert_printed("event [0-9a-f]{16}: recorded")
        asked = [line for line in self.box.stderr().splitlines() if "CREDENTIAL_GET" in line and line.startswith("vethguard-worker: debug: ")]
        self.assertEqual(len([line for line in asked if "-> " in line]), 1, asked)

    def test_what_is_denied(self):
        self.box.sh("curl -sS https://evil.lab.test/x")
        event = self.box.event(HTTP, **{"http_request.url.hostname": "evil.lab.test"})
        self.assert_printed(f"event {event['metadata']['uid']}: client :[0-9]+: GET https://evil.lab.test:443: denied$")

    def test_nothing_that_is_secret(self):
        self.asked("/secret?token=query-of-the-sandbox")
        self.assert_printed("event [0-9a-f]{16}: recorded")
        self.assertNotIn(SECRET, self.box.stderr())
        self.assertNotIn("query-of-the-sandbox", self.box.stderr())


class Info(Trace):
    OPTIONS = ("-v",)

    def test_no_trace(self):
        self.asked("/quiet")
        self.assertNotIn("debug:", self.box.stderr())
        self.assertNotIn("event ", self.box.stderr())


del Trace  # has no tests of its own


if __name__ == "__main__":
    unittest.main()
