# SPDX-License-Identifier: Apache-2.0
"""`vethguard sidecar` in a real Podman pod and in a group of Docker containers that share one network (`--network container:`)."""
import os
import re
import shutil
import signal
import subprocess
import tempfile
import unittest

import attached
import guests
import lab
import pages
import support
from sidecar import AGENT, GUARD, ROUTER4, POD4, Pod, Uplink
from support import SECRET, SLOW, policy, sh, wait_until
from test_sidecar import LEAKS

PAGE = os.path.join(lab.ROOT, "docs/sidecar.md")
CREDENTIAL = "  api: {source: 'file:%s', inject: bearer, env: API_KEY}\n"
# Its own filter of system calls comes in the place of the engine's, which would not let it make its jails.
UNCONFINED = ("--security-opt", "seccomp=unconfined", "--security-opt", "apparmor=unconfined")


class Group(support.Case):
    ENGINE = None

    def setUp(self):
        super().setUp()
        if not shutil.which(self.ENGINE):
            raise unittest.SkipTest(self.ENGINE + " is not installed")
        self.engine = guests.Engine(self.ENGINE)
        self.addCleanup(self.engine.stop)
        self.share = tempfile.mkdtemp(prefix="share-", dir=support.LAB.dir)
        os.chown(self.share, GUARD, GUARD)
        os.chmod(self.share, 0o755)
        secret = support.LAB.write("sidecar-secret", SECRET + "\n", 0o400)
        os.chown(secret, GUARD, GUARD)
        self.policy = support.LAB.write("group.yaml", policy("{to: 'https://api.lab.test', credential: api}", "http://plain.lab.test",
                                                             credentials=CREDENTIAL % secret))
        self.config = support.LAB.path("config.yaml")
        # The programs of this build, with this machine's libraries: an image would have its own.
        self.volumes = ("-v", "/usr:/usr:ro", "-v", f"{os.path.dirname(support.VETHGUARD)}:/vg:ro", "-v", "/etc/ssl:/etc/ssl:ro",
                        "-v", f"{support.LAB.dir}:{support.LAB.dir}:rw")
        self.audit = os.path.join(self.share, "audit.jsonl")

    def init_words(self, *options):
        return ["/vg/vethguard", "sidecar", "init", "--uid", str(GUARD), "--config", self.config, *options]

    def run_words(self, *options):
        return ["/vg/vethguard", "sidecar", "run", "--policy", self.policy, "--config", self.config, "--share", self.share,
                "--share-as", "/share", "--audit", self.audit, *options]

    def agent_options(self, user=AGENT, *more):
        return ("--user", f"{user}:{user}", "--security-opt", "no-new-privileges", "-v", f"{self.share}:/share:ro", *more)

    def wait_until_ready(self, guard):
        ready = wait_until(lambda: os.path.exists(os.path.join(self.share, "ready")), 6 * SLOW)
        self.assertTrue(ready, subprocess.run([self.ENGINE, "logs", guard], env=self.engine.env, capture_output=True, text=True))

    def sh(self, container, command):
        return self.engine.exec(container, None, "/bin/sh", "-c", f". /share/env.sh; {command}")

    def assert_serves(self, container):
        done = self.sh(container, "curl -sS https://api.lab.test/whoami -H \"Authorization: Bearer $API_KEY\"")
        self.assertIn('"authenticated": true', done.stdout, (done, open(self.audit, encoding="utf-8").read()[-3000:]))
        done = self.sh(container, "curl -sS -o /dev/null -w '%{http_code}' https://www.lab.test/")
        self.assertEqual(done.stdout, "403", done)
        done = self.sh(container, "echo $API_KEY; cat /share/* 2>/dev/null")
        self.assert_no_secret(done.stdout)

    def leak(self, container, capture):
        with capture:
            done = self.engine.exec(container, None, guests.PYTHON, "-c", LEAKS)
        self.assertEqual(done.returncode, 0, done)
        self.assertIn("as the guard EPERM", done.stdout)
        return capture.sent()

    def refused(self, text, *words):
        done = subprocess.run([self.ENGINE, *words], env=self.engine.env, capture_output=True, text=True, timeout=60 * SLOW)
        self.assertNotEqual(done.returncode, 0, done)
        self.assertIn(text, done.stdout + done.stderr)

    def tearDown(self):
        self.assert_clean(self.audit)
        super().tearDown()


