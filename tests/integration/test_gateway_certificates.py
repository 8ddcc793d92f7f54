# SPDX-License-Identifier: Apache-2.0
"""The gateway with sessions that a client proves by its certificate."""
import contextlib
import json
import os
import re
import socket
import ssl
import subprocess
import threading
import time

import support
from control_case import Described
from gateway_case import CLIENT4, GATEWAY4, PLAIN_PORT, TLS_PORT, Gatewayed
from support import HTTP, SLOW, VETHGUARD, sh, wait_until


class Certified(Gatewayed):
    options = "  client_certificates: true\n"

    def setUp(self):
        super().setUp()
        self.agent = self.make("agent")
        self.create("by-certificate", certificate_sha256=self.hash(self.agent))

    def make(self, name, days=30):
        """Makes a self-signed certificate with its key. Returns their path without suffix."""
        path = os.path.join(self.dir, name)
        sh("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", str(days), "-keyout", path + ".key",
           "-out", path + ".pem", "-subj", f"/CN={name}")
        return path

    @staticmethod
    def hash(path):
        out = sh("openssl", "x509", "-in", path + ".pem", "-noout", "-fingerprint", "-sha256")
        return (out if isinstance(out, str) else out.stdout).strip().split("=")[1].replace(":", "").lower()

    def by(self, certificate, *argv, token="", proxy=None):
        return self.curl("--proxy-cert", certificate + ".pem", "--proxy-key", certificate + ".key", *argv, token=token, proxy=proxy)

    def whoami(self, certificate, **kw):
        r = self.by(certificate, "https://api.lab.test/whoami", **kw)
        return r.returncode == 0 and json.loads(r.stdout).get("authenticated") is True

    def code(self, certificate, **kw):
        return self.by(certificate, "-o", "/dev/null", "-w", "%{http_connect}", "https://api.lab.test/whoami", **kw).stdout

    def raw(self, certificate, data, versions=()):
        """Sends these bytes over TLS. Returns all that comes back."""
        context = ssl.create_default_context(cafile=self.certificate + ".pem")
        if certificate:
            context.load_cert_chain(certificate + ".pem", certificate + ".key")
        if versions:
            context.maximum_version = versions
        s = context.wrap_socket(socket.create_connection((GATEWAY4, TLS_PORT), timeout=20 * SLOW), server_hostname="gateway.lab.test")
        self.addCleanup(s.close)
        s.sendall(data)
        return self.rest(s)


