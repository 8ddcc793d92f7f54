# SPDX-License-Identifier: Apache-2.0
"""HTTP/2 frame by frame (the golden files of h2/), attacks on vethguard's server side, and origins that attack."""
import glob
import json
import os
import time

import h2cases
import h2floods
import h2frames
import support
from h2origin import Origin
from lab import ORIGIN4
from support import ASAN, FINDING, HERE, HTTP, PACE, PYTHON, SLOW, Case, memory_peak_kib, policy

PORT1, PORT2, HOSTILE, PLAIN = 8444, 8446, 8447, 8448   # origins: HTTP/1.1, HTTP/2, HTTP/2 that attacks, no TLS
UPSTREAM = os.path.join(HERE, "h2", "upstream.case")
FILES = sorted(f for f in glob.glob(os.path.join(HERE, "h2", "*.case")) if f != UPSTREAM)
MEMORY_KIB = 40 << 10


class Http2(Case):
    """One sandbox and its origins for all tests of a class."""
    PORTS = ()
    CONFIG = ""

    @classmethod
    def setUpClass(cls):
        folder = support.LAB.dir
        kinds = {PORT1: (folder, ("http/1.1",)), PORT2: (folder, ("h2",)), HOSTILE: (folder, ("h2",)), PLAIN: (None,)}
        cases = h2cases.load(UPSTREAM)
        cls.origins = {p: support.in_namespace("outside", lambda p=p: Origin(ORIGIN4, p, *kinds[p], cases=cases))
                       for p in cls.PORTS}
        rules = [f"https://{h}.lab.test:{p}" for p in cls.PORTS if p != PLAIN for h in ("api", "www")]
        rules += [f"{{to: 'http://plain.lab.test:{PLAIN}', paths: [/ok/**, /ok]}}"] * (PLAIN in cls.PORTS)
        config = support.LAB.write(f"{cls.__name__}.yaml", support.LAB.config(cls.CONFIG))
        cls.box = support.Sandbox(policy(*rules), config=config)
        cls.worker = cls.box.pids()["worker"]

    @classmethod
    def tearDownClass(cls):
        cls.box.close()
        for o in cls.origins.values():
            o.close()

    def tearDown(self):
        super().tearDown()
        self.assertEqual(self.box.pids().get("worker"), self.worker, "the worker died")
        if not ASAN:
            self.assertLess(memory_peak_kib(self.worker), MEMORY_KIB, "the worker's peak in KiB")

    def tool(self, name, *arguments, timeout=120):
        done = self.box.run(PYTHON, os.path.join(HERE, name), *map(str, arguments), env={"SLOW": str(PACE)}, timeout=timeout)
        self.assertEqual(done.status, 0, done)
        return done.json()

    def fetch(self, port, *requests, seconds=30):
        done = self.box.py(f"import h2cases\nprint(json.dumps(h2cases.fetch('api.lab.test', {port}, *{requests!r}, seconds={seconds})))",
                           env={"SLOW": str(PACE)})
        self.assertEqual(done.status, 0, done)
        return [tuple(r) for r in done.json()]


class Conformance(Http2):
    """Every case of every file, against either kind of origin."""
    PORTS = (PORT1, PORT2)

    def check(self, port):
        origin = self.origins[port]
        results = {r["id"]: r for r in self.tool("h2cases.py", "api.lab.test", port)}
        self.assertGreater(len(results), 280)
        if os.environ.get("SLOWEST"):
            print(sorted(((r["seconds"], r["name"]) for r in results.values()), reverse=True)[:60])
        failed = []
        for case in (c for f in FILES for c in h2cases.load(f)):
            why = results[case.id]["why"] + h2cases.origin_complaints(case, origin.of(case.id), "api.lab.test", port)
            if why:
                failed.append(f"{case.place} {case.name}\n    " + "\n    ".join(why))
        failed += [f"what the origin got breaks the protocol: {v!r}" for v in origin.violations]
        if failed:
            self.fail(f"{len(failed)} of {len(results)}:\n" + "\n".join(failed))

    def test_origin_of_http1(self):
        self.check(PORT1)

    def test_origin_of_http2(self):
        self.check(PORT2)


