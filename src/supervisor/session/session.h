/* SPDX-License-Identifier: Apache-2.0 */
/* session: attachments whose connections come through the gateway: their proofs, time and end. */
#ifndef VETHGUARD_SRC_SUPERVISOR_SESSION_SESSION_H
#define VETHGUARD_SRC_SUPERVISOR_SESSION_SESSION_H

#include "supervisor/attach/attachments.h"

struct gateway_question;

/* --- session.c --- */

/* Makes a session end in ttl_s seconds from now. ATTACH_NOT_FOUND: there is no session
 * with that name. */
void attachments_extend(
        struct attachments *all, const char *name, uint32_t ttl_s, attach_done done, void *context);
/* Makes the certificate with this hash (SHA-256 of the DER) the session's only proof,
 * and cuts the connections that an earlier proof has opened. ATTACH_INVALID: the gateway asks for
 * no certificates. ATTACH_CONFLICT: the certificate is another session's, or the session is proved
 * by its address or by signed tokens. */
void attachments_certify(struct attachments *all, const char *name,
        const uint8_t hash[MESSAGE_TOKEN_HASH_BYTES], attach_done done, void *context);
/* Tells the gateway about the session, unless its time is over. Does nothing if the
 * attachment is not a session. */
void attachment_admit(struct attachment *a);
/* Returns the session with this name. If there is none, answers so and returns NULL. */
struct attachment *attachments_find_session(
        struct attachments *all, const char *name, attach_done done, void *context);
/* Returns ATTACH_OK if the certificate with this hash may prove a session; else writes to out why
 * not. */
#define ATTACH_CERTIFICATE_WHY_MAX 256
enum attach_status attachments_may_certify(const struct attachments *all,
        const uint8_t hash[MESSAGE_TOKEN_HASH_BYTES], char out[ATTACH_CERTIFICATE_WHY_MAX]);
/* Makes a session last until that Unix time at least, also for the next daemon. Returns false if it
 * cannot. */
bool attachment_lasts_until(struct attachment *a, int64_t until_ms);

/* --- signed.c --- */

/* Says whose session a token is that the gateway has verified. */
void attachments_show_token(struct attachments *all, const struct gateway_question *q,
        struct slice text, const struct ip *source);
/* Hashes what names a session: the signer, and the claim's value. Returns 0 or -errno. */
int attach_signed_id(const char *signer, struct slice value, uint8_t out[MESSAGE_TOKEN_HASH_BYTES]);

/* --- revoke.c --- */

/* As attachments_detach(), for sessions only; signed tokens of the session are refused
 * from now on. */
void attachments_revoke(struct attachments *all, const char *name, attach_done done, void *context);
/* Refuses signed tokens of this signer whose jti, or the claim that names their session, has this
 * value, and ends the session that it names. ATTACH_NOT_FOUND: there is no such signer. */
void attachments_revoke_token(struct attachments *all, const char *signer, const char *value,
        attach_done done, void *context);
/* Reads what was revoked, and answers the gateway's questions from now on. */
void attachments_open_tokens(struct attachments *all);

#endif
