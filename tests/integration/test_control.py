# SPDX-License-Identifier: Apache-2.0
"""The control API of a real daemon, by curl: every resource answers as docs/openapi.yaml describes it, every error too, and nobody
else may ask."""
import json
import os
import re
import signal
import socket
import subprocess

import support
from control_case import GROUP, NARROW, NOBODY, Control
from support import SLOW, VETHGUARD, sh, wait_until

API = 6003


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
                                   ("GET", "/credentials", None), ("POST", "/credentials/check", {"credential": "key"}),
                                   ("POST", "/credentials/revoke", {"credential": "key"}), ("POST", "/credentials/rotate", {"credential": "key"}),
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
        for path, body in (("/v1/ca/csr", {"name": "node"}), ("/v1/ca/rotate", {"overlap_s": 60})):
            self.described.request("POST", path, body)
            status, _, answer = self.call("POST", path, body)
            self.assertEqual((status, answer["changed"]), (200, True), answer)
        self.assertEqual(self.call("POST", "/v1/ca/install", {"certificate": answer["trusted_pem"]})[0], 422)
        self.assertEqual(len(self.call("GET", "/v1/ca")[2]["cas"]), 2)
        told = {o["operationId"] for item in self.described.document["paths"].values() for o in item.values() if "responses" in o}
        self.call("GET", "/v1/roles")
        self.assertEqual(self.call("GET", "/v1/bundles")[2], {"bundles": []})  # others: test_bundles.py
        self.assertRegex(self.call("GET", "/v1/audit")[2]["fingerprint"], "^[0-9a-f]{64}$")
        self.ask_for_what_is_prepared()
        told -= {"upgrade", "ca.install"}  # test_upgrade.py, test_ca.py
        told -= {name for name in told if name.startswith(("sessions.", "tokens.", "credentials.", "asks."))}
        # test_gateway.py, test_credential_commands.py, test_ask.py
        self.assertEqual(told - self.described.used, set(), "described and never answered so")

    def ask_for_what_is_prepared(self):
        prepare = {"name": "ready", "netns": self.namespace(), "addresses": "same"}
        claim = {"name": "two", "netns": prepare["netns"], "policy": self.policy, "labels": {"team": "x"}, "vars": {"task": "1"}, "ttl_s": 60,
                 "observe": False, "wait": True}
        for path, request in (("/v1/prepared", prepare), ("/v1/claim", claim), ("/v1/claim", {"policy": self.policy, "like": "two"})):
            self.described.request("POST", path, request)
        for method, path, body, expected in (
                ("POST", "/v1/prepared", prepare, 201), ("GET", "/v1/prepared", None, 200), ("GET", "/v1/sandboxes/ready", None, 200),
                ("GET", "/v1/status", None, 200), ("POST", "/v1/sandboxes/ready/release", None, 409), ("POST", "/v1/claim", claim, 201),
                ("POST", "/v1/claim", claim, 409), ("POST", "/v1/claim", {"policy": self.policy}, 503),
                ("POST", "/v1/sandboxes/two/release", {}, 200), ("POST", "/v1/sandboxes/two/release", None, 404)):
            with self.subTest(method=method, path=path):
                status, _, answer = self.call(method, path, body)
                self.assertEqual(status, expected, answer)

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

    def test_host(self):
        """RFC 9112 section 3.2: a request has one Host, and who forgets it or names two is told."""
        good = (b"Host: localhost", b"Host:", b"hOST: [::1]:80")
        bad = (b"X: y", b"Host: a\r\nHost: a", b"Host:\r\nhost: b", b"Host: a, b", b"Host: a/b")
        for fields, status in [(f, b"200 OK") for f in good] + [(f, b"400 Bad Request") for f in bad]:
            with self.subTest(fields=fields), socket.socket(socket.AF_UNIX) as s:
                s.settimeout(20 * SLOW)
                s.connect(self.daemon.socket)
                s.sendall(b"GET /v1/status HTTP/1.1\r\nConnection: close\r\n" + fields + b"\r\n\r\n")
                self.assertTrue(s.recv(4096).startswith(b"HTTP/1.1 " + status + b"\r\n"))

    def test_curl(self):
        """As the documentation describes it."""
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
        """Callers that never finish a request have their share and no more."""
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
            for text in (b"", b"POST /v1/sandboxes HTTP/1.1\r\nHost:\r\nContent-Length: 9\r\n\r\n{", b"GET /v1/sta", b"\0\xff\r\n\r\n") * 15:
                come(text)
            self.assertEqual(self.call("GET", "/v1/status")[0], 200)
            for _ in range(20):
                last = come()
            # The client is refused before it has sent a request; if it sends one all the same it may find the connection closed.
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
        """A process in a sandbox, or in any other namespace of its own, may not use the control socket."""
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
        """A process inside connects, ends, and leaves the connection to others, while a process outside gets its id."""
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
        """The socket's mode lets others in, as a socket unit may by mistake."""
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

    def test_sockets_with_the_callers_rights(self):
        """A member's socket is made where the member may make files, and is the member's."""
        theirs, roots = support.LAB.path("sockets-theirs"), support.LAB.path("sockets-roots")
        for folder in (theirs, roots):
            os.mkdir(folder, 0o755)
        os.chown(theirs, NOBODY, NOBODY)
        for listen, status in (({"path": roots + "/x.sock"}, "422"), ({"path": theirs + "/x.sock", "uid": 0}, "422"),
                               ({"path": theirs + "/x.sock", "gid": GROUP + 1}, "422"), ({"cid": 7, "port": 31280}, "422"), ({"path": theirs + "/x.sock", "gid": GROUP}, "201")):
            body = json.dumps({"name": "member", "listen": listen, "policy": self.narrow})
            r = subprocess.run(["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", f"--groups={GROUP}", "curl", "-sS", "-w", "%{http_code}",
                                "--unix-socket", self.daemon.socket, "http://localhost/v1/sandboxes", "--json", body],
                               capture_output=True, text=True)
            self.assertTrue(r.stdout.endswith(status), (listen, r))
            self.assertEqual(os.path.lexists(theirs + "/x.sock"), status == "201")
        st = os.lstat(theirs + "/x.sock")
        self.assertEqual((st.st_uid, st.st_gid, st.st_mode & 0o777), (NOBODY, GROUP, 0o600))
        self.assertEqual(self.call("DELETE", "/v1/sandboxes/member")[0], 200)
        self.assertFalse(os.path.lexists(theirs + "/x.sock"))
        self.assertEqual(os.listdir(roots), [])

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
        """A member cannot attach what it may not trace, neither by process id nor by a file of proc(5)."""
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
