/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: ACCEPT tcp://SOURCE:PORT asks whether a connection from SOURCE would reach
 * the sandbox's PORT. policy_expose_admits() answers, as in the worker. Sources by label cannot be
 * asked about, because a sandbox that is named here has no labels.
 */
#include "cli/policy/explain.h"
#include "vethguard/policy/expose.h"

#define JSON_MAX (1u << 20)

static struct policy_peer peer_of(const struct explain *x)
{
	const struct slice suffix = SLICE(POLICY_SANDBOX_SUFFIX);
	struct policy_peer peer = {.address = x->request.address};
	struct slice host = x->request.host;

	if (slice_equals(host, SLICE("host")) || slice_equals(host, SLICE("localhost")))
		peer.own = true;
	else if (host.n > suffix.n && slice_ends_with(host, suffix))
		peer.sandbox = slice_of(host.p, host.n - suffix.n);
	if (peer.address.family && ip_classify(&peer.address) == IP_LOOPBACK)
		peer.own = true;
	return peer;
}

const char *explain_accept_fault(const struct explain *x)
{
	const struct policy_peer peer = peer_of(x);

	if (x->url.scheme != POLICY_TCP)
		return "ports are exposed over TCP: ask about tcp://SOURCE:PORT, not";
	if (!peer.own && !peer.sandbox.n && !peer.address.family)
		return "a source is host, an address or NAME" POLICY_SANDBOX_SUFFIX ", not";
	return NULL;
}

static void print_text(const struct explain *x, uint32_t index, bool admitted)
{
	const struct policy *policy = &x->loaded.policy;
	char line[POLICY_EXPOSE_TEXT_MAX];
	struct policy_expose expose;

	printf("policy %.*s\n", SLICE_ARG(policy_name(policy)));
	for (uint32_t i = 0; i < policy_expose_count(policy); i++) {
		policy_expose(policy, i, &expose);
		printf("  expose %-27.*s %-15s %s\n", SLICE_ARG(expose.name),
		        i != index ? "another port"
		        : admitted ? "matches"
		                   : "another source",
		        policy_expose_text(policy, i, line, sizeof(line)));
	}
	printf("verdict: %s\n", admitted ? "allow"
	                        : index == POLICY_NONE
	                                ? "deny: the port is not exposed"
	                                : "deny: no entry of from: names this source");
}

static int print_json(const struct explain *x, uint32_t index, bool admitted, int status)
{
	struct policy_expose expose;
	struct buf out;
	struct json j;

	buf_init(&out, JSON_MAX);
	json_begin(&j, &out);
	policy_expose(&x->loaded.policy, index, &expose);
	json_object(&j, NULL);
	json_string(&j, "policy", policy_name(&x->loaded.policy), 0);
	json_literal(&j, "verdict", admitted ? "allow" : "deny");
	json_string(&j, "rule", expose.name, 0);
	json_bool(&j, "exposed", index != POLICY_NONE);
	json_end_object(&j);
	return policy_print_json(&j, &out, status);
}

int explain_accept(const struct explain *x, bool as_json)
{
	const struct policy *policy = &x->loaded.policy;
	const struct policy_peer peer = peer_of(x);
	uint32_t index = policy_expose_find(policy, x->request.port);
	bool admitted = index != POLICY_NONE && policy_expose_admits(policy, index, &peer);

	int status = admitted ? POLICY_EXIT_GOOD : POLICY_EXIT_DENIED;

	if (as_json)
		return print_json(x, index, admitted, status);
	print_text(x, index, admitted);
	return status;
}
