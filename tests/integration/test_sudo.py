# SPDX-License-Identifier: Apache-2.0
"""`sudo vethguard run` as people use it: a user of the lab's own, with a password; the machine's files stay untouched."""
import contextlib
import os
import shutil
import subprocess
import unittest

import support
from support import SLOW, Case, file_credential, policy, sh

UID, EXTRA, USER, PASSWORD = 61235, 61236, "vgsudoer", "Pass-word-of-the-test"


@unittest.skipUnless(shutil.which("sudo"), "no sudo here (package sudo)")
class Sudo(Case):
    @classmethod
    def setUpClass(cls):
        cls.home = support.LAB.path("sudo-home")
        os.mkdir(cls.home)
        os.chown(cls.home, UID, UID)
        cls.mounts = contextlib.ExitStack()
        crypted = sh("openssl", "passwd", "-6", "-stdin", input=PASSWORD).strip()
        for name, line, mode in (("passwd", f"{USER}:x:{UID}:{UID}::{cls.home}:/bin/sh", 0o644),
                                 ("shadow", f"{USER}:{crypted}:19000:0:99999:7:::", 0o600),
                                 ("group", f"{USER}:x:{UID}:\nvgextra:x:{EXTRA}:{USER}", 0o644),
                                 ("sudoers", f"{USER} ALL=(root) ALL", 0o440)):
            with open("/etc/" + name) as f:
                copy = support.LAB.write("sudo-" + name, f.read() + line + "\n", mode)
            sh("mount", "--bind", copy, "/etc/" + name)
            cls.mounts.callback(sh, "umount", "/etc/" + name)

    @classmethod
    def tearDownClass(cls):
        cls.mounts.close()

    def sudo(self, text, *argv, password=PASSWORD, env=None):
        """Runs as the user: sudo -S vethguard run ... -- argv."""
        lab = support.LAB
        as_user = ["setpriv", "--reuid", str(UID), "--regid", str(UID), "--groups", f"{UID},{EXTRA}"]
        return subprocess.run([*as_user, "sudo", "-S", "-k", "-p", "", support.VETHGUARD, "run", "--policy",
                               lab.write("sudo.yaml", text), "--config", lab.path("config.yaml"), "--", *argv],
                              input=password + "\n", capture_output=True, text=True, timeout=30 * SLOW, cwd="/",
                              env={"PATH": os.environ["PATH"], "HOME": self.home, "USER": USER, **(env or {})})

    def test_the_command_is_the_users(self):
        r = self.sudo(policy("https://api.lab.test"), "sh", "-c", "id -un; id -G; echo $HOME $USER $LOGNAME")
        self.assertEqual(r.stdout.split("\n")[:3], [USER, f"{UID} {EXTRA}", f"{self.home} {USER} {USER}"], r)
        self.assertEqual(r.returncode, 0, r)

    def test_no_password_and_no_environment_inside(self):
        r = self.sudo(policy("https://api.lab.test"), "sh", "-c", "env; cat; cat /etc/shadow", env={"OWN_SECRET": "own-value"})
        self.assertNotEqual(r.returncode, 0, r)
        self.assertNotIn(PASSWORD, r.stdout + r.stderr)
        self.assertNotIn("own-value", r.stdout)
        self.assertNotIn("$6$", r.stdout)

    def test_wrong_password(self):
        r = self.sudo(policy("https://api.lab.test"), "echo", "ran", password="wrong")
        self.assertNotEqual(r.returncode, 0, r)
        self.assertNotIn("ran", r.stdout.split())

    def test_source_that_is_a_program_runs_as_the_user(self):
        out = os.path.join(self.home, "source-ran")
        script = support.LAB.write("source.sh", f"#!/bin/sh\nid -u >{out}\nid -G >>{out}\necho {support.SECRET}\n", 0o755)
        text = policy("{to: 'https://api.lab.test', credential: api}",
                      credentials=f"  api: {{source: {{exec: ['{script}']}}, inject: bearer, env: API_KEY}}\n")
        r = self.sudo(text, "curl", "-sS", "https://api.lab.test/")
        self.assertEqual(r.returncode, 0, r)
        with open(out) as f:
            self.assertEqual(f.read().split()[0], str(UID))
        self.assert_no_secret(r.stdout + r.stderr)

    def test_file_of_root_is_no_source(self):
        r = self.sudo(policy("{to: 'https://api.lab.test', credential: api}", credentials=file_credential(path="/etc/shadow")),
                      "curl", "-sS", "https://api.lab.test/")
        self.assertNotIn("$6$", r.stdout + r.stderr)
