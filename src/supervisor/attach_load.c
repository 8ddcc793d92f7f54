/* SPDX-License-Identifier: Apache-2.0 */
/* The policy of an attachment, loaded anew. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "supervisor/attachment.h"

/* True where it needs what a daemon cannot have: the environment of whoever started a command. */
static bool is_objectionable(const struct policy *policy, char **out)
{
	struct policy_credential c;
	char name[4 * POLICY_NAME_MAX + 1], *text;

	for (uint32_t i = 0; i < policy_credential_count(policy); i++) {
		policy_credential(policy, i, &c);
		if (c.source != POLICY_SOURCE_ENV)
			continue;
		if (asprintf(&text,
		            "credential \"%s\": an env: source takes the value from the "
		            "environment "
		            "of `vethguard run`; a sandbox that is attached has none: use file: or "
		            "exec:",
		            slice_escape(c.name, name, sizeof name)) < 0)
			text = NULL;
		*out = text;
		return true;
	}
	return false;
}

const char *attach_load_failure(enum attach_status status)
{
	return status == ATTACH_INVALID
	               ? "the policy cannot be used"
	               : "the daemon's configuration cannot be used, or it has no memory";
}

struct generation *attachment_load(const struct attachment *a, const char *policy,
        const struct identity *identity, enum attach_status *status, char **text)
{
	struct policy_variable variables[ATTACH_VARS_MAX];
	struct generation *g = generation_new(a->record.generation);
	int error;

	const struct policy_load_options options = {.observe = a->record.observe,
	        .variables = variables,
	        .variable_count = a->record.vars.count};

	for (size_t i = 0; i < a->record.vars.count; i++)
		variables[i] =
		        (struct policy_variable){slice_from_string(a->record.vars.items[i].key),
		                slice_from_string(a->record.vars.items[i].value)};
	*text = NULL;
	*status = ATTACH_FAILED;
	if (!g)
		return NULL;
	if (identity_copy(&g->identity, identity) != 0) {
		generation_put(g);
		return NULL;
	}
	g->settings = settings_load(&a->all->supervisor->settings, identity, policy,
	        a->all->config_path, &options, text);
	error = g->settings ? 0 : -errno;
	if (!error && !is_objectionable(&g->settings->policy, text))
		return g;
	if (!error || error == -EINVAL)
		*status = ATTACH_INVALID;
	generation_put(g);
	return NULL;
}

char *attachments_config_objection(const struct attachments *all)
{
	struct policy_file_facts facts = {0};
	struct policy_reader reader =
	        policy_reader_private_files(policy_default_preset_dir(), &facts);
	struct diag_list *diags = calloc(1, sizeof *diags);
	struct config *config = calloc(1, sizeof *config);
	char *text = NULL;
	size_t n;
	FILE *out;

	if (!diags || !config) {
		free(diags);
		free(config);
		return strdup("no memory");
	}
	config_init(config);
	if (all->config_path[0] && config_load(&reader, all->config_path, config, diags) != 0 &&
	        (out = open_memstream(&text, &n))) {
		diag_print(diags, out);
		fclose(out);
	}
	config_fini(config);
	free(config);
	free(diags);
	return text;
}
