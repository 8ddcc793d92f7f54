// SPDX-License-Identifier: Apache-2.0
// An HTTP/2 origin of the lab: argv is the lab's folder, an address and a port. Like origin.py it notes every request
// that reached it in FOLDER/seen.jsonl, with the number of the connection it came on.
import crypto from "node:crypto";
import fs from "node:fs";
import http2 from "node:http2";
import zlib from "node:zlib";

const [folder, address, port] = process.argv.slice(2);
const server = http2.createSecureServer({
	key: fs.readFileSync(`${folder}/server.key`), cert: fs.readFileSync(`${folder}/server.pem`),
	settings: {maxConcurrentStreams: 100, enableConnectProtocol: process.argv[5] === "websocket",
		...(process.argv[5] === "wide" && {initialWindowSize: 1 << 24})},
});
let sessions = 0;
const refusedOnce = new Set();
const late = [];

function note(what) {
	fs.appendFileSync(`${folder}/seen.jsonl`, JSON.stringify(what) + "\n");
}

server.on("session", session => {
	session.number = ++sessions;
	if (process.argv[5] === "wide")
		session.setLocalWindowSize(1 << 25);
	session.on("error", () => {});
});

const pages = {
	whoami(stream, request) {
		answer(stream, request, {authenticated: request.headers.authorization === "Bearer " + secret()});
	},
	bytes(stream, request, n) {
		stream.resume(); // node resets a stream that nobody has read when it has been written, at times before its end was sent
		stream.respond({":status": 200, "content-type": "application/octet-stream"});
		const chunk = Buffer.alloc(65536, "x");
		let left = Number(n);
		const more = () => {
			while (left > 0) {
				const take = Math.min(left, chunk.length);
				left -= take;
				if (!stream.write(chunk.subarray(0, take)))
					return void stream.once("drain", more);
			}
			stream.end();
		};
		more();
	},
	count(stream) { // how many bytes it was sent
		let n = 0;
		stream.on("data", chunk => { n += chunk.length; });
		stream.on("end", () => { stream.respond({":status": 200}); stream.end(String(n)); });
	},
	length(stream, request, n) {
		stream.respond({":status": 200, "content-length": n});
		stream.end(Buffer.alloc(Number(n), "y"));
	},
	trailers(stream) {
		stream.respond({":status": 200, "x-head": "1"}, {waitForTrailers: true});
		stream.on("wantTrailers", () => stream.sendTrailers({"x-sum": "42", "grpc-status": "0"}));
		stream.end("body");
	},
	interim(stream) {
		stream.additionalHeaders({":status": 103, link: "</style.css>; rel=preload"});
		stream.respond({":status": 200});
		stream.end("after");
	},
	echo(stream, request) { // the credential, back in head, body and trailers
		const value = request.headers.authorization ?? "none";
		stream.respond({":status": 200, "x-echo": value}, {waitForTrailers: true});
		stream.on("wantTrailers", () => stream.sendTrailers({"x-late": value}));
		stream.end(`<${value}>`);
	},
	coded(stream, request, field) { // the credential, back in a gRPC message that is compressed
		const message = zlib.gzipSync(request.headers.authorization ?? "none"), head = Buffer.alloc(5);
		head[0] = 1;
		head.writeUInt32BE(message.length, 1);
		stream.respond({":status": 200, "content-type": "application/grpc", [field]: "gzip"});
		stream.end(Buffer.concat([head, message]));
	},
	plainly(stream, request, field) { // what says that messages are not compressed, and a head alone
		stream.respond({":status": 200, "grpc-encoding": "identity", "connect-content-encoding": ""});
		stream.end("fine");
	},
	parrot(stream) { // what it is sent, at once
		stream.respond({":status": 200});
		stream.on("data", chunk => stream.write(chunk));
		stream.on("end", () => stream.end());
	},
	status(stream, request, code) {
		stream.respond({":status": Number(code)});
		stream.end("that is all");
	},
	alone(stream) {
		stream.respond({":status": 200, "grpc-encoding": "gzip", "grpc-status": "5"}, {endStream: true});
	},
	reset(stream, request, code) {
		stream.close(Number(code));
	},
	halfway(stream, request, code) {
		stream.respond({":status": 200});
		stream.write("half", () => setTimeout(() => stream.destroy(new Error(code)), 50));
	},
	refuse(stream, request, key) { // REFUSED_STREAM, once per key
		if (refusedOnce.has(key))
			return void answer(stream, request, {again: true});
		refusedOnce.add(key);
		stream.close(7);
	},
	late(stream) { // all of the content, and its end when somebody asks for /release
		stream.respond({":status": 200, "content-length": 4});
		stream.write("late");
		late.push(stream);
	},
	release(stream, request) {
		for (const other of late.splice(0))
			other.end();
		answer(stream, request, {});
	},
	tire(stream, request) { // from now on this connection serves nothing: ENHANCE_YOUR_CALM
		answer(stream, request, {});
		stream.session.tired = true;
	},
	require11(stream) {
		stream.close(13);
	},
	goaway(stream, request) {
		stream.session.goaway(0);
		answer(stream, request, {});
	},
	hang() {},
	early(stream) { // the answer before the request's body
		stream.respond({":status": 413});
		stream.end("too much");
	},
	nobody(stream) {
		stream.respond({":status": 204}, {endStream: true});
	},
	empty(stream) {
		stream.respond({":status": 200}, {endStream: true});
	},
};

