# SPDX-License-Identifier: Apache-2.0
"""inject: client-certificate with a key in a PKCS #11 token: SoftHSM behind vethguard-token, a server of the tests' own (OpenSSL) that
demands certificates. The key is in no file and no process but that one."""
import json
import os
import pwd
import re
import shutil
import signal
import subprocess
import time
import unittest

import control_case
import support
from control_case import GROUP, NOBODY
from support import SLOW, policy, wait_until
from test_ca_token import LABEL, PIN, USER, Token, module
from test_certificate import HOST, OTHER_PORT, PORT, Certificates, openssl, path

KINDS = {"p256": "EC:prime256v1", "p384": "EC:secp384r1", "rsa": "rsa:2048"}


def read(name):
    with open(name) as f:
        return f.read()


def certify(public, name):
    """A certificate for a key of which only the public half is here."""
    openssl("x509", "-new", "-subj", f"/CN={name}", "-force_pubkey", public, "-CA", path("clients.pem"), "-CAkey", path("clients.key"), "-days", "30",
            "-out", path(name + ".crt"))
    return path(name + ".crt")


class Tokens(Certificates, control_case.Control):
    @classmethod
    def setUpClass(cls):
        for program in ("softhsm2-util", "pkcs11-tool"):
            if not shutil.which(program):
                raise unittest.SkipTest(program + " is not installed")
        if not module():
            raise unittest.SkipTest("SoftHSM's module is not there")
        super().setUpClass()
        folder = support.LAB.path(f"client-token-{time.monotonic_ns()}")
        os.makedirs(folder)
        cls.token = Token(folder)
        cls.token.make()
        cls.certificates = {}
        for i, (name, kind) in enumerate(KINDS.items()):
            cls.certificates[name] = certify(cls.token.key(name, kind, f"0{i + 1}"), name)
        cls.configure()

    @classmethod
    def configure(cls, label=LABEL, **more):
        settings = {"module": module(), "pin": f"file:{cls.token.pin}", "user": USER, "environment": {"SOFTHSM2_CONF": cls.token.conf},
                    "writable": [cls.token.tokens], **more}
        with open(cls.daemon.config, "w") as f:
            f.write(support.LAB.config("tokens: " + json.dumps({label: settings} if label else {}) + "\n"))
        r = cls.daemon.cli("reload")
        assert r.returncode == 0, r

    @classmethod
    def process(cls):
        """The pid of vethguard-token; None: there is none."""
        supervisor = cls.daemon.process.pid
        for p in read(f"/proc/{supervisor}/task/{supervisor}/children").split():
            try:
                if read(f"/proc/{p}/comm").startswith("vethguard-token"):
                    return int(p)
            except (FileNotFoundError, ProcessLookupError):
                pass  # it has just ended
        return None

    def box(self, credentials, name=None, port=PORT):
        """A sandbox with these credentials (name: (certificate's file, URI)), each for a path of its name."""
        lines = "".join(f"  {n}: {{source: 'file:{file}', inject: client-certificate, ttl: 0s, key: '{uri}'}}\n" for n, (file, uri) in credentials.items())
        rules = [f"{{to: 'https://{HOST}:{p}', paths: [/{n}, '/{n}/**'], credential: {n}}}" for n in credentials for p in (PORT, OTHER_PORT)]
        self.name = name or f"tok{time.monotonic_ns()}"
        self.netns = self.namespace()
        self.daemon.attach(netns=self.netns, policy=support.LAB.write(self.name + ".yaml", policy(*rules, credentials=lines)), name=self.name)
        self.port = port

    def ask(self, *paths, more=()):
        """The status of each answer."""
        urls = [f"https://{HOST}:{p}" if p[0].isdigit() else f"https://{HOST}:{self.port}{p}" for p in paths]
        r = self.inside(self.name, self.netns, urls[0], "-w", "%{http_code} ", *more, *[x for u in urls for x in ("-o", "/dev/null")], *urls[1:])
        return r.stdout.split()

    def events_of(self, word):
        return "\n".join(json.dumps(e) for e in self.daemon.events() if word in json.dumps(e))

    def assert_reason(self, path, words):
        self.assertTrue(wait_until(lambda: re.search(words, self.events_of(path)), 5), (path, words, self.events_of(path)))

    def credential(self, what, name):
        return self.daemon.cli("credential", what, self.name, name)


def uri(key, label=LABEL):
    return f"pkcs11:token={label};object={key}"


