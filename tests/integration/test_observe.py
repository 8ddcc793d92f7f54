# SPDX-License-Identifier: Apache-2.0
"""Mode observe: what the policy would have refused is marked so, whatever became of it, and suggested."""
import json
import subprocess

import support
from support import DNS, FINDING, HTTP, NETWORK, SLOW, VETHGUARD, field, policy

DEFAULT = "no rule of the policy names the destination"
# nowhere.other.test does not exist; nothing listens on port 9; evil.lab.test closes every connection.
FAILING = (("https://nowhere.other.test/a", "resolve"), ("http://nowhere.other.test/p", "resolve"),
           ("https://www.lab.test:9/b", "connect"), ("https://evil.lab.test/c", "upstream-tls"),
           ("http://evil.lab.test:8080/d", "upstream"))


class Observed(support.Boxed):
    @classmethod
    def make_box(cls):
        return support.Sandbox(policy("https://api.lab.test", "http://nowhere.allowed.test", "udp://udp.lab.test:1234",
                                      deny=("{to: 'https://git.lab.test', name: no-git, reason: 'No git.'}",),
                                      more="mode: observe\n"), options=["--name", "observed"])

    def tool(self, *argv):
        r = subprocess.run([VETHGUARD, "audit", *argv], capture_output=True, text=True, timeout=60 * SLOW)
        self.assertIn(r.returncode, (0, 1), r)
        return r.stdout

    def suggested(self):
        self.box.settle()
        return {(s["rule"]["to"], *s["rule"].get("paths", ())): s for s in json.loads(self.tool("suggest", self.box.audit, "--json"))["suggested"]}

    def fetch(self, url, *options):
        return self.box.run("curl", "-sS", "-o", "/dev/null", "-w", "%{http_code}", "-m", "30", *options, url)

    def assert_observed(self, event, failure=None, code="default"):
        self.assertIsNotNone(event)
        self.assertEqual((event["action_id"], event["status_code"], event["policy"]["is_applied"]), (3, code, False), event)
        self.assertEqual((event["disposition_id"], event["status_id"]), (27, 2) if failure else (17, 1), event)
        self.assertEqual(field(event, "unmapped.failure"), failure, event)

    def test_requests_that_fail_outside(self):
        for url, failure in FAILING:
            with self.subTest(url=url):
                self.fetch(url)
                path = "/" + url.rsplit("/", 1)[1]
                event = self.box.event(HTTP, **{"http_request.url.path": path})
                self.assert_observed(event, failure)
                self.assertIn(DEFAULT + "; then it failed: ", event["status_detail"])
                s = next(s for to, s in self.suggested().items() if path in to[1:])
                self.assertEqual(s["failed"], s["count"], s)

    def test_a_deny_rule(self):
        """The rule is told, and nothing is suggested that it refuses."""
        self.fetch("https://git.lab.test/fine")
        self.fetch("https://git.lab.test/slow?20", "-m", "1")
        fine = self.box.event(HTTP, **{"http_request.url.hostname": "git.lab.test", "http_request.url.path": "/fine"})
        self.assert_observed(fine, code="rule")
        self.assertEqual((fine["firewall_rule"]["name"], fine["status_detail"]), ("no-git", "No git."))
        slow = self.box.event(HTTP, **{"http_request.url.hostname": "git.lab.test", "http_request.url.path": "/slow"})
        self.assert_observed(slow, "client", code="rule")
        self.assertEqual(slow["firewall_rule"]["name"], "no-git")
        self.assertEqual([to for to in self.suggested() if "git.lab.test" in to[0]], [])

    def test_the_sandbox_gives_up(self):
        done = self.fetch("https://www.lab.test/slow?20", "-m", "1")
        self.assertEqual(done.status, 28, done)
        event = self.box.event(HTTP, **{"http_request.url.hostname": "www.lab.test", "http_request.url.path": "/slow"})
        self.assert_observed(event, "client")

    def test_what_a_rule_allows_and_fails_is_no_denial(self):
        self.fetch("http://nowhere.allowed.test/mine")
        event = self.box.event(HTTP, **{"http_request.url.path": "/mine"})
        self.assertEqual((event["action_id"], event["disposition_id"], event["status_code"], event["policy"]["is_applied"]),
                         (1, 27, "resolve", True), event)
        self.assertEqual([to for to in self.suggested() if "allowed" in to[0]], [])

    def test_the_floor_is_still_denied(self):
        for url, path, code in (("https://meta.lab.test/floor", "/floor", "address"), ("https://www.lab.test/trace", "/trace", "client")):
            with self.subTest(url=url):
                self.fetch(url, "-X", "TRACE" if code == "client" else "GET")
                event = self.box.event(HTTP, **{"http_request.url.path": path})
                self.assertEqual((event["action_id"], event["status_code"]), (2, code), event)
                self.assertEqual([to for to in self.suggested() if to[1:] == (path,)], [])

    def test_a_server_that_speaks_first(self):
        """Heard within seconds, by a client that says nothing; told and suggested as a tcp:// rule names it."""
        out = self.py("s = connect('tcp.lab.test', 2222, %d)\nt = time.monotonic(); print(s.recv(20), time.monotonic() - t < %d); s.close()" % (8 * SLOW, 8 * SLOW))
        self.assertEqual(out, "b'banner 1.0\\r\\n' True\n")
        event = self.box.event(NETWORK, **{"dst_endpoint.hostname": "tcp.lab.test", "dst_endpoint.port": 2222})
        self.assert_observed(event)
        self.assertIn("tcp://tcp.lab.test:2222 ", self.tool("show", self.box.audit))
        self.assertIn(("tcp://tcp.lab.test:2222",), self.suggested())

    def test_the_client_says_nothing_and_goes(self):
        self.py("s = connect('www.lab.test', 25); s.close()")
        event = self.box.event(NETWORK, **{"dst_endpoint.hostname": "www.lab.test", "dst_endpoint.port": 25})
        self.assert_observed(event, "client")
        self.assertEqual(self.suggested()[("tcp://www.lab.test:25",)]["failed"], 1)

    def test_on_the_ports_of_the_web_it_is_waited_for(self):
        """Clients of the web connect before they ask: such a connection is not let out unread."""
        out = self.py("import time\nfor port in (80, 443):\n s = connect('plain.lab.test', port); s.settimeout(2.5)\n"
                      " try: s.recv(1); print('answered')\n except TimeoutError: print('waits')\n s.close()")
        self.assertEqual(out, "waits\nwaits\n")
        for port in (80, 443):
            self.assertIsNotNone(self.box.event(NETWORK, **{"dst_endpoint.hostname": "plain.lab.test", "dst_endpoint.port": port}))
        self.assertEqual([to for to in self.suggested() if to[0].startswith("tcp://plain.lab.test")], [])

    def test_a_rule_of_the_web_keeps_its_wait(self):
        """If a rule allows https, a slow client is not taken for another protocol: its request gets its verdict."""
        self.assertIn("200", self.py("import time\ns = connect('api.lab.test', 443); time.sleep(2.5)\nc = ssl.create_default_context()\n"
                                     "t = c.wrap_socket(s, server_hostname='api.lab.test'); t.sendall(request('GET', '/late', 'api.lab.test'))\nprint(Reader(t).response()[0])"))
        self.assertEqual(self.box.event(HTTP, **{"http_request.url.path": "/late"})["action_id"], 1)

    def test_connections_and_flows_that_fail(self):
        self.py("s = connect('www.lab.test', 9)\ns.sendall(b'EHLO x\\r\\n')\ntry: s.recv(1)\nexcept OSError: pass\n"
                "a = socket.getaddrinfo('nowhere.other.test', 1234, socket.AF_INET, socket.SOCK_DGRAM)[0][4]\n"
                "u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); u.sendto(b'x', a); u.settimeout(1)\n"
                "try: u.recv(1)\nexcept OSError: pass")
        self.assert_observed(self.box.event(NETWORK, **{"dst_endpoint.hostname": "www.lab.test", "dst_endpoint.port": 9}), "connect")
        self.assert_observed(self.box.event(NETWORK, **{"dst_endpoint.hostname": "nowhere.other.test", "dst_endpoint.port": 1234}), "resolve")
        self.assertIn(("udp://nowhere.other.test:1234",), self.suggested())

    def test_a_client_that_does_not_trust_the_ca(self):
        """No request is seen, so none is suggested, and it is said."""
        self.box.run("curl", "-sS", "--cacert", "/etc/hostname", "--capath", "/nonexistent", "https://deb.lab.test:8443/")
        event = self.box.event(NETWORK, **{"tls.sni": "deb.lab.test"})
        self.assertIsNotNone(event)
        self.assertIn("tls deb.lab.test:8443", self.tool("show", self.box.audit))
        text = self.tool("suggest", self.box.audit)
        self.assertRegex(text, r"# Not suggested: no request was seen[^\n]*\n(#.*\n)*#.*tls deb\.lab\.test:8443")

    def test_findings_and_names(self):
        """An observed request is not a finding, and names stay marked as observed."""
        self.fetch("https://nowhere.other.test/again")
        self.assertEqual({e["action_id"] for e in self.box.events(DNS) if field(e, "query.hostname") == "nowhere.other.test"}, {3})
        self.assertEqual([e for e in self.box.events(FINDING) if "nowhere" in json.dumps(e)], [])


class Enforced(support.Boxed):
    @classmethod
    def make_box(cls):
        return support.Sandbox(policy("https://api.lab.test", "http://nowhere.other.test"))

    def test_failures_are_as_they_were(self):
        self.box.run("curl", "-sS", "http://nowhere.other.test/f")
        event = self.box.event(HTTP, **{"http_request.url.path": "/f"})
        self.assertEqual((event["action_id"], event["disposition_id"], event["status_code"]), (1, 27, "resolve"), event)
        self.assertIsNone(field(event, "unmapped.failure"))

    def test_a_silent_client_is_denied(self):
        self.py("s = connect('www.lab.test', 25); s.close()")
        event = self.box.event(NETWORK, **{"dst_endpoint.hostname": "www.lab.test", "dst_endpoint.port": 25})
        self.assertEqual((event["action_id"], event["status_code"]), (2, "client"), event)
