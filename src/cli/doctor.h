/* SPDX-License-Identifier: Apache-2.0 */
/* doctor: findings about this machine, one by one. */
#ifndef VETHGUARD_CLI_DOCTOR_H
#define VETHGUARD_CLI_DOCTOR_H

#include <stdbool.h>
#include <stddef.h>

enum doctor_state { DOCTOR_OK, DOCTOR_NOTE, DOCTOR_BROKEN };

#define DOCTOR_TEXT_MAX 512

struct doctor_finding {
	const char *subject;          /* a word */
	enum doctor_state state;      /* BROKEN: `run` cannot work */
	char text[DOCTOR_TEXT_MAX];   /* what is */
	char remedy[DOCTOR_TEXT_MAX]; /* what to do, or empty */
};

typedef void (*doctor_check)(struct doctor_finding *finding);
/* Ends with NULL. A check may leave the text empty: nothing to say. */
extern const doctor_check doctor_checks[];

#endif
