# SPDX-License-Identifier: Apache-2.0
"""vethguard-runtime before runc, crun and runsc, with a real dockerd and a real Podman: containers that are guarded
before their first instruction."""
import json
import os
import subprocess
import time
import unittest

import attached
import guests
import support
import test_exfiltration
from bundles import PROGRAM
from lab import DNS4, EVIL4, ORIGIN4, ORIGIN6, ROOT
from runtimes import Runtime
from support import PYTHON, sh

class DockerRunc(Runtime):
    ENGINE, REAL = "docker", "runc"


class DockerCrun(Runtime):
    ENGINE, REAL = "docker", "crun"

    @classmethod
    def setUpClass(cls):
        """crun refuses a mixture of control groups' versions, and the one of Debian 12 the configurations of dockerd 28."""
        if os.environ.get("VETHGUARD_DOCKER"):
            raise unittest.SkipTest("crun is the system's, and dockerd is not")
        if os.path.ismount("/sys/fs/cgroup/unified"):
            sh("umount", "/sys/fs/cgroup/unified")
            cls.addClassCleanup(sh, "mount", "-t", "cgroup2", "none", "/sys/fs/cgroup/unified")
        super().setUpClass()


class DockerRunsc(Runtime):
    ENGINE, REAL = "docker", "runsc"

    def refused(self, found):
        """gVisor has no packet sockets for a container of Docker's."""
        self.assertIn(found["frames"], attached.UNSENT)
        super().refused({**found, "frames": [5, True]})


class Podman(Runtime):
    ENGINE, REAL = "podman", "runc"
    OPTIONS = ("--network", "none")

    def test_0_refused(self):
        """Podman shows why."""
        for options, words in (([], "names no policy"), (["-e", "VETHGUARD_POLICY=nobody"], "there is no policy nobody")):
            with self.subTest(options=options):
                r = self.start("no", *options)
                self.assertNotEqual(r.returncode, 0, r)
                self.assertIn(words, r.stderr)
                self.remove("no")
        r = subprocess.run([*self.prefix(), "run", "--rm", "--network", "host", "-e", "VETHGUARD_POLICY=agent", self.engine.IMAGE, "/bin/true"],
                           env=self.engine.env, capture_output=True, text=True)
        self.assertIn("start it without --network host", r.stderr)

    @classmethod
    def prefix(cls):
        """Podman remembers the program for later calls, but no --runtime-flag: so the lab's configuration is named in a script."""
        return [cls.engine.name, "--runtime", support.LAB.write(f"{cls.tag}-podman", f"#!/bin/sh\nexec {PROGRAM} --vethguard-config={cls.config} \"$@\"\n", 0o755)]

    @classmethod
    def runtime(cls):
        return []


class PodmanHook(Runtime):
    """Podman calls its own runtime; the hook comes in between."""
    ENGINE, REAL = "podman", "runc"
    OPTIONS = ("--network", "none", "--annotation", "org.vethguard.policy=agent")

    @classmethod
    def prefix(cls):
        hooks = support.LAB.path(f"{cls.tag}-hooks")
        os.makedirs(hooks, exist_ok=True)
        program = support.LAB.write(f"{cls.tag}-hook", f"#!/bin/sh\nexec {PROGRAM} --vethguard-config={cls.config} \"$@\"\n", 0o755)
        with open(os.path.join(ROOT, "contrib/runtime/oci-hooks.json")) as f:
            text = f.read().replace("/usr/libexec/vethguard/vethguard-runtime", program)
        with open(hooks + "/vethguard.json", "w") as f:
            f.write(text)
        return [cls.engine.name, "--hooks-dir", hooks]

    @classmethod
    def runtime(cls):
        return []

    @classmethod
    def attach(cls, name="box"):
        """A hook cannot set variables: `vethguard env` has them."""
        super().attach(name)
        cls.env_file = support.LAB.write(f"{cls.tag}.env", cls.vethguard("env", name, "--format", "docker"))

    @classmethod
    def inside(cls, *argv, env_file=None):
        return cls.engine.exec("agent", env_file or cls.env_file, *argv)

    def test_0_refused(self):
        r = self.start("no", "--annotation", "org.vethguard.policy=nobody")
        self.assertNotEqual(r.returncode, 0, r)
        self.assertIn("there is no policy nobody", r.stderr)
        self.assertEqual(self.engine("ps", "--format", "{{.Names}}").split(), ["agent"])
        self.remove("no")

    def test_0_what_is_set(self):
        self.assertEqual(self.info()["attachment"]["kind"], "pid")
        self.assertEqual(self.inside("/bin/ls", "/etc/ssl/certs").stdout.split(), ["ca-certificates.crt", "vethguard.pem"])


