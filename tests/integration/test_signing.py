# SPDX-License-Identifier: Apache-2.0
"""Requests that are signed anew on their way (inject: sigv4): whatever the sandbox signs with, the service sees the real key's
signature, over the whole request and over each chunk of its body; and nothing is signed that the policy does not name."""
import base64
import hashlib
import hmac
import json
import time
import urllib.parse

import lab
import support
from aws_origin import EMPTY, Origin, day_key, mac, sign
from support import FINDING, HTTP, SECRET, policy

PORT = 8444
HOST = f"api.lab.test:{PORT}"
URL = f"https://{HOST}"
KEY_ID, TOKEN = "AKIALABREALKEY000001", "FwoGZXIvLAB/session+token0123456789=="
RULE = f"{{to: '{URL}', credential: aws}}"
S3 = "inject: sigv4, region: us-east-1, service: s3"
JSON_TYPE = ("Content-Type", "application/x-amz-json-1.0")


def credential(rest=S3, name="aws-keys"):
    return f"  aws: {{source: 'file:{support.LAB.path(name)}', {rest}}}\n"


def signed_chunks(fields, datas, trailer=(), secret="worthless", region="us-east-1", service="s3"):
    """The body of a request that `sign()` has signed, with the signatures of the sandbox's own key."""
    own = dict(fields)
    moment, before = own["x-amz-date"], own["Authorization"].rpartition("=")[2]
    scope = f"{moment[:8]}/{region}/{service}/aws4_request"
    key = day_key(secret, moment[:8], region, service)

    def after(kind, before, *hashes):
        return mac(key, "\n".join((kind, moment, scope, before, *hashes))).hex()
    body = b""
    for data in (*datas, b""):
        before = after("AWS4-HMAC-SHA256-PAYLOAD", before, EMPTY, hashlib.sha256(data).hexdigest())
        body += b"%x;chunk-signature=%s\r\n" % (len(data), before.encode()) + data + (b"\r\n" if data else b"")
    if trailer:
        before = after("AWS4-HMAC-SHA256-TRAILER", before, hashlib.sha256("".join(f"{t}\n" for t in trailer).encode()).hexdigest())
        body += "".join(f"{t}\r\n" for t in (*trailer, "x-amz-trailer-signature:" + before)).encode()
    return body + b"\r\n"


class Signing(support.WithOrigin, support.Case):
    KEYS = (KEY_ID, SECRET, None)

    @classmethod
    def make_origin(cls):
        return Origin(lab.ORIGIN4, PORT, support.LAB.dir, cls.KEYS)

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        for name, text in (("aws-keys", f"{KEY_ID}:{SECRET}"), ("aws-token", f"{KEY_ID}:{SECRET}:{TOKEN}"),
                           ("aws-json", json.dumps({"Version": 1, "AccessKeyId": KEY_ID, "SecretAccessKey": SECRET, "SessionToken": TOKEN,
                                                    "Expiration": "2099-01-01T00:00:00Z"}, indent=4)),
                           ("aws-half", KEY_ID), ("aws-escape", json.dumps({"AccessKeyId": KEY_ID, "SecretAccessKey": "abc\u00e4def"})),
                           ("aws-broken", '{"AccessKeyId": "' + KEY_ID + '", "SecretAccessKey": "' + SECRET + '"')):
            support.LAB.write(name, text + "\n", 0o600)

    def setUp(self):
        super().setUp()
        self.origin.keys = self.KEYS

    def box(self, rest=S3, name="aws-keys", **kw):
        return self.sandbox(policy(RULE, credentials=credential(rest, name)), **kw)

    def ask(self, box, method, path, fields=(), body=b"", more="", length=True):
        """(status, body) of a request that goes out byte by byte as it is written here."""
        with open(support.LAB.path("signing-body"), "wb") as f:
            f.write(body)
        lines = [f"{n}: {v}" for n, v in fields]
        if length and (body or method in ("PUT", "POST")):
            lines.append(f"Content-Length: {len(body)}")
        code = (f"body = open({support.LAB.path('signing-body')!r}, 'rb').read()\n"
                f"s = tls('api.lab.test', {PORT}); s.sendall(request({method!r}, {path!r}, {HOST!r}, *{lines!r}))\n"
                f"try: s.sendall(body)\nexcept OSError: pass\n{more}"
                f"r = Reader(s); a = r.response({method!r})\nif a[0] == 100: a = r.response({method!r})\nanswered(*a)")
        done = box.py(code, timeout=60)
        self.assertEqual(done.status, 0, done)
        answer = done.json()
        return answer["status"], answer["body"]

    def good(self, n=1):
        """The requests that the origin has seen, each of them with a right signature."""
        self.assertEqual([r["why"] for r in self.origin.asked], [None] * n)
        return self.origin.asked

    def refused(self, box, answer, status, code, words):
        self.assertEqual(answer[0], status, answer)
        self.assertIn(words, answer[1])
        self.assertEqual([r for r in self.origin.asked if r["why"] is None], [])
        self.assertEqual(box.event(HTTP, status_code=code)["action_id"], 2)


