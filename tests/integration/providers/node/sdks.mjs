// SPDX-License-Identifier: Apache-2.0
// Runs the SDK of one provider against a server that stands in its place and writes down what arrives.
// sdks.mjs PROVIDER SOCKET SESSION TOKEN CA BUNDLE GATEWAY_CA [WAY]: one line of JSON, {options, requests: [{method, path, headers, body}],
// failure, files}.
import fs from "node:fs";
import http from "node:http";
import http2 from "node:http2";
import { WebSocketServer } from "ws";
import * as vethguard from "./vethguard/index.js";

const [provider, socket, name, token, ca, bundle, gatewayCa, way] = process.argv.slice(2);
const places = { ca, bundle, ...(way && { way }), ...(way === "forward" && { hosts: ["api.lab.test", "plain.lab.test"] }) };
const session = new vethguard.Vethguard({ socket }).session(name, token);
const requests = [];

// The answers of each provider's API to the calls that make a sandbox: only what its SDK looks at.
const ANSWERS = {
  e2b: { "POST /v2/sandboxes": { sandboxID: "s1", templateID: "base", clientID: "c1", envdVersion: "0.4.0", envdAccessToken: "x", domain: null } },
  daytona: {
    "POST /sandbox": { id: "s1", name: "s1", state: "started", target: "us", env: {}, labels: {}, organizationId: "o1", user: "u", public: false,
      networkBlockAll: false, toolboxProxyUrl: "http://localhost/" },
    "GET /sandbox/s1/build-logs": {},
  },
  runloop: {
    "POST /v1/network-policies": { id: "npol_1", name: "x", egress: {}, create_time_ms: 0, update_time_ms: 0 },
    "POST /v1/devboxes": { id: "dbx_1", status: "running" },
  },
  langsmith: { "POST /boxes": { name: "s1", id: "s1", status: "ready", dataplane_url: "http://localhost/" } },
  openaiAgents: { "POST /v2/sandboxes": null },
  vercel: {
    "POST /v3/sandboxes": { sandbox: { name: "s1", persistent: true, currentSessionId: "ss1", createdAt: 0, updatedAt: 0, status: "running" },
      session: { id: "ss1", memory: 2048, vcpus: 1, region: "iad1", runtime: "node24", timeout: 300000, status: "running", requestedAt: 0,
        createdAt: 0, cwd: "/", updatedAt: 0 }, routes: [] },
  },
};

const server = http.createServer((request, response) => {
  const chunks = [];
  request.on("data", (chunk) => chunks.push(chunk));
  request.on("end", () => {
    const path = request.url.split("?")[0];
    const text = Buffer.concat(chunks).toString();
    let body = text;
    try {
      body = JSON.parse(text);
    } catch { /* kept as it is */ }
    requests.push({ method: request.method, path, headers: request.headers, body });
    const answer = ANSWERS[provider]?.[`${request.method} ${path}`];
    response.writeHead(answer ? 200 : 404, { "Content-Type": "application/json" });
    response.end(JSON.stringify(answer ?? { message: `no answer for ${request.method} ${path}` }));
  });
});
// Deno's API is JSON-RPC over a WebSocket.
new WebSocketServer({ server }).on("connection", (connection, request) => {
  const config = request.headers["x-deno-sandbox-config"];
  if (!config) return connection.close(); // Daytona's, for news of sandboxes
  requests.push({ method: "WEBSOCKET", path: request.url, headers: request.headers, body: JSON.parse(atob(config)) });
  connection.on("message", (data) => {
    const call = JSON.parse(data);
    requests.push({ method: call.method, path: "", headers: {}, body: call.params });
    connection.send(JSON.stringify({ jsonrpc: "2.0", id: call.id, result: { ok: null } }));
  });
}).on("headers", (headers) => headers.push("x-deno-sandbox-id: s1"));
await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
const api = `http://127.0.0.1:${server.address().port}`;

