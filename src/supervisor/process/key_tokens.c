/* SPDX-License-Identifier: Apache-2.0 */
/* A process keeps its place while the configuration names its token, whatever else changes there:
 * another process would give the token its PIN once more. */
#include "supervisor/process/key_tokens.h"

#include <errno.h>

#include "supervisor/supervisor.h"

static struct token_process *find(struct supervisor *sv, const char *label)
{
	for (size_t i = 0; i < CONFIG_TOKENS_MAX; i++)
		if (strcmp(sv->key_tokens[i].config.label, label) == 0)
			return &sv->key_tokens[i];
	return NULL;
}

static bool is_named(const struct config *config, const char *label)
{
	for (size_t i = 0; i < config->token_count; i++)
		if (strcmp(config->tokens[i].label, label) == 0)
			return true;
	return false;
}

/* Ends the process. The keeper is told before the label is cleared. */
static void drop(struct supervisor *sv, struct token_process *t)
{
	static const struct config_token none;

	snprintf(t->problem, sizeof(t->problem), "the configuration no longer names it");
	token_process_stop(t);
	token_process_meet_keeper(t);
	token_process_configure(sv, t, &none);
}

void key_tokens_configure(struct supervisor *sv, const struct config *config)
{
	for (size_t i = 0; i < CONFIG_TOKENS_MAX; i++) {
		struct token_process *t = &sv->key_tokens[i];

		if (t->config.label[0] && !is_named(config, t->config.label))
			drop(sv, t);
	}
	for (size_t i = 0; i < config->token_count; i++) {
		struct token_process *t = find(sv, config->tokens[i].label);

		if (!t)
			t = find(sv, ""); /* there are as many places as tokens at most */
		token_process_configure(sv, t, &config->tokens[i]);
		if (t->state != TOKEN_READY)
			token_process_meet_keeper(t);
	}
}

void key_tokens_keep(struct supervisor *sv, const struct config *config)
{
	for (size_t i = 0; i < config->token_count; i++)
		sv->key_tokens[i].config = config->tokens[i];
}

void key_tokens_begin(struct supervisor *sv)
{
	for (size_t i = 0; i < CONFIG_TOKENS_MAX; i++) {
		struct token_process *t = &sv->key_tokens[i];

		if (!t->config.label[0])
			continue;
		if (t->state == TOKEN_NONE)
			token_process_configure(sv, t, &t->config);
		token_process_meet_keeper(t);
	}
}

int key_tokens_late(struct supervisor *sv, struct ipc_message *message)
{
	char label[MESSAGE_LABEL_MAX + 1], why[MESSAGE_WHAT_MAX];
	struct token_process *t;
	struct message_key_token m;

	if (message_key_token_decode(&message->body, &m) < 0 || message->fd_count > 0)
		return -EBADMSG;
	snprintf(label, sizeof(label), "%.*s", SLICE_ARG(m.label));
	t = find(sv, label);
	if (t && t->state == TOKEN_READY && role_runs(&t->role))
		role_kill(&t->role, slice_escape(m.why, why, sizeof(why)));
	return 0;
}

void key_tokens_end(struct supervisor *sv)
{
	for (size_t i = 0; i < CONFIG_TOKENS_MAX; i++)
		token_process_end(&sv->key_tokens[i]);
}
