# SPDX-License-Identifier: Apache-2.0
"""Somebody else on the host changes what belongs to vethguard: rules, links, addresses, pins, state files, the socket. Each
change is mended with a finding, or the sandbox is closed with a clear message; nothing leaves meanwhile, the daemon lives, and a
neighbor is served all the time."""
import json
import os
import re
import shutil
import subprocess
import time

import daemon_case
import lab
import support
from support import FINDING, PACE, SLOW, sh, wait_until
from test_torture import GATEWAY4, GUEST4, Judge

# Past the proxy, again and again, as long as it may.
PAST = """import socket, time
while True:
    for address, port in (("10.99.0.66", 53), ("10.99.0.80", 1234), ("10.99.0.80", 443)):
        for kind in (socket.SOCK_DGRAM, socket.SOCK_STREAM):
            try:
                s = socket.socket(socket.AF_INET, kind); s.setblocking(False)
                s.connect((address, port)); s.send(b"past")
            except OSError: pass
            finally: s.close()
    time.sleep(0.01)
"""


class Foreign(daemon_case.Attached):
    """One sandbox whose things are changed, with a program inside that tries to get past, and a neighbor."""

    def setUp(self):
        super().setUp()
        self.other = support.netns(self, self.name + "n")
        self.attach("two", self.other)
        self.pin = os.path.join(self.daemon.state, "netns", self.box["id"])
        if not os.path.exists(self.pin):
            self.pin = os.path.join(self.daemon.state, "netns", os.listdir(os.path.join(self.daemon.state, "netns"))[0])
        self.assert_served()
        self.capture = Judge("up0")
        self.capture.__enter__()
        past = subprocess.Popen(["ip", "netns", "exec", self.name, support.PYTHON, "-c", PAST])
        self.addCleanup(past.wait)
        self.addCleanup(past.kill)

    def tearDown(self):
        self.assertIsNone(self.daemon.process.poll(), self.daemon.stderr())
        self.assert_served("the neighbour", netns=self.other, seconds=10 * SLOW)
        self.capture.__exit__()
        self.assertEqual(dict(self.capture.wrong), {})
        for s in self.daemon.call("GET", "/v1/sandboxes")[2]["sandboxes"]:
            self.daemon.call("DELETE", f"/v1/sandboxes/{s['name']}")
        super().tearDown()

    def in_gate(self, *argv):
        return sh("nsenter", f"--net={self.pin}", *argv)

    def mended(self):
        return self.show()["fence"]["mended"]

    def rules(self):
        return sorted(self.in_gate("nft", "-s", "list", "ruleset").splitlines())

    def links(self):
        """But for link-local ones, which come and go as the kernel likes and lead nobody anywhere."""
        lines = self.in_gate("sh", "-c", "ip -o addr; ip rule; ip -6 rule; ip route; ip -6 route").splitlines()
        return sorted(line for line in lines if "fe80" not in line)

    def assert_closed(self, words):
        """Nobody is served, and the reason is reported."""
        self.assertTrue(wait_until(lambda: self.show()["state"] == "failed", 10 * SLOW), (self.show(), self.daemon.stderr()))
        self.assertRegex(json.dumps(self.show()), words)
        self.assertFalse(self.asks(seconds=1))


class Rules(Foreign):
    def change(self, *argv):
        """A change of the rules in the gate; they are as before soon."""
        before, count, at = self.rules(), self.mended(), len(self.daemon.events(FINDING))
        self.in_gate(*argv)
        self.assertTrue(wait_until(lambda: self.mended() > count, 10 * SLOW), (argv, self.daemon.stderr()[-2000:]))
        self.assertTrue(wait_until(lambda: self.rules() == before, 5 * SLOW), (argv, self.rules()))
        self.assertTrue(wait_until(lambda: len(self.daemon.events(FINDING)) > at, 5 * SLOW), "no finding")
        self.assert_served(str(argv), seconds=5 * SLOW)

    def test_flush(self):
        self.change("nft", "flush", "ruleset")

    def test_each_table_is_deleted(self):
        for line in self.in_gate("nft", "list", "tables").splitlines():
            self.change("nft", "delete", *line.split())

    def test_rules_are_deleted_and_added(self):
        items = json.loads(self.in_gate("nft", "-j", "list", "ruleset"))["nftables"]
        chains = {(i["rule"]["family"], i["rule"]["table"], i["rule"]["chain"]) for i in items if "rule" in i}
        self.assertTrue(chains)
        for chain in sorted(chains):
            self.change("nft", "insert", "rule", *chain, "accept")
        for which in (0, -1):
            live = [i["rule"] for i in json.loads(self.in_gate("nft", "-j", "list", "ruleset"))["nftables"] if "rule" in i]
            r = live[which]
            self.change("nft", "delete", "rule", r["family"], r["table"], r["chain"], "handle", str(r["handle"]))

    def test_own_tables_of_somebody_else_do_no_harm(self):
        """Another table may be there; what it lets pass, ours still refuse."""
        self.in_gate("nft", "add table inet foreign; add chain inet foreign a { type filter hook input priority -500; policy accept; }")
        self.assertFalse(self.asks(seconds=1) is None)
        self.assert_served(seconds=5 * SLOW)


