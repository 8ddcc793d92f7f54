# SPDX-License-Identifier: Apache-2.0
"""UDP by vethguard-connect: datagrams that the kernel brings to it, of programs that know of nothing; UDP ASSOCIATE of SOCKS5, of programs
that do; and gateways that are not what they should be."""
import json
import os
import signal
import socket
import ssl
import struct
import subprocess
import sys
import threading

import support
from connect_case import PORT, Connected, without_nft
from gateway_case import CLIENT4, GATEWAY4, RULES
from lab import DNS4, EVIL4, ORIGIN4, ORIGIN6
from support import NETWORK, SLOW, file_credential, policy, wait_until

NAME, ECHO, DNS_PORT = "udp.lab.test", 1234, 5300
UDP_RULES = (*RULES, f"udp://{NAME}:{ECHO}", f"udp://{DNS4}:{DNS_PORT}", f"udp://[{ORIGIN6}]:{ECHO}")
RELAYED = 8555  # of the gateway that is not what it should be
WAIT = 20 * SLOW
# What a program of the sandbox does with UDP; s is an unconnected socket, c() a connected one.
PROGRAM = f"""
import errno, socket, sys, time
ECHO, NAME = ("{NAME}", {ECHO}), "{NAME}"
def plain(family=socket.AF_INET):
    s = socket.socket(family, socket.SOCK_DGRAM)
    s.settimeout({WAIT})
    return s
def c(host=NAME, port={ECHO}, family=socket.AF_INET):
    s = plain(family)
    s.connect((host, port))
    return s
def silent(s, seconds=0.4):
    s.settimeout(seconds)
    try:
        return "heard " + repr(s.recv(4096))
    except TimeoutError:
        return "silent"
    except OSError as e:
        return errno.errorcode[e.errno]
def fails(s, text=b"x"):
    # A connected socket whose datagram is refused: the next call says so.
    try:
        s.send(text)
        return repr(s.recv(4096))
    except TimeoutError:
        return "silent"
    except OSError as e:
        return errno.errorcode[e.errno]
"""


def seen(text):
    """Datagrams with this text that have reached the outside."""
    with open(support.LAB.path("seen.jsonl")) as f:
        return [row for row in map(json.loads, f) if row["what"] == "udp" and text.hex() in row["data"]]


