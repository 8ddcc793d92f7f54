# SPDX-License-Identifier: Apache-2.0
"""An agent's day in one sandbox: GitHub by a GitHub App, Bedrock by sigv4, a database by a password that Vault makes, and a login by OAuth that
is refreshed. Everything works, and none of the secrets is inside: in no answer, variable, argument or memory of the programs there, and in no log."""
import json
import secrets
import shutil
import subprocess
import unittest

import aws_origin
import cores
import lab
import login_origin
import support
from credential_service import URL, Served
from postgres_server import Cluster, programs
from support import FINDING, policy

AWS_PORT, LOGIN_PORT, DATABASE_PORT = 8444, 8449, 5433
LOGIN, DATABASE = f"login.wild.lab.test:{LOGIN_PORT}", "db.wild.lab.test"
MODEL = "/model/anthropic.claude-x/invoke"
RULES = ("{to: 'https://api.lab.test', paths: ['/repos/**'], credential: github}",
         f"{{to: 'https://api.lab.test:{AWS_PORT}', methods: [POST], credential: bedrock}}",
         f"{{to: 'tcp://{DATABASE}:{DATABASE_PORT}', credential: database}}",
         f"{{to: 'https://{LOGIN}', paths: [/token], seal: login}}",
         f"{{to: 'https://{LOGIN}', paths: ['/api/**'], credential: login}}")
# A program that waits with everything the agent has seen in its memory, as an agent does.
AGENT = r"""
import os, sys, urllib.parse
seen = [dict(os.environ)]
def ask(host, path, method="GET", port=443, fields=(), body=b""):
    fields = [*fields, *([f"Content-Length: {len(body)}"] if body or method == "POST" else [])]
    status, head, text = fetch(host, path, method, port, fields, body)
    seen.append((status, head, text))
    return status, text
"""


