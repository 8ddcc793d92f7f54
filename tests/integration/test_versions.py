# SPDX-License-Identifier: Apache-2.0
"""One rule for every version of HTTP (docs/http.md): each row of its tables over HTTP/1.1 and HTTP/2, towards origins of
either; what the origin got, what the client got and what the log says have to be the same, and `policy explain` has to say it
beforehand."""
import collections
import json
import os
import re
import subprocess

import support
import versions
from h2origin import Origin
from lab import ORIGIN4
from support import FINDING, HERE, HTTP, PYTHON, VETHGUARD, Case, field, policy

PORTS = {11: 8451, 20: 8452}
HOST = "api.lab.test"
DOC = os.path.join(os.path.dirname(os.path.dirname(HERE)), "docs", "http.md")
OWN = {"x-case", "host", "content-length", "transfer-encoding", "connection", "keep-alive"}


def rows_of(heading):
    """First columns of the table under a heading of docs/http.md."""
    with open(DOC, encoding="ascii") as f:
        section = f.read().split(f"\n## {heading}\n")[1].split("\n## ")[0]
    return {line.split(" | ")[0][2:].strip() for line in section.split("\n") if line.startswith("| ") and not line.startswith("| what |")}


class Versions(Case):
    @classmethod
    def setUpClass(cls):
        folder = support.LAB.dir
        kinds = {11: ("http/1.1",), 20: ("h2",)}
        cls.origins = {v: support.in_namespace("outside", lambda v=v: Origin(ORIGIN4, PORTS[v], folder, kinds[v])) for v in PORTS}
        cls.policy = policy(*(f"https://{HOST}:{p}" for p in PORTS.values()))
        config = support.LAB.write("versions.yaml", support.LAB.config(f"limits: {{header_bytes: {versions.HEAD_BYTES}, dns_queries_per_s: 100000}}\n"))
        cls.box = support.Sandbox(cls.policy, config=config)

    @classmethod
    def tearDownClass(cls):
        cls.box.close()
        for o in cls.origins.values():
            o.close()

    def ask(self, of, cases):
        """{(case, client's version, origin's version): (what the client got, what the origin got, what the log says)}."""
        for origin in self.origins.values():
            with origin.lock:
                origin.requests, origin.violations = [], []
        orders = {f"{of[0]}{i}-{c}-{o}": {"version": c, "host": HOST, "port": PORTS[o], "case": i, "of": of, "id": f"{of[0]}{i}-{c}-{o}"}
                  for i in range(len(cases)) for c in PORTS for o in PORTS}
        done = self.box.run(PYTHON, os.path.join(HERE, "versions.py"), timeout=170, input=json.dumps(list(orders.values())),
                            env={"SLOW": str(support.SLOW)})
        self.assertEqual(done.status, 0, done)
        answers = {a["id"]: a for a in done.json()}
        seen = collections.defaultdict(list)
        for origin in self.origins.values():
            for r in origin.requests:
                seen[(r.values("x-case") or [""])[0]].append(r)
            self.assertEqual(origin.violations, [])
        self.assertEqual(seen.pop("", []), [], "the origin got a request of no case")
        return {(i, c, o): (answers[f"{of[0]}{i}-{c}-{o}"], seen[f"{of[0]}{i}-{c}-{o}"]) for i in range(len(cases)) for c in PORTS for o in PORTS}

    # --- requests ---

    @staticmethod
    def as_sent(case, host):
        """The request that the origin has to get, in either version."""
        fields = [f for f in case.fields if f[0] != "cookie"]
        length = "0" if case.method in ("POST", "PUT", "PATCH") else None
        if case.body is not None:
            length = str(len(case.body)) if case.length or "content-length" in dict(case.fields) else None
        return {"method": case.method, "target": case.target, "host": host, "body": (case.body or b"").decode(), "cookie": None, "length": length,
                "fields": [f for f in fields if f[0].lower() not in OWN], "trailers": case.trailers, **case.sees}

    @staticmethod
    def as_seen(r):
        cookies = r.values("cookie")
        return {"method": r.method, "target": r.target, "host": r.values("host")[0], "body": r.body.decode(),
                "cookie": "; ".join(cookies) or None, "length": (r.values("content-length") or [None])[0],
                "fields": [(n.lower(), v) for n, v in r.fields if n.lower() not in OWN | {"cookie", "te", "expect"}],
                "trailers": [t for t in r.trailers]}

    def request_problem(self, case, client, origin, got, seen):
        want = case.wanted(client)
        if want == "cut":
            whole = [r for r in seen if r.whole]
            ok = not whole and not (got["status"] and got["status"] < 400)
            return None if ok else f"the origin got a whole request, or it was answered {got['status']}"
        if want != "passed":
            if got["status"] != want or not got.get("whole"):
                return f"answered {got}, not {want}"
            return f"the origin saw {[r.raw[:200] for r in seen]}" if seen else None
        if got["status"] != 200 or not got["whole"] or got["body"] != ("" if case.method == "HEAD" else "ok"):
            return f"answered {got}"
        if len(seen) != 1 or not seen[0].whole:
            return f"the origin saw {len(seen)} requests"
        sent, saw = self.as_sent(case, f"{HOST}:{PORTS[origin]}"), self.as_seen(seen[0])
        return None if sent == saw else f"the origin saw {saw}, not {sent}"

    def test_requests(self):
        results, problems = self.ask("requests", versions.REQUESTS), []
        for (i, client, origin), (got, seen) in results.items():
            case = versions.REQUESTS[i]
            problem = self.request_problem(case, client, origin, got, seen)
            if problem:
                problems.append(f"{case.row}: {case.name}, HTTP/{client / 10} to HTTP/{origin / 10}: {problem}")
        if problems:
            self.fail(f"{len(problems)} of {len(results)}:\n" + "\n".join(problems))

    def test_what_the_log_says(self):
        """The same cause, status and finding, whichever version carried it."""
        self.ask("requests", versions.REQUESTS)
        self.box.settle()
        told = collections.Counter()
        for e in self.box.events():
            if e["class_uid"] == HTTP:
                told[(field(e, "http_request.version"), field(e, "http_response.code"), e.get("status_code"))] += 1
            elif e["class_uid"] == FINDING:
                told["findings", tuple(e["finding_info"]["types"])] += 1
        for version in ("1.1", "2"):
            for status in (400, 405, 414, 417, 431, 501):
                self.assertEqual({k[2] for k in told if k[:2] == (version, status)}, {"client"}, (version, status))
        self.assertGreater(told["findings", ("ambiguous-http",)], 0)
        self.assertGreater(told["findings", ("binding-mismatch",)], 0)
        self.assertEqual({k[1][0] for k in told if k[0] == "findings"}, {"ambiguous-http", "binding-mismatch"})

    def test_explain(self):
        """A method is treated as explain says."""
        path = support.LAB.write("explain.yaml", self.policy)
        for case in versions.REQUESTS:
            if case.explained is None:
                continue
            with self.subTest(case.name):
                done = subprocess.run([VETHGUARD, "policy", "explain", path, case.method.encode("latin-1"), f"https://{HOST}:{PORTS[11]}/v"],
                                      stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
                self.assertEqual(done.returncode == 0, case.explained, done)

    # --- responses ---

    @staticmethod
    def answering(case_of):
        def hook(peer, number, request):
            case = case_of(request)
            if number:
                peer.send(versions.response_of_http2(case, number))
            else:
                peer.sock.sendall(versions.response_of_http1(case))
                if case.wanted(11) == "cut":
                    raise EOFError
            return True
        return hook

    @staticmethod
    def response_sees(case, version):
        fields = [f for f in case.fields if f[0] not in OWN]
        return {"status": int(case.status), "fields": sorted(fields), "body": case.body.decode() if case.method != "HEAD" else "",
                "interims": [int(s) for s in case.interims], "trailers": case.trailers, "whole": True, **{k: v for k, v in case.sees.items() if k != "length"}}

    def response_problem(self, case, client, origin, got):
        want = case.wanted(origin)
        if want == "502":
            return None if got["status"] == 502 and got["whole"] else f"answered {got}"
        if want == "cut":
            return None if got["status"] == 200 and not got["whole"] else f"answered {got}"
        known = dict(map(tuple, got.get("fields", [])))
        saw = {"status": got["status"], "fields": sorted((n, v) for n, v in got.get("fields", []) if n not in OWN), "body": got["body"],
               "interims": got["interims"], "trailers": [tuple(t) for t in got["trailers"]], "whole": got["whole"]}
        sent = self.response_sees(case, client)
        if "length" in case.sees and known.get("content-length") != case.sees["length"]:
            return f"a length of {known.get('content-length')}"
        return None if saw == sent else f"got {saw}, not {sent}"

    def test_responses(self):
        hook = self.answering(lambda r: versions.RESPONSES[int(re.match(r"r(\d+)-", r.values("x-case")[0])[1])])
        for origin in self.origins.values():
            origin.hook = hook
        try:
            results = self.ask("responses", versions.RESPONSES)
        finally:
            for origin in self.origins.values():
                origin.hook = None
        problems = []
        for (i, client, origin), (got, _) in results.items():
            case = versions.RESPONSES[i]
            problem = self.response_problem(case, client, origin, got)
            if problem:
                problems.append(f"{case.row}: {case.name}, HTTP/{origin / 10} to HTTP/{client / 10}: {problem}")
        if problems:
            self.fail(f"{len(problems)} of {len(results)}:\n" + "\n".join(problems))

    # --- the tables ---

    def test_the_tables_are_those_of_the_documentation(self):
        self.assertEqual(rows_of("Requests"), {c.row for c in versions.REQUESTS})
        self.assertEqual(rows_of("Responses"), {c.row for c in versions.RESPONSES})
