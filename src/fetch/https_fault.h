/* SPDX-License-Identifier: Apache-2.0 */
/* https_fault: the sentence for the operator about an answer without success. */
#ifndef VETHGUARD_SRC_FETCH_HTTPS_FAULT_H
#define VETHGUARD_SRC_FETCH_HTTPS_FAULT_H

#include "fetch/https.h"

struct https_answer {
	long status;
	struct slice text;
	const json_t *json;   /* the text's; NULL: it is not JSON */
	bool has_retry_after; /* a field Retry-After asks to wait */
};

/* What was sent, and must not be shown: a service may repeat what it refuses. */
struct https_sent {
	const struct slice *secrets;
	size_t secret_count;
	const struct https_call *call;
};

/* True if the service wants fewer requests. */
bool https_fault_is_throttled(const struct https_answer *answer);
/* Writes what went wrong. Of the answer's text it shows only what a service says about an error in
 * its documented members, without anything that was sent. */
void https_fault_explain(const struct https_answer *answer, const struct https_sent *sent,
        char fault[HTTPS_TEXT_MAX]);

#endif
