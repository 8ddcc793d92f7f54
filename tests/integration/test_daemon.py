# SPDX-License-Identifier: Apache-2.0
"""The daemon: sandboxes that it attaches to, and what happens to them when parts of it, or all of it, are killed."""
import concurrent.futures
import contextlib
import ctypes
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import time
import unittest

import support
from lab import BIN
from daemon import VETHGUARDD, Daemon
from support import FINDING, HTTP, LIFECYCLE, NETWORK, PACE, SLOW, descendants, file_credential, policy, wait_until

PROXY = "http://198.18.0.1:3128"
ROLES = {"keeper": "vethguard-keepe", "recorder": "vethguard-recor", "worker": "vethguard-worke"}
HOSTILE = os.path.join(BIN, "..", "tests", "hostile")
READS = "{to: 'https://api.lab.test', methods: [GET], credential: api}"
NOBODYS = ("0.0.0.0", "127.0.0.1", "224.0.0.1", "255.255.255.255", "::", "::1", "ff02::1", "::ffff:10.7.0.2")
SOON = 1 * SLOW  # how soon it has to serve again


class Replaced:
    """Notices that a file is put in another's place (inotify(7)), however short it lasts."""
    MOVED_TO = 0x80

    def __init__(self, folder, name):
        libc = ctypes.CDLL(None, use_errno=True)
        self.name = name.encode()
        self.fd = libc.inotify_init1(os.O_CLOEXEC)
        assert self.fd >= 0 and libc.inotify_add_watch(self.fd, folder.encode(), self.MOVED_TO) >= 0, ctypes.get_errno()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.close(self.fd)

    def wait(self, seconds):
        end = time.monotonic() + seconds
        while select.select([self.fd], [], [], max(0, end - time.monotonic()))[0]:
            if self.name in os.read(self.fd, 65536):
                return True
        return False


class Attached(unittest.TestCase):
    """A daemon and a namespace that it guards."""

    def setUp(self):
        self.name = support.netns(self, f"box{time.monotonic_ns()}")
        self.policy = self.write(READS)
        self.daemon = self.make_daemon()
        self.addCleanup(self.daemon.stop)
        self.box = self.attach()
        self.ca = os.path.join(self.daemon.dir, "ca.pem")
        with open(os.path.join(self.daemon.data, "ca", "root.pem")) as f:
            self.pem = f.read()
        with open(self.ca, "w") as f:
            f.write(self.pem)

    def make_daemon(self):
        return Daemon()

    def write(self, *rules):
        return support.LAB.write(f"daemon-{time.monotonic_ns()}.yaml", policy(*rules, credentials=file_credential()))

    def attach(self, name="one", netns=None, **more):
        return self.daemon.attach(name=name, netns=f"/run/netns/{netns or self.name}", policy=self.policy, **more)

    def show(self, name="one"):
        return self.daemon.call("GET", f"/v1/sandboxes/{name}")[2]

    def curl(self, *argv, netns=None, seconds=10):
        return subprocess.run(["ip", "netns", "exec", netns or self.name, "curl", "-sS", "-m", str(seconds * PACE),
                               "--cacert", self.ca, "-x", PROXY, *argv], capture_output=True, text=True)

    def asks(self, **kw):
        """True: a request with the credential was served, under the CA of the beginning."""
        r = self.curl("https://api.lab.test/whoami", **kw)
        return r.returncode == 0 and json.loads(r.stdout).get("authenticated") is True

    def assert_served(self, why="", seconds=SOON, **kw):
        self.assertTrue(wait_until(lambda: self.asks(**kw), seconds), f"{why}: {self.daemon.stderr()} {self.show()}")

    def pid(self, role):
        if role == "worker":
            return self.show()["worker"]["pid"]
        return next(p for p, row in descendants(self.daemon.process.pid).items() if row[0] == ROLES[role])

    def state_files(self):
        return {d: os.listdir(os.path.join(self.daemon.state, d)) for d in ("sandboxes", "netns", "names", "rings", "told")}


