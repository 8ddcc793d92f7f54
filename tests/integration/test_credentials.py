# SPDX-License-Identifier: Apache-2.0
"""Credentials: attached where they belong, never anywhere else, never seen inside or in any record."""
import base64
import hashlib
import io
import json
import os
import random
import subprocess
import tarfile
import time

import support
from support import FINDING, HTTP, SECRET, SLOW, VETHGUARD, descendants, file_credential, holds_secret, policy

API = "{to: 'https://api.lab.test', credential: api}"
RULES = (API, "https://www.lab.test", "http://plain.lab.test",
         "{to: 'https://api.lab.test:8443', methods: [GET]}", "http://api.lab.test")


class Box(support.Boxed):
    @classmethod
    def make_box(cls):
        return support.Sandbox(policy(*RULES, credentials=file_credential()))

    def tearDown(self):
        super().tearDown()
        self.assert_processes_clean(self.box)

    def assert_processes_clean(self, box):
        """Neither environment nor command line of any process of the run holds it, inside or outside."""
        for pid in [box.process.pid, *descendants(box.process.pid)]:
            for name in ("environ", "cmdline"):
                try:
                    with open(f"/proc/{pid}/{name}", "rb") as f:
                        self.assertIsNone(holds_secret(f.read()), f"/proc/{pid}/{name}")
                except (FileNotFoundError, ProcessLookupError):
                    pass

    def py(self, code, box=None, **kw):
        done = (box or self.box).py(code, **kw)
        self.assertEqual(done.status, 0, done)
        self.assert_no_secret(done.out_bytes)
        return done.out

    def authorizations(self, **fields):
        """The Authorization fields that reached the outside."""
        return [h[1] for r in self.seen("http", **fields) for h in r["headers"] if h[0].lower() == "authorization"]


class Injected(Box):
    def test_bearer(self):
        out = self.py("print(fetch('api.lab.test', '/whoami')[2].decode())")
        self.assertTrue(json.loads(out)["authenticated"])
        event = self.box.event(HTTP, **{"http_request.url.path": "/whoami"})
        self.assertEqual(event["unmapped"]["credential"], "api")

    def test_per_request(self):
        self.py("s = tls('api.lab.test'); r = Reader(s)\nfor i in range(5): s.sendall(request('GET', '/each', 'api.lab.test')); r.response()")
        self.assertEqual(self.authorizations(path="/each"), ["Bearer " + SECRET] * 5)

    def test_own_authorization_is_replaced(self):
        self.py("fetch('api.lab.test', '/own', fields=('Authorization: Bearer mine', 'AUTHORIZATION: Basic eDp5', 'authorization: z'))")
        self.assertEqual(self.authorizations(path="/own"), ["Bearer " + SECRET])

    def test_own_authorization_in_trailers(self):
        self.py("s = tls('api.lab.test'); s.sendall(request('POST', '/trail', 'api.lab.test', 'Transfer-Encoding: chunked', 'Trailer: Authorization', body=b'1\\r\\nx\\r\\n0\\r\\nAuthorization: Bearer mine\\r\\n\\r\\n')); print(Reader(s).response()[0])")
        self.assertEqual(self.authorizations(path="/trail"), ["Bearer " + SECRET])

    def test_connection_cannot_name_it(self):
        """Connection: authorization would make a naive proxy drop the field it was given."""
        self.py("fetch('api.lab.test', '/conn', fields=('Connection: authorization, close',))")
        self.assertEqual(self.authorizations(path="/conn"), ["Bearer " + SECRET])

    def test_basic_with_user(self):
        box = self.sandbox(policy(RULES[0], credentials=file_credential(rest="inject: basic, username: robot")))
        self.py("fetch('api.lab.test', '/basic')", box)
        self.assertEqual(self.authorizations(path="/basic"), ["Basic " + base64.b64encode(b"robot:" + SECRET.encode()).decode()])

    def test_header_with_prefix(self):
        box = self.sandbox(policy(RULES[0], credentials=file_credential(rest="inject: header, header: x-api-key, prefix: 'key='")))
        self.py("fetch('api.lab.test', '/header', fields=('X-Api-Key: mine', 'Authorization: Bearer other'))", box)
        headers = self.seen("http", path="/header")[0]["headers"]
        self.assertEqual([h[1] for h in headers if h[0].lower() == "x-api-key"], ["key=" + SECRET])

    HEADERS = "inject: header, username: robot, headers: {X-Api-Key: '${value}', X-User: '${username}', Authorization: 'Key u=${username}, k=\"${value}\"'}"

    def fields(self, path, *names):
        return [[v for n, v in self.seen("http", path=path)[0]["headers"] if n.lower() == name] for name in names]

    def test_several_headers(self):
        box = self.sandbox(policy(RULES[0], credentials=file_credential(rest=self.HEADERS + ", env: API_KEY")))
        self.py("import os\nk = os.environ['API_KEY']\n"
                "fetch('api.lab.test', '/headers', fields=('X-Api-Key: mine', 'x_api_key: 2', 'X-User: root', 'Authorization: Bearer ' + k, 'authorization: x', 'Connection: x-api-key, x-user'))", box)
        self.assertEqual(self.fields("/headers", "x-api-key", "x-user", "authorization", "x_api_key"),
                         [[SECRET], ["robot"], [f'Key u=robot, k="{SECRET}"'], []])
        self.assertNotIn(["placeholder-leak"], [e["finding_info"]["types"] for e in box.events(FINDING)])

    def test_several_headers_over_http2(self):
        box = self.sandbox(policy(RULES[0], credentials=file_credential(rest=self.HEADERS)))
        done = box.sh("curl -sS --http2 -H 'X-User: root' -T /etc/hostname https://api.lab.test/h2headers")
        self.assert_no_secret(done.out_bytes)
        self.assertEqual(self.fields("/h2headers", "x-api-key", "x-user"), [[SECRET], ["robot"]])

    def test_several_headers_in_trailers(self):
        box = self.sandbox(policy(RULES[0], credentials=file_credential(rest=self.HEADERS)))
        self.py("s = tls('api.lab.test'); s.sendall(request('POST', '/trailed', 'api.lab.test', 'Transfer-Encoding: chunked', body=b'1\\r\\nx\\r\\n0\\r\\nX-User: root\\r\\nX-Other: 1\\r\\n\\r\\n')); print(Reader(s).response()[0])", box)
        self.assertEqual(self.fields("/trailed", "x-user"), [["robot"]])

    def test_several_headers_and_no_other_key(self):
        box = self.sandbox(policy(RULES[0], credentials=file_credential(rest=self.HEADERS + ", require: true")))
        for field, status in (("X-Api-Key: mine", 200), ("X-Vault-Token: mine", 403), ("X-Other-Api-Key: mine", 403)):
            self.assertEqual(self.py(f"print(fetch('api.lab.test', '/required', fields=({field!r},))[0])", box).strip(), str(status))

    def cookies(self, path):
        return [[v for n, v in r["headers"] if n.lower() == "cookie"] for r in self.seen("http", path=path)]

    def test_cookie(self):
        box = self.sandbox(policy(RULES[0], credentials=file_credential(rest="inject: cookie, cookie: session")))
        self.py("fetch('api.lab.test', '/one', fields=('Cookie: theme=dark; session=mine; lang=de', 'Cookie: SESSION=2;a=b', 'Authorization: Bearer other'))\n"
                "fetch('api.lab.test', '/two')\n"
                "fetch('api.lab.test', '/three', fields=('Cookie: session=a; sess%69on=b; session =c; ;;', 'X-Session: 1'))", box)
        self.assertEqual(self.cookies("/one"), [[f"session={SECRET}; theme=dark; lang=de; a=b"]])
        self.assertEqual(self.cookies("/two"), [["session=" + SECRET]])
        self.assertEqual(self.cookies("/three"), [["session=" + SECRET]])

    def test_cookie_over_http2(self):
        """A client of HTTP/2 may send each cookie as a field of its own (RFC 9113 section 8.2.3)."""
        box = self.sandbox(policy(RULES[0], credentials=file_credential(rest="inject: cookie, cookie: session, env: SESSION")))
        r = box.sh("curl -sS --http2 -H 'Cookie: a=b' -H 'Cookie: session='$SESSION -H 'Cookie: c=d' https://api.lab.test/h2cookie")
        self.assertEqual(r.status, 0, r)
        self.assertEqual(self.cookies("/h2cookie"), [[f"session={SECRET}; a=b; c=d"]])
        self.assertNotIn(["placeholder-leak"], [e["finding_info"]["types"] for e in box.events(FINDING)])

    def test_cookie_with_a_placeholder_elsewhere(self):
        box = self.sandbox(policy(RULES[0], credentials=file_credential(rest="inject: cookie, cookie: session, env: SESSION")))
        box.sh("curl -sS -o /dev/null -H 'Cookie: other='$SESSION https://api.lab.test/elsewhere")
        self.assertIn(["placeholder-leak"], [e["finding_info"]["types"] for e in box.events(FINDING)])
        self.assertEqual(len(self.cookies("/elsewhere")), 1)
        self.assertIn("session=" + SECRET, self.cookies("/elsewhere")[0][0])

    def test_cookie_that_has_no_room_is_not_left_out(self):
        """If credential and cookies together are too long, the request does not leave without the credential."""
        box = self.sandbox(policy(RULES[0], credentials=file_credential(rest="inject: cookie, cookie: session")))
        for n, status in ((15000, "200"), (16384, "503")):
            r = box.sh(f"curl -sS -o /dev/null -w '%{{http_code}}' -H Cookie:\\ a=$(printf %0{n}d 0) https://api.lab.test/large{n}")
            self.assertEqual(r.out, status, r)
        self.assertEqual([c[0].startswith("session=" + SECRET) for c in self.cookies("/large15000")], [True])
        self.assertEqual(self.cookies("/large16384"), [])

    def test_cookie_masked_where_it_comes_back(self):
        box = self.sandbox(policy(RULES[0], credentials=file_credential(rest="inject: cookie, cookie: session")))
        r = box.sh("curl -sS -i https://api.lab.test/echo")
        self.assertIn("200", r.out)
        self.assert_no_secret(r.out_bytes)

    def test_query(self):
        box = self.sandbox(policy(RULES[0], credentials=file_credential(rest="inject: query, query: key")))
        self.py("fetch('api.lab.test', '/query?a=1&key=mine&b=2&KEY=3')\nfetch('api.lab.test', '/query2')", box)
        paths = [r["path"] for r in self.seen("http")]
        self.assertIn("key=" + SECRET, paths[0])
        self.assertNotIn("key=mine", paths[0])
        self.assertIn("a=1", paths[0])
        self.assertEqual(paths[1], "/query2?key=" + SECRET)

    def test_query_of_the_sandbox_encoded(self):
        """An escaped spelling of the parameter would be read before or after ours, as the origin likes."""
        box = self.sandbox(policy(RULES[0], credentials=file_credential(rest="inject: query, query: key")))
        self.py("fetch('api.lab.test', '/query?%6bey=mine&k%65y=mine2')", box)
        path = self.seen("http")[0]["path"]
        self.assertNotIn("mine", path)

    def test_most_specific_rule_names_it(self):
        other = support.LAB.write("other-secret", "other-credential-value-123456\n", 0o600)
        box = self.sandbox(policy("{to: 'https://api.lab.test', credential: api}",
                                  "{to: 'https://api.lab.test', paths: [/special/**], credential: other}",
                                  credentials=file_credential() + file_credential("other", "inject: bearer", other)))
        self.py("fetch('api.lab.test', '/special/x')\nfetch('api.lab.test', '/general')", box)
        self.assertEqual(self.authorizations(path="/special/x"), ["Bearer other-credential-value-123456"])
        self.assertEqual(self.authorizations(path="/general"), ["Bearer " + SECRET])

    def test_source_overridden_at_the_include(self):
        """The included file's own source is a variable that nobody has: the value is that of the file named where it is included."""
        support.LAB.write("team.yaml", policy("{to: 'https://api.lab.test', credential: api}",
                                              credentials="  api: {source: 'env:NOT_SET', inject: bearer, env: API_KEY}\n"))
        box = self.sandbox("vethguard: 1\nname: lab\ninclude: [{file: team.yaml, credentials: {api: {source: 'file:secret'}}}]\n")
        self.py("fetch('api.lab.test', '/overridden')", box)
        self.assertEqual(self.authorizations(path="/overridden"), ["Bearer " + SECRET])

    def test_pool_is_not_shared_between_credentials(self):
        """With and without a credential to one host: different upstream connections, right fields on each."""
        box = self.sandbox(policy("{to: 'https://api.lab.test', paths: [/with/**], credential: api}",
                                  "{to: 'https://api.lab.test', paths: [/without/**]}", credentials=file_credential()))
        self.py("s = tls('api.lab.test'); r = Reader(s)\nfor i in range(6): s.sendall(request('GET', ['/with/x', '/without/x'][i % 2], 'api.lab.test')); r.response()", box)
        self.assertEqual(self.authorizations(path="/with/x"), ["Bearer " + SECRET] * 3)
        self.assertEqual(self.authorizations(path="/without/x"), [])


