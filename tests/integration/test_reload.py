# SPDX-License-Identifier: Apache-2.0
"""A policy that changes while requests are under way, and the kill switch: what passes is finished by the worker that began it,
what does not ends at once, and the log says why."""
import os
import subprocess
import sys
import threading
import time

import control_case
import support
from control_case import POLICY
from support import HTTP, SECRET, SLOW, wait_until

# Asks for as much as it can until it is ended; when a line of input comes, over connections that have been idle, too. A line of
# output: it has begun.
LOAD = """import http.client, ssl, sys, threading, time
context = ssl.create_default_context(cafile=sys.argv[1])

def connect():
    c = http.client.HTTPSConnection('api.lab.test', context=context, timeout=10)
    c.connect()
    return c

def ask(c, n):
    path = f'/whoami?{sys.argv[2]}-{n}'
    try:
        c.request('GET', path)
        c.getresponse().read()
    except (OSError, http.client.HTTPException):
        c.close()

def asks(n):
    while True:
        try:
            c = connect()
            for _ in range(20):
                ask(c, n)
        except OSError:
            time.sleep(0.01)

idle = [connect() for _ in range(8)]
threads = [threading.Thread(target=asks, args=(n,)) for n in range(4)]
for t in threads:
    t.start()
print('begun', flush=True)
sys.stdin.readline()
for c in idle:
    ask(c, 'idle')
"""


# Two connections, one of which is idle until a line of input comes. A line of output for each request: its status.
TWICE = """import http.client, ssl, sys
context = ssl.create_default_context(cafile=sys.argv[1])
both = [http.client.HTTPSConnection('api.lab.test', context=context, timeout=10) for _ in range(int(sys.argv[2]) if sys.argv[2:] else 2)]
for c in both:
    c.connect()
for c in both:
    c.request('GET', '/whoami')
    print(c.getresponse().status, flush=True)
    sys.stdin.readline()
"""


# The same over HTTP/2: as many connections as there will be requests, each of which waits for a line of input.
TWICE_HTTP2 = """import h2frames, socket, ssl, sys
context = ssl.create_default_context(cafile=sys.argv[1])
context.set_alpn_protocols(["h2"])
def connect():
    s = socket.create_connection(("api.lab.test", 443), 10)
    p = h2frames.Peer(context.wrap_socket(s, server_hostname="api.lab.test"))
    p.send(h2frames.PREFACE)
    p.send_settings()
    p.wait(lambda: p.settings_acks, 10)
    return p
for p in [connect() for _ in range(int(sys.argv[2]))]:
    p.send(h2frames.headers(1, h2frames.block([(":method", "GET"), (":scheme", "https"), (":authority", "api.lab.test"), (":path", "/whoami")])))
    p.wait(p.stream(1).over, 20)
    print(p.stream(1).status(), flush=True)
    sys.stdin.readline()
"""


