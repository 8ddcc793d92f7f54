/* SPDX-License-Identifier: Apache-2.0 */
/* A daemon's sandboxes, and the last answer to a request about one. */
#ifndef VETHGUARD_TESTS_UNIT_SUPERVISOR_ATTACH_ATTACH_FIXTURE_H
#define VETHGUARD_TESTS_UNIT_SUPERVISOR_ATTACH_ATTACH_FIXTURE_H

#include <stdio.h>
#include <string.h>

#include "supervisor/attach/attachment.h"

static struct supervisor supervisor;
static struct attachments all;

static struct {
	unsigned count;
	enum attach_status status;
	char text[256];
} answered;

static inline void on_done(void *context, const struct attach_result *result)
{
	(void)context;
	answered.count++;
	answered.status = result->status;
	snprintf(answered.text, sizeof(answered.text), "%s", result->text);
}

/* Returns 0, or -1. */
static inline int set_up_daemon(void)
{
	memset(&answered, 0, sizeof(answered));
	supervisor = (struct supervisor){.loop = loop_new()};
	all = (struct attachments){.supervisor = &supervisor};
	return supervisor.loop ? 0 : -1;
}

#endif
