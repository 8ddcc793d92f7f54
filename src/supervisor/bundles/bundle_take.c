/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Taking a bundle. The order is: signature, name, serial, every policy and key set in it, the disk.
 * Only when all of that is good does anything change, and then in this order: what is revoked, the
 * keys of signers, the policies. A failure before that leaves everything as it was.
 *
 * A sandbox whose policy has changed is reloaded. A sandbox whose policy the bundle no longer has
 * is paused: the signer has taken the policy away, and a sandbox may not go on with it only because
 * it had begun before. Refusing the bundle instead would let one sandbox hold up revocations. The
 * operator can end the pause once a bundle has the policy again.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vethguard/base/clock.h"
#include "vethguard/base/log.h"
#include "supervisor/attach/attachment.h"
#include "supervisor/session/session.h"

/* --- what is in force --- */

int bundle_set_active(struct bundle *b, struct signed_bundle *next)
{
	uint8_t(*tokens)[SIGNED_BUNDLE_DIGEST_BYTES] = NULL;
	int rc = 0;

	if (next) {
		tokens = calloc(next->token_count + 1, sizeof(*tokens));
		rc = tokens ? 0 : -ENOMEM;
	}
	for (size_t i = 0; !rc && next && i < next->token_count; i++) {
		char signer[SIGNED_BUNDLE_SIGNER_MAX + 1];

		snprintf(signer, sizeof(signer), "%.*s", SLICE_ARG(next->tokens[i].signer));
		rc = attach_signed_id(signer, next->tokens[i].id, tokens[i]);
	}
	if (rc) {
		free(tokens);
		return rc;
	}
	signed_bundle_free(b->active);
	free(b->tokens);
	b->active = next;
	b->tokens = tokens;
	b->taken_ms = next ? clock_real_ms() : 0;
	b->told_expired = false;
	return 0;
}

_Static_assert(SIGNED_BUNDLE_DIGEST_BYTES == MESSAGE_TOKEN_HASH_BYTES, "the same hash");

/* --- revocations --- */

static void on_revoked(void *context, const struct attach_result *result)
{
	(void)context;
	if (result->status != ATTACH_OK && result->status != ATTACH_NOT_FOUND)
		log_warn("a session that a bundle revokes cannot be ended: %s", result->text);
}

/* Returns the name of the bundle that revokes this session, or NULL. */
static const char *revoked_by(const struct attachments *all, const struct attachment *a)
{
	const struct session_token *token = &a->record.session;
	const char *by;

	if (a->record.kind != ATTACH_SESSION || a->detaching || attachment_is_left(a))
		return NULL;
	by = bundles_revoke_session(all, a->record.name);
	return by || !token->is_signed ? by : bundles_revoke_id(all, token->id);
}

void bundles_revoke(struct attachments *all)
{
	struct attachment *a, *next;

	HASH_ITER(hh, all->by_name, a, next)
	{
		const char *by = revoked_by(all, a);

		if (!by)
			continue;
		log_info("session %s ends: bundle %s revokes it", a->record.name, by);
		attachments_detach(all, a->record.name, on_revoked, NULL);
	}
	/* The gateway asks again about every token. */
	gateway_signers_look(all->supervisor, false);
	gateway_signers_send(all->supervisor);
}

/* --- policies --- */

static void on_paused(void *context, const struct attach_result *result)
{
	(void)context;
	if (result->status != ATTACH_OK)
		log_warn(
		        "a sandbox whose bundle has no policy for it any more cannot be paused: %s",
		        result->text);
}

static void pause_one(struct attachment *a, const struct bundle *b, struct slice file)
{
	char reason[ATTACH_REASON_MAX + 1];

	snprintf(reason, sizeof(reason), "Bundle %s has no policy %.*s any more.", b->config.name,
	        SLICE_ARG(file));
	log_warn("%s is paused: bundle %s has no policy %.*s any more", a->record.name,
	        b->config.name, SLICE_ARG(file));
	attachments_pause(b->all, a->record.name, reason, on_paused, NULL);
}

/* True if the file is not the same in both bundles. */
static bool has_changed(
        const struct signed_bundle *before, const struct signed_bundle *now, struct slice name)
{
	const struct signed_bundle_file *x = before ? signed_bundle_find(before, name) : NULL;
	const struct signed_bundle_file *y = signed_bundle_find(now, name);

	return !x || !y || !slice_equals(x->text, y->text);
}

/* True if any of the files that its policy was loaded from has changed. */
static bool uses_changed(const struct attachment *a, const struct bundle *b,
        const struct signed_bundle *before, const struct signed_bundle *now)
{
	const struct settings *settings = a->sandbox->generation->settings;
	struct slice file;

	for (size_t i = 0; i < settings->file_count; i++)
		if (bundles_of_path(b->all, settings->files[i], &file) == b &&
		        has_changed(before, now, file))
			return true;
	return false;
}

/* Pauses or marks each sandbox of this bundle that the next one changes. */
static void mark(struct bundle *b, const struct signed_bundle *before)
{
	struct attachment *a, *next;
	struct slice file;

	HASH_ITER(hh, b->all->by_name, a, next)
	{
		if (!a->record.policy || a->detaching ||
		        bundles_of_path(b->all, a->record.policy, &file) != b)
			continue;
		if (!signed_bundle_find(b->active, file))
			pause_one(a, b, file);
		else if (!a->sandbox || a->sandbox->state == SANDBOX_CLOSED ||
		         uses_changed(a, b, before, b->active))
			a->stale = true;
	}
}

