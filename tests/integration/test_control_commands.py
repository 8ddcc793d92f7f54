# SPDX-License-Identifier: Apache-2.0
"""vethguard's own commands over the control API of a real daemon: they do what they say to sandboxes in plain namespaces."""
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time

import support
from control_case import GROUP, NOBODY, POLICY, Control
from support import SECRET, SLOW, VETHGUARD, sh, wait_until


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
        self.assertEqual(self.ok("reload", "agent"), "agent: serving, policy generation 3, which decides the same as the one before\n")
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
        for file, fault in (("/nowhere/key", "No such file or directory"), (shared, "chmod go-w fixes that")):
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
        self.assertIn(f'warning: {name}: credential "key": {shared} can be read by everybody: chmod o-r fixes that', r.stderr)
        os.chmod(shared, 0o600)  # the same policy, and there is nothing to tell of it
        r = self.daemon.cli("reload", name)
        self.assertEqual((r.returncode, r.stderr), (0, ""), r)
        r = self.daemon.cli("attach", "--netns", self.namespace(), "--policy", policy)
        self.assertEqual((r.returncode, r.stderr.count("warning")), (0, 0), r)

    def test_a_container_that_no_engine_knows(self):
        empty = tempfile.mkdtemp(dir=support.LAB.dir)
        attach = ("attach", "--container", "nosuch", "--policy", self.policy)
        for words, told in (((), "error: neither docker nor podman is in PATH, and vethguard asks it "), (("--engine", "podman"), "error: podman is not in PATH, and vethguard asks it ")):
            r = self.daemon.cli(*attach, *words, env={**os.environ, "PATH": empty})
            self.assertEqual(r.returncode, 2, r)
            self.assertIn(told, r.stderr)
        with open(os.path.join(empty, "docker"), "w") as f:
            f.write("#!/bin/sh\nexit 1\n")
        os.chmod(f.name, 0o755)
        for words, told in (((), "docker and podman do not run, or have no container nosuch that you may see: 'docker ps -a' and 'podman ps -a' list those they have"),
                            (("--engine", "docker"), "docker does not run, or has no container nosuch that you may see: 'docker ps -a' lists those it has")):
            r = self.daemon.cli(*attach, *words, env={**os.environ, "PATH": empty})
            self.assertEqual(r.returncode, 2, r)
            self.assertIn(told, r.stderr)

    def test_a_slip_in_a_method_is_told(self):
        path = support.LAB.write("slip.yaml", "vethguard: 1\ndeny:\n  - {to: https://a.example, methods: [DELTE]}\n")
        r = self.daemon.cli("attach", "--netns", self.namespace(), "--policy", path)
        self.assertEqual(r.returncode, 0, r)
        self.assertIn(f'warning: {path}:3:39: method "DELTE" is not a method of HTTP; did you mean "DELETE"?', r.stderr)

    def test_a_reload_of_all_tells_whose_policy_has_a_slip(self):
        slip = support.LAB.write("slips.yaml", "vethguard: 1\ndeny:\n  - {to: https://a.example, methods: [DELTE]}\n")
        for name, policy in (("slip-1", slip), ("slip-2", slip), ("right", self.policy)):
            self.daemon.attach(netns=self.namespace(), policy=policy, name=name)
        told = [f'slip-{i}: {slip}:3:39: method "DELTE" is not a method of HTTP; did you mean "DELETE"?' for i in (1, 2)]
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
        for words, told in ((["attach", "--netns", netns, "--policy", self.policy], "that network namespace already belongs to sandbox told: detach that sandbox first"),
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
                              ({"netns": "/" + "a" * 5000}, "of at most 4095 bytes"), ({"policy": "a.yaml"}, 'policy: "a.yaml" is not an absolute path'),
                              ({"netns": "build"}, 'netns: "build" is not an absolute path'), ({"ttl": 5}, 'ttl: there is no such member; did you mean "ttl_s"?')):
            status, _, answer = self.daemon.call("POST", "/v1/sandboxes", {"netns": netns, "policy": self.policy} | members)
            self.assertEqual(status, 422, answer)
            self.assertIn(told, answer["detail"])

    def test_a_variable_as_a_source_is_told_with_its_place(self):
        path = support.LAB.write("from-env.yaml", support.policy("{to: 'https://api.lab.test', credential: api}", credentials="  api: {source: env:K, inject: bearer}\n"))
        r = self.daemon.cli("attach", "--netns", self.namespace(), "--policy", path)
        self.assertEqual(r.returncode, 1, r)
        self.assertIn(f'{path}:4:17: error: credential "api": an env: source reads', r.stderr)

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
        """A member chooses the root directory of its process; only files that the member may write are written."""
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
        self.assertRegex(r.stderr, r"(?m)^vethguard: warning: /etc/resolv\.conf: it is not a regular file$")
        self.assertFalse(os.path.exists(support.LAB.path("vethguard.pem")))
        # The host's own processes cannot be attached.
        r = self.daemon.cli("attach", "--pid", str(os.getpid()), "--files", "--policy", self.policy)
        self.assertEqual(r.returncode, 1, r)
