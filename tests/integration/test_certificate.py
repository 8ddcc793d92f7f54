# SPDX-License-Identifier: Apache-2.0
"""inject: client-certificate: the handshake with the upstream shows a certificate whose key no sandbox has. Against a server of the
tests' own (OpenSSL behind Python) that asks for certificates and tells whose it saw."""
import http.server
import json
import os
import ssl
import subprocess
import threading
import time
import unittest

import control_case
import lab
import support
from support import policy, wait_until

PORT, OTHER_PORT, OPEN_PORT = 8450, 8451, 8452
HOST = "mtls.wild.lab.test"


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        peer = self.connection.getpeercert() or {}
        name = dict(pair[0] for pair in peer.get("subject", ())).get("commonName")
        self.server.asked.append({"path": self.path, "name": name, "headers": {n.lower(): v for n, v in self.headers.items()}, "port": self.client_address[1],
                                  "version": self.connection.version(), "resumed": self.connection.session_reused})
        body = f"{name} {json.dumps(dict(self.headers.items()))}".encode()
        if self.path.startswith("/stream"):
            self.send_response(200)
            self.end_headers()
            while not self.server.release.wait(0.05):
                self.wfile.write(b"more\n")
                self.wfile.flush()
            return
        self.send_response(302 if self.path == "/redirect" else 200)
        if self.path == "/redirect":
            self.send_header("Location", f"https://{HOST}:{OPEN_PORT}/redirected")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, port, mode, ca, version=None):
        super().__init__((lab.ORIGIN4, port), Handler)
        self.asked, self.refused, self.release = [], [], threading.Event()
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(support.LAB.path("server.pem"), support.LAB.path("server.key"))
        context.load_verify_locations(ca)
        context.verify_mode = mode
        if version:
            context.maximum_version = version
        self.socket = context.wrap_socket(self.socket, server_side=True, do_handshake_on_connect=False)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def finish_request(self, request, client):
        try:
            request.settimeout(20)
            request.do_handshake()
        except (OSError, ValueError) as e:
            self.refused.append(str(e))
            return
        super().finish_request(request, client)

    def handle_error(self, *_):
        pass


class Certificates:
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=clients", "-days", "30",
                "-keyout", path("clients.key"), "-out", path("clients.pem"))
        cls.required = support.in_namespace("outside", lambda: Server(PORT, ssl.CERT_REQUIRED, path("clients.pem")))
        cls.old = support.in_namespace("outside", lambda: Server(OTHER_PORT, ssl.CERT_REQUIRED, path("clients.pem"), ssl.TLSVersion.TLSv1_2))
        cls.open = support.in_namespace("outside", lambda: Server(OPEN_PORT, ssl.CERT_OPTIONAL, path("clients.pem")))
        cls.servers = (cls.required, cls.old, cls.open)

    @classmethod
    def tearDownClass(cls):
        for server in cls.servers:
            server.release.set()
            server.shutdown()
            server.server_close()
        super().tearDownClass()

    def setUp(self):
        super().setUp()
        for server in self.servers:
            server.asked.clear()
            server.refused.clear()
            server.release.clear()
            self.addCleanup(server.release.set)


def path(name):
    return support.LAB.path("mtls-" + name)


def openssl(*words, **more):
    subprocess.run(["openssl", *words], check=True, capture_output=True, **more)


def certificate(name, kind=("ec", "-pkeyopt", "ec_paramgen_curve:P-256"), days="30", order="chain, key", ca="clients"):
    """A file with the certificate of that name and its key."""
    openssl("req", "-newkey", *kind, "-nodes", "-subj", f"/CN={name}", "-keyout", path(name + ".key"), "-out", path(name + ".csr"))
    openssl("x509", "-req", "-in", path(name + ".csr"), "-CA", path(ca + ".pem"), "-CAkey", path(ca + ".key"), "-CAcreateserial", "-days", days,
            "-out", path(name + ".crt"))
    parts = {"chain": read(name + ".crt"), "key": read(name + ".key")}
    return support.LAB.write(f"mtls-{name}.pem", "".join(parts[p] for p in order.split(", ")), 0o600)


def read(name):
    with open(path(name)) as f:
        return f.read()


def body(name):
    """A line of a key's text, which nobody may see."""
    return read(name + ".key").splitlines()[1].encode()


