# SPDX-License-Identifier: Apache-2.0
"""Origins that are far away: what a window holds back costs round trips. Bulk takes about as long as without vethguard."""
import os
import socket
import sys
import threading
import time
import unittest

import lab
import support
from support import SLOW, policy

ORIGIN_PORT, FAR_PORT = 9480, 9481
DELAY_MS = 30  # each way
BYTES = 48 << 20
FAR, OTHER = f"https://www.lab.test:{FAR_PORT}", f"https://api.lab.test:{FAR_PORT}"
NEAR = f"https://www.lab.test:{ORIGIN_PORT}"
STOPPED = """
import socket, ssl, time
context = ssl.create_default_context()
context.set_alpn_protocols(["http/1.1"])
opened = []
for name in ("www", "api") * 3:
    s = context.wrap_socket(socket.create_connection((f"{name}.lab.test", %d)), server_hostname=f"{name}.lab.test")
    s.sendall(f"GET /bytes/%d HTTP/1.1\\r\\nHost: {name}.lab.test:%d\\r\\n\\r\\n".encode())
    opened.append(s)
left = dict.fromkeys(opened, %d)
while any(left.values()):
    for s in opened:
        if left[s]:
            n = len(s.recv(min(left[s], 1 << 20)))
            assert n, "closed"
            left[s] -= n
print("stopped", flush=True)
time.sleep(3)
"""


class Far(support.Boxed):
    @classmethod
    def make_box(cls):
        lab_ = support.LAB
        lab_.spawn_outside(["node", os.path.join(support.HERE, "h2origin.mjs"), lab_.dir, lab.ORIGIN4, str(ORIGIN_PORT), "wide"])
        lab_.wait_for_file(f"h2origin.{ORIGIN_PORT}.ready")
        lab_.spawn_outside([sys.executable, os.path.join(support.HERE, "long_way.py"), str(DELAY_MS), lab.ORIGIN4, str(FAR_PORT),
                            lab.ORIGIN4, str(ORIGIN_PORT)])
        if not support.wait_until(cls.is_there, 10 * SLOW):
            raise AssertionError("the relay does not listen")
        return support.Sandbox(policy(f"{{to: '{FAR}', methods: [GET, PUT]}}", f"{{to: '{NEAR}', methods: [GET, PUT]}}", OTHER))

    @staticmethod
    def is_there():
        try:
            socket.create_connection((lab.ORIGIN4, FAR_PORT), timeout=5).close()
        except ConnectionRefusedError:
            return False
        return True

    def direct(self, *argv):
        out = support.sh("curl", "-sS4", "--cacert", support.LAB.path("ca.pem"), "--resolve", f"www.lab.test:{FAR_PORT}:{lab.ORIGIN4}",
                         "-o", "/dev/null", "-w", "%{size_download} %{size_upload} %{http_version} %{time_total}", *argv)
        return out.split()

    def inside(self, *argv):
        done = self.box.run("curl", "-sS4", "-o", "/dev/null", "-w", "%{size_download} %{size_upload} %{http_version} %{time_total}", *argv)
        self.assertEqual(done.status, 0, f"{done!r}\n{self.box.events()[-4:]}")  # what was recorded tells who ended it
        return done.out.split()

    def compare(self, *argv, version, at_least):
        """About as long as without vethguard, or as without the way. The best of up to three turns: a window that is too
        small is slow in each."""
        turns = []
        for _ in range(3):
            near = [word.replace(FAR, NEAR) for word in argv]
            direct, inside, near = self.direct(*argv), self.inside(version, *argv), self.inside(version, *near)
            turns.append((direct, inside, near))
            self.assertGreaterEqual(max(int(inside[0]), int(inside[1])), at_least, turns)
            if float(inside[3]) < 1.5 * max(float(direct[3]), float(near[3])) + 0.5:
                return
        self.fail(f"slower than direct and than near, (direct, inside, near): {turns}")

    def test_download(self):
        for version in ("--http2", "--http1.1"):
            with self.subTest(client=version):
                self.compare(f"{FAR}/bytes/{BYTES}", version=version, at_least=BYTES)

    def test_upload(self):
        body = support.LAB.path("long-way-body")
        with open(body, "wb") as f:
            f.truncate(BYTES)
        for version in ("--http2", "--http1.1"):
            with self.subTest(client=version):
                self.compare("-T", body, f"{FAR}/count", version=version, at_least=BYTES)

    @unittest.skipIf(support.ASAN, "an instrumented program needs memory of its own")
    def test_memory_is_bounded(self):
        """Six downloads earn windows as wide as they become, then their clients take nothing more."""
        def resident():
            with open(f"/proc/{self.box.pids()['worker']}/status") as f:
                return next(int(line.split()[1]) for line in f if line.startswith("VmRSS")) * 1024

        before, most = resident(), 0
        told = []
        clients = threading.Thread(target=lambda: told.append(self.py(STOPPED % (FAR_PORT, 1 << 30, FAR_PORT, 40 << 20))))
        clients.start()
        while clients.is_alive():
            most = max(most, resident())
            time.sleep(0.05)
        clients.join()
        self.assertEqual(told, ["stopped\n"])
        self.assertGreater(most - before, 8 << 20, "no window was wide")
        # What src/proxy/upstream/http2.h bounds: 32 MiB beyond 1 MiB for each stream. Buffers have the windows' sizes and pages of
        # their own (bound_heap() in src/worker/main.c), so nothing is added for what they were before they grew. 8 MiB are the rest
        # of the worker: code that is read for the first time, TLS, what is under way to the clients.
        self.assertLess(most - before, (32 + 6 * 1 + 8) << 20)


if __name__ == "__main__":
    unittest.main()
