# SPDX-License-Identifier: Apache-2.0
"""Credentials from the secret stores of AWS, Google and Azure: every way to log in, and every step that can fail in every way."""
import json
import subprocess
import unittest

import cloud_service
import lab
import support
from cloud_service import METADATA, REGION
from support import policy

PORT = 8449
ACCOUNT = {"role": "arn:aws:iam::1:role/agent"}


def url(name, fault="ok"):
    return f"https://{name}-{fault}.wild.lab.test:{PORT}"


class Cloud(support.Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        lab.sh("ip", "netns", "exec", "outside", "ip", "addr", "add", METADATA + "/32", "dev", "lo")
        lab.sh("ip", "route", "add", METADATA + "/32", "via", lab.ORIGIN4)
        cls.service = support.in_namespace("outside", lambda: cloud_service.Service(lab.ORIGIN4, PORT, support.LAB.dir))
        for name, text in (("keys", ":".join(cloud_service.GIVEN[:2])), ("identity", cloud_service.IDENTITY), ("federated", cloud_service.FEDERATED),
                           ("azure", cloud_service.CLIENT_SECRET)):
            support.LAB.write("cloud-" + name, text + "\n", 0o600)
        subprocess.run(["openssl", "genrsa", "-out", support.LAB.path("cloud.pem"), "2048"], check=True, capture_output=True)
        with open(support.LAB.path("cloud.pem")) as f:
            support.LAB.write("cloud-account", json.dumps({"client_email": "agent@p.iam.test", "private_key": f.read()}), 0o600)

    @classmethod
    def tearDownClass(cls):
        cls.service.close()
        lab.sh("ip", "route", "del", METADATA + "/32")
        lab.sh("ip", "netns", "exec", "outside", "ip", "addr", "del", METADATA + "/32", "dev", "lo")
        super().tearDownClass()

    def setUp(self):
        super().setUp()
        self.service.asked.clear()
        self.service.wrong.clear()
        self.service.faults.clear()
        self.service.claims.clear()
        self.service.expires_in = 3600

    def file(self, name):
        return "file:" + support.LAB.path("cloud-" + name)

    def box(self, sources, rest="inject: bearer"):
        rules = [f"{{to: 'https://api.lab.test', paths: ['/{name}'], credential: {name}}}" for name in sources]
        lines = "".join(f"  {name}: {{source: {json.dumps(source)}, {rest}}}\n" for name, source in sources.items())
        box = support.Sandbox(policy(*rules, credentials=lines))
        self.addCleanup(box.close)
        return box

    def asks(self, box, names):
        """The status of each request, one after the other."""
        urls = " ".join(f"-o /dev/null https://api.lab.test/{name}" for name in names)
        return box.sh(f"curl -sS -w '%{{http_code}}\\n' {urls}", timeout=120).out.split()

    def sent(self, name):
        return [v for r in self.seen("http", path="/" + name) for n, v in r["headers"] if n.lower() == "authorization"]

    # --- sources; `at` has URLs that fail ---

    def sm(self, at=(), **more):
        more = more or {"keys": self.file("keys")}
        return {"aws-secretsmanager": {"region": REGION, "secret": "api", "url": url("secretsmanager"), **more, **dict(at)}}

    def ssm(self, at=(), **more):
        return {"aws-ssm": {"region": REGION, "name": "/agent/api", "url": url("ssm"), **(more or {"keys": self.file("keys")}), **dict(at)}}

    def gcp(self, at=(), **more):
        more = more or {"key": self.file("account"), "token_url": url("gcp") + "/token"}
        return {"gcp-secretmanager": {"url": url("secretmanager"), "project": "p-1", "secret": "api", **more, **dict(at)}}

    def azure(self, at=(), **more):
        more = more or {"tenant_id": "tenant-1", "client_id": "client-1", "client_secret": self.file("azure"), "login_url": url("login")}
        return {"azure-keyvault": {"url": url("keyvault"), "secret": "api", **more, **dict(at)}}


class Works(Cloud):
    def test_every_login(self):
        sts = {**ACCOUNT, "sts_url": url("sts")}
        other = {"impersonate": "other@p.iam.test", "impersonation_url": url("iam")}
        key = {"key": self.file("account"), "token_url": url("gcp") + "/token"}
        client = {"tenant_id": "tenant-1", "client_id": "client-1", "login_url": url("login")}
        rows = {
            "given": (self.sm(), "secret-of-AKIDGIVEN"), "machine": (self.sm(version_stage="AWSPREVIOUS"), "AWSPREVIOUS-of-ASIAMACHINE"),
            "assumed": (self.sm(keys=self.file("keys"), **sts), "secret-of-ASIAROLE"), "chained": (self.sm(**sts, external_id="x"), "secret-of-ASIAROLE"),
            "identity": (self.sm(web_identity_token=self.file("identity"), **sts, session_name="agent-7"), "secret-of-ASIAROLE"),
            "field": (self.sm({"secret": "json", "field": "api"}), "field-of-AKIDGIVEN"), "ssm": (self.ssm(), "parameter-of-AKIDGIVEN"),
            "gcp": (self.gcp(), "secret-for-gcp-token-of-key"), "version": (self.gcp(**key, version="7"), "secret-for-gcp-token-of-key"),
            "gce": (self.gcp(version="latest"), "secret-for-gcp-token-of-machine"),
            "other": (self.gcp(**key, **other), "secret-for-gcp-token-of-other-by-key"), "gceother": (self.gcp(**other), "secret-for-gcp-token-of-other-by-machine"),
            "account": ({"gcp-service-account": {"token_url": url("gcp") + "/token", "key": self.file("account"), "scope": "https://scope.test/read", **other}},
                        "gcp-token-of-other-by-key"),
            "azure": (self.azure(), "secret-for-azure-token-secret"),
            "federated": (self.azure(**client, federated_token=self.file("federated"), version="v7"), "secret-for-azure-token-federated-v7"),
            "vm": (self.azure(version="v7"), "secret-for-azure-token-machine-v7"), "user": (self.azure(client_id="client-2"), "secret-for-azure-token-machine-client-2"),
        }
        box = self.box({name: source for name, (source, _) in rows.items()})
        self.assertEqual(self.asks(box, rows), ["200"] * len(rows), (box.stderr(), self.service.wrong))
        for name, (_, value) in rows.items():
            self.assertEqual(self.sent(name), ["Bearer " + value], name)
        self.assertEqual(self.service.wrong, [])
        asked = {a["step"]: a for a in self.service.asked}
        self.assertEqual(self.service.claims[-1]["scope"], "https://www.googleapis.com/auth/cloud-platform")
        self.assertEqual(json.loads(asked["iam"]["body"])["scope"], ["https://scope.test/read"])
        bodies = "".join(a["body"] for a in self.service.asked if a["step"] == "sts")
        for part in ("RoleSessionName=vethguard", "RoleSessionName=agent-7", "ExternalId=x", "DurationSeconds=3600"):
            self.assertIn(part, bodies)
        for secret in (*cloud_service.GIVEN[:2], *cloud_service.ROLE[1:], cloud_service.IDENTITY, cloud_service.CLIENT_SECRET, "secret-for-azure"):
            self.assertNotIn(secret, box.stderr())
            self.assert_no_secret(json.dumps(box.events()).encode(), secret)

    def test_keys_of_a_role_sign(self):
        """aws-role: what sigv4 signs with, until the role's keys end."""
        box = self.box({"a": {"aws-role": {"region": REGION, **ACCOUNT, "keys": self.file("keys"), "sts_url": url("sts")}}, "b": {"aws-role": {"region": REGION}}},
                       f"inject: sigv4, region: {REGION}, service: execute-api")
        self.assertEqual(self.asks(box, "ab"), ["200"] * 2, box.stderr())
        for name, key in (("a", cloud_service.ROLE), ("b", cloud_service.MACHINE)):
            request = self.seen("http", path="/" + name)[0]
            fields = {n.lower(): v for n, v in request["headers"]}
            self.assertIn(f"Credential={key[0]}/", fields["authorization"])
            self.assertEqual(fields["x-amz-security-token"], key[2])

    def test_a_role_ends(self):
        self.service.expires_in = 2
        box = self.box({"a": {"aws-role": {"region": REGION, **ACCOUNT, "keys": self.file("keys"), "sts_url": url("sts")}}},
                       f"inject: sigv4, region: {REGION}, service: execute-api")
        self.assertEqual(self.asks(box, "a"), ["200"])
        self.assertTrue(support.wait_until(lambda: self.asks(box, "a") == ["200"] and len(self.service.asked) > 1))


ANSWERS = {"error": "it answered 400: no such..2J client", "redirect": "a redirect, and none is followed", "busy": "it answered 429: slow_down",
           "huge": "longer than 1048576 bytes", "cut": "it cannot be asked", "flood": "longer than 1048576 bytes"}
NOT_JSON = {"html": "is not JSON|has no AccessKeyId", "deep": "is not JSON|has no AccessKeyId", "gzip": "is not JSON|has no AccessKeyId"}
WRONG = {"wrongtype": "has no|no access key id"}


class Fails(Cloud):
    def fails(self, rows):
        """rows: {name: (source, words)}. Each is refused for its own reason, and no request leaves."""
        while len(rows) > 60:  # a policy has 64 credentials at most
            self.fails(dict(list(rows.items())[:60]))
            rows = dict(list(rows.items())[60:])
        box = self.box({name: source for name, (source, _) in rows.items()}, "inject: bearer, timeout: 5s")
        self.assertEqual(self.asks(box, rows), ["502"] * len(rows), box.stderr())
        box.close()
        lines = box.stderr().splitlines()
        for name, (_, words) in rows.items():
            self.assertEqual(self.sent(name), [], name)
            mine = "\n".join(line for line in lines if f'credential "{name}"' in line)
            self.assertRegex(mine, words, (name, self.service.wrong))
        self.assertNotIn("\x1b", box.stderr())
        for secret in (*cloud_service.GIVEN[1:2], *cloud_service.ROLE[1:], cloud_service.IDENTITY, cloud_service.FEDERATED, cloud_service.CLIENT_SECRET):
            self.assertNotIn(secret, box.stderr())

    def test_every_step_in_every_way(self):
        """Each step of each login gives each answer that is none."""
        sts = {**ACCOUNT, "keys": self.file("keys")}
        key = {"key": self.file("account")}
        client = {"tenant_id": "tenant-1", "client_id": "client-1", "client_secret": self.file("azure")}
        other = {**key, "token_url": url("gcp") + "/token", "impersonate": "other@p.iam.test"}
        xml = {"xmltwice": "has no AccessKeyId", "entity": "has no AccessKeyId", "lines": "session token is too long, or holds a character"}
        steps = {
            "sm": (lambda f, n: self.sm({"url": url("secretsmanager", f)}), {"binary": "has no string SecretString", "denied": "User is not authorized"}, ""),
            "ssm": (lambda f, n: self.ssm({"url": url("ssm", f)}), {}, ""),
            "sts": (lambda f, n: self.sm({"url": url("secretsmanager", n)}, **sts, sts_url=url("sts", f)), {**xml, "denied": "not authorized to perform"}, "STS: "),
            "gcp": (lambda f, n: self.gcp({"url": url("secretmanager", n)}, **key, token_url=url("gcp", f)), {"lines": "a line end or another control"}, ""),
            "iam": (lambda f, n: self.gcp({"url": url("secretmanager", n)}, **other, impersonation_url=url("iam", f)), {"denied": "Permission denied on"},
                    "the account to impersonate: |accessToken"),
            "secret": (lambda f, n: self.gcp({"url": url("secretmanager", f)}), {"base64": "no payload.data", "denied": "Permission denied on"}, ""),
            "login": (lambda f, n: self.azure({"url": url("keyvault", n)}, **client, login_url=url("login", f)), {"lines": "a line end or another control"}, ""),
            "vault": (lambda f, n: self.azure({"url": url("keyvault", f)}), {"denied": "Permission denied on"}, ""),
        }
        rows = {}
        for step, (source, own, who) in steps.items():
            for fault, words in {**ANSWERS, **NOT_JSON, **WRONG, **own}.items():
                name = f"{step}-{fault}"
                rows[name] = (source(fault, "of-" + name), words if fault != "wrongtype" else words + "|" + (who or "has no"))
        self.fails(rows)
        self.assertNotIn("X-Injected", json.dumps(self.service.asked))

    def test_the_machine_in_every_way(self):
        aws, gcp, azure = (lambda n: self.sm({"url": url("secretsmanager", n)}, version_stage="x"), lambda n: self.gcp({"url": url("secretmanager", n)}, version="1"),
                           lambda n: self.azure({"url": url("keyvault", n)}, version="v7"))
        ways = {"error": "no such", "redirect": "a redirect, and none", "huge": "longer than", "cut": "it cannot be asked"}
        for step, own in (("imds-token", {}), ("imds-role", {"path": "is not a role's name", "html": "is not a role's name"}),
                          ("imds-keys", {"html": "is not JSON", "wrongtype": "no access key id"})):
            for fault, words in {**ways, **own}.items():
                self.service.faults = {step: fault, "gcp-metadata": fault, "azure-metadata": fault}
                rows = {"a": (aws(f"{step}-{fault}"), "the machine's metadata: .*(" + words + ")")}
                if step == "imds-token":
                    rows |= {name: (source(f"{name}-{fault}"), "the machine's metadata: .*(" + words + ")") for name, source in (("g", gcp), ("z", azure))}
                self.fails(rows)
        self.assertEqual({a["step"] for a in self.service.asked} & {"secretsmanager", "secretmanager", "keyvault"}, set())

    def test_throttled(self):
        """AWS says it by a code. What is throttled is left alone, whoever asks."""
        rows = {"sm": self.sm({"url": url("secretsmanager", "throttled")}),
                "sts": self.sm({"url": url("secretsmanager", "throttledsts")}, keys=self.file("keys"), **ACCOUNT, sts_url=url("sts", "throttled"))}
        box = self.box(rows)
        self.assertEqual(self.asks(box, rows), ["502"] * 2)
        before = len(self.service.asked)
        support.time.sleep(1.2)
        self.assertEqual(self.asks(box, rows), ["502"] * 2)
        self.assertEqual(len(self.service.asked), before)
        self.assertEqual(box.stderr().count("it answered 400: Rate exceeded"), 2, box.stderr())

    def test_slow(self):
        rows = {name: source for name, source in (("sm", self.sm({"url": url("secretsmanager", "slow")})),
                                                  ("sts", self.sm(keys=self.file("keys"), **ACCOUNT, sts_url=url("sts", "slow"))),
                                                  ("gcp", self.gcp({"url": url("secretmanager", "trickle")})), ("azure", self.azure({"url": url("keyvault", "slow")})))}
        box = self.box(rows, "inject: bearer, timeout: 700ms")
        self.assertEqual(self.asks(box, rows), ["502"] * 4)
        self.assertTrue(support.wait_until(lambda: box.stderr().count("had not answered after 700 ms") >= 4, 5 * support.SLOW), box.stderr())
        self.assertEqual(box.stderr().count("had not answered after 700 ms"), 4, box.stderr())

    def test_what_is_not_there(self):
        other = "file:" + support.LAB.write("cloud-other", "AKIDOTHER:wrong/secret+0123", 0o600)
        no_keys = "file:" + support.LAB.write("cloud-no-keys", "no keys at all", 0o600)
        client = {"tenant_id": "tenant-1", "client_id": "client-1", "login_url": url("login")}
        self.fails({
            "secret": (self.sm({"secret": "none"}), "it answered 400: Secrets Manager can't find"), "field": (self.sm({"field": "x"}), "not a JSON object, so it has no field"),
            "member": (self.sm({"secret": "json", "field": "x"}), "has no string x"), "parameter": (self.ssm({"name": "none"}), "it answered 400: ParameterNotFound"),
            "key": (self.sm(keys=other), "it answered 403: the signature"), "nokeys": (self.sm(keys=no_keys), "the file with the keys: "),
            "region": (self.sm({"region": "us-test-1"}), "it answered 403"), "role": (self.sm(keys=self.file("keys"), role="arn:x/none", sts_url=url("sts")), "STS: it answered 403: not that role"),
            "identity": (self.sm(web_identity_token=other, **ACCOUNT, sts_url=url("sts")), "STS: it answered 400: no such identity"),
            "gcp": (self.gcp({"secret": "none"}), r"it answered 404: Secret .projects/1/secrets/none. not found"), "account": (self.gcp(key=other, token_url=url("gcp")), "not the key of a service"),
            "other": (self.gcp(key=self.file("account"), token_url=url("gcp"), impersonate="none@p.test", impersonation_url=url("iam")), "the account to impersonate: it answered 404"),
            "azure": (self.azure({"secret": "none"}), "it answered 404: A secret with"),
            "wrong": (self.azure(**client, client_secret=other), r"the login: it answered 401: AADSTS7000215: Invalid client secret provided: \*\*\*"),
            "site": (self.sm(keys=self.file("keys"), **ACCOUNT, sts_url="https://nowhere.lab.test"), "STS: it cannot be asked: SSL"),
            "tls": (self.sm({"url": f"https://x.y.wild.lab.test:{PORT}"}), "it cannot be asked: SSL"),
        })


if __name__ == "__main__":
    unittest.main()
