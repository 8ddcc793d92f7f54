# SPDX-License-Identifier: Apache-2.0
"""Connections over the kernel's vsock, under a kernel that has its loopback and vhost-vsock: those of test_vsock.py, and a guest's."""
import re
import unittest

import guests
import support
import whole_machine

# The programs are copied first: what is built here meanwhile is another file there.
TESTS = "modprobe %s && cp -r %s /run/programs && VETHGUARD_BIN=/run/programs tests/integration/run %s"


class Machine(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        missing = whole_machine.missing()
        if missing:
            raise unittest.SkipTest(missing)

    def run_in_machine(self, module, tests, least):
        text, status = whole_machine.run(TESTS % (module, support.lab.BIN, tests), 1200)
        counts = re.search(r"integration: (\d+) passed, (\d+) failed, (\d+) skipped", text)
        self.assertTrue(counts, text[-3000:])
        self.assertEqual((status, counts[2], counts[3]), (0, "0", "0"), text[-3000:])
        self.assertGreaterEqual(int(counts[1]), least, text)
        guests.say(f"under Debian's kernel: {counts[0]}")

    def test_loopback(self):
        self.run_in_machine("vsock_loopback", "vsock.Loopback", 4)

    def test_guest(self):
        self.run_in_machine("vhost_vsock", "--attach vsock_guest.Guest", 1)
