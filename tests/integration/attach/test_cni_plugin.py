# SPDX-License-Identifier: Apache-2.0
"""vethguard-cni by itself and behind bridge and ptp, run as libcni runs it: every command of the specification and what is
refused."""
import ctypes
import json
import os
import socket
import struct
import subprocess
import time

import cni_case
import cni_engines
import cores
import support
import test_exfiltration
from cni_case import POLICY
from cni_engines import PLUGIN, Chain, ask, environment
from slow_files import SlowFiles
from support import SLOW, sh, wait_until

RETURN_0 = ctypes.create_string_buffer(struct.pack("=BBhi", 0xb7, 0, 0, 0) + struct.pack("=BBhi", 0x95, 0, 0, 0))
LICENSE = ctypes.create_string_buffer(b"Apache-2.0")


def bpf(command, attributes):
    """bpf(2); a descriptor."""
    libc = ctypes.CDLL(None, use_errno=True)
    buffer = ctypes.create_string_buffer(attributes, 128)
    fd = libc.syscall({"x86_64": 321, "aarch64": 280}[os.uname().machine], command, buffer, 128)
    if fd < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return fd


class Commands(cni_case.Plugin):
    def test_version(self):
        answer = ask(PLUGIN, environment("VERSION"), {"cniVersion": "1.0.0"})
        self.assertEqual(answer, {"cniVersion": "1.0.0", "supportedVersions": ["0.4.0", "1.0.0", "1.1.0"]})
        self.fails(1, "use 0.4.0", ask, PLUGIN, environment("STATUS"), {"cniVersion": "0.2.0", "name": "n"})
        answer = self.fails(4, "CNI_COMMAND is not set", ask, PLUGIN, {}, b"")
        self.assertEqual(answer["cniVersion"], "1.1.0")
        self.fails(6, "more than", ask, PLUGIN, environment("STATUS"), b" " * (10 << 20))

    def test_a_life(self):
        """For each version: the link with addresses, routes, name servers; and nothing left afterwards."""
        for version in ("0.4.0", "1.0.0", "1.1.0"):
            with self.subTest(version=version):
                netns, container = self.netns()
                chain = self.chain(version=version)
                result = chain.add(container, netns, "IgnoreUnknown=1;K8S_POD_NAMESPACE=team;K8S_POD_NAME=a;X=y")
                link = json.loads(sh("ip", "-n", os.path.basename(netns), "-j", "addr", "show", "eth0"))[0]
                self.assertEqual(result["interfaces"], [{"name": "eth0", "mac": link["address"], "sandbox": netns}])
                there = {f"{a['local']}/{a['prefixlen']}" for a in link["addr_info"] if a["scope"] == "global"}
                self.assertEqual({ip["address"] for ip in result["ips"]}, there)
                self.assertEqual([ip.get("version") for ip in result["ips"]], ["4", "6"] if version == "0.4.0" else [None, None])
                self.assertEqual([r["dst"] for r in result["routes"]], ["0.0.0.0/0", "::/0"])
                self.assertEqual(result["dns"]["nameservers"], [ip["gateway"] for ip in result["ips"]])
                self.assertEqual(self.curl(netns).stdout, "200")
                self.assertEqual(self.curl(netns, "https://evil.lab.test/").stdout, "403")
                name, = self.names()
                self.assertRegex(name, r"^team\.a-[0-9a-f]{16}$")
                chain.check(container, netns)
                chain.delete(container, netns)
                self.assertEqual(self.names(), [])
                self.assertEqual(self.links(netns), ["lo"])
                chain.delete(container, netns)

    def test_a_core_of_it_shows_no_credential(self):
        """The core is taken when the plugin has its answer, for a sandbox with a credential."""
        netns, container = self.netns()
        with open(f"{self.policies}/secretive.yaml", "w") as f:
            f.write(support.policy("{to: https://api.lab.test, credential: api}", credentials=support.file_credential()))
        chain = self.chain(policy="secretive")
        config = support.LAB.write("secretive.json", json.dumps(chain.config(chain.plugins[-1])))
        with open(config) as f, cores.Blocked([PLUGIN], env=environment("ADD", container, netns, "eth0"), stdin=f) as plugin:
            self.assertEqual(len(self.names()), 1)
            self.assertEqual(cores.found_in(plugin.process.pid, {"secret": support.SECRET}), set())
        chain.results[container] = None
        ask(PLUGIN, environment("DEL", container, netns, "eth0"), chain.config(chain.plugins[-1]))

    def test_behind(self):
        """Behind bridge and ptp: their addresses, the guard's name servers; DEL takes the guard off a link that is down."""
        for before in (cni_engines.bridge("cnibr9", "10.90.0.0/24"), cni_engines.ptp("10.91.0.0/24")):
            with self.subTest(before=before["type"]):
                netns, container = self.netns()
                chain = self.chain([before])
                result = chain.add(container, netns)
                self.assertEqual(self.curl(netns).stdout, "200")
                self.assertEqual(self.curl(netns, "https://evil.lab.test/").stdout, "403")
                info = self.daemon.call("GET", "/v1/sandboxes/" + self.names()[0])[2]
                self.assertIn(info["addresses"]["sandbox4"] + "/", result["ips"][0]["address"])
                self.assertEqual(result["dns"]["nameservers"][0], info["addresses"]["gate4"])
                chain.check(container, netns)
                with test_exfiltration.Watch() as watch:
                    ask(PLUGIN, environment("DEL", container, netns, "eth0"), chain.config(chain.plugins[-1], result))
                    self.assertEqual(self.names(), [])
                    self.assertIn("000", self.curl(netns, "https://10.99.0.66/", 0.3).stdout)
                self.silent(watch)
                self.assertIn("DOWN", sh("ip", "link", "show", info["attachment"]["interface"]))
                chain.delete(container, netns)
                self.assertNotIn(info["attachment"]["interface"], self.links())
        sh("ip", "link", "del", "cnibr9")

    def test_twice(self):
        """The second ADD is an error and does no harm to what the first has made."""
        netns, container = self.netns()
        chain = self.chain()
        chain.add(container, netns)
        self.fails(100, "already", chain.add, container, netns)
        self.fails(100, "already", self.chain(name="other").add, container, netns)
        self.assertEqual(len(self.names()), 1)
        self.assertEqual(self.curl(netns).stdout, "200")
        chain.delete(container, netns)

    def test_delete(self):
        """Before any ADD, again and again, of a namespace that is gone, without one, with other arguments, of a sandbox that the
        daemon has forgotten."""
        netns, container = self.netns()
        chain = self.chain()
        for _ in range(2):
            chain.delete(container, netns)
        for how in ("gone", "none", "forgotten", "arguments"):
            with self.subTest(how=how):
                netns, container = self.netns()
                chain.add(container, netns, "K8S_POD_NAME=one")
                if how == "gone":
                    sh("ip", "netns", "del", os.path.basename(netns))
                if how == "forgotten":
                    self.daemon.call("DELETE", "/v1/sandboxes/" + self.names()[0])
                chain.delete(container, None if how == "none" else netns, "K8S_POD_NAME=two" if how == "arguments" else None)
                self.assertEqual(self.names(), [])

    def test_delete_later(self):
        """The daemon is away: DEL is noted, and the next call that reaches the daemon does it."""
        netns, container = self.netns()
        chain = self.chain([cni_engines.bridge("cnibr9", "10.90.0.0/24")])
        chain.add(container, netns)
        self.daemon.kill()
        chain.delete(container, netns)
        self.assertEqual(self.links(netns), ["lo"])
        self.assertEqual(len(os.listdir(self.daemon.state + "/cni-deleted")), 1)
        self.daemon.start()
        self.assertEqual(len(self.names()), 1)
        other, second = self.netns()
        self.chain().add(second, other)
        self.assertEqual(len(self.names()), 1)
        self.assertEqual(os.listdir(self.daemon.state + "/cni-deleted"), [])
        self.chain().delete(second, other)
        sh("ip", "link", "del", "cnibr9")

    def test_check(self):
        """Every difference is reported; a pause is not one."""
        netns, container = self.netns()
        inside = ["ip", "-n", os.path.basename(netns)]
        chain = self.chain()
        chain.add(container, netns)
        name, = self.names()
        self.daemon.call("POST", f"/v1/sandboxes/{name}/pause", {})
        chain.check(container, netns)
        self.daemon.call("POST", f"/v1/sandboxes/{name}/resume", {})
        sh(*inside, "link", "add", "way0", "type", "veth", "peer", "name", "out")
        self.fails(103, "besides eth0", chain.check, container, netns)
        sh(*inside, "link", "del", "way0")
        sh(*inside, "link", "set", "eth0", "down")
        self.fails(103, "eth0 is down", chain.check, container, netns)
        sh(*inside, "link", "set", "eth0", "up")
        self.fails(103, "no default route|other addresses", chain.check, container, netns)
        other, second = self.netns()
        chain.add(second, other)
        chain.results[second]["ips"][0]["address"] = "10.1.2.3/24"
        self.fails(103, "other addresses", chain.check, second, other)
        self.fails(103, "for the network namespace", lambda: ask(PLUGIN, environment("CHECK", second, netns, "eth0"),
                                                                 chain.config(chain.plugins[0], chain.results[second])))
        self.daemon.call("DELETE", "/v1/sandboxes/" + [n for n in self.names() if n != name][0])
        self.fails(103, "no sandbox", chain.check, second, other)
        self.fails(7, "prevResult", ask, PLUGIN, environment("CHECK", second, other, "eth0"), chain.config(chain.plugins[0]))
        self.daemon.kill()
        self.fails(11, "does not run", chain.check, container, netns)

    def test_gc(self):
        """Sandboxes of this network that are not valid any more go; those of other networks, and what people have attached, stay."""
        pods = [self.netns() for _ in range(4)]
        mine, others = self.chain(), self.chain(name="others")
        for netns, container in pods[:3]:
            mine.add(container, netns)
        others.add(pods[3][1], pods[3][0])
        by_hand, _ = self.netns()
        self.daemon.attach(name="by-hand", netns=by_hand, policy=self.policies + "/agent.yaml")
        valid = [{"containerID": pods[1][1], "ifname": "eth0"}]
        config = {**mine.config(mine.plugins[0]), "cniVersion": "1.1.0"}
        self.fails(7, "missing", ask, PLUGIN, environment("GC"), config)
        ask(PLUGIN, environment("GC"), {**config, "cni.dev/valid-attachments": valid})
        left = self.names()
        self.assertEqual(len(left), 3)
        self.assertIn("by-hand", left)
        labels = sorted(self.daemon.call("GET", "/v1/sandboxes/" + n)[2]["labels"].get("cni.container", "") for n in left)
        self.assertEqual(labels, ["", pods[1][1], pods[3][1]])
        self.assertEqual([self.links(netns) for netns, _ in pods], [["lo"], ["lo", "eth0"], ["lo"], ["lo", "eth0"]])
        ask(PLUGIN, environment("GC"), {**config, "cni.dev/attachments": []})
        self.assertEqual(len(self.names()), 2)

    def test_status(self):
        config = {**self.chain().config(self.guard()), "cniVersion": "1.1.0"}
        ask(PLUGIN, environment("STATUS"), config)
        self.fails(50, "no policy missing.*agent", ask, PLUGIN, environment("STATUS"), {**config, "policy": "missing"})
        self.daemon.kill()
        self.fails(51, "cut off.*systemctl", ask, PLUGIN, environment("STATUS"), config)
        self.daemon.start()
        ask(PLUGIN, environment("STATUS"), config)

    def test_status_not_ready(self):
        """A daemon that still takes over what was there before: one policy lies on a file system that does not answer."""
        mount = support.LAB.path(f"slow-{time.monotonic_ns()}")
        os.makedirs(mount)
        if not SlowFiles.works(mount):
            self.skipTest("this kernel has no FUSE")
        netns, container = self.netns()
        with SlowFiles(mount, {"slow.yaml": POLICY}) as files:
            chain = Chain("agents", [{**self.guard(policy="slow"), "policyDirectory": mount}])
            chain.add(container, netns)
            self.daemon.kill()
            files.stop()
            self.daemon.start(ready=False)
            config = {**chain.config(self.guard()), "cniVersion": "1.1.0"}
            self.fails(50, "not ready", ask, PLUGIN, environment("STATUS"), config)
            other, second = self.netns()
            self.fails(11, "taking its sandboxes over", self.chain().add, second, other)
            self.fails(11, "restarting", ask, PLUGIN, environment("CHECK", container, netns, "eth0"),
                       chain.config(self.guard(), chain.results[container]))
            files.go_on()
            self.assertTrue(wait_until(self.daemon.answers, 20 * SLOW))
        chain.delete(container, netns)

    def test_pods_choose(self):
        def annotated(policy):
            return {"runtimeConfig": {"io.kubernetes.cri.pod-annotations": {"vethguard.org/policy": policy, "other": "x"}}}
        netns, container = self.netns()
        chain = self.chain(podMayChoose=["narrow"], capabilities={"io.kubernetes.cri.pod-annotations": True}, labels={"team": "a"})
        self.fails(102, "podMayChoose", chain.add, container, netns, **annotated("agent2"))
        chain.add(container, netns, **annotated("narrow"))
        info = self.daemon.call("GET", "/v1/sandboxes/" + self.names()[0])[2]
        self.assertEqual((info["policy"]["name"], info["labels"]["team"]), ("narrow", "a"))
        chain.delete(container, netns)
        self.fails(102, "may not choose", self.chain().add, container, netns, **annotated("narrow"))
        self.assertEqual(self.links(netns), ["lo"])


