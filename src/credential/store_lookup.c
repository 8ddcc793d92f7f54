/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the placeholders of a store's credentials. */
#include "vethguard/credential/store.h"

#include <errno.h>

#include "credential/store_private.h"

int credential_store_set_placeholder(
        struct credential_store *store, uint32_t credential, struct slice placeholder)
{
	if (credential >= store->count)
		return -EINVAL;
	return placeholders_add(&store->placeholders, credential, placeholder);
}

struct slice credential_store_placeholder(const struct credential_store *store, uint32_t credential)
{
	for (size_t i = 0; i < store->placeholders.count; i++)
		if (store->placeholders.items[i].credential == credential)
			return slice_of(
			        store->placeholders.items[i].text, store->placeholders.items[i].n);
	return SLICE("");
}

uint32_t credential_store_find_placeholder(
        const struct credential_store *store, struct slice p, size_t *at, size_t *n)
{
	return placeholders_find(&store->placeholders, p, at, n);
}

bool credential_store_has_placeholders(const struct credential_store *store)
{
	return store->placeholders.count > 0;
}

bool credential_store_name_mentions(const struct credential_store *store, struct slice name)
{
	return placeholders_in_name(&store->placeholders, name);
}

uint32_t credential_store_find_encoded_placeholder(
        const struct credential_store *store, struct slice p)
{
	return placeholders_find_encoded(&store->placeholders, p);
}

bool credential_store_mentions_placeholder(
        const struct credential_store *store, struct slice p, uint64_t except)
{
	return placeholders_mentioned(&store->placeholders, p, except);
}

bool credential_store_scan(const struct credential_store *store, struct credential_scan *scan,
        const uint8_t *p, size_t n, uint64_t except)
{
	return placeholders_scan(&store->placeholders, scan, p, n, except);
}

size_t credential_store_placeholder_begins(const struct credential_store *store, struct slice p)
{
	return placeholders_begin(&store->placeholders, p);
}
