# SPDX-License-Identifier: Apache-2.0
"""The policy decides what happens: schemes, methods, paths however written, addresses behind names, observing."""
import json
import socket
import time

import support
from support import DNS, FINDING, HTTP, NETWORK, policy


class Box(support.Boxed):
    RULES = ""

    @classmethod
    def make_box(cls):
        return support.Sandbox(cls.RULES)

    def status(self, method, path, host="api.lab.test"):
        """The status of one request whose target is sent byte for byte."""
        return int(self.py(f"s = tls({host!r}); s.sendall(request({method!r}, {path!r}, {host!r})); print(Reader(s).response({method!r})[0])"))


class Rules(Box):
    RULES = policy("{to: 'https://api.lab.test', methods: [GET, HEAD], paths: [/repos/acme/**, /user, /one/*/end]}",
                   "{to: 'https://api.lab.test', methods: [POST], paths: [/repos/acme/*/pulls]}",
                   "{to: 'https://www.lab.test'}", "{to: 'group:two'}", "{to: 'https://git.lab.test:8443'}",
                   deny=("{to: 'https://api.lab.test', methods: [GET], paths: [/repos/acme/secret/**], reason: Not this one.}",
                         "{to: 'https://www.lab.test', methods: [DELETE]}"),
                   more="groups:\n  two: ['https://deb.lab.test', 'http://plain.lab.test']\n")

    def allowed(self, method, *paths, host="api.lab.test"):
        for path in paths:
            with self.subTest(path=path):
                self.assertNotIn(self.status(method, path, host), (400, 403))

    def denied(self, method, *paths, host="api.lab.test", also=(400,)):
        for path in paths:
            with self.subTest(path=path):
                at = self._seen_size()
                self.assertIn(self.status(method, path, host), (403, *also))
                self.seen_at = at
                self.assertEqual(self.seen("http"), [])

    def test_allowed(self):
        self.allowed("GET", "/repos/acme/x", "/repos/acme/x/y/z", "/user", "/user?a=b", "/one/two/end")
        self.allowed("HEAD", "/user")
        self.allowed("POST", "/repos/acme/x/pulls")

    def test_denied_methods(self):
        for method in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "PROPFIND", "get", "GETX", "FOO"):
            self.denied(method, "/user", also=(400, 405, 501))

    def test_another_method_or_path_in_a_field(self):
        """Methods and paths that servers may take from a field are judged too, over either version of HTTP."""
        rows = [("/user", "X-HTTP-Method-Override: HEAD", True), ("/user", "x-http-method-override: delete", False),
                ("/user", "X_HTTP_Method: PUT", False), ("/user", "X-Original-URL: /repos/acme/x", True),
                ("/user", "X-Original-URL: /admin", False), ("/repos/acme/x", "X-Rewrite-URL: /repos/acme/secret/y", False)]
        for version in ("--http1.1", "--http2"):
            for path, field, passes in rows:
                with self.subTest(version=version, field=field):
                    at = self._seen_size()
                    done = self.box.run("curl", "-sS4", version, "-o", "/dev/null", "-w", "%{http_code}", "-H", field, "https://api.lab.test" + path)
                    self.seen_at = at
                    self.assertEqual((done.out != "403", len(self.seen("http"))), (passes, passes), done)

    def test_denied_paths(self):
        self.denied("GET", "/", "/users", "/user/", "/user/x", "/USER", "/repos/acmex", "/repos/acme2/x", "/repos", "/one/end",
                    "/one/a/b/end", "/one//end")
        self.denied("POST", "/repos/acme/pulls", "/repos/acme/x/y/pulls", "/repos/acme/x/pulls/1")

    def test_dot_segments(self):
        self.denied("GET", "/repos/acme/../other", "/repos/acme/%2e%2e/other", "/repos/acme/.%2E/other", "/repos/acme/x/../../other",
                    "/repos/acme/%2e%2e%2fother", "/user/../admin", "/repos/acme/..;/other", "/repos/acme/..%3b/other",
                    "/repos/acme/..%00/other", "/repos/acme/\\..\\other", "/repos/acme/..%5cother",
                    "/..", "/../../etc/passwd", also=(400, 200))
        for row in self.seen("http"):
            self.fail(f"reached the origin: {row['path']}")

    def test_what_reaches_the_origin_is_what_was_judged(self):
        """Every spelling either is refused or arrives in one canonical form that the policy allows."""
        for path in ("/repos/acme/./x", "/repos/acme/%2e/x", "/repos/acme//x", "//repos/acme/x", "/repos/acme/%78", "/repos/%61cme/x",
                     "/repos/acme/a%2Fb", "/repos/acme/a%2fb", "/repos/acme/a;v=1/b", "/repos/acme/%7Ex", "/repos/acme/x%20y",
                     "/repos/acme/%C3%A9", "/repos/acme/x/", "/repos/acme/a+b", "/repos/acme/a%2Bb", "/repos/acme/a/../b",
                     "/repos/x/../acme/b", "/repos/acme/..%2f..%2fother", "/repos/acme/%2e%2e/acme/x", "/repos/acme/a%5Cb",
                     "/repos/acme/%2E%2E/%2E%2E/user", "/repos/acme/a?x=/../../b", "/repos/acme/a?x=%2e%2e"):
            with self.subTest(path=path):
                at = self._seen_size()
                status = self.status("GET", path)
                self.seen_at = at
                rows = self.seen("http")
                if status == 200:
                    sent = rows[0]["path"].split("?")[0]
                    self.assertTrue(sent.startswith("/repos/acme/") or sent == "/user", sent)
                    self.assertFalse({".", ".."} & {x.split(";")[0] for x in sent.split("/")}, sent)
                    for bad in ("%2e", "\\", "%00", "%61", "%78"):
                        self.assertNotIn(bad, sent.lower())
                else:
                    self.assertIn(status, (400, 403))
                    self.assertEqual(rows, [])

    def test_deny_beats_allow(self):
        self.denied("GET", "/repos/acme/secret/x", "/repos/acme/secret/", "/repos/acme/x/../secret/y", "/repos/acme/%73ecret/x",
                    "/repos/acme//secret/x", "/repos/acme/./secret/x", "/repos/acme/secret%2fx", "/repos/acme/SECRET/../secret/x")
        self.denied("DELETE", "/anything", host="www.lab.test")
        self.allowed("GET", "/anything", host="www.lab.test")

    def test_deny_holds_against_every_reading(self):
        """Also over HTTP/2, and if another field names the path."""
        self.denied("GET", "/repos/acme/secret;x%2Fy/z", "/repos/acme/secret%3Bx/z", "/repos/acme%2Fsecret/x", "/repos/acme/%2573ecret/x",
                    "/repos/acme%252Fsecret%252Fx", "/repos/acme/SECRET/x", "/repos/acme/secret./x", "/repos/acme/secret%C0%AFx",
                    "/repos/acme/%EF%BD%93ecret/x", "/repos/acme/;a/secret;b/x;c", "/repos/acme%255Csecret/x", "/repos/acme/secret")
        for path in ("/repos/acme/secret;x%2Fy/z", "/repos/acme/%2573ecret/x"):
            for version in ("--http1.1", "--http2"):
                for args in (("https://api.lab.test" + path,), ("-H", "X-Original-URL: " + path, "https://api.lab.test/repos/acme/x")):
                    with self.subTest(path=path, version=version, args=args):
                        done = self.box.run("curl", "-sS4", "--path-as-is", version, "-o", "/dev/null", "-w", "%{http_code}", *args)
                        self.assertEqual(done.out, "403")

    def test_hidden_dot_segments(self):
        """In encodings that only some servers undo."""
        self.denied("GET", "/repos/acme/%252e%252e/other", "/repos/acme/..%252fother", "/repos/acme/%C0%AE%C0%AE/other",
                    "/repos/acme/%EF%BC%8E%EF%BC%8E/other", "/repos/acme/..%20/other", "/repos/acme/x%2500", "/repos/acme/%25252e./x", also=(400,))
        self.assertEqual(self.seen("http"), [])

    def test_reason_is_told(self):
        out = json.loads(self.py("answered(*fetch('api.lab.test', '/repos/acme/secret/x'))"))
        body = json.loads(out["body"])
        self.assertEqual((body["reason"], body["rule"]), ("Not this one.", "deny[0]"))
        event = self.assert_denied(self.box, body)
        self.assertEqual((event["firewall_rule"]["name"], event["status_code"], event["status_detail"]), ("deny[0]", "rule", "Not this one."))

    def test_group(self):
        self.allowed("GET", "/x", host="deb.lab.test")
        self.assertIn("200", self.py("print(fetch('plain.lab.test', '/', port=80, plain=True)[0])"))
        self.assertIn("403", self.py("print(fetch('deb.lab.test', '/', port=80, plain=True)[0])"))

    def test_ports(self):
        self.assertIn("200", self.py("print(fetch('git.lab.test', '/', port=8443)[0])"))
        self.assertIn("403", self.py("print(fetch('git.lab.test', '/')[0])"))
        self.assertIn("403", self.py("print(fetch('api.lab.test', '/user', port=8443)[0])"))

    def test_scheme(self):
        self.assertIn("403", self.py("print(fetch('api.lab.test', '/user', port=80, plain=True)[0])"))

    def test_denied_port_without_protocol(self):
        """Not HTTP, no rule: an end at once, and an event."""
        out = self.py("t = time.monotonic()\ntry:\n s = connect('tcp.lab.test', 2222, timeout=15); s.sendall(b'SSH-2.0-x\\r\\n'); print(s.recv(10))\nexcept OSError as e: print('ended', type(e).__name__)\nprint(time.monotonic() - t < 12)")
        self.assertNotIn("banner", out)
        self.assertIn("True", out)
        self.assertEqual(self.seen("tcp"), [])
        self.assertIsNotNone(self.box.event(NETWORK, **{"dst_endpoint.port": 2222}))


