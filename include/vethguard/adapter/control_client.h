/* SPDX-License-Identifier: Apache-2.0 */
/*
 * control_client: one call of the daemon's control API per connection. The daemon's answers have a Content-Length and
 * are never chunked, so a socket and the head parser that daemon and client share (vethguard/wire/control_http.h) are
 * enough. Nothing here prints: each program words the answer for its own user.
 */
#ifndef VETHGUARD_ADAPTER_CONTROL_CLIENT_H
#define VETHGUARD_ADAPTER_CONTROL_CLIENT_H

#include <jansson.h>

#include "vethguard/base/slice.h"

#define CONTROL_SOCKET_DEFAULT "/run/vethguard/control.sock"
#define CONTROL_TIMEOUT_S 120 /* for one call; attaching may wait for credentials' programs */
#define CONTROL_CLIENT_TEXT_MAX 1536

struct control_answer {
	bool asked;      /* the daemon may have got the request */
	unsigned status; /* 0: no answer came */
	json_t *json;    /* owned; NULL: none */
};

/* path: below "/v1", for example "/sandboxes". body: an object or NULL (borrowed). Returns 0 with an answer of any
 * status, which the caller frees; else -errno: -ENOENT or -ECONNREFUSED: nothing listens; -EACCES: the caller may not
 * use the socket; -EAGAIN: the daemon does not answer; -EBADMSG: what came is no answer of a daemon. */
int control_client_call(const char *socket_path, const char *method, const char *path, const json_t *body,
        struct control_answer *answer);
void control_answer_free(struct control_answer *answer);
/* True for 200 and 201. */
bool control_answer_is_good(const struct control_answer *answer);
/* Writes why a call did not do what was asked, as one sentence without control characters: of rc if that is not 0
 * (with the socket's path and what to do), else the detail of the problem document and its first diagnostic. Returns
 * out. */
const char *control_answer_fault(
        const struct control_answer *answer, int rc, const char *socket_path, char out[CONTROL_CLIENT_TEXT_MAX]);
/* A member's string (borrowed), or "". */
const char *control_text(const json_t *object, const char *key);

#endif
