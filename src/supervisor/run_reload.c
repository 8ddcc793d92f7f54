/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A sidecar's guard gets another policy without an end: another worker starts under it, and the one
 * before goes on with those of its connections that the new policy allows too (sandbox/replace.c).
 * The fence is not this process's and stays as it is, so what it was set for may not change.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "vethguard/base/log.h"
#include "supervisor/run.h"

static uint8_t buffer[MESSAGE_BYTES_MAX];

static void keep(struct run *run, uint64_t id, const char *why)
{
	struct message_text m = {slice_from_string(why)};

	if (m.text.n > MESSAGE_TEXT_MAX)
		m.text.n = MESSAGE_TEXT_MAX;
	run->reload_id = 0;
	run_say(run, buffer, message_text_encode(buffer, sizeof(buffer), MESSAGE_RUN_KEPT, id, &m));
}

static bool reads_variables(const struct policy *policy)
{
	struct policy_credential c;

	for (uint32_t i = 0; i < policy_credential_count(policy); i++) {
		policy_credential(policy, i, &c);
		if (c.source == POLICY_SOURCE_ENV)
			return true;
	}
	return false;
}

static bool same_network(const struct ip_prefix *a, const struct ip_prefix *b)
{
	return a->bits == b->bits && ip_equals(&a->base, &b->base);
}

/* Returns why the settings cannot take the place of those in force, or NULL. */
static const char *objection(
        const struct sandbox *s, const struct settings *next, char why[GATE_WHY_MAX])
{
	const struct config *now = &s->generation->settings->config, *then = &next->config;

	if (!same_network(&now->pool4, &then->pool4) || !same_network(&now->pool6, &then->pool6) ||
	        then->proxy_port != s->gate.tcp_port)
		return "the configuration has another port or other synthetic addresses than the "
		       "fence: set the fence again ('sidecar init') and start the guard again";
	if (reads_variables(&next->policy))
		return "the policy reads variables (env:), which only a guard that starts can "
		       "get: name files instead (file:), or start the guard again";
	return sandbox_cannot_share(s, next, why) ? why : NULL;
}

static struct generation *load(const struct run *run, const struct message_run_start *m,
        const char *policy_path, const char *config_path, char **text)
{
	const struct generation *before = run->sandbox->generation;
	struct generation *g = generation_new(before->number + 1);

	*text = NULL;
	if (!g)
		return NULL;
	g->identity = before->identity; /* the identity has no groups of its own */
	g->settings = settings_load(NULL, &g->identity, policy_path, config_path,
	        &(struct policy_load_options){.observe = m->observe,
	                .variables = m->variables,
	                .variable_count = m->variable_count},
	        NULL, text);
	if (g->settings)
		return g;
	generation_put(g);
	return NULL;
}

static void replace(struct run *run, struct generation *g, uint64_t id)
{
	struct sandbox *s = run->sandbox;
	char why[GATE_WHY_MAX];
	const char *no = objection(s, g->settings, why);

	if (no) {
		keep(run, id, no);
		return;
	}
	generation_compare(g, s->generation);
	run->reload_id = id;
	if (sandbox_replace(s, g) != 0)
		keep(run, id, s->failure);
}

int run_reload(struct run *run, struct ipc_message *message)
{
	char policy[MESSAGE_PATH_MAX + 1], config[MESSAGE_PATH_MAX + 1], *text;
	struct sandbox *s = run->sandbox;
	struct message_run_start m;
	struct generation *g;

	if (message_run_start_decode(&message->body, &m) != 0 || message->fd_count > 0 ||
	        run->reload_id || (s && !s->shared_dns_port))
		return -EBADMSG;
	if (!s) /* it ends */
		return 0;
	if (s->state != SANDBOX_SERVING || m.policy_path.n == 0 ||
	        !run_copy_path(m.policy_path, policy, sizeof(policy)) ||
	        !run_copy_path(m.config_path, config, sizeof(config))) {
		keep(run, message->head.id,
		        s->state == SANDBOX_SERVING
		                ? "the paths of policy and configuration must be absolute"
		                : "the guard does not serve");
		return 0;
	}
	g = load(run, &m, policy, config, &text);
	if (g)
		replace(run, g, message->head.id);
	else
		keep(run, message->head.id, text ? text : "no memory");
	generation_put(g);
	free(text);
	return 0;
}

void run_replaced(struct sandbox_owner *owner, struct sandbox *s, const char *error)
{
	struct run *run = container_of(owner, struct run, owner);
	const uint64_t id = run->reload_id;

	run->reload_id = 0;
	if (!id)
		return;
	if (error)
		keep(run, id, error);
	else
		run_tell_ready(run, s, id);
}
