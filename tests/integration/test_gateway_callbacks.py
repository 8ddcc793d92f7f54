# SPDX-License-Identifier: Apache-2.0
"""Other proxies that ask the gateway about requests: by path, as Envoy's ext_authz and nginx's auth_request do, and with LangSmith's signed
callback; what they are told, what is refused, and that a sandbox cannot ask."""
import base64
import concurrent.futures
import hashlib
import http.client
import json
import os
import re
import signal
import ssl
import subprocess
import time
import unittest

import lab
import support
from gateway_case import CLIENT4, GATEWAY4, OTHER4, TLS_PORT, Gatewayed
from support import HTTP, SECRET, SLOW, file_credential, sh, wait_until
from token_signer import Key, write_set

ASK_PORT = 9443
URL = f"https://gateway.lab.test:{ASK_PORT}/callback/langsmith"


def credentials():
    return file_credential() + file_credential("sent", "inject: query, query: key") + file_credential("jar", "inject: cookie, cookie: sid")


class CallbackCase(Gatewayed):
    asked = ("{name: api, to: 'https://api.lab.test', methods: [GET, HEAD], credential: api}",
             "{to: 'https://api.lab.test', methods: [PUT], credential: sent}", "{to: 'https://api.lab.test:8443', credential: jar}",
             "{to: 'https://www.lab.test', methods: [POST], json: {model: small}}", "{to: 'https://www.lab.test', methods: [GET]}",
             "http://plain.lab.test")
    options = f"  listen_callbacks: ['{GATEWAY4}:{ASK_PORT}', '127.0.0.1:{ASK_PORT}']\n"

    def setUp(self):
        self.keys = support.LAB.path(f"callback-keys-{time.monotonic_ns()}")
        os.mkdir(self.keys, 0o755)
        self.set = os.path.join(self.keys, "set.json")
        self.key = Key(os.path.join(self.keys, "one"))
        write_set(self.set, self.key)
        super().setUp()
        self.policy = support.LAB.write(f"callback-{time.monotonic_ns()}.yaml", support.policy(*self.asked, credentials=credentials()))
        self.asker = self.create("asks", callback=True)["token"]
        self.assertTrue(wait_until(lambda: self.code(self.ask_about("/whoami")) == 200, 20 * SLOW), self.daemon.stderr())

    def gateway(self):
        return super().gateway() + (f"  signers:\n    - {{name: langsmith, issuer: 'https://langsmith.lab.test', audience: '{URL}', "
                                    f"keys: {self.set}, algorithms: EdDSA, callbacks: true}}\n")

    def context(self):
        return ssl.create_default_context(cafile=self.certificate + ".pem")

    def asking(self, address=GATEWAY4, port=ASK_PORT, **kw):
        c = http.client.HTTPSConnection(address, port, context=self.context(), timeout=20 * SLOW, **kw)
        self.addCleanup(c.close)
        return c

    def send(self, data, port=ASK_PORT, source=None):
        """Returns everything that comes back. source: the client's address, one of loopback's."""
        c = self.asking(port=port, **({"address": "127.0.0.1", "source_address": (source, 0)} if source else {}))
        c.connect()
        c.sock.sendall(data)
        out = self.rest(c.sock)
        c.close()
        return out

    def ask_about(self, path, *fields, host="api.lab.test", method="GET", token=None, scheme="https", form="check", body=b"", port=ASK_PORT):
        token = self.asker if token is None else token
        lines = [f"{method} /{form}/{scheme}{path} HTTP/1.1", "Connection: close", *([f"Host: {host}"] if host else []),
                 *([f"X-Vethguard-Token: {token}"] if token else []), *fields]
        return self.send(("\r\n".join(lines) + "\r\n\r\n").encode("latin-1") + body, port=port)

    @staticmethod
    def seen():
        """What the origins have seen so far."""
        path = support.LAB.path("seen.jsonl")
        if not os.path.exists(path):
            return ""
        with open(path) as f:
            return f.read()

    @staticmethod
    def code(answer):
        return int(answer[9:12]) if answer.startswith(b"HTTP/1.1 ") else answer

    @staticmethod
    def field(answer, name):
        for line in answer.partition(b"\r\n\r\n")[0].split(b"\r\n")[1:]:
            key, _, value = line.partition(b": ")
            if key.lower() == name.encode():
                return value.decode()
        return None


