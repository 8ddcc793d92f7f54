# SPDX-License-Identifier: Apache-2.0
"""`vethguard attach --netns`: a network namespace that somebody made with ip(8)."""
import os
import subprocess

import attached
import support
from support import SLOW, sh


class Netns(attached.Guarded):
    NAME = "plain"

    @classmethod
    def make(cls):
        sh("ip", "netns", "add", cls.NAME)
        cls.addClassCleanup(sh, "ip", "netns", "del", cls.NAME)
        sh("ip", "-n", cls.NAME, "link", "set", "lo", "up")
        cls.bundle = cls.ca = support.LAB.path("plain-ca.pem")

    @classmethod
    def target(cls):
        return ["--netns", "/run/netns/" + cls.NAME]

    @classmethod
    def furnish(cls):
        """As docs/attach.md says: ip-netns(8) mounts these over the host's."""
        support.LAB.write("plain-ca.pem", cls.vethguard("env", "box", "--format", "pem"))
        cls.resolv = support.LAB.write("plain-resolv", "".join(f"nameserver {n}\n" for n in cls.settings()["nameservers"]))

    @classmethod
    def program(cls):
        return attached.guests.PROGRAM

    @classmethod
    def inside(cls, *argv, env_file=None):
        env = {k: v for k, v in os.environ.items() if not k.lower().endswith("_proxy")}
        with open(env_file) as f:
            env.update(line.rstrip("\n").split("=", 1) for line in f)
        script = f"mount --bind {cls.resolv} /etc/resolv.conf && exec \"$@\""
        return subprocess.run(["ip", "netns", "exec", cls.NAME, "sh", "-c", script, "sh", *argv], env=env, capture_output=True, text=True,
                              timeout=120 * SLOW)
