/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Signatures by a credential's key in a token. The keeper has at most SIGN_OPEN_MAX questions; the
 * others wait here, in order. Until a question is sent it has the credential's name and no index,
 * because the index may belong to another credential after a change of the policy.
 *
 * If a caller cancels a question that was sent, the question stays open until the keeper answers.
 * Then the next one is sent.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "credential/store_private.h"

#define NO_KEEPER "The keeper of credentials cannot be asked for a signature."

static uint32_t find(const struct credential_store *store, struct slice name)
{
	struct policy_credential c;

	for (uint32_t i = 0; i < store->count; i++) {
		policy_credential(store->policy, i, &c);
		if (slice_equals(c.name, name))
			return i;
	}
	return POLICY_NONE;
}

static struct credential_signature *at(struct list *place)
{
	return container_of(place, struct credential_signature, place);
}

static void finish(struct credential_signature *s, struct slice signature, const char *error)
{
	list_remove(&s->place);
	s->on_signed(s, signature, error);
}

/* Returns 0, or -EAGAIN: there is no keeper at the moment, and s goes on waiting. The caller of s
 * is told any other error. */
static int send_one(struct credential_store *store, struct credential_signature *s)
{
	uint32_t credential = find(store, slice_from_string(s->name));
	int rc = credential == POLICY_NONE || !store->sign ? -ENOENT : 0;

	s->id = ++store->last_signature;
	if (rc == 0)
		rc = store->sign(store->context, s->id, credential, s->scheme,
		        slice_of((const char *)s->digest, s->digest_n));
	if (rc == -EAGAIN)
		return rc;
	list_remove(&s->place);
	if (rc == 0) {
		list_append(&store->signing, &s->place);
		store->signing_open++;
		return 0;
	}
	s->on_signed(s, SLICE(""),
	        rc == -ENOENT ? "The policy no longer has this credential." : NO_KEEPER);
	return 0;
}

static void send_waiting(struct credential_store *store)
{
	while (store->signing_open < SIGN_OPEN_MAX && !list_is_empty(&store->to_sign) &&
	        send_one(store, at(store->to_sign.next)) == 0)
		;
}

void store_sign_init(struct credential_store *store)
{
	list_init(&store->to_sign);
	list_init(&store->signing);
	store->send_signatures.run = store_on_send_signatures;
}

void store_on_send_signatures(struct loop_task *task)
{
	send_waiting(container_of(task, struct credential_store, send_signatures));
}

void credential_store_on_sign(struct credential_store *store, credential_sign sign)
{
	store->sign = sign;
}

int credential_store_sign(struct credential_store *store, struct slice name, uint16_t scheme,
        struct slice digest, struct credential_signature *s)
{
	if (name.n >= sizeof(s->name) || digest.n > sizeof(s->digest))
		return -EINVAL;
	snprintf(s->name, sizeof(s->name), "%.*s", SLICE_ARG(name));
	s->scheme = scheme;
	s->digest_n = digest.n;
	memcpy(s->digest, digest.p, digest.n);
	list_append(&store->to_sign, &s->place);
	loop_task_queue(store->loop, &store->send_signatures);
	return 0;
}

void credential_signature_cancel(struct credential_signature *s)
{
	list_remove(&s->place);
}

void credential_store_signed(
        struct credential_store *store, uint64_t id, struct slice signature, const char *error)
{
	if (id <= store->signed_anew)
		return;
	if (store->signing_open > 0)
		store->signing_open--;
	for (struct list *l = store->signing.next; l != &store->signing; l = l->next) {
		if (at(l)->id != id)
			continue;
		finish(at(l), signature, error);
		break;
	}
	send_waiting(store);
}

void store_sign_again(struct credential_store *store)
{
	store->signing_open = 0;
	store->signed_anew = store->last_signature;
	while (!list_is_empty(&store->signing)) {
		struct list *l = store->signing.next;

		list_remove(l);
		list_append(&store->to_sign, l);
	}
	send_waiting(store);
}

void store_sign_fail(struct credential_store *store, const char *error)
{
	struct list *all[] = {&store->signing, &store->to_sign};

	store->signing_open = 0;
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		while (!list_is_empty(all[i]))
			finish(at(all[i]->next), SLICE(""), error);
}

void store_sign_fini(struct credential_store *store)
{
	loop_task_cancel(store->loop, &store->send_signatures);
	while (!list_is_empty(&store->signing))
		list_remove(store->signing.next);
	while (!list_is_empty(&store->to_sign))
		list_remove(store->to_sign.next);
}
