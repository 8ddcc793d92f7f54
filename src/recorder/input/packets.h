/* SPDX-License-Identifier: Apache-2.0 */
/*
 * packets: the packets of one sandbox that the fence dropped, counted together where they are alike
 * (protocol, source, destination, port, rule), so that a flood is a few lines with exact counts.
 * Pure: the caller tells the time.
 */
#ifndef VETHGUARD_SRC_RECORDER_INPUT_PACKETS_H
#define VETHGUARD_SRC_RECORDER_INPUT_PACKETS_H

#include "vethguard/base/hash.h"
#include "vethguard/wire/event.h"
#include "vethguard/wire/packet.h"

/* Beyond the table: counted exactly, not apart. */
#define PACKETS_OTHERS "various kinds of packets"
#define PACKETS_MAX 1024 /* kinds counted apart; beyond that all others are counted as one */
#define PACKETS_WINDOW_MS \
	5000 /* the first of a kind is recorded at once, further ones once per window */
#define PACKETS_RULE_MAX 32

/* What makes packets alike. */
struct packets_key {
	struct ip src, dst;
	uint16_t ethertype, port;
	uint8_t protocol;
	char rule[PACKETS_RULE_MAX];
};

/* One kind and what is counted of it since its last record. */
struct packets_kind {
	struct packets_key key;
	uint16_t src_port; /* of the first */
	uint64_t count, bytes;
	int64_t first_ms, last_ms; /* real time */
	int64_t due_ms;            /* monotonic */
};

struct packets_entry;

struct packets {
	struct hash_key key;
	struct packets_entry *table;
	struct packets_entry
	        *others; /* allocated with the first packet that found the table full */
	size_t count;
	int64_t next_due_ms; /* monotonic: nothing is to be recorded before; INT64_MAX: nothing at
	                        all */
};

void packets_init(struct packets *packets);
void packets_fini(struct packets *packets);
/* Counts one packet. 0 or -ENOMEM (it is not counted). */
int packets_add(struct packets *packets, const struct nflog_packet *packet, int64_t real_ms,
        int64_t now_ms);
/* Counts so many more of which there is no copy, as one of the kinds that are not kept apart. 0 or
 * -ENOMEM. */
int packets_add_uncopied(struct packets *packets, uint64_t count, int64_t real_ms, int64_t now_ms);
/* What is counted and not yet handed over. */
uint64_t packets_counted(const struct packets *packets);
/* Hands over an event (id is 0) for every kind that is due, or for all that have something to tell.
 * emit: false stops; the event that it refused stays. True: everything due was handed over. */
bool packets_collect(struct packets *packets, int64_t now_ms, bool all,
        bool (*emit)(void *context, struct event *event), void *context);

/* What is counted and not yet recorded, as at most max struct packets_kind (PACKETS_MAX + 1 are
 * enough) into out, of any alignment. Their number. */
size_t packets_save(const struct packets *packets, void *out, size_t max);
/* Counts on from a kind that packets_save gave, perhaps in another process, perhaps garbled. 0 or
 * -ENOMEM. */
int packets_restore(struct packets *packets, const struct packets_kind *kind);

#endif
