/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: the request was read, bound to its connection and authorized as any other.
 * Here a table maps its path to the function that writes the answer, as one page of JSON or plain
 * text. The body of a proposal is held first, up to INQUIRY_BODY_MAX bytes.
 *
 * A web page that a browser inside shows must not speak for the agent. So requests that a browser
 * sends for a page are refused (Origin, Sec-Fetch-Site), and a proposal has to be application/json,
 * which a page cannot send to another site without a preflight (CORS). Preflights are refused too.
 */
#include "proxy/inquiry/inquiry.h"

#include <errno.h>
#include <stdio.h>

#include "proxy/deny/deny.h"
#include "proxy/exchange/exchange.h"
#include "proxy/exchange/holding.h"
#include "proxy/inquiry/inquiry_page.h"
#include "vethguard/base/clock.h"
#include "vethguard/policy/proposal.h"

#define PER_S 10
#define BURST_S 4
#define ID_DIGITS 16
#define ALLOW_READ "GET, HEAD"

_Static_assert(INQUIRY_BODY_MAX == PROPOSAL_BYTES_MAX, "a proposal fits what is held");

static const char answered[] = "vethguard has answered this request itself";

void inquiry_open(struct proxy *p)
{
	rate_init(&p->inquiry.rate, PER_S, BURST_S, clock_monotonic_ms());
}

void inquiry_close(struct proxy *p)
{
	inquiry_notes_free(p->inquiry.notes);
	p->inquiry.notes = NULL;
}

/* --- answers --- */

/* Ends the page, sends it and frees it. ex is freed, too. */
static void send_page(struct exchange *ex, uint16_t status, const char *allow, struct page *page)
{
	struct http_response r = {.version = 11, .status = status, .reason = http_reason(status)};

	if (!page_end(page)) {
		page_fini(page);
		exchange_refuse(ex, 0, EVENT_CAUSE_LIMIT, "the answer has become too large");
		return;
	}
	http_add(&r.fields, SLICE("Content-Type"),
	        page->is_json ? SLICE("application/json") : SLICE("text/plain; charset=utf-8"));
	http_add(&r.fields, SLICE("Cache-Control"), SLICE("no-store"));
	http_add(&r.fields, SLICE("X-Content-Type-Options"), SLICE("nosniff"));
	http_add(&r.fields, SLICE("Content-Security-Policy"),
	        SLICE("default-src 'none'; frame-ancestors 'none'"));
	http_add(&r.fields, SLICE("Cross-Origin-Resource-Policy"), SLICE("same-origin"));
	http_add(&r.fields, SLICE("X-Vethguard"), SLICE("answer"));
	if (allow)
		http_add(&r.fields, SLICE("Allow"), slice_from_string(allow));
	r.body = HTTP_BODY_LENGTH;
	r.content_length = page->out.len;
	ex->status = status;
	ex->detail = answered;
	ex->bytes_in = ex->head_request ? 0 : page->out.len;
	responding_enter(ex, RESPONDING_BEGUN);
	audit_exchange(ex);
	ex->ops->response_head(ex, &r, SLICE(""));
	if (!ex->head_request)
		ex->ops->response_body(ex, buf_bytes(&page->out), page->out.len);
	ex->ops->response_end(ex, SLICE(""));
	page_fini(page);
	exchange_finish(ex, true, false);
}

static bool has_text(struct slice value, struct slice text)
{
	return value.n >= text.n && memmem(value.p, value.n, text.p, text.n);
}

/* Returns the first field with that name, and sets *twice to whether there are several. Returns
 * NULL and leaves *twice alone if there is none. */
static const struct http_field *find(const struct exchange *ex, struct slice name, bool *twice)
{
	const struct http_field *found = NULL;

	for (size_t i = 0; i < ex->request.fields.count; i++) {
		const struct http_field *f = &ex->request.fields.items[i];

		if (!slice_equals_ignoring_case(f->name, name))
			continue;
		*twice = found != NULL;
		if (!found)
			found = f;
	}
	return found;
}

/* True unless Accept names plain text and not JSON. */
static bool wants_json(const struct exchange *ex)
{
	bool twice = false;
	const struct http_field *f = find(ex, SLICE("accept"), &twice);

	return !f || twice || !has_text(f->value, SLICE("text/plain")) ||
	       has_text(f->value, SLICE("json"));
}

static void say(struct exchange *ex, uint16_t status, const char *allow, const char *text)
{
	struct page page;

	page_init(&page, wants_json(ex));
	page_number(&page, "status", status);
	page_text(&page, "detail", slice_from_string(text));
	page_text(&page, "help", SLICE(INQUIRY_BASE "/"));
	send_page(ex, status, allow, &page);
}

