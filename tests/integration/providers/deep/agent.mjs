// SPDX-License-Identifier: Apache-2.0
// A deep agent with VethguardSandbox as its backend, and a model that is a script on localhost.
// agent.mjs SOCKET POLICY WHERE WORKDIR SCRIPT: WHERE is the backend's options as JSON, SCRIPT JSON, a list of commands that the model wants to have executed.
// One line of JSON: {outputs: what each command said, direct: what the backend's own methods did}.
import http from "node:http";
import { BaseChatModel } from "@langchain/core/language_models/chat_models";
import { AIMessage } from "@langchain/core/messages";
import { createDeepAgent } from "deepagents";
import { Vethguard } from "./vethguard/index.js";
import { VethguardSandbox } from "./vethguard/deepagents.js";

const [socket, policy, where, workdir, script] = process.argv.slice(2);
const steps = JSON.parse(script);

// Each request gets the next step; the last one an answer.
const server = http.createServer((request, response) => {
  request.resume().on("end", () => {
    const command = steps.shift();
    const call = command === undefined ? [] : [{ name: "execute", args: { command }, id: `call_${steps.length}`, type: "tool_call" }];
    response.end(JSON.stringify({ content: command === undefined ? "done" : "", tool_calls: call }));
  });
});
await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));

class Scripted extends BaseChatModel {
  _llmType() {
    return "scripted";
  }

  bindTools() {
    return this;
  }

  async _generate(messages) {
    const answer = await fetch(`http://127.0.0.1:${server.address().port}/`, { method: "POST", body: JSON.stringify(messages.length) });
    const message = new AIMessage(await answer.json());
    return { generations: [{ text: message.content, message }] };
  }
}

const backend = await VethguardSandbox.create({ client: new Vethguard({ socket }), name: "deep", policy, workdir, ...JSON.parse(where) });
const agent = createDeepAgent({ model: new Scripted({}), backend });
const result = await agent.invoke({ messages: [{ role: "user", content: "go" }] }, { recursionLimit: 50 });
const outputs = result.messages.filter((message) => message.getType() === "tool").map((message) => String(message.content));

const bytes = new Uint8Array(300000).map((_, i) => i * 7);
const up = await backend.uploadFiles([[`${workdir}/sub/data`, bytes], ["relative", bytes], ["/proc/none/x", bytes], [workdir, bytes]]);
const down = await backend.downloadFiles([`${workdir}/sub/data`, `${workdir}/none`, workdir, "relative", "/proc/1/environ"]);
const written = await backend.write(`${workdir}/note.txt`, "one\ntwo\n");
const read = await backend.read(`${workdir}/note.txt`);
const failed = await backend.execute("echo out; echo err >&2; exit 3");
const long = await backend.execute("yes | head -c 3000000");
await backend.close();
const after = await backend.execute("curl -sS -m 3 https://api.lab.test/whoami");
console.log(JSON.stringify({ outputs, last: result.messages.at(-1).content, id: backend.id, up: up.map((r) => r.error), down: down.map((r) => r.error),
  same: Buffer.compare(Buffer.from(down[0].content ?? []), Buffer.from(bytes)) === 0, written: written.error ?? null, read: JSON.stringify(read),
  failed, long: [long.output.length, long.truncated, long.exitCode], after: after.exitCode, env: backend.env, warnings: backend.warnings }));
process.exit(0);
