# SPDX-License-Identifier: Apache-2.0
"""Package managers against small registries of their own: apt, pip, cargo, go. Reading only, as a policy for them would be."""
import base64
import gzip
import hashlib
import json
import os
import shutil
import tarfile
import unittest
import zipfile

import outside
import support
from outside import Client
from support import PYTHON

READ = "methods: [GET, HEAD]"


def write(path, data):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as f:
        f.write(data if isinstance(data, bytes) else data.encode())
    return data


class Apt(Client):
    """An https repository whose Release file is signed by nobody ([trusted=yes]), installed into a root of its own."""
    RULES = ("{to: 'https://deb.real.lab.test', methods: [GET, HEAD], paths: ['/files/deb/**']}",
             "{to: 'https://private.real.lab.test', methods: [GET, HEAD], credential: repo}")
    CREDENTIALS = {"repo": "inject: basic, username: apt"}

    @classmethod
    def prepare(cls):
        lab = support.LAB
        top = lab.path("files/deb")
        write(lab.path("deb/DEBIAN/control"), "Package: vethguard-lab\nVersion: 1.0\nArchitecture: all\n"
              "Maintainer: Lab <a@lab.test>\nDescription: a package\n")
        write(lab.path("deb/usr/share/vethguard-lab/file"), os.urandom(200000))
        os.makedirs(top, exist_ok=True)
        support.sh("dpkg-deb", "--build", "--root-owner-group", lab.path("deb"), top + "/vethguard-lab_1.0_all.deb")
        with open(top + "/vethguard-lab_1.0_all.deb", "rb") as f:
            data = f.read()
        packages = write(top + "/Packages", "Package: vethguard-lab\nVersion: 1.0\nArchitecture: all\nMaintainer: Lab <a@lab.test>\n"
                         f"Filename: ./vethguard-lab_1.0_all.deb\nSize: {len(data)}\nSHA256: {hashlib.sha256(data).hexdigest()}\n"
                         "Description: a package\n\n").encode()
        packed = write(top + "/Packages.gz", gzip.compress(packages))
        sums = "".join(f" {hashlib.sha256(d).hexdigest()} {len(d)} {n}\n" for d, n in ((packages, "Packages"), (packed, "Packages.gz")))
        write(top + "/Release", "Origin: lab\nDate: Thu, 01 Jan 2026 00:00:00 UTC\nSHA256:\n" + sums)

    def apt(self, box, url, *argv):
        root = support.LAB.path("aptroot")
        for d in ("lists/partial", "cache/archives/partial", "dpkg/info", "dpkg/updates", "dpkg/triggers", "root"):
            os.makedirs(os.path.join(root, d), exist_ok=True)
        for name in ("status", "available"):
            if not os.path.exists(f"{root}/dpkg/{name}"):
                support.LAB.write(f"aptroot/dpkg/{name}", "")
        support.LAB.write("aptroot/sources.list", f"deb [trusted=yes] {url} ./\n")
        options = {"Dir::State::Lists": root + "/lists", "Dir::Cache": root + "/cache", "Dir::State::status": root + "/dpkg/status",
                   "Dir::Etc::SourceList": root + "/sources.list", "Dir::Etc::SourceParts": "/dev/null",
                   "Dir::Etc::main": "/dev/null", "Dir::Etc::parts": "/dev/null", "Acquire::Retries": "0",
                   "Debug::NoLocking": "1", "Acquire::Languages": "none", "APT::Update::Error-Mode": "any",
                   "DPkg::Options::": f"--admindir={root}/dpkg", "Dir::Log": root}
        flags = [x for k, v in options.items() for x in ("-o", f"{k}={v}")]
        return box.run("apt-get", "-q", *flags, "-o", f"DPkg::Options::=--instdir={root}/root", "-o",
                       "DPkg::Options::=--force-not-root", "-o", "DPkg::Options::=--force-script-chrootless",
                       "-o", f"DPkg::Options::=--log={root}/dpkg.log", *argv)

    def round_trip(self, url, **seen):
        def check(box, word):
            shutil.rmtree(support.LAB.path("aptroot"), ignore_errors=True)
            self.assert_ok(self.apt(box, url, "update"))
            self.assert_ok(self.apt(box, url, "install", "-y", "vethguard-lab"))
            self.assertEqual(os.path.getsize(support.LAB.path("aptroot/root/usr/share/vethguard-lab/file")), 200000)
            self.assert_went(box, path="/files/deb/./vethguard-lab_1.0_all.deb".replace("/./", "/"), **seen)
        self.each(check)

    def test_update_and_install(self):
        self.round_trip("https://deb.real.lab.test/files/deb")

    def test_with_a_credential(self):
        """/etc/apt/auth.conf is not needed: the guard signs in."""
        def check(box, word):
            shutil.rmtree(support.LAB.path("aptroot"), ignore_errors=True)
            self.assert_ok(self.apt(box, "https://private.real.lab.test/private/deb", "update"))
            self.assert_went(box, authenticated=True, path="/private/deb/Packages.gz")
        self.each(check)

    def test_refused(self):
        def check(box, word):
            for url in ("https://evil.lab.test/files/deb", "https://deb.real.lab.test/other", "http://deb.real.lab.test/files/deb"):
                shutil.rmtree(support.LAB.path("aptroot"), ignore_errors=True)
                done = self.apt(box, url, "update")
                self.assert_refused(box, done)
                self.assertIn("403", done.out + done.err)
        self.each(check)


