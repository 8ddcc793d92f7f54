/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A worker may send four messages, all checked completely: "give me my CA", "give me my credential
 * number N", "let the key of my credential number N sign this" and "a login has given this token".
 * The socket pair of a message determines its sandbox, never its content. Any other message closes
 * that worker's pair and frees everything that was kept for it; the others do not notice.
 *
 * The supervisor tells the keeper a worker's sandbox before it tells the worker, but over another
 * pair: questions for credentials that arrive earlier are kept until then, one for each possible
 * credential. The same applies when a worker gets another policy: each question has the generation
 * of its number. A question of an earlier generation than the last described one is dropped: the
 * worker does not know the new one yet, and asks again when it does.
 */
#include "keeper/sandbox.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

#include "keeper/value.h"
#include "vethguard/base/log.h"
#include "vethguard/tls/ca_names.h"

#define MESSAGE_OVERHEAD 128 /* head and fixed fields of MESSAGE_CREDENTIAL */
_Static_assert(VALUE_MAX + MESSAGE_OVERHEAD <= SECRET_MAX,
        "a message with a value is made in secret memory");

#define EARLY_MAX POLICY_CREDENTIALS_MAX /* questions before the sandbox is known */

static void sources_free(struct source *sources, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		source_end_operation(&sources[i], "its policy has changed, or its worker is gone");
	for (uint32_t i = 0; i < count; i++)
		source_fini(&sources[i]);
	free(sources);
}

static void sandbox_free(struct sandbox *sandbox)
{
	struct sandboxes *all = sandbox->all;

	sandbox_forget_job(sandbox);
	sandbox_forget_signatures(sandbox);
	ipc_peer_close(&sandbox->worker);
	sources_free(sandbox->sources, sandbox->source_count);
	free(sandbox->early);
	free(sandbox->names);
	ca_free(sandbox->intermediate);
	authority_put(sandbox->authority);
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
		                message.p, message.cap, MESSAGE_CREDENTIAL, id, credential),
		        NULL, 0);
	if (rc < 0 && rc != -EPIPE) /* a worker that ends has no use for it: its end is told */
		log_warn("cannot answer the %s: %s", sandbox->label, strerror(-rc));
	secret_free(&message);
}

static void on_answer(struct source *source, uint64_t question, struct slice value, uint32_t ttl_ms,
        uint32_t renew_ms, const char *error)
{
	struct sandbox *sandbox = source->context;
	struct message_credential answer = {
	        .credential = source->credential,
	        .available = !error,
	        .ttl_ms = ttl_ms,
	        .renew_ms = renew_ms,
	        .value = value,
	        .error = error ? slice_from_string(error) : (struct slice){"", 0},
	};

	send_credential(sandbox, question, &answer);
}

static int ask(struct sandbox *sandbox, uint64_t id, uint32_t credential, bool renew)
{
	if (credential >= sandbox->source_count)
		return -EBADMSG;
	return source_get(&sandbox->sources[credential], id, renew);
}

/* Keeps questions of the latest generation only: the worker has repeated the earlier ones. */
static int keep_early(
        struct sandbox *sandbox, uint64_t id, const struct message_credential_get *get)
{
	if (!sandbox->early)
		sandbox->early = calloc(EARLY_MAX, sizeof(sandbox->early[0]));
	if (!sandbox->early)
		return -ENOMEM;
	if (get->generation < sandbox->early_generation)
		return -EBADMSG;
	if (get->generation > sandbox->early_generation)
		sandbox->early_count = 0;
	sandbox->early_generation = get->generation;
	if (sandbox->early_count == EARLY_MAX)
		return -EBADMSG;
	sandbox->early[sandbox->early_count++] = (struct early){id, get->credential};
	return 0;
}

static int on_credential_get(struct sandbox *sandbox, struct ipc_message *message)
{
	struct message_credential_get get;

	if (message_credential_get_decode(&message->body, &get) < 0)
		return -EBADMSG;
	if (!sandbox->described || get.generation > sandbox->generation)
		return keep_early(sandbox, message->head.id, &get);
	if (get.generation < sandbox->generation)
		return 0;
	return ask(sandbox, message->head.id, get.credential, get.renew);
}

/* A name that is none of its credentials any more is ignored: the policy has just changed. */
static int on_seal(struct sandbox *sandbox, struct ipc_message *message)
{
	struct message_credential_seal seal;
	char name[MESSAGE_NAME_MAX + 1];

	if (message_credential_seal_decode(&message->body, &seal) < 0 || !jar_can_hold(seal.value))
		return -EBADMSG;
	slice_escape(seal.name, name, sizeof(name));
	for (uint32_t i = 0; i < sandbox->source_count; i++)
		if (sandbox->sources[i].jar && strcmp(sandbox->sources[i].name, name) == 0)
			source_seal(&sandbox->sources[i],
			        &(struct jar_token){
			                .value = seal.value, .jwt = seal.jwt, .end = seal.end});
	return 0;
}

static int on_worker_message(struct ipc_peer *peer, struct ipc_message *message)
{
	struct sandbox *sandbox = container_of(peer, struct sandbox, worker);

	if (message->fd_count > 0)
		return -EBADMSG;
	switch (message->head.type) {
	case MESSAGE_CA_GET:
		return sandbox_on_ca_get(sandbox, message);
	case MESSAGE_CREDENTIAL_GET:
		return on_credential_get(sandbox, message);
	case MESSAGE_CREDENTIAL_SIGN:
		return sandbox_on_sign(sandbox, message);
	case MESSAGE_CREDENTIAL_SEAL:
		return on_seal(sandbox, message);
	default:
		return -EBADMSG;
	}
}

