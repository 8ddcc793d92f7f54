# SPDX-License-Identifier: Apache-2.0
"""The life of the CAs that sandboxes trust: an operator's own root, requests and certificates, rotation, with real clients."""
import json
import os
import shutil
import signal
import subprocess
import threading
import time

import support
from daemon import Daemon
from daemon_case import PROXY, Attached
from support import SLOW, policy, wait_until

READS = "{to: 'https://www.lab.test', methods: [GET]}"
NODE = "basicConstraints=critical,CA:TRUE,pathlen:1\nkeyUsage=critical,keyCertSign,cRLSign\nsubjectKeyIdentifier=hash\n" \
       "authorityKeyIdentifier=keyid\n"


def openssl(*argv, **kw):
    r = subprocess.run(["openssl", *argv], capture_output=True, text=True, **kw)
    assert r.returncode == 0, (argv, r.stderr)
    return r.stdout


class Operator:
    """An operator with a root whose key is nowhere near the daemon."""

    def __init__(self, folder, name, algorithm=("EC", "-pkeyopt", "ec_paramgen_curve:P-256"), days=3650, pathlen=2):
        self.folder, self.name = folder, name
        self.key, self.root = self.path("key"), self.path("pem")
        openssl("genpkey", "-algorithm", *algorithm, "-out", self.key)
        os.chmod(self.key, 0o600)
        openssl("req", "-x509", "-new", "-key", self.key, "-subj", f"/CN=Operator {name}", "-days", str(days), "-out", self.root,
                "-addext", f"basicConstraints=critical,CA:TRUE,pathlen:{pathlen}",
                "-addext", "keyUsage=critical,keyCertSign,cRLSign")

    def path(self, end):
        return os.path.join(self.folder, f"{self.name}.{end}")

    def sign(self, csr, out, extensions=NODE, days=365, more=()):
        """Signs a request as people do it with openssl; the certificate's path."""
        request, cert, ext = self.path(f"{out}.csr"), self.path(f"{out}.crt"), self.path(f"{out}.ext")
        for name, text in ((request, csr), (ext, extensions)):
            with open(name, "w") as f:
                f.write(text)
        openssl("x509", "-req", "-in", request, "-CA", self.root, "-CAkey", self.key, "-CAcreateserial", "-days", str(days),
                "-extfile", ext, "-out", cert, *more)
        return cert


def read(path):
    with open(path) as f:
        return f.read()


class Life(Attached):
    def make_daemon(self):
        self.folder = support.LAB.path(f"ca-{time.monotonic_ns()}")
        os.makedirs(self.folder)
        return Daemon(config=self.configuration())

    def configuration(self):
        return ""

    def write(self, *_rules):
        return support.LAB.write(f"ca-{time.monotonic_ns()}.yaml", policy(READS))

    # What clients see.

    def chain(self, netns=None):
        """The certificates that a client gets, as PEM blocks, the leaf first."""
        r = subprocess.run(["ip", "netns", "exec", netns or self.name, "openssl", "s_client", "-proxy", "198.18.0.1:3128", "-connect",
                            "www.lab.test:443", "-servername", "www.lab.test", "-showcerts"], capture_output=True, text=True,
                           stdin=subprocess.DEVNULL, timeout=30 * SLOW)
        blocks = r.stdout.split("-----BEGIN CERTIFICATE-----")[1:]
        return ["-----BEGIN CERTIFICATE-----" + b.split("-----END")[0] + "-----END CERTIFICATE-----\n" for b in blocks]

    def get(self, trusted, netns=None, seconds=10):
        """Exit status of curl that trusts nothing else, and what it printed."""
        r = subprocess.run(["ip", "netns", "exec", netns or self.name, "curl", "-sS", "-m", str(seconds), "--cacert", trusted, "-x",
                            PROXY if netns in (None, self.name) else self.proxy_of(netns), "-o", "/dev/null", "-w", "%{http_code}",
                            "https://www.lab.test/"], capture_output=True, text=True)
        return r.returncode, r.stdout + r.stderr

    def proxy_of(self, netns):
        return self.daemon.call("GET", f"/v1/sandboxes/{netns}/env")[2]["proxy"]

    def assert_trusts(self, trusted, **kw):
        if not wait_until(lambda: self.get(trusted, **kw) == (0, "200"), 5 * SLOW):
            names = [openssl("x509", "-in", self.file("c.pem", c), "-noout", "-subject", "-issuer") for c in self.chain()]
            self.fail(f"{self.get(trusted, **kw)} {names} {self.status()} {self.daemon.stderr()}")

    def assert_not_trusts(self, trusted, **kw):
        rc, text = self.get(trusted, **kw)
        self.assertEqual(rc, 60, text)  # CURLE_PEER_FAILED_VERIFICATION

    def verify(self, root, chain, *more):
        """openssl's strict verification with that root and nothing else."""
        leaf, others = self.file("leaf.pem", chain[0]), self.file("others.pem", "".join(chain[1:]))
        return subprocess.run(["openssl", "verify", "-x509_strict", "-no-CApath", "-no-CAstore", "-CAfile", root, "-untrusted", others,
                               "-purpose", "sslserver", *more, leaf], capture_output=True, text=True)

    def file(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, "w") as f:
            f.write(text)
        return path

    # The daemon.

    def run_ca(self, *argv, ok=True):
        r = self.daemon.cli("ca", *argv)
        if ok:
            self.assertEqual(r.returncode, 0, r.stderr)
        return r

    def status(self):
        return json.loads(self.run_ca("show", "--json").stdout)

    def current(self):
        return self.status()["cas"][0]

    def another(self, name):
        """A second sandbox; its namespace's name."""
        netns = support.netns(self, f"{name}{time.monotonic_ns()}")
        self.daemon.attach(name=netns, netns=f"/run/netns/{netns}", policy=self.policy)
        return netns

    def refused(self, what, *argv):
        """The change is refused with a text that holds `what`, and nothing changes."""
        before = self.status()["cas"]
        r = self.run_ca(*argv, ok=False)
        self.assertEqual(r.returncode, 1, r)
        self.assertIn(what, r.stderr)
        self.assertEqual(self.status()["cas"], before)

    def kill_keeper(self):
        pid = self.pid("keeper")
        os.kill(pid, signal.SIGKILL)
        self.assertTrue(wait_until(lambda: self.daemon.call("GET", "/v1/status")[2]["processes"]["keeper"] not in (None, 0, pid),
                                   5 * SLOW))


