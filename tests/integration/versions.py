# SPDX-License-Identifier: Apache-2.0
"""One rule for every version of HTTP: the rows of the tables in docs/http.md, each with requests or responses that are the
same in HTTP/1.1 and in HTTP/2. test_versions.py imports it; as a program it runs inside the sandbox, takes orders as JSON on
standard input and prints what it was answered:

    [{"version": 11 or 20, "host", "port", "case": index in REQUESTS or RESPONSES, "of": "requests" or "responses", "id"}]
"""
import concurrent.futures
import json
import os
import socket
import ssl
import sys

import h2frames
from h2frames import PREFACE, Peer

PATIENCE = 20 * int(os.environ.get("SLOW", "1"))
HEAD_BYTES = 12000  # limits.header_bytes of the sandbox
HOST = "{host}"     # with its port


class Request:
    """want: "passed", or the status of the refusal; a pair where the versions differ, as the row says. sees: what the origin
    gets where that is not what was said. h1 and h2: fields of that version alone."""

    def __init__(self, row, name, method="GET", target="/v", want="passed", fields=(), body=None, length=True, host=(HOST,),
                 sees=None, trailers=(), explained=None, h1=(), h2=(), authority=None):
        self.row, self.name, self.method, self.target, self.want = row, name, method, target, want
        self.fields, self.body, self.length, self.host, self.trailers = list(fields), body, length, host, list(trailers)
        self.sees, self.explained, self.h1, self.h2, self.authority = sees or {}, explained, list(h1), list(h2), authority

    def wanted(self, version):
        return self.want if not isinstance(self.want, tuple) else self.want[version == 20]


class Response:
    """want: "passed", "502", or "cut" where the client is told a part that it can tell from a whole."""

    def __init__(self, row, name, status="200", fields=(), body=b"ok", length=True, want="passed", interims=(), trailers=(),
                 method="GET", sees=None, h1=(), h2=()):
        self.row, self.name, self.status, self.fields, self.body, self.length = row, name, status, list(fields), body, length
        self.want, self.interims, self.trailers, self.method = want, list(interims), list(trailers), method
        self.sees, self.h1, self.h2 = sees or {}, list(h1), list(h2)

    def wanted(self, version):
        return self.want if not isinstance(self.want, tuple) else self.want[version == 20]


EVERY = "!#$%&'*+-.^_`|~09azAZ"
POST = {"method": "POST", "body": b"hello"}
M1, M2, M3 = "method: a token of at most 32 bytes", "method: a longer token", "method: no token"
M4, M5, M6 = "method: `PRI`; `HEAD` or `CONNECT` in other letters", "method: `TRACE` in any letters", "method: `CONNECT` to an origin"
T1 = "target: a path (`*` for `OPTIONS`) that has a canonical form, with any query"
T2 = "target: a path without a canonical form, a fragment, a byte that no URL has, `*` for another method"
T3 = "target: more than 8192 bytes, or a request line beyond `header_bytes`"
H1, H2 = "`Host` or `:authority`: the connection's host, once", "`Host` or `:authority`: missing, malformed or twice"
H3 = "`Host` or `:authority`: two hosts in one request"
H4 = "`Host` or `:authority`: another host than the connection's"
F1, F2 = "field name: a token", "field name: no token"
F3 = "field value: visible characters, blanks and bytes beyond ASCII, or nothing"
F4, F5, F6 = "field value: a control character", "field value: blanks around it", "field name: capital letters"
F7, F8 = "more than 128 fields, or a head beyond `header_bytes`", "one name in several fields"
F9 = "`Cookie` in several fields"
F10 = "fields of the connection (`Connection` and what it names, `Keep-Alive`, `Proxy-Connection`, `Upgrade`, `Transfer-Encoding`)"
F11, F12 = "`TE: trailers`", "`TE` with anything else"
F13 = "a name that servers take for one that frames (`Content_Length`, `Transfer_Encoding`)"
L1, L2 = "`Content-Length` once, a number", "`Content-Length` twice, as a list, or no number"
L3, L4, L5 = "content without a length", "trailers", "no content and no length"
E1, E2 = "`Expect: 100-continue`", "`Expect` with anything else"