class Checks(CallbackCase):
    def test_allowed(self):
        answer = self.ask_about("/whoami?x=y")
        self.assertEqual((self.field(answer, "authorization"), self.field(answer, "x-vethguard"), self.field(answer, "content-length")),
                         (f"Bearer {SECRET}", "allowed", "0"), answer)
        event = self.daemon.event(HTTP, action_id=1, **{"http_request.url.query_string": "x=y"})
        self.assertEqual((event["unmapped"], event["src_endpoint"]["ip"], event["firewall_rule"]["name"]),
                         ({"credential": "api", "decided_for": "another proxy"}, GATEWAY4, "api"), event)
        self.assertNotIn("http_response", event)
        self.assertIn("for another proxy", event["message"])
        self.assertEqual(self.field(self.ask_about("/x", host="api.lab.test:8443"), "cookie"), f"sid={SECRET}")
        answer = self.ask_about("/x", host="plain.lab.test", scheme="http")
        self.assertEqual((self.code(answer), self.field(answer, "authorization")), (200, None))
        self.assertNotIn("/whoami?x=y", self.seen(), "the request was sent")

    def test_kept(self):
        """Several questions on one connection: also of two kinds, and about a body."""
        c = self.asking()
        for i in range(5):
            c.request("GET", f"/check/https/kept{i}", headers={"Host": "api.lab.test", "X-Vethguard-Token": self.asker})
            r = c.getresponse()
            self.assertEqual((r.status, r.read(), r.headers["authorization"]), (200, b"", f"Bearer {SECRET}"))
            body = json.dumps({"model": "small" if i % 2 else "large"})
            c.request("POST", "/check-body/https/v1", body, {"Host": "www.lab.test", "X-Vethguard-Token": self.asker,
                                                             "Content-Type": "application/json"})
            r = c.getresponse()
            self.assertEqual(r.status, 200 if i % 2 else 403, r.read())
            r.read()

    def test_refused_as_a_sandbox(self):
        """A refusal has the body and the advice that a denied sandbox gets."""
        for path, kw in (("/", {"host": "evil.lab.test"}), ("/", {"method": "DELETE"}), ("/", {"scheme": "http"}),
                         ("/latest/", {"host": "169.254.169.254", "scheme": "http"}), ("/", {"host": "127.0.0.1"}),
                         ("/", {"host": "www.lab.test:8443"}), ("/", {"host": "vethguard.internal"}),
                         ("/proposals", {"host": "vethguard.internal", "method": "POST"})):
            answer = self.ask_about(path, **kw)
            self.assertEqual((self.code(answer), self.field(answer, "x-vethguard")), (403, "denied"), answer)
            told = json.loads(answer.partition(b"\r\n\r\n")[2])
            self.assertTrue(told["advice"] and told["event"], told)
            self.assertNotIn("help", told)
            event = self.daemon.event(HTTP, action_id=2)
            self.assertEqual(event["unmapped"]["decided_for"], "another proxy", event)
        answer = self.ask_about("/x", method="PUT")
        self.assertIn("can add nothing else", json.loads(answer.partition(b"\r\n\r\n")[2])["detail"])
        self.assertEqual(self.daemon.event(HTTP, status_code="callback")["action_id"], 2)
        answer = self.ask_about("/v1", "Content-Length: 0", host="www.lab.test", method="POST")
        self.assertIn("does not send", json.loads(answer.partition(b"\r\n\r\n")[2])["detail"])
        for body, told, status in ((b'{"model": "small"}', "false", 200), (b'{"model": "large"}', "false", 403), (b'{"model": "small"}', "true", 403),
                                   (b"{", "false", 403), (b'{"model": "small", "model": "large"}', "false", 403)):
            answer = self.ask_about("/v1", "Content-Type: application/json", f"Content-Length: {len(body)}", f"X-Envoy-Auth-Partial-Body: {told}",
                                    host="www.lab.test", method="POST", form="check-body", body=body)
            self.assertEqual(self.code(answer), status, (body, told, answer))

    def test_what_is_malformed(self):
        for path, kw in (("/../x", {}), ("/%2e%2e/x", {}), ("/x#y", {}), ("x", {}), ("", {}), ("/x", {"host": ""}), ("/x", {"host": "u@api.lab.test"}),
                         ("/x", {"host": "u:p@api.lab.test"}), ("/x", {"host": "[::1]"}), ("/x", {"scheme": "ftp"}), ("/x", {"form": "other"}),
                         ("/x", {"form": f"s/{self.asker}"})):
            self.assertEqual(self.code(self.ask_about(path, **kw)), 400, (path, kw))
        for fields in (("X-Vethguard-Token: again",), ("Host: api.lab.test",), (f"X-Copy: {self.asker}",), ("Content-Length: 1", "Content-Length: 2"),
                       ("Transfer-Encoding: gzip",), ("bad field",)):
            answer = self.ask_about("/x", *fields)
            self.assertIn(self.code(answer), (400, 501), (fields, answer))
            self.assertNotIn(SECRET.encode(), answer)
        self.assertEqual(self.code(self.ask_about("/x", "X-Large: " + "x" * 17000)), 431)
        for data in (b"CONNECT api.lab.test:443 HTTP/1.1\r\nHost: x\r\nX-Vethguard-Token: %s\r\n\r\n" % self.asker.encode(), b"\x05\x01\x00", b"\x16\x03\x01\x00\x05hello", b"GET http://api.lab.test/ HTTP/1.1\r\nHost: x\r\n\r\n",
                     f"GET / HTTP/1.1\r\nHost: x\r\nProxy-Authorization: Bearer {self.asker}\r\n\r\n".encode()):
            answer = self.send(data)
            self.assertIn(self.code(answer), (400, 401), answer)
        # A preflight is a request as every other: 204 would allow it.
        answer = self.ask_about("/x", "Origin: https://a.test", "Access-Control-Request-Method: GET", method="OPTIONS")
        self.assertEqual(self.code(answer), 403, answer)

    def test_who_may_ask(self):
        """A sandbox's token is not valid for questions, and a proxy's token for nothing else."""
        missing = self.ask_about("/whoami", token="")
        self.assertEqual((self.code(missing), self.field(missing, "www-authenticate")), (401, None))
        for token in ("wrong", self.token, self.asker[:-1], self.asker + "x", "x" * 5000):
            self.assertEqual(self.ask_about("/whoami", token=token), missing, token)
        self.assert_served()
        self.assert_unknown("as a proxy", token=self.asker)
        self.assertTrue(self.send(f"GET /s/{self.asker}/https/api.lab.test/whoami HTTP/1.1\r\nHost: g\r\nConnection: close\r\n\r\n".encode(),
                                  port=TLS_PORT).startswith(b"HTTP/1.1 401"))
        self.assertEqual(self.code(self.send(f"GET /check/https/whoami HTTP/1.1\r\nHost: api.lab.test\r\nX-Vethguard-Token: {self.asker}\r\n"
                                             "Connection: close\r\n\r\n".encode(), port=TLS_PORT)), 400)
        # Networks, an end, a revocation.
        elsewhere = self.create("elsewhere", callback=True, **{"from": [OTHER4 + "/32"]})["token"]
        self.assertEqual(self.ask_about("/whoami", token=elsewhere), missing)
        short = self.create("short", callback=True, ttl_s=1)["token"]
        self.assertTrue(wait_until(lambda: self.code(self.ask_about("/whoami", token=short)) == 401, 30 * SLOW))
        c = self.asking()
        ask = {"Host": "api.lab.test", "X-Vethguard-Token": self.asker}
        c.request("GET", "/check/https/x", headers=ask)
        self.assertEqual((c.getresponse().read(), c.sock is None), (b"", False))
        self.assertEqual(self.daemon.call("DELETE", "/v1/sessions/asks")[0], 200)
        self.assertEqual(self.ask_about("/whoami"), missing)
        with self.assertRaises((OSError, http.client.HTTPException)):  # the kept connection has ended, too
            c.request("GET", "/check/https/x", headers=ask)
            if c.getresponse().status == 401:
                raise OSError
        for members, status, words in (({"callback": "yes"}, 422, "callback"), ({"callback": True, "by_address": True, "from": ["192.0.2.1/32"]}, 422, "prove it"),
                                       ({"callback": True, "by_address": True}, 422, "address")):
            code, _, answer = self.daemon.call("POST", "/v1/sessions", {"name": "bad", "policy": self.policy, **members})
            self.assertEqual(code, status, answer)
            self.assertIn(words, json.dumps(answer))

    def test_from_elsewhere(self):
        """Questions by curl, over HTTP/2, from another host; and to a paused session."""
        def ask(*argv):
            return self.there("curl", "-sS", "-m", "20", "--cacert", self.certificate + ".pem", "-o", "/dev/null", "-w", "%{http_code} %{http_version} %header{authorization}",
                              "-H", f"X-Vethguard-Token: {self.asker}", "-H", "Host: api.lab.test", *argv).stdout
        url = f"https://{GATEWAY4}:{ASK_PORT}/check/https/whoami"
        self.assertEqual(ask("--http2", url), f"200 2 Bearer {SECRET}")
        self.assertEqual(ask("--http2", "-X", "DELETE", url), "403 2 ")
        self.assertEqual(ask("-I", url), f"200 2 Bearer {SECRET}")
        self.assertEqual(self.daemon.event(HTTP, action_id=2)["src_endpoint"]["ip"], CLIENT4)
        self.assertEqual(self.daemon.call("POST", "/v1/sandboxes/asks/pause", {})[0], 200)
        self.assertTrue(wait_until(lambda: ask(url).startswith("503"), 10 * SLOW), ask(url))
        self.assertEqual(self.daemon.call("POST", "/v1/sandboxes/asks/resume", {})[0], 200)
        self.assertTrue(wait_until(lambda: ask(url).startswith("200"), 10 * SLOW), ask(url))


