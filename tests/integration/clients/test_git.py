# SPDX-License-Identifier: Apache-2.0
"""git over https: clone, fetch and push with a token that the sandbox does not have; refusals."""
import hashlib
import os
import shutil

import outside
import support
from outside import Client
from support import PYTHON, SLOW

WHO = {f"GIT_{who}_{what}": value for who in ("AUTHOR", "COMMITTER") for what, value in (("NAME", "a"), ("EMAIL", "a@lab.test"))}

# git before 2.44 sometimes hangs at the end of a chunked push over HTTP/2, with any server: asked by libcurl for more after the
# last byte, git-remote-https reads from send-pack, which waits for the answer. Then, and only then, it is pushed again: for ten seconds none
# of its processes has worked or waited for the network.
PUSH = """
import os, subprocess, sys, time
def waits(session):
    found = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat") as stat, open(f"/proc/{pid}/wchan") as wchan:
                state, _, _, its = stat.read().rsplit(")", 1)[1].split()[:4]
                if its == str(session):
                    found[pid] = state, wchan.read()
        except OSError:
            pass
    return found
def itself(found):
    return all(state == "S" and (at.endswith("pipe_read") or at == "do_wait") for state, at in found.values())
for _ in range(20):
    push, end, looks = subprocess.Popen(sys.argv[2:], start_new_session=True), time.monotonic() + float(sys.argv[1]), 0
    while looks < 20:
        try:
            sys.exit(push.wait(0.5))
        except subprocess.TimeoutExpired:
            found = waits(push.pid)
        looks = looks + 1 if itself(found) else 0
        if time.monotonic() > end:
            os.killpg(push.pid, 9)
            sys.exit(f"hangs: {found}")
    os.killpg(push.pid, 9)
    push.wait()
    print("git waits for itself", file=sys.stderr)
sys.exit("it never ends")
"""


class Git(Client):
    RULES = ("{to: 'https://git.real.lab.test', paths: ['/git/open.git/**'], credential: git}",
             "{to: 'https://git.one.lab.test', paths: ['/git/open.git/**'], credential: git}",
             "{to: 'https://ro.real.lab.test', paths: ['/git/*/info/refs', '/git/*/git-upload-pack'], credential: git}")
    CREDENTIALS = {"git": "inject: basic, username: x-access-token, env: GIT_TOKEN"}
    ENV = {"GIT_TERMINAL_PROMPT": "0", "GIT_CONFIG_GLOBAL": "/dev/null", **WHO}

    @classmethod
    def prepare(cls):
        top, work = support.LAB.path("repositories"), support.LAB.path("git-first")
        env = dict(os.environ, GIT_CONFIG_GLOBAL="/dev/null", **WHO)
        for name in ("open", "other"):
            support.sh("git", "init", "-q", "--bare", "-b", "main", f"{top}/{name}.git")
            support.sh("git", "-C", f"{top}/{name}.git", "config", "http.receivepack", "true")
        support.sh("git", "init", "-q", "-b", "main", work)
        with open(work + "/big.txt", "w") as f:
            f.write("".join(hashlib.sha256(b"%d" % i).hexdigest() + "\n" for i in range(50000)))
        support.sh("git", "-C", work, "add", ".", env=env)
        support.sh("git", "-C", work, "commit", "-qm", "first", env=env)
        for name in ("open", "other"):
            support.sh("git", "-C", work, "push", "-q", f"{top}/{name}.git", "main", env=env)

    def folder(self):
        path = support.LAB.path("clone")
        shutil.rmtree(path, ignore_errors=True)
        return path

    def log(self, branch, repository="open.git"):
        return support.sh("git", "-c", "safe.directory=*", "-C", support.LAB.path("repositories/" + repository), "log",
                          "--format=%s", branch)

    def round_trip(self, host, protocol):
        def check(box, word):
            path = self.folder()
            self.assert_ok(box.run("git", "clone", "-q", f"https://{host}/git/open.git", path))
            self.assertEqual(os.path.getsize(path + "/big.txt"), 65 * 50000)
            with open(path + "/blob", "wb") as f:  # more than http.postBuffer: the push is chunked
                f.write(os.urandom(3 << 20))
            self.assert_ok(box.sh(f"cd {path} && git add . && git commit -qm {word}"))
            self.assert_ok(box.run(PYTHON, "-c", PUSH, str(20 * SLOW), "git", "-C", path, "push", "-q", "origin",
                                   f"HEAD:{host}-{word}", timeout=150 * SLOW))
            self.assertEqual(self.log(f"{host}-{word}"), f"{word}\nfirst\n")
            self.assert_ok(box.run("git", "-C", path, "fetch", "-q", "origin"))
            self.assert_went(box, protocol, path="/git/open.git/info/refs?service=git-upload-pack")
            self.assertTrue(all(r["authenticated"] for r in self.seen("request")), self.seen("request"))
            self.assert_no_secret(box.sh(f"cat {path}/.git/config; git -C {path} remote -v; env").out)
        self.each(check)

    def test_clone_and_push(self):
        self.round_trip("git.real.lab.test", outside.TO_UPSTREAM)

    def test_clone_and_push_to_an_origin_of_http1(self):
        self.round_trip("git.one.lab.test", "HTTP/1.1")

    def test_another_repository(self):
        def check(box, word):
            done = box.run("git", "clone", "-q", "https://git.real.lab.test/git/other.git", self.folder())
            self.assert_refused(box, done)
            self.assertIn("403", done.err)
        self.each(check)

    def test_a_host_to_read_from(self):
        """Clone works, push is refused before its first byte leaves."""
        def check(box, word):
            path = self.folder()
            self.assert_ok(box.run("git", "clone", "-q", "https://ro.real.lab.test/git/open.git", path))
            self.assert_ok(box.run("git", "-C", path, "commit", "-q", "--allow-empty", "-m", "no"))
            done = box.run("git", "-C", path, "push", "-q", "origin", f"HEAD:never-{word}")
            self.assertNotEqual(done.status, 0, done)
            self.assertIn("403", done.err)
            self.assertEqual([r for r in self.seen("request") if r["path"].endswith("git-receive-pack") and r["method"] == "POST"], [])
            self.assertNotIn("never", support.sh("git", "-c", "safe.directory=*", "-C",
                                                 support.LAB.path("repositories/open.git"), "branch"))
        self.each(check)

    def test_other_transports(self):
        def check(box, word):
            for url in ("ssh://git@git.real.lab.test/git/open.git", "git://git.real.lab.test/git/open.git",
                        "http://git.real.lab.test/git/open.git"):
                self.assert_refused(box, box.run("git", "clone", "-q", url, self.folder(), env={
                    "GIT_SSH_COMMAND": "ssh -o BatchMode=yes -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null"}))
        self.each(check)


del Client  # a base class, not a test
