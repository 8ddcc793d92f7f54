# SPDX-License-Identifier: Apache-2.0
"""The control API of a real daemon, by curl and by vethguard's own commands: every resource answers as docs/openapi.yaml
describes it, every error too, nobody else may ask, and the commands do what they say to sandboxes in plain namespaces."""
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time

import jsonschema
import yaml

import lab
import support
from daemon import Daemon
from support import SECRET, SLOW, VETHGUARD, Case, sh, wait_until

POLICY = """vethguard: 1
name: control
credentials:
  key: {source: 'file:%s', inject: bearer, env: LAB_KEY}
allow:
  - {name: api, to: https://api.lab.test, methods: [GET], credential: key}
"""
NARROW = "vethguard: 1\nname: narrow\nallow:\n  - {to: https://www.lab.test, methods: [GET]}\n"
WHOAMI = "https://api.lab.test/whoami"
NOBODY, GROUP = 65534, 61999
API = 6003


class Described:
    """docs/openapi.yaml, asked whether an answer is one."""

    def __init__(self):
        with open(os.path.join(lab.ROOT, "docs/openapi.yaml")) as f:
            self.document = yaml.safe_load(f)
        self.used = set()

    def operation(self, method, path):
        for pattern, item in self.document["paths"].items():
            if re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", pattern), path) and method.lower() in item:
                return item[method.lower()]
        return None

    def check(self, schema, value):
        jsonschema.Draft202012Validator({**schema, "components": self.document["components"]}).validate(value)

    def request(self, method, path, body):
        self.check(self.operation(method, path)["requestBody"]["content"]["application/json"]["schema"], body)

    def answer(self, method, path, status, headers, value):
        operation = self.operation(method, path)
        described = operation["responses"].get(str(status)) if operation else None
        if described is None:
            described = self.document["components"]["responses"]["Problem"]
        else:
            self.used.add(operation["operationId"])
        (media, content), = described["content"].items()
        assert headers["Content-Type"] == media, headers
        self.check(content["schema"], value)
        if status >= 400:
            assert value["status"] == status, value


class Control(Case):
    """One daemon for all tests of a class; a namespace for each test that wants one."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        # Of the lab's own: a group that may, without changing the machine's.
        with open("/etc/group") as f:
            groups = [line for line in f if not line.startswith("vethguard:")]
        cls.groups = support.LAB.write("group", "".join(groups) + f"vethguard:x:{GROUP}:\n")
        sh("mount", "--bind", cls.groups, "/etc/group")
        cls.key = support.LAB.write("control-key", SECRET, 0o600)
        cls.policy = support.LAB.write("control.yaml", POLICY % cls.key)
        cls.narrow = support.LAB.write("control-narrow.yaml", NARROW)
        cls.broken = support.LAB.write("control-broken.yaml", "vethguard: 1\nallwo: []\n")
        cls.described = Described()
        try:
            cls.daemon = Daemon()
        except BaseException:
            sh("umount", "/etc/group")
            raise

    @classmethod
    def tearDownClass(cls):
        sh("umount", "/etc/group")
        status = cls.daemon.stop()
        assert status == 0, cls.daemon.stderr()
        super().tearDownClass()

    def setUp(self):
        super().setUp()
        self.count = 0

    def tearDown(self):
        for s in self.daemon.call("GET", "/v1/sandboxes")[2]["sandboxes"]:
            self.daemon.call("DELETE", f"/v1/sandboxes/{s['name']}")
        super().tearDown()
        self.assert_clean(self.daemon.audit, self.daemon.stderr_path)

    def namespace(self):
        self.count += 1
        name = f"box{self.count}"
        sh("ip", "netns", "add", name)
        self.addCleanup(sh, "ip", "netns", "del", name)
        sh("ip", "-n", name, "link", "set", "lo", "up")
        return f"/run/netns/{name}"

    def attached(self, **members):
        netns = self.namespace()
        return self.daemon.attach(netns=netns, policy=self.policy, **members), netns

    def call(self, method, path, body=None, **kw):
        """One request, whose answer has to be as described."""
        status, headers, answer = self.daemon.call(method, path, body, **kw)
        self.described.answer(method, path, status, headers, answer)
        self.assertNotIn(SECRET, json.dumps(answer))
        return status, headers, answer

    def inside(self, sandbox, netns, url=WHOAMI, *options):
        """curl in the namespace, with the sandbox's name server and CA."""
        env = self.daemon.call("GET", f"/v1/sandboxes/{sandbox}/env")[2]
        ca = support.LAB.write("inside-ca.pem", env["ca_pem"])
        resolv = support.LAB.write("inside-resolv", "".join(f"nameserver {n}\n" for n in env["nameservers"]))
        script = f"mount --bind {resolv} /etc/resolv.conf && exec curl -sS -m 20 --cacert {ca} \"$@\""
        return subprocess.run(["nsenter", f"--net={netns}", "unshare", "-m", "sh", "-c", script, "curl", *options, url],
                              capture_output=True, text=True, timeout=60 * SLOW)