class Conditions(Box):
    """Rules that ask for parameters of the query and for header fields."""
    RULES = policy("{name: search, to: api.lab.test, methods: [GET], paths: [/search], query: {q: '*', page: ['1', '2*'], debug: ~, '*': ~}}",
                   "{name: mode, to: api.lab.test, paths: [/mode], headers: {X-Mode: safe, x-debug: ~}}", "{to: www.lab.test}",
                   deny=("{name: beta, to: www.lab.test, headers: {x-beta: 'on*'}, reason: No beta.}", "{to: www.lab.test, query: {debug: '*'}}"))

    def curl(self, path, *fields, host="api.lab.test", version="--http1.1", more=""):
        argv = " ".join(f"-H '{f}'" for f in fields)
        return self.box.sh(f"curl -sS {version} -o /dev/null -w '%{{http_code}}' -g {argv} {more} 'https://{host}{path}'").out

    def test_queries_and_fields(self):
        good = [("/search?q=secret%20plan&page=1",), ("/search?page=22&q=",), ("/mode", "X-Mode: safe"), ("/mode?any=thing", "x-mode: safe", "Accept: x")]
        bad = [("/search",), ("/search?q=1",), ("/search?q=1&page=3",), ("/search?q=1&page=1&x=exfiltrated",), ("/search?q=1&page=1&page=2",),
               ("/search?q=1&page=1;debug=1",), ("/search?q=%zz&page=1",), ("/mode",), ("/mode", "X-Mode: unsafe"), ("/mode", "X_Mode: safe"),
               ("/mode", "X-Mode: safe", "X-Mode: evil"), ("/mode", "X-Mode: safe", "x_mode: evil"), ("/mode", "X-Mode: safe", "X-Debug: 0")]
        for version in ("--http1.1", "--http2"):
            for path, *fields in good:
                self.assertNotIn(self.curl(path, *fields, version=version), ("403", "400", "000"), (version, path, fields))
            at = self._seen_size()
            for path, *fields in bad:
                self.assertEqual(self.curl(path, *fields, version=version), "403", (version, path, fields))
            self.seen_at = at
            self.assertEqual(self.seen("http"), [])

    def test_denied_ones(self):
        for version in ("--http1.1", "--http2"):
            for path, *fields in (("/", "X-Beta: on"), ("/", "x_beta: off, ONLY"), ("/?debug=1",), ("/?a=1;%44ebug[]=x",)):
                self.assertEqual(self.curl(path, *fields, host="www.lab.test", version=version), "403", (path, fields))
            self.assertNotIn(self.curl("/?debugger=1", "x-beta: off", host="www.lab.test", version=version), ("403", "000"))

    def test_fields_that_are_not_sent_on(self):
        """Connection takes a field off the request: what was judged has to be what is sent."""
        self.assertEqual(self.curl("/mode", "X-Mode: safe", "Connection: x_mode"), "403")
        self.assertEqual(self.curl("/mode", "X-Mode: safe", "Connection: close, X-Mode"), "403")
        self.py("s = tls('api.lab.test'); s.sendall(b'POST /mode HTTP/1.1\\r\\nHost: api.lab.test\\r\\nX-Mode: safe\\r\\nTransfer-Encoding: chunked\\r\\n"
                "Trailer: X-Mode, X-Other\\r\\n\\r\\n1\\r\\nx\\r\\n0\\r\\nX_Mode: evil\\r\\nX-Debug: 1\\r\\nX-Other: 1\\r\\n\\r\\n'); print(Reader(s).response()[0])")
        request = json.dumps(self.seen("http", path="/mode")[-1]).lower()
        self.assertIn("x-other", request)
        self.assertNotIn("evil", request)
        self.assertNotIn("x-debug", request)

    def test_a_field_that_asks_for_another_path(self):
        self.assertEqual(self.curl("/mode", "X-Mode: safe", "X-Original-URL: /search?q=1&page=1&x=1"), "403")
        self.assertEqual(self.curl("/mode", "X-Mode: safe", "X-Original-URL: /search?q=1&page=3"), "403")

    def test_the_answer_says_so(self):
        out = self.box.sh("curl -s 'https://api.lab.test/search?q=1&page=9'").json()
        self.assertIn('the query\'s parameter "page" is missing, repeated, or not what the rule asks for; rule "search" allows no query debug', out["detail"])
        self.assertIn("certain query parameters, header fields or bodies", out["advice"])
        self.assertIsNotNone(self.box.event(HTTP, status_code="condition"))


