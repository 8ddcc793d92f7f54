/* SPDX-License-Identifier: Apache-2.0 */
/* What all suggested rules have in common: their destinations, and what is counted of their asks.
 */
#include "cli/audit/suggest.h"

int suggest_compare_destinations(const struct suggest_ask *a, const struct suggest_ask *b)
{
	int c = strcmp(a->policy, b->policy);

	if (c == 0)
		c = strcmp(a->host, b->host);
	if (c == 0)
		c = (a->scheme > b->scheme) - (a->scheme < b->scheme);
	return c ? c : (a->port > b->port) - (a->port < b->port);
}

bool suggest_same_destination(const struct suggest_ask *a, const struct suggest_ask *b)
{
	return suggest_compare_destinations(a, b) == 0;
}

const char *suggest_destination_of(const struct suggest_ask *ask, char out[SUGGEST_DESTINATION_MAX])
{
	bool bracket = strchr(ask->host, ':') && ask->host[0] != '[';
	int n = snprintf(out, SUGGEST_DESTINATION_MAX, "%s://%s%s%s",
	        policy_scheme_name(ask->scheme), bracket ? "[" : "", ask->host, bracket ? "]" : "");

	if (n > 0 && n < SUGGEST_DESTINATION_MAX &&
	        !((ask->scheme == POLICY_HTTPS && ask->port == 443) ||
	                (ask->scheme == POLICY_HTTP && ask->port == 80)))
		snprintf(out + n, SUGGEST_DESTINATION_MAX - (size_t)n, ":%u", ask->port);
	return out;
}

void suggest_note_credential(struct suggest_rule *rule, const char *credential)
{
	if (credential && rule->credential && strcmp(credential, rule->credential) != 0)
		rule->several = true;
	if (credential)
		rule->credential = credential;
}

void suggest_rule_count(struct suggest_rule *rule, const struct suggest_ask *ask)
{
	rule->count += ask->count;
	suggest_note_credential(rule, ask->credential);
	rule->failed += ask->failed;
	if (!rule->event || ask->last_ms > rule->last_ms) {
		rule->last_ms = ask->last_ms;
		rule->event = ask->event;
	}
}
