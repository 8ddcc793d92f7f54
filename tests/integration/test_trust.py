# SPDX-License-Identifier: Apache-2.0
"""The sandbox's CA in the stores that programs read: the user's NSS database, and the places of other distributions."""
import contextlib
import hashlib
import os
import shutil
import unittest
from unittest import mock

import support
from support import Case, policy, sh

API = policy("https://api.lab.test")
CERTUTIL = "/usr/bin/certutil"
UID, USER = 61234, "vgtester"
# Loaded by certutil where pkcs11.txt names it: what code of the user's can do there.
MODULE = """
#include <arpa/inet.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>
__attribute__((constructor)) static void ran(void)
{
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(80)};
	char request[] = "GET /from-module HTTP/1.0\\r\\nHost: plain.lab.test\\r\\n\\r\\n", answer[512] = "";
	FILE *out = fopen(OUT, "w");
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	inet_pton(AF_INET, "10.99.0.80", &to.sin_addr);
	if (connect(fd, (struct sockaddr *)&to, sizeof(to)) == 0 && write(fd, request, sizeof(request) - 1) > 0)
		(void)!read(fd, answer, sizeof(answer) - 1);
	if (out != NULL) {
		fprintf(out, "uid %d setuid %d shadow %d\\n%s\\n", getuid(), setuid(0), access("/etc/shadow", R_OK), answer);
		fclose(out);
	}
}
"""


@contextlib.contextmanager
def mounted(source, target):
    """source over target, in the lab's mount namespace alone."""
    sh("mount", "--bind", source, target)
    try:
        yield
    finally:
        sh("umount", target)


