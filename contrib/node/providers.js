// SPDX-License-Identifier: Apache-2.0
// For each provider one function: the options with which its SDK makes a sandbox that reaches the gateway and nothing else.
// Fields are those of the versions that docs/providers.md names. `ca` and `bundle` are places inside of the sandbox at
// which the files of caFiles() lie; runloop() puts them there itself.
const CA = "/etc/ssl/certs/vethguard.pem";
const BUNDLE = "/etc/ssl/certs/vethguard-bundle.pem";
const BUNDLE_NAMES = ["SSL_CERT_FILE", "CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "PIP_CERT", "GIT_SSL_CAINFO", "npm_config_cafile",
  "AWS_CA_BUNDLE", "CARGO_HTTP_CAINFO", "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH"];
const CA_NAMES = ["NODE_EXTRA_CA_CERTS", "DENO_CERT"];
const PROXY_NAMES = ["HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"];
const DIRECT = "localhost,127.0.0.1,::1";

function known(way, ...ways) {
  if (!ways.includes(way)) throw new TypeError(`way: ${JSON.stringify(way)} is none of ${ways.join(", ")}`);
}

// What every provider's function needs. kind: of the gateway's places.
async function about(session, kind) {
  if (!session.token) throw new TypeError("the session's token is needed: only the call that makes the session returns it");
  const inside = await session.inside();
  const place = inside[kind];
  if (!place) throw new TypeError(kind === "tls" ? "the gateway has no address with TLS: gateway: listen and name"
    : "the gateway has no address for SOCKS5: gateway: listen_plain, plain_anywhere and name");
  if (/^(127\.|::1$|localhost$)/.test(place.host)) throw new TypeError(`${place.text}: no provider can reach a loopback address`);
  return { inside, place };
}

export function trust({ variables }, { ca = CA, bundle = BUNDLE } = {}) {
  const env = {};
  for (const name of BUNDLE_NAMES) env[name] = bundle;
  for (const name of CA_NAMES) env[name] = ca;
  return { ...env, ...variables };
}

// Variables for programs that use a proxy by themselves: those of `vethguard env --token-file`.
function proxied(session, inside, place, options) {
  const url = `https://session:${session.token}@${place.text}`;
  const env = trust(inside, options);
  for (const name of PROXY_NAMES) env[name] = url;
  // The gateway itself is not reached through the gateway.
  env.NO_PROXY = env.no_proxy = `${DIRECT},${place.host}`;
  env.VETHGUARD_BASE_URL = `https://${place.text}/s/${session.token}`;
  return env;
}

const network = (place) => `${place.host}/${place.family === 4 ? 32 : 128}`;

// {path: text} to be put into the sandbox: the session's CA alone, and the bundle that programs trust instead of the
// system's. gatewayCa: PEM of whoever signed the gateway's certificate, if it is private.
export async function caFiles(session, { ca = CA, bundle = BUNDLE, gatewayCa = "" } = {}) {
  const { ca: pem } = await session.inside();
  const all = pem + gatewayCa;
  return { [ca]: all, [bundle]: all };
}

// way "socks": the provider leads all TCP through the gateway's SOCKS5, without TLS; UDP, so DNS too, goes on past it.
// way "proxy": programs inside use the gateway as their proxy, and the filter denies everything else.
export async function e2b(session, { way = "socks", ...options } = {}) {
  known(way, "socks", "proxy");
  if (way === "proxy") {
    const { inside, place } = await about(session, "tls");
    return {
      network: { allowOut: [place.family ? network(place) : place.host], denyOut: ["0.0.0.0/0"] },
      envs: proxied(session, inside, place, options),
    };
  }
  const { inside, place } = await about(session, "plain");
  return {
    network: { egressProxy: { address: place.text, username: "session", password: session.token } },
    envs: trust(inside, options),
  };
}

export async function modal(session, options = {}) {
  const { inside, place } = await about(session, "tls");
  return {
    ...(place.family ? { outboundCidrAllowlist: [network(place)] } : { outboundDomainAllowlist: [place.host] }),
    env: proxied(session, inside, place, options),
  };
}

export async function daytona(session, options = {}) {
  const { inside, place } = await about(session, "tls");
  if (place.family === 6) throw new TypeError("Daytona's lists hold IPv4 networks and names: the gateway needs one of these");
  return {
    ...(place.family ? { networkAllowList: network(place) } : { domainAllowList: place.host }),
    envVars: proxied(session, inside, place, options),
  };
}

export async function deno(session, options = {}) {
  const { inside, place } = await about(session, "tls");
  return { allowNet: [place.text], env: proxied(session, inside, place, options) };
}

// Two calls: networkPolicies.create(networkPolicy), then devboxes.create(devbox(policy.id)).
export async function runloop(session, options = {}) {
  const { inside, place } = await about(session, "tls");
  const files = await caFiles(session, options);
  return {
    networkPolicy: {
      name: `vethguard-${session.name}`,
      allow_all: false,
      ...(place.family ? { allowed_cidrs: [{ cidr: network(place), ports: [{ port: place.port, protocol: "TCP" }] }] }
        : { allowed_hostnames: [place.host] }),
    },
    devbox: (policyId) => ({
      environment_variables: proxied(session, inside, place, options),
      file_mounts: files,
      launch_parameters: { network_policy_id: policyId },
    }),
  };
}

export async function langsmith(session, options = {}) {
  const { inside, place } = await about(session, "tls");
  return {
    proxyConfig: { access_control: { allow_list: [place.host] } },
    runConfig: { env_vars: proxied(session, inside, place, options) },
  };
}

// way "proxy": programs inside use the gateway as their proxy. way "forward": Vercel's own proxy forwards requests for
// `hosts`, and denies all others; programs need neither a proxy nor the session's CA, and none sees the token.
export async function vercel(session, { way = "proxy", hosts = [], ...options } = {}) {
  known(way, "proxy", "forward");
  const { inside, place } = await about(session, "tls");
  if (way === "forward") {
    if (!hosts.length || !hosts.every((host) => /^[\w-]+(\.[\w-]+)+$/.test(host))) {
      throw new TypeError("hosts: the names of the hosts whose requests Vercel forwards, at least one");
    }
    const allow = {};
    for (const host of hosts) allow[host] = [{ forwardURL: `https://${place.text}/s/${session.token}/https/${host}` }];
    return { networkPolicy: { allow }, env: { ...inside.variables } };
  }
  return {
    networkPolicy: place.family ? { subnets: { allow: [network(place)] } } : { allow: [place.host] },
    env: proxied(session, inside, place, options),
  };
}

// Of the sandbox clients of @openai/agents-extensions. Only Vercel's has a field for the filter; for the others set it
// where the provider makes the sandbox.
export async function openaiAgents(session, { client = "vercel", ...options } = {}) {
  if (client === "vercel") return vercel(session, options);
  if (!["e2b", "daytona", "modal", "runloop"].includes(client)) throw new TypeError(`there is no client "${client}"`);
  const { inside, place } = await about(session, "tls");
  return { env: proxied(session, inside, place, options) };
}
