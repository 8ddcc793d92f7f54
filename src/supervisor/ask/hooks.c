/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Theory of operation: one bounded queue holds notes, each with the text that is sent. The call for
 * a note starts when it is due and fewer than HOOKS_CALLS_MAX calls are under way. A call reports
 * its end from within its own code, so the queue's timer frees it and starts the next ones. Delays
 * between attempts double, and vary by up to a half, so that many notes do not come at once again.
 */
#include "supervisor/ask/hooks.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <utlist.h>

#include "supervisor/ask/asks.h"
#include "supervisor/attach/attachment.h"
#include "supervisor/config/hook_call.h"
#include "vethguard/base/buf.h"
#include "vethguard/base/clock.h"
#include "vethguard/base/hash.h"
#include "vethguard/base/log.h"
#include "vethguard/wire/json.h"

#define FIRST_DELAY_MS 1000
#define FIELD_MAX 512 /* bytes of a field that are sent */
#define DESCRIPTION_MAX 128
#define URL_MAX (POLICY_HOST_MAX + FIELD_MAX + 32)

struct note {
	struct note *prev, *next;
	struct hooks *hooks;
	uint64_t id;
	bool decides, over; /* over: to be freed */
	unsigned attempts;
	int64_t due_ms; /* clock_monotonic_ms() */
	char *body;     /* owned */
	struct hook_call *call;
};

struct hooks {
	struct attachments *all;
	struct note *notes;
	size_t count, calls;
	struct loop_timer timer;
};

/* The fields of a note. */
struct fields {
	char digits[17]; /* borrowed by id, also in copies: the original outlives them */
	struct slice kind, id, sandbox, rule, method, url, paths, reason, bytes;
};

static bool field_of(void *context, struct slice name, struct slice *out)
{
	const struct fields *f = context;
	const struct {
		const char *name;
		struct slice value;
	} all[] = {{"kind", f->kind}, {"id", f->id}, {"sandbox", f->sandbox}, {"rule", f->rule},
	        {"method", f->method}, {"url", f->url}, {"paths", f->paths}, {"reason", f->reason},
	        {"bytes", f->bytes}};

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		if (!slice_equals(name, slice_from_string(all[i].name)))
			continue;
		*out = all[i].value;
		return true;
	}
	return false;
}

static int write_plain(const struct fields *f, struct buf *out)
{
	struct json j;

	json_begin(&j, out);
	json_put_object(&j, NULL);
	json_put_string(&j, "kind", f->kind, 0);
	json_put_string(&j, "id", f->id, 0);
	json_put_string(&j, "sandbox", f->sandbox, 0);
	json_put_string(&j, "rule", f->rule, FIELD_MAX);
	json_put_string(&j, "method", f->method, FIELD_MAX);
	json_put_string(&j, "url", f->url, URL_MAX);
	if (f->paths.n) {
		json_put_string(&j, "paths", f->paths, FIELD_MAX);
		json_put_string(&j, "reason", f->reason, FIELD_MAX);
	}
	json_put_string(&j, "bytes", f->bytes, 0);
	json_put_end_object(&j);
	return j.failed ? -ENOBUFS : 0;
}

/* Writes the text that is sent to *out (malloc'd). In a template, url, paths and reason are escaped
 * to printable ASCII. Returns 0; -ENOBUFS: it has more than HOOK_CALL_BODY_MAX bytes; or -ENOMEM.
 */
static int body_of(const struct config_hook *hook, struct fields *f, char **out)
{
	char shown[3][URL_MAX];
	struct slice *const escaped[] = {&f->url, &f->paths, &f->reason};
	struct buf text;
	int rc;

	*out = NULL;
	buf_init(&text, HOOK_CALL_BODY_MAX);
	if (hook->text[0]) {
		for (size_t i = 0; i < 3; i++)
			*escaped[i] = slice_from_string(
			        slice_escape(*escaped[i], shown[i], sizeof(shown[i])));
		rc = config_hook_fill(slice_from_string(hook->text), field_of, f, &text);
	} else {
		rc = write_plain(f, &text);
	}
	if (rc == 0) {
		*out = strndup((const char *)buf_bytes(&text), text.len);
		rc = *out ? 0 : -ENOMEM;
	}
	buf_fini(&text);
	return rc;
}