class Api(Control):
    def test_every_resource(self):
        netns = self.namespace()
        request = {"name": "one", "netns": netns, "policy": self.policy, "labels": {"team": "räd", "x/y.z": ""},
                   "vars": {"task": "1"}, "ttl_s": 3600, "observe": False}
        self.described.request("POST", "/v1/sandboxes", request)
        status, _, made = self.call("POST", "/v1/sandboxes", request)
        self.assertEqual(status, 201, made)
        self.assertEqual((made["name"], made["state"], made["labels"]), ("one", "serving", request["labels"]))
        self.assertEqual(made["attachment"]["netns"], netns)
        self.assertEqual(made["owner"], {"uid": 0, "gid": 0})
        self.assertIsNotNone(made["expires"])
        for method, path, body in (("GET", "", None), ("GET", "/env", None), ("GET", "/stats", None),
                                   ("POST", "/follow", {"pid": os.getpid()}),
                                   ("POST", "/reload", None), ("POST", "/reload", {"policy": self.narrow}),
                                   ("POST", "/pause", {"reason": "look"}), ("POST", "/resume", {})):
            with self.subTest(path=path):
                status, _, answer = self.call(method, "/v1/sandboxes/one" + path, body)
                self.assertEqual(status, 200, answer)
        for method, path in (("GET", "/v1/sandboxes"), ("GET", "/v1/status"), ("POST", "/v1/reload")):
            status, _, answer = self.call(method, path)
            self.assertEqual(status, 200, answer)
        status, _, answer = self.call("DELETE", "/v1/sandboxes/one")
        self.assertEqual(status, 200, answer)
        self.assertEqual(self.call("GET", "/v1/sandboxes/one")[0], 404)
        told = {o["operationId"] for item in self.described.document["paths"].values() for o in item.values() if "responses" in o}
        self.call("GET", "/v1/roles")
        self.assertRegex(self.call("GET", "/v1/audit")[2]["fingerprint"], "^[0-9a-f]{64}$")
        told -= {"upgrade"}  # test_upgrade.py
        self.assertEqual(told - self.described.used, set(), "described and never answered so")

    def test_a_link_that_cannot_be_made(self):
        """The worker has the gate's sockets by then: all of it is taken away again, and the same name can be had."""
        netns = self.namespace()
        request, name = {"netns": netns, "policy": self.policy, "name": "late"}, os.path.basename(netns)
        sh("ip", "-n", name, "link", "set", "lo", "down", "name", "eth0")  # one that leads nowhere
        status, _, answer = self.call("POST", "/v1/sandboxes", request)
        self.assertEqual(status, 422, answer)
        self.assertIn("eth0", answer["detail"])
        self.assertTrue(support.wait_until(lambda: not self.call("GET", "/v1/sandboxes")[2]["sandboxes"], 10 * support.SLOW))
        for folder in ("sandboxes", "netns", "names"):
            self.assertEqual(os.listdir(os.path.join(self.daemon.state, folder)), [], folder)
        sh("ip", "-n", name, "link", "set", "eth0", "name", "lo")
        status, _, answer = self.call("POST", "/v1/sandboxes", request)
        self.assertEqual((status, answer.get("state")), (201, "serving"), answer)

    def test_errors(self):
        self.attached(name="taken")
        other = self.namespace()
        good = {"netns": other, "policy": self.policy}
        for status, body in ((422, {**good, "polcy": "x"}), (422, {**good, "interface": "lo"}), (422, {"policy": self.policy}),
                             (422, {**good, "policy": "/nowhere.yaml"}), (422, {**good, "netns": "/etc/passwd"}),
                             (422, {**good, "netns": "/nowhere"}), (422, {**good, "name": "a b"}),
                             (422, {**good, "addresses": ["10.77.0.2"]}), (422, {"interface": "nosuch0", "policy": self.policy}),
                             (422, {"pid": os.getpid(), "policy": self.policy, "container": {"engine": "\x1b[2J", "id": "1"}}),
                             (422, {**good, "labels": {"a b": ""}}), (422, {**good, "vars": {"1": ""}}),
                             (409, {**good, "name": "taken"})):
            with self.subTest(body=body):
                got, _, answer = self.call("POST", "/v1/sandboxes", body)
                self.assertEqual(got, status, answer)
        for _ in range(3):  # nothing of one that cannot be is left, its name neither
            got, _, answer = self.call("POST", "/v1/sandboxes", {"interface": "nosuch0", "policy": self.policy, "name": "again"})
            self.assertEqual(got, 422, answer)
            self.assertEqual([s["name"] for s in self.call("GET", "/v1/sandboxes")[2]["sandboxes"]], ["taken"])
        self.assertNotIn("cannot be removed", self.daemon.stderr())  # of an interface that is not there there is no gate
        got, _, answer = self.call("POST", "/v1/sandboxes", {**good, "policy": self.broken})
        self.assertEqual(got, 422, answer)
        self.assertRegex("\n".join(answer["diagnostics"]), r"control-broken\.yaml:2:1: error: .*allow")
        for status, method, path, body, headers in (
                (404, "GET", "/", None, {}), (404, "GET", "/v1/sandboxes/none", None, {}),
                (404, "DELETE", "/v1/sandboxes/none", None, {}), (404, "POST", "/v1/sandboxes/none/pause", None, {}),
                (405, "PATCH", "/v1/sandboxes", None, {}), (400, "POST", "/v1/sandboxes", b"{", {"Content-Type": "application/json"}),
                (415, "POST", "/v1/sandboxes", b"{}", {"Content-Type": "text/plain"}),
                (413, "POST", "/v1/sandboxes", b" " * 65537, {"Content-Type": "application/json"})):
            with self.subTest(method=method, path=path):
                got, _, answer = self.call(method, path, body, headers=headers)
                self.assertEqual(got, status, answer)
        self.assertEqual(self.call("POST", "/v1/sandboxes/taken/reload", {"policy": self.broken})[0], 422)
        self.assertEqual([s["name"] for s in self.call("GET", "/v1/sandboxes")[2]["sandboxes"]], ["taken"])
        self.assertEqual(self.call("GET", "/v1/sandboxes/taken")[2]["policy"]["generation"], 1)

    def test_curl(self):
        """As the documentation says it is done."""
        netns = self.namespace()
        curl = ["curl", "-sS", "--unix-socket", self.daemon.socket]
        body = json.dumps({"name": "by-curl", "netns": netns, "policy": self.policy})
        made = json.loads(sh(*curl, "http://localhost/v1/sandboxes", "--json", body))
        self.assertEqual(made["state"], "serving")
        self.assertIn("HTTP/1.1 200 OK", sh(*curl, "-i", "-X", "DELETE", "http://localhost/v1/sandboxes/by-curl"))
        refused = sh(*curl, "-i", "http://localhost/v1/sandboxes", "-d", body)
        self.assertIn("HTTP/1.1 415 ", refused)
        self.assertIn("curl --json", refused)

    def test_half_requests_and_crowds(self):
        """Those who never finish have their share and no more."""
        crowd = []

        def come(text=b""):
            s = socket.socket(socket.AF_UNIX)
            s.settimeout(20 * SLOW)
            s.connect(self.daemon.socket)
            crowd.append(s)
            if text:
                s.sendall(text)
            return s

        try:
            for text in (b"", b"POST /v1/sandboxes HTTP/1.1\r\nContent-Length: 9\r\n\r\n{", b"GET /v1/sta", b"\0\xff\r\n\r\n") * 15:
                come(text)
            self.assertEqual(self.call("GET", "/v1/status")[0], 200)
            for _ in range(20):
                last = come()
            # It is told before it has asked; who asks all the same may find the connection closed.
            self.assertTrue(last.recv(4096).startswith(b"HTTP/1.1 503 Service Unavailable\r\n"))
        finally:
            for s in crowd:
                s.close()

        def served():
            try:
                return self.call("GET", "/v1/status")[0] == 200
            except OSError:
                return False

        self.assertTrue(wait_until(served, 5 * SLOW))

    def test_calls_are_events(self):
        self.attached(name="told", labels={"ticket": "T-17"})
        attached = self.daemon.event(API, **{"api.operation": "sandboxes.attach", "device.name": "told"})
        self.assertRegex(attached["status_detail"], r"^(netns /|pid [0-9]).*, policy /.*\.yaml, label ticket=T-17$")
        self.assertNotIn("error_message", attached["api"]["response"])
        self.call("POST", "/v1/sandboxes/told/pause", {"reason": "x"})
        self.call("DELETE", "/v1/sandboxes/nobody")
        for path in ("", "/told", "/told/env", "/told/stats", "/nobody"):
            self.call("GET", "/v1/sandboxes" + path)
        self.call("GET", "/v1/roles")
        self.call("GET", "/v1/sandbox?es")
        for operation, status, activity in (
                ("sandboxes.attach", 201, 1), ("sandboxes.pause", 200, 3), ("sandboxes.detach", 404, 4), ("sandboxes.list", 200, 2),
                ("sandboxes.get", 200, 2), ("sandboxes.get", 404, 2), ("sandboxes.env", 200, 2), ("sandboxes.stats", 200, 2),
                ("roles.get", 200, 2), ("status.get", 200, 2), ("none", 404, 99)):
            with self.subTest(operation, status=status):
                event = self.daemon.event(API, **{"api.operation": operation, "api.response.code": status})
                self.assertIsNotNone(event, self.daemon.events(API))
                self.assertEqual(event["actor"]["user"]["uid"], "0")
                self.assertEqual(event["activity_id"], activity)


