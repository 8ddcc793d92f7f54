# SPDX-License-Identifier: Apache-2.0
"""README and the guides are true as printed: every block of them runs in `make lab`, in its order, in one shell for each page, and
prints what the page shows. pages.py tells what a page may say, and how it marks what runs elsewhere.

With VETHGUARD_REWRITE=1 a page that shows something else is rewritten to what came (where it has no `...`)."""
import os
import re
import secrets
import subprocess
import tempfile
import unittest

import lab
import pages
import support
from lab import ROOT
from support import REPORT, SECRET, SLOW, holds_secret

LAB_RUN = os.path.join(ROOT, "contrib", "lab", "run")
PAGES = ["README.md", "docs/first-hour.md", "docs/guides/any-agent.md", "docs/guides/ci-runner.md",
         "docs/guides/github.md", "docs/guides/mcp.md", "docs/guides/approval.md", "docs/guides/models.md", "docs/attach.md", "docs/docker-network.md", "docs/sockets.md", "docs/expose.md", "docs/prepare.md",
         "docs/gateway.md", "docs/install.md"]
ELSEWHERE = {"docs/guides/langchain.md": "providers/test_langchain_page.py"}  # page that needs foreign packages: the test that runs it
MAKE_GOALS = re.compile(r"^(?:sudo )?make (?:-\S+ )?([\w-]+)", re.M)
KEYS = SECRET + "\n"  # pasted where a page asks for one
PAGE_S = 60


def run_in_lab(command, input="", timeout=PAGE_S):
    """(exit status, what it printed)"""
    r = subprocess.run([LAB_RUN, command], input=input, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                       errors="replace", timeout=timeout * SLOW, env={**os.environ, "VETHGUARD_BIN": lab.BIN})
    return r.returncode, r.stdout


class Paged(unittest.TestCase):
    maxDiff = None

    def page(self, name, before="", elsewhere=None):
        """before: commands that come first, of which the page says nothing. elsewhere: runs the blocks that name it too."""
        path = os.path.join(ROOT, name)
        found = [b for b in pages.blocks(path) if b.runs(elsewhere)]
        commands = [(b, i, *c) for b in found for i, c in enumerate(b.commands)]
        self.assertTrue(commands, f"{name}: nothing of it runs")
        mark = "==" + secrets.token_hex(8)
        status, text = run_in_lab(before + pages.script(found, mark), KEYS * 8)
        came, changes = pages.outputs(text, mark), []
        self.assertEqual((status, len(came)), (0, len(commands)), text[-5000:])
        for n, (block, i, command, shown) in enumerate(commands):
            output, failed = came[n]
            with self.subTest(block=f"{name}:{block.number}", command=command):
                self.assertEqual(failed, 0, output)
                if shown is not None and not pages.agree(shown, output):
                    if pages.ANY not in shown:
                        changes.append((block, i, output))
                    self.fail(pages.difference(shown, output))
        if changes and os.environ.get("VETHGUARD_REWRITE"):
            pages.rewrite(path, changes)
        self.assertIsNone(holds_secret(text), "the key was shown")
        self.assertIsNone(REPORT.search(text), text[-5000:])


class Guides(Paged):
    def test_readme(self):
        self.page("README.md")

    def test_first_hour(self):
        self.page("docs/first-hour.md")

    def test_any_agent(self):
        self.page("docs/guides/any-agent.md")

    def test_ci_runner(self):
        self.page("docs/guides/ci-runner.md")

    def test_github(self):
        self.page("docs/guides/github.md")

    def test_mcp(self):
        self.page("docs/guides/mcp.md")

    def test_approval(self):
        self.page("docs/guides/approval.md")

    def test_models(self):
        self.page("docs/guides/models.md")

    def test_attach(self):
        self.page("docs/attach.md")

    def test_sockets(self):
        self.page("docs/sockets.md")

    def test_expose(self):
        self.page("docs/expose.md")

    def test_prepare(self):
        self.page("docs/prepare.md")

    def test_gateway(self):
        self.page("docs/gateway.md")


