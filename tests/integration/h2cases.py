# SPDX-License-Identifier: Apache-2.0
"""The golden files h2/*.case: what a client (or, in h2/upstream.case, an upstream) sends, frame by frame, and what has to
come of it. h2/README tells the language. As a program it runs inside the sandbox and is the client:

    h2cases.py HOST PORT [FILE...]      one line of JSON: [{"id", "name", "why": [...]}], why is empty where all is well
"""
import concurrent.futures
import functools
import glob
import json
import os
import re
import socket
import ssl
import struct
import sys
import time

import h2frames
from h2frames import ERRORS, FLAGS, PREFACE, TYPE, Peer

HERE = os.path.dirname(os.path.abspath(__file__))
PATIENCE = 15 * int(os.environ.get("SLOW", "1"))
FRAMES = set(TYPE) | {"FRAME", "BYTES", "request", "open", "repeat"}
IGNORED = b"ignored?"
TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"(?:\*\d+)?|\S+')


class Case:
    def __init__(self, identity, name, tags, place):
        self.id, self.name, self.tags, self.place = identity, name, tags, place
        self.steps = []         # (words, block lines, line number)
        self.origin = []        # what the origin must have seen, as text


def load(path):
    """The cases of a file, in order."""
    stem, cases = os.path.basename(path).removesuffix(".case"), []
    with open(path) as f:
        for number, line in enumerate(f, 1):
            line = line.rstrip("\n")
            if not line.strip() or line.startswith("#"):
                continue
            if line.startswith("== "):
                m = re.fullmatch(r"== (.*?)((?: \[\w+\])*)", line)
                cases.append(Case(f"{stem}-{len(cases) + 1}", m.group(1), set(re.findall(r"\w+", m.group(2))),
                                  f"{os.path.basename(path)}:{number}"))
            elif line[0].isspace():
                cases[-1].steps[-1][1].append(line.strip())
            elif line.startswith("origin "):
                cases[-1].origin.append(line[7:])
            else:
                cases[-1].steps.append((TOKEN.findall(line), [], number))
    return cases


def unescape(text):
    return text.encode("latin-1").decode("unicode_escape").encode("latin-1")


def literal_bytes(token):
    """"text", "text"*N or hex:..., else None."""
    if token.startswith("hex:"):
        return bytes.fromhex(token[4:])
    if token.startswith('"'):
        text, _, times = token.rpartition('"')
        return unescape(text[1:]) * int(times[1:] or 1)
    return None


# --- field blocks ---

class Names:
    """What $-words stand for."""

    def __init__(self, host, port, identity, stream=None):
        self.values = {"host": host, "authority": host if port == 443 else f"{host}:{port}", "port": str(port),
                       "id": identity, "path": "/ok/" + identity, "stream": str(stream or 0)}

    def fill(self, text):
        return re.sub(r"\$(\w+)", lambda m: self.values.get(m.group(1), m.group(0)), text)


def request_fields(names, method, path):
    return [(":method", method), (":scheme", "https"), (":authority", names.values["authority"]),
            (":path", f"{path}/{names.values['id']}")]


def field(line, **how):
    name, _, value = (":" + line[1:].partition(":")[0], "", line[1:].partition(":")[2]) if line.startswith(":") else \
        line.partition(":")
    times = re.fullmatch(r' ?"(.*)"\*(\d+)', value)
    value = unescape(times.group(1)) * int(times.group(2)) if times else unescape(value.removeprefix(" "))
    return h2frames.literal(unescape(name), value, **how)


