# SPDX-License-Identifier: Apache-2.0
"""vsock as a sandbox's only way: Firecracker's, which arrives at a Unix socket, and the kernel's own, where a machine's CID is the identity.
Connections over the kernel's vsock need its loopback (CID 1), which not every kernel has; attach/test_vsock_machine.py runs this file in
a machine with one that has it."""
import concurrent.futures
import contextlib
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import time
import unittest

import support
import test_upgrade
from support import FINDING, HTTP, PACE, PYTHON, SLOW, wait_until
from test_sockets import NOBODY, Socketed

HERE = os.path.dirname(os.path.abspath(__file__))
STAND_IN = os.path.join(HERE, "firecracker_vsock.py")
JAILER = 61790  # a user that a jailer would take for one machine
LOCAL, OTHER, PORT = 1, 7, 31280
ANY = 0xffffffff


def has_vsock():
    try:
        socket.socket(socket.AF_VSOCK).close()
        return True
    except OSError:
        return False


def listener(port):
    s = socket.socket(socket.AF_VSOCK)
    s.bind((ANY, port))
    s.listen()
    return s


def is_free(port):
    try:
        listener(port).close()
        return True
    except OSError:
        return False


def has_loopback():
    """Whether CID 1 is this machine itself; on other kernels nothing answers there."""
    if not has_vsock():
        return False
    with listener(PORT + 9), socket.socket(socket.AF_VSOCK) as s:
        s.settimeout(3)
        try:
            s.connect((LOCAL, PORT + 9))
            return True
        except OSError:
            return False


class Hybrid(Socketed):
    """Firecracker with its jailer: the machine's vsock device arrives at UDS_PATH_PORT, below the machine's chroot."""

    def setUp(self):
        super().setUp()
        self.root = os.path.join(self.dir, "firecracker", "vm-1", "root")
        os.makedirs(self.root)
        os.chown(self.root, JAILER, JAILER)
        os.chmod(self.root, 0o700)
        self.device = os.path.join(self.dir, "device")
        self.start(self.device, JAILER)
        self.way = os.path.join(self.root, "v.sock_3128")

    def start(self, device, uid):
        p = subprocess.Popen([PYTHON, STAND_IN, "monitor", device, "/v.sock", str(uid), str(uid), self.root], stdout=subprocess.PIPE,
                             text=True)
        self.addCleanup(p.stdout.close)
        self.addCleanup(p.wait)
        self.addCleanup(p.kill)
        self.assertEqual(p.stdout.readline(), "ready\n")
        return p

    def guest(self, *argv, port=3128, device=None):
        """A program of the machine: no card, and the device is all that it sees of the host."""
        return self.bwrap("--bind", os.path.dirname(device or self.device), "/mnt", "--tmpfs", self.dir, "--tmpfs", self.daemon.state,
                          "--ro-bind", self.ca, "/mnt/ca.pem", PYTHON, STAND_IN, "guest", "/mnt/" + os.path.basename(device or self.device),
                          str(port), "curl", "-sS", "-m", str(10 * PACE), "--cacert", "/mnt/ca.pem", "-x", "http://127.0.0.1:3128", *argv)

    def test_the_way(self):
        r = self.guest("https://api.lab.test/whoami")
        self.assertNotEqual(r.returncode, 0, "nobody has made the socket")
        box = self.attach(name="vm-1", path=self.way, uid=JAILER, gid=JAILER)
        st = os.lstat(self.way)
        self.assertEqual((st.st_uid, st.st_gid, st.st_mode & 0o777), (JAILER, JAILER, 0o600))
        r = self.guest("https://api.lab.test/whoami")
        self.assertTrue(r.returncode == 0 and json.loads(r.stdout)["authenticated"] is True, (r, box))
        for url in ("https://evil.lab.test/", "https://api.lab.test:8443/"):
            r = self.guest("-o", "/dev/null", "-w", "%{http_connect}", url)
            self.assertEqual((r.returncode, r.stdout), (56, "403"), (url, r))
        event = self.daemon.event(HTTP, action_id=1, **{"http_request.url.path": "/whoami"})
        self.assertEqual(event["src_endpoint"], {"name": self.way}, event)

    def test_nobody_else(self):
        """Another user's monitor, another port, and a machine that looks for a way past the proxy."""
        self.attach(name="vm-1", path=self.way, uid=JAILER, gid=JAILER)
        other = os.path.join(self.dir, "other-device")
        monitor = self.start(other, NOBODY)
        r = self.guest("https://api.lab.test/whoami", device=other)
        self.assertNotEqual(r.returncode, 0, r)
        self.assertIn("Permission denied", monitor.stdout.readline())
        for port in (3129, 22, 0):
            self.assertNotEqual(self.guest("https://api.lab.test/whoami", port=port).returncode, 0, port)
        r = self.guest("--noproxy", "*", "https://api.lab.test/")
        self.assertNotEqual(r.returncode, 0, r)
        r = self.guest("https://api.lab.test/whoami")
        self.assertEqual(r.returncode, 0, r)

    def test_faults(self):
        self.attach(name="vm-1", path=self.way, uid=JAILER, gid=JAILER)

        def served():
            return self.guest("https://api.lab.test/whoami").returncode == 0
        os.kill(self.show("vm-1")["worker"]["pid"], signal.SIGKILL)
        self.assertTrue(wait_until(served, 20 * SLOW))
        self.daemon.kill()
        self.assertFalse(served())
        self.daemon.start()
        self.assertTrue(wait_until(served, 20 * SLOW), self.daemon.stderr())
        self.assertEqual(os.lstat(self.way).st_uid, JAILER)
        self.assertEqual(self.daemon.call("DELETE", "/v1/sandboxes/vm-1")[0], 200)
        self.assertFalse(os.path.lexists(self.way) or served())