class Form(unittest.TestCase):
    """The form of the pages: no command hides from the tests above."""

    def test_every_page(self):
        for name in [*PAGES, *ELSEWHERE]:
            with self.subTest(page=name):
                self.assertEqual(pages.faults(os.path.join(ROOT, name)), [])

    def test_every_guide_is_run(self):
        guides = {"docs/guides/" + f for f in os.listdir(os.path.join(ROOT, "docs/guides"))}
        self.assertLessEqual(guides, {*PAGES, *ELSEWHERE})
        for name, test in ELSEWHERE.items():
            self.assertIn(name, pages.read(os.path.join(os.path.dirname(os.path.abspath(__file__)), test)))
        for name in PAGES:
            test = "test_" + os.path.basename(name)[:-3].lower().replace("-", "_")
            self.assertTrue(hasattr(Guides, test) or not any(b.runs() for b in pages.blocks(os.path.join(ROOT, name))), name)

    def test_what_does_not_run_here(self):
        """It is run by a goal that there is, or is one of these few. A new one has to be written here."""
        with open(os.path.join(ROOT, "mk/deps.mk")) as deps, open(os.path.join(ROOT, "mk/tests.mk")) as tests, \
                open(os.path.join(ROOT, "mk/deb.mk")) as deb:
            rules = deps.read() + tests.read() + deb.read()
        marked = [(name, b) for name in PAGES for b in pages.blocks(os.path.join(ROOT, name)) if b.elsewhere or b.not_run]
        for name, b in marked:
            if b.elsewhere:
                for goal in MAKE_GOALS.findall(b.elsewhere) or [None]:
                    self.assertTrue(goal and re.search(rf"^{goal}:", rules, re.M), (name, b.number, b.elsewhere))
        self.assertEqual({name: sum(bool(b.not_run) for n, b in marked if n == name) for name in PAGES},
                         {"README.md": 0, "docs/first-hour.md": 0, "docs/guides/any-agent.md": 0, "docs/guides/ci-runner.md": 0,
                          "docs/guides/github.md": 1, "docs/guides/mcp.md": 0, "docs/guides/approval.md": 0, "docs/guides/models.md": 0,
                          "docs/attach.md": 0, "docs/docker-network.md": 0, "docs/expose.md": 0, "docs/sockets.md": 3, "docs/prepare.md": 0,
                          "docs/gateway.md": 0, "docs/install.md": 2})

    def test_goals_that_pages_name_are_there(self):
        goals = set(re.findall(r"^([\w-]+):(?!=)", "".join(pages.read(os.path.join(ROOT, "mk", f)) for f in
                               os.listdir(os.path.join(ROOT, "mk")) if f.endswith(".mk")) + pages.read(os.path.join(ROOT, "Makefile")), re.M))
        for name in PAGES:
            for b in pages.blocks(os.path.join(ROOT, name)):
                for command, _ in b.commands:
                    for goal in MAKE_GOALS.findall(command):
                        self.assertIn(goal, goals, (name, b.number))

    def test_readme_docker_is_that_of_attach(self):
        """docs/attach.md runs where Docker is installed; README shows a part of it."""
        attach = [c.strip() for b in pages.blocks(os.path.join(ROOT, "docs/attach.md")) for c, _ in b.commands]
        for b in pages.blocks(os.path.join(ROOT, "README.md")):
            if b.elsewhere == "make check-attach":
                for command in "".join(c for c, _ in b.commands).splitlines():
                    self.assertIn(command.partition("#")[0].strip(), attach)


