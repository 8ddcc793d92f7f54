# SPDX-License-Identifier: Apache-2.0
"""contrib/kubernetes: the DaemonSet's own containers, with the mounts, rights and probes that its manifest gives them, run by
Podman in a kubelet's place; pods by containerd's CRI with the RuntimeClass's handler. What the API server, the scheduler
and a kubelet add is not here."""
import os
import shutil
import subprocess
import unittest

import attached
import cni_engines
import guests
import lab
import support
import test_exfiltration
from lab import ROOT
from support import SLOW, Case, sh, wait_until

BASE = os.path.join(ROOT, "contrib/kubernetes/base")
PROGRAMS = sorted(n for n in os.listdir(lab.BIN) if n.startswith("vethguard") and n != "vethguard")  # of the package's folder
APPLETS = ("cmp", "cp", "chmod", "mv", "rm", "sed", "grep", "printf", "test")
POLICY = """vethguard: 1
name: agent
credentials:
  key: {source: 'file:/etc/vethguard/credentials/key', inject: bearer}
allow:
  - {to: https://api.lab.test, methods: [GET], credential: key}
"""


def documents(name):
    import yaml
    with open(os.path.join(BASE, name)) as f:
        return list(yaml.safe_load_all(f))


class Manifests(Case):
    def test_names_fit(self):
        """Every file that the kustomization names is there; volumes, ConfigMaps and the handler's name fit together."""
        kustomization, = documents("kustomization.yaml")
        daemonset, = documents("daemonset.yaml")
        runtime, = documents("runtimeclass.yaml")
        maps = {m["name"]: m["files"] for m in kustomization["configMapGenerator"]}
        for name in kustomization["resources"] + [f for files in maps.values() for f in files]:
            self.assertTrue(os.path.exists(os.path.join(BASE, name)), name)
        pod = daemonset["spec"]["template"]["spec"]
        volumes = {v["name"]: v for v in pod["volumes"]}
        used = {m["name"] for c in pod["containers"] + pod["initContainers"] for m in c["volumeMounts"]}
        self.assertEqual(used, set(volumes))
        self.assertEqual({v["configMap"]["name"] for v in volumes.values() if "configMap" in v}, set(maps))
        self.assertEqual(runtime["scheduling"]["nodeSelector"], pod["nodeSelector"])
        self.assertTrue(volumes["cni-conf"]["hostPath"]["path"].endswith(f"/{runtime['handler']}.d"))

    def test_rights(self):
        """One container is privileged; no other has any capability, and none a token of the API."""
        daemonset, = documents("daemonset.yaml")
        account, = documents("serviceaccount.yaml")
        pod = daemonset["spec"]["template"]["spec"]
        self.assertFalse(account["automountServiceAccountToken"] or pod["automountServiceAccountToken"])
        for c in pod["containers"] + pod["initContainers"]:
            self.assertTrue(c["securityContext"]["readOnlyRootFilesystem"])
            if c["name"] != "vethguardd":
                self.assertEqual(c["securityContext"]["capabilities"], {"drop": ["ALL"]})
                self.assertFalse(c["securityContext"]["allowPrivilegeEscalation"])


