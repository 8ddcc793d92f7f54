# SPDX-License-Identifier: Apache-2.0
"""TLS towards the sandbox: every shape of ClientHello, names that do not agree, versions, resumption, limits."""
import os
import subprocess

import lab
import support
import tls_hellos
from support import FINDING, policy

RULES = policy("https://api.lab.test", "https://www.lab.test", "https://*.wild.lab.test")
HELLO = ("i, o = ssl.MemoryBIO(), ssl.MemoryBIO()\n"
         "x = ssl.create_default_context()\nc = x.wrap_bio(i, o, server_hostname='api.lab.test')\n"
         "try: c.do_handshake()\nexcept ssl.SSLWantReadError: pass\nhello = o.read()\n"
         "def finish(s):\n"
         " while True:\n"
         "  d = s.recv(65536)\n  if not d: raise EOFError\n  i.write(d)\n"
         "  try: c.do_handshake()\n  except ssl.SSLWantReadError: continue\n"
         "  s.sendall(o.read()); return c.getpeercert()['subjectAltName']\n")


class Box(support.Boxed):
    @classmethod
    def make_box(cls):
        return support.Sandbox(RULES)


class Hello(Box):
    def test_one_byte_segments(self):
        out = self.py(HELLO + "s = connect('api.lab.test')\nfor b in hello:\n s.sendall(bytes([b])); time.sleep(0.001)\nprint(finish(s))")
        self.assertEqual(out, "(('DNS', 'api.lab.test'),)\n")

    def test_many_records(self):
        out = self.py(HELLO + "s = connect('api.lab.test')\nbody = hello[5:]\n"
                      "s.sendall(b''.join(b'\\x16\\x03\\x01' + struct.pack('>H', len(p)) + p for p in (body[k:k + 11] for k in range(0, len(body), 11))))\nprint(finish(s))")
        self.assertEqual(out, "(('DNS', 'api.lab.test'),)\n")

    def test_large(self):
        """Padding to nearly 16 KiB, as post-quantum key shares and many extensions make it."""
        out = self.py(HELLO + "body = bytearray(hello[5:])\nroom = 16000 - len(body)\next = struct.pack('>HH', 0x3a3a, room) + bytes(room)\n"
                      "at = 4 + 2 + 32; at += 1 + body[at]; at += 2 + struct.unpack('>H', body[at:at+2])[0]; at += 1 + body[at]\n"
                      "n = struct.unpack('>H', body[at:at+2])[0]\nbody[at:at+2] = struct.pack('>H', n + len(ext))\nbody += ext\n"
                      "body[1:4] = struct.pack('>I', len(body) - 4)[1:]\ns = connect('api.lab.test')\n"
                      "s.sendall(b''.join(b'\\x16\\x03\\x01' + struct.pack('>H', len(p)) + p for p in (bytes(body[k:k + 4000]) for k in range(0, len(body), 4000))))\n"
                      "d = s.recv(100)\nprint(d[:1].hex())")
        # The transcript no longer fits this client's own; that the server answers with a handshake record is the point.
        self.assertEqual(out, "16\n")

    def hostile(self, code):
        """Bytes after which there must be an end, soon, and nothing outside."""
        out = self.py(HELLO + "s = connect('api.lab.test', timeout=14)\nt = time.monotonic()\n" + code +
                      "\ntry:\n while s.recv(65536): pass\n print('closed')\nexcept TimeoutError: print('open')\nexcept OSError as e: print('closed')")
        self.assertEqual(out.splitlines()[-1], "closed", out)
        self.assertEqual(self.seen("http"), [])

    def test_too_large(self):
        self.hostile("body = b'\\x01' + struct.pack('>I', 100000)[1:] + bytes(20000)\n"
                     "s.sendall(b''.join(b'\\x16\\x03\\x01' + struct.pack('>H', len(p)) + p for p in (body[k:k + 4000] for k in range(0, len(body), 4000))))")

    def test_length_beyond_the_end(self):
        self.hostile("b = bytearray(hello); b[6:9] = b'\\xff\\xff\\xff'; s.sendall(bytes(b))")

    def test_inner_lengths(self):
        self.hostile("b = bytearray(hello); b[43] = 255; s.sendall(bytes(b))")

    def test_empty_records(self):
        self.hostile("s.sendall(b'\\x16\\x03\\x01\\x00\\x00' * 5000)")

    def test_other_handshake_message(self):
        self.hostile("b = bytearray(hello); b[5] = 2; s.sendall(bytes(b))")

    def test_alert_first(self):
        self.hostile("s.sendall(b'\\x15\\x03\\x01\\x00\\x02\\x02\\x28')")

    def test_sslv2(self):
        self.hostile("s.sendall(b'\\x80\\x2e\\x01\\x00\\x02\\x00\\x15\\x00\\x00\\x00\\x10' + bytes(60))\ntry: s.shutdown(socket.SHUT_WR)\nexcept OSError: pass")

    def test_silence_ends(self):
        config = support.LAB.write("hello.yaml", support.LAB.config("timeouts: {hello: 500ms, header: 500ms}\n"))
        box = self.sandbox(RULES, config=config)
        for code in ("pass", "s.sendall(b'\\x16')", "s.sendall(b'\\x16\\x03\\x01\\x02\\x00\\x01')", "s.sendall(b'GET / HT')"):
            with self.subTest(sent=code):
                done = box.py("s = connect('api.lab.test', timeout=6)\n" + code + "\ntry: print('closed', len(s.recv(10)))\nexcept ConnectionError: print('closed')\nexcept TimeoutError: print('open')")
                self.assertIn("closed", done.out, done)

    def test_garbage_after_hello(self):
        self.hostile("s.sendall(hello + bytes(range(256)) * 4)")


