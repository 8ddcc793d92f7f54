/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sources in a cloud: the cloud first wants to know who asks. Each cloud has several ways to prove
 * it: a key in a file, a token of another identity provider, or the machine itself. Here the keys
 * that say which way are compared, and what they leave out is added: the URLs of the login.
 */
#include <string.h>

#include "policy/credentials/source.h"

#define METADATA_URL "http://169.254.169.254"

static bool has(const struct tree_item *item, const char *key)
{
	return tree_get(item->value, key) != NULL;
}

static bool is_kind(const struct tree_item *item, const char *kind)
{
	return slice_equals(item->key->text, slice_from_string(kind));
}

/* Reports a key that says nothing without others. */
static void check_with(struct tree *tree, const struct tree_item *item, const char *key,
        bool useful, const char *needed)
{
	const struct tree_node *node = tree_get(item->value, key);

	if (node && !useful)
		tree_error(tree, node, "%s goes with %s", key, needed);
}

static void check_without(struct tree *tree, const struct tree_item *item, const char *key,
        bool useless, const char *others)
{
	const struct tree_node *node = tree_get(item->value, key);

	if (node && useless)
		tree_error(tree, node, "%s does not go with %s", key, others);
}

static struct slice add(
        struct tree *tree, struct policy_credential *out, const char *key, struct slice text)
{
	if (out->argc < POLICY_ARGV_MAX)
		out->argv[out->argc++] = arena_printf(tree->arena, "%s=%.*s", key, SLICE_ARG(text));
	return text;
}

/* Returns the text of the key; if it is not there, the text that is added for it. */
static struct slice complete(struct tree *tree, const struct tree_item *item,
        struct policy_credential *out, const char *key, struct slice usual)
{
	const struct tree_node *node = tree_get(item->value, key);

	return node ? node->text : add(tree, out, key, usual);
}

static struct slice aws_url(struct tree *tree, const char *service, struct slice region)
{
	return arena_printf(tree->arena, "https://%s.%.*s.amazonaws.com%s", service,
	        SLICE_ARG(region), slice_starts_with(region, SLICE("cn-")) ? ".cn" : "");
}

static void check_aws(struct tree *tree, const struct tree_item *item)
{
	const bool keys = has(item, "keys"), role = has(item, "role");
	const bool token = has(item, "web_identity_token");

	if (keys && token)
		tree_error(tree, item->key,
		        "%.*s takes keys or web_identity_token, not both; with neither the machine "
		        "itself is asked",
		        SLICE_ARG(item->key->text));
	if (keys && !role && is_kind(item, "aws-role"))
		tree_error(tree, item->key,
		        "aws-role needs the key role here: keys without a role are a source: "
		        "file:PATH");
	check_with(tree, item, "web_identity_token", role, "role");
	check_with(tree, item, "session_name", role, "role");
	check_with(tree, item, "sts_url", role, "role");
	check_with(tree, item, "external_id", role && !token, "role, without web_identity_token");
	check_without(tree, item, "metadata_url", keys || token, "keys and web_identity_token");
}

static void load_aws(struct tree *tree, const struct tree_item *item, struct policy_credential *out)
{
	const struct tree_node *region = tree_get(item->value, "region");
	const struct slice name = region ? region->text : SLICE("");
	const bool machine = !has(item, "keys") && !has(item, "web_identity_token");
	struct slice metadata = SLICE(""), sts = SLICE("");

	check_aws(tree, item);
	if (region && !load_is_token(name)) /* it becomes a part of a host's name */
		tree_error(tree, region, "region is not the name of a region: \"eu-west-1\"");
	if (machine)
		metadata = complete(tree, item, out, "metadata_url", SLICE(METADATA_URL));
	if (has(item, "role"))
		sts = complete(tree, item, out, "sts_url", aws_url(tree, "sts", name));
	if (out->location.n)
		return;
	if (is_kind(item, "aws-role"))
		out->location = sts.n ? sts : metadata;
	else
		out->location =
		        aws_url(tree, is_kind(item, "aws-ssm") ? "ssm" : "secretsmanager", name);
}

static void load_gcp(struct tree *tree, const struct tree_item *item, struct policy_credential *out)
{
	const bool key = has(item, "key"), other = has(item, "impersonate");

	check_with(tree, item, "impersonation_url", other, "impersonate");
	if (other)
		complete(tree, item, out, "impersonation_url",
		        SLICE("https://iamcredentials.googleapis.com"));
	if (!is_kind(item, "gcp-secretmanager"))
		return;
	check_with(tree, item, "token_url", key, "key");
	check_without(tree, item, "metadata_url", key, "key");
	if (key)
		complete(
		        tree, item, out, "token_url", SLICE("https://oauth2.googleapis.com/token"));
	else
		complete(tree, item, out, "metadata_url", SLICE(METADATA_URL));
}

static void load_azure(
        struct tree *tree, const struct tree_item *item, struct policy_credential *out)
{
	const bool secret = has(item, "client_secret"), token = has(item, "federated_token");
	const bool client = has(item, "tenant_id") && has(item, "client_id");

	if ((secret && token) || (has(item, "tenant_id") && !(client && (secret || token))))
		tree_error(tree, item->key,
		        "azure-keyvault needs tenant_id, client_id and one of client_secret and "
		        "federated_token; or none of these but client_id: then the machine itself "
		        "is asked");
	check_with(tree, item, "client_secret", client, "tenant_id and client_id");
	check_with(tree, item, "federated_token", client, "tenant_id and client_id");
	check_with(tree, item, "login_url", has(item, "tenant_id"), "tenant_id");
	check_without(tree, item, "metadata_url", has(item, "tenant_id"), "tenant_id");
	complete(tree, item, out, "resource", SLICE("https://vault.azure.net"));
	if (has(item, "tenant_id"))
		complete(tree, item, out, "login_url", SLICE("https://login.microsoftonline.com"));
	else
		complete(tree, item, out, "metadata_url", SLICE(METADATA_URL));
}

void load_cloud(struct tree *tree, const struct tree_item *item, struct policy_credential *out)
{
	if (slice_starts_with(item->key->text, SLICE("aws-")))
		load_aws(tree, item, out);
	else if (slice_starts_with(item->key->text, SLICE("gcp-")))
		load_gcp(tree, item, out);
	else if (is_kind(item, "azure-keyvault"))
		load_azure(tree, item, out);
}
