// SPDX-License-Identifier: Apache-2.0
// An MCP server with the protocol's own SDK, on each of the SDK's transports: node mcp_server.mjs MODULES CERTIFICATE KEY ADDRESS PORT
// Writes a line of JSON for each call of a tool.
import { createServer } from "node:https";
import { createRequire } from "node:module";
import { readFileSync } from "node:fs";
import { randomUUID } from "node:crypto";
import { pathToFileURL } from "node:url";

const [modules, certificate, key, address, port] = process.argv.slice(2);
const require = createRequire(pathToFileURL(modules + "/"));
const { Server } = require("@modelcontextprotocol/sdk/server/index.js");
const { StreamableHTTPServerTransport } = require("@modelcontextprotocol/sdk/server/streamableHttp.js");
const { SSEServerTransport } = require("@modelcontextprotocol/sdk/server/sse.js");
const { ListToolsRequestSchema, CallToolRequestSchema } = require("@modelcontextprotocol/sdk/types.js");

const tools = ["search", "delete_all", "read_file", "exec"].map((name) => ({
	name, description: `does ${name}`, inputSchema: { type: "object", properties: { path: { type: "string" } } } }));

// The server lists two tools per page.
function makeServer() {
	const server = new Server({ name: "test", version: "1" }, { capabilities: { tools: {} } });
	server.setRequestHandler(ListToolsRequestSchema, async ({ params }) => {
		const from = Number(params?.cursor ?? 0);
		return { tools: tools.slice(from, from + 2), ...(from + 2 < tools.length ? { nextCursor: String(from + 2) } : {}) };
	});
	server.setRequestHandler(CallToolRequestSchema, async ({ params }) => {
		console.log(JSON.stringify({ tool: params.name, arguments: params.arguments }));
		return { content: [{ type: "text", text: `${params.name} was called` }] };
	});
	return server;
}

const sessions = new Map();

async function streamable(request, response, json) {
	let transport = sessions.get(request.headers["mcp-session-id"]);
	if (!transport) {
		transport = new StreamableHTTPServerTransport({ sessionIdGenerator: randomUUID, enableJsonResponse: json,
			onsessioninitialized: (id) => sessions.set(id, transport) });
		await makeServer().connect(transport);
	}
	await transport.handleRequest(request, response);
}

async function answer(request, response) {
	const url = new URL(request.url, "https://x");
	if (url.pathname === "/http" || url.pathname === "/json")
		return streamable(request, response, url.pathname === "/json");
	if (url.pathname === "/sse" && request.method === "GET") {
		const transport = new SSEServerTransport("/messages", response);
		sessions.set(transport.sessionId, transport);
		return makeServer().connect(transport);
	}
	const transport = sessions.get(url.searchParams.get("sessionId"));
	if (url.pathname === "/messages" && transport)
		return transport.handlePostMessage(request, response);
	response.writeHead(404).end();
}

createServer({ cert: readFileSync(certificate), key: readFileSync(key) }, (request, response) => {
	answer(request, response).catch((error) => {
		console.log(String(error.stack));
		response.destroy();
	});
}).listen(Number(port), address, () => console.log("ready"));