class Own(Life):
    def test_show_and_export(self):
        self.assert_trusts(self.ca_file())
        status = self.status()
        one = status["cas"][0]
        self.assertEqual((len(status["cas"]), one["origin"], one["current"], one["sandboxes"], one["retires"]),
                         (1, "own", True, 1, None), status)
        self.assertEqual(status["trusted_pem"], read(os.path.join(self.daemon.data, "ca", "root.pem")))
        self.assertEqual(self.run_ca("export").stdout, status["trusted_pem"])
        shown = openssl("x509", "-in", self.ca_file(), "-noout", "-fingerprint", "-sha256").split("=")[1].strip()
        self.assertEqual(shown.replace(":", "").lower(), one["fingerprint"])
        self.assertIn("current: new sandboxes get it", self.run_ca("show").stdout)
        for off in (-24 * 3600, 0, 24 * 3600):  # clients whose clock is off by a day
            r = self.verify(self.ca_file(), self.chain(), "-attime", str(int(time.time()) + off))
            self.assertEqual(r.returncode, 0, r)

    def test_clients_whose_clock_is_off_by_a_day(self):
        """curl and Python accept leaves with a wrong clock (libfaketime): up to two days less a minute. A clock three days slow is refused."""
        if not shutil.which("faketime"):
            self.skipTest("faketime is not installed")
        trusted = self.ca_file()
        code = ("import sys, urllib.request, ssl\nh = urllib.request.build_opener(urllib.request.ProxyHandler({'https': sys.argv[1]}), "
                "urllib.request.HTTPSHandler(context=ssl.create_default_context(cafile=sys.argv[2])))\n"
                "try: print(h.open('https://www.lab.test/').status)\nexcept OSError as e: print(e)")
        clients = (["curl", "-sS", "--cacert", trusted, "-x", PROXY, "-o", "/dev/null", "-w", "%{http_code}\n", "https://www.lab.test/"],
                   ["/usr/bin/python3", "-c", code, PROXY, trusted])
        for off in ("-24h", "+24h", "-2879m", "-72h"):
            for client in clients:
                r = subprocess.run(["ip", "netns", "exec", self.name, "faketime", "-f", off, *client], capture_output=True, text=True, timeout=30 * SLOW)
                with self.subTest(off=off, client=client[0]):
                    self.assertEqual(r.stdout.strip().endswith("200"), off != "-72h", r)
                    self.assertEqual("not yet valid" in r.stdout + r.stderr, off == "-72h", r)

    def ca_file(self):
        return self.file("export.pem", self.run_ca("export").stdout)

    def test_rotation_while_connections_run(self):
        old = self.file("old.pem", self.run_ca("export").stdout)
        self.assert_trusts(old)
        stop, failures, done = threading.Event(), [], []

        def ask():
            while not stop.is_set():
                result = self.get(old)
                (done if result == (0, "200") else failures).append(result)
        clients = [threading.Thread(target=ask) for _ in range(3)]
        for c in clients:
            c.start()
        try:
            self.assertTrue(wait_until(lambda: len(done) > 5, 10 * SLOW))
            self.run_ca("rotate", "--overlap", "2h")
            n = len(done)
            self.assertTrue(wait_until(lambda: len(done) > n + 10, 10 * SLOW))
        finally:
            stop.set()
            for c in clients:
                c.join()
        self.assertEqual(failures, [])
        cas = self.status()["cas"]
        self.assertEqual([c["sandboxes"] for c in cas], [0, 1], cas)
        # Old and new are exported, written to the old sandbox's env and given to new sandboxes.
        both = self.file("both.pem", self.run_ca("export").stdout)
        self.assertEqual(read(both).count("BEGIN CERTIFICATE"), 2)
        self.assertEqual(self.daemon.cli("env", "one", "--format", "pem").stdout.count("BEGIN CERTIFICATE"), 2)
        new = self.file("new.pem", read(both).replace(read(old), ""))
        second = self.another("second")
        self.assertEqual([c["sandboxes"] for c in self.status()["cas"]], [1, 1])
        self.assert_trusts(new, netns=second)
        self.assert_not_trusts(old, netns=second)
        # The old sandbox stays with what it knows, whatever dies.
        self.assert_trusts(old)
        os.kill(self.pid("worker"), signal.SIGKILL)
        self.assert_trusts(old)
        self.kill_keeper()
        self.assert_trusts(old)
        os.kill(self.pid("worker"), signal.SIGKILL)
        self.assert_trusts(old)
        self.assert_trusts(new, netns=second)
        self.daemon.kill()
        self.daemon.start()
        self.assert_trusts(old)
        self.assert_trusts(new, netns=second)
        self.assertEqual([c["sandboxes"] for c in self.status()["cas"]], [1, 1])
        event = self.daemon.event(**{"api.operation": "ca.rotate"})
        self.assertIsNotNone(event, "no audit event")

    def test_the_end_of_an_overlap(self):
        old = self.file("old.pem", self.run_ca("export").stdout)
        status, _, answer = self.daemon.call("POST", "/v1/ca/rotate", {"overlap_s": 1})
        self.assertEqual((status, len(answer["cas"])), (200, 2), answer)
        self.assert_trusts(old)
        time.sleep(1.1)
        self.assertEqual(self.daemon.call("POST", "/v1/reload")[0], 200)  # looks at what is due, as the hourly timer does
        self.assertTrue(wait_until(lambda: len(self.status()["cas"]) == 1, 5 * SLOW), self.status())
        new = self.file("new.pem", self.run_ca("export").stdout)
        self.assertNotEqual(read(new), read(old))
        self.assert_trusts(new)
        self.assert_not_trusts(old)
        self.assertEqual(self.current()["sandboxes"], 1)

    def test_too_many_rotations(self):
        for _ in range(3):
            self.run_ca("rotate")
        self.refused("too many earlier roots", "rotate")
        self.assertEqual(self.status()["trusted_pem"].count("BEGIN CERTIFICATE"), 4)

    def beside(self, name):
        return os.path.join(self.daemon.data, "ca", name)

    def test_no_file_can_be_made(self):
        """As on a full disk: nothing changes, the error says so, and another keeper serves all the same."""
        os.mkdir(self.beside("root.key.next"))
        trusted = self.ca_file()
        self.refused("a new file cannot be made", "rotate")
        self.kill_keeper()
        self.assertTrue(wait_until(lambda: "no file can be made beside root.key" in self.daemon.stderr(), 5 * SLOW))
        self.assert_trusts(trusted)
        self.assert_trusts(trusted, netns=self.another("second"))
        self.daemon.stop()
        self.daemon.start()
        self.assert_trusts(trusted)
        with open(self.daemon.config, "w") as f:  # a change that nobody asks for
            f.write(support.LAB.config(f"ca: {{root: {self.operator_files()[0]}, key: 'file:{self.operator_files()[1]}'}}\n"))
        self.assertEqual(self.daemon.call("POST", "/v1/reload")[0], 200)
        self.assertTrue(wait_until(lambda: "the file of the CAs cannot be written" in self.daemon.stderr(), 5 * SLOW), self.status())
        self.assertEqual(self.current()["origin"], "own")
        self.assert_trusts(trusted)
        os.rmdir(self.beside("root.key.next"))
        self.assertEqual(self.daemon.call("POST", "/v1/reload")[0], 200)
        self.assertTrue(wait_until(lambda: self.current()["origin"] == "configured", 5 * SLOW), self.status())

    def operator_files(self):
        self.operator = getattr(self, "operator", None) or Operator(self.folder, "fleet")
        return self.operator.root, self.operator.key

    def test_a_file_that_cannot_be_replaced(self):
        """The file that was to replace it holds a key, and must not stay."""
        os.rename(self.beside("root.key"), self.beside("aside"))
        os.mkdir(self.beside("root.key"))
        self.refused("cannot be replaced", "rotate")
        self.assertFalse(os.path.lexists(self.beside("root.key.next")))
        os.rmdir(self.beside("root.key"))
        os.rename(self.beside("aside"), self.beside("root.key"))
        self.run_ca("rotate")

    def test_a_request_that_waits_is_not_what_rotate_prints(self):
        self.run_ca("csr", "--name", "node-7")
        r = self.run_ca("rotate")
        self.assertIn("current: new sandboxes get it", r.stdout)
        self.assertIn("A key waits for its certificate", r.stdout)
        self.assertNotIn("REQUEST", r.stdout)
        self.assertEqual(len(self.status()["cas"]), 2)

    def test_words_that_are_refused(self):
        pem = self.file("root.pem", self.run_ca("export").stdout)
        for argv, what in ((("csr", "--name", b"\xff"), "--name \\xff: it is not UTF-8"), (("csr", "--name", ""), "--name has 1 to 64 bytes"),
                           (("csr", "--name", "x" * 65), "--name has 1 to 64 bytes"), (("rotate", "--overlap", "367d"), "at most 366d"),
                           (("install",), "which file? Name the certificate's file (PEM)"), (("install", pem, pem), "too many arguments"),
                           (("install", self.file("none.pem", "")), "it is empty"), (("install", "/nowhere.pem"), "No such file"),
                           (("install", self.file("large.pem", "x" * 32769)), "too large for certificates"),
                           (("install", self.file("nul.pem", "x\0")), "it is not PEM"),
                           (("install", pem, "--root", self.folder), "Is a directory")):
            with self.subTest(argv=argv):
                r = self.run_ca(*argv, ok=False)
                self.assertEqual((r.returncode, what in r.stderr, r.stdout), (2, True, ""), r)
        self.assertIsNone(self.status()["request_pem"])

    def test_a_full_disk_is_no_request(self):
        """The operator who has it signed must not get half of it."""
        with open("/dev/full", "w") as full:
            r = subprocess.run([support.VETHGUARD, "ca", "csr", "--socket", self.daemon.socket], stdout=full, stderr=subprocess.PIPE, text=True)
        self.assertEqual((r.returncode, "No space left" in r.stderr), (2, True), r)

    def test_only_root_changes_it(self):
        sock = self.daemon.socket
        r = subprocess.run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "curl", "-sS", "--unix-socket", sock, "-X",
                            "POST", "http://localhost/v1/ca/rotate"], capture_output=True, text=True)
        self.assertNotEqual((r.returncode, "200" in r.stdout), (0, True))
        self.assertEqual(len(self.status()["cas"]), 1)

    def test_bad_calls(self):
        for path, body, status in (("/v1/ca/csr", {"nam": "x"}, 422), ("/v1/ca/csr", {"name": "x" * 65}, 422),
                                   ("/v1/ca/install", {}, 422), ("/v1/ca/install", {"certificate": "x"}, 422),
                                   ("/v1/ca/rotate", {"overlap_s": 0}, 422), ("/v1/ca/rotate", {"overlap_s": "1"}, 422),
                                   ("/v1/ca/rotate", {"overlap_s": 1 << 40}, 422)):
            self.assertEqual(self.daemon.call("POST", path, body)[0], status, (path, body))
        self.assertEqual(self.daemon.call("DELETE", "/v1/ca")[0], 405)
        self.assertEqual(len(self.status()["cas"]), 1)


