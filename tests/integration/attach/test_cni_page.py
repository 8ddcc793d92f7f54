# SPDX-License-Identifier: Apache-2.0
"""docs/cni.md, done by the letter: every command of it, in its order, and the answers that it shows."""
import json
import os
import re

import cni_engines
import page_case
from daemon import Daemon
from lab import ROOT
from support import sh


class Page(page_case.PageCase):
    PAGE, PROGRAMS, LEAST = "cni.md", ("podman", "jq"), 9

    def test_every_command(self):
        engine = cni_engines.PodmanCni()
        self.addCleanup(engine.stop)
        engine("tag", engine.IMAGE, "my-image")
        with open(engine.dir + "/containers.conf") as f:
            text = f.read()
        with open(engine.dir + "/containers.conf", "w") as f:
            f.write(re.sub('network_config_dir = ".*"', 'network_config_dir = "/etc/cni/net.d"', text))
        self.cover_etc(engine.dir, "/etc/cni/net.d")
        daemon = Daemon()
        self.addCleanup(daemon.stop)
        # The plugin asks at the default place.
        os.makedirs("/run/vethguard", exist_ok=True)
        sh("mount", "-t", "tmpfs", "-o", "mode=755", "none", "/run/vethguard")
        self.addCleanup(sh, "umount", "-l", "/run/vethguard")
        os.symlink(daemon.socket, "/run/vethguard/control.sock")
        folder = self.folder(daemon, by_default=True)
        with open(folder + "/agent.yaml", "w") as policy:
            policy.write(self.block("yaml", "attach.md"))
        self.write_key(folder + "/key")
        self.run_page(folder, engine.env, daemon.stderr)
        self.assertEqual(daemon.call("GET", "/v1/sandboxes")[2]["sandboxes"], [])
        self.assert_clean(daemon.audit)

    def test_configurations(self):
        """The configurations on the page are JSON; the plugin's part is used."""
        with open(os.path.join(ROOT, "docs", self.PAGE)) as f:
            found = re.findall(r"(?ms)^```json\n(.*?)^```$", f.read())
        self.assertTrue(found)
        for text in found:
            conflist = json.loads(text)
            plugin = conflist["plugins"][-1]
            with self.assertRaises(cni_engines.Failed) as caught:
                cni_engines.ask(cni_engines.PLUGIN, cni_engines.environment("STATUS"),
                                {**plugin, "socket": "/nowhere.sock", "name": conflist["name"], "cniVersion": "1.1.0"})
            self.assertEqual(caught.exception.code, 51)
