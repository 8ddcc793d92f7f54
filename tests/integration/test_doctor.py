# SPDX-License-Identifier: Apache-2.0
"""`vethguard doctor`: each check has a case in which it fails, and the verdict follows."""
import contextlib
import json
import os
import shutil
import subprocess
import tempfile

import lab
import support
from support import SLOW, VETHGUARD, Case, sh

SUBJECTS = ["kernel", "user", "modules", "landlock", "seccomp", "limits", "shares", "vsock", "programs", "ca bundle", "resolver", "presets",
            "stores", "trial"]


class Doctor(Case):
    def setUp(self):
        super().setUp()
        self.mounts = contextlib.ExitStack()
        self.addCleanup(self.mounts.close)

    def mount(self, *argv):
        """In the lab's mount namespace, until the test ends."""
        sh("mount", *argv)
        self.mounts.callback(sh, "umount", "-R", argv[-1])

    def doctor(self, *options, prefix=(), binary=VETHGUARD, env=None):
        return subprocess.run([*prefix, binary, "doctor", *options], capture_output=True, text=True, timeout=60 * SLOW,
                              cwd="/", env=dict(os.environ, **(env or {})))

    def finding(self, subject, state, *words, works=None, **kw):
        """One finding of --json, and what follows from its state."""
        r = self.doctor("--json", **kw)
        told = json.loads(r.stdout)
        found = {f["subject"]: f for f in told["findings"]}
        self.assertEqual(found[subject]["state"], state, r)
        for word in words:
            self.assertIn(word, found[subject]["text"] + " " + found[subject].get("remedy", ""))
        self.assertEqual(told["works"], not any(f["state"] == "broken" for f in found.values()), r)
        self.assertEqual(r.returncode, 0 if told["works"] else 1, r)
        if state == "broken":
            self.assertFalse(told["works"])
        if works is not None:
            self.assertEqual(told["works"], works, r)
        return found

    def alone(self):
        """vethguard without its other programs, its tree and its data."""
        folder = support.LAB.path("alone")
        os.makedirs(folder, exist_ok=True)
        return shutil.copy(VETHGUARD, folder)

    def test_all_is_well(self):
        found = self.finding("trial", "ok", works=True)
        self.assertEqual(list(found), SUBJECTS)

    def test_text(self):
        r = self.doctor()
        self.assertEqual(r.returncode, 0, r)
        self.assertIn("'vethguard run' works here.", r.stdout)
        r = self.doctor(binary=self.alone())
        self.assertEqual(r.returncode, 1, r)
        self.assertIn("does not work here yet", r.stdout)
        self.assertRegex(r.stdout, "(?m)^broken  programs ")

    def test_usage(self):
        for words in (["now"], ["--jsno"], ["--json=1"]):
            with self.subTest(words=words):
                r = self.doctor(*words)
                self.assertNotIn(r.returncode, (0, 1), r)
                self.assertEqual(r.stdout, "")
                self.assertTrue(r.stderr.startswith("vethguard: error: "), r)

    def test_kernel(self):
        self.finding("kernel", "broken", "2.6.", "5.15", prefix=["setarch", "--uname-2.6"])

    def test_programs(self):
        found = self.finding("programs", "broken", "vethguardd", "make", binary=self.alone())
        self.assertEqual(found["trial"]["state"], "broken")

    def test_each_program(self):
        """Whichever is missing is named, by doctor and by the supervisor that cannot hold it."""
        for missing in ("vethguard-keeper", "vethguard-worker", "vethguard-recorder", "vethguard-fetch", "vethguard-token",
                        "vethguard-gateway", "vethguard-quota"):
            with self.subTest(missing=missing), tempfile.TemporaryDirectory() as folder:
                os.chmod(folder, 0o755)
                for name in {"vethguard", "vethguardd", "vethguard-keeper", "vethguard-worker", "vethguard-recorder", "vethguard-fetch",
                             "vethguard-token", "vethguard-gateway", "vethguard-quota"} - {missing}:
                    shutil.copy(os.path.join(lab.BIN, name), folder)
                self.finding("programs", "broken", missing, "make", works=False, binary=folder + "/vethguard")
                r = subprocess.run([folder + "/vethguardd", "--state", folder + "/state", "--data", folder + "/data",
                                    "--audit", folder + "/audit.jsonl"], capture_output=True, text=True, timeout=20 * SLOW)
                self.assertEqual(r.returncode, 125, r)
                self.assertIn(f"the program {missing} was not found", r.stderr)

    def test_presets(self):
        self.finding("presets", "note", "/share/vethguard/presets", "make install", binary=self.alone())

    def test_limits(self):
        little = ["prlimit", "--memlock=65536:65536"]
        self.finding("limits", "broken", "memlock", "ulimit -l", "LimitMEMLOCK", works=False, prefix=little)
        if not support.ASAN:  # whose mlock() does nothing
            run = [*little, VETHGUARD, "run", "--policy", support.LAB.write("little.yaml", "vethguard: 1\n"), "--", "true"]
            r = subprocess.run(run, capture_output=True, text=True)
            self.assertEqual(r.returncode, 125, r)
            self.assertIn("only 64 KiB of memory may be locked", r.stderr)
            self.assertIn("ulimit -l", r.stderr)
        self.finding("limits", "note", "memlock", works=True, prefix=["prlimit", f"--memlock={900 << 10}:{900 << 10}"])
        self.finding("limits", "note", "nofile", works=True, prefix=["prlimit", "--nofile=1024:1024"])

    def test_seccomp(self):
        self.mount("--bind", support.LAB.write("actions", "errno allow\n"), "/proc/sys/kernel/seccomp/actions_avail")
        self.finding("seccomp", "broken", "CONFIG_SECCOMP_FILTER")

    def test_resolver(self):
        self.mount("--bind", support.LAB.write("resolv-empty", ""), "/etc/resolv.conf")
        self.finding("resolver", "note", "names none", works=True)

    def test_files_of_etc(self):
        """No bundle in any place: a note, for --config can name another; no resolv.conf: nothing starts."""
        etc = support.LAB.path("doctor-etc")
        sh("cp", "-a", "/etc", etc)
        sh("rm", "-rf", *(os.path.join(etc, name) for name in ("resolv.conf", "ssl", "pki", "ca-certificates")))
        self.mount("--bind", etc, "/etc")
        found = self.finding("resolver", "broken", "No such file", works=False)
        self.assertEqual(found["ca bundle"]["state"], "note")
        self.assertEqual(found["trial"]["state"], "broken")
        self.assertIn("resolv.conf", found["trial"]["text"])

    def test_egress(self):
        """Whether the configuration's proxy takes a connection; nothing is sent to it."""
        proxy = "egress: {{proxy: 'http://{}'{}}}\ntimeouts: {{connect: 300ms}}\n".format

        def told(text):
            # The machine's resolvers are far from here: they are not waited for as long as libc would.
            r = self.doctor("--json", "--config", support.LAB.write("doctor.yaml", text), env={"RES_OPTIONS": "timeout:1 attempts:1"})
            findings = {f["subject"]: f for f in json.loads(r.stdout)["findings"]}
            self.assertEqual(r.returncode, 0 if findings["egress"]["state"] == "ok" else 1, r)
            return findings["egress"]["state"], findings["egress"]["text"], findings["egress"].get("remedy", "")

        self.assertEqual(told("{}\n"), ("ok", "directly: the configuration names no proxy", ""))
        self.assertIn("broken  egress       /nosuch.yaml: cannot read the configuration: No such file", self.doctor("--config", "/nosuch.yaml").stdout)
        state, text, _ = told("resolver: {hosts: {corp.test: 10.99.0.80}}\n" + proxy("corp.test:80", ", address: 10.99.0.1"))
        self.assertEqual(state, "ok", text)
        self.assertIn("corp.test port 80 takes connections", text)
        for config, words, mended in (
                (proxy("10.99.0.80:3129", ""), "refused", "egress.proxy"),
                (proxy("nowhere.invalid:3128", ""), "cannot be resolved", "resolver.hosts"),
                (proxy("10.99.0.80:80", ", interface: none0"), "No such device", "ip link"),
                (proxy("10.99.0.80:80", ", address: 10.99.9.9"), "Cannot assign", "ip addr"),
                (proxy("10.99.0.80:80", ", address: 'fd99::1'"), "Cannot assign", "of the proxy's family"),
                (proxy("10.99.0.80", ""), ":1:17: proxy", "vethguard.yaml(5)")):
            with self.subTest(config=config):
                state, text, remedy = told(config)
                self.assertEqual(state, "broken", text)
                self.assertIn(words, text)
                self.assertIn(mended, remedy)

    def test_stores(self):
        home = support.LAB.path("doctor-home")
        os.makedirs(home + "/.pki/nssdb", exist_ok=True)
        if os.path.exists("/usr/bin/certutil"):
            self.finding("stores", "ok", "NSS database: yes", works=True, env={"HOME": home})
            self.mount("--bind", support.LAB.write("no-certutil", ""), "/usr/bin/certutil")
        self.finding("stores", "note", "libnss3-tools", works=True, env={"HOME": home})

    def test_user_without_namespaces(self):
        """A process in a chroot gets no user namespace (user_namespaces(7))."""
        root = support.LAB.path("doctor-root")
        os.mkdir(root)
        self.mount("--rbind", "/", root)
        sh("mount", "--make-rprivate", root)  # or what is unmounted here were unmounted there too: /run/netns is shared
        self.finding("user", "broken", "user namespace", "sysctl", works=False,
                     prefix=["chroot", root, "setpriv", "--reuid", "1000", "--regid", "1000", "--clear-groups"])

    def test_leaves_nothing(self):
        tmp = tempfile.mkdtemp(dir=support.LAB.dir)
        os.chmod(tmp, 0o1777)
        before = support.Traces()
        # A /tmp of its own: the machine's may have that of another doctor. The tree may lie in the machine's.
        own = ["unshare", "-m", "sh", "-c", 'mount --rbind "$1" /mnt && mount --bind "$0" /tmp && shift && exec "$@"', tmp, lab.ROOT]
        program = os.path.join("/mnt", os.path.relpath(VETHGUARD, lab.ROOT))
        for words in ((), ("prlimit", "--nofile=20:20")):
            r = subprocess.run([*own, *words, program, "doctor"], capture_output=True, text=True, timeout=60 * SLOW, cwd="/")
            self.assertIn("trial", r.stdout, r)
        self.assertEqual(before.since(), "")
        self.assertEqual(os.listdir(tmp), [])
