# SPDX-License-Identifier: Apache-2.0
"""docs/runtime.md, done by the letter: its configuration, its policy, every command of it and the answers that it shows."""
import json
import os
import re

import guests
import page_case
from bundles import PROGRAM
from daemon import Daemon
from lab import ROOT

INSTALLED = "/usr/libexec/vethguard/"


class Page(page_case.PageCase):
    PAGE, PROGRAMS, LEAST = "runtime.md", ("docker", "runc"), 10
    SHELL = ("bash", "-e")  # the page shows a `docker run` that is refused, in front of a pipe

    def test_every_command(self):
        runtimes = json.loads(self.block("json").replace(INSTALLED + "vethguard-runtime", PROGRAM))["runtimes"]
        engine = guests.Engine("docker", runtimes)
        self.addCleanup(engine.stop)
        engine("tag", engine.IMAGE, "my-image")
        self.cover_etc(engine.dir, "/etc/vethguard")
        daemon = Daemon()
        self.addCleanup(daemon.stop)
        folder = self.folder(daemon)
        with open("/etc/vethguard/runtime.yaml", "w") as f:
            f.write(f"socket: {daemon.socket}\ndirectory: {folder}/runtime\n")
        with open(folder + "/agent.yaml", "w") as f:
            f.write(self.block("yaml"))
        self.write_key("/etc/vethguard/key")
        self.run_page(folder, engine.env, daemon.stderr)
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