class Exceptions(Box):
    RULES = policy("{to: ['*.lab.test', 'http://*.lab.test']}", "{to: 'tcp://*.lab.test', ports: [22, 2222]}",
                   deny=("{name: inner, to: ['*.lab.test', 'http://*.lab.test'], except: [api.lab.test, 'http://plain.lab.test']}",
                         "{name: posts, to: '*.lab.test', methods: [POST], except: www.lab.test}"))

    def test_all_but_one(self):
        self.assertNotIn(self.status("GET", "/x"), (400, 403))
        self.assertEqual(self.status("POST", "/x"), 403)  # by the other rule
        at = self._seen_size()
        for url, answer in (("https://www.lab.test/secret", "403"), ("https://deb.lab.test/secret", "403"), ("http://plain.lab.test/", "200"),
                            ("http://api.lab.test/secret", "403")):
            self.assertEqual(self.box.sh(f"curl -sS -o /dev/null -w '%{{http_code}}' {url}").out, answer, url)
        self.seen_at = at
        self.assertEqual([r for r in self.seen("http") if r["path"] == "/secret"], [])


class Passthrough(Box):
    RULES = policy("{to: 'https://pass.lab.test', tls: passthrough}", "{to: 'https://*.wild.lab.test', tls: passthrough}",
                   "https://api.lab.test")

    def issuer(self, host):
        done = self.box.sh(f"openssl s_client -connect {host}:443 -servername {host} </dev/null 2>/dev/null | openssl x509 -noout -issuer")
        return done.out

    def test_certificate_is_the_origins(self):
        self.assertIn("vethguard test CA", self.issuer("pass.lab.test"))
        self.assertNotIn("vethguard test CA", self.issuer("api.lab.test"))

    def test_end_to_end(self):
        out = self.py("x = ssl.create_default_context(cafile=%r)\nt = x.wrap_socket(connect('pass.lab.test'), server_hostname='pass.lab.test')\n"
                      "t.sendall(request('GET', '/end', 'pass.lab.test')); print(Reader(t).response()[0])" % support.LAB.path("ca.pem"))
        self.assertEqual(out, "200\n")
        event = self.box.event(NETWORK, **{"dst_endpoint.hostname": "pass.lab.test"})
        self.assertIsNotNone(event)

    def test_bulk(self):
        done = self.box.sh("curl -sSk https://pass.lab.test/bytes/100000000 | wc -c")
        self.assertEqual(done.out.strip(), "100000000", done)

    def test_wildcard(self):
        self.assertIn("vethguard test CA", self.issuer("a.wild.lab.test"))

    def test_upload(self):
        done = self.box.sh("head -c 30000000 /dev/zero | curl -sSk -H Expect: -T - https://pass.lab.test/up")
        self.assertEqual(done.json()["body"], 30000000, done)

    def test_denied_sni(self):
        """The dialed name is allowed to pass, the SNI names another host."""
        out = self.py("try:\n t = tls('pass.lab.test', sni='evil.lab.test', verify=False); t.sendall(request('GET', '/', 'evil.lab.test')); print(Reader(t).response()[0])\nexcept (OSError, EOFError): print('closed')")
        self.assertIn(out, ("closed\n", "403\n", "421\n"))
        self.assertEqual(self.seen("http") + self.seen("evil"), [])

    def test_sni_of_a_name_that_is_opened(self):
        out = self.py("try:\n t = tls('pass.lab.test', sni='api.lab.test', verify=False); t.sendall(request('GET', '/', 'api.lab.test')); print(Reader(t).response()[0])\nexcept (OSError, EOFError): print('closed')")
        self.assertIn(out, ("closed\n", "403\n", "421\n"))
        self.assertEqual(self.seen("http"), [])

    def test_name_that_is_opened_with_passing_sni(self):
        out = self.py("try:\n t = tls('api.lab.test', sni='pass.lab.test', verify=False); t.sendall(request('GET', '/', 'api.lab.test')); print(Reader(t).response()[0])\nexcept (OSError, EOFError): print('closed')")
        self.assertIn(out, ("closed\n", "403\n", "421\n"))
        self.assertEqual(self.seen("http"), [])

    def test_no_tls_at_all(self):
        out = self.py("try:\n s = connect('pass.lab.test'); s.sendall(b'not tls at all\\r\\n\\r\\n'); s.settimeout(12); d = s.recv(100); print(d[:30])\nexcept OSError: print('closed')")
        self.assertNotIn("b'HTTP/1.1 200", out)
        self.assertEqual(self.seen("http"), [])

    def test_plain_http_on_443(self):
        out = self.py("try:\n s = connect('pass.lab.test'); s.sendall(request('GET', '/plain443', 'pass.lab.test')); print(Reader(s).response()[0])\nexcept (OSError, EOFError): print('closed')")
        self.assertIn(out, ("closed\n", "403\n", "400\n"))
        self.assertEqual(self.seen("http"), [])