@unittest.skipUnless(programs() and shutil.which("psql"), "needs postgresql")
class Day(Served, support.Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.values = {"github": "ghs_" + secrets.token_urlsafe(30), "database": "made-" + secrets.token_hex(16), "aws": secrets.token_urlsafe(30),
                      "vault": "vault-token-0123456789"}
        subprocess.run(["openssl", "genrsa", "-out", support.LAB.path("day-app.pem"), "2048"], check=True, capture_output=True)
        with open(support.LAB.path("day-app.pem")) as f:
            cls.values["app"] = f.read().splitlines()[5]
        support.LAB.write("day-vault", cls.values["vault"] + "\n", 0o600)
        support.LAB.write("day-aws", f"AKIALABREALKEY000001:{cls.values['aws']}\n", 0o600)
        cls.aws = support.in_namespace("outside", lambda: aws_origin.Origin(lab.ORIGIN4, AWS_PORT, support.LAB.dir, ("AKIALABREALKEY000001", cls.values["aws"], None)))
        cls.login = support.in_namespace("outside", lambda: login_origin.Origin(lab.ORIGIN4, LOGIN_PORT, support.LAB.dir))
        cls.database = Cluster(lab.ORIGIN4, DATABASE_PORT, {"agent": (cls.values["database"], "scram-sha-256")})
        cls.database.ask("create table t (n int); grant all on t to agent")
        made = {"ghs": cls.values["github"], "dynamic": cls.values["database"]}
        cls.service.next = lambda kind: made[kind]

    @classmethod
    def tearDownClass(cls):
        cls.database.close()
        cls.login.close()
        cls.aws.close()
        super().tearDownClass()

    def setUp(self):
        super().setUp()
        self.service.asked.clear()

    def box(self):
        app = {"github-app": {"url": URL, "app_id": 7, "installation_id": 56, "key": f"file:{support.LAB.path('day-app.pem')}", "repositories": ["site"]}}
        vault = {"vault": {"url": URL, "path": "database/creds/agent", "field": "password", "token": f"file:{support.LAB.path('day-vault')}"}}
        box = support.Sandbox(policy(*RULES, credentials="".join(f"  {line}\n" for line in (
            f"github: {{source: {json.dumps(app)}, inject: bearer}}",
            f"bedrock: {{source: 'file:{support.LAB.path('day-aws')}', inject: sigv4, region: us-east-1, service: bedrock}}",
            f"database: {{source: {json.dumps(vault)}, inject: postgres, username: agent, env: PGPASSWORD}}",
            "login: {source: sealed, inject: placeholder, in: [header]}"))))
        self.addCleanup(box.close)
        return box

    def works(self, box):
        """Each of the four once."""
        done = box.py(AGENT + f"""
out = {{}}
out["github"] = ask("api.lab.test", "/repos/acme/site", fields=["Authorization: Bearer nothing"])[0]
out["bedrock"] = ask("api.lab.test", {MODEL!r}, "POST", {AWS_PORT}, ["Content-Type: application/json"], b'{{"messages": []}}')[0]
form = "Content-Type: application/x-www-form-urlencoded"
status, text = ask("login.wild.lab.test", "/token", "POST", {LOGIN_PORT}, [form], b"grant_type=authorization_code&code=x")
tokens = json.loads(text)
status, text = ask("login.wild.lab.test", "/token", "POST", {LOGIN_PORT}, [form],
                   b"grant_type=refresh_token&refresh_token=" + urllib.parse.quote(tokens["refresh_token"]).encode())
out["refreshed"] = status
tokens = json.loads(text)
out["login"] = ask("login.wild.lab.test", "/api/user", port={LOGIN_PORT}, fields=["Authorization: Bearer " + tokens["access_token"]])[0]
out["seen"] = repr(seen)
print(json.dumps(out))
""", timeout=60)
        self.assertEqual(done.status, 0, done)
        return json.loads(done.out)

    def psql(self, box, sql):
        return box.run("psql", "-XAtq", f"host={DATABASE} port={DATABASE_PORT} user=agent dbname=postgres connect_timeout=20", "-c", sql, timeout=60)

    def test_the_day(self):
        box = self.box()
        first = self.works(box)
        rows = self.psql(box, "insert into t values (1); select count(*) from t")
        self.assertEqual({k: v for k, v in first.items() if k != "seen"}, {"github": 200, "bedrock": 200, "refreshed": 200, "login": 200}, box.stderr())
        self.assertIn("1", rows.out, (rows, box.stderr()))
        second = self.works(box)  # what is held is used again
        self.assertEqual(second["github"], 200)
        # The real ones arrived where they belong.
        sent = [v for r in self.seen("http", path="/repos/acme/site") for n, v in r["headers"] if n.lower() == "authorization"]
        self.assertEqual(set(sent), {"Bearer " + self.values["github"]})
        self.assertEqual(self.database.ask("select count(*) from t").strip(), "1")
        real = {f"login{i}": token for i, token in enumerate(sorted(self.login.live | self.login.refreshes))}
        self.assertGreater(len(real), 2)
        asked = [a["path"] for a in self.service.asked]
        self.assertEqual((asked.count("/app/installations/56/access_tokens"), asked.count("/v1/database/creds/agent")), (1, 1))
        values = {**self.values, **real}
        # None of them is inside.
        listed = box.sh("env; set; cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' '\\n'").out
        texts = {"answers": first["seen"] + second["seen"], "psql": rows.out + rows.err, "listed": listed, "stderr": box.stderr(),
                 "events": json.dumps(box.events())}
        for name, text in texts.items():
            self.assertEqual(cores.shows(text.encode(), values), set(), name)
        for pid, row in support.family(box.process.pid).items():
            if not row[0].startswith("vethguard"):
                self.assertEqual(cores.found_in(pid, values, stop=False), set(), row)
        # The lab's own server shows what it was sent: that it was covered is told.
        self.assertLessEqual({t for e in box.events(FINDING) for t in e["finding_info"]["types"]}, {"credential-echo"})

    def test_each_goes_nowhere_else(self):
        """The same requests at the wrong hosts: nothing arrives there that is worth anything."""
        box = self.box()
        self.works(box)
        before = len(self.login.asked)
        done = box.py(AGENT + f"""
rows = [ask("api.lab.test", "/user"), ask("www.lab.test", "/repos/acme/site"),
        ask("login.wild.lab.test", "/open/x", port={LOGIN_PORT}), ask("api.lab.test", {MODEL!r}, "DELETE", {AWS_PORT})]
print(json.dumps([status for status, _ in rows]))
""", timeout=60)
        self.assertEqual(json.loads(done.out), [403] * 4, done)
        self.assertEqual(len(self.login.asked), before)
        self.assertNotEqual(self.psql(box, "select 1; \\connect other").status, 0)


if __name__ == "__main__":
    unittest.main()
