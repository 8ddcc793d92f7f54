# SPDX-License-Identifier: Apache-2.0
"""A floor bounds every policy of a machine: what the floor takes away, what its infrastructure rules allow whatever a policy says, and that
nothing starts with a floor that cannot be used or trusted."""
import contextlib
import os
import shutil
import socket
import subprocess

import support
from daemon import Daemon
from daemon_case import Attached
from support import HTTP, SLOW, VETHGUARD, Case, policy, sh, wait_until

ETC = "/etc/vethguard"
USUAL = f"{ETC}/floor.yaml"
HEAD = "vethguard: 1\n"
READS = HEAD + "allow: [{to: 'https://api.lab.test', methods: [GET, HEAD]}]\n"
WIDE = policy("https://*.lab.test")


def setUpModule():
    """The lab has mounts of its own, so nothing outside of the lab sees its floors."""
    os.makedirs(ETC, exist_ok=True)
    sh("mount", "-t", "tmpfs", "-o", "mode=755", "floor", ETC)


def tearDownModule():
    sh("umount", ETC)


def write(path, text, mode=0o644, owner=0):
    with open(path, "w") as f:
        f.write(text)
    os.chown(path, owner, owner)
    os.chmod(path, mode)
    return path


class Floor(Case):
    def tearDown(self):
        super().tearDown()
        for name in os.listdir(ETC):
            os.chown(os.path.join(ETC, name), 0, 0)
            os.unlink(os.path.join(ETC, name))
        os.chmod(ETC, 0o755)

    def status(self, box, *argv):
        return box.run("curl", "-sS", "-o", "/dev/null", "-m", "10", "-w", "%{http_code}", *argv).out

    def test_narrows_each_policy(self):
        write(USUAL, READS)
        box = self.sandbox(WIDE)
        self.assertEqual(self.status(box, "https://api.lab.test/"), "200")
        self.assertEqual(self.status(box, "-d", "x", "https://api.lab.test/"), "403")
        self.assertEqual(self.status(box, "https://other.lab.test/"), "403")
        told = box.run("curl", "-sS", "-d", "x", "https://api.lab.test/").out
        self.assertIn("floor refuses this to every sandbox", told)
        event = box.event(HTTP, status_code="floor")
        self.assertNotIn("firewall_rule", event)

    def test_no_policy_allows_what_it_denies(self):
        write(USUAL, HEAD + "deny: [{name: never, to: api.lab.test, paths: [/secret/**], reason: Not here.}]\n")
        for options in ((), ("--observe",)):
            box = self.sandbox(WIDE, options=options)
            self.assertEqual(self.status(box, "https://api.lab.test/"), "200")
            for path in ("/secret/x", "/Secret//x", "/secret%2Fx"):
                self.assertEqual(self.status(box, "--path-as-is", f"https://api.lab.test{path}"), "403", path)
            event = box.event(HTTP, status_code="rule")
            self.assertEqual(event["firewall_rule"], {"name": "floor:never", "type": "floor"})

    def test_observing_does_not_leave_it(self):
        write(USUAL, READS)
        box = self.sandbox("vethguard: 1\nmode: observe\n")
        self.assertEqual(self.status(box, "-d", "x", "https://api.lab.test/"), "403")
        self.assertEqual(self.status(box, "https://api.lab.test/"), "200")

    def test_infrastructure_passes_whatever_a_policy_says(self):
        write(USUAL, HEAD + "allow: []\ninfrastructure: [{name: ca, to: api.lab.test, methods: [GET]}]\n")
        text = policy("https://*.lab.test", deny=["https://api.lab.test"], more="limits: {requests: 1/1d}\n")
        box = self.sandbox(text)
        for _ in range(3):
            self.assertEqual(self.status(box, "https://api.lab.test/"), "200")
        self.assertEqual(self.status(box, "-d", "x", "https://api.lab.test/"), "403")
        event = box.event(HTTP, status_id=1)
        self.assertEqual(event["firewall_rule"], {"name": "infrastructure:ca", "type": "infrastructure"})

    def test_its_limits_hold_beside_a_policys(self):
        write(USUAL, HEAD + "limits: {requests: 2/1d}\n")
        box = self.sandbox(policy("https://api.lab.test", more="limits: {requests: 100/1d}\n"))
        told = [self.status(box, "https://api.lab.test/") for _ in range(3)]
        self.assertEqual(told, ["200", "200", "429"])
        self.assertIn("of the floor", box.run("curl", "-sS", "https://api.lab.test/").out)

    def test_limits_of_the_infrastructure(self):
        """The rule's own limits bound what no policy can; a policy's limits do not count there, nor its there for the policy."""
        write(USUAL, HEAD + "infrastructure: [{name: ca, to: api.lab.test, limits: {requests: 2/1d}}]\n")
        box = self.sandbox(policy("https://www.lab.test", deny=["https://api.lab.test"], more="limits: {requests: 1/1d}\n"))
        told = [self.status(box, f"https://{host}.lab.test/") for host in ("api", "api", "api", "www", "www")]
        self.assertEqual(told, ["200", "200", "429", "200", "429"])
        self.assertEqual(box.event(HTTP, status_code="policy-limit")["firewall_rule"], {"name": "infrastructure:ca", "type": "infrastructure"})

    def refused(self, why, text=WIDE, prefix=()):
        r = subprocess.run([*prefix, VETHGUARD, "run", "--policy", support.LAB.write("floored.yaml", text, 0o644), "--config",
                            support.LAB.path("config.yaml"), "--", "echo", "ran"], capture_output=True, text=True, timeout=30 * SLOW, cwd="/")
        self.assertNotEqual(r.returncode, 0, r)
        self.assertNotIn("ran", r.stdout, r)
        self.assertIn(why, r.stderr, r)

    def test_nothing_starts_below_a_floor_that_cannot_be_used(self):
        for text, why in (("vethguard: 1\nallow: [\n", f"{USUAL}:3:1"), ("vethguard: 1\nallows: []\n", f"{USUAL}:2:1: error: "),
                          ("", "floor"), ("vethguard: 1\nallow: [{to: '${x}'}]\n", f"{USUAL}:2:14"), ("\0", USUAL)):
            write(USUAL, text)
            self.refused(why)
        os.unlink(USUAL)
        os.mkdir(USUAL)
        self.refused("cannot read the floor")
        os.rmdir(USUAL)
        os.mkfifo(USUAL)
        self.refused("cannot read the floor")

    def test_nothing_starts_below_a_floor_that_others_can_change(self):
        for mode, owner, why in ((0o666, 0, "can be changed by everybody: 'chmod o-w'"), (0o644, 1000, "belongs to user 1000"),
                                 (0o664, 0, "")):
            write(USUAL, READS, mode, owner)
            if why:
                self.refused(why)
        write(USUAL, READS)
        os.chmod(ETC, 0o777)
        self.refused(f"lies below {ETC}, where everybody can put another file in its place")

    def test_a_configuration_of_a_run_does_not_replace_it(self):
        write(USUAL, READS)
        other = write(support.LAB.path("no-floor.yaml"), HEAD)
        config = support.LAB.write("with-floor.yaml", support.LAB.config(f"floor: {other}\n"))
        box = self.sandbox(WIDE, config=config)
        self.assertEqual(self.status(box, "-d", "x", "https://api.lab.test/"), "403")
        self.assertIn("counts for the daemon only", box.stderr())

    def test_a_user_without_root_is_below_it(self):
        nobody = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]
        if subprocess.run([*nobody, "unshare", "-Ur", "true"], capture_output=True).returncode:
            self.skipTest("no user namespaces for users here")
        write(USUAL, "vethguard: 1\nallow: [\n")
        self.refused(f"{USUAL}:3:1", prefix=nobody)
        write(USUAL, READS, 0o600)
        self.refused("cannot read the floor", prefix=nobody)

    def test_check_says_what_it_takes_away(self):
        floor = write(support.LAB.path("named-floor.yaml"), READS)
        wide = support.LAB.write("wide.yaml", policy("https://api.lab.test", "https://b.lab.test"))
        r = subprocess.run([VETHGUARD, "policy", "check", wide, "--floor", floor], capture_output=True, text=True)
        self.assertEqual(r.returncode, 0, r)
        self.assertIn("note: the floor takes away: any method https://b.lab.test", r.stderr)
        self.assertIn("with a floor", r.stdout)
        r = subprocess.run([VETHGUARD, "policy", "explain", wide, "POST", "https://api.lab.test/", "--floor", floor], capture_output=True, text=True)
        self.assertEqual(r.returncode, 1, r)
        self.assertIn("layer: floor\n", r.stdout)
        self.assertRegex(r.stdout, r"floor floor:allow\[0\] +another method")
        r = subprocess.run([VETHGUARD, "policy", "explain", wide, "POST", "https://api.lab.test/", "--floor", "none"], capture_output=True, text=True)
        self.assertEqual(r.returncode, 0, r)
        self.assertNotIn("layer", r.stdout)
        for missing in ("/nowhere/floor.yaml", support.LAB.dir):
            r = subprocess.run([VETHGUARD, "policy", "check", wide, "--floor", missing], capture_output=True, text=True)
            self.assertEqual(r.returncode, 2, r)
            self.assertIn("cannot read the floor, so no policy is loaded", r.stderr)


