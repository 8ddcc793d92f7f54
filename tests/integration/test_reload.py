# SPDX-License-Identifier: Apache-2.0
"""A policy that changes while requests are under way, and the kill switch: what passes is finished by the worker that began it,
what does not ends at once, and the log says why."""
import os
import threading
import time

import support
import test_control
from support import HTTP, SLOW, wait_until


class Live(test_control.Control):
    def under_way(self, *options):
        """A response (self.trickle), in a thread: (sandbox, list that its curl's result will be in, thread)."""
        sandbox, netns = self.attached(name=self.id().rsplit("_", 1)[1])
        results, self.trickle = [], support.Trickle()
        thread = threading.Thread(target=lambda: results.append(self.inside(sandbox["name"], netns, self.trickle.url, "-N", "-f", "-o",
                                                                             self.trickle.out, "-m", str(50 * SLOW), *options)))
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(self.trickle.finish)
        self.assertTrue(self.trickle.begun())
        self.assertEqual(self.daemon.call("GET", f"/v1/sandboxes/{sandbox['name']}/stats")[2]["worker"]["exchanges_open"], 1)
        return sandbox["name"], netns, results, thread

    def reload(self, name, policy):
        status, _, answer = self.call("POST", f"/v1/sandboxes/{name}/reload", {"policy": policy})
        self.assertEqual(status, 200, (answer, self.daemon.stderr()))

    def cut(self, results, thread, name, code):
        thread.join(30 * SLOW)
        self.assertFalse(thread.is_alive(), "it goes on")
        self.assertNotEqual(results[0].returncode, 0, results[0])
        event = self.daemon.event(HTTP, seconds=5, status_code=code)
        self.assertIsNotNone(event, self.daemon.events(HTTP))
        self.assertEqual(event["http_request"]["url"]["path"], "/trickle")

    def test_what_no_longer_passes_ends_http2(self):
        name, netns, results, thread = self.under_way()
        self.reload(name, self.narrow)
        self.cut(results, thread, name, "policy-changed")
        self.assertIn("403", self.inside(name, netns, test_control.WHOAMI, "-i").stdout)

    def test_what_no_longer_passes_ends_http1(self):
        name, _, results, thread = self.under_way("--http1.1")
        self.reload(name, self.narrow)
        self.cut(results, thread, name, "policy-changed")

    def test_what_passes_is_finished(self):
        name, netns, results, thread = self.under_way()
        self.reload(name, self.policy)
        self.assertIn("200", self.inside(name, netns, test_control.WHOAMI, "-i").stdout)  # by the new worker, meanwhile
        self.trickle.finish()
        thread.join(60 * SLOW)
        self.assertEqual(results[0].returncode, 0, results[0])
        self.assertTrue(self.trickle.whole())

    def test_the_kill_switch(self):
        name, netns, results, thread = self.under_way()
        self.assertEqual(self.call("POST", f"/v1/sandboxes/{name}/pause", {"reason": "enough"})[0], 200)
        self.cut(results, thread, name, "closing")
        r = self.inside(name, netns, test_control.WHOAMI, "-i")
        self.assertIn("503", r.stdout)
        self.assertIn("enough", r.stdout)
        self.assertEqual(self.call("POST", f"/v1/sandboxes/{name}/resume", {})[0], 200)
        self.assertIn("200", self.inside(name, netns, test_control.WHOAMI, "-i").stdout)
