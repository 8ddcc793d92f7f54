# SPDX-License-Identifier: Apache-2.0
"""`vethguard run` as a command: status, streams, terminal, user, environment, trust stores, signals."""
import fcntl
import os
import pty
import re
import select
import shutil
import signal
import struct
import subprocess
import termios
import time
import unittest

import lab
import support
from support import PYTHON, SLOW, VETHGUARD, Case, policy, sh

NOTHING = "vethguard: 1\nname: nothing\n"
API = policy("https://api.lab.test")
TRUST = ["SSL_CERT_FILE", "SSL_CERT_DIR", "CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "PIP_CERT", "GIT_SSL_CAINFO",
         "NODE_EXTRA_CA_CERTS", "npm_config_cafile", "AWS_CA_BUNDLE", "CARGO_HTTP_CAINFO", "DENO_CERT",
         "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH"]


def command(text, *argv, options=(), name="basics"):
    return [VETHGUARD, "run", "--policy", support.LAB.write(name + ".yaml", text), "--config",
            support.LAB.path("config.yaml"), *options, "--", *argv]


class Status(Case):
    def check(self, status, *argv, text=NOTHING, **kw):
        r = self.run_vethguard(text, argv, **kw)
        self.assertEqual(r.status, status, r)
        return r

    def test_zero(self):
        r = self.check(0, "true")
        self.assertEqual((r.stdout, r.stderr), ("", ""))

    def test_seven(self):
        self.check(7, "sh", "-c", "exit 7")

    def test_255(self):
        self.check(255, "sh", "-c", "exit 255")

    def test_125_of_the_command_itself(self):
        self.check(125, "sh", "-c", "exit 125")

    def test_signals(self):
        for number in (signal.SIGKILL, signal.SIGTERM, signal.SIGSEGV, signal.SIGPIPE):
            with self.subTest(signal=number.name):
                self.check(128 + number, "sh", "-c", f"kill -{number} $$")

    def test_126(self):
        support.LAB.write("plain-file", "no program", 0o644)
        r = self.check(126, support.LAB.path("plain-file"))
        self.assertIn("plain-file", r.stderr)

    def test_126_directory(self):
        self.check(126, "/tmp")

    def test_127(self):
        r = self.check(127, "no-such-command-here")
        self.assertIn("no-such-command-here", r.stderr)

    def test_127_path(self):
        self.check(127, "/no/such/command")

    def test_orphans_end_with_the_command(self):
        began = time.monotonic()
        self.check(3, "sh", "-c", "sleep 1000 & setsid sleep 1000 & exit 3")
        self.assertLess(time.monotonic() - began, 10 * SLOW)

    def test_no_call_of_an_orphan_fails_at_the_end(self):
        """Init answers for their sockets until they are dead: an honest program left in the background has nothing to complain of."""
        busy = ("import errno, os, socket, sys\n"
                "for i in range(8):\n"
                " if os.fork() == 0:\n"
                "  while True:\n"
                "   with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:\n"
                "    e = s.connect_ex(('127.0.0.1', 9))\n"
                "   if e: os.write(2, os.strerror(e).encode() + b'\\n')\n"
                "import time; time.sleep(0.05); os._exit(4)\n")
        for _ in range(20):
            self.assertEqual(self.check(4, PYTHON, "-c", busy).stderr, "")


