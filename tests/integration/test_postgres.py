# SPDX-License-Identifier: Apache-2.0
"""inject: postgres: vethguard logs in to a database with a password that no sandbox has. Against a real PostgreSQL (psql, pgbench and
libpq inside), and against servers that are wrong in each step of the login."""
import json
import re
import shutil
import subprocess
import time
import unittest

import control_case
import lab
import support
from postgres_server import RIGHT, WRONG, Cluster, Hostile, programs
from support import policy, wait_until

PORT, OTHER_PORT = 5432, 5433
HOST, OLD, BAD = "db.real.lab.test", "old.real.lab.test", "bad.real.lab.test"
PASSWORD, OLD_PASSWORD = "Tr0ub4dor&3 long=enough'", "md5-Passw0rd/older"
CREDENTIALS = (("db", "password", "agent", ", env: PGPASSWORD"), ("old", "old", "legacy", ""), ("bad", "password", "agent", ""))


def credentials(rows=CREDENTIALS):
    return "".join(f"  {name}: {{source: 'file:{support.LAB.path('pg-' + file)}', inject: postgres, username: {user}{rest}}}\n" for name, file, user, rest in rows)


def rules(**ports):
    return tuple(f"{{to: 'tcp://{host}:{port}', credential: {name}}}" for host, port, name in
                 ((HOST, PORT, "db"), (OLD, PORT, "old"), (BAD, OTHER_PORT, "bad")))


class Databases:
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        support.LAB.write("pg-password", PASSWORD + "\n", 0o600)
        support.LAB.write("pg-old", OLD_PASSWORD + "\n", 0o600)
        quoted = PASSWORD.replace("'", "''")
        cls.cluster = Cluster(lab.REAL4, PORT, {"agent": (quoted, "scram-sha-256"), "legacy": (OLD_PASSWORD, "md5"), "other": ("their-own-password", "scram-sha-256")})
        cls.hostile = support.in_namespace("outside", lambda: Hostile(lab.REAL4, OTHER_PORT, PASSWORD))

    @classmethod
    def tearDownClass(cls):
        cls.hostile.close()
        cls.cluster.close()
        super().tearDownClass()

    def box(self, text=None, **kw):
        box = support.Sandbox(text or policy(*rules(), credentials=credentials()), **kw)
        self.addCleanup(self.nothing_shown, box)
        return box

    def nothing_shown(self, box):
        box.close()
        for data in (box.stderr(), json.dumps(box.events())):
            for password in (PASSWORD, OLD_PASSWORD):
                self.assert_no_secret(data, password)

    def psql(self, box, sql="select current_user", host=HOST, user="agent", more="", port=PORT, timeout=60, **kw):
        return box.run("psql", "-XAtq", f"host={host} port={port} user={user} dbname=postgres connect_timeout=20 {more}", "-c", sql, timeout=timeout, **kw)