class Refused(cni_case.Plugin):
    """A container that cannot be guarded completely does not start."""

    def test_places(self):
        netns, container = self.netns()
        self.fails(4, "cannot be opened", self.chain().add, container, "/run/netns/nobody")
        self.fails(101, "host's own", self.chain().add, container, "/proc/self/ns/net")
        self.fails(5, "cannot be examined", self.chain().add, container, "/etc/passwd")
        self.fails(4, "named eth0", self.chain().add, container, netns, interface="net1")
        sh("ip", "-n", os.path.basename(netns), "link", "add", "way0", "type", "veth", "peer", "name", "out0")
        self.fails(100, "has an interface", self.chain().add, container, netns)
        self.assertEqual(self.names(), [])

    def behind(self, netns, container, **changes):
        """ADD behind a plugin that has made a veth: changes are members of its result."""
        previous = {"cniVersion": "1.0.0", "interfaces": [{"name": "host0"}, {"name": "eth0", "sandbox": netns}],
                    "ips": [{"address": "10.92.0.2/24", "interface": 1}], **changes}
        chain = self.chain()
        return ask(PLUGIN, environment("ADD", container, netns, "eth0"), chain.config(chain.plugins[0], previous))

    def veth(self, netns, kind=("veth",)):
        name = os.path.basename(netns)
        subprocess.run(["ip", "link", "del", "host0"], capture_output=True)
        sh("ip", "link", "add", "host0", "type", *kind, "peer", "name", "eth0", "netns", name)
        self.addCleanup(subprocess.run, ["ip", "link", "del", "host0"], capture_output=True)
        sh("ip", "addr", "add", "10.92.0.1/24", "dev", "host0")
        sh("ip", "-n", name, "addr", "add", "10.92.0.2/24", "dev", "eth0")
        sh("ip", "link", "set", "host0", "up")
        sh("ip", "-n", name, "link", "set", "eth0", "up")
        sh("ip", "-n", name, "route", "add", "default", "via", "10.92.0.1")

    def test_results(self):
        """prevResult says one thing, the kernel another."""
        netns, container = self.netns()
        self.fails(7, "has no interface eth0", self.behind, netns, container)
        self.veth(netns)
        other, _ = self.netns()
        self.fails(7, "gives no address", self.behind, netns, container, ips=[])
        self.fails(7, "gives no address", self.behind, netns, container,
                   interfaces=[{"name": "host0"}, {"name": "eth0", "sandbox": other}])
        self.fails(7, "other addresses", self.behind, netns, container, ips=[{"address": "10.92.0.3/24", "interface": 1}])
        self.fails(7, "not in interfaces", self.behind, netns, container, ips=[{"address": "10.92.0.2/24", "interface": 7}])
        self.fails(7, "host's end of eth0 is host0", self.behind, netns, container,
                   interfaces=[{"name": "host1"}, {"name": "eth0", "sandbox": netns}])
        self.fails(101, "more than one IPv4", self.behind, netns, container,
                   ips=[{"address": "10.92.0.2/24"}, {"address": "10.92.0.3/24"}])
        self.assertEqual(self.names(), [])
        self.behind(netns, container, interfaces=[{"name": "cni0"}, {"name": "host0", "sandbox": ""}, {"name": "eth0", "sandbox": other},
                                                  {"name": "eth0", "sandbox": "/var" + netns}],
                    ips=[{"address": "10.92.0.9/24", "interface": 2}, {"address": "10.92.0.2/24", "interface": 3}])
        self.assertEqual(self.curl(netns).stdout, "200")

    def test_other_ways(self):
        """A second network, a link that is not a veth, other programs in front of the guard."""
        netns, container = self.netns()
        self.veth(netns)
        name = os.path.basename(netns)
        sh("ip", "-n", name, "link", "add", "net1", "type", "veth", "peer", "name", "net1out")
        self.fails(101, "interface net1", self.behind, netns, container)
        sh("ip", "-n", name, "link", "del", "net1")
        sh("tc", "qdisc", "add", "dev", "host0", "ingress")
        self.fails(101, "before the guard", self.behind, netns, container)
        sh("tc", "qdisc", "del", "dev", "host0", "ingress")
        sh("tc", "qdisc", "add", "dev", "host0", "clsact")
        sh("tc", "filter", "add", "dev", "host0", "ingress", "bpf", "da", "bytecode", "1,6 0 0 0")
        self.fails(101, "before the guard", self.behind, netns, container)
        sh("tc", "filter", "del", "dev", "host0", "ingress")
        self.behind(netns, container)
        self.assertEqual(self.curl(netns).stdout, "200")

    def test_programs(self):
        """eBPF before the guard: tcx (Linux 6.6), as Cilium attaches it today, and XDP."""
        netns, container = self.netns()
        self.veth(netns)
        index = socket.if_nametoindex("host0")
        for name, kind, command, attach in (("tcx", 3, 28, 46), ("xdp", 6, 28, 37)):  # BPF_LINK_CREATE
            with self.subTest(program=name):
                try:
                    program = bpf(5, struct.pack("=IIQQIIQII", kind, 2, ctypes.addressof(RETURN_0), ctypes.addressof(LICENSE), 0, 0, 0, 0, 0))
                    link = bpf(command, struct.pack("=IIII", program, index, attach, 0))
                except OSError as e:
                    self.skipTest(f"this kernel has no {name}: {e}")
                self.fails(101, "before the guard", self.behind, netns, container)
                os.close(link)
                os.close(program)
        self.behind(netns, container)
        self.assertEqual(self.curl(netns).stdout, "200")

    def test_router_without_address(self):
        """Links as Calico makes them: the host's end has no address, and answers for 169.254.1.1."""
        netns, container = self.netns()
        self.veth(netns)
        sh("ip", "addr", "flush", "dev", "host0")
        self.fails(101, "neither host0 nor its bridge has an address", self.behind, netns, container)
        sh("ip", "addr", "add", "fd92::1/64", "dev", "host0")
        self.fails(101, "neither host0", self.behind, netns, container)
        self.assertEqual(self.names(), [])

    def test_macvlan(self):
        netns, container = self.netns()
        sh("ip", "link", "add", "mv0", "link", "up0", "type", "macvlan")
        sh("ip", "link", "set", "mv0", "netns", os.path.basename(netns), "name", "eth0")
        sh("ip", "-n", os.path.basename(netns), "addr", "add", "10.92.0.2/24", "dev", "eth0")
        self.fails(101, "eth0 is a macvlan", self.behind, netns, container)
        sh("ip", "-n", os.path.basename(netns), "link", "del", "eth0")

    def test_policies(self):
        netns, container = self.netns()
        self.fails(7, "no policy nobody in", self.chain(policy="nobody").add, container, netns)
        self.fails(7, "no path", self.chain(policy="../agent").add, container, netns)
        self.fails(2, '"polcy": "agent"', self.chain(polcy="agent").add, container, netns)
        self.fails(11, "does not run", self.chain(socket="/run/nobody.sock").add, container, netns)
        self.assertEqual(self.links(netns), ["lo"])
