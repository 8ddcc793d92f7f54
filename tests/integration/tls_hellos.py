# SPDX-License-Identifier: Apache-2.0
"""First flights of TLS as bytes, each with what is due: run inside the sandbox, as `tls_hellos.py HOST PORT`, it sends each
of them over a connection of its own and prints what came back, as JSON: the name of the row to the answer.

Answers: "hello" (a ServerHello), "retry" (a HelloRetryRequest), "alert NAME", then how the connection ended where it did:
"+ end" (FIN), "+ reset"."""
import json
import os
import socket
import struct
import sys
import time

ALERTS = {10: "unexpected_message", 22: "record_overflow", 40: "handshake_failure", 47: "illegal_parameter", 50: "decode_error",
          70: "protocol_version", 86: "inappropriate_fallback", 109: "missing_extension", 112: "unrecognized_name",
          120: "no_application_protocol"}
RETRY = bytes.fromhex("cf21ad74e59a6111be1d8c021e65b891c2a211167abb8c5e079e09e2c8a8339c")
WAIT = 15


def vector(length_bytes, data):
    return len(data).to_bytes(length_bytes, "big") + data


def u16s(*values):
    return b"".join(struct.pack(">H", v) for v in values)


def extension(kind, data):
    return struct.pack(">H", kind) + vector(2, data)


def sni(name, kind=0):
    return extension(0, vector(2, bytes([kind]) + vector(2, name.encode())))


def alpn(*names):
    return extension(16, vector(2, b"".join(vector(1, n.encode()) for n in names)))


def versions(*values):
    return extension(43, vector(1, u16s(*values)))


def groups(*values):
    return extension(10, vector(2, u16s(*values)))


def sigalgs(*values):
    return extension(13, vector(2, u16s(*values)))


def share(group, data):
    return struct.pack(">H", group) + vector(2, data)


def shares(*each):
    return extension(51, vector(2, b"".join(each)))


X25519 = share(0x1d, bytes(range(1, 33)))
USUAL_ALGS = sigalgs(0x0403, 0x0804, 0x0401)


def body(name="api.lab.test", legacy=0x0303, suites=(0x1301, 0x1302, 0x1303, 0xc02b, 0xc02f), compressions=b"\0", session=b"s" * 32,
         supported=versions(0x0304, 0x0303), names=None, keys=None, group=groups(0x1d, 0x17), algs=USUAL_ALGS, more=b""):
    """A ClientHello as a message."""
    extensions = (sni(name) if names is None else names) + supported + group + algs + (shares(X25519) if keys is None else keys)
    message = struct.pack(">H", legacy) + bytes(range(32)) + vector(1, session) + vector(2, u16s(*suites)) + \
        vector(1, compressions) + vector(2, extensions + more)
    return b"\x01" + len(message).to_bytes(3, "big") + message


def record(data, version=0x0301, kind=22):
    return struct.pack(">BH", kind, version) + vector(2, data)


def records(data, piece, version=0x0301):
    return b"".join(record(data[i:i + piece], version) for i in range(0, len(data), piece))


def usual(**kw):
    return record(body(**kw))


def tls12(**kw):
    return record(body(supported=b"", keys=b"", suites=(0xc02b, 0xc02f), **kw))


def padded(size):
    """A hello of so many bytes of message."""
    bare = len(body(more=extension(21, b"")))
    return body(more=extension(21, bytes(size - bare)))


def changed(data, at, new):
    return data[:at] + new + data[at + len(new):]


