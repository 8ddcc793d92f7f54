// SPDX-License-Identifier: Apache-2.0
// grpc-js: the four kinds of call, metadata, trailers, deadlines, cancellation, refusals. argv: CASE HOST:PORT ...
import { randomUUID } from "node:crypto";
import grpc from "@grpc/grpc-js";
import { readFileSync } from "node:fs";
import { loadLab } from "./origin_rpc.mjs";
import { main } from "./lib.mjs";

const size = { "grpc.max_receive_message_length": 64 << 20, "grpc.max_send_message_length": 64 << 20 };

function connect(target) {
	const roots = process.env.LAB_CA ? readFileSync(process.env.LAB_CA) : null;
	return new (loadLab().Lab)(target, process.env.RPC_PLAIN ? grpc.credentials.createInsecure() : grpc.credentials.createSsl(roots), size);
}

function metadata() {
	const m = new grpc.Metadata();
	m.set("authorization", "Bearer " + process.env.RPC_KEY);
	m.set("x-lab", "from inside");
	return m;
}

function unary(client, method, message, options = {}) {
	return new Promise(resolve => {
		const seen = {};
		// The status comes right after the answer.
		const call = client[method](message, metadata(), options, (e, value) =>
			setImmediate(() => resolve({ ...seen, value, code: e?.code, details: e?.details })));
		call.on("metadata", m => (seen.initial = m.get("x-initial")[0]));
		call.on("status", s => {
			seen.trailer = s.metadata.get("x-trailer")[0];
			seen.binary = s.metadata.get("x-trailer-bin")[0]?.toString("hex");
		});
		options.call?.(call);
	});
}

// A stream's end: {code, details, trailer}; never rejects.
function status(call) {
	call.on("error", () => {});
	return new Promise(r => call.on("status", s => r({ code: s.code, details: s.details, trailer: s.metadata.get("x-trailer")[0] })));
}

const reader = call => call[Symbol.asyncIterator]();

main({
	async unary(target) {
		const client = connect(target);
		const first = await unary(client, "Say", { text: "hällo", n: 7 });
		const failed = await unary(client, "Say", { text: "fail" });
		const many = await Promise.all([...Array(100).keys()].map(n => unary(client, "Say", { n })));
		return { first, failed, many: many.every((r, n) => r.value?.n === n) };
	},
	async server(target, count) {
		const call = connect(target).Count({ n: Number(count), data: Buffer.alloc(2000) }, metadata()), end = status(call), numbers = [];
		for await (const w of call)
			numbers.push(w.n);
		return { numbers: numbers.length, inOrder: numbers.slice(0, -1).every((n, i) => n === i), end: await end };
	},
	// Each message is acknowledged by a unary call before the next is sent.
	async serverAcknowledged(target, count) {
		const client = connect(target), id = randomUUID();
		const call = client.Count({ n: Number(count), text: id }, metadata()), end = status(call);
		let times;
		for await (const w of call)
			if (w.n < 0)
				times = JSON.parse(w.text);
			else
				await unary(client, "Say", { text: "ack " + id, n: w.n });
		return { times, end: await end };
	},
	async client(target, count) {
		const client = connect(target);
		return await new Promise(resolve => {
			const call = client.Sum(metadata(), (e, value) => resolve({ n: value?.n, bytes: value?.text, code: e?.code }));
			for (let n = 0; n < Number(count); n++)
				call.write({ n, data: Buffer.alloc(3000) });
			call.end();
		});
	},
	async chat(target, count) {
		const call = connect(target).Chat(metadata()), end = status(call), next = reader(call), times = [];
		for (let n = 0; n < Number(count); n++) {
			const began = performance.now();
			call.write({ text: "round", n });
			if ((await next.next()).value.n !== n)
				return { wrong: n };
			times.push(performance.now() - began);
		}
		call.end();
		await next.next();
		return { times, end: await end };
	},
	async large(target, bytes) {
		const client = connect(target), data = Buffer.alloc(Number(bytes), "large");
		const back = await unary(client, "Say", { data });
		return { same: back.value?.data.equals(data) ?? false, code: back.code, details: back.details };
	},
	// Many channels, each with as many calls at once as a connection takes: unary ones and streams, all checked.
	async load(target, channels, calls) {
		let done = 0;
		const wrong = [];
		async function one(client, n) {
			const said = await unary(client, "Say", { n, data: Buffer.alloc(n % 5000, "d") });
			const call = client.Count({ n: 20, data: Buffer.alloc(500) }, metadata()), end = status(call);
			let numbers = 0;
			for await (const _ of call)
				numbers++;
			const code = (await end).code;
			done += said.value?.n === n && numbers === 21 && code === 0;
			if (said.value?.n !== n || numbers !== 21 || code !== 0)
				wrong.push({ n, said: said.code, details: said.details, numbers, code });
		}
		await Promise.all([...Array(Number(channels)).keys()].map(async c => {
			const client = new (loadLab().Lab)(target, grpc.credentials.createSsl(
				process.env.LAB_CA ? readFileSync(process.env.LAB_CA) : null), { ...size, "grpc.use_local_subchannel_pool": 1 });
			let next = 0;
			await Promise.all([...Array(100).keys()].map(async () => {
				while (next < Number(calls))
					await one(client, next++);
			}));
			client.close();
		}));
		return { done, wrong: wrong.slice(0, 5) };
	},
	async deadline(target) {
		const client = connect(target), began = performance.now();
		const r = await unary(client, "Say", { text: "never" }, { deadline: Date.now() + 1000 });
		const after = await unary(client, "Say", { text: "still here" });
		return { code: r.code, waited: performance.now() - began, after: after.value?.text };
	},
	async cancel(target) {
		const client = connect(target);
		const call = client.Count({ n: 100000, text: randomUUID() }, metadata()), end = status(call);
		call.once("data", () => call.cancel());
		const r = await end;
		const after = await unary(client, "Say", { text: "still here" });
		return { code: r.code, after: after.value?.text };
	},
	async refused(target, other) {
		const client = connect(target);
		const forbidden = await unary(client, "Forbidden", { text: "secret plan" });
		const call = client.Count({ n: 1 }, metadata());
		const beside = status(call);
		call.resume();
		const evil = await unary(connect(other), "Say", { text: "steal" }, { deadline: Date.now() + 5000 });
		return { forbidden: { code: forbidden.code, details: forbidden.details }, beside: (await beside).code,
			evil: { code: evil.code, details: evil.details } };
	},
});
