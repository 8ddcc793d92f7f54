# SPDX-License-Identifier: Apache-2.0
"""A CA whose key lies in a PKCS #11 token: SoftHSM, behind vethguard-token. What its module does wrong, and what happens without it."""
import glob
import json
import os
import pwd
import re
import shutil
import signal
import stat
import subprocess
import time
import unittest

import yaml

import lab
import cores
import support
import test_ca
import test_upgrade
from daemon import Daemon
from support import SLOW, file_credential, policy, sh, wait_until
from test_ca import NODE, Life, Operator, openssl, read

MODULES = ("/usr/lib/softhsm/libsofthsm2.so", "/usr/lib64/softhsm/libsofthsm2.so", "/usr/lib/pkcs11/libsofthsm2.so")
USER = "nobody"
PIN, LABEL = "271828", "company"


def module():
    return next((m for m in MODULES if os.path.exists(m)), None)


class Token:
    """SoftHSM's tokens in a folder, for the user of vethguard-token."""

    def __init__(self, folder):
        self.folder, self.tokens, self.conf = folder, os.path.join(folder, "tokens"), os.path.join(folder, "softhsm2.conf")
        os.makedirs(self.tokens)
        with open(self.conf, "w") as f:
            f.write(f"directories.tokendir = {self.tokens}\nobjectstore.backend = file\nlog.level = ERROR\n")
        self.env = dict(os.environ, SOFTHSM2_CONF=self.conf)
        self.pin = os.path.join(folder, "pin")
        self.set_pin(PIN)

    def set_pin(self, text):
        with open(self.pin, "w") as f:
            f.write(text + "\n")
        os.chmod(self.pin, 0o600)

    def give(self):
        """To the user, as softhsm2-util run by root leaves it to root."""
        user = pwd.getpwnam(USER)
        for at, folders, files in os.walk(self.tokens):
            for name in (at, *(os.path.join(at, f) for f in folders + files)):
                os.chown(name, user.pw_uid, user.pw_gid)

    def util(self, *argv):
        return sh("softhsm2-util", *argv, env=self.env)

    def tool(self, *argv):
        """SoftHSM sees no token for a moment while another process writes the token's files: asked again then."""
        for _ in range(20):
            try:
                return sh("pkcs11-tool", "--module", module(), *argv, env=self.env)
            except RuntimeError as e:
                if "No slot with token named" not in str(e):
                    raise
                time.sleep(0.1)
        return sh("pkcs11-tool", "--module", module(), *argv, env=self.env)

    def make(self, label=LABEL):
        self.util("--init-token", "--free", "--label", label, "--pin", PIN, "--so-pin", "31415926")
        self.give()

    def key(self, name, kind="EC:prime256v1", number="01", label=LABEL):
        """Makes a key in the token; its public half as PEM."""
        out = os.path.join(self.folder, name)
        if kind not in ("EC:prime256v1", "rsa:2048"):  # pkcs11-tool of Debian 12 cannot write the public half of others
            openssl("genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-384", "-out", out + ".key")
            openssl("pkey", "-in", out + ".key", "-pubout", "-out", out + ".pub")
            self.util("--import", out + ".key", "--token", label, "--pin", PIN, "--label", name, "--id", number)
            self.give()
            return out + ".pub"
        self.tool("--token-label", label, "--login", "--pin", PIN, "--keypairgen", "--key-type", kind, "--label", name, "--id", number)
        self.tool("--token-label", label, "--read-object", "--type", "pubkey", "--id", number, "--output-file", out + ".der")
        openssl("pkey", "-pubin", "-inform", "DER", "-in", out + ".der", "-out", out + ".pub")
        self.give()
        return out + ".pub"


def certify(operator, public, out, extensions=NODE, days=365):
    """An intermediate for a key of which only the public half is here."""
    cert, ext = operator.path(out + ".crt"), operator.path(out + ".ext")
    with open(ext, "w") as f:
        f.write(extensions)
    openssl("x509", "-new", "-subj", f"/CN=Node {out}", "-force_pubkey", public, "-CA", operator.root, "-CAkey", operator.key, "-days",
            str(days), "-extfile", ext, "-out", cert)
    return cert


