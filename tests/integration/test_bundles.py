# SPDX-License-Identifier: Apache-2.0
"""Signed bundles: three gateways that take policies, keys and revocations from one URL; everything that a source may do wrong; a file that
is replaced as in a ConfigMap's folder; and the commands."""
import hashlib
import json
import os
import shutil
import socket
import ssl
import subprocess
import time
import unittest

import support
from control_case import Described
from credential_service import URL, Served
from daemon import Daemon
from gateway_case import GATEWAY4, TLS_PORT, Gatewayed
from support import FINDING, SLOW, VETHGUARD, wait_until
from token_signer import Key, claims, openssl, write_set

AGENT = "vethguard: 1\nname: agent\nallow:\n  - {name: plain, to: 'http://plain.lab.test'}\n"
BY_CLAIMS = "vethguard: 1\nname: by-claims\ninclude: common.yaml\nallow:\n  - {name: read, to: 'https://${host}', methods: [GET]}\n"
COMMON = "vethguard: 1\nallow:\n  - {name: plain, to: 'http://plain.lab.test'}\n"
MORE = COMMON + "  - {name: more, to: 'https://www.lab.test', methods: [GET]}\n"
BUNDLES = "bundles:\n  - {{name: fleet, source: '{source}', keys: [{keys}]{more}}}\n"
SIGNER = """  signers:
    - name: control
      issuer: https://control.lab.test
      audience: vethguard
      keys: bundle:fleet/control.jwks
      rules:
        - when: {tier: gold}
          policy: bundle:fleet/by-claims.yaml
          vars: {host: host}
"""


class Publisher:
    """Makes bundles with the command, in a folder of its own."""

    def __init__(self):
        self.dir = support.LAB.path(f"publisher-{time.monotonic_ns()}")
        self.policies, self.out = os.path.join(self.dir, "policies"), os.path.join(self.dir, "out.bundle")
        os.makedirs(self.policies)
        os.chmod(self.dir, 0o755)
        self.files = {"agent.yaml": AGENT, "by-claims.yaml": BY_CLAIMS, "common.yaml": COMMON}
        self.signer = Key(os.path.join(self.dir, "signer"))
        self.set = os.path.join(self.dir, "control.jwks")
        write_set(self.set, self.signer)
        self.revoked, self.key = [], self.make_key("one")

    def make_key(self, name, algorithm="EdDSA"):
        key = Key(os.path.join(self.dir, name), algorithm)
        with open(key.path + ".pub", "wb") as f:
            f.write(openssl("pkey", "-in", key.path, "-pubout"))
        return key

    def create(self, serial, *more, key=None, name="fleet"):
        shutil.rmtree(self.policies)
        os.mkdir(self.policies)
        for file, text in self.files.items():
            with open(os.path.join(self.policies, file), "w") as f:
                f.write(text)
        with open(os.path.join(self.dir, "revoked"), "w") as f:
            f.write("# what is revoked\n\n" + "".join(line + "\n" for line in self.revoked))
        return subprocess.run([VETHGUARD, "bundle", "create", "--key", (key or self.key).path, "--name", name, "--serial", str(serial),
                               "--policy", self.policies, "--keys", self.set, "--revocations", os.path.join(self.dir, "revoked"),
                               "-o", self.out, *more], capture_output=True, text=True, timeout=60 * SLOW)

    def bytes(self, serial, *more, **kw):
        r = self.create(serial, *more, **kw)
        assert r.returncode == 0, r
        with open(self.out, "rb") as f:
            return f.read()

    def sign(self, content, key=None):
        """A bundle of any content, as no command would make it."""
        return b"vethguard-bundle" + (key or self.key).signature(b"vethguard-bundle" + content) + content

    def bad(self):
        """Bundles that have to be refused: (why, kind of fault, bytes). The bundle in force has serial 3."""
        good, revoked, other = self.bytes(9), self.revoked, self.make_key("stranger")
        self.revoked = []
        content = b'{"name":"fleet","serial":9%s}'
        yield "one bit of the content", "signature", good[:-20] + bytes([good[-20] ^ 1]) + good[-19:]
        yield "one bit of the signature", "signature", good[:20] + bytes([good[20] ^ 128]) + good[21:]
        yield "cut", "signature", good[:-1]
        yield "longer", "signature", good + b"\n"
        yield "only its head", "form", good[:80]
        yield "empty", "form", b""
        yield "not a bundle", "form", b"<html>Sign in</html>" * 10
        yield "another version", "form", b"vethguard-bundl2" + good[16:]
        yield "huge", "form", good + b" " * (1 << 20)
        yield "signed by a stranger", "signature", self.bytes(9, key=other)
        yield "unsigned", "signature", b"vethguard-bundle" + bytes(64) + good[80:]
        yield "an old serial", "serial", self.bytes(2)
        yield "the same serial, other content", "serial", self.bytes(3, "--expires", "1h")
        yield "another bundle", "content", self.bytes(9, name="staging")
        yield "a policy that does not load", "content", self.sign(content % b',"files":{"a.yaml":"allow: []"}')
        yield "a path", "content", self.sign(content % b',"files":{"../a.yaml":"vethguard: 1"}')
        yield "a secret key", "content", self.sign(content % b',"files":{"control.jwks":"{\\"keys\\":[{\\"kty\\":\\"oct\\",\\"k\\":\\"AA\\"}]}"}')
        yield "a member of tomorrow", "content", self.sign(content % b',"more":1')
        yield "no JSON", "content", self.sign(b"{" * 1000)
        self.revoked = revoked


