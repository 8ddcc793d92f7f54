# SPDX-License-Identifier: Apache-2.0
"""Request smuggling, both directions: the golden files in smuggling/ (smuggling_cases.py tells their form), all in one
sandbox, each over plain HTTP and over TLS, against an origin that accounts for every byte it is sent."""
import base64
import collections
import json
import os
import re
import socket

import smuggling_cases
import smuggling_origin
import support
from support import FINDING, HERE, HTTP, PYTHON, SECRET, SLOW, Case, field, file_credential, policy, sh, wait_until

DNS, NETWORK = "10.97.0.2", "10.98"
AFTER = "GET /after HTTP/1.1\r\nHost: {host}\r\n\r\n"
CLEAN = "GET /clean HTTP/1.1\r\nHost: {host}\r\n\r\n"
TIMEOUT = 5
FILES = smuggling_cases.load()


def responses(data, methods):
    """[(status, body or None where it is not whole)] of what a client was sent; 1xx included."""
    found, methods = [], list(methods)
    while data:
        head, mark, rest = data.partition("\r\n\r\n")
        m = re.match(r"HTTP/1\.1 (\d{3}) ", head)
        if not m or not mark:
            return found + [(0, None)]
        status = int(m[1])
        fields = {k.lower(): v.strip() for k, _, v in (line.partition(":") for line in head.split("\r\n")[1:])}
        method = methods.pop(0) if status >= 200 and methods else "GET"
        if status < 200 or status in (204, 304) or method == "HEAD":
            body, data = "", rest
        elif fields.get("transfer-encoding") == "chunked":
            body, data = unchunked(rest)
        elif "content-length" in fields:
            n = int(fields["content-length"])
            body, data = (rest[:n], rest[n:]) if len(rest) >= n else (None, "")
        else:
            body, data = rest, ""
        found.append((status, body))
    return found


def unchunked(data):
    body = ""
    while True:
        size, mark, data = data.partition("\r\n")
        if not mark or not re.fullmatch("[0-9a-f]+", size):
            return None, ""
        n = int(size, 16)
        if n == 0:
            break
        if len(data) < n + 2:
            return None, ""
        body, data = body + data[:n], data[n + 2:]
    while True:
        line, mark, data = data.partition("\r\n")
        if not mark:
            return None, ""
        if not line:
            return body, data


