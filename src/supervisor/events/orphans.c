/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Orphans: ended sandboxes for which the recorder has not confirmed yet that all is in the log;
 * their rings and events are kept under their ids until then. Also sandboxes that only an earlier
 * supervisor knew (adopt.c).
 */
#include <stdlib.h>

#include "vethguard/base/log.h"
#include "supervisor/events/private.h"

static uint8_t buffer[MESSAGE_BYTES_MAX];

static int say_left(struct supervisor *sv, struct recorded *left)
{
	struct message_recorder_sandbox m = {
	        .sandbox_id = left->id, .sandbox = SLICE(MESSAGE_NAME_LEFT)};
	int rc = recording_say_sandbox(sv, &m, NULL);

	left->end_told = false;
	return rc ? rc : recording_open_rings(sv, left);
}

struct recorded *recording_open_orphans(struct supervisor *sv, uint64_t id)
{
	struct recorded *left = calloc(1, sizeof(*left));

	if (!left)
		return NULL;
	left->id = id;
	left->open = true;
	left->next = sv->recording.left;
	sv->recording.left = left;
	if (say_left(sv, left) != 0)
		log_error("events that were left behind cannot be given to the recorder");
	return left;
}

int recording_orphans_again(struct supervisor *sv)
{
	int rc = 0;

	for (struct recorded *left = sv->recording.left; left && !rc; left = left->next) {
		rc = say_left(sv, left);
		outbox_say_again(sv, left);
	}
	return rc;
}

size_t recording_count_orphans(const struct supervisor *sv)
{
	size_t n = 0;

	for (const struct recorded *left = sv->recording.left; left; left = left->next)
		n++;
	return n;
}

/* An orphan is over with its last ring and event. Others are not in this list. */
void recording_end_orphans(struct supervisor *sv, struct recorded *of)
{
	struct message_sandbox m = {of->id, 0};

	if (of->rings || of->told)
		return;
	for (struct recorded **at = &sv->recording.left; *at; at = &(*at)->next) {
		struct recorded *left = *at;

		if (left != of)
			continue;
		*at = left->next;
		if (!left->end_told)
			recording_say(sv, buffer,
			        message_sandbox_encode(buffer, sizeof(buffer), MESSAGE_RECORDER_END,
			                supervisor_next_id(sv), &m),
			        NULL, 0);
		free(left);
		return;
	}
}

void recording_leave(struct supervisor *sv, struct recorded *of)
{
	struct recorded *left = of->rings || of->told ? malloc(sizeof(*left)) : NULL;

	if (!left) { /* its files stay, for a later supervisor */
		recording_forget(sv, of, false);
		return;
	}
	*left = *of;
	left->end_told = !of->end_waits;
	left->end_waits = false;
	left->next = sv->recording.left;
	sv->recording.left = left;
	outbox_move(left);
	for (struct recorded_ring *ring = left->rings; ring; ring = ring->next)
		ring->of = left;
	of->rings = NULL;
	of->told = of->next_told = NULL;
	of->ahead = of->rings_given = 0;
}
