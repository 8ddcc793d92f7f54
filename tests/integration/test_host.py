# SPDX-License-Identifier: Apache-2.0
"""The host's programs, reached without a packet: Unix sockets are judged by their file, however it is reached and whenever
it was made; devices are those of a container. What programs inside do among themselves works as ever."""
import json
import os
import shutil
import socket
import stat
import subprocess
import sys
import unittest

import sockets_inside
import support
from support import PYTHON, SLOW, Case, policy, sh

NOTHING = "vethguard: 1\nname: nothing\n"
INSIDE = os.path.join(support.HERE, "sockets_inside.py")
ROOTLESS = ["setpriv", "--reuid", "1000", "--regid", "1000", "--clear-groups"]
REFUSED = {"ECONNREFUSED", "EACCES", "ENOENT"}
KINDS = sockets_inside.KINDS


class Base(Case):
    PREFIX, USER = [], "root"

    def setUp(self):
        super().setUp()
        self.folder = support.LAB.path("host")
        shutil.rmtree(self.folder, ignore_errors=True)
        os.makedirs(self.folder)
        os.chmod(self.folder, 0o777)
        os.chmod(support.LAB.dir, 0o777)
        self.addCleanup(os.chmod, support.LAB.dir, 0o755)
        self.sockets = []

    def start(self, **kw):
        return self.sandbox(NOTHING, prefix=self.PREFIX, user=self.USER, **kw)

    def listen(self, kind, name):
        """A socket of outside: one that hears whoever comes. Relative names are in the folder."""
        s = socket.socket(socket.AF_UNIX, KINDS[kind])
        self.addCleanup(s.close)
        here = os.getcwd()
        os.chdir(self.folder)
        s.bind(name)
        os.chmod(name, 0o777)
        os.chdir(here)
        if kind != "datagram":
            s.listen(8)
        s.setblocking(False)
        self.sockets.append((name, s))
        return f"{kind}={os.path.join(self.folder, name)}"

    def assert_nobody_came(self):
        for name, s in self.sockets:
            with self.subTest(name), self.assertRaises(BlockingIOError):
                s.recv(100) if s.type == socket.SOCK_DGRAM else s.accept()

    def inside(self, box, *arguments, prefix=(), timeout=60):
        done = box.run(*prefix, PYTHON, INSIDE, *arguments, timeout=timeout)
        self.assertEqual(done.status, 0, done)
        return done.json()

    def assert_all_refused(self, found):
        self.assertTrue(found)
        self.assertEqual({k: v for k, v in found.items() if v not in REFUSED}, {})