class Works(Tokens):
    def test_it_is_shown(self):
        """Elliptic and RSA keys, TLS 1.3 and 1.2; and where the key is, and is not."""
        self.box({name: (file, uri(name)) for name, file in self.certificates.items()})
        for name in KINDS:
            with self.subTest(name=name):
                self.assertEqual(self.ask(f"{PORT}/{name}", f"{OTHER_PORT}/{name}"), ["200"] * 2, (self.events_of(name), self.daemon.stderr()))
                for server, version in ((self.required, "TLSv1.3"), (self.old, "TLSv1.2")):
                    self.assertEqual((server.asked[-1]["name"], server.asked[-1]["version"]), (name, version))
        r = self.credential("check", "rsa")
        self.assertEqual(r.returncode, 0, r)
        r = self.credential("show", "rsa")
        self.assertIn(uri("rsa"), r.stdout)
        pid = self.process()
        self.assertIn("softhsm", read(f"/proc/{pid}/maps"))
        user = pwd.getpwnam(USER)
        status = dict(line.split(":\t", 1) for line in read(f"/proc/{pid}/status").splitlines() if ":\t" in line)
        self.assertEqual((status["Uid"].split()[0], status["CapEff"], status["Seccomp"]), (str(user.pw_uid), "0" * 16, "2"))
        self.assertEqual(read(f"/proc/{pid}/cmdline").strip("\0").split("\0"), ["vethguard-token"])
        for text in (read(f"/proc/{pid}/environ"), self.daemon.stderr(), json.dumps(self.daemon.events())):
            self.assertNotIn(PIN, text)
        worker = self.daemon.call("GET", f"/v1/sandboxes/{self.name}")[2]["worker"]["pid"]
        self.assertNotIn("softhsm", read(f"/proc/{worker}/maps"))

    def test_many_at_once(self):
        """More connections than questions that a worker may ask at a time, and each its own account's."""
        self.box({name: (file, uri(name)) for name, file in self.certificates.items()}, port=OTHER_PORT)
        paths = [f"/{name}/{i}" for i in range(14) for name in KINDS]
        out = self.ask(*paths, more=("-Z", "--parallel-immediate", "--parallel-max", "50", "-H", "Connection: close"))
        self.assertEqual(out, ["200"] * len(paths), self.daemon.stderr())
        for a in self.old.asked:
            self.assertEqual(a["path"].split("/")[1], a["name"])

    def test_rotate_and_revoke(self):
        """A revoked credential's key signs no more, although its certificate is public; a new certificate of the same key is shown."""
        self.box({"p256": (self.certificates["p256"], uri("p256"))})
        self.assertEqual(self.ask("/p256/1"), ["200"])
        r = self.credential("rotate", "p256")
        self.assertEqual(r.returncode, 0, r)
        self.assertEqual(self.ask("/p256/2"), ["200"])
        self.assertEqual(self.credential("revoke", "p256").returncode, 0)
        before = len(self.required.asked)
        self.assertEqual(self.ask("/p256/3"), ["502"])
        self.assertEqual(len(self.required.asked), before)

    def test_the_keeper_dies(self):
        self.box({"p256": (self.certificates["p256"], uri("p256"))})
        self.assertEqual(self.ask("/p256/1"), ["200"])
        token, keeper = self.process(), self.daemon.call("GET", "/v1/status")[2]["processes"]["keeper"]
        os.kill(keeper, signal.SIGKILL)
        self.assertTrue(wait_until(lambda: self.ask("/p256/2", more=("-H", "Connection: close")) == ["200"], 15 * SLOW), self.daemon.stderr())
        self.assertEqual(self.process(), token)  # it did not log in again

    def test_the_process_dies(self):
        """Another one is started, which logs in once; meanwhile requests are refused with the reason."""
        self.box({"p256": (self.certificates["p256"], uri("p256"))}, port=OTHER_PORT)
        self.assertEqual(self.ask("/p256/1"), ["200"])
        before = self.process()
        os.rename(self.token.tokens, self.token.tokens + ".away")
        os.mkdir(self.token.tokens)
        try:
            os.kill(before, signal.SIGKILL)
            self.assertTrue(wait_until(lambda: "no token matches the URI" in self.daemon.stderr(), 15 * SLOW), self.daemon.stderr())
            self.ask("/p256/new", more=("-H", "Connection: close"))
            r = self.credential("check", "p256")
            self.assertEqual(r.returncode, 1, r)
            self.assertIn("no token matches the URI", r.stderr + r.stdout)
        finally:
            os.rmdir(self.token.tokens)
            os.rename(self.token.tokens + ".away", self.token.tokens)
        self.assertTrue(wait_until(lambda: self.credential("check", "p256").returncode == 0, 30 * SLOW), self.daemon.stderr())
        self.assertEqual(self.ask("/p256/2"), ["200"])
        self.assertNotEqual(self.process(), before)


