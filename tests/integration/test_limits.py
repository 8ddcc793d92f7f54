# SPDX-License-Identifier: Apache-2.0
"""Limits of a policy: requests beyond them are refused or cut, and told why. The counters outlive worker, daemon and reload."""
import json
import os
import signal
import subprocess
import sys

import daemon_case
import lab
import support
from support import HTTP, NETWORK, policy, wait_until

VERSIONS = ("--http1.1", "--http2")
PORT = 9446  # of the WebSocket origin
API = "to: api.lab.test"


def rule(name, paths, limits, more=""):
    return f"{{name: {name}, {API}, paths: ['{paths}']{more}, {limits}}}"


class Passing(support.Boxed):
    @classmethod
    def make_box(cls):
        if not os.path.exists(support.LAB.path(f"websocket.{PORT}.ready")):
            support.LAB.spawn_outside([sys.executable, os.path.join(support.HERE, "websocket_origin.py"), support.LAB.dir, lab.ORIGIN4, str(PORT)])
            support.LAB.wait_for_file(f"websocket.{PORT}.ready")
        return support.Sandbox(policy(
            rule("few1", "/few/--http1.1", "limits: {requests: 2/1h}"), rule("few2", "/few/--http2", "limits: {requests: 2/1h}"),
            rule("up", "/up/**", "limits: {upload: 100KB/1h}"), rule("chunks", "/chunks/**", "limits: {upload: 100KB/1h}"),
            rule("down", "/bytes/**", "limits: {download: 300KB/1h}"), rule("body", "/body/**", "limits: {body: 1KB}"),
            rule("grpc", "/pkg.Service/**", "budget: {requests: 1/1h}"), rule("soon", "/soon", "limits: {requests: 1/2s}"),
            rule("slow", "/slow", "limits: {streams: 1}"), rule("held", "/held", "limits: {upload: 20KB/1h}", ", json: {a: '*'}"),
            "{name: free, to: www.lab.test}", "{name: tunnel, to: 'tcp://tcp.lab.test:2222', limits: {upload: 50KB/1h, connections: 1}}",
            "{name: datagrams, to: 'udp://udp.lab.test:1234', limits: {upload: 1KB/1h}}",
            f"{{name: ws, to: 'https://www.lab.test:{PORT}', limits: {{upload: 20KB/1h}}}}",
            more="limits: {requests: 100000/1h}\n"))

    def curl(self, path, *more, host="api.lab.test"):
        """Returns (status, head in lower case, body) of the last response."""
        out = self.box.run("curl", "-sS", "-i", *more, f"https://{host}{path}").out
        at = out.rfind("HTTP/", 0, out.find("\r\n\r\n", out.rfind("HTTP/")))
        head, _, body = out[max(at, 0):].partition("\r\n\r\n")
        return int(head.split()[1]), head.lower(), body

    def limited(self, answer, name, kind, status=429):
        self.assertEqual(answer[0], status, answer)
        body = json.loads(answer[2])
        self.assertEqual((body["limit"]["rule"], body["limit"]["kind"], body["error"]["code"]), (name, kind, "policy-limit"), body)
        self.assertIn("event", body)
        if status == 429:
            retry = int(next(line.split()[1] for line in answer[1].splitlines() if line.startswith("retry-after:")))
            self.assertEqual(body["retry_after_s"], retry)
            return retry
        self.assertNotIn("retry-after", answer[1])
        return None

    def test_requests(self):
        for version in VERSIONS:
            with self.subTest(version):
                for _ in range(2):
                    self.assertNotEqual(self.curl("/few/" + version, version)[0], 429)
                retry = self.limited(self.curl("/few/" + version, version), "few1" if "1.1" in version else "few2", "requests")
                self.assertTrue(3500 < retry <= 3660, retry)
                self.assertNotEqual(self.curl("/anything", version, host="www.lab.test")[0], 429)
        event = self.box.event(HTTP, status_code="policy-limit", **{"http_request.url.path": "/few/--http2"})
        self.assertEqual((event["action_id"], event["http_response"]["code"]), (2, 429), event)
        self.assertIn('requests 2/1h of rule "few2" is used up', event["status_detail"])

    def test_again_when_the_time_is_over(self):
        self.assertNotEqual(self.curl("/soon")[0], 429)
        self.assertLessEqual(self.limited(self.curl("/soon"), "soon", "requests"), 3)
        self.assertTrue(wait_until(lambda: self.curl("/soon")[0] != 429, 10 * support.SLOW, 0.5))

    def test_upload(self):
        """A body with a length beyond the limit is refused before any of it leaves. A smaller body that fits still passes."""
        self.assertNotEqual(self.curl("/up/a", "-d", "x" * 60000)[0], 429)
        at = self._seen_size()
        for version in VERSIONS:
            retry = self.limited(self.curl("/up/b", version, "-d", "y" * 60000), "up", "upload")
            self.assertTrue(3500 < retry <= 3660, retry)
        self.limited(self.curl("/up/c", "-d", "y" * 90000), "up", "upload")
        self.limited(self.curl("/up/d", "-d", "y" * 100001), "up", "upload", 413)
        self.seen_at = at
        self.assertEqual(self.seen("http"), [])
        self.assertNotEqual(self.curl("/up/e", "-d", "x" * 30000)[0], 429)

    def test_what_heads_carry_counts(self):
        big = [x for n in range(3) for x in ("-H", f"X-{n}: " + "x" * 7000)]
        self.limited(self.curl("/held", *big, "-H", "Content-Type: application/json", "-d", '{"a": "b"}'), "held", "upload", 413)

    def test_held_bodies(self):
        head = ("-H", "Content-Type: application/json", "-d")
        self.assertNotEqual(self.curl("/held", *head, json.dumps({"a": "x" * 15000}))[0], 429)
        self.limited(self.curl("/held", *head, json.dumps({"a": "x" * 15000})), "held", "upload")

    def test_chunks(self):
        """A body without a length is cut at the limit."""
        at = self._seen_size()
        for version in VERSIONS:
            answer = self.curl("/chunks/" + version, version, "-H", "Transfer-Encoding: chunked", "--data-binary", "z" * 101000)
            self.limited(answer, "chunks", "upload")
        self.seen_at = at
        self.assertEqual([s for s in self.seen("http") if s["body"] > 100000], [])

    def test_body(self):
        for version in VERSIONS:
            self.assertNotEqual(self.curl("/body/a", version, "-d", "x" * 1000)[0], 413)
            self.limited(self.curl("/body/b", version, "-d", "x" * 1001), "body", "body", 413)
            self.limited(self.curl("/body/c", version, "-H", "Transfer-Encoding: chunked", "--data-binary", "x" * 1001), "body", "body", 413)

    def test_download(self):
        self.assertEqual(len(self.curl("/bytes/200000")[2]), 200000)
        done = self.box.run("curl", "-sS", "-o", "/dev/null", "-w", "%{size_download}", "https://api.lab.test/bytes/200000")
        self.assertNotEqual(done.status, 0, done)
        self.assertLessEqual(int(done.out or 0), 100000)
        self.assertIsNotNone(self.box.event(HTTP, status_code="policy-limit", **{"http_request.url.path": "/bytes/200000"}))

    def test_streams(self):
        code = """
import threading
answers = []
threads = [threading.Thread(target=lambda: answers.append(fetch("api.lab.test", "/slow?1"))) for _ in range(4)]
for t in threads: t.start()
for t in threads: t.join()
print(sorted(a[0] if isinstance(a, tuple) else a.status for a in answers))
"""
        statuses = json.loads(self.py(code))
        self.assertIn(429, statuses)
        self.assertEqual(statuses[0], 200)
        self.assertEqual(self.curl("/slow?0")[0], 200)

    def test_grpc(self):
        # The request has no body: curl 7.88 waits forever if a response without a body comes while it still sends one.
        head = ("--http2", "-H", "Content-Type: application/grpc", "-X", "POST", "-m", "60")
        self.curl("/pkg.Service/Call", *head)
        status, fields, _ = self.curl("/pkg.Service/Call", *head)
        self.assertEqual(status, 200)
        self.assertIn("grpc-status: 8", fields)
        self.assertIn("grpc-retry-pushback-ms: 3", fields)
        self.assertIn("budget%20" if "budget%20" in fields else "budget requests 1/1h", fields)

    def test_tunnel(self):
        """A tunnel's bytes are counted, and the connection is cut at the limit."""
        code = """
s = connect("tcp.lab.test", 2222)
s.recv(100)
try:                                       # the reset may come before connect() is done
    print(len(connect("tcp.lab.test", 2222).recv(100)))
except OSError:
    print("refused")
got = 0
try:
    for _ in range(80):
        s.sendall(b"x" * 1000)
        got += len(s.recv(1000))
except OSError:
    pass
print(got)
"""
        lines = self.py(code).split()
        self.assertIn(lines[0], ("refused", "0"))
        self.assertTrue(40000 <= int(lines[1]) <= 50000, lines)
        event = self.box.event(NETWORK, status_code="policy-limit", action_id=1, **{"firewall_rule.name": "tunnel"})
        self.assertLessEqual(event["traffic"]["bytes_out"], 50000, event)
        self.assertIsNotNone(self.box.event(NETWORK, status_code="policy-limit", action_id=2))

    def test_datagrams(self):
        code = """
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.settimeout(1)
s.connect(("udp.lab.test", 1234))
got = 0
for _ in range(4):
    s.send(b"x" * 400)
    try:
        got += len(s.recv(1000)) > 0
    except OSError:
        pass
print(got)
"""
        self.assertEqual(self.py(code).strip(), "2")

    def test_websocket(self):
        """Beyond the limit the client gets a close frame (1008)."""
        code = f"""
from websocket_frames import *
c = Client(tls("www.lab.test", {PORT}), "www.lab.test:{PORT}", "/echo")
got, end = 0, None
try:
    for _ in range(40):
        c.send(1, b"x" * 1000)
        opcode, _, _, content = c.next()
        if opcode == 8:
            end = int.from_bytes(content[:2], "big")
            break
        got += len(content)
except (OSError, EOFError):
    end = "cut"
print(got, end)
"""
        got, end = self.py(code).split()
        self.assertTrue(15000 <= int(got) <= 20000, got)
        self.assertEqual(end, "1008")