class DeniedBeside(Box):
    """A deny rule for a scheme, where a tcp:// rule would relay whatever it is."""
    RULES = policy("tcp://plain.lab.test:80", "tcp://api.lab.test:443", "tcp://tcp.lab.test:2222", "tcp://www.lab.test:443",
                   deny=("http://plain.lab.test", "https://api.lab.test", "http://tcp.lab.test:2222"))

    def test_http(self):
        self.assertEqual(self.py("print(fetch('plain.lab.test', port=80, plain=True)[0])"), "403\n")
        self.assertEqual(self.seen("http"), [])

    def test_https(self):
        self.assertEqual(self.py("print(fetch('api.lab.test')[0])"), "403\n")
        self.assertEqual(self.seen("http"), [])

    def test_others_are_relayed(self):
        self.assertEqual(self.py("print(fetch('www.lab.test', verify=False)[0])"), "200\n")

    def test_nor_is_a_protocol_in_which_the_server_begins_refused(self):
        """Only later: the relay waits for what the sandbox says."""
        out = self.py("s = connect('tcp.lab.test', 2222, timeout=30); print(s.recv(100))")
        self.assertEqual(out, "b'banner 1.0\\r\\n'\n")


class Streams(Box):
    RULES = policy("tcp://tcp.lab.test:2222", "https://api.lab.test")

    def test_banner_first(self):
        out = self.py("s = connect('tcp.lab.test', 2222); print(s.recv(100)); s.sendall(b'ping'); print(s.recv(100))")
        self.assertEqual(out, "b'banner 1.0\\r\\n'\nb'ping'\n")

    def test_ipv6(self):
        out = self.py("s = connect('tcp.lab.test', 2222, family=socket.AF_INET6); print(s.recv(100))")
        self.assertEqual(out, "b'banner 1.0\\r\\n'\n")

    def test_half_close(self):
        out = self.py("s = connect('tcp.lab.test', 2222); s.recv(100); s.sendall(b'x' * 200000); s.shutdown(socket.SHUT_WR); print(len(read_all(s)))")
        self.assertEqual(out, "200000\n")

    def test_tls_inside_is_not_opened(self):
        """A tcp:// rule is for bytes: also when they begin like TLS or HTTP."""
        out = self.py("s = connect('tcp.lab.test', 2222); s.recv(100); s.sendall(request('GET', '/', 'evil.lab.test')); print(s.recv(100)[:5])")
        self.assertEqual(out, "b'GET /'\n")

    def test_other_port(self):
        out = self.py("try:\n s = connect('tcp.lab.test', 2223, timeout=14); print(s.recv(10))\nexcept OSError as e: print('ended')")
        self.assertIn(out, ("ended\n", "b''\n"))

    def test_other_host(self):
        out = self.py("try:\n s = connect('www.lab.test', 2222, timeout=14); print(s.recv(10))\nexcept OSError as e: print('ended')")
        self.assertIn(out, ("ended\n", "b''\n"))
        self.assertEqual(self.seen("tcp"), [])

    def test_address_of_the_allowed_host(self):
        """The rule names a name; its address alone is not allowed."""
        out = self.py("try:\n s = socket.create_connection(('10.99.0.80', 2222), 14); print(s.recv(10))\nexcept OSError as e: print('ended')")
        self.assertIn(out, ("ended\n", "b''\n"))

    def test_event(self):
        self.py("s = connect('tcp.lab.test', 2222); s.recv(100); s.sendall(b'12345'); s.recv(5); s.close()")
        event = self.box.event(NETWORK, action_id=1, **{"traffic.bytes_out": 5})
        self.assertIsNotNone(event)
        self.assertEqual(event["dst_endpoint"]["hostname"], "tcp.lab.test")


