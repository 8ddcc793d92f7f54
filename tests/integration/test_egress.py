# SPDX-License-Identifier: Apache-2.0
"""The way out through a proxy of the network's, which is the only one: origins cannot be reached directly."""
import base64
import json
import os
import urllib.parse

import support
from support import HTTP, NETWORK, SECRET, Case, policy

PASSWORD = "corp-Passw0rd-4711"
PAIR = "vethguard:" + PASSWORD
KINDS = ["refused", "down", "odd", "shut", "long"]
RULES = policy("{to: 'https://api.lab.test', credential: api}", "http://plain.lab.test", "tcp://tcp.lab.test:2222",
               "{to: 'https://pass.lab.test', tls: passthrough}", "http://silent.lab.test", "http://meta.lab.test",
               *(f"http://{kind}.lab.test" for kind in KINDS), credentials="PLACE")


def egress(more="", password=None, proxy="http://10.99.0.66:3128"):
    path = support.LAB.write("egress.password", (password or PASSWORD) + "\n", 0o600)
    return f"egress: {{proxy: '{proxy}', user: vethguard, password_file: {path}{more}}}\ntimeouts: {{connect: 1s, resolve: 1s}}\n"


def configuration(name, extra, servers="10.99.0.99"):
    """Without a resolver that answers, unless one is named."""
    text = support.LAB.config(extra).replace("10.99.0.53", servers)
    return support.LAB.write(name, text, 0o644)


class Egress(Case):
    more, servers, password = "", "10.99.0.99", None

    @classmethod
    def setUpClass(cls):
        cls.log = support.LAB.path("egress.jsonl")
        cls.proxy = support.LAB.spawn_outside([support.PYTHON, os.path.join(support.HERE, "connect_proxy.py"), "10.99.0.66",
                                               "3128", PAIR, cls.log, "10.99.0.80"])
        support.wait_until(lambda: os.path.exists(cls.log))
        support.sh("ip", "route", "add", "blackhole", "10.99.0.80/32")
        cls.rules = RULES.replace("PLACE", support.file_credential())
        cls.config = configuration("egress.yaml", egress(cls.more, cls.password), cls.servers)
        cls.box = support.Sandbox(cls.rules, config=cls.config)

    @classmethod
    def tearDownClass(cls):
        cls.box.close()
        support.sh("ip", "route", "del", "blackhole", "10.99.0.80/32")
        cls.proxy.terminate()
        cls.proxy.wait(5)
        support.LAB.processes.remove(cls.proxy)
        os.unlink(cls.log)

    def heard(self, authority):
        with open(self.log) as f:
            return [line for line in map(json.loads, f) if line.get("head", "").startswith(f"CONNECT {authority} ")]

    def py(self, code):
        done = self.box.py(code)
        self.assertEqual(done.status, 0, done)
        return done.out

    def fetched(self, host, plain=True):
        path = '/x' if plain else '/whoami'
        return json.loads(self.py(f"answered(*fetch('{host}', '{path}', plain={plain}, port={80 if plain else 443}))"))

    def tearDown(self):
        super().tearDown()
        pair = base64.b64encode(PAIR.encode()).decode()
        for path in (self.box.audit, self.box.stderr_path):
            with open(path) as f:
                text = f.read()
            self.assertNotIn(PASSWORD, text)
            self.assertNotIn(pair, text)


