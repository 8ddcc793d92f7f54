# SPDX-License-Identifier: Apache-2.0
"""vethguardd as a daemon in the lab: started, asked over its socket and by its commands, stopped, killed."""
import http.client
import json
import os
import signal
import socket
import subprocess
import time

import lab
import support
from support import REPORT, SLOW, VETHGUARD, wait_until

VETHGUARDD = os.path.join(lab.BIN, "vethguardd")


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path, timeout):
        super().__init__("localhost", timeout=timeout)
        self.path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


class Daemon:
    """A daemon with state, data and log of its own. Runs until stop() or kill(); another start() continues with what it has left."""

    def __init__(self, config="", options=(), start=True, program=VETHGUARDD):
        self.program = program
        self.dir = support.LAB.path(f"daemon-{time.monotonic_ns()}")
        os.makedirs(self.dir)
        self.options = list(options)
        self.state, self.data = os.path.join(self.dir, "state"), os.path.join(self.dir, "data")
        self.socket = os.path.join(self.state, "control.sock")
        self.audit = os.path.join(self.dir, "audit.jsonl")
        self.config = os.path.join(self.dir, "config.yaml")
        with open(self.config, "w") as f:
            f.write(support.LAB.config(config))
        self.stderr_path = os.path.join(self.dir, "stderr")
        self.process = None
        support.AUDITS.append(self.audit)
        if start:
            self.start()

    def argv(self):
        return [self.program, "--config", self.config, "--state", self.state, "--data", self.data, "--audit", self.audit,
                *self.options]

    def spawn(self, argv=None, **kw):
        """Whatever becomes of it."""
        with open(self.stderr_path, "ab") as err:
            self.process = subprocess.Popen(argv or self.argv(), stdin=subprocess.DEVNULL, stdout=err, stderr=err, **kw)

    def start(self, argv=None, ready=True, **kw):
        """ready: until all that was there before is taken over; else until it answers."""
        self.spawn(argv, **kw)
        if not wait_until(lambda: self.answers(ready), 10 * SLOW):
            raise AssertionError(f"the daemon does not serve: {self.process.poll()} {self.stderr()}")
        return self

    def answers(self, ready=True):
        if self.process.poll() is not None:
            raise AssertionError(f"the daemon ended with {self.process.returncode}: {self.stderr()}")
        try:
            status, _, answer = self.call("GET", "/v1/status")
            return status == 200 and (answer["ready"] or not ready)
        except OSError:
            return False

    def call(self, method, path, body=None, headers=None, timeout=30):
        """(status, header, JSON) of one request. body: an object for JSON, or bytes as they are."""
        headers = dict(headers or {})
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
            headers.setdefault("Content-Type", "application/json")
        connection = UnixConnection(self.socket, timeout * SLOW)
        try:
            connection.request(method, path, body=body, headers=headers)
            r = connection.getresponse()
            text = r.read()
        finally:
            connection.close()
        return r.status, dict(r.getheaders()), json.loads(text) if text else None

    def attach(self, **members):
        """The sandbox object; the request has to succeed."""
        status, _, answer = self.call("POST", "/v1/sandboxes", members)
        if status != 201:
            raise AssertionError(f"not attached: {status} {answer} {self.stderr()}")
        return answer

    def cli(self, command, *argv, **kw):
        """`vethguard COMMAND ARGUMENTS` for this daemon."""
        return subprocess.run([VETHGUARD, command, *argv, "--socket", self.socket], capture_output=True, text=True,
                              timeout=60 * SLOW, **kw)

    def events(self, class_uid=None):
        try:
            with open(self.audit) as f:
                lines = f.read().split("\n")[:-1]
        except FileNotFoundError:
            return []
        return [e for e in map(json.loads, lines) if class_uid in (None, e["class_uid"])]

    def event(self, class_uid=None, seconds=5, **fields):
        """The first event with these fields, waited for."""
        return wait_until(lambda: next((e for e in self.events(class_uid) if support.matches(e, fields)), None), seconds * SLOW)

    def stderr(self):
        with open(self.stderr_path, errors="replace") as f:
            return f.read()

    def stop(self):
        """Stops it in order. Returns the exit status."""
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(20 * SLOW)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
                raise AssertionError("the daemon does not stop: " + self.stderr()) from None
        support.OUTPUTS.append(self.stderr_path)
        if REPORT.search(self.stderr()):
            raise AssertionError("sanitizer report:\n" + self.stderr()[-6000:])
        return self.process.returncode if self.process else None

    def end(self):
        """After a test, however it went: nothing is left of it."""
        if self.process and self.process.poll() is None:
            self.kill()

    def kill(self):
        support.KILLED.add(self.audit)
        self.process.kill()
        self.process.wait()
