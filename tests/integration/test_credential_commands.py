# SPDX-License-Identifier: Apache-2.0
"""`vethguard credential`: what operators see of credentials, and what checking, rotating and revoking them does to requests, to
streams under way, to workers that come and go, and after the daemon's end."""
import json
import os
import signal
import subprocess
import threading
import time

import control_case
import support
from control_case import GROUP, NOBODY
from credential_service import URL, Served
from support import policy, wait_until

RULES = ("{name: all, to: 'https://api.lab.test', credential: api}", "{to: 'https://www.lab.test', credential: other}")


class Credentials(Served, control_case.Control):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.secret = support.LAB.write("operators-client-secret", "client:secret&0123456789\n", 0o600)

    def setUp(self):
        super().setUp()
        self.service.asked.clear()
        self.service.expires_in = 3600
        for event in (self.service.gate, self.service.hold):
            event.clear()
            self.addCleanup(event.set)
        self.value = self.fresh("value-of-a-file-1")

    def fresh(self, value):
        """A file that holds the value."""
        self.path = support.LAB.write("operators-value", value + "\n", 0o600)
        return value

    def box(self, name, source=None, more=""):
        source = source or f"file:{self.path}"
        text = policy(*RULES, credentials=f"  api: {{source: {json.dumps(source)}, inject: bearer, ttl: 0s{more}}}\n"
                                          f"  other: {{source: 'file:{self.path}', inject: header, header: x-key, prefix: 'Key '}}\n")
        self.policy = support.LAB.write(name + ".yaml", text)
        netns = self.namespace()
        self.daemon.attach(netns=netns, policy=self.policy, name=name)
        return netns

    def oauth(self, path="/oauth/token"):
        return {"oauth2": {"token_url": URL + path, "client_id": "agent one", "client_secret": f"file:{self.secret}"}}

    def asks(self, name, netns, path="/op"):
        return self.inside(name, netns, f"https://api.lab.test{path}", "-w", "%{http_code}", "-o", "/dev/null").stdout

    def sent(self, path="/op"):
        return [v for r in self.seen("http", path=path) for n, v in r["headers"] if n.lower() == "authorization"]

    def listed(self, name, credential="api"):
        answer = self.call("GET", f"/v1/sandboxes/{name}/credentials")[2]
        return next(c for c in answer["credentials"] if c["name"] == credential)

    def does(self, what, name, credential="api", status=200):
        got, _, answer = self.call("POST", f"/v1/sandboxes/{name}/credentials/{what}", {"credential": credential})
        self.assertEqual(got, status, answer)
        return answer

    def stream(self, name, netns, path="/trickle", option="--http2"):
        """curl that reads a response which does not end: (process, file with what it has read)."""
        out = support.LAB.path(f"stream-{time.monotonic_ns()}")
        env = self.daemon.call("GET", f"/v1/sandboxes/{name}/env")[2]
        ca = support.LAB.write("stream-ca.pem", env["ca_pem"])
        resolv = support.LAB.write("stream-resolv", "".join(f"nameserver {n}\n" for n in env["nameservers"]))
        script = f"mount --bind {resolv} /etc/resolv.conf && exec curl -sSN {option} -m 120 --cacert {ca} -o {out} https://api.lab.test{path}"
        process = subprocess.Popen(["nsenter", f"--net={netns}", "unshare", "-m", "sh", "-c", script], stderr=subprocess.DEVNULL)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.assertTrue(wait_until(lambda: os.path.exists(out) and os.path.getsize(out) > 0))
        return process, out

    def grows(self, out):
        before = os.path.getsize(out)
        return wait_until(lambda: os.path.getsize(out) > before, 3 * support.SLOW)


