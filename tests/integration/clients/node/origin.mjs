// SPDX-License-Identifier: Apache-2.0
// What answers for *.node.lab.test, on the address argv[3]: port 443 (h2 and http/1.1), 8443 (http/1.1 only), 50051 (gRPC).
// argv[2] is the lab's folder. Every request becomes a line of FOLDER/seen.jsonl, as backend.py writes them.
import { createHash } from "node:crypto";
import { appendFileSync, existsSync, readFileSync, writeFileSync } from "node:fs";
import http2 from "node:http2";
import https from "node:https";
import { join } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { serveRpc } from "./origin_rpc.mjs";
import { createAcks } from "./acks.mjs";
import { anthropic, openai } from "./origin_ai.mjs";
import { github } from "./origin_github.mjs";
import { page } from "./origin_page.mjs";
import { serveSockets } from "./origin_ws.mjs";

const [folder, address] = process.argv.slice(2);
const SECRET = "sk-lab-0123456789abcdefghij-TOPSECRET";
const acks = createAcks();

export function isAuthenticated(headers) {
	const [kind, rest] = (headers.authorization ?? "").split(" ");
	let value;
	if (/^(bearer|token)$/i.test(kind))
		value = rest;
	else if (/^basic$/i.test(kind))
		value = Buffer.from(rest, "base64").toString().split(":")[1];
	return [value, headers["x-api-key"]].includes(SECRET);
}

function note(row) {
	appendFileSync(join(folder, "seen.jsonl"), JSON.stringify({ what: "request", ...row }) + "\n");
}

function noteRequest(req, body = 0) {
	note({ host: req.headers.host ?? req.headers[":authority"], method: req.method, path: req.url,
		protocol: req.httpVersion === "2.0" ? "HTTP/2.0" : "HTTP/1.1", authenticated: isAuthenticated(req.headers), body,
		headers: Object.entries(req.headers) });
}

function answer(res, status, value, headers = {}) {
	const text = Buffer.isBuffer(value) || typeof value === "string" ? value : JSON.stringify(value);
	res.writeHead(status, { "content-type": "application/json", "content-length": Buffer.byteLength(text), ...headers });
	res.end(text);
}

async function readBody(req) {
	const pieces = [];
	for await (const piece of req)
		pieces.push(piece);
	return Buffer.concat(pieces);
}

// Events one by one: the next is written when the one before was acknowledged by a request of its own. The last one tells
// how long each took, in milliseconds.
async function stream(res, kind, id, count) {
	const times = [];
	res.writeHead(200, { "content-type": kind === "sse" ? "text/event-stream" : "application/octet-stream" });
	res.flushHeaders();
	for (let n = 0; n < count; n++) {
		const began = performance.now();
		res.write(kind === "sse" ? `id: ${n}\ndata: event ${n}\n\n` : `${n}\n`);
		if (!await acks.wait(id, n, 5000))
			return res.end("event: stuck\ndata: nobody acknowledged the last event\n\n");
		times.push(performance.now() - began);
	}
	res.end(kind === "sse" ? `event: times\ndata: ${JSON.stringify(times)}\n\n` : JSON.stringify(times) + "\n");
}

// The other way: every piece of the request's body that came is acknowledged to whoever asks at /heard.
async function upload(req, res, id) {
	let n = 0;
	for await (const piece of req)
		for (const byte of piece)
			if (byte === 10)
				acks.set(id, n++);
	answer(res, 200, { pieces: n });
}

// Only as much as the receiver takes: node ends an HTTP/2 session that holds more than 10 MB.
function sendBytes(res, left) {
	const piece = Buffer.alloc(65536, "0123456789abcdef");
	res.writeHead(200, { "content-type": "text/plain", "content-length": left });
	return pipeline(Readable.from(function* () {
		for (; left > 0; left -= piece.length)
			yield piece.subarray(0, left);
	}()), res);
}

// The registry's own files; a scoped package's name comes as @scope%2fname.
function registry(req, res, body) {
	const name = decodeURIComponent(req.url.slice("/npm/".length)).replaceAll("/", "+");
	const file = join(folder, "npm", name);
	if (name.startsWith("@") && !isAuthenticated(req.headers))
		return answer(res, 401, { error: "who are you?" });
	if (req.method === "PUT") {
		writeFileSync(join(folder, "npm", "published-" + name), body);
		return answer(res, 201, { ok: true });
	}
	if (!existsSync(file))
		return answer(res, 404, { error: "not_found" });
	answer(res, 200, readFileSync(file), { "content-type": file.endsWith(".tgz") ? "application/octet-stream" : "application/json" });
}

async function serve(req, res) {
	const url = new URL(req.url, "https://x");
	const [, service, id, n] = url.pathname.split("/");
	if (service === "sse" || service === "chunks" || service === "upload")
		noteRequest(req);
	if (service === "sse" || service === "chunks")
		return stream(res, service, id, Number(n));
	if (service === "upload")
		return upload(req, res, id);
	const body = await readBody(req);
	noteRequest(req, body.length);
	if (service === "ack") {
		acks.set(id, Number(n));
		return answer(res, 200, {});
	}
	if (service === "heard")
		return answer(res, await acks.wait(id, Number(n), 20000) ? 200 : 504, {});
	if (service === "npm")
		return registry(req, res, body);
	if (service === "page")
		return page(req, res, url, answer);
	if (service === "bytes")
		return sendBytes(res, Number(id));
	if (service === "trailers") {
		res.writeHead(200, { trailer: "x-after" });
		res.write("body");
		res.addTrailers({ "x-after": "the end" });
		return res.end();
	}
	if (["whoami", "v1", "api"].includes(service) && !isAuthenticated(req.headers))
		return answer(res, 401, { message: "Bad credentials", error: { message: "who are you?", type: "authentication_error" } });
	if (url.pathname === "/v1/messages")
		return anthropic(req, res, body, acks, answer);
	if (service === "v1")
		return openai(req, res, url, body, acks, answer);
	if (service === "api")
		return github(req, res, url, body, answer);
	answer(res, 200, { path: req.url, method: req.method, body: body.length, authenticated: isAuthenticated(req.headers),
		sha256: createHash("sha256").update(body).digest("hex"), protocol: req.httpVersion });
}

function serveAnd(req, res) {
	res.on("error", () => {});
	serve(req, res).catch(() => res.destroy?.());
}

const tls = { key: readFileSync(join(folder, "server.key")), cert: readFileSync(join(folder, "server.pem")) };
const servers = [http2.createSecureServer({ ...tls, allowHTTP1: true }, serveAnd), https.createServer(tls, serveAnd)];
servers.forEach((server, i) => {
	server.on("sessionError", () => {});
	serveSockets(server, noteRequest);
	server.listen([443, 8443][i], address);
});
await serveRpc(`${address}:50051`, tls, note, isAuthenticated, acks);
await serveRpc(`${address}:50052`, null, note, () => true, acks);
writeFileSync(join(folder, "node-origin.ready"), "");
