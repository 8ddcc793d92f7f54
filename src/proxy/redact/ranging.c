/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: an occurrence of the value is at most mask_longest() bytes long, so one that
 * touches the client's part lies inside of the widened part, unless the representation itself
 * begins or ends there. What the upstream sends has to be exactly what it was asked for: any other
 * part could end inside of an occurrence, and is refused. An upstream may always send the whole
 * representation instead (200), which is masked as usual.
 */
#include "proxy/redact/ranging.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "proxy/exchange/exchange.h"
#include "proxy/http/content.h"
#include "proxy/http/range.h"

struct ranging {
	struct http_range wanted, asked;      /* what the client wants; what the upstream gets */
	char asked_text[HTTP_RANGE_TEXT_MAX]; /* the value of Range */
	char sent_text[HTTP_RANGE_TEXT_MAX];  /* the value of Content-Range, for the client */
	bool cuts;                            /* the response is a part */
	uint64_t skip, pass; /* bytes still to be left out, and then to be passed on */
};

/* --- the request --- */

/* Returns the field with that name; NULL if there is none, or more than one. */
static struct http_field *only(struct http_fields *fields, struct slice name)
{
	struct http_field *found = NULL;

	for (size_t i = 0; i < fields->count; i++) {
		struct http_field *f = &fields->items[i];

		if (f->dropped || !slice_equals_ignoring_case(f->name, name))
			continue;
		if (found)
			return NULL;
		found = f;
	}
	return found;
}

/* True if If-Range has a strong entity tag: the upstream sends a part only of the representation
 * that the client has (RFC 9110 section 13.1.5). */
static bool is_guarded(struct http_fields *fields)
{
	const struct http_field *f = only(fields, SLICE("if-range"));

	return f && f->value.n && f->value.p[0] == '"';
}

static bool read_range(struct exchange *ex, struct http_range *wanted)
{
	struct http_fields *fields = &ex->request.fields;
	const struct http_field *f = only(fields, SLICE("range"));

	return f && slice_equals(ex->request.method, SLICE("GET")) &&
	       http_range_read(f->value, wanted) &&
	       (!content_accepted(fields) || is_guarded(fields));
}

static void widen(struct ranging *g, uint64_t margin)
{
	const struct http_range *w = &g->wanted;

	g->asked = (struct http_range){.first = w->first > margin ? w->first - margin : 0,
	        .last = w->last + margin,
	        .open = w->open,
	        .suffix = w->suffix ? w->suffix + margin : 0};
}

bool ranging_begin(struct exchange *ex)
{
	const struct mask *mask = ex->credential->mask;
	struct http_range wanted;
	size_t longest;

	if (!mask) /* also when the request is sent again, with another value */
		return false;
	if (!ex->ranging) {
		if (!read_range(ex, &wanted))
			return false;
		ex->ranging = calloc(1, sizeof(*ex->ranging));
		if (!ex->ranging)
			return false;
		ex->ranging->wanted = wanted;
	}
	longest = mask_longest(mask);
	widen(ex->ranging, (longest + RANGING_STEP - 1) / RANGING_STEP * RANGING_STEP);
	only(&ex->request.fields, SLICE("range"))->value =
	        http_range_text(&ex->ranging->asked, ex->ranging->asked_text);
	return true;
}

void ranging_drop(struct exchange *ex)
{
	ranging_free(ex->ranging);
	ex->ranging = NULL;
}

void ranging_free(struct ranging *ranging)
{
	free(ranging);
}

/* --- the response --- */

/* True if the part is all that was asked for, as far as there is content. */
static bool is_as_asked(const struct http_range *asked, const struct http_content_range *c)
{
	const bool ends = c->has_total && c->last == c->total - 1;

	if (asked->suffix)
		return ends &&
		       c->first == (c->total > asked->suffix ? c->total - asked->suffix : 0);
	return c->first == asked->first && (ends || (!asked->open && c->last == asked->last)) &&
	       (asked->open || c->last <= asked->last);
}

/* Makes the response a 416: the client's part begins behind the end. */
static void describe_nothing(struct ranging *g, struct http_response *r, struct http_field *range,
        const struct http_content_range *c)
{
	snprintf(g->sent_text, sizeof(g->sent_text), "bytes */%" PRIu64, c->total);
	range->value = slice_from_string(g->sent_text);
	http_drop(&r->fields, SLICE("content-type"));
	r->status = 416;
	r->reason = http_reason(416);
	r->body = HTTP_BODY_LENGTH;
	r->content_length = 0;
}

static void describe_part(struct ranging *g, struct http_response *r, struct http_field *range,
        const struct http_content_range *c)
{
	const struct http_range *w = &g->wanted;
	struct http_content_range sent = *c;
	uint64_t first = w->first, last = c->last;

	if (w->suffix)
		first = c->total > w->suffix ? c->total - w->suffix : 0;
	else if (!w->open && w->last < last)
		last = w->last;
	if (first > last) {
		describe_nothing(g, r, range, c);
		return;
	}
	g->skip = first - c->first;
	g->pass = last - first + 1;
	sent.first = first;
	sent.last = last;
	range->value = http_content_range_text(&sent, g->sent_text);
	if (r->body == HTTP_BODY_LENGTH)
		r->content_length = g->pass;
}

const char *ranging_answer(struct exchange *ex, struct http_response *r)
{
	struct ranging *g = ex->ranging;
	struct http_field *range = only(&r->fields, SLICE("content-range"));
	struct http_content_range c;

	if (r->status != 206)
		return NULL;
	if (content_coding_of(&r->fields) != CONTENT_PLAIN)
		return "the upstream's response is a part of compressed content, which cannot be "
		       "searched for the credential";
	if (!range || !http_content_range_read(range->value, &c) || !is_as_asked(&g->asked, &c) ||
	        r->body == HTTP_BODY_NONE ||
	        (r->body == HTTP_BODY_LENGTH && r->content_length != c.last - c.first + 1))
		return "the upstream's response is another part of the content than it was asked "
		       "for, and could end inside of the credential: ask without Range";
	g->cuts = true;
	describe_part(g, r, range, &c);
	/* These fields tell about the content before the cut. Repr-Digest and Digest stay: they
	 * tell about the whole representation (RFC 9530). */
	http_drop(&r->fields, SLICE("content-digest"));
	http_drop(&r->fields, SLICE("content-md5"));
	return NULL;
}

bool ranging_cuts(const struct ranging *ranging)
{
	return ranging && ranging->cuts;
}

size_t ranging_cut(struct ranging *g, const uint8_t **p, size_t n)
{
	size_t skip;

	if (!g->cuts)
		return n;
	skip = g->skip < n ? (size_t)g->skip : n;
	g->skip -= skip;
	*p += skip;
	n -= skip;
	if (n > g->pass)
		n = (size_t)g->pass;
	g->pass -= n;
	return n;
}
