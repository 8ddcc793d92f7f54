# SPDX-License-Identifier: Apache-2.0
"""A service that takes requests signed by AWS Signature Version 4 and verifies every signature: of the head, in a field or in the
URL, and of each chunk and trailer of a body. Behind it is a small S3 (objects, parts of an upload, lists) and a service that answers
every POST in JSON, as DynamoDB does, or in XML, as STS does. Written from AWS's documentation, and with nothing of vethguard's own.

`sign()` is the other side, for tests that send what no library sends."""
import calendar
import hashlib
import hmac
import http.server
import json
import re
import ssl
import threading
import time
import urllib.parse
import zlib

EMPTY = hashlib.sha256(b"").hexdigest()
S3 = ("s3", "s3express")
CHUNK_LINE = re.compile(rb"([0-9a-fA-F]+);chunk-signature=([0-9a-f]{64})\r\n")


class Wrong(Exception):
    """A signature is wrong; the text says why."""


def mac(key, text):
    return hmac.new(key, text.encode(), hashlib.sha256).digest()


def day_key(secret, day, region, service):
    key = ("AWS4" + secret).encode()
    for part in (day, region, service, "aws4_request"):
        key = mac(key, part)
    return key


def quote(text, safe="-_.~"):
    return urllib.parse.quote(text, safe=safe)


def canonical_query(query, but=()):
    pairs = [p.partition("=") for p in query.split("&") if p]
    pairs = [(quote(urllib.parse.unquote_plus(n)), quote(urllib.parse.unquote_plus(v))) for n, _, v in pairs]
    return "&".join(f"{n}={v}" for n, v in sorted(pairs) if n not in but)


def canonical_path(path, service):
    if service in S3:
        return quote(path, "/-_.~%")
    kept = []
    for part in path.split("/")[1:]:
        if part == "..":
            kept = kept[:-1]
        elif part not in ("", "."):
            kept.append(part)
    return quote("/" + "/".join(kept) + ("/" if kept and path.endswith("/") else ""), "/-_.~")


def string_to_sign(moment, scope, canonical, kind="AWS4-HMAC-SHA256"):
    return "\n".join((kind, moment, scope, hashlib.sha256(canonical.encode()).hexdigest()))


def canonical(method, path, query, fields, names, payload, service):
    lines = []
    for name in names:
        values = [" ".join(v.split()) for n, v in fields if n.lower() == name]
        if not values:
            raise Wrong(f"{name} is signed and not sent")
        lines.append(f"{name}:{','.join(values)}\n")
    return "\n".join((method, canonical_path(path, service), query, "".join(lines), ";".join(names), payload))


def sign(method, url, fields, payload, key_id="AKIDSANDBOX", secret="worthless", region="us-east-1", service="s3", moment=None):
    """The fields with x-amz-date and Authorization added; fields is a list of pairs."""
    parts = urllib.parse.urlsplit(url)
    moment = moment or time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    fields = [*fields, ("x-amz-date", moment)]
    scope = f"{moment[:8]}/{region}/{service}/aws4_request"
    names = sorted({n.lower() for n, _ in fields} | {"host"})
    text = canonical(method, parts.path or "/", canonical_query(parts.query), [*fields, ("host", parts.netloc)], names, payload, service)
    signature = mac(day_key(secret, moment[:8], region, service), string_to_sign(moment, scope, text)).hex()
    return [*fields, ("Authorization", f"AWS4-HMAC-SHA256 Credential={key_id}/{scope}, SignedHeaders={';'.join(names)}, Signature={signature}")]