class Pip(Client):
    RULES = ("{to: ['https://pypi.real.lab.test', 'https://pypi.one.lab.test'], methods: [GET, HEAD], paths: ['/files/simple/**', '/files/wheels/**']}",
             "{to: 'https://private.real.lab.test', methods: [GET, HEAD], credential: index}")
    CREDENTIALS = {"index": "inject: basic, username: __token__"}
    ENV = {"PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_NO_CACHE_DIR": "1", "PIP_RETRIES": "0", "PIP_CONFIG_FILE": "/dev/null",
           "PIP_NO_INPUT": "1", "PIP_BREAK_SYSTEM_PACKAGES": "1"}

    @classmethod
    def prepare(cls):
        """One wheel by hand (PEP 427), and its page of a simple index (PEP 503)."""
        name = "vethguard_lab-1.0-py3-none-any.whl"
        info = "vethguard_lab-1.0.dist-info/"
        files = {"vethguard_lab.py": "ANSWER = 42\n", "vethguard_lab.dat": base64.b64encode(os.urandom(300000)).decode(),
                 info + "METADATA": "Metadata-Version: 2.1\nName: vethguard-lab\nVersion: 1.0\n",
                 info + "WHEEL": "Wheel-Version: 1.0\nGenerator: lab\nRoot-Is-Purelib: true\nTag: py3-none-any\n"}

        def line(path, text):
            digest = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
            return f"{path},sha256={digest},{len(text)}\n"
        files[info + "RECORD"] = "".join(line(*f) for f in files.items()) + info + "RECORD,,\n"
        os.makedirs(support.LAB.path("files/wheels"), exist_ok=True)
        with zipfile.ZipFile(support.LAB.path("files/wheels/" + name), "w") as z:
            for path, text in files.items():
                z.writestr(path, text)
        with open(support.LAB.path("files/wheels/" + name), "rb") as f:
            digest = hashlib.sha256(f.read()).hexdigest()
        write(support.LAB.path("files/simple/vethguard-lab/index.html"),
              f'<!DOCTYPE html><html><body><a href="../../wheels/{name}#sha256={digest}">{name}</a></body></html>')
        write(support.LAB.path("files/simple/outsider/index.html"),
              '<a href="https://evil.lab.test/outsider-1.0-py3-none-any.whl">outsider-1.0-py3-none-any.whl</a>')

    def pip(self, box, index, package="vethguard-lab"):
        target = support.LAB.path("pip")
        shutil.rmtree(target, ignore_errors=True)
        return box.run(PYTHON, "-m", "pip", "install", "-q", "--target", target, "--index-url", index, package)

    def installs(self, host, folder="files", protocol=None, **seen):
        def check(box, word):
            self.assert_ok(self.pip(box, f"https://{host}/{folder}/simple"))
            done = box.run(PYTHON, "-c", "import vethguard_lab; print(vethguard_lab.ANSWER)", env={"PYTHONPATH": support.LAB.path("pip")})
            self.assertEqual(done.out, "42\n")
            self.assert_went(box, protocol or outside.TO_UPSTREAM, path=f"/{folder}/wheels/vethguard_lab-1.0-py3-none-any.whl", **seen)
        self.each(check)

    def test_install(self):
        self.installs("pypi.real.lab.test")

    def test_install_from_an_origin_of_http1(self):
        self.installs("pypi.one.lab.test", protocol="HTTP/1.1")

    def test_with_a_credential(self):
        self.installs("private.real.lab.test", "private", authenticated=True)

    def test_refused(self):
        def check(box, word):
            done = self.pip(box, "https://evil.lab.test/simple")
            self.assert_refused(box, done)
            self.assertIn("403", self.pip_says(box, "https://evil.lab.test/simple"))  # without -vv it only finds no version
            done = self.pip(box, "https://pypi.real.lab.test/files/simple", "outsider")
            self.assertNotEqual(done.status, 0)
            self.assertEqual(self.seen("evil"), [])
        self.each(check)

    def pip_says(self, box, index):
        return box.run(PYTHON, "-m", "pip", "-vv", "download", "-d", support.LAB.path("pip"), "--index-url", index, "vethguard-lab").out