class DaemonFloor(Attached):
    """A daemon's floor, which changes while a sandbox runs."""

    def make_daemon(self):
        self.floor = write(support.LAB.path(f"{self.name}-floor.yaml"), HEAD)
        return Daemon(config=f"floor: {self.floor}\nwatch: true\n")

    def refuses(self):
        r = self.curl("-o", "/dev/null", "-w", "%{http_code} %{http_connect}", "https://api.lab.test/whoami")
        return "403" in r.stdout

    def test_reaches_what_runs(self):
        self.assert_served()
        write(self.floor, HEAD + "allow: []\n")
        self.assertTrue(wait_until(self.refuses, 5 * SLOW), self.daemon.stderr())
        told = wait_until(lambda: [e for e in self.daemon.events() if "the floor takes away: " in str(e)], 5 * SLOW)
        self.assertTrue(told, self.daemon.events())
        write(self.floor, HEAD + "allow: [{to: api.lab.test}]\n")
        self.assert_served(seconds=5 * SLOW)
        # a broken one changes nothing, and starts nothing
        write(self.floor, "vethguard: 1\nallow: [\n")
        r = self.daemon.cli("reload", "one")
        self.assertNotEqual(r.returncode, 0, r)
        self.assertIn(f"{self.floor}:3:1", r.stderr + r.stdout)
        self.assert_served()
        name = support.netns(self, self.name + "b")
        status, _, answer = self.daemon.call("POST", "/v1/sandboxes", {"name": "two", "netns": f"/run/netns/{name}", "policy": self.policy})
        self.assertEqual(status, 422, answer)
        self.assertIn(self.floor, str(answer))
        # nor does one that others can change, or that is gone
        write(self.floor, HEAD, 0o666)
        self.assertNotEqual(self.daemon.cli("reload", "one").returncode, 0)
        os.unlink(self.floor)
        self.assertNotEqual(self.daemon.cli("reload", "one").returncode, 0)
        self.assert_served()
        # the floor is there again when another daemon takes over
        write(self.floor, HEAD + "allow: []\n")
        self.daemon.stop()
        self.daemon.start()
        self.assertTrue(wait_until(self.refuses, 5 * SLOW), self.daemon.stderr())
        r = subprocess.run([*self.daemon.argv()[:1], "--config", self.daemon.config, "--check-config"], capture_output=True, text=True)
        self.assertEqual(r.returncode, 0, r)
        write(self.floor, HEAD + "allows: []\n")
        r = subprocess.run([*self.daemon.argv()[:1], "--config", self.daemon.config, "--check-config"], capture_output=True, text=True)
        self.assertEqual(r.returncode, 125, r)
        self.assertIn(f"{self.floor}:2:1", r.stderr)


