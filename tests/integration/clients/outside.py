# SPDX-License-Identifier: Apache-2.0
"""What the client tests share: the origins behind *.real.lab.test (nginx, h2 and http/1.1) and *.one.lab.test (http/1.1
only), both in front of backend.py, and a base class with two sandboxes, one transparent and one with --proxy-env.

Each test module may start origins of its own with `support.LAB.spawn_outside`; the lab's certificate (server.pem,
server.key) is valid for both domains."""
import os
import shutil
import socket
import sys

import lab
import support
from support import Case

HERE = os.path.dirname(os.path.abspath(__file__))
# What vethguard negotiates with a client, and with an upstream, that offer h2.
TO_CLIENT, TO_UPSTREAM = "HTTP/2.0", "HTTP/2.0"
BY_POLICY = ("default", "rule", "port", "method", "path")  # status_code of what was refused before anything was dialed
STARTED = False

NGINX = """daemon off; user root; worker_processes 1; pid {d}/nginx.pid; error_log {d}/nginx.err;
events {{ worker_connections 512; }}
http {{
	access_log off; client_max_body_size 0; server_tokens off;
	client_body_temp_path {d}/nginx-body; proxy_temp_path {d}/nginx-proxy; fastcgi_temp_path {d}/nginx-f;
	uwsgi_temp_path {d}/nginx-u; scgi_temp_path {d}/nginx-s;
	ssl_certificate {d}/server.pem; ssl_certificate_key {d}/server.key;
	server {{
		listen {address}:443 ssl http2;
		location / {{
			proxy_pass http://127.0.0.1:9000; proxy_http_version 1.1; proxy_buffering off;
			proxy_request_buffering off; proxy_set_header Host $host; proxy_set_header X-Protocol $server_protocol;
		}}
	}}
}}
"""


def spawn(argv, **kw):
    """A server in the namespace, its output in a file of the lab."""
    with open(support.LAB.path(os.path.basename(argv[0]) + ".log"), "ab") as out:
        return support.LAB.spawn_outside(list(argv), stdout=out, stderr=out, **kw)


def wait_for_port(port, address=lab.REAL4):
    def there():
        try:
            socket.create_connection((address, port), timeout=1).close()
        except OSError:
            return False
        return True
    if not support.wait_until(there, 20):
        raise RuntimeError(f"nothing listens on {address}:{port}")


def start():
    """Starts the origins, once."""
    global STARTED
    if STARTED:
        return
    STARTED = True
    os.makedirs(support.LAB.path("files"), exist_ok=True)
    os.makedirs(support.LAB.path("home"), exist_ok=True)
    support.LAB.write("nginx.conf", NGINX.format(d=support.LAB.dir, address=lab.REAL4))
    spawn([sys.executable, os.path.join(HERE, "backend.py"), support.LAB.dir])
    spawn(["/usr/sbin/nginx", "-c", support.LAB.path("nginx.conf"), "-e", support.LAB.path("nginx.err")])
    wait_for_port(443)
    wait_for_port(443, lab.PLAIN4)


def need(*programs):
    """For unittest.skipUnless: are these programs there? `make check-clients` installs them."""
    return all(shutil.which(p) or os.path.exists(p) for p in programs), "needs " + ", ".join(programs)


class Client(Case):
    """Two sandboxes for a class: `box` (transparent) and `proxied` (--proxy-env). RULES and CREDENTIALS are the policy."""
    RULES = ()
    CREDENTIALS = {}  # name: the rest of the credential's mapping
    PROXY = True      # False: the client knows no proxy, `proxied` is None
    ENV = {}

    @classmethod
    def setUpClass(cls):
        start()
        cls.prepare()
        text = support.policy(*cls.RULES, credentials="".join(support.file_credential(*c) for c in cls.CREDENTIALS.items()))
        env = {"HOME": support.LAB.path("home"), "PYTHONPATH": support.HERE, "PYTHONDONTWRITEBYTECODE": "1", **cls.ENV}
        options = ["--clean-env"] + [x for k, v in env.items() for x in ("--env", f"{k}={v}")]
        # Programs that load their TLS between connecting and their hello (Java) take more than ten seconds for it on a busy machine.
        config = support.LAB.write("outside.yaml", support.LAB.config("timeouts: {hello: 120s, header: 120s, connect: 60s, response: 120s}\n"))
        cls.box = support.Sandbox(text, options=options, config=config)
        cls.proxied = support.Sandbox(text, options=options + ["--proxy-env"], config=config) if cls.PROXY else None
        for box in (cls.box, cls.proxied):
            if box:
                box.gate = box.py("print(gate())").out.strip()

    @classmethod
    def prepare(cls):
        """Set-up before the sandboxes begin: repositories, keys, servers."""

    @classmethod
    def tearDownClass(cls):
        for way, box in (("transparent", cls.box), ("proxy", cls.proxied)):
            if box:
                box.close()
                if os.environ.get("VETHGUARD_TABLE"):
                    cls.tell(way, box)

    @classmethod
    def tell(cls, way, box):
        """What docs/clients.md says of a client, from the log: its name for itself and the versions it spoke."""
        events = [e["http_request"] for e in box.events(support.HTTP) if e["action_id"] == 1]
        for agent in sorted({e.get("user_agent", "-") for e in events}):
            versions = {e.get("version") for e in events if e.get("user_agent", "-") == agent}
            print(f"      {cls.__name__} | {way} | {agent} | {', '.join(sorted(map(str, versions)))}")

    def boxes(self):
        """(name, sandbox) of each way out, for subTest."""
        return [(n, b) for n, b in (("transparent", self.box), ("proxy", self.proxied)) if b]

    def each(self, check):
        """Calls check(sandbox, a word that differs) for each way out. What was seen begins anew, and a request through
        the proxy really went through it."""
        for name, box in self.boxes():
            with self.subTest(name):
                self.seen_at = self._seen_size()
                check(box, name)

    def tearDown(self):
        super().tearDown()
        for _, box in self.boxes():
            self.assert_clean(box.audit, box.stderr_path)

    def assert_went(self, box, protocol=TO_UPSTREAM, **fields):
        """The origin saw this request, authenticated or not as `authenticated` says, and it came by this sandbox's way."""
        rows = self.seen("request", **fields)
        self.assertTrue(rows, f"the origin did not see {fields}: {self.seen('request')}")
        self.assertEqual(rows[0]["protocol"], protocol, rows[0])
        event = box.event(support.HTTP, **{"http_request.url.path": rows[0]["path"].split("?")[0]})
        self.assertIsNotNone(event, f"{rows[0]['path']} is not in the log")
        self.assertEqual(event["proxy_endpoint"]["ip"] == box.gate, box is self.proxied, event["proxy_endpoint"])
        return rows[0]

    def assert_refused(self, box, done, **fields):
        """The client failed, the log has the refusal, and the origin saw nothing."""
        self.assertNotEqual(done.status, 0, done)
        self.assertEqual(self.seen("request") + self.seen("evil"), [])
        self.assertIsNotNone(box.event(action_id=2, status_code=BY_POLICY.__contains__, **fields), f"no refusal in the log: {box.events()[-3:]}")
        self.assert_no_secret(done.out + done.err)
