# SPDX-License-Identifier: Apache-2.0
"""What the tests of agent programs share: the programs (npm packages of package.json, installed by `make check-agents`
into build/agents), the origin that plays their APIs under the real names, and the base class. Each program runs in
`vethguard run` on a fresh home, with a policy that is one line: `include: [preset:NAME]`."""
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
import unittest

import lab
import plays
import services
import support

HERE = os.path.dirname(os.path.abspath(__file__))
BIN = os.path.join(support.ROOT, "build", "agents", "node_modules", ".bin")
PROMPT = "What is guarded?"
ANSWER = plays.TEXT
# An agent that opens a connection and closes it unused, or whose socket is gone when an answer comes, was not refused.
NOT_REFUSED = ("client", "fence")
ESCAPES = re.compile(rb"\x1b(?:\[[0-9;:?<=>]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[()][0-9A-Z]|[=>78MDEHc])")
SECONDS = 120  # some of these programs compute for ten seconds before they do anything
STARTED = False


def start():
    """The origin, once: its certificate has the services' real names and comes from a CA that vethguard alone knows."""
    global STARTED
    if STARTED:
        return
    STARTED = True
    folder = support.LAB.path("agents")
    os.makedirs(folder)
    support.sh("sh", os.path.join(support.ROOT, "certs/make-test-ca"), folder, *services.NAMES)
    with open(support.LAB.path("agents.log"), "ab") as out:
        support.LAB.spawn_outside([sys.executable, os.path.join(HERE, "origin.py"), folder, lab.NODE4, support.LAB.path("seen.jsonl")],
                                  stdout=out, stderr=out)
    support.LAB.wait_for_file("agents/origin.ready", 30)
    support.LAB.write("agents.yaml", f"resolver:\n  servers: [{lab.NODE4}]\nca_files: [{folder}/ca.pem]\npermit: [10.99.0.0/16, fd99::/64]\n")


def needs(program):
    return unittest.skipUnless(os.path.exists(os.path.join(BIN, program)), f"needs {program}, which make check-agents installs")


class Agent(support.Case):
    PRESETS = ()     # of the policy's one line
    KEY = None       # the variable with the key, of whoever starts vethguard
    ENV = {}         # what the reader sets for this program
    COMMAND = ()     # run with the prompt
    API = None       # (host, path) of the request that carries the prompt
    KEYED = ()       # further hosts that get the key
    TELEMETRY = ()   # names of deny rules: what they refuse is expected
    UPDATES = ()     # (host, path's start) of what preset:agent-updates allows, and is refused without it
    ASIDE = ()       # host:port of connections that are refused in any case, and that the program does without

    @classmethod
    def setUpClass(cls):
        start()

    def policy(self, *more):
        return f"vethguard: 1\ninclude: [{', '.join('preset:' + p for p in (*self.PRESETS, *more))}]\n"

    def fresh(self):
        """(variables, working folder) of somebody who never ran the program."""
        base = support.LAB.path(f"fresh-{time.monotonic_ns()}")
        home, work = base + "/home", base + "/work"
        os.makedirs(home)
        os.makedirs(work)
        return {"HOME": home, "PATH": BIN + ":" + os.environ["PATH"], "TERM": "xterm-256color", "LANG": "C.UTF-8",
                self.KEY: support.SECRET, **self.ENV}, work

    def run_agent(self, *more):
        env, work = self.fresh()
        return self.run_vethguard(self.policy(*more), self.COMMAND, env=env, cwd=work, config=support.LAB.path("agents.yaml"),
                                  input="", timeout=SECONDS)

    # --- what has to be true of every run ---

    def check(self, audit, updates=False):
        """No alarm; only what has a name was refused; the key arrived, and no placeholder ever did."""
        events = support.Events(audit).all()
        denied = {support.field(e, "query.hostname") or support.field(e, "http_request.url.hostname") for e in events
                  if support.field(e, "firewall_rule.name") in self.TELEMETRY}
        findings = [(e["message"], support.field(e, "finding_info.desc"), e["evidences"]) for e in events if e["class_uid"] == support.FINDING]
        self.assertEqual(findings, [], "no finding of any severity")
        refused = [e for e in events if e.get("action_id") == 2 and e.get("status_code") not in NOT_REFUSED]
        wrong = [e["message"] for e in refused if not self.expected(e, denied, updates)]
        self.assertEqual(wrong, [], "nothing is refused but named telemetry" + ("" if updates else " and updates"))
        failed = [e["message"] for e in events if e.get("action_id") == 1 and e.get("status_id") == 2 and e.get("status_code") != "client"]
        self.assertEqual(failed, [], "what is allowed works")
        rows = self.seen("request") + self.seen("message")
        self.assertEqual([r for r in rows if r["placeholder"]], [], "a placeholder reached the outside")
        host, path = self.API
        mine = [r for r in self.seen("request", host=host) if r["path"].startswith(path)]
        self.assertTrue(mine, f"the origin did not see {self.API}: {[(r['host'], r['path']) for r in rows]}")
        self.assertEqual([r for r in mine if not r["key"]], [], "the key was put in")
        self.assertEqual({r["host"] for r in rows if r.get("key")} - {host, *self.KEYED}, set(), "the key went nowhere else")

    def expected(self, event, denied, updates):
        """Whether the preset announces this refusal; denied: hosts of telemetry in this log."""
        if support.field(event, "firewall_rule.name") in self.TELEMETRY:
            return True
        host = support.field(event, "http_request.url.hostname") or support.field(event, "query.hostname")
        path = support.field(event, "http_request.url.path")
        if event["class_uid"] == support.NETWORK:
            host = support.field(event, "dst_endpoint.hostname")
            if f"{host}:{support.field(event, 'dst_endpoint.port')}" in self.ASIDE:
                return True
            if host in denied:  # a connection that was closed before it said that it is for https
                return True
        return not updates and any(host == h and (path is None or path.startswith(p)) for h, p in self.UPDATES)

    def check_answered(self, done):
        self.assertEqual(done.status, 0, done)
        self.assertIn(ANSWER, done.stdout, done)


