/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the bundles in force mean for sandboxes that begin: which file "bundle:NAME/FILE" names, and
 * which sessions and tokens are revoked.
 */
#include <stdio.h>
#include <string.h>

#include "vethguard/base/clock.h"
#include "supervisor/attach/attachment.h"

static struct bundle *find(const struct attachments *all, struct slice name)
{
	const struct bundles *bundles = &all->bundles;

	for (size_t i = 0; i < bundles->count; i++)
		if (slice_equals(slice_from_string(bundles->items[i]->config.name), name))
			return bundles->items[i];
	return NULL;
}

/* Splits a path below the stores into a bundle's name and a file's name; both are empty if it does
 * not lead through `current`. Returns false for a path that is elsewhere. */
static bool split(
        const struct attachments *all, const char *path, struct slice *name, struct slice *file)
{
	static const char middle[] = "/current/";
	const size_t n = strlen(all->bundles.path);
	const char *at;

	*name = *file = SLICE("");
	if (!n || strncmp(path, all->bundles.path, n) != 0 || path[n] != '/')
		return false;
	at = strstr(path + n + 1, middle);
	if (!at)
		return true;
	*name = slice_of(path + n + 1, (size_t)(at - path) - n - 1);
	*file = slice_from_string(at + sizeof(middle) - 1);
	return true;
}

struct bundle *bundles_of_path(const struct attachments *all, const char *path, struct slice *file)
{
	struct slice name;

	return split(all, path, &name, file) ? find(all, name) : NULL;
}

/* Returns true, with why, if nothing new may begin with this bundle. b NULL: no bundle has the
 * name. */
static bool object_to(const struct bundle *b, struct slice name, char why[SIGNED_BUNDLE_WHY_MAX])
{
	if (!b && !name.n)
		snprintf(why, SIGNED_BUNDLE_WHY_MAX,
		        "a policy of a bundle is named bundle:NAME/FILE.yaml");
	else if (!b)
		snprintf(why, SIGNED_BUNDLE_WHY_MAX, "the configuration has no bundle \"%.*s\"",
		        SLICE_ARG(name));
	else if (!b->active)
		snprintf(why, SIGNED_BUNDLE_WHY_MAX,
		        "no bundle %s is in force: 'vethguard bundle list' says why",
		        b->config.name);
	else if (signed_bundle_has_expired(b->active, clock_real_ms() / 1000))
		snprintf(why, SIGNED_BUNDLE_WHY_MAX,
		        "bundle %s (serial %llu) has expired: publish a newer one", b->config.name,
		        (unsigned long long)b->active->serial);
	else
		return false;
	return true;
}

bool bundles_object_to_missing(
        const struct attachments *all, const char *path, char why[SIGNED_BUNDLE_WHY_MAX])
{
	struct slice file;
	const struct bundle *b = path ? bundles_of_path(all, path, &file) : NULL;

	if (!b || !b->active ||
	        (signed_bundle_find(b->active, file) && signed_bundle_is_policy(file)))
		return false;
	snprintf(why, SIGNED_BUNDLE_WHY_MAX, "bundle %s (serial %llu) has no policy %.*s",
	        b->config.name, (unsigned long long)b->active->serial,
	        file.n < CONFIG_BUNDLE_FILE_MAX ? (int)file.n : CONFIG_BUNDLE_FILE_MAX, file.p);
	return true;
}

bool bundles_object(
        const struct attachments *all, const char *path, char why[SIGNED_BUNDLE_WHY_MAX])
{
	struct slice name, file;

	return split(all, path, &name, &file) &&
	       (object_to(find(all, name), name, why) || bundles_object_to_missing(all, path, why));
}

const char *bundles_resolve(const struct attachments *all, const char *policy,
        char out[MESSAGE_PATH_MAX + 1], char why[SIGNED_BUNDLE_WHY_MAX])
{
	const char *path = policy;

	switch (bundle_store_path(all->bundles.path, policy, out, MESSAGE_PATH_MAX + 1)) {
	case 0:
		break;
	case 1:
		path = out;
		break;
	default:
		snprintf(why, SIGNED_BUNDLE_WHY_MAX,
		        "a policy of a bundle is named bundle:NAME/FILE.yaml");
		return NULL;
	}
	return bundles_object(all, path, why) ? NULL : path;
}

/* --- revocations --- */

const char *bundles_revoke_session(const struct attachments *all, const char *name)
{
	for (size_t i = 0; i < all->bundles.count; i++) {
		const struct signed_bundle *active = all->bundles.items[i]->active;

		for (size_t k = 0; active && k < active->session_count; k++)
			if (slice_equals(active->sessions[k], slice_from_string(name)))
				return all->bundles.items[i]->config.name;
	}
	return NULL;
}

const char *bundles_revoke_id(
        const struct attachments *all, const uint8_t id[SIGNED_BUNDLE_DIGEST_BYTES])
{
	for (size_t i = 0; i < all->bundles.count; i++) {
		const struct bundle *b = all->bundles.items[i];

		for (size_t k = 0; b->active && k < b->active->token_count; k++)
			if (memcmp(b->tokens[k], id, SIGNED_BUNDLE_DIGEST_BYTES) == 0)
				return b->config.name;
	}
	return NULL;
}

const char *bundles_unknown(const struct attachments *all)
{
	for (size_t i = 0; i < all->bundles.count; i++) {
		const struct bundle *b = all->bundles.items[i];

		if (b->damaged || (b->store.highest && !b->active))
			return b->config.name;
	}
	return NULL;
}

bool bundles_object_to_signer(const struct attachments *all, const struct config_signer *signer,
        char why[SIGNED_BUNDLE_WHY_MAX])
{
	struct slice name, file;

	return config_bundle_split(slice_from_string(signer->keys), &name, &file) &&
	       object_to(find(all, name), name, why);
}