class Links(Foreign):
    def changed(self, *argv):
        """Put in order, or closed: both are reported."""
        said, count = len(self.daemon.stderr()), self.mended()
        self.in_gate(*argv)

        def settled():
            shown = self.show()
            if shown["state"] == "failed":
                return True
            return self.mended() > count and self.asks(seconds=2)
        self.assertTrue(wait_until(settled, 15 * SLOW), (argv, self.show(), self.links(), self.daemon.stderr()[-2000:]))
        self.assertIn("one", self.daemon.stderr()[said:])

    def test_the_gates_end_is_deleted(self):
        self.in_gate("ip", "link", "del", "vg0")
        self.assert_closed("link|fence|gate")
        # A reload does not serve without a fence either.
        status, _, answer = self.daemon.call("POST", "/v1/sandboxes/one/reload")
        self.assertEqual(status, 500, answer)
        self.assertRegex(answer["detail"], "its (fence cannot be|link to the gate was taken away)")
        self.assert_closed("link|fence|gate")

    def test_the_sandboxs_end_is_deleted(self):
        sh("ip", "-n", self.name, "link", "del", "eth0")
        self.assert_closed("link|fence|gate")

    def test_routes_go(self):
        for version in ("-4", "-6"):
            self.changed("ip", version, "rule", "del", "iif", "vg0")
            self.changed("ip", version, "route", "flush", "table", "100")

    def test_rules_of_routing_are_flushed(self):
        for version in ("-4", "-6"):
            before = self.links()
            self.changed("ip", version, "rule", "flush")
            self.assertTrue(wait_until(lambda b=before: self.links() == b, 5 * SLOW), (before, self.links()))

    def test_every_route_goes(self):
        before = self.links()
        for version in ("-4", "-6"):
            self.changed("ip", version, "route", "flush", "table", "main")
        self.assertTrue(wait_until(lambda b=before: self.links() == b, 5 * SLOW), (before, self.links()))

    def test_addresses_go(self):
        self.changed("ip", "addr", "flush", "dev", "vg0")

    def test_the_link_goes_down(self):
        self.changed("ip", "link", "set", "vg0", "down")

    def test_sysctl(self):
        """Nothing to forward to: the gate has no other link. It is refused by the rules as well."""
        for name, value in (("ipv4.ip_forward", 1), ("ipv6.conf.all.forwarding", 1), ("ipv4.conf.vg0.rp_filter", 2),
                            ("ipv4.conf.vg0.forwarding", 1)):
            before = self.in_gate("sysctl", "-n", f"net.{name}")
            self.changed("sysctl", "-qw", f"net.{name}={value}")
            self.assertEqual(self.in_gate("sysctl", "-n", f"net.{name}"), before)

    def test_a_way_out_is_added(self):
        """Somebody gives the gate an uplink and forwards: the rules still refuse what the worker did not send."""
        sh("ip", "link", "add", "out-of-it", "type", "veth", "peer", "name", "uplink")
        self.addCleanup(subprocess.run, ["ip", "link", "del", "out-of-it"], check=False, stderr=subprocess.DEVNULL)
        with open(self.pin) as gate:
            subprocess.run(["ip", "link", "set", "uplink", "netns", f"/proc/self/fd/{gate.fileno()}"], check=True,
                           pass_fds=(gate.fileno(),))
        with Judge("out-of-it") as further:
            sh("ip", "addr", "add", "172.31.9.1/24", "dev", "out-of-it")
            sh("ip", "link", "set", "out-of-it", "up")
            self.in_gate("sysctl", "-qw", "net.ipv4.ip_forward=1", "net.ipv6.conf.all.disable_ipv6=1")
            self.in_gate("ip", "addr", "add", "172.31.9.2/24", "dev", "uplink")
            self.in_gate("ip", "link", "set", "uplink", "up")
            self.in_gate("ip", "route", "replace", "default", "via", "172.31.9.1")
            time.sleep(0.3)
        arrived = [f for kind, f in further.all if kind != lab.Capture.OUTGOING and b"past" in f]
        self.assertEqual(arrived, [])


