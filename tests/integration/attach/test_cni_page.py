# SPDX-License-Identifier: Apache-2.0
"""docs/cni.md, done by the letter: every command of it, in its order, and the answers that it shows."""
import json
import os
import re
import shutil
import subprocess
import unittest

import cni_engines
import pages
import support
from daemon import Daemon
from lab import ROOT
from support import SECRET, SLOW, Case, sh

PAGE = os.path.join(ROOT, "docs/cni.md")


class Page(Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        for program in ("podman", "jq"):
            if not shutil.which(program):
                raise unittest.SkipTest(program + " is not installed")

    def test_every_command(self):
        engine = cni_engines.PodmanCni()
        self.addCleanup(engine.stop)
        engine("tag", engine.IMAGE, "my-image")
        with open(engine.dir + "/containers.conf") as f:
            text = f.read()
        with open(engine.dir + "/containers.conf", "w") as f:
            f.write(re.sub('network_config_dir = ".*"', 'network_config_dir = "/etc/cni/net.d"', text))
        for name in ("etc-upper", "etc-work"):
            os.makedirs(os.path.join(engine.dir, name))
        sh("mount", "-t", "overlay", "-o", f"lowerdir=/etc,upperdir={engine.dir}/etc-upper,workdir={engine.dir}/etc-work", "none", "/etc")
        self.addCleanup(sh, "umount", "-l", "/etc")
        os.makedirs("/etc/cni/net.d", exist_ok=True)
        daemon = Daemon()
        self.addCleanup(daemon.stop)
        # The plugin asks at the default place.
        os.makedirs("/run/vethguard", exist_ok=True)
        sh("mount", "-t", "tmpfs", "-o", "mode=755", "none", "/run/vethguard")
        self.addCleanup(sh, "umount", "-l", "/run/vethguard")
        os.symlink(daemon.socket, "/run/vethguard/control.sock")
        folder = os.path.join(daemon.dir, "page")
        os.makedirs(folder + "/bin")
        os.symlink(support.VETHGUARD, folder + "/bin/vethguard")
        with open(os.path.join(ROOT, "docs/attach.md")) as f, open(folder + "/agent.yaml", "w") as policy:
            policy.write(re.search(r"(?ms)^```yaml\n(.*?)^```$", f.read()).group(1))
        with open(os.open(folder + "/key", os.O_CREAT | os.O_WRONLY, 0o600), "w") as f:
            f.write(SECRET)
        commands = [c for b in pages.blocks(PAGE) if b.runs("make check-attach") for c in b.commands]
        self.assertGreater(len(commands), 9)
        script = "".join(f"echo; echo '== {i}'\n{command}\n" for i, (command, _) in enumerate(commands))
        r = subprocess.run(["bash", "-e", "-o", "pipefail", "-c", script], cwd=folder, text=True, timeout=300 * SLOW, stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT, env=dict(engine.env, PATH=folder + "/bin:" + os.environ["PATH"]))
        self.assertEqual(r.returncode, 0, (r.stdout[-4000:], daemon.stderr()[-2000:]))
        answers = dict(re.findall(r"(?ms)^== (\d+)\n(.*?)(?=^== |\Z)", r.stdout))
        for i, (command, shown) in enumerate(commands):
            for line in shown or []:
                with self.subTest(command=command):
                    self.assertIn(line, answers[str(i)])
        self.assertEqual(daemon.call("GET", "/v1/sandboxes")[2]["sandboxes"], [])
        self.assertNotIn(SECRET, r.stdout)
        self.assert_clean(daemon.audit)

    def test_configurations(self):
        """The configurations on the page are JSON; the plugin's part is used."""
        with open(PAGE) as f:
            found = re.findall(r"(?ms)^```json\n(.*?)^```$", f.read())
        self.assertTrue(found)
        for text in found:
            conflist = json.loads(text)
            plugin = conflist["plugins"][-1]
            with self.assertRaises(cni_engines.Failed) as caught:
                cni_engines.ask(cni_engines.PLUGIN, cni_engines.environment("STATUS"),
                                {**plugin, "socket": "/nowhere.sock", "name": conflist["name"], "cniVersion": "1.1.0"})
            self.assertEqual(caught.exception.code, 51)
