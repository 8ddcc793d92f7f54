/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each question is answered by what holds, or by a copy with the change, which replaces it when the
 * supervisor has kept the file: if anything dies in between, either both say the old or both the
 * new.
 *
 * What is due by itself (CHECK) is done in the same way: a root of this keeper is replaced when a
 * fifth of its time is left, and stays trusted to its end; what was replaced earlier is dropped
 * when its time is over.
 */
#include "keeper/desk_private.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "vethguard/base/clock.h"
#include "vethguard/base/log.h"

#define A_KEY (MESSAGE_CA_KEY_FILE | MESSAGE_CA_TOKEN_KEY)
#define TOO_MANY "too many earlier roots are still trusted: 'vethguard ca show' says until when"

static bool refuse(struct question *q, const char *why)
{
	snprintf(q->why, sizeof(q->why), "%s", why);
	return false;
}

static int64_t retires_s(const struct question *q)
{
	return q->now_s + q->ask.overlap_s;
}

/* The configuration names no key any more: the CA behind the configured one leads again. */
static void drop_configured(struct authorities *all)
{
	for (size_t i = all->count; i-- > 0;)
		if (all->list[i]->origin == MESSAGE_CA_CONFIGURED)
			authorities_drop(all, i);
	all->problem[0] = all->note[0] = 0;
}

static void drop_past(struct question *q)
{
	struct authorities *all = &q->next;

	for (size_t i = all->count; i-- > 0;) {
		bool over =
		        all->retires_s[i] && (all->retires_s[i] <= q->now_s ||
		                                     all->list[i]->described.until_s <= q->now_s);

		if (!over)
			continue;
		q->changes |= all->list[i]->origin != MESSAGE_CA_CONFIGURED;
		authorities_drop(all, i);
	}
}

static bool lead_own(struct question *q, int64_t until_s)
{
	int rc = authorities_lead(&q->next, authority_new(), until_s);

	if (rc)
		return refuse(q, rc == -ENOSPC ? TOO_MANY : "no memory or no randomness");
	q->next.fresh = false;
	q->changes = true;
	return true;
}

static void renew_own(struct question *q)
{
	struct authorities *all = &q->next;

	if (all->count == 0 && !lead_own(q, 0))
		log_error("no root CA can be made: %s", q->why);
	if (all->count > 0 && all->list[0]->origin == MESSAGE_CA_OWN &&
	        authority_ends_soon(all->list[0], q->now_s) &&
	        !lead_own(q, all->list[0]->described.until_s))
		log_error("the root CA ends soon and cannot be replaced: %s", q->why);
	q->why[0] = 0;
}

/* True if both would be written alike. */
static bool same_kept(const struct authorities *a, const struct authorities *b)
{
	if (a->count != b->count)
		return false;
	for (size_t i = 0; i < a->count; i++)
		if (a->list[i] != b->list[i] || a->retires_s[i] != b->retires_s[i])
			return false;
	return true;
}

/* Files that cannot be used any more change nothing for the CA that was read from them before. */
static void configure(
        struct question *q, const struct authorities *now, struct token *token, const int *fds)
{
	struct authorities *all = &q->next;

	if (!(all->configured & A_KEY))
		drop_configured(all);
	if (desk_configure(q, token, fds, retires_s(q)))
		return;
	if (all->count == 0 || all->list[0]->origin != MESSAGE_CA_CONFIGURED)
		return;
	all->roots = now->roots;
	if (q->trying) {
		all->problem[0] = 0;
		return;
	}
	if (ca_key_is_elsewhere(all->list[0]->ca))
		return; /* no other CA can sign, so new sandboxes are refused */
	snprintf(all->note, sizeof(all->note),
	        "The files of the CA cannot be used, and what was "
	        "read before stays in force: %.380s",
	        all->problem);
	all->problem[0] = 0;
}

static bool check(
        struct question *q, const struct authorities *now, struct token *token, const int *fds)
{
	struct authorities *all = &q->next;