class Refusals(Case):
    """vethguard's own failures: status 125 and a sentence that says what to mend."""

    def own(self, *words, argv):
        r = subprocess.run(argv, capture_output=True, text=True, timeout=20 * SLOW, cwd=support.LAB.dir)
        self.assertEqual(r.returncode, 125, r)
        self.assertEqual(r.stdout, "")
        for word in words:
            self.assertIn(word, r.stderr)
        return r

    def test_no_policy(self):
        r = self.own("--policy", argv=[VETHGUARD, "run", "--", "true"])
        example = re.search(r"--policy (/\S+) -- COMMAND", r.stderr)[1]
        self.assertTrue(os.path.isfile(example), example)

    def test_no_command(self):
        self.own("command", argv=[VETHGUARD, "run", "--policy", "x.yaml"])

    def test_missing_policy(self):
        self.own("absent.yaml", "No such file", argv=[VETHGUARD, "run", "--policy", "absent.yaml", "--", "true"])

    def test_missing_config(self):
        self.own("absent.yaml", argv=command(NOTHING, "true", options=["--config", "absent.yaml"]))

    def test_bad_policy(self):
        r = self.own("bad.yaml:4:5:", "too", "\"to\"", argv=command(
            "vethguard: 1\nname: x\nallow:\n  - too: https://api.lab.test\n", "true", name="bad"))
        self.assertNotIn("guarded", r.stderr)

    def test_every_error_at_once(self):
        self.own("many.yaml:2:", "many.yaml:4:", argv=command(
            "vethguard: 1\nnamme: x\nallow:\n  - to: gopher://api.lab.test\n", "true", name="many"))

    def test_bad_config(self):
        bad = support.LAB.write("badconfig.yaml", "resolver:\n  servers: [not-an-address]\n")
        self.own("badconfig.yaml:2:", "not-an-address", argv=command(NOTHING, "true", options=["--config", bad]))

    def test_words_that_a_newcomer_writes(self):
        self.own("agent.yaml stands in place of the command; did you mean --policy agent.yaml?",
                 argv=[VETHGUARD, "run", "agent.yaml", "--", "true"])
        self.own("--policy is given twice", argv=[VETHGUARD, "run", "--policy", "a", "--policy", "b", "--", "true"])
        for word, told in (("check", "policy check"), ("ls", "list"), ("rm", "detach"), ("logs", "audit show"), ("atach", "attach")):
            r = subprocess.run([VETHGUARD, word, "x"], capture_output=True, text=True)
            self.assertEqual(r.returncode, 2)
            self.assertRegex(r.stderr, f"^vethguard: error: unknown command {word}; did you mean {told}\\?\nThe commands are run, .* and version. See 'vethguard --help'.\n$")

    def test_unknown_option(self):
        self.own("--polcy", "--policy", argv=[VETHGUARD, "run", "--polcy", "x", "--", "true"])

    def test_unknown_user(self):
        self.own("nobody-by-that-name", argv=command(NOTHING, "true", options=["--user", "nobody-by-that-name"]))

    def test_bad_sandbox_name(self):
        for name in ("", "../x", ".x", "-x", "a b", "x" * 200):
            with self.subTest(name=name):
                self.own("--name", argv=command(NOTHING, "true", options=["--name", name]))

    def test_bad_variable(self):
        self.own("--env", argv=command(NOTHING, "true", options=["--env", "A B=1"]))

    def test_audit_file_cannot_be_written(self):
        below = support.LAB.write("a-file", "") + "/a.jsonl"
        self.own(below, "Not a directory", argv=command(NOTHING, "true", options=["--audit", below]))

    def test_audit_file_is_a_directory(self):
        self.own(support.LAB.dir, argv=command(NOTHING, "true", options=["--audit", support.LAB.dir]))

    def test_below_a_directory_that_the_user_cannot_enter(self):
        """setpriv executes it with root's rights over files; from then on user 1000 has none."""
        closed = support.LAB.path("closed")
        os.mkdir(closed, 0o700)
        self.addCleanup(shutil.rmtree, closed)
        for name in os.listdir(os.path.dirname(VETHGUARD)):
            shutil.copy(os.path.join(os.path.dirname(VETHGUARD), name), closed)
        told = f"user id 1000 may not enter the directory {closed} (mode 0700)"
        program = ["setpriv", "--reuid", "1000", "--regid", "1000", "--clear-groups", os.path.join(closed, "vethguard")]
        r = subprocess.run(program + command(NOTHING, "true")[1:], capture_output=True, text=True, cwd="/")
        self.assertEqual((r.returncode, r.stderr), (125, f"vethguard: error: the program vethguardd is out of reach: {told}\n"))
        r = subprocess.run([*program, "doctor"], capture_output=True, text=True, cwd="/")
        self.assertIn(f"vethguardd is out of reach: {told}", " ".join(r.stdout.split()))

    def test_command_did_not_run(self):
        marker = support.LAB.path("ran")
        self.own(argv=command("vethguard: 2\n", "touch", marker))
        self.assertFalse(os.path.exists(marker))


