# SPDX-License-Identifier: Apache-2.0
"""vethguard-connect inside of a sandbox whose only way out is a gateway: programs that speak to it on loopback, and programs that know
of nothing."""
import json
import os
import signal
import socket
import subprocess

import support
from connect_case import PORT, PROGRAM, Connected, without_nft
from gateway_case import GATEWAY4, TLS_PORT
from lab import EVIL4, ORIGIN4
from support import HTTP, PACE, SECRET, SLOW

CODE = ("-o", "/dev/null", "-w", "%{http_code}")


class Proxy(Connected):
    def setUp(self):
        super().setUp()
        self.begin()

    def test_connect(self):
        self.assert_authenticated(self.fetch("https://api.lab.test/whoami"))
        event = self.daemon.event(HTTP, action_id=1, **{"http_request.url.path": "/whoami"})
        self.assertEqual(event["dst_endpoint"]["hostname"], "api.lab.test", event)
        self.assertNotIn(self.token, self.said())

    def test_absolute_form_on_a_kept_connection(self):
        """Each request proves itself, and a body is not taken for a head."""
        r = self.fetch("http://plain.lab.test/a", "http://plain.lab.test/b", "-d", "GET http://evil.lab.test/ HTTP/1.1", "-w", "%{num_connects}\n")
        self.assertEqual(r.returncode, 0, r)
        self.assertEqual(r.stdout.count('"/a"') + r.stdout.count('"/b"'), 2, r)
        self.assertEqual([line[-1] for line in r.stdout.split("\n") if line], ["1", "0"], r)
        chunked = self.fetch("http://plain.lab.test/c", "-H", "Transfer-Encoding: chunked", "-d", "x" * 3000, "--next", "-sS", "--proxy",
                             f"http://127.0.0.1:{PORT}", "http://plain.lab.test/d")
        self.assertEqual(chunked.stdout.count('"/c"') + chunked.stdout.count('"/d"'), 2, chunked)

    def test_the_programs_own_proof_goes_nowhere(self):
        r = self.fetch("--proxy-user", "session:wrong", "http://plain.lab.test/x")
        self.assertEqual(json.loads(r.stdout)["path"], "/x", r)
        self.assertNotIn("proxy-authorization", {h.lower() for h in json.loads(r.stdout)["headers"]}, r)

    def test_socks(self):
        self.assert_authenticated(self.fetch("https://api.lab.test/whoami", proxy=f"socks5h://127.0.0.1:{PORT}"))
        r = self.fetch("https://evil.lab.test/", proxy=f"socks5h://127.0.0.1:{PORT}")
        self.assertEqual((r.returncode, "(2)" in r.stderr), (97, True), r)
        r = self.fetch(f"https://{EVIL4}/", proxy=f"socks5://127.0.0.1:{PORT}")
        self.assertEqual(r.returncode, 97, r)

    def test_what_is_refused(self):
        """The gateway refuses, and its answer arrives; or vethguard-connect refuses before it sends anything."""
        for url in ("https://evil.lab.test/", f"https://{ORIGIN4}/", "https://169.254.169.254/"):
            r = self.fetch("-o", "/dev/null", "-w", "%{http_connect}", url)
            self.assertEqual(r.stdout, "403", (url, r))
        r = self.fetch("http://evil.lab.test/")
        self.assertIn("urn:vethguard:problem:denied", r.stdout, r)
        r = self.there("curl", "-sS", "-m", "5", *CODE, f"http://127.0.0.1:{PORT}/whoami")
        self.assertEqual(r.stdout, "400", r)
        for head in (b"GET http://a/ HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
                     b"GET http://a/ HTTP/1.1\nHost: a\n\n", b"\0\0\0\0\r\n\r\n", b"GET http://a/ HTTP/1.1\r\n" + b"a: b\r\n" * 5000,
                     b"CONNECT HTTP/1.1\r\n\r\n", b"X" * 20000):
            answer = self.local(head)
            self.assertTrue(answer.startswith(b"HTTP/1.1 400"), (head[:40], answer))
        for data, answer in ((b"\5\1\2", b"\5\xff"), (b"\5\1\0" + b"\5\2\0\1\1\2\3\4\0\x50", b"\5\0\5\7"), (b"\5\1\0" + b"\5\3\0\1\1\2\3\4\0\x50", b"\5\0\5\2"),
                             (b"\5\1\0" + b"\5\1\0\3\3a b\0\x50", b"\5\0\5"), (b"\5\0", b"")):
            self.assertTrue(self.local(data).startswith(answer), (data, answer))
        self.assert_authenticated(self.fetch("https://api.lab.test/whoami"))

    def local(self, data):
        """Sends the bytes from inside of the sandbox. Returns all that comes back."""
        code = ("import socket, sys; s = socket.create_connection(('127.0.0.1', %d), 20); s.sendall(sys.stdin.buffer.read())\n"
                "try:\n while b := s.recv(65536): sys.stdout.buffer.write(b)\nexcept OSError: pass" % PORT)
        return subprocess.run(["ip", "netns", "exec", self.elsewhere, "python3", "-c", code], input=data, capture_output=True, timeout=60 * SLOW).stdout

    def test_a_new_token(self):
        """The token's file is read for each connection; a wrong token is logged."""
        self.write_token("wrong")
        r = self.fetch("-o", "/dev/null", "-w", "%{http_connect}", "https://api.lab.test/whoami")
        self.assertEqual(r.stdout, "407", r)
        self.assertIn("does not take the token", self.said())
        r = self.fetch("https://api.lab.test/", proxy=f"socks5h://127.0.0.1:{PORT}")
        self.assertEqual((r.returncode, "(2)" in r.stderr), (97, True), r)
        self.write_token(self.create("two")["token"])
        self.assert_authenticated(self.fetch("https://api.lab.test/whoami"))
        os.unlink(self.token_file)
        r = self.fetch("-o", "/dev/null", "-w", "%{http_connect}", "https://api.lab.test/whoami")
        self.assertEqual(r.stdout, "502", r)
        self.assertIn("cannot be read", self.said())

    def test_the_gateway_comes_back(self):
        self.assert_authenticated(self.fetch("https://api.lab.test/whoami"))
        os.kill(self.pid_of("vethguard-gateway"), signal.SIGKILL)
        self.assert_authenticated(self.fetch("https://api.lab.test/whoami", seconds=30))

    def test_much(self):
        """Bodies larger than every buffer, both ways, and a reader that is slow."""
        r = self.fetch("http://plain.lab.test/bytes/5000000", "-o", "/dev/null", "-w", "%{size_download}")
        size = int(r.stdout)
        self.assertGreaterEqual(size, 1, r)
        blob = os.path.join(self.dir, "blob")
        with open(blob, "wb") as f:
            f.write(os.urandom(8 << 20))
        r = self.fetch("-T", blob, "http://plain.lab.test/up", *CODE, seconds=60)
        self.assertIn(r.stdout, ("200", "201", "204"), r)

    def test_memory_and_arguments(self):
        pid = self.connect_process.pid
        for name in ("cmdline", "environ"):
            with open(f"/proc/{pid}/{name}", "rb") as f:
                self.assertNotIn(self.token.encode(), f.read())
        with open(f"/proc/{pid}/status") as f:
            self.assertIn("Cap", f.read())
        with open(f"/proc/{pid}/limits") as f:
            self.assertIn("0", next(line for line in f if "core file" in line))


