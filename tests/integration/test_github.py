# SPDX-License-Identifier: Apache-2.0
"""The presets for GitHub with git itself: one repository is fetched and pushed with a token that is not in the sandbox, and no other."""
import os
import shutil

import support
from support import SECRET

AUTHOR = {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@lab.test", "GIT_COMMITTER_NAME": "a",
          "GIT_COMMITTER_EMAIL": "a@lab.test", "GIT_TERMINAL_PROMPT": "0"}
PUSH = "{preset: github-push, credentials: {github-push: {source: 'file:secret'}}}"
ONE = ["--var", "owner=acme", "--var", "repository=site"]


def includes(*entries):
    return "vethguard: 1\nname: lab\ninclude: [" + ", ".join(entries) + "]\n"


class GitHub(support.Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        work = support.LAB.path("github-work")
        shutil.rmtree(work, ignore_errors=True)
        env = dict(os.environ, **AUTHOR)
        support.sh("git", "init", "-q", "-b", "main", work)
        support.sh("git", "-C", work, "commit", "-q", "--allow-empty", "-m", "first", env=env)
        for name in ("acme/site.git", "acme/other.git", "evil/site.git"):
            top = support.LAB.path("git/" + name)
            shutil.rmtree(top, ignore_errors=True)
            support.sh("git", "init", "-q", "--bare", "-b", "main", top)
            support.sh("git", "-C", top, "config", "http.receivepack", "true")
            support.sh("git", "-C", work, "push", "-q", top, "main", env=env)
        support.LAB.write("github-config.yaml", support.LAB.config().replace("resolver:\n", "resolver:\n  hosts: {github.com: 10.99.0.80}\n"))

    def box(self, *entries, options=tuple(ONE)):
        return self.sandbox(includes(*entries), options=list(options), config=support.LAB.path("github-config.yaml"))

    def folder(self, name):
        path = support.LAB.path(name)
        shutil.rmtree(path, ignore_errors=True)
        return path

    def log(self, repository, branch):
        return support.sh("git", "-c", "safe.directory=*", "-C", support.LAB.path("git/" + repository), "log", "--format=%s", branch)

    def packs(self):
        return [r["path"] for r in self.seen("http") if r["method"] == "POST"]

    def clone(self, box, url, name):
        path = self.folder(name)
        return path, box.run("git", "clone", "-q", url, path, env=AUTHOR)

    def commit_and_push(self, box, path, branch, *more):
        box.run("git", "-C", path, "commit", "-q", "--allow-empty", "-m", "by the agent", env=AUTHOR)
        return box.run("git", "-C", path, "push", "-q", *more, "origin", "HEAD:refs/heads/" + branch, env=AUTHOR)

    def test_fetch_and_push(self):
        box = self.box(PUSH)
        for i, url in enumerate(("https://github.com/acme/site.git", "https://github.com/acme/site")):
            with self.subTest(url=url):
                path, done = self.clone(box, url, f"github-{i}")
                self.assertEqual(done.status, 0, done)
                done = self.commit_and_push(box, path, f"work-{i}")
                self.assertEqual(done.status, 0, done)
                self.assertEqual(self.log("acme/site.git", f"work-{i}"), "by the agent\nfirst\n")
                done = box.run("git", "-C", path, "fetch", "-q", env=AUTHOR)
                self.assertEqual(done.status, 0, done)
                done = box.sh(f"cat {path}/.git/config; env")
                self.assertNotIn(SECRET, done.out)

    def test_no_other_repository(self):
        box = self.box(PUSH)
        for url in ("https://github.com/acme/other.git", "https://github.com/evil/site.git", "https://github.com/acme/site2.git",
                    "https://github.com/acme/site.git/../other.git", "https://github.com/acme/site.git%2f..%2fother.git"):
            with self.subTest(url=url):
                path, done = self.clone(box, url, "github-none")
                self.assertNotEqual(done.status, 0, done)
        path, done = self.clone(box, "https://github.com/acme/site.git", "github-turned")
        self.assertEqual(done.status, 0, done)
        for other in ("acme/other.git", "evil/site.git"):
            box.run("git", "-C", path, "remote", "set-url", "origin", "https://github.com/" + other, env=AUTHOR)
            done = self.commit_and_push(box, path, "stolen")
            self.assertNotEqual(done.status, 0, done)
            self.assertIn("403", done.err)
        self.assertEqual({p.rsplit("/", 1)[0] for p in self.packs()}, {"/acme/site.git"})

    def test_beside_the_preset_that_reads(self):
        """Reading any public repository goes without the token; pushing stays with the one."""
        box = self.box("preset:github", PUSH)
        path, done = self.clone(box, "https://github.com/acme/site.git", "github-both")
        self.assertEqual(done.status, 0, done)
        self.assertEqual(self.commit_and_push(box, path, "both").status, 0)
        box.run("git", "-C", path, "remote", "set-url", "origin", "https://github.com/evil/site.git", env=AUTHOR)
        self.assertNotEqual(self.commit_and_push(box, path, "stolen").status, 0)
        path, done = self.clone(box, "https://github.com/evil/site.git", "github-read")
        rows = [r for r in self.seen("http") if r["path"].startswith("/evil/")]
        self.assertTrue(rows)
        self.assertEqual([v for r in rows for k, v in r["headers"] if k.lower() == "authorization"], [])

    def test_reading_alone_pushes_nothing(self):
        box = self.box("preset:github", options=())
        done = box.run("curl", "-sS", "-o", "/dev/null", "-w", "%{http_code}", "-d", "x", "https://github.com/acme/site.git/git-receive-pack")
        self.assertEqual(done.out, "403")
        self.assertEqual(self.packs(), [])

    def test_variables_are_needed(self):
        text = includes("preset:github-push")
        for options, says in (([], 'variable "owner" has no default and is not given: --var owner=VALUE'),
                              (ONE[:2], 'variable "repository" has no default'),
                              (["--var", "owner=acme", "--var", "repository=a/b"], '"${repository}" is "a/b"'),
                              (["--var", "owner=*", "--var", "repository=x"], "--var owner: has a value with more than")):
            r = self.run_vethguard(text, ["true"], options=options)
            self.assertEqual(r.status, 125, r)
            self.assertIn(says, r.stderr)