class Datagrams(Box):
    RULES = policy("udp://udp.lab.test:1234")
    ASK = "def ask(host, port, data, family=socket.AF_INET, patience=30):\n a = socket.getaddrinfo(host, port, family, socket.SOCK_DGRAM)[0][4]\n s = socket.socket(family, socket.SOCK_DGRAM); s.settimeout(patience)\n s.connect(a); s.send(data)\n try: return s.recv(65536)\n except OSError as e: return type(e).__name__\n"

    def test_v4_and_v6(self):
        out = self.py(self.ASK + "print(ask('udp.lab.test', 1234, b'four'), ask('udp.lab.test', 1234, b'six', socket.AF_INET6))")
        self.assertEqual(out, "b'echo:four' b'echo:six'\n")

    def test_sizes(self):
        out = self.py(self.ASK + "print([len(ask('udp.lab.test', 1234, b'x' * n)) for n in (0, 1, 512, 1400)])")
        self.assertEqual(out, "[5, 6, 517, 1405]\n")

    def test_other_port(self):
        out = self.py(self.ASK + "print(ask('udp.lab.test', 1235, b'x'))")
        self.assertNotIn("echo", out)
        self.assertNotIn("TimeoutError", out)  # refused at once, not swallowed
        self.assertEqual(self.seen("udp"), [])

    def test_other_name(self):
        out = self.py(self.ASK + "print(ask('www.lab.test', 1234, b'other name', patience=1.5))")
        self.assertNotIn("echo", out)
        self.assertEqual(self.seen("udp"), [])

    def test_address(self):
        out = self.py(self.ASK + "print(ask('10.99.0.80', 1234, b'by address', patience=1.5))")
        self.assertNotIn("echo", out)
        self.assertEqual(self.seen("udp"), [])

    def test_idle_timeout_and_bound(self):
        config = support.LAB.write("udp.yaml", support.LAB.config("limits: {udp_flows: 4}\ntimeouts: {udp_idle: 500ms}\n"))
        box = self.sandbox(self.RULES, config=config)
        out = self.py("a = socket.getaddrinfo('udp.lab.test', 1234, socket.AF_INET, socket.SOCK_DGRAM)[0][4]\nss = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(12)]\n"
                      "import select\ngot = set()\nfor s in ss: s.sendto(b'x', a)\n"
                      "while ready := select.select([s for s in ss if s not in got], [], [], 1 if got else 60)[0]:\n"
                      " for s in ready: s.recv(100); got.add(s)\nprint(len(got))\n"
                      "time.sleep(1)\ns = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(1)\n"
                      "for _ in range(60):\n s.sendto(b'again', a)\n try: print(s.recv(100)); break\n except TimeoutError: pass", box)
        first, second = out.splitlines()
        self.assertLessEqual(int(first), 4)
        self.assertGreaterEqual(int(first), 1)
        self.assertEqual(second, "b'echo:again'")
        self.assertIsNotNone(box.event(NETWORK, action_id=1, **{"dst_endpoint.port": 1234}), "a flow's end is an event")

    def test_answer_from_elsewhere_is_dropped(self):
        """Only the flow's own peer may answer: a stranger outside cannot reach the sandbox."""
        out = self.py(self.ASK + "a = socket.getaddrinfo('udp.lab.test', 1234, socket.AF_INET, socket.SOCK_DGRAM)[0][4]\ns = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(60); s.sendto(b'x', a); d, p = s.recvfrom(100); print(d, p == a)")
        self.assertEqual(out, "b'echo:x' True\n")


