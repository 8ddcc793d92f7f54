# SPDX-License-Identifier: Apache-2.0
"""The connections of test_vsock.py, under a kernel that has vsock's loopback."""
import re
import unittest

import guests
import support
import whole_machine

# The programs are copied first: what is built here meanwhile is another file there.
TESTS = "modprobe vsock_loopback && cp -r %s /run/programs && VETHGUARD_BIN=/run/programs " \
        "tests/integration/run --once vsock.Loopback"


class Machine(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        missing = whole_machine.missing()
        if missing:
            raise unittest.SkipTest(missing)

    def test_loopback(self):
        text, status = whole_machine.run(TESTS % support.lab.BIN, 900)
        counts = re.search(r"integration: (\d+) passed, (\d+) failed, (\d+) skipped", text)
        self.assertTrue(counts, text[-3000:])
        self.assertEqual((status, counts[2], counts[3]), (0, "0", "0"), text[-3000:])
        self.assertGreaterEqual(int(counts[1]), 4, text)
        guests.say(f"under Debian's kernel: {counts[0]}")