class Commands(Connected):
    def test_a_command(self):
        """The command has the variables, but not the token. vethguard-connect exits with its status."""
        r = self.runs("sh", "-c", "curl -sS https://api.lab.test/whoami && env && exit 7")
        self.assertEqual(r.returncode, 7, r)
        self.assertIn('"authenticated": true', r.stdout, r)
        self.assertIn(f"HTTPS_PROXY=http://127.0.0.1:{PORT}", r.stdout)
        self.assertIn(f"SSL_CERT_FILE={self.bundle}", r.stdout)
        self.assertNotIn(self.token, r.stdout)
        self.assertNotIn(SECRET, r.stdout)
        self.assertEqual(self.runs("sh", "-c", "kill -9 $$").returncode, 137)
        self.assertEqual(self.runs("/nowhere").returncode, 127)

    def test_token_variable(self):
        command = [a for a in self.command("--port", "3129") if a not in ("--token-file", self.token_file)]
        r = subprocess.run([*command, "--", "sh", "-c", "curl -sS https://api.lab.test/whoami; echo [$VETHGUARD_TOKEN]; tr '\\0' '\\n' </proc/$PPID/environ"],
                           capture_output=True, text=True, timeout=60 * SLOW, env={**os.environ, "VETHGUARD_TOKEN": self.token})
        self.assertIn('"authenticated": true', r.stdout, r)
        self.assertIn("[]", r.stdout)
        self.assertNotIn(self.token, r.stdout + r.stderr)

    def test_another_gateway(self):
        """A gateway's certificate for another name, or by another CA, is refused soon."""
        r = self.runs("curl", "-sS", "-o", "/dev/null", "-w", "%{http_connect}", "https://api.lab.test/", url=f"https://other.lab.test:{TLS_PORT}")
        self.assertEqual(r.stdout, "502", r)
        self.assertIn("hostname mismatch", r.stderr)
        r = self.runs("curl", "-sS", "-o", "/dev/null", "-w", "%{http_connect}", "https://api.lab.test/", more=("--gateway-ca", self.ca))
        self.assertEqual(r.stdout, "502", r)
        self.assertIn("cannot be reached", r.stderr)

    def test_arguments(self):
        for more, text in ((("--gateway", "http://x"), "https://NAME"), (("--gateway", "https://x/path"), "https://NAME"), (("--gateway", "https://a b"), "https://NAME"),
                           (("--port", "0"), "1 to 65535"), (("--port", "65536"), "1 to 65535"), (("--address", "1.2.3"), "IPv4 or IPv6"),
                           (("--gatewa", "x"), "gateway"), (("--ca", "/nowhere.pem"), "/nowhere.pem"), (("--gateway-ca", "/nowhere.pem"), "/nowhere.pem"),
                           (("--bundle", "/nowhere/x"), "/nowhere/x")):
            r = self.runs("true", more=more)
            self.assertEqual((r.returncode, text in r.stderr), (125, True), (more, r))
        r = subprocess.run([PROGRAM, "--token-file", "x"], capture_output=True, text=True)
        self.assertEqual((r.returncode, "--gateway URL is missing" in r.stderr), (125, True), r)
        r = subprocess.run([PROGRAM, "--help"], capture_output=True, text=True)
        self.assertEqual((r.returncode, "--redirect" in r.stdout, r.stderr), (0, True, ""), r)
        with socket.create_server(("127.0.0.1", 3130)):
            r = subprocess.run([*self.command("--port", "3130")[4:], "--", "true"], capture_output=True, text=True, timeout=30)
            self.assertEqual((r.returncode, "another with --port" in r.stderr), (125, True), r)

    def test_it_is_static(self):
        if support.ASAN:
            self.skipTest("an instrumented program is not static")
        self.assertNotIn("NEEDED", support.sh("readelf", "-d", PROGRAM))


