# SPDX-License-Identifier: Apache-2.0
"""`vethguard attach --interface` with the tap of a virtual machine: QEMU with Debian's cloud kernel, by KVM where a guest
boots with it, by emulation elsewhere."""
import shutil
import unittest

import attached
import guests
from support import sh

TAP, GATE4, GATE6, BOX4, BOX6 = "tap0", "10.7.0.1", "fd07::1", "10.7.0.2", "fd07::2"


class Microvm(attached.Guarded):
    @classmethod
    def setUpClass(cls):
        for program in ("qemu-system-x86_64", "cpio", "modinfo"):
            if not shutil.which(program):
                raise unittest.SkipTest(program + " is not installed")
        if guests.kernel() is None:
            raise unittest.SkipTest("there is no kernel for it; see mk/install-kernel")
        cls.machine = None
        super().setUpClass()

    @classmethod
    def make(cls):
        """The tap has the addresses that the machine takes for its router's."""
        sh("ip", "tuntap", "add", TAP, "mode", "tap")
        cls.addClassCleanup(sh, "ip", "link", "del", TAP)
        sh("ip", "addr", "add", GATE4 + "/24", "dev", TAP)
        sh("ip", "addr", "add", GATE6 + "/64", "dev", TAP, "nodad")
        sh("ip", "link", "set", TAP, "up")

    @classmethod
    def target(cls):
        return ["--interface", TAP, "--address", BOX4, "--address", BOX6]

    @classmethod
    def furnish(cls):
        """The machine starts when its guard is there; what it needs comes to it by its serial line."""
        if cls.machine is None:
            cls.machine = guests.Machine(TAP, BOX4 + "/24", BOX6 + "/64", GATE4, GATE6)
            cls.addClassCleanup(cls.machine.stop)
            guests.say("the machine runs by " + cls.machine.accelerator)
        pem = cls.vethguard("env", "box", "--format", "pem")
        resolv = "".join(f"nameserver {n}\n" for n in cls.settings()["nameservers"])
        for path, text in (("/etc/resolv.conf", resolv), ("/etc/ssl/certs/vethguard.pem", pem),
                           ("/etc/ssl/certs/ca-certificates.crt", pem)):
            cls.machine.run(["/bin/sh", "-c", 'cat > "$0"', path], input=text)

    @classmethod
    def inside(cls, *argv, env_file=None):
        with open(env_file) as f:
            env = dict(line.rstrip("\n").split("=", 1) for line in f)
        return cls.machine.run(argv, env)

    @classmethod
    def host_addresses(cls):
        return [*super().host_addresses(), GATE4]
