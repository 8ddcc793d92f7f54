# SPDX-License-Identifier: Apache-2.0
"""A Unix socket as a sandbox's only way out: bubblewrap without a network, curl, socat and Python through it; its file; and what
becomes of it when workers and daemons die or are replaced. SOCKS5 on the proxy port of a link, too."""
import concurrent.futures
import contextlib
import json
import os
import random
import signal
import socket
import stat
import subprocess
import sys
import time
import unittest

import support
import test_control
import test_upgrade
from daemon import Daemon
from lab import EVIL4, HOST4, ORIGIN4, ORIGIN6
from support import HTTP, LIFECYCLE, NETWORK, PACE, SECRET, SLOW, VETHGUARD, file_credential, policy, wait_until

RULES = ("{to: 'https://api.lab.test', methods: [GET], credential: api}", "http://plain.lab.test", "tcp://udp.lab.test:1234")
NOBODY = 65534
NOT_ALLOWED = "(2)"  # curl tells a SOCKS reply's number


class Socketed(unittest.TestCase):
    """A daemon, and a sandbox whose only way out is a socket."""

    def setUp(self):
        self.dir = support.LAB.path(f"sockets-{time.monotonic_ns()}")
        os.mkdir(self.dir, 0o755)
        self.path = os.path.join(self.dir, "out.sock")
        self.policy = support.LAB.write(f"sockets-{time.monotonic_ns()}.yaml", policy(*RULES, credentials=file_credential()))
        self.daemon = self.make_daemon()
        self.addCleanup(self.daemon.end)
        self.box = self.attach()
        self.ca = os.path.join(self.daemon.dir, "ca.pem")
        with open(os.path.join(self.daemon.data, "ca", "root.pem")) as f:
            pem = f.read()
        with open(self.ca, "w") as f:
            f.write(pem)

    def make_daemon(self):
        return Daemon()

    def attach(self, name="one", path=None, **listen):
        return self.daemon.attach(name=name, policy=self.policy, listen={"path": path or self.path, **listen})

    def refuse(self, listen, status, *words, **more):
        got, _, answer = self.daemon.call("POST", "/v1/sandboxes", {"name": "two", "policy": self.policy, "listen": listen, **more})
        self.assertEqual(got, status, answer)
        for word in words:
            self.assertIn(word, json.dumps(answer))
        self.assertEqual(self.daemon.call("GET", "/v1/sandboxes/two")[0], 404)
        return answer

    def show(self, name="one"):
        return self.daemon.call("GET", f"/v1/sandboxes/{name}")[2]

    def bwrap(self, *argv, **kw):
        """A command of a sandbox that has no network card, and of the files outside may write none."""
        return subprocess.run(["bwrap", "--unshare-net", "--unshare-pid", "--die-with-parent", "--ro-bind", "/", "/", "--dev", "/dev",
                               "--proc", "/proc", *argv], capture_output=True, text=True, timeout=60 * SLOW, **kw)

    def curl(self, *argv, path=None, seconds=10):
        return self.bwrap("curl", "-sS", "-m", str(seconds * PACE), "--cacert", self.ca, "--proxy",
                          f"socks5h://localhost{path or self.path}", *argv)

    def asks(self, **kw):
        r = self.curl("https://api.lab.test/whoami", **kw)
        return r.returncode == 0 and json.loads(r.stdout).get("authenticated") is True

    def assert_served(self, **kw):
        self.assertTrue(wait_until(lambda: self.asks(**kw), 10 * SLOW), f"{self.daemon.stderr()} {self.show()}")

    def inode(self):
        return os.lstat(self.path).st_ino

    def left(self):
        return {d: os.listdir(os.path.join(self.daemon.state, d)) for d in ("sandboxes", "netns", "names")}

    def assert_nothing_left(self):
        self.assertTrue(wait_until(lambda: not any(self.left().values()) and not os.path.lexists(self.path), 10 * SLOW),
                        (self.left(), os.listdir(self.dir)))