class Streams(Case):
    def test_stdin_to_stdout_binary(self):
        data = bytes(range(256)) * 4096
        r = self.run_vethguard(NOTHING, ["cat"], input=data)
        self.assertEqual(r.status, 0)
        self.assertEqual(r.stdout_bytes, data)

    def test_stderr_apart(self):
        r = self.run_vethguard(NOTHING, ["sh", "-c", "echo out; echo err >&2"])
        self.assertEqual((r.stdout, r.stderr), ("out\n", "err\n"))

    def test_closed_stdin(self):
        r = subprocess.run(["sh", "-c", '"$@" <&-', "sh", *command(NOTHING, "sh", "-c", "echo fine")],
                           capture_output=True, text=True, timeout=20 * SLOW)
        self.assertEqual((r.returncode, r.stdout), (0, "fine\n"), r)

    def test_closed_stdout(self):
        r = subprocess.run(["sh", "-c", '"$@" >&-', "sh", *command(NOTHING, "sh", "-c", "echo lost; exit 4")],
                           capture_output=True, text=True, timeout=20 * SLOW)
        self.assertEqual(r.returncode, 4, r)

    def test_no_descriptor_leaks_in(self):
        r = self.run_vethguard(NOTHING, ["sh", "-c", "ls /proc/self/fd"])
        self.assertEqual(r.stdout.split(), ["0", "1", "2", "3"])  # 3: the folder ls reads

    def test_inherited_descriptor(self):
        r, w = os.pipe()
        done = subprocess.run(command(NOTHING, "sh", "-c", f"echo through >&{w}"), pass_fds=[w], capture_output=True,
                              text=True, timeout=20 * SLOW)
        os.close(w)
        got = os.read(r, 100)
        os.close(r)
        # Both outcomes are sound; a hang or a crash is not.
        self.assertIn((done.returncode, got), [(0, b"through\n"), (2, b""), (1, b"")], done)

    def test_working_directory(self):
        r = self.run_vethguard(NOTHING, ["pwd"], cwd="/usr/share")
        self.assertEqual(r.stdout, "/usr/share\n")


class Link(Case):
    def test_no_address_is_in_doubt(self):
        """Programs take an address that settles later for a change of the network (Chromium drops its requests)."""
        r = self.run_vethguard(NOTHING, ["sh", "-c", "ip -6 address show tentative; echo; ip -6 address show dev eth0"])
        self.assertEqual(r.stdout.split("\n")[0], "", r)
        self.assertIn("inet6 fe80:", r.stdout)


class Terminal(Case):
    """A pseudo-terminal around the whole of `vethguard run`."""

    def start(self, text, *argv, rows=31, columns=97, options=()):
        words = command(text, *argv, options=options, name="tty")
        pid, master = pty.fork()
        if pid == 0:
            try:
                fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
                os.chdir(support.LAB.dir)
                os.execv(words[0], words)
            finally:
                os._exit(99)
        self.pid, self.master, self.text = pid, master, b""
        self.addCleanup(self.end)

    def end(self):
        if self.pid:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self.master)

    def until(self, mark, seconds=15):
        end = time.monotonic() + seconds * SLOW
        while mark not in self.text:
            if not select.select([self.master], [], [], max(0, end - time.monotonic()))[0]:
                self.fail(f"{mark!r} did not come: {self.text!r}")
            try:
                piece = os.read(self.master, 65536)
            except OSError:
                piece = b""
            if not piece:
                self.fail(f"{mark!r} did not come before the end: {self.text!r}")
            self.text += piece

    def read_for(self, seconds):
        """Whether more came within so long."""
        if not select.select([self.master], [], [], seconds)[0]:
            return False
        try:
            piece = os.read(self.master, 65536)
        except OSError:  # nobody has the other end open
            piece = b""
        self.text += piece
        return bool(piece)

    def status(self, seconds=15):
        end = time.monotonic() + seconds * SLOW
        while time.monotonic() < end:
            self.read_for(0.02)
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.pid = 0
                while self.read_for(0):  # what it said last
                    pass
                return os.waitstatus_to_exitcode(status)
        self.fail(f"did not end: {self.text!r}")

    def test_is_a_terminal(self):
        self.start(NOTHING, "sh", "-c", "test -t 0 && test -t 1 && test -t 2 && tty && exit 9")
        self.assertEqual(self.status(), 9, self.text)
        self.assertIn(b"/dev/pts/", self.text)

    def test_window_size(self):
        self.start(NOTHING, "stty", "size")
        self.assertEqual(self.status(), 0, self.text)
        self.assertIn(b"31 97", self.text)

    def test_window_size_changes(self):
        self.start(NOTHING, PYTHON, "-c", "import signal,os,sys,time\n"
                   "signal.signal(signal.SIGWINCH, lambda *_: print('now', os.get_terminal_size(), flush=True))\n"
                   "print('ready', flush=True)\nimport select\n"
                   "while not select.select([0], [], [], 0.1)[0]: pass")  # a read that has begun would not let the handler run
        self.until(b"ready")
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
        self.until(b"columns=120, lines=40")
        os.write(self.master, b"\n")
        self.assertEqual(self.status(), 0, self.text)

    def test_ctrl_c(self):
        self.start(NOTHING, "sh", "-c", "trap 'echo caught; exit 5' INT; echo ready; while :; do sleep 0.1; done")
        self.until(b"ready")
        os.write(self.master, b"\x03")
        self.assertEqual(self.status(), 5, self.text)
        self.assertIn(b"caught", self.text)

    def test_ctrl_c_kills(self):
        self.start(NOTHING, PYTHON, "-c", "import signal,time\nsignal.signal(signal.SIGINT, signal.SIG_DFL)\n"
                   "print('ready', flush=True)\ntime.sleep(100)")
        self.until(b"ready")
        os.write(self.master, b"\x03")
        self.assertIn(self.status(), (130, -2), self.text)

    def test_shell_with_job_control(self):
        self.start(NOTHING, "bash", "--norc", "-i")
        os.write(self.master, b"echo $((6*7)); set +o history\n")
        self.until(b"42")
        # Without children: a shell that waits in vfork(2) cannot be stopped while the child is.
        program = support.LAB.write("job.py", "import signal\nsignal.signal(signal.SIGINT, signal.SIG_DFL)\n"
                                    "signal.signal(signal.SIGCONT, lambda *_: print('back', flush=True))\n"
                                    "print('ready', flush=True)\nwhile True: signal.pause()\n")
        os.write(self.master, f"{PYTHON} -S {program}\n".encode())
        self.until(b"ready")
        os.write(self.master, b"\x1a")
        self.until(b"Stopped")
        os.write(self.master, b"fg\n")
        self.until(b"back")
        os.write(self.master, b"\x03")
        os.write(self.master, b"echo $((7*8)) again; exit 6\n")
        self.until(b"56 again")
        self.assertEqual(self.status(), 6, self.text)
        self.assertNotIn(b"no job control", self.text)

    def test_summary(self):
        audit = support.LAB.path("tty-audit.jsonl")
        support.AUDITS.append(audit)
        self.start(API, "curl", "-s", "https://api.lab.test/", "https://www.lab.test/", options=["--audit", audit])
        self.assertEqual(self.status(), 0, self.text)
        tail = self.text.decode()[-1500:]
        self.assertIn("allowed", tail)
        self.assertIn("denied", tail)

    def test_no_typing_into_the_terminal(self):
        """TIOCSTI would put commands into the shell that started vethguard."""
        self.start(NOTHING, PYTHON, "-c", "import fcntl,termios\ntry:\n fcntl.ioctl(0, termios.TIOCSTI, b'x')\n"
                   " print('typed')\nexcept OSError as e: print('refused', e.errno)")
        self.assertEqual(self.status(), 0, self.text)
        self.assertIn(b"refused", self.text)


