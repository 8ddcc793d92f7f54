# SPDX-License-Identifier: Apache-2.0
"""`vethguard probe`: what it finds in a sandbox that is guarded, in one that a provider's filter fences, and where each way is open."""
import json
import os
import shutil
import subprocess
import sys
import time
import unittest

import lab
import support
from daemon_case import Attached
from support import PACE, SLOW, sh

SHELLS = {"dash": ["dash"], "bash": ["bash"], "busybox": ["busybox", "sh"]}
INNER4, INNER6 = "198.51.100.2", "2001:db8::2"
WORLD4, WORLD6, GATEWAY = "198.51.100.1", "2001:db8::1", "198.51.100.9"
METADATA = "169.254.169.254:80 [fd00:ec2::254]:80"
TCP = f"{WORLD4}:443 [{WORLD6}]:443"
# For each way and target of the probe, the rule that opens it in the world's filter.
OPENINGS = {
    ("tcp", f"{WORLD4}:443"): f"ip daddr {WORLD4} tcp dport 443",
    ("tcp6", f"[{WORLD6}]:443"): f"ip6 daddr {WORLD6} tcp dport 443",
    ("udp", f"{WORLD4}:123"): f"ip daddr {WORLD4} udp dport 123",
    ("dns", WORLD4): f"ip daddr {WORLD4} udp dport 53",
    ("dns6", WORLD6): f"ip6 daddr {WORLD6} udp dport 53",
    ("icmp", WORLD4): f"ip daddr {WORLD4} icmp type echo-request",
    ("icmp6", WORLD6): f"ip6 daddr {WORLD6} icmpv6 type echo-request",
    ("metadata", "169.254.169.254:80"): "ip daddr 169.254.169.254 tcp dport 80",
    ("metadata", "[fd00:ec2::254]:80"): "ip6 daddr fd00:ec2::254 tcp dport 80",
    ("api", f"{WORLD4}:8443"): f"ip daddr {WORLD4} tcp dport 8443",
}
TARGETS = ["--tcp", TCP, "--name", "known.test", "--udp", f"{WORLD4}:123", "--dns", f"{WORLD4} {WORLD6}", "--icmp", f"{WORLD4} {WORLD6}",
           "--metadata", METADATA, "--api", f"{WORLD4}:8443", "--gateway", f"{GATEWAY}:8443"]
START = 5  # seconds that a program may take to begin on a busy machine; where all answers or refuses, they cost nothing
NO_RESOLVERS = ["unshare", "-m", "sh", "-c", "mount --make-rprivate / && mount --bind /dev/null /etc/resolv.conf && exec dash"]
NOT_HERE = "name socket"  # of this host; the name has its own test


class Probed(unittest.TestCase):
    def script(self, *options):
        r = subprocess.run([lab.VETHGUARD, "probe", *options], capture_output=True, text=True, check=True)
        return r.stdout

    def probe(self, where, *options, shell=("sh",), path=None, env=None, seconds=1):
        """(exit status, answer) of the script inside of a namespace; path: the only folder of programs."""
        script = self.script("--json", "--timeout", str(seconds), "--limit", str(600), *options)
        variables = {"PATH": path or os.environ["PATH"], **(env or {})}
        r = subprocess.run(["ip", "netns", "exec", where, "env", "-i", *(f"{k}={v}" for k, v in variables.items()), *shell],
                           input=script, capture_output=True, text=True, timeout=90 * SLOW)
        self.assertEqual(r.stderr, "", (options, r))
        self.assertIn(r.returncode, (0, 1, 3), r)
        return r.returncode, json.loads(r.stdout)

    def settled(self, where, *options, seconds=1, **kw):
        """As probe(). If a program did not begin in time, again with more time, as the probe advises."""
        status, answer = self.probe(where, *options, seconds=seconds, **kw)
        if any("did not begin in time" in t["detail"] for t in answer["tries"]):
            status, answer = self.probe(where, *options, seconds=START, **kw)
        return status, answer

    @staticmethod
    def found(answer, *results):
        return {(t["way"], t["target"]) for t in answer["tries"] if t["result"] in results}

    def bare_path(self, *programs):
        """A folder of these alone: names of busybox's own, or paths."""
        folder = support.LAB.path(f"path-{time.monotonic_ns()}")
        os.mkdir(folder)
        for program in programs:
            os.symlink(program if "/" in program else "/bin/busybox", os.path.join(folder, os.path.basename(program)))
        return folder

    def assert_closed(self, answer, why=""):
        self.assertEqual((self.found(answer, "leaks", "unclear", "untried"), answer["verdict"]), (set(), "closed"), (why, answer))