class Bundled(Gatewayed):
    """A daemon whose policies, keys and revocations come from a bundle."""
    refresh, described = "", Described()

    def setUp(self):
        self.publisher = Publisher()
        self.publish_first()
        super().setUp()

    def publish_first(self):
        raise NotImplementedError

    def source(self):
        raise NotImplementedError

    def bundles(self):
        return BUNDLES.format(source=self.source(), keys=self.publisher.key.path + ".pub", more=self.refresh)

    def gateway(self):
        return super().gateway() + SIGNER + self.bundles()

    def bundle(self, daemon=None):
        status, headers, answer = (daemon or self.daemon).call("GET", "/v1/bundles")
        self.described.answer("GET", "/v1/bundles", status, headers, answer)
        return answer["bundles"][0]

    def serial(self, daemon=None):
        active = self.bundle(daemon)["in_force"]
        return active and active["serial"]

    def fault(self, daemon=None):
        fault = self.bundle(daemon)["fault"]
        return fault and fault["kind"]

    def signed(self, session, host="api.lab.test", **more):
        return self.publisher.signer.token(claims(session, host=host, **more))

    def reaches(self, token, url, port=TLS_PORT):
        """The status of the upstream's answer, or of the proxy's."""
        r = self.curl("-o", "/dev/null", "-w", "%{http_connect} %{http_code}", url, token=token, proxy=f"https://{GATEWAY4}:{port}")
        return r.stdout.split()[0] if r.stdout.split()[0] != "200" else r.stdout.split()[1]