class Who(Control):
    def ask(self, *groups, uid=NOBODY):
        return subprocess.run(["setpriv", f"--reuid={uid}", f"--regid={uid}", "--groups=" + ",".join(map(str, groups or [uid])),
                               "curl", "-sS", "--unix-socket", self.daemon.socket, "http://localhost/v1/status"],
                              capture_output=True, text=True)

    def test_mode_and_group(self):
        st = os.stat(self.daemon.socket)
        self.assertEqual((st.st_mode & 0o7777, st.st_gid), (0o660, GROUP))
        self.assertIn('"version"', self.ask(GROUP).stdout)
        refused = self.ask()
        self.assertEqual(refused.returncode, 7, refused)  # connect(2): permission denied

    def test_from_inside(self):
        """Whoever is in a sandbox, or in any other namespace that it made for itself, is nobody's administrator."""
        _, netns = self.attached(name="inside")
        connect = ["curl", "-sS", "--unix-socket", self.daemon.socket, "http://localhost/v1/status"]
        for inside in (["nsenter", f"--net={netns}"], ["nsenter", f"--net={netns}", "unshare", "-n"], ["unshare", "-Un"]):
            with self.subTest(inside):
                answer = json.loads(sh(*inside, *connect))
                self.assertEqual(answer["status"], 403, answer)
                self.assertIn("network namespace", answer["detail"])
        r = subprocess.run(["nsenter", f"--net={netns}", VETHGUARD, "detach", "inside", "--socket", self.daemon.socket],
                           capture_output=True, text=True)
        self.assertEqual(r.returncode, 3, r)
        self.assertEqual(self.daemon.call("GET", "/v1/sandboxes/inside")[2]["state"], "serving")
        self.assertIsNotNone(self.daemon.event(API, **{"api.operation": "connect", "api.response.code": 403}))

    def test_a_flood_from_inside(self):
        """Thousands of connections that are refused: whoever may is served meanwhile, and the log does not grow by them."""
        _, netns = self.attached(name="flood")
        flood = ("import socket, sys\nkept = []\n"
                 "for _ in range(20000):\n s = socket.socket(socket.AF_UNIX)\n s.connect(sys.argv[1])\n kept = [*kept[-200:], s]\n")
        p = subprocess.Popen(["nsenter", f"--net={netns}", support.PYTHON, "-c", flood, self.daemon.socket])
        self.addCleanup(p.wait)
        self.addCleanup(p.kill)
        asked = 0
        while p.poll() is None:
            r = self.daemon.cli("list")  # which waits where the queue of connections is full
            self.assertEqual((r.returncode, r.stderr), (0, ""))
            asked += 1
        self.assertEqual(p.returncode, 0)
        self.assertGreater(asked, 3)
        together = re.compile(r"\d+ connections; the last of them: only processes")
        self.assertIsNotNone(self.daemon.event(API, status_detail=lambda text: text and together.match(text)))
        self.assertLess(sum(e["api"]["operation"] == "connect" for e in self.daemon.events(API)), 100)

    def test_another_process_has_its_number(self):
        """Who connects from inside, ends, and leaves the connection to others, while somebody outside is given its number."""
        _, netns = self.attached(name="number")
        with socket.socketpair()[0] as s:
            try:
                s.getsockopt(socket.SOL_SOCKET, 77)  # SO_PEERPIDFD
            except OSError:
                self.skipTest("this kernel does not tell a process that ended from another one with its number")
        inside = ("import os, socket, sys\ns = socket.socket(socket.AF_UNIX)\nchild = os.fork()\nif child == 0:\n"
                  " s.connect(sys.argv[1])\n s.send(b'GET /v1/status HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n')\n os._exit(0)\n"
                  "os.waitpid(child, 0)\nprint(child, flush=True)\nprint(s.recv(65536).decode())\n")
        os.kill(self.daemon.process.pid, signal.SIGSTOP)
        try:
            p = subprocess.Popen(["nsenter", f"--net={netns}", support.PYTHON, "-c", inside, self.daemon.socket], stdout=subprocess.PIPE, text=True)
            self.addCleanup(p.wait)
            self.addCleanup(p.kill)
            number = int(p.stdout.readline())
            for _ in range(200):  # others start processes too
                with open("/proc/sys/kernel/ns_last_pid", "w") as f:
                    f.write(str(number - 1))
                other = subprocess.Popen(["sleep", "600"])
                self.addCleanup(other.wait)
                self.addCleanup(other.kill)
                if other.pid == number:
                    break
            self.assertEqual(other.pid, number)
        finally:
            os.kill(self.daemon.process.pid, signal.SIGCONT)
        self.assertIn("HTTP/1.1 403 ", p.stdout.read())

    def test_credentials_decide_too(self):
        """Where a mode lets others in, as a socket unit may by mistake."""
        os.chmod(self.daemon.socket, 0o666)
        self.addCleanup(os.chmod, self.daemon.socket, 0o660)
        self.assertIn('"status":403', self.ask().stdout)
        self.assertIn('"version"', self.ask(GROUP).stdout)
        self.assertIsNotNone(self.daemon.event(API, **{"api.operation": "connect", "actor.user.uid": str(NOBODY)}))

    def test_files_with_the_callers_rights(self):
        """A member of the group names files; only those that it may read are read."""
        hidden = support.LAB.write("hidden.yaml", NARROW, 0o600)
        netns = self.namespace()
        # The group's members attach what they may open.
        for policy, status in ((hidden, "422"), (self.narrow, "201")):
            body = json.dumps({"name": "member", "netns": netns, "policy": policy})
            r = subprocess.run(["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", f"--groups={GROUP}", "curl", "-sS", "-w", "%{http_code}",
                                "--unix-socket", self.daemon.socket, "http://localhost/v1/sandboxes", "--json", body],
                               capture_output=True, text=True)
            self.assertTrue(r.stdout.endswith(status), r)
            self.assertNotIn("narrow" if status == "422" else "hidden", r.stdout)

    def test_groups_of_the_connection(self):
        """Not those that /etc/group has for the user; and they are remembered, over the daemon's death."""
        other = GROUP + 1
        theirs = support.LAB.write("theirs.yaml", NARROW, 0o640)
        os.chown(theirs, 0, other)

        def attach(*groups):
            body = json.dumps({"name": "grouped", "netns": netns, "policy": theirs})
            r = subprocess.run(["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--groups=" + ",".join(map(str, groups)), "curl", "-sS",
                                "-w", "%{http_code}", "--unix-socket", self.daemon.socket, "http://localhost/v1/sandboxes", "--json", body],
                               capture_output=True, text=True)
            return r.stdout[-3:]

        netns = self.namespace()
        self.assertEqual(attach(GROUP, other), "201")
        self.assertEqual(self.call("POST", "/v1/sandboxes/grouped/reload")[0], 200)
        self.daemon.kill()
        self.daemon.start()
        self.assertTrue(wait_until(lambda: self.call("GET", "/v1/sandboxes/grouped")[2]["state"] == "serving", 10 * SLOW),
                        self.daemon.stderr())
        self.assertEqual(self.call("DELETE", "/v1/sandboxes/grouped")[0], 200)
        with open(self.groups) as f:
            before = f.read()
        with open("/etc/passwd") as f:
            user = next(line.split(":")[0] for line in f if line.split(":")[2] == str(NOBODY))
        with open(self.groups, "w") as f:  # the file is mounted: in place
            f.write(before + f"theirs:x:{other}:{user}\n")
        try:
            self.assertEqual(attach(GROUP), "422")
        finally:
            with open(self.groups, "w") as f:
                f.write(before)

    def test_processes_with_the_callers_rights(self):
        """Neither by number nor by a file of proc(5) does a member get at what it may not trace."""
        mine, root = (subprocess.Popen([*become, "unshare", "-rn", "sleep", "600"])
                      for become in (["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"], []))
        own = os.stat("/proc/self/ns/net").st_ino
        for p in (mine, root):
            self.addCleanup(p.wait)
            self.addCleanup(p.kill)
            self.assertTrue(wait_until(lambda pid=p.pid: os.stat(f"/proc/{pid}/ns/net").st_ino != own, 10 * SLOW))
        for members, status in (({"pid": root.pid}, "422"), ({"netns": f"/proc/{root.pid}/ns/net"}, "422"),
                                ({"pid": mine.pid, "policy": f"/proc/{root.pid}/root{self.narrow}"}, "422"), ({"pid": mine.pid}, "201")):
            body = json.dumps({"policy": self.narrow, **members})
            r = subprocess.run(["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", f"--groups={GROUP}", "curl", "-sS", "-w", "%{http_code}",
                                "--unix-socket", self.daemon.socket, "http://localhost/v1/sandboxes", "--json", body],
                               capture_output=True, text=True)
            self.assertTrue(r.stdout.endswith(status), (members, r))

    def test_commands(self):
        r = subprocess.run(["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", VETHGUARD, "list", "--socket",
                            self.daemon.socket], capture_output=True, text=True)
        self.assertEqual(r.returncode, 3, r)
        self.assertIn("members of the group vethguard", r.stderr)
        r = subprocess.run([VETHGUARD, "list", "--socket", self.daemon.socket + "x"], capture_output=True, text=True)
        self.assertEqual(r.returncode, 3, r)
        self.assertIn("the daemon does not run", r.stderr)


