/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads what goes with inject: docker-registry: the token service, and the repositories and actions
 * for which the login may be used. The policy has to say all of this, because the registry's
 * challenge, which says it to clients, is not believed.
 */
#include "policy/credentials/source.h"
#include "vethguard/policy/registry.h"
#include "vethguard/policy/url.h"

#define ACTIONS 3

static const char realm_example[] = "realm: https://auth.docker.io/token";

/* Writes the token service's URL, with its path in canonical form. */
static void take_realm(struct tree *tree, const struct tree_node *map, struct slice *out)
{
	const struct tree_node *node = tree_get(map, "realm");
	char path[POLICY_REALM_MAX], quoted[TREE_QUOTE_MAX];
	struct slice text, before;
	struct url url;
	size_t n;

	if (!node) {
		tree_error(tree, map,
		        "inject: docker-registry needs the URL of the token service, which the "
		        "registry's challenge (WWW-Authenticate) calls realm: %s",
		        realm_example);
		return;
	}
	if (!tree_text(tree, node, "realm", POLICY_REALM_MAX, &text))
		return;
	if (!url_parse(text, &url) || url.scheme != POLICY_HTTPS ||
	        slice_find_byte(text, '?') >= 0 ||
	        !url_canonical_path(url.path, path, sizeof(path), &n)) {
		tree_error(tree, node,
		        "realm %s is not the URL of a token service: https, a host and a path, "
		        "without a query, as in %s",
		        tree_quote_value(tree, text, quoted), realm_example);
		return;
	}
	/* A URL that ends with its host has the path "/", which is not in the text. */
	before = slice_of(text.p, text.n - url.path.n);
	if (url.path.p != before.p + before.n)
		before = text;
	*out = arena_printf(tree->arena, "%.*s%.*s", SLICE_ARG(before), (int)n, path);
}

static void take_service(struct tree *tree, const struct tree_node *map, struct slice *out)
{
	const struct tree_node *node = tree_get(map, "service");

	if (!node) {
		tree_error(tree, map,
		        "inject: docker-registry needs the registry's name at the token service, "
		        "which the registry's challenge calls service: service: "
		        "registry.docker.io");
		return;
	}
	if (!tree_text(tree, node, "service", POLICY_TOKEN_SERVICE_MAX, out))
		return;
	for (size_t i = 0; i < out->n; i++)
		if (out->p[i] <= ' ' || out->p[i] > '~') {
			tree_error(tree, node, "service has a blank or a byte outside of ASCII");
			return;
		}
}

static void take_repositories(
        struct tree *tree, const struct tree_node *map, struct policy_credential *out)
{
	struct tree_node *node = tree_get(map, "repositories");
	char quoted[TREE_QUOTE_MAX];
	struct tree_item single;
	size_t count = 0;

	if (!node) {
		tree_error(tree, map,
		        "inject: docker-registry needs the repositories for which the login may be "
		        "used: repositories: [acme/*]");
		return;
	}
	for (const struct tree_item *item = tree_items(tree, node, "repositories", &single); item;
	        item = item->next) {
		struct slice name;

		if (!tree_text(tree, item->value, "a repository", POLICY_REPOSITORY_MAX, &name))
			return;
		if (!policy_is_repository(name, true)) {
			tree_error(tree, item->value,
			        "repository %s is not a name as registries have them, or a pattern "
			        "of names: small letters, digits, \".\", \"_\", \"-\" and \"/\", "
			        "without the registry's host, as in acme/app or acme/*",
			        tree_quote_value(tree, name, quoted));
			return;
		}
		if (++count > POLICY_REPOSITORIES_MAX) {
			tree_error(tree, item->value, "repositories names more than %d",
			        POLICY_REPOSITORIES_MAX);
			return;
		}
		out->prefix = arena_printf(tree->arena, "%.*s%s%.*s", SLICE_ARG(out->prefix),
		        out->prefix.n ? " " : "", SLICE_ARG(name));
	}
}

static struct slice take_actions(struct tree *tree, const struct tree_node *map)
{
	static const char *const words[ACTIONS + 1] = {"pull", "push", "delete", NULL};
	struct tree_node *node = tree_get(map, "actions");
	struct slice actions = SLICE("");
	bool taken[ACTIONS] = {!node};
	struct tree_item single;

	for (const struct tree_item *item = node ? tree_items(tree, node, "actions", &single)
	                                         : NULL;
	        item; item = item->next) {
		int word = tree_word(tree, item->value, "actions", words);

		if (word < 0)
			return actions;
		taken[word] = true;
	}
	for (size_t i = 0; i < ACTIONS; i++)
		if (taken[i])
			actions = arena_printf(tree->arena, "%.*s%s%s", SLICE_ARG(actions),
			        actions.n ? " " : "", words[i]);
	return actions;
}

void load_registry(struct tree *tree, const struct tree_node *map, struct policy_credential *out)
{
	struct slice realm = SLICE(""), service = SLICE(""), actions;

	take_realm(tree, map, &realm);
	take_service(tree, map, &service);
	take_repositories(tree, map, out);
	actions = take_actions(tree, map);
	out->field = arena_printf(tree->arena, "%.*s %.*s %.*s", SLICE_ARG(realm),
	        SLICE_ARG(service), SLICE_ARG(actions));
}

/* True if some rule lets requests with the credential reach the token service's host and port. */
static bool is_reached(const struct policy *policy, uint32_t credential, struct slice realm)
{
	struct policy_request request = {.scheme = POLICY_HTTPS};
	struct url url;

	if (!url_parse(realm, &url))
		return false;
	request.host = slice_of(url.authority.host, url.authority.host_n);
	request.address = url.authority.address;
	request.port = url.authority.port;
	return policy_credentials_at(policy, &request) >> credential & 1;
}

void load_registry_note(
        const struct model *model, const uint8_t *image, size_t size, struct diag_list *notes)
{
	struct policy policy;

	if (policy_open(&policy, image, size) < 0)
		return;
	for (uint32_t i = 0; i < model->credential_count; i++) {
		const struct model_credential *c = &model->credentials[i];
		struct policy_registry registry;

		if (c->c.inject != POLICY_INJECT_DOCKER_REGISTRY)
			continue;
		policy_registry(&c->c, &registry);
		if (!is_reached(&policy, i, registry.realm))
			diag_add(notes, c->mark.file, c->mark.line, c->mark.column,
			        "no rule with credential \"%.*s\" allows its realm %.*s, so "
			        "clients "
			        "get no token there; add a rule for it: methods: [GET], "
			        "credential: "
			        "%.*s",
			        SLICE_ARG(c->c.name), SLICE_ARG(registry.realm),
			        SLICE_ARG(c->c.name));
	}
}
