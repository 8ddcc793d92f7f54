# SPDX-License-Identifier: Apache-2.0
"""Roles that turned against the others (tests/hostile/): the real programs, jail and all, which at the moment in which
they are trusted try a forbidden call, break the protocol or lie in the shared memory. Each is stopped, the sandbox ends
closed with words that say why, and the others go on: the log is whole, nothing is left behind."""
import concurrent.futures
import json
import os
import re
import shutil
import socket
import subprocess
import unittest

import lab
import support
from credential_service import Service
from daemon import Daemon
from support import SLOW, Case, policy, wait_until

BIN = os.path.dirname(support.VETHGUARD)
HOSTILE = os.path.join(os.path.dirname(BIN), "tests", "hostile")
PROGRAMS = ("vethguard", "vethguardd", "vethguard-keeper", "vethguard-worker", "vethguard-recorder", "vethguard-fetch",
            "vethguard-token", "vethguard-gateway", "vethguard-quota")
API = policy("https://api.lab.test")
SIDE_BY_SIDE = 4

# Calls that end any role (SIGSYS), whatever its arguments are; then those that one role has and the others do not.
FOR_NOBODY = """execve execveat clone clone3 netlink unix socketpair vsock packet raw ping sctp mptcp alg bind listen
    openat2 open_by_handle_at memfd_create unlinkat getdents64 ptrace process_vm_readv pidfd_open pidfd_getfd kcmp kill tgkill
    rt_sigqueueinfo io_uring_setup bpf perf_event_open userfaultfd ftruncate pwrite64 setns unshare mount pivot_root chroot
    keyctl add_key seccomp setuid capset setrlimit pkey_mprotect personality""".split()
WITH_ARGUMENTS = ["mmap exec", "mprotect exec", "fcntl setown", "fcntl blocking", "fcntl add seals", "ioctl tiocsti",
                  "ioctl fionbio"]
# The sanitizers' run-time opens files: there these are refused, everywhere else they kill.
NOT_SANITIZED = ["openat", "prctl dumpable"]
KILLS = {
    "worker": ["setsockopt raw", "setsockopt linger", "mark", "fast open", "fdatasync"],
    "keeper": ["tcp", "udp", "connect", "accept4", "setsockopt raw", "setsockopt linger", "splice", "fdatasync"],
    "recorder": ["tcp", "udp", "connect", "accept4", "setsockopt raw", "splice"],
}
# vethguard-fetch: libraries ask for what is refused with an error, and it may speak TCP and UDP, like a worker.
KILLS_FETCH = ["accept4", "splice", "setsockopt raw", "setsockopt linger", "mark", "fast open", "fdatasync"]
REFUSED_FETCH = {"stat path": "ENOENT", "openat": "EACCES", "socketpair": "EACCES", "connect 8081": "EACCES", "connect 22": "EACCES",
                 "map for writing": "EPERM"}
KILLS_GATEWAY = ["tcp", "udp", "connect", "splice", "setsockopt raw", "setsockopt linger", "fdatasync"]
# The calls that a check under sanitizers tries: its list of permitted calls is a little longer, the mechanism is the same.
A_FEW = {"execve", "netlink", "ptrace", "mmap exec", "tcp", "connect"}
REFUSED = {
    "worker": {"stat path": "ENOENT", "connect 8081": "EACCES", "connect 22": "EACCES", "map for writing": "EPERM"},
    "keeper": {"stat path": "ENOENT", "map for writing": "EPERM"},
    "recorder": {"stat path": "ENOENT", "map for writing": "EPERM", "overwrite log": "EBADF"},
}
# Messages that break the protocol for every role.
WRONG = ["cut head", "cut body", "unknown", "zero", "other way", "not asked", "of another", "trailing", "oversized", "one fd",
         "many fds"]
