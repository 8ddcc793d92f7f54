# SPDX-License-Identifier: Apache-2.0
"""Runs inside the sandbox, as its root: what test_exfiltration tries there. `hostile.py NAME [ARGUMENT...]`; the
answer is one line of JSON."""
import ctypes
import errno
import json
import os
import socket
import struct
import sys
import time

LIBC = ctypes.CDLL(None, use_errno=True)
MARK = b"VGLEAK--" * 4
RTM_NEWLINK, RTM_GETLINK, RTM_NEWADDR, RTM_GETADDR, RTM_NEWROUTE = 16, 18, 20, 22, 24
NLM_REQUEST, NLM_ACK, NLM_DUMP, NLM_CREATE = 1, 4, 0x300, 0x400


def checksum(data):
    total = sum(struct.unpack(f">{len(data) // 2}H", data[:len(data) & ~1])) + (data[-1] << 8 if len(data) & 1 else 0)
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return ~total & 0xffff


def frames(interface):
    """Sends the frames of stdin (one per line, in hex) as they are; how many the kernel took."""
    sent = 0
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as s:
        s.bind((interface, 0))
        for line in sys.stdin:
            try:
                sent += s.send(bytes.fromhex(line)) > 0
            except OSError:
                pass
    return sent


def offloads(interface, *marks):
    """The same, each behind a struct virtio_net_hdr that says what is left to the kernel; marked, as far as that goes."""
    sent = 0
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as s:
        s.bind((interface, 0))
        s.setsockopt(263, 15, 1)  # SOL_PACKET, PACKET_VNET_HDR
        for i, line in enumerate(sys.stdin):
            try:
                s.setsockopt(socket.SOL_SOCKET, 36, int(marks[i % len(marks)]))
                sent += s.send(bytes.fromhex(line)) > 0
            except OSError:
                pass
    return sent


def attempt(what):
    """(how it went, seconds): errno's name, or what it returned."""
    began = time.monotonic()
    try:
        result = what()
    except TimeoutError:
        result = "silence"
    except OSError as e:
        result = errno.errorcode.get(e.errno, str(e))
    return result, round(time.monotonic() - began, 3)


def ask(family, kind, protocol, address, payload=MARK, connected=True, prepare=None):
    """Sends and waits for an answer or an error."""
    with socket.socket(family, kind, protocol) as s:
        s.settimeout(2)
        if prepare:
            prepare(s)
        if not connected:
            return s.sendto(payload, address)
        s.connect(address)
        s.send(payload)
        return s.recv(2000).hex()


def sockets(*addresses):
    """{name: (result, seconds)}: what ordinary and raw sockets can do towards these addresses."""
    found = {}
    echo4 = b"\x08\0" + struct.pack(">HHH", checksum(b"\x08\0\0\0\x77\x77\0\x01" + MARK), 0x7777, 1) + MARK
    echo6 = b"\x80\0\0\0\x77\x77\0\x01" + MARK
    for a in addresses:
        family = socket.AF_INET6 if ":" in a else socket.AF_INET

        def note(name, *args, **kw):
            found[f"{name} {a}"] = attempt(lambda: ask(family, *args, **kw))
        for port in (53 + 1, 123, 443, 1234, 4789, 51820):
            note(f"udp {port}", socket.SOCK_DGRAM, 0, (a, port))
        note("udplite", socket.SOCK_DGRAM, 136, (a, 443))
        note("ping", socket.SOCK_DGRAM, 1 if family == socket.AF_INET else 58, (a, 0),
             echo4 if family == socket.AF_INET else echo6)
        note("echo", socket.SOCK_RAW, 1 if family == socket.AF_INET else 58, (a, 0),
             echo4 if family == socket.AF_INET else echo6)
        note("sctp", socket.SOCK_STREAM, 132, (a, 443))
        note("dccp", 6, 33, (a, 443))
        for protocol in (4, 41, 47, 50, 51, 132, 253):
            note(f"raw {protocol}", socket.SOCK_RAW, protocol, (a, 0), connected=False)
        note("spoofed", socket.SOCK_DGRAM, 0, (a, 443), prepare=lambda s: (
            s.setsockopt(socket.SOL_IP, 15, 1), s.bind(("8.8.8.8" if s.family == socket.AF_INET else "2001:4860:4860::8888", 9))))
        note("marked", socket.SOCK_DGRAM, 0, (a, 443), prepare=lambda s: s.setsockopt(socket.SOL_SOCKET, 36, 1))
        note("bound to the interface", socket.SOCK_DGRAM, 0, (a, 443),
             prepare=lambda s: s.setsockopt(socket.SOL_SOCKET, 25, b"eth0"))
    return found