class Tokens(Life):
    kind = "EC:prime256v1"

    @classmethod
    def setUpClass(cls):
        for program in ("softhsm2-util", "pkcs11-tool"):
            if not shutil.which(program):
                raise unittest.SkipTest(program + " is not installed")
        if not module():
            raise unittest.SkipTest("SoftHSM's module is not there")
        super().setUpClass()

    def make_daemon(self):
        self.folder = support.LAB.path(f"ca-token-{time.monotonic_ns()}")
        os.makedirs(self.folder)
        self.token = Token(self.folder)
        self.token.make()
        self.operator = Operator(self.folder, "operator")
        self.cert = certify(self.operator, self.token.key("node", self.kind), "node")
        return Daemon(config=self.configuration())

    def configuration(self, uri=f"pkcs11:token={LABEL};object=node", **more):
        token = {"module": module(), "pin": f"file:{self.token.pin}", "user": USER, "environment": {"SOFTHSM2_CONF": self.token.conf},
                 "writable": [self.token.tokens], **more}
        return "ca: " + json.dumps({"root": self.operator.root, "certificate": self.cert, "key": uri,
                                    "token": {k: v for k, v in token.items() if v is not None}}) + "\n"

    def configure(self, *args, **kw):
        with open(self.daemon.config, "w") as f:
            f.write(support.LAB.config(self.configuration(*args, **kw)))
        r = self.daemon.cli("reload")
        self.assertEqual(r.returncode, 0, r)

    def process(self):
        """The pid of vethguard-token; None: there is none."""
        supervisor = self.daemon.process.pid
        children = read(f"/proc/{supervisor}/task/{supervisor}/children").split()
        for p in children:
            try:
                if read(f"/proc/{p}/comm").startswith("vethguard-token"):
                    return int(p)
            except (FileNotFoundError, ProcessLookupError):
                pass  # it has just ended
        return None

    def note(self):
        return " ".join(self.status()["notes"])

    def assert_note(self, text):
        self.assertTrue(wait_until(lambda: text in self.note(), 15 * SLOW), (text, self.note(), self.daemon.stderr()))

    def assert_refused(self, *words):
        """A new sandbox is, and the caller reads why."""
        netns = support.netns(self, f"r{time.monotonic_ns()}")
        r = self.daemon.cli("attach", "--name", netns, "--netns", f"/run/netns/{netns}", "--policy", self.policy)
        self.assertEqual(r.returncode, 1, r)
        for word in words:
            self.assertIn(word, r.stderr)
        return r.stderr

    def assert_usable(self):
        self.assertTrue(wait_until(lambda: self.status()["usable"], 20 * SLOW), (self.status(), self.daemon.stderr()))


