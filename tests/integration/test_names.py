# SPDX-License-Identifier: Apache-2.0
"""Names, on both sides: what resolvers with a search list make of them inside, and what the operator's own servers answer outside."""
import shutil
import subprocess
import unittest

import lab
import support
from support import DNS, FINDING, HTTP, PYTHON, policy

RESOLV = "search default.svc.cluster.local svc.cluster.local cluster.local corp.example\noptions ndots:5 timeout:2 attempts:2\n"
DOMAINS = RESOLV.splitlines()[0].split()[1:]

# Reads the name and a path; prints the response's status, or why there is none.
PYTHON_CLIENT = """
import http.client, ssl, sys
host, path = sys.argv[1:]
c = http.client.HTTPSConnection(host, timeout=20)
c.request("GET", path)
print(c.getresponse().status)
"""
NODE_CLIENT = """
const [host, path] = process.argv.slice(1)
require('https').get({host, path, ca: require('fs').readFileSync('/etc/ssl/certs/ca-certificates.crt')}, r => { r.resume(); console.log(r.statusCode) })
  .on('error', e => console.log(e.message))
"""
GO_CLIENT = """
package main

import (
	"fmt"
	"net/http"
	"os"
)

func main() {
	r, err := http.Get("https://" + os.Args[1] + os.Args[2])
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(r.StatusCode)
}
"""
# Any C library: connects to the name by getaddrinfo(3) and asks in plain http.
C_CLIENT = r"""
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
int main(int argc, char **argv)
{
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found, *a;
	char text[512];
	int fd = -1, error = getaddrinfo(argv[1], "80", &hints, &found);
	(void)argc;
	if (error) {
		printf("%s\n", gai_strerror(error));
		return 0;
	}
	for (a = found; a && fd < 0; a = a->ai_next) {
		fd = socket(a->ai_family, a->ai_socktype, 0);
		if (connect(fd, a->ai_addr, a->ai_addrlen) < 0) {
			close(fd);
			fd = -1;
		}
	}
	snprintf(text, sizeof text, "GET %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", argv[2], argv[1]);
	if (fd < 0 || write(fd, text, strlen(text)) < 0 || read(fd, text, 12) != 12)
		return 1;
	printf("%.3s\n", text + 9);
	return 0;
}
"""



# A server that answers every query only with "a datagram has no room for it".
ONLY_CUT = """
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("127.0.0.1", 0))
print(s.getsockname()[1], flush=True)
while True:
    query, peer = s.recvfrom(4096)
    end = query.index(b"\\0", 12) + 5
    s.sendto(query[:2] + b"\\x83\\x80\\0\\1" + bytes(6) + query[12:end], peer)
"""


class Searched(support.Boxed):
    """Programs inside see a resolv.conf as Kubernetes writes it: every name is first asked for with each domain of the list behind it."""
    RULES = policy("https://api.lab.test", "http://api.lab.test", "{to: 'https://never.lab.test', methods: [GET]}",
                   deny=("{to: 'https://never.lab.test'}",))
    OPTIONS = ()

    @classmethod
    def make_box(cls):
        support.LAB.write("resolv", RESOLV)
        return support.Sandbox(cls.RULES, user="root", options=cls.OPTIONS)

    def setUp(self):
        super().setUp()
        self.before = len(self.box.events())

    def searched(self, *command):
        script = '(grep ^nameserver /etc/resolv.conf; cat "$0") >/tmp/searched && mount --bind /tmp/searched /etc/resolv.conf && exec "$@"'
        return self.box.run("unshare", "-rm", "sh", "-c", script, support.LAB.path("resolv"), *command, timeout=60)

    def events(self, kind):
        return [e for e in self.box.events()[self.before:] if e["class_uid"] == kind]

    def asked(self):
        return {(e["query"]["hostname"], e["rcode"]) for e in self.events(DNS)}

    def says(self, status, *command):
        done = self.searched(*command)
        self.assertEqual(done.out.strip(), str(status), (done, self.events(DNS)))

    def reaches(self, *command):
        """An allowed name is reached, whatever is put behind it first; a denied one gets its explanation. No alarm from either."""
        self.says(200, *command, "api.lab.test", "/searched")
        expected = {("api.lab.test." + domain, "NXDomain") for domain in DOMAINS} | {("api.lab.test", "NoError")}
        self.assertTrue(support.wait_until(lambda: expected <= self.asked()), self.asked())
        for e in self.events(DNS):
            searched = e["query"]["hostname"] != "api.lab.test"
            self.assertEqual((e["action_id"], e.get("status_code")), (2, "search-list") if searched else (1, None), e)
            self.assertLess(e["severity_id"], 3)
        self.says(403, *command, "evil.lab.test", "/denied")
        self.says(403, *command, "never.lab.test", "/denied")
        denied = [e for e in self.events(HTTP) if e["action_id"] == 2]
        self.assertEqual({e["http_request"]["url"]["hostname"] for e in denied}, {"evil.lab.test", "never.lab.test"})
        self.assertTrue({e["status_code"] for e in denied} <= {"default", "rule", "port"}, denied)
        self.assertEqual(self.events(FINDING), [])


