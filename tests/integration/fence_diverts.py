#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Root behind a diverted interface sends every kind of frame it can think of; nobody but the gate sees one.

Five namespaces: sandbox | host | gate, and on the host a neighbor's container and the outside. The host is as careless as
one can be: it forwards, translates addresses, shows bridged frames to its IP rules, accepts redirects and source routes.
One run without a guard proves that each witness would see a leak. Further runs take parts of the guard away, or do to the
interface what can happen to one. Usage (as root): fence_diverts.py [FENCE_TOOL]
"""
import errno
import fcntl
import functools
import os
import socket
import struct
import subprocess
import sys
import time

import fence_leaks
from fence_frames import (GATE4, GATE6, GATE_MAC, OUTSIDE_MAC, SANDBOX4, SANDBOX6, SANDBOX_MAC, UPLINK4, UPLINK6, UPLINK_MAC,
                          DIVERT_MARKS, all_cases, at_the_bridge, broken, offloads, to_the_sandbox)
from fence_leaks import TOOL, check, check_records, enter, is_gate_chatter, packet_socket, received

NEIGHBOUR4, NEIGHBOUR6, NEIGHBOUR_MAC = "10.77.0.3", "fd77::3", "02:00:00:00:00:03"
OTHER_MAC = "02:00:00:00:02:02"
PORT_MAC = "02:00:00:00:00:04"  # of the bridge's port to the neighbor
LINK = "vg00000001"
LONG = os.environ.get("VETHGUARD_LONG") == "1"
# A bridge learns the sender of a reserved frame before it asks anybody; only the first wall keeps it from that.
LEARNS = "fdb"
LISTENER_REPORTS = ("Icmp6InGroupMembQueries", "Icmp6InGroupMembResponses", "Icmp6InGroupMembReductions", "Icmp6InMLDv2Reports")
TCP_PORT = 40000  # which one the listener has makes no difference here
TUNSETIFF, IFF_TAP, IFF_NO_PI, IFF_VNET_HDR = 0x400454ca, 2, 0x1000, 0x4000
NO_OFFLOAD = bytes(10)  # struct virtio_net_hdr
NAT = "table ip nat { chain post { type nat hook postrouting priority 100; oifname \"up0\" masquerade; }; " \
      "chain pre { type nat hook prerouting priority -100; udp dport 4242 dnat to 192.0.2.2; }; }; " \
      "table ip filter { chain forward { type filter hook forward priority 0; accept; }; }"


class World:
    """kind: veth, port, bridge, tap or tap-port: what the guarded interface is."""

    def __init__(self, kind):
        self.kind = kind
        self.names = {k: f"vgd{os.getpid()}{k}" for k in ("sb", "h", "gt", "nb", "out")}
        self.fence = self.divert = self.tap = self.owner = None
        self.lines, self.sockets = [], {}
        self.shell("".join(f"ip netns add {n}\n" for n in self.names.values()))
        self.interface = {"veth": "p1", "port": "p1", "bridge": "br0", "tap": "tap0", "tap-port": "tap0"}[kind]
        self.wire = "tap0" if "tap" in kind else "p1"
        self.make_host()
        self.make_wire()
        self.make_gate()
        self.sandbox = None if self.tap else packet_socket(self.names["sb"], "eth0")
        if self.sandbox:  # a mark of one's own counts for nothing on the other side
            self.sandbox.setsockopt(socket.SOL_SOCKET, socket.SO_MARK, DIVERT_MARKS[0])
        self.sockets = {"uplink": packet_socket(self.names["out"], "eth0"), "another interface": packet_socket(self.names["out"], "eth1"),
                        "neighbour": packet_socket(self.names["nb"], "eth0")}
        self.before = self.host_state()

    def shell(self, script, name=None):
        prefix = ["ip", "netns", "exec", self.names[name]] if name else []
        r = subprocess.run(prefix + ["sh", "-e"], input=script, capture_output=True, text=True)
        if r.returncode:
            raise RuntimeError(f"{script}: {r.stderr}")
        return r.stdout

    def make_host(self):
        n = self.names
        quiet = "sysctl -qw net.ipv6.conf.all.disable_ipv6=1 net.ipv6.conf.default.disable_ipv6=1\n"
        self.shell(quiet, "nb")
        self.shell(quiet, "out")
        self.shell(quiet, "sb")
        self.shell(f"""ip link set lo up
sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1 net.ipv4.conf.all.rp_filter=0 net.ipv4.conf.default.rp_filter=0 \
 net.ipv4.conf.all.accept_source_route=1 net.ipv4.conf.default.accept_source_route=1 net.ipv4.conf.default.accept_redirects=1 \
 net.ipv6.conf.default.accept_dad=0 net.ipv6.conf.default.accept_ra=2 net.ipv4.icmp_echo_ignore_broadcasts=0 \
 net.ipv4.conf.all.arp_accept=1 net.ipv4.conf.default.arp_accept=1
ip link add br0 address {GATE_MAC} type bridge
ip link add br1 type bridge
ip link add p2 address {PORT_MAC} type veth peer name eth0 address {NEIGHBOUR_MAC} netns {n['nb']}
ip link add up0 address {UPLINK_MAC} type veth peer name eth0 address {OUTSIDE_MAC} netns {n['out']}
ip link add oth0 type veth peer name eth1 address {OTHER_MAC} netns {n['out']}
ip link set p2 master {"br1" if self.kind == "bridge" else "br0"}
ip link set br0 up promisc on
ip link set br1 up
ip link set p2 up; ip link set up0 up; ip link set oth0 up
ip addr add 10.79.0.1/24 dev oth0
ip addr add {UPLINK4}/24 dev up0; ip -6 addr add {UPLINK6}/64 dev up0 nodad
ip neigh replace 192.0.2.2 lladdr {OUTSIDE_MAC} dev up0; ip -6 neigh replace 2001:db8:f::2 lladdr {OUTSIDE_MAC} dev up0
ip route replace default via 192.0.2.2; ip -6 route replace default via 2001:db8:f::2
ip neigh replace 10.79.0.9 lladdr {OTHER_MAC} dev oth0
sysctl -qw net.bridge.bridge-nf-call-iptables=1 net.bridge.bridge-nf-call-ip6tables=1 || true
echo '{NAT}' | nft -f -
""", "h")
        self.shell("ip link set eth0 up", "nb")
        self.shell("ip link set eth0 up; ip link set eth1 up", "out")

    def make_wire(self):
        """Sets the way to the sandbox; may be called again after it was removed."""
        n, routed = self.names, self.kind in ("veth", "tap")
        if "tap" in self.kind:
            if self.tap is None:
                with open("/proc/self/ns/net") as home:
                    enter(n["h"])
                    self.tap = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
                    fcntl.ioctl(self.tap, TUNSETIFF, struct.pack("16sH22x", b"tap0", IFF_TAP | IFF_NO_PI | IFF_VNET_HDR))
                    fence_leaks.LIBC.setns(home.fileno(), fence_leaks.CLONE_NEWNET)
        else:
            self.shell(f"ip link add p1 type veth peer name eth0 address {SANDBOX_MAC} netns {n['sb']}", "h")
            self.shell("ip link set eth0 up", "sb")
        router = self.wire if routed else "br0"
        self.shell((f"ip link set {self.wire} address {GATE_MAC}\n" if routed else f"ip link set {self.wire} master br0\n") +
                   f"ip link set {self.wire} up\n"
                   f"ip addr replace {GATE4}/24 dev {router}; ip -6 addr replace {GATE6}/64 dev {router} nodad\n"
                   "for f in /proc/sys/net/ipv*/neigh/*/retrans_time_ms; do echo 100 > $f; done", "h")  # see settle()

    def make_gate(self):
        n = self.names
        self.shell(f"ip link add vg0 address {GATE_MAC} type veth peer name {LINK} netns {n['h']}\n"
                   "sysctl -qw net.ipv6.conf.default.accept_dad=0 net.ipv4.icmp_ratelimit=0\n"
                   f"ip link set lo up; ip link set vg0 up; ip addr add {GATE4}/24 dev vg0; ip -6 addr add {GATE6}/64 dev vg0 nodad", "gt")
        self.shell(f"sysctl -qw net.ipv6.conf.{LINK}.disable_ipv6=1; ip link set {LINK} up", "h")

    def start(self, *options):
        def tool(name, *words):
            return subprocess.Popen(["ip", "netns", "exec", self.names[name], TOOL, *words], stdin=subprocess.PIPE,
                                    stdout=subprocess.PIPE, text=True)

        sandbox = ("10.77.0.0", "fd77::") if "--networks" in options else (SANDBOX4, SANDBOX6)
        self.fence = tool("gt", *options, "vg0", *sandbox, GATE4, GATE6, "123")
        self.port = int(self.fence.stdout.readline().split("=")[1])
        self.divert = tool("h", "--divert", self.interface, LINK)
        if self.divert.stdout.readline() != "ready\n":
            raise RuntimeError("no divert")
        self.before = self.host_state()
        for s in self.sockets.values():
            received(s)

    def tell(self, word):
        self.divert.stdin.write(word + "\n")
        self.divert.stdin.flush()
        return int(self.divert.stdout.readline())

    def close(self):
        for tool in (self.fence, self.divert):
            if tool:
                self.lines += tool.communicate()[0].splitlines()
        self.fence = self.divert = None
        if self.owner:
            self.owner.kill()
            self.owner.communicate()
        if self.tap is not None:
            os.close(self.tap)
        for s in [*self.sockets.values(), self.sandbox]:
            if s:
                s.close()
        for name in self.names.values():
            subprocess.run(["ip", "netns", "del", name], capture_output=True)

    def send(self, frame):
        try:
            if self.tap is not None:
                os.write(self.tap, NO_OFFLOAD + frame)
            else:
                self.sandbox.send(frame)
        except OSError:
            pass  # a frame that the kernel does not take there

    def send_offloads(self):
        """Checksums and segments that a virtual machine can leave to the host's kernel."""
        for frame in offloads():
            try:
                os.write(self.tap, frame)
            except OSError:
                pass  # as above

    def arrived(self):
        """Frames that reached the sandbox."""
        if self.tap is None:
            return received(self.sandbox, 0.1)
        frames = []
        time.sleep(0.1)
        while True:
            try:
                frames.append(os.read(self.tap, 65536)[len(NO_OFFLOAD):])
            except OSError:
                return frames

    def host_state(self):
        """Packets that the host's stack took, and entries of its tables about others."""
        counters = dict(zip(*[line.split()[1:] for line in self.shell("grep ^Ip: /proc/net/snmp", "h").splitlines()]))
        counters |= dict(line.split() for line in self.shell("cat /proc/net/snmp6", "h").splitlines())
        self.snmp6, self.snmp6_before = {k: int(v) for k, v in counters.items() if "6" in k}, getattr(self, "snmp6", {})
        listeners = sum(int(v) for k, v in counters.items() if k in LISTENER_REPORTS)  # a querier asks for them now and then
        own = "fdb" if self.kind != "bridge" else "none"  # a whole bridge is the sandbox's own
        return {"delivered": int(counters["InDelivers"]), "delivered, v6": int(counters["Ip6InDelivers"]) - listeners,
                "neighbours": self.shell("ip -4 neigh | grep -v PERMANENT || true; ip -6 neigh | grep -v PERMANENT || true", "h").replace("FAILED", "INCOMPLETE"),
                "fdb": self.shell(f"bridge fdb show | grep -i {SANDBOX_MAC} || true", "h") if own == "fdb" else "",
                "routes": self.shell("ip route show table all; ip -6 route show table all | grep -v fe80 | grep -v ff00", "h"),
                "mdb": self.shell("bridge mdb show dev br0 | grep -v ff02 || true", "h") if own == "fdb" else ""}

    def settle(self):
        """Until the host asks no longer for addresses that nobody has: when it gives up it tells itself so by ICMP, and that is delivered."""
        end = time.monotonic() + 30
        while "INCOMPLETE" in self.shell("ip -4 neigh; ip -6 neigh", "h") and time.monotonic() < end:
            time.sleep(0.05)

    def seen(self):
        """Witness -> what it saw that it must not."""
        time.sleep(0.1)
        out = {}
        for name, s in self.sockets.items():
            frames = [f for f in received(s) if not is_host_chatter(f) and b"VGIN" not in f]  # VGIN: an answer to to_the_sandbox()
            if frames:
                out[name] = frames
        now = self.host_state()
        out |= {k: (v, now[k]) for k, v in self.before.items() if now[k] != v and (
            k != "neighbours" or set(now[k].split("\n")) - set(v.split("\n")))}  # the kernel forgets who did not answer
        if "delivered, v6" in out:
            changed = {k: v for k, v in self.snmp6.items() if v != self.snmp6_before.get(k, v)}
            out["of which"] = [" ".join(f"{k} {v}" for k, v in changed.items())]
        return out