	all->configured = q->ask.configured;
	if (all->configured)
		configure(q, now, token, fds);
	else
		drop_configured(all);
	if (!all->configured)
		all->roots.count = 0;
	if (all->count && all->list[0]->origin == MESSAGE_CA_CONFIGURED)
		for (size_t i = all->count; i-- > 1;) /* unseen, or without a key after a restart */
			if (all->fresh || all->list[i]->origin == MESSAGE_CA_CONFIGURED)
				authorities_drop(all, i);
	if (all->count && !all->configured)
		all->retires_s[0] = 0;
	drop_past(q);
	if (!all->configured) {
		renew_own(q);
		drop_past(q); /* the one that was replaced may have ended */
	}
	all->fresh = all->fresh && all->problem[0];
	q->changes |= !same_kept(all, now);
	return true;
}

static bool make_request(struct question *q)
{
	struct authorities *all = &q->next;
	struct slice name = q->ask.name.n ? q->ask.name : SLICE("vethguard node");
	struct buf pem;
	int rc;

	ca_request_free(all->request);
	all->request = ca_request_new();
	buf_init(&pem, sizeof(all->request_pem));
	rc = all->request ? ca_request_pem(all->request, name, &pem) : -ENOMEM;
	if (rc == 0)
		rc = buf_append(&pem, "", 1);
	if (rc == 0)
		memcpy(all->request_pem, buf_bytes(&pem), pem.len);
	buf_fini(&pem);
	q->changes = true;
	return rc == 0 ? true
	               : refuse(q, "no request can be made: no memory or randomness, or the name "
	                           "is not UTF-8");
}

/* The roots that an installed CA may end at: the one given, those of the configuration, or one in
 * the certificate's own file. */
static bool choose_roots(
        struct question *q, const struct ca_papers *papers, struct ca_papers *roots)
{
	struct ca_description d;

	*roots = q->next.roots;
	if (q->ask.root.n > 0)
		return ca_papers_read(q->ask.root, "the root", roots, q->why) == 0;
	for (size_t i = 0; roots->count == 0 && i < papers->count; i++)
		if (ca_describe(ca_paper(papers, i), &d) == 0 && d.is_self_signed)
			ca_papers_add(roots, ca_paper(papers, i));
	return roots->count > 0 ? true
	                        : refuse(q, "no root is known: give --root, or name it in the "
	                                    "configuration (ca: root)");
}

/* A root that is given has to be one of the configuration's, if that names any. */
static bool fits_configuration(struct question *q, const struct ca_papers *root)
{
	const struct ca_papers *roots = &q->next.roots;

	for (size_t i = 0; i < roots->count; i++)
		if (slice_equals(ca_paper(roots, i), ca_paper(root, 0)))
			return true;
	return roots->count == 0 ||
	       refuse(q, "the root given is not the one of the configuration (ca: root), which "
	                 "sandboxes trust");
}

static bool install(struct question *q)
{
	static struct ca_papers papers, roots, chain, root;
	struct authorities *all = &q->next;
	struct ca *ca;
	int rc;

	if (q->next.configured & A_KEY)
		return refuse(q, "the configuration names a key (ca: key), which signs; remove it "
		                 "there first");
	if (!all->request)
		return refuse(q, "no key waits for a certificate: run 'vethguard ca csr' first");
	if (ca_papers_read(q->ask.certificate, "the certificate", &papers, q->why) != 0 ||
	        !choose_roots(q, &papers, &roots))
		return false;
	ca = ca_request_accept(all->request, ca_paper(&papers, 0), q->why);
	if (!ca)
		return false;
	all->note[0] = 0;
	if (ca_chain(ca_paper(&papers, 0), &papers, &roots, &chain, &root, q->why) != 0 ||
	        ca_check(ca, NULL, &chain, ca_paper(&root, 0), q->why, all->note) != 0 ||
	        !fits_configuration(q, &root)) {
		ca_free(ca);
		return false;
	}
	rc = authorities_lead(
	        all, authority_of(ca, MESSAGE_CA_INSTALLED, &chain, &root), retires_s(q));
	if (rc)
		return refuse(q, rc == -ENOSPC ? TOO_MANY : "no memory");
	if (all->fresh)
		while (all->count > 1)
			authorities_drop(all, 1);
	ca_request_free(all->request);
	all->request = NULL;
	all->problem[0] = 0;
	all->fresh = false;
	q->changes = true;
	return true;
}

