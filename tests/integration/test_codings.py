# SPDX-License-Identifier: Apache-2.0
"""Answers to requests with a credential that come in a content coding, or in part: what real clients get of them, over HTTP/1.1 and HTTP/2."""
import unittest

import codings
import support
from support import policy

FINDING = support.FINDING
URL = "https://api.lab.test/reflect-"


class Answers(support.Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.box = support.Sandbox(policy("{to: 'https://api.lab.test', credential: api}", credentials=support.file_credential()))

    @classmethod
    def tearDownClass(cls):
        cls.box.close()
        super().tearDownClass()

    def sh(self, script):
        done = self.box.sh("set -e; d=$(mktemp -d); cd $d; " + script)
        self.assertEqual(done.status, 0, done)
        self.assert_no_secret(done.out)
        return done.out

    def test_each_coding_is_undone(self):
        """curl asks for every coding that it knows, and gets the plain content, with the credential covered."""
        for name in codings.CODINGS:
            for version in ("--http1.1", "--http2"):
                out = self.sh(f"curl -sS {version} -D- -H 'Accept-Encoding: gzip, deflate, br, zstd' '{URL}coding?{name.replace(' ', '-')}'").lower()
                self.assertNotIn("content-encoding", out, name)
                self.assertIn('etag: w/"v1"', out, name)
                self.assertRegex(out, r"\nbefore \*+ after$", name)
        self.assertIsNotNone(self.box.event(FINDING))

    def test_one_that_nobody_asked_for(self):
        """A coding that the client does not take has to stay as it is; the credential in it cannot be covered, so the response is refused."""
        for name in codings.CODINGS:
            out = self.sh(f"for i in $(seq 20); do curl -sS -w '%{{http_code}}' '{URL}coding?{name.replace(' ', '-')}' && break; done")
            self.assertIn("cannot be covered", out, name)
            self.assertTrue(out.endswith("502"), (name, out))

    def test_events_in_brotli(self):
        for version in ("--http1.1", "--http2"):
            out = self.sh(f"curl -sSN {version} --compressed {URL}events")
            self.assertRegex(out, r"^data: one\n\ndata: \*+\n\ndata: two\n\n$")

    def ranges(self, path="/reflect-part"):
        return [h[1] for r in self.seen("http", path=path) for h in r["headers"] if h[0].lower() == "range"]

    def test_downloads_that_go_on(self):
        """The first part ends inside of the credential. curl and wget fetch the rest, and then have the same as after a whole download."""
        for rest in (f"curl -sS -C - -o reflect-part {URL}part", f"curl -sS --http1.1 -C - -o reflect-part {URL}part", f"wget -q -c {URL}part"):
            out = self.sh(f"curl -sS -r 0-3009 -o reflect-part -w '%{{http_code}} %{{size_download}}\\n' {URL}part; {rest}; "
                          f"curl -sS -o whole {URL}part; cmp whole reflect-part && tail -c 3020 reflect-part; rm -rf $d")
            self.assertRegex(out, r"^206 3010\n.*\*\.{3000}$", rest)
        for asked in self.ranges():
            self.assertIn(asked, ("bytes=0-4033", "bytes=1986-"))
        self.assertGreaterEqual(len(self.ranges()), 6)

    def test_a_download_in_several_parts_at_once(self):
        """aria2 cuts the content at mebibytes, and the credential lies across each cut."""
        out = self.sh(f"aria2c -q -x2 -s2 -k1M --ca-certificate=${{SSL_CERT_FILE:-/etc/ssl/certs/ca-certificates.crt}} -o parts '{URL}part?large'; "
                      f"curl -sS -o whole '{URL}part?large'; cmp whole parts && wc -c <parts; rm -rf $d")
        self.assertEqual(out.strip(), str((3 << 20) - 10))
        asked = [int(r.removeprefix("bytes=").partition("-")[0]) for r in self.ranges("/reflect-part?large")]
        self.assertTrue(asked)
        self.assertEqual({(first + 1024) % (1 << 20) for first in asked}, {0}, asked)

    def test_what_comes_instead_of_a_part(self):
        """A false condition, a range behind the end, several ranges, a client that takes codings: each gets the whole content, or 416."""
        for options, status, size in (("-r 10-19 -H 'If-Range: \"v1\"'", 206, 10), ("-r 10-19 -H 'If-Range: \"v2\"'", 200, 6037), ("-r 6037-", 416, 0),
                                      ("-r 9000-", 416, 0), ("-r -20", 206, 20), ("-r 0-1,5-6", 200, 6037), ("-r 10-19 --compressed", 200, 6037)):
            for version in ("--http1.1", "--http2"):
                out = self.sh(f"curl -sS {version} {options} -D head -o body -w '%{{http_code}} %{{size_download}}\\n' {URL}part; grep -i content-range head || :; "
                              "rm -rf $d")
                self.assertTrue(out.startswith(f"{status} {size}\n"), (options, out))
                if status != 200:
                    self.assertIn({206: "/6037", 416: "bytes */6037"}[status], out)


if __name__ == "__main__":
    unittest.main()