class Captured(Connected):
    """Programs that know nothing of a proxy."""
    rules = UDP_RULES

    def setUp(self):
        super().setUp()
        for argv in (("route", "add", "default", "via", GATEWAY4), ("-6", "addr", "add", "fd00:77::2/64", "dev", "eth0", "nodad"),
                     ("-6", "route", "add", "default", "via", "fd00:77::1")):  # which forwards nothing
            support.sh("ip", "-n", self.elsewhere, *argv)
        self.begin("--redirect")

    def program(self, code):
        """What a program of the sandbox prints, by lines."""
        r = self.resolving(sys.executable, "-c", PROGRAM + code)
        self.assertEqual(r.returncode, 0, (r, self.said(), self.daemon.stderr()))
        return r.stdout.split("\n")[:-1]

    def set_policy(self, *rules):
        with open(self.policy, "w") as f:
            f.write(policy(*rules, credentials=file_credential()))
        r = self.daemon.cli("reload", "one")
        self.assertEqual(r.returncode, 0, r)

    def test_echo(self):
        """Answers come from where the program has sent to, at a socket that is connected and at one that is not."""
        out = self.program("s = plain(); to = (socket.gethostbyname(NAME), 1234); s.sendto(b'one', to); data, peer = s.recvfrom(4096)\n"
                           "print(data.decode(), peer == to, to[0].startswith('198.18.'))\n"
                           "a, b = c(), c(); a.send(b'a'); b.send(b'b'); print(b.recv(99).decode(), a.recv(99).decode())\n"
                           "a.send(b'y' * 1400); print(len(a.recv(4096)))\n"
                           "s.sendto(b'', to); print(s.recvfrom(4096)[0].decode())")
        self.assertEqual(out, ["echo:one True True", "echo:b echo:a", "1405", "echo:"])
        self.many_datagrams()
        self.dig()
        self.ipv6()
        self.assertEqual(self.stop(), 0, self.said())  # ends all flows
        event = self.daemon.event(NETWORK, action_id=1, **{"connection_info.protocol_num": 17, "dst_endpoint.hostname": NAME})
        self.assertEqual((event["src_endpoint"]["ip"], event["dst_endpoint"]["port"]), (CLIENT4, ECHO), event)

    def many_datagrams(self):
        """As QUIC does: one socket, full-sized datagrams, sixteen on their way at a time; what is lost is sent again."""
        out = self.program("s = c(); s.settimeout(1); left, sent = set(range(300)), 0\n"
                           "while left and sent < 3000:\n"
                           "    batch = sorted(left)[:16]; sent += len(batch)\n"
                           "    for n in batch: s.send(b'%04d' % n + b'q' * 1196)\n"
                           "    try:\n"
                           "        for _ in batch: left.discard(int(s.recv(4096)[5:9]))\n"
                           "    except TimeoutError: pass\n"
                           "print(len(left))")
        self.assertEqual(out, ["0"])

    def dig(self):
        """A program as it is, to an address that a rule names; each question comes from another port."""
        open_before = self.associations()
        for name in ("api.lab.test", "plain.lab.test", "tcp.lab.test"):
            r = self.there("dig", "+short", "+tries=2", f"+time={10 * SLOW}", "-p", str(DNS_PORT), f"@{DNS4}", name)
            self.assertIn(ORIGIN4, r.stdout, (r, self.said()))
        self.assertEqual(self.associations(), open_before)

    def associations(self):
        """Connections of vethguard-connect to the gateway that are open."""
        return len([row for row in self.there("ss", "-Htnp", "state", "established").stdout.split("\n") if f"pid={self.connect_process.pid}," in row])

    def ipv6(self):
        out = self.program(f"s = c('{ORIGIN6}', family=socket.AF_INET6); s.send(b'six'); print(s.recv(99).decode())\n"
                           "s = c('2001:db8::1', family=socket.AF_INET6); s.send(b'leak6'); print(silent(s))")
        self.assertEqual(out, ["echo:six", "silent"])
        self.assertIsNotNone(self.daemon.event(NETWORK, action_id=2, **{"dst_endpoint.ip": "2001:db8::1"}))

    def test_refused_destinations(self):
        """The gateway's policy decides, and its log tells. Other programs are not disturbed."""
        direct = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.addCleanup(direct.close)
        direct.bind((GATEWAY4, 53000))
        out = self.program(f"keep = c(); keep.send(b'1'); print(keep.recv(99).decode())\n"
                           f"for host, port in ((NAME, 1235), ('api.lab.test', 1234), ('evil.lab.test', 1234), ('{EVIL4}', 53000), ('{ORIGIN4}', 1234),\n"
                           f"                   ('{GATEWAY4}', 53000), ('169.254.169.254', 80), ('198.51.100.7', 443), ('10.77.0.77', 1234)):\n"
                           "    s = c(host, port); s.send(b'leak'); print(silent(s, 0.15))\n"
                           "keep.send(b'2'); print(keep.recv(99).decode())")
        self.assertEqual(out, ["echo:1", *["silent"] * 9, "echo:2"])
        self.assertEqual(seen(b"leak"), [])
        self.assertRaises(BlockingIOError, direct.recv, 99, socket.MSG_DONTWAIT)
        denied = [e for e in self.daemon.events(NETWORK) if e.get("action_id") == 2 and e["connection_info"]["protocol_num"] == 17]
        self.assertEqual(len(denied), 9, denied)

        self.what_no_gateway_can_send()

    def what_no_gateway_can_send(self):
        """To many at once, and other protocols: refused by the kernel. A synthetic address without a name: refused at once."""
        out = self.program("s = plain(); s.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)\n"
                           "for host in ('224.0.0.251', '239.1.2.3', '255.255.255.255'):\n"
                           "    try: s.sendto(b'leak', (host, 5353)); print('left')\n"
                           "    except OSError: print('refused')\n"
                           "print(fails(c('198.19.255.254', 1234)))\n"
                           f"try: print('left' if socket.create_connection(('198.19.255.254', 80), {WAIT}).recv(1) else 'refused')\n"
                           "except OSError: print('refused')")
        self.assertEqual(out, ["refused"] * 3 + ["EHOSTUNREACH", "refused"])
        self.assertNotEqual(self.there("ping", "-c1", "-W1", GATEWAY4).returncode, 0)

    def test_no_rule(self):
        """Without a udp:// rule all is refused at once, and the gateway is asked once. A rule that comes later counts."""
        self.set_policy(*RULES)
        out = self.program("print(*[fails(c()) for _ in range(20)]); print(fails(c('192.0.2.1', 53000)))")
        self.assertEqual(out, [" ".join(["EHOSTUNREACH"] * 20), "EHOSTUNREACH"])
        self.assertIn("datagrams are refused: the session's policy has no udp:// rule", self.said())
        self.assertEqual(self.said().count("datagrams are refused"), 1)
        self.assertEqual(seen(b"leak"), [])
        self.set_policy(*UDP_RULES)
        out = self.program("end = time.monotonic() + %d\nwhile time.monotonic() < end and fails(c(), b'later') != repr(b'echo:later'): time.sleep(0.2)\n"
                           "s = c(); s.send(b'end'); print(s.recv(99).decode())" % WAIT)
        self.assertEqual(out, ["echo:end"])

        self.write_token("wrong")
        self.connect_process.kill()  # with all that it knows
        self.connect_process.wait()
        self.begin("--redirect")
        self.assertEqual(self.program("print(fails(c()))"), ["EHOSTUNREACH"])
        self.assertIn("datagrams are refused: the server does not take the token", self.said())

    def test_it_goes_on(self):
        """A reload, a pause and the death of the gateway end associations: programs go on by the next one. A revocation ends all."""
        child = subprocess.Popen(["ip", "netns", "exec", self.elsewhere, "unshare", "-m", "sh", "-c", 'mount --bind "$0" /etc/resolv.conf && exec "$@"', self.resolv(),
                                  sys.executable, "-uc", PROGRAM + "s = c()\nfor line in sys.stdin:\n    s.settimeout(float(line)); print(fails(s))"],
                                 stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.addCleanup(child.wait)
        self.addCleanup(child.stdin.close)
        self.addCleanup(child.stdout.close)

        def says(seconds=1.0):
            child.stdin.write(f"{seconds}\n")
            child.stdin.flush()
            return child.stdout.readline().strip()

        def works():
            return says() == "b'echo:x'"
        self.assertTrue(wait_until(works, WAIT), self.said())
        self.set_policy(*UDP_RULES)
        self.assertTrue(wait_until(works, WAIT), self.said())
        self.assertEqual(self.daemon.cli("pause", "one").returncode, 0)
        self.assertTrue(wait_until(lambda: says(0.3) == "silent", WAIT), self.said())
        self.assertEqual(self.daemon.cli("resume", "one").returncode, 0)
        self.assertTrue(wait_until(works, WAIT), self.said())
        os.kill(self.pid_of("vethguard-gateway"), signal.SIGKILL)
        self.assertTrue(wait_until(works, WAIT), self.said())
        self.assertEqual(self.daemon.call("DELETE", "/v1/sessions/one")[0], 200)
        self.assertTrue(wait_until(lambda: says(0.3) == "EHOSTUNREACH", WAIT), self.said())

    def test_killed(self):
        """Its rules stay, so nothing leaves until it runs again."""
        self.connect_process.kill()
        self.connect_process.wait()
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
            s.bind((GATEWAY4, 53000))
            out = self.there(sys.executable, "-c", PROGRAM + f"s = c('{GATEWAY4}', 53000); s.send(b'x'); print(silent(s))").stdout.split()
            self.assertIn(out[0], ("silent", "ECONNREFUSED"))
            self.assertRaises(BlockingIOError, s.recv, 99, socket.MSG_DONTWAIT)
        self.begin("--redirect")
        self.assertEqual(self.program("s = c(); s.send(b'x'); print(s.recv(99).decode())"), ["echo:x"])
        self.assertEqual(self.stop(), 0, self.said())
        for argv in (("ip", "rule"), ("ip", "-6", "rule"), ("ip", "route", "show", "table", "all"), ("nft", "list", "ruleset"), ("iptables-save",)):
            out = self.there(*argv).stdout
            self.assertFalse(any(word in out for word in ("0x76670002", "7667", "vethguard-connect")), (argv, out))


class CapturedByIptables(Captured):
    """The same by iptables, where there is no nft."""
    test_no_rule = test_it_goes_on = None  # are not the kernel's

    def command(self, *more, **kw):
        return without_nft(self.dir, super().command(*more, **kw))


class Socks(Connected):
    """Programs that speak SOCKS5 themselves. No root is needed."""
    rules = UDP_RULES
    HAND = f"""
import socket, struct, sys
def associate(at=b"\\0\\0\\0\\0\\0\\0", more=b""):
    s = socket.create_connection(("127.0.0.1", {PORT}), {WAIT})
    s.sendall(b"\\5\\1\\0\\5\\3\\0\\1" + at + more)
    answer = b""
    while len(answer) < 12 and (chunk := s.recv(12 - len(answer))):
        answer += chunk
    return s, answer[2:], ("127.0.0.1", struct.unpack(">H", answer[10:])[0]) if len(answer) == 12 else None
def udp():
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.bind(("127.0.0.1", 0))
    s.settimeout({WAIT})
    return s
def header(name=b"{NAME}", port={ECHO}, fragment=0, reserved=0):
    return struct.pack(">HBBB", reserved, fragment, 3, len(name)) + name + struct.pack(">H", port)
def silent(s, seconds=0.3):
    s.settimeout(seconds)
    try:
        data = s.recv(4096)
    except (TimeoutError, ConnectionRefusedError):
        data = None
    s.settimeout({WAIT})
    return data is None
def echoes(s, relay, text=b"good"):
    s.sendto(header() + text, relay)
    return s.recvfrom(4096) == (header() + b"echo:" + text, relay)
def rest(s):
    try:
        return s.recv(99)
    except OSError:
        return b"reset"
"""

    def setUp(self):
        super().setUp()
        self.begin()

    def by_hand(self, code):
        r = self.there(sys.executable, "-c", self.HAND + code)
        self.assertEqual(r.returncode, 0, (r, self.said()))
        return r.stdout.split("\n")[:-1]

    def test_programs(self):
        code = ("import socket, socks\ns = socks.socksocket(socket.AF_INET, socket.SOCK_DGRAM); s.set_proxy(socks.SOCKS5, '127.0.0.1', %d, True); s.settimeout(%d)\n"
                "for text in (b'one', b'two'):\n s.sendto(text, ('%s', %d)); print(s.recvfrom(2048)[0].decode())" % (PORT, WAIT, NAME, ECHO))
        r = self.there(sys.executable, "-c", code)
        self.assertEqual(r.stdout.split(), ["echo:one", "echo:two"], (r, self.said()))

        self.hostile_programs()
        self.beyond_the_bound()

    def hostile_programs(self):
        """Datagrams of strangers and malformed ones are dropped; a byte on the connection ends the association."""
        out = self.by_hand(
            "a, answer, relay = associate(); own, other = udp(), udp(); print(answer[:2].hex(), echoes(own, relay))\n"
            "whole = header() + b'hostile'\nother.sendto(whole, relay)\n"
            "for cut in range(len(header())): own.sendto(whole[:cut], relay)\n"
            "for f in (1, 127, 128, 255): own.sendto(header(fragment=f) + b'hostile', relay)\n"
            "for wrong in (header(reserved=1), header(port=0), header(b''), b'\\0\\0\\0\\2\\1\\2\\3\\4\\0\\1', b'\\0' * 4096, b'\\xff' * 65000): own.sendto(wrong + b'hostile', relay)\n"
            "print(silent(own), silent(other), echoes(own, relay))\n"
            "own.sendto(header(b'evil.lab.test') + b'hostile', relay); own.sendto(header(port=1235) + b'hostile', relay); print(silent(own), echoes(own, relay))\n"
            "a.send(b'x'); print(rest(a)); own.sendto(whole, relay); print(silent(own))\n"
            "late = udp(); a, answer, relay = associate(b'\\x7f\\0\\0\\1' + struct.pack('>H', late.getsockname()[1]))\n"
            "other.sendto(whole, relay); print(silent(other), echoes(late, relay))\n"
            "a, answer, relay = associate(more=b'at once'); print(rest(a), relay is None)")
        self.assertEqual(out, ["0500 True", "True True True", "True True", "b''", "True", "True True", "b'' True"])
        self.assertEqual(seen(b"hostile"), [])

    def beyond_the_bound(self):
        """Beyond 32 at a time there is none; one that has ended makes room."""
        out = self.by_hand("kept = [associate() for _ in range(32)]; print({k[1][:2].hex() for k in kept}); print(associate()[1][:2].hex())\n"
                           "kept.pop()[0].close()\nimport time\nend = time.monotonic() + %d\n"
                           "while (answer := associate()[1][:2].hex()) != '0500' and time.monotonic() < end: time.sleep(0.1)\nprint(answer)" % WAIT)
        self.assertEqual(out, ["{'0500'}", "0501", "0500"])

    def test_refused(self):
        without = support.LAB.write("connect-no-udp.yaml", policy(*RULES, credentials=file_credential()))
        self.write_token(self.create("without", policy=without)["token"])
        self.assertEqual(self.by_hand("s, answer, _ = associate(); print(answer[:2].hex(), rest(s))"), ["0502 b''"])
        self.assertIn("no UDP association: the session's policy has no udp:// rule", self.said())
        self.write_token("x" * 511)
        self.assertEqual(self.by_hand("print(associate()[1][:2].hex())"), ["0501"])
        self.assertIn("more than 510 bytes", self.said())
        self.write_token("wrong")
        self.assertEqual(self.by_hand("print(associate()[1][:2].hex())"), ["0502"])
        os.unlink(self.token_file)
        self.assertEqual(self.by_hand("print(associate()[1][:2].hex())"), ["0501"])


class Impostor(Connected):
    """A gateway that has the right certificate, and answers whatever the test says."""
    rules = UDP_RULES
    LOGIN = b"\5\2\1\0"

    def setUp(self):
        super().setUp()
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(self.certificate + ".pem", self.certificate + ".key")
        self.server = socket.create_server((GATEWAY4, RELAYED))
        self.addCleanup(self.server.close)
        self.addCleanup(self.server.shutdown, socket.SHUT_RDWR)  # ends accept()
        self.relay = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.addCleanup(self.relay.close)
        self.relay.bind((GATEWAY4, 0))
        self.relay.settimeout(WAIT)
        self.answers = []  # one for each connection
        self.asked = []
        self.open = []
        threading.Thread(target=self.serve, daemon=True).start()
        self.begin(url=f"https://gateway.lab.test:{RELAYED}")

    def serve(self):
        while True:
            try:
                raw, _ = self.server.accept()
                s = self.context.wrap_socket(raw, server_side=True)
                self.asked.append(s.recv(4096))
                s.sendall(self.answers.pop(0))
                self.open.append(s)
            except (OSError, ValueError):
                if self.server.fileno() < 0:
                    return

    def good(self, address=GATEWAY4, port=None):
        return self.LOGIN + b"\5\0\0\1" + socket.inet_aton(address) + struct.pack(">H", self.relay.getsockname()[1] if port is None else port)

    def test_answers(self):
        whole = self.good()
        self.answers = [whole + b"x", self.good(port=0), self.good("127.0.0.1"), self.good("224.0.0.1"), self.good("255.255.255.255"), self.good("169.254.169.254"),
                        b"\4" + whole[1:], b"\5\0", b"\5\xff", b"\5\2\0\0", b"\5\2\1\1", self.LOGIN + b"\4", self.LOGIN + b"\5\1", self.LOGIN + b"\5\0\1",
                        self.LOGIN + b"\5\0\0\3\1a\0\1", b"HTTP/1.1 400 Bad Request\r\n\r\n", b"\6" + os.urandom(3000), b"\0" * 70000, self.good("0.0.0.0")]
        r = self.there(sys.executable, "-c", Socks.HAND + f"print(*[associate()[1][:2].hex() for _ in range({len(self.answers)})])")
        told = r.stdout.split()
        self.assertEqual((len(told), set(told[:-1]), told[-1]), (19, {"0501", "0502"}, "0500"), (r, self.said()))
        self.assertEqual(self.asked[-1][:3], b"\5\1\2")
        self.assertNotIn(self.token, self.said())

    def test_datagrams(self):
        """What does not come from the relay, or has no valid header, does not reach the program. A byte on the connection ends all."""
        self.answers = [self.good()]
        code = (Socks.HAND + "a, answer, relay = associate(); s = udp(); s.sendto(header() + b'hello', relay)\n"
                "while (data := s.recv(4096)) != header() + b'last': print(data)\nprint('last'); print(rest(a))")
        child = subprocess.Popen(["ip", "netns", "exec", self.elsewhere, sys.executable, "-uc", code], stdout=subprocess.PIPE, text=True)
        self.addCleanup(child.wait)
        self.addCleanup(child.stdout.close)
        data, client = self.relay.recvfrom(4096)
        self.assertEqual(data, b"\0\0\0\3\x0c" + NAME.encode() + struct.pack(">H", ECHO) + b"hello")
        header = data[:-5]
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
            stranger.bind((GATEWAY4, 0))
            stranger.sendto(header + b"stranger", client)
        for wrong in (b"", b"\0", header[:-1], b"\1" + header[1:] + b"x", header[:2] + b"\1" + header[3:] + b"x", b"\0\0\0\5" + header[4:], os.urandom(60000)):
            self.relay.sendto(wrong, client)
        self.relay.sendto(header + b"last", client)
        self.assertEqual(child.stdout.readline(), "last\n")
        self.open[-1].sendall(b"x")
        self.assertEqual(child.stdout.readline(), "b''\n")


del Connected