WRONG_OF = {
    "worker": ["ready again", "failed flood", "reach beyond", "reach flood", "call flood", "associate end", "associate flood"],
    "keeper": ["root of nobody"],
    "recorder": ["recorder ready", "taken ahead", "summary ahead"],
}
WRONG_OF_GATEWAY = ["gateway ready", "cut enter", "enter flood", "guess flood", "token flood",
                    "hand over no client", "hand over nothing", "guess with descriptor"]


class Hostile(Case):
    """A folder per session: the programs as they are, one of them hostile, and the file that says what it does."""
    count = 0

    @classmethod
    def setUpClass(cls):
        cls.folder = support.LAB.path("hostile")
        os.makedirs(cls.folder, exist_ok=True)
        for name in PROGRAMS:
            if not os.path.exists(f"{cls.folder}/{name}"):
                shutil.copy(os.path.join(BIN, name), f"{cls.folder}/{name}")
        for role in (*KILLS, "fetch", "gateway"):
            if not os.path.exists(f"{cls.folder}/hostile-{role}"):
                shutil.copy(f"{HOSTILE}/vethguard-{role}", f"{cls.folder}/hostile-{role}")

    def programs(self, role, *misdeeds):
        Hostile.count += 1
        folder = f"{self.folder}/{Hostile.count}"
        os.mkdir(folder)
        for name in PROGRAMS:
            os.link(f"{self.folder}/" + ("hostile-" + role if name == "vethguard-" + role else name), f"{folder}/{name}")
        with open(folder + "/misdeed", "w") as f:
            f.write("\n".join(misdeeds))
        return folder

    def commit(self, role, *misdeeds, command=("sleep", "20"), text=API, config=None):
        """A session whose role does this. (exit status, standard error, audit file)."""
        folder = self.programs(role, *misdeeds)
        with open(folder + "/policy.yaml", "w") as f:
            f.write(text)
        r = subprocess.run([folder + "/vethguard", "run", "--policy", folder + "/policy.yaml", "--config",
                            config or support.LAB.path("config.yaml"), "--audit", folder + "/audit.jsonl", "--", *command],
                           capture_output=True, text=True, timeout=60 * SLOW, stdin=subprocess.DEVNULL, cwd=folder)
        self.assertNotRegex(r.stderr, support.REPORT)
        return r.returncode, r.stderr, folder + "/audit.jsonl"

    def each(self, role, misdeeds, check):
        """check(misdeed, *outcome of a session) for all of them, side by side."""
        with concurrent.futures.ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
            for misdeed, outcome in zip(misdeeds, pool.map(lambda m: self.commit(role, m), misdeeds)):
                with self.subTest(role=role, misdeed=misdeed):
                    check(misdeed, *outcome)

    def results(self, stderr):
        return dict(re.findall(r"misdeed ([^:\n]+): (\w+)", stderr))

    def assert_recorded(self, audit, *words):
        """The log holds the session from its start to its end, with a finding of these words."""
        r = subprocess.run([support.VETHGUARD, "audit", "verify", audit], capture_output=True, text=True)
        self.assertEqual(r.returncode, 0, r)
        with open(audit) as f:
            events = [json.loads(line) for line in f]
        texts = [json.dumps(e) for e in events if e["class_uid"] == support.FINDING]
        for word in words:
            self.assertTrue(any(word in t for t in texts), f"no finding says {word!r}: {texts}")
        self.assertEqual(events[-1]["class_uid"], support.LIFECYCLE, events[-1])


