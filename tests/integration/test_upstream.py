# SPDX-License-Identifier: Apache-2.0
"""Resolvers and origins that are silent, gone, slow, or break the protocol: an answer in bounded time, in bounded
memory, and the next request goes through."""
import socket
import struct
import threading
import time

import support
from lab import DNS4, ORIGIN4
from support import HTTP, SLOW, policy
from test_robustness import Robust as _Robust


class Resolver(_Robust):
    def check(self, config, host, seconds):
        box = self.begin(text=policy(f"https://{host}", f"http://{host}"), config=config)
        began = time.monotonic()
        done = box.sh(f"curl -sS -m 50 -w '\\n%{{http_code}}' https://{host}/x")
        self.assertLess(time.monotonic() - began, seconds * SLOW)
        self.assertIn(done.out[-3:], ("502", "504"), done)
        self.assertIn(host, done.out)
        self.assertEqual(self.seen("http"), [])
        self.assertEqual(box.close(), 0)
        event = box.event(HTTP)
        self.assertEqual(event["status_id"], 2, event)

    def config(self, server, more="timeouts: {resolve: 1s}\n"):
        text = support.LAB.config(more).replace(f"[{DNS4}]", f"[{server}]")
        return support.LAB.write(f"resolver-{server}.yaml", text)

    def test_silent(self):
        self.check(self.config(DNS4), "silent.lab.test", 8)

    def test_refuses(self):
        self.check(self.config(ORIGIN4), "api.lab.test", 8)  # a host without a DNS server: ICMP port unreachable

    def test_is_not_there(self):
        self.check(self.config("10.99.200.200"), "api.lab.test", 8)

    def test_default_patience(self):
        self.check(support.LAB.path("config.yaml"), "silent.lab.test", 20)

    def test_unknown_name(self):
        self.check(self.config(DNS4), "nothing.example", 8)


