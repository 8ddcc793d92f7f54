# SPDX-License-Identifier: Apache-2.0
"""https://vethguard.internal/, which vethguard answers itself: it tells why a request was refused and what the policy allows, and takes
proposals of rules. The operator sees what a rule opens; the rule is in force only once somebody has approved it."""
import json
import os
import subprocess
import time

import control_case
import daemon_case
import support
from support import HTTP, policy, wait_until

OWN = "https://vethguard.internal"
RULES = ("{name: reads, to: 'https://api.lab.test', methods: [GET], paths: ['/a/**']}",)
MORE = ("ask:\n  - {name: pulls, to: 'https://api.lab.test', methods: [POST], paths: ['/pulls/**']}\n"
        "deny:\n  - {name: never, to: '*.lab.test', paths: ['/secret/**'], reason: 'not for agents'}\n")


def proposal(**changed):
    return {**{"to": "https://api.lab.test", "methods": ["GET"], "paths": ["/whoami"], "reason": "I want to know who I am"}, **changed}


class Inquiring(daemon_case.Attached):
    described = control_case.Described()

    def write(self, *rules):
        return support.LAB.write(f"daemon-{time.monotonic_ns()}.yaml", policy(*RULES, more=MORE))

    def direct(self, *argv):
        """Without the proxy: by DNS, as a program does that knows nothing of vethguard."""
        return subprocess.run(["ip", "netns", "exec", self.name, "curl", "-sS", "-m", str(10 * support.SLOW), "--cacert", self.ca, *argv],
                              capture_output=True, text=True)

    def get(self, path, status=200, *argv, base=OWN):
        r = self.curl("-w", "\n%{http_code}", *argv, base + path)
        body, _, got = r.stdout.rpartition("\n")
        self.assertEqual(got, str(status), r)
        return json.loads(body) if body.startswith("{") else body

    def propose(self, status=202, **changed):
        answer = self.get("/proposals", status, "-H", "Content-Type: application/json", "-d", json.dumps(proposal(**changed)))
        return answer

    def asks(self, **having):
        status, headers, answer = self.daemon.call("GET", "/v1/asks")
        self.described.answer("GET", "/v1/asks", status, headers, answer)
        return [a for a in answer["asks"] if all(a[k] == v for k, v in having.items())]

    def decide(self, ask, what="approve", status=200, **body):
        path = f"/v1/asks/{ask}/{what}"
        got, headers, answer = self.daemon.call("POST", path, body)
        self.described.answer("POST", path, got, headers, answer)
        self.assertEqual(got, status, answer)
        return answer

    def state(self, ask):
        return self.get(f"/proposals/{ask}")

    def allowed(self):
        """True if the lab's server answers (with 401, since there is no key), false if vethguard refuses (403)."""
        code = self.curl("-o", "/dev/null", "-w", "%{http_code}", "https://api.lab.test/whoami").stdout
        self.assertIn(code, ("401", "403", "503"))
        return code == "401"

    def test_why_refused_and_what_may_be_done(self):
        r = json.loads(self.curl("-H", "Accept: application/json", "https://api.lab.test/secret/1").stdout)
        self.assertEqual(r["help"], f"{OWN}/denials/{r['event']}")
        told = json.loads(self.curl(r["help"]).stdout)
        self.assertEqual((told["rule"], told["reason"], told["status"], told["code"]), ("never", "not for agents", 403, "rule"))
        self.assertEqual(told["advice"], r["advice"])
        self.get("/denials/0123456789abcdef", 404)
        rules = {rule["rule"]: rule for rule in self.get("/policy")["rules"]}
        self.assertEqual((rules["reads"]["methods"], rules["reads"]["paths"]), (["GET"], ["/a/**"]))
        self.assertEqual((rules["pulls"]["kind"], rules["never"]["kind"]), ("ask", "deny"))
        text = self.get("/policy", 200, "-H", "Accept: text/plain")
        self.assertIn("rule: reads\n", text)
        self.assertNotIn(self.policy, text)
        event = self.daemon.event(HTTP, **{"http_request.url.path": "/policy", "http_request.url.hostname": "vethguard.internal"})
        self.assertEqual((event["action_id"], event["http_response"]["code"]), (1, 200))

    def test_by_name_and_by_lies(self):
        """The name is there by DNS, over http and https, in HTTP/2. Another Host, name or port does not get its answers, nor does it get another's."""
        r = subprocess.run(["ip", "netns", "exec", self.name, "python3", "-c", DNS, "198.18.0.1"], capture_output=True, text=True)
        address = r.stdout
        self.assertRegex(address, r"^198\.1[89]\.\d+\.\d+$", r)
        fixed = ("--resolve", f"vethguard.internal:443:{address}", "--resolve", f"vethguard.internal:80:{address}",
                 "--resolve", f"vethguard.internal:8443:{address}", "--resolve", f"api.lab.test:443:{address}")
        for argv, code in (((f"{OWN}/",), "200"), (("--http1.1", f"{OWN}/"), "200"), (("http://vethguard.internal/",), "200"),
                           (("-H", "Host: api.lab.test", f"{OWN}/"), "421"), (("-H", "Host: x.vethguard.internal", f"{OWN}/"), "421"),
                           (("-H", "Host: api.lab.test", "http://vethguard.internal/"), "403"), (("https://api.lab.test/a/1",), "421"),
                           (("-H", "Origin: https://evil.example", f"{OWN}/"), "403"), (("-X", "PUT", f"{OWN}/policy"), "405")):
            got = self.direct("-o", "/dev/null", "-w", "%{http_code}", *fixed, *argv)
            if code == "421":
                self.assertIn(got.stdout, ("421", "403"), (argv, got))
            else:
                self.assertEqual(got.stdout, code, (argv, got))
        r = self.direct("-w", "%{http_code}", *fixed, "https://vethguard.internal:8443/")
        self.assertTrue(r.stdout.endswith("403"), r)

    def test_proposed_approved_and_ended(self):
        self.assertFalse(self.allowed())
        answer = self.propose()
        ask = answer["id"]
        self.assertEqual((answer["state"], answer["poll"]), ("waiting", f"{OWN}/proposals/{ask}"))
        self.assertTrue(wait_until(lambda: self.asks(id=ask), 10 * support.SLOW))
        waits = self.asks(id=ask)[0]
        self.assertEqual((waits["proposed"], waits["state"], waits["method"], waits["url"], waits["paths"], waits["reason"]),
                         (True, "waiting", "GET", "https://api.lab.test", "/whoami", "I want to know who I am"))
        status, headers, answer = self.daemon.call("GET", f"/v1/asks/{ask}/diff")
        self.described.answer("GET", f"/v1/asks/{ask}/diff", status, headers, answer)
        self.assertEqual(answer["diff"], ["+ may: GET https://api.lab.test/whoami"])
        shown = self.daemon.cli("ask").stdout
        self.assertIn(f"{ask}  one: proposes GET https://api.lab.test /whoami\n", shown)
        self.assertIn('its reason: "I want to know who I am"\n', shown)
        self.assertIn("      + may: GET https://api.lab.test/whoami\n", shown)
        self.assertFalse(self.allowed())                            # it only waits
        self.decide(ask, status=422)                                      # for how long?
        self.decide(ask, status=422, always=True, whole_rule=True)
        self.assertEqual(self.daemon.cli("approve", ask[:8], "--for", "1h").returncode, 0)
        self.assertTrue(wait_until(self.allowed, 10 * support.SLOW), self.daemon.stderr())
        state = self.state(ask)
        self.assertEqual((state["state"], state["text"]), ("approved", "approved by uid 0 for 3600 s"))
        self.decide(ask, status=409, for_s=5)
        self.daemon.call("POST", "/v1/sandboxes/one/reload", {})          # a reload keeps it
        self.assertTrue(wait_until(self.allowed, 10 * support.SLOW))
        self.decide(ask, "refuse", reason="enough")
        self.assertTrue(wait_until(lambda: not self.allowed(), 10 * support.SLOW))
        self.assertTrue(wait_until(lambda: self.state(ask)["state"] == "ended", 10 * support.SLOW))
        self.assertEqual(self.state(ask)["text"], "ended by uid 0: enough")
        self.decide(ask, "refuse", status=404)
        self.assertIsNotNone(self.daemon.event(6003, **{"api.operation": "asks.approve"}))

    def test_its_time_ends(self):
        ask = self.propose()["id"]
        self.assertTrue(wait_until(lambda: self.asks(id=ask), 10 * support.SLOW))
        self.decide(ask, for_s=1)
        self.assertTrue(wait_until(lambda: self.state(ask)["state"] == "ended", 10 * support.SLOW))
        self.assertTrue(wait_until(lambda: not self.allowed(), 10 * support.SLOW))
        self.assertEqual(self.asks(), [])

    def test_a_reload_that_fails(self):
        """The policy cannot be loaded when an approval ends: the log says so, each time after a longer pause, until it can."""
        ask = self.propose()["id"]
        self.assertTrue(wait_until(lambda: self.asks(id=ask), 10 * support.SLOW))
        self.decide(ask, for_s=3600)
        with open(self.policy) as f:
            good = f.read()
        with open(self.policy, "a") as f:
            f.write("nonsense: 1\n")
        self.decide(ask, "refuse", reason="enough")
        self.assertTrue(wait_until(lambda: "is still in force" in self.daemon.stderr() and "tried again in 2 s" in self.daemon.stderr(), 10 * support.SLOW),
                        self.daemon.stderr())
        self.assertEqual(self.daemon.stderr().count("tried again in 1 s"), 1, self.daemon.stderr())
        self.assertTrue(self.allowed())
        with open(self.policy, "w") as f:
            f.write(good)
        self.assertEqual(self.daemon.call("POST", "/v1/sandboxes/one/reload", {})[0], 200)
        self.assertTrue(wait_until(lambda: not self.allowed(), 10 * support.SLOW))

    def test_refused_proposals(self):
        """A proposal that is malformed, one too many, or denied by a rule of the operator's opens nothing."""
        for changed in ({"to": "https://10.0.0.1"}, {"to": "tcp://api.lab.test:22"}, {"to": "https://vethguard.internal"}, {"methods": []},
                        {"paths": ["x"]}, {"reason": ""}, {"credential": "key"}, {"reason": "x" * 501}):
            self.propose(422, **changed)
        self.get("/proposals", 415, "-d", json.dumps(proposal()))
        self.get("/proposals", 403, "-H", "Content-Type: application/json", "-H", "Origin: http://x", "-d", json.dumps(proposal()))
        self.get("/proposals", 413, "-H", "Content-Type: application/json", "-d", "x" * 5000)
        self.assertEqual(self.asks(), [])
        ask = self.propose(paths=["/secret/**"])["id"]
        self.assertTrue(wait_until(lambda: self.asks(id=ask), 10 * support.SLOW))
        self.propose(429)                                                 # at once after the first
        self.assertEqual(self.daemon.call("GET", f"/v1/asks/{ask}/diff")[2]["diff"], [])
        self.assertIn("it changes nothing", self.daemon.cli("ask").stdout)
        self.decide(ask, always=True)
        self.assertEqual(self.curl("-o", "/dev/null", "-w", "%{http_code}", "https://api.lab.test/secret/1").stdout, "403")
        self.assertEqual(self.daemon.call("GET", "/v1/asks/0123456789abcdef/diff")[0], 404)

    def test_a_refused_proposal_is_told(self):
        ask = self.propose(reason="\u202eplease")["id"]
        self.assertTrue(wait_until(lambda: self.asks(id=ask), 10 * support.SLOW))
        self.assertIn("please", self.daemon.cli("ask").stdout)
        self.assertNotIn("\u202e", self.daemon.cli("ask").stdout)
        self.decide(ask, "refuse", reason="never")
        self.assertTrue(wait_until(lambda: self.state(ask)["state"] == "refused", 10 * support.SLOW))
        self.assertEqual(self.state(ask)["text"], "refused by uid 0: never")
        self.assertFalse(self.allowed())

    def test_an_approved_request_is_told(self):
        done = subprocess.Popen(["ip", "netns", "exec", self.name, "curl", "-sS", "--cacert", self.ca, "-x", daemon_case.PROXY, "-X", "POST",
                                 "https://api.lab.test/pulls/1"], stdout=subprocess.DEVNULL)
        self.addCleanup(done.wait)
        self.assertTrue(wait_until(lambda: self.asks(proposed=False), 10 * support.SLOW))
        ask = self.asks()[0]["id"]
        self.assertEqual(self.get(f"/asks/{ask}")["state"], "waiting")
        self.decide(ask, "refuse", reason="not today")
        self.assertTrue(wait_until(lambda: self.get(f"/asks/{ask}")["state"] == "refused", 10 * support.SLOW))
        self.assertIn("not today", self.get(f"/asks/{ask}")["text"])
        self.get("/asks/0123456789abcdef", 404)


DNS = """
import random, socket, struct, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.settimeout(20)
name = b"".join(bytes([len(l)]) + l for l in b"vethguard.internal".split(b".")) + b"\\0"
s.sendto(struct.pack(">HHHHHH", 7, 0x100, 1, 0, 0, 0) + name + b"\\0\\1\\0\\1", (sys.argv[1], 53))
answer = s.recv(512)
print(socket.inet_ntoa(answer[-4:]), end="")
"""


class Off(support.Case):
    def test_off_and_nobody_to_ask(self):
        curl = "curl -s -o /dev/null -w '%%{http_code} ' %s/; curl -s -H 'Content-Type: application/json' -d '%s' %s/proposals" % (
            OWN, json.dumps(proposal()), OWN)
        done = self.run_vethguard(policy(*RULES), ["sh", "-c", curl + "; sleep 0.2; curl -s %s/proposals" % OWN])
        self.assertIn("200 ", done.stdout)
        self.assertIn("refused", done.stdout)
        done = self.run_vethguard(policy(*RULES, more="internal: off\n"), ["sh", "-c", curl])
        self.assertIn("403 ", done.stdout)
        self.assertNotIn('"help"', done.stdout)
