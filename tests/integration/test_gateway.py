# SPDX-License-Identifier: Apache-2.0
"""The gateway: sessions by an HTTPS proxy and SOCKS5, what is refused before a session is proved, and what becomes of sessions."""
import contextlib
import json
import os
import signal
import ssl
import subprocess
import sys
import threading
import time
import unittest

import support
from control_case import Described
from gateway_case import CLIENT4, GATEWAY4, HANDSHAKE_S, PLAIN_PORT, TLS_PORT, Gatewayed, basic, make_certificate
from lab import EVIL4, ORIGIN4
from support import FINDING, HTTP, NETWORK, SECRET, SLOW, wait_until

NODE = """
const http = require('http'), tls = require('tls'), fs = require('fs');
const request = require('https').request({host: process.argv[1], port: %d, method: 'CONNECT', path: 'api.lab.test:443',
  ca: fs.readFileSync(process.argv[2]), headers: {'Proxy-Authorization': 'Bearer ' + process.argv[4]}});
request.on('connect', (answer, socket) => {
  if (answer.statusCode != 200) { console.log(answer.statusCode); process.exit(1); }
  const inner = tls.connect({socket, servername: 'api.lab.test', ca: fs.readFileSync(process.argv[3])}, () => {
    inner.write('GET /whoami HTTP/1.1\\r\\nHost: api.lab.test\\r\\nConnection: close\\r\\n\\r\\n');
    inner.pipe(process.stdout);
  });
});
request.on('response', (answer) => { console.log(answer.statusCode); process.exit(1); });
request.end();
""" % TLS_PORT


def places_of(pid, data):
    """The mappings of a process that hold these bytes."""
    found = []
    with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb", 0) as mem:
        for line in maps:
            span, access, _ = line.split(None, 2)
            begin, end = (int(x, 16) for x in span.split("-"))
            if "w" not in access or "[v" in line:
                continue
            try:
                mem.seek(begin)
                if data in mem.read(end - begin):
                    found.append(line.strip())
            except (OSError, OverflowError):
                pass  # guard pages
    return found


