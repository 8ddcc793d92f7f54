# SPDX-License-Identifier: Apache-2.0
"""A service that hands out credentials: an OAuth 2.0 token endpoint, a Vault (KV 1 and 2, dynamic secrets, AppRole), GitHub's
installation tokens; and how such services fail. What it answers has the documented shapes of each; what it was asked is kept."""
import base64
import gzip
import http.server
import json
import os
import ssl
import threading
import time
import urllib.parse

import lab
import support

PORT, HOST = 8447, "login.wild.lab.test"
URL = f"https://{HOST}:{PORT}"


class Served:
    """Before a test case: its class has the service."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.service = support.in_namespace("outside", lambda: Service(lab.ORIGIN4, PORT, support.LAB.dir))

    @classmethod
    def tearDownClass(cls):
        cls.service.close()
        super().tearDownClass()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        self.answer()

    def do_POST(self):
        self.answer()

    def answer(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        service = self.server.service
        with service.lock:
            service.asked.append({"method": self.command, "path": self.path, "body": body.decode(), "headers": dict(self.headers.items())})
        if self.path == "/bundle":
            return self.answer_bundle(service)
        fault = self.path.split("/")[1]
        if hasattr(self, "fault_" + fault):
            getattr(self, "fault_" + fault)()
            return
        if service.throttled > 0:
            service.throttled -= 1
            self.send(429, b'{"errors": ["slow down"]}', ("Retry-After", str(service.retry_after)))
            return
        status, answer = service.route(self.command, self.path, body.decode(), self.headers)
        if status == 204:
            self.send_response(204)
            self.end_headers()
            return
        if service.etag and (self.command, self.path) == ("GET", "/keys?of=control"):
            return self.answer_keys(status, answer, service.etag)
        self.send(status, json.dumps(answer).encode())

    def answer_keys(self, status, answer, etag):
        if self.headers.get("If-None-Match") == etag or status == 304:
            self.send_response(304)
            self.send_header("ETag", etag)
            self.end_headers()
        else:
            self.send(status, json.dumps(answer).encode(), ("ETag", etag))

    def answer_bundle(self, service):
        """Serves a signed bundle as a file server does. way: how that goes wrong."""
        body, way, etag = service.bundle, service.bundle_way, service.bundle_etag
        if way == "304" or (not way and etag and self.headers.get("If-None-Match") == etag):
            self.send_response(304)
            self.end_headers()
        elif way == "redirect":
            self.send(302, b"", ("Location", "/bundle?elsewhere"))
        elif way == "slow":
            self.begin()
            self.wfile.write(body[:100])
            service.release.wait(60)
        elif way == "cut":
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body[:-10])
            self.close_connection = True
        else:
            service.bundles_sent += 1
            self.send(int(way) if way else 200, body, *([("ETag", etag)] if etag else []))

    def send(self, status, body, *fields):
        self.send_response(status)
        for name, value in fields:
            self.send_header(name, value)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def fault_slow(self):
        self.server.service.release.wait(60)
        self.send(200, b'{"access_token": "too-late-token"}')

    def fault_redirect(self):
        self.send(302, b"{}", ("Location", "/oauth/token"))

    def fault_busy(self):
        self.send(429, b'{"error": "slow_down"}', ("Retry-After", "30"))

    def fault_huge(self):
        self.send(200, b'{"access_token": "' + b"x" * (2 << 20) + b'"}')

    def fault_long(self):
        self.send(200, b'{"access_token": "' + b"x" * 70000 + b'"}')

    def fault_html(self):
        self.send(200, b"<html>Sign in</html>")

    def fault_empty(self):
        self.send(200, b'{"token_type": "bearer"}')

    def fault_number(self):
        self.send(200, b'{"access_token": 12345678}')

    def fault_twice(self):
        self.send(200, b'{"access_token": "first-token-1", "access_token": "second-token-2"}')

    def fault_lines(self):
        self.send(200, b'{"access_token": "one\\r\\nX-Injected: two"}')

    def fault_gate(self):
        self.server.service.gate.wait(60)
        self.send(200, json.dumps({"access_token": self.server.service.next("gate")}).encode())

    def fault_hold(self):
        self.server.service.hold.wait(60)
        self.send(200, json.dumps({"access_token": self.server.service.next("hold")}).encode())

    def fault_trickle(self):
        self.begin()
        while not self.server.service.release.wait(0.05):
            self.wfile.write(b" ")

    def fault_flood(self):
        self.begin()
        while True:
            self.wfile.write(b" " * 65536)

    def fault_headers(self):
        self.send_response(200)
        for i in range(40000):
            self.wfile.write(b"X-%d: " % i + b"y" * 16384 + b"\r\n")
        self.send(200, b'{"access_token": "after-many-fields"}')

    def fault_continue(self):
        while not self.server.service.release.is_set():
            self.wfile.write(b"HTTP/1.1 100 Continue\r\n\r\n" * 1000)

    def fault_gzip(self):
        self.send(200, gzip.compress(b'{"access_token": "' + b"x" * (8 << 20) + b'"}'), ("Content-Encoding", "gzip"))

    def fault_deep(self):
        self.send(200, b"[" * (1 << 20))

    def fault_repeats(self):
        """The request's body, raw and decoded."""
        login = base64.b64decode(self.headers.get("Authorization", "Basic ")[6:]).decode()
        text = f"no {self.headers.get('Authorization')} {login} {urllib.parse.unquote_plus(login)} here"
        self.send(400, json.dumps({"error": "bad", "error_description": text}).encode())

    def begin(self):
        self.send_response(200)
        self.end_headers()

    def fault_cut(self):
        self.send_response(200)
        self.send_header("Content-Length", "1000")
        self.end_headers()
        self.wfile.write(b'{"access_token": "half-a-tok')
        self.close_connection = True

    def fault_error(self):
        self.send(400, b'{"error": "invalid_client", "error_description": "no such\\u001b[2J client"}')