REQUESTS = [
    *(Request(M1, f"method {m[:20]}", m, explained=True) for m in
      ("GET", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "LIST", "QUERY", "PROPFIND", "VERSION-CONTROL", "M-SEARCH", "FROB", "get",
       "Get", "*", "A", EVERY, "A" * 32, "PRIO", "HEADS", "CONNECTS", "TRACK")),
    Request(M1, "an unknown method with content", "FROB", body=b"hello", explained=True),
    Request(M2, "33 bytes", "A" * 33, want=501, explained=False),
    Request(M2, "1000 bytes", "A" * 1000, want=501, explained=False),
    *(Request(M3, f"method {m!r}", m, want=400, explained=None if "\0" in m else False)
      for m in ("", "G(T", "G T", "GET:", "G\tT", "GET\x7f", "GET\xe9", "\"GET\"", "G,T", "G\0T")),
    *(Request(M4, f"method {m}", m, want=400, explained=False) for m in ("PRI", "pri", "head", "Head", "connect", "Connect")),
    *(Request(M5, f"method {m}", m, want=405, explained=False) for m in ("TRACE", "trace", "Trace")),
    Request(M6, "CONNECT", "CONNECT", HOST, want=400),
    Request(M6, "CONNECT without a port", "CONNECT", "api.lab.test", want=400),
    *(Request(T1, f"target {t}", target=t, sees={"target": s or t}) for t, s in
      (("/v?a=b", None), ("/v?", None), ("/v?%0d%0a", None), ("/v?a=/../b&c=?", None), ("/a/../v", "/v"), ("/%76", "/v"),
       ("/%c3%a9", "/%C3%A9"), ("/a%2fb", "/a%2Fb"), ("//v", None), ("/a;b", None), ("/a[b]", "/a%5Bb%5D"))),
    Request(T1, "the asterisk", "OPTIONS", "*"),
    Request(T1, "a target of 4000 bytes", target="/" + "a" * 3999),
    *(Request(T2, f"target {t!r}", target=t, want=400) for t in
      ("/a%", "/a%2", "/a%zz", "/a%00", "/..", "/a/../../b", "/a#b", "/a\\b", "/\xe9", "/v?\xe9", "/v\x7f", "/v?\x01", "/a b", "*",
       "v", "/a/..;/b", "")),
    Request(T3, "8193 bytes", target="/" + "a" * 8192, want=414),
    Request(T3, "8193 bytes of query", target="/?" + "a" * 8191, want=414),
    Request(T3, "beyond the head", target="/" + "a" * 13000, want=414),
    Request(H1, "as it is"),
    Request(H1, "in capitals", host=(HOST.upper().replace("{HOST}", "{host:upper}"),)),
    *(Request(H2, f"host {h!r}", host=h, want=400) for h in
      ((), ("",), (HOST, HOST), ("user@" + HOST,), ("api.lab.test:x",), ("api.lab.test:0",), ("a..test",), ("api.lab.test/x",),
       ("api.lab.test, evil.lab.test",), ("[::1",), ("127.1",))),
    Request(H3, "the target another", host=(HOST,), authority="evil.lab.test", want=(403, 421)),
    Request(H3, "the port another", host=(HOST,), authority="api.lab.test:1", want=(403, 421)),
    *(Request(H4, f"host {h}", host=(h,), want=(403, 421)) for h in ("evil.lab.test", "api.lab.test:1", "127.0.0.1", "[::1]")),
    Request(F1, "every byte", fields=[(EVERY.lower(), "a")]),
    Request(F1, "1000 bytes", fields=[("x" * 1000, "a")]),
    *(Request(F2, f"name {n!r}", fields=[(n, "a")], want=400) for n in
      ("", "x y", "x(", "x\xe9", "x\x7f", "x\0", "x\t", "\"x\"", "x/y", "x@y", "x[0]", "x,y", "x=y")),
    *(Request(F3, f"value {v!r}", fields=[("x-a", v)]) for v in ("", "a", "a b", "a\tb", "\xe9\xff", "\"a\\b\"", "a: b", "%0d%0a")),
    *(Request(F4, f"value {v!r}", fields=[("x-a", v)], want=400) for v in
      ("a\0b", "a\x01b", "a\rb", "a\nb", "\x7f", "a\x0bb", "\x1b[2J")),
    *(Request(F5, f"value {v!r}", fields=[("x-a", v)], want=("passed", 400), sees={"fields": [("x-a", "a")]})
      for v in (" a", "a ", "\ta", "a\t", " \t a \t ")),
    Request(F6, "name X-A", fields=[("X-A", "b")], want=("passed", 400), sees={"fields": [("x-a", "b")]}),
    Request(F7, "129 fields", fields=[("x-a", "b")] * 129, want=431),
    Request(F7, "a value of 13000 bytes", fields=[("x-a", "b" * 13000)], want=431),
    Request(F7, "many small ones", fields=[("x-a", "b" * 100)] * 120, want=431),
    Request(F8, "three values", fields=[("x-a", "1"), ("x-b", "2"), ("x-a", "3"), ("x-a", "")]),
    Request(F9, "two crumbs", fields=[("cookie", "a=b"), ("cookie", "c=d")], sees={"cookie": "a=b; c=d"}),
    *(Request(F10, n, h1=[(n, v)], h2=[(n, v)], fields=[("x-a", "b")], want=("passed", 400)) for n, v in
      (("connection", "x-hop"), ("connection", ""), ("keep-alive", "300"), ("proxy-connection", "keep-alive"), ("upgrade", "h2c"))),
    Request(F10, "what Connection names", h1=[("connection", "x-hop"), ("x-hop", "1")], h2=[("connection", "x-hop"), ("x-hop", "1")],
            want=("passed", 400)),
    Request(F10, "transfer-encoding", h2=[("transfer-encoding", "chunked")], want=("passed", 400), length=False, **POST),
    Request(F11, "once", h1=[("te", "trailers")], h2=[("te", "trailers")]),
    Request(F12, "gzip", h1=[("te", "gzip")], h2=[("te", "gzip")], want=("passed", 400)),
    *(Request(F13, n, fields=[(n, "5")], want=400) for n in ("content_length", "transfer_encoding")),
    Request(L1, "content", **POST),
    Request(L1, "no content", method="POST", body=b""),
    Request(L1, "zeros", fields=[("content-length", "0005")], length=False, **POST),
    *(Request(L2, f"length {v!r}", fields=[("content-length", x) for x in v], length=None, want=400, **POST) for v in
      (("5", "5"), ("5", "6"), ("5, 5",), ("5,",), ("+5",), ("-5",), ("0x5",), ("5.0",), ("5 5",), ("",), ("9223372036854775808",),
       ("18446744073709551621",))),
    Request(L3, "content", length=False, **POST),
    *(Request(L5, f"a {m} without a word of it", m, sees={"length": "0"}) for m in ("POST", "PUT", "PATCH")),
    *(Request(L5, f"a {m} without a word of it", m, sees={"length": None}) for m in
      ("GET", "DELETE", "OPTIONS", "QUERY", "PROPFIND", "post", "POSTS", "REPORT")),
    Request(L5, "a GET that says 0", fields=[("content-length", "0")], sees={"length": "0"}),
    Request(L5, "a DELETE that says 0", "DELETE", fields=[("content-length", "0")], sees={"length": "0"}),
    Request(L4, "one that may pass", length=False, trailers=[("x-sum", "1")], **POST),
    Request(L4, "some that may not", length=False, trailers=[("content-length", "9"), ("authorization", "a"), ("host", "b"), ("x-sum", "1")],
            sees={"trailers": [("x-sum", "1")]}, **POST),
    *(Request(L4, f"malformed {n!r}", length=False, trailers=[(n, v)], want="cut", **POST) for n, v in
      (("x y", "a"), ("x", "a\0"), ("", "a"))),
    Request(E1, "once", fields=[("expect", "100-continue")], sees={"fields": []}, **POST),
    Request(E1, "in capitals, behind an empty element", fields=[("expect", ", 100-Continue")], sees={"fields": []}, **POST),
    Request(E1, "of nothing", fields=[("expect", "")], sees={"fields": []}, **POST),
    *(Request(E2, v, fields=[("expect", v)], want=417, **POST) for v in
      ("200-ok", "100-continue;q=1", "y 100-continue", "100-continue, y", "\"100-continue\"")),
]

