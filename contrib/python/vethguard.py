# SPDX-License-Identifier: Apache-2.0
"""Sessions of a vethguard gateway, and the options with which providers' SDKs for Python make a sandbox that reaches the gateway and
nothing else. The standard library is all it needs. See docs/providers.md."""
import http.client
import ipaddress
import json
import re
import socket
import ssl
import urllib.parse

SOCKET = "/run/vethguard/control.sock"
ANSWER_MAX = 8 * 1024 * 1024  # bytes: what the daemon itself keeps to
CA = "/etc/ssl/certs/vethguard.pem"
BUNDLE = "/etc/ssl/certs/vethguard-bundle.pem"
BUNDLE_NAMES = ("SSL_CERT_FILE", "CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "PIP_CERT", "GIT_SSL_CAINFO", "npm_config_cafile", "AWS_CA_BUNDLE",
                "CARGO_HTTP_CAINFO", "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH")
CA_NAMES = ("NODE_EXTRA_CA_CERTS", "DENO_CERT")
PROXY_NAMES = ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy")


class VethguardError(Exception):
    """The daemon refused, or could not be asked. status: 0 if there was no answer."""

    def __init__(self, message, status=0, problem=None):
        super().__init__(message)
        self.status, self.problem = status, problem


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path, timeout):
        super().__init__("localhost", timeout=timeout)
        self._path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


def seconds(time):
    """The seconds of 90, "90s", "30m", "2h" or "7d"."""
    match = re.fullmatch(r"([1-9][0-9]{0,8})([smhd]?)", str(time))
    if not match:
        raise VethguardError(f'"{time}" is not a duration; write 90s, 30m, 2h or 7d')
    return int(match[1]) * {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86400}[match[2]]


class Vethguard:
    """socket: the daemon's control socket. url: where an operator's own reverse proxy offers it over HTTP(S), with headers that this
    proxy wants; the daemon itself listens on no port."""

    def __init__(self, socket=SOCKET, url=None, headers=None, timeout=60, context=None):
        self.socket, self.headers, self.timeout, self.context = socket, dict(headers or {}), timeout, context
        self.url = urllib.parse.urlsplit(url) if url else None

    def _connection(self):
        if not self.url:
            return _UnixConnection(self.socket, self.timeout)
        if self.url.scheme == "https":
            return http.client.HTTPSConnection(self.url.netloc, timeout=self.timeout, context=self.context or ssl.create_default_context())
        return http.client.HTTPConnection(self.url.netloc, timeout=self.timeout)

    def call(self, method, path, body=None):
        """The answer's JSON."""
        headers, connection = dict(self.headers), self._connection()
        text = None if body is None else json.dumps(body).encode()
        if text is not None:
            headers["Content-Type"] = "application/json"
        try:
            connection.request(method, (self.url.path.rstrip("/") if self.url else "") + path, body=text, headers=headers)
            response = connection.getresponse()
            data = response.read(ANSWER_MAX + 1)
        except (OSError, http.client.HTTPException) as error:
            raise VethguardError(f"{self.url.geturl() if self.url else self.socket}: {error}") from None
        finally:
            connection.close()
        try:
            answer = json.loads(data) if len(data) <= ANSWER_MAX else None
        except ValueError:
            answer = None
        if 200 <= response.status < 300 and answer is not None:
            return answer
        detail = answer.get("detail") if isinstance(answer, dict) else None
        raise VethguardError(f"{method} {path}: {detail or f'status {response.status}'}", response.status, answer)

    def create_session(self, policy, name=None, vars=None, labels=None, ttl=None, from_=None, observe=None):
        """policy: the path of a file on the daemon's machine. The session's token is told this once."""
        members = {"name": name, "vars": vars, "labels": labels, "ttl_s": None if ttl is None else seconds(ttl),
                   "from": [from_] if isinstance(from_, str) else from_, "observe": observe}
        answer = self.call("POST", "/v1/sessions", {"policy": policy, **{k: v for k, v in members.items() if v is not None}})
        return Session(self, answer["name"], answer["token"])

    def session(self, name, token=None):
        """A session that somebody else has made."""
        return Session(self, name, token)

    def sessions(self):
        return self.call("GET", "/v1/sessions")["sessions"]


