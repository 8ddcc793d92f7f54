#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Root in the sandbox sends every kind of frame it can think of; a capture on the far side of the gate sees none.

Three namespaces: sandbox | gate | outside. The gate of a real sandbox has no uplink; here it gets one, and forwarding
switched on, so that nothing but the fence stands between the sandbox and the outside. One run without any fence proves
that the capture would see a leak. Further runs take one half of the fence away at a time.

Usage (as root): fence_leaks.py [FENCE_TOOL]
"""

import collections
import ctypes
import json
import os
import random
import select
import socket
import subprocess
import sys
import time

from fence_frames import (GATE4, GATE6, GATE_MAC, OUTSIDE_MAC, SANDBOX4, SANDBOX6, SANDBOX_MAC,
                          UPLINK4, UPLINK6, UPLINK_MAC, all_cases, from_outside, is_kept_quiet, mutations)

TOOL = sys.argv[1] if len(sys.argv) > 1 else os.path.join(
    os.path.dirname(os.path.abspath(__file__)), "../../build/tests/lib/fence_tool")
CLONE_NEWNET = 0x40000000
ETH_P_ALL = 3
LIBC = ctypes.CDLL(None, use_errno=True)

passed = failed = 0


def check(name, good, detail=""):
    global passed, failed
    passed, failed = passed + bool(good), failed + (not good)
    print(("ok    " if good else "FAIL  ") + name + (f": {detail}" if detail and not good else ""),
          flush=True)


def run(*words, netns=None, may_fail=False):
    prefix = ["ip", "netns", "exec", netns] if netns else []
    return subprocess.run(prefix + list(words), check=not may_fail, capture_output=True, text=True)


def enter(netns):
    with open(f"/run/netns/{netns}") as f:
        if LIBC.setns(f.fileno(), CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), "setns")


def packet_socket(netns, interface):
    """A raw socket on an interface of another namespace; this process stays where it is."""
    with open("/proc/self/ns/net") as home:
        enter(netns)
        s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 23)
        s.bind((interface, 0))
        LIBC.setns(home.fileno(), CLONE_NEWNET)
    return s


class World:
    def __init__(self, uplink, forwarding):
        self.names = {k: f"vgl{os.getpid()}{k}" for k in ("sb", "gt", "out")}
        self.uplink = uplink
        self.tool = None
        self.lines = []
        for name in self.names.values():
            run("ip", "netns", "add", name)
        self.link("sb", "eth0", SANDBOX_MAC, "gt", "vg0", GATE_MAC)
        if uplink:
            self.link("gt", "up0", UPLINK_MAC, "out", "eth0", OUTSIDE_MAC)
        self.configure_gate(forwarding)
        self.sandbox = packet_socket(self.names["sb"], "eth0")
        self.outside = packet_socket(self.names["out"], "eth0") if uplink else None

    def link(self, a, a_if, a_mac, b, b_if, b_mac):
        a, b = self.names[a], self.names[b]
        for netns in (a, b):
            run("sysctl", "-qw", "net.ipv6.conf.default.accept_dad=0", netns=netns)
            run("ip", "link", "set", "lo", "up", netns=netns)
        run("ip", "link", "add", a_if, "netns", a, "address", a_mac, "type", "veth",
            "peer", b_if, "netns", b, "address", b_mac)
        for netns, interface in ((a, a_if), (b, b_if)):
            if netns != self.names["gt"]:
                # No address, no stack: only what this script writes leaves these ends.
                run("sysctl", "-qw", f"net.ipv6.conf.{interface}.disable_ipv6=1", netns=netns)
            run("ip", "link", "set", interface, "up", netns=netns)

    def configure_gate(self, forwarding):
        gate = self.names["gt"]

        def ip(*words):
            run("ip", *words, netns=gate)

        for key in ("ipv4.ip_forward", "ipv6.conf.all.forwarding"):
            run("sysctl", "-qw", f"net.{key}={int(forwarding)}", netns=gate)
        run("sysctl", "-qw", "net.ipv4.conf.all.rp_filter=0", "net.ipv4.conf.default.rp_filter=0",
            "net.ipv4.conf.all.accept_source_route=1", "net.ipv4.conf.vg0.rp_filter=0",
            "net.ipv4.conf.vg0.accept_source_route=1", "net.ipv6.conf.all.seg6_enabled=1",
            "net.ipv6.conf.vg0.seg6_enabled=1", "net.ipv4.icmp_ratelimit=0",
            netns=gate, may_fail=True)
        ip("addr", "add", f"{GATE4}/30", "dev", "vg0")
        ip("addr", "add", f"{GATE6}/64", "dev", "vg0", "nodad")
        ip("neigh", "replace", SANDBOX4, "lladdr", SANDBOX_MAC, "dev", "vg0")
        ip("neigh", "replace", SANDBOX6, "lladdr", SANDBOX_MAC, "dev", "vg0")
        if self.uplink:
            ip("addr", "add", f"{UPLINK4}/24", "dev", "up0")
            ip("addr", "add", f"{UPLINK6}/64", "dev", "up0", "nodad")
            for family, via in (("-4", "192.0.2.2"), ("-6", "2001:db8:f::2")):
                ip(family, "neigh", "replace", via, "lladdr", OUTSIDE_MAC, "dev", "up0")
                ip(family, "route", "replace", "default", "via", via)

    def fence(self, *options):
        self.tool = subprocess.Popen(
            ["ip", "netns", "exec", self.names["gt"], TOOL, *options, "vg0", SANDBOX4, SANDBOX6,
             GATE4, GATE6, "123"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        ready = self.tool.stdout.readline().split("=")
        self.port = int(ready[1])

    def unfence(self):
        """The tool's last words, after everything it said of packets."""
        self.lines += self.tool.communicate()[0].splitlines()
        self.tool = None

    def close(self):
        if self.tool:
            self.unfence()
        for s in (self.sandbox, self.outside):
            if s:
                s.close()
        for name in self.names.values():
            run("ip", "netns", "del", name, may_fail=True)

    def send(self, frame):
        """False: the sandbox's own kernel does not take such a frame."""
        try:
            self.sandbox.send(frame)
        except OSError:
            return False
        return True

    def delivered(self):
        """How many IP packets the second hook (table inet vethguard) has seen and not refused."""
        out = run("nft", "-j", "list", "counters", "table", "inet", "vethguard", netns=self.names["gt"]).stdout
        packets = {o["counter"]["name"]: o["counter"]["packets"] for o in json.loads(out)["nftables"] if "counter" in o}
        return packets["recv-vg0"] - packets["drop-vg0"]


