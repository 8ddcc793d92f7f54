/* SPDX-License-Identifier: Apache-2.0 */
/*
 * packets: the packets of one sandbox that the fence dropped. Packets with the same protocol,
 * source, destination, port and rule are counted together, so that a flood is a few lines with
 * exact counts. Pure: the caller passes the time.
 */
#ifndef VETHGUARD_SRC_RECORDER_INPUT_PACKETS_H
#define VETHGUARD_SRC_RECORDER_INPUT_PACKETS_H

#include "vethguard/base/hash.h"
#include "vethguard/wire/event.h"
#include "vethguard/wire/packet.h"

/* Packets beyond the table: counted exactly, but not by kind. */
#define PACKETS_OTHERS "various kinds of packets"
#define PACKETS_MAX 1024 /* kinds counted apart; beyond that all others are counted as one */
/* The first packet of a kind is recorded at once, further ones once per window. */
#define PACKETS_WINDOW_MS 5000
#define PACKETS_RULE_MAX 32

/* Packets with the same key are of one kind. */
struct packets_key {
	struct ip src, dst;
	uint16_t ethertype, port;
	uint8_t protocol;
	char rule[PACKETS_RULE_MAX];
};

/* One kind, and what was counted of it since its last record. */
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
	/* Allocated with the first packet that found the table full. */
	struct packets_entry *others;
	size_t count;
	/* Monotonic: earliest time at which something is to be recorded; INT64_MAX: nothing is. */
	int64_t next_due_ms;
};

void packets_init(struct packets *packets);
void packets_fini(struct packets *packets);
/* Counts one packet. Returns 0 or -ENOMEM (it is not counted). */
int packets_add(struct packets *packets, const struct nflog_packet *packet, int64_t real_ms,
        int64_t now_ms);
/* Counts count packets without a copy, as one of the kinds that are not kept apart. Returns 0 or
 * -ENOMEM. */
int packets_add_uncopied(struct packets *packets, uint64_t count, int64_t real_ms, int64_t now_ms);
/* Returns how many packets are counted and not yet handed over. */
uint64_t packets_counted(const struct packets *packets);
/* Hands over an event (id is 0) for every kind that is due, or, with all, for every kind with a
 * count. emit returns false to stop; the refused event stays. Returns true if everything due was
 * handed over. */
bool packets_collect(struct packets *packets, int64_t now_ms, bool all,
        bool (*emit)(void *context, struct event *event), void *context);

/* Writes what is counted and not yet recorded, as at most max struct packets_kind (PACKETS_MAX + 1
 * suffice), to out, of any alignment. Returns their number. */
size_t packets_save(const struct packets *packets, void *out, size_t max);
/* Continues counting from a kind written by packets_save(), possibly in another process, possibly
 * corrupted. Returns 0 or -ENOMEM. */
int packets_restore(struct packets *packets, const struct packets_kind *kind);

#endif
