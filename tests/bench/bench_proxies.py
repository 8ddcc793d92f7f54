# SPDX-License-Identifier: Apache-2.0
"""The proxies that are measured: how each is started, and how the load reaches it."""
import os
import shutil
import subprocess
import time

import bench_lab
from bench_lab import BUILD, GATEWAY4, ORIGIN4, PROXY_CPU, TOOLS, Load, descendants, sh

CREDENTIAL = "lab-credential-2f6b1c9e8a7d4350"


class Proxy:
    """`ways` says for each kind of traffic which words of the load's command lead through this proxy."""
    name = ""
    program = ""  # what must be installed for it
    ways = {}

    def __init__(self, lab):
        self.lab = lab
        self.process = None

    def start(self):
        log = open(self.lab.path(self.name + ".log"), "w")
        self.process = self.lab.spawn(["taskset", "-c", PROXY_CPU] + self.command(), stdout=log, stderr=log)
        load = self.lab.spawn(["ip", "netns", "exec", "client", os.path.join(TOOLS, "load"), bench_lab.OTHER_CPU],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.load = Load(self.name, load)
        self.wait_until_it_listens()

    def wait_until_it_listens(self):
        end = time.monotonic() + 20
        while time.monotonic() < end:
            if self.process.poll() is not None:
                break
            out = subprocess.run(["ss", "-Hltn"], capture_output=True, text=True).stdout
            if f":{self.port} " in out:
                return
            time.sleep(0.1)
        with open(self.lab.path(self.name + ".log")) as f:
            raise RuntimeError(f"{self.name} does not listen: {f.read()[-2000:]}")

    def pids(self):
        return descendants(self.process.pid)

    def stop(self):
        self.load.close()
        self.lab.end(self.process)

    def leaf_bundle(self):
        """The origin's certificate and key serve as the intercepting leaf: ECDSA P-256 like all others."""
        with open(self.lab.path("server.pem")) as c, open(self.lab.path("server.key")) as k:
            return self.lab.write("leaf.pem", c.read() + k.read(), 0o600)


class Vethguard(Proxy):
    name = "vethguard"
    build = BUILD
    ways = {"intercept": "target=api.lab.test:443 name=api.lab.test",
            "http2": "target=api.lab.test:444 name=api.lab.test",
            "http2-credential": "target=cred.lab.test:444 name=cred.lab.test",
            "credential": "target=cred.lab.test:443 name=cred.lab.test",
            "token": "target=token.lab.test:443 name=token.lab.test",
            "sigv4": "target=sign.lab.test:443 name=sign.lab.test",
            "passthrough": "target=pass.lab.test:443 name=pass.lab.test"}

    def files(self):
        self.lab.write("secret", CREDENTIAL + "\n", 0o600)
        self.lab.write("keys", "AKIDEXAMPLE00000:wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY\n", 0o600)
        policy = self.lab.write("policy.yaml", f"""vethguard: 1
name: bench
include: [preset:pypi, preset:npm, preset:github, preset:debian]
credentials:
  lab:
    source: file:{self.lab.path('secret')}
    inject: bearer
  token: # a program gives it once; then it is held
    source: "exec:[/bin/cat, {self.lab.path('secret')}]"
    inject: bearer
    ttl: 1h
  keys:
    source: file:{self.lab.path('keys')}
    inject: sigv4
    region: eu-west-1
    service: s3
    ttl: 1h
allow:
  - name: api
    to: https://api.lab.test
    methods: [GET, HEAD]
    paths: [/bytes/*, /repos/acme/**, /user]
  - name: api-write
    to: https://api.lab.test
    methods: [POST]
    paths: [/repos/acme/*/pulls]
  - name: api-with-credential
    to: https://cred.lab.test
    methods: [GET, HEAD]
    paths: [/bytes/*]
    credential: lab
  - name: api-with-token
    to: https://token.lab.test
    methods: [GET, HEAD]
    paths: [/bytes/*]
    credential: token
  - name: api-signed
    to: https://sign.lab.test
    methods: [GET, HEAD]
    paths: [/bytes/*]
    credential: keys
  - name: http2
    to: https://api.lab.test:444
    methods: [GET, HEAD]
    paths: [/bytes/*]
  - name: http2-with-credential
    to: https://cred.lab.test:444
    methods: [GET, HEAD]
    paths: [/bytes/*]
    credential: lab
  - name: pass
    to: https://pass.lab.test
    tls: passthrough
deny:
  - to: https://api.lab.test
    methods: [DELETE]
""")
        config = self.lab.write("config.yaml", f"""resolver:
  hosts: {{{", ".join(f"{n}: {ORIGIN4}" for n in bench_lab.NAMES)}}}
ca_files: [{self.lab.path('ca.pem')}]
permit: [10.99.0.0/16]
limits: {{connections: 6000, upstream_connections: 4000, upstream_idle: 256, connections_per_s: 100000}}
""")
        return ["--policy", policy, "--config", config, "--audit",
                self.lab.path(f"audit-{len(self.lab.processes)}.jsonl")]

    def start(self):
        self.process = self.lab.spawn(
            ["taskset", "-c", PROXY_CPU, os.path.join(self.build, "bin", "vethguard"), "run", *self.files(), "--",
             os.path.join(TOOLS, "load"), bench_lab.OTHER_CPU],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.load = Load(self.name, self.process)
        self.load("close")  # it answers: the sandbox is there
        spaces = bench_lab.namespaces_held_by(self.pids())
        if len(spaces) < 3:
            raise RuntimeError("the sandbox's and the gate's namespaces were not found")
        for space in spaces:
            bench_lab.plain_congestion_control(space)

    def stop(self):
        self.load.close()
        self.process.wait(20)
        self.lab.end(self.process)


class Relay(Proxy):
    name = "relay"
    port = 7443
    ways = {"intercept": f"target={GATEWAY4}:7443 name=api.lab.test",
            "passthrough": f"target={GATEWAY4}:7444 name=pass.lab.test"}

    def command(self):
        return [os.path.join(TOOLS, "relay"), f"{GATEWAY4}:7443", f"{GATEWAY4}:7444", f"{ORIGIN4}:443",
                self.lab.path("server.pem"), self.lab.path("server.key"), self.lab.path("ca.pem"), "api.lab.test"]


class Haproxy(Proxy):
    name = "haproxy"
    program = "haproxy"
    port = 8443
    ways = {"intercept": f"target={GATEWAY4}:8443 name=api.lab.test",
            "http2": f"target={GATEWAY4}:8447 name=api.lab.test",
            "logged": f"target={GATEWAY4}:8445 name=api.lab.test",
            "http2-logged": f"target={GATEWAY4}:8448 name=api.lab.test",
            "passthrough": f"target={GATEWAY4}:8444 name=pass.lab.test",
            "judging": f"target={GATEWAY4}:8446 name=pass.lab.test"}

    def command(self):
        leaf, ca = self.leaf_bundle(), self.lab.path("ca.pem")
        tls = "ssl-min-ver TLSv1.3 ciphersuites TLS_AES_128_GCM_SHA256"
        log = "log global\n    option httplog"
        frontend = "\n".join(f"""
frontend {name}
    bind {GATEWAY4}:{port} ssl crt {leaf} alpn {alpn} curves X25519 {tls}
    {log}
    default_backend {backend}""" for name, port, alpn, backend, log in (
            ("plain", 8443, "http/1.1", "origin", ""), ("logged", 8445, "http/1.1", "origin", log),
            ("http2", 8447, "h2", "http2", ""), ("http2-logged", 8448, "h2", "http2", log)))
        http2 = f"""
backend http2
    server o {ORIGIN4}:{bench_lab.HTTP2_PORT} ssl verify required ca-file {ca} sni str(api.lab.test) verifyhost api.lab.test \
alpn h2 {tls} pool-max-conn 256
"""
        text = f"""global
    nbthread 1
    maxconn 7000
    log stdout format raw local0
defaults
    mode http
    timeout connect 10s
    timeout client 300s
    timeout server 300s
    timeout http-keep-alive 300s
    option http-keep-alive
    http-reuse always
{frontend}
{http2}
backend origin
    server o {ORIGIN4}:443 ssl verify required ca-file {ca} sni str(api.lab.test) verifyhost api.lab.test \
alpn http/1.1 {tls} pool-max-conn 256
frontend pass
    mode tcp
    option splice-request
    option splice-response
    bind {GATEWAY4}:8444
    default_backend pass
frontend judging
    mode tcp
    option splice-request
    option splice-response
    bind {GATEWAY4}:8446
    tcp-request inspect-delay 5s
    tcp-request content accept if {{ req.ssl_sni -i pass.lab.test }}
    tcp-request content reject
    default_backend pass
backend pass
    mode tcp
    option splice-request
    option splice-response
    server o {ORIGIN4}:443
"""
        return ["haproxy", "-db", "-f", self.lab.write("haproxy.cfg", text)]


class Nginx(Proxy):
    """A reverse proxy with one static leaf. It speaks HTTP/1.1 to the origin, whatever the client speaks, and passes
    TLS through only with its stream module."""
    name = "nginx"
    program = "nginx"
    port = 9443
    ways = {"intercept": f"target={GATEWAY4}:9443 name=api.lab.test",
            "http2": f"target={GATEWAY4}:9447 name=api.lab.test"}
    stream = "/usr/lib/nginx/modules/ngx_stream_module.so"

    def __init__(self, lab):
        super().__init__(lab)
        if os.path.exists(self.stream):
            self.ways = {**self.ways, "passthrough": f"target={GATEWAY4}:9444 name=pass.lab.test"}

    def command(self):
        home = self.lab.path("nginx")
        os.makedirs(home, exist_ok=True)
        passing = f"""
stream {{
    server {{ listen {GATEWAY4}:9444; proxy_pass {ORIGIN4}:443; }}
}}
""" if "passthrough" in self.ways else ""
        text = f"""{"load_module " + self.stream + ";" if passing else ""}
user root;
daemon off;
worker_processes 1;
pid {home}/pid;
error_log {home}/error.log;
events {{ worker_connections 16384; multi_accept on; }}
http {{
    access_log off;
    client_body_temp_path {home}/body;
    proxy_temp_path {home}/proxy;
    fastcgi_temp_path {home}/fastcgi;
    uwsgi_temp_path {home}/uwsgi;
    scgi_temp_path {home}/scgi;
    keepalive_timeout 300s;
    keepalive_requests 1000000000;
    upstream origin {{
        server {ORIGIN4}:443;
        keepalive 256;
        keepalive_requests 1000000000;
        keepalive_timeout 300s;
    }}
    server {{
        listen {GATEWAY4}:9443 ssl backlog=4096;
        listen {GATEWAY4}:9447 ssl http2 backlog=4096;
        ssl_certificate {self.lab.path('server.pem')};
        ssl_certificate_key {self.lab.path('server.key')};
        ssl_protocols TLSv1.3;
        ssl_conf_command Ciphersuites TLS_AES_128_GCM_SHA256;
        ssl_ecdh_curve X25519;
        location / {{
            proxy_pass https://origin;
            proxy_http_version 1.1;
            proxy_set_header Host api.lab.test;
            proxy_set_header Connection "";
            proxy_max_temp_file_size 0;
            proxy_ssl_protocols TLSv1.3;
            proxy_ssl_conf_command Ciphersuites TLS_AES_128_GCM_SHA256;
            proxy_ssl_server_name on;
            proxy_ssl_name api.lab.test;
            proxy_ssl_verify on;
            proxy_ssl_trusted_certificate {self.lab.path('ca.pem')};
        }}
    }}
}}
{passing}"""
        return ["nginx", "-p", home, "-c", self.lab.write("nginx.conf", text)]


class Sslsplit(Proxy):
    """Forges a leaf for each certificate that it meets, and opens a connection to the origin for each of its clients.
    It neither verifies the origin nor keeps connections."""
    name = "sslsplit"
    program = "sslsplit"
    port = 9543
    ways = {"intercept": f"target={GATEWAY4}:9543 name=api.lab.test",
            "passthrough": f"target={GATEWAY4}:9544 name=pass.lab.test"}

    def command(self):
        sh("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
           "-subj", "/CN=sslsplit", "-keyout", self.lab.path("sslsplit.key"), "-out", self.lab.path("sslsplit.crt"))
        return ["sslsplit", "-k", self.lab.path("sslsplit.key"), "-c", self.lab.path("sslsplit.crt"),
                "-K", self.lab.path("server.key"), "-u", "root",
                "https", GATEWAY4, "9543", ORIGIN4, "443", "tcp", GATEWAY4, "9544", ORIGIN4, "443"]


class Squid(Proxy):
    name = "squid"
    program = "squid"
    port = 3128
    ways = {"intercept": f"target=api.lab.test:443 name=api.lab.test through={GATEWAY4}:3128",
            "passthrough": f"target=pass.lab.test:443 name=pass.lab.test through={GATEWAY4}:3128"}

    def command(self):
        sh("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
           "-subj", "/CN=squid", "-keyout", self.lab.path("squid.key"), "-out", self.lab.path("squid.crt"))
        with open(self.lab.path("squid.crt")) as c, open(self.lab.path("squid.key")) as k:
            bundle = self.lab.write("squid.pem", c.read() + k.read())
        home = self.lab.path("squid")
        shutil.rmtree(home, ignore_errors=True)  # of the start before this one
        os.mkdir(home)
        sh("/usr/lib/squid/security_file_certgen", "-c", "-s", home + "/db", "-M", "4MB")
        sh("chown", "-R", "proxy:proxy", home)
        text = f"""http_port {GATEWAY4}:3128 ssl-bump tls-cert={bundle} generate-host-certificates=on \
dynamic_cert_mem_cache_size=4MB options=NO_TLSv1_2
sslcrtd_program /usr/lib/squid/security_file_certgen -s {home}/db -M 4MB
sslcrtd_children 1
acl passed ssl::server_name pass.lab.test
acl first at_step SslBump1
ssl_bump splice passed
ssl_bump bump all
http_access allow all
tls_outgoing_options cafile={self.lab.path('ca.pem')} options=NO_TLSv1_2
hosts_file /etc/hosts
cache deny all
cache_mem 8 MB
access_log none
cache_store_log none
cache_log {home}/cache.log
pid_filename {home}/pid
coredump_dir {home}
max_filedescriptors 8192
shutdown_lifetime 0 seconds
visible_hostname bench
via off
forwarded_for delete
"""
        return ["squid", "-N", "-f", self.lab.write("squid.conf", text)]


class Mitmproxy(Proxy):
    name = "mitmproxy"
    program = "mitmdump"
    port = 8081
    ways = {"intercept": f"target=api.lab.test:443 name=api.lab.test through={GATEWAY4}:8081",
            "passthrough": f"target=pass.lab.test:443 name=pass.lab.test through={GATEWAY4}:8081"}

    def command(self):
        return ["mitmdump", "-q", "--listen-host", GATEWAY4, "--listen-port", "8081",
                "--set", "confdir=" + self.lab.path("mitmproxy"), "--set", "flow_detail=0",
                "--set", "connection_strategy=lazy", "--set", "http2=false", "--set", "stream_large_bodies=64k",
                "--set", "ssl_verify_upstream_trusted_ca=" + self.lab.path("ca.pem"),
                "--ignore-hosts", r"^pass\.lab\.test"]


ALL = {p.name: p for p in (Vethguard, Haproxy, Nginx, Relay, Sslsplit, Squid, Mitmproxy)}


def proxy_class(word):
    """"haproxy", or "vethguard=FOLDER": another build of vethguard, to compare the two."""
    name, _, folder = word.partition("=")
    if not folder:
        return ALL[name]
    return type("Other", (ALL[name],), {"name": f"{name}={folder}", "build": folder})
