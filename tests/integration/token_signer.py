# SPDX-License-Identifier: Apache-2.0
"""Signs tokens of sessions as an operator's control plane does, with the openssl command; and the key sets that go with them."""
import base64
import json
import os
import subprocess
import time

GENERATE = {"EdDSA": ("ED25519",), "ES256": ("EC", "-pkeyopt", "ec_paramgen_curve:P-256"), "RS256": ("RSA", "-pkeyopt", "rsa_keygen_bits:2048")}


def b64(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def openssl(*argv, data=b""):
    return subprocess.run(["openssl", *argv], input=data, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True).stdout


def raw_ecdsa(der):
    """r and s of 32 bytes each, from ASN.1."""
    out, at = b"", 2
    for _ in range(2):
        n = der[at + 1]
        out += der[at + 2:at + 2 + n].lstrip(b"\0").rjust(32, b"\0")
        at += 2 + n
    return out


class Key:
    def __init__(self, path, algorithm="EdDSA", kid="one"):
        self.path, self.algorithm, self.kid = path, algorithm, kid
        openssl("genpkey", "-algorithm", *GENERATE[algorithm], "-out", path)

    def jwk(self):
        der = openssl("pkey", "-in", self.path, "-pubout", "-outform", "DER")
        if self.algorithm == "EdDSA":
            return {"kty": "OKP", "crv": "Ed25519", "kid": self.kid, "x": b64(der[-32:]), "use": "sig"}
        if self.algorithm == "ES256":
            return {"kty": "EC", "crv": "P-256", "kid": self.kid, "x": b64(der[-64:-32]), "y": b64(der[-32:]), "alg": "ES256"}
        modulus = openssl("rsa", "-pubin", "-inform", "DER", "-noout", "-modulus", data=der).decode().split("=")[1].strip()
        return {"kty": "RSA", "kid": self.kid, "n": b64(bytes.fromhex(modulus)), "e": "AQAB"}

    def signature(self, text):
        if self.algorithm == "EdDSA":
            where = self.path + ".text"
            with open(where, "wb") as f:
                f.write(text)
            return openssl("pkeyutl", "-sign", "-inkey", self.path, "-rawin", "-in", where)
        out = openssl("dgst", "-sha256", "-sign", self.path, data=text)
        return raw_ecdsa(out) if self.algorithm == "ES256" else out

    def token(self, claims, header=None):
        header = {"alg": self.algorithm, "kid": self.kid, "typ": "JWT"} if header is None else header
        text = f"{b64(json.dumps(header).encode())}.{b64(json.dumps(claims).encode())}"
        return f"{text}.{b64(self.signature(text.encode()))}"


def write_set(path, *keys):
    """Whole, as tools that rotate keys do."""
    with open(path + ".fresh", "w") as f:
        json.dump({"keys": [k.jwk() for k in keys]}, f)
    os.rename(path + ".fresh", path)


def claims(session, **more):
    now = int(time.time())
    return {"iss": "https://control.lab.test", "aud": "vethguard", "iat": now, "exp": now + 3600, "jti": session, "tier": "gold", **more}
