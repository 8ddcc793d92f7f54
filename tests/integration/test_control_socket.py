# SPDX-License-Identifier: Apache-2.0
"""The socket of the control API: from the service manager, handed on by an upgrade, passed on, left behind."""
import os
import signal
import socket
import subprocess

import support
from control_case import GROUP, NOBODY
from daemon import Daemon
from support import SLOW, VETHGUARD, Case, sh, wait_until


class Activated(Case):
    """This process is the service manager: it has the socket, and passes it on (sd_listen_fds(3))."""

    def setUp(self):
        super().setUp()
        self.daemon = Daemon(start=False)
        self.addCleanup(self.daemon.end)
        os.makedirs(self.daemon.state, 0o755)
        self.listener = self.listen(self.daemon.socket)

    def listen(self, path, mode=0o660, kind=socket.SOCK_STREAM):
        listener = socket.socket(socket.AF_UNIX, kind)
        self.addCleanup(listener.close)
        listener.bind(path)
        os.chmod(path, mode)
        if kind != socket.SOCK_DGRAM:
            listener.listen()
        return listener

    def passing(self, *listeners, pid="$$", count=None):
        """The arguments of Popen that start the daemon with these sockets."""
        fds = [s.fileno() for s in listeners]
        # In two steps: where one is to be may be another one of them.
        moves = "".join(f" {20 + i}<&{fd}" for i, fd in enumerate(fds)) + "".join(f" {3 + i}<&{20 + i}" for i in range(len(fds)))
        script = (f"exec{moves}; LISTEN_PID={pid} LISTEN_FDS={len(fds) if count is None else count} "
                  f"LISTEN_FDNAMES={':'.join(['vethguardd.socket'] * len(fds))} exec \"$@\"")
        return {"args": ["bash", "-c", script, "bash", *self.daemon.argv()], "pass_fds": fds}

    def start(self):
        how = self.passing(self.listener)
        return self.daemon.start(how["args"], pass_fds=how["pass_fds"])

    def later(self, *argv):
        """A call that is under way now, and waits."""
        p = subprocess.Popen([VETHGUARD, *argv, "--socket", self.daemon.socket], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.addCleanup(p.stdout.close)
        self.assertTrue(wait_until(lambda: self.waiting() or p.poll() is not None, 10 * SLOW))
        self.assertIsNone(p.poll(), "it waits")
        return p

    def waiting(self):
        """How many have connected whom nobody has accepted: the queue of the listener, as the kernel tells it."""
        rows = sh("ss", "-xlH", "src", self.daemon.socket).split("\n")
        return sum(int(row.split()[2]) for row in rows if row)

    def test_served_by_the_managers_socket(self):
        d = self.start()
        inode = f"socket:[{os.fstat(self.listener.fileno()).st_ino}]"
        roles = support.descendants(d.process.pid)
        self.assertGreaterEqual(len(roles), 2, roles)
        for pid in roles:
            with open(f"/proc/{pid}/environ") as f:
                self.assertNotIn("LISTEN_", f.read(), "what is said to the daemon is said to nobody else")
            self.assertNotIn(inode, support.open_files(pid), "its roles do not have the socket")
        self.assertEqual(d.stop(), 0, d.stderr())
        self.assertTrue(os.path.exists(d.socket), "the manager's socket is the manager's")

    def test_calls_wait_for_a_daemon(self):
        """Before the first one, after one was killed, and after one has ended."""
        first = self.later("list")
        d = self.start()
        self.assertEqual(first.wait(30 * SLOW), 0, first.stdout.read())
        d.kill()
        calls = [self.later("list"), self.later("detach", "nobody")]
        self.start()
        self.assertEqual([p.wait(30 * SLOW) for p in calls], [0, 1])
        self.assertIn("nobody", calls[1].stdout.read())
        self.assertEqual(d.stop(), 0, d.stderr())
        last = self.later("list")
        self.start()
        self.assertEqual(last.wait(30 * SLOW), 0, last.stdout.read())
        self.assertEqual(d.stop(), 0, d.stderr())

    def test_calls_wait_while_one_ends(self):
        """From SIGTERM on nobody is accepted who would be cut off."""
        self.daemon.options.append("-v")
        d = self.start()
        recorder = next(pid for pid, row in support.descendants(d.process.pid).items() if row[0].startswith("vethguard-recor"))
        os.kill(recorder, signal.SIGSTOP)  # the daemon does not end before everything is written
        d.process.send_signal(signal.SIGTERM)
        self.assertTrue(wait_until(lambda: "stopping" in d.stderr(), 10 * SLOW), d.stderr())
        call = self.later("list")
        self.assertIsNone(d.process.poll(), "it is not over yet")
        os.kill(recorder, signal.SIGCONT)
        self.assertEqual(d.process.wait(30 * SLOW), 0, d.stderr())
        self.start()
        self.assertEqual(call.wait(30 * SLOW), 0, call.stdout.read())
        self.assertEqual(d.stop(), 0, d.stderr())

    def test_handed_on_by_an_upgrade(self):
        d = self.start()
        status, _, answer = d.call("POST", "/v1/upgrade", timeout=60)
        self.assertEqual(status, 200, (answer, d.stderr()))
        d.process.wait(30 * SLOW)  # nothing was under way
        pid = d.call("GET", "/v1/status")[2]["processes"]["supervisor"]
        self.assertEqual(pid, answer["pid"])
        os.kill(pid, signal.SIGTERM)
        self.assertTrue(wait_until(lambda: not os.path.exists(f"/proc/{pid}/fd/0"), 30 * SLOW), d.stderr())
        self.assertTrue(os.path.exists(d.socket), "it is the manager's still")
        call = self.later("list")
        self.start()
        self.assertEqual(call.wait(30 * SLOW), 0, call.stdout.read())
        self.assertEqual(d.stop(), 0, d.stderr())

    def test_refused(self):
        """With anything but the control socket alone, the daemon does not start."""
        elsewhere = os.path.join(self.daemon.dir, "x.sock")
        other = self.listen(elsewhere)
        for text, how in (("more than one descriptor", self.passing(self.listener, other)),
                          ("another path", self.passing(other)),
                          ("not a listening Unix stream socket", self.passing(self.listen(elsewhere + "d", kind=socket.SOCK_DGRAM))),
                          ("not a number", self.passing(self.listener, count="1x")),
                          ("not a number", self.passing(self.listener, pid="me"))):
            with self.subTest(text):
                self.refused(text, how)
        os.chmod(self.daemon.socket, 0o666)
        self.refused("lets everybody connect", self.passing(self.listener))
        os.chmod(self.daemon.socket, 0o660)
        os.chown(self.daemon.socket, -1, GROUP)
        self.refused("lets another group connect", self.passing(self.listener))
        os.chown(self.daemon.socket, NOBODY, 0)
        self.refused("belongs to another user", self.passing(self.listener))
        os.unlink(self.daemon.socket)
        self.refused("its file is gone", self.passing(self.listener))

    def refused(self, text, how):
        r = subprocess.run(how["args"], pass_fds=how["pass_fds"], capture_output=True, text=True, timeout=30 * SLOW)
        self.assertEqual(r.returncode, 125, r)
        self.assertIn(text, r.stderr)
        self.assertIn(self.daemon.socket, r.stderr)

    def test_passed_to_somebody_else(self):
        """The daemon makes a socket of its own, and does not where the manager listens there."""
        how = self.passing(self.listener, pid=1)
        r = subprocess.run(how["args"], pass_fds=how["pass_fds"], capture_output=True, text=True, timeout=30 * SLOW)
        self.assertEqual(r.returncode, 125, r)
        self.assertIn("Address already in use", r.stderr)
        self.listener.close()
        self.daemon.start()
        self.assertEqual(self.daemon.stop(), 0, self.daemon.stderr())
        self.assertFalse(os.path.exists(self.daemon.socket))


class Own(Case):
    def test_a_second_daemon(self):
        d = Daemon()
        self.addCleanup(d.stop)
        second = subprocess.run(d.argv(), capture_output=True, text=True, timeout=30 * SLOW)
        self.assertEqual(second.returncode, 125, second)
        self.assertEqual(d.call("GET", "/v1/status")[0], 200)

    def test_stale_socket(self):
        d = Daemon()
        d.kill()
        self.assertTrue(os.path.exists(d.socket))
        d.start()
        self.assertEqual(d.stop(), 0, d.stderr())
        self.assertFalse(os.path.exists(d.socket))
