/* SPDX-License-Identifier: Apache-2.0 */
/* source_fetch: gets a source's next value from the supervisor, and answers who waits for it. For
 * sources.c only. */
#ifndef VETHGUARD_SRC_KEEPER_SOURCE_FETCH_H
#define VETHGUARD_SRC_KEEPER_SOURCE_FETCH_H

#include "keeper/sources.h"

/* True if the next value is ASKED for or READ. */
bool source_is_fetching(const struct source *source);
/* Asks the supervisor for a descriptor. Those who wait are answered in the end, perhaps from
 * within. */
void source_ask(struct source *source);
/* Ends a fetch; the held value stays. */
void source_end_fetch(struct source *source);
/* Answers every question that waits: with the held value, or with why there is none. */
void source_answer_all(struct source *source);
/* Answers the operator whose fetch has ended, or begins the fetch that an operator waits for. */
void source_proceed(struct source *source, const char *error, struct slice mark, uint32_t ttl_s);

#endif
