# SPDX-License-Identifier: Apache-2.0
"""What the integration tests share: one lab for all of them, a base class, and a shell into a running sandbox."""
import base64
import functools
import json
import os
import py_compile
import re
import select
import subprocess
import time
import unittest
import urllib.parse

import lab
from lab import ROOT, VETHGUARD, Capture, Lab, Result, sh  # noqa: F401  (for the tests)

HERE = os.path.dirname(os.path.abspath(__file__))
PYTHON = "/usr/bin/python3"
PACKAGES = "/usr/lib/python3/dist-packages"
SECRET = "sk-lab-0123456789abcdefghij-TOPSECRET"
ASAN = "asan" in lab.BIN
LONG = bool(os.environ.get("VETHGUARD_LONG"))
PACE = 4 if ASAN else 1  # instrumented programs take about this much longer: for what is meant to last a while
SLOW = 10 * PACE  # for bounds on waiting, which cost nothing where all is well: the machine may be slow, or have other things to do
REPORT = re.compile(r"(AddressSanitizer|LeakSanitizer|UndefinedBehaviorSanitizer|MemorySanitizer|: runtime error:)")
HTTP, DNS, NETWORK, FINDING, LIFECYCLE = 4002, 4003, 4001, 2004, 6002

LAB = None      # set by start()
AUDITS = []     # every audit file of every run, for test_audit
OUTPUTS = []    # what each run wrote to stderr
UNSOUND = set()  # audit files that a test has damaged on purpose
KILLED = set()  # audit files of runs that did not end by themselves
CLEAN = {}      # {file: how far it was searched for the credential}
COMPILED = ("inside", "hostile", "h2frames", "h2cases", "websocket_frames")
FORM_MAX = 6 * len(SECRET)  # bytes: \uXXXX for each character


def netns(case, name):
    """A network namespace, for as long as the test runs; its name."""
    sh("ip", "netns", "add", name)
    case.addCleanup(subprocess.run, ["ip", "netns", "del", name], check=False, stderr=subprocess.DEVNULL)
    return name


def start():
    global LAB
    LAB = Lab()
    LAB.start()
    for name in COMPILED:  # what is imported inside again and again, where nobody may write
        py_compile.compile(os.path.join(HERE, name + ".py"))
    LAB.write("secret", SECRET + "\n", 0o600)
    return LAB


def policy(*allow, deny=(), credentials="", more=""):
    """A policy's text; each rule is a destination or the rule's own YAML (flow style: "{to: ..., methods: [GET]}")."""
    def rule(r):
        return f"  - {r}\n" if r.startswith("{") else f"  - {{to: '{r}'}}\n"
    text = "vethguard: 1\nname: lab\n" + more
    if credentials:
        text += "credentials:\n" + credentials
    if allow:
        text += "allow:\n" + "".join(map(rule, allow))
    if deny:
        text += "deny:\n" + "".join(map(rule, deny))
    return text


def file_credential(name="api", rest="inject: bearer, env: API_KEY", path=None):
    return f"  {name}: {{source: 'file:{path or LAB.path('secret')}', {rest}}}\n"