class Script(Probed):
    def run_script(self, *options):
        return subprocess.run([os.path.join(lab.ROOT, "contrib/probe/probe.sh"), *options], capture_output=True, text=True, timeout=30 * SLOW)

    def test_usage(self):
        for options, words in ((("--nonsense",), "no option"), (("--tcp",), "needs a value"), (("--tcp", "$(id)"), "not a target"),
                               (("--tcp", "1.1.1.1"), "no port"), (("--udp", "a:b"), "no port"), (("--tcp", "a:1;id"), "not a target"),
                               (("--name", "a'b"), "not a target"), (("--name", "-rf"), "not a target"), (("--dns", "1.1.1.1 -x"), "not a target"),
                               (("--timeout", "0"), "seconds"), (("--timeout", "2s"), "seconds"), (("--limit", "99999"), "seconds"),
                               (("--limit", "-1"), "not a target"), (("--without", "all"), "no way"), (("x",), "no option"),
                               (("--api", "a:1\nb:2"), "not a target")):
            r = self.run_script(*options)
            self.assertEqual((r.returncode, r.stdout), (2, ""), (options, r))
            self.assertIn(words, r.stderr, options)
        r = self.run_script("--help")
        self.assertEqual((r.returncode, r.stderr), (0, ""))
        self.assertEqual(r.stdout, subprocess.run([lab.VETHGUARD, "probe", "--help"], capture_output=True, text=True, check=True).stdout)

    def test_command(self):
        with open(os.path.join(lab.ROOT, "contrib/probe/probe.sh")) as f:
            script = f.read()
        self.assertEqual(self.script(), script)
        self.assertEqual(self.script("--name", "it's", "--json"), "set -- '--name' 'it'\\''s' '--json'\n" + script)
        for word in ("--nonsense", "-x", "--", "--" + "x" * 100, "--tc"):
            r = subprocess.run([lab.VETHGUARD, "probe", word], capture_output=True, text=True)
            self.assertEqual((r.returncode, r.stdout), (2, ""), word)
            self.assertIn("no option", r.stderr)

    def test_without_an_interface(self):
        """Without an interface, sh alone suffices to say that nothing leads out."""
        where = support.netns(self, f"alone{time.monotonic_ns()}")
        for shell in SHELLS.values():
            shell = [shutil.which(shell[0]), *shell[1:]]
            status, answer = self.probe(where, "--without", NOT_HERE, shell=shell, path="/nowhere")
            self.assertEqual(status, 0, answer)
            self.assert_closed(answer)
            self.assertGreater(len(answer["tries"]), 10)