class Ways(Socketed):
    def test_socks(self):
        self.assert_served()
        r = self.curl("-o", "/dev/null", "-w", "%{http_code}", "-X", "DELETE", "https://api.lab.test/x")
        self.assertEqual(r.stdout, "403", r)
        r = self.curl("http://plain.lab.test/x")
        self.assertEqual((r.returncode, json.loads(r.stdout)["path"]), (0, "/x"), r)
        for url in ("https://evil.lab.test/", f"http://{EVIL4}/", f"http://{ORIGIN4}/", f"http://[{ORIGIN6}]/", f"http://{HOST4}:22/",
                    "http://169.254.169.254/latest/", "http://127.0.0.1:80/", "http://[::1]/", "https://api.lab.test:8443/"):
            r = self.curl(url)
            self.assertEqual(r.returncode, 97, (url, r))
            self.assertIn(NOT_ALLOWED, r.stderr, url)
        event = self.daemon.event(HTTP, action_id=1, **{"http_request.url.path": "/whoami"})
        self.assertEqual((event["src_endpoint"], event["dst_endpoint"]["hostname"]), ({"name": self.path}, "api.lab.test"), event)
        self.assertEqual(event["proxy_endpoint"], {"name": "vethguard"})
        event = self.daemon.event(NETWORK, action_id=2, **{"dst_endpoint.hostname": "evil.lab.test"})
        self.assertEqual((event["src_endpoint"], event["dst_endpoint"]["port"]), ({"name": self.path}, 443), event)
        self.assertIsNotNone(self.daemon.event(NETWORK, action_id=2, **{"dst_endpoint.ip": "169.254.169.254"}))
        with open(self.daemon.audit) as f:
            self.assertNotIn(SECRET, f.read())

    def test_vethguard_answers(self):
        for url in ("https://vethguard.internal/policy", "http://vethguard.internal/policy"):
            r = self.curl(url)
            self.assertIn("policy", json.loads(r.stdout), r)

    def test_there_is_no_other_way(self):
        """The sandbox has neither a route nor a name server, and sees no other socket of vethguard's."""
        for url in ("https://api.lab.test/", f"http://{EVIL4}/", f"http://[{ORIGIN6}]/"):
            r = self.bwrap("curl", "-sS", "-m", "3", url)
            self.assertNotEqual(r.returncode, 0, r)
            self.assertEqual(r.stdout, "")
        r = self.bwrap("ip", "-o", "link")
        self.assertEqual([line.split()[1] for line in r.stdout.splitlines()], ["lo:"], r)

    def test_bridges(self):
        """For programs that know HTTP proxies only: a loopback port before the socket, as Anthropic's sandbox runtime has it."""
        r = self.bwrap("sh", "-c", f"""
            socat TCP-LISTEN:3128,bind=127.0.0.1,fork,reuseaddr UNIX-CONNECT:{self.path} & bridge=$!
            export HTTPS_PROXY=http://127.0.0.1:3128 http_proxy=http://127.0.0.1:3128
            until curl -sS -o /dev/null http://plain.lab.test/ 2>/dev/null; do sleep 0.1; done
            curl -sS --cacert {self.ca} https://api.lab.test/whoami; echo
            curl -sS http://plain.lab.test/by-name; echo
            curl -sS -o /dev/null -w '%{{http_connect}}\\n' https://evil.lab.test/ 2>/dev/null
            curl -sS -o /dev/null -w '%{{http_code}}\\n' http://evil.lab.test/
            curl -sS -o /dev/null -w '%{{http_code}}\\n' http://169.254.169.254/
            curl -sS -x socks5h://127.0.0.1:3128 http://plain.lab.test/by-socks; echo
            kill $bridge""")
        lines = r.stdout.strip().split("\n")
        self.assertEqual(len(lines), 6, r)
        self.assertIs(json.loads(lines[0])["authenticated"], True)
        self.assertEqual(json.loads(lines[1])["path"], "/by-name")
        self.assertEqual(lines[2:5], ["403", "403", "403"])
        self.assertEqual(json.loads(lines[5])["path"], "/by-socks")

    def test_python(self):
        """Straight to the socket: CONNECT, absolute form, and what is neither."""
        r = self.bwrap(sys.executable, "-c", f"""
import socket, ssl
def way():
    s = socket.socket(socket.AF_UNIX)
    s.settimeout({20 * SLOW})
    s.connect({self.path!r})
    return s
def head(s):
    b = b''
    while not b.endswith(b'\\r\\n\\r\\n'):
        c = s.recv(1)
        if not c: break
        b += c
    return b.split(b'\\r\\n')[0].decode()
s = way()
s.sendall(b'CONNECT api.lab.test:443 HTTP/1.1\\r\\nHost: api.lab.test:443\\r\\n\\r\\n')
print(head(s))
t = ssl.create_default_context(cafile={self.ca!r}).wrap_socket(s, server_hostname='api.lab.test')
t.sendall(b'GET /whoami HTTP/1.1\\r\\nHost: api.lab.test\\r\\nConnection: close\\r\\n\\r\\n')
print(head(t))
for line in (b'GET http://plain.lab.test/y', b'GET /y', b'CONNECT evil.lab.test:443', b'CONNECT {ORIGIN4}:443', b'GET http://evil.lab.test/'):
    s = way()
    s.sendall(line + b' HTTP/1.1\\r\\nHost: plain.lab.test\\r\\n\\r\\n')
    print(head(s))
for bytes in (b'\\5\\1\\2', b'\\5\\1\\0\\5\\2\\0\\1\\1\\2\\3\\4\\0\\x50', b'\\5\\1\\0\\5\\3\\0\\1\\0\\0\\0\\0\\0\\0', b'\\5\\1\\0\\5\\1\\0\\2\\0\\0',
              b'\\5\\1\\0\\4\\1', b'\\4\\1\\0\\x50\\1\\2\\3\\4\\0\\r\\n\\r\\n', b'\\x16\\3\\1\\0\\1\\1\\r\\n\\r\\n'):
    s = way()
    s.sendall(bytes)
    b = b''
    while (c := s.recv(4096)): b += c
    print(b[:12])
""")
        lines = r.stdout.strip().split("\n")
        self.assertEqual([x[:12] for x in lines[:7]], ["HTTP/1.1 200", "HTTP/1.1 200", "HTTP/1.1 200", "HTTP/1.1 400", "HTTP/1.1 403",
                                                       "HTTP/1.1 403", "HTTP/1.1 403"], r)
        self.assertEqual(lines[7:12], [repr(b"\5\xff"), repr(b"\5\0\5\7\0\1\0\0\0\0\0\0"), repr(b"\5\0\5\7\0\1\0\0\0\0\0\0"),
                                       repr(b"\5\0\5\10\0\1\0\0\0\0\0\0"), repr(b"\5\0\5\1\0\1\0\0\0\0\0\0")], r)
        for line in lines[12:]:
            self.assertTrue(line.startswith("b'HTTP/1.1 40"), r)

    def test_no_descriptors(self):
        """A sandbox hands the worker no descriptor, for which closing might take long, where the kernel can refuse that."""
        s = socket.socket(socket.AF_UNIX)
        self.addCleanup(s.close)
        s.connect(self.path)
        try:
            s.setsockopt(socket.SOL_SOCKET, 83, 0)  # SO_PASSRIGHTS
        except OSError:
            self.skipTest("this kernel (before 6.16) has no SO_PASSRIGHTS")
        with self.assertRaises(PermissionError):
            socket.send_fds(s, [b"\5"], [0])

    def test_the_worker_is_confined_as_others(self):
        worker = self.show()["worker"]["pid"]
        with open(f"/proc/{worker}/status") as f:
            status = dict(line.split(":", 1) for line in f.read().splitlines())
        self.assertEqual((status["Seccomp"].strip(), status["NoNewPrivs"].strip(), int(status["CapEff"], 16)), ("2", "1", 0))
        self.assertEqual(os.listdir(f"/proc/{worker}/root"), [])
        self.assert_served()

    def test_many_at_once(self):
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            self.assertEqual(list(pool.map(lambda _: self.asks(seconds=60), range(24))), [True] * 24)

    def test_what_is_shown(self):
        self.assertEqual((self.box["attachment"]["kind"], self.box["attachment"]["listen"], self.box["proxy_port"]), ("listen", self.path, 0))
        r = self.daemon.cli("list")
        self.assertIn(f"listen {self.path}", r.stdout)
        r = self.daemon.cli("show", "one")
        self.assertIn(self.path, r.stdout)
        self.assertNotIn("proxy port", r.stdout)
        r = self.daemon.cli("env", "one", "--proxy-env")
        self.assertIn("API_KEY", r.stdout)
        self.assertNotIn("PROXY", r.stdout)
        event = self.daemon.event(LIFECYCLE, **{"device.name": "one"})
        self.assertIn(f"socket {self.path}", json.dumps(event) + json.dumps(self.daemon.events()))

    def test_stats_pause_reload(self):
        self.assert_served()
        answer = self.daemon.call("GET", "/v1/sandboxes/one/stats")[2]
        self.assertEqual((answer["packets_dropped"], answer["worker"]["requests"]["allowed"]), (0, 1), answer)
        self.assertEqual(self.daemon.call("POST", "/v1/sandboxes/one/pause", {"reason": "a test"})[0], 200)
        r = self.curl("-o", "/dev/null", "-w", "%{http_code}", "https://api.lab.test/whoami")
        self.assertIn("503", r.stdout + r.stderr)
        self.assertEqual(self.daemon.call("POST", "/v1/sandboxes/one/resume")[0], 200)
        self.assert_served()
        before = self.inode()
        with open(self.policy, "w") as f:
            f.write(policy("http://plain.lab.test"))
        self.assertEqual(self.daemon.call("POST", "/v1/sandboxes/one/reload")[0], 200)
        self.assertFalse(self.asks())
        self.assertEqual(self.curl("http://plain.lab.test/x").returncode, 0)
        self.assertEqual(self.inode(), before)

    def test_ends(self):
        status, _, answer = self.daemon.call("DELETE", "/v1/sandboxes/one")
        self.assertEqual(status, 200, answer)
        self.assert_nothing_left()
        self.assertEqual(self.daemon.stop(), 0)

    def test_time_is_over(self):
        self.daemon.attach(name="two", policy=self.policy, listen={"path": self.path + "2"}, ttl_s=1)
        self.assertTrue(wait_until(lambda: not os.path.lexists(self.path + "2"), 10 * SLOW))
        self.assertEqual(self.daemon.call("GET", "/v1/sandboxes/two")[0], 404)
        self.assert_served()


