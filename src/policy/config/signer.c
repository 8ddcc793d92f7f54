/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who signs tokens of sessions, and what the claims of such a token mean:
 *
 *   gateway:
 *     signers:
 *       - name: control
 *         issuer: https://control.example
 *         audience: vethguard
 *         keys: control.jwks
 *         rules:
 *           - {when: {tier: gold, sub: "agent-*"}, policy: gold.yaml, vars: {tenant: org}}
 *       - {name: langsmith, issuer: https://api.smith.langchain.com, audience: ..., keys: ...,
 *          callbacks: true}
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "policy/config/read.h"
#include "vethguard/policy/json_find.h"
#include "policy/load/loader.h"

#define LIFETIME_DEFAULT_S 86400u
#define LIFETIME_CALLBACK_S 600u /* the default for signatures of callbacks */
#define LIFETIME_MIN_MS 60000
#define LIFETIME_MAX_MS (366 * 86400000ull)
#define REFRESH_DEFAULT_MS 300000
#define REFRESH_MIN_MS 5000
#define REFRESH_MAX_MS 86400000
#define SESSION_CLAIM_DEFAULT "jti"

static const char *const algorithm_names[] = {
        [CONFIG_EDDSA] = "EdDSA", [CONFIG_ES256] = "ES256", [CONFIG_RS256] = "RS256", NULL};
_Static_assert(sizeof(algorithm_names) / sizeof(algorithm_names[0]) == CONFIG_ALGORITHM_COUNT + 1,
        "a name per algorithm");

const char *config_algorithm_name(enum config_algorithm algorithm)
{
	return algorithm_names[algorithm];
}

static bool copy(
        struct tree *tree, const struct tree_node *node, const char *what, char *out, size_t size)
{
	struct slice text;

	if (!tree_text(tree, node, what, size - 1, &text))
		return false;
	memcpy(out, text.p, text.n);
	return true;
}

/* --- a rule --- */

static bool read_claim_name(
        struct tree *tree, const struct tree_node *node, char out[CONFIG_CLAIM_MAX + 1])
{
	char quoted[TREE_QUOTE_MAX];
	struct slice text;

	if (!tree_text(tree, node, "a claim", CONFIG_CLAIM_MAX, &text))
		return false;
	if (!json_tree_name_is_sound(text)) {
		tree_error(tree, node, "%s is not a JSON pointer: /kubernetes.io/pod/uid",
		        tree_quote(text, quoted));
		return false;
	}
	memcpy(out, text.p, text.n);
	return true;
}

/* A mapping of claims to values, or (swapped) of variables or labels to claims. */
static void read_claims(struct tree *tree, const struct tree_node *map, const char *what,
        bool swapped, struct config_claim *claims, size_t *count)
{
	if (!map || !tree_is_map(tree, map, what))
		return;
	for (const struct tree_item *item = map->first; item; item = item->next) {
		struct config_claim *c = &claims[*count];

		if (*count == CONFIG_SIGNER_CLAIMS_MAX) {
			tree_error(tree, item->key, "more than %d in %s", CONFIG_SIGNER_CLAIMS_MAX,
			        what);
			return;
		}
		if (read_claim_name(tree, swapped ? item->value : item->key, c->claim) &&
		        copy(tree, swapped ? item->key : item->value, what, c->text,
		                sizeof(c->text)))
			(*count)++;
	}
}

static void read_from(struct tree *tree, struct tree_node *node, struct config_signer_rule *rule)
{
	struct tree_item single;
	char quoted[TREE_QUOTE_MAX];

	for (const struct tree_item *item = node ? tree_items(tree, node, "from", &single) : NULL;
	        item; item = item->next) {
		struct slice text;

		if (rule->from_count == CONFIG_SIGNER_FROM_MAX) {
			tree_error(tree, item->value, "more than %d networks in from",
			        CONFIG_SIGNER_FROM_MAX);
			return;
		}
		if (!tree_text(tree, item->value, "from", IP_TEXT_MAX + 8, &text))
			return;
		if (ip_prefix_parse(text, &rule->from[rule->from_count]))
			rule->from_count++;
		else
			tree_error(tree, item->value,
			        "from %s must be a network such as 10.20.0.0/16, without bits "
			        "behind it",
			        tree_quote(text, quoted));
	}
}

static void read_rule(
        struct tree *tree, const struct tree_node *map, struct config_signer_rule *rule)
{
	static const char *const known[] = {"when", "policy", "vars", "labels", "from", NULL};
	const struct tree_node *policy;