/* --- decisions --- */

static void on_decided(void *context, const struct attach_result *result)
{
	(void)context;
	(void)result; /* the request may be gone */
}

static void decide(struct attachments *all, uint64_t id, const struct hook_answer *answer)
{
	const struct attach_decision d = {.id = id,
	        .approved = answer->verdict == HOOK_APPROVE,
	        .lasts = answer->for_s > 0,
	        .for_s = answer->for_s,
	        .requests_only = true,
	        .reason = answer->reason,
	        .by = "the decider"};

	attachments_decide(all, &d, on_decided, NULL);
}

static void refuse(struct attachments *all, uint64_t id, const char *why)
{
	struct hook_answer answer = {.verdict = HOOK_REFUSE};

	snprintf(answer.reason, sizeof(answer.reason), "%.200s", why);
	decide(all, id, &answer);
}

/* --- the queue --- */

static void note_free(struct note *n)
{
	n->hooks->calls -= n->call != NULL;
	n->hooks->count--;
	DL_DELETE(n->hooks->notes, n);
	hook_call_free(n->call);
	free(n->body);
	free(n);
}

/* Returns a delay between half of ms and one and a half of it. */
static int64_t with_jitter(int64_t ms)
{
	uint32_t random;

	random_bytes(&random, sizeof(random));
	return ms / 2 + (int64_t)(random % (uint32_t)ms);
}

static void on_failed(struct note *n, const char *error)
{
	log_warn("%016" PRIx64 ": the %s: %s", n->id, n->decides ? "decider" : "webhook", error);
	if (n->decides)
		refuse(n->hooks->all, n->id, error);
	if (n->decides || n->attempts >= HOOKS_ATTEMPTS_MAX)
		n->over = true;
	else
		n->due_ms = clock_monotonic_ms() +
		            with_jitter((int64_t)FIRST_DELAY_MS << (n->attempts - 1));
}

static void on_done(void *context, const struct hook_answer *answer, const char *error)
{
	struct note *n = context;
	struct hooks *h = n->hooks;

	n->attempts++;
	if (error) {
		on_failed(n, error);
	} else {
		n->over = true;
		if (n->decides && answer->verdict != HOOK_NONE)
			decide(h->all, n->id, answer);
	}
	n->over |= n->due_ms == 0;
	loop_timer_set(&h->timer, 0);
}

static const struct config_hook *hook_of(const struct note *n)
{
	return n->decides ? &n->hooks->all->ask.decider : &n->hooks->all->ask.webhook;
}

static void start(struct note *n)
{
	struct attachments *all = n->hooks->all;

	n->due_ms = 0;
	n->call = hook_call_start(&all->supervisor->leases, hook_of(n), n->decides,
	        slice_from_string(n->body), on_done, n);
	if (n->call) {
		n->hooks->calls++;
		return;
	}
	on_failed(n, "no memory");
	n->over = true;
}

/* Frees what is done, starts what is due, and sets the timer for the rest. */
static void on_time(struct loop_timer *timer)
{
	struct hooks *h = container_of(timer, struct hooks, timer);
	int64_t now_ms = clock_monotonic_ms(), wait_ms = INT64_MAX;
	struct note *n, *next;

	DL_FOREACH_SAFE(h->notes, n, next)
	{
		if (n->call && (n->over || n->due_ms)) {
			hook_call_free(n->call);
			n->call = NULL;
			h->calls--;
		}
		if (n->over)
			note_free(n);
	}
	DL_FOREACH_SAFE(h->notes, n, next)
	{
		if (n->call)
			continue;
		if (n->due_ms <= now_ms && h->calls < HOOKS_CALLS_MAX)
			start(n);
		else if (n->due_ms > now_ms && n->due_ms - now_ms < wait_ms)
			wait_ms = n->due_ms - now_ms;
		if (n->over)
			wait_ms = 0;
	}
	if (wait_ms != INT64_MAX)
		loop_timer_set(&h->timer, wait_ms);
}

static struct hooks *hooks_of(struct attachments *all)
{
	struct hooks *h = all->hooks;