class Addresses(Box):
    RULES = policy("https://loop.lab.test", "https://private.lab.test", "https://meta.lab.test", "https://own.lab.test",
                   "https://own-public.lab.test", "https://own-second.lab.test", "http://meta.lab.test", "http://loop.lab.test", "tcp://loop.lab.test:22",
                   "udp://private.lab.test:1234", "https://api.lab.test", "https://closed.lab.test:9", "https://nowhere.other.test",
                   "{to: 'https://*.lab.test', paths: [/wild/**]}")

    def refused(self, host, scheme="https"):
        plain = ", port=80, plain=True" if scheme == "http" else ""
        out = json.loads(self.py(f"answered(*fetch('{host}', '/latest/meta-data'{plain}))"))
        body = json.loads(out["body"])
        self.assertEqual(out["status"], 403, out)
        self.assert_denied(self.box, body)
        finding = self.box.event(FINDING, **{"finding_info.related_events": lambda v: bool(v) and any(x.get("uid") == body["event"] for x in v)})
        self.assertIsNotNone(finding, "no finding: " + repr([e["message"] for e in self.box.events(FINDING)]))

    def test_loopback(self):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 443))
            s.listen()
            s.settimeout(0.3)
            self.refused("loop.lab.test")
            self.assertRaises(TimeoutError, s.accept)

    def test_loopback_plain(self):
        self.refused("loop.lab.test", "http")

    def test_private(self):
        with support.Capture() as capture:
            self.refused("private.lab.test")
        self.assertFalse([f for f in capture.sent() if socket.inet_aton("192.168.7.7") in f])

    def test_metadata(self):
        with support.Capture() as capture:
            self.refused("meta.lab.test")
            self.refused("meta.lab.test", "http")
        self.assertFalse([f for f in capture.sent() if socket.inet_aton("169.254.169.254") in f])

    def own(self, host, address):
        with socket.socket() as s:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            s.bind((address, 443))
            s.listen()
            s.settimeout(0.3)
            try:
                self.refused(host)
            finally:
                self.assertRaises(TimeoutError, s.accept)

    def test_own_address(self):
        """An address of the host itself, within a permitted private range."""
        self.own("own.lab.test", "10.99.0.1")

    def test_own_public_address(self):
        """Not private at all, and still the host's own."""
        self.own("own-public.lab.test", "11.22.33.44")

    def test_own_second_address(self):
        """The kernel would choose the first one of that network as the source of what goes there."""
        self.own("own-second.lab.test", "11.22.33.45")

    def test_streams_and_datagrams_too(self):
        out = self.py("try:\n s = connect('loop.lab.test', 22, timeout=5); print(s.recv(10))\nexcept OSError: print('ended')")
        self.assertIn(out, ("ended\n", "b''\n"))
        with support.Capture() as capture:
            self.py("a = socket.getaddrinfo('private.lab.test', 1234, socket.AF_INET, socket.SOCK_DGRAM)[0][4]; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.sendto(b'x', a); time.sleep(0.3)")
        self.assertFalse([f for f in capture.sent() if socket.inet_aton("192.168.7.7") in f])

    def test_the_address_is_told_to_the_operator_alone(self):
        box = self.sandbox(self.RULES, options=["-v"])
        out = json.loads(self.py("answered(*fetch('private.lab.test', '/told'))", box))
        self.assertNotIn("192.168.7.7", json.dumps(out))
        self.py("try: connect('loop.lab.test', 22, timeout=5).recv(10)\nexcept OSError: pass\n"
                "a = socket.getaddrinfo('private.lab.test', 1234, socket.AF_INET, socket.SOCK_DGRAM)[0][4]\n"
                "socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', a); time.sleep(0.3)", box)
        box.close()
        refused = [e for e in box.events() if e.get("status_code") == "address"]
        self.assertEqual(sorted((e["class_uid"], e["dst_endpoint"]["hostname"], e["dst_endpoint"]["ip"], e["dst_endpoint"]["port"]) for e in refused),
                         [(4001, "loop.lab.test", "127.0.0.1", 22), (4001, "private.lab.test", "192.168.7.7", 1234), (4002, "private.lab.test", "192.168.7.7", 443)])
        findings = [e["evidences"][0]["dst_endpoint"]["ip"] for e in box.events(FINDING)]
        self.assertEqual(sorted(findings), ["127.0.0.1", "192.168.7.7"])
        for host, ip in (("private.lab.test", "192.168.7.7"), ("loop.lab.test", "127.0.0.1")):
            self.assertRegex(box.stderr(), f"vethguard-worker: info: {host}: the address {ip} is refused \\(event [0-9a-f]{{16}}\\)")

    def test_wildcard_does_not_open_them(self):
        for host in ("private.lab.test", "meta.lab.test"):
            with self.subTest(host=host):
                out = json.loads(self.py(f"answered(*fetch('{host}', '/wild/x'))"))
                self.assertEqual(out["status"], 403)

    def test_rule_that_names_the_address(self):
        """Private addresses a rule names are reachable; only those, on that port."""
        config = support.LAB.write("nopermit.yaml", support.LAB.config().replace("permit:", "#"))
        box = self.sandbox(policy("https://10.99.0.80", "http://10.99.0.64/28"), config=config)
        self.assertIn("200", self.py("print(fetch('10.99.0.80', '/by-address')[0])", box))
        self.assertIn("403", self.py("print(fetch('10.99.0.66', '/', verify=False)[0])", box))
        self.assertIn("403", self.py("print(fetch('api.lab.test', '/')[0])", box))

    def test_nothing_listens(self):
        out = json.loads(self.py("answered(*fetch('closed.lab.test', '/', port=9))"))
        self.assertEqual(out["status"], 502)

    def test_name_does_not_exist(self):
        out = json.loads(self.py("answered(*fetch('nowhere.other.test', '/'))"))
        self.assertEqual(out["status"], 502)
        self.assertIn("resolve", out["body"])