S1, S2, S3 = "status: three digits from 100 on", "status: anything else", "101 that nobody asked for"
I1, I2 = "at most 64 interim responses", "more of them"
R1, R2 = "field: a name that is a token, any value without control characters", "field: any other name or value"
R3 = "more than 128 fields, or a head of 64 KiB"
C1 = "`Content-Length` once, or the same number several times"
C2, C3 = "`Content-Length` that differs from itself, or is no number", "less content than its length"
C4, C5 = "a length where there is no content (204, 304, an answer to `HEAD`)", "content without a length"
C6, C7 = "trailers", "a name that clients take for one that frames"
C8 = "fields of the connection"

RESPONSES = [
    *(Response(S1, s, s) for s in ("200", "201", "299", "404", "418", "500", "599", "600", "999")),
    *(Response(S2, s or "none", s, want="502") for s in ("099", "000", "20", "2000", "abc", "+20", "-20", "2 0", "")),
    Response(S3, "101", "101", want="502", body=b""),
    Response(I1, "one of each", interims=["100", "102", "103", "199"]),
    Response(I1, "64", interims=["103"] * 64),
    Response(I2, "65", interims=["103"] * 65, want="502"),
    Response(R1, "odd ones", fields=[(EVERY.lower(), "a"), ("x-a", ""), ("x-b", "a\tb"), ("x-c", "\xe9"), ("x-a", "2")]),
    *(Response(R2, f"name {n!r}", fields=[(n, "a")], want="502") for n in ("", "x(", "x\xe9", "x y", "x\0")),
    *(Response(R2, f"value {v!r}", fields=[("x-a", v)], want="502") for v in ("a\0b", "a\x01", "a\rb", "a\nb", "\x7f")),
    Response(R3, "129 fields", fields=[("x-a", "b")] * 129, want="502"),
    Response(R3, "66000 bytes", fields=[(f"x-{i}", "b" * 1000) for i in range(66)], want="502"),
    Response(C1, "once"),
    Response(C1, "twice", fields=[("content-length", "2"), ("content-length", "02")], length=False),
    Response(C1, "a list", fields=[("content-length", "2, 2,")], length=False),
    *(Response(C2, f"{v}", fields=[("content-length", x) for x in v], length=None, want="502") for v in
      (("2", "3"), ("2, 3",), ("+2",), ("x",), ("",), (",",), ("9223372036854775808",))),
    Response(C3, "a byte less", fields=[("content-length", "3")], length=None, want="cut"),
    Response(C4, "204", "204", fields=[("content-length", "2")], body=b"", length=None, sees={"length": None}),
    Response(C4, "304", "304", fields=[("content-length", "2")], body=b"", length=None, sees={"length": "2"}),
    Response(C4, "HEAD", fields=[("content-length", "2")], body=b"", length=None, method="HEAD", sees={"length": "2"}),
    Response(C5, "content", length=False),
    Response(C6, "some", length=False, trailers=[("x-sum", "1"), ("set-cookie", "a=b"), ("content-length", "9")],
             sees={"trailers": [("x-sum", "1")]}),
    *(Response(C6, f"malformed {n!r}", length=False, trailers=[(n, v)], want="cut") for n, v in (("x(", "a"), ("x", "a\x01"), ("", "a"))),
    *(Response(C7, n, fields=[(n, "5")], want="502") for n in ("content_length", "transfer_encoding")),
    *(Response(C8, n, h1=[(n, v)], h2=[(n, v)], want=("passed", "502")) for n, v in
      (("connection", "x-hop"), ("keep-alive", "300"), ("upgrade", "h2c"), ("proxy-connection", "a"))),
]


