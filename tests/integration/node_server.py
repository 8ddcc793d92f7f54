# SPDX-License-Identifier: Apache-2.0
"""A server of others' in Node.js, outside of all sandboxes: what tests of OAuth and OpenID Connect talk to. It prints "ready", then what it does."""
import os

import lab
import support
from support import wait_until


class WithServer:
    """Before a test case. SCRIPT: beside this file; called with ARGUMENTS behind the modules' folder, certificate, key and address."""
    SCRIPT, MODULES, ARGUMENTS = None, None, ()

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.log = support.LAB.path(cls.SCRIPT + ".log")
        with open(cls.log, "wb") as out:
            cls.server = support.LAB.spawn_outside(
                ["node", os.path.join(support.HERE, cls.SCRIPT), cls.MODULES, support.LAB.path("server.pem"), support.LAB.path("server.key"),
                 lab.ORIGIN4, *cls.ARGUMENTS], stdout=out, stderr=out)
        if not wait_until(lambda: "ready" in cls.lines()):
            raise AssertionError(cls.lines())

    @classmethod
    def tearDownClass(cls):
        cls.server.terminate()
        cls.server.wait()
        super().tearDownClass()

    @classmethod
    def lines(cls):
        with open(cls.log) as f:
            return f.read().split("\n")
