/* SPDX-License-Identifier: Apache-2.0 */
/* The call about signed bundles: what is in force, and what is wrong with each source. */
#include "vethguard/base/clock.h"
#include "vethguard/bundle/signed_bundle.h"
#include "supervisor/bundles/bundles.h"
#include "supervisor/control/call.h"

static void put_files(struct json *j, const struct signed_bundle *b, bool policies, const char *key)
{
	json_put_array(j, key);
	for (size_t i = 0; i < b->file_count; i++)
		if (signed_bundle_is_policy(b->files[i].name) == policies)
			json_put_string(j, NULL, b->files[i].name, 0);
	json_put_end_array(j);
}

static void put_active(struct json *j, const struct attach_bundle *b)
{
	const struct signed_bundle *active = b->active;

	if (!active) {
		json_put_null(j, "in_force");
		return;
	}
	json_put_object(j, "in_force");
	json_put_uint(j, "serial", active->serial);
	control_put_time(j, "since", b->taken_ms);
	control_put_time(j, "expires", active->expires_s * 1000);
	json_put_bool(j, "expired", signed_bundle_has_expired(active, clock_real_ms() / 1000));
	put_files(j, active, true, "policies");
	put_files(j, active, false, "key_sets");
	json_put_uint(j, "revoked_sessions", active->session_count);
	json_put_uint(j, "revoked_tokens", active->token_count);
	json_put_end_object(j);
}

static void put_one(struct json *j, const struct attach_bundle *b)
{
	json_put_object(j, NULL);
	json_put_literal(j, "name", b->name);
	control_put_text(j, "source", b->source);
	put_active(j, b);
	if (b->highest)
		json_put_uint(j, "highest_serial", b->highest);
	else
		json_put_null(j, "highest_serial");
	control_put_time(j, "looked", b->looked_ms);
	if (b->fault) {
		json_put_object(j, "fault");
		json_put_literal(j, "kind", b->fault);
		control_put_text(j, "text", b->why);
		json_put_end_object(j);
	} else {
		json_put_null(j, "fault");
	}
	json_put_end_object(j);
}

void control_run_bundles(struct control *control, struct control_call *call)
{
	struct attach_bundle bundles[CONFIG_BUNDLES_MAX];
	const size_t count = attachments_bundles(control_attachments(control), bundles);
	struct buf out;
	struct json j;

	buf_init(&out, CONTROL_BODY_MAX);
	json_begin(&j, &out);
	json_put_object(&j, NULL);
	json_put_array(&j, "bundles");
	for (size_t i = 0; i < count; i++)
		put_one(&j, &bundles[i]);
	json_put_end_array(&j);
	json_put_end_object(&j);
	control_answer(call, 200, &j, &out);
}