class Diverted(Foreign):
    """Of an interface of the host."""

    def setUp(self):
        self.addCleanup(self.no_tables)
        super().setUp()

    def attach(self, name="one", netns=None, **more):
        if name != "one":
            return super().attach(name, netns, **more)
        self.plug_in()
        return self.daemon.attach(name=name, interface="vforeign", policy=self.policy, **more)

    def plug_in(self):
        """The interface that a container engine would make: one end on the host, the other in the sandbox."""
        sh("ip", "link", "add", "vforeign", "type", "veth", "peer", "name", "eth0", "netns", self.name)
        self.addCleanup(self.no_link)
        sh("ip", "addr", "add", GATEWAY4 + "/24", "dev", "vforeign")
        sh("ip", "link", "set", "vforeign", "up")
        sh("ip", "-n", self.name, "addr", "add", GUEST4 + "/24", "dev", "eth0")
        sh("ip", "-n", self.name, "link", "set", "eth0", "up")
        sh("ip", "-n", self.name, "route", "add", "default", "via", GATEWAY4)

    @staticmethod
    def no_link():
        """At once: with its peer's namespace it goes only when the kernel comes to it."""
        subprocess.run(["ip", "link", "del", "vforeign"], check=False, stderr=subprocess.DEVNULL)

    @staticmethod
    def no_tables():
        for family in ("netdev", "inet", "bridge"):
            subprocess.run(["nft", "delete", "table", family, "vethguard-divert"], check=False, stderr=subprocess.DEVNULL)

    def curl(self, *argv, netns=None, seconds=10):
        proxy = f"http://{GATEWAY4}:3128" if netns in (None, self.name) else daemon_case.PROXY
        return subprocess.run(["ip", "netns", "exec", netns or self.name, "curl", "-sS", "-m", str(seconds * PACE),
                               "--cacert", self.ca, "-x", proxy, *argv], capture_output=True, text=True)

    def host_rules(self):
        return sorted(sh("nft", "-s", "list", "ruleset").splitlines())

    def change(self, *argv):
        before, count = self.host_rules(), self.mended()
        sh(*argv)
        self.assertTrue(wait_until(lambda: self.mended() > count, 10 * SLOW), (argv, self.daemon.stderr()[-2000:]))
        self.assertTrue(wait_until(lambda: self.host_rules() == before, 5 * SLOW), (argv, before, self.host_rules()))
        self.assert_served(str(argv), seconds=5 * SLOW)

    def test_flush_on_the_host(self):
        self.change("nft", "flush", "ruleset")

    def test_flush_on_a_host_that_forwards(self):
        """Nothing passes in the moment until the rules are there again: setUp's program tries all the time."""
        before = sh("sysctl", "-n", "net.ipv4.ip_forward").strip()
        self.addCleanup(sh, "sysctl", "-qw", f"net.ipv4.ip_forward={before}")
        sh("sysctl", "-qw", "net.ipv4.ip_forward=1")
        for _ in range(5):
            self.change("nft", "flush", "ruleset")
        count = self.mended()
        for _ in range(50):
            sh("nft", "flush", "ruleset")
        self.assertTrue(wait_until(lambda: self.mended() > count, 10 * SLOW))
        self.assert_served(seconds=5 * SLOW)

    def test_filters_go(self):
        def filters():
            return [re.sub(r" id \d+", "", sh("tc", "filter", "show", "dev", "vforeign", hook)) for hook in ("ingress", "egress")]
        before = filters()
        self.assertIn("vethguard-divert", str(before))
        for words in (("filter", "del", "dev", "vforeign", "ingress"), ("filter", "del", "dev", "vforeign", "egress"),
                      ("qdisc", "del", "dev", "vforeign", "clsact")):
            self.change("tc", *words)
            self.assertTrue(wait_until(lambda: filters() == before, 5 * SLOW), (words, before, filters()))

    def test_each_table_is_deleted(self):
        for line in sh("nft", "list", "tables").splitlines():
            if "vethguard" in line:
                self.change("nft", "delete", *line.split())

    def test_an_accept_before_ours(self):
        for item in json.loads(sh("nft", "-j", "list", "ruleset"))["nftables"]:
            if "chain" in item and item["chain"]["table"] == "vethguard-divert":
                c = item["chain"]
                self.change("nft", "insert", "rule", c["family"], c["table"], c["name"], "accept")

    def test_the_hosts_end_of_the_gates_link_is_deleted(self):
        sh("ip", "link", "del", re.search(r'chain in-vforeign {.*?fwd to "?(vg\w+)', sh("nft", "list", "ruleset"), re.S)[1])
        self.assert_closed("link|fence|gate|interface")

    def test_the_interface_goes_and_comes_back(self):
        sh("ip", "link", "del", "vforeign")
        self.assertFalse(self.asks(seconds=1))
        self.plug_in()
        self.assertTrue(wait_until(lambda: self.show()["state"] == "failed" or self.asks(seconds=2), 15 * SLOW),
                        (self.show(), self.daemon.stderr()))


