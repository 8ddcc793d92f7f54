# SPDX-License-Identifier: Apache-2.0
"""vethguard-cni, and the daemon, killed at each step of ADD and DEL."""
import json
import os
import socket
import subprocess
import threading
import time

import cni_case
import cni_engines
import support
import test_exfiltration
from cni_engines import PLUGIN, Chain, ask, environment
from support import SLOW, wait_until


class Between(threading.Thread):
    """Stands between the plugin and the daemon, and does something at one step of one call: before the request is passed
    on, before the answer is, and after it."""
    STEPS = ("asked", "answered", "told")

    def __init__(self, path, daemon_path):
        super().__init__(daemon=True)
        self.path, self.daemon_path = path, daemon_path
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(path)
        self.listener.listen(16)
        self.at, self.what, self.calls, self.done = None, None, 0, threading.Event()
        self.start()

    def arm(self, call, step, what):
        self.done.clear()
        self.at, self.what, self.calls = (call, step), what, 0

    def step(self, step):
        if self.at == (self.calls, step):
            self.what()
            self.done.set()

    def run(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            try:
                self.serve(client)
            except OSError:
                pass
            client.close()

    def serve(self, client):
        def hear():
            piece = client.recv(65536)
            if not piece:
                raise ConnectionResetError("the plugin was killed before it asked")
            return piece
        request = b""
        while b"\r\n\r\n" not in request:
            request += hear()
        head, _, body = request.partition(b"\r\n\r\n")
        size = next(int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length"))
        while len(body) < size:
            body += hear()
        self.calls += 1
        self.step("asked")
        answer = b""
        with socket.socket(socket.AF_UNIX) as daemon:
            daemon.connect(self.daemon_path)
            daemon.sendall(head + b"\r\n\r\n" + body)
            while True:
                piece = daemon.recv(65536)
                if not piece:
                    break
                answer += piece
        self.step("answered")
        client.sendall(answer)
        self.step("told")


class Killed(cni_case.Plugin):
    """The plugin, and the daemon, killed at each step of ADD and DEL: nothing passes meanwhile, and DEL leaves nothing."""

    def setUp(self):
        super().setUp()
        folder = support.LAB.path(f"between-{time.monotonic_ns()}")
        os.makedirs(folder)
        self.between = Between(folder + "/control.sock", self.daemon.socket)
        self.addCleanup(self.between.listener.close)

    def start(self, command, chain, container, netns):
        """The plugin, with the result of the plugin before it."""
        plugin = chain.plugins[-1]
        p = subprocess.Popen([PLUGIN], env=environment(command, container, netns, "eth0"), stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.process = p
        out, _ = p.communicate(json.dumps(chain.config(plugin, chain.results.get(container))).encode(), timeout=60 * SLOW)
        return p.returncode, out

    def each_step(self, what, calls, command):
        for behind in (False, True):
            for call in range(1, calls + 1):
                for step in Between.STEPS:
                    with self.subTest(behind=behind, call=call, step=step), test_exfiltration.Watch() as watch:
                        self.one(what, command, behind, call, step)
                    self.silent(watch)

    def one(self, what, command, behind, call, step):
        netns, container = self.netns()
        before = [cni_engines.ptp("10.93.0.0/24")] if behind else []
        links = self.links()
        chain = Chain("agents", [*before, self.guard(socket=self.between.path)], "1.0.0")
        if command == "ADD":
            for plugin in before:
                chain.results[container] = ask(chain.program(plugin), environment("ADD", container, netns, "eth0"), chain.config(plugin))
        else:
            chain.add(container, netns)
        self.between.arm(call, step, what)
        status, out = self.start(command, chain, container, netns)
        self.assertTrue(self.between.done.wait(10 * SLOW), "the step was not reached")
        self.between.arm(None, None, None)
        if status == 0 and command == "ADD":
            self.assertIn("interfaces", json.loads(out))
        if self.daemon.process.poll() is not None:
            self.daemon.start()
        chain.delete(container, netns)
        self.assertTrue(wait_until(lambda: self.names() == [], 10 * SLOW), self.names())
        self.assertEqual(self.links(netns), ["lo"])
        self.assertEqual(self.links(), links)

    def test_plugin_adds(self):
        self.each_step(self.kill_plugin, 1, "ADD")

    def test_plugin_deletes(self):
        self.each_step(self.kill_plugin, 2, "DEL")

    def kill_plugin(self):
        self.process.kill()

    def test_daemon_adds(self):
        self.each_step(self.daemon.kill, 1, "ADD")

    def test_daemon_deletes(self):
        self.each_step(self.daemon.kill, 2, "DEL")
