/* SPDX-License-Identifier: Apache-2.0 */
/* url_path: works on canonical paths. */
#ifndef VETHGUARD_SRC_POLICY_URL_URL_PATH_H
#define VETHGUARD_SRC_POLICY_URL_URL_PATH_H

#include "vethguard/policy/url.h"

/* True if url_canonical_path() would return the same bytes, at most POLICY_PATH_MAX. */
bool url_path_is_canonical(struct slice path);

/* The first "%2F" in n bytes, or NULL. Searching for '%' alone is fast, because escapes are
 * rare. */
static inline const char *url_find_escaped_slash(const char *p, size_t n)
{
	const char *end = p + n;

	while ((p = memchr(p, '%', (size_t)(end - p)))) {
		if (end - p < 3)
			return NULL;
		if (p[1] == '2' && p[2] == 'F')
			return p;
		p++;
	}
	return NULL;
}

#endif
