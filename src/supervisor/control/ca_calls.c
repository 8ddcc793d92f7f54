/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls about the CAs of sandboxes. Anybody who may attach sandboxes may look; only root may change
 * what all of them trust.
 */
#include <errno.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "supervisor/control/call.h"

#define HEX_TEXT (2 * MESSAGE_FINGERPRINT_BYTES + 1)
#define TIME_TEXT 32

static const char *hex(struct slice bytes, char out[HEX_TEXT])
{
	for (size_t i = 0; i < bytes.n && i < MESSAGE_FINGERPRINT_BYTES; i++)
		snprintf(out + 2 * i, 3, "%02x", (uint8_t)bytes.p[i]);
	return out;
}

/* key: null for 0. */
static void put_time(struct json *j, const char *key, uint64_t at_s)
{
	time_t t = (time_t)at_s;
	char text[TIME_TEXT];
	struct tm tm;

	if (at_s && gmtime_r(&t, &tm) &&
	        strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S.000Z", &tm))
		json_put_literal(j, key, text);
	else
		json_put_null(j, key);
}

struct counted {
	const uint8_t *ca;
	uint64_t count;
};

static bool count_one(void *context, struct attachment *a)
{
	struct counted *c = context;
	struct attachment_view view;

	attachment_view(a, &view);
	c->count += view.ca && memcmp(view.ca, c->ca, MESSAGE_FINGERPRINT_BYTES) == 0;
	return true;
}

static void put_ca(
        struct json *j, struct control *control, const struct message_keeper_ca *m, size_t i)
{
	static const char *const origins[] = {
	        [MESSAGE_CA_OWN] = "own",
	        [MESSAGE_CA_INSTALLED] = "installed",
	        [MESSAGE_CA_CONFIGURED] = "configured",
	};
	struct counted c = {.ca = (const uint8_t *)m->cas[i].fingerprint.p};
	char text[HEX_TEXT];

	attachments_for_each(control_attachments(control), count_one, &c);
	json_put_object(j, NULL);
	json_put_literal(j, "origin", origins[m->cas[i].origin]);
	json_put_bool(j, "current", i == 0 && !m->unusable);
	json_put_string(j, "subject", m->cas[i].subject, 0);
	json_put_literal(j, "fingerprint", hex(m->cas[i].fingerprint, text));
	put_time(j, "from", m->cas[i].from_s);
	put_time(j, "until", m->cas[i].until_s);
	json_put_object(j, "root");
	json_put_string(j, "subject", m->cas[i].root_subject, 0);
	json_put_literal(j, "fingerprint", hex(m->cas[i].root, text));
	put_time(j, "until", m->cas[i].root_until_s);
	json_put_end_object(j);
	put_time(j, "retires", m->cas[i].retires_s);
	json_put_literal(j, "signs", "an intermediate (pathlen 0) for each sandbox's worker");
	json_put_uint(j, "sandboxes", c.count);
	json_put_end_object(j);
}

static void put_notes(struct json *j, struct slice notes)
{
	json_put_array(j, "notes");
	while (notes.n > 0) {
		ptrdiff_t at = slice_find_byte(notes, '\n');
		size_t n = at < 0 ? notes.n : (size_t)at;

		json_put_string(j, NULL, slice_of(notes.p, n), 0);
		notes = at < 0 ? slice_of("", 0) : slice_of(notes.p + n + 1, notes.n - n - 1);
	}
	json_put_end_array(j);
}

static void answer(struct control_call *call, bool changed)
{
	struct control_owner *owner = control_owner(call->control);
	const struct message_keeper_ca *m = owner->ca(owner);
	struct buf out;
	struct json j;

	if (!m) {
		control_refuse(call, 503, "the keeper has not reported its CAs yet: try again");
		return;
	}
	buf_init(&out, CONTROL_ANSWER_MAX);
	json_begin(&j, &out);
	json_put_object(&j, NULL);
	json_put_bool(&j, "usable", !m->unusable);
	json_put_bool(&j, "changed", changed);
	put_notes(&j, m->notes);
	if (m->request.n)
		json_put_string(&j, "request_pem", m->request, 0);
	else
		json_put_null(&j, "request_pem");
	json_put_string(&j, "trusted_pem", m->trusted, 0);
	json_put_array(&j, "cas");
	for (size_t i = 0; i < m->count; i++)
		put_ca(&j, call->control, m, i);
	json_put_end_array(&j);
	json_put_end_object(&j);
	control_answer(call, 200, &j, &out);
}

void control_run_ca(struct control *control, struct control_call *call)
{
	(void)control;
	answer(call, false);
}

static void on_told(void *context, const char *error, bool changed)
{
	struct control_call *call = context;

	if (!control_is_open(call))
		return;
	if (error)
		control_refuse(call, 422, error);
	else
		answer(call, changed);
}

static void change(
        struct control *control, struct control_call *call, const struct message_keeper_ca_ask *ask)
{
	struct control_owner *owner = control_owner(control);
	int rc;

	if (call->peer.uid != 0 && call->peer.uid != geteuid()) {
		control_refuse(call, 403,
		        "only root may change what all sandboxes trust; members of the group may "
		        "look at it");
		return;
	}
	rc = owner->change_ca(owner, ask, on_told, call);
	if (rc == -EBUSY)
		control_refuse(call, 503, "another change of the CAs is under way: try again");
	else if (rc == -EAGAIN)
		control_refuse(call, 503,
		        "another daemon or keeper is taking over: try again in a moment");
	else if (rc)
		control_refuse(call, 500, "a new file cannot be made in the daemon's directory ca");
}

static struct message_keeper_ca_ask question(
        enum message_ca_what what, const struct control_ca *body)
{
	return (struct message_keeper_ca_ask){.what = (uint8_t)what,
	        .problem = SLICE(""),
	        .overlap_s = (uint32_t)body->overlap_s,
	        .name = slice_from_string(body->name),
	        .certificate = slice_from_string(body->certificate),
	        .root = slice_from_string(body->root)};
}

static void run(struct control *control, struct control_call *call, enum message_ca_what what,
        bool (*read)(const json_t *body, struct control_ca *out, char *fault))
{
	char fault[CONTROL_FAULT_MAX];
	struct control_ca body;

	if (!read(call->body, &body, fault)) {
		control_refuse(call, 422, fault);
		return;
	}
	const struct message_keeper_ca_ask ask = question(what, &body);
	change(control, call, &ask);
}

void control_run_ca_csr(struct control *control, struct control_call *call)
{
	run(control, call, MESSAGE_CA_REQUEST, control_body_ca_csr);
}

void control_run_ca_install(struct control *control, struct control_call *call)
{
	run(control, call, MESSAGE_CA_INSTALL, control_body_ca_install);
}

void control_run_ca_rotate(struct control *control, struct control_call *call)
{
	run(control, call, MESSAGE_CA_ROTATE, control_body_ca_rotate);
}