class WideNetworks(Box):
    """A network that is wider than a private range opens none of what lies in there."""
    RULES = policy("http://0.0.0.0/0", "http://[::/0]", "tcp://[public]:22", "udp://[public]:1234")

    def setUp(self):
        super().setUp()
        self.plain = support.LAB.write("nopermit.yaml", support.LAB.config().replace("permit:", "#"))

    def test_http(self):
        box = self.sandbox(self.RULES, config=self.plain)
        with support.Capture() as capture:
            for address in ("10.99.0.80", "10.99.0.1", "11.22.33.44", "169.254.169.254", "192.168.7.7"):
                with self.subTest(address=address):
                    out = json.loads(self.py(f"answered(*fetch('{address}', '/latest', port=80, plain=True))", box))
                    self.assertEqual(out["status"], 403, out)
                    self.assertIn("ddress", json.loads(out["body"])["title"] + json.loads(out["body"])["detail"])
        self.assertEqual([f for f in capture.sent() if socket.inet_aton("10.99.0.80") in f and b"/latest" in f], [])

    def test_through_the_explicit_proxy(self):
        box = self.sandbox(self.RULES, config=self.plain)
        with socket.socket() as s:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            s.bind(("127.0.0.1", 80))
            s.listen()
            s.settimeout(0.3)
            for url in ("http://127.0.0.1/", "http://[::1]/", "http://[::ffff:127.0.0.1]/", "http://0.0.0.0/", "http://10.99.0.80/",
                        "http://[64:ff9b::7f00:1]/", "http://169.254.169.254/"):
                with self.subTest(url=url):
                    host = url[7:-1]
                    out = self.py("s = socket.create_connection((gate(), PROXY_PORT), 5)\n"
                                  f"s.sendall(b'GET {url} HTTP/1.1\\r\\nHost: {host}\\r\\nConnection: close\\r\\n\\r\\n')\nprint(s.recv(100))", box)
                    self.assertIn(" 403 ", out)
            self.assertRaises(TimeoutError, s.accept)

    def test_a_network_of_ones_own_and_an_address(self):
        box = self.sandbox(policy("http://0.0.0.0/0", "http://10.99.0.64/26"), config=self.plain)
        self.assertIn("200", self.py("print(fetch('10.99.0.80', '/', port=80, plain=True)[0])", box))
        self.assertIn("403", self.py("print(fetch('10.99.0.1', '/', port=80, plain=True)[0])", box))

    def test_permit_is_read_the_same(self):
        """Addresses behind a name: a wide network under permit opens nothing either."""
        for permit, status in (("[0.0.0.0/0, '::/0']", "403"), ("[10.0.0.0/7]", "403"), ("[10.99.0.0/16]", "200")):
            config = support.LAB.write("widepermit.yaml", "\n".join(
                f"permit: {permit}" if line.startswith("permit:") else line for line in support.LAB.config().split("\n")))
            box = self.sandbox(policy("https://api.lab.test"), config=config)
            with self.subTest(permit=permit):
                self.assertIn(status, box.run("curl", "-sS4", "-o", "/dev/null", "-w", "%{http_code}", "https://api.lab.test/").out)