/* Reports it under the sandbox's id: a worker that breaks the protocol with the keeper must not be
 * trusted with anything else. */
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

/* Answers early questions; one of them may be a violation of the protocol. */
static void hear_early(struct sandbox *sandbox)
{
	int rc = 0;

	if (sandbox->early_count && sandbox->early_generation > sandbox->generation)
		return;
	if (sandbox->early_generation < sandbox->generation)
		sandbox->early_count = 0;
	for (uint32_t i = 0; i < sandbox->early_count && rc == 0; i++)
		rc = ask(sandbox, sandbox->early[i].id, sandbox->early[i].credential, false);
	free(sandbox->early);
	sandbox->early = NULL;
	sandbox->early_count = 0;
	if (rc < 0)
		on_worker_end(&sandbox->worker, rc);
}

/* The same policy again: pending questions are answered, and no value is held. */
static int forget(struct sandbox *sandbox)
{
	for (uint32_t i = 0; i < sandbox->source_count; i++)
		source_forget(&sandbox->sources[i]);
	return 0;
}

static bool take_key(struct source *source, struct slice uri)
{
	source->key = strndup(uri.p, uri.n);
	return source->key;
}

static int describe(struct sandbox *sandbox, const struct message_keeper_sandbox *m)
{
	struct source *before = sandbox->sources;
	uint32_t count = sandbox->source_count;
	int rc = 0;

	sandbox_forget_signatures(sandbox); /* the worker asks again */
	sandbox->source_count = 0;
	sandbox->sources = calloc(m->credential_count, sizeof(sandbox->sources[0]));
	if (!sandbox->sources && m->credential_count > 0) {
		sources_free(before, count);
		return -ENOMEM;
	}
	sandbox->generation = m->generation;
	slice_escape(m->sandbox, sandbox->name, sizeof(sandbox->name));
	snprintf(sandbox->label, sizeof(sandbox->label), "worker of sandbox %s", sandbox->name);
	for (uint32_t i = 0; i < m->credential_count; i++) {
		struct source *source = &sandbox->sources[i];

		source->sources = sandbox->all->sources;
		source->sandbox_id = m->sandbox_id;
		source->generation = m->generation;
		source->sandbox = sandbox->name;
		source->credential = i;
		source->ttl_s = m->credentials[i].ttl_s;
		source->timeout_ms = m->credentials[i].timeout_ms;
		source->revoked = m->credentials[i].revoked;
		source->on_answer = on_answer;
		source->context = sandbox;
		slice_escape(m->credentials[i].name, source->name, sizeof(source->name));
		source_init(source);
		sandbox->source_count = i + 1;
		if (m->credentials[i].key.n && !take_key(source, m->credentials[i].key))
			rc = -ENOMEM;
		if (!m->credentials[i].sealed)
			continue;
		source->jar = jars_get(&sandbox->all->jars, m->owner, source->name);
		if (!source->jar)
			rc = -ENOMEM;
	}
	sources_free(before, count); /* only now: jars that are kept stay */
	if (rc < 0)
		return rc;
	sandbox->described = true;
	hear_early(sandbox);
	return 0;
}

/* The newest come first, and most are looked up soon. */
struct sandbox *sandboxes_find(const struct sandboxes *all, uint64_t id)
{
	struct sandbox *sandbox;

	DL_FOREACH(all->first, sandbox)
	{
		if (sandbox->id == id)
			return sandbox;
	}
	return NULL;
}

int sandboxes_describe(struct sandboxes *all, struct ipc_message *message)
{
	struct message_keeper_sandbox m;
	struct sandbox *sandbox;

	if (message_keeper_sandbox_decode(&message->body, &m) < 0 || message->fd_count > 0)
		return -EBADMSG;
	sandbox = sandboxes_find(all, m.sandbox_id);
	if (!sandbox)
		return 0;
	sandbox->request = message->head.id;
	if (m.names.n && !ca_names_are_plain(m.names))
		return -EBADMSG;
	if (sandbox_take_names(sandbox, m.names) != 0)
		return -ENOMEM;
	if (!sandbox->described || m.generation > sandbox->generation)
		return describe(sandbox, &m);
	return m.generation == sandbox->generation ? forget(sandbox) : -EBADMSG;
}

static struct sandbox *sandbox_new(
        struct sandboxes *all, uint64_t id, const struct message_keeper_worker *m)
{
	struct sandbox *sandbox = calloc(1, sizeof(*sandbox));
	char why[CA_WHY_MAX];

	if (!sandbox)
		return NULL;
	sandbox->all = all;
	sandbox->id = id;
	snprintf(sandbox->label, sizeof(sandbox->label), "worker in store");
	sandbox->root_known = m->root.n == CA_FINGERPRINT_BYTES;
	if (sandbox->root_known)
		memcpy(sandbox->root, m->root.p, CA_FINGERPRINT_BYTES);
	sandbox->waits = m->waits;
	sandbox_make_intermediate(sandbox, why);
	DL_PREPEND(all->first, sandbox);
	all->count++;
	return sandbox;
}

int sandboxes_add(struct sandboxes *all, struct ipc_message *message)
{
	struct message_keeper_worker m = {.root = SLICE("")};
	struct sandbox *sandbox;
	int rc = 0;

	if (!reader_done(&message->body)) /* an empty body: a new sandbox's */
		rc = message_keeper_worker_decode(&message->body, &m);
	if (rc < 0 || message->fd_count != 1)
		return -EBADMSG;
	if (all->count == SANDBOXES_MAX)
		return -ENOSPC;
	sandbox = sandbox_new(all, message->head.id, &m);
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