class Field(Signing):
    def test_unsigned(self):
        box = self.box()
        self.assertEqual(self.ask(box, "GET", "/bucket/?list-type=2")[0], 200)
        r = self.good()[0]
        self.assertEqual((r["region"], r["service"], r["form"], r["word"]), ("us-east-1", "s3", "field", EMPTY))
        self.assertEqual(box.event(HTTP)["unmapped"]["credential"], "aws")

    def test_signed_by_the_sandbox(self):
        box = self.box("inject: sigv4, region: [us-east-1, eu-west-1], service: [s3, dynamodb]")
        fields = sign("GET", URL + "/bucket/?list-type=2", [("x-amz-content-sha256", EMPTY), ("X-Amz-Meta-A", "  a   b "), ("If-Match", '"x"')],
                      EMPTY, region="eu-west-1")
        self.assertEqual(self.ask(box, "GET", "/bucket/?list-type=2", fields)[0], 200)
        r = self.good()[0]
        self.assertEqual((r["region"], r["service"]), ("eu-west-1", "s3"))
        self.assertIn("if-match", r["names"])
        self.assertNotIn("AKIDSANDBOX", json.dumps(r))

    def test_paths_and_queries(self):
        """The signature covers what is sent, in every way of writing it."""
        box = self.box()
        targets = ("/bucket/a%20b", "/bucket/a+b=c,d;e:f@g&h!$'()*", "/bucket/%E2%82%AC", "/bucket/a%2Fb", "/bucket//a//b/", "/bucket/~a-b_c.d",
                   "/bucket/?acl", "/bucket/?b=2&a=1&a=0&A=3", "/bucket/?a=x+y&b=x%20y&c=%2B", "/bucket/?q=%41%7e&r=a;b&&s=", "/bucket/?x=a=b/c?d:e@f,g",
                   "/bucket/?prefix=%E2%82%AC&marker=%25", "/bucket/?", "/bucket/?=v&%3D=w", "/bucket/k?%zz=1")
        for target in targets:
            self.assertIn(self.ask(box, "GET", target)[0], (200, 404), target)
        self.good(len(targets))

    def test_paths_of_other_services(self):
        """Other services than S3 sign a path that is escaped once more, without empty segments."""
        box = self.box("inject: sigv4, region: us-east-1, service: bedrock")
        targets = ("/model/anthropic.claude%3A0/invoke", "/model/a:b@c/x", "/a//b///c/", "/a%20b", "/arn%3Aaws%3Ax%2Fy", "//", "/%25", "/a/%2E%2E/b")
        for target in targets:
            self.assertEqual(self.ask(box, "GET", target)[0], 200, target)
        self.good(len(targets))

    def test_token(self):
        self.origin.keys = (KEY_ID, SECRET, TOKEN)
        for name in ("aws-token", "aws-json"):
            box = self.box(name=name)
            fields = sign("GET", URL + "/bucket/", [("x-amz-content-sha256", EMPTY), ("X-Amz-Security-Token", "mine"), ("x_amz_security_token", "m2")], EMPTY)
            self.assertEqual(self.ask(box, "GET", "/bucket/", fields)[0], 200)
        self.good(2)

    def test_own_token_is_not_sent(self):
        fields = sign("GET", URL + "/bucket/", [("x-amz-content-sha256", EMPTY), ("X-Amz-Security-Token", "mine")], EMPTY)
        self.assertEqual(self.ask(self.box(), "GET", "/bucket/", fields)[0], 200)
        self.assertNotIn("x-amz-security-token", json.dumps(self.good()[0]["headers"]).lower())

    def test_connection_cannot_name_it(self):
        names = "x-amz-date, authorization, x-amz-content-sha256, x-amz-security-token"
        self.assertEqual(self.ask(self.box(), "GET", "/bucket/", [("Connection", names), ("x-amz-content-sha256", EMPTY)])[0], 200)
        self.good()

    def test_placeholder_as_key_id(self):
        box = self.box(S3 + ", env: AWS_ACCESS_KEY_ID")
        key_id = box.sh("printf %s $AWS_ACCESS_KEY_ID").out
        self.assertIn("vethguard", key_id)
        fields = sign("GET", URL + "/bucket/", [("x-amz-content-sha256", EMPTY)], EMPTY, key_id=key_id)
        self.assertEqual(self.ask(box, "GET", "/bucket/", fields)[0], 200)
        query = f"X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential={key_id}%2F20260101%2Fus-east-1%2Fs3%2Faws4_request&X-Amz-Date=20260101T000000Z&X-Amz-Expires=60&X-Amz-SignedHeaders=host&X-Amz-Signature=00"
        self.ask(box, "GET", "/bucket/?" + query)
        self.good(2)
        self.assertEqual(box.events(FINDING), [])
        self.ask(box, "GET", f"/bucket/?prefix={key_id}")
        self.assertIn(["placeholder-leak"], [e["finding_info"]["types"] for e in box.events(FINDING)])

    def test_response_is_as_it_came(self):
        """A signing key is never sent, so no response has to be searched for it: ranges and codings stay."""
        self.origin.objects["/bucket/k"] = bytes(range(256))
        box = self.box()
        done = box.sh(f"curl -sS -D /dev/stderr -H 'Range: bytes=2-5' -H 'Accept-Encoding: br' {URL}/bucket/k | od -An -tx1")
        self.assertEqual(done.out.split(), ["02", "03", "04", "05"])
        self.assertIn("206", done.err)
        self.assertIn(["Accept-Encoding", "br"], [[n.title(), v] for n, v in self.good()[0]["headers"]])

    def test_http2(self):
        box = self.box("inject: sigv4, region: us-east-1, service: [s3, dynamodb]")
        done = box.sh(f"head -c 300000 /dev/zero | curl -sS --http2 --aws-sigv4 aws:amz:us-east-1:dynamodb -u AKID:x -H 'X-Amz-Target: a.b' --data-binary @- {URL}/ -w '%{{http_version}} %{{http_code}}'")
        self.assertTrue(done.out.endswith("2 200"), done)
        self.assertIn('"Got": 300000', done.out)
        self.good()

    def test_require(self):
        box = self.box(S3 + ", require: true")
        fields = sign("GET", URL + "/bucket/", [("x-amz-content-sha256", EMPTY), ("X-Amz-Security-Token", "mine")], EMPTY)
        self.assertEqual(self.ask(box, "GET", "/bucket/", [*fields, ("Cookie", "a=b")])[0], 200)
        self.assertNotIn("cookie", json.dumps(self.good()[0]["headers"]).lower())
        self.assertEqual(self.ask(box, "GET", "/bucket/?token=mine", fields)[0], 403)
        self.assertEqual(self.ask(box, "GET", "/bucket/", [*fields, ("X-Api-Key", "mine")])[0], 403)
        self.good()


