/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions (attach_kind ATTACH_SESSION): tells the gateway when they begin and end. */
#include <stdio.h>
#include <string.h>

#include "vethguard/base/clock.h"
#include "supervisor/attach/attachment.h"

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

void attachments_extend(
        struct attachments *all, const char *name, uint32_t ttl_s, attach_done done, void *context)
{
	struct attachment *a = attachments_find_session(all, name, done, context);
	const struct attach_result result = {.status = ATTACH_OK, .text = "", .attachment = a};
	int64_t before;
	int rc;

	if (!a)
		return;
	if (attachment_is_left(a) || a->detaching || all->held) {
		attach_refuse(done, context, ATTACH_BUSY, "%s is being %s", name,
		        a->detaching ? "revoked" : "taken over: try again");
		return;
	}
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