@unittest.skipUnless(programs() and shutil.which("psql"), "needs postgresql")
class Works(Databases, support.Case):
    def test_queries(self):
        box = self.box()
        self.assertEqual(box.sh("echo $PGPASSWORD").out[:10], "vethguard-")
        for mode in ("disable", "prefer", "require", "verify-full sslrootcert=/etc/ssl/certs/ca-certificates.crt"):
            done = self.psql(box, "select current_user || ' ' || ssl from pg_stat_ssl where pid = pg_backend_pid()", more=f"sslmode={mode}")
            self.assertEqual(done.out, "agent true\n", done)
        self.assertEqual(self.psql(box, "select sum(i) from generate_series(1, 100000) i").out, "5000050000\n")
        done = self.psql(box, "create temp table t (a text); copy t from stdin; select count(*) from t", input="row\n" * 100000)
        self.assertEqual(done.out, "100000\n", done)
        done = self.psql(box, "select repeat('x', 1000) from generate_series(1, 4000)")
        self.assertEqual(len(done.out), 1001 * 4000)
        self.assertIn('identity="agent" method=scram-sha-256', self.cluster.text())
        event = box.event(support.NETWORK, action_id=1, **{"dst_endpoint.port": PORT})
        self.assertGreater(event["traffic"]["bytes_in"], 0, event)
        self.assertIn("allow[0]", json.dumps(event))

    def test_md5_and_no_placeholder(self):
        """Without env the client needs no password at all."""
        box = self.box()
        self.assertEqual(self.psql(box, host=OLD, user="legacy").out, "legacy\n", box.stderr())
        self.assertIn('identity="legacy" method=md5', self.cluster.text())

    def test_queries_are_cancelled(self):
        box = self.box()
        for mode in ("disable", "require"):
            done = box.sh(f"timeout -s INT 2 psql -XAtq 'host={HOST} user=agent dbname=postgres sslmode={mode}' -c 'select pg_sleep(60)'", timeout=40)
            self.assertIn("canceling statement due to user request", done.err)

    def test_many_at_once(self):
        box = self.box()
        script = support.LAB.write("pgbench.sql", "select 1;\n")
        done = box.run(programs() + "/pgbench", "-n", "-c", "8", "-j", "2", "-t", "100", "-f", script, "-h", HOST, "-U", "agent", "postgres", timeout=120)
        self.assertIn("number of transactions actually processed: 800/800", done.out, done)
        done = box.run(programs() + "/pgbench", "-n", "-C", "-c", "2", "-t", "20", "-f", script, "-h", HOST, "-U", "agent", "postgres", timeout=120)
        self.assertIn("processed: 40/40", done.out, done)

    def test_logins_that_are_refused(self):
        """Another user, another password, none, replication, another port: refused with the reason before the database is asked."""
        box = self.box()
        before = self.cluster.text().count("connection received")
        rows = (({"user": "other"}, {"PGPASSWORD": "their-own-password"}, 'logs in as "agent", and not as "other"'),
                ({}, {"PGPASSWORD": "their-own-password"}, "another password than this sandbox.s placeholder"), ({}, {"PGPASSWORD": PASSWORD}, "another password than this sandbox.s placeholder"),
                ({"more": "replication=database"}, {}, "replication connections are not served"), ({"more": "replication=on"}, {}, "replication connections"),
                ({"more": "application_name=$PGPASSWORD"}, {}, "placeholder"), ({"host": "api.lab.test"}, {}, "refused|reset|closed"),
                ({"port": PORT + 2}, {}, "refused|reset|closed"))
        placeholder = box.sh("printf %s $PGPASSWORD").out
        for how, env, words in rows:
            how = {k: v.replace("$PGPASSWORD", placeholder) if isinstance(v, str) else v for k, v in how.items()}
            done = self.psql(box, env=env, **how)
            self.assertNotEqual(done.status, 0, (how, done))
            self.assertRegex(done.err, words, how)
        done = box.sh(f"unset PGPASSWORD; psql -XAtqw 'host={HOST} user=agent dbname=postgres' -c 'select 1'")
        self.assertIn("no password supplied", done.err)
        self.assertEqual(self.cluster.text().count("connection received"), before)
        events = [e for e in box.events(support.NETWORK) if e["action_id"] == 2]
        self.assertGreaterEqual(sum(e.get("status_code") == "foreign-credential" for e in events), 3, events)
        self.assertTrue([e for e in box.events(support.FINDING) if "placeholder-leak" in json.dumps(e)])

    def test_a_placeholder_after_the_login(self):
        box = self.box()
        placeholder = box.sh("printf %s $PGPASSWORD").out
        done = self.psql(box, f"select '{placeholder}'")
        self.assertNotEqual(done.status, 0, done)
        self.assertNotIn(placeholder, done.out)
        self.assertTrue(wait_until(lambda: [e for e in box.events(support.FINDING) if "after the login" in json.dumps(e)]))
        box = self.box("on_leak: alert\n".join(policy(*rules(), credentials=credentials()).split("name: lab\n")).replace("vethguard: 1\n", "vethguard: 1\nname: lab\n"))
        placeholder = box.sh("printf %s $PGPASSWORD").out
        self.assertEqual(self.psql(box, f"select '{placeholder}'").out, placeholder + "\n")
        self.assertTrue(wait_until(lambda: [e for e in box.events(support.FINDING) if "after the login" in json.dumps(e)]))

    def test_the_database_refuses(self):
        support.LAB.write("pg-wrong", "not-the-password\n", 0o600)
        box = self.box(policy(*rules(), credentials=credentials((("db", "wrong", "agent", ", env: PGPASSWORD"), *CREDENTIALS[1:]))))
        self.assertIn('password authentication failed for user "agent"', self.psql(box).err)
        self.assertIn("28P01", json.dumps(box.event(support.NETWORK, status_code="upstream")))
        box = self.box()
        done = self.psql(box, more="dbname=nowhere")
        self.assertIn('database "nowhere" does not exist', done.err)

    def test_values_that_are_none(self):
        for text in ("short", "pässwörd-of-some-length", "with\ttab-in-it"):
            support.LAB.write("pg-none", text + "\n", 0o600)
            box = self.box(policy(*rules(), credentials=credentials((("db", "none", "agent", ""), *CREDENTIALS[1:]))))
            before = self.cluster.text().count("connection received")
            self.assertRegex(self.psql(box).err, "not a password for PostgreSQL|fewer than 6 bytes")
            self.assertIsNotNone(box.event(support.NETWORK, status_code="credential"))
            self.assertEqual(self.cluster.text().count("connection received"), before)

    def test_raw_clients(self):
        """First messages that psql does not send."""
        box = self.box()
        before = self.cluster.text().count("connection received")
        done = box.run(support.PYTHON, "-c", RAW, HOST, str(PORT), lab.REAL4, timeout=120)
        self.assertEqual(done.status, 0, done)
        rows = json.loads(done.out)
        for name, answer in rows.items():
            with self.subTest(name=name):
                self.assertRegex(answer, EXPECTED[name])
        self.assertEqual(set(rows), set(EXPECTED))
        served = sum("K" in row for row in rows.values())
        self.assertEqual(served, 4, rows)
        self.assertEqual(self.cluster.text().count("connection received"), before + served)

    def test_limits(self):
        box = self.box(policy(f"{{name: db, to: 'tcp://{HOST}:{PORT}', limits: {{download: 100KB/1h}}, credential: db}}", *rules()[1:], credentials=credentials()))
        self.assertEqual(self.psql(box).out, "agent\n")
        done = self.psql(box, "select repeat('x', 1000) from generate_series(1, 20000)")
        self.assertNotEqual(done.status, 0, done)
        self.assertLessEqual(len(done.out), 100000)
        self.assertIn("download", json.dumps(box.event(support.NETWORK, status_code="policy-limit") or box.events(support.NETWORK)[-1]))