class Use(Tokens):
    def test_signs(self):
        self.assert_trusts(self.operator.root)
        current = self.current()
        self.assertEqual((current["origin"], current["subject"], self.note()), ("configured", "CN=Node node", current and self.note()))
        chain = self.chain()
        self.assertEqual(len(chain), 3)
        r = self.verify(self.operator.root, chain)
        self.assertEqual(r.returncode, 0, r)
        names = [self.another(f"n{i}") for i in range(6)]
        for name in names:
            self.assert_trusts(self.operator.root, netns=name)
        self.assertNotIn(PIN, self.daemon.stderr() + json.dumps(self.daemon.events()))

    def test_the_process_is_confined(self):
        pid = self.process()
        status = dict(line.split(":\t", 1) for line in read(f"/proc/{pid}/status").splitlines() if ":\t" in line)
        user = pwd.getpwnam(USER)
        self.assertEqual(status["Uid"].split(), [str(user.pw_uid)] * 4)
        self.assertEqual((status["CapEff"], status["CapPrm"], status["CapBnd"], status["NoNewPrivs"], status["Seccomp"]),
                         ("0" * 16, "0" * 16, "0" * 16, "1", "2"))
        for ns in ("net", "mnt", "ipc", "uts"):
            self.assertNotEqual(os.readlink(f"/proc/{pid}/ns/{ns}"), os.readlink(f"/proc/self/ns/{ns}"), ns)
        self.assertEqual(read(f"/proc/{pid}/cmdline").strip("\0").split("\0"), ["vethguard-token"])
        environment = open(f"/proc/{pid}/environ", "rb").read()
        self.assertNotIn(PIN.encode(), environment)
        options = [line.split() for line in read(f"/proc/{pid}/mountinfo").splitlines()]
        self.assertEqual({m[4] for m in options if "rw" in m[5].split(",")}, {self.token.tokens})
        for other in (self.pid("keeper"), self.pid("worker"), self.daemon.process.pid):
            self.assertNotIn("softhsm", read(f"/proc/{other}/maps"))
        self.assertIn("softhsm", read(f"/proc/{pid}/maps"))

    def test_a_core_of_it_shows_no_credential(self):
        """The core is taken while a sandbox with a credential works, and gets certificates of its CA."""
        values = {"secret": support.SECRET}
        with open(self.policy, "w") as f:
            f.write(policy("{to: 'https://api.lab.test', credential: api}", credentials=file_credential()))
        self.assertEqual(self.daemon.cli("reload").returncode, 0)
        r = self.curl("--cacert", self.operator.root, "https://api.lab.test/whoami")
        self.assertIs(json.loads(r.stdout).get("authenticated"), True, r)
        self.assertTrue(cores.found_in(self.pid("worker"), values), "so it can be found where it is")
        self.assertEqual(cores.found_in(self.process(), values), set())

    def test_by_a_server(self):
        """A local server has the module, as for an HSM on the network; vethguard-token reaches it by a Unix socket."""
        client = next(iter(glob.glob("/usr/lib/*/pkcs11/p11-kit-client.so")), None)
        if not client or not shutil.which("p11-kit"):
            self.skipTest("p11-kit's server and client are not installed")
        at, user = os.path.join(self.folder, "p11.sock"), pwd.getpwnam(USER)
        server = subprocess.Popen(["p11-kit", "server", "-f", "--provider", module(), "-n", at, "-u", USER, f"pkcs11:token={LABEL}"],
                                  env=self.token.env, stdout=subprocess.PIPE, text=True)
        self.addCleanup(server.stdout.close)
        self.addCleanup(server.wait)
        self.addCleanup(server.kill)
        self.assertIn(at, server.stdout.readline())
        os.chmod(self.folder, 0o755)
        os.chown(at, user.pw_uid, user.pw_gid)
        self.configure(module=client, environment={"P11_KIT_SERVER_ADDRESS": "unix:path=" + at}, writable=None)
        self.assert_usable()
        self.assert_trusts(self.operator.root, netns=self.another("after"))
        self.assertNotIn("softhsm", read(f"/proc/{self.process()}/maps"))
        server.kill()
        server.wait()
        os.kill(self.process(), signal.SIGKILL)
        self.assert_note("no token matches the URI")
        self.assert_refused("no token matches the URI")
        self.assert_trusts(self.operator.root)

    def test_doctor(self):
        def told(**more):
            with open(self.folder + "/doctor.yaml", "w") as f:
                f.write(self.configuration(**more))
            r = subprocess.run([support.VETHGUARD, "doctor", "--json", "--config", self.folder + "/doctor.yaml"], capture_output=True, text=True)
            found = [f for f in json.loads(r.stdout)["findings"] if f["subject"] == "token"]
            return found[0]["state"], found[0]["text"] + found[0].get("remedy", "")
        state, text = told()
        self.assertEqual((state, PIN in text), ("ok", False), text)
        for more, words in (({"module": "/usr/lib/missing.so"}, "no module /usr/lib/missing.so"), ({"user": "nobody-such"}, "no user nobody-such"),
                            ({"pin": "file:/missing"}, "no PIN /missing"), ({"pin": "file:" + self.token.conf}, "0600"),
                            ({"writable": ["/missing"]}, "no folder /missing")):
            state, text = told(**more)
            self.assertEqual((state, words in text), ("note", True), text)

    def test_rotate_and_what_is_refused(self):
        before = self.chain()
        self.run_ca("rotate")
        self.assertTrue(wait_until(lambda: self.chain()[1:2] not in ([], before[1:2]), 10 * SLOW))
        self.assert_trusts(self.operator.root)
        cert = self.operator.sign(read(self.operator.path("csr")) if os.path.exists(self.operator.path("csr")) else self.run_ca("csr").stdout, "x")
        self.refused("remove it", "install", cert, "--root", self.operator.root)

    def test_the_keeper_dies(self):
        self.assert_trusts(self.operator.root)
        pid = self.process()
        self.kill_keeper()
        self.assert_usable()
        self.assertEqual(self.process(), pid)  # it did not log in again
        self.assert_trusts(self.operator.root)
        self.assert_trusts(self.operator.root, netns=self.another("after"))

    def test_the_daemon_dies(self):
        self.assert_trusts(self.operator.root)
        self.daemon.kill()
        self.daemon.start()
        self.assert_trusts(self.operator.root)
        self.assert_trusts(self.operator.root, netns=self.another("after"))

    def test_the_process_dies(self):
        """Sandboxes that run go on; new ones are refused until another process has the key."""
        self.assert_trusts(self.operator.root)
        os.rename(self.token.tokens, self.token.tokens + ".away")
        os.mkdir(self.token.tokens)
        os.kill(self.process(), signal.SIGKILL)
        self.assert_note("no token matches the URI")
        self.assert_trusts(self.operator.root)
        self.assert_refused("no token matches the URI", "plugged in")
        os.kill(self.daemon.call("GET", "/v1/sandboxes/one")[2]["worker"]["pid"], signal.SIGKILL)
        time.sleep(1)
        os.rmdir(self.token.tokens)
        os.rename(self.token.tokens + ".away", self.token.tokens)
        self.assert_usable()
        self.assert_trusts(self.operator.root)
        self.assert_trusts(self.operator.root, netns=self.another("after"))

    def test_a_program_gives_the_pin(self):
        script = os.path.join(self.folder, "give-pin")
        with open(script, "w") as f:
            f.write(f"#!/bin/sh\ncat {self.token.pin}\n")
        os.chmod(script, 0o700)
        before = self.process()
        self.configure(pin=f"exec:[{script}]")
        self.assertTrue(wait_until(lambda: self.process() not in (None, before), 10 * SLOW))
        self.assert_usable()
        self.assert_trusts(self.operator.root, netns=self.another("after"))
        self.configure(pin="exec:[/bin/false]")
        self.assert_note("/bin/false ended with status 1")
        self.assert_refused("/bin/false")


