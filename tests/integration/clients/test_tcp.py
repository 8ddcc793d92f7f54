# SPDX-License-Identifier: Apache-2.0
"""Protocols that are neither TLS nor HTTP, through tcp:// rules: ssh, scp, redis-cli, psql (also with TLS of its own)."""
import glob
import os
import pwd
import shutil
import subprocess
import unittest

import lab
import outside
import support
from outside import Client

PORTS = {"ssh": 2022, "redis": 6379, "postgres": 5432}


class Tcp(Client):
    """No proxy variable is meant for these; what is allowed is the name and port of a rule."""
    PROXY = False

    def assert_tunnelled(self, port):
        event = self.box.event(support.NETWORK, **{"dst_endpoint.port": port, "action_id": 1})
        self.assertIsNotNone(event, "the connection is not in the log")
        self.assertGreater(event["traffic"]["bytes_in"], 0)

    def assert_kept_in(self, done, port, kind=support.NETWORK):
        """The client failed, and the log has the refusal with the port that was meant."""
        self.assertNotEqual(done.status, 0, done)
        event = self.box.event(kind, **{"dst_endpoint.port": port, "action_id": 2, "status_code": outside.BY_POLICY.__contains__})
        self.assertIsNotNone(event, self.box.events()[-3:])
        self.assertEqual(event["proxy_endpoint"]["port"], 3128 if event["proxy_endpoint"]["ip"] == self.box.gate else port)
        self.assertEqual(self.seen("evil"), [])


@unittest.skipUnless(*outside.need("/usr/sbin/sshd", "ssh"))
class Ssh(Tcp):
    RULES = (f"tcp://ssh.real.lab.test:{PORTS['ssh']}",)

    @classmethod
    def prepare(cls):
        top = support.LAB.path("ssh")
        os.makedirs(top, exist_ok=True)
        for name in ("host", "client"):
            support.sh("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", f"{top}/{name}")
        shutil.copy(top + "/client.pub", top + "/authorized")
        with open(top + "/host.pub") as f:
            support.LAB.write("ssh/known", f"[ssh.real.lab.test]:{PORTS['ssh']} {f.read()}")
        conf = support.LAB.write("ssh/sshd_config", f"ListenAddress {lab.REAL4}:{PORTS['ssh']}\nHostKey {top}/host\n"
                                 f"AuthorizedKeysFile {top}/authorized\nPidFile none\nUsePAM no\nStrictModes no\n"
                                 "PasswordAuthentication no\nPermitRootLogin prohibit-password\nSubsystem sftp internal-sftp\n")
        # sshd wants /run/sshd, and the machine's /run is not the lab's to write to.
        outside.spawn(["unshare", "-m", "sh", "-c", f"mount -t tmpfs none /run && mkdir /run/sshd && exec /usr/sbin/sshd -D -e -f {conf}"])
        outside.wait_for_port(PORTS["ssh"])

    def options(self):
        top = support.LAB.path("ssh")
        return ["-F", "/dev/null", "-i", top + "/client", "-o", f"UserKnownHostsFile={top}/known", "-o", "BatchMode=yes",
                "-o", "StrictHostKeyChecking=yes", "-o", "IdentitiesOnly=yes"]

    def ssh(self, host, *command, port=PORTS["ssh"], more=(), **kw):
        return self.box.run("ssh", *self.options(), *more, "-o", "ConnectTimeout=10", "-p", str(port), "root@" + host, *command, **kw)

    def test_command(self):
        done = self.ssh("ssh.real.lab.test", "cat; ip -br addr; exit 7", input=b"x" * 1000000)
        self.assertEqual(done.status, 7, done)
        self.assertEqual(done.out.count("x"), 1000000)
        self.assertIn(lab.REAL4, done.out)
        self.assert_tunnelled(PORTS["ssh"])

    def test_copies(self):
        data = os.urandom(5 << 20)
        with open(support.LAB.path("ssh/from"), "wb") as f:
            f.write(data)
        for flag in ("-s", "-O"):  # over sftp, and as scp once was
            to = support.LAB.path("ssh/to" + flag)
            self.assert_ok(self.box.run("scp", "-q", flag, *self.options(), "-P", str(PORTS["ssh"]), support.LAB.path("ssh/from"),
                                        f"root@ssh.real.lab.test:{to}"))
            with open(to, "rb") as f:
                self.assertEqual(f.read(), data)

    def test_through_the_proxy(self):
        """ssh knows no proxy, but a program that does: netcat with CONNECT, to what a tcp:// rule names and nothing else."""
        proxy = f"ProxyCommand=nc -X connect -x {self.box.gate}:3128 %h %p"
        self.assertEqual(self.ssh("ssh.real.lab.test", "echo there", more=["-o", proxy]).out, "there\n")
        self.assert_kept_in(self.ssh("evil.lab.test", "true", port=2024, more=["-o", proxy]), 2024, support.HTTP)

    def test_git(self):
        top = support.LAB.path("ssh/repo.git")
        support.sh("git", "init", "-q", "--bare", "-b", "main", top)
        folder = support.LAB.path("ssh/clone")
        env = {"GIT_SSH_COMMAND": "ssh " + " ".join(self.options()), "GIT_CONFIG_GLOBAL": "/dev/null", "EMAIL": "a@lab.test"}
        self.assert_ok(self.box.run("git", "clone", "-q", f"ssh://root@ssh.real.lab.test:{PORTS['ssh']}{top}", folder, env=env))
        self.assert_ok(self.box.sh(f"cd {folder} && git commit -q --allow-empty -m first && git push -q origin HEAD:main", env=env))
        self.assertEqual(support.sh("git", "-C", top, "log", "--format=%s", "main"), "first\n")

    def test_refused(self):
        """A name without a rule, and this name on another port: reset at once, before any banner."""
        self.assert_kept_in(self.ssh("evil.lab.test", "true", port=22), 22)
        self.assert_kept_in(self.ssh("ssh.real.lab.test", "true", port=2023), 2023)


