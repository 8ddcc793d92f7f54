# SPDX-License-Identifier: Apache-2.0
"""What the tests of npm clients share: the packages of node/package.json (installed by `make check-clients` into
build/clients/node), the origin behind *.node.lab.test, and a base class that runs the scripts of node/."""
import glob
import os
import shutil
import unittest

import lab
import outside
import support

SCRIPTS = os.path.join(outside.HERE, "node")
MODULES = os.path.join(support.ROOT, "build", "clients", "node", "node_modules")
H2 = "HTTP/2.0"
STARTED = False


def node_version():
    return int(support.sh("node", "--version").lstrip("v").split(".")[0]) if shutil.which("node") else 0


def start():
    """Copies the scripts into the lab, beside a link to the packages, and starts the origin, once."""
    global STARTED
    if STARTED:
        return
    STARTED = True
    os.makedirs(support.LAB.path("npm"), exist_ok=True)
    os.makedirs(support.LAB.path("node"), exist_ok=True)
    for name in glob.glob(SCRIPTS + "/*.mjs") + [SCRIPTS + "/lab.proto"]:
        shutil.copy(name, support.LAB.path("node"))
    os.symlink(MODULES, support.LAB.path("node/node_modules"))
    outside.spawn(["node", support.LAB.path("node/origin.mjs"), support.LAB.dir, lab.NODE4])
    support.LAB.wait_for_file("node-origin.ready", 30)


needs_packages = unittest.skipUnless(node_version() >= 20 and os.path.isdir(MODULES),
                                     "needs node 20 and the packages that make check-clients installs")
needs_h2 = unittest.skipUnless(outside.TO_CLIENT == H2, "needs HTTP/2 towards the client")
needs_h2_upstream = unittest.skipUnless(outside.TO_UPSTREAM == H2, "needs HTTP/2 towards the upstream")


class NodeClient(outside.Client):
    """A class of cases, each `node SCRIPT CASE ARGUMENT...` inside, which answers with one JSON value."""
    SCRIPT = None

    @classmethod
    def prepare(cls):
        start()

    def node(self, box, *arguments, timeout=60, env=None):
        done = box.run("node", support.LAB.path("node/" + self.SCRIPT), *map(str, arguments), timeout=timeout, env=env)
        self.assert_ok(done)
        self.assert_no_secret(done.out_bytes + done.err_bytes)
        try:
            return done.json()
        except ValueError:
            self.fail(repr(done))

    def assert_one_by_one(self, times, count):
        """Nothing waited for the next piece, nor for a timer such as a delayed acknowledgement's 40 ms: such a delay is in
        every round, so the fastest quarter, which a busy machine does not disturb, shows it."""
        self.assertEqual(len(times), count)
        times = sorted(times)
        self.assertLess(times[len(times) // 4], 20 * support.SLOW, times)
        self.assertLess(times[-1], 3000 * support.SLOW, times)
