# SPDX-License-Identifier: Apache-2.0
"""The trust boundaries as they really are, read from the live processes: what each role may do, what it holds, where a
credential is in memory; and that the guarded command, root included, cannot reach around its namespaces."""
import os
import re
import shutil
import subprocess
import unittest

import support
from support import FINDING, PYTHON, SECRET, SLOW, Case, file_credential, policy, sh, wait_until

API = "https://api.lab.test"
ROLES = ("worker", "keeper", "recorder")
# CAP_DAC_OVERRIDE, DAC_READ_SEARCH, KILL, SETGID, SETUID, SETPCAP, NET_BIND_SERVICE, NET_ADMIN, IPC_LOCK, SYS_CHROOT,
# SYS_ADMIN, SYS_RESOURCE
SUPERVISOR = sum(1 << c for c in (1, 2, 5, 6, 7, 8, 10, 12, 14, 18, 21, 24))


def status(pid):
    with open(f"/proc/{pid}/status") as f:
        return dict(line.rstrip("\n").split(":\t", 1) for line in f if ":\t" in line)


def descriptors(pid):
    """What a process holds beyond standard input, output and error: {kind: count}."""
    found = {}
    for fd in os.listdir(f"/proc/{pid}/fd"):
        if int(fd) < 3:
            continue
        target = os.readlink(f"/proc/{pid}/fd/{fd}")
        kind = re.sub(r"\[\d+\]| \(deleted\)", "", target).rstrip(":")
        found[kind] = found.get(kind, 0) + 1
    return found


def places(pid, needle):
    """Where needle is in the memory of a process: [(locked, left out of core dumps, mapping)]."""
    found, area = [], None
    with open(f"/proc/{pid}/smaps") as f, open(f"/proc/{pid}/mem", "rb", 0) as memory:
        for line in f:
            m = re.match(r"([0-9a-f]+)-([0-9a-f]+) (\S+) \S+ \S+ \S+ *(.*)", line)
            if m:
                area = (int(m[1], 16), int(m[2], 16), m[3], m[4])
            elif line.startswith("VmFlags:") and area[2][0] == "r" and not area[3].startswith("[v"):
                flags = line.split()
                try:
                    memory.seek(area[0])
                    data = memory.read(area[1] - area[0])
                except OSError:
                    continue
                found += [("lo" in flags, "dd" in flags, area[3])] * data.count(needle)
    return found


