/* SPDX-License-Identifier: Apache-2.0 */
/* Loads the policy of an attachment. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "vethguard/base/log.h"
#include "supervisor/ask/hooks.h"
#include "supervisor/ask/proposals.h"
#include "supervisor/attach/attachment.h"
#include "supervisor/os/local_file.h"
#include "supervisor/sandbox/quotas.h"

/* True if the policy needs what the daemon does not have: the environment of a command's caller
 * (env: source), or a server for budgets that hosts share. */
static bool is_objectionable(
        const struct supervisor *sv, const struct settings *settings, char **out)
{
	const struct policy *policy = &settings->policy;
	const char *target = settings->env_source;
	struct policy_credential c;
	char name[4 * POLICY_NAME_MAX + 1], *text;

	for (uint32_t i = 0; i < policy_credential_count(policy); i++) {
		policy_credential(policy, i, &c);
		if (c.source != POLICY_SOURCE_ENV)
			continue;
		if (asprintf(&text,
		            "%s%scredential \"%s\": an env: source reads the environment of "
		            "`vethguard run`, which an attached sandbox does not have: use file: "
		            "or exec:",
		            target ? target : "", target ? ": error: " : "",
		            slice_escape(c.name, name, sizeof(name))) < 0)
			text = NULL;
		*out = text;
		return true;
	}
	if (!quotas_objection(sv, policy))
		return false;
	*out = strdup(quotas_objection(sv, policy));
	return true;
}

const char *attach_load_failure(enum attach_status status)
{
	return status == ATTACH_INVALID ? "the policy cannot be used"
	       : status == ATTACH_BUSY
	               ? "the policy's files changed while they were read: try again"
	               : "the daemon's configuration cannot be used, or there is no memory";
}

struct policy_load_options attach_load_options(
        bool observe, const struct attach_pairs *vars, struct policy_variable room[ATTACH_VARS_MAX])
{
	for (size_t i = 0; i < vars->count; i++)
		room[i] = (struct policy_variable){slice_from_string(vars->items[i].key),
		        slice_from_string(vars->items[i].value)};
	return (struct policy_load_options){
	        .observe = observe, .variables = room, .variable_count = vars->count};
}

/* Returns the credentials that an operator has revoked before, found by name. */
static uint64_t revoked_in(const struct attach_record *r, const struct policy *policy)
{
	struct policy_credential c;
	uint64_t bits = 0;

	for (uint32_t i = 0; r->revoked.count && i < policy_credential_count(policy); i++) {
		policy_credential(policy, i, &c);
		for (size_t k = 0; k < r->revoked.count; k++)
			if (slice_equals(c.name, slice_from_string(r->revoked.items[k].key)))
				bits |= UINT64_C(1) << i;
	}
	return bits;
}

struct generation *attachment_load(const struct attachment *a, const char *policy,
        const struct identity *identity, const struct settings_files *files,
        enum attach_status *status, char **text)
{
	struct policy_variable variables[ATTACH_VARS_MAX];
	struct policy_load_options options =
	        attach_load_options(a->record.observe, &a->record.vars, variables);
	struct generation *g = generation_new(a->record.generation);
	struct proposals_text more;
	int rc;

	*text = NULL;
	*status = ATTACH_FAILED;
	if (!g)
		return NULL;
	if (identity_copy(&g->identity, identity) != 0) {
		generation_put(g);
		return NULL;
	}
	rc = proposals_write(a, &more);
	options.more = more.items;
	options.more_count = more.count;
	if (!rc) {
		g->settings = settings_load(&a->all->supervisor->settings, identity, policy,
		        a->all->config_path, &options, files, text);
		rc = g->settings ? 0 : -errno;
	}
	proposals_text_fini(&more);
	if (g->settings && !is_objectionable(a->all->supervisor, g->settings, text)) {
		g->revoked = revoked_in(&a->record, &g->settings->policy);
		return g;
	}
	if (g->settings || rc == -EINVAL)
		*status = ATTACH_INVALID;
	if (rc == LOCAL_FILE_UNKNOWN)
		*status = ATTACH_BUSY;
	generation_put(g);
	return NULL;
}

/* All that is wrong; never NULL unless there is no memory even for that. */
static char *text_of(const struct diag_list *diags)
{
	char *text = NULL;
	size_t n;
	FILE *out = open_memstream(&text, &n);

	if (!out)
		return strdup("no memory");
	diag_print(diags, out);
	fclose(out);
	return text;
}

char *attachments_config_objection(struct attachments *all, struct config *to)
{
	struct diag_list *diags = calloc(1, sizeof(*diags));
	struct config *config = calloc(1, sizeof(*config));
	char *text = NULL;
	int rc;

	if (!diags || !config) {
		free(diags);
		free(config);
		return strdup("no memory");
	}
	config_init(config);
	rc = settings_load_config(all->config_path, config, diags);
	if (rc)
		text = text_of(diags);
	else if (!to) {
		ca_configure(all->supervisor, &config->ca);
		key_tokens_configure(all->supervisor, config);
		if (bundles_configure(all, config) != 0)
			log_error("bundles: no memory");
		gateway_configure(all->supervisor, &config->gateway);
		quota_configure(all->supervisor, &config->quota);
		bundles_look_now(all);
		hooks_configure(all, &config->ask);
	}
	if (!rc && to)
		*to = *config;
	else
		config_fini(config);
	free(config);
	free(diags);
	return text;
}