class Through(Egress):
    def test_refusals(self):
        words = {"refused": "403", "down": "could not reach", "odd": "not a valid response", "shut": "closed the connection",
                 "long": "not a valid response"}
        for kind in KINDS:
            with self.subTest(kind=kind):
                answer = self.fetched(f"{kind}.lab.test")
                self.assertEqual(answer["status"], 502, answer)
                self.assertIn(words[kind], json.dumps(answer))
                event = self.box.event(HTTP, **{"http_request.url.hostname": f"{kind}.lab.test"})
                self.assertIn(words[kind], json.dumps(event))

    def test_silent(self):
        """Bounded by the time that connecting may take."""
        answer = self.fetched("silent.lab.test")
        self.assertEqual(answer["status"], 504, answer)

    def test_not_even_asked_for_what_is_denied(self):
        self.assertEqual(self.fetched("evil.lab.test")["status"], 403)
        self.assertEqual(self.heard("evil.lab.test:80"), [])

    def test_intercepted_with_credential(self):
        answer = self.fetched("api.lab.test", plain=False)
        self.assertIn("authenticated", json.dumps(answer))
        self.assertEqual(answer["status"], 200)
        asked = self.heard("api.lab.test:443")
        self.assertEqual(len(asked), 1)
        self.assertNotIn(SECRET, asked[0]["head"])
        self.assertEqual(asked[0]["head"].count("\r\n"), 4)  # the line, Host, Proxy-Authorization, the end

    def test_plain(self):
        self.assertEqual(self.fetched("plain.lab.test")["status"], 200)

    def test_passthrough(self):
        out = self.py("t = tls('pass.lab.test', verify=False)\nt.sendall(request('GET', '/p', 'pass.lab.test'))\n"
                      "print(Reader(t).response()[0])")
        self.assertEqual(out, "200\n")
        self.assertTrue(self.box.event(NETWORK, **{"dst_endpoint.hostname": "pass.lab.test"}))

    def test_banner_in_the_segment_of_the_head(self):
        out = self.py("s = connect('tcp.lab.test', 2222)\nprint(s.recv(100))\ns.sendall(b'ping'); print(s.recv(100))")
        self.assertEqual(out, "b'banner 1.0\\r\\n'\nb'ping'\n")

    def test_wide_network(self):
        """A rule for a network too wide to mean one address does not let the proxy dial that address either."""
        config = support.LAB.write("egress-wide.yaml", open(self.config).read().replace("permit:", "#"), 0o644)
        box = support.Sandbox(policy("http://0.0.0.0/0", "http://[::/0]"), config=config)
        self.addCleanup(box.close)
        for address in ("10.99.0.80", "10.99.0.1", "169.254.169.254"):
            with self.subTest(address=address):
                done = box.py(f"print(fetch('{address}', '/x', plain=True, port=80)[0])")
                self.assertIn("403", done.out, done)
                self.assertEqual(self.heard(f"{address}:80"), [])

    def test_the_sandbox_does_not_reach_the_proxy(self):
        out = self.py("try:\n s = socket.create_connection(('10.99.0.66', 3128), 3); s.sendall(b'CONNECT x:1 HTTP/1.1\\r\\n\\r\\n'); "
                      "print(s.recv(100))\nexcept OSError: print('ended')")
        self.assertNotIn("200", out)
        self.assertEqual(self.heard("x:1"), [])


class Resolved(Egress):
    """resolve: local: the proxy is given addresses, and only those that passed."""
    more, servers = ", resolve: local", "10.99.0.53"

    def test_address(self):
        self.assertEqual(self.fetched("plain.lab.test")["status"], 200)
        self.assertEqual(self.heard("plain.lab.test:80"), [])
        self.assertEqual(len(self.heard("10.99.0.80:80")), 1)  # after the proxy could not reach the other
        self.assertEqual(len(self.heard("[fd99::80]:80")), 1)

    def test_metadata_is_refused_here(self):
        answer = self.fetched("meta.lab.test")
        self.assertEqual(answer["status"], 403, answer)
        self.assertEqual(self.heard("169.254.169.254:80"), [])


class PasswordInUrl(Case):
    """egress.proxy with user and password, of a file that nobody else may read."""
    PASSWORD = "p:ss/w%rd " + PASSWORD

    def setUp(self):
        super().setUp()
        self.log = support.LAB.path("egress-url.jsonl")
        self.proxy = support.LAB.spawn_outside([support.PYTHON, os.path.join(support.HERE, "connect_proxy.py"), "10.99.0.66",
                                                "3128", f"veth@guard:{self.PASSWORD}", self.log, "10.99.0.80"])
        support.wait_until(lambda: os.path.exists(self.log))

    def tearDown(self):
        self.proxy.terminate()
        self.proxy.wait(5)
        support.LAB.processes.remove(self.proxy)
        os.unlink(self.log)
        super().tearDown()

    def config(self, mode):
        encoded = urllib.parse.quote(self.PASSWORD, safe="")
        path = configuration("egress-url.yaml", f"egress: {{proxy: 'http://veth%40guard:{encoded}@10.99.0.66:3128'}}\n")
        os.chmod(path, mode)
        return path

    def test_url(self):
        done = self.run_vethguard(policy("http://plain.lab.test"), ["curl", "-sS", "http://plain.lab.test/"],
                                  config=self.config(0o600))
        self.assertEqual(done.status, 0, done)
        with open(self.log) as f:
            heads = [line.get("head", "") for line in map(json.loads, f)]
        self.assertTrue(any(head.startswith("CONNECT plain.lab.test:80 ") for head in heads), heads)
        self.assertNotIn(PASSWORD, done.stderr + done.stdout)

    def test_not_private(self):
        for mode in (0o644, 0o640, 0o602):
            done = self.run_vethguard(policy("http://plain.lab.test"), ["true"], config=self.config(mode))
            self.assertEqual(done.status, 125)
            self.assertIn("not private to root or to you: chmod 600 it, or write egress.user and egress.password_file",
                          done.stderr)
            self.assertNotIn(PASSWORD, done.stderr)


