# SPDX-License-Identifier: Apache-2.0
"""`vethguard sidecar`: guard and agent in one network namespace, told apart by who owns a socket."""
import os
import signal
import subprocess

import lab
import support
from sidecar import AGENT, CONTAINER_CAPS, GUARD, POD4, ROUTER4, ROUTER6, Pod
from support import FINDING, HTTP, LIFECYCLE, NETWORK, SECRET, VETHGUARD, policy, sh, wait_until

# The guard's own files: its user reads them, the agent's does not.
CREDENTIAL = "  api: {source: 'file:%s', inject: bearer, env: API_KEY}\n"
RULES = ("{to: 'https://api.lab.test', credential: api}", "http://plain.lab.test", "tcp://tcp.lab.test:7000")

# Everything that an agent might send by itself; prints what the kernel let it do.
LEAKS = """
import errno, socket, struct, sys
out = []
def attempt(name, make):
    try:
        make(); out.append(name + ' sent')
    except OSError as e:
        out.append(name + ' ' + errno.errorcode.get(e.errno, str(e)))
V4, V6 = ['10.98.0.1', '10.99.0.66', '10.98.0.255', '255.255.255.255', '224.0.0.251', '198.18.5.5', '127.0.0.11'], \\
         ['fd98::1', 'fd99::80', 'ff02::1%eth0', 'fd76:6574:6867::5:5']
def udp(family, to, port, device=None, source=None, options=()):
    s = socket.socket(family, socket.SOCK_DGRAM)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
    for o in options: s.setsockopt(*o)
    if device: s.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, device)
    if source: s.bind(('', source))
    s.sendto(b'LEAKLEAK', (to, port))
def tcp(family, to, port, device=None, fastopen=False):
    s = socket.socket(family, socket.SOCK_STREAM); s.settimeout(0.3)
    if device: s.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, device)
    if fastopen: s.sendto(b'LEAKLEAK', socket.MSG_FASTOPEN, (to, port))
    else:
        s.connect((to, port)); s.sendall(b'LEAKLEAK')
for device in (None, b'eth0', b'lo'):
    for to in V4 + ['127.0.0.1', '10.98.0.2']:
        for port in (9, 53, 123, 443, 7653, 7676, 7677, 40000):
            attempt(f'udp {to}:{port} by {device}', lambda: udp(socket.AF_INET, to, port, device))
    for to in V6 + ['::1']:
        for port in (9, 53, 443, 7676):
            attempt(f'udp [{to}]:{port} by {device}', lambda: udp(socket.AF_INET6, to, port, device))
for device in (b'eth0', b'lo'):
    for to in ('10.98.0.1', '10.99.0.66', '127.0.0.1', '10.98.0.2'):
        for port in (80, 53, 7676):
            attempt(f'tcp {to}:{port} by {device}', lambda: tcp(socket.AF_INET, to, port, device))
attempt('fastopen', lambda: tcp(socket.AF_INET, '10.99.0.66', 80, fastopen=True))
attempt('sctp', lambda: (lambda s: (s.settimeout(0.3), s.connect(('10.98.0.1', 9))))(
        socket.socket(socket.AF_INET, socket.SOCK_STREAM, 132)))
attempt('udplite', lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM, 136).sendto(b'LEAKLEAK', ('10.98.0.1', 9)))
attempt('mptcp', lambda: (lambda s: (s.settimeout(0.3), s.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, b'eth0'),
        s.connect(('10.99.0.66', 80))))(socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262)))
def packet(kind, ethertype, bypass):
    s = socket.socket(socket.AF_PACKET, kind, socket.htons(3))
    s.setsockopt(263, 20, bypass)
    if kind == socket.SOCK_RAW:
        s.bind(('eth0', 0))
        s.send(b'\\xff' * 6 + b'\\2LEAK\\2' + struct.pack('!H', ethertype) + b'LEAKLEAK' * 8)
    else:
        s.sendto(b'LEAKLEAK' * 8, ('eth0', ethertype, 0, 0, b'\\xff' * 6))
for kind in (socket.SOCK_RAW, socket.SOCK_DGRAM):
    for ethertype in (0x0800, 0x0806, 0x86dd, 0x88b5, 0x8100):
        for bypass in (0, 1):
            attempt('packet', lambda: packet(kind, ethertype, bypass))
for protocol in (1, 47, 255):
    attempt(f'raw {protocol}', lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, protocol).sendto(b'LEAKLEAK', ('10.98.0.1', 0)))
attempt('ping', lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM, 1).sendto(b'\\x08\\0\\0\\0\\0\\0\\0\\0LEAKLEAK', ('10.98.0.1', 0)))
attempt('ping6', lambda: socket.socket(socket.AF_INET6, socket.SOCK_DGRAM, 58).sendto(b'\\x80\\0\\0\\0\\0\\0\\0\\0LEAKLEAK', ('fd98::1', 0)))
attempt('join', lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM).setsockopt(
        0, socket.IP_ADD_MEMBERSHIP, socket.inet_aton('239.76.69.65') + socket.inet_aton('10.98.0.2')))
attempt('join6', lambda: socket.socket(socket.AF_INET6, socket.SOCK_DGRAM).setsockopt(41, 20, socket.inet_pton(
        socket.AF_INET6, 'ff05::4c45:414b') + struct.pack('@I', socket.if_nametoindex('eth0'))))
__import__('time').sleep(1.5)
attempt('mark', lambda: udp(socket.AF_INET, '10.98.0.1', 9, options=[(socket.SOL_SOCKET, 36, 0x76677368)]))
attempt('transparent', lambda: udp(socket.AF_INET, '10.98.0.1', 9, options=[(socket.IPPROTO_IP, 19, 1)]))
attempt('options', lambda: udp(socket.AF_INET, '10.98.0.1', 9, options=[(socket.IPPROTO_IP, 4, b'\\x83\\x07\\x04\\x0a\\x63\\x00\\x42\\x00')]))
for what in (lambda: __import__('os').setresuid(GUARD, GUARD, GUARD), lambda: __import__('os').setfsuid(GUARD)):
    try:
        what()
    except (OSError, AttributeError):
        pass
attempt('as the guard', lambda: udp(socket.AF_INET, '10.98.0.1', 9))
print('\\n'.join(out))
""".replace("GUARD", str(GUARD))