class Life(Attached):
    def test_attach_and_detach(self):
        self.assertEqual(self.box["state"], "serving")
        self.assert_served()
        self.assertEqual(self.curl("-o", "/dev/null", "-w", "%{http_code}", "-X", "DELETE", "https://api.lab.test/x").stdout, "403")
        status, _, answer = self.daemon.call("DELETE", "/v1/sandboxes/one")
        self.assertEqual((status, answer["summary"]["allowed"], answer["summary"]["denied"]), (200, 1, 1), answer)
        self.assertTrue(wait_until(lambda: not any(self.state_files().values()), 5 * SLOW), self.state_files())
        links = wait_until(lambda: "eth0" not in support.sh("ip", "-n", self.name, "link") or None, 5 * SLOW)
        self.assertTrue(links, "the link is still there")
        self.assertEqual(self.daemon.call("GET", "/v1/sandboxes/one")[0], 404)

    def test_the_policy_changes(self):
        self.assert_served()
        with open(self.policy, "w") as f:
            f.write(policy("https://www.lab.test", credentials=file_credential()))
        status, _, answer = self.daemon.call("POST", "/v1/sandboxes/one/reload")
        self.assertEqual((status, self.show()["policy"]["generation"]), (200, 2), answer)
        r = self.curl("-o", "/dev/null", "-w", "%{http_code}", "https://api.lab.test/whoami")
        self.assertIn("403", r.stdout + r.stderr)
        self.assertTrue(wait_until(lambda: [e for e in self.daemon.events(LIFECYCLE) if "api.lab.test" in json.dumps(e)], 5 * SLOW),
                        self.daemon.events(LIFECYCLE))

    def test_a_bad_policy_changes_nothing(self):
        before = self.show()["policy"]
        with open(self.policy, "a") as f:
            f.write("nonsense: 1\n")
        status, _, answer = self.daemon.call("POST", "/v1/sandboxes/one/reload")
        self.assertEqual(status // 100, 4, answer)
        self.assertIn("nonsense", json.dumps(answer["diagnostics"]))
        self.assertEqual(self.show()["policy"], before)
        self.assert_served()

    def test_pause_lasts(self):
        self.assertEqual(self.daemon.call("POST", "/v1/sandboxes/one/pause", {"reason": "a test"})[0], 200)
        self.assertFalse(self.asks(seconds=2))
        self.daemon.kill()
        self.daemon.start()
        self.assertTrue(wait_until(lambda: self.show()["state"] == "paused", SOON), self.show())
        self.assertFalse(self.asks(seconds=2))
        self.assertEqual(self.daemon.call("POST", "/v1/sandboxes/one/resume")[0], 200)
        self.assert_served()

    def explains(self, netns=None):
        r = self.curl("-i", "https://api.lab.test/whoami", netns=netns)
        return "503" in r.stdout and "the sandbox is paused: a test" in r.stdout and '"code":"paused"' in r.stdout

    def test_a_pause_outlives_every_worker(self):
        pid = self.pid("worker")
        self.assertEqual(self.daemon.call("POST", "/v1/sandboxes/one/pause", {"reason": "a test"})[0], 200)
        self.assertEqual(self.show()["state"], "paused")
        self.assertFalse(os.path.exists(f"/proc/{pid}"), "the worker from before lives")
        self.assertTrue(self.explains())
        os.kill(self.pid("worker"), 9)
        self.assertTrue(wait_until(self.explains, 5 * SLOW))
        self.daemon.kill()
        self.daemon.start()
        self.assertTrue(wait_until(self.explains, 5 * SLOW))
        self.assertEqual(self.show()["state"], "paused")
        self.assertEqual(self.daemon.call("POST", "/v1/sandboxes/one/reload")[0], 200)
        self.assertTrue(self.explains())

    def test_its_time_is_over(self):
        support.netns(self, self.name + "t")
        self.attach("short", self.name + "t", ttl_s=1)
        self.assertTrue(wait_until(lambda: self.daemon.call("GET", "/v1/sandboxes/short")[0] == 404, 10 * SLOW))

    def test_its_process_ends(self):
        with subprocess.Popen(["unshare", "-n", "sleep", "600"]) as process:
            own = os.stat("/proc/self/ns/net").st_ino
            wait_until(lambda: os.stat(f"/proc/{process.pid}/ns/net").st_ino != own, 5 * SLOW)
            self.daemon.attach(name="by-pid", pid=process.pid, policy=self.policy)
            process.kill()
        self.assertTrue(wait_until(lambda: self.daemon.call("GET", "/v1/sandboxes/by-pid")[0] == 404, 10 * SLOW))

    def test_another_process_has_its_number(self):
        """Numbers are used again: one that began at another time is another process, for who attaches it and after a restart."""
        process = subprocess.Popen(["unshare", "-n", "sleep", "600"])
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        own = os.stat("/proc/self/ns/net").st_ino
        wait_until(lambda: os.stat(f"/proc/{process.pid}/ns/net").st_ino != own, 5 * SLOW)
        began = support.process_row(process.pid)[3]
        wanted = {"name": "by-pid", "pid": process.pid, "policy": self.policy}
        for other in (began - 1, began + 1):
            status, _, answer = self.daemon.call("POST", "/v1/sandboxes", wanted | {"start_time": other})
            self.assertEqual((status, answer["detail"]), (422, f"there is no such process {process.pid}"))
        self.daemon.attach(**wanted, start_time=began)
        self.daemon.kill()
        path = os.path.join(self.daemon.state, "sandboxes", "by-pid.json")
        with open(path) as f:
            state = json.load(f)
        self.assertEqual(int(state["pid_start_time"], 16), began)
        with open(path, "w") as f:
            json.dump(state | {"pid_start_time": f"{began - 1:016x}"}, f)
        self.daemon.start()
        self.assertTrue(wait_until(lambda: self.daemon.call("GET", "/v1/sandboxes/by-pid")[0] == 404, 10 * SLOW), self.daemon.stderr())
        links = json.loads(support.sh("nsenter", f"--net=/proc/{process.pid}/ns/net", "ip", "-j", "link"))
        self.assertEqual([link["ifname"] for link in links], ["lo"])

    def test_root_inside_takes_its_link_away(self):
        """It has cut itself off, which is said, with what to do; attached anew it is served."""
        for words in (["link", "del", "eth0"], ["link", "set", "eth0", "netns", self.name + "n"]):
            other = support.netns(self, self.name + "n")
            support.sh("ip", "-n", self.name, *words)
            support.sh("ip", "netns", "del", other)
            self.assertTrue(wait_until(lambda: self.show()["state"] == "failed", 10 * SLOW), self.show())
            self.assertRegex(self.show()["reason"], "taken away from inside.*detach it")
            self.assertEqual(self.daemon.call("DELETE", "/v1/sandboxes/one")[0], 200)
            self.attach()
            self.assert_served()


class Numbered(Attached):
    """Root inside whose CAP_NET_ADMIN counts in the host's user namespace too, as in a container that has none of its own: the kernel
    lets it make links in every namespace that its own has a number for, which it has for the other end of its link."""
    MARK = b"VGNUMBER" * 4
    RIGHTS = "-all,+net_admin,+net_raw"

    def attack(self, netns):
        """Links on top of whatever can be reached by a number, which the kernel gives who asks what the links are; a frame out of each.
        (how many were made, how many frames left)"""
        inside = ["ip", "netns", "exec", netns]
        indexes = {socket.if_nametoindex("up0"), *range(1, 20)}
        lines = [f"link add link if{i} link-netnsid {n} name m{n}x{i} type macvlan mode bridge\nlink set m{n}x{i} up" for i in indexes for n in range(3)]
        support.sh(*inside, "setpriv", "--bounding-set", self.RIGHTS, "--inh-caps", self.RIGHTS, "sh", "-c", "ip link >/dev/null; ip -force -batch - 2>/dev/null || true",
                   input="\n".join(lines))
        made = [link["ifname"] for link in json.loads(support.sh(*inside, "ip", "-j", "link")) if link["ifname"].startswith("m")]
        send = ("import socket, sys\nfor name in sys.argv[1:]:\n s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)\n s.bind((name, 0))\n"
                f" s.send(b'\\xff' * 6 + bytes(6) + b'\\x88\\xb5' + {self.MARK!r})\n")
        with support.Capture() as capture:
            support.sh(*inside, "python3", "-c", send, *made)
        return len(made), sum(self.MARK in frame for _, frame in capture.frames)

    def known(self):
        """How many namespaces each gate has a number for."""
        folder = os.path.join(self.daemon.state, "netns")
        return [support.sh("nsenter", f"--net={folder}/{gate}", "ip", "netns", "list-id").count("nsid ") for gate in os.listdir(folder)]

    def test_a_gate_leads_nowhere(self):
        self.assertEqual(self.known(), [1])
        made, left = self.attack(self.name)
        self.assertGreater(made, 0)  # on the gate's end
        self.assertEqual(left, 0)
        self.daemon.kill()
        self.daemon.start()
        self.assert_served()
        self.assertEqual((self.known(), self.attack(self.name)[1]), ([1], 0))

    def test_the_host_would(self):
        """The test above would see it: here the other end of the link is the host's, as that of an interface is."""
        other = support.netns(self, self.name + "h")
        support.sh("ip", "link", "add", "pt8", "type", "veth", "peer", "name", "eth0", "netns", other)
        self.assertGreater(self.attack(other)[1], 0)


class Interface(Attached):
    """A veth's outer end, as a microVM's tap or a container's port: with it goes the way to the host."""

    def setUp(self):
        for family in ("netdev", "inet", "bridge", "arp"):  # these outlive a daemon, and the other tests of this lab share the host
            self.addCleanup(subprocess.run, ["nft", "delete", "table", family, "vethguard-divert"], check=False, capture_output=True)
        super().setUp()
        self.before = self.links()
        self.port, self.inside = "pt7", f"in{time.monotonic_ns()}"
        support.netns(self, self.inside)
        self.addCleanup(subprocess.run, ["ip", "link", "del", self.port], check=False, capture_output=True)
        self.make_port()
        self.assertTrue(wait_until(self.meets_the_host, 5 * SLOW))

    def make_port(self):
        for words in (("link", "add", self.port, "type", "veth", "peer", "name", "eth0", "netns", self.inside),
                      ("addr", "add", "10.55.0.1/24", "dev", self.port), ("link", "set", self.port, "up"),
                      ("-n", self.inside, "addr", "add", "10.55.0.2/24", "dev", "eth0"),
                      ("-n", self.inside, "link", "set", "eth0", "up")):
            support.sh("ip", *words)

    @staticmethod
    def links():
        """The host's ends of gates' links."""
        return {line.split("@")[0] for line in support.sh("ip", "-br", "link").splitlines() if line.startswith("vg")}

    def meets_the_host(self):
        """A gate answers in the host's place, or refuses; it does not know this word."""
        with socket.create_server(("10.55.0.1", 0)) as server:
            server.settimeout(2)
            client = subprocess.Popen(["ip", "netns", "exec", self.inside, "curl", "-s", "-m", "1", "--http0.9", "--noproxy", "*",
                                       f"http://10.55.0.1:{server.getsockname()[1]}/"], stdout=subprocess.PIPE)
            try:
                connection = server.accept()[0]
                connection.sendall(b"this is the host")
                connection.close()
            except TimeoutError:
                pass
            return b"this is the host" in client.communicate()[0]

    def rules(self):
        return "vethguard-divert" in support.sh("nft", "list", "tables")

    def guard(self, **more):
        self.daemon.attach(name="port", interface=self.port, policy=self.policy, **more)
        self.assertFalse(self.meets_the_host())

    def test_detached_it_is_open_and_that_is_said(self):
        self.guard()
        r = self.daemon.cli("detach", "port")
        self.assertIn(f"port: interface {self.port} is open: nothing guards it any more", r.stdout)
        self.assertTrue(self.meets_the_host())
        self.assertFalse(self.rules(), "the last interface leaves tables")

    def test_its_time_is_over_and_it_stays_shut(self):
        self.guard(ttl_s=1)
        over = lambda: self.show("port").get("reason") or ""  # noqa: E731
        self.assertTrue(wait_until(lambda: "its time is over" in over(), 10 * SLOW), self.show("port"))
        self.assertEqual(self.show("port")["state"], "failed")
        self.assertFalse(self.meets_the_host())
        # Over the daemon's death as well, and though somebody flushed the rules meanwhile.
        self.daemon.kill()
        support.sh("nft", "delete", "table", "netdev", "vethguard-divert")
        self.daemon.start()
        self.assertIn("its time is over", over())
        self.assertIn(f"in-{self.port}", support.sh("nft", "list", "ruleset"))
        self.assertFalse(self.meets_the_host())
        status, _, answer = self.daemon.call("POST", "/v1/sandboxes", {"name": "two", "interface": self.port, "policy": self.policy})
        self.assertEqual(status, 409, answer)
        for what in ("reload", "pause", "resume"):  # it is what it was asked to be: no fault of the daemon's
            status, _, answer = self.daemon.call("POST", f"/v1/sandboxes/port/{what}")
            self.assertEqual(status, 409, answer)
            self.assertIn("until this sandbox is detached", answer["detail"])
        status, _, answer = self.daemon.call("POST", "/v1/reload")
        self.assertEqual((status, answer["reloaded"]), (200, 1), answer)
        self.assertEqual(self.daemon.stop(), 0)
        self.daemon.start()
        status, _, answer = self.daemon.call("DELETE", "/v1/sandboxes/port")
        self.assertEqual((status, answer["opened"]), (200, self.port))
        self.assertTrue(self.meets_the_host())
        self.assertFalse(self.rules())
        self.assertNotIn("port.json", self.state_files()["sandboxes"])

    def test_whatever_its_name(self):
        """Of bytes that a terminal would obey: no command shows them as they are."""
        name, shown = "\x1b[31mp", r"\x1b[31mp"
        support.sh("ip", "link", "set", self.port, "down")
        support.sh("ip", "link", "set", self.port, "name", name)
        self.addCleanup(subprocess.run, ["ip", "link", "del", name], check=False, capture_output=True)
        support.sh("ip", "link", "set", name, "up")
        said = [self.daemon.cli("attach", "--interface", name, "--policy", self.policy, "--name", "port"),
                self.daemon.cli("attach", "--interface", name, "--policy", self.policy, "--name", "again"),
                *(self.daemon.cli(what, *more) for what, *more in (["list"], ["show", "port"], ["detach", "port"]))]
        self.assertEqual([r.returncode for r in said], [0, 1, 0, 0, 0], said)
        for r in said[1:]:
            self.assertIn(f"interface {shown} ", (r.stdout + r.stderr).replace("\n", " "))
        self.assertNotIn("\x1b", "".join(r.stdout + r.stderr for r in said) + self.daemon.stderr())

    def test_by_another_of_its_names(self):
        """It is one interface all the same (ip-link(8), altname), and its rules go by its own name."""
        support.sh("ip", "link", "property", "add", "dev", self.port, "altname", "pt7-other")
        self.daemon.attach(name="port", interface="pt7-other", policy=self.policy)
        self.assertFalse(self.meets_the_host())
        self.assertEqual(self.show("port")["attachment"]["interface"], self.port)
        for name in (self.port, "pt7-other"):
            status, _, answer = self.daemon.call("POST", "/v1/sandboxes", {"name": "two", "interface": name, "policy": self.policy})
            self.assertEqual((status, answer["detail"]), (409, f"the interface {self.port} is port's already: detach that first"))
        self.daemon.kill()
        self.daemon.start()
        self.assertTrue(wait_until(lambda: self.show("port")["state"] == "serving", SOON), self.show("port"))
        status, _, answer = self.daemon.call("DELETE", "/v1/sandboxes/port")
        self.assertEqual((status, answer["opened"]), (200, self.port))
        self.assertTrue(self.meets_the_host())

    def test_it_goes_and_comes_back(self):
        """As that of a container that is stopped and started: nobody takes it for served meanwhile."""
        self.guard()
        serving = lambda: self.daemon.call("GET", "/v1/status")[2]["sandboxes"]["serving"]  # noqa: E731
        self.assertEqual(serving(), 2)
        support.sh("ip", "link", "del", self.port)
        self.assertTrue(wait_until(lambda: self.show("port")["state"] == "away", 5 * SLOW), self.show("port"))
        self.assertIn("until it comes back", self.show("port")["reason"])
        self.assertEqual(serving(), 1)
        self.assertRegex(self.daemon.cli("list").stdout, r"(?m)^port +away ")
        self.assertTrue(wait_until(lambda: [e for e in self.daemon.events(FINDING) if f"{self.port} is not there" in json.dumps(e)], 5 * SLOW))
        self.daemon.kill()
        self.daemon.start()
        self.assertTrue(wait_until(lambda: self.show("port")["state"] == "away", 5 * SLOW), self.show("port"))
        self.make_port()
        self.assertTrue(wait_until(lambda: self.show("port")["state"] == "serving", 5 * SLOW), self.show("port"))
        self.assertFalse(self.meets_the_host())
        self.assertIn("its interface is there again", self.daemon.stderr())

    def test_a_network_of_dockers(self):
        """Its containers may have Docker ask for names from the host: who attaches is warned."""
        bridge = "br-0123456789ab"
        support.sh("ip", "link", "add", bridge, "type", "bridge")
        self.addCleanup(subprocess.run, ["ip", "link", "del", bridge], check=False)
        support.sh("ip", "link", "set", self.port, "master", bridge)
        members = {"name": "port", "interface": self.port, "policy": self.policy}
        warning, = self.daemon.attach(**members)["warnings"]
        self.assertIn("--dns", warning)
        self.assertNotIn("warnings", self.show("port"))
        self.assertEqual(self.daemon.call("DELETE", "/v1/sandboxes/port")[0], 200)
        r = self.daemon.cli("attach", "--interface", self.port, "--policy", self.policy, "--name", "port")
        self.assertEqual(r.returncode, 0, r)
        self.assertIn("vethguard: warning: this is a network of Docker's", r.stderr)

    def shut(self):
        return f"in-{self.port}" in support.sh("nft", "list", "ruleset") and "clsact" in support.sh("tc", "qdisc", "show", "dev", self.port)

    def flush(self):
        support.sh("nft", "flush", "ruleset")
        support.sh("tc", "qdisc", "del", "dev", self.port, "clsact")

    def test_its_time_is_over_and_somebody_flushes_the_rules(self):
        self.guard(ttl_s=1)
        over = lambda: "its time is over" in (self.show("port").get("reason") or "")  # noqa: E731
        self.assertTrue(wait_until(over, 10 * SLOW), self.show("port"))
        mended = lambda: self.show("port")["fence"]["mended"]  # noqa: E731
        for _ in range(2):
            count = mended()
            self.flush()
            self.assertTrue(wait_until(lambda n=count: mended() > n and self.shut(), 5 * SLOW), self.daemon.stderr())
            self.assertFalse(self.meets_the_host())
        self.assertTrue(wait_until(lambda: [e for e in self.daemon.events(FINDING) if "port" in json.dumps(e)], 5 * SLOW))
        # Also by the daemon after this one.
        self.daemon.kill()
        self.daemon.start()
        self.flush()
        self.assertTrue(wait_until(self.shut, 5 * SLOW), self.daemon.stderr())
        self.assertEqual(self.daemon.call("DELETE", "/v1/sandboxes/port")[0], 200)
        self.assertTrue(self.meets_the_host())
        self.assert_nothing_left()

    def test_nobody_can_serve_it_and_somebody_has_flushed_the_rules(self):
        self.guard()
        self.daemon.kill()
        self.flush()
        with open(self.policy) as f:
            text = f.read()
        with open(self.policy, "a") as f:
            f.write("nonsense: 1\n")
        self.daemon.start()
        self.assertTrue(wait_until(lambda: self.show("port")["state"] == "failed", 5 * SLOW), self.show("port"))
        self.assertTrue(self.shut(), self.daemon.stderr())
        self.assertFalse(self.meets_the_host())
        self.flush()
        self.assertTrue(wait_until(self.shut, 5 * SLOW), self.daemon.stderr())
        # The policy is mended; the next daemon serves, but not what was paused meanwhile.
        self.assertEqual(self.daemon.call("POST", "/v1/sandboxes/port/resume")[0], 500)
        self.assertEqual(self.daemon.call("POST", "/v1/sandboxes/port/pause")[0], 200)
        self.daemon.kill()
        with open(self.policy, "w") as f:
            f.write(text)
        self.daemon.start()
        self.assertTrue(wait_until(lambda: self.show("port")["state"] == "paused", 5 * SLOW), self.show("port"))
        self.assertEqual(self.daemon.call("POST", "/v1/sandboxes/port/resume")[0], 200)
        self.assertTrue(wait_until(lambda: self.show("port")["state"] == "serving", 5 * SLOW), self.show("port"))
        self.assertFalse(self.meets_the_host())

    def assert_nothing_left(self):
        self.assertFalse(self.rules(), support.sh("nft", "list", "ruleset"))
        self.assertNotIn("clsact", support.sh("tc", "qdisc", "show", "dev", self.port))
        self.assertLessEqual(self.links(), self.before)
        left = {d: [n for n in names if self.box["id"] not in n and not n.startswith("one.")] for d, names in self.state_files().items()}
        self.assertFalse(left["sandboxes"] or left["netns"] or left["names"], left)

    def test_killed_before_the_answer(self):
        """What is there of an attach that nobody was told of goes, and nothing else."""
        other = {"name": "other", "interface": "pt8", "policy": self.policy}
        support.sh("ip", "link", "add", "pt8", "type", "veth", "peer", "name", "pt9")
        self.addCleanup(subprocess.run, ["ip", "link", "del", "pt8"], check=False, capture_output=True)
        self.daemon.attach(**other)
        self.guard()
        self.daemon.kill()
        path = os.path.join(self.daemon.state, "sandboxes", "port.json")
        with open(path) as f:
            state = json.load(f)
        with open(path, "w") as f:
            json.dump(state | {"attaching": True}, f)
        self.daemon.start()
        self.assertEqual(self.daemon.call("GET", "/v1/sandboxes/port")[0], 404)
        self.assertTrue(self.meets_the_host())
        rules = support.sh("nft", "list", "ruleset")
        self.assertNotIn(self.port, rules)
        self.assertNotIn(state["gate"]["host_link"], rules + support.sh("ip", "link"))
        self.assertIn("pt8", rules)
        self.assertTrue(wait_until(lambda: self.show("other")["state"] == "serving", 5 * SLOW), self.show("other"))
        self.assertEqual(self.show("other")["fence"]["mended"], 0)
        self.assertEqual(self.daemon.call("DELETE", "/v1/sandboxes/other")[0], 200)
        self.assert_nothing_left()

    def test_killed_at_any_moment_of_an_attach(self):
        """Then it is there and served, or nothing of it is."""
        found = {200: 0, 404: 0}
        for turn in range(60 if os.environ.get("VETHGUARD_LONG") == "1" else 6):
            with concurrent.futures.ThreadPoolExecutor() as pool:
                asked = pool.submit(self.daemon.call, "POST", "/v1/sandboxes",
                                    {"name": "port", "interface": self.port, "policy": self.policy})
                time.sleep(0.001 * (turn % 12) * PACE)
                self.daemon.kill()
                asked.exception()
            self.daemon.start()
            status = self.daemon.call("GET", "/v1/sandboxes/port")[0]
            found[status] += 1
            if status == 200:
                self.assertTrue(wait_until(lambda: self.show("port")["state"] == "serving", 5 * SLOW), self.show("port"))
                self.assertFalse(self.meets_the_host())
                self.assertEqual(self.daemon.call("DELETE", "/v1/sandboxes/port")[0], 200)
            self.assert_nothing_left()
        self.assertTrue(self.meets_the_host())

    def test_killed_in_the_middle_of_a_detach(self):
        """The next daemon takes the rest away: of half a gate it could serve nothing."""
        for _ in range(20 if support.LONG else 1):
            self.guard()
            with Replaced(os.path.join(self.daemon.state, "sandboxes"), "port.json") as replaced:
                asked = subprocess.Popen([support.VETHGUARD, "detach", "port", "--socket", self.daemon.socket],
                                         stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                self.assertTrue(replaced.wait(20 * SLOW), "that it ends is not on the disk before it does")
                self.daemon.kill()
            asked.wait(20 * SLOW)
            self.daemon.start()
            self.assertEqual(self.daemon.call("GET", "/v1/sandboxes/port")[0], 404)
            self.assert_nothing_left()
        self.assertTrue(self.meets_the_host())

    def test_nobody_there_it_is_closed(self):
        self.guard()
        self.daemon.kill()
        self.assertFalse(self.meets_the_host())
        self.daemon.start()
        self.assertTrue(wait_until(lambda: self.show("port")["state"] == "serving", 5 * SLOW), self.show("port"))
        self.assertFalse(self.meets_the_host())


class Changing(Attached):
    """A reload that does not get on, because a worker hangs."""

    def spares(self):
        return [p for p, row in descendants(self.daemon.process.pid).items()
                if row[0] == ROLES["worker"] and p != self.pid("worker")]

    def frozen(self, pids):
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        return pids

    def test_detached_before_the_new_worker_is_ready(self):
        self.assertTrue(wait_until(lambda: len(self.spares()) >= 4, 20 * SLOW))
        self.frozen(self.spares())
        with concurrent.futures.ThreadPoolExecutor() as pool:
            reloads = [pool.submit(self.daemon.call, "POST", "/v1/sandboxes/one/reload") for _ in range(2)]
            concurrent.futures.wait(reloads, return_when=concurrent.futures.FIRST_COMPLETED)  # the second is turned away
            self.assertEqual(self.daemon.call("DELETE", "/v1/sandboxes/one")[0], 200)
            self.assertEqual(sorted(r.result()[0] for r in reloads), [409, 503])
        self.assertEqual(self.daemon.call("GET", "/v1/sandboxes/one")[0], 404)

    def test_nothing_is_reloaded_while_the_daemon_stops(self):
        self.frozen([self.pid("worker")])  # so it takes its time
        os.kill(self.daemon.process.pid, signal.SIGTERM)
        self.assertTrue(wait_until(lambda: self.show()["state"] == "detaching", 10 * SLOW))
        self.assertEqual(self.daemon.call("POST", "/v1/sandboxes/one/reload")[0], 503)
        self.assertEqual(self.daemon.process.wait(60 * SLOW), 0)
        self.daemon.start()
        self.assert_served()

    def test_reloaded_is_when_the_old_worker_holds_to_it(self):
        old = self.frozen([self.pid("worker")])
        self.assertEqual(self.daemon.call("POST", "/v1/sandboxes/one/reload")[0], 200)
        self.assertFalse(set(old) & set(descendants(self.daemon.process.pid)), "it hangs, with all that it had let pass")
        self.assert_served()


class Refused(Attached):
    def test_namespaces_that_are_no_sandboxes(self):
        gate = os.path.join(self.daemon.state, "netns", self.state_files()["netns"][0])
        other = support.netns(self, self.name + "o")
        support.sh("ip", "-n", other, "link", "add", "uplink0", "type", "veth", "peer", "name", "uplink1")
        for members, word in (({"netns": "/proc/1/ns/net"}, ""), ({"pid": 1}, ""), ({"pid": os.getpid()}, "the host itself"),
                              ({"netns": gate}, "is a gate"), ({"netns": f"/run/netns/{other}"}, "an interface uplink")):
            status, _, answer = self.daemon.call("POST", "/v1/sandboxes", {"policy": self.policy, **members})
            self.assertEqual(status, 422, answer)
            self.assertIn(word, answer["detail"], members)
        self.assertTrue(wait_until(lambda: [len(v) for v in self.state_files().values()][:2] == [1, 1], 5 * SLOW), self.state_files())
        for words in (["link", "set", "uplink0", "name", "gre0"], ["link", "del", "gre0"], ["link", "add", "sit0", "type", "bridge"]):
            support.sh("ip", "-n", other, *words)  # names that the kernel gives to tunnels of every namespace, taken by root inside
            links = [link["ifname"] for link in json.loads(support.sh("ip", "-n", other, "-j", "link"))]
            if len(links) > 1:
                status, _, answer = self.daemon.call("POST", "/v1/sandboxes", {"policy": self.policy, "netns": f"/run/netns/{other}"})
                self.assertEqual(status, 422, (links, answer))
        self.assertNotIn("eth0", support.sh("ip", "-n", other, "link"))
        self.assert_served()

    def test_a_namespace_is_known_to_the_next_daemon(self):
        self.daemon.kill()
        self.daemon.start()
        status, _, answer = self.daemon.call("POST", "/v1/sandboxes", {"policy": self.policy, "netns": f"/run/netns/{self.name}"})
        self.assertEqual(status, 409, answer)

    def test_requests_that_cannot_be(self):
        netns = f"/run/netns/{self.name}"
        for members, status in (({"name": "one", "netns": netns}, 409), ({"name": "two", "netns": netns}, 409),
                                ({"netns": "/proc/self/ns/net"}, 422), ({"netns": "/proc/self/ns/mnt"}, 422),
                                ({"netns": "/run/netns/none"}, 422), ({"pid": 4194303}, 422),
                                ({"name": "-x", "netns": netns}, 422), ({"name": "vethguardd", "netns": netns}, 422),
                                ({"name": "left-behind", "netns": netns}, 422),
                                *(({"interface": "up0", "addresses": [a]}, 422) for a in NOBODYS)):
            got, _, answer = self.daemon.call("POST", "/v1/sandboxes", {"policy": self.policy, **members})
            self.assertEqual(got, status, (members, answer))
            if "addresses" in members:
                self.assertIn("no sandbox can have the address", answer["detail"])
        self.assertEqual(len(self.state_files()["sandboxes"]), 1)
        self.assert_served()

    def test_the_environment_is_no_source(self):
        text = policy(READS, credentials="  api: {source: 'env:API_KEY', inject: bearer}\n")
        support.netns(self, self.name + "e")
        status, _, answer = self.daemon.call("POST", "/v1/sandboxes", {
            "netns": f"/run/netns/{self.name}e", "policy": support.LAB.write("env-source.yaml", text)})
        self.assertEqual(status, 422, answer)
        self.assertIn("env:", json.dumps(answer["diagnostics"]))

    def test_a_configuration_with_a_fault_is_not_the_callers(self):
        netns = support.netns(self, self.name + "c")
        with open(self.daemon.config) as f:
            good = f.read()
        with open(self.daemon.config, "w") as f:
            f.write(good + "nonsense: 1\n")
        for path, body in (("/v1/sandboxes", {"policy": self.policy, "netns": f"/run/netns/{netns}"}),
                           ("/v1/sandboxes/one/reload", {"policy": self.policy})):
            status, _, answer = self.daemon.call("POST", path, body)
            self.assertEqual(status, 500, answer)
            self.assertIn("the daemon's configuration", answer["detail"])
            self.assertIn("nonsense", json.dumps(answer["diagnostics"]))
        with open(self.daemon.config, "w") as f:
            f.write(good)
        self.assertEqual(self.daemon.call("POST", "/v1/sandboxes/one/reload")[0], 200)
        self.assert_served()

    def test_only_one_daemon(self):
        r = subprocess.run(self.daemon.argv(), capture_output=True, text=True, timeout=20 * SLOW)
        self.assertEqual(r.returncode, 125, r)
        self.assertIn("another vethguardd", r.stderr)
        self.assert_served()

    def test_configuration_is_looked_at(self):
        bad = support.LAB.write("bad-config.yaml", "nonsense: 1\n")
        for path, status in ((bad, 125), (self.daemon.config, 0)):
            r = subprocess.run([VETHGUARDD, "--check-config", "--config", path], capture_output=True, text=True)
            self.assertEqual(r.returncode, status, r)

    def test_what_a_configuration_names_is_looked_at(self):
        """Files that a sandbox would miss are faults; what would be taken without a word is told."""
        key = support.LAB.write("no-certificate.pem", "-----BEGIN PRIVATE KEY-----\n")
        for text, status, told in (("ca_files: [nope.pem]", 125, "nope.pem: No such file or directory"),
                                   (f"ca_files: [{key}]", 0, f"warning: PATH: CA file {key} holds no certificate in PEM"),
                                   ("egress: {proxy: 'http://p:3128', user: u, password_file: nope}", 125, "egress.password_file: "),
                                   ("audit_file: /nowhere/a.jsonl", 125, "audit_file /nowhere/a.jsonl: the directory /nowhere has to be there first"),
                                   ("egress: {interface: none0}", 0, "warning: PATH: egress.interface none0 is not there now ('ip -br link'"),
                                   ("permit: [0.0.0.0/0, 'fd00::/8']", 0, "warning: PATH: permit 0.0.0.0/0 is wider than a private range"),
                                   (f"audit_file: {support.LAB.dir}/a.jsonl", 0, "")):
            path = support.LAB.write("names.yaml", text + "\n")
            r = subprocess.run([VETHGUARDD, "--check-config", "--config", path], capture_output=True, text=True)
            self.assertEqual(r.returncode, status, r)
            self.assertIn(told.replace("PATH", path), r.stderr)
            self.assertEqual(r.stderr.count("warning"), int("warning" in told), r)

    def test_version(self):
        r = subprocess.run([VETHGUARDD, "--version"], capture_output=True, text=True)
        self.assertEqual((r.returncode, r.stderr), (0, ""), r)
        self.assertRegex(r.stdout, r"^vethguardd \d+\.\d+\.\d+\n$")

    def test_wrong_usage(self):
        for words, says in ((["--stat", "/x"], "unknown option --stat; did you mean --state?"), (["--state"], "--state needs a value: --state DIR"),
                            (["--state", "x"], "--state: the path has to be absolute"), (["start"], "no word is expected"),
                            (["--session", "--verbose"], "--session stands alone")):
            r = subprocess.run([VETHGUARDD, *words], capture_output=True, text=True, timeout=20 * SLOW)
            self.assertEqual((r.returncode, r.stdout), (125, ""), words)
            self.assertIn(says, r.stderr)


# Connects until somebody listens, and then waits for the answer.
WAITS = """
import socket, sys, time
end = time.monotonic() + float(sys.argv[1])
while time.monotonic() < end:
    try:
        s = socket.create_connection(("198.18.0.1", 3128), 1)
        break
    except OSError:
        time.sleep(0.001)
s.settimeout(float(sys.argv[1]))
s.sendall(b"GET http://other.lab.test/ HTTP/1.1\\r\\nHost: other.lab.test\\r\\n\\r\\n")
sys.stdout.write(s.recv(4096).decode().partition("\\r\\n")[0])
"""


class Many(Attached):
    def test_all_are_taken_over(self):
        """One after the other; who can connect to the daemon finds all of them."""
        names = [f"{self.name}-{i}" for i in range(6)]
        for name in names:
            support.netns(self, name)
            self.attach(name, name)
        self.daemon.kill()
        with open(os.path.join(self.daemon.state, "sandboxes", names[2] + ".json"), "w") as f:
            f.write("{")
        self.daemon.start()
        states = {s["name"]: s["state"] for s in self.daemon.call("GET", "/v1/sandboxes")[2]["sandboxes"]}
        self.assertEqual(set(states), {"one", *names})
        self.assertEqual(states.pop(names[2]), "failed")
        for name in names[:2] + names[3:]:
            self.assert_served(name, netns=name)
        self.assertFalse(self.asks(netns=names[2], seconds=2))

    def test_all_are_detached_at_once(self):
        """More than the kernel is asked to take away at a time. Each link is gone when its answer comes, and others are served meanwhile."""
        names = [f"{self.name}-{i}" for i in range(10)]
        for name in names:
            support.netns(self, name)
            self.attach(name, name)
        with concurrent.futures.ThreadPoolExecutor(len(names)) as pool:
            def detach(name):
                status, _, answer = self.daemon.call("DELETE", f"/v1/sandboxes/{name}")
                return status, "summary" in answer, "eth0" in support.sh("ip", "-n", name, "link")
            asked = pool.map(detach, names)
            self.assert_served()
            self.assertEqual(set(asked), {(200, True, False)}, self.daemon.stderr())
        self.assertEqual([s["name"] for s in self.daemon.call("GET", "/v1/sandboxes")[2]["sandboxes"]], ["one"])
        self.assertEqual([len(self.state_files()[d]) for d in ("sandboxes", "netns", "names")], [1, 1, 1])
        self.attach(names[0], names[0])
        self.assert_served(netns=names[0])

    def test_who_connects_meanwhile_waits(self):
        """Once its gate listens a connection is never refused, reset or forgotten: it is its sandbox's worker's."""
        names = [f"{self.name}-{i}" for i in range(6)]
        for name in names:
            support.netns(self, name)
            self.attach(name, name)
        self.daemon.kill()
        clients = [subprocess.Popen(["ip", "netns", "exec", name, support.PYTHON, "-c", WAITS, str(10 * SLOW)], text=True,
                                    stdout=subprocess.PIPE) for name in reversed(names)]
        self.daemon.start()
        for client in clients:
            self.assertRegex(client.communicate(timeout=20 * SLOW)[0], "^HTTP/1.1 403 ")
        self.assertTrue(wait_until(lambda: all(s["state"] == "serving" for s in
                                               self.daemon.call("GET", "/v1/sandboxes")[2]["sandboxes"]), 10 * SLOW))

    def test_ends_while_they_are_taken_over(self):
        for i in range(6):
            support.netns(self, f"{self.name}-{i}")
            self.attach(f"{self.name}-{i}", f"{self.name}-{i}")
        self.daemon.kill()
        with open(self.daemon.stderr_path, "ab") as err:
            self.daemon.process = subprocess.Popen(self.daemon.argv(), stdin=subprocess.DEVNULL, stdout=err, stderr=err)
        self.assertTrue(wait_until(lambda: descendants(self.daemon.process.pid), 10 * SLOW))
        self.assertEqual(self.daemon.stop(), 0, self.daemon.stderr())
        self.assertEqual(len(self.state_files()["sandboxes"]), 7)
        self.daemon.start()
        self.assert_served()


def is_dead(pid):
    with open(f"/proc/{pid}/stat") as f:
        return f.read().rpartition(") ")[2].startswith("Z")


class Priority(Attached):
    """What the scheduler says of each role (sched(7))."""
    RAISED = os.SCHED_RR | os.SCHED_RESET_ON_FORK
    LEFT = {"vethguardd": RAISED, "vethguard-keepe": os.SCHED_OTHER, "vethguard-recor": os.SCHED_BATCH, "vethguard-worke": os.SCHED_OTHER}

    def make_daemon(self):
        return Daemon(options=["--verbose"])

    def schedulers(self):
        """By the program: the policies of its processes."""
        found = {"vethguardd": {os.sched_getscheduler(self.daemon.process.pid)}}
        for pid, row in descendants(self.daemon.process.pid).items():
            with contextlib.suppress(ProcessLookupError):  # a worker that has just been told to end
                found.setdefault(row[0], set()).add(os.sched_getscheduler(pid) & ~os.SCHED_RESET_ON_FORK)
        return found

    def assert_left(self, daemons=RAISED):
        """In a moment: a process that has just been forked is called as the daemon, and says later that it is a batch process."""
        left = {name: {policy} for name, policy in (self.LEFT | {"vethguardd": daemons}).items()}
        found = wait_until(lambda: self.schedulers() == left, 2 * SLOW) and left
        self.assertEqual(found or self.schedulers(), left, self.daemon.stderr())

    def test_only_the_daemon_has_it(self):
        if "ordinary priority" in self.daemon.stderr():
            self.skipTest("nobody has such a priority on this machine")
        self.assert_left()
        for call in ("reload", "pause", "resume"):
            self.assertEqual(self.daemon.call("POST", f"/v1/sandboxes/one/{call}")[0], 200)
            self.assert_left()
        for role in ("keeper", "worker"):
            os.kill(self.pid(role), 9)
            self.assert_served(role)
            self.assert_left()

    def test_nobody_has_it_without_the_capability(self):
        self.daemon.stop()
        self.daemon.start(["setpriv", "--bounding-set", "-sys_nice", "--inh-caps", "-sys_nice", *self.daemon.argv()])
        self.assertIn("the daemon runs at ordinary priority (Operation not permitted)", self.daemon.stderr())
        self.assert_served()
        self.assert_left(daemons=os.SCHED_OTHER)


class Killed(Attached):
    def test_each_role(self):
        self.assert_served()
        for role in ("worker", "keeper", "recorder"):
            pid = self.pid(role)
            os.kill(pid, 9)
            self.assertTrue(wait_until(lambda: not os.path.exists(f"/proc/{pid}"), 5 * SLOW))
            self.assert_served(role)
            self.assertNotEqual(self.pid(role), pid)
        self.assertTrue(self.daemon.event(FINDING))

    def test_a_keeper_that_hangs(self):
        """It neither dies nor answers: nobody would ever be served anything new."""
        pid = self.pid("keeper")
        os.kill(pid, signal.SIGSTOP)
        self.assertTrue(wait_until(lambda: not os.path.exists(f"/proc/{pid}"), 30 * SLOW), self.daemon.stderr())
        self.assert_served("under another keeper")
        self.assertIn("it does not answer any more", self.daemon.stderr())
        self.assertTrue(self.daemon.event(FINDING))

    def test_roles_together(self):
        for pid in [self.pid(role) for role in ROLES]:
            os.kill(pid, 9)
        self.assert_served("all three", 2 * SOON)

    def test_roles_together_while_nobody_looks(self):
        # Whichever death the supervisor hears of first, the others are there already.
        for roles in (list(ROLES)[::-1], list(ROLES)):
            pids = [self.pid(role) for role in roles]
            self.daemon.process.send_signal(signal.SIGSTOP)
            for pid in pids:
                os.kill(pid, 9)
                self.assertTrue(wait_until(lambda p=pid: is_dead(p), 5 * SLOW))
            self.daemon.process.send_signal(signal.SIGCONT)
            self.assert_served("all three", 2 * SOON)
        self.assertNotIn("tried again", self.daemon.stderr())

    def test_a_worker_too_often(self):
        def died():
            pid = self.show()["worker"]["pid"]
            with contextlib.suppress(ProcessLookupError):
                if pid:
                    os.kill(pid, 9)
            return self.show()["state"] == "failed"
        self.assertTrue(wait_until(died, 30 * SLOW), self.show())
        self.assertFalse(self.asks(seconds=2))
        # Nobody is told that it goes on; whoever pauses it finds it paused when it is served again.
        r = self.daemon.cli("resume", "one")
        self.assertEqual(r.returncode, 1, r)
        self.assertRegex(r.stderr, "one has failed, and resuming does not serve it again: .*too often")
        self.assertFalse(self.show()["paused"])
        r = self.daemon.cli("pause", "one", "--reason", "a look")
        self.assertEqual((r.returncode, r.stdout), (0, "one: failed (nobody serves it); it is paused when it is served again\n"), r)
        status, _, answer = self.daemon.call("POST", "/v1/sandboxes/one/resume")
        self.assertEqual((status, self.show()["paused"]), (409, True), answer)
        status, _, answer = self.daemon.call("POST", "/v1/sandboxes/one/reload")
        self.assertEqual((status, answer["state"], answer["reason"]), (200, "paused", "a look"), answer)
        self.assertFalse(self.asks(seconds=2))
        self.assertEqual(self.daemon.cli("resume", "one").stdout, "one: serving\n")
        self.assert_served()

    def test_the_daemon(self):
        self.assert_served()
        before = self.show()
        self.daemon.kill()
        self.assertFalse(self.asks(seconds=2))
        began = time.monotonic()
        self.daemon.start()
        self.assert_served("the daemon is there again")
        self.assertLess(time.monotonic() - began, 3 * SLOW)
        after = self.show()
        for key in ("id", "addresses", "policy", "created", "proxy_port"):
            self.assertEqual(before[key], after[key], key)
        with open(os.path.join(self.daemon.data, "ca", "root.pem")) as f:
            self.assertEqual(f.read(), self.pem)
        self.assertTrue(wait_until(lambda: len([e for e in self.daemon.events(HTTP) if e["http_response"]["code"] == 200]) == 2,
                                   5 * SLOW), self.daemon.events(HTTP))
        self.test_detached_without_a_trace()

    def resolve(self, name="api.lab.test"):
        """Its synthetic IPv4 address, asked for as a program inside does."""
        question = b"\x12\x34\x01\0\0\1\0\0\0\0\0\0" + b"".join(
            bytes([len(p)]) + p for p in name.encode().split(b".")) + b"\0\0\1\0\1"
        ask = ("import socket, sys\ns = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\ns.settimeout(5)\n"
               f"s.connect(('198.18.0.1', 53))\ns.send({question!r})\nprint(socket.inet_ntoa(s.recv(512)[-4:]))\n")
        return support.sh("ip", "netns", "exec", self.name, "python3", "-c", ask).strip()

    def banner(self, address):
        """True: the service that bytes go to by address alone greets."""
        talk = f"import socket\ns = socket.create_connection(({address!r}, 2222), 5)\nprint(s.recv(64))\n"
        r = subprocess.run(["ip", "netns", "exec", self.name, "python3", "-c", talk], capture_output=True, text=True)
        return r.returncode == 0 and "banner" in r.stdout

    def test_cached_addresses_outlive_the_daemon(self):
        with open(self.policy, "w") as f:
            f.write(policy(READS, "tcp://tcp.lab.test:2222", credentials=file_credential()))
        self.assertEqual(self.daemon.call("POST", "/v1/sandboxes/one/reload")[0], 200)
        self.resolve("www.lab.test")
        address = self.resolve("tcp.lab.test")
        self.assertTrue(self.banner(address), address)
        for end in (self.daemon.kill, self.daemon.stop):
            end()
            self.daemon.start()
            self.assertTrue(wait_until(lambda: self.banner(address), SOON), self.daemon.stderr())
        self.daemon.kill()
        (name,) = self.state_files()["names"]
        with open(os.path.join(self.daemon.state, "names", name), "r+b") as f:
            f.truncate(4096)
        with open(os.path.join(self.daemon.state, "names", "0123456789abcdef"), "w"):
            pass
        self.daemon.start()
        self.assert_served()
        self.assertIn("synthetic addresses is damaged", self.daemon.stderr())
        self.assertEqual(self.state_files()["names"], [name])
        self.assertFalse(self.banner(address))
        self.assertTrue(self.banner(self.resolve("tcp.lab.test")))

    def test_workers_that_do_not_finish(self):
        """Each reload leaves one that still holds a connection; of more than four the oldest is ended, its connection with it."""
        with open(self.policy, "w") as f:
            f.write(policy(READS, "tcp://tcp.lab.test:2222", credentials=file_credential()))
        self.assertEqual(self.daemon.call("POST", "/v1/sandboxes/one/reload")[0], 200)
        hold = ("import socket, sys\ns = socket.create_connection((sys.argv[1], 2222), 5)\nprint(s.recv(64), flush=True)\n"
                "print(s.recv(64), flush=True)\n")
        address, held = self.resolve("tcp.lab.test"), []
        for _ in range(6):
            p = subprocess.Popen(["ip", "netns", "exec", self.name, "python3", "-c", hold, address],
                                 stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
            self.addCleanup(p.wait)
            self.addCleanup(p.kill)
            self.addCleanup(p.stdout.close)
            self.assertIn("banner", p.stdout.readline())
            held.append(p)
            self.assertEqual(self.daemon.call("POST", "/v1/sandboxes/one/reload")[0], 200)
        for p in held[:2]:
            p.wait(10 * SLOW)
        self.assertEqual([p.poll() for p in held[2:]], [None] * 4)
        workers = [p for p, row in descendants(self.daemon.process.pid).items() if row[0] == ROLES["worker"]]
        self.assertIn("the oldest one is ended", self.daemon.stderr())
        self.assertLessEqual(len(workers), 1 + 4 + 4, "one serves, four retire, four are in store")
        self.assert_served()

    def test_detached_without_a_trace(self):
        self.assertEqual(self.daemon.call("DELETE", "/v1/sandboxes/one")[0], 200)
        self.assertTrue(wait_until(lambda: not any(self.state_files().values()), 5 * SLOW), self.state_files())

    def test_the_log_has_its_starts_and_ends(self):
        """A start without a stop before it tells of one that was killed."""
        self.daemon.kill()
        self.daemon.start()
        self.daemon.stop()
        own = [e["activity_id"] for e in self.daemon.events(LIFECYCLE) if e["device"]["name"] == "vethguardd"]
        self.assertEqual(own, [3, 3, 4])

    def test_what_is_dropped_meanwhile_is_told_at_the_next_start(self):
        send = ("import socket\ns = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\nn = 0\nwhile n < 200:\n"
                " try: s.sendto(b'x', ('93.184.216.34', 4321)); n += 1\n except OSError: pass\n")

        def told():
            return sum(e.get("count", 1) for e in self.daemon.events(NETWORK) if e.get("status_code") == "fence")

        def dropped():
            return self.daemon.call("GET", "/v1/sandboxes/one/stats")[2]["packets_dropped"]

        self.assert_served()
        for end in (self.daemon.kill, self.daemon.stop):
            with self.subTest(end=end.__name__):
                self.assertTrue(wait_until(lambda: told() == dropped(), 15 * SLOW), f"{told()} of {dropped()} before")
                before = told()
                end()
                support.sh("ip", "netns", "exec", self.name, "python3", "-c", send)
                self.daemon.start()
                self.assertTrue(wait_until(lambda: told() >= before + 200, 15 * SLOW), f"{told() - before} of 200: {self.daemon.stderr()}")
                self.assertEqual(told(), dropped())

    def test_an_orderly_end_leaves_it_closed(self):
        self.assertEqual(self.daemon.stop(), 0)
        self.assertEqual(descendants(self.daemon.process.pid), {})
        self.assertFalse(self.asks(seconds=2))
        self.daemon.start()
        self.assert_served()

    def test_a_recorder_that_hangs_at_the_end(self):
        """What it has not written is not lost: the next daemon's writes it."""
        self.assert_served()
        self.assertTrue(self.daemon.event(HTTP))
        os.kill(self.pid("recorder"), signal.SIGSTOP)
        self.assert_served()
        self.daemon.stop()
        self.assertTrue(self.state_files()["rings"])
        self.assertEqual(len(self.daemon.events(HTTP)), 1)
        self.daemon.start()
        self.assertTrue(wait_until(lambda: len(self.daemon.events(HTTP)) == 2, 5 * SLOW), self.daemon.events(HTTP))
        self.assertTrue(self.daemon.event(LIFECYCLE, activity_id=4), self.daemon.events(LIFECYCLE))
        self.assertTrue(wait_until(lambda: len(self.state_files()["rings"]) == 1, 5 * SLOW), self.state_files())


class Disobedient(Attached):
    """The worker serves and does not hear what the supervisor says."""

    def make_daemon(self):
        folder = support.LAB.path(f"disobedient-{time.monotonic_ns()}")
        shutil.copytree(BIN, folder)
        shutil.copy(os.path.join(HOSTILE, "vethguard-worker"), folder)
        self.misdeed = os.path.join(folder, "misdeed")
        with open(self.misdeed, "w") as f:
            f.write("self willed")
        daemon = Daemon(start=False)
        return daemon.start([os.path.join(folder, "vethguardd"), *daemon.argv()[1:]])

    def test_paused(self):
        self.assert_served()
        self.assertIn("misdeed self willed: done", self.daemon.stderr())
        os.unlink(self.misdeed)  # the next one has heard nothing of the sandbox that could have turned it
        pid = self.pid("worker")
        self.assertEqual(self.daemon.call("POST", "/v1/sandboxes/one/pause", {"reason": "a test"})[0], 200)
        self.assertFalse(os.path.exists(f"/proc/{pid}"), "the worker lives")
        self.assertFalse(self.asks(seconds=2))
        self.assertTrue(self.daemon.event(FINDING))
        self.assertIn("of the paused sandbox did not end by itself", self.daemon.stderr())


class Damaged(Attached):
    def test_one_state_file(self):
        other = support.netns(self, self.name + "o")
        self.attach("two", other)
        self.daemon.kill()
        path = os.path.join(self.daemon.state, "sandboxes", "one.json")
        with open(path) as f:
            text = f.read()
        with open(path, "w") as f:
            f.write(text[:len(text) // 2])
        self.daemon.start()
        self.assert_served(netns=other)
        self.assertEqual(self.show()["state"], "failed")
        self.assertIn("one.json is damaged", self.daemon.stderr())
        found = self.daemon.event(FINDING, **{"finding_info.types": ["sandbox-cut-off"]})
        self.assertEqual(found["device"]["name"], "vethguardd")
        self.assertIn("Sandbox one: the state file one.json is damaged", found["finding_info"]["desc"])
        self.assertFalse(self.asks(seconds=2))
        self.assertEqual(len(self.state_files()["netns"]), 2)

    def test_the_root(self):
        self.daemon.kill()
        path = os.path.join(self.daemon.data, "ca", "root.key")
        with open(path, "rb") as f:
            whole = f.read()
        for broken in (whole[:-1], whole + b"x", b"vgroot1\n" + bytes(400), whole[:40] + bytes([whole[40] ^ 1]) + whole[41:]):
            with open(path, "wb") as f:
                f.write(broken)
            r = subprocess.run(self.daemon.argv(), capture_output=True, text=True, timeout=20 * SLOW)
            self.assertEqual(r.returncode, 125, r)
            self.assertIn("root CA", r.stderr)
            with open(path, "rb") as f:
                self.assertEqual(f.read(), broken)
        with open(path, "wb") as f:
            f.write(whole)
        os.chmod(path, 0o644)
        r = subprocess.run(self.daemon.argv(), capture_output=True, text=True, timeout=20 * SLOW)
        self.assertEqual(r.returncode, 125, r)
        os.chmod(path, 0o600)
        self.daemon.start()
        self.assert_served()
