// SPDX-License-Identifier: Apache-2.0
// A worker: GET /?method=METHOD&url=URL sends that request, and answers with one JSON object.
export default {
  async fetch(request) {
    const query = new URL(request.url).searchParams;
    const url = query.get("url");
    try {
      const response = await fetch(url, { method: query.get("method") });
      return Response.json({ url, status: response.status, body: await response.text() });
    } catch (error) {
      return Response.json({ url, error: String(error) });
    }
  },
};