class NotElsewhere(Box):
    """Whatever the client does, the credential goes to https://api.lab.test:443 and nowhere else."""

    def tearDown(self):
        for row in self.seen("http"):
            if holds_secret(json.dumps(row)):
                self.assertIn(["Host", "api.lab.test"], row["headers"])
                self.assertTrue(row["tls"] and row["port"] == 443, row)
        for row in self.seen("evil") + self.seen("tcp") + self.seen("udp"):
            self.assertIsNone(holds_secret(bytes.fromhex(row["data"])))
        super().tearDown()

    def test_other_allowed_host(self):
        self.py("fetch('www.lab.test', '/www')")
        self.assertEqual((len(self.seen("http", path="/www")), self.authorizations()), (1, []))

    def test_plain_http(self):
        self.py("fetch('api.lab.test', '/plain', port=80, plain=True)")
        self.assertEqual((len(self.seen("http", path="/plain")), self.authorizations()), (1, []))

    def test_other_port(self):
        out = self.py("print(fetch('api.lab.test', '/port', port=8443)[0])")
        self.assertEqual((out, len(self.seen("http", path="/port")), self.authorizations()), ("200\n", 1, []))

    def test_plain_http_on_443(self):
        self.py("s = connect('api.lab.test', 443); s.sendall(request('GET', '/p443', 'api.lab.test')); s.settimeout(1); print(read_all(s)[:50])")
        self.assertEqual(self.authorizations(), [])

    def test_tls_on_80(self):
        self.py("try:\n t = tls('api.lab.test', 80); t.sendall(request('GET', '/t80', 'api.lab.test:80')); print(Reader(t).response()[0])\nexcept (OSError, EOFError): pass")
        self.assertEqual(self.authorizations(), [])

    def test_redirect_to_a_denied_host(self):
        done = self.box.run("curl", "-sSL", "https://api.lab.test/redirect")
        self.assertIn("403", done.out)
        self.assertEqual(self.seen("evil"), [])

    def test_redirects_to_allowed_places(self):
        for path in ("/redirect-plain", "/redirect-port", "/redirect-www"):
            done = self.box.run("curl", "-sSL", "--location-trusted", "-H", "Authorization: Bearer mine", "https://api.lab.test" + path)
            self.assertEqual(done.status, 0, done)
            self.assert_no_secret(done.out)
        self.assertEqual(len([r for r in self.seen("http") if r["path"] in ("/plain", "/port", "/away")]), 3)

    def test_host_is_not_sni(self):
        self.py("try:\n t = tls('www.lab.test'); t.sendall(request('GET', '/x', 'api.lab.test')); print(Reader(t).response()[0])\nexcept OSError: pass")
        self.assertEqual(self.seen("http"), [])

    def test_sni_is_not_the_dialled_name(self):
        self.py("try:\n t = tls('www.lab.test', sni='api.lab.test', verify=False); t.sendall(request('GET', '/x', 'api.lab.test')); print(Reader(t).response()[0])\nexcept (OSError, EOFError): pass")
        self.assertEqual(self.seen("http"), [])

    def test_no_sni_and_host_of_it(self):
        self.py("try:\n t = tls('www.lab.test', sni='', verify=False); t.sendall(request('GET', '/x', 'api.lab.test')); print(Reader(t).response()[0])\nexcept (OSError, EOFError): pass")
        self.assertEqual(self.seen("http"), [])

    def test_absolute_target(self):
        self.py("t = tls('www.lab.test'); t.sendall(b'GET https://api.lab.test/x HTTP/1.1\\r\\nHost: www.lab.test\\r\\n\\r\\n'); print(Reader(t).response()[0])")
        self.assertEqual(self.authorizations(), [])

    def test_forged_answer_in_hosts_file(self):
        """The sandbox's idea of the address counts for nothing."""
        done = self.box.run("curl", "-sSk", "--connect-to", "api.lab.test:443:10.99.0.66:443", "https://api.lab.test/whoami")
        self.assertEqual(self.seen("evil"), [])
        self.assert_no_secret(done.out)

    def test_wrong_certificate_upstream(self):
        """DNS of the outside leads elsewhere: the handshake fails before the request is written."""
        config = support.LAB.write("lie.yaml", support.LAB.config().replace(
            "resolver:\n", "resolver:\n  hosts: {other.lab.test: 10.99.0.80}\n"))
        box = self.sandbox(policy("{to: 'https://other.lab.test', credential: api}", credentials=file_credential()), config=config)
        out = self.py("print(fetch('other.lab.test', '/x')[0])", box)
        self.assertEqual((out, self.seen("http")), ("502\n", []))

    def test_wildcard_rule_sends_to_each_verified_host_only(self):
        box = self.sandbox(policy("{to: 'https://*.wild.lab.test', credential: api}", credentials=file_credential()))
        self.py("print(fetch('a.wild.lab.test', '/wild')[0], fetch('wild.lab.test', '/wild')[0])", box)
        self.assertEqual(len(self.seen("http", path="/wild")), 1)
        # allowed here, beyond the one host of the other tests:
        self.seen_at = self._seen_size()


