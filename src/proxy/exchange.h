/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of an exchange know of each other: exchange.c (its life), request.c (what goes
 * upstream), transform.c (what changes on the way back), placeholder.c (what the sandbox must not
 * send). */
#ifndef VETHGUARD_SRC_PROXY_EXCHANGE_H
#define VETHGUARD_SRC_PROXY_EXCHANGE_H

#include "proxy/private.h"
#include "vethguard/credential/unpack.h"

/* Sends the head. 0 or -errno (-EBADMSG: the credential cannot be put in). */
int exchange_send_plain(struct exchange *ex);
int exchange_send_with_credential(struct exchange *ex);
/* To the upstream: the trailer lines that may pass, and the empty line. */
void exchange_send_trailers(struct exchange *ex, struct slice trailers);
/* For the client: those that may pass, covered; borrowed until the next use of proxy->text. */
struct slice exchange_response_trailers(struct exchange *ex, struct slice trailers);
/* Something failed behind the verdict: told to the client where nothing was sent yet, else the
 * stream is cut. The exchange is gone afterwards. */
void exchange_fail(struct exchange *ex, enum event_cause cause, const char *detail);
/* Looks for placeholders where they do not belong, and takes away those that the injection
 * replaces. */
void exchange_check_placeholders(struct exchange *ex);
/* The same for what the client sends after its head. */
void exchange_scan_request(struct exchange *ex, const uint8_t *p, size_t n);

/* Prepares covering the credential in the response; covers it in the head. -1: why and cause tell
 * why not. */
int exchange_begin_masking(
        struct exchange *ex, struct http_response *r, enum event_cause *cause, const char **why);
/* Chooses the framing towards the client. */
void exchange_frame_response(struct exchange *ex, struct http_response *r);
void exchange_pass_interim(struct exchange *ex, struct http_response *r);
/* 101: the connection becomes a pipe. False: it was refused. */
bool exchange_upgrade(struct exchange *ex, struct http_response *r);
/* Goes on with what was kept for want of room. True: nothing is kept any more. */
bool exchange_unpack_more(struct exchange *ex);
/* What masking and unpacking kept back goes out. 0, or -EBADMSG: compressed data ended early. */
int exchange_flush_body(struct exchange *ex);

#endif
