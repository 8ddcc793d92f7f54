# SPDX-License-Identifier: Apache-2.0
"""Databases of the tests' own: a real PostgreSQL in the namespace outside (Cluster), and a server that speaks only the login, rightly
or wrongly in the ways that a test names (Hostile)."""
import base64
import glob
import hashlib
import hmac
import os
import pwd
import shutil
import socket
import ssl
import struct
import subprocess
import threading

import support


def programs():
    """The folder of the newest server's programs, or None."""
    return max(glob.glob("/usr/lib/postgresql/*/bin"), default=None)


class Cluster:
    """A throw-away cluster of the user postgres. roles: {name: (password, how its verifier is stored)}."""

    def __init__(self, address, port, roles):
        top, owner = support.LAB.path("postgres"), pwd.getpwnam("postgres")
        shutil.rmtree(top, ignore_errors=True)
        os.makedirs(top)
        for name in ("server.pem", "server.key"):
            shutil.copy(support.LAB.path(name), top)
            os.chmod(f"{top}/{name}", 0o600)
        for path in [top] + glob.glob(top + "/*"):
            os.chown(path, owner.pw_uid, owner.pw_gid)
        who = dict(user=owner.pw_uid, group=owner.pw_gid, extra_groups=[], cwd=top)
        subprocess.run([programs() + "/initdb", "-D", top + "/data", "-A", "trust", "-U", "lab", "--no-sync", "--no-instructions", "-E", "UTF8", "--locale=C"],
                       check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **who)
        with open(top + "/data/pg_hba.conf", "w") as f:
            f.write("local all all trust\n")
            f.writelines(f"hostssl all {name} 0.0.0.0/0 {how}\n" for name, (_, how) in roles.items())
        statements = "".join(f"set password_encryption = '{how if how == 'md5' else 'scram-sha-256'}';\ncreate role {name} login password '{password}';\n"
                             for name, (password, how) in roles.items())
        subprocess.run([programs() + "/postgres", "--single", "-j", "-D", top + "/data", "postgres"], input=statements.replace(";\n", ";\n\n"), text=True,
                       check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **who)
        self.log = open(top + "/log", "w")
        argv = [programs() + "/postgres", "-D", top + "/data", "-c", f"listen_addresses={address}", "-c", f"port={port}", "-c", f"unix_socket_directories={top}",
                "-c", "ssl=on", "-c", f"ssl_cert_file={top}/server.pem", "-c", f"ssl_key_file={top}/server.key", "-c", "fsync=off", "-c", "log_connections=on"]
        self.process = support.LAB.spawn_outside(["setpriv", f"--reuid={owner.pw_uid}", f"--regid={owner.pw_gid}", "--clear-groups"] + argv, cwd=top,
                                                 stdout=self.log, stderr=self.log)
        self.path, self.socket = top, f"{top}/.s.PGSQL.{port}"
        self.port = port
        if not support.wait_until(self.answers, 20):
            raise RuntimeError(self.text())

    def answers(self):
        return os.path.exists(self.socket) and "ready to accept" in self.text()

    def text(self):
        with open(self.path + "/log", errors="replace") as f:
            return f.read()

    def ask(self, sql):
        """Runs SQL as the superuser, by the server's own socket."""
        return subprocess.run(["psql", "-XAtq", f"host={self.path} port={self.port} user=lab dbname=postgres", "-c", sql], check=True, capture_output=True,
                              text=True).stdout

    def close(self):
        self.process.terminate()
        self.process.wait(20)
        self.log.close()


def message(kind, body=b""):
    return kind + struct.pack("!I", len(body) + 4) + body


def asks(number, data=b""):
    return message(b"R", struct.pack("!I", number) + data)


MECHANISMS = b"SCRAM-SHA-256-PLUS\0SCRAM-SHA-256\0\0"
READY = asks(0) + message(b"S", b"server_version\x0015.0\0") + message(b"K", struct.pack("!II", 7, 8)) + message(b"Z", b"I")


