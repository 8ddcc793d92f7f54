# SPDX-License-Identifier: Apache-2.0
"""A namespace's sandbox that ends with a process, and is handed over from one process to another."""
import os
import subprocess
import time
import unittest

import support
from daemon import Daemon
from support import SLOW, wait_until
from test_daemon import READS, file_credential, policy


def start_time(pid):
    with open(f"/proc/{pid}/stat") as f:
        return int(f.read().rpartition(")")[2].split()[19])


class Follow(unittest.TestCase):
    def setUp(self):
        self.name = support.netns(self, f"follow{time.monotonic_ns()}")
        self.policy = support.LAB.write(f"follow-{time.monotonic_ns()}.yaml", policy(READS, credentials=file_credential()))
        self.daemon = Daemon()
        self.addCleanup(self.daemon.stop)

    def process(self):
        p = subprocess.Popen(["sleep", "1000"])
        self.addCleanup(p.wait)
        self.addCleanup(p.kill)
        return p

    def attach(self, p, **more):
        return self.daemon.attach(name="one", netns=f"/run/netns/{self.name}", policy=self.policy, pid=p.pid, **more)

    def follow(self, pid, name="one", **more):
        return self.daemon.call("POST", f"/v1/sandboxes/{name}/follow", {"pid": pid, **more})

    def there(self):
        return self.daemon.call("GET", "/v1/sandboxes/one")[0] == 200

    def ends(self):
        return wait_until(lambda: not self.there(), 10 * SLOW)

    def end(self, p):
        p.kill()
        p.wait()

    def test_ends_with_the_process(self):
        p = self.process()
        box = self.attach(p, start_time=start_time(p.pid))
        self.assertEqual((box["attachment"]["kind"], box["attachment"]["pid"], box["state"]), ("netns", p.pid, "serving"))
        self.end(p)
        self.assertTrue(self.ends())
        links = support.sh("ip", "-n", self.name, "-o", "link")
        self.assertNotIn("eth0", links)

    def test_handed_over(self):
        first, second = self.process(), self.process()
        self.attach(first)
        status, _, box = self.follow(second.pid, start_time=start_time(second.pid))
        self.assertEqual((status, box["attachment"]["pid"]), (200, second.pid))
        self.end(first)
        for _ in range(3):  # each answer is a turn of the loop, which would have seen that end
            self.assertTrue(self.there())
        self.end(second)
        self.assertTrue(self.ends())

    def test_handed_over_outlives_the_daemon(self):
        first, second = self.process(), self.process()
        self.attach(first)
        self.assertEqual(self.follow(second.pid)[0], 200)
        self.end(first)
        self.daemon.kill()
        self.daemon.start()
        self.assertTrue(self.there())
        self.end(second)
        self.assertTrue(self.ends())

    def test_ended_while_no_daemon_ran(self):
        p = self.process()
        self.attach(p)
        self.daemon.kill()
        self.end(p)
        self.daemon.start()
        self.assertTrue(self.ends())

    def test_refused(self):
        p, other = self.process(), self.process()
        self.end(other)
        status, _, answer = self.daemon.call("POST", "/v1/sandboxes", {"netns": f"/run/netns/{self.name}", "policy": self.policy, "pid": other.pid})
        self.assertEqual((status, answer["detail"]), (422, f"there is no such process {other.pid}"))
        status, _, answer = self.daemon.call("POST", "/v1/sandboxes", {"netns": f"/run/netns/{self.name}", "policy": self.policy, "pid": p.pid,
                                                                       "start_time": start_time(p.pid) + 1})
        self.assertEqual(status, 422, answer)
        self.attach(p)
        for pid, more, words in ((other.pid, {}, "no such process"), (p.pid, {"start_time": 1}, "no such process"), (0, {}, "out of range"),
                                 (1 << 31, {}, "out of range")):
            status, _, answer = self.follow(pid, **more)
            self.assertEqual(status, 422, answer)
            self.assertIn(words, answer["detail"])
        self.assertEqual(self.follow(p.pid, name="two")[0], 404)
        # Nothing of that has changed with what it ends.
        self.assertTrue(self.there())
        self.end(p)
        self.assertTrue(self.ends())

    def test_other_kinds_follow_nobody(self):
        p, inside = self.process(), subprocess.Popen(["ip", "netns", "exec", self.name, "sleep", "1000"])
        self.addCleanup(inside.wait)
        self.addCleanup(inside.kill)
        self.assertTrue(wait_until(lambda: os.readlink(f"/proc/{inside.pid}/ns/net") != os.readlink("/proc/self/ns/net"), 5 * SLOW))
        self.daemon.attach(name="one", pid=inside.pid, policy=self.policy)
        status, _, answer = self.follow(p.pid)
        self.assertEqual(status, 422, answer)
        self.assertIn("was not attached by its namespace", answer["detail"])


if __name__ == "__main__":
    unittest.main()
