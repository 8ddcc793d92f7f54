/* SPDX-License-Identifier: Apache-2.0 */
/* head: which line is the last one of the audit log, by its fingerprint. The recorder answers from
 * its memory, so a file that somebody has cut does not answer for itself. */
#ifndef VETHGUARD_SRC_SUPERVISOR_EVENTS_HEAD_H
#define VETHGUARD_SRC_SUPERVISOR_EVENTS_HEAD_H

#include "vethguard/base/slice.h"
#include "vethguard/wire/seal.h"

struct supervisor;

#define HEAD_PATIENCE_MS 2000 /* for the recorder's answer */
#define HEAD_WAITING_MAX 64   /* questions at a time: as many as the control API has connections */

/* fingerprint: NULL where there is none to tell: no recorder runs just now, it does not answer in
 * time, or it has written no line yet. */
typedef void (*head_told)(void *context, const char *fingerprint);

/* told is called once: at once, from the loop, or by head_fini(). 0; -EBUSY: HEAD_WAITING_MAX wait;
 * -ENOMEM. */
int head_ask(struct supervisor *sv, head_told told, void *context);
/* What the recorder says under this id. 0, or -EBADMSG: that is no fingerprint. */
int head_answered(struct supervisor *sv, uint64_t id, struct slice text);
void head_fini(struct supervisor *sv);

#endif
