# SPDX-License-Identifier: Apache-2.0
"""Checks that an operator makes before using a policy: where its names lead, and whether a sandbox agrees."""
import json
import os
import pty
import re
import select
import signal
import subprocess
import tempfile
import time

import support
from support import Case, policy

VETHGUARD = support.VETHGUARD


def tool(*args, timeout=60):
    return subprocess.run([VETHGUARD, "policy", *args], capture_output=True, text=True, timeout=timeout)


class Resolve(Case):
    HOSTS = ["api.lab.test", "loop.lab.test", "private.lab.test", "meta.lab.test", "own-public.lab.test"]

    def setUp(self):
        super().setUp()
        self.plain = support.LAB.config()
        self.policy = support.LAB.write("named.yaml", policy(*(f"https://{h}" for h in self.HOSTS)))

    def config(self, name, text):
        return support.LAB.write(name, text)

    def test_names_what_the_proxy_refuses(self):
        """The same names that a sandbox is refused, with the very addresses; nothing but the name servers is asked."""
        config = self.config("resolve.yaml", self.plain)
        r = tool("check", self.policy, "--resolve", "--config", config)
        self.assertEqual(r.returncode, 1, r)
        told = {m[0]: m[1:] for m in re.findall(r'error: "([^"]+)" leads to (\S+), which is ([^:]+):', r.stderr)}
        self.assertEqual(told, {"loop.lab.test": ("127.0.0.1", "loopback"), "private.lab.test": ("192.168.7.7", "private"),
                                "meta.lab.test": ("169.254.169.254", "cloud metadata"), "own-public.lab.test": ("11.22.33.44", "this machine's own")})
        self.assertIn(f"{self.policy}:5:", r.stderr)
        self.assertEqual({row["what"] for row in self.seen()}, {"dns"})
        box = self.sandbox(policy(*(f"https://{h}" for h in self.HOSTS)), config=config)
        for host in self.HOSTS:
            status = box.run("curl", "-sS", "-o", "/dev/null", "-m", "10", "-w", "%{http_code}", f"https://{host}/").out
            self.assertEqual(status, "403" if host in told else "200", host)

    def test_the_line_that_is_told_permits_it(self):
        for host in self.HOSTS[1:]:
            text = re.sub("permit:.*\n", "", self.plain)
            config = self.config("remedy.yaml", text)
            one = support.LAB.write("one.yaml", policy(f"https://{host}"))
            r = tool("check", one, "--resolve", "--config", config)
            self.assertEqual(r.returncode, 1, r)
            line = re.search(r'permit it with "(permit: \[.*\])" in ' + re.escape(config), r.stderr).group(1)
            self.config("remedy.yaml", text + line + "\n")
            r = tool("check", one, "--resolve", "--config", config)
            self.assertEqual((r.returncode, r.stderr), (0, ""), host)

    def test_without_resolve_nobody_is_asked(self):
        config = self.config("static.yaml", self.plain.replace("resolver:\n", "resolver:\n  hosts: {private.lab.test: 192.168.7.7}\n"))
        r = tool("check", self.policy, "--config", config)
        self.assertEqual(r.returncode, 1, r)
        self.assertIn('"private.lab.test" leads to 192.168.7.7, which is private', r.stderr)
        self.assertIn("4 of 5 hosts are not in hosts; --resolve asks the name servers for them", r.stderr)
        r = tool("explain", self.policy, "GET", "https://private.lab.test/", "--config", config)
        self.assertEqual(r.returncode, 1, r)
        self.assertIn("verdict: deny: the name leads to 192.168.7.7, which is private: permit it with 192.168.7.7 in the list permit: of", r.stdout)
        r = tool("explain", self.policy, "GET", "https://loop.lab.test/", "--config", config)
        self.assertEqual(r.returncode, 0, r)
        self.assertIn("host: loop.lab.test was not looked up: --resolve asks the name servers", r.stdout)
        r = tool("check", self.policy)
        self.assertEqual((r.returncode, r.stderr), (0, ""))
        self.assertEqual(self.seen(), [])

    def test_explain_asks(self):
        config = self.config("explain.yaml", self.plain)
        r = tool("explain", self.policy, "GET", "https://loop.lab.test/", "--config", config, "--resolve", "--json")
        self.assertEqual(r.returncode, 1, r)
        out = json.loads(r.stdout)
        self.assertEqual((out["verdict"], out["host"]["state"]), ("deny", "refused"))
        self.assertEqual(out["host"]["addresses"], [{"address": "127.0.0.1", "kind": "loopback", "refused": True}])
        r = tool("explain", self.policy, "GET", "https://api.lab.test/", "--config", config, "--resolve")
        self.assertEqual(r.returncode, 0, r)
        self.assertRegex(r.stdout, r"host: api\.lab\.test leads to .*10\.99\.0\.80")
        r = tool("explain", self.policy, "GET", "https://evil.lab.test/", "--config", config, "--resolve")
        self.assertEqual(r.returncode, 1, r)
        self.assertNotIn("evil.lab.test", {row.get("name") for row in self.seen("dns")})  # denied anyway: not asked for

    def test_denied_and_wild_names_are_not_asked_for(self):
        text = policy("https://api.lab.test", "https://www.lab.test", "https://*.wild.lab.test", "https://10.99.0.80",
                      deny=("{to: 'https://www.lab.test'}", "{to: 'https://git.lab.test'}"))
        r = tool("check", support.LAB.write("few.yaml", text), "--resolve", "--config", self.config("few-config.yaml", self.plain))
        self.assertEqual(r.returncode, 0, r)
        self.assertEqual({row["name"] for row in self.seen("dns")}, {"api.lab.test"})

    def test_no_such_name(self):
        one = support.LAB.write("nowhere.yaml", policy("https://nowhere.other.test"))
        r = tool("check", one, "--resolve", "--config", self.config("nowhere-config.yaml", self.plain), "--json")
        self.assertEqual(r.returncode, 1, r)
        out = json.loads(r.stdout)[0]
        self.assertEqual((out["good"], out["resolves"], out["hosts"][0]["state"]), (True, False, "nowhere"))

    def test_silent_server_is_bounded(self):
        config = self.config("silent.yaml", "resolver: {servers: ['10.99.0.99']}\ntimeouts: {resolve: 1s}\n")
        many = support.LAB.write("many.yaml", policy(*(f"https://n{i}.lab.test" for i in range(40))))
        r = tool("check", many, "--resolve", "--config", config, timeout=30)
        self.assertEqual(r.returncode, 1, r)
        self.assertEqual(r.stderr.count("cannot be resolved"), 40)

    def test_egress_proxy_resolves(self):
        """Names that the proxy resolves are not asked for here: that would tell them to somebody else."""
        config = self.config("through.yaml", self.plain + "egress: {proxy: 'http://10.99.0.9:3128'}\n")
        r = tool("check", self.policy, "--resolve", "--config", config)
        self.assertEqual(r.returncode, 0, r)
        self.assertIn("5 of 5 hosts were not looked up, because the egress proxy resolves names", r.stderr)
        self.assertEqual(self.seen(), [])

    def test_bad_configuration(self):
        for text, says in (("permit: [x]\n", "bad-config.yaml:1:"), ("resolvr: {}\n", 'did you mean "resolver"?')):
            for args in (("check", self.policy), ("explain", self.policy, "GET", "https://api.lab.test/")):
                r = tool(*args, "--config", self.config("bad-config.yaml", text))
                self.assertEqual((r.returncode, r.stdout), (2, ""), r)
                self.assertIn(says, r.stderr)
        r = tool("diff", self.policy, self.policy, "--resolve")
        self.assertEqual(r.returncode, 2)
        self.assertIn("unknown option --resolve", r.stderr)