class Refused(Signing):
    """Requests that are not signed, and why."""

    def test_scopes(self):
        box = self.box("inject: sigv4, region: [us-east-1, eu-west-1], service: [s3, sts]")
        does_not_name = "a region or service that the policy's credential does not name"
        for region, service, words in (("us-west-2", "s3", does_not_name), ("us-east-1", "iam", does_not_name), ("us-east-1", "S3", does_not_name),
                                       ("us-east-1 eu-west-1", "s3", "cannot be read"), ("", "s3", "cannot be read"), ("eu", "s3", does_not_name)):
            with self.subTest(region=region, service=service):
                fields = sign("GET", URL + "/bucket/", [("x-amz-content-sha256", EMPTY)], EMPTY, region=region, service=service)
                self.refused(box, self.ask(box, "GET", "/bucket/", fields), 403, "signature", words)
        self.refused(box, self.ask(box, "GET", "/bucket/"), 403, "signature", "names several regions or services")
        self.refused(box, self.ask(box, "GET", "/bucket/", [("Authorization", "Bearer x")]), 403, "signature", "names several regions or services")

    def test_signatures(self):
        box = self.box()
        good = dict(sign("GET", URL + "/bucket/", [], EMPTY))["Authorization"]
        unread, twice = "cannot be read", "more than one signature"
        presigned = "X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=A%2F20260101%2Fus-east-1%2Fs3%2Faws4_request&X-Amz-SignedHeaders=host&X-Amz-Signature=00"
        for path, fields, words in (
                ("/", [("Authorization", good.replace("AWS4-HMAC-SHA256", "AWS4-ECDSA-P256-SHA256"))], "Signature Version 4A"),
                ("/?" + presigned.replace("AWS4-HMAC-SHA256", "AWS4-ECDSA-P256-SHA256"), [], "Signature Version 4A"),
                ("/?" + presigned + "&X-Amz-Region-Set=*", [], "Signature Version 4A"),
                ("/", [("x-amz-content-sha256", "STREAMING-AWS4-ECDSA-P256-SHA256-PAYLOAD")], "Signature Version 4A"),
                ("/", [("Authorization", "AWS AKID:c2ln")], "Signature Version 2"),
                ("/?AWSAccessKeyId=A&Signature=b&Expires=1", [], "Signature Version 2"),
                ("/", [("Authorization", good), ("Authorization", good)], twice),
                ("/?" + presigned, [("Authorization", good)], twice),
                ("/?" + presigned + "&x-amz-signature=11", [], twice),
                ("/?" + presigned.replace("aws4_request", "aws5"), [], unread),
                ("/?" + presigned.replace("X-Amz-Signature=00", "x=1"), [], unread),
                ("/?" + presigned + "&X-Amz-Expires=-1", [], unread),
                ("/?" + presigned.replace("host", "a" * 6000), [], unread),
                ("/", [("Authorization", good.replace("aws4_request", "aws4"))], unread),
                ("/", [("Authorization", good.replace("Credential=", "Credential=a,Credential="))], unread),
                ("/", [("Authorization", good.replace("SignedHeaders", "Signed"))], unread),
                ("/", [("Authorization", good.partition(", Signature")[0])], unread),
                ("/", [("Authorization", "AWS4-HMAC-SHA256 x")], unread),
                ("/", [("x-amz-content-sha256", "STREAMING-AWS4-HMAC-SHA256-EVENTS")], "stream of signed events"),
                ("/", [("x-amz-content-sha256", "STREAMING-SOMETHING")], "unknown way"),
                ("/", [("x-amz-content-sha256", EMPTY[:-1])], "unknown way"),
                ("/", [("x-amz-content-sha256", EMPTY), ("X-Amz-Content-Sha256", "UNSIGNED-PAYLOAD")], "says twice"),
                ("/?" + presigned, [("x-amz-content-sha256", "STREAMING-AWS4-HMAC-SHA256-PAYLOAD")], "presigned URL cannot have")):
            with self.subTest(path=path[:80], words=words):
                self.refused(box, self.ask(box, "GET", path, fields), 403, "signature", words)

    def test_values(self):
        for name, words in (("aws-half", "has no access key id and secret"), ("aws-broken", "begins like JSON, but is not JSON"),
                            ("aws-escape", "with an escape in it")):
            with self.subTest(name):
                box = self.box(name=name)
                self.assertEqual(self.ask(box, "GET", "/bucket/")[0], 502)
                self.assertIn(words, json.dumps(box.event(HTTP, status_code="credential")))
        self.assertEqual(self.origin.asked, [])

    def test_no_plain_http(self):
        r = self.run_vethguard(policy("{to: 'http://api.lab.test', credential: aws}", credentials=credential()), ["true"])
        self.assertIn("never sent over plain http", r.stderr)


