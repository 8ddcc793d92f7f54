# SPDX-License-Identifier: Apache-2.0
"""The gateway with tokens that others sign: what they become, what is refused, rotated keys, revocation, and three gateways that know
the same tokens."""
import json
import os
import signal
import subprocess
import time

import support
from credential_service import URL, Served
from daemon import Daemon
from gateway_case import GATEWAY4, TLS_PORT, Gatewayed
from support import SLOW, policy, wait_until
from token_signer import Key, b64, claims, openssl, write_set

SIGNERS = """  signers:
    - name: control
      issuer: https://control.lab.test
      audience: [vethguard, other]
      keys: {keys}
      lifetime: 2h
      rules:
        - when: {{tier: gold, groups: "agent-*"}}
          policy: {policy}
          vars: {{host: host}}
          labels: {{team: /org/team, pod: jti}}
        - when: {{tier: far}}
          policy: {policy}
          vars: {{host: host}}
          from: 203.0.113.0/24
"""
VARIABLES = "{to: 'https://${host}', methods: [GET]}", "http://plain.lab.test"


class SignedCase(Gatewayed):
    def setUp(self):
        self.keys = support.LAB.path(f"keys-{time.monotonic_ns()}")
        os.mkdir(self.keys, 0o755)
        self.set = os.path.join(self.keys, "set.json")
        self.key = Key(os.path.join(self.keys, "one"))
        write_set(self.set, self.key)
        self.by_claims = support.LAB.write(f"signed-{time.monotonic_ns()}.yaml", self.rules_by_claims())
        super().setUp()
        self.assert_served()

    def rules_by_claims(self):
        return policy(*VARIABLES)

    def signers(self):
        return SIGNERS.format(keys=self.set, policy=self.by_claims)

    def gateway(self):
        return super().gateway() + self.signers()

    def signed(self, session="a1", key=None, header=None, **more):
        return (key or self.key).token(claims(session, **{"groups": ["x", "agent-7"], "host": "api.lab.test", "org": {"team": "blue"}, **more}),
                                       header)

    def asks(self, url="https://api.lab.test/whoami", **kw):
        r = self.curl("-o", "/dev/null", "-w", "%{http_code}", url, **kw)
        return r.returncode == 0 and r.stdout in ("200", "401")  # 401: of the origin, which wants a credential

    def begin(self, token):
        """A request whose answer is not read yet."""
        s = self.connect(tls=False)
        s.sendall(f"GET http://plain.lab.test/y HTTP/1.1\r\nHost: plain.lab.test\r\nConnection: close\r\nProxy-Authorization: Bearer {token}\r\n\r\n".encode())
        return s

    def sessions(self):
        return {s["name"]: s for s in self.daemon.call("GET", "/v1/sessions")[2]["sessions"]}

    def assert_refused(self, token, why=""):
        self.assert_unknown(why, token=token)