class NotInside(Box):
    """A credential that an upstream sends back is masked, however it is written."""

    def check(self, path, box=None, mark=b"*", fields=()):
        out = self.py(f"answered(*fetch('api.lab.test', '{path}', fields={fields!r}))", box)
        answer = json.loads(out)
        self.assert_no_secret(json.dumps(answer["fields"]))
        self.assertIn("*" * 8, answer["body"] + json.dumps(answer["fields"]))
        return answer

    def test_body_and_header(self):
        answer = self.check("/reflect")
        self.assertNotIn("TOPSECRET", json.dumps(answer))
        event = self.box.event(FINDING)
        self.assertIsNotNone(event)

    def test_forms(self):
        """Raw, URL-encoded wholly and in part, JSON escapes, base64 of both alphabets at each alignment."""
        answer = self.check("/forms")
        for line in answer["body"].splitlines():
            self.assertIn("*" * 8, line)

    def test_forms_in_gzip(self):
        self.check("/forms-gzip", fields=("Accept-Encoding: gzip",))

    def test_byte_by_byte_and_trailer(self):
        out = self.py("s = tls('api.lab.test'); s.sendall(request('GET', '/forms-bytes', 'api.lab.test')); r = Reader(s); x = r.response(); print(x[2].decode(), r.trailers)")
        self.assertIn("*" * 8, out)

    def test_chunk_borders(self):
        answer = self.check("/reflect-split")
        self.assertTrue(answer["body"].endswith(" end"))

    def test_gzip(self):
        answer = self.check("/reflect-gzip", fields=("Accept-Encoding: gzip",))
        self.assertTrue(answer["body"].startswith("before *"), answer)

    def test_an_archive_arrives_as_it_is(self):
        """A .tar.gz that its origin labels gzip, fetched by a client that did not ask for gzip, over HTTP/1.1 and HTTP/2."""
        path = support.LAB.path("archive.tar.gz")
        with tarfile.open(path, "w:gz") as tar:
            tar.add(os.path.join(support.HERE, "..", "..", "docs"), "docs")
            data = random.Random(1).randbytes(1 << 20)
            info = tarfile.TarInfo("noise")
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
        with open(path, "rb") as f:
            expected = hashlib.sha256(f.read()).hexdigest()
        for version in "--http1.1", "--http2":
            done = self.box.run("sh", "-c", f"d=$(mktemp -d) && cd $d && curl -sS {version} -D head -O https://api.lab.test/archive.tar.gz && "
                                "sha256sum archive.tar.gz && tar tzf archive.tar.gz | tail -n 1 && cat head")
            self.assertEqual(done.status, 0, done)
            self.assertTrue(done.out.startswith(expected), done.out)
            self.assertIn("noise", done.out)
            fields = done.out.lower()
            for field in ("content-encoding: gzip", 'etag: "v1"', f"content-length: {os.path.getsize(path)}"):
                self.assertIn(field, fields, version)
        done = self.box.run("sh", "-c", "curl -sS --compressed -D - https://api.lab.test/archive.tar.gz | tr -d '\\0' | grep -a -i -m 3 -e ^etag -e ^content-")
        self.assertIn('etag: W/"v1"', done.out.replace("ETag", "etag"))
        self.assertNotIn("encoding", done.out.lower())

    def refused_content(self, path, fields=()):
        """The 502. The connection is cut off instead where the head came, and went, before the content: then once more."""
        out = self.py(f"for _ in range(20):\n try:\n  r = fetch('api.lab.test', '{path}', fields={fields!r})\n  answered(*r)\n  break\n"
                      " except EOFError: pass")
        self.assertEqual(json.loads(out)["status"], 502)
        return out

    def test_in_what_may_not_be_changed(self):
        for path, fields in (("/reflect-gzip", ()), ("/reflect-no-transform", ("Accept-Encoding: gzip",))):
            out = self.refused_content(path, fields)
            self.assertIn("cannot be covered", out)
            self.assertIsNotNone(self.box.event(FINDING))

    def test_a_byte_order_mark(self):
        self.assertIn("character set", self.refused_content("/reflect-mark"))

    def test_error_body_and_challenge(self):
        self.assertEqual(self.check("/reflect-error")["status"], 401)

    def test_cookie_and_location(self):
        self.check("/reflect-cookie")

    def test_interim(self):
        self.py("s = tls('api.lab.test'); s.sendall(request('GET', '/reflect-early', 'api.lab.test')); r = Reader(s); print(r.response(), r.response())")

    def test_all_headers(self):
        self.check("/reflect-all")

    def test_unknown_coding_is_refused(self):
        for path in ("/reflect-unknown?compress", "/reflect-unknown?br", "/reflect-unknown?gzip,br", "/reflect-unknown?dcb"):
            with self.subTest(path):
                self.refused_content(path)

    def test_only_readable_codings_are_asked_for(self):
        self.py("fetch('api.lab.test', '/enc', fields=('Accept-Encoding: dcb, br, zstd;q=0, compress, gzip, deflate, *',))\n"
                "fetch('www.lab.test', '/enc2', fields=('Accept-Encoding: compress',))")
        def asked(path):
            return [h[1] for r in self.seen("http", path=path) for h in r["headers"] if h[0].lower() == "accept-encoding"]
        self.assertEqual(asked("/enc"), ["gzip, deflate, br"])
        self.assertEqual(asked("/enc2"), ["compress"])

    def test_range_cannot_cut_it(self):
        """Ranges and conditional tricks would deliver the value piece by piece, each without a match."""
        asked = ("Range: bytes=0-5", "If-Range: x", "Request-Range: bytes=0-5", "A-IM: gzip", "Accept-Charset: utf-16")
        self.py(f"fetch('api.lab.test', '/range', fields={asked})\nfetch('www.lab.test', '/range2', fields={asked})")
        def sent(path):
            return {h[0].lower() for r in self.seen("http", path=path) for h in r["headers"]} & {f.split(":")[0].lower() for f in asked}
        self.assertEqual(sent("/range"), {"range", "if-range"})
        self.assertIn(["Range", "bytes=0-1029"], [h for r in self.seen("http", path="/range") for h in r["headers"]], "widened")
        self.assertEqual(len(sent("/range2")), len(asked), "who gets no credential may ask for pieces")

    def test_a_character_set_that_is_not_searched_is_refused(self):
        for charset, status in (("utf-16", 502), ("UTF-32LE", 502), ("utf-7", 502), ("cp037", 502), ("iso-2022-jp", 502),
                                ("utf-8", 200), ("ISO-8859-1", 200)):
            out = self.py(f"answered(*fetch('api.lab.test', '/reflect-charset?{charset}'))")
            self.assertEqual(json.loads(out)["status"], status, charset)
            self.assert_no_secret(out.replace("\\u0000", "").replace("\\x00", ""))
        self.assertIn("character set", self.py("answered(*fetch('api.lab.test', '/reflect-charset?utf-16'))"))
        self.assertEqual(json.loads(self.py("answered(*fetch('www.lab.test', '/reflect-charset?utf-16'))"))["status"], 200)

    def test_websocket_is_masked_or_refused(self):
        out = self.py("s = tls('api.lab.test'); s.sendall(request('GET', '/ws', 'api.lab.test', 'Connection: Upgrade', 'Upgrade: websocket', 'Sec-WebSocket-Version: 13', 'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=='))\nprint(Reader(s).head()[0])")
        self.assertIn(out, ("101\n", "502\n", "403\n"))

    def test_its_file_cannot_be_read(self):
        """A user who may read the file outside tries it inside: under its name, by a link, after moving what can be moved, from another mount namespace."""
        folder = support.LAB.path("kept")
        os.makedirs(folder, exist_ok=True)
        path, link = os.path.join(folder, "key"), support.LAB.path("kept-link")
        for place in (path, folder + "/other"):
            with open(place, "w") as f:
                f.write(SECRET + "\n")
            os.chmod(place, 0o644)
        if not os.path.islink(link):
            os.symlink(path, link)
        box = self.sandbox(policy(API, credentials=file_credential(path=link)))
        done = box.sh(f"cat {path} {link}; mv {path} {path}.2; rm -f {path}; ln {path} {path}.3; umount {path}; mv {folder} {folder}-2 && cat {folder}-2/key;"
                      f" mv {folder}-2 {folder}; unshare -Urm sh -c 'umount {path}; cat {path}'; cat {folder}/key; echo end")
        self.assertEqual(done.out, "end\n", done)
        self.assertIn("200", self.py("print(fetch('api.lab.test', '/whoami')[0])", box))
        with open(path) as f:
            self.assertEqual(f.read(), SECRET + "\n")
        done = box.sh(f"wc -c < {folder}/other")  # only what a credential comes from
        self.assertEqual(int(done.out), len(SECRET) + 1)

    def test_a_file_that_takes_its_place_is_told(self):
        """A new file renamed over it is not covered; the same file with another value is."""
        path = support.LAB.write("rotated-key", SECRET + "\n", 0o600)
        box = self.sandbox(policy(API, credentials=file_credential(path=path, rest="inject: bearer, ttl: 1s")))
        told = f'credential "api": {path} was replaced after the run started'
        for step in ("written", "renamed", "again"):
            support.LAB.write("rotated-key" if step == "written" else "rotated-next", SECRET + "\n", 0o600)
            if step == "renamed":
                os.rename(support.LAB.path("rotated-next"), path)
            time.sleep(1.1)
            self.assertIn("200", self.py("print(fetch('api.lab.test', '/whoami')[0])", box))
            self.assertEqual(box.stderr().count(told), int(step != "written"), box.stderr())

    def test_its_file_cannot_be_read_without_root(self):
        path = support.LAB.write("users-key", SECRET + "\n", 0o600)
        os.chown(path, 65534, 65534)
        text = policy(API, credentials=file_credential(path=path))
        r = subprocess.run(["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", VETHGUARD, "run", "--policy",
                            support.LAB.write("users.yaml", text), "--config", support.LAB.path("config.yaml"), "--", "sh", "-c",
                            f"cat {path}; curl -sS https://api.lab.test/whoami"], capture_output=True, text=True, cwd="/", timeout=60 * SLOW)
        self.assertEqual((r.returncode, json.loads(r.stdout)["authenticated"]), (0, True), r)

    def test_files_that_are_not_there_or_too_many(self):
        missing = support.LAB.path("not-there/key")
        box = self.sandbox(policy(API, credentials=file_credential(path=missing)))
        self.assertNotEqual(box.sh(f"cat {missing}").status, 0)
        many = "".join(file_credential(f"c{i}", "inject: bearer", "/" + f"{i}/" * 1300) for i in range(30))
        r = self.run_vethguard(policy(API, credentials=file_credential() + many), ["true"])
        self.assertEqual(r.status, 125, r)
        self.assertIn("paths of more than 65536 bytes together", r.stderr)

    def test_environment(self):
        out = self.py("print(open('/proc/self/environ').read())")
        self.assertIn("API_KEY=", out)

    def test_proc(self):
        out = self.py("import glob\nfor p in glob.glob('/proc/[0-9]*/environ') + glob.glob('/proc/[0-9]*/cmdline') + glob.glob('/proc/[0-9]*/maps'):\n"
                      " try: print(open(p, errors='replace').read())\n except OSError: pass")
        self.assertNotIn("vethguard-worker", out)
        self.assertNotIn("vethguard-keeper", out)

    def test_processes_of_vethguard_cannot_be_seen(self):
        done = self.box.sh("ps -eo pid,args; ls /proc | grep -c '^[0-9]'")
        for name in ("vethguardd", "vethguard-worker", "vethguard-keeper", "vethguard-recorder", "vethguard-fetch"):
            self.assertNotIn(name, done.out)

    def test_memory_of_init_cannot_be_read(self):
        """PID 1 inside was forked from vethguard: its memory holds no value and cannot be opened."""
        done = self.box.py("try:\n m = open('/proc/1/maps').read(); print('maps', len(m))\n f = open('/proc/1/mem', 'rb', 0)\n"
                           " for line in m.splitlines():\n  a, b = (int(x, 16) for x in line.split()[0].split('-'))\n  try: f.seek(a); d = f.read(min(b - a, 1 << 24))\n  except (OSError, OverflowError): continue\n"
                           "  i = d.find(b'-TOPSEC' + b'RET')\n  if i >= 0: print('found', d[max(0,i-8):i])\n"
                           "except OSError as e: print('refused', e.errno)")
        self.assertNotIn("found", done.out)