def is_host_chatter(frame):
    """Frames that the host's own kernel sends unasked: neighbor discovery and listener reports of its own addresses, spanning tree."""
    if is_gate_chatter(frame) or frame[:12] == fence_mac("01:80:c2:00:00:00") + fence_mac(PORT_MAC):
        return True
    if frame[12:14] == b"\x08\x06" and frame[22:28] == fence_mac(GATE_MAC):  # who asked for the sandbox before
        return frame[20:22] == b"\0\1"
    if frame[12:14] == b"\x08\x00" and frame[23] == 2:  # the host's own groups
        return frame[26:30] in map(socket.inet_aton, ("0.0.0.0", GATE4, "10.77.0.9", "10.79.0.1", UPLINK4))
    kind = frame[62] if len(frame) > 62 and frame[20] == 0 else frame[54] if len(frame) > 54 else 0
    return frame[12:14] == b"\x86\xdd" and frame[20] in (0, 58) and kind in (130, 131, 132, 133, 134, 135, 143) and \
        frame[6:12] not in map(fence_mac, (SANDBOX_MAC, NEIGHBOUR_MAC))


def fence_mac(text):
    return bytes(int(x, 16) for x in text.split(":"))


@functools.lru_cache(1)
def everything(port):
    return all_cases(port) + at_the_bridge(NEIGHBOUR_MAC, NEIGHBOUR4, NEIGHBOUR6)


