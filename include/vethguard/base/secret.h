/* SPDX-License-Identifier: Apache-2.0 */
/*
 * secret: memory for credential values and keys. Its pages are locked (never swapped), excluded from core dumps,
 * wiped before they are freed, and lie between guard pages.
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

/* Keeps pages out of swap from their first use on; at once if the kernel does not support that (valgrind). Returns 0,
 * or -1 with errno (mlock2(2)). */
int secret_lock(const void *p, size_t n);

/* Allocates cap bytes (1 to SECRET_MAX), zeroed, with n = 0. Returns 0 or -errno (-EAGAIN/-ENOMEM: RLIMIT_MEMLOCK is
 * too low). */
int secret_alloc(struct secret *s, size_t cap);
/* Copies n bytes into new secret memory. Returns 0 or -errno. */
int secret_copy(struct secret *s, const void *p, size_t n);
/* Wipes and frees; s is empty afterwards. Does nothing if s is empty. */
void secret_free(struct secret *s);
/* Wipes ordinary memory in a way that the compiler does not remove. */
void secret_wipe(void *p, size_t n);

static inline struct slice secret_slice(const struct secret *s)
{
	return slice_of(s->p, s->n);
}

#endif