class _Place:
    def __init__(self, text):
        host, _, port = text.rpartition(":")
        self.text, self.host, self.port = text, host.strip("[]"), int(port)
        try:
            self.family = ipaddress.ip_address(self.host).version
        except ValueError:
            self.family = 0

    def network(self):
        return f"{self.host}/{32 if self.family == 4 else 128}"


class Session:
    def __init__(self, client, name, token):
        self.client, self.name, self.token = client, name, token

    def __repr__(self):
        return f"Session({self.name!r})"  # without the token

    def _path(self, rest=""):
        return f"/v1/sessions/{urllib.parse.quote(self.name, safe='')}{rest}"

    def show(self):
        return self.client.call("GET", self._path())

    def extend(self, ttl):
        return self.client.call("POST", self._path("/extend"), {"ttl_s": seconds(ttl)})

    def revoke(self):
        """Its token is unknown from now on, and its connections are cut."""
        return self.client.call("DELETE", self._path())

    def inside(self):
        """{"tls", "plain": the gateway's places or None, "variables": placeholders, "ca": PEM}"""
        answer = self.client.call("GET", f"/v1/sandboxes/{urllib.parse.quote(self.name, safe='')}/env")
        gateway = answer["gateway"]
        if not gateway:
            raise VethguardError(f"{self.name} is not a session, or the configuration has no gateway")
        places = {kind: _Place(gateway[kind]) if gateway.get(kind) else None for kind in ("tls", "plain")}
        return {**places, "variables": {v["name"]: v["value"] for v in answer["variables"]}, "ca": answer["ca_pem"]}


def create_session(policy, client=None, **options):
    return (client or Vethguard()).create_session(policy, **options)


# --- for each provider, the arguments of its SDK ---

def _about(session, kind):
    if not session.token:
        raise VethguardError("the session's token is needed: only the call that makes the session returns it")
    inside = session.inside()
    place = inside[kind]
    if not place:
        raise VethguardError("the gateway has no address with TLS: gateway: listen and name" if kind == "tls" else
                             "the gateway has no address for SOCKS5: gateway: listen_plain, plain_anywhere and name")
    if place.host == "localhost" or place.family and ipaddress.ip_address(place.host).is_loopback:
        raise VethguardError(f"{place.text}: no provider can reach a loopback address")
    return inside, place


def _trust(inside, ca, bundle):
    return {**dict.fromkeys(BUNDLE_NAMES, bundle), **dict.fromkeys(CA_NAMES, ca), **inside["variables"]}


def _proxied(session, inside, place, ca, bundle):
    """For programs that use a proxy by themselves: the variables of `vethguard env --token-file`."""
    env = _trust(inside, ca, bundle)
    env.update(dict.fromkeys(PROXY_NAMES, f"https://session:{session.token}@{place.text}"))
    # The gateway itself is not reached through the gateway.
    env["NO_PROXY"] = env["no_proxy"] = f"localhost,127.0.0.1,::1,{place.host}"
    env["VETHGUARD_BASE_URL"] = f"https://{place.text}/s/{session.token}"
    return env


def ca_files(session, ca=CA, bundle=BUNDLE, gateway_ca=""):
    """{path: text} to be put into the sandbox. gateway_ca: PEM of whoever signed the gateway's certificate, if it is private."""
    text = session.inside()["ca"] + gateway_ca
    return {ca: text, bundle: text}


def _known(way, *ways):
    if way not in ways:
        raise VethguardError(f"way: {way!r} is none of {', '.join(ways)}")


