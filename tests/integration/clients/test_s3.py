# SPDX-License-Identifier: Apache-2.0
"""boto3 and the aws command line against an origin that checks AWS Signature Version 4 over what arrived.

The keys are the sandbox's own: vethguard attaches no signature, so what these tests show is that a signed request stays
valid on its way (host, path, query, signed fields and body as they were signed), and that policy applies to it."""
import hashlib
import json
import os
import textwrap
import unittest

import outside
import support
from outside import Client
from support import PYTHON

KEYS = {"AWS_ACCESS_KEY_ID": "AKIALABLABLABLABLAB1", "AWS_SECRET_ACCESS_KEY": "lab-signing-key-that-the-sandbox-knows",
        "AWS_DEFAULT_REGION": "eu-central-1", "AWS_EC2_METADATA_DISABLED": "true", "AWS_PAGER": "",
        "AWS_MAX_ATTEMPTS": "1"}
RULES = ("{to: 'https://token.one.lab.test', methods: [GET, HEAD, PUT], credential: store}",
         "{to: ['https://s3.one.lab.test', 'https://s3.real.lab.test'], methods: [GET, HEAD, PUT], paths: ['/s3/bucket/**']}",)

PROGRAM = """
    import boto3, json, hashlib, sys, botocore
    from botocore.config import Config
    s3 = boto3.client("s3", endpoint_url=sys.argv[1] + "/s3", config=Config(s3={"addressing_style": "path"}))
    data = open(sys.argv[2], "rb").read()
    out = []
    for key in ("plain.bin", "a b+c/d&e=f~g", "\\u00fcber.txt", "x%2Fy", "semi;colon"):
        s3.put_object(Bucket="bucket", Key=key, Body=data, Metadata={"who": "lab"})
        out.append(hashlib.sha256(s3.get_object(Bucket="bucket", Key=key)["Body"].read()).hexdigest())
    print(json.dumps(out))"""

DENIED = """
    import boto3, sys
    from botocore.config import Config
    s3 = boto3.client("s3", endpoint_url=sys.argv[1] + "/s3", config=Config(s3={"addressing_style": "path"}))
    getattr(s3, sys.argv[2])(Bucket=sys.argv[3], Key="k", **({"Body": b"x" * 100000} if sys.argv[2] == "put_object" else {}))"""


class Boto3(Client):
    RULES = RULES
    CREDENTIALS = {"store": "inject: bearer"}
    ENV = KEYS

    @classmethod
    def prepare(cls):
        cls.data = os.urandom(300000)
        with open(support.LAB.path("object.bin"), "wb") as f:
            f.write(cls.data)

    def python(self, box, code, *argv, **kw):
        return box.run(PYTHON, "-c", textwrap.dedent(code), *argv, **kw)

    def objects(self, host, protocol):
        def check(box, word):
            done = self.python(box, PROGRAM, f"https://{host}", support.LAB.path("object.bin"))
            self.assert_ok(done)
            self.assertEqual(set(json.loads(done.out)), {hashlib.sha256(self.data).hexdigest()})
            row = self.assert_went(box, protocol, method="PUT", path="/s3/bucket/plain.bin")
            self.assertEqual(row["body"], len(self.data))
            return row
        self.each(check)

    def test_objects_and_expect_100(self):
        """boto3 sends Expect: 100-continue with each PUT; this origin answers it only when the signature is right."""
        self.objects("s3.one.lab.test", "HTTP/1.1")

    def test_objects_by_h2(self):
        self.objects("s3.real.lab.test", outside.TO_UPSTREAM)

    def test_a_wrong_key(self):
        """The origin's refusal comes back in place of 100 Continue, as an error that boto3 understands."""
        def check(box, word):
            done = self.python(box, DENIED, "https://s3.one.lab.test", "put_object", "bucket",
                               env={"AWS_SECRET_ACCESS_KEY": "wrong"})
            self.assertNotEqual(done.status, 0)
            self.assertIn("SignatureDoesNotMatch", done.err)
            rows = self.seen("request")
            self.assertEqual({(r["body"], dict(r["headers"]).get("Expect", "").lower()) for r in rows}, {(0, "100-continue")}, rows)
        self.each(check)

    def test_a_key_that_is_no_canonical_path(self):
        """Dot segments are removed on the way, so that what was signed is not what arrives: the origin refuses it."""
        def check(box, word):
            done = self.python(box, DENIED.replace('Key="k"', 'Key="a/../b"'), "https://s3.one.lab.test", "put_object", "bucket")
            self.assertNotEqual(done.status, 0)
            self.assertIn("SignatureDoesNotMatch", done.err)
            self.assertEqual({r["path"] for r in self.seen("request")}, {"/s3/bucket/b"})
        self.each(check)

    def test_a_token_in_place_of_the_signature(self):
        """Stores that take a bearer token: the signature made with the sandbox's worthless keys is removed."""
        def check(box, word):
            done = self.python(box, PROGRAM, "https://token.one.lab.test", support.LAB.path("object.bin"),
                               env={"AWS_SECRET_ACCESS_KEY": "worthless"})
            self.assert_ok(done)
            self.assert_went(box, "HTTP/1.1", authenticated=True, method="PUT", path="/s3/bucket/plain.bin")
        self.each(check)

    def test_refused(self):
        def check(box, word):
            for method, bucket in (("delete_object", "bucket"), ("put_object", "another"), ("get_object", "another")):
                done = self.python(box, DENIED, "https://s3.one.lab.test", method, bucket)
                self.assert_refused(box, done)
                self.assertIn("403", done.err)
            self.assert_refused(box, self.python(box, DENIED, "https://evil.lab.test", "put_object", "bucket"))
        self.each(check)


@unittest.skipUnless(*outside.need("/usr/bin/aws"))
class AwsCli(Client):
    RULES = RULES
    CREDENTIALS = {"store": "inject: bearer"}
    ENV = KEYS

    @classmethod
    def prepare(cls):
        cls.data = os.urandom(200000)
        with open(support.LAB.path("aws.bin"), "wb") as f:
            f.write(cls.data)

    def aws(self, box, *argv, host="s3.one.lab.test"):
        return box.run("aws", "--endpoint-url", f"https://{host}/s3", *argv)

    def test_copy(self):
        def check(box, word):
            back = support.LAB.path(f"aws-{word}.bin")
            for host, protocol in (("s3.one.lab.test", "HTTP/1.1"), ("s3.real.lab.test", outside.TO_UPSTREAM)):
                self.assert_ok(self.aws(box, "s3", "cp", support.LAB.path("aws.bin"), f"s3://bucket/{word} x", host=host))
                self.assert_ok(self.aws(box, "s3", "cp", f"s3://bucket/{word} x", back, host=host))
                with open(back, "rb") as f:
                    self.assertEqual(f.read(), self.data)
                self.assert_went(box, protocol, host=host, method="PUT")
            self.assert_ok(self.aws(box, "--no-sign-request", "s3", "cp", support.LAB.path("aws.bin"), "s3://bucket/t", host="token.one.lab.test"))
            self.assert_went(box, "HTTP/1.1", authenticated=True, method="PUT")
        self.each(check)

    def test_refused(self):
        def check(box, word):
            self.assert_refused(box, self.aws(box, "s3", "cp", support.LAB.path("aws.bin"), "s3://another/x"))
            self.assert_refused(box, self.aws(box, "s3", "rm", "s3://bucket/x"))
        self.each(check)


del Client  # a base class, not a test
