#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""build/bench/results.json as the Markdown tables of docs/performance.md."""
import json
import os
import statistics
import sys

import bench
import bench_lab

COLUMNS = ["vethguard", "vethguard (credential)", "haproxy", "haproxy (logged)", "nginx", "relay", "sslsplit", "squid", "mitmproxy"]


def figure(cell, unit):
    if not cell:
        return ""
    digits = 3 if unit == "s" else 1
    values = cell["rounds"]
    return f"{statistics.median(values):.{digits}f} ({min(values):.{digits}f}-{max(values):.{digits}f})"


def table(results):
    print("| CPU per unit | " + " | ".join(COLUMNS) + " | vethguard / haproxy | vethguard / relay |")
    print("|---" * (len(COLUMNS) + 3) + "|")
    for w in bench.WORKLOADS + [bench.AGED]:
        cells = results.get(w.key)
        if not cells:
            continue
        mid = {k: statistics.median(c["rounds"]) for k, c in cells.items()}
        ratios = [f"{mid['vethguard'] / mid[k]:.2f}" if k in mid else "" for k in ("haproxy", "relay")]
        print(f"| {w.title}, {w.unit} | " + " | ".join(figure(cells.get(c) or cells.get(c.replace("(", "(http2-")), w.unit) for c in COLUMNS) +
              " | " + " | ".join(ratios) + " |")


def split(results):
    """Which of vethguard's programs spent it."""
    print("\n| of vethguard's | worker | recorder | supervisor, keeper, command |\n|---|---|---|---|")
    for w in bench.WORKLOADS + [bench.AGED]:
        cell = results.get(w.key, {}).get("vethguard")
        if not cell:
            continue
        part = {"worker": 0.0, "recorder": 0.0, "rest": 0.0}
        for name in cell["by_process"][0]:
            mid = statistics.median([b.get(name, 0) for b in cell["by_process"]])
            part["worker" if "-worke" in name else "recorder" if "-recor" in name else "rest"] += mid
        digits = 3 if w.unit == "s" else 1
        print(f"| {w.title}, {w.unit} | " + " | ".join(f"{v:.{digits}f}" for v in part.values()) + " |")


def main():
    path = sys.argv[1] if len(sys.argv) > 1 else os.path.join(bench_lab.ROOT, "build", "bench", "results.json")
    with open(path) as f:
        everything = json.load(f)
    for cores, title in bench.CORES.items():
        if cores in everything:
            print(f"\n{title[0].upper()}{title[1:]}:\n")
            table(everything[cores]["results"])
            split(everything[cores]["results"])


if __name__ == "__main__":
    main()