class Three(Served, Bundled):
    refresh = ", refresh: 5s"

    def source(self):
        return URL + "/bundle"

    def publish_first(self):
        self.service.bundle_way = ""
        self.publish(1)

    def setUp(self):
        super().setUp()
        self.ports = [TLS_PORT, TLS_PORT + 10, TLS_PORT + 20]
        self.daemons = [self.daemon]
        for port in self.ports[1:]:
            daemon = Daemon(config=f"gateway:\n  listen: '{GATEWAY4}:{port}'\n  certificate: {self.certificate}.pem\n"
                                   f"  key: {self.certificate}.key\n  name: gateway.lab.test\n{SIGNER}{self.bundles()}")
            self.addCleanup(daemon.end)
            self.daemons.append(daemon)
        self.assert_all(1)

    def publish(self, serial, *more, **kw):
        self.serve(self.publisher.bytes(serial, *more, **kw))

    def serve(self, data, way=""):
        self.service.bundle, self.service.bundle_way = data, way
        self.service.bundle_etag = f'"{hashlib.sha256(data).hexdigest()[:16]}"'

    def reload(self, status=200):
        for d in self.daemons:
            answer = d.call("POST", "/v1/reload", {})
            self.assertIn(answer[0], (200, status), answer)

    def assert_all(self, serial):
        self.assertTrue(wait_until(lambda: all(self.serial(d) == serial and not self.fault(d) for d in self.daemons), 20 * SLOW),
                        [(self.bundle(d), d.stderr()) for d in self.daemons])

    def assert_everywhere(self, expected, token, url="https://api.lab.test/whoami", why=""):
        for i, port in enumerate(self.ports):
            self.assertTrue(wait_until(lambda p=port: self.reaches(token, url, p) in expected, 10 * SLOW),
                            (why, i, self.reaches(token, url, port), self.daemons[i].stderr()))

    def trees(self):
        """All that the daemons keep, apart from times."""
        return [sorted((os.path.relpath(os.path.join(at, name), d.data), open(os.path.join(at, name), "rb").read())
                       for at, _, names in os.walk(os.path.join(d.data, "bundles", "fleet")) for name in names) for d in self.daemons]

    def cas(self):
        """Each daemon has a CA of its own; the client trusts all."""
        with open(self.ca, "w") as out:
            for d in self.daemons:
                with open(os.path.join(d.data, "ca", "root.pem")) as f:
                    out.write(f.read())

    def test_three(self):
        self.cas()
        token, other = self.signed("run-1"), self.signed("run-2")
        self.assert_everywhere(("200", "401"), token)
        self.assert_everywhere(("200", "401"), other)
        self.assert_everywhere(("403",), token, "https://www.lab.test/", "not yet")
        self.assertEqual(self.create("named", policy="bundle:fleet/agent.yaml")["policy"]["name"], "agent")
        self.check_unchanged()
        self.check_update(token)
        self.check_revocation(token, other)
        self.check_bad(token, other)
        self.check_restart(token, other)
        self.check_gone()

    def check_unchanged(self):
        """Nothing is transferred again while the ETag is the same."""
        sent, asked = self.service.bundles_sent, len(self.service.asked)
        self.reload()
        self.assertTrue(wait_until(lambda: len(self.service.asked) >= asked + 3, 20 * SLOW))
        self.assertTrue(all(a["headers"].get("If-None-Match") == self.service.bundle_etag for a in self.service.asked[asked:]
                            if a["path"] == "/bundle"), self.service.asked[asked:])
        self.assertEqual(self.service.bundles_sent, sent)
        self.assert_all(1)

    def check_update(self, token):
        """An update reaches all three by itself: a file that a policy includes has changed, and running sessions use it."""
        self.publisher.files["common.yaml"] = MORE
        self.publish(2)
        self.assert_all(2)
        self.assert_everywhere(("200", "401"), token, "https://www.lab.test/", "the running session has the new policy")

    def check_revocation(self, token, other):
        kept = [self.kept(token, port) for port in self.ports]
        self.publisher.revoked = ["token control run-1", "session control.run-3", "session one"]
        named = self.tunnel()
        self.publish(3)
        self.reload()
        self.assert_all(3)
        for s in (*kept, named):
            self.assertEqual(self.rest(s), b"", "its connections are cut")
        self.assert_everywhere(("407",), token, why="revoked by its id")
        self.assert_everywhere(("407",), self.signed("run-3"), why="revoked by its name before it was there")
        self.assert_everywhere(("407",), self.token, why="revoked by its name")
        self.assert_everywhere(("200", "401"), other, why="the other one goes on")
        status, _, answer = self.daemon.call("POST", "/v1/sessions", {"name": "one", "policy": self.policy})
        self.assertEqual((status, "revokes sessions of this name" in answer["detail"]), (409, True), answer)

    def kept(self, token, port):
        """An open tunnel through one of the three."""
        context = ssl.create_default_context(cafile=self.certificate + ".pem")
        s = context.wrap_socket(socket.create_connection((GATEWAY4, port), timeout=20 * SLOW), server_hostname="gateway.lab.test")
        self.addCleanup(s.close)
        s.sendall(f"CONNECT plain.lab.test:80 HTTP/1.1\r\nHost: x\r\nProxy-Authorization: Bearer {token}\r\n\r\n".encode())
        self.assertTrue(self.head(s).startswith(b"HTTP/1.1 200"))
        return s

    def check_bad(self, token, other):
        before = self.trees()
        good = self.publisher.bytes(9)
        few = [(why, "source" if why == "huge" else kind, data, "") for why, kind, data in self.publisher.bad()
               if why in ("one bit of the content", "huge", "signed by a stranger", "an old serial", "a policy that does not load")]
        for why, kind, data, way in few + [(way, "source", good, way) for way in ("redirect", "500", "cut")]:
            with self.subTest(why):
                self.serve(data, way)
                self.reload()
                self.assertTrue(wait_until(lambda k=kind: all(self.fault(d) == k for d in self.daemons), 20 * SLOW),
                                [self.bundle(d) for d in self.daemons])
                self.assertEqual([self.serial(d) for d in self.daemons], [3, 3, 3])
                self.assertEqual(self.trees(), before)
        self.assert_everywhere(("407",), token)
        self.assert_everywhere(("200", "401"), other, "https://www.lab.test/")
        for d in self.daemons:
            self.assertTrue(wait_until(lambda d=d: any(e["finding_info"]["types"] == ["bundle-refused"] for e in d.events(FINDING)), 10 * SLOW))
        r = self.daemon.cli("bundle", "list")
        self.assertEqual(r.returncode, 0, r)
        for words in ("fleet: serial 3 is in force", "policy     by-claims.yaml", "key set    control.jwks", "2 sessions, 1 tokens", "FAULT      source"):
            self.assertIn(words, r.stdout)
        # A server that says "not modified" of what it has never sent, and one that never ends.
        self.publish(4)
        self.service.bundle_way = "304"
        self.reload()
        self.assertTrue(wait_until(lambda: not any(self.fault(d) for d in self.daemons), 20 * SLOW))
        self.assertEqual([self.serial(d) for d in self.daemons], [3, 3, 3])
        self.service.bundle_way = "slow"
        self.reload()
        self.assert_everywhere(("200", "401"), other)  # while the fetches wait
        self.assertEqual([self.serial(d) for d in self.daemons], [3, 3, 3])

    def check_restart(self, token, other):
        """While the source is away, the next daemon uses the last good bundle, and knows the highest serial."""
        self.serve(b"", "500")
        for d in self.daemons:
            d.kill()
            d.start()
        self.assertEqual([self.serial(d) for d in self.daemons], [3, 3, 3])
        self.assert_everywhere(("407",), token, why="revoked before the restart")
        self.assert_everywhere(("200", "401"), other)
        self.serve(self.publisher.bytes(2))
        self.reload()
        self.assertTrue(wait_until(lambda: all(self.fault(d) == "serial" for d in self.daemons), 20 * SLOW))
        # Without the serial nobody knows what was revoked: signed tokens are refused until somebody looks.
        d = self.daemons[2]
        d.kill()
        os.truncate(os.path.join(d.data, "bundles", "fleet", "serial"), 3)
        d.start()
        self.assertTrue(wait_until(lambda: self.reaches(other, "https://api.lab.test/whoami", self.ports[2]) == "407", 10 * SLOW), d.stderr())
        self.assertIn("what a bundle has revoked is not known", d.stderr())
        self.assertEqual((self.serial(d), self.fault(d)), (None, "disk"))
        d.kill()
        shutil.rmtree(os.path.join(d.data, "bundles", "fleet"))
        self.publisher.revoked = ["token control run-1"]
        self.publish(5)
        d.start()
        for name in [s["name"] for s in d.call("GET", "/v1/sessions")[2]["sessions"] if s["state"] == "failed"]:  # their policy was removed
            self.assertEqual(d.call("DELETE", "/v1/sandboxes/" + name)[0], 200)
        self.reload()
        self.assert_all(5)
        self.assert_everywhere(("200", "401"), self.signed("run-9"))
        self.assert_everywhere(("407",), token)

    def check_gone(self):
        """A policy that a bundle no longer has: its sandboxes are paused, and nothing begins with it."""
        named = self.create("gone", policy="bundle:fleet/agent.yaml")["token"]
        self.assertTrue(wait_until(lambda: self.ask(f"Bearer {named}").startswith(b"HTTP/1.1 200"), 10 * SLOW))
        agent = self.publisher.files.pop("agent.yaml")
        self.publish(6)
        self.reload()
        self.assert_all(6)
        self.assertTrue(wait_until(lambda: self.ask(f"Bearer {named}").startswith(b"HTTP/1.1 503"), 10 * SLOW), self.daemon.stderr())
        self.assertIn(b"Bundle fleet has no policy agent.yaml any more", self.ask(f"Bearer {named}"))
        r = self.daemon.cli("resume", "gone")
        self.assertEqual((r.returncode, "has no policy agent.yaml" in r.stderr), (1, True), r)
        status, _, answer = self.daemon.call("POST", "/v1/sessions", {"name": "late", "policy": "bundle:fleet/agent.yaml"})
        self.assertEqual((status, "has no policy agent.yaml" in answer["detail"]), (422, True), answer)
        self.publisher.files["agent.yaml"] = agent
        self.publish(7)
        self.reload(status=500)  # the policies of the paused sandboxes cannot be read at this moment
        self.assert_all(7)
        self.assertEqual(self.daemon.cli("resume", "gone").returncode, 0)
        self.assertTrue(wait_until(lambda: self.ask(f"Bearer {named}").startswith(b"HTTP/1.1 200"), 10 * SLOW), self.daemon.stderr())