/* --- what may be asked --- */

static bool put_help(struct exchange *ex, struct page *page, uint64_t id)
{
	static const char *const lines[] = {
	        "GET " INQUIRY_BASE "/policy: what this sandbox may do",
	        "GET " INQUIRY_BASE "/denials, /denials/EVENT: why requests were refused",
	        "GET " INQUIRY_BASE "/asks, /asks/ID: requests that a person has to approve",
	        "GET " INQUIRY_BASE "/proposals, /proposals/ID: what has become of proposals",
	        "POST " INQUIRY_BASE "/proposals with {\"to\": \"https://HOST\", \"methods\": "
	        "[\"GET\"], \"paths\": [\"/v1/**\"], \"reason\": \"...\"} as application/json: "
	        "propose a rule to the operator",
	        "Answers are JSON, or plain text with the field Accept: text/plain.",
	};

	(void)id;
	page_text(page, "about",
	        SLICE("vethguard guards the network of this sandbox and answers here itself."));
	page_text(page, "policy", policy_name(ex->proxy->config.policy));
	page_list(page, "help");
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
		page_item(page, slice_from_string(lines[i]));
	page_list_end(page);
	return true;
}

static bool put_policy(struct exchange *ex, struct page *page, uint64_t id)
{
	(void)id;
	inquiry_put_policy(ex->proxy, page);
	return true;
}

static bool put_list(struct exchange *ex, struct page *page, uint64_t id, const char *key,
        bool (*put)(struct proxy *proxy, struct page *page, uint64_t id))
{
	bool found;

	if (id)
		return put(ex->proxy, page, id);
	page_list(page, key);
	found = put(ex->proxy, page, 0);
	page_list_end(page);
	return found;
}

static bool put_denials(struct exchange *ex, struct page *page, uint64_t id)
{
	return put_list(ex, page, id, "denials", inquiry_put_denials);
}

static bool put_asks(struct exchange *ex, struct page *page, uint64_t id)
{
	return put_list(ex, page, id, "asks", inquiry_put_asks);
}

static bool put_proposals(struct exchange *ex, struct page *page, uint64_t id)
{
	return put_list(ex, page, id, "proposals", inquiry_put_proposals);
}

static void propose(struct exchange *ex);

static const struct {
	const char *path;
	bool has_ids; /* path/ID names one of the list */
	bool (*put)(struct exchange *ex, struct page *page, uint64_t id);
	void (*post)(struct exchange *ex);
} places[] = {
        {"/", false, put_help, NULL},
        {"/policy", false, put_policy, NULL},
        {"/denials", true, put_denials, NULL},
        {"/asks", true, put_asks, NULL},
        {"/proposals", true, put_proposals, propose},
};
#define PLACE_COUNT (sizeof(places) / sizeof(places[0]))

/* Reads 16 hex digits in small letters. Returns 0 for any other text. */
static uint64_t read_id(struct slice text)
{
	uint64_t id = 0;

	for (size_t i = 0; i < text.n; i++) {
		int digit = slice_hex_digit(text.p[i]);

		if (digit < 0 || (text.p[i] >= 'A' && text.p[i] <= 'F'))
			return 0;
		id = id << 4 | (uint64_t)digit;
	}
	return text.n == ID_DIGITS ? id : 0;
}

/* Finds the place of the path, and the id in it. Returns PLACE_COUNT if there is none. */
static size_t find_place(struct slice path, uint64_t *id)
{
	*id = 0;
	for (size_t i = 0; i < PLACE_COUNT; i++) {
		struct slice known = slice_from_string(places[i].path);

		if (slice_equals(path, known))
			return i;
		if (!places[i].has_ids || path.n != known.n + 1 + ID_DIGITS ||
		        !slice_starts_with(path, known) || path.p[known.n] != '/')
			continue;
		*id = read_id(slice_of(path.p + known.n + 1, ID_DIGITS));
		return *id ? i : PLACE_COUNT;
	}
	return PLACE_COUNT;
}

/* --- proposals --- */

/* Sends the proposal to the supervisor. Returns NULL, or why it cannot be taken now. */
static const char *send_proposal(struct exchange *ex, const struct policy_proposal *proposal)
{
	struct proxy *p = ex->proxy;
	int64_t now_ms = clock_monotonic_ms();

	if (!p->config.propose)
		return "nobody takes proposals here";
	if (now_ms < p->inquiry.next_proposal_ms)
		return "too many proposals: wait two seconds after each one";
	if (p->config.propose(p->config.context, ex->id, proposal) < 0)
		return "the proposal cannot be passed on at the moment: send it again later";
	p->inquiry.next_proposal_ms = now_ms + INQUIRY_PROPOSAL_GAP_MS;
	inquiry_note_proposal(p, ex->id, slice_from_string(proposal->to));
	return NULL;
}