class Sockets(Base):
    def test_bound_before(self):
        named = [self.listen(kind, f"before-{kind}") for kind in KINDS]
        box = self.start()
        self.assert_all_refused(self.inside(box, "reach", *named))
        self.assert_nobody_came()

    def test_bound_while_it_runs(self):
        box = self.start()
        named = [self.listen(kind, f"later-{kind}") for kind in KINDS]
        self.assert_all_refused(self.inside(box, "reach", *named))
        self.assert_nobody_came()

    def test_renamed_or_linked(self):
        named = []
        for kind in KINDS:
            self.listen(kind, f"moved-{kind}")
            os.rename(f"{self.folder}/moved-{kind}", f"{self.folder}/new-{kind}")
            os.link(f"{self.folder}/new-{kind}", f"{self.folder}/second-{kind}")
            named += [f"{kind}={self.folder}/new-{kind}", f"{kind}={self.folder}/second-{kind}"]
        box = self.start()
        self.assert_all_refused(self.inside(box, "reach", *named))
        for kind in KINDS:  # and again, by another name
            os.rename(f"{self.folder}/new-{kind}", f"{self.folder}/third-{kind}")
        self.assert_all_refused(self.inside(box, "reach", *(f"{k}={self.folder}/third-{k}" for k in KINDS)))
        self.assert_nobody_came()

    def test_of_another_network_namespace(self):
        """Its list of sockets is another one."""
        code = ("import socket, os, sys, time\n"
                f"os.chdir({self.folder!r})\n"
                "all = []\n"
                f"for kind, number in {({k: int(v) for k, v in KINDS.items()})!r}.items():\n"
                " s = socket.socket(socket.AF_UNIX, number); s.bind('ns-' + kind); os.chmod('ns-' + kind, 0o777)\n"
                " if number != 2: s.listen(4)\n"
                " s.setblocking(False); all.append(s)\n"
                "print('ready', flush=True); sys.stdin.readline()\n"
                "for s in all:\n"
                " try: s.recv(10) if s.type == 2 else s.accept(); print('came')\n"
                " except BlockingIOError: print('nobody')\n")
        with subprocess.Popen(["unshare", "-n", sys.executable, "-c", code], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, text=True) as outside:
            self.assertEqual(outside.stdout.readline(), "ready\n")
            box = self.start()
            self.assert_all_refused(self.inside(box, "reach", *(f"{k}={self.folder}/ns-{k}" for k in KINDS)))
            self.assertEqual(outside.communicate("\n")[0].split(), ["nobody"] * 3)

    def test_more_than_a_list_holds(self):
        """/proc/net/unix has thousands of others first."""
        code = ("import resource, socket, sys, os\n"
                "resource.setrlimit(resource.RLIMIT_NOFILE, (8192, 8192))\n"
                f"os.mkdir({self.folder!r} + '/many')\n"
                f"all = [socket.socket(socket.AF_UNIX) for _ in range(4200)]\n"
                f"[s.bind({self.folder!r} + '/many/%d' % i) for i, s in enumerate(all)]\n"
                "print('ready', flush=True); sys.stdin.readline()")
        with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as many:
            self.assertEqual(many.stdout.readline(), "ready\n")
            named = [self.listen(kind, f"beyond-{kind}") for kind in KINDS]
            box = self.start()
            self.assert_all_refused(self.inside(box, "reach", *named))
            self.assert_nobody_came()
            many.communicate("\n")

    def test_from_mounts_made_inside(self):
        box = self.start()
        named = [self.listen(kind, f"mounted-{kind}") for kind in KINDS]
        mnt = self.folder + "/mnt"
        os.mkdir(mnt)
        os.chmod(mnt, 0o777)
        moved = [n.replace(self.folder, mnt) for n in named]
        for script in (f"mount --bind {self.folder} {mnt}",
                       f"mount -t tmpfs none {mnt} && mkdir {mnt}/a {mnt}/b {mnt}/c && mount -t overlay none -o "
                       f"lowerdir={self.folder},upperdir={mnt}/a,workdir={mnt}/b {mnt}/c && mount --move {mnt}/c /mnt "
                       f"&& mount --bind /mnt {mnt}"):
            with self.subTest(script):
                done = box.sh(f"unshare -Urm sh -c '{script} && ls {mnt}/mounted-stream && "
                              f"{PYTHON} {INSIDE} reach {' '.join(moved)}'")
                if done.status != 0 and "verlay" in script:
                    continue  # this kernel or file system permits no overlay here
                self.assertEqual(done.status, 0, done)
                self.assert_all_refused(json.loads(done.out.split("\n", 1)[1]))
        self.assert_nobody_came()

    def test_from_nested_namespaces(self):
        box = self.start()
        named = [self.listen(kind, f"nested-{kind}") for kind in KINDS]
        for prefix in (["unshare", "-Urn"], ["unshare", "-Urpf", "--mount-proc"], ["unshare", "-Uripfum"]):
            with self.subTest(prefix):
                if box.run(*prefix, "true").status != 0:
                    continue
                self.assert_all_refused(self.inside(box, "reach", *named, prefix=prefix))
        self.assert_nobody_came()

    def test_with_threads_and_shared_tables(self):
        box = self.start()
        named = [self.listen(kind, f"shared-{kind}") for kind in KINDS]
        for around in ("in_thread", "with_shared_table"):
            done = box.py(f"import sockets_inside as i\nprint(json.dumps(i.{around}(lambda: i.reach(*{named!r}))))")
            self.assertEqual(done.status, 0, done)
            self.assert_all_refused(done.json())
        self.assert_nobody_came()

    def test_whoever_changes_what_was_judged(self):
        """Address, path and descriptor change all the time, by other threads and processes."""
        box = self.start()
        named = [self.listen(kind, f"race-{kind}") for kind in ("stream", "datagram")]
        found = self.inside(box, "races", "6" if support.LONG else "2", *named, timeout=90)
        self.assertEqual(len(found), 6)
        for name, tries in found.items():
            with self.subTest(name):
                self.assertGreater(sum(tries.values()), 50, found)
                if "descriptor" not in name:
                    self.assertGreater(tries.get("done", 0), 0, found)
        self.assert_nobody_came()

    def test_a_socket_handed_in_opens_no_other(self):
        """Standard input is a connection that a service outside accepted: it bears that service's path."""
        self.listen("stream", "service")
        path = f"{self.folder}/service"
        client = socket.socket(socket.AF_UNIX)
        client.connect(path)
        accepted, _ = self.sockets[0][1].accept()
        code = ("import socket\ns = socket.socket(socket.AF_UNIX)\n"
                f"try: s.connect({path!r}); print('reached')\nexcept OSError as e: print(e.errno)")
        done = subprocess.run([*self.PREFIX, support.VETHGUARD, "run", "--policy", support.LAB.write("n.yaml", NOTHING),
                               "--config", support.LAB.path("config.yaml"), "--", PYTHON, "-c", code],
                              stdin=accepted, capture_output=True, text=True, timeout=30 * SLOW)
        self.assertEqual(done.stdout, "111\n", done)
        self.assert_nobody_came()

    def test_names_without_a_path_by_a_socket_of_outside(self):
        """It was made in the host's network namespace, where such names are the host's."""
        s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.addCleanup(s.close)
        s.bind("\0vethguard-lab-of-the-host")
        s.setblocking(False)
        mine, given = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.addCleanup(mine.close)
        self.addCleanup(given.close)
        code = ("import socket\ns = socket.socket(fileno=0)\n"
                "for f in (lambda: s.sendto(b'x', '\\0vethguard-lab-of-the-host'), lambda: s.sendmsg([b'x'], [], 0, "
                "'\\0vethguard-lab-of-the-host'), lambda: s.connect('\\0vethguard-lab-of-the-host')):\n"
                " try: f(); print('reached')\n except OSError as e: print(e.errno)")
        done = subprocess.run([*self.PREFIX, support.VETHGUARD, "run", "--policy", support.LAB.write("n.yaml", NOTHING),
                               "--config", support.LAB.path("config.yaml"), "--", PYTHON, "-c", code],
                              stdin=given, capture_output=True, text=True, timeout=30 * SLOW)
        self.assertEqual(done.stdout.split(), ["111"] * 3, done)
        with self.assertRaises(BlockingIOError):
            s.recv(10)

    def test_no_supervisor_of_its_own_goes_before_ours(self):
        """SECCOMP_FILTER_FLAG_NEW_LISTENER: its answers would be the ones that count."""
        box = self.start()
        done = box.py("import ctypes, errno\nlibc = ctypes.CDLL(None, use_errno=True)\nlibc.prctl(38, 1, 0, 0, 0)\n"
                      "code = ctypes.create_string_buffer(bytes([6, 0, 0, 0, 0, 0, 0xff, 0x7f]))\n"
                      "class P(ctypes.Structure): _fields_ = [('n', ctypes.c_ushort), ('p', ctypes.c_void_p)]\n"
                      "p = P(1, ctypes.addressof(code))\n"
                      "print(libc.syscall(317, 1, 8, ctypes.byref(p)), errno.errorcode[ctypes.get_errno()], "
                      "libc.syscall(317, 1, 0, ctypes.byref(p)))")
        self.assertEqual(done.out.split(), ["-1", "EBUSY", "0"], done)

    def test_init_cannot_be_ended_from_inside(self):
        box = self.start()
        named = [self.listen(kind, f"kill-{kind}") for kind in KINDS]
        box.py("[os.kill(1, s) for s in (9, 11, 15, 19)]")
        self.assert_all_refused(self.inside(box, "reach", *named))
        self.assert_nobody_came()