class Shows(Credentials):
    def test_a_life(self):
        """From nothing to a value that was used, to a failure."""
        netns = self.box("life", self.oauth())
        before = self.listed("life")
        self.assertEqual((before["state"], before["fetched"], before["ends"], before["fingerprint"], before["uses"], before["fetches"]),
                         ("empty", None, None, None, 0, 0))
        self.assertEqual((before["source"], before["sent_as"], before["to"]),
                         (f"oauth2:{URL}/oauth/token", "Authorization: Bearer ***", ["https://api.lab.test"]))
        for _ in range(3):
            self.assertEqual(self.asks("life", netns), "200")
        held = self.listed("life")
        self.assertEqual((held["state"], held["uses"], held["fetches"], held["error"]), ("held", 3, 1, None))
        self.assertLess(held["fetched"], held["ends"])
        self.assertLessEqual(held["fetched"], held["last_used"])
        self.assertEqual(self.listed("life", "other")["sent_as"], "x-key: Key ***")
        netns = self.box("failing", self.oauth("/error"))
        self.assertEqual(self.asks("failing", netns), "502")
        failed = self.listed("failing")
        self.assertEqual((failed["state"], failed["failures"], failed["uses"], failed["fingerprint"]), ("failed", 1, 0, None))
        self.assertIn("it answered 400: no such", failed["error"])
        self.assertIsNotNone(failed["failed"])

    def test_fingerprints(self):
        """The same for the same value, in every sandbox; no function of the value that somebody else could compute."""
        marks = {}
        for name in ("one", "two"):
            netns = self.box(name)
            self.asks(name, netns)
            self.inside(name, netns, "https://www.lab.test/op")
            marks[name] = [self.listed(name, c)["fingerprint"] for c in ("api", "other")]
        self.assertEqual(len({m for ms in marks.values() for m in ms}), 1, marks)
        first = marks["one"][0]
        self.fresh("value-of-a-file-2")
        self.does("rotate", "one")
        self.assertNotEqual(self.listed("one")["fingerprint"], first)
        os.kill(self.daemon.call("GET", "/v1/status")[2]["processes"]["keeper"], signal.SIGKILL)
        self.fresh(self.value)
        self.assertTrue(wait_until(lambda: self.daemon.call("POST", "/v1/sandboxes/two/credentials/check", {"credential": "api"})[0] == 200))
        self.assertNotEqual(self.listed("two")["fingerprint"], first)  # another keeper, another key

    def test_commands(self):
        netns = self.box("shown")
        self.asks("shown", netns)
        r = self.daemon.cli("credential", "list")
        self.assertEqual((r.returncode, r.stderr), (0, ""))
        head, row, other = r.stdout.splitlines()
        self.assertEqual(head.split()[:3], ["SANDBOX", "CREDENTIAL", "STATE"])
        self.assertEqual(row.split()[:4], ["shown", "api", "held", f"file:{self.path}"])
        self.assertEqual(other.split()[:3], ["shown", "other", "empty"])
        shown = self.daemon.cli("credential", "show", "shown", "api").stdout
        for words in ("held", "Authorization: Bearer ***", "https://api.lab.test", "fingerprint", "uses"):
            self.assertIn(words, shown)
        self.assertEqual(json.loads(self.daemon.cli("credential", "show", "shown", "api", "--json").stdout)["uses"], 1)
        self.assertEqual([c["name"] for c in json.loads(self.daemon.cli("credential", "list", "shown", "--json").stdout)[0]["credentials"]], ["api", "other"])
        self.assertIn("this value", self.daemon.cli("credential", "check", "shown", "api").stdout)
        self.assertIn("rotated", self.daemon.cli("credential", "rotate", "shown", "api").stdout)
        self.assertIn("0 that had it were ended", self.daemon.cli("credential", "revoke", "shown", "api").stdout)
        for words, status, text in ((("show", "shown", "nothing"), 1, "no credential"), (("show", "nobody", "api"), 1, "there is no sandbox"),
                                    (("rotate", "shown", "nothing"), 1, "it has api, other"), (("check", "shown"), 2, "which credential"),
                                    (("revoke",), 2, "which sandbox"), (("show", "a/b", "api"), 2, "no sandbox can be called"),
                                    (("list", "nobody"), 1, "there is no sandbox"), (("check", "shown", "api", "more"), 2, "too many"),
                                    (("rotat", "shown", "api"), 2, "rotate")):
            r = self.daemon.cli("credential", *words)
            self.assertEqual(r.returncode, status, (words, r))
            self.assertIn(text, r.stderr)
        for words in ([], ["list"], ["show"], ["check"], ["rotate"], ["revoke"]):
            self.assertIn("Usage: vethguard credential", self.daemon.cli("credential", *words, "--help").stdout)

    def test_bad_requests(self):
        self.box("wrong")
        for body, status, words in (({}, 422, "which one"), ({"credential": ""}, 422, "which one"), ({"credential": 1}, 422, "has to be"),
                                    ({"credential": "x" * 65}, 422, "longer"), ({"credential": "api", "value": "x"}, 422, "no such member"),
                                    ({"credential": "nothing"}, 422, "it has api, other"), (b"[", 400, "")):
            for what in ("check", "rotate", "revoke"):
                headers = {"Content-Type": "application/json"}
                got, _, answer = self.call("POST", f"/v1/sandboxes/wrong/credentials/{what}", body, headers=headers)
                self.assertEqual(got, status, (body, answer))
                self.assertIn(words, answer["detail"])
        self.assertEqual(self.call("POST", "/v1/sandboxes/nobody/credentials/rotate", {"credential": "api"})[0], 404)
        self.assertEqual(self.call("GET", "/v1/sandboxes/nobody/credentials")[0], 404)
        self.assertEqual(self.call("GET", "/v1/sandboxes/wrong/credentials/rotate")[0], 405)

    def test_who_may(self):
        """A member of the group may, and leaves an entry; others do not get in."""
        self.box("mine")
        body = json.dumps({"credential": "api"})
        for groups, ok in ((str(GROUP), True), ("61998", False)):
            r = subprocess.run(["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", f"--groups={groups}", "curl", "-sS", "-w", "%{http_code}",
                                "--unix-socket", self.daemon.socket, "http://localhost/v1/sandboxes/mine/credentials/revoke", "--json", body],
                               capture_output=True, text=True)
            self.assertEqual(r.stdout.endswith("200"), ok, r)
        e = self.daemon.event(**{"api.operation": "credentials.revoke"})
        self.assertTrue(e, self.daemon.events()[-3:])


