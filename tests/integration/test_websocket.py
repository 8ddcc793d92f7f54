# SPDX-License-Identifier: Apache-2.0
"""WebSockets through one sandbox, with an origin and a client that write and read every frame themselves."""
import hashlib
import json
import os
import sys

import lab
import support
from support import policy

PORT = 9445
OPEN, API = "www.lab.test", "api.lab.test"
PLACEHOLDER = "os.environ['API_KEY']"
BEGIN = f"""
from websocket_frames import *
PORT = {PORT}
def ws(path, *fields, host="{OPEN}", early=b""):
    return Client(tls(host, PORT), host + ":" + str(PORT), path, *fields, early=early)
"""


class Box(support.Boxed):
    @classmethod
    def make_box(cls):
        lab_ = support.LAB
        if not os.path.exists(lab_.path(f"websocket.{PORT}.ready")):
            lab_.spawn_outside([sys.executable, os.path.join(support.HERE, "websocket_origin.py"), lab_.dir, lab.ORIGIN4, str(PORT)])
            lab_.wait_for_file(f"websocket.{PORT}.ready")
        return support.Sandbox(policy(f"https://{OPEN}:{PORT}", f"{{to: 'https://{API}:{PORT}', credential: api}}",
                                      credentials=support.file_credential()))

    def setUp(self):
        super().setUp()
        self.events_before = len(self.box.events())
        self.rows_before = len(self.rows(0))

    def py(self, code, **kw):
        out = super().py(BEGIN + "import os\n" + code, **kw)
        self.assert_no_secret(out)
        return out.strip()

    def rows(self, since=None):
        try:
            with open(support.LAB.path("websocket.jsonl")) as f:
                return [json.loads(line) for line in f][self.rows_before if since is None else since:]
        except FileNotFoundError:
            return []

    def row(self, path):
        """What the origin says of the one connection for that path."""
        found = support.wait_until(lambda: [r for r in self.rows() if r["path"] == path], 5 * support.SLOW)
        self.assertEqual(len(found), 1, found)
        return found[0]

    def findings(self, code):
        return [e for e in self.box.events()[self.events_before:] if e["class_uid"] == support.FINDING and code in json.dumps(e)]

    def assert_memory(self, before):
        """The worker has not grown; an instrumented one keeps what was freed."""
        grown = support.memory_peak_kib(self.box.pids()["worker"]) - before
        if not support.ASAN:
            self.assertLess(grown, 8192)


