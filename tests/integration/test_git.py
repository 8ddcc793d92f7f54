# SPDX-License-Identifier: Apache-2.0
"""Rules with git, with git itself on both sides: which repositories are fetched, which refs are pushed, and that history is kept."""
import gzip
import os
import shutil

import support
from support import HTTP, file_credential, policy
from test_github import AUTHOR

PUSH = "push: ['refs/heads/agent/*', 'refs/tags/agent-*']"


def rule(name, repository, more=""):
    return f"{{name: {name}, to: 'https://github.com', credential: git, git: {{repositories: [{repository}]{more}}}}}"


class Git(support.Boxed):
    @classmethod
    def make_box(cls):
        text = policy(rule("site", "acme/site", f", {PUSH}"), rule("free", "acme/free", ", push: 'refs/heads/*', force: true, delete: true, tags: true, options: [ci.skip]"),
                      rule("other", "acme/other"),
                      credentials=file_credential("git", "inject: basic, username: x-access-token"), more="inspect: 256KiB\n")
        support.LAB.write("github-config.yaml", support.LAB.config().replace("resolver:\n", "resolver:\n  hosts: {github.com: 10.99.0.80}\n"))
        return support.Sandbox(text, config=support.LAB.path("github-config.yaml"))

    def setUp(self):
        super().setUp()
        self.work = self.folder("git-work")
        support.sh("git", "init", "-q", "-b", "main", self.work)
        self.host("commit", "-q", "--allow-empty", "-m", "first", at=self.work)
        for name in ("site", "free", "other"):
            top = self.folder(f"git/acme/{name}.git")
            support.sh("git", "init", "-q", "--bare", "-b", "main", top)
            for key in ("http.receivepack", "receive.advertisePushOptions", "uploadpack.allowFilter"):
                support.sh("git", "-C", top, "config", key, "true")
            self.host("push", "-q", top, "main", at=self.work)
        support.sh("chmod", "-R", "a+rwX", support.LAB.path("git"))

    @staticmethod
    def folder(name):
        path = support.LAB.path(name)
        shutil.rmtree(path, ignore_errors=True)
        return path

    @staticmethod
    def host(*argv, at):
        return support.sh("git", "-c", "safe.directory=*", "-C", at, *argv, env=dict(os.environ, **AUTHOR)).strip()

    def refs(self, name="site"):
        return dict(reversed(line.split()) for line in
                    self.host("for-each-ref", "--format=%(objectname) %(refname)", at=support.LAB.path(f"git/acme/{name}.git")).splitlines())

    def git(self, *argv, at=None, good=True):
        done = self.box.run("git", *(("-C", at) if at else ()), *argv, env=AUTHOR, timeout=120)
        self.assertEqual(done.status == 0, good, (argv, done))
        return done

    def clone(self, name="site", *options):
        path = self.folder("git-clone")
        self.git("clone", "-q", *options, f"https://github.com/acme/{name}.git", path)
        return path

    def commit(self, at, message, *more):
        self.git("commit", "-q", "--allow-empty", "-m", message, *more, at=at)

    def refused(self, at, *argv, says, name="site"):
        """A push that changes nothing, and of which git tells why."""
        before = self.refs(name)
        done = self.git("push", *argv, at=at, good=False)
        self.assertEqual(self.refs(name), before)
        for text in (says,) if isinstance(says, str) else says:
            self.assertIn(text, done.err)
        return done.err

    def test_versions(self):
        """Clone, push and fetch by each version of the protocol, over both versions of HTTP."""
        for protocol, http in ("0", "HTTP/1.1"), ("1", "HTTP/2"), ("2", "HTTP/1.1"), ("2", "HTTP/2"):
            with self.subTest(protocol=protocol, http=http):
                options = ("-c", f"protocol.version={protocol}", "-c", f"http.version={http}")
                path = self.clone("site", *options)
                branch = f"refs/heads/agent/{protocol}-{http[5:6]}"
                for message in f"by the agent, {branch}", "more":  # no two commits are the same, even within a second
                    self.commit(path, message)
                    self.git("push", "-q", "origin", f"HEAD:{branch}", at=path)
                self.assertEqual(self.refs()[branch], self.git("rev-parse", "HEAD", at=path).out.strip())
                self.git("fetch", "-q", at=path)

    def test_history_is_kept(self):
        """New commits on a branch pass, also a merge and from a shallow clone; what takes commits away does not."""
        path = self.clone("site", "--depth=1")
        self.commit(path, "one")
        self.git("push", "-q", "origin", "HEAD:refs/heads/agent/x", at=path)
        self.git("checkout", "-q", "-b", "side", "HEAD~1", at=path)
        self.commit(path, "side")
        self.git("checkout", "-q", "main", at=path)
        self.git("merge", "-q", "side", "-m", "merge", at=path)
        for i in range(20):
            self.commit(path, f"a long message that is like the others, so that git writes differences: {i}")
        self.git("push", "-q", "origin", "HEAD:refs/heads/agent/x", at=path)
        self.assertEqual(self.refs()["refs/heads/agent/x"], self.git("rev-parse", "HEAD", at=path).out.strip())
        self.git("commit", "-q", "--amend", "--allow-empty", "-m", "amended", at=path)
        says = ("remote: vethguard: POST https://github.com/acme/site.git/git-receive-pack: the ref \"refs/heads/agent/x\" may not be changed by force",
                "! [remote rejected]", "(not allowed by the sandbox's network policy)", "rule \"site\" allows git repository \"acme/site\"; push")
        self.refused(path, "--force", "origin", "HEAD:refs/heads/agent/x", says=says)
        self.refused(path, "--force", "origin", "HEAD~5:refs/heads/agent/x", says="may not be changed by force")
        self.refused(path, "origin", ":refs/heads/agent/x", says="the ref \"refs/heads/agent/x\" may not be deleted")
        # commits that are there already, from another branch: nothing in the push proves that they follow
        self.git("push", "-q", "origin", "side:refs/heads/agent/side", at=path)
        self.refused(path, "origin", "main~3:refs/heads/agent/side", says="does not prove that its new commits follow the old ones")
        self.assertTrue([e for e in self.box.events(HTTP) if "may not be changed by force" in e.get("status_detail", "") and e["status_code"] == "condition"])

    def test_refs(self):
        path = self.clone()
        self.commit(path, "one")
        self.git("tag", "agent-1", at=path)
        self.git("tag", "-a", "v1", "-m", "v1", at=path)
        self.git("push", "-q", "origin", "agent-1", at=path)
        self.assertIn("refs/tags/agent-1", self.refs())
        self.commit(path, "two")
        self.git("tag", "-f", "agent-1", at=path)
        rows = [(("origin", "HEAD:refs/heads/main"), "the ref \"refs/heads/main\" may not be pushed"),
                (("origin", "HEAD:refs/heads/Agent/x"), "may not be pushed"), (("origin", "HEAD:refs/heads/agent2"), "may not be pushed"),
                (("origin", "v1"), "the ref \"refs/tags/v1\" may not be pushed"), (("-f", "origin", "agent-1"), "may not be moved"),
                (("origin", "HEAD:refs/heads/agent/y", "HEAD:refs/heads/main"), "refs/heads/main"),
                (("--atomic", "origin", "HEAD:refs/heads/agent/y", "HEAD:refs/heads/main"), "refs/heads/main"),
                (("--mirror", "origin"), "may not be"), (("-o", "ci.skip", "origin", "HEAD:refs/heads/agent/y"), "the push option \"ci.skip\" is not allowed"),
                (("origin", "HEAD:refs/notes/commits"), "may not be pushed")]
        for argv, says in rows:
            with self.subTest(push=argv):
                self.refused(path, *argv, says=says)

    def test_what_a_rule_opens(self):
        path = self.clone("free")
        self.commit(path, "one")
        self.git("tag", "v1", at=path)
        self.git("push", "-q", "origin", "HEAD:refs/heads/main", "v1", at=path)
        self.git("commit", "-q", "--amend", "--allow-empty", "-m", "amended", at=path)
        self.git("push", "-q", "-f", "-o", "ci.skip", "origin", "HEAD:refs/heads/main", "HEAD:refs/heads/x", at=path)
        self.git("push", "-q", "origin", ":refs/heads/x", at=path)
        self.assertEqual(self.refs("free")["refs/heads/main"], self.git("rev-parse", "HEAD", at=path).out.strip())
        self.assertNotIn("refs/heads/x", self.refs("free"))
        self.refused(path, "-o", "merge_request.create", "origin", "HEAD:refs/heads/y", says="merge_request.create", name="free")

    def test_repositories(self):
        path = self.clone("other")
        self.commit(path, "one")
        err = self.refused(path, "origin", "HEAD:refs/heads/agent/x", says="remote: vethguard: GET https://github.com/acme/other.git/info/refs", name="other")
        self.assertIn("the repository may not be pushed", err)
        for url in "https://github.com/acme/none.git", "https://github.com/acme/site/../none", "https://github.com/evil/site.git":
            done = self.git("clone", url, self.folder("git-none"), good=False)
            self.assertIn("remote: vethguard: ", done.err)
        self.assertEqual([r for r in self.seen("http") if "/none" in r["path"] or "/evil" in r["path"]], [])

    def test_bodies_as_git_sends_them(self):
        """A body in chunks, one that is compressed, and one beyond inspect."""
        path = self.clone()
        with open(os.path.join(path, "noise"), "wb") as f:
            f.write(os.urandom(100 << 10))
        self.git("add", "noise", at=path)
        self.commit(path, "noise")
        self.git("-c", "http.postBuffer=65536", "push", "-q", "origin", "HEAD:refs/heads/agent/noise", at=path)
        self.assertEqual(self.refs()["refs/heads/agent/noise"], self.git("rev-parse", "HEAD", at=path).out.strip())
        for version in "0", "2":
            for i in range(25):  # as many lines that say what is wanted have more than 1024 bytes, which git compresses
                self.host("commit", "-q", "--allow-empty", "-m", f"{version} {i}", at=self.work)
                self.host("branch", f"b{version}-{i}", at=self.work)
            self.host("push", "-q", support.LAB.path("git/acme/site.git"), "--all", at=self.work)
            self.seen_at = self._seen_size()
            self.git("-c", f"protocol.version={version}", "fetch", "-q", "origin", at=path)
            zipped = [r for r in self.seen("http") if ["Content-Encoding", "gzip"] in [[k.title(), v] for k, v in r["headers"]]]
            self.assertTrue(zipped, version)
        with open(os.path.join(path, "noise"), "wb") as f:
            f.write(os.urandom(400 << 10))
        self.commit(path, "more noise", "-a")
        for more in (), ("-c", "http.postBuffer=65536"):
            before = self.refs()
            done = self.git(*more, "push", "origin", "HEAD:refs/heads/agent/noise", at=path, good=False)
            self.assertIn("413", done.err)
            self.assertEqual(self.refs(), before)

    def test_no_other_bodies(self):
        """What another reader than vethguard could take for something else does not leave, whatever its type says."""
        zero, one = "0" * 40, "a" * 40
        path = support.LAB.path("git-body")

        def line(text):
            return b"%04x%s" % (len(text) + 4, text)

        push = line(f"{zero} {one} refs/heads/agent/x".encode() + b"\0 report-status") + b"0000PACK\0\0\0\2\0\0\0\0" + b"x" * 20
        fetch = line(b"command=ls-refs\n") + b"0000"
        receive, upload = "git-receive-pack", "git-upload-pack"
        rows = [(receive, receive, push.replace(b"agent/", b"agent/../"), ()), (receive, upload, push, ()), (upload, receive, fetch, ()),
                (upload, upload, push, ()), (receive, receive, fetch, ()), (upload, upload, fetch + b"0000", ()), (upload, upload, b"secret", ()),
                (upload, upload, gzip.compress(fetch) * 2, ("Content-Encoding: gzip",)), (upload, upload, gzip.compress(fetch)[:-1], ("Content-Encoding: gzip",)),
                (upload, upload, fetch, ("Content-Encoding: gzip",)), (upload, upload, gzip.compress(fetch), ()),
                (upload, upload, gzip.compress(gzip.compress(fetch)), ("Content-Encoding: gzip, gzip",)),
                (receive, receive, push.replace(b"report-status", b"new-capability"), ()), (receive, receive, b"0000" + push, ()),
                (receive, receive, push.replace(b"0000PACK", b"0000").replace(b"\0\0\0\2", b"\0\0\0\1"), ())]
        for version in "--http1.1", "--http2":
            for at, of, body, fields in rows:
                with self.subTest(at=at, of=of, body=body, version=version):
                    with open(path, "wb") as f:
                        f.write(body)
                    self.seen_at = self._seen_size()
                    more = " ".join(f"-H '{f}'" for f in (f"Content-Type: application/x-{of}-request", *fields))
                    done = self.box.sh(f"curl -sS {version} -o /dev/null -w '%{{http_code}}' {more} --data-binary @{path} https://github.com/acme/site.git/{at}")
                    self.assertIn(done.out, ("403", "200"))
                    self.assertEqual(self.seen("http"), [])
            with open(path, "wb") as f:
                f.write(gzip.compress(fetch))
            done = self.box.sh(f"curl -sS {version} -o /dev/null -w '%{{http_code}}' -H 'Content-Type: application/x-git-upload-pack-request' -H 'Git-Protocol: version=2' "
                               f"-H 'Content-Encoding: gzip' --data-binary @{path} https://github.com/acme/site.git/git-upload-pack")
            self.assertEqual((done.out, len(self.seen("http"))), ("200", 1))