class Floods(Http2):
    """Attacks by number: the connection ends with GOAWAY, the log has a finding, memory and the origin's work are bounded."""
    PORTS = (PORT1, PORT2)
    REQUESTS = 1500     # that an attack may cause at the origin
    CONFIG = "timeouts: {response: 120s, connect: 120s}\n"  # an origin with 2 GB on offer takes its time for others

    def flood(self, name, port=PORT1):
        origin = self.origins[port]
        before, requests = len(self.box.events(FINDING)), len(origin.requests)
        told = self.tool("h2floods.py", "api.lab.test", port, name)
        self.assertTrue(told["goaway"] or told["closed"], told)
        self.assertNotIn("INTERNAL_ERROR", told["goaway"])
        self.assertEqual(told["violations"], [], told)
        self.assertLess(len(origin.requests) - requests, self.REQUESTS)
        self.assertTrue(support.wait_until(lambda: len(self.box.events(FINDING)) > before, 3 * SLOW), f"no finding: {told}")
        self.assertEqual(told["after"][:2], [200, "ok"])
        return told

    def test_streams_without_end(self):
        """More streams than were offered are refused one by one, or end the connection."""
        told = self.tool("h2floods.py", "api.lab.test", PORT1, "streams_without_end")
        self.assertTrue(told["goaway"] or told["closed"] or told["resets"].get("REFUSED_STREAM"), told)

    def test_slow_read(self):
        """2 GB on offer, nothing taken: the origins wait, not the worker's memory."""
        for port in (PORT1, PORT2):
            for name in ("slow_read", "one_octet_windows"):
                told = self.tool("h2floods.py", "api.lab.test", port, name)
                self.assertEqual(told["after"][:2], [200, "ok"], (port, name, told))


def add_floods():
    def add(name, port):
        setattr(Floods, f"test_{name}{'_h2' if port == PORT2 else ''}", lambda self: self.flood(name, port))
    for name in h2floods.ATTACKS:
        add(name, PORT1)
        if name.startswith(("rapid", "made_you_reset_w")):
            add(name, PORT2)


add_floods()


class HostileOrigin(Http2):
    PORTS = (HOSTILE,)

    def setUp(self):
        super().setUp()
        self.origin = self.origins[HOSTILE]
        self.origin.reset()

    def refuse(self, times, how):
        """Answers the first requests with how(peer, stream), the others well."""
        left = [times]

        def hook(peer, number, request):
            left[0] -= 1
            if left[0] < 0:
                return False
            how(peer, number)
            return True
        self.origin.hook = hook

    @staticmethod
    def goaway(peer, number):
        peer.send(h2frames.goaway(number - 2 if number > 1 else 0))