class Alone(Box):
    """require: true: a request with the policy's credential may bring no other one."""

    def alone(self, rest="inject: bearer, env: API_KEY"):
        return self.sandbox(policy(RULES[0], credentials=file_credential(rest=rest + ", require: true")))

    def status(self, box, path, *options):
        return box.sh(f"curl -sS -o /dev/null -w '%{{http_code}}' {' '.join(options)} 'https://api.lab.test{path}'").out

    def test_refused(self):
        box = self.alone()
        for n, options in enumerate((["-H 'X-Api-Key: attackers-key-1'"], ["-H 'private_token: attackers-key-2'"], ["-H 'X-Vault-Token: a'"],
                                     ["--http1.1", "-H 'X-Auth-Token: Bearer attackers-key-3'"], ["-H 'X-GitHub-Token: attackers'", "-H 'Accept: */*'"],
                                     ["-H 'xi-api-key: attackers'"], ["-H 'X_Rapidapi_Key: attackers'"], ["--http1.1", "-H 'X-Shopify-Access-Token: a'"])):
            self.assertEqual(self.status(box, f"/field{n}", *options), "403", options)
            self.assertEqual(self.seen("http", path=f"/field{n}"), [])
        for n, query in enumerate(("access_token=attackers", "a=b&API_KEY=attackers", "%6bey=attackers", "X-Amz-Signature=0123", "key=attackers&key=",
                                   "a=1;access_token=attackers", "access.token=attackers", "+api%20key=attackers", "token%5B%5D=attackers")):
            self.assertEqual(self.status(box, f"/query{n}?{query}"), "403", query)
        self.assertEqual([r for r in self.seen("http") if r["path"].startswith("/query")], [])
        box.close()
        self.assertEqual({t for e in box.events(FINDING) for t in e["finding_info"]["types"]}, {"foreign-credential"})
        self.assertEqual(len(box.events(FINDING)), 17)

    def test_passes(self):
        box = self.alone()
        for n, options in enumerate(([], ["-H 'Authorization: Bearer anything'"], ["-u user:password"], ["-H \"X-Api-Key: $API_KEY\""],
                                     ["-H 'X-Api-Key;'"], ["-H 'X-Request-Id: 1'"], ["-H 'Cookie: a=b'"])):
            self.assertEqual(self.status(box, f"/pass{n}", *options), "200", options)
        for query in ("q=token", "keys=1", "token=", "page_token=1"):
            self.assertEqual(self.status(box, "/pass?" + query), "200", query)
        box.close()
        for r in self.seen("http"):
            names = [n.lower() for n, _ in r["headers"]]
            self.assertNotIn("cookie", names)
            self.assertNotIn("x-api-key", [n for n, v in r["headers"] if v])
            self.assertEqual([v for n, v in r["headers"] if n.lower() == "authorization"], ["Bearer " + SECRET])
        self.assertNotIn("foreign-credential", {t for e in box.events(FINDING) for t in e["finding_info"]["types"]})

    def test_other_ways_to_inject(self):
        box = self.alone("inject: query, query: key")
        self.assertEqual(self.status(box, "/a?key=mine"), "200")
        self.assertEqual(self.status(box, "/b?token=mine"), "403")
        self.assertEqual(self.status(box, "/c", "-H 'Authorization: Bearer mine'"), "403")
        for path, query in (("/g", "a=1;b=2"), ("/h", "a=1;key=mine;b=2&c=3"), ("/i", "key=mine;a=1&&b=2")):
            self.assertEqual(self.status(box, f"{path}?{query}"), "200")
        self.assertEqual([r["path"] for r in self.seen("http") if r["path"][:3] in ("/g?", "/h?", "/i?")],
                         [f"{p}&key={SECRET}" for p in ("/g?a=1;b=2", "/h?a=1&b=2&c=3", "/i?a=1&b=2")])
        self.assertEqual(self.status(box, "/j?KEY=mine"), "403")
        box = self.alone("inject: query, query: appid")
        self.assertEqual((self.status(box, "/k?appid=mine"), self.status(box, "/k?AppId=mine")), ("200", "403"))
        box = self.alone("inject: cookie, cookie: session")
        self.assertEqual(self.status(box, "/d", "-H 'Cookie: other=mine; session=mine'"), "200")
        self.assertEqual([v for r in self.seen("http", path="/d") for n, v in r["headers"] if n.lower() == "cookie"], ["session=" + SECRET])
        box = self.alone("inject: header, header: X-Api-Key")
        self.assertEqual(self.status(box, "/e", "-H 'Authorization: Bearer mine'"), "403")
        self.assertEqual(self.status(box, "/f", "-H 'X-API-Key: mine'"), "200")

    def test_odd_requests(self):
        """However the key is written down: refused, or not passed on. What the origin reads as a key is never there."""
        box = self.alone("inject: cookie, cookie: session, env: API_KEY")
        heads = [r"X-Api-Key:\r\n attackers", r"X-Api-Key : attackers", r"X-Api-Key:\tattackers", r"X-Api-Key: a\r\nX-Api-Key: attackers",
                 r"X-Api-Key\x0b: attackers", r"X-Api\xa0Key: attackers", r"X-Other: a\rX-Api-Key: attackers", r"X-Other: a\nX-Api-Key: attackers",
                 r"Connection: X-Api-Key\r\nX-Api-Key: attackers", r"Connection: close\r\nConnection: cookie\r\nCookie: session=attackers",
                 r"Cookie: session=attackers\r\nCookie: SESSION=attackers; x=1 session=attackers", r"cookie:session=attackers;",
                 r"Proxy-Authorization: Basic attackers", r"Authorization;: attackers", r"Authorization: $API_KEY\r\nAuthorization: attackers"]
        targets = ["/o?a=1#access_token=attackers", "https://attackers@api.lab.test/o", "/o?access%5Ftoken=attackers", "/o?access_token=attackers%00",
                   "/o?a=1%26x=2&access_token=attackers", "/o?%61ccess_token=attackers", "/o?;;access_token=attackers", "/o?&&=&access_token=attackers"]
        cases = [("/o", h) for h in heads] + [(t, "X-Other: 1") for t in targets]
        code = "import os\nfor target, head in " + repr(cases) + """:
    head = head.encode().decode('unicode_escape').encode('latin-1').replace(b'$API_KEY', os.environ['API_KEY'].encode())
    s = tls('api.lab.test')
    s.sendall(b'GET ' + target.encode() + b' HTTP/1.1\\r\\nHost: api.lab.test\\r\\n' + head + b'\\r\\n\\r\\n')
    try: print(Reader(s).response()[0])
    except Exception as e: print(type(e).__name__)
    s.close()
"""
        answers = self.py(code, box).split()
        self.assertEqual(len(answers), len(cases))
        seen = [r for r in self.seen("http") if r["path"].startswith("/o")]
        self.assertNotIn("attackers", json.dumps(seen), list(zip(answers, cases)))
        self.assertTrue(set(answers) <= {"200", "400", "403"}, list(zip(answers, cases)))
        for r in seen:
            self.assertEqual([v for n, v in r["headers"] if n.lower() == "cookie"], ["session=" + SECRET])

    def test_subprotocols(self):
        """A key in a list of subprotocols, as browsers send it to some services; and subprotocols in which there is none."""
        upgrade = ("-m 5", "--http1.1", "-H 'Connection: Upgrade'", "-H 'Upgrade: websocket'", "-H 'Sec-WebSocket-Version: 13'",
                   "-H 'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=='")
        box = self.alone()
        for n, words in enumerate(("realtime, openai-insecure-api-key.attackers", "base64url.bearer.authorization.k8s.io.YXR0YWNrZXJz", "Access_Token, attackers")):
            self.assertEqual(self.status(box, f"/ws{n}", *upgrade, f"-H 'Sec-WebSocket-Protocol: {words}'"), "403", words)
            self.assertEqual(self.seen("http", path=f"/ws{n}"), [])
        own = "Sec-WebSocket-Protocol: realtime, openai-insecure-api-key.$API_KEY"
        for n, more in enumerate((", openai-insecure-api-key.attackers", ", token, attackers")):  # the placeholder excuses no other
            self.assertEqual(self.status(box, f"/ws-own{n}", *upgrade, f'-H "{own}{more}"'), "403", more)
            self.assertEqual(self.seen("http", path=f"/ws-own{n}"), [])
        self.assertNotEqual(self.status(box, "/ws-own", *upgrade, f'-H "{own}"'), "403")
        self.assertNotEqual(self.status(box, "/ws", *upgrade, "-H 'Sec-WebSocket-Protocol: graphql-ws, mqtt, openai-beta.realtime-v1'"), "403")

    def test_trailers(self):
        self.py("s = tls('api.lab.test'); s.sendall(b'POST /t HTTP/1.1\\r\\nHost: api.lab.test\\r\\nTransfer-Encoding: chunked\\r\\nTrailer: X-Api-Key\\r\\n\\r\\n"
                "1\\r\\nx\\r\\n0\\r\\nX-Api-Key: attackers\\r\\nX-Other: 1\\r\\n\\r\\n'); print(Reader(s).response()[0])", self.alone())
        self.assertNotIn("attackers", json.dumps(self.seen("http", path="/t")))


