// SPDX-License-Identifier: Apache-2.0
// Streams whose next piece is sent only when this one was acknowledged on a connection or stream of its own. The answer has
// the milliseconds that each took: the origin's for what it sends, ours for what we send.
import { randomUUID } from "node:crypto";
import https from "node:https";
import { agent, http2Request, http2Session, main } from "./lib.mjs";

// get(path) and post(path): the body as an async iterator of strings; send(path): a writable, and the answer's promise.
function http1(origin) {
	const pool = agent ?? new https.Agent({ keepAlive: true });
	const start = (path, method) => {
		const req = https.request(origin + path, { method, agent: pool });
		const answer = new Promise((resolve, reject) => {
			req.on("response", resolve);
			req.on("error", reject);
		});
		return { req, answer };
	};
	return {
		async get(path) {
			const { req, answer } = start(path, "GET");
			req.end();
			return (await answer).setEncoding("utf8");
		},
		async ask(path, method = "GET") {
			const { req, answer } = start(path, method);
			req.end();
			const res = await answer;
			res.resume();
			await new Promise(r => res.on("end", r));
			return res.statusCode;
		},
		send(path) {
			const { req, answer } = start(path, "POST");
			return { body: req, answer: answer.then(async res => {
				let text = "";
				for await (const piece of res.setEncoding("utf8"))
					text += piece;
				return text;
			}) };
		},
		version: "1.1",
	};
}

async function http2(origin) {
	const session = await http2Session(origin);
	return {
		async get(path) {
			return session.request({ ":path": path }).setEncoding("utf8");
		},
		ask: async (path, method = "GET") => (await http2Request(session, { ":path": path, ":method": method })).status,
		send(path) {
			const stream = session.request({ ":path": path, ":method": "POST" }, { endStream: false });
			return { body: stream, answer: (async () => {
				let text = "";
				for await (const piece of stream.setEncoding("utf8"))
					text += piece;
				return text;
			})() };
		},
		version: session.alpnProtocol,
	};
}

const open = (version, origin) => version === "h2" ? http2(origin) : http1(origin);

// Takes complete lines out of pieces that may end anywhere.
async function* lines(pieces, end) {
	let left = "";
	for await (const piece of pieces) {
		const all = (left + piece).split(end);
		left = all.pop();
		yield* all;
	}
}

main({
	async sse(version, origin, count) {
		const way = await open(version, origin), id = randomUUID(), events = [];
		for await (const event of lines(await way.get(`/sse/${id}/${count}`), "\n\n")) {
			if (event.startsWith("event: "))
				return { events, last: event.split("\n")[0], times: JSON.parse(event.split("data: ")[1]) };
			events.push(event.split("data: ")[1]);
			await way.ask(`/ack/${id}/${events.length - 1}`, "POST");
		}
		return { events };
	},
	async chunks(version, origin, count) {
		const way = await open(version, origin), id = randomUUID();
		let n = 0;
		for await (const line of lines(await way.get(`/chunks/${id}/${count}`), "\n")) {
			if (line.startsWith("["))
				return { n, times: JSON.parse(line) };
			await way.ask(`/ack/${id}/${n++}`, "POST");
		}
		return { n };
	},
	async upload(version, origin, count) {
		const way = await open(version, origin), id = randomUUID(), times = [];
		const { body, answer } = way.send(`/upload/${id}`);
		for (let n = 0; n < Number(count); n++) {
			const began = performance.now();
			body.write(`piece ${n}\n`);
			if (await way.ask(`/heard/${id}/${n}`) !== 200)
				return { stuck: n };
			times.push(performance.now() - began);
		}
		body.end();
		return { ...JSON.parse(await answer), times };
	},
});