class Whole(Box):
    def test_early_frames_of_both_sides(self):
        out = self.py("c = ws('/early', early=frame(TEXT, b'four') + frame(PING, b'p'))\n"
                      "print(c.status, [c.next()[3].decode() for _ in range(5)])")
        self.assertEqual(out, "101 ['one', 'two', 'three', 'four', 'p']")

    def test_sizes(self):
        out = self.py(f"for host in '{OPEN}', '{API}':\n c = ws('/echo', host=host)\n"
                      " for n in (0, 1, 125, 126, 127, 65535, 65536, 1 << 20):\n"
                      "  data = os.urandom(n); c.send(BINARY, data); got = c.next()\n  print(got[:3] == (BINARY, True, False), got[3] == data)")
        self.assertEqual(out.split(), ["True"] * 32)

    def test_ping_pong_and_close(self):
        out = self.py("c = ws('/echo')\nc.send(PING, b'are you there')\nprint(c.next())\nc.send(PONG, b'unasked')\n"
                      "c.send(CLOSE, b'\\x0f\\xa1mine')\nprint(c.next())\nprint(c.closed())")
        self.assertEqual(out.splitlines(), ["(10, True, False, b'are you there')", "(8, True, False, b'\\x0f\\xa1mine')", "None"])
        row = self.row("/echo")
        self.assertEqual((row["code"], row["end"]), (4001, "closed"))

    def test_nothing_waits(self):
        for host in OPEN, API:
            out = self.py(f"c = ws('/echo', host='{host}')\nfor i in range(30):\n t = time.monotonic(); c.send(TEXT, b'sk-lab-0'); d = c.next()\n"
                          " print(int((time.monotonic() - t) * 1000))")
            self.assertLess(sorted(map(int, out.split()))[20], 100 * support.SLOW, out)

    def test_fragments_are_the_sandbox_s_own(self):
        out = self.py("c = ws('/echo')\nfor part in (b'a', b'', b'bc'): c.send(TEXT if part == b'a' else 0, part, fin=False)\nc.send(PING)\n"
                      "c.send(0, b'd')\nprint(c.message())\nc.send(CLOSE)\nc.closed()")
        self.assertEqual(out, "(b'abcd', [(10, b'')])")
        self.assertEqual(self.row("/echo")["seen"], [[1, False, 1, False], [0, False, 0, False], [0, False, 2, False],
                                                     [9, True, 0, False], [0, True, 1, False], [8, True, 0, False]])

    def test_the_sandbox_shuts_its_side_down(self):
        out = self.py("s = tls(%r, PORT, alpn=None)\nc = Client(s, %r, '/echo')\nc.send(TEXT, b'last'); c.send(CLOSE, b'\\x03\\xe8')\n"
                      "print(c.next()[3], c.closed())" % (OPEN, f"{OPEN}:{PORT}"))
        self.assertEqual(out, "b'last' 1000")

    def test_many_small_frames(self):
        """100,000 each way; what is spent on a frame shows."""
        before = support.memory_peak_kib(self.box.pids()["worker"])
        out = self.py("c = ws('/echo', host=%r)\nimport threading\none = frame(BINARY, b'x', key=b'abcd')\n"
                      "t = time.monotonic()\nsend = threading.Thread(target=lambda: c.sock.sendall(one * 20000)); send.start()\n"
                      "left = 20000 * 3\nwhile left: left -= len(c.sock.recv(min(left, 1 << 18)))\nsend.join()\nprint(int((time.monotonic() - t) * 1000))" % API)
        self.assertLess(int(out), 30000 * support.SLOW)
        for host in OPEN, API:
            out = self.py("c = ws('/burst/100000', host=%r)\nt = time.monotonic()\nleft = 300000 - len(c.reader.data)\n"
                          "while left: left -= len(c.sock.recv(min(left, 1 << 18)))\nprint(int((time.monotonic() - t) * 1000))" % host)
            self.assertLess(int(out), 10000 * support.SLOW)
        self.assert_memory(before)

    def test_an_origin_that_does_not_read(self):
        before = support.memory_peak_kib(self.box.pids()["worker"])
        out = self.py("t = time.monotonic()\nc = ws('/deaf')\nc.sock.settimeout(120)\nc.send(BINARY, bytes(64 << 20))\n"
                      "print(time.monotonic() - t > 1.5)\nc.send(CLOSE)\nprint(c.next()[0])", timeout=300)
        self.assertEqual(out.split(), ["True", "8"])
        self.assertEqual(self.row("/deaf")["seen"][0], [2, True, 64 << 20, False])
        self.assert_memory(before)