SQUID = shutil.which("squid", path="/usr/sbin:/usr/bin")
CONF = """acl localnet src all
acl Safe_ports port 80 443 1025-65535
acl SSL_ports port 443
acl white dstdomain .white.example exact.example
acl black dstdomain .bad.white.example
acl reads method GET HEAD
acl ro dstdomain ro.example
acl odd port 8080
acl web dstdomain web.example
acl inner dst 10.0.0.0/8
acl rx dstdom_regex -i evil
acl late dstdomain late.example
http_access deny !Safe_ports
http_access deny CONNECT !SSL_ports
http_access deny inner
http_access deny black
http_access allow localnet white
http_access allow ro reads
http_access allow web odd
%s
http_access allow late
http_access deny all
"""
HOSTS = ("white.example", "a.white.example", "x.bad.white.example", "bad.white.example", "exact.example", "x.exact.example", "ro.example",
         "web.example", "late.example", "evil.white.example", "other.example", "WHITE.example", "10.1.2.3")


@support.unittest.skipUnless(SQUID, "no squid here (package squid-openssl)")
class Squid(Case):
    """Compares the policy that is made of a squid.conf with squid itself, over the same requests."""

    def squid(self, conf):
        """squid's answers, as a function of method and URL. Nobody listens at the names' addresses, so what squid allows is 503; what it refuses is 403."""
        folder = support.LAB.path("squid")
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder)
        os.chmod(folder, 0o777)
        text = conf + ("http_port 127.0.0.1:13128\npid_filename none\ncache_log stdio:%s/log\naccess_log none\ncache_store_log none\n"
                       "coredump_dir %s\nshutdown_lifetime 0 seconds\nvisible_hostname lab\ndns_nameservers 127.0.0.1\nhosts_file %s/hosts\n"
                       "cache_mem 1 MB\nconnect_timeout 1 seconds\npinger_enable off\nnetdb_filename none\n" % (folder, folder, folder))
        with open(os.path.join(folder, "hosts"), "w") as f:
            f.writelines(f"127.0.0.9 {host}\n" for host in HOSTS if host[0] != "1")
        path = os.path.join(folder, "squid.conf")
        with open(path, "w") as f:
            f.write(text)
        with open(os.path.join(folder, "out"), "w") as out:
            process = subprocess.Popen([SQUID, "-N", "-f", path], stdout=out, stderr=out)

        def end():
            process.terminate()
            process.wait(20)
        self.addCleanup(end)

        def answers():
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", 13128), 5):
                return True
            return False

        def ask(method, url):
            authority = url.split("/")[2]
            target = url if method != "CONNECT" else authority if ":" in authority else authority + ":443"
            with socket.create_connection(("127.0.0.1", 13128), 20 * SLOW) as c:
                c.sendall(f"{method} {target} HTTP/1.1\r\nHost: {authority}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode())
                status = c.makefile("rb").readline().split()[1]
            return status != b"403"
        if not wait_until(answers, 20 * SLOW):
            raise AssertionError(open(os.path.join(folder, "out")).read())
        return ask

    def compare(self, extra, narrower):
        conf = CONF % extra
        ask = self.squid(conf)
        source = support.LAB.write("compare-squid.conf", conf)
        made = subprocess.run([VETHGUARD, "policy", "import", "--from", "squid", source], capture_output=True, text=True)
        self.assertEqual(made.returncode, 0, made)
        path = support.LAB.write("compare-squid.yaml", made.stdout)
        counts = {"both": 0, "neither": 0, "squid alone": 0}
        for host in HOSTS:
            for method, url in (("GET", f"http://{host}/x"), ("POST", f"http://{host}/x"), ("GET", f"http://{host}:8080/x"), ("GET", f"http://{host}:22/"),
                                ("CONNECT", f"https://{host}/"), ("CONNECT", f"https://{host}:8443/")):
                squid = ask(method, url)
                ours = subprocess.run([VETHGUARD, "policy", "explain", path, method, url, "--floor", "none"], capture_output=True).returncode == 0
                self.assertFalse(ours and not squid, f"wider: {method} {url}\n{made.stdout}")
                counts["both" if squid and ours else "squid alone" if squid else "neither"] += 1
                if squid and not ours:
                    self.assertTrue(narrower(method, url), f"narrower, and nobody knows why: {method} {url}\n{made.stdout}")
        self.assertGreater(counts["both"], 10, counts)
        self.assertGreater(counts["neither"], 20, counts)
        return counts

    def test_agree(self):
        self.compare("", lambda method, url: ":8080" in url)

    def test_a_line_that_cannot_be_said_makes_it_narrower(self):
        self.compare("http_access deny rx", lambda method, url: ":8080" in url or "late.example" in url)