class Certificates(Certified):
    def test_proved(self):
        self.assertTrue(wait_until(lambda: self.whoami(self.agent), 10 * SLOW), self.daemon.stderr())
        event = self.daemon.event(HTTP, action_id=1, **{"http_request.url.path": "/whoami"})
        self.assertEqual(event["src_endpoint"]["ip"], CLIENT4, event)
        get = b"GET http://plain.lab.test/%s HTTP/1.1\r\nHost: plain.lab.test\r\n%s\r\n"
        for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
            # Two requests on one connection.
            answer = self.raw(self.agent, get % (b"one", b"") + get % (b"two", b"Connection: close\r\n"), version)
            self.assertIn(b'"/one"', answer)
            self.assertIn(b'"/two"', answer)
        request = b"\x05\x01\x00\x03\x0eplain.lab.test\x00\x50"
        http = b"GET /deep HTTP/1.1\r\nHost: plain.lab.test\r\nConnection: close\r\n\r\n"
        answer = self.raw(self.agent, b"\x05\x02\x00\x02" + request + http)
        self.assertTrue(answer.startswith(b"\x05\x00\x05\x00\x00\x01"), answer[:20])
        self.assertIn(b'"/deep"', answer)
        self.assert_served(token=self.token)  # tokens still work
        self.assertTrue(self.whoami(self.agent, token=self.token), "a token counts before a certificate")

    def test_refused(self):
        self.assertTrue(wait_until(lambda: self.whoami(self.agent), 10 * SLOW), self.daemon.stderr())
        stranger = self.make("stranger")
        sh("openssl", "req", "-x509", "-key", self.agent + ".key", "-days", "30", "-out", os.path.join(self.dir, "again.pem"), "-subj", "/CN=agent")
        os.link(self.agent + ".key", os.path.join(self.dir, "again.key"))
        for certificate in (stranger, os.path.join(self.dir, "again")):  # "again": another certificate of the same key and name
            self.assertEqual(self.code(certificate), "407", certificate)
        self.assertEqual(self.code(self.agent, token="wrong"), "407", "a wrong token is wrong, whatever the certificate")
        login = b"\x05\x01\x00\x03\x0eplain.lab.test\x00\x50"
        self.assertEqual(self.raw(None, b"\x05\x01\x00" + login), b"\x05\xff")
        self.assertEqual(self.raw(stranger, b"\x05\x01\x00" + login), b"\x05\xff")
        r = self.curl("http://plain.lab.test/", token="", proxy=f"http://{GATEWAY4}:{PLAIN_PORT}")
        self.assertIn("a session", r.stdout)
        head = b"GET http://plain.lab.test/ HTTP/1.1\r\nHost: plain.lab.test\r\nConnection: close\r\n"
        self.assertTrue(self.raw(None, head + b"\r\n").startswith(b"HTTP/1.1 407"))
        self.assertTrue(self.raw(self.agent, head + b"Proxy-Authorization: Digest x\r\n\r\n").startswith(b"HTTP/1.1 407"))
        self.assertTrue(self.raw(self.agent, f"GET /s/{self.hash(self.agent)}/http/plain.lab.test/ HTTP/1.1\r\nHost: g\r\n\r\n".encode())
                        .startswith(b"HTTP/1.1 401"), "its hash is no token")

    def test_life(self):
        """A certificate belongs to one session. The next daemon knows the session. Once it is revoked, the certificate is unknown."""
        self.assertTrue(wait_until(lambda: self.whoami(self.agent), 10 * SLOW), self.daemon.stderr())
        body = {"name": "second", "policy": self.policy, "certificate_sha256": self.hash(self.agent)}
        status, _, answer = self.daemon.call("POST", "/v1/sessions", body)
        self.assertEqual(status, 409, answer)
        self.assertIn("by-certificate", answer["detail"])
        for wrong in ("", "x", self.hash(self.agent).upper(), self.hash(self.agent)[:-1], self.hash(self.agent) + "0", 7):
            self.assertEqual(self.daemon.call("POST", "/v1/sessions", {**body, "certificate_sha256": wrong})[0], 422, wrong)
        self.daemon.stop()
        self.daemon.start()
        self.assertTrue(wait_until(lambda: self.whoami(self.agent), 20 * SLOW), self.daemon.stderr())
        other = self.make("other")
        r = self.daemon.cli("session", "create", "--policy", self.policy, "--name", "other", "--certificate", other + ".pem", "--from", "203.0.113.0/24")
        self.assertEqual((r.returncode, r.stdout), (0, ""), r)
        self.assertEqual(self.code(other), "407", "from another network")
        for wrong in ("/none", other + ".key", self.dir):
            r = self.daemon.cli("session", "create", "--policy", self.policy, "--certificate", wrong)
            self.assertEqual((r.returncode, r.stdout), (2, ""), (wrong, r))
        self.assertEqual(self.daemon.cli("session", "revoke", "by-certificate").returncode, 0)
        self.assertEqual(self.code(self.agent), "407")

    def test_resumed(self):
        """A resumed TLS session counts as the same client with its certificate, until the gateway's session is revoked."""
        context = ssl.create_default_context(cafile=self.certificate + ".pem")
        context.maximum_version = ssl.TLSVersion.TLSv1_2
        context.load_cert_chain(self.agent + ".pem", self.agent + ".key")
        head = b"GET http://plain.lab.test/r HTTP/1.1\r\nHost: plain.lab.test\r\nConnection: close\r\n\r\n"
        session, reused = None, []
        for _ in range(2):
            raw = socket.create_connection((GATEWAY4, TLS_PORT), timeout=20 * SLOW)
            s = context.wrap_socket(raw, server_hostname="gateway.lab.test", session=session)
            self.addCleanup(s.close)
            s.sendall(head)
            self.assertIn(b'"/r"', self.rest(s))
            session, reused = s.session, [*reused, s.session_reused]
        self.assertEqual(reused, [False, True])
        self.assertEqual(self.daemon.cli("session", "revoke", "by-certificate").returncode, 0)
        s = context.wrap_socket(socket.create_connection((GATEWAY4, TLS_PORT), timeout=20 * SLOW), server_hostname="gateway.lab.test", session=session)
        self.addCleanup(s.close)
        s.sendall(head)
        self.assertTrue(self.rest(s).startswith(b"HTTP/1.1 407"))


