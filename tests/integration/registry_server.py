# SPDX-License-Identifier: Apache-2.0
"""A registry's token service (the CNCF distribution project's "token authentication"), which signs tokens that its registry verifies; a
registry of the tests' own that lies and redirects; and the real one, Debian's docker-registry. The servers keep what they were asked."""
import base64
import gzip
import hashlib
import http.server
import io
import json
import os
import ssl
import subprocess
import tarfile
import threading
import time
import urllib.parse

ISSUER, SERVICE = "lab-issuer", "registry.lab"


def part(value):
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        self.answer()

    do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = do_GET

    def answer(self):
        origin = self.server.origin
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        fields = {k.lower(): v for k, v in self.headers.items()}
        with origin.lock:
            origin.asked.append({"method": self.command, "path": self.path, "headers": fields, "port": self.server.server_port})
        status, fields, body = origin.route(self.path, fields, self.server.server_port)
        self.send_response(status)
        for name, value in fields:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


class Origin:
    """The token service at ports[0], the lying registry at ports[1], other servers of blobs at ports[2]."""

    def __init__(self, address, ports, directory, login):
        self.login, self.lock, self.ports = "Basic " + base64.b64encode(login.encode()).decode(), threading.Lock(), ports
        self.key, self.certificate = f"{directory}/tokens.key", f"{directory}/tokens.pem"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=tokens", "-days", "30",
                        "-keyout", self.key, "-out", self.certificate], check=True, capture_output=True)
        self.asked, self.given, self.shapes = [], [], {}
        self.servers = [self.serve(address, port, directory) for port in ports]

    def serve(self, address, port, directory):
        server = http.server.ThreadingHTTPServer((address, port), Handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(f"{directory}/server.pem", f"{directory}/server.key")
        server.socket = context.wrap_socket(server.socket, server_side=True)
        server.origin, server.daemon_threads = self, True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return server

    def close(self):
        for server in self.servers:
            server.shutdown()
            server.server_close()

    def sign(self, scopes):
        with open(self.certificate) as f:
            der = "".join(line for line in f.read().splitlines() if "-----" not in line)
        now = int(time.time())
        access = [{"type": s.split(":")[0], "name": ":".join(s.split(":")[1:-1]), "actions": s.split(":")[-1].split(",")} for s in scopes]
        text = part({"typ": "JWT", "alg": "RS256", "x5c": [der]}) + "." + part(
            {"iss": ISSUER, "sub": "agent", "aud": SERVICE, "exp": now + 300, "nbf": now - 10, "iat": now, "jti": os.urandom(8).hex(), "access": access})
        done = subprocess.run(["openssl", "dgst", "-sha256", "-sign", self.key], input=text.encode(), check=True, capture_output=True)
        token = text + "." + part(done.stdout)
        self.given.append(token)
        return token

    def route(self, path, headers, port):
        """(status, fields, body)"""
        url = urllib.parse.urlsplit(path)
        if url.path in self.shapes:
            return self.shapes[url.path]
        if url.path == "/token":
            if headers.get("authorization") != self.login:
                return 401, (("Content-Type", "application/json"),), json.dumps({"details": "wrong login", "saw": headers.get("authorization")}).encode()
            token = self.sign([s for v in urllib.parse.parse_qs(url.query).get("scope", []) for s in v.split(" ")])
            return 200, (("Content-Type", "application/json"),), json.dumps({"token": token, "access_token": token, "expires_in": 300}).encode()
        if port == self.ports[2]:
            return 200, (("Content-Type", "application/octet-stream"),), b"the blob"
        if "/blobs/" in url.path:
            return 307, (("Location", f"https://blobs.wild.lab.test:{self.ports[2]}/cdn/blob"),), b""
        return 200, (("Content-Type", "application/json"),), json.dumps({"saw": headers.get("authorization", "")}).encode()


def configuration(address, port, realm, origin, directory):
    """Writes docker-registry's configuration; returns the file's path."""
    path = f"{directory}/registry.yaml"
    with open(path, "w") as f:
        f.write(f"""version: 0.1
log: {{level: error}}
storage: {{filesystem: {{rootdirectory: {directory}/registry}}, delete: {{enabled: true}}}}
http: {{addr: '{address}:{port}', tls: {{certificate: {directory}/server.pem, key: {directory}/server.key}}}}
auth: {{token: {{realm: '{realm}', service: {SERVICE}, issuer: {ISSUER}, rootcertbundle: {origin.certificate}}}}}
""")
    return path


def image(directory, size=200000):
    """Writes an OCI image of one layer, as a folder for skopeo; returns the layer's digest."""
    blobs = f"{directory}/blobs/sha256"
    os.makedirs(blobs, exist_ok=True)

    def put(data):
        digest = hashlib.sha256(data).hexdigest()
        with open(f"{blobs}/{digest}", "wb") as f:
            f.write(data)
        return {"digest": "sha256:" + digest, "size": len(data)}
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w") as t:
        entry = tarfile.TarInfo("data")
        entry.size = size
        t.addfile(entry, io.BytesIO(os.urandom(size)))
    kind = "application/vnd.oci.image."
    layer = put(gzip.compress(raw.getvalue()))  # a client would compress what is not, and change the digest
    config = put(json.dumps({"architecture": "amd64", "os": "linux", "config": {},
                             "rootfs": {"type": "layers", "diff_ids": ["sha256:" + hashlib.sha256(raw.getvalue()).hexdigest()]}}).encode())
    manifest = put(json.dumps({"schemaVersion": 2, "mediaType": kind + "manifest.v1+json", "config": {"mediaType": kind + "config.v1+json", **config},
                               "layers": [{"mediaType": kind + "layer.v1.tar+gzip", **layer}]}).encode())
    for name, value in (("oci-layout", {"imageLayoutVersion": "1.0.0"}), ("index.json", {"schemaVersion": 2, "manifests": [
            {"mediaType": kind + "manifest.v1+json", **manifest, "annotations": {"org.opencontainers.image.ref.name": "latest"}}]})):
        with open(f"{directory}/{name}", "w") as f:
            json.dump(value, f)
    return layer["digest"].split(":")[1]
