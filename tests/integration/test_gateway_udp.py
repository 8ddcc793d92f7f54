# SPDX-License-Identifier: Apache-2.0
"""The gateway with UDP ASSOCIATE of SOCKS5: a client by hand, and PySocks; datagrams of strangers, and malformed ones."""
import json
import socket
import struct
import sys
import time

import support
from gateway_case import CLIENT4, GATEWAY4, PLAIN_PORT, RULES, Gatewayed
from lab import ORIGIN4
from support import NETWORK, SLOW, file_credential, policy, wait_until

FIRST, LAST = 41000, 41003
NAME, PORT = "udp.lab.test", 1234
PYSOCKS = """
import socket, sys, socks
host, port, token = sys.argv[1:]
s = socks.socksocket(socket.AF_INET, socket.SOCK_DGRAM)
s.set_proxy(socks.SOCKS5, host, int(port), True, "session", token)
s.settimeout(%d)
for text in (b"one", b"two"):
    s.sendto(text, ("udp.lab.test", 1234))
    data, peer = s.recvfrom(2048)
    peer = (peer[0].decode(), peer[1])  # PySocks takes names as text, and gives them as bytes
    print(data.decode(), *peer)
s.sendto(b"three", peer)  # to where an answer came from
print(s.recvfrom(2048)[0].decode())
"""


def header(host=NAME, port=PORT, fragment=0, reserved=0):
    name = host.encode()
    return struct.pack(">HBBB", reserved, fragment, 3, len(name)) + name + struct.pack(">H", port)


