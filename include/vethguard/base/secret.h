/* SPDX-License-Identifier: Apache-2.0 */
/*
 * secret: memory for credential values and keys. Pages are locked (never swapped), left out of core dumps, wiped
 * before they are given back, and lie between guard pages.
 */
#ifndef VETHGUARD_BASE_SECRET_H
#define VETHGUARD_BASE_SECRET_H

#include "vethguard/base/slice.h"

#define SECRET_MAX 65536 /* bytes of one value */

struct secret {
	uint8_t *p; /* owned; NULL: none */
	size_t n;   /* bytes of the value */
	size_t cap;
};

/* Keeps pages out of swap as they come into use; where the kernel does not know that (valgrind), at once. 0, or -1 with
 * errno (mlock2(2)). */
int secret_lock(const void *p, size_t n);

/* Room for cap bytes (1 to SECRET_MAX), zeroed, n = 0. 0 or -errno (-EAGAIN/-ENOMEM: RLIMIT_MEMLOCK is too low). */
int secret_alloc(struct secret *s, size_t cap);
/* A copy of n bytes in new secret memory. 0 or -errno. */
int secret_copy(struct secret *s, const void *p, size_t n);
/* Wipes and frees; s is empty afterwards. Harmless on an empty one. */
void secret_free(struct secret *s);
/* Wipes ordinary memory in a way the compiler keeps. */
void secret_wipe(void *p, size_t n);

static inline struct slice secret_slice(const struct secret *s)
{
	return slice_of(s->p, s->n);
}

#endif