class SocketsRootless(Sockets):
    PREFIX, USER = ROOTLESS, None


class Own(Base):
    """Sockets among the sandbox's own programs."""
    EXPECTED = {"stream": ["ab", "fd", "through the pipe"], "seqpacket": ["ab", "fd", "through the pipe"],
                "datagram": ["to", "msg", "mm", "connected"]}

    def expected(self):
        found = {}
        for where in ("alone", "threads", "shared"):
            for kind, words in self.EXPECTED.items():
                found.update({f"{kind} path {where}": words, f"{kind} abstract {where}": words, f"pair {kind} {where}": "pair"})
            found.update({f"{name} {where}": True for name in ("blocked_stream", "blocked_datagram", "interrupted", "broken_pipe")})
            found[f"tcp {where}"] = "tcpudp16 ECONNREFUSED"
        return found

    def test_every_kind(self):
        box = self.start()
        os.mkdir(self.folder + "/own")
        os.chmod(self.folder + "/own", 0o777)
        self.assertEqual(self.inside(box, "own", self.folder + "/own"), self.expected())

    def test_what_is_closed_after_a_call_is_closed(self):
        """After the call its caller holds no socket any more: the port is free, for one thread and for several."""
        box = self.start()
        code = ("def rebind():\n"
                " for n in range(300):\n"
                "  s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
                "  s.bind(('127.0.0.1', 5000))\n"
                "  s.sendto(b'x', ('127.0.0.1', 5001))\n"
                "  s.connect(('127.0.0.1', 5001))\n"
                "  s.close()\n"
                "r = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\nr.bind(('127.0.0.1', 5001))\n"
                "rebind()\nimport threading\nstop = threading.Event()\nt = threading.Thread(target=stop.wait)\nt.start()\n"
                "try: rebind()\nfinally: stop.set()\nprint('fine')")
        done = box.py(code)
        self.assertEqual((done.status, done.out), (0, "fine\n"), done)

    def test_every_kind_in_a_nested_namespace(self):
        box = self.start()
        os.mkdir(self.folder + "/own")
        os.chmod(self.folder + "/own", 0o777)
        found = self.inside(box, "own", self.folder + "/own", prefix=["unshare", "-Urn", "sh", "-c",
                                                                      "ip link set lo up; exec \"$@\"", "sh"])
        self.assertEqual(found, self.expected())

    def test_between_namespaces_and_roots(self):
        """As a container engine inside and its clients."""
        box = self.start()
        done = box.py(
            "import threading\n"
            f"path = {self.folder!r} + '/engine.sock'\n"
            "s = socket.socket(socket.AF_UNIX); s.bind(path); s.listen(4)\n"
            "client = \"import socket,sys; s=socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]); print(s.recv(9).decode())\"\n"
            "ends = []\n"
            "def serve():\n"
            " while True: c, _ = s.accept(); c.send(b'served'); c.close()\n"
            "threading.Thread(target=serve, daemon=True).start()\n"
            f"for words in ([], ['unshare', '-Urn'], ['unshare', '-Urmpf'], ['unshare', '-Urm', '--root=/', '--wd={self.folder}']):\n"
            " for name in (path, 'engine.sock'):\n"
            "  r = subprocess.run([*words, sys.executable, '-c', client, name], cwd=os.path.dirname(path), capture_output=True,"
            " text=True)\n"
            "  ends.append(r.stdout.strip() or r.stderr[-300:])\n"
            "print(json.dumps(ends))")
        self.assertEqual(done.json(), ["served"] * 8, done)

    def test_many_threads(self):
        box = self.start()
        done = box.py(
            "import threading\n"
            f"path = {self.folder!r} + '/many.sock'\n"
            "s = socket.socket(socket.AF_UNIX); s.bind(path); s.listen(5)\n"
            "count = 0\n"
            "def client():\n"
            " global count\n"
            " c = socket.socket(socket.AF_UNIX); c.connect(path); c.sendmsg([b'x']); c.recv(1); count += 1\n"
            "ts = [threading.Thread(target=client) for _ in range(1000)]\n"
            "[t.start() for t in ts]\n"
            "for _ in ts: c, _ = s.accept(); c.recv(1); c.sendmsg([b'y']); c.close()\n"
            "[t.join(30) for t in ts]\nprint(count)", timeout=90)
        self.assertEqual(done.out.strip(), "1000", done)

    def test_multiprocessing(self):
        box = self.start()
        path = support.LAB.write("multi.py", "import multiprocessing as m, os\n"
                                 "def f(x): return x * x\n"
                                 "if __name__ == '__main__':\n"
                                 "  for how in ('fork', 'spawn', 'forkserver'):\n"
                                 "    with m.get_context(how).Pool(3) as p: print(sum(p.map(f, range(10))))\n"
                                 "  with m.Manager() as g: d = g.dict(); d['a'] = 1; print(d['a'])\n", 0o644)
        self.assertEqual(box.run(PYTHON, path).out.split(), ["285"] * 3 + ["1"])

    @unittest.skipUnless(shutil.which("tmux"), "no tmux here")
    def test_tmux(self):
        box = self.start()
        done = box.sh(f"export TMUX_TMPDIR={self.folder}; unset TMUX; tmux -f /dev/null new-session -d 'echo from tmux; sleep 20' "
                      "&& sleep 1 && tmux capture-pane -p && tmux kill-server")
        self.assertIn("from tmux", done.out, done)

    @unittest.skipUnless(shutil.which("ssh-agent"), "no ssh-agent here")
    def test_ssh_agent(self):
        box = self.start()
        done = box.sh(f"cd {self.folder} && ssh-keygen -q -t ed25519 -N '' -f key && eval $(ssh-agent -a {self.folder}/agent) && "
                      "ssh-add -q key && ssh-add -l; kill $SSH_AGENT_PID")
        self.assertIn("ED25519", done.out, done)