class Commands(Control):
    def ok(self, command, *argv):
        r = self.daemon.cli(command, *argv)
        self.assertEqual(r.returncode, 0, r)
        self.assertNotIn(SECRET, r.stdout + r.stderr)
        return r.stdout

    def test_a_sandbox_from_end_to_end(self):
        netns = self.namespace()
        out = self.ok("attach", "--netns", netns, "--policy", self.policy, "--name", "agent", "--label", "team=a=b", "--var", "task=7",
                      "--ttl", "2h")
        self.assertRegex(out, r"(?m)^agent: serving, policy control, until 20\d\d-")
        self.assertRegex(self.ok("list"), rf"(?m)^agent +serving +netns {netns} +control \(1\) +20\S+Z +20\S+Z$")
        self.assertRegex(self.ok("show", "agent"), "(?m)^labels +team=a=b$")
        self.assertRegex(self.ok("show", "agent"), "(?m)^credentials +key=file:/.*/control-key$")
        self.assertEqual(json.loads(self.ok("list", "--json"))["sandboxes"][0]["vars"], {"task": "7"})
        self.assertIn('"authenticated": true', self.inside("agent", netns).stdout)

        env = self.ok("env", "agent", "--proxy-env")
        shown = sh("env", "-i", "sh", "-c", env + "echo $LAB_KEY; echo $HTTPS_PROXY; echo $SSL_CERT_FILE")
        self.assertRegex(shown, r"\Avethguard-key-[0-9a-f]+\nhttp://[0-9.]+:\d+\n/etc/ssl/certs/ca-certificates.crt\n\Z")
        self.assertRegex(self.ok("env", "agent", "--format", "docker"), r"(?m)^LAB_KEY=vethguard-key-")
        self.assertIn("LAB_KEY", json.loads(self.ok("env", "agent", "--format", "json")))
        self.assertIn("BEGIN CERTIFICATE", self.ok("env", "agent", "--format", "pem"))

        self.assertRegex(self.ok("stats", "agent"), r"(?m)^requests +1 allowed, 0 denied")
        self.assertEqual(json.loads(self.ok("stats", "agent", "--json"))["worker"]["requests"]["allowed"], 1)

        self.assertRegex(self.ok("pause", "agent", "--reason", "a look"), "(?m)^agent: paused$")
        self.assertRegex(self.ok("show", "agent"), "(?m)^reason +a look$")
        self.assertNotIn("authenticated", self.inside("agent", netns).stdout)
        self.assertRegex(self.ok("resume", "--all"), "(?m)^agent: serving$")
        self.assertIn('"authenticated": true', self.inside("agent", netns).stdout)

        out = self.ok("reload", "agent", "--policy", self.narrow)
        self.assertRegex(out, "(?m)^agent: serving, policy generation 2$")
        self.assertIn("api.lab.test", out)  # what is no longer possible
        self.assertIn('"status":403', self.inside("agent", netns).stdout)
        self.assertEqual(self.ok("reload", "agent"), "agent: serving, policy generation 3, which decides as the one before\n")
        r = self.daemon.cli("reload", "agent", "--policy", self.broken)
        self.assertEqual(r.returncode, 1, r)
        self.assertRegex(r.stderr, r"control-broken\.yaml:2:1: error: ")

        self.assertEqual(self.ok("reload", "--all"), "1 reloaded\n")

        self.assertRegex(self.ok("detach", "agent"), r"(?m)^agent: detached; [1-9]\d* allowed, [1-9]\d* denied")
        self.assertEqual(json.loads(self.ok("list", "--json")), {"brief": False, "sandboxes": []})
        # The kernel takes the gate, and with it the link, apart in its own time.
        self.assertEqual(wait_until(lambda: self.links(netns) == ["lo"] and "gone", 10 * SLOW), "gone")

    def test_a_namespace_of_proc(self):
        """A link there leads to no path that could be resolved."""
        p = subprocess.Popen(["nsenter", f"--net={self.namespace()}", "sleep", "600"])
        self.addCleanup(p.wait)
        self.addCleanup(p.kill)
        self.assertTrue(wait_until(lambda: os.readlink(f"/proc/{p.pid}/ns/net") != os.readlink("/proc/self/ns/net"), 5 * SLOW))
        place = f"/proc/{p.pid}/ns/net"
        self.ok("attach", "--netns", place, "--policy", self.policy, "--name", "proc")
        self.assertRegex(self.ok("list"), rf"(?m)^proc +serving +netns {place} ")

    @staticmethod
    def links(netns):
        return [link["ifname"] for link in json.loads(sh("ip", "-n", os.path.basename(netns), "-j", "link"))]

    def test_several_names(self):
        self.attached(name="one")
        r = self.daemon.cli("show", "one", "none")
        self.assertEqual(r.returncode, 1, r)
        self.assertRegex(r.stdout, "(?m)^name +one$")
        self.assertIn("there is no sandbox none", r.stderr)
        r = self.daemon.cli("detach", "none", "one")
        self.assertEqual(r.returncode, 1, r)
        self.assertIn("one: detached", r.stdout)

    def test_whoever_attaches_is_told_of_a_credential_that_cannot_be_had(self):
        shared = support.LAB.write("shared-key", SECRET)
        os.chmod(shared, 0o666)
        for file, fault in (("/nowhere/key", "No such file or directory"), (shared, "chmod go-w would mend that")):
            policy = support.LAB.write("absent.yaml", POLICY % file)
            r = self.daemon.cli("attach", "--netns", self.namespace(), "--policy", policy)
            self.assertEqual(r.returncode, 0, r)
            self.assertIn(f'warning: credential "key": {file}', r.stderr)
            self.assertIn(fault, r.stderr)
            name = json.loads(self.ok("list", "--json"))["sandboxes"][-1]["name"]
            r = self.daemon.cli("reload", name)  # as is whoever looks whether it was mended
            self.assertEqual(r.returncode, 0, r)
            self.assertIn(f'warning: {name}: credential "key": {file}', r.stderr)
            self.assertIn(fault, r.stderr)
        os.chmod(shared, 0o644)
        r = self.daemon.cli("reload", name)
        self.assertIn(f'warning: {name}: credential "key": {shared} can be read by everybody: chmod o-r would mend that', r.stderr)
        os.chmod(shared, 0o600)  # the same policy, and there is nothing to tell of it
        r = self.daemon.cli("reload", name)
        self.assertEqual((r.returncode, r.stderr), (0, ""), r)
        r = self.daemon.cli("attach", "--netns", self.namespace(), "--policy", policy)
        self.assertEqual((r.returncode, r.stderr.count("warning")), (0, 0), r)

    def test_a_container_that_no_engine_knows(self):
        empty = tempfile.mkdtemp(dir=support.LAB.dir)
        attach = ("attach", "--container", "nosuch", "--policy", self.policy)
        for words, told in (((), "error: neither docker nor podman is in PATH: "), (("--engine", "podman"), "error: podman is not in PATH: ")):
            r = self.daemon.cli(*attach, *words, env={**os.environ, "PATH": empty})
            self.assertEqual(r.returncode, 2, r)
            self.assertIn(told, r.stderr)
        with open(os.path.join(empty, "docker"), "w") as f:
            f.write("#!/bin/sh\nexit 1\n")
        os.chmod(f.name, 0o755)
        for words, told in (((), "docker and podman know no container nosuch that this user may see, or do not run: 'docker ps -a' and 'podman ps -a' tell"),
                            (("--engine", "docker"), "docker knows no container nosuch that this user may see, or does not run: 'docker ps -a' tells")):
            r = self.daemon.cli(*attach, *words, env={**os.environ, "PATH": empty})
            self.assertEqual(r.returncode, 2, r)
            self.assertIn(told, r.stderr)

    def test_a_slip_in_a_method_is_told(self):
        path = support.LAB.write("slip.yaml", "vethguard: 1\ndeny:\n  - {to: https://a.example, methods: [DELTE]}\n")
        r = self.daemon.cli("attach", "--netns", self.namespace(), "--policy", path)
        self.assertEqual(r.returncode, 0, r)
        self.assertIn(f'warning: {path}:3:39: method "DELTE" is none that HTTP knows; did you mean "DELETE"?', r.stderr)

    def test_a_reload_of_all_tells_whose_policy_has_a_slip(self):
        slip = support.LAB.write("slips.yaml", "vethguard: 1\ndeny:\n  - {to: https://a.example, methods: [DELTE]}\n")
        for name, policy in (("slip-1", slip), ("slip-2", slip), ("right", self.policy)):
            self.daemon.attach(netns=self.namespace(), policy=policy, name=name)
        told = [f'slip-{i}: {slip}:3:39: method "DELTE" is none that HTTP knows; did you mean "DELETE"?' for i in (1, 2)]
        status, _, answer = self.daemon.call("POST", "/v1/reload")
        self.assertEqual((status, sorted(answer["warnings"])), (200, told))
        r = self.daemon.cli("reload", "--all")
        self.assertEqual(r.returncode, 0, r)
        self.assertEqual(sorted(r.stderr.splitlines()), [f"vethguard: warning: {w}" for w in told])
        os.kill(self.daemon.process.pid, signal.SIGHUP)  # nobody gets an answer: the daemon's own log has it
        self.assertTrue(wait_until(lambda: all(w in self.daemon.stderr() for w in told)), self.daemon.stderr())

    def test_a_policy_that_others_can_change_is_told(self):
        folder = os.path.join(support.LAB.dir, "shared-folder")
        os.makedirs(folder)
        path = os.path.join(folder, "agent.yaml")
        with open(path, "w") as f:
            f.write(support.policy("https://api.lab.test"))
        file, above = f"{path}: can be changed by everybody: ", f"{path}: lies below {folder}, where everybody can put another file in its place: "
        r = self.daemon.cli("attach", "--netns", self.namespace(), "--policy", path, "--name", "mine")
        self.assertEqual((r.returncode, r.stderr), (0, ""), r)
        for place, mode, told in ((path, 0o666, file), (path, 0o644, None), (folder, 0o777, above), (folder, 0o1777, None)):
            os.chmod(place, mode)  # of a folder: no file has changed, and who shares what was loaded before is told all the same
            r = self.daemon.cli("attach", "--netns", self.namespace(), "--policy", path)
            self.assertEqual((r.returncode, told and "warning: " + told in r.stderr, r.stderr.count("warning")), (0, told and True, int(bool(told))), r)
            r = self.daemon.cli("reload", "mine")
            self.assertEqual((r.returncode, told and "warning: mine: " + told in r.stderr, r.stderr.count("warning")), (0, told and True, int(bool(told))), r)
            r = subprocess.run([VETHGUARD, "run", "--policy", path, "--config", support.LAB.path("config.yaml"), "--", "true"],
                               capture_output=True, text=True)
            self.assertEqual((r.returncode, told and told in r.stderr, r.stderr.count("warning")), (0, told and True, int(bool(told))), r)
            r = subprocess.run([VETHGUARD, "policy", "check", path], capture_output=True, text=True)
            self.assertEqual((r.returncode, told and told.replace(": ", ": note: ", 1) in r.stderr, r.stderr.count("note")),
                             (0, told and True, int(bool(told))), r)
        mount = os.path.join(support.LAB.dir, "another-mount")
        os.makedirs(mount)
        sh("mount", "-t", "tmpfs", "none", mount)
        self.addCleanup(subprocess.run, ["umount", "-l", mount], check=False)
        os.makedirs(mount + "/a/b")
        far = mount + "/a/b/agent.yaml"
        shutil.copy(path, far)
        for place, mode, told in ((mount + "/a", 0o777, mount + "/a"), (mount + "/a", 0o755, None), (mount, 0o777, mount), (mount, 0o755, None),
                                  (far, 0o666, far)):
            os.chmod(place, mode)
            r = self.daemon.cli("reload", "mine", "--policy", far)
            self.assertEqual((r.returncode, r.stderr.count("warning"), told is None or told + (": can" if told == far else ", where everybody") in r.stderr),
                             (0, int(bool(told)), True), r)
        self.assertEqual(self.daemon.cli("reload", "mine", "--policy", path).returncode, 0)
        os.chown(path, 61000, 61000)
        r = self.daemon.cli("reload", "mine")
        self.assertIn(f"warning: mine: {path}: belongs to user 61000, who can change it: ", r.stderr)
        self.addCleanup(os.chmod, self.daemon.config, 0o644)
        os.chmod(self.daemon.config, 0o666)
        r = self.daemon.cli("reload", "mine")
        self.assertIn(f"warning: mine: {self.daemon.config}: can be changed by everybody: ", r.stderr)
        os.kill(self.daemon.process.pid, signal.SIGHUP)
        self.assertTrue(wait_until(lambda: f"{self.daemon.config}: can be changed by everybody" in self.daemon.stderr()), self.daemon.stderr())

    def test_who_asked_is_told_what_to_do(self):
        netns = self.namespace()
        r = self.daemon.cli("attach", "--netns", netns, "--policy", self.policy, "--name", "told", "--var", "tsk=7")
        self.assertEqual(r.returncode, 0, r)
        unused = self.policy + ': variable "tsk" is given, but the policy does not use it'
        self.assertIn("warning: " + unused, r.stderr)
        again = {"netns": self.namespace(), "policy": self.policy, "name": "shared", "vars": {"tsk": "7"}}  # loaded before, told all the same
        self.assertEqual(self.daemon.attach(**again)["warnings"], [unused])
        for words, told in ((["attach", "--netns", netns, "--policy", self.policy], "that network namespace is told's already: detach that first"),
                            (["attach", "--netns", netns, "--policy", self.policy, "--name", "told"], "or take another name"),
                            (["attach", "--netns", "/etc/passwd", "--policy", self.policy], "/run/netns/NAME"),
                            (["attach", "--interface", "nosuch", "--policy", self.policy], "the daemon's network namespace has no interface nosuch: 'ip -br link' lists"),
                            (["attach", "--netns", self.namespace(), "--policy", self.policy, "--name", "a b"], "a b: a sandbox name is up to 64"),
                            (["attach", "--netns", self.namespace(), "--policy", self.policy, "--label", "fine=1", "--label", "a b=2"], "a b: a label's key is"),
                            (["attach", "--netns", self.namespace(), "--policy", self.policy, "--var", "a-b=2"], "a-b: a variable's name is"),
                            (["attach", "--interface", "a/b", "--policy", self.policy], "a/b: an interface's name has 1 to 15 characters"),
                            (["show", "nobody"], "'vethguard list' shows")):
            r = self.daemon.cli(*words)
            self.assertEqual(r.returncode, 1, r)
            self.assertIn(told, r.stderr)
        for members, told in (({"name": ""}, "name: is empty"), ({"policy": "/" + "a" * 5000}, "of at most 4095 bytes"),
                              ({"netns": "/" + "a" * 5000}, "of at most 4095 bytes"), ({"policy": "a.yaml"}, 'policy: "a.yaml" is no absolute path'),
                              ({"netns": "build"}, 'netns: "build" is no absolute path'), ({"ttl": 5}, 'ttl: there is no such member; did you mean "ttl_s"?')):
            status, _, answer = self.daemon.call("POST", "/v1/sandboxes", {"netns": netns, "policy": self.policy} | members)
            self.assertEqual(status, 422, answer)
            self.assertIn(told, answer["detail"])

    def test_a_variable_as_a_source_is_told_with_its_place(self):
        path = support.LAB.write("from-env.yaml", support.policy("{to: 'https://api.lab.test', credential: api}", credentials="  api: {source: env:K, inject: bearer}\n"))
        r = self.daemon.cli("attach", "--netns", self.namespace(), "--policy", path)
        self.assertEqual(r.returncode, 1, r)
        self.assertIn(f'{path}:4:17: error: credential "api": an env: source takes', r.stderr)

    def test_when_it_ends_is_told(self):
        r = self.daemon.cli("attach", "--netns", self.namespace(), "--policy", self.policy, "--ttl", "2h")
        self.assertRegex(r.stdout, r"^att-\w+: serving, policy \w+, until \d{4}-\d\d-\d\dT")
        r = self.daemon.cli("attach", "--netns", self.namespace(), "--policy", self.policy)
        self.assertRegex(r.stdout, r"^att-\w+: serving, policy \w+\n")
        r = self.daemon.cli("env", "a", "b")
        self.assertEqual((r.returncode, r.stderr), (2, "vethguard: error: one sandbox at a time. Usage: vethguard env NAME [OPTIONS]\n"))

    def test_output_that_cannot_be_written(self):
        """An --env-file that is cut short must not pass for one."""
        self.attached(name="full")
        for words in (["env", "full", "--format", "docker"], ["list"], ["show", "full", "--json"]):
            with self.subTest(words), open("/dev/full", "w") as full:
                r = subprocess.run([VETHGUARD, *words, "--socket", self.daemon.socket], stdout=full, stderr=subprocess.PIPE, text=True)
                self.assertEqual(r.returncode, 2, r)
                self.assertIn("cannot be written: No space left on device", r.stderr)

    def test_wrong_usage(self):
        odd = os.fsencode(support.LAB.path("odd")) + b"\xff.yaml"
        with open(odd, "w"):
            pass
        for words in (["attach"], ["attach", "--pid", "1"], ["attach", "--pid", "1", "--netns", "/x", "--policy", "p"], ["detach"],
                      ["show"], ["show", "a/b"], ["env"], ["env", "a", "--format", "xml"],
                      ["env", "a", "--ca", "/a\nb"], ["env", "a", "--ca-bundle", b"/\xff"], ["env", "a", "--ca", ""], ["pause"], ["pause", "a", "--all"],
                      ["list", "a"], ["reload", "--policy", "p"], ["reload", "a", "--all"], ["stats", "--jsno"],
                      ["attach", "--netns", "/nowhere", "--policy", self.policy],
                      ["attach", "--netns", "/x", "--address", "10.7.0.2", "--policy", "p"],
                      ["attach", "--pid", "1", "--policy", "/nowhere"],
                      # These would attach something else than was asked for, if a part that cannot be written down were left out.
                      ["attach", "--netns", "/proc/self/ns/net", "--policy", self.policy, "--name", b"a\xff"],
                      ["attach", "--interface", "tap", "--policy", self.policy, "--address", b"10.7.0.2\xff"],
                      ["attach", "--interface", b"tap\xff", "--policy", self.policy],
                      ["attach", "--interface", "tap", "--policy", self.policy, "--var", b"a=\xff"],
                      ["attach", "--interface", "tap", "--policy", self.policy, "--var", "a=1", "--var", "a=2"],
                      ["attach", "--interface", "tap", "--policy", self.policy, "--name", ""],
                      ["reload", "a", "--policy", odd]):
            with self.subTest(words=words):
                r = self.daemon.cli(*words)
                self.assertEqual(r.returncode, 2, r)
                self.assertTrue(r.stderr.startswith("vethguard: error: "), r)
                self.assertEqual(r.stdout, "")

    def guest(self, prepare=""):
        """A process in network, mount and root directory of its own, as a container's first one. Its pid and root."""
        root = os.path.join(self.daemon.dir, f"root-{time.monotonic_ns()}")
        os.makedirs(root + "/etc")
        busy = shutil.which("busybox") or "/bin/busybox"
        self.assertTrue(os.path.exists(busy), "busybox is missing")
        os.makedirs(root + "/bin")
        shutil.copy(busy, root + "/bin/busybox")
        sh("sh", "-c", prepare, cwd=root)
        p = subprocess.Popen(["unshare", "-n", "-m", "chroot", root, "/bin/busybox", "sleep", "600"])
        self.addCleanup(p.wait)
        self.addCleanup(p.kill)
        self.assertTrue(wait_until(lambda: os.readlink(f"/proc/{p.pid}/root") == root, 5 * SLOW))
        return p, root

    def test_files_of_a_guest(self):
        p, root = self.guest("mkdir -p etc/ssl/certs; echo old >etc/ssl/certs/ca-certificates.crt")
        out = self.ok("attach", "--pid", str(p.pid), "--files", "--policy", self.policy, "--name", "guest")
        self.assertIn("/etc/resolv.conf", out)
        env = self.call("GET", "/v1/sandboxes/guest/env")[2]
        with open(root + "/etc/ssl/certs/ca-certificates.crt") as f:
            self.assertEqual(f.read(), "old\n\n" + env["ca_pem"])
        with open(root + "/etc/resolv.conf") as f:
            self.assertIn(f"nameserver {env['nameservers'][0]}\n", f.read())
        p.kill()  # what it was attached to ends
        self.assertTrue(wait_until(lambda: not self.call("GET", "/v1/sandboxes")[2]["sandboxes"], 10 * SLOW))

    def test_files_of_a_members_guest(self):
        """What a member's process has for its root is the member's choice; only what the member may write is written."""
        busy = shutil.which("busybox") or "/bin/busybox"
        as_nobody = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", f"--groups={GROUP}"]
        for owner, written in ((0, False), (NOBODY, True)):
            root = tempfile.mkdtemp(prefix="vethguard-root-")
            for d in ("", "/etc", "/etc/ssl", "/etc/ssl/certs", "/bin"):
                os.makedirs(root + d, exist_ok=True)
                os.chmod(root + d, 0o755)
                os.chown(root + d, owner, owner)
            self.addCleanup(shutil.rmtree, root)
            shutil.copy(busy, root + "/bin/busybox")
            p = subprocess.Popen([*as_nobody, "unshare", "-rnm", "chroot", root, "/bin/busybox", "sleep", "600"])
            self.addCleanup(p.wait)
            self.addCleanup(p.kill)
            self.assertTrue(wait_until(lambda pid=p.pid, at=root: os.readlink(f"/proc/{pid}/root") == at, 5 * SLOW))
            body = json.dumps({"pid": p.pid, "files": True, "policy": self.narrow, "name": f"of-{owner}"})
            r = subprocess.run([*as_nobody, "curl", "-sS", "--unix-socket", self.daemon.socket, "http://localhost/v1/sandboxes",
                                "--json", body], capture_output=True, text=True)
            self.assertEqual("/etc/resolv.conf" in json.loads(r.stdout)["files"], written, r)
            self.assertEqual(os.path.exists(root + "/etc/resolv.conf"), written)

    def test_container(self):
        """An engine that knows one container without and one with a network."""
        p, root = self.guest()
        one = [{"Id": "0123456789abcdef", "Name": "/web", "State": {"Pid": p.pid}, "HostConfig": {"NetworkMode": "none"}}]
        two = [{**one[0], "HostConfig": {"NetworkMode": "bridge"}}]
        engine = os.path.join(self.daemon.dir, "docker")
        with open(engine, "w") as f:
            f.write(f"#!/bin/sh\ncase $5 in\nweb) echo '{json.dumps(one)}' ;;\nopen) echo '{json.dumps(two)}' ;;\n*) exit 1 ;;\nesac\n")
        os.chmod(engine, 0o755)
        env = dict(os.environ, PATH=self.daemon.dir + ":" + os.environ["PATH"])

        def attach(name):
            return self.daemon.cli("attach", "--container", name, "--engine", "docker", "--policy", self.policy, env=env)

        r = attach("open")
        self.assertEqual(r.returncode, 2, r)
        self.assertIn("--network none", r.stderr)
        self.assertEqual(attach("none").returncode, 2)
        r = attach("web")
        self.assertEqual(r.returncode, 0, r)
        self.assertTrue(os.path.exists(root + "/etc/ssl/certs/vethguard.pem"))
        self.assertRegex(self.ok("list"), "(?m)^web +serving +docker web ")
        s = self.call("GET", "/v1/sandboxes/web")[2]
        self.assertEqual(s["attachment"]["container"], {"engine": "docker", "id": "0123456789abcdef", "name": "web"})
        # Inside, with nothing but what was put there and the variables that `env` prints.
        variables = [line for line in self.ok("env", "web", "--format", "docker").split("\n") if line]
        r = subprocess.run(["nsenter", f"--net=/proc/{p.pid}/ns/net", f"--root={root}", "/bin/busybox", "env", "-i", *variables,
                            "/bin/busybox", "env"],
                           capture_output=True, text=True)
        self.assertIn("LAB_KEY=vethguard-key-", r.stdout + r.stderr)

    def test_files_of_a_hostile_guest(self):
        victim = support.LAB.write("victim", "untouched")
        p, root = self.guest(f"mkfifo etc/resolv.conf; mkdir -p etc/ssl; ln -s {os.path.dirname(victim)} etc/ssl/certs")
        r = self.daemon.cli("attach", "--pid", str(p.pid), "--files", "--policy", self.policy, "--name", "hostile")
        self.assertEqual(r.returncode, 0, r)
        self.assertRegex(r.stderr, r"(?m)^vethguard: warning: /etc/resolv\.conf: it is no regular file$")
        self.assertFalse(os.path.exists(support.LAB.path("vethguard.pem")))
        # The host's own processes are no guests.
        r = self.daemon.cli("attach", "--pid", str(os.getpid()), "--files", "--policy", self.policy)
        self.assertEqual(r.returncode, 1, r)