class FromFile(Bundled):
    """A file in a folder whose link is exchanged, as kubelet does with ConfigMaps."""

    def setUp(self):
        self.mount = support.LAB.path(f"configmap-{time.monotonic_ns()}")
        os.mkdir(self.mount, 0o755)
        self.turn = 0
        super().setUp()

    def source(self):
        return os.path.join(self.mount, "fleet.bundle")

    def put(self, data):
        """Makes the new folder, then exchanges the link to it in one step."""
        self.turn += 1
        folder = os.path.join(self.mount, f"..turn{self.turn}")
        os.mkdir(folder, 0o755)
        with open(os.path.join(folder, "fleet.bundle"), "wb") as f:
            f.write(data)
        os.symlink(os.path.basename(folder), os.path.join(self.mount, "..data_tmp"))
        os.rename(os.path.join(self.mount, "..data_tmp"), os.path.join(self.mount, "..data"))
        if not os.path.islink(self.source()):
            os.symlink("..data/fleet.bundle", self.source())

    def publish_first(self):
        self.put(self.publisher.bytes(1))

    def configure(self, *keys, more=""):
        with open(self.daemon.config, "w") as f:
            f.write(support.LAB.config(super().gateway().replace(self.publisher.key.path + ".pub", ", ".join(k.path + ".pub" for k in keys)) + more))
        return self.daemon.call("POST", "/v1/reload", {})

    def in_force(self, serial, fault=None):
        self.assertTrue(wait_until(lambda: (self.serial(), self.fault()) == (serial, fault), 20 * SLOW), (self.bundle(), self.daemon.stderr()))

    def test_file(self):
        token = self.signed("f1")
        self.assertTrue(wait_until(lambda: self.reaches(token, "https://api.lab.test/whoami") in ("200", "401"), 10 * SLOW), self.daemon.stderr())
        self.put(self.publisher.bytes(2))
        self.in_force(2)  # by itself, within some seconds
        self.check_rotation(token)
        self.check_bad(token)
        self.check_expiry()
        self.check_names()
        self.check_missing()

    def check_bad(self, token):
        kept = os.path.join(self.daemon.data, "bundles", "fleet")
        before = sorted((at, names) for at, _, names in os.walk(kept))
        for why, kind, data in self.publisher.bad():
            with self.subTest(why):
                self.put(data)
                self.assertEqual(self.daemon.call("POST", "/v1/reload", {})[0], 200)
                self.assertEqual((self.serial(), self.fault()), (3, kind), self.bundle())
                self.assertEqual(sorted((at, names) for at, _, names in os.walk(kept)), before)
        self.assertIn(self.reaches(token, "https://api.lab.test/whoami"), ("200", "401"))
        self.publisher.bytes(3)

    def check_rotation(self, token):
        """Gateways know a second key, of another kind, before it signs; the first key is taken out afterwards."""
        second = self.publisher.make_key("second", "ES256")
        self.put(self.publisher.bytes(3, key=second))
        self.daemon.call("POST", "/v1/reload", {})
        self.in_force(2, "signature")
        self.assertEqual(self.configure(self.publisher.key, second)[0], 200)
        self.in_force(3)
        self.assertEqual(self.configure(second)[0], 200)
        self.in_force(3)
        # The only key is another one: what was kept is no longer trusted, and nobody knows what is revoked.
        third = self.publisher.make_key("third")
        self.configure(third)
        self.in_force(None, "signature")
        self.assert_unknown("no bundle is in force", token=token)
        self.assertEqual(self.configure(second)[0], 200)
        self.in_force(3)
        self.assertTrue(wait_until(lambda: self.reaches(token, "https://api.lab.test/whoami") in ("200", "401"), 10 * SLOW), self.daemon.stderr())
        for text, words in ((b"", "not a public key"), (open(second.path, "rb").read(), "private key")):
            path = os.path.join(self.publisher.dir, "wrong.pub")
            with open(path, "wb") as f:
                f.write(text)
            self.configure(type("K", (), {"path": path[:-4]}))
            self.in_force(None, "source")
            self.assertIn(words, self.bundle()["fault"]["text"])
        self.publisher.key = second
        self.assertEqual(self.configure(second)[0], 200)
        self.in_force(3)

    def check_expiry(self):
        """Nothing begins with an expired bundle; what runs goes on."""
        running = self.signed("f2")
        self.assertTrue(wait_until(lambda: self.reaches(running, "https://api.lab.test/whoami") in ("200", "401"), 10 * SLOW), self.daemon.stderr())
        content = json.loads(subprocess.run([VETHGUARD, "bundle", "show", "--json", self.publisher.out], capture_output=True, check=True).stdout)
        content.update(serial=4, expires=int(time.time()) - 1)
        self.put(self.publisher.sign(json.dumps(content).encode()))
        self.daemon.call("POST", "/v1/reload", {})
        self.in_force(4)
        self.assertTrue(self.bundle()["in_force"]["expired"])
        self.assertIn(self.reaches(running, "https://api.lab.test/whoami"), ("200", "401"))
        self.assert_unknown("expired", token=self.signed("f3"))
        status, _, answer = self.daemon.call("POST", "/v1/sessions", {"policy": "bundle:fleet/agent.yaml"})
        self.assertEqual((status, "has expired" in answer["detail"]), (422, True), answer)
        self.put(self.publisher.bytes(5, "--expires", "1h"))
        self.daemon.call("POST", "/v1/reload", {})
        self.in_force(5)
        self.assertFalse(self.bundle()["in_force"]["expired"])
        self.create("after", policy="bundle:fleet/agent.yaml")

    def check_names(self):
        kept = os.path.join(self.daemon.data, "bundles", "fleet", "current")
        for policy, status in (("bundle:fleet/agent.yaml", 201), ("bundle:other/agent.yaml", 422), ("bundle:fleet/none.yaml", 422),
                               ("bundle:fleet/control.jwks", 422), ("bundle:fleet/../agent.yaml", 422), ("bundle:", 422),
                               (kept + "/none.yaml", 422), (os.path.realpath(kept) + "/agent.yaml", 422), (kept + "/agent.yaml", 201)):
            got, _, answer = self.daemon.call("POST", "/v1/sessions", {"policy": policy})
            self.assertEqual(got, status, (policy, answer))
        self.create("moved")
        r = self.daemon.cli("reload", "moved", "--policy", "bundle:fleet/agent.yaml")
        self.assertEqual(r.returncode, 0, r)
        self.assertEqual(self.daemon.call("GET", "/v1/sessions/moved")[2]["policy"]["name"], "agent")
        self.assertEqual(self.daemon.cli("reload", "moved", "--policy", "bundle:fleet/none.yaml").returncode, 1)
        r = self.daemon.cli("session", "create", "--policy", "bundle:fleet/agent.yaml", "--name", "by-command")
        self.assertEqual(r.returncode, 0, r)

    def check_missing(self):
        os.unlink(self.source())
        self.daemon.call("POST", "/v1/reload", {})
        self.in_force(5, "source")
        os.mkfifo(self.source())
        self.daemon.call("POST", "/v1/reload", {})
        self.assertTrue(wait_until(lambda: "regular file" in self.bundle()["fault"]["text"], 10 * SLOW), self.bundle())
        self.in_force(5, "source")


