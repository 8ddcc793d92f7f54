# SPDX-License-Identifier: Apache-2.0
"""Runs inside the sandbox: traffic for test_robustness. `load.py NAME [ARGUMENT...]`; results go to stdout as JSON."""
import json
import os
import socket
import struct
import sys
import threading
import time

import inside

RESET = struct.pack("ii", 1, 0)
REST_S = 0.005


def steady(path, prefix, seconds=30, threads=3):
    """Requests until the time is over or a file PATH.end is there, each with a path of its own. Those answered with 200
    are appended to the file PATH: one write each, after the whole answer is here. A short rest after each: some request
    is always under way, yet the processors are not all taken from what else is tested."""
    def work(i):
        n, end = 0, time.monotonic() + float(seconds)
        out = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
        while time.monotonic() < end and not os.path.exists(path + ".end"):
            try:
                s = inside.tls("api.lab.test", timeout=5)
                reader = inside.Reader(s)
                for _ in range(5):
                    n += 1
                    where = f"/{prefix}/{i}/{n}"
                    s.sendall(inside.request("GET", where, "api.lab.test"))
                    status, _, body = reader.response()
                    if status == 200 and where.encode() in body:
                        os.write(out, where.encode() + b"\n")
                    time.sleep(REST_S)
                s.close()
            except (OSError, EOFError, ValueError, IndexError):
                time.sleep(0.02)
    workers = [threading.Thread(target=work, args=(i,)) for i in range(int(threads))]
    for w in workers:
        w.start()
    for w in workers:
        w.join()
    return True


def until_refused(prefix, most=3000):
    """Requests one by one until one is not answered with 200: [how many were, status, body]."""
    done, s = 0, None
    for n in range(int(most)):
        try:
            if s is None:
                s = inside.tls("api.lab.test", timeout=20)
                reader = inside.Reader(s)
            s.sendall(inside.request("GET", f"/{prefix}/{n}", "api.lab.test"))
            status, fields, body = reader.response()
        except (OSError, EOFError) as e:
            return [done, type(e).__name__, str(e)]
        if status != 200:
            return [done, status, body.decode("latin-1")]
        done += 1
        if fields.get("connection") == "close":
            s = None
    return [done, 200, ""]


def idle(count, seconds, host="api.lab.test", port=443):
    """Connections that are opened and then say nothing: how many stand after the time."""
    opened = []
    for _ in range(int(count)):
        try:
            opened.append(inside.connect(host, int(port), 2))
        except OSError:
            break
    print(json.dumps(len(opened)), flush=True)
    time.sleep(float(seconds))
    return alive(opened)


def alive(sockets):
    def lives(s):
        s.setblocking(False)
        try:
            return s.recv(1) != b""
        except BlockingIOError:
            return True
        except OSError:
            return False
    return sum(lives(s) for s in sockets)


def loris(count, host, port, seconds):
    """Heads that come byte by byte: how many connections stand at the end."""
    sockets = []
    for _ in range(int(count)):
        s = inside.connect(host, int(port), 5)
        s.sendall(b"GET / HTTP/1.1\r\nHost: " + host.encode() + b"\r\n")
        sockets.append(s)
    end, n = time.monotonic() + float(seconds), 0
    while time.monotonic() < end:
        for s in sockets:
            try:
                s.send(b"X-%d: a\r\n" % n if n % 2 else b"X")
            except OSError:
                pass
        n += 1
        time.sleep(0.2)
    left = 0
    for s in sockets:  # an answer and the end, or a reset
        s.settimeout(0.5)
        try:
            while s.recv(4096):
                pass
        except ConnectionError:
            pass
        except OSError:
            left += 1
    return left


def resets(count, host, port):
    """Connections that are opened and reset, at several stages of their life."""
    hello = b"\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03" + bytes(32)
    said = [b"", b"G", b"GET / HTTP/1.1\r\nHost: ", hello, b"\0\xff" * 50, b"SSH-2.0-x\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"]
    address = socket.getaddrinfo(host, int(port), socket.AF_INET, socket.SOCK_STREAM)[0][4]
    done = 0
    for n in range(int(count)):
        with socket.socket() as s:
            s.settimeout(5)
            try:
                s.connect(address)
                done += 1
                s.send(said[n % len(said)])
                s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
            except OSError:
                pass
    return done


def many(count, host, path):
    """count connections at once, each with one request: {status: how many}."""
    found = {}

    def one():
        try:
            status = inside.fetch(host, path, timeout=20)[0]
        except (OSError, EOFError) as e:
            status = type(e).__name__
        found[str(status)] = found.get(str(status), 0) + 1
    threads = [threading.Thread(target=one) for _ in range(int(count))]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return found


if __name__ == "__main__":
    print(json.dumps(globals()[sys.argv[1]](*sys.argv[2:])))
