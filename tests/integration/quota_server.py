# SPDX-License-Identifier: Apache-2.0
"""Quota servers of the tests' own, in the namespace outside: a real Redis, with TLS beside plain TCP (Server), and one that answers what
a test says (Hostile)."""
import os
import shutil
import signal
import socket
import subprocess
import threading

import lab
import support

PORT, TLS_PORT, HOSTILE_PORT = 6379, 6380, 6381
HOST = "quota.real.lab.test"
PASSWORD = "s3cret+of=the/quota&server"
SINCE = "vethguard:quota:since"


class Server:
    """A Redis that keeps nothing on the disk. settled: hosts need not say what they have taken before it gives anything."""

    def __init__(self, settled=True):
        self.dir = support.LAB.path("quota-server")
        shutil.rmtree(self.dir, ignore_errors=True)
        os.makedirs(self.dir)
        self.process = None
        self.start(settled)

    def start(self, settled):
        with open(self.dir + "/log", "ab") as log:
            self.process = support.LAB.spawn_outside(
                ["redis-server", "--bind", lab.REAL4, "--port", str(PORT), "--tls-port", str(TLS_PORT), "--tls-auth-clients", "no",
                 "--tls-cert-file", support.LAB.path("server.pem"), "--tls-key-file", support.LAB.path("server.key"),
                 "--tls-ca-cert-file", support.LAB.path("ca.pem"), "--dir", self.dir, "--save", "", "--appendonly", "no",
                 "--requirepass", PASSWORD], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        if not support.wait_until(lambda: self.ask("PING") == "PONG", 20 * support.SLOW):
            raise RuntimeError(open(self.dir + "/log").read())
        for database in ("0", "3") if settled else ():
            self.ask("-n", database, "SET", SINCE, "1")

    def ask(self, *argv):
        return subprocess.run(["ip", "netns", "exec", "outside", "redis-cli", "-h", lab.REAL4, "-p", str(PORT), *argv], text=True,
                              env={**os.environ, "REDISCLI_AUTH": PASSWORD}, capture_output=True).stdout.strip()

    def kill(self):
        self.process.kill()
        self.process.wait()

    def close(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.kill()


class Hostile:
    """Answers each command with the bytes of `answer`, whatever it was; None: not at all."""

    def __init__(self):
        self.answer = b"+OK\r\n"
        self.listener = support.in_namespace("outside", lambda: socket.create_server((lab.REAL4, HOSTILE_PORT)))
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def serve(self, connection):
        with connection:
            try:
                while connection.recv(65536):
                    if self.answer is not None:
                        connection.sendall(self.answer)
            except OSError:
                pass

    def close(self):
        self.listener.close()
