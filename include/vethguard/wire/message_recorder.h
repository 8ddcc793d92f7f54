/* SPDX-License-Identifier: Apache-2.0 */
/* message_recorder: what supervisor and recorder send each other. */
#ifndef VETHGUARD_WIRE_MESSAGE_RECORDER_H
#define VETHGUARD_WIRE_MESSAGE_RECORDER_H

#include "vethguard/wire/event.h"
#include "vethguard/wire/message_type.h"

#define MESSAGE_WHAT_MAX 1024 /* one line of a summary */

struct message_recorder_start {
	struct slice path; /* of the log, for messages */
	uint8_t log_level;
};

struct message_recorder_sandbox {
	uint64_t sandbox_id;
	struct slice sandbox, policy, fingerprint;
	struct ip gate4, gate6;
	struct slice socket; /* path of the Unix socket that is its only way out, or empty */
	bool has_packets;    /* the fd is sent */
	uint64_t dropped;    /* packets that the fence had counted when this recorder got the sandbox, and
	                        that another recorder reported; MESSAGE_DROPPED_UNKNOWN: both recorders read
	                        the same copies */
};
#define MESSAGE_DROPPED_UNKNOWN UINT64_MAX

/* One writer of a sandbox's events. Workers of a sandbox come and go, each with its own ring. */
struct message_recorder_ring {
	uint64_t sandbox_id;
	uint64_t ring; /* unique in its sandbox, even across restarts of the supervisor */
};

/* Sandboxes that the recorder has room for, including those that have ended and are not drained yet. */
#define MESSAGE_RECORDER_SANDBOXES_MAX 8192
#define MESSAGE_RECORDER_RINGS_ALL_MAX 20480 /* rings of all sandboxes: the journal has room for notes of them */
/* What the recorder can hold of one sandbox while the log cannot be written: rings that are not drained, and bytes of
 * supervisor events that are not TAKEN, each with a fixed cost besides its own bytes. */
#define MESSAGE_RECORDER_RINGS_MAX 40
#define MESSAGE_RECORDER_AHEAD_MAX (64u << 10)
#define MESSAGE_RECORDER_EVENT_COST 32

struct message_recorder_event {
	uint64_t sandbox_id;
	struct slice event; /* as event_encode() made it; the rest of the message */
};

struct message_sandbox { /* RECORDER_END, RECORDER_COUNT */
	uint64_t sandbox_id;
	uint64_t dropped; /* packets that the fence has counted so far; 0: unknown */
};

#define MESSAGE_UNUSUAL_MAX 8
struct message_summary {
	uint64_t allowed, denied, dropped, findings, observed;
	uint64_t failed;      /* allowed by the policy, but failed in the network: counted neither as allowed
	                         nor as denied */
	uint64_t lines;       /* lines written to the log */
	size_t unusual_count; /* the most frequent refused destinations */
	struct {
		struct slice what; /* escaped: "POST https://paste.example/" */
		uint64_t count;
	} unusual[MESSAGE_UNUSUAL_MAX];
};

MESSAGE_CODEC(recorder_start);
MESSAGE_CODEC(recorder_sandbox);
MESSAGE_CODEC(recorder_ring);
MESSAGE_CODEC(recorder_event);
MESSAGE_CODEC(sandbox);
MESSAGE_CODEC(summary);

#endif