class World(Probed):
    """A sandbox behind a veth, and everything there is at its other end, behind a filter that drops what no rule opens."""

    def setUp(self):
        self.box, self.world = (support.netns(self, f"{n}{time.monotonic_ns()}") for n in ("box", "world"))
        for where in (self.box, self.world):  # addresses count at once
            sh("ip", "netns", "exec", where, "sh", "-c", "for kind in all default; do echo 0 > /proc/sys/net/ipv6/conf/$kind/accept_dad; done")
        sh("ip", "-n", self.box, "link", "add", "eth0", "type", "veth", "peer", "name", "eth0", "netns", self.world)
        for where, addresses in ((self.box, (INNER4 + "/24", INNER6 + "/64")),
                                 (self.world, (WORLD4 + "/24", GATEWAY + "/24", WORLD6 + "/64", "169.254.169.254/32", "fd00:ec2::254/128"))):
            for address in addresses:
                sh("ip", "-n", where, "addr", "add", address, "dev", "eth0", *(["nodad"] if ":" in address else []))
            for link in ("eth0", "lo"):
                sh("ip", "-n", where, "link", "set", link, "up")
        sh("ip", "-n", self.box, "route", "add", "default", "via", WORLD4)
        sh("ip", "-n", self.box, "-6", "route", "add", "default", "via", WORLD6)
        ready = support.LAB.path(f"world-{time.monotonic_ns()}")
        places = [f"{WORLD4}:{p}" for p in (443, 80, 8443, 7, 53, 123)] + [f"[{WORLD6}]:{p}" for p in (443, 53)]
        places += [f"{GATEWAY}:8443", "169.254.169.254:80", "[fd00:ec2::254]:80"]
        process = subprocess.Popen(["ip", "netns", "exec", self.world, sys.executable, os.path.join(support.HERE, "probe_world.py"), ready, *places])
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        self.assertTrue(support.wait_until(lambda: os.path.exists(ready)))
        for address in (WORLD4, WORLD6):  # neighbors are known before anything is tried
            self.assertTrue(support.wait_until(lambda a=address: self.connects(a)), address)

    def connects(self, address):
        return subprocess.run(["ip", "netns", "exec", self.box, "timeout", "2", "bash", "-c", f"exec 3<>/dev/tcp/{address}/443"],
                              stderr=subprocess.DEVNULL).returncode == 0

    def opens(self, *rules, drops=False):
        """Neighbors find each other; of the rest only this gets in. What is refused is answered at once, what is dropped never."""
        rules = (*rules, *([] if drops else ["reject"]))
        rules = "".join(f"add rule inet f in {rule}{'' if rule == 'reject' else ' accept'}\n" for rule in ("icmpv6 type { 133, 134, 135, 136 }", *rules))
        r = subprocess.run(["ip", "netns", "exec", self.world, "nft", "-f", "-"], text=True, capture_output=True,
                           input="add table inet f\nflush table inet f\nadd chain inet f in { type filter hook input priority 0; policy drop; }\n" + rules)
        self.assertEqual(r.returncode, 0, r.stderr)

    def test_filter(self):
        """As a provider has it: the gateway alone can be reached."""
        self.opens(f"ip daddr {GATEWAY} tcp dport 8443", drops=True)
        for name, shell in SHELLS.items():
            status, answer = self.settled(self.box, *TARGETS, "--without", NOT_HERE, shell=shell)
            self.assertEqual((status, self.found(answer, "reached")), (0, {("gateway", f"{GATEWAY}:8443")}), (name, answer))
            self.assert_closed(answer, name)
            self.assertLessEqual(set(OPENINGS), self.found(answer, "closed"), name)

    def test_each_way(self):
        """Each way that is open is found, and nothing else."""
        for i, (way, rule) in enumerate(OPENINGS.items()):
            self.opens(f"ip daddr {GATEWAY} tcp dport 8443", rule)
            shell = list(SHELLS.values())[i % len(SHELLS)]
            status, answer = self.settled(self.box, *TARGETS, "--without", NOT_HERE, shell=shell)
            self.assertEqual((status, self.found(answer, "leaks")), (1, {way}), (way, answer))
            self.assertEqual(answer["leaks"], 1)

    def test_everything(self):
        self.opens("meta l4proto { tcp, udp, icmp, icmpv6 }")
        for name, shell in SHELLS.items():
            status, answer = self.settled(self.box, *TARGETS, "--without", NOT_HERE, shell=shell)
            self.assertEqual(status, 1)
            self.assertLessEqual(set(OPENINGS), self.found(answer, "leaks"), (name, answer))

    def test_no_gateway(self):
        self.opens()
        status, answer = self.probe(self.box, *TARGETS, "--without", NOT_HERE)
        self.assertEqual((status, self.found(answer, "missed")), (1, {("gateway", f"{GATEWAY}:8443")}), answer)

    def test_a_server_that_says_nothing(self):
        self.opens("tcp dport 7")
        for tool in ("curl", "python3", "node", "bash", "nc", "wget"):
            status, answer = self.probe(self.box, "--tcp", f"{WORLD4}:7", "--tools", tool, "--without",
                                        "name udp dns icmp icmp6 dns6 metadata socket", seconds=START)
            self.assertEqual((status, self.found(answer, "unclear")), (3, {("tcp", f"{WORLD4}:7")}), (tool, answer))

    def test_every_program(self):
        """With each program alone, the probe finds the ways that this program can try, open and closed."""
        can = {"curl": {"tcp", "tcp6", "metadata", "api"}, "node": {"tcp", "tcp6", "metadata", "api", "udp", "dns", "dns6"},
               "python3": {"tcp", "tcp6", "metadata", "api", "udp", "dns", "dns6", "icmp", "icmp6"},
               "bash": {"tcp", "tcp6", "metadata", "api", "udp"}, "nc": {"tcp", "tcp6", "metadata", "api", "udp"},
               "wget": {"tcp", "tcp6", "metadata", "api"}, "dig": {"dns", "dns6"}}
        for opened in (True, False):
            self.opens(*(["meta l4proto { tcp, udp, icmp, icmpv6 }"] if opened else []))
            for tool, ways in can.items():
                status, answer = self.probe(self.box, *TARGETS[:-2], "--without", NOT_HERE, "--tools", tool, shell=NO_RESOLVERS, seconds=START)
                tried = {way for way in OPENINGS if way[0] in ways}
                self.assertLessEqual(tried, self.found(answer, "leaks" if opened else "closed"), (tool, opened, answer))
                self.assertLessEqual(set(OPENINGS) - tried, self.found(answer, "untried"), (tool, opened, answer))
                self.assertEqual(status, 1 if opened else 3 if set(OPENINGS) - tried else 0, tool)

    def test_busybox_alone(self):
        for tools, ways in ((("nc", "wc"), {"tcp", "tcp6", "metadata", "api"}), (("wget",), {"tcp", "tcp6", "metadata", "api"}),
                            (("nslookup",), {"dns", "dns6"}), (("ping", "ping6"), {"icmp", "icmp6"})):
            path = self.bare_path(*tools, "sleep", "date")
            for opened in (True, False):
                self.opens(*(["meta l4proto { tcp, udp, icmp, icmpv6 }"] if opened else []))
                status, answer = self.probe(self.box, *TARGETS[:-2], "--without", NOT_HERE, shell=["/bin/busybox", "sh"], path=path)
                tried = {way for way in OPENINGS if way[0] in ways}
                self.assertLessEqual(tried, self.found(answer, "leaks" if opened else "closed"), (tools, opened, answer))
                self.assertEqual(status, 1 if opened else 3, (tools, answer))

    def test_sh_alone(self):
        """With an interface and no program, the probe knows nothing and says so."""
        self.opens()
        for shell in SHELLS.values():
            if shell[0] == "busybox":
                continue  # it has its programs inside
            status, answer = self.probe(self.box, *TARGETS, "--without", NOT_HERE, "--tools", "none", shell=["/bin/" + shell[0]], path="/nowhere")
            self.assertEqual(status, 3)
            self.assertLessEqual(set(OPENINGS), self.found(answer, "untried"), answer)

    def test_time(self):
        """Programs that never end are ended, and the whole ends."""
        self.opens(drops=True)
        folder = self.bare_path("/bin/sleep", "/bin/date", "/bin/sh")
        with open(os.path.join(folder, "curl"), "w") as f:
            f.write("#!/bin/sh\nexec sleep 600\n")
        os.chmod(os.path.join(folder, "curl"), 0o755)
        begun = time.monotonic()
        status, answer = self.probe(self.box, "--tcp", " ".join(f"{WORLD4}:{p}" for p in range(1, 40)), "--without", "name udp dns dns6 icmp icmp6 socket",
                                    "--limit", "4", shell=["/bin/dash"], path=folder)
        self.assertEqual(status, 3)
        self.assertGreater(len(self.found(answer, "untried")), 20, answer)
        self.assertLess(time.monotonic() - begun, 300)  # 600 for one program that is not ended

    def test_a_program_that_does_not_begin(self):
        """A program that was ended before it began has tried nothing: no way is closed because of it."""
        self.opens("meta l4proto { tcp, udp }")
        for tool in ("python3", "node", "bash"):
            folder = self.bare_path("/bin/sleep", "/bin/date")
            with open(os.path.join(folder, tool), "w") as f:
                f.write("#!/bin/sh\nexec sleep 600\n")
            os.chmod(os.path.join(folder, tool), 0o755)
            status, answer = self.probe(self.box, "--tcp", f"{WORLD4}:443", "--udp", f"{WORLD4}:123", "--dns", WORLD4, "--tools", tool, "--without",
                                        "name icmp icmp6 metadata socket", shell=["/bin/dash"], path=folder)
            self.assertEqual(status, 3, answer)
            self.assertLessEqual({("tcp", f"{WORLD4}:443"), ("udp", f"{WORLD4}:123"), ("dns", WORLD4)}, self.found(answer, "untried"), (tool, answer))

    def test_proxy(self):
        """The proxy of the environment is asked once, and everything else goes without it."""
        self.opens(f"ip daddr {WORLD4} tcp dport 80")
        status, answer = self.probe(self.box, "--tcp", f"{WORLD4}:443", "--without", "name dns dns6 udp icmp icmp6 metadata socket",
                                    env={"https_proxy": f"http://{WORLD4}:80", "http_proxy": f"http://{WORLD4}:80"})
        self.assertEqual((status, self.found(answer, "leaks")), (1, {("proxy", "example.com:80")}), answer)

    def test_a_name(self):
        """It is resolved and connected to; a query for a new name is a way out though no such name is there."""
        self.opens("udp dport 53", "tcp dport { 80, 443 }")
        resolv = support.LAB.write(f"resolv-{time.monotonic_ns()}", f"nameserver {WORLD4}\n")
        mounted = ["sh", "-c", f"mount --make-rprivate / && mount --bind {resolv} /etc/resolv.conf && exec sh"]
        shell = ["unshare", "-m", *mounted]
        status, answer = self.probe(self.box, "--tcp", "", "--name", "other.test", "--dns", "", "--without", "udp icmp icmp6 metadata socket",
                                    "--tools", "python3", shell=shell)
        self.assertEqual((status, self.found(answer, "leaks")), (1, {("dns", WORLD4)}), answer)
        self.assertEqual(self.found(answer, "closed"), {("name", "other.test:443"), ("name", "other.test:80")})
        _, answer = self.probe(self.box, "--tcp", "", "--name", "first.known.test", "--dns", "", "--without", "udp icmp icmp6 metadata socket",
                               "--tools", "python3", shell=shell)
        self.assertEqual(self.found(answer, "leaks"), {("dns", WORLD4), ("name", "first.known.test:443"), ("name", "first.known.test:80")}, answer)


