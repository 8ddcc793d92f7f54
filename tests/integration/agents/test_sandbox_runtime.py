# SPDX-License-Identifier: Apache-2.0
"""Anthropic's sandbox-runtime (srt), whose sandbox has no network: its traffic by vethguard's socket, in both ways of docs/sockets.md."""
import json
import os
import subprocess

import agents
import test_sockets
from support import HTTP, PACE, SECRET, SLOW, wait_until

PORT = 4128


@agents.needs("srt")
class Runtime(test_sockets.Socketed):
    def srt(self, network, command):
        """What the command printed inside."""
        settings = os.path.join(self.dir, "srt.json")
        with open(settings, "w") as f:
            json.dump({"network": network, "filesystem": {"denyRead": [], "allowWrite": [self.dir], "denyWrite": []}}, f)
        r = subprocess.run([os.path.join(agents.BIN, "srt"), "--settings", settings, "-c", command], capture_output=True, text=True,
                           timeout=60 * SLOW, env={**os.environ, "CURL_CA_BUNDLE": self.ca})
        return r

    def curl(self, *options):
        return f"curl -sS -m {20 * PACE} {' '.join(options)}"

    def assert_guarded(self, network, refused):
        r = self.srt(network, f"{self.curl('https://api.lab.test/whoami')}; echo; {self.curl('http://plain.lab.test/x')}; echo; "
                              f"{self.curl('-o /dev/null -w %{http_connect}', 'https://evil.lab.test/')}; echo; "
                              f"{self.curl('-X DELETE -o /dev/null -w %{http_code}', 'https://api.lab.test/x')}; echo; ip -o link")
        lines = r.stdout.strip().split("\n")
        self.assertEqual(len(lines), 5, r)
        self.assertIs(json.loads(lines[0])["authenticated"], True, r)
        self.assertEqual(json.loads(lines[1])["path"], "/x", r)
        self.assertEqual((lines[2], lines[3]), (refused, "403"), r)
        self.assertEqual(lines[4].split()[1], "lo:", r)
        event = self.daemon.event(HTTP, action_id=1, **{"http_request.url.path": "/whoami"})
        self.assertEqual(event["src_endpoint"], {"name": self.path})
        self.assertNotIn(SECRET, r.stdout + r.stderr)

    def test_its_own_proxy_before_the_socket(self):
        self.assert_guarded({"mitmProxy": {"socketPath": self.path, "domains": ["*.lab.test"]}, "allowedDomains": ["*.lab.test"],
                             "deniedDomains": []}, "502")
        event = self.daemon.event(HTTP, action_id=2, **{"dst_endpoint.hostname": "evil.lab.test"})
        self.assertIsNotNone(event)

    def test_ports_instead_of_its_own_proxies(self):
        bridge = subprocess.Popen(["socat", f"TCP-LISTEN:{PORT},bind=127.0.0.1,fork,reuseaddr", f"UNIX-CONNECT:{self.path}"])
        self.addCleanup(bridge.wait)
        self.addCleanup(bridge.terminate)
        self.assertTrue(wait_until(lambda: subprocess.run(["curl", "-s", "-o", "/dev/null", f"http://127.0.0.1:{PORT}/"]).returncode == 0, 10 * SLOW))
        network = {"httpProxyPort": PORT, "socksProxyPort": PORT, "allowedDomains": [], "deniedDomains": []}
        self.assert_guarded(network, "403")
        r = self.srt(network, self.curl("--proxy", "socks5h://localhost:1080", "https://api.lab.test/whoami"))
        self.assertIs(json.loads(r.stdout)["authenticated"], True, r)
        r = self.srt(network, self.curl("--proxy", "socks5h://localhost:1080", "https://evil.lab.test/"))
        self.assertIn(test_sockets.NOT_ALLOWED, r.stderr, r)