class Hostile(HostileOrigin):
    """Origins that speak HTTP/2 and break it: 502 or a stream's reset, and nothing else."""
    # No case waits for one of these to be over, but on a busy machine for the origin's turn.
    CONFIG = "timeouts: {response: 60s, connect: 60s, idle: 60s, request: 120s}\n"

    GOT = {"whole": lambda r: r["status"] == 200 and r["whole"] and r["body"] == "fine",
           "broken": lambda r: not r["whole"] and r["reset"] not in (None, "NO_ERROR"),
           "502": lambda r: r["status"] == 502 and r["whole"], "204": lambda r: r["status"] == 204 and not r["body"]}

    def test_cases(self):
        self.check("--visit")

    def test_cases_for_a_client_of_http1(self):
        self.check("--visit1")

    def check(self, how):
        began = len(self.box.events(HTTP))
        told = self.tool("h2cases.py", how, "api.lab.test", HOSTILE, UPSTREAM, timeout=150)
        self.assertEqual(told["violations"], [])
        events = {e["http_request"]["url"]["path"].rpartition("/")[2]: e for e in self.box.events(HTTP)[began:]}
        self.assertEqual(self.origin.violations, [], "vethguard's own frames")
        failed = []
        for case in h2cases.load(UPSTREAM):
            r, event = told["found"][case.id], events.get(case.id, {})
            wanted = {words[0]: " ".join(words[1:]) for words, _, _ in case.steps if words[0] in ("client", "event")}
            why = []
            if os.environ.get("SLOWEST"):
                print(round(r["seconds"], 2), case.name, r["status"], r["reset"], event.get("status_detail"))
            if not any(self.GOT[w](r) for w in wanted["client"].split(" or ")):
                why.append(f"the client got {r}, not {wanted['client']}")
            if "event" in wanted and event.get("status_code", "") not in wanted["event"].split(" or "):
                why.append(f"the event says {event.get('status_code')}: {event.get('status_detail')}")
            if "reset the stream" in event.get("status_detail", "") and not any("RST_STREAM" in w for w, _, _ in case.steps):
                why.append("the event blames a reset that the origin did not send: " + event["status_detail"])
            if r["after"] != 200 or r["goaway"] or r["seconds"] > 5 * SLOW:
                why.append(f"afterwards {r}")
            if why:
                failed.append(f"{case.place} {case.name}\n    " + "\n    ".join(why))
        if failed:
            self.fail(f"{len(failed)} of {len(told['found'])}:\n" + "\n".join(failed))

    def test_goaway_before_the_stream(self):
        """6.8: a request above the last stream was not looked at; it goes out again."""
        self.refuse(1, self.goaway)
        self.assertEqual(self.fetch(HOSTILE, ("GET", "/ok/1", b""))[0], (200, "ok", None))
        self.assertEqual(len(self.origin.requests), 2)

    def test_goaway_before_a_body(self):
        """A body that was sent is gone: no half of it may look like a request."""
        self.refuse(1, self.goaway)
        status, _, reset = self.fetch(HOSTILE, ("POST", "/ok/1", b"b" * 200000))[0]
        for r in self.origin.requests:
            self.assertTrue(not r.whole or len(r.body) == 200000, len(r.body))
        self.assertTrue(status == 502 or reset or any(r.whole for r in self.origin.requests), (status, reset))

    def test_refused_stream(self):
        """8.7: REFUSED_STREAM promises that nothing was done; again, but not for ever."""
        self.refuse(1, lambda peer, number: peer.send(h2frames.rst_stream(number, "REFUSED_STREAM")))
        self.assertEqual(self.fetch(HOSTILE, ("GET", "/ok/1", b""))[0], (200, "ok", None))
        self.assertEqual(len(self.origin.requests), 2)

    def test_refused_stream_for_ever(self):
        self.refuse(10000, lambda peer, number: peer.send(h2frames.rst_stream(number, "REFUSED_STREAM")))
        self.assertEqual(self.fetch(HOSTILE, ("GET", "/ok/1", b""))[0][2], "REFUSED_STREAM")
        self.assertEqual(len(self.origin.requests), 5)

    def test_goaway_for_ever(self):
        self.refuse(10000, self.goaway)
        self.assertEqual(self.fetch(HOSTILE, ("GET", "/ok/1", b""))[0][2], "REFUSED_STREAM")
        self.assertEqual(len(self.origin.requests), 5)

    def test_reset_of_a_post_is_no_reason_to_repeat_it(self):
        self.refuse(1, lambda peer, number: peer.send(h2frames.rst_stream(number, "INTERNAL_ERROR")))
        self.assertEqual(self.fetch(HOSTILE, ("POST", "/ok/1", b"once"))[0][0], 502)
        self.assertEqual(len(self.origin.requests), 1)

    def test_close_within_a_post_is_no_reason_to_repeat_it(self):
        def close(peer, _):
            peer.sock.close()
            peer.closed = True
        self.refuse(1, close)
        self.assertEqual(self.fetch(HOSTILE, ("POST", "/ok/1", b"once"))[0][0], 502)
        self.assertEqual(len(self.origin.requests), 1)

    def test_goaway_after_the_stream_is_drained(self):
        """6.8: what is under way is finished; what comes next goes over a new connection."""
        def hook(peer, number, request):
            if peer.goaways_sent:
                return False
            peer.goaways_sent = True
            peer.send(h2frames.goaway(number))
            return False
        h2frames.Peer.goaways_sent = False
        self.origin.hook = hook
        for i in range(3):
            self.assertEqual(self.fetch(HOSTILE, ("GET", f"/ok/{i}", b""), ("GET", f"/slow/{i}", b""))[0], (200, "ok", None))
        self.assertGreaterEqual(self.origin.connections, 2)
        self.assertEqual(self.origin.violations, [])

    def test_one_stream_at_a_time(self):
        self.origin.settings = [("MAX_CONCURRENT_STREAMS", 1)]
        self.refuse(1, self.goaway)     # away with connections that know other settings
        got = self.fetch(HOSTILE, *[("GET", f"/ok/{i}", b"") for i in range(10)])
        self.assertEqual([g[0] for g in got], [200] * 10)
        self.assertEqual(self.origin.violations, [])

    def test_as_many_streams_as_there_are(self):
        self.refuse(1, self.goaway)
        self.origin.settings = [("MAX_CONCURRENT_STREAMS", 0xffffffff), ("MAX_HEADER_LIST_SIZE", 0xffffffff),
                                ("HEADER_TABLE_SIZE", 0xffffffff), ("INITIAL_WINDOW_SIZE", 0x7fffffff)]
        got = self.fetch(HOSTILE, *[("GET", f"/ok/{i}", b"") for i in range(50)])
        self.assertEqual({g[0] for g in got}, {200})

    def test_push_before_settings_are_acknowledged(self):
        """8.4: they came before any request, so whoever answers one has seen them; what it promises is no trailer either."""
        promise = h2frames.block([(":method", "GET"), (":scheme", "https"), (":authority", "api.lab.test"), (":path", "/"), ("x-pushed", "1")])

        def how(peer, number):
            peer.send(h2frames.headers(number, h2frames.block([(":status", "200")]), end_stream=False) +
                      h2frames.frame("PUSH_PROMISE", number, 4, (2).to_bytes(4, "big") + promise) + h2frames.data(number, b"fine", True))
        self.origin.answer_settings = False
        self.refuse(1, how)
        (_, body, reset), = self.fetch(HOSTILE, ("GET", "/ok/push", b""))
        self.assertNotEqual((body, reset), ("fine", None))
        self.assertEqual(self.box.events(HTTP)[-1]["status_detail"], "the upstream sent a PUSH_PROMISE")

    def test_settings_never_acknowledged(self):
        self.refuse(1, self.goaway)
        self.origin.answer_settings = False
        for i in range(3):
            self.assertEqual(self.fetch(HOSTILE, ("GET", f"/ok/{i}", b""))[0][0], 200)


