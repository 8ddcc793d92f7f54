# SPDX-License-Identifier: Apache-2.0
"""Logins at AWS's STS inside the sandbox (source: sealed, inject: sigv4): the keys that STS gives stay outside, texts take their place, and
what the sandbox signs with a text is signed anew with the keys. boto3 and awscli against an origin that verifies each signature."""
import json
import os
import shutil
import unittest

import aws_origin
import lab
import support
from support import FINDING, HTTP, policy

PORT = 8464
HOST = "aws.wild.lab.test"
URL = f"https://{HOST}:{PORT}"
STS = f"https://sts.wild.lab.test:{PORT}"
KEYS = "  aws: {source: sealed, inject: sigv4, region: us-east-1, service: [s3, sts]}\n"
RULES = (f"{{to: '{STS}', methods: [POST], seal: aws}}", f"{{to: '{URL}', credential: aws}}", "https://www.lab.test")
ENV = {"AWS_DEFAULT_REGION": "us-east-1", "AWS_EC2_METADATA_DISABLED": "true", "HOME": "/tmp"}
FORM = "Content-Type: application/x-www-form-urlencoded"
LOGIN = "Action=AssumeRoleWithWebIdentity&Version=2011-06-15&RoleArn=arn:aws:iam::123456789012:role/x&RoleSessionName=s&WebIdentityToken=the-programs-own"

BOTO3 = """
import boto3, json, sys, urllib.request
from botocore import UNSIGNED
from botocore.config import Config
url, sts_url, got = sys.argv[1], sys.argv[2], {}
plain = Config(retries={"max_attempts": 1}, s3={"addressing_style": "path"}, signature_version="s3v4")

def keys(answer):
    c = answer["Credentials"]
    return dict(aws_access_key_id=c["AccessKeyId"], aws_secret_access_key=c["SecretAccessKey"], aws_session_token=c["SessionToken"])

def works(k):
    s3 = boto3.client("s3", endpoint_url=url, config=plain, **k)
    s3.put_object(Bucket="bucket", Key="a", Body=b"hello")
    link = s3.generate_presigned_url("get_object", Params={"Bucket": "bucket", "Key": "a"}, ExpiresIn=60)
    return [s3.get_object(Bucket="bucket", Key="a")["Body"].read() == b"hello", urllib.request.urlopen(link).read() == b"hello"]

first = keys(boto3.client("sts", endpoint_url=sts_url, config=Config(signature_version=UNSIGNED)).assume_role_with_web_identity(
    RoleArn="arn:aws:iam::123456789012:role/x", RoleSessionName="session", WebIdentityToken="the-programs-own"))
got["first"] = works(first)
sts = boto3.client("sts", endpoint_url=sts_url, **first)
second = keys(sts.assume_role(RoleArn="arn:aws:iam::123456789012:role/y", RoleSessionName="session"))
got["second"] = works(second)
got["session"] = works(keys(sts.get_session_token()))
got["arn"] = sts.get_caller_identity()["Arn"]
got["texts"] = [first["aws_access_key_id"], second["aws_access_key_id"], first["aws_secret_access_key"], first["aws_session_token"]]
print(json.dumps(got))
"""


class Origin(aws_origin.Origin):
    """The origin is STS as well: each login gives other keys, which are valid from then on. shape: an answer of a test's own to logins."""

    def __init__(self, *args):
        super().__init__(*args, {})
        self.shape, self.logins = None, []

    def sts(self, action):
        n = len(self.keys) + 1
        keys = f"ASIALABREALKEY{n:06d}", f"secretSECRETOFSTS{n:04d}/+zyxwvu", f"sessionSECRETOFSTS{n:04d}" + "t/+=" * 60
        self.keys[keys[0]] = keys
        return (f"<{action}Response xmlns=\"https://sts.amazonaws.com/doc/2011-06-15/\">\n<{action}Result>\n<Credentials>\n<AccessKeyId>{keys[0]}"
                f"</AccessKeyId>\n<SecretAccessKey>{keys[1]}</SecretAccessKey>\n<SessionToken>{keys[2]}</SessionToken>\n"
                f"<Expiration>2036-01-01T00:00:00Z</Expiration>\n</Credentials>\n</{action}Result>\n<ResponseMetadata><RequestId>1</RequestId>"
                f"</ResponseMetadata>\n</{action}Response>\n").encode()

    def unsigned(self, headers, body):
        """(status, fields, body) for a login without a signature; None: it has to be signed."""
        if b"Action=AssumeRoleWithWebIdentity" not in body:
            return None
        self.logins.append(dict(headers.items()))
        return self.shape or (200, {"Content-Type": "text/xml"}, self.sts("AssumeRoleWithWebIdentity"))

    def signed(self, body):
        return next((self.sts(a) for a in ("AssumeRole", "GetSessionToken") if f"Action={a}&".encode() in body), None)