class Rsa(Tokens):
    kind = "rsa:2048"

    def test_signs(self):
        self.assert_trusts(self.operator.root)
        r = self.verify(self.operator.root, self.chain())
        self.assertEqual(r.returncode, 0, r)


class P384(Tokens):
    kind = "EC:secp384r1"
    test_signs = Rsa.test_signs


class Root(Tokens):
    """The operator's root itself is in the token; nothing is between it and the workers' certificates."""

    def make_daemon(self):
        self.folder = support.LAB.path(f"ca-token-{time.monotonic_ns()}")
        os.makedirs(self.folder)
        self.token = Token(self.folder)
        self.token.make()
        self.operator = Operator(self.folder, "operator", pathlen=1)
        self.token.util("--import", self.operator.key, "--token", LABEL, "--pin", PIN, "--label", "root", "--id", "0a0b")
        self.token.give()
        os.unlink(self.operator.key)
        self.cert = None
        return Daemon(config=self.configuration())

    def configuration(self, uri=f"pkcs11:token={LABEL};id=%0a%0b", **more):
        return super().configuration(uri, **more).replace('"certificate": null, ', "")

    def test_signs(self):
        self.assert_trusts(self.operator.root)
        chain = self.chain()
        r = self.verify(self.operator.root, chain)
        self.assertEqual((r.returncode, len(chain), self.current()["subject"]), (0, 2, "CN=Operator operator"), r)


