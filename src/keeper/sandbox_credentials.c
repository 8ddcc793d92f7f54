/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers an operator's questions about a worker's credentials, and makes the operator's changes.
 * Values stay in this process: an answer has times, counts, sentences and marks (keeper/marker.h).
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "keeper/sandbox.h"
#include "vethguard/base/clock.h"
#include "vethguard/base/log.h"

static uint8_t buffer[MESSAGE_BYTES_MAX];

static uint64_t ends_ms(const struct source *source)
{
	if (source->expires_ms == 0)
		return 0;
	return (uint64_t)(clock_real_ms() + source->expires_ms - clock_boot_ms());
}

/* For a sealed credential: when the last login gave a token. */
static uint64_t fetched_ms(const struct source *source)
{
	return (uint64_t)(source->jar ? source->jar->sealed_ms : source->fetched_ms);
}

static void describe(const struct sandbox *sandbox, struct message_keeper_credentials *m)
{
	m->count = sandbox->source_count;
	for (uint32_t i = 0; i < m->count; i++) {
		const struct source *s = &sandbox->sources[i];
		const bool held = s->jar ? s->jar->bytes.n > 0 : source_value_is_valid(s);

		m->credentials[i].held = held;
		m->credentials[i].fetching = s->state == SOURCE_ASKED || s->state == SOURCE_READING;
		m->credentials[i].revoked = s->revoked;
		m->credentials[i].fetches = s->fetches;
		m->credentials[i].failures = s->failures;
		m->credentials[i].fetched_ms = held ? fetched_ms(s) : 0;
		m->credentials[i].ends_ms = held ? ends_ms(s) : 0;
		m->credentials[i].failed_ms = (uint64_t)s->failed_ms;
		m->credentials[i].error =
		        slice_of(s->error, strnlen(s->error, MESSAGE_CREDENTIAL_ERROR_MAX));
		m->credentials[i].mark = slice_of(
		        s->mark, held && s->sources->marker && !s->jar ? sizeof(s->mark) : 0);
	}
}

static void answer(struct sandboxes *all, const struct sandbox *sandbox, uint64_t id,
        const char *error, struct slice mark, uint32_t ttl_s)
{
	static struct message_keeper_credentials m;
	int rc;

	memset(&m, 0, sizeof(m));
	m.error = slice_of(error ? error : "", error ? strnlen(error, MESSAGE_WHAT_MAX) : 0);
	m.mark = error ? SLICE("") : mark;
	m.ttl_s = error ? 0 : ttl_s;
	if (sandbox)
		describe(sandbox, &m);
	rc = ipc_send(all->sources->supervisor, buffer,
	        message_keeper_credentials_encode(
	                buffer, sizeof(buffer), MESSAGE_KEEPER_CREDENTIALS, id, &m),
	        NULL, 0);
	if (rc < 0 && rc != -EPIPE)
		log_warn("what was asked about credentials cannot be answered: %s", strerror(-rc));
}

void sandboxes_on_operated(
        struct source *source, uint64_t id, const char *error, struct slice mark, uint32_t ttl_s)
{
	struct sandbox *sandbox = source->context;

	answer(sandbox->all, sandbox, id, error, mark, ttl_s);
}

int sandboxes_operate(struct sandboxes *all, struct ipc_message *message)
{
	struct message_credential_ask m;
	struct sandbox *sandbox;
	const char *error = NULL;

	if (message_credential_ask_decode(&message->body, &m) < 0 || message->fd_count > 0)
		return -EBADMSG;
	sandbox = sandboxes_find(all, m.sandbox_id);
	if (!sandbox || !sandbox->described || sandbox->generation != m.generation) {
		answer(all, NULL, message->head.id, "its policy is changing: try again", SLICE(""),
		        0);
		return 0;
	}
	if (m.what != MESSAGE_CREDENTIAL_LOOK && m.credential >= sandbox->source_count)
		return -EBADMSG;
	if (m.what != MESSAGE_CREDENTIAL_LOOK)
		error = source_operate(&sandbox->sources[m.credential],
		        (enum message_credential_what)m.what, message->head.id);
	if (error) { /* sent without the credentials, so that the operator tries again */
		answer(all, NULL, message->head.id, error, SLICE(""), 0);
		return 0;
	}
	if (m.what != MESSAGE_CREDENTIAL_CHECK && m.what != MESSAGE_CREDENTIAL_ROTATE)
		answer(all, sandbox, message->head.id, NULL, SLICE(""), 0);
	return 0;
}