class SearchList(Searched):
    CURL = ("sh", "-c", 'curl -sS -m 30 -o /dev/null -w "%{http_code}" "https://$0$1"')

    def test_curl(self):
        self.reaches(*self.CURL)

    def test_curl_http1(self):
        self.reaches("sh", "-c", 'curl -sS --http1.1 -m 30 -o /dev/null -w "%{http_code}" "https://$0$1"')

    def test_python(self):
        self.reaches(PYTHON, "-c", PYTHON_CLIENT)

    @unittest.skipUnless(shutil.which("node"), "node is not installed")
    def test_node(self):
        self.reaches(shutil.which("node"), "-e", NODE_CLIENT)

    def test_both_families_and_other_types_agree(self):
        """One that heard "no data" for a type might not go on."""
        self.searched(PYTHON, "-c", "import socket; [socket.getaddrinfo('api.lab.test', 443, f) for f in (0, 2, 10)]")
        out = self.py("for t in (1, 28, 16, 33, 64, 65, 255): print(dns_query('api.lab.test.corp.example', t)[0])")
        self.assertEqual(set(out.split()), {"3"}, out)

    def test_the_explanation_names_what_was_asked_for(self):
        done = self.searched("curl", "-sS", "-m", "30", "https://evil.lab.test/x")
        self.assertIn("GET https://evil.lab.test/x: no rule of the policy names the destination", done.out)

    def test_many_names_are_no_tunnel(self):
        """A search list's domains behind allowed names are not data; names that vary behind or before them are."""
        names = [f"n{i}.d{i}.test" for i in range(70)]
        box = self.sandbox(policy(*(f"https://{n}" for n in names), "https://*.wild.lab.test"))
        box.py(f"for n in {names!r}: dns_query(n + '.corp.example'), dns_query(n + '.default.svc.cluster.local'), dns_query(n)")
        self.assertTrue(support.wait_until(lambda: len(box.events(DNS)) == 210))
        self.assertEqual(box.events(FINDING), [])
        box.py("for i in range(70): dns_query('n1.d1.test.x%d.evil.example' % i)")
        self.assertIsNotNone(box.event(FINDING, **{"evidences.dst_endpoint.hostname": "evil.example"}))
        box.py("for i in range(70): dns_query('x%d.wild.lab.test.corp.example' % i)")
        self.assertIsNotNone(box.event(FINDING, **{"evidences.dst_endpoint.hostname": "lab.test"}))
        box.py("dns_query('68656c6c6f20776f726c64207365637265742074.wild.lab.test.other.example')")
        box.py("for i in range(70): dns_query('x%d.denied.example' % i)")
        self.assertIsNotNone(box.event(FINDING, **{"evidences.dst_endpoint.hostname": "denied.example"}))

    def test_the_log_suggests_nothing_for_them(self):
        self.says(200, *self.CURL, "api.lab.test", "/suggest")
        self.assertTrue(support.wait_until(lambda: len(self.asked()) > len(DOMAINS)))
        done = subprocess.run([lab.VETHGUARD, "audit", "suggest", self.box.audit], capture_output=True, text=True)
        self.assertNotIn("api.lab.test.corp.example", done.stdout)


class SearchListObserved(Searched):
    OPTIONS = ("--observe",)
    RULES = policy("https://api.lab.test")

    def test_what_is_observed_goes_where_it_was_meant_to(self):
        for name in ("api.lab.test", "www.lab.test"):
            self.says(200, *SearchList.CURL, name, "/observed")
        self.says(200, "sh", "-c", 'curl -sS -m 30 -o /dev/null -w "%{http_code}" "http://$0$1"', "plain.lab.test", "/observed")
        self.assertEqual(self.events(FINDING), [])
        self.assertEqual({r["name"] for r in self.seen("dns")}, {"api.lab.test", "www.lab.test", "plain.lab.test"})


class SearchListAllowed(Searched):
    """A rule allows the list's own domain: names below it are asked for and dialed as any allowed name is."""
    RULES = policy("https://api.lab.test", "https://*.corp.example", "http://*.lab.test")

    def test_a_domain_of_the_list_that_is_allowed(self):
        self.says(403, "sh", "-c", 'curl -sS --http1.1 -m 30 -o /dev/null -w "%{http_code}" "https://$0$1"', "api.lab.test", "/")
        done = self.searched("curl", "-sS", "-m", "30", "https://api.lab.test/")
        self.assertIn("search list", done.out)
        self.assertEqual(self.events(FINDING), [])
        self.assertEqual(self.seen("http"), [])


class LongAnswers(support.Boxed):
    """The operator's server says that a datagram has no room for the answer: it is asked over TCP (RFC 7766)."""

    @classmethod
    def make_box(cls):
        return support.Sandbox(policy("http://long.lab.test", "http://long-deaf.lab.test", "http://api.lab.test"))

    def get(self, name, box=None):
        return (box or self.box).sh(f"curl -sS -m 30 http://{name}/long").out

    def test_over_tcp(self):
        self.assertIn('"/long"', self.get("long.lab.test"))
        asked = [(r["type"], r.get("tcp", False)) for r in self.seen("dns") if r["name"] == "long.lab.test"]
        self.assertEqual(sorted(asked), [(1, False), (1, True), (28, False), (28, True)])
        self.assertEqual(self.box.events(FINDING), [])

    def test_no_answer_over_tcp_either(self):
        out = self.get("long-deaf.lab.test")
        self.assertIn("could not be fetched over TCP", out)
        self.assertIn("502", out)
        self.assertIn('"/long"', self.get("api.lab.test"))

    def test_the_next_server_has_it(self):
        """The first one (out of the lab's namespace, on loopback) only knows UDP: nobody listens for TCP there."""
        first = subprocess.Popen([PYTHON, "-c", ONLY_CUT], stdout=subprocess.PIPE, text=True)
        try:
            port = int(first.stdout.readline())
            config = support.LAB.write("two-servers.yaml", support.LAB.config().replace("[10.99.0.53]", f"['127.0.0.1:{port}', 10.99.0.53]"))
            box = self.sandbox(policy("http://long.lab.test"), config=config)
            self.assertIn('"/long"', self.get("long.lab.test", box))
        finally:
            first.kill()
            first.communicate()


if __name__ == "__main__":
    unittest.main()