class File(Socketed):
    """The socket's file: its owner, and that it replaces no other file."""

    def test_mode_and_owner(self):
        st = os.lstat(self.path)
        self.assertEqual((stat.S_ISSOCK(st.st_mode), stat.S_IMODE(st.st_mode), st.st_uid, st.st_gid), (True, 0o600, 0, 0))
        other = os.path.join(self.dir, "theirs.sock")
        self.attach(name="theirs", path=other, mode="0660", uid=NOBODY, gid=61777)
        st = os.lstat(other)
        self.assertEqual((stat.S_IMODE(st.st_mode), st.st_uid, st.st_gid), (0o660, NOBODY, 61777))
        for uid, groups, may in ((NOBODY, "--clear-groups", True), (61778, "--groups=61777", True), (61778, "--clear-groups", False)):
            for path, wanted in ((other, may), (self.path, False)):
                r = subprocess.run(["setpriv", f"--reuid={uid}", f"--regid={uid}", groups, sys.executable, "-c",
                                    f"import socket; socket.socket(socket.AF_UNIX).connect({path!r})"], capture_output=True, text=True)
                self.assertEqual(r.returncode == 0, wanted, (uid, groups, path, r))
                self.assertTrue(wanted or "Permission denied" in r.stderr, r)

    def test_never_over_another_file(self):
        places = {n: os.path.join(self.dir, n) for n in ("file", "directory", "link", "dangling", "stale", "alive", "pipe")}
        with open(places["file"], "w") as f:
            f.write("mine")
        os.mkdir(places["directory"])
        os.symlink(places["file"], places["link"])
        os.symlink(os.path.join(self.dir, "nothing"), places["dangling"])
        os.mkfifo(places["pipe"])
        for name in ("stale", "alive"):
            s = socket.socket(socket.AF_UNIX)
            self.addCleanup(s.close)
            s.bind(places[name])
            s.listen()
            if name == "stale":
                s.close()
        before = {n: os.lstat(p) for n, p in places.items()}
        for path in [*places.values(), self.path]:
            self.refuse({"path": path}, 409, "exists already")
        for name, path in places.items():
            st = os.lstat(path)
            self.assertEqual((st.st_ino, st.st_mode, st.st_size), (before[name].st_ino, before[name].st_mode, before[name].st_size), name)
        self.assertFalse(os.path.lexists(os.path.join(self.dir, "nothing")))
        self.assertEqual(self.left()["sandboxes"], ["one.json"])
        self.assert_served()

    def test_bad_requests(self):
        for listen, words in (
                ({}, ("listen.path",)), ({"path": ""}, ("absolute",)), ({"path": "out.sock"}, ("absolute",)), ({"path": "/"}, ("end in a file's name",)),
                ({"path": self.dir + "/"}, ("end in a file's name",)), ({"path": self.dir + "/.."}, ("end in a file's name",)),
                ({"path": "/" + "d" * 30 + "/" + "x" * 77}, ("107",)), ({"path": "/" + "x" * 81}, ("80",)), ({"path": "/run/a\nb"}, ("control",)),
                ({"path": self.dir + "/missing/x.sock"}, ("No such file",)), ({"path": self.policy + "/x.sock"}, ("irectory",)),
                ({"path": "/proc/x.sock"}, ("local file system",)), ({"path": self.dir + "/x", "mode": "rw"}, ("listen.mode",)),
                ({"path": self.dir + "/x", "mode": "1777"}, ("listen.mode",)), ({"path": self.dir + "/x", "mode": "0o600"}, ("listen.mode",)),
                ({"path": self.dir + "/x", "mode": 384}, ("listen.mode", "string")), ({"path": self.dir + "/x", "uid": -1}, ("listen.uid",)),
                ({"path": self.dir + "/x", "uid": 1 << 32}, ("uid",)), ({"path": self.dir + "/x", "gid": "0"}, ("listen.gid",)),
                ({"path": self.dir + "/x", "owner": "root"}, ("listen.owner", "no such member")), (self.dir + "/x", ("listen", "object"))):
            self.refuse(listen, 422, *words)
        listen = {"path": self.dir + "/x"}
        self.refuse(listen, 422, "too many", netns="/run/netns/x")
        self.refuse(listen, 422, "start_time", start_time=1)
        self.refuse(listen, 422, "files", files=True)
        self.refuse(listen, 422, "addresses", addresses=["10.7.0.2"])
        self.refuse(listen, 422, "absolute", policy="x.yaml")
        self.assertEqual(os.listdir(self.dir), ["out.sock"])

    def test_a_policy_with_a_fault(self):
        bad = support.LAB.write("sockets-bad.yaml", "vethguard: 1\nnonsense: 1\n")
        self.refuse({"path": self.dir + "/x"}, 422, "nonsense", policy=bad)
        self.assertEqual(os.listdir(self.dir), ["out.sock"])

    def test_what_is_there_instead_stays(self):
        """Somebody has put another file in its place: detaching leaves that file alone."""
        os.unlink(self.path)
        with open(self.path, "w") as f:
            f.write("mine")
        self.assertEqual(self.daemon.call("DELETE", "/v1/sandboxes/one")[0], 200)
        self.assertTrue(wait_until(lambda: not any(self.left().values()), 10 * SLOW))
        with open(self.path) as f:
            self.assertEqual(f.read(), "mine")

    def test_another_socket_instead_stays(self):
        os.unlink(self.path)
        s = socket.socket(socket.AF_UNIX)
        self.addCleanup(s.close)
        s.bind(self.path)
        s.listen()
        before = self.inode()
        self.assertEqual(self.daemon.call("DELETE", "/v1/sandboxes/one")[0], 200)
        self.assertEqual(self.inode(), before)

    def test_by_the_command(self):
        path = os.path.join(self.dir, "by-command.sock")
        attach = ("--policy", self.policy, "--name", "two")
        r = self.daemon.cli("attach", "--listen", "by-command.sock", "--listen-mode", "660", "--listen-owner", f"{NOBODY}:61777", *attach, cwd=self.dir)
        self.assertEqual(r.returncode, 0, r)
        self.assertIn(f"HTTP proxy and SOCKS5  {path}", r.stdout)
        st = os.lstat(path)
        self.assertEqual((stat.S_IMODE(st.st_mode), st.st_uid, st.st_gid), (0o660, NOBODY, 61777))
        self.assert_served(path=path)
        r = self.daemon.cli("detach", "two")
        self.assertEqual(r.returncode, 0, r)
        self.assertFalse(os.path.lexists(path))
        r = self.daemon.cli("attach", "--listen", path, "--listen-owner", "nobody", *attach)
        self.assertEqual((r.returncode, os.lstat(path).st_uid, os.lstat(path).st_gid), (0, NOBODY, NOBODY), r)
        for words, status, text in ((("--listen", self.path), 1, "exists already"), (("--listen", self.dir + "/no/x"), 2, "No such file"),
                                    (("--listen", "/run/x", "--listen-owner", "nobody-such"), 2, "no such user"),
                                    (("--listen", "/run/x", "--listen-owner", "root:nobody-such"), 2, "no such group"),
                                    (("--listen", "/run/x", "--listen-mode", "999"), 1, "octal"),
                                    (("--listen", "/run/x", "--pid", "1"), 2, "give only one"), (("--listen-mode", "600", "--pid", "1"), 2, "need --listen"),
                                    (("--listen", ""), 2, "No such file"), (("--listen", "/run/x", "--files"), 2, "--files needs")):
            r = self.daemon.cli("attach", *words, "--policy", self.policy, "--name", "three")
            self.assertEqual(r.returncode, status, (words, r))
            self.assertIn(text, r.stderr)