class DockerNetworks(Runtime):
    """Every network that Docker offers, errors as its user sees them, and what each adds to `docker run`."""
    ENGINE, REAL = "docker", "runc"
    ROUNDS, device = 20, "box"

    def dropped(self, **fields):
        return [e for e in super().dropped(**fields) if e["device"]["name"] == self.device]

    def tries(self, name, *options):
        """The container's entrypoint tries every way out at once: what it found."""
        tag = f"first{time.monotonic_ns() % 10 ** 9}"
        with test_exfiltration.Watch() as watch:
            r = self.start(name, "-e", "VETHGUARD_POLICY=agent", "-e", f"VETHGUARD_NAME={name}", *options, detached=False,
                           command=[PYTHON, "/inside_battery.py", "tries", json.dumps(
                               {"evil4": EVIL4, "dns4": DNS4, "origin4": ORIGIN4, "origin6": ORIGIN6, "services": [["10.99.0.1", 8099, 8098]],
                                "neighbours": [], "macs": [], "tag": tag})])
            self.assertEqual(r.returncode, 0, r)
        self.assert_nothing_leaks(watch, allowed_flows=False)
        self.tag, self.device, found = tag, name, json.loads(r.stdout)
        self.refused(found)
        self.logged(found)

    def test_2_first_instruction(self):
        self.engine("network", "create", "crew")
        for i, options in enumerate(([], ["--network", "none"], ["--network", "crew"], ["-p", "8080:80"])):
            with self.subTest(options=options):
                if "crew" in options and int(self.engine("version", "-f", "{{.Server.Version}}").split(".")[0]) >= 28:
                    self.refused_for_its_resolver(f"first{i}", *options)
                else:
                    self.tries(f"first{i}", *options)
        self.assertEqual(self.traces_beside("agent"), [])

    def refused_for_its_resolver(self, name, *options):
        """dockerd 28 has it listen in the namespace before the container starts."""
        r = self.start(name, "-e", "VETHGUARD_POLICY=agent", "-e", f"VETHGUARD_NAME={name}", *options)
        self.assertEqual(r.returncode, 125, r)
        self.assertIn("Docker's resolver", r.stderr)
        self.remove(name)

    def traces_beside(self, *names):
        """What is left on the host, except for containers that exist."""
        there = [self.engine.inspect(n, "{{.Id}}")[:12] for n in names]
        return [t for t in self.traces() if not any(i in t for i in there)]

    def test_2_shared(self):
        """A container in another one's network has its guard, and no other policy."""
        r = self.start("second", "-e", "VETHGUARD_POLICY=agent", "--network", "container:agent", detached=False,
                       command=["/usr/bin/curl", "-sS", attached.WHOAMI])
        self.assertIn('"authenticated": true', r.stdout, r)
        self.assertEqual(len(self.daemon.call("GET", "/v1/sandboxes")[2]["sandboxes"]), 1)
        r = self.start("second", "-e", "VETHGUARD_POLICY=narrow", "--network", "container:agent")
        self.assertIn("guarded already, as box", r.stderr)

    def test_2_refused(self):
        self.engine.run("open", "--network", "bridge")
        for options, words in (
                ([], "names no policy: set VETHGUARD_POLICY=NAME"), (["-e", "VETHGUARD_POLICY=nobody"], "there is no policy nobody"),
                (["-e", "VETHGUARD_POLICY=agent", "--network", "host"], "start it without --network host"),
                (["-e", "VETHGUARD_POLICY=agent", "--network", "container:open"], "has an interface eth0 already")):
            with self.subTest(options=options):
                r = self.start("no", *options)
                self.assertEqual(r.returncode, 125, r)
                self.assertIn(words, r.stderr)
                self.assertEqual(self.engine.inspect("no", "{{.State.Running}}"), "false")
                self.remove("no")
        self.remove("open")
        self.assertEqual(self.traces_beside("agent"), [])

    def test_2_restarted(self):
        """A container that Docker restarts is guarded again, under the same name."""
        before = self.info()["id"]
        self.engine("restart", "-t", "0", "agent")
        self.assert_works()
        self.assertNotEqual(self.info()["id"], before)

    def test_3_what_it_adds(self):
        """docker run of /bin/true, with and without, one after the other. Printed; nothing depends on it."""
        kinds = {"without": ["--runtime", "runc"], "without any network": ["--runtime", "runc", "--network", "none"],
                 "with the guard": [*self.words(), "-e", "VETHGUARD_POLICY=agent"]}
        times = {kind: [] for kind in kinds}
        for _ in range(self.ROUNDS):
            for kind, words in kinds.items():
                began = time.monotonic()
                subprocess.run(["docker", "run", "--rm", *words, self.engine.IMAGE, "/bin/true"], env=self.engine.env, check=True)
                times[kind].append((time.monotonic() - began) * 1000)
        middle = {k: sorted(v)[len(v) // 2] for k, v in times.items()}
        guests.say(f"docker run, p50 of {self.ROUNDS}: " + ", ".join(f"{v:.0f} ms {k}" for k, v in middle.items()))
        self.assertEqual(self.traces_beside("agent"), [])


del Runtime  # a base class, not a test