	if (!tree_is_map(tree, map, "a rule"))
		return;
	tree_check_keys(tree, map, known, NULL);
	read_claims(tree, tree_get(map, "when"), "when", false, rule->when, &rule->when_count);
	read_claims(tree, tree_get(map, "vars"), "vars", true, rule->vars, &rule->var_count);
	read_claims(
	        tree, tree_get(map, "labels"), "labels", true, rule->labels, &rule->label_count);
	read_from(tree, tree_get(map, "from"), rule);
	policy = tree_get(map, "policy");
	if (policy)
		config_read_path_or_bundle(tree, policy, "policy", ".yaml", rule->policy);
	else
		tree_error(tree, map, "policy is missing: which file decides for such a session?");
}

static void read_rules(struct tree *tree, const struct tree_node *list, struct config_signer *s)
{
	if (!tree_is_list(tree, list, "rules"))
		return;
	for (const struct tree_item *item = list->first; item; item = item->next) {
		if (s->rule_count == CONFIG_SIGNER_RULES_MAX) {
			tree_error(
			        tree, item->value, "more than %d rules", CONFIG_SIGNER_RULES_MAX);
			return;
		}
		read_rule(tree, item->value, &s->rules[s->rule_count++]);
	}
}

/* --- a signer --- */

static void read_audiences(struct tree *tree, struct tree_node *node, struct config_terms *terms)
{
	struct tree_item single;

	for (const struct tree_item *item = tree_items(tree, node, "audience", &single); item;
	        item = item->next) {
		if (terms->audience_count == CONFIG_AUDIENCES_MAX) {
			tree_error(
			        tree, item->value, "more than %d audiences", CONFIG_AUDIENCES_MAX);
			return;
		}
		if (copy(tree, item->value, "audience", terms->audiences[terms->audience_count],
		            sizeof(terms->audiences[0])))
			terms->audience_count++;
	}
}

static void read_algorithms(struct tree *tree, struct tree_node *node, struct config_terms *terms)
{
	struct tree_item single;

	terms->algorithms = (1u << CONFIG_ALGORITHM_COUNT) - 1;
	if (!node)
		return;
	terms->algorithms = 0;
	for (const struct tree_item *item = tree_items(tree, node, "algorithms", &single); item;
	        item = item->next) {
		int i = tree_word(tree, item->value, "algorithms", algorithm_names);

		if (i >= 0)
			terms->algorithms |= (uint8_t)(1u << i);
	}
}

/* The name begins the names of sessions, so it is plain. */
static void read_name(struct tree *tree, const struct tree_node *node, struct config_signer *s)
{
	char quoted[TREE_QUOTE_MAX];
	struct slice text;
	bool plain = true;

	if (!tree_text(tree, node, "name", CONFIG_SIGNER_NAME_MAX, &text))
		return;
	for (size_t i = 0; i < text.n; i++)
		plain = plain &&
		        ((text.p[i] >= 'a' && text.p[i] <= 'z') ||
		                (text.p[i] >= '0' && text.p[i] <= '9') || (i && text.p[i] == '-'));
	if (plain)
		memcpy(s->name, text.p, text.n);
	else
		tree_error(tree, node,
		        "name %s: a signer's name is small letters, digits and '-', beginning with "
		        "a letter or digit",
		        tree_quote(text, quoted));
}

static void read_terms(struct tree *tree, const struct tree_node *map, struct config_signer *s)
{
	struct tree_node *node;
	uint64_t ms;

	if ((node = tree_get(map, "name")))
		read_name(tree, node, s);
	if ((node = tree_get(map, "issuer")))
		copy(tree, node, "issuer", s->terms.issuer, sizeof(s->terms.issuer));
	if ((node = tree_get(map, "audience")))
		read_audiences(tree, node, &s->terms);
	read_algorithms(tree, tree_get(map, "algorithms"), &s->terms);
	s->terms.lifetime_s = s->terms.callbacks ? LIFETIME_CALLBACK_S : LIFETIME_DEFAULT_S;
	if ((node = tree_get(map, "lifetime")) &&
	        tree_duration(tree, node, "lifetime", LIFETIME_MIN_MS, LIFETIME_MAX_MS, &ms))
		s->terms.lifetime_s = (uint32_t)(ms / 1000);
}

/* Reads keys: the path of a file, or a URL that is fetched again after each `refresh`. */
static void read_keys(struct tree *tree, const struct tree_node *map, struct config_signer *s)
{
	const struct tree_node *node = tree_get(map, "keys"), *refresh = tree_get(map, "refresh");
	char quoted[TREE_QUOTE_MAX];
	uint64_t ms = REFRESH_DEFAULT_MS;
	struct url url;

	if (!node || node->kind != TREE_SCALAR || slice_find_byte(node->text, ':') < 0 ||
	        slice_starts_with(node->text, SLICE("bundle:"))) {
		if (node)
			config_read_path_or_bundle(tree, node, "keys", ".jwks", s->keys);
		if (refresh)
			tree_error(tree, refresh,
			        "refresh is for keys of a URL; a file is looked at "
			        "every five seconds");
		return;
	}
	if (!copy(tree, node, "keys", s->keys, CONFIG_URL_MAX + 1) ||
	        (refresh && !tree_duration(
	                            tree, refresh, "refresh", REFRESH_MIN_MS, REFRESH_MAX_MS, &ms)))
		return;
	if (url_parse(node->text, &url) && url.scheme == POLICY_HTTPS &&
	        slice_find_byte(node->text, '#') < 0)
		s->refresh_s = (uint32_t)(ms / 1000);
	else
		tree_error(tree, node, "keys %s must be a path, or a URL: https://HOST/PATH",
		        tree_quote(node->text, quoted));
}

