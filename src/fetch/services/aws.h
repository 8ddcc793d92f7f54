/* SPDX-License-Identifier: Apache-2.0 */
/* aws: signed calls to AWS, and the keys that they are signed with. */
#ifndef VETHGUARD_SRC_FETCH_SERVICES_AWS_H
#define VETHGUARD_SRC_FETCH_SERVICES_AWS_H

#include "fetch/services/services.h"
#include "vethguard/credential/aws_keys.h"

#define AWS_VALUE_MAX (AWS_KEY_ID_MAX + SIGV4_SECRET_MAX + AWS_TOKEN_MAX + 2)

struct aws_call {
	struct slice url;     /* "https://HOST[:PORT]" */
	struct slice service; /* of the signature */
	const char *type;     /* of the body */
	const char *target;   /* of X-Amz-Target; NULL: none */
	struct slice body;
};

/* Posts the body, signed with the keys (NULL: not signed). Returns true with the answer's body,
 * which is valid until the next call. */
bool aws_post(const struct fetch_request *request, struct https *https, struct aws_keys *keys,
        const struct aws_call *call, struct slice *answer, char fault[HTTPS_TEXT_MAX]);

/* Gets the keys that the arguments describe: those of a file, of a role that a token of another
 * identity provider stands for, or of this machine; and then those of a role that they may assume.
 * *lives: filled in as struct fetched has it. Returns NULL with a sentence in fault. */
struct aws_keys *aws_log_in(const struct fetch_request *request, struct https *https,
        struct fetched *lives, char fault[HTTPS_TEXT_MAX]);

/* aws_instance.c: the keys of the role of this machine. */
struct aws_keys *aws_instance_keys(const struct fetch_request *request, struct https *https,
        struct fetched *lives, char fault[HTTPS_TEXT_MAX]);

#endif
