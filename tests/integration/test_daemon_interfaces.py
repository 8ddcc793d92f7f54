# SPDX-License-Identifier: Apache-2.0
"""The daemon: interfaces of the host that it guards, whatever happens to them, to the rules and to the daemon."""
import concurrent.futures
import ctypes
import json
import os
import select
import socket
import subprocess
import time

import support
from daemon_case import SOON, Attached
from support import FINDING, PACE, SLOW, wait_until


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


class Numbered(Attached):
    """Root inside whose CAP_NET_ADMIN counts in the host's user namespace too, as in a container that has none of its own: the kernel
    lets it make links in every namespace that its own has a number for, which it has for the other end of its link."""
    MARK = b"VGNUMBER" * 4
    RIGHTS = "-all,+net_admin,+net_raw"

    def attack(self, netns):
        """Makes links on top of every link that can be named by a namespace's number, which the kernel tells a caller that lists links, and sends a frame out of each.
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
        """Control for the test above: here the other end of the link is the host's, as that of an interface is."""
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
        """A name of bytes that a terminal would obey: no command prints them unchanged."""
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
            self.assertEqual((status, answer["detail"]), (409, f"interface {self.port} already belongs to sandbox port: detach that sandbox first"))
        self.daemon.kill()
        self.daemon.start()
        self.assertTrue(wait_until(lambda: self.show("port")["state"] == "serving", SOON), self.show("port"))
        status, _, answer = self.daemon.call("DELETE", "/v1/sandboxes/port")
        self.assertEqual((status, answer["opened"]), (200, self.port))
        self.assertTrue(self.meets_the_host())

    def test_it_goes_and_comes_back(self):
        """Like the interface of a container that is stopped and started: meanwhile it does not count as served."""
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
        self.assertIn("vethguard: warning: this is a user-defined network of Docker", r.stderr)

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
        """The remains of an attach that was never answered are removed, and nothing else."""
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
