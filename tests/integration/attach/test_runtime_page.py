# SPDX-License-Identifier: Apache-2.0
"""docs/runtime.md, done by the letter: its configuration, its policy, every command of it and the answers that it shows."""
import json
import os
import re
import shutil
import subprocess
import unittest

import guests
import pages
import support
from bundles import PROGRAM
from daemon import Daemon
from lab import ROOT
from support import SECRET, Case, sh

PAGE = os.path.join(ROOT, "docs/runtime.md")
INSTALLED = "/usr/libexec/vethguard/"


def block(language):
    """The page's first block of a language."""
    with open(PAGE) as f:
        return re.search(rf"(?ms)^```{language}\n(.*?)^```$", f.read()).group(1)


class Page(Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        for program in ("docker", "runc"):
            if not shutil.which(program):
                raise unittest.SkipTest(program + " is not installed")

    def cover_etc(self, folder):
        """The page writes to /etc/vethguard; here that is nobody else's."""
        for name in ("etc-upper", "etc-work"):
            os.makedirs(os.path.join(folder, name))
        sh("mount", "-t", "overlay", "-o", f"lowerdir=/etc,upperdir={folder}/etc-upper,workdir={folder}/etc-work", "none", "/etc")
        self.addCleanup(sh, "umount", "-l", "/etc")
        os.makedirs("/etc/vethguard", exist_ok=True)

    def test_every_command(self):
        runtimes = json.loads(block("json").replace(INSTALLED + "vethguard-runtime", PROGRAM))["runtimes"]
        engine = guests.Engine("docker", runtimes)
        self.addCleanup(engine.stop)
        engine("tag", engine.IMAGE, "my-image")
        self.cover_etc(engine.dir)
        daemon = Daemon()
        self.addCleanup(daemon.stop)
        folder = os.path.join(daemon.dir, "page")
        os.makedirs(folder + "/bin")
        with open("/etc/vethguard/runtime.yaml", "w") as f:
            f.write(f"socket: {daemon.socket}\ndirectory: {folder}/runtime\n")
        with open(folder + "/bin/vethguard", "w") as f:
            f.write(f'#!/bin/sh\ncase $1 in policy) exec {support.VETHGUARD} "$@";; esac\nexec {support.VETHGUARD} "$@" --socket {daemon.socket}\n')
        os.chmod(folder + "/bin/vethguard", 0o755)
        with open(folder + "/agent.yaml", "w") as f:
            f.write(block("yaml"))
        with open(os.open("/etc/vethguard/key", os.O_CREAT | os.O_WRONLY, 0o600), "w") as f:
            f.write(SECRET)
        commands = [(c.rstrip("\n"), shown or []) for b in pages.blocks(PAGE) if b.runs("make check-attach") for c, shown in b.commands]
        self.assertGreater(len(commands), 10)
        script = "".join(f"echo; echo '== {i}'\n{command}\n" for i, (command, _) in enumerate(commands))
        r = subprocess.run(["bash", "-e", "-c", script], cwd=folder, text=True, timeout=120, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                           env=dict(engine.env, PATH=folder + "/bin:" + os.environ["PATH"]))
        self.assertEqual(r.returncode, 0, (r.stdout[-4000:], daemon.stderr()[-2000:]))
        answers = dict(re.findall(r"(?ms)^== (\d+)\n(.*?)(?=^== |\Z)", r.stdout))
        for i, (command, shown) in enumerate(commands):
            for line in shown:
                with self.subTest(command=command):
                    self.assertIn(re.sub("[0-9a-f]{32}", "PLACEHOLDER", line), re.sub("[0-9a-f]{32}", "PLACEHOLDER", answers[str(i)]))
        self.assertNotIn(SECRET, r.stdout)
        self.assert_clean(daemon.audit)

    def test_contrib(self):
        """The files of contrib/runtime are well-formed and name programs that are installed."""
        folder = os.path.join(ROOT, "contrib/runtime")
        links = {"vethguard-runtime", "vethguard-runc", "vethguard-crun", "vethguard-runsc"}
        for name in os.listdir(folder):
            with open(os.path.join(folder, name)) as f:
                text = f.read()
            if name.endswith(".json"):
                json.loads(text)
            for program in re.findall(re.escape(INSTALLED) + r"([\w-]+)", text):
                self.assertIn(program, links, name)