class Request:
    """One request: parses its signature, and verifies it."""

    def __init__(self, method, target, fields, keys):
        self.method, (self.path, _, self.query) = method, target.partition("?")
        self.fields, self.keys = fields, keys
        self.parameters = dict(urllib.parse.parse_qsl(self.query, keep_blank_values=True))
        self.form = "query" if "X-Amz-Signature" in self.parameters else "field"

    def one(self, name, default=None):
        values = [v for n, v in self.fields if n.lower() == name]
        if len(values) > 1:
            raise Wrong(f"{name} came {len(values)} times")
        return values[0] if values else default

    def read(self):
        if self.form == "query":
            if self.one("authorization"):
                raise Wrong("signed twice")
            p = self.parameters
            algorithm, credential, names, self.signature = (p.get("X-Amz-" + n) for n in ("Algorithm", "Credential", "SignedHeaders", "Signature"))
            self.moment, self.token = p.get("X-Amz-Date"), p.get("X-Amz-Security-Token")
        else:
            if not self.one("authorization"):
                raise Wrong("not signed")
            algorithm, _, rest = self.one("authorization").partition(" ")
            p = dict(part.strip().split("=", 1) for part in rest.split(","))
            credential, names, self.signature = (p.get(n) for n in ("Credential", "SignedHeaders", "Signature"))
            self.moment, self.token = self.one("x-amz-date"), self.one("x-amz-security-token")
        if algorithm != "AWS4-HMAC-SHA256":
            raise Wrong(f"algorithm {algorithm}")
        self.key_id, day, self.region, self.service, end = credential.rsplit("/", 4)
        self.scope = f"{day}/{self.region}/{self.service}/{end}"
        self.names = names.split(";")
        if end != "aws4_request" or self.moment[:8] != day:
            raise Wrong("the scope")

    def payload(self, body):
        """The word that was signed for the body."""
        word = self.one("x-amz-content-sha256") or self.parameters.get("X-Amz-Content-Sha256")
        if self.service in S3:
            if self.form == "query":
                return word or "UNSIGNED-PAYLOAD"
            if not word:
                raise Wrong("x-amz-content-sha256 is missing")
        whole = hashlib.sha256(body).hexdigest()
        if word and re.fullmatch("[0-9a-f]{64}", word) and word != whole:
            raise Wrong("the body has another hash")
        return word or whole

    def verify(self, body):
        """The body without its chunks."""
        self.read()
        key_id, secret, token = self.keys.get(self.key_id, (None,) * 3) if isinstance(self.keys, dict) else self.keys
        if (self.key_id, self.token) != (key_id, token):
            raise Wrong(f"signed with another key: {self.key_id}")
        if abs(calendar.timegm(time.strptime(self.moment, "%Y%m%dT%H%M%SZ")) - time.time()) > 900:
            raise Wrong("too old")
        needed = {n.lower() for n, _ in self.fields if n.lower().startswith("x-amz-")} | {"host"}
        if needed - set(self.names):
            raise Wrong(f"not signed: {needed - set(self.names)}")
        query = canonical_query(self.query, ("X-Amz-Signature",))
        payload = self.payload(body)
        text = canonical(self.method, self.path, query, self.fields, self.names, payload, self.service)
        self.day_key = day_key(secret, self.moment[:8], self.region, self.service)
        if mac(self.day_key, string_to_sign(self.moment, self.scope, text)).hex() != self.signature:
            raise Wrong("the signature does not match:\n" + text)
        self.word = payload
        if payload.startswith("STREAMING-"):
            return self.chunks(body, payload)
        return body

    def next(self, kind, before, *hashes):
        return mac(self.day_key, "\n".join((kind, self.moment, self.scope, before, *hashes))).hex()

    def chunks(self, body, word):
        signed, before, data = "UNSIGNED" not in word, self.signature, b""
        while True:
            line = body[:body.index(b"\n") + 1]
            match = CHUNK_LINE.fullmatch(line) if signed else re.fullmatch(rb"([0-9a-fA-F]+)\r\n", line)
            if not match:
                raise Wrong(f"a chunk begins with {line!r}")
            n = int(match[1], 16)
            chunk, body = body[len(line):len(line) + n], body[len(line) + n:]
            if signed:
                before = self.next("AWS4-HMAC-SHA256-PAYLOAD", before, EMPTY, hashlib.sha256(chunk).hexdigest())
                if before != match[2].decode():
                    raise Wrong(f"the signature of a chunk of {n} bytes does not match")
            data += chunk
            if not n:
                break
            if body[:2] != b"\r\n":
                raise Wrong("no line end behind a chunk")
            body = body[2:]
        self.trailer(body, word, before)
        if int(self.one("x-amz-decoded-content-length", -1)) != len(data):
            raise Wrong("x-amz-decoded-content-length")
        return data

    def trailer(self, body, word, before):
        lines = [line for line in body.decode().replace("\r\n", "\n").split("\n") if line]
        if word.endswith("PAYLOAD-TRAILER") and "UNSIGNED" not in word:
            if not lines or not lines[-1].startswith("x-amz-trailer-signature:"):
                raise Wrong("the trailer is not signed")
            text = "".join(f"{n.lower()}:{v.strip()}\n" for n, _, v in (line.partition(":") for line in lines[:-1]))
            if self.next("AWS4-HMAC-SHA256-TRAILER", before, hashlib.sha256(text.encode()).hexdigest()) != lines[-1].split(":")[1]:
                raise Wrong("the signature of the trailer does not match")
        elif lines and not word.endswith("-TRAILER"):
            raise Wrong(f"a trailer: {lines}")
        self.trailers = lines


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *_):
        pass

    def read_body(self):
        if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        body = b""
        while n := int(self.rfile.readline(), 16):
            body += self.rfile.read(n)
            self.rfile.readline()
        while self.rfile.readline() not in (b"\r\n", b""):
            pass
        return body

    def answer(self):
        origin, body = self.server.origin, self.read_body()
        answer = origin.unsigned(self.headers, body)
        if answer:
            self.reply(*answer)
            return
        request = Request(self.command, self.path, self.headers.items(), origin.keys)
        noted = {"method": self.command, "path": self.path, "headers": list(self.headers.items()), "body": len(body), "why": None}
        try:
            data = request.verify(body)
        except (Wrong, ValueError, AttributeError, TypeError) as e:
            noted["why"] = f"{type(e).__name__}: {e}"
        noted |= {n: getattr(request, n, None) for n in ("form", "region", "service", "word", "names", "trailers")}
        with origin.lock:
            origin.asked.append(noted)
        if noted["why"]:
            text = f"<Error><Code>SignatureDoesNotMatch</Code><Message>{noted['why']}</Message></Error>".replace("&", "&amp;")
            self.send(403, text.encode(), "application/xml")
        elif request.service in S3:
            self.s3(request, data)
        elif self.headers.get("X-Amz-Target"):
            self.send(200, json.dumps({"TableNames": ["one"], "Got": len(data)}).encode(), "application/x-amz-json-1.0", crc32=True)
        elif given := origin.signed(data):
            self.send(200, given, "text/xml")
        else:
            self.send(200, b"<GetCallerIdentityResponse><GetCallerIdentityResult><Account>1</Account><Arn>arn:aws:iam::1:user/real</Arn>"
                      b"<UserId>AIDA</UserId></GetCallerIdentityResult></GetCallerIdentityResponse>", "text/xml")

    do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = answer

    def reply(self, status, fields, body):
        self.send(status, body, fields["Content-Type"], **{n: v for n, v in fields.items() if n != "Content-Type"})

    def send(self, status, body, kind, crc32=False, **fields):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        if crc32:
            self.send_header("x-amz-crc32", str(zlib.crc32(body)))
        for name, value in fields.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def s3(self, request, data):
        origin, p = self.server.origin, request.parameters
        key = urllib.parse.unquote(request.path)
        if self.command == "POST" and "uploads" in p:
            self.send(200, b"<InitiateMultipartUploadResult><UploadId>u1</UploadId></InitiateMultipartUploadResult>", "application/xml")
        elif self.command == "POST":
            with origin.lock:
                parts = sorted((n, d) for (k, n), d in origin.parts.items() if k == key)
                origin.objects[key] = b"".join(d for _, d in parts)
            self.send(200, b"<CompleteMultipartUploadResult><ETag>\"e\"</ETag></CompleteMultipartUploadResult>", "application/xml")
        elif self.command == "PUT":
            with origin.lock:
                if "partNumber" in p:
                    origin.parts[key, int(p["partNumber"])] = data
                else:
                    origin.objects[key] = data
            self.send(200, b"", "application/xml", ETag=f'"{hashlib.md5(data).hexdigest()}"')
        elif self.command == "DELETE":
            with origin.lock:
                origin.objects.pop(key, None)
            self.send(204, b"", "application/xml")
        elif "list-type" in p or key.count("/") == 1 or key.endswith("/"):
            found = "".join(f"<Contents><Key>{k.split('/', 2)[2]}</Key><LastModified>2026-01-01T00:00:00.000Z</LastModified><Size>{len(v)}</Size></Contents>" for k, v in origin.objects.items() if k.startswith(key))
            self.send(200, f"<ListBucketResult>{found}<IsTruncated>false</IsTruncated></ListBucketResult>".encode(), "application/xml")
        elif key not in origin.objects:
            self.send(404, b"<Error><Code>NoSuchKey</Code></Error>", "application/xml")
        else:
            self.object(origin.objects[key])

    def object(self, data):
        etag, part = f'"{hashlib.md5(data).hexdigest()}"', re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
        if not part:
            self.send(200, data, "binary/octet-stream", ETag=etag, Accept_Ranges="bytes")
            return
        first, last = int(part[1]), min(int(part[2] or len(data)), len(data) - 1)
        self.send(206, data[first:last + 1], "binary/octet-stream", ETag=etag, Content_Range=f"bytes {first}-{last}/{len(data)}")


class Server(http.server.ThreadingHTTPServer):
    def handle_error(self, *_):
        """Clients go away: those are the tests."""


class Origin:
    """The service itself, in threads. keys: (access key id, secret, session token or None), or {id: such keys}."""

    def __init__(self, address, port, folder, keys):
        self.keys, self.lock = keys, threading.Lock()
        self.asked, self.objects, self.parts = [], {}, {}
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(folder + "/server.pem", folder + "/server.key")
        self.server = Server((address, port), Handler)
        self.server.daemon_threads, self.server.origin = True, self
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True, do_handshake_on_connect=False)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def unsigned(self, headers, body):
        """For services that answer without a signature: (status, fields, body), or None."""

    def signed(self, body):
        """For services whose answers are XML of their own: the content, or None."""

    def close(self):
        self.server.shutdown()
        self.server.server_close()