class User(Case):
    def test_default_is_the_caller(self):
        r = self.run_vethguard(NOTHING, ["id", "-u"])
        self.assertEqual(r.stdout, "0\n")

    def test_through_sudo(self):
        r = subprocess.run(command(NOTHING, "sh", "-c", "id -u; id -g"), capture_output=True, text=True,
                           timeout=20 * SLOW, cwd="/", env=dict(os.environ, SUDO_UID="65534", SUDO_GID="65534",
                                                                SUDO_USER="nobody"))
        self.assertEqual(r.stdout.split(), ["65534", "65534"], r)

    def test_sudo_does_not_lend_root_to_the_audit_file(self):
        """The log is opened with the rights of who asked for it: a sudoer's --audit cannot overwrite root's files."""
        r = self.run_vethguard(NOTHING, ["true"], env={"SUDO_UID": "65534", "SUDO_GID": "65534", "SUDO_USER": "nobody"})
        self.assertEqual(r.status, 125, r)
        self.assertIn("Permission denied", r.stderr)
        self.assertFalse(os.path.exists(r.audit))

    def test_nobody(self):
        r = self.run_vethguard(NOTHING, ["sh", "-c", "id -un; grep -E '^(Cap|NoNewPrivs|Groups)' /proc/self/status"],
                               user="nobody")
        self.assertEqual(r.status, 0, r)
        self.assertIn("nobody", r.stdout)
        for kind in ("CapInh", "CapPrm", "CapEff", "CapAmb"):
            self.assertIn(f"{kind}:\t0000000000000000", r.stdout)
        bounding = int(r.stdout.split("CapBnd:\t")[1].split()[0], 16)
        for number in (16, 17, 21, 22, 25):  # module, rawio, sys_admin, boot, time
            self.assertFalse(bounding >> number & 1, f"{bounding:x} {number}")
        self.assertIn("Groups:\t65534", r.stdout.replace(" \n", "\n"))

    def test_group(self):
        r = self.run_vethguard(NOTHING, ["id", "-g"], user="65534:12345")
        self.assertEqual(r.stdout, "12345\n", r)

    def test_nobody_gets_on_the_network(self):
        r = self.run_vethguard(API, ["curl", "-sS", "https://api.lab.test/hi"], user="nobody")
        self.assertIn('"path": "/hi"', r.stdout, r)

    def test_nobody_cannot_read_the_secret(self):
        r = self.run_vethguard(NOTHING, ["cat", support.LAB.path("secret")], user="nobody")
        self.assertNotEqual(r.status, 0)
        self.assert_no_secret(r.stdout_bytes)

    def test_no_setuid_gain(self):
        r = self.run_vethguard(NOTHING, ["sh", "-c", "su -c id 2>&1; id -u"], user="nobody")
        self.assertIn("65534", r.stdout)
        self.assertNotIn("uid=0", r.stdout)