def groups():
    """Multicast and broadcast."""
    found = {}
    for a in ("224.0.0.1", "224.0.0.251", "239.255.255.250", "255.255.255.255", "198.18.0.3", "10.99.255.255"):
        found[a] = attempt(lambda a=a: ask(socket.AF_INET, socket.SOCK_DGRAM, 0, (a, 5353), connected=False,
                                           prepare=lambda s: (s.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1),
                                                              s.setsockopt(socket.SOL_IP, 33, 30))))
    for a in ("ff02::1%eth0", "ff02::fb%eth0", "ff05::1:3%eth0", "ff0e::1%eth0"):
        address, scope = a.split("%")
        found[a] = attempt(lambda x=address: ask(socket.AF_INET6, socket.SOCK_DGRAM, 0,
                                                 (x, 5353, 0, socket.if_nametoindex("eth0")), connected=False))
    for a in ("224.0.0.251", "239.1.2.3"):
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
            found["join " + a] = attempt(lambda a=a: s.setsockopt(
                socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, socket.inet_aton(a) + socket.inet_aton("0.0.0.0")))
            time.sleep(0.2)
    return found


def burst(address, port, count):
    """count datagrams, whatever comes back; how many were taken by the kernel."""
    sent = 0
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        for _ in range(int(count)):
            try:
                sent += s.sendto(MARK, (address, int(port))) > 0
            except OSError:
                sent += s.sendto(MARK, (address, int(port))) > 0  # the error was an earlier one's
    return sent


def families():
    """{number: errno's names} of every address family."""
    found = {}
    for family in range(64):
        found[family] = sorted({attempt(lambda k=kind: bool(socket.socket(family, k, 0).close()))[0]
                                for kind in (1, 2, 3, 5)}, key=str)
    return found


def calls():
    """System calls that lead around the network namespace."""
    found = {}
    for name, number, arguments in (("io_uring_setup", 425, (8, ctypes.create_string_buffer(120))),
                                    ("socket of a family with high bits", 41, (ctypes.c_long(1 << 32 | 40), 1, 0)),
                                    ("bpf", 321, (5, ctypes.create_string_buffer(128), 128)),
                                    ("setns", 308, (os.open("/proc/self/ns/net", 0), 0x40000000)),
                                    ("unshare net", 272, (0x40000000,)), ("unshare mount", 272, (0x20000,)),
                                    ("mount", 165, (b"none", b"/mnt", b"tmpfs", 0, 0)),
                                    ("ptrace init", 101, (16, 1, 0, 0)), ("pidfd of the host", 434, (1 << 20, 0)),
                                    ("init_module", 175, (b"", 0, b""))):
        ctypes.set_errno(0)
        result = LIBC.syscall(number, *arguments)
        found[name] = errno.errorcode.get(ctypes.get_errno(), "?") if result < 0 else result
    return found


# --- netlink towards the gate's namespace, which has id 0 here ---

def attribute(kind, data):
    return struct.pack("HH", 4 + len(data), kind) + data + bytes(-len(data) % 4)


def netlink(kind, flags, body):
    """The messages of the answer: [(type, error or length)]."""
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as s:
        s.settimeout(1)
        s.setsockopt(270, 12, 1)  # NETLINK_GET_STRICT_CHK: every attribute of a dump counts
        s.send(struct.pack("IHHII", 16 + len(body), kind, NLM_REQUEST | NLM_ACK | flags, 1, 0) + body)
        data, found = s.recv(65536), []
        while len(data) >= 16:
            n, answer = struct.unpack("IH", data[:6])
            code = struct.unpack("i", data[16:20])[0] if answer in (2, 3) else n
            found.append("ok" if answer in (2, 3) and code == 0 else errno.errorcode.get(-code, str(code))
                         if answer in (2, 3) else "data")
            data = data[(n + 3) & ~3:]
        return found