class Reading(unittest.TestCase):
    """pages.py: what it takes for a difference, and what of a page it refuses."""
    PAGE = "# P\n\n```console\n$ a\n1\n$ b \\\n> c\n2\n```\n\nSave this as `x.yaml`:\n\n```yaml\ny: 1\n```\n"

    def written(self, text):
        f = tempfile.NamedTemporaryFile("w", suffix=".md")
        self.addCleanup(f.close)
        f.write(text)
        f.flush()
        return f.name

    def test_differences(self):
        for shown, came in ((["a"], "b\n"), (["a"], "a\nb\n"), (["a", "b"], "a\n"), (["a"], ""), ([], "a\n"), (["b", "a"], "a\nb\n"),
                            (["a ... c"], "a b\n"), (["...", "c"], "a\nb\n"), (["200"], "403\n"), (["1 allowed"], "2 allowed\n"),
                            (["0123456789abcde"], "0123456789abcdf\n")):
            self.assertFalse(pages.agree(shown, came), (shown, came))

    def test_what_may_differ(self):
        for shown, came in ((["a"], "a\n"), (["a"], "a"), ([], ""), ([], "\n"), (["a", "..."], "a\n"), (["...", "c"], "a\nb\nc\n"),
                            (["a ... c"], "a b c\n"), (["a  b"], "a b \n"), (["took 3 ms"], "took 41 ms\n"), (["run-0123abcd"], "run-ffffffff\n"),
                            (["0123456789abcdef"], "fedcba9876543210\n"), (["2026-01-02 03:04:05"], "2027-11-12 13:14:15\n")):
            self.assertTrue(pages.agree(shown, came), (shown, came))

    def test_blocks(self):
        first, second = pages.blocks(self.written(self.PAGE))
        self.assertEqual(first.commands, [("a\n", ["1"]), ("b \\\nc\n", ["2"])])
        self.assertEqual(second.file, ("x.yaml", "y: 1\n"))
        self.assertEqual(pages.faults(self.written(self.PAGE)), [])

    def test_faults(self):
        for text in ("```\n$ a\n```\n", "```bash\na\n```\n", "Look:\n\n    sudo make install\n", "<!-- not run: no -->\n\n```sh\na\n```\n",
                     "<!-- elsewhere -->\n```sh\na\n```\n", "Save this as `x`, then:\n\n```yaml\na\n```\n", "```sh\nread -rs A\nb\n```\n"):
            self.assertEqual(len(pages.faults(self.written(text))), 1, text)
        self.assertEqual(pages.faults(self.written("```sh\nb\nread -rs A\n```\n")), [])
        with self.assertRaises(AssertionError):
            pages.blocks(self.written("```console\n1\n$ a\n```\n"))

    def test_marks(self):
        text = "<!-- {} -->\n```sh\na\n```\n"
        elsewhere, = pages.blocks(self.written(text.format("elsewhere: make check-hour")))
        self.assertEqual((elsewhere.runs(), elsewhere.runs("make check-hour"), elsewhere.runs("make x")), (False, True, False))
        never, = pages.blocks(self.written(text.format("not run: it cannot")))
        self.assertEqual((never.runs(), never.runs("make check-hour")), (False, False))

    def test_script(self):
        """Outputs without a last newline, failures, variables that stay, files."""
        path = self.written("```sh\nx=5\nprintf %s $x\n```\n```console\n$ (exit 3)\n$ echo $x; cat f\n5\n```\nSave this as `f`:\n\n```yaml\n'q'\n```\n")
        found = pages.blocks(path)
        with tempfile.TemporaryDirectory() as folder:
            r = subprocess.run(["bash", "-c", pages.script([found[2], *found[:2]], "=M")], cwd=folder, capture_output=True, text=True)
        came = pages.outputs(r.stdout, "=M")
        self.assertEqual([(o.strip(), s) for o, s in came.values()], [("5", 0), ("", 3), ("5\n'q'", 0)])

    def test_script_fails_in_the_middle(self):
        found = pages.blocks(self.written("```sh\necho a\nfalse\ntrue\nfalse || echo b\n```\n```sh\n! true | false\nif false; then :; fi\n```\n"))
        r = subprocess.run(["bash", "-c", pages.script(found, "=M")], capture_output=True, text=True)
        self.assertEqual([(o.split(), s) for o, s in pages.outputs(r.stdout, "=M").values()], [(["a", "b"], 1), ([], 0)])

    def test_rewritten(self):
        path = self.written(self.PAGE)
        first, _ = pages.blocks(path)
        pages.rewrite(path, [(first, 0, "one \nuno\n"), (first, 1, "")])
        self.assertEqual(pages.read(path), self.PAGE.replace("1\n$", "one\nuno\n$").replace("2\n", ""))


class Demo(unittest.TestCase):
    def test_as_root_and_by_sudo(self):
        """The lab's folder is root's, and `vethguard run` through sudo writes with the rights of who called it."""
        for env in ({}, {"SUDO_UID": "65534", "SUDO_GID": "65534", "SUDO_USER": "nobody", "SUDO_COMMAND": "make demo"}):
            r = subprocess.run([os.path.join(ROOT, "contrib", "demo", "run")], env={**os.environ, "VETHGUARD_BIN": lab.BIN, **env}, text=True,
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, errors="replace", timeout=PAGE_S * SLOW)
            self.assertEqual(r.returncode, 0, r.stdout[-3000:])
            self.assertIn("The agent got its answer, and nothing else got out.", r.stdout)
            self.assertIsNone(holds_secret(r.stdout))


