#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""make bench-scale: what a small request costs (CPU of all of vethguard's processes) against the number of hosts in the policy and of idle
connections. One vethguard for each point of a curve, measured in turn; writes the curves as a plot (SVG). See docs/performance.md."""
import argparse
import json
import os
import statistics
import sys

import bench
import bench_lab as lab
import bench_proxies as proxies

CURVES = {
    "hosts": ("hosts that the policy allows", [10, 100, 1000, 10000, 100000]),
    "idle": ("idle HTTP/2 connections", [0, 10, 100, 1000, 5000]),
}
CONNECTIONS, REQUESTS = 64, 10000
WIDTH, HEIGHT, LEFT, TOP, RIGHT, BOTTOM = 640, 300, 60, 40, 40, 50
COLORS = ["#1f6f8b", "#c05a2b"]


class Point(proxies.Vethguard):
    """vethguard with so many hosts, or with so many idle connections."""

    def __init__(self, place, curve, n):
        super().__init__(place)
        self.curve, self.n, self.rounds = curve, n, []

    def files(self):
        options = super().files()
        if self.curve == "hosts":
            names = "".join(f"    - https://host-{i}.example.com\n" for i in range(self.n))
            with open(self.lab.path("policy.yaml")) as f:
                text = f.read()
            text = text.replace("\nallow:\n", f"\ngroups:\n  many:\n{names}allow:\n  - to: group:many\n", 1)
            options[1] = self.lab.write(f"policy-{self.n}.yaml", text)
        return options

    def prepare(self):
        if self.curve == "idle" and self.n:
            self.load(f"open2 {self.ways['http2']} conns={self.n} bytes=1024")
        self.load(f"open {self.ways['intercept']} conns={CONNECTIONS} bytes=1024")
        self.load(f"go requests={REQUESTS // 10} bytes=1024")

    def measure(self, requests):
        r = bench.measured(self, f"go requests={requests} bytes=1024")
        self.rounds.append(r["cpu_s"] / r["done"] * 1e6)


def measure(curve, rounds, requests):
    place, points = lab.Lab(), []
    lab.OTHER_CPU = lab.PROXY_CPU
    place.start()
    try:
        for n in CURVES[curve][1]:
            points.append(Point(place, curve, n))
            points[-1].start()
            points[-1].prepare()
        for _ in range(rounds):
            for p in points:
                p.measure(requests)
    finally:
        for p in points:
            if p.process:
                p.stop()
        place.stop()
    return [(p.n, p.rounds) for p in points]


def svg(curves):
    """The curves over the steps of their points, with the least and the most of each; from 0 on, so that flat looks flat."""
    top = 1.1 * max(max(rounds) for points in curves.values() for _, rounds in points)
    count = max(len(points) for points in curves.values())

    def x(i):
        return LEFT + i * (WIDTH - LEFT - RIGHT) / (count - 1)

    def y(us):
        return TOP + (HEIGHT - TOP - BOTTOM) * (1 - us / top)

    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="11">',
           f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
           f'<text x="{LEFT}" y="16">CPU per small request, us (median, least and most)</text>']
    step = next(s for s in (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000) if top / s <= 6)
    for us in range(0, int(top) + 1, step):
        out.append(f'<path d="M{LEFT} {y(us):.1f}H{WIDTH - RIGHT}" stroke="#ddd"/><text x="{LEFT - 6}" y="{y(us) + 4:.1f}" text-anchor="end">{us}</text>')
    for k, (curve, points) in enumerate(curves.items()):
        color, line = COLORS[k], []
        out.append(f'<text x="{LEFT + 8 + 260 * k}" y="{TOP - 8}" fill="{color}">{CURVES[curve][0]}</text>')
        for i, (n, rounds) in enumerate(points):
            line.append(f"{x(i):.1f} {y(statistics.median(rounds)):.1f}")
            at = x(i) + 3 * k
            out.append(f'<path d="M{at:.1f} {y(min(rounds)):.1f}V{y(max(rounds)):.1f}" stroke="{color}"/>')
            out.append(f'<text x="{x(i):.1f}" y="{HEIGHT - BOTTOM + 18 + 14 * k}" fill="{color}" text-anchor="middle">{n:,}</text>')
        out.append(f'<path d="M{"L".join(line)}" fill="none" stroke="{color}" stroke-width="2"/>')
    return "\n".join(out + ["</svg>", ""])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--requests", type=int, default=REQUESTS)
    parser.add_argument("--out", default=os.path.join(lab.ROOT, "build", "bench", "scale.svg"))
    args = parser.parse_args()
    curves, read, write = {}, *os.pipe()
    for curve in CURVES:
        bench.in_child(lambda c=curve: os.write(write, json.dumps(measure(c, args.rounds, args.requests)).encode()))
        curves[curve] = json.loads(os.read(read, 1 << 16))
        print(f"\nCPU us per request, by {CURVES[curve][0]}")
        for n, rounds in curves[curve]:
            print(f"  {n:8,} {statistics.median(rounds):8.1f}  ({min(rounds):.1f} - {max(rounds):.1f})")
    os.makedirs(os.path.dirname(args.out), exist_ok=True)
    with open(args.out, "w") as f:
        f.write(svg(curves))
    print(f"\n{args.out}", file=sys.stderr)


if __name__ == "__main__":
    main()
