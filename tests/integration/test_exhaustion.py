# SPDX-License-Identifier: Apache-2.0
"""The daemon without something that it needs: descriptors, room for its state, a role that does not answer.
What depends on it ends closed with a clear message, a neighbor is served, and it comes back by itself."""
import json
import os
import resource
import signal
import subprocess
import threading
import time

import daemon_case
import support
from support import SLOW, sh, wait_until


FILES_EACH, FILES_KEPT = 10, 192  # src/supervisor/os/fd_limit.h
RELOADS_MAX = 50  # several times the rings in store


class Neighbours(daemon_case.Attached):
    def setUp(self):
        super().setUp()
        self.other = support.netns(self, self.name + "n")
        self.attach("two", self.other)
        self.assert_both()

    def tearDown(self):
        self.assertIsNone(self.daemon.process.poll(), self.daemon.stderr())
        self.assert_both()
        super().tearDown()

    def assert_both(self, seconds=20 * SLOW):
        for name in (self.name, self.other):
            self.assertTrue(wait_until(lambda n=name: self.asks(netns=n, seconds=3), seconds), f"{name} {self.daemon.stderr()[-3000:]}")

    def stopped(self, pid):
        os.kill(pid, signal.SIGSTOP)
        self.addCleanup(lambda: os.path.exists(f"/proc/{pid}") and os.kill(pid, signal.SIGCONT))

    def another(self, name):
        """The answer to attaching a third one."""
        netns = support.netns(self, self.name + name)
        status, _, answer = self.daemon.call("POST", "/v1/sandboxes",
                                             {"name": name, "netns": f"/run/netns/{netns}", "policy": self.policy})
        return status, answer