class Kept(daemon_case.Attached):
    RULES = "{name: reads, to: 'https://api.lab.test', methods: [GET], credential: api, budget: {requests: 5/1h%s}}"

    def write(self, *rules):
        return super().write(self.RULES % "")

    def used(self, name="one"):
        limits = self.daemon.call("GET", f"/v1/sandboxes/{name}/stats")[2]["policy_limits"]
        return [(x["kind"], x["used"], x["amount"], x["rule"], x["shared"]) for x in limits]

    def ask(self, netns=None):
        return self.curl("-o", "/dev/null", "-w", "%{http_code}", "https://api.lab.test/whoami", netns=netns).stdout

    def asked(self, status, netns=None):
        """Asks until a worker serves, and checks the status."""
        got = []
        self.assertTrue(wait_until(lambda: got.append(self.ask(netns)) or got[-1] in ("200", "429"), 10 * support.SLOW, 0.2), got)
        self.assertEqual(got[-1], status, self.daemon.stderr())

    def reload(self, text):
        with open(self.policy, "w") as f:
            f.write(text)
        status, _, answer = self.daemon.call("POST", "/v1/sandboxes/one/reload", {"policy": self.policy})
        self.assertEqual(status, 200, answer)
        return answer

    def test_survives(self):
        self.asked("200")
        self.assertEqual(self.used(), [("requests", 1, 5, "reads", None)])
        os.kill(self.pid("worker"), signal.SIGKILL)                 # the worker crashes
        self.asked("200")
        self.daemon.process.kill()
        self.daemon.process.wait()
        self.daemon.start()                                         # after a crash of the daemon
        self.asked("200")
        self.assertEqual(self.daemon.call("POST", "/v1/sandboxes/one/pause", {"reason": "x"})[0], 200)
        self.assertEqual(self.daemon.call("POST", "/v1/sandboxes/one/resume")[0], 200)
        self.asked("200")
        text = open(self.policy).read()
        answer = self.reload(text.replace("5/1h", "6/2h"))          # another amount and period
        self.assertIn("budget of rule reads: requests 6/2h (so far", json.dumps(answer["diff"]))
        self.assertEqual(self.used()[0][1:3], (4, 6))
        self.asked("200")
        self.asked("200")
        self.asked("429")
        self.reload(text)                                           # back to the first amount and period
        self.asked("429")
        self.assertGreaterEqual(self.daemon.call("GET", "/v1/sandboxes/one/stats")[2]["worker"]["limits_met"], 1)
        shown = self.daemon.cli("stats", "one").stdout
        self.assertIn("limits met", shown)
        self.assertIn("in 3600 s, rule reads", shown)

    def test_damaged_counts_as_used_up(self):
        self.asked("200")
        files = os.listdir(os.path.join(self.daemon.state, "limits"))
        self.assertEqual(len(files), 1)
        os.truncate(os.path.join(self.daemon.state, "limits", files[0]), 100)
        os.kill(self.pid("worker"), signal.SIGKILL)
        self.asked("429")
        self.assertIn("they count as used up", self.daemon.stderr())

    def test_ends_with_its_sandbox(self):
        self.asked("200")
        self.assertEqual(self.daemon.call("DELETE", "/v1/sandboxes/one")[0], 200)
        self.assertEqual(os.listdir(os.path.join(self.daemon.state, "limits")), [])
        self.attach()
        self.assertEqual(self.used()[0][1], 0)

    def test_limits_that_come_with_a_reload(self):
        """From the reload on, the limit counts a response that is under way, and cuts it."""
        text = open(self.policy).read()
        self.reload(text.replace(", budget: {requests: 5/1h}", ""))
        self.assertEqual(self.used(), [])
        trickle = support.Trickle()
        process = subprocess.Popen(["ip", "netns", "exec", self.name, "curl", "-sS", "-N", "--cacert", self.ca, "-x", daemon_case.PROXY, "-o",
                                    trickle.out, trickle.url], stderr=subprocess.PIPE)
        self.addCleanup(process.communicate)
        self.addCleanup(trickle.finish)
        self.assertTrue(trickle.begun())
        self.reload(text.replace("budget: {requests: 5/1h}", "limits: {download: 3B/1h}"))
        self.assertNotEqual(process.wait(30 * support.SLOW), 0)
        self.assertIsNotNone(self.daemon.event(HTTP, status_code="policy-limit"))

    def test_shared(self):
        """Sandboxes with the same value of a label share a budget; others, and those without, do not."""
        self.assertEqual(self.daemon.call("DELETE", "/v1/sandboxes/one")[0], 200)
        with open(self.policy) as f:
            text = f.read()
        with open(self.policy, "w") as f:
            f.write(text.replace("5/1h", "5/1h, shared: team"))
        second, third = support.netns(self, self.name + "b"), support.netns(self, self.name + "c")
        self.attach(labels={"team": "red"})
        self.attach("two", second, labels={"team": "red"})
        self.attach("three", third, labels={"team": "blue"})
        for netns in (None, second, None, second, None):
            self.asked("200", netns)
        self.asked("429", second)
        self.asked("429")
        self.asked("200", third)
        self.assertEqual(self.used("two"), [("requests", 5, 5, "reads", "team")])
        for name in ("one", "two"):
            self.assertEqual(self.daemon.call("DELETE", f"/v1/sandboxes/{name}")[0], 200)
        self.attach(labels={"team": "red"})                          # ending a sandbox gives nothing back
        self.asked("429")
        fourth = support.netns(self, self.name + "d")
        status, _, answer = self.daemon.call("POST", "/v1/sandboxes", {"name": "four", "netns": f"/run/netns/{fourth}", "policy": self.policy})
        self.assertGreaterEqual(status, 400)
        self.assertIn("shared by label \"team\"", json.dumps(answer).replace("\\\"", "\""))