@functools.lru_cache
def secret_forms(secret):
    """The ways in which a credential could be written down: raw, escaped, in base64 at each alignment."""
    raw = secret.encode()
    forms = {raw, urllib.parse.quote(secret, safe="").encode(), json.dumps(secret)[1:-1].encode(),
             "".join(f"\\u{c:04x}" for c in raw).encode(), b"".join(b"%%%02X" % c for c in raw), raw.hex().encode()}
    for i in range(3):
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            text = encode(b"x" * i + raw)
            forms.add(text[(i * 8 + 5) // 6:len(text) - 4])
    return forms


def holds_secret(data, secret=SECRET):
    data = data if isinstance(data, bytes) else data.encode("utf-8", "surrogateescape")
    return next((f for f in secret_forms(secret) if f in data), None)


def wait_until(condition, seconds=10 * SLOW, step=0.02):
    """The condition's first true value, or the last one when the time is over."""
    end = time.monotonic() + seconds
    while True:
        value = condition()
        if value or time.monotonic() > end:
            return value
        time.sleep(step)


class Trickle:
    """A response of the origin that comes line by line for as long as the test says; its client writes it to the file `out`."""

    def __init__(self):
        name = f"trickled-{time.monotonic_ns()}"
        self.url = "https://api.lab.test/trickle?" + name
        self.out = LAB.path(name)

    def begun(self):
        return wait_until(lambda: os.path.exists(self.out) and os.path.getsize(self.out), 10 * SLOW)

    def finish(self):
        with open(self.out + ".end", "w"):
            pass

    def whole(self):
        with open(self.out) as f:
            return f.read().split()[-1] == "end"


class Events:
    """The events of a log that grows: each line is read and parsed once. A log that was changed behind our back is read anew."""
    TAIL = 200  # bytes by which the part that is known is recognized

    def __init__(self, path):
        self.path = path
        self.forget()

    def forget(self):
        self.at, self.tail, self.found = 0, b"", []

    def all(self):
        try:
            with open(self.path, "rb") as f:
                f.seek(self.at - len(self.tail))
                data = f.read()
                if not data.startswith(self.tail):
                    self.forget()
                    f.seek(0)
                    data = f.read()
        except FileNotFoundError:
            self.forget()
            return []
        lines = data[len(self.tail):data.rfind(b"\n") + 1]
        self.found += [json.loads(line) for line in lines.split(b"\n")[:-1]]
        self.at += len(lines)
        self.tail = (self.tail + lines)[-self.TAIL:]
        return self.found


# --- what runs on the host's side ---

def process_row(pid):
    """(name, parent, state, start time), or None when it is gone."""
    try:
        fd = os.open(f"/proc/{pid}/stat", os.O_RDONLY)
    except OSError:
        return None
    try:
        head, _, rest = os.read(fd, 4096).decode("utf-8", "replace").rpartition(")")
    except OSError:
        return None
    finally:
        os.close(fd)
    fields = rest.split(None, 20)
    return head.split("(", 1)[1], int(fields[1]), fields[0], int(fields[19])


def process_table():
    rows = ((int(name), process_row(name)) for name in os.listdir("/proc") if name.isdigit())
    return {pid: row for pid, row in rows if row}


def descendants(pid):
    """{pid: (name, parent, state, start time)} of everything below pid, without pid."""
    table, found, todo = process_table(), {}, [pid]
    while todo:
        parent = todo.pop()
        for child, row in table.items():
            if row[1] == parent and child not in found:
                found[child] = row
                todo.append(child)
    return found


def open_files(pid):
    """The targets of a process's descriptors, except those that it closes meanwhile."""
    found, fds = [], f"/proc/{pid}/fd"
    for fd in os.listdir(fds):
        try:
            found.append(os.readlink(os.path.join(fds, fd)))
        except FileNotFoundError:
            pass
    return found


def family(pid):
    """As descendants(), much quicker; while some of them end, others may be missed."""
    found, todo = {}, [pid]
    while todo:
        parent = todo.pop()
        try:
            with open(f"/proc/{parent}/task/{parent}/children") as f:
                children = [int(child) for child in f.read().split()]
        except FileNotFoundError:
            if os.path.exists(f"/proc/{parent}/stat"):
                return descendants(pid)  # a kernel that does not have these files
            children = []
        except ProcessLookupError:
            children = []
        for child in children:
            if row := process_row(child):
                found[child] = row
                todo.append(child)
    return found


def still_alive(rows):
    """Of the processes {pid: row}, those that still live (zombies do not count)."""
    now = {p: process_row(p) for p in rows}
    return {p: r for p, r in rows.items() if now[p] and now[p][3] == r[3] and now[p][2] not in "ZX"}


def process_activity(pid):
    """(state, how often it went to sleep); ("X", 0) when it is gone."""
    try:
        with open(f"/proc/{pid}/status") as f:
            text = f.read()
    except OSError:
        return "X", 0
    return re.search(r"^State:\s+(\S)", text, re.M).group(1), int(re.search(r"^voluntary_ctxt_switches:\s+(\d+)", text, re.M).group(1))


def memory_peak_kib(pid):
    with open(f"/proc/{pid}/status") as f:
        return int(re.search(r"VmHWM:\s+(\d+)", f.read()).group(1))


def memory_now_kib(pid):
    """The resident size of a process's own memory (its data, not the pages of its programs and libraries)."""
    with open(f"/proc/{pid}/status") as f:
        return int(re.search(r"RssAnon:\s+(\d+)", f.read()).group(1))


# Files and folders of unit tests, labs and doctors that run beside this lab: our name and six letters or more.
FOREIGN = re.compile(r"vethguard-[a-z-]+-\w{6,}")


class Traces:
    """What a run could leave behind: namespaces, interfaces, mounts, files, rules."""

    def __init__(self):
        self.interfaces = set(sh("ip", "-o", "link").splitlines())
        self.rules = sh("nft", "list", "ruleset") if os.path.exists("/usr/sbin/nft") else ""
        self.routes = sh("ip", "rule") + sh("ip", "-6", "rule") + sh("ip", "route", "show", "table", "all")
        with open("/proc/self/mounts") as f:
            self.mounts = f.read()
        self.files = {d: set(os.listdir(d)) - {os.path.basename(LAB.dir)} for d in
                      ("/tmp", "/run", "/run/netns", "/var/run", "/dev/shm", "/var/tmp") if os.path.isdir(d)}

    def since(self):
        """Differences to now, as text; "" for none. Files of other programs in folders that all share do not count."""
        now, text = Traces(), []
        for what in ("rules", "routes", "mounts"):
            if getattr(now, what) != getattr(self, what):
                differ = set(getattr(now, what).splitlines()) ^ set(getattr(self, what).splitlines())
                text.append(f"{what}: {sorted(differ) or getattr(now, what)}")
        if now.interfaces != self.interfaces:
            text.append(f"interfaces: {now.interfaces ^ self.interfaces}")
        for d, names in now.files.items():
            new = {n for n in names - self.files[d] if d == "/run/netns" or
                   ("veth" in n.lower() or n.startswith("vg")) and not FOREIGN.fullmatch(n)}
            if new:
                text.append(f"{d}: {new}")
        return "\n".join(text)


# --- a sandbox that stays, and takes orders ---

class Done:
    """The result of a command inside."""

    def __init__(self, answer):
        self.status = answer["status"]
        self.out_bytes = base64.b64decode(answer["out"])
        self.err_bytes = base64.b64decode(answer["err"])
        self.out = self.out_bytes.decode("utf-8", "replace")
        self.err = self.err_bytes.decode("utf-8", "replace")

    def json(self):
        return json.loads(self.out)

    def __repr__(self):
        return f"status {self.status}\nout: {self.out[-3000:]}\nerr: {self.err[-3000:]}"


class Sandbox:
    """`vethguard run` around a small program (inside.py) that carries out one command after the other."""

    def __init__(self, text, options=(), env=None, user=None, config=None, audit=None, prefix=(), binary=None,
                 preexec=None, interpreter=PYTHON):
        name = f"s{time.monotonic_ns()}"
        self.audit = audit or LAB.path(name + ".jsonl")
        self.stderr_path = LAB.path(name + ".stderr")
        command = [*prefix, binary or VETHGUARD, "run", "--policy", LAB.write(name + ".yaml", text), "--config",
                   config or LAB.path("config.yaml"), "--audit", self.audit, *options]
        if user:
            command += ["--user", user]
        full_env = {k: v for k, v in os.environ.items() if not k.lower().endswith("_proxy")}
        full_env.update(env or {})
        full_env["PYTHONPATH"] = HERE
        full_env["PYTHONDONTWRITEBYTECODE"] = "1"
        self.stderr_file = open(self.stderr_path, "w")
        # -S: the tests do not need what a distribution's interpreter does at each start. Its packages are (hpack).
        serve = f"import sys; sys.path.append('{PACKAGES}'); import inside; inside.serve()"
        self.process = subprocess.Popen(command + ["--", interpreter, "-S", "-c", serve],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.stderr_file,
                                        env=full_env, preexec_fn=preexec, cwd=LAB.dir)
        AUDITS.append(self.audit)
        self.log = Events(self.audit)
        self.closed = False
        first = self._read(20 * SLOW)
        if first != {"ready": True}:
            self.kill()
            raise AssertionError(f"the sandbox did not start: {first} {self.stderr()}")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def _read(self, timeout):
        data = b""
        end = time.monotonic() + timeout
        fd = self.process.stdout.fileno()
        while not data.endswith(b"\n"):
            if not select.select([fd], [], [], max(0, end - time.monotonic()))[0]:
                return {"timeout": True}
            piece = os.read(fd, 1 << 20)
            if not piece:
                return None
            data += piece
        return json.loads(data)

    def _ask(self, seconds, **order):
        self.send(**order)
        return self.answer(seconds)

    def send(self, **order):
        if isinstance(order.get("input"), str):
            order["input"] = order["input"].encode()
        if order.get("input") is not None:
            order["input"] = base64.b64encode(order["input"]).decode()
        self.process.stdin.write(json.dumps(order).encode() + b"\n")
        self.process.stdin.flush()

    def answer(self, timeout=60):
        answer = self._read(timeout * SLOW)
        if answer is None or "status" not in answer:
            raise AssertionError(f"no answer from the sandbox: {answer} {self.stderr()}")
        return Done(answer)

    def run(self, *argv, input=None, timeout=60, env=None):
        return self._ask(timeout + 5, argv=list(argv), input=input, timeout=timeout * SLOW, env=env or {})

    def sh(self, command, **kw):
        return self.run("sh", "-c", command, **kw)

    def py(self, code, **kw):
        """Runs Python inside, with everything of inside.py at hand."""
        timeout = kw.pop("timeout", 60)
        return self._ask(timeout + 5, python=code, timeout=timeout * SLOW, **kw)

    def settle(self, seconds=1):
        """Waits until worker and recorder have nothing to do: what was recorded so far is in the log.

        The recorder gathers events for RECORDER_BATCH_DELAY_MS before it writes them. Both asleep, and not once awake
        for longer than that, means that no batch is pending; a program that only lacks a processor is not asleep."""
        def state():
            return [process_activity(pids[role]) for role in ("worker", "recorder") if role in pids]

        pids, end, before = self.pids(), time.monotonic() + seconds * SLOW, None
        while time.monotonic() < end:
            now = state()
            if now == before and all(name != "R" for name, _ in now):
                return
            before = now
            time.sleep(0.025)

    def events(self, class_uid=None, settle=True):
        """The log's events, once everything recorded before this call has been written."""
        if settle and not self.closed:
            self.settle()
        return [e for e in self.log.all() if class_uid in (None, e["class_uid"])]

    def event(self, class_uid=None, seconds=3, **fields):
        """The first event with these fields (dots go down: "url.path"), waited for."""
        return wait_until(lambda: next((e for e in self.events(class_uid, settle=False) if matches(e, fields)), None), seconds * SLOW)

    def pids(self):
        """{role: pid}: supervisor, keeper, recorder, worker, init."""
        names = {"vethguardd": "supervisor", "vethguard-keepe": "keeper", "vethguard-recor": "recorder",
                 "vethguard-worke": "worker"}
        found = {"run": self.process.pid}
        for pid, row in family(self.process.pid).items():
            if row[0] in names:
                found[names[row[0]]] = pid
            elif row[1] == self.process.pid:
                found["init"] = pid
        return found

    def stderr(self):
        with open(self.stderr_path, errors="replace") as f:
            return f.read()

    def kill(self):
        self.process.kill()
        self.process.wait()
        self._end()

    def wait(self, timeout=20):
        """The exit status, after the sandbox's own end."""
        status = self.process.wait(timeout * SLOW)
        self._end()
        return status

    def close(self):
        """Ends the command inside; the exit status."""
        if self.closed:
            return self.process.returncode
        try:
            self.process.stdin.close()
        except OSError:
            pass
        try:
            return self.wait()
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError("the sandbox does not end: " + self.stderr())

    def _end(self):
        self.closed = True
        if self.process.returncode < 0 or self.process.returncode == 125:
            KILLED.add(self.audit)
        for f in (self.process.stdin, self.process.stdout, self.stderr_file):
            try:
                f.close()
            except OSError:
                pass
        OUTPUTS.append(self.stderr_path)
        text = self.stderr()
        if REPORT.search(text):
            raise AssertionError("sanitizer report:\n" + text[-6000:])


def field(event, path):
    for key in path.split("."):
        if isinstance(event, list):
            event = event[0] if event else None
        if not isinstance(event, dict):
            return None
        event = event.get(key)
    return event


def matches(event, fields):
    return all(v(field(event, k)) if callable(v) else field(event, k) == v for k, v in fields.items())


class Case(unittest.TestCase):
    """A test with the lab. After each test nothing it produced may hold the credential."""
    maxDiff = None

    def setUp(self):
        self.runs = []
        self.sandboxes = []
        self.seen_at = self._seen_size()

    def tearDown(self):
        for s in self.sandboxes:
            if not s.closed:
                s.close()
        for s in self.sandboxes:
            self.assert_clean(s.audit, s.stderr_path)
        for r in self.runs:
            self.assertIsNone(holds_secret(r.stderr), "the credential is in stderr")
            self.assert_clean(r.audit)

    def assert_clean(self, *paths):
        """The content of these files beyond what was searched before (test_audit looks at all of them as a whole)."""
        for path in paths:
            if os.path.isfile(path):
                with open(path, "rb") as f:
                    known, size = CLEAN.get(path, 0), os.fstat(f.fileno()).st_size
                    f.seek(max(0, known - FORM_MAX) if known <= size else 0)
                    data = f.read()
                    CLEAN[path] = f.tell()
                self.assertIsNone(holds_secret(data), f"the credential is in {path}")

    def run_vethguard(self, text, argv, **kw):
        r = LAB.run(text, argv, timeout=kw.pop("timeout", 60) * SLOW, **kw)
        self.runs.append(r)
        AUDITS.append(r.audit)
        if REPORT.search(r.stderr):
            self.fail("sanitizer report:\n" + r.stderr[-6000:])
        return r

    def sandbox(self, text, **kw):
        s = Sandbox(text, **kw)
        self.sandboxes.append(s)
        return s

    # --- what the outside saw ---

    @staticmethod
    def _seen_size():
        try:
            return os.path.getsize(LAB.path("seen.jsonl"))
        except FileNotFoundError:
            return 0

    def seen(self, what=None, **fields):
        """What reached the outside since the test began."""
        try:
            with open(LAB.path("seen.jsonl")) as f:
                f.seek(self.seen_at)
                rows = [json.loads(line) for line in f]
        except FileNotFoundError:
            return []
        return [r for r in rows if what in (None, r["what"]) and matches(r, fields)]

    def assert_never_seen(self, text):
        rows = [r for r in self.seen() if text in json.dumps(r)]
        self.assertEqual(rows, [], f"{text} reached the outside")

    def assert_no_secret_outside(self):
        for row in self.seen():
            self.assertIsNone(holds_secret(json.dumps(row)), f"the credential reached {row}")

    def assert_no_secret(self, data, secret=SECRET):
        found = holds_secret(data, secret)
        self.assertIsNone(found, f"the credential is in {data[:600]!r}")

    def assert_ok(self, done):
        self.assertEqual(done.status, 0, repr(done))

    def assert_denied(self, s, done_json, status=403):
        """A denial's body: complete, and its event is in the log."""
        self.assertEqual(done_json["status"], status, done_json)
        self.assertRegex(done_json["event"], "^[0-9a-f]{16}$")
        event = s.event(**{"metadata.uid": done_json["event"]})
        self.assertIsNotNone(event, f"event {done_json['event']} is not in the log")
        self.assertEqual(event["action_id"], 2, event)
        return event


def in_namespace(name, function):
    """Calls function in another network namespace, in this thread, and comes back."""
    import ctypes
    libc = ctypes.CDLL(None, use_errno=True)
    with open("/proc/thread-self/ns/net") as home, open(f"/run/netns/{name}") as there:
        if libc.setns(there.fileno(), lab.CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), "setns")
        try:
            return function()
        finally:
            libc.setns(home.fileno(), lab.CLONE_NEWNET)


class WithOrigin:
    """Before a test case: its class has an origin of its own outside, cls.origin, which make_origin() makes; asked: what came."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.origin = in_namespace("outside", cls.make_origin)

    @classmethod
    def tearDownClass(cls):
        cls.origin.close()
        super().tearDownClass()

    def setUp(self):
        super().setUp()
        self.origin.asked.clear()


class Boxed(Case):
    """One sandbox for all tests of a class; what it leaves behind is looked at after each."""

    @classmethod
    def make_box(cls):
        raise NotImplementedError

    @classmethod
    def setUpClass(cls):
        cls.box = cls.make_box()

    @classmethod
    def tearDownClass(cls):
        cls.box.close()

    def tearDown(self):
        super().tearDown()
        self.assert_clean(self.box.audit, self.box.stderr_path)

    def py(self, code, box=None, **kw):
        done = (box or self.box).py(code, **kw)
        self.assertEqual(done.status, 0, done)
        return done.out