static bool rotate(struct question *q)
{
	const struct authorities *all = &q->next;

	if (q->next.configured & A_KEY) {
		q->every = true;
		return true;
	}
	if (all->configured || (all->count && all->list[0]->origin == MESSAGE_CA_INSTALLED))
		return make_request(q);
	return lead_own(q, retires_s(q));
}

static bool answer_by(
        struct question *q, const struct authorities *now, struct token *token, const int *fds)
{
	switch (q->ask.what) {
	case MESSAGE_CA_CHECK:
		return check(q, now, token, fds);
	case MESSAGE_CA_REQUEST:
		return make_request(q);
	case MESSAGE_CA_INSTALL:
		return install(q);
	case MESSAGE_CA_ROTATE:
		return rotate(q);
	default:
		return true;
	}
}

static void forget_next(struct desk *desk)
{
	if (desk->next_id)
		authorities_fini(&desk->next);
	desk->next_id = 0;
}

/* Puts the CAs in force: workers whose CA is gone, or ends earlier than the one they would get now,
 * get another one. */
static void put_in_force(struct desk *desk, struct authorities *next, bool every)
{
	authorities_fini(desk->now);
	*desk->now = *next;
	sandboxes_renew(desk->sandboxes, every);
}

/* Returns how many descriptors come with a question. */
static size_t files_of(const struct message_keeper_ca_ask *ask)
{
	if (ask->what == MESSAGE_CA_CHECK && ask->problem.n == 0)
		return 1 + (size_t)__builtin_popcount(ask->configured & ~MESSAGE_CA_TOKEN_KEY);
	return ask->what == MESSAGE_CA_LOOK ? 0 : 1;
}

/* Puts the change in force, at once if it does not concern the file. */
static int settle(struct desk *desk, struct question *q, uint64_t id, int file, bool good)
{
	int rc = 0;

	if (good && q->changes) {
		rc = file < 0 ? -ENOENT : authorities_save(&q->next, file);
		if (rc) {
			snprintf(q->why, sizeof(q->why),
			        "the file of the CAs cannot be written: %s", strerror(-rc));
			good = false;
		}
	}
	rc = desk_answer(desk, q, id, good);
	if (q->why[0] || !good || q->ask.what == MESSAGE_CA_LOOK) {
		authorities_fini(&q->next);
	} else if (q->changes) {
		desk->next = q->next;
		desk->next_id = id;
		desk->every = q->every;
	} else {
		put_in_force(desk, &q->next, q->every);
	}
	return rc == -EPIPE ? 0 : rc;
}

int desk_ask(struct desk *desk, struct ipc_message *message)
{
	struct question *q = calloc(1, sizeof(*q));
	int rc;

	if (!q)
		return -ENOMEM;
	rc = message_keeper_ca_ask_decode(&message->body, &q->ask);
	if (rc < 0 || message->fd_count != files_of(&q->ask) ||
	        (q->ask.configured && !(q->ask.configured & MESSAGE_CA_ROOT_FILE))) {
		free(q);
		return -EBADMSG;
	}
	forget_next(desk);
	q->now_s = clock_real_ms() / 1000;
	rc = authorities_copy(&q->next, desk->now);
	if (rc == 0)
		rc = settle(desk, q, message->head.id, message->fd_count ? message->fds[0] : -1,
		        answer_by(q, desk->now, desk->token, message->fds + 1));
	free(q);
	return rc == -EBADMSG ? rc : 0;
}

int desk_kept(struct desk *desk, const struct ipc_message *message)
{
	if (!reader_done(&message->body) || message->fd_count > 0)
		return -EBADMSG;
	if (desk->next_id == 0 || desk->next_id != message->head.id)
		return 0; /* another question came in between */
	desk->next_id = 0;
	put_in_force(desk, &desk->next, desk->every);
	return 0;
}

void desk_fini(struct desk *desk)
{
	forget_next(desk);
}
