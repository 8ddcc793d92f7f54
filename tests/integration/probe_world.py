# SPDX-License-Identifier: Apache-2.0
"""A small world that answers everything, for test_probe.py: HTTP on each TCP address given, datagrams on UDP 123, names on UDP 53.

probe_world.py READY ADDRESS:PORT...; writes the file READY when all of them listen."""
import socket
import struct
import sys
import threading

ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
MUTE = 7  # a port whose server accepts and says nothing


def serve(listener, port):
    while True:
        connection, _ = listener.accept()
        threading.Thread(target=answer, args=(connection, port), daemon=True).start()


def answer(connection, port):
    try:
        connection.recv(4096)
        if port != MUTE:
            connection.sendall(ANSWER)
    except OSError:
        pass
    connection.close()


def resolve(data):
    """To a query for a name with an answer of its own ("known"): an address; to others: that there is no such name."""
    known = data[12:].split(b"\0")[0].endswith(b"\5known\4test") and data[12] == 5
    head = data[:2] + struct.pack(">HHHHH", 0x8180 if known else 0x8183, 1, 1 if known else 0, 0, 0)
    end = data.index(b"\0", 12) + 5
    record = b"\xc0\x0c\0\1\0\1\0\0\0\0\0\4" + socket.inet_aton("198.51.100.1") if known else b""
    return head + data[12:end] + record


def datagrams(s, port):
    while True:
        data, peer = s.recvfrom(4096)
        s.sendto(resolve(data) if port == 53 and len(data) > 17 else b"here", peer)


def main():
    for place in sys.argv[2:]:
        host, _, port = place.rpartition(":")
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        kind = socket.SOCK_DGRAM if port in ("53", "123") else socket.SOCK_STREAM
        s = socket.socket(family, kind)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        s.bind((host.strip("[]"), int(port)))
        if kind == socket.SOCK_STREAM:
            s.listen()
        threading.Thread(target=serve if kind == socket.SOCK_STREAM else datagrams, args=(s, int(port)), daemon=True).start()
    with open(sys.argv[1], "w"):
        pass
    threading.Event().wait()


main()