class Redirected(Connected):
    """Programs that know nothing of a proxy."""
    def setUp(self):
        super().setUp()
        support.sh("ip", "-n", self.elsewhere, "route", "add", "default", "via", GATEWAY4)  # which forwards nothing
        self.begin("--redirect")

    def test_without_a_proxy(self):
        r = self.resolving("curl", "-sS", "-m", str(10 * PACE), "--cacert", self.bundle, "https://api.lab.test/whoami")
        self.assert_authenticated(r)
        r = self.resolving("curl", "-sS", "-m", str(10 * PACE), "http://plain.lab.test/x")
        self.assertEqual(json.loads(r.stdout)["path"], "/x", r)

    def test_nothing_else_leaves(self):
        for argv in (("curl", "-sS", "-m", "5", "https://evil.lab.test/"), ("curl", "-sS", "-m", "5", f"http://{EVIL4}/"),
                     ("curl", "-sS", "-m", "5", f"https://{ORIGIN4}/")):
            self.assertNotEqual(self.resolving(*argv).returncode, 0, argv)
        code = ("import socket\ns = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(20)\ntry:\n s.connect(('%s', 9)); s.send(b'x'); s.recv(9); print('left')\n"
                "except OSError as e: print(e.strerror)" % GATEWAY4)
        self.assertEqual(self.there("python3", "-c", code).stdout, "No route to host\n")
        self.assertIsNotNone(self.daemon.event(action_id=2, **{"dst_endpoint.hostname": "evil.lab.test"}))

    def test_names(self):
        code = "import socket; print(socket.gethostbyname('a.lab.test'), socket.gethostbyname('A.lab.test'), socket.gethostbyname('b.lab.test'))"
        one, same, other = self.resolving("python3", "-c", code).stdout.split()
        self.assertTrue(one.startswith("198.18."), one)
        self.assertEqual((one == same, one == other), (True, False))
        r = self.there("curl", "-sS", "-m", "5", "http://198.19.255.254/")
        self.assertNotEqual(r.returncode, 0, "an address that no name has")

    def test_the_rules_go(self):
        self.assertIn("vethguard-connect", self.there("nft", "list", "ruleset").stdout)
        self.assertEqual(self.stop(), 0, self.said())
        self.assertNotIn("vethguard-connect", self.there("nft", "list", "ruleset").stdout)

    def test_killed(self):
        """Redirected connections fail until vethguard-connect runs again."""
        self.connect_process.kill()
        self.connect_process.wait()
        r = self.resolving("curl", "-sS", "-m", "5", "--cacert", self.bundle, "https://api.lab.test/whoami")
        self.assertNotEqual(r.returncode, 0, r)
        self.begin("--redirect")
        self.test_without_a_proxy()


class Iptables(Redirected):
    """The same by iptables, where there is no nft."""

    def command(self, *more, **kw):
        return without_nft(self.dir, super().command(*more, **kw))

    def test_the_rules_go(self):
        self.assertIn("vethguard-connect", self.there("iptables", "-S").stdout)
        self.assertEqual(self.stop(), 0, self.said())
        for program in ("iptables", "ip6tables"):
            self.assertNotIn("vethguard-connect", self.there(program + "-save").stdout)


class Trust(Connected):
    def test_system_stores(self):
        """In a mount namespace of its own, so that this machine's stores stay as they are."""
        script = ('mount -t tmpfs none /usr/local/share/ca-certificates && mkdir /tmp/etc-$$ && cp -a /etc/ssl /etc/ca-certificates* /tmp/etc-$$ && '
                  'mount --bind /tmp/etc-$$/ssl /etc/ssl && "$@"; status=$?; rm -rf /tmp/etc-$$; exit $status')
        inside = self.command("--trust", "--", "env", "-u", "SSL_CERT_FILE", "-u", "CURL_CA_BUNDLE", "curl", "-sS", "https://api.lab.test/whoami")
        r = subprocess.run(["unshare", "-m", "sh", "-c", script, "sh", *inside], capture_output=True, text=True, timeout=120 * SLOW)
        self.assertEqual((r.returncode, '"authenticated": true' in r.stdout), (0, True), r)


del Connected