class Refused(Box):
    def test_switches_nobody_asked_for(self):
        for path in ("/wrong", "/none", "/extension"):
            out = self.py(f"for host in '{OPEN}', '{API}': print(ws('{path}', host=host).status)")
            self.assertEqual(out.split(), ["502", "502"], path)

    def test_frames_of_the_sandbox(self):
        wrong = {"unmasked": "8101ff", "reserved": "c1816b6b6b6b00", "opcode": "83806b6b6b6b", "fragmented ping": "09806b6b6b6b",
                 "long ping": "89fe007e6b6b6b6b", "not minimal": "81fe00016b6b6b6b00", "top bit": "82ff80000000000000006b6b6b6b",
                 "continuation": "80816b6b6b6b00"}
        for name, data in wrong.items():
            out = self.py(f"c = ws('/echo/{data}')\nc.send(TEXT, b'first')\nc.next()\nc.sock.sendall(bytes.fromhex('{data}'))\nprint(c.closed())")
            self.assertEqual(out, "1002", name)
            row = self.row(f"/echo/{data}")
            self.assertEqual((row["seen"], row["code"]), ([[1, True, 5, False], [8, True, 2, False]], 1002), name)
        self.assertGreaterEqual(len(self.findings("ambiguous-http")), len(wrong))

    def test_content(self):
        """Texts that are no UTF-8, and close frames that nobody may send, from either side."""
        for data, code in (("8101ff", 1007), ("8102e282", 1007), ("0101e2" "8901ff" "800182", 1007), ("880203ed", 1002), ("88021388", 1002),
                           ("880303e8ff", 1007)):
            out = self.py(f"for host in '{OPEN}', '{API}': print(ws('/raw/8102{b'hi'.hex()}{data}', host=host).closed())")
            self.assertEqual(out.split(), [str(code)] * 2, data)
        for host in OPEN, API:
            for content, code in (("TEXT, b'\\xc3\\x28'", 1007), ("CLOSE, b'\\x03\\xee'", 1002), ("CLOSE, b'\\x03\\xe8\\xff'", 1007)):
                path = f"/echo/{content}{host}".encode().hex()
                out = self.py(f"c = ws('/echo/{path}', host='{host}')\nc.send({content})\nprint(c.closed())")
                self.assertEqual(out, str(code), content)
                self.assertEqual(self.row(f"/echo/{path}")["code"], code)

    def test_what_is_a_text(self):
        """Characters cut in every place, between fragments too; binary messages hold anything; a close frame with a reason."""
        out = self.py(f"for host in '{OPEN}', '{API}':\n c = ws('/echo', host=host)\n text = 'aä€😀'.encode() * 50\n"
                      " for i in range(0, len(text), 7): c.send(0 if i else TEXT, text[i:i + 7], fin=i + 7 >= len(text))\n"
                      " print(c.message()[0] == text)\n c.send(BINARY, bytes(range(256))); print(len(c.next()[3]))\n"
                      " c.send(CLOSE, b'\\x0b\\xb8' + 'tschüß'.encode()); print(c.next()[3][2:].decode())")
        self.assertEqual(out.split(), ["True", "256", "tschüß"] * 2)

    def test_frames_of_the_origin(self):
        for data in ("81816b6b6b6b00", "c10100", "8b00", "0900", "8a7e007e", "827e007d", "827f8000000000000000", "800100"):
            out = self.py(f"for host in '{OPEN}', '{API}': print(ws('/raw/8102{b'hi'.hex()}{data}', host=host).closed())")
            self.assertEqual(out.split(), ["1002", "1002"], data)


class Searched(Box):
    def leak(self, code, finding="placeholder-leak"):
        self.py(code + "\nc.send(CLOSE)\nc.closed()")
        found = support.wait_until(lambda: self.findings(finding), 3 * support.SLOW)
        self.assertEqual(len(found), 1, found)

    def test_a_placeholder_in_fragments(self):
        self.leak(f"c = ws('/echo')\np = {PLACEHOLDER}.encode()\nc.send(TEXT, b'x' + p[:9], fin=False)\nc.send(PING, p[9:12])\n"
                  "for b in p[9:]: c.send(0, bytes([b]), fin=False)\nc.send(0)\nc.send(TEXT, p)")

    def test_a_placeholder_where_its_credential_is_bound(self):
        self.leak(f"c = ws('/echo', host='{API}')\nc.send(BINARY, {PLACEHOLDER}.encode())")

    def test_a_placeholder_compressed(self):
        self.leak(f"c = ws('/deflate', 'Sec-WebSocket-Extensions: permessage-deflate')\np = {PLACEHOLDER}.encode()\nd = Deflate()\n"
                  "c.send(TEXT, d.message(p[:20]), rsv=0x40)\nm = d.message(p[20:])\nc.send(TEXT, m[:5], fin=False, rsv=0x40)\nc.send(0, m[5:])")
        self.assertIn("permessage-deflate", self.row("/deflate")["extensions"])

    def test_the_credential_itself(self):
        half = len(support.SECRET) // 2
        self.leak(f"c = ws('/echo', host='{API}')\nc.send(TEXT, {support.SECRET[:half].encode()!r}, fin=False)\nc.send(0, {support.SECRET[half:].encode()!r})",
                  "credential-sent")

    def test_a_bomb(self):
        out = self.py("c = ws('/deflate', 'Sec-WebSocket-Extensions: permessage-deflate')\nm = Deflate().message(bytes(64 << 20))\n"
                      "c.send(BINARY, m, rsv=0x40)\nprint(len(m) < 100000, c.closed())")
        self.assertEqual(out, "True 1009")

    def test_compression_is_not_offered_with_a_credential(self):
        self.py(f"c = ws('/deflate', 'Sec-WebSocket-Extensions: permessage-deflate', host='{API}')\nassert 'sec-websocket-extensions' not in c.fields\n"
                "c.send(CLOSE)\nc.closed()")
        row = self.row("/deflate")
        self.assertEqual((row["extensions"], row["authenticated"]), ("", True))