class Nss(Case):
    """A user of the lab's own, whose home has a database of NSS as Chromium keeps it."""

    @classmethod
    def setUpClass(cls):
        if not os.path.exists(CERTUTIL):
            raise unittest.SkipTest("no certutil here (package libnss3-tools)")
        cls.home = support.LAB.path("nss-home")
        cls.database = cls.home + "/.pki/nssdb"
        cls.mounts = contextlib.ExitStack()
        with open("/etc/passwd") as f:
            users = support.LAB.write("nss-passwd", f.read() + f"{USER}:x:{UID}:{UID}::{cls.home}:/bin/sh\n")
        cls.mounts.enter_context(mounted(users, "/etc/passwd"))

    @classmethod
    def tearDownClass(cls):
        cls.mounts.close()

    def setUp(self):
        super().setUp()
        shutil.rmtree(self.home, ignore_errors=True)
        os.makedirs(self.database, 0o700)
        self.certutil("-N", "--empty-password")
        self.certutil("-A", "-n", "of the user", "-t", "C,,", "-a", "-i", support.LAB.path("ca.pem"))
        sh("chown", "-R", f"{UID}:{UID}", self.home)

    def certutil(self, *argv):
        return sh(CERTUTIL, "-d", "sql:" + self.database, *argv)

    def print_of_database(self):
        """Name, owner, mode, time and content of everything in the user's home."""
        rows = []
        for folder, _, names in os.walk(self.home):
            for name in names:
                path = os.path.join(folder, name)
                st = os.lstat(path)
                content = os.readlink(path) if os.path.islink(path) else open(path, "rb").read().hex()
                rows.append((path, st.st_uid, st.st_mode, st.st_mtime_ns, hashlib.sha256(content.encode()).hexdigest()))
        return sorted(rows)

    def test_without_certutil_it_is_said_when_asked(self):
        with mounted(support.LAB.write("no-certutil", "", 0o644), CERTUTIL):
            quiet = self.run_vethguard(API, ["true"], user=USER)
            told = self.run_vethguard(API, ["true"], user=USER, options=["-v"])
        self.assertEqual((quiet.status, told.status), (0, 0), told)
        self.assertNotIn("certutil", quiet.stderr)
        self.assertIn("NSS database stays without the CA", told.stderr)
        self.assertIn("libnss3-tools", told.stderr)

    def inside(self, script, text=API, user=USER):
        """Runs a script as the user; neither its database nor the machine may have changed afterwards."""
        before, traces = self.print_of_database(), support.Traces()
        r = self.run_vethguard(text, ["sh", "-c", script], user=user)
        self.assertEqual(self.print_of_database(), before, r)
        self.assertEqual(traces.since(), "")
        return r

    def test_sees_the_ca(self):
        r = self.inside("certutil -L -d sql:$HOME/.pki/nssdb; certutil -L -d sql:$HOME/.pki/nssdb -n vethguard -a |"
                        "tr -d '\\r' | cmp - /etc/ssl/certs/vethguard.pem && echo the same")
        self.assertEqual(r.status, 0, r)
        self.assertRegex(r.stdout, r"(?m)^vethguard +C,, *$")
        self.assertRegex(r.stdout, r"(?m)^of the user +C,, *$")
        self.assertIn("the same", r.stdout)
        self.assertEqual(r.stderr, "")

    def test_root_keeps_its_own(self):
        """The database is that of the user inside; root's run does not touch it."""
        r = self.inside(f"certutil -L -d sql:{self.database}", user="root")
        self.assertIn("of the user", r.stdout)
        self.assertNotIn("vethguard", r.stdout)

    def test_belongs_to_the_user(self):
        r = self.inside("cd ~/.pki/nssdb && stat -c '%n %u %a' . *")
        self.assertEqual(sorted(r.stdout.split("\n")[:-1]),
                         [f". {UID} 700", f"cert9.db {UID} 600", f"key4.db {UID} 600", f"pkcs11.txt {UID} 600"], r)

    def test_changes_stay_inside(self):
        r = self.inside("certutil -D -n 'of the user' -d sql:$HOME/.pki/nssdb && certutil -L -d sql:$HOME/.pki/nssdb;"
                        "rm ~/.pki/nssdb/key4.db; echo x >~/.pki/nssdb/new")
        self.assertEqual((r.status, r.stderr), (0, ""), r)
        self.assertNotIn("of the user", r.stdout)

    def test_each_sandbox_its_own_ca(self):
        script = "certutil -L -d sql:$HOME/.pki/nssdb -n vethguard -a"
        self.assertNotEqual(self.inside(script).stdout, self.inside(script).stdout)
        self.assertNotIn("vethguard", self.certutil("-L"))

    def test_without_database(self):
        shutil.rmtree(self.home + "/.pki")
        r = self.inside("ls -A ~")
        self.assertEqual((r.status, r.stdout, r.stderr), (0, "", ""), r)

    def test_without_certutil(self):
        with mounted(support.LAB.write("no-certutil", "", 0o644), CERTUTIL):
            r = self.inside("cd ~/.pki/nssdb && sha256sum cert9.db")
        with open(self.database + "/cert9.db", "rb") as f:
            self.assertEqual(r.stdout.split()[0], hashlib.sha256(f.read()).hexdigest())
        self.assertEqual((r.status, r.stderr), (0, ""), r)

    def test_damaged_database(self):
        for content in (b"", b"no database" * 1000):
            with self.subTest(size=len(content)):
                with open(self.database + "/cert9.db", "wb") as f:
                    f.write(content)
                r = self.inside("exit 3")
                self.assertEqual(r.status, 3, r)
                if content:
                    self.assertIn("NSS database", r.stderr)

    def test_database_is_a_link(self):
        os.rename(self.home + "/.pki", self.home + "/elsewhere")
        os.symlink("elsewhere", self.home + "/.pki")
        r = self.inside("certutil -L -d sql:$HOME/elsewhere/nssdb")
        self.assertEqual(r.status, 0, r)
        self.assertNotIn("vethguard", r.stdout)

    def test_link_in_the_database(self):
        """certutil and the copy have the user's rights: a link to root's file shows nothing."""
        os.unlink(self.database + "/pkcs11.txt")
        os.symlink(support.LAB.path("secret"), self.database + "/pkcs11.txt")
        r = self.inside("cat ~/.pki/nssdb/*; true")
        self.assert_no_secret(r.stdout_bytes)

    @unittest.skipUnless(shutil.which("gcc"), "no compiler here")
    def test_module_of_the_user_is_confined(self):
        """pkcs11.txt names a library: certutil loads it, before the command runs, and it may be the work of an earlier
        sandbox. It gets what the command gets: no way out but the gate, no root."""
        source, library, out = support.LAB.write("module.c", MODULE), self.home + "/module.so", self.home + "/ran"
        sh("gcc", "-shared", "-fPIC", f'-DOUT="{out}"', "-o", library, source)
        with open(self.database + "/pkcs11.txt", "a") as f:
            f.write(f"\nlibrary={library}\nname=own\n\n")
        os.chown(self.home, UID, UID)
        os.chmod(support.LAB.dir, 0o777)
        self.addCleanup(os.chmod, support.LAB.dir, 0o755)
        rootless = ["setpriv", "--reuid", str(UID), "--regid", str(UID), "--clear-groups"]
        for kw in ({"user": USER}, {"prefix": rootless}):
            with self.subTest(**kw):
                self.sandbox(API, **kw).close()
                with open(out) as f:
                    text = f.read()
                os.unlink(out)
                self.assertTrue(text.startswith(f"uid {UID} setuid -1 shadow -1\n"), text)
                self.assertNotIn(" 200 ", text)
        self.assert_never_seen("from-module")

    def test_certutil_that_hangs(self):
        """The command starts all the same, and a warning says what is missing."""
        hang = support.LAB.write("hang", "#!/bin/sh\nexec sleep 1000\n", 0o755)
        with mounted(hang, CERTUTIL):
            r = self.inside("exit 5")
        self.assertEqual(r.status, 5, r)
        self.assertIn("NSS database", r.stderr)