class ByUrl(Served, SignedCase):
    """The daemon fetches the key set over HTTPS."""
    path = "/keys?of=control"

    def setUp(self):
        self.service.asked.clear()
        self.service.key_set, self.service.etag = (404, {}), None
        super().setUp()

    def signers(self):
        return super().signers().replace(f"keys: {self.set}", f"keys: '{URL}{self.path}'\n      refresh: 5s")

    def serve(self, *keys):
        self.service.key_set = 200, {"keys": [k.jwk() for k in keys]}

    def fails(self, words):
        self.assertTrue(wait_until(lambda: words in self.daemon.stderr(), 30 * SLOW), self.daemon.stderr())

    def reload(self):
        """Reloads, so that the daemon fetches the keys at once instead of after some seconds."""
        asked = len(self.service.asked)
        self.assertEqual(self.daemon.call("POST", "/v1/reload", {})[0], 200)
        self.assertTrue(wait_until(lambda: len(self.service.asked) > asked, 20 * SLOW), self.daemon.stderr())

    def test_rotated(self):
        self.fails("the keys of control")  # 404 at first
        self.assertIn("its tokens are refused", self.daemon.stderr())
        self.assert_refused(self.signed("u0"))
        self.serve(self.key)  # from now on the server answers; the daemon asks again by itself
        asked = len(self.service.asked)
        self.assertTrue(wait_until(lambda: len(self.service.asked) > asked, 40 * SLOW), self.daemon.stderr())
        self.assertTrue(wait_until(lambda: self.asks(token=self.signed("u1")), 40 * SLOW), self.daemon.stderr())
        asked = self.service.asked[-1]
        self.assertEqual((asked["method"], asked["path"], asked["body"]), ("GET", self.path, ""), asked)
        self.assertNotIn("Authorization", asked["headers"])
        second = Key(os.path.join(self.keys, "second"), "ES256", kid="two")
        self.serve(second)
        self.reload()
        self.assertTrue(wait_until(lambda: self.asks(token=self.signed("u2", key=second)), 20 * SLOW), self.daemon.stderr())
        self.assert_refused(self.signed("u3"))
        # An answer that cannot be used changes nothing.
        for bad, words in (((500, {}), "500"), ((200, {"keys": []}), "none of its 0 keys"), ((200, {"keys": "none"}), "not a JSON Web Key Set"),
                           ((200, {"keys": [{"kty": "oct", "k": "AAAA"}]}), "is a secret one")):
            self.service.key_set = bad
            self.reload()
            self.fails(words)
            self.assert_served(token=self.signed("u4", key=second))


    def conditions(self):
        return [a["headers"].get("If-None-Match") for a in self.service.asked if a["path"] == self.path]

    def test_etag(self):
        """A key set that has an ETag is not sent again while it is unchanged. After a set that cannot be used, or whose ETag is malformed,
        the next question has no condition."""
        self.service.etag = '"v1"'
        self.serve(self.key)
        self.reload()
        self.assertTrue(wait_until(lambda: self.asks(token=self.signed("e1")), 20 * SLOW), self.daemon.stderr())
        self.assertTrue(wait_until(lambda: self.conditions()[-1] == '"v1"', 30 * SLOW), self.conditions())
        said = self.daemon.stderr()
        self.assert_served(token=self.signed("e2"))
        self.assertEqual(self.daemon.stderr().count("cannot be used"), said.count("cannot be used"))
        second = Key(os.path.join(self.keys, "second"), "ES256", kid="two")
        self.service.etag = 'W/"v2"'
        self.serve(second)
        self.reload()
        self.assertTrue(wait_until(lambda: self.asks(token=self.signed("e3", key=second)), 20 * SLOW), self.daemon.stderr())
        self.assert_refused(self.signed("e4"))
        self.service.etag, self.service.key_set = '"v3"', (200, {"keys": []})
        self.reload()
        self.fails("none of its 0 keys")
        self.assertEqual(self.conditions()[-1], 'W/"v2"')
        self.reload()
        self.assertTrue(wait_until(lambda: self.conditions()[-1] is None, 20 * SLOW), self.conditions())
        self.assert_served(token=self.signed("e5", key=second))
        for etag in ("v4", '"a b"'):
            self.service.etag = etag
            self.serve(second)
            self.reload()
            asked = len(self.service.asked)
            self.reload()
            self.assertTrue(wait_until(lambda n=asked: len(self.service.asked) > n, 20 * SLOW))
            self.assertIsNone(self.conditions()[-1], etag)
        self.service.etag, self.service.key_set = '"v5"', (304, {})  # to a question without a condition
        self.reload()
        self.fails("304")
        self.assert_served(token=self.signed("e6", key=second))


