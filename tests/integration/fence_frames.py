# SPDX-License-Identifier: Apache-2.0
"""The frames of fence_leaks.py: what a sandbox could send, and what should become of each."""

import dataclasses
import itertools
import logging
import struct

logging.getLogger("scapy").setLevel(logging.CRITICAL)
from scapy.compat import raw  # noqa: E402
from scapy.layers.inet import ICMP, IP, TCP, UDP, IPOption, fragment  # noqa: E402
from scapy.layers.inet6 import (ICMPv6EchoRequest, ICMPv6MLReport2, ICMPv6ND_NA,  # noqa: E402
                                ICMPv6ND_NS, ICMPv6ND_RA, ICMPv6ND_Redirect, ICMPv6ND_RS, IPv6)

SANDBOX4, GATE4, SANDBOX6, GATE6 = "10.77.0.2", "10.77.0.1", "fd77::2", "fd77::1"
UPLINK4, UPLINK6 = "192.0.2.1", "2001:db8:f::1"
SANDBOX_MAC, GATE_MAC = "02:00:00:00:00:02", "02:00:00:00:00:01"
UPLINK_MAC, OUTSIDE_MAC = "02:00:00:00:01:01", "02:00:00:00:01:02"
FAR4, FAR6 = "93.184.216.34", "2606:2800:220:1::1"
LINK_LOCAL = "fe80::ff:fe00:2"
MARK = b"VGLEAK--" * 4
DIVERT_MARKS = (0x76676174, 0x76670001)  # include/vethguard/fence/divert.h
NEEDS_CHECKSUM, PLAIN, TCP4, UDP_FRAGMENTS, TCP6, UDP_SEGMENTS, ECN = 1, 0, 1, 3, 4, 5, 0x80  # linux/virtio_net.h


@dataclasses.dataclass
class Case:
    name: str
    frames: list
    prefix: str = ""     # of the record each frame must leave; "": none
    uncopied: bool = False  # each frame is counted, and leaves no record
    delivered: str = ""  # the line the worker's side must print


def mac(text):
    return bytes(int(x, 16) for x in text.split(":"))


def ether(ethertype, payload, to=GATE_MAC, source=SANDBOX_MAC):
    return mac(to) + mac(source) + struct.pack("!H", ethertype) + raw(payload)


def ip4(payload, destination=FAR4, source=SANDBOX4, **fields):
    return ether(0x0800, IP(src=source, dst=destination, **fields) / payload)


def ip6(payload, destination=FAR6, source=SANDBOX6, **fields):
    return ether(0x86dd, IPv6(src=source, dst=destination, **fields) / payload)


def passing(port):
    """TCP anywhere, DNS to anyone, the named UDP port, neighbor discovery."""
    cases = [Case(f"tcp syn to {a}", [ip4(TCP(sport=1024 + i, dport=80 + i, flags="S"), a)])
             for i, a in enumerate((FAR4, GATE4, "169.254.169.254", "10.1.2.3", UPLINK4, "192.0.2.2"))]
    cases += [Case(f"tcp syn to {a}", [ip6(TCP(sport=2024 + i, dport=80 + i, flags="S"), a)])
              for i, a in enumerate((FAR6, GATE6, "64:ff9b::1", "2002:102:304::1", UPLINK6,
                                     "2001:db8:f::2"))]
    cases += [Case(f"tcp flags {f or 'none'}", [ip4(TCP(sport=3024 + i, dport=443, flags=f) / MARK)])
              for i, f in enumerate(("", "A", "R", "FPU", "SF", "SA", "PA"))]
    cases.append(Case("tcp port 0", [ip4(TCP(sport=9, dport=0, flags="S"))]))
    cases.append(Case("tcp to the listener's port", [ip4(TCP(sport=9, dport=port, flags="S"))]))
    cases.append(Case("tcp bad checksum", [ip4(TCP(sport=9, dport=1, flags="S", chksum=1))]))
    for a, build in ((FAR4, ip4), (GATE4, ip4), (FAR6, ip6), (GATE6, ip6)):
        cases += [Case(f"udp {p} to {a}", [build(UDP(sport=999, dport=p) / MARK, a)],
                       delivered=f"udp {a} {p}") for p in (53, 123)]
    ns = ICMPv6ND_NS(tgt=GATE6)
    cases.append(Case("nd to the gate", [
        ip6(ns, GATE6, hlim=255), ip6(ns, "ff02::1:ff00:1", hlim=255),
        ip6(ns, "ff02::1:ff00:1", LINK_LOCAL, hlim=255),
        ip6(ICMPv6ND_NA(tgt=SANDBOX6), GATE6, hlim=255)]))
    cases.append(Case("the link's own chatter", [
        ip6(ns, "ff02::1:ff00:1", "::", hlim=255),
        ip6(ICMPv6ND_RS(), "ff02::2", LINK_LOCAL, hlim=255),
        ip6(bytes([58, 0, 5, 2, 0, 0, 1, 0]) + raw(ICMPv6MLReport2()), "ff02::16", LINK_LOCAL,
            nh=0, hlim=1)]))
    cases.append(Case("arp for the gate", [ether(0x0806, arp(1, SANDBOX4, GATE4), "ff:ff:ff:ff:ff:ff")]))
    return cases


