# SPDX-License-Identifier: Apache-2.0
"""The gateway by base URLs: what they mean, what is refused, what becomes of responses; and requests on kept connections."""
import hashlib
import http.client
import json
import os
import ssl
import time

import support
from gateway_case import GATEWAY4, TLS_PORT, Gatewayed, basic
from support import FINDING, HTTP, SECRET, SLOW, wait_until

NAME, OTHER = "openai.gateway.lab.test", "plain.gateway.lab.test"


class BaseCase(Gatewayed):
    rules = ("{to: 'https://api.lab.test', methods: [GET, HEAD, POST], credential: api}", "https://www.lab.test", "http://plain.lab.test",
             "https://api.lab.test:8443")
    options = f"  base_urls: {{{NAME}: 'https://api.lab.test', {OTHER}: 'http://plain.lab.test'}}\n"

    def base(self, url, token=None):
        scheme, _, rest = url.partition("://")
        return f"/s/{token or self.token}/{scheme}/{rest}"

    def request(self, url, *fields, method="GET", token=None, host="gateway.lab.test", body=b"", version="1.1", tls=False, **kw):
        """All that comes back to one request by a base URL."""
        lines = [f"{method} {self.base(url, token)} HTTP/{version}", f"Host: {host}", "Connection: close", *fields]
        return self.say(("\r\n".join(lines) + "\r\n\r\n").encode("latin-1") + body, tls=tls, **kw)

    def raw(self, target, *fields, method="GET", host="gateway.lab.test", **kw):
        lines = [f"{method} {target} HTTP/1.1", *([f"Host: {host}"] if host else []), *fields]
        return self.say(("\r\n".join(lines) + "\r\n\r\n").encode("latin-1"), **kw)

    @staticmethod
    def fields(answer):
        head = answer.partition(b"\r\n\r\n")[0].decode("latin-1")
        return {k.lower(): v for k, _, v in (line.partition(": ") for line in head.split("\r\n")[1:])}

    @staticmethod
    def code(answer):
        return int(answer[9:12]) if answer.startswith(b"HTTP/1.1 ") else answer

    def client(self, host=GATEWAY4):
        """A kept connection of Python's."""
        context = ssl.create_default_context(cafile=self.certificate + ".pem")
        c = http.client.HTTPSConnection(host, TLS_PORT, context=context, timeout=20 * SLOW)
        self.addCleanup(c.close)
        return c

    def assert_token_is_nowhere(self, *tokens):
        """In no file of the daemon, and nothing that the origins have seen."""
        self.daemon.stop()
        for root, _, names in os.walk(self.daemon.dir):
            for name in names:
                with open(os.path.join(root, name), "rb") as f:
                    data = f.read()
                for token in tokens:
                    self.assertNotIn(token.encode(), data, name)
        with open(support.LAB.path("seen.jsonl")) as f:
            data = f.read()
        for token in tokens:
            self.assertNotIn(token, data)


