/* SPDX-License-Identifier: Apache-2.0 */
/* The desk's answers: the CAs, the roots that sandboxes are to trust, and notes for people. */
#include <errno.h>
#include <stdio.h>

#include "keeper/desk_private.h"

#define ANSWER_MAX (4 * MESSAGE_PEM_MAX)

static void describe(const struct authorities *all, struct message_keeper_ca *m)
{
	m->count = all->count;
	m->unusable = all->problem[0] || all->count == 0;
	for (size_t i = 0; i < all->count; i++) {
		const struct authority *a = all->list[i];

		m->cas[i].origin = (uint8_t)a->origin;
		m->cas[i].fingerprint = slice_of(a->described.fingerprint, CA_FINGERPRINT_BYTES);
		m->cas[i].root = slice_of(a->root_described.fingerprint, CA_FINGERPRINT_BYTES);
		m->cas[i].subject = slice_from_string(a->described.subject);
		m->cas[i].root_subject = slice_from_string(a->root_described.subject);
		m->cas[i].from_s = (uint64_t)a->described.from_s;
		m->cas[i].until_s = (uint64_t)a->described.until_s;
		m->cas[i].root_until_s = (uint64_t)a->root_described.until_s;
		m->cas[i].retires_s = (uint64_t)all->retires_s[i];
	}
}

static void add_notes(const struct authorities *all, int64_t now_s, char out[MESSAGE_WHAT_MAX])
{
	const struct authority *a = all->count ? all->list[0] : NULL;
	const char *ends = "";

	if (a && a->described.until_s <= now_s)
		ends = "The current CA has ended, and new sandboxes are refused: replace it.\n";
	else if (a && a->origin == MESSAGE_CA_INSTALLED && authority_ends_soon(a, now_s))
		ends = "The current CA ends soon: 'vethguard ca rotate' prints a request for the "
		       "next one.\n";
	else if (a && a->origin == MESSAGE_CA_CONFIGURED && authority_ends_soon(a, now_s))
		ends = "The configuration's CA ends soon: put the next one in its place.\n";
	snprintf(out, MESSAGE_WHAT_MAX, "%s%.440s%s%.440s%s", ends, all->problem,
	        all->problem[0] ? "\n" : "", all->note, all->note[0] ? "\n" : "");
}

int desk_answer(struct desk *desk, struct question *q, uint64_t id, bool good)
{
	static uint8_t message[ANSWER_MAX];
	const struct authorities *all = good ? &q->next : desk->now;
	struct message_keeper_ca m = {.changed = good && q->changes, .trying = q->trying};
	char notes[MESSAGE_WHAT_MAX];
	struct buf trusted;
	int rc;

	buf_init(&trusted, MESSAGE_PEM_MAX);
	rc = authorities_trusted(all, NULL, &trusted);
	if (rc && good) {
		snprintf(q->why, sizeof(q->why), "%s",
		        rc == -ENOBUFS ? "the roots to trust are too many or too large together"
		                       : "no memory");
		buf_fini(&trusted);
		return desk_answer(desk, q, id, false);
	}
	describe(all, &m);
	add_notes(all, q->now_s, notes);
	m.error = slice_from_string(q->why);
	m.notes = slice_from_string(notes);
	m.trusted = buf_slice(&trusted);
	m.request = slice_from_string(all->request ? all->request_pem : "");
	rc = ipc_send(desk->supervisor, message,
	        message_keeper_ca_encode(message, sizeof(message), MESSAGE_KEEPER_CA, id, &m), NULL,
	        0);
	buf_fini(&trusted);
	return rc;
}
