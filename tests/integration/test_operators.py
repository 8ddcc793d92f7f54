# SPDX-License-Identifier: Apache-2.0
"""What operators ask a daemon for: its audit log without naming it, whether that was cut off, a list that fits a terminal, and
an end of all guards at once."""
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import threading

import support
import terminal
from daemon import Daemon
from support import SLOW, VETHGUARD, Case, policy, sh

POLICY = policy("https://api.lab.test")


class Operated(Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.policy = support.LAB.write("operators.yaml", POLICY)
        cls.daemon = Daemon()

    @classmethod
    def tearDownClass(cls):
        status = cls.daemon.stop()
        assert status == 0, cls.daemon.stderr()
        super().tearDownClass()

    def tearDown(self):
        for s in self.daemon.call("GET", "/v1/sandboxes")[2]["sandboxes"]:
            self.daemon.call("DELETE", f"/v1/sandboxes/{s['name']}")
        super().tearDown()

    def attach(self, name):
        return self.daemon.attach(name=name, netns="/run/netns/" + support.netns(self, name), policy=self.policy)

    def tool(self, *argv, socket=None, **kw):
        return subprocess.run([VETHGUARD, *argv, "--socket", socket or self.daemon.socket], capture_output=True, text=True,
                              timeout=60 * SLOW, **kw)

    def audit(self, *argv, **kw):
        return self.tool("audit", *argv, **kw)


class Audit(Operated):
    def setUp(self):
        super().setUp()
        self.attach("asked")

    def test_show_and_suggest(self):
        r = self.audit("show", "--sandbox", "asked")
        self.assertEqual(r.returncode, 0, r)
        self.assertIn("sandbox asked started", r.stdout)
        self.assertIn(self.audit("show", "--sandbox", "nobody").stderr, f"vethguard: note: no event in {self.daemon.audit} matches --sandbox\n")
        r = self.audit("suggest", "--sandbox", "asked")
        self.assertEqual((r.returncode, r.stdout), (1, "# Nothing to suggest.\n"), r)
        rows = [json.loads(line) for line in self.audit("show", "--json").stdout.splitlines()]
        self.assertIn("vethguardd", {row["device"]["name"] for row in rows})

    def test_without_a_daemon(self):
        for words in (("show",), ("suggest",), ("verify",), ("show", "--json", "--denied")):
            r = self.audit(*words, socket="/nonexistent/control.sock")
            self.assertEqual((r.returncode, r.stdout), (3, ""), r)
            self.assertIn("the daemon does not run: nothing listens on /nonexistent/control.sock", r.stderr)
            self.assertIn(f"Another one: 'vethguard audit {words[0]} FILE'", r.stderr)

    def test_a_file_or_a_daemon(self):
        for words in (("show", self.daemon.audit), ("suggest", "-"), ("verify", self.daemon.audit)):
            r = self.audit(*words)
            self.assertEqual((r.returncode, r.stdout, r.stderr), (2, "", "vethguard: error: FILE or --socket, not both\n"), r)

    def test_a_log_that_may_not_be_read(self):
        """The right to ask the daemon gives no right to read its log."""
        os.chown(self.daemon.audit, 1, 1)
        self.addCleanup(os.chown, self.daemon.audit, 0, 0)
        for command in ("show", "suggest", "verify"):
            r = subprocess.run(["setpriv", "--bounding-set=-dac_override,-dac_read_search", VETHGUARD, "audit", command, "--socket",
                                self.daemon.socket], capture_output=True, text=True, timeout=60 * SLOW)
            self.assertEqual((r.returncode, r.stdout), (2, ""), r)
            self.assertEqual(r.stderr, f"vethguard: error: cannot read {self.daemon.audit}: Permission denied\n"
                                       "It is the daemon's audit log, which root may read: use sudo.\n")


class Verify(Operated):
    def setUp(self):
        super().setUp()
        self.before = len(self.attachments())
        self.attach("verified")
        self.whole = self.lines()

    def attachments(self):
        return [e for e in self.daemon.events(6003) if e["api"]["operation"] == "sandboxes.attach"]

    def lines(self):
        """All of them: the call that attached the sandbox is the last thing to be recorded, and it may take a batch."""
        self.assertTrue(support.wait_until(lambda: len(self.attachments()) > self.before))
        seen = []

        def whole():
            with open(self.daemon.audit, "rb") as f:
                seen[:] = f.read().splitlines(keepends=True)
            return seen and json.loads(seen[-1])["attestation_list"][0]["fingerprint"]["value"] == self.fingerprint()
        self.assertTrue(support.wait_until(whole))
        return list(seen)

    def with_log(self, lines):
        """The daemon's log with other lines, and what verify says; the log is as it was then."""
        saved = self.daemon.audit + ".saved"
        shutil.copy(self.daemon.audit, saved)
        with open(self.daemon.audit, "wb") as f:
            f.writelines(lines)
        r = self.audit("verify")
        shutil.copyfile(saved, self.daemon.audit)
        support.UNSOUND.add(self.daemon.audit)
        return r

    def fingerprint(self):
        return self.daemon.call("GET", "/v1/audit")[2]["fingerprint"]

    def test_a_whole_log(self):
        r = self.audit("verify")
        self.assertEqual((r.returncode, r.stderr), (0, ""), r)
        self.assertRegex(r.stdout, "OK: [0-9]+ lines .*\n(The last line is the one that|Line [0-9]+ is the last one that) the daemon (wrote|had written)")
        self.assertIn("none was cut off", r.stdout)
        self.assertNotIn("Not known", r.stdout)

    def test_the_end_is_cut_off(self):
        """At the end of a line: the chain is whole, and only the daemon knows that something is missing."""
        for keep in (len(self.whole) - 1, 1, 0):
            with self.subTest(keep=keep):
                for _ in range(10):
                    self.fingerprint()
                    r = self.with_log(self.lines()[:keep])
                    if r.returncode:  # else the call's own event was written before the file was read: it is the last line again
                        break
                self.assertEqual(r.returncode, 1, r)
                self.assertRegex(r.stdout, "BROKEN: no line has the fingerprint [0-9a-f]{64}, which the daemon says is that of the line it wrote last")

    def test_a_file_alone_cannot_tell(self):
        cut = support.LAB.path("cut.jsonl")
        with open(cut, "wb") as f:
            f.writelines(self.whole[:-1])
        r = subprocess.run([VETHGUARD, "audit", "verify", cut], capture_output=True, text=True)
        self.assertEqual(r.returncode, 0, r)
        self.assertIn("Not known: whether lines behind the last one were cut off, or all were written anew.", r.stdout)
        self.assertIn("'vethguard audit verify' without FILE", r.stdout)
        noted = json.loads(self.whole[0])["attestation_list"][0]["fingerprint"]["value"]
        r = subprocess.run([VETHGUARD, "audit", "verify", cut, "--anchor", noted], capture_output=True, text=True)
        self.assertEqual(r.returncode, 0, r)
        self.assertIn("Line 1 has the fingerprint that was given: none is missing up to there.\nNot known: whether lines behind", r.stdout)
        r = subprocess.run([VETHGUARD, "audit", "verify", cut, "--anchor", self.fingerprint()], capture_output=True, text=True)
        self.assertEqual(r.returncode, 1, r)
        empty = support.LAB.write("none.jsonl", "")
        r = subprocess.run([VETHGUARD, "audit", "verify", empty], capture_output=True, text=True)
        self.assertEqual((r.returncode, r.stdout), (0, f"{empty} has no lines. Not known: whether all were removed.\n"))

    def test_another_log_in_its_place(self):
        other = support.LAB.path("of-a-run.jsonl")
        done = support.LAB.run(POLICY, ["true"], options=["--audit", other])
        self.assertEqual(done.status if hasattr(done, "status") else done.returncode, 0)
        with open(other, "rb") as f:
            r = self.with_log(f.read().splitlines(keepends=True))
        self.assertEqual(r.returncode, 1, r)
        self.assertIn("all were written anew", r.stdout)

    def test_an_anchor_of_ones_own(self):
        """FILE counts, also where the daemon would be asked for its log."""
        noted = json.loads(self.whole[0])["attestation_list"][0]["fingerprint"]["value"]
        self.assertEqual(self.audit("verify", "--anchor", noted).returncode, 0)
        r = self.audit("verify", "--anchor", "0" * 64)
        self.assertEqual(r.returncode, 1, r)
        self.assertIn("BROKEN: no line has the fingerprint 0000", r.stdout)
        self.assertEqual(self.audit("verify", "--anchor", "00").returncode, 2)

    def test_after_a_rotation(self):
        os.rename(self.daemon.audit, self.daemon.audit + ".1")
        self.daemon.process.send_signal(signal.SIGHUP)
        support.wait_until(lambda: os.path.exists(self.daemon.audit) and os.path.getsize(self.daemon.audit))
        r = self.audit("verify")
        self.assertEqual(r.returncode, 0, r)
        self.assertIn("The first line continues a chain from an older file", r.stdout)
        self.assertNotIn("Not known", r.stdout)

    def test_after_the_recorder_has_died(self):
        pid = self.daemon.call("GET", "/v1/status")[2]["processes"]["recorder"]
        os.kill(pid, 9)
        r = support.wait_until(lambda: (r := self.audit("verify")).returncode == 0 and "none was cut off" in r.stdout and r)
        self.assertTrue(r, self.audit("verify"))


class Shown(Operated):
    """list, show, stats and doctor as a person sees them: on terminals of several widths, with the longest names there are."""
    NAME = "agent-" + "x" * 57  # the longest that a name may be

    def setUp(self):
        super().setUp()
        self.attach("short")
        netns = "/run/netns/" + support.netns(self, "a-namespace-with-a-rather-long-name")
        self.label = "T-" + "y" * 200
        self.daemon.attach(name=self.NAME, netns=netns, policy=self.policy, ttl_s=7200, labels={"ticket": self.label})
        self.reason = "looks strange to whoever is on duty, and is looked into before it goes on"
        self.daemon.call("POST", f"/v1/sandboxes/{self.NAME}/pause", {"reason": self.reason})

    def on_terminal(self, width, *argv):
        status, text = terminal.run(width, VETHGUARD, *argv, "--socket", self.daemon.socket)
        self.assertEqual(status, 0, text)
        self.assertEqual([c for c in text if not (32 <= ord(c) < 127 or c == "\n")], [])
        self.assertEqual([line for line in text.splitlines() if len(line) > width or line.endswith(" ")], [])
        return text

    def test_list(self):
        whole = self.tool("list").stdout
        self.assertIn(self.NAME, whole)
        self.assertIn("/run/netns/a-namespace-with-a-rather-long-name", whole)
        self.assertEqual(len(whole.splitlines()), 3)
        for width in (80, 120, 200):
            with self.subTest(width=width):
                text = self.on_terminal(width, "list")
                self.assertEqual(text.split("\n")[0].split()[:4], ["NAME", "STATE", "ATTACHED", "TO"])
                self.assertIn("EXPIRES", text)
                self.assertEqual(text.count("x"), len([c for c in whole if c == "x"]))  # not a letter of the name is gone
                self.assertIn("paused", text)
        self.assertEqual([line.split() for line in self.on_terminal(250, "list").splitlines()], [line.split() for line in whole.splitlines()])

    def test_show_and_stats(self):
        text = self.on_terminal(80, "show", self.NAME)
        words = "".join(text.split())
        for part in (self.NAME, self.label, "".join(self.reason.split()), self.policy, "fingerprint"):
            self.assertIn(part, words)
        whole = self.tool("show", self.NAME).stdout
        self.assertIn(f"ticket={self.label}\n", whole)
        self.assertIn(self.reason + "\n", whole)
        stats = self.on_terminal(80, "stats", self.NAME)
        self.assertEqual(len({re.search(r"^(?:  )?[a-z ]+?  +", line).end() for line in stats.splitlines()}), 1, stats)  # one column

    def test_doctor(self):
        for width in (80, 120):
            status, text = terminal.run(width, VETHGUARD, "doctor")
            self.assertIn(status, (0, 1), text)
            self.assertEqual([line for line in text.splitlines() if len(line) > width], [], text)
            whole = subprocess.run([VETHGUARD, "doctor"], capture_output=True, text=True, timeout=60 * SLOW).stdout
            subjects = re.findall(r"^(?:ok|note|broken) +([a-z]+)", whole, re.M)
            self.assertGreater(len(subjects), 5)
            self.assertEqual(re.findall(r"^(?:ok|note|broken) +([a-z]+)", text, re.M), subjects)


class Detach(Operated):
    NAMES = ("box-1", "box-2", "box-3")

    def setUp(self):
        super().setUp()
        for name in self.NAMES:
            self.attach(name)

    def left(self):
        return sorted(s["name"] for s in self.daemon.call("GET", "/v1/sandboxes")[2]["sandboxes"])

    def typed(self, *argv, answer):
        status, text = terminal.run(80, VETHGUARD, "detach", *argv, "--socket", self.daemon.socket, input=answer)
        return status, terminal.plain(text)

    def test_all_of_them(self):
        r = self.tool("detach", "--all", "--yes")
        self.assertEqual((r.returncode, r.stderr), (0, ""), r)
        lines = r.stdout.splitlines()
        self.assertEqual(len(lines), 4, r)
        for name in self.NAMES:
            self.assertTrue([x for x in lines if x.startswith(name + ": detached; 0 allowed")], r)
        self.assertEqual(lines[-1], "3 detached")
        self.assertEqual(self.left(), [])
        r = self.tool("detach", "--all")  # of none nobody is asked
        self.assertEqual((r.returncode, r.stdout, r.stderr), (0, "0 detached\n", ""), r)

    def test_as_json(self):
        r = self.tool("detach", "--all", "--yes", "--json")
        self.assertEqual((r.returncode, r.stderr), (0, ""), r)
        decoder, text, found = json.JSONDecoder(), r.stdout, []
        while text.strip():
            value, end = decoder.raw_decode(text.lstrip())
            found.append(value["name"])
            text = text.lstrip()[end:]
        self.assertEqual(sorted(found), sorted(self.NAMES))

    def test_nobody_can_be_asked(self):
        r = self.tool("detach", "--all", input="yes\n")
        self.assertEqual((r.returncode, r.stdout), (2, ""), r)
        self.assertEqual(r.stderr, "vethguard: error: there is no terminal to ask whether to detach 3 sandboxes: give --yes\n")
        self.assertEqual(self.left(), sorted(self.NAMES))

    def test_who_is_asked_may_say_no(self):
        for answer in ("n\n", "\n", "no\n", "yesterday\n", "yes please, all of them\n", " y\n", "\x04"):
            with self.subTest(answer=answer):
                status, text = self.typed("--all", answer=answer)
                self.assertEqual(status, 1, text)
                self.assertIn("The guard of 3 sandboxes ends:\n  box-1\n  box-2\n  box-3\nDetach? [y/N] ", text)
                self.assertIn("Nothing was detached.", text)
                self.assertEqual(self.left(), sorted(self.NAMES))

    def test_who_is_asked_may_say_yes(self):
        status, text = self.typed("--all", answer="y\n")
        self.assertEqual(status, 0, text)
        self.assertIn("3 detached\n", text)
        self.assertEqual(self.left(), [])

    def test_an_interface_is_told_before(self):
        sh("ip", "link", "add", "vgop0", "type", "veth", "peer", "name", "vgop1")
        self.addCleanup(sh, "ip", "link", "del", "vgop0")
        sh("ip", "addr", "add", "192.0.2.1/24", "dev", "vgop0")
        sh("ip", "link", "set", "vgop0", "up")
        self.daemon.attach(name="wire", interface="vgop0", policy=self.policy)
        status, text = self.typed("--all", answer="n\n")
        self.assertEqual(status, 1, text)
        self.assertIn("1 of them is an interface, which is open afterwards: nothing guards it then.\n", text)
        r = self.tool("detach", "--all", "--yes")
        self.assertEqual(r.returncode, 0, r)
        self.assertIn("wire: interface vgop0 is open: nothing guards it any more\n", r.stdout)
        self.assertIn("4 detached\n", r.stdout)

    def test_wrong_usage(self):
        for words, said in ((("--all", "box-1"), "give names or --all, not both"), ((), "which sandbox? Name it, or give --all"),
                            (("--yes",), "which sandbox? Name it, or give --all"), (("--yes", "box-1"), "--yes is for --all")):
            r = self.tool("detach", *words)
            self.assertEqual((r.returncode, r.stdout), (2, ""), r)
            self.assertIn(f"vethguard: error: {said}\n", r.stderr)
        self.assertEqual(self.left(), sorted(self.NAMES))

    def test_without_a_daemon(self):
        r = self.tool("detach", "--all", "--yes", socket="/nonexistent/s")
        self.assertEqual((r.returncode, r.stdout), (3, ""), r)


class DetachFails(Case):
    """A program that plays the daemon: what becomes of the other sandboxes if one fails."""

    def serve(self, answers):
        """A control socket that gives these answers, one per request; (path, what was asked)."""
        path = support.LAB.path("fake.sock")
        if os.path.exists(path):
            os.unlink(path)
        listener, asked = socket.socket(socket.AF_UNIX), []
        listener.bind(path)
        listener.listen(8)

        def run():
            for status, body in answers:
                c, _ = listener.accept()
                with c:
                    asked.append(c.recv(65536).split(b"\r\n")[0].decode())
                    if status:
                        text = json.dumps(body).encode()
                        c.sendall(b"HTTP/1.1 %d x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % (status, len(text)) + text)
            listener.close()

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        self.addCleanup(thread.join, 10)
        return path, asked

    def detach(self, *answers):
        listed = {"sandboxes": [{"name": n, "attachment": {"kind": "netns"}} for n in ("a", "b", "c")]}
        path, asked = self.serve([(200, listed), *answers])
        r = subprocess.run([VETHGUARD, "detach", "--all", "--yes", "--socket", path], capture_output=True, text=True, timeout=60 * SLOW)
        return r, asked

    DONE = (200, {"summary": None, "opened": None})

    def test_one_fails(self):
        r, asked = self.detach(self.DONE, (503, {"detail": "another operation is under way"}), self.DONE)
        self.assertEqual((r.returncode, r.stdout), (1, "a: detached\nc: detached\n2 detached\n"), r)
        self.assertEqual(r.stderr, "vethguard: error: another operation is under way\nvethguard: error: 1 of 3 sandboxes was not detached\n")
        self.assertEqual(asked[1:], [f"DELETE /v1/sandboxes/{n} HTTP/1.1" for n in "abc"])

    def test_one_has_gone(self):
        r, _ = self.detach(self.DONE, (404, {"detail": "there is none"}), self.DONE)
        self.assertEqual((r.returncode, r.stdout, r.stderr), (0, "a: detached\nb: it had ended by itself already\nc: detached\n3 detached\n", ""), r)

    def test_the_daemon_goes(self):
        r, asked = self.detach(self.DONE, (0, None))
        self.assertEqual((r.returncode, r.stdout), (3, "a: detached\n1 detached\n"), r)
        self.assertIn("2 of 3 sandboxes were not detached", r.stderr)
        self.assertEqual(len(asked), 3)

    def test_a_name_that_is_none(self):
        """Whoever claims to be the daemon: no path is made of what is not a name."""
        listed = {"sandboxes": [{"name": "../status"}, {"name": "a"}, {}, 7]}
        path, asked = self.serve([(200, listed), self.DONE])
        r = subprocess.run([VETHGUARD, "detach", "--all", "--yes", "--socket", path], capture_output=True, text=True, timeout=60 * SLOW)
        self.assertEqual((r.returncode, r.stdout), (2, "a: detached\n1 detached\n"), r)
        self.assertEqual(asked, ["GET /v1/sandboxes HTTP/1.1", "DELETE /v1/sandboxes/a HTTP/1.1"])
