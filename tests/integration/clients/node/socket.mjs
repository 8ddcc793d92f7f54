// SPDX-License-Identifier: Apache-2.0
// The ws client: what comes back, in order, over wss. `deflate` says whether permessage-deflate is offered.
import { createHash, randomBytes } from "node:crypto";
import { performance } from "node:perf_hooks";
import WebSocket from "ws";
import { agent, main } from "./lib.mjs";

function open(url, options = {}) {
	const ws = new WebSocket(url, { perMessageDeflate: false, ...options, ...(agent ? { agent } : {}) });
	const waiting = [], came = [];
	ws.on("message", (data, binary) => {
		const message = { data, binary, text: String(data) };
		waiting.length ? waiting.shift()(message) : came.push(message);
	});
	ws.next = () => came.length ? Promise.resolve(came.shift()) : new Promise(r => waiting.push(r));
	ws.closed = new Promise(r => ws.on("close", (code, reason) => r({ code, reason: String(reason) })));
	ws.ready = new Promise((resolve, reject) => {
		ws.on("open", resolve);
		ws.on("error", reject);
		ws.on("unexpected-response", (_, res) => {
			let text = "";
			res.on("data", d => (text += d));
			res.on("end", () => resolve({ status: res.statusCode, text, type: res.headers["content-type"] }));
		});
	});
	return ws;
}

async function opened(url, options) {
	const ws = open(url, options);
	await ws.ready;
	return ws;
}

const digest = data => createHash("sha256").update(data).digest("hex");

main({
	async echo(url) {
		const ws = await opened(url), binary = randomBytes(1000);
		ws.send("hällo");
		const text = await ws.next();
		ws.send(binary);
		const bytes = await ws.next();
		ws.send("");
		const empty = await ws.next();
		ws.send(String(process.env.WS_KEY));
		const placeholder = await Promise.race([ws.next(), ws.closed]); // refused where it does not belong
		ws.close(1000);
		return { text: text.text, isText: !text.binary, bytes: bytes.binary && bytes.data.equals(binary), empty: empty.text,
			placeholder: placeholder.text === String(process.env.WS_KEY), closed: (await ws.closed).code };
	},
	// Both directions, each length around the borders of RFC 6455 section 5.2.
	async sizes(url, ...sizes) {
		const ws = await opened(url), wrong = [];
		for (const size of sizes.map(Number)) {
			const data = randomBytes(size);
			ws.send(data);
			if (digest((await ws.next()).data) !== digest(data))
				wrong.push(size);
		}
		ws.close();
		return { wrong };
	},
	async ping(url) {
		const ws = open(url);
		const own = new Promise(r => ws.on("pong", d => r(String(d))));
		await ws.ready;
		const theirs = (await ws.next()).text;
		ws.ping("mine");
		const pong = await own;
		ws.close();
		return { theirs, pong };
	},
	async early(url) {
		const ws = open(url);
		const words = [await ws.next(), await ws.next(), await ws.next()];
		ws.close();
		return { words: words.map(w => w.text) };
	},
	async close(url) {
		return await open(url).closed;
	},
	async closing(url, code) {
		const ws = await opened(url);
		ws.close(Number(code), "my own");
		return await ws.closed;
	},
	// The origin's message of many fragments, and one of our own.
	async fragments(url, echo, count) {
		const ws = open(url), got = await ws.next();
		ws.close();
		const two = await opened(echo);
		for (let i = 0; i < Number(count); i++)
			two.send(String(i).padStart(1000, "-"), { fin: i + 1 === Number(count) });
		const back = await two.next();
		two.close();
		const wanted = mark => [...Array(Number(count)).keys()].map(i => String(i).padStart(1000, mark)).join("");
		return { got: got.text === wanted("."), back: back.text === wanted("-") };
	},
	async deflate(url, n) {
		const ws = await opened(url, { perMessageDeflate: { threshold: 0 } }), text = "again and again ".repeat(Number(n));
		ws.send(text);
		const back = (await ws.next()).text === text;
		ws.close();
		return { back, extensions: ws.extensions };
	},
	// Each message goes only when the one before came back: milliseconds of each round.
	async rounds(url, count) {
		const ws = await opened(url), times = [];
		for (let i = 0; i < Number(count); i++) {
			const began = performance.now();
			ws.send("round " + i);
			if ((await ws.next()).text !== "round " + i)
				return { wrong: i };
			times.push(performance.now() - began);
		}
		ws.close();
		return { times };
	},
	async many(url, count) {
		const all = await Promise.all([...Array(Number(count)).keys()].map(async i => {
			const ws = await opened(url);
			for (let k = 0; k < 20; k++)
				ws.send(`${i} ${k}`);
			for (let k = 0; k < 20; k++)
				if ((await ws.next()).text !== `${i} ${k}`)
					return false;
			ws.terminate();
			return true;
		}));
		return { all: all.every(Boolean) };
	},
	async refused(url) {
		const ws = open(url);
		return await ws.ready.catch(e => ({ error: e.message }));
	},
});