class Placeholder(Box):
    def test_replaced(self):
        out = self.py("import os\nprint(fetch('api.lab.test', '/whoami', fields=('Authorization: Bearer ' + os.environ['API_KEY'],))[2].decode())")
        self.assertTrue(json.loads(out)["authenticated"])

    def test_right_field_is_no_finding(self):
        box = self.sandbox(policy(*RULES, credentials=file_credential()))
        self.py("import os\nprint(fetch('api.lab.test', '/whoami', fields=('Authorization: Bearer ' + os.environ['API_KEY'],))[0])", box)
        box.close()
        self.assertEqual(box.events(FINDING), [])

    def leak(self, code):
        box = self.sandbox(policy(*RULES, credentials=file_credential()))
        self.py("import os\nk = os.environ['API_KEY']\n" + code, box)
        found = box.event(FINDING)
        self.assertIsNotNone(found, "no finding: " + repr([e["message"] for e in box.events()]))
        box.close()
        return found

    def test_other_host(self):
        self.leak("fetch('www.lab.test', '/p', fields=('Authorization: Bearer ' + k,))")
        self.assertEqual([a for a in self.authorizations() if SECRET in a], [])

    def test_denied_host(self):
        self.leak("fetch('evil.lab.test', '/p', fields=('Authorization: Bearer ' + k,))")

    def test_in_the_path(self):
        self.leak("fetch('www.lab.test', '/p/' + k)")

    def test_in_the_query(self):
        self.leak("fetch('api.lab.test', '/p?k=' + k)")

    def test_in_another_field(self):
        self.leak("fetch('api.lab.test', '/p', fields=('X-Other: ' + k,))")

    def test_over_plain_http(self):
        self.leak("fetch('plain.lab.test', '/p', port=80, plain=True, fields=('Authorization: Bearer ' + k,))")

    def test_denied_at_its_own_host(self):
        """A refusal, no finding: over HTTP/1.1, HTTP/2 and as a WebSocket, in field and query. What is suggested then works."""
        text = policy("{to: 'https://api.lab.test', paths: [/whoami], credential: api}", credentials=file_credential())
        box = self.sandbox(text)
        key = "import os\nk = os.environ['API_KEY']\nbearer = 'Authorization: Bearer ' + k\n"
        self.assertEqual(self.py(key + "print(fetch('api.lab.test', '/v2', fields=(bearer,))[0], fetch('api.lab.test', '/whoami/x?k=' + k)[0])",
                                 box).split(), ["403", "403"])
        self.assertEqual(self.py(key + "s = tls('api.lab.test')\ns.sendall(request('GET', '/ws', 'api.lab.test', 'Connection: Upgrade', 'Upgrade: websocket',"
                                 " 'Sec-WebSocket-Version: 13', 'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==', bearer))\nprint(Reader(s).head()[0])", box).strip(), "403")
        self.assertEqual(box.sh("curl -sS --http2 -o /dev/null -w '%{http_code} %{http_version}' -X DELETE -H \"Authorization: Bearer $API_KEY\""
                                " https://api.lab.test/v3").out, "403 2")
        for path in ("/v2", "/whoami/x", "/ws", "/v3"):
            event = box.event(HTTP, **{"http_request.url.path": path})
            self.assertEqual((event["action_id"], event["status_code"], event["unmapped"]), (2, "path", {"credential": "api"}), event)
        self.assertEqual(box.events(FINDING), [])
        r = subprocess.run([VETHGUARD, "audit", "suggest", box.audit], capture_output=True, text=True, timeout=60 * SLOW)
        self.assertEqual((r.returncode, r.stderr), (0, ""), r)
        self.assertNotIn("Not suggested", r.stdout)
        more = r.stdout[r.stdout.index("  - to:"):].replace("# credential: api", "credential: api")
        box.close()
        box = self.sandbox(text + "\n" + more)
        self.assertEqual(self.py(key + "print(fetch('api.lab.test', '/v2', fields=(bearer,))[0], fetch('api.lab.test', '/v3')[0])", box).split(), ["200", "403"])
        self.assertEqual(self.authorizations(path="/v2"), ["Bearer " + SECRET])
        self.assertNotIn("placeholder-leak", json.dumps(box.events(FINDING)))

    def test_of_a_shape(self):
        """The policy's shape: it works, is found where it does not belong, is another one in each sandbox, and explained."""
        text = policy(*RULES, credentials=file_credential(rest='inject: bearer, env: API_KEY, placeholder: "github_pat_...", placeholder-length: 93'))
        seen = set()
        for _ in range(2):
            box = self.sandbox(text)
            value = box.sh("printf %s $API_KEY").out
            self.assertRegex(value, "^github_pat_vethguard[0-9a-f]{73}$")
            seen.add(value)
            out = self.py("import os\nprint(fetch('api.lab.test', '/whoami', fields=('Authorization: token ' + os.environ['API_KEY'],))[2].decode())", box)
            self.assertTrue(json.loads(out)["authenticated"])
            self.assertEqual(box.events(FINDING), [])
            self.py("import os, base64\nk = os.environ['API_KEY']\nfetch('www.lab.test', '/p?k=' + k.replace('_', '%5f'))\n"
                    "fetch('www.lab.test', '/p', fields=('X: ' + base64.b64encode(b'ab' + k.encode()).decode(),))", box)
            box.close()
            self.assertEqual([e["finding_info"]["types"] for e in box.events(FINDING)], 2 * [["placeholder-leak"]])
        self.assertEqual(len(seen), 2)
        r = subprocess.run([VETHGUARD, "policy", "explain", support.LAB.write("shape.yaml", text), "GET", "https://api.lab.test/x"],
                           capture_output=True, text=True, timeout=60 * SLOW)
        self.assertRegex(r.stdout, r"(?m)^credential: api, from file:.*\nplaceholder: github_pat_\.\.\., 93 bytes$")

    def test_differs_between_sandboxes(self):
        values = set()
        for _ in range(3):
            box = self.sandbox(policy(*RULES, credentials=file_credential()))
            values.add(box.sh("echo $API_KEY").out)
        self.assertEqual(len(values), 3)

    def test_of_another_sandbox_is_worth_nothing(self):
        other = self.sandbox(policy(*RULES, credentials=file_credential()))
        stranger = other.sh("printf %s $API_KEY").out
        self.py(f"print(fetch('www.lab.test', '/s', fields=('Authorization: Bearer {stranger}',))[0])")
        self.assertEqual([a for a in self.authorizations(path="/s") if SECRET in a], [])