# Asks for plain.lab.test by UDP and by TCP; prints what the answers end with.
QUERY = """
import socket, struct
for to in (TO):
    q = struct.pack('!6H', 7, 256, 1, 0, 0, 0) + b'\\x05plain\\x03lab\\x04test\\0' + struct.pack('!2H', 1, 1)
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(5); s.connect((to, 53)); s.send(q)
    address = socket.inet_ntoa(s.recv(512)[-4:]); print(address)
    t = socket.create_connection((to, 53), 5); t.sendall(struct.pack('!H', len(q)) + q)
    print(socket.inet_ntoa(t.recv(512)[-4:]))
"""


def credential():
    path = support.LAB.write("sidecar-secret", SECRET + "\n", 0o400)
    os.chown(path, GUARD, GUARD)
    return CREDENTIAL % path


class Sidecar(support.Case):
    def setUp(self):
        super().setUp()
        self.pod = Pod(self)

    def tearDown(self):
        for guard in self.pod.guards:
            self.pod.kill(guard, signal.SIGTERM)
            self.assert_clean(guard.stderr_path, guard.audit)
        for name in os.listdir(self.pod.share):
            self.assert_clean(os.path.join(self.pod.share, name))
        super().tearDown()

    def fence(self, *options):
        done = self.pod.init(*options)
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def guard(self, *options, **kw):
        self.fence()
        return self.pod.start(policy(*RULES, credentials=credential()), *options, **kw)

    def assert_nothing_left(self, capture):
        self.assertEqual(capture.sent(), [])