class Covered(Box):
    def cut(self, path, code):
        n = len(support.SECRET)
        out = self.py(f"for i in range(1, {n}, 3):\n c = ws(f'/{path}/{{i}}', host='{API}')\n {code}\n c.send(CLOSE)\n c.closed()", timeout=120)
        return out.splitlines(), n

    def test_in_fragments(self):
        lines, n = self.cut("cut", "data, pings = c.message(); print(data.decode(), pings)")
        self.assertEqual(set(lines), {"before " + "*" * n + " after [(9, b'between')]"})
        self.assertGreater(len(lines), 10)
        self.assertTrue(support.wait_until(lambda: len(self.findings("credential-echo")) == len(lines), 3 * support.SLOW))

    def test_in_two_messages(self):
        """The first has gone when the second comes: the rest is covered."""
        lines, n = self.cut("cut2", "first = c.message()[0]; second, pings = c.message(); print(len(first) - 7, second.decode(), len(pings))")
        for line, i in zip(lines, range(1, n, 3)):
            self.assertEqual(line, f"{i} {'*' * (n - i)} after 1")

    def test_over_control_frames(self):
        """Two pings and a pong, a message, a ping and a pong, a message and a close frame: all but the last part is seen."""
        for path in "pings", "mixed":
            lines, n = self.cut(path, "got = [c.next()[3] for _ in range(5)]; print([len(x) for x in got], got[2].decode(), got[4][2:].decode())")
            self.assertGreater(len(lines), 10)
            for line, i in zip(lines, range(1, n, 3)):
                if n - 3 - i > 0:
                    self.assertEqual(line, f"[{i}, {n - 3 - i}, 3, {i}, {n - i + 2}] *** {'*' * (n - i)}")

    def test_it_cannot_be_guessed_in_fragments(self):
        """An origin that sends each fragment back at once: right and wrong guesses wait alike, and end with the message at once.
        A right one after which nothing comes is the last."""
        value = support.SECRET[::-1].encode().hex()
        with support.Sandbox(policy(f"{{to: 'https://{API}:{PORT}', credential: api}}", credentials=support.file_credential())) as box:
            done = box.py(BEGIN + f"""
value = bytes.fromhex("{value}")[::-1]
c = ws("/echo", host="{API}")
def waits(guess, rest=True):
    try:
        c.send(TEXT, guess, fin=False)
        begin = time.monotonic()
        c.sock.settimeout(0.2 if rest else 60)
        try:
            got = c.next()[3]
        except TimeoutError:
            got = b""
        late = int((time.monotonic() - begin) * 1000)
        c.sock.settimeout(60)
        c.send(0)
        return late if got + (c.message()[0] or b"") == guess else None
    except (EOFError, OSError):
        return None
for guess in (value[:8], b"harmless", value[:9], b"#" + value[:8]):
    assert waits(guess) >= 150
for guess in (b"harmless", b"#" + value[:8] + b"#", b"(", value[:8], b"harmless"):
    print(waits(guess, False))
""", timeout=60)
            self.assertEqual(done.status, 0, done)
            harmless, wrong, short, right, after = map(eval, done.out.split())
            self.assertLess(short, 300 * support.SLOW, done.out)
            for waited in harmless, wrong:
                self.assertGreaterEqual(waited, 400, done.out)
                self.assertLess(waited, 1000 * support.SLOW, done.out)
            self.assertEqual((right, after), (None, None))
            self.assertTrue([e for e in box.events(support.FINDING) if "guessing" in json.dumps(e)])

    def test_nothing_else_is_changed(self):
        out = self.py(f"c = ws('/raw/' + (frame(TEXT, b'((', fin=False, masked=False) + frame(0, b'', fin=False, masked=False) + frame(PING, b'p', masked=False) + "
                      f"frame(0, b'))', masked=False)).hex(), host='{API}')\nprint([c.next()[:2] for _ in range(4)])")
        self.assertEqual(out, "[(1, False), (0, False), (9, True), (0, True)]")



