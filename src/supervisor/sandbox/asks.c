/* SPDX-License-Identifier: Apache-2.0 */
/* Theory of operation: one bounded array holds waiting requests and grants. A decision goes to the
 * worker that asked. A grant goes to all workers: each approves the requests that wait there, and
 * tells that they wait no longer. */
#include "supervisor/sandbox/asks.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <utlist.h>

#include "supervisor/supervisor.h"
#include "vethguard/base/clock.h"
#include "vethguard/base/log.h"

#define ITEMS_MAX (4 * MESSAGE_ASKS_MAX) /* grants, and what waits at a few workers */
#define MS_PER_S 1000

struct asks {
	size_t count, grants;
	struct asks_item items[ITEMS_MAX];
};

static uint8_t buffer[MESSAGE_BYTES_MAX];

static void remove_at(struct asks *a, size_t i)
{
	free(a->items[i].text);
	a->grants -= !a->items[i].waits;
	a->count--;
	memmove(&a->items[i], &a->items[i + 1], (a->count - i) * sizeof(a->items[0]));
}

/* Copies the texts of a question behind each other. Returns false without memory. */
static bool keep(struct asks_item *item, const struct message_worker_ask *m)
{
	struct slice *const texts[] = {&item->ask.rule, &item->ask.method, &item->ask.host,
	        &item->ask.path, &item->ask.query};
	size_t n = 1;
	char *at;

	item->ask = *m;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		n += texts[i]->n;
	at = item->text = malloc(n);
	for (size_t i = 0; at && i < sizeof(texts) / sizeof(texts[0]); i++) {
		if (texts[i]->n)
			memcpy(at, texts[i]->p, texts[i]->n);
		texts[i]->p = at;
		at += texts[i]->n;
	}
	return item->text != NULL;
}

static int answer(struct instance *i, uint64_t id, bool approved, const char *text)
{
	const struct message_worker_answer m = {approved, slice_from_string(text)};
	size_t n =
	        message_worker_answer_encode(buffer, sizeof(buffer), MESSAGE_WORKER_ANSWER, id, &m);

	return role_send(&i->worker, buffer, n, NULL, 0);
}

static const char *add(struct instance *i, uint64_t id, const struct message_worker_ask *m)
{
	struct sandbox *s = i->sandbox;
	struct asks_item item = {.id = id,
	        .waits = i,
	        .since_ms = clock_real_ms(),
	        .until_ms = clock_boot_ms() + (int64_t)m->wait_s * MS_PER_S};

	if (!s->persistent)
		return "a person has to approve it, and 'vethguard run' has nobody to ask";
	if (!s->asks)
		s->asks = calloc(1, sizeof(*s->asks));
	if (!s->asks || s->asks->count >= ITEMS_MAX - MESSAGE_ASKS_MAX || !keep(&item, m))
		return "a person has to approve it, and too many requests wait for that already";
	s->asks->items[s->asks->count++] = item;
	log_sandbox(LOG_LEVEL_INFO, s->name, "%016llx waits for an approval, by rule %.*s",
	        (unsigned long long)id, SLICE_ARG(m->rule));
	return NULL;
}

int asks_take(struct instance *i, struct ipc_message *message)
{
	struct message_worker_ask m;
	const char *why;

	if (message_worker_ask_decode(&message->body, &m) != 0 || message->fd_count)
		return -EBADMSG;
	why = add(i, message->head.id, &m);
	if (why)
		answer(i, message->head.id, false, why);
	else if (i->sandbox->owner->asked)
		i->sandbox->owner->asked(i->sandbox->owner, message->head.id, &m);
	return 0;
}

static void end_waiting(struct instance *i, uint64_t id, bool all)
{
	struct asks *a = i->sandbox ? i->sandbox->asks : NULL;

	for (size_t k = a ? a->count : 0; k > 0; k--)
		if (a->items[k - 1].waits == i && (all || a->items[k - 1].id == id))
			remove_at(a, k - 1);
}

int asks_take_end(struct instance *i, struct ipc_message *message)
{
	if (!reader_done(&message->body) || message->fd_count)
		return -EBADMSG;
	end_waiting(i, message->head.id, false);
	return 0;
}

void asks_forget(struct instance *i)
{
	end_waiting(i, 0, true);
}

void asks_free(struct sandbox *s)
{
	while (s->asks && s->asks->count)
		remove_at(s->asks, s->asks->count - 1);
	free(s->asks);
	s->asks = NULL;
}