class Upgrades(support.Boxed):
    """Upgrades other than to a WebSocket: relayed where the rule names the protocol, else refused."""

    @classmethod
    def make_box(cls):
        return support.Sandbox(policy("{to: 'https://api.lab.test', credential: api, upgrade: [spdy/3.1, tcp]}", "https://www.lab.test",
                                      credentials=file_credential()))

    def exec(self, host, protocol, body=b"{}"):
        return self.py(f"s = tls('{host}')\ns.sendall(request('POST', '/exec', '{host}', 'Connection: Upgrade', 'Upgrade: {protocol}',"
                       f" 'Content-Length: {len(body)}') + {body!r})\nr = Reader(s)\nstatus, fields = r.head()[:2]\nprint(status, fields.get('upgrade'))\n"
                       "if status == 101:\n s.sendall(b'\\x00first\\n')\n print(r.take(7))\n s.sendall(b'\\xff second\\n')\n print(r.take(9))\n"
                       "else:\n print(r.take(int(fields['content-length'])))")

    def test_relayed(self):
        for protocol in "SPDY/3.1", "tcp":
            out = self.exec("api.lab.test", protocol)
            self.assertEqual(out.splitlines(), [f"101 {protocol}", repr(b"\ntsrif\0"), repr(b"\ndnoces \xff")])
        event = support.wait_until(lambda: next((e for e in self.box.events(HTTP) if "/exec" in json.dumps(e)), None), 3 * SLOW)
        self.assertIn("relayed unread", json.dumps(event))
        self.assertEqual([v for r in self.seen("http", path="/exec") for k, v in r["headers"] if k.lower() == "authorization"], ["Bearer " + SECRET] * 2)

    def test_refused(self):
        for host, protocol in (("www.lab.test", "tcp"), ("api.lab.test", "foo/1")):
            out = self.exec(host, protocol)
            self.assertTrue(out.startswith("403 None"), out)
            self.assertIn("relayed unread", out)
            self.assertIn("advice", out)
        self.assertEqual(self.exec("www.lab.test", "websocket").split()[0], "403")