HTTP2 = """
import h2frames as h2
def connect(path, host=%r, **more):
    p = h2.Peer(tls(host, PORT, alpn=("h2",)))
    p.send(h2.PREFACE)
    p.send_settings()
    p.wait(lambda: p.settings is not None, 10)
    fields = {":method": "CONNECT", ":protocol": "websocket", ":scheme": "https", ":authority": host + ":" + str(PORT),
              ":path": path, "sec-websocket-version": "13", **more}
    p.send(h2.headers(1, h2.block(list(fields.items())), end_stream=False))
    p.wait(lambda: p.stream(1).status() is not None or p.stream(1).reset, 10)
    return p, p.stream(1)
def say(p, *frames, end=False):
    return p.send_body(1, b"".join(frames), end)
""" % OPEN


class Filled(Box):
    """Placeholders in text messages, where the credential says so."""

    @classmethod
    def make_box(cls):
        super().make_box().close()  # the origin runs
        return support.Sandbox(policy(f"https://{OPEN}:{PORT}", f"{{to: 'https://{API}:{PORT}', credential: api}}", credentials=support.file_credential(
            rest="inject: placeholder, in: [header, websocket], env: API_KEY")))

    def heard(self, code):
        self.py(f"c = ws('/heard', host={API!r})\nkey = {PLACEHOLDER}.encode()\n{code}\nc.send(CLOSE, b'\\x03\\xe8')\nc.closed()")
        return [(opcode, digest) for opcode, digest in self.row("/heard").get("heard", []) if opcode != 8]

    @staticmethod
    def of(opcode, text):
        return opcode, hashlib.sha256(text.encode()).hexdigest()

    def test_replaced(self):
        """Placeholders in one frame, in fragments with a ping between, and in JSON, where the value is escaped."""
        heard = self.heard("c.send(TEXT, b'auth ' + key)\nfor i in range(0, len(key), 5): c.send(0 if i else TEXT, key[i:i + 5], fin=False)\n"
                           "c.send(PING, b'p')\nc.send(0, b'!')\nc.send(TEXT, b'{\"key\": \"' + key + b'\"}')\nc.send(TEXT, b'no key')\nc.send(BINARY, b'data')")
        secret = support.SECRET
        self.assertEqual([h for h in heard if h[0] != 9],
                         [self.of(1, "auth " + secret), self.of(1, secret + "!"), self.of(1, json.dumps({"key": secret})), self.of(1, "no key"), self.of(2, "data")])
        self.assertEqual(self.findings("placeholder-leak"), [])

    def test_the_upstream_s_answer_is_masked(self):
        out = self.py(f"c = ws('/echo', 'Sec-WebSocket-Extensions: permessage-deflate', host={API!r})\nc.send(TEXT, b'auth ' + {PLACEHOLDER}.encode())\nprint(c.message()[0])")
        self.assertEqual(out, "b'auth " + "*" * len(support.SECRET) + "'")
        self.assertEqual(self.findings("placeholder-leak"), [])

    def test_elsewhere_it_is_a_finding(self):
        for number, code in enumerate(("c.send(BINARY, key)", "c.send(PING, key)", "c.send(TEXT, b'{\"' + key + b'\": 1}')"), 1):
            self.rows_before = len(self.rows(0))
            self.heard(code)
            self.assertEqual(len(self.findings("placeholder-leak")), number)
        out = self.py(f"c = ws('/heard')\nc.send(TEXT, {PLACEHOLDER}.encode())\nprint(c.closed())")
        self.assertEqual(out, "1008")

    def test_too_large(self):
        out = self.py(f"c = ws('/heard', host={API!r})\nc.send(TEXT, b'a' * (1 << 20), fin=False)\nc.send(0, b'a')\nprint(c.closed())")
        self.assertEqual(out, "1009")
        self.assertNotIn("heard", self.row("/heard") | ({} if self.row("/heard")["code"] == 1009 else {"heard": 0}))


