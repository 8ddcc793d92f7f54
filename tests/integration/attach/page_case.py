# SPDX-License-Identifier: Apache-2.0
"""What the tests of the pages about attaching share: every command of a page, in its order, and the answers that it shows."""
import os
import re
import shutil
import subprocess
import unittest

import pages
import support
from lab import ROOT
from support import SECRET, SLOW, Case, sh


class PageCase(Case):
    PAGE = None    # below docs/
    PROGRAMS = ()  # without which there is nothing to try
    LEAST = 0      # commands that the page has; so many are sure to be run
    SHELL = ("bash", "-e", "-o", "pipefail")

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        for program in cls.PROGRAMS:
            if not shutil.which(program):
                raise unittest.SkipTest(program + " is not installed")

    def block(self, language, page=None):
        """The first block of a language."""
        with open(os.path.join(ROOT, "docs", page or self.PAGE)) as f:
            return re.search(rf"(?ms)^```{language}\n(.*?)^```$", f.read()).group(1)

    def cover_etc(self, folder, *made):
        """The page writes to /etc, as people do; here that is nobody else's. A copy and no overlay: the daemon reads no floor on an overlay."""
        sh("cp", "-a", "/etc", folder)
        sh("mount", "--bind", os.path.join(folder, "etc"), "/etc")
        self.addCleanup(sh, "umount", "-l", "/etc")
        for path in made:
            os.makedirs(path, exist_ok=True)

    def write_key(self, path):
        with open(os.open(path, os.O_CREAT | os.O_WRONLY, 0o600), "w") as f:
            f.write(SECRET)

    def folder(self, daemon, by_default=False):
        """Where the commands run, with a `vethguard` that asks this daemon; by_default: as it finds it by itself."""
        folder = os.path.join(daemon.dir, "page")
        os.makedirs(folder + "/bin")
        if by_default:
            os.symlink(support.VETHGUARD, folder + "/bin/vethguard")
            return folder
        with open(folder + "/bin/vethguard", "w") as f:
            f.write(f'#!/bin/sh\ncase $1 in policy) exec {support.VETHGUARD} "$@";; esac\nexec {support.VETHGUARD} "$@" --socket {daemon.socket}\n')
        os.chmod(folder + "/bin/vethguard", 0o755)
        return folder

    def run_page(self, folder, env, *logs):
        """Random numbers may differ. logs: functions that tell what the programs around have said."""
        commands = [(c.rstrip("\n"), shown or []) for b in pages.blocks(os.path.join(ROOT, "docs", self.PAGE)) if b.runs("make check-attach")
                    for c, shown in b.commands]
        self.assertGreater(len(commands), self.LEAST)
        script = "".join(f"echo; echo '== {i}'\n{command}\n" for i, (command, _) in enumerate(commands))
        r = subprocess.run([*self.SHELL, "-c", script], cwd=folder, text=True, timeout=300 * SLOW, stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT, env=dict(env, PATH=folder + "/bin:" + env["PATH"]))
        self.assertEqual(r.returncode, 0, (r.stdout[-4000:], *[log()[-2000:] for log in logs]))
        answers = dict(re.findall(r"(?ms)^== (\d+)\n(.*?)(?=^== |\Z)", r.stdout))
        for i, (command, shown) in enumerate(commands):
            for line in shown:
                with self.subTest(command=command):
                    self.assertIn(re.sub("[0-9a-f]{32}", "HEX", line), re.sub("[0-9a-f]{32}", "HEX", answers[str(i)]))
        self.assertNotIn(SECRET, r.stdout)