class Serves(Sidecar):
    def test_allowed_denied_and_recorded(self):
        guard = self.guard()
        done = self.pod.sh("curl -sS https://api.lab.test/whoami -H \"Authorization: Bearer $API_KEY\"")
        self.assertIn('"authenticated": true', done.stdout, done)
        self.assertEqual([r["path"] for r in self.seen("http")], ["/whoami"])
        done = self.pod.sh("curl -sS -o /dev/null -w '%{http_code}' https://www.lab.test/")
        self.assertEqual(done.stdout, "403", done)
        done = self.pod.sh("curl -sS -o /dev/null -w '%{http_code}' http://plain.lab.test/")
        self.assertEqual(done.stdout, "200", done)
        # By address, which no rule names; and the guard as an explicit proxy.
        done = self.pod.sh(f"curl -sS -o /dev/null -w '%{{http_code}}' http://{lab.EVIL4}/")
        self.assertEqual(done.stdout, "403", done)
        done = self.pod.sh("curl -sS -x http://127.0.0.1:3128 https://api.lab.test/proxied")
        self.assertEqual(done.returncode, 0, done)
        self.assertEqual(self.pod.kill(guard, signal.SIGTERM), 0, self.pod.said(guard))
        rows = self.pod.events(guard, HTTP)
        decisions = [(r["http_request"]["url"]["hostname"], r["action_id"]) for r in rows]
        self.assertIn(("api.lab.test", 1), decisions)
        self.assertIn(("www.lab.test", 2), decisions)
        self.assertEqual(len(self.pod.events(guard, LIFECYCLE)), 2)
        done = subprocess.run([VETHGUARD, "audit", "verify", guard.audit], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done)
        self.assertFalse(os.path.exists(os.path.join(self.pod.share, "ready")))

    def test_ipv6(self):
        self.guard()
        done = self.pod.sh("curl -6 -sS https://api.lab.test/six")
        self.assertEqual(done.returncode, 0, done)
        done = self.pod.sh(f"curl -sS -g -o /dev/null -w '%{{http_code}}' 'http://[{lab.ORIGIN6}]/'")
        self.assertEqual(done.stdout, "403", done)

    def test_dns_of_any_address_is_the_guards(self):
        self.guard()
        code = QUERY.replace("TO", "'10.99.0.53', '192.0.2.7', '127.0.0.1', '127.0.0.11', '10.98.0.2'")
        with self.pod.capture() as capture:
            done = self.pod.py(code)
        addresses = done.stdout.split()
        self.assertEqual(len(addresses), 10, done)
        self.assertEqual(len(set(addresses)), 1, done)
        self.assertTrue(addresses[0].startswith("198.1"), done)
        self.assert_nothing_left(capture)

    def test_members_of_the_group(self):
        self.guard()
        code = ("import socket, threading\nl = socket.create_server(('', 8080))\n"
                "threading.Thread(target=lambda: l.accept()[0].sendall(b'member'), daemon=True).start()\n"
                "print(socket.create_connection(('{to}', 8080), 5).recv(6))")
        for to in ("127.0.0.1", POD4):
            self.assertEqual(self.pod.py(code.replace("{to}", to)).stdout, "b'member'\n")
        self.fence("--loopback", "none")
        self.assertEqual(self.pod.py(code.replace("{to}", "127.0.0.1")).stdout, "")
        self.fence("--loopback", "5432,8080")
        self.assertEqual(self.pod.py(code.replace("{to}", "127.0.0.1")).stdout, "b'member'\n")

    def test_inbound(self):
        self.fence("--inbound", "8080")
        server = subprocess.Popen(["nsenter", "--net=/run/netns/pod", "setpriv", "--reuid", str(AGENT), "--clear-groups",
                                   support.PYTHON, "-c", "import socket\nfor p in (8080, 8081): globals()[f's{p}'] = "
                                   "socket.create_server(('', p))\nprint('up', flush=True)\n"
                                   "while True:\n c = s8080.accept()[0]; c.sendall(b'hello'); c.close()"],
                                  stdout=subprocess.PIPE, text=True)
        self.addCleanup(server.wait)
        self.addCleanup(server.kill)
        self.addCleanup(server.stdout.close)
        self.assertEqual(server.stdout.readline(), "up\n")
        connect = ("import socket\ntry: print(socket.create_connection(('%s', %d), 2).recv(5))\n"
                   "except OSError as e: print('no')")
        ask = lambda port: sh("ip", "netns", "exec", "outside", support.PYTHON, "-c", connect % (POD4, port))  # noqa: E731
        self.assertEqual(ask(8080), "b'hello'\n")
        self.assertEqual(ask(8081), "no\n")
        self.assertEqual(ask(3128), "no\n")

    def test_a_pod_without_any_route(self):
        """Names work, because their addresses lead to lo; the guard reports that it reaches nothing."""
        self.pod.close()
        sh("ip", "-n", "pod", "link", "del", "eth0")
        self.guard()
        code = QUERY.replace("TO", "'127.0.0.1',") + ("print(socket.create_connection((address, 80), 5).sendall(b'') or address)\n"
               "import http.client\nc = http.client.HTTPConnection(address, 80, timeout=30)\n"
               "c.request('GET', '/', headers={'Host': 'plain.lab.test'}); print(c.getresponse().status)\n")
        done = self.pod.py(code)
        self.assertEqual(done.stdout.split()[-1:], ["502"], done)

    def test_files_for_the_agent(self):
        self.guard("--proxy-env", "--share-as", "/guard")
        with open(os.path.join(self.pod.share, "env"), encoding="utf-8") as f:
            env = dict(line.rstrip("\n").split("=", 1) for line in f)
        self.assertEqual(env["SSL_CERT_FILE"], "/guard/bundle.pem")
        self.assertEqual(env["NODE_EXTRA_CA_CERTS"], "/guard/ca.pem")
        self.assertEqual(env["HTTPS_PROXY"], "http://127.0.0.1:3128")
        self.assertTrue(env["API_KEY"])
        for name in ("ca.pem", "bundle.pem"):
            with open(os.path.join(self.pod.share, name), encoding="utf-8") as f:
                self.assertIn("BEGIN CERTIFICATE", f.read())

    def test_the_share_follows_no_link(self):
        """The agent may be able to write there."""
        target = support.LAB.write("victim", "untouched")
        os.chown(target, GUARD, GUARD)
        for name in ("ca.pem", "bundle.pem", "env", "env.sh", "ready"):
            os.symlink(target, os.path.join(self.pod.share, name))
        self.guard()
        with open(target, encoding="utf-8") as f:
            self.assertEqual(f.read(), "untouched")