@unittest.skipUnless(*outside.need("/usr/bin/redis-server", "redis-cli"))
class Redis(Tcp):
    RULES = (f"tcp://redis.real.lab.test:{PORTS['redis']}",)

    @classmethod
    def prepare(cls):
        outside.spawn(["/usr/bin/redis-server", "--bind", lab.REAL4, "--port", str(PORTS["redis"]), "--save", "", "--appendonly",
                       "no", "--dir", support.LAB.dir, "--requirepass", "lab"])
        outside.wait_for_port(PORTS["redis"])

    def redis(self, *argv, host="redis.real.lab.test", **kw):
        return self.box.run("redis-cli", "-h", host, "--no-auth-warning", "-a", "lab", *argv, **kw)

    def test_commands(self):
        self.assertEqual(self.redis("SET", "k", "v").out, "OK\n")
        self.assertEqual(self.redis("GET", "k").out, "v\n")
        self.assertEqual(self.redis("-x", "SET", "big", input=b"z" * 3000000).out, "OK\n")
        self.assertEqual(self.redis("STRLEN", "big").out, "3000000\n")
        done = self.redis("--pipe", input="".join(f"SET p{i} {i}\r\n" for i in range(2000)))
        self.assertIn("errors: 0, replies: 2000", done.out)
        self.assert_tunnelled(PORTS["redis"])

    def test_refused(self):
        done = self.redis("PING", host="evil.lab.test")
        self.assertIn("refused" if "refused" in done.out + done.err else "reset", done.out + done.err)
        self.assert_kept_in(done, PORTS["redis"])


def postgres():
    """The folder of the newest server's programs, or None."""
    return max(glob.glob("/usr/lib/postgresql/*/bin"), default=None)


@unittest.skipUnless(postgres() and shutil.which("psql"), "needs postgresql")
class Psql(Tcp):
    RULES = (f"tcp://db.real.lab.test:{PORTS['postgres']}",)
    ENV = {"PGPASSWORD": "lab", "PGCONNECT_TIMEOUT": "10"}

    @classmethod
    def prepare(cls):
        """A throw-away cluster of the user postgres, with TLS of its own."""
        top, owner = support.LAB.path("pg"), pwd.getpwnam("postgres")
        os.makedirs(top, exist_ok=True)
        for name in ("server.pem", "server.key"):
            shutil.copy(support.LAB.path(name), top)
            os.chmod(f"{top}/{name}", 0o600)
        support.LAB.write("pg/password", "lab\n")
        for path in [top] + glob.glob(top + "/*"):
            os.chown(path, owner.pw_uid, owner.pw_gid)
        who = dict(user=owner.pw_uid, group=owner.pw_gid, extra_groups=[], cwd=top)
        subprocess.run([postgres() + "/initdb", "-D", top + "/data", "-A", "scram-sha-256", "-U", "lab", "--pwfile", top + "/password",
                        "--no-sync"], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **who)
        argv = [postgres() + "/postgres", "-D", top + "/data", "-c", f"listen_addresses={lab.REAL4}", "-c", f"unix_socket_directories={top}",
                "-c", "ssl=on", "-c", f"ssl_cert_file={top}/server.pem", "-c", f"ssl_key_file={top}/server.key", "-c", "fsync=off"]
        with open(top + "/data/pg_hba.conf", "a") as f:
            f.write("host all all 0.0.0.0/0 scram-sha-256\n")
        outside.spawn(["setpriv", f"--reuid={owner.pw_uid}", f"--regid={owner.pw_gid}", "--clear-groups"] + argv, cwd=top)
        outside.wait_for_port(PORTS["postgres"])

    def psql(self, sql, host="db.real.lab.test", mode="disable", **kw):
        return self.box.run("psql", "-XAtq", f"host={host} user=lab dbname=postgres sslmode={mode} {kw.pop('more', '')}", "-c", sql, **kw)

    def test_queries(self):
        self.assertEqual(self.psql("select sum(i) from generate_series(1, 100000) i").out, "5000050000\n")
        done = self.psql("create table t (a text); copy t from stdin; select count(*) from t", input="row\n" * 50000)
        self.assertEqual(done.out, "50000\n", done)
        self.assert_tunnelled(PORTS["postgres"])

    def test_tls_of_its_own(self):
        """SSLRequest comes before the TLS, which is relayed unopened: the client must know the server's own CA."""
        sql = "select ssl from pg_stat_ssl where pid = pg_backend_pid()"
        done = self.psql(sql, mode="verify-full", more=f"sslrootcert={support.LAB.path('ca.pem')}")
        self.assertEqual(done.out, "t\n", done)
        self.assertNotEqual(self.psql(sql, mode="verify-full", more="sslrootcert=/etc/ssl/certs/ca-certificates.crt").status, 0)

    def test_refused(self):
        self.assert_kept_in(self.psql("select 1", host="evil.lab.test"), PORTS["postgres"])


del Client, Tcp  # base classes, not tests
