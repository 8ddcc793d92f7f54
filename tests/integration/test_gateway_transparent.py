# SPDX-License-Identifier: Apache-2.0
"""The gateway's transparent TLS: clients that know no proxy, whose address or outer certificate proves the session."""
import json
import os
import socket
import ssl
import subprocess
import time

import support
from gateway_case import CLIENT4, GATEWAY4, NETWORK4, TLS_PORT, Gatewayed
from support import HTTP, NETWORK, SLOW, sh, wait_until

HELLO_PORT = 4443


class Transparent(Gatewayed):
    options = f"  listen_transparent: ['{GATEWAY4}:{HELLO_PORT}', '127.0.0.1:{HELLO_PORT}']\n  client_certificates: true\n"

    def setUp(self):
        super().setUp()
        self.create("by-address", by_address=True, **{"from": [CLIENT4 + "/32"]})

    def asks(self, url="https://api.lab.test/whoami", *argv, **kw):
        """A client with no proxy at all: its name leads to the gateway."""
        host = url.split("/")[2].split(":")[0]
        return self.there("curl", "-sS", "-m", "20", "--cacert", self.ca, "--connect-to", f"{host}:443:{GATEWAY4}:{HELLO_PORT}", url, *argv, **kw)

    def served(self):
        r = self.asks()
        return r.returncode == 0 and json.loads(r.stdout).get("authenticated") is True

    def alert(self, data, address=GATEWAY4, tls=None):
        """Returns the alert that answers these bytes, or all that came."""
        s = tls or socket.create_connection((address, HELLO_PORT), timeout=20 * SLOW)
        self.addCleanup(s.close)
        s.sendall(data)
        out = self.rest(s)
        return out[6] if len(out) == 7 and out[:6] == b"\x15\x03\x03\0\x02\x02" else out

    def first(self, data):
        s = socket.create_connection(("127.0.0.1", HELLO_PORT), timeout=20 * SLOW)
        self.addCleanup(s.close)
        s.sendall(data)
        return s.recv(1)

    @staticmethod
    def hello(name="api.lab.test"):
        """Returns a ClientHello of Python's."""
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        context = ssl.create_default_context()
        context.check_hostname = name is not None
        client = context.wrap_bio(incoming, outgoing, server_hostname=name) if name else None
        if client is None:
            context.check_hostname = False
            client = context.wrap_bio(incoming, outgoing)
        try:
            client.do_handshake()
        except ssl.SSLWantReadError:
            pass
        return outgoing.read()

    def test_by_address(self):
        self.assertTrue(wait_until(self.served, 10 * SLOW), (self.asks(), self.daemon.stderr()))
        event = self.daemon.event(HTTP, action_id=1, **{"http_request.url.path": "/whoami"})
        self.assertEqual((event["src_endpoint"]["ip"], event["dst_endpoint"]["hostname"], event["dst_endpoint"]["port"]),
                         (CLIENT4, "api.lab.test", 443), event)
        r = self.asks("https://api.lab.test/whoami", "--http2", "-w", "%{http_version}")
        self.assertTrue(r.stdout.endswith("2"), r)
        r = self.asks("https://api.lab.test/x", "-X", "DELETE", "-o", "/dev/null", "-w", "%{http_code}")
        self.assertEqual(r.stdout, "403", r)
        # What no rule mentions is refused before TLS begins, and the client is told.
        r = self.asks("https://evil.lab.test/")
        self.assertEqual((r.returncode != 0, "access denied" in r.stderr), (True, True), r)
        self.daemon.event(NETWORK, action_id=2, **{"dst_endpoint.hostname": "evil.lab.test"})
        # Other names that lead to the same host, with another Host inside: judged as everywhere.
        r = self.asks("https://api.lab.test/", "-H", "Host: evil.lab.test", "-o", "/dev/null", "-w", "%{http_code}")
        self.assertNotEqual(r.stdout, "200", r)

    def test_redirected(self):
        """A router that leads all of port 443 here, whatever the address: the name alone counts."""
        self.assertTrue(wait_until(self.served, 10 * SLOW), self.daemon.stderr())
        self.there("ip", "route", "add", "default", "via", GATEWAY4)
        rules = f"table ip t {{ chain c {{ type nat hook output priority -100; tcp dport 443 dnat to {GATEWAY4}:{HELLO_PORT}\n}}\n}}\n"
        r = self.there("nft", "-f", "-", input=rules)
        self.assertEqual(r.returncode, 0, r)
        for address in ("192.0.2.1", "198.51.100.7"):
            r = self.there("curl", "-sS", "-m", "20", "--cacert", self.ca, "--resolve", f"api.lab.test:443:{address}", "https://api.lab.test/whoami")
            self.assertIs(json.loads(r.stdout or "{}").get("authenticated"), True, r)

    def test_nobody(self):
        """A client at another address, or at one whose session needs a token, gets an alert."""
        self.create("other", **{"from": ["127.0.0.0/8"]})
        self.assertEqual(self.alert(self.hello(), "127.0.0.1"), 49)
        self.assertTrue(wait_until(self.served, 10 * SLOW))
        self.assertEqual(self.daemon.call("DELETE", "/v1/sessions/by-address")[0], 200)
        r = self.asks()
        self.assertEqual((r.returncode != 0, "access denied" in r.stderr), (True, True), r)

    def test_what_is_refused(self):
        host = {"by_address": True, "from": ["127.0.0.1/32"]}
        self.create("host", **host)
        good = self.hello()
        self.assertTrue(wait_until(lambda: self.first(good) == b"\x16", 10 * SLOW))
        for data, alert in ((self.hello(None), 112), (self.hello("127.0.0.1"), 112), (b"GET / HTTP/1.1\r\n\r\n", 10), (b"\x05\x01\x00", 10),
                            (b"\x16\x03\x01\x00\x00", 10), (b"\x16\x03\x01\xff\xff" + bytes(100), 22), (good[:5] + b"\x02" + good[6:], 10),
                            (self.hello("evil.lab.test"), 49), (self.hello("not-known.lab.test"), 49), (bytes(3), 10)):
            self.assertEqual(self.alert(data, "127.0.0.1"), alert, data[:60])
        begun = time.monotonic()
        slow = [socket.create_connection(("127.0.0.1", HELLO_PORT), timeout=20 * SLOW) for _ in range(4)]
        for s, data in zip(slow, (b"", good[:1], good[:40], good[:-1])):
            self.addCleanup(s.close)
            s.sendall(data)
        self.assertEqual([self.rest(s) for s in slow], [b""] * 4)
        self.assertGreater(time.monotonic() - begun, 1.5)
        s = socket.create_connection(("127.0.0.1", HELLO_PORT), timeout=20 * SLOW)
        self.addCleanup(s.close)
        for byte in good:  # byte by byte
            s.sendall(bytes([byte]))
        self.assertEqual(s.recv(1), b"\x16")
        # What TLS has inside is not spoken here, and this is not spoken there.
        self.assertTrue(self.say(good, tls=False).startswith(b"HTTP/1.1 400"))

    def test_requests_refused(self):
        for members, status, text in (
                ({"by_address": True}, 422, "which address"), ({"by_address": True, "from": []}, 422, "which address"),
                ({"by_address": True, "from": ["10.77.0.0/24"]}, 409, "by-address"), ({"by_address": True, "from": ["10.0.0.0/8"]}, 409, "by-address"),
                ({"by_address": True, "from": [CLIENT4 + "/32"]}, 409, "by-address"),
                ({"by_address": True, "from": ["192.0.2.1/32"], "certificate_sha256": "0" * 64}, 422, "one proof"),
                ({"by_address": "yes", "from": ["192.0.2.1/32"]}, 422, "by_address")):
            got, _, answer = self.daemon.call("POST", "/v1/sessions", {"name": "no", "policy": self.policy, **members})
            self.assertEqual((got, text in json.dumps(answer)), (status, True), (members, answer))
        self.create("with-token", **{"from": [NETWORK4]})  # a network is a bound only, so it may be the same
        answer = self.create("elsewhere", by_address=True, **{"from": ["192.0.2.1/32"]})
        self.assertIsNone(answer["token"])

    def test_restarted(self):
        self.assertTrue(wait_until(self.served, 10 * SLOW), self.daemon.stderr())
        self.daemon.stop()
        self.daemon.start()
        self.assertTrue(wait_until(self.served, 20 * SLOW), self.daemon.stderr())

    def test_by_certificate(self):
        """A TLS connection in another one, whose client has shown its certificate: as socat or a sidecar makes them."""
        path = os.path.join(self.dir, "sidecar")
        sh("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "30", "-keyout", path + ".key",
           "-out", path + ".pem", "-subj", "/CN=sidecar")
        out = sh("openssl", "x509", "-in", path + ".pem", "-noout", "-fingerprint", "-sha256")
        self.create("sidecar", certificate_sha256=(out if isinstance(out, str) else out.stdout).strip().split("=")[1].replace(":", "").lower())
        sidecar = subprocess.Popen(["ip", "netns", "exec", self.elsewhere, "socat", "TCP-LISTEN:7443,bind=127.0.0.1,fork,reuseaddr",
                                    f"OPENSSL:{GATEWAY4}:{TLS_PORT},cert={path}.pem,key={path}.key,cafile={self.certificate}.pem,"
                                    "commonname=gateway.lab.test"])
        self.addCleanup(sidecar.wait)
        self.addCleanup(sidecar.terminate)

        def served():
            r = self.there("curl", "-sS", "-m", "20", "--cacert", self.ca, "--connect-to", "api.lab.test:443:127.0.0.1:7443", "https://api.lab.test/whoami")
            return r.returncode == 0 and json.loads(r.stdout).get("authenticated") is True

        self.assertTrue(wait_until(served, 10 * SLOW), self.daemon.stderr())
        outer = self.connect()  # without a certificate
        self.assertEqual(self.alert(self.hello(), tls=outer), 49)
