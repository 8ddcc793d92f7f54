# SPDX-License-Identifier: Apache-2.0
"""Values that a service has made for a sandbox: renewed before they end, given back when nobody uses them any more, also by the
next daemon; and services that want to be left alone."""
import glob
import json
import os
import signal
import time

import control_case
import lab
import support
from credential_service import PORT, URL, Served, Service
from support import policy, wait_until

RULE = "{to: 'https://api.lab.test', credential: api}"


class Services(Served, control_case.Control):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        for name, text in (("lease-token", "vault-token-0123456789"), ("lease-secret-id", "secret-id-0123456789"),
                           ("lease-client", "client:secret&0123456789"), ("lease-jwt", "signed-token-0123456789")):
            support.LAB.write(name, text + "\n", 0o600)

    def setUp(self):
        super().setUp()
        s = self.service
        s.lease_fault = None
        self.assertTrue(wait_until(lambda: not self.notes(), 20), self.notes())  # of the test before
        s.asked.clear()
        s.leases.clear()
        s.expires_in, s.login_lives, s.lease_fault, s.renewable, s.renewed_for, s.throttled, s.retry_after = 3600, 0, None, True, 0, 0, 30

    def vault(self, path="database/creds/agent", **more):
        return {"vault": {"url": URL, "path": path, "field": "password", **(more or {"token": f"file:{support.LAB.path('lease-token')}"})}}

    def oauth(self, url=URL + "/oauth/token"):
        return {"oauth2": {"token_url": url, "client_id": "agent one", "client_secret": f"file:{support.LAB.path('lease-client')}"}}

    def written(self, name, source, more=""):
        return support.LAB.write(name + ".yaml", policy(RULE, credentials=f"  api: {{source: {json.dumps(source)}, inject: bearer{more}}}\n"))

    def box(self, name, source, more=""):
        netns = self.namespace()
        self.daemon.attach(netns=netns, policy=self.written(name, source, more), name=name)
        return netns

    def asks(self, name, netns, path="/lease"):
        return self.inside(name, netns, f"https://api.lab.test{path}", "-w", "%{http_code}", "-o", "/dev/null").stdout

    def sent(self, path="/lease"):
        return [v for r in self.seen("http", path=path) for n, v in r["headers"] if n.lower() == "authorization"]

    def paths(self):
        return [a["path"] for a in self.service.asked]

    def live(self):
        return [k for k, v in self.service.leases.items() if v == "live"]

    def notes(self):
        return glob.glob(os.path.join(self.daemon.state, "leases", "*"))

    def assert_given_back(self, seconds=10):
        self.assertTrue(wait_until(lambda: not self.live(), seconds * support.SLOW), (self.service.leases, self.daemon.stderr()))
        self.assertTrue(wait_until(lambda: not self.notes()), self.notes())


class Renews(Services):
    def keep_asking(self, name, netns, until):
        """Each request is answered, until something has happened."""
        def there():
            self.assertEqual(self.asks(name, netns), "200", self.daemon.stderr())
            return until()
        self.assertTrue(wait_until(there, 60 * support.SLOW, 0.1), self.paths())

    def test_before_its_end(self):
        """Under one lease, renewed again and again, the value stays, and no request waits for it."""
        self.service.expires_in = 4
        netns = self.box("renewed", self.vault())
        self.keep_asking("renewed", netns, lambda: self.paths().count("/v1/sys/leases/renew") >= 2)
        leases = self.paths().count("/v1/database/creds/agent")  # more than one where this machine was too slow to renew in time
        self.assertLessEqual(len(set(self.sent())), leases)
        self.assertEqual(self.daemon.call("DELETE", "/v1/sandboxes/renewed")[0], 200)
        self.assert_given_back()

    def replaced(self, name, source):
        """Another value comes before the end of the one before, whose lease is given back."""
        self.service.expires_in = 4
        netns = self.box(name, source)
        self.keep_asking(name, netns, lambda: len(set(self.sent())) >= 2)
        self.service.lease_fault = None
        self.assertTrue(wait_until(lambda: len(self.live()) == 1), self.service.leases)

    def test_the_service_says_so(self):
        self.service.renewable = False
        self.replaced("not", self.vault())
        self.assertNotIn("/v1/sys/leases/renew", self.paths())

    def test_less_and_less(self):
        self.service.renewed_for = 1
        self.replaced("less", self.vault())

    def test_a_renewal_that_is_refused(self):
        self.service.lease_fault = (403, {"errors": ["permission denied"]})
        self.replaced("refused", self.vault())

    def test_the_token_of_a_login(self):
        """Leases made under the token end with it."""
        self.replaced("login", self.vault(role_id="role-1", secret_id=f"file:{support.LAB.path('lease-secret-id')}"))
        self.assertNotIn("/v1/sys/leases/renew", self.paths())

    def test_used_while_it_is_valid(self):
        """The service fails when the next one is due: the value is used to its end, then requests are refused, and it is back at once."""
        self.service.expires_in = 8 * support.PACE
        netns = self.box("valid", self.oauth())
        self.assertEqual(self.asks("valid", netns), "200")
        self.service.throttled, self.service.retry_after = 1, 3

        def told():
            return "The earlier value is still used" in self.daemon.stderr() or not self.assertEqual(self.asks("valid", netns), "200") and False
        self.assertTrue(wait_until(told, 12 * support.PACE), self.daemon.stderr())
        self.assertTrue(wait_until(lambda: self.asks("valid", netns) == "502", 3 * support.PACE))
        self.assertTrue(wait_until(lambda: self.asks("valid", netns) == "200", 5 * support.SLOW))
        self.assertEqual(len(set(self.sent())), 2)

    def test_nobody_uses_it(self):
        self.service.expires_in = 2
        netns = self.box("idle", self.oauth())
        self.assertEqual(self.asks("idle", netns), "200")
        time.sleep(4)
        self.assertEqual(self.paths(), ["/oauth/token"])