class Faults(Socketed):
    def test_a_worker_dies(self):
        """The file stays the same; clients that connect meanwhile wait."""
        self.assert_served()
        before = self.inode()
        for _ in range(3):
            os.kill(self.show()["worker"]["pid"], signal.SIGKILL)
            self.assertTrue(self.asks(seconds=30), self.daemon.stderr())
        self.assertEqual((self.inode(), self.show()["worker"]["restarts"]), (before, 3))

    def test_workers_die_too_often(self):
        """Then no worker serves it, and nothing passes; clients that wait at the socket are served after a reload."""
        before = self.inode()

        def failed():
            s = self.show()
            if s["worker"]["pid"]:
                with contextlib.suppress(ProcessLookupError):  # it has died since
                    os.kill(s["worker"]["pid"], signal.SIGKILL)
            return s["state"] == "failed"
        self.assertTrue(wait_until(failed, 20 * SLOW), self.show())
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            waiting = pool.submit(self.asks, seconds=60)
            time.sleep(0.5 * PACE)
            self.assertFalse(waiting.done())
            self.assertEqual(self.daemon.call("POST", "/v1/sandboxes/one/reload")[0], 200)
            self.assertTrue(waiting.result())
        self.assertEqual(self.inode(), before)

    def test_the_daemon_dies(self):
        """The same path has another socket then: a sandbox that has its directory goes on."""
        waits = os.path.join(self.dir, "go")
        box = subprocess.Popen(["bwrap", "--unshare-net", "--unshare-pid", "--die-with-parent", "--ro-bind", "/", "/", "--dev", "/dev",
                                "--proc", "/proc", "--ro-bind", self.dir, "/mnt", "sh", "-c",
                                f"until [ -e /mnt/go ]; do sleep 0.1; done; curl -sS -m {30 * PACE} --cacert {self.ca} "
                                "--proxy socks5h://localhost/mnt/out.sock https://api.lab.test/whoami"], stdout=subprocess.PIPE, text=True)
        self.addCleanup(box.kill)
        self.assert_served()
        env = self.daemon.call("GET", "/v1/sandboxes/one/env")[2]
        before = self.inode()
        self.daemon.kill()
        self.assertEqual(self.inode(), before)
        self.assertNotEqual(self.curl("https://api.lab.test/whoami").returncode, 0)
        self.daemon.start()
        self.assert_served()
        self.assertEqual(stat.S_IMODE(os.lstat(self.path).st_mode), 0o600)
        self.assertEqual(self.daemon.call("GET", "/v1/sandboxes/one/env")[2], env)
        open(waits, "w").close()
        out = box.communicate(timeout=60 * SLOW)[0]
        self.assertIs(json.loads(out)["authenticated"], True)
        os.unlink(waits)
        self.assertEqual(self.daemon.call("DELETE", "/v1/sandboxes/one")[0], 200)
        self.assert_nothing_left()

    def test_the_daemon_stops_and_starts(self):
        self.assertEqual(self.daemon.stop(), 0)
        self.daemon.start()
        self.assert_served()

    def test_the_daemon_finds_another_file_there(self):
        for make in (lambda: open(self.path, "w").close(), lambda: os.symlink("/etc/passwd", self.path), lambda: os.mkdir(self.path), self.foreign,
                     self.foreign_stale):
            self.daemon.kill()
            os.unlink(self.path)
            make()
            before = os.lstat(self.path)
            self.daemon.start()
            s = self.show()
            self.assertEqual(s["state"], "failed", s)
            self.assertIn("exists already", s["reason"])
            self.daemon.kill()
            self.daemon.start()  # once more: nothing was forgotten
            self.assertEqual(self.show()["state"], "failed")
            after = os.lstat(self.path)
            self.assertEqual((after.st_ino, after.st_mode), (before.st_ino, before.st_mode))
            self.assertEqual(self.daemon.call("DELETE", "/v1/sandboxes/one")[0], 200)
            self.assertEqual(os.lstat(self.path).st_ino, before.st_ino)
            os.rmdir(self.path) if os.path.isdir(self.path) and not os.path.islink(self.path) else os.unlink(self.path)
            self.attach()
            self.assert_served()

    def foreign(self):
        s = socket.socket(socket.AF_UNIX)
        self.addCleanup(s.close)
        s.bind(self.path)
        s.listen()

    def foreign_stale(self):
        s = socket.socket(socket.AF_UNIX)
        s.bind(self.path)
        s.close()

    def test_the_daemon_finds_no_directory(self):
        self.daemon.kill()
        os.unlink(self.path)
        os.rename(self.dir, self.dir + "-away")
        self.daemon.start()
        self.assertEqual(self.show()["state"], "failed")
        os.rename(self.dir + "-away", self.dir)
        self.daemon.kill()
        self.daemon.start()
        self.assert_served()

    def test_killed_at_any_moment(self):
        """However far an attach, detach or start has come: afterwards the sandbox is served, or nothing of it is left."""
        dice = random.Random(24)
        self.assertEqual(self.daemon.call("DELETE", "/v1/sandboxes/one")[0], 200)
        for turn in range(16):
            body = {"name": "one", "policy": self.policy, "listen": {"path": self.path}}
            method, path = ("POST", "/v1/sandboxes") if not self.daemon.call("GET", "/v1/status")[2]["sandboxes"]["count"] else ("DELETE", "/v1/sandboxes/one")
            with concurrent.futures.ThreadPoolExecutor(1) as pool:
                answer = pool.submit(lambda: self.daemon.call(method, path, body if method == "POST" else None))
                time.sleep(dice.random() * 0.03 * PACE)
                self.daemon.kill()
                done = answer.exception() is None and answer.result()[0] // 100 == 2
            if turn % 3 == 0:  # ... and while it starts
                self.daemon.spawn()
                time.sleep(dice.random() * 0.1 * PACE)
                self.daemon.kill()
            self.daemon.start()
            names = [s["name"] for s in self.daemon.call("GET", "/v1/sandboxes")[2]["sandboxes"]]
            if done:
                self.assertEqual(names, ["one"] if method == "POST" else [], (turn, method))
            if names:
                self.assert_served()
            else:
                self.assert_nothing_left()