class Sources(Box):
    def credential(self, source, rest="inject: bearer"):
        return policy("{to: 'https://api.lab.test', credential: api}", "https://www.lab.test", credentials=f"  api: {{source: {source}, {rest}}}\n")

    def whoami(self, text, **kw):
        box = self.sandbox(text, **kw)
        answer = json.loads(self.py("answered(*fetch('api.lab.test', '/whoami'))", box))
        self.assert_processes_clean(box)
        return box, answer

    def check_missing(self, text, word="", **kw):
        """The request is refused with 502 and a sentence; the origin sees nothing; other destinations go on."""
        box, answer = self.whoami(text, **kw)
        self.assertEqual(answer["status"], 502, answer)
        body = json.loads(answer["body"])
        self.assert_denied(box, body, 502)
        self.assertIn(word, body["detail"])
        self.assertEqual(self.seen("http"), [])
        self.assertIn("200", self.py("print(fetch('www.lab.test', '/others')[0])", box))
        return box

    def test_env(self):
        _, answer = self.whoami(self.credential("'env:REAL_KEY'"), env={"REAL_KEY": SECRET})
        self.assertEqual(answer["status"], 200)

    def test_env_is_not_in_any_environ(self):
        box = self.sandbox(self.credential("'env:REAL_KEY'"), env={"REAL_KEY": SECRET})
        self.assert_processes_clean(box)

    def test_exec(self):
        script = support.LAB.write("token.sh", f"#!/bin/sh\ncat {support.LAB.path('secret')}\n", 0o755)
        _, answer = self.whoami(self.credential(f"{{exec: [{script}]}}"))
        self.assertEqual(answer["status"], 200, answer)

    def counting(self, text):
        count = support.LAB.write("count", "")
        return count, support.LAB.write("counting.sh", f"#!/bin/sh\necho x >> {count}\n{text}\n", 0o755)

    def test_exec_is_cached_for_its_ttl(self):
        count, script = self.counting(f"cat {support.LAB.path('secret')}")
        box = self.sandbox(self.credential(f"{{exec: [{script}]}}", "inject: bearer, ttl: 2s"))
        began = time.monotonic()
        self.py("for i in range(5): assert fetch('api.lab.test', '/whoami')[0] == 200", box)
        if time.monotonic() - began < 2:  # else its time is over, on a slow machine
            self.assertEqual(os.path.getsize(count), 2)
        asked = os.path.getsize(count)
        time.sleep(2.2)
        self.py("assert fetch('api.lab.test', '/whoami')[0] == 200", box)
        self.assertEqual(os.path.getsize(count), asked + 2)

    def test_exec_is_asked_once_by_many(self):
        count, script = self.counting(f"sleep 0.3; cat {support.LAB.path('secret')}")
        box = self.sandbox(self.credential(f"{{exec: [{script}]}}"))
        self.py("import threading\nts = [threading.Thread(target=lambda: print(fetch('api.lab.test', '/whoami')[0])) for _ in range(8)]\n[t.start() for t in ts]; [t.join() for t in ts]", box)
        self.assertEqual(os.path.getsize(count), 2)

    def test_exec_fails(self):
        script = support.LAB.write("fails.sh", "#!/bin/sh\necho it is broken >&2\nexit 3\n", 0o755)
        self.check_missing(self.credential(f"{{exec: [{script}]}}"))

    def test_exec_prints_and_fails(self):
        script = support.LAB.write("half.sh", f"#!/bin/sh\ncat {support.LAB.path('secret')}\nexit 1\n", 0o755)
        self.check_missing(self.credential(f"{{exec: [{script}]}}"))

    def test_exec_times_out(self):
        script = support.LAB.write("slow.sh", "#!/bin/sh\nsleep 1000\n", 0o755)
        began = time.monotonic()
        self.check_missing(self.credential(f"{{exec: [{script}]}}", "inject: bearer, timeout: 500ms"))
        self.assertLess(time.monotonic() - began, 8 * support.SLOW)

    def test_exec_missing(self):
        self.check_missing(self.credential("{exec: [/no/such/program]}"))

    def test_exec_gives_nothing(self):
        script = support.LAB.write("empty.sh", "#!/bin/sh\n", 0o755)
        self.check_missing(self.credential(f"{{exec: [{script}]}}"))

    def test_exec_gives_too_much(self):
        script = support.LAB.write("much.sh", "#!/bin/sh\nhead -c 10000000 /dev/zero | tr '\\0' x\n", 0o755)
        self.check_missing(self.credential(f"{{exec: [{script}]}}"))

    def test_file_appears_later(self):
        path = support.LAB.path("late-secret")
        if os.path.exists(path):
            os.unlink(path)
        try:
            box = self.check_missing(self.credential(f"'file:{path}'"))
        except AssertionError as e:
            if "did not start" not in str(e):
                raise
            self.assertIn("late-secret", str(e))  # refused at once, with the name: as good
            return
        support.LAB.write("late-secret", SECRET, 0o600)
        time.sleep(1.2)
        self.assertIn("200", self.py("print(fetch('api.lab.test', '/whoami')[0])", box))

    def test_file_changes(self):
        path = support.LAB.write("turning-secret", "first-value-0123456789\n", 0o600)
        box = self.sandbox(self.credential(f"'file:{path}'", "inject: bearer, ttl: 1s"))
        self.py("fetch('api.lab.test', '/1')", box)
        support.LAB.write("turning-secret", "second-value-0123456789\n", 0o600)
        time.sleep(1.2)
        self.py("fetch('api.lab.test', '/2')", box)
        self.assertEqual([self.authorizations(path=p) for p in ("/1", "/2")],
                         [["Bearer first-value-0123456789"], ["Bearer second-value-0123456789"]])

    def bad_value(self, value):
        support.LAB.write("bad-secret", value, 0o600)
        try:
            self.check_missing(self.credential(f"'file:{support.LAB.path('bad-secret')}'"))
        except AssertionError as e:
            if "did not start" not in str(e):
                raise

    def test_file_with_a_line_break(self):
        """A value with CR LF would add fields to the request."""
        self.bad_value("abcdefgh\r\nX-Injected: 1\r\n\r\nijklmnop")
        self.assertEqual(self.seen("http", path="/whoami"), [])

    def test_file_with_nul(self):
        self.bad_value("abcdefgh\0ijklmnop")

    def test_file_too_short(self):
        self.bad_value("abc\n")

    def test_file_empty(self):
        self.bad_value("\n")

    def test_file_is_a_directory(self):
        try:
            self.check_missing(self.credential(f"'file:{support.LAB.dir}'"))
        except AssertionError as e:
            if "did not start" not in str(e):
                raise

    def test_env_missing(self):
        try:
            self.check_missing(self.credential("'env:NOT_THERE_AT_ALL'"))
        except AssertionError as e:
            if "did not start" not in str(e):
                raise
            self.assertIn("NOT_THERE_AT_ALL", str(e))


class Traces(Box):
    def test_no_core_no_swap_no_ptrace(self):
        """The programs that hold values cannot be dumped or traced by their own user."""
        for role in ("keeper", "worker"):
            with open(f"/proc/{self.box.pids()[role]}/status") as f:
                status = dict(line.rstrip("\n").split(":\t", 1) for line in f if ":\t" in line)
            self.assertEqual(status["CapEff"].strip("0"), "", role)
            self.assertEqual(status["NoNewPrivs"], "1", role)
            self.assertEqual(status["Seccomp"], "2", role)
            self.assertNotEqual(status["Uid"].split()[0], "0", role)
            with open(f"/proc/{self.box.pids()[role]}/limits") as f:
                core = next(line for line in f if line.startswith("Max core"))
            self.assertEqual(core.split()[4], "0", role)
            # Not dumpable: /proc files belong to root, not to the role's user.
            self.assertEqual(os.stat(f"/proc/{self.box.pids()[role]}/environ").st_uid, 0, role)

    def test_supervisor_and_recorder_hold_nothing(self):
        """After a request the value is in the keeper's and the worker's memory at most."""
        self.py("fetch('api.lab.test', '/whoami')")
        for role in ("recorder", "supervisor", "run"):
            pid = self.box.pids()[role]
            with open(f"/proc/{pid}/maps") as f:
                ranges = [line.split()[0].split("-") for line in f if line.split()[1].startswith("rw")]
            with open(f"/proc/{pid}/mem", "rb", 0) as mem:
                for low, high in ((int(a, 16), int(b, 16)) for a, b in ranges):
                    if high - low > 1 << 30:
                        continue  # a sanitizer's shadow
                    try:
                        mem.seek(low)
                        data = mem.read(high - low)
                    except OSError:
                        continue
                    self.assertNotIn(SECRET.encode(), data, f"{role} {low:x}")