class Checks(Credentials):
    def test_it_changes_nothing(self):
        netns = self.box("checked")
        self.assertEqual(self.asks("checked", netns), "200")
        mark = self.listed("checked")["fingerprint"]
        self.assertTrue(self.does("check", "checked")["fetched"]["in_use"])
        self.fresh("value-of-a-file-2")
        answer = self.does("check", "checked")
        self.assertFalse(answer["fetched"]["in_use"])
        self.assertNotEqual(answer["fetched"]["fingerprint"], mark)
        self.assertEqual(self.listed("checked")["fingerprint"], mark)
        self.assertEqual(self.asks("checked", netns), "200")
        self.assertEqual(set(self.sent()), {"Bearer " + self.value})

    def test_what_it_fetched_first_is_used(self):
        netns = self.box("first", self.oauth())
        answer = self.does("check", "first")
        self.assertEqual(answer["fetched"]["ttl_s"], 3600)
        self.assertEqual(self.asks("first", netns), "200")
        self.assertEqual([a["path"] for a in self.service.asked], ["/oauth/token"])

    def test_a_source_that_fails(self):
        netns = self.box("fails", self.oauth("/busy"))
        self.assertIn("it answered 429", self.does("check", "fails", status=502)["detail"])
        self.assertIn("asked to wait", self.does("rotate", "fails", status=503)["detail"])
        os.unlink(self.path)
        self.assertIn("No such file", self.does("check", "fails", "other", status=502)["detail"])
        self.assertEqual(self.asks("fails", netns), "502")