class ByCertificate(CallbackCase):
    """The asking proxy proves its session with a certificate. A sandbox's certificate is not valid for questions, nor the proxy's for traffic."""
    options = CallbackCase.options + "  client_certificates: true\n"

    def made(self, name, **members):
        path = os.path.join(self.dir, name)
        sh("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "30", "-keyout", path + ".key",
           "-out", path + ".pem", "-subj", f"/CN={name}")
        with open(path + ".pem") as f:
            digest = hashlib.sha256(ssl.PEM_cert_to_DER_cert(f.read())).hexdigest()
        self.assertIsNone(self.create(name, certificate_sha256=digest, **members)["token"])
        return path

    def by(self, path, port, url, *argv):
        return self.there("curl", "-sS", "-m", "20", "--cacert", self.certificate + ".pem", "--cert", path + ".pem", "--key", path + ".key", "-o", "/dev/null",
                          "-w", "%{http_code} %header{authorization}", "-H", "Host: api.lab.test", *argv, f"https://{GATEWAY4}:{port}{url}").stdout

    def test_proved(self):
        proxy, sandbox = self.made("proxy", callback=True), self.made("sandbox")
        ask = "/check/https/whoami"
        self.assertTrue(wait_until(lambda: self.by(proxy, ASK_PORT, ask) == f"200 Bearer {SECRET}", 20 * SLOW), self.by(proxy, ASK_PORT, ask))
        self.assertEqual(self.by(sandbox, ASK_PORT, ask), "401 ")
        self.assertEqual(self.by(proxy, ASK_PORT, ask, "-H", "X-Vethguard-Token: wrong"), "401 ")
        plain = ("--proxy", f"https://{GATEWAY4}:{TLS_PORT}", "--proxy-cacert", self.certificate + ".pem", "http://plain.lab.test/")
        for path, code in ((proxy, "407"), (sandbox, "200")):
            r = self.there("curl", "-sS", "-o", "/dev/null", "-w", "%{http_code}", "--proxy-cert", path + ".pem", "--proxy-key", path + ".key", *plain)
            self.assertEqual(r.stdout, code, r)


