/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/key_tokens.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static struct key_token *find(struct key_tokens *all, struct slice label)
{
	for (size_t i = 0; i < CONFIG_TOKENS_MAX; i++)
		if (slice_equals(label, slice_from_string(all->list[i].label)))
			return &all->list[i];
	return NULL;
}

/* Returns a place for a new token: a free one, or that of a token without a process. NULL: none. */
static struct key_token *place_for(struct key_tokens *all, struct slice label)
{
	struct key_token *place = find(all, SLICE(""));

	for (size_t i = 0; i < CONFIG_TOKENS_MAX && !place; i++)
		if (!all->list[i].queue.peer.open)
			place = &all->list[i];
	if (place)
		snprintf(place->label, sizeof(place->label), "%.*s", SLICE_ARG(label));
	return place;
}

static void on_lost(struct token_queue *queue, const char *why)
{
	struct key_token *t = container_of(queue, struct key_token, queue);
	uint8_t message[MESSAGE_WHAT_MAX + MESSAGE_LABEL_MAX + 64];
	const struct message_key_token m = {
	        .label = slice_from_string(t->label), .why = slice_from_string(why ? why : "")};

	snprintf(t->why, sizeof(t->why), "%s", why ? why : "the token's process has ended");
	if (why && t->all->supervisor->open)
		ipc_send(t->all->supervisor, message,
		        message_key_token_encode(
		                message, sizeof(message), MESSAGE_KEEPER_KEY_TOKEN_LATE, 0, &m),
		        NULL, 0);
}

void key_tokens_init(struct key_tokens *all, struct loop *loop, struct ipc_peer *supervisor)
{
	*all = (struct key_tokens){.supervisor = supervisor};
	for (size_t i = 0; i < CONFIG_TOKENS_MAX; i++) {
		all->list[i].all = all;
		token_queue_init(&all->list[i].queue, loop, on_lost);
	}
}

int key_tokens_told(struct key_tokens *all, struct ipc_message *message)
{
	struct message_key_token m;
	struct key_token *t;
	int rc;

	if (message_key_token_decode(&message->body, &m) < 0 ||
	        message->fd_count != (m.why.n ? 0 : 1))
		return -EBADMSG;
	t = find(all, m.label);
	if (!t)
		t = place_for(all, m.label);
	if (!t)
		return -EBADMSG;
	slice_escape(m.why, t->why, sizeof(t->why));
	if (m.why.n) {
		token_queue_lose(&t->queue, t->why);
		return 0;
	}
	rc = token_queue_connect(&t->queue, message->fds[0]);
	message->fds[0] = -1;
	return rc;
}

bool key_tokens_sign(struct key_tokens *all, const struct message_token_key_sign *wanted,
        struct token_question *question, char why[KEY_TOKENS_WHY_MAX])
{
	uint8_t message[PKCS11_URI_MAX + MESSAGE_SCHEME_DIGEST_MAX + 64];
	struct key_token *t = NULL;
	struct pkcs11_uri uri;
	struct slice label = SLICE("");
	size_t n;

	if (!pkcs11_uri_parse(wanted->uri, &uri)) {
		label = slice_of(uri.values[PKCS11_TOKEN].bytes, uri.values[PKCS11_TOKEN].n);
		t = label.n ? find(all, label) : NULL;
	}
	if (!t) {
		snprintf(why, KEY_TOKENS_WHY_MAX,
		        "vethguardd's configuration names no token \"%.*s\" (tokens)",
		        SLICE_ARG(label));
		return false;
	}
	snprintf(why, KEY_TOKENS_WHY_MAX, "%s", t->why);
	if (!t->queue.peer.open)
		return false;
	n = message_token_key_sign_encode(message, sizeof(message), MESSAGE_TOKEN_KEY_SIGN,
	        token_queue_next_id(&t->queue), wanted);
	if (n > 0 && token_queue_add(&t->queue, question, message, n) == 0)
		return true;
	snprintf(why, KEY_TOKENS_WHY_MAX, "the token cannot be asked: no memory, or it is gone");
	return false;
}

void key_tokens_fini(struct key_tokens *all)
{
	for (size_t i = 0; i < CONFIG_TOKENS_MAX; i++)
		token_queue_fini(&all->list[i].queue);
}
