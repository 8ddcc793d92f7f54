/* SPDX-License-Identifier: Apache-2.0 */
/*
 * import: turns the network rules of another program into a policy. The policy never allows what the source does not.
 * Where a policy cannot say what the source says, the policy has a comment about it.
 */
#ifndef VETHGUARD_POLICY_IMPORT_H
#define VETHGUARD_POLICY_IMPORT_H

#include "vethguard/base/buf.h"
#include "vethguard/base/diag.h"

#define POLICY_IMPORT_FILE_MAX (1u << 20)  /* bytes of a source */
#define POLICY_IMPORT_TEXT_MAX (16u << 20) /* bytes of a policy made of one */
#define POLICY_IMPORT_LINES_MAX 20000      /* destinations, and as many comments, of one source */

enum policy_import_format {
	POLICY_IMPORT_E2B,       /* JSON: options of a sandbox, or their network */
	POLICY_IMPORT_VERCEL,    /* JSON: a networkPolicy, or options that have one */
	POLICY_IMPORT_OPENSHELL, /* YAML: a sandbox policy */
	POLICY_IMPORT_SRT,       /* JSON: settings of sandbox-runtime */
	POLICY_IMPORT_SBX,       /* text: lines of `sbx policy` commands */
	POLICY_IMPORT_SQUID,     /* text: squid.conf */
	POLICY_IMPORT_COUNT
};

/* Returns "e2b", "vercel", "openshell", "srt", "docker-sbx" or "squid". */
const char *policy_import_name(enum policy_import_format format);
/* Finds a format by that name. Returns false if there is none. */
bool policy_import_find(const char *name, enum policy_import_format *out);
/* Writes the policy to out (initialized with POLICY_IMPORT_TEXT_MAX). file: the source's name, for messages and
 * comments. Returns 0; -EINVAL with messages in diags, and nothing in out; or -ENOMEM. */
int policy_import(enum policy_import_format format, const char *file, struct slice text, struct buf *out,
        struct diag_list *diags);

#endif