def newest_cargo():
    """A cargo with sparse registries (1.68 or later)."""
    for path in ("/usr/bin/cargo", os.path.expanduser("~/.cargo/bin/cargo")):
        if os.path.exists(path):
            return path
    return None


@unittest.skipUnless(newest_cargo(), "needs cargo")
class Cargo(Client):
    RULES = ("{to: 'https://crates.real.lab.test', methods: [GET], paths: ['/files/index/**', '/files/crates/**']}",
             "{to: 'https://private.real.lab.test', methods: [GET], credential: registry}")
    CREDENTIALS = {"registry": "inject: basic, username: cargo"}

    @classmethod
    def prepare(cls):
        """A crate (a tar of its folder) and its line of a sparse index (RFC 2789)."""
        lab = support.LAB
        write(lab.path("crate/vethguard-lab-1.0.0/Cargo.toml"), '[package]\nname = "vethguard-lab"\nversion = "1.0.0"\nedition = "2021"\n')
        write(lab.path("crate/vethguard-lab-1.0.0/src/lib.rs"), "pub fn answer() -> u32 { 42 }\n")
        for folder, host in (("files", "crates"), ("private", "private")):
            base = f"https://{host}.real.lab.test/{folder}"
            top = lab.path(f"files/{folder}-index")
            write(top + "/config.json", json.dumps({"dl": base + "/crates/{crate}-{version}.crate"}))
        archive = lab.path("files/crates/vethguard-lab-1.0.0.crate")
        os.makedirs(os.path.dirname(archive), exist_ok=True)
        with tarfile.open(archive, "w:gz") as t:
            t.add(lab.path("crate/vethguard-lab-1.0.0"), "vethguard-lab-1.0.0")
        with open(archive, "rb") as f:
            digest = hashlib.sha256(f.read()).hexdigest()
        line = json.dumps({"name": "vethguard-lab", "vers": "1.0.0", "deps": [], "cksum": digest, "features": {}, "yanked": False}) + "\n"
        for folder in ("files", "private"):
            write(lab.path(f"files/{folder}-index/ve/th/vethguard-lab"), line)
        os.rename(lab.path("files/files-index"), lab.path("files/index"))

    def cargo(self, box, index, word, *argv):
        lab = support.LAB
        for d in ("cargo-home", "app"):
            shutil.rmtree(lab.path(d), ignore_errors=True)
        write(lab.path("app/Cargo.toml"), '[package]\nname = "app"\nversion = "0.1.0"\nedition = "2021"\n[dependencies]\n'
              'vethguard-lab = { version = "1", registry = "lab" }\n')
        write(lab.path("app/src/main.rs"), 'fn main() { println!("{}", vethguard_lab::answer()); }\n')
        write(lab.path("app/.cargo/config.toml"), f'[registries.lab]\nindex = "sparse+{index}"\n')
        env = {"CARGO_HOME": lab.path("cargo-home"), "CARGO_NET_RETRY": "0"}
        rustup = os.path.expanduser("~/.rustup")
        if os.path.isdir(rustup):
            env["RUSTUP_HOME"] = rustup
        return box.sh(f"cd {lab.path('app')} && exec {newest_cargo()} {' '.join(argv)}", env=env, timeout=120)

    def test_build(self):
        def check(box, word):
            done = self.cargo(box, "https://crates.real.lab.test/files/index/", word, "run", "-q")
            self.assertEqual(done.out, "42\n", done)
            self.assert_went(box, path="/files/index/ve/th/vethguard-lab")
            self.assert_went(box, path="/files/crates/vethguard-lab-1.0.0.crate")
        self.each(check)

    def test_with_a_credential(self):
        def check(box, word):
            self.assert_ok(self.cargo(box, "https://private.real.lab.test/private/private-index/", word, "fetch"))
            self.assertTrue(all(r["authenticated"] for r in self.seen("request")))
            self.assert_went(box, path="/private/crates/vethguard-lab-1.0.0.crate")
        self.each(check)

    def test_refused(self):
        def check(box, word):
            done = self.cargo(box, "https://evil.lab.test/index/", word, "fetch")
            self.assert_refused(box, done)
            self.assertIn("403", done.err)
            done = self.cargo(box, "https://crates.real.lab.test/other/", word, "fetch")
            self.assert_refused(box, done)
        self.each(check)


