/* SPDX-License-Identifier: Apache-2.0 */
/*
 * request: what a container's configuration says about its guard: annotations org.vethguard.NAME,
 * and where the administrator allows it, variables VETHGUARD_NAME of its environment. An annotation
 * comes before a variable, because an image can bring variables along.
 */
#ifndef VETHGUARD_SRC_RUNTIME_REQUEST_H
#define VETHGUARD_SRC_RUNTIME_REQUEST_H

#include <jansson.h>

#include "runtime/fault.h"

#define REQUEST_ANNOTATION "org.vethguard."
#define REQUEST_VARIABLE "VETHGUARD_"

struct request {
	const char *policy, *name; /* borrowed from the members below; NULL: not named */
	uint64_t ttl_s;            /* 0: none */
	json_t *texts;             /* owned: "policy", "name", "ttl" */
	json_t *labels, *vars;     /* owned objects of strings */
};

/* Reads it from a configuration. Returns false with a fault: a name that is none of these, a value
 * that is no text, a time that is none. */
bool request_read(struct request *r, const json_t *config, bool environment, struct fault *fault);
/* Removes the variables from a process's env, so that it does not see them. */
void request_strip(json_t *process);
void request_free(struct request *r);
/* "90s", "30m", "2h", "7d" or seconds, at most 366 days. */
bool request_read_ttl(const char *text, uint64_t *out);

#endif