class Live(control_case.Control):
    def under_way(self, *options):
        """A response (self.trickle), in a thread: (sandbox, list that its curl's result will be in, thread)."""
        sandbox, netns = self.attached(name=self.id().rsplit("_", 1)[1])
        results, self.trickle = [], support.Trickle()
        thread = threading.Thread(target=lambda: results.append(self.inside(sandbox["name"], netns, self.trickle.url, "-N", "-f", "-o",
                                                                             self.trickle.out, "-m", str(50 * SLOW), *options)))
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(self.trickle.finish)
        self.assertTrue(self.trickle.begun())
        self.assertEqual(self.daemon.call("GET", f"/v1/sandboxes/{sandbox['name']}/stats")[2]["worker"]["exchanges_open"], 1)
        return sandbox["name"], netns, results, thread

    def reload(self, name, policy):
        status, _, answer = self.call("POST", f"/v1/sandboxes/{name}/reload", {"policy": policy})
        self.assertEqual(status, 200, (answer, self.daemon.stderr()))

    def cut(self, results, thread, name, code):
        thread.join(30 * SLOW)
        self.assertFalse(thread.is_alive(), "it goes on")
        self.assertNotEqual(results[0].returncode, 0, results[0])
        event = self.daemon.event(HTTP, seconds=5, status_code=code, **{"http_request.url.path": "/trickle"})
        self.assertIsNotNone(event, self.daemon.events(HTTP)[-5:])

    def test_what_no_longer_passes_ends_http2(self):
        name, netns, results, thread = self.under_way()
        self.reload(name, self.narrow)
        self.cut(results, thread, name, "policy-changed")
        self.assertIn("403", self.inside(name, netns, control_case.WHOAMI, "-i").stdout)

    def test_what_no_longer_passes_ends_http1(self):
        name, _, results, thread = self.under_way("--http1.1")
        self.reload(name, self.narrow)
        self.cut(results, thread, name, "policy-changed")

    def test_what_passes_is_finished(self):
        name, netns, results, thread = self.under_way()
        self.reload(name, self.policy)
        self.assertIn("200", self.inside(name, netns, control_case.WHOAMI, "-i").stdout)  # by the new worker, meanwhile
        self.trickle.finish()
        thread.join(60 * SLOW)
        self.assertEqual(results[0].returncode, 0, results[0])
        self.assertTrue(self.trickle.whole())

    def reads_bodies(self, value):
        return support.LAB.write(f"reload-{value.strip(chr(39)+'*')}.yaml", "vethguard: 1\nname: bodies\nallow:\n"
                                 f"  - {{to: 'https://api.lab.test', json: {{a: {value}}}}}\n")

    def posting(self, first):
        """As under_way(), with a body, under a policy that may read it; so the worker that began is not the sandbox's first one."""
        sandbox, netns = self.attached(name=self.id().rsplit("_", 1)[1])
        self.reload(sandbox["name"], first)
        results, self.trickle = [], support.Trickle()
        thread = threading.Thread(target=lambda: results.append(self.inside(
            sandbox["name"], netns, self.trickle.url, "-N", "-f", "-o", self.trickle.out, "-m", str(50 * SLOW), "-X", "GET",
            "-H", "Content-Type: application/json", "-d", '{"a":"one"}')))
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(self.trickle.finish)
        self.assertTrue(self.trickle.begun())
        return sandbox["name"], results, thread

    def test_a_body_that_has_left_cannot_be_judged_unheld(self):
        name, results, thread = self.posting(support.LAB.write("reload-any.yaml", "vethguard: 1\nallow: [{to: 'https://api.lab.test'}]\n"))
        self.reload(name, self.reads_bodies("one"))
        self.cut(results, thread, name, "policy-changed")

    def test_a_held_body_is_judged_again_refused(self):
        name, results, thread = self.posting(self.reads_bodies("one"))
        self.reload(name, self.reads_bodies("two"))
        self.cut(results, thread, name, "policy-changed")

    def test_a_held_body_is_judged_again_passes(self):
        name, results, thread = self.posting(self.reads_bodies("one"))
        self.reload(name, self.reads_bodies("'on*'"))
        self.trickle.finish()
        thread.join(60 * SLOW)
        self.assertEqual(results[0].returncode, 0, results[0])
        self.assertTrue(self.trickle.whole())

    def begin(self, sandbox, netns, *argv):
        """A program in the namespace, with the sandbox's name server; it is ended with the test."""
        env = self.daemon.call("GET", f"/v1/sandboxes/{sandbox}/env")[2]
        resolv = support.LAB.write("begun-resolv", "".join(f"nameserver {n}\n" for n in env["nameservers"]))
        process = subprocess.Popen(["nsenter", f"--net={netns}", "unshare", "-m", "sh", "-c",
                                    f"mount --bind {resolv} /etc/resolv.conf && exec \"$0\" \"$@\"", *argv],
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                                   env=dict(os.environ, PYTHONPATH=support.HERE, PYTHONDONTWRITEBYTECODE="1"))
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        return process

    def arrived(self, word):
        return sum(word in r["path"] for r in self.seen("http"))

    def test_under_load_nothing_passes_afterwards(self):
        """Not over connections that were there before, busy or idle, nor over new ones, whichever of the two workers takes them."""
        netns = self.attached(name="load")[1]
        word = f"load{time.monotonic_ns()}"
        ca = support.LAB.write("load-ca.pem", self.daemon.call("GET", "/v1/sandboxes/load/env")[2]["ca_pem"])
        load = self.begin("load", netns, sys.executable, "-c", LOAD, ca, word)
        self.begin("load", netns, "curl", "-sZ", "--parallel-max", "50", "--cacert", ca, "-o", "/dev/null",
                   f"https://api.lab.test/whoami?{word}-h2-[1-1000000]")
        self.assertEqual(load.stdout.readline(), "begun\n")
        self.assertTrue(wait_until(lambda: self.arrived(word) > 200 and self.arrived(word + "-h2") > 200, 30 * SLOW))
        self.reload("load", self.narrow)
        time.sleep(0.8 * support.PACE)  # what had left the worker before
        before = self.arrived(word)
        load.stdin.write("\n")  # over the idle ones, too
        load.stdin.flush()
        time.sleep(1)
        self.assertEqual(self.arrived(word), before)

    def test_a_credential_of_another_value(self):
        """Its file has changed, the policy has not: what is asked over a connection that was there before gets the new value."""
        for ttl in ("60s", "0s"):
            with self.subTest(ttl=ttl):
                key = support.LAB.write("changing-key", SECRET, 0o600)
                policy = support.LAB.write("changing.yaml", (POLICY % key).replace("inject: bearer", f"inject: bearer, ttl: {ttl}"))
                netns = self.namespace()
                self.daemon.attach(netns=netns, policy=policy, name="changing")
                ca = support.LAB.write("changing-ca.pem", self.daemon.call("GET", "/v1/sandboxes/changing/env")[2]["ca_pem"])
                client = self.begin("changing", netns, sys.executable, "-c", TWICE, ca)
                self.assertEqual(client.stdout.readline(), "200\n")
                support.LAB.write("changing-key", "another-value-0123456789", 0o600)
                self.reload("changing", policy)
                client.stdin.write("\n")
                client.stdin.flush()
                self.assertEqual(client.stdout.readline(), "401\n")
                self.daemon.call("DELETE", "/v1/sandboxes/changing")

    def test_a_credential_of_another_source(self):
        """Connections that were there before, and have asked for nothing: what they ask for gets the credential of now, through one
        reload and through a second one, whatever of the credential is another."""
        other = support.LAB.write("other-key", "another-value-0123456789", 0o600)
        program = support.LAB.write("other-program", f"#!/bin/sh\ncat {self.key}\n", 0o755)
        first = POLICY % self.key
        third = first.replace(f"'file:{self.key}'", f"'exec:[{program}]'")
        for client in (TWICE, TWICE_HTTP2):
            for second, status in (((POLICY % other), "401"), (first.replace("inject: bearer", "inject: bearer, ttl: 1s"), "200"),
                                   (first.replace("key:", "other:").replace("credential: key", "credential: other"), "200")):
                with self.subTest(http2=client == TWICE_HTTP2, second=second):
                    policy = support.LAB.write("source.yaml", first)
                    netns = self.namespace()
                    self.daemon.attach(netns=netns, policy=policy, name="source")
                    ca = support.LAB.write("source-ca.pem", self.daemon.call("GET", "/v1/sandboxes/source/env")[2]["ca_pem"])
                    client_ = self.begin("source", netns, sys.executable, "-c", client, ca, "3")
                    self.assertEqual(client_.stdout.readline(), "200\n")
                    for text, expected in ((second, status), (third, "200")):
                        support.LAB.write("source.yaml", text)
                        self.reload("source", policy)
                        client_.stdin.write("\n")
                        client_.stdin.flush()
                        self.assertEqual(client_.stdout.readline(), expected + "\n", self.daemon.events(HTTP)[-1])
                    self.daemon.call("DELETE", "/v1/sandboxes/source")

    def trickled(self, name, text, field):
        """A response under way to a request with this field: under_way() by another policy."""
        policy = support.LAB.write(f"{name}.yaml", text)
        netns = self.namespace()
        self.daemon.attach(netns=netns, policy=policy, name=name)
        results, self.trickle = [], support.Trickle()
        variables = self.daemon.call("GET", f"/v1/sandboxes/{name}/env")[2]["variables"]
        placeholder = next(v["value"] for v in variables if v["name"] == "LAB_KEY")
        thread = threading.Thread(target=lambda: results.append(self.inside(name, netns, self.trickle.url, "-N", "-f", "-o", self.trickle.out,
                                                                             "-m", str(50 * SLOW), "-H", field.replace("LAB_KEY", placeholder))))
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(self.trickle.finish)
        self.assertTrue(self.trickle.begun())
        return policy, results, thread

    def test_a_required_credential_of_another_number(self):
        """Its placeholder is its own under the new number too."""
        text = (POLICY % self.key).replace("env: LAB_KEY", "env: LAB_KEY, require: true")
        policy, results, thread = self.trickled("number", text, "X-Api-Key: LAB_KEY")
        support.LAB.write("number.yaml", text.replace("  key:", f"  before: {{source: 'file:{self.key}', inject: bearer}}\n  key:"))
        self.reload("number", policy)
        self.trickle.finish()
        thread.join(60 * SLOW)
        self.assertEqual(results[0].returncode, 0, (results[0], self.daemon.events(HTTP)[-1]))
        self.assertTrue(self.trickle.whole())

    def test_a_credential_that_is_required_now(self):
        text = POLICY % self.key
        policy, results, thread = self.trickled("required", text, "X-Api-Key: attackers")
        support.LAB.write("required.yaml", text.replace("env: LAB_KEY", "env: LAB_KEY, require: true"))
        self.reload("required", policy)
        self.cut(results, thread, "required", "policy-changed")

    def configure(self, old, new):
        with open(self.daemon.config) as f:
            text = f.read()
        self.assertIn(old, text)
        self.rewrite(text.replace(old, new))
        self.addCleanup(self.rewrite, text)

    def rewrite(self, text):
        with open(self.daemon.config, "w") as f:
            f.write(text)

    def test_another_way_out_ends_what_had_the_earlier_one(self):
        """An address that the configuration no longer permits cannot be reached over earlier connections, busy or idle."""
        name, netns, results, thread = self.under_way()
        ca = support.LAB.write("way-out-ca.pem", self.daemon.call("GET", f"/v1/sandboxes/{name}/env")[2]["ca_pem"])
        client = self.begin(name, netns, sys.executable, "-c", TWICE, ca)
        self.assertEqual(client.stdout.readline(), "200\n")
        self.configure("permit: [10.99.0.0/16, fd99::/64]", "permit: [10.98.0.0/16]")
        self.reload(name, self.policy)
        self.cut(results, thread, name, "closing")
        client.stdin.write("\n")
        client.stdin.flush()
        self.assertEqual(client.stdout.readline(), "503\n")
        self.assertIn("403", self.inside(name, netns, control_case.WHOAMI, "-i").stdout)

    def test_other_bounds_end_nothing(self):
        name, netns, results, thread = self.under_way()
        self.configure("permit:", "timeouts: {connect: 7s}\npermit:")
        self.reload(name, self.policy)
        self.assertIn("200", self.inside(name, netns, control_case.WHOAMI, "-i").stdout)
        self.trickle.finish()
        thread.join(60 * SLOW)
        self.assertEqual(results[0].returncode, 0, results[0])
        self.assertTrue(self.trickle.whole())

    def test_the_kill_switch(self):
        name, netns, results, thread = self.under_way()
        self.assertEqual(self.call("POST", f"/v1/sandboxes/{name}/pause", {"reason": "enough"})[0], 200)
        self.cut(results, thread, name, "paused")
        r = self.inside(name, netns, control_case.WHOAMI, "-i")
        self.assertIn("503", r.stdout)
        self.assertIn('"reason":"the sandbox is paused: enough"', r.stdout)
        self.assertEqual(self.call("POST", f"/v1/sandboxes/{name}/resume", {})[0], 200)
        self.assertIn("200", self.inside(name, netns, control_case.WHOAMI, "-i").stdout)