class Docker(Group):
    """On a network of Docker's with its own resolver, which listens in the group's namespace."""
    ENGINE = "docker"

    def test_a_group(self):
        e = self.engine
        e("network", "create", "--ipv6", "--subnet", "10.98.0.0/24", "--gateway", ROUTER4, "--subnet", "fd98::/64", "--gateway",
          "fd98::1", "-o", "com.docker.network.bridge.name=vgside0", "side")
        e.run("group", "--network", "side", "--ip", POD4, "--cap-drop", "ALL", "--user", "65534")
        join = ("--network", "container:group")
        self.refused("needs CAP_NET_ADMIN", "run", "--rm", *join, "--cap-drop", "ALL", *self.volumes, e.IMAGE, *self.init_words())
        self.refused("no fence is in force", "run", "--rm", *join, "--user", str(GUARD), "--cap-drop", "ALL", *UNCONFINED, *self.volumes,
                     e.IMAGE, *self.run_words())
        e("run", "--rm", *join, "--cap-drop", "ALL", "--cap-add", "NET_ADMIN", *self.volumes, e.IMAGE, *self.init_words())
        e("run", "-d", "--name", "agent", *join, "--cap-drop", "ALL", *self.agent_options(), e.IMAGE, "/bin/sleep", "100000")
        e("run", "-d", "--name", "root", *join, "--cap-drop", "NET_RAW", "--cap-drop", "SETUID", "--cap-drop", "SETGID",
          *self.agent_options(0), e.IMAGE, "/bin/sleep", "100000")
        self.assertEqual(self.leak("agent", Uplink("vgside0", None)), [])  # from its first instruction on
        # Docker's resolver asks from here, so the guard has to have others.
        own = support.LAB.write("group-config.yaml", support.LAB.config().replace(f"resolver:\n  servers: [{lab.DNS4}]\n", ""))
        self.refused("resolver 127.0.0.11 is Docker's", "run", "--rm", *join, "--user", str(GUARD), "--cap-drop", "ALL", *UNCONFINED,
                     *self.volumes, e.IMAGE, *self.run_words("--config", own))
        e("run", "-d", "--name", "guard", *join, "--user", f"{GUARD}:{GUARD}", "--cap-drop", "ALL", *UNCONFINED, *self.volumes, e.IMAGE,
          *self.run_words())
        self.wait_until_ready("guard")
        for container in ("agent", "root"):
            self.assert_serves(container)
            self.assertEqual(self.leak(container, Uplink("vgside0", None)), [])
        e("kill", "guard")
        self.assertEqual(self.leak("agent", Uplink("vgside0", None)), [])
        done = self.sh("agent", "curl -sS -m 5 http://plain.lab.test/")
        self.assertNotEqual(done.returncode, 0)
        e("start", "guard")
        self.wait_until_ready("guard")
        self.assertTrue(wait_until(lambda: self.sh("agent", "curl -sS -o /dev/null http://plain.lab.test/").returncode == 0, 6 * SLOW))
        e("stop", "guard")
        done = subprocess.run([support.VETHGUARD, "audit", "verify", self.audit], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done)

    def test_one_container_for_both_steps(self):
        e = self.engine
        e("network", "create", "--subnet", "10.98.0.0/24", "--gateway", ROUTER4, "-o", "com.docker.network.bridge.name=vgside0", "side")
        e("run", "-d", "--name", "guard", "--network", "side", "--ip", POD4, "--cap-drop", "ALL", "--cap-add", "NET_ADMIN", "--cap-add",
          "SETUID", "--cap-add", "SETGID", "--cap-add", "SETPCAP", *UNCONFINED, *self.volumes, e.IMAGE,
          *self.run_words("--init", "--uid", str(GUARD)))
        self.wait_until_ready("guard")
        e("run", "-d", "--name", "agent", "--network", "container:guard", "--cap-drop", "ALL", *self.agent_options(), e.IMAGE, "/bin/sleep",
          "100000")
        self.assert_serves("agent")
        self.assertEqual(self.leak("agent", Uplink("vgside0", None)), [])
        e("stop", "guard")

    def make_guards_image(self):
        """As contrib/sidecar/Dockerfile makes it, with this build and this machine's libraries."""
        root = os.path.join(self.engine.dir, "guard-image")
        shutil.copytree(guests.Image.get(), root, symlinks=True)
        programs = os.path.dirname(support.VETHGUARD)
        names = [os.path.join(programs, n) for n in os.listdir(programs)]
        os.makedirs(root + "/usr/local/bin", exist_ok=True)
        for path in names:
            shutil.copy(path, root + "/usr/local/bin")
        for line in sh("ldd", *names).splitlines():
            for word in [w for w in line.split() if w.startswith("/") and not w.endswith(":")][:1]:
                os.makedirs(root + os.path.dirname(word), exist_ok=True)
                shutil.copy(word, root + word)
        if not os.path.lexists(root + "/bin/test"):
            os.symlink("busybox", root + "/bin/test")
        for folder in ("share", "log"):
            os.makedirs(f"{root}/{folder}")
            os.chown(f"{root}/{folder}", GUARD, GUARD)
        sh("sh", "-c", f"tar -C {root} -c . | docker import --change 'ENTRYPOINT [\"/usr/local/bin/vethguard\", \"sidecar\"]' - vethguard",
           env=self.engine.env)
        self.engine("tag", self.engine.IMAGE, "my-image")

    def make_folder(self, name):
        """Files that a user needs beside the page's commands or the compose file: policy, configuration, key."""
        folder = os.path.join(support.LAB.dir, name)
        os.makedirs(folder)
        self.addCleanup(shutil.rmtree, folder)
        with open(PAGE, encoding="utf-8") as f, open(folder + "/agent.yaml", "w", encoding="utf-8") as out:
            out.write(re.search(r"(?ms)^```yaml\n(.*?)^```$", f.read()).group(1))
        shutil.copy(self.config, folder + "/vethguard.yaml")
        with open(folder + "/vethguard.yaml", encoding="utf-8") as f:
            text = f.read().replace(support.LAB.path("ca.pem"), "/policy/ca.pem")
        with open(folder + "/vethguard.yaml", "w", encoding="utf-8") as f:
            f.write(text)
        shutil.copy(support.LAB.path("ca.pem"), folder)
        with open(folder + "/key", "w", encoding="utf-8") as f:
            f.write(SECRET)
        os.chmod(folder + "/key", 0o400)
        os.chown(folder + "/key", GUARD, GUARD)
        return folder

    def make_agents_image(self):
        """my-agent asks twice what it may and may not, and goes on."""
        root = os.path.join(self.engine.dir, "agent-image")
        shutil.copytree(guests.Image.get(), root, symlinks=True)
        os.makedirs(root + "/usr/local/bin", exist_ok=True)
        with open(os.open(root + "/usr/local/bin/my-agent", os.O_CREAT | os.O_WRONLY, 0o755), "w", encoding="utf-8") as f:
            f.write("#!/bin/sh\ncurl -sS https://api.lab.test/whoami\ncurl -sS -o /dev/null -w '%{http_code}\n' https://evil.lab.test/\n"
                    "exec sleep 100000\n")
        sh("sh", "-c", f"tar -C {root} -c . | docker import --change 'ENV PATH=/usr/local/bin:/usr/bin:/bin' - my-image", env=self.engine.env)

    def compose(self, folder, *argv):
        r = subprocess.run(["docker-compose", "-p", "group", *argv], cwd=folder, env=self.engine.env, capture_output=True, text=True,
                           timeout=120 * SLOW)
        self.assertEqual(r.returncode, 0, r)
        return r.stdout

    def test_the_compose_file(self):
        """contrib/sidecar/compose.yaml as it is: the fence, then the guard, then the agent."""
        if not shutil.which("docker-compose"):
            raise unittest.SkipTest("docker-compose is not installed")
        e = self.engine
        self.make_guards_image()
        self.make_agents_image()
        folder = self.make_folder("sidecar-compose")
        shutil.copy(os.path.join(lab.ROOT, "contrib/sidecar/compose.yaml"), folder)
        self.compose(folder, "up", "-d")

        def container(service):
            return e("ps", "-aq", "--filter", f"label=com.docker.compose.service={service}")
        agent, guard = container("agent"), container("guard")
        self.assertEqual(e.inspect(container("fence"), "{{.State.ExitCode}}"), "0")
        said = lambda: e("logs", agent)  # noqa: E731
        self.assertTrue(wait_until(lambda: "403" in said(), 30 * SLOW), said())
        self.assertIn('"authenticated": true', said())
        bridge = "br-" + e("network", "inspect", "-f", "{{.Id}}", "group_default")[:12]
        self.assertEqual(self.leak(agent, Uplink(bridge, None)), [])
        # Killed, and not by Docker: it starts again by itself, and until then nothing passes.
        os.kill(int(e.inspect(guard, "{{.State.Pid}}")), signal.SIGKILL)
        # The kernel resets what the guard had open.
        self.assertEqual([f for f in self.leak(agent, Uplink(bridge, None)) if attached.says_something(f)], [])
        self.assertTrue(wait_until(lambda: e.inspect(guard, "{{.RestartCount}} {{.State.Health.Status}}") == "1 healthy", 30 * SLOW),
                        e("logs", guard))
        self.assertIn('"authenticated": true', self.sh(agent, "curl -sS https://api.lab.test/whoami").stdout)
        self.assertEqual(self.leak(agent, Uplink(bridge, None)), [])
        self.compose(folder, "down", "--volumes")
        self.assertEqual(e("ps", "-aq"), "")

    def test_every_command_of_the_page(self):
        self.make_guards_image()
        folder = self.make_folder("sidecar-page")
        commands = [(c.rstrip("\n"), shown or []) for b in pages.blocks(PAGE) if b.runs("make check-attach") for c, shown in b.commands]
        self.assertGreater(len(commands), 6)
        script = "".join(f"echo; echo '== {i}'\n{command}\n" for i, (command, _) in enumerate(commands))
        r = subprocess.run(["bash", "-e", "-o", "pipefail", "-c", script], cwd=folder, text=True, timeout=60 * SLOW, env=self.engine.env,
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.assertEqual(r.returncode, 0, r.stdout[-3000:])
        answers = dict(re.findall(r"(?ms)^== (\d+)\n(.*?)(?=^== |\Z)", r.stdout))
        for i, (command, shown) in enumerate(commands):
            hide = lambda t: re.sub(r"vethguard-key-[0-9a-f]+", "vethguard-key-X", t)  # noqa: E731
            if shown:
                self.assertEqual(hide(answers[str(i)]).strip(), hide("\n".join(shown)).strip(), command)
        self.assert_no_secret(r.stdout)

    def test_under_runsc_it_says_why_not(self):
        runsc = shutil.which("runsc")
        if not runsc:
            raise unittest.SkipTest("runsc is not installed")
        done = subprocess.run([runsc, "--rootless", "--network=none", "do", support.VETHGUARD, "sidecar", "init", "--uid", str(GUARD)],
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 1, done)
        self.assertIn("this is gVisor (runsc)", done.stderr)


class Podman(Group):
    ENGINE = "podman"

    def start_pod(self, *share):
        """Made without a network; its link to the lab's outside is the only one."""
        e = self.engine
        e("pod", "create", "--name", "group", "--network", "none", "--infra-image", e.IMAGE, "--infra-command", "/bin/sleep 100000", *share)
        e("pod", "start", "group")
        infra = e("pod", "inspect", "-f", "{{.InfraContainerID}}", "group")
        pid = e.inspect(infra, "{{.State.Pid}}")
        self.pod = Pod(self, uplink=False, pid=int(pid))
        self.pod.link()

    def test_a_pod(self):
        e = self.engine
        self.start_pod()
        join = ("--pod", "group")
        e("run", "--rm", *join, "--cap-drop", "ALL", "--cap-add", "NET_ADMIN", *self.volumes, e.IMAGE, *self.init_words())
        e("run", "-d", "--name", "agent", *join, "--cap-drop", "ALL", *self.agent_options(), e.IMAGE, "/bin/sleep", "100000")
        self.assertEqual(self.leak("agent", self.pod.capture()), [])
        e("run", "-d", "--name", "guard", *join, "--user", f"{GUARD}:{GUARD}", "--cap-drop", "ALL", *UNCONFINED, *self.volumes, e.IMAGE,
          *self.run_words())
        self.wait_until_ready("guard")
        self.assert_serves("agent")
        self.assertEqual(self.leak("agent", self.pod.capture()), [])
        e("kill", "guard")
        self.assertEqual(self.leak("agent", self.pod.capture()), [])

    def test_a_pod_that_shares_process_ids(self):
        """There the guard sees what others could do, and refuses."""
        e = self.engine
        self.start_pod("--share", "net,ipc,uts,pid")
        join = ("--pod", "group")
        e("run", "--rm", *join, "--cap-drop", "ALL", "--cap-add", "NET_ADMIN", *self.volumes, e.IMAGE, *self.init_words())
        run = ("run", "--rm", *join, "--user", f"{GUARD}:{GUARD}", "--cap-drop", "ALL", *UNCONFINED, *self.volumes, e.IMAGE,
               *self.run_words())
        for options, text in ((("--cap-drop", "ALL", "--cap-add", "NET_RAW"), "has CAP_NET_RAW"),
                              (("--cap-drop", "ALL", "--cap-add", "SETUID"), "has CAP_SETUID"),
                              (("--cap-drop", "ALL", "--user", str(GUARD)), "runs as the guard's user")):
            e("run", "-d", "--name", "agent", *join, *options, e.IMAGE, "/bin/sleep", "100000")
            self.refused(text, *run)
            e("rm", "-f", "-t", "0", "agent")