@unittest.skipIf(support.ASAN, "the lab is the same, whichever programs are in it")
class LabItself(unittest.TestCase):
    """What `make lab` promises."""

    def test_status_and_words(self):
        self.assertEqual(run_in_lab("echo \"a  b\" '$x'; exit 7"), (7, "a  b $x\n"))

    def test_by_make(self):
        r = subprocess.run(["make", "-s", "-C", ROOT, "lab", "LAB_COMMAND=echo \"it's $HOME\"; exit 3"], text=True,
                           stdin=subprocess.DEVNULL, capture_output=True, timeout=PAGE_S * SLOW, env={**os.environ, "MAKEFLAGS": ""})
        self.assertEqual(r.stdout, "it's /run/lab\n", r)
        self.assertEqual(r.returncode, 2, r)  # make's own for any failure

    def test_no_terminal_no_command(self):
        status, text = run_in_lab("")
        self.assertEqual(status, 1)
        self.assertIn("needs a terminal", text)

    def test_cannot_be_set_up(self):
        """It says so in a line, and opens no shell."""
        with tempfile.TemporaryDirectory() as empty:
            for argv, env, words in ((["setpriv", "--reuid", "65534", "--clear-groups", LAB_RUN, "echo shell"], {}, "run it with sudo"),
                                     ([LAB_RUN, "echo shell"], {"VETHGUARD_BIN": empty}, "cannot be set up here: ")):
                r = subprocess.run(argv, env={**os.environ, **env}, text=True, stdin=subprocess.DEVNULL, capture_output=True, timeout=PAGE_S * SLOW)
                self.assertEqual((r.returncode, r.stdout), (1, ""), r)
                self.assertIn(words, r.stderr)
                self.assertNotIn("Traceback", r.stderr)

    def test_the_host_sees_nothing(self):
        before = support.Traces()
        status, text = run_in_lab("ip netns add left; ip link add left0 type veth peer name left1; mkdir /etc/left; echo x >/etc/resolv.conf; "
                                  "mount -t tmpfs none /mnt; (setsid sleep 1234.5 &) ; touch /run/left /var/log/left")
        self.assertEqual((status, text), (0, ""))
        self.assertEqual(before.since(), "")
        for path in ("/etc/left", "/run/left", "/var/log/left", "/run/lab"):
            self.assertFalse(os.path.exists(path), path)
        processes = subprocess.run(["ps", "axww", "-o", "args"], capture_output=True, text=True, check=True).stdout
        self.assertNotIn("sleep 1234.5", processes)

    def test_killed(self):
        """Killing the lab kills all of it."""
        seconds = f"{1000 + secrets.randbelow(10 ** 6)}.5"
        p = subprocess.Popen([LAB_RUN, f"sleep {seconds} & echo up; wait"], stdout=subprocess.PIPE, text=True, env={**os.environ, "VETHGUARD_BIN": lab.BIN})
        self.addCleanup(p.stdout.close)
        self.assertEqual(p.stdout.readline(), "up\n")
        p.kill()
        p.wait()

        def there():
            return f"sleep {seconds}" in subprocess.run(["ps", "axww", "-o", "args"], capture_output=True, text=True, check=True).stdout
        self.assertTrue(support.wait_until(lambda: not there()))

    def test_no_way_out(self):
        """Nothing but the lab's own hosts answers, and no route leads to the machine's network."""
        status, text = run_in_lab("""
            ip -o link | grep -vE ': (lo|up0|vg[^:]*)[@:]'
            for name in example.com deb.debian.org lab.test unknown.lab.test; do getent hosts $name && echo resolved; done
            for address in 1.1.1.1 169.254.169.254; do { curl -sS -m 2 -o /dev/null http://$address/ 2>/dev/null && echo reached; } & done
            wait""")
        self.assertEqual((status, text), (0, ""))

    def test_hosts_answer(self):
        status, text = run_in_lab("""
            for url in https://api.lab.test/whoami https://api.github.com/user https://api.anthropic.com/v1/models https://www.lab.test/; do
                curl -sS -o /dev/null -w '%{http_code}\n' $url; done
            curl -sS -o /dev/null -w '%{http_code}\n' -H "Authorization: Bearer $(cat key)" https://api.github.com/user
            curl -sS -o /dev/null -w '%{http_code}\n' -H "Authorization: Bearer wrong" https://api.github.com/repos/acme/site/issues/7
            curl -sS -o /dev/null -w '%{http_code}\n' -H "Transfer-Encoding: chunked" -d x https://api.github.com/user
            curl -sS -o /dev/null -w '%{http_code}\n' -d '{"messages": []}' https://api.anthropic.com/v1/messages""")
        self.assertEqual((status, text.split()), (0, "401 401 401 200 200 401 411 401".split()))