class Installed(Life):
    def setUp(self):
        super().setUp()
        self.operator = Operator(self.folder, "fleet")

    def csr(self):
        text = self.run_ca("csr", "--name", "node-7").stdout
        self.assertIn("BEGIN CERTIFICATE REQUEST", text)
        return text

    def test_an_intermediate_of_the_operator(self):
        own = self.file("own.pem", self.run_ca("export").stdout)
        csr = self.csr()
        self.assertIn("CA:TRUE, pathlen:1", openssl("req", "-in", self.file("x.csr", csr), "-noout", "-text", "-verify"))
        cert = self.operator.sign(csr, "node")
        self.run_ca("install", cert, "--root", self.operator.root)
        one = self.current()
        self.assertEqual((one["origin"], one["subject"], one["root"]["subject"]), ("installed", "CN=node-7", "CN=Operator fleet"), one)
        second = self.another("second")
        self.assert_trusts(self.operator.root, netns=second)
        self.assert_trusts(own)  # what it knows
        self.assert_not_trusts(own, netns=second)
        # The keys: nothing under the daemon's directory but the keeper's file, and the root's key nowhere.
        self.assertEqual(sorted(os.listdir(os.path.join(self.daemon.data, "ca"))), ["root.key", "root.pem"])
        self.assertEqual(os.stat(os.path.join(self.daemon.data, "ca", "root.key")).st_mode & 0o777, 0o600)
        for restart in (self.kill_keeper, self.restart):
            restart()
            self.assert_trusts(self.operator.root, netns=second)
            self.assert_trusts(own)
        self.assertEqual([c["sandboxes"] for c in self.status()["cas"]], [1, 1])

    def restart(self):
        self.daemon.stop()
        self.daemon.start()

    def test_the_chain_is_strictly_right(self):
        self.run_ca("install", self.operator.sign(self.csr(), "node"), "--root", self.operator.root)
        self.daemon.call("DELETE", "/v1/sandboxes/one")
        self.attach()
        self.assert_trusts(self.operator.root)
        chain = self.chain()
        self.assertEqual(len(chain), 3, chain)
        self.assertEqual(self.verify(self.operator.root, chain).returncode, 0, self.verify(self.operator.root, chain))
        day = 24 * 3600
        for off in (-day, day):
            at = int(time.time()) + off
            r = self.verify(self.operator.root, chain, "-attime", str(at))
            # the operator's own certificates are from just now: a clock that is behind by a day refuses those, and says so
            self.assertEqual(r.returncode == 0, off > 0, r)
        for i in (0, 1):
            text = openssl("x509", "-in", self.file("c.pem", chain[i]), "-noout", "-checkend", str(2 * day))
            self.assertIn("will not expire", text)

    def test_keeper_dies_between(self):
        csr = self.csr()
        self.kill_keeper()
        self.assertEqual(wait_until(lambda: self.status()["request_pem"], 5 * SLOW), csr)
        cert = self.operator.sign(csr, "node")
        self.kill_keeper()
        wait_until(lambda: self.status()["request_pem"], 5 * SLOW)
        self.run_ca("install", cert, "--root", self.operator.root)
        self.kill_keeper()
        self.assertEqual(self.current()["origin"], "installed")
        self.assert_trusts(self.operator.root, netns=self.another("second"))

    def test_what_is_refused(self):
        self.refused("no key waits", "install", self.operator.root)
        csr = self.csr()
        root, sign = self.operator.root, self.operator.sign
        other = Operator(self.folder, "other")
        good = sign(csr, "good")
        self.refused("another key", "install", root, "--root", root)
        self.refused("is not a CA's", "install", sign(csr, "leaf", NODE.replace("TRUE,pathlen:1", "FALSE")), "--root", root)
        self.refused("pathlen 0", "install", sign(csr, "short", NODE.replace("pathlen:1", "pathlen:0")), "--root", root)
        self.refused("may not sign certificates", "install", sign(csr, "usage", NODE.replace("keyCertSign", "digitalSignature")), "--root", root)
        self.refused("the issuer of", "install", good, "--root", other.root)
        self.refused("no root is known", "install", good)
        self.refused("which is not the root given", "install", self.file("whole.pem", read(good) + read(root)), "--root", other.root)
        faked = Operator(self.folder, "fleet2")
        faked.name = "fleet"
        openssl("req", "-x509", "-new", "-key", faked.key, "-subj", "/CN=Operator fleet", "-days", "9", "-out", faked.root)
        self.refused("the issuer of", "install", good, "--root", faked.root)
        self.refused("is damaged", "install", self.file("bad.pem", read(good).replace("\nMII", "\nMIJ", 1)), "--root", root)
        self.refused("without its end", "install", self.file("cut.pem", read(good)[:-30]), "--root", root)
        self.refused("no certificate is in it", "install", self.file("none.pem", "nothing\n"), "--root", root)
        self.refused("this is the request", "install", self.file("csr.pem", csr), "--root", root)
        self.refused("private key", "install", self.file("key.pem", read(good) + read(self.operator.key)), "--root", root)
        self.refused("a client that trusts the root refuses", "install",
                     sign(csr, "eku", NODE + "extendedKeyUsage=critical,clientAuth\n"), "--root", root)
        self.assertEqual(self.run_ca("install", os.path.join(self.folder, "missing"), ok=False).returncode, 2)
        self.run_ca("install", good, "--root", root)
        self.refused("no key waits", "install", good, "--root", root)

    def test_name_constraints(self):
        cert = self.operator.sign(self.csr(), "narrow", NODE + "nameConstraints=critical,permitted;DNS:lab.test\n")
        self.run_ca("install", cert, "--root", self.operator.root)
        self.assertIn("name constraints", " ".join(self.status()["notes"]))
        self.assert_trusts(self.operator.root, netns=self.another("second"))

    def test_time_of_the_certificate(self):
        csr = self.csr()
        for days, what in ((-1, "has ended at"), (None, "is valid only from")):
            cert = self.dated(csr, days)
            self.refused(what, "install", cert, "--root", self.operator.root)

    def dated(self, csr, days):
        """A certificate that has ended, or (None) has not begun: `openssl ca` takes dates."""
        folder = os.path.join(self.folder, f"db{time.monotonic_ns()}")
        os.makedirs(folder)
        for name, text in (("index.txt", ""), ("serial", "01\n"), ("n.csr", csr), ("n.ext", NODE),
                           ("ca.cnf", f"[ca]\ndefault_ca=d\n[d]\ndatabase={folder}/index.txt\nserial={folder}/serial\n"
                                      f"new_certs_dir={folder}\ndefault_md=sha256\npolicy=p\n[p]\ncommonName=supplied\n")):
            with open(os.path.join(folder, name), "w") as f:
                f.write(text)
        begin, end = ("20200101000000Z", "20210101000000Z") if days else ("20900101000000Z", "20910101000000Z")
        cert = os.path.join(folder, "n.crt")
        openssl("ca", "-batch", "-config", f"{folder}/ca.cnf", "-cert", self.operator.root, "-keyfile", self.operator.key, "-in",
                f"{folder}/n.csr", "-out", cert, "-extfile", f"{folder}/n.ext", "-startdate", begin, "-enddate", end, "-notext")
        return cert

    def test_rotation_of_an_intermediate(self):
        self.run_ca("install", self.operator.sign(self.csr(), "one"), "--root", self.operator.root)
        second = self.another("second")
        self.assert_trusts(self.operator.root, netns=second)
        first = self.current()["fingerprint"]
        r = self.run_ca("rotate")
        self.assertEqual(self.current()["fingerprint"], first)
        self.run_ca("install", self.operator.sign(r.stdout, "two"), "--root", self.operator.root)
        self.assertNotEqual(self.current()["fingerprint"], first)
        self.assert_trusts(self.operator.root, netns=second)  # the same root: nothing to change inside
        self.assertTrue(wait_until(lambda: self.current()["sandboxes"] == 1, 5 * SLOW), self.status())
        self.assertEqual(self.run_ca("export").stdout.count("BEGIN CERTIFICATE"), 2)  # the daemon's own is retiring

    def test_an_intermediate_below_another(self):
        self.operator = Operator(self.folder, "fleet", pathlen=3)
        key = self.operator.path("region.key")
        openssl("req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-384", "-nodes", "-keyout", key, "-subj", "/CN=region",
                "-out", self.operator.path("region.req"))
        region = self.operator.sign(read(self.operator.path("region.req")), "region", NODE.replace("pathlen:1", "pathlen:2"))
        below = Operator(self.folder, "region")
        below.key, below.root = key, region
        cert = below.sign(self.csr(), "node")
        self.refused("is not there", "install", cert, "--root", self.operator.root)
        self.run_ca("install", self.file("chain.pem", read(cert) + read(region)), "--root", self.operator.root)
        second = self.another("second")
        self.assert_trusts(self.operator.root, netns=second)


