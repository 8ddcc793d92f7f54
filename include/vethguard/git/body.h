/* SPDX-License-Identifier: Apache-2.0 */
/*
 * git: reads bodies of git's smart HTTP protocol: what a fetch asks for (protocol versions 0, 1 and 2), and what a push
 * changes (gitprotocol-http(5), gitprotocol-pack(5), gitprotocol-v2(5)). What two readers could take differently, or
 * what is not known here, is refused.
 */
#ifndef VETHGUARD_GIT_BODY_H
#define VETHGUARD_GIT_BODY_H

#include "vethguard/policy/body.h"

#define GIT_COMMANDS_MAX 1024u /* refs that one push changes */
#define GIT_REF_MAX 1024u      /* bytes of a ref's name */
#define GIT_SHALLOW_MAX 4096u  /* commits at which the client's history ends */
#define GIT_OPTIONS_MAX 64u    /* push options */
#define GIT_LINE_MAX 1024u     /* bytes of a line of a fetch, or of a push option */
#define GIT_CERTIFICATE_LINES_MAX 4096u
#define GIT_OBJECTS_MAX 200000u       /* objects of a pack that is read */
#define GIT_INFLATED_MAX (128u << 20) /* bytes of all objects of such a pack */
#define GIT_COMMIT_MAX (1u << 20)     /* bytes of a commit, or of a difference that makes one */
#define GIT_COMMITS_MAX 65536u        /* commits of such a pack */
#define GIT_COMMITS_BYTES_MAX (16u << 20)
#define GIT_STEPS_MAX 1000000u /* commits that are looked at for all refs of a push together */

/* As policy_body_read(), and reads bodies of git too; those may be compressed by gzip. Call policy_body_fini(). */
void git_body_read(struct policy_body *body, const struct policy_fields *fields, struct slice text);

#endif
