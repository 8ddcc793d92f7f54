# SPDX-License-Identifier: Apache-2.0
"""Several workers of one sandbox (workers:): all serve, with the first one's names, the same limits and one policy; one that dies
is replaced while the others serve; a pause, a reload, an upgrade, a restart and a detach concern all of them."""
import json
import os
import signal
import subprocess
import sys
import threading

import daemon_case
import support
import test_upgrade
from daemon import Daemon
from support import FINDING, HTTP, NETWORK, SLOW, file_credential, policy, wait_until

WORKERS = 2
MANY = 24    # connections: all of them come to one of two workers once in eight million times
TUNNELS = 5  # at a time
REQUESTS = 30
RULES = (daemon_case.READS, f"{{name: tunnel, to: 'tcp://tcp.lab.test:2222', limits: {{connections: {TUNNELS}}}}}",
         f"{{name: few, to: 'https://www.lab.test', limits: {{requests: {REQUESTS}/1h}}}}")
# Opens that many TLS connections by name, asks over each, says the answers' statuses, and again for each line that it reads.
HOLD = """
import sys
from inside import *
held = [tls("api.lab.test") for _ in range(int(sys.argv[1]))]
readers = [Reader(s) for s in held]
while True:
    statuses = []
    for s, reader in zip(held, readers):
        try:
            s.sendall(request("GET", "/whoami", "api.lab.test"))
            statuses.append(reader.response()[0])
        except (OSError, EOFError):
            statuses.append(0)
    print(json.dumps(statuses), flush=True)
    if not sys.stdin.readline():
        break
"""
# Opens that many tunnels by name at the same time, and says how many of them live; for each line that it reads, how many live now.
TUNNEL = """
import sys
import threading
from inside import *
living = []
def begin():
    try:
        s = connect("tcp.lab.test", 2222)
        if s.recv(100):
            living.append(s)
    except OSError:
        pass
def lives(s):
    try:
        s.sendall(b"still here")
        return len(s.recv(100)) > 0
    except OSError:
        return False
threads = [threading.Thread(target=begin) for _ in range(int(sys.argv[1]))]
for t in threads:
    t.start()
for t in threads:
    t.join()
print(len(living), flush=True)
while sys.stdin.readline():
    print(sum(map(lives, living)), flush=True)
"""