class Ways(Gatewayed):
    def test_https_proxy(self):
        self.assert_served()
        r = self.curl("--proxy-header", f"Proxy-Authorization: Bearer {self.token}", "https://api.lab.test/whoami", token="")
        self.assertIs(json.loads(r.stdout)["authenticated"], True, r)
        r = self.curl("http://plain.lab.test/x?y", "http://plain.lab.test/z", "-H", "X-Is: here")
        first, second = (json.loads(text) for text in r.stdout.replace("}{", "}\n{").split("\n") if text)
        self.assertEqual((first["path"], second["path"]), ("/x?y", "/z"), r)
        names = {h.lower() for h in first["headers"]}
        self.assertIn("x-is", names)
        self.assertFalse(names & {"proxy-authorization", "proxy-connection"}, first)
        for url, code in (("https://evil.lab.test/", "403"), (f"https://{EVIL4}/", "403"), (f"https://{ORIGIN4}/", "403"),
                          ("https://api.lab.test:8443/", "403"), ("https://169.254.169.254/", "403")):
            r = self.curl("-o", "/dev/null", "-w", "%{http_connect}", url)
            self.assertEqual(r.stdout, code, (url, r))
        for url in ("http://evil.lab.test/", f"http://{GATEWAY4}:{PLAIN_PORT}/", "http://127.0.0.1/", "http://169.254.169.254/latest/"):
            r = self.curl("-o", "/dev/null", "-w", "%{http_code}", url)
            self.assertEqual(r.stdout, "403", (url, r))
        r = self.curl("-o", "/dev/null", "-w", "%{http_code}", "-X", "DELETE", "https://api.lab.test/x")
        self.assertEqual(r.stdout, "403", r)
        self.assertIn("rules", json.loads(self.curl("https://vethguard.internal/policy").stdout))

    def test_log(self):
        self.assert_served()
        event = self.daemon.event(HTTP, action_id=1, **{"http_request.url.path": "/whoami"})
        self.assertEqual(event["src_endpoint"]["ip"], CLIENT4, event)
        self.assertGreater(event["src_endpoint"]["port"], 0, event)
        self.assertEqual(event["dst_endpoint"]["hostname"], "api.lab.test", event)
        self.daemon.stop()
        for root, _, names in os.walk(self.daemon.dir):
            for name in names:
                with open(os.path.join(root, name), "rb") as f:
                    data = f.read()
                self.assertNotIn(self.token.encode(), data, name)
        with open(self.daemon.audit) as f:
            self.assertNotIn(SECRET, f.read())

    @unittest.skipIf(support.ASAN, "an instrumented program's memory is too large to be read")
    def test_memory(self):
        """A token that was used is in the memory of no process of the daemon: not in that which answered with it, nor in that which
        reads it, nor in the worker behind."""
        for proxy in (None, f"socks5h://{GATEWAY4}:{PLAIN_PORT}", f"http://{GATEWAY4}:{PLAIN_PORT}"):
            self.assert_served(proxy=proxy)
        self.assertIn(b'"/x"', self.ask(f"Bearer {self.token}"))
        self.assertTrue(self.say(f"GET /s/{self.token}/http/plain.lab.test/x HTTP/1.1\r\nHost: g\r\nConnection: close\r\n\r\n".encode(), tls=True)
                        .startswith(b"HTTP/1.1 200"))
        self.assertTrue(self.ask(f"Bearer {self.token}x").startswith(b"HTTP/1.1 407"))
        secret = self.token[4:].encode()  # without the part that is the same in all
        for pid, (name, *_) in {self.daemon.process.pid: ("vethguardd",), **support.descendants(self.daemon.process.pid)}.items():
            self.assertEqual(places_of(pid, secret), [], name)
        kept = self.tunnel()  # while it is used too
        self.assertEqual(places_of(self.pid_of("vethguard-gateway"), secret), [])
        kept.close()

    def test_there_is_no_other_way(self):
        for url in ("https://api.lab.test/", f"http://{EVIL4}/", f"http://{ORIGIN4}/"):
            r = self.there("curl", "-sS", "-m", "3", url)
            self.assertEqual((r.returncode != 0, r.stdout), (True, ""), r)

    def test_socks(self):
        proxy = f"socks5h://{GATEWAY4}:{PLAIN_PORT}"
        self.assertTrue(self.asks(proxy=proxy))
        r = self.curl("http://plain.lab.test/by-socks", proxy=proxy)
        self.assertEqual(json.loads(r.stdout)["path"], "/by-socks", r)
        for url in ("https://evil.lab.test/", "http://169.254.169.254/", "http://127.0.0.1/"):
            r = self.curl(url, proxy=proxy)
            self.assertEqual((r.returncode, "(2)" in r.stderr), (97, True), (url, r))
        for token in ("wrong", self.token[:-1], self.token + "x"):
            r = self.curl("http://plain.lab.test/", proxy=proxy, token=token)
            self.assertEqual((r.returncode, r.stdout), (97, ""), (token, r))
        r = self.curl("http://plain.lab.test/", proxy=proxy, token="")
        self.assertEqual((r.returncode, r.stdout), (97, ""), r)

    def socks(self, data, tls=True):
        s = self.connect(tls)
        s.sendall(data)
        return s

    def test_socks_over_tls(self):
        token = self.token.encode()
        login = b"\x01\x07session" + bytes([len(token)]) + token
        request = b"\x05\x01\x00\x03\x0eplain.lab.test\x00\x50"
        http = b"GET /deep HTTP/1.1\r\nHost: plain.lab.test\r\nConnection: close\r\n\r\n"
        s = self.socks(b"\x05\x02\x00\x02" + login + request + http)  # all at once
        answer = self.rest(s)
        self.assertTrue(answer.startswith(b"\x05\x02\x01\x00\x05\x00\x00\x01"), answer[:40])
        self.assertIn(b'"/deep"', answer)
        s = self.connect()
        for byte in b"\x05\x01\x02" + login + request + http:  # byte by byte
            s.sendall(bytes([byte]))
        answer = self.rest(s)
        self.assertIn(b'"/deep"', answer)
        for greeting in (b"\x05\x01\x00", b"\x05\x00", b"\x05\x02\x00\x01", b"\x05\xff" + bytes([0] * 255)):
            self.assertEqual(self.rest(self.socks(greeting)), b"\x05\xff", greeting)
        for wrong in (b"\x01\x07session\x05wrong", b"\x01\x00\x00", b"\x01\x07session" + bytes([len(token) - 1]) + token[:-1],
                      b"\x01\xff" + b"u" * 255 + b"\xff" + b"p" * 255, b"\x01\x01u\x02\x00\x00"):
            self.assertEqual(self.rest(self.socks(b"\x05\x01\x02" + wrong)), b"\x05\x02\x01\x01", wrong)
        self.assertEqual(self.rest(self.socks(b"\x05\x01\x02\x02\x01u\x01p")), b"\x05\x02")  # another version of the login
        answer = self.rest(self.socks(b"\x05\x01\x02" + login + b"\x05\x03\x00\x01\x00\x00\x00\x00\x00\x00"))
        self.assertEqual(answer[:6], b"\x05\x02\x01\x00\x05\x02", answer)  # UDP ASSOCIATE, without a udp:// rule

    def test_python_and_node(self):
        r = self.there(sys.executable, "-c", f"""
import http.client, ssl
outer = ssl.create_default_context(cafile={self.certificate + '.pem'!r})
c = http.client.HTTPSConnection({GATEWAY4!r}, {TLS_PORT}, context=outer, timeout={20 * SLOW})
c.request("GET", "http://plain.lab.test/python", headers={{"Proxy-Authorization": "Bearer {self.token}"}})
print(c.getresponse().read().decode())
""")
        self.assertEqual(json.loads(r.stdout)["path"], "/python", r)
        r = self.there("node", "-e", NODE, GATEWAY4, self.certificate + ".pem", self.ca, self.token)
        self.assertIn('"authenticated": true', r.stdout, r)
        r = self.there("node", "-e", NODE, GATEWAY4, self.certificate + ".pem", self.ca, "wrong")
        self.assertEqual(r.stdout.strip(), "407", r)