class Environment(Case):
    def environment(self, text=NOTHING, **kw):
        r = self.run_vethguard(text, ["env", "-0"], **kw)
        self.assertEqual(r.status, 0, r)
        return dict(v.split("=", 1) for v in r.stdout.split("\0") if v)

    def test_trust_variables(self):
        env = self.environment()
        for name in TRUST:
            self.assertIn(name, env)
        self.assertEqual(env["SSL_CERT_FILE"], "/etc/ssl/certs/ca-certificates.crt")

    def test_trust_variables_lead_to_files(self):
        r = self.run_vethguard(NOTHING, ["sh", "-c", "for v in " + " ".join(TRUST) +
                                         '; do eval p=\\$$v; test -r "$p" || echo missing $v $p; done'], user="nobody")
        self.assertEqual(r.stdout, "")

    def test_inherited(self):
        self.assertEqual(self.environment(env={"LAB_VARIABLE": "kept é"})["LAB_VARIABLE"], "kept é")

    def test_env_sets(self):
        env = self.environment(options=["--env", "A=1", "--env", "B=x=y", "--env", "EMPTY="])
        self.assertEqual((env["A"], env["B"], env["EMPTY"]), ("1", "x=y", ""))

    def test_no_env(self):
        env = self.environment(options=["--no-env", "--env", "PASSED", "--env", "SET=2"],
                               env={"LAB_VARIABLE": "no", "PASSED": "yes"})
        self.assertNotIn("LAB_VARIABLE", env)
        self.assertEqual((env["PASSED"], env["SET"]), ("yes", "2"))
        self.assertIn("PATH", env)

    SECRETS = {"AWS_SECRET_ACCESS_KEY": "wJalrXUtnFEMI/K7MDENG", "NPM_TOKEN": "npm_0123456789", "DATABASE_URL": "postgres://u:hunter22@db/x",
               "ORDINARY": "plain", "XDG_CONFIG_HOME": "/tmp/xdg", "EDITOR": "vi", "NO_COLOR": "1", "LC_LAB": "C"}

    def test_secrets_that_go_inside_are_named(self):
        """In one line, without their values; not those that the policy replaces or that are passed on by name."""
        text = policy("{to: 'https://api.lab.test', credential: api}", credentials=support.file_credential(rest="inject: bearer, env: NPM_TOKEN"))
        line = "vethguard: warning: the command gets what looks like secrets: %s; --clean-env leaves them out, --keep-env NAME keeps one\n"
        for rules, options, named in ((NOTHING, [], "AWS_SECRET_ACCESS_KEY, DATABASE_URL, NPM_TOKEN"), (text, [], "AWS_SECRET_ACCESS_KEY, DATABASE_URL"),
                                      (NOTHING, ["--keep-env", "NPM_TOKEN", "--env", "DATABASE_URL"], "AWS_SECRET_ACCESS_KEY"),
                                      (NOTHING, ["--clean-env"], None), (NOTHING, ["--clean-env", "--keep-env", "NPM_TOKEN"], None)):
            with self.subTest(options=options, named=named):
                r = self.run_vethguard(rules, ["env"], options=options, env=self.SECRETS)
                self.assertEqual(r.status, 0, r)
                shown = r.stderr.replace(r.stderr[r.stderr.find("secrets: ") + 9:r.stderr.find("; --clean")],
                                         ", ".join(sorted(r.stderr[r.stderr.find("secrets: ") + 9:r.stderr.find("; --clean")].split(", ")))) if named else r.stderr
                self.assertEqual(shown, line % named if named else "")

    def test_clean_env(self):
        env = self.environment(options=["--clean-env", "--keep-env", "ORDINARY", "--keep-env", "NOT_SET"], env=self.SECRETS)
        for name in ("ORDINARY", "XDG_CONFIG_HOME", "EDITOR", "NO_COLOR", "LC_LAB"):
            self.assertEqual(env[name], self.SECRETS[name])
        for name in ("AWS_SECRET_ACCESS_KEY", "NPM_TOKEN", "DATABASE_URL", "NOT_SET"):
            self.assertNotIn(name, env)
        for name in ("PATH", "HOME", "SSL_CERT_FILE"):
            self.assertIn(name, env)

    def test_what_is_kept_stays_behind_the_policy(self):
        """--keep-env undoes neither a placeholder nor the removal of a source's variable."""
        text = policy("{to: 'https://api.lab.test', credential: api}", credentials="  api: {source: 'env:REAL_KEY', inject: bearer, env: NPM_TOKEN}\n")
        env = self.environment(text, options=["--clean-env", "--keep-env", "NPM_TOKEN", "--keep-env", "REAL_KEY"],
                               env={"NPM_TOKEN": "npm_0123456789", "REAL_KEY": support.SECRET})
        self.assertIn("vethguard", env["NPM_TOKEN"])
        self.assertNotIn("REAL_KEY", env)

    def test_a_variable_that_is_not_set_is_told(self):
        r = self.run_vethguard(NOTHING, ["env"], options=["--no-env", "--env", "NOT_SET"])
        self.assertEqual(r.status, 0, r)
        self.assertIn("warning: --env NOT_SET: no such variable is set here", r.stderr)
        self.assertNotIn("NOT_SET", r.stdout)

    def test_proxies_of_the_caller_are_removed(self):
        env = self.environment(env={"HTTPS_PROXY": "http://192.0.2.1:3128", "all_proxy": "socks5://192.0.2.1"})
        self.assertEqual([k for k in env if k.lower().endswith("_proxy")], [])

    def test_proxy_env(self):
        env = self.environment(options=["--proxy-env"])
        for name in ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"):
            self.assertRegex(env[name], r"^http://198\.18\.\d+\.\d+:3128$")

    def test_proxy_env_works(self):
        r = self.run_vethguard(API, ["curl", "-sSv", "https://api.lab.test/through"], options=["--proxy-env"])
        self.assertIn('"path": "/through"', r.stdout, r)
        self.assertIn("CONNECT api.lab.test:443", r.stderr)

    def test_credential_variable_is_a_placeholder(self):
        env = self.environment(policy("{to: 'https://api.lab.test', credential: api}",
                                      credentials=support.file_credential(rest="inject: bearer, env: OPENAI_API_KEY")))
        self.assertTrue(env["OPENAI_API_KEY"].startswith("sk-"), env["OPENAI_API_KEY"])
        self.assertNotEqual(env["OPENAI_API_KEY"], support.SECRET)

    def test_a_key_in_place_of_the_placeholder_is_told(self):
        text = policy("{to: 'https://api.lab.test', credential: api}", credentials=support.file_credential())
        for words, env in ((["--env", "API_KEY=a-real-key"], None), (["--env", "API_KEY"], {"API_KEY": "a-real-key"})):
            r = self.run_vethguard(text, ["printenv", "API_KEY"], options=words, env=env)
            self.assertEqual((r.status, r.stdout), (0, "a-real-key\n"), r)
            self.assertIn("warning: --env API_KEY: the policy has the placeholder of a credential for this variable", r.stderr)
            self.assertNotIn("a-real-key", r.stderr)
        r = self.run_vethguard(text, ["printenv", "API_KEY"], env={"API_KEY": "a-real-key"})
        self.assertNotIn("a-real-key", r.stdout)
        self.assertEqual(r.stderr, "")

    def test_source_variable_is_taken_away(self):
        env = self.environment(policy("{to: 'https://api.lab.test', credential: api}", credentials=(
            "  api: {source: 'env:REAL_KEY', inject: bearer}\n")), env={"REAL_KEY": support.SECRET})
        self.assertNotIn("REAL_KEY", env)

    def test_source_variable_is_taken_away_even_where_named(self):
        env = self.environment(policy("{to: 'https://api.lab.test', credential: api}", credentials=(
            "  api: {source: 'env:REAL_KEY', inject: bearer}\n")), env={"REAL_KEY": support.SECRET},
            options=["--no-env", "--env", "REAL_KEY"])
        self.assertNotIn("REAL_KEY", env)

    def test_name(self):
        r = self.run_vethguard(NOTHING, ["true"], options=["--name", "build-7.x_y"])
        self.assertEqual({e["device"]["name"] for e in r.events()}, {"build-7.x_y"})

    def test_resolv_conf_and_hosts(self):
        r = self.run_vethguard(NOTHING, ["sh", "-c", "cat /etc/resolv.conf; echo; cat /etc/hosts"])
        servers = [line.split()[1] for line in r.stdout.splitlines() if line.startswith("nameserver")]
        self.assertTrue(servers and all(s.startswith(("198.18.", "fd76:")) for s in servers), r)
        self.assertIn("localhost", r.stdout)

    def test_host_files_are_untouched(self):
        with open("/etc/resolv.conf") as f:
            before = f.read()
        self.run_vethguard(NOTHING, ["sh", "-c", "echo nameserver 192.0.2.1 > /etc/resolv.conf; true"])
        with open("/etc/resolv.conf") as f:
            self.assertEqual(f.read(), before)

    def test_no_name_of_the_host_inside(self):
        """Interfaces are lo and the one veth, addresses those of the pool."""
        r = self.run_vethguard(NOTHING, ["ip", "-o", "addr"])
        self.assertEqual(len({line.split()[1] for line in r.stdout.splitlines()}), 2, r)
        self.assertNotIn("10.99.", r.stdout)


