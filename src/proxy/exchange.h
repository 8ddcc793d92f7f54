/* SPDX-License-Identifier: Apache-2.0 */
/* What the parts of an exchange know of each other: exchange.c (its life), denial.c (refusing),
 * request.c (what goes upstream), transform.c (what changes on the way back), placeholder.c (what
 * the sandbox must not send), websocket_relay.c (frames after an upgrade). */
#ifndef VETHGUARD_SRC_PROXY_EXCHANGE_H
#define VETHGUARD_SRC_PROXY_EXCHANGE_H

#include "proxy/private.h"
#include "vethguard/credential/unpack.h"

/* Sends the head. 0 or -errno (-EBADMSG: the credential cannot be put in). */
int exchange_send_plain(struct exchange *ex);
int exchange_send_with_credential(struct exchange *ex);
/* For the upstream: the trailer lines that may pass; borrowed until the next use of proxy->text. */
struct slice exchange_request_trailers(struct exchange *ex, struct slice trailers);
/* For the client: those that may pass, covered; borrowed until the next use of proxy->text. */
struct slice exchange_response_trailers(struct exchange *ex, struct slice trailers);
/* The one end: the upstream is given back, the client told. complete: the response was sent as a
 * whole; reusable: so is the upstream's connection. The exchange is gone afterwards. */
void exchange_finish(struct exchange *ex, bool complete, bool reusable);
/* Something failed behind the verdict: told to the client where nothing was sent yet, else the
 * stream is cut. The exchange is gone afterwards. */
void exchange_fail(struct exchange *ex, enum event_cause cause, const char *detail);
/* Looks for placeholders where they do not belong, and takes away those that the injection
 * replaces. */
void exchange_check_placeholders(struct exchange *ex);
/* Records that one was found. */
void exchange_found_placeholder(struct exchange *ex, const char *where);
/* Looks for one in a text that comes in pieces; where is what the finding says. */
void exchange_scan_text(struct exchange *ex, const uint8_t *p, size_t n, const char *where);
/* The same for a request's body. */
void exchange_scan_request(struct exchange *ex, const uint8_t *p, size_t n);

/* Prepares covering the credential in the response; covers it in the head. -1: why and cause tell
 * why not. */
int exchange_begin_masking(
        struct exchange *ex, struct http_response *r, enum event_cause *cause, const char **why);
/* The response is whole with its head. */
bool exchange_has_no_content(const struct exchange *ex, const struct http_response *r);
/* Chooses the framing towards the client. */
void exchange_frame_response(struct exchange *ex, struct http_response *r);
void exchange_pass_interim(struct exchange *ex, struct http_response *r);
/* 101: the connection becomes a pipe. False: it was refused. */
bool exchange_upgrade(struct exchange *ex, struct http_response *r);
/* Goes on with what was kept for want of room. True: nothing is kept any more. */
bool exchange_unpack_more(struct exchange *ex);
/* True where the credential is being guessed (credential_store_waited()): nothing more is passed on
 * of a response to a request that had it. */
bool exchange_is_guessed(struct exchange *ex);
/* The end of an exchange that was upgraded; detail: why it did not end by itself, or NULL. The
 * exchange is gone afterwards. */
void exchange_end_upgraded(struct exchange *ex, enum event_cause cause, const char *detail);
/* What masking and unpacking kept back goes out. 0, or -EBADMSG: compressed data ended early. */
int exchange_flush_body(struct exchange *ex);

#endif
