// SPDX-License-Identifier: Apache-2.0
// WebSocket: /ws/echo, /ws/deflate (echo, with permessage-deflate if it is offered), /ws/early (three messages together with
// the 101), /ws/close/CODE, /ws/fragments/N (one message of N fragments), /ws/ping (pings, tells what the pong held).
import { WebSocketServer } from "ws";

function talk(ws, kind, value) {
	ws.on("error", () => {});
	if (kind === "close")
		return ws.close(Number(value), "because");
	if (kind === "fragments") {
		for (let i = 0; i < Number(value); i++)
			ws.send(String(i).padStart(1000, "."), { binary: false, fin: i + 1 === Number(value) });
		return;
	}
	if (kind === "ping") {
		ws.on("pong", data => ws.send("pong " + data));
		ws.ping("are you there?");
	}
	ws.on("message", (data, binary) => ws.send(data, { binary }));
	ws.on("close", (code, reason) => (ws.heard = [code, String(reason)]));
}

export function serveSockets(server, noteRequest) {
	const plain = new WebSocketServer({ noServer: true, maxPayload: 64 << 20 });
	const deflating = new WebSocketServer({ noServer: true, perMessageDeflate: { threshold: 0 } });
	server.on("upgrade", (req, socket, head) => {
		const [, , kind, value] = req.url.split("?")[0].split("/");
		noteRequest(req);
		socket.on("error", () => {});
		socket.setNoDelay(true);
		socket.cork();
		(kind === "deflate" ? deflating : plain).handleUpgrade(req, socket, head, ws => {
			if (kind === "early")
				for (const word of ["one", "two", "three"])
					ws.send(word);
			socket.uncork();
			talk(ws, kind, value);
		});
	});
}