class GivesBack(Services):
    def test_the_end_of_a_sandbox(self):
        for name, more in (("token", {}), ("login", {"role": "agent", "jwt": f"file:{support.LAB.path('lease-jwt')}", "auth_path": "kubernetes"})):
            netns = self.box(name, self.vault(**more))
            self.assertEqual(self.asks(name, netns), "200", self.daemon.stderr())
            self.assertEqual(len(self.live()), 1)
            self.assertEqual(len(self.notes()), 1)
            self.assert_no_secret(open(self.notes()[0], "rb").read(), self.sent()[-1].removeprefix("Bearer "))
            self.daemon.call("DELETE", f"/v1/sandboxes/{name}")
            self.assert_given_back()

    def test_a_reload(self):
        """The new worker gets its own; the former's goes when it has ended."""
        netns = self.box("again", self.vault())
        self.assertEqual(self.asks("again", netns), "200")
        self.assertEqual(self.call("POST", "/v1/sandboxes/again/reload")[0], 200)
        self.assertEqual(self.asks("again", netns), "200")
        self.assertTrue(wait_until(lambda: len(self.live()) == 1, 10 * support.SLOW), self.service.leases)
        self.assertEqual(len(self.service.leases), 2)

    def test_operators(self):
        """A rotation gives the former back a little later, a check what it did not use at once, a revocation the one in use."""
        netns = self.box("operated", self.vault())
        self.assertEqual(self.asks("operated", netns), "200")
        body = {"credential": "api"}
        self.assertEqual(self.call("POST", "/v1/sandboxes/operated/credentials/check", body)[0], 200)
        self.assertTrue(wait_until(lambda: len(self.service.leases) == 2 and len(self.live()) == 1), self.service.leases)
        self.assertEqual(self.call("POST", "/v1/sandboxes/operated/credentials/rotate", body)[0], 200)
        self.assertEqual(len(self.live()), 2)
        self.assertTrue(wait_until(lambda: len(self.live()) == 1, 10 * support.SLOW), self.service.leases)
        self.assertEqual(self.asks("operated", netns, "/after"), "200")
        self.assertTrue(self.live()[0].endswith(self.sent("/after")[0][-4:]))
        self.assertEqual(self.call("POST", "/v1/sandboxes/operated/credentials/revoke", body)[0], 200)
        self.assert_given_back()

    def test_a_service_that_refuses(self):
        """It is asked again, less and less often, until it has done it."""
        netns = self.box("refused", self.vault())
        self.assertEqual(self.asks("refused", netns), "200")
        self.service.lease_fault = (500, {"errors": ["sealed"]})
        self.daemon.call("DELETE", "/v1/sandboxes/refused")
        self.assertTrue(wait_until(lambda: self.paths().count("/v1/sys/leases/revoke") >= 2, 10 * support.SLOW))
        self.assertEqual(len(self.notes()), 1)
        self.service.lease_fault = None
        self.assert_given_back()

    def test_one_that_is_over(self):
        """A lease that has ended by itself is not given back."""
        self.service.expires_in = 2
        netns = self.box("over", self.vault())
        self.assertEqual(self.asks("over", netns), "200")
        self.service.lease_fault = (403, {"errors": ["permission denied"]})
        self.daemon.call("DELETE", "/v1/sandboxes/over")
        self.assertTrue(wait_until(lambda: not self.notes()), self.notes())
        self.assertTrue(wait_until(lambda: "ends by itself: " + URL + ": it answered 403" in self.daemon.stderr()), self.daemon.stderr())


