# SPDX-License-Identifier: Apache-2.0
"""What the tests of the control API share: a daemon, namespaces, and answers compared with docs/openapi.yaml."""
import json
import os
import re
import subprocess

import jsonschema
import yaml

import lab
import support
from daemon import Daemon
from support import SECRET, SLOW, Case, sh

POLICY = """vethguard: 1
name: control
credentials:
  key: {source: 'file:%s', inject: bearer, env: LAB_KEY}
allow:
  - {name: api, to: https://api.lab.test, methods: [GET], credential: key}
"""
NARROW = "vethguard: 1\nname: narrow\nallow:\n  - {to: https://www.lab.test, methods: [GET]}\n"
WHOAMI = "https://api.lab.test/whoami"
NOBODY, GROUP = 65534, 61999


class Described:
    """docs/openapi.yaml, asked whether an answer is one."""

    def __init__(self):
        with open(os.path.join(lab.ROOT, "docs/openapi.yaml")) as f:
            self.document = yaml.safe_load(f)
        self.used = set()

    def operation(self, method, path):
        for pattern, item in self.document["paths"].items():
            if re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", pattern), path) and method.lower() in item:
                return item[method.lower()]
        return None

    def check(self, schema, value):
        jsonschema.Draft202012Validator({**schema, "components": self.document["components"]}).validate(value)

    def request(self, method, path, body):
        self.check(self.operation(method, path)["requestBody"]["content"]["application/json"]["schema"], body)

    def answer(self, method, path, status, headers, value):
        operation = self.operation(method, path)
        described = operation["responses"].get(str(status)) if operation else None
        if described is None:
            described = self.document["components"]["responses"]["Problem"]
        else:
            self.used.add(operation["operationId"])
        (media, content), = described["content"].items()
        assert headers["Content-Type"] == media, headers
        self.check(content["schema"], value)
        if status >= 400:
            assert value["status"] == status, value


class Control(Case):
    """One daemon for all tests of a class; a namespace for each test that wants one."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        # Of the lab's own: a group that may, without changing the machine's.
        with open("/etc/group") as f:
            groups = [line for line in f if not line.startswith("vethguard:")]
        cls.groups = support.LAB.write("group", "".join(groups) + f"vethguard:x:{GROUP}:\n")
        sh("mount", "--bind", cls.groups, "/etc/group")
        cls.key = support.LAB.write("control-key", SECRET, 0o600)
        cls.policy = support.LAB.write("control.yaml", POLICY % cls.key)
        cls.narrow = support.LAB.write("control-narrow.yaml", NARROW)
        cls.broken = support.LAB.write("control-broken.yaml", "vethguard: 1\nallwo: []\n")
        cls.described = Described()
        try:
            cls.daemon = Daemon()
        except BaseException:
            sh("umount", "/etc/group")
            raise

    @classmethod
    def tearDownClass(cls):
        sh("umount", "/etc/group")
        status = cls.daemon.stop()
        assert status == 0, cls.daemon.stderr()
        super().tearDownClass()

    def setUp(self):
        super().setUp()
        self.count = 0

    def tearDown(self):
        for s in self.daemon.call("GET", "/v1/sandboxes")[2]["sandboxes"]:
            self.daemon.call("DELETE", f"/v1/sandboxes/{s['name']}")
        super().tearDown()
        self.assert_clean(self.daemon.audit, self.daemon.stderr_path)

    def namespace(self):
        self.count += 1
        name = f"box{self.count}"
        sh("ip", "netns", "add", name)
        self.addCleanup(sh, "ip", "netns", "del", name)
        sh("ip", "-n", name, "link", "set", "lo", "up")
        return f"/run/netns/{name}"

    def attached(self, **members):
        netns = self.namespace()
        return self.daemon.attach(netns=netns, policy=self.policy, **members), netns

    def call(self, method, path, body=None, **kw):
        """One request, whose answer has to be as described."""
        status, headers, answer = self.daemon.call(method, path, body, **kw)
        self.described.answer(method, path, status, headers, answer)
        self.assertNotIn(SECRET, json.dumps(answer))
        return status, headers, answer

    def inside(self, sandbox, netns, url=WHOAMI, *options):
        """curl in the namespace, with the sandbox's name server and CA."""
        env = self.daemon.call("GET", f"/v1/sandboxes/{sandbox}/env")[2]
        ca = support.LAB.write("inside-ca.pem", env["ca_pem"])
        resolv = support.LAB.write("inside-resolv", "".join(f"nameserver {n}\n" for n in env["nameservers"]))
        script = f"mount --bind {resolv} /etc/resolv.conf && exec curl -sS -m 20 --cacert {ca} \"$@\""
        return subprocess.run(["nsenter", f"--net={netns}", "unshare", "-m", "sh", "-c", script, "curl", *options, url],
                              capture_output=True, text=True, timeout=60 * SLOW)
