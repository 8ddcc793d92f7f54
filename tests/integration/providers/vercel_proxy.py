# SPDX-License-Identifier: Apache-2.0
"""Vercel's proxy, for the tests: all TCP of the sandbox is led to it. It ends TLS with a certificate of its own, forwards requests for the
hosts that the network policy names to their forwardURL, and closes all other connections.

vercel_proxy.py PORT CERTIFICATE GATEWAY_CA MARK ALLOW LOG: CERTIFICATE.pem and .key are its own; its connections to the gateway bear MARK;
ALLOW is `allow` of the network policy, as JSON; the fields that it adds are written into LOG. Their names, and that the path is put
behind the URL, are those of the SDK's `defineSandboxProxy`."""
import base64
import http.client
import http.server
import json
import socket
import ssl
import struct
import sys
import urllib.parse

SO_ORIGINAL_DST, SO_MARK = 80, 36
HOP = {"connection", "keep-alive", "transfer-encoding", "te", "upgrade", "proxy-connection", "host"}
port, certificate, gateway_ca, mark, allow, log = sys.argv[1:]
allow = json.loads(allow)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(certificate + ".pem", certificate + ".key")
context.sni_callback = lambda s, name, _: setattr(s, "asked_for", name)
gateway = ssl.create_default_context(cafile=gateway_ca)


def part(value):
    return base64.urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


class Marked(http.client.HTTPSConnection):
    def connect(self):
        s = socket.socket()
        s.setsockopt(socket.SOL_SOCKET, SO_MARK, int(mark))
        s.connect((self.host, self.port))
        self.sock = gateway.wrap_socket(s, server_hostname=self.host)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def setup(self):
        meant = self.request.getsockopt(socket.SOL_IP, SO_ORIGINAL_DST, 16)
        if struct.unpack(">H", meant[2:4])[0] != 443:
            raise OSError("no port of https")
        self.request.settimeout(20)
        self.request = context.wrap_socket(self.request, server_side=True)
        self.name = getattr(self.request, "asked_for", None)
        super().setup()

    def forward(self):
        self.close_connection = True
        rule = allow.get(self.name)
        if not rule or self.headers.get("Host") != self.name:
            return
        url = urllib.parse.urlsplit(rule[0]["forwardURL"])
        fields = {name: value for name, value in self.headers.items() if name.lower() not in HOP}
        added = {"vercel-forwarded-host": self.name, "vercel-forwarded-scheme": "https", "vercel-forwarded-port": "443", "vercel-forwarded-path": self.path,
                 "vercel-sandbox-oidc-token": f"{part({'alg': 'RS256'})}.{part({'aud': rule[0]['forwardURL'], 'sandbox_id': 's1'})}.c2ln"}
        with open(log, "a") as f:
            f.write(json.dumps(added) + "\n")
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        c = Marked(url.hostname, url.port)
        c.request(self.command, url.path + self.path, body or None, {**fields, **added})
        r = c.getresponse()
        self.send_response(r.status)
        for name, value in r.getheaders():
            if name.lower() not in HOP:
                self.send_header(name, value)
        self.send_header("Connection", "close")
        if r.chunked:
            self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        while data := r.read1(65536):  # an answer that is cut raises an exception, and its last chunk is never sent
            self.wfile.write(b"%x\r\n%b\r\n" % (len(data), data) if r.chunked else data)
        if r.chunked:
            self.wfile.write(b"0\r\n\r\n")

    do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = forward

    def log_message(self, *_):
        pass


class Server(http.server.ThreadingHTTPServer):
    def handle_error(self, *_):
        pass


server = Server(("127.0.0.1", int(port)), Handler)
print("ready", flush=True)
server.serve_forever()