@unittest.skipUnless(*outside.need("/usr/bin/go"))
class GoModules(Client):
    RULES = ("{to: 'https://proxy.real.lab.test', methods: [GET], paths: ['/files/goproxy/**']}",)
    ENV = {"GOFLAGS": "-mod=mod -modcacherw", "GOSUMDB": "off", "GOTOOLCHAIN": "local", "CGO_ENABLED": "0"}

    @classmethod
    def prepare(cls):
        """A module as the GOPROXY protocol serves it (go help goproxy)."""
        top = support.LAB.path("files/goproxy/lab.test/tiny/@v/")
        write(top + "list", "v1.0.0\n")
        write(top + "v1.0.0.info", '{"Version":"v1.0.0","Time":"2024-01-01T00:00:00Z"}')
        mod = write(top + "v1.0.0.mod", "module lab.test/tiny\n\ngo 1.19\n")
        with zipfile.ZipFile(top + "v1.0.0.zip", "w") as z:
            z.writestr("lab.test/tiny@v1.0.0/go.mod", mod)
            z.writestr("lab.test/tiny@v1.0.0/tiny.go", "package tiny\n\nfunc Answer() int { return 42 }\n")

    def go(self, box, url):
        lab = support.LAB
        for d in ("go-app", "go-path"):
            shutil.rmtree(lab.path(d), ignore_errors=True)
        write(lab.path("go-app/go.mod"), "module app\n\ngo 1.19\n")
        write(lab.path("go-app/main.go"), 'package main\n\nimport "lab.test/tiny"\n\nfunc main() { println(tiny.Answer()) }\n')
        env = {"GOPROXY": url, "GOPATH": lab.path("go-path"), "GOCACHE": lab.path("go-cache")}
        return box.sh(f"cd {lab.path('go-app')} && go get lab.test/tiny@latest && go run .", env=env, timeout=180)

    def test_get_and_run(self):
        def check(box, word):
            done = self.go(box, "https://proxy.real.lab.test/files/goproxy")
            self.assertTrue(done.status == 0 and done.err.endswith("42\n"), done)
            self.assert_went(box, path="/files/goproxy/lab.test/tiny/@v/v1.0.0.zip")
        self.each(check)

    def test_refused(self):
        def check(box, word):
            for url in ("https://evil.lab.test/goproxy", "https://proxy.real.lab.test/elsewhere"):
                done = self.go(box, url)
                self.assert_refused(box, done)
                self.assertRegex(done.err, "403|Forbidden")
        self.each(check)


del Client  # a base class, not a test
