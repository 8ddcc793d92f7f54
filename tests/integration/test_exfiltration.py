# SPDX-License-Identifier: Apache-2.0
"""A hostile root inside the sandbox: whatever it sends, nothing leaves but what the worker itself sends."""
import support
from support import Capture, Case, policy

NOTHING = "vethguard: 1\nname: nothing\n"


class Start(Case):
    def test_nothing_leaves_on_its_own(self):
        with Capture() as capture:
            r = self.run_vethguard(NOTHING, ["true"])
        self.assertEqual(r.status, 0, r)
        self.assertEqual(capture.sent(), [])