NGINX = """daemon off; user root; worker_processes 1; pid {d}/nginx-asks.pid; error_log {d}/nginx-asks.err;
events {{ worker_connections 64; }}
http {{
	access_log off; client_body_temp_path {d}/asks-body; proxy_temp_path {d}/asks-proxy; fastcgi_temp_path {d}/asks-f;
	uwsgi_temp_path {d}/asks-u; scgi_temp_path {d}/asks-s;
	server {{
		listen 127.0.0.1:{port};
		location / {{
			auth_request /vethguard;
			auth_request_set $authorization $upstream_http_authorization;
			proxy_set_header Authorization $authorization;
			proxy_set_header Host $host;
			proxy_ssl_server_name on; proxy_ssl_name $host;
			proxy_pass https://{origin}:443;
		}}
		location = /vethguard {{
			internal;
			proxy_pass https://{gateway}:{asks}/check/https$request_uri;
			proxy_method $request_method;
			proxy_pass_request_body off;
			proxy_set_header Content-Length "";
			proxy_set_header Host $host;
			proxy_set_header X-Vethguard-Token {token};
			proxy_ssl_name gateway.lab.test; proxy_ssl_verify on; proxy_ssl_trusted_certificate {certificate}.pem;
		}}
	}}
}}
"""
NGINX_PORT = 9080