class Sealed(support.WithOrigin, support.Case):
    @classmethod
    def make_origin(cls):
        return Origin(lab.ORIGIN4, PORT, support.LAB.dir)

    def setUp(self):
        super().setUp()
        self.origin.shape = None
        self.origin.logins.clear()
        self.origin.objects.clear()

    def box(self, rules=RULES, credentials=KEYS):
        return self.sandbox(policy(*rules, credentials=credentials))

    def clean(self, done):
        self.assertNotIn("SECRETOFSTS", done.out + done.err)
        self.assertNotIn("ASIALABREALKEY", done.out + done.err)
        return done

    def ask(self, box, path, body="", *fields, method="POST", host="sts.wild.lab.test", port=PORT):
        done = box.py(f"answered(*fetch({host!r}, {path!r}, {method!r}, {port}, {list((*fields, f'Content-Length: {len(body)}'))!r}, {body.encode()!r}))")
        self.assertEqual(done.status, 0, done)
        self.clean(done)
        return done.json()["status"], done.json()["body"]

    def login(self, box):
        status, body = self.ask(box, "/", LOGIN, FORM)
        self.assertEqual(status, 200, body)
        texts = {name: body.split(f"<{name}>")[1].split("<")[0] for name in ("AccessKeyId", "SecretAccessKey", "SessionToken")}
        self.assertEqual(len(set(texts.values())), 1, body)
        self.assertRegex(texts["AccessKeyId"], "^vethguard-aws-[0-9a-f]{32}-[0-9a-f]{16,18}$")
        return texts["AccessKeyId"]

    def signed(self, box, text, path="/bucket/", host=HOST, **kw):
        fields = aws_origin.sign("GET", f"https://{host}:{PORT}{path}", [("x-amz-security-token", text), ("x-amz-content-sha256", "UNSIGNED-PAYLOAD")],
                                 "UNSIGNED-PAYLOAD", text, text, **kw)
        return self.ask(box, path, "", *(f"{n}: {v}" for n, v in fields), method="GET", host=host)

    def findings(self, box):
        return [t for e in box.events(FINDING) for t in e["finding_info"]["types"]]


class Works(Sealed):
    def test_by_hand(self):
        box = self.box()
        text = self.login(box)
        self.assertEqual(self.signed(box, text)[0], 200)
        self.assertEqual([a["why"] for a in self.origin.asked], [None])
        self.assertEqual(self.findings(box), [])

    @unittest.skipUnless(os.path.isdir("/usr/lib/python3/dist-packages/boto3"), "needs boto3")
    def test_boto3(self):
        box = self.box()
        done = self.clean(box.run(support.PYTHON, "-c", BOTO3, URL, STS, timeout=120, env=ENV))
        self.assertEqual(done.status, 0, (done, [a["why"] for a in self.origin.asked]))
        got = done.json()
        texts = got.pop("texts")
        self.assertEqual(got, {"first": [True, True], "second": [True, True], "session": [True, True], "arn": "arn:aws:iam::1:user/real"})
        self.assertNotEqual(texts[0], texts[1])
        self.assertEqual([a["why"] for a in self.origin.asked if a["why"]], [])
        self.assertEqual(self.findings(box), [])

    @unittest.skipUnless(shutil.which("aws"), "needs awscli")
    def test_awscli(self):
        box = self.box()
        self.origin.objects["/bucket/b"] = b"hello\n"
        done = self.clean(box.run("sh", "-ec", f"""
aws --endpoint-url {STS} --no-sign-request sts assume-role-with-web-identity --role-arn arn:aws:iam::123456789012:role/x --role-session-name session \
    --web-identity-token the-programs-own --query Credentials --output json >/tmp/keys
set -- $(python3 -c 'import json; k = json.load(open("/tmp/keys")); print(k["AccessKeyId"], k["SecretAccessKey"], k["SessionToken"])')
export AWS_ACCESS_KEY_ID=$1 AWS_SECRET_ACCESS_KEY=$2 AWS_SESSION_TOKEN=$3
aws --endpoint-url {URL} s3 cp s3://bucket/b -""", timeout=120, env=ENV))
        self.assertEqual((done.status, done.out), (0, "hello\n"), (done, [a["why"] for a in self.origin.asked]))