	if (h)
		return h;
	h = calloc(1, sizeof(*h));
	if (h && loop_timer_open(all->supervisor->loop, &h->timer, on_time) < 0) {
		free(h);
		return NULL;
	}
	if (h)
		h->all = all;
	all->hooks = h;
	return h;
}

/* Returns 0; -EBUSY: HOOKS_WAITING_MAX notes wait; -ENOBUFS: the text is too long; or -ENOMEM. */
static int add(struct attachments *all, bool decides, uint64_t id, struct fields f)
{
	struct hooks *h = hooks_of(all);
	struct note *n;
	int rc;

	if (h && h->count == HOOKS_WAITING_MAX)
		return -EBUSY;
	n = h ? calloc(1, sizeof(*n)) : NULL;
	if (!n)
		return -ENOMEM;
	*n = (struct note){.hooks = h, .id = id, .decides = decides, .due_ms = 1};
	rc = body_of(hook_of(n), &f, &n->body);
	if (rc) {
		free(n);
		return rc;
	}
	h->count++;
	DL_APPEND(h->notes, n);
	loop_timer_set(&h->timer, 0);
	return 0;
}

/* Writes why add() has failed. who: "the webhook" or "the decider". */
static const char *describe(int rc, const char *who, char out[DESCRIPTION_MAX])
{
	if (rc == -EBUSY)
		snprintf(out, DESCRIPTION_MAX,
		        "%d calls to the webhook and the decider wait already", HOOKS_WAITING_MAX);
	else if (rc == -ENOBUFS)
		snprintf(out, DESCRIPTION_MAX, "what %s would be told has more than %d bytes", who,
		        HOOK_CALL_BODY_MAX);
	else
		snprintf(out, DESCRIPTION_MAX, "there is no memory to tell %s", who);
	return out;
}

static void tell(struct attachments *all, uint64_t id, struct fields *f)
{
	char why[DESCRIPTION_MAX];
	int rc;

	snprintf(f->digits, sizeof(f->digits), "%016" PRIx64, id);
	f->id = slice_from_string(f->digits);
	rc = all->ask.webhook.url[0] ? add(all, false, id, *f) : 0;
	if (rc)
		log_warn("%s: the webhook is not told: %s", f->digits,
		        describe(rc, "the webhook", why));
}

void hooks_tell_ask(struct attachment *a, uint64_t id, const struct message_worker_ask *ask)
{
	struct attachments *all = a->all;
	char url[URL_MAX], bytes[24], why[DESCRIPTION_MAX];
	int rc = 0;
	struct fields f = {.kind = SLICE("request"),
	        .sandbox = slice_from_string(a->record.name),
	        .rule = ask->rule,
	        .method = ask->method,
	        .paths = SLICE(""),
	        .reason = SLICE("")};

	snprintf(bytes, sizeof(bytes), "%" PRIu64, ask->bytes);
	f.bytes = slice_from_string(bytes);
	attach_ask_url(ask, url, sizeof(url));
	f.url = slice_from_string(url);
	tell(all, id, &f);
	if (all->ask.decider.url[0] || all->ask.decider.program.count)
		rc = add(all, true, id, f);
	if (rc)
		refuse(all, id, describe(rc, "the decider", why));
}

void hooks_tell_proposal(struct attachment *a, uint64_t id, const struct policy_proposal *proposal)
{
	struct fields f = {.kind = SLICE("proposal"),
	        .sandbox = slice_from_string(a->record.name),
	        .rule = SLICE(""),
	        .method = slice_from_string(proposal->methods),
	        .url = slice_from_string(proposal->to),
	        .paths = slice_from_string(proposal->paths),
	        .reason = slice_from_string(proposal->reason),
	        .bytes = SLICE("0")};

	tell(a->all, id, &f);
}

void hooks_configure(struct attachments *all, const struct config_ask *config)
{
	all->ask = *config;
}

void hooks_free(struct attachments *all)
{
	struct hooks *h = all->hooks;

	if (!h)
		return;
	while (h->notes)
		note_free(h->notes);
	loop_timer_close(&h->timer);
	free(h);
	all->hooks = NULL;
}