class Stalled(HostileOrigin):
    """An origin that never takes a body. What its neighbors may need is that origin's turn on a busy machine."""
    CONFIG = "timeouts: {response: 10s, connect: 10s, idle: 10s, request: 20s}\n"

    def test_window_that_never_opens(self):
        """INITIAL_WINDOW_SIZE 0 and no update: the stream ends in bounded time, its neighbors are served."""
        self.refuse(1, self.goaway)
        self.origin.settings = [("INITIAL_WINDOW_SIZE", 0)]
        self.fetch(HOSTILE, ("GET", "/ok/first", b""))
        self.origin.hook = None
        began = time.monotonic()
        got = self.fetch(HOSTILE, ("GET", "/ok/1", b""), ("POST", "/ok/2", b"x" * 60000), ("GET", "/ok/3", b""))
        self.assertEqual([got[0][0], got[2][0]], [200, 200])
        self.assertTrue(got[1][0] in (502, 504) or got[1][2], got[1])
        self.assertLess(time.monotonic() - began, 30 * SLOW)


class Silent(HostileOrigin):
    """Origins that keep it waiting."""
    CONFIG = "timeouts: {response: 3s, connect: 2s, idle: 3s, request: 6s}\n"

    def test_no_stream_at_all(self):
        """MAX_CONCURRENT_STREAMS 0: an answer in bounded time (a request may go out before the settings come)."""
        self.refuse(1, self.goaway)
        self.origin.settings = [("MAX_CONCURRENT_STREAMS", 0)]
        began = time.monotonic()
        for i in range(3):
            for status, _, reset in self.fetch(HOSTILE, ("GET", f"/ok/{i}", b""), ("GET", f"/slow/{i}", b"")):
                self.assertTrue(status in (200, 502, 503, 504) or reset, status)
        self.assertLess(time.monotonic() - began, 20 * SLOW)
        self.assertEqual(self.origin.violations, [])

    def test_broken_connection_ends_all_its_streams_and_no_other(self):
        """A compression error concerns the whole upstream connection: every request on it gets an answer, or is tried again."""
        seen = []

        def hook(peer, number, request):
            seen.append(number)
            if request.target.startswith("/bad"):
                peer.send(h2frames.headers(number, b"\x80"))
                return True
            return request.target.startswith("/wait")
        self.origin.hook = hook
        got = self.fetch(HOSTILE, ("GET", "/wait/1", b""), ("GET", "/wait/2", b""), ("POST", "/bad/3", b"x"))
        self.assertTrue(all(s in (502, 504) or r for s, _, r in got), got)
        self.origin.hook = None
        self.assertEqual(self.fetch(HOSTILE, ("GET", "/ok/4", b""))[0][0], 200)


