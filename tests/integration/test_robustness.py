# SPDX-License-Identifier: Apache-2.0
"""Dying roles, full disks, broken upstreams, floods: the sandbox stays closed and nothing is left behind."""
import support
from support import Case, Traces

NOTHING = "vethguard: 1\nname: nothing\n"


class Start(Case):
    def test_nothing_is_left(self):
        before = Traces()
        r = self.run_vethguard(NOTHING, ["true"])
        self.assertEqual(r.status, 0, r)
        self.assertEqual(before.since(), "")
