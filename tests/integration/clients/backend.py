# SPDX-License-Identifier: Apache-2.0
"""What answers for *.real.lab.test (plain http on 127.0.0.1:9000, behind nginx) and *.one.lab.test (TLS and http/1.1 on
10.99.0.82:443): files, git, an S3, a GitHub. Runs in the namespace "outside"; argv[1] is the lab's folder.

The path says which service is meant. Every request becomes a line of FOLDER/seen.jsonl: {"what": "request", host, method,
path, protocol (of the connection that vethguard made), authenticated, body (bytes), headers}."""
import base64
import hashlib
import hmac
import http.server
import json
import os
import socketserver
import ssl
import subprocess
import sys
import threading
import time
import urllib.parse

FOLDER = sys.argv[1]
SECRET = "sk-lab-0123456789abcdefghij-TOPSECRET"
# Throw-away keys that the sandbox itself has: S3 requests are signed by the client.
S3_KEY, S3_SECRET = "AKIALABLABLABLABLAB1", "lab-signing-key-that-the-sandbox-knows"
SEEN_LOCK = threading.Lock()
OBJECTS = {}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server_version, sys_version = "backend", ""

    def log_message(self, *_):
        pass

    def authenticated(self):
        """Whether the real credential came, in any of the ways in which it may be sent."""
        auth = self.headers.get("Authorization", "")
        kind, _, value = auth.partition(" ")
        if kind.lower() == "basic":
            value = base64.b64decode(value).decode("utf-8", "replace").partition(":")[2]
        return SECRET in (value, self.headers.get("X-Api-Key"))

    def read_body(self):
        if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
            data = bytearray()
            while size := int(self.rfile.readline().split(b";")[0], 16):
                data += self.rfile.read(size)
                self.rfile.readline()
            while self.rfile.readline().strip():
                pass
            return bytes(data)
        return self.rfile.read(int(self.headers.get("Content-Length", 0)))

    def note(self, body):
        row = {"what": "request", "host": self.headers.get("Host", ""), "method": self.command, "path": self.path,
               "protocol": self.headers.get("X-Protocol", self.request_version), "authenticated": self.authenticated(),
               "body": len(body), "headers": [list(h) for h in self.headers.items()]}
        with SEEN_LOCK, open(os.path.join(FOLDER, "seen.jsonl"), "a") as f:
            f.write(json.dumps(row) + "\n")

    def answer(self, body, status=200, **headers):
        if isinstance(body, (dict, list)):
            body = json.dumps(body).encode()
            headers.setdefault("Content_Type", "application/json")
        self.send_response(status)
        for k, v in headers.items():
            self.send_header(k.replace("_", "-"), v)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def handle_any(self):
        path, _, query = self.path.partition("?")
        body = self.read_body()
        self.note(body)
        service = path.split("/")[1]
        if service in ("whoami", "git", "private") and not self.authenticated():
            self.answer(b"who are you?", 401, WWW_Authenticate="Basic realm=lab")
        elif service == "whoami":
            self.answer({"authenticated": True, "method": self.command, "body": len(body),
                         "sha256": hashlib.sha256(body).hexdigest()})
        elif service == "git":
            self.git(path, query, body)
        elif service in ("files", "private"):
            self.file(path)
        elif service == "s3":
            self.s3(path, query, body)
        elif service == "api":
            self.github(path, body)
        elif service == "v2":
            self.registry(path)
        elif service == "bytes":
            self.answer(b"0123456789abcdef" * (int(path.split("/")[2]) // 16))
        elif service == "redirect":
            self.answer(b"", 302, Location="https://evil.lab.test/steal")
        else:
            self.answer({"method": self.command, "path": self.path, "body": len(body),
                         "sha256": hashlib.sha256(body).hexdigest()})

    do_GET = do_POST = do_PUT = do_DELETE = do_HEAD = do_PATCH = do_OPTIONS = handle_any

    def file(self, path):
        """A file below FOLDER/files; a folder's is index.html, and a link without its slash is sent on, as pip wants."""
        top = os.path.join(FOLDER, "files")
        name = os.path.normpath(os.path.join(top, *urllib.parse.unquote(path).split("/")[2:]))
        if not name.startswith(top):
            self.answer(b"no", 400)
            return
        kind = "application/octet-stream"
        if os.path.isdir(name):
            name, kind = os.path.join(name, "index.html"), "text/html"
        if not os.path.isfile(name):
            self.answer(b"no such file", 404)
            return
        with open(name, "rb") as f:
            self.answer(f.read(), Content_Type=kind)

    def git(self, path, query, body):
        """git http-backend(1) as a CGI program."""
        env = {"PATH": "/usr/bin:/bin", "GIT_PROJECT_ROOT": os.path.join(FOLDER, "repositories"), "GIT_HTTP_EXPORT_ALL": "1",
               "PATH_INFO": path[4:], "QUERY_STRING": query, "REQUEST_METHOD": self.command, "REMOTE_USER": "lab",
               "CONTENT_TYPE": self.headers.get("Content-Type", ""), "REMOTE_ADDR": self.client_address[0] or "local",
               "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
               "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""), "CONTENT_LENGTH": str(len(body)),
               "GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "safe.directory", "GIT_CONFIG_VALUE_0": "*"}
        out = subprocess.run(["git", "http-backend"], input=body, env=env, capture_output=True).stdout
        head, _, rest = out.partition(b"\r\n\r\n")
        fields = dict(line.split(": ", 1) for line in head.decode().split("\r\n"))
        self.answer(rest, int(fields.pop("Status", "200").split()[0]), **fields)

    # --- S3: path-style buckets below /s3/, AWS Signature Version 4 checked over what arrived ---

    def signature_fault(self, path, query):
        """None, or what is wrong with the request's signature (AWS General Reference, Signature Version 4). As some S3s
        do, a bearer token is taken in place of one."""
        auth = self.headers.get("Authorization", "")
        if self.authenticated():
            return None
        if not auth.startswith("AWS4-HMAC-SHA256 "):
            return "no signature"
        parts = dict(p.strip().split("=", 1) for p in auth[17:].split(","))
        key, date, region, service, _ = parts["Credential"].split("/")
        if key != S3_KEY:
            return "unknown key " + key
        names = parts["SignedHeaders"].split(";")
        pairs = sorted(urllib.parse.parse_qsl(query, keep_blank_values=True))
        lines = [self.command, urllib.parse.quote(urllib.parse.unquote(path), safe="/~"),
                 "&".join(urllib.parse.quote(k, safe="~") + "=" + urllib.parse.quote(v, safe="~") for k, v in pairs)]
        lines += [f"{n}:{' '.join(self.headers.get(n, '').split())}" for n in names]
        lines += ["", ";".join(names), self.headers.get("X-Amz-Content-SHA256", "")]
        canonical = hashlib.sha256("\n".join(lines).encode()).hexdigest()
        text = "\n".join(["AWS4-HMAC-SHA256", self.headers.get("X-Amz-Date", ""), f"{date}/{region}/{service}/aws4_request",
                          canonical])
        secret = ("AWS4" + S3_SECRET).encode()
        for word in (date, region, service, "aws4_request", text):
            secret = hmac.new(secret, word.encode(), hashlib.sha256).digest()
        return None if hmac.compare_digest(secret.hex(), parts["Signature"]) else "signature does not match"

    def handle_expect_100(self):
        """An S3 looks at the head before it asks for the body."""
        path, _, query = self.path.partition("?")
        fault = self.signature_fault(path, query) if path.startswith("/s3/") else None
        if fault:
            self.note(b"")
            self.s3_error(fault)
            self.close_connection = True
            return False
        return super().handle_expect_100()

    def s3_error(self, message, status=403, code="SignatureDoesNotMatch"):
        text = f'<?xml version="1.0"?><Error><Code>{code}</Code><Message>{message}</Message></Error>'
        self.answer(text.encode(), status, Content_Type="application/xml")

    def s3(self, path, query, body):
        fault = self.signature_fault(path, query)
        said = self.headers.get("X-Amz-Content-SHA256", "UNSIGNED-PAYLOAD")
        name = urllib.parse.unquote(path)
        if fault:
            self.s3_error(fault)
        elif said != "UNSIGNED-PAYLOAD" and said != hashlib.sha256(body).hexdigest():
            self.s3_error("another body", 400, "XAmzContentSHA256Mismatch")
        elif self.command == "PUT":
            OBJECTS[name] = body
            self.answer(b"", ETag='"' + hashlib.md5(body).hexdigest() + '"')
        elif self.command == "DELETE":
            OBJECTS.pop(name, None)
            self.answer(b"", 204)
        elif name in OBJECTS:
            self.answer(OBJECTS[name], ETag='"' + hashlib.md5(OBJECTS[name]).hexdigest() + '"',
                        Last_Modified=time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime()))
        else:
            self.s3_error("no such key", 404, "NoSuchKey")

    # --- the parts of GitHub's API and of the OCI distribution API that the clients ask for ---

    def github(self, path, body):
        if not self.authenticated():
            self.answer({"message": "Bad credentials"}, 401)
        elif path == "/api/graphql":
            # A client takes nothing that it did not ask for.
            asked = json.loads(body)["query"]
            issue = {"number": 7, "title": "a bug", "state": "OPEN", "labels": {"nodes": [], "totalCount": 0},
                     "updatedAt": "2024-01-01T00:00:00Z"}
            repository = {"hasIssuesEnabled": True, "issues": {"nodes": [issue], "totalCount": 1,
                          "pageInfo": {"hasNextPage": False, "endCursor": ""}}}
            data = {"Issue": {"fields": []}} if "__type" in asked else {"repository": repository}
            self.answer({"data": {"viewer": {"login": "lab"}} if "viewer" in asked else data})
        elif path == "/api/v3/":
            self.answer({"current_user_url": "x"}, X_OAuth_Scopes="repo, read:org")
        elif path == "/api/v3/user":
            self.answer({"login": "lab", "id": 1})
        else:
            self.answer({"path": path, "body": len(body)})

    def registry(self, path):
        if not self.authenticated():
            self.answer(b"{}", 401, WWW_Authenticate='Basic realm="lab"', Docker_Distribution_Api_Version="registry/2.0")
            return
        name = os.path.join(FOLDER, "files", "oci", path.rsplit("/", 1)[1].replace(":", "-"))
        if path == "/v2/":
            self.answer({}, Docker_Distribution_Api_Version="registry/2.0")
        elif os.path.isfile(name):
            with open(name, "rb") as f:
                data = f.read()
            kind = "application/vnd.oci.image.manifest.v1+json" if "/manifests/" in path else "application/octet-stream"
            self.answer(data, Content_Type=kind, Docker_Content_Digest="sha256:" + hashlib.sha256(data).hexdigest())
        else:
            self.answer(b'{"errors":[{"code":"MANIFEST_UNKNOWN"}]}', 404)


class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True
    request_queue_size = 128
    allow_reuse_address = True

    def __init__(self, address, context=None):
        self.context = context
        super().__init__(address, Handler)

    def server_bind(self):
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = self.server_address[:2]

    def finish_request(self, request, client_address):
        try:
            if self.context:
                request = self.context.wrap_socket(request, server_side=True)
            super().finish_request(request, client_address)
            if self.context:
                request.settimeout(1)
                request.unwrap()
        except (ssl.SSLError, OSError):
            pass

    def handle_error(self, *_):
        pass


def main():
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(os.path.join(FOLDER, "server.pem"), os.path.join(FOLDER, "server.key"))
    context.set_alpn_protocols(["http/1.1"])
    threading.Thread(target=Server(("10.99.0.82", 443), context).serve_forever, daemon=True).start()
    Server(("127.0.0.1", 9000)).serve_forever()


if __name__ == "__main__":
    main()