static void on_reloaded(void *context, const struct attach_result *result)
{
	struct attachments *all = context;
	struct attachment *a = result->attachment;

	all->bundles.reloading--;
	/* If the policy cannot be used for this sandbox (because of its variables), the reload has
	 * logged that. */
	if (a && result->status == ATTACH_BUSY)
		a->stale = true;
	else if (a && result->status == ATTACH_OK)
		log_info("%s: its bundle has changed and its policy was reloaded", a->record.name);
	bundles_reload_some(all);
}

static bool may_reload(const struct attachment *a)
{
	return a->sandbox
	               ? !sandbox_is_changing(a->sandbox) && a->sandbox->state != SANDBOX_STARTING
	               : a->recoverable;
}

void bundles_reload_some(struct attachments *all)
{
	struct bundles *bundles = &all->bundles;
	struct attachment *a, *next;

	if (bundles->pumping || all->held || all->stopping)
		return;
	bundles->pumping = true;
	HASH_ITER(hh, all->by_name, a, next)
	{
		if (bundles->reloading == BUNDLES_RELOADS_MAX)
			break;
		if (!a->stale || attachment_is_left(a) || a->detaching || a->later ||
		        !may_reload(a))
			continue;
		a->stale = false;
		bundles->reloading++;
		attachments_reload(all, a->record.name, NULL, NULL, on_reloaded, all);
	}
	bundles->pumping = false;
}

/* --- taking --- */

/* Returns false after a fault. */
static bool check_serial(struct bundle *b, const struct signed_bundle *next)
{
	const struct bundle_store *s = &b->store;
	char why[SIGNED_BUNDLE_WHY_MAX];

	if (next->serial > s->highest ||
	        (next->serial == s->highest &&
	                memcmp(next->digest, s->digest, sizeof(s->digest)) == 0))
		return true;
	if (next->serial < s->highest)
		snprintf(why, sizeof(why),
		        "its serial %llu is lower than %llu, which was taken before: an old bundle "
		        "is being served, or the new one needs a higher serial",
		        (unsigned long long)next->serial, (unsigned long long)s->highest);
	else
		snprintf(why, sizeof(why),
		        "its serial %llu was taken before with another content: give every "
		        "content a serial of its own",
		        (unsigned long long)next->serial);
	bundle_fail(b, SIGNED_BUNDLE_SERIAL, why);
	return false;
}

/* Returns false after a fault. */
static bool check(struct bundle *b, const struct signed_bundle *next)
{
	char why[SIGNED_BUNDLE_WHY_MAX];

	if (!slice_equals(next->name, slice_from_string(b->config.name))) {
		snprintf(why, sizeof(why),
		        "its name is %.*s: the source serves another bundle, or the configuration "
		        "names this one wrongly",
		        SLICE_ARG(next->name));
		bundle_fail(b, SIGNED_BUNDLE_CONTENT, why);
		return false;
	}
	if (!check_serial(b, next))
		return false;
	if (signed_bundle_check(next, policy_default_preset_dir(), why))
		return true;
	bundle_fail(b, SIGNED_BUNDLE_CONTENT, why);
	return false;
}

static bool keep(struct bundle *b, const struct signed_bundle *next)
{
	char why[SIGNED_BUNDLE_WHY_MAX];
	int rc = bundle_store_keep(&b->store, next);

	if (!rc)
		return true;
	snprintf(why, sizeof(why), "it cannot be kept in %.256s/%s: %s", b->all->bundles.path,
	        b->config.name, strerror(-rc));
	bundle_fail(b, SIGNED_BUNDLE_DISK, why);
	return false;
}

/* Puts a bundle in force that was checked and kept. Takes next. Returns false without memory. */
static bool put_in_force(struct bundle *b, struct signed_bundle *next)
{
	struct signed_bundle *before = b->active;

	b->active = NULL; /* bundle_set_active() would free it, and it is compared below */
	if (bundle_set_active(b, next) != 0) {
		b->active = before;
		signed_bundle_free(next);
		if (!before || bundle_store_extract(&b->store, before) != 0)
			bundle_store_hide(&b->store);
		bundle_fail(b, SIGNED_BUNDLE_DISK, "no memory");
		return false;
	}
	log_info("bundle %s: serial %llu is in force: %zu files, %zu revocations", b->config.name,
	        (unsigned long long)next->serial, next->file_count,
	        next->session_count + next->token_count);
	bundles_revoke(b->all);
	mark(b, before);
	bundles_reload_some(b->all);
	signed_bundle_free(before);
	return true;
}

bool bundle_take(struct bundle *b, struct slice file)
{
	struct signed_bundle *next;
	char why[SIGNED_BUNDLE_WHY_MAX];
	enum signed_bundle_fault fault =
	        signed_bundle_open(file, b->keys, b->key_count, &next, why);

	if (fault) {
		bundle_fail(b, fault, why);
		return false;
	}
	if (b->active && b->active->serial == next->serial &&
	        memcmp(b->active->digest, next->digest, sizeof(next->digest)) == 0) {
		signed_bundle_free(next);
		b->fault = SIGNED_BUNDLE_GOOD;
		return true;
	}
	if (!check(b, next) || !keep(b, next)) {
		signed_bundle_free(next);
		return false;
	}
	b->fault = SIGNED_BUNDLE_GOOD;
	return put_in_force(b, next);
}
