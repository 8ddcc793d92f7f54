/* SPDX-License-Identifier: Apache-2.0 */
/* Decides what is never suggested. A rule is easily pasted, so a person has to decide about
 * everything that may be an attack. */
#include <ctype.h>

#include "vethguard/policy/method.h"
#include "vethguard/policy/url.h"

#include "cli/audit/suggest.h"

static const char *const texts[] = {
        [SUGGEST_FINE] = "",
        [SUGGEST_DENY_RULE] = ("a deny rule refuses it on purpose: name it under "
                               "that rule's except, if it is meant"),
        [SUGGEST_UPGRADE] = ("its upgrade would be relayed unread: name the protocol under the "
                             "rule's upgrade, if it is meant"),
        [SUGGEST_CONDITION] = ("a rule allows the place under conditions, which this request does "
                               "not meet: widen them by hand, if it is meant"),
        [SUGGEST_MANY] = ("it asks for more than the log has, or programs could read it in "
                          "different ways"),
        [SUGGEST_FORCE] = ("a push that may lose commits, deletes a ref or moves a tag: write "
                           "force or delete by hand, if it is meant"),
        [SUGGEST_REFS] = ("a push to refs that the log does not have: name them under the rule's "
                          "git, if it is meant"),
        [SUGGEST_NO_RULE] = "no rule would allow it: see 'vethguard audit show'",
        [SUGGEST_FINDING] = "a finding is about it: see 'vethguard audit show'",
        [SUGGEST_PLACEHOLDER] = "it may carry a placeholder of a credential",
        [SUGGEST_METADATA] = "a metadata service hands out credentials",
        [SUGGEST_ADDRESS] = "not a public address: write the rule by hand, if it is meant",
        [SUGGEST_LONG] = "long enough to carry data out",
        [SUGGEST_STRANGE] = "no rule can be written for this alone",
        [SUGGEST_NAME_ONLY] = "only its name was resolved; no request was seen",
        [SUGGEST_UNSEEN] = "no request was seen: the client does not trust the sandbox's CA, or it "
                           "gave up",
        [SUGGEST_PACKETS] = "packets, of which a tcp:// or udp:// rule written by hand relays some",
        [SUGGEST_ALLOWED] = "the policy allows it by now",
};
_Static_assert(sizeof(texts) / sizeof(texts[0]) == SUGGEST_DOUBT_COUNT, "one text per doubt");

const char *suggest_exclusion_text(enum suggest_exclusion exclusion)
{
	return texts[exclusion];
}

static bool contains(struct slice text, struct slice word)
{
	for (size_t i = 0; i + word.n <= text.n; i++)
		if (slice_equals_ignoring_case(slice_of(text.p + i, word.n), word))
			return true;
	return false;
}

/* Every form of a placeholder contains this word. Text hidden by '%' escapes is left for a person
 * to read. */
static bool may_hold_placeholder(struct slice text)
{
	return contains(text, SLICE("vethguard"));
}

static bool is_metadata_name(struct slice host)
{
	static const struct slice names[] = {
	        {"metadata", 8},
	        {"metadata.google.internal", 24},
	        {"metadata.goog", 13},
	        {"instance-data", 13},
	        {"instance-data.ec2.internal", 26},
	        {"metadata.azure.internal", 23},
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (slice_equals_ignoring_case(host, names[i]))
			return true;
	return false;
}

static bool has_long_label(struct slice host)
{
	size_t label = 0;

	for (size_t i = 0; i < host.n; i++) {
		label = host.p[i] == '.' ? 0 : label + 1;
		if (label > SUGGEST_LABEL_MAX)
			return true;
	}
	return false;
}

static enum suggest_exclusion exclusion_of_host(struct slice host)
{
	char canonical[POLICY_HOST_MAX + 1];
	struct ip ip;
	size_t n;

	if (ip_parse(host, &ip)) {
		enum ip_class class = ip_classify(&ip);

		return class == IP_PUBLIC     ? SUGGEST_FINE
		       : class == IP_METADATA ? SUGGEST_METADATA
		                              : SUGGEST_ADDRESS;
	}
	if (!url_canonical_host(host, canonical, &n) || !slice_equals(host, slice_of(canonical, n)))
		return SUGGEST_STRANGE;
	return is_metadata_name(host) ? SUGGEST_METADATA
	       : has_long_label(host) ? SUGGEST_LONG
	                              : SUGGEST_FINE;
}

/* True for capitals, digits, '-' and '_': a policy takes these however YAML reads them. A rule
 * would not help a method that is refused under every policy. */
static bool is_method(const char *method)
{
	size_t n = strlen(method);

	for (size_t i = 0; i < n; i++)
		if (!isupper((unsigned char)method[i]) && !isdigit((unsigned char)method[i]) &&
		        method[i] != '-' && method[i] != '_')
			return false;
	return policy_method_of(slice_of(method, n)) == POLICY_METHOD_FINE &&
	       isupper((unsigned char)method[0]);
}

static enum suggest_exclusion exclusion_of_path(struct slice path)
{
	char canonical[POLICY_PATH_MAX];
	size_t n;

	if (path.n > SUGGEST_PATH_MAX)
		return SUGGEST_LONG;
	/* A '*' would match more than itself. */
	if (slice_find_byte(path, '*') >= 0 || slice_find_byte(path, '"') >= 0 ||
	        !url_canonical_path(path, canonical, sizeof(canonical), &n) ||
	        !slice_equals(path, slice_of(canonical, n)))
		return SUGGEST_STRANGE;
	return SUGGEST_FINE;
}

enum suggest_exclusion suggest_exclusion_of(const struct suggest_ask *ask, struct slice query)
{
	struct slice path = slice_from_string(ask->path), host = slice_from_string(ask->host);
	enum suggest_exclusion exclusion = exclusion_of_host(host);

	if (exclusion != SUGGEST_FINE)
		return exclusion;
	if (may_hold_placeholder(host) || may_hold_placeholder(path) || may_hold_placeholder(query))
		return SUGGEST_PLACEHOLDER;
	if (ask->port == 0 || (ask->method && !is_method(ask->method)))
		return SUGGEST_STRANGE;
	return ask->path ? exclusion_of_path(path) : SUGGEST_FINE;
}
