/* SPDX-License-Identifier: Apache-2.0 */
#include "vethguard/base/wiped.h"

#include <malloc.h>
#include <stdlib.h>
#include <string.h>

#include "vethguard/base/secret.h"

void wiped_free(void *p)
{
	if (p)
		secret_wipe(p, malloc_usable_size(p));
	free(p);
}

void *wiped_realloc(void *p, size_t n)
{
	size_t had = p ? malloc_usable_size(p) : 0;
	void *other;

	if (n == 0) {
		wiped_free(p);
		return NULL;
	}
	if (p && had >= n)
		return p;
	other = malloc(n);
	if (!other)
		return NULL;
	if (p)
		memcpy(other, p, had);
	wiped_free(p);
	return other;
}