class Cleartext(Http2):
    """h2c: with prior knowledge or by Upgrade, it is judged or refused, never blindly passed on."""
    PORTS = (PLAIN,)
    PREFACE = "PREFACE + settings() + headers(1, block([(':method', 'GET'), (':scheme', 'http'), (':authority', AT), (':path', PATH)]))"

    def setUp(self):
        super().setUp()
        self.origin = self.origins[PLAIN]
        self.origin.reset()

    def py(self, code):
        done = self.box.py(f"from h2frames import *\nAT = 'plain.lab.test:{PLAIN}'\n" + code)
        self.assertEqual(done.status, 0, done)
        return done.out

    def speak(self, path, authority=None, prefix="s = connect('plain.lab.test', %d)\n" % PLAIN):
        return json.loads(self.py(prefix + f"PATH = {path!r}\nAT = {authority!r} or AT\ns.settimeout(5)\np = Peer(s)\np.stream(1)\n"
                                  f"p.unacknowledged.append([])\np.send({self.PREFACE})\n"
                                  "p.wait(lambda: p.streams[1].over() or p.goaways, 3)\n"
                                  "print(json.dumps([p.streams[1].status(), p.streams[1].reset, bool(p.closed), p.received[:100].decode('latin-1')]))"))

    def test_prior_knowledge_allowed(self):
        status, reset, closed, text = self.speak("/ok/1")
        if status == 200:
            self.assertEqual([r.target for r in self.origin.requests], ["/ok/1"])
        else:
            self.assertTrue(reset or closed or text, (status, text))
            self.assertEqual(self.origin.requests, [])
        self.assertEqual(self.origin.violations, [])

    def test_prior_knowledge_denied_path(self):
        self.assertNotEqual(self.speak("/secret/1")[0], 200)
        self.assertEqual((self.origin.requests, self.origin.violations), ([], []))

    def test_prior_knowledge_of_another_authority(self):
        self.assertNotEqual(self.speak("/ok/1", "evil.lab.test")[0], 200)
        self.assertEqual((self.origin.requests, self.origin.violations), ([], []))

    def test_prior_knowledge_in_a_tunnel(self):
        """CONNECT through the explicit proxy, cleartext HTTP/2 within."""
        self.assertNotEqual(self.speak("/secret/1", prefix=f"s = proxy_connect('plain.lab.test:{PLAIN}')[0]\n")[0], 200)
        self.assertEqual((self.origin.requests, self.origin.violations), ([], []))

    def test_prior_knowledge_at_the_proxy_port(self):
        prefix = "s = socket.create_connection((gate(), PROXY_PORT), 10)\n"
        self.assertNotEqual(self.speak("/secret/1", prefix=prefix)[0], 200)
        self.assertEqual((self.origin.requests, self.origin.violations), ([], []))

    def upgrade(self, path):
        fields = "'Connection: Upgrade, HTTP2-Settings', 'Upgrade: h2c', 'HTTP2-Settings: AAMAAABkAAQAAP__'"
        return self.py(f"PATH = '/secret/2'\ns = connect('plain.lab.test', {PLAIN})\ns.sendall(request('GET', '{path}', AT, {fields}))\n"
                       f"time.sleep(0.2)\ntry:\n s.sendall({self.PREFACE})\nexcept OSError:\n pass\ns.settimeout(1)\nprint(read_all(s))")

    def test_upgrade_is_not_passed_on(self):
        out = self.upgrade("/ok/1")
        self.assertNotIn(" 101 ", out)
        for r in self.origin.requests:
            self.assertEqual((r.target, r.values("upgrade"), r.values("http2-settings")), ("/ok/1", [], []))
        self.assertEqual(self.origin.violations, [])

    def test_upgrade_that_the_origin_would_take(self):
        """An origin that answers 101 whatever it is asked: no byte goes past the judge."""
        raw = []

        def hook(connection, _, request):
            connection.sock.sendall(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n")
            connection.sock.settimeout(1)
            raw.append(connection.data + connection.sock.recv(4096))
            return True
        self.origin.hook = hook
        self.assertNotIn(" 101 ", self.upgrade("/ok/1"))
        self.assertNotIn(b"PRI * ", b"".join(raw))
        self.assertNotIn(b"secret", b"".join(raw))
