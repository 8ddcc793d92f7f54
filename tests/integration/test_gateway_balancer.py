# SPDX-License-Identifier: Apache-2.0
"""The gateway behind a load balancer that tells its clients' addresses (PROXY protocol, version 2)."""
import json
import socket
import struct
import subprocess
import time

import support
from gateway_case import CLIENT4, GATEWAY4, PLAIN_PORT, TLS_PORT, Gatewayed
from support import HTTP, SLOW, wait_until

SIGNATURE = b"\r\n\r\n\0\r\nQUIT\n"
BALANCED = 8501


def header(address="192.0.2.1", port=12345, command=0x21, tlvs=b""):
    body = socket.inet_aton(address) + socket.inet_aton("10.0.0.1") + struct.pack(">HH", port, 443) + tlvs
    return SIGNATURE + bytes([command, 0x11]) + struct.pack(">H", len(body)) + body


class Balanced(Gatewayed):
    """haproxy has the address 127.0.0.9 towards the gateway; everybody else reaches it without."""
    options = "  balancers: 127.0.0.9/32\n"

    def gateway(self):
        return super().gateway().replace(f"'{GATEWAY4}:{TLS_PORT}'", f"['{GATEWAY4}:{TLS_PORT}', '127.0.0.1:{TLS_PORT}']", 1)

    def balance(self):
        path = support.LAB.write(f"haproxy-{time.monotonic_ns()}.cfg",
                                 "defaults\n  mode tcp\n  timeout connect 1s\n  timeout client 60s\n  timeout server 60s\n"
                                 f"frontend f\n  bind {GATEWAY4}:{BALANCED}\n  default_backend b\nbackend b\n  source 127.0.0.9\n"
                                 f"  server g 127.0.0.1:{TLS_PORT} send-proxy-v2 check inter 200ms\n")
        haproxy = subprocess.Popen(["haproxy", "-db", "-q", "-f", path], stdin=subprocess.DEVNULL)
        self.addCleanup(haproxy.wait)
        self.addCleanup(haproxy.kill)

    def test_haproxy(self):
        """The client's address is that in the log, and bounds its session; checks of the balancer's own hurt nothing."""
        self.balance()
        proxy = f"https://{GATEWAY4}:{BALANCED}"
        near = self.create("near", **{"from": [CLIENT4 + "/32"]})["token"]
        far = self.create("far", **{"from": ["127.0.0.0/8"]})["token"]
        self.assert_served(proxy=proxy, token=near)
        event = self.daemon.event(HTTP, action_id=1, **{"http_request.url.path": "/whoami"})
        self.assertEqual(event["src_endpoint"]["ip"], CLIENT4, event)
        self.assert_unknown(proxy=proxy, token=far)
        self.assert_served(token=near)  # as before for those who come without it

    def from_balancer(self, data, plain=PLAIN_PORT, source="127.0.0.9"):
        s = socket.create_connection(("127.0.0.1", plain), timeout=20 * SLOW, source_address=(source, 0))
        self.addCleanup(s.close)
        s.sendall(data)
        return self.rest(s)

    def test_headers(self):
        request = f"GET http://plain.lab.test/x HTTP/1.1\r\nHost: plain.lab.test\r\nConnection: close\r\nProxy-Authorization: Bearer {self.token}\r\n\r\n".encode()
        bound = self.create("bound", **{"from": ["192.0.2.0/24"]})["token"]
        self.assert_served()
        for good in (header(), header(tlvs=b"\x04\x00\x03abc"), SIGNATURE + b"\x20\0\0\0"):
            self.assertIn(b'"/x"', self.from_balancer(good + request), good)
        s = socket.create_connection(("127.0.0.1", PLAIN_PORT), timeout=20 * SLOW, source_address=("127.0.0.9", 0))
        self.addCleanup(s.close)
        for byte in header() + request:
            s.sendall(bytes([byte]))
        self.assertIn(b'"/x"', self.rest(s))
        other = request.replace(self.token.encode(), bound.encode())
        self.assertIn(b'"/x"', self.from_balancer(header() + other))
        self.assertTrue(self.from_balancer(header("198.51.100.1") + other).startswith(b"HTTP/1.1 407"))
        token = self.token.encode()
        associate = b"\5\1\2\1\1s" + bytes([len(token)]) + token + b"\5\3\0\1" + bytes(6)
        self.assertEqual(self.from_balancer(header() + associate)[:6], b"\5\2\1\0\5\7")  # a balancer passes no datagrams on
        # A balancer has to say whose connection it is, and nobody else may.
        for bad in (request, b"", header()[:20], header(command=0x22), header("0.0.0.0"), header("224.0.0.1"), SIGNATURE + b"\x21\0\0\0",
                    SIGNATURE + b"\x21\x11\xff\xff" + bytes(100), b"PROXY TCP4 192.0.2.1 10.0.0.1 1 2\r\n" + request):
            self.assertEqual(self.from_balancer(bad + (request if bad[:4] == header()[:4] and len(bad) > 27 else b"")), b"", bad)
        self.assertTrue(self.from_balancer(header() + request, source="127.0.0.8").startswith(b"HTTP/1.1 400"))

    def test_guesses(self):
        """Wrong tokens are counted for the client, not for the balancer."""
        self.assert_served()
        wrong = b"GET http://plain.lab.test/x HTTP/1.1\r\nHost: x\r\nProxy-Authorization: Bearer wrong\r\n\r\n"
        for _ in range(11):
            self.assertTrue(self.from_balancer(header("192.0.2.7") + wrong).startswith(b"HTTP/1.1 407"))
        begun = time.monotonic()
        self.from_balancer(header("192.0.2.7") + wrong)
        slow, begun = time.monotonic() - begun, time.monotonic()
        self.from_balancer(header("192.0.2.8") + wrong)
        self.assertGreater(slow, 1.9)
        self.assertGreater(slow, time.monotonic() - begun + 1)
        self.assertTrue(wait_until(lambda: any("192.0.2.7" in json.dumps(e) for e in self.daemon.events(support.FINDING)), 10 * SLOW))