class Calls(Hostile):
    def all_kill(self, role):
        calls = FOR_NOBODY + WITH_ARGUMENTS + NOT_SANITIZED + KILLS[role]
        if support.ASAN:
            calls = [c for c in calls if c in A_FEW and (role != "worker" or c not in ("tcp", "connect"))]

        def check(call, status, stderr, audit):
            self.assertEqual(status, 125, stderr)
            self.assertIn(f"the {role}", stderr)
            self.assertIn("died (signal 31)", stderr)
            self.assertIn("cut off from every network", stderr)
            self.assertNotIn("misdeed", stderr, "the call came back")
            if role == "worker" or role == "keeper" and os.path.exists(audit):  # a keeper may die before the session names its log
                self.assert_recorded(audit, "signal 31")

        self.each(role, calls, check)

    def test_worker(self):
        self.all_kill("worker")

    def test_keeper(self):
        self.all_kill("keeper")

    def test_recorder(self):
        self.all_kill("recorder")

    def test_refused(self):
        """Calls that a role needs, with arguments that it must not use: refused, and it lives."""
        for role, expected in REFUSED.items():
            with self.subTest(role):
                status, stderr, audit = self.commit(role, *expected, command=("true",))
                self.assertEqual(self.results(stderr), expected, stderr)
                self.assertEqual(status, 0, stderr)
                self.assert_recorded(audit)

    def test_a_worker_with_a_source_address_binds_no_port_of_choice(self):
        config = support.LAB.write("bound.yaml", "egress: {address: 10.99.0.1}\n")
        status, stderr, _ = self.commit("worker", "bind 4444", command=("true",), config=config)
        self.assertEqual((status, self.results(stderr)), (0, {"bind 4444": "EACCES"}), stderr)


