// SPDX-License-Identifier: Apache-2.0
// The parts of the OpenAI and Anthropic APIs that the SDKs are tried with. A request with the field x-stream gets its next
// event only when the one before was acknowledged (see acks.mjs).
const words = ["The ", "veth ", "is ", "guarded", "."];

async function send(req, res, acks, events) {
	res.writeHead(200, { "content-type": "text/event-stream" });
	for (const [i, event] of events.entries()) {
		res.write(event);
		if (req.headers["x-stream"] && !await acks.wait(req.headers["x-stream"], i, 5000))
			break;
	}
	res.end();
}

export function anthropic(req, res, body, acks, answer) {
	const wish = JSON.parse(body);
	const message = { id: "msg_1", type: "message", role: "assistant", model: wish.model, content: [], stop_reason: null,
		stop_sequence: null, usage: { input_tokens: 3, output_tokens: 0 } };
	if (!wish.stream)
		return answer(res, 200, { ...message, content: [{ type: "text", text: words.join("") }], stop_reason: "end_turn" });
	const event = (type, rest) => `event: ${type}\ndata: ${JSON.stringify({ type, ...rest })}\n\n`;
	return send(req, res, acks, [
		event("message_start", { message }) + event("content_block_start", { index: 0, content_block: { type: "text", text: "" } }) +
			event("ping", {}),
		...words.map(text => event("content_block_delta", { index: 0, delta: { type: "text_delta", text } })),
		event("content_block_stop", { index: 0 }) +
			event("message_delta", { delta: { stop_reason: "end_turn", stop_sequence: null }, usage: { output_tokens: 5 } }) +
			event("message_stop", {}),
	]);
}

export function openai(req, res, url, body, acks, answer) {
	if (url.pathname === "/v1/models")
		return answer(res, 200, { object: "list", data: [{ id: "lab-1", object: "model", created: 1, owned_by: "lab" }] });
	if (url.pathname === "/v1/files")
		return answer(res, 200, { id: "file-1", object: "file", bytes: body.length, filename: "x.bin", purpose: "assistants" });
	if (url.pathname !== "/v1/chat/completions")
		return answer(res, 404, { error: { message: "no such thing", type: "invalid_request_error" } });
	const wish = JSON.parse(body);
	const base = { id: "c1", created: 1, model: wish.model };
	if (!wish.stream)
		return answer(res, 200, { ...base, object: "chat.completion",
			choices: [{ index: 0, finish_reason: "stop", message: { role: "assistant", content: words.join("") } }] });
	const chunk = (delta, finish_reason = null) => "data: " +
		JSON.stringify({ ...base, object: "chat.completion.chunk", choices: [{ index: 0, delta, finish_reason }] }) + "\n\n";
	return send(req, res, acks, [...words.map(content => chunk({ content })), chunk({}, "stop") + "data: [DONE]\n\n"]);
}
