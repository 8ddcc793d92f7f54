/* SPDX-License-Identifier: Apache-2.0 */
/* summary: the totals of one sandbox, and the destinations it was refused most often. */
#ifndef VETHGUARD_SRC_RECORDER_OUTPUT_SUMMARY_H
#define VETHGUARD_SRC_RECORDER_OUTPUT_SUMMARY_H

#include "vethguard/base/hash.h"
#include "vethguard/wire/message.h"

#define SUMMARY_DESTINATIONS_MAX 256 /* counted at a time */
#define SUMMARY_TEXT_MAX 160         /* bytes of one, before escaping */
#define SUMMARY_SHOWN_MAX (4 * SUMMARY_TEXT_MAX + 1)

struct summary_destination;

/* A destination, for another process to continue counting. */
struct summary_kept {
	char text[SUMMARY_TEXT_MAX];
	uint32_t n;
	uint64_t count, error;
};

struct summary {
	uint64_t allowed, denied, failed, observed, dropped, findings, lines;
	struct hash_key key;
	struct summary_destination *table;
	size_t count;
};

void summary_init(struct summary *summary);
void summary_fini(struct summary *summary);
/* Counts one recorded line. */
void summary_count(struct summary *summary, const struct event *event);
/* texts holds what out->unusual points to. */
void summary_report(const struct summary *summary, struct message_summary *out,
        char texts[MESSAGE_UNUSUAL_MAX][SUMMARY_SHOWN_MAX]);

/* Writes the counted destinations as struct summary_kept to out, of any alignment: all, or none if
 * there are more than max. Returns their number. */
size_t summary_save(const struct summary *summary, void *out, size_t max);
/* Continues counting from what summary_save() wrote, possibly in another process, possibly
 * corrupted. */
void summary_restore(struct summary *summary, const struct summary_kept *kept);

#endif