class Password(Egress):
    password = "wrong-" + PASSWORD

    def test_wrong(self):
        answer = self.fetched("plain.lab.test")
        self.assertEqual(answer["status"], 502)
        self.assertIn("407, check egress.user and egress.password_file", json.dumps(answer))


class Source(Case):
    """egress.address: what leaves comes from there, and of a family without one nothing leaves."""
    FOUR, SIX = "10.99.7.7", "fd99::7:7"

    @classmethod
    def setUpClass(cls):
        support.sh("ip", "addr", "add", cls.FOUR + "/16", "dev", "up0")
        support.sh("ip", "addr", "add", cls.SIX + "/64", "dev", "up0", "nodad")
        # Without being told, the kernel takes the first address.
        cls.boxes = {name: support.Sandbox(cls.rules(), config=support.LAB.write(
            f"egress-{name}.yaml", support.LAB.config(f"egress: {{address: {value}}}\n")))
            for name, value in (("both", f"[{cls.FOUR}, '{cls.SIX}']"), ("four", cls.FOUR), ("six", f"'{cls.SIX}'"))}

    @classmethod
    def tearDownClass(cls):
        for box in cls.boxes.values():
            box.close()
        support.sh("ip", "addr", "del", cls.FOUR + "/16", "dev", "up0")
        support.sh("ip", "addr", "del", cls.SIX + "/64", "dev", "up0")

    @staticmethod
    def rules():
        return policy("{to: 'https://api.lab.test', credential: api}", "http://plain.lab.test", "http://10.99.0.80",
                      "http://[fd99::80]", "udp://10.99.0.80:1234", "udp://[fd99::80]:1234", "tcp://tcp.lab.test:2222",
                      credentials=support.file_credential())

    def fetched(self, box, host, path):
        """Over TLS where the host is the one with a certificate."""
        s = f"tls('{host}')" if host == "api.lab.test" else f"connect('{host}', 80, family=socket.AF_INET{'6' * (':' in host)})"
        name = f"[{host}]" if ":" in host else host
        done = self.boxes[box].py(f"s = {s}\ns.sendall(request('GET', '{path}', '{name}'))\nanswered(*Reader(s).response())")
        self.assertEqual(done.status, 0, done)
        return json.loads(done.out)

    def peers(self, path):
        return {row["peer"] for row in self.seen("http", path=path)}

    def datagram(self, box, host, text, patience=60):
        """The origin's answer, or a word that there was none."""
        family = "AF_INET6" if ":" in host else "AF_INET"
        done = self.boxes[box].py(f"s = socket.socket(socket.{family}, socket.SOCK_DGRAM); s.settimeout({patience})\n"
                                  f"s.sendto({text!r}, ('{host}', 1234))\ntry: print(s.recv(100))\nexcept OSError: print('none')")
        return done.out.strip()

    def test_each_family_from_its_own(self):
        self.assertEqual(self.fetched("both", "10.99.0.80", "/four")["status"], 200)
        self.assertEqual(self.fetched("both", "fd99::80", "/six")["status"], 200)
        self.assertEqual(self.peers("/four"), {self.FOUR})
        self.assertEqual(self.peers("/six"), {self.SIX})
        self.assertIn("authenticated", json.dumps(self.fetched("both", "api.lab.test", "/whoami")))
        self.assertLessEqual(self.peers("/whoami"), {self.FOUR, self.SIX})

    def test_datagrams(self):
        for host, peer in (("10.99.0.80", self.FOUR), ("fd99::80", self.SIX)):
            text = f"from {peer}".encode()
            self.assertEqual(self.datagram("both", host, text), repr(b"echo:" + text))
            self.assertEqual({row["peer"] for row in self.seen("udp", data=text.hex())}, {peer})

    def test_opaque(self):
        done = self.boxes["both"].py("s = connect('tcp.lab.test', 2222)\nprint(s.recv(100))")
        self.assertEqual(done.out, "b'banner 1.0\\r\\n'\n")

    def test_a_family_without_address_is_not_used(self):
        for box, host, word in (("four", "fd99::80", "IPv6"), ("six", "10.99.0.80", "IPv4")):
            with self.subTest(box=box):
                answer = self.fetched(box, host, f"/no-{box}")
                self.assertEqual(answer["status"], 502, answer)
                self.assertIn(f"egress.address names no {word} address", json.dumps(answer))
                self.assertEqual(self.datagram(box, host, b"no-" + box.encode(), patience=1), "none")
                self.assertIsNotNone(self.boxes[box].event(NETWORK, **{"dst_endpoint.port": 1234, "status_detail":
                                                                       lambda text: f"no {word} address" in str(text)}))
        self.assertEqual(self.seen("http", path=lambda path: path.startswith("/no-")), [])
        self.assertEqual(self.seen("udp"), [])

    def test_a_name_with_both_takes_the_other(self):
        for box, peer in (("four", self.FOUR), ("six", self.SIX)):
            with self.subTest(box=box):
                self.assertEqual(self.fetched(box, "plain.lab.test", f"/by-{box}")["status"], 200)
                self.assertEqual(self.peers(f"/by-{box}"), {peer})

    def test_taken_away(self):
        support.sh("ip", "addr", "del", self.FOUR + "/16", "dev", "up0")
        try:
            answer = self.fetched("four", "10.99.0.80", "/gone")
        finally:
            support.sh("ip", "addr", "add", self.FOUR + "/16", "dev", "up0")
        self.assertEqual(answer["status"], 502, answer)
        self.assertIn("does this host still have it?", json.dumps(answer))
        self.assertEqual(self.peers("/gone"), set())


