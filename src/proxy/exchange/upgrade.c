/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Upgrades other than to a WebSocket (RFC 9110 section 7.8): `kubectl exec` asks for SPDY/3.1,
 * `docker attach` for tcp. What follows the 101 is relayed unread, so the rule has to name the
 * protocol. Clients also ask for h2c or TLS whenever a server may take it, and do without
 * otherwise: those are not passed on. A request for any other protocol that the rule does not name
 * is refused, because the client would otherwise wait for a protocol that never comes.
 */
#include "proxy/client/client.h"
#include "proxy/exchange/authorize.h"

const char upgrade_not_passed_on[] =
        "its upgrade to another version of HTTP or to TLS was not passed on";

/* The next protocol that the request asks for. *field and *rest say where to go on: 0 and empty at
 * first. */
static bool next_protocol(
        const struct http_fields *fields, size_t *field, struct slice *rest, struct slice *out)
{
	for (;;) {
		while (!rest->n) {
			const struct http_field *f;

			if (*field == fields->count)
				return false;
			f = &fields->items[(*field)++];
			if (f->known == HTTP_UPGRADE)
				*rest = f->value;
		}
		ptrdiff_t comma = slice_find_byte(*rest, ',');
		size_t n = comma < 0 ? rest->n : (size_t)comma;

		*out = slice_trim(slice_of(rest->p, n));
		*rest = comma < 0 ? SLICE("") : slice_of(rest->p + n + 1, rest->n - n - 1);
		if (out->n)
			return true;
	}
}

static bool is_named(struct slice protocol, struct slice name)
{
	return protocol.n >= name.n &&
	       slice_equals_ignoring_case(slice_of(protocol.p, name.n), name) &&
	       (protocol.n == name.n || protocol.p[name.n] == '/');
}

/* True if a client can do without this protocol. */
static bool is_optional(struct slice protocol)
{
	return is_named(protocol, SLICE("h2c")) || is_named(protocol, SLICE("http")) ||
	       is_named(protocol, SLICE("tls"));
}

enum upgrade_verdict upgrade_authorize(const struct policy *policy,
        const struct policy_decision *decision, const struct http_fields *fields,
        struct slice *protocol)
{
	enum upgrade_verdict verdict = UPGRADE_NONE;
	struct slice rest = SLICE(""), one;
	size_t field = 0;

	while (next_protocol(fields, &field, &rest, &one)) {
		if (is_optional(one)) {
			if (verdict == UPGRADE_NONE)
				verdict = UPGRADE_DROPPED;
			continue;
		}
		if (one.n <= POLICY_UPGRADE_MAX && policy_allows_upgrade(policy, decision, one)) {
			*protocol = one;
			return UPGRADE_ALLOWED;
		}
		if (verdict != UPGRADE_DENIED)
			*protocol = one;
		verdict = UPGRADE_DENIED;
	}
	return verdict;
}

const char *upgrade_check_answer(struct slice asked, const struct http_fields *response)
{
	struct slice rest = SLICE(""), one, more;
	size_t field = 0;

	if (!next_protocol(response, &field, &rest, &one) ||
	        !slice_equals_ignoring_case(one, asked) ||
	        next_protocol(response, &field, &rest, &more))
		return "the upstream switched to another protocol than it was asked for";
	return NULL;
}
