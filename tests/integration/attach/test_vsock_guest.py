# SPDX-License-Identifier: Apache-2.0
"""A guest of QEMU whose only device is vhost-vsock: its CID is who it is. Where this kernel has no vhost-vsock, test_vsock_machine runs
this file in a machine with one that has it."""
import os
import re
import shutil
import subprocess
import unittest

import guests
from support import FINDING, SLOW, sh
from test_sockets import Socketed

CID, OTHER, OWN_PORT, OTHERS_PORT = 7, 8, 31280, 31281
# Connects to each port of CID 2 that is named, asks for a tunnel, and prints what comes back.
PROBE = r"""
#include <linux/vm_sockets.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
int main(int argc, char **argv)
{
	for (int i = 1; i + 1 < argc; i += 2) {
		struct sockaddr_vm to = {.svm_family = AF_VSOCK, .svm_cid = 2, .svm_port = (unsigned)atoi(argv[i])};
		char text[400];
		int s = socket(AF_VSOCK, SOCK_STREAM, 0);
		int n = snprintf(text, sizeof(text), "CONNECT %s:443 HTTP/1.1\r\nHost: %s:443\r\n\r\n", argv[i + 1], argv[i + 1]);
		int rc = connect(s, (struct sockaddr *)&to, sizeof(to));
		if (rc == 0 && write(s, text, (size_t)n) == n)
			rc = (int)read(s, text, 12);
		printf("probe %s %s: %d %.*s\n", argv[i], argv[i + 1], rc < 0 ? 0 : rc, rc > 0 ? rc : 0, text);
		fflush(stdout);
		close(s);
	}
	return 0;
}
"""
INIT = """#!/busybox sh
for m in %s; do /busybox insmod /modules/$m; done
/probe %s
/busybox poweroff -f
"""


class Guest(Socketed):
    @classmethod
    def setUpClass(cls):
        for program in ("qemu-system-x86_64", "cpio", "modinfo", "cc"):
            if not shutil.which(program):
                raise unittest.SkipTest(program + " is not installed")
        if not os.path.exists("/dev/vhost-vsock"):
            raise unittest.SkipTest("this kernel has no vhost-vsock")
        if guests.kernel() is None:
            raise unittest.SkipTest("there is no kernel for it; see mk/install-kernel")

    def boot(self, *probes):
        """The guest's console, when it has ended."""
        image, folder = guests.kernel()
        paths = guests.modules(folder, "virtio_pci", "vmw_vsock_virtio_transport")
        root = self.dir + "/root"
        os.makedirs(root + "/modules")
        os.makedirs(root + "/dev")
        sh("mknod", root + "/dev/console", "c", "5", "1")
        for path in paths:
            shutil.copy(path, root + "/modules")
        shutil.copy(shutil.which("busybox") or "/bin/busybox", root + "/busybox")
        subprocess.run(["cc", "-static", "-x", "c", "-", "-o", root + "/probe"], input=PROBE, text=True, check=True)
        with open(root + "/init", "w") as f:
            f.write(INIT % (" ".join(map(os.path.basename, paths)), " ".join(probes)))
        os.chmod(root + "/init", 0o755)
        sh("sh", "-c", "find . | cpio -o -H newc --quiet > ../initramfs", cwd=root)
        r = subprocess.run(["timeout", str(600 * SLOW), "qemu-system-x86_64", "-accel", "tcg", "-cpu", "max", "-m", "256", "-nodefaults", "-display",
                            "none", "-no-reboot", "-kernel", image, "-initrd", self.dir + "/initramfs", "-append",
                            "console=ttyS0 quiet panic=-1 no_timer_check", "-serial", "stdio", "-device",
                            f"vhost-vsock-pci,guest-cid={CID}"], stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace")
        self.assertEqual(r.returncode, 0, r)
        return r.stdout

    def test_the_cid_decides(self):
        for name, cid, port in (("mine", CID, OWN_PORT), ("others", OTHER, OTHERS_PORT)):
            self.daemon.attach(name=name, policy=self.policy, listen={"cid": cid, "port": port})
        text = self.boot(str(OWN_PORT), "api.lab.test", str(OWN_PORT), "evil.lab.test", str(OTHERS_PORT), "api.lab.test")
        self.assertEqual(re.findall(r"probe (\d+) ([\w.]+): (\d+) ?([^\r\n]*)", text),
                         [(str(OWN_PORT), "api.lab.test", "12", "HTTP/1.1 200"), (str(OWN_PORT), "evil.lab.test", "12", "HTTP/1.1 403"),
                          (str(OTHERS_PORT), "api.lab.test", "0", "")], text)
        found = [e for e in self.daemon.events(FINDING) if "foreign-peer" in e["finding_info"]["types"]]
        self.assertEqual([(e["device"]["name"], "CID 7 connected to the vsock port of CID 8" in e["finding_info"]["desc"]) for e in found],
                         [("others", True)], found)