class Faulty(ByUrl):
    """Answers without usable keys and servers that cannot be asked are refused, and a redirect is not followed."""
    path = "/redirect"
    test_etag = None

    def test_rotated(self):
        self.fails("the keys of control")
        self.assert_refused(self.signed("f0"))
        for url in (URL + "/html", URL + "/huge", URL + "/deep", URL + "/long", "https://evil.lab.test/keys", "https://nowhere.lab.test/keys"):
            with open(self.daemon.config, "w") as f:
                f.write(support.LAB.config(self.gateway().replace(f"{URL}{self.path}", url)))
            before = self.daemon.stderr().count("the keys of control")
            self.assertEqual(self.daemon.call("POST", "/v1/reload", {})[0], 200)
            self.assertTrue(wait_until(lambda n=before: self.daemon.stderr().count("the keys of control") > n, 30 * SLOW), (url, self.daemon.stderr()))
        self.assert_refused(self.signed("f1"))
        self.assert_served()


class Three(SignedCase):
    """Three gateways on one machine, as on three, behind haproxy. They have the signers' keys and the operator's CA, and know nothing of
    each other."""
    BALANCED = 8500

    def setUp(self):
        self.operator = support.LAB.path(f"operator-{time.monotonic_ns()}")
        for argv in (("genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256", "-out", self.operator + ".key"),
                     ("req", "-x509", "-new", "-key", self.operator + ".key", "-subj", "/CN=Operator", "-days", "30", "-out", self.operator + ".pem",
                      "-addext", "basicConstraints=critical,CA:TRUE,pathlen:2", "-addext", "keyUsage=critical,keyCertSign,cRLSign")):
            openssl(*argv)
        os.chmod(self.operator + ".key", 0o600)
        super().setUp()
        self.ca = self.operator + ".pem"
        self.daemons = [self.daemon]
        for i in (1, 2):
            daemon = Daemon(config=self.config_at(TLS_PORT + 10 * i))
            self.addCleanup(daemon.end)
            self.daemons.append(daemon)
        self.balance()

    def config_at(self, port):
        return (f"ca: {{root: {self.operator}.pem, key: 'file:{self.operator}.key'}}\ngateway:\n  listen: '{GATEWAY4}:{port}'\n"
                f"  certificate: {self.certificate}.pem\n  key: {self.certificate}.key\n  name: gateway.lab.test\n{self.signers()}")

    def gateway(self):
        return super().gateway().replace("gateway:\n", f"ca: {{root: {self.operator}.pem, key: 'file:{self.operator}.key'}}\ngateway:\n", 1)

    def rules_by_claims(self):
        return policy("{to: 'https://${host}', methods: [GET], credential: api}", "http://plain.lab.test", credentials=support.file_credential())

    def balance(self):
        servers = "\n".join(f"  server g{i} {GATEWAY4}:{TLS_PORT + 10 * i} check inter 200ms fall 1 rise 1" for i in range(3))
        path = support.LAB.write(f"haproxy-{time.monotonic_ns()}.cfg",
                                 "defaults\n  mode tcp\n  timeout connect 1s\n  timeout client 60s\n  timeout server 60s\n  retries 3\n"
                                 f"  option redispatch 1\nfrontend f\n  bind {GATEWAY4}:{self.BALANCED}\n  default_backend b\n"
                                 f"backend b\n  balance roundrobin\n{servers}\n")
        haproxy = subprocess.Popen(["haproxy", "-db", "-q", "-f", path], stdin=subprocess.DEVNULL)
        self.addCleanup(haproxy.wait)
        self.addCleanup(haproxy.kill)
        self.assertTrue(wait_until(lambda: all(self.served_by(d) or self.asks(token=self.signed("warm"), proxy=self.proxy) for d in self.daemons)
                                   and all(self.served_by(d) for d in self.daemons), 20 * SLOW), [d.stderr() for d in self.daemons])

    @property
    def proxy(self):
        return f"https://{GATEWAY4}:{self.BALANCED}"

    @staticmethod
    def served_by(daemon):
        return len([s for s in daemon.call("GET", "/v1/sessions")[2]["sessions"] if s["name"] == "control.warm"])

    def whoami(self, token):
        """Without a retry of its own."""
        r = self.curl("https://api.lab.test/whoami", token=token, proxy=self.proxy)
        return r.returncode == 0 and json.loads(r.stdout).get("authenticated") is True

    def test_one_dies(self):
        """Clients go on with the same token, the same CA inside, and the same placeholders."""
        token = self.signed("trip")
        for i in range(6):
            self.assertTrue(self.whoami(token), (i, [d.stderr() for d in self.daemons]))
        for d in self.daemons:
            self.assertEqual(d.call("GET", "/v1/sessions/control.trip")[0], 200, "each has made its own")
        variables = [d.call("GET", "/v1/sandboxes/control.trip/env")[2]["variables"] for d in self.daemons]
        self.assertTrue(variables[0])
        self.assertEqual(variables[0], variables[1])
        self.assertEqual(variables[0], variables[2])
        self.daemons[1].kill()
        self.assertEqual([self.whoami(token) for _ in range(12)], [True] * 12)
        self.assertEqual(self.daemons[0].call("GET", "/v1/sessions/control.trip")[0], 200)
        fresh = self.signed("later")  # a session that is made now
        self.assertEqual([self.whoami(fresh) for _ in range(4)], [True] * 4)
        self.daemons[1].start()
        self.assertTrue(wait_until(lambda: self.whoami(fresh) and self.daemons[1].call("GET", "/v1/sessions/control.later")[0] == 200, 20 * SLOW))
        # A revocation counts where it is made.
        for d in self.daemons:
            self.assertEqual(d.cli("session", "revoke", "--signer", "control", "--id", "later").returncode, 0)
        for _ in range(3):
            self.assert_unknown(token=fresh, proxy=self.proxy)
        self.assertTrue(self.whoami(token))


