// SPDX-License-Identifier: Apache-2.0
// The parts of GitHub's REST and GraphQL APIs that octokit is tried with, below /api/v3 and /api/graphql.
export function github(req, res, url, body, answer) {
	const path = url.pathname.replace("/api/v3", "");
	if (path === "/user")
		return answer(res, 200, { login: "lab", id: 1 });
	if (path === "/repos/acme/widgets/issues" && req.method === "POST")
		return answer(res, 201, { number: 8, title: JSON.parse(body).title });
	if (path === "/repos/acme/widgets/issues") {
		const page = Number(url.searchParams.get("page") ?? 1);
		const next = `<https://${url.searchParams.get("host") ?? req.headers.host ?? req.headers[":authority"]}${url.pathname}?page=${page + 1}>; rel="next"`;
		return answer(res, 200, [{ number: page * 2 - 1 }, { number: page * 2 }], page < 3 ? { link: next } : {});
	}
	if (path === "/repos/acme/widgets/contents/big.bin")
		return answer(res, 200, Buffer.alloc(1 << 20, "x"), { "content-type": "application/octet-stream" });
	if (url.pathname === "/api/graphql")
		return answer(res, 200, { data: { viewer: { login: "lab" } } });
	answer(res, 404, { message: "Not Found" });
}