class Trust(Case):
    @classmethod
    def setUpClass(cls):
        cls.box = support.Sandbox(API)

    @classmethod
    def tearDownClass(cls):
        cls.box.close()

    def chain(self):
        """Files that hold what the gate sends for api.lab.test: the leaf, then its issuers."""
        out = self.box.sh("openssl s_client -connect api.lab.test:443 -servername api.lab.test -showcerts </dev/null 2>&1").out
        found = list(dict.fromkeys(re.findall("-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----\n", out, re.S)))
        return [support.LAB.write(f"chain-{i}.pem", text) for i, text in enumerate(found)]

    def test_hashed_directory(self):
        files = self.chain()
        self.assertGreaterEqual(len(files), 1)
        untrusted = sum((["-untrusted", f] for f in files[1:]), [])
        done = self.box.run("openssl", "verify", "-no-CAfile", "-no-CAstore", "-CApath", "/etc/ssl/certs", *untrusted,
                            "-verify_hostname", "api.lab.test", "-purpose", "sslserver", "-x509_strict", files[0])
        self.assert_ok(done)

    def test_bundle(self):
        files = self.chain()
        untrusted = sum((["-untrusted", f] for f in files[1:]), [])
        self.assert_ok(self.box.run("openssl", "verify", "-no-CApath", "-no-CAstore", "-CAfile",
                                    "/etc/ssl/certs/ca-certificates.crt", *untrusted, files[0]))

    def test_another_sandbox_does_not_trust_it(self):
        files = self.chain()
        other = self.sandbox(API)
        done = other.run("openssl", "verify", "-CApath", "/etc/ssl/certs", "-CAfile", "/etc/ssl/certs/ca-certificates.crt",
                         *sum((["-untrusted", f] for f in files[1:]), []), files[0])
        self.assertNotEqual(done.status, 0, done)

    def test_the_host_does_not_trust_it(self):
        files = self.chain()
        r = subprocess.run(["openssl", "verify", *sum((["-untrusted", f] for f in files[1:]), []), files[0]],
                           capture_output=True, text=True)
        self.assertNotEqual(r.returncode, 0)

    def test_public_authorities_stay(self):
        inside = self.box.sh("grep -c BEGIN /etc/ssl/certs/ca-certificates.crt").out
        with open("/etc/ssl/certs/ca-certificates.crt") as f:
            outside = f.read().count("BEGIN CERT")
        self.assertEqual(int(inside), outside + 1)

    def test_all_public_authorities_of_a_host(self):
        """The lab's host trusts few; here are those of the machine itself, more than a hundred as a rule."""
        box = self.sandbox(API, prefix=["unshare", "-m", "sh", "-c", f'umount {lab.BUNDLE} && exec "$@"', "sh"])
        whole = sh("unshare", "-m", "sh", "-c", f"umount {lab.BUNDLE} && grep -c BEGIN {lab.BUNDLE}")
        self.assertGreaterEqual(int(whole), lab.BUNDLE_CERTIFICATES)
        self.assertEqual(int(box.sh(f"grep -c BEGIN {lab.BUNDLE}").out), int(whole) + 1)
        self.assertIn('"path": "/all"', box.sh("curl -sS https://api.lab.test/all").out)

    @unittest.skipUnless(shutil.which("keytool") and os.path.exists("/etc/ssl/certs/java/cacerts"), "no Java here")
    def test_java(self):
        done = self.box.sh("keytool -list -cacerts -storepass changeit 2>/dev/null | grep -ci vethguard")
        self.assertGreaterEqual(int(done.out or 0), 1, done)

    @unittest.skipUnless(shutil.which("java") and os.path.exists("/etc/ssl/certs/java/cacerts"), "no Java here")
    def test_java_client(self):
        support.LAB.write("Fetch.java", "public class Fetch { public static void main(String[] a) throws Exception { "
                          "System.out.print(new String(new java.net.URL(a[0]).openStream().readAllBytes())); } }")
        done = self.box.run("java", "-Xshare:auto", "-XX:TieredStopAtLevel=1", support.LAB.path("Fetch.java"),
                            "https://api.lab.test/from-java")
        if "module jdk.compiler not found" in done.err or "jdk.compiler" in done.err:
            self.skipTest("no Java compiler here")
        self.assertIn('"path": "/from-java"', done.out, done)

    def test_private_key_is_nowhere_inside(self):
        done = self.box.sh(f"grep -rl 'PRIVATE KEY' /etc/ssl/certs /run {support.LAB.dir}; true")
        self.assertIn(support.LAB.path("server.key"), done.out)  # of the lab's origin: a key would be found
        self.assertEqual([name for name in done.out.split() if name.startswith(("/etc/ssl/certs/", "/run/vethguard"))], [])

    def test_trust_store_is_read_only_or_private(self):
        self.box.sh("echo x >> /etc/ssl/certs/ca-certificates.crt; rm -f /etc/ssl/certs/ca-certificates.crt; true")
        with open("/etc/ssl/certs/ca-certificates.crt") as f:
            self.assertNotIn("\nx\n", f.read()[-10:])