class Bodies(Signing):
    DATA = bytes(range(256)) * 1200

    def put(self, box, fields, body, **kw):
        return self.ask(box, "PUT", "/bucket/k", fields, body, **kw)

    def chunked(self, datas, trailer=(), more=()):
        word = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD" + ("-TRAILER" if trailer else "")
        fields = sign("PUT", URL + "/bucket/k", [("x-amz-content-sha256", word), ("x-amz-decoded-content-length", str(sum(map(len, datas)))), *more], word)
        return fields, signed_chunks(fields, datas, trailer)

    def test_words(self):
        box = self.box()
        digest = hashlib.sha256(self.DATA).hexdigest()
        for i, (fields, word) in enumerate((([("x-amz-content-sha256", digest)], digest), ([("x-amz-content-sha256", "UNSIGNED-PAYLOAD")], "UNSIGNED-PAYLOAD"),
                                            ([], "UNSIGNED-PAYLOAD"))):
            self.assertEqual(self.put(box, fields, self.DATA)[0], 200)
            self.assertEqual(self.good(i + 1)[i]["word"], word)
            self.assertEqual(self.origin.objects.pop("/bucket/k"), self.DATA)

    def test_wrong_hash_is_the_services_to_find(self):
        self.assertEqual(self.put(self.box(), [("x-amz-content-sha256", EMPTY)], b"other")[0], 403)
        self.assertIn("another hash", self.origin.asked[0]["why"])

    def test_held(self):
        """Another service than S3 has to be told the hash of a body before it comes."""
        box = self.box("inject: sigv4, region: us-east-1, service: dynamodb")
        target = ("X-Amz-Target", "a.b")
        for i, (fields, body, length) in enumerate((([], b"{}", True), ([("Expect", "100-continue")], b"{}", True), ([], self.DATA * 10, True),
                                                    ([("Transfer-Encoding", "chunked")], b"3\r\nabc\r\n2;x=y\r\nde\r\n0\r\nT: x\r\n\r\n", False),
                                                    ([("Transfer-Encoding", "chunked")], b"0\r\n\r\n", False))):
            answer = self.ask(box, "POST", "/", [target, *fields], body, length=length)
            self.assertEqual(answer[0], 200, answer)
            seen = dict((n.lower(), v) for n, v in self.good(i + 1)[i]["headers"])
            self.assertEqual(int(seen["content-length"]), json.loads(answer[1])["Got"])
            self.assertNotIn("transfer-encoding", seen)

    def test_a_rule_that_reads_the_body(self):
        """One body is held once, for both: what the rule asks for, and its hash."""
        rule = "{to: '%s', methods: [POST], json: {TableName: 't*'}, credential: aws}" % URL
        box = self.sandbox(policy(rule, credentials=credential("inject: sigv4, region: us-east-1, service: dynamodb")))
        for i, (fields, length) in enumerate((([], True), ([("Expect", "100-continue")], True), ([("Transfer-Encoding", "chunked")], False))):
            body = b'{"TableName":"t1"}' if length else b'12\r\n{"TableName":"t1"}\r\n0\r\n\r\n'
            answer = self.ask(box, "POST", "/", [("X-Amz-Target", "a.b"), ("Content-Type", "application/json"), *fields], body, length=length)
            self.assertEqual(answer[0], 200, answer)
            self.assertEqual(json.loads(answer[1])["Got"], 18)
            self.good(i + 1)
        for body in (b'{"TableName":"x"}', b'{"TableName":"t1","TableName":"t1"}', b"{}", b""):
            self.assertEqual(self.ask(box, "POST", "/", [("X-Amz-Target", "a.b"), ("Content-Type", "application/json")], body)[0], 403)
        fields = sign("POST", URL + "/", [("x-amz-content-sha256", "STREAMING-AWS4-HMAC-SHA256-PAYLOAD"), ("x-amz-decoded-content-length", "18"),
                                          ("Content-Type", "application/json")], "STREAMING-AWS4-HMAC-SHA256-PAYLOAD")
        self.assertEqual(self.ask(box, "POST", "/", fields, signed_chunks(fields, [b'{"TableName":"t1"}']))[0], 403)
        self.good(3)

    def test_held_up_to_a_bound(self):
        box = self.box("inject: sigv4, region: us-east-1, service: dynamodb")
        for n, status in ((16 << 20, 200), ((16 << 20) + 1, 413)):
            done = box.sh(f"head -c {n} /dev/zero | curl -sS -H 'X-Amz-Target: a.b' -T - -X POST {URL}/ -o /dev/null -w '%{{http_code}}'")
            self.assertEqual(done.out, str(status), done)
            done = box.sh(f"head -c {n} /dev/zero >/tmp/big; curl -sS -H 'X-Amz-Target: a.b' -H Expect: --data-binary @/tmp/big {URL}/ -w '%{{http_code}}'; rm /tmp/big")
            self.assertTrue(done.out.endswith(str(status)), done)
        self.assertIn("has to be whole before it can be signed", done.out)
        self.good(2)

    def test_chunks(self):
        box = self.box()
        cases = (([b""], ()), ([b"x"], ()), ([self.DATA[:65536], self.DATA[65536:131072], b"rest"], ()), ([bytes(1 << 20), b"y" * 8192], ()),
                 ([b"abc"], ("x-amz-checksum-crc32:NSRBwg==",)), ([self.DATA], ("x-amz-checksum-crc32:AAAAAA==", "x-amz-checksum-sha1:x")))
        for i, (datas, trailer) in enumerate(cases):
            fields, body = self.chunked([d for d in datas if d], trailer, [("x-amz-trailer", t.partition(":")[0]) for t in trailer[:1]])
            answer = self.put(box, fields, body)
            self.assertEqual(answer[0], 200, answer)
            self.assertEqual(self.good(i + 1)[i]["body"], len(body))
            self.assertEqual(self.origin.objects["/bucket/k"], b"".join(datas))
            self.assertEqual(len(self.origin.asked[i]["trailers"]), len(trailer) + bool(trailer))

    def test_chunks_with_worthless_signatures(self):
        """Only their places count. Lines of the trailer may end in LF, and may follow an empty line, as some clients write them."""
        box = self.box()
        word = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER"
        fields = [("x-amz-content-sha256", word), ("x-amz-decoded-content-length", "3"), ("x-amz-trailer", "x-amz-checksum-crc32")]
        zeros = b"0" * 64
        begin = b"3;chunk-signature=" + zeros + b"\r\nabc\r\n0;chunk-signature=" + zeros + b"\r\n"
        for i, rest in enumerate((b"x-amz-checksum-crc32:x\nx-amz-trailer-signature:" + zeros + b"\r\n\r\n",
                                  b"\r\nX-Amz-Checksum-Crc32: x \r\n\r\nx-amz-trailer-signature:" + zeros + b"\r\n\r\n",
                                  b"x-amz-checksum-crc32:x\n\r\nX-Amz-Trailer-Signature:" + zeros + b"\n",
                                  b"x-amz-trailer-signature:" + zeros + b"\r\n\r\n")):
            self.assertEqual(self.put(box, fields, begin + rest)[0], 200 if i != 2 else 403)
        self.assertEqual([r["why"] for r in self.origin.asked if "does not" in (r["why"] or "")], [])

    def test_trailer_that_is_not_signed(self):
        body = b"3\r\nabc\r\n0\r\nx-amz-checksum-crc32:NSRBwg==\r\n\r\n"
        fields = [("x-amz-content-sha256", "STREAMING-UNSIGNED-PAYLOAD-TRAILER"), ("x-amz-decoded-content-length", "3"), ("Content-Encoding", "aws-chunked")]
        self.assertEqual(self.put(self.box(), fields, body)[0], 200)
        self.good()
        self.assertEqual(self.origin.objects["/bucket/k"], b"abc")

    def test_chunks_that_are_none(self):
        box = self.box()
        fields, body = self.chunked([b"abc", b"defg"])
        size, signature = body.split(b"\r\n")[0].split(b";")
        for bad, status, words in ((body.replace(b"3;", b"2;", 1), 400, "more data than it says"), (body.replace(b"3;", b"4;", 1), 400, "CR LF"),
                                   (body[:-2], 400, "ends before its last chunk"), (body[:-9], 400, "ends before its last chunk"), (b"", 400, "ends before its last chunk"),
                                   (body + b"x", 400, "goes on after its last chunk"), (b"abc", 400, "ends before"), (b"x" * 2000, 400, "too long"),
                                   (body.replace(signature, signature[:-1], 1), 400, "not in signed chunks"), (body.replace(signature, b"", 1), 400, "not in signed chunks"),
                                   (body.replace(b"3;", b"3;x=y;", 1), 400, "not in signed chunks"), (body.replace(b"3;", b"-3;", 1), 400, "not in signed chunks"),
                                   (body.replace(b"3;", b"000000003;", 1), 400, "not in signed chunks"), (body.replace(b"\r\n", b"\n", 1), 400, "CR LF"),
                                   (b"100001;" + signature + b"\r\n" + bytes(100), 413, "more than 1 MiB")):
            with self.subTest(bad=bad[:100]):
                answer = self.put(box, fields, bad)
                self.assertEqual(answer[0], status, answer)
                self.assertIn(words, answer[1])
        self.assertEqual([r for r in self.origin.asked if r["why"] is None], [])

    def test_many_bytes_in_chunks(self):
        """They pass as they come: the worker does not hold them."""
        box = self.box()
        before = self.peak(box)
        zeros, n = "0" * 64, 48
        code = (f"s = tls('api.lab.test', {PORT}); chunk = b'100000;chunk-signature={zeros}\\r\\n' + bytes(1 << 20) + b'\\r\\n'; last = b'0;chunk-signature={zeros}\\r\\n\\r\\n'\n"
                f"s.sendall(request('PUT', '/bucket/k', {HOST!r}, 'x-amz-content-sha256: STREAMING-AWS4-HMAC-SHA256-PAYLOAD', 'x-amz-decoded-content-length: {n << 20}', f'Content-Length: {{{n} * len(chunk) + len(last)}}'))\n"
                f"for i in range({n}): s.sendall(chunk)\ns.sendall(last); answered(*Reader(s).response('PUT'))")
        done = box.py(code, timeout=120)
        self.assertEqual(done.json()["status"], 200, done)
        self.good()
        self.assertEqual(len(self.origin.objects.pop("/bucket/k")), n << 20)
        if not support.ASAN:  # an instrumented program keeps what was freed for a while
            self.assertLess(self.peak(box) - before, 24 << 10)

    def peak(self, box):
        worker = next(p for p, row in support.descendants(box.process.pid).items() if row[0] == "vethguard-worke")
        return support.memory_peak_kib(worker)