class Kernel(Socketed):
    """Tests without connections: who owns the port, and what is refused."""

    @classmethod
    def setUpClass(cls):
        if not has_vsock():
            raise unittest.SkipTest("this kernel has no vsock")

    def attach_vsock(self, name, cid, port=PORT):
        return self.daemon.attach(name=name, policy=self.policy, listen={"cid": cid, "port": port})

    def kill_daemon(self):
        """Until its worker, which has the socket too, is gone."""
        self.daemon.kill()
        self.assertTrue(wait_until(lambda: is_free(PORT), 10 * SLOW))

    def test_bad_requests(self):
        for listen, words in (
                ({"cid": 7}, ("port",)), ({"port": PORT}, ("CID",)), ({"cid": 0, "port": PORT}, ("CID",)), ({"cid": 2, "port": PORT}, ("CID",)),
                ({"cid": ANY, "port": PORT}, ("CID",)), ({"cid": 7, "port": 0}, ("port",)), ({"cid": 7, "port": ANY}, ("port",)),
                ({"cid": 1 << 32, "port": PORT}, ("listen.cid",)), ({"cid": -1, "port": PORT}, ("listen.cid",)),
                ({"cid": "7", "port": PORT}, ("listen.cid",)), ({"cid": 7, "port": "x"}, ("listen.port",)),
                ({"cid": 7, "port": PORT, "path": self.dir + "/x"}, ("listen.path",)), ({"cid": 7, "port": PORT, "mode": "600"}, ("listen.mode",)),
                ({"cid": 7, "port": PORT, "uid": 0}, ("listen.uid",)), ({"cid": 7, "port": PORT, "any": True}, ("no such member",)),
                ({"path": "vsock:7:31280"}, ("absolute",))):
            self.refuse(listen, 422, *words)
        self.refuse({"cid": 7, "port": PORT}, 422, "too many", netns="/run/netns/x")
        self.refuse({"cid": 7, "port": PORT}, 422, "addresses", addresses=["10.7.0.2"])
        with listener(PORT):  # none of them has taken it
            pass

    def test_one_sandbox_for_a_port(self):
        box = self.attach_vsock("vm", OTHER)
        self.assertEqual(box["attachment"]["listen"], "vsock:7:31280")
        for cid in (OTHER, OTHER + 1):
            self.refuse({"cid": cid, "port": PORT}, 409, "taken", "port of its own")
        with listener(PORT + 1):
            self.refuse({"cid": OTHER + 1, "port": PORT + 1}, 409, "taken")
        with self.assertRaises(OSError):
            listener(PORT)
        self.attach_vsock("next", OTHER + 1, PORT + 1)
        self.assertEqual(self.daemon.call("DELETE", "/v1/sandboxes/vm")[0], 200)
        self.assertTrue(wait_until(lambda: is_free(PORT), 10 * SLOW))

    def test_the_daemon_dies(self):
        self.attach_vsock("vm", OTHER)
        self.kill_daemon()
        self.daemon.start()
        self.assertTrue(wait_until(lambda: self.show("vm")["state"] == "serving", 10 * SLOW), self.show("vm"))
        self.assertEqual(self.show("vm")["attachment"]["listen"], "vsock:7:31280")
        with self.assertRaises(OSError):
            listener(PORT)

    def test_the_daemon_finds_the_port_taken(self):
        """The sandbox has failed and says why; it is never served on another port."""
        self.attach_vsock("vm", OTHER)
        self.kill_daemon()
        with listener(PORT):
            self.daemon.start()
            self.assertTrue(wait_until(lambda: self.show("vm")["state"] == "failed", 10 * SLOW), self.show("vm"))
            self.assertIn("taken", self.show("vm")["reason"])
        self.assertEqual(self.daemon.call("DELETE", "/v1/sandboxes/vm")[0], 200)

    def test_a_damaged_state(self):
        self.attach_vsock("vm", OTHER)
        self.daemon.kill()
        path = os.path.join(self.daemon.state, "sandboxes", "vm.json")
        with open(path) as f:
            text = f.read()
        self.assertIn("vsock:7:31280", text)
        with open(path, "w") as f:
            f.write(text.replace("vsock:7:31280", "vsock:2:31280"))
        self.daemon.start()
        self.assertTrue(wait_until(lambda: self.show("vm")["state"] == "failed", 10 * SLOW), self.show("vm"))
        with listener(PORT):
            pass

    def test_by_the_command(self):
        attach = ("--policy", self.policy, "--name", "vm")
        r = self.daemon.cli("attach", "--listen", f"vsock:7:{PORT}", *attach)
        self.assertEqual(r.returncode, 0, r)
        self.assertIn(f"HTTP proxy and SOCKS5  vsock:7:{PORT}", r.stdout)
        r = self.daemon.cli("list")
        self.assertIn("vm", r.stdout)
        self.assertEqual(self.daemon.cli("detach", "vm").returncode, 0)
        for words in (("vsock:",), ("vsock:7",), ("vsock:7:",), ("vsock::1",), ("vsock:7:1:2",), ("vsock:07:31280",), ("vsock:+7:31280",), ("vsock:2:31280",),
                      ("vsock:4294967295:31280",), ("vsock:7:0",), ("vsock:7:31280", "--listen-mode", "600"), ("vsock:7:31280", "--listen-owner", "root")):
            r = self.daemon.cli("attach", "--listen", *words, *attach)
            self.assertEqual(r.returncode, 2, (words, r))
            self.assertIn("--listen", r.stderr)
        self.assertTrue(wait_until(lambda: is_free(PORT), 10 * SLOW))