class Stays(Sealed):
    def test_other_places(self):
        box = self.box()
        text = self.login(box)
        for fields, path, body in (((f"X: {text}",), "/", ""), ((), f"/?t={text}", ""), ((FORM,), "/", f"t={text}")):
            before = len(self.findings(box))
            self.assertEqual(self.ask(box, path, body, *fields, host="www.lab.test", port=443)[0], 403)
            self.assertGreater(len(self.findings(box)), before)

    def test_other_keys(self):
        """Requests signed with another sandbox's text, a cut text, keys of the program's own, and not signed."""
        box, text = self.box(), self.login(self.box())
        mine = self.login(box)
        for other in (text, mine[:-1], mine + "x", "AKIDOFITSOWN"):
            status, body = self.signed(box, other)
            self.assertIn(status, (403, 502), body)
        self.assertEqual(self.ask(box, "/bucket/", method="GET", host=HOST)[0], 403)
        self.assertEqual(self.origin.asked, [])

    def test_other_regions_and_services(self):
        box = self.box()
        text = self.login(box)
        for kw in ({"region": "eu-west-1"}, {"service": "dynamodb"}):
            self.assertEqual(self.signed(box, text, **kw)[0], 403)
            self.assertEqual(box.events(HTTP)[-1]["status_code"], "signature")
        self.assertEqual(self.origin.asked, [])

    def test_answers(self):
        box, xml = self.box(), {"Content-Type": "text/xml"}
        good = self.origin.sts("AssumeRole")
        for status, fields, body in (
                (302, {"Location": STS, **xml}, b""), (200, {"Content-Type": "application/json"}, b"{}"), (200, {"Content-Type": "text/html"}, good),
                (200, {"Content-Encoding": "gzip", **xml}, good), (200, {"Content-Type": "text/xml; charset=utf-16"}, good), (200, xml, good[:-5]), (200, xml, good * 2),
                (200, xml, b"<!DOCTYPE a>" + good), (200, xml, b"<!DOCTYPE a [<!ENTITY b 'c'>]>" + good), (200, xml, good.replace(b"<Expiration>", b"<!-- x --><Expiration>")),
                (200, xml, good.replace(b"ASIA", b"&#65;SIA")), (200, xml, good.replace(b"secretS", b"<![CDATA[s]]>")), (200, xml, good.replace(b"Credentials", b"Creds")),
                (200, xml, good.replace(b"SessionToken", b"Session")), (200, xml, good.replace(b"ASIA", b"AS:IA")), (200, xml, good.replace(b"</Credentials>", b"<SessionToken>x</SessionToken></Credentials>")),
                (200, xml, b" " * 50000), (200, xml, b"<a>" * 17 + b"</a>" * 17)):
            self.origin.shape = status, fields, body
            self.assertEqual(self.ask(box, "/", LOGIN, FORM)[0], 502, (status, fields, body[:300]))

    def test_echoes(self):
        box = self.box()
        good = self.origin.sts("AssumeRole")
        secret = good.split(b"<SecretAccessKey>")[1].split(b"<")[0]
        self.origin.shape = 200, {"Content-Type": "text/xml", "X-Echo": secret.decode()}, good.replace(b"<RequestId>1", b"<RequestId>" + secret)
        status, body = self.ask(box, "/", LOGIN, FORM)
        self.assertEqual(status, 200)
        self.assertIn("*" * len(secret), body)

    def test_errors_arrive(self):
        box = self.box()
        text = b'<ErrorResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><Error><Type>Sender</Type><Code>AccessDenied</Code><Message>not &quot;you&quot;</Message></Error></ErrorResponse>'
        self.origin.shape = 403, {"Content-Type": "text/xml"}, text
        self.assertEqual(self.ask(box, "/", LOGIN, FORM), (403, text.decode()))


del Sealed  # a base class, not a test