class Signals(Case):
    def start(self, *argv):
        p = subprocess.Popen(command(NOTHING, *argv, name="signals"), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                             text=True, cwd=support.LAB.dir)
        self.addCleanup(lambda: (p.poll() is None and p.kill(), p.wait(), p.stdout.close(), p.stderr.close()))
        self.assertEqual(p.stdout.readline(), "ready\n")
        return p

    def test_forwarded(self):
        for name in ("TERM", "HUP", "INT", "QUIT", "USR1", "USR2"):
            with self.subTest(signal=name):
                # Python runs a handler between two steps of its own: one long sleep that has just begun would end first.
                p = self.start(support.PYTHON, "-c", f"import os, signal, time\nsignal.signal(signal.SIG{name}, lambda *_: os._exit(11))\n"
                               "print('ready', flush=True)\nwhile True: time.sleep(0.1)")
                p.send_signal(getattr(signal, "SIG" + name))
                self.assertEqual(p.wait(10 * SLOW), 11)

    def test_default_action_ends(self):
        p = self.start("sh", "-c", "echo ready; exec sleep 100")
        p.send_signal(signal.SIGTERM)
        self.assertEqual(p.wait(10 * SLOW), 128 + signal.SIGTERM)

    def test_ignored_goes_on(self):
        p = self.start("sh", "-c", "trap '' TERM; echo ready; sleep 1; echo still; exit 4")
        p.send_signal(signal.SIGTERM)
        self.assertEqual(p.wait(10 * SLOW), 4)
        self.assertEqual(p.stdout.read(), "still\n")