// Modal's API is gRPC. Each call is kept as the texts of its message with the numbers of the fields that lead to them.
function texts(bytes, path = "", found = []) {
  const start = found.length;
  let at = 0;
  const number = () => {
    let value = 0n, shift = 0n;
    for (;;) {
      if (at >= bytes.length || shift > 63n) return null;
      const byte = bytes[at++];
      value |= BigInt(byte & 127) << shift;
      if (byte < 128) return Number(value);
      shift += 7n;
    }
  };
  while (at < bytes.length) {
    const key = number();
    const kind = key & 7, field = key >> 3, here = path ? `${path}.${field}` : `${field}`;
    if (key === null || field < 1 || ![0, 1, 2, 5].includes(kind)) break;
    if (kind !== 2) {
      const value = kind === 0 ? number() : null;
      if (kind === 0) found.push([here, value]);
      at += { 0: 0, 1: 8, 5: 4 }[kind];
      continue;
    }
    const size = number();
    if (size === null || at + size > bytes.length) break;
    const part = bytes.subarray(at, at + size);
    at += size;
    found.push([here, part.toString()]);
    texts(part, here, found);
  }
  if (at !== bytes.length) found.length = start; // it is a text and no message
  return found;
}
const field = (n, bytes) => Buffer.concat([Buffer.from([n << 3 | 2, bytes.length]), Buffer.from(bytes)]);
const MODAL = {
  AuthTokenGet: field(1, `e30.${btoa('{"exp":4102444800}').replace(/=/g, "")}.x`),
  AppGetOrCreate: field(1, "ap-1"),
  EnvironmentGetOrCreate: Buffer.concat([field(1, "en-1"), field(2, Buffer.concat([field(1, "main"), field(2, field(1, "2025.06"))]))]),
  ImageGetOrCreate: Buffer.concat([field(1, "im-1"), field(2, [8, 1])]), // done
  SecretGetOrCreate: field(1, "st-1"),
  SandboxCreate: field(1, "sb-1"),
  SandboxCreateV2: field(1, "sb-1"),
};
const modal = http2.createServer();
modal.on("stream", (stream, headers) => {
  const chunks = [];
  stream.on("data", (chunk) => chunks.push(chunk));
  stream.on("end", () => {
    const call = headers[":path"].split("/").pop();
    requests.push({ method: call, path: headers[":path"], headers: {}, body: texts(Buffer.concat(chunks).subarray(5)) });
    const answer = MODAL[call] ?? Buffer.alloc(0);
    const head = Buffer.alloc(5);
    head.writeUInt32BE(answer.length, 1);
    stream.respond({ ":status": 200, "content-type": "application/grpc" }, { waitForTrailers: true });
    stream.on("wantTrailers", () => stream.sendTrailers({ "grpc-status": call in MODAL ? "0" : "12" }));
    stream.end(Buffer.concat([head, answer]));
  });
  stream.on("error", () => {});
});
await new Promise((resolve) => modal.listen(0, "127.0.0.1", resolve));

const RUN = {
  async modal(options) {
    Object.assign(process.env, { MODAL_SERVER_URL: `http://127.0.0.1:${modal.address().port}`, MODAL_TOKEN_ID: "ak-1", MODAL_TOKEN_SECRET: "as-1",
      MODAL_ENVIRONMENT: "main", MODAL_CONFIG_PATH: "/nonexistent" });
    const { ModalClient } = await import("modal");
    const client = new ModalClient();
    const app = await client.apps.fromName("agents", { createIfMissing: true });
    await client.sandboxes.create(app, client.images.fromRegistry("alpine:3"), options);
  },
  async openaiAgents(options) {
    // Vercel's client, over the SDK whose API has no other address than the one that is written in it.
    const real = globalThis.fetch;
    globalThis.fetch = (url, init) => real(String(url?.url ?? url).replace("https://vercel.com/api", api), init);
    const { VercelSandboxClient } = await import("@openai/agents-extensions/sandbox/vercel");
    const { Manifest } = await import("@openai/agents-core/sandbox");
    const client = new VercelSandboxClient({ ...options, projectId: "prj_1", teamId: "team_1", token: "key" });
    // It goes on with commands in the sandbox that there is none of: what makes the sandbox has arrived by then.
    const making = client.create({ manifest: new Manifest() });
    while (!requests.length) await Promise.race([making, new Promise((resolve) => setTimeout(resolve, 20))]);
    making.catch(() => {});
  },
  async e2b(options) {
    const { Sandbox } = await import("e2b");
    await Sandbox.create({ ...options, apiKey: "e2b_" + "0".repeat(40), apiUrl: api });
  },
  async daytona(options) {
    const { Daytona } = await import("@daytona/sdk");
    await new Daytona({ apiKey: "key", apiUrl: api }).create({ ...options, language: "python" });
  },
  async deno(options) {
    const { Sandbox } = await import("@deno/sandbox");
    const sandbox = await Sandbox.create({ ...options, token: "ddo_x", sandboxEndpoint: api, apiEndpoint: api });
    await sandbox.close();
  },
  async runloop({ networkPolicy, devbox }) {
    const { default: Runloop } = await import("@runloop/api-client");
    const client = new Runloop({ bearerToken: "key", baseURL: api, fetch }); // its own speaks HTTP/2
    const policy = await client.networkPolicies.create(networkPolicy);
    await client.devboxes.create(devbox(policy.id));
  },
  async langsmith(options) {
    const { SandboxClient } = await import("langsmith/sandbox");
    await new SandboxClient({ apiEndpoint: api, apiKey: "key" }).createSandbox(undefined, options);
  },
  async vercel(options) {
    const { Sandbox } = await import("@vercel/sandbox");
    const fetched = (url, init) => fetch(String(url).replace("https://vercel.com/api", api), init);
    await Sandbox.create({ ...options, token: "key", teamId: "team_1", projectId: "prj_1", fetch: fetched });
  },
};

ANSWERS.openaiAgents["POST /v3/sandboxes"] = ANSWERS.openaiAgents["POST /v2/sandboxes"] = ANSWERS.vercel["POST /v3/sandboxes"];
let options, files, failure = null;
try {
  const pem = fs.readFileSync(gatewayCa, "utf8");
  files = await vethguard.caFiles(session, { ...places, gatewayCa: pem });
  options = await vethguard[provider](session, { ...places, gatewayCa: pem });
  await RUN[provider](options);
} catch (error) {
  failure = `${error.stack ?? error} ${error.cause ?? ""}`;
}
console.log(JSON.stringify({ options, requests, failure, files }));
process.exit(0);
