# SPDX-License-Identifier: Apache-2.0
"""Resolvers other than glibc's, with a search list: musl's and Go's."""
import shutil
import subprocess
import unittest

import support
import test_names


class SearchList(test_names.Searched):
    def built(self, source, name, *command):
        """A program of that source, by a compiler outside."""
        path = support.LAB.path(name)
        with open(path + source, "w") as f:
            f.write(test_names.GO_CLIENT if source == ".go" else test_names.C_CLIENT)
        subprocess.run([*command, path, path + source], check=True, env={"HOME": support.LAB.dir, "PATH": "/usr/bin:/bin", "CGO_ENABLED": "0"})
        return path

    @unittest.skipUnless(shutil.which("musl-gcc"), "musl-gcc is not installed")
    def test_musl(self):
        self.reaches(self.built(".c", "by-musl", "musl-gcc", "-static", "-o"))

    def test_glibc(self):
        self.reaches(self.built(".c", "by-glibc", "gcc", "-o"))

    @unittest.skipUnless(shutil.which("go"), "go is not installed")
    def test_go(self):
        self.reaches(self.built(".go", "by-go", "go", "build", "-o"))