/* Reads callbacks. A signer signs tokens of sessions, which its rules make, or callbacks, each of
 * which belongs to a session that there is already. */
static void read_use(struct tree *tree, const struct tree_node *map, struct config_signer *s)
{
	static const char *const words[] = {"false", "true", NULL};
	const struct tree_node *node = tree_get(map, "callbacks");

	s->terms.callbacks = node && tree_word(tree, node, "callbacks", words) == 1;
	if (!s->terms.callbacks && !tree_get(map, "rules"))
		tree_error(tree, map, "rules is missing");
	else if (s->terms.callbacks && (tree_get(map, "rules") || tree_get(map, "session")))
		tree_error(tree, map,
		        "rules and session are for tokens of sessions, which a signer with "
		        "callbacks does not sign");
}

static void read_signer(struct tree *tree, const struct tree_node *map, struct config_signer *s)
{
	static const char *const known[] = {"name", "issuer", "audience", "algorithms", "lifetime",
	        "keys", "refresh", "session", "rules", "callbacks", NULL};
	static const char *const needed[] = {"name", "issuer", "audience", "keys"};
	struct tree_node *node;

	if (!tree_is_map(tree, map, "a signer"))
		return;
	tree_check_keys(tree, map, known, NULL);
	read_use(tree, map, s);
	for (size_t i = 0; i < sizeof(needed) / sizeof(needed[0]); i++)
		if (!tree_get(map, needed[i]))
			tree_error(tree, map, "%s is missing", needed[i]);
	read_terms(tree, map, s);
	read_keys(tree, map, s);
	memcpy(s->session, SESSION_CLAIM_DEFAULT, sizeof(SESSION_CLAIM_DEFAULT));
	if ((node = tree_get(map, "session"))) {
		memset(s->session, 0, sizeof(s->session));
		read_claim_name(tree, node, s->session);
	}
	if ((node = tree_get(map, "rules")))
		read_rules(tree, node, s);
}

static bool is_taken(const struct config_gateway *g, const struct config_signer *s)
{
	bool taken = false;

	for (const struct config_signer *o = g->signers; o < s; o++)
		taken = taken || strcmp(o->name, s->name) == 0 ||
		        strcmp(o->terms.issuer, s->terms.issuer) == 0;
	return taken;
}

void config_read_signers(struct tree *tree, const struct tree_node *list, struct config_gateway *g)
{
	if (!tree_is_list(tree, list, "signers") || g->signers)
		return;
	if (list->count > CONFIG_SIGNERS_MAX) {
		tree_error(tree, list, "more than %d signers", CONFIG_SIGNERS_MAX);
		return;
	}
	g->signers = calloc(list->count ? list->count : 1, sizeof(*g->signers));
	if (!g->signers) {
		tree_error(tree, list, "no memory for signers");
		return;
	}
	for (const struct tree_item *item = list->first; item; item = item->next) {
		struct config_signer *s = &g->signers[g->signer_count++];

		read_signer(tree, item->value, s);
		if (!tree->wrong && is_taken(g, s))
			tree_error(tree, item->value,
			        "another signer has this name or issuer already");
	}
}

/* --- the values of others --- */

int config_gateway_copy(struct config_gateway *out, const struct config_gateway *gateway)
{
	*out = *gateway;
	if (!gateway->signers)
		return 0;
	out->signers = calloc(gateway->signer_count + 1, sizeof(*out->signers));
	if (out->signers)
		memcpy(out->signers, gateway->signers,
		        gateway->signer_count * sizeof(*out->signers));
	else
		out->signer_count = 0;
	return out->signers ? 0 : -ENOMEM;
}

void config_gateway_fini(struct config_gateway *gateway)
{
	free(gateway->signers);
	gateway->signers = NULL;
	gateway->signer_count = 0;
}

bool config_signers_equal(const struct config_gateway *a, const struct config_gateway *b)
{
	return a->signer_count == b->signer_count &&
	       (a->signer_count == 0 ||
	               memcmp(a->signers, b->signers, a->signer_count * sizeof(*a->signers)) == 0);
}
