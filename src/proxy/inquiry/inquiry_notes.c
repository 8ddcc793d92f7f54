/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: there are three rings: of denials, of requests that a person has decided
 * about, and of proposals. A new note takes the place of the oldest one. Requests that still wait
 * are in the proxy's own list (asking.h). Notes end with the worker, except those of proposals:
 * the supervisor tells the next worker about these.
 */
#include <stdlib.h>

#include "proxy/deny/deny.h"
#include "proxy/exchange/asking.h"
#include "proxy/inquiry/inquiry.h"
#include "proxy/inquiry/inquiry_page.h"
#include "vethguard/base/clock.h"

#define REQUEST_SHOWN_MAX 1024

struct denial {
	uint64_t id;
	int64_t time_ms;
	uint16_t status;
	struct slice code;            /* static */
	const char *title, *advice;   /* static */
	char *rule, *reason, *detail; /* owned */
};

struct decided {
	uint64_t id;
	int64_t time_ms;
	bool approved;
	char *request, *text; /* owned */
};

struct proposal {
	uint64_t id;
	int64_t time_ms;
	enum message_proposal_state state;
	char *to, *text; /* owned */
};

struct inquiry_notes {
	unsigned next_denial, next_decided, next_proposal;
	struct denial denials[INQUIRY_DENIALS_MAX];
	struct decided decided[INQUIRY_ASKS_MAX];
	struct proposal proposals[MESSAGE_PROPOSALS_MAX];
};

static const char *const states[] = {
        [MESSAGE_PROPOSAL_WAITS] = "waiting",
        [MESSAGE_PROPOSAL_APPROVED] = "approved",
        [MESSAGE_PROPOSAL_REFUSED] = "refused",
        [MESSAGE_PROPOSAL_ENDED] = "ended",
};
_Static_assert(sizeof(states) / sizeof(states[0]) == MESSAGE_PROPOSAL_KINDS, "a name per state");

static struct inquiry_notes *notes_of(struct proxy *p)
{
	if (!p->inquiry.notes)
		p->inquiry.notes = calloc(1, sizeof(*p->inquiry.notes));
	return p->inquiry.notes;
}

static char *copy(struct slice text)
{
	return strndup(text.p ? text.p : "", text.n);
}

static struct slice text_of(const char *text)
{
	return slice_from_string(text ? text : "");
}

/* --- denials --- */

static void denial_fini(struct denial *d)
{
	free(d->rule);
	free(d->reason);
	free(d->detail);
}

void inquiry_note_denial(const struct exchange *ex)
{
	const struct policy *policy = ex->proxy->config.policy;
	uint32_t rule = ex->verdict.decision.rule;
	struct inquiry_notes *notes;
	struct denial *d;
	struct buf text;

	if (ex->verdict.decision.inquires || !policy_answers(policy))
		return;
	notes = notes_of(ex->proxy);
	if (!notes)
		return;
	d = &notes->denials[notes->next_denial++ % INQUIRY_DENIALS_MAX];
	denial_fini(d);
	buf_init(&text, DENY_TEXT_ROOM);
	deny_put_detail(ex, &text);
	*d = (struct denial){.id = ex->id,
	        .time_ms = ex->start_ms,
	        .status = ex->status,
	        .code = event_reason_code(ex->cause, (uint8_t)ex->verdict.decision.reason),
	        .title = deny_title(ex->cause),
	        .advice = deny_advice(ex),
	        .rule = copy(
	                rule == POLICY_NONE ? SLICE("default") : policy_rule_name(policy, rule)),
	        .reason = copy(deny_reason(ex)),
	        .detail = copy(buf_slice(&text))};
	buf_fini(&text);
}

static void put_denial(struct page *page, const struct denial *d)
{
	page_id(page, "event", d->id);
	page_time(page, "time", d->time_ms);
	page_number(page, "status", d->status);
	page_text(page, "code", d->code);
	page_text(page, "title", text_of(d->title));
	page_text(page, "detail", text_of(d->detail));
	page_text(page, "rule", text_of(d->rule));
	if (d->reason && *d->reason)
		page_text(page, "reason", text_of(d->reason));
	page_text(page, "advice", text_of(d->advice));
}

bool inquiry_put_denials(struct proxy *p, struct page *page, uint64_t id)
{
	const struct inquiry_notes *notes = p->inquiry.notes;

	for (unsigned i = 0; notes && i < INQUIRY_DENIALS_MAX; i++) {
		const struct denial *d =
		        &notes->denials[(notes->next_denial - 1 - i) % INQUIRY_DENIALS_MAX];

		if (!d->id || (id && d->id != id))
			continue;
		if (id) {
			put_denial(page, d);
			return true;
		}
		page_object(page);
		put_denial(page, d);
		page_object_end(page);
	}
	return !id;
}

/* --- requests that a person was asked about --- */

static void put_request(const struct exchange *ex, struct buf *text)
{
	buf_init(text, DENY_TEXT_ROOM);
	deny_put_request(ex, text);
}