class Table(Box):
    def test_first_flights(self):
        """Bytes of every kind, and what is answered: a ServerHello where any careful server would, else the right alert."""
        told = self.box.run(support.PYTHON, os.path.join(support.HERE, "tls_hellos.py"), "api.lab.test", "443", timeout=300).json()
        for name, _, due in tls_hellos.ROWS:
            with self.subTest(hello=name):
                self.assertTrue(told[name] == due if due != "any" else told[name].split()[0] in ("hello", "retry", "alert"), told[name])
        self.assertEqual(self.seen("http"), [])
        self.assertEqual(self.seen("tls"), [])
        self.assertIn("200", self.py("print(fetch('api.lab.test', '/after')[0])"))

    def test_refusals_are_told(self):
        """Each has an event with its reason."""
        for code, reason in (("usual(suites=())", "malformed TLS ClientHello"), ("usual(name='a..b')", "the TLS server name is not a host name"),
                             ("record(b'x', 0x0303, 23)", "TLS that does not begin with a ClientHello"),
                             ("tls12(legacy=0x0302)", "unsupported protocol"), ("usual(more=alpn('imap'))", "no application protocol")):
            with self.subTest(reason=reason):
                self.py(f"sys.path.insert(0, {support.HERE!r})\nfrom tls_hellos import *\nprint(answer('api.lab.test', 443, {code}))")
                self.assertTrue(support.wait_until(lambda: reason in str(self.box.events())), reason)


