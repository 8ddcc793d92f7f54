# SPDX-License-Identifier: Apache-2.0
"""Requests that a person has to approve: they are held, then approved or refused, once or for a while. Without a yes they are refused."""
import json
import os
import signal
import subprocess
import threading
import time

import control_case
import daemon_case
import support
from support import HTTP, policy, wait_until

ASK = "ask:\n  - {name: pulls, to: 'https://api.lab.test', methods: [POST, PUT], paths: ['/pulls/**', /trickle, /Up], wait: %s}\n" \
      "  - {name: looks, to: 'https://api.lab.test', paths: [/trickle]}\n" \
      "  - {name: reads, to: 'https://api.lab.test', git: {repositories: [acme/site]}}\n"


class Asking(daemon_case.Attached):
    WAIT = "5m"
    described = control_case.Described()

    def write(self, *rules):
        return support.LAB.write(f"daemon-{time.monotonic_ns()}.yaml", self.text())

    def text(self):
        return policy("{name: free, to: 'https://api.lab.test'}", more=ASK % self.WAIT)

    def begin(self, path="/pulls/1", *more, method="POST"):
        """Sends a request in a thread. Returns a function that waits for its (status, body)."""
        done = []
        thread = threading.Thread(target=lambda: done.append(self.curl("-X", method, "-w", "\n%{http_code}", *more,
                                                                       "https://api.lab.test" + path, seconds=60)))
        thread.start()
        self.addCleanup(thread.join)

        def end():
            thread.join(60 * support.SLOW)
            body, _, status = done[0].stdout.rpartition("\n")
            return int(status), body
        return end

    def asks(self, count=None, state="waiting"):
        def look():
            status, headers, answer = self.daemon.call("GET", "/v1/asks")
            self.described.answer("GET", "/v1/asks", status, headers, answer)
            return [a for a in answer["asks"] if a["state"] == state]
        if count is None:
            return look()
        self.assertTrue(wait_until(lambda: len(look()) == count, 10 * support.SLOW), (look(), self.daemon.stderr()))
        return look()

    def served(self):
        self.assertTrue(wait_until(lambda: self.begin("/whoami", method="GET")()[0] not in (0, 503), 10 * support.SLOW))

    def decide(self, ask, what="approve", status=200, **body):
        path = f"/v1/asks/{ask if isinstance(ask, str) else ask['id']}/{what}"
        self.described.request("POST", path, body)
        got, headers, answer = self.daemon.call("POST", path, body)
        self.described.answer("POST", path, got, headers, answer)
        self.assertEqual(got, status, answer)
        return answer

    def refused(self, end, *words):
        status, body = end()
        self.assertEqual(status, 403, body)
        answer = json.loads(body)
        self.assertEqual(answer["error"]["code"], "ask", answer)
        for word in words:
            self.assertIn(word, answer["detail"])
        return answer

    def test_once(self):
        """Nothing leaves before the yes, and the yes is for this request alone."""
        with open(support.LAB.path("seen.jsonl")) as f:
            f.seek(0, 2)
            end = self.begin("/pulls/1?a=b", "-d", "x" * 5000)
            ask = self.asks(1)[0]
            self.assertEqual((ask["sandbox"], ask["rule"], ask["method"], ask["url"], ask["bytes"]),
                             ("one", "pulls", "POST", "https://api.lab.test/pulls/1?a=b", 5000))
            self.assertNotIn("/pulls", f.read())
            self.decide(ask)
            self.assertNotEqual(end()[0], 403)
            self.assertIn("/pulls/1", f.read())
        self.asks(0)
        self.decide(ask, status=404)
        event = self.daemon.event(HTTP, status_detail="approved by uid 0", **{"http_request.url.path": "/pulls/1"})
        self.assertIsNotNone(event)
        self.assertIsNotNone(self.daemon.event(6003, **{"api.operation": "asks.approve"}))
        second = self.begin()
        self.decide(self.asks(1)[0], "refuse", reason="not today")
        self.refused(second, "refused by uid 0: not today")

    def test_http1(self):
        end = self.begin("/pulls/1", "--http1.1", "-d", "x" * 100000)
        self.decide(self.asks(1)[0])
        self.assertNotEqual(end()[0], 403)

    def test_what_is_not_asked_about(self):
        for path, method in (("/pulls", "GET"), ("/whoami", "POST")):
            self.assertNotEqual(self.begin(path, method=method)()[0], 403)
        self.assertEqual(self.asks(), [])

    def test_other_spellings_are_refused(self):
        """A path that a server could read as one that a rule asks about is refused."""
        for path in ("/Pulls/1", "/pulls%2F1", "//pulls/1", "/pulls;a/1", "/up", "/UP/"):
            status, body = self.begin(path)()
            self.assertEqual((status, json.loads(body)["error"]["code"]), (403, "reading"), body)
        self.assertEqual(self.asks(), [])

    def test_reading_of_a_repository(self):
        """A rule with git and without push asks about fetches and LFS downloads. Other spellings of these are refused, a push is not asked about."""
        batch, lfs = "/acme/site.git/info/lfs/objects/batch", ("-H", "Content-Type: application/vnd.git-lfs+json", "-d")
        refs = "/acme/site/info/refs?service=git-"
        for path, more, method in ((refs.replace("acme", "Acme") + "upload-pack", (), "GET"), (refs + "upload%2Dpack", (), "GET"),
                                   (batch.replace("site", "SITE"), (*lfs, '{"operation":"download"}'), "POST"),
                                   (batch, (*lfs, '{"operation":"Download"}'), "POST")):
            status, body = self.begin(path, *more, method=method)()  # text for git, JSON for others
            self.assertTrue(status == 403 and "as some servers read it" in body, (path, status, body))
        for path, more, method in ((refs + "receive-pack", (), "GET"), (batch, (*lfs, '{"operation":"upload"}'), "POST")):
            self.assertNotEqual(self.begin(path, *more, method=method)()[0], 403, path)
        self.assertEqual(self.asks(), [])
        for path, more, method in ((refs + "upload-pack", (), "GET"), (batch, (*lfs, '{"operation":"download"}'), "POST")):
            end = self.begin(path, *more, method=method)
            self.decide(self.asks(1)[0], "refuse", reason="not that one")
            status, body = end()
            self.assertTrue(status == 403 and "not that one" in body, (path, status, body))

    def test_for_a_while(self):
        """A grant allows requests like the approved one for a time. When it ends, the requests that it allows are cut."""
        end = self.begin("/trickle?" + "none", method="GET")
        ask = self.asks(1)[0]
        self.decide(ask, for_s=3600)
        trickle = support.Trickle()
        process = subprocess.Popen(["ip", "netns", "exec", self.name, "curl", "-sS", "-N", "--cacert", self.ca, "-x", daemon_case.PROXY, "-o",
                                    trickle.out, trickle.url], stderr=subprocess.PIPE)
        self.addCleanup(process.communicate)
        self.addCleanup(trickle.finish)
        self.assertTrue(trickle.begun())                                  # the grant allows it
        self.assertEqual(self.asks(), [])
        grant = self.asks(1, "granted")[0]
        self.assertEqual((grant["id"], grant["by"]), (ask["id"], "uid 0"))
        other = self.begin("/pulls/2")                                    # not allowed by the grant
        self.decide(self.asks(1)[0], "refuse")
        self.refused(other)
        os.kill(self.pid("worker"), signal.SIGKILL)                       # the next worker knows the grant
        end(), process.wait(30 * support.SLOW)
        second = support.Trickle()
        process = subprocess.Popen(["ip", "netns", "exec", self.name, "curl", "-sS", "-N", "--retry", "9", "--retry-all-errors", "--cacert",
                                    self.ca, "-x", daemon_case.PROXY, "-o", second.out, second.url], stderr=subprocess.PIPE)
        self.addCleanup(process.communicate)
        self.addCleanup(second.finish)
        self.assertTrue(second.begun())
        self.decide(ask, status=409)
        self.decide(ask, "refuse")                                        # ends the grant
        self.assertTrue(wait_until(lambda: self.daemon.event(HTTP, seconds=0.1, status_code="ask", **{"http_request.url.path": "/trickle"}),
                                   10 * support.SLOW))
        process.kill()
        self.assertEqual(self.asks(state="granted"), [])

    def test_time_ends_a_grant(self):
        end = self.begin("/pulls/3")
        self.decide(self.asks(1)[0], for_s=1, whole_rule=True)
        self.assertNotEqual(end()[0], 403)
        self.assertTrue(wait_until(lambda: not self.asks(state="granted"), 10 * support.SLOW))
        again = self.begin("/pulls/3")
        self.decide(self.asks(1)[0], "refuse")
        self.refused(again)

    def test_a_grant_approves_what_waits(self):
        ends = [self.begin(f"/pulls/{n}") for n in range(3)]
        self.decide(self.asks(3)[0], always=True, whole_rule=True)
        for end in ends:
            self.assertNotEqual(end()[0], 403)
        self.asks(0)
        self.assertEqual(len(self.asks(state="granted")), 1)

    def test_what_ends_a_question(self):
        """The client leaves, a pause, the worker dies, a reload forbids the request: then the question ends, and the request was not sent."""
        process = subprocess.Popen(["ip", "netns", "exec", self.name, "curl", "-sS", "--cacert", self.ca, "-x", daemon_case.PROXY, "-X", "POST",
                                    "https://api.lab.test/pulls/9"], stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        self.asks(1)
        process.kill()
        process.wait()
        self.asks(0)
        end = self.begin("/pulls/9")
        self.asks(1)
        self.assertEqual(self.daemon.call("POST", "/v1/sandboxes/one/pause", {"reason": "x"})[0], 200)
        self.asks(0)
        self.assertEqual(end()[0], 503)
        self.assertEqual(self.daemon.call("POST", "/v1/sandboxes/one/resume")[0], 200)
        self.served()
        end = self.begin("/pulls/9")
        self.asks(1)
        os.kill(self.pid("worker"), signal.SIGKILL)
        self.asks(0)
        self.served()
        end = self.begin("/pulls/9")
        ask = self.asks(1)[0]
        with open(self.policy, "w") as f:
            f.write(policy("{to: 'https://api.lab.test', methods: [GET]}"))
        self.assertEqual(self.daemon.call("POST", "/v1/sandboxes/one/reload", {"policy": self.policy})[0], 200)
        self.assertEqual(end()[0], 403)
        self.decide(ask, status=404)

    def test_commands(self):
        end = self.begin("/pulls/5")
        ask = self.asks(1)[0]
        shown = self.daemon.cli("ask").stdout
        self.assertIn(f"{ask['id']}  one: asks POST https://api.lab.test/pulls/5 (rule pulls)", shown)
        for argv, word in ((("approve", "0000"), "no request that waits"), (("approve", "xyz1"), "16 hex digits"),
                           (("approve", ask["id"], "--for", "1h", "--always"), "give one"), (("approve", ask["id"], "--rule"), "needs --for"),
                           (("refuse",), "which request")):
            r = self.daemon.cli(*argv)
            self.assertNotEqual(r.returncode, 0)
            self.assertIn(word, r.stderr)
        r = self.daemon.cli("approve", ask["id"][:8], "--for", "2m")
        self.assertEqual((r.returncode, r.stdout), (0, f"{ask['id']}: approved for 120 s\n"), r)
        self.assertNotEqual(end()[0], 403)
        self.assertIn("granted POST https://api.lab.test/pulls/5 (rule pulls) by uid 0", self.daemon.cli("ask").stdout)
        self.assertEqual(self.daemon.cli("refuse", ask["id"]).returncode, 0)
        second = self.begin("/pulls/5")
        waits = self.asks(1)[0]
        r = self.daemon.cli("ask", "--watch", input=f"refuse {waits['id']} by hand\n")
        self.assertIn(waits["id"], r.stdout)
        self.refused(second, "by hand")

    def test_the_api_says_what_is_wrong(self):
        for path, body, status in (("/v1/asks/zz/approve", {}, 404), ("/v1/asks/0123456789abcdef/approve", {}, 404),
                                   ("/v1/asks/0123456789abcdef/approve", {"for_s": 0}, 422), ("/v1/asks/0123456789abcdef/approve", {"for_s": 5, "always": True}, 422),
                                   ("/v1/asks/0123456789abcdef/approve", {"whole_rule": True}, 422), ("/v1/asks/0123456789abcdef/approve", {"ttl": 5}, 422),
                                   ("/v1/asks/0123456789abcdef/refuse", {"reason": "x" * 9999}, 422)):
            self.assertEqual(self.daemon.call("POST", path, body)[0], status, (path, body))


class Short(Asking):
    WAIT = "1s"

    def test_nobody_answers(self):
        self.refused(self.begin(), "nobody has approved it in time")
        self.asks(0)


# Asking has run the tests that Short inherits.
for name in [n for n in vars(Asking) if n.startswith("test_")]:
    setattr(Short, name, None)


class Run(support.Case):
    def test_nobody_to_ask(self):
        done = self.run_vethguard(policy(more=ASK % "5m"), ["curl", "-sS", "-X", "POST", "https://api.lab.test/pulls/1"])
        self.assertIn("nobody to ask", done.stdout)
