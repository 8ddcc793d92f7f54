# SPDX-License-Identifier: Apache-2.0
"""What the tests of vethguard-connect share: a sandbox whose only way out is a gateway, and vethguard-connect in it."""
import json
import os
import subprocess

import support
from gateway_case import GATEWAY4, TLS_PORT, Gatewayed
from support import PACE, SLOW, wait_until

PROGRAM = os.path.join(support.lab.BIN, "vethguard-connect")
PORT = 3128


def without_nft(folder, command):
    """The command, which starts in a network namespace by `ip netns exec NAME`, with programs for iptables alone."""
    folder = os.path.join(folder, "programs")
    os.makedirs(folder, exist_ok=True)
    for name in ("iptables", "ip6tables", "iptables-restore", "ip6tables-restore", "sh", "env"):
        if not os.path.lexists(os.path.join(folder, name)):
            os.symlink(support.sh("sh", "-c", f"command -v {name}").strip(), os.path.join(folder, name))
    return (*command[:4], "env", f"PATH={folder}", *command[4:])


class Connected(Gatewayed):
    arguments = ()

    def setUp(self):
        super().setUp()
        self.token_file = os.path.join(self.dir, "token")
        self.write_token(self.token)
        self.bundle = os.path.join(self.dir, "bundle.pem")
        self.log = os.path.join(self.dir, "connect.log")

    def write_token(self, token):
        with open(self.token_file + ".new", "w") as f:
            f.write(token + "\n")
        os.rename(self.token_file + ".new", self.token_file)

    def command(self, *more, url=f"https://gateway.lab.test:{TLS_PORT}"):
        return ("ip", "netns", "exec", self.elsewhere, PROGRAM, "--gateway", url, "--address", GATEWAY4, "--token-file", self.token_file,
                "--gateway-ca", self.certificate + ".pem", "--ca", self.ca, "--bundle", self.bundle, *more)

    def begin(self, *more, **kw):
        with open(self.log, "w") as log:
            self.connect_process = subprocess.Popen(self.command(*more, **kw), stderr=log)
        self.addCleanup(self.stop)
        self.assertTrue(wait_until(lambda: "serves programs" in self.said(), 10 * SLOW), self.said())

    def stop(self):
        if self.connect_process.poll() is None:
            self.connect_process.terminate()
        return self.connect_process.wait(10 * SLOW)

    def resolv(self):
        """A resolv.conf whose server is nowhere."""
        conf = os.path.join(self.dir, "resolv.conf")
        with open(conf, "w") as f:
            f.write("nameserver 192.0.2.53\noptions timeout:2 attempts:1\n")
        return conf

    def resolving(self, *argv):
        """In a mount namespace whose resolv.conf names a server that is nowhere: the kernel brings its queries here."""
        return self.there("unshare", "-m", "sh", "-c", 'mount --bind "$0" /etc/resolv.conf && exec "$@"', self.resolv(), *argv)

    def said(self):
        with open(self.log) as f:
            return f.read()

    def runs(self, *command, more=(), **kw):
        """Runs vethguard-connect with a command."""
        return subprocess.run((*self.command(*more, **kw), "--", *command), capture_output=True, text=True, timeout=60 * SLOW)

    def fetch(self, *argv, proxy=f"http://127.0.0.1:{PORT}", seconds=10):
        way = ("--proxy", proxy) if proxy else ()
        return self.there("curl", "-sS", "-m", str(seconds * PACE), "--cacert", self.bundle, *way, *argv)

    def assert_authenticated(self, r):
        self.assertEqual(r.returncode, 0, (r, self.said()))
        self.assertIs(json.loads(r.stdout)["authenticated"], True, r)