EXPECTED = {"http": "E .*not the beginning", "tls without alpn": "^tls E .*not the beginning|^tls E .*malformed|^tls ", "tls with h2": "^tls refused", "direct tls": "^tls R0 .*K.*Z$",
            "version 2": "E .*another version", "version 4": "E .*another version", "huge": "E .*not the beginning", "tiny": "E .*not the beginning",
            "no user": "E .*without a user", "two users": "E .*two users", "two databases": "E .*two databases", "no end": "E .*without its end",
            "odd parameters": "E .*malformed startup", "many parameters": "E .*too many parameters", "long user": "E .*too long", "gss then start": "^N R3 R0 .*K.*Z$",
            "gss five times": "^N N N N E .*too many requests", "tls twice": "^S tls N R3 R0 .*K.*Z$", "stuffed": "^S (?!R)", "options": "^v R3 R0 .*K.*Z$",
            "cancel too long": "E .*malformed request to cancel", "ssl too long": "E .*malformed request for encryption",
            "password of another type": "R3 E .*another message than a password", "password without end": "R3 E .*another message", "huge password": "R3 E .*malformed message",
            "empty password": "R3 E .*than this sandbox.s placeholder", "silence": "^$"}

RAW = r'''
import json, os, socket, ssl, struct, sys
host, port, address = sys.argv[1], int(sys.argv[2]), sys.argv[3]
P = os.environ["PGPASSWORD"].encode()
def start(number=3 << 16, body=b"user\0agent\0database\0postgres\0\0", length=None):
    return struct.pack("!II", (len(body) + 8) if length is None else length, number) + body
def message(kind, body):
    return kind + struct.pack("!I", len(body) + 4) + body
SSL, GSS, CANCEL = 80877103, 80877104, 80877102
PASSWORD = message(b"p", P + b"\0")
def connect():
    s = socket.create_connection((host, port), timeout=20)
    s.settimeout(20)
    return s
def told(s):
    """What the server says, up to ReadyForQuery or its end, in a line."""
    words, data = [], b""
    while True:
        try:
            piece = s.recv(65536)
        except (ssl.SSLError, ConnectionError):
            piece = b""
        if not piece:
            return words
        data += piece
        while len(data) >= 5:
            kind, n = chr(data[0]), struct.unpack("!I", data[1:5])[0]
            if len(data) < n + 1:
                break
            body, data = data[5:n + 1], data[n + 1:]
            if kind == "R":
                words.append("R%d" % struct.unpack("!I", body[:4])[0])
                if words[-1] == "R3":
                    return words
            elif kind == "E":
                words.append("E " + body.decode().replace("\0", " "))
            else:
                words.append(kind)
            if kind == "Z":
                s.sendall(message(b"X", b""))
                return words
def tls(s, alpn=None):
    c = ssl.create_default_context()
    if alpn:
        c.set_alpn_protocols([alpn])
    return c.wrap_socket(s, server_hostname=host)
def one(*sends, alpn=None, wrapped=False, password=PASSWORD):
    s, words = connect(), []
    if wrapped:
        try:
            s = tls(s, alpn)
        except (ssl.SSLError, ConnectionError):
            return "tls refused"
        words.append("tls")
    for data in sends:
        if data == "letter":
            words.append(s.recv(1).decode())
        elif data == "tls":
            s = tls(s)
            words.append("tls")
        else:
            s.sendall(data)
    words += told(s)
    if words and words[-1] == "R3":
        s.sendall(password)
        words += told(s)
    s.close()
    return " ".join(words)
def stuffed():
    s = connect()
    s.sendall(start(SSL, b"") + start())
    word = s.recv(1).decode()
    try:
        more = s.recv(65536)
    except ConnectionError:
        more = b""
    return word + " " + ("R" if more[:1] == b"R" else "closed" if not more else "alert" if more[0] == 21 else "other")
params = b"".join(b"p%d\0x\0" % i for i in range(80))
rows = {
  "http": one(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"),
  "tls without alpn": one(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", wrapped=True),
  "tls with h2": one(start(), wrapped=True, alpn="h2"),
  "direct tls": one(start(), wrapped=True, alpn="postgresql").replace("R3 ", ""),
  "version 2": one(start(2 << 16)), "version 4": one(start(4 << 16)),
  "huge": one(start(length=10001) + b"x" * 20000), "tiny": one(start(length=7)),
  "no user": one(start(body=b"database\0postgres\0\0")), "two users": one(start(body=b"user\0agent\0user\0other\0\0")),
  "two databases": one(start(body=b"user\0agent\0database\0a\0database\0b\0\0")), "no end": one(start(body=b"user\0agent\0x")),
  "odd parameters": one(start(body=b"user\0agent\0x\0\0")), "many parameters": one(start(body=b"user\0agent\0" + params + b"\0")),
  "long user": one(start(body=b"user\0" + b"a" * 64 + b"\0\0")),
  "gss then start": one(start(GSS, b""), "letter", start()),
  "gss five times": one(*[start(GSS, b""), "letter"] * 4, start(GSS, b"")),
  "tls twice": one(start(SSL, b""), "letter", "tls", start(SSL, b""), "letter", start()),
  "stuffed": stuffed(),
  "options": one(start((3 << 16) + 2, b"user\0agent\0_pq_.one\0x\0database\0postgres\0\0")),
  "cancel too long": one(start(CANCEL, b"x" * 40)), "ssl too long": one(start(SSL, b"x")),
  "password of another type": one(start(), password=message(b"Q", b"select 1\0")), "password without end": one(start(), password=message(b"p", P)),
  "huge password": one(start(), password=b"p" + struct.pack("!I", 1 << 20)), "empty password": one(start(), password=message(b"p", b"\0")),
}
s = connect()
s.sendall(start()[:5])
s.shutdown(socket.SHUT_WR)
rows["silence"] = " ".join(told(s))
print(json.dumps(rows))
'''


