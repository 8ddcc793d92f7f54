#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""How long 64 MB take over a long way, inside and without vethguard, in turn: bench_long_ways.py [ROUNDS]

The way is a relay that hands on each byte half a round trip after it came (tests/integration/long_way.py), so what slows
a transfer is the window of HTTP/2. Origin: node. Client: curl. As root; in a lab of its own.
"""
import multiprocessing
import os
import statistics
import sys

INTEGRATION = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "integration")
sys.path.insert(0, INTEGRATION)
sys.dont_write_bytecode = True
import support  # noqa: E402
import test_long_ways  # noqa: E402

BYTES = 64 << 20


def seconds(run, *argv):
    words = run(*argv)
    if max(int(words[0]), int(words[1])) < BYTES:
        raise SystemExit(f"not all of it came: {words}")
    return float(words[3])


def measure(rounds, round_trip_ms):
    test_long_ways.DELAY_MS = round_trip_ms / 2
    far = test_long_ways.Far("test_download")
    far.setUpClass()
    body = support.LAB.path("bench-body")
    with open(body, "wb") as f:
        f.truncate(BYTES)
    try:
        for name, argv in (("download", (f"{test_long_ways.FAR}/bytes/{BYTES}",)), ("upload", ("-T", body, f"{test_long_ways.FAR}/count"))):
            direct, inside = [], []
            for _ in range(rounds):
                direct.append(seconds(far.direct, *argv))
                inside.append(seconds(far.inside, "--http2", *argv))
            print(f"{name:8}  {round_trip_ms:4} ms  direct {statistics.median(direct):6.2f} s  inside {statistics.median(inside):6.2f} s  "
                  f"ratio {statistics.median(i / d for i, d in zip(inside, direct)):5.2f}  (inside {min(inside):.2f} to {max(inside):.2f})", flush=True)
    finally:
        far.tearDownClass()


def in_a_lab(rounds, round_trip_ms):
    support.lab.Lab.enter()
    lab = support.start()
    try:
        measure(rounds, round_trip_ms)
    finally:
        lab.stop()


def main():
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 7
    for round_trip_ms in (10, 60, 150):
        child = multiprocessing.Process(target=in_a_lab, args=(rounds, round_trip_ms))
        child.start()
        child.join()
        if child.exitcode:
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
