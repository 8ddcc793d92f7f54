/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chooses the CA that signs for a sandbox. A new sandbox gets the current CA. A sandbox that knows
 * an earlier root gets the CA under that root, also for its next workers, until that CA is dropped:
 * so nothing inside the sandbox has to change while both roots are trusted. A sandbox trusts every
 * CA under its root, so a newer CA under the same root replaces the older one at once.
 */
#include "keeper/authorities.h"

#include <errno.h>

static bool same(const uint8_t *a, const uint8_t *b)
{
	return memcmp(a, b, CA_FINGERPRINT_BYTES) == 0;
}

void authorities_drop(struct authorities *all, size_t i)
{
	authority_put(all->list[i]);
	all->count--;
	for (; i < all->count; i++) {
		all->list[i] = all->list[i + 1];
		all->retires_s[i] = all->retires_s[i + 1];
	}
}

int authorities_lead(struct authorities *all, struct authority *a, int64_t retires_s)
{
	if (!a)
		return -ENOMEM;
	for (size_t i = all->count; i-- > 0;)
		if (same(all->list[i]->root_described.fingerprint, a->root_described.fingerprint))
			authorities_drop(all, i);
	if (all->count == MESSAGE_CAS_MAX) {
		authority_put(a);
		return -ENOSPC;
	}
	for (size_t i = all->count; i > 0; i--) {
		all->list[i] = all->list[i - 1];
		all->retires_s[i] = all->retires_s[i - 1] ? all->retires_s[i - 1] : retires_s;
	}
	all->list[0] = a;
	all->retires_s[0] = 0;
	all->count++;
	return 0;
}

struct authority *authorities_find(const struct authorities *all, struct slice root)
{
	static const uint8_t oldest[CA_FINGERPRINT_BYTES];

	if (slice_equals(root, slice_of(oldest, sizeof(oldest))) && all->count > 1)
		return all->list[all->count - 1];
	for (size_t i = 0; i < all->count; i++)
		if (root.n == CA_FINGERPRINT_BYTES &&
		        same(all->list[i]->root_described.fingerprint, (const uint8_t *)root.p))
			return all->list[i];
	return all->problem[0] || all->count == 0 ? NULL : all->list[0];
}

bool authorities_have(const struct authorities *all, const uint8_t ca[CA_FINGERPRINT_BYTES])
{
	for (size_t i = 0; i < all->count; i++)
		if (same(all->list[i]->described.fingerprint, ca))
			return true;
	return false;
}

int authorities_trusted(
        const struct authorities *all, const struct authority *first, struct buf *out)
{
	struct ca_papers roots = {0};
	int rc = 0;

	if (first)
		ca_papers_add(&roots, ca_paper(&first->root, 0));
	for (size_t i = 0; i < all->count; i++)
		ca_papers_add(&roots, ca_paper(&all->list[i]->root, 0));
	for (size_t i = 0; i < all->roots.count; i++)
		if (!ca_papers_add(&roots, ca_paper(&all->roots, i)))
			return -ENOBUFS;
	for (size_t i = 0; i < roots.count && rc == 0; i++)
		rc = ca_pem_append(ca_paper(&roots, i), out);
	return rc;
}

int authorities_copy(struct authorities *to, const struct authorities *from)
{
	struct secret key;
	int rc = 0;

	*to = *from;
	for (size_t i = 0; i < to->count; i++)
		authority_get(to->list[i]);
	to->request = NULL;
	if (from->request) {
		rc = ca_request_key_der(from->request, &key);
		if (rc == 0) {
			to->request = ca_request_from_der(secret_slice(&key));
			secret_free(&key);
		}
		if (!to->request) {
			authorities_fini(to);
			rc = -ENOMEM;
		}
	}
	return rc;
}

void authorities_fini(struct authorities *all)
{
	while (all->count)
		authorities_drop(all, all->count - 1);
	ca_request_free(all->request);
	all->request = NULL;
}
