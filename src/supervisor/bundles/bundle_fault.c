/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A fault of a bundle is told once: in the log, and as a finding unless only its source cannot be
 * read or the disk fails. The control API shows the fault until a look finds the bundle good.
 */
#include <stdio.h>
#include <string.h>

#include "vethguard/base/log.h"
#include "supervisor/attach/attachment.h"

void bundle_fail(struct bundle *b, enum signed_bundle_fault fault, const char *why)
{
	const bool is_told = b->fault == fault && strcmp(b->why, why) == 0;
	char text[SIGNED_BUNDLE_WHY_MAX + PATH_MAX];

	b->fault = fault;
	if (is_told)
		return;
	snprintf(b->why, sizeof(b->why), "%s", why);
	snprintf(text, sizeof(text), "bundle %s, %.512s: %s. %s", b->config.name, b->config.source,
	        b->why,
	        b->active ? "The bundle before stays in force."
	                  : "No bundle of this name is in force.");
	log_error("%s", text);
	if (fault != SIGNED_BUNDLE_SOURCE && fault != SIGNED_BUNDLE_DISK)
		outbox_finding(b->all->supervisor, NULL, EVENT_FINDING_BUNDLE_REFUSED, text);
}
