# SPDX-License-Identifier: Apache-2.0
"""The clients of AWS with a key that is worth nothing: awscli, boto3, the SDK for JavaScript, and curl's own signatures. Everything
they send is signed anew, and the origin verifies each signature (aws_origin.py)."""
import hashlib
import json
import os
import shutil
import unittest

import lab
import nodes
import support
from aws_origin import Origin
from support import HTTP, SECRET, policy

PORT = 8444
URL = f"https://api.lab.test:{PORT}"
KEY_ID, TOKEN = "AKIALABREALKEY000001", "FwoGZXIvLAB/session+token0123456789=="
# What a client finds inside. The key's id is the placeholder; the secret is any word.
ENV = {"AWS_SECRET_ACCESS_KEY": "worthless", "AWS_DEFAULT_REGION": "us-east-1", "AWS_EC2_METADATA_DISABLED": "true", "HOME": "/tmp"}

BOTO3 = """
import boto3, io, json, sys, urllib.request
from boto3.s3.transfer import TransferConfig
from botocore.config import Config
url, got = sys.argv[1], {}
plain = Config(retries={"max_attempts": 1}, s3={"addressing_style": "path"})
s3 = boto3.client("s3", endpoint_url=url, config=plain)
body = bytes(range(256)) * 1000
s3.put_object(Bucket="bucket", Key="a key+with (odd) signs/\\u00e4~", Body=body, Metadata={"a": "b  c"})
got["whole"] = s3.get_object(Bucket="bucket", Key="a key+with (odd) signs/\\u00e4~")["Body"].read() == body
got["range"] = list(s3.get_object(Bucket="bucket", Key="a key+with (odd) signs/\\u00e4~", Range="bytes=1-3")["Body"].read())
big = bytes(range(251)) * 80000
small = TransferConfig(multipart_threshold=5 << 20, multipart_chunksize=5 << 20)
s3.upload_fileobj(io.BytesIO(big), "bucket", "big", Config=small)
out = io.BytesIO(); s3.download_fileobj("bucket", "big", out, Config=small)
got["big"] = out.getvalue() == big
got["listed"] = sorted(o["Key"] for o in s3.list_objects_v2(Bucket="bucket", Prefix="b")["Contents"])
got["presigned"] = urllib.request.urlopen(boto3.client("s3", endpoint_url=url, config=plain.merge(Config(signature_version="s3v4"))).generate_presigned_url("get_object", Params={"Bucket": "bucket", "Key": "big"}, ExpiresIn=60)).read() == big
got["tables"] = boto3.client("dynamodb", endpoint_url=url).list_tables()["TableNames"]
got["arn"] = boto3.client("sts", endpoint_url=url).get_caller_identity()["Arn"]
try:
    boto3.client("s3", endpoint_url=url, region_name="eu-west-9", config=plain).list_objects_v2(Bucket="bucket")
except Exception as e:
    got["other"] = e.response["ResponseMetadata"]["HTTPStatusCode"]
print(json.dumps(got))
"""


class Aws(support.WithOrigin, support.Case):
    @classmethod
    def make_origin(cls):
        return Origin(lab.ORIGIN4, PORT, support.LAB.dir, (KEY_ID, SECRET, TOKEN))

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        support.LAB.write("aws-keys", json.dumps({"AccessKeyId": KEY_ID, "SecretAccessKey": SECRET, "SessionToken": TOKEN}, indent=2), 0o600)
        cls.text = policy(f"{{to: '{URL}', credential: aws}}", credentials=(
            f"  aws: {{source: 'file:{support.LAB.path('aws-keys')}', inject: sigv4, region: us-east-1, service: [s3, dynamodb, sts],"
            " env: AWS_ACCESS_KEY_ID}\n"))

    def setUp(self):
        super().setUp()
        self.origin.objects.clear()
        self.origin.parts.clear()
        self.box = self.sandbox(self.text)

    def client(self, *argv, **env):
        done = self.box.run(*argv, timeout=120, env={**ENV, **env})
        self.assert_no_secret(done.out_bytes + done.err_bytes)
        self.assertEqual([r["why"] for r in self.origin.asked if r["why"]], [], done)
        self.assertNotIn("worthless", json.dumps(self.origin.asked))
        return done

    @unittest.skipUnless(os.path.isdir("/usr/lib/python3/dist-packages/boto3"), "needs boto3")
    def test_boto3(self):
        done = self.client(support.PYTHON, "-c", BOTO3, URL)
        self.assertEqual(done.status, 0, done)
        self.assertEqual(done.json(), {"whole": True, "range": [1, 2, 3], "big": True, "listed": ["a key+with (odd) signs/\u00e4~", "big"], "presigned": True, "tables": ["one"],
                                       "arn": "arn:aws:iam::1:user/real", "other": 403})
        self.assertGreater(len(self.origin.asked), 12)
        self.assertEqual({r["service"] for r in self.origin.asked}, {"s3", "dynamodb", "sts"})
        self.assertEqual(self.box.event(HTTP, status_code="signature")["action_id"], 2)

    @unittest.skipUnless(shutil.which("aws"), "needs awscli")
    def test_awscli(self):
        data = bytes(range(256)) * 40000
        with open(support.LAB.path("aws-data"), "wb") as f:
            f.write(data)
        aws = f"aws --endpoint-url {URL} --no-cli-pager"
        done = self.client("sh", "-ec", f"{aws} s3 cp {support.LAB.path('aws-data')} s3://bucket/data --no-progress; {aws} s3 ls s3://bucket/; "
                           f"{aws} s3 cp s3://bucket/data - | sha256sum; {aws} s3api head-object --bucket bucket --key data --query ContentLength; "
                           f"{aws} sts get-caller-identity --query Arn; {aws} dynamodb list-tables --query TableNames; {aws} s3 rm s3://bucket/data")
        self.assertEqual(done.status, 0, done)
        for words in (hashlib.sha256(data).hexdigest(), str(len(data)), "arn:aws:iam::1:user/real", '"one"'):
            self.assertIn(words, done.out)
        self.assertEqual(self.origin.objects, {})

    @nodes.needs_packages
    def test_javascript(self):
        folder = support.LAB.path("aws-js")
        os.makedirs(folder, exist_ok=True)
        shutil.copy(os.path.join(nodes.SCRIPTS, "aws.mjs"), folder)
        if not os.path.lexists(folder + "/node_modules"):
            os.symlink(nodes.MODULES, folder + "/node_modules")
        done = self.client("node", folder + "/aws.mjs", URL)
        self.assertEqual(done.status, 0, done)
        self.assertEqual(done.json(), {"whole": True, "range": "js j", "length": 600000, "listed": 1, "presigned": 600000, "gone": "NoSuchKey",
                                       "tables": ["one"], "other": 403})
        self.assertIn("STREAMING-UNSIGNED-PAYLOAD-TRAILER", {r["word"] for r in self.origin.asked})

    @unittest.skipUnless(shutil.which("curl"), "needs curl")
    def test_curl(self):
        done = self.client("sh", "-c", f"printf hello | curl -sS --aws-sigv4 aws:amz:us-east-1:s3 -u $AWS_ACCESS_KEY_ID:x -T - {URL}/bucket/c -H 'x-amz-content-sha256: UNSIGNED-PAYLOAD' -w '%{{http_code}}'; "
                           f"curl -sS --aws-sigv4 aws:amz:us-east-1:s3 -u $AWS_ACCESS_KEY_ID:x {URL}/bucket/c")
        self.assertTrue(done.out.endswith("200hello"), done)