@unittest.skipUnless(os.path.exists("/usr/sbin/nginx"), "needs nginx")
class Nginx(CallbackCase):
    """A real proxy, which asks by its module auth_request before it sends."""

    def setUp(self):
        super().setUp()
        config = support.LAB.write("nginx-asks.conf", NGINX.format(d=support.LAB.dir, port=NGINX_PORT, origin=lab.ORIGIN4, gateway=GATEWAY4, asks=ASK_PORT,
                                                                   token=self.asker, certificate=self.certificate))
        nginx = subprocess.Popen(["/usr/sbin/nginx", "-c", config, "-e", support.LAB.path("nginx-asks.err")], stdin=subprocess.DEVNULL)
        self.addCleanup(nginx.wait)
        self.addCleanup(nginx.terminate)

    def get(self, path, host="api.lab.test", method="GET", **headers):
        c = http.client.HTTPConnection("127.0.0.1", NGINX_PORT, timeout=30 * SLOW)
        self.addCleanup(c.close)
        try:
            c.request(method, path, headers={"Host": host, **headers})
            r = c.getresponse()
            return r.status, r.read()
        except OSError as e:
            return 0, str(e).encode()

    def test_asks(self):
        self.assertTrue(wait_until(lambda: self.get("/whoami")[0] == 200, 10 * SLOW), self.get("/whoami"))
        self.assertIn(b'"authenticated": true', self.get("/whoami")[1])
        self.assertIn(b'"authenticated": true', self.get("/whoami", Authorization="Bearer own")[1])
        for path, kw in (("/whoami", {"method": "DELETE"}), ("/", {"host": "evil.lab.test"}), ("/v1", {"host": "www.lab.test", "method": "POST"}),
                         ("/whoami", {"method": "PUT"})):
            status, body = self.get(path, **kw)
            self.assertEqual(status, 403, (path, kw, body))
        # Fields of a question that the sandbox sends itself change nothing.
        spoofed = {"X-Vethguard-Token": self.token, "X-Envoy-Auth-Partial-Body": "false"}
        self.assertEqual(self.get("/v1", host="www.lab.test", method="POST", **spoofed)[0], 403)
        self.assertEqual(self.get("/whoami", **spoofed)[0], 200)
        self.assertEqual(self.daemon.call("DELETE", "/v1/sessions/asks")[0], 200)
        self.assertEqual(self.get("/whoami")[0], 401)