CHECK = """
import os, socket, ssl, sys
for path in sys.argv[1:]:
    try:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(**{'capath' if os.path.isdir(path) else 'cafile': path})
        with socket.create_connection(('api.lab.test', 443), 10) as s:
            with context.wrap_socket(s, server_hostname='api.lab.test') as t:
                t.sendall(b'GET /found HTTP/1.1\\r\\nHost: api.lab.test\\r\\nConnection: close\\r\\n\\r\\n')
                answer = t.recv(12).decode()
                while t.recv(4096): pass
    except OSError as e:
        answer = str(e)
    print(path, answer)
"""
VARIABLES = ["SSL_CERT_FILE", "SSL_CERT_DIR", "CURL_CA_BUNDLE", "NODE_EXTRA_CA_CERTS", "DENO_CERT"]
KEYSTORE = b"\xfe\xed\xfe\xed" + b"\0\0\0\2" + b"\0\0\0\0"  # of no entry; the digest follows


class Distributions(Case):
    """Trees as other distributions lay them out: /etc is a copy of the lab's own, without Debian's places. The one bundle
    holds the authority of the origins, which therefore is an upstream's only way to be verified."""

    @classmethod
    def setUpClass(cls):
        cls.etc, cls.var = support.LAB.path("etc"), support.LAB.path("var-lib")
        # The invoking shell's variables for bundles stay if vethguard has nothing better.
        cls.mounts = contextlib.ExitStack()
        cls.mounts.enter_context(mock.patch.dict(os.environ))
        for name in VARIABLES:
            os.environ.pop(name, None)
        # Without ca_files: only the system's store is left.
        cls.config = support.LAB.write("system-store.yaml", "resolver:\n  servers: [10.99.0.53]\npermit: [10.99.0.0/16]\n")
        sh("cp", "-a", "/etc", cls.etc)
        os.mkdir(cls.var)
        for gone in ("ssl", "pki", "ca-certificates", "ca-certificates.conf"):
            sh("rm", "-rf", os.path.join(cls.etc, gone))
        cls.mounts.enter_context(mounted(cls.etc, "/etc"))
        cls.mounts.enter_context(mounted(cls.var, "/var/lib"))

    @classmethod
    def tearDownClass(cls):
        cls.mounts.close()

    def setUp(self):
        super().setUp()
        self.addCleanup(sh, "rm", "-rf", "/etc/ssl", "/etc/pki", "/etc/ca-certificates", "/var/lib/ca-certificates")

    @staticmethod
    def place(path):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        return path

    def bundle(self, path):
        shutil.copy(support.LAB.path("ca.pem"), self.place(path))

    def keystore(self, path):
        with open(self.place(path), "wb") as f:
            f.write(KEYSTORE + hashlib.sha1(b"\0c\0h\0a\0n\0g\0e\0i\0tMighty Aphrodite" + KEYSTORE).digest())

    def link(self, path, target):
        os.symlink(target, self.place(path))
        self.assertTrue(os.path.exists(path), f"{path} leads nowhere")

    def run_inside(self, *places, stores=(), anchors=()):
        """Each place verifies the gate's certificate, each store and anchor holds the CA, variables lead to what works."""
        before = sh("sh", "-c", "find /etc/ssl /etc/pki /etc/ca-certificates /var/lib -type f 2>/dev/null | sort | xargs sha256sum")
        script = f"/usr/bin/python3 -c \"$CHECK\" {' '.join(places)} " + " ".join(f'${v}' for v in VARIABLES) + "\n" + \
            "".join(f"grep -qa vethguard {s} && echo {s} has it\n" for s in stores) + \
            "".join(f"grep -q BEGIN {a}/vethguard.pem && echo {a} has it\n" for a in anchors) + \
            "".join(f"(echo x >>{p}) 2>/dev/null && echo {p} written\n" for p in (*places, *stores)) + "true"
        r = self.run_vethguard(API, ["sh", "-c", script], options=["--env", "CHECK=" + CHECK], config=self.config)
        self.assertEqual(r.status, 0, r)
        lines = r.stdout.splitlines()
        for path in places:
            self.assertIn(f"{path} HTTP/1.1 200", lines, r)
        for path in (*stores, *anchors):
            self.assertIn(f"{path} has it", lines, r)
        checked = [line for line in lines if not line.endswith(" has it")]
        self.assertEqual([line for line in checked if not line.endswith("HTTP/1.1 200")], [], r)
        self.assertGreaterEqual(len(checked), len(places) + 4)
        self.assertNotIn("NSS", r.stderr)
        self.assertEqual(before, sh("sh", "-c", "find /etc/ssl /etc/pki /etc/ca-certificates /var/lib -type f 2>/dev/null"
                                    " | sort | xargs sha256sum"))
        return r

    def test_fedora(self):
        self.bundle("/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem")
        self.keystore("/etc/pki/ca-trust/extracted/java/cacerts")
        os.makedirs("/etc/pki/ca-trust/source/anchors")
        self.link("/etc/pki/tls/certs/ca-bundle.crt", "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem")
        self.link("/etc/pki/tls/cert.pem", "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem")
        self.link("/etc/pki/java/cacerts", "/etc/pki/ca-trust/extracted/java/cacerts")
        self.link("/etc/ssl/certs", "../pki/tls/certs")
        self.run_inside("/etc/pki/tls/certs/ca-bundle.crt", "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
                        "/etc/pki/tls/cert.pem", "/etc/ssl/certs", "/etc/pki/tls/certs",
                        stores=["/etc/pki/java/cacerts", "/etc/pki/ca-trust/extracted/java/cacerts"],
                        anchors=["/etc/pki/ca-trust/source/anchors"])

    def test_opensuse(self):
        self.bundle("/var/lib/ca-certificates/ca-bundle.pem")
        self.keystore("/var/lib/ca-certificates/java-cacerts")
        os.makedirs("/var/lib/ca-certificates/pem")
        os.makedirs("/etc/pki/trust/anchors")
        self.link("/etc/ssl/ca-bundle.pem", "/var/lib/ca-certificates/ca-bundle.pem")
        self.link("/etc/ssl/certs", "/var/lib/ca-certificates/pem")
        self.run_inside("/etc/ssl/ca-bundle.pem", "/var/lib/ca-certificates/ca-bundle.pem", "/etc/ssl/certs",
                        "/var/lib/ca-certificates/pem", stores=["/var/lib/ca-certificates/java-cacerts"],
                        anchors=["/etc/pki/trust/anchors"])

    def test_alpine(self):
        self.bundle("/etc/ssl/certs/ca-certificates.crt")
        self.link("/etc/ssl/cert.pem", "certs/ca-certificates.crt")
        self.run_inside("/etc/ssl/cert.pem", "/etc/ssl/certs/ca-certificates.crt", "/etc/ssl/certs")

    def test_arch(self):
        self.bundle("/etc/ca-certificates/extracted/tls-ca-bundle.pem")
        self.keystore("/etc/ca-certificates/extracted/java-cacerts.jks")
        os.makedirs("/etc/ca-certificates/trust-source/anchors")
        self.link("/etc/ssl/cert.pem", "../ca-certificates/extracted/tls-ca-bundle.pem")
        self.link("/etc/ssl/certs/ca-certificates.crt", "../../ca-certificates/extracted/tls-ca-bundle.pem")
        self.link("/etc/ssl/certs/java/cacerts", "/etc/ca-certificates/extracted/java-cacerts.jks")
        self.run_inside("/etc/ssl/cert.pem", "/etc/ssl/certs/ca-certificates.crt", "/etc/ssl/certs",
                        "/etc/ca-certificates/extracted/tls-ca-bundle.pem",
                        stores=["/etc/ssl/certs/java/cacerts"], anchors=["/etc/ca-certificates/trust-source/anchors"])

    def test_each_bundle_alone(self):
        """Without a directory of certificates: one file, wherever it is."""
        for path in ("/etc/pki/tls/certs/ca-bundle.crt", "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
                     "/etc/ssl/ca-bundle.pem", "/var/lib/ca-certificates/ca-bundle.pem", "/etc/ssl/cert.pem",
                     "/etc/ca-certificates/extracted/tls-ca-bundle.pem", "/etc/pki/tls/cert.pem"):
            with self.subTest(bundle=path):
                self.bundle(path)
                r = self.run_inside(path)
                self.assertEqual(r.stderr, "")
                os.unlink(path)
                sh("rm", "-rf", "/etc/ssl", "/etc/pki")

    def test_directory_alone(self):
        """openssl without ca-certificates: the CA can be trusted, but no upstream can be verified."""
        os.makedirs("/etc/ssl/certs")
        config = support.LAB.path("config.yaml")
        script = 'curl -sS -o /dev/null -w "%{http_code}\\n" https://api.lab.test/'
        self.assertEqual(self.run_vethguard(API, ["sh", "-c", script], config=config).stdout, "200\n")
        r = self.run_vethguard(API, ["sh", "-c", script], config=self.config)
        self.assertEqual(r.stdout, "502\n", r)
        self.assertIn("no bundle of trusted CAs", r.stderr)

    def test_nothing(self):
        r = self.run_vethguard(API, ["sh", "-c", "ls /etc/ssl; echo ${SSL_CERT_FILE-unset} ${NODE_EXTRA_CA_CERTS-unset}"],
                               config=self.config)
        self.assertEqual(r.stdout, "unset unset\n", r)
        self.assertIn("will not trust its CA", r.stderr)
        self.assertFalse(os.path.exists("/etc/ssl"))

    def test_a_bundle_without_the_authority(self):
        """A store that does not have the upstream's authority refuses it, in any of the places."""
        for path in ("/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem"):
            with self.subTest(bundle=path):
                shutil.copy(self.another_authority(), self.place(path))
                r = self.run_vethguard(API, ["sh", "-c", 'curl -sS -o /dev/null -w "%{http_code}" https://api.lab.test/'],
                                       config=self.config)
                self.assertEqual(r.stdout, "502", r)
                os.unlink(path)

    @staticmethod
    def another_authority():
        out = support.LAB.path("another-ca.pem")
        if not os.path.exists(out):
            sh("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj",
               "/CN=another", "-days", "2", "-keyout", "/dev/null", "-out", out, "-config", "/dev/null",
               env=dict(os.environ, OPENSSL_CONF="/dev/null"))
        return out

    def test_damaged_link(self):
        self.bundle("/etc/ssl/cert.pem")
        os.makedirs("/etc/pki/tls/certs")
        os.symlink("/nowhere/at/all", "/etc/pki/tls/certs/ca-bundle.crt")
        self.run_inside("/etc/ssl/cert.pem")