class Guarded(Attached, Probed):
    """Behind the guard every connection is accepted, and every name gets an address: what comes back is a refusal."""
    TARGETS = ["--tcp", f"{lab.ORIGIN4}:443 {lab.ORIGIN4}:80 [{lab.ORIGIN6}]:443", "--name", "evil.lab.test", "--udp", f"{lab.ORIGIN4}:123",
               "--dns", f"{lab.DNS4} {lab.DNS6}", "--icmp", f"{lab.ORIGIN4} {lab.ORIGIN6}", "--metadata", METADATA, "--api", "api.lab.test:443"]

    def mounted(self, shell):
        resolv = support.LAB.write(f"resolv-{time.monotonic_ns()}", "nameserver 198.18.0.1\n")
        return ["unshare", "-m", "sh", "-c", f"mount --make-rprivate / && mount --bind {resolv} /etc/resolv.conf && exec {' '.join(shell)}"]

    def test_nothing_leaks(self):
        self.assert_served()
        for name, shell in SHELLS.items():
            status, answer = self.settled(self.name, *self.TARGETS, "--without", "socket", shell=self.mounted(shell), seconds=PACE)
            self.assertEqual(status, 0, (name, answer))
            self.assert_closed(answer, name)
            self.assertIn(("tcp", f"{lab.ORIGIN4}:80"), self.found(answer, "refused"), answer)
            self.assertIn(("name", "evil.lab.test:443"), self.found(answer, "refused"), answer)
            self.assertIn(("dns", lab.DNS4), self.found(answer, "refused"), answer)

    def test_every_program(self):
        for tool in ("curl", "python3", "node", "bash", "nc", "wget"):
            status, answer = self.probe(self.name, *self.TARGETS, "--without", "socket icmp icmp6 udp", "--tools", tool + " dig", shell=self.mounted(["dash"]), seconds=PACE)
            self.assertEqual(self.found(answer, "leaks", "unclear"), set(), (tool, answer))
            self.assertIn(status, (0, 3))

    def test_what_the_policy_allows(self):
        """A proxy that lets a name pass is told: here it is one that the policy allows."""
        self.policy = self.write("http://plain.lab.test")
        self.assertEqual(self.daemon.call("POST", "/v1/sandboxes/one/reload", {"policy": self.policy})[0], 200)
        _, answer = self.probe(self.name, "--tcp", "", "--name", "plain.lab.test", "--dns", "", "--without", "udp icmp icmp6 metadata socket dns",
                               shell=self.mounted(["sh"]))
        self.assertEqual(self.found(answer, "leaks"), {("name", "plain.lab.test:80")}, answer)
