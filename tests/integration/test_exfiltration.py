# SPDX-License-Identifier: Apache-2.0
"""A hostile root inside the sandbox, with CAP_NET_RAW and CAP_NET_ADMIN over its own network namespace: whatever it
sends, nothing leaves but what the worker itself sends. Seen from the host's side of the lab's uplink."""
import collections
import json
import os
import random
import socket
import struct
import time

import fence_frames
import support
from lab import DNS4, EVIL4, HOST4, HOST6, ORIGIN4, ORIGIN6
from support import NETWORK, PYTHON, SLOW, Capture, Case, policy, sh

NOTHING = "vethguard: 1\nname: nothing\n"
API = policy("https://api.lab.test")
HOSTILE = os.path.join(support.HERE, "hostile.py")
MARK = fence_frames.MARK.hex()
ROOTLESS = ["setpriv", "--reuid", "1000", "--regid", "1000", "--clear-groups"]
FAR = [ORIGIN4, EVIL4, HOST4, DNS4, "93.184.216.34", ORIGIN6, "2606:2800:220:1::1"]


def rows(frame):
    """(protocol, source, destination, port) of a captured frame, as far as it has them."""
    kind = frame[12:14]
    if kind == b"\x08\x00":
        header = (frame[14] & 15) * 4
        port = struct.unpack(">H", frame[14 + header + 2:14 + header + 4])[0] if frame[23] in (6, 17) else 0
        return frame[23], socket.inet_ntoa(frame[26:30]), socket.inet_ntoa(frame[30:34]), port
    if kind == b"\x86\xdd":
        port = struct.unpack(">H", frame[56:58])[0] if frame[20] in (6, 17) else 0
        return (frame[20], socket.inet_ntop(socket.AF_INET6, frame[22:38]),
                socket.inet_ntop(socket.AF_INET6, frame[38:54]), port)
    return kind.hex(), "", "", 0


ENDING = "state fin-wait-1 state fin-wait-2 state last-ack state closing"


class Watch(Capture):
    """A capture that knows what may pass. Also what the host's own stack says (ARP, neighbor discovery) is looked at:
    it has to speak for the host. What earlier tests began ends before it, repeated last segments too."""

    def __init__(self):
        support.wait_until(lambda: not sh("ss", "-Htn", *ENDING.split()).strip(), 5 * SLOW)
        super().__init__()
        self.own = self.socket.getsockname()[4]

    def foreign(self):
        def wrong(frame):
            if fence_frames.MARK in frame or frame[6:12] != self.own:
                return True
            return frame[12:14] == b"\x08\x06" and frame[28:32] != socket.inet_aton(HOST4)
        return [f.hex() for kind, f in self.frames if kind == self.OUTGOING and wrong(f)]

    def flows(self):
        return collections.Counter(rows(f) for f in self.sent())


class Hostile(Case):
    def hostile(self, box, *arguments, **kw):
        done = box.run(PYTHON, HOSTILE, *map(str, arguments), **kw)
        self.assertEqual(done.status, 0, done)
        return done.json()

    def assert_silent(self, watch):
        """Nothing at all left: the policy permits nothing, so the worker has nothing to say either."""
        self.assertEqual(dict(watch.flows()), {})
        self.assertEqual(watch.foreign(), [])

    def dropped(self, box, **fields):
        return [e for e in box.events(NETWORK) if e["disposition_id"] == 6 and support.matches(e, fields)]

    def packets(self, box, **fields):
        return sum(e["traffic"]["packets"] for e in self.dropped(box, **fields))