function secret() {
	return fs.readFileSync(`${folder}/secret`, "utf8").trim();
}

function answer(stream, request, more) {
	const text = JSON.stringify({method: request.headers[":method"], path: request.headers[":path"], body: request.size,
		sha256: request.sum.digest("hex"), trailers: request.trailers, session: stream.session.number,
		headers: request.headers, ...more});
	stream.respond({":status": 200, "content-type": "application/json", "content-length": Buffer.byteLength(text)});
	stream.end(request.headers[":method"] === "HEAD" ? undefined : text);
}

// RFC 8441: echoes frames of up to 64 KiB, unmasked; a close frame is answered and ends the stream.
function webSocket(stream, headers) {
	let data = Buffer.alloc(0);
	if (headers[":path"] === "/refused")
		return void (stream.respond({":status": 403}), stream.end("no"));
	stream.respond({":status": 200});
	stream.write(Buffer.from([0x81, 2, 104, 105])); // a frame before any question
	stream.on("data", chunk => {
		data = Buffer.concat([data, chunk]);
		while (data.length >= 6) {
			const long = (data[1] & 127) === 126, at = long ? 8 : 6;
			const n = long ? data.readUInt16BE(2) : data[1] & 127;
			if (data.length < at + n)
				return;
			const key = data.subarray(at - 4, at), body = data.subarray(at, at + n).map((b, i) => b ^ key[i & 3]);
			stream.write(Buffer.concat([long ? Buffer.from([data[0], 126, n >> 8, n & 255]) : Buffer.from([data[0], n]), body]));
			if ((data[0] & 15) === 8)
				stream.end();
			data = data.subarray(at + n);
		}
	});
	stream.on("end", () => stream.end());
}

server.on("stream", (stream, headers) => {
	const request = {headers, size: 0, sum: crypto.createHash("sha256"), trailers: {}};
	const [, page, argument] = headers[":path"].split("?")[0].split("/");
	note({what: "h2", path: headers[":path"], method: headers[":method"], headers: Object.entries(headers),
		session: stream.session.number});
	stream.on("error", () => {});
	if (headers[":protocol"])
		return void webSocket(stream, headers);
	if (stream.session.tired)
		return void stream.close(11);
	stream.on("trailers", trailers => { request.trailers = trailers; });
	if (Object.hasOwn(pages, page))
		if (["whoami"].includes(page) === false)
			return void pages[page](stream, {...request, sum: crypto.createHash("sha256")}, argument);
	stream.on("data", chunk => { request.size += chunk.length; request.sum.update(chunk); });
	stream.on("end", () => (pages[page] ?? ((s, r) => answer(s, r, {})))(stream, request, argument));
});
// Node 20 refuses TLS with another protocol; node 18 would go on and answer 403 in HTTP/1.0.
server.on("unknownProtocol", socket => socket.destroy());
server.on("error", error => { throw error; });
server.listen(Number(port), address, () => fs.writeFileSync(`${folder}/h2origin.${port}.ready`, ""));