class Hostiles(Databases, support.Case):
    """Servers behind the right name that do the login rightly, or wrongly."""

    def ask(self, box, way, **kw):
        self.hostile.begin(way)
        return self.psql(box, "select 1", host=BAD, port=OTHER_PORT, more="sslmode=disable", **kw)

    @unittest.skipUnless(shutil.which("psql"), "needs psql")
    def test_ways(self):
        box = self.box()
        for way in RIGHT:
            with self.subTest(way=way):
                done = self.ask(box, way)
                self.assertEqual(done.out, "right\n", (done, box.stderr()))
                self.assertIn(b"user\0agent\0", self.hostile.startups[0])
                if way not in ("trust",):
                    self.assertTrue(self.hostile.proved)
                if way not in ("trust", "md5"):
                    plus = way != "without_binding"
                    self.assertEqual((self.hostile.mechanism, self.hostile.binding_right), (b"SCRAM-SHA-256" + b"-PLUS" * plus, True))
                self.assertIsNone(support.holds_secret(self.hostile.came, PASSWORD))
        for way, words in WRONG.items():
            with self.subTest(way=way):
                at = len(box.events(support.NETWORK, settle=False))
                done = self.ask(box, way)
                self.assertNotEqual(done.status, 0, done)
                self.assertEqual(done.out, "")
                self.assertIsNone(support.holds_secret(self.hostile.came, PASSWORD))
                self.assertTrue(wait_until(lambda w=words, a=at: any(re.search(w, json.dumps(e)) for e in box.events(support.NETWORK, settle=False)[a:])), (way, box.events(support.NETWORK)[at:], done))

    def test_names_that_are_not_the_certificates(self):
        """A database with a certificate for other names, or of a CA that nobody trusts, gets nothing."""
        self.hostile.begin("right")
        box = self.box(policy(f"{{to: 'tcp://{lab.REAL4}:{OTHER_PORT}', credential: db}}", credentials=credentials(CREDENTIALS[:1])))
        done = self.psql(box, "select 1", host=lab.REAL4, port=OTHER_PORT, more="sslmode=disable")
        self.assertRegex(done.err, "mismatch")
        self.assertEqual(self.hostile.startups, [])
        self.assertIsNotNone(box.event(support.NETWORK, status_code="upstream-tls"))