def e2b(session, way="socks", ca=CA, bundle=BUNDLE):
    """way "socks": the provider leads all TCP through the gateway's SOCKS5, without TLS; UDP, so DNS too, goes on past it. way "proxy":
    programs inside use the gateway as their proxy, and the filter denies everything else."""
    _known(way, "socks", "proxy")
    if way == "proxy":
        inside, place = _about(session, "tls")
        return {"network": {"allow_out": [place.network() if place.family else place.host], "deny_out": ["0.0.0.0/0"]},
                "envs": _proxied(session, inside, place, ca, bundle)}
    inside, place = _about(session, "plain")
    return {"network": {"egress_proxy": {"address": place.text, "username": "session", "password": session.token}},
            "envs": _trust(inside, ca, bundle)}


def modal(session, ca=CA, bundle=BUNDLE):
    inside, place = _about(session, "tls")
    fence = {"outbound_cidr_allowlist": [place.network()]} if place.family else {"outbound_domain_allowlist": [place.host]}
    return {**fence, "env": _proxied(session, inside, place, ca, bundle)}


def daytona(session, ca=CA, bundle=BUNDLE):
    inside, place = _about(session, "tls")
    if place.family == 6:
        raise VethguardError("Daytona's lists hold IPv4 networks and names: the gateway needs one of these")
    fence = {"network_allow_list": place.network()} if place.family else {"domain_allow_list": place.host}
    return {**fence, "env_vars": _proxied(session, inside, place, ca, bundle)}


def deno(session, ca=CA, bundle=BUNDLE):
    inside, place = _about(session, "tls")
    return {"allow_net": [place.text], "env": _proxied(session, inside, place, ca, bundle)}


def runloop(session, ca=CA, bundle=BUNDLE, gateway_ca=""):
    """(arguments of network_policies.create, a function from the policy's id to the arguments of devboxes.create)"""
    inside, place = _about(session, "tls")
    files = ca_files(session, ca, bundle, gateway_ca)
    fence = ({"allowed_cidrs": [{"cidr": place.network(), "ports": [{"port": place.port, "protocol": "TCP"}]}]} if place.family
             else {"allowed_hostnames": [place.host]})
    return ({"name": f"vethguard-{session.name}", "allow_all": False, **fence},
            lambda policy_id: {"environment_variables": _proxied(session, inside, place, ca, bundle), "file_mounts": files,
                               "launch_parameters": {"network_policy_id": policy_id}})


def langsmith(session, ca=CA, bundle=BUNDLE):
    inside, place = _about(session, "tls")
    return {"proxy_config": {"access_control": {"allow_list": [place.host]}},
            "run_config": {"env_vars": _proxied(session, inside, place, ca, bundle)}}


def vercel(session, way="proxy", hosts=(), ca=CA, bundle=BUNDLE):
    """way "proxy": programs inside use the gateway as their proxy. way "forward": Vercel's own proxy forwards requests for `hosts`, and denies
    all others; programs need neither a proxy nor the session's CA, and none sees the token."""
    _known(way, "proxy", "forward")
    inside, place = _about(session, "tls")
    if way == "forward":
        if isinstance(hosts, str) or not hosts or not all(re.fullmatch(r"[\w-]+(\.[\w-]+)+", host, re.ASCII) for host in hosts):
            raise VethguardError("hosts: the names of the hosts whose requests Vercel forwards, at least one")
        allow = {host: [{"forward_url": f"https://{place.text}/s/{session.token}/https/{host}"}] for host in hosts}
        return {"network_policy": {"allow": allow}, "env": dict(inside["variables"])}
    policy = {"subnets": {"allow": [place.network()]}} if place.family else {"allow": [place.host]}
    return {"network_policy": policy, "env": _proxied(session, inside, place, ca, bundle)}


def openai_agents(session, client="vercel", ca=CA, bundle=BUNDLE):
    """Only Vercel's client has a field for the filter."""
    if client == "vercel":
        return vercel(session, ca=ca, bundle=bundle)
    if client not in ("e2b", "daytona", "modal", "runloop"):
        raise VethguardError(f'there is no client "{client}"')
    inside, place = _about(session, "tls")
    return {"env": _proxied(session, inside, place, ca, bundle)}