class Upstream(_Robust):
    """Origins that break the protocol, or do nothing at all."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        config = support.LAB.write("upstream.yaml", support.LAB.config(
            "timeouts: {response: 2s, connect: 2s, idle: 3s, header: 5s, request: 6s}\n"))
        cls.box = support.Sandbox(policy("https://api.lab.test", "http://plain.lab.test:9001", "http://plain.lab.test:9002",
                                         "http://plain.lab.test:9003", "http://plain.lab.test:9004",
                                         "http://plain.lab.test:9005", "http://plain.lab.test:9006"), config=config)
        cls.listeners = []
        for port, what in ((9001, cls.reset), (9002, cls.silent), (9003, cls.trickle), (9004, cls.forever), (9006, cls.early)):
            def make(port=port):
                s = socket.socket()
                s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                s.bind((ORIGIN4, port))
                s.listen(64)
                return s
            s = support.in_namespace("outside", make)
            cls.listeners.append(s)
            threading.Thread(target=cls.serve, args=(s, what), daemon=True).start()

    @classmethod
    def tearDownClass(cls):
        for s in cls.listeners:
            s.close()
        cls.box.close()
        super().tearDownClass()

    @staticmethod
    def serve(listener, what):
        while True:
            try:
                c, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=Upstream.one, args=(c, what), daemon=True).start()

    @staticmethod
    def one(c, what):
        try:
            c.recv(4096)
            what(c)
        except OSError:
            pass
        c.close()

    @staticmethod
    def reset(c):
        c.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    @staticmethod
    def silent(c):
        c.settimeout(60)
        c.recv(1)

    @staticmethod
    def trickle(c):
        for byte in b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n0123456789":
            c.send(bytes([byte]))
            time.sleep(1)

    @staticmethod
    def forever(c):
        """A head that never ends."""
        c.sendall(b"HTTP/1.1 200 OK\r\n")
        while True:
            c.sendall(b"X-More: yes\r\n" * 1000)

    @staticmethod
    def early(c):
        """An answer, and the end with most of the request unread: the kernel makes a reset of it."""
        c.sendall(b"HTTP/1.1 413 Too much\r\nContent-Length: 2\r\n\r\nno")

    def ask(self, url, seconds):
        began = time.monotonic()
        done = self.box.sh(f"curl -sS --http1.1 -m 40 -o /dev/null -w '%{{http_code}}' {url}")
        self.assertLess(time.monotonic() - began, seconds * SLOW, url)
        self.assertIn("/fine", self.box.sh("curl -sS https://api.lab.test/fine").out)
        return done

    def breaker(self, name, statuses, whole=False):
        before = support.memory_peak_kib(self.box.pids()["worker"])
        done = self.ask(f"https://api.lab.test/evil-{name}", 6)
        self.assertIn(done.out[-3:], statuses, done)
        self.assertLess(support.memory_peak_kib(self.box.pids()["worker"]) - before, (8 if not support.ASAN else 300) * 1024)  # what is freed waits
        return done

    def test_head_folded(self):
        self.breaker("head", ("502", "200"))

    def test_two_lengths(self):
        self.breaker("length", ("502",))

    def test_length_and_chunked(self):
        self.breaker("both", ("502",))

    def test_short_body(self):
        done = self.breaker("short", ("200", "502", "000"))  # 000: the stream's reset came together with its head
        self.assertNotEqual(done.status, 0, "a body that was cut off looks whole")

    def test_bad_chunk(self):
        done = self.breaker("chunk", ("200", "502", "000"))
        self.assertNotEqual((done.status, done.out[-3:]), (0, "200"))

    def test_noise(self):
        self.breaker("noise", ("502",))

    def test_head_of_a_megabyte(self):
        self.breaker("big", ("502",))

    def test_hints_without_end(self):
        done = self.breaker("hints", ("502", "000", "504", "103"))
        self.assertNotEqual((done.status, done.out[-3:]), (0, "103"))

    def test_switch_nobody_asked_for(self):
        self.breaker("101", ("502",))

    def test_second_answer_nobody_asked_for(self):
        done = self.box.sh("curl -sS https://api.lab.test/evil-extra https://api.lab.test/next")
        self.assertTrue(done.out.startswith("ok"), done)
        self.assertIn("/next", done.out)
        self.assertNotIn("evil", done.out.replace("/evil-extra", ""))

    def test_silent(self):
        self.breaker("silent", ("504",))

    def test_resets(self):
        self.assertIn(self.ask("http://plain.lab.test:9001/", 6).out[-3:], ("502",))

    def test_never_answers(self):
        self.assertEqual(self.ask("http://plain.lab.test:9002/", 8).out[-3:], "504")

    def test_a_byte_a_second(self):
        """A head that takes 38 seconds, never silent: no longer than the whole request may take."""
        self.assertIn(self.ask("http://plain.lab.test:9003/", 12).out[-3:], ("502", "504"))

    def test_a_head_without_end(self):
        self.assertIn(self.ask("http://plain.lab.test:9004/", 8).out[-3:], ("502", "504"))

    def test_an_answer_before_a_reset(self):
        """RFC 9112 section 9.6: it came before the reset, and is the client's, however far the request was."""
        done = self.box.py("""
for i in range(25):
    s = connect("plain.lab.test", 9006)
    try:
        s.sendall(b"POST / HTTP/1.1\\r\\nHost: plain.lab.test:9006\\r\\nContent-Length: 4000000\\r\\n\\r\\n" + bytes(4000000))
    except OSError:
        pass
    print(read_all(s)[:13])
""")
        self.assertEqual(set(done.out.splitlines()), {"b'HTTP/1.1 413 '"}, done)

    def test_nobody_listens(self):
        self.assertEqual(self.ask("http://plain.lab.test:9005/", 6).out[-3:], "502")

    def test_whole_bodies_only_from_whole_answers(self):
        """Half of a body and then nothing: the client is not told that this was all."""
        done = self.box.sh("curl -sS -m 20 https://api.lab.test/evil-short")
        self.assertNotEqual(done.status, 0, done)