class Outlives(Services):
    def test_the_next_daemon(self):
        """A daemon that is killed gives nothing back; the next one does, whatever else it finds in the folder."""
        for kill in (True, False):
            netns = self.box("left", self.vault())
            self.assertEqual(self.asks("left", netns), "200")
            before, = self.live()
            if kill:
                os.kill(self.daemon.call("GET", "/v1/status")[2]["processes"]["supervisor"], signal.SIGKILL)
                self.daemon.process.wait()
                support.KILLED.add(self.daemon.audit)
                for name, text in (("1.1.1.json", "{}"), ("2.2.2.json", "[" * 100), ("3.3.3.json", '{"lease": "x"}')):
                    with open(os.path.join(self.daemon.state, "leases", name), "w") as f:
                        f.write(text)
            else:
                self.daemon.stop()
            self.daemon.start()
            self.assertTrue(wait_until(lambda: before not in self.live(), 10 * support.SLOW), (self.service.leases, self.daemon.stderr()))
            self.assertEqual(self.asks("left", netns), "200")
            self.daemon.call("DELETE", "/v1/sandboxes/left")
            self.assertTrue(wait_until(lambda: not self.live()), self.service.leases)
            self.assertTrue(wait_until(lambda: not self.notes()), self.notes())
        self.assertIn("cannot be understood", self.daemon.stderr())


class Session(support.Case):
    def test_vethguard_run(self):
        service = support.in_namespace("outside", lambda: Service(lab.ORIGIN4, PORT, support.LAB.dir))
        self.addCleanup(service.close)
        token = support.LAB.write("session-token", "vault-token-0123456789\n", 0o600)
        source = {"vault": {"url": URL, "path": "database/creds/agent", "field": "password", "token": "file:" + token}}
        box = support.Sandbox(policy(RULE, credentials=f"  api: {{source: {json.dumps(source)}, inject: bearer}}\n"))
        self.assertEqual(box.sh("curl -sS -o /dev/null -w '%{http_code}' https://api.lab.test/session").out, "200")
        self.assertEqual(list(service.leases.values()), ["live"])
        box.close()
        self.assertTrue(wait_until(lambda: list(service.leases.values()) == ["revoked"]), box.stderr())


class Throttled(Services):
    def test_it_is_left_alone(self):
        """The service is left alone for as long as it wants, whoever asks: requests, operators, another sandbox of the same user."""
        self.service.throttled, self.service.retry_after = 1, 4
        url = URL + "/oauth/token"
        one, two = self.box("one", self.oauth(url)), self.box("two", self.oauth(url))
        began = time.monotonic()
        self.assertEqual(self.asks("one", one), "502")
        for _ in range(3):
            self.assertEqual(self.asks("two", two), "502")
            status, _, answer = self.call("POST", "/v1/sandboxes/one/credentials/check", {"credential": "api"})
            self.assertEqual(status, 503)
            self.assertIn("asked to wait", answer["detail"])
            time.sleep(0.5)
        self.assertEqual(self.paths(), ["/oauth/token"])
        self.assertIn("has asked to wait", self.daemon.stderr())
        self.assertTrue(wait_until(lambda: self.asks("one", one) == "200", 10 * support.SLOW))
        self.assertGreaterEqual(time.monotonic() - began, 4)
        self.assertTrue(wait_until(lambda: self.asks("two", two) == "200", 10 * support.SLOW))

    def test_a_wish_out_of_bounds(self):
        """Not for ever, and not for no time."""
        for after, status in (("99999999999999999999", 503), ("-1", 503), ("Thu, 01 Jan 1970 00:00:00 GMT", 503)):
            self.service.throttled, self.service.retry_after = 1, after
            name = f"b{abs(hash(after))}"[:20]
            netns = self.box(name, self.oauth(URL + "/oauth/token?" if False else URL + "/oauth//token"))
            self.asks(name, netns)
            got, _, answer = self.call("POST", f"/v1/sandboxes/{name}/credentials/check", {"credential": "api"})
            self.assertEqual(got, status, answer)
