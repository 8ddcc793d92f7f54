# SPDX-License-Identifier: Apache-2.0
"""A strict CONNECT proxy, as a corporate network has one, outside of the lab's host. argv: address, port, "user:password",
file for what it heard (one JSON line per connection: request head and answer), address it takes for every name.

Some names make it behave: refused. answers 403, down. 502, odd. something that is no HTTP, shut. nothing but an end,
silent. nothing at all, long. a head without an end. It has no IPv6."""
import base64
import json
import socket
import sys
import threading

ADDRESS, PORT, PAIR, LOG, ORIGIN = sys.argv[1:6]
LOCK = threading.Lock()
WANTED = "Basic " + base64.b64encode(PAIR.encode()).decode()


def note(**what):
    with LOCK, open(LOG, "a") as f:
        f.write(json.dumps(what) + "\n")


def pump(a, b):
    try:
        while True:
            data = a.recv(65536)
            if not data:
                b.shutdown(socket.SHUT_WR)
                return
            b.sendall(data)
    except OSError:
        pass


def serve(s):
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        byte = s.recv(1)
        if not byte:
            return note(head=head.decode("latin-1"), answer="ended")
        head += byte
    lines = head.decode("latin-1").split("\r\n")
    method, target, version = lines[0].split(" ")
    fields = dict(line.split(": ", 1) for line in lines[1:-2])
    host, port = target.rsplit(":", 1)
    kind = host.split(".")[0]
    answers = {"refused": b"HTTP/1.1 403 Forbidden\r\n\r\n", "down": b"HTTP/1.1 502 Bad\r\nContent-Length: 0\r\n\r\n",
               "odd": b"SSH-2.0-proxy\r\n", "shut": b"", "long": b"HTTP/1.1 200 OK\r\nA: " + b"x" * 9000}
    if method != "CONNECT" or version != "HTTP/1.1" or fields.get("Host") != target:
        answer = b"HTTP/1.1 400 Bad Request\r\n\r\n"
    elif fields.get("Proxy-Authorization") != WANTED:
        answer = b"HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic realm=x\r\n\r\n"
    else:
        answer = answers.get(kind)
        if host.startswith("["):  # as one without IPv6
            answer = b"HTTP/1.1 503 Service Unavailable\r\n\r\n"
    note(head=head.decode("latin-1"), answer=(answer or b"-").decode("latin-1")[:40])
    if kind == "silent":
        s.recv(1)
        return None
    if answer is not None:
        s.sendall(answer)
        if kind == "long":
            s.recv(1)
        return None
    to = ORIGIN if host.endswith(".test") else host
    with socket.create_connection((to, int(port)), 5) as o:
        first = b""
        if port == "2222":  # its banner comes in one segment with the head
            first = o.recv(100)
        s.sendall(b"HTTP/1.1 200 Connection established\r\nVia: 1.1 lab\r\n\r\n" + first)
        back = threading.Thread(target=pump, args=(o, s), daemon=True)
        back.start()
        pump(s, o)
        back.join(10)


def handle(s):
    with s:
        try:
            serve(s)
        except (OSError, ValueError) as e:
            note(error=str(e))


listener = socket.create_server((ADDRESS, int(PORT)))
note(ready=True)
while True:
    threading.Thread(target=handle, args=(listener.accept()[0],), daemon=True).start()