class Holds(Sidecar):
    """The battery of leaks: what an agent sends by itself never reaches the uplink."""

    def leak(self, **kw):
        with self.pod.capture() as capture:
            done = self.pod.py(LEAKS, timeout=120, **kw)
        self.assertEqual(done.returncode, 0, done)
        self.assertIn("as the guard EPERM", done.stdout)
        return capture

    def test_the_battery_would_leak_without_a_fence(self):
        with self.pod.capture() as capture:
            done = self.pod.py(LEAKS, timeout=120, uid=0, caps=CONTAINER_CAPS + ",net_raw")
        self.assertEqual(done.returncode, 0, done)
        self.assertIn("packet sent", done.stdout)
        self.assertGreater(len([f for f in capture.sent() if f[6:12] == b"\2LEAK\2"]), 8)
        self.assertGreater(len(capture.sent()), 50)

    def test_before_the_guard_is_there(self):
        self.fence()
        self.assert_nothing_left(self.leak())

    def assert_only_the_guards(self, capture):
        """While it serves, the guard asks the resolver and dials what is allowed; no content of the agent's may be there."""
        self.assertEqual([f for f in capture.sent() if b"LEAK" in f], [])

    def test_an_ordinary_user(self):
        self.guard()
        self.assert_nothing_left(self.leak())

    def test_root_of_a_container(self):
        self.guard()
        self.assert_nothing_left(self.leak(uid=0, caps=CONTAINER_CAPS))

    def test_a_container_with_net_raw(self):
        """It should not have CAP_NET_RAW, and hears the guard's packets; but nothing of it leaves, by packet sockets either."""
        self.guard()
        self.assertIn('hook egress device "eth0"', self.pod.inside("nft", "list", "ruleset").stdout)
        self.assert_nothing_left(self.leak(uid=0, caps=CONTAINER_CAPS + ",net_raw"))

    def test_with_no_new_privileges_a_set_user_id_program_is_no_way(self):
        """Without it, a set-user-id file of the guard's user would pass."""
        self.guard()
        path = support.LAB.path("become")
        sh("cp", "/usr/bin/setpriv", path)
        os.chown(path, GUARD, GUARD)
        os.chmod(path, 0o4755)
        code = "import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'LEAKLEAK', ('10.98.0.1', 9))"
        with self.pod.capture() as capture:
            done = self.pod.agent(path, support.PYTHON, "-c", code, extra=("--no-new-privs",))
        self.assertIn("PermissionError", done.stderr)
        self.assert_nothing_left(capture)

    def kill_all(self, guard, name):
        killed = 0
        for pid in support.descendants(guard.pid):
            try:
                with open(f"/proc/{pid}/comm", encoding="ascii") as f:
                    if f.read().strip() == name:
                        os.kill(pid, signal.SIGKILL)
                        killed += 1
            except (FileNotFoundError, ProcessLookupError):
                pass  # ended with one that was killed before
        self.assertGreater(killed, 0)

    def test_a_guard_that_is_killed(self):
        """The rules outlive every process: nothing listens, nothing passes."""
        for which in ("vethguard", "vethguardd", "vethguard-worke", "vethguard-keepe", "vethguard-recor"):
            with self.subTest(which):
                guard = self.guard()
                self.kill_all(guard, which)
                with self.pod.capture() as capture:
                    self.pod.py(LEAKS, timeout=120)
                self.assert_nothing_left(capture)
                self.pod.kill(guard)
                with self.pod.capture() as capture:
                    done = self.pod.sh("curl -sS -m 5 http://plain.lab.test/")
                    self.pod.py(LEAKS, timeout=120)
                self.assertNotEqual(done.returncode, 0)
                self.assert_nothing_left(capture)

    def test_a_guard_that_is_killed_while_it_starts(self):
        for delay in (0, 0.01, 0.03, 0.1, 0.3):
            with self.subTest(delay):
                self.fence()
                guard = self.pod.start(policy(*RULES, credentials=credential()), wait=False)
                with self.pod.capture() as capture:
                    support.time.sleep(delay)
                    self.pod.kill(guard)
                    self.pod.py("import socket; socket.create_connection(('10.99.0.66', 80), 2)")
                self.assert_nothing_left(capture)

    def test_a_guard_that_is_started_again(self):
        self.pod.kill(self.guard())
        self.guard()
        done = self.pod.sh("curl -sS -o /dev/null -w '%{http_code}' http://plain.lab.test/")
        self.assertEqual(done.stdout, "200", done)

    def test_init_killed_at_any_moment(self):
        """One transaction: the fence is there as a whole or not at all, and the next init sets it."""
        for delay in (0, 0.001, 0.003, 0.006, 0.01, 0.02):
            init = subprocess.Popen(["nsenter", "--net=/run/netns/pod", VETHGUARD, "sidecar", "init", "--uid", str(GUARD)])
            support.time.sleep(delay)
            init.kill()
            init.wait()
            rules = self.pod.inside("nft", "list", "ruleset").stdout
            self.assertIn(rules.count("chain "), (0, 8), rules)
            self.fence()
            self.assertEqual(self.pod.init("--check").returncode, 0)


