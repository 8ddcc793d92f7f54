// SPDX-License-Identifier: Apache-2.0
// What the client scripts share: each is `node SCRIPT.mjs CASE ARGUMENT...` and prints one line of JSON.
import http from "node:http";
import http2 from "node:http2";
import tls from "node:tls";
import { Agent, EnvHttpProxyAgent } from "undici";
import { HttpsProxyAgent } from "https-proxy-agent";

export const proxy = process.env.HTTPS_PROXY;

// undici's way out, through the proxy where the environment names one.
export function dispatcher(options = {}) {
	return proxy ? new EnvHttpProxyAgent(options) : new Agent(options);
}

// For node:https and ws.
export const agent = proxy ? new HttpsProxyAgent(proxy, { keepAlive: true }) : undefined;

// node:http2 knows no proxy: what it is given is a TLS connection inside a CONNECT tunnel.
export async function http2Session(origin, options = {}) {
	const url = new URL(origin), port = url.port || 443;
	if (proxy) {
		const request = http.request(proxy, { method: "CONNECT", path: `${url.hostname}:${port}` });
		const socket = await new Promise((resolve, reject) => {
			request.on("connect", (answer, s) => answer.statusCode === 200 ? resolve(s) : reject(new Error("CONNECT: " + answer.statusCode)));
			request.on("error", reject);
			request.end();
		});
		options.createConnection = () => tls.connect({ socket, servername: url.hostname, ALPNProtocols: ["h2"] });
	}
	const session = http2.connect(origin, options);
	await new Promise((resolve, reject) => {
		session.on("connect", resolve);
		session.on("error", reject);
	});
	return session;
}

// One request over HTTP/2: {status, headers, trailers, text}.
export function http2Request(session, headers, body) {
	return new Promise((resolve, reject) => {
		const stream = session.request(headers, { endStream: body === undefined });
		const result = { text: "" };
		stream.setEncoding("utf8");
		stream.on("response", h => Object.assign(result, { status: h[":status"], headers: h }));
		stream.on("trailers", h => (result.trailers = h));
		stream.on("data", piece => (result.text += piece));
		stream.on("close", () => stream.rstCode ? resolve({ ...result, rst: stream.rstCode }) : resolve(result));
		stream.on("error", e => resolve({ ...result, error: e.code }));
		if (body !== undefined)
			stream.end(body);
	});
}

export async function main(cases) {
	const [name, ...rest] = process.argv.slice(2);
	let answer;
	try {
		answer = await cases[name](...rest);
	} catch (e) {
		answer = { failed: e.name, message: String(e.message), status: e.status, code: e.code, cause: e.cause && String(e.cause.message ?? e.cause) };
	}
	process.stdout.write(JSON.stringify(answer) + "\n", () => process.exit(0));
}