class Run:
    """A case over one transport: what it has to bring about, and what it has brought about."""

    def __init__(self, number, case, secure):
        self.case, self.secure = case, secure
        self.host = f"c{number:03}{'t' if secure else 'p'}.wild.lab.test"
        self.result = self.connections = self.findings = self.events = self.strays = None

    def text(self, block):
        return "".join(block or []).replace("{host}", self.host).replace("{secret}", SECRET)

    def order(self):
        writes = [w.replace("{host}", self.host) for w in self.case.send]
        if self.case.after:
            writes[-1] += self.text([AFTER]).replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n")
        return {"host": self.host, "tls": self.secure, "send": writes, "end": self.case.end, "timeout": TIMEOUT * SLOW,
                "early": self.case.expect == "answered early"}

    # --- what was seen ---

    @property
    def origin_saw(self):
        """The clean request's connection last: where the one before was answered early, the origin may have accepted it later."""
        return "".join(sorted((c["data"] for c in self.connections), key=lambda d: d.startswith("GET /clean")))

    def problem(self):
        """The first fault, or None."""
        broken = [c["error"] for c in self.connections if c["error"]]
        if broken:
            return f"the strict origin could not read it: {broken}"
        if self.result["ending"].startswith(("silent", "unconnected")):
            return f"the connection stays open: {self.result}"
        return self.clean_problem() or (self.response_problem() if self.case.hostile else self.request_problem())

    def clean_problem(self):
        got = responses(self.result["clean"], ["GET"])
        if len(got) != 1 or got[0][0] != 200 or not re.fullmatch(r"\d GET /clean 0\n", got[0][1] or ""):
            return f"a clean request afterwards got {self.result['clean'][:300]!r}"
        return None

    def origin_problem(self, wanted):
        if self.origin_saw != wanted:
            return f"the origin saw {self.origin_saw!r}, not {wanted!r}"
        return None

    def recorded_problem(self, finding, status=None):
        """A finding where there has to be one, and only there; an event of the request."""
        if bool(self.findings) != finding:
            return f"findings: {self.findings}"
        found = [e for e in self.events + self.strays if status in (None, field(e, "http_response.code"))]
        return None if found else f"no event with {status}"

    # --- requests ---

    def passed_problem(self, answers, wanted):
        """Each request that the origin understood got its own response."""
        asked = smuggling_origin.requests_in(wanted.encode("latin-1"))
        bodies = ["" if m == "HEAD" else f"{m} {t} {0 if t.startswith('/early') else len(b)}\n" for m, t, b in asked]
        got = [(s, (b or "").partition(" ")[2]) for s, b in answers if s >= 200]
        return None if got == [(200, b) for b in bodies] else f"answered {answers}, not {bodies}"

    def cut_problem(self, golden, clean):
        """The end of the request did not come: neither at the origin nor an answer to it."""
        saw, answers = self.origin_saw, responses(self.result["data"], [])
        if not saw.endswith(clean) or not golden.startswith(saw[:-len(clean)]):
            return f"the origin saw {saw!r}, more than {golden!r}"
        if self.case.expect == "answered early":
            final = [s for s, _ in answers if s >= 200]
            told = "\r\nConnection: close\r\n" in self.result["data"]
            return None if final in ([200], [400]) and told else f"answered {self.result['data']!r}"
        if answers and answers != [(400, answers[0][1])]:
            return f"answered {answers}"
        return self.recorded_problem(self.case.expect == "cut off")

    def request_problem(self):
        expect, golden, clean = self.case.expect, self.text(self.case.origin), self.text([CLEAN])
        if expect in ("cut off", "unfinished", "answered early"):
            return self.cut_problem(golden, clean)
        refused = re.search(r"refused (\d+)( by policy)?", expect)
        goes_on = self.case.after and (not refused or refused[2] == " by policy")
        after = self.text([AFTER]) if goes_on else ""
        methods = [m for m, _, _ in smuggling_origin.requests_in(golden.encode("latin-1"))]
        answers = responses(self.result["data"], methods)
        if not refused:
            return (self.origin_problem(golden + after + clean) or self.passed_problem(answers, golden + after) or
                    self.recorded_problem(False))
        status, i = int(refused[1]), len(methods)
        if len(answers) <= i or answers[i][0] != status or answers[i][1] is None:
            return f"answered {answers}, not {status} and an end"
        return (self.origin_problem(golden + after + clean) or self.recorded_problem(refused[2] != " by policy", status) or
                self.passed_problem(answers[:i] + answers[i + 1:], golden + after))

    # --- responses ---

    def response_problem(self):
        data, expect = self.result["data"], self.case.expect
        method = self.text(self.case.send).split(" ")[0]
        answers = responses(data, [method, "GET"])
        clean = self.result["clean"].rpartition("\r\n\r\n")[2]
        if expect != "whole, reused" and clean.startswith("1 "):
            return "the connection was used again"
        if expect == "cut off":
            whole = [a for a in answers if a[0] >= 200 and a[1] is not None]
            untold = self.result["ending"] == "closed" and "ength:" not in data and "hunked" not in data
            if whole or untold or not self.text(self.case.client).startswith(data[:len(self.text(self.case.client))]):
                return f"the sandbox got {data!r}, {self.result['ending']}"
            return None
        if expect == "502":
            final = [a for a in answers if a[0] >= 200]
            own = re.fullmatch(r"[2-9] GET /after 0\n", final[1][1] or "") if len(final) > 1 else not self.case.after
            if not final or final[0][0] != 502 or not own or "problem+json" not in data:
                return f"the sandbox got {data!r}"
            return None
        wanted = self.text(self.case.client)
        rest = responses(data[len(wanted):], ["GET"])
        number = "1" if expect == "whole, reused" else "2"
        if not data.startswith(wanted) or (self.case.after and rest != [(200, f"{number} GET /after 0\n")]):
            return f"the sandbox got {data!r}, not {wanted!r} and the next response of connection {number}"
        if not self.case.after and len(data) != len(wanted):
            return f"the sandbox got {data!r}, not {wanted!r}"
        return None


