/* SPDX-License-Identifier: Apache-2.0 */
/*
 * challenge: reads the challenges of WWW-Authenticate (RFC 9110 section 11.6.1) strictly: a value that two clients
 * could read in two ways is refused. Pure.
 */
#ifndef VETHGUARD_WIRE_CHALLENGE_H
#define VETHGUARD_WIRE_CHALLENGE_H

#include "vethguard/base/slice.h"

#define CHALLENGE_PARAMETERS_MAX 16 /* of one challenge */
#define CHALLENGE_REALM_MAX 512     /* bytes of a realm, without quotes and escapes */
#define CHALLENGE_FIELD_MAX 8192    /* bytes of a field's value */

struct challenge {
	struct slice scheme; /* as written */
	struct slice realm;  /* borrows text; empty: there is none */
	size_t parameters;
	char text[CHALLENGE_REALM_MAX];
};

/* Takes the next challenge off rest; for the first call rest is the field's value. Returns 1; 0 at the end; -EBADMSG:
 * rest is no list of challenges, names a parameter twice, or exceeds a bound. */
int challenge_next(struct slice *rest, struct challenge *out);

#endif
