// SPDX-License-Identifier: Apache-2.0
// node's own fetch, undici and node:http2. Cases of fetch and undici alike: get, post, stream, many, redirect.
import { createHash } from "node:crypto";
import { Agent, fetch as undiciFetch, request, setGlobalDispatcher } from "undici";
import { dispatcher, http2Request, http2Session, main, proxy } from "./lib.mjs";

// node's fetch takes its way out from undici's global dispatcher; without a proxy it is left alone.
if (proxy && !process.env.NODE_USE_ENV_PROXY)
	setGlobalDispatcher(dispatcher());

const digest = data => createHash("sha256").update(data).digest("hex");

function cases(fetch) {
	return {
		async get(url) {
			const r = await fetch(url, { redirect: "manual" });
			const text = await r.text();
			return { status: r.status, type: r.headers.get("content-type"), text };
		},
		// A body of known length, and one that is streamed.
		async post(url, size) {
			const data = Buffer.alloc(Number(size), "body");
			const known = await (await fetch(url, { method: "POST", body: data })).json();
			async function* pieces() {
				for (let at = 0; at < data.length; at += 50000)
					yield data.subarray(at, at + 50000);
			}
			const streamed = await (await fetch(url, { method: "POST", body: ReadableStream.from(pieces()), duplex: "half" })).json();
			return { known: known.sha256 === digest(data), streamed: streamed.sha256 === digest(data), body: streamed.body };
		},
		async stream(url) {
			let n = 0;
			for await (const piece of (await fetch(url)).body)
				n += piece.length;
			return { n };
		},
		async many(url, count) {
			const all = await Promise.all([...Array(Number(count)).keys()].map(i => fetch(`${url}?${i}`).then(r => r.json())));
			return { inOrder: all.every((r, i) => r.path.endsWith(`?${i}`)) };
		},
		// Given up in the middle of a body; the next request is unharmed.
		async abort(url, then) {
			const control = new AbortController();
			const r = await fetch(url, { signal: control.signal });
			const reader = r.body.getReader();
			await reader.read();
			control.abort();
			const error = await reader.read().then(() => "none", e => e.name);
			return { error, then: (await fetch(then)).status };
		},
	};
}

const own = cases(fetch), undici = cases((url, options) => undiciFetch(url, { ...options, dispatcher: way }));
const way = dispatcher();

main({
	own: (name, ...rest) => own[name](...rest),
	undici: (name, ...rest) => undici[name](...rest),
	// undici with h2 allowed: what was negotiated, and whether all came.
	async undiciH2(url, count) {
		const h2 = dispatcher({ allowH2: true });
		const all = await Promise.all([...Array(Number(count)).keys()].map(async i => {
			const { statusCode, body } = await request(`${url}?${i}`, { dispatcher: h2 });
			return statusCode === 200 && (await body.json()).path.endsWith(`?${i}`);
		}));
		return { all: all.every(Boolean) };
	},
	async pipelined(origin, count) {
		const h1 = new Agent({ pipelining: 10, connections: 1 });
		const all = await Promise.all([...Array(Number(count)).keys()].map(async i =>
			(await (await request(`${origin}/p${i}`, { dispatcher: h1 })).body.json()).path));
		return { inOrder: all.every((p, i) => p === `/p${i}`) };
	},
	async http2(origin, count) {
		const session = await http2Session(origin);
		const all = await Promise.all([...Array(Number(count)).keys()].map(i => http2Request(session, { ":path": `/whoami?${i}` })));
		const trailers = await http2Request(session, { ":path": "/trailers", te: "trailers" });
		session.close();
		return { alpn: session.alpnProtocol, ok: all.filter(r => r.status === 200).length,
			trailers: trailers.trailers?.["x-after"], text: trailers.text };
	},
	// Uploads on a connection that has carried many requests before.
	async http2Post(origin, count) {
		const session = await http2Session(origin), body = Buffer.alloc(1 << 20, "body");
		await Promise.all([...Array(Number(count)).keys()].map(i => http2Request(session, { ":path": `/whoami?${i}` })));
		const all = await Promise.all([1, 2, 3].map(i => http2Request(session, { ":path": `/post/${i}`, ":method": "POST" }, body)));
		session.close();
		return all.map(r => r.status === 200 && r.text && JSON.parse(r.text).sha256 === digest(body) ? "same" : r);
	},
	// Refused streams beside one that lives: another path, another authority, another method.
	async http2Refused(origin, path, authority) {
		const session = await http2Session(origin);
		const requests = [{ ":path": path }, { ":path": "/whoami", ":authority": authority }, { ":path": "/whoami", ":method": "DELETE" },
			{ ":path": "/whoami" }];
		const all = await Promise.all(requests.map(h => http2Request(session, h)));
		session.close();
		return { statuses: all.map(r => r.status), texts: all.map(r => r.text), types: all.map(r => r.headers?.["content-type"]) };
	},
	// Reset by the client in the middle of a body; the other streams are unharmed.
	async http2Cancel(origin) {
		const session = await http2Session(origin);
		const stream = session.request({ ":path": "/bytes/50000000" });
		await new Promise(r => stream.once("data", r));
		const beside = http2Request(session, { ":path": "/bytes/3000000" });
		stream.close(8);
		stream.on("error", () => {});
		const r = await beside;
		session.close();
		return { status: r.status, n: r.text.length };
	},
});
