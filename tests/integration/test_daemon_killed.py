# SPDX-License-Identifier: Apache-2.0
"""The daemon: what happens to its sandboxes when parts of it, or all of it, are killed, hang or are damaged."""
import contextlib
import os
import shutil
import signal
import subprocess
import time

import support
from daemon import Daemon
from daemon_case import READS, ROLES, SOON, Attached
from lab import BIN
from support import FINDING, HTTP, LIFECYCLE, NETWORK, SLOW, descendants, file_credential, policy, wait_until

HOSTILE = os.path.join(BIN, "..", "tests", "hostile")


def is_dead(pid):
    with open(f"/proc/{pid}/stat") as f:
        return f.read().rpartition(") ")[2].startswith("Z")


class Killed(Attached):
    def test_each_role(self):
        self.assert_served()
        for role in ("worker", "keeper", "recorder"):
            pid = self.pid(role)
            os.kill(pid, 9)
            self.assertTrue(wait_until(lambda: not os.path.exists(f"/proc/{pid}"), 5 * SLOW))
            self.assert_served(role)
            self.assertNotEqual(self.pid(role), pid)
        self.assertTrue(self.daemon.event(FINDING))

    def test_a_keeper_that_hangs(self):
        """It neither dies nor answers: nobody would ever be served anything new."""
        pid = self.pid("keeper")
        os.kill(pid, signal.SIGSTOP)
        self.assertTrue(wait_until(lambda: not os.path.exists(f"/proc/{pid}"), 30 * SLOW), self.daemon.stderr())
        self.assert_served("under another keeper")
        self.assertIn("it does not answer any more", self.daemon.stderr())
        self.assertTrue(self.daemon.event(FINDING))

    def test_roles_together(self):
        for pid in [self.pid(role) for role in ROLES]:
            os.kill(pid, 9)
        self.assert_served("all three", 2 * SOON)

    def test_roles_together_while_nobody_looks(self):
        # Whichever death the supervisor hears of first, the others are there already.
        for roles in (list(ROLES)[::-1], list(ROLES)):
            pids = [self.pid(role) for role in roles]
            self.daemon.process.send_signal(signal.SIGSTOP)
            for pid in pids:
                os.kill(pid, 9)
                self.assertTrue(wait_until(lambda p=pid: is_dead(p), 5 * SLOW))
            self.daemon.process.send_signal(signal.SIGCONT)
            self.assert_served("all three", 2 * SOON)
        self.assertNotIn("tried again", self.daemon.stderr())

    def test_a_worker_too_often(self):
        def died():
            pid = self.show()["worker"]["pid"]
            with contextlib.suppress(ProcessLookupError):
                if pid:
                    os.kill(pid, 9)
            return self.show()["state"] == "failed"
        self.assertTrue(wait_until(died, 30 * SLOW), self.show())
        self.assertFalse(self.asks(seconds=2))
        # A failed sandbox cannot be resumed; if it is paused, it is still paused when it is served again.
        r = self.daemon.cli("resume", "one")
        self.assertEqual(r.returncode, 1, r)
        self.assertRegex(r.stderr, "one has failed, and only a reload starts a worker again: .*too often")
        self.assertFalse(self.show()["paused"])
        r = self.daemon.cli("pause", "one", "--reason", "a look")
        self.assertEqual((r.returncode, r.stdout), (0, "one: failed (no worker serves it); it stays paused when a worker serves it again\n"), r)
        status, _, answer = self.daemon.call("POST", "/v1/sandboxes/one/resume")
        self.assertEqual((status, self.show()["paused"]), (409, True), answer)
        status, _, answer = self.daemon.call("POST", "/v1/sandboxes/one/reload")
        self.assertEqual((status, answer["state"], answer["reason"]), (200, "paused", "a look"), answer)
        self.assertFalse(self.asks(seconds=2))
        self.assertEqual(self.daemon.cli("resume", "one").stdout, "one: serving\n")
        self.assert_served()

    def test_the_daemon(self):
        self.assert_served()
        before = self.show()
        self.daemon.kill()
        self.assertFalse(self.asks(seconds=2))
        began = time.monotonic()
        self.daemon.start()
        self.assert_served("the daemon is there again")
        self.assertLess(time.monotonic() - began, 3 * SLOW)
        after = self.show()
        for key in ("id", "addresses", "policy", "created", "proxy_port"):
            self.assertEqual(before[key], after[key], key)
        with open(os.path.join(self.daemon.data, "ca", "root.pem")) as f:
            self.assertEqual(f.read(), self.pem)
        self.assertTrue(wait_until(lambda: len([e for e in self.daemon.events(HTTP) if e["http_response"]["code"] == 200]) == 2,
                                   5 * SLOW), self.daemon.events(HTTP))
        self.test_detached_without_a_trace()

    def resolve(self, name="api.lab.test"):
        """Its synthetic IPv4 address, asked for as a program inside does."""
        question = b"\x12\x34\x01\0\0\1\0\0\0\0\0\0" + b"".join(
            bytes([len(p)]) + p for p in name.encode().split(b".")) + b"\0\0\1\0\1"
        ask = ("import socket, sys\ns = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\ns.settimeout(5)\n"
               f"s.connect(('198.18.0.1', 53))\ns.send({question!r})\nprint(socket.inet_ntoa(s.recv(512)[-4:]))\n")
        return support.sh("ip", "netns", "exec", self.name, "python3", "-c", ask).strip()

    def banner(self, address):
        """True: the service that bytes go to by address alone greets."""
        talk = f"import socket\ns = socket.create_connection(({address!r}, 2222), 5)\nprint(s.recv(64))\n"
        r = subprocess.run(["ip", "netns", "exec", self.name, "python3", "-c", talk], capture_output=True, text=True)
        return r.returncode == 0 and "banner" in r.stdout

    def test_cached_addresses_outlive_the_daemon(self):
        with open(self.policy, "w") as f:
            f.write(policy(READS, "tcp://tcp.lab.test:2222", credentials=file_credential()))
        self.assertEqual(self.daemon.call("POST", "/v1/sandboxes/one/reload")[0], 200)
        self.resolve("www.lab.test")
        address = self.resolve("tcp.lab.test")
        self.assertTrue(self.banner(address), address)
        for end in (self.daemon.kill, self.daemon.stop):
            end()
            self.daemon.start()
            self.assertTrue(wait_until(lambda: self.banner(address), SOON), self.daemon.stderr())
        self.daemon.kill()
        (name,) = self.state_files()["names"]
        with open(os.path.join(self.daemon.state, "names", name), "r+b") as f:
            f.truncate(4096)
        with open(os.path.join(self.daemon.state, "names", "0123456789abcdef"), "w"):
            pass
        self.daemon.start()
        self.assert_served()
        self.assertIn("synthetic addresses is damaged", self.daemon.stderr())
        self.assertEqual(self.state_files()["names"], [name])
        self.assertFalse(self.banner(address))
        self.assertTrue(self.banner(self.resolve("tcp.lab.test")))

    def test_workers_that_do_not_finish(self):
        """Each reload leaves one that still holds a connection; of more than four the oldest is ended, its connection with it."""
        with open(self.policy, "w") as f:
            f.write(policy(READS, "tcp://tcp.lab.test:2222", credentials=file_credential()))
        self.assertEqual(self.daemon.call("POST", "/v1/sandboxes/one/reload")[0], 200)
        hold = ("import socket, sys\ns = socket.create_connection((sys.argv[1], 2222), 5)\nprint(s.recv(64), flush=True)\n"
                "print(s.recv(64), flush=True)\n")
        address, held = self.resolve("tcp.lab.test"), []
        for _ in range(6):
            p = subprocess.Popen(["ip", "netns", "exec", self.name, "python3", "-c", hold, address],
                                 stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
            self.addCleanup(p.wait)
            self.addCleanup(p.kill)
            self.addCleanup(p.stdout.close)
            self.assertIn("banner", p.stdout.readline())
            held.append(p)
            self.assertEqual(self.daemon.call("POST", "/v1/sandboxes/one/reload")[0], 200)
        for p in held[:2]:
            p.wait(10 * SLOW)
        self.assertEqual([p.poll() for p in held[2:]], [None] * 4)
        workers = [p for p, row in descendants(self.daemon.process.pid).items() if row[0] == ROLES["worker"]]
        self.assertIn("the oldest one is ended", self.daemon.stderr())
        self.assertLessEqual(len(workers), 1 + 4 + 4, "one serves, four retire, four are in store")
        self.assert_served()

    def test_detached_without_a_trace(self):
        self.assertEqual(self.daemon.call("DELETE", "/v1/sandboxes/one")[0], 200)
        self.assertTrue(wait_until(lambda: not any(self.state_files().values()), 5 * SLOW), self.state_files())

    def test_the_log_has_its_starts_and_ends(self):
        """A start without a stop before it tells of one that was killed."""
        self.daemon.kill()
        self.daemon.start()
        self.daemon.stop()
        own = [e["activity_id"] for e in self.daemon.events(LIFECYCLE) if e["device"]["name"] == "vethguardd"]
        self.assertEqual(own, [3, 3, 4])

    def test_what_is_dropped_meanwhile_is_told_at_the_next_start(self):
        send = ("import socket\ns = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\nn = 0\nwhile n < 200:\n"
                " try: s.sendto(b'x', ('93.184.216.34', 4321)); n += 1\n except OSError: pass\n")

        def told():
            return sum(e.get("count", 1) for e in self.daemon.events(NETWORK) if e.get("status_code") == "fence")

        def dropped():
            return self.daemon.call("GET", "/v1/sandboxes/one/stats")[2]["packets_dropped"]

        self.assert_served()
        for end in (self.daemon.kill, self.daemon.stop):
            with self.subTest(end=end.__name__):
                self.assertTrue(wait_until(lambda: told() == dropped(), 15 * SLOW), f"{told()} of {dropped()} before")
                before = told()
                end()
                support.sh("ip", "netns", "exec", self.name, "python3", "-c", send)
                self.daemon.start()
                self.assertTrue(wait_until(lambda: told() >= before + 200, 15 * SLOW), f"{told() - before} of 200: {self.daemon.stderr()}")
                self.assertEqual(told(), dropped())

    def test_an_orderly_end_leaves_it_closed(self):
        self.assertEqual(self.daemon.stop(), 0)
        self.assertEqual(descendants(self.daemon.process.pid), {})
        self.assertFalse(self.asks(seconds=2))
        self.daemon.start()
        self.assert_served()

    def test_a_recorder_that_hangs_at_the_end(self):
        """Events that the recorder has not written are not lost: the next daemon's recorder writes them."""
        self.assert_served()
        self.assertTrue(self.daemon.event(HTTP))
        os.kill(self.pid("recorder"), signal.SIGSTOP)
        self.assert_served()
        self.daemon.stop()
        self.assertTrue(self.state_files()["rings"])
        self.assertEqual(len(self.daemon.events(HTTP)), 1)
        self.daemon.start()
        self.assertTrue(wait_until(lambda: len(self.daemon.events(HTTP)) == 2, 5 * SLOW), self.daemon.events(HTTP))
        self.assertTrue(self.daemon.event(LIFECYCLE, activity_id=4), self.daemon.events(LIFECYCLE))
        self.assertTrue(wait_until(lambda: len(self.state_files()["rings"]) == 1, 5 * SLOW), self.state_files())


class Disobedient(Attached):
    """The worker serves and does not hear what the supervisor says."""

    def make_daemon(self):
        folder = support.LAB.path(f"disobedient-{time.monotonic_ns()}")
        shutil.copytree(BIN, folder)
        shutil.copy(os.path.join(HOSTILE, "vethguard-worker"), folder)
        self.misdeed = os.path.join(folder, "misdeed")
        with open(self.misdeed, "w") as f:
            f.write("self willed")
        daemon = Daemon(start=False)
        return daemon.start([os.path.join(folder, "vethguardd"), *daemon.argv()[1:]])

    def test_paused(self):
        self.assert_served()
        self.assertIn("misdeed self willed: done", self.daemon.stderr())
        os.unlink(self.misdeed)  # the next one has heard nothing of the sandbox that could have turned it
        pid = self.pid("worker")
        self.assertEqual(self.daemon.call("POST", "/v1/sandboxes/one/pause", {"reason": "a test"})[0], 200)
        self.assertFalse(os.path.exists(f"/proc/{pid}"), "the worker lives")
        self.assertFalse(self.asks(seconds=2))
        self.assertTrue(self.daemon.event(FINDING))
        self.assertIn("of the paused sandbox did not end by itself", self.daemon.stderr())


class Damaged(Attached):
    def test_one_state_file(self):
        other = support.netns(self, self.name + "o")
        self.attach("two", other)
        self.daemon.kill()
        path = os.path.join(self.daemon.state, "sandboxes", "one.json")
        with open(path) as f:
            text = f.read()
        with open(path, "w") as f:
            f.write(text[:len(text) // 2])
        self.daemon.start()
        self.assert_served(netns=other)
        self.assertEqual(self.show()["state"], "failed")
        self.assertIn("one.json is damaged", self.daemon.stderr())
        found = self.daemon.event(FINDING, **{"finding_info.types": ["sandbox-cut-off"]})
        self.assertEqual(found["device"]["name"], "vethguardd")
        self.assertIn("Sandbox one: the state file one.json is damaged", found["finding_info"]["desc"])
        self.assertFalse(self.asks(seconds=2))
        self.assertEqual(len(self.state_files()["netns"]), 2)

    def test_the_root(self):
        self.daemon.kill()
        path = os.path.join(self.daemon.data, "ca", "root.key")
        with open(path, "rb") as f:
            whole = f.read()
        for broken in (whole[:-1], whole + b"x", b"vgroot1\n" + bytes(400), whole[:40] + bytes([whole[40] ^ 1]) + whole[41:]):
            with open(path, "wb") as f:
                f.write(broken)
            r = subprocess.run(self.daemon.argv(), capture_output=True, text=True, timeout=20 * SLOW)
            self.assertEqual(r.returncode, 125, r)
            self.assertIn("root CA", r.stderr)
            with open(path, "rb") as f:
                self.assertEqual(f.read(), broken)
        with open(path, "wb") as f:
            f.write(whole)
        os.chmod(path, 0o644)
        r = subprocess.run(self.daemon.argv(), capture_output=True, text=True, timeout=20 * SLOW)
        self.assertEqual(r.returncode, 125, r)
        os.chmod(path, 0o600)
        self.daemon.start()
        self.assert_served()