def battery(box):
    """[(what record it should leave, frame)]: the frames of fence_frames with this sandbox's addresses."""
    link = json.loads(box.sh("ip -j link show eth0").out)[0]
    neighbours = json.loads(box.sh("ip -j neigh show dev eth0").out)
    f = fence_frames
    f.SANDBOX_MAC, f.GATE_MAC = link["address"], neighbours[0]["lladdr"]
    f.GATE4 = next(n["dst"] for n in neighbours if ":" not in n["dst"])
    f.GATE6 = next(n["dst"] for n in neighbours if n["dst"].startswith("fd"))
    addresses = [a["local"] for a in json.loads(box.sh("ip -j addr show eth0").out)[0]["addr_info"]]
    f.SANDBOX4 = next(a for a in addresses if ":" not in a)
    f.SANDBOX6 = next(a for a in addresses if a.startswith("fd"))
    f.LINK_LOCAL = next((a for a in addresses if a.startswith("fe80")), f.LINK_LOCAL)
    f.UPLINK4, f.UPLINK6 = HOST4, HOST6
    f.ether.__defaults__ = (f.GATE_MAC, f.SANDBOX_MAC)
    f.ip4.__defaults__ = (f.FAR4, f.SANDBOX4)
    f.ip6.__defaults__ = (f.FAR6, f.SANDBOX6)
    cases = f.all_cases(3128)
    for far4, far6 in ((ORIGIN4, ORIGIN6), (EVIL4, HOST6), (DNS4, "fd99::53")):
        f.ip4.__defaults__, f.ip6.__defaults__ = (far4, f.SANDBOX4), (far6, f.SANDBOX6)
        f.FAR4, f.FAR6 = far4, far6
        cases += f.refused_protocols(3128) + f.fragments4() + f.extensions6() + f.options4() + f.spoofed()
    return [(c.prefix, frame) for c in cases for frame in c.frames]


def as_input(frames):
    return "\n".join(f.hex() for f in frames)


