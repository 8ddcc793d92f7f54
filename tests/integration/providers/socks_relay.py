# SPDX-License-Identifier: Apache-2.0
"""E2B's host, for the tests: every TCP connection of the sandbox is led through a SOCKS5 proxy. What the proxy refuses ends; nothing goes on
directly.

socks_relay.py PORT PROXY_HOST PROXY_PORT USER PASSWORD MARK name|address: listens on PORT; its own connections bear MARK. The proxy is told
the name that the client's first bytes have (of TLS or HTTP), where they have one; or always the address that was dialed."""
import socket
import struct
import sys
import threading

SO_ORIGINAL_DST, SO_MARK = 80, 36


def name_of(data):
    """Of a ClientHello or of the Host of an HTTP request; else None."""
    if data[:1] != b"\x16":
        fields = [line[5:].strip() for line in data.split(b"\r\n") if line.lower().startswith(b"host:")]
        return fields[0].split(b":")[0] if fields else None
    at = 43 + 1 + data[43]
    at += 2 + struct.unpack_from(">H", data, at)[0]
    at += 1 + data[at] + 2
    while at + 4 <= len(data):
        kind, size = struct.unpack_from(">HH", data, at)
        if kind == 0:
            return data[at + 9:at + 4 + size]
        at += 4 + size
    return None


def dial(address, port, name, proxy, user, password, mark):
    s = socket.socket()
    s.setsockopt(socket.SOL_SOCKET, SO_MARK, mark)
    s.settimeout(20)
    s.connect(proxy)
    s.sendall(b"\5\1\2")
    if s.recv(2) != b"\5\2":
        raise OSError("no login")
    s.sendall(b"\1" + bytes([len(user)]) + user + bytes([len(password)]) + password)
    if s.recv(2) != b"\1\0":
        raise OSError("login refused")
    place = b"\3" + bytes([len(name)]) + name if name else b"\1" + address
    s.sendall(b"\5\1\0" + place + struct.pack(">H", port))
    if s.recv(10)[:2] != b"\5\0":
        raise OSError("refused")
    s.settimeout(None)
    return s


def copy(a, b):
    try:
        while data := a.recv(65536):
            b.sendall(data)
        b.shutdown(socket.SHUT_WR)
    except OSError:
        for s in (a, b):
            s.close()


def lead(client, by_name, *proxy):
    port, address = struct.unpack("!2xH4s8x", client.getsockopt(socket.SOL_IP, SO_ORIGINAL_DST, 16))
    try:
        client.settimeout(2)
        first = client.recv(65536)
        client.settimeout(None)
        upstream = dial(address, port, name_of(first) if by_name else None, *proxy)
        upstream.sendall(first)
    except (OSError, IndexError, struct.error):
        client.close()
        return
    threading.Thread(target=copy, args=(upstream, client), daemon=True).start()
    copy(client, upstream)


def main():
    port, host, proxy_port, user, password, mark, kind = sys.argv[1:]
    listener = socket.create_server(("127.0.0.1", int(port)))
    print("ready", flush=True)
    while True:
        client, _ = listener.accept()
        threading.Thread(target=lead, daemon=True,
                         args=(client, kind == "name", (host, int(proxy_port)), user.encode(), password.encode(), int(mark))).start()


main()
