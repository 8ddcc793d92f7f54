/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Questions that arrive while the next value is fetched (source_fetch.c) wait for the same answer,
 * unless a value is still held: they get that one.
 *
 * An operator's CHECK or ROTATE (source_operate()) has a fetch of its own, because a fetch that
 * began earlier may bring the old value.
 */
#include "keeper/sources.h"

#include <errno.h>
#include <stdlib.h>

#include "keeper/source_fetch.h"
#include "keeper/source_trial.h"
#include "vethguard/base/clock.h"
#include "vethguard/base/log.h"

void source_init(struct source *source)
{
	source->fd = -1;
}

void source_fini(struct source *source)
{
	source_end_fetch(source);
	source_value_drop(source);
	loop_timer_close(&source->end);
	keeper_jar_put(source->jar);
	source_trial_cancel(source);
	free(source->key);
}

void source_forget(struct source *source)
{
	source_value_drop(source);
	source->forgotten = source_is_fetching(source);
}

/* True if the next value is to be fetched now, although one is held. */
static bool is_due(const struct source *source)
{
	return source->renew_ms > 0 && clock_boot_ms() >= source->renew_ms;
}

void source_seal(struct source *source, const struct jar_token *token)
{
	int rc = source->revoked || source->emptied ? 0 : keeper_jar_add(source->jar, token);

	if (rc < 0)
		log_warn("sandbox %s: what a login gave for credential \"%s\" cannot be kept: %s",
		        source->sandbox, source->name, strerror(-rc));
}

/* A sealed credential has only what logins gave: no source is asked. */
static void answer_from_jar(struct source *source, uint64_t question)
{
	source->waiting[source->waiting_count++] = question;
	if (source->revoked) {
		source_answer_all(source);
		return;
	}
	source->waiting_count--;
	source->on_answer(source, question, secret_slice(&source->jar->bytes), 0, 0, NULL);
}

int source_get(struct source *source, uint64_t question, bool renew)
{
	const bool early = loop_now_ms(source->sources->loop) < source->retry_ms;
	bool valid = source_value_is_valid(source);

	if (source->waiting_count == SOURCE_WAITING_MAX)
		return -EBADMSG;
	if (source->jar) {
		source->emptied = false;
		answer_from_jar(source, question);
		return 0;
	}
	source->waiting[source->waiting_count++] = question;
	if (!valid && !source_is_fetching(source))
		source_value_drop(source);
	if (valid && !(renew && is_due(source) && !early)) {
		/* Questions that wait for the next value go on waiting. */
		source->waiting_count--;
		source->on_answer(source, question, secret_slice(&source->value),
		        source_value_ttl_ms(source), source_value_renew_ms(source), NULL);
	} else if (source->revoked || (!source_is_fetching(source) && early)) {
		source_answer_all(source);
	} else if (!source_is_fetching(source)) {
		source_ask(source);
	}
	return 0;
}

void source_end_operation(struct source *source, const char *why)
{
	struct source_operation o = source->operation;

	source->operation = (struct source_operation){0};
	source_trial_cancel(source);
	if (o.what)
		source->sources->on_operated(source, o.id, why, SLICE(""), 0);
}

/* Revokes the value, and also one that is being fetched for an operator: the operator's last word
 * counts. */
static void withdraw(struct source *source)
{
	source_value_drop(source);
	if (source->jar)
		keeper_jar_empty(source->jar);
	source->revoked = true;
	source_answer_all(source);
	source_end_operation(source, "it was revoked meanwhile");
}

const char *source_operate(struct source *source, enum message_credential_what what, uint64_t id)
{
	if (what == MESSAGE_CREDENTIAL_REVOKE) {
		withdraw(source);
		return NULL;
	}
	if (what == MESSAGE_CREDENTIAL_FORGET) {
		source->revoked = false;
		source_forget(source);
		return NULL;
	}
	if (source->jar && what == MESSAGE_CREDENTIAL_ROTATE) {
		keeper_jar_empty(source->jar);
		source->revoked = false;
		source->emptied = true;
		source->sources->on_operated(source, id, NULL, SLICE(""), 0);
		return NULL;
	}
	if (source->jar)
		return "its tokens come from logins inside the sandbox: nobody else can be asked";
	if (loop_now_ms(source->sources->loop) < source->alone_ms)
		return "its service has asked to wait: try again later";
	if (source->operation.what)
		return "it is being checked or rotated already: try again in a moment";
	source->operation = (struct source_operation){what, id, false};
	source_proceed(source, NULL, SLICE(""), 0);
	return NULL;
}