def send_all(world, cases):
    for case in cases:
        for frame in case.frames:
            world.send(frame)


def control():
    """Without a guard each witness sees something."""
    for kind, witnesses in (("port", ("uplink", "another interface", "neighbour", "delivered", "delivered, v6", "neighbours", "fdb",
                                      "mdb")),
                            ("veth", ("uplink", "delivered", "delivered, v6", "neighbours")),
                            ("bridge", ("uplink", "delivered", "neighbours", "another interface"))):
        world = World(kind)
        try:
            if kind == "bridge":
                a_network_joins(world)
            send_all(world, everything(TCP_PORT))
            seen = world.seen()
            for name in witnesses:
                check(f"control, {kind}: without a guard there is a leak at {name}", name in seen, str(list(seen)))
        finally:
            world.close()


def nobody_sees(world, label, may_see=()):
    send_all(world, everything(TCP_PORT))
    if world.tap is not None:
        world.send_offloads()
    seen = {k: (len(v), v[:2]) for k, v in world.seen().items() if k not in may_see}
    check(f"{label}: nobody but the gate sees a frame", not seen, str(seen))
    check_inward(world, label)


def whole(kind, *options):
    """All as it should be."""
    label = " ".join((kind,) + options)
    world = World(kind)
    try:
        world.start(*options)
        nobody_sees(world, label)
        check(f"{label}: the host's rules are as they were", world.tell("check") == 0)
        # On a whole bridge, the host's own br_netfilter drops broken headers before the interface has them.
        bridge_filters = kind == "bridge" and "1" in world.shell("cat /proc/sys/net/bridge/bridge-nf-call-iptables || true", "h")
        check(f"{label}: they can be taken away", world.tell("remove") == 0)
        check(f"{label}: and leave nothing", "vethguard" not in world.shell("nft list ruleset", "h"))
        check(f"{label}: nor filters", "clsact" not in world.shell("tc qdisc show", "h"))
        time.sleep(0.3)  # the log's gathering time
        world.lines += world.fence.communicate()[0].splitlines()
        world.fence = None
        check_records(world, label, () if bridge_filters else broken(), False)
    finally:
        world.close()


def damaged(kind, *damages):
    """One after the other: (what happened, function, witnesses that may see something)."""
    world = World(kind)
    try:
        world.start()
        for text, damage, *may_see in damages:
            damage(world)
            world.settle()
            world.seen()  # what the damage itself made the host say
            world.before = world.host_state()
            nobody_sees(world, f"{kind}, {text}", may_see)
    finally:
        world.close()


def check_inward(world, label):
    """Nobody reaches what is behind the interface."""
    world.arrived()
    for name, where, frame in to_the_sandbox(NEIGHBOUR_MAC, NEIGHBOUR4, NEIGHBOUR6):
        world.sockets[where].send(frame)
    world.shell(f"ping -c 1 -W 0.1 -p 5647494e {SANDBOX4} || true; ping -c 1 -W 0.1 -p 5647494e {SANDBOX6} || true", "h")
    got = [f for f in world.arrived() if b"VGIN" in f]
    check(f"{label}: nobody reaches the sandbox", not got, str(got[:1]))


def wall_alone(world):
    world.shell("nft delete table netdev vethguard-divert", "h")
    take_filters(world)


def take_filters(world):
    for name in {world.interface, world.wire, LINK}:
        world.shell(f"tc qdisc del dev {name} clsact 2>/dev/null || true", "h")


def filters_gone(world):
    take_filters(world)
    check(f"{world.kind}: that filters are gone is noticed", world.tell("check") == -errno.ESTALE)


def rules_gone(world):
    """Flushes everybody's rules; owners of other rules set them again, as a firewall's restart does."""
    world.shell(f"nft flush ruleset\necho '{NAT}' | nft -f -", "h")
    check(f"{world.kind}: that rules are gone is noticed", world.tell("check") == -errno.ESTALE)


