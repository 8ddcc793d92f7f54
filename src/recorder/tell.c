/* SPDX-License-Identifier: Apache-2.0 */
/* What the recorder tells the supervisor; control.c takes what the supervisor says. */
#include "vethguard/base/log.h"

#include "recorder/recorder.h"

void tell_supervisor(struct recorder *r, enum message_type type, uint64_t id, const char *text)
{
	struct message_text m = {slice_from_string(text)};
	size_t n = text ? message_text_encode(r->message, sizeof(r->message), type, id, &m)
	                : message_empty(r->message, sizeof(r->message), type, id);
	int rc = r->supervisor.open ? ipc_send(&r->supervisor, r->message, n, NULL, 0) : 0;

	if (rc != 0)
		log_debug("the supervisor cannot be told: %s", strerror(-rc));
}

void tell_ask_count(struct recorder *r, uint64_t sandbox_id)
{
	struct message_sandbox m = {.sandbox_id = sandbox_id};
	size_t n = message_sandbox_encode(
	        r->message, sizeof(r->message), MESSAGE_RECORDER_COUNT_GET, 0, &m);

	if (r->supervisor.open)
		ipc_send(&r->supervisor, r->message, n, NULL, 0);
}

void tell_summary(struct recorder *r, struct stream *stream)
{
	char texts[MESSAGE_UNUSUAL_MAX][SUMMARY_SHOWN_MAX];
	struct message_summary m;
	size_t n;

	summary_report(&stream->summary, &m, texts);
	n = message_summary_encode(
	        r->message, sizeof(r->message), MESSAGE_RECORDER_SUMMARY, stream->end_id, &m);
	if (r->supervisor.open)
		ipc_send(&r->supervisor, r->message, n, NULL, 0);
}

void tell_stopped(struct recorder *r)
{
	tell_supervisor(r, MESSAGE_STOPPED, r->stop_id, "");
	loop_stop(r->loop);
}
