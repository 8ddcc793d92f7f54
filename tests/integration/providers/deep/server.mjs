// SPDX-License-Identifier: Apache-2.0
// A deep agent that lives in a sandbox, with an API: POST /ask {commands} has its model want these commands executed, one after the other,
// and answers {outputs, last, thought}. The model is asked for each step at https://api.lab.test/whoami, as one behind a key.
import http from "node:http";
import { BaseChatModel } from "@langchain/core/language_models/chat_models";
import { AIMessage } from "@langchain/core/messages";
import { createDeepAgent, LocalShellBackend } from "deepagents";

const [port, workdir] = process.argv.slice(2);

class Scripted extends BaseChatModel {
  constructor(steps) {
    super({});
    this.steps = steps;
    this.thought = [];
  }

  _llmType() {
    return "scripted";
  }

  bindTools() {
    return this;
  }

  async _generate() {
    const answer = await fetch("https://api.lab.test/whoami", { headers: { authorization: `Bearer ${process.env.API_KEY}` } });
    this.thought.push((await answer.json()).authenticated);
    const command = this.steps.shift();
    const calls = command === undefined ? [] : [{ name: "execute", args: { command }, id: `call_${this.steps.length}`, type: "tool_call" }];
    const message = new AIMessage({ content: command === undefined ? "done" : "", tool_calls: calls });
    return { generations: [{ text: message.content, message }] };
  }
}

async function ask(steps) {
  const model = new Scripted(steps);
  const backend = new LocalShellBackend({ rootDir: workdir, inheritEnv: true });
  const agent = createDeepAgent({ model, backend });
  const result = await agent.invoke({ messages: [{ role: "user", content: "go" }] }, { recursionLimit: 50 });
  const outputs = result.messages.filter((message) => message.getType() === "tool").map((message) => String(message.content));
  return { outputs, last: result.messages.at(-1).content, thought: model.thought };
}

http.createServer(async (request, response) => {
  const pieces = [];
  for await (const piece of request) pieces.push(piece);
  try {
    response.end(JSON.stringify(await ask(JSON.parse(Buffer.concat(pieces)).commands)));
  } catch (error) {
    response.writeHead(500).end(JSON.stringify({ error: String(error) }));
  }
}).listen(Number(port), "0.0.0.0", () => console.log("ready"));