class Fetch(Hostile):
    """vethguard-fetch, when it has the value and would hand it over. It is not there for `doctor --roles`, because it lives as long
    as one question. Its death costs one request, whose sandbox goes on."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.service = support.in_namespace("outside", lambda: Service(lab.ORIGIN4, 8447, support.LAB.dir))
        key = support.LAB.write("jail-client-secret", "client:secret&0123456789\n", 0o600)
        cls.text = policy("{to: 'https://api.lab.test', credential: api}", credentials="  api: {inject: bearer, source: {oauth2: {token_url: "
                          f"'https://login.wild.lab.test:8447/oauth/token', client_id: agent one, client_secret: 'file:{key}'}}}}}}\n")

    @classmethod
    def tearDownClass(cls):
        cls.service.close()
        super().tearDownClass()

    def fetches(self, *misdeeds):
        """Standard error, with the status of a request for which a credential is fetched."""
        status, stderr, _ = self.commit("fetch", *misdeeds, text=self.text, command=(
            "sh", "-c", "code=$(curl -sS -o /dev/null -w '%{http_code}' https://api.lab.test/hostile); echo \"status $code\" >&2"))
        self.assertEqual(status, 0, stderr)
        return stderr

    def test_calls(self):
        calls = [c for c in FOR_NOBODY if c != "socketpair"] + WITH_ARGUMENTS + ["prctl dumpable"] + KILLS_FETCH
        if support.ASAN:
            calls = [c for c in calls if c in A_FEW]
        with concurrent.futures.ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
            for call, stderr in zip(calls, pool.map(self.fetches, calls)):
                with self.subTest(call=call):
                    self.assertIn("vethguard-fetch died (signal 31)", stderr)
                    self.assertNotIn("misdeed", stderr, "the call came back")
                    self.assertIn("status 502", stderr)

    def test_refused(self):
        stderr = self.fetches(*REFUSED_FETCH)
        self.assertEqual(self.results(stderr), REFUSED_FETCH, stderr)
        self.assertIn("status 200", stderr)

    def test_words(self):
        with concurrent.futures.ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
            for wrong, stderr in zip(WRONG, pool.map(self.fetches, WRONG)):
                with self.subTest(wrong=wrong):
                    self.assertRegex(stderr, "vethguard-fetch was killed: it (broke the protocol|sent too many messages)")
                    self.assertIn("status 502", stderr)

    def test_what_it_is(self):
        """The kernel's own word of a fetch that waits for its service."""
        path = support.LAB.write("jail-slow.yaml", self.text.replace("/oauth/token", "/slow"))
        run = subprocess.Popen([support.VETHGUARD, "run", "--policy", path, "--config", support.LAB.path("config.yaml"), "--", "curl", "-sS", "-m",
                                "60", "https://api.lab.test/"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
        self.addCleanup(run.wait)
        self.addCleanup(run.terminate)

        def fetch():
            return [p for p in support.descendants(run.pid) if support.process_row(p) and open(f"/proc/{p}/comm").read() == "vethguard-fetch\n"]

        def confined():
            return any("Seccomp:\t2" in open(f"/proc/{p}/status").read() for p in fetch())
        self.assertTrue(support.wait_until(confined))
        pid, = fetch()
        with open(f"/proc/{pid}/status") as f:
            told = dict(line.rstrip("\n").split(":\t", 1) for line in f if ":\t" in line)
        self.assertEqual([told[n] for n in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")], ["0" * 16] * 5)
        self.assertEqual((told["NoNewPrivs"], told["Seccomp"], told["Groups"].strip()), ("1", "2", ""))
        self.assertEqual(len(set(told["Uid"].split())), 1)
        self.assertNotEqual(told["Uid"].split()[0], "0")
        self.assertEqual(os.listdir(f"/proc/{pid}/root"), [])
        with open(f"/proc/{pid}/limits") as f:
            limits = {line[:26].strip(): line[26:].split()[:2] for line in f}
        self.assertEqual(limits["Max core file size"], ["0", "0"])
        self.assertEqual(os.stat(f"/proc/{pid}/mem").st_uid, 0, "another of its user may read its memory")
        if not support.ASAN:
            self.assertEqual(limits["Max data size"], [str(128 << 20)] * 2)
        for space in ("mnt", "ipc", "uts"):
            self.assertNotEqual(os.readlink(f"/proc/{pid}/ns/{space}"), os.readlink(f"/proc/self/ns/{space}"))
        with open(f"/proc/{pid}/environ") as f:
            self.assertNotIn("PROXY", f.read().upper())
        with open(f"/proc/{pid}/cmdline") as f:
            self.assertEqual(f.read().rstrip("\0"), "vethguard-fetch")


class Gateway(Hostile):
    """vethguard-gateway, when it accepts. Another one follows each that dies, as hostile; sessions are served for everybody else, here
    for a sandbox with a link."""

    def of(self, *misdeeds):
        """What check() returns of a daemon with such a gateway, and all that it said."""
        folder = self.programs("gateway", *misdeeds)
        port = 20000 + int(os.path.basename(folder))
        daemon = Daemon(config=f"gateway: {{listen_plain: '127.0.0.1:{port}'}}\n", program=folder + "/vethguardd")
        try:
            policy_path = support.LAB.write(f"hostile-{port}.yaml", API)
            token = daemon.call("POST", "/v1/sessions", {"name": "one", "policy": policy_path})[2]["token"]
            wait_until(lambda: "The gateway " in daemon.stderr() or daemon.stderr().count("misdeed") >= len(misdeeds), 1 if "deaf" in misdeeds else 10 * SLOW)
            session = daemon.call("GET", "/v1/sandboxes/one")[2]
            r = subprocess.run(["curl", "-sS", "-m", "2", "-o", "/dev/null", "-w", "%{http_connect}", "-k", "--proxy", f"http://127.0.0.1:{port}",
                                "--proxy-user", "x:" + token, "https://api.lab.test/"], capture_output=True, text=True)
            findings = len([e for e in daemon.events(support.FINDING) if "guessed-tokens" in json.dumps(e)])
            status = daemon.stop()
        finally:
            daemon.end()
        self.assertEqual((session["state"], session["worker"]["restarts"], status), ("serving", 0, 0), daemon.stderr())
        return daemon.stderr(), r.stdout, findings

    def each_of(self, misdeeds):
        with concurrent.futures.ThreadPoolExecutor(SIDE_BY_SIDE) as pool:
            yield from zip(misdeeds, pool.map(self.of, misdeeds))

    def test_calls(self):
        calls = FOR_NOBODY + WITH_ARGUMENTS + NOT_SANITIZED + KILLS_GATEWAY
        for call, (stderr, _, _) in self.each_of([c for c in calls if not support.ASAN or c in A_FEW]):
            with self.subTest(call=call):
                self.assertIn("The gateway died (signal 31)", stderr)
                self.assertNotIn("misdeed", stderr, "the call came back")

    def test_refused(self):
        refused = {"stat path": "ENOENT", "map for writing": "EPERM"}
        stderr, code, _ = self.of(*refused)
        self.assertEqual((self.results(stderr), code), (refused, "200"), stderr)
        self.assertNotIn("The gateway ", stderr)

    def test_words(self):
        for wrong, (stderr, _, findings) in self.each_of(WRONG + WRONG_OF_GATEWAY):
            with self.subTest(wrong=wrong):
                # No room for the answers, which the role does not read.
                self.assertRegex(stderr, r"The gateway was killed: (it broke the protocol|it sent too many messages|No buffer space)")
                self.assertLess(findings, 50)

    def test_what_harms_nobody(self):
        """Refused or dropped: the role goes on serving."""
        stderr, code, findings = self.of("enter nobody", "guess many", "tokens invented")
        self.assertEqual(code, "200", stderr)
        self.assertNotIn("The gateway ", stderr)
        self.assertTrue(10 <= findings <= 50, findings)

    def test_deaf(self):
        """No session gets in, and the daemon ends all the same."""
        stderr, code, _ = self.of("deaf")
        self.assertNotEqual(code, "200", stderr)


class Words(Hostile):
    def all_cut_off(self, role, wrong, said):
        def check(_, status, stderr, audit):
            self.assertEqual(status, 125, stderr)
            self.assertRegex(stderr, f"the {role} was killed: {said}; the sandbox is cut off from every network")
            # If the recorder is hostile, its equally hostile successor has to write the end; a keeper may die before the run names its log.
            if role == "worker" or role == "keeper" and os.path.exists(audit):
                self.assert_recorded(audit, "was killed")

        self.each(role, wrong, check)

    def test_worker(self):
        self.all_cut_off("worker", WRONG + WRONG_OF["worker"], "it (broke the protocol|sent too many messages)")

    def test_keeper(self):
        self.all_cut_off("keeper", WRONG + WRONG_OF["keeper"], "it broke the protocol")

    def test_recorder(self):
        """Its lies end it, and a second one writes what is left; nobody is guarded by the second."""
        self.all_cut_off("recorder", WRONG + WRONG_OF["recorder"], "it broke the protocol")

    def test_a_worker_to_the_keeper(self):
        """The keeper ends that pair and serves on; the worker, which needs it, ends with its sandbox."""
        def check(misdeed, status, stderr, audit):
            self.assertEqual(status, 125, stderr)
            self.assertNotIn("the keeper died", stderr)
            self.assertNotIn("the keeper was killed", stderr)
            self.assertIn("the worker was killed: it broke the protocol with the keeper", stderr)
            self.assert_recorded(audit, "the worker")

        self.each("worker", ["keeper " + w for w in WRONG] + ["ask beyond", "ask flood"], check)

    def test_nothing(self):
        """An empty datagram is the end of a conversation."""
        for role in KILLS:
            with self.subTest(role):
                status, stderr, _ = self.commit(role, "nothing")
                self.assertEqual(status, 125, stderr)
                self.assertIn(f"the {role}", stderr)

    def test_questions_of_the_keeper_for_nobody(self):
        """Answered with a refusal: a sandbox may just have ended."""
        status, stderr, audit = self.commit("keeper", "source of nobody", "source beyond", command=("true",))
        self.assertEqual(status, 0, stderr)
        self.assert_recorded(audit)

    def test_a_recorder_that_stalls_and_flows_without_end(self):
        """Nothing is open meanwhile, and the session ends when its command does."""
        status, stderr, _ = self.commit("recorder", "stall flood", command=("true",))
        self.assertIn(status, (0, 125), stderr)
        self.assertLess(stderr.count("the audit log cannot be written"), 5)

    def test_a_deaf_worker(self):
        """It does not hold up the run: it is killed when its time is over (robustness.Frozen has the others)."""
        status, stderr, audit = self.commit("worker", "deaf", command=("true",))
        self.assertEqual(status, 0, stderr)
        self.assert_recorded(audit)

    def test_ring(self):
        """False records of the worker end its sandbox, not the recorder."""
        def check(_, status, stderr, audit):
            self.assertEqual(status, 125, stderr)
            self.assertNotIn("the recorder died", stderr)
            self.assertNotIn("the recorder was killed", stderr)
            self.assert_recorded(audit)

        self.each("worker", ["ring garbage", "ring zeroes", "ring ahead", "ring back"], check)


class Told(Hostile):
    """`vethguard doctor --roles`: what each role says of its confinement, and the kernel of it."""
    def ask(self, *options, folder=BIN, prefix=()):
        r = subprocess.run([*prefix, folder + "/vethguard", "doctor", "--roles", *options], capture_output=True, text=True,
                           timeout=60 * SLOW, stdin=subprocess.DEVNULL, cwd="/")
        self.assertNotRegex(r.stderr, support.REPORT)
        return r

    def roles(self, *options, status=0, **kw):
        r = self.ask("--json", *options, **kw)
        self.assertEqual(r.returncode, status, r)
        told = json.loads(r.stdout)
        self.assertEqual(told["sound"], status == 0, r)
        return {role["role"].split()[1]: {f["name"]: (f["value"], f["verdict"]) for f in role["facts"]} for role in told["roles"]}

    def test_each_role_tells_the_truth(self):
        roles = self.roles()
        self.assertEqual(set(roles), {"supervisor", "keeper", "recorder", "worker"})
        for name in ("keeper", "recorder", "worker"):
            with self.subTest(name):
                facts = roles[name]
                for cap in ("inheritable", "permitted", "effective", "bounding", "ambient"):
                    self.assertEqual(facts["cap_" + cap], ("0" * 16, "agreed"))
                for fact, value in (("no_new_privs", "1"), ("seccomp", "filter"), ("root", "empty, read-only"),
                                    ("core_limit", "0"), ("groups", "0")):
                    self.assertEqual(facts[fact], (value, "agreed"), fact)
                self.assertNotEqual(facts["uid"][0], "0")
                for space in ("mnt", "ipc", "uts"):
                    self.assertNotEqual(facts["ns_" + space][0], roles["supervisor"]["ns_" + space][0])
                claimed = {n for n, (_, verdict) in facts.items() if verdict == "claimed"}
                self.assertLessEqual(claimed, {"dumpable", "seccomp_calls", "landlock_abi", "landlock_paths", "landlock_bind",
                                               "landlock_connect", "landlock_probe"})
        self.assertEqual(len({roles[r]["uid"] for r in roles}), 4)

    def test_the_ports_are_those_of_the_policy(self):
        path = support.LAB.write("ports.yaml", policy("https://api.lab.test:8443", "tcp://api.lab.test:6379"))
        roles = self.roles("--policy", path)
        if int(roles["worker"]["landlock_abi"][0]) < 4:
            self.skipTest("this kernel's Landlock knows no ports")
        self.assertEqual(set(roles["worker"]["landlock_connect"][0].split()), {"8443", "6379", "53"})
        self.assertEqual(roles["worker"]["landlock_probe"][0], "port 1 refused")
        self.assertEqual(roles["worker"]["landlock_bind"][0], "none")
        for role in ("keeper", "recorder"):
            self.assertEqual(roles[role]["landlock_connect"][0], "none")

    def test_without_root(self):
        roles = self.roles(prefix=["setpriv", "--reuid", "1000", "--regid", "1000", "--clear-groups"])
        for name in ("keeper", "recorder", "worker"):
            self.assertEqual(roles[name]["cap_effective"], ("0" * 16, "agreed"))
            self.assertEqual(roles[name]["seccomp"], ("filter", "agreed"))

    def test_a_role_that_lies(self):
        for role in KILLS:
            with self.subTest(role):
                facts = self.roles(folder=self.programs(role, "lie"), status=1)[role]
                self.assertEqual(facts["uid"][1], "differs")
                self.assertEqual([n for n, f in facts.items() if f[1] not in ("agreed", "claimed")], ["uid"])

    def test_a_role_that_says_nothing_of_it(self):
        for role in KILLS:
            with self.subTest(role):
                facts = self.roles(folder=self.programs(role, "lie by silence"), status=1)[role]
                self.assertEqual(facts.pop("all"), ("well", "claimed"))
                self.assertLessEqual({"uid", "cap_effective", "seccomp", "root", "dumpable", "landlock_abi"}, set(facts))
                self.assertEqual({verdict for _, verdict in facts.values()}, {"differs", "weak"})

    def test_a_role_that_writes_to_the_terminal(self):
        folder = self.programs("worker", "lie in colour")
        r = self.ask(folder=folder)
        self.assertRegex(r.stdout, r'(?m)^  \\x1b\[31mso" +\\x1b\]0;owned\\x07" +its own word$')
        self.assertNotIn("\x1b", r.stdout)
        self.assertEqual(self.roles(folder=folder)["worker"][r'\x1b[31mso"'], (r'\x1b]0;owned\x07"', "claimed"))

    def test_those_of_very_many_sandboxes(self):
        """What a daemon with 1,500 of them may answer is told whole, as JSON too."""
        path, line = support.LAB.path("many.sock"), "a_name: " + "x" * 40 + "\n"
        roles = [{"role": f"the worker of box-{i}", "pid": os.getpid(), "text": line * 40} for i in range(1500)]
        body = json.dumps({"roles": roles}).encode()

        def answer(server):
            for _ in range(2):
                with server.accept()[0] as s:
                    while not s.recv(65536).endswith(b"\r\n\r\n"):
                        pass
                    s.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body) + body)

        with socket.socket(socket.AF_UNIX) as server, concurrent.futures.ThreadPoolExecutor(1) as pool:
            server.bind(path)
            server.listen()
            server.settimeout(60 * SLOW)
            served = pool.submit(answer, server)
            told = json.loads(self.ask("--json", "--socket", path).stdout)
            self.assertEqual((len(told["roles"]), told["sound"]), (1500, False))
            self.assertEqual({sum(f["name"] == "a_name" for f in role["facts"]) for role in told["roles"]}, {40})
            self.assertEqual(self.ask("--socket", path).stdout.count("a_name"), 1500 * 40)
            served.result()

    def test_a_role_that_does_not_answer(self):
        r = self.ask(folder=self.programs("worker", "deaf"))
        self.assertEqual(r.returncode, 1, r)
        self.assertRegex(r.stdout, r"the worker of doctor \(process \d+\): no answer")
        self.assertIn("NOT every role is confined", r.stdout)

    def test_text_and_usage(self):
        r = self.ask()
        self.assertEqual(r.returncode, 0, r)
        self.assertRegex(r.stdout, r"(?m)^  seccomp +filter +kernel agrees$")
        self.assertTrue(r.stdout.endswith("\nEach role is confined as it should be.\n"), r.stdout)
        for words in (["--config", "/dev/null"], ["word"]):
            self.assertEqual(self.ask(*words).returncode, 2)
        r = subprocess.run([support.VETHGUARD, "doctor", "--policy", "/dev/null"], capture_output=True, text=True)
        self.assertEqual(r.returncode, 2, r)
        r = self.ask("--policy", "/nonexistent")
        self.assertEqual(r.returncode, 1, r)
        self.assertIn("/nonexistent", r.stderr)


@unittest.skipIf(support.ASAN, "the sanitizers bring calls and libraries of their own, and the loader's protection is not theirs")
class Binaries(unittest.TestCase):
    """A role cannot call what it does not link, whatever else fails."""
    LIBRARIES = {
        "worker": {"libnghttp2", "libseccomp", "libevent-2.1", "libssl", "libcrypto", "libz", "libbrotlidec", "libzstd", "libc"},
        "keeper": {"libseccomp", "libevent-2.1", "libssl", "libcrypto", "libc"},
        "recorder": {"libseccomp", "libevent-2.1", "libcrypto", "libc"},
        "gateway": {"libnghttp2", "libseccomp", "libevent-2.1", "libssl", "libcrypto", "libc"},
        "quota": {"libhiredis", "libseccomp", "libevent-2.1", "libssl", "libcrypto", "libc"},
    }
    # Functions of libc that start a program, open a way out or reach into another process.
    REACH = re.compile(r"^(v?fork|clone|exec\w+|fexecve|posix_spawn\w*|system|popen|dlopen|ptrace|process_vm_\w+|kill|tgkill|"
                       r"pidfd_\w+|socket|connect|bind|listen|accept4?|getaddrinfo|gethostby\w+|res_\w+|setns|fopen\w*|"
                       r"io_uring_\w+|shm_open|mq_open)$")
    REACHES = {"worker": {"socket", "connect", "bind", "accept4"}, "keeper": set(), "recorder": set(), "gateway": {"accept4"}, "quota": {"socket", "connect"}}

    def tool(self, *argv):
        return subprocess.run(argv, capture_output=True, text=True, check=True).stdout

    def test_libraries_of_the_roles(self):
        for role, allowed in self.LIBRARIES.items():
            with self.subTest(role):
                text = self.tool("readelf", "-dW", f"{BIN}/vethguard-{role}")
                needed = {n.split(".so")[0] for n in re.findall(r"\(NEEDED\).*\[(.+)\]", text)}
                self.assertLessEqual(needed, allowed)
                self.assertLessEqual(allowed, needed)
                self.assertNotRegex(text, "RPATH|RUNPATH|TEXTREL")

    def test_functions_of_the_roles(self):
        for role, allowed in self.REACHES.items():
            with self.subTest(role):
                imported = set(re.findall(r" U (\w+)@", self.tool("nm", "-D", f"{BIN}/vethguard-{role}")))
                self.assertIn("recvmsg", imported)
                self.assertEqual({f for f in imported if self.REACH.match(f)}, allowed)

    def test_no_netlink_in_the_roles(self):
        pattern = re.compile(r"\b((?:mnl|nftnl|netlink|fence|nft)_\w+)")
        self.assertTrue(pattern.search(self.tool("nm", f"{BIN}/vethguardd")), "the supervisor has them")
        for role in self.LIBRARIES:
            self.assertEqual(pattern.findall(self.tool("nm", f"{BIN}/vethguard-{role}")), [], role)

    def test_hardening(self):
        """Position independent, relocations read-only from the start, no executable stack, stack protector, fortified."""
        for name in PROGRAMS:
            with self.subTest(name):
                self.assertIn("DYN (Position-Independent", self.tool("readelf", "-hW", f"{BIN}/{name}"))
                self.assertRegex(self.tool("readelf", "-dW", f"{BIN}/{name}"), r"Flags: .*NOW.* PIE")
                segments = self.tool("readelf", "-lW", f"{BIN}/{name}")
                self.assertRegex(segments, r"GNU_STACK .* RW +0x")
                self.assertIn("GNU_RELRO", segments)
                self.assertNotRegex(segments, r"LOAD .* RWE ")
                symbols = self.tool("nm", "-D", f"{BIN}/{name}")
                self.assertIn("__stack_chk_fail", symbols)
                self.assertRegex(symbols, r"__\w+_chk@")


if __name__ == "__main__":
    unittest.main()