/* --- grants --- */

static void send_grant(struct instance *i, const struct asks_item *item, bool ends)
{
	char text[MESSAGE_ASK_TEXT_MAX];
	struct message_worker_grant m = {.ends = ends,
	        .whole = item->whole,
	        .until_ms = (uint64_t)item->until_ms,
	        .ask = item->ask};

	snprintf(text, sizeof(text), "approved by %s (grant %016llx)", item->by,
	        (unsigned long long)item->id);
	m.text = slice_from_string(text);
	role_send(&i->worker, buffer,
	        message_worker_grant_encode(
	                buffer, sizeof(buffer), MESSAGE_WORKER_GRANT, item->id, &m),
	        NULL, 0);
}

static void tell_all(struct sandbox *s, const struct asks_item *item, bool ends)
{
	struct instance *i;

	DL_FOREACH(s->instances, i)
	{
		if (role_runs(&i->worker) && i->worker_request != 0 && i->state != INSTANCE_ENDING)
			send_grant(i, item, ends);
	}
}

/* Forgets grants whose time is over. Workers end them by themselves. */
static void forget_ended(struct sandbox *s)
{
	int64_t now_ms = clock_boot_ms();

	for (size_t i = s->asks ? s->asks->count : 0; i > 0; i--) {
		const struct asks_item *item = &s->asks->items[i - 1];

		if (!item->waits && item->until_ms && item->until_ms <= now_ms)
			remove_at(s->asks, i - 1);
	}
}

void instance_tell_proposed(
        struct instance *i, uint64_t id, const struct message_worker_proposed *m)
{
	role_send(&i->worker, buffer,
	        message_worker_proposed_encode(
	                buffer, sizeof(buffer), MESSAGE_WORKER_PROPOSED, id, m),
	        NULL, 0);
}

void sandbox_tell_proposed(struct sandbox *s, uint64_t id, const struct message_worker_proposed *m)
{
	struct instance *i;

	DL_FOREACH(s->instances, i)
	{
		if (role_runs(&i->worker) && i->worker_request != 0 && i->state != INSTANCE_ENDING)
			instance_tell_proposed(i, id, m);
	}
}

void asks_tell(struct instance *i)
{
	struct asks *a = i->sandbox->asks;

	forget_ended(i->sandbox);
	for (size_t k = 0; a && k < a->count; k++)
		if (!a->items[k].waits)
			send_grant(i, &a->items[k], false);
	if (i->sandbox->owner->tell_proposals)
		i->sandbox->owner->tell_proposals(i->sandbox->owner, i);
}

const struct asks_item *asks_at(struct sandbox *s, size_t index)
{
	forget_ended(s);
	return s->asks && index < s->asks->count ? &s->asks->items[index] : NULL;
}

static int grant(struct sandbox *s, size_t index, const struct asks_decision *d)
{
	struct asks *a = s->asks;
	struct asks_item *item = &a->items[index];

	if (a->grants >= MESSAGE_ASKS_MAX)
		return -ENOSPC;
	item->waits = NULL; /* what waits is approved by the grant */
	item->since_ms = clock_real_ms();
	item->until_ms = d->for_s ? clock_boot_ms() + (int64_t)d->for_s * MS_PER_S : 0;
	item->whole = d->whole;
	snprintf(item->by, sizeof(item->by), "%s", d->by);
	a->grants++;
	tell_all(s, item, false);
	return 0;
}

static size_t find(const struct asks *a, uint64_t id)
{
	size_t i = 0;

	while (i < a->count && a->items[i].id != id)
		i++;
	return i;
}

int asks_decide(struct sandbox *s, uint64_t id, const struct asks_decision *d)
{
	char text[MESSAGE_ASK_TEXT_MAX];
	struct asks *a = s->asks;
	size_t i;

	forget_ended(s);
	i = a ? find(a, id) : 0;
	if (!a || i == a->count)
		return -ENOENT;
	if (!a->items[i].waits && d->approved)
		return -EINVAL;
	if (d->approved && d->lasts)
		return grant(s, i, d);
	if (!a->items[i].waits) {
		tell_all(s, &a->items[i], true);
	} else {
		snprintf(text, sizeof(text), "%s by %s%s%s", d->approved ? "approved" : "refused",
		        d->by, d->reason && *d->reason ? ": " : "", d->reason ? d->reason : "");
		answer(a->items[i].waits, id, d->approved, text);
	}
	remove_at(a, i);
	return 0;
}