class ServiceAccount(SignedCase):
    """Tokens that a Kubernetes cluster projects into pods, with the members and the algorithm that its API server gives them."""
    ISSUER = "https://kubernetes.default.svc.cluster.local"

    def signers(self):
        self.cluster = Key(os.path.join(self.keys, "cluster"), "RS256", kid="J1hxZ7mrbFRD")
        write_set(self.set, self.cluster)
        return (f"  signers:\n    - name: cluster\n      issuer: {self.ISSUER}\n      audience: vethguard\n      keys: {self.set}\n      algorithms: RS256\n"
                "      session: /kubernetes.io/pod/uid\n      rules:\n        - when: {sub: 'system:serviceaccount:agents:*'}\n"
                f"          policy: {self.by_claims}\n          labels: {{namespace: /kubernetes.io/namespace, pod: /kubernetes.io/pod/name}}\n")

    def rules_by_claims(self):
        return policy("{to: 'https://api.lab.test', methods: [GET]}")

    def projected(self, uid, key=None, header=None, sub="system:serviceaccount:agents:runner", **more):
        now = int(time.time())
        said = {"aud": ["vethguard"], "exp": now + 3607, "iat": now, "iss": self.ISSUER, "jti": f"a6b1c7d0-{now}", "nbf": now, "sub": sub,
                "kubernetes.io": {"namespace": sub.split(":")[2], "node": {"name": "n1", "uid": "5d1f6d1a-0000-4000-8000-00000000000a"},
                                  "pod": {"name": "runner-0", "uid": uid}, "serviceaccount": {"name": "runner", "uid": "8b77fb83-0000-4000-8000-00000000000b"}},
                **more}
        return (key or self.cluster).token({k: v for k, v in said.items() if v is not None}, header)

    def test_projected(self):
        uid = "e2b0c5b1-6f3a-4d6e-9c1f-0123456789ab"
        for _ in range(2):  # the kubelet renews a pod's token: it is the same session
            self.assert_served(token=self.projected(uid))
        session = self.sessions()[f"cluster.{uid}"]
        self.assertEqual(session["labels"], {"namespace": "agents", "pod": "runner-0"}, session)
        others = Key(os.path.join(self.keys, "others"), "RS256", kid="J1hxZ7mrbFRD")
        now = int(time.time())
        wrong = {
            "another namespace": self.projected("1", sub="system:serviceaccount:default:runner"),
            "a namespace with the same beginning": self.projected("2", sub="system:serviceaccount:agents2:runner"),
            "for the API server": self.projected("3", aud=["https://kubernetes.default.svc.cluster.local"]),
            "signed by another cluster": self.projected("5", key=others),
            "bound to no pod": self.projected("6", **{"kubernetes.io": {"namespace": "agents"}}),
            "a secret's, which never ends": self.projected("7", exp=None),
            "of a pod that has ended": self.projected("8", exp=now - 1),
            "an id that is a path": self.projected({"uid": "../x"}),
        }
        first = self.ask(f"Bearer {self.token}x")
        asked = {why: self.begin(token) for why, token in wrong.items()}
        self.assertEqual(self.daemon.cli("session", "revoke", "--signer", "cluster", "--id", uid).returncode, 0)
        asked["revoked"] = self.begin(self.projected(uid))
        for why, s in asked.items():
            self.assertEqual(self.rest(s), first, why)
        self.assertEqual(set(self.sessions()), {"one"})