def received(s, wait=0.0):
    frames = []
    while select.select([s], [], [], wait)[0]:
        frame, address = s.recvfrom(65536)
        if address[2] != socket.PACKET_OUTGOING:
            frames.append(frame)
    return frames


def is_gate_chatter(frame):
    """Frames that the gate's own kernel sends on its uplink: neighbor discovery, listener reports, ARP answers."""
    if frame[12:14] == b"\x86\xdd" and len(frame) > 54:
        own = frame[22:24] == b"\xfe\x80" or frame[22:38] == socket.inet_pton(socket.AF_INET6, UPLINK6) \
            or frame[22:38] == bytes(16)
        kind = frame[62] if frame[20] == 0 and len(frame) > 62 else frame[54]
        return own and frame[20] in (0, 58) and kind in (130, 131, 132, 133, 135, 136, 143)
    return frame[12:14] == b"\x08\x06" and frame[28:32] == socket.inet_aton(UPLINK4)


def leaks(world, wait=0.3):
    return [f for f in received(world.outside, wait) if not is_gate_chatter(f)]


def control():
    """Without a fence the same frames do arrive: so the capture would see a leak."""
    world = World(uplink=True, forwarding=True)
    try:
        seen = set()
        for case in all_cases(40000):
            for frame in case.frames:
                world.send(frame)
            for frame in leaks(world, 0.01):
                seen.add(case.name)
        check("control: without a fence frames get out", len(seen) > 40, f"only {sorted(seen)}")
        for kind in ("tcp syn", "udp", "icmp echo", "sctp", "fragment", "spoofed", "hop-by-hop"):
            check(f"control: {kind} gets out without a fence", any(kind in n for n in seen))
    finally:
        world.close()


def logged(lines):
    """Lines "log PREFIX ETHERTYPE PROTOCOL DESTINATION PORT" counted by prefix."""
    return collections.Counter(line.split()[1] for line in lines if line.startswith("log "))


def check_records(world, label, cases, strict, tight=False):
    """Every refused frame was recorded, once, for the right reason; every accepted one was delivered."""
    want, delivered = collections.Counter(), set()
    for case in cases:
        if case.prefix:
            want["vethguard:" + case.prefix] += len(case.frames)
        if case.delivered:
            delivered.add(case.delivered)
    got = logged(world.lines)
    if strict:
        check(f"{label}: each refused frame is logged once, with its reason", got == want,
              f"got {dict(got)}, want {dict(want)}")
        missing = delivered - set(world.lines)
        check(f"{label}: what may pass is delivered to the worker", not missing, str(missing))
    counted = [int(line.split()[1]) for line in world.lines if line.startswith("counted")]
    if tight:
        check(f"{label}: not all is copied, all is counted",
              0 < sum(got.values()) < sum(want.values()) <= sum(counted), f"{counted}, log {sum(got.values())}, {want}")
    else:
        uncopied = sum(len(case.frames) for case in cases if case.uncopied)
        check(f"{label}: counters tell as many as the log, and what the IP stack dropped",
              counted == [sum(got.values()) + uncopied], f"{counted}, log {sum(got.values())}, uncopied {uncopied}")
    check(f"{label}: rules unchanged afterwards", "check 0" in world.lines)


