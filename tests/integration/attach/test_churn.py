# SPDX-License-Identifier: Apache-2.0
"""Containers of Docker and Podman and pods of containerd by every way of vethguard come and go at random, while adapters, engines'
commands, the daemon, vethguard-docker, dockerd and containerd are killed at random moments. Nothing ever starts unguarded, and nothing is left. `make check-churn` is
five minutes of it; CHURN_SEED repeats what the dice said."""
import importlib.util
import os
import random
import shutil
import subprocess
import unittest

import attached
import churn
import churn_cri
import cni_engines
import guests
import support
import test_exfiltration
from daemon import Daemon
from lab import EVIL4
from support import SLOW, Case, policy, sh, wait_until
from test_docker_network import Driver

SECONDS = int(os.environ.get("VETHGUARD_CHURN_SECONDS") or 40)
COUNT = 200 if SECONDS >= 300 else 24
AT_ONCE = 6
SHARE = 0.2  # of the adapters' calls are killed
# The first instructions, and again until the end: an address and a name that no policy allows.
TRIES = ("/bin/sh", "-c", f"while :; do {guests.CURL} -s -m 1 http://{EVIL4}/churned http://churned.evil.lab.test/; sleep 1; done")


class Churn(Case):
    def setUp(self):
        super().setUp()
        for program in ("dockerd", "podman", "runc", "containerd", "ctr", cni_engines.PLUGINS + "/bridge"):
            if not shutil.which(program):
                raise unittest.SkipTest(program + " is not installed")
        if not importlib.util.find_spec("grpc"):
            raise unittest.SkipTest("python3-grpcio is not installed")
        for name in ("ipv4/ip_forward", "ipv6/conf/all/forwarding"):  # whatever is not guarded gets out
            with open("/proc/sys/net/" + name, "w") as f:
                f.write("1")
        self.seed = int(os.environ.get("VETHGUARD_CHURN_SEED") or random.randrange(1 << 30))
        self.policies, self.directory = support.LAB.path("churn-policies"), support.LAB.path("churn-runtime")
        os.makedirs(self.policies)
        with open(self.policies + "/agent.yaml", "w") as f:
            f.write(policy("{to: https://api.lab.test, methods: [GET]}").replace("name: lab", "name: agent"))
        self.daemon = Daemon()
        self.addCleanup(self.daemon.end)
        self.strikes = churn.Strikes(random.Random(self.seed), 0)
        config = churn.runtime_config(self.daemon, self.policies, self.directory)
        self.docker, ways = churn.docker_ways(config, self.strikes)
        self.addCleanup(self.docker.stop)
        self.podman, others, self.chains = churn.podman_ways(config, self.strikes, self.daemon, self.policies)
        self.addCleanup(self.podman.stop)
        self.pods, of_pods, chains = churn_cri.ways(self.strikes, self.daemon, self.policies)
        self.addCleanup(self.pods.stop)
        self.chains += chains
        self.ways = ways + others + of_pods
        self.driver = Driver(self.daemon, self.policies)
        self.addCleanup(self.driver.stop)
        self.docker("network", "create", "-d", "vethguard", "-o", "policy=agent", churn.NETWORK)
        self.strikes.start()
        self.addCleanup(self.strikes.stop)

    def each_way(self, when):
        """A container by each way starts, is guarded from its first instruction on, and goes."""
        left = set(self.names())
        for way in self.ways:
            with self.subTest(when + ", " + way.name):
                self.call(way, way.remove("one"))
                p = way.popen(way.run("one", *TRIES))
                said, _ = p.communicate(timeout=60 * SLOW)
                self.assertEqual(p.returncode, 0, (said, self.daemon.stderr()[-2000:]))
                name, = set(self.names()) - left
                for kind, words in ((support.HTTP, {"http_request.url.hostname": EVIL4}), (support.DNS, {"query.hostname": "churned.evil.lab.test"})):
                    self.assertIsNotNone(self.daemon.event(kind, seconds=5, action_id=2, **{"device.name": name}, **words),
                                         (name, kind, self.daemon.stderr()[-2000:]))
                self.assertEqual(self.call(way, way.remove("one"))[0], 0)
                self.assertTrue(wait_until(lambda: name not in self.names(), 20 * SLOW), name)

    @staticmethod
    def call(way, argv):
        """(status, what was said)."""
        p = way.popen(argv)
        said, _ = p.communicate(timeout=60 * SLOW)
        return p.returncode, said

    def names(self):
        return [s["name"] for s in self.daemon.call("GET", "/v1/sandboxes")[2]["sandboxes"]]

    def traces(self):
        return churn.traces(self.daemon, self.driver, self.directory)

    def see_what_is_not_guarded(self):
        """Control: without a guard the same traffic is on the uplink."""
        with test_exfiltration.Watch() as watch:
            self.docker("run", "-d", "--name", "open", self.docker.IMAGE, *TRIES)
            self.assertTrue(wait_until(watch.sent, 20 * SLOW))
            self.docker("rm", "-f", "open")

    def test_churn(self):
        guests.say(f"seed {self.seed} (CHURN_SEED), {SECONDS} s")
        dice = random.Random(self.seed + 1)
        self.see_what_is_not_guarded()
        with test_exfiltration.Watch() as watch:
            self.each_way("before")
            before = churn.settled(self.traces)
            self.strikes.share = SHARE
            lives = churn.Lives(self.ways, dice, COUNT, SECONDS, AT_ONCE, TRIES)
            storm = churn.Storm(random.Random(self.seed + 2), self.daemon, self.driver, self.docker, self.pods)
            storm.start()
            lives.run()
            storm.stop()
            self.strikes.share = 0
            guests.say(f"{lives.text()}: {lives.started}")
            guests.say(f"killed: {self.strikes.killed} of {self.strikes.told} calls of adapters and plugins, {lives.killed} commands, {storm.killed}; "
                       f"commands that hung after that: {lives.hung}")
            self.assertIsNone(storm.failed)
            self.assertGreaterEqual(lives.begun, COUNT)
            self.clean()
            self.each_way("after")
        self.assertEqual([test_exfiltration.rows(f) for f in watch.sent() if attached.says_something(f)], [])
        self.assertEqual(watch.foreign(), [])
        # A pair that dockerd was killed over is removed after two minutes.
        wait_until(lambda: self.traces() == before, 30 * SLOW, 1)
        after = self.traces()
        if after != before:
            guests.say(churn.holders())
        self.assertEqual({what: after[what] for what in before if after[what] != before[what]}, {}, (before, self.daemon.stderr()[-4000:]))
        self.finish()

    def clean(self):
        """Removes all containers, like a user. Also removes what an engine leaves for good, with a guard or without, if it, its runtime or its
        plugins are killed in the middle of their work, and none of its containers names any more: namespaces' files and addresses of
        Podman's, links of Docker's bridge, and processes that wait for their start."""
        for way in {way.engine: way for way in self.ways}.values():
            for name in way.there():
                self.call(way, way.remove(name))
            self.assertEqual(way.there(), [])
        self.pods.collect(self.chains[-2:])
        self.pods.end_forgotten()
        self.podman.end_keepers()  # of plain runc, whose first process waits for its start and holds a namespace
        namespaces = [n for n in os.listdir("/run/netns") if n.startswith(("netns-", "cni-"))]
        for name in namespaces:
            sh("ip", "netns", "del", name)
        leases = churn.leases()
        for network, container in leases:
            next(chain for chain in self.chains if chain.name == network).delete(container)
        guests.say(f"left by engines: {len(namespaces)} namespaces, {len(leases)} addresses, {churn.remove_links()} links, "
                   f"{churn.end_waiting(self.directory)} processes, {churn.end_waiting(self.docker.dir + '/exec/runtime-runc/moby')} of Docker's runc")

    def finish(self):
        self.docker("network", "rm", churn.NETWORK)
        self.assertEqual(os.listdir(self.driver.state), [])
        self.assertEqual(self.driver.stop(), 0)
        self.assertEqual(self.daemon.stop(), 0)
        r = subprocess.run([support.VETHGUARD, "audit", "verify", self.daemon.audit], capture_output=True, text=True)
        self.assertEqual(r.returncode, 0, r)
        self.assert_clean(self.daemon.audit, self.daemon.stderr_path, self.driver.stderr_path)