def programs_come_first(world):
    """Both are gone, and the rules cannot be set at once: here never, since somebody else owns the table."""
    rules_gone(world)
    take_filters(world)
    world.owner = subprocess.Popen(["ip", "netns", "exec", world.names["h"], "nft", "-i"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                                   text=True)
    world.owner.stdin.write("add table netdev vethguard-divert { flags owner; }\n")
    world.owner.stdin.flush()
    end = time.monotonic() + 30
    while "vethguard" not in world.shell("nft list tables", "h") and time.monotonic() < end:
        time.sleep(0.02)
    check(f"{world.kind}: that the rules cannot be set is told", world.tell("set") == -errno.EPERM)


def rules_gone_again_and_again(world):
    """While they are set."""
    for _ in range(20):
        world.shell(f"nft flush ruleset\necho '{NAT}' | nft -f -", "h")
        world.tell("set")
    rules_gone(world)


def gate_gone(world):
    world.fence.communicate()
    world.fence = None
    world.shell(f"ip netns del {world.names['gt']}")


def tool_dead(world):
    world.divert.kill()
    world.divert.wait()
    world.divert = None


def down_and_up(world):
    world.shell(f"ip link set {world.interface} down; ip link set {world.interface} up; ip link set {LINK} down", "h")


def made_again(world):
    world.sandbox.close()
    world.shell("ip link del p1", "h")
    world.make_wire()
    world.sandbox = packet_socket(world.names["sb"], "eth0")


def other_bridge(world):
    world.shell(f"ip link set {world.wire} nomaster; ip link set p2 nomaster; ip link set p2 master br1; "
                f"ip link set {world.wire} master br1; ip addr add 10.77.0.9/24 dev br1", "h")


def shut(world):
    check("the interface is shut", world.tell("shut") == 0)


def stp(world):
    world.shell("ip link set br0 type bridge stp_state 1; ip link set br0 type bridge group_fwd_mask 0xfff8", "h")


def on_top(world):
    world.shell(f"ip link add mv0 link {world.wire} type macvlan mode bridge; ip link set mv0 up; ip addr add 10.80.0.1/24 dev mv0", "h")


def a_network_joins(world):
    """The bridge gets a port that is a way out, and nobody takes it off again."""
    world.shell("ip link add link oth0 name mvb type macvlan mode passthru; ip link set mvb master br0 up", "h")


def set_again(world):
    check(f"{world.kind}: its rules are set again", world.tell("set") == 0 and world.tell("check") == 0)


def main():
    os.environ["PATH"] += ":/usr/sbin:/sbin"
    subprocess.run(["modprobe", "-q", "br_netfilter"], check=False)  # built in, or not to be had: then the host is less careless
    control()
    for kind in ("port", "veth", "bridge", "tap", "tap-port"):
        if kind != "tap-port" or LONG:
            whole(kind)
        if kind != "tap" or LONG:
            whole(kind, "--networks")
    wall = ("second wall alone", wall_alone, LEARNS)
    flushed, filters, again = ("ruleset flushed", rules_gone), ("rules alone", filters_gone), ("set again", set_again)
    damaged("port", ("spanning tree", stp), ("down and up", down_and_up), ("on another bridge", other_bridge),
            ("whoever set it is dead", tool_dead), ("gate gone", gate_gone), wall)
    damaged("port", ("made again", made_again, LEARNS), again, flushed, again, filters, ("shut", shut), flushed)
    damaged("veth", ("interfaces on top of it", on_top), flushed, again, ("made again", made_again), wall, ("shut", shut))
    damaged("port", ("both gone, programs first", programs_come_first))
    damaged("bridge", ("spanning tree", stp), flushed, again, wall, ("set again", set_again), ("shut", shut), flushed,
            ("gate gone", gate_gone))
    damaged("bridge", ("a network joins", a_network_joins), ("shut", shut))
    damaged("tap", flushed)
    if LONG:
        damaged("tap", ("down and up", down_and_up), ("gate gone", gate_gone), wall, ("shut", shut))
        damaged("tap-port", ("spanning tree", stp), flushed, again, wall, ("shut", shut), ("on another bridge", other_bridge))
        damaged("port", ("flushed while it is set", rules_gone_again_and_again))
        damaged("bridge", filters, again, ("flushed while it is set", rules_gone_again_and_again))
    print(f"{fence_leaks.passed} passed, {fence_leaks.failed} failed")
    return 1 if fence_leaks.failed else 0


if __name__ == "__main__":
    sys.exit(main())