class Activated(Case):
    """This process is the service manager: it has the socket, and passes it on (sd_listen_fds(3))."""

    def setUp(self):
        super().setUp()
        self.daemon = Daemon(start=False)
        self.addCleanup(self.daemon.end)
        os.makedirs(self.daemon.state, 0o755)
        self.listener = self.listen(self.daemon.socket)

    def listen(self, path, mode=0o660, kind=socket.SOCK_STREAM):
        listener = socket.socket(socket.AF_UNIX, kind)
        self.addCleanup(listener.close)
        listener.bind(path)
        os.chmod(path, mode)
        if kind != socket.SOCK_DGRAM:
            listener.listen()
        return listener

    def passing(self, *listeners, pid="$$", count=None):
        """What starts the daemon with these sockets, as arguments of Popen."""
        fds = [s.fileno() for s in listeners]
        # In two steps: where one is to be may be another one of them.
        moves = "".join(f" {20 + i}<&{fd}" for i, fd in enumerate(fds)) + "".join(f" {3 + i}<&{20 + i}" for i in range(len(fds)))
        script = (f"exec{moves}; LISTEN_PID={pid} LISTEN_FDS={len(fds) if count is None else count} "
                  f"LISTEN_FDNAMES={':'.join(['vethguardd.socket'] * len(fds))} exec \"$@\"")
        return {"args": ["bash", "-c", script, "bash", *self.daemon.argv()], "pass_fds": fds}

    def start(self):
        how = self.passing(self.listener)
        return self.daemon.start(how["args"], pass_fds=how["pass_fds"])

    def later(self, *argv):
        """A call that is under way now, and waits."""
        p = subprocess.Popen([VETHGUARD, *argv, "--socket", self.daemon.socket], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.addCleanup(p.stdout.close)
        self.assertTrue(wait_until(lambda: self.waiting() or p.poll() is not None, 10 * SLOW))
        self.assertIsNone(p.poll(), "it waits")
        return p

    def waiting(self):
        """How many have connected whom nobody has accepted: the queue of the listener, as the kernel tells it."""
        rows = sh("ss", "-xlH", "src", self.daemon.socket).split("\n")
        return sum(int(row.split()[2]) for row in rows if row)

    def test_served_by_the_managers_socket(self):
        d = self.start()
        inode = f"socket:[{os.fstat(self.listener.fileno()).st_ino}]"
        roles = support.descendants(d.process.pid)
        self.assertGreaterEqual(len(roles), 2, roles)
        for pid in roles:
            with open(f"/proc/{pid}/environ") as f:
                self.assertNotIn("LISTEN_", f.read(), "what is said to the daemon is said to nobody else")
            self.assertNotIn(inode, support.open_files(pid), "its roles do not have the socket")
        self.assertEqual(d.stop(), 0, d.stderr())
        self.assertTrue(os.path.exists(d.socket), "the manager's socket is the manager's")

    def test_calls_wait_for_a_daemon(self):
        """Before the first one, after one was killed, and after one has ended."""
        first = self.later("list")
        d = self.start()
        self.assertEqual(first.wait(30 * SLOW), 0, first.stdout.read())
        d.kill()
        calls = [self.later("list"), self.later("detach", "nobody")]
        self.start()
        self.assertEqual([p.wait(30 * SLOW) for p in calls], [0, 1])
        self.assertIn("nobody", calls[1].stdout.read())
        self.assertEqual(d.stop(), 0, d.stderr())
        last = self.later("list")
        self.start()
        self.assertEqual(last.wait(30 * SLOW), 0, last.stdout.read())
        self.assertEqual(d.stop(), 0, d.stderr())

    def test_calls_wait_while_one_ends(self):
        """From SIGTERM on nobody is accepted who would be cut off."""
        self.daemon.options.append("-v")
        d = self.start()
        recorder = next(pid for pid, row in support.descendants(d.process.pid).items() if row[0].startswith("vethguard-recor"))
        os.kill(recorder, signal.SIGSTOP)  # the daemon does not end before everything is written
        d.process.send_signal(signal.SIGTERM)
        self.assertTrue(wait_until(lambda: "stopping" in d.stderr(), 10 * SLOW), d.stderr())
        call = self.later("list")
        self.assertIsNone(d.process.poll(), "it is not over yet")
        os.kill(recorder, signal.SIGCONT)
        self.assertEqual(d.process.wait(30 * SLOW), 0, d.stderr())
        self.start()
        self.assertEqual(call.wait(30 * SLOW), 0, call.stdout.read())
        self.assertEqual(d.stop(), 0, d.stderr())

    def test_handed_on_by_an_upgrade(self):
        d = self.start()
        status, _, answer = d.call("POST", "/v1/upgrade", timeout=60)
        self.assertEqual(status, 200, (answer, d.stderr()))
        d.process.wait(30 * SLOW)  # nothing was under way
        pid = d.call("GET", "/v1/status")[2]["processes"]["supervisor"]
        self.assertEqual(pid, answer["pid"])
        os.kill(pid, signal.SIGTERM)
        self.assertTrue(wait_until(lambda: not os.path.exists(f"/proc/{pid}/fd/0"), 30 * SLOW), d.stderr())
        self.assertTrue(os.path.exists(d.socket), "it is the manager's still")
        call = self.later("list")
        self.start()
        self.assertEqual(call.wait(30 * SLOW), 0, call.stdout.read())
        self.assertEqual(d.stop(), 0, d.stderr())

    def test_refused(self):
        """Whatever is not the control socket, and alone: it does not start."""
        elsewhere = os.path.join(self.daemon.dir, "x.sock")
        other = self.listen(elsewhere)
        for text, how in (("more than one descriptor", self.passing(self.listener, other)),
                          ("another path", self.passing(other)),
                          ("no Unix stream socket", self.passing(self.listen(elsewhere + "d", kind=socket.SOCK_DGRAM))),
                          ("no number", self.passing(self.listener, count="1x")),
                          ("no number", self.passing(self.listener, pid="me"))):
            with self.subTest(text):
                self.refused(text, how)
        os.chmod(self.daemon.socket, 0o666)
        self.refused("lets everybody connect", self.passing(self.listener))
        os.chmod(self.daemon.socket, 0o660)
        os.chown(self.daemon.socket, -1, GROUP)
        self.refused("lets another group connect", self.passing(self.listener))
        os.chown(self.daemon.socket, NOBODY, 0)
        self.refused("belongs to another user", self.passing(self.listener))
        os.unlink(self.daemon.socket)
        self.refused("its file is gone", self.passing(self.listener))

    def refused(self, text, how):
        r = subprocess.run(how["args"], pass_fds=how["pass_fds"], capture_output=True, text=True, timeout=30 * SLOW)
        self.assertEqual(r.returncode, 125, r)
        self.assertIn(text, r.stderr)
        self.assertIn(self.daemon.socket, r.stderr)

    def test_passed_to_somebody_else(self):
        """The daemon makes a socket of its own, and does not where the manager listens there."""
        how = self.passing(self.listener, pid=1)
        r = subprocess.run(how["args"], pass_fds=how["pass_fds"], capture_output=True, text=True, timeout=30 * SLOW)
        self.assertEqual(r.returncode, 125, r)
        self.assertIn("Address already in use", r.stderr)
        self.listener.close()
        self.daemon.start()
        self.assertEqual(self.daemon.stop(), 0, self.daemon.stderr())
        self.assertFalse(os.path.exists(self.daemon.socket))


class Own(Case):
    def test_a_second_daemon(self):
        d = Daemon()
        self.addCleanup(d.stop)
        second = subprocess.run(d.argv(), capture_output=True, text=True, timeout=30 * SLOW)
        self.assertEqual(second.returncode, 125, second)
        self.assertEqual(d.call("GET", "/v1/status")[0], 200)

    def test_stale_socket(self):
        d = Daemon()
        d.kill()
        self.assertTrue(os.path.exists(d.socket))
        d.start()
        self.assertEqual(d.stop(), 0, d.stderr())
        self.assertFalse(os.path.exists(d.socket))
