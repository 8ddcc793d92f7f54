# SPDX-License-Identifier: Apache-2.0
"""vethguard-runtime killed at each step, with the daemon away, with damaged bundles, and with an engine that puts links and
sockets of its own into the namespace: nothing ever starts unguarded, and nothing is left behind."""
import contextlib
import json
import os
import random
import re
import resource
import shutil
import signal
import socket
import subprocess
import threading
import time
import unittest

import attached
import cores
import guests
import support
import test_exfiltration
from bundles import Bundle, Runtime
from daemon import Daemon
from lab import DNS4, EVIL4, ORIGIN4, ORIGIN6
from support import PYTHON, SLOW, Case, sh, wait_until

TRIES = {"evil4": EVIL4, "dns4": DNS4, "origin4": ORIGIN4, "origin6": ORIGIN6, "services": [], "neighbours": [], "macs": []}


class Direct(Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        if not shutil.which("runc"):
            raise unittest.SkipTest("runc is not installed")
        cls.policies = support.LAB.path(f"direct-policies-{time.monotonic_ns()}")
        os.makedirs(cls.policies)
        key = support.LAB.write("direct-key", support.SECRET, 0o600)
        for name, text in (("agent", attached.POLICY % key), ("narrow", attached.NARROW)):
            with open(f"{cls.policies}/{name}.yaml", "w") as f:
                f.write(text)

    def setUp(self):
        super().setUp()
        os.makedirs("/run/netns", exist_ok=True)
        self.before = set(os.listdir("/run/netns"))
        self.daemon = Daemon()
        self.addCleanup(self.daemon.stop)
        self.runtime = self.make_runtime()

    def make_runtime(self, **keys):
        runtime = Runtime(self.daemon, self.policies, **keys)
        self.addCleanup(self.clean, runtime)
        return runtime

    def clean(self, runtime):
        for name in os.listdir(runtime.root) if os.path.isdir(runtime.root) else []:
            subprocess.run(["runc", "--root", runtime.root, "delete", "--force", name], capture_output=True)
        if self.daemon.process.poll() is not None:
            self.daemon.start()

    def bundle(self, *argv, policy="agent", env=(), **members):
        name = f"bundle{time.monotonic_ns()}"
        return Bundle(name, argv or ("/bin/sleep", "1000"), [*([f"VETHGUARD_POLICY={policy}"] if policy else []), *env], **members)

    def tries(self, out):
        """What a container's first instruction does: every way out, at once."""
        return self.bundle(PYTHON, "/inside_battery.py", "tries", json.dumps({**TRIES, "tag": f"f{time.monotonic_ns() % 10 ** 9}"}))

    def guards(self):
        return [s["name"] for s in self.daemon.call("GET", "/v1/sandboxes")[2]["sandboxes"]]

    def refused(self, r, words, runtime=None):
        runtime = runtime or self.runtime
        self.assertEqual(r.returncode, 1, r)
        self.assertRegex(r.stderr, words)
        self.assertRegex(runtime.said(), words)

    def gone(self, runtime=None):
        """No trace of any container."""
        runtime = runtime or self.runtime
        self.assertEqual(runtime.entries(), [])
        self.assertEqual(set(os.listdir("/run/netns")) - self.before, set())
        self.assertTrue(wait_until(lambda: self.guards() == [], 10 * SLOW), self.guards())

    # --- a life ---

    def test_a_life(self):
        """create, start, exec, delete; the bundle is as it was, and serves again."""
        bundle = self.bundle()
        with open(bundle.path + "/config.json") as f:
            before = f.read()
        for _ in range(2):
            r = self.runtime.create(bundle, "box")
            self.assertEqual(r.returncode, 0, r.stderr)
            now = bundle.read()
            self.assertEqual(now["process"]["rlimits"], bundle.config["process"]["rlimits"])
            self.assertNotIn("VETHGUARD_", json.dumps(now["process"]["env"]))
            self.assertEqual(self.runtime("start", "box").returncode, 0)
            process = {"args": ["/bin/sh", "-c", "env; cat /etc/resolv.conf; ip addr; ip route"], "cwd": "/", "env": ["PATH=/bin", "VETHGUARD_POLICY=x"],
                       "user": {"uid": 0, "gid": 0}, "terminal": False}
            path = support.LAB.write("process.json", json.dumps(process))
            r = self.runtime("exec", "--process", path, "box", stdout=subprocess.PIPE)
            self.assertIn("LAB_KEY=vethguard-", r.stdout)
            self.assertNotIn("VETHGUARD_", r.stdout)
            self.assertIn("default via", r.stdout)
            self.assertEqual(self.runtime("delete", "box").returncode, 1)  # it runs: everything stays
            self.assertEqual(self.guards(), ["box"])
            self.assertEqual(self.runtime("delete", "--force", "box").returncode, 0)
            self.gone()
            with open(bundle.path + "/config.json") as f:
                self.assertEqual(f.read(), before)

    def test_cores_of_it_show_no_credential(self):
        """Cores are taken at many moments of the runtime's work, for a container whose policy has a credential."""
        bundle = self.bundle()
        with open(self.runtime.log + ".stderr", "w") as err:
            process = subprocess.Popen(self.runtime.words("create", "--bundle", bundle.path, "--pid-file", bundle.path + "/pid", "cored"),
                                       stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=err)
        taken = 0
        while process.poll() is None:
            with contextlib.suppress(OSError):  # the process has just ended
                self.assertEqual(cores.found_in(process.pid, {"secret": support.SECRET}), set())
                taken += 1
        self.assertEqual(process.returncode, 0)
        self.assertGreater(taken, 1)

    def test_exec_shows_nobody_its_variables(self):
        """Nobody else can read what an engine passes to a process of exec (docker exec -e PASSWORD=...)."""
        self.assertEqual(self.runtime.create(self.bundle(), "box").returncode, 0)
        self.assertEqual(self.runtime("start", "box").returncode, 0)
        process = {"args": ["/bin/cat"], "cwd": "/", "env": ["PATH=/bin", "PASSWORD=x"], "user": {"uid": 0, "gid": 0}, "terminal": False}
        path = support.LAB.write("process.json", json.dumps(process))
        folder = os.path.join(self.runtime.directory, *self.runtime.entries())
        waits = subprocess.Popen([*self.runtime.words(), "exec", "--process", path, "box"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        waits.stdin.write(b"it runs\n")
        waits.stdin.flush()
        self.assertEqual(waits.stdout.readline(), b"it runs\n")
        copies = [os.path.join(folder, name) for name in os.listdir(folder) if name.startswith("exec-")]
        self.assertEqual([os.stat(p).st_mode & 0o777 for p in copies], [0o600])
        waits.communicate()
        self.assertFalse(os.path.exists(copies[0]))

    def test_run(self):
        """The real runtime's `run` does both; its status is the command's."""
        bundle = self.bundle("/bin/sh", "-c", "ip -o link | grep -c eth0; exit 7")
        r = self.runtime("run", "--bundle", bundle.path, "box", stdout=subprocess.PIPE)
        self.assertEqual((r.returncode, r.stdout), (7, "1\n"), r)
        self.gone()

    def test_two_engines(self):
        """The same id in two engines makes two guards with two names."""
        other = self.make_runtime(directory=self.runtime.directory)
        bundles = [self.bundle(), self.bundle()]
        threads = [threading.Thread(target=r.create, args=(b, "box")) for r, b in zip((self.runtime, other), bundles)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual(len(self.guards()), 2)
        self.assertEqual(len(self.runtime.entries()), 2)
        for runtime in (self.runtime, other):
            self.assertEqual(runtime("start", "box").returncode, 0, runtime.said)
        for runtime in (self.runtime, other):
            self.assertEqual(runtime("delete", "--force", "box").returncode, 0)
        self.gone()

    def test_same_id(self):
        first, second = self.bundle(), self.bundle()
        self.assertEqual(self.runtime.create(first, "box").returncode, 0)
        self.refused(self.runtime.create(second, "box"), "there is a container of that id")
        self.assertEqual(self.guards(), ["box"])
        self.assertEqual(self.runtime("start", "box").returncode, 0)

    def test_what_it_adds(self):
        """A life of /bin/true by runc alone and through the runtime, one after the other. Printed; nothing depends on it."""
        root = support.LAB.path(f"alone-{time.monotonic_ns()}")
        kinds = {"runc alone": (["runc", "--root", root], self.bundle("/bin/true", policy=None)),
                 "with the guard": (self.runtime.words(), self.bundle("/bin/true", annotations={"io.container.manager": "libpod"})),
                 "with its link put aside meanwhile": (self.runtime.words(), self.bundle("/bin/true"))}
        times, cpu = {kind: [] for kind in kinds}, dict.fromkeys(kinds, 0.0)

        def spent():
            usage = resource.getrusage(resource.RUSAGE_CHILDREN)
            return (usage.ru_utime + usage.ru_stime) * 1000
        for i in range(20):
            for kind, (words, bundle) in kinds.items():
                began, before = time.monotonic(), spent()
                for call in (["create", "--bundle", bundle.path, "--pid-file", bundle.path + "/pid", f"c{i}"], ["start", f"c{i}"],
                             ["delete", "--force", f"c{i}"]):
                    r = subprocess.run([*words, *call], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                    self.assertEqual(r.returncode, 0, (kind, call))
                times[kind].append((time.monotonic() - began) * 1000)
                cpu[kind] += (spent() - before) / 20
        guests.say("create, start, delete, p50 of 20: " + ", ".join(f"{sorted(v)[10]:.0f} ms (CPU {cpu[k]:.0f} ms) {k}" for k, v in times.items()))
        self.gone()

    # --- what is refused ---

    def test_refused_requests(self):
        for bundle, words in (
                (self.bundle(policy=None), "names no policy: set VETHGUARD_POLICY=NAME"),
                (self.bundle(policy="none"), r"there is no policy none in .* \(there are: agent, narrow\)"),
                (self.bundle(policy="../../etc/agent"), "is not a policy's name"),
                (self.bundle(policy="/etc/passwd"), "is not a policy's name"),
                (self.bundle(policy=None, env=["VETHGUARD_POLCY=agent"]), "VETHGUARD_POLCY is not known"),
                (self.bundle(env=["VETHGUARD_TTL=soon"]), "ttl is not a duration"),
                (self.bundle(env=["VETHGUARD_NAME=a b"]), "a sandbox name is"),
                (self.bundle(linux={"namespaces": [{"type": "mount"}]}), "host's own network"),
                (self.bundle(linux={"namespaces": [{"type": "network", "path": "/proc/self/ns/net"}]}), "host's own network"),
                (self.bundle(linux={"namespaces": [{"type": "network"}, {"type": "user"}]}), "user namespace"),
                (self.bundle(annotations={"org.vethguard.edited": "1"}), "cannot be read|No such file")):
            with self.subTest(words=words):
                self.refused(self.runtime.create(bundle, "box"), words)
                self.gone()

    def test_damaged(self):
        bundle = self.bundle()
        text = json.dumps(bundle.config)
        for damaged, words in (("", "is not JSON"), (text[:-1], "is not JSON"), ("[]", "not a JSON object"), ("{}", "names no policy"),
                               (text[:-1] + ', "linux": {}}', "duplicate"), (text.replace('"linux"', '"Linux"'), "spelled"),
                               (text.replace('"env": [', '"env": [7, '), "has to be a string"), (text + " " * (17 << 20), "at most"),
                               (text.replace('"mounts": [', '"mounts": 7, "x": ['), "have to be a list")):
            with self.subTest(words=words):
                bundle.write(damaged)
                self.refused(self.runtime.create(bundle, "box"), words)
                self.gone()

    def test_passed(self):
        """A container that names no policy passes untouched if the configuration says so; one that names a missing policy does not."""
        runtime = self.make_runtime(without_policy="pass")
        bundle = self.bundle("/bin/true", policy=None)
        before = bundle.read()
        self.assertEqual(runtime.create(bundle, "box").returncode, 0)
        self.assertEqual(bundle.read(), before)
        self.assertEqual(runtime.entries(), [])
        self.refused(runtime.create(self.bundle(policy=None, env=["VETHGUARD_POLCY=agent"]), "other"), "is not known", runtime)
        runtime = self.make_runtime(without_policy="narrow", environment="false")
        self.assertEqual(runtime.create(self.bundle(), "box").returncode, 0)
        self.assertEqual(self.daemon.call("GET", "/v1/sandboxes/box")[2]["policy"]["name"], "narrow")

    # --- the daemon ---

    def test_daemon_away(self):
        self.daemon.stop()
        self.refused(self.runtime.create(self.bundle(), "box"), "vethguardd does not run")
        self.assertEqual(self.runtime.entries(), [])
        self.daemon.start()

    def test_daemon_killed_between(self):
        """Made while it was there, started while it is away: refused. When it is back, it starts and is guarded."""
        bundle = self.tries("out")
        self.assertEqual(self.runtime.create(bundle, "box").returncode, 0)
        self.daemon.kill()
        with test_exfiltration.Watch() as watch:
            self.refused(self.runtime("start", "box"), "vethguardd does not run")
        self.assertEqual(watch.sent(), [])
        self.daemon.start()
        self.assertEqual(self.runtime("start", "box").returncode, 0)

    def test_same_name_at_once(self):
        """A container whose process has ended by itself is deleted while the daemon ends its guard, and started again under the name."""
        bundle = self.bundle("/bin/true", env=["VETHGUARD_NAME=again"])
        for i in range(10):
            r = self.runtime.create(bundle, f"box{i}")
            self.assertEqual(r.returncode, 0, (i, r.stderr))
            self.assertEqual(self.guards(), ["again"])
            self.assertEqual(self.runtime("start", f"box{i}").returncode, 0)
            self.assertEqual(self.runtime("delete", "--force", f"box{i}").returncode, 0)
        self.gone()

    def test_deleted_without_the_daemon(self):
        """What can be removed without the daemon is removed; the daemon does the rest when it is back."""
        self.assertEqual(self.runtime.create(self.bundle(), "box").returncode, 0)
        self.assertEqual(self.runtime("start", "box").returncode, 0)
        self.daemon.kill()
        self.assertEqual(self.runtime("delete", "--force", "box").returncode, 0)
        self.assertEqual(self.runtime.entries(), [])
        self.daemon.start()
        self.gone()

    def test_guard_detached_before_the_start(self):
        self.assertEqual(self.runtime.create(self.bundle(), "box").returncode, 0)
        self.assertEqual(self.daemon.call("DELETE", "/v1/sandboxes/box")[0], 200)
        self.refused(self.runtime("start", "box"), "there is no sandbox box")

    def test_entry_lost(self):
        """The content of its namespace is not known any more."""
        self.assertEqual(self.runtime.create(self.bundle(), "box").returncode, 0)
        shutil.rmtree(f"{self.runtime.directory}/{self.runtime.entries()[0]}")
        self.refused(self.runtime("start", "box"), "guard is gone")

    # --- kills: a real runtime of the test's kills who has called it ---

    def killer(self, when, after):
        """A real runtime that kills its parent at a command, before or after it has done it."""
        kill = "kill -KILL $PPID"
        return support.LAB.write(f"killer-{time.monotonic_ns()}", f"""#!/bin/sh
for word; do [ "$word" = {when} ] && break; done
if [ "$word" = {when} ]; then
	{'' if after else kill + '; exit 1'}
	runc "$@"; rc=$?
	{kill}
	exit $rc
fi
exec runc "$@"
""", 0o755)

    def test_killed_at_create(self):
        for after in (False, True):
            with self.subTest(after=after):
                runtime = self.make_runtime(real=self.killer("create", after))
                with test_exfiltration.Watch() as watch:
                    r = runtime.create(self.tries("out"), "box")
                    self.assertEqual(r.returncode, -signal.SIGKILL, r)
                    self.assertTrue(wait_until(lambda: self.guards() == [], 10 * SLOW), self.guards())
                    # A start past this program would start it without a network.
                    subprocess.run(["runc", "--root", runtime.root, "start", "box"], capture_output=True, check=False)
                    r = runtime("start", "box")
                    self.assertEqual(r.returncode, 1, r)
                self.assertEqual(watch.sent(), [])
                subprocess.run(["runc", "--root", runtime.root, "delete", "--force", "box"], capture_output=True, check=False)
                # The next call of any container takes away what is left.
                self.assertEqual(len(runtime.entries()), 1)
                self.assertEqual(runtime.create(self.bundle(policy=None), "other").returncode, 1)
                self.gone(runtime)

    def test_killed_takes_the_real_runtime_along(self):
        """An engine that kills its runtime kills all of it: what went on would make a container that nobody knows of, and keep pipes of
        the engine open, which Podman reads to their end."""
        pids = support.LAB.path(f"pids-{time.monotonic_ns()}")
        for call in ("create", "delete"):
            with self.subTest(call=call):
                slow = self.make_runtime(real=support.LAB.write(f"slow-{time.monotonic_ns()}", f"""#!/bin/sh
for word; do [ "$word" = {call} ] && {{ echo $$ >{pids}.new; mv {pids}.new {pids}; exec sleep 1000; }}; done
exec runc "$@"
""", 0o755))
                bundle = self.bundle()
                if call == "delete":
                    self.assertEqual(slow.create(bundle, "box").returncode, 0)
                words = ["create", "--bundle", bundle.path, "box"] if call == "create" else ["delete", "--force", "box"]
                p = subprocess.Popen(slow.words(*words), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
                self.assertTrue(wait_until(lambda: os.path.exists(pids), 10 * SLOW))
                with open(pids) as f:
                    row = {(pid := int(f.read())): support.process_row(pid)}
                os.unlink(pids)
                p.kill()
                p.communicate(timeout=10 * SLOW)  # the pipe ends
                self.assertTrue(wait_until(lambda: not support.still_alive(row), 10 * SLOW))

    def test_daemon_killed_at_create(self):
        """It dies while the real runtime makes the container, whose process it would have to follow: the container is removed again."""
        kill = f"kill -KILL {self.daemon.process.pid}"
        runtime = self.make_runtime(real=support.LAB.write(f"traitor-{time.monotonic_ns()}", f"""#!/bin/sh
for word; do [ "$word" = create ] && {kill}; done
exec runc "$@"
""", 0o755))
        with test_exfiltration.Watch() as watch:
            self.refused(runtime.create(self.tries("out"), "box"), "vethguardd (does not run|on )", runtime)
        self.assertEqual(watch.sent(), [])
        self.assertFalse(os.path.exists(runtime.root + "/box"))
        self.daemon.process.wait()
        self.daemon.start()
        self.gone(runtime)

    def test_killed_at_delete(self):
        for after in (False, True):
            with self.subTest(after=after):
                runtime = self.make_runtime(real=self.killer("delete", after))
                self.assertEqual(runtime.create(self.bundle(), "box").returncode, 0)
                self.assertEqual(runtime("start", "box").returncode, 0)
                runtime("kill", "box", "KILL")
                self.assertTrue(wait_until(lambda: self.guards() == [], 10 * SLOW))
                self.assertEqual(runtime("delete", "box").returncode, -signal.SIGKILL)
                self.assertTrue(wait_until(lambda: not os.path.exists(f"{runtime.root}/box") or not after, 10 * SLOW))
                runtime("create", "--bundle", "/", "other")
                self.gone(runtime)

    LIVES, AT_ONCE = (200, 4) if os.environ.get("VETHGUARD_LONG") else (24, 3)

    def live(self, runtime, name, dice):
        """One life, whose calls are killed at random; every container that starts asks for evil.lab.test at once."""
        bundle = self.bundle("/bin/sh", "-c", f"{guests.CURL} -s -m 1 http://{EVIL4}/ >/dev/null; exec sleep 1000")
        for call in (["create", "--bundle", bundle.path, "--pid-file", bundle.path + "/pid", name], ["start", name], ["delete", "--force", name]):
            p = subprocess.Popen(runtime.words(*call), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            if dice.random() < 0.4:
                time.sleep(dice.random() * 0.15)
                p.kill()
            p.wait()
        subprocess.run(["runc", "--root", runtime.root, "delete", "--force", name], capture_output=True, check=False)

    def test_killed_at_random(self):
        seed = random.randrange(1 << 30)
        dice = random.Random(seed)
        names = [f"storm{i}" for i in range(self.LIVES)]

        def worker(mine, own):
            for name in mine:
                self.live(self.runtime, name, own)
        with test_exfiltration.Watch() as watch:
            threads = [threading.Thread(target=worker, args=(names[i::self.AT_ONCE], random.Random(dice.random()))) for i in range(self.AT_ONCE)]
            for t in threads:
                t.start()
            for t in threads:
                t.join()
        self.assertEqual(watch.foreign(), [], seed)
        self.assertEqual(dict(watch.flows()), {}, seed)
        self.assertTrue(wait_until(lambda: self.guards() == [], 20 * SLOW), (seed, self.guards()))
        self.runtime("delete", "--force", "nobody")  # tidies
        self.assertTrue(wait_until(lambda: self.runtime("delete", "--force", "nobody") and self.runtime.entries() == [], 10 * SLOW, 0.5),
                        (seed, self.runtime.entries()))
        self.gone()

    def test_real_runtime_fails(self):
        runtime = self.make_runtime(real=support.LAB.write(f"fails-{time.monotonic_ns()}", "#!/bin/sh\nexit 3\n", 0o755))
        bundle = self.bundle()
        self.assertEqual(runtime.create(bundle, "box").returncode, 3)
        self.gone(runtime)
        self.assertEqual(bundle.read(), bundle.config)

    # --- an engine that puts something into the namespace between create and start ---

    def intrude(self, *commands):
        namespace = self.runtime.netns()[0]
        for command in commands:
            sh("nsenter", "--net=" + namespace, *command.split())

    def plug_in(self):
        """What dockerd 28 does between create and start."""
        sh("ip", "link", "add", "vgtest0", "type", "veth", "peer", "name", "vgtest1")
        self.addCleanup(subprocess.run, ["ip", "link", "del", "vgtest0"], capture_output=True)
        sh("ip", "link", "set", "vgtest0", "up")
        sh("ip", "addr", "add", "172.30.0.1/24", "dev", "vgtest0")
        sh("sh", "-c", f"exec 9<{self.runtime.netns()[0]}; ip link set vgtest1 netns /proc/self/fd/9")
        self.intrude("ip link set vgtest1 name eth0", "ip addr add 172.30.0.2/24 dev eth0", "ip link set eth0 up",
                     "ip route add default via 172.30.0.1", "ip link add br0 type bridge", "ip link add in0 type veth peer name in1")

    def test_engines_link_and_net_admin(self):
        """The namespace keeps a number for the other end's: a container with that capability could use it."""
        bundle = self.bundle()
        for names in bundle.config["process"]["capabilities"].values():
            if "CAP_NET_ADMIN" not in names:
                names.append("CAP_NET_ADMIN")
        bundle.write()
        self.assertEqual(self.runtime.create(bundle, "box").returncode, 0)
        self.plug_in()
        self.refused(self.runtime("start", "box"), "has CAP_NET_ADMIN")

    def test_engines_link(self):
        """As dockerd does it: a veth named eth0, with an address and a default route. It is gone before the first instruction."""
        bundle = self.bundle(PYTHON, "/inside_battery.py", "tries", json.dumps({**TRIES, "tag": "link"}))
        self.assertEqual(self.runtime.create(bundle, "box").returncode, 0)
        self.plug_in()
        with test_exfiltration.Watch() as watch:
            self.assertEqual(self.runtime("start", "box").returncode, 0)
            inside = sh("nsenter", "--net=" + self.runtime.netns()[0], "ip", "-o", "addr")
            self.assertNotIn("172.30", inside)
            self.assertIn("eth0", inside)
            names = sh("nsenter", "--net=" + self.runtime.netns()[0], "ip", "-o", "link")
            self.assertEqual(re.findall(r"(?m)^\d+: ([^@:]+)", names), ["lo", "eth0"])
            routes = sh("nsenter", "--net=" + self.runtime.netns()[0], "ip", "route")
            self.assertRegex(routes, r"^default via 198\.1[89]")
            self.assertTrue(wait_until(lambda: not self.guards(), 60 * SLOW))
        self.assertEqual([f for f in watch.foreign()], [])
        self.assertFalse(any(EVIL4 in map(str, row) for row in watch.flows()))

    def test_engines_sockets(self):
        """Docker's resolver listens in the namespace from outside: refused, whatever the socket is."""
        for kind, code in (("UDP", "s=socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.bind(('127.0.0.11',0))"),
                           ("TCP", "s=socket.create_server(('127.0.0.11',0))"),
                           ("UDP6", "s=socket.socket(socket.AF_INET6, socket.SOCK_DGRAM); s.bind(('::1',0))"),
                           ("TCP6", "s=socket.create_server(('::1',0), family=socket.AF_INET6)"),
                           ("RAW", "s=socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)"),
                           ("RAW6", "s=socket.socket(socket.AF_INET6, socket.SOCK_RAW, 17)"),
                           ("RAW6", "a=socket.socket(socket.AF_INET6, socket.SOCK_RAW, 58); s=socket.socket(socket.AF_INET6, socket.SOCK_RAW, 59)"),
                           ("packet", "a=socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x0806));"
                            "s=socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(0x0800))"),
                           ("packet", "s=socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))")):
            with self.subTest(kind=kind):
                self.assertEqual(self.runtime.create(self.bundle(), "box").returncode, 0)
                listener = subprocess.Popen(["nsenter", "--net=" + self.runtime.netns()[0], PYTHON, "-c",
                                             f"import socket,time; {code}; print(1,flush=True); time.sleep(1000)"], stdout=subprocess.PIPE)
                listener.stdout.readline()
                r = self.runtime("start", "box")
                listener.kill()
                listener.communicate()
                self.refused(r, f"has opened a {kind} socket .*--network none")
                self.assertEqual(self.runtime("delete", "--force", "box").returncode, 0)

    def test_engines_announcements(self):
        """dockerd 28 announces the container's addresses from inside for some seconds: by these it could tell nobody anything else."""
        bundle = self.tries("out")
        self.assertEqual(self.runtime.create(bundle, "box").returncode, 0)
        self.plug_in()
        announcer = subprocess.Popen(["nsenter", "--net=" + self.runtime.netns()[0], PYTHON, "-c",
                                      "import socket,time; a=socket.socket(socket.AF_INET6, socket.SOCK_RAW, 58);"
                                      "b=socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(0x0806));"
                                      "c=socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, 0); print(1,flush=True);"
                                      "time.sleep(1000)"], stdout=subprocess.PIPE)
        announcer.stdout.readline()
        with test_exfiltration.Watch() as watch:
            r = self.runtime("start", "box")
            self.assertEqual(r.returncode, 0, r)
            self.assertTrue(wait_until(lambda: not self.guards(), 60 * SLOW))
        announcer.kill()
        announcer.communicate()
        self.assertEqual(watch.foreign(), [])
        self.assertFalse(any(EVIL4 in map(str, row) for row in watch.flows()))