class Proofs(Gatewayed):
    def test_one_answer(self):
        """Every wrong proof gets the same bytes, and never sooner than the others."""
        short = self.create("short", ttl_s=1)["token"]
        revoked = self.create("revoked")["token"]
        self.assertEqual(self.daemon.call("DELETE", "/v1/sessions/revoked")[0], 200)
        foreign = self.create("foreign", **{"from": ["192.0.2.0/24", "2001:db8::/32"]})["token"]
        self.assertTrue(wait_until(lambda: self.daemon.call("GET", "/v1/sessions/short")[0] == 404, 10 * SLOW))
        missing = self.ask(None)
        self.assertTrue(missing.startswith(b"HTTP/1.1 407 "), missing)
        self.assertIn(b'\r\nProxy-Authenticate: Basic realm="vethguard"', missing)
        self.assertIn(b'\r\nProxy-Authenticate: Bearer realm="vethguard"', missing)
        self.assertIn(b"\r\nConnection: close\r\n", missing)
        t = self.token
        wrong = ["Bearer wrong", "Bearer vgs_" + "A" * 43, f"Bearer {short}", f"Bearer {revoked}", f"Bearer {foreign}",
                 f"Bearer {t[:-1]}", f"Bearer {t}x", f"Bearer {t.lower()}", f"Bearer {t[4:]}", basic(revoked), basic("", "nobody"),
                 basic(t + ":"), basic(t, "x") + "A", f"Bearer {'x' * 4096}"]
        begun = time.monotonic()
        for proof in wrong[:8]:
            at = time.monotonic()
            self.assertEqual(self.ask(proof), missing, proof)
            self.assertGreaterEqual(time.monotonic() - at, 0.24, proof)
        malformed = ["Bearer", "Bearer ", "Basic", "Basic ====", "Basic !!!!", "Basic eA==", f"Digest {t}", t, f"Bearer\t{t}", "",
                     f"Bearer {t} {t}", f"Bearer {t},", "Negotiate abc", f"Bearer {'x' * 4097}"]
        for proof in malformed[:5] + malformed[-3:]:
            self.assertEqual(self.ask(proof), missing, proof)
        for proof in wrong[8:] + malformed[5:-3]:
            self.assertEqual(self.ask(proof, tls=True), missing, proof)
        self.assertGreater(time.monotonic() - begun, 2)
        for proof in (f"Bearer {t}", f"bearer   {t} ", basic(t), basic(t, "any one"), basic("", t), basic(t).rstrip("=")):
            self.assertIn(b'"/x"', self.ask(proof), proof)

    def test_from(self):
        for networks, serves in ((["10.77.0.2/32"], True), (["10.77.0.0/30", "2001:db8::/32"], True), (["10.77.0.3/32"], False),
                                 (["0.0.0.0/0"], True), (["::/0"], False)):
            token = self.create(f"from-{time.monotonic_ns()}", **{"from": networks})["token"]
            if serves:
                self.assert_served(networks, token=token)
            else:
                self.assert_unknown(networks, token=token)

    def test_heads(self):
        """Requests that a proxy does not take, before their proof is looked at."""
        proof = f"Proxy-Authorization: Bearer {self.token}\r\n"
        for head, code in (
                ("GET / HTTP/1.1\r\nHost: plain.lab.test\r\n", 400), ("GET /s/x HTTP/1.1\r\n", 400), ("OPTIONS * HTTP/1.1\r\n", 400),
                ("GET https://api.lab.test/ HTTP/1.1\r\n", 400), ("GET ftp://plain.lab.test/ HTTP/1.1\r\n", 400),
                ("GET  http://plain.lab.test/ HTTP/1.1\r\n", 400), ("GET http://plain.lab.test/\r\n", 505),
                ("GET http://plain.lab.test/ HTTP/1.2\r\n", 505), ("GET http://plain.lab.test/ HTTP/2.0\r\n", 505),
                ("GET http://plain.lab.test/ http/1.1\r\n", 505), ("G@T http://plain.lab.test/ HTTP/1.1\r\n", 400),
                ("GET http://plain.lab.test/\x01 HTTP/1.1\r\n", 400), ("CONNECT  HTTP/1.1\r\n", 400), (" CONNECT x:1 HTTP/1.1\r\n", 400),
                ("CONNECT api.lab.test:443 HTTP/1.1\r\nX : y\r\n", 400), ("CONNECT api.lab.test:443 HTTP/1.1\r\n: y\r\n", 400),
                ("CONNECT api.lab.test:443 HTTP/1.1\r\nX: y\r\n folded\r\n", 400),
                ("CONNECT api.lab.test:443 HTTP/1.1\r\nX: a\x00b\r\n", 400), ("CONNECT api.lab.test:443 HTTP/1.1\r\nX: a\rb\r\n", 400),
                ("CONNECT api.lab.test:443 HTTP/1.1\r\nno colon\r\n", 400), ("CONNECT api.lab.test:443 HTTP/1.1\n", 400),
                ("CONNECT api.lab.test:443 HTTP/1.1\r\n" + proof, 400), ("PRI * HTTP/2.0\r\n", 505),
                ("CONNECT api.lab.test:443 HTTP/1.1\r\n" + "X: y\r\n" * 200, 431),
                ("CONNECT api.lab.test:443 HTTP/1.1\r\nX: " + "y" * 20000 + "\r\n", 431)):
            with self.subTest(head=head[:80]):
                answer = self.say((head + proof + "\r\n").encode("latin-1"))
                self.assertTrue(answer.startswith(f"HTTP/1.1 {code} ".encode()), answer)
        for garbage in (b"\x00", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"x" * 600, b"\x04\x01\x00\x50\x00\x00\x00\x01x\x00",
                        os.urandom(1).replace(b"\x05", b"\x06") + bytes(range(256)), b"\r\n\r\n", b"\xff" * 70000):
            answer = self.say(garbage)
            self.assertNotIn(b" 200 ", answer[:20], garbage[:20])
        self.assert_served()

    def test_the_worker_judges_again(self):
        """A head that passes here may be refused by the worker."""
        proof = f"Proxy-Authorization: Bearer {self.token}\r\n"
        for head, code in (("GET http://plain.lab.test/x HTTP/1.1\r\nHost: evil.lab.test\r\nConnection: close\r\n", 403),
                           ("GET http://plain.lab.test/x HTTP/1.1\r\nHost: plain.lab.test\r\nContent-Length: 1\r\nContent-Length: 2\r\n", 400),
                           ("CONNECT nonsense HTTP/1.1\r\nHost: x\r\n", 400),
                           ("CONNECT evil.lab.test:443 HTTP/1.1\r\nHost: evil.lab.test:443\r\n", 403)):
            answer = self.say((head + proof + "\r\n").encode())
            self.assertTrue(answer.startswith(f"HTTP/1.1 {code} ".encode()), (head, answer))
        both = f"GET http://plain.lab.test/first HTTP/1.1\r\nHost: plain.lab.test\r\n{proof}\r\n" \
               "GET http://plain.lab.test/second HTTP/1.1\r\nHost: plain.lab.test\r\n\r\n"
        answer = self.say(both.encode())  # the second shows no proof
        self.assertIn(b'"/first"', answer)
        self.assertNotIn(b"second", answer)

    def test_slow(self):
        """A connection that proves nothing is closed when its time is over."""
        for tls, data in ((False, b""), (False, b"CONN"), (False, b"\x05"), (False, b"\x05\x01\x02\x01"), (True, b""), (True, b"GET h")):
            s = self.connect(tls)
            at = time.monotonic()
            s.sendall(data)
            answer = self.rest(s)
            self.assertNotIn(b"200", answer)
            self.assertGreaterEqual(time.monotonic() - at, HANDSHAKE_S - 0.2, (tls, data))
        s = self.connect(False)
        at, sent = time.monotonic(), 0
        try:  # a byte now and then does not buy more time
            while time.monotonic() - at < 20 * SLOW:
                s.sendall(b"A")
                sent += 1
                time.sleep(0.1)
        except OSError:
            pass
        self.assertLess(time.monotonic() - at, 20 * SLOW, sent)
        self.assert_served()

    def test_tls(self):
        for options, works in ((("-tls1_2",), True), (("-tls1_3",), True), (("-tls1_1", "-cipher", "ALL:@SECLEVEL=0"), False),
                               (("-tls1_2", "-cipher", "AES128-SHA"), False), (("-alpn", "h3"), False), (("-alpn", "h2,http/1.1"), True),
                               (("-servername", "other.lab.test"), True)):
            r = subprocess.run(["openssl", "s_client", "-connect", f"{GATEWAY4}:{TLS_PORT}", *options], capture_output=True, text=True,
                               input="", timeout=60 * SLOW)
            self.assertEqual("Cipher is (NONE)" not in r.stdout and "Cipher    : 0000" not in r.stdout, works, (options, r))
        r = self.curl("https://api.lab.test/", proxy=f"http://{GATEWAY4}:{TLS_PORT}")  # plain where TLS is spoken
        self.assertNotEqual(r.returncode, 0)

    def test_renegotiation(self):
        """Asked for by the client: refused, and the session goes on."""
        with subprocess.Popen(["openssl", "s_client", "-tls1_2", "-connect", f"{GATEWAY4}:{TLS_PORT}"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True) as client:
            while (line := client.stdout.readline()) and "Verify return code" not in line:
                pass
            client.stdin.write("R\n")
            client.stdin.flush()
            out = client.stdout.read()  # the refusal ends the client
        self.assertIn("RENEGOTIATING", out)
        self.assertIn("no renegotiation", out)
        self.assert_served()


class Bounded(Gatewayed):
    options = "  unauthenticated: 64\n  unauthenticated_per_address: 8\n"

    def test_bounds(self):
        """So many connections of an address at a time; a session that is proved does not count."""
        kept = self.tunnel()
        held = [self.connect(False) for _ in range(8)]
        time.sleep(0.3)
        more = self.connect(False)
        self.assertEqual(self.rest(more), b"")  # closed at once
        kept.sendall(b"GET /kept HTTP/1.1\r\nHost: plain.lab.test\r\n\r\n")
        self.assertTrue(self.head(kept).startswith(b"HTTP/1.1 200"))
        self.assert_served()  # another address
        for s in held:
            s.close()
        self.assertTrue(wait_until(lambda: b'"/x"' in self.ask(f"Bearer {self.token}"), 10 * SLOW))

    def test_guesses(self):
        """Many wrong tokens of one address: slower and slower, a finding, and right ones of the same address go on."""
        stop, tried = threading.Event(), []

        def guess():
            while not stop.is_set() and len(tried) < 10000:
                tried.append(1)
                try:
                    s = self.connect(False)
                    s.sendall(f"GET http://plain.lab.test/ HTTP/1.1\r\nProxy-Authorization: Bearer {os.urandom(16).hex()}\r\n\r\n".encode())
                    s.close()
                except OSError:
                    pass
        kept = self.tunnel()
        threads = [threading.Thread(target=guess) for _ in range(4)]
        for t in threads:
            t.start()
        asked = 0
        while any(t.is_alive() for t in threads):
            kept.sendall(b"GET /kept HTTP/1.1\r\nHost: plain.lab.test\r\n\r\n")
            answer = self.head(kept)
            self.assertTrue(answer.startswith(b"HTTP/1.1 200"), answer)
            n = int(next(line.split(b":")[1] for line in answer.split(b"\r\n") if line.lower().startswith(b"content-length")))
            while n > 0:
                n -= len(kept.recv(n))
            asked += 1
        for t in threads:
            t.join()
        self.assertGreaterEqual(len(tried), 10000)
        self.assertGreater(asked, 0)
        event = self.daemon.event(FINDING, seconds=10)
        self.assertEqual(event["finding_info"]["types"], ["guessed-tokens"], event)
        self.assertIn(GATEWAY4, event["finding_info"]["desc"] if "desc" in event["finding_info"] else json.dumps(event))
        at = time.monotonic()
        self.assertTrue(wait_until(lambda: self.ask("Bearer wrong").startswith(b"HTTP/1.1 407"), 10 * SLOW))
        self.assertGreaterEqual(time.monotonic() - at, 1.9)
        self.assert_served()


class Life(Gatewayed):
    def is_cut(self, s):
        s.settimeout(20 * SLOW)
        try:
            while s.recv(65536):
                pass
            return True
        except TimeoutError:
            return False
        except OSError:
            return True

    def test_revoke(self):
        other = self.create("two")["token"]
        kept, theirs = self.tunnel(), self.tunnel(other)
        at = time.monotonic()
        self.assertEqual(self.daemon.call("DELETE", "/v1/sessions/one")[0], 200)
        self.assertTrue(self.is_cut(kept))
        self.assertLess(time.monotonic() - at, 2 * SLOW)
        self.assert_unknown()
        theirs.sendall(b"GET /x HTTP/1.1\r\nHost: plain.lab.test\r\n\r\n")
        self.assertTrue(self.head(theirs).startswith(b"HTTP/1.1 200"))
        self.assertEqual(self.daemon.call("DELETE", "/v1/sessions/one")[0], 404)
        self.assertEqual(self.daemon.cli("detach", "two").returncode, 0)
        self.assertTrue(self.is_cut(theirs))
        self.assert_unknown(token=other)
        self.assertEqual(self.daemon.call("GET", "/v1/sessions")[2]["sessions"], [])
        self.assertEqual(os.listdir(os.path.join(self.daemon.state, "sandboxes")), [])

    def test_expiry(self):
        token = self.create("short", ttl_s=3600)["token"]
        kept = self.tunnel(token)
        self.assert_served(token=token)
        self.assertEqual(self.daemon.call("POST", "/v1/sessions/short/extend", {"ttl_s": 7200})[0], 200)
        status, _, answer = self.daemon.call("POST", "/v1/sessions/short/extend", {"ttl_s": 1})
        self.assertEqual(status, 200, answer)
        self.assertTrue(self.is_cut(kept))
        self.assert_unknown(token=token)
        self.assertTrue(wait_until(lambda: self.daemon.call("GET", "/v1/sessions/short")[0] == 404, 10 * SLOW))
        for body in (None, {}, {"ttl_s": 0}, {"ttl_s": -1}, {"ttl_s": "2h"}, {"ttl_s": 10**9}, {"ttl": 3}):
            self.assertEqual(self.daemon.call("POST", "/v1/sessions/one/extend", body)[0], 422, body)
        self.assertEqual(self.daemon.call("POST", "/v1/sessions/none/extend", {"ttl_s": 5})[0], 404)

    def test_restart(self):
        revoked = self.create("revoked")["token"]
        short = self.create("short", ttl_s=1)["token"]
        self.assertEqual(self.daemon.call("DELETE", "/v1/sessions/revoked")[0], 200)
        kept = self.tunnel()
        for end in (self.daemon.kill, self.daemon.stop):
            end()
            self.assertTrue(self.is_cut(kept))
            time.sleep(1.2)  # the short one ends while no daemon runs
            self.daemon.start()
            self.assert_served("after a restart")
            self.assert_unknown(token=revoked)
            self.assert_unknown(token=short)
            kept = self.tunnel()
        self.assertEqual([s["name"] for s in self.daemon.call("GET", "/v1/sessions")[2]["sessions"]], ["one"])

    def test_no_policy_at_the_start(self):
        """The session's token is refused until the policy is repaired and reloaded."""
        self.daemon.stop()
        os.rename(self.policy, self.policy + ".moved")
        self.daemon.start()
        self.assertTrue(wait_until(self.listens, 10 * SLOW))
        self.assert_unknown(token=self.token)
        os.rename(self.policy + ".moved", self.policy)
        self.assertEqual(self.daemon.cli("reload").returncode, 0)
        self.assert_served("its policy is there again")

    def test_deaths(self):
        kept, relayed = self.tunnel(), self.connect(False)
        relayed.sendall(f"GET http://plain.lab.test/x HTTP/1.1\r\nHost: plain.lab.test\r\nProxy-Authorization: Bearer {self.token}\r\n\r\n".encode())
        self.assertTrue(self.head(relayed).startswith(b"HTTP/1.1 200"))
        os.kill(self.pid_of("vethguard-gateway"), 9)
        self.assertTrue(self.is_cut(relayed))
        kept.sendall(b"GET /x HTTP/1.1\r\nHost: plain.lab.test\r\n\r\n")
        self.assertTrue(self.head(kept).startswith(b"HTTP/1.1 200"), "a tunnel is its worker's")
        self.assert_served("the gateway was killed")
        self.assertIsNotNone(self.daemon.event(FINDING, **{"finding_info.types": ["process-died"]}))
        os.kill(self.daemon.call("GET", "/v1/sandboxes/one")[2]["worker"]["pid"], 9)
        self.assertTrue(self.asks(), "the worker was killed: the connection waits for the next one")

    def test_known_at_once(self):
        """A client that connects as soon as its token exists, or a gateway again, is known."""
        def ask(token):
            return self.ask(f"Bearer {token}", "http://plain.lab.test/")[:13]

        tokens = []
        for i in range(200):
            tokens.append(self.create(f"s{i}")["token"])
            self.assertEqual(ask(tokens[-1]), b"HTTP/1.1 200 ", i)
        for _ in range(3):
            pid = self.pid_of("vethguard-gateway")
            os.kill(pid, 9)
            self.assertTrue(wait_until(lambda: self.pid_of("vethguard-gateway") != pid, 20 * SLOW, 0.001))
            for token in tokens[:3] + tokens[-3:]:
                self.assertEqual(ask(token), b"HTTP/1.1 200 ")
        self.daemon.kill()
        self.daemon.spawn()
        self.assertTrue(wait_until(self.listens, 20 * SLOW, 0.001))
        for token in tokens[:20] + tokens[-20:]:
            self.assertEqual(ask(token), b"HTTP/1.1 200 ")

    def test_confined(self):
        """The gateway describes its jail as the kernel does, and it has no descriptor of a file."""
        kept = self.tunnel()
        r = self.daemon.cli("doctor", "--roles", "--json")
        self.assertEqual(r.returncode, 0, r)
        self.assertIn("the gateway", r.stdout)
        pid = self.pid_of("vethguard-gateway")
        with open(f"/proc/{pid}/status") as f:
            status = dict(line.split(":\t", 1) for line in f.read().splitlines() if ":\t" in line)
        self.assertEqual((status["Seccomp"], status["NoNewPrivs"], status["CapEff"], status["CapBnd"]), ("2", "1", "0" * 16, "0" * 16))
        self.assertNotEqual(status["Uid"].split()[0], "0")
        self.assertEqual(os.listdir(f"/proc/{pid}/root/"), [])
        kinds = {name.split(":")[0].split("/")[-1] for name in support.open_files(pid)}
        self.assertLessEqual(kinds, {"socket", "anon_inode", "pipe", "null"}, support.open_files(pid))
        kept.close()

    def test_pause_and_reload(self):
        kept = self.tunnel()
        self.assertEqual(self.daemon.cli("pause", "one", "--reason", "odd").returncode, 0)
        self.assertTrue(self.is_cut(kept))
        r = self.curl("http://plain.lab.test/")
        self.assertIn("odd", r.stdout)
        self.assertEqual(self.daemon.cli("resume", "one").returncode, 0)
        self.assert_served()
        with open(self.policy, "a") as f:
            f.write("  - {to: 'http://www.lab.test'}\n")
        self.assertEqual(self.daemon.cli("reload", "one").returncode, 0)
        self.assert_served()
        self.assertEqual(self.daemon.cli("reload").returncode, 0)
        self.assert_served()
        self.assertEqual(self.daemon.call("GET", "/v1/sandboxes/one")[2]["attachment"]["kind"], "session")

    def serial(self):
        s = self.connect()
        return ssl.DER_cert_to_PEM_cert(s.getpeercert(True))

    def test_certificate(self):
        """Renewed files are noticed; what cannot be used changes nothing."""
        first, kept = self.serial(), self.tunnel()
        make_certificate(self.certificate)
        with open(self.certificate + ".pem") as f:
            renewed = f.read()
        self.assertTrue(wait_until(lambda: self.shows(renewed), 20 * SLOW), self.daemon.stderr())
        self.assertNotEqual(first.strip(), renewed.strip())
        kept.sendall(b"GET /x HTTP/1.1\r\nHost: plain.lab.test\r\n\r\n")
        self.assertTrue(self.head(kept).startswith(b"HTTP/1.1 200"))
        with open(self.certificate + ".key") as f:
            key = f.read()
        for text in ("", "nonsense", key.replace("A", "B", 1)):
            with open(self.certificate + ".key", "w") as f:
                f.write(text)
            time.sleep(0.2)
        self.assertTrue(wait_until(lambda: "certificate cannot be used" in self.daemon.stderr(), 20 * SLOW))
        self.assertIn("the one before stays", self.daemon.stderr())
        self.assertTrue(self.shows(renewed))

    def shows(self, pem):
        try:
            return self.serial().strip() == pem.strip()
        except (OSError, ssl.SSLError):
            return False


class Upgrade(Gatewayed):
    """Another version of the daemon takes over: connections wait in the backlog meanwhile, and none is refused."""

    def gateway(self):
        return super().gateway().replace(f"handshake: {HANDSHAKE_S}s", "handshake: 60s")

    def test_accepted_before(self):
        """Connections that the old gateway has accepted, and that prove themselves only when it is held, get to the old workers."""
        connections = [self.connect() for _ in range(4)]
        ask = f"GET http://plain.lab.test/x HTTP/1.1\r\nHost: plain.lab.test\r\nProxy-Authorization: Bearer {self.token}\r\nConnection: close\r\n\r\n"
        before = self.daemon.process.pid
        os.kill(before, signal.SIGUSR2)
        while True:  # the first that gets no answer at once waits in the backlog
            late = self.connect(tls=False)
            late.sendall(ask.encode())
            late.settimeout(1)
            try:
                self.assertTrue(late.recv(1))
            except TimeoutError:
                break
        late.settimeout(30 * SLOW)
        for c in connections:
            c.sendall(ask.encode())
        for c in (*connections, late):
            self.assertTrue(self.rest(c).startswith(b"HTTP/1.1 200 "), self.daemon.stderr())
        self.assertTrue(wait_until(lambda: self.answering() != before, 30 * SLOW), self.daemon.stderr())
        self.addCleanup(self.end, self.answering())

    def test_upgrade(self):
        kept, other = self.tunnel(), self.create("two")["token"]
        over, failed, count = threading.Event(), [], [0]

        def ask():
            while not over.is_set():
                answer = self.ask(f"Bearer {self.token}")
                count[0] += 1
                if b'"/x"' not in answer:
                    failed.append(answer)
        threads = [threading.Thread(target=ask) for _ in range(2)]
        for t in threads:
            t.start()
        try:
            before = self.daemon.process.pid
            os.kill(before, signal.SIGUSR2)
            self.assertTrue(wait_until(lambda: self.answering() != before, 30 * SLOW), self.daemon.stderr())
            wait_until(lambda n=count[0]: count[0] > n + 20, 20 * SLOW)
        finally:
            over.set()
            for t in threads:
                t.join()
        after = self.answering()
        self.addCleanup(self.end, after)
        self.assertEqual(failed, [], self.daemon.stderr())
        self.assertGreater(count[0], 20)
        kept.sendall(b"GET /x HTTP/1.1\r\nHost: plain.lab.test\r\n\r\n")
        self.assertTrue(self.head(kept).startswith(b"HTTP/1.1 200"), "what was relayed goes on")
        self.assert_served(token=other)
        self.assertEqual(self.daemon.call("DELETE", "/v1/sessions/two")[0], 200)
        self.assert_unknown(token=other)
        kept.close()
        self.assertTrue(wait_until(lambda: self.daemon.process.poll() is not None, 30 * SLOW), self.daemon.stderr())
        self.assert_served("the old one has ended")

    def test_failed_upgrade(self):
        """The new one dies: the old one accepts again."""
        os.kill(self.daemon.process.pid, signal.SIGUSR2)
        new = wait_until(lambda: self.pid_of("vethguardd"), 10 * SLOW)
        support.KILLED.add(self.daemon.audit)
        with contextlib.suppress(ProcessLookupError):
            os.kill(new, 9)
        self.assertTrue(wait_until(lambda: "this one goes on" in self.daemon.stderr() or "has taken over" in self.daemon.stderr(),
                                   20 * SLOW), self.daemon.stderr())
        if "has taken over" in self.daemon.stderr():  # it was quicker, or its child was found before it was one
            self.assertTrue(wait_until(lambda: self.daemon.process.poll() is not None, 30 * SLOW))
            after = self.answering()
            if after == self.daemon.process.pid:  # nobody answers
                self.daemon.start()
            else:
                self.addCleanup(self.end, after)
        self.assert_served()

    def answering(self):
        try:
            return self.daemon.call("GET", "/v1/status")[2]["processes"]["supervisor"]
        except (OSError, KeyError):
            return self.daemon.process.pid

    @staticmethod
    def end(pid):
        try:
            os.kill(pid, signal.SIGTERM)
            wait_until(lambda: not os.path.exists(f"/proc/{pid}"), 30 * SLOW)
        except ProcessLookupError:
            pass


class Commands(Gatewayed):
    def cli(self, *argv):
        return self.daemon.cli("session", *argv)

    def test_commands(self):
        r = self.cli("create", "--policy", self.policy, "--name", "cli", "--ttl", "2h", "--from", "10.77.0.0/24", "--label", "a=b")
        self.assertEqual(r.returncode, 0, r)
        token = r.stdout.strip()
        self.assertRegex(token, r"^vgs_[A-Za-z0-9_-]{43}$")
        self.assertIn("cli: serving, policy lab, until 20", r.stderr)
        self.assert_served(token=token)
        r = self.cli("list")
        self.assertRegex(r.stdout, r"(?m)^cli +serving +gateway, from 10\.77\.0\.0/24 +lab \(1\)")
        self.assertNotIn(token, r.stdout + self.cli("show", "cli").stdout + self.cli("show", "cli", "--json").stdout)
        self.assertIn("a=b", self.cli("show", "cli").stdout)
        self.assertEqual(json.loads(self.cli("show", "cli", "--json").stdout)["attachment"]["from"], ["10.77.0.0/24"])
        self.assertRegex(self.cli("extend", "cli", "--ttl", "3h").stdout, "^cli: until 20")
        self.assertEqual(self.cli("revoke", "cli").stdout, "cli: revoked\n")
        self.assert_unknown(token=token)

    def test_described(self):
        """Requests and answers are as docs/openapi.yaml has them, refusals too."""
        described = Described()
        full = {"name": "two", "policy": self.policy, "from": ["10.77.0.0/24", "2001:db8::/32"], "labels": {"a": "b"}, "vars": {"c": "d"},
                "ttl_s": 60, "observe": True}
        described.request("POST", "/v1/sessions", full)
        for method, path, body, expected in (
                ("POST", "", full, 201), ("POST", "", full, 409), ("POST", "", {"policy": self.policy}, 201), ("POST", "", {}, 422), ("GET", "", None, 200),
                ("GET", "/two", None, 200), ("GET", "/none", None, 404), ("POST", "/two/extend", {"ttl_s": 5}, 200),
                ("POST", "/two/certificate", {"certificate_sha256": "ab" * 32}, 422), ("POST", "/two/certificate", {}, 422),
                ("POST", "/none/certificate", {"certificate_sha256": "ab" * 32}, 404),
                ("POST", "/two/extend", {}, 422), ("POST", "/two/extend", {"ttl_s": -1}, 422), ("POST", "/none/extend", {"ttl_s": 5}, 404),
                ("DELETE", "/two", None, 200), ("DELETE", "/two", None, 404)):
            with self.subTest(method=method, path=path):
                status, headers, answer = self.daemon.call(method, "/v1/sessions" + path, body)
                self.assertEqual(status, expected, answer)
                described.answer(method, "/v1/sessions" + path, status, headers, answer)
        status, headers, answer = self.daemon.call("GET", "/v1/sandboxes/one/env")
        described.answer("GET", "/v1/sandboxes/one/env", status, headers, answer)
        operations = {o["operationId"] for p, item in described.document["paths"].items() for o in item.values() if p.startswith("/v1/sessions") and
                      "responses" in o}
        self.assertEqual(operations - described.used, {"sessions.certify"})  # of test_gateway_certificates

    def env(self, *argv, name="one", token=None):
        return self.daemon.cli("env", name, *argv, input=self.token + "\n" if token is None else token)

    def test_env(self):
        """Its variables are enough for programs that know nothing of a gateway."""
        bundle, certificate = os.path.join(self.dir, "bundle.pem"), os.path.join(self.dir, "gateway.pem")
        with open(bundle, "w") as out:
            out.write(self.env("--format", "pem").stdout)
            with open(certificate) as f:
                out.write(f.read())
        r = self.env("--token-file", "-", "--ca-bundle", bundle, "--ca", bundle)
        self.assertEqual((r.returncode, r.stderr), (0, ""), r)
        script = r.stdout.replace("gateway.lab.test", GATEWAY4)  # no DNS there
        self.assertIn(f"https://session:{self.token}@{GATEWAY4}:{TLS_PORT}", script)
        self.assertIn("API_KEY=", script)
        for command in (f"curl -sS --proxy-cacert {certificate} -H \"Authorization: Bearer $API_KEY\" https://api.lab.test/whoami",
                        f"curl -sS --cacert {certificate} $VETHGUARD_BASE_URL/https/api.lab.test/whoami",  # not through the proxy
                        f"{support.PYTHON} -c 'import requests; print(requests.get(\"https://api.lab.test/whoami\", timeout=20).text)'"):
            r = self.there("env", "-i", "PATH=" + os.environ["PATH"], "sh", "-c", script + "\n" + command)
            self.assertIn('"authenticated": true', r.stdout, (command, r))
        variables = json.loads(self.env("--token-file", "-", "--format", "json").stdout)
        self.assertEqual(variables["http_proxy"], f"https://session:{self.token}@gateway.lab.test:{TLS_PORT}")
        self.assertEqual(variables["VETHGUARD_BASE_URL"], f"https://gateway.lab.test:{TLS_PORT}/s/{self.token}")
        self.assertEqual(variables["NO_PROXY"], "localhost,127.0.0.1,::1,gateway.lab.test")
        self.assertNotIn("PROXY", self.env().stdout.upper())
        self.assertNotIn("BASE_URL", self.env().stdout)
        gateway = {"tls": f"gateway.lab.test:{TLS_PORT}", "plain": f"gateway.lab.test:{PLAIN_PORT}"}
        self.assertEqual(self.daemon.call("GET", "/v1/sandboxes/one/env")[2]["gateway"], gateway)
        for provider in ("modal", "daytona", "deno", "runloop", "langsmith", "openai-agents"):
            r = self.env("--token-file", "-", "--format", provider)
            self.assertIn(f'"HTTPS_PROXY": "https://session:{self.token}@gateway.lab.test:{TLS_PORT}"', r.stdout, (provider, r))
            json.loads(r.stdout)
        proxy = json.loads(self.env("--token-file", "-", "--format", "e2b").stdout)["network"]["egressProxy"]
        # As E2B uses it.
        proxy["address"] = proxy["address"].replace("gateway.lab.test", GATEWAY4)
        r = self.there("curl", "-sS", "-m", "10", "--cacert", self.ca, "--proxy", "socks5h://" + proxy["address"], "--proxy-user",
                       f"{proxy['username']}:{proxy['password']}", "https://api.lab.test/whoami")
        self.assertIn('"authenticated": true', r.stdout, r)

    def test_env_refused(self):
        inside = support.netns(self, f"inside{time.monotonic_ns()}")
        answer = self.daemon.call("POST", "/v1/sandboxes", {"name": "link", "policy": self.policy, "netns": "/run/netns/" + inside})
        self.assertEqual(answer[0], 201, answer)
        self.assertIsNone(self.daemon.call("GET", "/v1/sandboxes/link/env")[2]["gateway"])
        for argv, kw, words in ((("--format", "e2b"), {}, "--token-file"), (("--format", "fly"), {}, "is one of"),
                                (("--token-file", "/none"), {}, "No such file"), (("--token-file", self.dir), {}, "directory"),
                                (("--token-file", "-"), {"token": ""}, "no token"), (("--token-file", "-"), {"token": "a b"}, "no token"),
                                (("--token-file", "-"), {"token": "$(id)"}, "no token"), (("--token-file", "-"), {"token": "a" * 5000}, "longer"),
                                (("--token-file", "-"), {"name": "link"}, "not a session"), (("--format", "deno"), {"name": "link"}, "not a session")):
            r = self.env(*argv, **kw)
            self.assertEqual((r.returncode, r.stdout), (2, ""), (argv, kw, r))
            self.assertIn(words, r.stderr)

    def test_nothing_is_exposed(self):
        """Ports of a policy are those of a sandbox that can be connected to."""
        path = support.LAB.write(f"gateway-exposes-{time.monotonic_ns()}.yaml", support.policy(
            "https://api.lab.test", more="expose:\n  - {name: web, port: 8080, from: [host], at: '127.0.0.1:18089'}\n"))
        status, _, answer = self.daemon.call("POST", "/v1/sessions", {"name": "exposing", "policy": path})
        self.assertEqual(status, 422, answer)
        self.assertIn("a session has no address to connect to", answer["detail"])
        self.assertEqual(self.daemon.call("GET", "/v1/sessions/exposing")[0], 404)
        self.assert_served()

    def test_wrong_usage(self):
        for argv, status in (((), 2), (("make",), 2), (("create",), 2), (("create", "x", "--policy", self.policy), 2),
                             (("create", "--policy", self.policy, "--ttl", "soon"), 2), (("create", "--policy", self.policy, "--from", "x"), 2),
                             (("create", "--policy", self.policy, "--from", "10.0.0.1/8"), 2),
                             (("create", "--policy", self.policy, "--name", "one"), 1), (("create", "--policy", "/none.yaml"), 2),
                             (("create", "--policy", self.policy, "--name", "a b"), 1), (("extend", "one"), 2), (("extend",), 2),
                             (("revoke",), 2), (("revoke", "none"), 1), (("show", "none"), 1), (("list", "one"), 2),
                             (("create", "--policy", self.policy, "--var", "none"), 2)):
            r = self.cli(*argv)
            self.assertEqual(r.returncode, status, (argv, r))
        for body in ({}, {"policy": "relative"}, {"policy": self.policy, "from": ["x"]}, {"policy": self.policy, "from": "10.0.0.0/8"},
                     {"policy": self.policy, "from": ["10.0.0.0/8"] * 17}, {"policy": self.policy, "ttl_s": 0}, {"policy": self.policy, "name": ""},
                     {"policy": self.policy, "listen": {"path": "/x"}}, {"policy": self.policy, "token": "x"}, {"policy": self.policy, "from": [7]}):
            self.assertEqual(self.daemon.call("POST", "/v1/sessions", body)[0], 422, body)
        self.assertEqual(self.daemon.call("GET", "/v1/sessions/none")[0], 404)


class WithoutGateway(Gatewayed):
    def setUp(self):
        from daemon import Daemon
        self.policy = support.LAB.write("gateway-none.yaml", support.policy("https://api.lab.test"))
        self.daemon = Daemon()
        self.addCleanup(self.daemon.end)

    def test_none(self):
        status, _, answer = self.daemon.call("POST", "/v1/sessions", {"policy": self.policy})
        self.assertEqual(status, 422)
        self.assertIn("no gateway", answer["detail"])
        self.assertIsNone(self.pid_of("vethguard-gateway"))
        self.assertEqual(self.daemon.call("GET", "/v1/sessions")[2]["sessions"], [])
