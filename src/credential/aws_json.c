/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The result points into the caller's text. What json.h decodes lies in locked memory, which is
 * freed before aws_json_read() returns.
 */
#include "credential/aws_json.h"

#include <errno.h>

#include "vethguard/base/secret.h"
#include "vethguard/policy/json.h"

static struct slice *find(struct aws_json *out, struct slice name)
{
	static const struct {
		const char *name;
		size_t which;
	} names[] = {{"AccessKeyId", 0}, {"SecretAccessKey", 1}, {"SessionToken", 2}, {"Token", 2},
	        {"aws_access_key_id", 0}, {"aws_secret_access_key", 1}, {"aws_session_token", 2},
	        {"access_key", 0}, {"secret_key", 1}, {"security_token", 2}, {"session_token", 2}};
	struct slice *const found[] = {&out->id, &out->secret, &out->token};

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (slice_equals_ignoring_case(name, slice_from_string(names[i].name)))
			return found[names[i].which];
	return NULL;
}

/* Sets *into to text, a string as it is written. An empty one is skipped: AWS gives "" where there
 * is no token (Vault's engine gives null). Returns NULL, or what is wrong. */
static const char *take_value(struct slice *into, struct slice text)
{
	for (size_t i = 0; i + 1 < text.n; i++)
		if (text.p[i] == '\\' && text.p[++i] != '/')
			return "The credential's value has a key, secret or token with an escape "
			       "in it.";
	if (text.n && into->n)
		return "The credential's value has a key, secret or token twice.";
	if (text.n)
		*into = text;
	return NULL;
}

static const char *take_values(const struct json_tree *tree, struct aws_json *out)
{
	const char *fault = NULL;

	for (uint32_t i = 0; i < tree->count && !fault; i++) {
		const struct json_value *key = json_at(tree, i), *value = key + 1;
		struct slice *into =
		        key->kind == JSON_IS_KEY ? find(out, json_text(tree, key)) : NULL;

		if (into && value->kind == JSON_IS_STRING)
			fault = take_value(into, json_written(tree, value));
	}
	return fault;
}

const char *aws_json_read(struct slice text, struct aws_json *out)
{
	const char *fault = "There is no locked memory for the credential.";
	struct secret decoded;
	struct json_tree tree;
	int rc;

	*out = (struct aws_json){0};
	if (secret_alloc(&decoded, text.n) < 0)
		return fault;
	rc = json_read_into(&tree, text, (char *)decoded.p);
	if (rc == 0)
		fault = take_values(&tree, out);
	else if (rc == -EBADMSG)
		fault = "The credential's value begins like JSON, but is not JSON that all readers "
		        "understand alike.";
	json_fini(&tree);
	secret_free(&decoded);
	return fault;
}