class Substituted(Box):
    """inject: placeholder: the value stands where its placeholder stood, in the places that the policy names, and nowhere else."""
    REST = "inject: placeholder, in: [header, basic, query], env: API_KEY"

    @classmethod
    def make_box(cls):
        return support.Sandbox(policy(*RULES[:2], credentials=file_credential(rest=cls.REST)))

    def leaks(self, box):
        return ["placeholder-leak"] in [e["finding_info"]["types"] for e in box.events(FINDING)]

    def sent(self, path):
        row = next(r for r in self.seen("http") if r["path"].startswith(path))
        return row["path"], [(n.lower(), v) for n, v in row["headers"]]

    def test_fields(self):
        box = self.sandbox(policy(RULES[0], credentials=file_credential(rest=self.REST)))
        self.py("import os, base64\nk = os.environ['API_KEY']\nfetch('api.lab.test', '/sub1', fields=('X-One: ' + k, 'X-Two: a' + k + ', b=' + k + ';', 'Authorization: Token token=\"' + k + '\"', 'X-Three: vethguard'))\n"
                "fetch('api.lab.test', '/sub2', fields=('Authorization: Basic ' + base64.b64encode(('x-token:' + k).encode()).decode(),))\n"
                "fetch('api.lab.test', '/sub3', fields=('Authorization: bAsIc ' + base64.b64encode((k + ':').encode()).decode().rstrip('='),))", box)
        self.assertTrue({("x-one", SECRET), ("x-two", f"a{SECRET}, b={SECRET};"), ("authorization", f'Token token="{SECRET}"'), ("x-three", "vethguard")}
                        <= set(self.sent("/sub1")[1]))
        self.assertIn(("authorization", "Basic " + base64.b64encode(b"x-token:" + SECRET.encode()).decode()), self.sent("/sub2")[1])
        self.assertIn(("authorization", "Basic " + base64.b64encode(SECRET.encode() + b":").decode()), self.sent("/sub3")[1])
        self.assertFalse(self.leaks(box))

    def test_query(self):
        box = self.sandbox(policy(RULES[0], credentials=file_credential("api", self.REST, support.LAB.write("odd", "a/b c+d&e=f%g\n", 0o600))))
        self.py("import os\nk = os.environ['API_KEY']\nfetch('api.lab.test', '/sub4?a=1&key=' + k + ';b=x' + k + 'y&c')", box)
        self.assertEqual(self.sent("/sub4")[0], "/sub4?a=1&key=a%2Fb%20c%2Bd%26e%3Df%25g;b=xa%2Fb%20c%2Bd%26e%3Df%25gy&c")
        self.assertFalse(self.leaks(box))

    def test_over_http2_and_again(self):
        """Each request of a connection anew; the value enters no compression table (test_http2_secret.c has how fields are marked)."""
        done = self.box.sh("for i in 1 2 3; do curl -sS --http2 -o /dev/null -H X-Key:$API_KEY -u u:$API_KEY 'https://api.lab.test/sub5?k='$API_KEY; done")
        self.assertEqual(done.status, 0, done)
        for row in [r for r in self.seen("http") if r["path"].startswith("/sub5")]:
            self.assertEqual(row["path"], "/sub5?k=" + SECRET)
            self.assertIn(SECRET, [v for n, v in row["headers"] if n.lower() == "x-key"])

    def test_nothing_without_a_placeholder(self):
        self.py("fetch('api.lab.test', '/sub6?k=1', fields=('X-Key: 1', 'Authorization: Bearer mine'))")
        self.assertNotIn(SECRET, json.dumps(self.sent("/sub6")))
        self.assertIn(("authorization", "Bearer mine"), self.sent("/sub6")[1])

    def test_places_that_are_not_named(self):
        for rest, request in (("in: header", "-u u:$API_KEY https://api.lab.test/sub7"), ("in: header", "https://api.lab.test/sub7?k=$API_KEY"),
                              ("in: basic", "-H X-Key:$API_KEY https://api.lab.test/sub7"), ("in: query", "-H X-Key:$API_KEY https://api.lab.test/sub7"),
                              ("in: [header, basic, query]", "https://api.lab.test/sub7/$API_KEY"), ("in: [header, basic, query]", "-d k=$API_KEY https://api.lab.test/sub7"),
                              ("in: [header, basic, query]", "-H X-$API_KEY:1 https://api.lab.test/sub7"),
                              ("in: [header, basic, query]", "-H X-Key:$(printf %s $API_KEY | base64 -w0) https://api.lab.test/sub7"),
                              ("in: [header, basic, query]", "-H X-Key:$(printf %s $API_KEY | sed s/v/%76/) https://api.lab.test/sub7")):
            with self.subTest(rest=rest, request=request):
                self.seen_at = self._seen_size()
                box = self.sandbox(policy(RULES[0], credentials=file_credential(rest=f"inject: placeholder, {rest}, env: API_KEY")))
                box.sh(f"curl -sS -o /dev/null {request}")
                self.assertNotIn(SECRET, json.dumps(self.seen("http")))
                self.assertTrue(self.leaks(box))

    def test_another_host(self):
        self.box.sh("curl -sS -o /dev/null -H X-Key:$API_KEY https://www.lab.test/sub8")
        self.assertNotIn(SECRET, json.dumps(self.seen("http")))
        self.assertTrue(self.leaks(self.box))

    def test_another_placeholder(self):
        other = support.file_credential("other", "inject: bearer, env: OTHER_KEY", support.LAB.write("other-secret", "other-secret-0123456789\n", 0o600))
        box = self.sandbox(policy(RULES[0], credentials=file_credential(rest=self.REST) + other, more="on_leak: alert\n"))
        box.sh("curl -sS -o /dev/null -H \"X-Key: $API_KEY $OTHER_KEY\" https://api.lab.test/sub9")
        sent = dict(self.sent("/sub9")[1])["x-key"]
        self.assertTrue(sent.startswith(SECRET + " ") and "vethguard" in sent and "other-secret" not in sent, sent)
        self.assertTrue(self.leaks(box))

    def test_echo_is_masked(self):
        out = self.box.sh("curl -sS -H X-Key:$API_KEY -u u:$API_KEY https://api.lab.test/echo").out
        self.assert_no_secret(out)

    def test_no_room(self):
        done = self.box.sh("a=; for i in 1 2 3 4 5 6 7 8; do a=\"$a$API_KEY$API_KEY\"; done; curl -sS -o /dev/null -w '%{http_code}' -H \"X-Key: $(printf %09000d 0)$API_KEY\" -H \"X-Key2: $(printf %09000d 0)$API_KEY\" https://api.lab.test/sub10")
        self.assertEqual(done.out, "503", done)
        self.assertEqual(self.seen("http"), [])

    def test_require(self):
        box = self.sandbox(policy(RULES[0], credentials=file_credential(rest=self.REST + ", require: true")))
        done = box.sh("for a in Authorization:\\ Bearer\\ $API_KEY X-Api-Key:$API_KEY Authorization:\\ Bearer\\ mine X-Api-Key:mine; do curl -sS -o /dev/null -w '%{http_code} ' -H \"$a\" https://api.lab.test/sub11; done")
        self.assertEqual(done.out.split(), ["200", "200", "403", "403"], done)