class Terminal:
    """A program on a terminal of its own: what it asks, and answers to that."""

    def __init__(self, *argv, cwd):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.chdir(cwd)
            os.execv(argv[0], argv)
        self.text, self.at = "", 0

    def wait_for(self, words, seconds=20):
        end = time.monotonic() + seconds
        while words not in self.text[self.at:]:
            if not select.select([self.fd], [], [], max(0, end - time.monotonic()))[0]:
                raise AssertionError(f"{words!r} did not come: {self.text!r}")
            try:
                data = os.read(self.fd, 4096)
            except OSError:
                data = b""
            if not data:
                raise AssertionError(f"{words!r} did not come before the end: {self.text!r}")
            self.text += data.decode()
        self.at = self.text.index(words, self.at) + len(words)

    def answer(self, question, text):
        self.wait_for(question)
        self.wait_for("]: ")
        os.write(self.fd, text.encode() + b"\n")

    def end(self):
        while True:
            try:
                data = os.read(self.fd, 4096)
            except OSError:
                break
            if not data:
                break
            self.text += data.decode()
        os.close(self.fd)
        return os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])


class New(Case):
    """`vethguard policy new`."""

    def setUp(self):
        super().setUp()
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def new(self, *args):
        return subprocess.run([VETHGUARD, "policy", "new", *args], capture_output=True, text=True, timeout=30, cwd=self.folder.name,
                              stdin=subprocess.DEVNULL)

    def terminal(self, *args):
        return Terminal(VETHGUARD, "policy", "new", *args, cwd=self.folder.name)

    def decides(self, path, method, url):
        return {0: "allow", 1: "deny"}[tool("explain", path, method, url).returncode]

    def assert_good(self, path):
        r = tool("check", path)
        self.assertEqual(r.returncode, 0, r)

    def test_by_options(self):
        r = self.new("--agent", "anthropic", "--packages", "pypi,npm", "-p", "pypi", "--host", "docs.example.com *.example.org",
                     "--host", "tcp://db.example.com:5432", "--mode", "enforce", "--output", "a.yaml")
        self.assertEqual((r.returncode, r.stderr), (0, ""), r)
        path = self.path("a.yaml")
        self.assert_good(path)
        self.assertEqual(os.stat(path).st_mode & 0o022, 0)
        for method, url, verdict in (("POST", "https://api.anthropic.com/v1/messages", "allow"), ("GET", "https://pypi.org/simple/x/", "allow"),
                                     ("GET", "https://registry.npmjs.org/x", "allow"), ("GET", "https://docs.example.com/x", "allow"),
                                     ("POST", "https://docs.example.com/x", "deny"), ("GET", "https://a.b.example.org/", "allow"),
                                     ("GET", "https://example.org/", "deny"), ("CONNECT", "tcp://db.example.com:5432", "allow"),
                                     ("CONNECT", "tcp://db.example.com:5433", "deny"), ("GET", "https://evil.example/", "deny")):
            self.assertEqual(self.decides(path, method, url), verdict, (method, url))
        self.assertIn('name: "a"', open(path).read())

    def test_the_comment_about_the_key_is_right(self):
        """The printed text can replace the include."""
        self.new("--agent", "anthropic", "-o", "k.yaml")
        text = open(self.path("k.yaml")).read()
        line = re.search(r"# (- {preset: .*}}})", text).group(1)
        with open(self.path("k.yaml"), "w") as f:
            f.write(text.replace("- preset:anthropic", line))
        self.assert_good(self.path("k.yaml"))
        r = tool("explain", self.path("k.yaml"), "POST", "https://api.anthropic.com/v1/messages")
        self.assertIn("credential: anthropic, from file:/path/of/the/key", r.stdout)

    def test_presets_are_those_that_there_are(self):
        """Each that lies in the directory, and by each kind of option."""
        names = sorted(n[:-5] for n in os.listdir(os.path.join(support.ROOT, "policies/presets")) if n.endswith(".yaml"))
        told = re.findall(r"^(?:Agents and APIs|Packages): (.*)$", self.new("--help").stdout, re.M)
        listed = [w for line in told for w in re.split(", | and ", line)]
        for i, name in enumerate(names):
            r = self.new("--agent", name, "--packages", name, "-o", f"p{i}.yaml")
            if name in listed:
                self.assertEqual(r.returncode, 0, r)
                self.assert_good(self.path(f"p{i}.yaml"))
            else:
                self.assertEqual(r.returncode, 2, r)
                self.assertIn("has to be included by hand: variable", r.stderr)
        self.assertNotIn("github-push", listed)
        agents = re.split(", | and ", told[0])
        for name in ("claude-code", "cline", "openai", "opencode", "pi"):
            self.assertIn(name, agents)
        for name in ("debian", "github", "npm", "pypi"):
            self.assertNotIn(name, agents)
        for name, like in (("qwen-code", "openai"), ("codex", "openai"), ("claude-code-token", "claude-code")):  # two uses of one key
            r = self.new("--agent", name, "--agent", like, "-o", "both.yaml")
            self.assertEqual(r.returncode, 2, r)
            self.assertIn("what was chosen makes no policy", r.stderr)
            listed.remove(name)
        r = self.new(*(w for name in listed for w in ("--agent", name)), "-o", "all.yaml")
        self.assertEqual(r.returncode, 0, r)
        self.assert_good(self.path("all.yaml"))

    def test_hostile_words(self):
        """Each is refused, or makes a valid policy that allows nothing but that host."""
        words = ['a"b', "a\\b", "a\nallow: [{to: evil.example}]", 'x"\n  - to: "evil.example', "${x}", "group:x", "https://u:p@x.example", "#", "&a", "*a",
                 "!!str", "x: y", "'", "{a: b}", "- evil.example #", "\x1b[31m", "\u00e9.example", "a" * 600, "%YAML", "---", "...", "?", "|", ">",
                 "preset:pypi", "https://a.example/path", "0.0.0.0/0", "[public]", "10.0.0.0/8", "a.example,b.example", "\t"]
        for i, word in enumerate(words):
            for args in (("--host", word), ("--host", "ok.example", "--name", word), ("--agent", word), ("--host", "ok.example", "--mode", word)):
                with self.subTest(args=args):
                    path = self.path(f"h{i}-{args[0]}-{len(args)}.yaml")
                    r = self.new(*args, "-o", path)
                    if r.returncode == 0:
                        self.assert_good(path)
                        self.assertEqual(self.decides(path, "POST", "https://evil.example/"), "deny")
                    else:
                        self.assertEqual(r.returncode, 2, r)
                        self.assertIn("vethguard: error: ", r.stderr)
                        self.assertNotIn("\x1b", r.stderr)
                        self.assertFalse(os.path.exists(path))

    def test_bounds(self):
        r = self.new("--host", " ".join(f"h{i}.example" for i in range(32)), "-o", "most.yaml")
        self.assertEqual(r.returncode, 0, r)
        r = self.new("--host", " ".join(f"h{i}.example" for i in range(33)), "-o", "more.yaml")
        self.assertEqual(r.returncode, 2, r)
        self.assertIn("is too many", r.stderr)
        r = self.new("--host", "a.example", "--name", "n" * 65, "-o", "more.yaml")
        self.assertEqual(r.returncode, 2, r)
        r = self.new("--host", "a.example", "-o", "/" + "d" * 5000)
        self.assertEqual(r.returncode, 2, r)
        self.assertEqual(os.listdir(self.folder.name), ["most.yaml"])

    def test_nothing_is_overwritten(self):
        for name in ("there", "link", "dangling", "folder"):
            if name == "there":
                open(self.path(name), "w").write("mine")
            elif name == "link":
                os.symlink(self.path("there"), self.path(name))
            elif name == "dangling":
                os.symlink(self.path("nowhere"), self.path(name))
            else:
                os.mkdir(self.path(name))
            r = self.new("--host", "a.example", "-o", name)
            self.assertEqual(r.returncode, 2, r)
            self.assertIn("already exists and is not overwritten", r.stderr)
        self.assertEqual(open(self.path("there")).read(), "mine")
        self.assertFalse(os.path.exists(self.path("nowhere")))
        r = self.new("--host", "a.example", "-o", "no/such/folder.yaml")
        self.assertEqual(r.returncode, 2, r)
        self.assertIn("No such file or directory", r.stderr)

    def test_full_disk_leaves_nothing(self):
        r = subprocess.run(["sh", "-c", f'"{VETHGUARD}" policy new --host a.example -o - > /dev/full'], capture_output=True, text=True)
        self.assertEqual(r.returncode, 2, r)
        self.assertIn("No space left on device", r.stderr)

    def test_without_a_terminal(self):
        for args, says in (((), "say --output FILE and one of --agent, --packages and --host"), (("-o", "x"), "say one of --agent, --packages and --host"),
                           (("--host", "a.example"), "say --output FILE. See")):
            r = self.new(*args)
            self.assertEqual((r.returncode, r.stdout), (2, ""), r)
            self.assertIn("there is no terminal to ask on; " + says, r.stderr)
        self.assertEqual(os.listdir(self.folder.name), [])

    def test_wrong_words(self):
        for args, says in ((("--agent", "antropic"), 'did you mean "anthropic"?'), (("--packages", "pipy"), 'did you mean "pypi"?'),
                           (("--mode", "observ"), 'did you mean "observe"?'), (("--hots", "x"), "did you mean --host?"),
                           (("--host", "a.example", "agent.yaml"), "name the file with --output"), (("--output", ""), "is not a file's name")):
            r = self.new(*args)
            self.assertEqual((r.returncode, r.stdout), (2, ""), r)
            self.assertIn(says, r.stderr)

    def test_questions(self):
        t = self.terminal()
        t.wait_for("anthropic ")
        t.answer("Agent, or API of a model", "antropic")
        t.wait_for('did you mean "anthropic"?')
        t.answer("Agent, or API of a model", "anthropic")
        t.answer("Packages, public sources", "pypi, npm")
        t.answer("Other hosts", "docs.example.com")
        t.answer("Name of the policy", "")
        t.answer("Mode", "")
        t.answer("File to write [my-agent.yaml", "")
        self.assertEqual(t.end(), 0, t.text)
        self.assertIn("my-agent.yaml is written", t.text)
        self.assert_good(self.path("my-agent.yaml"))
        self.assertEqual(self.decides(self.path("my-agent.yaml"), "GET", "https://pypi.org/simple/x/"), "allow")
        self.assertEqual(self.decides(self.path("my-agent.yaml"), "GET", "https://docs.example.com/"), "allow")

    def test_only_what_is_not_said(self):
        t = self.terminal("--agent", "openai", "--packages", "npm", "--name", "mine")
        t.answer("Other hosts", "none")
        t.answer("Mode", "observe")
        t.answer("File to write [mine.yaml", "other.yaml")
        self.assertEqual(t.end(), 0, t.text)
        self.assertNotIn("Agent, or API", t.text)
        self.assertIn("mode: observe", open(self.path("other.yaml")).read())
        self.assert_good(self.path("other.yaml"))

    def test_enough_said_nothing_asked(self):
        t = self.terminal("--host", "a.example", "-o", "b.yaml")
        self.assertEqual(t.end(), 0, t.text)
        self.assertNotIn("]: ", t.text)

    def test_no_right_answer(self):
        t = self.terminal()
        for _ in range(5):
            t.answer("Agent, or API of a model", "nothing-at-all")
        self.assertEqual(t.end(), 2, t.text)
        self.assertIn("Nothing was written.", t.text)
        t = self.terminal()
        t.wait_for("]: ")
        os.write(t.fd, b"\x04")  # the end of what is read
        self.assertEqual(t.end(), 2, t.text)
        t = self.terminal()
        t.wait_for("]: ")
        os.write(t.fd, b"\x03")  # an interrupt
        self.assertEqual(t.end(), -signal.SIGINT, t.text)
        self.assertEqual(os.listdir(self.folder.name), [])

    def test_long_answer(self):
        read, write = os.openpty()
        p = subprocess.Popen([VETHGUARD, "policy", "new"], stdin=write, stderr=write, stdout=subprocess.DEVNULL, cwd=self.folder.name)
        os.close(write)
        for _ in range(3):
            os.write(read, b"x" * 500)
        os.write(read, b"\n")
        self.assertEqual(p.wait(20), 2)
        os.close(read)
        self.assertEqual(os.listdir(self.folder.name), [])