END = "+ end"
ROWS = [
    # name, bytes, answer
    ("usual", usual(), "hello"),
    ("TLS 1.2", tls12(), "hello"),
    # versions that do not count (RFC 8446 sections 4.2.1, 5.1, appendix D)
    *[(f"record version {v:04x}", record(body(), v), "hello") for v in (0x0300, 0x0301, 0x0302, 0x0303, 0x0304, 0x0305, 0x03ff)],
    ("record versions that differ", b"".join(record(body()[i:i + 40], v) for i, v in
                                             zip(range(0, 400, 40), (0x0301, 0x0303, 0x0300, 0x0302, 0x0304, 0x03ff) * 2) if body()[i:i + 40]), "hello"),
    *[(f"legacy version {v:04x}", usual(legacy=v), "hello") for v in (0x0301, 0x0302, 0x0304, 0x0305, 0x03ff, 0x0400, 0x7f1c)],
    *[(f"legacy version {v:04x}, no other", tls12(legacy=v), "hello") for v in (0x0303, 0x0304, 0x03ff, 0x0400)],
    ("TLS 1.1", tls12(legacy=0x0302), "alert protocol_version " + END),
    ("TLS 1.0", tls12(legacy=0x0301), "alert protocol_version " + END),
    ("SSL 3", record(body(legacy=0x0300, supported=b""), 0x0300), "alert handshake_failure " + END),  # which has no other one
    ("SSL 2 in a record", tls12(legacy=0x0200), "alert protocol_version " + END),
    ("TLS 1.0 and 1.1 in the list", usual(supported=versions(0x0302, 0x0301)), "alert protocol_version " + END),
    ("versions of the future", usual(supported=versions(0x0305, 0x0304)), "hello"),
    ("SSLv2's form", bytes.fromhex("802e0100020015000000100700c00300800200800600400400800100800000050000040000030000") + bytes(20),
     "alert protocol_version " + END),
    ("SSLv2's form, TLS 1.2", bytes.fromhex("802e0103030015000000100000350000390000160000130000330000320000") + bytes(20),
     "alert protocol_version " + END),
    # GREASE (RFC 8701) and what is new
    ("GREASE everywhere", usual(suites=(0x0a0a, 0x1301, 0xdada), supported=versions(0xfafa, 0x0304), group=groups(0x2a2a, 0x1d),
                                algs=sigalgs(0x0403, 0x9a9a), keys=shares(share(0x2a2a, b"\0"), X25519),
                                more=extension(0x3a3a, b"") + alpn("h2", "\x4a\x4a") + extension(0xbaba, b"\0")), "hello"),
    ("ECH, GREASE", usual(more=extension(0xfe0d, b"\0\0\x01\0\x01\x2a" + vector(2, b"e" * 32) + vector(2, b"p" * 144))), "hello"),
    ("post-quantum share", usual(group=groups(0x11ec, 0x1d), keys=shares(share(0x11ec, bytes(1216)), X25519)), "any"),
    ("a group nobody knows first", usual(group=groups(0x0200, 0x1d), keys=shares(share(0x0200, b"x" * 40), X25519)), "hello"),
    ("no share", usual(keys=shares()), "retry"),
    ("a share of P-384, for which there is a point", usual(group=groups(0x18), keys=shares()), "retry"),
    ("P-521 alone", usual(group=groups(0x19), keys=shares()), "retry"),
    ("ffdhe2048 alone", usual(group=groups(0x0100), keys=shares()), "alert handshake_failure " + END),
    ("TLS 1.2, P-384 alone", tls12(group=groups(0x18)), "hello"),
    ("TLS 1.2, RSA suites alone", record(body(supported=b"", keys=b"", suites=(0xc02f, 0x009c))), "hello"),
    ("TLS 1.2, no suite that is taken", record(body(supported=b"", keys=b"", suites=(0x009c, 0x002f))), "alert handshake_failure " + END),
    ("no ECDSA in the algorithms", usual(algs=sigalgs(0x0804, 0x0401)), "hello"),
    ("early data that nobody asked for", usual(more=extension(42, b"") + extension(45, b"\x01\x01")) + record(b"e" * 100, 0x0303, 23), "any"),
    # split and large
    ("a record for each byte", records(body(), 1), "hello"),
    ("15 KiB", records(padded(15000), 4000), "hello"),
    ("the bound", record(padded(16384 - 5)), "hello"),
    ("beyond the bound", record(padded(16384 - 4)), "alert illegal_parameter " + END),
    ("100 KB", records(body(more=extension(21, bytes(60000))), 16000), "alert illegal_parameter " + END),
    # names
    ("upper case", usual(name="API.Lab.TEST"), "hello"),
    ("final dot", usual(name="api.lab.test."), "hello"),
    ("an address", usual(name="10.99.0.66"), "hello"),
    ("an address of IPv6", usual(name="fd00::1"), "hello"),
    ("an address, nearly", usual(name="10.99.66"), "alert unrecognized_name " + END),
    ("a number", usual(name="0x0a630042"), "alert unrecognized_name " + END),
    ("no host name", usual(name="a..b"), "alert unrecognized_name " + END),
    ("a name with a port", usual(name="api.lab.test:443"), "alert unrecognized_name " + END),
    ("a name with a NUL", usual(name="api.lab.test\0.evil"), "alert unrecognized_name " + END),
    ("a name with a newline", usual(name="api.lab.test\n"), "alert unrecognized_name " + END),
    ("a dot", usual(name="."), "alert unrecognized_name " + END),
    ("an empty name", usual(name=""), "alert decode_error " + END),
    ("an empty server_name", usual(names=extension(0, b"")), "alert decode_error " + END),
    ("an empty list", usual(names=extension(0, b"\0\0")), "alert decode_error " + END),
    ("no name", usual(names=b""), "hello"),
    ("two names", usual(names=extension(0, vector(2, b"\0" + vector(2, b"api.lab.test") + b"\0" + vector(2, b"www.lab.test")))),
     "alert decode_error " + END),
    ("two server_name", usual(names=sni("api.lab.test") + sni("www.lab.test")), "alert illegal_parameter " + END),
    ("another kind of name", usual(names=sni("api.lab.test", 1)), "alert decode_error " + END),
    ("a name too long", usual(name="a" * 254), "alert decode_error " + END),
    # ALPN
    ("h2 and http/1.1", usual(more=alpn("h2", "http/1.1")), "hello"),
    ("http/1.0", usual(more=alpn("http/1.0")), "hello"),
    ("http/1.0 and something", usual(more=alpn("spdy/3.1", "http/1.0")), "hello"),
    *[(f"ALPN {n}", usual(more=alpn(n)), "alert no_application_protocol " + END) for n in
      ("h3", "imap", "acme-tls/1", "http/0.9", "HTTP/1.1", "http/1.", "http/1.10", "h2c", "\x0a\x0a")],
    ("an empty ALPN", usual(more=extension(16, b"\0\0")), "alert decode_error " + END),
    ("an empty name in ALPN", usual(more=extension(16, b"\0\1\0")), "alert decode_error " + END),
    # malformed
    ("an extension twice", usual(more=extension(0x1234, b"") * 2), "alert illegal_parameter " + END),
    ("no null compression", usual(compressions=b"\1"), "alert illegal_parameter " + END),
    ("no compression", usual(compressions=b""), "alert illegal_parameter " + END),
    ("no suites", usual(suites=()), "alert decode_error " + END),
    ("a long session id", usual(session=b"s" * 33), "alert decode_error " + END),
    ("inner length beyond the end", changed(usual(), 43, b"\xff"), "alert decode_error " + END),
    ("cut short", b"\x16\x03\x01\x00\x06\x01\x00\x00\x02\x03\x03", "alert decode_error " + END),
    ("bytes behind it in its record", record(body() + b"x"), "alert unexpected_message " + END),
    ("16 MB announced", changed(usual(), 6, b"\xff\xff\xff"), "alert illegal_parameter " + END),
    ("an empty record", record(b"") + usual(), "alert unexpected_message " + END),
    ("a record too long", b"\x16\x03\x01\x40\x01" + bytes(100), "alert record_overflow " + END),
    ("a ServerHello", changed(usual(), 5, b"\x02"), "alert unexpected_message " + END),
    ("an alert first", b"\x15\x03\x01\x00\x02\x02\x28", "alert unexpected_message " + END),
    ("application data first", record(b"GET / HTTP/1.1\r\n\r\n", 0x0303, 23), "alert unexpected_message " + END),
    ("change_cipher_spec first", record(b"\x01", 0x0303, 20) + usual(), "alert unexpected_message " + END),
    ("other records in between", record(body()[:50]) + record(b"\x01", 0x0303, 20) + record(body()[50:]), "alert unexpected_message " + END),
    ("TLS 1.3 without algorithms", usual(algs=b""), "alert missing_extension " + END),
    # The alert is not overtaken by the reset of bytes that nobody read.
    ("TLS 1.1, and much behind it", tls12(legacy=0x0302) + bytes(300000), "alert protocol_version " + END),
    ("malformed, and much behind it", usual(suites=()) + bytes(300000), "alert decode_error " + END),
]


def first_record(data):
    if len(data) < 6:
        return None
    if data[0] == 21:
        return f"alert {ALERTS.get(data[6], data[6])}" if len(data) >= 7 and data[5] == 2 else "warning"
    if data[0] == 22 and data[5] == 2 and len(data) >= 43:
        return "retry" if data[11:43] == RETRY else "hello"
    return None


def answer(host, port, data):
    s = socket.create_connection((host, port), WAIT)
    got, end = b"", ""
    deadline = time.monotonic() + WAIT
    try:
        s.sendall(data)
    except OSError:
        pass  # it may have heard enough
    try:
        while not end and time.monotonic() < deadline:
            piece = s.recv(65536)
            got += piece
            if not piece:
                end = END
            elif (first_record(got) or "alert")[:5] != "alert":
                break
    except TimeoutError:
        end = "+ open"
    except OSError:
        end = "+ reset"
    s.close()
    return " ".join(x for x in (first_record(got) or got[:20].hex(), end) if x)


if __name__ == "__main__":
    print(json.dumps({name: answer(sys.argv[1], int(sys.argv[2]), data) for name, data, _ in ROWS}))