class Roles(Case):
    def setUp(self):
        super().setUp()
        self.s = self.sandbox(policy(API))
        self.pids = self.s.pids()

    def test_confined_roles_can_do_nothing(self):
        for role in ROLES:
            with self.subTest(role):
                pid, st = self.pids[role], status(self.pids[role])
                for field in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
                    self.assertEqual(int(st[field], 16), 0, field)
                self.assertEqual((st["NoNewPrivs"], st["Seccomp"], st["Threads"]), ("1", "2", "1"))
                self.assertEqual(len(set(st["Uid"].split())), 1)
                self.assertNotEqual(st["Uid"].split()[0], "0")
                self.assertNotEqual(st["Gid"].split()[0], "0")
                self.assertEqual(st["Groups"].split(), [])
                self.assertEqual(os.listdir(f"/proc/{pid}/root"), [])
                with open(f"/proc/{pid}/mountinfo") as f:
                    mounts = f.read().splitlines()
                self.assertEqual(len(mounts), 1)
                self.assertIn("ro,nosuid,nodev,noexec", mounts[0])
                with open(f"/proc/{pid}/environ", "rb") as f:
                    self.assertNotIn(b"HOME=", f.read())

    def test_each_role_has_an_id_and_namespaces_of_its_own(self):
        self.assertEqual(len({status(self.pids[r])["Uid"] for r in ROLES}), 3)
        for name in ("mnt", "ipc", "uts"):
            self.assertEqual(len({os.readlink(f"/proc/{self.pids[r]}/ns/{name}") for r in (*ROLES, "supervisor")}), 4)

    def test_no_role_reads_or_writes_the_commands_streams(self):
        for role in (*ROLES, "supervisor"):
            with self.subTest(role):
                self.assertEqual(os.readlink(f"/proc/{self.pids[role]}/fd/0"), "/dev/null")
                self.assertEqual(os.readlink(f"/proc/{self.pids[role]}/fd/1"), "/dev/null")

    def test_a_role_holds_what_it_needs_and_nothing_else(self):
        loop = {"anon_inode:[eventpoll]": 1, "pipe": 2}
        expected = {
            "keeper": {**loop, "socket": 2},
            "recorder": {**loop, "socket": 2, "/memfd:vethguard-ring": 1, "/memfd:vethguard-journal": 1, "anon_inode:[eventfd]": 2,
                         self.s.audit: 2},
            "worker": {**loop, "/memfd:vethguard-ring": 1, "anon_inode:[eventfd]": 2}}
        for role, wanted in expected.items():
            with self.subTest(role):
                held = descriptors(self.pids[role])
                if role == "worker":  # supervisor, keeper, six listeners, the resolver's sockets
                    self.assertIn(held.pop("socket"), range(8, 13))
                self.assertEqual(held, wanted)
        # The gate's namespace, the sandbox's, and the one of the host that it started in.
        self.assertEqual(descriptors(self.pids["supervisor"]).get("net"), 3)

    def test_the_log_is_open_for_append_and_apart_for_reading(self):
        """A descriptor open for reading and writing could be mapped, and old lines be changed."""
        pid, modes = self.pids["recorder"], set()
        for fd in os.listdir(f"/proc/{pid}/fd"):
            if os.readlink(f"/proc/{pid}/fd/{fd}") == self.s.audit:
                with open(f"/proc/{pid}/fdinfo/{fd}") as f:
                    modes.add(int(re.search(r"flags:\s*(\d+)", f.read())[1], 8) & (os.O_ACCMODE | os.O_APPEND))
        self.assertEqual(modes, {os.O_WRONLY | os.O_APPEND, os.O_RDONLY})

    def test_the_supervisor_keeps_what_it_uses(self):
        st = status(self.pids["supervisor"])
        own = int(status(os.getpid())["CapPrm"], 16)  # a container's root may lack some
        for field in ("CapPrm", "CapEff", "CapBnd"):
            self.assertEqual(int(st[field], 16), SUPERVISOR & own, field)
        self.assertEqual((int(st["CapInh"], 16), int(st["CapAmb"], 16)), (0, 0))

    def test_nobody_dumps_core_or_can_be_traced(self):
        for role in (*ROLES, "supervisor", "run", "init"):
            with self.subTest(role):
                # Files of a process that is not dumpable belong to root, whoever it runs as.
                self.assertEqual(os.stat(f"/proc/{self.pids[role]}/mem").st_uid, 0)
                if role not in ("run", "init"):
                    with open(f"/proc/{self.pids[role]}/limits") as f:
                        self.assertRegex(f.read(), r"Max core file size +0 +0 ")


class Voices(Case):
    """A role that was taken over writes to standard error, which is somebody's terminal."""
    WRITES = r"""#!/bin/sh
printf '\033]0;owned\a\033[2Jvethguardd: error: forged \302\233\377\r\n\n' >&2
%s
exec %s
"""

    def copy(self, role, more=""):
        folder = support.LAB.path("voices")
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(os.path.dirname(support.VETHGUARD), folder)
        own = f"{folder}/vethguard-{role}"
        os.rename(own, own + "-own")
        with open(own, "w") as f:
            f.write(self.WRITES % (more, own + "-own"))
        os.chmod(own, 0o755)
        self.addCleanup(shutil.rmtree, folder, True)
        return folder + "/vethguard"

    def test_nothing_a_role_writes_is_obeyed(self):
        for role in ROLES:
            with self.subTest(role):
                s = self.sandbox(policy(API), binary=self.copy(role))
                self.assertEqual(s.sh(f"curl -s -o /dev/null -w '%{{http_code}}' {API}/").out, "200")
                s.close()
                said = s.stderr()
                self.assertIn(f"vethguard-{role}: \\x1b]0;owned\\x07\\x1b[2Jvethguardd: error: forged "
                              "\\xc2\\x9b\\xff\\x0d\n", said)
                self.assertEqual([c for c in said if c != "\n" and not " " <= c <= "~"], [])

    def test_nobody_writes_endlessly(self):
        flood = "(i=0; while [ $i -lt 50000 ]; do echo all work and no play >&2; i=$((i + 1)); done) &"
        s = self.sandbox(policy(API), binary=self.copy("keeper", flood))
        self.assertEqual(s.sh(f"curl -s -o /dev/null -w '%{{http_code}}' {API}/").out, "200")
        s.close()
        self.assertIn("writes too much", s.stderr())
        self.assertLess(len(s.stderr()), 100_000)