class Issued(Certified):
    """`vethguard session certificate`."""
    options = Certified.options + "  listen_transparent: '127.0.0.1:4443'\n"

    def setUp(self):
        super().setUp()
        self.path = os.path.join(self.dir, "issued")

    def issue(self, *argv, name="one"):
        return self.daemon.cli("session", "certificate", name, *argv)

    def cut(self, s):
        s.settimeout(20 * SLOW)
        self.assertEqual(self.rest(s), b"")

    def through(self, certificate):
        """A tunnel that is open."""
        context = ssl.create_default_context(cafile=self.certificate + ".pem")
        context.load_cert_chain(certificate + ".pem", certificate + ".key")
        s = context.wrap_socket(socket.create_connection((GATEWAY4, TLS_PORT), timeout=20 * SLOW), server_hostname="gateway.lab.test")
        self.addCleanup(s.close)
        s.sendall(b"CONNECT plain.lab.test:80 HTTP/1.1\r\nHost: x\r\n\r\n")
        self.assertTrue(self.head(s).startswith(b"HTTP/1.1 200"))
        return s

    def test_in_place_of_the_proof_before(self):
        kept = self.tunnel()
        r = self.issue("--out", self.path)
        self.assertEqual((r.returncode, r.stdout), (0, ""), r)
        self.assertEqual([os.stat(self.path + end).st_mode & 0o777 for end in (".pem", ".key")], [0o644, 0o600])
        self.cut(kept)
        self.assertTrue(wait_until(lambda: self.whoami(self.path), 10 * SLOW), self.daemon.stderr())
        self.assert_unknown("a certificate has taken its place", token=self.token)
        self.assertEqual(self.code(self.path, token=self.token), "407")
        self.assertTrue(self.whoami(self.agent), "another session's")
        kept = self.through(self.path)
        r = self.issue()  # to standard output
        self.assertEqual(r.returncode, 0, r)
        self.cut(kept)
        self.assertEqual(self.code(self.path), "407", "another certificate has taken its place")
        pem, key = r.stdout.split("-----BEGIN PRIVATE KEY-----")
        second = os.path.join(self.dir, "second")
        for end, text in ((".pem", pem), (".key", "-----BEGIN PRIVATE KEY-----" + key)):
            with open(second + end, "w") as f:
                f.write(text)
        self.assertTrue(self.whoami(second))
        self.daemon.stop()
        secret = key.split("\n")[1].encode()  # nobody keeps the key
        for root, _, names in os.walk(self.daemon.dir):
            for name in names:
                with open(os.path.join(root, name), "rb") as f:
                    self.assertNotIn(secret, f.read(), name)
        self.daemon.start()
        self.assertTrue(wait_until(lambda: self.whoami(second), 20 * SLOW), self.daemon.stderr())
        self.assert_unknown("after a restart, too", token=self.token)
        kept = self.through(second)
        self.assertEqual(self.daemon.cli("session", "revoke", "one").returncode, 0)
        self.cut(kept)
        self.assertEqual(self.code(second), "407")

    def test_its_end(self):
        ends = self.daemon.call("GET", "/v1/sessions/one")[2]["expires"][:19]
        self.assertEqual(self.issue("--out", self.path, "--ttl", "366d").returncode, 0)
        told = sh("openssl", "x509", "-in", self.path + ".pem", "-noout", "-enddate", "-dateopt", "iso_8601")
        self.assertEqual(told.strip(), f"notAfter={ends.replace('T', ' ')}Z")
        short = os.path.join(self.dir, "short")
        self.assertEqual(self.issue("--out", short, "--ttl", "3s").returncode, 0)
        self.assertTrue(self.whoami(short))
        self.assertTrue(wait_until(lambda: self.code(short) == "407", 20 * SLOW))

    def test_refused(self):
        self.create("by-address", by_address=True, **{"from": ["192.0.2.1/32"]})
        r = self.issue("--out", self.path, name="by-address")
        self.assertEqual((r.returncode, "by the address" in r.stderr, os.path.exists(self.path + ".key")), (1, True, False), r)
        r = self.issue("--out", self.path, name="nobody")
        self.assertEqual((r.returncode, os.path.exists(self.path + ".key")), (1, False), r)
        for argv in ((), ("one", "two"), ("one", "--ttl", "0s"), ("one", "--ttl", "367d"), ("one", "--out", ""), ("one", "--json"), ("one/x",),
                     ("one", "--out", "/none/there"), ("one", "--out", "/" + "x" * 4096)):
            r = self.daemon.cli("session", "certificate", *argv)
            self.assertEqual((r.returncode, r.stdout), (2, ""), (argv, r))
        for there in (".pem", ".key"):  # what is there is not overwritten, and the proof stays
            with open(self.path + there, "w") as f:
                f.write("mine")
            r = self.issue("--out", self.path)
            self.assertEqual((r.returncode, "File exists" in r.stderr), (2, True), r)
            with open(self.path + there) as f:
                self.assertEqual(f.read(), "mine")
            os.unlink(self.path + there)
        self.assertEqual(os.listdir(os.path.dirname(self.path)).count("issued.key"), 0)
        self.assert_served(token=self.token)
        status, _, answer = self.daemon.call("POST", "/v1/sessions/one/certificate", {"certificate_sha256": self.hash(self.agent)})
        self.assertEqual((status, "by-certificate" in answer["detail"]), (409, True), answer)
        self.assert_served(token=self.token)

    def test_a_lost_answer(self):
        """The daemon takes the certificate, and its answer never comes: the files stay, since nothing else proves the session."""
        kept = self.tunnel()
        for argv in (("--out", self.path), ()):
            r = self.without_answer("one", *argv)
            self.assertEqual((r.returncode, "answer is lost" in r.stderr), (3, True), r)
        second = os.path.join(self.dir, "second")
        pem, key = r.stdout.split("-----BEGIN PRIVATE KEY-----")
        for end, text in ((".pem", pem), (".key", "-----BEGIN PRIVATE KEY-----" + key)):
            with open(second + end, "w") as f:
                f.write(text)
        self.cut(kept)
        self.assertTrue(os.path.exists(self.path + ".pem") and os.path.exists(self.path + ".key"))
        self.assertEqual(self.code(self.path), "407", "another one has taken its place")
        self.assertTrue(wait_until(lambda: self.whoami(second), 10 * SLOW), self.daemon.stderr())
        r = self.without_answer("nobody", "--out", os.path.join(self.dir, "none"))  # the first answer comes, and refuses
        self.assertEqual((r.returncode, os.path.exists(os.path.join(self.dir, "none.key"))), (1, False), r)

    def without_answer(self, *argv):
        """The command, through a socket that passes on everything but the answers to POST."""
        path = os.path.join(self.dir, f"between-{time.monotonic_ns()}.sock")
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(path)
        listener.listen(8)

        def carry():
            with contextlib.suppress(OSError):
                while True:
                    client = listener.accept()[0]
                    with client, socket.socket(socket.AF_UNIX) as daemon:
                        request = self.head(client)
                        length = int(re.search(rb"Content-Length: (\d+)", request)[1])
                        while length:
                            more = client.recv(length)
                            request, length = request + more, length - len(more)
                        daemon.connect(self.daemon.socket)
                        daemon.sendall(request)
                        answer = self.rest(daemon)
                        if request.startswith(b"GET "):
                            client.sendall(answer)
        thread = threading.Thread(target=carry)
        thread.start()
        try:
            return subprocess.run([VETHGUARD, "session", "certificate", *argv, "--socket", path], capture_output=True, text=True, timeout=60 * SLOW)
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()
            listener.close()

    def test_described(self):
        """The call is as docs/openapi.yaml has it, refusals too."""
        described, own = Described(), {"certificate_sha256": "ab" * 32}
        described.request("POST", "/v1/sessions/one/certificate", own)
        for name, body, expected in (("one", own, 200), ("one", {}, 422), ("none", own, 404)):
            status, headers, answer = self.daemon.call("POST", f"/v1/sessions/{name}/certificate", body)
            self.assertEqual(status, expected, answer)
            described.answer("POST", f"/v1/sessions/{name}/certificate", status, headers, answer)
        self.assertEqual(described.used, {"sessions.certify"})


class NotAsked(Gatewayed):
    def test_refused(self):
        r = self.daemon.cli("session", "certificate", "one", "--out", os.path.join(self.dir, "none"))
        self.assertEqual((r.returncode, "client_certificates" in r.stderr), (1, True), r)
        self.assertFalse(os.path.exists(os.path.join(self.dir, "none.key")))
        self.assert_served(token=self.token)
        status, _, answer = self.daemon.call("POST", "/v1/sessions", {"policy": self.policy, "certificate_sha256": "0" * 64})
        self.assertEqual(status, 422)
        self.assertIn("client_certificates", answer["detail"])