def refused_protocols(port):
    cases = [Case(f"udp {p} to {a}", [build(UDP(sport=999, dport=p) / MARK, a)], "other")
             for a, build in ((FAR4, ip4), (GATE4, ip4), (FAR6, ip6), (GATE6, ip6))
             for p in (443, 0, 52, 65535, port)]
    cases += [Case(f"icmp type {t}", [ip4(ICMP(type=t) / MARK)], "other") for t in (0, 5, 9, 10, 13, 17)]
    cases += [Case("icmp echo", [ip4(ICMP() / MARK), ip4(ICMP() / MARK, GATE4),
                                 ip6(ICMPv6EchoRequest() / MARK), ip6(ICMPv6EchoRequest() / MARK, GATE6)],
                   "other")]
    icmp6 = (ICMPv6ND_RA(), ICMPv6ND_Redirect(), ICMPv6ND_RS(), b"\x01\x04" + bytes(6) + MARK,
             b"\x02\x00" + bytes(6) + MARK, b"\x8a\x00" + bytes(14))
    cases += [Case(f"icmpv6 {raw(p)[0]}", [ip6(p, nh=58, hlim=255), ip6(p, GATE6, nh=58, hlim=255)], "other")
              for p in icmp6]
    cases.append(Case("nd that crossed a router", [ip6(ICMPv6ND_NS(tgt=GATE6), GATE6, hlim=64)], "other"))
    cases.append(Case("nd to the far side", [ip6(ICMPv6ND_NS(tgt=FAR6), FAR6, hlim=255)], "other"))
    sctp = struct.pack("!HHII", 5000, 443, 0, 0) + b"\x01\x00\x00\x14" + MARK
    cases += [Case(f"sctp to {a}", [build(sctp, a, **f)], "other")
              for a, build, f in ((FAR4, ip4, {"proto": 132}), (FAR6, ip6, {"nh": 132}))]
    for n in (2, 3, 4, 8, 33, 41, 46, 47, 50, 51, 88, 89, 94, 97, 103, 108, 112, 115, 136, 137, 253, 255):
        inner = raw(IP(src=SANDBOX4, dst=FAR4) / UDP(dport=53) / MARK)
        cases.append(Case(f"ip protocol {n}", [ip4(inner, proto=n)], "other"))
    for n in (4, 41, 47, 50, 59, 132, 136, 255):
        inner = raw(IPv6(src=SANDBOX6, dst=FAR6) / UDP(dport=53) / MARK)
        cases.append(Case(f"ipv6 protocol {n}", [ip6(inner, nh=n)], "other"))
    return cases