class Presigned(Signing):
    def url(self, path="/bucket/k", expires=300, names="host", service="s3", more=""):
        scope = urllib.parse.quote(f"AKIDSANDBOX/20260101/us-east-1/{service}/aws4_request", safe="")
        return (f"{path}?{more}X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential={scope}&X-Amz-Date=20260101T000000Z&X-Amz-Expires={expires}"
                f"&X-Amz-SignedHeaders={urllib.parse.quote(names, safe='')}&X-Amz-Signature={'0' * 64}")

    def test_get_and_put(self):
        for name, token in (("aws-keys", None), ("aws-token", TOKEN)):
            self.origin.keys = (KEY_ID, SECRET, token)
            self.origin.asked.clear()
            box = self.box(name=name)
            self.assertEqual(self.ask(box, "PUT", self.url(names="host;x-amz-meta-a"), [("X-Amz-Meta-A", "1")], b"data")[0], 200)
            self.assertEqual(self.ask(box, "GET", self.url(more="response-content-type=text%2Fplain&X-Amz-Security-Token=mine&"))[1], "data")
            put, get = self.good(2)
            self.assertEqual((put["form"], get["form"], get["word"]), ("query", "query", "UNSIGNED-PAYLOAD"))
            self.assertIn("X-Amz-Expires=300", get["path"])
            self.assertIn("response-content-type=text%2Fplain", get["path"])
            self.assertNotIn("mine", get["path"])
            self.assertNotIn("AKIDSANDBOX", get["path"])

    def test_another_service(self):
        """A token for a Kubernetes cluster is such a URL of STS; the body of a POST is held."""
        box = self.box("inject: sigv4, region: us-east-1, service: sts")
        query = self.url("/", names="host;x-k8s-aws-id", service="sts", more="Action=GetCallerIdentity&")
        self.assertEqual(self.ask(box, "GET", query, [("x-k8s-aws-id", "cluster")])[0], 200)
        self.assertEqual(self.ask(box, "POST", query, [("x-k8s-aws-id", "cluster")], b"a=b")[0], 200)
        self.assertIn("x-k8s-aws-id", self.good(2)[0]["names"])

    def test_upper_bound_of_the_url(self):
        box = self.box()
        self.assertIn(self.ask(box, "GET", self.url(more="x=" + "a" * 7000 + "&"))[0], (200, 404))
        self.good()
        self.assertIn(self.ask(box, "GET", self.url(more="x=" + "," * 7500 + "&"))[0], (431, 503))
        self.good()