class Commands(unittest.TestCase):
    def setUp(self):
        self.publisher = Publisher()

    def run_it(self, *argv):
        return subprocess.run([VETHGUARD, "bundle", *argv], capture_output=True, text=True, timeout=60 * SLOW)

    def test_create(self):
        p = self.publisher
        p.revoked = ["session agent-7", "token control run 1"]
        self.assertEqual(p.create(7, "--expires", "2h").returncode, 0)
        r = self.run_it("show", p.out)
        for words in ("fleet: serial 7", "policy       agent.yaml", "key set      control.jwks", "session agent-7", "token run 1 of signer control"):
            self.assertIn(words, r.stdout)
        r = self.run_it("verify", p.out, "--public-key", p.make_key("other").path + ".pub")
        self.assertEqual((r.returncode, "no known key verifies its signature" in r.stderr), (1, True), r)
        r = self.run_it("verify", p.out, "--public-key", p.key.path + ".pub")
        self.assertEqual((r.returncode, r.stdout), (0, "fleet: serial 7, 4 files, 2 revocations: good\n"), r)
        content = json.loads(self.run_it("show", "--json", p.out).stdout)
        self.assertEqual(content["revoked"], {"sessions": ["agent-7"], "tokens": [{"signer": "control", "id": "run 1"}]})
        self.assertEqual(content["files"]["agent.yaml"], AGENT)

    def test_refused(self):
        p = self.publisher
        before = p.bytes(1)
        for files, revoked, words in (({"a.yaml": "allow: []\n"}, [], "a.yaml"), ({"a b.yaml": AGENT}, [], "its name"),
                                      ({"a.yaml": AGENT}, ["agent-7"], "line 3"), ({"a.yaml": AGENT}, ["session a b"], "line 3"),
                                      ({"a.yaml": AGENT}, ["token control"], "line 3"), ({"a.yaml": "#" * (1 << 20) + "\n" + AGENT}, [], "more than"),
                                      ({"a.yaml": AGENT + "include: /etc/passwd\n"}, [], "passwd")):
            p.files, p.revoked = files, revoked
            r = p.create(2)
            self.assertEqual((r.returncode, words in r.stderr), (1, True), r)
        with open(p.out, "rb") as f:
            self.assertEqual(f.read(), before, "what was there stays")
        p.files, p.revoked = {"a.yaml": AGENT}, []
        rsa = Key(os.path.join(p.dir, "rsa"), "RS256")
        self.assertIn("neither Ed25519 nor P-256", p.create(2, key=rsa).stderr)
        for argv, status in ((("create", "--name", "a", "--serial", "1", "-o", "x"), 2), (("create", "--key", "k", "--serial", "1", "-o", "x"), 2),
                             (("create", "--key", "k", "--name", "a", "-o", "x"), 2), (("create", "--key", "k", "--name", "a", "--serial", "1"), 2),
                             (("create", "--key", "k", "--name", "A", "--serial", "1", "-o", "x"), 2), (("create", "--serial", "0"), 2),
                             (("create", "--serial", "-1"), 2), (("create", "--expires", "soon"), 2), (("show",), 2), (("show", p.policies), 1),
                             (("show", p.set), 1), (("verify", p.out), 2), (("verify", p.out, "--public-key", p.key.path), 1), (("sign",), 2), ((), 2)):
            self.assertEqual(self.run_it(*argv).returncode, status, argv)

    def test_elsewhere(self):
        """For a key in a token or a service: the command writes what has to be signed, and takes the signature."""
        p = self.publisher
        for name, algorithm in (("hsm", "ES256"), ("kms", "EdDSA")):
            key = p.make_key(name, algorithm)
            draft, signature, out = (os.path.join(p.dir, name + end) for end in (".draft", ".signature", ".bundle"))
            p.bytes(1)  # the policies' files
            r = self.run_it("create", "--unsigned", "--name", "fleet", "--serial", "8", "--policy", p.policies, "-o", draft)
            self.assertEqual(r.returncode, 0, r)
            with open(draft, "rb") as f, open(signature, "wb") as to:
                to.write(key.signature(f.read()))
            finish = ("create", draft, "--signature", signature, "-o", out, "--public-key")
            self.assertEqual(self.run_it(*finish, p.key.path + ".pub").returncode, 1)
            self.assertFalse(os.path.exists(out))
            r = self.run_it(*finish, key.path + ".pub")
            self.assertEqual(r.returncode, 0, r)
            r = self.run_it("verify", out, "--public-key", key.path + ".pub")
            self.assertEqual(r.returncode, 0, r)