class Configured(Life):
    """The operator's root is there before the daemon starts, with its key or without."""
    ALGORITHM = ("EC", "-pkeyopt", "ec_paramgen_curve:P-256")

    def configuration(self):
        self.operator = Operator(self.folder, "fleet", self.ALGORITHM)
        return f"ca: {{root: {self.operator.root}, key: 'file:{self.operator.key}'}}\n"

    def test_from_the_first_sandbox_on(self):
        status = self.status()
        self.assertEqual((len(status["cas"]), self.current()["origin"], self.current()["sandboxes"]), (1, "configured", 1), status)
        self.assertEqual(status["trusted_pem"], read(self.operator.root))
        self.assert_trusts(self.operator.root)
        self.kill_keeper()
        self.assert_trusts(self.operator.root)
        os.kill(self.pid("worker"), signal.SIGKILL)
        self.assert_trusts(self.operator.root)
        self.daemon.stop()
        self.daemon.start()
        self.assert_trusts(self.operator.root)
        self.assertEqual(self.status()["trusted_pem"], read(self.operator.root))
        before = self.chain()[1]
        self.run_ca("rotate")
        self.assertTrue(wait_until(lambda: self.chain()[1] != before, 5 * SLOW))
        self.assert_trusts(self.operator.root)
        key = read(self.operator.key).encode()
        for folder, _, names in os.walk(self.daemon.data):
            for name in names:
                path = os.path.join(folder, name)
                if os.path.isfile(path):
                    with open(path, "rb") as f:
                        self.assertNotIn(key[60:120], f.read(), path)

    def test_files_that_break(self):
        good = read(self.operator.key)
        other = Operator(self.folder, "other")
        for text, what in ((read(other.key), "not that of the certificate"), ("x", "no private key"), ("", "no private key"),
                           (good.replace("PRIVATE", "ENCRYPTED PRIVATE"), "is encrypted"), (good[:60] + "!" + good[61:], "damaged")):
            self.file("fleet.key", text)
            self.reload()
            self.assertIn(what, " ".join(self.status()["notes"]))
            self.assert_trusts(self.operator.root)  # what was read before goes on
            self.assertTrue(self.status()["usable"])
        self.file("fleet.key", good)
        os.chmod(self.operator.key, 0o644)
        self.reload()
        self.assertIn("others can read", " ".join(self.status()["notes"]))
        # A keeper that has never read it signs nothing new, and what runs goes on.
        self.kill_keeper()
        self.assertTrue(wait_until(lambda: not self.status()["usable"], 5 * SLOW), self.status())
        self.assert_trusts(self.operator.root)
        netns = support.netns(self, f"second{time.monotonic_ns()}")
        status, _, answer = self.daemon.call("POST", "/v1/sandboxes",
                                             {"name": netns, "netns": f"/run/netns/{netns}", "policy": self.policy})
        self.assertGreaterEqual(status, 400, answer)
        self.assertIn("others can read", str(answer))
        os.chmod(self.operator.key, 0o600)
        self.reload()
        self.assertTrue(wait_until(lambda: self.status()["usable"], 5 * SLOW), self.status())
        self.assert_trusts(self.operator.root)
        self.assert_trusts(self.operator.root, netns=self.another("third"))

    def reload(self):
        self.assertEqual(self.daemon.call("POST", "/v1/reload")[0], 200)
        self.status()  # answered after the check

    def test_another_root_with_overlap(self):
        old = self.file("old.pem", read(self.operator.root))
        after = Operator(self.folder, "after")
        self.file("fleet.pem", read(old) + read(after.root))  # first both are known
        self.reload()
        self.assertTrue(wait_until(lambda: self.status()["trusted_pem"] == read(self.operator.root), 5 * SLOW), self.status())
        self.assertEqual(self.daemon.cli("env", "one", "--format", "pem").stdout, read(self.operator.root))
        self.assertEqual(self.current()["root"]["subject"], "CN=Operator fleet")
        self.assert_trusts(old)
        text = read(self.daemon.config).replace(self.operator.key, after.key)
        both = self.file("fleet.pem", read(after.root) + read(old))
        with open(self.daemon.config, "w") as f:
            f.write(text)
        self.reload()
        self.assertTrue(wait_until(lambda: self.current()["root"]["subject"] == "CN=Operator after", 5 * SLOW), self.status())
        self.assertEqual(self.status()["trusted_pem"], read(both))
        self.assert_trusts(after.root, netns=self.another("second"))
        self.assert_trusts(after.root)

    def test_root_without_a_key(self):
        """The key is taken out of the configuration: nothing new until a certificate is installed; what runs goes on."""
        with open(self.daemon.config, "w") as f:
            f.write(support.LAB.config(f"ca: {{root: {self.operator.root}}}\n"))
        self.reload()
        self.assertTrue(wait_until(lambda: not self.status()["usable"], 5 * SLOW), self.status())
        self.assert_trusts(self.operator.root)
        netns = support.netns(self, f"second{time.monotonic_ns()}")
        request = {"name": netns, "netns": f"/run/netns/{netns}", "policy": self.policy}
        self.assertGreaterEqual(self.daemon.call("POST", "/v1/sandboxes", request)[0], 400)
        self.run_ca("install", self.operator.sign(self.run_ca("csr").stdout, "node"))
        # what was refused is taken away first (409 until then)
        self.assertTrue(wait_until(lambda: self.daemon.call("POST", "/v1/sandboxes", request)[0] == 201, 5 * SLOW))
        self.assert_trusts(self.operator.root, netns=netns)
        self.assert_trusts(self.operator.root)

    def test_removed_from_the_configuration(self):
        with open(self.daemon.config, "w") as f:
            f.write(support.LAB.config())
        self.reload()
        self.assertTrue(wait_until(lambda: self.current()["origin"] == "own", 5 * SLOW), self.status())
        self.assert_trusts(self.file("own.pem", self.run_ca("export").stdout), netns=self.another("second"))


