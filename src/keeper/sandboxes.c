/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: a worker may say two things, both checked in full: "give me my CA" and "give
 * me my credential number N". Which sandbox it is follows from the pair its message came over,
 * never from anything it says. A message that is anything else ends that worker's pair, and with it
 * everything that was kept for it; the others do not notice.
 */
#include "keeper/sandboxes.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "keeper/authority.h"
#include "keeper/value.h"
#include "vethguard/base/log.h"

#define MESSAGE_OVERHEAD 128 /* head and fixed fields of MESSAGE_CREDENTIAL */
_Static_assert(VALUE_MAX + MESSAGE_OVERHEAD <= SECRET_MAX,
        "a message with a value is made in secret memory");

struct sandbox {
	struct sandbox *prev, *next;
	struct sandboxes *all;
	struct ipc_peer worker;
	struct ca *intermediate;
	uint64_t id;
	char name[MESSAGE_NAME_MAX + 1];
	char label[MESSAGE_NAME_MAX + 32];
	uint32_t source_count;
	struct source sources[];
};

static void sandbox_free(struct sandbox *sandbox)
{
	struct sandboxes *all = sandbox->all;

	ipc_peer_close(&sandbox->worker);
	for (uint32_t i = 0; i < sandbox->source_count; i++)
		source_fini(&sandbox->sources[i]);
	ca_free(sandbox->intermediate);
	DL_DELETE(all->first, sandbox);
	all->count--;
	free(sandbox);
}

static void send_credential(
        struct sandbox *sandbox, uint64_t id, const struct message_credential *credential)
{
	struct secret message;
	int rc = secret_alloc(
	        &message, MESSAGE_OVERHEAD + credential->value.n + credential->error.n);

	if (rc == 0)
		rc = ipc_send_secret(&sandbox->worker, message.p,
		        message_credential_encode(
		                message.p, message.cap, MESSAGE_CREDENTIAL, id, credential));
	if (rc < 0)
		log_warn("cannot answer the %s: %s", sandbox->label, strerror(-rc));
	secret_free(&message);
}

static void on_answer(struct source *source, uint64_t question, struct slice value, uint32_t ttl_s,
        const char *error)
{
	struct source *first = source - source->credential;
	struct sandbox *sandbox = container_of(first, struct sandbox, sources);
	struct message_credential answer = {
	        .credential = source->credential,
	        .available = !error,
	        .ttl_s = ttl_s,
	        .value = value,
	        .error = error ? slice_from_string(error) : (struct slice){"", 0},
	};

	send_credential(sandbox, question, &answer);
}

static int on_credential_get(struct sandbox *sandbox, struct ipc_message *message)
{
	struct message_credential_get get;

	if (message_credential_get_decode(&message->body, &get) < 0 ||
	        get.credential >= sandbox->source_count)
		return -EBADMSG;
	return source_get(&sandbox->sources[get.credential], message->head.id);
}

static int on_worker_message(struct ipc_peer *peer, struct ipc_message *message)
{
	struct sandbox *sandbox = container_of(peer, struct sandbox, worker);

	if (message->fd_count > 0)
		return -EBADMSG;
	switch (message->head.type) {
	case MESSAGE_CA_GET:
		if (!reader_done(&message->body))
			return -EBADMSG;
		return authority_send(
		        sandbox->all->root, sandbox->intermediate, peer, message->head.id);
	case MESSAGE_CREDENTIAL_GET:
		return on_credential_get(sandbox, message);
	default:
		return -EBADMSG;
	}
}

/* Under the sandbox's id: a worker that says to the keeper what it must not is to be trusted with
 * nothing else. */
static void tell_broken(struct sandbox *sandbox)
{
	uint8_t message[256];
	struct message_text text = {SLICE("it broke the protocol with the keeper")};

	if (!sandbox->all->sources->supervisor->open)
		return;
	ipc_send(sandbox->all->sources->supervisor, message,
	        message_text_encode(message, sizeof(message), MESSAGE_FAILED, sandbox->id, &text),
	        NULL, 0);
}

static void on_worker_end(struct ipc_peer *peer, int error)
{
	struct sandbox *sandbox = container_of(peer, struct sandbox, worker);

	if (error) {
		log_warn("the %s is cut off: %s", sandbox->label, strerror(-error));
		tell_broken(sandbox);
	}
	sandbox_free(sandbox);
}

static void describe(struct sandbox *sandbox, const struct message_keeper_sandbox *m)
{
	sandbox->id = m->sandbox_id;
	slice_escape(m->sandbox, sandbox->name, sizeof(sandbox->name));
	snprintf(sandbox->label, sizeof(sandbox->label), "worker of sandbox %s", sandbox->name);
	for (uint32_t i = 0; i < m->credential_count; i++) {
		struct source *source = &sandbox->sources[i];

		source->sources = sandbox->all->sources;
		source->sandbox_id = m->sandbox_id;
		source->sandbox = sandbox->name;
		source->credential = i;
		source->ttl_s = m->credentials[i].ttl_s;
		source->timeout_ms = m->credentials[i].timeout_ms;
		source->on_answer = on_answer;
		slice_escape(m->credentials[i].name, source->name, sizeof(source->name));
		source_init(source);
	}
	sandbox->source_count = m->credential_count;
}

static struct sandbox *sandbox_new(struct sandboxes *all, const struct message_keeper_sandbox *m)
{
	struct sandbox *sandbox =
	        calloc(1, sizeof(*sandbox) + m->credential_count * sizeof(sandbox->sources[0]));

	if (!sandbox)
		return NULL;
	sandbox->all = all;
	sandbox->intermediate = intermediates_take(all->intermediates);
	if (!sandbox->intermediate) {
		free(sandbox);
		return NULL;
	}
	describe(sandbox, m);
	DL_PREPEND(all->first, sandbox);
	all->count++;
	return sandbox;
}

int sandboxes_add(struct sandboxes *all, struct ipc_message *message)
{
	struct message_keeper_sandbox m;
	struct sandbox *sandbox;
	int rc;

	if (message_keeper_sandbox_decode(&message->body, &m) < 0 || message->fd_count != 1)
		return -EBADMSG;
	if (all->count == SANDBOXES_MAX)
		return -ENOSPC;
	sandbox = sandbox_new(all, &m);
	if (!sandbox)
		return -ENOMEM;
	rc = ipc_peer_open(all->loop, &sandbox->worker, message->fds[0], sandbox->label,
	        on_worker_message, on_worker_end);
	message->fds[0] = -1;
	if (rc < 0)
		sandbox_free(sandbox);
	return rc;
}

void sandboxes_free(struct sandboxes *all)
{
	while (all->first)
		sandbox_free(all->first);
}