class Meaning(BaseCase):
    def test_by_path(self):
        answer = self.request("https://api.lab.test/whoami", tls=True)
        self.assertEqual(self.code(answer), 200, answer)
        self.assertIn(b'"authenticated": true', answer)
        self.assertNotIn(SECRET.encode(), answer)
        answer = self.request("http://plain.lab.test/x?y=/../z", "X-Is: here", "Referer: http://10.77.0.1/s/" + self.token)
        said = json.loads(answer.partition(b"\r\n\r\n")[2])
        self.assertEqual((said["path"], said["headers"]["Host"], said["headers"]["X-Is"]), ("/x?y=/../z", "plain.lab.test", "here"))
        self.assertNotIn("Referer", said["headers"])
        answer = self.request("https://api.lab.test:8443/port")
        self.assertIn(b'"path": "/port"', answer)
        event = self.daemon.event(HTTP, action_id=1, **{"http_request.url.path": "/whoami"})
        self.assertEqual((event["http_request"]["url"]["scheme"], event["dst_endpoint"]["hostname"]), ("https", "api.lab.test"), event)
        for url in ("https://evil.lab.test/", "http://api.lab.test/", "https://plain.lab.test/", "http://169.254.169.254/latest/",
                    "http://127.0.0.1/", "https://www.lab.test:8443/", "http://10.99.0.80/"):
            answer = self.request(url)
            self.assertEqual(self.code(answer), 403, (url, answer))
            self.assertEqual(self.fields(answer)["access-control-allow-origin"], "*", answer)
        self.assertEqual(self.code(self.request("https://api.lab.test/x", method="DELETE")), 403)
        self.assert_token_is_nowhere(self.token)

    def test_by_name(self):
        for field in (f"Authorization: Bearer {self.token}", f"Authorization: {basic(self.token)}", f"X-Api-Key: {self.token}",
                      f"X-Goog-Api-Key: {self.token}"):
            for host in (NAME, NAME.upper(), f"{NAME}:{TLS_PORT}"):
                answer = self.raw("/whoami", field, "Connection: close", host=host)
                self.assertIn(b'"authenticated": true', answer, field)
        answer = self.raw("/v1/x", f"X-Api-Key: {self.token}", "Connection: close", host=OTHER)
        said = json.loads(answer.partition(b"\r\n\r\n")[2])
        self.assertEqual((said["path"], said["headers"]["Host"]), ("/v1/x", "plain.lab.test"))
        self.assertNotIn("x-api-key", {k.lower() for k in said["headers"]})
        answer = self.raw("/v1/x", f"Authorization: Bearer {self.token}", "X-Api-Key: mine", "Connection: close", host=OTHER)
        self.assertIn(b'"X-Api-Key": "mine"', answer)
        self.assertNotIn(b"Authorization", answer)
        missing = self.raw("/v1/x", host=NAME)
        self.assertEqual(self.code(missing), 401, missing)
        self.assertEqual(self.fields(missing)["www-authenticate"], 'Bearer realm="vethguard"')
        for fields in ((f"Proxy-Authorization: Bearer {self.token}",), ("Authorization: Bearer wrong", f"X-Api-Key: {self.token}"),
                       ("X-Api-Key: wrong",), ("Authorization: Digest x",), ("X-Api-Key:",), (f"Cookie: token={self.token}",)):
            self.assertEqual(self.raw("/v1/x", *fields, host=NAME), missing, fields)
        for target, fields in ((f"/s/{self.token}/https/api.lab.test/whoami", (f"X-Api-Key: {self.token}",)),
                               (f"/v1?key={self.token}", (f"X-Api-Key: {self.token}",)),
                               ("/v1", (f"X-Api-Key: {self.token}", f"X-Api-Key: {self.token}")),
                               ("/v1", (f"X-Api-Key: {self.token}", f"X-Copy: {self.token}")),
                               ("/v1", (f"Authorization: Bearer {self.token}", f"X-Api-Key: {self.token}")),
                               ("/../v1", (f"X-Api-Key: {self.token}",)), ("/%2e%2e/v1", (f"X-Api-Key: {self.token}",))):
            self.assertEqual(self.code(self.raw(target, *fields, host=NAME)), 400, target)
        self.assert_token_is_nowhere(self.token)

    def test_what_is_refused(self):
        t = self.token
        for target in ("/", "/s", "/s/", f"/s/{t}", f"/s/{t}/", f"/s/{t}/https", f"/s/{t}/https/api.lab.test", f"/s/{t}/https//whoami",
                       f"//s/{t}/https/api.lab.test/", f"/S/{t}/https/api.lab.test/", f"/s%2f{t}/https/api.lab.test/",
                       f"/s/{t}%2fhttps/api.lab.test/", f"/s/{t}/https%2fapi.lab.test/", f"/s/{t}/https:/api.lab.test/",
                       f"/s/{t}/https://api.lab.test/", f"/s/{t}/HTTPS/api.lab.test/", f"/s/{t}/ftp/api.lab.test/",
                       f"/s/{t}/wss/api.lab.test/", f"/s/{t}/tcp/udp.lab.test:1234/", f"/s/{t}/file/etc/passwd",
                       f"/s/{t}/https/u@api.lab.test/", f"/s/{t}/https/evil.lab.test%2fapi.lab.test/",
                       f"/s/{t}/https/evil.lab.test%40api.lab.test/", f"/s/{t}/https/api.lab.test:0/", f"/s/{t}/https/api.lab.test:00443/",
                       f"/s/{t}/https/api.lab.test:65536/", f"/s/{t}/https/api.lab.test:x/", f"/s/{t}/https/api.lab.test:/",
                       f"/s/{t}/https/[::1]/", f"/s/{t}/https/api.lab.test/../evil.lab.test/", f"/s/{t}/https/api.lab.test/..%2fevil/",
                       f"/s/{t}/https/api.lab.test/%2e%2e/x", f"/s/{t}/https/api.lab.test/x/./y", f"/s/{t}/https/api.lab.test/..;/x",
                       f"/s/{t}/https/api.lab.test/x%5c..%5cy", f"/s/{t}/https/api.lab.test/x#y", f"/s/{t};x/https/api.lab.test/",
                       f"/s/../s/{t}/https/api.lab.test/", f"/https/api.lab.test/s/{t}/", f"/s/https/{t}/api.lab.test/",
                       f"/s/{t}/https/api.lab.test/?token={t}", f"/s/{t}/https/api.lab.test/{t}"):
            answer = self.raw(target)
            self.assertEqual(self.code(answer), 400, (target, answer))
            self.assertNotIn(t.encode(), answer)
        for fields in ((f"X-Copy: {t}",), (f"Authorization: Bearer {t}",), (f"Cookie: a={t}",), (f"Origin: http://{t}",)):
            self.assertEqual(self.code(self.request("http://plain.lab.test/second", *fields)), 400, fields)
        self.assertEqual(self.code(self.raw(self.base("http://plain.lab.test/"), host="")), 400)
        self.assertEqual(self.code(self.raw(self.base("http://plain.lab.test/"), "Host: two")), 400)
        for fields, code in ((("Content-Length: 1", "Content-Length: 1"), 400), (("Content-Length: 1", "Transfer-Encoding: chunked"), 400),
                             (("Transfer-Encoding: gzip, chunked",), 501), (("Content-Length: -1",), 400), (("X : y",), 400)):
            self.assertEqual(self.code(self.request("http://plain.lab.test/", *fields, method="POST")), code, fields)
        for target in ("https://api.lab.test/whoami", "https://gateway.lab.test" + self.base("https://api.lab.test/"), "*"):
            self.assertEqual(self.code(self.raw(target, f"Proxy-Authorization: Bearer {t}")), 400, target)
        self.assertEqual(self.daemon.events(HTTP), [])  # the worker was never asked
        self.assert_token_is_nowhere(t)

    def test_host_lies(self):
        """The path says where a request goes, whatever Host says; and a lie never reaches an origin."""
        for host in ("evil.lab.test", "api.lab.test", "127.0.0.1:1", "x", "a/b", "gateway.lab.test:1"):
            answer = self.request("http://plain.lab.test/lie", host=host)
            self.assertEqual(json.loads(answer.partition(b"\r\n\r\n")[2])["headers"]["Host"], "plain.lab.test")

    def test_one_answer(self):
        """Every wrong token gets the same bytes, and never sooner than the others."""
        revoked = self.create("revoked")["token"]
        self.assertEqual(self.daemon.call("DELETE", "/v1/sessions/revoked")[0], 200)
        foreign = self.create("foreign", **{"from": ["192.0.2.0/24"]})["token"]
        answers = set()
        for token in ("x", "vgs_" + "A" * 43, revoked, foreign, self.token[:-1], self.token + "x", self.token.swapcase(), "x" * 4096):
            at = time.monotonic()
            answers.add(self.request("https://api.lab.test/whoami", token=token, host="g"))
            self.assertGreaterEqual(time.monotonic() - at, 0.24, token)
        self.assertEqual(len(answers), 1, answers)
        answer = answers.pop()
        self.assertEqual(self.code(answer), 401, answer)
        self.assertEqual(self.fields(answer)["cross-origin-resource-policy"], "cross-origin")
        for _ in range(4):
            self.request("https://api.lab.test/", token="wrong")
        self.assertEqual(self.daemon.event(FINDING, seconds=10)["finding_info"]["types"], ["guessed-tokens"])