class LangSmith(CallbackCase):
    """The player sends what LangSmith's documentation and SDK say that its proxy sends."""

    def body(self, request=None, **more):
        request = {"method": "GET", "url": "https://api.lab.test/whoami?x=y", "scheme": "https", "host": "api.lab.test", "path": "/whoami", "query": "x=y",
                   "headers": {"Accept": ["*/*"]}, "body_base64": "", "body_truncated": False, **(request or {})}
        return json.dumps({"host": "api.lab.test", "port": 443, "identity": {"tenant_id": "t", "sandbox_id": "s"}, "request": request, **more}).encode()

    def sign(self, body, key=None, header=None, **claims):
        now = int(time.time())
        return (key or self.key).token({"iss": "https://langsmith.lab.test", "sub": "langsmith-sandbox-callback", "aud": [URL], "iat": now, "nbf": now,
                                        "exp": now + 300, "jti": str(time.monotonic_ns()), "body_sha256": hashlib.sha256(body).hexdigest(), **claims}, header)

    def post(self, body, signature, *fields, token=None, length=None, method="POST", path="/callback/langsmith", source=None):
        token = self.asker if token is None else token
        lines = [f"{method} {path} HTTP/1.1", "Host: gateway.lab.test", "Connection: close", "Content-Type: application/json",
                 *([f"X-Vethguard-Token: {token}"] if token else []), *([f"X-LangSmith-Signature-JWT: {signature}"] if signature else []),
                 f"Content-Length: {len(body) if length is None else length}", *fields]
        return self.send(("\r\n".join(lines) + "\r\n\r\n").encode("latin-1") + body, source=source)

    def call(self, request=None, **more):
        body = self.body(request, **more)
        return self.post(body, self.sign(body))

    @staticmethod
    def told(answer):
        return json.loads(answer.partition(b"\r\n\r\n")[2])

    def test_allowed(self):
        answer = self.call()
        self.assertEqual((self.code(answer), self.told(answer)), (200, {"headers": {"authorization": f"Bearer {SECRET}"}}))
        event = self.daemon.event(HTTP, action_id=1, **{"http_request.url.query_string": "x=y"})
        self.assertEqual(event["unmapped"], {"credential": "api", "decided_for": "another proxy"}, event)
        answer = self.call({"url": "http://plain.lab.test/", "scheme": "http", "host": "plain.lab.test", "path": "/", "query": ""}, host="plain.lab.test", port=80)
        self.assertEqual((self.code(answer), self.told(answer)), (200, {"headers": {}}), answer)
        about = {"method": "POST", "url": "https://www.lab.test/v1", "host": "www.lab.test:443", "path": "/v1", "headers": {"Content-Type": ["application/json"]}}
        for text, cut, status in ((b'{"model": "small"}', False, 200), (b'{"model": "large"}', False, 403), (b'{"model": "small"}', True, 403)):
            answer = self.call({**about, "body_base64": base64.b64encode(text).decode(), "body_truncated": cut}, host="www.lab.test")
            self.assertEqual(self.code(answer), status, answer)
        large = base64.b64encode(json.dumps({"model": "small", "x": "y" * 900000}).encode()).decode()
        self.assertEqual(self.code(self.call({**about, "body_base64": large}, host="www.lab.test")), 200)
        c = self.asking()
        for _ in range(3):  # a kept connection
            body = self.body()
            c.request("POST", "/callback/langsmith", body, {"X-Vethguard-Token": self.asker, "X-LangSmith-Signature-JWT": self.sign(body)})
            r = c.getresponse()
            self.assertEqual((r.status, json.loads(r.read())), (200, {"headers": {"authorization": f"Bearer {SECRET}"}}))
        body = self.body()
        r = self.there("curl", "-sS", "-m", "20", "--http2", "--cacert", self.certificate + ".pem", "-H", f"X-Vethguard-Token: {self.asker}", "-H",
                       f"X-LangSmith-Signature-JWT: {self.sign(body)}", "--data-binary", body.decode(), f"https://{GATEWAY4}:{ASK_PORT}/callback/langsmith")
        self.assertEqual(json.loads(r.stdout), {"headers": {"authorization": f"Bearer {SECRET}"}}, r)

    def test_denied(self):
        for request, more in (({"method": "DELETE"}, {}), ({"method": "PUT"}, {}),
                              ({"url": "https://evil.lab.test/", "host": "evil.lab.test", "path": "/"}, {"host": "evil.lab.test"}),
                              ({"headers": {"Upgrade": ["websocket"], "Connection": ["Upgrade"], "Sec-Websocket-Version": ["13"],
                                            "Sec-Websocket-Key": ["AAAAAAAAAAAAAAAAAAAAAA=="]}}, {})):
            answer = self.call(request, **more)
            self.assertEqual(self.code(answer), 403, (request, answer))
            self.assertTrue(self.told(answer)["advice"])

    def test_signatures(self):
        body = self.body()
        missing = self.post(body, "")
        self.assertEqual(self.code(missing), 401)
        stranger = Key(os.path.join(self.keys, "stranger"))
        rsa = Key(os.path.join(self.keys, "rsa"), "RS256")
        now = int(time.time())
        good = self.sign(body)
        bad = {"another key": self.sign(body, key=stranger), "another algorithm": self.sign(body, key=rsa), "nobody": self.sign(body, header={"alg": "none"}),
               "another body": self.sign(body + b" "), "no body": self.sign(body, body_sha256=None), "half a hash": self.sign(body, body_sha256="ab"),
               "letters": self.sign(body, body_sha256="x" * 64), "another url": self.sign(body, aud=[URL + "/"]), "another issuer": self.sign(body, iss="https://x"),
               "a user": self.sign(body, sub="user-123"), "no subject": self.sign(body, sub=None), "expired": self.sign(body, exp=now - 1),
               "too long": self.sign(body, exp=now + 7200), "no end": self.sign(body, exp=None), "ahead": self.sign(body, nbf=now + 300),
               "cut": good[:-2], "changed": good[:-6] + ("A" if good[-6] != "A" else "B") + good[-5:], "garbage": "a.b.c", "long": "x" * 9000,
               "no dot": "x" * 200, "a dot": ".", "one dot": good.rpartition(".")[0], "claims alone": good.split(".")[1]}
        with concurrent.futures.ThreadPoolExecutor(len(bad)) as pool:  # each from an address of its own: many wrong ones of one are slowed
            answers = pool.map(lambda i, signature: self.post(body, signature, source=f"127.0.1.{i + 1}"), range(len(bad)), bad.values())
            for why, answer in zip(bad, answers, strict=True):
                self.assertEqual(answer, missing, why)
        self.assertEqual(self.code(self.post(body, good)), 200)
        self.assertEqual(self.post(body, good), missing, "replayed")
        self.assertEqual(self.post(body, self.sign(body), token=self.token), missing, "a sandbox's token")
        self.assertEqual(self.post(body, self.sign(body), token="wrong"), missing)
        self.assertEqual(self.post(body, self.sign(body), token=""), missing)
        self.assertEqual(self.code(self.post(body, self.sign(body), f"X-LangSmith-Signature-JWT: {good}")), 400)
        # A token of a session is no signature, and a signature no token of a session.
        self.assert_unknown("a signature", token=self.sign(body))
        self.assertEqual(self.daemon.call("DELETE", "/v1/sessions/asks")[0], 200)
        self.assertEqual(self.post(body, self.sign(body)), missing, "revoked")

    def test_what_is_malformed(self):
        for request, more in (({"url": "https://u:p@api.lab.test/whoami"}, {}), ({"url": "/whoami"}, {}), ({"url": "https://evil.lab.test/whoami"}, {}),
                              ({"host": "evil.lab.test"}, {}), ({}, {"host": "evil.lab.test"}), ({}, {"port": 444}), ({"scheme": "http"}, {}),
                              ({"path": "/other"}, {}), ({"url": "https://api.lab.test/../whoami"}, {}), ({"method": "CONNECT"}, {}), ({"method": "G E T"}, {}),
                              ({"headers": {"A": "b"}}, {}), ({"headers": {"A": ["b\r\nC: d"]}}, {}), ({"headers": {"A": ["b"], "a": ["c"]}}, {}),
                              ({"headers": {"a b": ["c"]}}, {}), ({"body_base64": "?"}, {}), ({"body_truncated": 0}, {})):
            answer = self.call(request, **more)
            self.assertEqual(self.code(answer), 400, (request, more, answer))
            self.assertNotIn(SECRET.encode(), answer)
        for body in (b"{", b"[]", b"7", b"{}", b"", b'{"host": "a", "host": "b"}', self.body().replace(b'"method"', b'"method": "GET", "method"', 1),
                     self.body() + b"x", b"\xff" + self.body()):
            self.assertEqual(self.code(self.post(body, self.sign(body))), 400, body)
        hosts = json.dumps({"host": "api.lab.test", "port": 443, "identity": {"tenant_id": "t", "sandbox_id": "s"}}).encode()
        answer = self.post(hosts, self.sign(hosts))
        self.assertEqual((self.code(answer), b"full_request" in answer), (400, True), answer)
        body = self.body()
        self.assertEqual(self.code(self.post(body, self.sign(body), length=(2 << 20) + 1)), 413)
        self.assertEqual(self.code(self.post(body, self.sign(body), method="PUT")), 400)
        self.assertEqual(self.code(self.post(body, self.sign(body), path="/callback/other")), 400)
        # A body that never comes is waited for as long as a handshake.
        begun = time.monotonic()
        self.assertEqual(self.post(body[:10], self.sign(body), length=len(body)), b"")
        self.assertGreater(time.monotonic() - begun, 1)
        self.assertEqual(self.code(self.call()), 200)

    def test_a_worker_that_hangs(self):
        """Bodies count until the worker has them: beyond 16 MiB the gateway takes no more, and all that it took is answered later."""
        about = {"method": "POST", "url": "https://www.lab.test/v1", "host": "www.lab.test:443", "path": "/v1", "headers": {"Content-Type": ["application/json"]}}
        about["body_base64"] = base64.b64encode(json.dumps({"model": "small", "x": "y" * 900000}).encode()).decode()
        bodies = [self.body(about, host="www.lab.test", pad="x" * 700000 + str(i)) for i in range(10)]
        signed = [(body, self.sign(body)) for body in bodies]
        worker = self.daemon.call("GET", "/v1/sessions/asks")[2]["worker"]["pid"]
        os.kill(worker, signal.SIGSTOP)
        try:
            with concurrent.futures.ThreadPoolExecutor(8) as pool:
                answers = [pool.submit(self.post, *question) for question in signed[:8]]
                self.assertTrue(wait_until(lambda: self.unread() == [0] * 8, 20 * SLOW), self.unread())
                beyond = self.post(*signed[8])
                os.kill(worker, signal.SIGCONT)
                self.assertEqual({self.code(a.result()) for a in answers}, {200})
        finally:
            os.kill(worker, signal.SIGCONT)
        self.assertEqual(self.code(beyond), 503)
        self.assertEqual(self.code(self.post(*signed[9])), 200, "there is room again")

    @staticmethod
    def unread():
        """Of each large question at the gateway: how many of its bytes the gateway has not read; -1: they have not all come."""
        found = []
        for line in support.sh("ss", "-tniHO", "state", "established", f"sport = :{ASK_PORT}").splitlines():
            received = re.search(r"bytes_received:(\d+)", line)
            if received and int(received[1]) > 100000:
                found.append(int(line.split()[0]) if int(received[1]) > 1900000 else -1)
        return found

    def test_nothing_is_kept(self):
        """No file of the daemon has the token, a signature or the credential."""
        body = self.body()
        signature = self.sign(body)
        self.assertEqual(self.code(self.post(body, signature)), 200)
        self.daemon.stop()
        for root, _, names in os.walk(self.daemon.dir):
            for name in names:
                with open(os.path.join(root, name), "rb") as f:
                    data = f.read()
                for secret in (self.asker, signature, SECRET):
                    self.assertNotIn(secret.encode(), data, name)


if __name__ == "__main__":
    unittest.main()