void inquiry_note_ask(const struct exchange *ex, bool approved, const char *text)
{
	struct inquiry_notes *notes = notes_of(ex->proxy);
	struct decided *d;
	struct buf request;

	if (!notes)
		return;
	d = &notes->decided[notes->next_decided++ % INQUIRY_ASKS_MAX];
	free(d->request);
	free(d->text);
	put_request(ex, &request);
	*d = (struct decided){.id = ex->id,
	        .time_ms = clock_real_ms(),
	        .approved = approved,
	        .request = copy(buf_slice(&request)),
	        .text = copy(text_of(text))};
	buf_fini(&request);
}

struct asks_page {
	struct page *page;
	uint64_t id;
	bool found;
};

static void put_waiting(void *context, const struct exchange *ex)
{
	struct asks_page *to = context;
	int64_t left_ms = ex->asking.until_ms - clock_boot_ms();
	struct buf request;

	if (to->id && to->id != ex->id)
		return;
	to->found = true;
	put_request(ex, &request);
	if (!to->id)
		page_object(to->page);
	page_id(to->page, "id", ex->id);
	page_text(to->page, "state", SLICE("waiting"));
	page_text(to->page, "request", buf_slice(&request));
	page_number(to->page, "left_s", left_ms > 0 ? (uint64_t)left_ms / 1000 : 0);
	if (!to->id)
		page_object_end(to->page);
	buf_fini(&request);
}

static void put_decided(struct page *page, const struct decided *d)
{
	page_id(page, "id", d->id);
	page_text(page, "state", d->approved ? SLICE("approved") : SLICE("refused"));
	page_text(page, "request", text_of(d->request));
	page_time(page, "time", d->time_ms);
	page_text(page, "text", text_of(d->text));
}

bool inquiry_put_asks(struct proxy *p, struct page *page, uint64_t id)
{
	const struct inquiry_notes *notes = p->inquiry.notes;
	struct asks_page to = {page, id, false};

	asking_each(p, put_waiting, &to);
	for (unsigned i = 0; notes && i < INQUIRY_ASKS_MAX && !(id && to.found); i++) {
		const struct decided *d =
		        &notes->decided[(notes->next_decided - 1 - i) % INQUIRY_ASKS_MAX];

		if (!d->id || (id && d->id != id))
			continue;
		to.found = true;
		if (!id)
			page_object(page);
		put_decided(page, d);
		if (!id)
			page_object_end(page);
	}
	return to.found || !id;
}

/* --- proposals --- */

static struct proposal *find_proposal(struct inquiry_notes *notes, uint64_t id)
{
	for (size_t i = 0; i < MESSAGE_PROPOSALS_MAX; i++)
		if (notes->proposals[i].id == id)
			return &notes->proposals[i];
	return NULL;
}

static void note_proposal(struct proxy *proxy, uint64_t id, enum message_proposal_state state,
        struct slice to, struct slice text)
{
	struct inquiry_notes *notes = notes_of(proxy);
	struct proposal *p = notes ? find_proposal(notes, id) : NULL;

	if (!notes)
		return;
	if (!p)
		p = &notes->proposals[notes->next_proposal++ % MESSAGE_PROPOSALS_MAX];
	free(p->to);
	free(p->text);
	*p = (struct proposal){.id = id,
	        .time_ms = clock_real_ms(),
	        .state = state,
	        .to = copy(to),
	        .text = copy(text)};
}

void inquiry_note_proposal(struct proxy *proxy, uint64_t id, struct slice to)
{
	note_proposal(proxy, id, MESSAGE_PROPOSAL_WAITS, to, SLICE(""));
}

void proxy_proposed(struct proxy *proxy, uint64_t id, const struct message_worker_proposed *m)
{
	note_proposal(proxy, id, (enum message_proposal_state)m->outcome, m->to, m->text);
}

static void put_proposal(struct page *page, const struct proposal *p)
{
	page_id(page, "id", p->id);
	page_text(page, "state", slice_from_string(states[p->state]));
	page_text(page, "to", text_of(p->to));
	if (p->text && *p->text)
		page_text(page, "text", text_of(p->text));
}

bool inquiry_put_proposals(struct proxy *proxy, struct page *page, uint64_t id)
{
	struct inquiry_notes *notes = proxy->inquiry.notes;
	const struct proposal *one = notes && id ? find_proposal(notes, id) : NULL;

	if (one)
		put_proposal(page, one);
	for (size_t i = 0; notes && !id && i < MESSAGE_PROPOSALS_MAX; i++) {
		if (!notes->proposals[i].id)
			continue;
		page_object(page);
		put_proposal(page, &notes->proposals[i]);
		page_object_end(page);
	}
	return one || !id;
}

void inquiry_notes_free(struct inquiry_notes *notes)
{
	for (size_t i = 0; notes && i < INQUIRY_DENIALS_MAX; i++)
		denial_fini(&notes->denials[i]);
	for (size_t i = 0; notes && i < INQUIRY_ASKS_MAX; i++) {
		free(notes->decided[i].request);
		free(notes->decided[i].text);
	}
	for (size_t i = 0; notes && i < MESSAGE_PROPOSALS_MAX; i++) {
		free(notes->proposals[i].to);
		free(notes->proposals[i].text);
	}
	free(notes);
}