class Loopback(Socketed):
    """Connections: programs of this machine have CID 1."""

    @classmethod
    def setUpClass(cls):
        if not has_loopback():
            raise unittest.SkipTest("this kernel has no loopback for vsock (CONFIG_VSOCKETS_LOOPBACK)")

    attach_vsock = Kernel.attach_vsock

    def through(self, *argv, port=PORT, seconds=10):
        """curl in a sandbox without a card, by what docs/sockets.md has for the guest."""
        script = f"socat TCP-LISTEN:3128,bind=127.0.0.1,fork,reuseaddr VSOCK-CONNECT:{LOCAL}:{port} & p=$!; " \
                 "until socat -u OPEN:/dev/null TCP:127.0.0.1:3128 2>/dev/null; do sleep 0.1; done; " \
                 f'curl -sS -m {seconds * PACE} --cacert {self.ca} -x http://127.0.0.1:3128 "$@"; status=$?; kill $p; exit $status'
        return self.bwrap("sh", "-c", script, "sh", *argv)

    def served(self, port=PORT, seconds=10):
        r = self.through("https://api.lab.test/whoami", port=port, seconds=seconds)
        return r.returncode == 0 and json.loads(r.stdout)["authenticated"] is True

    def strange(self, port):
        """Connects as CID 1; what came, or the error."""
        with socket.socket(socket.AF_VSOCK) as s:
            s.settimeout(10 * PACE)
            try:
                s.connect((LOCAL, port))
                s.sendall(b"CONNECT api.lab.test:443 HTTP/1.1\r\nHost: api.lab.test:443\r\n\r\n")
                return s.recv(1000)
            except ConnectionError:
                return b""

    def findings(self):
        return [e for e in self.daemon.events(FINDING) if e["finding_info"]["analytic"]["name"] == "foreign-peer"]

    def test_the_way(self):
        self.attach_vsock("vm", LOCAL)
        self.assertTrue(wait_until(self.served, 10 * SLOW), self.daemon.stderr())
        for url in ("https://evil.lab.test/", "https://api.lab.test:8443/", "https://169.254.169.254/"):
            r = self.through("-o", "/dev/null", "-w", "%{http_connect}", url)
            self.assertEqual((r.returncode, r.stdout), (56, "403"), (url, r))
        event = self.daemon.event(HTTP, action_id=1, **{"http_request.url.path": "/whoami"})
        self.assertEqual(event["src_endpoint"], {"name": f"vsock:1:{PORT}"}, event)
        self.assertEqual(self.findings(), [])

    def test_other_machines_are_refused(self):
        self.attach_vsock("vm", OTHER)
        self.assertEqual(self.strange(PORT), b"")
        self.assertTrue(wait_until(lambda: len(self.findings()) == 1, 5 * SLOW), self.daemon.stderr())
        finding = self.findings()[0]
        text = json.dumps(finding)
        self.assertIn("CID 1 connected to the vsock port of CID 7 and was refused", text)
        for _ in range(200):
            self.assertEqual(self.strange(PORT), b"")
        self.assertEqual(self.strange(PORT), b"")
        self.assertLessEqual(len(self.findings()), 60)
        self.assertEqual(self.daemon.events(HTTP), [])
        self.assertEqual(self.show("vm")["state"], "serving")

    def test_faults(self):
        self.attach_vsock("vm", LOCAL)
        self.assertTrue(wait_until(self.served, 10 * SLOW), self.daemon.stderr())
        for _ in range(2):
            os.kill(self.show("vm")["worker"]["pid"], signal.SIGKILL)
            self.assertTrue(wait_until(lambda: self.served(seconds=30), 20 * SLOW), self.daemon.stderr())
        self.daemon.kill()
        self.assertFalse(self.served())
        self.daemon.start()
        self.assertTrue(wait_until(self.served, 20 * SLOW), self.daemon.stderr())
        self.assertEqual(self.strange(PORT)[:12], b"HTTP/1.1 200")
        self.assertEqual(self.daemon.call("DELETE", "/v1/sandboxes/vm")[0], 200)
        self.assertFalse(self.served())

    def test_bytes(self):
        """A body of some megabytes, both ways; the tunnel ends when the client does."""
        self.attach_vsock("vm", LOCAL)
        self.assertTrue(wait_until(self.served, 10 * SLOW), self.daemon.stderr())
        with socket.socket(socket.AF_VSOCK) as s:
            s.settimeout(20 * PACE)
            s.connect((LOCAL, PORT))
            s.sendall(b"\x05\x01\x00")
            self.assertEqual(s.recv(2), b"\x05\x00")
            name = b"plain.lab.test"
            s.sendall(b"\x05\x01\x00\x03" + bytes([len(name)]) + name + struct.pack("!H", 80))
            self.assertEqual(s.recv(10)[:2], b"\x05\x00")
            body = b"x" * (3 << 20)
            s.sendall(b"POST /echo HTTP/1.1\r\nHost: plain.lab.test\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(body))
            sent = 0
            got = b""
            while sent < len(body):
                sent += s.send(body[sent:sent + 65536])
            with contextlib.suppress(ConnectionError):
                while piece := s.recv(65536):
                    got += piece
            self.assertEqual(got[:9], b"HTTP/1.1 ", got[:200])


class Upgrades(test_upgrade.Upgrader, Socketed):
    """The next daemon gets the socket itself: the port is nobody else's for a moment."""
    setUpClass = Kernel.setUpClass
    attach_vsock = Kernel.attach_vsock

    def test_another_version_takes_over(self):
        self.attach_vsock("vm", OTHER)
        free = []
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            go = [True]

            def look():
                while go[0]:
                    if is_free(PORT):
                        free.append(time.monotonic())
                    time.sleep(0.002)
            looking = pool.submit(look)
            for _ in range(2):
                self.upgrade()
            go[0] = False
            looking.result()
        self.assertEqual(free, [])
        self.assertEqual((self.show("vm")["state"], self.show("vm")["attachment"]["listen"]), ("serving", "vsock:7:31280"))
        self.assertEqual(self.daemon.call("DELETE", "/v1/sandboxes/vm")[0], 200)
        self.assertTrue(wait_until(lambda: is_free(PORT), 10 * SLOW))


if __name__ == "__main__":
    sys.exit("run by tests/integration/run")