# --- as bytes ---

def text(value, host):
    return value.replace("{host:upper}", host.upper()).replace("{host}", host)


def request_of_http1(r, host, identity):
    target = f"https://{text(r.authority, host)}{r.target}" if r.authority else text(r.target, host)
    lines = [f"{r.method} {target} HTTP/1.1"] + [f"Host: {text(h, host)}" for h in r.host]
    lines += [f"{n}: {v}" for n, v in [("x-case", identity), *r.fields, *r.h1]]
    body = r.body or b""
    if r.length and r.body is not None:
        lines.append(f"content-length: {len(body)}")
    if r.length is False and not any(n == "content-length" for n, _ in r.fields):
        lines.append("transfer-encoding: chunked")
        body = b"%x\r\n%s\r\n0\r\n" % (len(body), body) + "".join(f"{n}: {v}\r\n" for n, v in r.trailers).encode("latin-1") + b"\r\n"
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body


def request_of_http2(r, host, identity, stream):
    """Frames. More than one host is what :authority and fields "host" say together."""
    hosts = [text(h, host) for h in r.host]
    fields = [(":method", r.method)]
    if r.method == "CONNECT":
        fields.append((":authority", text(r.target, host)))
    else:
        fields += [(":scheme", "https"), (":path", text(r.target, host))]
        if r.authority:
            fields.append((":authority", text(r.authority, host)))
        elif hosts:
            fields.append((":authority", hosts.pop(0)))
    if r.method != "CONNECT":
        fields += [("host", h) for h in (hosts if r.authority else hosts * 2)]
    fields += [("x-case", identity), *r.fields, *r.h2]
    if r.length and r.body is not None:
        fields.append(("content-length", str(len(r.body))))
    out = h2frames.headers(stream, h2frames.block(fields), end_stream=not r.body)
    if r.body:
        out += h2frames.data(stream, r.body, end=not r.trailers)
    if r.trailers:
        out += h2frames.headers(stream, h2frames.block(r.trailers))
    return out


