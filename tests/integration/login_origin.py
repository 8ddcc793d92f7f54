# SPDX-License-Identifier: Apache-2.0
"""A place that gives out tokens, and an API that takes them: OAuth 2.0 as RFC 6749, the device flow (RFC 8628) and revocation
(RFC 7009) have it. Each token is a new one; what was asked is kept. `shapes` are answers of a test's own: path -> (status, fields, body)."""
import base64
import http.server
import json
import ssl
import threading
import urllib.parse


def part(value):
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        self.answer()

    def do_POST(self):
        self.answer()

    def answer(self):
        length = self.headers.get("Content-Length")
        body = self.rfile.read(int(length or 0))
        origin = self.server.origin
        with origin.lock:
            origin.asked.append({"method": self.command, "path": self.path, "body": body.decode("latin-1"), "length": length,
                                 "headers": {k.lower(): v for k, v in self.headers.items()}})
        if self.path in origin.shapes:
            status, fields, out = origin.shapes[self.path]
        else:
            status, value = origin.route(self.path, body.decode("latin-1"), self.headers)
            fields, out = (("Content-Type", "application/json"), ("Cache-Control", "no-store")), json.dumps(value).encode()
        self.send_response(status)
        for name, value in fields:
            self.send_header(name, value)
        if not any(n.lower() in ("content-length", "transfer-encoding") for n, _ in fields):
            self.send_header("Content-Length", str(len(out)))
        self.end_headers()
        self.wfile.write(out)


class Origin:
    def __init__(self, address, port, directory):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(f"{directory}/server.pem", f"{directory}/server.key")
        self.server = http.server.ThreadingHTTPServer((address, port), Handler)
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.server.origin = self
        self.lock = threading.Lock()
        self.asked, self.shapes, self.live, self.refreshes = [], {}, set(), set()
        self.count, self.pending, self.rotates, self.jwt = 0, 0, True, False
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()

    def token(self, kind):
        self.count += 1
        secret = f"{kind}SECRETOFTHELOGIN{self.count:04d}zyxw"
        if kind != "access" or not self.jwt:
            return secret
        return f"{part({'alg': 'RS256', 'kid': 'k1'})}.{part({'sub': 'agent', 'n': self.count})}.{secret}"

    def tokens(self, refresh=None):
        """A login's answer."""
        access = self.token("access")
        self.live.add(access)
        if not refresh or self.rotates:
            self.refreshes.discard(refresh)
            refresh = self.token("refresh")
            self.refreshes.add(refresh)
        return 200, {"access_token": access, "token_type": "Bearer", "expires_in": 3600, "refresh_token": refresh, "scope": "a b"}

    def route(self, path, body, headers):
        form = {k: v[0] for k, v in urllib.parse.parse_qs(body).items()}
        if "json" in headers.get("Content-Type", ""):
            form = json.loads(body)
        with self.lock:
            if path == "/device/code":
                return 200, {"device_code": "device-0123456789", "user_code": "WDJB-MJHT", "verification_uri": "https://login/device",
                             "expires_in": 900, "interval": 1}
            if path == "/revoke":
                self.live.discard(form.get("token"))
                return 200, {}
            if path == "/token":
                return self.grant(form)
        bearer = headers.get("Authorization", "")
        return (200, {"user": "agent"}) if bearer[7:] in self.live else (401, {"error": "invalid_token", "saw": bearer})

    def grant(self, form):
        kind = form.get("grant_type")
        if kind == "refresh_token":
            if form.get("refresh_token") not in self.refreshes:
                return 400, {"error": "invalid_grant", "error_description": "no such refresh token: " + str(form.get("refresh_token"))}
            return self.tokens(form["refresh_token"])
        if kind == "urn:ietf:params:oauth:grant-type:device_code" and self.pending > 0:
            self.pending -= 1
            return 400, {"error": "authorization_pending"}
        if kind in ("authorization_code", "password", "client_credentials", "urn:ietf:params:oauth:grant-type:device_code"):
            status, answer = self.tokens()
            answer["id_token"] = f"{part({'alg': 'ES256'})}.{part({'sub': 'agent', 'iss': 'https://login'})}.IDSECRETOFTHELOGIN{self.count:04d}"
            return status, answer
        return 400, {"error": "unsupported_grant_type"}
