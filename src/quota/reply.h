/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reply: reads the answers of the quota server (RESP2). hiredis parses; this file says what an
 * answer may be, and keeps it in memory of fixed size, whatever the server says about lengths.
 */
#ifndef VETHGUARD_SRC_QUOTA_REPLY_H
#define VETHGUARD_SRC_QUOTA_REPLY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define REPLY_BYTES_MAX 4096 /* of one answer */
#define REPLY_NUMBERS_MAX 8  /* of a list */
#define REPLY_TEXT_MAX 63    /* what is kept of a status or an error */

enum reply_kind {
	REPLY_NOTHING, /* nil */
	REPLY_STATUS,  /* "OK" */
	REPLY_ERROR,   /* "LOADING Redis is loading the dataset in memory" */
	REPLY_NUMBER,
	REPLY_TEXT,
	REPLY_LIST, /* of numbers */
	REPLY_KIND_COUNT
};

struct reply {
	enum reply_kind kind;
	char text[REPLY_TEXT_MAX + 1]; /* STATUS, ERROR, TEXT: the first bytes; others than
	                                  printable ASCII are '?' */
	int64_t number;                /* NUMBER */
	size_t count;                  /* LIST */
	int64_t numbers[REPLY_NUMBERS_MAX];
};

struct reply_reader {
	struct redisReader *reader; /* owned */
	struct reply reply;
	size_t bytes;   /* of the answer so far */
	size_t numbers; /* of its list that have come */
	bool wrong;     /* it has something that no answer may have */
};

enum reply_status { REPLY_MORE, REPLY_WHOLE, REPLY_WRONG };

/* Returns false if there is no memory. */
bool reply_open(struct reply_reader *r);
void reply_close(struct reply_reader *r); /* does nothing on a zeroed one */
/* Takes bytes of an answer. REPLY_MORE: it is not complete. REPLY_WHOLE: it is in r->reply, and the
 * reader is ready for the next one. REPLY_WRONG: this is no answer, or more than one, or too long;
 * nothing can be read after it. */
enum reply_status reply_feed(struct reply_reader *r, const void *p, size_t n);

#endif