class Cgroup(Sidecar):
    """With --init the fence knows the guard by its cgroup too, so becoming its user is not enough."""

    def make_cgroup(self):
        roots = [r for r in ("/sys/fs/cgroup", "/sys/fs/cgroup/unified") if os.path.exists(r + "/cgroup.controllers")]
        if not roots:
            self.skipTest("no cgroups of version 2")
        path = f"{roots[0]}/vethguard-sidecar-{os.getpid()}"
        os.mkdir(path)
        self.addCleanup(lambda: wait_until(lambda: not self.busy(path)) and os.rmdir(path))
        return path

    @staticmethod
    def busy(path):
        with open(path + "/cgroup.procs", encoding="ascii") as f:
            return bool(f.read())

    def start_with_init(self, *options, own_namespace=False):
        """own_namespace: with a view of cgroups of its own, as a container has it."""
        path = self.make_cgroup()
        root = os.path.dirname(path)
        view = f"exec unshare --cgroup --mount sh -c 'umount {root} && mount -t cgroup2 none {root} && exec \"$0\" \"$@\"'" if own_namespace else "exec"
        become = ("sh", "-c", f"echo 0 > {path}/cgroup.procs; {view} setpriv --bounding-set=-all,+net_admin,+setuid,+setgid,"
                  "+setpcap --inh-caps=-all \"$@\"", "sh")
        return self.pod.start(policy(*RULES, credentials=credential()), "--init", "--uid", str(GUARD), *options, become=become)

    def test_one_container_for_both_steps(self):
        guard = self.start_with_init()
        done = self.pod.sh("curl -sS https://api.lab.test/whoami -H \"Authorization: Bearer $API_KEY\"")
        self.assertIn('"authenticated": true', done.stdout, done)
        self.assertIn("socket cgroupv2", self.pod.inside("nft", "list", "ruleset").stdout)
        self.assertNotIn("cgroup", self.pod.said(guard))
        for pid in support.descendants(guard.pid):
            with open(f"/proc/{pid}/status", encoding="ascii") as f:
                fields = dict(line.split(":\t", 1) for line in f.read().splitlines() if ":\t" in line)
            self.assertEqual(fields["Uid"].split(), [str(GUARD)] * 4)
            # Full sets are those of its own user namespace; over the pod's there is none.
            if os.stat(f"/proc/{pid}/ns/user").st_ino == os.stat("/proc/self/ns/user").st_ino:
                self.assertEqual(int(fields["CapPrm"], 16), 0)

    def test_the_guards_user_alone_gets_nothing_out(self):
        self.start_with_init()
        for kw in ({"uid": GUARD}, {"uid": 0, "caps": CONTAINER_CAPS + ",setuid,setgid"}):
            with self.pod.capture() as capture:
                done = self.pod.py(LEAKS, timeout=120, **kw)
            self.assertIn("as the guard EPERM", done.stdout)
            self.assert_nothing_left(capture)

    def test_in_a_cgroup_namespace(self):
        guard = self.start_with_init(own_namespace=True)
        rules = self.pod.inside("nft", "list", "ruleset").stdout
        if "socket cgroupv2" not in rules:  # Linux before 6.11
            self.assertIn("cannot be told apart by its cgroup", self.pod.said(guard))
        with self.pod.capture() as capture:
            done = self.pod.py(LEAKS, timeout=120, **({"uid": GUARD} if "socket cgroupv2" in rules else {}))
        self.assertIn("as the guard EPERM", done.stdout)
        self.assert_nothing_left(capture)

    def test_what_is_dropped_is_recorded(self):
        guard = self.start_with_init()
        self.pod.py("import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('10.99.0.66', 4444))")
        wait_until(lambda: [r for r in self.pod.events(guard, NETWORK) if r["dst_endpoint"].get("port") == 4444])
        row = [r for r in self.pod.events(guard, NETWORK) if r["dst_endpoint"].get("port") == 4444][0]
        self.assertEqual((row["dst_endpoint"]["ip"], row["action_id"]), ("10.99.0.66", 2))