class Faults(Case):
    def refused(self, words, extra, rules=("http://plain.lab.test",)):
        done = self.run_vethguard(policy(*rules), ["true"], config=configuration("egress-bad.yaml", extra))
        self.assertEqual(done.status, 125)
        self.assertIn(words, done.stderr)
        self.assertNotIn(PASSWORD, done.stderr)

    def test_faults(self):
        for mode, words in ((0o644, "read by everybody"), (0o620, "written by its group")):
            extra = egress()
            os.chmod(support.LAB.path("egress.password"), mode)
            self.refused(words, extra)
        extra = egress()
        os.unlink(support.LAB.path("egress.password"))
        self.refused("No such file", extra)
        self.refused("second line", egress(password=PASSWORD + "\nx"))
        self.refused("udp:// rule cannot be served", egress(), ["udp://udp.lab.test:1234"])
        self.refused("egress.user and egress.password_file", f"egress: {{proxy: 'http://u:{PASSWORD}@p:3128'}}\n")

    def test_address(self):
        self.refused(":5:19: error: egress.address 10.99.9.9: this host has no such address",
                     "egress: {address: 10.99.9.9}\n")
        self.refused(":5:31: error: egress.address fd99::9:9: this host has no such address",
                     "egress: {address: [10.99.0.1, 'fd99::9:9']}\n")
        self.refused(":5:19: error: address must be an IPv4 or IPv6 address of this host", "egress: {address: up0}\n")

    def test_interface(self):
        for name, status in (("up0", 200), ("none0", 502)):
            with self.subTest(name=name):
                box = self.sandbox(policy("http://plain.lab.test"), config=support.LAB.write(
                    "egress-if.yaml", support.LAB.config(f"egress: {{interface: {name}}}\n")))
                done = box.py("answered(*fetch('plain.lab.test', '/x', plain=True, port=80))")
                self.assertEqual(json.loads(done.out)["status"], status, done)