def response_of_http1(r):
    out = b"".join(f"HTTP/1.1 {s} Interim\r\n\r\n".encode() for s in r.interims)
    lines = [f"HTTP/1.1 {r.status} Odd"] + [f"{n}: {v}" for n, v in r.fields + r.h1]
    body = r.body
    if r.length:
        lines.append(f"content-length: {len(body)}")
    elif r.length is False and not any(n == "content-length" for n, _ in r.fields):
        lines.append("transfer-encoding: chunked")
        body = b"%x\r\n%s\r\n0\r\n" % (len(body), body) + "".join(f"{n}: {v}\r\n" for n, v in r.trailers).encode("latin-1") + b"\r\n"
    return out + "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body


def blocks(stream, block, end):
    """HEADERS, and CONTINUATION where one frame is too small."""
    pieces = [block[i:i + 16384] for i in range(0, len(block), 16384)] or [b""]
    out = h2frames.headers(stream, pieces[0], end_stream=end, end_headers=len(pieces) == 1)
    for i, piece in enumerate(pieces[1:], 2):
        out += h2frames.continuation(stream, piece, i == len(pieces))
    return out


def response_of_http2(r, stream):
    out = b"".join(h2frames.headers(stream, h2frames.block([(":status", s)]), end_stream=False) for s in r.interims)
    fields = [(":status", r.status), *r.fields, *r.h2] + ([("content-length", str(len(r.body)))] if r.length else [])
    out += blocks(stream, h2frames.block(fields), not r.body)
    if r.body:
        out += h2frames.data(stream, r.body, end=not r.trailers)
    if r.trailers:
        out += h2frames.headers(stream, h2frames.block(r.trailers))
    return out