class Runs:
    """The two tests of every program, mixed into its class."""

    def test_prompt(self):
        done = self.run_agent()
        self.check_answered(done)
        self.check(done.audit)

    def test_prompt_with_updates(self):
        done = self.run_agent("agent-updates", "npm")
        self.check_answered(done)
        self.check(done.audit, updates=True)


class Terminal:
    """`vethguard run` on a terminal of its own; waits for what is shown and types."""
    ROWS, COLUMNS = 50, 120

    def __init__(self, case, *more, command):
        env, work = case.fresh()
        name = f"t{time.monotonic_ns()}"
        self.audit = support.LAB.path(name + ".jsonl")
        argv = [support.VETHGUARD, "run", "--policy", support.LAB.write(name + ".yaml", case.policy(*more)), "--config",
                support.LAB.path("agents.yaml"), "--audit", self.audit, "--", *command]
        self.shown = b""
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.chdir(work)
            os.execve(argv[0], argv, {k: v for k, v in {**os.environ, **env}.items() if not k.lower().endswith("_proxy")})
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", self.ROWS, self.COLUMNS, 0, 0))
        support.AUDITS.append(self.audit)

    def text(self):
        """The text shown so far, as words: some programs move the cursor where others write blanks."""
        return re.sub(rb"\s+", b" ", ESCAPES.sub(b" ", self.shown)).decode("utf-8", "replace")

    def read(self, seconds):
        if not select.select([self.fd], [], [], seconds)[0]:
            return True
        try:
            piece = os.read(self.fd, 65536)
        except OSError:
            return False
        self.shown += piece
        return bool(piece)

    def wait_for(self, words):
        """Until these words are shown, counted from the last call on."""
        end = time.monotonic() + SECONDS * support.SLOW
        while words not in self.text():
            if time.monotonic() > end or not self.read(0.2):
                raise AssertionError(f"{words!r} is not shown: {self.text()[-3000:]}")
        self.shown = b""

    def type(self, keys):
        """Like a person: after the screen has come to rest."""
        still = time.monotonic() + 1
        while time.monotonic() < still:
            before = len(self.shown)
            self.read(0.2)
            if len(self.shown) != before:
                still = time.monotonic() + 0.6
        os.write(self.fd, keys.encode())

    def close(self):
        try:
            os.kill(self.pid, signal.SIGTERM)
        except ProcessLookupError:
            pass
        while self.read(0.5):
            if os.waitpid(self.pid, os.WNOHANG)[0]:
                break
        else:
            os.waitpid(self.pid, 0)
        os.close(self.fd)