static void propose(struct exchange *ex)
{
	struct policy_proposal proposal;
	const char *why;
	char poll[64];
	struct page page;
	int rc = policy_proposal_read(&proposal, holding_bytes(ex), &why);

	if (rc) {
		say(ex, rc == -EBADMSG ? 422 : 503, NULL, rc == -EBADMSG ? why : "no memory");
		return;
	}
	why = send_proposal(ex, &proposal);
	if (why) {
		say(ex, 429, NULL, why);
		return;
	}
	snprintf(poll, sizeof(poll), INQUIRY_BASE "/proposals/%016llx", (unsigned long long)ex->id);
	page_init(&page, wants_json(ex));
	page_id(&page, "id", ex->id);
	page_text(&page, "state", SLICE("waiting"));
	page_text(&page, "poll", slice_from_string(poll));
	send_page(ex, 202, NULL, &page);
}

/* --- requests --- */

/* True if a browser may have sent the request for a page: it has Origin, or a Sec-Fetch-Site other
 * than "none". changes: the method is not GET or HEAD, and any Sec-Fetch-Site counts. */
static bool is_foreign(const struct exchange *ex, bool changes)
{
	bool twice = false;
	const struct http_field *site = find(ex, SLICE("sec-fetch-site"), &twice);

	if (find(ex, SLICE("origin"), &twice))
		return true;
	return site && (changes || twice || !slice_equals(site->value, SLICE("none")));
}

static bool is_json(const struct exchange *ex)
{
	bool twice = false;
	const struct http_field *type = find(ex, SLICE("content-type"), &twice);
	const struct http_field *coding = find(ex, SLICE("content-encoding"), &twice);
	ptrdiff_t end;

	if (!type || twice || coding)
		return false;
	end = slice_find_byte(type->value, ';');
	return slice_equals_ignoring_case(
	        slice_trim(slice_of(type->value.p, end < 0 ? type->value.n : (size_t)end)),
	        SLICE("application/json"));
}

static void answer_post(struct exchange *ex, void (*post)(struct exchange *ex))
{
	if (!is_json(ex))
		say(ex, 415, NULL,
		        "send the proposal as Content-Type: application/json, without a "
		        "Content-Encoding");
	else if (!exchange_has_body(ex))
		say(ex, 422, NULL, "the request has no body");
	else if (!ex->holding)
		holding_begin(ex, HOLDING_TO_ANSWER);
	else
		post(ex);
}

static void answer_get(struct exchange *ex, size_t place, uint64_t id)
{
	struct page page;

	page_init(&page, wants_json(ex));
	if (places[place].put(ex, &page, id)) {
		send_page(ex, 200, NULL, &page);
		return;
	}
	page_fini(&page);
	say(ex, 404, NULL,
	        "nothing with this id is known: only the last ones of this sandbox are kept, and "
	        "not across a change of its policy");
}

void inquiry_answer(struct exchange *ex)
{
	const struct http_request *r = &ex->request;
	bool reads = slice_equals(r->method, SLICE("GET")) || ex->head_request;
	bool posts = slice_equals(r->method, SLICE("POST"));
	bool counted = ex->holding && ex->holding->why == HOLDING_TO_ANSWER;
	uint64_t id;
	size_t place = find_place(slice_of(r->path, r->path_n), &id);

	if (ex->proxy->paused)
		exchange_refuse(ex, 503, ex->proxy->pause_cause, ex->proxy->pause_text);
	else if (!counted && !rate_take(&ex->proxy->inquiry.rate, clock_monotonic_ms()))
		exchange_refuse(
		        ex, 429, EVENT_CAUSE_LIMIT, "too many questions to vethguard just now");
	else if (is_foreign(ex, !reads))
		say(ex, 403, NULL, "a page of another site may not ask here");
	else if (r->has_query || r->wants_upgrade || r->asterisk || place == PLACE_COUNT)
		say(ex, 404, NULL, "there is nothing of this name");
	else if (reads && exchange_has_body(ex))
		say(ex, 400, NULL, "a question has no body");
	else if (reads)
		answer_get(ex, place, id);
	else if (posts && places[place].post && !id)
		answer_post(ex, places[place].post);
	else
		say(ex, 405, places[place].post && !id ? ALLOW_READ ", POST" : ALLOW_READ,
		        "this method is not for this place");
}
