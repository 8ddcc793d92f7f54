/* SPDX-License-Identifier: Apache-2.0 */
/* summary: what one sandbox did in all, and the destinations it was refused most often. */
#ifndef RECORDER_SUMMARY_H
#define RECORDER_SUMMARY_H

#include "vethguard/base/hash.h"
#include "vethguard/wire/message.h"

#define SUMMARY_DESTINATIONS_MAX 256 /* watched at a time */
#define SUMMARY_TEXT_MAX 160         /* bytes of one, before escaping */
#define SUMMARY_SHOWN_MAX (4 * SUMMARY_TEXT_MAX + 1)

struct summary_destination;

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

#endif
