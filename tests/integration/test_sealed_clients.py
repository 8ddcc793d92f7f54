# SPDX-License-Identifier: Apache-2.0
"""Sealed logins between programs that others have written: oidc-provider of npm, in the folder of modules that
VETHGUARD_OAUTH2_MODULES names (npm install --prefix FOLDER oidc-provider), and requests-oauthlib inside the sandbox."""
import importlib.util
import json
import os
import re
import shutil
import unittest

import node_server
import support
from support import FINDING, policy

PORT = 8452
URL = f"https://login.wild.lab.test:{PORT}"
MODULES = os.environ.get("VETHGUARD_OAUTH2_MODULES", "")
LOGIN = "  login: {source: sealed, inject: placeholder, in: [header, basic]}\n"
RULES = (f"{{to: '{URL}', paths: [/token, /token/**], seal: login}}", f"{{to: '{URL}', paths: [/code, /confirm, /device/auth]}}",
         f"{{to: '{URL}', paths: [/me], credential: login}}", "https://www.lab.test")
START = f"""
import json, os, requests
from requests_oauthlib import OAuth2Session
os.environ['REQUESTS_CA_BUNDLE'] = os.environ['SSL_CERT_FILE']
def begin():
    session = OAuth2Session('agent', redirect_uri='https://localhost/done', scope=['openid', 'offline_access'])
    code = requests.post('{URL}/code').text
    token = session.fetch_token('{URL}/token', code=code, client_secret='agents-own-secret', include_client_id=True)
    return session, token
"""


@unittest.skipUnless(shutil.which("node") and os.path.isdir(os.path.join(MODULES, "oidc-provider")),
                     "VETHGUARD_OAUTH2_MODULES names no folder with oidc-provider")
@unittest.skipUnless(importlib.util.find_spec("requests_oauthlib"), "there is no requests-oauthlib (python3-requests-oauthlib)")
class Clients(node_server.WithServer, support.Case):
    SCRIPT, MODULES, ARGUMENTS = "oidc_server.mjs", MODULES, (str(PORT), URL)

    def tokens(self):
        """Everything that the server has given out; of a JWT only the signature, since a sandbox knows the rest."""
        given = [json.loads(line)["tokens"] for line in self.lines() if line.startswith('{"grant"')]
        return {v.rpartition(".")[2] for g in given for k, v in g.items() if k.endswith("_token")}

    def of_program(self, code):
        """The JSON that a program inside prints; nothing of any token is in there."""
        box = self.sandbox(policy(*RULES, credentials=LOGIN))
        done = box.py(START + code, timeout=60)
        self.assertEqual(done.status, 0, (done, self.lines()[-4:]))
        self.assertTrue(self.tokens())
        for token in self.tokens():
            self.assertNotIn(token, done.out)
        self.assertEqual([t for e in box.events(FINDING) for t in e["finding_info"]["types"]], [])
        return done.json()

    def test_a_code_and_what_it_opens(self):
        got = self.of_program(f"""
session, token = begin()
print(json.dumps({{'token': token, 'me': session.get('{URL}/me').json()}}))""")
        self.assertEqual(got["me"], {"sub": "agent"})
        for name in ("access_token", "refresh_token"):
            self.assertTrue(got["token"][name].startswith("vethguard-login-"), got)
        self.assertRegex(got["token"]["id_token"], r"^eyJ[^.]+\.eyJ[^.]+\.dmV0aGd1YXJk")

    def test_refresh(self):
        got = self.of_program(f"""
session, first = begin()
first = dict(first)
second = session.refresh_token('{URL}/token', client_id='agent', client_secret='agents-own-secret')
print(json.dumps({{'first': first, 'second': second, 'me': session.get('{URL}/me').json()}}))""")
        self.assertEqual(got["me"], {"sub": "agent"})
        self.assertNotEqual(got["first"]["access_token"], got["second"]["access_token"])

    def test_revocation(self):
        got = self.of_program(f"""
session, token = begin()
r = requests.post('{URL}/token/revocation', data={{'token': token['access_token'], 'client_id': 'agent', 'client_secret': 'agents-own-secret'}})
print(json.dumps({{'revoked': r.status_code, 'me': session.get('{URL}/me').status_code}}))""")
        self.assertEqual(got, {"revoked": 200, "me": 401})

    def test_a_device(self):
        got = self.of_program(f"""
own = {{'client_id': 'agent', 'client_secret': 'agents-own-secret'}}
device = requests.post('{URL}/device/auth', data={{**own, 'scope': 'openid offline_access'}}).json()
ask = {{**own, 'grant_type': 'urn:ietf:params:oauth:grant-type:device_code', 'device_code': device['device_code']}}
waits = requests.post('{URL}/token', data=ask).json()
requests.get('{URL}/confirm', params={{'code': device['user_code']}})
token = requests.post('{URL}/token', data=ask).json()
me = requests.get('{URL}/me', headers={{'Authorization': 'Bearer ' + token['access_token']}})
print(json.dumps({{'waits': waits, 'token': token, 'me': me.json()}}))""")
        self.assertEqual(got["waits"]["error"], "authorization_pending")
        self.assertEqual(got["me"], {"sub": "agent"})

    def test_elsewhere(self):
        """A token that goes to another host is worth nothing there."""
        box = self.sandbox(policy(*RULES, credentials=LOGIN))
        done = box.py(START + "session, token = begin()\nsession.get('https://www.lab.test/stolen')", timeout=60)
        self.assertEqual(done.status, 0, done)
        self.assertEqual(len(self.seen("http", path="/stolen")), 1)
        for token in self.tokens():
            self.assertNotIn(token, json.dumps(self.seen()))
        self.assertIn("placeholder-leak", [t for e in box.events(FINDING) for t in e["finding_info"]["types"]])
        self.assertIsNone(re.search("vethguard-login-[0-9a-f]+-[0-9a-f]{16}", json.dumps(box.events())))
