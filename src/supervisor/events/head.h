/* SPDX-License-Identifier: Apache-2.0 */
/* head: the fingerprint of the last line of the audit log. The recorder answers from its memory, so
 * a truncated file does not answer for itself. */
#ifndef VETHGUARD_SRC_SUPERVISOR_EVENTS_HEAD_H
#define VETHGUARD_SRC_SUPERVISOR_EVENTS_HEAD_H

#include "vethguard/base/slice.h"
#include "vethguard/wire/seal.h"

struct supervisor;

#define HEAD_PATIENCE_MS 2000 /* for the recorder's answer */
#define HEAD_WAITING_MAX 64   /* waiting questions: as many as the control API has connections */

/* fingerprint: NULL if no recorder runs, if it does not answer in time, or if it has written no
 * line yet. */
typedef void (*head_told)(void *context, const char *fingerprint);

/* told is called once: at once, from the loop, or by head_fini(). Returns 0; -EBUSY:
 * HEAD_WAITING_MAX questions wait; -ENOMEM. */
int head_ask(struct supervisor *sv, head_told told, void *context);
/* Handles the recorder's answer to the question id. Returns 0, or -EBADMSG: it is no
 * fingerprint. */
int head_answered(struct supervisor *sv, uint64_t id, struct slice text);
void head_fini(struct supervisor *sv);

#endif
