/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ocsf: one event of a sandbox as one line of the audit log, in the classes of the Open
 * Cybersecurity Schema Framework. docs/audit.md lists the source of each attribute. Pure: bytes in,
 * bytes out.
 */
#ifndef VETHGUARD_SRC_RECORDER_OCSF_OCSF_H
#define VETHGUARD_SRC_RECORDER_OCSF_OCSF_H

#include "vethguard/wire/event.h"
#include "vethguard/wire/json.h"

#include "recorder/output/chain.h"

#define OCSF_VERSION "1.9.0-dev"

/* type_uid of the line that ends a file: Application Lifecycle, Other. No other line has it. */
#define OCSF_TYPE_LOG_ENDED 600299

/* Limits of texts in a line, in bytes before escaping. */
#define OCSF_NAME_MAX 128 /* sandbox, policy, rule, credential */
#define OCSF_HOST_MAX 255
#define OCSF_PATH_MAX 2048
#define OCSF_QUERY_MAX 2048
#define OCSF_AGENT_MAX 512
#define OCSF_TEXT_MAX 512   /* messages and details */
#define OCSF_REASON_MAX 640 /* two of them, which become one */
#define OCSF_METHOD_MAX 32
#define OCSF_DIFFERENCE_MAX 4096 /* between two policies */
#define OCSF_LINE_MAX 65536      /* a line of only the longest texts, all escaped, is shorter */

/* What is the same in every line of one sandbox. */
struct ocsf_sandbox {
	char name[OCSF_NAME_MAX + 1]; /* cut to fit */
	uint64_t uid;
	struct ip gate4, gate6;
	char socket[OCSF_NAME_MAX +
	            1];    /* path of the Unix socket its connections come over, or empty */
	uint64_t sequence; /* of the last line */
	struct buf device; /* "device":{...}, escaped */
	/* "name":...,"uid":... of the policy, escaped; empty: no sandbox, but the daemon itself. */
	struct buf policy;
};

/* Returns 0 or -ENOMEM. */
int ocsf_sandbox_init(struct ocsf_sandbox *sandbox, uint64_t uid, struct slice name,
        struct slice policy, struct slice fingerprint);
/* Sets the policy, from the next line on. Returns 0, or -ENOMEM: the old one stays. */
int ocsf_sandbox_policy(
        struct ocsf_sandbox *sandbox, struct slice policy, struct slice fingerprint);
void ocsf_sandbox_fini(struct ocsf_sandbox *sandbox);

/* Appends the event's line, sealed, and increments the sandbox's sequence. Returns 0, or -ENOBUFS,
 * -ENOMEM, -EIO: nothing was appended, and sequence and chain are unchanged. */
int ocsf_append(struct buf *out, struct chain *chain, struct ocsf_sandbox *sandbox,
        const struct event *event);

#endif