class Hmac(support.Case):
    """Signatures by a template (inject: hmac), in the shapes of two public APIs: Binance, whose documentation has examples, and Coinbase
    Exchange."""
    BINANCE_SECRET = "NhqPtmdSJYdKjVHjA7PZj4Mge3R5YNiP1e3UZjInClVN65XAbvqqM6A7H5fATj0j"
    BINANCE = "inject: hmac, sign: '${query}${body}', query: signature, headers: {X-MBX-APIKEY: '${username}'}, username: my-key"
    COINBASE = ("inject: hmac, sign: '${timestamp}${method}${target}${body}', encoding: base64, secret-encoding: base64, username: my-key, "
                "headers: {CB-ACCESS-KEY: '${username}', CB-ACCESS-SIGN: '${signature}', CB-ACCESS-TIMESTAMP: '${timestamp}'}")
    API = "{to: 'https://api.lab.test', credential: api}"

    def box(self, rest, value=SECRET):
        path = support.LAB.write("hmac-secret", value + "\n", 0o600)
        return self.sandbox(policy(self.API, credentials=support.file_credential(rest=rest, path=path)))

    def ask(self, box, method, path, body=b"", fields=()):
        done = box.py(f"print(fetch('api.lab.test', {path!r}, {method!r}, fields={(*fields, f'Content-Length: {len(body)}')!r}, body={body!r})[0])")
        self.assertEqual(done.status, 0, done)
        return int(done.out)

    def last(self):
        row = self.seen("http")[-1]
        return row["path"], {n.lower(): v for n, v in row["headers"]}, row

    def test_binance(self):
        box = self.box(self.BINANCE, self.BINANCE_SECRET)
        query = "symbol=LTCBTC&side=BUY&type=LIMIT&timeInForce=GTC"
        rest = "quantity=1&price=0.1&recvWindow=5000&timestamp=1499827319559"
        self.ask(box, "GET", f"/api/v3/order?{query}&{rest}", fields=("X-MBX-APIKEY: mine",))
        path, headers, _ = self.last()
        self.assertEqual(path, f"/api/v3/order?{query}&{rest}&signature=c8db56825ae71d6d79447849e617115f4a920fa2acdcab2b053c4b2838bd6b71")
        self.assertEqual(headers["x-mbx-apikey"], "my-key")
        self.ask(box, "POST", f"/api/v3/order?{query}&signature=mine&s%69gnature=2", rest.encode())
        path, _, row = self.last()
        self.assertEqual(path, f"/api/v3/order?{query}&signature=0fd168b8ddb4876a0358a8d14d0c9f3da0e9b20c5d52b2a00fcf7d1c602f9a77")
        self.assertEqual((row["body"], row["sha256"]), (len(rest), hashlib.sha256(rest.encode()).hexdigest()))
        self.ask(box, "GET", "/api/v3/account")
        self.assertRegex(self.last()[0], "^/api/v3/account[?]signature=[0-9a-f]{64}$")

    def test_coinbase(self):
        key = base64.b64encode(SECRET.encode()).decode()
        box = self.box(self.COINBASE, key)
        for method, path, body in (("GET", "/accounts?limit=2&after=a%20b", b""), ("POST", "/orders", b'{"size": "0.01"}'), ("POST", "/orders", bytes(300000))):
            self.ask(box, method, path, body, ("CB-ACCESS-SIGN: mine", "cb_access_timestamp: 1", "CB-ACCESS-TIMESTAMP: 1", "Connection: cb-access-sign"))
            sent, headers, row = self.last()
            self.assertEqual((sent, row["body"]), (path, len(body)))
            text = headers["cb-access-timestamp"].encode() + method.encode() + path.encode() + body
            self.assertEqual(headers["cb-access-sign"], base64.b64encode(hmac.new(SECRET.encode(), text, hashlib.sha256).digest()).decode())
            self.assertLess(abs(int(headers["cb-access-timestamp"]) - time.time()), 60)
            self.assertEqual((headers["cb-access-key"], "cb_access_timestamp" in headers), ("my-key", False))

    def test_over_http2(self):
        rest = self.COINBASE.replace("secret-encoding: base64, ", "").replace("${body}", "${body-sha256}${host}${path}${query}${timestamp-ms}").replace("'${timestamp}'}", "'${timestamp-ms}'}")
        box = self.box(rest)
        done = box.sh("head -c 100000 /dev/zero | curl -sS --http2 --data-binary @- -w '%{http_version}' -o /dev/null 'https://api.lab.test/v2?a=1'")
        self.assertEqual(done.out, "2", done)
        _, headers, row = self.last()
        moment = headers["cb-access-timestamp"]
        text = moment[:-3] + "POST/v2?a=1" + row["sha256"] + "api.lab.test/v2a=1" + moment
        self.assertEqual(headers["cb-access-sign"], base64.b64encode(hmac.new(SECRET.encode(), text.encode(), hashlib.sha256).digest()).decode())

    def test_body_that_is_not_signed_is_not_held(self):
        box = self.box("inject: hmac, sign: '${method}', query: s")
        done = box.sh("head -c 20000000 /dev/zero | curl -sS -H Expect: -T - -o /dev/null -w '%{http_code}' https://api.lab.test/big")
        self.assertEqual(done.out, "200", done)

    def test_body_that_cannot_be_held(self):
        box = self.box(self.COINBASE.replace("secret-encoding: base64, ", ""))
        done = box.sh("head -c 16777217 /dev/zero | curl -sS -H Expect: -T - -o /dev/null -w '%{http_code}' https://api.lab.test/big")
        self.assertEqual(done.out, "413", done)
        self.assertEqual(self.seen("http"), [])

    def test_values_that_are_no_keys(self):
        for value in ("not base64!", "c2VjcmV0I", "abcde"):
            box = self.box(self.COINBASE, value)
            self.assertEqual(self.ask(box, "GET", "/x"), 502, value)
        self.assertEqual(self.seen("http"), [])

    def test_require(self):
        box = self.box(self.BINANCE + ", require: true")
        for path, fields, status in (("/x?signature=mine", (), 200), ("/x", ("X-MBX-APIKEY: mine",), 200), ("/x?token=mine", (), 403),
                                     ("/x", ("Authorization: Bearer mine",), 403), ("/x?sig=mine", (), 403)):
            self.assertEqual(self.ask(box, "GET", path, fields=fields), status, path)

    def test_placeholder(self):
        box = self.box(self.BINANCE + ", env: API_KEY")
        box.sh("curl -sS -o /dev/null -H X-MBX-APIKEY:$API_KEY https://api.lab.test/x")
        self.assertEqual(self.last()[1]["x-mbx-apikey"], "my-key")
        self.assertEqual(box.events(FINDING), [])
        box.sh("curl -sS -o /dev/null -H X-Other:$API_KEY https://api.lab.test/x")
        self.assertEqual([e["finding_info"]["types"] for e in box.events(FINDING)], [["placeholder-leak"]])