class Observe(Box):
    RULES = policy("{to: 'https://api.lab.test', methods: [GET], credential: api}", "http://loop.lab.test", deny=("{to: 'https://git.lab.test'}",),
                   more="mode: observe\n", credentials="PLACE")

    @classmethod
    def setUpClass(cls):
        cls.box = support.Sandbox(cls.RULES.replace("PLACE", support.file_credential()))

    def test_would_be_denials_pass_and_are_logged(self):
        self.assertIn("200", self.py("print(fetch('www.lab.test', '/observed', 'POST', body=b'', fields=('Content-Length: 0',))[0])"))
        event = self.box.event(HTTP, **{"http_request.url.path": "/observed"})
        self.assertEqual(event["action_id"], 3, event)

    def test_deny_rules_too(self):
        self.assertIn("200", self.py("print(fetch('git.lab.test', '/observed-deny')[0])"))

    def test_credential_stays_bound(self):
        self.py("fetch('www.lab.test', '/ob')\nfetch('api.lab.test', '/ob', 'DELETE')")
        self.assertEqual([h for r in self.seen("http", path="/ob", method="GET") for h in r["headers"] if h[0] == "Authorization"], [])
        for row in self.seen("http", path="/ob", method="DELETE"):
            self.assertIsNone(support.holds_secret(json.dumps(row)), "a denied request carried the credential")

    def test_floor_stays(self):
        for host in ("loop.lab.test", "meta.lab.test", "private.lab.test"):
            with self.subTest(host=host):
                out = json.loads(self.py(f"answered(*fetch('{host}', '/', port=80, plain=True))"))
                self.assertEqual(out["status"], 403)

    def test_names_that_do_not_agree_stay_refused(self):
        out = self.py("try:\n t = tls('api.lab.test'); t.sendall(request('GET', '/o', 'www.lab.test')); print(Reader(t).response()[0])\nexcept OSError: print('closed')")
        self.assertIn(out, ("403\n", "421\n", "closed\n"))

    def test_raw_packets_stay_dropped(self):
        with support.Capture() as capture:
            self.box.sh("ping -c1 -W1 10.99.0.80; ping -6 -c1 -W1 fd99::80; true")
        self.assertEqual([f for f in capture.sent() if f[23:24] == b"\x01" or f[20:21] == b"\x3a"], [])

    def test_option(self):
        box = self.sandbox(policy("https://api.lab.test"), options=["--observe"])
        self.assertIn("200", self.py("print(fetch('www.lab.test', '/by-option')[0])", box))


class Names(Box):
    """The responder answers by itself; nothing is forwarded before the policy allows the destination."""
    RULES = policy("https://api.lab.test", "https://*.wild.lab.test")

    def test_query_reaches_nobody(self):
        self.py("for n in ('evil.lab.test', 'x.evil.lab.test', 'www.lab.test', 'api.lab.test'): print(dns_query(n)[0])")
        self.assertEqual(self.seen("dns"), [])

    def test_denied_name_gets_an_address(self):
        out = self.py("r = dns_query('evil.lab.test'); print(r[0], socket.inet_ntoa(r[1][0]))")
        self.assertRegex(out, r"^0 198\.1[89]\.")

    def test_stable(self):
        out = self.py("print(len({dns_query('evil.lab.test')[1][0] for _ in range(10)}), len({dns_query(f'n{i}.lab.test')[1][0] for i in range(10)}))")
        self.assertEqual(out, "1 10\n")

    def test_many_at_once(self):
        """As when a program makes 150 requests at once: two queries each, within a fraction of a second."""
        out = self.py("""
from concurrent.futures import ThreadPoolExecutor
def one(i):
    try:
        return len(socket.getaddrinfo(f"m{i}.wild.lab.test", 443, type=socket.SOCK_STREAM))
    except OSError as e:
        return str(e)
print(set(ThreadPoolExecutor(16).map(one, range(150))))
""")
        self.assertEqual(out, "{2}\n")

    def test_other_types_have_no_data(self):
        out = self.py("print([dns_query('api.lab.test', t)[:2] for t in (2, 5, 6, 12, 15, 16, 33, 64, 65, 99, 257)])")
        self.assertEqual(out, str([(0, [])] * 11) + "\n")

    def test_hostile_queries(self):
        out = self.py("print([x and x[0] for x in (dns_query('api.lab.test', 252), dns_query('api.lab.test', 255), dns_query('x', 1, qclass=3), dns_query('a' * 63 + '.lab.test'), dns_query(b'\\xff\\x00\\x1b[31m.lab.test'), dns_query('.'.join(['a' * 60] * 4)), dns_query(''))])")
        self.assertEqual(self.seen("dns"), [], out)

    def test_over_tcp_and_any_server(self):
        out = self.py("print(dns_query('api.lab.test', tcp=True)[0], dns_query('api.lab.test', server='8.8.8.8')[0], dns_query('api.lab.test', server='2001:4860:4860::8888')[0], dns_query('api.lab.test', server='10.99.0.53', tcp=True)[0])")
        self.assertEqual(out, "0 0 0 0\n")
        self.assertEqual(self.seen("dns"), [])

    def test_resolved_only_when_allowed(self):
        self.py("fetch('api.lab.test', '/')\nfetch('evil.lab.test', '/')")
        names = {r["name"] for r in self.seen("dns")}
        self.assertIn("api.lab.test", names)
        self.assertNotIn("evil.lab.test", names)

    def test_denied_label_under_an_allowed_wildcard(self):
        """Data in labels of an allowed wildcard would be a tunnel: it is resolved only for a request, and noticed."""
        self.py("import binascii\nfor i in range(60): dns_query(binascii.hexlify(os.urandom(30)).decode() + '.wild.lab.test')")
        self.assertEqual(self.seen("dns"), [])

    def test_events(self):
        self.py("dns_query('events.lab.test', 28)")
        event = self.box.event(DNS, **{"query.hostname": "events.lab.test"})
        self.assertEqual((event["query"]["type"], event["action_id"]), ("AAAA", 2))

    def test_silent_resolver(self):
        config = support.LAB.write("silent.yaml", support.LAB.config("timeouts: {resolve: 1s}\n"))
        box = self.sandbox(policy("https://silent.lab.test"), config=config)
        began = time.monotonic()
        out = json.loads(self.py("answered(*fetch('silent.lab.test', '/'))", box))
        self.assertIn(out["status"], (502, 504))
        self.assertLess(time.monotonic() - began, 6 * support.SLOW)