class Clients(Box):
    """The TLS served is as wide as that of a careful public server (docs/architecture.md, "What TLS is spoken")."""

    def openssl(self, *args):
        done = self.box.sh("echo | openssl s_client -verify_return_error -connect api.lab.test:443 -servername api.lab.test "
                           + " ".join(args) + " 2>&1")
        return done.out

    def test_served(self):
        for args, words in ((["-tls1_3"], ["Peer signature type: ECDSA", "X25519"]),
                            (["-groups", "P-384"], ["Server Temp Key: ECDH, secp384r1", "Peer signature type: ECDSA"]),
                            (["-groups", "P-521"], ["ECDH, secp521r1"]),
                            (["-tls1_2", "-groups", "P-384"], ["ECDH, secp384r1", "Peer signature type: RSA-PSS", "Server public key is 2048 bit"]),
                            (["-tls1_2", "-cipher", "ECDHE-RSA-AES128-GCM-SHA256"], ["Cipher is ECDHE-RSA-AES128-GCM-SHA256", "2048 bit"]),
                            (["-tls1_2", "-cipher", "ECDHE-RSA-AES256-GCM-SHA384"], ["Cipher is ECDHE-RSA-AES256-GCM-SHA384"]),
                            (["-tls1_2", "-cipher", "ECDHE-RSA-CHACHA20-POLY1305"], ["Cipher is ECDHE-RSA-CHACHA20-POLY1305"]),
                            (["-tls1_2", "-cipher", "ECDHE-ECDSA-AES128-GCM-SHA256"], ["Cipher is ECDHE-ECDSA-AES128-GCM-SHA256"]),
                            (["-ciphersuites", "TLS_CHACHA20_POLY1305_SHA256"], ["TLS_CHACHA20_POLY1305_SHA256"]),
                            (["-sigalgs", "ECDSA+SHA256"], ["Peer signature type: ECDSA"])):
            with self.subTest(args=args):
                out = self.openssl(*args)
                for word in ["Verify return code: 0 (ok)", *words]:
                    self.assertIn(word, out)

    def test_refused(self):
        for args in (["-tls1_2", "-cipher", "AES128-GCM-SHA256"], ["-tls1_2", "-cipher", "DHE-RSA-AES128-GCM-SHA256"],
                     ["-tls1_2", "-cipher", "ECDHE-RSA-AES128-SHA"], ["-tls1_3", "-groups", "X448"], ["-tls1_3", "-groups", "ffdhe2048"]):
            with self.subTest(args=args):
                self.assertIn("alert handshake failure", self.openssl(*args))
        for version in ("-tls1", "-tls1_1"):
            with self.subTest(version=version):
                self.assertIn("alert protocol version", self.openssl(version, "-cipher", "ALL:@SECLEVEL=0"))

    def test_curl(self):
        """Options that scripts have."""
        for args, version in (("--ciphers ECDHE-RSA-AES128-GCM-SHA256 --tls-max 1.2", "2"), ("--http1.0", "1.1"), ("--curves P-384", "2"),
                              ("--curves P-384 --tls-max 1.2", "2"), ("--http1.1", "1.1"), ("--no-alpn", "1.1"), ("--http2", "2")):
            with self.subTest(args=args):
                done = self.box.sh(f"curl -sS {args} -o /dev/null -w '%{{http_code}} %{{http_version}}' https://api.lab.test/curl 2>&1")
                self.assertIn(done.out, (f"200 {version}", f"200 {version}.0"), done)
        self.assertEqual(len(self.seen("http", path="/curl")), 7)

    def test_rsa_leaf_names_its_host(self):
        out = self.py("x = ssl.create_default_context(); x.maximum_version = ssl.TLSVersion.TLSv1_2; x.set_ciphers('ECDHE-RSA-AES128-GCM-SHA256')\n"
                      "for h in 'api.lab.test', 'www.lab.test', 'api.lab.test':\n"
                      " t = x.wrap_socket(connect(h), server_hostname=h); t.sendall(request('GET', '/rsa', h)); print(t.cipher()[0], t.getpeercert()['subjectAltName'], Reader(t).response()[0])")
        self.assertEqual(out.splitlines(), [f"ECDHE-RSA-AES128-GCM-SHA256 (('DNS', '{h}'),) 200" for h in ("api.lab.test", "www.lab.test", "api.lab.test")])


class Addresses(support.Boxed):
    """An address as server name is passed over (RFC 6066 section 3): the destination stays what was dialed."""
    @classmethod
    def make_box(cls):
        return support.Sandbox(policy("https://api.lab.test", "{to: 'https://pass.lab.test', tls: passthrough}"))

    # Python's ssl sends no address as a name.
    CODE = ("def visit(host, literal, path, authority):\n"
            " done = subprocess.run(['openssl', 's_client', '-quiet', '-connect', host + ':443', '-servername', literal], input=request('GET', path, authority, 'Connection: close'), capture_output=True, timeout=20)\n"
            " return done.stdout.split(b'\\r\\n')[0].decode()\n")

    def visit(self, host, literal, path, authority):
        return self.py(self.CODE + f"print(visit({host!r}, {literal!r}, {path!r}, {authority!r}))").strip()

    def test_passed_over(self):
        self.assertEqual(self.visit("api.lab.test", "10.99.0.66", "/lit", "api.lab.test"), "HTTP/1.1 200 OK")
        self.assertEqual(self.visit("api.lab.test", "::1", "/lit", "api.lab.test"), "HTTP/1.1 200 OK")
        self.assertEqual(len(self.seen("http", path="/lit")), 2)

    def test_leads_nowhere(self):
        """Neither the address nor a server behind it is reached."""
        self.assertIn(self.visit("api.lab.test", "10.99.0.66", "/no", "10.99.0.66").split(" ")[1], ("403", "421"))
        self.assertIn(self.visit("evil.lab.test", "10.99.0.66", "/no", "api.lab.test").split(" ")[1], ("403", "421"))
        self.assertEqual(self.seen("http"), [])

    def test_not_through_a_passthrough(self):
        """The server behind would get an address that nobody judged."""
        out = self.visit("pass.lab.test", "10.99.0.66", "/pass", "pass.lab.test")
        self.assertTrue(not out or out.split(" ")[1] in ("403", "421"), out)
        self.assertEqual(self.seen("http"), [])
        self.assertIn("200", self.visit("pass.lab.test", "pass.lab.test", "/pass", "pass.lab.test"))