class Refuses(Sidecar):
    def refused(self, status, text, done):
        self.assertEqual(done.returncode, status, done)
        self.assertIn(text, done.stderr)

    def start_refused(self, text, *options, **kw):
        guard = self.pod.start(policy(*RULES, credentials=credential()), *options, wait=False, **kw)
        self.assertEqual(guard.wait(6 * support.SLOW), 125)
        self.assertIn(text, self.pod.said(guard))

    def test_init_without_rights(self):
        done = self.pod.agent(VETHGUARD, "sidecar", "init", "--uid", str(GUARD))
        self.refused(1, "needs CAP_NET_ADMIN", done)

    def test_check_finds_what_changed(self):
        self.refused(1, "not in force", self.pod.init("--check"))
        self.fence("--inbound", "8080")
        self.assertEqual(self.pod.init("--check", "--inbound", "8080").returncode, 0)
        self.refused(1, "not in force", self.pod.init("--check"))
        self.pod.inside("nft", "flush", "chain", "inet", "vethguard-shared", "others")
        self.refused(1, "not in force", self.pod.init("--check", "--inbound", "8080"))

    def test_run_without_a_fence(self):
        self.start_refused("no fence is in force for this user")

    def test_run_as_another_user(self):
        self.fence()
        os.chmod(self.pod.share, 0o777)
        self.start_refused("no fence is in force for this user (2001)",
                           become=("setpriv", "--reuid", "2001", "--regid", "2001", "--clear-groups"))

    def test_run_with_another_port(self):
        self.fence()
        self.start_refused("no fence is in force", "--dns-port", "7654")

    def test_run_as_root_or_with_rights(self):
        self.fence()
        self.start_refused("runs as root", become=("setpriv", "--bounding-set=-all"))
        for right in ("net_admin", "net_raw", "sys_admin", "setuid"):
            self.start_refused(f"the guard has CAP_{right.upper()}", become=(
                "setpriv", "--reuid", str(GUARD), "--regid", str(GUARD), "--clear-groups", "--inh-caps=+" + right,
                "--ambient-caps=+" + right))

    def test_run_beside_a_process_that_could_undo_it(self):
        self.fence()
        # Process 1 is exempt, as an engine's is: here it is the shell that starts both. The other has root's rights until it is `sleep`.
        beside = ("sh", "-c", "setpriv {} sleep 1000 & until [ \"$(cat /proc/$!/comm)\" = sleep ]; do :; done; "
                  "setpriv --reuid 1337 --regid 1337 --clear-groups --bounding-set=-all --inh-caps=-all \"$@\"; exit $?", "sh")
        for options, text in (("--reuid 1337", "runs as the guard's user"),
                              ("--bounding-set=-all,+net_raw --inh-caps=-all", "has CAP_NET_RAW"),
                              ("--bounding-set=-all,+setuid --inh-caps=-all", "has CAP_SETUID")):
            with self.subTest(options):
                become = tuple(word.replace("{}", options) for word in beside)
                self.start_refused(text, become=become)

    def test_the_fence_taken_away_ends_the_guard(self):
        guard = self.guard()
        self.pod.inside("nft", "delete", "table", "inet", "vethguard-shared")
        self.assertEqual(guard.wait(6 * support.SLOW), 125)
        self.assertIn("not in force any more", self.pod.said(guard))

    def test_a_port_that_is_taken(self):
        self.fence()
        server = subprocess.Popen(["nsenter", "--net=/run/netns/pod", support.PYTHON, "-c",
                                   "import socket, time; s = socket.create_server(('127.0.0.1', 3128)); print(1, flush=True); "
                                   "time.sleep(1000)"], stdout=subprocess.PIPE, text=True)
        self.addCleanup(server.wait)
        self.addCleanup(server.kill)
        self.addCleanup(server.stdout.close)
        server.stdout.readline()
        self.start_refused("port 3128 of the loopback address")

    def test_wrong_words(self):
        for words, text in ((["init"], "which user is the guard"), (["init", "--uid", "0"], "other than root"),
                            (["init", "--uid", "x"], "other than root"), (["init", "--uid", "5", "--loopback", "1,x"], "--loopback"),
                            (["init", "--uid", "5", "--inbound", "70000"], "not a port"),
                            (["init", "--uid", "5", "--dns-port", "7676"], "have to differ"),
                            (["init", "--uid", "5", "--inbound", "3128"], "have to differ"), (["go"], "unknown command")):
            done = subprocess.run([VETHGUARD, "sidecar", *words], capture_output=True, text=True, check=False)
            self.refused(2, text, done)
        for words, text in ((["run"], "which policy"), (["run", "--policy", "x", "--uid", "5"], "belong to 'sidecar init'"),
                            (["run", "--policy", "x", "--init"], "--init needs the user"),
                            (["run", "--policy", "x", "--share-as", "/y"], "--share-as needs")):
            done = subprocess.run([VETHGUARD, "sidecar", *words], capture_output=True, text=True, check=False)
            self.refused(125, text, done)
