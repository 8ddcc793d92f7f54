/* SPDX-License-Identifier: Apache-2.0 */
/*
 * control_http: the heads of HTTP/1.1 messages (RFC 9112) between the control API and its clients. Only what these
 * need of HTTP exists here: bodies have a Content-Length; folding, chunking and malformed heads are refused. Both
 * sides use these functions.
 */
#ifndef VETHGUARD_WIRE_CONTROL_HTTP_H
#define VETHGUARD_WIRE_CONTROL_HTTP_H

#include "vethguard/wire/json.h"

#define CONTROL_PROBLEM "application/problem+json"
#define CONTROL_JSON "application/json"

#define CONTROL_HEAD_MAX (8 * 1024) /* bytes from the first line through the empty line */
#define CONTROL_FIELDS_MAX 64
#define CONTROL_TARGET_MAX 2048
#define CONTROL_BODY_MAX (64 * 1024)  /* of a request */
#define CONTROL_ANSWER_MAX (8u << 20) /* of an answer, for example a list of some thousand sandboxes */

#define CONTROL_HEAD_WHOLE 200 /* the head is complete */
#define CONTROL_HEAD_MORE 100  /* the head is incomplete */

struct control_head {
	size_t size;               /* bytes of the head, with the empty line */
	struct slice method;       /* of a request: a token */
	struct slice target;       /* of a request: printable ASCII, begins with '/' */
	unsigned status;           /* of a response: 100 to 599 */
	struct slice content_type; /* as written, or empty */
	bool has_length;
	uint64_t length;       /* of the body; 0 if none is given */
	bool closes;           /* no further message comes on this connection (RFC 9112 section 9.3) */
	bool expects_continue; /* RFC 9110 section 10.1.1 */
	bool has_host;         /* RFC 9112 section 3.2; it may be empty */
	bool needs_host;       /* HTTP/1.1: a request without it is malformed */
};

/* Both return CONTROL_HEAD_WHOLE and fill *head, whose slices borrow from bytes; or CONTROL_HEAD_MORE; or the status
 * to answer with: 400 malformed, 411 a body of unknown length, 414, 417, 431, 505. For a response every fault is
 * 400. */
int control_head_request(struct slice bytes, struct control_head *head);
int control_head_response(struct slice bytes, struct control_head *head);
/* The name of a status, static: "Not Found". */
const char *control_status_name(unsigned status);
/* Begins a problem document (RFC 9457) with type, title, status and detail. The caller adds members and ends the
 * object. */
void control_problem_begin(struct json *j, struct buf *out, unsigned status, struct slice detail);

#endif