class Upstreams(support.Boxed):
    """The TLS spoken to servers, and the error for servers that have none of it."""
    SERVERS = {9451: (["-tls1_2", "-cipher", "ECDHE-ECDSA-AES128-SHA"], "200"),
               9452: (["-tls1_2", "-cipher", "ECDHE-ECDSA-AES256-SHA384"], "200"),
               9453: (["-tls1_2", "-groups", "P-521"], "200"),
               9454: (["-tls1_3", "-groups", "P-384"], "200"),
               9455: (["-tls1_2", "-cipher", "ECDHE-ECDSA-AES128-CCM"], "offered were TLS 1.3, and TLS 1.2 with ECDHE"),
               9456: (["-tls1_3", "-groups", "X448"], "offered were TLS 1.3"),
               9457: (["-tls1_1", "-cipher", "ALL:@SECLEVEL=0"], "the server speaks neither TLS 1.2 nor TLS 1.3"),
               9458: (["-tls1", "-cipher", "ALL:@SECLEVEL=0"], "the server speaks neither TLS 1.2 nor TLS 1.3")}

    @classmethod
    def make_box(cls):
        key, certificate = support.LAB.path("server.key"), support.LAB.path("server.pem")
        for port, (args, _) in cls.SERVERS.items():
            support.LAB.spawn_outside(["openssl", "s_server", "-quiet", "-www", "-accept", f"{lab.ORIGIN4}:{port}", "-key", key,
                                       "-cert", certificate, *args], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return support.Sandbox(policy(*(f"https://api.lab.test:{port}" for port in cls.SERVERS)))

    def test_each(self):
        for port, (args, due) in self.SERVERS.items():
            with self.subTest(server=args):
                def answer():
                    return self.box.sh(f"curl -sS -w ' %{{http_code}}' https://api.lab.test:{port}/").out
                self.assertTrue(support.wait_until(lambda: "onnection refused" not in answer()), "it does not listen")
                out = answer()
                self.assertTrue(out.endswith("200" if due == "200" else "502"), out)
                self.assertTrue(due == "200" or due in out, out)


class Names(Box):
    def refused(self, code, finding=True):
        before = len(self.box.events(FINDING))
        out = self.py("try:\n" + "".join(f" {line}\n" for line in code.split("\n")) +
                      " r = Reader(t).response(); print(r[0])\nexcept (OSError, EOFError) as e: print('closed', e)")
        self.assertTrue(out.startswith(("403", "421", "closed")), out)
        self.assertEqual(self.seen("http"), [])
        if finding:
            self.assertTrue(support.wait_until(lambda: len(self.box.events(FINDING)) > before), "no finding")

    def test_without_sni_by_name(self):
        """The synthetic address carries the name."""
        out = self.py("t = tls('api.lab.test', sni='', verify=False)\nt.sendall(request('GET', '/nosni', 'api.lab.test'))\nprint(Reader(t).response()[0])")
        self.assertEqual(out, "200\n")

    def test_without_sni_certificate_fits(self):
        out = self.py("x = ssl.create_default_context(); x.check_hostname = False\ns = x.wrap_socket(connect('api.lab.test'))\nprint(s.getpeercert()['subjectAltName'])")
        self.assertEqual(out, "(('DNS', 'api.lab.test'),)\n")

    def test_sni_of_another_allowed_name(self):
        self.refused("t = tls('api.lab.test', sni='www.lab.test', verify=False)\nt.sendall(request('GET', '/a', 'www.lab.test'))")

    def test_host_of_another_allowed_name(self):
        self.refused("t = tls('api.lab.test')\nt.sendall(request('GET', '/b', 'www.lab.test'))")

    def test_host_with_another_port(self):
        self.refused("t = tls('api.lab.test')\nt.sendall(request('GET', '/b', 'api.lab.test:8443'))")

    def test_sni_denied(self):
        self.refused("t = tls('api.lab.test', sni='evil.lab.test', verify=False)\nt.sendall(request('GET', '/b', 'evil.lab.test'))")

    def test_front(self):
        """Domain fronting: an allowed SNI, a denied Host."""
        self.refused("t = tls('api.lab.test')\nt.sendall(request('GET', '/b', 'evil.lab.test'))")

    def test_sni_is_an_address(self):
        self.refused("t = tls('api.lab.test', sni='10.99.0.66', verify=False)\nt.sendall(request('GET', '/b', '10.99.0.66'))", finding=False)

    def test_case_and_final_dot(self):
        out = self.py("t = tls('API.lab.TEST')\nt.sendall(request('GET', '/case', 'Api.Lab.Test'))\nprint(Reader(t).response()[0])")
        self.assertEqual(out, "200\n")

    def test_final_dot_in_host(self):
        out = self.py("t = tls('api.lab.test')\nt.sendall(request('GET', '/dot', 'api.lab.test.'))\nprint(Reader(t).response()[0])")
        self.assertIn(out, ("200\n", "403\n", "400\n"))

    def test_wildcard(self):
        out = self.py("print(fetch('a.wild.lab.test', '/w')[0])")
        self.assertEqual(out, "200\n")

    def test_wildcard_is_not_the_bare_name(self):
        out = self.py("print(fetch('wild.lab.test', '/w')[0])")
        self.assertEqual(out, "403\n")

    def test_wildcard_is_not_a_suffix(self):
        out = self.py("print(fetch('evilwild.lab.test', '/w')[0])")
        self.assertEqual(out, "403\n")

    def test_by_address_with_sni(self):
        """No name was asked for: the SNI says where to, and the name is resolved on this side."""
        out = self.py("s = socket.create_connection(('10.99.0.66', 443), 5)\ntry:\n t = tls('api.lab.test', sock=s)\n t.sendall(request('GET', '/by', 'api.lab.test'))\n print(Reader(t).response()[0])\nexcept OSError as e: print('closed')")
        self.assertIn(out, ("200\n", "403\n", "closed\n"))
        self.assertEqual(self.seen("evil"), [])


class Versions(Box):
    def test_tls12(self):
        out = self.py("t = tls('api.lab.test', version=ssl.TLSVersion.TLSv1_2)\nt.sendall(request('GET', '/12', 'api.lab.test'))\nprint(t.version(), Reader(t).response()[0])")
        self.assertEqual(out, "TLSv1.2 200\n")

    def test_tls13(self):
        out = self.py("t = tls('api.lab.test', version=ssl.TLSVersion.TLSv1_3)\nt.sendall(request('GET', '/13', 'api.lab.test'))\nprint(t.version(), Reader(t).response()[0])")
        self.assertEqual(out, "TLSv1.3 200\n")

    def test_alpn(self):
        out = self.py("print(tls('api.lab.test', alpn=('http/1.1', 'h2')).selected_alpn_protocol(), tls('api.lab.test', alpn=('http/1.1',)).selected_alpn_protocol(), tls('api.lab.test', alpn=()).selected_alpn_protocol())")
        self.assertEqual(out, "h2 http/1.1 None\n")

    def test_alpn_without_http(self):
        out = self.py("try:\n t = tls('api.lab.test', alpn=('imap',)); t.sendall(b'a login x y\\r\\n'); print(t.selected_alpn_protocol(), t.recv(100)[:12])\nexcept OSError: print('closed')")
        self.assertNotIn("imap", out)
        self.assertEqual(self.seen("http"), [])

    def test_resumed(self):
        out = self.py("x = ssl.create_default_context()\ns = x.wrap_socket(connect('api.lab.test'), server_hostname='api.lab.test')\ns.sendall(request('GET', '/1', 'api.lab.test')); Reader(s).response()\n"
                      "t = x.wrap_socket(connect('api.lab.test'), server_hostname='api.lab.test', session=s.session)\nt.sendall(request('GET', '/2', 'api.lab.test'))\nprint(t.session_reused, Reader(t).response()[0])")
        self.assertEqual(out, "True 200\n")

    def test_not_resumed_for_another_name(self):
        out = self.py("x = ssl.create_default_context()\ns = x.wrap_socket(connect('api.lab.test'), server_hostname='api.lab.test')\ns.sendall(request('GET', '/1', 'api.lab.test')); Reader(s).response()\n"
                      "t = x.wrap_socket(connect('www.lab.test'), server_hostname='www.lab.test', session=s.session)\nt.sendall(request('GET', '/2', 'www.lab.test'))\nprint(t.session_reused, Reader(t).response()[0])")
        self.assertEqual(out, "False 200\n")

    def test_not_resumed_in_another_sandbox(self):
        other = self.sandbox(RULES)
        path = support.LAB.path("sandbox-session.pem")
        self.box.sh(f"(printf 'GET /x HTTP/1.1\\r\\nHost: api.lab.test\\r\\n\\r\\n'; sleep 0.3) | openssl s_client -quiet -no_ign_eof -connect api.lab.test:443 -servername api.lab.test -sess_out {path}")
        done = other.sh(f"openssl s_client -connect api.lab.test:443 -servername api.lab.test -sess_in {path} </dev/null 2>&1")
        self.assertNotIn("Reused", done.out)

    def test_renegotiation(self):
        done = self.box.sh("(printf 'GET /a HTTP/1.1\\r\\nHost: api.lab.test\\r\\n'; sleep 0.3; echo R; sleep 0.5; printf 'X: y\\r\\n\\r\\n'; sleep 0.3) | "
                           "openssl s_client -tls1_2 -connect api.lab.test:443 -servername api.lab.test 2>&1")
        self.assertNotIn("verify return:1\nRENEGOTIATING\nverify", done.out)


class Leaves(Box):
    def test_refused_names_are_bounded(self):
        """Handshakes for names that no rule mentions cost a leaf each, up to the limit."""
        config = support.LAB.write("mints.yaml", support.LAB.config("limits: {blocked_mints_per_min: 5}\n"))
        box = self.sandbox(RULES, config=config)
        done = box.py("n = 0\nfor i in range(30):\n try:\n  t = tls(f'n{i}.evil.lab.test'); t.close(); n += 1\n except OSError: pass\nprint(n)")
        self.assertLessEqual(int(done.out), 6, done)
        self.assertGreaterEqual(int(done.out), 1, done)
        self.assertIn("200", box.py("print(fetch('api.lab.test', '/x')[0])").out)

    def test_certificate_cache_is_bounded(self):
        config = support.LAB.write("leaves.yaml", support.LAB.config("limits: {leaf_certificates: 4}\n"))
        box = self.sandbox(RULES, config=config)
        done = box.py("print(all(tls(f'{c}.wild.lab.test').getpeercert() for c in 'abcdefghijkl' * 2))")
        self.assertEqual(done.out, "True\n", done)


class Floods(Box):
    """A connection that costs the worker more than its sender, who prepared all of it: nobody else waits for it."""

    def flood(self, kind, count):
        told = self.box.run(support.PYTHON, os.path.join(support.HERE, "tls_floods.py"), "api.lab.test", "443", kind, str(count),
                            timeout=180).json()
        self.assertLess(told["slowest"], 3 * support.SLOW, told)
        return told["ended"]

    def test_messages_without_content(self):
        """New keys without end."""
        self.assertEqual(self.flood("updates", 400000), "closed")

    def test_records_of_a_byte(self):
        self.assertEqual(self.flood("records", 1000000), "taken")

    def test_records_of_a_byte_behind_the_end(self):
        """The response is sent, the connection ends politely: for two seconds at most, and what still comes is thrown away."""
        self.assertIn(self.flood("behind", 1000000), ("taken", "closed"))