class Rotates(Credentials):
    def test_within_a_second_and_nothing_ends(self):
        netns = self.box("rotated")
        process, out = self.stream("rotated", netns)
        self.assertEqual(self.asks("rotated", netns), "200")
        self.fresh("value-of-a-file-2")
        began = time.monotonic()
        self.does("rotate", "rotated")
        self.assertEqual(self.asks("rotated", netns, "/after"), "200")
        self.assertLess(time.monotonic() - began, 1 * support.SLOW)
        self.assertEqual(self.sent("/after"), ["Bearer value-of-a-file-2"])
        self.assertTrue(self.grows(out))
        self.assertIsNone(process.poll())

    def test_a_failure_leaves_what_was(self):
        netns = self.box("kept")
        self.assertEqual(self.asks("kept", netns), "200")
        for wrong in ("short", "two\nlines-of-text", ""):
            support.LAB.write("operators-value", wrong, 0o600)
            self.does("rotate", "kept", status=502)
            self.assertEqual(self.asks("kept", netns), "200")
        self.assertEqual(set(self.sent()), {"Bearer " + self.value})
        self.assertEqual(self.listed("kept")["failures"], 3)

    def test_the_former_worker_too(self):
        """A worker that a reload has retired finishes its stream with what it has, and gives nothing of it to a new request."""
        netns = self.box("former")
        process, out = self.stream("former", netns)
        support.LAB.write("former.yaml", open(self.policy).read() + "# changed\n")
        self.assertEqual(self.call("POST", "/v1/sandboxes/former/reload")[0], 200)
        self.fresh("value-of-a-file-2")
        self.does("rotate", "former")
        self.assertEqual(self.asks("former", netns, "/after"), "200")
        self.assertEqual(self.sent("/after"), ["Bearer value-of-a-file-2"])
        self.assertTrue(self.grows(out))
        self.assertIsNone(process.poll())

    def test_under_load(self):
        """None of many requests fails, and after the answer none has the former value."""
        netns = self.box("load")
        r = []
        thread = threading.Thread(target=lambda: r.append(self.inside("load", netns, "https://api.lab.test/load-[1-600]", "-w", "%{http_code}\n", "-o", "/dev/null")))
        thread.start()
        self.addCleanup(thread.join)
        self.assertTrue(wait_until(lambda: self.seen("http", path="/load-5")))
        for n in range(2, 7):
            self.fresh(f"value-of-a-file-{n}")
            self.does("rotate", "load")
        thread.join()
        self.assertEqual(set(r[0].stdout.split()), {"200"})
        self.assertEqual(self.asks("load", netns, "/last"), "200")
        self.assertEqual(self.sent("/last"), ["Bearer value-of-a-file-6"])

    def test_at_the_same_time(self):
        """While one is under way another is refused; the slow source ends in its time."""
        self.box("slow", self.oauth("/gate"), ", timeout: 20s")
        r = []
        thread = threading.Thread(target=lambda: r.append(self.daemon.call("POST", "/v1/sandboxes/slow/credentials/rotate", {"credential": "api"})))
        thread.start()
        self.addCleanup(thread.join)
        self.assertTrue(wait_until(lambda: self.service.asked))
        self.assertEqual(self.listed("slow")["state"], "fetching")
        self.assertEqual(self.daemon.call("POST", "/v1/sandboxes/slow/credentials/check", {"credential": "api"})[0], 503)
        self.does("rotate", "slow", "other")
        self.service.gate.set()
        thread.join()
        self.assertEqual(r[0][0], 200, r)
        self.assertEqual(len(self.service.asked), 1)