class Upgrades(test_upgrade.Upgrader, Socketed):
    def test_another_version_takes_over(self):
        """It gets the socket itself: who holds its file notices nothing, and no request fails meanwhile."""
        self.assert_served()
        before = self.inode()
        failed = []
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            go = [True]

            def ask():
                while go[0]:
                    if not self.asks(seconds=60):
                        failed.append(self.show())
            asking = pool.submit(ask)
            for _ in range(2):
                self.upgrade()
            go[0] = False
            asking.result()
        self.assertEqual(failed, [])
        self.assertEqual(self.inode(), before)
        self.assertEqual(self.daemon.call("DELETE", "/v1/sandboxes/one")[0], 200)
        self.assert_nothing_left()


class Link(support.Case):
    """SOCKS5 on the proxy port, for programs that have a link as well."""

    def test_the_proxy_port(self):
        box = self.sandbox(policy(*RULES, credentials=file_credential()))
        done = box.sh("curl -sS --proxy socks5h://198.18.0.1:3128 https://api.lab.test/whoami")
        self.assertIs(done.json()["authenticated"], True, done)
        done = box.sh("curl -sS --proxy socks5://198.18.0.1:3128 http://plain.lab.test/by-address")  # asks for the name itself
        self.assertEqual(done.json()["path"], "/by-address", done)
        for url in ("https://evil.lab.test/", f"http://{EVIL4}/", "http://169.254.169.254/", f"http://{ORIGIN4}/"):
            done = box.sh(f"curl -sS --proxy socks5h://198.18.0.1:3128 {url}")
            self.assertIn(NOT_ALLOWED, done.err, (url, done))
        self.assertIsNotNone(box.event(NETWORK, action_id=2, **{"dst_endpoint.hostname": "evil.lab.test"}))
        done = box.sh("curl -sS --proxy socks5h://user:word@198.18.0.1:3128 http://plain.lab.test/x")  # offers both
        self.assertEqual(done.json()["path"], "/x", done)