class Udp(Gatewayed):
    rules = (*RULES, f"udp://{NAME}:{PORT}")
    options = f"  udp_ports: {FIRST}-{LAST}\n"

    def setUp(self):
        super().setUp()
        self.udp = self.datagram_socket()

    def datagram_socket(self, address=GATEWAY4):
        s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.addCleanup(s.close)
        s.bind((address, 0))
        s.settimeout(20 * SLOW)
        return s

    def ask_for(self, token=None, tls=True, command=3, at=b"\0\0\0\0\0\0"):
        """The connection, and the reply to its request without its address."""
        token = (token or self.token).encode()
        s = self.connect(tls)
        s.sendall(b"\x05\x01\x02\x01\x07session" + bytes([len(token)]) + token + b"\x05" + bytes([command]) + b"\x00\x01" + at)
        answer = b""
        while len(answer) < 14 and (chunk := s.recv(14 - len(answer))):
            answer += chunk
        self.assertEqual(answer[:4], b"\x05\x02\x01\x00", answer)
        return s, answer[4:]

    def associate(self, **kw):
        """The connection, and where its datagrams go."""
        s, answer = self.ask_for(**kw)
        self.assertEqual(answer[:4], b"\x05\x00\x00\x01", (answer, self.daemon.stderr()))
        address, port = socket.inet_ntoa(answer[4:8]), struct.unpack(">H", answer[8:])[0]
        self.assertEqual(address, GATEWAY4)
        self.assertTrue(FIRST <= port <= LAST, port)
        return s, (address, port)

    def echoes(self, relay, text=b"hello", udp=None):
        udp = udp or self.udp
        udp.sendto(header() + text, relay)
        self.assertEqual(udp.recvfrom(4096), (header() + b"echo:" + text, relay))

    def hears_nothing(self, udp=None):
        udp = udp or self.udp
        udp.settimeout(0.3)
        try:
            self.assertEqual(udp.recvfrom(4096), None)
        except (TimeoutError, ConnectionRefusedError):
            pass
        udp.settimeout(20 * SLOW)

    @staticmethod
    def seen(text):
        """Datagrams with this text that have reached the outside."""
        with open(support.LAB.path("seen.jsonl")) as f:
            return [row for row in map(json.loads, f) if row["what"] == "udp" and text.hex() in row["data"]]

    def ended(self, s):
        s.settimeout(20 * SLOW)
        self.assertEqual(self.rest(s), b"")

    def test_by_hand(self):
        for tls in (True, False):
            s, relay = self.associate(tls=tls)
            self.echoes(relay)
            self.echoes(relay, b"x" * 1300)
            s.close()
        event = self.daemon.event(NETWORK, action_id=1, **{"connection_info.protocol_num": 17})
        self.assertEqual(event["src_endpoint"]["ip"], GATEWAY4, event)
        self.assertEqual(event["src_endpoint"]["port"], self.udp.getsockname()[1], event)
        self.assertEqual((event["dst_endpoint"]["hostname"], event["dst_endpoint"]["port"]), (NAME, PORT), event)
        self.assertEqual((event["traffic"]["bytes_out"], event["traffic"]["bytes_in"]), (1305, 1315), event)

    def test_pysocks(self):
        r = self.there(sys.executable, "-c", PYSOCKS % (20 * SLOW), GATEWAY4, str(PLAIN_PORT), self.token)
        self.assertEqual(r.stdout.splitlines(), [f"echo:one {NAME} {PORT}", f"echo:two {NAME} {PORT}", "echo:three"], r)
        event = self.daemon.event(NETWORK, action_id=1, **{"connection_info.protocol_num": 17})
        self.assertEqual((event["src_endpoint"]["ip"], event["traffic"]["bytes_out"]), (CLIENT4, 11), event)

    def test_refused(self):
        """What the policy refuses: the association, or datagrams of it; and requests that are not for an association."""
        without = support.LAB.write(f"no-udp-{time.monotonic_ns()}.yaml", policy(*RULES, credentials=file_credential()))
        token = self.create("without", policy=without)["token"]
        s, answer = self.ask_for(token=token)
        self.assertEqual(answer[:2], b"\x05\x02", answer)
        self.ended(s)
        s, answer = self.ask_for(command=2)
        self.assertEqual(answer[:2], b"\x05\x07", answer)
        s, relay = self.associate()
        for host, port in (("api.lab.test", PORT), (NAME, PORT + 1), (ORIGIN4, PORT), ("127.0.0.1", PORT), ("169.254.169.254", 53),
                           (GATEWAY4, PLAIN_PORT), ("udp.lab.test.evil.test", PORT)):
            for _ in range(3):
                self.udp.sendto(header(host, port) + b"refused", relay)
        self.hears_nothing()
        self.echoes(relay)
        self.assertEqual(self.seen(b"refused"), [])
        denied = [e for e in self.daemon.events(NETWORK) if e.get("action_id") == 2 and e["connection_info"]["protocol_num"] == 17]
        self.assertEqual(len(denied), 7, denied)  # one event for each destination

    def test_hostile_datagrams(self):
        s, relay = self.associate()
        strangers = [self.datagram_socket("127.0.0.1"), self.datagram_socket()]
        whole = header() + b"hostile"
        strangers[0].sendto(whole, relay)  # before the client: another address may not take the association
        self.echoes(relay)
        for stranger in strangers:  # ... nor another port afterwards
            stranger.sendto(whole, relay)
        for cut in range(len(header())):
            self.udp.sendto(whole[:cut], relay)
        for fragment in (1, 2, 127, 128, 255):
            self.udp.sendto(header(fragment=fragment) + b"hostile", relay)
        for wrong in (header(reserved=1), header(reserved=0xff00), header(port=0), header(host=""), header(host="a b"), header(host="\0"),
                      b"\0\0\0\x02\1\2\3\4\0\1", b"\0\0\0\xff\1\2\3\4\0\1", b"\0\0\0\3\xff" + b"a" * 200, b"\0" * 4096, b"\xff" * 65000):
            self.udp.sendto(wrong + b"hostile", relay)
        self.hears_nothing()
        for stranger in strangers:
            self.hears_nothing(stranger)
        self.assertEqual(self.seen(b"hostile"), [])
        self.echoes(relay, b"good")
        s.close()
        time.sleep(0.2)
        self.udp.sendto(header() + b"hostile: after the end", relay)
        self.hears_nothing()
        self.assertEqual(self.seen(b"hostile"), [])

    def test_announced_port(self):
        other = self.datagram_socket()
        at = socket.inet_aton(GATEWAY4) + struct.pack(">H", self.udp.getsockname()[1])
        _, relay = self.associate(at=at)
        other.sendto(header() + b"sooner", relay)
        self.hears_nothing(other)
        self.echoes(relay)
        self.assertEqual(self.seen(b"sooner"), [])

    def test_ports(self):
        """Only the configured ports are used; one that is free again is used again."""
        kept = [self.associate() for _ in range(LAST - FIRST + 1)]
        self.assertEqual(len({relay for _, relay in kept}), LAST - FIRST + 1)
        s, answer = self.ask_for()
        self.assertEqual(answer[:2], b"\x05\x01", answer)
        kept.pop()[0].close()
        self.assertTrue(wait_until(lambda: self.ask_for()[1][:2] == b"\x05\x00", 10 * SLOW))

    def test_cut(self):
        s, relay = self.associate()
        self.echoes(relay)
        r = self.daemon.cli("pause", "one")
        self.assertEqual(r.returncode, 0, r)
        self.ended(s)
        s, answer = self.ask_for()
        self.assertEqual(answer[:2], b"\x05\x01", answer)
        self.assertEqual(self.daemon.cli("resume", "one").returncode, 0)
        s, relay = self.associate()
        self.echoes(relay)
        with open(self.policy, "w") as f:
            f.write(policy(*RULES, credentials=file_credential()))
        r = self.daemon.cli("reload", "one")
        self.assertEqual(r.returncode, 0, r)
        self.ended(s)
        s, answer = self.ask_for()
        self.assertEqual(answer[:2], b"\x05\x02", answer)
        with open(self.policy, "w") as f:
            f.write(policy(*self.rules, credentials=file_credential()))
        self.assertEqual(self.daemon.cli("reload", "one").returncode, 0)
        s, relay = self.associate()
        self.echoes(relay)
        self.assertEqual(self.daemon.call("DELETE", "/v1/sessions/one")[0], 200)
        self.ended(s)
        self.udp.sendto(header() + b"revoked", relay)
        self.hears_nothing()
        self.assertEqual(self.seen(b"revoked"), [])