def encode_block(lines, names):
    out = b""
    for line in lines:
        line = names.fill(line)
        word, _, rest = line.partition(" ")
        if word in ("get", "post"):
            out += h2frames.block(request_fields(names, word.upper(), rest or "/ok"))
        elif word in ("incremental", "never", "plain"):
            out += field(rest, how=word)
        elif word == "huffman":
            out += field(rest, huffman=True)
        elif word == "named":       # named INDEX VALUE: the name by its index, with incremental indexing
            index, _, value = rest.partition(" ")
            out += h2frames.literal(b"", unescape(value), "incremental", index=int(index))
        elif word == "index":
            out += h2frames.indexed(int(rest))
        elif word == "table-size":
            out += h2frames.table_size(int(rest))
        elif word == "hex":
            digits, _, times = rest.partition("*")
            out += bytes.fromhex(digits) * int(times or 1)
        elif word == "fields":      # fields N BYTES: that many fields with values of that length
            n, size = map(int, rest.split())
            out += b"".join(h2frames.literal(f"x-{i}", b"v" * size) for i in range(n))
        else:
            out += field(line)
    return out


# --- frames ---

def number(text, table):
    return table[text] if text in table else int(text, 0)


def encode(words, block, names):
    """The bytes of one line that sends."""
    kind, rest = words[0], [names.fill(w) for w in words[1:]]
    if kind == "repeat":
        return encode(words[2:], block, names) * int(words[1])
    if kind == "BYTES":
        return b"".join(literal_bytes(w) for w in rest)
    if kind in ("request", "open"):
        path = next((w for w in rest[1:] if w.startswith("/")), "/ok")
        method = next((w for w in rest[1:] if w.isupper()), "GET" if kind == "request" else "POST")
        fields = h2frames.block(request_fields(names, method, path)) + encode_block(block, names)
        return h2frames.headers(int(rest[0]), fields, end_stream=kind == "request")
    flags, stream, options, payload, values, code = 0, None, {}, b"", [], 0
    if kind == "FRAME":
        kind = int(rest.pop(0), 0)
    for w in rest:
        raw = literal_bytes(w)
        key, equals, value = w.partition("=")
        if raw is not None:
            payload += raw
        elif w in FLAGS:
            flags |= FLAGS[w]
        elif w == "reserved":
            options["reserved"] = 1
        elif equals and (key in h2frames.SETTINGS or key.startswith("0x")):
            values.append((number(key, h2frames.SETTINGS), int(value, 0)))
        elif equals:
            options[key] = value
        elif w in ERRORS or stream is not None or "last" in options or (w.startswith("+") and kind == "WINDOW_UPDATE"):
            code = number(w, h2frames.ERROR)
        else:
            stream = int(w, 0)
    return finish(kind, flags, stream, options, payload, values, code, encode_block(block, names))