class Fence(Case):
    def test_rules_that_somebody_flushed_come_back(self):
        s = self.sandbox(policy(API))
        pid, inside = s.pids()["supervisor"], next(iter(support.descendants(s.pids()["init"])))
        known = (os.readlink("/proc/self/ns/net"), os.readlink(f"/proc/{inside}/ns/net"))
        gate = next(f"/proc/{pid}/fd/{f}" for f in os.listdir(f"/proc/{pid}/fd")
                    if os.readlink(f"/proc/{pid}/fd/{f}").startswith("net:")
                    and os.readlink(f"/proc/{pid}/fd/{f}") not in known)
        rules = sh("nsenter", "--net=" + gate, "nft", "-s", "list", "ruleset")
        sh("nsenter", "--net=" + gate, "nft", "flush", "ruleset")
        event = s.event(FINDING, seconds=15, **{"finding_info.types": ["fence-changed"]})
        self.assertIsNotNone(event)
        self.assertEqual(sh("nsenter", "--net=" + gate, "nft", "-s", "list", "ruleset"), rules)
        self.assertEqual(s.sh(f"curl -s -o /dev/null -w '%{{http_code}}' {API}/").out, "200")


@unittest.skipIf(support.ASAN, "the shadow memory is most of the address space")
class Secrets(Case):
    POLICY = f"{{to: '{API}', credential: api}}"

    def test_a_value_is_in_locked_pages_of_keeper_and_worker_only(self):
        s = self.sandbox(policy(self.POLICY, credentials=file_credential()))
        self.assertEqual(s.sh(f"curl -s -o /dev/null -w '%{{http_code}}' {API}/status/204").out[:1], "2")
        for role, pid in s.pids().items():
            with self.subTest(role):
                found = places(pid, SECRET.encode())
                self.assertTrue(bool(found) == (role in ("keeper", "worker")), found)
                self.assertEqual([f for f in found if not (f[0] and f[1])], [])

    def test_a_value_is_gone_after_its_time(self):
        helper = support.LAB.write("helper.sh", f"#!/bin/sh\necho {SECRET}\n", 0o755)
        s = self.sandbox(policy(self.POLICY, credentials=f"  api: {{source: 'exec:[{helper}]', inject: bearer, ttl: 1s}}\n"))
        self.assertEqual(s.sh(f"curl -s -o /dev/null -w '%{{http_code}}' {API}/status/204").out[:1], "2")
        pids = [s.pids()[r] for r in ("keeper", "worker", "supervisor")]
        self.assertTrue(wait_until(lambda: not any(places(p, SECRET.encode()) for p in pids), 6 * SLOW, 0.3),
                        [places(p, SECRET.encode()) for p in pids])

    def test_a_variable_is_nowhere_else(self):
        s = self.sandbox(policy(self.POLICY, credentials="  api: {source: 'env:LAB_KEY', inject: bearer}\n"),
                         env={"LAB_KEY": SECRET})
        self.assertEqual(s.sh(f"curl -s -o /dev/null -w '%{{http_code}}' {API}/status/204").out[:1], "2")
        self.assertEqual(s.sh("echo $LAB_KEY; cat /proc/*/environ | tr '\\0' '\\n' | grep LAB_KEY").out.strip(), "")
        for role in ("run", "init", "supervisor", "recorder"):
            with self.subTest(role):
                self.assertEqual(places(s.pids()[role], SECRET.encode()), [])
                with open(f"/proc/{s.pids()[role]}/environ", "rb") as f:
                    self.assertNotIn(SECRET.encode(), f.read())


ESCAPES = r"""
import ctypes, errno, os, socket
libc = ctypes.CDLL(None, use_errno=True)
def refused(name, *args):
    ctypes.set_errno(0)
    r = libc.syscall(*args)
    if r >= 0: print("SUCCEEDED:", name, r)
CHAR = ctypes.c_char_p
refused("request_key", 249, CHAR(b"dns_resolver"), CHAR(b"leak.lab.test"), CHAR(b""), 0)
refused("keyctl", 250, 0, -3, 0)
refused("add_key", 248, CHAR(b"user"), CHAR(b"x"), CHAR(b"y"), 1, -3)
refused("io_uring", 425, 1, 0)
refused("umount /etc/resolv.conf", 166, CHAR(b"/etc/resolv.conf"), 2)
refused("umount /proc", 166, CHAR(b"/proc"), 2)
refused("pivot_root", 155, CHAR(b"/"), CHAR(b"/"))
refused("open_tree", 428, -100, CHAR(b"/"), 1)
refused("fsopen", 430, CHAR(b"sysfs"), 0)
refused("init_module", 175, 0, 0, CHAR(b""))
refused("bpf", 321, 5, 0, 0)
refused("acct", 163, 0)
refused("sethostname", 170, CHAR(b"x"), 1)
refused("reboot", 169, 0xfee1dead, 672274793, 0, 0)
for ns in ("user", "net", "mnt", "ipc", "pid"):
    try:
        libc.setns(os.open("/proc/1/ns/" + ns, os.O_RDONLY), 0); print("SUCCEEDED: opening", ns, "of init")
    except OSError: pass
for path in ("/proc/1/root/etc/passwd", "/proc/1/mem", "/proc/1/environ", "/proc/1/fd/0"):
    try: os.open(path, os.O_RDONLY); print("SUCCEEDED:", path)
    except OSError: pass
for path in ("/proc/sys/kernel/core_pattern", "/proc/sysrq-trigger", "/sys/kernel/uevent_helper"):
    try: os.open(path, os.O_WRONLY); print("SUCCEEDED:", path)
    except OSError: pass
for family in (40, 31, 29, 30, 44, 15, 16 + 0x10000):
    try: socket.socket(family, socket.SOCK_DGRAM); print("SUCCEEDED: family", family)
    except OSError: pass
if libc.ptrace(16, 1, 0, 0) == 0: print("SUCCEEDED: ptrace of init")
if os.path.isdir("/var/spool") and os.listdir("/var/spool"): print("SUCCEEDED: /var/spool is seen")
print("done")
"""