class Hangs(Neighbours):
    def test_a_worker(self):
        pid = self.pid("worker")
        self.stopped(pid)
        self.assertFalse(self.asks(seconds=1))
        self.assertTrue(self.asks(netns=self.other))
        self.assertEqual(self.daemon.call("GET", "/v1/status")[0], 200)
        os.kill(pid, signal.SIGCONT)

    def test_the_keeper(self):
        """What the keeper has given goes on; nothing new begins without it, and waiting callers get an answer in bounded time."""
        keeper = self.pid("keeper")
        self.stopped(keeper)
        self.assertTrue(self.asks())
        self.assertTrue(self.asks(netns=self.other))
        began = time.monotonic()
        status, answer = self.another("third")
        if os.path.exists(f"/proc/{keeper}"):  # else it was given up and there is another one
            os.kill(keeper, signal.SIGCONT)
        self.assertEqual(status // 100, 5, answer)
        self.assertRegex(json.dumps(answer), "keeper")
        self.assertLess(time.monotonic() - began, 30 * SLOW)
        self.assertTrue(wait_until(lambda: self.another(f"f{time.monotonic_ns() % 10000}")[0] == 201, 20 * SLOW))

    def test_the_recorder(self):
        """Events that it did not write are not lost."""
        pid = self.pid("recorder")
        self.stopped(pid)
        path = f"/frozen-{time.monotonic_ns()}"
        self.curl("https://api.lab.test" + path, seconds=2)
        os.kill(pid, signal.SIGCONT)
        self.assertTrue(self.daemon.event(**{"http_request.url.path": path}, seconds=10))


class Scarce(Neighbours):
    def limited(self, pid, what, value):
        before = resource.prlimit(pid, what)
        resource.prlimit(pid, what, (value, before[1]))

        def restore():
            try:
                resource.prlimit(pid, what, before)
            except ProcessLookupError:
                pass
        self.addCleanup(restore)
        return restore

    def kept(self):
        """The remains of sandboxes; events of calls do not count."""
        return {what: sorted(files) for what, files in self.state_files().items() if what != "told"}

    def descriptors(self):
        return len(os.listdir(f"/proc/{self.daemon.process.pid}/fd"))

    def assert_refused_for_descriptors(self, name):
        """In plain words, and nothing of it is made."""
        before = self.kept()
        status, answer = self.another(name)
        self.assertEqual((status, answer["title"]), (503, "Service Unavailable"), answer)
        self.assertRegex(answer["detail"], "too few descriptors left for another sandbox: it may have [0-9]+ open files.*LimitNOFILE=")
        self.assertEqual(self.daemon.call("GET", f"/v1/sandboxes/{name}")[0], 404)
        self.assertEqual(self.kept(), before)
        self.assertNotIn("eth0", sh("ip", "-n", self.name + name, "link"))

        def given_back():  # the stores are filled meanwhile, once
            count = self.descriptors()
            return self.daemon.call("POST", "/v1/sandboxes", {"name": name, "netns": f"/run/netns/{self.name}{name}",
                                                              "policy": self.policy})[0] == 503 and self.descriptors() <= count
        self.assertTrue(wait_until(given_back, 10 * SLOW), "what was tried is given back")

    def test_descriptors_for_one_more(self):
        """The limit is met by a sandbox that is not there yet: those that are keep enough for their next workers."""
        restore = self.limited(self.daemon.process.pid, resource.RLIMIT_NOFILE,
                               max(map(int, os.listdir(f"/proc/{self.daemon.process.pid}/fd"))) + FILES_KEPT + 5 * FILES_EACH)
        served = []
        for i in range(40):  # free ones below the highest come first
            status, answer = self.another(f"more{i}")
            if status != 201:
                break
            served.append(f"more{i}")
        self.assertEqual(status, 503, answer)
        self.assertTrue(served, answer)
        self.assert_refused_for_descriptors("beyond")
        os.kill(self.pid("worker"), signal.SIGKILL)
        for name in served:
            self.assertTrue(wait_until(lambda n=name: self.asks(netns=self.name + n, seconds=3), 20 * SLOW), self.daemon.stderr()[-3000:])
        self.assert_both()
        status, _, answer = self.daemon.call("POST", "/v1/reload", {})
        self.assertEqual(status, 200, answer)
        for name in served:
            self.assertEqual(self.daemon.call("DELETE", f"/v1/sandboxes/{name}")[0], 200)
        numbers = iter(range(1000))
        self.assertTrue(wait_until(lambda: self.another(f"instead{next(numbers)}")[0] == 201, 20 * SLOW, 0.5))
        restore()

    def test_descriptors_of_the_daemon(self):
        """None for another sandbox, nor for another worker: those that serve go on."""
        restore = self.limited(self.daemon.process.pid, resource.RLIMIT_NOFILE,
                               max(map(int, os.listdir(f"/proc/{self.daemon.process.pid}/fd"))) + 3)
        self.assert_refused_for_descriptors("third")
        self.assert_both()
        os.kill(self.pid("keeper"), signal.SIGKILL)
        os.kill(self.pid("recorder"), signal.SIGKILL)
        wait_until(lambda: not self.asks(seconds=1), 3)
        self.assertIsNone(self.daemon.process.poll(), self.daemon.stderr())
        restore()
        self.assert_both()
        numbers = iter(range(1000))  # keeper and recorder are started again after a pause
        self.assertTrue(wait_until(lambda: self.another(f"later-{next(numbers)}")[0] == 201, 30 * SLOW, 0.5), self.daemon.stderr()[-3000:])


class Full(Neighbours):
    """The file system of state and log is full."""

    def small(self):
        folder = support.LAB.path(f"small-{time.monotonic_ns()}")
        os.makedirs(folder)
        sh("mount", "-t", "tmpfs", "-o", "size=16m", "none", folder)
        self.addCleanup(subprocess.run, ["umount", "-l", folder], check=False)
        return folder

    def setUp(self):
        made = daemon_case.Daemon
        folder = self.small()

        class Small(made):
            def argv(self):
                self.state = os.path.join(folder, "state")
                self.socket = os.path.join(self.state, "control.sock")
                return super().argv()
        daemon_case.Daemon = Small
        self.folder = folder
        try:
            super().setUp()
        finally:
            daemon_case.Daemon = made

    def fill(self, path):
        """Takes all room, and what becomes free of it, until what is returned is called."""
        over, file = threading.Event(), open(path, "wb", buffering=0)  # closed by who writes

        def write():
            with file:
                while not over.is_set():
                    try:
                        file.write(bytes(4096))
                    except OSError:
                        time.sleep(0.0005)

        def end():
            over.set()
            thread.join()
            if os.path.exists(path):
                os.unlink(path)
        thread = threading.Thread(target=write)
        thread.start()
        self.addCleanup(end)
        self.assertTrue(wait_until(lambda: os.statvfs(path).f_bavail == 0, 10 * SLOW))
        return end

    def kill_until_without_a_ring(self):
        """A former worker's ring may have become one in store."""
        def is_without():
            return "no worker can be started" in self.daemon.stderr()
        for _ in range(RELOADS_MAX):
            os.kill(self.pid("worker"), signal.SIGKILL)
            self.assertTrue(wait_until(lambda: is_without() or self.asks(seconds=1), 10 * SLOW), self.daemon.stderr())
            if is_without():
                return
        self.fail(self.daemon.stderr()[-3000:])

    def test_state(self):
        make_room = self.fill(os.path.join(self.folder, "full"))
        status, answer = self.another("third")
        self.assertEqual(status // 100, 5, answer)
        self.assertRegex(json.dumps(answer), "No space|state")
        self.assertTrue(wait_until(lambda: [len(v) for v in list(self.state_files().values())[:3]] == [2, 2, 2], 10 * SLOW),
                        self.state_files())
        self.assertNotIn("eth0", sh("ip", "-n", self.name + "third", "link"))
        self.assert_both()
        status, reloads = 200, 0
        while status == 200 and reloads < RELOADS_MAX:  # rings in store have their room
            status, _, answer = self.daemon.call("POST", "/v1/sandboxes/one/reload", {})
            reloads += 1
        self.assertEqual(status // 100, 5, answer)  # the worker that serves goes on
        self.assert_both()
        self.kill_until_without_a_ring()
        self.assertFalse(self.asks(seconds=1))
        self.assertTrue(self.asks(netns=self.other))
        make_room()
        self.assertTrue(wait_until(lambda: self.asks(seconds=1), 20 * SLOW), self.show())
        self.assertEqual(self.another("fourth")[0], 201)
