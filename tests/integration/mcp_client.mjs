// SPDX-License-Identifier: Apache-2.0
// An MCP client of mcp_server.mjs, for the inside of a sandbox: node mcp_client.mjs MODULES URL TRANSPORT
// Writes lines of JSON: the tools that the server lists, then the result of each call.
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [modules, url, kind] = process.argv.slice(2);
const require = createRequire(pathToFileURL(modules + "/"));
const { Client } = require("@modelcontextprotocol/sdk/client/index.js");
const { StreamableHTTPClientTransport } = require("@modelcontextprotocol/sdk/client/streamableHttp.js");
const { SSEClientTransport } = require("@modelcontextprotocol/sdk/client/sse.js");

const Transport = kind === "sse" ? SSEClientTransport : StreamableHTTPClientTransport;
const client = new Client({ name: "test", version: "1" });
await client.connect(new Transport(new URL(`${url}/${kind}`)));

const names = [];
let cursor;
do {
	const page = await client.listTools({ cursor });
	names.push(...page.tools.map((tool) => tool.name));
	cursor = page.nextCursor;
} while (cursor);
console.log(JSON.stringify({ tools: names }));

for (const call of [["search", { q: "x" }], ["read_file", { path: "/data/a" }], ["read_file", { path: "/etc/passwd" }],
	["read_file", { path: "/data/../etc" }], ["delete_all", {}]]) {
	try {
		const result = await client.callTool({ name: call[0], arguments: call[1] });
		console.log(JSON.stringify({ call, text: result.content[0].text }));
	} catch (error) {
		console.log(JSON.stringify({ call, error: String(error) }));
	}
}
await client.close();
process.exit(0);
