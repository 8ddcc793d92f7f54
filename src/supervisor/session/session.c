/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions (attach_kind ATTACH_SESSION): tells the gateway when they begin and end. */
#include <stdio.h>
#include <string.h>

#include "vethguard/base/clock.h"
#include "supervisor/attach/attachment.h"
#include "supervisor/session/session.h"

void attachment_admit(struct attachment *a)
{
	struct sandbox *s = a->sandbox;

	if (s && s->session && !a->detaching &&
	        (!a->record.expires_ms || a->record.expires_ms > clock_real_ms()))
		gateway_admit(s->supervisor, s);
}

struct attachment *attachments_find_session(
        struct attachments *all, const char *name, attach_done done, void *context)
{
	struct attachment *a = attachments_find(all, name);

	if (a && a->record.kind == ATTACH_SESSION)
		return a;
	attach_refuse(done, context, ATTACH_NOT_FOUND, "there is no session %.64s", name);
	return NULL;
}

bool attachment_lasts_until(struct attachment *a, int64_t until_ms)
{
	const int64_t before_ms = a->record.expires_ms, now_ms = clock_real_ms();

	if (before_ms >= until_ms)
		return true;
	a->record.expires_ms = until_ms;
	if (until_ms <= now_ms || attachment_save(a) != 0) {
		a->record.expires_ms = before_ms;
		return false;
	}
	loop_alarm_set(&a->expiry, until_ms - now_ms);
	return true;
}

/* Returns true, after a refusal, if the session is being revoked or taken over. */
static bool is_busy(
        const struct attachments *all, struct attachment *a, attach_done done, void *context)
{
	if (!attachment_is_left(a) && !a->detaching && !all->held)
		return false;
	attach_refuse(done, context, ATTACH_BUSY, "%s is being %s", a->record.name,
	        a->detaching ? "revoked" : "taken over: try again");
	return true;
}

void attachments_extend(
        struct attachments *all, const char *name, uint32_t ttl_s, attach_done done, void *context)
{
	struct attachment *a = attachments_find_session(all, name, done, context);
	const struct attach_result result = {.status = ATTACH_OK, .text = "", .attachment = a};
	int64_t before;
	int rc;

	if (!a)
		return;
	if (is_busy(all, a, done, context))
		return;
	before = a->record.expires_ms;
	a->record.expires_ms = clock_real_ms() + (int64_t)ttl_s * 1000;
	rc = attachment_save(a);
	if (rc) {
		a->record.expires_ms = before;
		attach_refuse(done, context, ATTACH_FAILED, "its state cannot be written: %s",
		        strerror(-rc));
		return;
	}
	loop_alarm_set(&a->expiry, (int64_t)ttl_s * 1000);
	done(context, &result);
}

/* --- certificates --- */

enum attach_status attachments_may_certify(const struct attachments *all,
        const uint8_t hash[MESSAGE_TOKEN_HASH_BYTES], char out[ATTACH_CERTIFICATE_WHY_MAX])
{
	if (!all->supervisor->gateway.config.client_certificates) {
		snprintf(out, ATTACH_CERTIFICATE_WHY_MAX,
		        "the gateway does not ask clients for certificates: write "
		        "\"client_certificates: "
		        "true\" into the section \"gateway\" of the configuration, and reload it");
		return ATTACH_INVALID;
	}
	for (const struct attachment *a = all->by_name; a; a = a->hh.next) {
		if (a->record.kind != ATTACH_SESSION ||
		        memcmp(a->record.session.hash, hash, MESSAGE_TOKEN_HASH_BYTES) != 0)
			continue;
		snprintf(out, ATTACH_CERTIFICATE_WHY_MAX,
		        "this certificate already proves session %s", a->record.name);
		return ATTACH_CONFLICT;
	}
	return ATTACH_OK;
}

/* Returns why the session can have no certificate, or NULL. */
static const char *objection(const struct attachment *a)
{
	if (a->record.session.is_signed)
		return "it is proved by tokens that others sign";
	return a->record.session.by_address ? "it is proved by the address of its clients" : NULL;
}

/* Writes the new hash to the disk before the gateway learns it. Returns 0, or -errno with the proof
 * as before. */
static int set_proof(struct attachment *a, const uint8_t hash[MESSAGE_TOKEN_HASH_BYTES])
{
	struct session_token *token = &a->record.session;
	struct sandbox *s = a->sandbox;
	uint8_t before[MESSAGE_TOKEN_HASH_BYTES];
	int rc;

	memcpy(before, token->hash, sizeof(before));
	memcpy(token->hash, hash, sizeof(token->hash));
	rc = attachment_save(a);
	if (rc) {
		memcpy(token->hash, before, sizeof(token->hash));
		return rc;
	}
	if (s && s->gateway.admitted) {
		gateway_cut(s->supervisor, s);
		attachment_admit(a);
	}
	return 0;
}

void attachments_certify(struct attachments *all, const char *name,
        const uint8_t hash[MESSAGE_TOKEN_HASH_BYTES], attach_done done, void *context)
{
	struct attachment *a = attachments_find_session(all, name, done, context);
	const struct attach_result result = {.status = ATTACH_OK, .text = "", .attachment = a};
	char why[ATTACH_CERTIFICATE_WHY_MAX];
	enum attach_status status;
	int rc;

	if (!a)
		return;
	status = attachments_may_certify(all, hash, why);
	if (is_busy(all, a, done, context))
		return;
	if (status != ATTACH_OK) {
		attach_refuse(done, context, status, "%s", why);
	} else if (objection(a)) {
		attach_refuse(done, context, ATTACH_CONFLICT,
		        "session %s can have no certificate: %s", name, objection(a));
	} else if ((rc = set_proof(a, hash)) != 0) {
		attach_refuse(done, context, ATTACH_FAILED, "its state cannot be written: %s",
		        strerror(-rc));
	} else {
		done(context, &result);
	}
}
