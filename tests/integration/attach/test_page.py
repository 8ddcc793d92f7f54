# SPDX-License-Identifier: Apache-2.0
"""docs/attach.md, done by the letter: every command of it, in its order, and the answers that it shows."""
import subprocess

import guests
import page_case
from daemon import Daemon


class Page(page_case.PageCase):
    PAGE, PROGRAMS, LEAST = "attach.md", ("docker", "curl"), 30

    def test_every_command(self):
        engine = guests.Engine("docker")
        self.addCleanup(engine.stop)
        engine("tag", engine.IMAGE, "my-image")
        self.cover_etc(engine.dir)
        daemon = Daemon()
        self.addCleanup(daemon.stop)
        folder = self.folder(daemon)
        with open(folder + "/agent.yaml", "w") as policy:
            policy.write(self.block("yaml"))
        self.write_key(folder + "/key")
        for device in ("tap0", "build"):
            self.addCleanup(subprocess.run, ["ip", *(["link"] if device == "tap0" else ["netns"]), "del", device], capture_output=True)
        self.addCleanup(daemon.cli, "detach", "--all", "--yes")  # the page leaves sandboxes besides `agent` attached
        self.run_page(folder, engine.env, daemon.stderr)
        self.assert_clean(daemon.audit)
