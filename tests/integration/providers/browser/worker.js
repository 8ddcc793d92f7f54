// SPDX-License-Identifier: Apache-2.0
// The message is {name: {url, method, headers, body, kind, seconds}}, tried one after the other; the answer has {status, text} or
// {error} of each.
const ask = async ({ url, method, headers, body, kind, seconds = 60 }) => {
  if (kind === "websocket")
    return new Promise((resolve, reject) => {
      const socket = new WebSocket(url);
      socket.onopen = () => socket.send(body);
      socket.onmessage = ({ data }) => { resolve({ status: 101, text: data }); socket.close(); };
      socket.onerror = () => reject(new Error("websocket"));
    });
  if (kind === "events")
    return new Promise((resolve, reject) => {
      const source = new EventSource(url);
      const seen = [];
      source.onmessage = ({ data }) => { if (seen.push(data) === 5) { source.close(); resolve({ status: 200, text: seen.join(",") }); } };
      source.onerror = () => { source.close(); reject(new Error("events")); };
    });
  const response = await fetch(url, { method, headers, body, credentials: "omit", signal: AbortSignal.timeout(seconds * 1000) });
  return { status: response.status, text: await response.text() };
};

onmessage = async ({ data: tries }) => {
  const out = {};
  for (const [name, what] of Object.entries(tries))
    out[name] = await ask(what).catch((error) => ({ error: String(error) }));
  postMessage({ isolated: crossOriginIsolated, shared: new SharedArrayBuffer(8).byteLength, out });
};