class OverHttp2(Box):
    """Extended CONNECT (RFC 8441): one stream is the WebSocket, the upstream sees an upgrade of HTTP/1.1."""

    def py(self, code, **kw):
        return super().py(HTTP2 + code, **kw)

    def test_it_is_offered_and_works(self):
        out = self.py("p, s = connect('/echo')\nprint(p.settings.get(8), s.status(), [n for n, _ in s.heads[0]].count('sec-websocket-accept'))\n"
                      "say(p, frame(TEXT, b'hello', key=b'abcd'), frame(PING, b'p', key=b'abcd'))\n"
                      "p.wait(lambda: len(s.body) >= 10, 10)\nprint(bytes(s.body))\n"
                      "say(p, frame(CLOSE, b'\\x03\\xe8', key=b'abcd'), end=True)\np.wait(lambda: s.ended, 10)\nprint(s.ended, s.reset, p.violations)")
        self.assertEqual(out.splitlines(), ["1 200 0", repr(b"\x81\x05hello\x8a\x01p"), "True None []"])
        self.assertEqual(self.row("/echo")["code"], 1000)

    def test_large_messages_and_a_neighbour(self):
        """Flow control holds for it, and another stream of the connection lives beside it."""
        out = self.py("p, s = connect('/echo')\ndata = os.urandom(300000)\n"
                      "p.grant(0, 1 << 20); p.grant(1, 1 << 20)\nprint(say(p, frame(BINARY, data, key=b'abcd')))\n"
                      "print(p.wait(lambda: len(s.body) >= 300010, 20), bytes(s.body[10:]) == data)\n"
                      "p.send(h2.headers(3, h2.block([(':method', 'DELETE'), (':scheme', 'https'), (':authority', 'evil.lab.test'), (':path', '/')])))\n"
                      "p.wait(lambda: p.stream(3).status(), 10)\nprint(p.stream(3).status(), s.reset, p.violations)")
        self.assertEqual(out.split(), ["True", "True", "True", "421", "None", "[]"])

    def test_the_credential_is_injected_and_covered(self):
        out = self.py("p, s = connect('/echo', host=%r)\nsay(p, frame(TEXT, b'x', key=b'abcd'))\n"
                      "p.wait(lambda: len(s.body) >= 3, 10)\nprint(s.status(), bytes(s.body))" % API)
        self.assertEqual(out, "200 " + repr(b"\x81\x01x"))
        self.assertTrue([e for e in self.box.events(support.HTTP) if "/echo" in json.dumps(e)])

    def test_what_is_refused(self):
        out = self.py("for more in ({':protocol': 'connect-udp'}, {':authority': 'evil.lab.test'}, {':scheme': 'http'}):\n"
                      " p, s = connect('/echo', **more)\n print(s.status(), s.reset)")
        self.assertEqual(out.splitlines(), ["400 None", "421 None", "421 None"])
        self.assertEqual([r for r in self.rows() if r["path"] == "/echo"], [])

    def test_a_frame_against_the_rules_ends_its_stream(self):
        out = self.py("p, s = connect('/echo')\nsay(p, frame(3, b'?', key=b'abcd'))\np.wait(lambda: s.ended or s.reset, 10)\n"
                      "print(bytes(s.body[-2:]), s.ended or s.reset is not None, p.closed)")
        self.assertIn(repr(b"\x03\xea"), out)  # 1002
        self.assertTrue(out.endswith("True False"), out)


del Box
