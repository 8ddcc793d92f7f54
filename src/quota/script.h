/* SPDX-License-Identifier: Apache-2.0 */
/*
 * script: one question to the quota server about one budget, as a script that the server runs as a
 * whole (EVAL), and the answer to it.
 */
#ifndef VETHGUARD_SRC_QUOTA_SCRIPT_H
#define VETHGUARD_SRC_QUOTA_SCRIPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "quota/reply.h"

#define SCRIPT_NAME_MAX 64 /* of a budget: hexadecimal digits */
#define SCRIPT_HOST_MAX 32 /* of a quota's name at the server */
/* Parts, sixtieths of the period, for which an amount counts after the one in which it was got: a
 * lease lasts until the end of the next one, a worker may be late by one, and the period itself. */
#define SCRIPT_PARTS 62
/* After the server has begun anew it gives nothing for this time: every host first says what it has
 * claimed. Hosts look each second whether it has begun anew. */
#define SCRIPT_SETTLE_MS 3000
#define SCRIPT_SINCE \
	"vethguard:quota:since" /* the key that says since when the server has its data */

struct script_claim {
	int64_t part;
	uint64_t amount;
};

struct script_question {
	const char *name; /* of the budget */
	const char *host;
	uint64_t amount, part_ms;
	uint64_t need;  /* this much, if there is so much */
	uint64_t extra; /* and this much of a quarter of the rest */
	size_t claim_count;
	const struct script_claim *claims;
};

struct script_answer {
	int64_t part;     /* the number of the part that runs at the server */
	int64_t into_ms;  /* how much of it is over */
	uint64_t granted; /* at most need + extra */
	uint64_t room;    /* what is still there */
	int64_t wait_ms;  /* until there is what was needed but not granted, or anything at all if
	                     room is  0; 0: now; -1: never */
	int64_t since_ms; /* since when the server has its data */
};

/* Makes the command. Returns its length, with *out (redisFreeCommand()), or 0: no memory. */
size_t script_command(const struct script_question *q, char **out);
/* Reads an answer. Returns false if it is none, or out of its bounds. */
bool script_read(
        const struct script_question *q, const struct reply *reply, struct script_answer *out);

#endif
