# SPDX-License-Identifier: Apache-2.0
"""docs/guides/langchain.md as printed, with the packages that make check-providers installs."""
import os
import shutil
import unittest

import support
from test_deepagents import PACKAGES
from test_guides import Paged

NAME = "docs/guides/langchain.md"
# The packages lie below the page's folder; deepagents finds itself by the place of what imports it.
MODULES = f"""mkdir node_modules && ln -s {PACKAGES}/* {PACKAGES}/.[a-z]* node_modules/ && cp -r {support.ROOT}/contrib/node node_modules/vethguard
export PATH=$PATH:{os.path.dirname(shutil.which("node") or "/usr/bin/node")}
"""


@unittest.skipUnless(shutil.which("node") and os.path.isdir(PACKAGES), "needs node and the packages that make check-providers installs")
class Page(Paged):
    def test_every_command(self):
        self.page(NAME, before=MODULES)