class Server(http.server.ThreadingHTTPServer):
    def handle_error(self, *_):
        """Clients go away: those are the tests."""


class Service:
    """Listens with the lab's certificate. expires_in: lifetime of OAuth tokens and leases."""

    def __init__(self, address, port, folder):
        self.asked, self.lock, self.release, self.count, self.expires_in = [], threading.Lock(), threading.Event(), 0, 3600
        self.gate, self.hold = threading.Event(), threading.Event()  # /gate and /hold answer once it is set
        self.login_lives = 0  # seconds of what AppRole hands out
        self.refresh_token, self.rotates, self.refreshed = "refresh-token-0000", True, []
        self.spoiled = False  # what comes beside the next refresh token is of no use
        self.leases = {}  # of Vault: id -> "live" or "revoked"
        self.lease_fault = None  # (status, JSON) for the next questions about leases
        self.renewable, self.renewed_for, self.retry_after = True, 0, 30
        self.key_set = 404, {}  # (status, JSON) of the answer with a token signer's keys
        self.etag = None  # of that answer; None: it has none
        self.bundle, self.bundle_way, self.bundle_etag, self.bundles_sent = b"", "404", None, 0
        self.throttled = 0  # how many questions get 429
        self.server = Server((address, port), Handler)
        self.server.service = self
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(os.path.join(folder, "server.pem"), os.path.join(folder, "server.key"))
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.release.set()
        self.gate.set()
        self.hold.set()
        self.server.shutdown()
        self.server.server_close()

    def next(self, kind):
        self.count += 1
        return f"{kind}-value-{self.count:04d}"

    def route(self, method, path, body, headers):
        if (method, path) == ("POST", "/oauth/token"):
            return self.oauth(body, headers)
        if (method, path) == ("POST", "/sts/token"):
            return self.exchange(body)
        if (method, path) == ("POST", "/gcp/token"):
            return self.gcp(body)
        if path.startswith("/v1/vaults/"):
            return self.onepassword(path, headers)
        if path.startswith("/v1/"):
            return self.vault(method, path, body, headers)
        if (method, path) == ("GET", "/keys?of=control"):
            return self.key_set
        if path.startswith("/app/installations/"):
            return self.github(body, headers)
        return 404, {"error": "not_found"}

    def refresh(self, form):
        """A refresh token is good once (RFC 9700 section 4.14.2), unless rotates is false."""
        sent = form.get("refresh_token", [""])[0]
        self.refreshed.append(sent)
        if sent != self.refresh_token:
            return 400, {"error": "invalid_grant", "error_description": "the refresh token is not the present one"}
        answer = {"access_token": self.next("refreshed"), "token_type": "Bearer", "expires_in": self.expires_in}
        if self.rotates:
            self.refresh_token = self.next("refresh-token")
            answer["refresh_token"] = self.refresh_token
        if self.spoiled:
            answer["access_token"] = 12345678
        return 200, answer

    def oauth(self, body, headers):
        form = urllib.parse.parse_qs(body)
        if form["grant_type"] == ["refresh_token"] and form.get("client_id") == ["public"]:
            return self.refresh(form)
        if "client_assertion" in form:
            return 200, {"access_token": self.next("asserted"), "token_type": "Bearer", "expires_in": self.expires_in}
        login = headers.get("Authorization", "")
        if login.startswith("Basic "):
            name, _, secret = base64.b64decode(login[6:]).decode().partition(":")
            name, secret = urllib.parse.unquote_plus(name), urllib.parse.unquote_plus(secret)
        else:
            name, secret = form.get("client_id", [""])[0], form.get("client_secret", [""])[0]
        if (name, secret) != ("agent one", "client:secret&0123456789"):
            return 401, {"error": "invalid_client"}
        if form["grant_type"] == ["refresh_token"]:
            return self.refresh(form)
        if form["grant_type"] != ["client_credentials"]:
            return 400, {"error": "unsupported_grant_type"}
        return 200, {"access_token": self.next("oauth"), "token_type": "Bearer", "expires_in": self.expires_in}

    def exchange(self, body):
        form = {k: v[0] for k, v in urllib.parse.parse_qs(body).items()}
        if form.get("subject_token") != "subject-token-0123456789" or form["grant_type"] != "urn:ietf:params:oauth:grant-type:token-exchange":
            return 400, {"error": "invalid_grant"}
        return 200, {"access_token": self.next("exchanged"), "issued_token_type": "urn:ietf:params:oauth:token-type:access_token",
                     "token_type": "Bearer", "expires_in": self.expires_in}

    def gcp(self, body):
        form = {k: v[0] for k, v in urllib.parse.parse_qs(body).items()}
        if form["grant_type"] != "urn:ietf:params:oauth:grant-type:jwt-bearer":
            return 400, {"error": "unsupported_grant_type"}
        return 200, {"access_token": self.next("gcp"), "token_type": "Bearer", "expires_in": self.expires_in}

    def onepassword(self, path, headers):
        if headers.get("Authorization") != "Bearer connect-token-0123456789":
            return 401, {"status": 401, "message": "Invalid bearer token"}
        if path != "/v1/vaults/team/items/api":
            return 404, {"status": 404, "message": "item not found"}
        return 200, {"id": "api", "fields": [{"id": "username", "label": "username", "value": "agent"},
                                             {"id": "password", "label": "password", "value": self.next("connect")},
                                             {"id": "x7", "label": "token", "value": "connect-token-field"}]}

    def leases_of_vault(self, verb, body):
        """POST /v1/sys/leases/renew and revoke."""
        if self.lease_fault:
            return self.lease_fault
        lease = json.loads(body)["lease_id"]
        if self.leases.get(lease) != "live":
            return 400, {"errors": ["lease not found"]}
        if verb == "renew":
            return 200, {"lease_id": lease, "lease_duration": self.renewed_for or self.expires_in, "renewable": True}
        self.leases[lease] = "revoked"
        return 204, {}

    def vault(self, method, path, body, headers):
        if (method, path) == ("POST", "/v1/auth/approle/login"):
            login = json.loads(body)
            if login["role_id"] == "role-lines":
                return 200, {"auth": {"client_token": "approle-token-0123\r\nX-Injected: two", "lease_duration": 0}}
            if login != {"role_id": "role-1", "secret_id": "secret-id-0123456789"}:
                return 400, {"errors": ["invalid role or secret ID"]}
            return 200, {"auth": {"client_token": "approle-token-0123", "lease_duration": self.login_lives}}
        if method == "POST" and path in ("/v1/auth/jwt/login", "/v1/auth/kubernetes/login"):
            if json.loads(body) != {"role": "agent", "jwt": "signed-token-0123456789"}:
                return 403, {"errors": ["permission denied"]}
            return 200, {"auth": {"client_token": "approle-token-0123", "lease_duration": self.login_lives}}
        if headers.get("X-Vault-Token") not in ("vault-token-0123456789", "approle-token-0123"):
            return 403, {"errors": ["permission denied"]}
        if path == "/v1/secret/data/agent":  # KV version 2
            return 200, {"lease_id": "", "lease_duration": 0, "data": {"data": {"value": self.next("kv2"), "other": "kv2-other-value"},
                                                       "metadata": {"version": 3}}}
        if path == "/v1/kv/agent":  # KV version 1
            return 200, {"lease_id": "", "lease_duration": 2764800, "data": {"value": self.next("kv1")}}
        if path == "/v1/database/creds/agent":
            value = self.next("dynamic")
            lease = f"database/creds/agent/{self.count:04d}"
            self.leases[lease] = "live"
            return 200, {"lease_id": lease, "lease_duration": self.expires_in, "renewable": self.renewable,
                         "data": {"username": "v-agent", "password": value}}
        if method == "POST" and path in ("/v1/sys/leases/renew", "/v1/sys/leases/revoke"):
            return self.leases_of_vault(path.rpartition("/")[2], body)
        return 404, {"errors": []}

    def github(self, body, headers):
        return 201, {"token": self.next("ghs"), "expires_at": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + self.expires_in)),
                     "permissions": {"contents": "read"}}
