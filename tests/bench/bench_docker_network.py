#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""What a network of vethguard-docker adds to `docker run`: a container that ends at once, on Docker's own bridge and on a network of
the driver, in turns. As root, in the lab of the integration tests; VETHGUARD_DOCKER names a folder with another dockerd.

    tests/bench/bench_docker_network.py [COUNT]"""
import os
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
TESTS = os.path.join(os.path.dirname(HERE), "integration")
sys.path[:0] = [HERE, TESTS, TESTS + "/attach"]
os.environ["PATH"] = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

import support  # noqa: E402
from bench_machine import percentile  # noqa: E402


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    support.lab.Lab.enter()
    lab = support.start()
    engine = daemon = driver = None
    try:
        import guests
        from daemon import Daemon
        from test_docker_network import Driver
        engine = guests.Engine("docker")
        daemon = Daemon()
        policies = lab.path("policies")
        os.makedirs(policies)
        with open(policies + "/agent.yaml", "w") as f:
            f.write("vethguard: 1\nname: agent\nallow:\n  - {to: https://api.lab.test}\n")
        driver = Driver(daemon, policies)
        engine("network", "create", "-d", "vethguard", "-o", "policy=agent", "agents")
        engine("network", "create", "plain")
        times = {"plain": [], "agents": []}
        for i in range(count + 2):
            for network, found in times.items():
                time.sleep(0.2)  # the daemon fills its stores of gates and workers again
                began = time.monotonic()
                subprocess.run(["docker", "run", "--rm", "--network", network, engine.IMAGE, "/bin/true"], env=engine.env, check=True)
                if i > 1:  # the first ones read the image
                    found.append((time.monotonic() - began) * 1000)
        for network, found in times.items():
            print(f"{network}: p50 {percentile(found, 50):.0f} ms, p90 {percentile(found, 90):.0f} ms of {count}")
        print(f"more: {percentile(times['agents'], 50) - percentile(times['plain'], 50):.0f} ms at p50")
    finally:
        for thing in (driver, daemon, engine):
            if thing:
                thing.stop()
        lab.stop()


if __name__ == "__main__":
    main()