class Files(Foreign):
    def restart(self):
        self.daemon.kill()
        self.daemon.start()

    def path(self, *names):
        return os.path.join(self.daemon.state, *names)

    def test_the_pin_goes(self):
        sh("umount", self.pin)
        os.unlink(self.pin)
        self.assert_served()  # the daemon holds the gate itself
        self.restart()
        self.assert_closed("gate")

    def test_the_pin_is_something_else(self):
        sh("umount", self.pin)
        for make in (lambda: os.symlink("/proc/1/ns/net", self.pin), lambda: os.mkfifo(self.pin), lambda: os.mkdir(self.pin),
                     lambda: sh("mount", "--bind", "/proc/self/ns/net", (open(self.pin, "w").close(), self.pin)[1])):
            if os.path.isdir(self.pin) and not os.path.islink(self.pin):
                os.rmdir(self.pin)
            else:
                os.unlink(self.pin)
            make()
            self.restart()
            self.assert_closed("gate")
        sh("umount", self.pin)

    def test_the_state_file_goes(self):
        self.daemon.kill()
        os.unlink(self.path("sandboxes", "one.json"))
        self.daemon.start()
        self.assertEqual(self.daemon.call("GET", "/v1/sandboxes/one")[0], 404)
        self.assertFalse(self.asks(seconds=1))

    def test_the_state_file_is_something_else(self):
        path = self.path("sandboxes", "one.json")
        with open(path) as f:
            text = f.read()
        other = self.path("sandboxes", "two.json")
        with open(other) as f:
            neighbours = f.read()
        for make in (lambda: os.symlink(other, path), lambda: os.mkfifo(path), lambda: os.mkdir(path),
                     lambda: self.write_file(path, b""), lambda: self.write_file(path, b"{}" * 200000),
                     lambda: self.write_file(path, neighbours.encode()),
                     lambda: self.write_file(path, text.encode(), 0o666)):
            self.daemon.kill()
            if os.path.isdir(path) and not os.path.islink(path):
                os.rmdir(path)
            else:
                os.unlink(path)
            make()
            self.daemon.start()
            self.assert_closed("one")
            self.assert_served("the neighbour", netns=self.other, seconds=5 * SLOW)

    @staticmethod
    def write_file(path, data, mode=0o600):
        with open(path, "wb") as f:
            f.write(data)
        os.chmod(path, mode)

    def test_garbage(self):
        self.daemon.kill()
        names = ["x", "x.json", ".json", "..json", "a" * 200 + ".json", "\n.json", "0000000000000001.0000000000000002", "ffffffffffffffff.1",
                 "journal", "unfinished"]
        for folder in ("sandboxes", "netns", "rings", "told"):
            for name in names:
                self.write_file(self.path(folder, name), os.urandom(300))
            os.symlink("/etc/passwd", self.path(folder, "link.json"))
            os.mkfifo(self.path(folder, "0000000000000001.0000000000000003"))
            os.mkdir(self.path(folder, "folder"))
        with open("/etc/passwd") as f:
            users = f.read()
        self.daemon.start()
        self.assert_served(seconds=5 * SLOW)
        with open("/etc/passwd") as f:
            self.assertEqual(f.read(), users)
        self.assertEqual(self.daemon.stop(), 0)
        self.daemon.start()

    def test_the_folders_go(self):
        for folder in ("rings", "told"):
            self.daemon.kill()
            shutil.rmtree(self.path(folder))
            self.daemon.start()
            self.assert_served(folder, seconds=5 * SLOW)

    def test_the_folders_go_while_it_runs(self):
        """Nothing new can begin; sandboxes that are served go on."""
        shutil.rmtree(self.path("rings"))
        shutil.rmtree(self.path("told"))
        self.assert_served()
        os.kill(self.show()["worker"]["pid"], 9)
        self.assertTrue(wait_until(lambda: "one: no worker can be started" in self.daemon.stderr(), 15 * SLOW), self.show())
        self.assertFalse(self.asks(seconds=1))
        self.restart()
        self.assert_served(seconds=5 * SLOW)

    def test_the_control_socket_goes(self):
        os.unlink(self.daemon.socket)
        self.assertTrue(self.asks())
        self.restart()
        self.assertTrue(wait_until(lambda: self.show()["state"] == "serving", 5 * SLOW))

    def test_the_control_socket_is_something_else(self):
        for make in (lambda: os.symlink("/etc/passwd", self.daemon.socket), lambda: os.mkfifo(self.daemon.socket),
                     lambda: self.write_file(self.daemon.socket, b"x")):
            self.daemon.kill()
            os.unlink(self.daemon.socket)
            make()
            r = None
            try:
                self.daemon.start()
            except AssertionError as e:
                r = str(e)
            if r is None:
                self.assert_served(seconds=5 * SLOW)
                continue
            self.assertIn("control socket", r)
            self.assertFalse(self.asks(seconds=1))
            os.unlink(self.daemon.socket)
            self.daemon.start()