class Constrained(Root, test_ca.Constrained):
    """The same root signs for each worker what its policy names: also tests of test_ca.Constrained, by a token."""
    test_signs = test_more_than_fits = test_what_observes_is_not_limited = None  # the token has no part in them

    def configuration(self, *args, **more):
        return super().configuration(*args, **more).replace("ca: {", 'ca: {"constrain_names": true, ', 1)

    def trusted(self):
        return self.operator.root

    def test_the_token_is_away(self):
        """A policy with other names needs a signature: it is refused, and what is in force stays. So is a new sandbox."""
        other = self.allowing("https://api.lab.test")
        self.assertEqual(self.host("https://www.lab.test/")[:2], (0, "200 000"))
        os.rename(self.token.tokens, self.token.tokens + ".away")
        os.mkdir(self.token.tokens)
        os.kill(self.process(), signal.SIGKILL)
        self.assert_note("no token matches the URI")
        r = self.daemon.cli("reload", "one", "--policy", other)
        self.assertEqual(r.returncode, 1, r)
        self.assertIn("the earlier policy stays in force", r.stderr)
        self.assert_refused("no token matches the URI")
        self.assertEqual(self.host("https://www.lab.test/")[:2], (0, "200 000"))
        self.assertEqual(self.host("https://api.lab.test/")[0], 60)
        os.rmdir(self.token.tokens)
        os.rename(self.token.tokens + ".away", self.token.tokens)
        self.assert_usable()
        r = self.daemon.cli("reload", "one", "--policy", other)
        self.assertEqual(r.returncode, 0, r.stderr)
        self.assertTrue(wait_until(lambda: self.host("https://api.lab.test/")[0] == 0, 5 * SLOW), self.host("https://api.lab.test/"))
        self.assertEqual(self.host("https://www.lab.test/")[0], 60)


class Wrong(Tokens):
    """Each is said, new sandboxes are refused with it, and a reload with what is right mends it."""

    def assert_wrong(self, text, *args, **kw):
        self.configure(*args, **kw)
        self.assert_note(text)
        self.assert_refused(text)
        self.assert_trusts(self.operator.root)  # what runs goes on

    def mend(self):
        self.configure()
        self.assert_usable()
        self.assert_trusts(self.operator.root, netns=self.another("mended"))

    def test_the_uri(self):
        self.assert_wrong("no such private key", f"pkcs11:token={LABEL};object=other")
        self.assert_wrong("no token matches the URI", "pkcs11:token=other;object=node")
        self.assert_wrong("no token matches the URI", f"pkcs11:token={LABEL};serial=0000;object=node")
        self.token.key("node", number="02")
        self.assert_wrong("more than one such private key", f"pkcs11:token={LABEL};object=node")
        self.configure(f"pkcs11:token={LABEL};object=node;id=%01")
        self.assert_usable()
        self.token.make()
        self.assert_wrong("more than one token", f"pkcs11:token={LABEL};object=node;id=%01;type=private")

    def test_the_key_of_another_certificate(self):
        self.token.key("other", number="02")
        self.token.key("rsa", "rsa:2048", "03")
        self.assert_wrong("is not that of the certificate", f"pkcs11:token={LABEL};object=other")
        self.assert_wrong("is of kind RSA, and that of the certificate is EC", f"pkcs11:token={LABEL};object=rsa")
        self.mend()

    def test_the_module(self):
        self.assert_wrong("the module cannot be loaded", module="/usr/lib/missing.so")
        self.assert_wrong("not a PKCS #11 module", module=os.path.realpath(sh("sh", "-c", "ldd /bin/sh | sed -n 's/.*=> *\\([^ ]*\\).*/\\1/p'").split()[0]))
        self.assert_wrong("there is no user", user="nobody-such")
        self.assert_wrong("token.writable", writable=[self.token.tokens + "/missing"])
        self.mend()

    def test_the_pin_is_tried_once(self):
        """A token locks itself after a few wrong ones. SoftHSM says in its flags that a wrong one was tried."""
        self.token.set_pin("000000")
        self.assert_wrong("the token refuses the PIN: it is wrong", uri=f"pkcs11:token={LABEL};id=%01")
        stderr = self.daemon.stderr()
        for _ in range(3):
            self.assert_refused("the token refuses the PIN")
            self.kill_keeper()
            time.sleep(0.5)
        self.assertEqual(self.daemon.stderr().count("the token refuses the PIN") - stderr.count("the token refuses the PIN"),
                         self.daemon.stderr().count("certificates of sandboxes: ca.token") - stderr.count("certificates of sandboxes: ca.token"))
        self.assertIsNone(self.process())
        self.token.set_pin(PIN)
        self.assert_refused("the token refuses the PIN")
        self.mend()

    def test_the_pins_source(self):
        os.chmod(self.token.pin, 0o644)
        self.assert_wrong("is secret, and others can read it", uri=f"pkcs11:token={LABEL};id=%01")
        os.chmod(self.token.pin, 0o600)
        for text, words in (("", "no single line"), ("x" * 300, "no single line"), ("12\n34", "no single line")):
            self.token.set_pin(text)
            self.assert_wrong(words)
        os.unlink(self.token.pin)
        self.assert_wrong("No such file")
        self.token.set_pin(PIN)
        self.mend()
        self.assertEqual(stat.S_IMODE(os.stat(self.token.pin).st_mode), 0o600)