class Tool(Case):
    """The other commands, shortly."""

    def tool(self, *argv):
        return subprocess.run([VETHGUARD, *argv], capture_output=True, text=True, timeout=30 * SLOW, cwd=support.ROOT)

    def test_help(self):
        r = self.tool("run", "--help")
        self.assertEqual(r.returncode, 0)
        for option in ("--policy", "--config", "--name", "--user", "--audit", "--observe", "--env", "--clean-env", "--keep-env", "--no-env", "-v"):
            self.assertIn(option, r.stdout)

    def test_doctor(self):
        r = self.tool("doctor")
        self.assertIn(r.returncode, (0, 1), r)
        self.assertGreater(len(r.stdout.splitlines()), 4, r)

    def test_unknown_command(self):
        r = self.tool("rnu")
        self.assertNotEqual(r.returncode, 0)
        self.assertIn("run", r.stderr)

    def test_shipped_policies(self):
        given = {"github-push.yaml": ("owner=acme", "repository=site")}
        for folder in ("policies", "policies/presets"):
            for name in sorted(os.listdir(os.path.join(support.ROOT, folder))):
                if name.endswith(".yaml"):
                    with self.subTest(policy=name):
                        variables = [f"--var={v}" for v in given.get(name, ())]
                        r = self.tool("policy", "check", os.path.join(folder, name), *variables)
                        self.assertEqual(r.returncode, 0, r)

    def test_explain(self):
        text = support.LAB.write("explain.yaml", policy("{to: 'https://api.lab.test', methods: [GET], paths: [/a/**]}"))
        self.assertEqual(self.tool("policy", "explain", text, "GET", "https://api.lab.test/a/b").returncode, 0)
        for method, url in (("POST", "https://api.lab.test/a/b"), ("GET", "https://api.lab.test/b"),
                            ("GET", "http://api.lab.test/a/b"), ("GET", "https://api.lab.test:444/a/b"),
                            ("GET", "https://www.lab.test/a/b"), ("GET", "https://api.lab.test/a/../b")):
            with self.subTest(method=method, url=url):
                self.assertEqual(self.tool("policy", "explain", text, method, url).returncode, 1)

