# SPDX-License-Identifier: Apache-2.0
"""The daemon: sandboxes that it attaches to, what it refuses, and how it treats many of them."""
import concurrent.futures
import contextlib
import json
import os
import signal
import subprocess

import support
from daemon import VETHGUARDD, Daemon
from daemon_case import READS, ROLES, SOON, Attached
from support import LIFECYCLE, SLOW, descendants, file_credential, policy, wait_until

NOBODYS = ("0.0.0.0", "127.0.0.1", "224.0.0.1", "255.255.255.255", "::", "::1", "ff02::1", "::ffff:10.7.0.2")


class Life(Attached):
    def test_attach_and_detach(self):
        self.assertEqual(self.box["state"], "serving")
        self.assert_served()
        self.assertEqual(self.curl("-o", "/dev/null", "-w", "%{http_code}", "-X", "DELETE", "https://api.lab.test/x").stdout, "403")
        status, _, answer = self.daemon.call("DELETE", "/v1/sandboxes/one")
        self.assertEqual((status, answer["summary"]["allowed"], answer["summary"]["denied"]), (200, 1, 1), answer)
        self.assertTrue(wait_until(lambda: not any(self.state_files().values()), 5 * SLOW), self.state_files())
        links = wait_until(lambda: "eth0" not in support.sh("ip", "-n", self.name, "link") or None, 5 * SLOW)
        self.assertTrue(links, "the link is still there")
        self.assertEqual(self.daemon.call("GET", "/v1/sandboxes/one")[0], 404)

    def test_the_policy_changes(self):
        self.assert_served()
        with open(self.policy, "w") as f:
            f.write(policy("https://www.lab.test", credentials=file_credential()))
        status, _, answer = self.daemon.call("POST", "/v1/sandboxes/one/reload")
        self.assertEqual((status, self.show()["policy"]["generation"]), (200, 2), answer)
        r = self.curl("-o", "/dev/null", "-w", "%{http_code}", "https://api.lab.test/whoami")
        self.assertIn("403", r.stdout + r.stderr)
        self.assertTrue(wait_until(lambda: [e for e in self.daemon.events(LIFECYCLE) if "api.lab.test" in json.dumps(e)], 5 * SLOW),
                        self.daemon.events(LIFECYCLE))

    def test_a_bad_policy_changes_nothing(self):
        before = self.show()["policy"]
        with open(self.policy, "a") as f:
            f.write("nonsense: 1\n")
        status, _, answer = self.daemon.call("POST", "/v1/sandboxes/one/reload")
        self.assertEqual(status // 100, 4, answer)
        self.assertIn("nonsense", json.dumps(answer["diagnostics"]))
        self.assertEqual(self.show()["policy"], before)
        self.assert_served()

    def test_no_policy_at_the_start(self):
        """A sandbox whose policy does not load when the daemon starts is cut off until a reload finds a good one."""
        moved = self.policy + ".moved"
        for end in (self.daemon.stop, self.daemon.kill):
            end()
            os.rename(self.policy, moved)
            self.daemon.start()
            self.assertEqual((self.show()["state"], "vethguard reload" in self.show()["reason"]), ("failed", True), self.show())
            self.assertFalse(self.asks(seconds=2))
            status, _, answer = self.daemon.call("POST", "/v1/sandboxes/one/reload", {})
            self.assertEqual((status // 100, "stays cut off" in answer["detail"]), (4, True), answer)
            self.assertFalse(self.asks(seconds=2))
            os.rename(moved, self.policy)
            status, _, answer = self.daemon.call("POST", "/v1/reload", {})
            self.assertEqual((status, answer["reloaded"], answer["failed"]), (200, 1, 0), answer)
            self.assert_served("the policy is there again", seconds=10 * SLOW)
            self.assertEqual(self.show()["state"], "serving")
        self.daemon.kill()  # the next daemon knows it as any other
        self.daemon.start()
        self.assert_served(seconds=10 * SLOW)

    def test_another_policy_than_at_the_start(self):
        other = self.write(READS, "https://www.lab.test")
        self.daemon.stop()
        os.unlink(self.policy)
        self.daemon.start()
        self.assertEqual(self.daemon.call("POST", "/v1/sandboxes/one/reload", {"policy": other + ".none"})[0] // 100, 4)
        self.assertEqual(self.show()["state"], "failed")
        status, _, answer = self.daemon.call("POST", "/v1/sandboxes/one/reload", {"policy": other})
        self.assertEqual(status, 200, answer)
        self.assert_served("another policy", seconds=10 * SLOW)
        self.assertEqual(self.show()["policy"]["path"], other)
        self.daemon.stop()
        self.daemon.start()
        self.assertEqual(self.show()["policy"]["path"], other)
        self.assert_served("after a restart", seconds=10 * SLOW)

    def test_pause_lasts(self):
        self.assertEqual(self.daemon.call("POST", "/v1/sandboxes/one/pause", {"reason": "a test"})[0], 200)
        self.assertFalse(self.asks(seconds=2))
        self.daemon.kill()
        self.daemon.start()
        self.assertTrue(wait_until(lambda: self.show()["state"] == "paused", SOON), self.show())
        self.assertFalse(self.asks(seconds=2))
        self.assertEqual(self.daemon.call("POST", "/v1/sandboxes/one/resume")[0], 200)
        self.assert_served()

    def explains(self, netns=None):
        r = self.curl("-i", "https://api.lab.test/whoami", netns=netns)
        return "503" in r.stdout and "the sandbox is paused: a test" in r.stdout and '"code":"paused"' in r.stdout

    def test_a_pause_outlives_every_worker(self):
        pid = self.pid("worker")
        self.assertEqual(self.daemon.call("POST", "/v1/sandboxes/one/pause", {"reason": "a test"})[0], 200)
        self.assertEqual(self.show()["state"], "paused")
        self.assertFalse(os.path.exists(f"/proc/{pid}"), "the worker from before lives")
        self.assertTrue(self.explains())
        os.kill(self.pid("worker"), 9)
        self.assertTrue(wait_until(self.explains, 5 * SLOW))
        self.daemon.kill()
        self.daemon.start()
        self.assertTrue(wait_until(self.explains, 5 * SLOW))
        self.assertEqual(self.show()["state"], "paused")
        self.assertEqual(self.daemon.call("POST", "/v1/sandboxes/one/reload")[0], 200)
        self.assertTrue(self.explains())

    def test_its_time_is_over(self):
        support.netns(self, self.name + "t")
        self.attach("short", self.name + "t", ttl_s=1)
        self.assertTrue(wait_until(lambda: self.daemon.call("GET", "/v1/sandboxes/short")[0] == 404, 10 * SLOW))

    def test_its_process_ends(self):
        with subprocess.Popen(["unshare", "-n", "sleep", "600"]) as process:
            own = os.stat("/proc/self/ns/net").st_ino
            wait_until(lambda: os.stat(f"/proc/{process.pid}/ns/net").st_ino != own, 5 * SLOW)
            self.daemon.attach(name="by-pid", pid=process.pid, policy=self.policy)
            process.kill()
        self.assertTrue(wait_until(lambda: self.daemon.call("GET", "/v1/sandboxes/by-pid")[0] == 404, 10 * SLOW))

    def test_another_process_has_its_number(self):
        """Numbers are used again: one that began at another time is another process, for who attaches it and after a restart."""
        process = subprocess.Popen(["unshare", "-n", "sleep", "600"])
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        own = os.stat("/proc/self/ns/net").st_ino
        wait_until(lambda: os.stat(f"/proc/{process.pid}/ns/net").st_ino != own, 5 * SLOW)
        began = support.process_row(process.pid)[3]
        wanted = {"name": "by-pid", "pid": process.pid, "policy": self.policy}
        for other in (began - 1, began + 1):
            status, _, answer = self.daemon.call("POST", "/v1/sandboxes", wanted | {"start_time": other})
            self.assertEqual((status, answer["detail"]), (422, f"there is no process {process.pid}"))
        self.daemon.attach(**wanted, start_time=began)
        self.daemon.kill()
        path = os.path.join(self.daemon.state, "sandboxes", "by-pid.json")
        with open(path) as f:
            state = json.load(f)
        self.assertEqual(int(state["pid_start_time"], 16), began)
        with open(path, "w") as f:
            json.dump(state | {"pid_start_time": f"{began - 1:016x}"}, f)
        self.daemon.start()
        self.assertTrue(wait_until(lambda: self.daemon.call("GET", "/v1/sandboxes/by-pid")[0] == 404, 10 * SLOW), self.daemon.stderr())
        links = json.loads(support.sh("nsenter", f"--net=/proc/{process.pid}/ns/net", "ip", "-j", "link"))
        self.assertEqual([link["ifname"] for link in links], ["lo"])

    def test_root_inside_takes_its_link_away(self):
        """It has cut itself off, which is said, with what to do; attached anew it is served."""
        for words in (["link", "del", "eth0"], ["link", "set", "eth0", "netns", self.name + "n"]):
            other = support.netns(self, self.name + "n")
            support.sh("ip", "-n", self.name, *words)
            support.sh("ip", "netns", "del", other)
            self.assertTrue(wait_until(lambda: self.show()["state"] == "failed", 10 * SLOW), self.show())
            self.assertRegex(self.show()["reason"], "taken away from inside.*detach it")
            self.assertEqual(self.daemon.call("DELETE", "/v1/sandboxes/one")[0], 200)
            self.attach()
            self.assert_served()

    def assert_ends(self):
        """Nobody has detached it: nothing is left all the same, and it is logged only with -v."""
        self.assertTrue(wait_until(lambda: self.daemon.call("GET", "/v1/sandboxes/one")[0] == 404, 10 * SLOW), self.daemon.stderr())
        self.assertEqual([os.listdir(os.path.join(self.daemon.state, d)) for d in ("netns", "names", "sandboxes")], [[], [], []])
        self.assertNotIn("cut off", self.daemon.stderr())

    def test_its_namespace_ends(self):
        """An engine that was killed has removed it without a word to anybody (CNI's DEL never came)."""
        support.sh("ip", "netns", "del", self.name)
        self.assert_ends()

    def test_its_namespace_ends_meanwhile(self):
        """While no daemon runs."""
        self.daemon.kill()
        support.sh("ip", "netns", "del", self.name)
        self.assertTrue(wait_until(lambda: "eth0" not in self.gate_links(), 10 * SLOW))
        self.daemon.start()
        self.assert_ends()

    def gate_links(self):
        pin, = os.listdir(os.path.join(self.daemon.state, "netns"))
        return support.sh("nsenter", f"--net={self.daemon.state}/netns/{pin}", "ip", "-o", "link")

    def test_its_path_ends_and_the_namespace_lives(self):
        """A process is still in there: it stays guarded, over a restart as well. With the link, the last thing to guard is gone."""
        inside = subprocess.Popen(["ip", "netns", "exec", self.name, "sleep", "600"])
        self.addCleanup(inside.wait)
        self.addCleanup(inside.kill)
        own = os.stat("/proc/self/ns/net").st_ino
        wait_until(lambda: os.stat(f"/proc/{inside.pid}/ns/net").st_ino != own, 5 * SLOW)
        support.sh("ip", "netns", "del", self.name)
        self.assertEqual(self.show()["state"], "serving")
        self.daemon.kill()
        self.daemon.start()
        self.assertTrue(wait_until(lambda: self.show()["state"] == "serving", 10 * SLOW), self.show())
        support.sh("nsenter", f"--net=/proc/{inside.pid}/ns/net", "ip", "link", "del", "eth0")
        self.assert_ends()


class Changing(Attached):
    """A reload that does not get on, because a worker hangs."""

    def spares(self):
        return [p for p, row in descendants(self.daemon.process.pid).items()
                if row[0] == ROLES["worker"] and p != self.pid("worker")]

    def frozen(self, pids):
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        return pids

    def test_detached_before_the_new_worker_is_ready(self):
        self.assertTrue(wait_until(lambda: len(self.spares()) >= 4, 20 * SLOW))
        self.frozen(self.spares())
        with concurrent.futures.ThreadPoolExecutor() as pool:
            reloads = [pool.submit(self.daemon.call, "POST", "/v1/sandboxes/one/reload") for _ in range(2)]
            concurrent.futures.wait(reloads, return_when=concurrent.futures.FIRST_COMPLETED)  # the second is turned away
            self.assertEqual(self.daemon.call("DELETE", "/v1/sandboxes/one")[0], 200)
            self.assertEqual(sorted(r.result()[0] for r in reloads), [409, 503])
        self.assertEqual(self.daemon.call("GET", "/v1/sandboxes/one")[0], 404)

    def test_nothing_is_reloaded_while_the_daemon_stops(self):
        self.frozen([self.pid("worker")])  # so it takes its time
        os.kill(self.daemon.process.pid, signal.SIGTERM)
        self.assertTrue(wait_until(lambda: self.show()["state"] == "detaching", 10 * SLOW))
        self.assertEqual(self.daemon.call("POST", "/v1/sandboxes/one/reload")[0], 503)
        self.assertEqual(self.daemon.process.wait(60 * SLOW), 0)
        self.daemon.start()
        self.assert_served()

    def test_reloaded_is_when_the_old_worker_holds_to_it(self):
        old = self.frozen([self.pid("worker")])
        self.assertEqual(self.daemon.call("POST", "/v1/sandboxes/one/reload")[0], 200)
        self.assertFalse(set(old) & set(descendants(self.daemon.process.pid)), "it hangs, with all that it had let pass")
        self.assert_served()


class Refused(Attached):
    def test_namespaces_that_are_no_sandboxes(self):
        gate = os.path.join(self.daemon.state, "netns", self.state_files()["netns"][0])
        other = support.netns(self, self.name + "o")
        support.sh("ip", "-n", other, "link", "add", "uplink0", "type", "veth", "peer", "name", "uplink1")
        for members, word in (({"netns": "/proc/1/ns/net"}, ""), ({"pid": 1}, ""), ({"pid": os.getpid()}, "the host's own"),
                              ({"netns": gate}, "is a gate"), ({"netns": f"/run/netns/{other}"}, "an interface uplink")):
            status, _, answer = self.daemon.call("POST", "/v1/sandboxes", {"policy": self.policy, **members})
            self.assertEqual(status, 422, answer)
            self.assertIn(word, answer["detail"], members)
        self.assertTrue(wait_until(lambda: [len(v) for v in self.state_files().values()][:2] == [1, 1], 5 * SLOW), self.state_files())
        for words in (["link", "set", "uplink0", "name", "gre0"], ["link", "del", "gre0"], ["link", "add", "sit0", "type", "bridge"]):
            support.sh("ip", "-n", other, *words)  # names that the kernel gives to tunnels of every namespace, taken by root inside
            links = [link["ifname"] for link in json.loads(support.sh("ip", "-n", other, "-j", "link"))]
            if len(links) > 1:
                status, _, answer = self.daemon.call("POST", "/v1/sandboxes", {"policy": self.policy, "netns": f"/run/netns/{other}"})
                self.assertEqual(status, 422, (links, answer))
        self.assertNotIn("eth0", support.sh("ip", "-n", other, "link"))
        self.assert_served()

    def test_a_namespace_is_known_to_the_next_daemon(self):
        self.daemon.kill()
        self.daemon.start()
        status, _, answer = self.daemon.call("POST", "/v1/sandboxes", {"policy": self.policy, "netns": f"/run/netns/{self.name}"})
        self.assertEqual(status, 409, answer)

    def test_requests_that_cannot_be(self):
        netns = f"/run/netns/{self.name}"
        for members, status in (({"name": "one", "netns": netns}, 409), ({"name": "two", "netns": netns}, 409),
                                ({"netns": "/proc/self/ns/net"}, 422), ({"netns": "/proc/self/ns/mnt"}, 422),
                                ({"netns": "/run/netns/none"}, 422), ({"pid": 4194303}, 422),
                                ({"name": "-x", "netns": netns}, 422), ({"name": "vethguardd", "netns": netns}, 422),
                                ({"name": "left-behind", "netns": netns}, 422),
                                *(({"interface": "up0", "addresses": [a]}, 422) for a in NOBODYS)):
            got, _, answer = self.daemon.call("POST", "/v1/sandboxes", {"policy": self.policy, **members})
            self.assertEqual(got, status, (members, answer))
            if "addresses" in members:
                self.assertIn("no sandbox can have the address", answer["detail"])
        self.assertEqual(len(self.state_files()["sandboxes"]), 1)
        self.assert_served()

    def test_the_environment_is_no_source(self):
        text = policy(READS, credentials="  api: {source: 'env:API_KEY', inject: bearer}\n")
        support.netns(self, self.name + "e")
        status, _, answer = self.daemon.call("POST", "/v1/sandboxes", {
            "netns": f"/run/netns/{self.name}e", "policy": support.LAB.write("env-source.yaml", text)})
        self.assertEqual(status, 422, answer)
        self.assertIn("env:", json.dumps(answer["diagnostics"]))

    def test_a_configuration_with_a_fault_is_not_the_callers(self):
        netns = support.netns(self, self.name + "c")
        with open(self.daemon.config) as f:
            good = f.read()
        with open(self.daemon.config, "w") as f:
            f.write(good + "nonsense: 1\n")
        for path, body in (("/v1/sandboxes", {"policy": self.policy, "netns": f"/run/netns/{netns}"}),
                           ("/v1/sandboxes/one/reload", {"policy": self.policy})):
            status, _, answer = self.daemon.call("POST", path, body)
            self.assertEqual(status, 500, answer)
            self.assertIn("the daemon's configuration", answer["detail"])
            self.assertIn("nonsense", json.dumps(answer["diagnostics"]))
        with open(self.daemon.config, "w") as f:
            f.write(good)
        self.assertEqual(self.daemon.call("POST", "/v1/sandboxes/one/reload")[0], 200)
        self.assert_served()

    def test_only_one_daemon(self):
        r = subprocess.run(self.daemon.argv(), capture_output=True, text=True, timeout=20 * SLOW)
        self.assertEqual(r.returncode, 125, r)
        self.assertIn("another vethguardd", r.stderr)
        self.assert_served()

    def test_configuration_is_looked_at(self):
        bad = support.LAB.write("bad-config.yaml", "nonsense: 1\n")
        for path, status in ((bad, 125), (self.daemon.config, 0)):
            r = subprocess.run([VETHGUARDD, "--check-config", "--config", path], capture_output=True, text=True)
            self.assertEqual(r.returncode, status, r)

    def test_what_a_configuration_names_is_looked_at(self):
        """Files that a sandbox would miss are faults; what would be taken without a word is told."""
        key = support.LAB.write("no-certificate.pem", "-----BEGIN PRIVATE KEY-----\n")
        for text, status, told in (("ca_files: [nope.pem]", 125, "nope.pem: No such file or directory"),
                                   (f"ca_files: [{key}]", 0, f"warning: PATH: CA file {key} holds no certificate in PEM"),
                                   ("egress: {proxy: 'http://p:3128', user: u, password_file: nope}", 125, "egress.password_file: "),
                                   ("audit_file: /nowhere/a.jsonl", 125, "audit_file /nowhere/a.jsonl: the directory /nowhere has to exist first"),
                                   ("egress: {interface: none0}", 0, "warning: PATH: egress.interface none0 is not there now ('ip -br link'"),
                                   ("permit: [0.0.0.0/0, 'fd00::/8']", 0, "warning: PATH: permit 0.0.0.0/0 is wider than a private range"),
                                   (f"audit_file: {support.LAB.dir}/a.jsonl", 0, "")):
            path = support.LAB.write("names.yaml", text + "\n")
            r = subprocess.run([VETHGUARDD, "--check-config", "--config", path], capture_output=True, text=True)
            self.assertEqual(r.returncode, status, r)
            self.assertIn(told.replace("PATH", path), r.stderr)
            self.assertEqual(r.stderr.count("warning"), int("warning" in told), r)

    def test_version(self):
        r = subprocess.run([VETHGUARDD, "--version"], capture_output=True, text=True)
        self.assertEqual((r.returncode, r.stderr), (0, ""), r)
        self.assertRegex(r.stdout, r"^vethguardd \d+\.\d+\.\d+\n$")

    def test_wrong_usage(self):
        for words, says in ((["--stat", "/x"], "unknown option --stat; did you mean --state?"), (["--state"], "--state needs a value: --state DIR"),
                            (["--state", "x"], "--state: the path has to be absolute"), (["start"], "it takes no arguments besides options"),
                            (["--run", "--verbose"], "--run takes no other option than -vv")):
            r = subprocess.run([VETHGUARDD, *words], capture_output=True, text=True, timeout=20 * SLOW)
            self.assertEqual((r.returncode, r.stdout), (125, ""), words)
            self.assertIn(says, r.stderr)


# Connects until somebody listens, and then waits for the answer.
WAITS = """
import socket, sys, time
end = time.monotonic() + float(sys.argv[1])
while time.monotonic() < end:
    try:
        s = socket.create_connection(("198.18.0.1", 3128), 1)
        break
    except OSError:
        time.sleep(0.001)
s.settimeout(float(sys.argv[1]))
s.sendall(b"GET http://other.lab.test/ HTTP/1.1\\r\\nHost: other.lab.test\\r\\n\\r\\n")
sys.stdout.write(s.recv(4096).decode().partition("\\r\\n")[0])
"""


class Many(Attached):
    def test_all_are_taken_over(self):
        """One after the other; a client that can connect to the daemon finds all of them."""
        names = [f"{self.name}-{i}" for i in range(6)]
        for name in names:
            support.netns(self, name)
            self.attach(name, name)
        self.daemon.kill()
        with open(os.path.join(self.daemon.state, "sandboxes", names[2] + ".json"), "w") as f:
            f.write("{")
        self.daemon.start()
        states = {s["name"]: s["state"] for s in self.daemon.call("GET", "/v1/sandboxes")[2]["sandboxes"]}
        self.assertEqual(set(states), {"one", *names})
        self.assertEqual(states.pop(names[2]), "failed")
        for name in names[:2] + names[3:]:
            self.assert_served(name, netns=name)
        self.assertFalse(self.asks(netns=names[2], seconds=2))

    def test_all_are_detached_at_once(self):
        """More than the kernel is asked to take away at a time. Each link is gone when its answer comes, and others are served meanwhile."""
        names = [f"{self.name}-{i}" for i in range(10)]
        for name in names:
            support.netns(self, name)
            self.attach(name, name)
        with concurrent.futures.ThreadPoolExecutor(len(names)) as pool:
            def detach(name):
                status, _, answer = self.daemon.call("DELETE", f"/v1/sandboxes/{name}")
                return status, "summary" in answer, "eth0" in support.sh("ip", "-n", name, "link")
            asked = pool.map(detach, names)
            self.assert_served()
            self.assertEqual(set(asked), {(200, True, False)}, self.daemon.stderr())
        self.assertEqual([s["name"] for s in self.daemon.call("GET", "/v1/sandboxes")[2]["sandboxes"]], ["one"])
        self.assertEqual([len(self.state_files()[d]) for d in ("sandboxes", "netns", "names")], [1, 1, 1])
        self.attach(names[0], names[0])
        self.assert_served(netns=names[0])

    def test_who_connects_meanwhile_waits(self):
        """Once its gate listens a connection is never refused, reset or forgotten: it is its sandbox's worker's."""
        names = [f"{self.name}-{i}" for i in range(6)]
        for name in names:
            support.netns(self, name)
            self.attach(name, name)
        self.daemon.kill()
        clients = [subprocess.Popen(["ip", "netns", "exec", name, support.PYTHON, "-c", WAITS, str(10 * SLOW)], text=True,
                                    stdout=subprocess.PIPE) for name in reversed(names)]
        self.daemon.start()
        for client in clients:
            self.assertRegex(client.communicate(timeout=20 * SLOW)[0], "^HTTP/1.1 403 ")
        self.assertTrue(wait_until(lambda: all(s["state"] == "serving" for s in
                                               self.daemon.call("GET", "/v1/sandboxes")[2]["sandboxes"]), 10 * SLOW))

    def test_ends_while_they_are_taken_over(self):
        for i in range(6):
            support.netns(self, f"{self.name}-{i}")
            self.attach(f"{self.name}-{i}", f"{self.name}-{i}")
        self.daemon.kill()
        with open(self.daemon.stderr_path, "ab") as err:
            self.daemon.process = subprocess.Popen(self.daemon.argv(), stdin=subprocess.DEVNULL, stdout=err, stderr=err)
        self.assertTrue(wait_until(lambda: descendants(self.daemon.process.pid), 10 * SLOW))
        self.assertEqual(self.daemon.stop(), 0, self.daemon.stderr())
        self.assertEqual(len(self.state_files()["sandboxes"]), 7)
        self.daemon.start()
        self.assert_served()


class Priority(Attached):
    """The scheduling policy of each role (sched(7))."""
    RAISED = os.SCHED_RR | os.SCHED_RESET_ON_FORK
    LEFT = {"vethguardd": RAISED, "vethguard-keepe": os.SCHED_OTHER, "vethguard-recor": os.SCHED_BATCH, "vethguard-worke": os.SCHED_OTHER}

    def make_daemon(self):
        return Daemon(options=["--verbose"])

    def schedulers(self):
        """{program: scheduling policies of its processes}."""
        found = {"vethguardd": {os.sched_getscheduler(self.daemon.process.pid)}}
        for pid, row in descendants(self.daemon.process.pid).items():
            with contextlib.suppress(ProcessLookupError):  # a worker that has just been told to end
                found.setdefault(row[0], set()).add(os.sched_getscheduler(pid) & ~os.SCHED_RESET_ON_FORK)
        return found

    def assert_left(self, daemons=RAISED):
        """In a moment: a process that has just been forked is called as the daemon, and says later that it is a batch process."""
        left = {name: {policy} for name, policy in (self.LEFT | {"vethguardd": daemons}).items()}
        found = wait_until(lambda: self.schedulers() == left, 2 * SLOW) and left
        self.assertEqual(found or self.schedulers(), left, self.daemon.stderr())

    def test_only_the_daemon_has_it(self):
        if "ordinary priority" in self.daemon.stderr():
            self.skipTest("nobody has such a priority on this machine")
        self.assert_left()
        for call in ("reload", "pause", "resume"):
            self.assertEqual(self.daemon.call("POST", f"/v1/sandboxes/one/{call}")[0], 200)
            self.assert_left()
        for role in ("keeper", "worker"):
            os.kill(self.pid(role), 9)
            self.assert_served(role)
            self.assert_left()

    def test_nobody_has_it_without_the_capability(self):
        self.daemon.stop()
        self.daemon.start(["setpriv", "--bounding-set", "-sys_nice", "--inh-caps", "-sys_nice", *self.daemon.argv()])
        self.assertIn("the daemon runs at ordinary priority (Operation not permitted)", self.daemon.stderr())
        self.assert_served()
        self.assert_left(daemons=os.SCHED_OTHER)
