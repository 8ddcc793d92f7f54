/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ocsf: one event of a sandbox as one line of the audit log, in the Open Cybersecurity Schema
 * Framework's classes. docs/audit.md tells where each attribute comes from. Pure: bytes in, bytes
 * out.
 */
#ifndef VETHGUARD_SRC_RECORDER_OCSF_OCSF_H
#define VETHGUARD_SRC_RECORDER_OCSF_OCSF_H

#include "vethguard/wire/event.h"
#include "vethguard/wire/json.h"

#include "recorder/output/chain.h"

#define OCSF_VERSION "1.9.0-dev"

/* type_uid of the line that ends a file: Application Lifecycle, Other. No other line has it. */
#define OCSF_TYPE_LOG_ENDED 600299

/* Bounds of what reaches a line, in bytes before escaping. */
#define OCSF_NAME_MAX 128 /* sandbox, policy, rule, credential */
#define OCSF_HOST_MAX 255
#define OCSF_PATH_MAX 2048
#define OCSF_QUERY_MAX 2048
#define OCSF_AGENT_MAX 512
#define OCSF_TEXT_MAX 512   /* messages and details */
#define OCSF_REASON_MAX 640 /* two of them, which become one */
#define OCSF_METHOD_MAX 32
#define OCSF_DIFFERENCE_MAX 4096 /* between two policies */
#define OCSF_LINE_MAX 65536      /* a line of only the longest texts, all escaped, stays below */

/* What is the same in every line of one sandbox. */
struct ocsf_sandbox {
	char name[OCSF_NAME_MAX + 1]; /* cut to fit */
	uint64_t uid;
	struct ip gate4, gate6;
	uint64_t sequence; /* of the last line */
	struct buf device; /* "device":{...}, escaped */
	struct buf policy; /* "name":...,"uid":... of the policy, escaped; empty: no sandbox, but
	                      the daemon itself */
};

/* 0 or -ENOMEM. */
int ocsf_sandbox_init(struct ocsf_sandbox *sandbox, uint64_t uid, struct slice name,
        struct slice policy, struct slice fingerprint);
/* Its policy from the next line on. 0, or -ENOMEM: the old one stays. */
int ocsf_sandbox_policy(
        struct ocsf_sandbox *sandbox, struct slice policy, struct slice fingerprint);
void ocsf_sandbox_fini(struct ocsf_sandbox *sandbox);

/* Appends the event's line, sealed, and counts the sandbox's sequence on. 0, or -ENOBUFS, -ENOMEM,
 * -EIO: nothing was appended and neither sequence nor chain has moved. */
int ocsf_append(struct buf *out, struct chain *chain, struct ocsf_sandbox *sandbox,
        const struct event *event);

#endif