# --- the client ---

CONTEXTS = {alpn: ssl.create_default_context() for alpn in ("http/1.1", "h2")}
for name, context in CONTEXTS.items():
    context.set_alpn_protocols([name])


def opened(order, alpn):
    s = socket.create_connection((order["host"], order["port"]), PATIENCE)
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return CONTEXTS[alpn].wrap_socket(s, server_hostname=order["host"])


def head_of(data):
    """(status, fields) of a head."""
    lines = data.decode("latin-1").split("\r\n")
    return int(lines[0].split(" ")[1]), [[n.lower(), v.strip(" \t")] for n, _, v in (line.partition(":") for line in lines[1:])]


def read_http1(s, method):
    """The response, as a strict client reads it."""
    data, got = b"", {"interims": [], "status": None, "fields": [], "body": "", "trailers": [], "whole": False}

    def until(mark):
        nonlocal data
        while mark not in data:
            piece = s.recv(65536)
            if not piece:
                raise EOFError
            data += piece
        part, _, data = data.partition(mark)
        return part

    def take(n):
        nonlocal data
        while len(data) < n:
            piece = s.recv(65536)
            if not piece:
                got["body"] += data.decode("latin-1")
                raise EOFError
            data += piece
        part, data = data[:n], data[n:]
        return part.decode("latin-1")
    try:
        while True:
            status, fields = head_of(until(b"\r\n\r\n"))
            if status >= 200 or status == 101:
                break
            got["interims"].append(status)
        got["status"], got["fields"] = status, fields
        known = dict(map(tuple, fields))
        if method == "HEAD" or status in (204, 304):
            pass
        elif "transfer-encoding" in known:
            while size := int(until(b"\r\n"), 16):
                got["body"] += take(size)
                take(2)
            while line := until(b"\r\n"):
                n, _, v = line.decode("latin-1").partition(":")
                got["trailers"].append([n.lower(), v.strip()])
        else:
            got["body"] += take(int(known.get("content-length", "0")))
        got["whole"] = True
    except (EOFError, OSError, ValueError):
        pass
    return got


def ask_http1(order, case):
    host = f"{order['host']}:{order['port']}"
    with opened(order, "http/1.1") as s:
        s.settimeout(PATIENCE)
        s.sendall(request_of_http1(case, host, order["id"]))
        return read_http1(s, case.method)


def ask_http2(order, case):
    host = f"{order['host']}:{order['port']}"
    with opened(order, "h2") as s:
        p = Peer(s)
        p.send(PREFACE)
        p.send_settings()
        p.wait(lambda: p.settings is not None and p.settings_acks, PATIENCE)
        one = p.stream(1)
        p.send(request_of_http2(case, host, order["id"], 1))
        p.wait(lambda: one.over() or p.closed, PATIENCE)
        heads = [[list(f) for f in h] for h in one.heads]
        interims = [h for h in heads if dict(map(tuple, h)).get(":status", "").startswith("1")]
        rest = heads[len(interims):]
        return {"interims": [int(dict(map(tuple, h))[":status"]) for h in interims], "status": one.status(),
                "fields": [f for f in rest[0] if not f[0].startswith(":")] if rest else [], "body": one.body.decode("latin-1"),
                "trailers": rest[1] if len(rest) > 1 else [], "whole": one.ended, "reset": one.reset,
                "goaway": [g[1] for g in p.goaways], "violations": p.violations}


def ask(order):
    case = Request("", "", RESPONSES[order["case"]].method) if order["of"] == "responses" else REQUESTS[order["case"]]
    try:
        return {"id": order["id"], **(ask_http1 if order["version"] == 11 else ask_http2)(order, case)}
    except (OSError, ssl.SSLError) as e:
        return {"id": order["id"], "status": None, "body": "", "error": repr(e)}


if __name__ == "__main__":
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        print(json.dumps(list(pool.map(ask, json.load(sys.stdin)))))
