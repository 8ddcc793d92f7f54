# SPDX-License-Identifier: Apache-2.0
"""docs/attach.md, done by the letter: every command of it, in its order, and the answers that it shows."""
import os
import re
import shutil
import subprocess
import unittest

import guests
import pages
import support
from daemon import Daemon
from lab import ROOT
from support import SECRET, SLOW, Case, sh

PAGE = os.path.join(ROOT, "docs/attach.md")


def commands_of_page():
    """[(command, [lines that the page shows after it])]"""
    return [(command.rstrip("\n"), shown or []) for b in pages.blocks(PAGE) if b.runs("make check-attach") for command, shown in b.commands]


class Page(Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        for program in ("docker", "curl"):
            if not shutil.which(program):
                raise unittest.SkipTest(program + " is not installed")

    def test_every_command(self):
        engine = guests.Engine("docker")
        self.addCleanup(engine.stop)
        engine("tag", engine.IMAGE, "my-image")
        # The page writes to /etc/netns, as people do; here that is nobody else's.
        for name in ("etc-upper", "etc-work"):
            os.makedirs(os.path.join(engine.dir, name))
        sh("mount", "-t", "overlay", "-o", f"lowerdir=/etc,upperdir={engine.dir}/etc-upper,workdir={engine.dir}/etc-work", "none", "/etc")
        self.addCleanup(sh, "umount", "-l", "/etc")
        daemon = Daemon()
        self.addCleanup(daemon.stop)
        folder = os.path.join(daemon.dir, "page")
        os.makedirs(folder + "/bin")
        with open(folder + "/bin/vethguard", "w") as f:
            f.write(f'#!/bin/sh\nexec {support.VETHGUARD} "$@" --socket {daemon.socket}\n')
        os.chmod(folder + "/bin/vethguard", 0o755)
        with open(PAGE) as f, open(folder + "/agent.yaml", "w") as policy:
            policy.write(re.search(r"(?ms)^```yaml\n(.*?)^```$", f.read()).group(1))
        with open(os.open(folder + "/key", os.O_CREAT | os.O_WRONLY, 0o600), "w") as f:
            f.write(SECRET)
        for device in ("tap0", "build"):
            self.addCleanup(subprocess.run, ["ip", *(["link"] if device == "tap0" else ["netns"]), "del", device], capture_output=True)
        commands = commands_of_page()
        self.assertGreater(len(commands), 30)
        script = "".join(f"echo; echo '== {i}'\n{command}\n" for i, (command, _) in enumerate(commands))
        r = subprocess.run(["bash", "-e", "-o", "pipefail", "-c", script], cwd=folder, text=True, timeout=300 * SLOW, stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT, env=dict(engine.env, PATH=folder + "/bin:" + os.environ["PATH"]))
        self.assertEqual(r.returncode, 0, (r.stdout[-4000:], daemon.stderr()[-2000:]))
        answers = dict(re.findall(r"(?ms)^== (\d+)\n(.*?)(?=^== |\Z)", r.stdout))
        for i, (command, shown) in enumerate(commands):
            for line in shown:
                with self.subTest(command=command):
                    self.assertIn(re.sub("[0-9a-f]{32}", "PLACEHOLDER", line), re.sub("[0-9a-f]{32}", "PLACEHOLDER", answers[str(i)]))
        self.assertNotIn(SECRET, r.stdout)
        self.assert_clean(daemon.audit)
