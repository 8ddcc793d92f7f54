/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a body whose content type is git's. A body that cannot be read becomes
 * POLICY_BODY_OTHER, with the reason in fault. */
#include "vethguard/git/body.h"

#include <errno.h>
#include <stdlib.h>

#include "git/fetch.h"
#include "git/gunzip.h"
#include "git/push.h"

static const char no_memory[] = "no memory to read the request's body";

/* Decompresses the body. Returns NULL, or the fault. */
static const char *decompress(struct policy_body *body)
{
	struct buf plain;
	int rc;

	buf_init(&plain, POLICY_INSPECT_MAX);
	rc = gunzip(body->text, &plain);
	if (rc == 0) {
		body->plain = malloc(plain.len + 1);
		if (!body->plain)
			rc = -ENOMEM;
	}
	if (rc == 0) {
		memcpy(body->plain, buf_slice(&plain).p, plain.len);
		body->text = slice_of(body->plain, plain.len);
	}
	buf_fini(&plain);
	if (rc == -ENOBUFS)
		return "the request's body has more than 16 MiB when it is decompressed";
	return rc == 0          ? NULL
	       : rc == -EBADMSG ? "the request's body is not a single gzip stream"
	                        : no_memory;
}

void git_body_read(struct policy_body *body, const struct policy_fields *fields, struct slice text)
{
	const char *fault = NULL;

	policy_body_read(body, fields, text);
	if (body->kind != POLICY_BODY_GIT_FETCH && body->kind != POLICY_BODY_GIT_PUSH)
		return;
	body->git = calloc(1, sizeof(*body->git));
	fault = body->git ? NULL : no_memory;
	if (!fault && body->gzip)
		fault = decompress(body);
	if (!fault && body->kind == POLICY_BODY_GIT_PUSH)
		fault = push_read(body->git, body->text);
	else if (!fault && !fetch_is_sound(body->text))
		fault = "the fetch is not in the lines of git's protocol";
	if (!fault)
		return;
	body->kind = POLICY_BODY_OTHER;
	body->fault = fault;
}
