// SPDX-License-Identifier: Apache-2.0
// The SDKs of OpenAI and Anthropic and octokit, as their users call them. Keys come from the environment.
import { createHash, randomUUID } from "node:crypto";
import { inspect } from "node:util";
import Anthropic from "@anthropic-ai/sdk";
import { GoogleGenAI } from "@google/genai";
import axios from "axios";
import got from "got";
import Anthropic0 from "anthropic-0";
import { Octokit } from "octokit";
import OpenAI, { toFile } from "openai";
import { setGlobalDispatcher } from "undici";
import { agent, dispatcher, main, proxy } from "./lib.mjs";

const way = dispatcher();
// Unchanged without a proxy; with one, as the SDKs' own documentation says.
const client = proxy ? { fetchOptions: { dispatcher: way } } : {};
const fetchAny = proxy ? (url, options) => fetch(url, { ...options, dispatcher: way }) : fetch;

const openai = base => new OpenAI({ baseURL: base + "/v1", maxRetries: 0, ...client });
// The SDK before 1.0 sends a key as x-api-key, since then as Authorization: Bearer; a token goes as the latter in both.
const anthropics = { key0: [Anthropic0, { authToken: null }], token0: [Anthropic0, { apiKey: null }],
	key1: [Anthropic, {}], token1: [Anthropic, { apiKey: null }] };
function anthropic(base, how) {
	const [Sdk, more] = anthropics[how];
	return new Sdk({ baseURL: base, maxRetries: 0, ...client, ...more });
}
const octokit = base => new Octokit({ baseUrl: base + "/api/v3", auth: process.env.GITHUB_TOKEN,
	request: { fetch: fetchAny, retries: 0 }, retry: { enabled: false }, log: { debug() {}, info() {}, warn() {}, error() {} } });

// The next event comes only when this one was acknowledged.
const acknowledge = (base, id, n) => fetchAny(`${base}/ack/${id}/${n}`, { method: "POST" }).then(r => r.text());

async function streamed(base, events, id) {
	const pieces = [];
	let n = 0;
	for await (const piece of events) {
		pieces.push(piece);
		await acknowledge(base, id, n++);
	}
	return pieces;
}

const messages = [{ role: "user", content: "hello" }];

// One call of each SDK that the policy denies, as its users write it.
const denied = {
	openai: base => openai(base).moderations.create({ input: "x" }),
	key0: base => anthropic(base, "key0").models.list(),
	key1: base => anthropic(base, "key1").models.list(),
	octokit: base => octokit(base).rest.repos.delete({ owner: "acme", repo: "widgets" }),
	google: base => new GoogleGenAI({ apiKey: process.env.GEMINI_API_KEY, httpOptions: { baseUrl: base } })
		.models.generateContent({ model: "lab-1", contents: "hello" }),
	axios: base => axios.delete(base + "/denied", { proxy: false, httpsAgent: agent }),
	got: base => got.delete(base + "/denied", { retry: { limit: 0 }, responseType: "json", agent: { https: agent } }),
};

main({
	// What a user sees: the message, and what node prints of an error that nobody catches.
	async denied(which, base) {
		if (which === "google" && proxy)
			setGlobalDispatcher(way); // it has no setting of its own for a proxy
		const e = await denied[which](base).then(() => new Error("it was not denied"), error => error);
		return { status: e.status ?? e.response?.statusCode, message: e.message, printed: inspect(e, { depth: 4 }), body: e.response?.body };
	},
	async openai(base) {
		const ai = openai(base), id = randomUUID();
		const plain = await ai.chat.completions.create({ model: "lab-1", messages });
		const events = await ai.chat.completions.create({ model: "lab-1", messages, stream: true }, { headers: { "x-stream": id } });
		const pieces = await streamed(base, events, id);
		const models = [];
		for await (const m of ai.models.list())
			models.push(m.id);
		const file = await ai.files.create({ file: await toFile(Buffer.alloc(300000, "x"), "x.bin"), purpose: "assistants" });
		return { plain: plain.choices[0].message.content, pieces: pieces.length, models, file: file.bytes > 300000,
			streamed: pieces.map(p => p.choices[0].delta.content ?? "").join("") };
	},
	async openaiRefused(base) {
		const failed = e => ({ name: e.constructor.name, status: e.status, type: e.headers?.get("content-type") });
		const away = await openai(base).moderations.create({ input: "x" }).then(() => "no error", failed);
		const aside = await openai("https://evil.lab.test").models.list().then(() => "no error", failed);
		return { away, aside };
	},
	async anthropic(base, how) {
		const ai = anthropic(base, how);
		const id = randomUUID(), wish = { model: "lab-1", max_tokens: 10, messages };
		const plain = await ai.messages.create(wish);
		const events = await ai.messages.create({ ...wish, stream: true });
		const types = [];
		for await (const event of events)
			types.push(event.type);
		// Five pieces of text, one at a time; message_start is the origin's first write, and is acknowledged first.
		const stream = ai.messages.stream(wish, { headers: { "x-stream": id } });
		const texts = [];
		let n = 0;
		for await (const event of stream) {
			if (event.type === "content_block_delta")
				texts.push(event.delta.text);
			if (["message_start", "content_block_delta", "message_stop"].includes(event.type))
				await acknowledge(base, id, n++);
		}
		const final = await stream.finalMessage();
		return { plain: plain.content[0].text, types, texts, final: final.content[0].text, reason: final.stop_reason };
	},
	async anthropicRefused(base, how) {
		const e = await anthropic(base, how).models.list().then(() => null, error => error);
		return { name: e?.constructor.name, status: e?.status };
	},
	async octokit(base) {
		const hub = octokit(base);
		const user = await hub.rest.users.getAuthenticated();
		const made = await hub.rest.issues.create({ owner: "acme", repo: "widgets", title: "a bug" });
		const issues = await hub.paginate(hub.rest.issues.listForRepo, { owner: "acme", repo: "widgets" });
		const graph = await new Octokit({ baseUrl: base + "/api", auth: process.env.GITHUB_TOKEN, request: { fetch: fetchAny } })
			.graphql("{ viewer { login } }");
		const file = await hub.rest.repos.getContent({ owner: "acme", repo: "widgets", path: "big.bin", mediaType: { format: "raw" } });
		return { login: user.data.login, title: made.data.title, issues: issues.map(i => i.number), graph: graph.viewer.login,
			file: createHash("sha256").update(Buffer.from(file.data)).digest("hex") ===
				createHash("sha256").update(Buffer.alloc(1 << 20, "x")).digest("hex") };
	},
	async octokitRefused(base) {
		const e = await octokit(base).rest.repos.delete({ owner: "acme", repo: "widgets" }).then(() => null, error => error);
		return { status: e?.status, type: e?.response?.headers["content-type"], data: e?.response?.data };
	},
});