class Upgrades(test_upgrade.Upgrader, Tokens):
    """Two daemons are logged in for a while; each has a process of its own."""

    def make_daemon(self):
        self.bin = support.LAB.path(f"bin-{time.monotonic_ns()}")
        shutil.copytree(lab.BIN, self.bin)
        daemon = Tokens.make_daemon(self)
        daemon.stop()
        daemon.program = os.path.join(self.bin, "vethguardd")
        daemon.start()
        return daemon

    def assert_usable(self):
        def usable():
            r = self.run_ca("show", "--json", ok=False)
            return r.returncode == 0 and json.loads(r.stdout)["usable"]
        self.assertTrue(wait_until(usable, 20 * SLOW), self.daemon.stderr())

    def test_another_version_takes_over(self):
        self.assert_trusts(self.operator.root)
        for _ in range(2):
            self.upgrade()
            self.assert_usable()
            self.assert_trusts(self.operator.root)
            self.assert_trusts(self.operator.root, netns=self.another("after"))


class Page(Tokens):
    """docs/ca.md's example, with the folders of the test in the place of the machine's, and another user."""

    def make_daemon(self):
        self.folder = support.LAB.path(f"ca-page-{time.monotonic_ns()}")
        os.makedirs(self.folder)
        self.token = Token(self.folder)
        self.operator = type("Operator", (), {"root": self.folder + "/root.pem"})
        page = os.path.join(support.ROOT, "docs/ca.md")
        section = next(s for s in read(page).split("\n## ") if s.startswith("A key in a token"))
        script, = re.findall(r"(?ms)^```sh\n(.*?)^```$", section)
        config = re.search(r"(?ms)^```yaml\n(.*?)^```$", section)[1]
        os.unlink(self.token.pin)
        r = subprocess.run(["sh", "-ec", self.moved(script)], cwd=self.folder, env=self.token.env, capture_output=True, text=True)
        self.assertEqual(r.returncode, 0, r)
        tree = yaml.safe_load(self.moved(config))
        tree["ca"]["token"].update(user=USER, environment={"SOFTHSM2_CONF": self.token.conf})
        self.assertEqual(stat.S_IMODE(os.stat(tree["ca"]["token"]["pin"].removeprefix("file:")).st_mode), 0o600)
        return Daemon(config=json.dumps(tree)[1:-1] + "\n")

    def moved(self, text):
        for there, here in (("/etc/vethguard", self.folder), ("/var/lib/softhsm/tokens", self.token.tokens), ("_vethguard-token", USER),
                            ("/usr/lib/softhsm/libsofthsm2.so", module())):
            self.assertIn(there, text + "_vethguard-token")
            text = text.replace(there, here)
        return text

    def test_it_signs(self):
        self.assert_trusts(self.operator.root)
        self.assertEqual(self.current()["subject"], "CN=Node 7")


