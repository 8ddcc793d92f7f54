/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Refusals that git shows to its user. For most refused requests git prints the status alone. So:
 * - A request for the list of refs gets a plain text, whose lines git prints ("remote: ...").
 * - A fetch gets git's own error line; a push gets a report that each ref was rejected, and the
 *   words beside it (gitprotocol-pack(5), "Report Status"). Both have status 200, because git reads
 *   no answer with another one.
 */
#include "proxy/deny/deny.h"
#include "proxy/exchange/holding.h"

#define PIECE_MAX 65000u /* bytes of one line of a band; git's bound is 65515 */
#define LINE_ROOM 70000u
#define REPORT_ROOM (2u << 20) /* 1024 refs of 1024 bytes, with the words */

static const char rejected[] = "not allowed by the sandbox's network policy";

enum form { FORM_NONE, FORM_TEXT, FORM_FETCH, FORM_PUSH };

static bool has_type(const struct exchange *ex, struct slice type)
{
	const struct http_field *f = http_find(&ex->request.fields, HTTP_CONTENT_TYPE);

	return f && slice_equals_ignoring_case(f->value, type);
}

static bool is_about_policy(enum event_cause cause)
{
	return cause == EVENT_CAUSE_POLICY || cause == EVENT_CAUSE_ASK ||
	       cause == EVENT_CAUSE_POLICY_LIMIT || cause == EVENT_CAUSE_PAUSED;
}

/* The push that was read, if its client asked for a report; else NULL. */
static const struct policy_git *push_of(const struct exchange *ex)
{
	const struct policy_body *body = ex->holding ? &ex->holding->body : NULL;
	bool push = body && body->kind == POLICY_BODY_GIT_PUSH && body->git;

	return push && body->git->command_count && body->git->reports ? body->git : NULL;
}

static enum form form_of(const struct exchange *ex)
{
	struct slice path = slice_of(ex->request.path, ex->request.path_n);

	/* To another proxy the status 200 would allow the request. */
	if (!ex->request.version || !is_about_policy(ex->cause) ||
	        message_form_is_asked(ex->client->form))
		return FORM_NONE;
	if (slice_ends_with(path, SLICE("/info/refs")) &&
	        slice_starts_with(ex->request.query, SLICE("service=git-")))
		return FORM_TEXT;
	if (slice_ends_with(path, SLICE("/git-upload-pack")) &&
	        has_type(ex, SLICE("application/x-git-upload-pack-request")))
		return FORM_FETCH;
	return slice_ends_with(path, SLICE("/git-receive-pack")) && push_of(ex) ? FORM_PUSH
	                                                                        : FORM_NONE;
}

bool deny_git_reads(const struct exchange *ex)
{
	enum form form = form_of(ex);

	return form == FORM_FETCH || form == FORM_PUSH;
}

/* Appends a pkt-line: the band's number unless it is 0, then the text. */
static void put_line(struct buf *out, uint8_t band, struct slice text)
{
	buf_printf(out, "%04x", (unsigned)(text.n + 4 + (band != 0)));
	if (band)
		buf_append(out, &band, 1);
	buf_append_slice(out, text);
}

static void put_words(const struct exchange *ex, struct buf *text)
{
	deny_put_message(ex, text);
	buf_printf(text, "\n%s\n", deny_advice(ex));
}

static void put_error(const struct exchange *ex, struct buf *out)
{
	struct buf line;

	buf_init(&line, LINE_ROOM);
	buf_append_slice(&line, SLICE("ERR "));
	deny_put_message(ex, &line);
	put_line(out, 0, buf_slice(&line));
	buf_fini(&line);
}

static void put_status(const struct policy_git *git, struct buf *out)
{
	struct buf line;

	buf_init(&line, LINE_ROOM);
	put_line(out, 0, SLICE("unpack ok\n"));
	for (size_t i = 0; i < git->command_count; i++) {
		buf_consume(&line, line.len);
		buf_append_slice(&line, SLICE("ng "));
		buf_append_slice(&line, git->commands[i].ref);
		buf_printf(&line, " %s\n", rejected);
		put_line(out, 0, buf_slice(&line));
	}
	buf_append_slice(out, SLICE("0000"));
	buf_fini(&line);
}

/* Appends the report in band 1, and the words, which git prints, in band 2. */
static void put_bands(struct buf *out, struct slice words, struct slice report)
{
	put_line(out, 2, words);
	while (report.n) {
		size_t n = report.n < PIECE_MAX ? report.n : PIECE_MAX;

		put_line(out, 1, slice_of(report.p, n));
		report = slice_of(report.p + n, report.n - n);
	}
	buf_append_slice(out, SLICE("0000"));
}

static void put_report(const struct exchange *ex, struct buf *out)
{
	const struct policy_git *git = push_of(ex);
	struct buf words, report;

	if (!git->bands) {
		put_status(git, out);
		return;
	}
	buf_init(&words, LINE_ROOM);
	buf_init(&report, REPORT_ROOM);
	put_words(ex, &words);
	put_status(git, &report);
	put_bands(out, buf_slice(&words), buf_slice(&report));
	buf_fini(&words);
	buf_fini(&report);
}

bool deny_put_git(const struct exchange *ex, struct http_response *r, struct buf *body)
{
	static const struct slice types[] = {[FORM_TEXT] = {"text/plain", 10},
	        [FORM_FETCH] = {"application/x-git-upload-pack-result", 36},
	        [FORM_PUSH] = {"application/x-git-receive-pack-result", 37}};
	enum form form = form_of(ex);

	if (form == FORM_NONE)
		return false;
	if (form == FORM_TEXT)
		put_words(ex, body);
	else if (form == FORM_FETCH)
		put_error(ex, body);
	else
		put_report(ex, body);
	r->status = ex->status;
	r->reason = http_reason(ex->status);
	r->fields.count = 0;
	http_add(&r->fields, SLICE("Content-Type"), types[form]);
	http_add(&r->fields, SLICE("Cache-Control"), SLICE("no-store"));
	http_add(&r->fields, SLICE("X-Vethguard"), SLICE("denied"));
	r->body = HTTP_BODY_LENGTH;
	r->content_length = body->len;
	return true;
}