def finish(kind, flags, stream, options, payload, values, code, block):
    if kind in ("HEADERS", "CONTINUATION", "PUSH_PROMISE"):
        payload += block
    if kind == "PUSH_PROMISE":
        payload = struct.pack(">I", int(options.get("promised", "2"))) + payload
    elif kind == "PRIORITY" and not payload:
        payload = struct.pack(">IB", int(options.get("dep", "0")), int(options.get("weight", "15")))
    elif kind == "HEADERS" and "dep" in options:
        payload = struct.pack(">IB", int(options["dep"]), int(options.get("weight", "15"))) + payload
        flags |= FLAGS["PRIORITY"]
    elif kind in ("RST_STREAM", "WINDOW_UPDATE") and not payload:
        payload = struct.pack(">I", code & 0xffffffff)
    elif kind == "GOAWAY" and not payload.startswith(b"raw"):
        payload = struct.pack(">II", int(options.get("last", "0")), code) + payload
    elif kind == "SETTINGS":
        payload = b"".join(struct.pack(">HI", k, v) for k, v in values) + payload
    if kind == "GOAWAY" and payload.startswith(b"raw"):
        payload = payload[3:]
    if "pad" in options:
        said, _, real = options["pad"].partition("/")
        payload = h2frames.padded(payload, (int(said), int(real or said)))
        flags |= FLAGS["PADDED"]
    flags |= int(options.get("flags", "0"), 0)
    reserved = options.get("reserved", 0)
    if "split" in options:  # the block in that many frames
        n, size = int(options["split"]), -(-len(payload) // int(options["split"]))
        out = h2frames.frame(kind, stream, flags & ~4, payload[:size], reserved=reserved)
        for i in range(1, n):
            out += h2frames.frame("CONTINUATION", stream, 4 if i == n - 1 else 0, payload[i * size:(i + 1) * size])
        return out
    return h2frames.frame(kind, stream or 0, flags, payload, reserved=reserved,
                          length=int(options["length"], 0) if "length" in options else None)


# --- the client's run of one case ---

@functools.cache
def tls_context(alpn):
    context = ssl.create_default_context()
    if os.environ.get("H2_UNVERIFIED"):
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_alpn_protocols([alpn])
    return context


@functools.cache
def address_of(host):
    return socket.getaddrinfo(host, 0, socket.AF_INET, socket.SOCK_STREAM)[0][4][0]


class Run:
    def __init__(self, case, host, port):
        self.case, self.names, self.why = case, Names(host, port, case.id), []
        self.peer, self.decided = None, False

    def connect(self, host, port):
        alpn = "http/1.1" if "http1" in self.case.tags else "h2"
        plain = socket.create_connection((address_of(os.environ.get("H2_ADDRESS", host)), port), 10)
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock = tls_context(alpn).wrap_socket(plain, server_hostname=host)
        if sock.selected_alpn_protocol() != alpn:
            raise ValueError(f"ALPN gave {sock.selected_alpn_protocol()}")
        self.peer = Peer(sock)
        if "http1" in self.case.tags:
            self.decided = True
        if self.case.tags & {"bare", "http1"}:
            return
        self.peer.send(PREFACE)
        self.peer.send_settings()
        if not self.peer.wait(lambda: self.peer.settings is not None and self.peer.settings_acks, PATIENCE):
            raise ValueError("no SETTINGS of the server, or no acknowledgement")

    def run(self, host, port):
        began = time.monotonic()
        try:
            self.connect(host, port)
            for words, block, line in self.case.steps:
                try:
                    self.step(words, block)
                except (ValueError, KeyError, IndexError, TypeError) as e:
                    self.why.append(f"line {line}: {type(e).__name__} {e}")
                    break
            if not self.decided and not self.why:
                self.alive()
        except (OSError, ssl.SSLError, ValueError) as e:
            self.why.append(f"{type(e).__name__}: {e}")
        if self.peer:
            self.why += ["the server's own: " + v for v in self.peer.violations if "http1" not in self.case.tags]
            self.peer.sock.close()
        return {"id": self.case.id, "name": self.case.name, "why": self.why,
                "seconds": round(time.monotonic() - began, 3)}

    def step(self, words, block):
        verb = words[0]
        if verb == "SETTINGS" and "ACK" not in words:
            self.settings(words)
        elif verb in FRAMES:
            if verb == "WINDOW_UPDATE" and words[-1].startswith("+"):
                self.grant(*words[1:])
            if "bare" in self.case.tags and "hex:000000040000000000" in words:
                self.peer.unacknowledged.append([])
            if verb in ("HEADERS", "request", "open"):
                self.peer.stream(int(words[1]))
            self.peer.send(encode(words, block, self.names))
        else:
            getattr(self, "do_" + verb)(*words[1:])

    def settings(self, words):
        """Sent as they are, and remembered until they are acknowledged."""
        text = encode(words, [], self.names)
        payload = text[9:]
        self.peer.unacknowledged.append([struct.unpack(">HI", payload[i:i + 6]) for i in range(0, len(payload) // 6 * 6, 6)])
        self.peer.send(text)

    def grant(self, stream, n):
        """Keeps account of the window; the frame itself is sent like any other."""
        stream, n = int(stream), int(n) & 0x7fffffff
        if stream == 0:
            self.peer.window += n
        elif stream in self.peer.streams:
            self.peer.streams[stream].window += n

    def do_barrier(self):
        """The peer has processed everything sent before."""
        mark = struct.pack(">Q", time.monotonic_ns())
        self.peer.send(h2frames.ping(mark))
        if not self.peer.wait(lambda: mark in self.peer.pongs, PATIENCE):
            raise ValueError("no answer to PING: " + self.seen())

    def alive(self):
        if self.peer.failed():
            raise ValueError("the connection ended: " + self.seen())
        self.do_barrier()

    def do_wait(self, stream, what):
        s = self.peer.stream(int(stream))
        key, _, value = what.partition("=")
        done = {"status": lambda: s.status() is not None, "over": s.over, "data": lambda: len(s.body) >= int(value or 1),
                "reset": lambda: s.reset}[key]
        if not self.peer.wait(lambda: done() or self.peer.failed(), PATIENCE) or not done():
            raise ValueError(f"stream {stream}: no {what}: " + self.seen())

    def do_have(self, stream, what, *rest):
        s = self.peer.stream(int(stream))
        key, _, value = what.partition("=")
        if key == "data" and len(s.body) != int(value):
            raise ValueError(f"stream {stream}: {len(s.body)} octets of DATA, not {value}")
        if key == "field" and s.final().get(rest[0].rstrip(":")) != " ".join(rest[1:]):
            raise ValueError(f"stream {stream}: fields {s.final()}")
        if key == "nothing" and (s.heads or s.reset or s.body):
            raise ValueError(f"stream {stream}: " + self.seen())
        if key not in ("data", "field", "nothing"):
            raise ValueError(f"have {what}?")

    def do_pong(self, token):
        if not self.peer.wait(lambda: literal_bytes(token) in self.peer.pongs, PATIENCE):
            raise ValueError("that PING was not answered: " + self.seen())

    def do_pongs(self, n):
        self.do_barrier()
        if len(self.peer.pongs) != int(n) + 1:
            raise ValueError(f"{len(self.peer.pongs) - 1} answers to PING")

    def do_acks(self, n):
        """The server has acknowledged n SETTINGS of this case."""
        want = int(n) + (not self.case.tags & {"bare"})
        if not self.peer.wait(lambda: self.peer.settings_acks >= want, PATIENCE):
            raise ValueError(f"{self.peer.settings_acks} acknowledgements, not {want}")

    def do_slowly(self, *tokens):
        """One octet per segment; the preface and empty SETTINGS."""
        self.peer.unacknowledged.append([])
        for b in b"".join(map(literal_bytes, tokens)):
            self.peer.send(bytes([b]))

    def do_flood(self, stream):
        """DATA without regard to the server's window, until it says so, at most 64 MiB."""
        self.peer.send_flood(h2frames.data(int(stream), bytes(16384)) for _ in range(4096)
                             if not self.peer.stream(int(stream)).reset)

    def do_expect(self, *words):
        stream = int(words[0]) if words[0].isdigit() else None
        text = " ".join(words[1:] if stream is not None else words)
        if text == "alive":
            self.decided = True
            return self.alive()
        end = text.endswith(" ...")
        alternatives = text.removesuffix(" ...").split(" or ")
        s = self.peer.stream(stream) if stream is not None else None
        if {"ignored", "alive"} & set(alternatives):
            self.peer.send(h2frames.ping(IGNORED))
            self.peer.wait(lambda: IGNORED in self.peer.pongs or self.peer.failed(), PATIENCE)
        else:
            self.peer.wait(lambda: self.peer.failed() or (s and s.over()), PATIENCE)
        for a in alternatives:
            if self.holds(a, s):
                break
        else:
            raise ValueError(f"expected {' '.join(words)}; " + self.seen())
        self.decided = True
        if a.startswith("goaway") or a == "closed":
            if not self.peer.wait(lambda: self.peer.closed, PATIENCE):
                raise ValueError("the connection was not closed after GOAWAY (5.4.1)")
        elif not end and a not in ("alive", "ignored"):
            self.alive()

    def holds(self, alternative, s):
        word, _, rest = alternative.partition(" ")
        if word == "goaway":
            return self.peer.failed() in rest.split("/")
        if word == "closed":
            return self.peer.closed and not self.peer.failed()
        if word == "malformed":  # 8.1.1: the stream's end, or an answer that says so
            return s.reset == "PROTOCOL_ERROR" or s.status() == 400
        if word == "reset":
            return s.reset in rest.split("/")
        if word == "alive":
            return IGNORED in self.peer.pongs and not self.peer.failed()
        if word == "ignored":
            return IGNORED in self.peer.pongs and not self.peer.failed() and not (s and s.reset)
        if word == "interim":
            return any(dict(h).get(":status") == rest for h in s.heads)
        return s.over() and str(s.status()) in word.split("/") and (s.ended or s.reset == "NO_ERROR")

    def seen(self):
        p = self.peer
        streams = {n: (s.status(), len(s.body), "ended" if s.ended else "", s.reset) for n, s in p.streams.items()}
        return (f"got frames {dict(p.kinds)}, goaway {[(g[0], g[1], g[2][:80]) for g in p.goaways]}, streams {streams}"
                f"{', closed: ' + str(p.closed) if p.closed else ''}")


# --- what the origin saw ---

def origin_complaints(case, requests, host, port):
    """Why what the origin saw (h2origin.Request) is not what the case says; [] where it is."""
    names = Names(host, port, case.id)
    return [f"origin {line}: saw {[(r.method, r.target, r.fields, r.body[:80], r.whole) for r in requests]}"
            for line in case.origin if not origin_holds(names.fill(line), case, requests)]


def origin_holds(line, case, requests):
    words, whole = line.split(), [r for r in requests if r.whole]
    last = whole[-1] if whole else None
    if line == "nothing":
        return not requests
    if line == "no whole request":
        return not whole
    if words[0] == "requests":
        return len(whole if words[1] == "whole" else requests) == int(words[-1])
    if words[:2] == ["no", "path"]:
        return not any(r.target.startswith(words[2] + "/") for r in requests)
    if words[:2] == ["no", "text"]:
        return not any(words[2].encode() in r.raw + r.body for r in requests)
    if words[:2] == ["no", "field"]:
        return requests and not any(r.values(words[2]) for r in requests)
    if words[:2] == ["no", "trailer"]:
        return not any(n == words[2] for r in requests for n, _ in r.trailers)
    if last is None:
        return False
    if words[0] == "saw":
        return (last.method, last.target) == (words[1], f"{words[2]}/{case.id}")
    if words[0] == "target":
        return last.target == words[1]
    if words[0] == "body":
        return last.body == (literal_bytes(words[1]) if words[1].startswith('"') else bytes([last.body[0]]) * int(words[1]))
    if words[0] in ("field", "joined"):
        name, _, value = unescape(line[len(words[0]) + 1:]).decode("latin-1").rpartition(": ") if ": " in line else \
            (line[len(words[0]) + 1:].rstrip(":"), "", "")
        found = last.values(name)
        return ", ".join(found) == value and (words[0] == "joined" or len(found) == 1)
    raise ValueError("origin " + line)


def play(case, peer, stream):
    """The origin's side of a case: sends its lines on the stream whose request came."""
    names = Names("", 0, case.id, stream)
    for words, block, _ in case.steps:
        if words[0] in ("client", "event"):
            continue
        if "SETTINGS" in words:
            peer.unacknowledged.extend([] for _ in range(int(words[1]) if words[0] == "repeat" else 1))
        if words[0] == "close":
            peer.sock.close()
            peer.closed = True
            return
        if words[0] == "repeat":
            one = encode(words[2:], block, names)
            each = max(1, 65536 // max(1, len(one)))  # whoever counts frames in a second is to see them, however busy this machine
            peer.send_flood(one * each for _ in range(-(-int(words[1]) // each)))
        else:
            peer.send(encode(words, block, names))


# --- ordinary requests ---

def fetch(host, port, *requests, seconds=30):
    """Requests (method, path, body) at once on one connection: [(status, body, reset)]. Bodies go out as windows allow."""
    run = Run(Case("fetch", "", set(), ""), host, port)
    run.connect(host, port)
    p = run.peer
    for i, (method, path, body) in enumerate(requests):
        fields = [(":method", method), (":scheme", "https"), (":authority", run.names.values["authority"]), (":path", path)]
        p.stream(2 * i + 1)
        p.send(h2frames.headers(2 * i + 1, h2frames.block(fields), end_stream=not body))
    for i, (_, _, body) in enumerate(requests):
        if body:
            p.send_body(2 * i + 1, body, seconds=seconds)
    p.wait(lambda: all(s.over() for s in p.streams.values()), seconds * int(os.environ.get("SLOW", "1")))
    p.sock.close()
    return [(s.status(), s.body.decode("latin-1")[:200], s.reset) for _, s in sorted(p.streams.items())]


# --- the client of h2/upstream.case: one connection, one request after the other ---

def visit(host, port, files):
    """{id: what the client got}, with a good request after each: nothing else may break."""
    found, violations, run, number = {}, [], None, -1

    def get(path):
        nonlocal run, number
        if run is None or run.peer.closed or run.peer.goaways:
            run, number = Run(Case("visitor", "", set(), ""), host, port), -1
            run.connect(host, port)
        p, number = run.peer, number + 2
        s = p.stream(number)
        p.send(h2frames.headers(number, h2frames.block(request_fields(Names(host, port, path[1]), "GET", path[0]))))
        p.wait(lambda: s.over() or p.closed, 4 * PATIENCE)
        p.grant(0, len(s.body) or 1)
        violations.extend(p.violations)
        p.violations = []
        return s
    for case in (c for f in files for c in load(f)):
        began = time.monotonic()
        s = get(("/u", case.id))
        after = get(("/ok", f"after-{case.id}"))
        found[case.id] = {"status": s.status(), "body": s.body.decode("latin-1")[:100], "whole": s.ended, "reset": s.reset,
                          "over": s.over(), "interim": [h for h in s.heads if dict(h).get(":status", "").startswith("1")][:5],
                          "after": after.status(), "goaway": [g[1] for g in run.peer.goaways], "seconds": time.monotonic() - began}
    return {"found": found, "violations": violations}


def visit1(host, port, files):
    """The same over HTTP/1.1, a connection for each case and its neighbor."""
    import inside
    found = {}
    for case in (c for f in files for c in load(f)):
        began, got = time.monotonic(), {"status": None, "body": "", "whole": False, "reset": None, "after": None, "goaway": []}
        for path in (f"/u/{case.id}", f"/ok/after-{case.id}"):
            sock = tls_context("http/1.1").wrap_socket(
                socket.create_connection((address_of(host), port), 4 * PATIENCE), server_hostname=host)
            reader = inside.Reader(sock)
            try:
                sock.sendall(inside.request("GET", path, f"{host}:{port}"))
                status, fields = reader.head()
                while status < 200:
                    status, fields = reader.head()
                if path.startswith("/ok"):
                    got["after"] = status
                    continue
                got["status"] = status
                body = b""
                if fields.get("transfer-encoding"):
                    body = reader.chunked()
                elif status != 204:
                    body = reader.take(int(fields["content-length"]))
                got.update(body=body.decode("latin-1")[:100], whole=True)
            except (OSError, EOFError, ValueError, KeyError) as e:
                got["reset"] = got["reset"] or type(e).__name__
            finally:
                sock.close()
        found[case.id] = {**got, "seconds": time.monotonic() - began}
    return {"found": found, "violations": []}


def main():
    if sys.argv[1] in ("--visit", "--visit1"):
        print(json.dumps((visit if sys.argv[1] == "--visit" else visit1)(sys.argv[2], int(sys.argv[3]), sys.argv[4:])))
        return
    host, port, files = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
    files = files or sorted(f for f in glob.glob(os.path.join(HERE, "h2", "*.case")) if os.path.basename(f) != "upstream.case")
    skip = set(os.environ.get("H2_SKIP", "").split())
    cases = [c for f in files for c in load(f) if not c.tags & skip]
    address_of(os.environ.get("H2_ADDRESS", host))  # once, before there are threads
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        print(json.dumps(list(pool.map(lambda c: Run(c, host, port).run(host, port), cases))))


if __name__ == "__main__":
    main()