def fragments4():
    packet = IP(src=SANDBOX4, dst=FAR4, id=77) / UDP(sport=9, dport=53) / (MARK * 60)
    syn = raw(TCP(sport=7, dport=443, flags="S"))

    def piece(data, offset, more, protocol=6):
        return ip4(data, proto=protocol, id=78, frag=offset, flags="MF" if more else 0)

    return [
        Case("fragments of udp 53", [ether(0x0800, f) for f in fragment(packet, 512)], "other"),
        Case("fragment: first alone", [piece(syn, 0, True)], "other"),
        Case("fragment: later alone", [piece(MARK, 100, False), piece(MARK, 1, True)], "other"),
        Case("fragment: tiny", [piece(syn[:8], 0, True), piece(syn[8:], 1, False)], "other"),
        Case("fragment: overlapping", [piece(syn + MARK, 0, True), piece(syn, 1, True),
                                       piece(MARK, 2, False)], "other"),
        Case("fragment: last possible", [piece(MARK, 8191, False)], "other"),
        Case("fragment of icmp", [piece(raw(ICMP() / MARK), 0, True, 1)], "other"),
    ]


def header(kind, following, rest):
    return bytes([following, (len(rest) + 2) // 8 - 1]) + rest if kind != 44 else bytes([following, 0]) + rest


def extensions6():
    tcp = raw(TCP(sport=5, dport=443, flags="S") / MARK)
    far = bytes(4) + bytes.fromhex("26062800022000010000000000000001")
    pad = bytes([1, 4, 0, 0, 0, 0])
    frag_first, frag_later, frag_atomic = (struct.pack("!HI", x, 9) for x in (1, 0x0068, 0))
    routing = {t: bytes([t, 1]) + far for t in (0, 2, 3, 253)}
    srh = bytes([4, 0, 0, 0]) + bytes(2) + far[4:]
    cases = [
        Case("hop-by-hop", [ip6(header(0, 6, pad) + tcp, nh=0)], "other"),
        Case("hop-by-hop jumbo", [ip6(header(0, 6, b"\xc2\x04\x00\x01\x00\x00") + tcp, nh=0)], "other"),
        Case("hop-by-hop router alert", [ip6(header(0, 58, b"\x05\x02\x00\x00\x01\x00")
                                             + raw(ICMPv6EchoRequest()), nh=0)], "other"),
        Case("dest options", [ip6(header(60, 6, pad) + tcp, nh=60)], "other"),
        Case("home address option", [ip6(header(60, 6, b"\xc9\x10" + far[4:] + b"\x01\x02\x00\x00")
                                         + tcp, nh=60)], "other"),
        Case("srh routing type 4", [ip6(header(43, 6, srh) + tcp, nh=43),
                                    ip6(header(43, 6, srh) + tcp, GATE6, nh=43)], "other"),
        Case("v6 fragment: first", [ip6(header(44, 6, frag_first) + tcp, nh=44)], "other"),
        Case("v6 fragment: later", [ip6(header(44, 6, frag_later) + MARK, nh=44)], "other"),
        Case("v6 fragment: atomic", [ip6(header(44, 6, frag_atomic) + tcp, nh=44)], "other"),
        Case("v6 fragment of nothing", [ip6(header(44, 44, frag_atomic) * 5 + tcp, nh=44)], "other"),
        Case("hop-by-hop then fragment", [ip6(header(0, 44, pad) + header(44, 6, frag_first) + tcp,
                                              nh=0)], "other"),
        Case("dest then routing", [ip6(header(60, 43, pad) + header(43, 6, routing[0]) + tcp, nh=60)],
             "other"),
        Case("authentication header", [ip6(b"\x06\x04" + bytes(22) + tcp, nh=51)], "other"),
        Case("mobility header", [ip6(b"\x3b\x00\x00\x00" + bytes(4), nh=135)], "other"),
        Case("fifty extension headers", [ip6(header(60, 60, pad) * 50 + MARK, nh=60)], "other"),
    ]
    cases += [Case(f"routing type {t}", [ip6(header(43, 6, r) + tcp, nh=43),
                                         ip6(header(43, 6, r) + tcp, GATE6, nh=43)], "other")
              for t, r in routing.items()]
    return cases


def options4():
    payload = UDP(sport=9, dport=53) / MARK
    route = bytes([4]) + bytes(map(int, FAR4.split("."))) + b"\x00"
    kinds = {"loose source route": b"\x83\x07" + route[:1] + route[1:5], "strict source route":
             b"\x89\x07" + route[:1] + route[1:5], "record route": b"\x07\x07\x04\x00\x00\x00\x00",
             "timestamp": b"\x44\x08\x05\x00\x00\x00\x00\x00", "router alert": b"\x94\x04\x00\x00",
             "no-op": b"\x01\x01\x01\x01"}
    cases = [Case(f"ip option {name}", [ip4(payload, to, options=[IPOption(o)]) for to in (FAR4, GATE4)],
                  "other") for name, o in kinds.items()]
    return cases


def destinations():
    payload = UDP(sport=9, dport=53) / MARK
    every = "ff:ff:ff:ff:ff:ff"
    cases = [Case(f"destination {a}", [ip4(payload, a)], "other")
             for a in ("224.0.0.1", "224.0.0.251", "239.255.255.250", "255.255.255.255", "240.0.0.1",
                       "127.0.0.1", "127.8.8.8", "0.0.0.0", "0.1.2.3")]
    cases += [Case(f"destination {a}", [ip6(payload, a)], "other")
              for a in ("ff02::1", "ff02::fb", "ff05::1:3", "ff0e::1", "::", "::1", "::ffff:93.184.216.34",
                        "::93.184.216.34")]
    cases.append(Case("broadcast frame", [ether(0x0800, IP(src=SANDBOX4, dst="10.77.0.3")
                                                / UDP(dport=9) / MARK, every)], "other"))
    cases.append(Case("frame to somebody else", [
        ether(0x0800, IP(src=SANDBOX4, dst=FAR4) / payload, OUTSIDE_MAC),
        ether(0x86dd, IPv6(src=SANDBOX6, dst=FAR6) / payload, OUTSIDE_MAC)], "other"))
    cases += [Case(f"frame to {to}", [ether(0x0800, IP(src=SANDBOX4, dst=FAR4) / p, to)
                                      for p in (payload, TCP(sport=9, dport=443, flags="S"))], "other")
              for to in (every, "01:00:5e:00:00:01", "33:33:00:00:00:01", "00:00:00:00:00:00")]
    return cases


def broken():
    """Frames that the IP stack itself drops behind the ingress hook: counted, never copied."""
    whole = raw(IP(src=SANDBOX4, dst=FAR4) / UDP(sport=9, dport=53) / MARK)
    whole6 = raw(IPv6(src=SANDBOX6, dst=FAR6) / UDP(sport=9, dport=53) / MARK)

    def with_length(n):
        packet = IP(whole)
        packet.len, packet.chksum = n, None
        return raw(packet)

    frames = [ether(0x0800, IP(src=SANDBOX4, dst=FAR4, chksum=c) / UDP(sport=9, dport=53) / MARK) for c in (1, 0xffff)]
    frames += [ether(0x0800, with_length(n)) for n in (0, 19, len(whole) + 1, 65535)]
    frames += [ether(0x86dd, whole6[:4] + struct.pack("!H", n) + whole6[6:]) for n in (len(whole6) - 39, 65535)]
    frames += [ether(0x86dd, b"\x50" + whole6[1:])]  # version 5
    return [Case("broken headers", frames, uncopied=True)]


def spoofed():
    cases = []
    for a in (GATE4, "10.77.0.3", "127.0.0.1", "0.0.0.0", "255.255.255.255", "8.8.8.8", UPLINK4, "224.0.0.1"):
        cases.append(Case(f"spoofed {a}", [
            ip4(p, source=a) for p in (TCP(dport=443, flags="S"), UDP(dport=53) / MARK, ICMP() / MARK)],
            "source"))
    for a in (GATE6, "fd77::3", "::1", "::", "::ffff:10.77.0.2", FAR6, UPLINK6, LINK_LOCAL, "ff02::1"):
        cases.append(Case(f"spoofed {a}", [
            ip6(p, source=a) for p in (TCP(dport=443, flags="S"), UDP(dport=53) / MARK,
                                       ICMPv6EchoRequest() / MARK)], "source"))
    cases.append(Case("spoofed nd", [ip6(ICMPv6ND_NS(tgt=GATE6), GATE6, a, hlim=255)
                                     for a in ("fd77::9", FAR6, GATE6)], "source"))
    cases.append(Case("router advertisement", [ip6(ICMPv6ND_RA(), "ff02::1", LINK_LOCAL, hlim=255)],
                      "source"))
    cases.append(Case("spoofed fragment", [ip4(MARK, source="8.8.8.8", frag=9)], "source"))
    return cases


def arp(operation, sender, target, hardware=1, protocol=0x0800, sizes=(6, 4)):
    def address(a):
        return bytes(map(int, a.split(".")))

    return struct.pack("!HHBBH", hardware, protocol, *sizes, operation) + mac(SANDBOX_MAC) + \
        address(sender) + bytes(6) + address(target)


def link_layer():
    every = "ff:ff:ff:ff:ff:ff"
    inner = raw(IP(src=SANDBOX4, dst=FAR4) / UDP(sport=9, dport=53) / MARK)
    inner6 = raw(IPv6(src=SANDBOX6, dst=FAR6) / UDP(sport=9, dport=53) / MARK)
    asked = [arp(1, GATE4, FAR4), arp(2, GATE4, GATE4), arp(1, FAR4, GATE4), arp(2, UPLINK4, SANDBOX4),
             arp(8, SANDBOX4, GATE4), arp(0, SANDBOX4, GATE4), arp(1, SANDBOX4, GATE4, hardware=6),
             arp(1, SANDBOX4, GATE4, protocol=0x86dd), arp(1, SANDBOX4, GATE4, sizes=(6, 16))]
    cases = [Case(f"arp {i}", [ether(0x0806, a, every)], "source") for i, a in enumerate(asked)]
    for t in (0x0060, 0x05dc, 0x0842, 0x22f0, 0x6558, 0x8035, 0x80f3, 0x8137, 0x8847, 0x8848, 0x8863,
              0x8864, 0x888e, 0x8892, 0x88a2, 0x88b5, 0x88cc, 0x88e5, 0x88f7, 0x8906, 0x894f, 0xffff):
        cases.append(Case(f"ethertype {t:04x}", [ether(t, inner), ether(t, inner, every)], "ethertype"))
    for outer in (0x8100, 0x88a8, 0x9100):
        for tag in (0, 1, 4095, 0xe000):
            cases.append(Case(f"vlan {outer:04x} {tag:04x}", [
                ether(outer, struct.pack("!HH", tag, 0x0800) + inner),
                ether(outer, struct.pack("!HH", tag, 0x86dd) + inner6),
                ether(outer, struct.pack("!HH", tag, 0x0806) + arp(1, SANDBOX4, GATE4))], "ethertype"))
    double = struct.pack("!HHHH", 1, 0x8100, 2, 0x0800) + inner
    cases.append(Case("two vlan tags", [ether(0x8100, double), ether(0x88a8, double)], "ethertype"))
    return cases


def all_cases(port):
    """port: the TCP listener's, which must not be open to UDP either."""
    return passing(port) + refused_protocols(port) + fragments4() + extensions6() + options4() + \
        destinations() + broken() + spoofed() + link_layer()


def is_kept_quiet(frame):
    """Frames that the fence neither counts nor hands to the IP stack's next hook: honest ARP, the link's own chatter, and a frame
    that ends within its VLAN tag, which the kernel drops before any hook."""
    kind, ip = frame[12:14], frame[14:]
    if kind in (b"\x81\x00", b"\x88\xa8"):
        return len(ip) < 4
    if kind == b"\x08\x06":
        return ip[:6] == bytes((0, 1, 8, 0, 6, 4)) and ip[6:8] in (b"\0\1", b"\0\2") and ip[14:18] == bytes(map(int, SANDBOX4.split(".")))
    if kind != b"\x86\xdd" or len(ip) < 41:
        return False
    to, following, hops, first = ip[24:40], ip[6], ip[7], ip[40]
    return (ip[8:24] == bytes(16) and to[:2] == b"\xff\x02" and (following, hops) == (58, 255) and first in (135, 136)) or \
        (to == b"\xff\2" + bytes(13) + b"\x16" and (following, hops, first) == (0, 1, 58)) or \
        (to == b"\xff\2" + bytes(13) + b"\2" and (following, hops, first) == (58, 255, 133))


def from_outside(port):
    """(name, frame, only where the whole namespace is ours): what the uplink's side could try."""
    def frame(ethertype, payload):
        return ether(ethertype, payload, UPLINK_MAC, OUTSIDE_MAC)

    mark = b"VGIN" * 8
    a, b = "192.0.2.2", "2001:db8:f::2"
    return [
        ("syn to a listener", frame(0x0800, IP(src=a, dst=UPLINK4) / TCP(sport=9, dport=port, flags="S")), True),
        ("syn to a listener, v6", frame(0x86dd, IPv6(src=b, dst=UPLINK6)
                                        / TCP(sport=9, dport=port, flags="S")), True),
        ("dns to the responder", frame(0x0800, IP(src=a, dst=UPLINK4) / UDP(sport=9, dport=53) / mark), True),
        ("echo to the gate", frame(0x0800, IP(src=a, dst=UPLINK4) / ICMP() / mark), True),
        ("syn to the sandbox", frame(0x0800, IP(src=a, dst=SANDBOX4) / TCP(dport=22, flags="S") / mark), False),
        ("udp to the sandbox", frame(0x0800, IP(src=a, dst=SANDBOX4) / UDP(dport=22) / mark), False),
        ("udp to the sandbox, v6", frame(0x86dd, IPv6(src=b, dst=SANDBOX6) / UDP(dport=22) / mark), False),
        ("echo to the gate's inner address", frame(0x0800, IP(src=a, dst=GATE4) / ICMP() / mark), True),
    ]


def mutations(rng, count):
    """Known frames with bytes changed, cut off or added."""
    seeds = [f for c in all_cases(40000) for f in c.frames]
    for _ in range(count):
        frame = bytearray(rng.choice(seeds))
        for _ in range(rng.randint(1, 4)):
            # Mostly in the headers; now and then the length itself.
            at = rng.randrange(12, min(len(frame), 80))
            frame[at] = rng.choice((0, 0xff, rng.randrange(256), frame[at] ^ 1 << rng.randrange(8)))
        if rng.random() < 0.1:
            del frame[rng.randrange(15, len(frame)):]
        yield bytes(frame)


def at_the_bridge(neighbour_mac, neighbour4, neighbour6):
    """Frames to, or claimed to be from, another port of the same bridge; frames for bridges and hosts themselves."""
    every, udp = "ff:ff:ff:ff:ff:ff", UDP(sport=9, dport=4242) / MARK
    reserved = [f"01:80:c2:00:00:{i:02x}" for i in range(16)]
    to_host = raw(IP(src=SANDBOX4, dst=GATE4) / udp)
    out = raw(IP(src=SANDBOX4, dst=FAR4) / udp)
    tagged = struct.pack("!HH", 0, 0x0800) + to_host
    bpdu = b"\x42\x42\x03" + bytes([0, 0, 0, 0, 1]) + bytes(30)
    lldp = b"\x02\x07\x04" + mac(SANDBOX_MAC) + b"\x04\x02\x07a\x06\x02\x00\x78\x00\x00"
    dhcp = UDP(sport=68, dport=67) / (b"\x01\x01\x06\x00" + MARK + bytes(240))
    igmp = b"\x16\x00\xf8\xfa" + bytes([239, 1, 2, 3])
    mld = bytes([58, 0, 5, 2, 0, 0, 1, 0]) + raw(ICMPv6MLReport2(records_number=1)) + b"\x04\x00\x00\x00\xff\x05" + bytes(13) + b"\x99"
    query = bytes([58, 0, 5, 2, 0, 0, 1, 0]) + b"\x82\x00\x00\x00\x27\x10" + bytes(22)
    na = ICMPv6ND_NA(tgt=neighbour6, R=0, S=0, O=1) / (b"\x02\x01" + mac(SANDBOX_MAC))
    ra = ICMPv6ND_RA(routerlifetime=1800) / (b"\x03\x04\x40\xc0" + b"\x00\x01\x00\x00" * 2 + bytes(4) + b"\x20\x01\x0d\xb8" + bytes(12))
    frames = [ether(0x0800, f, m) for m in reserved for f in (to_host, out)]
    frames += [ether(0x8100, tagged, reserved[14]), ether(0x88a8, tagged, reserved[14]),
               ether(0x8100, struct.pack("!HH", 0, 0x8100) + tagged, reserved[14])]
    frames += [ether(0x86dd, IPv6(src=SANDBOX6, dst=GATE6) / udp, m) for m in reserved[1:]]
    frames += [ether(0x0806, arp(1, SANDBOX4, GATE4), m) for m in (every, GATE_MAC, reserved[14])]
    frames += [mac(reserved[0]) + mac(SANDBOX_MAC) + struct.pack("!H", len(bpdu)) + bpdu,
               ether(0x88cc, lldp, reserved[14]), ether(0x888e, b"\x01\x01\x00\x00", reserved[3]),
               ether(0x8809, b"\x01\x01" + bytes(108), reserved[2]), ether(0x8808, b"\x00\x01\xff\xff", reserved[1])]
    for m in (neighbour_mac, every, "01:00:5e:00:00:01", "33:33:00:00:00:01", OUTSIDE_MAC):
        frames += [ether(0x0800, IP(src=SANDBOX4, dst=neighbour4) / udp, m), ether(0x0800, out, m),
                   ether(0x86dd, IPv6(src=SANDBOX6, dst=neighbour6) / udp, m), ether(0x88b5, MARK, m), ether(0x0800, to_host, m)]
    frames += [ether(0x0806, arp(op, sender, target), m)
               for op in (1, 2) for sender in (neighbour4, GATE4, SANDBOX4, FAR4) for target in (neighbour4, GATE4, sender)
               for m in (every, neighbour_mac)]
    for source in (neighbour_mac, GATE_MAC, OUTSIDE_MAC, every, "00:00:00:00:00:00"):
        frames += [ether(0x0800, out, source=source), ether(0x0806, arp(2, SANDBOX4, SANDBOX4), every, source),
                   ether(0x0800, IP(src=neighbour4, dst=FAR4) / udp, source=source)]
    frames += [ether(0x0800, IP(src="0.0.0.0", dst="255.255.255.255") / dhcp, every), ether(0x0800, to_host),
               ether(0x0800, IP(src=SANDBOX4, dst="10.77.0.255") / udp, every), ether(0x0800, IP(src=SANDBOX4, dst="10.79.0.9") / UDP(sport=9, dport=9) / MARK),
               ether(0x0800, IP(src=SANDBOX4, dst="224.0.0.22", proto=2, ttl=1) / igmp, "01:00:5e:00:00:16"),
               ether(0x0800, IP(src=SANDBOX4, dst="239.1.2.3", proto=2, ttl=1) / igmp, "01:00:5e:01:02:03"),
               ether(0x86dd, IPv6(src=LINK_LOCAL, dst="ff02::16", nh=0, hlim=1) / mld, "33:33:00:00:00:16"),
               ether(0x86dd, IPv6(src=LINK_LOCAL, dst="ff02::1", nh=0, hlim=1) / query, "33:33:00:00:00:01"),
               ether(0x86dd, IPv6(src=LINK_LOCAL, dst="ff02::1", hlim=255) / ra, "33:33:00:00:00:01"),
               ether(0x86dd, IPv6(src=neighbour6, dst="ff02::1", hlim=255) / na, "33:33:00:00:00:01"),
               ether(0x86dd, IPv6(src=SANDBOX6, dst=GATE6, hlim=255) / na),
               ether(0x0800, IP(src=SANDBOX4, dst=GATE4) / ICMP(type=3, code=4, nexthopmtu=68) / raw(IP(src=GATE4, dst=FAR4) / udp)),
               ether(0x0800, IP(src=FAR4, dst=UPLINK4) / ICMP(type=5, code=1, gw=SANDBOX4) / raw(IP(src=UPLINK4, dst=FAR4) / udp)),
               ether(0x86dd, IPv6(src=SANDBOX6, dst=GATE6) / (b"\x02\x00\x00\x00\x00\x00\x05\x00" + raw(IPv6(src=GATE6, dst=FAR6) / udp)))]
    return [Case("at the bridge", frames, "?")]


def to_the_sandbox(neighbour_mac, neighbour4, neighbour6):
    """(name, the socket's name, frame): what its neighbor and the outside could try."""
    mark, every = b"VGIN" * 8, "ff:ff:ff:ff:ff:ff"
    frames = []
    for to in (SANDBOX_MAC, every, "01:00:5e:00:00:01", "33:33:00:00:00:01", "01:80:c2:00:00:0e", GATE_MAC):
        frames += [("ip", "neighbour", ether(0x0800, IP(src=neighbour4, dst=SANDBOX4) / UDP(dport=53) / mark, to, neighbour_mac)),
                   ("ip as the gate", "neighbour", ether(0x0800, IP(src=GATE4, dst=SANDBOX4) / UDP(dport=53) / mark, to, neighbour_mac)),
                   ("ip6", "neighbour", ether(0x86dd, IPv6(src=neighbour6, dst=SANDBOX6) / UDP(dport=53) / mark, to, neighbour_mac)),
                   ("other", "neighbour", ether(0x88b5, mark, to, neighbour_mac)),
                   ("as the gate's MAC", "neighbour", ether(0x88b5, mark, to, GATE_MAC))]
    frames.append(("routed", "uplink", ether(0x0800, IP(src="192.0.2.2", dst=SANDBOX4) / UDP(dport=22) / mark, UPLINK_MAC, OUTSIDE_MAC)))
    frames.append(("routed, v6", "uplink", ether(0x86dd, IPv6(src="2001:db8:f::2", dst=SANDBOX6) / UDP(dport=22) / mark, UPLINK_MAC, OUTSIDE_MAC)))
    return frames


def head(kind, start, offset, length=0, size=0, flags=NEEDS_CHECKSUM):
    """struct virtio_net_hdr: the sum of what begins at start is to be written at offset from there."""
    return struct.pack("<BBHHHH", flags, kind, length, size, start, offset)


def whole(frames):
    """Frames of one segment. The sum is written at several places: its own place, and over ethertype, protocol, addresses and ports."""
    heads = [head(PLAIN, start, to - start) for start, to in ((34, 40), (34, 50), (0, 12), *((14, t) for t in (16, 23, 26, 30, 32, 36, 38)))]
    return itertools.product(heads + [head(PLAIN, 0, 0, flags=0), head(0x7f, 0, 0)], frames)


def cut(frames):
    """Frames of several segments, which the kernel has to make: of TCP, of UDP, and of UDP as fragments."""
    heads = {(4, 6): [head(TCP4, 34, 16, 54, 500), head(TCP4 | ECN, 34, 16, 54, 500), head(TCP4, 34, 16, 54, 1)],
             (4, 17): [head(UDP_SEGMENTS, 34, 6, 42, 500), head(UDP_FRAGMENTS, 34, 6, 42, 504)],
             (6, 6): [head(TCP6, 54, 16, 74, 500)],
             (6, 17): [head(UDP_SEGMENTS, 54, 6, 62, 500), head(UDP_FRAGMENTS, 54, 6, 62, 504)]}
    for frame in frames:
        family = 4 if frame[12:14] == b"\x08\0" else 6
        for h in heads[family, frame[23 if family == 4 else 20]]:
            yield h, frame


def layers(body, far4, far6):
    """Under the sandbox's own address and another."""
    parts = (UDP(sport=9, dport=1234), UDP(sport=9, dport=53), TCP(sport=9, dport=80, flags="PA"), TCP(sport=10, dport=443, flags="S"))
    return [ip4(p / body, far, source) for far in far4 for source in (SANDBOX4, "8.8.8.8") for p in parts] + \
        [ip6(p / body, far, source) for far in far6 for source in (SANDBOX6, "2001:db8::8") for p in parts]


def offloads(far4=(FAR4, GATE4), far6=(FAR6, GATE6)):
    """Frames behind what they leave to the kernel that takes them, as a packet socket or a tap wants it."""
    return [h + f for h, f in itertools.chain(whole(layers(MARK, far4, far6)), cut(layers(MARK * 90, far4, far6)))]