def syn_answers(world):
    """Addresses from which a SYN/ACK came back to the sandbox."""
    answers = set()
    for f in received(world.sandbox, 0.1):
        if f[12:14] == b"\x08\x00" and f[23] == 6 and f[47] == 0x12:
            answers.add(socket.inet_ntoa(f[26:30]))
        if f[12:14] == b"\x86\xdd" and f[20] == 6 and f[67] == 0x12:
            answers.add(socket.inet_ntop(socket.AF_INET6, f[22:38]))
    return answers


def attack(label, options=(), uplink=True, forwarding=True, strict=True, damage=()):
    world = World(uplink, forwarding)
    try:
        world.fence(*options)
        for words in damage:
            run(*words, netns=world.names["gt"])
        if uplink:
            received(world.outside, 0.1)
        cases = all_cases(world.port)
        for case in cases:
            for frame in case.frames:
                world.send(frame)
            if uplink:
                out = leaks(world, 0.003)
                check(f"{label}: {case.name}", not out, f"{len(out)} frames, first {out[:1]}")
        answers = syn_answers(world)
        if strict and "--bare" not in options:
            check(f"{label}: TCP to anywhere is answered by the listener",
                  {"93.184.216.34", GATE4, "2606:2800:220:1::1", GATE6} <= answers, str(answers))
        elif "--bare" in options:
            check(f"{label}: no listener, no answer", not answers, str(answers))
        if uplink and not damage:
            check_outside_in(world, label, options)
        time.sleep(0.3)  # the log's gathering time
        world.unfence()
        if not damage and "--bare" not in options:
            check_records(world, label, cases, strict, "--tight" in options)
    finally:
        world.close()


def check_outside_in(world, label, options):
    """The other direction: nobody out there reaches the sandbox, or in a gate the listeners."""
    received(world.sandbox, 0.05)
    for name, frame, only_gate in from_outside(world.port):
        if only_gate and "--host" in options:
            continue
        world.outside.send(frame)
        check(f"{label}: {name}: nothing comes back", not leaks(world, 0.05))
    got = [f for f in received(world.sandbox, 0.1) if b"VGIN" in f]
    check(f"{label}: nothing from outside reaches the sandbox", not got, str(got[:1]))


def storm(count):
    """Frames with random changes, thousands of them, gate and host alike."""
    for options in ((), ("--host",)):
        world = World(True, True)
        try:
            world.fence(*options)
            received(world.outside, 0.1)
            sent = quiet = 0
            for i, frame in enumerate(mutations(random.Random(7), count)):
                if world.send(frame):
                    sent, quiet = sent + 1, quiet + is_kept_quiet(frame)
                if i % 50 == 0:
                    out = leaks(world, 0)
                    if out:
                        break
            out = leaks(world, 0.3)
            check(f"{count} mutated frames {' '.join(options)}", not out, str(out[:1]))
            delivered = world.delivered()
            world.unfence()
            counted = sum(int(line.split()[1]) for line in world.lines if line.startswith("counted"))
            check(f"{count} mutated frames {' '.join(options)}: each is delivered, counted as dropped, or of the few that are neither",
                  sent == delivered + counted + quiet, f"sent {sent}, delivered {delivered}, counted {counted}, quiet {quiet}")
        finally:
            world.close()


def main():
    os.environ["PATH"] += ":/usr/sbin:/sbin"
    control()
    attack("gate")
    attack("gate without uplink", uplink=False)
    attack("gate, beyond its bounds", ("--tight",), strict=False)
    attack("host, beyond its bounds", ("--host", "--tight"), strict=False)
    attack("gate, worker dead", ("--bare",), strict=False)
    attack("host", ("--host",))
    attack("routing rule gone", strict=False, damage=(
        ("ip", "-4", "rule", "del", "pref", "1"), ("ip", "-6", "rule", "del", "pref", "1")))
    attack("host, routing rule gone", ("--host",), strict=False, damage=(
        ("ip", "-4", "rule", "del", "pref", "1"), ("ip", "-6", "rule", "del", "pref", "1")))
    attack("ingress table gone", strict=False, damage=(
        ("nft", "delete", "table", "netdev", "vethguard"),))
    attack("inet table gone", strict=False, damage=(
        ("nft", "delete", "table", "inet", "vethguard"),))
    storm(3000)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