class Broken(Tokens):
    """A module between vethguard-token and SoftHSM's, which breaks in the ways of SPY_MODE."""

    def make_daemon(self):
        if not shutil.which("cc"):
            self.skipTest("there is no compiler")
        return super().make_daemon()

    def configuration(self, uri=f"pkcs11:token={LABEL};object=node", **more):
        self.spied = os.path.join(self.folder, "spied")
        self.mode, self.log = os.path.join(self.spied, "mode"), os.path.join(self.spied, "log")
        library = os.path.join(self.folder, "spy.so")
        if not os.path.exists(library):
            os.mkdir(self.spied)
            os.chown(self.spied, *pwd.getpwnam(USER)[2:4])
            sh("cc", "-D_GNU_SOURCE", "-shared", "-fPIC", "-I" + os.path.join(support.ROOT, "src"), "-o", library,
               os.path.join(support.ROOT, "tests/integration/token_module.c"))
            self.set_mode("none")
        variables = {"SOFTHSM2_CONF": self.token.conf, "REAL_MODULE": module(), "SPY_MODE": self.mode, "SPY_LOG": self.log,
                     "SPY_OUTSIDE": "/tmp/vethguard-outside", "SPY_SECRET": self.operator.key}
        return super().configuration(uri, module=library, environment=variables, writable=[self.token.tokens, self.spied], **more)

    def set_mode(self, mode):
        with open(self.mode, "w") as f:
            f.write(mode)

    def logins(self):
        return read(self.log).splitlines().count("login 0") if os.path.exists(self.log) else 0

    def restart(self, mode):
        """Another process, under a module in that mode."""
        self.set_mode(mode)
        os.kill(self.process(), signal.SIGKILL)

    def mend(self):
        self.set_mode("none")
        self.assertEqual(self.daemon.cli("reload").returncode, 0)
        self.assert_usable()
        self.assert_trusts(self.operator.root)
        self.assert_trusts(self.operator.root, netns=self.another("mended"))

    def test_no_login_at_risk(self):
        for mode, text in (("final-try", "one attempt for its PIN left"), ("locked", "its PIN is locked"), ("pad", "its own keypad")):
            before = self.logins()
            self.restart(mode)
            self.assert_note(text)
            self.assert_refused(text)
            time.sleep(1.5)  # another process looks again after a second
            self.assertEqual(self.logins(), before, mode)
            self.mend()
            self.assertEqual(self.logins(), before + 1)

    def test_a_login_without_an_answer(self):
        for mode, text in (("crash-login", "signal 6"), ("hang-login", "20 seconds")):
            before = self.logins()
            self.restart(mode)
            self.assert_note(text)
            self.assertEqual(self.logins(), before + 1)
            self.assert_refused(text)
            time.sleep(3)
            self.assertEqual(self.logins(), before + 1, mode)
            self.assertIsNone(self.process())
            self.mend()

    def test_signatures(self):
        """Waiting callers get an error; another process follows by itself, and its signatures are right."""
        for mode, text in (("garbage", "is not that of the certificate"), ("short", "is not that of the certificate"), ("removed", "the token was removed"),
                           ("long", "its function failed"), ("crash-sign", "the token's process has ended"), ("hang-sign", "not signed within 5 seconds")):
            self.set_mode(mode)
            netns = support.netns(self, f"r{time.monotonic_ns()}")
            errors = []
            for _ in range(12):  # workers of the pool have their certificates already
                r = self.daemon.cli("attach", "--name", netns, "--netns", f"/run/netns/{netns}", "--policy", self.policy)
                errors.append(r.stderr)
                if text in r.stderr:
                    break
                if r.returncode == 0:
                    self.assertEqual(self.daemon.cli("detach", netns).returncode, 0)
            self.assertTrue(text in errors[-1] or text in self.daemon.stderr(), (mode, errors, self.daemon.stderr()[-2000:]))
            self.assert_trusts(self.operator.root)
            self.set_mode("none")
            self.assertEqual(self.daemon.cli("reload").returncode, 0)
            self.assert_usable()
            self.assert_trusts(self.operator.root, netns=self.another("after"))

    def test_what_a_module_may_not(self):
        self.restart("probe")
        self.assertTrue(wait_until(lambda: os.path.exists(self.log) and "root " in read(self.log), 10 * SLOW))
        got = dict(line.split() for line in read(self.log).splitlines() if not line.startswith("login"))
        self.assertEqual({k: v for k, v in got.items() if v == "0"}, {}, got)
        self.assertEqual(set(got), {"ip", "ipv6", "netlink", "packet", "vsock", "write", "root.key", "memory", "exec", "fork", "ptrace", "kill",
                                    "root"})
        self.assertFalse(os.path.exists("/tmp/vethguard-outside"))
        self.mend()


if __name__ == "__main__":
    unittest.main()
