/* SPDX-License-Identifier: Apache-2.0 */
/* One query to the recorder at a time: questions that come meanwhile get the same answer. */
#include <errno.h>
#include <stdlib.h>

#include "vethguard/loop/loop.h"
#include "supervisor/events/head.h"
#include "supervisor/events/private.h"

struct head_waiting {
	head_told told;
	void *context;
};

struct head_question {
	struct supervisor *supervisor;
	struct loop_timer patience;
	uint64_t id;
	size_t count;
	struct head_waiting waiting[HEAD_WAITING_MAX];
};

/* The callbacks may ask again: the query is over by then. */
static void tell(struct head_question *q, const char *fingerprint)
{
	q->supervisor->recorder_life.head = NULL;
	loop_timer_close(&q->patience);
	for (size_t i = 0; i < q->count; i++)
		q->waiting[i].told(q->waiting[i].context, fingerprint);
	free(q);
}

static void on_patience_over(struct loop_timer *timer)
{
	tell(container_of(timer, struct head_question, patience), NULL);
}

/* Returns 0 or -errno; after an error nothing waits. */
static int begin(struct supervisor *sv)
{
	uint8_t message[64]; /* a message without a body */
	struct head_question *q = calloc(1, sizeof(*q));

	if (!q || loop_timer_open(sv->loop, &q->patience, on_patience_over) != 0) {
		free(q);
		return -ENOMEM;
	}
	q->supervisor = sv;
	q->id = supervisor_next_id(sv);
	sv->recorder_life.head = q;
	loop_timer_set(&q->patience, HEAD_PATIENCE_MS);
	/* If it cannot be sent, the time limit ends it. */
	recording_say(sv, message,
	        message_empty(message, sizeof(message), MESSAGE_RECORDER_HEAD_GET, q->id), NULL, 0);
	return 0;
}

int head_ask(struct supervisor *sv, head_told told, void *context)
{
	int rc = 0;

	if (!sv->recorder_life.ready) {
		told(context, NULL);
		return 0;
	}
	if (!sv->recorder_life.head)
		rc = begin(sv);
	if (!rc && sv->recorder_life.head->count == HEAD_WAITING_MAX)
		rc = -EBUSY;
	if (!rc)
		sv->recorder_life.head->waiting[sv->recorder_life.head->count++] =
		        (struct head_waiting){told, context};
	return rc;
}

int head_answered(struct supervisor *sv, uint64_t id, struct slice text)
{
	char fingerprint[SEAL_HASH_DIGITS + 1];

	if (text.n && text.n != SEAL_HASH_DIGITS)
		return -EBADMSG;
	memcpy(fingerprint, text.n ? text.p : "", text.n);
	fingerprint[text.n] = '\0';
	if (strspn(fingerprint, "0123456789abcdef") != text.n)
		return -EBADMSG;
	if (sv->recorder_life.head && sv->recorder_life.head->id == id) /* else it comes too late */
		tell(sv->recorder_life.head, text.n ? fingerprint : NULL);
	return 0;
}

void head_fini(struct supervisor *sv)
{
	if (sv->recorder_life.head)
		tell(sv->recorder_life.head, NULL);
}
