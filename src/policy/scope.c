/* SPDX-License-Identifier: Apache-2.0 */
/* The regions and services that a sigv4 credential may sign for: each is a text of sorted names
 * separated by spaces. */
#include "vethguard/policy/policy.h"

bool policy_is_scope_name(struct slice name, size_t max)
{
	for (size_t i = 0; i < name.n; i++) {
		char c = name.p[i];

		if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
		            c == '-' || c == '_' || c == '.'))
			return false;
	}
	return name.n > 0 && name.n <= max;
}

static bool names(struct slice list, struct slice name)
{
	while (list.n) {
		ptrdiff_t space = slice_find_byte(list, ' ');
		size_t n = space < 0 ? list.n : (size_t)space;

		if (slice_equals(slice_of(list.p, n), name))
			return true;
		n += space >= 0;
		list = slice_of(list.p + n, list.n - n);
	}
	return false;
}

bool policy_signs_for(
        const struct policy_credential *credential, struct slice region, struct slice service)
{
	return names(credential->field, region) && names(credential->prefix, service);
}

bool policy_signs_for_one(const struct policy_credential *credential)
{
	return slice_find_byte(credential->field, ' ') < 0 &&
	       slice_find_byte(credential->prefix, ' ') < 0;
}