class Responses(BaseCase):
    def test_redirects(self):
        """Followed by a client that knows nothing of it: within the host, to another one, and to where the policy ends."""
        for path, leads in (("redirect-www", "../https/www.lab.test/away"), ("redirect-port", "../https/api.lab.test:8443/port"),
                            ("redirect", "../https/evil.lab.test/steal"), ("redirect-plain", "../http/api.lab.test/plain")):
            self.assertEqual(self.fields(self.request(f"https://api.lab.test/{path}"))["location"], "../" + leads, path)
        for path, said in (("redirect-www", '"path": "/away"'), ("redirect-port", '"path": "/port"')):
            r = self.there("curl", "-sSL", "-m", str(20 * SLOW), "--cacert", self.certificate + ".pem", f"https://{GATEWAY4}:{TLS_PORT}"
                           + self.base(f"https://api.lab.test/{path}"))
            self.assertIn(said, r.stdout, r)
        for path in ("redirect", "redirect-plain"):
            r = self.there("curl", "-sSL", "-m", str(20 * SLOW), "-o", "/dev/null", "-w", "%{http_code}", "--cacert", self.certificate + ".pem",
                           f"https://{GATEWAY4}:{TLS_PORT}" + self.base(f"https://api.lab.test/{path}"))
            self.assertEqual(r.stdout, "403", r)
        answer = self.raw("/redirect-www", f"X-Api-Key: {self.token}", "Connection: close", host=NAME)
        self.assertEqual(self.fields(answer)["location"], "https://www.lab.test/away")
        answer = self.request("https://api.lab.test/reflect-cookie")
        self.assertNotIn(SECRET.encode(), answer)
        self.assertTrue(self.fields(answer)["location"].startswith("./x?key="), answer)

    def test_cross_origin(self):
        asks = ("Origin: http://page.lab.test", "Access-Control-Request-Method: POST", "Access-Control-Request-Headers: authorization, x-a")
        for answer in (self.request("https://api.lab.test/v1", *asks, method="OPTIONS"), self.raw("/v1", *asks, method="OPTIONS", host=NAME)):
            fields = self.fields(answer)
            self.assertEqual((self.code(answer), fields["access-control-allow-origin"], fields["access-control-allow-methods"],
                              fields["access-control-allow-headers"]), (204, "*", "POST", "authorization, x-a"), answer)
        wrong = self.request("https://api.lab.test/v1", *asks, method="OPTIONS", token="wrong")
        self.assertEqual(self.code(wrong), 401)
        for bad in ("a\tb", "a:b", "a;b", "x" * 3000, '"a"'):
            answer = self.request("https://api.lab.test/v1", *asks[:2], f"Access-Control-Request-Headers: {bad}", method="OPTIONS")
            self.assertEqual(self.code(answer), 400, bad)
        for bad in ("PO ST", "P/", "X" * 100):
            answer = self.request("https://api.lab.test/v1", asks[0], f"Access-Control-Request-Method: {bad}", method="OPTIONS")
            self.assertIn(self.code(answer), (400, 403), bad)
        answer = self.request("http://plain.lab.test/v1", method="OPTIONS")  # no preflight: for the upstream
        self.assertIn(b'"method": "OPTIONS"', answer)
        fields = self.fields(self.request("https://api.lab.test/whoami", asks[0]))
        self.assertEqual((fields["access-control-allow-origin"], fields["cross-origin-resource-policy"], fields["content-security-policy"],
                          fields["referrer-policy"]), ("*", "cross-origin", "sandbox", "no-referrer"))

    def test_events(self):
        """Each event comes when it was sent, not at the end."""
        name = f"base-{time.monotonic_ns()}"
        c = self.client()
        c.request("GET", self.base(f"https://api.lab.test/events?{name}"))
        answer = c.getresponse()
        self.assertEqual(answer.headers["content-type"], "text/event-stream")
        for i in range(5):
            self.assertEqual(answer.readline() + answer.readline(), b"data: %d\n\n" % i)
            support.LAB.write(f"{name}.{i}", "")
        self.assertEqual(answer.read(), b"")

    def test_websocket(self):
        for url in ("http://plain.lab.test/ws", "https://www.lab.test/ws"):
            s = self.connect()
            s.sendall(f"GET {self.base(url)} HTTP/1.1\r\nHost: g\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n"
                      "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n".encode())
            self.assertTrue(self.head(s).startswith(b"HTTP/1.1 101"))
            s.sendall(b"\x81\x85\0\0\0\0hello")
            self.assertEqual(s.recv(7), b"\x81\x05hello")
            s.close()
        s = self.connect(False)  # refused: the connection ends, and the following bytes are not a request
        ask = f"GET {self.base('https://evil.lab.test/ws')} HTTP/1.1\r\nHost: g\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n" \
              "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
        s.sendall(ask.encode() + f"GET {self.base('http://plain.lab.test/behind')} HTTP/1.1\r\nHost: g\r\n\r\n".encode())
        answer = self.rest(s)
        self.assertEqual((self.code(answer), b"behind" in answer), (403, False), answer)
        self.assert_token_is_nowhere(self.token)

    def test_uploads(self):
        data = os.urandom(5 << 20)
        digest = hashlib.sha256(data).hexdigest()
        c = self.client()
        for i in range(2):
            c.request("PUT", self.base("http://plain.lab.test/up"), data)
            said = json.loads(c.getresponse().read())
            self.assertEqual((said["body"], said["sha256"]), (len(data), digest))
            c.request("PUT", self.base("http://plain.lab.test/up"), iter([data[:70000], data[70000:]]), encode_chunked=True,
                      headers={"Transfer-Encoding": "chunked"})
            said = json.loads(c.getresponse().read())
            self.assertEqual((said["body"], said["sha256"]), (len(data), digest), i)
        c.request("GET", self.base(f"http://plain.lab.test/bytes/{len(data)}"))
        self.assertEqual(len(c.getresponse().read()), len(data))