class Revokes(Credentials):
    def test_at_once_and_until_it_is_rotated(self):
        netns = self.box("revoked")
        streams = [self.stream("revoked", netns, option=option)[0] for option in ("--http1.1", "--http2")]
        other = self.inside("revoked", netns, "https://www.lab.test/other", "-w", "%{http_code}", "-o", "/dev/null")
        self.assertEqual(other.stdout, "200")
        answer = self.does("revoke", "revoked")
        self.assertEqual((answer["ended"], answer["credential"]["state"]), (2, "revoked"))
        self.assertTrue(wait_until(lambda: None not in [p.poll() for p in streams], 2 * support.SLOW))
        self.assertNotIn(0, [p.returncode for p in streams])
        self.assertEqual(self.asks("revoked", netns, "/never"), "502")
        self.assertEqual(self.sent("/never"), [])
        self.assertIn("revoked", self.daemon.event(**{"http_request.url.path": "/never"})["status_detail"])
        # the other credential goes on
        self.assertEqual(self.inside("revoked", netns, "https://www.lab.test/other", "-w", "%{http_code}", "-o", "/dev/null").stdout, "200")
        self.does("check", "revoked")  # looks, and gives nothing out
        self.assertEqual(self.asks("revoked", netns, "/never"), "502")
        self.does("rotate", "revoked")
        self.assertTrue(wait_until(lambda: self.asks("revoked", netns, "/again") == "200"))
        self.assertEqual(self.listed("revoked")["state"], "held")

    def test_twice_and_before_any_use(self):
        netns = self.box("early")
        for _ in range(2):
            self.assertEqual(self.does("revoke", "early")["ended"], 0)
        self.assertEqual(self.asks("early", netns), "502")
        self.assertEqual(self.sent(), [])

    def test_while_it_is_fetched(self):
        """A request that waits for the value is refused, and what comes then is for nobody."""
        netns = self.box("fetched", self.oauth("/gate"), ", timeout: 20s")
        r = []
        thread = threading.Thread(target=lambda: r.append(self.asks("fetched", netns, "/never")))
        thread.start()
        self.addCleanup(thread.join)
        self.assertTrue(wait_until(lambda: self.service.asked))
        self.does("revoke", "fetched")
        thread.join(10 * support.SLOW)
        self.assertEqual(r, ["502"])
        self.service.gate.set()
        time.sleep(0.5)
        self.assertEqual(self.asks("fetched", netns, "/never"), "502")
        self.assertEqual(self.sent("/never"), [])

    def test_the_former_worker_too(self):
        netns = self.box("streams")
        process, _ = self.stream("streams", netns)
        support.LAB.write("streams.yaml", open(self.policy).read() + "# changed\n")
        self.assertEqual(self.call("POST", "/v1/sandboxes/streams/reload")[0], 200)
        self.assertEqual(self.does("revoke", "streams")["ended"], 1)
        self.assertTrue(wait_until(lambda: process.poll() is not None, 2 * support.SLOW))
        self.assertEqual(self.asks("streams", netns, "/never"), "502")

    def test_it_outlives_workers_and_keepers(self):
        netns = self.box("lasting")
        self.assertEqual(self.asks("lasting", netns), "200")
        self.does("revoke", "lasting")
        for role in ("worker", "keeper"):
            pid = (self.daemon.call("GET", "/v1/sandboxes/lasting")[2]["worker"]["pid"] if role == "worker"
                   else self.daemon.call("GET", "/v1/status")[2]["processes"]["keeper"])
            os.kill(pid, signal.SIGKILL)
            self.assertTrue(wait_until(lambda: self.asks("lasting", netns, "/never") == "502"), self.daemon.stderr())
            self.assertTrue(wait_until(lambda: self.listed("lasting")["state"] == "revoked"))
        self.assertEqual(self.sent("/never"), [])

    def test_a_reload_of_the_sandbox_ends_it(self):
        """A reload of all does not: it is not about this."""
        netns = self.box("back")
        self.does("revoke", "back")
        support.LAB.write("back.yaml", open(self.policy).read() + "# changed\n")
        self.assertEqual(self.call("POST", "/v1/reload")[0], 200)
        self.assertEqual(self.asks("back", netns, "/never"), "502")
        self.assertEqual(self.listed("back")["state"], "revoked")
        self.assertEqual(self.call("POST", "/v1/sandboxes/back/reload")[0], 200)
        self.assertEqual(self.asks("back", netns), "200")
        self.assertEqual(self.sent("/never"), [])


class Outlives(Credentials):
    def test_the_daemon(self):
        netns = self.box("kept")
        self.does("revoke", "kept")
        self.does("revoke", "kept", "other")
        self.does("rotate", "kept", "other")
        self.daemon.stop()
        self.daemon.start()
        self.assertEqual(self.listed("kept")["state"], "revoked")
        self.assertNotEqual(self.listed("kept", "other")["state"], "revoked")
        self.assertEqual(self.asks("kept", netns, "/never"), "502")
        os.kill(self.daemon.call("GET", "/v1/status")[2]["processes"]["supervisor"], signal.SIGKILL)
        self.daemon.process.wait()
        support.KILLED.add(self.daemon.audit)
        self.daemon.start()
        self.assertEqual(self.asks("kept", netns, "/never"), "502")
        self.assertEqual(self.sent("/never"), [])
        self.does("rotate", "kept")
        self.assertTrue(wait_until(lambda: self.asks("kept", netns) == "200"))