class Node(Case):
    """A node: its own /run/vethguard, containerd with the handler, and the DaemonSet."""

    @classmethod
    def setUpClass(cls):
        for program in ("podman", "containerd", "runc"):
            if not shutil.which(program):
                raise unittest.SkipTest(program + " is not installed")
        try:
            import grpc  # noqa: F401
        except ImportError:
            raise unittest.SkipTest("python3-grpcio is not installed") from None
        super().setUpClass()
        try:
            cls.make()
        except BaseException:
            cls.doClassCleanups()
            raise

    @classmethod
    def make(cls):
        os.makedirs("/run/vethguard", exist_ok=True)
        sh("mount", "-t", "tmpfs", "-o", "mode=755", "none", "/run/vethguard")
        cls.addClassCleanup(sh, "umount", "-R", "-l", "/run/vethguard")
        for place in ("/run/vethguard", "/run/netns"):  # as systemd makes everything
            sh("mount", "--make-shared", place)
        cls.podman = guests.Engine("podman")
        cls.addClassCleanup(cls.podman.stop)
        for name in ("upper", "work"):
            os.makedirs(f"{cls.podman.dir}/etc-{name}")
        sh("mount", "-t", "overlay", "-o", f"lowerdir=/etc,upperdir={cls.podman.dir}/etc-upper,workdir={cls.podman.dir}/etc-work",
           "none", "/etc")
        cls.addClassCleanup(sh, "umount", "-R", "-l", "/etc")
        os.makedirs("/etc/vethguard/pod-policies", exist_ok=True)
        sh("mount", "-t", "tmpfs", "none", "/etc/vethguard/pod-policies")  # not watched for changes on an overlay
        cls.containerd = cni_engines.Containerd(handlers=["vethguard"])
        cls.addClassCleanup(cls.containerd.stop)
        os.unlink(cls.containerd.dir + "/bin/vethguard-cni")
        cls.image()
        cls.spec = documents("daemonset.yaml")[0]["spec"]["template"]["spec"]
        cls.places = {"run": "/run/vethguard", "netns": "/run/netns", "policies-on-node": "/etc/vethguard/pod-policies",
                      "cni-conf": cls.containerd.dir + "/vethguard", "cni-bin": cls.containerd.dir + "/bin"}
        for name in ("data", "log", "tmp", "node", "config", "policies", "credentials"):
            cls.places[name] = f"{cls.podman.dir}/node-{name}"
            os.makedirs(cls.places[name])
        for name in ("install.sh", "10-vethguard.conflist"):
            shutil.copy(os.path.join(BASE, name), cls.places["node"])
        cls.config_map("policies", "agent.yaml", POLICY)
        cls.config_map("credentials", "key", support.SECRET)
        shutil.copy(support.LAB.path("ca.pem"), cls.places["config"])
        with open(os.path.join(BASE, "vethguard.yaml")) as f:  # with the lab's resolver and CA
            cls.config_map("config", "vethguard.yaml", f.read() + support.LAB.config().replace(support.LAB.path("ca.pem"), "/config/ca.pem"))
        for container in cls.spec["initContainers"]:
            cls.container(container, wait=True)
        for container in cls.spec["containers"]:
            cls.container(container)

    @classmethod
    def config_map(cls, name, key, text):
        with open(f"{cls.places[name]}/{key}", "w") as f:
            f.write(text)

    @classmethod
    def image(cls):
        """The test's usual root with the programs where the package puts them."""
        root = cls.podman.dir + "/image"
        shutil.copytree(guests.Image.get(), root, symlinks=True)
        os.makedirs(root + "/usr/libexec/vethguard")
        for name in APPLETS:
            os.symlink("busybox", f"{root}/bin/{name}")
        for name in PROGRAMS:
            shutil.copy(os.path.join(lab.BIN, name), root + "/usr/libexec/vethguard")
        for line in sh("ldd", *(os.path.join(lab.BIN, n) for n in PROGRAMS)).splitlines():
            for path in [w for w in line.split() if w.startswith("/") and not w.endswith(":")][:1]:
                os.makedirs(root + os.path.dirname(path), exist_ok=True)
                shutil.copy(path, root + path)
        sh("sh", "-c", f"tar -C {root} -c . | podman import - lab/vethguard", env=cls.podman.env)

    @classmethod
    def container(cls, spec, wait=False):
        """As the manifest says."""
        security = spec["securityContext"]
        options = ["--name", spec["name"], "--network", "host", "--pid", "host", "--read-only", "--read-only-tmpfs=false"]
        options += ["--privileged"] if security.get("privileged") else ["--cap-drop", "all", "--security-opt", "no-new-privileges"]
        for m in spec["volumeMounts"]:
            flags = ["ro" if m.get("readOnly") else "rw",
                     {"Bidirectional": "rshared", "HostToContainer": "rslave"}.get(m.get("mountPropagation"), "rprivate")]
            options += ["-v", f"{cls.places[m['name']]}:{m['mountPath']}:{','.join(flags)}"]
        cls.podman("run", *([] if wait else ["-d"]), *options, "lab/vethguard", *spec["command"])

    def probe(self, name, kind):
        command = next(c for c in self.spec["containers"] if c["name"] == name)[kind]["exec"]["command"]
        return subprocess.run(["podman", "exec", name, *command], env=self.podman.env, capture_output=True, text=True)

    def ready(self):
        return [self.probe(c["name"], "readinessProbe").returncode for c in self.spec["containers"]] == [0, 0]

    def has_network(self):
        return os.path.exists(self.places["cni-conf"] + "/10-vethguard.conflist")

    def logs(self):
        return subprocess.run(["podman", "logs", "vethguardd"], env=self.podman.env, capture_output=True, text=True).stderr[-3000:]

    def curl(self, container, url):
        return self.containerd.cri.exec(container, ["/usr/bin/curl", "-sSk", "-m", "10", "-o", "/dev/null", "-w", "%{http_code}", url]).stdout

    def test_the_life_of_a_node(self):
        cri = self.containerd.cri
        self.assertTrue(wait_until(lambda: self.ready() and self.has_network(), 4 * SLOW), self.logs())
        self.assertEqual(self.probe("vethguardd", "livenessProbe").returncode, 0)
        pod = self.start("one")
        container = cri.container(pod, "one", mounts=[(self.places["data"] + "/ca/root.pem", "/etc/ssl/certs/vethguard.pem")])
        self.assertEqual(self.curl(container, "https://api.lab.test/"), "200")
        # The node's root from a hostPath, and any value in the variable that an SDK insists on.
        r = cri.exec(container, ["/usr/bin/curl", "-sS", "-m", "10", "--cacert", "/etc/ssl/certs/vethguard.pem", "-H",
                                 "Authorization: Bearer any-value", "https://api.lab.test/whoami"])
        self.assertIn('"authenticated": true', r.stdout, r)
        self.assertEqual(self.curl(container, "https://evil.lab.test/"), "403")
        # A ConfigMap changes: the pod that runs has the new policy.
        self.config_map("policies", "agent.yaml", POLICY.replace("api.lab.test, methods", "www.lab.test, methods"))
        self.assertTrue(wait_until(lambda: self.curl(container, "https://www.lab.test/") == "200", 4 * SLOW), self.logs())
        self.assertEqual(self.curl(container, "https://api.lab.test/"), "403")
        # Another kind of pod has the cluster's network, and no guard.
        plain = cri.run("plain", "runc")
        self.assertEqual(cri.address(plain)[:6], "10.87.")
        cri.remove(plain)
        self.stopped(pod, container)
        self.podman("start", "vethguardd")
        self.assertTrue(wait_until(lambda: self.ready() and self.has_network(), 4 * SLOW), self.logs())
        self.assertTrue(wait_until(lambda: self.curl(container, "https://www.lab.test/") == "200", 10 * SLOW), self.logs())
        cri.remove(pod)
        cri.remove(self.start("two"))

    def start(self, name):
        """containerd has to have read the folder, which it does by itself."""
        def attempt():
            try:
                return self.containerd.cri.run(name)
            except Exception as e:
                self.last = e
                return None
        pod = wait_until(attempt, 2 * SLOW, 0.5)
        self.assertTrue(pod, getattr(self, "last", ""))
        return pod

    def stopped(self, pod, container):
        """The daemon's container is gone: red at once, no new pod, and the one that runs has no way out."""
        self.podman("kill", "vethguardd")
        self.assertNotEqual(self.probe("node", "readinessProbe").returncode, 0)
        with self.assertRaises(Exception) as caught:
            self.containerd.cri.run("refused")
        self.assertRegex(str(caught.exception), "vethguardd does not run|no network config|cni")
        self.assertTrue(wait_until(lambda: not self.has_network(), 10 * SLOW))
        with test_exfiltration.Watch() as watch:
            self.assertEqual(self.curl(container, "https://10.99.0.66/"), "000")
        self.assertEqual([f for f in watch.sent() if attached.says_something(f)], [])