class Signed(SignedCase):
    def test_ways(self):
        token = self.signed()
        self.assert_served(token=token)
        session = self.daemon.call("GET", "/v1/sessions/control.a1")[2]
        self.assertEqual((session["labels"], session["vars"]), ({"team": "blue", "pod": "a1"}, {"host": "api.lab.test"}), session)
        self.assertTrue(session["expires"], session)
        self.assertEqual(session["policy"]["path"], self.by_claims, session)
        again = self.signed(exp=int(time.time()) + 5400)  # another token of the same session lets it last
        self.assert_served(token=again)
        self.assertGreater(self.daemon.call("GET", "/v1/sessions/control.a1")[2]["expires"], session["expires"])
        r = self.curl("--proxy-header", f"Proxy-Authorization: Bearer {token}", "http://plain.lab.test/b", token="")
        self.assertEqual(json.loads(r.stdout)["path"], "/b", r)
        self.assertTrue(self.say(f"GET /s/{token}/http/plain.lab.test/x HTTP/1.1\r\nHost: g\r\nConnection: close\r\n\r\n".encode(), tls=True)
                        .startswith(b"HTTP/1.1 200"))
        self.assertEqual(set(self.sessions()), {"one", "control.a1"})
        self.assertFalse(self.asks(url="https://www.lab.test/", token=token), "another host than the claim's")
        self.assert_served(token=self.token)
        for other in (self.signed("b 2/ü"), self.signed("c" * 32)):  # names that no session could have
            self.assert_served(token=other)
        self.assertEqual(len(self.sessions()), 4)
        self.assertTrue(all(name == "one" or name.startswith("control.") for name in self.sessions()))

    def test_socks(self):
        """A token is longer than a password: the user is its first part."""
        token = self.signed("socks", org={"team": "b"}).encode()
        self.assertGreater(len(token), 255)
        request = b"\x05\x01\x00\x03\x0eplain.lab.test\x00\x50"
        http = b"GET /deep HTTP/1.1\r\nHost: plain.lab.test\r\nConnection: close\r\n\r\n"

        def login(user, password):
            return self.say(b"\x05\x01\x02\x01" + bytes([len(user)]) + user + bytes([len(password)]) + password + request + http, tls=True)

        for _ in range(2):
            self.assertIn(b'"/deep"', login(token[:250], token[250:]))
        for user, password in ((token[:250], token[250:-1]), (token[250:], token[:250]), (token[:255], b"")):
            self.assertEqual(login(user, password), b"\x05\x02\x01\x01", user)

    def test_refused(self):
        """All look alike from outside."""
        now = int(time.time())
        stranger = Key(os.path.join(self.keys, "stranger"))
        rsa = Key(os.path.join(self.keys, "rsa"), "RS256")
        text = f"{b64(json.dumps({'alg': 'none'}).encode())}.{b64(json.dumps(claims('n')).encode())}"
        good = self.signed("r0")
        wrong = {
            "another gateway's key": self.signed("r1", key=stranger),
            "another algorithm with a known id": self.signed("r2", key=rsa),
            "yesterday's": self.signed("r3", exp=now - 86400),
            "valid for too long": self.signed("r4", exp=now + 8000),
            "not yet": self.signed("r5", nbf=now + 600),
            "no exp": self.key.token({k: v for k, v in claims("r6").items() if k != "exp"}),
            "another audience": self.signed("r7", aud="vethguard2"),
            "another issuer": self.signed("r8", iss="https://control.lab.test/"),
            "alg none": text + ".",
            "alg none with a signature": text + "." + good.split(".")[2],
            "alg HS256": self.signed("r9", header={"alg": "HS256", "kid": "one"}),
            "kid a path": self.signed("r10", header={"alg": "EdDSA", "kid": "../one"}),
            "kid a file": self.signed("r11", header={"alg": "EdDSA", "kid": self.key.path}),
            "a key in the header": self.signed("r12", key=stranger, header={"alg": "EdDSA", "jwk": stranger.jwk()}),
            "an address of keys": self.signed("r13", key=stranger, header={"alg": "EdDSA", "jku": "https://evil.lab.test/"}),
            "crit": self.signed("r14", header={"alg": "EdDSA", "kid": "one", "crit": ["exp"]}),
            "no rule": self.signed("r15", tier="silver"),
            "half a rule": self.signed("r16", groups="agents"),
            "a group that is no text": self.signed("r17", groups=["agent-7", 7]),
            "a claim of a variable is missing": self.key.token(claims("r18", groups="agent-7", org={"team": "x"})),
            "a variable that is no text": self.signed("r19", host=["api.lab.test"]),
            "a variable with a control": self.signed("r20", host="a\nb"),
            "no session": self.key.token({k: v for k, v in claims("r21", groups="agent-7").items() if k != "jti"}),
            "from another network": self.signed("r22", tier="far"),
            "cut": good[:-1],
            "changed": good[:-3] + ("AAA" if good[-3:] != "AAA" else "BBB"),
            "two tokens": good + "." + good.split(".")[2],
        }
        first = self.ask(f"Bearer {self.token}x")
        asked = {why: self.begin(token) for why, token in wrong.items()}
        for why, s in asked.items():
            with self.subTest(why):
                self.assertEqual(self.rest(s), first)
        self.assertEqual(set(self.sessions()), {"one"})
        self.assert_served(token=good)
        # Another token of a session that means something else.
        self.assertEqual(self.ask(f"Bearer {self.signed('r0', host='www.lab.test')}"), first)
        self.assertIn("detach the session", self.daemon.stderr())
        self.assert_served(token=good)

    def test_rotated(self):
        """A new key is noticed, an old one forgotten, and a file that cannot be used changes nothing."""
        token = self.signed("rot")
        self.assert_served(token=token)
        with open(self.set, "w") as f:
            f.write("{")
        self.assertTrue(wait_until(lambda: "the ones before stay" in self.daemon.stderr(), 15 * SLOW), self.daemon.stderr())
        self.assert_served(token=self.signed("rot2"))
        others = [Key(os.path.join(self.keys, a), a, kid=a) for a in ("ES256", "RS256")]
        write_set(self.set, *others)
        self.assertEqual(self.daemon.call("POST", "/v1/reload", {})[0], 200)
        for key in others:
            self.assert_served(token=self.signed("rot3" + key.kid, key=key))
        self.assert_refused(token, "its key is no more")
        self.assert_refused(self.signed("rot4"))

    def test_revoked(self):
        token = self.signed("rev")
        self.assert_served(token=token)
        kept = self.tunnel(token)
        r = self.cli("revoke", "control.rev")
        self.assertEqual((r.returncode, r.stdout), (0, "control.rev: revoked\n"), r)
        self.assertEqual(self.rest(kept), b"", "its connections are cut")
        for again in (token, self.signed("rev"), self.signed("rev", exp=int(time.time()) + 7000)):
            self.assert_refused(again)
        self.assert_served(token=self.signed("other"))
        r = self.cli("revoke", "--signer", "control", "--id", "other")
        self.assertEqual((r.returncode, r.stdout), (0, "other: revoked, session control.other has ended\n"), r)
        r = self.cli("revoke", "--signer", "control", "--id", "never seen")
        self.assertEqual((r.returncode, r.stdout), (0, "never seen: revoked\n"), r)
        self.daemon.kill()
        self.daemon.start()
        self.assertTrue(wait_until(self.listens, 10 * SLOW))
        for session in ("rev", "other", "never seen"):
            self.assert_refused(self.signed(session), session)
        self.assert_served(token=self.signed("third"))
        for argv, status in ((("--signer", "nobody", "--id", "x"), 1), (("--signer", "control"), 2), (("--id", "x"), 2),
                             (("--signer", "control", "--id", ""), 1), (("one", "--signer", "control", "--id", "x"), 2)):
            self.assertEqual(self.cli("revoke", *argv).returncode, status, argv)
        self.assertEqual(self.daemon.call("POST", "/v1/tokens/revoke", {"signer": "control"})[0], 422)

    def test_detached(self):
        """Not revoked: the next token makes it anew, and may mean something else."""
        token = self.signed("det")
        self.assert_served(token=token)
        self.assertEqual(self.daemon.call("DELETE", "/v1/sandboxes/control.det")[0], 200)
        self.assertTrue(wait_until(lambda: self.asks(token=self.signed("det", org={"team": "red"})), 10 * SLOW))
        self.assertEqual(self.daemon.call("GET", "/v1/sessions/control.det")[2]["labels"]["team"], "red")

    def test_restarted(self):
        """Sessions go on under the next daemon, and after the gateway's death."""
        token = self.signed("life")
        self.assert_served(token=token)
        os.kill(self.pid_of("vethguard-gateway"), signal.SIGKILL)
        self.assert_served(token=token)
        self.daemon.stop()
        self.daemon.start()
        self.assertTrue(wait_until(self.listens, 10 * SLOW))
        self.assertIn("control.life", self.sessions())
        self.assert_served(token=token)

    def test_reload(self):
        """Other rules cut nobody off."""
        token = self.signed("rel")
        self.assert_served(token=token)
        kept = self.tunnel(token)
        with open(self.daemon.config, "w") as f:
            f.write(support.LAB.config(self.gateway().replace("audience: [vethguard, other]", "audience: elsewhere")))
        self.assertEqual(self.daemon.call("POST", "/v1/reload", {})[0], 200)
        self.assert_refused(token)
        kept.sendall(b"GET /kept HTTP/1.1\r\nHost: plain.lab.test\r\nConnection: close\r\n\r\n")
        self.assertIn(b'"/kept"', self.rest(kept))
        self.assert_served(token=self.signed("rel2", aud="elsewhere"))

    def test_first_connection(self):
        """Several at once with a new token: one session, and all are served."""
        token = self.signed("many")
        for s in [self.begin(token) for _ in range(20)]:
            answer = self.rest(s)
            self.assertTrue(answer.startswith(b"HTTP/1.1 200"), (answer, self.daemon.stderr()))
        self.assertEqual(set(self.sessions()), {"one", "control.many"})

    def test_nothing_is_kept(self):
        token = self.signed("kept")
        self.assert_served(token=token)
        self.daemon.stop()
        for root, _, names in os.walk(self.daemon.dir):
            for name in names:
                with open(os.path.join(root, name), "rb") as f:
                    self.assertNotIn(token.split(".")[2].encode(), f.read(), name)

    def cli(self, *argv):
        return self.daemon.cli("session", *argv)