class Frames(Hostile):
    """Frames by hand (AF_PACKET): every protocol, address and malformation of the fence's own battery."""

    def test_battery(self):
        box = self.sandbox(NOTHING, user="root")
        frames = battery(box)
        with Watch() as watch:
            sent = self.hostile(box, "frames", "eth0", input=as_input(f for _, f in frames))
        self.assertGreater(sent, len(frames) * 9 // 10)
        self.assert_silent(watch)
        box.close()
        expected = collections.Counter(prefix for prefix, _ in frames)
        for rule in ("other", "source", "ethertype"):
            with self.subTest(rule=rule):
                # The kernel in there has something to say of its own as well; nothing may be missing.
                self.assertGreaterEqual(self.packets(box, **{"firewall_rule.name": rule}),
                                        expected[rule] - (len(frames) - sent))

    def test_mutations(self):
        box = self.sandbox(NOTHING, user="root")
        battery(box)
        frames = list(fence_frames.mutations(random.Random(1), 20000 if support.LONG else 4000))
        with Watch() as watch:
            self.hostile(box, "frames", "eth0", input=as_input(frames))
        self.assert_silent(watch)

    def test_while_the_worker_works(self):
        """The same with a policy that lets requests pass: only these do."""
        box = self.sandbox(API, user="root")
        other = [f for _, f in battery(box)]
        with Watch() as watch:
            done = box.sh(f"for i in 1 2 3 4 5 6 7 8; do curl -sS -o /dev/null -w '%{{http_code}} ' https://api.lab.test/; "
                          f"done & {PYTHON} {HOSTILE} frames eth0; wait", input=as_input(other))
        self.assertIn("200 200 200 200", done.out, done)
        self.assertEqual(watch.foreign(), [])
        for flow in watch.flows():
            self.assertIn(flow, [(17, HOST4, DNS4, 53), (6, HOST4, ORIGIN4, 443), (6, HOST6, ORIGIN6, 443)])
        self.assertEqual({r["name"] for r in self.seen("dns")}, {"api.lab.test"})

    def test_nothing_arrives_from_the_burst_at_the_host(self):
        """Not even at the host itself: a listener of the host on every address sees nothing."""
        box = self.sandbox(NOTHING, user="root")
        listeners = []
        for family, address in ((socket.AF_INET, ""), (socket.AF_INET6, "")):
            s = socket.socket(family, socket.SOCK_DGRAM)
            self.addCleanup(s.close)
            if family == socket.AF_INET6:
                s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            s.bind((address, 1234))
            s.settimeout(0.1)
            listeners.append(s)
        for a in (HOST4, "11.22.33.44", "127.0.0.1", "224.0.0.1"):
            self.hostile(box, "burst", a, 1234, 20)
        done = box.py(f"import socket\ns=socket.socket(socket.AF_INET6,socket.SOCK_DGRAM)\n"
                      f"for i in range(20):\n try: s.sendto(b'x',('{HOST6}',1234))\n except OSError: pass")
        self.assertEqual(done.status, 0, done)
        for s in listeners:
            with self.assertRaises(TimeoutError):
                s.recv(100)


# Changes that root may make to its own network, in shell; each is followed by the whole battery.
CHANGES = {
    "addresses": f"ip addr add {HOST4}/16 dev eth0; ip -6 addr add {HOST6}/64 dev eth0 nodad; ip addr add 8.8.8.8/32 dev eth0",
    "addresses replaced": "ip addr flush dev eth0; ip addr add 10.99.0.77/16 dev eth0; "
                          "ip -6 addr add fd99::77/64 dev eth0 nodad; ip route add default via 10.99.0.1; "
                          "ip -6 route add default via fd99::1",
    "mac": "ip link set eth0 down; ip link set eth0 address 02:00:00:00:aa:aa; ip link set eth0 up; "
           "ip route add default via 198.18.0.1",
    "mac of the gate": "ip link set eth0 down; ip link set eth0 address $(ip -j neigh show dev eth0 | "
                       "sed 's/.*lladdr\":\"\\([0-9a-f:]*\\)\".*/\\1/'); ip link set eth0 up",
    "routes": "ip route flush table main; ip route add default dev eth0; ip -6 route add default dev eth0; "
              "ip rule add pref 1 lookup 7; ip route add default dev eth0 table 7",
    "neighbours": "ip neigh flush dev eth0; ip neigh replace 10.99.0.80 lladdr ff:ff:ff:ff:ff:ff dev eth0; "
                  "ip route add 10.99.0.0/16 dev eth0",
    "qdiscs": "tc qdisc replace dev eth0 root pfifo; tc qdisc del dev eth0 root; tc qdisc add dev eth0 clsact; "
              "tc qdisc replace dev eth0 root noqueue",
    "own ruleset": "nft add table ip x; nft add chain ip x y '{type nat hook postrouting priority 0;}'; "
                   "nft add rule ip x y masquerade; nft flush ruleset; echo 1 > /proc/sys/net/ipv4/ip_forward",
    "mtu": "ip link set eth0 mtu 68; ip link set eth0 mtu 65535",
    "macvlan": "ip link add link eth0 name m0 type macvlan mode bridge; ip addr add 10.99.0.78/16 dev m0; "
               "ip link set m0 up; ip route replace default dev m0",
    "bridge": "ip link add b0 type bridge; ip link set eth0 master b0; ip addr add 10.99.0.79/16 dev b0; "
              "ip link set b0 up; ip route replace default dev b0",
    "vlan": "ip link add link eth0 name v0 type vlan id 5; ip addr add 10.99.0.80/16 dev v0; ip link set v0 up; "
            "ip route replace default dev v0",
    "vxlan": f"ip link add t0 type vxlan id 5 remote {ORIGIN4} dstport 4789 dev eth0; ip addr add 10.98.0.1/16 dev t0; "
             "ip link set t0 up; ip route replace default dev t0",
    "tunnels": f"for k in ipip sit gre; do ip link add t$k type $k remote {ORIGIN4} local 198.18.0.2; ip link set t$k up; "
               f"ip route replace 10.97.0.0/16 dev t$k; done; ip link add w0 type wireguard; ip link set w0 up",
    "another name": "ip link set eth0 down; ip link set eth0 name wire0; ip link property add dev wire0 altname vg0; "
                    "ip link add link wire0 name eth0 type macvlan mode passthru; ip link set wire0 up; ip link set eth0 up; "
                    f"ip addr add {HOST4}/16 dev eth0; ip route add default dev eth0",
    "promiscuous": "ip link set eth0 promisc on; ip link set eth0 allmulticast on; ip link set eth0 arp off",
}


class Changes(Hostile):
    def change(self, name):
        box = self.sandbox(NOTHING, user="root")
        frames = [f for _, f in battery(box)]
        with Watch() as watch:
            box.sh(CHANGES[name])
            sent = self.hostile(box, "frames", "eth0", input=as_input(frames))
            # And the kernel's own way of sending, in case the change gave it one.
            box.py("import hostile, threading\n"
                   f"ts = [threading.Thread(target=hostile.attempt, args=(lambda a=a, p=p: connect(a, p, 1),))\n"
                   f"      for a in {[ORIGIN4, EVIL4]} for p in (22, 80, 443)]\n"
                   f"ts += [threading.Thread(target=hostile.attempt, args=(lambda a=a: hostile.burst(a, 1234, 5),))\n"
                   f"       for a in {[ORIGIN4, EVIL4, HOST4, '10.98.0.2', '10.97.0.2']}]\n"
                   "[t.start() for t in ts]; [t.join() for t in ts]")
            for link in json.loads(box.sh("ip -j link").out):
                if link["ifname"] not in ("lo", "eth0") and not link["ifname"].endswith("0@NONE"):
                    box.run(PYTHON, HOSTILE, "frames", link["ifname"], input=as_input(frames[:200]))
        self.assertGreater(sent, 0)
        self.assert_silent(watch)
        self.assertEqual(self.seen(), [])
        self.assertEqual(box.close(), 0)

    def test_tun_and_tap(self):
        box = self.sandbox(NOTHING, user="root")
        with Watch() as watch:
            self.hostile(box, "tunnel")
        self.assert_silent(watch)

    def test_eth0_is_deleted(self):
        """The sandbox cuts itself off; nobody else minds."""
        box = self.sandbox(API, user="root")
        with Watch() as watch:
            box.sh("ip link del eth0; ip link add eth0 type veth peer name eth1; ip link set eth0 up; ip link set eth1 up; "
                   "ip addr add 198.18.0.2/30 dev eth0; ip route add default via 198.18.0.1")
            done = box.sh("curl -sS -m 2 https://api.lab.test/")
        self.assertNotEqual(done.status, 0, done)
        self.assert_silent(watch)
        self.assertIsNotNone(box.event(support.FINDING, seconds=10, **{"finding_info.desc": lambda text: "taken away from inside" in (text or "")}),
                             box.events()[-2:])
        self.assertEqual(box.sh("echo still here").out, "still here\n")
        self.assertEqual(box.close(), 0, box.stderr())

    def test_eth0_is_down_for_a_while(self):
        box = self.sandbox(API, user="root")
        box.sh("ip link set eth0 down; sleep 0.2; ip link set eth0 up; ip route add default via 198.18.0.1 onlink dev eth0")
        done = box.sh("curl -sS -m 5 https://api.lab.test/back")
        self.assertIn("/back", done.out, done)


for _name in CHANGES:
    setattr(Changes, "test_" + _name.replace(" ", "_"), lambda self, name=_name: self.change(name))


class Sockets(Hostile):
    @classmethod
    def setUpClass(cls):
        cls.box = support.Sandbox(NOTHING, user="root")

    @classmethod
    def tearDownClass(cls):
        cls.box.close()

    def test_no_answer_and_no_wait(self):
        with Watch() as watch:
            found = self.hostile(self.box, "sockets", *FAR, timeout=120)
        self.assert_silent(watch)
        self.assertEqual(self.seen(), [])
        for name, (result, seconds) in found.items():
            with self.subTest(attempt=name):
                self.assertFalse(isinstance(result, str) and MARK in result, (name, result))  # an answer came
                if name.startswith("udp ") or name.startswith("ping") or name.startswith("marked"):
                    self.assertNotEqual(result, "silence")
                    self.assertLess(seconds, 1 * SLOW, (name, result))

    def test_groups(self):
        with Watch() as watch:
            self.hostile(self.box, "groups")
        self.assert_silent(watch)

    def test_quic_fails_at_once(self):
        for address in (ORIGIN4, ORIGIN6):
            with self.subTest(address=address):
                done = self.box.py("import hostile\nfamily = socket.AF_INET6 if ':' in '%s' else socket.AF_INET\n"
                                   "print(json.dumps([hostile.attempt(lambda: hostile.ask(family, socket.SOCK_DGRAM, 0, "
                                   "('%s', 443), bytes([0xc3]) + bytes(1199))) for _ in range(20)]))" % (address, address))
                for result, seconds in done.json():
                    self.assertIn(result, ("EHOSTUNREACH", "EACCES", "ECONNREFUSED", "ENETUNREACH", "EPERM"))
                    self.assertLess(seconds, 1 * SLOW)

    def test_families(self):
        """Only those that stay in the network namespace exist: no vsock, no bluetooth, no AF_XDP."""
        for family, results in self.hostile(self.box, "families").items():
            if int(family) not in (socket.AF_UNIX, socket.AF_INET, socket.AF_INET6, socket.AF_NETLINK, socket.AF_PACKET,
                                   socket.AF_ALG):
                self.assertEqual(results, ["EAFNOSUPPORT"], family)

    def test_calls(self):
        found = self.hostile(self.box, "calls")
        self.assertEqual(found["io_uring_setup"], "ENOSYS")
        self.assertEqual(found["pidfd of the host"], "ESRCH")
        for name in ("socket of a family with high bits", "bpf", "unshare net", "unshare mount", "mount", "setns",
                     "ptrace init", "init_module"):
            with self.subTest(call=name):
                self.assertIn(found[name], ("EPERM", "EAFNOSUPPORT", "ENOSYS", "EACCES"))

    def test_tcp_reaches_only_the_worker(self):
        """Connections to anything end at the worker; where nothing is allowed they leave no trace outside."""
        with Watch() as watch:
            done = self.box.py(f"""
import hostile
def talk(a, p):
    s = connect(a, p, 2, socket.AF_INET6 if ':' in a else socket.AF_INET)
    s.sendall(b'SSH-2.0-leak\\r\\n' if p % 2 else b'GET / HTTP/1.1\\r\\nHost: evil.lab.test\\r\\nConnection: close\\r\\n\\r\\n')
    return read_all(s)[:100].decode('latin-1')
print(json.dumps([hostile.attempt(lambda: talk(a, p)) for a in {FAR + ['169.254.169.254', '198.18.0.1', 'fd99::1']}
                  for p in (22, 25, 80, 443, 3128, 6379, 65535)]))""", timeout=120)
        self.assertEqual(done.status, 0, done)
        for result, _ in done.json():
            self.assertNotIn("200 OK", str(result))
            self.assertNotIn("banner", str(result))
        self.assert_silent(watch)


class Counts(Hostile):
    def test_a_thousand_packets(self):
        box = self.sandbox(NOTHING, user="root")
        self.assertEqual(self.hostile(box, "burst", "93.184.216.34", 4321, 1000), 1000)
        event = box.event(NETWORK, **{"dst_endpoint.port": 4321})
        self.assertIsNotNone(event)
        self.assertEqual((event["action_id"], event["disposition_id"], event["activity_id"]), (2, 6, 5), event)
        self.assertEqual(event["dst_endpoint"]["ip"], "93.184.216.34")
        self.assertEqual(event["connection_info"]["protocol_num"], 17)
        box.close()
        self.assertEqual(self.packets(box, **{"dst_endpoint.port": 4321}), 1000)
        self.assertEqual(sum(e["traffic"]["bytes"] for e in self.dropped(box, **{"dst_endpoint.port": 4321})), 1000 * 60)
        self.assertLess(len(self.dropped(box, **{"dst_endpoint.port": 4321})), 20)

    def test_each_attempt_shows(self):
        box = self.sandbox(NOTHING, user="root")
        self.hostile(box, "sockets", "93.184.216.34", "2606:2800:220:1::1")
        box.close()
        for name, fields in {
                "udp": {"connection_info.protocol_num": 17, "dst_endpoint.port": 443, "dst_endpoint.ip": "93.184.216.34"},
                "udp v6": {"connection_info.protocol_num": 17, "dst_endpoint.port": 443,
                           "dst_endpoint.ip": "2606:2800:220:1::1"},
                "echo": {"connection_info.protocol_num": 1}, "echo v6": {"connection_info.protocol_num": 58},
                "sctp": {"connection_info.protocol_num": 132}, "6in4": {"connection_info.protocol_num": 41},
                "gre": {"connection_info.protocol_num": 47}, "esp": {"connection_info.protocol_num": 50}}.items():
            with self.subTest(attempt=name):
                events = self.dropped(box, **fields)
                self.assertNotEqual(events, [])
                self.assertEqual(events[0]["firewall_rule"]["name"], "other")

    def test_many_kinds_are_all_counted(self):
        """More kinds of packets than the recorder tells apart: none is lost from the sum."""
        box = self.sandbox(NOTHING, user="root")
        done = box.py("import hostile\ns=socket.socket(socket.AF_INET,socket.SOCK_DGRAM)\nn=0\n"
                      "for i in range(6000):\n"
                      " for again in (1,2):\n"
                      "  try: s.sendto(b'x',('93.184.%d.%d' % (i%200, i//200), 10000+i)); n+=1; break\n"
                      "  except OSError: pass\n"
                      " if i % 100 == 0: time.sleep(0.005)\n"
                      "print(n)")
        box.close()
        self.assertEqual(self.packets(box, **{"connection_info.protocol_num": 17, "firewall_rule.name": "other"}) +
                         self.packets(box, **{"firewall_rule.name": "various"}), int(done.out), done)
        self.assertLess(len(box.events(NETWORK)), 3000)


def gate_of(box):
    """Links and addresses of the gate's namespace, through the descriptor with which the supervisor holds it."""
    folder = f"/proc/{box.pids()['supervisor']}/fd"
    inside = os.stat(f"/proc/{next(iter(support.descendants(box.pids()['init'])))}/ns/net").st_ino
    known = {inside, os.stat("/proc/self/ns/net").st_ino}
    found = []
    for fd in os.listdir(folder):
        try:
            there = os.readlink(f"{folder}/{fd}").startswith("net:") and os.stat(f"{folder}/{fd}").st_ino not in known
        except FileNotFoundError:  # the supervisor has closed it meanwhile
            continue
        if there:
            links = json.loads(sh("nsenter", f"--net={folder}/{fd}", "ip", "-j", "addr"))
            found += [(row["ifname"], [a["local"] for a in row["addr_info"]]) for row in links]
    return found


class Namespaces(Hostile):
    """The veth's other end lies in a namespace that the sandbox can name but not touch."""

    @classmethod
    def setUpClass(cls):
        cls.box = support.Sandbox(API, user="root")

    @classmethod
    def tearDownClass(cls):
        cls.box.close()

    def check_gate(self, box):
        before, gate = support.Traces(), gate_of(box)
        self.assertEqual([name for name, _ in gate], ["lo", "vg0"], "the gate was not found")
        with Watch() as watch:
            found = self.hostile(box, "gate")
        self.assertEqual(gate_of(box), gate)
        for name, results in found.items():
            with self.subTest(attempt=name):
                self.assertFalse("ok" in results and not name.startswith("own: "), results)
                self.assertNotIn("data", results)
        self.assertEqual(watch.foreign(), [])
        self.assertEqual(dict(watch.flows()), {})
        self.assertEqual(before.since(), "")
        links = [line["ifname"] for line in json.loads(box.sh("ip -j link").out)]
        self.assertIn("eth0", links)
        self.assertIn("/still", box.sh("curl -sS https://api.lab.test/still").out)

    def test_netlink_to_the_gate(self):
        self.check_gate(self.box)

    def test_netlink_to_the_gate_rootless(self):
        os.chmod(support.LAB.dir, 0o777)
        self.addCleanup(os.chmod, support.LAB.dir, 0o755)
        self.check_gate(self.sandbox(API, prefix=ROOTLESS))

    def test_tools(self):
        """The same with ip and nsenter, as somebody would really try it."""
        for command in ("ip link set eth0 netns /run/netns/outside", "ip link set eth0 netns 999999",
                        "ip link add x0 type veth peer name x1 netns /run/netns/outside",
                        "nsenter --net=/run/netns/outside true", "unshare -Ur nsenter --net=/run/netns/outside true",
                        "ip netns exec outside true", "nsenter -t 1 -n true", "nsenter -t 1 -m true", "unshare -n true",
                        "mount -t tmpfs none /mnt", "unshare -m true", "mount -o remount,rw /etc/resolv.conf",
                        "umount /etc/resolv.conf", "umount /etc/ssl/certs", "umount /run/dbus",
                        "ip link add link eth0 name m9 link-netnsid 0 type macvlan", "modprobe dummy", "insmod /dev/null",
                        "cat /proc/1/environ", "ls /proc/1/root/", "ls -l /proc/1/fd/", "head -c 1 /proc/1/mem",
                        "head -c 1 /dev/mem", "head -c 1 /proc/kcore", "sysctl -w kernel.core_pattern='|/bin/true'",
                        "echo c > /proc/sysrq-trigger", "mknod /tmp/leak-device c 1 1"):
            with self.subTest(command=command):
                done = self.box.sh(command + " 2>&1")
                self.assertNotEqual(done.status, 0, done)
        self.assertIn("/still", self.box.sh("curl -sS https://api.lab.test/still").out)

    def nested(self, box, text):
        """A namespace inside, with eth0 moved into it and all privileges that can be had there."""
        return box.sh("unshare -Urn sh -c 'echo $$ > /tmp/leak-nested-$PPID; exec sleep 100' & p=$!\n"
                      "trap 'kill $p; rm -f /tmp/leak-nested-*' EXIT\n"
                      "for i in 1 2 3 4 5 6 7 8 9 10; do test -s /tmp/leak-nested-$$ && break; sleep 0.1; done\n"
                      "n=$(cat /tmp/leak-nested-$$)\n" + text, timeout=30)

    def test_nested(self):
        box = self.sandbox(NOTHING, user="root")
        frames = as_input(f for _, f in battery(box))
        support.LAB.write("nested-frames", frames)
        gate = gate_of(box)
        enter = "nsenter -t $n -U -n --preserve-credentials"
        with Watch() as watch:
            done = self.nested(box, f"ip link set eth0 netns $n || exit 3\n{enter} sh -c '"
                               "ip link set eth0 up; ip addr add 198.18.0.2/30 dev eth0; "
                               "ip route add default via 198.18.0.1; "
                               f"{PYTHON} {HOSTILE} frames eth0 < {support.LAB.path('nested-frames')}; "
                               f"{PYTHON} {HOSTILE} burst {ORIGIN4} 1234 10; {PYTHON} {HOSTILE} gate >&2; "
                               f"curl -sS -m 2 --resolve api.lab.test:443:{ORIGIN4} https://api.lab.test/'")
        self.assertGreater(int(done.out.split()[0]), 100, done)
        for name, results in json.loads(done.err.splitlines()[0]).items():
            self.assertFalse("ok" in results and not name.startswith("own: "), name)
        self.assertEqual(gate_of(box), gate)
        self.assert_silent(watch)
        self.assertEqual(self.seen(), [])

    def test_nested_user_namespaces_give_no_way_around(self):
        for command in ("nsenter --net=/proc/1/ns/net true", "mount --bind / /mnt && umount /etc/resolv.conf",
                        "umount -l /etc/ssl/certs", "umount -l /run/dbus", "head -c 1 /proc/1/mem", "mount -t sysfs none /mnt "
                        "&& ls /mnt/class/net/up0", f"{PYTHON} -c 'import socket; socket.socket(40, 1)'"):
            with self.subTest(command=command):
                done = self.box.sh(f"unshare -Urnm sh -c \"{command}\" 2>&1")
                self.assertNotEqual(done.status, 0, done)


class Host(Hostile):
    """Ways to the host's programs that are not packets."""

    PREFIX = []
    USER = "root"

    def setUp(self):
        super().setUp()
        if self.PREFIX:
            os.chmod(support.LAB.dir, 0o777)
            self.addCleanup(os.chmod, support.LAB.dir, 0o755)

    def start(self, text=API):
        return self.sandbox(text, prefix=self.PREFIX, user=self.USER)

    def listen(self, address):
        s = socket.socket(socket.AF_UNIX)
        self.addCleanup(s.close)
        if isinstance(address, str) and not address.startswith("\0") and os.path.exists(address):
            os.unlink(address)
        s.bind(address)
        s.listen(8)
        s.settimeout(0.2)
        if not address.startswith("\0"):
            os.chmod(address, 0o777)
            self.addCleanup(lambda: os.path.exists(address) and os.unlink(address))
        return s

    def test_abstract_sockets(self):
        s = self.listen("\0vethguard-lab-abstract")
        box = self.start()
        done = box.py("import hostile\ns=socket.socket(socket.AF_UNIX)\n"
                      "print(hostile.attempt(lambda: s.connect('\\0vethguard-lab-abstract')))")
        self.assertIn("ECONNREFUSED", done.out, done)
        with self.assertRaises(TimeoutError):
            s.accept()

    def test_path_sockets(self):
        """Those that exist when the sandbox starts are covered, wherever they are."""
        folder = support.LAB.path("service dir")
        os.makedirs(folder, exist_ok=True)
        os.chmod(folder, 0o755)
        paths = [support.LAB.path("service.sock"), folder + "/späced name"]
        sockets = [self.listen(p) for p in paths]
        datagram = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.addCleanup(datagram.close)
        if os.path.exists(support.LAB.path("datagram.sock")):
            os.unlink(support.LAB.path("datagram.sock"))
        datagram.bind(support.LAB.path("datagram.sock"))
        os.chmod(support.LAB.path("datagram.sock"), 0o777)
        datagram.settimeout(0.2)
        box = self.start()
        done = box.py("import hostile\nr=[]\n"
                      f"for p in {paths!r}:\n s=socket.socket(socket.AF_UNIX)\n"
                      " r.append(hostile.attempt(lambda: s.connect(p)))\n"
                      "s=socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)\n"
                      f"r.append(hostile.attempt(lambda: s.sendto(b'x', {support.LAB.path('datagram.sock')!r})))\n"
                      "print(json.dumps(r))")
        for result, _ in done.json():
            self.assertIn(result, ("ECONNREFUSED", "ENOENT", "EACCES"), done)
        for s in sockets:
            with self.assertRaises(TimeoutError):
                s.accept()
        with self.assertRaises(TimeoutError):
            datagram.recv(10)

    def test_directories_of_services(self):
        """A socket that a service makes later in a well-known directory is not seen either."""
        box = self.start()
        made = []
        for folder in ("/run/dbus", "/run/user"):
            if os.path.isdir(folder):
                made.append(self.listen(folder + "/vethguard-lab.sock"))
                done = box.sh(f"ls -a {folder}")
                self.assertNotIn("vethguard-lab.sock", done.out)
        if not made:
            self.skipTest("no such directory here")

    def test_proc(self):
        """Only the sandbox's own processes exist."""
        box = self.start()
        done = box.sh("for p in /proc/[0-9]*; do echo $(basename $p) $(cat $p/comm) $(tr '\\0' ' ' < $p/cmdline); done; "
                      "cat /proc/*/environ 2>/dev/null | tr '\\0' '\\n'")
        self.assertLess(len([p for p in done.out.splitlines() if p[:1].isdigit()]), 12, done)
        for name in ("vethguardd", "vethguard-worke", "vethguard-keepe", "vethguard-recor", "origin.py"):
            self.assertNotIn(name, done.out)
        self.assert_no_secret(done.out_bytes)
        self.assertEqual(box.sh("cat /proc/sys/kernel/ns_last_pid >/dev/null; ls -d /proc/" +
                                str(box.pids()["worker"])).out, "")

    def test_roles_cannot_be_touched(self):
        box = self.start()
        roles = {k: v for k, v in box.pids().items() if k != "init"}
        done = box.py(f"import hostile\nr = {{}}\nfor name, pid in {roles!r}.items():\n"
                      " r[name + ' kill'] = hostile.attempt(lambda: os.kill(pid, 9))[0]\n"
                      " r[name + ' attach'] = hostile.LIBC.ptrace(16, pid, 0, 0)\n"
                      " r[name + ' memory'] = hostile.attempt(lambda: open(f'/proc/{pid}/mem', 'rb'))[0]\n"
                      "print(json.dumps(r))")
        for name, result in done.json().items():
            with self.subTest(attempt=name):
                self.assertIn(result, ("ESRCH", "ENOENT", -1))
        alive = box.pids()
        for role in roles:
            self.assertEqual(alive[role], roles[role])
        self.assertIn("/still", box.sh("curl -sS https://api.lab.test/still").out)

    def test_init_cannot_be_touched(self):
        """Process 1 is vethguard's own. It has nothing to hide any more, but it must not be made to do anything."""
        box = self.start()
        done = box.py("import hostile\nr = {}\n"
                      "r['attach'] = hostile.LIBC.ptrace(16, 1, 0, 0)\n"
                      "r['seize'] = hostile.LIBC.ptrace(0x4206, 1, 0, 0)\n"
                      "for n in ('mem', 'environ', 'maps', 'auxv'):\n"
                      " r[n] = hostile.attempt(lambda: len(open('/proc/1/' + n, 'rb').read(10)))[0]\n"
                      "for n in ('fd/0', 'cwd', 'root', 'exe', 'ns/net', 'ns/user'):\n"
                      " r[n] = hostile.attempt(lambda: os.readlink('/proc/1/' + n))[0]\n"
                      "for n in (9, 15, 19, 11): os.kill(1, n)\n"
                      "print(json.dumps(r))")
        for name, result in done.json().items():
            with self.subTest(attempt=name):
                self.assertIn(result, (-1, "EACCES", "EPERM"))
        time.sleep(0.2)
        self.assertIn("/still", box.sh("curl -sS https://api.lab.test/still").out)


class HostRootless(Host):
    """Without root the roles run under the very uid of the sandbox: what keeps them apart is not the uid."""
    PREFIX = ROOTLESS
    USER = None

    def test_no_packet_out(self):
        box = self.start(NOTHING)
        with Watch() as watch:
            found = self.hostile(box, "sockets", ORIGIN4, ORIGIN6)
            self.hostile(box, "burst", ORIGIN4, 1234, 100)
            box.sh("unshare -Urn true")
        self.assertTrue(found)
        self.assert_silent(watch)
        self.assertEqual(self.seen(), [])