class Several(daemon_case.Attached):
    CONFIG = f"workers: {WORKERS}\n"

    def make_daemon(self):
        return Daemon(self.CONFIG)

    def write(self, *rules):
        return super().write(*RULES)

    def setUp(self):
        super().setUp()
        self.assert_all_serve()

    def workers(self, name="one"):
        """Process ids, the first worker's first."""
        worker = self.show(name)["worker"]
        return [worker["pid"], *worker["further"]]

    def assert_all_serve(self, but=()):
        self.assertTrue(wait_until(lambda: (lambda w: len(w) == WORKERS and None not in w and not set(w) & set(but))(self.workers()),
                                   20 * SLOW), (self.show(), self.daemon.stderr()))

    def inside(self, code, *argv):
        """A program in the namespace that asks the sandbox's name service."""
        env = self.daemon.call("GET", "/v1/sandboxes/one/env")[2]
        resolv = support.LAB.write("workers-resolv", "".join(f"nameserver {n}\n" for n in env["nameservers"]))
        process = subprocess.Popen(
            ["nsenter", f"--net=/run/netns/{self.name}", "unshare", "-m", "sh", "-c",
             f"mount --bind {resolv} /etc/resolv.conf && exec \"$0\" \"$@\"", sys.executable, "-c", code, *map(str, argv)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env=dict(os.environ, PYTHONPATH=support.HERE, PYTHONDONTWRITEBYTECODE="1", SSL_CERT_FILE=self.ca))
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        return process

    def says(self, process, ask=True):
        if ask:
            process.stdin.write("\n")
            process.stdin.flush()
        return json.loads(process.stdout.readline())

    def sockets(self, pid):
        fds = f"/proc/{pid}/fd"
        return sum(os.readlink(os.path.join(fds, fd)).startswith("socket:") for fd in os.listdir(fds))

    def stats(self):
        return self.daemon.call("GET", "/v1/sandboxes/one/stats")[2]["worker"]

    def status_of(self, url):
        return self.curl("-o", "/dev/null", "-w", "%{http_code}", url).stdout


class Workers(Several):
    def test_all_serve_by_the_names_of_the_first(self):
        before = [self.sockets(pid) for pid in self.workers()]
        opened = self.stats()["connections"]
        held = self.inside(HOLD, MANY)
        self.assertEqual(self.says(held, False), [200] * MANY, self.daemon.stderr())
        now = [self.sockets(pid) for pid in self.workers()]
        self.assertTrue(all(n > b for n, b in zip(now, before)), (before, now))
        stats = self.stats()
        self.assertEqual((stats["connections"] - opened, stats["connections_open"]), (MANY, MANY), stats)
        self.assertEqual(stats["requests"]["allowed"], MANY, stats)
        uses = self.daemon.call("GET", "/v1/sandboxes/one/credentials")[2]["credentials"][0]["uses"]
        self.assertEqual(uses, MANY)
        self.assertEqual(self.says(held), [200] * MANY)
        self.assertTrue(wait_until(lambda: len(self.daemon.events(HTTP)) == 2 * MANY, 5 * SLOW), len(self.daemon.events(HTTP)))
        status, _, answer = self.daemon.call("DELETE", "/v1/sandboxes/one")
        self.assertEqual((status, answer["summary"]["allowed"]), (200, 2 * MANY + MANY), answer)  # with one query for each
        self.assertTrue(wait_until(lambda: not any(self.state_files().values()), 5 * SLOW), self.state_files())

    def tunnels(self):
        tunnels = []

        def begin(count):
            tunnels.append(self.inside(TUNNEL, count))
            return self.says(tunnels[-1], False)

        def fill(living):
            for _ in range(TUNNELS - living):
                self.assertEqual(begin(1), 1, (living, self.daemon.stderr()))
            self.assertEqual(begin(3), 0)
        living = begin(4 * TUNNELS)  # of two that ask for the last place at the same time both may be refused
        self.assertTrue(0 < living <= TUNNELS, living)
        fill(living)
        self.assertIsNotNone(self.daemon.event(NETWORK, status_code="policy-limit", action_id=2))
        killed = self.workers()[1]
        os.kill(killed, signal.SIGKILL)
        self.assert_all_serve(but=[killed])
        fill(sum(map(self.says, tunnels)))

    def test_limits_count_over_all(self):
        """What is open at a time, requests over a time; what a dead worker had open counts no longer."""
        self.requests()
        self.tunnels()

    def requests(self):
        r = subprocess.run(["ip", "netns", "exec", self.name, "curl", "-sZ", "--parallel-max", "20", "--http1.1", "--cacert", self.ca,
                            "-H", "Connection: close", "-x", daemon_case.PROXY, "-w", "%{http_code}\n", "-o", "/dev/null",
                            f"https://www.lab.test/?n=[1-{2 * REQUESTS}]"], capture_output=True, text=True, timeout=60 * SLOW)
        passed = r.stdout.count("200")
        self.assertTrue(0 < passed <= REQUESTS, r)
        while self.status_of("https://www.lab.test/") == "200":
            passed += 1
        self.assertEqual(passed, REQUESTS)
        limits = self.daemon.call("GET", "/v1/sandboxes/one/stats")[2]["policy_limits"]
        self.assertEqual([x["used"] for x in limits if x["kind"] == "requests"], [REQUESTS])

    def test_reload_under_load(self):
        """Nothing fails while all workers are replaced, and afterwards nothing passes that the new policy denies."""
        old, tunnels = self.workers(), self.inside(TUNNEL, 1)
        self.assertEqual(self.says(tunnels, False), 1)
        over, failed = threading.Event(), []

        def ask():
            while not over.is_set():
                if self.status_of("https://api.lab.test/whoami") != "200":
                    failed.append(self.daemon.stderr())
        threads = [threading.Thread(target=ask) for _ in range(2)]
        for t in threads:
            t.start()
        try:
            status, _, answer = self.daemon.call("POST", "/v1/sandboxes/one/reload")
            self.assertEqual(status, 200, answer)
            self.assert_all_serve(but=old)
        finally:
            over.set()
            for t in threads:
                t.join()
        self.assertEqual(failed, [])
        self.assertEqual(self.says(tunnels), 1, "what is under way goes on")
        held = self.inside(HOLD, MANY)
        self.assertEqual(self.says(held, False), [200] * MANY)
        with open(self.policy, "w") as f:
            f.write(policy("https://www.lab.test", credentials=file_credential()))
        self.assertEqual(self.daemon.call("POST", "/v1/sandboxes/one/reload")[0], 200)
        self.assertNotIn(200, self.says(held))
        self.assertEqual(self.says(tunnels), 0)
        fresh = self.inside(HOLD, MANY)
        self.assertNotIn(200, self.says(fresh, False))
        self.assert_all_serve()

    def test_workers_die(self):
        """A further one, then the first: the other serves, and after that both again."""
        first, further = self.workers()
        held = self.inside(HOLD, MANY)
        self.assertEqual(self.says(held, False), [200] * MANY)
        os.kill(further, signal.SIGKILL)
        self.assert_served()
        self.assert_all_serve(but=[further])
        self.assertEqual(self.workers()[0], first)
        statuses = self.says(held)
        self.assertEqual(set(statuses), {0, 200}, "the first one's connections live, the other's are gone")
        self.assertTrue(wait_until(lambda: any("A further worker" in json.dumps(e) for e in self.daemon.events(FINDING)), 5 * SLOW),
                        self.daemon.events(FINDING))
        self.assertEqual(self.show()["worker"]["restarts"], 1)
        first, further = self.workers()
        held = self.inside(HOLD, MANY)
        self.assertEqual(self.says(held, False), [200] * MANY)
        os.kill(first, signal.SIGKILL)
        self.assert_all_serve(but=[first])
        self.assertIn(further, self.workers()[1:])
        self.assertEqual(set(self.says(held)), {0, 200})
        self.assert_served()
        fresh = self.inside(HOLD, MANY)
        self.assertEqual(self.says(fresh, False), [200] * MANY)

    def test_a_pause_and_a_revocation_concern_all(self):
        old, held = self.workers(), self.inside(HOLD, MANY)
        self.assertEqual(self.says(held, False), [200] * MANY)
        self.assertEqual(self.daemon.call("POST", "/v1/sandboxes/one/pause", {"reason": "a test"})[0], 200)
        self.assertEqual([pid for pid in old if os.path.exists(f"/proc/{pid}")], [])
        self.assertNotIn(200, self.says(held))
        for _ in range(4):
            self.assertEqual(self.status_of("https://api.lab.test/whoami"), "503")
        self.assertEqual(self.daemon.call("POST", "/v1/sandboxes/one/resume")[0], 200)
        self.assert_all_serve(but=old)
        fresh = self.inside(HOLD, MANY)
        self.assertEqual(self.says(fresh, False), [200] * MANY)
        self.assertEqual(self.daemon.call("POST", "/v1/sandboxes/one/credentials/revoke", {"credential": "api"})[0], 200)
        self.assertNotIn(200, self.says(fresh))


class Upgrade(test_upgrade.Upgrader, Several):
    def make_daemon(self):
        daemon = super().make_daemon()
        daemon.stop()
        with open(daemon.config, "w") as f:
            f.write(support.LAB.config(self.CONFIG))
        return daemon.start()

    def test_upgrade(self):
        old, held = self.workers(), self.inside(TUNNEL, TUNNELS)
        living = self.says(held, False)
        self.assertGreater(living, 0)
        self.upgrade()
        self.assert_all_serve(but=old)
        self.assertEqual(self.says(held), living, "workers of the old daemon finish what they have")
        fresh = self.inside(HOLD, MANY)
        self.assertEqual(self.says(fresh, False), [200] * MANY)
        held.kill()
        self.assertTrue(wait_until(lambda: not any(test_upgrade.alive(pid) for pid in old), 20 * SLOW), self.daemon.stderr())
        os.kill(self.status()["processes"]["supervisor"], signal.SIGKILL)
        self.daemon.start()
        self.assert_all_serve(but=old)
        fresh = self.inside(HOLD, MANY)
        self.assertEqual(self.says(fresh, False), [200] * MANY)
