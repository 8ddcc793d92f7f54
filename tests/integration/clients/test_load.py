# SPDX-License-Identifier: Apache-2.0
"""HTTP/2 and gRPC at full concurrency: every request answered, none with an error, the worker's memory bounded."""
import re
import shutil
import unittest

import lab
import nodes
import outside
import support
from nodes import NodeClient
from outside import Client

PORT = 9446
CONNECTIONS, STREAMS = 40, 100  # all that limits.streams lets in by default


@unittest.skipUnless(shutil.which("h2load") and shutil.which("nghttpd"), "needs nghttp2-client and nghttp2-server")
class H2load(Client):
    RULES = (f"https://www.real.lab.test:{PORT}", f"{{to: 'https://api.real.lab.test:{PORT}', credential: api}}")
    CREDENTIALS = {"api": "inject: bearer"}
    PROXY = False  # h2load knows none

    @classmethod
    def prepare(cls):
        support.LAB.write("kilobyte", "k" * 1024)
        outside.spawn(["nghttpd", "-n1", "-d", support.LAB.dir, "-a", lab.REAL4, str(PORT), support.LAB.path("server.key"),
                       support.LAB.path("server.pem")])
        outside.wait_for_port(PORT)

    def load(self, box, host, requests):
        done = box.run("h2load", "-n", str(requests), "-c", str(CONNECTIONS), "-m", str(STREAMS),
                       f"https://{host}.real.lab.test:{PORT}/kilobyte", timeout=100)
        line = re.search(r"requests: .*", done.out).group(0)
        self.assertIn(f"{requests} succeeded, 0 failed, 0 errored, 0 timeout", line, repr(done))
        self.assertIn(f"status codes: {requests} 2xx", done.out)

    def test_all_at_once(self):
        box = self.box
        for host in ("www", "api"):
            self.load(box, host, 40000 // support.PACE)
        if not support.ASAN:
            self.assertLess(support.memory_peak_kib(box.pids()["worker"]), 160 * 1024)

    def test_all_are_recorded(self):
        box = self.box
        before = len(box.events(support.HTTP))
        self.load(box, "www", 5000)
        support.wait_until(lambda: len(box.events(support.HTTP)) >= before + 5000, 20 * support.SLOW)
        self.assertEqual(len(box.events(support.HTTP)), before + 5000)


@nodes.needs_packages
@nodes.needs_h2_upstream
class Grpc(NodeClient):
    SCRIPT = "rpc.mjs"
    HOST = "rpc.node.lab.test:50051"
    RULES = (f"{{to: 'https://{HOST}', methods: [POST], credential: rpc}}",)
    CREDENTIALS = {"rpc": "inject: bearer, env: RPC_KEY"}

    def test_all_at_once(self):
        def check(box, word):
            calls = 400 // support.PACE
            answer = self.node(box, "load", self.HOST, 5, calls, timeout=120)
            self.assertEqual(answer, {"done": 5 * calls, "wrong": []})
        self.each(check)
