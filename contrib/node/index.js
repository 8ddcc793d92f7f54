// SPDX-License-Identifier: Apache-2.0
// A client of vethguardd's control API: sessions of the gateway. See docs/providers.md.
import http from "node:http";
import https from "node:https";
import { isIP } from "node:net";

export { caFiles, daytona, deno, e2b, langsmith, modal, openaiAgents, runloop, vercel } from "./providers.js";

const SOCKET = "/run/vethguard/control.sock";
const ANSWER_MAX = 8 * 1024 * 1024; // bytes: what the daemon itself keeps to

// The daemon refused, or answered against its API. status: 0 if there was no answer.
export class VethguardError extends Error {
  constructor(message, status = 0, problem = null) {
    super(message);
    this.name = "VethguardError";
    this.status = status;
    this.problem = problem;
  }
}

// The seconds of 90, "90s", "30m", "2h" or "7d".
export function seconds(time) {
  const match = /^([1-9][0-9]{0,8})([smhd]?)$/.exec(String(time));
  if (!match) throw new VethguardError(`"${time}" is not a duration; write 90s, 30m, 2h or 7d`);
  return Number(match[1]) * { "": 1, s: 1, m: 60, h: 3600, d: 86400 }[match[2]];
}

export class Vethguard {
  // socket: the daemon's control socket. url: where an operator's own reverse proxy offers it over HTTP(S), with headers
  // (Authorization) that this proxy wants; the daemon itself listens on no port.
  constructor({ socket = SOCKET, url = null, headers = {}, timeoutMs = 60000, ca = undefined } = {}) {
    Object.assign(this, { socket, url: url && new URL(url), headers, timeoutMs, ca });
  }

  // One request. Resolves to the answer's JSON; rejects with a VethguardError.
  call(method, path, body = undefined) {
    const text = body === undefined ? undefined : JSON.stringify(body);
    const headers = { ...this.headers, Host: this.url ? this.url.host : "localhost" };
    if (text !== undefined) Object.assign(headers, { "Content-Type": "application/json", "Content-Length": Buffer.byteLength(text) });
    const where = this.url
      ? { protocol: this.url.protocol, hostname: this.url.hostname.replace(/^\[|\]$/g, ""), port: this.url.port, ca: this.ca,
          path: this.url.pathname.replace(/\/$/, "") + path }
      : { socketPath: this.socket, path };
    const library = this.url?.protocol === "https:" ? https : http;
    return new Promise((resolve, reject) => {
      const request = library.request({ ...where, method, headers, agent: false, timeout: this.timeoutMs }, (response) => {
        const chunks = [];
        let size = 0;
        response.on("data", (chunk) => {
          size += chunk.length;
          if (size > ANSWER_MAX) request.destroy(new Error("the answer is longer than any answer of the daemon"));
          else chunks.push(chunk);
        });
        response.on("error", (error) => reject(new VethguardError(`${method} ${path}: ${error.message}`)));
        response.on("end", () => {
          const answer = parse(Buffer.concat(chunks).toString("utf8"));
          if (response.statusCode >= 200 && response.statusCode < 300 && answer !== null) return resolve(answer);
          reject(new VethguardError(`${method} ${path}: ${answer?.detail ?? `status ${response.statusCode}`}`, response.statusCode, answer));
        });
      });
      request.on("timeout", () => request.destroy(new Error("no answer in time")));
      request.on("error", (error) => reject(new VethguardError(`${this.url ?? this.socket}: ${error.message}`)));
      request.end(text);
    });
  }

  // policy: the path of a file on the daemon's machine. The session's token is told this once.
  async createSession({ policy, name, vars, labels, ttl, from, observe } = {}) {
    const body = { policy };
    if (name !== undefined) body.name = name;
    if (vars !== undefined) body.vars = vars;
    if (labels !== undefined) body.labels = labels;
    if (ttl !== undefined) body.ttl_s = seconds(ttl);
    if (from !== undefined) body.from = typeof from === "string" ? [from] : from;
    if (observe !== undefined) body.observe = observe;
    const answer = await this.call("POST", "/v1/sessions", body);
    return new Session(this, answer.name, answer.token);
  }

  // A session that somebody has made, with its token if a provider's options are wanted.
  session(name, token = null) {
    return new Session(this, name, token);
  }

  async sessions() {
    return (await this.call("GET", "/v1/sessions")).sessions;
  }
}

export class Session {
  #token;

  constructor(client, name, token) {
    this.client = client;
    this.name = name;
    this.#token = token;
  }

  // Not among the members that logs and JSON show.
  get token() {
    return this.#token;
  }

  #path(rest = "") {
    return `/v1/sessions/${encodeURIComponent(this.name)}${rest}`;
  }

  show() {
    return this.client.call("GET", this.#path());
  }

  extend(ttl) {
    return this.client.call("POST", this.#path("/extend"), { ttl_s: seconds(ttl) });
  }

  // Its token is unknown from now on, and its connections are cut.
  revoke() {
    return this.client.call("DELETE", this.#path());
  }

  // What is needed inside: {tls, plain} places of the gateway, variables (placeholders), the CA's PEM.
  async inside() {
    const answer = await this.client.call("GET", `/v1/sandboxes/${encodeURIComponent(this.name)}/env`);
    if (!answer.gateway) throw new VethguardError(`${this.name} is not a session, or the configuration has no gateway`);
    const variables = Object.fromEntries(answer.variables.map(({ name, value }) => [name, value]));
    return { tls: place(answer.gateway.tls), plain: place(answer.gateway.plain), variables, ca: answer.ca_pem };
  }
}

export function createSession({ client = new Vethguard(), ...options } = {}) {
  return client.createSession(options);
}

function parse(text) {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

// HOST:PORT as the daemon tells it.
function place(text) {
  if (!text) return null;
  const colon = text.lastIndexOf(":");
  const host = text.slice(0, colon).replace(/^\[|\]$/g, "");
  return { text, host, port: Number(text.slice(colon + 1)), family: isIP(host) };
}