class Works(Certificates, support.Case):
    def box(self, files, rules=None, rest=""):
        lines = "".join(f"  {name}: {{source: 'file:{file}', inject: client-certificate{rest}}}\n" for name, file in files.items())
        box = support.Sandbox(policy(*(rules or [f"{{to: 'https://{HOST}:{p}', credential: {next(iter(files))}}}" for p in (PORT, OTHER_PORT, OPEN_PORT)]),
                                     credentials=lines))
        self.addCleanup(box.close)
        return box

    def asks(self, box, *urls, more=""):
        return box.sh(f"curl -sS -m 20 {more} -w ' %{{http_code}}\\n' " + " ".join(f"https://{HOST}:{u}" for u in urls), timeout=60).out

    def test_it_is_shown(self):
        """Elliptic and RSA keys, TLS 1.3 and 1.2, the key first or last; and the request stays as it is."""
        for name, kind, order in (("agent-ec", ("ec", "-pkeyopt", "ec_paramgen_curve:P-256"), "chain, key"), ("agent-rsa", ("rsa:2048",), "key, chain"),
                                  ("agent-ed", ("ed25519",), "chain, key")):
            with self.subTest(name=name):
                box = self.box({"api": certificate(name, kind, order=order)})
                out = self.asks(box, f"{PORT}/a", f"{OTHER_PORT}/a", f"{OPEN_PORT}/a", more="-H 'Accept-Encoding: br, zstd' -H 'Range: bytes=0-99'")
                self.assertEqual(out.count(" 200\n"), 3, (out, box.stderr()))
                for server, version in ((self.required, "TLSv1.3"), (self.old, "TLSv1.2"), (self.open, "TLSv1.3")):
                    self.assertEqual((server.asked[-1]["name"], server.asked[-1]["version"]), (name, version))
                    self.assertEqual(server.asked[-1]["headers"].get("accept-encoding"), "br, zstd")
                    self.assertEqual(server.asked[-1]["headers"].get("range"), "bytes=0-99")
                box.close()
                for text in (out.encode(), box.stderr().encode(), json.dumps(box.events()).encode()):
                    self.assert_no_secret(text, body(name).decode())

    def test_accounts_never_share_a_connection(self):
        """Two certificates and none on one host, one after another and at once: each request is its own account's."""
        one, two = certificate("one"), certificate("two")
        box = self.box({"one": one, "two": two}, [f"{{to: 'https://{HOST}:{OPEN_PORT}', paths: [/one/**], credential: one}}",
                                                  f"{{to: 'https://{HOST}:{OPEN_PORT}', paths: [/two/**], credential: two}}",
                                                  f"{{to: 'https://{HOST}:{OPEN_PORT}', paths: [/none/**]}}"])
        urls = [f"{OPEN_PORT}/{name}/{i}" for i in range(8) for name in ("one", "two", "none")]
        for more in ("", "-Z"):
            out = self.asks(box, *urls, more=more)
            self.assertEqual(out.count(" 200"), 24, (out, box.stderr()))
        self.assertEqual(len(self.open.asked), 48)
        ports = {}
        for a in self.open.asked:
            self.assertEqual(a["path"].split("/")[1], str(a["name"]).lower())
            self.assertEqual(ports.setdefault(a["port"], a["name"]), a["name"])

    def test_a_resumed_session_keeps_its_account(self):
        box = self.box({"one": certificate("one"), "two": certificate("two")},
                       [f"{{to: 'https://{HOST}:{OPEN_PORT}', paths: [/{n}/**], credential: {n}}}" for n in ("one", "two")] + [f"{{to: 'https://{HOST}:{OPEN_PORT}', paths: [/none/**]}}"])
        for _ in range(3):
            for name in ("one", "two", "none"):
                self.asks(box, f"{OPEN_PORT}/{name}/x", more="-H 'Connection: close'")
                box.sh("sleep 0.1")
        for a in self.open.asked:
            self.assertEqual(a["path"].split("/")[1], str(a["name"]).lower(), a)

    def test_a_redirect_takes_nothing_along(self):
        box = self.box({"api": certificate("agent")}, [f"{{to: 'https://{HOST}:{PORT}', credential: api}}", f"{{to: 'https://{HOST}:{OPEN_PORT}'}}"])
        out = self.asks(box, f"{PORT}/redirect", more="-L")
        self.assertIn(" 200", out, box.stderr())
        self.assertEqual([(a["path"], a["name"]) for a in self.open.asked], [("/redirected", None)])

    def test_values_that_are_none(self):
        """What cannot be a certificate is refused with the reason, and nothing is sent."""
        good = certificate("good")
        certificate("stranger")
        openssl("ec", "-in", path("good.key"), "-aes256", "-passout", "pass:secret", "-out", path("locked.key"))
        rows = {"others": (read("good.crt") + read("stranger.key"), "the key is not that of the certificate"),
                "nokey": (read("good.crt"), "no private key"), "nocert": (read("good.key"), "does not begin with a certificate"),
                "locked": (read("good.crt") + read("locked.key"), "without a passphrase"), "text": ("no certificate at all", "does not begin with a certificate"),
                "cut": (read("good.crt")[:200] + "\n" + read("good.key"), "does not begin with a certificate|damaged"),
                "broken": (read("good.crt") + read("good.key").replace("A", "B"), "not that of the certificate|no private key"),
                "many": (read("good.crt") * 20 + read("good.key"), "too many certificates")}
        files = {name: support.LAB.write("mtls-bad-" + name, text, 0o600) for name, (text, _) in rows.items()}
        files["old"] = certificate("old", days="-1") if openssl_has_past() else None
        files = {name: file for name, file in files.items() if file}
        box = self.box(files, [f"{{to: 'https://{HOST}:{OPEN_PORT}', paths: [/{name}], credential: {name}}}" for name in files])
        out = self.asks(box, *[f"{OPEN_PORT}/{name}" for name in files])
        self.assertEqual(out.count(" 502\n"), len(files), out)
        self.assertEqual(self.open.asked, [])
        box.close()
        events = [json.dumps(e) for e in box.events()]
        for name, (_, words) in rows.items():
            self.assertRegex("\n".join(e for e in events if f"/{name}" in e), words, name)
        for text in (out.encode(), box.stderr().encode(), "\n".join(events).encode()):
            self.assert_no_secret(text, body("good").decode())
        self.assertTrue(os.path.exists(good))

    def test_upstreams_that_refuse(self):
        """A certificate of a CA that the server does not know, and none where one is needed: nothing arrives, and the answer is 502."""
        openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=x", "-keyout", path("x.key"), "-out", path("x.pem"))
        box = self.box({"api": certificate("wrong", ca="x")}, [f"{{to: 'https://{HOST}:{PORT}', credential: api}}", f"{{to: 'https://{HOST}:{OTHER_PORT}'}}"])
        out = self.asks(box, f"{PORT}/a", f"{OTHER_PORT}/a")
        self.assertEqual(out.count(" 502\n"), 2, out)
        self.assertEqual(self.required.asked + self.old.asked, [])
        self.assertTrue(support.wait_until(lambda: self.required.refused and self.old.refused))
        for words in ("refused the client's certificate", "without a client certificate"):
            self.assertTrue(support.wait_until(lambda w=words: w in json.dumps(box.events())), words)

    def test_pem_goes_nowhere_else(self):
        box = support.Sandbox(policy("{to: 'https://api.lab.test', credential: api}", credentials=f"  api: {{source: 'file:{certificate('agent')}', inject: bearer}}\n"))
        self.addCleanup(box.close)
        self.assertEqual(box.sh("curl -sS -o /dev/null -w '%{http_code}' https://api.lab.test/pem").out, "502")
        self.assertEqual(self.seen("http", path="/pem"), [])


