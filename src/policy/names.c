/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: the policy language's words for the enums, in one place. */
#include <assert.h>
#include <stdio.h>

#include "vethguard/policy/registry.h"

static const struct {
	const char *name;
	uint16_t port;
} schemes[] = {
        [POLICY_HTTPS] = {"https", 443},
        [POLICY_HTTP] = {"http", 80},
        [POLICY_TCP] = {"tcp", 0},
        [POLICY_UDP] = {"udp", 0},
};
static_assert(sizeof(schemes) / sizeof(schemes[0]) == POLICY_SCHEME_COUNT, "one name per scheme");

static const char *const reasons[] = {
        [POLICY_REASON_RULE] = "a deny rule of the policy names it",
        [POLICY_REASON_DEFAULT] = "no rule of the policy names the destination",
        [POLICY_REASON_PORT] = "the policy names the host, but not this port or scheme",
        [POLICY_REASON_METHOD] = "the policy allows the destination, but not this method",
        [POLICY_REASON_PATH] = "the policy allows the destination, but not this path",
        [POLICY_REASON_READING] =
                "the policy allows this path as it is written, but not as some servers read it",
        [POLICY_REASON_BAD_REQUEST] = "the request cannot be judged",
        [POLICY_REASON_UPGRADE] =
                "the policy allows the request, but not its upgrade to another protocol",
        [POLICY_REASON_FOREIGN] =
                "the policy allows the request with its own credential only, not with another",
        [POLICY_REASON_SIGNATURE] =
                "the policy allows the request, but not the signature that it asks for",
        [POLICY_REASON_CONDITION] = ("the policy allows the destination, method and path, but not "
                                     "this query, these header fields or this body"),
        [POLICY_REASON_LEAK] = "the request carries a credential's placeholder to where it does "
                               "not belong",
        [POLICY_REASON_SECRET] = "the request carries a secret that the policy does not let out",
        [POLICY_REASON_CALLBACK] = "the request cannot be decided for another proxy",
        [POLICY_REASON_FLOOR] = "the policy allows it, but the organisation's floor does not",
        [POLICY_REASON_SCOPE] = "the policy allows the destination, but the credential may not be "
                                "used for what the request asks for",
};
static_assert(sizeof(reasons) / sizeof(reasons[0]) == POLICY_REASON_COUNT, "one text per reason");

const char *policy_scheme_name(enum policy_scheme scheme)
{
	return (unsigned)scheme < POLICY_SCHEME_COUNT ? schemes[scheme].name : "unknown";
}

uint16_t policy_scheme_default_port(enum policy_scheme scheme)
{
	return (unsigned)scheme < POLICY_SCHEME_COUNT ? schemes[scheme].port : 0;
}

const char *policy_reason_text(enum policy_reason reason)
{
	return (unsigned)reason < POLICY_REASON_COUNT ? reasons[reason] : "unknown";
}

const char *policy_source_text(
        const struct policy_credential *credential, char out[POLICY_SOURCE_TEXT_MAX])
{
	char text[POLICY_SOURCE_TEXT_MAX - 16];

	if (credential->source == POLICY_SOURCE_EXEC)
		snprintf(out, POLICY_SOURCE_TEXT_MAX, "exec:[%s%s]",
		        slice_escape(credential->argv[0], text, sizeof(text)),
		        credential->argc > 1 ? ", ..." : "");
	else if (credential->source == POLICY_SOURCE_FETCH)
		snprintf(out, POLICY_SOURCE_TEXT_MAX, "%.*s:%s", SLICE_ARG(credential->argv[0]),
		        slice_escape(credential->location, text, sizeof(text)));
	else if (credential->source == POLICY_SOURCE_SEALED)
		snprintf(out, POLICY_SOURCE_TEXT_MAX, "sealed");
	else
		snprintf(out, POLICY_SOURCE_TEXT_MAX, "%s:%s",
		        credential->source == POLICY_SOURCE_FILE      ? "file"
		        : credential->source == POLICY_SOURCE_SYSTEMD ? "systemd"
		                                                      : "env",
		        slice_escape(credential->location, text, sizeof(text)));
	return out;
}

const char *policy_inject_text(const struct policy_credential *c, char out[POLICY_INJECT_TEXT_MAX])
{
	char field[POLICY_INJECT_TEXT_MAX / 4], prefix[POLICY_INJECT_TEXT_MAX / 4];
	struct policy_registry registry;

	slice_escape(c->field, field, sizeof(field));
	slice_escape(c->prefix, prefix, sizeof(prefix));
	switch (c->inject) {
	case POLICY_INJECT_BEARER:
		snprintf(out, POLICY_INJECT_TEXT_MAX, "Authorization: Bearer ***");
		break;
	case POLICY_INJECT_BASIC:
		snprintf(out, POLICY_INJECT_TEXT_MAX, "Authorization: Basic ***");
		break;
	case POLICY_INJECT_QUERY:
		snprintf(out, POLICY_INJECT_TEXT_MAX, "?%s=***", field);
		break;
	case POLICY_INJECT_COOKIE:
		snprintf(out, POLICY_INJECT_TEXT_MAX, "Cookie: %s=***", field);
		break;
	case POLICY_INJECT_CLIENT_CERTIFICATE:
		snprintf(out, POLICY_INJECT_TEXT_MAX, "a certificate in the TLS handshake%s%s",
		        field[0] ? ", signed by the key " : "", field);
		break;
	case POLICY_INJECT_POSTGRES:
		slice_escape(c->username, field, sizeof(field));
		snprintf(out, POLICY_INJECT_TEXT_MAX, "PostgreSQL's login as %s", field);
		break;
	case POLICY_INJECT_DOCKER_REGISTRY:
		policy_registry(c, &registry);
		slice_escape(registry.realm, field, sizeof(field));
		snprintf(out, POLICY_INJECT_TEXT_MAX,
		        "Authorization: Basic *** to %s, and tokens of it to the registry", field);
		break;
	case POLICY_INJECT_HEADER:
	default:
		snprintf(out, POLICY_INJECT_TEXT_MAX, "%s: %s***", field, prefix);
	}
	return out;
}