class Hostile:
    """Serves each login in the way named by self.way, a method of this class, and notes all bytes that come."""

    def __init__(self, address, port, password):
        self.password, self.way, self.came, self.startups, self.threads = password, "right", b"", [], []
        self.listener = socket.create_server((address, port))
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(support.LAB.path("server.pem"), support.LAB.path("server.key"))
        threading.Thread(target=self.serve, daemon=True).start()

    def close(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()

    def begin(self, way):
        self.way, self.came, self.startups = way, b"", []

    def serve(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.one, args=(connection,), daemon=True).start()

    def one(self, connection):
        connection.settimeout(20)
        try:
            getattr(self, self.way)(connection)
        except (OSError, ValueError, IndexError, struct.error):
            pass
        finally:
            connection.close()

    # --- reading ---

    def take(self, c, n):
        data = b""
        while len(data) < n:
            piece = c.recv(n - len(data))
            if not piece:
                raise ValueError("the end")
            data += piece
            self.came += piece
        return data

    def first(self, c):
        length, = struct.unpack("!I", self.take(c, 4))
        return self.take(c, length - 4)

    def answer(self, c):
        """Reads a typed message of the client. Returns its body."""
        kind = self.take(c, 1)
        length, = struct.unpack("!I", self.take(c, 4))
        return kind, self.take(c, length - 4)

    def rest(self, c):
        while piece := c.recv(65536):
            self.came += piece

    def opened(self, c):
        """Returns the TLS connection after the request for TLS and the startup message."""
        self.first(c)
        c.sendall(b"S")
        c = self.context.wrap_socket(c, server_side=True)
        self.startups.append(self.first(c))
        return c

    # --- SCRAM ---

    def scram(self, c, mechanisms=MECHANISMS, rounds=4096, salt=b"0123456789abcdef", nonce=None, first=None, signature=None, last=True):
        c.sendall(asks(10, mechanisms))
        _, body = self.answer(c)
        self.mechanism, _, rest = body.partition(b"\0")
        client_first = rest[4:]
        gs2, bare = client_first.split(b",,", 1)
        theirs = bare.split(b"r=")[1]
        full = nonce if nonce is not None else theirs + b"server"
        server_first = first if first is not None else b"r=%s,s=%s,i=%d" % (full, base64.b64encode(salt), rounds)
        c.sendall(asks(11, server_first))
        _, final = self.answer(c)
        without, _, proof = final.rpartition(b",p=")
        salted = hashlib.pbkdf2_hmac("sha256", self.password.encode(), salt, rounds)
        stored = hashlib.sha256(hmac.digest(salted, b"Client Key", "sha256")).digest()
        said = bare + b"," + server_first + b"," + without
        key = bytes(a ^ b for a, b in zip(base64.b64decode(proof), hmac.digest(stored, said, "sha256")))
        self.proved = hashlib.sha256(key).digest() == stored
        binding = base64.b64decode(without.split(b",")[0][2:])
        self.bound = binding[len(gs2) + 2:]
        der = c.getpeercert(True) if False else ssl.PEM_cert_to_DER_cert(open(support.LAB.path("server.pem")).read())
        self.binding_right = self.bound == (hashlib.sha256(der).digest() if gs2.startswith(b"p=") else b"")
        right = hmac.digest(hmac.digest(salted, b"Server Key", "sha256"), said, "sha256")
        if last:
            c.sendall(asks(12, b"v=" + base64.b64encode(right if signature is None else signature)))

    def serve_queries(self, c):
        c.sendall(READY)
        while True:
            kind, body = self.answer(c)
            if kind == b"X":
                return
            c.sendall(message(b"T", struct.pack("!H", 1) + b"a\0" + struct.pack("!IHIHIH", 0, 0, 25, 65535, 0xffffffff, 0)) +
                      message(b"D", struct.pack("!HI", 1, 5) + b"right") + message(b"C", b"SELECT 1\0") + message(b"Z", b"I"))

    # --- ways that are right ---

    def right(self, c):
        c = self.opened(c)
        self.scram(c)
        self.serve_queries(c)

    def without_binding(self, c):
        c = self.opened(c)
        self.scram(c, b"SCRAM-SHA-256\0\0")
        self.serve_queries(c)

    def only_binding(self, c):
        c = self.opened(c)
        self.scram(c, b"SCRAM-SHA-256-PLUS\0\0")
        self.serve_queries(c)

    def many_rounds(self, c):
        c = self.opened(c)
        self.scram(c, rounds=100000)
        self.serve_queries(c)

    def md5(self, c):
        c = self.opened(c)
        c.sendall(message(b"N", b"SNOTICE\0Mwelcome\0\0") + asks(5, b"salt"))
        _, body = self.answer(c)
        inner = hashlib.md5((self.password + "agent").encode()).hexdigest()
        self.proved = body == b"md5" + hashlib.md5(inner.encode() + b"salt").hexdigest().encode() + b"\0"
        self.serve_queries(c)

    def trust(self, c):
        self.serve_queries(self.opened(c))

    def in_bytes(self, c):
        """Every byte of the login in a record of its own."""
        c = self.opened(c)

        class Slow:
            @staticmethod
            def sendall(data):
                for i in range(len(data)):
                    c.sendall(data[i:i + 1])
            recv = c.recv
        self.scram(Slow)
        self.serve_queries(c)

    # --- ways that are wrong; WRONG has what is said about them ---

    def no_tls(self, c):
        self.first(c)
        c.sendall(b"N")
        self.rest(c)

    def stuffed(self, c):
        self.first(c)
        c.sendall(b"S" + READY)
        self.rest(c)

    def error_for_tls(self, c):
        self.first(c)
        c.sendall(message(b"E", b"SERROR\0\0"))
        self.rest(c)

    def http(self, c):
        self.first(c)
        c.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    def silent_end(self, c):
        self.first(c)

    def no_handshake(self, c):
        self.first(c)
        c.sendall(b"S")
        self.take(c, 20)

    def cleartext(self, c):
        c = self.opened(c)
        c.sendall(asks(3))
        self.rest(c)

    def gss(self, c):
        c = self.opened(c)
        c.sendall(asks(7))
        self.rest(c)

    def kerberos(self, c):
        c = self.opened(c)
        c.sendall(asks(2))
        self.rest(c)

    def other_sasl(self, c):
        c = self.opened(c)
        c.sendall(asks(10, b"OAUTHBEARER\0\0"))
        self.rest(c)

    def no_mechanism(self, c):
        c = self.opened(c)
        c.sendall(asks(10, b"\0"))
        self.rest(c)

    def endless_mechanisms(self, c):
        c = self.opened(c)
        c.sendall(asks(10, b"X\0" * 100))
        self.rest(c)

    def few_rounds(self, c):
        self.scram(self.opened(c), rounds=1)

    def too_many_rounds(self, c):
        self.scram(self.opened(c), rounds=2000000000)

    def rounds_no_number(self, c):
        c = self.opened(c)
        c.sendall(asks(10, MECHANISMS))
        _, body = self.answer(c)
        c.sendall(asks(11, b"r=" + body.split(b"r=")[1] + b"x,s=AAAA,i=4096x"))
        self.rest(c)

    def other_nonce(self, c):
        self.scram(self.opened(c), nonce=b"another")

    def short_nonce(self, c):
        c = self.opened(c)
        c.sendall(asks(10, MECHANISMS))
        _, body = self.answer(c)
        c.sendall(asks(11, b"r=" + body.split(b"r=")[1] + b",s=AAAA,i=4096"))
        self.rest(c)

    def no_salt(self, c):
        self.scram(self.opened(c), salt=b"")

    def long_salt(self, c):
        self.scram(self.opened(c), salt=b"x" * 65)

    def scram_extension(self, c):
        self.scram(self.opened(c), first=b"m=x,r=y,s=AAAA,i=4096")

    def scram_long(self, c):
        self.scram(self.opened(c), first=b"r=" + b"x" * 5000)

    def wrong_signature(self, c):
        c = self.opened(c)
        self.scram(c, signature=b"\0" * 32)
        self.serve_queries(c)

    def short_signature(self, c):
        c = self.opened(c)
        self.scram(c, signature=b"\0" * 31)
        self.serve_queries(c)

    def no_signature(self, c):
        c = self.opened(c)
        self.scram(c, last=False)
        self.serve_queries(c)

    def scram_error(self, c):
        c = self.opened(c)
        self.scram(c, last=False)
        c.sendall(asks(12, b"e=other-error"))
        self.rest(c)

    def ok_in_between(self, c):
        c = self.opened(c)
        c.sendall(asks(10, MECHANISMS))
        self.answer(c)
        self.serve_queries(c)

    def asks_twice(self, c):
        c = self.opened(c)
        c.sendall(asks(5, b"salt"))
        self.answer(c)
        c.sendall(asks(10, MECHANISMS))
        self.rest(c)

    def md5_short_salt(self, c):
        c = self.opened(c)
        c.sendall(asks(5, b"sal"))
        self.rest(c)

    def data_first(self, c):
        c = self.opened(c)
        c.sendall(message(b"D", b"\0\0"))
        self.rest(c)

    def negotiates(self, c):
        c = self.opened(c)
        c.sendall(message(b"v", struct.pack("!II", 3 << 16, 0)))
        self.rest(c)

    def huge(self, c):
        c = self.opened(c)
        c.sendall(b"R" + struct.pack("!I", 1 << 30) + b"x" * 100000)
        self.rest(c)

    def tiny(self, c):
        c = self.opened(c)
        c.sendall(b"R\0\0\0\3")
        self.rest(c)

    def half(self, c):
        c = self.opened(c)
        c.sendall(b"R\0\0\0\x17")

    def notices(self, c):
        c = self.opened(c)
        try:
            while True:
                c.sendall(message(b"N", b"SNOTICE\0Mx\0\0") * 1000)
        finally:
            c.close()

    def refuses(self, c):
        c = self.opened(c)
        c.sendall(message(b"E", b"SFATAL\0VFATAL\0C28P01\0Mno such luck\0\0"))


WRONG = {"no_tls": "does not offer TLS", "stuffed": "unencrypted bytes", "error_for_tls": "does not speak PostgreSQL", "http": "does not speak PostgreSQL",
         "silent_end": "closed the connection when", "no_handshake": "during the TLS handshake|reset", "cleartext": "password itself, which is never sent",
         "gss": "neither SCRAM-SHA-256 nor MD5", "kerberos": "neither SCRAM-SHA-256 nor MD5", "other_sasl": "not SCRAM-SHA-256", "no_mechanism": "not SCRAM-SHA-256",
         "endless_mechanisms": "malformed message", "few_rounds": "fewer than 4096", "too_many_rounds": "more than a million", "rounds_no_number": "fewer than 4096",
         "other_nonce": "does not answer this login", "short_nonce": "does not answer this login", "no_salt": "malformed", "long_salt": "no salt", "scram_extension": "malformed",
         "scram_long": "too long", "wrong_signature": "has not proved that it knows the password", "short_signature": "last SCRAM message is malformed",
         "no_signature": "without proving that it knows the password", "scram_error": "ended the SCRAM exchange", "ok_in_between": "without proving that it knows the password",
         "asks_twice": "asked for it twice", "md5_short_salt": "malformed message", "data_first": "does not belong to a login", "negotiates": "does not belong to a login",
         "huge": "malformed message", "tiny": "malformed message", "half": "closed the connection during the login", "refuses": "refused the login .28P01",
         "notices": "too many messages"}
RIGHT = ("right", "without_binding", "only_binding", "many_rounds", "md5", "trust", "in_bytes")