class OwnRootless(Own):
    PREFIX, USER = ROOTLESS, None


class Devices(Base):
    USUAL = {"fd", "full", "null", "ptmx", "pts", "random", "shm", "stderr", "stdin", "stdout", "tty", "urandom", "zero"}

    def test_those_of_a_container(self):
        box = self.start()
        done = box.py("print(json.dumps([os.listdir('/dev'), os.listdir('/dev/pts'), os.listdir('/dev/shm')]))")
        self.assertEqual(set(done.json()[0]), self.USUAL)
        self.assertEqual(done.json()[1:], [["ptmx"], []])

    def test_no_device_by_any_name(self):
        """kmsg, serial lines, disks, memory; by their own name, and by a node that lies elsewhere."""
        nodes = {"kmsg": (1, 11), "mem": (1, 1), "serial": (4, 64), "disk": (254, 0), "fuse": (10, 229), "tun": (10, 200)}
        for name, (major, minor) in nodes.items():
            kind = stat.S_IFBLK if name == "disk" else stat.S_IFCHR
            os.mknod(f"{self.folder}/{name}", kind | 0o666, os.makedev(major, minor))
            os.chmod(f"{self.folder}/{name}", 0o666)
        box = self.start()
        done = box.py("r = {}\n"
                      f"for p in {[f'{self.folder}/{n}' for n in nodes]!r} + ['/dev/kmsg', '/dev/ttyS0', '/dev/mem', '/dev/fuse']:\n"
                      " for flags in (os.O_RDONLY, os.O_WRONLY, os.O_RDWR):\n"
                      "  try: os.open(p, flags | os.O_NONBLOCK); r[p] = 'opened'\n"
                      "  except OSError as e: r[p] = e.errno\n"
                      "print(json.dumps(r))")
        self.assertEqual(set(done.json().values()), {2, 13}, done)
        self.assertEqual({v for k, v in done.json().items() if k.startswith(self.folder)}, {13})
        for command in ("mount -o remount,dev /", "mount -o remount,bind,dev /", f"mount --bind {self.folder} /mnt && "
                        "mount -o remount,bind,dev /mnt && exec 3</mnt/kmsg", "mknod /tmp/vg-node c 1 11",
                        "mount -t devtmpfs none /mnt", "umount /dev", "umount -l /dev"):
            with self.subTest(command):
                self.assertNotEqual(box.run("unshare", "-Urm", "sh", "-c", command).status, 0)
                self.assertNotEqual(box.sh(command).status, 0)

    def test_shared_memory_is_the_sandboxs_own(self):
        with open("/dev/shm/vethguard-lab-outside", "w") as f:
            f.write("outside")
        self.addCleanup(os.unlink, "/dev/shm/vethguard-lab-outside")
        self.addCleanup(lambda: os.path.exists("/dev/shm/vethguard-lab-inside") and os.unlink("/dev/shm/vethguard-lab-inside"))
        box = self.start()
        self.assertEqual(box.sh("ls /dev/shm; echo x > /dev/shm/vethguard-lab-inside; ls /dev/shm").out, "vethguard-lab-inside\n")
        self.assertFalse(os.path.exists("/dev/shm/vethguard-lab-inside"))

    def test_no_terminal_of_others(self):
        master, slave = os.openpty()
        self.addCleanup(os.close, master)
        self.addCleanup(os.close, slave)
        name = os.ttyname(slave)
        box = self.start()
        self.assertNotEqual(box.sh(f"echo x > {name}").status, 0)
        done = box.py("a, b = os.openpty(); print(os.ttyname(b)); os.write(b, b'own'); print(os.read(a, 9))")
        self.assertEqual(done.out.split(), ["/dev/pts/0", "b'own'"])

    def test_devices_that_are_named(self):
        done = self.device("--device", "/dev/kmsg", "--", "sh", "-c", "test -c /dev/kmsg && ls /dev")
        self.assertEqual(set(done.stdout.split()), self.USUAL | {"kmsg"}, done)
        if os.path.isdir("/dev/net"):
            done = self.device("--device", "/dev/net", "--device", "/dev/net/tun", "--", "ls", "/dev/net")
            self.assertEqual(done.returncode, 125, done)
            done = self.device("--device", "/dev/net/tun", "--", "ls", "/dev/net")
            self.assertEqual(done.stdout, "tun\n", done)

    def device(self, *words):
        return subprocess.run([*self.PREFIX, support.VETHGUARD, "run", "--policy", support.LAB.write("n.yaml", NOTHING),
                               "--config", support.LAB.path("config.yaml"), *words], stdin=subprocess.DEVNULL,
                              capture_output=True, text=True, timeout=30 * SLOW)

    def test_devices_that_are_none(self):
        for path in ("/dev/vethguard-none", "/dev/fd/0", "/dev/../etc/passwd", "/etc/passwd", "kmsg", "/dev/", "/dev",
                     "/dev/pts/0", "/dev/shm", "/dev//null", "/dev/./null", "/dev/stdin", ""):
            with self.subTest(path):
                done = self.device("--device", path, "--", "true")
                self.assertEqual(done.returncode, 125, done)
                self.assertIn("--device", done.stderr)

    def test_the_callers_terminal(self):
        """It has its name, its size and its signals; what is inside has terminals of its own besides."""
        script = ("tty; stty size; tty </dev/tty; ls /dev/pts | tr '\\n' ' '; "
                  "python3 -c \"import os; a, b = os.openpty(); print(os.ttyname(b))\"; echo to the terminal >/dev/tty")
        master, slave = os.openpty()
        self.addCleanup(os.close, master)
        name = os.ttyname(slave)
        with subprocess.Popen([*self.PREFIX, "setsid", "-c", support.VETHGUARD, "run", "--policy",
                               support.LAB.write("n.yaml", NOTHING), "--config", support.LAB.path("config.yaml"), "--",
                               "sh", "-c", "stty rows 33 cols 77; " + script], stdin=slave, stdout=slave, stderr=slave) as p:
            os.close(slave)
            said = b""
            while True:
                try:
                    said += os.read(master, 4096)
                except OSError:
                    break
            self.assertEqual(p.wait(30 * SLOW), 0, said)
        text = said.decode().replace("\r", "")
        self.assertIn(f"{name}\n33 77\n", text)
        self.assertIn("to the terminal\n", text)
        number = os.path.basename(name)
        self.assertIn(f"{number} ptmx" if number < "p" else "ptmx", text)
        self.assertIn("/dev/pts/", text.split("ptmx", 1)[1])


class DevicesRootless(Devices):
    PREFIX, USER = ROOTLESS, None


if __name__ == "__main__":
    unittest.main()