class Smuggling(Case):
    """One sandbox, one origin, all runs at once; then a test per file."""

    @classmethod
    def setUpClass(cls):
        cls.runs_of = {}
        number = 0
        for name, cases in FILES.items():
            cls.runs_of[name] = []
            for case in cases:
                cls.runs_of[name] += [Run(number, case, secure) for secure in (False, True)
                                      if case.over in ("", "tls" if secure else "plain")]
                number += 1
        cls.begin_origin()
        config = support.LAB.write("smuggling.yaml", support.LAB.config(
            "limits: {dns_queries_per_s: 10000}\n").replace(
            support.lab.DNS4, DNS).replace("permit: [", f"permit: [{NETWORK}.0.0/16, "))
        cls.box = support.Sandbox(policy(
            "https://*.wild.lab.test", "http://*.wild.lab.test",
            "{to: 'https://*.wild.lab.test', paths: [/key/**], credential: api}",
            credentials=file_credential(rest="inject: bearer"), deny=(
            "{to: 'https://*.wild.lab.test', paths: [/private/**]}", "{to: 'http://*.wild.lab.test', paths: [/private/**]}")),
            config=config)
        cls.take_results()

    @classmethod
    def tearDownClass(cls):
        cls.box.close()
        cls.origin.terminate()
        cls.origin.wait()
        os.unlink(support.LAB.path("smuggling.socket"))  # it is waited for where all of this is tried again
        sh("ip", "link", "del", "strict0")
        sh("ip", "netns", "del", "strict")

    @classmethod
    def begin_origin(cls):
        """In a namespace of its own, where all of NETWORK is local."""
        sh("ip", "netns", "add", "strict")
        sh("ip", "link", "add", "strict0", "type", "veth", "peer", "name", "strict1", "netns", "strict")
        sh("ip", "addr", "add", "10.97.0.1/24", "dev", "strict0")
        sh("ip", "link", "set", "strict0", "up")
        sh("ip", "route", "add", NETWORK + ".0.0/16", "via", DNS)
        for command in (["addr", "add", DNS + "/24", "dev", "strict1"], ["link", "set", "strict1", "up"],
                        ["link", "set", "lo", "up"], ["route", "add", "local", NETWORK + ".0.0/16", "dev", "lo"]):
            sh("ip", "-n", "strict", *command)
        cls.origin = support.LAB.spawn(["ip", "netns", "exec", "strict", PYTHON, os.path.join(HERE, "smuggling_origin.py"),
                                        support.LAB.dir, DNS, NETWORK])
        support.LAB.wait_for_file("smuggling.socket")
        cls.ask_origin({r.host: [[r.text([w]) for w in r.case.reply], r.case.then]
                        for runs in cls.runs_of.values() for r in runs if r.case.hostile})

    @staticmethod
    def ask_origin(replies):
        def ask():
            with socket.socket(socket.AF_UNIX) as s, s.makefile("rwb") as f:
                s.connect(support.LAB.path("smuggling.socket"))
                f.write(json.dumps({"replies": replies}).encode() + b"\n")
                f.flush()
                return json.loads(f.readline())
        return ask()

    @classmethod
    def take_results(cls):
        runs = {r.host: r for runs in cls.runs_of.values() for r in runs}
        done = cls.box.run(PYTHON, os.path.join(HERE, "smuggling_inside.py"), timeout=110,
                           input=json.dumps([r.order() for r in runs.values()]))
        if done.status:
            raise AssertionError(repr(done))
        seen, findings, events = (collections.defaultdict(list) for _ in range(3))
        for row in cls.ask_origin({}):
            seen[row["host"]].append(dict(row, data=base64.b64decode(row["data"]).decode("latin-1")))
        strays = []
        wait_until(lambda: len(cls.box.events(HTTP)) >= len(runs))
        for e in cls.box.events():
            host = re.search(r"c\d{3}[pt]\.wild\.lab\.test", json.dumps(e))
            if host and e["class_uid"] == FINDING and "ambiguous-http" in e["finding_info"]["types"]:
                findings[host[0]].append(e["finding_info"]["desc"])
            elif host and e["class_uid"] == HTTP:
                events[host[0]].append(e)
            elif e["class_uid"] == HTTP:  # the request named another host
                strays.append(e)
        for result in done.json():
            run = runs[result["host"]]
            run.result, run.connections = result, seen[run.host]
            run.findings, run.events, run.strays = findings[run.host], events[run.host], strays

    def check_file(self, name):
        for run in self.runs_of[name]:
            problem = run.problem()
            if problem:
                with self.subTest(case=run.case.name, at=run.case.where, over="tls" if run.secure else "plain"):
                    self.fail(problem)

    def test_there_are_enough(self):
        self.assertGreaterEqual(sum(map(len, FILES.values())), 300)
        names = [c.name for cases in FILES.values() for c in cases]
        self.assertEqual([n for n, k in collections.Counter(names).items() if k > 1], [])


def add_files():
    for name in FILES:
        def test(self, name=name):
            self.check_file(name)
        setattr(Smuggling, "test_" + name.replace("-", "_"), test)


add_files()