class Inside(Case):
    def escapes(self, **kw):
        s = self.sandbox(policy(API), **kw)
        self.assertEqual(s.run(PYTHON, "-c", ESCAPES).out, "done\n")
        return s

    def test_root_reaches_nothing_around_its_namespaces(self):
        s = self.escapes(user="root")
        st = s.sh("cat /proc/self/status").out
        self.assertEqual(int(re.search(r"CapEff:\s*(\w+)", st)[1], 16) & (1 << 21 | 1 << 16 | 1 << 17 | 1 << 27), 0)

    def test_nor_does_a_user(self):
        self.escapes(user="nobody")

    def test_nor_root_of_a_nested_namespace(self):
        s = self.sandbox(policy(API), user="root")
        for command in ("umount /etc/resolv.conf", "umount -l /proc", "umount -l /sys", "mount --bind / /mnt",
                        "mount -t sysfs none /mnt", "mount -o remount,rw /proc/sys",
                        "mount -t proc none /mnt", "nsenter -t 1 -n true"):
            with self.subTest(command):
                self.assertNotEqual(s.run("unshare", "-Urm", "sh", "-c", command).status, 0)
        # A sandbox of its own is as guarded as the one it is in.
        r = s.run("unshare", "-Urn", "sh", "-c", "ip link; cat /sys/class/net/eth0/address")
        self.assertNotIn("eth0", r.out)

    def test_the_gate_cannot_be_named_over_netlink(self):
        s = self.sandbox(policy(API), user="root")
        # The id by which the kernel names the peer's namespace gives no right over it.
        r = s.py("import struct\n"
                 "s = socket.socket(16, 3, 0)\n"
                 "body = struct.pack('=BxHiII', 0, 0, 0, 0, 0) + struct.pack('=HHi', 8, 46, 0)\n"
                 "s.send(struct.pack('=IHHII', 16 + len(body), 18, 0x305, 1, 0) + body)\n"
                 "a = s.recv(65536); print(struct.unpack('=IHHIIi', a[:20])[1], struct.unpack('=i', a[16:20])[0])")
        self.assertEqual(r.out.split(), ["3", "-13"])  # NLMSG_DONE, EACCES

    def test_no_error_reads_out_a_file_that_the_user_may_not_read(self):
        path = support.LAB.write("closed.yaml", "vethguard: 1\ntop-secret-word: 1\n", 0o600)
        command = [support.VETHGUARD, "run", "--policy", path, "--", "true"]
        own = subprocess.run(command, capture_output=True, text=True)
        self.assertIn("top-secret-word", own.stderr)
        sudo = {**os.environ, "SUDO_UID": "65534", "SUDO_GID": "65534"}
        other = subprocess.run(command, capture_output=True, text=True, env=sudo)
        self.assertEqual(other.returncode, 125)
        self.assertNotIn("secret", other.stderr)
        self.assertIn("You may not read it", other.stderr)
        support.LAB.write("closed.yaml", "vethguard: 1\n", 0o600)  # the operator's, and fit for use
        self.assertEqual(subprocess.run(command, capture_output=True, env=sudo).returncode, 0)
        os.chmod(path, 0o644)
        support.LAB.write("closed.yaml", "vethguard: 1\nopen-word: 1\n", 0o644)
        self.assertIn("open-word", subprocess.run(command, capture_output=True, text=True, env=sudo).stderr)

    def test_an_audit_file_in_a_missing_directory_is_an_error(self):
        r = self.run_vethguard(policy(API), ["true"], options=["--audit", support.LAB.path("missing/x.jsonl")])
        self.assertEqual(r.status, 125)
        self.assertIn(f"the directory {support.LAB.path('missing')} has to exist first", r.stderr)
        self.assertFalse(os.path.exists(support.LAB.path("missing")))