class Wrong(Tokens):
    def test_keys(self):
        """What the token has not, or not for this certificate: 502, the reason in the audit log and in `credential check`, nothing sent."""
        both = support.LAB.write("mtls-token-both", read(self.certificates["p256"]) + "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n", 0o600)
        plain = support.LAB.write("mtls-token-none", "no certificate", 0o600)
        p256 = self.certificates["p256"]
        rows = {"stranger": (self.certificates["rsa"], uri("p384"), "not (that|by the key) of the c"), "kind": (p256, uri("rsa"), "not that of the certificate"),
                "missing": (p256, uri("nothing"), "no such private key"), "away": (p256, uri("p256", "other"), "names no token"),
                "serial": (p256, f"pkcs11:token={LABEL};serial=0000;object=p256", "not the one that the URI names"),
                "both": (both, uri("p256"), "holds a private key"), "plain": (plain, uri("p256"), "does not begin with a certificate")}
        self.token.key("twice", KINDS["p256"], "11")
        twice = certify(self.token.key("twice", KINDS["p256"], "12"), "twice")
        rows["twice"] = (twice, uri("twice"), "more than one such private key")
        rows["other"] = (certify(self.token.key("p256-2", KINDS["p256"], "13"), "p256-2"), uri("p256"), "not (that|by the key) of the c")
        self.box({name: row[:2] for name, row in rows.items()})
        process = self.process()
        for name, (_, _, words) in rows.items():
            with self.subTest(name=name):
                self.assertEqual(self.ask(f"{PORT}/{name}", f"{OTHER_PORT}/{name}"), ["502"] * 2)
                self.assert_reason("/" + name, words)
                r = self.credential("check", name)
                self.assertEqual(r.returncode, 1, r)
                self.assertRegex(r.stdout + r.stderr, words + "|not the key of the certificate|is not that of")
        self.assertEqual(self.required.asked + self.old.asked, [])
        self.assertEqual(self.process(), process)  # a wrong question ends no process, so no PIN is given again

    def test_the_pin_is_tried_once(self):
        """A token locks itself after a few wrong ones."""
        self.box({"p256": (self.certificates["p256"], uri("p256"))})
        self.token.set_pin("000000")
        self.addCleanup(self.configure)
        self.addCleanup(self.token.set_pin, PIN)
        self.configure(user=USER, timeout="11s")  # another configuration: another process
        self.assertTrue(wait_until(lambda: "the token refuses the PIN: it is wrong" in self.daemon.stderr(), 15 * SLOW), self.daemon.stderr())
        for i in range(3):
            self.assertEqual(self.ask(f"/p256/{i}"), ["502"])
            self.assertEqual(self.credential("check", "p256").returncode, 1)
        self.assert_reason("/p256/0", "the token refuses the PIN")
        os.kill(self.daemon.call("GET", "/v1/status")[2]["processes"]["keeper"], signal.SIGKILL)
        time.sleep(1.5)
        self.assertEqual(self.daemon.stderr().count("the token refuses the PIN"), 1, self.daemon.stderr())
        self.assertIsNone(self.process())
        self.assertNotIn("000000", self.daemon.stderr())
        self.token.set_pin(PIN)
        self.configure()
        self.assertTrue(wait_until(lambda: self.ask("/p256/right") == ["200"], 15 * SLOW), self.daemon.stderr())
        self.assertEqual(self.required.asked[-1]["name"], "p256")

    def test_the_configuration_names_it_no_more(self):
        self.box({"p256": (self.certificates["p256"], uri("p256"))}, port=OTHER_PORT)
        self.assertEqual(self.ask("/p256/1"), ["200"])
        self.addCleanup(self.configure)
        self.configure(label=None)
        self.assertTrue(wait_until(lambda: self.process() is None, 10 * SLOW))
        r = self.credential("check", "p256")
        self.assertEqual(r.returncode, 1, r)
        self.assertIn("no longer names it", r.stdout + r.stderr)

    def test_policies_of_others(self):
        """The machine's tokens are for policies that root names: not for another user's, and not for `vethguard run`."""
        self.box({"p256": (self.certificates["p256"], uri("p256"))}, name="ofroot")
        self.assertEqual(self.ask("/p256/1"), ["200"])
        text = policy(f"{{to: 'https://{HOST}:{PORT}', credential: p256}}",
                      credentials=f"  p256: {{source: 'file:{self.certificates['p256']}', inject: client-certificate, key: '{uri('p256')}'}}\n")
        os.chmod(self.certificates["p256"], 0o644)
        file = support.LAB.write("client-token-user.yaml", text)
        self.name, self.netns = "ofuser", self.namespace()
        r = subprocess.run(["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", f"--groups={GROUP}", "curl", "-sS", "-w", "%{http_code}",
                            "--unix-socket", self.daemon.socket, "http://localhost/v1/sandboxes", "--json",
                            json.dumps({"name": self.name, "netns": self.netns, "policy": file})], capture_output=True, text=True)
        self.assertTrue(r.stdout.endswith("201"), r)
        self.assertEqual(self.ask("/user"), ["502"])
        self.assert_reason("/user", "for policies that root names")
        box = support.Sandbox(text)
        self.addCleanup(box.close)
        self.assertIn("502", box.sh(f"curl -sS -m 20 -o /dev/null -w '%{{http_code}}' https://{HOST}:{PORT}/run").out)
        self.assertTrue(wait_until(lambda: "starts no module" in box.stderr() + json.dumps(box.events()), 5 * SLOW), box.stderr())
        self.assertEqual([a["path"] for a in self.required.asked], ["/p256/1"])


if __name__ == "__main__":
    unittest.main()