def openssl_has_past():
    """True if this openssl makes certificates that have ended."""
    return subprocess.run(["openssl", "x509", "-help"], capture_output=True, text=True).stderr.find("-not_after") >= 0


class Operated(Certificates, control_case.Control):
    def test_rotate_and_revoke(self):
        """Another certificate means another connection, whatever is idle; a revoked one ends its streams and shows up no more."""
        one, two = certificate("before"), certificate("after")
        file = support.LAB.write("mtls-current", open(one).read(), 0o600)
        text = policy(f"{{to: 'https://{HOST}:{PORT}', credential: api}}", credentials=f"  api: {{source: 'file:{file}', inject: client-certificate, ttl: 0s}}\n")
        netns = self.namespace()
        self.daemon.attach(netns=netns, policy=support.LAB.write("mtls.yaml", text), name="mtls")

        def asks(path):
            return self.inside("mtls", netns, f"https://{HOST}:{PORT}{path}", "-w", "%{http_code}", "-o", "/dev/null").stdout
        self.assertEqual([asks("/1"), asks("/2")], ["200"] * 2, self.daemon.stderr())
        shown = self.call("GET", "/v1/sandboxes/mtls/credentials")[2]["credentials"][0]
        self.assertNotIn("PRIVATE", json.dumps(shown))
        support.LAB.write("mtls-current", open(two).read(), 0o600)
        self.assertEqual(self.call("POST", "/v1/sandboxes/mtls/credentials/rotate", {"credential": "api"})[0], 200)
        self.assertTrue(wait_until(lambda: asks("/3") == "200" and self.required.asked[-1]["name"] == "after"), self.required.asked)
        self.assertEqual([a["name"] for a in self.required.asked][:2], ["before"] * 2)
        done = []
        thread = threading.Thread(target=lambda: done.append(asks("/stream")))
        thread.start()
        self.addCleanup(thread.join)
        self.assertTrue(wait_until(lambda: self.required.asked[-1]["path"] == "/stream"))
        self.assertEqual(self.call("POST", "/v1/sandboxes/mtls/credentials/revoke", {"credential": "api"})[0], 200)
        thread.join(10)
        self.assertEqual(len(done), 1)
        before = len(self.required.asked)
        self.assertEqual(asks("/4"), "502")
        time.sleep(0.1)
        self.assertEqual(len(self.required.asked), before)


if __name__ == "__main__":
    unittest.main()