class ConfiguredRsa(Configured):
    ALGORITHM = ("RSA", "-pkeyopt", "rsa_keygen_bits:3072")


class RootOnly(Life):
    """The root's key is not on the node: nothing is served before a certificate is installed."""

    def configuration(self):
        self.operator = Operator(self.folder, "fleet")
        return f"ca: {{root: {self.operator.root}}}\n"

    def attach(self, *a, **kw):
        return None if not a and not kw else super().attach(*a, **kw)

    def test_closed_until_installed(self):
        status, _, answer = self.daemon.call("POST", "/v1/sandboxes",
                                             {"name": "one", "netns": f"/run/netns/{self.name}", "policy": self.policy})
        self.assertGreaterEqual(status, 400)
        self.assertIn("vethguard ca csr", str(answer))
        self.assertFalse(self.status()["usable"])
        csr = self.run_ca("csr").stdout
        other = Operator(self.folder, "other")
        self.refused("not the one of the configuration", "install", other.sign(csr, "node"), "--root", other.root)
        self.run_ca("install", self.operator.sign(csr, "node"))
        self.assertEqual(self.status()["trusted_pem"], read(self.operator.root))
        self.assertTrue(wait_until(lambda: self.daemon.call("GET", "/v1/sandboxes/one")[0] == 404, 5 * SLOW))
        self.attach(name="one")
        self.assert_trusts(self.operator.root)