def gate():
    """Requests that would work if the sandbox had any say over the namespace behind its veth. The kernel overlooks the
    namespace's number in two of them ("own": what they make is made here), which the test looks at from outside."""
    link = struct.pack("BxHiII", 0, 0, 0, 0, 0)
    nsid = struct.pack("i", 0)
    outside = os.open("/run/netns/outside", os.O_RDONLY) if os.path.exists("/run/netns/outside") else -1

    def new(kind, *attributes, data=b""):
        info = attribute(1, kind) + (attribute(2, data) if data else b"")
        return RTM_NEWLINK, NLM_CREATE, link + attribute(3, b"leak0\0") + attribute(18, info) + b"".join(attributes)

    up = struct.pack("BxHiII", 0, 0, socket.if_nametoindex("eth0"), 0, 0)
    peer = attribute(1, struct.pack("BxHiII", 0, 0, 0, 0, 0) + attribute(3, b"leak1\0"))
    peer_there = attribute(1, struct.pack("BxHiII", 0, 0, 0, 0, 0) + attribute(3, b"leak1\0") + attribute(46, nsid))
    tries = {
        "links of the gate": (RTM_GETLINK, NLM_DUMP, link + attribute(46, nsid)),
        "one link of the gate": (RTM_GETLINK, 0, struct.pack("BxHiII", 0, 0, 2, 0, 0) + attribute(46, nsid)),
        "addresses of the gate": (RTM_GETADDR, NLM_DUMP, struct.pack("BBBBi", 0, 0, 0, 0, 0) + attribute(10, nsid)),
        "a new link in the gate": new(b"bridge\0", attribute(46, nsid)),
        "own: a veth into the gate": new(b"veth\0", data=peer_there),
        "a veth in the gate": new(b"veth\0", attribute(46, nsid), data=peer),
        "a macvlan on the gate's end": new(b"macvlan\0", attribute(5, struct.pack("i", 2)), attribute(37, nsid)),
        "a vxlan in the gate": new(b"vxlan\0", attribute(37, nsid), data=attribute(1, struct.pack("I", 7))),
        "eth0 into the gate": (RTM_NEWLINK, 0, up + attribute(46, nsid)),
        "eth0 into init's namespace by a wrong pid": (RTM_NEWLINK, 0, up + attribute(19, struct.pack("I", 1 << 20))),
        "own: an address in the gate": (RTM_NEWADDR, NLM_CREATE, struct.pack("BBBBi", 2, 24, 0, 0, 2) + attribute(
            2, bytes((10, 99, 0, 9))) + attribute(10, nsid)),
    }
    if outside >= 0:
        fd = struct.pack("I", outside)
        tries["eth0 to the host's namespaces"] = (RTM_NEWLINK, 0, up + attribute(28, fd))
        tries["a veth to the host's namespaces"] = new(b"veth\0", data=attribute(
            1, struct.pack("BxHiII", 0, 0, 0, 0, 0) + attribute(3, b"leak1\0") + attribute(28, fd)))
    found = {}
    for name, request in tries.items():
        try:
            found[name] = netlink(*request)
        except OSError as e:
            found[name] = [errno.errorcode.get(e.errno, str(e))]
    if outside >= 0:
        ctypes.set_errno(0)
        found["entering the host's namespaces"] = [
            "ok" if LIBC.setns(outside, 0x40000000) == 0 else errno.errorcode[ctypes.get_errno()]]
    return found


def tunnel():
    """A tun and a tap device with an address of the host's network, and a route that leads everything there."""
    import fcntl
    found = []
    for name, flags in ((b"leaktun", 1), (b"leaktap", 2)):
        try:
            fd = os.open("/dev/net/tun", os.O_RDWR)
            fcntl.ioctl(fd, 0x400454ca, struct.pack("16sH22x", name, flags | 0x1000))
            os.system(f"ip link set {name.decode()} up; ip addr add 10.99.0.200/16 dev {name.decode()}")
            packet = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 28 + len(MARK), 1, 0, 64, 17, 0, bytes((10, 99, 0, 200)),
                                 bytes((10, 99, 0, 80)))
            packet = packet[:10] + struct.pack(">H", checksum(packet)) + packet[12:]
            packet += struct.pack(">HHHH", 9, 1234, 8 + len(MARK), 0) + MARK
            os.write(fd, packet if flags == 1 else b"\xff" * 6 + b"\x02" + bytes(5) + b"\x08\0" + packet)
            found.append(name.decode())
        except OSError:
            pass
    time.sleep(0.2)
    return found


def wait():
    """Holds a nested namespace open, until killed."""
    print(json.dumps(os.getpid()), flush=True)
    time.sleep(1000)


if __name__ == "__main__":
    print(json.dumps(globals()[sys.argv[1]](*sys.argv[2:])))
