// SPDX-License-Identifier: Apache-2.0
// The gRPC service of lab.proto, without TLS where tls is null. Every call becomes a line of seen.jsonl, when it begins and when it was canceled.
import grpc from "@grpc/grpc-js";
import loader from "@grpc/proto-loader";
import { fileURLToPath } from "node:url";

export function loadLab() {
	const file = fileURLToPath(new URL("lab.proto", import.meta.url));
	return grpc.loadPackageDefinition(loader.loadSync(file, { keepCase: true, defaults: true })).lab;
}

export async function serveRpc(address, tls, note, isAuthenticated, acks) {
	const words = w => ({ text: w.text, data: w.data, n: w.n });
	// Notes the call, answers its metadata, refuses it without the credential.
	function begins(call) {
		const sent = call.metadata.getMap();
		const authenticated = isAuthenticated(sent);
		note({ path: call.getPath(), method: "POST", protocol: "HTTP/2.0", host: call.getHost(), authenticated,
			headers: Object.entries(sent).map(([k, v]) => [k, String(v)]) });
		call.on("cancelled", () => note({ what: "cancelled", path: call.getPath() }));
		const initial = new grpc.Metadata();
		initial.set("x-initial", sent["x-lab"] ?? "none");
		call.sendMetadata(initial);
		return authenticated;
	}
	function trailer(rest = {}) {
		const metadata = new grpc.Metadata();
		metadata.set("x-trailer", "after");
		metadata.set("x-trailer-bin", Buffer.from([0, 1, 255]));
		return { metadata, ...rest };
	}
	const stranger = () => trailer({ code: grpc.status.UNAUTHENTICATED, details: "who are you?" });
	const service = {
		Say(call, answer) {
			if (!begins(call))
				return answer(stranger());
			const { text } = call.request;
			if (text === "fail")
				return answer(trailer({ code: grpc.status.FAILED_PRECONDITION, details: "no such luck: 100 % ä\n" }));
			if (text === "never")
				return undefined;
			if (text.startsWith("ack "))
				acks.set(text.split(" ")[1], call.request.n);
			answer(null, words(call.request), trailer().metadata);
		},
		async Count(call) {
			if (!begins(call))
				return call.emit("error", stranger());
			const { text, n, data } = call.request;
			const times = [];
			for (let i = 0; i < n && !call.cancelled; i++) {
				const began = performance.now();
				call.write({ text: "event", n: i, data });
				if (text && !await acks.wait(text, i, 5000))
					return call.emit("error", { code: grpc.status.ABORTED, details: `nobody acknowledged ${i}` });
				times.push(performance.now() - began);
			}
			call.write({ text: JSON.stringify(times), n: -1 });
			call.end(trailer().metadata);
		},
		Sum(call, answer) {
			if (!begins(call))
				return answer(stranger());
			let n = 0, bytes = 0;
			call.on("data", w => {
				n++;
				bytes += w.data.length;
				if (w.text)
					acks.set(w.text, w.n);
			});
			call.on("end", () => answer(null, { n, text: String(bytes) }, trailer().metadata));
		},
		Chat(call) {
			if (!begins(call))
				return call.emit("error", stranger());
			call.on("data", w => call.write(words(w)));
			call.on("end", () => call.end(trailer().metadata));
		},
		Forbidden(call, answer) {
			begins(call);
			answer(null, { text: "should not be here" });
		},
	};
	const size = { "grpc.max_receive_message_length": 64 << 20, "grpc.max_send_message_length": 64 << 20 };
	const server = new grpc.Server(size);
	server.addService(loadLab().Lab.service, service);
	const key = tls ? grpc.ServerCredentials.createSsl(null, [{ private_key: tls.key, cert_chain: tls.cert }])
		: grpc.ServerCredentials.createInsecure();
	await new Promise((resolve, reject) => server.bindAsync(address, key, e => e ? reject(e) : resolve()));
}