@unittest.skipUnless(programs() and shutil.which("psql"), "needs postgresql")
class Operated(Databases, control_case.Control):
    def test_rotate_revoke_reload(self):
        """A reload that still allows it keeps a session, one that does not ends it; so does revoke; rotate counts for the next login."""
        file = support.LAB.write("pg-current", PASSWORD + "\n", 0o600)
        row = f"  db: {{source: 'file:{file}', inject: postgres, username: agent, ttl: 0s}}\n"
        text = policy(f"{{to: 'tcp://{HOST}:{PORT}', credential: db}}", credentials=row)
        netns = self.namespace()
        self.daemon.attach(netns=netns, policy=support.LAB.write("pg.yaml", text), name="pg")
        resolv = support.LAB.write("pg-resolv", "".join(f"nameserver {n}\n" for n in self.daemon.call("GET", "/v1/sandboxes/pg/env")[2]["nameservers"]))

        def asks(sql):
            return subprocess.Popen(["nsenter", f"--net={netns}", "unshare", "-m", "sh", "-c", f'mount --bind {resolv} /etc/resolv.conf && exec psql "$@"', "psql", "-XAtq",
                                     f"host={HOST} port={PORT} user=agent dbname=postgres", "-c", sql], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

        def answer(process):
            out, err = process.communicate(timeout=60)
            return out or err
        self.assertEqual(answer(asks("select 1")), "1\n", self.daemon.stderr())
        shown = self.call("GET", "/v1/sandboxes/pg/credentials")[2]["credentials"][0]
        self.assertIn("PostgreSQL's login as agent", json.dumps(shown))

        def sleeps():
            return self.cluster.ask("select count(*) from pg_stat_activity where query like '%pg_sleep%' and pid <> pg_backend_pid()").strip()
        long = asks("select pg_sleep(3); select 'kept'")
        self.assertTrue(wait_until(lambda: sleeps() == "1"))
        support.LAB.write("pg.yaml", text.replace("allow:\n", "allow:\n  - {to: 'https://www.lab.test'}\n"))
        self.assertEqual(self.call("POST", "/v1/sandboxes/pg/reload", {})[0], 200)
        self.assertIn("kept", answer(long))
        for how in ("revoke", "reload"):
            support.LAB.write("pg.yaml", text)
            self.assertEqual(self.call("POST", "/v1/sandboxes/pg/reload", {})[0], 200)
            self.assertEqual(self.call("POST", "/v1/sandboxes/pg/credentials/rotate", {"credential": "db"})[0], 200)
            self.assertTrue(wait_until(lambda: answer(asks("select 1")) == "1\n"))
            long = asks("select pg_sleep(60)")
            self.assertTrue(wait_until(lambda: sleeps() == "1"))
            if how == "revoke":
                self.assertEqual(self.call("POST", "/v1/sandboxes/pg/credentials/revoke", {"credential": "db"})[0], 200)
            else:
                support.LAB.write("pg.yaml", "vethguard: 1\nname: none\nallow:\n  - {to: 'https://www.lab.test'}\n")
                self.assertEqual(self.call("POST", "/v1/sandboxes/pg/reload", {})[0], 200)
            begun = time.monotonic()
            self.assertRegex(answer(long), "closed|reset|terminated|lost")
            self.assertLess(time.monotonic() - begun, 30)
            self.assertRegex(answer(asks("select 1")), "revoked" if how == "revoke" else "refused|closed|reset")
            self.cluster.ask("select pg_terminate_backend(pid) from pg_stat_activity where query like '%pg_sleep%' and pid <> pg_backend_pid()")


if __name__ == "__main__":
    unittest.main()