class Kept(BaseCase):
    """Each request of a kept connection proves itself."""

    def ask_on(self, s, target, *fields, method="GET", host="plain.lab.test", body=b""):
        s.sendall(("\r\n".join([f"{method} {target} HTTP/1.1", f"Host: {host}", *fields]) + "\r\n\r\n").encode() + body)

    def read(self, s):
        """One response of a kept connection: code and body."""
        head = self.head(s)
        self.assertTrue(head, "the connection has ended")
        fields, body = self.fields(head), b""
        n = int(fields.get("content-length", "0"))
        while len(body) < n:
            body += s.recv(n - len(body))
        return self.code(head), body, fields

    def test_many(self):
        proof = f"Proxy-Authorization: Bearer {self.token}"
        for tls in (False, True):
            s = self.connect(tls)
            for i in range(50):
                self.ask_on(s, f"http://plain.lab.test/{i}", proof)
                code, body, fields = self.read(s)
                self.assertEqual((code, json.loads(body)["path"]), (200, f"/{i}"))
                self.assertNotIn("connection", fields)
            self.ask_on(s, "http://plain.lab.test/p", proof, "Content-Length: 5", method="POST", body=b"GET /")
            self.assertEqual(json.loads(self.read(s)[1])["body"], 5)
            self.ask_on(s, "http://plain.lab.test/c", proof, "Transfer-Encoding: chunked", method="POST",
                        body=b"3\r\nabc\r\n0\r\nX: y\r\n\r\n")
            self.assertEqual(json.loads(self.read(s)[1])["body"], 3)
            self.ask_on(s, "http://plain.lab.test/last", proof, "Connection: close")
            self.assertIn(b'"/last"', self.rest(s))
        c = self.client()
        for i in range(20):
            for url in ("https://api.lab.test/whoami", f"http://plain.lab.test/{i}", "https://evil.lab.test/"):
                c.request("GET", self.base(url))
                answer = c.getresponse()
                self.assertEqual(answer.status, 403 if "evil" in url else 200)
                answer.read()
        self.assertTrue(wait_until(lambda: len([e for e in self.daemon.events(HTTP) if e["dst_endpoint"]["hostname"] == "api.lab.test"]) == 20))

    def test_pipelined(self):
        """Split anywhere, or all at once: each head is found where it begins."""
        proof = f"Proxy-Authorization: Bearer {self.token}\r\n"
        one = f"POST http://plain.lab.test/%d HTTP/1.1\r\nHost: plain.lab.test\r\n{proof}Transfer-Encoding: chunked\r\n\r\n" \
              "1a\r\nGET /s/x HTTP/1.1\r\n\r\n0\r\n\r\n\r\n0\r\n\r\n"
        data = "".join(one % i for i in range(40)).encode()
        for step in (len(data), 1000, 7):
            s = self.connect(False)
            for at in range(0, len(data), step):
                s.sendall(data[at:at + step])
            for i in range(40):
                code, body, _ = self.read(s)
                self.assertEqual((code, json.loads(body)["path"], json.loads(body)["body"]), (200, f"/{i}", 26))

    def test_another_proof(self):
        """A proof of another session leads to that session's worker; a wrong one, none or no request ends the connection, behind
        the answers that were due."""
        other = self.create("two")["token"]
        s = self.connect(False)
        for i in range(6):
            self.ask_on(s, f"http://plain.lab.test/{i}", f"Proxy-Authorization: Bearer {(self.token, other)[i % 2]}")
            self.assertEqual(self.read(s)[0], 200)
        for sandbox, paths in (("one", ["/0", "/2", "/4"]), ("two", ["/1", "/3", "/5"])):
            self.assertTrue(wait_until(lambda: [e["http_request"]["url"]["path"] for e in self.daemon.events(HTTP)
                                                if f'"{sandbox}"' in json.dumps(e)] == paths, 10 * SLOW), self.daemon.events(HTTP)[:1])
        self.ask_on(s, self.base("https://api.lab.test/whoami"), host="g")  # another form
        self.assertIn(b"true", self.read(s)[1])
        self.ask_on(s, "plain.lab.test:80", f"Proxy-Authorization: Bearer {other}", method="CONNECT")
        self.assertTrue(self.head(s).startswith(b"HTTP/1.1 200"))
        for bad, code in (("GET http://plain.lab.test/bad HTTP/1.1\r\nHost: plain.lab.test\r\n\r\n", 407),
                          ("GET http://plain.lab.test/bad HTTP/1.1\r\nProxy-Authorization: Bearer wrong\r\n\r\n", 407),
                          ("GET /s/wrong/http/plain.lab.test/bad HTTP/1.1\r\nHost: g\r\n\r\n", 401),
                          ("GET /bad HTTP/1.1\r\nHost: g\r\n\r\n", 400), ("\x16\x03\x01", 400), ("G@T bad\r\n\r\n", 400),
                          ("\r\nGET http://plain.lab.test/bad HTTP/1.1\r\n\r\n", 400)):
            s = self.connect(False)
            self.ask_on(s, "http://plain.lab.test/slow?0.3", f"Proxy-Authorization: Bearer {self.token}")
            s.sendall(bad.encode("latin-1"))
            answer = self.rest(s)
            first, _, second = answer.partition(b"at last")
            self.assertEqual((self.code(first), self.code(second)), (200, code), (bad, answer))
            self.assertNotIn(b'"/bad"', answer)

    def test_revoked_meanwhile(self):
        """A kept connection ends with its session; another session's request on it goes on to be served."""
        other = self.create("two")["token"]
        s, theirs = self.connect(False), self.connect(False)
        for c in (s, theirs):
            self.ask_on(c, "http://plain.lab.test/x", f"Proxy-Authorization: Bearer {self.token if c is s else other}")
            self.assertEqual(self.read(c)[0], 200)
        self.assertEqual(self.daemon.call("DELETE", "/v1/sessions/one")[0], 200)
        self.assertEqual(self.rest(s), b"")
        self.ask_on(theirs, "http://plain.lab.test/y", f"Proxy-Authorization: Bearer {self.token}")
        self.assertEqual(self.code(self.rest(theirs)), 407)

    def test_bodies_that_lie(self):
        """A body that two readers could end at different places ends the connection; nothing behind it is a request."""
        for body in (b"5;x=y\r\nabcde\r\n0\r\n\r\n", b"5\nabcde\r\n0\r\n\r\n", b"0x5\r\nabcde\r\n0\r\n\r\n", b"5\r\nabcdefg\r\n0\r\n\r\n",
                     b"5 \r\nabcde\r\n0\r\n\r\n", b"0\r\nX: y\n\r\n", b"-1\r\n", b"fffffffffffffffff\r\n"):
            s = self.connect(False)
            hidden = f"GET http://plain.lab.test/hidden HTTP/1.1\r\nHost: plain.lab.test\r\nProxy-Authorization: Bearer {self.token}\r\n\r\n"
            self.ask_on(s, "http://plain.lab.test/lies", f"Proxy-Authorization: Bearer {self.token}", "Transfer-Encoding: chunked",
                        method="POST", body=body + hidden.encode())
            self.assertNotIn(b'"/hidden"', self.rest(s), body)

    def test_idle(self):
        """Connections that are kept and idle hold nothing that a new one needs."""
        kept = []
        for i in range(100):
            s = self.connect(False)
            self.ask_on(s, f"http://plain.lab.test/{i}", f"Proxy-Authorization: Bearer {self.token}")
            self.assertEqual(self.read(s)[0], 200)
            kept.append(s)
        for s in kept:
            self.ask_on(s, "http://plain.lab.test/again", f"Proxy-Authorization: Bearer {self.token}")
            self.assertEqual(self.read(s)[0], 200)