class Constrained(Life):
    """Each worker's intermediate may sign for what its policy names."""

    def configuration(self):
        return "ca: {constrain_names: true}\n"

    def write(self, *_rules):
        return self.allowing("https://www.lab.test", "https://*.real.lab.test")

    def allowing(self, *rules):
        return support.LAB.write(f"ca-{time.monotonic_ns()}.yaml", policy(*rules))

    def trusted(self):
        return self.daemon.data + "/ca/root.pem"

    def host(self, url, proxy=False):
        """(curl's exit status, HTTP's), of a client that trusts the daemon's root alone, and knows of no proxy."""
        name = url.split("/")[2]
        question = b"\x12\x34\x01\0\0\1\0\0\0\0\0\0" + b"".join(
            bytes([len(p)]) + p for p in name.encode().split(b".")) + b"\0\0\1\0\1"
        ask = ("import socket\ns = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\ns.settimeout(5)\n"
               f"s.connect(('198.18.0.1', 53))\ns.send({question!r})\nprint(socket.inet_ntoa(s.recv(512)[-4:]))\n")
        way = ["-x", PROXY] if proxy else []
        if not proxy and not name[0].isdigit():
            address = support.sh("ip", "netns", "exec", self.name, "python3", "-c", ask).strip()
            way = ["--resolve", f"{name}:443:{address}"]
        r = subprocess.run(["ip", "netns", "exec", self.name, "curl", "-sS", "-m", "10", "--cacert", self.trusted(), *way,
                            "-o", "/dev/null", "-w", "%{http_code} %{http_connect}", url], capture_output=True, text=True)
        return r.returncode, r.stdout, r.stderr

    def constraints(self, netns=None):
        return openssl("x509", "-in", self.file("constrained.pem", self.chain(netns)[1]), "-noout", "-ext", "nameConstraints")

    def test_each_by_its_policy(self):
        self.assertEqual(self.host("https://www.lab.test/")[:2], (0, "200 000"))
        text = self.constraints()
        self.assertIn("critical", text)
        for word in ("DNS:www.lab.test", "DNS:real.lab.test", "Excluded", "IP:0.0.0.0/0.0.0.0"):
            self.assertIn(word, text)
        # A name that the policy does not have: the certificate is refused, and the request with it.
        rc, out, err = self.host("https://api.lab.test/")
        self.assertEqual(rc, 60, (out, err))
        self.assertIn("permitted subtree violation", err)
        self.assertEqual(self.host("https://api.lab.test/", proxy=True)[:2], (56, "000 403"))  # CONNECT says why, as ever
        second = self.another("second")
        self.assertNotEqual(self.chain(second)[1], self.chain()[1])
        r = self.verify(self.trusted(), self.chain())
        self.assertEqual(r.returncode, 0, r.stderr)

    def test_another_policy(self):
        self.assertEqual(self.host("https://api.lab.test/")[0], 60)
        for rules in (("https://api.lab.test",), ("https://10.99.0.80",)):
            r = self.daemon.cli("reload", "one", "--policy", self.allowing(*rules))
            self.assertEqual(r.returncode, 0, r.stderr)
            self.assertTrue(wait_until(lambda rules=rules: self.host(rules[0] + "/")[0] == 0, 5 * SLOW), self.host(rules[0] + "/"))
            self.assertEqual(self.host("https://www.lab.test/")[0], 60)

    def test_roles_die(self):
        before = self.chain()[1]
        os.kill(self.pid("worker"), signal.SIGKILL)
        self.assertTrue(wait_until(lambda: self.host("https://www.lab.test/")[0] == 0, 5 * SLOW))
        self.assertNotEqual(self.chain()[1], before)
        self.assertEqual(self.host("https://api.lab.test/")[0], 60)
        self.kill_keeper()
        # the next keeper may be given the CAs at the moment: the command says to try again then
        self.assertTrue(wait_until(lambda: self.run_ca("rotate", ok=False).returncode == 0, 10 * SLOW), self.daemon.stderr())
        self.daemon.stop()
        self.daemon.start()
        self.assertTrue(wait_until(lambda: self.host("https://www.lab.test/")[0] == 0, 5 * SLOW))
        self.assertEqual(self.host("https://api.lab.test/")[0], 60)

    def test_more_than_fits(self):
        many = self.allowing(*(f"https://host-of-some-length-{i}.lab.test" for i in range(60)))
        r = self.daemon.cli("reload", "one", "--policy", many)
        self.assertNotEqual(r.returncode, 0)
        self.assertIn("more than a certificate can be limited to", r.stderr)
        self.assertEqual(self.host("https://www.lab.test/")[0], 0)

    def test_what_observes_is_not_limited(self):
        r = self.daemon.cli("reload", "one", "--policy", support.LAB.write(
            f"ca-{time.monotonic_ns()}.yaml", policy("https://www.lab.test").replace("vethguard: 1", "vethguard: 1\nmode: observe")))
        self.assertEqual(r.returncode, 0, r.stderr)
        self.assertTrue(wait_until(lambda: self.host("https://api.lab.test/")[0] == 0, 5 * SLOW), self.host("https://api.lab.test/"))


class RefusedAtStart(support.Case):
    def test_configurations(self):
        for text, what in (("ca: {key: 'file:/x'}", "root is missing"), ("ca: {root: /x, certificate: /y}", "key is missing"),
                           ("ca: {root: /x, key: 'pkcs11:token=a'}", "which key"), ("ca: {root: /x, key: 'pkcs11:token=a;object=b'}", "token is missing"), ("ca: {root: /x, key: /y}", "file:"),
                           ("ca: {constrain_names: maybe}", "constrain_names"), ("ca: {roots: /x}", "root"), ("ca: [1]", "mapping"), ("ca: {root: /x, overlap: 1s}", "overlap")):
            d = Daemon(config=text + "\n", start=False)
            r = subprocess.run([*d.argv(), "--check-config"], capture_output=True, text=True, timeout=20 * SLOW)
            self.assertEqual(r.returncode, 125, (text, r))
            self.assertIn(what, r.stderr)
